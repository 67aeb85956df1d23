//! Pictures of a study: its figures drawn from our runs, on the document's axes, with what the document printed of them.

use super::Study;
use super::evidence::Run;
use super::numbers::Numbers;
use super::texts::median;
use penstock_measure::number::Unit;
use penstock_measure::plot::{Band, Chart, Line, Stroke};
use serde::Deserialize;
use std::path::Path;

/// A picture.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The file's name without its ending: `figure-4`.
    pub name: String,
    /// What is drawn.
    pub chart: Chart,
    /// What the document says of it, where that is no point of it.
    pub says: String,
}

impl Figure {
    /// A chart as a picture.
    pub fn of(name: &str, chart: &Chart) -> Figure {
        Figure { name: name.to_owned(), chart: chart.clone(), says: String::new() }
    }
    /// The picture as a file of its own.
    pub fn svg(&self) -> String {
        self.chart.file()
    }
}

/// What `figures.toml` says of a study's figures.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    #[serde(default)]
    figure: Vec<Said>,
    #[serde(default)]
    curve: Vec<Curve>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    name: String,
    says: String,
}

/// What the document printed of a curve.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Curve {
    figure: String,
    of: String,
    #[serde(default)]
    points: Vec<(f64, f64)>,
    numbers: Option<OfTables>,
}

/// A curve of a table's numbers: those of the flow in these experiments, in their order.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OfTables {
    /// What the experiments' names begin with.
    experiments: String,
    /// Where each number stands.
    x: Vec<f64>,
    /// What makes a number the axis's.
    scale: f64,
}

impl Study {
    /// One figure of the same name from those of all seeds: medians, the range over the seeds, what the document printed.
    pub(super) fn drawn(&self, seeds: &[Vec<Figure>]) -> Vec<Figure> {
        let printed = self.printed();
        let first = seeds.first().map_or(&[][..], Vec::as_slice);
        let one = |figure: &Figure| {
            let all: Vec<&Chart> = seeds
                .iter()
                .filter_map(|s| s.iter().find(|f| f.name == figure.name))
                .map(|f| &f.chart)
                .collect();
            let mut chart = over(&all);
            for curve in printed.curve.iter().filter(|c| c.figure == figure.name) {
                let Some(line) = chart.lines.iter().find(|l| l.name == curve.of) else { continue };
                let line = Line {
                    name: format!("{}, printed", curve.of),
                    colour: line.colour,
                    stroke: Stroke::Rings,
                    points: self.points(curve),
                };
                chart.lines.push(line);
            }
            let says = printed.figure.iter().find(|f| f.name == figure.name);
            Figure { name: figure.name.clone(), chart, says: says.map_or(String::new(), |s| s.says.clone()) }
        };
        let mut drawn: Vec<Figure> = first.iter().map(one).collect();
        drawn.sort_by_key(|figure| number(&figure.name));
        drawn
    }

    /// What its document printed of its figures.
    fn printed(&self) -> Printed {
        self.find_text("figures.toml").map_or_else(Printed::default, |_| self.table("figures.toml"))
    }

    /// The points of a curve, its own or those of the tables.
    fn points(&self, curve: &Curve) -> Vec<(f64, f64)> {
        let Some(table) = &curve.numbers else { return curve.points.clone() };
        let numbers: Numbers = self.table("published.toml");
        let mine = numbers.number.iter().filter(|n| {
            n.experiment.starts_with(&table.experiments) && n.flow == curve.of && n.excluded.is_none()
        });
        // A misprinted number leaves its place empty.
        let rows: Vec<&str> = numbers
            .number
            .iter()
            .filter(|n| n.experiment.starts_with(&table.experiments) && n.flow == curve.of)
            .map(|n| n.experiment.as_str())
            .collect();
        let x = |experiment: &str| rows.iter().position(|r| *r == experiment).and_then(|n| table.x.get(n));
        mine.filter_map(|n| Some((*x(&n.experiment)?, n.value * table.scale))).collect()
    }
}

/// The same chart from several runs: each curve's median and range, at the moments of the first. Dots are those of the first run.
fn over(charts: &[&Chart]) -> Chart {
    let Some(first) = charts.first() else { return Chart::new("", Unit::Count, (0.0, 1.0)) };
    let mut chart = (*first).clone();
    if charts.len() < 2 {
        return chart;
    }
    for line in chart.lines.iter_mut().filter(|l| l.stroke == Stroke::Line) {
        let same: Vec<&Line> =
            charts.iter().filter_map(|c| c.lines.iter().find(|l| l.name == line.name)).collect();
        let mut band = Band { colour: line.colour, points: Vec::new() };
        for point in &mut line.points {
            let values: Vec<f64> = same.iter().filter_map(|l| at(&l.points, point.0)).collect();
            let Some(middle) = median(&values) else { continue };
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            point.1 = middle;
            band.points.push((point.0, low, high));
        }
        chart.bands.push(band);
    }
    chart
}

