//! `[[expect]]`: what to measure, and what it must be.
//!
//! `what` is a subject and a figure of it: `u5 iperf throughput`, `u5 ping rtt p95`, `r0-r1 goodput`,
//! `u4 eth0 drops`, `u4 eth0 1:10 borrowed`, `GROUP fairness`. `value` is `a..b`, `<x`, `<=x`, `>x`, `>=x` or `x`.

use super::Builder;
use super::link::tables;
use super::read::{self, Faults, Table};
use super::source::{Place, meant};
use super::spec::{Bounds, Expect, Experiment, Measure, Subject};
use penstock_measure::Distribution;
use penstock_model::time::split_number;
use penstock_model::{Handle, Rate, Size, Span};
use penstock_packet::dscp;

/// An expectation as a file has it.
pub(super) struct Draft {
    what: (String, Place),
    value: (String, Place),
}

/// How a figure's number is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Rate,
    Time,
    Size,
    Share,
    Plain,
}

/// Figures with their unit and whether they are distributions.
type Figures = &'static [(&'static str, Unit, bool)];

const APP: Figures = &[
    ("throughput", Unit::Rate, false),
    ("bytes", Unit::Size, false),
    ("rtt", Unit::Time, true),
    ("loss", Unit::Share, false),
    ("jitter", Unit::Time, false),
    ("sent", Unit::Plain, false),
    ("received", Unit::Plain, false),
    ("lost", Unit::Plain, false),
    ("retransmits", Unit::Plain, false),
    ("duration", Unit::Time, false),
    ("exit", Unit::Plain, false),
];
const FLOW: Figures = &[
    ("goodput", Unit::Rate, false),
    ("throughput", Unit::Rate, false),
    ("owd", Unit::Time, true),
    ("rtt", Unit::Time, true),
    ("jitter", Unit::Time, false),
    ("loss", Unit::Share, false),
    ("sent", Unit::Plain, false),
    ("received", Unit::Plain, false),
    ("lost", Unit::Plain, false),
    ("marked", Unit::Plain, false),
    ("retransmits", Unit::Plain, false),
    ("duration", Unit::Time, false),
    ("fairness", Unit::Plain, false),
];
const QDISC: Figures = &[
    ("bytes", Unit::Size, false),
    ("packets", Unit::Plain, false),
    ("drops", Unit::Plain, false),
    ("overlimits", Unit::Plain, false),
    ("requeues", Unit::Plain, false),
    ("backlog", Unit::Size, false),
    ("qlen", Unit::Plain, false),
];
/// What can be asked of the packets of a per-hop behaviour at a device.
const PHB: Figures = &[
    ("ea", Unit::Time, false),
    ("ep", Unit::Time, false),
    ("delay", Unit::Time, false),
    ("jitter", Unit::Time, false),
    ("loss", Unit::Share, false),
    ("reordered", Unit::Plain, false),
    ("precedence", Unit::Share, false),
    ("ahead", Unit::Share, false),
    ("packets", Unit::Plain, false),
];
const CLASS: Figures = &[
    ("bytes", Unit::Size, false),
    ("packets", Unit::Plain, false),
    ("drops", Unit::Plain, false),
    ("lended", Unit::Plain, false),
    ("borrowed", Unit::Plain, false),
];

impl Builder<'_> {
    pub(super) fn read_expects(&mut self, root: &mut Table<'_>, faults: &mut Faults<'_>) {
        for mut table in tables(root, "expect", "what = \"u1 ping rtt\", value = \"<10ms\"", faults) {
            let mut text = |key, example| {
                let value = table.need(key, example, faults)?;
                Some((read::string(key, value, faults)?, faults.place(value.span())))
            };
            let what = text("what", "what = \"u1 ping rtt\"");
            let value = text("value", "value = \"<10ms\"");
            table.finish(faults);
            if let (Some(what), Some(value)) = (what, value) {
                self.expects.push(Draft { what, value });
            }
        }
    }

    pub(super) fn finish_expects(&mut self) {
        for draft in std::mem::take(&mut self.expects) {
            let found = match self.experiment.measured(&draft.what.0) {
                Ok(found) => found,
                Err((message, help)) => {
                    self.fault(&draft.what.1, message, help);
                    continue;
                }
            };
            let (measure, unit) = found;
            match bounds(&draft.value.0, unit) {
                Ok(range) => {
                    let (what, place) = draft.what;
                    self.experiment.expects.push(Expect {
                        what,
                        value: draft.value.0,
                        place,
                        measure,
                        range,
                    });
                }
                Err(help) => {
                    let message = format!("value: \"{}\" is not a range of numbers", draft.value.0);
                    self.fault(&draft.value.1, message, help);
                }
            }
        }
    }
}

