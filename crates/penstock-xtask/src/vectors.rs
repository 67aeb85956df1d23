//! `cargo xtask vectors`: replays recorded vectors and prints where the answers differ.

use anyhow::{Result, bail};
use penstock_replay::{self as replay, chance};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which vectors.
#[derive(clap::Args)]
pub struct Args {
    /// Kind; all of them without it
    kind: Option<String>,
    /// Number of the one vector to look at
    number: Option<u64>,
    /// Folder of the vectors
    #[arg(long, default_value = "vectors")]
    folder: PathBuf,
    /// Print at most so many that differ
    #[arg(long, default_value_t = 10)]
    shown: usize,
    /// Print the specification and the answer too
    #[arg(long)]
    full: bool,
}

/// Throws of ours where the kernel rolls dice.
const THROWS: u64 = 100;

/// Replays and prints.
pub fn run(args: &Args) -> Result<()> {
    let all = replay::vectors::load(&args.folder).map_err(anyhow::Error::msg)?;
    let mut tally: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut shown = 0;
    let chosen = all.iter().filter(|v| {
        args.kind.as_ref().is_none_or(|k| *k == v.kind) && args.number.is_none_or(|n| v.value["case"] == n)
    });
    for vector in chosen {
        let (exact, count) = tally.entry(&vector.kind).or_default();
        *count += 1;
        let differences = if vector.exact() {
            vector.replay()
        } else {
            let p = vector.chance(THROWS).map(|case| chance::p_values(&[case]));
            match p {
                Ok(p) if p.iter().all(|&p| p > 0.01) => Vec::new(),
                Ok([order, counters]) => vec![format!("p {order:.3} by order, {counters:.3} by counters")],
                Err(why) => vec![why],
            }
        };
        if differences.is_empty() {
            *exact += 1;
        } else if shown < args.shown {
            shown += 1;
            println!("{}{}", vector.place, if vector.exact() { "" } else { " (the kernel rolls dice)" });
            for difference in differences {
                println!("    {difference}");
            }
        }
        if args.full {
            println!("{:#}", vector.value["spec"]);
            match replay::run(&vector.value["spec"]) {
                Ok(answer) => println!("{answer:#}"),
                Err(diagnostic) => println!("{diagnostic}"),
            }
        }
    }
    for (kind, (exact, count)) in &tally {
        println!("{kind:12} {exact:4} of {count:4} agree");
    }
    if tally.is_empty() {
        bail!("no vectors of that name in {}", args.folder.display());
    }
    Ok(())
}
