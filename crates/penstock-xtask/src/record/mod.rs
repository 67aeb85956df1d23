//! `cargo xtask record`: vectors from the real kernel in exact virtual time.
//!
//! Random configurations and packet sequences go through the kernel's own qdiscs; what came out is written to
//! `vectors/KIND.jsonl`, specification and answer in one line. A case counts as exact when the kernel gives the
//! same answer under every seed asked for, wherever in a boot it stands; of the others those of the kinds that end in `_dice` are kept, with the answers
//! under each seed side by side, to be compared as distributions.

mod actions;
mod aqm;
mod arrive;
mod by_grammar;
mod cake;
mod cbs;
mod chance;
mod classify;
mod deep;
mod dice;
mod dualpi2;
mod edits;
mod etf;
mod ets;
mod fq_pie;
mod gso;
mod hfsc;
mod hhf;
mod htb;
mod kinds;
mod matches;
mod midway;
mod mixed;
mod mq;
mod multiq;
mod nest;
mod netem;
pub mod nightly;
mod paced;
mod packets;
mod plug;
mod qfq;
mod seldom;
mod skbprio;
mod taprio;
mod wide;
mod wraps;

use anyhow::{Context, Result, bail};
use penstock_replay as replay;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to record.
#[derive(clap::Args)]
pub struct Args {
    /// Kinds, or "all"
    kinds: Vec<String>,
    /// Cases a kind
    #[arg(long, default_value_t = 60)]
    count: u64,
    /// Number of the first case
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// Seeds of the kernel's own randomness
    #[arg(long, value_delimiter = ',', default_value = "1,2,3")]
    seeds: Vec<u64>,
    /// Program that runs a command inside the kernel: `RUNNER --engine sim --seed N --share DIR -- COMMAND`
    #[arg(long, env = "PENSTOCK_RUNNER")]
    runner: PathBuf,
    /// The probe: `python3 PROBE SPEC.json OUT.json`
    #[arg(long, env = "PENSTOCK_PROBE")]
    probe: PathBuf,
    /// Folder to work in; made if need be
    #[arg(long, default_value = "target/record")]
    scratch: PathBuf,
    /// Keep at most so many cases a kind in which a command is refused
    #[arg(long, default_value_t = 6)]
    refused: u64,
    /// Cases in one boot
    #[arg(long, default_value_t = 40)]
    batch: usize,
    /// Store nothing: hold our answers against the kernel's, print where they differ, count what hangs on dice
    #[arg(long)]
    live: bool,
    /// Only write the specifications into the folder to work in
    #[arg(long)]
    dry: bool,
    /// Which kernel the runner runs
    #[arg(long, default_value = "6.12")]
    profile: String,
    /// Folder of the vectors; default vectors, and of another kernel than 6.12 one of its name in it
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Records.
pub fn run(args: &Args) -> Result<()> {
    let profile = penstock_model::Kernel::parse(&args.profile).ok();
    let profile = profile.filter(|k| replay::Ground::ALL.iter().any(|ground| ground.kernel == *k));
    let profile =
        profile.with_context(|| format!("no packets are recorded of a kernel {:?}", args.profile))?;
    let main = profile == penstock_model::Kernel::V6_12;
    let below = if main { PathBuf::from("vectors") } else { PathBuf::from("vectors").join(profile.name()) };
    let out = args.out.clone().unwrap_or(below);
    let kinds: Vec<&str> = if args.kinds.iter().any(|k| k == "all") {
        kinds::all(profile)
    } else {
        args.kinds.iter().map(String::as_str).collect()
    };
    let mut cases = Vec::new();
    for kind in kinds {
        for n in args.first..args.first + args.count {
            let spec = kinds::generate(kind, n);
            let mut spec = spec.with_context(|| format!("no generator for kind {kind:?}"))?;
            if !main {
                spec["kernel"] = json!(profile.name());
            }
            cases.push(Case { kind: kind.to_owned(), n, spec });
        }
    }
    std::fs::create_dir_all(&args.scratch).with_context(|| args.scratch.display().to_string())?;
    if args.dry {
        for case in &cases {
            let path = args.scratch.join(format!("{}-{:03}.spec.json", case.kind, case.n));
            std::fs::write(&path, case.spec.to_string())?;
        }
        return Ok(());
    }
    let kernel = Kernel::new(&args.runner, &args.probe, &args.scratch)?;
    let (mut exact, mut dice) = (0, 0);
    let mut refused: BTreeMap<String, u64> = BTreeMap::new();
    for (number, batch) in cases.chunks(args.batch).enumerate() {
        let specs: Vec<&Value> = batch.iter().map(|c| &c.spec).collect();
        let mut answers: Vec<Vec<Value>> = vec![Vec::new(); batch.len()];
        for &seed in &args.seeds {
            for (all, one) in answers.iter_mut().zip(kernel.run(&specs, seed)?) {
                all.push(one);
            }
        }
        for (case, answers) in
            batch.iter().zip(&mut answers).filter(|(case, _)| HASHED.contains(&case.kind.as_str()))
        {
            case.leave_out_chance(answers);
        }
        if args.live {
            let asked = number * args.batch + batch.len();
            for (case, answers) in batch.iter().zip(&answers) {
                let same = answers.windows(2).all(|w| w[0] == w[1]);
                dice += u64::from(!same);
                exact += u64::from(same && case.agrees(answers));
            }
            eprintln!("record: {asked} of {} cases, {dice} hang on dice, {exact} agree", cases.len());
            continue;
        }
        let mut vectors = Vec::new();
        for (case, answers) in batch.iter().zip(answers) {
            if answers.iter().any(|a| a.get("error").is_some()) {
                let n = refused.entry(case.kind.clone()).or_default();
                *n += 1;
                if *n > args.refused {
                    continue;
                }
            }
            let same = answers.windows(2).all(|w| w[0] == w[1]);
            // What hangs on dice has files of its own.
            if same == case.kind.ends_with(DICE) {
                continue;
            }
            exact += u64::from(same);
            vectors.push(case.vector(answers));
        }
        store(&out, vectors)?;
        eprintln!("record: {} of {} cases, {exact} exact", (number * args.batch + batch.len()), cases.len());
    }
    Ok(())
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).with_context(|| path.display().to_string())
}