impl Experiment {
    /// What a figure in the words of an expectation measures, and its unit: `bit/s`, `ms`, `bytes`, `share`, or empty for a number.
    ///
    /// # Errors
    /// What is wrong, and what to write.
    pub fn figure(&self, what: &str) -> Result<(Measure, &'static str), (String, String)> {
        let (measure, unit) = self.measured(what)?;
        let unit = match unit {
            Unit::Rate => "bit/s",
            Unit::Time => "ms",
            Unit::Size => "bytes",
            Unit::Share => "share",
            Unit::Plain => "",
        };
        Ok((measure, unit))
    }

    /// What a goal measures and what it must be: `what` and `value` as an expectation has them. The unit is as of [`Experiment::figure`].
    ///
    /// # Errors
    /// What is wrong, and what to write.
    pub fn goal(&self, what: &str, value: &str) -> Result<(Measure, &'static str, Bounds), (String, String)> {
        let (measure, unit) = self.measured(what)?;
        let range = bounds(value, unit)
            .map_err(|help| (format!("value: \"{value}\" is not a range of numbers"), help))?;
        Ok((measure, self.figure(what)?.1, range))
    }

    /// Reads `what`; what is wrong and what to write when it means nothing.
    fn measured(&self, what: &str) -> Result<(Measure, Unit), (String, String)> {
        let (subject, rest, figures) = self.subject(what)?;
        let mut words = rest.split_whitespace();
        let names: Vec<&str> = figures.iter().map(|f| f.0).collect();
        let list = || format!("there are {}", names.join(", "));
        let Some(word) = words.next() else {
            return Err((format!("what: \"{what}\" names no figure"), list()));
        };
        let Some(&(figure, unit, spread)) = figures.iter().find(|f| f.0 == word) else {
            let help = meant(word, &names).map_or_else(list, |name| format!("did you mean \"{name}\"?"));
            return Err((format!("what: there is no figure \"{word}\""), help));
        };
        let part = match (words.next(), spread) {
            (None, true) => "mean",
            (None, false) => "",
            (Some(word), true) => match Distribution::NAMES.iter().find(|n| **n == word) {
                Some(name) => name,
                None => {
                    let help = format!("there are {}", Distribution::NAMES.join(", "));
                    return Err((format!("what: {figure} has no \"{word}\""), help));
                }
            },
            (Some(word), false) => {
                return Err((
                    format!("what: nothing can follow \"{figure}\""),
                    format!("leave out \"{word}\""),
                ));
            }
        };
        if let Some(word) = words.next() {
            return Err((format!("what: \"{word}\" is too much"), "leave it out".into()));
        }
        if let Subject::Phb { codes, rate, .. } = &subject {
            if matches!(figure, "ea" | "ep") && rate.is_none() {
                let help = "write the rate that is configured for it behind it: EF@1mbit";
                return Err((format!("what: {figure} is judged at a rate"), help.to_owned()));
            }
            if figure == "precedence" && codes.len() != 3 {
                let help = "write AF1, AF2, AF3 or AF4, without a drop precedence";
                return Err(("what: precedence is of an AF class".to_owned(), help.to_owned()));
            }
        }
        Ok((Measure { subject, figure, part }, unit))
    }

    /// The longest name that `what` begins with, and what follows it.
    fn subject<'t>(&self, what: &'t str) -> Result<(Subject, &'t str, Figures), (String, String)> {
        let experiment = self;
        let after = |name: &str| {
            let rest = what.strip_prefix(name)?;
            (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some((name.len(), rest))
        };
        let apps = experiment.apps.iter().enumerate();
        let apps = apps.filter_map(|(i, a)| after(&a.name).map(|(n, rest)| (n, rest, Subject::App(i), APP)));
        let flows = experiment.flows.iter();
        let flows = flows
            .filter_map(|f| after(&f.name).map(|(n, rest)| (n, rest, Subject::Flow(f.name.clone()), FLOW)));
        let groups = experiment.flows.iter().filter_map(|f| f.group.as_ref());
        let groups =
            groups.filter_map(|g| after(g).map(|(n, rest)| (n, rest, Subject::Group(g.clone()), FLOW)));
        let best = apps.chain(flows).chain(groups).max_by_key(|(n, ..)| *n);
        let mut devices = Vec::new();
        for host in &experiment.hosts {
            for dev in &host.devices {
                let found =
                    [" ", ":"].iter().find_map(|sep| after(&format!("{}{sep}{}", host.name, dev.name)));
                if let Some((n, rest)) = found {
                    devices.push((n, rest, host.name.clone(), dev.name.clone()));
                }
            }
        }
        let device = devices.into_iter().max_by_key(|(n, ..)| *n);
        match (best, device) {
            (Some((n, rest, subject, figures)), device) if device.as_ref().is_none_or(|d| d.0 < n) => {
                Ok((subject, rest, figures))
            }
            (_, Some((_, rest, host, dev))) => {
                let rest = rest.trim_start();
                let (word, tail) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                if let Some((codes, rate)) = phb(word)? {
                    return Ok((Subject::Phb { host, dev, codes, rate }, tail, PHB));
                }
                let id = word.contains(':').then(|| Handle::parse_classid(word).ok()).flatten();
                let class = id.is_some_and(|id| id.minor() != 0);
                let rest = if id.is_some() { tail } else { rest };
                let figures = if class { CLASS } else { QDISC };
                Ok((Subject::Queue { host, dev, id: id.map(|id| id.to_string()) }, rest, figures))
            }
            _ => {
                let mut names: Vec<&str> = experiment.apps.iter().map(|a| a.name.as_str()).collect();
                names.extend(experiment.flows.iter().map(|f| f.name.as_str()));
                let shown = names.iter().take(12).map(|n| format!("\"{n}\"")).collect::<Vec<_>>().join(", ");
                let help = match names.is_empty() {
                    true => "begin with a device: \"u4 eth0 drops\"".to_owned(),
                    false => {
                        format!("begin with one of {shown} or a device (\"u4 eth0\"), then e.g. throughput")
                    }
                };
                Err((format!("what: \"{what}\" begins with no app, flow, group or device"), help))
            }
        }
    }
}

