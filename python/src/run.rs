//! A run and what was measured in it.

use crate::series::Series;
use crate::watched::watched;
use crate::{PenstockError, from_json, source, wrong};
use penstock_lab::experiment::{Experiment, Threads};
use penstock_lab::run::{self, Ground, Options, Outcome};
use penstock_lab::sweep::usual_figures;
use penstock_measure::number::Unit;
use penstock_measure::plot::{self, Line, Stroke};
use penstock_measure::report::{self, Page};
use penstock_model::Diagnostic;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// A run and what was measured in it.
#[pyclass(frozen, module = "penstock")]
pub(crate) struct Run {
    outcome: Outcome,
    experiment: Experiment,
    #[pyo3(get)]
    warnings: Vec<String>,
    series: PyOnceLock<Py<Series>>,
}

/// The unit of a metric, which ends in it: `owd_ms`.
fn unit(metric: &str) -> Unit {
    match metric {
        m if m.ends_with("_bit_s") => Unit::BitPerSecond,
        m if m.ends_with("_ms") => Unit::Millisecond,
        m if m.ends_with("_bytes") => Unit::Byte,
        m if m.ends_with("_s") => Unit::Second,
        m if m.ends_with("_share") => Unit::Share,
        _ => Unit::Count,
    }
}

#[pymethods]
impl Run {
    /// The whole record, as record.json has it. Units stand in the names: throughput_bit_s, rtt_ms.
    #[getter]
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.outcome.record.to_json())
    }

    /// Figures by their words: "call owd p99". Rates in bit/s, times in ms, sizes in bytes, shares 0 to 1.
    #[getter]
    fn figures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for what in usual_figures(&self.experiment) {
            if let Some(value) = self.value(&what).ok().flatten() {
                all.set_item(what, value)?;
            }
        }
        Ok(all)
    }

    /// One figure in the words of an expectation; None where the run has none.
    fn figure(&self, what: &str) -> PyResult<Option<f64>> {
        self.value(what).map_err(|(message, help)| PenstockError::new_err(format!("{message}; {help}")))
    }

    /// Whether every expectation was met and no program failed.
    #[getter]
    fn succeeded(&self) -> bool {
        self.outcome.record.succeeded()
    }

    /// What programs printed, in the order of the record's apps.
    #[getter]
    fn outputs(&self) -> Vec<String> {
        self.outcome.outputs.clone()
    }

    /// The series as the bytes of a Parquet file: time_s, host, object, metric, value.
    fn series_parquet<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.outcome.series.to_parquet());
        bytes.map(|b| PyBytes::new(py, &b)).map_err(|e| PenstockError::new_err(e.to_string()))
    }

    /// The series as an Arrow table: time_s, host, object, metric, value.
    #[getter]
    fn series(&self, py: Python<'_>) -> PyResult<Py<Series>> {
        let made = || Py::new(py, py.detach(|| Series::new(&self.outcome.series))?);
        self.series.get_or_try_init(py, made).map(|series| series.clone_ref(py))
    }

    /// A chart of one metric over time: a curve for each object that has it, or for `object` (a flow's name, or as the series call it) and
    /// `host` alone.
    #[pyo3(signature = (metric, *, object=None, host=None))]
    fn chart(&self, metric: &str, object: Option<&str>, host: Option<&str>) -> PyResult<Chart> {
        let curves = self.outcome.series.curves();
        let of_flow = |c: &penstock_measure::series::Curve, o| c.object.strip_prefix("flow ") == Some(o);
        let chosen = |c: &&penstock_measure::series::Curve| {
            let same = object.is_none_or(|o| c.object == o || of_flow(c, o));
            c.metric == metric && same && host.is_none_or(|h| c.host == h)
        };
        let record = &self.outcome.record;
        let mut chart = plot::Chart::new(metric, unit(metric), (0.0, record.duration_s));
        chart.size = (720.0, 300.0);
        for (colour, curve) in curves.iter().filter(chosen).enumerate() {
            let object = curve.object.strip_prefix("flow ").unwrap_or(&curve.object);
            let name = match object.starts_with(&curve.host) {
                true => object.to_owned(),
                false => format!("{} {object}", curve.host),
            };
            let (points, stroke) = (curve.points.clone(), Stroke::Line);
            chart.lines.push(Line { name, colour, stroke, points });
        }
        if chart.lines.is_empty() {
            let has = |of: fn(&penstock_measure::series::Curve) -> &str| {
                curves.iter().map(of).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
            };
            return Err(PenstockError::new_err(format!(
                "there is no such curve; metrics are {}; objects are {}",
                has(|c| &c.metric),
                has(|c| &c.object)
            )));
        }
        Ok(Chart { svg: chart.file() })
    }

    /// The report, a page that needs no network.
    fn report(&self) -> String {
        let Outcome { record, series, outputs, tc, .. } = &self.outcome;
        report::html(&Page { record, series, outputs, tc })
    }

    /// Writes the run folder, as the command does; an earlier run there is replaced.
    fn write(&self, folder: PathBuf) -> PyResult<()> {
        self.outcome.write(&folder).map_err(PenstockError::new_err)
    }

    fn _repr_html_(&self) -> String {
        framed(&self.report())
    }

    fn __repr__(&self) -> String {
        let r = &self.outcome.record;
        format!("<penstock.Run \"{}\", seed {}, on {}>", r.title, r.seed, r.ground)
    }
}

/// A page within a page.
fn framed(page: &str) -> String {
    let page = page.replace('&', "&amp;").replace('"', "&quot;");
    format!("<iframe style=\"width:100%;height:40rem;border:0\" srcdoc=\"{page}\"></iframe>")
}

impl Run {
    fn value(&self, what: &str) -> Result<Option<f64>, (String, String)> {
        let (measure, _) = self.experiment.figure(what)?;
        Ok(run::measure(&measure, &self.outcome.record).filter(|x| x.is_finite()))
    }
}

/// A picture of curves over time. A notebook shows it.
#[pyclass(frozen, module = "penstock")]
pub(crate) struct Chart {
    #[pyo3(get)]
    svg: String,
}

#[pymethods]
impl Chart {
    /// Writes it as an SVG file; an earlier one there is replaced.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        std::fs::write(path, &self.svg).map_err(PyErr::from)
    }

    fn _repr_svg_(&self) -> &str {
        &self.svg
    }

    fn __repr__(&self) -> String {
        format!("<penstock.Chart, {} bytes of SVG>", self.svg.len())
    }
}

/// Runs an experiment: a file's name, a text of TOML, a dict as the file has it, or an Experiment.
#[pyfunction(name = "run")]
#[pyo3(signature = (experiment, *, seed=None, on="sim"))]
pub(crate) fn run_it(
    py: Python<'_>,
    experiment: &Bound<'_, PyAny>,
    seed: Option<u64>,
    on: &str,
) -> PyResult<Run> {
    let ground: Ground = on.parse().map_err(PenstockError::new_err)?;
    let experiment = source::read(py, experiment)?.on_threads(Threads::One);
    let mut warnings = Vec::new();
    let made = watched(py, &AtomicBool::new(false), |progress| {
        let mut warn = |w: &Diagnostic| warnings.push(w.to_string());
        run::run_on(ground, &experiment, &mut Options { seed, progress, warn: &mut warn })
    })?;
    let outcome = made.map_err(|faults| wrong(py, &faults))?;
    Ok(Run { outcome, experiment, warnings, series: PyOnceLock::new() })
}
