//! What `nstat` shows in the simulator beside what Linux 6.12 shows of the same experiments on the virtual ground (`vectors/stack/counters.jsonl`).
//!
//! Left out: what reports of listeners of IPv6 count (MLD), which the simulator does not send, and joined SACKs, which it does not count.

use penstock_lab::experiment;
use penstock_lab::run::{Options, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Experiments in which some counters are a few apart, as a retransmission more or less moves all that follow: by how much at most, parts in a hundred.
const CLOSE: [(&str, u64); 2] = [("queue", 5), ("outage", 5)];
/// Not counted here: what one ACK reports more is joined to what was reported before.
const UNCOUNTED: [&str; 3] = ["TcpExtTCPSackMerged", "TcpExtTCPSackShifted", "TcpExtTCPSackShiftFallback"];

/// Whether reports of listeners are among what it counts.
fn has_reports(name: &str) -> bool {
    let messages = name.starts_with("Icmp6") && !name.contains("MLDv2") && !name.ends_with("Type143");
    name.starts_with("Ip6") || name.starts_with("Icmp6") && (!messages || name == "Icmp6OutMsgs")
}

fn shown(text: &str) -> BTreeMap<String, u64> {
    let rows = text.lines().filter(|l| !l.starts_with('#'));
    rows.filter_map(|l| {
        let mut words = l.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
    })
    .collect()
}

#[test]
fn nstat_shows_what_linux_shows() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/stack/counters.jsonl");
    let text = std::fs::read_to_string(file).unwrap();
    let (mut compared, mut apart) = (0, Vec::new());
    for case in text.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()) {
        let name = case["name"].as_str().unwrap();
        let parsed = experiment::parse(case["file"].as_str().unwrap(), "x.toml").unwrap();
        let options = &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} };
        let outputs = run(&parsed, options).unwrap().outputs;
        let hosts: Vec<&str> =
            if outputs.len() > 2 && name != "outage" { vec!["a", "r", "b"] } else { vec!["a", "b"] };
        let close = CLOSE.iter().find(|c| c.0 == name).map_or(0, |c| c.1);
        for (host, ours) in hosts.iter().zip(&outputs[outputs.len() - hosts.len()..]) {
            let linux: BTreeMap<String, u64> =
                serde_json::from_value(case["counters"][host].clone()).unwrap();
            let ours = shown(ours);
            let names = linux.keys().chain(ours.keys()).collect::<std::collections::BTreeSet<_>>();
            for counter in names.into_iter().filter(|n| !has_reports(n) && !UNCOUNTED.contains(&n.as_str())) {
                let of = |all: &BTreeMap<String, u64>| all.get(counter).copied().unwrap_or(0);
                let (theirs, ours) = (of(&linux), of(&ours));
                compared += 1;
                if theirs.abs_diff(ours) * 100 > close * theirs.max(40) {
                    apart.push(format!("{name} {host}: {counter} is {ours} here, {theirs} on Linux"));
                }
            }
        }
    }
    assert!(apart.is_empty(), "{}", apart.join("\n"));
    assert!(compared > 600, "{compared}");
}

/// What netem has turned a bit over in is another packet, and its socket has done with the one that was (`skb_unshare`): whichever header was struck, nothing
/// is taken for still waiting in the host.
#[test]
fn what_netem_has_struck_owes_its_socket_nothing() {
    let file = "duration = \"4s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\nsetup = [\"tc qdisc add dev eth0 root netem corrupt 2%\"]\n\
         [host.b]\neth0 = \"10.0.0.2/24\"\n[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\ndelay = \"5ms\"\n\
         [[flow]]\nfrom = \"a\"\nto = \"b\"\ncount = 2\nload = \"greedy\"\n[[app]]\non = \"a\"\nrun = \"nstat -az TcpExt*\"\nat = \"3900ms\"\n";
    let parsed = experiment::parse(file, "x.toml").unwrap();
    for seed in 1..=8 {
        let options = &mut Options { seed: Some(seed), progress: &mut |_| {}, warn: &mut |_| {} };
        let counters = shown(&run(&parsed, options).unwrap().outputs[0]);
        assert!(counters["TcpExtTCPFastRetrans"] > 10, "{seed}: {counters:?}");
        assert_eq!(counters["TcpExtTCPSpuriousRtxHostQueues"], 0, "{seed}");
    }
}
