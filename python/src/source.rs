//! What of Python's stands for an experiment: a file's name, a text, a dict, a builder.

use crate::wrong;
use penstock_lab::experiment::{self, Experiment, Opened};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::Path;

/// The experiment's text, its name, and what reads the files it names.
pub(crate) fn open(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Opened> {
    let opened = if let Ok(dict) = source.cast::<PyDict>() {
        let json: String = py.import("json")?.call_method1("dumps", (dict,))?.extract()?;
        let value: serde_json::Value =
            serde_json::from_str(&json).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let text = toml::to_string(&value).map_err(|e| PyValueError::new_err(e.to_string()))?;
        Opened::of_text(text, "dict")
    } else if let Some(text) = source.getattr_opt("toml")?.filter(|t| t.is_callable()) {
        Opened::of_text(text.call0()?.extract()?, "experiment")
    } else {
        let what = "an experiment is a file's name, a text of TOML, a dict or an Experiment";
        let path = py.import("os")?.call_method1("fspath", (source,));
        let text: String = path.map_err(|_| PyTypeError::new_err(what))?.extract()?;
        match text.contains('\n') {
            true => Opened::of_text(text, "text"),
            false => Opened::new(Path::new(&text), &[]),
        }
    };
    opened.map_err(|faults| wrong(py, &faults))
}

/// The experiment.
pub(crate) fn read(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<Experiment> {
    let opened = open(py, source)?;
    let read = experiment::parse_with(&opened.text, &opened.name, &|path| opened.file(path));
    read.map_err(|faults| wrong(py, &faults))
}
