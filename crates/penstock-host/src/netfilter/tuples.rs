//! Which connection a tuple belongs to: a hash table, as the kernel's `nf_conntrack_hash`.
//!
//! Differs: the hash is always the same, where the kernel draws one at boot; nothing that can be seen hangs on it.

use super::conntrack::Tuple;

/// Places at first, a power of two.
const LEAST: usize = 16;

/// Connections by tuple: each is in the first free place from the one that its hash names.
#[derive(Clone, Debug, Default)]
pub(super) struct Tuples {
    places: Vec<Option<(Tuple, u32)>>,
    len: usize,
}

impl PartialEq for Tuples {
    fn eq(&self, other: &Tuples) -> bool {
        self.len == other.len && self.places.iter().flatten().all(|(tuple, id)| other.get(tuple) == Some(*id))
    }
}

fn hash(tuple: &Tuple) -> u64 {
    let ports = u64::from(tuple.zone) << 48
        | u64::from(tuple.protocol) << 32
        | u64::from(tuple.sport) << 16
        | u64::from(tuple.dport);
    let words =
        [tuple.src as u64, (tuple.src >> 64) as u64, tuple.dst as u64, (tuple.dst >> 64) as u64, ports];
    let mixed = words.into_iter().fold(0u64, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    });
    mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}

impl Tuples {
    fn home(&self, tuple: &Tuple) -> usize {
        hash(tuple) as usize & (self.places.len() - 1)
    }
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }
    /// Where a tuple is, or would be.
    fn find(&self, tuple: &Tuple) -> usize {
        let mut at = self.home(tuple);
        while self.places[at].is_some_and(|(other, _)| other != *tuple) {
            at = self.after(at);
        }
        at
    }
    /// The connection of a tuple.
    pub(super) fn get(&self, tuple: &Tuple) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        self.places[self.find(tuple)].map(|(_, id)| id)
    }
    /// Enters a tuple, in place of what it belonged to.
    pub(super) fn insert(&mut self, tuple: Tuple, id: u32) {
        if (self.len + 1) * 2 > self.places.len() {
            let size = (self.places.len() * 2).max(LEAST);
            let old = std::mem::replace(&mut self.places, vec![None; size]);
            for entry in old.into_iter().flatten() {
                let at = self.find(&entry.0);
                self.places[at] = Some(entry);
            }
        }
        let at = self.find(&tuple);
        self.len += usize::from(self.places[at].is_none());
        self.places[at] = Some((tuple, id));
    }
    /// Takes a tuple out. Those behind it that its place kept from theirs move up.
    pub(super) fn remove(&mut self, tuple: &Tuple) {
        if self.len == 0 {
            return;
        }
        let mut gap = self.find(tuple);
        if self.places[gap].take().is_none() {
            return;
        }
        self.len -= 1;
        let mut at = self.after(gap);
        while let Some((other, _)) = &self.places[at] {
            let mask = self.places.len() - 1;
            let from_home = at.wrapping_sub(self.home(other)) & mask;
            if from_home >= at.wrapping_sub(gap) & mask {
                self.places.swap(gap, at);
                gap = at;
            }
            at = self.after(at);
        }
    }
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Whatever comes and goes: what an ordered map says.
    #[test]
    fn it_answers_as_a_map_does() {
        let mut dice = penstock_model::Rng::named(3, "tuples");
        let (mut tuples, mut map) = (Tuples::default(), BTreeMap::new());
        for step in 0..20_000u32 {
            let port = dice.below(700) as u16;
            let tuple = Tuple { src: 1, dst: 2, protocol: 17, sport: port, dport: port % 7, zone: port % 3 };
            match dice.below(5) {
                0 | 1 => {
                    tuples.remove(&tuple);
                    map.remove(&tuple);
                }
                _ => {
                    tuples.insert(tuple, step);
                    map.insert(tuple, step);
                }
            }
            assert_eq!(tuples.len(), map.len());
            let other = Tuple { sport: port ^ 1, dport: (port ^ 1) % 7, ..tuple };
            for asked in [tuple, other] {
                assert_eq!(tuples.get(&asked), map.get(&asked).copied());
            }
        }
        let mut again = Tuples::default();
        map.iter().rev().for_each(|(tuple, id)| again.insert(*tuple, *id));
        assert_eq!(tuples, again, "the order of coming does not matter");
        again.remove(map.keys().next().unwrap());
        assert_ne!(tuples, again);
    }
}
