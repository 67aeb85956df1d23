//! `penstock run`.

use crate::examples;
use crate::junit::Junit;
use crate::queues::queues;
use anyhow::{Context as _, Result};
use indicatif::{ProgressBar, ProgressStyle};
use penstock_lab::experiment::{Experiment, Threads};
use penstock_lab::run::{Also, Ground, Options, Outcome};
use penstock_lab::{experiment, many, run};
use penstock_measure::number::Unit;
use penstock_measure::record::Record;
use penstock_measure::repeat;
use penstock_measure::report::expect_unit;
use penstock_measure::table::{Align, Table};
use penstock_measure::text::visible;
use penstock_model::Diagnostic;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What `penstock run` takes.
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 when all went as it should, 1 when an [[expect]] was not met or a program failed, 2 when nothing was run.\n\
                        Try:  penstock run example:home-line"
)]
pub struct Args {
    /// The experiment file (TOML), or example:NAME (penstock examples lists them)
    file: PathBuf,
    /// Where it runs: sim (the simulator), kernel (this machine's, needs root), virtual (a real Linux in exact time)
    #[arg(long, value_name = "GROUND", default_value = "sim")]
    on: Ground,
    /// Make every machine today's Linux without processor cost, as on kernel and virtual, to compare with them
    #[arg(long)]
    modern: bool,
    /// Timer interrupts per second of machines with today's kernel, on sim (virtual has 100) [default: 250]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=1000))]
    hz: Option<u32>,
    /// Seed, in place of the file's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Folder for the run [default: runs/ and the file's name]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Run it this many times, each with the next seed, into the folders 1, 2 … of DIR, for penstock compare
    #[arg(long, value_name = "TIMES", value_parser = clap::value_parser!(u32).range(2..=1000), conflicts_with = "json")]
    repeat: Option<u32>,
    /// With --repeat: how many runs at a time, on sim and virtual [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), requires = "repeat")]
    jobs: Option<u32>,
    /// On sim: how many threads make a run; no byte of it changes [default: as many as there are processors, at most 8, for 100 flows or more; else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    threads: Option<u32>,
    /// Print the record as JSON instead of the summary
    #[arg(long)]
    json: bool,
    /// Print only what was not met or failed, and no progress
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,
    /// Write the series as text too: series.csv in the run folder
    #[arg(long)]
    csv: bool,
    /// Write data.flent.gz too, for flent to plot
    #[arg(long)]
    flent: bool,
    /// Write the expectations as test cases too, in JUnit's XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Another folder that paths in the experiment (base, @file, replay) may lead into; may be repeated
    #[arg(long, value_name = "DIR")]
    allow_path: Vec<PathBuf>,
    /// On kernel: keep what setups and programs write below this folder; may be repeated [default: keep nothing]
    #[arg(long, value_name = "DIR")]
    allow_writes: Vec<PathBuf>,
}

/// Prints what is wrong; exit status 2.
pub fn refuse(faults: &[Diagnostic]) -> ExitCode {
    for fault in faults {
        crate::say(&fault.to_string());
    }
    ExitCode::from(2)
}

/// A bar on a terminal; nothing elsewhere.
pub fn bar(what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(1000);
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} % {elapsed}, {eta} left");
    bar.set_style(style.expect("the template is right").progress_chars("━╸ "));
    bar.set_message(visible(what).into_owned());
    bar
}

/// Runs it.
pub fn main(args: &Args) -> Result<ExitCode> {
    let mut junit = Junit::open(args.junit.as_deref(), &args.file)?;
    let done = run_it(args, &mut junit)?;
    junit.write()?;
    Ok(done)
}

