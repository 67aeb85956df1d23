//! The `penstock` command: a thin shell over `lab`.
//!
//! Exit status: 0 all well, 1 an expectation or a claim was not met, 2 an error; the tools (`tc`, `ip`, …) have their own.

mod machine;
mod replay;
mod report;
mod run;
mod study;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// A laboratory for Linux traffic control: machines, links, the commands you would type, and what comes of them.
#[derive(Parser)]
#[command(
    name = "penstock",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "Try:  penstock run examples/home-line.toml\n      \
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
    /// tc on a virtual machine that keeps its state between calls
    #[command(disable_help_flag = true)]
    Tc(machine::Args),
    /// ip on the same machine
    #[command(disable_help_flag = true)]
    Ip(machine::Args),
    /// iptables on the same machine
    #[command(disable_help_flag = true)]
    Iptables(machine::Args),
    /// sysctl on the same machine
    #[command(disable_help_flag = true)]
    Sysctl(machine::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.verb {
        Verb::Run(args) => run::main(&args),
        Verb::Study(args) => study::main(&args),
        Verb::Replay(args) => replay::main(&args),
        Verb::Report(args) => report::main(&args),
        Verb::Tc(args) => machine::main("tc", &args),
        Verb::Ip(args) => machine::main("ip", &args),
        Verb::Iptables(args) => machine::main("iptables", &args),
        Verb::Sysctl(args) => machine::main("sysctl", &args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("penstock: {error:#}");
        ExitCode::from(2)
    })
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

    #[test]
    fn the_tools_take_their_words_as_they_stand() {
        let cli = Cli::try_parse_from(["penstock", "tc", "-s", "-d", "qdisc", "show", "--help"]).unwrap();
        let Verb::Tc(args) = cli.verb else { panic!("tc is tc") };
        assert_eq!(args.words, ["-s", "-d", "qdisc", "show", "--help"]);
    }
}
