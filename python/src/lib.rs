//! `penstock` for Python: runs and checks, in the words of the command line.
//!
//! The interpreter's lock is let go while anything is simulated; Ctrl-C ends a run. What is wrong is an exception with file, line and column.

use penstock_lab::experiment::{self, Experiment, Threads};
use penstock_lab::run::{self, Ground, Options, Outcome};
use penstock_lab::sweep::usual_figures;
use penstock_measure::report::{self, Page};
use penstock_model::Diagnostic;
use pyo3::exceptions::{PyImportError, PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pyo3::create_exception!(
    _penstock,
    PenstockError,
    PyValueError,
    "What is wrong, with its places: `faults` is a list of dicts with file, line, column, message and help."
);

/// An exception of faults.
fn wrong(py: Python<'_>, faults: &[Diagnostic]) -> PyErr {
    let text = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let error = PenstockError::new_err(text);
    let filled = || -> PyResult<()> {
        let all = PyList::empty(py);
        for fault in faults {
            let one = PyDict::new(py);
            one.set_item("file", &fault.file)?;
            one.set_item("line", fault.line)?;
            one.set_item("column", fault.column)?;
            one.set_item("message", &fault.message)?;
            one.set_item("help", &fault.help)?;
            all.append(one)?;
        }
        error.value(py).setattr("faults", all)
    };
    match filled() {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// A value of Python's own making: JSON read by its json module.
fn from_json<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (json,))
}

/// The experiment that something of Python's stands for: a file's name, a text, or a dict as the file has it.
fn read(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Experiment> {
    let parsed = if let Ok(dict) = source.cast::<PyDict>() {
        let json: String = py.import("json")?.call_method1("dumps", (dict,))?.extract()?;
        let value: serde_json::Value =
            serde_json::from_str(&json).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let text = toml::to_string(&value).map_err(|e| PyValueError::new_err(e.to_string()))?;
        experiment::parse(&text, "dict")
    } else if let Some(text) = source.getattr_opt("toml")?.filter(|t| t.is_callable()) {
        let text: String = text.call0()?.extract()?;
        experiment::parse(&text, "experiment")
    } else {
        let path = py
            .import("os")?
            .call_method1("fspath", (source,))
            .map_err(|_| PyTypeError::new_err("an experiment is a file's name, a text of TOML, a dict or an Experiment"))?;
        let text: String = path.extract()?;
        match text.contains('\n') {
            true => experiment::parse(&text, "text"),
            false => experiment::load(Path::new(&text)),
        }
    };
    parsed.map_err(|faults| wrong(py, &faults))
}

/// A run and what was measured in it.
#[pyclass(frozen)]
struct Run {
    outcome: Outcome,
    experiment: Experiment,
    #[pyo3(get)]
    warnings: Vec<String>,
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

    /// The series as the bytes of a Parquet file: time_s, host, object, metric, value.
    fn series_parquet<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.outcome.series.to_parquet());
        bytes.map(|b| PyBytes::new(py, &b)).map_err(|e| PenstockError::new_err(e.to_string()))
    }

    /// The series as a table of pyarrow: time_s, host, object, metric, value.
    #[getter]
    fn series<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let parquet = py.import("pyarrow.parquet").map_err(|_| {
            PyImportError::new_err("series needs pyarrow: pip install 'penstock[tables]'; or take series_parquet()")
        })?;
        let file = py.import("io")?.call_method1("BytesIO", (self.series_parquet(py)?,))?;
        parquet.call_method1("read_table", (file,))
    }

    /// The report, a page that needs no network.
    fn report(&self) -> String {
        let Outcome { record, series, outputs, tc, .. } = &self.outcome;
        report::html(&Page { record, series, outputs, tc })
    }

    /// Writes the run folder, as the command does; an earlier run there is replaced.
    fn write(&self, folder: std::path::PathBuf) -> PyResult<()> {
        self.outcome.write(&folder).map_err(PenstockError::new_err)
    }

    fn _repr_html_(&self) -> String {
        let page = self.report().replace('&', "&amp;").replace('"', "&quot;");
        format!("<iframe style=\"width:100%;height:40rem;border:0\" srcdoc=\"{page}\"></iframe>")
    }

    fn __repr__(&self) -> String {
        let r = &self.outcome.record;
        format!("<penstock.Run \"{}\", seed {}, on {}>", r.title, r.seed, r.ground)
    }
}