fn run_it(args: &Args, junit: &mut Junit) -> Result<ExitCode> {
    let read = match examples::named(&args.file) {
        Some(name) => examples::load(name)?,
        None => {
            crate::near::there(&args.file)?;
            experiment::load_with(&args.file, &args.allow_path)
        }
    };
    let experiment = match read {
        Ok(experiment) => experiment,
        Err(faults) => {
            junit.refused(&faults);
            return Ok(refuse(&faults));
        }
    };
    let experiment = if args.modern { experiment.modern() } else { experiment }.at_hz(args.hz);
    let mut experiment = experiment;
    for folder in &args.allow_writes {
        anyhow::ensure!(folder.is_dir(), "--allow-writes {}: there is no such folder", folder.display());
        let real = folder.canonicalize().with_context(|| format!("--allow-writes {}", folder.display()))?;
        experiment.writable.push(real);
    }
    if args.on == Ground::Sim {
        let at_once = args.repeat.map_or(1, |times| {
            args.jobs.map_or_else(many::processors, |jobs| jobs as usize).min(times as usize)
        });
        if let Err(faults) = run::memory::check(&experiment, at_once, run::memory::available()) {
            junit.refused(&faults);
            return Ok(refuse(&faults));
        }
    }
    let folder = args.out.clone().unwrap_or_else(|| crate::default_out(examples::as_file(&args.file)));
    // Captures are written beside the run folder while the run goes on.
    experiment.scratch = Some(match folder.parent().filter(|p| !p.as_os_str().is_empty()) {
        Some(parent) => parent.to_owned(),
        None => PathBuf::from("."),
    });
    if args.on == Ground::Sim {
        // All is read: whatever its commands do, it is done without the files of this computer.
        crate::check::confine(&[&folder]);
    }
    anyhow::ensure!(
        args.threads.is_none() || args.on == Ground::Sim,
        "--threads: only the simulator is made by several threads; leave it out, or take --on sim"
    );
    let threads = match args.threads {
        Some(threads) => Threads::Most(threads as usize),
        // Several runs take the processors already.
        None if args.repeat.is_some() => Threads::One,
        None => Threads::Large(many::processors().min(8)),
    };
    let experiment = experiment.on_threads(threads);
    let seed = args.seed.unwrap_or(experiment.seed);
    if let Some(times) = args.repeat {
        return repeated(args, &experiment, seed, times, &folder, junit);
    }
    let bar = if args.quiet { ProgressBar::hidden() } else { bar(&experiment.title) };
    let mut progress = |share: f64| bar.set_position((share * 1000.0) as u64);
    let mut warn = |warning: &Diagnostic| bar.suspend(|| crate::say(&warning.to_string()));
    let outcome = run::run_on(
        args.on,
        &experiment,
        &mut Options { seed: Some(seed), progress: &mut progress, warn: &mut warn },
    );
    bar.finish_and_clear();
    let mut outcome = match outcome {
        Ok(outcome) => outcome,
        Err(faults) => {
            junit.refused(&faults);
            return Ok(nothing_was_run(&experiment, &faults));
        }
    };
    junit.run(&outcome.record);
    outcome.also = also(args);
    if let Some(why) = outcome.one_thread.as_ref().filter(|_| args.threads.is_some()) {
        crate::say(&format!("penstock: one thread makes the run: {why}"));
    }
    outcome.write(&folder).map_err(anyhow::Error::msg)?;
    if args.json {
        crate::print(&outcome.record.to_json())?;
    } else if args.quiet {
        crate::show(&wrong(&outcome))?;
    } else {
        let mut text = summary(&outcome);
        text.push_str(&format!("\n{}\n", folder.join("report.html").display()));
        crate::show(&text)?;
    }
    Ok(ExitCode::from(u8::from(!outcome.record.succeeded())))
}

fn also(args: &Args) -> Also {
    Also { csv: args.csv, flent: args.flent }
}

fn nothing_was_run(experiment: &Experiment, faults: &[Diagnostic]) -> ExitCode {
    let code = refuse(faults);
    // A setup's lines, in whatever file they stand.
    let scripts: Vec<_> = experiment.hosts.iter().flat_map(|host| &host.setup).collect();
    let within = |fault: &Diagnostic| {
        scripts.iter().any(|s| {
            let lines = s.text.lines().count().max(1) as u32;
            s.file == fault.file && (s.line..s.line + lines).contains(&fault.line)
        })
    };
    // What the machine lacks stands in no file.
    if faults.iter().any(|f| !f.file.is_empty()) {
        match faults.iter().any(within) {
            true => crate::say(
                "penstock: the setup failed; nothing was run (setup_may_fail = true lets it go on)",
            ),
            false => crate::say("penstock: nothing was run"),
        }
    }
    code
}

