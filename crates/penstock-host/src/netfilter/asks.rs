//! Matches that ask more than a packet's headers: how many connections an address has, its rate, what is left of a quota, the time of day, the
//! size a SYN offers, the realms of the route, whose socket it is from.
//!
//! Follows: linux v6.12 `net/netfilter/xt_connlimit.c` `connlimit_mt`, `xt_quota.c` `quota_mt`, `xt_tcpmss.c`, `xt_realm.c`,
//! `xt_owner.c` `owner_mt`, `xt_helper.c`, `xt_cpu.c`, `xt_physdev.c` `physdev_mt`.
//! Differs: what a connection sends after its program has closed it is still that program's.

mod conncount;
pub(super) mod hashlimit;
pub(super) mod recent;
mod six;
mod time;

use super::Hook;
use super::eval::{Ip, Way};
use super::state::{Memory, More};
use crate::route::Key;
pub(super) use conncount::Conncount;
use conncount::Of;
use penstock_lang::iptables::{Asks, Owner};
use penstock_packet::{L3, L4, Skb};

/// What a match begins with where it remembers something.
pub(super) fn begins(asks: &Asks) -> More {
    match asks {
        Asks::Connlimit(_) => More::Connections(Box::default()),
        Asks::Hashlimit(_) | Asks::Recent(_) | Asks::Set(_) => More::Table(u32::MAX),
        Asks::Quota { bytes, .. } => More::Quota(*bytes),
        Asks::Cpu { .. }
        | Asks::Physdev { .. }
        | Asks::Never
        | Asks::Frag(_)
        | Asks::Ipv6Header(_)
        | Asks::Time(_)
        | Asks::Mss { .. }
        | Asks::Realm { .. }
        | Asks::Owner(_)
        | Asks::Rpfilter(_)
        | Asks::Policy { .. }
        | Asks::Helper { .. } => More::Nothing,
    }
}

/// Whether a packet fits. Where it cannot be told the packet is dropped ([`Way::hotdrop`]).
#[inline(never)]
pub(super) fn fits(asks: &Asks, memory: Option<&mut Memory>, skb: &Skb, ip: &Ip, way: &mut Way<'_>) -> bool {
    let mut nothing = More::Nothing;
    let more = memory.map_or(&mut nothing, |m| &mut m.more);
    match (asks, more) {
        (Asks::Connlimit(c), More::Connections(counted)) => {
            let zone =
                way.known(skb).id.and_then(|id| way.tracking.get(Some(id))).map_or(0, |c| c.tuples[0].zone);
            let addr = if c.dst { ip.dst } else { ip.src };
            let connections = counted.count(Of { addr: addr & c.mask, zone }, skb, way);
            if connections == 0 {
                way.hotdrop = true;
                return false;
            }
            (connections > c.limit) != c.upto
        }
        (Asks::Hashlimit(h), More::Table(place)) => match hashlimit::fits(h, *place, skb, ip, way) {
            Some(fits) => fits,
            None => {
                way.hotdrop = true;
                false
            }
        },
        (Asks::Recent(r), More::Table(place)) => recent::fits(r, *place, skb, ip, way),
        (Asks::Set(s), More::Table(place)) => super::ipset::fits(s, *place, skb, ip, way),
        (Asks::Quota { invert, .. }, More::Quota(left)) => {
            let len = u64::from(skb.network_len());
            let enough = *left >= len;
            // One that is too long takes what is left: no smaller one fits after it.
            *left = if enough { *left - len } else { 0 };
            enough != *invert
        }
        (Asks::Physdev(p), _) => {
            let bridged = if skb.is_noted() { skb.rare().bridged } else { None };
            let name = |ifindex: u32| {
                let devices = way.devices.ports.map(|ports| ports.devices);
                devices.and_then(|all| all.get(ifindex)).map(|d| d.name.as_str())
            };
            p.fits(bridged.map(|b| (name(b.from).unwrap_or_default(), name(b.to).filter(|_| b.to != 0))))
        }
        // One processor.
        (Asks::Cpu { cpu, invert }, _) => (*cpu == 0) != *invert,
        (Asks::Time(times), _) => time::fits(times, way.now),
        (Asks::Mss { range, invert }, _) => {
            let L4::Tcp(t) = &skb.l4 else { return false };
            t.mss.is_some_and(|mss| (range.0..=range.1).contains(&mss)) != *invert
        }
        (Asks::Realm { id, mask, invert }, _) => (*id == realms(skb, way) & mask) != *invert,
        (Asks::Owner(o), _) => owner(o, Origin::of(skb)),
        (Asks::Rpfilter(asked), _) => super::fib::rpfilter(*asked, skb, way),
        // No machine here has policies of IPsec.
        (Asks::Policy { none }, _) => *none,
        (Asks::Frag(f), _) => six::frag(f, skb),
        (Asks::Ipv6Header(h), _) => six::ipv6header(h, skb),
        // No connection is expected by another here (`ct->master`).
        (Asks::Helper { invert }, _) => *invert,
        _ => false,
    }
}

/// Realms of a packet's route. Behind a local route those of the way back to the source are asked for here.
fn realms(skb: &Skb, way: &Way<'_>) -> u32 {
    if way.hook != Hook::Input {
        return skb.rare().realms;
    }
    let (Some(fib), L3::Ipv4(h)) = (way.devices.fib.filter(|f| f.has_realms()), skb.l3) else { return 0 };
    let back = Key { src: h.dst, tos: h.tos & 0x1c, mark: skb.mark, ..Key::to(h.src) };
    fib.realms(&fib.search(h.dst), Some(&back))
}

/// Who made a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// A program: all of a machine's are root's.
    Program,
    /// The machine itself, which has sockets of its own for answers.
    Machine,
    /// Another machine.
    Elsewhere,
}

impl Origin {
    pub(super) fn of(skb: &Skb) -> Origin {
        let asks = matches!(skb.l4, L4::Icmp(i) if matches!(i.ty, 8 | 128));
        match (skb.iif, skb.sender.socket) {
            (_, 1..) => Origin::Program,
            (0 | 1, 0) if asks => Origin::Program,
            (0 | 1, 0) => Origin::Machine,
            _ => Origin::Elsewhere,
        }
    }
}

/// The user and the group of every program.
pub(super) const ROOT: u32 = 0;

fn owner(o: &Owner, origin: Origin) -> bool {
    let not = |asked: Option<(u32, u32, bool)>| asked.is_none_or(|(_, _, invert)| invert);
    let ids_are_not = not(o.uid) && not(o.gid);
    let is = |asked: Option<(u32, u32, bool)>| {
        asked.is_none_or(|(from, to, invert)| (from..=to).contains(&ROOT) != invert)
    };
    match origin {
        Origin::Elsewhere => ids_are_not && o.exists != Some(false),
        _ if o.exists == Some(true) => false,
        Origin::Machine => ids_are_not,
        Origin::Program => is(o.uid) && is(o.gid),
    }
}

#[cfg(test)]
mod tests;
