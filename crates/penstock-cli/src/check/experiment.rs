//! Experiment files under `penstock check`: the setups of their machines.

use anyhow::Result;
use penstock_check::{Answer, Finding, Level, rules};
use penstock_lab::experiment::{self, Experiment};
use std::path::PathBuf;

/// The experiments among some files: those whose names end in `.toml`.
pub fn load(paths: &[PathBuf]) -> Result<Vec<Option<Experiment>>> {
    let one = |path: &PathBuf| {
        if path.extension().is_none_or(|e| e != "toml") {
            return Ok(None);
        }
        let faults = |all: Vec<penstock_model::Diagnostic>| {
            let text: Vec<String> = all.iter().map(ToString::to_string).collect();
            anyhow::anyhow!("{} is read as an experiment:\n{}", path.display(), text.join("\n"))
        };
        experiment::load_with(path, &[]).map(Some).map_err(faults)
    };
    paths.iter().map(one).collect()
}

/// What is found in the setups of all machines, each finding with its machine's name.
pub fn examine(experiment: &Experiment) -> Answer {
    let (found, coverage) = penstock_lab::run::examined(experiment);
    let one = |f: penstock_measure::record::Finding| {
        let rule = rules::all().find(|r| r.code == f.code)?;
        Some(Finding {
            file: f.file,
            line: f.line,
            column: f.column,
            len: 0,
            code: rule.code,
            severity: Level::named(&f.level).unwrap_or(rule.severity),
            message: format!("{}: {}", f.host, f.message),
            reason: f.reason,
            fix: f.fix,
            edits: Vec::new(),
            safe: false,
            begins: f.line,
        })
    };
    Answer { findings: found.into_iter().filter_map(one).collect(), coverage, ..Answer::default() }
}
