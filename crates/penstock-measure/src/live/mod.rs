//! Charts that one can use: hover, zoom, choose, search, download; and pictures of the same where a page is printed or its scripts do not run.
//!
//! A page makes its [`Panel`]s and [`Live`] turns each into a figure: a picture ([`Chart`]), a table of its figures for those who cannot see it, and its data for
//! uPlot (`vendor/uplot`, MIT). Nothing is fetched from anywhere.
//!
//! Data. Times stand in grids that curves share; a value is a number of 16 bits relative to its curve's greatest, 5 of them an exponent: off by less
//! than 1/4000 of itself, as far down as 2^-31 of the greatest. A curve of very many samples is cut into equal stretches with the mean, the least and the greatest
//! of each. All of it is deflated.

mod pack;
#[cfg(test)]
mod tests;

use crate::number::Unit;
use crate::plot::{COLOURS, Chart, INK, Level, Line, Stroke, escape};
use base64::Engine as _;
use std::borrow::Cow;
use std::fmt::Write as _;

/// One curve of a panel.
#[derive(Clone, Debug)]
pub struct Curve<'a> {
    /// Its name, by which it is found.
    pub name: String,
    /// Its colour, or [`INK`].
    pub colour: usize,
    /// How it is drawn.
    pub stroke: Stroke,
    /// Which are shown first: those with most. [`ALWAYS`] is never left out.
    pub weight: f64,
    /// Samples in the order of x, none below zero. What is not finite stands for a gap.
    pub points: Cow<'a, [(f64, f64)]>,
    /// The rate that was promised, in y's unit.
    pub rate: Option<f64>,
    /// The ceiling, in y's unit.
    pub ceil: Option<f64>,
}

/// The weight of a curve that is always shown.
pub const ALWAYS: f64 = 1e301;

impl<'a> Curve<'a> {
    /// A line; its weight is the sum of its values.
    pub fn new(
        name: impl Into<String>,
        colour: usize,
        points: impl Into<Cow<'a, [(f64, f64)]>>,
    ) -> Curve<'a> {
        let points = points.into();
        let weight = points.iter().map(|p| p.1).filter(|y| y.is_finite()).sum::<f64>().max(0.0);
        Curve { name: name.into(), colour, stroke: Stroke::Line, weight, points, rate: None, ceil: None }
    }
}

/// What the x axis counts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Axis {
    /// Seconds of the run: all such charts of a page share it.
    Time,
    /// Something else, in this unit.
    Other(&'static str),
}

/// Whether curves may stand upon each other as areas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stack {
    /// Their sum means nothing.
    No,
    /// One may ask for it.
    May,
    /// They do, until one asks for lines.
    Yes,
}

/// A chart.
#[derive(Clone, Debug)]
pub struct Panel<'a> {
    /// Its name in addresses and of its downloads: `throughput`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// The unit of y.
    pub unit: Unit,
    /// What x counts.
    pub axis: Axis,
    /// From and to on the x axis.
    pub x: (f64, f64),
    /// The upper end of y, where it is not that of the curves.
    pub top: Option<f64>,
    /// Whether y is logarithmic at first.
    pub log: bool,
    /// Whether curves may be stacked.
    pub stack: Stack,
    /// Marks across.
    pub levels: Vec<Level>,
    /// The curves.
    pub curves: Vec<Curve<'a>>,
    /// What is to be known of it; HTML.
    pub note: String,
    /// Whether it takes the whole width.
    pub wide: bool,
}

