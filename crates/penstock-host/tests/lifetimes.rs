//! Addresses that are valid for some time and routes that expire, as real Linux shows them at any time (`vectors/stack/lifetimes.jsonl`, made by
//! `vectors/stack/lifetimes.py`).

use penstock_host::{Host, HostCx};
use penstock_model::{Kernel, Time};
use penstock_packet::Pool;
use serde_json::Value;

/// The kernel's clock begins at 2^32 - 30,000 ticks of 10 ms; whole seconds and the steps of its timers' wheel lie as in ours from there on.
const BEGINS: i64 = (((1 << 32) - 30_000) % 6_553_600) * 10_000_000;

fn run_until(host: &mut Host, pool: &mut Pool, now: Time) {
    while let Some(at) = host.next_timer().filter(|&at| at <= now) {
        host.handle_timer(&mut HostCx { now: at, pool, out: &mut Vec::new() });
    }
}

/// Without what belongs to the device.
fn addresses(text: &str) -> String {
    text.lines().filter(|l| l.starts_with("    ")).map(|l| format!("{}\n", l.trim_end())).collect()
}

fn play(case: &Value) -> Result<usize, String> {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    host.set_hz(100);
    host.add_device("lan0");
    let mut pool = Pool::new();
    for command in [
        "ip link set lo up",
        "ip link set lan0 address 02:00:00:00:01:01",
        "ip link set lan0 up",
        "sysctl -w net.ipv6.conf.lan0.addr_gen_mode=0",
        // IPv6 begins with its first address.
        "ip addr add fd77::1/128 dev lo",
    ] {
        let done = host.exec(command, Time::from_ns(BEGINS));
        assert_eq!(done.status, 0, "{command}: {}", done.stderr);
    }
    let mut shown = 0;
    for (n, step) in case["steps"].as_array().ok_or("no steps")?.iter().enumerate() {
        let now = Time::from_ns(BEGINS + step["at"].as_i64().ok_or("no time")?);
        run_until(&mut host, &mut pool, now);
        let line = step["run"].as_str().ok_or("no command")?;
        let done = host.exec(line, now);
        let Some(theirs) = step["out"].as_str() else {
            let (err, status) = (step["err"].as_str(), step["status"].as_i64());
            if (Some(done.stderr.as_str()), Some(i64::from(done.status))) != (err, status) {
                return Err(format!("step {n}: {line}: {} {:?}, not {err:?}", done.status, done.stderr));
            }
            continue;
        };
        shown += 1;
        let same = match line.contains("addr") {
            true => addresses(&done.stdout) == addresses(theirs),
            false => {
                // That of the address on `lo` which turned IPv6 on.
                let own = done.stdout.replace("fd77::1 dev lo proto kernel metric 256 pref medium\n", "");
                let json = r#"{"dst":"fd77::1","dev":"lo","protocol":"kernel","metric":256,"flags":[],"pref":"medium"},"#;
                own.replace(json, "") == theirs
            }
        };
        if !same {
            return Err(format!("step {n}: {line}\nours:\n{}theirs:\n{theirs}", done.stdout));
        }
    }
    Ok(shown)
}

#[test]
fn addresses_and_routes_end_as_those_of_linux() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/stack/lifetimes.jsonl");
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let wanted: Option<u64> = std::env::var("PENSTOCK_STACK").ok().and_then(|n| n.parse().ok());
    let (mut cases, mut shown, mut wrong) = (0, 0, Vec::new());
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("a case in JSON");
        if wanted.is_some_and(|seed| case["seed"] != seed) {
            continue;
        }
        cases += 1;
        match play(&case) {
            Ok(n) => shown += n,
            Err(said) => wrong.push(format!("seed {}: {said}", case["seed"])),
        }
    }
    assert!(wrong.is_empty(), "{} of {cases} cases differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(wanted.is_some() || (cases >= 100 && shown >= 500), "{cases} cases, {shown} shown");
}

/// Lifetimes of IPv4 came with Linux 3.9, and a namespace has timers of its own.
#[test]
fn each_namespace_and_each_kernel_has_its_own() {
    for (kernel, stays) in [(Kernel::V2_6_35, true), (Kernel::V6_12, false)] {
        let mut host = Host::new("r", kernel, 1);
        host.add_device("lan0");
        let mut pool = Pool::new();
        let mut run = |host: &mut Host, command: &str, at: i64| {
            let now = Time::from_ns(at * 1_000_000_000);
            run_until(host, &mut pool, now);
            host.in_space(1, |space| run_until(space, &mut pool, now));
            let done = host.exec(command, now);
            done.stdout + &done.stderr
        };
        run(&mut host, "ip link set lan0 up", 0);
        run(&mut host, "ip addr add 10.0.0.1/24 dev lan0 valid_lft 5 preferred_lft 5", 0);
        assert_eq!(run(&mut host, "ip addr show dev lan0", 9).contains("10.0.0.1"), stays, "{kernel:?}");
        if stays {
            continue;
        }
        for command in ["ip netns add c", "ip link add dum0 type dummy", "ip link set dum0 netns c"] {
            assert_eq!(run(&mut host, command, 10), "", "{command}");
        }
        for command in ["link set dum0 up", "addr add fd00::1/64 dev dum0 valid_lft 5 preferred_lft 2"] {
            assert_eq!(run(&mut host, &format!("ip -n c {command}"), 10), "", "{command}");
        }
        let shown = run(&mut host, "ip -n c addr show dev dum0", 13);
        assert!(shown.contains("fd00::1/64 scope global deprecated"), "{shown}");
        assert!(!run(&mut host, "ip -n c addr show dev dum0", 20).contains("fd00::1"));
        assert!(run(&mut host, "ip -n c -6 route", 20).contains("expires -"));
        assert!(!run(&mut host, "ip -n c -6 route", 60).contains("fd00::/64"));
    }
}
