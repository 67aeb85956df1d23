//! What a device showed at each sample, as rows of numbers.
//!
//! A device shows the same quantities in the same order until something is set up or counts for the first time. As long as it does, a
//! sample is a row of numbers in one place; the series, each in a place of its own, are made of them when somebody asks.

use crate::results::{Metric, Series};

/// The rows of one device.
#[derive(Default)]
pub(super) struct Layout {
    /// The quantities of a row: key and metric of their series, and where that stands.
    slots: Vec<(u64, Metric, u32)>,
    /// The instant of each row.
    instants: Vec<u32>,
    /// The values, row after row.
    values: Vec<i64>,
    /// How much of the row at hand is there; `None`: it is another than those before.
    filled: Option<usize>,
}

impl Layout {
    /// Begins a row.
    pub(super) fn begin(&mut self) {
        self.filled = (!self.slots.is_empty()).then_some(0);
    }
    /// The row's next value.
    #[inline]
    pub(super) fn put(&mut self, key: u64, metric: Metric, value: i64) {
        let Some(filled) = self.filled else { return };
        match self.slots.get(filled) {
            Some(&(k, m, _)) if (k, m) == (key, metric) => {
                self.values.push(value);
                self.filled = Some(filled + 1);
            }
            _ => self.filled = None,
        }
    }
    /// Ends the row of an instant; how many values its series have more, or `None` where it is none of these: then nothing of it is kept.
    pub(super) fn end(&mut self, at: usize, since: usize) -> Option<usize> {
        let slots = self.slots.len();
        if self.filled != Some(slots) {
            self.values.truncate(self.instants.len() * slots);
            return None;
        }
        self.instants.push(at as u32);
        // Those between stand still.
        Some(slots * (at - since))
    }
    /// From now on rows have these.
    pub(super) fn becomes(&mut self, slots: Vec<(u64, Metric, u32)>) {
        debug_assert!(self.instants.is_empty(), "what is there was filled in before");
        self.slots = slots;
    }
    /// Enters what the rows hold into their series.
    pub(super) fn fill(&self, series: &mut [Series]) {
        let width = self.slots.len();
        for (slot, &(.., place)) in self.slots.iter().enumerate() {
            let series = &mut series[place as usize];
            if let Some(&last) = self.instants.last() {
                series.values.reserve(last as usize + 1 - series.first - series.values.len());
            }
            for (row, &at) in self.instants.iter().enumerate() {
                stand_still(series, at as usize);
                series.values.push(self.values[row * width + slot]);
            }
        }
    }
    /// Forgets the rows, not what they are of.
    pub(super) fn clear(&mut self) {
        self.instants.clear();
        self.values.clear();
    }
}

/// A series goes on with its last value until this instant.
#[inline]
pub(super) fn stand_still(series: &mut Series, at: usize) {
    let wanted = at - series.first;
    if series.values.len() < wanted {
        let last = series.values.last().copied().unwrap_or(0);
        series.values.resize(wanted, last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Rng;

    /// A device that shows now these, now other quantities, and is left alone for a while: its series are those to which each value was added
    /// as it came.
    #[test]
    fn rows_are_the_series_they_stand_for() {
        const METRICS: [Metric; 4] = [Metric::Bytes, Metric::Drops, Metric::Backlog, Metric::Marks];
        let mut rows = 0;
        for seed in 0..200 {
            let mut rng = Rng::named(seed, "layouts");
            let mut any = |n: u64| rng.next_u64() % n;
            let (mut layout, mut made, mut lists) = (Layout::default(), Vec::new(), Vec::<Series>::new());
            let (mut shows, mut last) = (1, 0);
            for at in 0..50usize {
                if any(4) == 0 {
                    continue;
                }
                if any(6) == 0 {
                    shows = any(16);
                }
                let row: Vec<(u64, Metric, i64)> = (0..4)
                    .filter(|slot| shows >> slot & 1 == 1)
                    .map(|slot| (slot, METRICS[slot as usize], any(1000) as i64))
                    .collect();
                let mut places = Vec::new();
                for &(key, metric, value) in &row {
                    let place = lists.iter().position(|s| s.key == key).unwrap_or(lists.len());
                    if place == lists.len() {
                        let object = metric.as_str().to_owned();
                        lists.push(Series { host: None, key, object, metric, first: at, values: Vec::new() });
                        made.push(lists[place].clone());
                    }
                    stand_still(&mut lists[place], at);
                    lists[place].values.push(value);
                    places.push((key, metric, place as u32));
                }
                layout.begin();
                row.iter().for_each(|&(key, metric, value)| layout.put(key, metric, value));
                match layout.end(at, last) {
                    Some(more) => {
                        assert_eq!(more, row.len() * (at - last));
                        rows += 1;
                    }
                    None => {
                        layout.fill(&mut made);
                        layout.clear();
                        for (&(_, _, place), &(.., value)) in places.iter().zip(&row) {
                            stand_still(&mut made[place as usize], at);
                            made[place as usize].values.push(value);
                        }
                        layout.becomes(places);
                    }
                }
                last = at;
            }
            layout.fill(&mut made);
            assert_eq!(made, lists, "seed {seed}");
        }
        assert!(rows > 4000, "{rows}");
    }
}
