//! `cargo xtask families`: the simulator beside Linux, run by run. Each file of `vectors/families` is run over seeds on `sim` and on
//! `virtual`, where the same seed is the same traffic, and what the runs measured is compared as distributions: by a permutation test of
//! the means, with Holm's correction over all figures of all families, and by the means themselves.

use anyhow::{Context, Result, bail};
use penstock_measure::record::Record;
use penstock_model::Rng;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// What is run, and what is written.
#[derive(clap::Args)]
pub struct Args {
    /// Names of families; all without one
    names: Vec<String>,
    /// The first and the last seed
    #[arg(long, default_value = "1..20")]
    seeds: String,
    /// Runs at a time
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Folder of the runs; one that is there already is not run again
    #[arg(long, default_value = "target/families")]
    out: PathBuf,
    /// Write docs/notes/families.md
    #[arg(long)]
    write: bool,
}

const FOLDER: &str = "vectors/families";
const PAGE: &str = "docs/notes/families.md";
/// How many random permutations a test makes.
const SHUFFLES: u32 = 99_999;
/// Largest difference of two means.
const NEAR: f64 = 0.03;
/// A p that chance alone goes below in one of a hundred such comparisons of everything.
const LEAST_P: f64 = 0.01;
/// Figures this near are alike in one run; the simulator's delays are kept in steps of [`STEP`].
const ALIKE: f64 = 0.01;
/// The simulator keeps its delays in a histogram whose steps are this wide, as a share of the delay. Two delays that are nearer may be the same.
const STEP: f64 = 0.008;

/// What a run measured, by name.
type Figures = BTreeMap<String, f64>;

/// Runs what is missing, compares, prints, and writes the page where it is asked to.
///
/// # Errors
/// A family that cannot be run, or with figures that differ.
pub fn run(args: &Args) -> Result<()> {
    let (first, last) = args.seeds.split_once("..").context("--seeds is FIRST..LAST")?;
    let seeds: Vec<u64> = (first.parse()?..=last.parse()?).collect();
    let names = names(&args.names)?;
    let program = std::env::current_exe()?.with_file_name("penstock");
    if !program.is_file() {
        bail!("{} is not there: cargo build -p penstock-cli", program.display());
    }
    carry_out(&program, &names, &seeds, args)?;
    let mut families = Vec::new();
    for name in &names {
        let title =
            Record::from_json(&text(&args.out, name, "sim", seeds[0])?).map_err(anyhow::Error::msg)?.title;
        let mut grounds = [Vec::new(), Vec::new()];
        for (ground, runs) in ["sim", "virtual"].iter().zip(&mut grounds) {
            for seed in &seeds {
                let record =
                    Record::from_json(&text(&args.out, name, ground, *seed)?).map_err(anyhow::Error::msg)?;
                runs.push(figures(&record));
            }
        }
        let [sim, linux] = grounds;
        families.push(Family::of(name, title, &sim, &linux));
    }
    holm(&mut families);
    let page = page(&families, seeds.len());
    print!("{page}");
    if args.write {
        std::fs::write(PAGE, &page).with_context(|| PAGE.to_owned())?;
    }
    let differ: Vec<&str> =
        families.iter().filter(|f| f.least_p() < LEAST_P).map(|f| f.name.as_str()).collect();
    if differ.is_empty() { Ok(()) } else { bail!("they differ: {}", differ.join(", ")) }
}

/// The families asked for, or all, in the order of their names.
fn names(asked: &[String]) -> Result<Vec<String>> {
    let mut there = Vec::new();
    for file in std::fs::read_dir(FOLDER).with_context(|| FOLDER.to_owned())? {
        let file = file?.path();
        if file.extension().is_some_and(|e| e == "toml") {
            there.extend(file.file_stem().map(|s| s.to_string_lossy().into_owned()));
        }
    }
    there.sort();
    if let Some(unknown) = asked.iter().find(|name| !there.contains(name)) {
        bail!("there is no {FOLDER}/{unknown}.toml");
    }
    Ok(if asked.is_empty() { there } else { asked.to_vec() })
}

fn folder(out: &Path, name: &str, ground: &str, seed: u64) -> PathBuf {
    out.join(name).join(ground).join(seed.to_string())
}

fn text(out: &Path, name: &str, ground: &str, seed: u64) -> Result<String> {
    let path = folder(out, name, ground, seed).join("record.json");
    std::fs::read_to_string(&path).with_context(|| path.display().to_string())
}

