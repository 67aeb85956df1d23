//! A search for the best values of an experiment's parameters: what it found and why, as data, as a text and as a page.

use crate::number::Unit;
use crate::plot::{Chart, Line, Stroke, escape};
use crate::sweep::{Figure, Sweep, page_with};
use crate::table::{Align, Table};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The format of `tune.json`.
pub const FORMAT: u32 = 1;
/// Most compromises that the text shows.
const COMPROMISES: usize = 12;

/// A search and its results.
#[derive(Clone, PartialEq, Debug)]
pub struct Tune {
    /// All points that were tried, in their order, with their runs.
    pub sweep: Sweep,
    /// What had to hold, in every seed.
    pub goals: Vec<Goal>,
    /// The figure that was sought, in the words of an expectation.
    pub objective: String,
    /// Whether more of it is better.
    pub more: bool,
    /// By how much each point misses its goals, as a share of their bounds; 0: it meets them all, infinite: it could not be run.
    pub short: Vec<f64>,
    /// The best point: of those that meet all goals the best one, where there is none the one that misses them by least.
    pub best: Option<usize>,
    /// The best point of the search itself, around which the probes lie.
    pub centre: Option<usize>,
    /// Points that differ from the centre in one parameter.
    pub probes: Vec<Probe>,
}

/// Something that must hold.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Goal {
    /// A figure in the words of an expectation.
    pub what: String,
    /// What it must be: `<20ms`.
    pub value: String,
    /// Whether more of it is better; `None`: it must lie between.
    #[serde(skip)]
    pub more: Option<bool>,
}

/// A point that differs from the centre in one parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Probe {
    /// The parameter's place.
    pub parameter: usize,
    /// The point.
    pub point: usize,
}

/// What a parameter changes around the centre.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Effect {
    /// Its path.
    pub path: String,
    /// The most that it changes any of the figures, as a share of the greater of both values.
    pub share: f64,
    /// What was tried.
    pub probes: Vec<Change>,
}

/// What one other value of a parameter changes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Change {
    /// The value.
    pub value: String,
    /// Whether all goals are met there.
    pub meets: bool,
    /// By how much the medians differ from those of the centre, in the units of the figures; null where there is none.
    pub changes: BTreeMap<String, Option<f64>>,
}

impl Tune {
    /// Whether a point meets all goals.
    pub fn meets(&self, point: usize) -> bool {
        self.short[point] == 0.0
    }

    /// What each parameter changes around the centre, those first that change most.
    pub fn effects(&self) -> Vec<Effect> {
        let Some(centre) = self.centre else { return Vec::new() };
        let shown = || self.sweep.figures.iter().enumerate().filter(|(_, f)| f.shown);
        let mut all: Vec<Effect> = Vec::new();
        for (n, parameter) in self.sweep.parameters.iter().enumerate() {
            let mut effect = Effect { path: parameter.path.clone(), share: 0.0, probes: Vec::new() };
            for probe in self.probes.iter().filter(|p| p.parameter == n) {
                let mut changes = BTreeMap::new();
                for (f, figure) in shown() {
                    let both = self.sweep.median(centre, f).zip(self.sweep.median(probe.point, f));
                    if let Some((was, is)) = both
                        && was != is
                    {
                        effect.share = effect.share.max((is - was).abs() / was.abs().max(is.abs()));
                    }
                    changes.insert(figure.what.clone(), both.map(|(was, is)| is - was));
                }
                let value = self.sweep.points[probe.point].values[n].clone();
                effect.probes.push(Change { value, meets: self.meets(probe.point), changes });
            }
            all.push(effect);
        }
        all.sort_by(|a, b| b.share.total_cmp(&a.share));
        all
    }

