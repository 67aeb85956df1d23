//! Flows that have had a packet.
//!
//! The kernel allocates all flows when the qdisc is made. Here a flow takes memory from its first packet on: of a thousand flows behind a class most
//! have none ever. A hash table with open addressing leads from a flow's number to its place.

/// Places of flows, by their numbers.
#[derive(Default)]
pub(in crate::sch) struct Table<F> {
    /// In the order of their first packets, each with its number.
    flows: Vec<(u32, F)>,
    /// Number and place plus one; 0 where nothing is. A power of two, at most half of it in use.
    index: Vec<(u32, u32)>,
}

impl<F: Default> Table<F> {
    /// The place of a flow, which it keeps.
    #[inline]
    pub(in crate::sch) fn place(&mut self, number: u32) -> u32 {
        self.entry(number).0
    }
    /// The same, and whether this is the flow's first packet.
    #[inline]
    pub(in crate::sch) fn entry(&mut self, number: u32) -> (u32, bool) {
        if let Some(mask) = self.index.len().checked_sub(1) {
            let mut at = Table::<F>::hash(number) & mask;
            loop {
                match self.index[at] {
                    (_, 0) => break,
                    (there, place) if there == number => return (place - 1, false),
                    _ => at = (at + 1) & mask,
                }
            }
        }
        (self.insert(number), true)
    }
    #[inline]
    fn hash(number: u32) -> usize {
        (number.wrapping_mul(0x9e37_79b1) >> 12) as usize
    }
    /// A flow's first packet.
    #[cold]
    fn insert(&mut self, number: u32) -> u32 {
        self.flows.push((number, F::default()));
        if self.flows.len() * 2 > self.index.len() {
            let size = (self.flows.len() * 4).next_power_of_two();
            self.index = vec![(0, 0); size];
            (0..self.flows.len()).for_each(|place| self.enter(place));
        } else {
            self.enter(self.flows.len() - 1);
        }
        self.flows.len() as u32 - 1
    }
    fn enter(&mut self, place: usize) {
        let (number, mask) = (self.flows[place].0, self.index.len() - 1);
        let mut at = Table::<F>::hash(number) & mask;
        while self.index[at].1 != 0 {
            at = (at + 1) & mask;
        }
        self.index[at] = (number, place as u32 + 1);
    }
    /// The flow at a place.
    #[inline]
    pub(in crate::sch) fn at(&mut self, place: u32) -> &mut F {
        &mut self.flows[place as usize].1
    }
    /// All, in the order of their places.
    pub(in crate::sch) fn iter(&self) -> impl Iterator<Item = (u32, &F)> {
        self.flows.iter().map(|(number, flow)| (*number, flow))
    }
    /// All, in the order of their places.
    pub(in crate::sch) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut F)> {
        self.flows.iter_mut().map(|(number, flow)| (*number, flow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Rng;

    #[test]
    fn a_flow_keeps_its_place() {
        let mut dice = Rng::named(1, "flows");
        let mut table: Table<u32> = Table::default();
        let mut places: Vec<Option<u32>> = vec![None; 65_536];
        assert_eq!(size_of::<Table<u32>>(), 48, "an empty table owns no memory");
        for round in 0..200_000u32 {
            let number = dice.below(if round < 1000 { 40 } else { 65_536 });
            let place = table.place(number);
            assert_eq!(*places[number as usize].get_or_insert(place), place);
            *table.at(place) += 1;
        }
        assert_eq!(table.iter().map(|(_, count)| u64::from(*count)).sum::<u64>(), 200_000);
        assert_eq!(table.iter().count(), places.iter().flatten().count());
        assert!(table.iter_mut().all(|(number, _)| places[number as usize].is_some()));
    }
}
