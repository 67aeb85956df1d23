//! Many runs of experiments over seeds, as many at a time as there are processors.

use super::Matrix;
use crate::experiment::Experiment;
use crate::run::{self, Options, Outcome};
use penstock_model::Diagnostic;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One run to be made.
pub(super) struct Job {
    /// What.
    pub(super) experiment: Experiment,
    /// With which dice.
    pub(super) seed: u64,
}

/// What one run showed, once it is made.
type Slot<T> = Option<Result<T, Vec<Diagnostic>>>;

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
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let slots: Mutex<Vec<Slot<T>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let work = || {
        while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < jobs.len()) {
            let job = &jobs[at];
            let mut options = Options { seed: Some(job.seed), progress: &mut |_| {} };
            let shown = run::run(&job.experiment, &mut options).and_then(|outcome| {
                if let Some(folder) = ask.out.filter(|_| job.seed == 1) {
                    std::fs::create_dir_all(folder)
                        .map_err(|e| e.to_string())
                        .and_then(|()| outcome.write(&folder.join(job.experiment.stem())))
                        .map_err(|e| vec![Diagnostic::error(e)])?;
                }
                Ok(keep(job, &outcome))
            });
            slots.lock().expect("no worker panics while it holds the lock")[at] = Some(shown);
            (ask.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
        }
    };
    let workers =
        std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(jobs.len().max(1));
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(work);
        }
        work();
    });
    let slots = slots.into_inner().expect("all workers have ended");
    slots.into_iter().map(|slot| slot.expect("every job was taken")).collect()
}
