//! Every recorded vector, replayed: order, drops, times to the nanosecond, counters as printed.

use penstock_lab::replay::vectors;
use std::collections::BTreeMap;
use std::path::Path;

/// How many differing vectors are shown.
const SHOWN: usize = 5;
/// Exact vectors a kind has at least.
const LEAST: usize = 60;

#[test]
fn vectors_are_exact() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let all = vectors::load(&folder).expect("vectors can be read");
    let mut tally: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut faults = Vec::new();
    for vector in all.iter().filter(|v| v.exact()) {
        let (exact, count) = tally.entry(&vector.kind).or_default();
        *count += 1;
        let differences = vector.replay();
        if differences.is_empty() {
            *exact += 1;
        } else {
            faults.push(format!("{}\n    {}", vector.path.display(), differences.join("\n    ")));
        }
    }
    for (kind, (exact, count)) in &tally {
        println!("{kind:12} {exact:4} of {count:4} exact");
    }
    assert!(
        faults.is_empty(),
        "{} vectors differ, the first of them:\n{}",
        faults.len(),
        faults[..faults.len().min(SHOWN)].join("\n")
    );
    assert!(
        tally.values().all(|&(_, count)| count >= LEAST),
        "a kind has fewer than {LEAST} vectors: {tally:?}"
    );
}

#[test]
fn where_the_kernel_rolls_dice_the_distributions_agree() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let all = vectors::load(&folder).expect("vectors can be read");
    let mut faults = Vec::new();
    let mut count = 0;
    for vector in all.iter().filter(|v| !v.exact()) {
        count += 1;
        let differences = vector.compare_distributions(60);
        if !differences.is_empty() {
            faults.push(format!("{}\n    {}", vector.path.display(), differences.join("\n    ")));
        }
    }
    println!("{count} cases in which the kernel rolls dice");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