impl<'a> Panel<'a> {
    /// An empty chart over the time of a run.
    pub fn over_time(id: impl Into<String>, title: impl Into<String>, unit: Unit, seconds: f64) -> Panel<'a> {
        Panel {
            id: id.into(),
            title: title.into(),
            unit,
            axis: Axis::Time,
            x: (0.0, seconds),
            top: None,
            log: false,
            stack: Stack::No,
            levels: Vec::new(),
            curves: Vec::new(),
            note: String::new(),
            wide: false,
        }
    }

    /// A chart over time that was made as a picture. Rings become dots; its bands are not taken.
    pub fn of_chart(id: impl Into<String>, chart: &Chart) -> Panel<'static> {
        let mut panel = Panel::over_time(id, chart.title.clone(), chart.unit, chart.x.1);
        panel.log = chart.log;
        panel.levels = chart.levels.clone();
        panel.curves = chart
            .lines
            .iter()
            .map(|line| Curve {
                stroke: if line.stroke == Stroke::Rings { Stroke::Dots } else { line.stroke },
                ..Curve::new(line.name.clone(), line.colour, line.points.clone())
            })
            .collect();
        panel
    }

    /// Makes the scale logarithmic if only that shows the least and the greatest value.
    pub fn log_if_far(mut self) -> Panel<'a> {
        let values = self.curves.iter().flat_map(|c| c.points.iter().map(|p| p.1)).filter(|y| *y > 0.0);
        let (low, high) = values.fold((f64::INFINITY, 0.0f64), |(l, h), y| (l.min(y), h.max(y)));
        self.log = high > 30.0 * low;
        self
    }

    /// The curves that are shown at first, in their order.
    fn first(&self) -> Vec<&Curve<'a>> {
        let mut order: Vec<usize> = (0..self.curves.len()).collect();
        order.sort_by(|&a, &b| self.curves[b].weight.total_cmp(&self.curves[a].weight).then(a.cmp(&b)));
        let always = order.iter().filter(|&&i| self.curves[i].weight >= ALWAYS).count();
        order.truncate(always + MOST);
        order.sort_unstable();
        order.into_iter().map(|i| &self.curves[i]).collect()
    }

    /// The chart as a picture of the curves that are shown at first.
    fn picture(&self) -> Chart {
        let mut chart = Chart::new(self.title.clone(), self.unit, self.x);
        if let Axis::Other(unit) = self.axis {
            chart.x_unit = unit;
        }
        chart.log = self.log;
        chart.stacked = self.stack == Stack::Yes;
        if self.wide {
            chart.size = (1080.0, 260.0);
        }
        for curve in self.first() {
            let points = match curve.stroke {
                Stroke::Dots => sparse(&curve.points, 600),
                _ if self.axis == Axis::Time => {
                    with_gaps(thinned(&curve.points, if self.wide { 300 } else { 150 }), self.x.1)
                }
                _ => curve.points.to_vec(),
            };
            chart.lines.push(Line {
                name: curve.name.clone(),
                colour: curve.colour,
                stroke: curve.stroke,
                points,
            });
        }
        let highest = chart.lines.iter().flat_map(|l| l.points.iter().map(|p| p.1)).fold(0.0f64, f64::max);
        chart.levels = self.levels.iter().filter(|l| chart.stacked || l.y < 3.0 * highest).cloned().collect();
        chart
    }

    /// Its figures as a table.
    fn table(&self) -> String {
        let mut out = format!(
            "<details class=\"data\"><summary>these figures as a table</summary><div class=\"wide\" tabindex=\"0\"><table><caption class=\"sr\">{}</caption>\
             <thead><tr><th scope=\"col\">series</th><th scope=\"col\" class=\"n\">mean</th><th scope=\"col\" class=\"n\">least</th>\
             <th scope=\"col\" class=\"n\">greatest</th></tr></thead><tbody>",
            escape(&self.title)
        );
        let mut order: Vec<&Curve<'_>> = self.curves.iter().collect();
        order.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        for curve in order.iter().take(TABLE) {
            let values = || curve.points.iter().map(|p| p.1).filter(|y| y.is_finite());
            let n = values().count().max(1) as f64;
            let show = |x: f64| if x.is_finite() { self.unit.show(x) } else { "–".to_owned() };
            let _ = write!(
                out,
                "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
                escape(&curve.name),
                show(values().sum::<f64>() / n),
                show(values().fold(f64::INFINITY, f64::min)),
                show(values().fold(f64::NEG_INFINITY, f64::max)),
            );
        }
        out.push_str("</tbody></table></div>");
        if order.len() > TABLE {
            let _ = write!(out, "<p class=\"note\">and {} more</p>", order.len() - TABLE);
        }
        out.push_str("</details>");
        out
    }
}

/// Most curves that are shown at first: as many as there are colours.
pub const MOST: usize = COLOURS;
/// Rows of a chart's table.
const TABLE: usize = 20;

/// Joins neighbours until there are few enough to see: each point is the mean of its neighbours.
fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let per = points.len().div_ceil(most.max(1)).max(1);
    let mean = |c: &[(f64, f64)]| (c[c.len() - 1].0, c.iter().map(|p| p.1).sum::<f64>() / c.len() as f64);
    points.chunks(per).map(mean).collect()
}

/// Of many dots the least and the greatest of each stretch.
fn sparse(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let per = points.len().div_ceil(most.max(2) / 2).max(1);
    if points.len() <= most {
        return points.to_vec();
    }
    let ends = |c: &[(f64, f64)]| {
        let by = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (low, high) =
            (*c.iter().min_by(by).expect("no chunk is empty"), *c.iter().max_by(by).expect("as before"));
        if low.0 <= high.0 { [low, high] } else { [high, low] }
    };
    points.chunks(per).flat_map(ends).collect()
}

/// The charts of a page.
#[derive(Default)]
pub struct Live {
    data: pack::Pack,
    panels: Vec<serde_json::Value>,
    most: usize,
}

