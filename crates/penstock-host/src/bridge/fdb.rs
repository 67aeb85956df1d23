//! Who is behind which port of a bridge.
//!
//! Follows: linux v6.12 `net/bridge/br_fdb.c` `br_fdb_update`, `fdb_add_local`, `br_fdb_delete_by_port`; v2.6.35 the same file.
//! Differs: what has aged is gone at that nanosecond, not when the work queue comes by.

use super::{Bridge, Mac};
use penstock_model::{Span, Time};

/// Where an address is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry {
    /// The port; `None` for the bridge's own address.
    pub port: Option<u32>,
    /// An address of the machine: its frames go up.
    pub local: bool,
    /// When a frame of it was last seen.
    updated: Time,
    /// Place among all by age.
    made: u64,
}

/// A line of `brctl showmacs`.
pub(crate) struct Heard {
    /// Address.
    pub mac: Mac,
    /// Number of the port, from 1.
    pub port: usize,
    /// Whether it is the machine's.
    pub local: bool,
    /// Since when nothing was heard of it.
    pub age: Span,
}

impl Bridge {
    /// Forgets who was heard: behind a port, or behind all.
    pub(crate) fn flush(&mut self, port: Option<u32>) {
        self.fdb.retain(|_, e| e.local || port.is_some() && e.port != port);
    }
    /// What is known of an address, where it has not aged.
    pub(super) fn find(&mut self, mac: Mac, now: Time) -> Option<Entry> {
        let entry = *self.fdb.get(&mac)?;
        if self.has_aged(&entry, now) {
            self.fdb.remove(&mac);
            return None;
        }
        Some(entry)
    }
    fn has_aged(&self, entry: &Entry, now: Time) -> bool {
        !entry.local && entry.updated + self.ageing <= now
    }
    /// `br_fdb_update`.
    pub(super) fn learn(&mut self, mac: Mac, port: u32, now: Time) {
        if self.ageing == Span::ZERO {
            return;
        }
        match self.fdb.get_mut(&mac) {
            Some(known) if known.local => {}
            Some(known) => (known.port, known.updated) = (Some(port), now),
            None => self.add(mac, Entry { port: Some(port), local: false, updated: now, made: 0 }),
        }
    }
    fn add(&mut self, mac: Mac, entry: Entry) {
        self.made += 1;
        self.fdb.insert(mac, Entry { made: self.made, ..entry });
    }
    /// `fdb_add_local`: of several with one address the first has it.
    pub(super) fn add_local(&mut self, mac: Mac, port: Option<u32>, now: Time) {
        if mac != [0; 6] && mac[0] & 1 == 0 && !self.fdb.get(&mac).is_some_and(|e| e.local) {
            self.add(mac, Entry { port, local: true, updated: now, made: 0 });
        }
    }
    /// Forgets who was behind a port; `all`: its own address too.
    pub(super) fn forget(&mut self, port: Option<u32>, all: bool) {
        self.fdb.retain(|_, e| e.port != port || e.local && !all);
    }
    /// Who was heard, the newest first.
    pub(crate) fn heard(&self, now: Time) -> Vec<Heard> {
        let mut all: Vec<_> = self.fdb.iter().filter(|(_, e)| !self.has_aged(e, now)).collect();
        all.sort_by_key(|(_, e)| std::cmp::Reverse(e.made));
        let number = |ifindex| self.ports.iter().rev().position(|p| p.ifindex == ifindex).map(|n| n + 1);
        let line = |(mac, e): (&Mac, &Entry)| {
            let age = if e.local { Span::ZERO } else { now - e.updated };
            Some(Heard { mac: *mac, port: number(e.port?)?, local: e.local, age })
        };
        all.into_iter().filter_map(line).collect()
    }
}
