//! `penstock sweep`.

use crate::many::{How, Work, with_files};
use anyhow::Result;
use penstock_lab::sweep::{Plan, Wishes, make, make_part};
use penstock_measure::sweep;
use std::path::PathBuf;
use std::process::ExitCode;

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
    /// Make only part I of N of the runs, for several machines; the same command without it then sums up (docs/cluster.md)
    #[arg(long, value_name = "I/N", value_parser = part, conflicts_with = "json")]
    part: Option<(usize, usize)>,
    /// Print sweep.json instead of the table
    #[arg(long)]
    json: bool,
    /// Print the points and end: nothing is run
    #[arg(long, conflicts_with = "json")]
    dry_run: bool,
    #[command(flatten)]
    how: How,
}

/// Plans it and runs it.
pub fn main(args: &Args) -> Result<ExitCode> {
    let wishes = Wishes {
        set: args.set.clone(),
        seeds: args.how.seeds,
        seed: args.how.seed,
        design: args.design.clone(),
        points: args.points,
        figures: args.figure.clone(),
        pareto: args.pareto.clone(),
    };
    let planned = args.how.read(&args.file, |text, name, loader| Plan::new(text, name, loader, &wishes))?;
    let plan = match planned {
        Ok(plan) => plan,
        Err(status) => return Ok(status),
    };
    if args.dry_run {
        let points: String = (0..plan.points.len()).map(|p| plan.point_text(p) + "\n").collect();
        crate::show(&points)?;
        return Ok(ExitCode::SUCCESS);
    }
    let total = plan.points.len() * plan.seeds.len();
    let work = Work { file: &args.file, behind: "-sweep", title: &plan.title, total, largest: &plan.largest };
    if let Some((own, of)) = args.part {
        let (made, folder) = match args.how.make(&work, |making| make_part(&plan, making, (own, of)))? {
            Ok(made) => made,
            Err(status) => return Ok(status),
        };
        let results = folder.join("results");
        crate::show(&format!("part {own} of {of}: {made} of {total} runs, in {}\n", results.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (results, folder) = match args.how.make(&work, |making| make(&plan, making))? {
        Ok(made) => made,
        Err(status) => return Ok(status),
    };
    if args.json {
        crate::print(&results.to_json())?;
    } else {
        let files = ["results.parquet", "sweep.json", "report.html"];
        crate::show(&with_files(&sweep::text(&results), &folder, files))?;
    }
    Ok(ExitCode::from(u8::from(results.refused().is_some())))
}

/// Reads `2/8`.
fn part(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(own, of)| Some((own.parse().ok()?, of.parse().ok()?)));
    parts
        .filter(|(own, of)| (1..=*of).contains(own) && *of <= 1_000_000)
        .ok_or_else(|| "write a part and how many there are: 1/8 to 8/8".to_owned())
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
}
