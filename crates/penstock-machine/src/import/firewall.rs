//! Packet filters, without the rules that do nothing to packets here.

use super::experiment::{Stdin, run};
use super::{Found, Made};
use penstock_host::Host;
use penstock_model::Time;
use std::collections::BTreeMap;

/// Most lines of a ruleset that are left out one by one.
const MAX_LEFT_OUT: usize = 500;

/// The commands that make the machine's rules. Each rule is tried alone; `cards` is a machine with its devices.
pub(super) fn commands(found: &Found, cards: &Host, made: &mut Made) -> Vec<String> {
    let mut all = Vec::new();
    for text in &found.iptables {
        let program = program(text);
        if let Some(kept) = restored(program, text, cards, made) {
            all.push(format!("{program} <<'END'\n{kept}\nEND"));
        }
    }
    for text in &found.nft {
        // What iptables-nft has made stands in its own listing as well.
        let managed = |l: &&str| l.contains("managed by iptables-nft");
        if !found.iptables.is_empty() && text.lines().any(|l| managed(&l)) {
            made.note(
                "nft: tables managed by iptables-nft are those of iptables-save: left out here".to_owned(),
            );
        }
        if let Some(kept) = nft(text, !found.iptables.is_empty(), cards, made) {
            all.push(format!("nft -f - <<'END'\n{kept}\nEND"));
        }
    }
    all
}

/// `iptables-restore`, or that of IPv6 where the text says so.
pub(super) fn program(text: &str) -> &'static str {
    match text.lines().next().is_some_and(|l| l.starts_with('#') && l.contains("ip6tables")) {
        true => "ip6tables-restore",
        false => "iptables-restore",
    }
}

/// A machine like `cards`: the same devices, nothing else.
fn scratch(cards: &Host) -> Host {
    let mut host = Host::new("import", cards.kernel(), 1);
    for device in cards.devices().iter().filter(|d| !d.loopback) {
        host.add_device(&device.name);
    }
    host
}

/// Why a rule is of no use here: a refusal, or what is not simulated of it.
fn wrong(program: &str, text: &str, host: &mut Host) -> Option<String> {
    let words: Vec<String> = program.split(' ').map(str::to_owned).collect();
    let output = host.command(&words, &mut Stdin(text), Time::ZERO);
    if output.status != 0 {
        let said = output.stderr.lines().next().unwrap_or_default();
        return Some(said.to_owned());
    }
    let said = host.unsimulated_rules().into_iter().find(|rule| !rule.starts_with("ip6tables "));
    said.map(|rule| rule.trim_start_matches("import: ").to_owned())
}

/// The text without the rules that are refused or not simulated; `None` where nothing is left of it.
fn restored(program: &str, text: &str, cards: &Host, made: &mut Made) -> Option<String> {
    let mut kept: Vec<&str> = Vec::new();
    let mut out: BTreeMap<String, usize> = BTreeMap::new();
    let (mut table, mut chains): (&str, Vec<&str>) = ("*filter", Vec::new());
    for line in text.lines().map(str::trim_end) {
        match line.chars().next() {
            Some('*') => (table, chains) = (line, Vec::new()),
            Some(':') => chains.push(line),
            Some('-' | '[') => {
                let names: Vec<&str> = line.split(' ').collect();
                let asked = |c: &&&str| names.contains(&c[1..].split(' ').next().unwrap_or_default());
                let needed: Vec<&str> = chains.iter().filter(asked).copied().collect();
                let alone = format!("{table}\n{}\n{line}\nCOMMIT\n", needed.join("\n"));
                if let Some(why) = wrong(program, &alone, &mut scratch(cards)) {
                    *out.entry(why).or_default() += 1;
                    continue;
                }
            }
            _ => {}
        }
        kept.push(line);
    }
    for (why, count) in out {
        let rules = if count == 1 { "1 rule".to_owned() } else { format!("{count} rules") };
        made.note(format!("{} left out of {}: {why}", rules, program.trim_end_matches("-restore")));
    }
    kept.iter().any(|l| l.starts_with([':', '-'])).then(|| kept.join("\n"))
}

/// A ruleset of nft without the lines that are refused or not simulated; `None` where it cannot be had.
fn nft(text: &str, has_iptables: bool, cards: &Host, made: &mut Made) -> Option<String> {
    let mut lines: Vec<&str> = Vec::new();
    for table in tables(text) {
        let managed = table.iter().any(|l| {
            l.contains("xt target") || l.contains("xt match") || l.contains("managed by iptables-nft")
        });
        if !(managed && has_iptables) {
            lines.extend(table);
        }
    }
    let mut out: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..MAX_LEFT_OUT {
        let ruleset = lines.join("\n");
        if !lines.iter().any(|l| l.starts_with("table")) {
            break;
        }
        let mut host = scratch(cards);
        let output = run(&mut host, &format!("nft -f - <<'END'\n{ruleset}\nEND"));
        if output.status != 0 {
            let said = output.stderr.lines().next().unwrap_or_default();
            // `/dev/stdin:12:3-9: Error: …`
            let at =
                said.split(':').nth(1).and_then(|n| n.parse::<usize>().ok()).and_then(|n| n.checked_sub(1));
            let Some(at) = at.filter(|&at| lines.get(at).is_some_and(|l| !structural(l))) else {
                made.note(format!("nft: the ruleset is left out: {said}"));
                return None;
            };
            let why = said.splitn(4, ':').nth(3).unwrap_or(said).trim();
            *out.entry(format!("{why}: \"{}\"", lines[at].trim())).or_default() += 1;
            lines.remove(at);
            continue;
        }
        let Some(doubt) = host.unsimulated_rules().into_iter().find(|r| r.starts_with("nft ")) else {
            note(out, made);
            return Some(ruleset);
        };
        // The line that holds the words before the colon.
        let words = doubt.trim_start_matches("nft ").split(": ").next().unwrap_or_default();
        let Some(at) = lines.iter().position(|l| !structural(l) && words.split(", ").any(|w| l.contains(w)))
        else {
            made.note(format!("nft: the ruleset is left out: {doubt}"));
            return None;
        };
        *out.entry(format!("{doubt}: \"{}\"", lines[at].trim())).or_default() += 1;
        lines.remove(at);
    }
    note(out, made);
    None
}

fn note(out: BTreeMap<String, usize>, made: &mut Made) {
    for (why, _) in out {
        made.note(format!("nft: a line is left out: {why}"));
    }
}

/// Whether a line opens or closes something, so that it cannot go alone.
fn structural(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.ends_with('{') || line.starts_with('}')
}

/// The tables of a ruleset, each with the comments before it.
fn tables(text: &str) -> Vec<Vec<&str>> {
    let mut all: Vec<Vec<&str>> = vec![Vec::new()];
    for line in text.lines() {
        if let Some(last) = all.last_mut() {
            last.push(line);
        }
        if line.starts_with('}') {
            all.push(Vec::new());
        }
    }
    all.retain(|t| t.iter().any(|l| !l.trim().is_empty()));
    all
}
