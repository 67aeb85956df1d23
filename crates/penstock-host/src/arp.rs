//! ARP: finding the hardware address of the next hop, and answering those who look for ours.
//!
//! Follows: linux v2.6.35 and v6.12 `net/ipv4/arp.c` (`arp_solicit`, `arp_process`, `arp_ignore`, `arp_filter`), net/ipv4/devinet.c `confirm_addr_indev`,
//! `inet_addr_onlink`.
//! Whom it answers for besides is in `proxy`.

use crate::device::NOARP;
use crate::neigh::{Nud, Parm};
use crate::route::{Hop, Key, RouteKind};
use crate::{Address, Host, HostCx, Timer, timer};
use penstock_model::{Kernel, Time};
use penstock_packet::{Arp, Ipv4, L3, L4, Packet, Skb};
use std::net::{IpAddr, Ipv4Addr};

pub(crate) const MAC_BROADCAST: [u8; 6] = [0xff; 6];
/// Length of an ARP frame: 14 + 28, bytes. The driver pads it to 60 on the wire, nobody counts that.
const ARP_FRAME: u32 = 42;

impl Host {
    /// `neigh_probe` and `arp_solicit`.
    pub(crate) fn neigh_probe(&mut self, at: u32, cx: &mut HostCx<'_>) {
        let n = self.neigh.at(at);
        let IpAddr::V4(target) = n.addr else { return self.ndisc_solicit(at, cx) };
        let waiting = match self.kernel {
            Kernel::V2_6_35 => n.queue.front(),
            Kernel::V6_12 | Kernel::V7_2 => n.queue.back(),
        };
        let ifindex = n.ifindex;
        let own = waiting.and_then(|p| match p.l3 {
            L3::Ipv4(h) if self.is_local_on(ifindex, h.src) => Some(h.src),
            _ => None,
        });
        let own = match self.conf_max(ifindex, "arp_announce") {
            // An address that the other knows: of a network with it.
            1 => own.filter(|&src| self.is_onlink(ifindex, target, src)),
            2 => None,
            _ => own,
        };
        let ucast = self.neigh.parm(false, ifindex, Parm::Ucast);
        let tha = (i64::from(self.neigh.at(at).probes) < ucast).then(|| self.neigh.at(at).mac);
        let device = &self.devices[ifindex];
        let spa = own.or_else(|| device.address_towards(target)).unwrap_or(Ipv4Addr::UNSPECIFIED);
        let arp = Arp { op: 1, sha: device.mac, spa, tha: tha.unwrap_or([0; 6]), tpa: target };
        self.arp_send(ifindex, arp, tha.unwrap_or(MAC_BROADCAST), cx);
        self.neigh.at_mut(at).probes += 1;
    }

    /// Whether a network of the device holds both addresses.
    //= linux v6.12 net/ipv4/devinet.c inet_addr_onlink
    pub(crate) fn is_onlink(&self, ifindex: u32, a: Ipv4Addr, b: Ipv4Addr) -> bool {
        let networks = self.devices[ifindex].addresses.iter().map(|a| a.network());
        networks.into_iter().any(|n| n.contains(a) && n.contains(b))
    }
    /// Whether one who asks for an address of ours gets no answer here.
    //= linux v6.12 net/ipv4/arp.c arp_ignore, arp_filter
    fn arp_ignores(&mut self, ifindex: u32, asker: Ipv4Addr, target: Ipv4Addr) -> bool {
        let here = |h: &Host, d: u32, widest: u8| {
            let own = h.devices[d].addresses.iter();
            own.into_iter().any(|a| a.prefix.addr == target && a.scope <= widest)
        };
        let ignores = match self.conf_max(ifindex, "arp_ignore") {
            1 => !here(self, ifindex, 254),
            2 => {
                let same = asker.is_unspecified() || self.is_onlink(ifindex, target, asker);
                !here(self, ifindex, 254) || !same
            }
            3 => {
                let all: Vec<u32> = self.devices.iter().map(|d| d.ifindex).collect();
                !all.into_iter().any(|d| here(self, d, 253))
            }
            8 => true,
            _ => false,
        };
        if ignores || asker.is_unspecified() || self.conf_max(ifindex, "arp_filter") == 0 {
            return ignores;
        }
        // It answers where it would send to the asker.
        let hop = self.route_output(Key { src: target, ..Key::to(asker) });
        let back = hop.kind.is_some_and(|k| !matches!(k, RouteKind::Local)) && hop.oif == ifindex;
        !back
    }

