//! Whether a packet may come from where it says it does.
//!
//! Follows: linux v6.12 `net/ipv4/fib_frontend.c` `fib_validate_source`, `net/ipv4/route.c` `ip_route_input_slow`.

use crate::Host;
use crate::route::{Hop, Key, Ports, RouteKind};
use penstock_packet::{Ipv4, Skb};

impl Host {
    /// `__fib_validate_source` with a reverse path filter: strict, the way back to the source leads out of the device that the packet came in by;
    /// loose, there is a way.
    //= linux v6.12 net/ipv4/fib_frontend.c; net/ipv4/route.c ip_route_input_slow for whom it asks
    #[cold]
    pub(crate) fn comes_the_way_back(&self, iif: u32, packet: &Skb, h: Ipv4, hop: Hop) -> bool {
        let l3mdev = self.vrf_of(iif);
        if l3mdev != 0 && iif == l3mdev {
            // It went round within a VRF, and had its route already.
            return true;
        }
        let Some(device) = self.devices.get(iif).filter(|d| !d.loopback) else { return true };
        let filter = self.sysctl.rp_filter.max(device.rp_filter);
        let asked = match hop.kind {
            Some(RouteKind::Local) => true,
            Some(RouteKind::Broadcast) => !h.src.is_unspecified(),
            Some(RouteKind::Unicast) => self.forwards_from(iif),
            _ => false,
        };
        if filter == 0 || !asked {
            return true;
        }
        let ports = Ports::of(packet).turned();
        let mark = if self.is_valid_mark(iif) { packet.mark } else { 0 };
        let back = Key { src: h.dst, tos: h.tos & 0x1c, mark, iif: hop.oif, l3mdev, ports, ..Key::to(h.src) };
        match self.fib.search_route(&back) {
            Ok(Some(back)) if back.kind == RouteKind::Unicast => {
                back.uses(iif) || filter != 1 && !device.addresses.is_empty()
            }
            _ => false,
        }
    }

    /// `fib_validate_source` without a reverse path filter: nobody else may send from our addresses.
    pub(super) fn martian_source(&mut self, port: u32, h: Ipv4) -> bool {
        let kind = self.fib.lookup(&Key { l3mdev: self.vrf_of(port), ..Key::to(h.src) }).kind;
        let martian =
            matches!(kind, Some(RouteKind::Local | RouteKind::Broadcast)) || h.src.octets()[0] >= 224;
        if !martian {
            self.fib.note_source(h.dst, h.src);
        }
        martian
    }
}
