//! Whether a packet may come from where it says it does.
//!
//! Follows: linux v6.12 `net/ipv4/fib_frontend.c` `fib_validate_source`, `net/ipv4/route.c` `ip_route_input_slow`.

use crate::route::{Hop, Key, Ports, RouteKind};
use crate::{Host, HostCx};
use penstock_packet::{Ipv4, Packet, Skb};
use std::net::Ipv4Addr;

/// Why a packet is not taken for where it says it comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// Nobody else has such an address (`-EINVAL`).
    Martian,
    /// The way back leads elsewhere (`-EXDEV`).
    ReversePath,
}

impl Refused {
    /// As a packet's end is told.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Refused::Martian => "martian-source",
            Refused::ReversePath => "rp-filter",
        }
    }
}

impl Host {
    /// `IN_DEV_ROUTE_LOCALNET`: 127.0.0.0/8 is routed as other networks are.
    #[cold]
    pub(crate) fn routes_localnet(&self, ifindex: u32) -> bool {
        self.conf_max(ifindex, "route_localnet") > 0
    }
    /// `IN_DEV_ACCEPT_LOCAL`: a packet from an address of this machine may come in.
    #[inline]
    fn accepts_local(&self, ifindex: u32) -> bool {
        self.sysctl.accepts_local && self.conf_max(ifindex, "accept_local") > 0
    }
    /// Whether a packet has been on this machine all the time: it comes by `lo`, or by the device of its VRF.
    fn goes_round(&self, iif: u32) -> bool {
        let l3mdev = self.vrf_of(iif);
        l3mdev != 0 && iif == l3mdev || self.devices.get(iif).is_some_and(|d| d.loopback)
    }
    /// Why a packet from or to 127.0.0.0/8 does not come in by a device; `None` where it does.
    //= linux v6.12 net/ipv4/route.c ip_route_input_slow (IN_DEV_NET_ROUTE_LOCALNET)
    #[cold]
    pub(super) fn martian_loopback(&self, iif: u32, h: Ipv4) -> Option<&'static str> {
        if h.dst == Ipv4Addr::BROADCAST || self.goes_round(iif) || self.routes_localnet(iif) {
            return None;
        }
        Some(if h.dst.is_loopback() { "martian-destination" } else { "martian-source" })
    }
    /// Whether a packet from 127.0.0.0/8 stays on this machine for that.
    //= linux v6.12 net/ipv4/route.c __mkroute_output
    #[cold]
    pub(crate) fn keeps_loopback(&self, hop: &Hop) -> bool {
        let oif = self.out_device(hop);
        hop.kind != Some(RouteKind::Local) && !self.goes_round(oif) && !self.routes_localnet(oif)
    }
    /// Whether a packet to this machine is from one of its own addresses, and none has sent it.
    #[cold]
    pub(super) fn claims_to_be_us(&mut self, iif: u32, h: Ipv4) -> bool {
        if self.goes_round(iif) {
            self.fib.note_source(h.dst, h.src);
            return false;
        }
        self.martian_source(iif, h)
    }
    /// A packet that is not from where it says is gone.
    #[cold]
    pub(super) fn not_from_there(&mut self, packet: Packet, why: Refused, cx: &mut HostCx<'_>) {
        //= linux v6.12 net/ipv4/ip_input.c ip_rcv_finish_core: the one is counted, the other is not
        self.snmp.rp_filter += u64::from(why == Refused::ReversePath);
        self.discard(packet, "ip_rcv", why.reason(), cx);
    }
    /// `__fib_validate_source` with a reverse path filter: strict, the way back to the source leads out of the device that the packet came in by;
    /// loose, there is a way.
    //= linux v6.12 net/ipv4/fib_frontend.c; net/ipv4/route.c ip_route_input_slow for whom it asks
    #[cold]
    pub(crate) fn comes_the_way_back(
        &self,
        iif: u32,
        packet: &Skb,
        h: Ipv4,
        hop: Hop,
    ) -> Result<(), Refused> {
        let l3mdev = self.vrf_of(iif);
        if l3mdev != 0 && iif == l3mdev {
            // It went round within a VRF, and had its route already.
            return Ok(());
        }
        let Some(device) = self.devices.get(iif).filter(|d| !d.loopback) else { return Ok(()) };
        let filter = self.sysctl.rp_filter.max(device.rp_filter);
        let asked = match hop.kind {
            Some(RouteKind::Local) => true,
            Some(RouteKind::Broadcast) => !h.src.is_unspecified(),
            Some(RouteKind::Unicast) => self.forwards_from(iif),
            _ => false,
        };
        if filter == 0 || !asked {
            return Ok(());
        }
        let ports = Ports::of(packet).turned();
        let mark = if self.is_valid_mark(iif) { packet.mark } else { 0 };
        let back = Key { src: h.dst, tos: h.tos & 0x1c, mark, iif: hop.oif, l3mdev, ports, ..Key::to(h.src) };
        let found = match self.fib.search_route(&back) {
            Ok(Some(found)) => found,
            _ => return Err(Refused::ReversePath),
        };
        match found.kind {
            RouteKind::Unicast => {}
            RouteKind::Local if self.accepts_local(iif) => {}
            RouteKind::Local | RouteKind::Broadcast => return Err(Refused::Martian),
            _ => return Err(Refused::ReversePath),
        }
        let comes = found.uses(iif) || filter != 1 && !device.addresses.is_empty();
        if comes { Ok(()) } else { Err(Refused::ReversePath) }
    }

    /// `fib_validate_source` without a reverse path filter: nobody else may send from our addresses, but where `accept_local` lets them.
    pub(crate) fn martian_source(&mut self, port: u32, h: Ipv4) -> bool {
        let kind = self.fib.lookup(&Key { l3mdev: self.vrf_of(port), ..Key::to(h.src) }).kind;
        let ours = matches!(kind, Some(RouteKind::Local | RouteKind::Broadcast));
        let martian = ours && !self.accepts_local(port) || h.src.octets()[0] >= 224;
        if !martian {
            self.fib.note_source(h.dst, h.src);
        }
        martian
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Net, ip, router, set4, udp};
    use penstock_model::{Kernel, Span};
    use penstock_packet::{L3, Skb};

    /// Where a packet that comes to the router by `eth0` ends: `None` at a socket.
    fn ends(lines: &[&str], quick: bool, skb: Skb) -> Option<&'static str> {
        let mut net = router(Kernel::V6_12, lines);
        assert_eq!(net.hosts[1].unsimulated(), Vec::<String>::new());
        net.quick = quick.then_some(0);
        let mac = net.hosts[1].devices()[2].mac;
        let comes = |net: &mut Net, skb: Skb| net.receive(1, 2, Skb { eth: ([2; 6], mac), ..skb });
        // One that may, so that the ways are known.
        comes(&mut net, udp("10.0.1.1", "10.0.1.254", 100));
        net.delivered.clear();
        comes(&mut net, skb);
        net.run(net.now + Span::from_ms(10));
        if net.delivered.is_empty() { Some(net.dropped.last().map_or("nowhere", |d| d.2)) } else { None }
    }

    #[test]
    fn nobody_else_has_our_addresses_unless_that_is_accepted() {
        let accept = "sysctl -qw net.ipv4.conf.eth0.accept_local=1";
        for quick in [false, true] {
            for dst in ["10.0.1.254", "10.0.2.1"] {
                for own in ["10.0.1.254", "10.0.2.254"] {
                    let from = |lines: &[&str]| ends(lines, quick, udp(own, dst, 100));
                    assert_eq!(from(&[]), Some("martian-source"), "{own} {dst}");
                    assert_eq!(from(&[accept]), None, "{own} {dst}");
                    assert_eq!(from(&["sysctl -qw net.ipv4.conf.all.accept_local=1"]), None);
                    assert_eq!(
                        from(&[accept, "sysctl -qw net.ipv4.conf.eth0.accept_local=0"]),
                        Some("martian-source")
                    );
                }
                assert_eq!(ends(&[], quick, udp("10.0.1.9", dst, 100)), None);
            }
        }
        // With a reverse path filter the address must be this device's.
        let filter = "sysctl -qw net.ipv4.conf.eth0.rp_filter=1";
        let from = |lines: &[&str], own| ends(lines, false, udp(own, "10.0.1.254", 100));
        assert_eq!(from(&[filter], "10.0.1.254"), Some("martian-source"));
        assert_eq!(from(&[filter, accept], "10.0.1.254"), None);
        assert_eq!(from(&[filter, accept], "10.0.2.254"), Some("rp-filter"));
    }

    #[test]
    fn packets_of_the_loopback_network_come_in_where_it_is_routed() {
        let to = "iptables -t nat -A PREROUTING -p udp -j DNAT --to-destination 127.0.0.1";
        let routed = "sysctl -qw net.ipv4.conf.all.route_localnet=1";
        for quick in [false, true] {
            let from = |lines: &[&str], src, dst| ends(lines, quick, udp(src, dst, 100));
            assert_eq!(from(&[], "10.0.1.1", "127.0.0.1"), Some("martian-destination"));
            assert_eq!(from(&[], "127.0.0.1", "10.0.1.254"), Some("martian-source"));
            assert_eq!(from(&[], "127.0.0.1", "10.0.2.1"), Some("martian-source"));
            assert_eq!(from(&[routed], "10.0.1.1", "127.0.0.1"), None);
            assert_eq!(from(&[to], "10.0.1.9", "10.0.1.254"), Some("martian-destination"));
            assert_eq!(from(&[to, routed], "10.0.1.9", "10.0.1.254"), None);
        }
    }

    #[test]
    fn packets_of_the_loopback_network_go_out_where_it_is_routed() {
        let to = "iptables -t nat -A OUTPUT -p udp -d 127.0.0.1 -j DNAT --to-destination 10.0.2.1";
        let from = "iptables -t nat -A POSTROUTING -o eth1 -j MASQUERADE";
        let sends = |lines: &[&str], dst: &str| {
            let mut net = router(Kernel::V6_12, lines);
            let mut skb = udp("127.0.0.1", "10.0.2.1", 100);
            set4(&mut skb, |h| h.dst = ip(dst));
            net.send(1, skb).map(|()| match net.frames.last().map(|f| f.2.l3) {
                Some(L3::Ipv4(h)) => format!("{} to {}", h.src, h.dst),
                _ => "nobody".to_owned(),
            })
        };
        let routed = "sysctl -qw net.ipv4.conf.eth1.route_localnet=1";
        assert_eq!(sends(&[], "10.0.2.1"), Err(22));
        assert_eq!(sends(&[routed], "10.0.2.1"), Ok("127.0.0.1 to 10.0.2.1".to_owned()));
        assert_eq!(sends(&[to, from], "127.0.0.1"), Err(22));
        assert_eq!(sends(&[to, from, routed], "127.0.0.1"), Ok("10.0.2.254 to 10.0.2.1".to_owned()));
    }
}
