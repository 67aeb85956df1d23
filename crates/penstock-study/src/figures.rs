//! Pictures of a study: its figures drawn from our runs, on the document's axes.

use super::evidence::Run;
use penstock_measure::number::Unit;
use penstock_measure::plot::{Chart, Line, Stroke};
use std::path::Path;

/// A picture.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The file's name without its ending: `figure-4`.
    pub name: String,
    /// The picture, an SVG file.
    pub svg: String,
}

impl Figure {
    /// A chart as a picture.
    pub fn of(name: &str, chart: &Chart) -> Figure {
        Figure { name: name.to_owned(), svg: chart.file() }
    }
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
        penstock_files::replace(&path, &figure.svg).map_err(|e| format!("{}: {e}", path.display()))?;
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
