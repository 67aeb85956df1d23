//! Several scripts at once: which of a folder's files are scripts, and what is said of all of them together.

use anyhow::{Context as _, Result};
use penstock_check::{Answer, Missed, Settings, Sourced, examine_with, form};
use penstock_lab::experiment::Experiment;
use penstock_machine::script::Script;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Folders that hold no scripts of the project's own.
const LEFT_OUT: [&str; 3] = ["node_modules", "target", "vendor"];
/// Scripts checked at once, at most: each has an interpreter with threads of its own.
const MOST_CORES: usize = 16;
/// Stack of a thread that checks, bytes: that of the program's own.
const STACK: usize = 8 << 20;
/// Files larger than this are not looked into while a folder is searched.
const MOST: u64 = 4 << 20;

/// The files to check: those that are named, and in the place of each folder its scripts, sorted by their paths.
pub fn scripts(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut all: Vec<PathBuf> = Vec::new();
    for path in named {
        if path.is_dir() {
            let mut inside = Vec::new();
            search(path, &mut inside)?;
            inside.sort();
            all.extend(inside);
        } else {
            all.push(path.clone());
        }
    }
    let mut known = BTreeSet::new();
    all.retain(|path| known.insert(path.clone()));
    let what = named.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ");
    anyhow::ensure!(!all.is_empty(), "{what}: no script with commands of tc or a packet filter in it");
    Ok(all)
}

fn search(folder: &Path, out: &mut Vec<PathBuf>) -> Result<()> {
    let cannot = || format!("cannot read {}", folder.display());
    for entry in std::fs::read_dir(folder).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Symbolic links are not followed: what they lead to is found where it is, or is not of this folder.
        let kind = entry.file_type().with_context(cannot)?;
        if name.starts_with('.') && name != ".github" || LEFT_OUT.contains(&name.as_str()) {
            continue;
        }
        let path = if folder == Path::new(".") { PathBuf::from(&name) } else { entry.path() };
        if kind.is_dir() {
            search(&path, out)?;
        } else if kind.is_file() && entry.metadata().is_ok_and(|m| m.len() <= MOST) {
            let bytes = penstock_files::read(&path, MOST).map_err(anyhow::Error::msg);
            let bytes = bytes.with_context(|| format!("cannot read {}", path.display()))?;
            if is_script(&name, &bytes) {
                out.push(path);
            }
        }
    }
    Ok(())
}

/// Whether a file is a script that shapes: by its suffix, its first line or its first command, and by its words.
fn is_script(name: &str, bytes: &[u8]) -> bool {
    if bytes.contains(&0) {
        return false;
    }
    let text = String::from_utf8_lossy(bytes);
    let first = text.lines().next().unwrap_or("");
    let suffix = [".sh", ".bash", ".ksh", ".dash", ".py", ".tc"].iter().any(|s| name.ends_with(s));
    let shebang = first.starts_with("#!") && ["sh", "python"].iter().any(|s| first.contains(s));
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    let command = lines.next().and_then(|l| l.split_whitespace().next());
    let begins = command.is_some_and(|w| matches!(w, "tc" | "qdisc" | "iptables" | "ip6tables"));
    let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let shapes = words.any(|w| matches!(w, "tc" | "iptables" | "ip6tables" | "nft" | "qdisc"));
    // Units, Dockerfiles and YAML hold commands among other things; what a text shows is checked where it is named.
    let holds = ![".md", ".markdown", ".rst"].iter().any(|s| name.ends_with(s))
        && penstock_check::holds_commands(name, &text);
    let nft = name.ends_with(".nft") || first.starts_with("#!") && first.contains("nft");
    shapes && (suffix || shebang || begins && !name.contains('.') || holds) || nft && holds
}

