//! Figures 1, 2 and 4, and the runs that only they and the open questions need.

use super::super::Figure;
use super::super::matrix::Job;
use super::Evidence;
use penstock_lab::run::Outcome;
use penstock_measure::Distribution;
use penstock_measure::number::Unit;
use penstock_measure::plot::{Chart, Line, Stroke};
use penstock_sched::aqm::floyd::{Floyd, Params};

/// The runs beside the columns of the tables.
pub(super) const RUNS: &[&str] = &["figure-2", "figure-2-bleached", "http-DT-DT", "http-DT-RED"];
/// The columns whose curves figure 4 and its claims need.
const COURSES: [&str; 3] = ["DT-DT-72", "RED-DT-gentle-72", "DT-RED-gentle-72"];

/// A curve over time, s.
pub(super) type Points = Vec<(f64, f64)>;

/// What figures and open questions need of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// Of each group its name and what one of its connections has delivered by and by, Mbit.
    pub(super) delivered: Vec<(String, Points)>,
    /// Completion of pages, ms, and how many.
    pub(super) pages: Option<(Distribution, u64)>,
    /// The only connection's window, packets.
    pub(super) cwnd: Points,
    /// Its smoothed round trip, ms.
    pub(super) srtt: Points,
    /// Its packets marked so far by routers.
    pub(super) marks: Points,
    /// When it was sent a packet that was lost.
    pub(super) lost: u64,
    /// Packets it received with a mark.
    pub(super) marked: u64,
}

/// What a run shows.
pub(super) fn shown(job: &Job<'_>, outcome: &Outcome) -> Shown {
    let record = &outcome.record;
    let alone = job.experiment.flows.len() == 1;
    let group = |name: &str| -> Points {
        let flows: Vec<&str> = record
            .flows
            .iter()
            .filter(|f| f.group.as_deref() == Some(name))
            .map(|f| f.name.as_str())
            .collect();
        let mut sum: Points = Vec::new();
        for flow in &flows {
            let points = outcome.series.points("", &format!("flow {flow}"), "goodput_bit_s");
            let (mut total, mut last) = (0.0, 0.0);
            for (i, &(t, rate)) in points.iter().enumerate() {
                total += rate * (t - last) / 1e6 / flows.len() as f64;
                last = t;
                match sum.get_mut(i) {
                    Some(at) => at.1 += total,
                    None => sum.push((t, total)),
                }
            }
        }
        sum
    };
    let only = |metric: &str| match alone {
        true => outcome.series.points("", "flow ecn", metric).to_vec(),
        false => Vec::new(),
    };
    let names = ["SACK", "NewReno+ECN", "NewReno"];
    let pages = record.groups.iter().find(|g| g.name == "pages");
    Shown {
        delivered: match COURSES.contains(&job.experiment.stem().as_str()) {
            true => names.iter().map(|n| ((*n).to_owned(), group(n))).collect(),
            false => Vec::new(),
        },
        pages: pages.and_then(|g| Some((g.completion_ms?, g.completed?))),
        cwnd: only("cwnd_packets"),
        srtt: only("srtt_ms"),
        marks: only("marks_packets"),
        lost: record.flows.first().map_or(0, |f| f.lost_packets),
        marked: record.flows.first().map_or(0, |f| f.marked_packets),
    }
}

/// The value of a curve at a moment: that of the last sample before.
pub(super) fn at(points: &[(f64, f64)], t: f64) -> Option<f64> {
    let after = points.partition_point(|p| p.0 <= t);
    after.checked_sub(1).map(|i| points[i].1)
}

/// One cycle of ECN: when the router marked, and when the sender's window fell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    /// The first mark since the window fell last, s.
    pub(super) mark: f64,
    /// The window falls, s.
    pub(super) cut: f64,
    /// The smoothed round trip then, s.
    pub(super) rtt: f64,
}

/// The cycles of a run with one connection.
pub(super) fn cycles(shown: &Shown) -> Vec<Cycle> {
    let mut found = Vec::new();
    let mut after = 0.0;
    let marked = shown.marks.windows(2).filter(|w| w[1].1 > w[0].1).map(|w| w[1].0);
    let first = shown.marks.first().filter(|m| m.1 > 0.0).map(|m| m.0);
    for mark in first.into_iter().chain(marked) {
        if mark <= after {
            continue;
        }
        let falls = shown.cwnd.windows(2).find(|w| w[1].0 > mark && w[1].1 < w[0].1);
        let (Some(cut), Some(rtt)) = (falls.map(|w| w[1].0), at(&shown.srtt, mark)) else { break };
        found.push(Cycle { mark, cut, rtt: rtt / 1e3 });
        // Marks of the same round trip belong to the same cycle.
        after = cut + rtt / 1e3;
    }
    found
}

fn line(name: &str, colour: usize, points: Points) -> Line {
    Line { name: name.to_owned(), colour, stroke: Stroke::Line, points }
}