impl Live {
    /// A page whose time goes to `seconds`.
    pub fn new(seconds: f64) -> Live {
        Live { data: pack::Pack::new(seconds), panels: Vec::new(), most: 0 }
    }

    /// The figure of a chart; empty without curves.
    pub fn figure(&mut self, panel: &Panel<'_>) -> String {
        if panel.curves.is_empty() {
            return String::new();
        }
        let index = self.panels.len();
        self.most = self.most.max(panel.curves.len());
        let limit = (40_000 / panel.curves.len()).clamp(250, 1200);
        let curves: Vec<serde_json::Value> =
            panel.curves.iter().map(|c| self.data.curve(c, panel, limit)).collect();
        let levels: Vec<(&str, f64)> = panel.levels.iter().map(|l| (l.name.as_str(), l.y)).collect();
        let stack = match panel.stack {
            Stack::No => 0,
            Stack::May => 1,
            Stack::Yes => 2,
        };
        let (axis, xunit) = match panel.axis {
            Axis::Time => ("time", "s"),
            Axis::Other(unit) => ("other", unit.trim()),
        };
        self.panels.push(serde_json::json!({
            "id": panel.id, "title": panel.title, "unit": unit_name(panel.unit), "axis": axis, "xunit": xunit, "x": panel.x, "top": panel.top,
            "log": panel.log, "stack": stack, "tall": if panel.wide { 240 } else { 210 }, "levels": levels, "curves": curves,
        }));
        let caption = match panel.note.is_empty() {
            true => String::new(),
            false => format!("<figcaption>{}</figcaption>", panel.note),
        };
        format!(
            "<figure class=\"panel{}\" id=\"{}\" data-panel=\"{index}\"><div class=\"static\">{}</div>{caption}{}</figure>\n",
            if panel.wide { " wide-panel" } else { "" },
            escape(&panel.id),
            panel.picture().svg(),
            panel.table()
        )
    }

    /// What makes the figures live, for the end of the page. Empty where there are none.
    pub fn scripts(&self, seconds: f64) -> String {
        if self.panels.is_empty() {
            return String::new();
        }
        let head = serde_json::json!({
            "seconds": seconds, "most": MOST, "curves": self.most, "grids": self.data.grids(), "panels": self.panels,
        });
        // Within a script element only an end tag is read as one.
        let head = head.to_string().replace('<', "\\u003c");
        let bits = base64::engine::general_purpose::STANDARD.encode(self.data.bits());
        format!(
            "<script type=\"application/json\" id=\"charts-head\">{head}</script>\n<script type=\"text/plain\" id=\"charts-bits\">{bits}</script>\n\
             <script>{UPLOT}</script>\n<script>\n{SCRIPT}</script>\n"
        )
    }
}

fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::BitPerSecond => "bit/s",
        Unit::Byte => "B",
        Unit::Millisecond => "ms",
        Unit::Second => "s",
        Unit::Share => "%",
        Unit::Count => "",
    }
}

const UPLOT: &str = include_str!("../../vendor/uplot/uPlot.iife.min.js");
const SCRIPT: &str = include_str!("live.js");
/// Rules of live charts, beside [`crate::plot::STYLE`] and [`crate::plot::CHART_STYLE`].
pub const LIVE_STYLE: &str =
    concat!(include_str!("../../vendor/uplot/uPlot.min.css"), include_str!("live.css"));

/// Whether a curve has anything to show.
pub fn any(points: &[(f64, f64)]) -> bool {
    points.iter().any(|p| p.1 > 0.0)
}

/// A picture's line is broken where there is no sample for so long that one sees it.
fn with_gaps(points: Vec<(f64, f64)>, seconds: f64) -> Vec<(f64, f64)> {
    let long = seconds / 25.0;
    let mut all = Vec::with_capacity(points.len());
    for (i, &(t, y)) in points.iter().enumerate() {
        if i > 0 && t - points[i - 1].0 > long {
            all.push(((t + points[i - 1].0) / 2.0, f64::NAN));
        }
        all.push((t, y));
    }
    all
}

/// The sum of curves at every instant that any of them has; one that has no sample there counts with nothing.
pub fn sum<'a>(curves: impl IntoIterator<Item = &'a [(f64, f64)]>) -> Vec<(f64, f64)> {
    let mut all: std::collections::BTreeMap<u64, f64> = std::collections::BTreeMap::new();
    for curve in curves {
        for &(t, y) in curve.iter().filter(|p| p.0 >= 0.0 && p.1.is_finite()) {
            // Of numbers that are not negative the order is that of their bits.
            *all.entry(t.to_bits()).or_default() += y;
        }
    }
    all.into_iter().map(|(t, y)| (f64::from_bits(t), y)).collect()
}

/// A colour for the sum of others.
pub const SUM: usize = INK;
