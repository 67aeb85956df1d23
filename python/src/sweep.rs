//! Sweeps: a plan, its runs made here or elsewhere, and the folder where results come in.

use crate::watched::watched;
use crate::{PenstockError, source, wrong};
use penstock_lab::run::{Ground, memory};
use penstock_lab::sweep::{self, Wishes, made_apart};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// All that makes the same plan in another process.
#[derive(Serialize, Deserialize)]
struct Task {
    text: String,
    name: String,
    files: BTreeMap<String, Result<String, String>>,
    wishes: Wishes,
    ground: String,
}

/// What a sweep is going to run.
#[pyclass(frozen, module = "penstock._penstock")]
pub(crate) struct Plan {
    plan: sweep::Plan,
    ground: Ground,
    /// A [`Task`] as JSON.
    #[pyo3(get)]
    task: String,
    ended: AtomicBool,
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|e| PyValueError::new_err(e.to_string()))
}

#[pymethods]
impl Plan {
    /// Plans the sweep of an experiment; `wishes` are JSON.
    #[staticmethod]
    fn open(py: Python<'_>, experiment: &Bound<'_, PyAny>, wishes: &str, on: &str) -> PyResult<Plan> {
        let ground: Ground = on.parse().map_err(PenstockError::new_err)?;
        let wishes: Wishes = json(wishes)?;
        let opened = source::open(py, experiment)?;
        let plan =
            py.detach(|| sweep::Plan::new(&opened.text, &opened.name, &|path| opened.file(path), &wishes));
        let plan = plan.map_err(|faults| wrong(py, &faults))?;
        let (text, name, files) = (opened.text, opened.name, plan.files().clone());
        let task = Task { text, name, files, wishes, ground: ground.name().to_owned() };
        let task = serde_json::to_string(&task).map_err(|e| PyValueError::new_err(e.to_string()))?;
        Ok(Plan { plan, ground, task, ended: AtomicBool::new(false) })
    }

    /// The same plan from its task, elsewhere.
    #[staticmethod]
    fn of(py: Python<'_>, task: &str) -> PyResult<Plan> {
        let Task { text, name, files, wishes, ground } = json(task)?;
        let ground: Ground = ground.parse().map_err(PenstockError::new_err)?;
        let missing = || Err("it did not come with the task".to_owned());
        let loader = |path: &str| files.get(path).cloned().unwrap_or_else(missing);
        let plan = py.detach(|| sweep::Plan::new(&text, &name, &loader, &wishes));
        let plan = plan.map_err(|faults| wrong(py, &faults))?;
        Ok(Plan { plan, ground, task: task.to_owned(), ended: AtomicBool::new(false) })
    }

    /// How many runs there are.
    #[getter]
    fn runs(&self) -> usize {
        self.plan.points.len() * self.plan.seeds.len()
    }

    /// The points: path and value of each parameter.
    #[getter]
    fn points(&self) -> Vec<Vec<(String, String)>> {
        let paths = || self.plan.parameters.iter().map(|p| p.path.clone());
        self.plan.points.iter().map(|p| paths().zip(p.values.iter().cloned()).collect()).collect()
    }

    /// The experiment's title.
    #[getter]
    fn title(&self) -> &str {
        &self.plan.title
    }

    /// Whether so many runs at a time fit this machine's memory.
    fn fits(&self, py: Python<'_>, at_once: usize) -> PyResult<()> {
        let fits = memory::check(&self.plan.largest, at_once, memory::available());
        fits.map_err(|faults| wrong(py, &faults))
    }

    /// Makes runs by their numbers: the result of each as text, and what cannot work.
    fn make(&self, py: Python<'_>, numbers: Vec<usize>) -> PyResult<(Vec<String>, Vec<String>)> {
        let mut made = Vec::with_capacity(numbers.len());
        let mut warnings: Vec<String> = Vec::new();
        for number in numbers {
            let one = watched(py, &self.ended, |progress| {
                let mut warn = |w: &penstock_model::Diagnostic| {
                    if !warnings.contains(&w.message) {
                        warnings.push(w.message.clone());
                    }
                };
                made_apart(&self.plan, self.ground, number, progress, &mut warn)
            })?;
            made.push(one.map_err(PenstockError::new_err)?);
        }
        Ok((made, warnings))
    }

    /// Ends what is being made, in whatever thread, with a KeyboardInterrupt there.
    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// A sweep's folder while results come in, until it is closed.
#[pyclass(frozen, module = "penstock._penstock")]
pub(crate) struct Gathering(Mutex<Option<sweep::Gathering>>);

impl Gathering {
    fn open<T>(&self, what: impl FnOnce(&sweep::Gathering) -> Result<T, String>) -> PyResult<T> {
        let gathering = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let closed = || "the sweep's folder is closed".to_owned();
        gathering.as_ref().ok_or_else(closed).and_then(what).map_err(PenstockError::new_err)
    }
}

#[pymethods]
impl Gathering {
    /// Opens the folder, or makes it; `program` says which build makes the runs.
    #[new]
    fn new(folder: PathBuf, plan: &Plan, program: &str) -> PyResult<Gathering> {
        let gathering = sweep::Gathering::open(&folder, plan.ground, program);
        gathering.map(|g| Gathering(Mutex::new(Some(g)))).map_err(PenstockError::new_err)
    }

    /// The numbers of the runs that have no result yet.
    fn missing(&self, py: Python<'_>, plan: &Plan) -> PyResult<Vec<usize>> {
        py.detach(|| self.open(|gathering| gathering.missing(&plan.plan)))
    }

    /// Keeps the result of a run. Threads go on making others while the disk takes it.
    fn keep(&self, py: Python<'_>, plan: &Plan, number: usize, text: &str) -> PyResult<()> {
        py.detach(|| self.open(|gathering| gathering.keep(&plan.plan, number, text)))
    }

    /// Writes the files of the whole sweep; its table as text.
    fn whole(&self, py: Python<'_>, plan: &Plan) -> PyResult<String> {
        let whole = py.detach(|| self.open(|gathering| gathering.whole(&plan.plan)))?;
        Ok(penstock_measure::sweep::text(&whole))
    }

    /// Lets the folder go: another sweep may work there.
    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