/// The pictures of the study by the names of their files.
pub(super) fn pictures(evidence: &Evidence) -> Vec<Figure> {
    let mut all = vec![Figure::of("figure-1a", &gentle()), Figure::of("figure-1b", &adaptive())];
    if let Some(shown) = evidence.shown.get("figure-2")
        && let Some(picture) = ecn(shown)
    {
        all.push(Figure::of("figure-2", &picture));
    }
    for (name, file) in [
        ("DT-DT-72", "figure-4"),
        ("RED-DT-gentle-72", "figure-4-RED-DT"),
        ("DT-RED-gentle-72", "figure-4-DT-RED"),
    ] {
        if let Some(shown) = evidence.shown.get(name) {
            all.push(Figure::of(file, &acknowledged(name, shown)));
        }
    }
    all
}

/// The study's RED before a queue of 72 packets, with another probability at the upper threshold.
fn red(max_p: f64) -> Floyd {
    Floyd::new(Params {
        limit: 72,
        thresh: 18.0,
        maxthresh: 54.0,
        mean_pktsize: 1500,
        q_weight: 0.002,
        queue_in_bytes: false,
        bytes: false,
        linterm: 1.0 / max_p,
        ..Params::new(1.5e6, 0.015)
    })
}

fn probability(title: &str, probabilities: &[f64]) -> Chart {
    let mut chart = Chart::new(title, Unit::Count, (0.0, 120.0));
    chart.x_unit = " packets on average";
    for (colour, &max_p) in probabilities.iter().enumerate() {
        let red = red(max_p);
        let drop = |average: f64| if average < 18.0 { 0.0 } else { red.probability(average) };
        let points = (0..=480).map(|i| f64::from(i) / 4.0).map(|a| (a, drop(a))).collect();
        chart.lines.push(line(&format!("max_p {max_p}"), colour, points));
    }
    chart
}

/// Figure 1a, from the code that decides.
fn gentle() -> Chart {
    probability("Drop probability of gentle RED", &[0.1])
}

/// Figure 1b: the curve moves between the bounds of max_p.
fn adaptive() -> Chart {
    probability("Drop probability of adaptive RED", &[0.01, 0.05, 0.1, 0.5])
}

/// Figure 2: the first cycle after the slow start.
fn ecn(shown: &Shown) -> Option<Chart> {
    let cycles = cycles(shown);
    let cycle = cycles.iter().find(|c| c.mark > 3.0).or(cycles.first())?;
    let (from, to) = ((cycle.mark - 0.4).max(0.0), cycle.cut + 1.0);
    let near = |p: &&(f64, f64)| p.0 >= from && p.0 <= to;
    let mut chart = Chart::new("One ECN cycle: mark, echo, reduction", Unit::Count, (from, to));
    chart.lines.push(line("window, packets", 0, shown.cwnd.iter().filter(near).copied().collect()));
    let dot = |name: &str, colour, at: f64, y: f64| Line {
        name: name.to_owned(),
        colour,
        stroke: Stroke::Dots,
        points: vec![(at, y)],
    };
    let window = at(&shown.cwnd, cycle.mark)?;
    chart.lines.push(dot("marked by the router", 1, cycle.mark, window));
    chart.lines.push(dot("the sender reduces", 2, cycle.cut, at(&shown.cwnd, cycle.cut)?));
    chart.lines.push(dot("one round trip after the mark", 3, cycle.mark + cycle.rtt, window));
    Some(chart)
}

/// Figure 4: what one connection of each group has had acknowledged.
fn acknowledged(order: &str, shown: &Shown) -> Chart {
    let end = shown.delivered.iter().filter_map(|(_, p)| p.last()).map(|p| p.0).fold(1.0, f64::max);
    let mut chart =
        Chart::new(format!("{order}: acknowledged to a connection, Mbit"), Unit::Count, (0.0, end));
    for (colour, (name, points)) in shown.delivered.iter().enumerate() {
        chart.lines.push(line(name, colour, points.clone()));
    }
    chart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_from_mark_to_cut() {
        let shown = Shown {
            cwnd: vec![(1.0, 10.0), (1.1, 11.0), (1.2, 5.0), (1.3, 6.0), (2.0, 9.0), (2.1, 4.0)],
            srtt: vec![(1.0, 100.0)],
            marks: vec![(1.0, 0.0), (1.15, 1.0), (1.25, 2.0), (2.05, 3.0)],
            ..Shown::default()
        };
        let found: Vec<(f64, f64)> = cycles(&shown).iter().map(|c| (c.mark, c.cut)).collect();
        // The second mark falls into the round trip of the first cut.
        assert_eq!(found, [(1.15, 1.2), (2.05, 2.1)]);
    }

    #[test]
    fn figure_1_is_drawn_by_what_decides() {
        let (a, b) = (gentle().svg(), adaptive().svg());
        assert!(a.contains("max_p 0.1") && a.contains("packets on average"), "{a}");
        assert_eq!(b.matches("class=\"line").count(), 4);
        assert!((red(0.1).probability(36.0) - 0.05).abs() < 1e-12);
    }
}
