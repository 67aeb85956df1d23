//! What is known of the paths to others: the largest packet that came through.
//!
//! Follows: linux v6.12 `net/ipv4/route.c` `__ip_rt_update_pmtu`, `ipv4_mtu`; RFC 1191.
//! Differs: of a path what its destination is told counts, whatever the type of service.

use crate::Host;
use crate::route::{Key, RouteKind};
use penstock_model::{Kernel, Span, Time};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// `net.ipv4.route.mtu_expires`.
const EXPIRES: Span = Span::from_secs(600);
/// `net.ipv4.route.min_pmtu`, bytes.
const MIN_PMTU: u32 = 552;

/// What is known of one: the largest packet, bytes; it is less than the least that is believed, so that packets may be cut (`fnhe_mtu_locked`);
/// until when that holds.
type Known = (u32, bool, Time);

/// The paths of which something is known, by their destinations.
#[derive(Default)]
pub(crate) struct Paths {
    known: BTreeMap<Ipv4Addr, Known>,
    /// What is known does not count, of IPv6 neither: the packet at hand is to find it out.
    pub(crate) probed: bool,
}

impl Paths {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty() || self.probed
    }
    fn find(&self, dst: Ipv4Addr, now: Time) -> Option<&Known> {
        self.known.get(&dst).filter(|k| now < k.2)
    }
    /// What is known of `dst`: the largest packet, bytes; whether packets may be cut; how long that holds.
    pub(crate) fn known_of(&self, dst: Ipv4Addr, now: Time) -> Option<(u32, bool, Span)> {
        self.find(dst, now).map(|k| (k.0, k.1, k.2 - now))
    }
    /// Of whom something was told.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.known.keys().copied()
    }
    /// The largest packet to `dst`, bytes, where its route lets `mtu` through.
    #[cold]
    pub(crate) fn longest(&self, dst: Ipv4Addr, mtu: u32, now: Time) -> u32 {
        self.find(dst, now).map_or(mtu, |k| k.0.min(mtu))
    }
    /// Whether packets to `dst` may be cut on their way, whatever they ask for.
    #[cold]
    pub(crate) fn is_locked(&self, dst: Ipv4Addr, now: Time) -> bool {
        self.find(dst, now).is_some_and(|k| k.1)
    }
    /// What is known of `dst` holds until then.
    pub(crate) fn lasts(&mut self, dst: Ipv4Addr, until: Time) {
        if let Some(known) = self.known.get_mut(&dst) {
            known.2 = until;
        }
    }
    /// Forgets those of which `gone` says so.
    pub(crate) fn forget(&mut self, gone: impl Fn(u32) -> bool) {
        self.known.retain(|_, known| !gone(known.0));
    }
}

impl Host {
    /// Does something for a socket that finds out the MTU of its path (`IP_PMTUDISC_PROBE`): the device's counts, whatever is known of the path.
    pub fn probing<R>(&mut self, work: impl FnOnce(&mut Host) -> R) -> R {
        self.paths.probed = true;
        let done = work(self);
        self.paths.probed = false;
        done
    }
    /// A router could not send a packet of a socket here on to `dst`: it was longer than `mtu` bytes, and was not to be cut.
    pub fn frag_needed(&mut self, dst: Ipv4Addr, mtu: u32, now: Time) {
        let hop = self.route_output(Key::to(dst));
        let old = self.mtu_of(&hop, dst, now);
        if hop.mtu_locked || hop.kind != Some(RouteKind::Unicast) || old < mtu {
            return;
        }
        let locked = mtu < MIN_PMTU;
        let mtu = if locked { old.min(MIN_PMTU) } else { mtu };
        self.paths.known.insert(dst, (mtu, locked, now + EXPIRES));
        self.fib.turn_lasts(dst, now + EXPIRES);
    }
    /// A packet to `dst` goes into a tunnel, which has room for `mtu` bytes: that is known from then on, also where the device's MTU says the same. It is
    /// noted anew when half of its time is over.
    //= linux v6.12 net/ipv4/ip_tunnel.c tnl_update_pmtu; net/ipv4/route.c __ip_rt_update_pmtu
    pub(crate) fn room_in_tunnel(&mut self, dst: Ipv4Addr, mtu: u32, now: Time) {
        let lasts = |k: &Known| (k.0, k.1) == (mtu, false) && k.2 - now > Span::from_secs(300);
        if self.kernel >= Kernel::V6_12 && !self.paths.find(dst, now).is_some_and(lasts) {
            self.frag_needed(dst, mtu, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_known_for_ten_minutes() {
        let mut host = Host::new("h", Kernel::V6_12, 1);
        host.add_device("eth0");
        for command in
            ["ip link set eth0 up", "ip addr add 10.0.0.1/24 dev eth0", "ip route add default via 10.0.0.2"]
        {
            assert_eq!(host.exec(command, Time::ZERO).status, 0, "{command}");
        }
        let (dst, other) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        let longest = |host: &mut Host, dst, s: i64| host.mtu_towards(dst, Time::from_ns(s * 1_000_000_000));
        host.frag_needed(dst, 1400, Time::ZERO);
        host.frag_needed(dst, 1450, Time::ZERO);
        assert_eq!((longest(&mut host, dst, 599), longest(&mut host, other, 0)), (Some(1400), Some(1500)));
        assert_eq!(host.probing(|host| host.mtu_towards(dst, Time::ZERO)), Some(1500));
        assert_eq!(longest(&mut host, dst, 600), Some(1500));
        // Less than anybody should say is not believed, and what goes there may be cut.
        host.frag_needed(other, 100, Time::ZERO);
        assert_eq!(longest(&mut host, other, 1), Some(552));
        assert!(host.paths.is_locked(other, Time::ZERO) && !host.paths.is_locked(dst, Time::ZERO));
        // A route that says it for all.
        assert_eq!(host.exec("ip route replace default via 10.0.0.2 mtu lock 1300", Time::ZERO).status, 0);
        host.frag_needed(Ipv4Addr::new(192, 0, 2, 3), 1000, Time::ZERO);
        assert_eq!(longest(&mut host, Ipv4Addr::new(192, 0, 2, 3), 1), Some(1300));
    }
}
