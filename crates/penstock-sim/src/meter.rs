//! What is measured: losses by place, packets of watched devices, fates of datagrams in fragments.

use crate::results::{Carried, DropCount};
use penstock_model::Time;
use penstock_packet::Skb;
use std::collections::BTreeSet;

/// Losses of one place and reason.
pub(crate) struct DropSlot {
    pub(crate) host: u32,
    pub(crate) ifindex: u32,
    pub(crate) place: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) count: DropCount,
}

/// What one watched card has seen.
pub(crate) struct Watch {
    pub(crate) sent: Vec<Carried>,
    /// Lost packets by code point.
    pub(crate) lost: [u64; 64],
    /// The frames themselves, with the times they began to leave.
    #[cfg(test)]
    pub(crate) frames: Vec<(Time, Skb)>,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch {
            sent: Vec::new(),
            lost: [0; 64],
            #[cfg(test)]
            frames: Vec::new(),
        }
    }
}

/// A datagram, as its fragments know it.
pub(crate) type Key = (u32, u64, Time);

pub(crate) fn key(skb: &Skb) -> Key {
    (skb.flow, skb.seq, skb.created)
}

/// Datagrams in fragments whose fate is known while fragments of them may still be about.
#[derive(Default)]
pub(crate) struct Decided {
    pub(crate) keys: BTreeSet<Key>,
    /// How many there may be before those are forgotten of which nothing is held.
    pub(crate) most: usize,
}

/// Decided datagrams before the first search for those that can be forgotten.
pub(crate) const DECIDED: usize = 4096;
