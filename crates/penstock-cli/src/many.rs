//! What `penstock sweep` and `penstock tune` have in common: many runs of one file, with a folder, processors and progress.

use crate::examples;
use crate::run::{bar, refuse};
use anyhow::Result;
use indicatif::ProgressStyle;
use penstock_lab::experiment::{Experiment, Loader, Opened};
use penstock_lab::many;
use penstock_lab::run::{Ground, memory};
use penstock_lab::sweep::Making;
use penstock_measure::text::visible;
use penstock_model::Diagnostic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How the runs are made.
#[derive(clap::Args)]
pub struct How {
    /// The first seed [default: the file's]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Run every point with this many seeds, the same for all points [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub seeds: Option<u64>,
    /// Where it runs: sim (the simulator), virtual (a real Linux in exact time), kernel (this machine's, needs root)
    #[arg(long, value_name = "GROUND", default_value = "sim")]
    on: Ground,
    /// Make every machine today's Linux without processor cost
    #[arg(long)]
    modern: bool,
    /// Runs at a time; it changes no byte [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Their folder [default: runs/, the file's name and -sweep or -tune]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write each run's folder too: DIR/runs/PATH=VALUE/seed=N
    #[arg(long)]
    folders: bool,
    /// Another folder that paths in the experiment (base, @file, replay) may lead into; may be repeated
    #[arg(long, value_name = "DIR")]
    allow_path: Vec<PathBuf>,
}

/// What is to be run.
pub struct Work<'a> {
    /// The file, or `example:NAME`.
    pub file: &'a Path,
    /// What stands behind its name in that of the folder.
    pub behind: &'a str,
    /// The experiment's title.
    pub title: &'a str,
    /// How many runs there are at most.
    pub total: usize,
    /// The experiment that needs the most memory.
    pub largest: &'a Experiment,
}

impl How {
    /// Reads the experiment of a file or an example: its text and name, and what gives the files it names.
    pub fn read<T>(
        &self,
        file: &Path,
        plan: impl FnOnce(&str, &str, Loader<'_>) -> Result<T, Vec<Diagnostic>>,
    ) -> Result<Result<T, ExitCode>> {
        let planned = match examples::named(file) {
            Some(name) => {
                let (text, name) = examples::text(name)?;
                plan(text, &name, &examples::inside)
            }
            None => {
                crate::near::there(file)?;
                let opened = Opened::new(file, &self.allow_path);
                opened.and_then(|file| plan(&file.text, &file.name, &|path| file.file(path)))
            }
        };
        Ok(planned.map_err(|faults| refuse(&faults)))
    }

    /// Makes the runs, telling how far they are; the answer, and their folder.
    pub fn make<T>(
        &self,
        work: &Work<'_>,
        make: impl FnOnce(&Making<'_>) -> Result<T, String>,
    ) -> Result<Result<(T, PathBuf), ExitCode>> {
        let jobs = match (self.on, self.jobs) {
            (Ground::Kernel, None | Some(1)) => 1,
            (Ground::Kernel, Some(_)) => {
                anyhow::bail!(
                    "--jobs: on kernel one run at a time: two would take each other's processor time"
                )
            }
            (_, jobs) => jobs.map_or_else(many::processors, |jobs| jobs as usize),
        };
        let total = work.total;
        if self.on == Ground::Sim
            && let Err(faults) = memory::check(work.largest, jobs.min(total), memory::available())
        {
            return Ok(Err(refuse(&faults)));
        }
        let folder = self.out.clone().unwrap_or_else(|| folder(work.file, work.behind));
        let program = program();
        if self.on == Ground::Sim {
            // All is read: whatever the setups do, it is done without the files of this computer.
            crate::check::confine(&[&folder]);
        }
        let bar = bar(work.title);
        let style = ProgressStyle::with_template("{prefix} {wide_bar} {msg}").expect("the template is right");
        bar.set_style(style.progress_chars("━╸ "));
        bar.set_prefix(visible(work.title).into_owned());
        bar.set_message(format!("0 of {total}"));
        let begun = Instant::now();
        let told = |done: usize, made: usize| {
            bar.set_position(done as u64 * 1000 / total.max(1) as u64);
            let rest = left(begun.elapsed(), made, total.saturating_sub(done));
            bar.set_message(format!("{done} of {total}, {rest}"));
        };
        let warn = |warning: &Diagnostic| bar.suspend(|| crate::say(&warning.to_string()));
        let made = make(&Making {
            ground: self.on,
            jobs,
            folder: &folder,
            folders: self.folders,
            program: &program,
            told: &told,
            warn: &warn,
            prepare: &|experiment| if self.modern { experiment.modern() } else { experiment },
        });
        bar.finish_and_clear();
        Ok(Ok((made.map_err(anyhow::Error::msg)?, folder)))
    }
}

/// The text of an answer with the files that hold it whole.
pub fn with_files(text: &str, folder: &Path, files: [&str; 3]) -> String {
    let files: String = files.iter().map(|f| format!("{}\n", folder.join(f).display())).collect();
    format!("{text}\n{files}")
}

/// The folder of many runs of a file: `runs/`, its name and `behind`.
fn folder(file: &Path, behind: &str) -> PathBuf {
    let mut name = crate::default_out(examples::as_file(file)).into_os_string();
    name.push(behind);
    PathBuf::from(name)
}

/// What makes the runs: the results of another build are not taken for its own. The same program on another machine is the same.
fn program() -> String {
    let built = std::env::current_exe().and_then(std::fs::read).map(|bytes| {
        // FNV-1a by words of eight bytes: a program has many.
        let words = bytes.chunks(8).map(|chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(word)
        });
        let hash = words.fold(0xcbf2_9ce4_8422_2325u64, |h, word| (h ^ word).wrapping_mul(0x0100_0000_01b3));
        format!("{} {hash:016x}", bytes.len())
    });
    format!("{} {}", env!("CARGO_PKG_VERSION"), built.unwrap_or_default())
}

/// How long the rest will take, by what was made so far.
fn left(passed: Duration, made: usize, rest: usize) -> String {
    if made == 0 {
        return "the time left is not known yet".to_owned();
    }
    let s = (passed.as_secs_f64() / made as f64 * rest as f64).round() as u64;
    match (s / 3600, s / 60 % 60, s % 60) {
        (0, 0, s) => format!("{s} s left"),
        (0, m, s) => format!("{m} min {s} s left"),
        (h, m, _) => format!("{h} h {m} min left"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_what_was_made() {
        let check = |s, made, rest, text: &str| assert_eq!(left(Duration::from_secs(s), made, rest), text);
        check(10, 0, 5, "the time left is not known yet");
        check(10, 5, 5, "10 s left");
        check(100, 10, 50, "8 min 20 s left");
        check(3600, 1, 30, "30 h 0 min left");
        check(10, 5, 0, "0 s left");
    }
}
