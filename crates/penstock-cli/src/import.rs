//! `penstock import`: a machine from what the tools of a real one print.

use crate::machine::kernel;
use anyhow::{Context as _, Result};
use penstock_machine::Machine;
use penstock_machine::import::{Import, Text, experiment, import};
use penstock_machine::script::{self, Kept, Script};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What `penstock import` takes.
#[derive(clap::Args)]
#[command(
    after_help = "FILES hold what `ip -d addr`, `ip route`, `ip rule`, `tc qdisc show`, `tc class show dev D` (text, or JSON with -j), `tc filter show dev D`, \
                  iptables-save, `nft list ruleset` and sysctl printed; each is recognised by its text. Without FILES those programs are run here; they only show."
)]
pub struct Args {
    /// FILE, or DEV=FILE for classes and filters of a device
    #[arg(value_name = "[DEV=]FILE")]
    files: Vec<String>,
    /// Make the virtual machine whose state is in this folder
    #[arg(long, value_name = "STATE", conflicts_with = "toml")]
    state: Option<PathBuf>,
    /// Print a fragment of an experiment file: [host.NAME]
    #[arg(long, value_name = "NAME")]
    toml: Option<String>,
    /// Print commands (or the fragment) and notes as JSON
    #[arg(long)]
    json: bool,
}

/// Prints commands, or carries them out. Notes go to standard error; they are no failure.
pub fn main(args: &Args) -> Result<ExitCode> {
    let texts = if args.files.is_empty() { live()? } else { read(&args.files)? };
    if let Some(name) = &args.toml {
        let fragment = experiment(name, &texts, kernel()?).map_err(anyhow::Error::msg)?;
        match args.json {
            true => crate::json(&json!({ "host": name, "toml": fragment.text, "notes": fragment.notes }))?,
            false => {
                tell(&fragment.notes);
                crate::print(&fragment.text)?;
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let imported = import(&texts, kernel()?).map_err(anyhow::Error::msg)?;
    if !args.json {
        tell(&imported.notes);
    }
    let mut answer = json!({ "commands": imported.commands, "notes": imported.notes });
    let mut status = 0;
    match &args.state {
        Some(state) => {
            let made = make(&Machine::new(state, kernel()?), &imported)?;
            status = made.0;
            answer["state"] = state.display().to_string().into();
            answer["status"] = status.into();
            answer["stderr"] = made.1.clone().into();
            if !args.json {
                crate::complain(&made.1);
            }
        }
        None if args.json => {}
        None => crate::print(&imported.commands.iter().map(|c| format!("{c}\n")).collect::<String>())?,
    }
    if args.json {
        crate::json(&answer)?;
    }
    Ok(ExitCode::from(status))
}

fn tell(notes: &[String]) {
    for note in notes {
        crate::say(&format!("note: {note}"));
    }
}

/// The commands of files that hold what tc printed.
pub fn from(files: &[String]) -> Result<ExitCode> {
    anyhow::ensure!(!files.is_empty(), "penstock tc dump --from [DEV=]FILE…: which files?");
    main(&Args { files: files.to_vec(), state: None, toml: None, json: false })
}

fn read(files: &[String]) -> Result<Vec<Text>> {
    let one = |given: &String| {
        let (dev, file) = match given.split_once('=') {
            Some((dev, file)) => (Some(dev.to_owned()), file),
            None => (None, given.as_str()),
        };
        let path = Path::new(file);
        let text = String::from_utf8(crate::check::read(path)?);
        let text = text.map_err(|_| anyhow::anyhow!("cannot read {file}: it is not a text file"))?;
        Ok(Text { name: file.to_owned(), text, dev })
    };
    files.iter().map(one).collect()
}

/// Runs the real programs, each of which only shows.
fn live() -> Result<Vec<Text>> {
    let run = |line: &str, dev: Option<&str>| {
        let mut words = line.split(' ').chain(dev);
        let program = words.next().unwrap_or_default();
        let done = Command::new(program).args(words).output();
        let text =
            done.ok().filter(|o| o.status.success()).map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
        if text.is_none() {
            crate::say(&format!("note: {line}: not to be had here"));
        }
        text.map(|text| Text { name: line.to_owned(), text, dev: dev.map(str::to_owned) })
    };
    let lines = [
        "ip -j -d addr show",
        "ip -j route show",
        "ip -6 -j route show",
        "ip -j rule show",
        "tc -j qdisc show",
    ];
    let mut texts: Vec<Text> = lines.iter().filter_map(|line| run(line, None)).collect();
    let first = texts.first().context("ip cannot be run here; give files")?;
    let links: Vec<serde_json::Value> = serde_json::from_str(&first.text).context("ip -j gave no JSON")?;
    for name in links.iter().filter_map(|l| l.get("ifname")?.as_str()) {
        texts.extend(run("tc -j class show dev", Some(name)));
        texts.extend(run("tc filter show dev", Some(name)));
    }
    let settings =
        "sysctl net.ipv4.ip_forward net.ipv4.tcp_congestion_control net.ipv4.tcp_ecn net.ipv4.ip_default_ttl";
    texts.extend(run(settings, None));
    texts.extend(run("iptables-save", None));
    texts.extend(run("ip6tables-save", None));
    texts.extend(run("nft list ruleset", None));
    Ok(texts)
}

/// The exit status of the commands, and what they said on standard error.
fn make(machine: &Machine, imported: &Import) -> Result<(u8, String)> {
    let script =
        Script { text: imported.commands.join("\n"), name: "import".to_owned(), ..Script::default() };
    let mut kept = Kept::default();
    let status = script::run(machine, &script, &mut kept).map_err(anyhow::Error::msg)?;
    Ok((status as u8, kept.stderr))
}
