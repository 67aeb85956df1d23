//! `cargo xtask conformance`: writes `docs/conformance.md` from what is recorded and what of it agrees.

use crate::tidy;
use anyhow::{Context, Result, bail};
use penstock_model::Kernel;
use penstock_replay::{chance, vectors};
use penstock_sched::sch;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

/// Options of `cargo xtask conformance`.
#[derive(clap::Args)]
pub struct Args {
    /// Write nothing; fail where the page is not what would be written
    #[arg(long)]
    check: bool,
}

/// Throws of ours where the kernel rolls dice.
const THROWS: u64 = 40;
/// The page, below the folder of the project.
const PAGE: &str = "docs/conformance.md";

/// Writes or checks the page.
pub fn run(args: &Args) -> Result<()> {
    let path = tidy::root().join(PAGE);
    let page = page(&tidy::root())?;
    if !args.check {
        return std::fs::write(&path, page).with_context(|| path.display().to_string());
    }
    if std::fs::read_to_string(&path).unwrap_or_default() != page {
        bail!("{PAGE} is not what the vectors give: cargo xtask conformance writes it");
    }
    Ok(())
}

/// The whole page.
fn page(root: &Path) -> Result<String> {
    let mut out = String::from(
        "# Conformance\n\n\
         What is compared with a real Linux, how, and where it differs. Written by `cargo xtask conformance` from the recordings in\n\
         `vectors/`; `cargo test` replays every one of them without a kernel.\n",
    );
    packets(root, &mut out)?;
    commands(root, &mut out)?;
    suite(root, &mut out)?;
    segments(root, &mut out)?;
    Ok(out)
}

/// TCP's part.
fn segments(root: &Path, out: &mut String) -> Result<()> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned());
    let scenarios = read("vectors/tcp/scenarios.jsonl")? + &read("vectors/tcp/controls.jsonl")?;
    let differences = read("vectors/tcp/differences.txt")?;
    let ns2 = read("vectors/ns2/scenarios.jsonl")?.lines().count();
    let segments = scenarios.matches(",\">\",").count() + scenarios.matches(",\"<\",").count();
    let known: Vec<&str> = entries(&differences).collect();
    let all = scenarios.lines().count();
    writeln!(
        out,
        "\n## TCP\n\n\
         Linux's own TCP in the same exact virtual time: {all} transfers of Reno, CUBIC, BBR and every other congestion control of 6.12 but DCTCP\n\
         with segments dropped, marked, late or twice by their number, \
         {segments} segments. {} agree to the last\n\
         segment of both directions: sequence number, length, acknowledgement, flags, window, SACK blocks, and times within 0.1 ms; and in the sender's congestion window, slow-start threshold\n\
         and state of recovery after every segment (`cargo test -p penstock-tcp scenarios::`). What was seen\n\
         is in [notes/tcp-linux.md](notes/tcp-linux.md). In profile `ns-2`, {ns2} transfers of ns-2.35's own agents agree packet by packet within 2 us (`ns2::`).\n\n\
         Where the others differ first:\n",
        all - known.len()
    )?;
    for line in known {
        writeln!(out, "{}", item(line))?;
    }
    let drops = read("vectors/tcp/local_drops.jsonl")?;
    let segments = drops.matches(",\">\",").count() + drops.matches(",\"<\",").count();
    let differences = read("vectors/tcp/local_drops_differences.txt")?;
    let known: Vec<&str> = entries(&differences).collect();
    let all = drops.lines().count();
    writeln!(
        out,
        "\nAnd where the sender's own queue drops (prio, pfifo, tbf, htb, fq_codel, sfq, policers on egress): {all} transfers of Reno, CUBIC and BBR, {segments} segments, of which {} agree segment\n\
         by segment, each within 0.1 ms (`cargo test -p penstock-sim local_drops`).",
        all - known.len()
    )?;
    for line in known {
        writeln!(out, "{}", item(line))?;
    }
    let supers = read("vectors/tcp/supers.jsonl")?;
    let segments = supers.matches(",\">\",").count() + supers.matches(",\"<\",").count();
    let differences = read("vectors/tcp/supers_differences.txt")?;
    let known: Vec<&str> = entries(&differences).collect();
    let all = supers.lines().count();
    writeln!(
        out,
        "\nAnd where TCP makes super-packets (below tbf, htb, pfifo, fq, fq_codel or nothing; cut by the card or by the kernel): {all} transfers of Reno, CUBIC and BBR, {segments}\n\
         packets, of which {} agree packet by packet (`cargo test -p penstock-sim super_packets`). Where the others differ:\n",
        all - known.len()
    )?;
    for line in known {
        writeln!(out, "{}", item(line))?;
    }
    Ok(())
}

