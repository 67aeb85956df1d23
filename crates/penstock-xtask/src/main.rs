//! `cargo xtask`: the project's own chores. `ci` is the whole gate; the other commands are its parts and the
//! recorders and benchmarks that no test needs.

mod bench;
mod ci;
mod circles;
mod compare;
mod conformance;
mod count;
mod deny;
mod difftc;
mod dist;
mod families;
mod grounds;
mod growth;
mod kinds;
mod lines;
mod nightly;
mod outside;
mod overload;
mod package;
mod pages;
mod python;
mod record;
mod speed;
mod statics;
mod tdc;
mod tidy;
mod valgrind;
mod vectors;
mod web;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own chores")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure speed
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Everything a change must pass: tidy, formatting, clippy, tests, docs, wasm, fuzzing
    Ci(ci::Args),
    /// Write docs/conformance.md: what is recorded, what agrees, what differs and why
    Conformance(conformance::Args),
    /// Hold random command sequences against the real tc on the real kernel
    Difftc(difftc::Args),
    /// Build what is shipped: the program, laid out by what runs of it do most; a Debian package, a wheel, static programs, an image's recipe, an inventory, checksums
    Dist(dist::Args),
    /// Build the Python module, install it into a fresh environment, run its tests
    Python,
    /// Build the page for the browser into web/dist, which any static host serves
    Web(web::Args),
    /// Run the families of experiments on the simulator and in the virtual machine over seeds, and compare what they measured
    Families(families::Args),
    /// Record what real bash and the real tools make of setups and scripts, in the virtual machine
    Grounds(grounds::Args),
    /// What the virtual machine's first process starts
    #[command(hide = true)]
    Inside(grounds::InsideArgs),
    /// Write the skeleton of a new kind of qdisc, registered in all its places
    NewKind(kinds::Args),
    /// Look for faults with seeds nobody has tried, for a while: wild inputs, libFuzzer targets, new cases against the real kernel
    Nightly(nightly::Args),
    /// Run wild experiments, scripts, specifications, captures and records; keep what hangs, panics or differs
    Overload(overload::Args),
    /// Try the pages that penstock writes in a real Chromium
    Pages(pages::Args),
    /// Record vectors from the real kernel in exact virtual time
    Record(record::Args),
    /// Replay recorded vectors and print where the answers differ
    Vectors(vectors::Args),
    /// Run the kernel's tc test cases against our tc, where the suite is at hand
    Tdc(tdc::Args),
    /// Check the rules that the compiler does not: crate edges, kinds in order, documentation in place
    Tidy,
}

fn main() -> Result<()> {
    if let Some(job) = penstock_kernel::boot::is_init() {
        penstock_kernel::boot::init(&job);
    }
    match Args::parse().command {
        Command::Bench(what) => bench::run(&what),
        Command::Ci(args) => ci::run(&args),
        Command::Conformance(args) => conformance::run(&args),
        Command::Difftc(args) => difftc::run(&args),
        Command::Dist(args) => dist::run(&args),
        Command::Python => match python::kit().and_then(python::Kit::with_packages) {
            Ok(kit) => {
                kit.run()?.iter().for_each(|left_out| println!("skipped: {left_out}"));
                Ok(())
            }
            Err(why) => anyhow::bail!("the Python module was not tried: {why}"),
        },
        Command::Web(args) => web::run(&args),
        Command::Families(args) => families::run(&args),
        Command::Grounds(args) => grounds::run(&args),
        Command::Inside(args) => grounds::inside(&args),
        Command::NewKind(args) => kinds::new(&args),
        Command::Nightly(args) => nightly::run(&args),
        Command::Overload(args) => overload::run(&args),
        Command::Pages(args) => pages::run(&args),
        Command::Record(args) => record::run(&args),
        Command::Vectors(args) => vectors::run(&args),
        Command::Tdc(args) => tdc::run(&args),
        Command::Tidy => tidy::run(),
    }
}