impl Run {
    fn value(&self, what: &str) -> Result<Option<f64>, (String, String)> {
        let (measure, _) = self.experiment.figure(what)?;
        Ok(run::measure(&measure, &self.outcome.record).filter(|x| x.is_finite()))
    }
}

/// Ends the thread of a run that nobody waits for any more.
struct Stopped;

/// Runs an experiment: a file's name, a text of TOML, or a dict as the file has it.
#[pyfunction(name = "run")]
#[pyo3(signature = (experiment, *, seed=None, on="sim"))]
fn run_it(py: Python<'_>, experiment: &Bound<'_, PyAny>, seed: Option<u64>, on: &str) -> PyResult<Run> {
    let ground: Ground = on.parse().map_err(PenstockError::new_err)?;
    let experiment = read(py, experiment)?.on_threads(Threads::One);
    let stop = AtomicBool::new(false);
    let (tell, told) = channel();
    let told = Mutex::new(told);
    // Whether the run still goes on.
    let wait = || {
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout)
    };
    let made = std::thread::scope(|scope| {
        let (experiment, stop) = (&experiment, &stop);
        let worker = scope.spawn(move || {
            let mut warnings = Vec::new();
            let mut progress = |_: f64| {
                if stop.load(Ordering::Relaxed) {
                    // Past the panic's message: nothing is wrong.
                    std::panic::resume_unwind(Box::new(Stopped));
                }
            };
            let mut warn = |w: &Diagnostic| warnings.push(w.to_string());
            let mut options = Options { seed, progress: &mut progress, warn: &mut warn };
            let made = run::run_on(ground, experiment, &mut options);
            let _ = tell.send(());
            (made, warnings)
        });
        while py.detach(wait) {
            if let Err(signal) = py.check_signals() {
                stop.store(true, Ordering::Relaxed);
                let _ = py.detach(|| worker.join());
                return Err(signal);
            }
        }
        let made = py.detach(|| worker.join());
        made.map_err(|_| PyKeyboardInterrupt::new_err("the run was ended"))
    });
    let (made, warnings) = made?;
    let outcome = made.map_err(|faults| wrong(py, &faults))?;
    Ok(Run { outcome, experiment, warnings })
}

/// Answers a question of `penstock-ask`, JSON in and JSON out. Faults are an exception.
#[pyfunction]
fn ask<'py>(py: Python<'py>, question: &str) -> PyResult<Bound<'py, PyAny>> {
    let question: serde_json::Value =
        serde_json::from_str(question).map_err(|e| PyValueError::new_err(e.to_string()))?;
    let answer = py.detach(|| penstock_ask::answer(&question, &mut |_| {}).map(|answer| answer.to_string()));
    from_json(py, &answer.map_err(|faults| wrong(py, &faults))?)
}

/// The expectations of an experiment: what and value.
#[pyfunction]
fn expectations(py: Python<'_>, experiment: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    Ok(read(py, experiment)?.expects.into_iter().map(|e| (e.what, e.value)).collect())
}

/// A virtual machine with `eth0` and `eth1`, and a shell at it. It stays in the thread that made it.
#[pyclass(unsendable)]
struct Prompt(penstock_ask::Machine);

#[pymethods]
impl Prompt {
    #[new]
    fn new() -> Prompt {
        Prompt(penstock_ask::Machine::default())
    }

    /// Runs a line: stdout, stderr, exit status, whether the shell has ended.
    fn line(&mut self, text: &str) -> (String, String, i64, bool) {
        let said = self.0.line(text);
        let word = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        let status = said["status"].as_i64().unwrap_or(1);
        (word("stdout"), word("stderr"), status, said["ended"].as_bool().unwrap_or_default())
    }
}

#[pymodule]
fn _penstock(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("PenstockError", m.py().get_type::<PenstockError>())?;
    m.add_class::<Run>()?;
    m.add_function(wrap_pyfunction!(run_it, m)?)?;
    m.add_class::<Prompt>()?;
    m.add_function(wrap_pyfunction!(ask, m)?)?;
    m.add_function(wrap_pyfunction!(expectations, m)?)
}
