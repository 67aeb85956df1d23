//! Line charts as SVG.
//!
//! Written here rather than with `plotters`: a chart must take its colours from the page it stands in (light, dark,
//! print), which needs classes and CSS variables instead of painted attributes, and its bytes must be the same on
//! every machine, which needs no font metrics. What is left to do is a scale, ticks, and paths.

use crate::number::{Unit, significant};
use std::fmt::Write as _;

/// How a curve is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stroke {
    /// A line from sample to sample.
    #[default]
    Line,
    /// A dot a sample.
    Dots,
    /// A broken line from sample to sample: what goes with another curve of its colour.
    Dashes,
    /// A ring a sample, and a broken line between them: what somebody else measured.
    Rings,
}

/// One curve of a chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Index of its colour, 0.. ([`COLOURS`] of them, then again from the first), or [`INK`].
    pub colour: usize,
    /// How it is drawn.
    pub stroke: Stroke,
    /// Samples in the order of x; a y that is not finite breaks the line.
    pub points: Vec<(f64, f64)>,
}

/// The range of a curve over repetitions.
#[derive(Clone, PartialEq, Debug)]
pub struct Band {
    /// Index of its colour, that of its curve.
    pub colour: usize,
    /// x, least and greatest, in the order of x; what is not finite is left out.
    pub points: Vec<(f64, f64, f64)>,
}

/// A horizontal mark: a configured rate, a limit.
#[derive(Clone, PartialEq, Debug)]
pub struct Level {
    /// What it is.
    pub name: String,
    /// Where, in y's unit.
    pub y: f64,
}

/// A chart: curves over time.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    /// What it shows; for readers who cannot see it, too.
    pub title: String,
    /// The unit of y.
    pub unit: Unit,
    /// From and to on the x axis.
    pub x: (f64, f64),
    /// What stands behind the last number of the x axis: ` s`.
    pub x_unit: &'static str,
    /// The curves.
    pub lines: Vec<Line>,
    /// Ranges, drawn below the curves.
    pub bands: Vec<Band>,
    /// The marks.
    pub levels: Vec<Level>,
    /// Whether y has a logarithmic scale; not positive values are then left out. The title says so.
    pub log: bool,
    /// Whether the curves (but those in [`INK`]) stand upon each other as areas, the first at the bottom.
    pub stacked: bool,
    /// Width and height in the units of the page.
    pub size: (f64, f64),
    /// How many of the curves the legend names: the first.
    named: usize,
}

/// How many colours there are: the classes `c0` … `c7`.
pub const COLOURS: usize = 8;
/// The colour of what is no single thing: a sum of others.
pub const INK: usize = usize::MAX;

/// The class of a colour.
fn class(colour: usize) -> String {
    if colour == INK { "ink".to_owned() } else { format!("c{}", colour % COLOURS) }
}

/// Style of a chart that stands alone; a page that embeds charts sets the same variables itself.
/// The colours are told apart in the common forms of colour blindness and reach 3:1 on both grounds.
pub const STYLE: &str = "\
:root{--ink:#1c2430;--soft:#5b6675;--rule:#e3e7ec;--ground:#fff;--c0:#0072b2;--c1:#d55e00;--c2:#00875f;--c3:#a8459a;\
--c4:#8a6d00;--c5:#2c8fb8;--c6:#b3364a;--c7:#5c6670}\
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#9aa6b5;--rule:#2b333f;--ground:#12161c;--c0:#4fa9e8;\
--c1:#ff9147;--c2:#3ecb9b;--c3:#e08ad4;--c4:#e0c04a;--c5:#79d2f2;--c6:#ff7d8e;--c7:#aeb8c4}}\
@media print{:root{--ink:#000;--soft:#444;--rule:#ccc;--ground:#fff;--c0:#0072b2;--c1:#d55e00;--c2:#00875f;--c3:#a8459a;\
--c4:#8a6d00;--c5:#2c8fb8;--c6:#b3364a;--c7:#5c6670}}";

