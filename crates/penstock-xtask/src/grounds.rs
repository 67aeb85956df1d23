//! `cargo xtask grounds`: setup lines and whole scripts, run by real bash and the real tools in the virtual machine.
//!
//! The cases stand in `vectors/grounds`: `lines.txt` (a line `== NAME`, then a script of a line or a few), a file `NAME.sh` for each whole
//! script, and `beside/`, the files that every script finds in its folder. What came out of each (exit status, both outputs, the state it
//! left) goes to `recorded.jsonl`, which the tests of `penstock-shell` hold ours against. The machine's clock is exact, and nothing of this
//! computer reaches it but its programs: the same cases give the same bytes again.

use anyhow::{Context, Result, bail};
use penstock_kernel::boot;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to record.
#[derive(clap::Args)]
pub struct Args {
    /// Cases by name, instead of all
    names: Vec<String>,
    /// Cases in one boot
    #[arg(long, default_value_t = 100)]
    batch: usize,
    /// Print what came out instead of keeping it
    #[arg(long)]
    print: bool,
}

/// The first process of the virtual machine starts this program with the job's folder.
#[derive(clap::Args)]
pub struct InsideArgs {
    job: PathBuf,
}

const INSIDE: &str = include_str!("grounds/inside.sh");

/// The state before any script.
const NOTHING: &str = "nothing";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/grounds")
}

/// Name and text of each case, by name.
fn cases() -> Result<BTreeMap<String, String>> {
    let mut cases = BTreeMap::from([(NOTHING.to_owned(), String::new())]);
    let mut add = |name: &str, text: String| match cases.insert(name.to_owned(), text) {
        None => Ok(()),
        Some(_) => bail!("two cases are called {name}"),
    };
    let lines = fs::read_to_string(folder().join("lines.txt"))?;
    for case in format!("\n{lines}").split("\n== ").skip(1) {
        let (name, text) = case.split_once('\n').with_context(|| format!("{case}: no lines"))?;
        add(name, format!("{}\n", text.trim_end_matches('\n')))?;
    }
    for entry in fs::read_dir(folder())? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "sh") {
            let name = path.file_name().and_then(|n| n.to_str()).context("a name")?;
            add(name, fs::read_to_string(&path)?)?;
        }
    }
    Ok(cases)
}

/// Records.
pub fn run(args: &Args) -> Result<()> {
    let all = cases()?;
    let unknown: Vec<&str> =
        args.names.iter().filter(|n| !all.contains_key(*n)).map(String::as_str).collect();
    if !unknown.is_empty() {
        bail!("no cases: {}", unknown.join(" "));
    }
    let path = folder().join("recorded.jsonl");
    let mut recorded = if args.names.is_empty() { BTreeMap::new() } else { read(&path)? };
    recorded.retain(|name, _| all.contains_key(name));
    let wanted: Vec<(&String, &String)> =
        all.iter().filter(|(name, _)| args.names.is_empty() || args.names.contains(name)).collect();
    for batch in wanted.chunks(args.batch) {
        for (name, answer) in boot_with(batch)? {
            if args.print {
                println!("{name}\n{answer:#}");
            }
            recorded.insert(name, answer);
        }
        eprintln!("grounds: {} recorded", recorded.len());
    }
    if args.print {
        return Ok(());
    }
    let base = recorded.get(NOTHING).map(|n| n["state"].clone()).unwrap_or_default();
    let mut text = String::new();
    for (name, answer) in &mut recorded {
        // What no script has changed stands but once.
        if let (true, Some(state)) = (name != NOTHING, answer["state"].as_object_mut()) {
            for shown in base.as_object().into_iter().flat_map(Map::keys) {
                state.entry(shown).or_insert(Value::Null);
            }
            state.retain(|shown, text| base.get(shown) != Some(text));
        }
        text.push_str(&answer.to_string());
        text.push('\n');
    }
    fs::write(&path, text).with_context(|| path.display().to_string())
}

fn read(path: &Path) -> Result<BTreeMap<String, Value>> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| -> Result<(String, Value)> {
        let value: Value = serde_json::from_str(line)?;
        Ok((value["name"].as_str().context("a name")?.to_owned(), value))
    };
    text.lines().map(line).collect()
}

/// Runs cases in one virtual machine.
fn boot_with(batch: &[(&String, &String)]) -> Result<Vec<(String, Value)>> {
    let job = boot::Job::new().map_err(anyhow::Error::msg)?;
    let at = |path: &str| job.path().join(path);
    fs::create_dir_all(at("beside"))?;
    for entry in fs::read_dir(folder().join("beside"))? {
        let path = entry?.path();
        fs::copy(&path, at("beside").join(path.file_name().context("a name")?))?;
    }
    for (name, text) in batch {
        fs::create_dir_all(at("cases").join(name))?;
        fs::write(at("cases").join(name).join("script"), text)?;
    }
    fs::write(at("inside.sh"), INSIDE)?;
    boot::boot(&job, &std::env::current_exe()?, 1).map_err(anyhow::Error::msg)?;
    batch
        .iter()
        .map(|(name, text)| Ok(((*name).clone(), answer(&at("cases").join(name), name, text)?)))
        .collect()
}

/// What a case has left in its folder.
fn answer(folder: &Path, name: &str, text: &str) -> Result<Value> {
    let read = |file: &str| match fs::read(folder.join(file)) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) => {
            bail!("{name}: {file}: {e}: {}", fs::read_to_string(folder.join("trouble")).unwrap_or_default())
        }
    };
    let trouble = read("trouble")?;
    if !trouble.is_empty() {
        bail!("{name}: {trouble}");
    }
    let mut state = Map::new();
    for part in format!("\n{}", read("state")?).split("\n## ").skip(1) {
        let (command, shown) = part.split_once('\n').unwrap_or((part, ""));
        state.insert(command.to_owned(), json!(shown.trim_end_matches('\n')));
    }
    let before = settings(&read("before")?);
    let changed: Vec<String> = settings(&read("after")?)
        .into_iter()
        .filter(|(key, value)| before.get(key).is_some_and(|b| b != value))
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    state.insert("sysctl -a".to_owned(), json!(changed.join("\n")));
    let number = |file: &str, radix: u32| -> Result<i64> {
        Ok(i64::from_str_radix(read(file)?.trim().trim_end_matches(':'), radix)?)
    };
    Ok(json!({
        "name": name,
        "text": text,
        "auto": number("auto", 16)?,
        "exit": number("exit", 10)?,
        "stdout": read("stdout")?,
        "stderr": read("stderr")?,
        "state": state,
    }))
}

fn settings(text: &str) -> BTreeMap<String, String> {
    let pair = |line: &str| line.split_once(" = ").map(|(key, value)| (key.to_owned(), value.to_owned()));
    text.lines().filter_map(pair).collect()
}

/// Runs the cases inside the virtual machine.
pub fn inside(args: &InsideArgs) -> Result<()> {
    let script = args.job.join("inside.sh");
    Command::new("bash")
        .arg(&script)
        .arg(&args.job)
        .status()
        .with_context(|| script.display().to_string())?;
    Ok(())
}
