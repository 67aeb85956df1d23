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
        // Today's has an entry for each VLAN of a port beside that without one.
        let mut want = vec!["1no", "1yes", "2no", "2yes", "3yes"];
        if kernel != Kernel::V2_6_35 {
            want = vec!["1no", "1yes", "1yes", "2no", "2yes", "2yes", "3yes", "3yes"];
        }
        assert_eq!(numbers, want, "{kernel} {macs}");
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
    for line in
        ["ip link set br0 type bridge mcast_querier 1", "ip link set eth0 type bridge_slave locked on"]
    {
        let said = told(&[line]);
        assert!(said.len() == 1 && said[0].contains("frames do not meet it yet"), "{line}: {said:?}");
    }
    assert_eq!(told(&["brctl stp br0 on", "modprobe br_netfilter"]), [""; 0]);
    let old = net(Kernel::V2_6_35, &["brctl stp br0 on"]);
    assert!(old.hosts[3].unsimulated_devices()[0].contains("stp_state 1"));
    let mut net = net(Kernel::V6_12, &[]);
    for (line, exit, text) in [
        ("ip link set br0 type bridge colour 1", 255, "bridge: unknown option \"colour\"?\n"),
        (
            "ip link set eth0 type bridge_slave isolated 2",
            255,
            "Error: argument of \"isolated\" must be \"on\" or \"off\", not \"2\"\n",
        ),
        ("brctl setageing br0 x", 1, "bad time value\n"),
        ("brctl sethello br0 11", 1, "set hello timer failed: Numerical result out of range\n"),
        ("brctl setportprio br0 eth0 64", 1, "set port priority failed: Numerical result out of range\n"),
        ("ip link set br0 type bridge max_age 500", 2, "RTNETLINK answers: Numerical result out of range\n"),
        ("bridge link set dev eth0 state 5", 255, "RTNETLINK answers: Invalid argument\n"),
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

/// Commands on each of the three stations for a VLAN of theirs.
fn station(net: &mut Net, host: usize, vid: u16) {
    for line in [
        format!("ip link add link eth0 name v{vid} type vlan id {vid}"),
        format!("ip addr add 10.{vid}.0.{}/24 dev v{vid}", host + 1),
        format!("ip link set v{vid} up"),
    ] {
        run(net, host, &line);
    }
}
/// An echo from station a's address in a network to this one has an answer.
fn answered_in(net: &mut Net, from: &str, to: &str) -> bool {
    net.delivered.clear();
    let mut request = echo(to);
    set4(&mut request, |h| h.src = ip(from));
    let _ = net.send(0, request);
    wait(net, 900);
    let reply = |p: &Skb| matches!(p.l4, L4::Icmp(i) if i.ty == crate::icmp::ECHO_REPLY);
    net.delivered.iter().any(|(host, p)| *host == 0 && reply(p))
}
const FILTERING: &str = "ip link set br0 type bridge vlan_filtering 1";

#[test]
fn ports_of_one_pvid_are_one_network() {
    let mut net = net(
        Kernel::V6_12,
        &[FILTERING, "bridge vlan add dev eth2 vid 20 pvid untagged", "bridge vlan del dev eth2 vid 1"],
    );
    let reached = ["10.0.0.2", "10.0.0.3", "10.0.0.254"].map(|to| answered(&mut net, to));
    assert_eq!(reached, [true, false, true], "{:?}", net.dropped);
    // The frames carry no tag on any wire, and the table knows them by VLAN.
    assert!(net.frames.iter().all(|(_, _, f)| f.rare().vlan.is_none()));
    let heard = run(&mut net, 3, "bridge fdb show dynamic");
    let lines: Vec<&str> = heard.lines().collect();
    assert!(lines.iter().any(|l| l.contains("dev eth0 vlan 1 master br0")), "{heard}");
    assert!(!heard.contains("vlan 20"), "{heard}");
    // The bridge itself in VLAN 20 too: c reaches a device of that VLAN on top of it.
    for line in [
        "bridge vlan add dev br0 vid 20 self",
        "ip link add link br0 name br0.20 type vlan id 20",
        "ip addr add 10.20.0.254/24 dev br0.20",
        "ip link set br0.20 up",
    ] {
        run(&mut net, 3, line);
    }
    run(&mut net, 2, "ip addr add 10.20.0.3/24 dev eth0");
    net.delivered.clear();
    let mut request = echo("10.20.0.254");
    set4(&mut request, |h| h.src = ip("10.20.0.3"));
    net.send(2, request).unwrap();
    wait(&mut net, 900);
    assert_eq!(net.delivered.iter().filter(|d| d.0 == 2).count(), 1, "{:?}", net.dropped);
    assert_eq!(net.hosts[3].unsimulated_devices(), [""; 0]);
}

#[test]
fn a_trunk_carries_tags_and_an_access_port_none() {
    // a is on a trunk of 10 and 20, b an access port of 10, c one of 20 with a tag.
    let mut net = net(
        Kernel::V6_12,
        &[
            FILTERING,
            "bridge vlan add dev eth0 vid 10-20",
            "bridge vlan add dev eth1 vid 10 pvid untagged",
            "bridge vlan add dev eth2 vid 20",
        ],
    );
    for vid in [10, 20, 30] {
        station(&mut net, 0, vid);
    }
    station(&mut net, 2, 20);
    run(&mut net, 1, "ip addr add 10.10.0.2/24 dev eth0");
    assert!(answered_in(&mut net, "10.10.0.1", "10.10.0.2"), "{:?}", net.dropped);
    let tags: Vec<_> =
        net.frames.iter().filter(|f| matches!(f.2.l3, L3::Ipv4(_))).map(|f| (f.1, f.2.rare().vlan)).collect();
    let tag = Some((0x8100, 10));
    assert_eq!(tags, [(0, tag), (3, None), (1, None), (3, tag)]);
    assert!(answered_in(&mut net, "10.20.0.1", "10.20.0.3"), "{:?}", net.dropped);
    net.dropped.clear();
    assert!(!answered_in(&mut net, "10.30.0.1", "10.30.0.3"));
    assert!(net.dropped.contains(&(3, "bridge", "vlan")), "{:?}", net.dropped);
    // Without filtering every tag goes everywhere.
    run(&mut net, 3, "ip link set br0 type bridge vlan_filtering 0");
    station(&mut net, 2, 30);
    assert!(answered_in(&mut net, "10.30.0.1", "10.30.0.3"), "{:?}", net.dropped);
}

#[test]
fn a_port_without_a_pvid_takes_no_frame_without_a_tag() {
    let lines = [FILTERING, "bridge vlan del dev eth0 vid 1"];
    let mut with = net(Kernel::V6_12, &lines);
    assert!(!answered(&mut with, "10.0.0.2"));
    assert!(with.dropped.contains(&(3, "bridge", "vlan")), "{:?}", with.dropped);
    // As a VLAN with a priority of its own: the port's identifier, and that priority, go on.
    let mut with = net(Kernel::V6_12, &[FILTERING, "bridge vlan add dev eth1 vid 1"]);
    let mac = |net: &Net, host: usize| net.hosts[host].devices()[2].mac;
    let mut frame = udp("10.0.0.1", "10.0.0.2", 100);
    frame.eth = (mac(&with, 0), mac(&with, 1));
    frame.rare_mut().vlan = Some((0x8100, 5 << 13));
    with.receive(3, 2, frame.clone());
    let sent: Vec<_> = with.frames.iter().map(|f| f.2.rare().vlan).collect();
    assert!(sent.contains(&Some((0x8100, 5 << 13 | 1))), "{sent:?}");
    // A tag of another protocol is content: within a VLAN of the bridge.
    with.frames.clear();
    frame.rare_mut().vlan = Some((0x88a8, 7));
    with.receive(3, 2, frame);
    let seen = |f: &Skb| (f.rare().vlan, f.tags_in_frame(), f.len);
    let sent: Vec<_> = with.frames.iter().map(|f| seen(&f.2)).collect();
    assert!(sent.contains(&(Some((0x8100, 1)), 1, 118)), "{sent:?}");
    // Whose port takes the bridge's tag off: the other one is left.
    assert!(sent.contains(&(None, 1, 118)), "{sent:?}");
}

#[test]
fn what_bridge_shows_is_what_iproute2_shows() {
    let mut net = net(Kernel::V6_12, &[]);
    let said = |net: &mut Net, line: &str| {
        let now = net.now;
        let out = net.hosts[3].exec(line, now);
        (out.status, out.stdout + &out.stderr)
    };
    // As Linux 6.1 with iproute2 6.1.0 answered.
    let no = "RTNETLINK answers: Operation not supported\n";
    for (line, status, text) in [
        ("bridge vlan add dev eth0 vid 10-12", 0, ""),
        ("bridge vlan add dev eth0 vid 20 pvid untagged", 0, ""),
        ("bridge vlan add dev eth1 vid 20 pvid", 0, ""),
        ("bridge vlan add dev br0 vid 20 self", 0, ""),
        ("bridge vlan add dev br0 vid 20", 255, no),
        ("bridge vlan add dev eth0 vid 21 self", 255, no),
        ("bridge vlan add dev lo vid 22", 255, no),
        ("bridge vlan add dev nope vid 22", 255, "Cannot find bridge device \"nope\"\n"),
        ("bridge vlan add dev eth0 vid 4095", 255, "Error: bridge: Vlan id is invalid.\n"),
        ("bridge vlan add dev eth0 vid x", 255, "Error: bridge: Vlan id is invalid.\n"),
        ("bridge vlan add dev eth0 vid 4096", 255, "Invalid VLAN ID \"4096\"\n"),
        ("bridge vlan add dev eth0 vid 12-10", 255, "Invalid VLAN range \"12-10\"\n"),
        ("bridge vlan add dev eth0 vid 12-", 255, "Invalid VLAN range \"12-0\"\n"),
        ("bridge vlan add dev eth0 vid 10-11 pvid", 255, "pvid cannot be configured for a vlan range\n"),
        ("bridge vlan add dev eth0", 255, "Device and VLAN ID are required arguments.\n"),
        ("bridge vlan del dev eth1 vid 99", 0, ""),
        ("bridge vlan del dev eth1 vid 1", 0, ""),
        ("bridge vlan show dev nope", 255, "Cannot find device \"nope\"\n"),
        ("bridge foo", 255, "Object \"foo\" is unknown, try \"bridge help\".\n"),
        ("bridge vlan foo", 255, "Command \"foo\" is unknown, try \"bridge vlan help\".\n"),
        (
            "bridge vlan show vid 20",
            0,
            "port              vlan-id  \neth0              20 PVID Egress Untagged\neth1              20 PVID\nbr0               20\n",
        ),
        (
            "bridge link show dev eth1",
            0,
            "3: eth1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 master br0 state forwarding priority 32 cost 100 \n",
        ),
        ("bridge fdb add 02:00:00:00:00:09 dev eth2 master static", 0, ""),
        ("bridge fdb add 02:00:00:00:00:09 dev eth2 master", 255, "RTNETLINK answers: File exists\n"),
        (
            "bridge fdb add 02:00:00:00:00:0b dev eth2 master dynamic vlan 99",
            255,
            "RTNETLINK answers: Invalid argument\n",
        ),
        (
            "bridge fdb del 02:00:00:00:00:0f dev eth2 master",
            255,
            "RTNETLINK answers: No such file or directory\n",
        ),
        (
            "bridge fdb show state static",
            0,
            "02:00:00:00:00:09 dev eth2 vlan 1 master br0 static\n02:00:00:00:00:09 dev eth2 master br0 static\n",
        ),
        ("ip link set br0 type bridge vlan_default_pvid 4095", 2, "RTNETLINK answers: Invalid argument\n"),
        (
            "ip link set br0 type bridge vlan_protocol foo",
            255,
            "Error: argument \"foo\" is wrong: invalid vlan_protocol\n",
        ),
        ("ip link set br0 type bridge vlan_filtering 1 vlan_default_pvid 7", 0, ""),
        ("cat /sys/class/net/br0/bridge/vlan_filtering", 0, "1\n"),
        ("cat /sys/class/net/br0/bridge/vlan_protocol", 0, "0x8100\n"),
        ("cat /sys/class/net/eth0/brport/port_id", 0, "0x8001\n"),
        ("cat /sys/class/net/eth0/brport/state", 0, "3\n"),
    ] {
        assert_eq!(said(&mut net, line), (status, text.to_owned()), "{line}");
    }
    let shown = run(&mut net, 3, "bridge vlan show");
    let want = [
        "port              vlan-id  ",
        "eth0              1 Egress Untagged",
        "                  10",
        "                  11",
        "                  12",
        "                  20 PVID Egress Untagged",
        "eth1              20 PVID",
        "eth2              7 PVID Egress Untagged",
        "br0               7 PVID Egress Untagged",
        "                  20",
        "",
    ]
    .join("\n");
    assert_eq!(shown, want);
    let shown = run(&mut net, 3, "bridge -j vlan show dev eth1");
    assert_eq!(shown, "[{\"ifname\":\"eth1\",\"vlans\":[{\"vlan\":20,\"flags\":[\"PVID\"]}]}]\n");
    assert_eq!(said(&mut net, "bridge -s vlan show").0, 127);
    let file = "/sys/class/net/br0/bridge/default_pvid";
    let now = net.now;
    assert_eq!(net.hosts[3].write_file(file, "5", now), Err("Operation not permitted"));
    assert_eq!(net.hosts[3].write_file("/sys/class/net/br0/bridge/vlan_filtering", "0", now), Ok(()));
    assert_eq!(net.hosts[3].write_file(file, "5", now), Ok(()));
    assert!(
        run(&mut net, 3, "bridge vlan show dev br0").contains("br0               5 PVID Egress Untagged\n")
    );
}

/// Two ports with one address: where one goes, the other's is found (`fdb_delete_local`).
#[test]
fn an_address_of_two_ports_stays_while_one_of_them_has_it() {
    let lines = ["ip link set eth0 address 02:00:00:00:00:77", "ip link set eth1 address 02:00:00:00:00:77"];
    let mut net = net(Kernel::V6_12, &lines);
    let shown = run(&mut net, 3, "bridge fdb show");
    let of = |shown: &str| -> Vec<String> {
        shown
            .lines()
            .filter(|l| l.starts_with("02:00:00:00:00:77"))
            .map(|l| l.split(' ').nth(2).unwrap().to_owned())
            .collect()
    };
    assert_eq!(of(&shown), ["eth0", "eth0"], "{shown}");
    run(&mut net, 3, "ip link set eth0 nomaster");
    let shown = run(&mut net, 3, "bridge fdb show");
    assert_eq!(of(&shown), ["eth1", "eth1"], "{shown}");
}

/// `br_netfilter`: what is bridged meets the rules once the module is there, by a command or by a rule that asks for ports.
#[test]
fn rules_see_what_is_bridged() {
    let drop = "iptables -A FORWARD -i br0 -o br0 -d 10.0.0.2 -j DROP";
    let port = "iptables -A FORWARD -m physdev --physdev-in eth0 --physdev-out eth1 -j DROP";
    for (lines, reached) in [
        (&[drop][..], true),
        (&["modprobe br_netfilter", drop], false),
        (&["modprobe br_netfilter", "sysctl -w net.bridge.bridge-nf-call-iptables=0", drop], true),
        (&["modprobe br_netfilter", "modprobe -r br_netfilter", drop], true),
        (&[port], false),
    ] {
        let mut net = net(Kernel::V6_12, lines);
        assert_eq!(answered(&mut net, "10.0.0.2"), reached, "{lines:?}");
        assert!(answered(&mut net, "10.0.0.3"), "{lines:?}");
        assert_eq!(net.hosts[3].unsimulated_devices(), [""; 0]);
    }
    let mut net = net(Kernel::V6_12, &[]);
    let now = net.now;
    let key = "net.bridge.bridge-nf-call-iptables";
    let said = net.hosts[3].exec(&format!("sysctl {key}"), now);
    assert!(said.stderr.contains("No such file or directory"), "{}", said.stderr);
    run(&mut net, 3, "modprobe br_netfilter");
    assert_eq!(run(&mut net, 3, &format!("sysctl {key}")), format!("{key} = 1\n"));
}

/// The same of IPv6, and fragments, which connection tracking puts together and the port cuts again.
#[test]
fn ip6tables_sees_what_is_bridged_and_fragments_leave_as_they_came() {
    for (lines, count) in [
        (&["modprobe br_netfilter"][..], 1),
        (&["modprobe br_netfilter", "ip6tables -A FORWARD -m physdev --physdev-is-bridged -j DROP"], 0),
        (
            &[
                "modprobe br_netfilter",
                "sysctl -w net.bridge.bridge-nf-call-ip6tables=0",
                "ip6tables -A FORWARD -j DROP",
            ],
            1,
        ),
    ] {
        let mut net = net(Kernel::V6_12, lines);
        let mut frame = udp("10.0.0.1", "10.0.0.2", 100);
        frame.l3 =
            L3::Ipv6(penstock_packet::Ipv6::new("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap(), 17));
        frame.eth = ([2, 0, 0, 0, 0, 1], [0xff; 6]);
        net.receive(3, 2, frame);
        wait(&mut net, 10);
        let out = net
            .frames
            .iter()
            .filter(|(_, from, f)| *from == 3 && matches!(f.l3, L3::Ipv6(h) if h.dst.segments()[7] == 2));
        assert_eq!(out.count(), 2 * count, "{lines:?}");
    }
    let tracked = ["modprobe br_netfilter", "iptables -A FORWARD -m conntrack --ctstate INVALID -j DROP"];
    let mut net = net(Kernel::V6_12, &tracked);
    assert!(answered(&mut net, "10.0.0.2"));
    net.frames.clear();
    let mut request = udp("10.0.0.1", "10.0.0.2", 3000);
    set4(&mut request, |h| h.frag_off = 0);
    let _ = net.send(0, request);
    wait(&mut net, 100);
    let lengths = |of: usize| -> Vec<u32> {
        let all = net.frames.iter().filter(|(_, from, f)| {
            *from == of && matches!(f.l3, L3::Ipv4(_)) && matches!(f.l3, L3::Ipv4(h) if h.protocol == 17)
        });
        all.map(|(_, _, f)| f.len).collect()
    };
    assert!(lengths(0).len() > 1, "{:?}", lengths(0));
    assert_eq!(lengths(0), lengths(3));
}

/// A destination on the same network is asked for where nobody knows who has it, and the frame goes on with its own sender.
#[test]
fn a_translated_frame_is_bridged_to_whom_its_new_address_belongs() {
    let lines = [
        "sysctl -w net.ipv4.ip_forward=1",
        "modprobe br_netfilter",
        "iptables -t nat -A PREROUTING -p icmp -d 10.0.0.77 -j DNAT --to-destination 10.0.0.2",
    ];
    let mut net = net(Kernel::V6_12, &lines);
    run(&mut net, 0, "ip neigh add 10.0.0.77 lladdr 02:00:00:00:00:77 dev eth0");
    for asked in [true, false] {
        net.frames.clear();
        assert!(answered(&mut net, "10.0.0.77"), "{:?}", net.dropped);
        let questions = net
            .frames
            .iter()
            .filter(|(_, from, f)| *from == 3 && matches!(f.l3, L3::Arp(a) if a.tpa == ip("10.0.0.2")));
        assert_eq!(questions.count() > 0, asked);
        let mac = net.hosts[0].devices()[2].mac;
        let there = net
            .frames
            .iter()
            .find(|(_, from, f)| *from == 3 && matches!(f.l3, L3::Ipv4(h) if h.dst == ip("10.0.0.2")));
        let (_, _, frame) = there.expect("the request");
        assert_eq!((frame.eth.0, frame.eth.1), (mac, net.hosts[1].devices()[2].mac));
    }
}

/// The port that a frame came in by may go while its neighbour is asked for.
#[test]
fn a_translated_frame_whose_port_has_gone_is_lost_and_told() {
    let lines = [
        "sysctl -w net.ipv4.ip_forward=1",
        "modprobe br_netfilter",
        "iptables -t nat -A PREROUTING -p icmp -d 10.0.0.77 -j DNAT --to-destination 10.0.0.2",
    ];
    let mut net = net(Kernel::V6_12, &lines);
    run(&mut net, 0, "ip neigh add 10.0.0.77 lladdr 02:00:00:00:00:77 dev eth0");
    run(&mut net, 1, "ip link set eth0 down");
    assert!(!answered(&mut net, "10.0.0.77"));
    run(&mut net, 3, "ip link set eth0 nomaster");
    net.dropped.clear();
    // It is asked for once more, and answers.
    run(&mut net, 1, "ip link set eth0 up");
    wait(&mut net, 1500);
    assert!(net.dropped.contains(&(3, "bridge", "no-port")), "{:?}", net.dropped);
}
