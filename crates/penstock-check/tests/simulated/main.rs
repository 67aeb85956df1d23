//! Where `explain` says a packet goes is where a simulated router puts it, and what `diff` calls equal is treated equally there.
//!
//! `PENSTOCK_SETS=N` tries so many sets, `PENSTOCK_DIFFS=N` so many pairs.

mod machine;
mod nft;
mod sets;

use machine::{Machine, READY, TAGGED};
use penstock_check::explain::{Explainer, Probe, device, diff, partition};
use penstock_check::{Facts, Settings, facts};
use penstock_model::Handle;
use penstock_shell::Script;
use sets::{Dice, changed, packet, set};

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn read(commands: &[String], wall: bool) -> Facts {
    let text = format!("{READY}{}{}\n", if wall { "" } else { TAGGED }, commands.join("\n"));
    let facts = facts(&Script { text, ..Script::default() }, &Settings::default());
    let refused: Vec<String> = facts
        .steps
        .iter()
        .filter(|s| !s.ok())
        .map(|s| format!("{}: {}", s.text(), s.output.stderr))
        .collect();
    assert!(refused.is_empty(), "{refused:?}");
    facts
}

fn probe(dice: &mut Dice, wall: bool) -> Probe {
    let (text, priority) = packet(dice, wall);
    let mut probe = Probe::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
    probe.priority = priority;
    probe
}

/// The leaf of the classes that took a packet: none of the others is below it.
fn leaf(facts: &Facts, took: &(Vec<Handle>, String)) -> String {
    let eth0 = device(facts, "eth0").expect("a shaped device");
    // A fair queue's flows are no classes that anything is sorted into.
    let known: Vec<Handle> = took.0.iter().copied().filter(|id| eth0.class(*id).is_some()).collect();
    let is_leaf = |id: &&Handle| {
        let children = eth0.class(**id).map_or(&[][..], |c| c.children.as_slice());
        let inner = eth0.leaf(**id).map(|q| q.handle);
        !known.iter().any(|o| children.contains(o) || inner == Some(o.qdisc()) && o != *id)
    };
    known.iter().find(is_leaf).map_or_else(|| took.1.clone(), ToString::to_string)
}

#[test]
fn packets_go_where_explain_and_the_parts_say() {
    packets_go_where_it_is_said(1000, number("PENSTOCK_SETS", 24), set);
}

#[test]
fn packets_go_where_rules_of_nft_send_them() {
    packets_go_where_it_is_said(80_000, number("PENSTOCK_SETS", 40), nft::set);
}

fn packets_go_where_it_is_said(seed: u64, rounds: usize, set: fn(&mut Dice) -> (Vec<String>, bool)) {
    let (mut tried, mut cut, mut wrong) = (0, 0, String::new());
    let from = number("PENSTOCK_SETS_FROM", 0);
    for round in from..from + rounds {
        let mut dice = Dice(seed + round as u64);
        let (commands, wall) = set(&mut dice);
        let (mut machine, kept) = Machine::new(&commands, wall);
        let facts = read(&kept, wall);
        let Ok(explainer) = Explainer::new(&facts, "eth0") else { continue };
        if rounds == 1 {
            println!("{}", kept.join("\n"));
        }
        let parts = partition(&facts, "eth0").unwrap();
        cut += usize::from(parts.cut);
        // Parts have tags where a filter asks for them.
        let tags = kept.iter().any(|l| l.contains("802.1q") || l.contains("meta(vlan"));
        // What bytecode asks, and a priority that follows from the code point, are no sets of bits.
        let bytecode = kept.iter().any(|l| l.contains(" bpf ") || l.contains("inheritdsfield"));
        for _ in 0..34 {
            let probe = probe(&mut dice, wall);
            let went = leaf(&facts, &machine.took(&probe));
            let said = explainer.explain(&probe);
            let place = said.place();
            let class = said.sorted.class.filter(|_| !said.dropped).map(|c| c.to_string());
            tried += 1;
            // What goes to an ifb on its way out comes back behind it: `explain` ends there.
            let away = place.starts_with("sent to");
            let same = away || class.as_ref().map_or(!went.contains(':'), |c| *c == went);
            if !same {
                wrong += &format!(
                    "set {round}: {} prio {}: explain {place}, machine {went}\n",
                    probe.text(),
                    probe.priority
                );
            }
            if parts.cut || bytecode || !tags && !probe.tags.is_empty() {
                continue;
            }
            let of = parts.of(&probe).and_then(|p| parts.class(p)).map(|c| c.to_string());
            if of != class {
                wrong += &format!(
                    "set {round}: {} prio {}: part {of:?}, explain {place}, machine {went}\n",
                    probe.text(),
                    probe.priority
                );
            }
        }
    }
    let lines: Vec<&str> = wrong.lines().collect();
    assert!(
        lines.is_empty(),
        "{} of {tried}, {cut} sets cut\n{}",
        lines.len(),
        lines[..lines.len().min(60)].join("\n")
    );
}