    /// Where a packet from who asks to the address that is asked for would go; `None` where such a packet would not be taken.
    //= linux v6.12 net/ipv4/arp.c arp_process (ip_route_input_noref)
    fn way_of_asked(&mut self, ifindex: u32, frame: &Skb, arp: Arp) -> Option<Hop> {
        if !self.routes_localnet(ifindex) && (arp.spa.is_loopback() || arp.tpa.is_loopback()) {
            return None;
        }
        let hop = self.fib.search_key(&Key { src: arp.spa, iif: ifindex, ..Key::to(arp.tpa) });
        let h = Ipv4::new(arp.spa, arp.tpa, 0);
        if self.martian_source(ifindex, h) || self.comes_the_way_back(ifindex, frame, h, hop).is_err() {
            return None;
        }
        Some(hop)
    }
    /// Whether an address that is no other's network or ours may be somebody's (`inet_addr_type_dev_table`: `RTN_UNICAST`).
    fn is_somebodys(&self, ifindex: u32, addr: Ipv4Addr) -> bool {
        !(addr.octets()[0] == 0
            || addr.is_multicast()
            || self.is_local_on(ifindex, addr)
            || self.is_broadcast_at(ifindex, addr))
    }
    /// Whether an entry is made of what nobody has asked for (`arp_accept`: 1 always, 2 of the device's own networks).
    fn arp_accepts(&self, ifindex: u32, asker: Ipv4Addr) -> bool {
        let near = |a: &Address| a.scope <= 253 && a.network().contains(asker);
        match self.conf_max(ifindex, "arp_accept") {
            1 => true,
            2 => self.devices[ifindex].addresses.iter().any(near),
            _ => false,
        }
    }
    /// A question or an answer about its own sender (`arp_is_garp`).
    fn is_gratuitous(&self, ifindex: u32, arp: Arp) -> bool {
        let own = arp.spa == arp.tpa && (arp.op == 1 || arp.tha == arp.sha);
        own && self.is_somebodys(ifindex, arp.spa)
    }

    pub(crate) fn arp_send(&mut self, ifindex: u32, arp: Arp, to: [u8; 6], cx: &mut HostCx<'_>) {
        let frame = cx.pool.alloc(Skb {
            created: cx.now,
            queued: cx.now,
            eth: (arp.sha, to),
            ..Skb::new(ARP_FRAME, L3::Arp(arp), L4::None)
        });
        self.xmit(ifindex, frame, cx);
    }

    /// `arp_process`.
    pub(crate) fn arp_receive(&mut self, ifindex: u32, frame: Packet, cx: &mut HostCx<'_>) {
        if !matches!(frame.l3, L3::Arp(_)) {
            self.discard(frame, "arp", "malformed", cx);
            return;
        }
        if self.devices[ifindex].flags & NOARP != 0 {
            //= linux v6.12 net/ipv4/arp.c arp_rcv
            cx.pool.free(frame);
            return;
        }
        self.arp_process(ifindex, frame, false, cx);
    }

