//! `cargo xtask nightly`: everything that looks for faults with seeds nobody has tried, for as long as one has time.
//!
//! Wild inputs run whole (`overload`, all kinds) for the larger part of the time; property tests run once; the libFuzzer targets, where `cargo xtask ci` has built
//! them; new random cases against the real kernel, where its runner and probe are at hand. Each says what it has done and what it has
//! found, with the seed that gives it again.

use crate::record::nightly as vectors;
use crate::{ci, overload, tidy};
use anyhow::{Result, bail};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long, from which seed on, and where what is found goes.
#[derive(clap::Args)]
pub struct Args {
    /// Kinds of vectors for the real kernel; all without one
    kinds: Vec<String>,
    /// How long in all
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// The first seed; without it one that the date gives
    #[arg(long)]
    first: Option<u64>,
    /// Processes of wild inputs at a time
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Program that runs a command inside the kernel: `RUNNER --engine sim --seed N --share DIR -- COMMAND`
    #[arg(long, env = "PENSTOCK_RUNNER")]
    runner: Option<PathBuf>,
    /// The probe: `python3 PROBE SPEC.json OUT.json`
    #[arg(long, env = "PENSTOCK_PROBE")]
    probe: Option<PathBuf>,
    /// Folder to work in
    #[arg(long, default_value = "target/nightly")]
    scratch: PathBuf,
    /// Folder for what is found
    #[arg(long, default_value = "target/found")]
    keep: PathBuf,
}

/// Seeds of a day: more than a day can try.
const OF_A_DAY: u64 = 100_000_000;

/// The time of each part, in its order: wild inputs, libFuzzer, the kernel.
fn parts(all: Duration, fuzz: bool, kernel: bool) -> [Duration; 3] {
    let fifth = all / 5;
    let part = |there: bool| if there { fifth } else { Duration::ZERO };
    [all - part(fuzz) - part(kernel), part(fuzz), part(kernel)]
}

/// Runs until the time is over.
pub fn run(args: &Args) -> Result<()> {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() / 86_400);
    let first = args.first.unwrap_or(days * OF_A_DAY);
    let targets = ci::fuzz_targets()?;
    let kernel = args.runner.as_ref().zip(args.probe.as_ref());
    let all = Duration::from_secs(args.minutes * 60);
    let [wild, fuzz, vectors] = parts(all, !targets.is_empty(), kernel.is_some());
    let mut report = String::new();
    let mut found = Vec::new();
    let mut told = |what: &str, result: Result<String>| {
        match result {
            Ok(text) => writeln!(report, "nightly: {what}: {text}"),
            Err(e) => {
                found.push(what.to_owned());
                writeln!(report, "nightly: {what}: FOUND: {e}")
            }
        }
        .ok();
    };
    println!("nightly: wild inputs for {} s, from seed {first}", wild.as_secs());
    let campaign = overload::Args::fresh(first, args.jobs, &args.keep);
    told("wild inputs", overload::campaign(&campaign, Some(Instant::now() + wild)));
    println!("nightly: property tests, seed {first}");
    told("property tests", properties(first));
    match targets.len() as u32 {
        0 => told("libFuzzer", Ok("left out: no target is built (cargo xtask ci builds them)".to_owned())),
        n => {
            for (name, binary) in &targets {
                let result = fuzz_one(args, name, binary, fuzz / n, first);
                println!("nightly: libFuzzer {name}: {}", result.as_deref().unwrap_or("found something"));
                told(&format!("libFuzzer {name}"), result);
            }
        }
    }
    match kernel {
        None => told("vectors", Ok("left out: no --runner and --probe of the real kernel".to_owned())),
        Some((runner, probe)) => {
            let args = vectors::Args {
                kinds: args.kinds.clone(),
                time: vectors,
                first: args.first.unwrap_or(days * 100_000),
                runner: runner.clone(),
                probe: probe.clone(),
                scratch: args.scratch.clone(),
                keep: args.keep.clone(),
            };
            told("vectors", vectors::run(&args));
        }
    }
    print!("{report}");
    match found.as_slice() {
        [] => Ok(()),
        found => bail!("found by {}; what it was is in {}", found.join(", "), args.keep.display()),
    }
}

