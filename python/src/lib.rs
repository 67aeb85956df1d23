//! `penstock` for Python: runs, sweeps and questions, in the words of the command line.
//!
//! The interpreter's lock is let go while anything is simulated; Ctrl-C ends a run. What is wrong is an exception with file, line and column.

mod run;
mod series;
mod source;
mod sweep;
mod watched;

use penstock_model::{Diagnostic, Rate};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

pyo3::create_exception!(
    penstock,
    PenstockError,
    PyValueError,
    "What is wrong, with its places: `faults` is a list of dicts with file, line, column (from 1; 0 where there is none), message and help."
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
    Ok(source::read(py, experiment)?.expects.into_iter().map(|e| (e.what, e.value)).collect())
}

/// A rate as tc writes it, in bytes a second.
#[pyfunction]
fn bytes_per_s(rate: &str) -> PyResult<u64> {
    let read = Rate::parse(rate).map(Rate::bytes_per_s).ok().filter(|&bytes| bytes > 0);
    read.ok_or_else(|| PenstockError::new_err(format!("\"{rate}\" is not a rate; write 10mbit")))
}

/// A virtual machine with `eth0` and `eth1`, and a shell at it. It stays in the thread that made it.
#[pyclass(unsendable, module = "penstock._penstock")]
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
    m.add_class::<run::Run>()?;
    m.add_class::<run::Chart>()?;
    m.add_class::<series::Series>()?;
    m.add_class::<sweep::Plan>()?;
    m.add_class::<sweep::Gathering>()?;
    m.add_class::<Prompt>()?;
    m.add_function(wrap_pyfunction!(run::run_it, m)?)?;
    m.add_function(wrap_pyfunction!(ask, m)?)?;
    m.add_function(wrap_pyfunction!(bytes_per_s, m)?)?;
    m.add_function(wrap_pyfunction!(expectations, m)?)
}