/// Whether a place in `diff`'s words is where the machine put the packet.
fn is_at(said: &str, went: &str) -> bool {
    let said = said.strip_suffix(" with actions").unwrap_or(said);
    let said = said.strip_suffix(" of another filter").unwrap_or(said);
    match (said.contains(':'), went.contains(':')) {
        (true, _) if said.contains('-') => went.contains(':'),
        (true, _) | (_, true) => said == went,
        _ => !said.starts_with("to ") || said == went,
    }
}

#[test]
fn what_diff_calls_equal_is_treated_equally_and_what_it_names_is_shown_by_a_packet() {
    let rounds = number("PENSTOCK_DIFFS", 30);
    let (pairs, moved, shown) = what_diff_says_holds(50_000, rounds, set);
    assert!(rounds < 30 || pairs >= 25 && moved >= 10 && shown >= 5, "{pairs} {moved} {shown}");
}

#[test]
fn what_diff_says_of_rules_of_nft_is_shown_by_packets() {
    let rounds = number("PENSTOCK_DIFFS", 24);
    let (pairs, moved, shown) = what_diff_says_holds(90_000, rounds, nft::set);
    assert!(rounds < 24 || pairs >= 20 && moved >= 5 && shown >= 3, "{pairs} {moved} {shown}");
}

/// Pairs that were looked at, packets that move, lines that a packet showed.
fn what_diff_says_holds(
    seed: u64,
    rounds: usize,
    set: fn(&mut Dice) -> (Vec<String>, bool),
) -> (usize, usize, usize) {
    let from = number("PENSTOCK_DIFFS_FROM", 0);
    let (mut pairs, mut equal, mut moved, mut shown, mut wrong) = (0, 0, 0, 0, String::new());
    for round in from..from + rounds {
        let mut dice = Dice(seed + round as u64);
        let (commands, wall) = set(&mut dice);
        let (mut before, old) = Machine::new(&commands, wall);
        let (mut after, new) = Machine::new(&changed(&mut dice, &old), wall);
        let (a, b) = (read(&old, wall), read(&new, wall));
        if device(&a, "eth0").is_none() || device(&b, "eth0").is_none() {
            continue;
        }
        let said = diff(&a, &b, "eth0").unwrap();
        if rounds == 1 {
            println!("{}\n--\n{}\n--\n{}", old.join("\n"), new.join("\n"), said.join("\n"));
        }
        pairs += 1;
        equal += usize::from(said.is_empty());
        let mut places = |p: &Probe| (leaf(&a, &before.took(p)), leaf(&b, &after.took(p)));
        // Rules of nft are also compared as they are written: the traffic is to be said all the same.
        let tells = said.iter().any(|l| !l.contains(": waits at most") && !l.starts_with("nft: "));
        for _ in 0..24 {
            let probe = probe(&mut dice, wall);
            let (x, y) = places(&probe);
            moved += usize::from(x != y);
            if x != y && !tells {
                wrong += &format!(
                    "pair {round}: {} prio {}: {x} -> {y} and nothing is said\n",
                    probe.text(),
                    probe.priority
                );
            }
        }
        for line in
            said.iter().filter(|l| l.ends_with(')') && !l.contains("(perhaps)") && !l.starts_with("arriving"))
        {
            let Some((head, example)) = line.rsplit_once("   (") else { continue };
            let Ok(mut probe) = Probe::parse(example.trim_end_matches(')')) else { continue };
            let Some((from, to)) = head.rsplit_once(": ").and_then(|h| h.1.split_once(" -> ")) else {
                continue;
            };
            // A tag leaves by a device that the set has, a packet comes in by one that is there.
            let tags = probe.tags.iter().all(|t| matches!(t.1 & 0xfff, 10 | 99) && t.0 == 0x8100)
                && probe.tags.len() < 2;
            let comes = probe.input.as_deref().is_none_or(|dev| matches!(dev, "eth1" | "eth2"));
            if !tags || !comes || probe.connmark.is_some() || wall && !probe.tags.is_empty() {
                continue;
            }
            shown += 1;
            // The words for packets have none for the priority of one that is made here.
            let most = if head.contains("priority") && probe.input.is_none() { 16 } else { 1 };
            let (mut x, mut y) = (String::new(), String::new());
            let is_shown = (0..most).any(|priority| {
                probe.priority = priority;
                (x, y) = places(&probe);
                is_at(from, &x) && is_at(to, &y)
            });
            if !is_shown {
                wrong += &format!("pair {round}: {line}: the machine {x} -> {y}\n");
            }
        }
    }
    let lines: Vec<&str> = wrong.lines().collect();
    println!("{pairs} pairs, {equal} equal, {moved} packets that move, {shown} lines shown by a packet");
    assert!(
        lines.is_empty(),
        "{} of {pairs} pairs\n{}",
        lines.len(),
        lines[..lines.len().min(80)].join("\n")
    );
    (pairs, moved, shown)
}
