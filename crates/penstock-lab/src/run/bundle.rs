//! An experiment with all its texts in one file, and what became of it: how the outside and the inside of a virtual machine speak.

use super::{Folder, Ground, Options, Outcome, real};
use crate::experiment::{self, Experiment};
use penstock_kernel::boot;
use penstock_kernel::contain::{self, Ended};
use penstock_model::Diagnostic;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What goes in.
#[derive(Serialize, Deserialize)]
struct Bundle {
    main: String,
    texts: BTreeMap<String, String>,
    seed: u64,
    modern: bool,
    /// This machine's own kernel, not a virtual one's.
    here: bool,
    /// The job's token.
    token: String,
    /// Folders in which the run may write for good.
    writable: Vec<PathBuf>,
}

/// A fault that comes out.
#[derive(Serialize, Deserialize)]
struct Fault {
    file: String,
    line: u32,
    column: u32,
    len: u32,
    message: String,
    help: String,
    source: String,
}

const BUNDLE: &str = "bundle.json";
const FAULTS: &str = "faults.json";
const PASSAGES: &str = "passages.json";
const OUT: &str = "out";

fn fault(message: String) -> Vec<Diagnostic> {
    vec![Diagnostic::error(message)]
}

/// Runs an experiment inside a virtual machine.
pub(super) fn run(experiment: &Experiment, options: &mut Options<'_>) -> Result<Outcome, Vec<Diagnostic>> {
    boot::find().map_err(fault)?;
    let (job, seed) = prepare(experiment, options, false).map_err(fault)?;
    let program = std::env::current_exe().map_err(|e| fault(e.to_string()))?;
    boot::boot(&job, &program, seed).map_err(fault)?;
    (options.progress)(1.0);
    gather(&job)
}

/// Runs an experiment on this machine's kernel by a process of its own, in namespaces of its own.
pub(super) fn contained(
    experiment: &Experiment,
    options: &mut Options<'_>,
) -> Result<Outcome, Vec<Diagnostic>> {
    penstock_kernel::needs::rights().map_err(fault)?;
    let (job, _) = prepare(experiment, options, true).map_err(fault)?;
    let program = std::env::current_exe().map_err(|e| fault(e.to_string()))?;
    match contain::supervise(&job, &program, options.progress).map_err(fault)? {
        Ended::Done(done) => done.map_err(fault)?,
        Ended::Stopped => return Err(fault("stopped by a signal; nothing is left of the run".to_owned())),
    }
    gather(&job)
}

/// A job folder with the experiment in it, and the seed.
fn prepare(experiment: &Experiment, options: &Options<'_>, here: bool) -> Result<(boot::Job, u64), String> {
    let seed = options.seed.unwrap_or(experiment.seed);
    let job = boot::Job::new()?;
    let bundle = Bundle {
        main: experiment.sources[0].name.clone(),
        texts: experiment
            .sources
            .iter()
            .map(|s| (s.name.clone(), s.text.clone()))
            .chain(experiment.lent.iter().map(|l| (l.name.clone(), l.text.clone())))
            .collect(),
        seed,
        modern: experiment.modern,
        here,
        token: job.token().to_owned(),
        writable: experiment.writable.clone(),
    };
    let text = serde_json::to_string(&bundle).map_err(|e| e.to_string())?;
    fs::write(job.path().join(BUNDLE), text).map_err(|e| e.to_string())?;
    Ok((job, seed))
}

/// What the other side has left in the job folder.
fn gather(job: &boot::Job) -> Result<Outcome, Vec<Diagnostic>> {
    let faults = fs::read_to_string(job.path().join(FAULTS)).unwrap_or_else(|_| "[]".to_owned());
    let faults: Vec<Fault> = serde_json::from_str(&faults).map_err(|e| fault(e.to_string()))?;
    if !faults.is_empty() {
        let back = |f: Fault| {
            Diagnostic::error(f.message).at(&f.file, f.line, f.column, f.len).source(&f.source).help(f.help)
        };
        return Err(faults.into_iter().map(back).collect());
    }
    let folder = Folder::read(&job.path().join(OUT)).map_err(fault)?;
    let passages = fs::read_to_string(job.path().join(PASSAGES)).unwrap_or_else(|_| "[]".to_owned());
    let passages = serde_json::from_str(&passages).map_err(|e| fault(e.to_string()))?;
    Ok(Outcome {
        record: folder.record,
        series: folder.series,
        outputs: folder.outputs,
        tc: folder.tc,
        passages,
        packet_hops: 0,
        one_thread: None,
        captures: Vec::new(),
        test: None,
        also: super::Also::default(),
    })
}

/// The other side: reads the bundle of a job folder, runs it on the kernel it finds itself in, and leaves the run folder or the faults.
///
/// # Errors
/// The job folder cannot be read or written.
pub fn inside(job: &Path) -> Result<(), String> {
    let text = fs::read_to_string(job.join(BUNDLE)).map_err(|e| format!("{}: {e}", job.display()))?;
    let bundle: Bundle = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    if bundle.here {
        contain::enter(job, &bundle.writable)?;
    }
    let loader =
        |name: &str| bundle.texts.get(name).cloned().ok_or_else(|| "there is no such file".to_owned());
    let main = bundle.texts.get(&bundle.main).ok_or("the bundle has no experiment")?;
    let done = experiment::parse_with(main, &bundle.main, &loader).and_then(|experiment| {
        let experiment = if bundle.modern { experiment.modern() } else { experiment };
        let mut progress = |share| {
            if bundle.here {
                contain::tell(share)
            }
        };
        let mut options = Options { seed: Some(bundle.seed), progress: &mut progress, warn: &mut |_| {} };
        let ground = if bundle.here { Ground::Kernel } else { Ground::Virtual };
        real::run(&experiment, &mut options, ground, &bundle.token)
    });
    match done {
        Ok(outcome) => {
            let passages = serde_json::to_string(&outcome.passages).map_err(|e| e.to_string())?;
            fs::write(job.join(PASSAGES), passages).map_err(|e| format!("{}: {e}", job.display()))?;
            outcome.write_new(&job.join(OUT))
        }
        Err(faults) => {
            let faults = faults.into_iter().map(|d| Fault {
                file: d.file,
                line: d.line,
                column: d.column,
                len: d.len,
                message: d.message,
                help: d.help,
                source: d.source,
            });
            let text = serde_json::to_string(&faults.collect::<Vec<_>>()).map_err(|e| e.to_string())?;
            fs::write(job.join(FAULTS), text).map_err(|e| format!("{}: {e}", job.display()))
        }
    }
}