/// Rules that draw a chart with the variables of [`STYLE`].
pub const CHART_STYLE: &str = "\
.chart text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--soft)}.chart .title{fill:var(--ink);\
font-weight:600;font-size:13px}.chart .grid{stroke:var(--rule);stroke-width:1}.chart .axis{stroke:var(--soft);stroke-width:1}\
.chart .level{stroke:var(--soft);stroke-width:1;stroke-dasharray:4 4}.chart .halo{paint-order:stroke;\
stroke:var(--ground);stroke-width:4px;stroke-linejoin:round}\
.chart .line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}\
.chart .c0{stroke:var(--c0)}.chart .c1{stroke:var(--c1)}.chart .c2{stroke:var(--c2)}.chart .c3{stroke:var(--c3)}\
.chart .c4{stroke:var(--c4)}.chart .c5{stroke:var(--c5)}.chart .c6{stroke:var(--c6)}.chart .c7{stroke:var(--c7)}\
.chart .dots{stroke-width:4.5;stroke-linecap:round;fill:none}.chart .ink{stroke:var(--ink)}.chart .dashes{stroke-dasharray:5 4}\
.chart .box{fill:var(--ground);stroke-width:1.5}.chart .median{stroke:var(--ink);stroke-width:2}\
.chart .band{stroke:none;opacity:.4}.chart .b0{fill:var(--c0)}.chart .b1{fill:var(--c1)}.chart .b2{fill:var(--c2)}\
.chart .b3{fill:var(--c3)}.chart .b4{fill:var(--c4)}.chart .b5{fill:var(--c5)}.chart .b6{fill:var(--c6)}.chart .b7{fill:var(--c7)}";

/// Rules for rings and bands, beside [`CHART_STYLE`].
pub const RANGE_STYLE: &str = "\
.chart .rings{stroke-width:1.8;fill:var(--ground)}.chart .between{stroke-width:1.2;stroke-dasharray:2 4;fill:none}\
.chart .band{opacity:.2}";

impl Chart {
    /// An empty chart of the common size.
    pub fn new(title: impl Into<String>, unit: Unit, x: (f64, f64)) -> Chart {
        Chart {
            title: title.into(),
            unit,
            x,
            x_unit: " s",
            lines: Vec::new(),
            bands: Vec::new(),
            levels: Vec::new(),
            log: false,
            stacked: false,
            size: (520.0, 236.0),
            named: usize::MAX,
        }
    }

    /// The chart as an `<svg>` element for a page that has [`STYLE`]'s variables and [`CHART_STYLE`].
    pub fn svg(&self) -> String {
        self.draw("")
    }

    /// The same with curves that the legend does not name.
    pub(crate) fn svg_with(&self, unnamed: &[Line]) -> String {
        let named = self.lines.len();
        let mut chart = self.clone();
        chart.lines.extend_from_slice(unnamed);
        chart.named = named;
        chart.draw("")
    }

    /// The chart as a file of its own.
    pub fn file(&self) -> String {
        let rings = self.lines.iter().any(|l| l.stroke == Stroke::Rings);
        let ranges = if rings || !self.bands.is_empty() { RANGE_STYLE } else { "" };
        self.draw(&format!("<style>{STYLE}{CHART_STYLE}{ranges}.chart{{background:var(--ground)}}</style>"))
    }

    fn draw(&self, style: &str) -> String {
        let (width, height) = self.size;
        if self.stacked {
            return self.upon_each_other(style);
        }
        let mut out = String::new();
        let _ = write!(
            out,
            "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             role=\"img\" aria-label=\"{}\">{style}",
            escape(&self.title)
        );
        let ticks = self.y_ticks();
        let (_, unit) = self.scale(&ticks);
        let _ = write!(
            out,
            "<text x=\"0\" y=\"14\"><tspan class=\"title\">{}</tspan>{}{}{}</text>",
            escape(&self.title),
            if unit.is_empty() { "" } else { ", " },
            escape(unit),
            if self.log { ", logarithmic" } else { "" }
        );
        let legend_bottom = self.legend(&mut out, 36.0);
        let frame = Frame {
            left: 46.0,
            right: width - 10.0,
            top: legend_bottom + 14.0,
            bottom: height - 26.0,
            x: self.x,
            y: (ticks[0], ticks[ticks.len() - 1]),
            log: self.log,
        };
        self.axes(&mut out, &frame, &ticks);
        for band in &self.bands {
            band.draw(&mut out, &frame);
        }
        for line in &self.lines {
            line.draw(&mut out, &frame);
        }
        for level in &self.levels {
            let Some(y) = frame.y_at(level.y) else { continue };
            let _ = write!(
                out,
                "<path class=\"level\" d=\"M{:.1} {y:.1}H{:.1}\"/><text class=\"halo\" x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                frame.left,
                frame.right,
                frame.right,
                y - 4.0,
                escape(&level.name)
            );
        }
        out.push_str("</svg>\n");
        out
    }

