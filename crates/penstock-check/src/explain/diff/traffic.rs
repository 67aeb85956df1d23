//! Which traffic lands elsewhere: the exact sets.

use super::filters::Marks;
use crate::explain::cover::{Index, Left, Patience, left};
use crate::explain::cube::{Cube, Names, Place, words};
use crate::explain::diagram::{Differing, List, differing};
use crate::explain::partition::{arriving, devices, entries, place};
use crate::explain::space::Entry;
use crate::explain::words::folded;
use crate::explain::{Probe, device};
use crate::facts::Facts;
use std::collections::BTreeSet;

/// Differences that are written out; there may be more.
const MAX_LINES: usize = 200;

/// Where packets go, and what is done to them on the way: a number of [`Marks`].
type Goes = (String, Option<usize>);

/// Which traffic lands elsewhere, a line for each set.
pub fn traffic(a: &Facts, b: &Facts, dev: &str, marks: &Marks) -> Result<Vec<String>, String> {
    // One set of names for both.
    let mut names = Names::default();
    for facts in [a, b] {
        let all = facts.devices.iter().filter(|d| d.name == dev);
        all.for_each(|d| devices(facts, d, &mut names));
    }
    let mut said = Vec::new();
    if device(a, dev).is_some() && device(b, dev).is_some() {
        let first = entries(a, dev, names.clone())?;
        let second = entries(b, dev, first.names.clone())?;
        let cut = first.cut || second.cut;
        said.extend(compared("", &first.entries, &second.entries, marks, &second.names, cut));
        names = second.names;
    }
    let first = arriving(a, dev, names);
    let second = arriving(b, dev, first.names.clone());
    let cut = first.cut || second.cut;
    said.extend(compared("arriving, ", &first.entries, &second.entries, marks, &second.names, cut));
    Ok(said)
}

fn compared(
    head: &str,
    one: &[Entry],
    two: &[Entry],
    marks: &Marks,
    names: &Names,
    cut: bool,
) -> Vec<String> {
    let list = |entries: &[Entry], side: usize| -> List<Goes> {
        let goes = |e: &Entry| (place(&e.to), e.by.and_then(|by| marks[side].get(&by).copied()));
        entries.iter().map(|e| (e.cube.clone(), goes(e))).collect()
    };
    let (x, y) = (list(one, 0), list(two, 1));
    let mut said = match differing(&x, &y) {
        Some(all) => exact(head, &all, names),
        None => boxes(head, &x, &y, names),
    };
    if cut {
        said.push(format!("{head}there are more sets of packets than are compared: perhaps more differs"));
    }
    said
}

/// What is done besides, where only that differs.
fn ends(from: &Goes, to: &Goes) -> (String, String) {
    if from.0 != to.0 {
        return (from.0.clone(), to.0.clone());
    }
    let one = |g: &Goes| match g.1 {
        Some(_) => format!("{} with actions", g.0),
        None => g.0.clone(),
    };
    match (one(from), one(to)) {
        (a, b) if a == b => (a, format!("{b} of another filter")),
        both => both,
    }
}

fn exact(head: &str, all: &[Differing<Goes>], names: &Names) -> Vec<String> {
    let mut said = Vec::new();
    let mut patience = Patience::new(all.len());
    for one in all {
        let (from, to) = ends(&one.from, &one.to);
        let lines: Vec<(String, Option<Cube>)> = if one.without.is_empty() {
            folded(&one.cubes, names).into_iter().map(|(text, cube)| (text, Some(cube))).collect()
        } else {
            one.cubes.iter().map(|cube| without(cube, &one.without, names, &mut patience)).collect()
        };
        for (text, example) in lines {
            let example = example.and_then(|cube| told(&cube, names)).unwrap_or_default();
            said.push(format!("{head}{text}: {from} -> {to}{example}"));
            if said.len() >= MAX_LINES {
                said.push("and more".to_owned());
                return said;
            }
        }
    }
    said
}

