//! A machine with two slaves of teql0: turns, busy cards, neighbours that are not known.

use crate::tests::{ip, udp};
use crate::{Effect, Host, HostCx, Pool};
use penstock_model::{Kernel, Time};
use penstock_packet::L3;
use std::collections::BTreeSet;

/// A machine with two slaves whose cards take one frame each until they are told that it has left.
struct Rig {
    host: Host,
    pool: Pool,
    now: Time,
    busy: BTreeSet<u32>,
    /// Frames by slave: the last number of the destination, and of the hardware address it goes to.
    sent: Vec<(u32, u8, u8)>,
    dropped: Vec<&'static str>,
}

impl Rig {
    fn new(lines: &[&str]) -> Rig {
        let mut host = Host::new("a", Kernel::V6_12, 1);
        for n in 0..3 {
            host.add_device(&format!("eth{n}"));
        }
        let (pool, now) = (Pool::new(), Time::from_ns(1_000_000));
        let (busy, sent, dropped) = (BTreeSet::new(), Vec::new(), Vec::new());
        let mut rig = Rig { host, pool, now, busy, sent, dropped };
        for line in ["tc qdisc add dev eth1 root teql0", "tc qdisc add dev eth2 root teql0"] {
            rig.run(line);
        }
        lines.iter().for_each(|line| {
            rig.run(line);
        });
        rig
    }
    /// With an address of teql0, and neighbours that are known.
    fn ready() -> Rig {
        Rig::new(&[
            "ip link set teql0 up",
            "ip addr add 10.0.0.1/24 dev teql0",
            "ip neigh add 10.0.0.9 lladdr 02:00:00:00:00:01 nud permanent dev eth1",
            "ip neigh add 10.0.0.9 lladdr 02:00:00:00:00:02 nud permanent dev eth2",
        ])
    }
    fn said(&mut self, line: &str) -> (i32, String) {
        let out = self.host.exec(line, self.now);
        self.carry(|_, _| ());
        (out.status, out.stderr + &out.stdout)
    }
    fn run(&mut self, line: &str) -> String {
        let (status, said) = self.said(line);
        assert_eq!(status, 0, "{line}: {said}");
        said
    }
    fn carry(&mut self, f: impl FnOnce(&mut Host, &mut HostCx<'_>)) {
        let mut out = Vec::new();
        self.host.take_effects(&mut out);
        f(&mut self.host, &mut HostCx { now: self.now, pool: &mut self.pool, out: &mut out });
        let mut next: std::collections::VecDeque<Effect> = out.into();
        while let Some(effect) = next.pop_front() {
            let mut out = Vec::new();
            let mut cx = HostCx { now: self.now, pool: &mut self.pool, out: &mut out };
            match effect {
                Effect::Kick(i) => {
                    let card = self.host.devices.get(i).is_some_and(|d| !d.is_cardless());
                    while card && !self.busy.contains(&i) {
                        let Some(frame) = self.host.dequeue(i, &mut cx) else { break };
                        // A request of ARP takes no time.
                        if let L3::Ipv4(h) = frame.l3 {
                            self.busy.insert(i);
                            self.sent.push((i, h.dst.octets()[3], frame.eth.1[5]));
                        } else {
                            self.sent.push((i, 0, frame.eth.1[5]));
                        }
                        cx.pool.free(frame);
                    }
                }
                Effect::Next(i, packet) => self.host.comes_to(i, packet, &mut cx),
                Effect::Dropped { packet, reason, .. } => {
                    self.pool.free(packet);
                    self.dropped.push(reason);
                }
                _ => {}
            }
            next.extend(out);
        }
    }
    /// A datagram to 10.0.0.`to`.
    fn send(&mut self, to: u8) {
        let mut skb = udp("10.0.0.1", &format!("10.0.0.{to}"), 200);
        crate::tests::set4(&mut skb, |h| h.src = ip("10.0.0.1"));
        let packet = self.pool.alloc(skb);
        self.carry(|host, cx| {
            let _ = host.send(packet, cx);
        });
    }
    /// The frame of a card has left: it asks for the next.
    fn free(&mut self, i: u32) {
        self.now = Time::from_ns(self.now.as_ns() + 1000);
        self.busy.remove(&i);
        self.carry(|_, cx| cx.out.push(Effect::Kick(i)));
    }
    fn slaves(&self) -> Vec<u32> {
        self.sent.iter().map(|s| s.0).collect()
    }
}

#[test]
fn slaves_take_turns_and_one_that_is_busy_is_passed_over() {
    let mut rig = Rig::ready();
    let (one, two) = (rig.host.ifindex("eth1").unwrap(), rig.host.ifindex("eth2").unwrap());
    for _ in 0..5 {
        rig.send(9);
    }
    // One each; the third is held back, the others wait.
    assert_eq!(rig.sent, [(one, 9, 1), (two, 9, 2)]);
    let shown = rig.run("tc -s qdisc show dev teql0");
    assert!(shown.contains("backlog 600b 3p requeues 1"), "{shown}");
    rig.free(two);
    rig.free(two);
    rig.free(one);
    assert_eq!(rig.slaves(), [one, two, two, two, one]);
    // It was held back whenever all were busy.
    let shown = rig.run("tc -s qdisc show dev teql0");
    assert!(shown.contains("Sent 1000 bytes 5 pkt") && shown.contains("backlog 0b 0p requeues 3"), "{shown}");
    let shown = rig.run("ip -s link show teql0");
    assert!(shown.contains("<BROADCAST,NOARP,UP,LOWER_UP> mtu 1500"), "{shown}");
    assert!(shown.contains("        1000       5      0       0"), "{shown}");
    rig.free(one);
    rig.free(two);
    rig.send(9);
    assert_eq!(rig.slaves().len(), 6);
    assert_eq!(rig.host.held_packets(), 0);
}

#[test]
fn a_neighbour_that_is_not_known_is_asked_for_on_each_slave_and_another_slave_used() {
    let mut rig = Rig::ready();
    let (one, two) = (rig.host.ifindex("eth1").unwrap(), rig.host.ifindex("eth2").unwrap());
    rig.run("ip neigh add 10.0.0.7 lladdr 02:00:00:00:00:07 nud permanent dev eth2");
    rig.send(7);
    // eth1 asks; eth2 knows.
    assert_eq!(rig.sent, [(one, 0, 255), (two, 7, 7)]);
    rig.sent.clear();
    rig.free(two);
    rig.send(5);
    // Nobody knows: both ask, eth2 first, which asked last; the packet waits there.
    assert_eq!(rig.sent, [(two, 0, 255), (one, 0, 255)]);
    assert_eq!(rig.host.held_packets(), 1);
    rig.sent.clear();
    rig.run("ip neigh replace 10.0.0.5 lladdr 02:00:00:00:00:05 nud permanent dev eth2");
    // It comes to teql0 once more.
    assert_eq!(rig.sent, [(two, 5, 5)]);
}

#[test]
fn the_device_follows_its_slaves() {
    let mut rig = Rig::new(&[]);
    assert_eq!(rig.said("tc qdisc add dev teql0 root teql0").0, 2);
    rig.run("tc qdisc del dev eth1 root");
    rig.run("tc qdisc del dev eth2 root");
    // As Linux 6.12.117 shows it.
    let shown = rig.run("ip -d link show teql0");
    let (first, rest) = shown.split_once('\n').unwrap();
    assert_eq!(
        first.split_once(": ").unwrap().1,
        "teql0: <BROADCAST,NOARP> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 100"
    );
    let start =
        "    link/void  promiscuity 0  allmulti 0 minmtu 68 maxmtu 65535 addrgenmode eui64 numtxqueues 1 ";
    assert!(rest.starts_with(start) && rest.contains(" gso_max_segs 65535 tso_max_size 65536 "), "{rest}");
    let (status, said) = rig.said("ip link set teql0 up");
    assert_eq!((status, said.trim()), (2, "RTNETLINK answers: Protocol driver not attached"));
    rig.run("ip link set eth1 mtu 1400");
    rig.run("tc qdisc add dev eth1 root teql0");
    rig.run("tc qdisc add dev eth2 root teql0");
    rig.run("ip link set teql0 up");
    let shown = rig.run("ip link show teql0");
    assert!(
        shown.contains("<BROADCAST,NOARP,UP,LOWER_UP> mtu 1400 qdisc pfifo_fast state UNKNOWN "),
        "{shown}"
    );
    assert_eq!(rig.said("ip link set teql0 mtu 1500").0, 2);
    rig.run("ip link set eth0 mtu 1300");
    let (status, said) = rig.said("tc qdisc add dev eth0 root teql0");
    assert_eq!((status, said.trim()), (2, "RTNETLINK answers: Invalid argument"));
    assert_eq!(rig.said("modprobe -r sch_teql").0, 1);
    rig.run("tc qdisc del dev eth1 root");
    rig.run("tc qdisc del dev eth2 root");
    rig.run("modprobe -r sch_teql");
    assert_eq!(rig.said("ip link show teql0").0, 1);
}

#[test]
fn what_waits_is_lost_with_the_last_slave() {
    let mut rig = Rig::ready();
    for _ in 0..5 {
        rig.send(9);
    }
    rig.run("tc qdisc del dev eth1 root");
    assert_eq!((rig.host.held_packets(), rig.dropped.len()), (3, 0));
    rig.run("tc qdisc del dev eth2 root");
    assert_eq!((rig.host.held_packets(), rig.dropped.len()), (0, 3));
    rig.send(9);
    assert_eq!(rig.dropped.last(), Some(&"no-slave"));
    let shown = rig.run("ip -s link show teql0");
    assert!(shown.contains("         400       2      0       1"), "{shown}");
}