    /// `tune.json`.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Json<'a> {
            format: u32,
            penstock: &'a str,
            title: &'a str,
            ground: &'a str,
            seeds: &'a [u64],
            parameters: &'a [crate::sweep::Parameter],
            figures: &'a [Figure],
            goals: &'a [Goal],
            objective: Objective<'a>,
            best: Option<JsonPoint<'a>>,
            sensitivity: Vec<Effect>,
            pareto: Option<Pareto<'a>>,
            points: Vec<JsonPoint<'a>>,
        }
        #[derive(Serialize)]
        struct Objective<'a> {
            what: &'a str,
            sought: &'static str,
        }
        #[derive(Serialize)]
        struct Pareto<'a> {
            figures: [&'a str; 2],
            points: Vec<usize>,
        }
        #[derive(Serialize)]
        struct JsonPoint<'a> {
            point: usize,
            set: BTreeMap<&'a str, &'a str>,
            meets: bool,
            /// Null: it could not be run.
            short: Option<f64>,
            figures: BTreeMap<&'a str, crate::sweep::Summary>,
        }
        let sweep = &self.sweep;
        let point = |p: usize| {
            let figures = sweep.figures.iter().enumerate();
            let set = sweep.parameters.iter().zip(&sweep.points[p].values);
            JsonPoint {
                point: p + 1,
                set: set.map(|(q, v)| (&*q.path, &**v)).collect(),
                meets: self.meets(p),
                short: Some(self.short[p]).filter(|s| s.is_finite()),
                figures: figures
                    .filter_map(|(f, figure)| Some((&*figure.what, sweep.summary(p, f)?)))
                    .collect(),
            }
        };
        let json = Json {
            format: FORMAT,
            penstock: &sweep.penstock,
            title: &sweep.title,
            ground: &sweep.ground,
            seeds: &sweep.seeds,
            parameters: &sweep.parameters,
            figures: &sweep.figures,
            goals: &self.goals,
            objective: Objective { what: &self.objective, sought: if self.more { "most" } else { "least" } },
            best: self.best.map(point),
            sensitivity: self.effects(),
            pareto: sweep.pareto.map(|(a, b)| Pareto {
                figures: [&sweep.figures[a].what, &sweep.figures[b].what],
                points: sweep.front().into_iter().map(|p| p + 1).collect(),
            }),
            points: (0..sweep.points.len()).map(point).collect(),
        };
        serde_json::to_string_pretty(&json).unwrap_or_default() + "\n"
    }

    fn figure(&self, what: &str) -> Option<(usize, &Figure)> {
        self.sweep.figures.iter().enumerate().find(|(_, f)| f.what == what)
    }

    /// The rows of what was found: words, figure, value.
    fn found(&self, best: usize) -> Vec<[String; 3]> {
        let show = |what: &str| {
            let Some((f, figure)) = self.figure(what) else { return "nothing".to_owned() };
            let unit = figure.kind();
            match self.sweep.summary(best, f) {
                None => "nothing".to_owned(),
                Some(s) if s.min == s.max => unit.show(s.min),
                Some(s) => {
                    format!("{} ({} .. {})", unit.show(s.spread.median), unit.show(s.min), unit.show(s.max))
                }
            }
        };
        let sought = if self.more { "maximized" } else { "minimized" };
        let mut rows = vec![[sought.to_owned(), self.objective.clone(), show(&self.objective)]];
        for goal in &self.goals {
            rows.push(["goal".to_owned(), format!("{} {}", goal.what, goal.value), show(&goal.what)]);
        }
        rows
    }

    /// A sentence for whether the goals are met.
    fn verdict(&self, best: usize) -> &'static str {
        match (self.goals.is_empty(), self.meets(best)) {
            (true, _) => "No goals were set.",
            (false, true) => "All goals are met in every seed.",
            (false, false) => "No point that was tried meets all goals; this one misses them by least.",
        }
    }

    /// The table of what matters.
    fn matters(&self) -> Table {
        let figures: Vec<&Figure> = self.sweep.figures.iter().filter(|f| f.shown).collect();
        let mut heads = vec![("parameter", Align::Left), ("effect", Align::Right), ("set to", Align::Left)];
        heads.extend(figures.iter().map(|f| (f.what.as_str(), Align::Right)));
        if !self.goals.is_empty() {
            heads.push(("goals", Align::Left));
        }
        let mut table = Table::new(&heads);
        for effect in self.effects() {
            for (n, probe) in effect.probes.iter().enumerate() {
                let head = match n {
                    0 => [effect.path.clone(), Unit::Share.show(effect.share)],
                    _ => [String::new(), String::new()],
                };
                let change = |f: &&Figure| match probe.changes.get(&f.what).copied().flatten() {
                    None => "–".to_owned(),
                    Some(x) if x > 0.0 => format!("+{}", f.kind().show(x)),
                    Some(x) if x < 0.0 => format!("-{}", f.kind().show(-x)),
                    Some(_) => "=".to_owned(),
                };
                let meets = if probe.meets { "met" } else { "missed" };
                let cells = head.into_iter().chain([probe.value.clone()]).chain(figures.iter().map(change));
                table.row(cells.chain([meets.to_owned()]));
            }
        }
        table
    }
}

