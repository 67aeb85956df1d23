//! `penstock explain` and `penstock diff`: where packets go, and what changes between two scripts.

use crate::check::{script_alone, settings};
use crate::shell::Lent;
use anyhow::{Context as _, Result};
use penstock_check::explain::{self, Probe};
use penstock_check::{Facts, facts};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `penstock explain` takes.
#[derive(clap::Args)]
#[command(
    after_help = "Write a packet as: tcp 10.3.34.11:40000 > 10.3.31.88:5001 tos 0x10 len 1500 in eth1   (udp, icmp, a number; mark N, connmark N, \
                        state established, vlan ID; without `in` it is sent by this machine)"
)]
pub struct Args {
    /// The device that packets leave by
    #[arg(long, value_name = "D")]
    dev: String,
    /// The packet
    #[arg(long, value_name = "PACKET", required_unless_present_any = ["all", "pcap"])]
    packet: Option<String>,
    /// Each packet of a capture (pcap, pcapng): the class it goes to, and how many go to each
    #[arg(long, value_name = "FILE", conflicts_with_all = ["packet", "all"])]
    pcap: Option<PathBuf>,
    /// The device the capture's packets came in by [default: this machine sent them]
    #[arg(long = "in", value_name = "D", requires = "pcap")]
    input: Option<String>,
    /// All packets: which header values reach each class, what is left, which filters never match
    #[arg(long, conflicts_with = "packet")]
    all: bool,
    /// Rate of the link, e.g. 20mbit [default: that of the classes]
    #[arg(long, value_name = "LINK")]
    rate: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The kernel it runs on [default: the newest]
    #[arg(long, value_name = "V")]
    kernel: Option<String>,
    #[command(flatten)]
    files: Lent,
    /// The script
    script: PathBuf,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Explains one packet, or all.
pub fn main(args: &Args) -> Result<ExitCode> {
    let settings = settings(Some(args.dev.clone()), args.rate.as_deref(), args.kernel.as_deref())?;
    let script = script_alone(&args.script, &args.args, &args.files)?;
    let pcap = args.pcap.as_deref().map(|path| {
        penstock_files::read(path, penstock_files::LARGE)
            .map_err(anyhow::Error::msg)
            .with_context(|| format!("cannot read {}", path.display()))
    });
    let pcap = pcap.transpose()?;
    crate::check::confine(&[]);
    let facts = facts(&script, &settings);
    if let (Some(path), Some(bytes)) = (&args.pcap, pcap) {
        return capture(args, path, &bytes, &facts);
    }
    let text = match &args.packet {
        Some(packet) => {
            let probe = Probe::parse(packet).map_err(anyhow::Error::msg)?;
            let explained = explain::explain(&facts, &args.dev, &probe).map_err(anyhow::Error::msg)?;
            if args.json { format!("{:#}\n", explained.json()) } else { explained.text() }
        }
        None => {
            let parts = explain::partition(&facts, &args.dev).map_err(anyhow::Error::msg)?;
            if args.json { format!("{:#}\n", parts.json()) } else { parts.text() }
        }
    };
    if args.json { crate::print(&text) } else { crate::show(&text) }?;
    Ok(whole(&facts, ExitCode::SUCCESS))
}

/// 2 for a script that was not run to its end, and why: what is said holds for the commands before that.
fn whole(facts: &Facts, status: ExitCode) -> ExitCode {
    match &facts.stopped {
        Some(why) => {
            crate::say(&format!(
                "penstock: {}: {why}: the commands behind this place are not looked at",
                facts.name
            ));
            ExitCode::from(2)
        }
        None => status,
    }
}

/// Explains the packets of a capture.
fn capture(args: &Args, path: &Path, bytes: &[u8], facts: &Facts) -> Result<ExitCode> {
    let packets = explain::capture::packets(bytes).map_err(|e| anyhow::anyhow!("{}: {e}", path.display()))?;
    let explainer = explain::Explainer::new(facts, &args.dev).map_err(anyhow::Error::msg)?;
    let (mut text, mut all) = (String::new(), Vec::new());
    let mut classes: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for mut packet in packets {
        packet.input.clone_from(&args.input);
        let said = explainer.explain(&packet);
        let place = said.place();
        let count = classes.entry(place.clone()).or_default();
        *count = (count.0 + 1, count.1 + u64::from(packet.len));
        if args.json {
            let mut one = said.json();
            one["packet"] = packet.text().into();
            all.push(one);
        } else {
            text += &format!("{:<14} {}\n", place, packet.text());
        }
    }
    if args.json {
        let counts = |c: &(u64, u64)| serde_json::json!({ "packets": c.0, "bytes": c.1 });
        let classes: BTreeMap<&String, _> = classes.iter().map(|(n, c)| (n, counts(c))).collect();
        text = format!("{:#}\n", serde_json::json!({ "packets": all, "classes": classes }));
    } else {
        text.push('\n');
        for (name, (packets, bytes)) in &classes {
            let s = if *packets == 1 { "" } else { "s" };
            text += &format!("{name:<14} {packets} packet{s}, {bytes} bytes\n");
        }
    }
    if args.json { crate::print(&text) } else { crate::show(&text) }?;
    Ok(whole(facts, ExitCode::SUCCESS))
}

/// What `penstock diff` takes.
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 without differences, 1 with some, 2 on errors.")]
pub struct DiffArgs {
    /// The device
    #[arg(long, value_name = "D")]
    dev: String,
    /// The kernel both run on [default: the newest]
    #[arg(long, value_name = "V")]
    kernel: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The old script
    before: PathBuf,
    /// The new script
    after: PathBuf,
}

/// Compares two scripts.
pub fn diff(args: &DiffArgs) -> Result<ExitCode> {
    let settings = settings(Some(args.dev.clone()), None, args.kernel.as_deref())?;
    let before = script_alone(&args.before, &[], &Lent::default())?;
    let after = script_alone(&args.after, &[], &Lent::default())?;
    crate::check::confine(&[]);
    let (before, after) = (facts(&before, &settings), facts(&after, &settings));
    let said = explain::diff(&before, &after, &args.dev).map_err(anyhow::Error::msg)?;
    if args.json {
        let (old, new) = (args.before.display().to_string(), args.after.display().to_string());
        let all: Vec<serde_json::Value> = said.iter().map(|line| difference(line)).collect();
        let json = serde_json::json!({ "dev": args.dev, "before": old, "after": new, "differences": all });
        crate::print(&format!("{json:#}\n"))?;
    } else {
        crate::show(&said.iter().map(|l| format!("{l}\n")).collect::<String>())?;
    }
    let mut status = if said.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) };
    // Nothing differs only where everything was compared.
    for facts in [&before, &after].into_iter().filter(|f| f.partial && said.is_empty()) {
        crate::say(&format!(
            "penstock: {}: commands whose words are not known are not compared: perhaps something differs",
            facts.name
        ));
        status = ExitCode::from(2);
    }
    Ok(whole(&before, whole(&after, status)))
}

