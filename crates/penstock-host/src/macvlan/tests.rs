//! Macvlans of one namespace, over a card at a wire.

use super::*;
use crate::tests::{Net, echo, ip, set4};
use penstock_model::Kernel;
use penstock_packet::{L3, L4, Skb};

/// Two machines on a wire; the second has macvlans as these lines say.
fn net(lines: &[&str]) -> Net {
    let host = |name: &str| {
        let mut host = Host::new(name, Kernel::V6_12, 1);
        host.add_device("eth0");
        host
    };
    let mut net = Net::new(vec![host("a"), host("b")], vec![((0, 2), (1, 2))]);
    run(&mut net, 0, "ip addr add 10.0.0.1/24 dev eth0");
    for line in lines {
        run(&mut net, 1, line);
    }
    net
}
fn run(net: &mut Net, host: usize, line: &str) -> String {
    let now = net.now;
    let said = net.hosts[host].exec(line, now);
    assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{line}");
    said.stdout
}
/// An echo from a to this address has an answer.
fn answered(net: &mut Net, to: &str) -> bool {
    net.delivered.clear();
    let mut request = echo(to);
    set4(&mut request, |h| h.src = ip("10.0.0.1"));
    let _ = net.send(0, request);
    net.run(Time::from_ns(net.now.as_ns() + 900_000_000));
    let reply = |p: &Skb| matches!(p.l4, L4::Icmp(i) if i.ty == crate::icmp::ECHO_REPLY);
    net.delivered.iter().filter(|(host, p)| *host == 0 && reply(p)).count() == 1
}
const MAC0: [&str; 3] = [
    "ip link add mac0 link eth0 address 02:00:00:00:00:05 type macvlan mode bridge",
    "ip addr add 10.0.0.5/24 dev mac0",
    "ip link set mac0 up",
];

#[test]
fn a_macvlan_is_a_station_of_its_own() {
    // Without this the device below answers for its addresses too, as it does on Linux.
    let mut net = net(&[MAC0[0], MAC0[1], MAC0[2], "sysctl -w net.ipv4.conf.all.arp_ignore=1"]);
    assert!(answered(&mut net, "10.0.0.5"), "{:?}", net.dropped);
    // ARP and the echo both ways, with its own address; the device below counts them too.
    let from: Vec<_> = net.frames.iter().filter(|f| f.1 == 1).map(|f| f.2.eth.0).collect();
    assert_eq!(from, [[2, 0, 0, 0, 0, 5]; 2]);
    let of = |net: &Net, dev: &str| {
        let host = &net.hosts[1];
        let c = host.counters(host.device(host.ifindex(dev).unwrap()).unwrap());
        (c.rx_packets, c.rx_bytes, c.tx_packets, c.tx_bytes)
    };
    assert_eq!((of(&net, "mac0"), of(&net, "eth0")), ((2, 140, 2, 140), (2, 140, 2, 140)));
    assert_eq!(net.hosts[1].unsimulated_devices(), [""; 0]);
    // What the device below refuses is not sent.
    run(&mut net, 1, "tc qdisc add dev eth0 root bfifo limit 10");
    assert!(!answered(&mut net, "10.0.0.5"));
    let host = &net.hosts[1];
    let counters = host.counters(host.device(host.ifindex("mac0").unwrap()).unwrap());
    assert_eq!((counters.tx_packets, counters.tx_dropped), (2, 1));
    run(&mut net, 1, "tc qdisc del dev eth0 root");
    assert!(answered(&mut net, "10.0.0.5"));
    run(&mut net, 1, "ip link set mac0 down");
    net.dropped.clear();
    assert!(!answered(&mut net, "10.0.0.5"));
    assert!(net.dropped.iter().any(|d| d.2 == "other-host"), "{:?}", net.dropped);
}

