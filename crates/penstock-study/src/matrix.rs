//! Many runs of experiments over seeds, as many at a time as there are processors.

use super::Matrix;
use penstock_lab::experiment::Experiment;
use penstock_lab::many::{each, processors};
use penstock_lab::run::{self, Options, Outcome};
use penstock_model::Diagnostic;

/// One run to be made.
pub(super) struct Job {
    /// What.
    pub(super) experiment: Experiment,
    /// With which dice.
    pub(super) seed: u64,
}

/// Makes all runs and keeps of each what `keep` takes, in the order of the jobs: which processor made which changes nothing.
///
/// # Errors
/// Those of the first run that cannot be made; a folder that cannot be written.
pub(super) fn run<T: Send>(
    mut jobs: Vec<Job>,
    ask: &Matrix<'_>,
    keep: &(dyn Fn(&Job, &Outcome) -> T + Sync),
) -> Result<Vec<T>, Vec<Diagnostic>> {
    if let Some(duration) = ask.duration {
        jobs.iter_mut().for_each(|job| job.experiment.duration = duration.min(job.experiment.duration));
    }
    let work = |at: usize| {
        let job = &jobs[at];
        let mut options = Options { seed: Some(job.seed), progress: &mut |_| {} };
        let outcome = run::run(&job.experiment, &mut options)?;
        if let Some(folder) = ask.out.filter(|_| job.seed == 1) {
            std::fs::create_dir_all(folder)
                .map_err(|e| e.to_string())
                .and_then(|()| outcome.write(&folder.join(job.experiment.stem())))
                .map_err(|e| vec![Diagnostic::error(e)])?;
        }
        Ok(keep(job, &outcome))
    };
    let told = |done| (ask.progress)(done, jobs.len());
    each(jobs.len(), ask.jobs.unwrap_or_else(processors), &told, &work).into_iter().collect()
}