/// How the names of those kinds end whose cases hang on the kernel's dice.
const DICE: &str = "_dice";

/// The kinds whose classes are numbered by a hash, and show a remainder that dice have rounded: where that differs from seed to seed, it is left
/// out, and the rest is exact. And one whose dice may fall alike under all seeds that are asked for.
const HASHED: [&str; 5] = ["cake", "cake_mq", "dualpi2", "gso", "gso_dualpi2"];
/// Throws of ours that show whether anything here hangs on dice.
const THROWS: u64 = 8;

struct Case {
    kind: String,
    n: u64,
    spec: Value,
}

impl Case {
    /// Whether our answer is one the kernel gives; prints where not.
    fn agrees(&self, answers: &[Value]) -> bool {
        let recorded: Vec<&Value> = answers.iter().collect();
        let differences = replay::vectors::judge(&self.spec, &recorded);
        if !differences.is_empty() {
            println!("{} {}: {}", self.kind, self.n, differences.join("\n    "));
        }
        differences.is_empty()
    }
    /// Leaves the classes out of the answers where dice decide them, the kernel's or ours. Where ours decide anything else, the answers are
    /// made to differ, so that the case is not kept: not whether ours agrees with the kernel counts, but whether ours is always the same.
    fn leave_out_chance(&self, answers: &mut [Value]) {
        let ours: Vec<Value> =
            (1..=THROWS).filter_map(|seed| replay::run_seeded(&self.spec, seed).ok()).collect();
        let differ = |all: &[Value]| all.windows(2).any(|w| w[0]["classes"] != w[1]["classes"]);
        let by_chance = differ(answers) || differ(&ours);
        let rest = |answer: &Value| {
            let mut rest = answer.clone();
            rest["classes"] = Value::Null;
            rest
        };
        let decided = ours.windows(2).any(|w| rest(&w[0]) != rest(&w[1]));
        for (n, answer) in answers.iter_mut().enumerate().filter(|(_, a)| a.get("error").is_none()) {
            if by_chance {
                answer["classes"] = json!("by chance");
            }
            if decided {
                answer["decided"] = json!(n);
            }
        }
    }
    /// The vector; of answers that hang on dice what can be compared.
    fn vector(&self, answers: Vec<Value>) -> Value {
        let exact = !self.kind.ends_with(DICE);
        let mut m = Map::new();
        m.insert("kind".into(), json!(self.kind));
        m.insert("case".into(), json!(self.n));
        m.insert("exact".into(), json!(exact));
        m.insert("spec".into(), self.spec.clone());
        if exact {
            m.insert("expected".into(), answers.into_iter().next().unwrap_or(Value::Null));
        } else {
            let outcomes = answers.iter().map(replay::chance::outcome).collect();
            m.insert("expected_by_seed".into(), Value::Array(outcomes));
        }
        Value::Object(m)
    }
}

