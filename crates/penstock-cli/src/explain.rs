//! `penstock explain` and `penstock diff`: where packets go, and what changes between two scripts.

use crate::check::{script, settings};
use anyhow::Result;
use penstock_lab::check::explain::{self, Probe};
use penstock_lab::check::facts;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `penstock explain` takes.
#[derive(clap::Args)]
#[command(
    after_help = "A packet is written: tcp 10.3.34.11:40000 > 10.3.31.88:5001 tos 0x10 len 1500 in eth1   (udp, icmp, a number; mark N; without `in` it \
                        is this machine's own)"
)]
pub struct Args {
    /// The device it leaves by
    #[arg(long, value_name = "D")]
    dev: String,
    /// The packet
    #[arg(long, value_name = "PACKET", required_unless_present = "all")]
    packet: Option<String>,
    /// All packets: which filter takes which, and what is left
    #[arg(long, conflicts_with = "packet")]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The kernel it runs on [default: the newest]
    #[arg(long, value_name = "V")]
    kernel: Option<String>,
    /// A file the script reads: PATH, or PATH=FILE
    #[arg(long, value_name = "PATH[=FILE]")]
    file: Vec<String>,
    /// The script
    script: PathBuf,
    /// Its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Explains one packet, or all.
pub fn main(args: &Args) -> Result<ExitCode> {
    let settings = settings(Some(args.dev.clone()), None, args.kernel.as_deref())?;
    let facts = facts(&script(&args.script, &args.args, &args.file)?, &settings);
    let text = match &args.packet {
        Some(packet) => {
            let probe = Probe::parse(packet).map_err(anyhow::Error::msg)?;
            let explained = explain::explain(&facts, &args.dev, &probe).map_err(anyhow::Error::msg)?;
            if args.json { format!("{:#}\n", explained.json()) } else { explained.text() }
        }
        None => {
            let parts = explain::partition(&facts, &args.dev).map_err(anyhow::Error::msg)?;
            match args.json {
                true => format!(
                    "{:#}\n",
                    serde_json::json!({ "parts": parts.iter().map(explain::Part::json).collect::<Vec<_>>() })
                ),
                false => parts.iter().map(explain::Part::text).collect(),
            }
        }
    };
    crate::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// What `penstock diff` takes.
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 nothing differs, 1 something does, 2 an error.")]
pub struct DiffArgs {
    /// The device
    #[arg(long, value_name = "D")]
    dev: String,
    /// The kernel both run on [default: the newest]
    #[arg(long, value_name = "V")]
    kernel: Option<String>,
    /// The script as it was
    before: PathBuf,
    /// The script as it is to be
    after: PathBuf,
}

/// Compares two scripts.
pub fn diff(args: &DiffArgs) -> Result<ExitCode> {
    let settings = settings(Some(args.dev.clone()), None, args.kernel.as_deref())?;
    let of = |path: &PathBuf| anyhow::Ok(facts(&script(path, &[], &[])?, &settings));
    let said = explain::diff(&of(&args.before)?, &of(&args.after)?, &args.dev).map_err(anyhow::Error::msg)?;
    crate::print(&said.iter().map(|l| format!("{l}\n")).collect::<String>())?;
    Ok(if said.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
