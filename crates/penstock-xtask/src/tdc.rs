//! The kernel's tc test cases (tdc) against our `tc`, `ip` and `ping`, and the list of those that do not pass.
//!
//! The suite is the kernel's and is not part of this project: who has it (a folder with `run_tdc.py` and `tdc/`) names it. The list
//! `vectors/tdc.txt` has a line for each case that fails or is skipped: its id, `fail` or `skip`, the reason. It may only shrink: a case
//! that fails and does not stand there is a fault, and so is one that stands there and passes.

use crate::tidy;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of `cargo xtask tdc`.
#[derive(clap::Args)]
pub struct Args {
    /// The folder with run_tdc.py and tdc/
    #[arg(long, env = "PENSTOCK_TDC", value_name = "FOLDER")]
    suite: Option<PathBuf>,
    /// Write the list anew; it may still only shrink, but for cases that are new in the suite
    #[arg(long)]
    write: bool,
    /// Only cases whose file and name match this
    #[arg(long = "match", value_name = "REGEX")]
    matching: Option<String>,
    /// A penstock that is built already
    #[arg(long, value_name = "FILE")]
    penstock: Option<PathBuf>,
}

/// What became of a case, and why.
type List = BTreeMap<String, (String, String)>;

/// Runs the suite and compares it with the list.
pub fn run(args: &Args) -> Result<()> {
    let Some(suite) = &args.suite else {
        println!("tdc: SKIPPED, the suite is not here: --suite FOLDER or PENSTOCK_TDC names it");
        return Ok(());
    };
    let penstock = match &args.penstock {
        // Links to it lie elsewhere.
        Some(file) => file.canonicalize().with_context(|| format!("cannot open {}", file.display()))?,
        None => build()?,
    };
    let work = std::env::temp_dir().join(format!("penstock-tdc-{}", std::process::id()));
    std::fs::create_dir_all(&work)?;
    let judged = cases(args, suite, &penstock, &work);
    std::fs::remove_dir_all(&work)?;
    let (passed, now) = judged?;
    let path = tidy::root().join("vectors/tdc.txt");
    let listed = read(&std::fs::read_to_string(&path).unwrap_or_default())?;
    let failed = now.values().filter(|(result, _)| result == "fail").count();
    let skipped = now.len() - failed;
    println!("tdc: {} passed, {failed} failed, {skipped} skipped", passed.len());
    let grown: Vec<_> =
        now.iter().filter(|(id, (result, _))| listed.get(*id).is_none_or(|l| l.0 != *result)).collect();
    let passing: Vec<_> = listed.keys().filter(|id| passed.contains(*id)).collect();
    if args.write {
        return write(&path, &listed, &now, args.matching.is_some());
    }
    for (id, (result, why)) in &grown {
        eprintln!("tdc: {id} {result}s and is not on the list: {why}");
    }
    for id in &passing {
        eprintln!("tdc: {id} passes: take it off the list (--write)");
    }
    match (grown.len(), passing.len()) {
        (0, 0) => Ok(()),
        (grown, passing) => bail!("{grown} cases fail that did not, {passing} pass that are on the list"),
    }
}

fn build() -> Result<PathBuf> {
    let done = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "-p", "penstock-cli", "--message-format", "json"])
        .current_dir(tidy::root())
        .output()
        .context("cargo build")?;
    let text = String::from_utf8_lossy(&done.stdout);
    let built = text.lines().filter_map(|l| serde_json::from_str::<serde_json::Value>(l).ok());
    let mut files = built.filter_map(|m| Some(m["executable"].as_str()?.to_owned()));
    files.next_back().map(PathBuf::from).context("cargo build gave no program")
}

/// Cases that passed, and the others.
fn cases(args: &Args, suite: &Path, penstock: &Path, work: &Path) -> Result<(Vec<String>, List)> {
    for tool in ["tc", "ip", "ethtool", "ping"] {
        #[cfg(unix)]
        std::os::unix::fs::symlink(penstock, work.join(tool))?;
        #[cfg(not(unix))]
        std::fs::copy(penstock, work.join(tool))?;
    }
    let results = work.join("results.json");
    let mut runner = Command::new("python3");
    runner.arg(suite.join("run_tdc.py")).args(["--mode", "state", "--state-env", "PENSTOCK_STATE"]);
    for tool in ["tc", "ip", "ping"] {
        runner.arg(format!("--{tool}")).arg(work.join(tool));
    }
    runner.arg("--json").arg(&results);
    if let Some(regex) = &args.matching {
        runner.arg("--match").arg(regex);
    }
    let done = runner.output().context("cannot run python3")?;
    let text = std::fs::read_to_string(&results)
        .with_context(|| format!("run_tdc.py: {}", String::from_utf8_lossy(&done.stderr)))?;
    let all: serde_json::Value = serde_json::from_str(&text)?;
    let (mut passed, mut others) = (Vec::new(), List::new());
    for case in all["results"].as_array().context("no results")? {
        let word = |name: &str| {
            case[name].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        match word("result").as_str() {
            "pass" => passed.push(word("id")),
            result => {
                let said: String = format!("{}: {} {}", word("stage"), word("why"), word("output"))
                    .chars()
                    .take(140)
                    .collect();
                others.insert(word("id"), (result.to_owned(), said.trim().to_owned()));
            }
        }
    }
    Ok((passed, others))
}

fn read(text: &str) -> Result<List> {
    let lines = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
    let read = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let (id, result) = (words.next()?, words.next()?);
        Some((id.to_owned(), (result.to_owned(), words.next().unwrap_or_default().to_owned())))
    };
    lines.map(|l| read(l).with_context(|| format!("vectors/tdc.txt: {l}"))).collect()
}

/// Writes the list; reasons that a person wrote stay.
fn write(path: &Path, listed: &List, now: &List, partly: bool) -> Result<()> {
    let mut text = "# Cases of the kernel's tc test suite that do not pass: id, fail or skip, why. It may only shrink (cargo xtask tdc).\n".to_owned();
    let mut all = now.clone();
    for (id, (result, why)) in listed {
        match all.get_mut(id) {
            Some(entry) if entry.0 == *result => entry.1.clone_from(why),
            None if partly => {
                all.insert(id.clone(), (result.clone(), why.clone()));
            }
            _ => {}
        }
    }
    for (id, (result, why)) in &all {
        text.push_str(format!("{id} {result} {why}").trim_end());
        text.push('\n');
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_and_reasons_stay() {
        let listed = read("# head\nab12 fail not simulated yet\ncd34 skip\n").unwrap();
        assert_eq!(listed["ab12"], ("fail".to_owned(), "not simulated yet".to_owned()));
        assert!(read("ab12\n").is_err());
        let path = std::env::temp_dir().join(format!("penstock-tdc-list-{}", std::process::id()));
        let now: List = [("ab12", "execute: exit code"), ("ef56", "verify: x")]
            .map(|(id, why)| (id.to_owned(), ("fail".to_owned(), why.to_owned())))
            .into();
        write(&path, &listed, &now, false).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(
            text.lines().skip(1).collect::<Vec<_>>(),
            ["ab12 fail not simulated yet", "ef56 fail verify: x"]
        );
    }
}
