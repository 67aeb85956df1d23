//! ARP: finding the hardware address of the next hop, and answering those who look for ours.
//!
//! Follows: linux v2.6.35 and v6.12 `net/ipv4/arp.c` (`arp_solicit`, `arp_process`, `arp_ignore`, `arp_filter`), net/ipv4/devinet.c `confirm_addr_indev`,
//! `inet_addr_onlink`.
//! Differs: no proxy ARP.

use crate::device::NOARP;
use crate::neigh::{Nud, Parm};
use crate::route::RouteKind;
use crate::{Host, HostCx, timer};
use penstock_model::Kernel;
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
        let hop = self.route_output(crate::route::Key { src: target, ..crate::route::Key::to(asker) });
        let back = hop.kind.is_some_and(|k| !matches!(k, RouteKind::Local)) && hop.oif == ifindex;
        !back
    }

    /// Whether the route back to one who asks for an address of ours is good: our own address is no source, and a reverse path filter asks whether it is this
    /// device's.
    //= linux v6.12 net/ipv4/arp.c arp_process (ip_route_input_noref)
    fn has_way_to_asker(&mut self, ifindex: u32, frame: &Skb, arp: Arp) -> bool {
        if self.is_local_at(ifindex, arp.spa) {
            return false;
        }
        if !self.sysctl.filters_sources {
            return true;
        }
        let h = Ipv4::new(arp.spa, arp.tpa, 0);
        let hop = self.fib.search_key(&crate::route::Key {
            src: arp.spa,
            iif: ifindex,
            ..crate::route::Key::to(arp.tpa)
        });
        self.comes_the_way_back(ifindex, frame, h, hop)
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
        let L3::Arp(arp) = frame.l3 else {
            self.discard(frame, "arp", "malformed", cx);
            return;
        };
        if self.devices[ifindex].flags & NOARP != 0 {
            //= linux v6.12 net/ipv4/arp.c arp_rcv
            cx.pool.free(frame);
            return;
        }
        let to_us = frame.eth.1 != MAC_BROADCAST;
        let asked = arp.op == 1
            && self.is_local_at(ifindex, arp.tpa)
            && (arp.spa.is_unspecified() || self.has_way_to_asker(ifindex, &frame, arp));
        cx.pool.free(frame);
        if arp.tpa.is_multicast() || arp.tpa.is_loopback() || !matches!(arp.op, 1 | 2) {
            return;
        }
        let mac = self.devices[ifindex].mac;
        let reply = Arp { op: 2, sha: mac, spa: arp.tpa, tha: arp.sha, tpa: arp.spa };
        if asked {
            if self.arp_ignores(ifindex, arp.spa, arp.tpa) {
                return;
            }
            if !arp.spa.is_unspecified() {
                let at = self.neigh.find_or_create(ifindex, arp.spa.into(), cx.now);
                self.neigh_update(at, arp.sha, Nud::Stale, true, cx);
            }
            self.arp_send(ifindex, reply, arp.sha, cx);
            return;
        }
        if arp.spa.is_unspecified() {
            return;
        }
        if let Some(at) = self.neigh.find(ifindex, arp.spa.into()) {
            let state = if arp.op == 2 && to_us { Nud::Reachable } else { Nud::Stale };
            let hz = i64::from(self.kernel.hz());
            // Of several answers within a second (locktime) the first holds.
            let tick = timer::jiffies(self.kernel, cx.now);
            let overrides = tick > self.neigh.at(at).updated + hz;
            self.neigh_update(at, arp.sha, state, overrides, cx);
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
}
