//! Runs compared with each other: which figures differ by more than repeated runs do among themselves.

mod page;
mod shift;
#[cfg(test)]
mod tests;
mod text;

pub use page::html;
pub use shift::Interval;
pub use text::text;

use crate::number::Unit;
use crate::record::Record;
use crate::series::Series;
use serde::Serialize;
use std::collections::BTreeMap;

/// One side: the repeated runs of one thing.
pub struct Side<'a> {
    /// Its name.
    pub name: String,
    /// Its runs, at least one.
    pub runs: Vec<(&'a Record, &'a Series)>,
}

/// What one side shows of a figure.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// Runs that have the figure.
    pub runs: usize,
    /// Median.
    pub median: f64,
    /// Lower end of the median's confidence interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Chance that the interval holds the true median, 0..=1; 95 % or, of fewer than six runs, what their extremes give.
    pub confidence: f64,
}

impl Spread {
    /// Of these values. `None` without any.
    ///
    /// The interval is made of order statistics and supposes nothing of the distribution: between the k-th least and the k-th greatest of
    /// n values lies the median with the chance 1 - 2 P(Binomial(n, 1/2) < k).
    pub fn of(values: &[f64]) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        if n == 0 {
            return None;
        }
        // The chance of fewer than k of n coins heads, for growing k.
        let (mut k, mut below, mut term) = (1, 0.0, 0.5f64.powi(n as i32));
        let mut confidence = 1.0 - 2.0 * (below + term);
        loop {
            below += term;
            term *= (n - k + 1) as f64 / k as f64;
            let next = 1.0 - 2.0 * (below + term);
            if next < 0.95 || 2 * (k + 1) > n {
                break;
            }
            (k, confidence) = (k + 1, next);
        }
        let median = crate::quantile::of_sorted(&sorted, 0.5);
        Some(Spread {
            runs: n,
            median,
            low: sorted[k - 1],
            high: sorted[n - k],
            confidence: confidence.max(0.0),
        })
    }
}

/// What a figure is about; the groups of a comparison, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A program's own figures.
    Program,
    /// A flow, or a group of flows.
    Flow,
    /// A class of a qdisc.
    Class,
    /// A device with its qdiscs.
    Device,
}

impl Kind {
    /// All, in order.
    pub const ALL: [Kind; 4] = [Kind::Program, Kind::Flow, Kind::Class, Kind::Device];

    /// What stands above the group.
    pub fn heading(self) -> &'static str {
        match self {
            Kind::Program => "programs",
            Kind::Flow => "flows",
            Kind::Class => "classes",
            Kind::Device => "devices",
        }
    }
}

/// What a comparison says of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The medians are the same.
    Equal,
    /// They differ, and the interval of the difference holds 0.
    Within,
    /// The interval of the difference does not hold 0.
    Differs,
    /// They differ, and a side has one run only.
    Unknown,
}

impl Verdict {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Equal => "equal",
            Verdict::Within => "within",
            Verdict::Differs => "differs",
            Verdict::Unknown => "unknown",
        }
    }
}

/// One figure on both sides.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// What it is about.
    pub group: Kind,
    /// `app u5 iperf`, `flow call`, `group web`, `qdisc u4 eth0 htb 1:`, `class u4 eth0 1:10`.
    pub subject: String,
    /// `throughput`, `rtt mean`, `drops` …
    pub figure: &'static str,
    /// Its unit: `bit/s`, `ms`, `bytes`, or empty for a number.
    pub unit: &'static str,
    /// The first side.
    pub before: Spread,
    /// The other side.
    pub after: Spread,
    /// Difference of the medians as a share of the first; absent when that is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// Confidence interval of the difference, in the figure's unit; absent where a side has one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Difference of the medians over the greater of the two, 0..=1: ten times as much and a tenth are the same effect.
    pub effect: f64,
    /// How the difference is judged.
    pub verdict: Verdict,
}

/// Below this effect a difference of single runs is not worth a line.
const SMALL: f64 = 0.01;

