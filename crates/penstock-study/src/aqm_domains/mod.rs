//! The study of DropTail and RED domains: its matrix of runs over seeds, its tables, claims and figures.
//!
//! Source: Stanislav Mišković, Grozdan Petrović, Ljiljana Trajković, "Interakcija konvencionalnih IP mreža i mreža koje
//! implementiraju AQM mehanizme" (2004 or later).

mod figures;
mod judge;
mod tables;

use super::matrix::{self, Job};
use super::{ClaimRow, Matrix, Study, StudyReport};
use penstock_model::Diagnostic;
use std::collections::BTreeMap;

pub use tables::{Cell, Column, Tables};

/// Repetitions of each column of the tables, unless the caller says otherwise.
pub const SEEDS: u64 = 20;

/// The columns of the tables: order, RED, queue in packets.
const COLUMNS: [(&str, &str, u32); 10] = [
    ("RED-DT", "gentle", 72),
    ("RED-DT", "adaptive", 72),
    ("RED-DT", "gentle", 300),
    ("RED-DT", "adaptive", 300),
    ("DT-RED", "gentle", 72),
    ("DT-RED", "adaptive", 72),
    ("DT-RED", "gentle", 300),
    ("DT-RED", "adaptive", 300),
    ("DT-DT", "", 72),
    ("DT-DT", "", 300),
];

/// The file of a column.
fn file(order: &str, red: &str, queue: u32) -> String {
    if red.is_empty() { format!("{order}-{queue}") } else { format!("{order}-{red}-{queue}") }
}

/// What all runs together showed.
struct Evidence {
    /// The tables.
    tables: Tables,
    /// What the runs for figures and open questions showed, by their files.
    extra: BTreeMap<&'static str, Vec<figures::Shown>>,
}

/// Runs the matrix, or what one experiment of the study needs, and judges.
///
/// # Errors
/// A run that cannot be made; a folder that cannot be written.
pub(super) fn run(study: &Study, ask: &Matrix<'_>) -> Result<StudyReport, Vec<Diagnostic>> {
    let seeds = ask.seeds.unwrap_or(SEEDS);
    let mut jobs = Vec::new();
    for (order, red, queue) in COLUMNS {
        let experiment = study.experiment(&file(order, red, queue))?;
        jobs.extend((1..=seeds).map(|seed| Job { experiment: experiment.clone(), seed }));
    }
    let columns = jobs.len();
    for (name, seeds) in figures::RUNS {
        let experiment = study.experiment(name)?;
        jobs.extend((1..=*seeds).map(|seed| Job { experiment: experiment.clone(), seed }));
    }
    let shown =
        matrix::run(jobs, ask, &|job, outcome| (tables::cell(outcome), figures::shown(job, outcome)))?;
    let (matrix, rest) = shown.split_at(columns);
    let mut all = matrix.iter();
    let mut tables = Tables::default();
    for (order, red, queue) in COLUMNS {
        let seeds = all.by_ref().take(seeds as usize).map(|(cell, _)| cell.clone()).collect();
        tables.columns.push(Column { order, red, queue, seeds });
    }
    let mut extra = BTreeMap::new();
    let mut rest = rest.iter();
    for (name, seeds) in figures::RUNS {
        extra.insert(*name, rest.by_ref().take(*seeds as usize).map(|(_, shown)| shown.clone()).collect());
    }
    // The course of one run of each order.
    for (name, at) in [("DT-DT-72", 8), ("RED-DT-gentle-72", 0), ("DT-RED-gentle-72", 4)] {
        extra.insert(name, vec![matrix[at * seeds as usize].1.clone()]);
    }
    let evidence = Evidence { tables, extra };
    let mut report = StudyReport { study: study.name, source: study.source, ..StudyReport::default() };
    let wanted = |experiment: &str| ask.only.is_none_or(|o| o == experiment);
    for claim in study.claims().into_iter().filter(|c| wanted(&c.experiment)) {
        let judged = judge::judge(&claim.id, &evidence);
        report.claims.push(ClaimRow::judged(study.name, &claim, judged));
    }
    report.numbers = evidence.tables.numbers(study.text("published.csv"));
    report.numbers.retain(|n| wanted(&n.experiment));
    report.pictures = figures::pictures(&evidence);
    report.remark = tables::remark(&report.numbers, seeds);
    Ok(report)
}
