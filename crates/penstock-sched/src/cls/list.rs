//! Filters by handle that keep the order they were made in, and the numbers given to them.

use std::collections::BTreeMap;

/// Filters of one priority.
pub(super) struct List<F> {
    /// By the order they were made in.
    filters: BTreeMap<u64, (u32, F)>,
    /// Where a handle is.
    places: BTreeMap<u32, u64>,
    made: u64,
    /// No handle from 1 up to this one is free.
    full: u32,
}

impl<F> List<F> {
    pub fn new() -> List<F> {
        List { filters: BTreeMap::new(), places: BTreeMap::new(), made: 0, full: 0 }
    }
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty()
    }
    pub fn has(&self, handle: u32) -> bool {
        self.places.contains_key(&handle)
    }
    pub fn get(&self, handle: u32) -> Option<&F> {
        self.filters.get(self.places.get(&handle)?).map(|(_, f)| f)
    }
    pub fn get_mut(&mut self, handle: u32) -> Option<&mut F> {
        self.filters.get_mut(self.places.get(&handle)?).map(|(_, f)| f)
    }
    /// `idr_alloc_u32` from 1 on: the lowest number that is free.
    pub fn free_handle(&mut self) -> u32 {
        while self.places.contains_key(&(self.full + 1)) {
            self.full += 1;
        }
        self.full + 1
    }
    /// Adds a filter behind the others, or puts it in the place of the one with its handle, which it gives back.
    pub fn insert(&mut self, handle: u32, filter: F) -> Option<F> {
        if let Some(place) = self.get_mut(handle) {
            return Some(std::mem::replace(place, filter));
        }
        self.made += 1;
        self.places.insert(handle, self.made);
        self.filters.insert(self.made, (handle, filter));
        None
    }
    pub fn remove(&mut self, handle: u32) -> Option<F> {
        let place = self.places.remove(&handle)?;
        if handle > 0 && handle <= self.full {
            self.full = handle - 1;
        }
        self.filters.remove(&place).map(|(_, f)| f)
    }
    /// Oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, &F)> {
        self.filters.values().map(|(handle, f)| (*handle, f))
    }
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut F> {
        self.filters.values_mut().map(|(_, f)| f)
    }
    /// By handle.
    pub fn by_handle(&self) -> impl Iterator<Item = (u32, &F)> {
        self.places.iter().filter_map(|(handle, place)| Some((*handle, &self.filters.get(place)?.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_handle_is_given() {
        let mut list = List::new();
        for n in 1..=3 {
            assert_eq!(list.free_handle(), n);
            list.insert(n, n);
        }
        list.insert(9, 9);
        assert_eq!(list.remove(2), Some(2));
        assert_eq!(list.free_handle(), 2);
        list.insert(2, 22);
        assert_eq!(list.insert(3, 33), Some(3));
        assert_eq!(list.iter().map(|(h, f)| (h, *f)).collect::<Vec<_>>(), [(1, 1), (3, 33), (9, 9), (2, 22)]);
        assert_eq!(list.by_handle().map(|(h, _)| h).collect::<Vec<_>>(), [1, 2, 3, 9]);
        assert_eq!(list.free_handle(), 4);
    }
}
