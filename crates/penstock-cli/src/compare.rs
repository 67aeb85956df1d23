//! `penstock compare`.

use anyhow::{Result, bail};
use penstock_lab::run::Folder;
use penstock_measure::compare::{self, Side};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `penstock compare` takes.
#[derive(clap::Args)]
#[command(
    after_help = "RUN is a run folder, or a folder of run folders from `penstock run --repeat N`: a difference is then judged by the \
                  spread.\nTry:  penstock compare runs/home-line-unshaped runs/home-line --html both.html"
)]
pub struct Args {
    /// The run to compare with
    before: PathBuf,
    /// The runs to compare
    #[arg(required = true, value_name = "RUN")]
    after: Vec<PathBuf>,
    /// Print every figure, those too that are equal or differ by chance
    #[arg(long)]
    all: bool,
    /// Print all figures as JSON
    #[arg(long)]
    json: bool,
    /// Write a page with both curves in one picture (of several runs, one page each, numbered)
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// The runs a path names: a run folder, or those in it in the order of their names.
fn runs(path: &Path) -> Result<Vec<Folder>> {
    crate::near::there(path)?;
    if path.is_file() || path.join("record.json").is_file() {
        return Ok(vec![Folder::read(path).map_err(anyhow::Error::msg)?]);
    }
    if !path.exists() {
        bail!("cannot read {}: there is no such folder; penstock run writes one in runs/", path.display());
    }
    let entries =
        std::fs::read_dir(path).map_err(|e| anyhow::anyhow!("cannot read {}: {e}", path.display()))?;
    let mut paths: Vec<PathBuf> =
        entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.join("record.json").is_file()).collect();
    // 2 before 10.
    paths.sort_by_key(|p| (p.as_os_str().len(), p.clone()));
    if paths.is_empty() {
        bail!("{} is not a run folder and contains none", path.display());
    }
    paths.iter().map(|p| Folder::read(p).map_err(anyhow::Error::msg)).collect()
}

fn side<'a>(path: &Path, runs: &'a [Folder]) -> Side<'a> {
    let path = if path.is_file() { path.parent().unwrap_or(path) } else { path };
    let name =
        path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    Side { name, runs: runs.iter().map(|f| (&f.record, &f.series)).collect() }
}

/// Does it. Exit status 1 when a figure differs by more than the spread.
pub fn main(args: &Args) -> Result<ExitCode> {
    let first = runs(&args.before)?;
    let mut before = side(&args.before, &first);
    let mut differs = false;
    let mut all = Vec::new();
    for (n, path) in args.after.iter().enumerate() {
        let other = runs(path)?;
        let mut after = side(path, &other);
        if before.name == after.name {
            before.name = args.before.display().to_string();
            after.name = path.display().to_string();
        }
        let rows = compare::compare(&before, &after);
        if rows.is_empty() {
            bail!(
                "{} and {} have no program, flow, queue or class of the same name",
                args.before.display(),
                path.display()
            );
        }
        differs |= rows.iter().any(|r| r.verdict == compare::Verdict::Differs);
        if let Some(file) = &args.html {
            let file = match args.after.len() {
                1 => file.clone(),
                _ => file.with_extension(format!("{}.html", n + 1)),
            };
            penstock_files::replace(&file, compare::html(&before, &after, &rows))
                .map_err(|e| anyhow::anyhow!("{}: {e}", file.display()))?;
        }
        if args.json {
            all.push(serde_json::json!({
                "before": before.name,
                "after": after.name,
                "tally": compare::Tally::of(&rows),
                "advice": compare::advice(before.runs.len(), after.runs.len()),
                "rows": rows,
            }));
        } else {
            crate::show(&compare::text(&before.name, &after.name, &rows, args.all))?;
        }
    }
    if args.json {
        crate::json(&all)?;
    }
    Ok(ExitCode::from(u8::from(differs)))
}
