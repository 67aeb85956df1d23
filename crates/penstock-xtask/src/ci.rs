//! The whole gate, step by step, with what is skipped and why.

use crate::{deny, outside, overload, pages, python, tidy, valgrind, web};
use anyhow::{Context, Result, bail};
use penstock_lab::many;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Set where tests leave out what needs the network or a real kernel.
const QUICK: &str = "PENSTOCK_QUICK";

/// The seed of property tests. The gate fixes it, so that the same state gets the same verdict; `nightly` tries fresh ones.
pub const PROPERTIES: &str = "PROPTEST_RNG_SEED";

/// Options of `cargo xtask ci`.
#[derive(clap::Args)]
pub struct Args {
    /// Seconds each fuzz target runs; 0 skips fuzzing
    #[arg(long, default_value_t = 10)]
    fuzz_seconds: u32,
    /// Seeds of wild experiments, scripts and files, from 1 on: always the same, so that the same state gets the same verdict; 0
    /// skips them
    #[arg(long, default_value_t = overload::GATE_SEEDS)]
    overload_seeds: u64,
    /// What one runs while working: no network, no real kernel, no documentation, no campaign, no fuzzing
    #[arg(long)]
    quick: bool,
}

struct Gate {
    skipped: Vec<String>,
    begun: Instant,
    /// What each part has taken, seconds.
    took: Vec<(&'static str, f64)>,
}

/// What parts of the gate need from a network, or why it cannot be had. It is fetched while others compile.
struct Kits {
    python: Result<python::Kit, String>,
    pages: Result<pages::Kit, String>,
    web: Result<web::Kit, String>,
}

impl Kits {
    fn fetch() -> Kits {
        Kits {
            web: web::kit(),
            pages: pages::kit(),
            python: python::kit().and_then(python::Kit::with_packages),
        }
    }
}

impl Gate {
    /// A part of the gate, by its clock.
    fn part<T>(&mut self, name: &'static str, work: impl FnOnce(&mut Gate) -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        let done = work(self);
        let took = begun.elapsed().as_secs_f64();
        self.took.push((name, took));
        println!("\n== {name} took {took:.0} s; {:.0} s so far", self.begun.elapsed().as_secs_f64());
        done
    }
    fn step(&mut self, name: &str, program: &str, args: &[&str], env: &[(&str, &str)]) -> Result<()> {
        println!("\n== {name}: {program} {}", args.join(" "));
        let started = Instant::now();
        let status = Command::new(program)
            .args(args)
            .envs(env.iter().copied())
            .current_dir(tidy::root())
            .status()
            .with_context(|| format!("{name}: cannot run {program}"))?;
        println!("== {name}: {:.0} s", started.elapsed().as_secs_f64());
        if !status.success() {
            bail!("{name} failed ({status})");
        }
        Ok(())
    }
    /// The tests. What they say they leave out is told again at the end.
    fn tests(&mut self, cargo: &str, quick: bool) -> Result<()> {
        println!("\n== tests: {cargo} test --workspace");
        let started = Instant::now();
        let mut command = Command::new(cargo);
        command.args(["test", "--workspace"]).current_dir(tidy::root());
        if std::env::var_os(PROPERTIES).is_none() {
            command.env(PROPERTIES, "1");
        }
        if quick {
            command.env(QUICK, "1");
        }
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("tests: cannot run cargo")?;
        let heard = Mutex::new(BTreeSet::new());
        let (out, err) =
            (child.stdout.take().context("its output")?, child.stderr.take().context("its errors")?);
        let hear = |from: &mut dyn Read, to: &mut dyn Write| -> std::io::Result<()> {
            let mut from = BufReader::new(from);
            let mut line = Vec::new();
            while from.read_until(b'\n', &mut line)? > 0 {
                to.write_all(&line)?;
                to.flush()?;
                let text = String::from_utf8_lossy(&line);
                if let Some(what) = left_out(&text) {
                    heard.lock().unwrap_or_else(PoisonError::into_inner).insert(what);
                }
                line.clear();
            }
            Ok(())
        };
        std::thread::scope(|s| {
            let errors = s.spawn(|| hear(&mut { err }, &mut std::io::stderr()));
            hear(&mut { out }, &mut std::io::stdout())?;
            errors.join().map_err(|_| std::io::Error::other("the listener panicked"))?
        })?;
        let status = child.wait()?;
        println!("== tests: {:.0} s", started.elapsed().as_secs_f64());
        if !status.success() {
            bail!("tests failed ({status})");
        }
        let heard = heard.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.skipped.extend(heard.into_iter().map(|what| format!("tests: {what}")));
        Ok(())
    }
    /// Says that all is well, and what was not asked.
    fn end(&self) -> Result<()> {
        println!("\n== all steps passed");
        let took: Vec<String> = self.took.iter().map(|(name, s)| format!("{name} {s:.0} s")).collect();
        println!("== took {:.0} s: {}", self.begun.elapsed().as_secs_f64(), took.join(", "));
        for what in &self.skipped {
            println!("== skipped: {what}");
        }
        Ok(())
    }
    fn skip(&mut self, what: &str, why: &str) {
        println!("\n== {what}: SKIPPED, {why}");
        self.skipped.push(format!("{what} ({why})"));
    }
}

/// What a line of the tests' output says was not run: a test's own words, or those of the harness about one that is ignored.
fn left_out(line: &str) -> Option<String> {
    if let Some((_, what)) = line.split_once("SKIPPED") {
        return Some(what.trim_start_matches(':').trim().to_owned());
    }
    let (name, why) = line.strip_prefix("test ")?.split_once(" ... ignored")?;
    let why = why.trim_start_matches(',').trim();
    Some(if why.is_empty() { format!("{name} is ignored") } else { format!("{name} is ignored: {why}") })
}

/// Runs every step; stops at the first that fails.
pub fn run(args: &Args) -> Result<()> {
    let cargo = env!("CARGO");
    let mut gate = Gate { skipped: Vec::new(), begun: Instant::now(), took: Vec::new() };
    println!("== tidy");
    tidy::run()?;
    let kits = (!args.quick).then(|| std::thread::spawn(Kits::fetch));
    gate.part("style", |gate| {
        if component("rustfmt") {
            gate.step("format", cargo, &["fmt", "--all", "--check"], &[])?;
        } else {
            gate.skip("format", "rustfmt is not installed: rustup component add rustfmt");
        }
        if component("clippy") {
            let args = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
            gate.step("clippy", cargo, &args, &[])?;
        } else {
            gate.skip("clippy", "clippy is not installed: rustup component add clippy");
        }
        Ok(())
    })?;
    let Some(kits) = kits else {
        gate.part("tests", |gate| gate.tests(cargo, true))?;
        gate.part("examples", examples)?;
        for what in ["supply", "docs", "wasm", "python", "pages", "web", "counts", "overload", "fuzz"] {
            gate.skip(what, "--quick");
        }
        return gate.end();
    };
    gate.part("supply", |gate| supply(gate, cargo))?;
    gate.part("docs", |gate| {
        let args = ["doc", "--workspace", "--no-deps", "--quiet"];
        gate.step("docs", cargo, &args, &[("RUSTDOCFLAGS", "-D warnings")])
    })?;
    gate.part("tests", |gate| gate.tests(cargo, false))?;
    gate.part("examples", examples)?;
    kernels(&mut gate);
    gate.part("wasm", |gate| wasm(gate, cargo))?;
    let kits = gate.part("packages", |_| Ok(kits.join()))?;
    let kits = kits.map_err(|_| anyhow::anyhow!("what fetches packages has panicked"))?;
    match kits.python {
        Ok(kit) => {
            println!("\n== python");
            for left_out in gate.part("python", |_| kit.run())? {
                gate.skip("python", &left_out);
            }
        }
        Err(why) => gate.skip("python", &why),
    }
    match kits.pages {
        Ok(kit) => {
            println!("\n== pages: reports and comparisons in Chromium");
            gate.part("pages", |_| kit.run(false))?;
        }
        Err(why) => gate.skip("pages", &why),
    }
    match kits.web {
        Ok(kit) => {
            println!("\n== web");
            gate.part("web build", |_| kit.build(false))?;
            if let Some(left_out) = gate.part("web tests", |_| kit.test())? {
                gate.skip("web", &left_out);
            }
        }
        Err(why) => gate.skip("web", &why),
    }
    if valgrind::is_there() {
        // As it is shipped: another profile counts something else.
        let args = ["run", "--release", "--quiet", "--package", "xtask", "--", "bench", "count"];
        gate.part("counts", |gate| gate.step("counts", cargo, &args, &[]))?;
    } else {
        gate.skip("counts", "instructions are counted by valgrind: apt-get install valgrind");
    }
    if args.overload_seeds > 0 {
        println!("\n== overload: wild experiments, scripts, specifications, captures and records");
        gate.part("overload", |_| overload::run(&overload::Args::gate(args.overload_seeds)))?;
    } else {
        gate.skip("overload", "--overload-seeds 0");
    }
    gate.part("fuzz", |gate| fuzz(gate, cargo, args.fuzz_seconds))?;
    gate.end()
}

fn component(name: &str) -> bool {
    let args: &[&str] = if name == "rustfmt" { &["fmt", "--version"] } else { &["clippy", "--version"] };
    Command::new(env!("CARGO")).args(args).output().is_ok_and(|o| o.status.success())
}

/// Every example of a crate, once: each asserts what it shows. The tests have built them; `cargo run -p` would build other people's crates
/// anew, with the features that this one package needs.
fn examples(gate: &mut Gate) -> Result<()> {
    let metadata = tidy::metadata()?;
    let target = metadata["target_directory"].as_str().context("no target_directory in cargo metadata")?;
    for (package, example) in outside::examples(&metadata) {
        let program = format!("{target}/debug/examples/{example}{}", std::env::consts::EXE_SUFFIX);
        gate.step(&format!("example of {package}"), &program, &[], &[])?;
    }
    Ok(())
}

/// What may come into the build. Advisories need a database, which needs a network once; a machine without both is told so.
fn supply(gate: &mut Gate, cargo: &str) -> Result<()> {
    println!("\n== supply: deny.toml");
    println!("{}", deny::run()?);
    let has = |args: &[&str]| Command::new(cargo).args(args).output().is_ok_and(|o| o.status.success());
    if !has(&["deny", "--version"]) {
        gate.skip(
            "cargo deny",
            "not installed: cargo install cargo-deny --locked; licences, sources and duplicates were checked \
             without it, advisories were not run: no database",
        );
        return Ok(());
    }
    gate.step("supply", cargo, &["deny", "check", "licenses", "sources", "bans"], &[])?;
    let folder = std::env::var_os("CARGO_HOME").map(std::path::PathBuf::from);
    let folder = folder.or_else(|| Some(std::path::PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let kept = folder.is_some_and(|f| f.join("advisory-dbs").is_dir());
    if has(&["deny", "fetch", "db"]) {
        gate.step("advisories", cargo, &["deny", "check", "advisories"], &[])
    } else if kept {
        println!("== advisories: the database cannot be renewed; the one at hand is asked");
        gate.step("advisories", cargo, &["deny", "--offline", "check", "advisories"], &[])
    } else {
        gate.skip("advisories", "not run: no database");
        Ok(())
    }
}

/// The tests on real kernels leave themselves out where the machine lacks something: the list at the end names them.
fn kernels(gate: &mut Gate) {
    let tools = ["ip", "tc", "ethtool", "setpriv", "ping"];
    let missing: Vec<&str> = tools.into_iter().filter(|tool| !penstock_kernel::exec::has(tool)).collect();
    if !penstock_kernel::is_root() {
        gate.skip("the tests on this machine's kernel", "not root: sudo ./test");
    } else if !missing.is_empty() {
        gate.skip("the tests on this machine's kernel", &format!("not installed: {}", missing.join(", ")));
    }
    if let Err(why) = penstock_kernel::boot::find() {
        gate.skip("the tests on the virtual kernel", &why);
    }
}

/// The pure crates build for a machine without a clock, files or sockets, and ask its host for nothing.
fn wasm(gate: &mut Gate, cargo: &str) -> Result<()> {
    if !web::has_target() {
        gate.skip("wasm", "the target is not installed: rustup target add wasm32-unknown-unknown");
        return Ok(());
    }
    let mut args = vec!["build", "--target", web::TARGET, "--lib"];
    for name in ["model", "packet", "sched", "tcp", "lang"] {
        args.extend(["-p", ["penstock-", name].concat().leak()]);
    }
    gate.step("wasm", cargo, &args, &[])
}

/// Each fuzz target for a while, its committed corpus first. Coverage needs only stable flags of rustc.
fn fuzz(gate: &mut Gate, cargo: &str, seconds: u32) -> Result<()> {
    let folder = tidy::root().join("fuzz");
    if seconds == 0 {
        gate.skip("fuzz", "--fuzz-seconds 0");
        return Ok(());
    }
    if !Command::new("c++").arg("--version").output().is_ok_and(|o| o.status.success()) {
        gate.skip("fuzz", "libFuzzer needs a C++ compiler: apt-get install g++");
        return Ok(());
    }
    let flags = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
                 -Cdebug-assertions --cfg fuzzing";
    let host = host_triple()?;
    let manifest = folder.join("Cargo.toml");
    let manifest = manifest.to_str().context("the path is not UTF-8")?;
    let target_dir = folder.join("target");
    let env =
        [("RUSTFLAGS", flags), ("CARGO_TARGET_DIR", target_dir.to_str().context("the path is not UTF-8")?)];
    gate.step(
        "fuzz build",
        cargo,
        &["build", "--release", "--manifest-path", manifest, "--target", &host],
        &env,
    )?;
    // Each keeps one processor busy.
    let targets = fuzz_targets()?;
    let runs = many::each(targets.len(), many::processors(), &|_| {}, &|n| {
        let (name, binary) = &targets[n];
        println!("== fuzz {name}");
        fuzz_one(&folder, &target_dir, name, binary, seconds)
    });
    for ((name, _), ran) in targets.iter().zip(runs) {
        let (ok, told) = ran.with_context(|| format!("fuzz {name}"))?;
        println!("\n== fuzz {name}: {}", if ok { "nothing found" } else { "a fault" });
        // What libFuzzer tells of its progress is of no use where nothing is found.
        told.lines().filter(|l| !ok || l.starts_with("stat::")).for_each(|l| println!("{l}"));
        if !ok {
            bail!("fuzz {name} failed");
        }
    }
    Ok(())
}

/// Runs one fuzz target; whether it found nothing, and what it told.
fn fuzz_one(
    folder: &Path,
    target_dir: &Path,
    name: &str,
    binary: &Path,
    seconds: u32,
) -> Result<(bool, String)> {
    let seeds = folder.join("corpus").join(name);
    let found = target_dir.join("corpus").join(name);
    std::fs::create_dir_all(&found)?;
    std::fs::create_dir_all(&seeds)?;
    let mut run = Command::new(binary);
    run.arg(&found).arg(&seeds).arg(format!("-max_total_time={seconds}"));
    // The gate asks the same each time; who looks for more gives a target another seed and more time.
    run.args(["-seed=1", "-print_final_stats=1", "-timeout=10", "-rss_limit_mb=2048"]);
    let output = run.current_dir(tidy::root()).output()?;
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status.success(), told))
}

/// The fuzz targets that are built: names and programs.
pub(crate) fn fuzz_targets() -> Result<Vec<(String, std::path::PathBuf)>> {
    let folder = tidy::root().join("fuzz");
    let built = folder.join("target").join(host_triple()?).join("release");
    let mut names: Vec<String> = std::fs::read_dir(folder.join("fuzz_targets"))?
        .filter_map(|e| Some(e.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    let program = |name: String| {
        let binary = built.join(&name);
        (name, binary)
    };
    Ok(names.into_iter().map(program).filter(|(_, binary)| binary.is_file()).collect())
}

/// The platform that rustc builds for by itself.
pub(crate) fn host_triple() -> Result<String> {
    let out = Command::new("rustc").arg("-vV").output().context("rustc -vV")?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.lines().find_map(|l| l.strip_prefix("host: ")).map(str::to_owned).context("rustc -vV names no host")
}

#[cfg(test)]
mod tests {
    use super::left_out;

    #[test]
    fn what_tests_leave_out_is_heard() {
        let said = |line| left_out(line).unwrap_or_default();
        assert_eq!(said("SKIPPED: x cannot be had here: no network\n"), "x cannot be had here: no network");
        assert_eq!(
            said("test a::b ... SKIPPED the ground virtual: no kernel\n"),
            "the ground virtual: no kernel"
        );
        assert_eq!(
            said("test many ... ignored, as long as one has time\n"),
            "many is ignored: as long as one has time"
        );
        assert_eq!(said("test many ... ignored\n"), "many is ignored");
        assert_eq!(left_out("test a ... ok\n"), None);
        assert_eq!(left_out("test result: ok. 1 passed; 0 failed; 1 ignored\n"), None);
    }
}
