//! Bridges between four machines.

use crate::Host;
use crate::tests::{Net, echo, ip, set4, udp};
use penstock_model::{Kernel, Time};
use penstock_packet::{L3, L4, Skb};

/// Machines a, b and c, each on a port of a bridge on the fourth, which has 10.0.0.254 itself.
fn net(kernel: Kernel, lines: &[&str]) -> Net {
    let host = |name: &str, cards: usize| {
        let mut host = Host::new(name, kernel, 1);
        for n in 0..cards {
            host.add_device(&format!("eth{n}"));
        }
        host
    };
    let mut hosts: Vec<Host> = ["a", "b", "c"].map(|name| host(name, 1)).into();
    hosts.push(host("sw", 3));
    let set_up = [
        "ip link add br0 type bridge forward_delay 0",
        "ip link set eth0 master br0",
        "ip link set eth1 master br0",
        "ip link set eth2 master br0",
        "ip addr add 10.0.0.254/24 dev br0",
        "ip link set br0 up",
    ];
    let mut net = Net::new(hosts, vec![((0, 2), (3, 2)), ((1, 2), (3, 3)), ((2, 2), (3, 4))]);
    for n in 0..3 {
        run(&mut net, n, &format!("ip addr add 10.0.0.{}/24 dev eth0", n + 1));
    }
    for line in set_up.iter().chain(lines) {
        run(&mut net, 3, line);
    }
    net
}
fn run(net: &mut Net, host: usize, line: &str) -> String {
    let now = net.now;
    let said = net.hosts[host].exec(line, now);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{line}");
    said.stdout
}
fn wait(net: &mut Net, ms: i64) {
    net.run(Time::from_ns(net.now.as_ns() + ms * 1_000_000));
}
/// An echo from 10.0.0.1 to this address has an answer.
fn answered(net: &mut Net, to: &str) -> bool {
    net.delivered.clear();
    let mut request = echo(to);
    set4(&mut request, |h| h.src = ip("10.0.0.1"));
    let _ = net.send(0, request);
    wait(net, 900);
    let reply = |p: &Skb| matches!(p.l4, L4::Icmp(i) if i.ty == crate::icmp::ECHO_REPLY);
    net.delivered.iter().filter(|(host, p)| *host == 0 && reply(p)).count() == 1
}
/// Frames of IPv4 that crossed a wire since, by their sender.
fn senders(net: &mut Net) -> Vec<usize> {
    let all = std::mem::take(&mut net.frames);
    all.into_iter().filter(|(_, _, f)| matches!(f.l3, L3::Ipv4(_))).map(|f| f.1).collect()
}

#[test]
fn a_frame_goes_where_its_address_was_heard() {
    for kernel in Kernel::ALL {
        let mut net = net(kernel, &[]);
        assert!(answered(&mut net, "10.0.0.2"), "{kernel} {:?}", net.dropped);
        // Request and answer, each over two wires: nothing comes to c but the question who has it.
        assert_eq!(senders(&mut net), [0, 3, 1, 3], "{kernel}");
        let macs = run(&mut net, 3, "brctl showmacs br0");
        let mut numbers: Vec<String> = macs
            .lines()
            .skip(1)
            .map(|l| l.split('\t').next().unwrap().trim().to_owned() + l.split('\t').nth(2).unwrap())
            .collect();
        numbers.sort();
        assert_eq!(numbers, ["1no", "1yes", "2no", "2yes", "3yes"], "{kernel} {macs}");
        assert_eq!(net.hosts[3].unsimulated_devices(), [""; 0]);
    }
}

#[test]
fn the_bridge_itself_is_a_station() {
    let mut net = net(Kernel::V6_12, &[]);
    assert!(answered(&mut net, "10.0.0.254"), "{:?}", net.dropped);
    let counters = net.hosts[3].devices().iter().find(|d| d.name == "br0").unwrap().counters;
    // ARP and the echo both ways: received without the Ethernet header, sent with it.
    assert_eq!((counters.rx_packets, counters.rx_bytes), (2, 28 + 84));
    assert_eq!((counters.tx_packets, counters.tx_bytes), (2, 42 + 98));
    // Its address is that of its least port, and frames for the others' come up to it and no further.
    let mac = |net: &Net, dev: u32| net.hosts[3].devices()[dev].mac;
    let (br, other) = (mac(&net, 5), (2..5).map(|n| mac(&net, n)).max().unwrap());
    assert_eq!(br, (2..5).map(|n| mac(&net, n)).min().unwrap());
    for (to, reason) in [(br, None), (other, Some((3, "netif", "other-host")))] {
        net.dropped.clear();
        net.delivered.clear();
        let from = (2..5).find(|&n| mac(&net, n) != to).unwrap();
        let frame = Skb { eth: ([2, 9, 9, 9, 9, 9], to), ..udp("10.0.0.9", "10.0.0.254", 100) };
        net.receive(3, from, frame);
        assert_eq!(net.dropped.first().copied(), reason);
        assert_eq!(net.delivered.len(), usize::from(reason.is_none()));
    }
}