    /// `arp_process`; `waited`: a question that has stood in the proxy's queue.
    pub(crate) fn arp_process(&mut self, ifindex: u32, frame: Packet, waited: bool, cx: &mut HostCx<'_>) {
        let L3::Arp(arp) = frame.l3 else { return cx.pool.free(frame) };
        let own = arp.spa == arp.tpa && self.conf_max(ifindex, "drop_gratuitous_arp") > 0;
        let nobodys = arp.tpa.is_multicast() || arp.tpa.is_loopback() && !self.routes_localnet(ifindex);
        if own || nobodys || !matches!(arp.op, 1 | 2) {
            return cx.pool.free(frame);
        }
        let to_us = frame.eth.1 != MAC_BROADCAST;
        let reply = Arp { op: 2, sha: self.devices[ifindex].mac, spa: arp.tpa, tha: arp.sha, tpa: arp.spa };
        if arp.spa.is_unspecified() {
            // Whoever has no address yet asks whether anybody has this one.
            cx.pool.free(frame);
            if arp.op == 1
                && self.is_local_at(ifindex, arp.tpa)
                && !self.arp_ignores(ifindex, arp.spa, arp.tpa)
            {
                self.arp_send(ifindex, reply, arp.sha, cx);
            }
            return;
        }
        let asked = if arp.op == 1 { self.way_of_asked(ifindex, &frame, arp) } else { None };
        if let Some(hop) = asked {
            let own = hop.kind == Some(RouteKind::Local);
            if own && self.arp_ignores(ifindex, arp.spa, arp.tpa) {
                return cx.pool.free(frame);
            }
            if own || self.answers_for(ifindex, arp.spa, arp.tpa, &hop) {
                let at = self.neigh.find_or_create(ifindex, arp.spa.into(), cx.now);
                self.neigh_update(at, arp.sha, Nud::Stale, true, cx);
                if own || waited || to_us || self.neigh.parm(false, ifindex, Parm::ProxyDelay) == 0 {
                    self.arp_send(ifindex, reply, arp.sha, cx);
                    return cx.pool.free(frame);
                }
                return self.proxy_waits(false, frame, cx);
            }
        }
        cx.pool.free(frame);
        let mut known = self.neigh.find(ifindex, arp.spa.into());
        let gratuitous = self.is_gratuitous(ifindex, arp);
        if known.is_none()
            && self.arp_accepts(ifindex, arp.spa)
            && (gratuitous || arp.op == 2 && self.is_somebodys(ifindex, arp.spa))
        {
            known = Some(self.neigh.find_or_create(ifindex, arp.spa.into(), cx.now));
        }
        if let Some(at) = known {
            let state = if arp.op == 2 && to_us { Nud::Reachable } else { Nud::Stale };
            // Of several answers within a second (locktime) the first holds, but for who tells of itself.
            let tick = timer::jiffies(self.kernel, cx.now);
            let lock = self.neigh.ticks(false, ifindex, Parm::Lock);
            let told = gratuitous && self.kernel != Kernel::V2_6_35;
            let overrides = told || tick > self.neigh.at(at).updated + lock;
            self.neigh_update(at, arp.sha, state, overrides, cx);
        }
    }