/// Runs whatever has no record yet.
fn carry_out(program: &Path, names: &[String], seeds: &[u64], args: &Args) -> Result<()> {
    let jobs = names
        .iter()
        .flat_map(|name| seeds.iter().flat_map(move |s| [(name, "sim", *s), (name, "virtual", *s)]));
    let left = Mutex::new(jobs.collect::<Vec<_>>().into_iter());
    let failed = Mutex::new(None);
    let worker = || {
        while failed.lock().is_ok_and(|f| f.is_none()) {
            let Some((name, ground, seed)) = left.lock().ok().and_then(|mut left| left.next()) else {
                return;
            };
            let out = folder(&args.out, name, ground, seed);
            if out.join("record.json").is_file() {
                continue;
            }
            if let Err(why) = one(program, name, ground, seed, &out) {
                let why = why.context(format!("{name} on {ground}, seed {seed}"));
                failed.lock().map(|mut f| *f = Some(why)).unwrap_or_default();
            }
        }
    };
    std::thread::scope(|scope| {
        (0..args.jobs.max(1)).for_each(|_| drop(scope.spawn(worker)));
    });
    failed.into_inner().ok().flatten().map_or(Ok(()), Err)
}

fn one(program: &Path, name: &str, ground: &str, seed: u64, out: &Path) -> Result<()> {
    let mut command = Command::new(program);
    command.args([
        "run",
        &format!("{FOLDER}/{name}.toml"),
        "--quiet",
        "--on",
        ground,
        "--seed",
        &seed.to_string(),
    ]);
    if ground == "sim" {
        // The machines that `virtual` has.
        command.args(["--modern", "--hz", "100", "--threads", "1"]);
    }
    let done = command.arg("--out").arg(out).stdin(Stdio::null()).output()?;
    match done.status.code() {
        Some(0) => Ok(()),
        code => bail!("exit status {code:?}: {}", String::from_utf8_lossy(&done.stderr).trim()),
    }
}

/// What of a record is compared: rates, delays, round trips, losses, transfers. Of many flows that are one `[[flow]]` only what they did
/// together.
fn figures(record: &Record) -> Figures {
    let mut all = Figures::new();
    // Of programs their own figures are taken.
    for flow in record.flows.iter().filter(|f| f.group.is_none() && f.app.is_none()) {
        let mut put = |what: &str, value: Option<f64>| {
            if let Some(value) = value {
                all.insert(format!("{} {what}", flow.name), value);
            }
        };
        put("goodput", Some(flow.goodput_bit_s));
        put("delay", flow.owd_ms.map(|d| d.mean));
        put("delay p95", flow.owd_ms.map(|d| d.p95));
        put("round trip", flow.rtt_ms.map(|d| d.mean));
    }
    for group in &record.groups {
        let mut put = |what: &str, value: Option<f64>| {
            if let Some(value) = value {
                all.insert(format!("{} {what}", group.name), value);
            }
        };
        put("goodput", Some(group.goodput_bit_s));
        put("fairness", group.fairness);
        put("completion", group.completion_ms.map(|d| d.mean));
        put("completed", group.completed.map(|n| n as f64));
    }
    for app in &record.apps {
        if let Some(rate) = app.throughput_bit_s {
            all.insert(format!("{} throughput", app.name), rate);
        }
        if let Some(rtt) = app.rtt_ms {
            all.insert(format!("{} round trip", app.name), rtt.mean);
        }
    }
    for lost in record.drops.iter().filter(|d| ["qdisc", "link", "ingress"].contains(&d.place.as_str())) {
        *all.entry(format!("drops at {} {}", lost.host, lost.place)).or_default() += lost.packets as f64;
    }
    all
}

/// One figure of a family on both grounds.
struct Compared {
    name: String,
    means: [f64; 2],
    p: f64,
}

impl Compared {
    /// How far the mean of Linux is from the simulator's, of the greater.
    fn off(&self) -> f64 {
        let [sim, linux] = self.means;
        let most = sim.abs().max(linux.abs());
        if most > 0.0 { (linux - sim) / most } else { 0.0 }
    }
}

struct Family {
    name: String,
    title: String,
    figures: Vec<Compared>,
    /// Seeds with which every figure was alike on both grounds.
    alike: usize,
}