    /// Its curves as bands upon each other, with their upper edges.
    fn upon_each_other(&self, style: &str) -> String {
        let mut times: Vec<f64> = self.lines.iter().flat_map(|l| l.points.iter().map(|p| p.0)).collect();
        times.sort_by(f64::total_cmp);
        times.dedup();
        let mut chart = Chart { stacked: false, bands: Vec::new(), lines: Vec::new(), ..self.clone() };
        let mut below = vec![0.0; times.len()];
        for line in &self.lines {
            if line.colour == INK {
                chart.lines.push(line.clone());
                continue;
            }
            // Between two of its samples a curve keeps the earlier one's value; outside of its life it is nothing.
            let (mut next, mut value) = (0, 0.0);
            let (mut band, mut edge) = (Vec::new(), Vec::new());
            for (&t, below) in times.iter().zip(&mut below) {
                while line.points.get(next).is_some_and(|p| p.0 <= t) {
                    value = if line.points[next].1.is_finite() { line.points[next].1 } else { 0.0 };
                    next += 1;
                }
                let alive = next > 0 && (next < line.points.len() || line.points[next - 1].0 == t);
                let top = *below + if alive { value } else { 0.0 };
                band.push((t, *below, top));
                edge.push((t, top));
                *below = top;
            }
            chart.bands.push(Band { colour: line.colour, points: band });
            chart.lines.push(Line { points: edge, ..line.clone() });
        }
        chart.draw(style)
    }

    /// Names of the curves in rows below the title; where they end.
    fn legend(&self, out: &mut String, top: f64) -> f64 {
        let (mut x, mut y) = (0.0, top);
        // Rings that a curve of their colour explains are named once for all.
        let explained = |ring: &Line| {
            let by = |l: &&Line| l.stroke != Stroke::Rings && l.colour % COLOURS == ring.colour % COLOURS;
            ring.stroke == Stroke::Rings && ring.name.contains(", ") && self.lines.iter().any(|l| by(&l))
        };
        let all = self.lines.iter().find(|l| explained(l)).map(|ring| Line {
            name: ring.name.rsplit(", ").next().unwrap_or_default().to_owned(),
            points: Vec::new(),
            ..ring.clone()
        });
        for line in self.lines.iter().take(self.named).filter(|l| !explained(l)).chain(&all) {
            let letter = |c: char| if c.is_uppercase() || c == '+' { 8.6 } else { 6.6 };
            let wide = 34.0 + line.name.chars().map(letter).sum::<f64>();
            if x > 0.0 && x + wide > self.size.0 {
                (x, y) = (0.0, y + 18.0);
            }
            let colour = class(line.colour);
            let _ = match line.stroke {
                Stroke::Rings => {
                    write!(
                        out,
                        "<circle class=\"rings {colour}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"/>",
                        x + 9.0,
                        y - 4.0
                    )
                }
                Stroke::Line | Stroke::Dots | Stroke::Dashes => {
                    write!(out, "<path class=\"key {colour}\" d=\"M{:.1} {:.1}h14\"/>", x + 2.0, y - 4.0)
                }
            };
            let _ = write!(out, "<text x=\"{:.1}\" y=\"{y:.1}\">{}</text>", x + 22.0, escape(&line.name));
            x += wide;
        }
        y
    }

