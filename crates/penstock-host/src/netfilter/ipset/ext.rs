//! What an element carries besides itself: timeout, counters, comment, what `SET --map-set` sets.
//!
//! Follows: linux v6.12 `net/netfilter/ipset/ip_set_core.c` `ip_set_match_extensions`, `ip_set_elem_len`,
//! `include/linux/netfilter/ipset/ip_set.h` `ip_set_timeout_set`.

use penstock_lang::ipset::Attributes;

/// What a packet gets by `--map-set` (`struct ip_set_skbinfo`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in crate::netfilter) struct Skbinfo {
    pub mark: u32,
    pub mask: u32,
    pub prio: u32,
    pub queue: u16,
}

/// What a stored element carries. It stays in its place when the element goes: the next one there begins with its counters, as in the kernel.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Ext {
    /// The tick at which it is gone; 0: never.
    pub timeout: i64,
    pub packets: u64,
    pub bytes: u64,
    pub comment: Option<Box<str>>,
    pub skb: Skbinfo,
}

/// What a new element is given.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct New<'a> {
    /// Seconds; 0: for ever.
    pub timeout: u32,
    pub packets: Option<u64>,
    pub bytes: Option<u64>,
    pub comment: Option<&'a str>,
    pub skb: Skbinfo,
}

/// Which of them a set's elements have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct With {
    /// The timeout where none is named, seconds.
    pub timeout: Option<u32>,
    pub counters: bool,
    pub comments: bool,
    pub skbinfo: bool,
}

/// The present, in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::netfilter) struct Ticks {
    pub now: i64,
    pub hz: i64,
}

/// A comparison with a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    Eq,
    Ne,
    Lt,
    Gt,
}

/// What a match asks of an element it found.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Ask {
    /// The packet's bytes where it is a packet that asks.
    pub bytes: Option<u64>,
    /// `! --update-counters`.
    pub still: bool,
    /// `--packets-…`.
    pub packets_are: Option<(Op, u64)>,
    /// `--bytes-…`.
    pub bytes_are: Option<(Op, u64)>,
}

fn compares(counter: u64, asked: Option<(Op, u64)>) -> bool {
    match asked {
        None => true,
        Some((Op::Eq, n)) => counter == n,
        Some((Op::Ne, n)) => counter != n,
        Some((Op::Lt, n)) => counter < n,
        Some((Op::Gt, n)) => counter > n,
    }
}

impl Ext {
    /// `ip_set_timeout_expired`.
    pub(super) fn expired(&self, with: With, ticks: Ticks) -> bool {
        with.timeout.is_some() && self.timeout != 0 && self.timeout < ticks.now
    }
    /// `ip_set_timeout_set`.
    pub(super) fn set_timeout(&mut self, seconds: u32, ticks: Ticks) {
        self.timeout = match seconds {
            0 => 0,
            // Never the tick that means for ever.
            s => match ticks.now + i64::from(s) * ticks.hz {
                0 => -1,
                tick => tick,
            },
        };
    }
    /// What is left, as a listing has it (`ip_set_timeout_get`).
    pub(super) fn left(&self, ticks: Ticks) -> u32 {
        match self.timeout {
            0 => 0,
            tick => ((tick - ticks.now) / ticks.hz).max(1) as u32,
        }
    }
    /// Everything but the timeout, which is set last.
    pub(super) fn begin(&mut self, with: With, new: &New<'_>) {
        if with.counters {
            self.bytes = new.bytes.unwrap_or(self.bytes);
            self.packets = new.packets.unwrap_or(self.packets);
        }
        if with.comments {
            self.comment = new.comment.filter(|c| !c.is_empty()).map(Box::from);
        }
        if with.skbinfo {
            self.skb = new.skb;
        }
    }
    /// `ip_set_match_extensions`; what `--map-set` wants goes to `info`.
    pub(super) fn matches(&mut self, with: With, ask: &Ask, ticks: Ticks, info: &mut Skbinfo) -> bool {
        if self.expired(with, ticks) {
            return false;
        }
        if with.counters {
            if let (Some(bytes), false) = (ask.bytes, ask.still) {
                self.bytes = self.bytes.wrapping_add(bytes);
                self.packets = self.packets.wrapping_add(1);
            }
            if !(compares(self.packets, ask.packets_are) && compares(self.bytes, ask.bytes_are)) {
                return false;
            }
        }
        if with.skbinfo {
            *info = self.skb;
        }
        true
    }
    /// What a listing says of it.
    pub(super) fn show(&self, with: With, ticks: Ticks, filled: bool, out: &mut Attributes) {
        if with.timeout.is_some() {
            out.timeout = Some(if filled { self.left(ticks) } else { self.timeout as u32 });
        }
        if with.counters {
            (out.packets, out.bytes) = (Some(self.packets), Some(self.bytes));
        }
        out.comment = self.comment.as_deref().map(str::to_owned);
        if with.skbinfo {
            let s = self.skb;
            out.skbmark = (s.mark != 0 || s.mask != 0).then_some((s.mark, s.mask));
            out.skbprio = (s.prio != 0).then_some(s.prio);
            out.skbqueue = (s.queue != 0).then_some(s.queue);
        }
    }
    /// Bytes that its comment takes besides (`struct ip_set_comment_rcu`).
    pub(super) fn comment_size(&self) -> u64 {
        self.comment.as_ref().map_or(0, |c| 16 + c.len() as u64 + 1)
    }
}

impl With {
    /// Bytes of an element with all it carries (`ip_set_elem_len`).
    pub(super) fn size(self, (len, align): (u64, u64)) -> u64 {
        let up = |n: u64, to: u64| n.div_ceil(to) * to;
        let (mut len, mut most) = (len, align.max(1));
        for (there, size, align) in [
            (self.counters, 16, 8),
            (self.timeout.is_some(), 8, 8),
            (self.skbinfo, 16, 4),
            (self.comments, 8, 8),
        ] {
            if there {
                most = most.max(align);
                len = up(len, align) + size;
            }
        }
        up(len, most)
    }
}
