//! Studies that are judged from the run of each experiment, seed by seed.

use super::evidence::{Evidence, Run};
use super::matrix::{Kept, Plan};
use super::numbers::Numbers;
use super::parameters::Setting;
use super::summary::summarise;
use super::{Figure, Judgement, Matrix, NumberRow, Seen, Study};
use penstock_model::Diagnostic;

/// Judges a claim by one run of each experiment.
pub(super) type Judge = fn(&str, &Evidence) -> Judgement;
/// Draws the study's figures.
pub(super) type Draw = fn(&Evidence) -> Vec<Figure>;

/// Runs all experiments with each setting and seed, and judges each.
pub(super) fn runs(
    study: &Study,
    names: Vec<&str>,
    (judge, draw): (Judge, Draw),
    ask: &Matrix<'_>,
    settings: &[Setting],
    seeds: u64,
) -> Result<Vec<Vec<Seen>>, Vec<Diagnostic>> {
    let claims = study.claims();
    let numbers: Numbers = study.table("published.toml");
    let plan = Plan {
        names,
        settings,
        seeds,
        read: &|name, setting| study.read(name, setting),
        keep: &|_, outcome| summarise(outcome),
        judge: &|setting, _, kept: &Kept<Run>| {
            let evidence = Evidence { runs: kept.clone() };
            let shows = ask.draws() && setting == 0;
            Seen {
                judged: claims.iter().map(|c| judge(&c.id, &evidence)).collect(),
                measured: numbers.number.iter().map(|n| n.measured(&evidence)).collect(),
                figures: if shows { draw(&evidence) } else { Vec::new() },
            }
        },
    };
    plan.run(ask)
}

/// The study's numbers, before anything is measured.
pub(super) fn rows(study: &Study) -> Vec<NumberRow> {
    let numbers: Numbers = study.table("published.toml");
    let row = |n: super::numbers::Published| NumberRow {
        experiment: n.experiment,
        quantity: n.quantity,
        unit: n.unit,
        published: n.value,
        measured: None,
        range: None,
        witness: None,
        table: n.table,
        excluded: n.excluded,
    };
    numbers.number.into_iter().map(row).collect()
}