    fn y_ticks(&self) -> Vec<f64> {
        let ys = self.lines.iter().flat_map(|l| l.points.iter().map(|p| p.1));
        let bands = self.bands.iter().flat_map(|b| b.points.iter().flat_map(|p| [p.1, p.2]));
        let values = ys.chain(bands).chain(self.levels.iter().map(|l| l.y)).filter(|y| y.is_finite());
        if self.log {
            let (mut low, mut high) = (f64::INFINITY, 0.0f64);
            for y in values.filter(|&y| y > 0.0) {
                (low, high) = (low.min(y), high.max(y));
            }
            if low > high {
                (low, high) = (1.0, 10.0);
            }
            let mut ticks = vec![decade_below(low)];
            while ticks[ticks.len() - 1] < high && ticks.len() < 12 {
                ticks.push(ticks[ticks.len() - 1] * 10.0);
            }
            if ticks.len() == 1 {
                ticks.push(ticks[0] * 10.0);
            }
            return ticks;
        }
        let max = values.fold(0.0f64, f64::max);
        let (factor, _) = self.unit.scale(max);
        let step = nice_step(if max > 0.0 { max / factor } else { 1.0 }, 5) * factor;
        let mut ticks = vec![0.0];
        while ticks.len() < MAX_TICKS && ticks[ticks.len() - 1] < max * 0.999 || ticks.len() < 2 {
            ticks.push(ticks.len() as f64 * step);
        }
        ticks
    }

    /// How y's numbers are written: by the greatest, or by the middle of a logarithmic scale.
    fn scale(&self, ticks: &[f64]) -> (f64, &'static str) {
        self.unit.scale(if self.log { ticks[ticks.len() / 2] } else { ticks[ticks.len() - 1] })
    }

    fn axes(&self, out: &mut String, frame: &Frame, ticks: &[f64]) {
        let (factor, _) = self.scale(ticks);
        for &tick in ticks {
            let Some(y) = frame.y_at(tick) else { continue };
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{:.1} {y:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{}</text>",
                frame.left,
                frame.right,
                frame.left - 8.0,
                y + 4.0,
                significant(tick / factor)
            );
        }
        let step = nice_step((self.x.1 - self.x.0).max(1e-9), 8);
        // Where the last number with its unit begins: the one before it must end there.
        let last_at = (self.x.1 * 1.000_001 / step).floor() * step;
        let last_wide = 6.6 * (significant(last_at).chars().count() + self.x_unit.chars().count()) as f64;
        let at_edge = frame.x_at(last_at) > frame.right - 12.0;
        let last_from = frame.x_at(last_at) - if at_edge { last_wide } else { last_wide / 2.0 };
        let mut i = (self.x.0 / step).ceil();
        let end = i + MAX_TICKS as f64;
        while i < end && i * step <= self.x.1 * 1.000_001 {
            let t = i * step;
            let x = frame.x_at(t);
            let last = (i + 1.0) * step > self.x.1 * 1.000_001;
            if !last && x + 3.3 * significant(t).chars().count() as f64 + 4.0 > last_from {
                let _ = write!(out, "<path class=\"axis\" d=\"M{x:.1} {:.1}v4\"/>", frame.bottom);
                i += 1.0;
                continue;
            }
            let _ = write!(
                out,
                "<path class=\"axis\" d=\"M{x:.1} {:.1}v4\"/><text x=\"{x:.1}\" y=\"{:.1}\" \
                 text-anchor=\"{}\">{}{}</text>",
                frame.bottom,
                frame.bottom + 18.0,
                if last && x > frame.right - 12.0 { "end" } else { "middle" },
                significant(t),
                if last { self.x_unit } else { "" }
            );
            i += 1.0;
        }
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{:.1} {:.1}H{:.1}\"/>",
            frame.left, frame.bottom, frame.right
        );
    }
}

/// Where the curves are drawn.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: (f64, f64),
    y: (f64, f64),
    log: bool,
}

impl Frame {
    fn x_at(&self, x: f64) -> f64 {
        let share = (x - self.x.0) / (self.x.1 - self.x.0).max(1e-9);
        self.left + share.clamp(0.0, 1.0) * (self.right - self.left)
    }
    fn y_at(&self, y: f64) -> Option<f64> {
        let (low, high) = self.y;
        let share = match self.log {
            true if y <= 0.0 => return None,
            true => (y.log10() - low.log10()) / (high.log10() - low.log10()),
            false => (y - low) / (high - low),
        };
        share.is_finite().then(|| self.bottom - share.clamp(0.0, 1.0) * (self.bottom - self.top))
    }
}