/// What a search found, for a terminal.
pub fn text(tune: &Tune) -> String {
    let sweep = &tune.sweep;
    let mut text = format!(
        "{}: {} points tried, {} seeds, {} runs\n\n",
        sweep.title,
        sweep.points.len(),
        sweep.seeds.len(),
        sweep.runs.len()
    );
    let Some(best) = tune.best else {
        let why = sweep.refused().and_then(|(_, run)| run.refused.clone());
        let why = why.unwrap_or_else(|| format!("no run has {}", tune.objective));
        let _ = writeln!(text, "  no point could be judged; the first:\n{}", why.trim_end());
        return text;
    };
    let _ = writeln!(text, "  best (point {}):", best + 1);
    for (parameter, value) in sweep.parameters.iter().zip(&sweep.points[best].values) {
        let _ = writeln!(text, "    {} = {value}", parameter.path);
    }
    text.push('\n');
    let mut table = Table::new(&[("", Align::Left), ("figure", Align::Left), ("at the best", Align::Left)]);
    for row in tune.found(best) {
        table.row(row);
    }
    text += &table.text(2);
    let _ = writeln!(text, "  {}", tune.verdict(best));
    let matters = tune.matters();
    if let (false, Some(centre)) = (matters.is_empty(), tune.centre) {
        let _ = write!(
            text,
            "\n  what matters: each parameter alone, from point {} of the search\n\n{}",
            centre + 1,
            matters.text(2)
        );
    }
    if let Some((a, b)) = sweep.pareto {
        let (x, y) = (&sweep.figures[a], &sweep.figures[b]);
        let heads = [("compromise", Align::Left), (x.what.as_str(), Align::Right), (&y.what, Align::Right)];
        let mut table = Table::new(&heads);
        let front = sweep.front();
        // Spread over all of them.
        let shown = front.len().min(COMPROMISES);
        for n in 0..shown {
            let p = front[if shown < 2 { 0 } else { n * (front.len() - 1) / (shown - 1) }];
            let cell = |f: usize, figure: &Figure| {
                sweep.median(p, f).map_or(String::new(), |value| figure.kind().show(value))
            };
            table.row([sweep.point_text(p), cell(a, x), cell(b, y)]);
        }
        let _ = write!(text, "\n{}", table.text(2));
        if front.len() > shown {
            let _ = writeln!(text, "  and {} more in tune.json", front.len() - shown);
        }
    }
    if let Some((count, first)) = sweep.refused() {
        let why = first.refused.as_deref().unwrap_or_default();
        let runs = sweep.runs.len();
        let _ = writeln!(
            text,
            "\n{count} of {runs} runs could not be made; the first, {} seed={}:\n{}",
            sweep.point_text(first.point),
            first.seed,
            why.trim_end()
        );
    }
    text
}

/// The page: what was found, what matters, the way of the search, and all that the page of a sweep has.
pub fn html(tune: &Tune) -> String {
    let sweep = &tune.sweep;
    let mut top = String::from("<h2>The best</h2>");
    match tune.best {
        None => top.push_str("<p><b>No point could be judged.</b></p>"),
        Some(best) => {
            let _ = write!(top, "<p><b>{}</b></p><table>", tune.verdict(best));
            for (parameter, value) in sweep.parameters.iter().zip(&sweep.points[best].values) {
                let (path, value) = (escape(&parameter.path), escape(value));
                let _ = write!(
                    top,
                    "<tr><td class=\"p\">set</td><td class=\"p\">{path}</td><td class=\"p\"><b>{value}</b></td></tr>"
                );
            }
            for row in tune.found(best) {
                let cells = row.map(|cell| format!("<td class=\"p\">{}</td>", escape(&cell)));
                let _ = write!(top, "<tr>{}</tr>", cells.concat());
            }
            top.push_str("</table>\n");
        }
    }
    let matters = tune.matters();
    if let (false, Some(centre)) = (matters.is_empty(), tune.centre) {
        let _ = writeln!(
            top,
            "<h2>What matters</h2><p class=\"soft\">Each parameter alone, from point {} ({}): by how much the medians change, with the same seeds.</p><pre tabindex=\"0\">{}</pre>",
            centre + 1,
            escape(&sweep.point_text(centre)),
            escape(&matters.text(0))
        );
    }
    if let Some(chart) = way(tune) {
        let _ = writeln!(top, "<h2>The way of the search</h2><div class=\"multiples\">{chart}</div>");
    }
    page_with(sweep, &top)
}