/// Runs it `times` times, each with the next seed, into folders of their own, several at a time where they do not disturb each other.
fn repeated(
    args: &Args,
    experiment: &Experiment,
    seed: u64,
    times: u32,
    folder: &Path,
    junit: &mut Junit,
) -> Result<ExitCode> {
    let jobs = match (args.on, args.jobs) {
        (Ground::Kernel, None | Some(1)) => 1,
        (Ground::Kernel, Some(_)) => {
            anyhow::bail!("--jobs: on kernel one run at a time: two would take each other's processor time")
        }
        (_, Some(jobs)) => jobs as usize,
        (_, None) => many::processors().div_ceil(args.threads.unwrap_or(1) as usize),
    };
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let bar = bar(&experiment.title);
    let told = |done: usize| bar.set_position(done as u64 * 1000 / u64::from(times));
    // The first that cannot be made: none behind it is begun.
    let failed = AtomicUsize::new(usize::MAX);
    let work = |n: usize| {
        if failed.load(Ordering::Relaxed) < n {
            return None;
        }
        // What cannot work cannot with any seed.
        let mut warn = |warning: &Diagnostic| {
            if n == 0 {
                bar.suspend(|| crate::say(&warning.to_string()));
            }
        };
        let mut options =
            Options { seed: Some(seed.wrapping_add(n as u64)), progress: &mut |_| {}, warn: &mut warn };
        let made = match run::run_on(args.on, experiment, &mut options) {
            Ok(mut outcome) => {
                outcome.also = also(args);
                match outcome.write(&folder.join((n + 1).to_string())) {
                    Ok(()) => Ok(outcome.record),
                    Err(why) => Err(Stopped::Folder(why)),
                }
            }
            Err(faults) => Err(Stopped::Faults(faults)),
        };
        if made.is_err() {
            failed.fetch_min(n, Ordering::Relaxed);
        }
        Some(made)
    };
    let made = many::each(times as usize, jobs, &told, &work);
    bar.finish_and_clear();
    let mut records = Vec::new();
    for (n, one) in made.into_iter().enumerate() {
        match one {
            Some(Ok(record)) => {
                crate::show(&format!("{}\n", folder.join((n + 1).to_string()).display()))?;
                junit.run(&record);
                records.push(record);
            }
            Some(Err(Stopped::Faults(faults))) => {
                junit.refused(&faults);
                return Ok(nothing_was_run(experiment, &faults));
            }
            Some(Err(Stopped::Folder(why))) => anyhow::bail!(why),
            None => break,
        }
    }
    crate::show(&repeat::groups(&records.iter().collect::<Vec<_>>()))?;
    Ok(ExitCode::from(u8::from(!records.iter().all(Record::succeeded))))
}

/// Why a run was not made.
enum Stopped {
    Faults(Vec<Diagnostic>),
    Folder(String),
}

/// What was not met and what failed, a line each.
fn wrong(outcome: &Outcome) -> String {
    let missed = outcome.record.expects.iter().filter(|e| !e.ok).map(|e| {
        let measured = e.measured.map_or("not measured".to_owned(), |x| expect_unit(&e.what).show(x));
        format!("NOT MET  {} {}: {measured}\n", e.what, e.value)
    });
    missed.collect::<String>() + last_words(outcome).trim_start()
}

/// The summary of a run.
fn summary(outcome: &Outcome) -> String {
    let r = &outcome.record;
    let on = r.rig.machine.as_ref().map(|m| format!(", {} {}", r.ground, m.kernel)).unwrap_or_default();
    let mut text = format!("{} ({}, seed {}{on})\n", r.title, Unit::Second.show(r.duration_s), r.seed);
    for part in [apps(r), flows(r), repeat::groups(&[r]), scores(r), queues(r), drops(r), expects(r)] {
        if !part.is_empty() {
            text.push('\n');
            text.push_str(&part);
        }
    }
    text.push_str(&last_words(outcome));
    for note in r.rig.machine.iter().flat_map(|m| &m.notes) {
        text.push_str(&format!("\nnote: {note}\n"));
    }
    for failure in &r.setup_failures {
        text.push_str(&format!(
            "\nrefused on {}: {}\n  {}\n",
            failure.host, failure.command, failure.message
        ));
    }
    text
}