impl Family {
    fn of(name: &str, title: String, sim: &[Figures], linux: &[Figures]) -> Family {
        let mut named: Vec<&String> = sim.iter().chain(linux).flat_map(BTreeMap::keys).collect();
        named.sort();
        named.dedup();
        // Of TCP Linux tells no delays. What was not counted is nothing.
        let told = |runs: &[Figures], n: &String| runs.iter().any(|r| r.contains_key(n));
        named.retain(|n| n.starts_with("drops ") || (told(sim, n) && told(linux, n)));
        let of = |runs: &[Figures], name: &String| -> Vec<f64> {
            // What is not there is nothing: no drops, no transfer.
            runs.iter().map(|r| r.get(name).copied().unwrap_or(0.0)).collect()
        };
        let near = |a: f64, b: f64| (a - b).abs() <= ALIKE * a.abs().max(b.abs());
        let same = |(a, b): &(&Figures, &Figures)| {
            named.iter().all(|n| near(a.get(*n).copied().unwrap_or(0.0), b.get(*n).copied().unwrap_or(0.0)))
        };
        let alike = sim.iter().zip(linux).filter(same).count();
        let compare = |figure: &&String| {
            let (a, b) = (of(sim, figure), of(linux, figure));
            let mut compared = Compared { name: (*figure).clone(), means: [mean(&a), mean(&b)], p: 1.0 };
            if !(figure.contains(" delay") && compared.off().abs() <= STEP) {
                compared.p = permutation(&a, &b, &format!("{name}/{figure}"));
            }
            compared
        };
        Family { name: name.to_owned(), title, figures: named.iter().map(compare).collect(), alike }
    }
    fn least_p(&self) -> f64 {
        self.figures.iter().map(|f| f.p).fold(1.0, f64::min)
    }
    /// The figure whose means are farthest apart.
    fn farthest(&self) -> Option<&Compared> {
        self.figures.iter().max_by(|a, b| a.off().abs().total_cmp(&b.off().abs()))
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// How often chance alone puts the means of two such samples at least this far apart: a permutation test, of two sides.
fn permutation(a: &[f64], b: &[f64], stream: &str) -> f64 {
    let seen = (mean(a) - mean(b)).abs();
    let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
    let scale = all.iter().fold(0.0f64, |most, v| most.max(v.abs()));
    let mut dice = Rng::named(1, stream);
    let mut as_far = 1u32;
    for _ in 0..SHUFFLES {
        for n in (1..all.len()).rev() {
            all.swap(n, dice.below(n as u32 + 1) as usize);
        }
        let (left, right) = all.split_at(a.len());
        as_far += u32::from((mean(left) - mean(right)).abs() >= seen - scale * 1e-12);
    }
    f64::from(as_far) / f64::from(SHUFFLES + 1)
}

/// Holm's correction over all figures of all families.
fn holm(families: &mut [Family]) {
    let mut all: Vec<&mut f64> = families.iter_mut().flat_map(|f| &mut f.figures).map(|c| &mut c.p).collect();
    all.sort_by(|a, b| a.total_cmp(b));
    let many = all.len();
    let mut least = 0.0f64;
    for (n, p) in all.into_iter().enumerate() {
        least = least.max((*p * (many - n) as f64).min(1.0));
        *p = least;
    }
}

/// Whether so many seeds can tell a difference at all, in so many figures: the least p that there can be is low enough.
fn tells(seeds: usize, figures: usize) -> bool {
    // Of all ways to part twice as many runs two are the farthest.
    let ways = (1..=seeds).fold(1.0, |ways, k| ways * (seeds + k) as f64 / k as f64);
    2.0 / ways * figures as f64 <= LEAST_P && figures as f64 / f64::from(SHUFFLES + 1) <= LEAST_P
}

fn verdict(family: &Family, tells: bool) -> &'static str {
    let near = family.farthest().is_none_or(|figure| figure.off().abs() <= NEAR);
    match (near, tells) {
        (_, true) if family.least_p() < LEAST_P => "**differs**",
        (true, true) => "same",
        (false, true) => "chance",
        (true, false) => "near",
        (false, false) => "open",
    }
}

fn page(families: &[Family], seeds: usize) -> String {
    let figures = families.iter().map(|f| f.figures.len()).sum();
    let tells = tells(seeds, figures);
    let verdict = |family: &Family| verdict(family, tells);
    let known = if tells {
        format!(
            "| p | the least of the family's figures: how often chance alone puts means so far apart (permutation test, Holm's correction over all {figures} figures) |\n\
             | verdict | `same`: p of at least {LEAST_P}, and all means within {} %; `chance`: as high a p, but not all means that near; `differs`: p below {LEAST_P} |\n",
            NEAR * 100.0
        )
    } else {
        format!(
            "| p | not known: so few seeds tell no difference of {figures} figures from chance |\n\
             | verdict | `near`: all means within {} %; `open`: not all, and more seeds have to say whether that is chance |\n",
            NEAR * 100.0
        )
    };
    let mut text = format!(
        "# Families of experiments on both grounds\n\n\
         Each file of `vectors/families` is run with {seeds} seeds on the simulator and on Linux 6.12 in exact virtual time (`penstock run --on virtual`), where the same seed is\n\
         the same traffic. `cargo xtask families --write` makes this page.\n\n\
         | column | |\n|---|---|\n\
         | alike | runs in which every figure was the same on both grounds, within {} % |\n\
         | farthest | the figure whose means over the seeds are farthest apart, Linux against the simulator |\n\
         {known}\n\
         | family | | alike | farthest | sim | Linux | p | verdict |\n|---|---|---|---|---|---|---|---|\n",
        ALIKE * 100.0,
    );
    for family in families {
        let far = family.farthest();
        let shown = far.map_or(String::new(), |f| format!("{}, {:+.1} %", f.name, f.off() * 100.0));
        let [sim, linux] = far.map_or([0.0; 2], |f| f.means);
        let _ = writeln!(
            text,
            "| `{}` | {} | {} of {seeds} | {shown} | {} | {} | {} | {} |",
            family.name,
            family.title,
            family.alike,
            short(sim),
            short(linux),
            if tells { format!("{:.3}", family.least_p()) } else { "–".to_owned() },
            verdict(family)
        );
    }
    let count = |word: &str| families.iter().filter(|f| verdict(f) == word).count();
    let runs = families.len() * seeds;
    let alike: usize = families.iter().map(|f| f.alike).sum();
    let words = if tells { ["same", "chance", "**differs**"] } else { ["near", "open", "**differs**"] };
    let counts: Vec<String> = words.iter().map(|w| format!("{} {}", count(w), w.replace('*', ""))).collect();
    let many = families.len();
    let _ = writeln!(
        text,
        "\n{many} families: {}. {alike} of {runs} runs were alike in every figure.",
        counts.join(", ")
    );
    text
}

/// A number with four figures.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{:.3} M", value / 1e6),
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(values: &[f64]) -> Vec<Figures> {
        values.iter().map(|v| Figures::from([("x goodput".to_owned(), *v)])).collect()
    }