/// The value of a curve at a place, between its samples in proportion; none outside of them.
fn at(points: &[(f64, f64)], x: f64) -> Option<f64> {
    let after = points.partition_point(|p| p.0 < x);
    let right = points.get(after)?;
    if right.0 == x {
        return Some(right.1);
    }
    let left = points.get(after.checked_sub(1)?)?;
    Some(left.1 + (right.1 - left.1) * (x - left.0) / (right.0 - left.0))
}

/// The number in a figure's name: `figure-10` comes after `figure-9`. What has none comes last, as it was drawn.
fn number(name: &str) -> u32 {
    let digits: String =
        name.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(u32::MAX)
}

/// Writes pictures into a folder.
///
/// # Errors
/// The folder or a file cannot be written.
pub fn write(figures: &[Figure], folder: &Path) -> Result<(), String> {
    if figures.is_empty() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for figure in figures {
        let path = folder.join(format!("{}.svg", figure.name));
        penstock_files::replace(&path, figure.svg()).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// A chart of curves.
pub(super) fn chart(title: &str, unit: Unit, x: (f64, f64), x_unit: &'static str) -> Chart {
    let mut chart = Chart::new(title, unit, x);
    chart.x_unit = x_unit;
    chart.size = (640.0, 300.0);
    chart
}

/// Adds a curve.
pub(super) fn curve(chart: &mut Chart, name: &str, stroke: Stroke, points: Vec<(f64, f64)>) {
    let colour = chart.lines.len();
    chart.lines.push(Line { name: name.to_owned(), colour, stroke, points });
}

/// Rates of the flows of a run over time.
pub(super) fn rates(title: &str, run: &Run) -> Chart {
    let mut picture = chart(title, Unit::BitPerSecond, (0.0, run.duration), " s");
    for flow in run.flows.iter().filter(|f| f.goodput.iter().any(|p| p.1 > 1e4)) {
        curve(&mut picture, &flow.name, Stroke::Line, flow.goodput.clone());
    }
    picture
}

/// Adds what all flows of the chart carry together, at the moments of the one with most samples.
pub(super) fn together(chart: &mut Chart, name: &str) {
    let longest = chart.lines.iter().max_by_key(|l| l.points.len());
    let moments: Vec<f64> = longest.map_or(Vec::new(), |l| l.points.iter().map(|p| p.0).collect());
    let sum = |t: f64| chart.lines.iter().filter_map(|l| at(&l.points, t)).sum::<f64>();
    let points: Vec<(f64, f64)> = moments.into_iter().map(|t| (t, sum(t))).collect();
    curve(chart, name, Stroke::Line, points);
}

#[cfg(test)]
mod tests {
    use super::super::LIST;
    use super::*;

    fn figure(points: &[(f64, f64)]) -> Vec<Figure> {
        let mut picture = chart("x", Unit::BitPerSecond, (0.0, 9.0), " s");
        curve(&mut picture, "Flow1", Stroke::Line, points.to_vec());
        vec![Figure::of("figure-4-left-fifo", &picture)]
    }

    #[test]
    fn seeds_become_a_median_with_its_range_beside_what_was_printed() {
        let seeds = [
            figure(&[(1.0, 10.0), (3.0, 30.0)]),
            figure(&[(1.0, 20.0), (3.0, 90.0)]),
            figure(&[(0.0, 0.0), (2.0, 24.0)]),
        ];
        let drawn = Study::find("cbq-router").unwrap().drawn(&seeds);
        let chart = &drawn[0].chart;
        // The third run ends before 3; what it has at 1 lies between its samples.
        assert_eq!(chart.lines[0].points, [(1.0, 12.0), (3.0, 60.0)]);
        assert_eq!(chart.bands[0].points, [(1.0, 10.0, 20.0), (3.0, 30.0, 90.0)]);
        let printed = &chart.lines[1];
        assert_eq!((printed.stroke, printed.colour), (Stroke::Rings, 0));
        assert_eq!((printed.points.len(), printed.points[0]), (5, (8.0, 63_220.0)));
    }

    #[test]
    fn a_misprint_leaves_its_place_empty() {
        let study = Study::find("cbq-router").unwrap();
        let curve =
            study.printed().curve.into_iter().find(|c| c.figure == "figure-5-right-cbq" && c.of == "Flow2");
        let points = study.points(&curve.unwrap());
        assert_eq!(points.iter().map(|p| p.0).collect::<Vec<_>>(), [8.0, 10.0, 12.0]);
    }

    #[test]
    fn what_was_printed_can_be_read() {
        for study in LIST {
            for curve in &study.printed().curve {
                assert!(!study.points(curve).is_empty(), "{}: {} of {}", study.name, curve.of, curve.figure);
            }
        }
    }
}
