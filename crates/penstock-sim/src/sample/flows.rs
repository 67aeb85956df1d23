//! What each flow was like whenever something about it had changed, and the series that are made of that.
//!
//! A flow that moves would be a dozen lists that each grow by one value. It is one row instead; the series are made when somebody asks for them. The values of
//! a series at an instant are those of the latest row that has them.

use crate::results::{Metric, Series};

/// Metrics of a flow.
pub(super) const SLOTS: usize = 15;
/// Those from here on are of its connection, and end with it.
const OF_TCP: usize = 5;
const METRICS: [Metric; SLOTS] = [
    Metric::Goodput,
    Metric::Bytes,
    Metric::Drops,
    Metric::Marks,
    Metric::Owd,
    Metric::Cwnd,
    Metric::Srtt,
    Metric::Ssthresh,
    Metric::Rttvar,
    Metric::Rto,
    Metric::PacingRate,
    Metric::DeliveryRate,
    Metric::Sacked,
    Metric::Lost,
    Metric::Retrans,
];

/// The values of one instant, in the order of their metrics.
#[derive(Clone, Copy, Default)]
pub(super) struct Row {
    values: [i64; SLOTS],
    count: usize,
    /// The metrics that are there, and those that have a series already, as bits.
    has: u16,
    begun: u16,
}

impl Row {
    /// The value of the next metric that is there.
    #[inline]
    pub(super) fn set(&mut self, slot: usize, value: i64) {
        debug_assert!(self.has >> slot == 0, "values come in the order of their metrics");
        self.values[self.count] = value;
        self.count += 1;
        self.has |= 1 << slot;
    }
    /// The same of a metric that stands still for a whole connection: it is kept from the first time on that it `moves`.
    #[inline]
    pub(super) fn set_once(&mut self, slot: usize, value: i64, moves: bool) {
        if moves || self.begun >> slot & 1 == 1 {
            self.set(slot, value);
        }
    }
}

/// The rows of one flow.
#[derive(Default)]
pub(super) struct Rows {
    /// The instant of each row, and what it has.
    rows: Vec<(u32, u16)>,
    /// What they have, row after row.
    values: Vec<i64>,
    /// Metrics that have a series, as bits, and where each stands.
    begun: u16,
    places: [u32; SLOTS],
    /// Its connection's series end before this instant; `None` while it has one, or had none.
    ended: Option<u32>,
    /// Instants up to which its values are counted.
    counted: usize,
}

impl Rows {
    /// A row to be filled and entered.
    #[inline]
    pub(super) fn row(&self) -> Row {
        Row { begun: self.begun, ..Row::default() }
    }
    /// Enters what a flow is like at an instant; answers how many values its series have more than were counted.
    pub(super) fn enter(
        &mut self,
        at: usize,
        row: &Row,
        all: &mut Vec<Series>,
        flow: usize,
        name: &str,
    ) -> usize {
        let has = row.has;
        let new = has & !self.begun;
        // What is not of a connection goes on, entered or not.
        let goes_on = self.begun & (has | ((1 << OF_TCP) - 1));
        let more = goes_on.count_ones() as usize * (at + 1 - self.counted) + new.count_ones() as usize;
        self.counted = at + 1;
        if new != 0 {
            self.begin(new, at, all, flow, name);
        }
        self.rows.push((at as u32, has));
        self.values.extend_from_slice(&row.values[..row.count]);
        if has >> OF_TCP != 0 {
            self.ended = None;
        }
        more
    }
    /// Begins series.
    #[cold]
    fn begin(&mut self, new: u16, at: usize, all: &mut Vec<Series>, flow: usize, name: &str) {
        let name = format!("flow {name}");
        for slot in bits(new) {
            self.places[slot] = all.len() as u32;
            let (object, metric) = (name.clone(), METRICS[slot]);
            all.push(Series { host: None, key: flow as u64, object, metric, first: at, values: Vec::new() });
        }
        self.begun |= new;
    }
    /// Its connection is gone at this instant.
    pub(super) fn end(&mut self, at: usize) {
        self.ended = Some(at as u32);
    }
    /// The values of its series when there are so many instants.
    fn lengths(&self, instants: usize, all: &[Series]) -> [usize; SLOTS] {
        let mut lengths = [0; SLOTS];
        for slot in bits(self.begun) {
            let end = if slot < OF_TCP { None } else { self.ended };
            let end = end.map_or(instants, |end| instants.min(end as usize));
            lengths[slot] = end.saturating_sub(all[self.places[slot] as usize].first);
        }
        lengths
    }
    /// How many these are together.
    pub(super) fn count(&self, instants: usize, all: &[Series]) -> usize {
        self.lengths(instants, all).iter().sum()
    }
    /// Makes its series, of so many instants.
    pub(super) fn fill(&self, instants: usize, all: &mut [Series]) {
        let lengths = self.lengths(instants, all);
        // A series at a time: of each row it takes one value, or none.
        for slot in bits(self.begun) {
            let series = &mut all[self.places[slot] as usize];
            let mut values = Vec::with_capacity(lengths[slot]);
            let (bit, below) = (1u16 << slot, (1u16 << slot) - 1);
            let mut begin = 0;
            for &(at, has) in &self.rows {
                if has & bit != 0 {
                    go_on(&mut values, at as usize - series.first);
                    values.push(self.values[begin + (has & below).count_ones() as usize]);
                }
                begin += has.count_ones() as usize;
            }
            go_on(&mut values, lengths[slot]);
            series.values = values;
        }
    }
    /// Gives up every second instant: what the flow was like at one of those it was like at the next, unless that is there itself. `left` instants remain.
    pub(super) fn halve(&mut self, left: usize) {
        let (rows, values) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.values));
        let mut values = values.into_iter();
        let mut held: Option<(u32, Known)> = None;
        for (old, has) in rows {
            let at = old.div_ceil(2);
            if at as usize >= left {
                break;
            }
            let mut known = match held.take() {
                Some((before, known)) if before == at => known,
                before => {
                    self.keep(before);
                    Known::default()
                }
            };
            // What its connection said last has no instant any more; if another one came later, the values go on up to that.
            if self.ended == Some(old) {
                known[OF_TCP..].fill(None);
            }
            for (slot, value) in bits(has).zip(&mut values) {
                known[slot] = Some(value);
            }
            held = Some((at, known));
        }
        self.keep(held);
        self.ended = self.ended.map(|end| end.div_ceil(2));
        self.counted = left;
    }
    fn keep(&mut self, row: Option<(u32, Known)>) {
        let Some((at, known)) = row else { return };
        let has = (0..SLOTS).filter(|&slot| known[slot].is_some()).fold(0, |has, slot| has | 1 << slot);
        self.rows.push((at, has));
        self.values.extend(known.into_iter().flatten());
    }
}

