//! Objects back to words: what one would type to make a qdisc, a class, a filter or an action that is there.
//!
//! Qdiscs and classes are said from the options of a dump, which hold every number as it is. Filters and actions are said from
//! the text tc prints of them, whose numbers are exact but for those of `police` and `gate`; where the options are at hand as
//! well, these are taken from there. A value that is counted otherwise in the kernel than on the command line ([`Value`]) may
//! need a nudge: whoever tries the words on a machine sees by the dump which, and [`Value::nudge`] says how far.
//!
//! Follows the forms that `tc/kinds`, `tc/filters` and `tc/actions` read and print.

mod action;
mod class;
mod ematch;
mod filter;
mod netem;
mod qdisc;
mod red;

pub use action::{actions, standalone};
pub use class::class;
pub use filter::{Shown, Template, filter, template};
pub use qdisc::{qdisc, stab};

use penstock_model::{Options, psched};

/// How a number is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// As it is.
    Plain,
    /// Bytes per second, written in bits.
    Rate,
    /// Microseconds.
    Us,
    /// Nanoseconds.
    Ns,
}

/// A number among the words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// Where a dump's options hold it: names with `/` between, from the outermost.
    pub path: String,
    /// The number as the words have it.
    pub number: u64,
    /// How it is written.
    pub unit: Unit,
}

/// A piece of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// A word.
    Word(String),
    /// A number.
    Value(Value),
}

/// What makes an object.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Said {
    /// The words behind the kind's name when it is added.
    pub add: Vec<Part>,
    /// Those of changes that follow.
    pub then: Vec<Vec<Part>>,
    /// What the dump does not tell and words could say.
    pub lacking: Vec<&'static str>,
}

/// The words of parts.
pub fn words(parts: &[Part]) -> Vec<String> {
    let word = |part: &Part| match part {
        Part::Word(word) => word.clone(),
        Part::Value(value) => value.text(),
    };
    parts.iter().map(word).collect()
}

/// The number that stands in options at this place.
fn at(options: &Options, path: &str) -> Option<u64> {
    match path.split_once('/') {
        Some((outer, inner)) => at(options.nested(outer)?, inner),
        None => options.u64(path),
    }
}

impl Value {
    /// As tc reads it.
    pub fn text(&self) -> String {
        let n = self.number;
        match self.unit {
            Unit::Plain => n.to_string(),
            Unit::Rate => rate(n),
            Unit::Us if n != 0 && n.is_multiple_of(1_000_000) => format!("{}s", n / 1_000_000),
            Unit::Us if n != 0 && n.is_multiple_of(1000) => format!("{}ms", n / 1000),
            Unit::Us => format!("{n}us"),
            Unit::Ns => format!("{n}ns"),
        }
    }
    /// Moves the number towards the one with which a dump shows `want`, where it showed `got`; `false` where they agree.
    pub fn nudge(&mut self, want: &Options, got: &Options) -> bool {
        let (Some(want), Some(got)) = (at(want, &self.path), at(got, &self.path)) else { return false };
        if want == got {
            return false;
        }
        let scaled = u128::from(self.number) * u128::from(want) / u128::from(got.max(1));
        let scaled = u64::try_from(scaled).unwrap_or(self.number);
        let near = if want > got { self.number.saturating_add(1) } else { self.number.saturating_sub(1) };
        // Far off: in proportion; at last one by one.
        let far = scaled.abs_diff(self.number) > 2;
        self.number = if far { scaled } else { near };
        true
    }
}

/// A rate in bytes per second, in bits and as short as it goes without loss.
fn rate(bytes: u64) -> String {
    let bits = u128::from(bytes) * 8;
    for (unit, name) in [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1000, "kbit")] {
        if bits != 0 && bits.is_multiple_of(unit) {
            return format!("{}{name}", bits / unit);
        }
    }
    format!("{bits}bit")
}

/// Bytes (packets) of which tc makes these ticks at this rate; the nearest below where none do.
fn burst(rate: u64, ticks: u32) -> u32 {
    // Ticks are 32 bits and turn over: at a low rate the size may be some turns further.
    let makes = |size: &u32| psched::xmittime(rate, *size) == ticks;
    let of_turn = |turn: u64| {
        let ticks = u128::from(turn << 32) + u128::from(ticks);
        let size = u32::try_from(ticks * u128::from(rate) / 15_625_000).ok()?;
        (0..6).flat_map(|d| [size.saturating_sub(d), size.saturating_add(d)]).find(makes)
    };
    if let Some(size) = (0..1024).find_map(of_turn) {
        return size;
    }
    let (mut low, mut high) = (0u32, u32::MAX);
    while low < high {
        let middle = low + (high - low) / 2;
        if psched::xmittime(rate, middle) < ticks { low = middle + 1 } else { high = middle }
    }
    low
}

