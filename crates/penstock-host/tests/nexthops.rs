//! Nexthops and the routes that go by them, as real Linux says of them (`vectors/stack/nexthops.jsonl`, made by `vectors/stack/nexthops.py`).

use penstock_host::Host;
use penstock_model::{Kernel, Time};
use serde_json::Value;

/// What a machine here does not do and says so; there the two go apart, and the case ends.
const NOT_HERE: &str = ": not simulated";

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// Without the routes to groups: the recorder's kernel has one table of IPv6 for all, where they are shown.
fn without_groups(text: &str) -> String {
    if !text.starts_with("[{") {
        return text.split_inclusive('\n').filter(|l| !l.starts_with("multicast ff00::/8")).collect();
    }
    let mut text = text.to_owned();
    while let Some(from) = text.find(r#"{"type":"multicast""#) {
        let Some(len) = text[from..].find('}') else { break };
        text.replace_range(from..=from + len, "");
        text = text.replace(",,", ",").replace("[,", "[").replace(",]", "]");
    }
    text
}

/// Steps that were compared, and whether the case went on to its end.
fn play(case: &Value) -> Result<(usize, bool), String> {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    for command in [
        "ip link add lan0 type veth peer name wire0",
        "ip link set wire0 up addrgenmode none",
        "ip link set lan0 addrgenmode none",
        "ip link add lan1 type veth peer name wire1",
        "ip link set wire1 up addrgenmode none",
        "ip link set lan1 addrgenmode none",
        "ip link add quiet0 type veth peer name quiet1",
    ] {
        let done = host.exec(command, Time::ZERO);
        assert_eq!(done.status, 0, "{command}: {}", done.stderr);
    }
    let steps = case["steps"].as_array().ok_or("no steps")?;
    for (n, step) in steps.iter().enumerate() {
        let line = step["run"].as_str().ok_or("no command")?;
        let done =
            host.command(&words(line), &mut penstock_host::NoFiles, Time::from_ns(n as i64 * 2_000_000_000));
        if done.stderr.contains(NOT_HERE) {
            return Ok((n, false));
        }
        // The text of usage is our own.
        let usage = done.stderr.starts_with("Usage: ip nexthop");
        let err = if usage { "Usage: ip nexthop".to_owned() } else { done.stderr };
        let theirs = step["err"].as_str().ok_or("no standard error")?;
        let theirs = if usage { theirs.get(..17).unwrap_or(theirs) } else { theirs };
        let ours = (done.stdout.as_str(), err.as_str(), i64::from(done.status));
        let out = step["out"].as_str().ok_or("no output")?;
        let out = if line.contains("-6 route") { without_groups(out) } else { out.to_owned() };
        if ours != (out.as_str(), theirs, step["status"].as_i64().ok_or("no status")?) {
            let before: Vec<&str> = steps[..n].iter().filter_map(|s| s["run"].as_str()).collect();
            let tail = before[before.len().saturating_sub(6)..].join("\n  ");
            return Err(format!(
                "step {n}: {line}\nours ({}):\n{}{err}theirs ({}):\n{out}{theirs}behind:\n  {tail}",
                done.status, done.stdout, step["status"]
            ));
        }
    }
    Ok((steps.len(), true))
}

#[test]
fn nexthops_are_those_of_linux() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/stack/nexthops.jsonl");
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let wanted: Option<u64> = std::env::var("PENSTOCK_STACK").ok().and_then(|n| n.parse().ok());
    let (mut cases, mut steps, mut whole, mut wrong) = (0, 0, 0, Vec::new());
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("a case in JSON");
        if wanted.is_some_and(|seed| case["seed"] != seed) {
            continue;
        }
        cases += 1;
        match play(&case) {
            Ok((n, end)) => {
                steps += n;
                whole += usize::from(end);
            }
            Err(why) => wrong.push(format!("seed {}: {why}", case["seed"])),
        }
    }
    println!("{cases} cases, {whole} to their end, {steps} steps alike, {} not", wrong.len());
    assert!(wrong.is_empty(), "{} of {cases}\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n\n"));
    assert!(wanted.is_some() || cases >= 100 && whole >= 60 && steps > 3000, "{cases} {whole} {steps}");
}

/// Packets share the members of a group by their weights, and go by what is left of it.
#[test]
fn packets_share_a_group() {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    for name in ["lan0", "lan1"] {
        host.add_device(name);
    }
    for command in [
        "ip link set lan0 up",
        "ip link set lan1 up",
        "ip addr add 10.0.0.1/24 dev lan0",
        "ip addr add 10.0.1.1/24 dev lan1",
        "ip nexthop add id 1 via 10.0.0.2 dev lan0",
        "ip nexthop add id 2 via 10.0.1.2 dev lan1",
        "ip nexthop add id 3 group 1,3/2",
        "ip route add 192.0.0.0/16 nhid 3",
    ] {
        assert_eq!(host.exec(command, Time::ZERO).status, 0, "{command}");
    }
    let share = |host: &mut Host| {
        let mut way =
            |n: u32| host.exec(&format!("ip route get 192.0.{}.{}", n / 250, n % 250), Time::ZERO).stdout;
        (0..1000).filter(|&n| way(n).contains("via 10.0.0.2 dev lan0")).count()
    };
    assert!((700..800).contains(&share(&mut host)), "{}", share(&mut host));
    assert_eq!(host.exec("ip nexthop replace id 3 group 1/2,255", Time::ZERO).status, 0);
    assert!((1..15).contains(&share(&mut host)), "{}", share(&mut host));
    assert_eq!(host.exec("ip link set lan1 down", Time::ZERO).status, 0);
    assert_eq!(
        host.exec("ip route show 192.0.0.0/16", Time::ZERO).stdout,
        "192.0.0.0/16 nhid 3 via 10.0.0.2 dev lan0 \n"
    );
    assert_eq!(share(&mut host), 1000);
    assert_eq!(host.exec("ip nexthop del id 1", Time::ZERO).status, 0);
    assert_eq!(host.exec("ip route get 192.0.0.1", Time::ZERO).status, 2);
}