impl Row {
    /// Whether it can be left out where only what has changed is of interest: equal, within the spread of repeated runs, or of single
    /// runs and below 1 %.
    pub fn is_noise(&self) -> bool {
        match self.verdict {
            Verdict::Equal | Verdict::Within => true,
            Verdict::Unknown => self.effect < SMALL,
            Verdict::Differs => false,
        }
    }
    /// The unit it is printed in.
    fn unit(&self) -> Unit {
        match self.unit {
            "bit/s" => Unit::BitPerSecond,
            "ms" => Unit::Millisecond,
            "bytes" => Unit::Byte,
            _ => Unit::Count,
        }
    }
    /// The difference as people read it: a share of the first side where that is not 0.
    fn change(&self) -> String {
        match self.difference {
            _ if self.verdict == Verdict::Equal => "–".to_owned(),
            Some(share) => format!("{:+.2} %", share * 100.0),
            None => signed(self.unit(), self.after.median - self.before.median),
        }
    }
    /// The interval of the difference, in the same terms.
    fn bounds(&self) -> String {
        let Some(Interval { low, high, .. }) = self.interval else { return String::new() };
        match (self.difference, self.before.median.abs()) {
            (Some(_), base) => format!("{:+.2} .. {:+.2} %", low / base * 100.0, high / base * 100.0),
            (None, _) => format!("{} .. {}", signed(self.unit(), low), signed(self.unit(), high)),
        }
    }
    /// A side's median, with its interval where there is one.
    fn side(&self, spread: &Spread) -> String {
        let unit = self.unit();
        let median = unit.show(spread.median);
        let (low, high) = (unit.show(spread.low), unit.show(spread.high));
        if spread.runs < 2 || low == high { median } else { format!("{median} [{low} .. {high}]") }
    }
}

fn signed(unit: Unit, x: f64) -> String {
    format!("{}{}", if x > 0.0 { "+" } else { "" }, unit.show(x))
}

/// How many rows have each verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Tally {
    /// Same medians.
    pub equal: usize,
    /// Within the spread of repeated runs.
    pub within: usize,
    /// Beyond it.
    pub differs: usize,
    /// Differences of single runs.
    pub unknown: usize,
}

impl Tally {
    /// Of these rows.
    pub fn of(rows: &[Row]) -> Tally {
        let mut tally = Tally::default();
        for row in rows {
            match row.verdict {
                Verdict::Equal => tally.equal += 1,
                Verdict::Within => tally.within += 1,
                Verdict::Differs => tally.differs += 1,
                Verdict::Unknown => tally.unknown += 1,
            }
        }
        tally
    }
    /// In a sentence.
    pub fn words(&self) -> String {
        format!(
            "{} figures: {} equal, {} within the spread of repeated runs, {} beyond it, {} of single runs",
            self.equal + self.within + self.differs + self.unknown,
            self.equal,
            self.within,
            self.differs,
            self.unknown
        )
    }
}

/// What to do to know more, where the runs are too few for an interval of 95 %.
pub fn advice(before: usize, after: usize) -> Option<String> {
    let reached = shift::bounds(before, after).1;
    let enough = (1..).find(|n| shift::bounds(*n, *n).1 >= shift::LEVEL)?;
    let what = match before.min(after) {
        0 | 1 => "a single run has no spread, so nobody can say which differences are chance".to_owned(),
        _ if reached < shift::LEVEL => {
            format!("of {before} and {after} runs the intervals hold with {:.0} % only", reached * 100.0)
        }
        _ => return None,
    };
    Some(format!(
        "{what}: run both with --repeat {enough} or more and compare the two folders \
         (penstock run --repeat {enough} FILE --out DIR); then the intervals hold with 95 %"
    ))
}

type Figure = (&'static str, &'static str, f64);
/// Figures by what they are about, in the record's order.
type Figures = Vec<((Kind, String), Figure)>;

