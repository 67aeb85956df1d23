//! The `penstock` command: a thin shell over `lab`.
//!
//! Exit status: 0 all well, 1 an expectation or a claim was not met, 2 an error; the tools (`tc`, `ip`, …) have their own.

mod import;
mod machine;
mod replay;
mod report;
mod run;
mod shell;
mod study;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// A laboratory for Linux traffic control: machines, links, the commands you would type, and what comes of them.
#[derive(Parser)]
#[command(
    name = "penstock",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "Tools on a virtual machine that keeps its state between calls: penstock tc …, and so ip iptables \
                  sysctl ethtool\nmodprobe nft bridge ifconfig route arp, iptables-save and its kin. A link to this program by a tool's \
                  name is that tool.\n\n\
                  Try:  penstock run examples/home-line.toml\n      \
                        penstock tc qdisc add dev eth0 root tbf rate 1mbit burst 5k latency 50ms\n      \
                        penstock tc -s qdisc show"
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run an experiment, print its summary, write its record and its report
    Run(run::Args),
    /// List, run and judge published experiments
    Study(study::Args),
    /// Send exact packets through a configured device: departures, drops, statistics
    Replay(replay::Args),
    /// Write the report of runs again, or compare several
    Report(report::Args),
    /// Make a machine from what ip, tc and iptables-save print of a real one
    Import(import::Args),
    /// A prompt at the virtual machine, or a script run on it
    Shell(shell::Args),
}

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let done = match machine::called(&args) {
        Some(words) if machine::asks_for_dump(&args, &words) => machine::dump(&words[2..]),
        Some(words) => machine::main(&words),
        None => verb(Cli::parse_from(args)),
    };
    done.unwrap_or_else(|error| {
        eprintln!("penstock: {error:#}");
        ExitCode::from(2)
    })
}

fn verb(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.verb {
        Verb::Run(args) => run::main(&args),
        Verb::Study(args) => study::main(&args),
        Verb::Replay(args) => replay::main(&args),
        Verb::Report(args) => report::main(&args),
        Verb::Import(args) => import::main(&args),
        Verb::Shell(args) => shell::main(&args),
    }
}

/// Text for standard output. A reader that has gone away (`| head`) is no error.
fn print(text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(e.into()),
        _ => Ok(()),
    }
}

/// Where a run goes when nobody says: `runs/` and the experiment's name.
fn default_out(file: &std::path::Path) -> PathBuf {
    PathBuf::from("runs").join(file.file_stem().unwrap_or(std::ffi::OsStr::new("run")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