#[test]
fn an_unknown_address_goes_to_all_and_one_that_has_aged_again() {
    let mut net = net(Kernel::V6_12, &["brctl setageing br0 0.5"]);
    assert!(answered(&mut net, "10.0.0.2"));
    senders(&mut net);
    let mut frame = udp("10.0.0.1", "10.0.0.2", 100);
    let mac = |net: &Net, host: usize| net.hosts[host].devices()[2].mac;
    frame.eth = (mac(&net, 0), mac(&net, 1));
    // Nearly a second later b is forgotten: all but the port it came in by get it, and c has no use for it.
    net.receive(3, 2, frame.clone());
    assert_eq!(senders(&mut net), [3, 3]);
    assert_eq!(net.dropped, [(2, "netif", "other-host")]);
    run(&mut net, 3, "ip link set eth2 type bridge_slave flood off");
    net.receive(3, 2, frame.clone());
    assert_eq!(senders(&mut net), [3]);
    // An answer teaches it again.
    frame.eth = (mac(&net, 1), mac(&net, 0));
    net.receive(3, 3, frame.clone());
    assert_eq!(senders(&mut net), [3]);
    // Both behind one port: the bridge has nothing to do.
    net.dropped.clear();
    frame.eth.0 = [2, 9, 9, 9, 9, 9];
    net.receive(3, 2, frame);
    assert_eq!((senders(&mut net).len(), net.dropped.as_slice()), (0, &[(3, "bridge", "same-port")][..]));
}

#[test]
fn a_port_that_is_down_isolated_or_gone_has_no_part() {
    let reached = |lines: &[&str]| {
        let mut net = net(Kernel::V6_12, lines);
        ["10.0.0.2", "10.0.0.3", "10.0.0.254"].map(|to| answered(&mut net, to))
    };
    assert_eq!(reached(&["ip link set eth1 down"]), [false, true, true]);
    assert_eq!(reached(&["ip link set eth1 nomaster"]), [false, true, true]);
    assert_eq!(reached(&["ip link set br0 down"]), [false; 3]);
    let isolated =
        ["ip link set eth0 type bridge_slave isolated on", "ip link set eth1 type bridge_slave isolated on"];
    assert_eq!(reached(&isolated), [false, true, true]);
    assert_eq!(reached(&["brctl delif br0 eth0"]), [false; 3]);
    // What is learned behind a port goes with it.
    let mut net = net(Kernel::V6_12, &[]);
    assert!(answered(&mut net, "10.0.0.2"));
    run(&mut net, 3, "ip link set eth1 down");
    let macs = run(&mut net, 3, "brctl showmacs br0");
    assert_eq!(macs.matches("no").count() - 1, 1, "{macs}");
}

/// Linux 2.6.35 learns for the forward delay even without a spanning tree.
#[test]
fn an_old_kernel_waits_for_its_forward_delay() {
    let mut old = net(Kernel::V2_6_35, &["brctl setfd br0 15", "ip link set br0 down", "ip link set br0 up"]);
    assert!(!answered(&mut old, "10.0.0.2"));
    assert!(old.dropped.contains(&(3, "bridge", "port-learning")), "{:?}", old.dropped);
    wait(&mut old, 15_000);
    assert!(answered(&mut old, "10.0.0.2"), "{:?}", old.dropped);
}