/// Reads `a..b`, `<x`, `>x` and so on; what to write when it is none.
fn bounds(text: &str, unit: Unit) -> Result<Bounds, String> {
    let example = match unit {
        Unit::Rate => "5.5mbit..6mbit",
        Unit::Time => "1ms..2ms",
        Unit::Size => "10k..20k",
        Unit::Share => "0%..1%",
        Unit::Plain => "0..10",
    };
    let help = || {
        format!(
            "write \"{example}\", \"<{0}\", \">{0}\" or \"{0}\"",
            example.split("..").next().unwrap_or("")
        )
    };
    let number = |s: &str| number(s.trim(), unit).ok_or_else(help);
    let text = text.trim();
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    let open = Bounds { low, high, above: false, below: false };
    let range = if let Some(x) = text.strip_prefix("<=") {
        Bounds { high: number(x)?, ..open }
    } else if let Some(x) = text.strip_prefix(">=") {
        Bounds { low: number(x)?, ..open }
    } else if let Some(x) = text.strip_prefix('<') {
        Bounds { high: number(x)?, below: true, ..open }
    } else if let Some(x) = text.strip_prefix('>') {
        Bounds { low: number(x)?, above: true, ..open }
    } else if let Some((a, b)) = text.split_once("..") {
        Bounds { low: number(a)?, high: number(b)?, ..open }
    } else {
        let x = number(text)?;
        Bounds { low: x, high: x, ..open }
    };
    if range.low > range.high {
        return Err("write the smaller one first".to_owned());
    }
    Ok(range)
}

/// Code points, and the rate configured for them.
type Behaviour = (Vec<u8>, Option<Rate>);

/// `EF`, `EF@1mbit`, `AF1` (all its drop precedences), `AF21`, `LE`: code points, and the rate configured for them. `None` for any
/// other word.
fn phb(word: &str) -> Result<Option<Behaviour>, (String, String)> {
    let (name, rate) = match word.split_once('@') {
        Some((name, rate)) => (name, Some(rate)),
        None => (word, None),
    };
    let upper = name.to_uppercase();
    let class = upper.strip_prefix("AF").filter(|n| n.len() == 1);
    let codes: Vec<u8> = match class {
        Some(_) => (1..=3).filter_map(|p| dscp::parse(&format!("{upper}{p}"))).collect(),
        // A figure of the qdisc may be a number, a code point must have a name.
        None => dscp::parse(&upper)
            .filter(|_| !upper.starts_with(|c: char| c.is_ascii_digit()))
            .into_iter()
            .collect(),
    };
    if codes.is_empty() {
        return Ok(None);
    }
    let rate = match rate {
        None => None,
        Some(text) => match Rate::parse(text) {
            Ok(rate) if rate.bytes_per_s() > 0 => Some(rate),
            _ => return Err((format!("what: \"{text}\" is not a rate"), "write e.g. EF@1mbit".to_owned())),
        },
    };
    Ok(Some((codes, rate)))
}

/// A number in the unit of the record: bit/s, ms, bytes, a share, or plain.
fn number(text: &str, unit: Unit) -> Option<f64> {
    let (plain, rest) = split_number(text)?;
    let bare = rest.is_empty() && plain != 0.0;
    match unit {
        Unit::Rate if !bare => {
            Rate::parse(text).ok().filter(|r| r.bytes_per_s() < u64::MAX / 8).map(|r| r.bit_per_s() as f64)
        }
        Unit::Time if !bare => Span::parse(text).ok().map(|s| s.as_ns() as f64 / 1e6),
        Unit::Size => Size::parse(text).ok().map(|s| s.bytes() as f64),
        Unit::Share if rest == "%" => Some(plain / 100.0),
        Unit::Share if rest.is_empty() => Some(plain),
        Unit::Plain if rest.is_empty() => Some(plain),
        _ => None,
    }
}