/// All figures of a record.
fn figures(record: &Record) -> Figures {
    let mut all = Figures::new();
    let mut put = |kind, subject: &str, figure, unit, value: Option<f64>| {
        all.extend(value.map(|v| ((kind, subject.to_owned()), (figure, unit, v))));
    };
    for app in &record.apps {
        let subject = format!("app {}", app.name);
        let mut put = |figure, unit, value| put(Kind::Program, &subject, figure, unit, value);
        put("throughput", "bit/s", app.throughput_bit_s);
        put("rtt mean", "ms", app.rtt_ms.map(|d| d.mean));
        put("rtt p95", "ms", app.rtt_ms.map(|d| d.p95));
        put("jitter", "ms", app.jitter_ms);
        put("lost", "", app.lost_packets.map(|n| n as f64));
    }
    for group in &record.groups {
        let subject = format!("group {}", group.name);
        let mut put = |figure, unit, value| put(Kind::Flow, &subject, figure, unit, value);
        put("goodput", "bit/s", Some(group.goodput_bit_s));
        put("fairness", "", group.fairness);
        put("delay mean", "ms", group.owd_ms.map(|d| d.mean));
        put("delay p95", "ms", group.owd_ms.map(|d| d.p95));
        put("rtt mean", "ms", group.rtt_ms.map(|d| d.mean));
        put("rtt p95", "ms", group.rtt_ms.map(|d| d.p95));
        put("completion mean", "ms", group.completion_ms.map(|d| d.mean));
        put("completion p95", "ms", group.completion_ms.map(|d| d.p95));
    }
    for flow in record.flows.iter().filter(|f| f.app.is_none()) {
        let subject = format!("flow {}", flow.name);
        let mut put = |figure, unit, value| put(Kind::Flow, &subject, figure, unit, value);
        put("goodput", "bit/s", Some(flow.goodput_bit_s));
        put("delay mean", "ms", flow.owd_ms.map(|d| d.mean));
        put("delay p95", "ms", flow.owd_ms.map(|d| d.p95));
        put("rtt mean", "ms", flow.rtt_ms.map(|d| d.mean));
        put("rtt p95", "ms", flow.rtt_ms.map(|d| d.p95));
        // The last value of RFC 3550's filter says nothing of the run; its mean does, where the ground has it.
        match flow.jitter_mean_ms {
            Some(mean) => put("jitter mean", "ms", Some(mean)),
            None => put("jitter", "ms", flow.jitter_ms),
        }
        put("lost", "", Some(flow.lost_packets as f64));
        put("marked", "", Some(flow.marked_packets as f64));
        put("retransmits", "", flow.retransmitted_packets.map(|n| n as f64));
        let took = flow.start_s.zip(flow.end_s).map(|(from, to)| (to - from) * 1e3);
        put("duration", "ms", took.filter(|_| flow.proto == "tcp"));
    }
    for device in &record.devices {
        let at = format!("{} {}", device.host, device.dev);
        put(Kind::Device, &format!("device {at}"), "wait mean", "ms", device.sojourn_ms.map(|d| d.mean));
        put(Kind::Device, &format!("device {at}"), "wait p95", "ms", device.sojourn_ms.map(|d| d.p95));
        for q in device.qdiscs.iter().filter(|q| q.handle != "0:" || q.bytes > 0) {
            let subject = format!("qdisc {at} {} {}", q.kind, q.handle);
            let mut put = |figure, unit, value| put(Kind::Device, &subject, figure, unit, value);
            put("sent", "bytes", Some(q.bytes as f64));
            put("drops", "", Some(q.drops as f64));
            put("marks", "", q.marked_packets.map(|n| n as f64));
            put("overlimits", "", Some(q.overlimits as f64));
        }
        for c in device.classes.iter().filter(|c| !c.is_flow()) {
            let subject = format!("class {at} {}", c.classid);
            let mut put = |figure, unit, value| put(Kind::Class, &subject, figure, unit, value);
            put("sent", "bytes", Some(c.bytes as f64));
            put("drops", "", Some(c.drops as f64));
            put("lended", "", c.lended.map(|n| n as f64));
            put("borrowed", "", c.borrowed.map(|n| n as f64));
        }
    }
    all
}

/// Figures that both sides have: group by group, the greatest effects first; of like effects in the first side's order.
pub fn compare(before: &Side<'_>, after: &Side<'_>) -> Vec<Row> {
    // Place in the first side's order, unit, and each side's values.
    type Both = (usize, &'static str, [Vec<f64>; 2]);
    let mut all: BTreeMap<(Kind, String, &'static str), Both> = BTreeMap::new();
    for (side, runs) in [&before.runs, &after.runs].into_iter().enumerate() {
        for (record, _) in runs {
            for ((kind, subject), (figure, unit, value)) in figures(record) {
                let place = all.len();
                let (.., values) =
                    all.entry((kind, subject, figure)).or_insert_with(|| (place, unit, Default::default()));
                values[side].push(value);
            }
        }
    }
    let mut rows: Vec<(usize, Row)> = Vec::new();
    for ((group, subject, figure), (place, unit, [first, other])) in all {
        let (Some(before), Some(after)) = (Spread::of(&first), Spread::of(&other)) else { continue };
        let interval = shift::interval(&first, &other);
        let apart = after.median - before.median;
        let verdict = match interval {
            _ if apart == 0.0 => Verdict::Equal,
            None => Verdict::Unknown,
            Some(Interval { low, high, .. }) if low <= 0.0 && high >= 0.0 => Verdict::Within,
            Some(_) => Verdict::Differs,
        };
        let most = before.median.abs().max(after.median.abs());
        rows.push((
            place,
            Row {
                group,
                subject,
                figure,
                unit,
                before,
                after,
                difference: (before.median != 0.0).then(|| apart / before.median.abs()),
                interval,
                effect: if most > 0.0 { (apart.abs() / most).min(1.0) } else { 0.0 },
                verdict,
            },
        ));
    }
    rows.sort_by(|(p, a), (q, b)| a.group.cmp(&b.group).then(b.effect.total_cmp(&a.effect)).then(p.cmp(q)));
    rows.into_iter().map(|(_, row)| row).collect()
}