/// What was sought over the points in their order.
fn way(tune: &Tune) -> Option<String> {
    let (f, figure) = tune.figure(&tune.objective)?;
    let at = |p: usize| Some((p as f64 + 1.0, tune.sweep.median(p, f)?));
    let points = 0..tune.sweep.points.len();
    let of = |meets: bool| -> Vec<(f64, f64)> {
        points.clone().filter(|&p| tune.meets(p) == meets).filter_map(at).collect()
    };
    let (met, missed) = (of(true), of(false));
    let title = format!("{} of the points, in their order", figure.what);
    let mut chart = Chart::new(title, figure.kind(), (1.0, tune.sweep.points.len().max(2) as f64));
    chart.x_unit = "";
    for (name, colour, points) in [("all goals met", 0, met), ("goals missed", 7, missed)] {
        if !points.is_empty() {
            chart.lines.push(Line { name: name.to_owned(), colour, stroke: Stroke::Dots, points });
        }
    }
    (!chart.lines.is_empty()).then(|| chart.svg())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search over the sample's six points: the less delay, the better; backup throughput has a goal.
    fn sample() -> Tune {
        let mut sweep = crate::sweep::tests::sample();
        sweep.design = "search".into();
        sweep.figures[1].more = Some(false);
        Tune {
            sweep,
            goals: vec![Goal { what: "backup throughput".into(), value: ">10mbit".into(), more: Some(true) }],
            objective: "call owd p99".into(),
            more: false,
            short: vec![0.1, 0.1, 0.1, 0.0, 0.0, 0.0],
            best: Some(3),
            centre: Some(3),
            probes: vec![Probe { parameter: 0, point: 0 }, Probe { parameter: 1, point: 4 }],
        }
    }

    #[test]
    fn what_changes_most_comes_first() {
        let effects = sample().effects();
        assert_eq!(effects[0].path, "link.uplink.rate");
        // 9 of 18 Mbit/s.
        assert_eq!(effects[0].share, 0.5);
        assert_eq!(effects[0].probes[0].changes["backup throughput"], Some(-9e6));
        assert_eq!((effects[0].probes[0].meets, effects[1].probes[0].meets), (false, true));
        // 8 of 31.5 ms.
        assert!((effects[1].share - 8.0 / 31.5).abs() < 1e-9, "{}", effects[1].share);
    }

    #[test]
    fn the_text_the_json_and_the_page_say_the_same() {
        let tune = sample();
        let text = text(&tune);
        for part in [
            "A line <1>: 6 points tried, 2 seeds, 12 runs\n",
            "best (point 4):\n    link.uplink.rate = 20mbit\n    link.uplink.delay = 1ms\n",
            "minimized  call owd p99",
            "All goals are met in every seed.",
            "-9 Mbit/s",
            "missed",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let json: serde_json::Value = serde_json::from_str(&tune.to_json()).unwrap();
        assert_eq!((&json["best"]["point"], &json["best"]["meets"]), (&4.into(), &true.into()));
        assert_eq!(json["sensitivity"][0]["probes"][0]["value"], "10mbit");
        assert_eq!(json["pareto"]["points"], serde_json::json!([1, 4]));
        let page = html(&tune);
        for part in ["The best", "What matters", "The way of the search", "Best compromises", "All points"] {
            assert!(page.contains(part), "{part}");
        }
        assert!(!page.contains("<1>"));
        let lost = Tune { best: None, centre: None, probes: Vec::new(), ..tune };
        assert!(super::text(&lost).contains("no point could be judged"));
        assert!(html(&lost).contains("No point could be judged"));
    }
}