/// The crates with property tests of whole machines, once, by a seed of their own.
fn properties(seed: u64) -> Result<String> {
    let mut command = Command::new(env!("CARGO"));
    command.arg("test").env(ci::PROPERTIES, seed.to_string()).current_dir(tidy::root());
    for name in ["lang", "sched", "tcp", "host", "sim", "measure", "replay"] {
        command.args(["-p", &format!("penstock-{name}")]);
    }
    let status = command.arg("--quiet").status()?;
    match status.success() {
        true => Ok(format!("seed {seed}")),
        false => bail!("seed {seed}: {}={seed} cargo test ({status})", ci::PROPERTIES),
    }
}

/// A libFuzzer target for a while: executions and edges.
fn fuzz_one(args: &Args, name: &str, binary: &Path, time: Duration, seed: u64) -> Result<String> {
    // libFuzzer's seeds have 32 bits, and 0 is none.
    let seed = (seed & 0xffff_ffff).max(1);
    let found = args.scratch.join("corpus").join(name);
    std::fs::create_dir_all(&found)?;
    std::fs::create_dir_all(&args.keep)?;
    let mut command = Command::new(binary);
    command.arg(&found);
    let committed = tidy::root().join("fuzz/corpus").join(name);
    if committed.is_dir() {
        command.arg(committed);
    }
    let artifacts = args.keep.join(format!("{name}-{seed}-"));
    command.arg(format!("-max_total_time={}", time.as_secs().max(1))).arg(format!("-seed={seed}"));
    command.arg(format!("-artifact_prefix={}", artifacts.display()));
    command.args(["-print_final_stats=1", "-timeout=60", "-rss_limit_mb=3072"]);
    let out = command.output()?;
    let log = String::from_utf8_lossy(&out.stderr).into_owned();
    std::fs::write(args.scratch.join(format!("{name}.log")), &log)?;
    let counts = counts(&log);
    if out.status.success() {
        return Ok(format!("{counts}, seed {seed}"));
    }
    let at = log.lines().find_map(|l| l.split_once("Test unit written to ")).map_or("", |(_, path)| path);
    bail!("{counts}, seed {seed}: {at} ({})", out.status)
}

/// Executions and edges, as libFuzzer tells them.
fn counts(log: &str) -> String {
    let stat = |line: &str| Some(line.strip_prefix("stat::number_of_executed_units:")?.trim().to_owned());
    let executed = log.lines().rev().find_map(stat);
    // `#1234  DONE   cov: 567 ft: …`; where it ends early there is no such statistic.
    let status = || log.lines().rev().filter(|l| l.starts_with('#'));
    let begun = || status().find_map(|l| Some(l[1..].split_whitespace().next()?.to_owned()));
    let edges = status().find_map(|l| l.split_once("cov: ")?.1.split_whitespace().next());
    format!(
        "{} executions, {} edges",
        executed.or_else(begun).unwrap_or_else(|| "0".to_owned()),
        edges.unwrap_or("0")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wild_inputs_have_the_larger_part() {
        let hour = Duration::from_secs(3600);
        for (fuzz, kernel) in [(false, false), (true, false), (false, true), (true, true)] {
            let [wild, fuzzed, vectors] = parts(hour, fuzz, kernel);
            assert_eq!(wild + fuzzed + vectors, hour);
            assert!(wild > hour / 2 && fuzzed.is_zero() != fuzz && vectors.is_zero() != kernel);
        }
    }

    #[test]
    fn executions_and_edges_are_libfuzzers_own() {
        let log = "INFO: Seed: 7\n#2\tINITED cov: 100 ft: 9\n#4096\tpulse  cov: 900 ft: 12\n#5000\tDONE   cov: 901 ft: 13\n\
                   Done 5000 runs\nstat::number_of_executed_units: 5000\n";
        assert_eq!(counts(log), "5000 executions, 901 edges");
        assert_eq!(counts(&log[..log.find("#5000").unwrap()]), "4096 executions, 900 edges");
        assert_eq!(counts("killed"), "0 executions, 0 edges");
    }
}