impl Band {
    fn draw(&self, out: &mut String, frame: &Frame) {
        // On a logarithmic scale what is not above zero lies at the bottom.
        let y_at = |y: f64| if frame.log && y <= 0.0 { Some(frame.bottom) } else { frame.y_at(y) };
        let place = |&(x, low, high): &(f64, f64, f64)| Some((frame.x_at(x), y_at(low)?, y_at(high)?));
        let placed: Vec<(f64, f64, f64)> = self.points.iter().filter_map(place).collect();
        let mut path = String::new();
        for (n, (x, _, high)) in placed.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {high:.1}", if n == 0 { 'M' } else { 'L' });
        }
        for (x, low, _) in placed.iter().rev() {
            let _ = write!(path, "L{x:.1} {low:.1}");
        }
        if !path.is_empty() {
            let _ = write!(out, "<path class=\"band b{}\" d=\"{path}Z\"/>", self.colour % COLOURS);
        }
    }
}

impl Line {
    fn draw(&self, out: &mut String, frame: &Frame) {
        if self.stroke == Stroke::Rings {
            return self.rings(out, frame);
        }
        let mut path = String::new();
        let mut pen_down = false;
        let mut last = (f64::NAN, f64::NAN);
        for &(x, y) in &self.points {
            let Some(y) = frame.y_at(y) else {
                pen_down = false;
                continue;
            };
            let x = frame.x_at(x);
            match (self.stroke, pen_down) {
                (Stroke::Dots, _) => {
                    // Dots closer than half a unit to the one before hide each other.
                    if (x - last.0).abs() < 0.5 && (y - last.1).abs() < 0.5 {
                        continue;
                    }
                    let _ = write!(path, "M{x:.1} {y:.1}h0");
                }
                (_, true) => {
                    let _ = write!(path, "L{x:.1} {y:.1}");
                }
                (_, false) => {
                    let _ = write!(path, "M{x:.1} {y:.1}");
                }
            }
            pen_down = true;
            last = (x, y);
        }
        if !path.is_empty() {
            let kind = match self.stroke {
                Stroke::Dots => "dots",
                Stroke::Dashes => "line dashes",
                _ => "line",
            };
            let _ = write!(
                out,
                "<path class=\"{kind} {}\" d=\"{path}\"><title>{}</title></path>",
                class(self.colour),
                escape(&self.name)
            );
        }
    }

    fn rings(&self, out: &mut String, frame: &Frame) {
        let colour = self.colour % COLOURS;
        let placed = self.points.iter().filter_map(|&(x, y)| Some((frame.x_at(x), frame.y_at(y)?)));
        let placed: Vec<(f64, f64)> = placed.collect();
        if placed.len() > 1 {
            let _ = write!(out, "<path class=\"between c{colour}\" d=\"");
            for (n, (x, y)) in placed.iter().enumerate() {
                let _ = write!(out, "{}{x:.1} {y:.1}", if n == 0 { 'M' } else { 'L' });
            }
            out.push_str("\"/>");
        }
        for (x, y) in placed {
            let _ = write!(
                out,
                "<circle class=\"rings c{colour}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"><title>{}</title></circle>",
                escape(&self.name)
            );
        }
    }
}

/// Most marks of an axis, whatever the numbers are.
const MAX_TICKS: usize = 32;

/// A step of 1, 2 or 5 times a power of ten that divides `span` into at most `most` parts.
pub(crate) fn nice_step(span: f64, most: u32) -> f64 {
    let rough = span / f64::from(most);
    let power = decade_below(rough);
    let factors = [1.0, 2.0, 5.0, 10.0];
    power * factors.into_iter().find(|f| power * f >= rough * 0.999_999).unwrap_or(10.0)
}

/// The greatest power of ten not above `x`, for positive `x`.
fn decade_below(x: f64) -> f64 {
    let mut power = 1.0;
    while power > x && power > 1e-12 {
        power /= 10.0;
    }
    while power * 10.0 <= x && power < 1e300 {
        power *= 10.0;
    }
    power
}

