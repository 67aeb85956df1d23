//! Two scripts side by side: which traffic lands elsewhere, which promises change.

use super::cover::{Index, Left, Patience, left};
use super::cube::{Cube, Names, words};
use super::partition::{devices, entries, place};
use super::{Probe, device, promise};
use crate::facts::{Device, Facts, rate};
use std::collections::BTreeSet;

/// Differences of traffic that are written out; there may be more.
const MAX_LINES: usize = 200;

/// What differs on a device between two scripts, a line each; nothing where nothing does.
///
/// The parts of all packets of both are laid over one another: nothing is tried out.
///
/// # Errors
/// One of the two puts no qdisc on the device.
pub fn diff(a: &Facts, b: &Facts, dev: &str) -> Result<Vec<String>, String> {
    let both = (device(a, dev), device(b, dev));
    let (one, two) = match both {
        (Some(one), Some(two)) => (one, two),
        (None, None) => return Err(format!("neither puts a qdisc on {dev}")),
        (None, Some(_)) => {
            return Ok(vec![format!("{dev}: {} puts no qdisc on it, {} does", a.name, b.name)]);
        }
        (Some(_), None) => {
            return Ok(vec![format!("{dev}: {} puts no qdisc on it, {} does", b.name, a.name)]);
        }
    };
    let mut said = traffic(a, b, dev)?;
    said.extend(classes(one, two));
    Ok(said)
}

/// Which traffic lands elsewhere.
fn traffic(a: &Facts, b: &Facts, dev: &str) -> Result<Vec<String>, String> {
    // One set of names for both.
    let mut names = Names::default();
    for facts in [a, b] {
        let facts = facts.having(dev);
        device(facts, dev).into_iter().for_each(|d| devices(facts, d, &mut names));
    }
    let first = entries(a, dev, names)?;
    let second = entries(b, dev, first.names.clone())?;
    let names = &second.names;
    let (mut before_a, mut all_b) = (Index::default(), Index::default());
    second.entries.iter().for_each(|e| all_b.push(&e.cube));
    let mut said = Vec::new();
    let mut seen = BTreeSet::new();
    let mut patience = Patience::new(first.entries.len() + second.entries.len());
    for x in &first.entries {
        let earlier: Vec<usize> = before_a.meeting(&x.cube);
        let theirs = all_b.meeting(&x.cube);
        for (n, &j) in theirs.iter().enumerate() {
            let y = &second.entries[j];
            let (from, to) = (place(&x.to), place(&y.to));
            if from == to {
                continue;
            }
            let Some(cube) = x.cube.and(&y.cube) else { continue };
            let mut others: Vec<&Cube> = earlier.iter().map(|&i| before_a.get(i)).collect();
            others.extend(theirs[..n].iter().map(|&i| all_b.get(i)));
            let example = match left(&cube, &others, &mut patience) {
                Left::Nothing => continue,
                Left::Some(found) => Probe::of(&found, names).map(|p| format!("   ({})", p.text())),
                Left::Unknown => Some("   (perhaps)".to_owned()),
            };
            let line = format!("{}: {from} -> {to}{}", words(&cube, names), example.unwrap_or_default());
            if seen.insert(line.clone()) {
                said.push(line);
            }
            if said.len() >= MAX_LINES {
                said.push("and more".to_owned());
                return Ok(said);
            }
        }
        before_a.push(&x.cube);
    }
    Ok(said)
}

fn classes(one: &Device, two: &Device) -> Vec<String> {
    let ids: BTreeSet<_> = one.by_id.keys().chain(two.by_id.keys()).copied().collect();
    let mut said = Vec::new();
    for id in ids {
        match (one.class(id), two.class(id)) {
            (Some(x), Some(y)) => {
                if (x.rate(), x.ceil()) != (y.rate(), y.ceil()) {
                    said.push(format!(
                        "class {id}: rate {} ceil {} -> rate {} ceil {}",
                        rate(x.rate()),
                        rate(x.ceil()),
                        rate(y.rate()),
                        rate(y.ceil())
                    ));
                }
                for name in ["prio", "quantum", "buffer", "cbuffer"] {
                    let n = |c: &crate::facts::Class| c.options.u32(name).unwrap_or(0);
                    let same_rate = (x.rate(), x.ceil()) == (y.rate(), y.ceil());
                    // Bursts and quanta follow the rate where nobody gives them.
                    if n(x) != n(y) && (name == "prio" || same_rate) {
                        said.push(format!("class {id}: {name} {} -> {}", n(x), n(y)));
                    }
                }
                let queue = |d: &Device| {
                    d.leaf(id).map_or("pfifo".to_owned(), |q| match q.options.u32("limit") {
                        Some(limit) => format!("{} limit {limit}", q.kind),
                        None => q.kind.to_owned(),
                    })
                };
                if x.children.is_empty() && y.children.is_empty() && queue(one) != queue(two) {
                    said.push(format!("class {id}: queue {} -> {}", queue(one), queue(two)));
                }
                let perturb = |d: &Device| d.leaf(id).and_then(|q| q.options.i64("perturb"));
                if perturb(one) != perturb(two) {
                    let text = |p: Option<i64>| p.map_or("none".to_owned(), |p| p.to_string());
                    said.push(format!(
                        "class {id}: perturb {} -> {}",
                        text(perturb(one)),
                        text(perturb(two))
                    ));
                }
                let wait = |d: &Device, c| promise::wait(d, c, None).map(|w| w.ns.div_ceil(1_000_000));
                if let (Some(x), Some(y)) = (wait(one, x), wait(two, y))
                    && x != y
                {
                    said.push(format!("class {id}: waits at most {x} ms -> {y} ms"));
                }
            }
            (Some(_), None) => said.push(format!("class {id}: gone")),
            (None, _) => said.push(format!("class {id}: new")),
        }
    }
    let root = |d: &Device| {
        d.root().map_or("none".to_owned(), |q| match q.options.i64("perturb") {
            Some(perturb) => format!("{} perturb {perturb}", q.kind),
            None => q.kind.to_owned(),
        })
    };
    if root(one) != root(two) {
        said.push(format!("root: {} -> {}", root(one), root(two)));
    }
    said
}
