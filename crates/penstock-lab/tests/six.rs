//! IPv6 in experiments.

use penstock_lab::experiment::{self, Experiment};
use penstock_lab::run::{Options, Outcome, run};
use std::path::Path;

fn outcome(experiment: &Experiment) -> Outcome {
    let outcome = run(experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    outcome.unwrap_or_else(|faults| panic!("{}", faults[0]))
}
fn parse(text: &str) -> Experiment {
    experiment::parse(text, "x.toml").unwrap_or_else(|d| panic!("{}", d[0]))
}

#[test]
fn fragments_cross_a_narrow_path_and_a_router_that_tracks_them() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/ipv6-fragments.toml");
    let outcome = outcome(&experiment::load(&file).unwrap_or_else(|f| panic!("{}", f[0])));
    assert_eq!(outcome.record.expects.len(), 2);
    for expect in &outcome.record.expects {
        assert!(expect.ok, "{} {}: {:?}", expect.what, expect.value, expect.measured);
    }
    assert!(outcome.record.warnings.is_empty(), "{:?}", outcome.record.warnings);
    assert!(
        outcome.outputs.iter().any(|o| o.contains("From fd00:1::1 icmp_seq=1 Packet too big: mtu=1400\n"))
    );
    let flow = outcome.record.flows.iter().find(|f| f.name == "telemetry").unwrap();
    // Three of each datagram at its source, and two more where it is cut again.
    assert_eq!(flow.fragments, Some(500), "{flow:?}");
}

#[test]
fn the_example_s_expectations_are_met() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/dual-stack.toml");
    let outcome = outcome(&experiment::load(&file).unwrap_or_else(|f| panic!("{}", f[0])));
    assert_eq!(outcome.record.expects.len(), 4);
    for expect in &outcome.record.expects {
        assert!(expect.ok, "{} {}: {:?}", expect.what, expect.value, expect.measured);
    }
    assert!(outcome.record.warnings.is_empty(), "{:?}", outcome.record.warnings);
    assert!(outcome.outputs.iter().any(|o| o.starts_with("PING server(fd00:9::2) 56 data bytes\n")));
}

/// Two hosts with a router between them.
const LINE: &str = r#"
duration = "3s"
[host.a]
eth0 = ["10.0.1.2/24", "fd00:1::2/64"]
via = ["fd00:1::1", "10.0.1.1"]
[host.r]
eth0 = ["10.0.1.1/24", "fd00:1::1/64"]
eth1 = ["10.0.2.1/24", "fd00:2::1/64"]
setup = "sysctl -w net.ipv4.ip_forward=1 @FORWARD"
[host.b]
eth0 = ["10.0.2.2/24", "fd00:2::2/64"]
via = ["10.0.2.1", "fd00:2::1"]
[[link]]
ends = ["a:eth0", "r:eth0"]
[[link]]
ends = ["r:eth1", "b:eth0"]
rate = "10mbit"
"#;
const FORWARD: &str = "net.ipv6.conf.all.forwarding=1";

#[test]
fn a_flow_goes_over_ipv6_where_it_says_so() {
    let flow = |keys: &str| {
        format!(
            "[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = {{ size = 1000, gap = \"10ms\" }}\nudp = true\n{keys}\n"
        )
    };
    let text =
        LINE.replace("@FORWARD", FORWARD) + &flow("name = \"four\"") + &flow("name = \"six\"\nipv6 = true");
    let record = outcome(&parse(&text)).record;
    let bytes = |name: &str| {
        let flow = record.flows.iter().find(|f| f.name == name).unwrap();
        assert!(flow.received_packets > 290 && flow.lost_packets == 0, "{flow:?}");
        flow.sent_bytes.unwrap() / flow.sent_packets
    };
    assert_eq!((bytes("four"), bytes("six")), (1042, 1062));
    // Where there is no address of IPv4 it needs no word.
    let alone = text.replace("\"10.0.2.2/24\", ", "").replace("\"10.0.2.1\", \"fd00:2::1\"", "\"fd00:2::1\"");
    let record = outcome(&parse(&alone)).record;
    assert!(record.flows.iter().all(|f| f.sent_bytes == Some(1062 * f.sent_packets) && f.lost_packets == 0));
}

