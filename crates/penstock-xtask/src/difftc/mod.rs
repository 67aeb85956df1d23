//! `cargo xtask difftc`: random command sequences, given to the real tc on the real kernel and to ours.
//!
//! Sequences come from the grammars in `grammar/`; what the real programs answered is kept in `vectors/tc/NAME.jsonl`, and a
//! test gives the same sequences to Penstock. A sequence agrees when every command has the same exit code, the same first
//! line on standard error, and the same standard output. Where the real tc prints JSON that no reader takes, ours must be
//! readable, and its text may differ.
//!
//! With `--sequences FOLDER` the sequences are the commands of scripts that people use (`FOLDER/NAME.cmds`, a command a line, as
//! the tests of `penstock-shell` write them), and the answers go to `vectors/scripts/NAME.jsonl`.

mod grammar;
mod values;

use anyhow::{Context, Result, bail};
pub use grammar::Grammar;
use penstock_host::Host;
use penstock_model::{Kernel, Time};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to compare.
#[derive(clap::Args)]
pub struct Args {
    /// Grammars (files of `crates/penstock-xtask/grammar` without their ending), or "all"
    names: Vec<String>,
    /// Sequences from files `FOLDER/NAME.cmds` instead of grammars; their answers are kept in `vectors/scripts`
    #[arg(long, value_name = "FOLDER")]
    sequences: Option<PathBuf>,
    /// Sequences a grammar, instead of as many as it says
    #[arg(long)]
    count: Option<u64>,
    /// Number of the first sequence
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Program that runs a command inside the kernel: `RUNNER --engine sim --share DIR -- COMMAND`; without it the recorded
    /// answers serve
    #[arg(long, env = "PENSTOCK_RUNNER")]
    runner: Option<PathBuf>,
    /// Write the real answers to `vectors/tc`
    #[arg(long)]
    record: bool,
    /// Only print the sequences
    #[arg(long)]
    dry: bool,
    /// Most differences to print
    #[arg(long, default_value_t = 12)]
    show: usize,
    /// Folder to work in; made if need be
    #[arg(long, default_value = "target/difftc")]
    scratch: PathBuf,
}

/// What stands before every sequence, in the kernel and here. The kernel's namespace has tunnels of its own before index 7.
pub const SETUP: &[&str] = &[
    "ip link set lo up",
    "ip link add d0 index 7 type dummy",
    "ip link add d1 index 8 type dummy",
    "ip link set d0 up",
    "ip link set d1 up",
];

/// One sequence and what the real programs answered.
struct Recorded {
    n: u64,
    /// The last handle the kernel had chosen for a qdisc before.
    auto: u32,
    steps: Vec<Step>,
}

#[derive(Clone, PartialEq)]
struct Step {
    command: String,
    exit: i64,
    stdout: String,
    /// First line of standard error.
    stderr: String,
}

/// Runs.
pub fn run(args: &Args) -> Result<()> {
    if let Some(folder) = &args.sequences {
        return of_scripts(args, folder);
    }
    let folder = root().join("crates/penstock-xtask/grammar");
    let names = if args.names.iter().any(|n| n == "all") { all_names(&folder)? } else { args.names.clone() };
    if names.is_empty() {
        bail!("grammars: {}", all_names(&folder)?.join(" "));
    }
    let mut total = (0, 0);
    for name in &names {
        let path = folder.join(format!("{name}.txt"));
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let grammar = Grammar::parse(name, &text)?;
        let count = args.count.unwrap_or(grammar.count);
        let numbers = args.first..args.first + count;
        if args.dry {
            for n in numbers {
                println!("{n}: {}", grammar.sequence(n)?.join("\n   "));
            }
            continue;
        }
        let recorded = match &args.runner {
            Some(runner) => ask_kernel(runner, &args.scratch, &grammar, numbers)?,
            None => read(&corpus().join(format!("{name}.jsonl")))?,
        };
        if args.record {
            write(&corpus().join(format!("{name}.jsonl")), &recorded)?;
        }
        let mut shown = 0;
        let mut agree = 0;
        for r in &recorded {
            match compare(r) {
                None => agree += 1,
                Some(difference) if shown < args.show => {
                    shown += 1;
                    println!("{name} {}: {difference}\n", r.n);
                }
                Some(_) => {}
            }
        }
        println!("{name}: {agree} of {} agree", recorded.len());
        total = (total.0 + agree, total.1 + recorded.len());
    }
    if names.len() > 1 {
        println!("{} of {} agree", total.0, total.1);
    }
    Ok(())
}

