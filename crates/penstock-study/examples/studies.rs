//! Which studies there are; one experiment of one of them, run and measured.

use penstock_lab::run::{Options, run};
use penstock_study::{LIST, Study};

fn main() -> Result<(), String> {
    for study in LIST {
        println!("{}: {} experiments", study.name, study.experiments().len());
    }
    let said = |d: Vec<penstock_model::Diagnostic>| d[0].to_string();
    let study = Study::find("pfifo-fast-tos").ok_or("it is one of them")?;
    let experiment = study.experiment("1-none").map_err(said)?;
    let outcome = run(&experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
        .map_err(said)?;
    for flow in &outcome.record.flows {
        println!("{}: {:.3} Mbit/s", flow.name, flow.goodput_bit_s / 1e6);
    }
    assert!(!outcome.record.flows.is_empty());
    Ok(())
}