/// Puts vectors into their kinds' files, by number; one of the same number is replaced.
fn store(folder: &Path, vectors: Vec<Value>) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut files: BTreeMap<String, BTreeMap<u64, String>> = BTreeMap::new();
    let number = |v: &Value| v["case"].as_u64().unwrap_or(0);
    for vector in vectors {
        let kind = vector["kind"].as_str().unwrap_or_default().to_owned();
        if !files.contains_key(&kind) {
            let path = folder.join(format!("{kind}.jsonl"));
            let old = if path.exists() {
                replay::vectors::read(&path).map_err(anyhow::Error::msg)?
            } else {
                Vec::new()
            };
            let old = old.iter().map(|v| (number(&v.value), v.value.to_string())).collect();
            files.insert(kind.clone(), old);
        }
        files.entry(kind).or_default().insert(number(&vector), vector.to_string());
    }
    for (kind, lines) in files {
        let text: String = lines.values().map(|line| format!("{line}\n")).collect();
        std::fs::write(folder.join(format!("{kind}.jsonl")), text)?;
    }
    Ok(())
}

/// The real kernel.
pub struct Kernel {
    runner: PathBuf,
    probe: PathBuf,
    scratch: PathBuf,
}

const DRIVER: &str = include_str!("../../record/driver.py");

impl Kernel {
    /// A kernel reached by `runner`, asked by `probe`, with files in `scratch`, which is made if need be.
    pub fn new(runner: &Path, probe: &Path, scratch: &Path) -> Result<Kernel> {
        std::fs::create_dir_all(scratch).with_context(|| scratch.display().to_string())?;
        Ok(Kernel { runner: absolute(runner)?, probe: absolute(probe)?, scratch: absolute(scratch)? })
    }
    /// One boot: the answer to each specification, or `{"error": …}`. Under even seeds they run in the reverse order: what hangs on a
    /// case's place in the boot (timers of the kernel's own a second apart) differs then as what hangs on dice does.
    pub fn run(&self, specs: &[&Value], seed: u64) -> Result<Vec<Value>> {
        let folder = self.scratch.join(format!("seed-{seed}"));
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("driver.py"), DRIVER)?;
        std::fs::copy(&self.probe, folder.join("probe.py"))?;
        let place = |n: usize| if seed.is_multiple_of(2) { specs.len() - 1 - n } else { n };
        for (n, spec) in specs.iter().enumerate() {
            std::fs::write(folder.join(format!("{:04}.spec.json", place(n))), spec.to_string())?;
        }
        let out = Command::new(&self.runner)
            .args(["--engine", "sim", "--seed", &seed.to_string(), "--share"])
            .arg(&folder)
            .args(["--", "python3"])
            .args([folder.join("driver.py"), folder.join("probe.py"), folder.clone()])
            .output()
            .with_context(|| self.runner.display().to_string())?;
        if !out.status.success() {
            bail!("{}: {}", self.runner.display(), String::from_utf8_lossy(&out.stderr));
        }
        (0..specs.len())
            .map(|n| {
                let base = folder.join(format!("{:04}", place(n)));
                if let Ok(error) = std::fs::read_to_string(base.with_extension("err")) {
                    return Ok(json!({ "error": error.trim_end() }));
                }
                let path = base.with_extension("out.json");
                let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                Ok(serde_json::from_str(&text)?)
            })
            .collect()
    }
}