/// A set less others, and a part of it that is in none of them.
fn without(cube: &Cube, less: &[Cube], names: &Names, patience: &mut Patience) -> (String, Option<Cube>) {
    let less: Vec<&Cube> = less.iter().filter(|l| l.meets(cube)).collect();
    let example = match left(cube, &less, patience) {
        Left::Some(found) => Some(found),
        Left::Nothing | Left::Unknown => None,
    };
    let own = words(cube, names);
    // What both ask for is said once; which fields the bits are hangs on the protocol.
    let of = |b: &&(Place, u32, u32)| b.0 == Place::Ethertype || !cube.0.contains(b);
    let rest = |l: &Cube| Cube(l.0.iter().filter(of).copied().collect());
    let family = cube.at(Place::Ethertype).0 != 0;
    let short = |text: String| match text.split_once(", ") {
        Some(("ip" | "ipv6", more)) if family => more.to_owned(),
        _ => text,
    };
    let mut taken: Vec<String> = less.iter().map(|l| short(words(&rest(l), names))).collect();
    taken.dedup();
    let text = if taken.is_empty() { own } else { format!("{own} without {}", taken.join(" or ")) };
    (text, example)
}

/// Where the exact sets would take too much work: sets that hold them.
fn boxes(head: &str, x: &List<Goes>, y: &List<Goes>, names: &Names) -> Vec<String> {
    let (mut before, mut theirs) = (Index::default(), Index::default());
    y.iter().for_each(|e| theirs.push(&e.0));
    let mut said = Vec::new();
    let mut seen = BTreeSet::new();
    let mut patience = Patience::new(x.len() + y.len());
    for (own, from) in x {
        let earlier: Vec<usize> = before.meeting(own);
        let meeting = theirs.meeting(own);
        for (n, &j) in meeting.iter().enumerate() {
            let (other, to) = &y[j];
            if from == to {
                continue;
            }
            let Some(cube) = own.and(other) else { continue };
            let mut others: Vec<&Cube> = earlier.iter().map(|&i| before.get(i)).collect();
            others.extend(meeting[..n].iter().map(|&i| theirs.get(i)));
            let example = match left(&cube, &others, &mut patience) {
                Left::Nothing => continue,
                Left::Some(found) => told(&found, names),
                Left::Unknown => Some("   (perhaps)".to_owned()),
            };
            let (from, to) = ends(from, to);
            let text = words(&cube, names);
            let line = format!("{head}within {text}: {from} -> {to}{}", example.unwrap_or_default());
            if seen.insert(line.clone()) {
                said.push(line);
            }
            if said.len() >= MAX_LINES {
                said.push("and more".to_owned());
                return said;
            }
        }
        before.push(own);
    }
    said
}

/// A packet of a set behind its line; `None` where the words for packets tell less than the set asks.
fn told(cube: &Cube, names: &Names) -> Option<String> {
    let text = Probe::of(cube, names)?.text();
    let read = Probe::parse(&text).ok()?;
    // No TCP packet is shorter than its headers.
    if read.protocol == 6 && read.len < if read.src.is_ipv4() { 40 } else { 60 } {
        return None;
    }
    // The priority of a packet made here has no word.
    let priority = cube.at(Place::Priority).1;
    cube.holds(&Probe { priority, ..read }, names).then(|| format!("   ({text})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::IP6;

    #[test]
    fn packets_that_are_not_meant_are_told_in_the_words_of_their_protocol() {
        let six = Cube::ethertype(IP6).and(&Cube::of(Place::Word(24), u32::MAX, 0x2001_0db8)).unwrap();
        let less = six.and(&Cube::of(Place::Word(4), 0xff00, 0x1100)).unwrap();
        let (text, example) = without(&six, &[less], &Names::default(), &mut Patience::new(2));
        assert_eq!(text, "ipv6, dst 2001:db8::/32 without udp");
        assert!(example.is_some());
    }
}
