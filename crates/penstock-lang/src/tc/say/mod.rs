//! Objects back to words: what one would type to make a qdisc, a class, a filter or an action that is there.
//!
//! What a kind of qdisc says stands in its own file (`tc/kinds`).
//!
//! Qdiscs and classes are said from the options of a dump, which hold every number as it is. Filters and actions are said from
//! the text tc prints of them, whose numbers are exact but for those of `police` and `gate`; where the options are at hand as
//! well, these are taken from there. A value that is counted otherwise in the kernel than on the command line ([`Value`]) may
//! need a nudge: whoever tries the words on a machine sees by the dump which, and [`Value::nudge`] says how far.
//!
//! Follows the forms that `tc/kinds`, `tc/filters` and `tc/actions` read and print.

mod action;
mod ematch;
mod filter;
pub(super) mod red;

pub use action::{actions, standalone};
pub use filter::{Shown, Template, filter, template};

use super::kinds::{self, linklayer_name};
use super::num;
use penstock_model::{Kernel, Options};

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
pub fn rate(bytes: u64) -> String {
    let bits = u128::from(bytes) * 8;
    for (unit, name) in [(1_000_000_000, "gbit"), (1_000_000, "mbit"), (1000, "kbit")] {
        if bits != 0 && bits.is_multiple_of(unit) {
            return format!("{}{name}", bits / unit);
        }
    }
    format!("{bits}bit")
}