#[test]
fn qdiscs_filters_and_vlans_of_ports_and_of_the_bridge_do_their_part() {
    let mut net = net(
        Kernel::V6_12,
        &[
            "tc qdisc add dev eth1 root tbf rate 80kbit burst 1600 limit 3100",
            "tc qdisc add dev eth0 clsact",
            "tc filter add dev eth0 ingress matchall action pass",
            "tc qdisc add dev br0 root handle 1: prio",
            "ip link add link br0 name br0.7 type vlan id 7",
            "ip addr add 10.7.0.254/24 dev br0.7",
            "ip link set br0.7 up",
        ],
    );
    assert!(answered(&mut net, "10.0.0.2") && answered(&mut net, "10.0.0.254"));
    let shown = run(&mut net, 3, "tc -s filter show dev eth0 ingress");
    // A question and an echo to each.
    assert!(shown.contains(" 4 pkt"), "{shown}");
    let shown = run(&mut net, 3, "tc -s qdisc show dev br0");
    assert!(shown.contains("Sent 140 bytes 2 pkt"), "{shown}");
    // The port's shaper lets one of six go at once, has room for three and loses two.
    let arrived = |net: &Net| net.delivered.iter().filter(|d| d.0 == 1).count();
    net.delivered.clear();
    net.dropped.clear();
    for _ in 0..6 {
        net.send(0, udp("10.0.0.1", "10.0.0.2", 1000)).unwrap();
    }
    assert_eq!((arrived(&net), net.dropped.len()), (1, 2), "{:?}", net.dropped);
    // A VLAN over the bridge, from a station of that VLAN.
    run(&mut net, 0, "ip link add link eth0 name v7 type vlan id 7");
    run(&mut net, 0, "ip addr add 10.7.0.1/24 dev v7");
    run(&mut net, 0, "ip link set v7 up");
    wait(&mut net, 1000);
    net.delivered.clear();
    net.send(0, echo("10.7.0.254")).unwrap();
    wait(&mut net, 100);
    // What the shaper still held comes too, to b.
    assert_eq!(net.delivered.iter().filter(|d| d.0 == 0).count(), 1, "{:?}", net.dropped);
}

#[test]
fn a_vlan_may_be_a_port() {
    let lines = [
        "ip link set eth1 nomaster",
        "ip link add link eth1 name e1.5 type vlan id 5",
        "ip link set e1.5 master br0 up",
    ];
    let mut net = net(Kernel::V6_12, &lines);
    for line in [
        "ip link add link eth0 name v5 type vlan id 5",
        "ip addr flush dev eth0",
        "ip addr add 10.0.0.2/24 dev v5",
        "ip link set v5 up",
    ] {
        run(&mut net, 1, line);
    }
    assert!(answered(&mut net, "10.0.0.2"), "{:?}", net.dropped);
}

#[test]
fn what_a_bridge_does_not_do_is_told() {
    let told = |lines: &[&str]| net(Kernel::V6_12, lines).hosts[3].unsimulated_devices();
    for line in [
        "brctl stp br0 on",
        "ip link set br0 type bridge vlan_filtering 1",
        "ip link set eth0 type bridge_slave locked on",
    ] {
        let said = told(&[line]);
        assert!(said.len() == 1 && said[0].contains("frames do not meet it yet"), "{line}: {said:?}");
    }
    assert_eq!(told(&["brctl stp br0 on", "brctl stp br0 off", "modprobe br_netfilter"]), [""; 0]);
    let said = told(&["modprobe br_netfilter", "iptables -A FORWARD -j DROP"]);
    assert!(said.len() == 1 && said[0].contains("br_netfilter"), "{said:?}");
    let mut net = net(Kernel::V6_12, &[]);
    for (line, exit, text) in [
        ("ip link set br0 type bridge colour 1", 255, "bridge: unknown option \"colour\"?\n"),
        (
            "ip link set eth0 type bridge_slave isolated 2",
            255,
            "Error: argument of \"isolated\" must be \"on\" or \"off\", not \"2\"\n",
        ),
        ("brctl setageing br0 x", 1, "bad time value\n"),
    ] {
        let now = net.now;
        let said = net.hosts[3].exec(line, now);
        assert_eq!((said.status, said.stderr.as_str()), (exit, text), "{line}");
    }
}

/// Its MTU follows the least of its ports until a command says another.
#[test]
fn its_mtu_is_that_of_its_least_port() {
    let mut net = net(Kernel::V6_12, &["ip link set eth1 mtu 1400"]);
    let mtu = |net: &Net| net.hosts[3].devices().iter().find(|d| d.name == "br0").unwrap().mtu;
    assert_eq!(mtu(&net), 1400);
    run(&mut net, 3, "ip link set eth1 nomaster");
    assert_eq!(mtu(&net), 1500);
    run(&mut net, 3, "ip link set br0 mtu 1200");
    run(&mut net, 3, "ip link set eth0 mtu 1100");
    assert_eq!(mtu(&net), 1200);
}