    /// A gratuitous question for each address of a device (`inetdev_send_gratuitous_arp`).
    pub(crate) fn announce_addresses(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        let device = &self.devices[ifindex];
        let sha = device.mac;
        let addresses: Vec<Ipv4Addr> = device.addresses.iter().map(|a| a.prefix.addr).collect();
        for addr in addresses {
            let arp = Arp { op: 1, sha, spa: addr, tha: [0; 6], tpa: addr };
            self.arp_send(ifindex, arp, MAC_BROADCAST, cx);
        }
    }
    /// The same where `arp_notify` asks for it: a device has come up, or has another hardware address.
    //= linux v6.12 net/ipv4/devinet.c inetdev_event (NETDEV_UP, NETDEV_CHANGEADDR)
    pub(crate) fn arp_notify(&mut self, ifindex: u32, now: Time) {
        let Some(device) = self.devices.get(ifindex) else { return };
        let silent = !device.up || device.flags & NOARP != 0 || device.addresses.is_empty();
        if silent || self.conf_max(ifindex, "arp_notify") == 0 {
            return;
        }
        // A command has no frames to give: the next thing that happens here is this.
        self.timers.insert(now, Timer::Announce(ifindex));
    }
    /// The time for that has come.
    pub(crate) fn announce_timer_fired(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        if self.devices.get(ifindex).is_some_and(|d| d.up) {
            self.announce_addresses(ifindex, cx);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Net, echo, routed, udp};
    use penstock_model::Time;

    /// The client, the router and the server after commands on the first two.
    fn set(client: &[&str], router: &[&str]) -> Net {
        let mut net = routed(Kernel::V6_12);
        for (host, lines) in [(0, client), (1, router)] {
            for line in lines {
                let out = net.hosts[host].exec(line, Time::ZERO);
                assert_eq!(out.status, 0, "{line}: {}", out.stderr);
            }
        }
        net
    }
    /// Whether the router answers the client's question for an address.
    fn answers(client: &[&str], router: &[&str], target: &str) -> bool {
        let mut net = set(client, router);
        assert!(net.hosts[1].unsimulated().is_empty());
        net.send(0, echo(target)).unwrap();
        net.run(Time::from_ns(500_000_000));
        net.frames.iter().any(|f| f.1 == 1 && matches!(f.2.l3, L3::Arp(a) if a.op == 2))
    }

    #[test]
    fn an_address_of_another_device_is_answered_for_unless_ignored() {
        let far = ["ip route add 10.0.2.254 dev eth0"];
        let ignore = |n: u8| format!("sysctl -qw net.ipv4.conf.all.arp_ignore={n}");
        for (n, near_too, far_too) in [
            (0, true, true),
            (1, true, false),
            (2, true, false),
            (3, true, true),
            (4, true, true),
            (8, false, false),
        ] {
            assert_eq!(answers(&[], &[&ignore(n)], "10.0.1.254"), near_too, "{n}");
            assert_eq!(answers(&far, &[&ignore(n)], "10.0.2.254"), far_too, "{n}");
        }
        // The larger of all and the device's own holds.
        let own = "sysctl -qw net.ipv4.conf.eth0.arp_ignore=1";
        assert!(!answers(&far, &[own], "10.0.2.254"));
        // 2: the asker too must be of the network.
        let stranger =
            ["ip addr add 192.168.9.9/24 dev eth0", "ip route replace 10.0.1.0/24 dev eth0 src 192.168.9.9"];
        assert!(answers(&stranger, &[&ignore(1)], "10.0.1.254"));
        assert!(!answers(&stranger, &[&ignore(2)], "10.0.1.254"));
        // 3: not for addresses of scope host.
        let host = "ip addr add 10.0.1.200/32 dev lo scope host";
        assert!(answers(&[], &[host], "10.0.1.200"));
        assert!(!answers(&[], &[host, &ignore(3)], "10.0.1.200"));
    }

    #[test]
    fn a_filter_answers_where_the_way_back_is() {
        let filter = "sysctl -qw net.ipv4.conf.eth0.arp_filter=1";
        assert!(answers(&[], &[filter], "10.0.1.254"));
        let elsewhere = "ip route add 10.0.1.1/32 dev eth1";
        assert!(answers(&[], &[elsewhere], "10.0.1.254"));
        assert!(!answers(&[], &[elsewhere, filter], "10.0.1.254"));
    }

    #[test]
    fn a_device_that_comes_later_is_as_the_default_says() {
        let mut net =
            set(&["sysctl -qw net.ipv4.conf.default.arp_ignore=2", "ip link add d0 type dummy"], &[]);
        let show = |net: &mut Net, dev: &str| {
            net.hosts[0].setting(&format!("net.ipv4.conf.{dev}.arp_ignore")).unwrap()
        };
        assert_eq!((show(&mut net, "d0"), show(&mut net, "eth0")), ("2".to_owned(), "0".to_owned()));
    }

    #[test]
    fn questions_come_from_an_address_that_is_announced() {
        let asks = |announce: u8, src: &str| {
            let mut net = set(
                &[
                    "ip addr add 10.9.9.9/32 dev lo",
                    "ip addr add 10.0.1.7/24 dev eth0",
                    &format!("sysctl -qw net.ipv4.conf.eth0.arp_announce={announce}"),
                ],
                &[],
            );
            net.send(0, udp(src, "10.0.2.1", 100)).unwrap();
            let asked = net.frames.iter().find_map(|f| match f.2.l3 {
                L3::Arp(a) => Some(a.spa.to_string()),
                _ => None,
            });
            asked.unwrap()
        };
        for (announce, of_lo, of_eth0) in
            [(0, "10.9.9.9", "10.0.1.7"), (1, "10.0.1.1", "10.0.1.7"), (2, "10.0.1.1", "10.0.1.1")]
        {
            assert_eq!(
                (asks(announce, "10.9.9.9"), asks(announce, "10.0.1.7")),
                (of_lo.to_owned(), of_eth0.to_owned())
            );
        }
    }

    /// What the router knows of `10.0.1.77`, or of another, after an ARP message from there that nobody asked for.
    fn learns(router: &[&str], op: u16, spa: &str, tpa: &str) -> Option<Nud> {
        let mut net = set(&[], router);
        assert!(net.hosts[1].unsimulated().is_empty());
        tells(&mut net, op, spa, tpa, 9);
        let at = net.hosts[1].neigh.find(2, spa.parse().unwrap())?;
        Some(net.hosts[1].neigh.at(at).state)
    }
    fn tells(net: &mut Net, op: u16, spa: &str, tpa: &str, last: u8) {
        let sha = [2, 0, 0, 0, 0, last];
        let arp = Arp { op, sha, spa: spa.parse().unwrap(), tha: sha, tpa: tpa.parse().unwrap() };
        let eth = (sha, MAC_BROADCAST);
        net.receive(1, 2, Skb { eth, ..Skb::new(ARP_FRAME, L3::Arp(arp), L4::None) });
    }

    #[test]
    fn an_entry_is_made_of_what_nobody_asked_for_where_that_is_accepted() {
        let accept = |n: u8| format!("sysctl -qw net.ipv4.conf.eth0.arp_accept={n}");
        let drop = "sysctl -qw net.ipv4.conf.all.drop_gratuitous_arp=1";
        let (near, far) = ("10.0.1.77", "10.9.9.9");
        for op in [1, 2] {
            assert_eq!(learns(&[], op, near, near), None);
            assert_eq!(learns(&[&accept(1)], op, near, near), Some(Nud::Stale));
            assert_eq!(learns(&[&accept(1), drop], op, near, near), None);
            assert_eq!(learns(&[&accept(2)], op, near, near), Some(Nud::Stale));
            assert_eq!(learns(&[&accept(1)], op, far, far), Some(Nud::Stale));
            assert_eq!(learns(&[&accept(2)], op, far, far), None);
            // Not of who says that it has our own address.
            assert_eq!(learns(&[&accept(1)], op, "10.0.1.254", "10.0.1.254"), None);
        }
        // An answer to somebody else counts, a question for somebody else does not.
        assert_eq!(learns(&[&accept(1)], 2, near, "10.0.1.88"), Some(Nud::Stale));
        assert_eq!(learns(&[&accept(1)], 1, near, "10.0.1.88"), None);
    }

    #[test]
    fn who_tells_of_itself_is_believed_at_once() {
        let mut net = set(&[], &["sysctl -qw net.ipv4.conf.eth0.arp_accept=1"]);
        let known = |net: &Net| {
            let at = net.hosts[1].neigh.find(2, "10.0.1.77".parse().unwrap()).unwrap();
            net.hosts[1].neigh.at(at).mac[5]
        };
        tells(&mut net, 2, "10.0.1.77", "10.0.1.88", 1);
        assert_eq!(known(&net), 1);
        // The first of several answers within a second holds.
        tells(&mut net, 2, "10.0.1.77", "10.0.1.88", 2);
        assert_eq!(known(&net), 1);
        tells(&mut net, 2, "10.0.1.77", "10.0.1.77", 3);
        assert_eq!(known(&net), 3);
        net.now = Time::from_ns(1_100_000_000);
        tells(&mut net, 2, "10.0.1.77", "10.0.1.88", 4);
        assert_eq!(known(&net), 4);
    }

    #[test]
    fn a_device_that_comes_up_tells_its_addresses_where_it_is_to() {
        let told = |lines: &[&str]| {
            let mut net = set(&[], &["ip addr add 10.0.1.7/24 dev eth0"]);
            lines.iter().for_each(|line| net.exec(1, line));
            net.run(Time::ZERO);
            let said = net.frames.iter().filter_map(|f| match f.2.l3 {
                L3::Arp(a) if (a.op, a.spa) == (1, a.tpa) => Some(format!("{} {:?}", a.spa, a.sha[5])),
                _ => None,
            });
            said.collect::<Vec<String>>()
        };
        let (down, up) = ("ip link set eth0 down", "ip link set eth0 up");
        let notify = "sysctl -qw net.ipv4.conf.eth0.arp_notify=1";
        let mac = routed(Kernel::V6_12).hosts[1].devices()[2].mac[5];
        let both = |mac: u8| vec![format!("10.0.1.254 {mac}"), format!("10.0.1.7 {mac}")];
        assert_eq!(told(&[down, up]), Vec::<String>::new());
        assert_eq!(told(&[notify, down, up]), both(mac));
        assert_eq!(told(&[notify, "ip link set eth0 address 02:00:00:00:00:05"]), both(5));
    }
}
