//! What keeps a connection from sending faster, and for how long.
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c `tcp_chrono_start`, `tcp_chrono_stop`, `tcp_cwnd_validate`, `tcp_write_xmit`; net/ipv4/tcp.c
//! `tcp_get_info_chrono_stats`.
//! Differs: none known.

use super::Endpoint;
use crate::info::State;

/// What it is (`enum tcp_chrono`): the later of them stand above those before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum Chrono {
    #[default]
    Unspec,
    Busy,
    RwndLimited,
    SndbufLimited,
}

/// Times that are counted, jiffies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chronos {
    since: u64,
    stat: [u32; 3],
    now: Chrono,
}

impl Chronos {
    fn set(&mut self, new: Chrono, jiffies: u64) {
        if self.now > Chrono::Unspec {
            self.stat[self.now as usize - 1] += (jiffies - self.since) as u32;
        }
        (self.now, self.since) = (new, jiffies);
    }
    /// Times of having data to send, of waiting for the receiver's window, of waiting for the send buffer, up to a jiffy.
    pub(super) fn up_to(mut self, jiffies: u64) -> [u32; 3] {
        self.set(self.now, jiffies.max(self.since));
        [self.stat.iter().sum(), self.stat[1], self.stat[2]]
    }
}

impl Endpoint {
    //= linux v6.12 net/ipv4/tcp_output.c tcp_chrono_start
    #[inline]
    pub(super) fn chrono_start(&mut self, what: Chrono) {
        if what > self.chrono.now && self.tx.p.today {
            self.chrono.set(what, self.tx.clock.jiffies);
        }
    }
    //= linux v6.12 net/ipv4/tcp_output.c tcp_chrono_stop
    pub(super) fn chrono_stop(&mut self, what: Chrono) {
        let jiffies = self.tx.clock.jiffies;
        let idle = self.tx.q.packets_out() == 0 && !self.tx.space.has_unsent();
        if idle {
            self.chrono.set(Chrono::Unspec, jiffies);
        } else if what == self.chrono.now {
            self.chrono.set(Chrono::Busy, jiffies);
        }
    }
    /// All that was out is acknowledged.
    #[inline]
    pub(super) fn chrono_acked(&mut self) {
        if self.chrono.now > Chrono::Unspec {
            self.chrono_stop(Chrono::Busy);
        }
    }
    /// What follows from a push that is over; `limited`: the congestion window held it.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_write_xmit, tcp_cwnd_validate
    #[inline]
    pub(super) fn chrono_pushed(&mut self, sent: bool, limited: bool) {
        if std::mem::take(&mut self.push.rwnd_limited) {
            self.chrono_start(Chrono::RwndLimited);
        } else if self.chrono.now == Chrono::RwndLimited {
            self.chrono_stop(Chrono::RwndLimited);
        }
        let starved = (sent || limited)
            && self.tx.unsent.is_waited_for()
            // The segments of a write that went one by one have gone before it waited.
            && !self.push.ones
            && !self.tx.cc.is_limited()
            && !self.tx.space.has_unsent()
            && matches!(self.state, State::Established | State::CloseWait);
        if starved {
            self.chrono_start(Chrono::SndbufLimited);
        }
    }
    /// A writer need not wait any more.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_check_space
    #[inline]
    pub(super) fn chrono_room(&mut self) {
        if self.chrono.now == Chrono::SndbufLimited && !self.tx.unsent.is_waited_for() {
            self.chrono_stop(Chrono::SndbufLimited);
        }
    }
}
