//! `penstock tune`.

use crate::examples;
use crate::run::{bar, refuse};
use crate::sweep::{folder, left, program};
use anyhow::Result;
use indicatif::ProgressStyle;
use penstock_lab::experiment::Opened;
use penstock_lab::many;
use penstock_lab::run::{Ground, memory};
use penstock_lab::sweep::Making;
use penstock_lab::tune::{Tuning, Wishes};
use penstock_measure::text::visible;
use penstock_measure::tune;
use penstock_model::Diagnostic;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// What `penstock tune` takes.
#[derive(clap::Args)]
#[command(after_help = "Broken off, even by kill -9, it goes on where it was when it is started again.\n\
                  Exit status: 0 when a point meets all goals, 1 when none that was tried does, 2 when nothing was run.\n\
                  Try:  penstock tune example:home-line-unshaped --set 'host.modem.eth1.txqueuelen=10..250' --minimize 'ping rtt p95' --goal 'backup throughput > 3.5mbit' --points 12")]
pub struct Args {
    /// The experiment file (TOML), or example:NAME
    file: PathBuf,
    /// A key of the file and its bounds: link.uplink.rate=1mbit..20mbit; or a variable of a setup: $RATE=1mbit..20mbit; may be repeated
    #[arg(long, value_name = "PATH=BOUNDS")]
    set: Vec<String>,
    /// What must hold, in the words of `[[expect]]`: "call owd p99 < 20ms"; may be repeated [default: the file's expectations]
    #[arg(long, value_name = "GOAL")]
    goal: Vec<String>,
    /// The figure to have most of: "backup goodput"
    #[arg(long, value_name = "WHAT", required_unless_present = "minimize", conflicts_with = "minimize")]
    maximize: Option<String>,
    /// The figure to have least of
    #[arg(long, value_name = "WHAT")]
    minimize: Option<String>,
    /// How many points are tried at most
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    points: u64,
    /// Run every point with this many seeds, the same for all points [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// The first seed, which the search's dice hang on too [default: the file's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Where it runs: sim (the simulator), virtual (a real Linux in exact time), kernel (this machine's, needs root)
    #[arg(long, value_name = "GROUND", default_value = "sim")]
    on: Ground,
    /// Make every machine today's Linux without processor cost
    #[arg(long)]
    modern: bool,
    /// Runs at a time; it changes no byte [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    jobs: Option<u32>,
    /// Folder of the search [default: runs/ and the file's name and -tune]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write each run's folder too: DIR/runs/PATH=VALUE/seed=N
    #[arg(long)]
    folders: bool,
    /// Print tune.json instead of the text
    #[arg(long)]
    json: bool,
    /// Another folder that paths in the experiment (base, @file, replay) may lead into; may be repeated
    #[arg(long, value_name = "DIR")]
    allow_path: Vec<PathBuf>,
}

/// Plans it and searches.
pub fn main(args: &Args) -> Result<ExitCode> {
    let wishes = Wishes {
        set: args.set.clone(),
        goals: args.goal.clone(),
        objective: args.maximize.as_ref().or(args.minimize.as_ref()).cloned().unwrap_or_default(),
        more: args.maximize.is_some(),
        points: args.points,
        seeds: args.seeds,
        seed: args.seed,
    };
    let planned = match examples::named(&args.file) {
        Some(name) => {
            let (text, file) = examples::text(name)?;
            Tuning::new(text, &file, &examples::inside, &wishes)
        }
        None => Opened::new(&args.file, &args.allow_path)
            .and_then(|file| Tuning::new(&file.text, &file.name, &|path| file.file(path), &wishes)),
    };
    let tuning = match planned {
        Ok(tuning) => tuning,
        Err(faults) => return Ok(refuse(&faults)),
    };
    let jobs = match (args.on, args.jobs) {
        (Ground::Kernel, None | Some(1)) => 1,
        (Ground::Kernel, Some(_)) => {
            anyhow::bail!("--jobs: on kernel one run at a time: two would take each other's processor time")
        }
        (_, jobs) => jobs.map_or_else(many::processors, |jobs| jobs as usize),
    };
    let total = tuning.runs();
    if args.on == Ground::Sim
        && let Err(faults) = memory::check(tuning.largest(), jobs.min(total), memory::available())
    {
        return Ok(refuse(&faults));
    }
    let folder = args.out.clone().unwrap_or_else(|| folder(&args.file, "-tune"));
    let program = program();
    if args.on == Ground::Sim {
        // All is read: whatever the setups do, it is done without the files of this computer.
        crate::check::confine(&[&folder]);
    }
    let bar = bar(tuning.title());
    let style = ProgressStyle::with_template("{prefix} {wide_bar} {msg}").expect("the template is right");
    bar.set_style(style.progress_chars("━╸ "));
    bar.set_prefix(visible(tuning.title()).into_owned());
    bar.set_message(format!("0 of {total}"));
    let begun = Instant::now();
    let told = |done: usize, made: usize| {
        bar.set_position(done as u64 * 1000 / total as u64);
        let rest = left(begun.elapsed(), made, total.saturating_sub(done));
        bar.set_message(format!("{done} of {total}, {rest}"));
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
    let found = tuning.search(&making);
    bar.finish_and_clear();
    let found = found.map_err(anyhow::Error::msg)?;
    if args.json {
        crate::print(&found.to_json())?;
    } else {
        let files = ["results.parquet", "tune.json", "report.html"];
        let files: String = files.iter().map(|f| format!("{}\n", folder.join(f).display())).collect();
        crate::show(&format!("{}\n{files}", tune::text(&found)))?;
    }
    Ok(ExitCode::from(u8::from(!found.best.is_some_and(|best| found.meets(best)))))
}
