//! Matches that ask more than a packet's headers: how many connections an address has, its rate, what is left of a quota, the time of day.
//!
//! Follows: linux v6.12 `net/netfilter/xt_connlimit.c` `connlimit_mt`, `xt_quota.c` `quota_mt`.

mod conncount;
pub(super) mod hashlimit;
mod time;

use super::eval::{Ip, Way};
use super::state::{Memory, More};
pub(super) use conncount::Conncount;
use conncount::Of;
use penstock_lang::iptables::Asks;
use penstock_packet::Skb;

/// What a match begins with where it remembers something.
pub(super) fn begins(asks: &Asks) -> More {
    match asks {
        Asks::Connlimit(_) => More::Connections(Box::default()),
        Asks::Hashlimit(_) => More::Table(u32::MAX),
        Asks::Quota { bytes, .. } => More::Quota(*bytes),
        Asks::Time(_) => More::Nothing,
    }
}

/// Whether a packet fits. Where it cannot be told the packet is dropped ([`Way::hotdrop`]).
#[inline(never)]
pub(super) fn fits(asks: &Asks, memory: Option<&mut Memory>, skb: &Skb, ip: &Ip, way: &mut Way<'_>) -> bool {
    let mut nothing = More::Nothing;
    let more = memory.map_or(&mut nothing, |m| &mut m.more);
    match (asks, more) {
        (Asks::Connlimit(c), More::Connections(counted)) => {
            let zone = way.known(skb).id.and_then(|id| way.tracking.get(Some(id))).map_or(0, |c| c.tuples[0].zone);
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
        (Asks::Quota { invert, .. }, More::Quota(left)) => {
            let len = u64::from(skb.network_len());
            let enough = *left >= len;
            // One that is too long takes what is left: no smaller one fits after it.
            *left = if enough { *left - len } else { 0 };
            enough != *invert
        }
        (Asks::Time(times), _) => time::fits(times, way.now),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
