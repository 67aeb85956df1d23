//! The programs of an experiment on two grounds: figure beside figure.

use super::evidence::{Evidence, Run};
use super::summary::summarise;
use super::{GroundClaim, GroundRow, How, Judgement, Study, StudyReport};
use penstock_kernel::printed;
use penstock_lab::many::{each, processors};
use penstock_lab::run::{self, Ground, Options, Outcome};
use penstock_measure::record::App;
use penstock_model::Diagnostic;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

impl Study {
    /// Runs its experiments, or the one named, on the simulator and on another ground, and holds the programs' figures side by side.
    /// On both every machine is a Linux of today whose processor costs nothing and whose timer interrupts as often as the ground's. `progress` is told how many of how many are done.
    ///
    /// Several run at a time: on `virtual` as many as there are processors; on `kernel` twice as many, because each mostly waits, and the
    /// simulator has finished before the first begins.
    ///
    /// # Errors
    /// There is no experiment of this name; the simulator refuses one; a folder cannot be written. What the ground refuses is left
    /// out and told.
    pub fn run_beside(
        &self,
        ground: Ground,
        only: Option<&str>,
        out: Option<&Path>,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<StudyReport, Vec<Diagnostic>> {
        let names = match only {
            Some(name) => vec![name],
            None => self.experiments(),
        };
        let hz = match ground {
            Ground::Virtual => Some(penstock_kernel::boot::HZ),
            _ => penstock_kernel::facts::hz(),
        };
        let mut experiments = Vec::new();
        for name in &names {
            experiments.push(self.experiment(name)?.modern().at_hz(hz));
        }
        let here = |n: usize| {
            run::run(&experiments[n], &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
        };
        let there = |n: usize| {
            run::run_on(
                ground,
                &experiments[n],
                &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} },
            )
        };
        let processors = processors();
        let sims = each(names.len(), processors, &|_| {}, &here);
        let width = if ground == Ground::Kernel { 2 * processors } else { processors };
        let told = |done| progress(done, names.len());
        let grounds = each(names.len(), width, &told, &there);
        let mut report = StudyReport { study: self.name, source: self.source, ..StudyReport::default() };
        let (mut of_sim, mut of_ground) = (Runs::new(), Runs::new());
        for (name, (sim, other)) in names.iter().zip(sims.into_iter().zip(grounds)) {
            let other = match other {
                Ok(outcome) => outcome,
                Err(faults) if faults.iter().any(|f| f.message.starts_with("stopped by a signal")) => {
                    return Err(faults);
                }
                Err(faults) => {
                    let why = faults.first().map(|f| f.message.clone()).unwrap_or_default();
                    report.left_out.push(((*name).to_owned(), why));
                    continue;
                }
            };
            let sim = sim?;
            if let Some(folder) = out {
                for (outcome, ground) in [(&sim, Ground::Sim), (&other, ground)] {
                    let folder = folder.join(name);
                    let made = std::fs::create_dir_all(&folder).map_err(|e| e.to_string());
                    made.and_then(|()| outcome.write(&folder.join(ground.name())))
                        .map_err(|e| vec![Diagnostic::error(e)])?;
                }
            }
            report.grounds.append(&mut rows(name, &sim, &other));
            of_sim.insert((*name).to_owned(), Arc::new(summarise(&sim)));
            of_ground.insert((*name).to_owned(), Arc::new(summarise(&other)));
        }
        report.ground_claims = self.claims_beside(only, of_sim, of_ground, &report.left_out);
        Ok(report)
    }

    /// The claims, judged by the runs of one seed on each ground. What a ground has no part for stays open, with the reason.
    fn claims_beside(
        &self,
        only: Option<&str>,
        of_sim: Runs,
        of_ground: Runs,
        left_out: &[(String, String)],
    ) -> Vec<GroundClaim> {
        let How::Programs(judge, _) = self.how else { return Vec::new() };
        let (sim, ground) = (Evidence { runs: of_sim }, Evidence { runs: of_ground });
        let wanted = self.claims().into_iter().filter(|c| only.is_none_or(|o| o == c.experiment));
        let one = |claim: super::Claim| {
            let (here, there) = (judge(&claim.id, &sim), judge(&claim.id, &ground));
            let why = if there.verdict == Judgement::OPEN {
                let refused = left_out.iter().find(|(name, _)| there.note.contains(name.as_str()));
                refused.map_or_else(|| there.note.clone(), |(name, why)| format!("{name}: {why}"))
            } else {
                String::new()
            };
            GroundClaim {
                id: claim.id,
                sim: here.verdict,
                ground: there.verdict,
                measured_sim: here.measured,
                measured_ground: there.measured,
                why,
            }
        };
        wanted.map(one).collect()
    }
}

/// What runs showed, by experiment.
type Runs = BTreeMap<String, Arc<Run>>;

/// Throughput and mean round trip of each program that measured them on both grounds.
fn rows(experiment: &str, sim: &Outcome, other: &Outcome) -> Vec<GroundRow> {
    let mut rows = Vec::new();
    let together = sim.record.apps.iter().any(|app| app.run.contains(" -P "));
    for (n, (a, b)) in sim.record.apps.iter().zip(&other.record.apps).enumerate() {
        let mut put = |what: &str, unit, x: Option<f64>, y: Option<f64>, error: Option<f64>| {
            if let (Some(sim), Some(ground)) = (x, y) {
                let quantity = format!("{}: {}: {what}", a.host, a.run);
                rows.push(GroundRow {
                    experiment: experiment.to_owned(),
                    quantity,
                    unit,
                    sim,
                    ground,
                    error,
                });
            }
        };
        let throughput = |outcome: &Outcome, app: &App| {
            let printed =
                outcome.outputs.get(n).and_then(|text| printed::of_all_connections(&app.run, text, together));
            printed.or(app.throughput_bit_s).map(|x| x / 1e6)
        };
        put("throughput", "Mbit/s", throughput(sim, a), throughput(other, b), None);
        // The first answer of a run holds ARP; a mean of one is not a mean.
        let mean = |app: &App| app.rtt_ms.filter(|_| app.received_packets.unwrap_or(0) > 1).map(|d| d.mean);
        let squares = |outcome: &Outcome| {
            let rtts: Vec<f64> =
                outcome.series.points(&a.host, &a.name, "rtt_ms").iter().map(|p| p.1).collect();
            square_of_standard_error(&rtts)
        };
        put("mean round trip", "ms", mean(a), mean(b), Some((squares(sim) + squares(other)).sqrt()));
    }
    rows
}

/// Square of the standard error of the mean of these; 0 of fewer than two.
fn square_of_standard_error(all: &[f64]) -> f64 {
    let n = all.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let mean = all.iter().sum::<f64>() / n;
    all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0) / n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_mean() {
        assert_eq!(square_of_standard_error(&[5.0]), 0.0);
        // Deviations -1, 0, 1: variance 1, of three samples a third.
        assert!((square_of_standard_error(&[1.0, 2.0, 3.0]) - 1.0 / 3.0).abs() < 1e-12);
    }
}