/// A difference in parts: what it is about, what that was and what it has become, and a packet that shows it.
fn difference(line: &str) -> serde_json::Value {
    let (rest, example) = match line.split_once("   (") {
        Some((rest, example)) => (rest, example.strip_suffix(')')),
        None => (line, None),
    };
    let mut json = serde_json::json!({ "text": line });
    if let Some((left, after)) = rest.rsplit_once(" -> ")
        && let Some((what, before)) = left.rsplit_once(": ")
    {
        (json["what"], json["before"], json["after"]) = (what.into(), before.into(), after.into());
    }
    match example {
        // What could not be decided has none.
        Some("perhaps") => json["perhaps"] = true.into(),
        Some(example) => json["example"] = example.into(),
        None => {}
    }
    json
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_difference_has_its_parts() {
        let json = difference("ip, dst 10.1.0.0/16: 1:10 -> 1:20   (tcp 192.0.2.1:40000 > 10.1.0.0:40001)");
        assert_eq!(
            (&json["what"], &json["before"], &json["after"]),
            (&"ip, dst 10.1.0.0/16".into(), &"1:10".into(), &"1:20".into())
        );
        assert_eq!(json["example"], "tcp 192.0.2.1:40000 > 10.1.0.0:40001");
        let json = difference("class 1:10: rate 6mbit ceil 6mbit -> rate 7mbit ceil 7mbit");
        assert_eq!((&json["what"], &json["after"]), (&"class 1:10".into(), &"rate 7mbit ceil 7mbit".into()));
        assert_eq!(difference("class 1:30: new")["text"], "class 1:30: new");
    }
}