#[test]
fn the_device_below_and_a_macvlan_do_not_meet() {
    let lines = [MAC0[0], MAC0[1], MAC0[2], "ip addr add 10.0.0.2/24 dev eth0"];
    let mut net = net(&lines);
    assert!(answered(&mut net, "10.0.0.5") && answered(&mut net, "10.0.0.2"));
    // From the one to the other by their devices: it goes out, and nobody sends it back.
    let (mac0, eth0) = ([2, 0, 0, 0, 0, 5], net.hosts[1].devices()[2].mac);
    net.frames.clear();
    for (dev, from, to) in [("mac0", mac0, eth0), ("eth0", eth0, mac0)] {
        let ifindex = net.hosts[1].ifindex(dev).unwrap();
        let frame = Skb { eth: (from, to), ..crate::tests::udp("10.0.0.2", "10.0.0.5", 10) };
        net.delivered.clear();
        net.comes_to(1, ifindex, frame);
        assert!(net.delivered.is_empty() && net.frames.len() == 1, "{dev}");
        net.frames.clear();
    }
}

#[test]
fn modes_say_who_meets_whom() {
    // Frames of one macvlan to another's address: over the wire, or at once.
    let sent = |mode: &str| {
        let add = |n: u32| {
            format!("ip link add mac{n} link eth0 address 02:00:00:00:00:0{n} type macvlan mode {mode}")
        };
        let (one, two) = (add(1), add(2));
        let mut net = net(&[&one, &two, "ip link set mac1 up", "ip link set mac2 up"]);
        let at = net.hosts[1].ifindex("mac1").unwrap();
        let rx =
            |net: &Net| net.hosts[1].devices().iter().find(|d| d.name == "mac2").unwrap().counters.rx_packets;
        let mut seen = Vec::new();
        for to in [[2, 0, 0, 0, 0, 2], [0xff; 6]] {
            let before = rx(&net);
            let frame =
                Skb { eth: ([2, 0, 0, 0, 0, 1], to), ..crate::tests::udp("10.9.0.1", "10.9.0.2", 10) };
            net.comes_to(1, at, frame.clone());
            let out = std::mem::take(&mut net.frames).len();
            // The switch sends it back.
            net.receive(1, 2, frame);
            seen.push((out, rx(&net) - before));
        }
        seen
    };
    // To one: out by the wire, or not; what the other has received at once or from the switch.
    assert_eq!(sent("private"), [(1, 1), (1, 0)]);
    assert_eq!(sent("vepa"), [(1, 1), (1, 1)]);
    assert_eq!(sent("bridge"), [(0, 2), (1, 1)]);
}