/// The interval and the time constant of which tc makes these exponents (`estimator`).
pub fn estimator(interval: i8, ewma: u8) -> Option<[String; 2]> {
    let us = 250_000u64 << u32::try_from(interval + 2).ok()?.min(5);
    // The time constant lies between interval * 2^ewma and twice that.
    let constants = (2..=12u64).map(|quarters| (us << ewma.min(31)).saturating_mul(quarters) / 4);
    let makes = |constant: &u64| {
        let constant = u32::try_from(*constant).ok()?;
        super::estimator::setup(us as u32, constant).filter(|made| *made == (interval, ewma))
    };
    let constant = constants.into_iter().find(|c| makes(c).is_some())?;
    Some([us, constant].map(|us| format!("{us}us")))
}

/// Gathers the parts of one command.
struct Say<'a> {
    o: &'a Options,
    parts: Vec<Part>,
}

impl<'a> Say<'a> {
    fn new(o: &'a Options) -> Say<'a> {
        Say { o, parts: Vec::new() }
    }
    fn done(self) -> Said {
        Said { add: self.parts, ..Said::default() }
    }
    fn n(&self, name: &str) -> u32 {
        self.o.u32(name).unwrap_or(0)
    }
    fn word(&mut self, word: impl Into<String>) -> &mut Self {
        self.parts.push(Part::Word(word.into()));
        self
    }
    /// Two words.
    fn pair(&mut self, word: &str, value: impl std::fmt::Display) -> &mut Self {
        self.word(word).word(value.to_string())
    }
    fn value(&mut self, path: &str, number: u64, unit: Unit) -> &mut Self {
        self.parts.push(Part::Value(Value { path: path.to_owned(), number, unit }));
        self
    }
    /// A word whose value stands in the option of the same name, where it does.
    fn given(&mut self, name: &str, unit: Unit) -> &mut Self {
        if let Some(number) = self.o.u64(name) {
            self.word(name).value(name, number, unit);
        }
        self
    }
    /// One of two words, by an option that is 0 or not, where it is there.
    fn either(&mut self, name: &str, yes: &str, no: &str) -> &mut Self {
        if let Some(n) = self.o.u32(name) {
            self.word(if n != 0 { yes } else { no });
        }
        self
    }
    /// `word` where the bit is set.
    fn flag(&mut self, flags: u32, bit: u32, word: &str) -> &mut Self {
        if flags & bit != 0 {
            self.word(word);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_tc_reads_them() {
        assert_eq!(
            [rate(1_250_000), rate(154_320), rate(1), rate(0)],
            ["10mbit", "1234560bit", "8bit", "0bit"]
        );
        let value = |number, unit| Value { path: String::new(), number, unit }.text();
        assert_eq!(
            [value(5000, Unit::Us), value(4999, Unit::Us), value(7, Unit::Ns), value(3_000_000, Unit::Us)],
            ["5ms", "4999us", "7ns", "3s"]
        );
    }

    #[test]
    fn estimators_make_the_same_exponents() {
        for (interval, ewma) in [(-2, 1), (0, 3), (3, 5)] {
            assert!(estimator(interval, ewma).is_some(), "{interval} {ewma}");
        }
    }

    #[test]
    fn a_burst_makes_the_same_ticks() {
        for (rate, size) in [(125_000, 1599), (1_250_000, 2850), (125_000_000, 126_600), (1, 225)] {
            let ticks = psched::xmittime(rate, size);
            assert_eq!(psched::xmittime(rate, burst(rate, ticks)), ticks, "{rate} {size}");
        }
    }

    #[test]
    fn nudges_go_towards_what_is_wanted() {
        let o = |n: u32| Options::new().with("target", n);
        let mut value = Value { path: "target".to_owned(), number: 4999, unit: Unit::Us };
        assert!(value.nudge(&o(4999), &o(4998)));
        assert_eq!(value.number, 5000);
        assert!(!value.nudge(&o(4999), &o(4999)));
        let mut ticks = Value { path: "target".to_owned(), number: 1000, unit: Unit::Plain };
        assert!(ticks.nudge(&o(50_000), &o(25_000)));
        assert_eq!(ticks.number, 2000);
    }
}
