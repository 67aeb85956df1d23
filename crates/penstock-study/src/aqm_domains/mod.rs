//! The study of DropTail and RED domains: its matrix of runs over seeds, its tables, claims and figures.
//!
//! Source: Stanislav Mišković, Grozdan Petrović, Ljiljana Trajković, "Interakcija konvencionalnih IP mreža i mreža koje
//! implementiraju AQM mehanizme" (2004 or later).

mod figures;
mod judge;
mod tables;

use super::matrix::{Kept, Plan};
use super::parameters::Setting;
use super::{Matrix, Seen, Study};
use figures::Shown;
use penstock_model::Diagnostic;
use std::collections::BTreeMap;

pub use tables::{Cell, Column};
pub(super) use tables::{remark, rows};

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

/// The parts of the document.
pub(super) const PARTS: &[&str] = &[
    "figure-1",
    "figure-2",
    "table-1",
    "table-2",
    "figure-4",
    "table-3",
    "table-4",
    "table-5",
    "conclusions",
];

/// What the runs of one seed showed.
#[derive(Clone, Debug, Default)]
struct Evidence {
    /// The columns of the tables.
    columns: Vec<Column>,
    /// What figures and open questions need of each run, by its file.
    shown: BTreeMap<String, Shown>,
}

impl Evidence {
    fn of(kept: &Kept<(Cell, Shown)>) -> Evidence {
        let column = |&(order, red, queue): &(&'static str, &'static str, u32)| {
            let cell = kept.get(&file(order, red, queue))?.0.clone();
            Some(Column { order, red, queue, cell })
        };
        Evidence {
            columns: COLUMNS.iter().filter_map(column).collect(),
            shown: kept.iter().map(|(name, run)| (name.clone(), run.1.clone())).collect(),
        }
    }
}

/// Runs all columns, and what figures and open questions need, with each setting and seed.
///
/// # Errors
/// A run that cannot be made; a folder that cannot be written.
pub(super) fn runs(
    study: &Study,
    ask: &Matrix<'_>,
    settings: &[Setting],
    seeds: u64,
) -> Result<Vec<Vec<Seen>>, Vec<Diagnostic>> {
    let columns: Vec<String> = COLUMNS.iter().map(|(order, red, queue)| file(order, red, *queue)).collect();
    let claims = study.claims();
    let cells = tables::cells(study.text("published.csv"));
    let plan = Plan {
        names: columns.iter().map(String::as_str).chain(figures::RUNS.iter().copied()).collect(),
        settings,
        seeds,
        read: &|name, setting| study.read(name, setting),
        keep: &|job, outcome| (tables::cell(outcome), figures::shown(job, outcome)),
        judge: &|setting, _, kept| {
            let evidence = Evidence::of(kept);
            let shows = ask.draws() && setting == 0;
            Seen {
                judged: claims.iter().map(|c| judge::judge(&c.id, &evidence)).collect(),
                measured: cells.iter().map(|c| c.of(&evidence.columns)).collect(),
                figures: if shows { figures::pictures(&evidence) } else { Vec::new() },
            }
        },
    };
    plan.run(ask)
}
