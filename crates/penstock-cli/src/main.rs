//! The `penstock` command: a thin shell over `lab`.
//!
//! Exit status: 0 all well, 1 an expectation or a claim was not met, 2 an error; the tools (`tc`, `ip`, …) have their own.

mod check;
mod colour;
mod compare;
mod examples;
mod explain;
mod import;
mod junit;
mod kernel;
mod machine;
mod manual;
mod many;
mod near;
mod packetdrill;
mod queues;
mod replay;
mod report;
mod run;
mod serve;
mod shell;
mod study;
mod sweep;
mod traffic;
mod tune;

use clap::{CommandFactory as _, Parser, Subcommand};
use penstock_measure::text::visible;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// A laboratory for Linux traffic control: machines, links, the commands you would type, and their effect.
#[derive(Parser)]
#[command(
    name = "penstock",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "Tools on a virtual machine that keeps its state between calls: penstock tc …, also ip iptables sysctl \
                  ethtool\nmodprobe nft bridge ifconfig route arp ping iptables-save and its relatives. A link to this program with a tool's \
                  name\nacts as that tool.\n\n\
                  Try:  penstock run example:home-line\n      \
                        penstock new bufferbloat\n      \
                        penstock tc qdisc add dev eth0 root tbf rate 1mbit burst 5k latency 50ms\n      \
                        penstock tc -s qdisc show"
)]
struct Cli {
    /// When there are colours: on a terminal unless NO_COLOR is set (auto), always, never
    #[arg(
        long,
        value_name = "WHEN",
        global = true,
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    color: colour::Color,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run an experiment, print its summary, write its record and its report
    Run(run::Args),
    /// Run an experiment many times with other values and seeds; sum up, draw, compare
    Sweep(sweep::Args),
    /// Search the best values of parameters: goals that must be met, one figure to have most or least of
    Tune(tune::Args),
    /// Write an experiment to begin with, from a template
    New(examples::NewArgs),
    /// List the examples that are part of the program, or print one
    Examples(examples::Args),
    /// List, run and judge published experiments
    Study(study::Args),
    /// Send exact packets through a configured device: departures, drops, statistics
    Replay(replay::Args),
    /// Write the report of runs again, or compare several
    Report(report::Args),
    /// Compare runs: which figures differ by more than repeated runs do
    Compare(compare::Args),
    /// Check a shaping script: refused commands and likely mistakes, each with a suggested fix
    Check(check::Args),
    /// Show where a packet goes and why, and what its class is guaranteed; or the classes of all packets
    Explain(explain::Args),
    /// Compare two scripts: which traffic goes to another class, which rates and waits change
    Diff(explain::DiffArgs),
    /// Rebuild a real machine from what ip, tc and iptables-save print on it
    Import(import::Args),
    /// Open a prompt on the virtual machine, or run a script on it
    Shell(shell::Args),
    /// Run packetdrill's scripts on a TCP endpoint, in virtual time
    Packetdrill(packetdrill::Args),
    /// Send a flow from a real socket: UDP paced to the microsecond, or TCP
    Send(traffic::SendArgs),
    /// Receive and measure a flow from penstock send
    Recv(traffic::RecvArgs),
    /// Send every datagram back, to measure round trips
    Echo(traffic::EchoArgs),
    /// Build the user-mode kernel for run --on virtual, or show where it is
    Kernel(kernel::Args),
    /// Serve the page, runs made by this computer and a folder of runs, to this computer's browser
    Serve(serve::Args),
    /// Serve an editor: the language server for scripts of tc and experiment files, on standard input and output
    Lsp,
    /// Print the JSON schema of experiment files, for editors and other programs
    Schema,
    /// Print completions for a shell
    Completions(manual::CompletionsArgs),
    /// Print a manual page, or write all of them
    Man(manual::ManArgs),
    /// A delay line between devices of one namespace
    #[command(hide = true)]
    Wire(traffic::WireArgs),
    /// Run the job of a virtual machine from within
    #[command(hide = true)]
    Inside(kernel::InsideArgs),
}

fn main() -> ExitCode {
    if let Some(job) = penstock_kernel::boot::is_init() {
        penstock_kernel::boot::init(&job);
    }
    let args: Vec<OsString> = std::env::args_os().collect();
    let done = match machine::called(&args) {
        Some(words) if machine::asks_for_dump(&args, &words) => machine::dump(&words[2..]),
        Some(words) => machine::main(&words),
        None => verb(Cli::try_parse_from(&args).unwrap_or_else(|error| near::line(error, &args).exit())),
    };
    done.unwrap_or_else(|error| {
        say(&format!("penstock: {error:#}"));
        ExitCode::from(2)
    })
}

fn verb(cli: Cli) -> anyhow::Result<ExitCode> {
    colour::choose(cli.color);
    match cli.verb {
        Verb::Run(args) => run::main(&args),
        Verb::Sweep(args) => sweep::main(&args),
        Verb::Tune(args) => tune::main(&args),
        Verb::New(args) => examples::new(&args),
        Verb::Examples(args) => examples::main(&args),
        Verb::Study(args) => study::main(&args),
        Verb::Replay(args) => replay::main(&args),
        Verb::Report(args) => report::main(&args),
        Verb::Compare(args) => compare::main(&args),
        Verb::Check(args) => check::main(&args),
        Verb::Explain(args) => explain::main(&args),
        Verb::Diff(args) => explain::diff(&args),
        Verb::Import(args) => import::main(&args),
        Verb::Shell(args) => shell::main(&args),
        Verb::Packetdrill(args) => packetdrill::main(&args),
        Verb::Send(args) => traffic::send(&args),
        Verb::Recv(args) => traffic::recv(&args),
        Verb::Echo(args) => traffic::echo(&args),
        Verb::Kernel(args) => kernel::main(&args),
        Verb::Serve(args) => serve::main(&args),
        Verb::Lsp => match penstock_lsp::stdio() {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(why) => anyhow::bail!("the editor: {why}"),
        },
        Verb::Schema => {
            let schema = serde_json::to_string_pretty(&penstock_lab::experiment::schema())?;
            print(&format!("{schema}\n"))?;
            Ok(ExitCode::SUCCESS)
        }
        Verb::Completions(args) => manual::completions(&args, Cli::command()),
        Verb::Man(args) => manual::man(&args, Cli::command()),
        Verb::Wire(args) => traffic::wire(&args),
        Verb::Inside(args) => kernel::inside(&args),
    }
}

/// Bytes for standard output: what another program reads, or what a script said. A reader that has gone away (`| head`) is not an error.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(e).context("cannot write to standard output"))
        }
        _ => Ok(()),
    }
}

/// A value as JSON, for another program.
fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// The same for people: what comes from a file cannot command the terminal.
fn show(text: &str) -> anyhow::Result<()> {
    let text = visible(text);
    if colour::wanted(false) { print(&colour::paint(&text)) } else { print(&text) }
}

/// A line for people on standard error. Where nobody can be told, nobody is, and what was to be done is done.
fn say(text: &str) {
    let text = format!("{}\n", visible(text));
    complain(&if colour::wanted(true) { colour::paint(&text) } else { text });
}

/// Bytes for standard error, as a tool or a script said them.
fn complain(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Where a run goes when nobody says: `runs/` and the experiment's name.
fn default_out(file: &std::path::Path) -> PathBuf {
    PathBuf::from("runs").join(file.file_stem().unwrap_or(std::ffi::OsStr::new("run")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
