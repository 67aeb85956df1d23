//! What belongs to a key: a hash table, as the kernel has one for each such purpose (`nf_conntrack_hash`, `hash` of `xt_hashlimit`).
//!
//! Differs: the hash is always the same, where the kernel draws one at boot; nothing that can be seen hangs on it.

/// Places at first, a power of two.
const LEAST: usize = 16;

/// What something is found by.
pub(super) trait Key: Copy + Eq {
    /// All of it, in words.
    fn words(&self) -> [u64; 5];
}

/// Values by key: each is in the first free place from the one that its key's hash names.
#[derive(Clone, Debug)]
pub(super) struct Places<K, V> {
    places: Vec<Option<(K, V)>>,
    len: usize,
}

impl<K, V> Default for Places<K, V> {
    fn default() -> Places<K, V> {
        Places { places: Vec::new(), len: 0 }
    }
}

impl<K: Key, V: PartialEq> PartialEq for Places<K, V> {
    fn eq(&self, other: &Places<K, V>) -> bool {
        self.len == other.len && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

fn hash(words: [u64; 5]) -> u64 {
    let mixed = words.into_iter().fold(0u64, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    });
    mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20
}

impl<K: Key, V> Places<K, V> {
    fn home(&self, key: &K) -> usize {
        hash(key.words()) as usize & (self.places.len() - 1)
    }
    fn after(&self, place: usize) -> usize {
        (place + 1) & (self.places.len() - 1)
    }
    /// Where a key is, or would be.
    fn find(&self, key: &K) -> usize {
        let mut at = self.home(key);
        while self.places[at].as_ref().is_some_and(|(other, _)| other != key) {
            at = self.after(at);
        }
        at
    }
    /// What belongs to a key.
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        if self.len == 0 {
            return None;
        }
        self.places[self.find(key)].as_ref().map(|(_, value)| value)
    }
    /// The same, to be changed.
    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        if self.len == 0 {
            return None;
        }
        let at = self.find(key);
        self.places[at].as_mut().map(|(_, value)| value)
    }
    /// Enters a key, in place of what belonged to it.
    pub(super) fn insert(&mut self, key: K, value: V) {
        if (self.len + 1) * 2 > self.places.len() {
            let size = (self.places.len() * 2).max(LEAST);
            let empty = std::iter::repeat_with(|| None).take(size).collect();
            let old = std::mem::replace(&mut self.places, empty);
            for entry in old.into_iter().flatten() {
                let at = self.find(&entry.0);
                self.places[at] = Some(entry);
            }
        }
        let at = self.find(&key);
        self.len += usize::from(self.places[at].is_none());
        self.places[at] = Some((key, value));
    }
    /// Takes a key out. Those behind it that its place kept from theirs move up.
    pub(super) fn remove(&mut self, key: &K) {
        if self.len == 0 {
            return;
        }
        let mut gap = self.find(key);
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
    /// All of them, in no order that means anything.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.places.iter().flatten().map(|(key, value)| (key, value))
    }
    /// The same, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&K, &mut V)> {
        self.places.iter_mut().flatten().map(|(key, value)| (&*key, value))
    }
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::super::conntrack::Tuple;
    use super::*;
    use std::collections::BTreeMap;

    /// Whatever comes and goes: what an ordered map says.
    #[test]
    fn it_answers_as_a_map_does() {
        let mut dice = penstock_model::Rng::named(3, "tuples");
        let (mut tuples, mut map) = (Places::default(), BTreeMap::new());
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
                assert_eq!(tuples.get(&asked), map.get(&asked));
            }
        }
        let mut again = Places::default();
        map.iter().rev().for_each(|(tuple, id)| again.insert(*tuple, *id));
        assert_eq!(tuples, again, "the order of coming does not matter");
        again.remove(map.keys().next().unwrap());
        assert_ne!(tuples, again);
    }
}