/// Checks each on as many cores as there are; of an experiment the setups of all its machines. The answers are in the scripts' order.
pub fn examine_all(
    scripts: &[Script],
    beside: &[Vec<Sourced>],
    experiments: &[Option<Experiment>],
    settings: &Settings,
) -> Vec<Answer> {
    type Of<'a> = ((&'a Script, &'a Vec<Sourced>), &'a Option<Experiment>);
    let one = |((script, beside), experiment): Of<'_>| match experiment {
        Some(experiment) => super::experiment::examine(experiment),
        None => examine_with(script, beside, settings),
    };
    let all: Vec<Of<'_>> = scripts.iter().zip(beside).zip(experiments).collect();
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get).min(all.len()).min(MOST_CORES);
    if cores < 2 {
        return all.into_iter().map(one).collect();
    }
    // Each takes the next one that nobody has taken; the longest is no longer than itself.
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((at, of)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, all.get(at)?)))
        {
            done.push((at, one(*of)));
        }
        done
    };
    let mut done: Vec<(usize, Answer)> = std::thread::scope(|scope| {
        let begin = |n: usize| {
            let named = std::thread::Builder::new().name(format!("check-{n}")).stack_size(STACK);
            named.spawn_scoped(scope, work).ok()
        };
        let threads: Vec<_> = (1..cores).filter_map(begin).collect();
        let mut done = work();
        for thread in threads {
            match thread.join() {
                Ok(theirs) => done.extend(theirs),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, answer)| answer).collect()
}

/// All answers as one: what was not looked at says in which file it is.
pub fn together(scripts: &[Script], answers: &[Answer]) -> Answer {
    let mut all = Answer::default();
    for (script, answer) in scripts.iter().zip(answers) {
        let (of, whole) = (&answer.coverage, &mut all.coverage);
        all.findings.extend(answer.findings.iter().cloned());
        whole.commands += of.commands;
        whole.looked_at += of.looked_at;
        whole.runs += of.runs;
        whole.unknown.extend(of.unknown.iter().cloned());
        whole.files.extend(of.files.iter().map(|(name, of)| (name.clone(), *of)));
        let named = |m: &Missed| match scripts {
            [_] => m.clone(),
            _ => Missed { why: format!("{}: {}", m.file(&script.name), m.why), ..m.clone() },
        };
        whole.missed.extend(of.missed.iter().map(named));
    }
    all
}

/// For people: of one script what there is to say; of several those with something to say, and a summary.
pub fn text(scripts: &[Script], beside: &[Vec<Sourced>], answers: &[Answer]) -> String {
    let read =
        beside.iter().flatten().filter_map(|s| Some((s.name.as_str(), s.text.as_ref().ok()?.as_str())));
    let texts: Vec<(&str, &str)> =
        scripts.iter().map(|s| (s.name.as_str(), s.text.as_str())).chain(read).collect();
    if let [answer] = answers {
        return form::text(&answer.findings, &answer.coverage, &texts);
    }
    let mut out = String::new();
    for (script, answer) in scripts.iter().zip(answers) {
        if !answer.findings.is_empty() || !answer.coverage.is_whole() {
            out += &format!("== {}\n", script.name);
            out += &form::text(&answer.findings, &answer.coverage, &texts);
            out.push('\n');
        }
    }
    let whole = together(scripts, answers);
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let clean = answers.iter().filter(|a| a.findings.is_empty() && a.coverage.is_whole()).count();
    out + &format!(
        "{} scripts: {}, {clean} with nothing found\n{} of {} looked at\n",
        scripts.len(),
        form::counted(&whole.findings),
        whole.coverage.looked_at,
        plural(whole.coverage.commands, "network command"),
    )
}

/// For programs: as of one script, and of several each one's coverage besides.
pub fn json(scripts: &[Script], answers: &[Answer]) -> String {
    let whole = together(scripts, answers);
    if scripts.len() == 1 {
        return form::json(&whole.findings, &whole.coverage);
    }
    let findings: Vec<Value> = whole.findings.iter().map(form::value).collect();
    let of = |(s, a): (&Script, &Answer)| json!({ "file": s.name, "coverage": a.coverage.json() });
    let files: Vec<Value> = scripts.iter().zip(answers).map(of).collect();
    let coverage = whole.coverage.json();
    format!(
        "{:#}\n",
        json!({ "format": form::FORMAT, "findings": findings, "coverage": coverage, "files": files })
    )
}
