//! VLANs, bridges, network namespaces and tunnels in experiments.

use penstock_lab::experiment::{self, Experiment};
use penstock_lab::run::{Options, Outcome, run};
use std::path::Path;

fn outcome(experiment: &Experiment) -> Outcome {
    let outcome = run(experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    outcome.unwrap_or_else(|faults| panic!("{}", faults[0]))
}

#[test]
fn the_examples_expectations_are_met() {
    for (name, expectations) in [
        ("vlans", 2),
        ("bridge", 3),
        ("bridge-vlans", 2),
        ("macvlan", 2),
        ("containers", 1),
        ("vpn-gateway", 2),
        ("vrf", 3),
        ("bond", 2),
        ("teql", 2),
        ("wireguard", 3),
    ] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/{name}.toml"));
        let outcome = outcome(&experiment::load(&file).unwrap_or_else(|f| panic!("{}", f[0])));
        assert_eq!(outcome.record.expects.len(), expectations);
        for expect in &outcome.record.expects {
            assert!(expect.ok, "{name}: {} {}: {:?}", expect.what, expect.value, expect.measured);
        }
        assert!(outcome.record.warnings.is_empty(), "{:?}", outcome.record.warnings);
    }
}

/// Two on a segment that a bridge hears: it sees each frame and sends none of them on, and a third behind it is reached.
#[test]
fn a_bridge_hears_a_segment() {
    let text = r#"
duration = "2s"
[host.a]
eth0 = "10.0.0.1/24"
[host.b]
eth0 = "10.0.0.2/24"
[host.sw]
eth0 = []
eth1 = []
setup = """
ip link add br0 type bridge
ip link set eth0 master br0
ip link set eth1 master br0
ip link set br0 up
"""
[host.c]
eth0 = "10.0.0.3/24"
[[link]]
ends = ["sw:eth0", "a:eth0", "b:eth0"]
rate = "10mbit"
[[link]]
ends = ["sw:eth1", "c:eth0"]
rate = "10mbit"
[[app]]
on = "a"
run = "ping -c 3 -i 0.2 10.0.0.2"
[[app]]
on = "a"
run = "ping -c 3 -i 0.2 10.0.0.3"
[[app]]
on = "sw"
run = "brctl showmacs br0"
at = "1.5s"
"#;
    let outcome = outcome(&experiment::parse(text, "x.toml").unwrap_or_else(|d| panic!("{}", d[0])));
    for ping in &outcome.outputs[..2] {
        assert!(ping.contains("3 packets transmitted, 3 received, 0% packet loss"), "{ping}");
    }
    let drops = &outcome.record.drops;
    assert!(drops.iter().all(|d| d.place == "bridge" && d.reason == "same-port"), "{drops:?}");
    assert!(!drops.is_empty());
}

/// A frame of 1000 bytes and its tag need the wire for 4 bytes more than one without.
#[test]
fn a_tag_takes_its_time_on_the_wire() {
    let ping = |tagged: bool| {
        let host = |name: &str, last: u32| match tagged {
            true => format!(
                "[host.{name}]\neth0 = []\nsetup = \"\"\"\nip link add link eth0 name v type vlan id 7\n\
                 ip addr add 10.0.0.{last}/24 dev v\nip link set v up\n\"\"\"\n"
            ),
            false => format!("[host.{name}]\neth0 = \"10.0.0.{last}/24\"\n"),
        };
        let text = format!(
            "duration = \"1s\"\n{}{}[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"1mbit\"\n\
             [[app]]\non = \"a\"\nrun = \"ping -c 3 -i 0.2 -s 958 10.0.0.2\"\n",
            host("a", 1),
            host("b", 2)
        );
        let outcome = outcome(&experiment::parse(&text, "x.toml").unwrap_or_else(|d| panic!("{}", d[0])));
        outcome.outputs[0].clone()
    };
    // 1000 bytes and 24 around them, 8192 us each way; with the tag 8224 us.
    assert!(ping(false).contains("rtt min/avg/max/mdev = 16.384/"), "{}", ping(false));
    assert!(ping(true).contains("rtt min/avg/max/mdev = 16.448/"), "{}", ping(true));
}

/// What cannot work is told across a bridge, too: nobody behind it has the address.
#[test]
fn a_wrong_address_behind_a_bridge_is_told() {
    let text = r#"
duration = "1s"
[host.a]
eth0 = "10.0.0.1/24"
[host.sw]
eth0 = []
eth1 = []
setup = """
ip link add br0 type bridge
ip link set eth0 master br0
ip link set eth1 master br0
ip addr add 10.0.0.9/24 dev br0
ip link set br0 up
"""
[host.c]
eth0 = "10.0.0.3/24"
[[link]]
ends = ["a:eth0", "sw:eth0"]
[[link]]
ends = ["sw:eth1", "c:eth0"]
[[app]]
on = "a"
run = "ping -c 1 10.0.0.X"
may_fail = false
"#;
    for (last, told) in [("3", 0), ("9", 0), ("4", 1)] {
        let text = text.replace('X', last);
        let outcome = outcome(&experiment::parse(&text, "x.toml").unwrap_or_else(|d| panic!("{}", d[0])));
        let warnings = &outcome.record.warnings;
        assert_eq!(warnings.len(), told, "{last}: {warnings:?}");
        assert!(
            warnings.iter().all(|w| format!("{w:?}").contains("has the address 10.0.0.4")),
            "{warnings:?}"
        );
    }
}

/// Sockets on the machine of a tunnel: its memory comes free with what carries its segments, whatever the device below; UDP counts too. The same with a
/// qdisc on the tunnel, and of VXLAN.
#[test]
fn transfers_go_through_tunnels_of_their_own_machine() {
    // 1,428, 1,420 and 1,398 bytes of each segment are the file's, of 1,538 on the wire, or of the 1,472 that the qdisc counts; the sender counts
    // what its buffer holds at the end, too, some 64 KB of 3 MB or more.
    for (kind, more, qdisc, least, most) in [
        ("ipip", 20, "", 9.2, 9.5),
        ("gre key 7", 28, "tc qdisc add dev t0 root tbf rate 5mbit burst 5k latency 50ms", 4.8, 4.95),
        ("vxlan id 7 dstport 4789", 50, "", 8.9, 9.3),
    ] {
        let host = |name: &str, own: u32, other: u32| {
            format!(
                "[host.{name}]\neth0 = \"192.0.2.{own}/24\"\nsetup = \"\"\"\n\
                 ip link add t0 type {kind} local 192.0.2.{own} remote 192.0.2.{other}\n\
                 ip link set t0 mtu {}\nip addr add 10.0.0.{own}/24 dev t0\nip link set t0 up\n{}\n\"\"\"\n",
                1500 - more,
                if own == 1 { qdisc } else { "" }
            )
        };
        let text = format!(
            "duration = \"6s\"\n{}{}[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\ndelay = \"2ms\"\n\
             [[app]]\non = \"b\"\nrun = \"iperf -s\"\n\
             [[app]]\non = \"a\"\nrun = \"iperf -c 10.0.0.2 -t 5\"\n\
             [[expect]]\nwhat = \"a iperf throughput\"\nvalue = \"{least}mbit..{most}mbit\"\n",
            host("a", 1, 2),
            host("b", 2, 1)
        );
        let outcome = outcome(&experiment::parse(&text, "x.toml").unwrap_or_else(|d| panic!("{}", d[0])));
        let expect = &outcome.record.expects[0];
        assert!(expect.ok, "{kind}: {} {:?}", expect.value, expect.measured);
        assert!(outcome.record.warnings.is_empty(), "{:?}", outcome.record.warnings);
    }
}