/// Text as it may stand in XML.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(points: Vec<(f64, f64)>) -> Line {
        Line { name: "a <b>".into(), colour: 9, stroke: Stroke::Line, points }
    }

    #[test]
    fn steps_are_nice() {
        let check = |span: f64, most: u32, step: f64| {
            let got = nice_step(span, most);
            assert!((got / step - 1.0).abs() < 1e-9, "{span}/{most}: {got}");
        };
        check(10.0, 5, 2.0);
        check(12.0, 8, 2.0);
        check(72.2, 5, 20.0);
        check(0.35, 5, 0.1);
        check(100.0, 10, 10.0);
    }

    #[test]
    fn a_chart_names_what_it_draws() {
        let mut chart = Chart::new("Throughput", Unit::BitPerSecond, (0.0, 10.0));
        chart.lines.push(line(vec![(0.0, 1e6), (5.0, 5.85e6), (6.0, f64::NAN), (10.0, 2e6)]));
        chart.levels.push(Level { name: "6 Mbit/s".into(), y: 6e6 });
        let svg = chart.svg();
        assert!(
            svg.contains(", Mbit/s</text>") && svg.contains("a &lt;b&gt;") && svg.contains(" s</text>"),
            "{svg}"
        );
        assert!(svg.contains("class=\"line c1\""), "{svg}");
        assert!(chart.file().contains("prefers-color-scheme:dark"));
        assert_eq!(svg, chart.svg());
    }

    #[test]
    fn curves_stand_upon_each_other() {
        let mut chart = Chart::new("x", Unit::BitPerSecond, (0.0, 2.0));
        chart.stacked = true;
        let of = |colour, points| Line { name: "l".into(), colour, stroke: Stroke::Line, points };
        chart.lines.push(of(0, vec![(0.0, 1e6), (1.0, 2e6), (2.0, 1e6)]));
        chart.lines.push(of(1, vec![(1.0, 3e6), (2.0, 3e6)]));
        chart.lines.push(of(INK, vec![(0.0, 1e6), (2.0, 4e6)]));
        let svg = chart.svg();
        let mut edges = Chart { stacked: false, ..chart.clone() };
        edges.lines[1].points = vec![(0.0, 1e6), (1.0, 5e6), (2.0, 4e6)];
        // The second begins where the first is at its first sample and ends at the sum.
        let path = |svg: &str, of: &str| {
            svg.split(&format!("class=\"line {of}\" d=\""))
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
                .to_owned()
        };
        assert_eq!(path(&svg, "c1"), path(&edges.svg(), "c1"));
        assert_eq!(path(&svg, "ink"), path(&edges.svg(), "ink"));
        assert_eq!(svg.matches("class=\"band").count(), 2);
    }

    #[test]
    fn a_logarithmic_scale_is_said() {
        let mut chart = Chart::new("x", Unit::Millisecond, (0.0, 2.0));
        chart.lines.push(line(vec![(0.0, 1.0), (1.0, 100.0)]));
        assert!(!chart.svg().contains("logarithmic"));
        chart.log = true;
        assert!(chart.svg().contains("ms, logarithmic</text>"));
    }

    #[test]
    fn what_others_measured_is_drawn_as_rings_over_a_band() {
        let mut chart = Chart::new("x", Unit::Count, (0.0, 10.0));
        chart.log = true;
        chart.lines.push(Line { stroke: Stroke::Rings, ..line(vec![(1.0, 10.0), (2.0, 0.0), (9.0, 90.0)]) });
        chart.bands.push(Band { colour: 1, points: vec![(1.0, 0.0, 20.0), (9.0, 70.0, 95.0)] });
        let svg = chart.svg();
        // Two rings and that of the legend: nothing is drawn of zero on a logarithmic scale; the band reaches down to the bottom.
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        assert!(svg.find("class=\"band b1\"").unwrap() < svg.find("class=\"between c1\"").unwrap(), "{svg}");
    }

    proptest! {
        #[test]
        fn any_numbers_make_a_chart(
            points in proptest::collection::vec((proptest::num::f64::ANY, proptest::num::f64::ANY), 0..20),
            from in -1e3f64..1e3, long in 0.0f64..1e6, log in proptest::bool::ANY) {
            let mut chart = Chart::new("x", Unit::Millisecond, (from, from + long));
            chart.log = log;
            chart.lines.push(line(points.into_iter().map(|(x, y)| (x, y.clamp(-1e12, 1e12))).collect()));
            prop_assert!(chart.svg().ends_with("</svg>\n"));
        }
    }
}
