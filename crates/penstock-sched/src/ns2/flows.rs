//! Accounts of flows: a table that costs no allocation once it is as large as it gets.

use penstock_packet::{L3, L4, Skb};

/// What tells flows apart: addresses, protocol and ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Key {
    src: u128,
    dst: u128,
    protocol: u16,
    ports: (u16, u16),
}

impl Key {
    /// That of a packet.
    pub(super) fn of(skb: &Skb) -> Key {
        let ports = match skb.l4 {
            L4::Tcp(t) => (t.sport, t.dport),
            L4::Udp(u) => (u.sport, u.dport),
            _ => (0, 0),
        };
        let (src, dst, protocol) = match &skb.l3 {
            L3::Ipv4(h) => (h.src.to_bits().into(), h.dst.to_bits().into(), h.protocol.into()),
            L3::Ipv6(h) => (h.src.to_bits(), h.dst.to_bits(), h.protocol().into()),
            _ => (0, 0, skb.protocol()),
        };
        Key { src, dst, protocol, ports }
    }
    fn hash(&self) -> usize {
        let fold = |n: u128| (n ^ n >> 64) as u64;
        let ports = u64::from(self.ports.0) << 32 | u64::from(self.ports.1) << 16 | u64::from(self.protocol);
        let step = |h: u64, word: u64| (h ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let h = step(step(step(0, fold(self.src)), fold(self.dst)), ports);
        (h ^ h >> 32) as usize
    }
}

/// Accounts by flow, by open addressing: a flow stands at its hash's place or next to it, with no gap between.
#[derive(Debug)]
pub(super) struct Flows<T> {
    places: Vec<Option<(Key, T)>>,
    len: usize,
}

impl<T: Copy + Default> Flows<T> {
    /// With room for so many; more make it grow.
    pub(super) fn with_room(flows: usize) -> Flows<T> {
        Flows { places: vec![None; (2 * flows.max(4)).next_power_of_two()], len: 0 }
    }
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }
    /// Where a flow stands, or would.
    fn place(&self, key: &Key) -> usize {
        let mask = self.places.len() - 1;
        let mut at = key.hash() & mask;
        while self.places[at].as_ref().is_some_and(|(k, _)| k != key) {
            at = (at + 1) & mask;
        }
        at
    }
    /// A flow's account, where it has one.
    pub(super) fn get(&self, key: &Key) -> Option<T> {
        self.places[self.place(key)].as_ref().map(|(_, account)| *account)
    }
    /// The same, to change it.
    pub(super) fn get_mut(&mut self, key: &Key) -> Option<&mut T> {
        let at = self.place(key);
        self.places[at].as_mut().map(|(_, account)| account)
    }
    /// A flow's account, opened where there is none.
    pub(super) fn entry(&mut self, key: Key) -> &mut T {
        if 2 * (self.len + 1) > self.places.len() {
            let wider = vec![None; 2 * self.places.len()];
            for entry in std::mem::replace(&mut self.places, wider).into_iter().flatten() {
                let at = self.place(&entry.0);
                self.places[at] = Some(entry);
            }
        }
        let at = self.place(&key);
        self.len += usize::from(self.places[at].is_none());
        &mut self.places[at].get_or_insert_with(|| (key, T::default())).1
    }
    /// Closes a flow's account.
    pub(super) fn remove(&mut self, key: &Key) {
        let mask = self.places.len() - 1;
        let mut gap = self.place(key);
        if self.places[gap].take().is_none() {
            return;
        }
        self.len -= 1;
        // Those behind it move up, unless they would come to stand before their own place.
        let mut at = (gap + 1) & mask;
        while let Some((k, _)) = &self.places[at] {
            let home = k.hash() & mask;
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask {
                self.places.swap(gap, at);
                gap = at;
            }
            at = (at + 1) & mask;
        }
    }
    /// Closes the accounts that are not to be kept. One that moves up may be asked for twice.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let mut at = 0;
        while at < self.places.len() {
            match self.places[at] {
                Some((key, account)) if !keep(&account) => self.remove(&key),
                _ => at += 1,
            }
        }
    }
    /// All accounts, in an order that says nothing.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().flatten().map(|(_, account)| account)
    }
    /// Closes all of them.
    pub(super) fn clear(&mut self) {
        self.places.fill(None);
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;
    use penstock_model::Rng;
    use std::collections::BTreeMap;

    fn key(n: u16) -> Key {
        let mut p = packet(0, 100);
        if let L4::Udp(u) = &mut p.l4 {
            u.sport = n;
        }
        Key::of(&p)
    }

    #[test]
    fn it_is_a_map() {
        let mut rng = Rng::named(3, "flows");
        let (mut flows, mut map) = (Flows::<u32>::with_room(4), BTreeMap::new());
        for step in 0..20_000u32 {
            let n = rng.below(60) as u16;
            if rng.below(3) == 0 {
                flows.remove(&key(n));
                map.remove(&n);
            } else {
                *flows.entry(key(n)) = step;
                map.insert(n, step);
            }
            assert_eq!((flows.get(&key(n)), flows.len()), (map.get(&n).copied(), map.len()));
        }
        assert!((0..60).all(|n| flows.get(&key(n)) == map.get(&n).copied()));
        let (mut all, mut sum) = (0, 0u64);
        flows.iter_mut().for_each(|a| (all, sum) = (all + 1, sum + u64::from(*a)));
        assert_eq!((all, sum), (map.len(), map.values().map(|&v| u64::from(v)).sum()));
        flows.retain(|account| account % 2 == 0);
        assert!((0..60).all(|n| flows.get(&key(n)) == map.get(&n).copied().filter(|v| v % 2 == 0)));
        flows.clear();
        assert_eq!((flows.len(), flows.get_mut(&key(1))), (0, None));
    }
}
