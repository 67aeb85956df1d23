//! `penstock sweep`.

use crate::examples;
use crate::run::{bar, refuse};
use anyhow::Result;
use indicatif::ProgressStyle;
use penstock_lab::experiment::Opened;
use penstock_lab::many;
use penstock_lab::run::{Ground, memory};
use penstock_lab::sweep::{Making, Plan, Wishes, make, make_part};
use penstock_measure::sweep;
use penstock_measure::text::visible;
use penstock_model::Diagnostic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What `penstock sweep` takes.
#[derive(clap::Args)]
#[command(after_help = "Broken off, even by kill -9, it goes on where it was when it is started again.\n\
                  Exit status: 0 when every run was made, 1 when some could not be made, 2 when nothing was run.\n\
                  Try:  penstock sweep example:home-line --set 'host.router.setup=@home-line.sh,tc qdisc add dev eth0 root cake bandwidth 3500kbit' --seeds 5")]
pub struct Args {
    /// The experiment file (TOML), or example:NAME; its table [sweep] says what is not said here
    file: PathBuf,
    /// A key of the file and its values: link.uplink.rate=10mbit,20mbit or link.uplink.delay=1ms..20ms/5; may be repeated
    #[arg(long, value_name = "PATH=VALUES")]
    set: Vec<String>,
    /// Run every point with this many seeds, the same for all points [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// The first seed [default: the file's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// How points are chosen: grid (all combinations), random, latin (a Latin hypercube) [default: grid]
    #[arg(long, value_name = "NAME")]
    design: Option<String>,
    /// How many points random and latin have [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    points: Option<u64>,
    /// A figure to show, in the words of `[[expect]]`: "call owd p99"; may be repeated [default: the expectations' figures]
    #[arg(long, value_name = "WHAT")]
    figure: Vec<String>,
    /// Two figures to find the best compromises between
    #[arg(long, num_args = 2, value_names = ["WHAT", "WHAT"])]
    pareto: Vec<String>,
    /// Where it runs: sim (the simulator), kernel (this machine's, needs root), virtual (a real Linux in exact time)
    #[arg(long, value_name = "GROUND", default_value = "sim")]
    on: Ground,
    /// Make every machine today's Linux without processor cost
    #[arg(long)]
    modern: bool,
    /// Runs at a time; it changes no byte [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Folder of the sweep [default: runs/ and the file's name and -sweep]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write each run's folder too: DIR/runs/PATH=VALUE/seed=N
    #[arg(long)]
    folders: bool,
    /// Make only part I of N of the runs, for several machines; the same command without it then sums up (docs/cluster.md)
    #[arg(long, value_name = "I/N", value_parser = part, conflicts_with = "json")]
    part: Option<(usize, usize)>,
    /// Print sweep.json instead of the table
    #[arg(long)]
    json: bool,
    /// Print the points and end: nothing is run
    #[arg(long, conflicts_with = "json")]
    dry_run: bool,
    /// Another folder that paths in the experiment (base, @file, replay) may lead into; may be repeated
    #[arg(long, value_name = "DIR")]
    allow_path: Vec<PathBuf>,
}