#[test]
fn commands_say_what_those_of_linux_say() {
    let mut net = net(&[
        "ip link add d0 type dummy",
        "ip link set d0 mtu 1400",
        "ip link add d1 type dummy",
        "ip link add br0 type bridge",
    ]);
    let invalid = "RTNETLINK answers: Invalid argument\n";
    let busy = "RTNETLINK answers: Device or resource busy\n";
    let in_use = "RTNETLINK answers: Address already in use\n";
    for (line, status, text) in [
        ("ip link add mac0 type macvlan", 2, invalid),
        ("ip link add mac0 link nope type macvlan", 1, "Cannot find device \"nope\"\n"),
        ("ip link add mac0 link lo type macvlan", 2, invalid),
        ("ip link add mac0 link d0 mtu 1500 type macvlan", 2, invalid),
        ("ip link add mac0 link d0 type macvlan", 0, ""),
        ("ip link add mac2 link mac0 address 02:00:00:00:00:09 type macvlan mode private", 0, ""),
        ("ip link add mac3 link d0 address 02:00:00:00:00:09 type macvlan mode private", 0, ""),
        ("ip link add mac4 link d0 type macvlan mode passthru", 2, invalid),
        ("ip link add mac5 link d1 type macvlan mode passthru", 0, ""),
        ("ip link add mac6 link d1 type macvlan mode bridge", 2, invalid),
        ("ip link set mac2 up", 0, ""),
        ("ip link set mac3 up", 2, in_use),
        ("ip link set mac0 up", 0, ""),
        ("ip link set mac0 address 02:00:00:00:00:09", 2, in_use),
        ("ip link set mac0 mtu 1500", 2, invalid),
        ("ip link set mac0 mtu 1300", 0, ""),
        ("ip link set mac0 type macvlan mode bridge", 0, ""),
        ("ip link set mac0 type macvlan mode passthru", 2, invalid),
        ("ip link set mac5 type macvlan mode bridge", 2, invalid),
        ("ip link set mac5 address 02:00:00:00:00:55", 0, ""),
        ("ip link set d0 master br0", 2, busy),
        ("ip link set mac0 master br0", 0, ""),
    ] {
        let now = net.now;
        let said = net.hosts[1].exec(line, now);
        assert_eq!((said.status, said.stderr.as_str()), (status, text), "{line}");
    }
    run(&mut net, 1, "ip link set d0 mtu 1200");
    let of = |net: &Net, dev: &str| {
        let d = net.hosts[1].devices().iter().find(|d| d.name == dev).unwrap();
        (d.mac, d.mtu, d.lower.map(|l| l.ifindex))
    };
    let d0 = net.hosts[1].ifindex("d0");
    assert_eq!((of(&net, "mac0").1, of(&net, "mac2").1, of(&net, "mac2").2), (1200, 1200, d0));
    assert_eq!((of(&net, "mac5").0, of(&net, "d1").0), ([2, 0, 0, 0, 0, 0x55], [2, 0, 0, 0, 0, 0x55]));
    let shown = run(&mut net, 1, "ip -d link show mac0");
    assert!(
        shown.contains("mac0@d0: <") && shown.contains("    macvlan mode bridge bcqueuelen 1000 "),
        "{shown}"
    );
    // With the device below its macvlans go.
    run(&mut net, 1, "ip link del d0");
    assert!(net.hosts[1].ifindex("mac0").is_none() && net.hosts[1].ifindex("mac5").is_some());
    // What is not here is told.
    run(&mut net, 1, "ip link add mac7 link eth0 type macvlan mode source");
    assert_eq!(net.hosts[1].unsimulated_devices(), [""; 0]);
    run(&mut net, 1, "ip link set mac7 up");
    let told = net.hosts[1].unsimulated_devices();
    assert!(told.len() == 1 && told[0].contains("mac7: a macvlan with \"mode source\""), "{told:?}");
}

/// A macvlan over a bridge makes that one promiscuous, so that frames for it come up.
#[test]
fn over_a_bridge_and_over_a_vlan() {
    let lines = [
        "ip link add br0 type bridge",
        "ip link set eth0 master br0",
        "ip link set br0 up",
        "ip link add mac0 link br0 address 02:00:00:00:00:05 type macvlan mode bridge",
        "ip addr add 10.0.0.5/24 dev mac0",
        "ip link set mac0 up",
    ];
    let mut over = net(&lines);
    assert!(answered(&mut over, "10.0.0.5"), "{:?}", over.dropped);
    run(&mut over, 1, "ip link del mac0");
    assert!(!answered(&mut over, "10.0.0.5"));
    let lines = [
        "ip link add link eth0 name eth0.7 type vlan id 7",
        "ip link set eth0.7 up",
        "ip link add mac0 link eth0.7 address 02:00:00:00:00:05 type macvlan",
        "ip addr add 10.7.0.5/24 dev mac0",
        "ip link set mac0 up",
    ];
    let mut over = net(&lines);
    for line in [
        "ip link add link eth0 name v7 type vlan id 7",
        "ip addr add 10.7.0.1/24 dev v7",
        "ip link set v7 up",
    ] {
        run(&mut over, 0, line);
    }
    net_echo(&mut over, "10.7.0.1", "10.7.0.5");
}
fn net_echo(net: &mut Net, from: &str, to: &str) {
    let mut request = echo(to);
    set4(&mut request, |h| h.src = ip(from));
    net.delivered.clear();
    net.send(0, request).unwrap();
    net.run(Time::from_ns(net.now.as_ns() + 900_000_000));
    assert_eq!(
        net.delivered.iter().filter(|d| d.0 == 0 && matches!(d.1.l3, L3::Ipv4(_))).count(),
        1,
        "{:?}",
        net.dropped
    );
}
