//! A machine with a bond of two cards, at a switch with two ports and a machine behind it.

use crate::Host;
use crate::tests::{Net, echo, ip, set4};
use penstock_model::{Kernel, Time};
use penstock_packet::{L3, L4, Skb};

/// Machines: a with the bond of eth0 and eth1, sw with them as ports 0 and 1 of a bridge, and b at its port 2.
fn net(bond: &str) -> Net {
    let host = |name: &str, cards: usize| {
        let mut host = Host::new(name, Kernel::V6_12, 1);
        for n in 0..cards {
            host.add_device(&format!("eth{n}"));
        }
        host
    };
    let hosts = vec![host("a", 2), host("sw", 3), host("b", 1)];
    let wires = vec![((0, 2), (1, 2)), ((0, 3), (1, 3)), ((1, 4), (2, 2))];
    let mut net = Net::new(hosts, wires);
    run(&mut net, 2, "ip addr add 10.0.0.2/24 dev eth0");
    for line in ["link add br0 type bridge", "link set eth0 master br0", "link set eth1 master br0"] {
        run(&mut net, 1, &format!("ip {line}"));
    }
    for line in ["link set eth2 master br0", "link set br0 up"] {
        run(&mut net, 1, &format!("ip {line}"));
    }
    for line in [
        &format!("ip link add bond0 type bond {bond}"),
        "ip link set eth0 down",
        "ip link set eth1 down",
        "ip link set eth0 master bond0",
        "ip link set eth1 master bond0",
        "ip link set bond0 up",
        "ip addr add 10.0.0.1/24 dev bond0",
    ] {
        run(&mut net, 0, line);
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
/// Echoes to b, each a tenth of a second after the other; how many answers came.
fn answers(net: &mut Net, count: u16) -> usize {
    net.delivered.clear();
    for n in 0..count {
        let mut request = echo("10.0.0.2");
        set4(&mut request, |h| h.src = ip("10.0.0.1"));
        request.l4 = L4::Icmp(penstock_packet::Icmp::new(8, 0, 7, n));
        let _ = net.send(0, request);
        wait(net, 100);
    }
    net.delivered.iter().filter(|(host, _)| *host == 0).count()
}
/// Echo requests that a has sent by each of its cards, by what the switch has received.
fn requests(net: &Net) -> [u64; 2] {
    let of = |n: u32| net.hosts[1].device(n).map_or(0, |d| d.counters.rx_packets);
    [of(2), of(3)]
}
fn counters(net: &Net, host: usize, dev: &str) -> crate::Counters {
    let host = &net.hosts[host];
    host.counters(host.device(host.ifindex(dev).unwrap()).unwrap())
}

#[test]
fn an_active_backup_bond_sends_by_one_and_fails_over() {
    let mut net = net("mode active-backup miimon 100");
    assert_eq!(answers(&mut net, 5), 5);
    let before = requests(&net);
    // Five echoes and one ARP request by the first; nothing of a by the second.
    assert_eq!(before, [6, 0]);
    assert_eq!(run(&mut net, 0, "cat /sys/class/net/bond0/bonding/active_slave"), "eth0\n");
    // One address for all of them.
    let macs: Vec<[u8; 6]> = net.hosts[0].devices().iter().filter(|d| d.ifindex > 1).map(|d| d.mac).collect();
    assert!(macs.windows(2).all(|w| w[0] == w[1]), "{macs:?}");
    run(&mut net, 0, "ip link set eth0 down");
    let announced = net.frames.len();
    wait(&mut net, 150);
    assert_eq!(run(&mut net, 0, "cat /sys/class/net/bond0/bonding/active_slave"), "eth1\n");
    let arp =
        |f: &&(Time, usize, Skb)| matches!(f.2.l3, L3::Arp(a) if f.1 == 0 && a.op == 1 && a.spa == a.tpa);
    assert_eq!(net.frames[announced..].iter().filter(arp).count(), 1, "one gratuitous ARP request");
    assert_eq!(answers(&mut net, 5), 5);
    assert_eq!(requests(&net)[0], before[0], "nothing more by the first");
    // It stays with the second when the first is back: there is no primary.
    run(&mut net, 0, "ip link set eth0 up");
    wait(&mut net, 300);
    assert_eq!(run(&mut net, 0, "cat /sys/class/net/bond0/bonding/active_slave"), "eth1\n");
    run(&mut net, 0, "ip link set bond0 type bond primary eth0");
    assert_eq!(run(&mut net, 0, "cat /sys/class/net/bond0/bonding/active_slave"), "eth0\n");
    assert_eq!(answers(&mut net, 5), 5);
    // Without any slave there is no carrier, and what is sent is lost.
    run(&mut net, 0, "ip link set eth0 down");
    run(&mut net, 0, "ip link set eth1 down");
    wait(&mut net, 300);
    assert!(run(&mut net, 0, "ip link show bond0").contains("<NO-CARRIER,BROADCAST,MULTICAST,MASTER,UP>"));
    let lost = counters(&net, 0, "bond0").tx_dropped;
    assert_eq!(answers(&mut net, 3), 0);
    assert_eq!(counters(&net, 0, "bond0").tx_dropped, lost + 3);
}

#[test]
fn frames_to_a_slave_that_waits_are_lost() {
    let mut net = net("mode active-backup miimon 100");
    let mac = net.hosts[0].devices().iter().find(|d| d.name == "eth1").unwrap().mac;
    let mut frame = echo("10.0.0.1");
    set4(&mut frame, |h| h.src = ip("10.0.0.2"));
    frame.eth.1 = mac;
    let sent = |net: &Net| net.frames.iter().filter(|f| f.1 == 0).count();
    net.receive(0, 3, frame.clone());
    assert_eq!((net.dropped.last(), sent(&net)), (Some(&(0, "bond", "inactive")), 0));
    // The other one's is answered: an ARP request, and the reply.
    net.receive(0, 2, frame.clone());
    assert_eq!(sent(&net), 2);
    run(&mut net, 0, "ip link set bond0 type bond all_slaves_active 1");
    net.receive(0, 3, frame);
    assert_eq!(sent(&net), 3);
}

#[test]
fn turns_flows_and_copies() {
    // One after the other, the second slave first (the counter begins at 1).
    let mut rr = net("mode balance-rr miimon 100");
    assert_eq!(answers(&mut rr, 8), 8);
    let [first, second] = requests(&rr);
    assert_eq!((first + second, first.abs_diff(second)), (9, 1));
    // All of a flow by one of them; identifiers of echoes are flows of layer3+4.
    let mut xor = net("mode balance-xor miimon 100 xmit_hash_policy layer2");
    assert_eq!(answers(&mut xor, 8), 8);
    // ARP has another ethertype: 0x806 and 0x800 are both even in the last bit but one.
    assert!(requests(&xor).contains(&0) || requests(&xor).iter().min() == Some(&1), "{:?}", requests(&xor));
    let mut all = net("mode broadcast miimon 100");
    answers(&mut all, 4);
    assert_eq!(requests(&all)[0], requests(&all)[1]);
    // A slave that is gone has no part.
    run(&mut rr, 0, "ip link set eth0 down");
    wait(&mut rr, 200);
    let before = requests(&rr)[0];
    assert_eq!(answers(&mut rr, 4), 4);
    assert_eq!(requests(&rr)[0], before);
    assert_eq!(rr.hosts[0].unsimulated_devices(), [""; 0]);
}

#[test]
fn delays_hold_what_is_seen() {
    let mut net = net("mode active-backup miimon 100 updelay 300 downdelay 200");
    wait(&mut net, 400);
    let active = |net: &mut Net| run(net, 0, "cat /sys/class/net/bond0/bonding/active_slave");
    assert_eq!(active(&mut net), "eth0\n");
    run(&mut net, 0, "ip link set eth0 down");
    wait(&mut net, 150);
    assert_eq!(active(&mut net), "eth0\n");
    wait(&mut net, 250);
    assert_eq!(active(&mut net), "eth1\n");
}

#[test]
fn a_slave_is_down_before_and_as_it_was_after() {
    let mut host = Host::new("a", Kernel::V6_12, 1);
    host.add_device("eth0");
    let now = Time::ZERO;
    let mac = host.devices()[2].mac;
    assert_eq!(host.exec("ip link add bond0 type bond mode 1 miimon 100", now).status, 0);
    let said = host.exec("ip link set eth0 master bond0", now);
    assert_eq!((said.status, said.stderr.as_str()), (2, "Error: Device can not be enslaved while up.\n"));
    for line in ["ip link set bond0 mtu 1400", "ip link set eth0 down", "ip link set eth0 master bond0"] {
        let said = host.exec(line, now);
        assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{line}");
    }
    assert_eq!((host.devices()[2].mtu, host.devices()[3].mac), (1400, mac));
    assert!(host.exec("ip link show eth0", now).stdout.contains("<BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP>"));
    for (line, text) in [
        (
            "ip link set bond0 type bond mode 0",
            "Error: unable to set option because the bond device has slaves.\n",
        ),
        ("ip link set bond0 type bond updelay x", "Error: argument \"x\" is wrong: invalid updelay\n\n"),
        ("ip link set bond0 type bond packets_per_slave 3", "Error: option not supported in mode.\n"),
    ] {
        assert_eq!(host.exec(line, now).stderr, text, "{line}");
    }
    host.exec("ip link set bond0 address 02:00:00:00:00:77", now);
    assert_eq!(host.devices()[2].mac, [2, 0, 0, 0, 0, 0x77]);
    host.exec("ip link set eth0 nomaster", now);
    assert_eq!((host.devices()[2].mtu, host.devices()[2].mac, host.devices()[2].up), (1500, mac, false));
    for (mode, asked) in [("802.3ad", "mode 802.3ad"), ("balance-alb", "mode balance-alb")] {
        host.exec(&format!("ip link add b{mode} type bond mode {mode}"), now);
        host.exec(&format!("ip link set b{mode} up"), now);
        let found = host.unsimulated_devices();
        assert!(found.iter().any(|f| f.contains(asked)), "{found:?}");
    }
}
