//! Machines joined by wires of no length: what they send, answer and refuse.

use crate::fragment::IP_DF;
use crate::*;
use penstock_model::Span;
use penstock_packet::headers::{ETH_HLEN, ipproto};
use penstock_packet::{Icmp, Ipv4, L3, L4, Skb, Udp};

/// Hosts, and wires between two devices each.
pub(crate) struct Net {
    pub hosts: Vec<Host>,
    pub wires: Vec<((usize, u32), (usize, u32))>,
    pub now: Time,
    pub pool: Pool,
    /// Delivered to sockets: host and packet.
    pub delivered: Vec<(usize, Packet)>,
    /// Dropped: host, place, reason.
    pub dropped: Vec<(usize, &'static str, &'static str)>,
    /// Every frame that crossed a wire: time, sending host, frame.
    pub frames: Vec<(Time, usize, Skb)>,
    /// Packets go the quick way where they may; how many have.
    pub quick: Option<u32>,
}

impl Net {
    pub fn new(hosts: Vec<Host>, wires: Vec<((usize, u32), (usize, u32))>) -> Net {
        Net {
            hosts,
            wires,
            now: Time::ZERO,
            pool: Pool::new(),
            delivered: Vec::new(),
            dropped: Vec::new(),
            frames: Vec::new(),
            quick: None,
        }
    }
    fn effects(&mut self, host: usize, out: Vec<Effect>) {
        for effect in out {
            match effect {
                Effect::Kick(ifindex) => self.drain(host, ifindex),
                Effect::Next(ifindex, packet) => self.with(host, |h, cx| h.comes_to(ifindex, packet, cx)),
                Effect::Deliver(packet) => self.delivered.push((host, packet)),
                Effect::Across { ifindex, how, packet, .. } => {
                    self.with(host, |h, cx| h.comes_across(ifindex, how, packet, cx));
                }
                Effect::Moved(packet) => self.pool.free(packet),
                Effect::Orphaned(_) => {}
                Effect::Dropped { packet, place, reason, .. } => {
                    self.pool.free(packet);
                    self.dropped.push((host, place, reason));
                }
            }
        }
    }
    fn with<R>(&mut self, host: usize, f: impl FnOnce(&mut Host, &mut HostCx<'_>) -> R) -> R {
        let mut out = Vec::new();
        let mut cx = HostCx { now: self.now, pool: &mut self.pool, out: &mut out };
        let result = f(&mut self.hosts[host], &mut cx);
        self.effects(host, out);
        result
    }
    fn drain(&mut self, host: usize, ifindex: u32) {
        while let Some(frame) = self.with(host, |h, cx| h.dequeue(ifindex, cx)) {
            self.crosses(host, ifindex, frame);
        }
    }
    fn crosses(&mut self, host: usize, ifindex: u32, frame: Packet) {
        self.frames.push((self.now, host, (*frame).clone()));
        let from = (host, ifindex);
        let to = self.wires.iter().find_map(|&(a, b)| match () {
            () if a == from => Some(b),
            () if b == from => Some(a),
            () => None,
        });
        match to {
            Some((other, dev)) => self.arrives(other, dev, frame),
            None => self.pool.free(frame),
        }
    }
    fn arrives(&mut self, host: usize, ifindex: u32, mut frame: Packet) {
        let way = match self.quick {
            Some(_) => self.hosts[host].way(ifindex, &mut frame, self.now),
            None => Way::Whole,
        };
        match way {
            Way::Out(oif) => self.leaves(host, oif, frame),
            Way::Here => {
                self.quick = self.quick.map(|n| n + 1);
                self.delivered.push((host, frame));
            }
            Way::Whole => self.with(host, |h, cx| h.receive(ifindex, frame, cx)),
        }
    }
    fn leaves(&mut self, host: usize, oif: u32, mut packet: Packet) {
        self.quick = self.quick.map(|n| n + 1);
        if self.hosts[host].passes_by(oif, &mut packet, self.now) {
            self.crosses(host, oif, packet);
        } else if self.with(host, |h, cx| h.queue(oif, packet, cx)) {
            self.drain(host, oif);
        }
    }
    /// Runs a command that succeeds, and carries out what follows from it.
    pub fn exec(&mut self, host: usize, line: &str) {
        let out = self.hosts[host].exec(line, self.now);
        assert_eq!((out.status, out.stderr.as_str()), (0, ""), "{line}");
        let mut effects = Vec::new();
        self.hosts[host].take_effects(&mut effects);
        self.effects(host, effects);
    }
    pub fn send(&mut self, host: usize, skb: Skb) -> Result<(), i32> {
        let mut packet = self.pool.alloc(skb);
        if self.quick.is_some()
            && let Some(oif) = self.hosts[host].way_out(&mut packet, self.now)
        {
            self.leaves(host, oif, packet);
            return Ok(());
        }
        self.with(host, |h, cx| h.send(packet, cx)).map_err(|e| e.errno)
    }
    pub fn receive(&mut self, host: usize, ifindex: u32, skb: Skb) {
        let packet = self.pool.alloc(skb);
        self.arrives(host, ifindex, packet);
    }
    /// A packet leaves a machine by a device, as a capture there shows it.
    pub fn leaves_by(&mut self, host: usize, ifindex: u32, from: Option<u32>, skb: Skb) {
        let packet = self.pool.alloc(skb);
        self.with(host, |h, cx| h.leave_by(ifindex, from, packet, cx));
    }
    /// A packet comes to a device from above.
    pub fn comes_to(&mut self, host: usize, ifindex: u32, skb: Skb) {
        let packet = self.pool.alloc(skb);
        self.with(host, |h, cx| h.comes_to(ifindex, packet, cx));
    }
    /// Lets time pass, timer by timer.
    pub fn run(&mut self, until: Time) {
        loop {
            let due = self.hosts.iter().filter_map(Host::next_timer).min();
            let Some(at) = due.filter(|&at| at <= until) else { break };
            self.now = at.max(self.now);
            for host in 0..self.hosts.len() {
                self.with(host, |h, cx| h.handle_timer(cx));
            }
        }
        self.now = until;
    }
}

pub(crate) fn ip(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

pub(crate) fn skb(src: &str, dst: &str, protocol: u8, l4: L4, ip_len: u32) -> Skb {
    let len = ETH_HLEN + ip_len;
    let l3 = Ipv4::new(ip(src), ip(dst), protocol);
    Skb::new(len, L3::Ipv4(l3), l4)
}
pub(crate) fn udp(src: &str, dst: &str, ip_len: u32) -> Skb {
    skb(src, dst, ipproto::UDP, L4::Udp(Udp { sport: 1000, dport: 2000 }), ip_len)
}
pub(crate) fn echo(dst: &str) -> Skb {
    let l4 = L4::Icmp(Icmp::new(icmp::ECHO, 0, 7, 1));
    skb("0.0.0.0", dst, ipproto::ICMP, l4, 84)
}
pub(crate) fn h4(skb: &Skb) -> Ipv4 {
    match skb.l3 {
        L3::Ipv4(h) => h,
        _ => panic!("not IPv4"),
    }
}
pub(crate) fn set4(skb: &mut Skb, f: impl FnOnce(&mut Ipv4)) {
    if let L3::Ipv4(h) = &mut skb.l3 {
        f(h);
    }
}

/// client 10.0.1.1 — 10.0.1.254 router 10.0.2.254 — 10.0.2.1 server
pub(crate) fn routed(kernel: Kernel) -> Net {
    let host = |name: &str, addrs: &[&str], via: Option<&str>| {
        let mut host = Host::new(name, kernel, 1);
        for (i, addr) in addrs.iter().enumerate() {
            let dev = host.add_device(&format!("eth{i}"));
            host.add_address(dev, Prefix::parse(addr).unwrap()).unwrap();
        }
        if let Some(via) = via {
            host.add_default_route(ip(via)).unwrap();
        }
        host
    };
    let client = host("client", &["10.0.1.1/24"], Some("10.0.1.254"));
    let mut router = host("router", &["10.0.1.254/24", "10.0.2.254/24"], None);
    router.set_forwarding(true);
    let server = host("server", &["10.0.2.1/24"], Some("10.0.2.254"));
    Net::new(vec![client, router, server], vec![((0, 2), (1, 2)), ((1, 3), (2, 2))])
}

/// The router of three machines after some commands, all of which succeed; ARP has been done.
pub(crate) fn router(kernel: Kernel, lines: &[&str]) -> Net {
    let mut net = routed(kernel);
    net.send(0, udp("10.0.1.1", "10.0.2.1", 100)).unwrap();
    net.run(Time::from_ns(100_000_000));
    assert_eq!(net.delivered.len(), 1, "{:?}", net.dropped);
    net.delivered.clear();
    for line in lines {
        let said = net.hosts[1].exec(line, net.now);
        assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{line}");
    }
    net
}

fn arps(net: &Net) -> usize {
    net.frames.iter().filter(|(_, _, f)| matches!(f.l3, L3::Arp(_))).count()
}

#[test]
fn a_ping_crosses_a_router() {
    let mut net = routed(Kernel::V6_12);
    net.send(0, echo("10.0.2.1")).unwrap();
    net.run(Time::from_ns(100_000_000));
    assert_eq!(net.delivered.len(), 1, "{:?}", net.dropped);
    let (host, reply) = &net.delivered[0];
    assert_eq!(*host, 0);
    assert_eq!((h4(reply).src, h4(reply).dst, h4(reply).ttl), (ip("10.0.2.1"), ip("10.0.1.1"), 63));
    assert!(matches!(reply.l4, L4::Icmp(i) if i.ty == icmp::ECHO_REPLY && i.id == 7));
    assert_eq!(reply.network_len(), 84);
    // A question and an answer on each of the two wires: the answers teach both sides.
    assert_eq!(arps(&net), 4);
    assert!(net.frames.iter().filter(|(_, _, f)| matches!(f.l3, L3::Arp(_))).all(|(_, _, f)| f.len == 42));
    let router = &net.hosts[1];
    assert_eq!(router.devices()[2].counters.rx_packets, 2);
    assert_eq!(router.devices()[2].counters.rx_bytes, 42 + 98);
}

#[test]
fn the_old_kernel_asks_a_tick_later() {
    let mut net = routed(Kernel::V2_6_35);
    net.now = Time::from_ns(1_000_000);
    net.send(0, echo("10.0.1.254")).unwrap();
    assert!(net.frames.is_empty());
    net.run(Time::from_ns(100_000_000));
    assert_eq!(net.frames[0].0, Time::from_ns(4_000_000));
    assert_eq!(net.delivered.len(), 1);
}

#[test]
fn a_silent_neighbour_is_asked_three_times_then_unreachable() {
    for (kernel, kept) in [(Kernel::V2_6_35, 3), (Kernel::V6_12, 5)] {
        let mut net = routed(kernel);
        for _ in 0..5 {
            net.send(1, udp("0.0.0.0", "10.0.2.77", 100)).unwrap();
        }
        net.run(Time::from_ns(10_000_000_000));
        assert_eq!(arps(&net), 3);
        let first = net.frames[0].0;
        let last = net.frames[2].0;
        assert!((last - first).as_ns() >= 2_000_000_000 && (last - first).as_ns() < 2_200_000_000);
        let unreachable = net
            .delivered
            .iter()
            .filter(|(h, p)| *h == 1 && matches!(p.l4, L4::Icmp(i) if i.ty == 3 && i.code == 1));
        assert_eq!(unreachable.count(), kept);
        let overflow = net.dropped.iter().filter(|d| d.2 == "neigh-queuefull").count();
        assert_eq!(overflow, 5 - kept);
    }
}

#[test]
fn an_unconfirmed_neighbour_is_probed_by_unicast() {
    let mut net = routed(Kernel::V6_12);
    net.send(0, udp("0.0.0.0", "10.0.1.254", 60)).unwrap();
    net.run(Time::from_ns(100_000_000_000));
    net.frames.clear();
    // Stale by now: used at once, probed five seconds later.
    net.send(0, udp("0.0.0.0", "10.0.1.254", 60)).unwrap();
    assert_eq!(net.frames.len(), 1);
    let sent = net.now;
    net.run(sent + Span::from_secs(10));
    let probe = &net.frames[1];
    let after = (probe.0 - sent).as_ns();
    assert!((5_000_000_000..5_300_000_000).contains(&after), "{after}");
    assert!(matches!(probe.2.l3, L3::Arp(a) if a.op == 1));
    assert_eq!(probe.2.eth.1, net.hosts[1].devices()[2].mac);
    assert!(matches!(net.frames[2].2.l3, L3::Arp(a) if a.op == 2));
    assert_eq!(net.frames.len(), 3);
}

#[test]
fn a_used_up_ttl_is_reported() {
    let mut net = routed(Kernel::V6_12);
    let mut probe = echo("10.0.2.1");
    set4(&mut probe, |h| h.ttl = 1);
    net.send(0, probe).unwrap();
    net.run(Time::from_ns(1_000_000_000));
    let (_, error) = &net.delivered[0];
    assert!(matches!(error.l4, L4::Icmp(i) if i.ty == icmp::TIME_EXCEEDED && i.code == 0));
    assert_eq!(h4(error).src, ip("10.0.1.254"));
    assert_eq!(error.network_len(), 28 + 84);
    assert_eq!(h4(error).tos, 0xc0);
    assert!(net.dropped.contains(&(1, "ip_forward", "ttl-exceeded")));
}

#[test]
fn no_forwarding_no_word() {
    let mut net = routed(Kernel::V6_12);
    net.hosts[1].set_forwarding(false);
    net.send(0, echo("10.0.2.1")).unwrap();
    net.run(Time::from_ns(1_000_000_000));
    assert!(net.delivered.is_empty());
    assert_eq!(net.dropped, [(1, "ip_forward", "not-forwarding")]);
}

#[test]
fn no_route_is_told_by_the_router() {
    let mut net = routed(Kernel::V6_12);
    net.send(0, echo("172.16.0.1")).unwrap();
    net.run(Time::from_ns(1_000_000_000));
    assert!(matches!(net.delivered[0].1.l4, L4::Icmp(i) if i.ty == 3 && i.code == 0));
    assert_eq!(net.send(1, echo("172.16.0.1")), Err(101));
}

#[test]
fn errors_to_one_peer_are_limited() {
    let mut net = routed(Kernel::V6_12);
    let old = || {
        let mut skb = echo("10.0.2.1");
        set4(&mut skb, |h| h.ttl = 1);
        skb
    };
    for _ in 0..20 {
        net.send(0, old()).unwrap();
    }
    net.run(Time::from_ns(100_000_000));
    assert_eq!(net.delivered.len(), 6);
    net.run(Time::from_ns(1_100_000_000));
    for _ in 0..20 {
        net.send(0, old()).unwrap();
    }
    assert_eq!(net.delivered.len(), 7);
    // Ten a second, and then no limit at all.
    let set = |net: &mut Net, line: &str| assert_eq!(net.hosts[1].exec(line, net.now).status, 0);
    set(&mut net, "sysctl -qw net.ipv4.icmp_ratelimit=100");
    net.run(Time::from_ns(1_400_000_000));
    net.delivered.clear();
    for _ in 0..20 {
        net.send(0, old()).unwrap();
    }
    // Three for the 300 ms, and one for what was left of a second.
    assert_eq!(net.delivered.len(), 4);
    set(&mut net, "sysctl -qw net.ipv4.icmp_ratelimit=0");
    for _ in 0..20 {
        net.send(0, old()).unwrap();
    }
    assert_eq!(net.delivered.len(), 24);
}

/// That there is no route takes tokens twice: two messages at once, as Linux 6.1 sent of ten packets.
#[test]
fn no_route_is_told_twice_at_once() {
    let mut net = routed(Kernel::V6_12);
    for _ in 0..10 {
        net.send(0, echo("172.16.0.1")).unwrap();
    }
    net.run(Time::from_ns(100_000_000));
    assert_eq!(net.delivered.len(), 2);
}

#[test]
fn large_datagrams_go_in_fragments_and_come_whole() {
    let mut net = routed(Kernel::V6_12);
    net.send(0, udp("0.0.0.0", "10.0.2.1", 8220)).unwrap();
    net.run(Time::from_ns(1_000_000_000));
    assert_eq!(net.delivered.len(), 1);
    assert_eq!(net.delivered[0].1.network_len(), 8220);
    assert_eq!(h4(&net.delivered[0].1).frag_off, 0);
    let sizes: Vec<u32> =
        net.frames.iter().filter(|f| f.1 == 0 && f.2.len > 42).map(|f| f.2.network_len()).collect();
    assert_eq!(sizes, [1500, 1500, 1500, 1500, 1500, 820]);
    assert_eq!(net.hosts[2].held_packets(), 0);
}

#[test]
fn a_lost_fragment_times_out() {
    let mut net = routed(Kernel::V6_12);
    let mac = net.hosts[2].devices()[2].mac;
    let mut piece = udp("10.0.1.1", "10.0.2.1", 1500);
    piece.eth.1 = mac;
    set4(&mut piece, |h| (h.frag_off, h.id) = (0x2000, 9));
    net.receive(2, 2, piece);
    assert_eq!(net.hosts[2].held_packets(), 1);
    net.run(Time::from_ns(31_000_000_000));
    assert_eq!(net.hosts[2].held_packets(), 0);
    assert!(matches!(net.delivered[0].1.l4, L4::Icmp(i) if i.ty == 11 && i.code == 1));
}

#[test]
fn df_and_too_large_is_told_with_the_mtu() {
    let mut net = routed(Kernel::V6_12);
    net.hosts[1].set_mtu(3, 1400, Time::ZERO).unwrap();
    let mut big = udp("0.0.0.0", "10.0.2.1", 1500);
    set4(&mut big, |h| h.frag_off = IP_DF);
    net.send(0, big).unwrap();
    net.run(Time::from_ns(1_000_000_000));
    let (_, error) = &net.delivered[0];
    assert!(matches!(error.l4, L4::Icmp(i) if (i.ty, i.code, i.seq) == (3, 4, 1400)));
    assert_eq!(error.network_len(), 576);
    // From here it is the socket's error.
    let mut big = udp("0.0.0.0", "10.0.2.1", 1500);
    set4(&mut big, |h| h.frag_off = IP_DF);
    assert_eq!(net.send(1, big), Err(90));
}

#[test]
fn own_addresses_answer_by_lo() {
    let mut net = routed(Kernel::V6_12);
    net.send(1, echo("10.0.2.254")).unwrap();
    assert_eq!(net.delivered.len(), 1);
    assert_eq!(h4(&net.delivered[0].1).src, ip("10.0.2.254"));
    assert!(net.frames.is_empty());
    let lo = net.hosts[1].devices()[1].counters;
    // Without the 14 bytes of Ethernet.
    assert_eq!((lo.rx_packets, lo.rx_bytes, lo.tx_packets, lo.tx_bytes), (2, 168, 2, 168));
    net.send(1, echo("127.0.0.1")).unwrap();
    assert_eq!(h4(&net.delivered[1].1).src, ip("127.0.0.1"));
}

#[test]
fn forwarding_sets_priority_from_tos() {
    let check = |tos, six, old| {
        assert_eq!(rt_tos2priority(Kernel::V6_12, tos), six, "{tos}");
        assert_eq!(rt_tos2priority(Kernel::V2_6_35, tos), old, "{tos}");
    };
    check(0, 0, 0);
    check(0x10, 6, 6);
    check(0x08, 2, 2);
    check(0x04, 0, 0);
    check(0x02, 0, 1);
    check(0x18, 4, 4);
    check(0xb8, 4, 4);
    check(0xc0, 0, 0);
}

fn rules(host: &mut Host, lines: &[&str]) {
    for line in lines {
        let out = host.exec(&format!("iptables {line}"), Time::ZERO);
        assert_eq!(out.status, 0, "{line}: {}", out.stderr);
    }
}
fn packets(host: &mut Host, table: &str, chain: &str) -> u64 {
    let saved = host.exec(&format!("iptables -t {table} -S {chain} 1 -v"), Time::ZERO).stdout;
    let counters = saved.split(" -c ").nth(1).and_then(|c| c.split(' ').next());
    counters.and_then(|c| c.parse().ok()).unwrap_or_else(|| panic!("{saved}"))
}

#[test]
fn forwarded_packets_pass_the_hooks_in_order() {
    let mut net = routed(Kernel::V6_12);
    // Each rule fits only what the one before it left; the TTL is one less from FORWARD on.
    rules(
        &mut net.hosts[1],
        &[
            "-t mangle -A PREROUTING -i eth0 -m ttl --ttl-eq 64 -j MARK --set-mark 1",
            "-t mangle -A INPUT -j MARK --set-mark 9",
            "-t mangle -A FORWARD -i eth0 -o eth1 -m ttl --ttl-eq 63 -m mark --mark 1 -j MARK --set-mark 2",
            "-A FORWARD -m mark --mark 2 -j MARK --set-mark 3",
            "-t mangle -A OUTPUT -j MARK --set-mark 9",
            "-t mangle -A POSTROUTING -o eth1 -m mark --mark 3 -j DSCP --set-dscp 10",
        ],
    );
    net.send(0, udp("0.0.0.0", "10.0.2.1", 100)).unwrap();
    net.run(Time::from_ns(1_000_000_000));
    assert_eq!(net.delivered[0].1.tos(), 40);
    // The mark is the machine's own: it does not cross the wire.
    assert_eq!(net.delivered[0].1.mark, 0);
    let router = &mut net.hosts[1];
    let seen: Vec<u64> = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"]
        .into_iter()
        .map(|chain| packets(router, "mangle", chain))
        .collect();
    assert_eq!(seen, [1, 0, 1, 0, 1]);
    assert_eq!(packets(router, "filter", "FORWARD"), 1);
}

#[test]
fn own_packets_pass_output_and_those_for_us_input() {
    let mut net = routed(Kernel::V6_12);
    rules(
        &mut net.hosts[1],
        &[
            "-t mangle -A PREROUTING -p icmp",
            "-t mangle -A INPUT -p icmp --icmp-type echo-request",
            "-t mangle -A FORWARD",
            "-t mangle -A OUTPUT -p icmp --icmp-type echo-reply",
            "-t mangle -A POSTROUTING -o eth0",
        ],
    );
    net.send(0, echo("10.0.1.254")).unwrap();
    net.run(Time::from_ns(1_000_000_000));
    assert_eq!(net.delivered.len(), 1);
    let router = &mut net.hosts[1];
    let seen: Vec<u64> = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"]
        .into_iter()
        .map(|chain| packets(router, "mangle", chain))
        .collect();
    assert_eq!(seen, [1, 1, 0, 1, 1]);
}

#[test]
fn dropped_by_a_rule_is_the_sender_s_error() {
    let mut net = routed(Kernel::V6_12);
    rules(&mut net.hosts[0], &["-A OUTPUT -p udp -j DROP"]);
    assert_eq!(net.send(0, udp("0.0.0.0", "10.0.2.1", 100)), Err(1));
    assert_eq!(net.dropped, [(0, "OUTPUT", "dropped")]);
    rules(&mut net.hosts[1], &["-P FORWARD DROP"]);
    net.send(0, echo("10.0.2.1")).unwrap();
    net.run(Time::from_ns(1_000_000_000));
    assert!(net.delivered.is_empty());
    assert!(net.dropped.contains(&(1, "FORWARD", "dropped")));
}

#[test]
fn input_sees_whole_datagrams() {
    let mut net = routed(Kernel::V6_12);
    rules(&mut net.hosts[2], &["-t mangle -A PREROUTING", "-t mangle -A INPUT -m length --length 8220"]);
    net.send(0, udp("0.0.0.0", "10.0.2.1", 8220)).unwrap();
    net.run(Time::from_ns(1_000_000_000));
    assert_eq!(packets(&mut net.hosts[2], "mangle", "PREROUTING"), 6);
    assert_eq!(packets(&mut net.hosts[2], "mangle", "INPUT"), 1);
}

#[test]
fn routes_and_links_follow_commands() {
    let mut net = routed(Kernel::V6_12);
    let h = &mut net.hosts[1];
    let mut say = |line: &str| {
        let out = h.exec(line, Time::ZERO);
        format!("{}{}", out.stdout, out.stderr)
    };
    assert_eq!(say("ip route add 10.9.0.0/16 via 10.0.2.1 metric 7"), "");
    assert_eq!(say("ip route add 10.9.0.0/16 via 10.0.2.1 metric 7"), "RTNETLINK answers: File exists\n");
    assert_eq!(say("ip route add 10.8.0.0/16 via 10.77.0.1"), "Error: Nexthop has invalid gateway.\n");
    assert_eq!(
        say("ip route add 10.8.0.1/16 via 10.0.2.1"),
        "Error: Invalid prefix for given prefix length.\n"
    );
    assert_eq!(
        say("ip route"),
        "10.0.1.0/24 dev eth0 proto kernel scope link src 10.0.1.254 \n10.0.2.0/24 dev eth1 proto kernel scope link src 10.0.2.254 \n10.9.0.0/16 via 10.0.2.1 dev eth1 metric 7 \n"
    );
    assert_eq!(
        say("ip route get 10.9.1.1"),
        "10.9.1.1 via 10.0.2.1 dev eth1 src 10.0.2.254 uid 0 \n    cache \n"
    );
    assert_eq!(say("ip link set eth1 down"), "");
    assert_eq!(say("ip route"), "10.0.1.0/24 dev eth0 proto kernel scope link src 10.0.1.254 \n");
    assert_eq!(say("ip link set eth9 up"), "Cannot find device \"eth9\"\n");
    assert_eq!(say("ip link set eth1 up mtu 1400 txqueuelen 50"), "");
    let shown = say("ip addr show eth1");
    assert!(shown.contains("3: eth1: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1400 qdisc pfifo_fast state UP group default qlen 50\n"), "{shown}");
    assert!(
        shown.contains(
            "    inet 10.0.2.254/24 scope global eth1\n       valid_lft forever preferred_lft forever\n"
        ),
        "{shown}"
    );
    assert_eq!(say("ip route del 10.9.0.0/16"), "RTNETLINK answers: No such process\n");
}

/// All that a command says.
fn told(host: &mut Host, line: &str) -> String {
    let out = host.exec(line, Time::ZERO);
    format!("{}{}", out.stdout, out.stderr)
}

#[test]
fn rules_ask_for_protocols_and_ports() {
    for (rule, stopped) in [
        ("dport 2000 blackhole", true),
        ("ipproto udp dport 1999-2001 blackhole", true),
        ("ipproto udp sport 1000 blackhole", true),
        ("ipproto tcp dport 2000 blackhole", false),
        ("dport 2001 blackhole", false),
        ("not dport 2001 blackhole", true),
    ] {
        let mut net = routed(Kernel::V6_12);
        assert_eq!(told(&mut net.hosts[1], &format!("ip rule add {rule}")), "");
        net.send(0, udp("0.0.0.0", "10.0.2.1", 100)).unwrap();
        net.run(Time::from_ns(1_000_000_000));
        assert_eq!(net.delivered.is_empty(), stopped, "{rule}: {:?}", net.dropped);
    }
    let mut net = routed(Kernel::V6_12);
    told(&mut net.hosts[1], "ip rule add ipproto tcp dport 443 prohibit");
    let asked =
        |net: &mut Net, words: &str| told(&mut net.hosts[1], &format!("ip route get 10.0.2.1 {words}"));
    assert_eq!(asked(&mut net, "ipproto tcp dport 443"), "RTNETLINK answers: Permission denied\n");
    assert!(asked(&mut net, "ipproto udp dport 443").starts_with("10.0.2.1 dev eth1 "));
    assert_eq!(asked(&mut net, "dport x"), "Error: argument \"x\" is wrong: invalid dport\n\n");
}

#[test]
fn a_routes_mtu_counts_for_what_is_made_and_what_is_forwarded() {
    let mut net = routed(Kernel::V6_12);
    assert_eq!(told(&mut net.hosts[1], "ip route replace 10.0.2.1 dev eth1 mtu 1300"), "");
    let mut big = udp("0.0.0.0", "10.0.2.1", 1400);
    set4(&mut big, |h| h.frag_off = IP_DF);
    net.send(0, big).unwrap();
    net.run(Time::from_ns(1_000_000_000));
    let (_, error) = &net.delivered[0];
    assert!(matches!(error.l4, L4::Icmp(i) if (i.ty, i.code, i.seq) == (3, 4, 1300)));
    assert_eq!(net.hosts[1].mtu_towards(ip("10.0.2.1"), net.now), Some(1300));
    // The quick way, for which the route has to be known, does not let it through either.
    net.quick = Some(0);
    let mut small = udp("0.0.0.0", "10.0.2.1", 1300);
    set4(&mut small, |h| h.frag_off = IP_DF);
    for skb in [small.clone(), small] {
        net.send(0, skb).unwrap();
    }
    let mut big = udp("0.0.0.0", "10.0.2.1", 1301);
    set4(&mut big, |h| h.frag_off = IP_DF);
    let (delivered, dropped) = (net.delivered.len(), net.dropped.len());
    net.send(0, big).unwrap();
    assert_eq!((net.delivered.len() - delivered, net.dropped.len() - dropped), (1, 1));
    // A locked one takes DF off what is made here, which then goes in fragments.
    let mut net = routed(Kernel::V6_12);
    told(&mut net.hosts[0], "ip route add 10.0.2.1 via 10.0.1.254 mtu lock 1000");
    let mut big = udp("0.0.0.0", "10.0.2.1", 1400);
    set4(&mut big, |h| h.frag_off = IP_DF);
    net.send(0, big).unwrap();
    net.run(Time::from_ns(1_000_000_000));
    assert_eq!(
        net.delivered.iter().map(|(host, p)| (*host, p.network_len())).collect::<Vec<_>>(),
        [(2, 1400)]
    );
    assert_eq!(net.frames.iter().filter(|(_, host, f)| *host == 0 && f.len > 42).count(), 2);
}

#[test]
fn without_arp_nobody_is_asked_and_nobody_answers() {
    let mut net = routed(Kernel::V6_12);
    assert_eq!(told(&mut net.hosts[0], "ip link set eth0 arp off"), "");
    net.send(0, echo("10.0.2.1")).unwrap();
    net.run(Time::from_ns(1_000_000_000));
    // It goes to the device's own address, which is nobody else's.
    assert_eq!((net.delivered.len(), arps(&net), net.frames.len()), (0, 0, 1));
    assert_eq!(net.frames[0].2.eth.0, net.frames[0].2.eth.1);
    assert!(told(&mut net.hosts[0], "ip neigh show nud noarp").contains("NOARP"));
    // Others ask for it in vain.
    net.send(1, echo("10.0.1.1")).unwrap();
    net.run(Time::from_ns(10_000_000_000));
    assert_eq!(arps(&net), 3);
    // With an entry of one's own it works, in both directions; and arp on forgets it.
    told(&mut net.hosts[0], "ip neigh replace 10.0.1.254 lladdr 02:00:00:00:00:09 dev eth0");
    let mac = net.hosts[1].devices()[2].mac.map(|b| format!("{b:02x}")).join(":");
    told(&mut net.hosts[0], &format!("ip neigh replace 10.0.1.254 lladdr {mac} dev eth0"));
    let mac = net.hosts[0].devices()[2].mac.map(|b| format!("{b:02x}")).join(":");
    told(&mut net.hosts[1], &format!("ip neigh replace 10.0.1.1 lladdr {mac} dev eth0"));
    net.send(0, echo("10.0.2.1")).unwrap();
    net.run(Time::from_ns(20_000_000_000));
    assert_eq!(net.delivered.iter().filter(|(host, _)| *host == 0).count(), 1);
    told(&mut net.hosts[0], "ip link set eth0 arp on");
    assert_eq!(told(&mut net.hosts[0], "ip neigh show dev eth0"), "");
}

/// A class of hfsc that becomes a parent keeps its qdisc out of sight, and shows it again when it is a leaf again. Asked of Linux 6.12.117 with iproute2
/// 6.1.0.
#[test]
fn a_parents_qdisc_is_found_by_its_handle() {
    let moved = "Error: Cannot move an existing qdisc to a different parent.\n";
    let shown = |limit: &str| {
        format!("qdisc hfsc 1: root refcnt 2 default 3 \nqdisc pfifo 102: parent 1:3 limit {limit}p\n")
    };
    let mut net = routed(Kernel::V6_12);
    let host = &mut net.hosts[0];
    for (line, said) in [
        ("tc qdisc add dev eth0 root handle 1: hfsc default 3", ""),
        ("tc class add dev eth0 parent 1: classid 1:3 hfsc sc rate 1mbit", ""),
        ("tc qdisc replace dev eth0 parent 1:3 handle 102: pfifo limit 7", ""),
        ("tc class add dev eth0 parent 1:3 classid 1:4 hfsc sc rate 1mbit", ""),
        ("tc qdisc show dev eth0", &shown("7")),
        ("tc qdisc add dev eth0 parent 1:4 handle 102: pfifo limit 9", moved),
        ("tc qdisc replace dev eth0 parent 1:4 handle 102: pfifo limit 9", moved),
        ("tc qdisc change dev eth0 handle 102: pfifo limit 8", ""),
        (
            "tc qdisc change dev eth0 parent 1:3 handle 102: pfifo limit 8",
            "RTNETLINK answers: Invalid argument\n",
        ),
        (
            "tc qdisc add dev eth0 parent 1:3 handle 102: pfifo limit 8",
            "Error: Exclusivity flag on, cannot override.\n",
        ),
        ("tc qdisc replace dev eth0 parent 1:3 handle 102: bfifo", "Error: Invalid qdisc name.\n"),
        (
            "tc qdisc del dev eth0 parent 1:3 handle 102:",
            "Error: Cannot find specified qdisc on specified device.\n",
        ),
        ("tc qdisc show dev eth0", &shown("8")),
        ("tc class del dev eth0 classid 1:4", ""),
        ("tc qdisc replace dev eth0 parent 1:3 handle 102: pfifo limit 6", ""),
        ("tc qdisc show dev eth0", &shown("6")),
        ("tc qdisc add dev eth0 parent 1:3 handle 103: pfifo", "Error: NLM_F_REPLACE needed to override.\n"),
    ] {
        assert_eq!(told(host, line), said, "{line}");
    }
}