/// The programs that failed, and what they said last.
fn last_words(outcome: &Outcome) -> String {
    let mut text = String::new();
    for (number, app) in outcome.record.failed_apps().take(MAX_ROWS) {
        let status = app.exit.unwrap_or_default();
        text.push_str(&format!("\nfailed: {} ({}), exit status {status}\n", app.name, app.run));
        // Advice on options does not say what went wrong.
        let tells = |l: &&str| !l.trim().is_empty() && !l.starts_with("Usage:") && !l.starts_with("Try `");
        if let Some(line) = outcome.outputs.get(number).and_then(|o| o.lines().rfind(tells)) {
            text.push_str(&format!("  {}\n", line.trim_end()));
        }
    }
    let more = outcome.record.failed_apps().count().saturating_sub(MAX_ROWS);
    if more > 0 {
        text.push_str(&format!("  and {more} more failed\n"));
    }
    for w in outcome.record.warnings.iter().filter(|w| w.came_true) {
        text.push_str(&format!("\n{}:{}: {}\n", w.file, w.line, w.message));
    }
    text
}

fn apps(r: &Record) -> String {
    let mut table = Table::new(&[
        ("program", Align::Left),
        ("throughput", Align::Right),
        ("rtt mean", Align::Right),
        ("p95", Align::Right),
        ("max", Align::Right),
        ("jitter", Align::Right),
        ("lost", Align::Right),
        ("exit", Align::Right),
    ]);
    for app in &r.apps {
        let ms = |x: Option<f64>| x.map(|x| Unit::Millisecond.show(x)).unwrap_or_default();
        let lost = match (app.lost_packets, app.sent_packets) {
            (Some(lost), Some(sent)) => format!("{lost}/{sent}"),
            _ => String::new(),
        };
        // A server that still waits has nothing to say of itself.
        if app.exit.is_none()
            && app.throughput_bit_s.is_none()
            && app.rtt_ms.is_none()
            && app.so_far_bit_s.is_none()
            && app.sent_packets.is_none()
            && app.start_s.is_some()
        {
            continue;
        }
        let exit = match (app.exit, app.start_s) {
            (Some(status), _) => status.to_string(),
            (None, None) => "never started".to_owned(),
            (None, Some(_)) => "running".to_owned(),
        };
        table.row([
            app.name.clone(),
            app.throughput_bit_s.or(app.so_far_bit_s).map(|x| Unit::BitPerSecond.show(x)).unwrap_or_default(),
            ms(app.rtt_ms.map(|d| d.mean)),
            ms(app.rtt_ms.map(|d| d.p95)),
            ms(app.rtt_ms.map(|d| d.max)),
            ms(app.jitter_ms),
            lost,
            exit,
        ]);
    }
    let cut: Vec<&str> =
        r.apps.iter().filter(|a| a.so_far_bit_s.is_some()).map(|a| a.name.as_str()).collect();
    let note = match cut.as_slice() {
        [] => String::new(),
        [first, rest @ ..] => {
            let others = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            let long = Unit::Second.show(r.duration_s);
            format!(
                "  {first}{others}: the run ended first ({long}); throughput so far. A longer duration lets it end.\n"
            )
        }
    };
    if table.is_empty() { String::new() } else { table.text(2) + &note }
}

/// Most flows in the summary.
const MAX_ROWS: usize = 16;

fn flows(r: &Record) -> String {
    let mut table = Table::new(&[
        ("flow", Align::Left),
        ("goodput", Align::Right),
        ("delay mean", Align::Right),
        ("p95", Align::Right),
        ("max", Align::Right),
        ("jitter mean", Align::Right),
        ("jitter max", Align::Right),
        ("rtt mean", Align::Right),
        ("rtt p95", Align::Right),
        ("lost", Align::Right),
        ("duration", Align::Right),
    ]);
    let described = || r.flows.iter().filter(|f| f.app.is_none());
    for flow in described().take(MAX_ROWS) {
        let ms = |x: Option<f64>| x.map(|x| Unit::Millisecond.show(x)).unwrap_or_default();
        let took = flow.start_s.zip(flow.end_s).map(|(from, to)| (to - from) * 1000.0);
        table.row([
            flow.name.clone(),
            Unit::BitPerSecond.show(flow.goodput_bit_s),
            ms(flow.owd_ms.map(|d| d.mean)),
            ms(flow.owd_ms.map(|d| d.p95)),
            ms(flow.owd_ms.map(|d| d.max)),
            ms(flow.jitter_mean_ms.filter(|_| flow.proto == "udp")),
            ms(flow.jitter_max_ms.filter(|_| flow.proto == "udp")),
            ms(flow.rtt_ms.map(|d| d.mean)),
            ms(flow.rtt_ms.map(|d| d.p95)),
            format!("{}/{}", flow.lost_packets, flow.sent_packets),
            ms(took.filter(|_| flow.proto == "tcp")),
        ]);
    }
    if table.is_empty() {
        return String::new();
    }
    let more = described().count().saturating_sub(MAX_ROWS);
    let rest = if more > 0 { format!("  and {more} more in the record\n") } else { String::new() };
    table.text(2) + &rest
}