    #[test]
    fn far_samples_differ_and_near_ones_do_not() {
        let a: Vec<f64> = (0..20).map(|n| f64::from(n % 5)).collect();
        let b: Vec<f64> = a.iter().map(|v| v + 3.0).collect();
        assert!(permutation(&a, &b, "x") < 0.001 && permutation(&a, &a, "x") == 1.0);
        let shifted: Vec<f64> = a.iter().map(|v| v + 0.3).collect();
        assert!(permutation(&a, &shifted, "x") > 0.2);
        assert_eq!(permutation(&[0.0; 20], &[0.0; 20], "x"), 1.0);
    }

    #[test]
    fn a_verdict_says_what_is_known() {
        let family = |a: &[f64], b: &[f64]| {
            let mut one = [Family::of("f", "F".to_owned(), &runs(a), &runs(b))];
            holm(&mut one);
            let [one] = one;
            one
        };
        let spread = [1.0, 9.0, 2.0, 8.0, 5.0];
        let same = family(&spread, &spread);
        assert_eq!((verdict(&same, true), same.alike), ("same", 5));
        assert_eq!(verdict(&same, false), "near");
        let other = family(&spread, &[2.0, 9.0, 2.0, 8.0, 5.0]);
        assert_eq!((verdict(&other, true), other.alike), ("chance", 4));
        assert_eq!(verdict(&other, false), "open");
        let far = family(&[1.0; 12], &[1.1; 12]);
        // Delays within a step of the histogram are one figure, however sure the difference is.
        let delays = |v: f64| vec![Figures::from([("call delay".to_owned(), v)]); 12];
        let step = Family::of("f", "F".to_owned(), &delays(10.027), &delays(10.004));
        assert_eq!((verdict(&step, true), step.least_p()), ("same", 1.0));
        assert_eq!((verdict(&far, true), far.alike), ("**differs**", 0));
        assert!(tells(20, 300) && tells(6, 1) && !tells(3, 1) && !tells(5, 100));
        assert!(
            page(&[far], 12)
                .contains("| `f` | F | 0 of 12 | x goodput, +9.1 % | 1.000 | 1.100 | 0.000 | **differs** |")
        );
    }

    #[test]
    fn holm_weighs_each_by_how_many_are_left() {
        let figure = |p| Compared { name: String::new(), means: [1.0; 2], p };
        let family = |ps: &[f64]| Family {
            name: String::new(),
            title: String::new(),
            figures: ps.iter().map(|p| figure(*p)).collect(),
            alike: 0,
        };
        let mut all = [family(&[0.01, 0.04]), family(&[0.03, 0.005])];
        holm(&mut all);
        let ps: Vec<f64> =
            all.iter().flat_map(|f| &f.figures).map(|f| (f.p * 1000.0).round() / 1000.0).collect();
        assert_eq!(ps, [0.03, 0.06, 0.06, 0.02]);
    }

    /// Every family can be run: the files are experiments, and none asks for what one of the grounds does not have.
    #[test]
    fn families_are_experiments() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(FOLDER);
        let mut count = 0;
        for file in std::fs::read_dir(root).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let read = penstock_lab::experiment::parse(&text, &path.to_string_lossy());
            let experiment = read.unwrap_or_else(|faults| panic!("{}: {faults:?}", path.display()));
            assert!(experiment.meters.is_empty() && experiment.captures.is_empty(), "{}", path.display());
            count += 1;
        }
        assert!(count >= 40, "{count}");
    }
}