fn packets(root: &Path, out: &mut String) -> Result<()> {
    let all = vectors::load(&root.join("vectors")).map_err(anyhow::Error::msg)?;
    let mut kinds: BTreeMap<&str, Tally> = BTreeMap::new();
    for vector in &all {
        let tally = kinds.entry(&vector.kind).or_default();
        let spec = &vector.value["spec"];
        let packets = spec["packets"].as_array().map_or(&[][..], Vec::as_slice);
        tally.packets += packets.iter().map(|p| p["repeat"].as_u64().unwrap_or(1)).sum::<u64>();
        tally.midway += u64::from(packets.iter().any(|p| p.get("run").is_some()));
        tally.refused += u64::from(vector.value["expected"].get("error").is_some());
        if vector.exact() {
            tally.exact += 1;
            tally.agree += u64::from(vector.replay().is_empty());
        } else {
            tally.seeds = vector.value["expected_by_seed"].as_array().map_or(0, Vec::len);
            let case = vector.chance(THROWS).map_err(|e| anyhow::anyhow!("{}: {e}", vector.place))?;
            tally.dice.push(case);
        }
    }
    out.push_str(
        "\n## Packets\n\n\
         Random configurations and random packets through the qdiscs of Linux 6.12.117 in exact virtual time (a user-mode kernel in which code takes no time). An exact\n\
         vector agrees when every departure has its nanosecond, every drop its packet, and `tc -s` prints the same of every qdisc, class and (where it is asked) filter.\n\
         `cbq`, which Linux 6.12 has no more, was recorded from the last `sch_cbq.c`, ported to it; `dsmark` has no vector and is checked against its sources only.\n\
         What is named `7.2/…` was recorded from Linux 7.2.13 with tc of iproute2 7.3.0.\n\n\
         | vectors | cases | agreeing | with commands amid traffic | with a refused command | packets |\n\
         |---|--:|--:|--:|--:|--:|\n",
    );
    for (kind, t) in kinds.iter().filter(|(_, t)| t.exact > 0) {
        writeln!(
            out,
            "| `{kind}` | {} | {} | {} | {} | {} |",
            t.exact, t.agree, t.midway, t.refused, t.packets
        )?;
    }
    out.push_str(
        "\n`mixed`: trees of every kind in every kind with filters anywhere; `matches`: every classifier with chains and actions; `actions`, `edits`: actions that decide, and actions\n\
         that change the packet; `seldom`: several of the actions that are rare in the others; `by_hand`: syntax, handles and corners that no dice find.\n\n\
         ### Where the kernel rolls dice\n\n\
         Each case was run in the kernel under many seeds of its own, and here under others of ours. The test: an answer is the place of every packet in the order of departures, and every\n\
         counter; two answers are as far apart as the sum of the differences. The energy distance between the kernel's answers and ours, summed over the cases of a\n\
         file, is compared with 499 random re-labellings of whose answer is whose; p is the share of those that lie as far apart. A file passes with p > 0.01 in both. (Exact comparison\n\
         with the kernel's own random numbers is not possible: its generator serves everything that runs.)\n\n\
         | vectors | cases | seeds of the kernel | throws of ours | p by order | p by counters |\n\
         |---|--:|--:|--:|--:|--:|\n",
    );
    for (kind, t) in kinds.iter().filter(|(_, t)| !t.dice.is_empty()) {
        let [order, counters] = chance::p_values(&t.dice);
        writeln!(
            out,
            "| `{kind}` | {} | {} | {THROWS} | {order:.3} | {counters:.3} |",
            t.dice.len(),
            t.seeds
        )?;
    }
    let text = std::fs::read_to_string(root.join("vectors/differences.txt")).unwrap_or_default();
    let differing: Vec<&str> = entries(&text).collect();
    out.push_str(if differing.is_empty() { "\nNo vector differs.\n" } else { "\nWhere they differ:\n\n" });
    for line in differing {
        writeln!(out, "{}", item(line))?;
    }
    occurrences(&all, out)
}

/// Qdiscs, classifiers and actions that carry packets, as commands name them.
fn named() -> [(&'static str, Vec<&'static str>); 3] {
    let exact = |kernels: &[Kernel]| Kernel::LIVING.iter().any(|k| kernels.contains(k));
    let qdiscs = sch::KINDS.iter().filter(|k| k.simulated && exact(k.kernels)).map(|k| k.id);
    [
        ("Qdiscs", qdiscs.collect()),
        ("Classifiers", vec!["basic", "bpf", "flow", "flower", "fw", "matchall", "u32"]),
        (
            "Actions",
            vec![
                "bpf", "connmark", "csum", "ctinfo", "gact", "mirred", "nat", "pedit", "police", "sample",
                "simple", "skbedit", "skbmod", "vlan",
            ],
        ),
    ]
}
/// Actions that `gact` is.
const CONTROLS: [&str; 9] = ["ok", "pass", "drop", "shot", "continue", "pipe", "reclassify", "trap", "goto"];

