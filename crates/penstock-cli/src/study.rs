//! `penstock study`.

use crate::run::{bar, refuse};
use anyhow::Result;
use penstock_lab::run::Ground;
use penstock_study::{LIST, Matrix, Study};
use std::path::PathBuf;
use std::process::ExitCode;

/// What `penstock study` takes.
#[derive(clap::Args)]
#[command(
    after_help = "Without a name: which studies there are. Exit status: 0 when no claim fails, 1 when one does, 2 on errors.\n\
                  Try:  penstock study virtual-lab"
)]
pub struct Args {
    /// The study
    name: Option<String>,
    /// One experiment of it
    id: Option<String>,
    /// Compare the simulator with another ground: kernel or virtual
    #[arg(long, value_name = "GROUND", requires = "name")]
    on: Option<Ground>,
    /// Print claims and numbers as JSON
    #[arg(long)]
    json: bool,
    /// Repetitions over seeds [default: 20; 5 with --sensitivity, 2 with --search]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000), conflicts_with = "on")]
    seeds: Option<u64>,
    /// Vary what the document leaves free, and print which verdicts change
    #[arg(long, requires = "name", conflicts_with_all = ["id", "on", "out"])]
    sensitivity: bool,
    /// Try every combination of the values of the free parameters whose names contain this; may be given several times
    #[arg(long, value_name = "PARAMETER", requires = "name", conflicts_with_all = ["id", "on", "out", "sensitivity", "html"])]
    search: Vec<String>,
    /// The AQM to test, for a study that needs one: pie, "red limit …"
    #[arg(long, value_name = "KIND")]
    aqm: Option<String>,
    /// Runs at a time [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024), conflicts_with = "on")]
    jobs: Option<u16>,
    /// Write the run folder of each experiment below this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write figures, tables and claims to this page, beside what was published
    #[arg(long, value_name = "FILE", conflicts_with_all = ["on", "sensitivity"], requires = "name")]
    html: Option<PathBuf>,
}

/// Lists or runs.
pub fn main(args: &Args) -> Result<ExitCode> {
    let Some(name) = &args.name else {
        if args.json {
            let row = |s: &Study| serde_json::json!({ "name": s.name, "source": s.source, "experiments": s.experiments() });
            crate::json(&LIST.iter().map(row).collect::<Vec<_>>())?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut text = String::new();
        for study in LIST {
            text.push_str(&format!(
                "{}\n  {}\n  experiments: {}\n",
                study.name,
                study.source,
                study.experiments().join(", ")
            ));
        }
        crate::print(&text)?;
        return Ok(ExitCode::SUCCESS);
    };
    let Some(study) = Study::find(name) else {
        let names: Vec<&str> = LIST.iter().map(|s| s.name).collect();
        anyhow::bail!(
            "there is no study \"{name}\"; {}there is {}",
            crate::near::name(name, &names),
            names.join(", ")
        );
    };
    let ask = |progress| Matrix {
        only: args.id.as_deref(),
        out: args.out.as_deref(),
        page: args.html.is_some(),
        seeds: args.seeds,
        duration: None,
        aqm: args.aqm.as_deref(),
        jobs: args.jobs.map(usize::from),
        progress,
    };
    let bar = bar(study.name);
    let progress = |done: usize, of: usize| bar.set_position((done * 1000 / of.max(1)) as u64);
    if !args.search.is_empty() {
        let search = study.search(&ask(&progress), &args.search);
        bar.finish_and_clear();
        return match search {
            Ok(search) => {
                match args.json {
                    true => crate::print(&format!("{}\n", serde_json::to_string_pretty(&search)?))?,
                    false => crate::show(&search.text())?,
                }
                Ok(ExitCode::SUCCESS)
            }
            Err(faults) => Ok(refuse(&faults)),
        };
    }
    if args.sensitivity {
        let varied = study.sensitivity(&ask(&progress));
        bar.finish_and_clear();
        return match varied {
            Ok(varied) => {
                match args.json {
                    true => crate::print(&format!("{}\n", serde_json::to_string_pretty(&varied)?))?,
                    false => crate::show(&varied.text())?,
                }
                Ok(ExitCode::SUCCESS)
            }
            Err(faults) => Ok(refuse(&faults)),
        };
    }
    let report = match args.on.filter(|g| *g != Ground::Sim) {
        Some(ground) => study.run_beside(ground, args.id.as_deref(), args.out.as_deref(), &progress),
        None => study.run(&ask(&progress)),
    };
    bar.finish_and_clear();
    let report = match report {
        Ok(report) => report,
        Err(faults) => return Ok(refuse(&faults)),
    };
    if let Some(folder) = args.out.as_deref().filter(|_| !report.pictures.is_empty()) {
        std::fs::create_dir_all(folder)?;
        for (name, picture) in &report.pictures {
            penstock_files::replace(&folder.join(name), picture)?;
        }
    }
    if let Some(file) = &args.html {
        penstock_files::replace(file, &report.page)
            .map_err(|e| anyhow::anyhow!("{}: {e}", file.display()))?;
    }
    if args.json {
        crate::print(&format!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        crate::show(&report.text())?;
    }
    Ok(ExitCode::from(u8::from(report.fails() > 0)))
}