/// What is known of an instant, each metric in its place.
type Known = [Option<i64>; SLOTS];

/// A series stands still until it has so many values.
#[inline]
fn go_on(values: &mut Vec<i64>, until: usize) {
    if values.len() < until {
        let last = values.last().copied().unwrap_or(0);
        values.resize(until, last);
    }
}

/// The places of the bits that are set, from the lowest on.
#[inline]
fn bits(mut set: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let slot = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (slot < SLOTS).then_some(slot)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Rng;

    /// The series as lists that grow by a value at every instant, which rows stand for.
    #[derive(Default)]
    struct Lists {
        instants: usize,
        series: Vec<Series>,
        connected: bool,
    }

    impl Lists {
        fn enter(&mut self, at: usize, row: &Row) {
            for (slot, value) in bits(row.has).zip(row.values) {
                let metric = METRICS[slot];
                let found = self.series.iter().position(|s| s.metric == metric).unwrap_or_else(|| {
                    let object = "flow f".to_owned();
                    self.series.push(Series {
                        host: None,
                        key: 3,
                        object,
                        metric,
                        first: at,
                        values: Vec::new(),
                    });
                    self.series.len() - 1
                });
                let series = &mut self.series[found];
                go_on(&mut series.values, at - series.first);
                series.values.push(value);
            }
        }
        fn of_tcp(series: &Series) -> bool {
            METRICS[OF_TCP..].contains(&series.metric)
        }
        fn end(&mut self, at: usize) {
            for series in self.series.iter_mut().filter(|s| Lists::of_tcp(s)) {
                go_on(&mut series.values, at.saturating_sub(series.first));
            }
        }
        fn set(&self) -> Vec<Series> {
            let mut all = self.series.clone();
            for series in all.iter_mut().filter(|s| self.connected || !Lists::of_tcp(s)) {
                go_on(&mut series.values, self.instants.saturating_sub(series.first));
            }
            all
        }
        fn halve(&mut self) {
            self.series = self.set();
            for series in &mut self.series {
                let mut at = series.first;
                series.values.retain(|_| {
                    at += 1;
                    (at - 1) % 2 == 0
                });
                series.first = series.first.div_ceil(2);
            }
            self.instants = self.instants.div_ceil(2);
        }
    }

    /// Flows that stand still, lose their connection, get another one, and are halved at any time.
    #[test]
    fn rows_are_the_lists_they_stand_for() {
        for seed in 0..300 {
            let mut rng = Rng::named(seed, "rows");
            let mut any = |n: u64| rng.next_u64() % n;
            let (mut lists, mut rows, mut all, mut counted) =
                (Lists::default(), Rows::default(), Vec::new(), 0);
            let (mut changed, mut value, mut whole) = (true, 0, true);
            for _ in 0..60 {
                let at = lists.instants;
                lists.instants += 1;
                let connected = if any(7) == 0 { !lists.connected } else { lists.connected };
                // What changed is entered once more when it stands still, as a sampler does.
                let changes = any(3) == 0 || connected != lists.connected || at == 0;
                if changes || changed {
                    if lists.connected && !connected {
                        lists.end(at);
                        rows.end(at);
                        whole = false;
                    }
                    lists.connected = connected;
                    let mut row = rows.row();
                    for slot in 0..if connected { SLOTS } else { OF_TCP } {
                        value += 1;
                        match slot {
                            3 if value % 5 > 0 => {}
                            0..7 => row.set(slot, value),
                            _ => row.set_once(slot, value, value % 4 == 0),
                        }
                    }
                    lists.enter(at, &row);
                    counted += rows.enter(at, &row, &mut all, 3, "f");
                }
                let entered = changes || changed;
                changed = changes;
                if any(15) == 0 {
                    lists.halve();
                    rows.halve(lists.instants);
                    all.iter_mut().for_each(|s: &mut Series| s.first = s.first.div_ceil(2));
                    counted = rows.count(lists.instants, &all);
                }
                let mut made = all.clone();
                rows.fill(lists.instants, &mut made);
                assert_eq!(made, lists.set(), "seed {seed}, {} instants", lists.instants);
                let held: usize = made.iter().map(|s| s.values.len()).sum();
                assert_eq!(rows.count(lists.instants, &all), held);
                // Gaps between connections are counted by `count` alone.
                assert!(counted <= held);
                assert!(!(entered && whole) || counted == held);
            }
        }
    }
}
