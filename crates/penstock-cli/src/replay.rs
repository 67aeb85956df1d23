//! `penstock replay`.

use crate::machine::{folder, kernel};
use crate::shell::Lent;
use anyhow::{Context, Result};
use penstock_machine::Machine;
use penstock_machine::script::{self, Console, Given};
use penstock_model::{Kernel, Rate, Span};
use penstock_replay::capture::{self, Settings};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `penstock replay` takes.
#[derive(clap::Args)]
#[command(
    after_help = "SPEC.json: commands, a line and packets in one file. CAPTURE: pcap, pcapng or JSON lines (one packet each), with --through or --dev. \
                  Without --through the packets go through the machine of `penstock tc`.\n\
                  Try:  penstock replay office.pcapng --through shaper.sh --dev eth0 --rate 20mbit --pcap-out fates.pcapng"
)]
pub struct Args {
    /// The specification, or the packets ("-" reads standard input)
    #[arg(value_name = "SPEC.json|CAPTURE")]
    spec: PathBuf,
    /// Where the answer goes, as JSON [default: standard output]
    #[arg(value_name = "OUT.json")]
    out: Option<PathBuf>,
    /// A shaping script that sets the machine up
    #[arg(long, value_name = "SCRIPT")]
    through: Option<PathBuf>,
    /// The device the packets leave by, or arrive at [default: the one with a qdisc]
    #[arg(long, value_name = "D")]
    dev: Option<String>,
    /// The packets arrive at the device: show which pass its ingress filters, and an ifb they redirect to
    #[arg(long, conflicts_with_all = ["from", "rate"])]
    ingress: bool,
    /// The device they came in by [default: this machine sent them]
    #[arg(long = "in", value_name = "D")]
    from: Option<String>,
    /// Rate of the line behind the device [default: unlimited]
    #[arg(long, value_name = "R")]
    rate: Option<String>,
    /// The kernel the machine runs [default: the newest]
    #[arg(long, value_name = "V", requires = "through")]
    kernel: Option<String>,
    #[command(flatten)]
    files: Lent,
    /// Write the packets with their fates as comments
    #[arg(long, value_name = "FILE")]
    pcap_out: Option<PathBuf>,
    /// For a capture: print every packet as JSON instead of the summary
    #[arg(long)]
    json: bool,
}

/// How long the last packets of a capture are waited for.
const DRAIN: Span = Span::from_ns(60_000_000_000);

/// Does it.
pub fn main(args: &Args) -> Result<ExitCode> {
    let standard = args.spec.as_os_str() == "-";
    let bytes = if standard {
        penstock_files::read_stdin(penstock_files::LARGE).context("cannot read standard input")?
    } else {
        crate::near::there(&args.spec)?;
        penstock_files::read(&args.spec, penstock_files::LARGE)
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("cannot read {}", args.spec.display()))?
    };
    let name = if standard { "standard input".into() } else { args.spec.display().to_string() };
    anyhow::ensure!(
        args.files.is_empty() || args.through.is_some(),
        "--file lends a file to the script of --through"
    );
    let asked = args.through.is_some() || args.dev.is_some() || args.ingress || args.pcap_out.is_some();
    if asked || capture::is_capture(&bytes) {
        return through(args, &bytes, &name);
    }
    let spec = serde_json::from_slice(&bytes).with_context(|| {
        format!("{name} is not JSON (packets as JSON lines go with --through SCRIPT or --dev D)")
    })?;
    let answer = match penstock_replay::run(&spec) {
        Ok(answer) => answer,
        Err(fault) => return Ok(crate::run::refuse(&[fault])),
    };
    put(args, &answer)?;
    Ok(ExitCode::SUCCESS)
}

