//! Connections that a program enters, changes and asks for (`conntrack -I`, `-U`, `-G`).
//!
//! Follows: linux v6.12 `net/netfilter/nf_conntrack_netlink.c` `ctnetlink_create_conntrack`, `ctnetlink_change_conntrack`, `ctnetlink_change_status`,
//! `nf_conntrack_proto_tcp.c` `nlattr_to_tcp`.

use super::{Connection, Tracking, Tuple, status, tcp};
use penstock_model::{KernelError, Time};

/// EBUSY.
const BUSY: i32 = 16;

/// What a program says of a connection that is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct New {
    /// Both directions.
    pub tuples: [Tuple; 2],
    /// How long it is kept, s.
    pub timeout: u32,
    /// Mark.
    pub mark: u32,
    /// Bits of [`status`], where they are said.
    pub status: Option<u16>,
    /// TCP's state.
    pub tcp: Option<u8>,
}

/// What a program changes of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Change {
    /// How long it is kept from now on, s.
    pub timeout: Option<u32>,
    /// Mark and the bits of it that stay.
    pub mark: Option<(u32, u32)>,
    /// Bits of [`status`] that are set.
    pub status: Option<u16>,
    /// TCP's state.
    pub tcp: Option<u8>,
}

/// The bits that no program changes, if any of them is to be other than it is.
fn status_fits(now: u16, wanted: u16) -> bool {
    let gone = now & !wanted;
    (now ^ wanted) & status::EXPECTED == 0 && gone & (status::SEEN_REPLY | status::ASSURED) == 0
}
const SETTABLE: u16 = status::SEEN_REPLY | status::ASSURED | status::FIXED_TIMEOUT;

impl Tracking {
    /// A tick so many seconds from now; no more than an `int` holds.
    fn later(&self, now: Time, seconds: u32) -> i64 {
        self.ticks(now) + (i64::from(seconds) * self.hz()).min(i64::from(i32::MAX))
    }
    /// The connection that has a tuple in either direction.
    pub(crate) fn having(&mut self, tuple: &Tuple, now: Time) -> Option<u32> {
        let now = self.ticks(now);
        self.find(tuple, now).map(|found| found.0)
    }
    /// Enters one that is not confirmed yet: what its addresses are translated to is still to be said.
    ///
    /// # Errors
    /// EEXIST, ENOMEM.
    pub(in crate::netfilter) fn make(&mut self, new: &New, now: Time) -> Result<u32, i32> {
        let tick = self.ticks(now);
        if new.tuples.iter().any(|t| self.find(t, tick).is_some()) {
            return Err(KernelError::EEXIST);
        }
        self.begin(new.tuples[0], new.tuples[1], tick).ok_or(KernelError::ENOMEM)
    }
    /// Puts it into the table.
    ///
    /// # Errors
    /// EBUSY where a bit is said that is the kernel's alone, EEXIST where its answers are another's.
    pub(in crate::netfilter) fn settle(&mut self, id: u32, new: &New, now: Time) -> Result<(), i32> {
        let expires = self.later(now, new.timeout);
        let Some(c) = self.connections.get_mut(&id) else { return Ok(()) };
        let done = match new.status {
            Some(said) if !status_fits(c.status, said) => Err(BUSY),
            _ if self.tuples.get(&c.tuples[1]).is_some() => Err(KernelError::EEXIST),
            said => {
                c.status |= said.unwrap_or(0) & SETTABLE | status::CONFIRMED;
                Ok(())
            }
        };
        if let Err(why) = done {
            self.forget(id);
            return Err(why);
        }
        let c = self.connections.get_mut(&id).expect("the connection at hand");
        (c.mark, c.expires, c.end) = (new.mark, expires, expires);
        if let Some(state) = new.tcp {
            c.tcp.say(state);
        }
        let (tuples, assured) = (c.tuples, c.has(status::ASSURED));
        self.ends.insert((expires, id));
        if !assured {
            self.loose.insert(id);
        }
        for tuple in tuples {
            self.tuples.insert(tuple, id);
        }
        Ok(())
    }
    /// Whether a change would change anything, as the program sees it.
    pub(crate) fn would_change(&self, id: u32, change: &Change, now: Time) -> bool {
        let Some(c) = self.connections.get(&id) else { return false };
        change.timeout.is_some_and(|t| i64::from(t) != self.seconds_left(c, now))
            || change.mark.is_some_and(|(value, keeps)| c.mark & keeps ^ value != c.mark)
            || change.status.is_some_and(|bits| c.status & bits != bits)
            || change.tcp.is_some_and(|state| c.tcp.state != state)
    }
    /// Changes a connection.
    ///
    /// # Errors
    /// EPERM where its time is fixed, EBUSY.
    pub(crate) fn change(&mut self, id: u32, change: &Change, now: Time) -> Result<(), i32> {
        let expires = change.timeout.map(|seconds| self.later(now, seconds));
        let Some(c) = self.connections.get_mut(&id) else { return Err(KernelError::ENOENT) };
        if let Some(expires) = expires {
            if c.has(status::FIXED_TIMEOUT) {
                return Err(KernelError::EPERM);
            }
            self.ends.remove(&(c.end, id));
            (c.expires, c.end) = (expires, expires);
            self.ends.insert((expires, id));
        }
        if let Some(bits) = change.status {
            if !status_fits(c.status, c.status | bits) {
                return Err(BUSY);
            }
            c.status |= bits & SETTABLE;
            if c.has(status::ASSURED) {
                self.loose.remove(&id);
            }
        }
        if let Some(state) = change.tcp {
            c.tcp.say(state);
        }
        if let Some((value, keeps)) = change.mark {
            c.mark = c.mark & keeps ^ value;
        }
        Ok(())
    }
    /// Those in the table by their numbers.
    pub(crate) fn numbered(&self, now: Time) -> Vec<(u32, Connection)> {
        let now = self.ticks(now);
        let there = |c: &Connection| c.has(status::CONFIRMED) && c.expires > now;
        self.connections.iter().filter(|(_, c)| there(c)).map(|(id, c)| (*id, c.clone())).collect()
    }
    /// Forgets one by its number.
    pub(crate) fn forget_numbered(&mut self, id: u32) {
        self.forget(id);
    }
    /// Nothing has been counted yet (`IPCTNL_MSG_CT_GET_CTRZERO`).
    pub(crate) fn zero(&mut self, id: u32) {
        if let Some(c) = self.connections.get_mut(&id) {
            (c.packets, c.bytes) = ([0; 2], [0; 2]);
        }
    }
    /// TCP's state by its name: `LISTEN` is what `SYN_SENT2` was once.
    pub(crate) fn tcp_state(name: &str) -> Option<u8> {
        let name = if name == "LISTEN" { "SYN_SENT2" } else { name };
        tcp::NAMES.iter().position(|n| *n == name).map(|at| at as u8)
    }
    /// The name of a connection's state of TCP.
    pub(crate) fn tcp_name(c: &Connection) -> &'static str {
        tcp::NAMES[usize::from(c.tcp.state)]
    }
    /// Its number.
    pub(crate) fn tcp_number(c: &Connection) -> u8 {
        c.tcp.state
    }
}