/// Bytes (packets) of which this kernel's tc makes these ticks at this rate; the nearest below where none do.
pub fn burst(rate: u64, ticks: u32, kernel: Kernel) -> u64 {
    let most = if kernel >= Kernel::V7_2 { u64::MAX } else { u64::from(u32::MAX) };
    let xmittime = |size| num::xmittime(rate, size, kernel);
    // Ticks are 32 bits and turn over: at a low rate the size may be some turns further.
    let makes = |size: &u64| *size <= most && xmittime(*size) == ticks;
    let of_turn = |turn: u64| {
        let ticks = u128::from(turn << 32) + u128::from(ticks);
        let size = u64::try_from(ticks * u128::from(rate) / 15_625_000).ok().filter(|size| *size <= most)?;
        (0..6).flat_map(|d| [size.saturating_sub(d), size.saturating_add(d)]).find(makes)
    };
    if let Some(size) = (0..1024).find_map(of_turn) {
        return size;
    }
    let (mut low, mut high) = (0u64, most);
    while low < high {
        let middle = low + (high - low) / 2;
        if xmittime(middle) < ticks { low = middle + 1 } else { high = middle }
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

/// Gathers what a kind says of its options.
pub struct Say<'a> {
    /// The options, as a dump has them.
    pub o: &'a Options,
    /// For the tc of this profile.
    pub kernel: Kernel,
    /// It is that of 2010.
    pub old: bool,
    /// Of a class of cbq: bandwidth of the qdisc's link, bytes per second.
    pub bandwidth: u32,
    parts: Vec<Part>,
    then: Vec<Vec<Part>>,
    lacking: Vec<&'static str>,
}

impl<'a> Say<'a> {
    pub(super) fn new(o: &'a Options, kernel: Kernel) -> Say<'a> {
        let old = kernel == Kernel::V2_6_35;
        Say { o, kernel, old, bandwidth: 0, parts: Vec::new(), then: Vec::new(), lacking: Vec::new() }
    }
    fn done(self) -> Said {
        Said { add: self.parts, then: self.then, lacking: self.lacking }
    }
    /// A number of the options, 0 where it is not there.
    pub fn n(&self, name: &str) -> u32 {
        self.o.u32(name).unwrap_or(0)
    }
    /// A word.
    pub fn word(&mut self, word: impl Into<String>) -> &mut Self {
        self.parts.push(Part::Word(word.into()));
        self
    }
    /// Two words.
    pub fn pair(&mut self, word: &str, value: impl std::fmt::Display) -> &mut Self {
        self.word(word).word(value.to_string())
    }
    /// A number that the options hold at `path`.
    pub fn value(&mut self, path: &str, number: u64, unit: Unit) -> &mut Self {
        self.parts.push(Part::Value(Value { path: path.to_owned(), number, unit }));
        self
    }
    /// A word whose value stands in the option of the same name, where it does.
    pub fn given(&mut self, name: &str, unit: Unit) -> &mut Self {
        if let Some(number) = self.o.u64(name) {
            self.word(name).value(name, number, unit);
        }
        self
    }
    /// [`Say::given`] of each.
    pub fn all(&mut self, names: &[&str], unit: Unit) -> &mut Self {
        names.iter().fold(self, |say, name| say.given(name, unit))
    }
    /// [`Say::given`] where it is not 0.
    pub fn unless_zero(&mut self, name: &str, unit: Unit) -> &mut Self {
        if self.n(name) == 0 { self } else { self.given(name, unit) }
    }
    /// The same of a number that may be negative.
    pub fn signed(&mut self, name: &str) -> &mut Self {
        match self.o.i64(name) {
            Some(n) => self.pair(name, n),
            None => self,
        }
    }
    /// A word and its numbers, where there are any to speak of.
    pub fn list<T: std::fmt::Display>(
        &mut self,
        word: &str,
        items: Option<impl IntoIterator<Item = T>>,
    ) -> &mut Self {
        let Some(items) = items else { return self };
        items.into_iter().fold(self.word(word), |say, item| say.word(item.to_string()))
    }
    /// One of two words, by an option that is 0 or not, where it is there.
    pub fn either(&mut self, name: &str, yes: &str, no: &str) -> &mut Self {
        if let Some(n) = self.o.u32(name) {
            self.word(if n != 0 { yes } else { no });
        }
        self
    }
    /// `word` where the bit is set.
    pub fn flag(&mut self, flags: u32, bit: u32, word: &str) -> &mut Self {
        if flags & bit != 0 {
            self.word(word);
        }
        self
    }
    /// `overhead` and `linklayer`, where they are not what tc takes by itself.
    pub fn overhead(&mut self) -> &mut Self {
        if let Some(n) = self.o.i64("overhead").filter(|&n| n != 0) {
            self.pair("overhead", n);
        }
        let layer = self.n("linklayer");
        if layer > 1 { self.pair("linklayer", linklayer_name(layer)) } else { self }
    }
    /// What the dump does not tell and words could say.
    pub fn lacks(&mut self, what: Option<&'static str>) -> &mut Self {
        self.lacking.extend(what);
        self
    }
    /// How many parts there are.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }
    /// Takes back all but the first `len` parts.
    pub fn truncate(&mut self, len: usize) {
        self.parts.truncate(len);
    }
    /// What a change says that follows.
    pub fn then(&mut self, change: Say) {
        self.lacking.extend(change.lacking);
        self.then.push(change.parts);
    }
    /// Puts `first` in the place of all that is said so far, which becomes a change that follows.
    pub fn first(&mut self, first: &[&str]) {
        let first = first.iter().map(|word| Part::Word((*word).to_owned())).collect();
        let whole = std::mem::replace(&mut self.parts, first);
        self.then.push(whole);
    }
}

/// The words that make a qdisc of this kind with these options, as a dump has them.
pub fn qdisc(kind: &str, o: &Options, kernel: Kernel) -> Said {
    let mut say = Say::new(o, kernel);
    if let Some(kind) = kinds::find(kind) {
        kind.say(&mut say);
    }
    say.done()
}

/// The words that make a class of this kind with these options, as a dump has them. `bandwidth` is that of a cbq's link, bytes per
/// second.
pub fn class(kind: &str, o: &Options, bandwidth: u32, kernel: Kernel) -> Said {
    let mut say = Say { bandwidth, ..Say::new(o, kernel) };
    if let Some(kind) = kinds::find(kind) {
        kind.say_class(&mut say);
    }
    say.done()
}

/// The words of a size table (`stab`), which stand before the kind.
pub fn stab(o: &Options) -> Vec<Part> {
    let mut say = Say::new(o, Kernel::default());
    say.word("stab");
    for name in ["mtu", "tsize", "mpu"] {
        say.unless_zero(name, Unit::Plain);
    }
    say.overhead();
    if say.n("linklayer") == 1 {
        say.pair("linklayer", linklayer_name(1));
    }
    say.parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::psched;

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
            for kernel in Kernel::ALL {
                let ticks = num::xmittime(rate, size, kernel);
                assert_eq!(num::xmittime(rate, burst(rate, ticks, kernel), kernel), ticks, "{rate} {size}");
            }
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

    #[track_caller]
    fn check(kind: &str, o: Options, text: &str) {
        assert_eq!(words(&qdisc(kind, &o, Kernel::V6_12).add).join(" "), text);
    }

    #[test]
    fn words_of_some_kinds() {
        check("pfifo", Options::new().with("limit", 7u32), "limit 7");
        check(
            "netem",
            Options::new()
                .with("limit", 1000u32)
                .with("latency", psched::time2tick(10_000.0))
                .with("loss", u32::MAX / 4),
            "limit 1000 delay 10ms loss random 24.9999999825377%",
        );
        check(
            "prio",
            Options::new().with("bands", 2u32).with("priomap", vec![1u8, 0]),
            "bands 2 priomap 1 0",
        );
        check(
            "cake",
            Options::new()
                .with("bandwidth", 1_250_000u64)
                .with("diffserv", 3u32)
                .with("overhead", -4i64)
                .with("atm", 1u32),
            "bandwidth 10mbit besteffort atm overhead -4",
        );
    }

    #[test]
    fn a_queue_of_gred_is_a_change() {
        let vq = Options::new()
            .with("vq", 1u32)
            .with("limit", 60_000u32)
            .with("min", 15_000u32)
            .with("max", 25_000u32);
        let vq = vq.with("ewma", 4u32).with("scell_log", 10u32).with("max_p", 1u32 << 30);
        let o = Options::new().with("vqs", 2u32).with("default", 1u32).with("list", vec![vq]);
        let said = qdisc("gred", &o, Kernel::V6_12);
        assert_eq!(words(&said.add).join(" "), "setup vqs 2 default 1");
        assert!(
            words(&said.then[0])
                .join(" ")
                .starts_with("vq 1 limit 60000 min 15000 max 25000 probability 0.25")
        );
    }

    #[test]
    fn a_class_of_htb() {
        let (rate, ceil) = (125_000u64, 250_000u64);
        let o =
            Options::new().with("rate", rate).with("ceil", ceil).with("buffer", psched::xmittime(rate, 1599));
        let o = o.with("cbuffer", psched::xmittime(ceil, 1598)).with("prio", 2u32).with("quantum", 12_500u32);
        assert_eq!(
            words(&class("htb", &o, 0, Kernel::V6_12).add).join(" "),
            "rate 1mbit ceil 2mbit burst 1599 cburst 1598 prio 2 quantum 12500"
        );
    }

    #[test]
    fn a_curve_of_hfsc() {
        let curve = Options::new().with("m1", 0u32).with("d", 10_000u32).with("m2", 125_000u32);
        let o = Options::new().with("ls", curve);
        assert_eq!(words(&class("hfsc", &o, 0, Kernel::V6_12).add).join(" "), "ls m1 0bit d 10ms m2 1mbit");
    }
}
