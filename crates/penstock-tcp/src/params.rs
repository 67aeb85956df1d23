//! Constants in which the stacks differ.
//!
//! Follows: linux v6.12 and v2.6.35 include/net/tcp.h `TCP_RTO_MIN`, `TCP_RTO_MAX`, `TCP_TIMEOUT_INIT`, `TCP_FASTRETRANS_THRESH`.

use crate::clock::Clock;
use crate::config::Stack;
use penstock_model::{Kernel, Span};

/// Constants of a stack, in jiffies where not said otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Params {
    /// Today's Linux.
    pub today: bool,
    /// Linux as of 7.2.
    pub newest: bool,
    /// Windows XP.
    pub xp: bool,
    /// Tail loss probes are sent.
    pub tlp: bool,
    pub rto_min: u32,
    pub rto_max: u32,
    pub rto_init: u32,
    /// tcp_reordering: duplicate ACKs that start fast retransmit.
    pub reordering: u32,
    /// Memory of an skb beyond its data, bytes.
    pub skb_overhead: u32,
}

impl Params {
    pub(crate) fn new(stack: Stack, clock: &Clock) -> Params {
        let s = |ms: i64| clock.span_to_jiffies(Span::from_ms(ms));
        match stack {
            Stack::Linux(Kernel::V2_6_35) => Params {
                today: false,
                newest: false,
                xp: false,
                tlp: false,
                rto_min: s(200),
                rto_max: s(120_000),
                rto_init: s(3_000),
                reordering: 3,
                skb_overhead: 512,
            },
            Stack::Linux(_) | Stack::Ns2 => Params {
                today: true,
                newest: matches!(stack, Stack::Linux(Kernel::V7_2)),
                xp: false,
                tlp: true,
                rto_min: s(200),
                rto_max: s(120_000),
                rto_init: s(1_000),
                reordering: 3,
                skb_overhead: 960,
            },
            Stack::WindowsXp => Params {
                today: false,
                newest: false,
                xp: true,
                tlp: false,
                rto_min: s(300),
                rto_max: s(240_000),
                rto_init: s(3_000),
                reordering: 2,
                skb_overhead: 0,
            },
        }
    }
}