/// The answer, into its file or to standard output.
fn put(args: &Args, answer: &serde_json::Value) -> Result<()> {
    let mut text = serde_json::to_string_pretty(answer)?;
    text.push('\n');
    match &args.out {
        Some(path) if path.as_os_str() != "-" => {
            penstock_files::replace(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
        _ => crate::print(&text),
    }
}

/// Packets through a machine.
fn through(args: &Args, bytes: &[u8], name: &str) -> Result<ExitCode> {
    let rate = args.rate.as_deref().map(Rate::parse).transpose().map_err(anyhow::Error::msg)?;
    let traffic = match capture::read(bytes, name) {
        Ok(traffic) => traffic,
        Err(wrong) => return Ok(crate::run::refuse(&[wrong])),
    };
    let (host, now) = match &args.through {
        None => Machine::new(&folder()?, kernel()?).host_now().map_err(anyhow::Error::msg)?,
        Some(path) => {
            let script = crate::check::script_alone(path, &[], &args.files)?;
            let profile = match &args.kernel {
                Some(name) => Kernel::parse(name).map_err(anyhow::Error::msg)?,
                None => kernel()?,
            };
            let written: Vec<&Path> =
                [&args.pcap_out, &args.out].into_iter().flatten().map(PathBuf::as_path).collect();
            // To a pipe or a device no folder leads.
            if written.iter().all(|path| path.is_file() || !path.exists()) {
                crate::check::confine(&written);
            }
            if let Some(dev) = &args.dev {
                named(&script, dev, path)?;
            }
            let devices: Vec<&str> = args.dev.iter().chain(&args.from).map(String::as_str).collect();
            // What the script makes itself is not there before.
            let devices: Vec<&str> = devices.into_iter().filter(|dev| !makes(&script.text, dev)).collect();
            let (host, now, status) = script::on_a_fresh_machine(&script, profile, &devices, &mut Errors)
                .map_err(anyhow::Error::msg)?;
            if status != 0 {
                anyhow::bail!("{} ended with status {status}; nothing was replayed", path.display());
            }
            (host, now)
        }
    };
    let settings = Settings {
        dev: args.dev.clone(),
        ingress: args.ingress,
        from: args.from.clone(),
        rate,
        drain: DRAIN,
    };
    let replay = match capture::run(host, now, traffic, settings) {
        Ok(replay) => replay,
        Err(wrong) => return Ok(crate::run::refuse(&wrong)),
    };
    if let Some(path) = &args.pcap_out {
        let cannot = || format!("cannot write {}", path.display());
        let mut file = penstock_files::Replacement::begin(path).with_context(cannot)?;
        let mut buffer = std::io::BufWriter::new(&mut file);
        capture::write(&replay, &mut buffer).map_err(anyhow::Error::msg).with_context(cannot)?;
        // Dropping it would not say that the disk is full.
        buffer.flush().with_context(cannot)?;
        drop(buffer);
        file.commit().with_context(cannot)?;
    }
    if args.json || args.out.is_some() {
        put(args, &replay.json())?;
    }
    if !args.json {
        crate::show(&replay.text())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a script makes a device of that name: `ip link add`, in any form.
fn makes(text: &str, dev: &str) -> bool {
    text.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().map(|w| w.trim_matches(['"', '\''])).collect();
        let adds = words.windows(2).any(|w| matches!(w[0], "link" | "l") && matches!(w[1], "add" | "a"));
        let name = words.iter().position(|w| matches!(*w, "add" | "a")).map(|at| &words[at + 1..]);
        adds && match name {
            Some(["name" | "dev", name, ..]) => *name == dev,
            Some(rest) => {
                let link = rest.windows(2).any(|w| w[0] == "name" && w[1] == dev);
                link || rest.first() == Some(&dev) || rest.windows(3).any(|w| w[0] == "peer" && w[2] == dev)
            }
            None => false,
        }
    })
}

/// Refuses a device that the script says nothing of, where it sets up others: a typo.
fn named(script: &script::Script, dev: &str, path: &Path) -> Result<()> {
    let words = |text: &str| -> std::collections::BTreeSet<String> {
        let fits = |c: char| c.is_alphanumeric() || "_.-@".contains(c);
        text.split(|c: char| !fits(c)).map(str::to_owned).collect()
    };
    let all = words(&script.text);
    // A script that takes its device from a variable or an argument may mean any.
    if all.contains(dev) || script.text.contains("dev $") || script.text.contains("dev \"$") {
        return Ok(());
    }
    let mut told: Vec<&str> = Vec::new();
    let tokens: Vec<&str> = script.text.split_whitespace().collect();
    for pair in tokens.windows(2).filter(|pair| pair[0] == "dev") {
        let name = pair[1].trim_end_matches(';');
        // What a word in quotes names only the shell knows.
        if name.contains(['"', '\'', '\\', '$']) {
            return Ok(());
        }
        if !name.is_empty() && !told.contains(&name) {
            told.push(name);
        }
    }
    anyhow::ensure!(
        told.is_empty(),
        "--dev {dev}: {} sets up {}, and says nothing of {dev}",
        path.display(),
        told.join(", ")
    );
    Ok(())
}

/// What the script says, on standard error: standard output is the answer's.
struct Errors;

impl Console for Errors {
    fn print(&mut self, stdout: &str, stderr: &str) {
        // A reader that has gone away is not an error.
        let _ = std::io::stderr().write_all(stdout.as_bytes());
        let _ = std::io::stderr().write_all(stderr.as_bytes());
    }
    fn given(&mut self, _: Given) {}
}

#[cfg(test)]
mod tests {
    use super::makes;

    #[test]
    fn devices_that_a_script_makes_are_not_made_before() {
        for text in [
            "ip link add v0 type dummy",
            "ip link add name v0 type dummy",
            "ip link add link eth0 name v0 type vlan id 5",
        ] {
            assert!(makes(text, "v0"), "{text}");
        }
        assert!(makes("ip link add va type veth peer name v0", "v0"));
        for text in ["ip link set v0 up", "ip link add v1 type dummy", "tc qdisc add dev v0 root fq"] {
            assert!(!makes(text, "v0"), "{text}");
        }
    }
}
