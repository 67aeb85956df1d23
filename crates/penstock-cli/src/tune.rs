//! `penstock tune`.

use crate::many::{How, Work, with_files};
use anyhow::Result;
use penstock_lab::tune::{Tuning, Wishes};
use penstock_measure::tune;
use std::path::PathBuf;
use std::process::ExitCode;

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
    /// Print tune.json instead of the text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    how: How,
}

/// Plans it and searches.
pub fn main(args: &Args) -> Result<ExitCode> {
    let wishes = Wishes {
        set: args.set.clone(),
        goals: args.goal.clone(),
        objective: args.maximize.as_ref().or(args.minimize.as_ref()).cloned().unwrap_or_default(),
        more: args.maximize.is_some(),
        points: args.points,
        seeds: args.how.seeds,
        seed: args.how.seed,
    };
    let planned = args.how.read(&args.file, |text, name, loader| Tuning::new(text, name, loader, &wishes))?;
    let tuning = match planned {
        Ok(tuning) => tuning,
        Err(status) => return Ok(status),
    };
    let (title, largest) = (tuning.title().to_owned(), tuning.largest().clone());
    let work =
        Work { file: &args.file, behind: "-tune", title: &title, total: tuning.runs(), largest: &largest };
    let (found, folder) = match args.how.make(&work, |making| tuning.search(making))? {
        Ok(made) => made,
        Err(status) => return Ok(status),
    };
    if args.json {
        crate::print(&found.to_json())?;
    } else {
        let files = ["results.parquet", "tune.json", "report.html"];
        crate::show(&with_files(&tune::text(&found), &folder, files))?;
    }
    Ok(ExitCode::from(u8::from(!found.best.is_some_and(|best| found.meets(best)))))
}