/// Plans it and runs it.
pub fn main(args: &Args) -> Result<ExitCode> {
    let wishes = Wishes {
        set: args.set.clone(),
        seeds: args.seeds,
        seed: args.seed,
        design: args.design.clone(),
        points: args.points,
        figures: args.figure.clone(),
        pareto: args.pareto.clone(),
    };
    let planned = match examples::named(&args.file) {
        Some(name) => {
            let (text, file) = examples::text(name)?;
            Plan::new(text, &file, &examples::inside, &wishes)
        }
        None => {
            crate::near::there(&args.file)?;
            Opened::new(&args.file, &args.allow_path)
                .and_then(|file| Plan::new(&file.text, &file.name, &|path| file.file(path), &wishes))
        }
    };
    let plan = match planned {
        Ok(plan) => plan,
        Err(faults) => return Ok(refuse(&faults)),
    };
    if args.dry_run {
        let points: String = (0..plan.points.len()).map(|p| plan.point_text(p) + "\n").collect();
        crate::show(&points)?;
        return Ok(ExitCode::SUCCESS);
    }
    let jobs = match (args.on, args.jobs) {
        (Ground::Kernel, None | Some(1)) => 1,
        (Ground::Kernel, Some(_)) => {
            anyhow::bail!("--jobs: on kernel one run at a time: two would take each other's processor time")
        }
        (_, jobs) => jobs.map_or_else(many::processors, |jobs| jobs as usize),
    };
    let total = plan.points.len() * plan.seeds.len();
    if args.on == Ground::Sim
        && let Err(faults) = memory::check(&plan.largest, jobs.min(total), memory::available())
    {
        return Ok(refuse(&faults));
    }
    let folder = args.out.clone().unwrap_or_else(|| folder(&args.file, "-sweep"));
    let program = program();
    if args.on == Ground::Sim {
        // All is read: whatever the setups do, it is done without the files of this computer.
        crate::check::confine(&[&folder]);
    }
    let bar = bar(&plan.title);
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {msg}").expect("the template is right");
    bar.set_style(style.progress_chars("━╸ "));
    bar.set_prefix(visible(&plan.title).into_owned());
    bar.set_message(format!("0 of {total}"));
    let begun = Instant::now();
    let told = |done: usize, made: usize| {
        bar.set_position(done as u64 * 1000 / total as u64);
        bar.set_message(format!("{done} of {total}, {}", left(begun.elapsed(), made, total - done)));
    };
    let warn = |warning: &Diagnostic| bar.suspend(|| crate::say(&warning.to_string()));
    let making = Making {
        ground: args.on,
        jobs,
        folder: &folder,
        folders: args.folders,
        program: &program,
        told: &told,
        warn: &warn,
        prepare: &|experiment| if args.modern { experiment.modern() } else { experiment },
    };
    if let Some((own, of)) = args.part {
        let made = make_part(&plan, &making, (own, of));
        bar.finish_and_clear();
        let made = made.map_err(anyhow::Error::msg)?;
        let results = folder.join("results");
        crate::show(&format!("part {own} of {of}: {made} of {total} runs, in {}\n", results.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let made = make(&plan, &making);
    bar.finish_and_clear();
    let results = made.map_err(anyhow::Error::msg)?;
    if args.json {
        crate::print(&results.to_json())?;
    } else {
        let files = ["results.parquet", "sweep.json", "report.html"];
        let files: String = files.iter().map(|f| format!("{}\n", folder.join(f).display())).collect();
        crate::show(&format!("{}\n{files}", sweep::text(&results)))?;
    }
    Ok(ExitCode::from(u8::from(results.refused().is_some())))
}

/// The folder of many runs of a file: `runs/`, its name and `behind`.
pub fn folder(file: &Path, behind: &str) -> PathBuf {
    let mut name = crate::default_out(examples::as_file(file)).into_os_string();
    name.push(behind);
    PathBuf::from(name)
}

/// What makes the runs: the results of another build are not taken for its own. The same program on another machine is the same.
pub fn program() -> String {
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

/// Reads `2/8`.
fn part(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(own, of)| Some((own.parse().ok()?, of.parse().ok()?)));
    parts
        .filter(|(own, of)| (1..=*of).contains(own) && *of <= 1_000_000)
        .ok_or_else(|| "write a part and how many there are: 1/8 to 8/8".to_owned())
}

/// How long the rest will take, by what was made so far.
pub fn left(passed: Duration, made: usize, rest: usize) -> String {
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
    fn a_part_is_one_of_some() {
        assert_eq!((part("2/8"), part("1/1")), (Ok((2, 8)), Ok((1, 1))));
        for wrong in ["0/8", "9/8", "2", "a/b", "1/0", "-1/3"] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }

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
