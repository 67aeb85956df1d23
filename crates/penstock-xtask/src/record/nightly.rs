//! The part of `cargo xtask nightly` that holds new random cases against the real kernel.
//!
//! A case whose answers differ is made small: packets, commands and repetitions go as long as ours and the kernel's still
//! differ. Both forms are kept.

use super::{Kernel, kinds};
use anyhow::{Context, Result, bail};
use penstock_replay::vectors::judge;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long, and where what differs goes.
pub struct Args {
    /// Kinds; all without one.
    pub kinds: Vec<String>,
    /// How long.
    pub time: Duration,
    /// Number of the first case.
    pub first: u64,
    /// Program that runs a command inside the kernel.
    pub runner: PathBuf,
    /// The probe.
    pub probe: PathBuf,
    /// Folder to work in.
    pub scratch: PathBuf,
    /// Folder for what differs: `KIND-NUMBER.json` with `spec`, `expected`, `differences`, and `whole`, the case as it was.
    pub keep: PathBuf,
}

/// Cases in one boot.
const BATCH: usize = 40;
/// Seeds of the kernel's dice: a case whose answer hangs on them is left to the distributions.
const SEEDS: [u64; 2] = [1, 2];
/// More of them, for a case that differs: where the dice fall alike in most throws, two tell nothing.
const MORE_SEEDS: [u64; 8] = [1, 3, 4, 5, 6, 7, 8, 9];
/// Cases in one boot while one is made small.
const TRIED: usize = 150;
/// Steps of making a case small.
const STEPS: usize = 16;

/// Runs until the time is over; answers what was done.
///
/// # Errors
/// Some cases differ, or the kernel cannot be asked.
pub fn run(args: &Args) -> Result<String> {
    let mut kinds: Vec<&str> = args.kinds.iter().map(String::as_str).collect();
    if kinds.is_empty() {
        kinds = kinds::all(penstock_model::Kernel::V6_12)
            .into_iter()
            .filter(|k| !k.ends_with(super::DICE))
            .collect();
    }
    let kernel = Kernel::new(&args.runner, &args.probe, &args.scratch)?;
    let mut next = args.first;
    let end = Instant::now() + args.time;
    let (mut cases, mut dice, mut found) = (0, 0, 0);
    while Instant::now() < end {
        let mut batch = Vec::new();
        while batch.len() < BATCH {
            for &kind in &kinds {
                let spec =
                    kinds::generate(kind, next).with_context(|| format!("no generator for kind {kind:?}"))?;
                batch.push((kind, next, spec));
            }
            next += 1;
        }
        let specs: Vec<&Value> = batch.iter().map(|c| &c.2).collect();
        let answers = kernel.run(&specs, SEEDS[0])?;
        let others = kernel.run(&specs, SEEDS[1])?;
        for (((kind, n, spec), answer), other) in batch.iter().zip(&answers).zip(&others) {
            cases += 1;
            if answer != other {
                dice += 1;
                continue;
            }
            let differences = judge(spec, &[answer]);
            if !differences.is_empty() {
                if hangs_on_dice(&kernel, spec)? {
                    dice += 1;
                    continue;
                }
                found += 1;
                // Alone it may agree: what went before it in the same boot had a part in it.
                let whole = || Small { spec: spec.clone(), expected: answer.clone(), differences };
                let small = smallest(&kernel, spec)?.unwrap_or_else(whole);
                keep(&args.keep, &format!("{kind}-{n}"), spec, &small)?;
            }
        }
        eprintln!("nightly: {cases} cases, {dice} hang on dice, {found} differ");
    }
    if found > 0 {
        bail!("{found} of {cases} cases differ; they are in {}", args.keep.display());
    }
    Ok(format!("{cases} cases from number {}, {dice} hang on dice", args.first))
}

/// Whether the kernel's answers to a case alone in a boot are not the same under every seed.
fn hangs_on_dice(kernel: &Kernel, spec: &Value) -> Result<bool> {
    let first = kernel.run(&[spec], MORE_SEEDS[0])?;
    for &seed in &MORE_SEEDS[1..] {
        if kernel.run(&[spec], seed)? != first {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A case that differs.
struct Small {
    spec: Value,
    expected: Value,
    differences: Vec<String>,
}

fn keep(folder: &Path, name: &str, whole: &Value, small: &Small) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("{name}.json"));
    let Small { spec, expected, differences } = small;
    let file = json!({"spec": spec, "expected": expected, "differences": differences, "whole": whole});
    std::fs::write(&path, format!("{file:#}\n"))?;
    println!("{}\n    {}", path.display(), differences.join("\n    "));
    Ok(())
}

/// The smallest case found that still differs; `None` where alone it does not.
fn smallest(kernel: &Kernel, spec: &Value) -> Result<Option<Small>> {
    // Of those that differ the one that is shortest.
    let look = |specs: &[Value]| -> Result<Option<Small>> {
        let answers = kernel.run(&specs.iter().collect::<Vec<_>>(), SEEDS[0])?;
        let differing = specs.iter().zip(answers).filter_map(|(spec, expected)| {
            let differences = judge(spec, &[&expected]);
            (!differences.is_empty()).then(|| Small { spec: spec.clone(), expected, differences })
        });
        Ok(differing.min_by_key(|s| s.spec.to_string().len()))
    };
    let Some(mut small) = look(std::slice::from_ref(spec))? else { return Ok(None) };
    for _ in 0..STEPS {
        let mut better = None;
        for tried in smaller(&small.spec).chunks(TRIED) {
            better = look(tried)?;
            if better.is_some() {
                break;
            }
        }
        match better {
            Some(found) => small = found,
            None => break,
        }
    }
    Ok(Some(small))
}

/// Cases with something less, those with much less first.
fn smaller(spec: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    for list in ["packets", "setup"] {
        let n = spec[list].as_array().map_or(0, Vec::len);
        let mut size = n / 2;
        while size > 0 {
            for start in (0..n).step_by(size) {
                let mut less = spec.clone();
                if let Some(items) = less[list].as_array_mut() {
                    items.drain(start..(start + size).min(n));
                }
                all.push(less);
            }
            size /= 2;
        }
    }
    for n in 0..spec["packets"].as_array().map_or(0, Vec::len) {
        let repeat = spec["packets"][n]["repeat"].as_u64().unwrap_or(1);
        for fewer in [1, repeat / 2, repeat - 1] {
            if (1..repeat).contains(&fewer) {
                let mut less = spec.clone();
                less["packets"][n]["repeat"] = json!(fewer);
                all.push(less);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_cases_have_less() {
        let spec =
            json!({"setup": ["a", "b"], "packets": [{"t_us": 0, "repeat": 8}, {"t_us": 1}, {"t_us": 2}]});
        let all = smaller(&spec);
        let size = |v: &Value| v.to_string().len();
        assert!(all.iter().all(|less| size(less) <= size(&spec) && *less != spec));
        assert!(all.iter().any(|less| less["packets"][0]["repeat"] == 4));
        assert!(all.iter().any(|less| less["setup"] == json!(["b"])));
    }
}
