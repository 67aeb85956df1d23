//! Sets of type `list:set`: sets in an order.
//!
//! Follows: linux v6.12 `net/netfilter/ipset/ip_set_list_set.c`.

use super::bitmap::period;
use super::ext::{Ext, New, Ticks, With};
use super::hash::Flags;
use penstock_lang::ipset::Error;

/// Where an element is to stand, or stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Beside {
    Anywhere,
    /// Before the set of this number.
    Before(u32),
    After(u32),
}

/// A set of type `list:set`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct List {
    pub size: u32,
    pub with: With,
    /// Numbers of sets, and what each carries.
    pub members: Vec<(u32, Ext)>,
    sweep: i64,
}

impl List {
    pub(super) fn new(size: u32, with: With, ticks: Ticks) -> List {
        List { size, with, members: Vec::new(), sweep: ticks.now + period(with, ticks) }
    }

    /// `set_cleanup_entries`.
    fn sweep_out(&mut self, now: i64) {
        let (with, ticks) = (self.with, Ticks { now, hz: 1 });
        self.members.retain(|(_, ext)| !ext.expired(with, ticks));
    }
    /// What the timer has done until now.
    pub(super) fn catch_up(&mut self, ticks: Ticks) {
        if self.with.timeout.is_some() && ticks.now >= self.sweep {
            let period = period(self.with, ticks);
            let last = self.sweep + (ticks.now - self.sweep) / period * period;
            self.sweep_out(last);
            self.sweep = last + period;
        }
    }
    fn position(&self, set: u32) -> Option<usize> {
        self.members.iter().position(|m| m.0 == set)
    }

    /// `list_set_uadd`, behind `set_cleanup_entries`.
    pub(super) fn add(
        &mut self,
        set: u32,
        beside: Beside,
        new: &New<'_>,
        flags: Flags,
        ticks: Ticks,
    ) -> Result<(), Error> {
        self.sweep_out(ticks.now);
        let place = match beside {
            Beside::Anywhere => self.members.len(),
            Beside::Before(other) => self.position(other).ok_or(Error::RefExist)?,
            Beside::After(other) => self.position(other).ok_or(Error::RefExist)? + 1,
        };
        let with = self.with;
        if let Some(at) = self.position(set) {
            if !flags.exist {
                return Err(Error::Exist);
            }
            let ext = &mut self.members[at].1;
            ext.begin(with, new);
            ext.set_timeout(new.timeout, ticks);
            return Ok(());
        }
        let mut ext = Ext::default();
        ext.begin(with, new);
        ext.set_timeout(new.timeout, ticks);
        self.members.insert(place, (set, ext));
        Ok(())
    }

    /// Whether an element stands where it is said to.
    fn stands(&self, at: usize, beside: Beside) -> bool {
        match beside {
            Beside::Anywhere => true,
            Beside::Before(other) => self.members.get(at + 1).is_some_and(|m| m.0 == other),
            Beside::After(other) => at > 0 && self.members[at - 1].0 == other,
        }
    }

    /// `list_set_udel`.
    pub(super) fn del(&mut self, set: u32, beside: Beside, ticks: Ticks) -> Result<(), Error> {
        self.sweep_out(ticks.now);
        match self.position(set) {
            Some(at) if self.stands(at, beside) => {
                self.members.remove(at);
                Ok(())
            }
            Some(_) => Err(Error::RefExist),
            None if beside == Beside::Anywhere => Err(Error::Exist),
            None => Err(Error::RefExist),
        }
    }

    /// `list_set_utest`.
    pub(super) fn test(&self, set: u32, beside: Beside, ticks: Ticks) -> bool {
        let with = self.with;
        let at = self.members.iter().position(|(id, ext)| *id == set && !ext.expired(with, ticks));
        at.is_some_and(|at| self.stands(at, beside))
    }

    /// Bytes that the kernel says it takes (`list_set_memsize`).
    pub(super) fn memory(&self) -> u64 {
        let comments: u64 = self.members.iter().map(|m| m.1.comment_size()).sum();
        80 + self.members.len() as u64 * self.with.size((48, 8)) + comments
    }
}