/// Records the commands of scripts, or holds ours against what was recorded of them.
fn of_scripts(args: &Args, folder: &Path) -> Result<()> {
    for name in names_of(folder, "cmds")? {
        let path = folder.join(format!("{name}.cmds"));
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let sequence: Vec<String> = text.lines().map(str::to_owned).collect();
        let kept = scripts().join(format!("{name}.jsonl"));
        let recorded = match &args.runner {
            Some(runner) => kernel_answers(runner, &args.scratch, &name, &[(1, sequence)])?,
            None => read(&kept)?,
        };
        if args.record {
            write(&kept, &recorded)?;
        }
        for r in &recorded {
            println!("{name}: {}", compare(r).unwrap_or_else(|| "agrees".to_owned()));
        }
    }
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn corpus() -> PathBuf {
    root().join("vectors/tc")
}

fn scripts() -> PathBuf {
    root().join("vectors/scripts")
}

fn all_names(folder: &Path) -> Result<Vec<String>> {
    names_of(folder, "txt")
}

/// The files of a folder that end so, without the ending.
fn names_of(folder: &Path, ending: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == ending) {
            names.extend(path.file_stem().map(|s| s.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

const RUNNER: &str = include_str!("runner.py");

fn ask_kernel(
    runner: &Path,
    scratch: &Path,
    grammar: &Grammar,
    numbers: std::ops::Range<u64>,
) -> Result<Vec<Recorded>> {
    let sequences = numbers.map(|n| Ok((n, grammar.sequence(n)?))).collect::<Result<Vec<_>>>()?;
    kernel_answers(runner, scratch, &grammar.name, &sequences)
}

/// Gives numbered sequences to the real programs.
fn kernel_answers(
    runner: &Path,
    scratch: &Path,
    name: &str,
    all_sequences: &[(u64, Vec<String>)],
) -> Result<Vec<Recorded>> {
    let folder = scratch.join(name);
    fs::create_dir_all(&folder)?;
    let folder = fs::canonicalize(&folder)?;
    let mut all = Vec::new();
    let mut left = all_sequences;
    while !left.is_empty() {
        let part = &left[..left.len().min(100)];
        let sequences: Vec<_> = part.iter().map(|(_, sequence)| sequence).collect();
        fs::write(folder.join("runner.py"), RUNNER)?;
        fs::write(folder.join("in.json"), json!(sequences).to_string())?;
        let answers = folder.join("out.jsonl");
        fs::write(&answers, "")?;
        let out = Command::new(runner)
            .args(["--engine", "sim", "--timeout", "120", "--share"])
            .arg(&folder)
            .args(["--", "env", &format!("DIFFTC_SETUP={}", json!(SETUP)), "LC_ALL=C", "python3"])
            .args([folder.join("runner.py"), folder.join("in.json"), answers.clone()])
            .output()
            .with_context(|| runner.display().to_string())?;
        let text = fs::read_to_string(&answers)?;
        let whole: Vec<&str> = text.split_inclusive('\n').filter(|l| l.ends_with('\n')).collect();
        for ((n, sequence), line) in part.iter().zip(&whole) {
            let (auto, answers): (u32, Vec<(i64, String, String)>) = serde_json::from_str(line)?;
            let steps = sequence.iter().zip(answers).map(|(command, (exit, stdout, stderr))| Step {
                command: command.clone(),
                exit,
                stdout,
                stderr: first_line(&stderr),
            });
            all.push(Recorded { n: *n, auto, steps: steps.collect() });
        }
        let mut done = whole.len();
        if !out.status.success() {
            // The real tc goes round for ever at some command lines, and takes the clock of the kernel with it.
            let said = String::from_utf8_lossy(&out.stderr);
            if !said.contains("stopped after") || done == part.len() {
                bail!("{}: {said}", runner.display());
            }
            eprintln!("{name} {}: left out: {}", part[done].0, said.lines().last().unwrap_or(""));
            done += 1;
        }
        left = &left[done..];
    }
    Ok(all)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or("").trim_end().to_owned()
}

fn write(path: &Path, all: &[Recorded]) -> Result<()> {
    let mut text = String::new();
    for r in all {
        let steps: Vec<Value> =
            r.steps.iter().map(|s| json!([s.command, s.exit, s.stdout, s.stderr])).collect();
        text.push_str(&json!([r.n, r.auto, steps]).to_string());
        text.push('\n');
    }
    fs::create_dir_all(path.parent().expect("a file in a folder"))?;
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// A line of a file: number, last handle, and of each command its line, exit code, standard output and first error line.
type Kept = (u64, u32, Vec<(String, i64, String, String)>);

fn read(path: &Path) -> Result<Vec<Recorded>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let line = |line: &str| -> Result<Recorded> {
        let (n, auto, steps): Kept = serde_json::from_str(line)?;
        let step = |(command, exit, stdout, stderr)| Step { command, exit, stdout, stderr };
        Ok(Recorded { n, auto, steps: steps.into_iter().map(step).collect() })
    };
    text.lines().map(line).collect()
}

/// A machine as the kernel's was when the sequence began.
fn machine(auto: u32) -> Host {
    let mut host = Host::new("difftc", Kernel::V6_12, 1);
    for line in SETUP {
        host.exec(line, Time::ZERO);
    }
    host.set_auto_handle(auto << 16);
    host
}

/// The first difference, in words.
fn compare(r: &Recorded) -> Option<String> {
    let mut machine = machine(r.auto);
    let mut before = String::new();
    for step in &r.steps {
        let output = machine.exec(&step.command, Time::ZERO);
        let ours = Step {
            command: step.command.clone(),
            exit: i64::from(output.status),
            stdout: output.stdout,
            stderr: first_line(&output.stderr),
        };
        if ours != *step && !excused(step, &ours) {
            let part = |what: &str, real: &str, ours: &str| match real == ours {
                true => String::new(),
                false => format!("\n  {what}\n    real: {}\n    ours: {}", real.trim_end(), ours.trim_end()),
            };
            return Some(format!(
                "{before}{}{}{}{}",
                step.command,
                part("exit", &step.exit.to_string(), &ours.exit.to_string()),
                part("stderr", &step.stderr, &ours.stderr),
                part("stdout", &step.stdout, &ours.stdout)
            ));
        }
        before.push_str(&format!("{} [{}]\n    ", step.command, step.exit));
    }
    None
}

/// JSON that tc itself spoils: ours has to be readable.
fn excused(real: &Step, ours: &Step) -> bool {
    // A reader keeps one of two values of one name: where names are lost the text is not whole.
    let names = |text: &str| text.matches("\":").count();
    let json =
        |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|v| names(&v.to_string()) == names(text));
    real.command.contains(" -j")
        && (real.exit, &real.stderr) == (ours.exit, &ours.stderr)
        && !real.stdout.is_empty()
        && !json(&real.stdout)
        && json(&ours.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A list in `vectors/tc`: `NAME NUMBER: reason` a line.
    fn listed(file: &str) -> Result<BTreeMap<(String, u64), String>> {
        let path = corpus().join(file);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let entry = |line: &str| {
            let (place, reason) = line.split_once(": ")?;
            let (name, n) = place.rsplit_once(' ')?;
            Some(((name.to_owned(), n.parse().ok()?), reason.to_owned()))
        };
        let lines = text.lines().filter(|l| !l.is_empty() && !l.starts_with('#'));
        lines.map(|l| entry(l).with_context(|| format!("{}: {l}", path.display()))).collect()
    }

    #[test]
    fn recorded_sequences_agree() {
        let listed = listed("differences.txt").unwrap();
        let mut faults = Vec::new();
        let mut agreeing = 0;
        for entry in fs::read_dir(corpus()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "jsonl") {
                continue;
            }
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            for r in read(&path).unwrap() {
                match (compare(&r), listed.contains_key(&(name.clone(), r.n))) {
                    (None, false) => agreeing += 1,
                    (Some(_), true) => {}
                    (None, true) => faults.push(format!("{name} {} agrees: take it off the list", r.n)),
                    (Some(d), false) => faults.push(format!("{name} {}: {d}", r.n)),
                }
            }
        }
        let shown = faults.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
        assert!(faults.is_empty(), "{} differ, {agreeing} agree\n{shown}", faults.len());
        assert!(agreeing > 0);
    }

    /// What `tc` shows of a machine, without ages, which differ where things are made at other times.
    fn state(host: &mut Host) -> String {
        let mut text = host.dump(Time::ZERO);
        for dev in ["d0", "d1", "lo"] {
            for what in ["qdisc", "class", "filter"] {
                text += &host.exec(&format!("tc -j -s -d {what} show dev {dev}"), Time::ZERO).stdout;
            }
        }
        text
    }

    /// `vectors/tc/rebuild.txt`: `NAME NUMBER: reason` a line.
    #[test]
    fn recorded_sequences_are_rebuilt() {
        let listed = listed("rebuild.txt").unwrap();
        let mut faults = Vec::new();
        let mut same = 0;
        for entry in fs::read_dir(corpus()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "jsonl") {
                continue;
            }
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            for r in read(&path).unwrap() {
                let mut first = machine(r.auto);
                for step in &r.steps {
                    first.exec(&step.command, Time::ZERO);
                }
                let rebuilt = first.rebuild_tc_with_traces(Time::ZERO);
                let mut second = machine(r.auto);
                for step in r.steps.iter().filter(|s| !s.command.starts_with("tc ")) {
                    second.exec(&step.command, Time::ZERO);
                }
                if first.ifindex("teql0").is_some() {
                    // A device that the first command with its qdisc has brought.
                    second.exec("modprobe sch_teql", Time::ZERO);
                }
                for words in &rebuilt.commands {
                    second.command(words, &mut penstock_host::NoFiles, Time::ZERO);
                }
                let (want, got) = (state(&mut first), state(&mut second));
                let differs = want.lines().zip(got.lines()).find(|(a, b)| a != b);
                match (want == got, listed.contains_key(&(name.clone(), r.n))) {
                    (true, false) => same += 1,
                    (false, true) => {}
                    (true, true) => faults.push(format!("{name} {} is rebuilt: take it off the list", r.n)),
                    (false, false) => {
                        faults.push(format!("{name} {}: {differs:?}\n    {:?}", r.n, rebuilt.notes))
                    }
                }
            }
        }
        if let Ok(path) = std::env::var("PENSTOCK_FAULTS") {
            fs::write(path, faults.join("\n")).unwrap();
        }
        let shown = faults.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
        assert!(faults.is_empty(), "{} are not rebuilt, {same} are\n{shown}", faults.len());
        assert!(same > 5000);
    }

    #[test]
    fn commands_of_scripts_are_answered_as_recorded() {
        let names = names_of(&scripts(), "jsonl").unwrap();
        assert!(!names.is_empty());
        for name in names {
            for r in read(&scripts().join(format!("{name}.jsonl"))).unwrap() {
                assert_eq!(compare(&r), None, "{name}");
            }
        }
    }

    #[test]
    fn every_grammar_makes_sequences() {
        let folder = root().join("crates/penstock-xtask/grammar");
        for name in all_names(&folder).unwrap() {
            let text = fs::read_to_string(folder.join(format!("{name}.txt"))).unwrap();
            let grammar = Grammar::parse(&name, &text).unwrap();
            for n in 1..=50 {
                assert!(!grammar.sequence(n).unwrap().is_empty());
            }
        }
    }
}
