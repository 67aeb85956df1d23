//! `--watch`: the check is made again whenever a file that it reads has changed.
//!
//! Each look is a process of its own: it gives up its rights to files before it runs a script, and this one keeps them.

use super::{Args, beside, folders, script};
use anyhow::{Context as _, Result};
use notify::{EventKind, RecursiveMode, Watcher as _};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// An editor writes a file in several steps: the check begins when there has been none for so long.
const STILL: Duration = Duration::from_millis(80);

/// Looks, and looks again at every change, until it is ended.
pub fn watch(args: &Args) -> Result<ExitCode> {
    anyhow::ensure!(
        args.scripts.iter().all(|s| s.as_os_str() != "-"),
        "--watch needs files: standard input does not change"
    );
    let (send, changes) = channel();
    let mut watcher = notify::recommended_watcher(send).context("cannot watch files")?;
    let mut known: BTreeSet<PathBuf> = BTreeSet::new();
    let mut first = true;
    loop {
        // What the scripts source may have become more, or have been moved to another folder.
        let files = files(args)?;
        for folder in files
            .iter()
            .filter_map(|f| f.parent())
            .chain(args.scripts.iter().filter(|s| s.is_dir()).map(PathBuf::as_path))
        {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            // Where a file is put in the place of another, only its folder tells.
            let deep = if args.scripts.iter().any(|s| s == folder && s.is_dir()) {
                RecursiveMode::Recursive
            } else {
                RecursiveMode::NonRecursive
            };
            if known.insert(folder.to_owned()) {
                watcher.watch(folder, deep).with_context(|| format!("cannot watch {}", folder.display()))?;
            }
        }
        if std::io::stdout().is_terminal() {
            print!("\x1b[2J\x1b[H");
            std::io::stdout().flush().context("cannot write to standard output")?;
        }
        look()?;
        if first {
            crate::say(&format!("penstock: watching {} files; Ctrl-C ends it", files.len()));
            first = false;
        }
        let names: BTreeSet<PathBuf> = files.iter().filter_map(|f| f.canonicalize().ok()).collect();
        let Some(changed) = next(&changes, &|path| concerns(path, &names, &args.scripts)) else {
            anyhow::bail!("files cannot be watched any more");
        };
        crate::say(&format!("penstock: {} has changed", changed.display()));
    }
}

/// The check without `--watch`, in a process of its own; its status is what a single check would end with.
fn look() -> Result<()> {
    let own = std::env::current_exe().context("cannot find the program itself")?;
    let words: Vec<OsString> = std::env::args_os().skip(1).filter(|w| w != "--watch").collect();
    Command::new(own).args(words).status().context("cannot run the check")?;
    Ok(())
}

/// The scripts and all that they source.
fn files(args: &Args) -> Result<BTreeSet<PathBuf>> {
    // A folder may be without scripts for a while, and a file be away while it is written anew.
    let paths = folders::scripts(&args.scripts).unwrap_or_default();
    let mut all: BTreeSet<PathBuf> = args.scripts.iter().filter(|s| !s.is_dir()).cloned().collect();
    for path in &paths {
        if let Ok(script) = script(path, &[], &args.files) {
            let sourced = beside::read(&script, path, &args.scripts);
            all.extend(sourced.into_iter().map(|s| PathBuf::from(s.name)));
        }
        all.insert(path.clone());
    }
    all.extend(args.baseline.iter().chain(&args.config).cloned());
    Ok(all)
}

/// Whether a changed path is one of these files, or a script of a folder that was named.
fn concerns(path: &Path, files: &BTreeSet<PathBuf>, named: &[PathBuf]) -> bool {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let within = |n: &PathBuf| n.is_dir() && n.canonicalize().is_ok_and(|n| real.starts_with(n));
    files.contains(&real) || named.iter().any(within)
}

/// The first change of a file that concerns us, when all changes are over.
fn next(
    changes: &Receiver<notify::Result<notify::Event>>,
    concerns: &dyn Fn(&Path) -> bool,
) -> Option<PathBuf> {
    let of = |event: notify::Result<notify::Event>| {
        let event = event.ok().filter(|e| !matches!(e.kind, EventKind::Access(_)))?;
        event.paths.into_iter().find(|p| concerns(p))
    };
    let changed = loop {
        if let Some(path) = of(changes.recv().ok()?) {
            break path;
        }
    };
    loop {
        match changes.recv_timeout(STILL) {
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return Some(changed),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}
