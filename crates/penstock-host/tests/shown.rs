//! Addresses, rules, bridges and bonds as real Linux shows them after random commands (`vectors/stack/shown.jsonl`, made by `vectors/stack/shown.py`).

use penstock_host::Host;
use penstock_model::{Kernel, Time};
use serde_json::Value;

/// Without what the recorder's kernel was built without or is its own: numbers of devices, receive queues, br_netfilter's words, and how
/// much is left of timers.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let line = if digits > 0 && line[digits..].starts_with(": ") { &line[digits..] } else { line };
        out.push_str(line);
    }
    let strip = |text: String, name: &str, ends: &[char]| {
        let mut rest = text.as_str();
        let mut kept = String::new();
        while let Some(at) = rest.find(name) {
            kept.push_str(&rest[..at]);
            let behind = &rest[at + name.len()..];
            let value = behind.trim_start();
            let end = value.find(ends).unwrap_or(value.len());
            rest = value[end..].strip_prefix([' ', ',']).unwrap_or(&value[end..]);
        }
        kept.push_str(rest);
        kept
    };
    let words = ["numrxqueues ", "nf_call_iptables ", "nf_call_ip6tables ", "nf_call_arptables "];
    let timers = ["hello_timer ", "tcn_timer ", "topology_change_timer ", "gc_timer ", "hold_timer "];
    let timers = timers.into_iter().chain(["message_age_timer ", "forward_delay_timer "]);
    let out = words.into_iter().chain(timers).fold(out, |text, name| strip(text, name, &[' ', '\n']));
    let keys = ["\"num_rx_queues\":", "\"ifindex\":", "\"hello_timer\":", "\"tcn_timer\":", "\"gc_timer\":"];
    let more = ["\"topology_change_timer\":", "\"hold_timer\":", "\"message_age_timer\":"];
    let keys = keys.into_iter().chain(more).chain(["\"forward_delay_timer\":"]);
    let out = keys.fold(out, |text, name| strip(text, name, &[',', '}']));
    // No address is looked for twice here: `tentative` is gone at once, in the recorder's kernel a moment later.
    let out = out.replace("tentative ", "").replace("\"tentative\":true,", "");
    out.replace(",\"nf_call_iptables\":0,\"nf_call_ip6tables\":0,\"nf_call_arptables\":0", "")
}

/// Cases in which the two go apart, and why. The list may only shrink.
const APART: &[(&str, &[u64])] = &[
    ("what becomes of the routes of a peer of IPv6 that is changed", &[2, 8, 12, 20]),
    ("routes of IPv4 whose first address is that of a group, or has a peer", &[16, 26, 30, 40]),
    ("routes to a broadcast address that was given, when addresses go", &[9, 17, 19]),
    ("the source of a local route whose first address has gone", &[11, 23, 34]),
    ("the address of a bond whose last slave leaves, which Linux draws", &[229]),
];

fn play(case: &Value) -> Result<usize, String> {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    // It makes addresses of IPv6 of its own from the beginning.
    host.exec("ip link set lo down", Time::ZERO);
    host.exec("ip addr del 127.0.0.1/8 dev lo", Time::ZERO);
    host.look_for_routers(Time::ZERO);
    let steps = case["steps"].as_array().ok_or("no steps")?;
    for (n, step) in steps.iter().enumerate() {
        let line = step["run"].as_str().ok_or("no command")?;
        let done = host.exec(line, Time::from_ns(n as i64 * 1_000_000));
        let text = |name: &str| step[name].as_str().unwrap_or_default();
        // The text of usage is our own.
        let err = |text: &str| if text.starts_with("Usage: ") { "Usage".to_owned() } else { text.to_owned() };
        let ours = (plain(&done.stdout), err(&done.stderr), i64::from(done.status));
        let theirs = (plain(text("out")), err(text("err")), step["status"].as_i64().ok_or("no status")?);
        if ours != theirs {
            let before: Vec<&str> = steps[..n].iter().filter_map(|s| s["run"].as_str()).collect();
            let tail = before[before.len().saturating_sub(8)..].join("\n  ");
            return Err(format!("step {n}: {line}\nours {ours:#?}\ntheirs {theirs:#?}\nbehind:\n  {tail}"));
        }
    }
    Ok(steps.len())
}

#[test]
fn what_is_shown_is_what_linux_shows() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/stack/shown.jsonl");
    let text = std::fs::read_to_string(path).expect("the recorded cases");
    let wanted: Option<u64> = std::env::var("PENSTOCK_STACK").ok().and_then(|n| n.parse().ok());
    let (mut cases, mut steps, mut wrong) = (0, 0, Vec::new());
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("a case in JSON");
        if wanted.is_some_and(|seed| case["seed"] != seed) {
            continue;
        }
        cases += 1;
        let seed = case["seed"].as_u64().unwrap_or(0);
        let known = APART.iter().any(|(_, seeds)| seeds.contains(&seed));
        match play(&case) {
            Ok(_) if known => wrong.push(format!("seed {seed} is alike now: take it off the list")),
            Ok(n) => steps += n,
            Err(_) if known && wanted.is_none() => {}
            Err(why) => wrong.push(format!("seed {seed}: {why}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {cases}\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(wanted.is_some() || cases >= 120 && steps > 3500, "{cases} {steps}");
}