/// In how many vectors each kind occurs.
fn occurrences(all: &[vectors::Vector], out: &mut String) -> Result<()> {
    let named = named();
    let mut tally: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for vector in all {
        let spec = &vector.value["spec"];
        let setup = spec["setup"].as_array().into_iter().flatten();
        let runs = spec["packets"].as_array().into_iter().flatten().map(|p| &p["run"]);
        let mut found = BTreeSet::new();
        for line in setup.chain(runs).filter_map(|l| l.as_str()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let object = match () {
                _ if words.contains(&"filter") => "Classifiers",
                _ if words.contains(&"qdisc") => "Qdiscs",
                _ => "",
            };
            for (n, &word) in words.iter().enumerate() {
                let before = n.checked_sub(1).map_or("", |n| words[n]);
                let control = before == "action" && (CONTROLS.contains(&word) || word == "jump");
                let class = if before == "action" { "Actions" } else { object };
                let word = if control { "gact" } else { word };
                for (names, known) in &named {
                    let (names, old) = (*names, *names == "Actions" && word == "police");
                    if let Some(name) = known.iter().find(|k| **k == word).filter(|_| names == class || old) {
                        found.insert((names, *name));
                    }
                }
            }
        }
        found.into_iter().for_each(|key| *tally.entry(key).or_default() += 1);
    }
    out.push_str("\n### In how many vectors each kind occurs\n\n");
    for (names, known) in &named {
        let listed = known.iter().map(|k| format!("`{k}` {}", tally.get(&(*names, *k)).unwrap_or(&0)));
        let listed: Vec<String> = listed.collect();
        let lines: Vec<String> = listed.chunks(10).map(|line| line.join(", ")).collect();
        writeln!(out, "- {names}: {}", lines.join(",\n  "))?;
    }
    Ok(())
}

/// What one kind's vectors amount to.
#[derive(Default)]
struct Tally {
    exact: u64,
    agree: u64,
    dice: Vec<chance::Case>,
    seeds: usize,
    midway: u64,
    refused: u64,
    packets: u64,
}

/// An entry of a list, whose lines are no longer than the page's are.
fn item(text: &str) -> String {
    let mut lines = vec!["-".to_owned()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one from the beginning");
        if line.chars().count() + 1 + word.chars().count() > 190 {
            lines.push(format!("  {word}"));
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// Lines that are neither empty nor a comment.
fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'))
}

fn commands(root: &Path, out: &mut String) -> Result<()> {
    let folder = root.join("vectors/tc");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "jsonl") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            counts.insert(name, std::fs::read_to_string(&path)?.lines().count());
        }
    }
    let text = std::fs::read_to_string(folder.join("differences.txt")).unwrap_or_default();
    let mut differ: BTreeMap<&str, usize> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in entries(&text) {
        let (place, reason) = line.split_once(": ").unwrap_or((line, ""));
        *differ.entry(place.split(' ').next().unwrap_or(place)).or_default() += 1;
        reasons.entry(reason).or_default().push(place);
    }
    let (all, wrong) = (counts.values().sum::<usize>(), differ.values().sum::<usize>());
    writeln!(
        out,
        "\n## Commands\n\n\
         Random sequences of legal and illegal `tc` commands given to tc 6.1.0 on Linux 6.12.117. A sequence agrees when every exit code, every first line of an error and every\n\
         output (`show`, `-s`, `-d`, `-j`) is the same. {} of {all} agree.\n\n\
         | grammar | sequences | agree |\n|---|--:|--:|",
        all - wrong
    )?;
    for (name, count) in &counts {
        writeln!(out, "| `{name}` | {count} | {} |", count - differ.get(name.as_str()).unwrap_or(&0))?;
    }
    if !reasons.is_empty() {
        out.push_str("\nWhere they differ:\n\n");
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by_key(|(reason, places)| (std::cmp::Reverse(places.len()), *reason));
    for (reason, places) in reasons {
        let grammars: BTreeSet<&str> = places.iter().filter_map(|p| p.split(' ').next()).collect();
        let grammars: Vec<String> = grammars.iter().map(|g| format!("`{g}`")).collect();
        writeln!(out, "{}", item(&format!("{} ({}): {reason}", places.len(), grammars.join(", "))))?;
    }
    Ok(())
}

fn suite(root: &Path, out: &mut String) -> Result<()> {
    let text = std::fs::read_to_string(root.join("vectors/tdc.txt")).unwrap_or_default();
    let mut groups: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for line in entries(&text) {
        let mut words = line.splitn(3, ' ').skip(1);
        let (Some(result), Some(why)) = (words.next(), words.next()) else {
            bail!("vectors/tdc.txt: {line}: not an id, a result and a reason");
        };
        *groups.entry((result, why)).or_default() += 1;
    }
    out.push_str(
        "\n## The kernel's own suite\n\n\
         The cases of `tools/testing/selftests/tc-testing` that want nothing but `tc` and `ip`, run against ours by those names (`cargo xtask tdc`). Every case that is not listed in\n\
         `vectors/tdc.txt` passes; the list may only shrink.\n\n",
    );
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|((result, why), n)| (*result, std::cmp::Reverse(*n), *why));
    for ((result, why), n) in groups {
        let what = if result == "fail" { "fail" } else { "are skipped" };
        writeln!(out, "- {n} {what}: {why}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_what_the_recordings_give() {
        super::run(&super::Args { check: true }).unwrap();
    }
}
