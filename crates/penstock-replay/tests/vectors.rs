//! Every recorded vector, replayed: order, drops, times to the nanosecond, counters as printed.

use penstock_model::Rng;
use penstock_replay::vectors::Vector;
use penstock_replay::{self as replay, chance, vectors};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;

/// How many differing vectors are shown.
const SHOWN: usize = 5;
/// Exact vectors a kind has at least, but for those of which there are only so many.
const LEAST: usize = 300;
const FEWER: [(&str, usize); 2] = [("by_hand", 100), ("cbq", 60)];
/// Of a kernel beside the main one this many of a kind that both have: most of it is the same code.
const BESIDE: usize = 14;
const OF_ONE_KERNEL: [&str; 1] = ["7.2/dualpi2"];
/// Throws of ours that are compared with the kernel's.
const THROWS: u64 = 40;

#[test]
fn vectors_are_exact() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let all = vectors::load(&folder).expect("vectors can be read");
    let exact: Vec<&Vector> = all.iter().filter(|v| v.exact()).collect();
    let mut tally: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut faults = Vec::new();
    let listed = std::fs::read_to_string(folder.join("differences.txt")).expect("the list can be read");
    let listed: Vec<&str> = listed.lines().filter_map(|l| Some(l.split_once(':')?.0)).collect();
    for (vector, differences) in exact.iter().zip(parallel(&exact, Vector::replay)) {
        let (exact, count) = tally.entry(&vector.kind).or_default();
        *count += 1;
        let known = listed.contains(&format!("{} {}", vector.kind, vector.value["case"]).as_str());
        if differences.is_empty() {
            *exact += 1;
        }
        if differences.is_empty() && known {
            faults.push(format!("{} agrees: take it off the list", vector.place));
        } else if !differences.is_empty() && !known {
            faults.push(format!("{}\n    {}", vector.place, differences.join("\n    ")));
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
    for (kind, (_, count)) in &tally {
        let beside = kind.contains('/') && !OF_ONE_KERNEL.contains(kind);
        let least = if beside { BESIDE } else { LEAST };
        let least = FEWER.iter().find(|f| f.0 == *kind).map_or(least, |f| f.1);
        assert!(*count >= least, "{kind} has fewer than {least} vectors: {count}");
    }
}

/// What `work` makes of each, on every core.
fn parallel<T: Send>(all: &[&Vector], work: impl Fn(&Vector) -> T + Sync) -> Vec<T> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let work = &work;
    thread::scope(|scope| {
        let part = |part| scope.spawn(move || <[&Vector]>::iter(part).map(|v| work(v)).collect::<Vec<_>>());
        let parts: Vec<_> = all.chunks(all.len().div_ceil(cores).max(1)).map(part).collect();
        parts.into_iter().flat_map(|p| p.join().expect("no replay panics")).collect()
    })
}

#[test]
fn where_the_kernel_rolls_dice_ours_come_from_the_same_distribution() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let all = vectors::load(&folder).expect("vectors can be read");
    let mut files: BTreeMap<&str, Vec<&Vector>> = BTreeMap::new();
    all.iter().filter(|v| !v.exact()).for_each(|v| files.entry(&v.kind).or_default().push(v));
    let mut faults = Vec::new();
    for (kind, cases) in files {
        let sampled = parallel(&cases, |v| v.chance(THROWS).unwrap_or_else(|e| panic!("{}: {e}", v.place)));
        let [order, counters] = chance::p_values(&sampled);
        println!("{kind:12} {:3} cases: p {order:.3} by order, {counters:.3} by counters", cases.len());
        if order <= 0.01 || counters <= 0.01 {
            faults.push(format!("{kind}: p {order} by order, {counters} by counters"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Every part of a specification in turn becomes something else: an answer or a refusal, never a panic.
#[test]
fn nonsense_is_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    let all = vectors::load(&folder).expect("vectors can be read");
    let odd = [
        json!(null),
        json!(-1),
        json!(1e300),
        json!(0.5),
        json!("x"),
        json!("1:1"),
        json!([]),
        json!({}),
        json!(70000),
    ];
    let mut dice = Rng::named(1, "nonsense");
    let mut tried = 0;
    for vector in &all {
        for _ in 0..4 {
            let mut spec = vector.value["spec"].clone();
            let place = pick_place(&mut spec, &mut dice);
            *place = odd[dice.below(odd.len() as u32) as usize].clone();
            // To wait for a day beside a gate that moves each microsecond takes its time.
            if spec["drain_s"].as_f64().is_some_and(|s| s > 60.0) {
                spec["drain_s"] = json!(60);
            }
            if replay::run(&spec).is_err_and(|refusal| refusal.message.is_empty()) {
                panic!("a refusal without a word: {spec}");
            }
            tried += 1;
        }
    }
    assert!(tried > 1000);
}

/// Some part of a value, or the whole.
fn pick_place<'a>(value: &'a mut Value, dice: &mut Rng) -> &'a mut Value {
    let parts = match value {
        Value::Array(list) => list.len(),
        Value::Object(map) => map.len(),
        _ => 0,
    };
    if parts == 0 || dice.below(10) == 0 {
        return value;
    }
    let n = dice.below(parts as u32) as usize;
    match value {
        Value::Array(list) => pick_place(&mut list[n], dice),
        Value::Object(map) => pick_place(map.values_mut().nth(n).expect("it has so many"), dice),
        _ => unreachable!("it has no parts"),
    }
}