#[test]
fn what_cannot_work_over_ipv6_is_warned_of() {
    let app = "[[app]]\non = \"a\"\nrun = \"ping -6 -c 1 -W 1 b\"\n";
    for (forward, want) in
        [(FORWARD, ""), ("", "a ping cannot work: r does not forward: nothing gets through it to fd00:2::2")]
    {
        let record = outcome(&parse(&(LINE.replace("@FORWARD", forward) + app))).record;
        let said: Vec<&str> = record.warnings.iter().map(|w| w.message.as_str()).collect();
        assert_eq!(said.join("; "), want);
        assert!(
            record.warnings.iter().all(|w| w.came_true && w.help.contains("net.ipv6.conf.all.forwarding=1"))
        );
    }
}

/// Path MTU discovery (RFC 1191, RFC 8201): a router's word makes segments shorter, of both families and in both directions, and the transfer goes on.
#[test]
fn segments_become_as_short_as_the_path_wants() {
    let narrow = format!("{FORWARD}; sysctl -w net.ipv4.ip_forward=1; ip link set eth1 mtu 1400");
    for (six, from, to) in [(true, "a", "b"), (true, "b", "a"), (false, "a", "b")] {
        let flow = format!("[[flow]]\nfrom = \"{from}\"\nto = \"{to}\"\nload = \"greedy\"\nipv6 = {six}\n");
        let record = outcome(&parse(&(LINE.replace("@FORWARD", &narrow) + &flow))).record;
        assert!(record.warnings.is_empty(), "{:?}", record.warnings);
        let flow = &record.flows[0];
        assert!(flow.received_packets > 100, "{from} to {to}: {flow:?}");
        // A router that drops whole windows again and again would have learned nobody.
        let lost: u64 = record
            .drops
            .iter()
            .filter(|d| ["too-big", "frag-needed"].contains(&d.reason.as_str()))
            .map(|d| d.packets)
            .sum();
        assert_eq!(lost > 0, from == "a", "{from} to {to}: {lost}");
        assert!(lost < 50, "{from} to {to}: {lost}");
    }
}

#[test]
fn gateways_are_checked() {
    for (via, want) in [
        ("\"fd00:7::1\"", "via: a has no device in fd00:7::1's network"),
        ("\"fe80::1\"", "via: fe80::1 means something on one link only"),
        ("\"fd00\"", "via: \"fd00\" is not an IPv4 address"),
    ] {
        let text = LINE.replace("[\"fd00:1::1\", \"10.0.1.1\"]", via);
        assert_eq!(experiment::parse(&text, "x.toml").unwrap_err()[0].message, want);
    }
}

/// A bulk transfer crosses a router that masquerades IPv6.
#[test]
fn a_router_masquerades_ipv6() {
    let setup = format!("{FORWARD}; ip6tables -t nat -A POSTROUTING -o eth1 -j MASQUERADE");
    let flow = "[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\nipv6 = true\n";
    let outcome = outcome(&parse(&(LINE.replace("@FORWARD", &setup) + flow)));
    assert!(outcome.record.warnings.is_empty(), "{:?}", outcome.record.warnings);
    assert!(outcome.record.flows[0].received_packets > 100, "{:?}", outcome.record.flows[0]);
}

/// Datagrams are cut where they are made once their socket's machine knows of the narrow path, and connections to one destination learn it together.
#[test]
fn a_path_is_learned_once_for_all() {
    let narrow = format!("{FORWARD}; sysctl -w net.ipv4.ip_forward=1; ip link set eth1 mtu 1400");
    let greedy = |n: u32| format!("[[flow]]\nname = \"g{n}\"\nfrom = \"a\"\nto = \"b\"\nload = \"greedy\"\n");
    let steady =
        "[[flow]]\nname = \"u\"\nfrom = \"a\"\nto = \"b\"\nload = { rate = \"500kbit\", size = 1472 }\n";
    for flows in [steady.to_owned(), (0..8).map(greedy).collect()] {
        let record = outcome(&parse(&(LINE.replace("@FORWARD", &narrow) + &flows))).record;
        for flow in &record.flows {
            assert!(flow.received_packets > 20, "{flow:?}");
        }
        // Nothing is lost at home: what goes is as short as the path wants.
        let places: Vec<&str> = record.drops.iter().map(|d| d.reason.as_str()).collect();
        let at_home = record.drops.iter().filter(|d| d.place == "ip_output").count();
        assert_eq!(at_home, 0, "{places:?}");
    }
}
