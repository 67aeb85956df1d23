//! PS227 and PS228: routing rules that lead nowhere, and that no packet fits.

use super::late::wanted;
use crate::facts::{Facts, Step};
use crate::finding::{Found, Rule, Say};
use std::collections::BTreeSet;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS227",
        "a routing rule leads to a table without routes",
        "A rule whose table has no route for the packet is passed over (`fib_rules_lookup`), and the packet goes by the main table as if there were no rule. The script fills \
         another table. Mostly one of the two numbers is mistyped.",
        empty,
    ),
    Rule::warning(
        "PS228",
        "a routing rule waits for a mark that nothing sets",
        "`ip rule … fwmark N` is for packets that have this mark when they are routed. The script sets marks, but not this one: the rule fits no packet.",
        unset,
    ),
];

/// Rules of routing that are added: command, table.
fn rules(facts: &Facts) -> impl Iterator<Item = (usize, &Step, &str)> {
    // What `rt_tables` has no name for is refused here.
    let nameless = |s: &Step| s.output.stderr.contains("invalid table ID");
    let of_ip = move |s: &(usize, &Step)| s.1.program() == "ip" && (s.1.ok() || nameless(s.1));
    facts.steps.iter().enumerate().filter(of_ip).filter_map(|(at, step)| {
        let of_rules = step.words.iter().take(4).any(|w| matches!(w.as_str(), "rule" | "ru"));
        let adds = step.has("add") || step.has("a");
        let table = step.value(&["table", "lookup"]).unwrap_or("main");
        (of_rules && adds).then_some((at, step, table))
    })
}

/// Whether programs that are not here may make routes or set marks of their own.
fn others(facts: &Facts) -> bool {
    facts.partial
        || facts.forced
        || facts.stopped.is_some()
        || facts.source.commands(&[
            "wg-quick",
            "wg",
            "openvpn",
            "dhclient",
            "udhcpc",
            "pppd",
            "systemctl",
            "service",
            "ifup",
        ])
        || facts.source.mentions(&["wg-quick", "openvpn"])
}

fn empty(facts: &Facts, found: &mut Found) {
    if others(facts) {
        return;
    }
    let routes = facts.steps.iter().filter(|s| s.program() == "ip");
    let routes =
        routes.filter(|s| s.words.iter().take(4).any(|w| matches!(w.as_str(), "route" | "r" | "ro")));
    // What empties a table, or shows it, puts no route into it.
    let fills = |s: &&Step| {
        let verb = s
            .words
            .iter()
            .position(|w| matches!(w.as_str(), "route" | "r" | "ro"))
            .and_then(|at| s.words.get(at + 1));
        !verb.is_some_and(|v| {
            matches!(v.as_str(), "flush" | "del" | "delete" | "show" | "list" | "ls" | "get" | "save")
        })
    };
    let filled: BTreeSet<&str> = routes.clone().filter(fills).filter_map(|s| s.value(&["table"])).collect();
    let device = |s: &Step| s.value(&["table"]).is_none() && s.has("vrf");
    if routes.clone().any(device) {
        return;
    }
    let number = |t: &str| t.parse::<u32>().is_ok();
    if filled.is_empty() {
        in_main(facts, found);
        return;
    }
    for (at, step, table) in rules(facts) {
        let known = matches!(table, "main" | "local" | "default" | "253" | "254" | "255");
        // A number may be one that `rt_tables` has a name for.
        let named = !number(table) && filled.iter().all(|t| number(t));
        let here = facts.source.lines.iter().any(|l| l.contains("rt_tables"));
        let alike =
            filled.iter().all(|t| number(t) == number(table)) || named && !here && rules(facts).count() == 1;
        let link = facts.steps.iter().any(|s| s.has("link") && s.value(&["table"]) == Some(table));
        if known || !alike || filled.contains(table) || link {
            continue;
        }
        let have: Vec<&str> = filled.iter().copied().collect();
        let reason =
            format!("The script's routes are in {}; nothing puts one into {table}.", have.join(", "));
        let fix = match have.as_slice() {
            [one] => step.text().replace(&format!(" {table}"), &format!(" {one}")),
            _ => String::new(),
        };
        found.at(at, table, Say::new(format!("table {table} has no routes"), reason, fix));
    }
}

/// The script's one table is that of its rules, and its default route is in main.
fn in_main(facts: &Facts, found: &mut Found) {
    let adds = |s: &&Step| {
        let words: Vec<&str> = s.words.iter().map(String::as_str).collect();
        let route = words.windows(2).any(|w| {
            matches!(w[0], "route" | "r" | "ro") && matches!(w[1], "add" | "a" | "replace" | "append")
        });
        s.program() == "ip" && route && s.has("default") && !s.has("table")
    };
    let mut rules = rules(facts);
    let (Some((at, step, table)), None) = (rules.next(), rules.next()) else { return };
    let own = table.parse::<u32>().is_ok_and(|n| (1..253).contains(&n));
    let marks = step.has("fwmark");
    let mut defaults = facts.steps.iter().filter(adds);
    let (Some(route), None) = (defaults.next(), defaults.next()) else { return };
    // Whose default is the way out of everything needs no rule for it.
    if !own || !marks || facts.source.mentions(&["rt_tables"]) {
        return;
    }
    let reason = format!(
        "`{}` (line {}) goes into the main table, where packets find it without the rule.",
        route.text(),
        route.line
    );
    let fix = format!("{} table {table}", route.text());
    found.at(at, table, Say::new(format!("table {table} has no routes"), reason, fix));
}

fn unset(facts: &Facts, found: &mut Found) {
    if others(facts) {
        return;
    }
    let Some(marks) = facts.netfilter.marks() else { return };
    // Connections' marks come back as they are.
    if marks.is_empty() || facts.netfilter.travels() || facts.source.holds(&["so_mark", "fwmark ="]) {
        return;
    }
    let refused = facts.steps.iter().any(|s| !s.ok() && s.value(&["--set-mark", "--set-xmark"]).is_some());
    for (at, step, _) in rules(facts) {
        let word = step.value(&["fwmark"]);
        let Some((mark, mask)) = word.and_then(wanted).filter(|w| w.0 != 0) else { continue };
        let fits = marks.iter().any(|m| m.0 & mask == mark & mask);
        if fits || refused || step.has("not") {
            continue;
        }
        let mut have: Vec<String> = marks.iter().map(|m| format!("{:#x}", m.0)).collect();
        have.sort();
        have.dedup();
        let reason = format!("Marks that are set: {}.", have.join(", "));
        let fix = match have.as_slice() {
            [one] => step.with("fwmark", one),
            _ => String::new(),
        };
        found.at(at, word.unwrap_or(""), Say::new(format!("no packet has mark {mark:#x}"), reason, fix));
    }
}
