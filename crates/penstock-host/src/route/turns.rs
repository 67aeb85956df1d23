//! Gateways that redirects have told of, which stand beside the routes they came of.
//!
//! Follows: linux v6.12 `net/ipv4/route.c` `update_or_create_fnhe`, `find_exception`, `rt_bind_exception`.
//! Differs: what was told of one gateway out of one device is forgotten with the last route that names it; Linux forgets it with the route's own data,
//! which alike routes share.

use super::{Fib, Hop, Route};
use penstock_model::{Span, Time};
use std::net::{IpAddr, Ipv4Addr};

/// A better gateway.
pub(super) struct Turn {
    /// Instead of which.
    from: Ipv4Addr,
    /// By which device.
    oif: u32,
    /// Which.
    to: Ipv4Addr,
    until: Time,
}

impl Fib {
    /// Whether redirects have been followed.
    #[inline]
    pub(crate) fn has_turned(&self) -> bool {
        !self.turns.is_empty()
    }
    fn turn_of(&self, hop: &Hop, dst: Ipv4Addr, now: Time) -> Option<&Turn> {
        self.turns
            .get(&dst)
            .filter(|t| now < t.until && hop.six == 0 && (hop.next, hop.oif) == (t.from, t.oif))
    }
    /// The next hop to `dst` where the route names `hop`.
    #[cold]
    pub(crate) fn turned(&self, hop: Hop, dst: Ipv4Addr, now: Time) -> Hop {
        self.turn_of(&hop, dst, now).map_or(hop, |turn| Hop { next: turn.to, neigh: 0, ..hop })
    }
    /// How long redirects to `dst` are followed still.
    pub(crate) fn turned_for(&self, hop: &Hop, dst: Ipv4Addr, now: Time) -> Option<Span> {
        Some(self.turn_of(hop, dst, now)?.until - now)
    }
    /// To whom packets go another way.
    pub(crate) fn turned_ones(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.turns.keys().copied()
    }
    /// Packets to `dst` whose route names `hop` go to another gateway until then.
    pub(crate) fn turn(&mut self, dst: Ipv4Addr, hop: &Hop, to: Ipv4Addr, until: Time) {
        self.turns.insert(dst, Turn { from: hop.next, oif: hop.oif, to, until });
    }
    /// What was told of `dst` holds until then.
    pub(crate) fn turn_lasts(&mut self, dst: Ipv4Addr, until: Time) {
        if let Some(turn) = self.turns.get_mut(&dst) {
            turn.until = until;
        }
    }
    /// Forgets all (`net.ipv4.route.flush`).
    pub(crate) fn forget_turns(&mut self) {
        self.turns.clear();
    }
    /// A route is gone: forgets what was told of its gateways, where no other names them.
    #[cold]
    pub(super) fn watch_turns(&mut self, gone: &Route) {
        let ways = gone.nexthops.iter().map(|hop| (hop.via, hop.dev)).chain([(gone.via, gone.dev)]);
        for (via, dev) in ways {
            let Some(IpAddr::V4(via)) = via else { continue };
            let is = |turn: &Turn| (turn.from, turn.oif) == (via, dev);
            if self.turns.values().any(is) && !self.has_gateway(via, dev) {
                self.turns.retain(|_, turn| !is(turn));
            }
        }
    }
    /// Whether some route goes by this gateway out of this device.
    //= linux v6.12 net/ipv4/fib_semantics.c ip_fib_check_default
    pub(crate) fn has_gateway(&self, gateway: Ipv4Addr, dev: u32) -> bool {
        let is = |via: Option<IpAddr>, by: u32| via == Some(gateway.into()) && by == dev;
        self.routes().any(|r| is(r.via, r.dev) || r.nexthops.iter().any(|hop| is(hop.via, hop.dev)))
    }
}
