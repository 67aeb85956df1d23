//! Super-packets of TCP in experiments: what queues, routers and counters make of them.

use penstock_lab::experiment;
use penstock_lab::run::{Options, Outcome, run};
use penstock_model::Diagnostic;

fn go(text: &str) -> Result<Outcome, Vec<Diagnostic>> {
    let read = experiment::parse(text, "offloads.toml")?;
    run(&read, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
}

/// Sender, router and receiver; `head` before the hosts, `setup` on the sender, `card` of the sender.
fn text(head: &str, setup: &[&str], card: &str, family: u8) -> String {
    let setup: Vec<String> = setup.iter().map(|line| format!("    {line:?},\n")).collect();
    let (a, r0, r1, b) = match family {
        4 => ("10.0.0.1/24", "10.0.0.254/24", "10.1.0.254/24", "10.1.0.1/24"),
        _ => ("fd00:0::1/64", "fd00:0::254/64", "fd00:1::254/64", "fd00:1::1/64"),
    };
    let [via_a, via_b] = [r0, r1].map(|address| address.split('/').next().unwrap());
    format!(
        r#"
duration = "4s"
{head}
[host.a]
eth0 = "{a}"
via = "{via_a}"
setup = [
{}]
[host.r]
eth0 = "{r0}"
eth1 = "{r1}"
setup = ["sysctl -w net.ipv4.ip_forward=1", "sysctl -w net.ipv6.conf.all.forwarding=1",
  "tc qdisc add dev eth1 root handle 1: htb default 10", "tc class add dev eth1 parent 1: classid 1:10 htb rate 30mbit", "tc qdisc add dev eth1 parent 1:10 fq_codel"]
[host.b]
eth0 = "{b}"
via = "{via_b}"
[[link]]
ends = [{{ end = "a:eth0"{card} }}, "r:eth0"]
rate = "100mbit"
delay = "1ms"
[[link]]
ends = ["r:eth1", "b:eth0"]
rate = "100mbit"
delay = "1ms"
[[flow]]
from = "a"
to = "b"
load = "greedy"
count = 3
"#,
        setup.concat()
    )
}
const SHAPED: [&str; 4] = [
    "tc qdisc add dev eth0 root handle 1: htb default 10",
    "tc class add dev eth0 parent 1: classid 1:1 htb rate 40mbit",
    "tc class add dev eth0 parent 1:1 classid 1:10 htb rate 10mbit ceil 40mbit",
    "tc qdisc add dev eth0 parent 1:10 fq_codel",
];

/// The largest packet that fq_codel has seen on the sender and on the router.
fn largest(outcome: &Outcome) -> (u32, u32) {
    let of = |host: &str, dev: &str| {
        let text = &outcome.tc.iter().find(|t| t.0 == host && t.1 == dev).unwrap().2;
        let found = text.split("maxpacket ").nth(1).unwrap_or_else(|| panic!("{text}"));
        found.split_whitespace().next().unwrap().parse().unwrap()
    };
    (of("a", "eth0"), of("r", "eth1"))
}
fn goodput(outcome: &Outcome) -> f64 {
    outcome.record.flows.iter().map(|f| f.goodput_bit_s).sum()
}

#[test]
fn queues_see_super_packets_and_the_wire_sees_frames() {
    for family in [4, 6] {
        let plain = go(&text("", &SHAPED, "", family)).unwrap_or_else(|d| panic!("{}", d[0]));
        assert_eq!(largest(&plain), (1514, 1514));
        let whole = go(&text("offloads = true", &SHAPED, "", family)).unwrap_or_else(|d| panic!("{}", d[0]));
        let (sender, router) = largest(&whole);
        assert!(sender > 2 * 1514 && router == 1514, "{sender} {router}");
        let (with, without) = (goodput(&whole), goodput(&plain));
        assert!((with / without - 1.0).abs() < 0.05, "{with} {without}");
    }
}

#[test]
fn devices_say_how_large_they_are() {
    let with = |head: &str, line: &str, card: &str| {
        let setup = [&[line], &SHAPED[..]].concat();
        largest(&go(&text(head, &setup, card, 4)).unwrap_or_else(|d| panic!("{}", d[0])))
    };
    assert!(with("", "ethtool -K eth0 tso on", "").0 > 3000);
    assert_eq!(with("offloads = true", "ip link set eth0 gso_max_segs 1", "").0, 1514);
    // Two segments, with the headers of both.
    assert_eq!(with("offloads = true", "ip link set eth0 gso_max_segs 2", "").0, 2 * 1514);
    let size = with("offloads = true", "ip link set eth0 gso_max_size 4000", "").0;
    let without = with("offloads = true", "true", "").0;
    assert!(1514 < size && size < without, "{size} {without}");
    // What is cut before the card is the same to the queue.
    assert!(with("offloads = true", "ethtool -K eth0 tso off gso off", "").0 > 3000);
    // A card that takes frames ahead.
    assert!(with("offloads = true", "true", ", ring = 32").0 > 3000);
}

#[test]
fn every_segment_is_accounted_for() {
    // Drops in the sender's queue, on the link and at the router.
    let head = "offloads = true\nseed = 3";
    let setup = [
        "tc qdisc add dev eth0 root handle 1: tbf rate 50mbit burst 5k limit 60k",
        "tc qdisc add dev eth0 parent 1: netem loss 1% duplicate 1%",
    ];
    for card in [", loss = \"0.5%\"", ", loss = \"0.5%\", ring = 8, tx_frames = 4"] {
        let outcome = go(&text(head, &setup, card, 4)).unwrap_or_else(|d| panic!("{}", d[0]));
        for flow in &outcome.record.flows {
            let found = flow.in_flight_packets.map(|n| n + flow.received_packets + flow.lost_packets);
            assert_eq!(flow.sent_packets, found.unwrap(), "{flow:?}");
            assert!(flow.lost_packets > 0 && flow.goodput_bit_s > 1e5, "{flow:?}");
        }
    }
}

#[test]
fn what_is_not_followed_is_said_before_the_run() {
    let refused = |of_a: &str, line: &str| match go(
        &text("", &[line], "", 4).replace("[host.a]\n", &format!("[host.a]\n{of_a}\n"))
    ) {
        Ok(_) => panic!("{line} was taken"),
        Err(found) => found[0].to_string(),
    };
    let gro = refused("", "ethtool -K eth0 gro on");
    assert!(gro.contains("frames are taken one by one as they come"), "{gro}");
    let old = refused("kernel = \"2.6.35\"", "ethtool -K eth0 tso on");
    assert!(old.contains("TCP of this kernel makes no super-packets here"), "{old}");
    let size = refused("", "ip link set eth0 gso_max_size 9000");
    assert!(size.contains("offloads = true"), "{size}");
}

/// A leaf that cuts super-packets and has room for none of their segments: those above count one drop for each packet, and all of it adds up.
#[test]
fn what_a_leaf_cuts_and_loses_is_counted_as_linux_does() {
    for parent in [
        ["tc qdisc add dev eth0 root handle 1: drr", "tc class add dev eth0 parent 1: classid 1:1 drr"],
        ["tc qdisc add dev eth0 root handle 1: prio", "true"],
        [
            "tc qdisc add dev eth0 root handle 1: htb",
            "tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit",
        ],
    ] {
        let leaf = [
            "tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 640kbit burst 1680 limit 400",
            "tc filter add dev eth0 parent 1: matchall flowid 1:1",
        ];
        let outcome = go(&text("offloads = true", &[parent, leaf].concat(), "", 4));
        let outcome = outcome.unwrap_or_else(|d| panic!("{parent:?}: {}", d[0]));
        assert!(outcome.record.flows.iter().any(|f| f.lost_packets > 0));
    }
}