/// Latency under load and calls, the worst first (`docs/scores.md`).
fn scores(r: &Record) -> String {
    let ms = |x: f64| Unit::Millisecond.show(x);
    let mut latency: Vec<_> = r.scores.latency.iter().collect();
    latency.sort_by(|a, b| b.increase_ms.total_cmp(&a.increase_ms));
    let mut table = Table::new(&[
        ("latency under load", Align::Left),
        ("unloaded", Align::Right),
        ("p50", Align::Right),
        ("p95", Align::Right),
        ("p99", Align::Right),
        ("grade", Align::Left),
        ("RPM", Align::Right),
        ("games", Align::Left),
        ("conferences", Align::Left),
    ]);
    for l in latency.iter().take(MAX_ROWS) {
        table.row([
            l.probe.clone(),
            ms(l.unloaded_ms),
            ms(l.loaded_ms.p50),
            ms(l.loaded_ms.p95),
            ms(l.loaded_ms.p99),
            l.grade.clone(),
            format!("{:.0}", l.rpm),
            l.game.clone(),
            l.conference.clone(),
        ]);
    }
    let mut text = if table.is_empty() { String::new() } else { table.text(2) };
    let mut calls: Vec<_> = r.scores.calls.iter().collect();
    calls.sort_by(|a, b| a.r.total_cmp(&b.r));
    let mut table = Table::new(&[
        ("call", Align::Left),
        ("MOS", Align::Right),
        ("R", Align::Right),
        ("quality", Align::Left),
        ("mouth to ear", Align::Right),
        ("lost or late", Align::Right),
    ]);
    for c in calls.iter().take(MAX_ROWS) {
        table.row([
            c.flow.clone(),
            format!("{:.2}", c.mos),
            format!("{:.1}", c.r),
            c.quality.clone(),
            ms(c.delay_ms),
            Unit::Share.show(c.loss),
        ]);
    }
    if !table.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&table.text(2));
    }
    text
}

/// What was lost elsewhere than in the queues above, which tell their own.
fn drops(r: &Record) -> String {
    let mut table = Table::new(&[
        ("lost", Align::Left),
        ("at", Align::Left),
        ("reason", Align::Left),
        ("packets", Align::Right),
    ]);
    for d in r.drops.iter().filter(|d| d.place != "qdisc").take(MAX_ROWS) {
        let at = match &d.dev {
            Some(dev) => format!("{} {dev}", d.host),
            None => d.host.clone(),
        };
        table.row([at, d.place.clone(), d.reason.clone(), Unit::Count.show(d.packets as f64)]);
    }
    if table.is_empty() { String::new() } else { table.text(2) }
}

fn expects(r: &Record) -> String {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("expected", Align::Left),
        ("value", Align::Left),
        ("measured", Align::Right),
    ]);
    for e in &r.expects {
        table.row([
            if e.ok { "met".to_owned() } else { "NOT MET".to_owned() },
            e.what.clone(),
            e.value.clone(),
            e.measured.map_or("not measured".to_owned(), |x| expect_unit(&e.what).show(x)),
        ]);
    }
    let whys: BTreeSet<&str> = r.expects.iter().filter_map(|e| e.why.as_deref()).collect();
    let whys: String = whys.into_iter().map(|why| format!("  not measured: {why}\n")).collect();
    if table.is_empty() { String::new() } else { table.text(2) + &whys }
}
