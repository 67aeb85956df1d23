//! PS335 to PS339: what is asked for where it cannot be: bits beyond a mask, tables behind the last rule, realms of no route, the other address, a device that is
//! not known yet.

use super::late::wanted;
use crate::facts::{Facts, Step, What};
use crate::finding::{Found, Rule, Say};
use crate::marks::number;
use penstock_lang::iptables::Match;
use std::collections::BTreeSet;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS335",
        "bits of a mark are asked for that its mask leaves out",
        "`-m mark --mark V/M` fits a packet whose mark under M is V (`mark_mt`): where V has a bit that M has not, none does. `ip rule … fwmark V/M` compares the bits of M alone \
         (`fib_rule_match`): of V none is left, and the rule is for packets that have no such mark.",
        beyond_mask,
    ),
    Rule::warning(
        "PS336",
        "a routing rule stands behind that of the main table",
        "Rules are asked in the order of their preferences until a table has a route. That of main has 32766, and a default route in main fits every packet: a rule with a higher \
         number is never asked. Without `pref` a rule goes before all that are there. ip-rule(8).",
        behind_main,
    ),
    Rule::warning(
        "PS337",
        "the route classifier waits for a realm that no route has",
        "The filter `route` looks at the realm of the route that a packet goes by (`route4_classify`), which `ip route … realm N` gives. The routes of the script have others.",
        realms,
    ),
    Rule::warning(
        "PS338",
        "action nat compares the other address",
        "`nat egress OLD NEW` changes source addresses that are in OLD, `nat ingress OLD NEW` destinations (`tcf_nat_act`), wherever the filter stands. A filter that asks for OLD as \
         the other address gives it packets that stay as they are. tc-nat(8).",
        other_address,
    ),
    Rule::warning(
        "PS339",
        "a rule asks for a device that is not known yet",
        "In PREROUTING and INPUT a packet has no outgoing device, in OUTPUT no incoming one: a rule there that asks for it fits none. iptables refuses that in these chains themselves, not in \
         chains they jump to; nft takes it everywhere (`nft_meta_get_eval`).",
        unknown_device,
    ),
];

fn beyond_mask(facts: &Facts, found: &mut Found) {
    for ruled in &facts.netfilter.rules {
        let step = &facts.steps[ruled.step];
        for matched in &ruled.rule.matches {
            let (Match::Mark { mark, mask, invert: false } | Match::Connmark { mark, mask, invert: false }) =
                matched
            else {
                continue;
            };
            if mark & !mask == 0 {
                continue;
            }
            let word = step.value(&["--mark"]).unwrap_or("--mark");
            let reason = format!(
                "{mark:#x} has bits outside of {mask:#x}: no packet's mark under that mask is {mark:#x}."
            );
            found.at(ruled.step, word, Say::new("no packet fits this mark", reason, ""));
        }
    }
    for (at, step) in ip_rules(facts) {
        let Some(word) = step.value(&["fwmark"]) else { continue };
        let Some((mark, mask)) = wanted(word).filter(|(mark, mask)| mark & !mask != 0) else { continue };
        let left = mark & mask;
        let reason =
            format!("{mark:#x} has bits outside of {mask:#x}; the kernel compares with {left:#x} under it.");
        found.at(
            at,
            word,
            Say::new(
                format!("the rule is not for mark {mark:#x}"),
                reason,
                step.with("fwmark", &format!("{mark:#x}")),
            ),
        );
    }
}

/// Rules of routing that are added.
fn ip_rules(facts: &Facts) -> impl Iterator<Item = (usize, &Step)> {
    facts.steps.iter().enumerate().filter(|(_, s)| {
        let of_rules = s.words.iter().take(4).any(|w| matches!(w.as_str(), "rule" | "ru"));
        s.ok() && s.program() == "ip" && of_rules && (s.has("add") || s.has("a"))
    })
}

fn behind_main(facts: &Facts, found: &mut Found) {
    let of_main = |s: &Step| {
        let table = s.value(&["table", "lookup"]).unwrap_or("main");
        matches!(table, "main" | "254")
    };
    let six = |s: &Step| s.has("-6");
    let routes = |s: &&Step| {
        s.ok()
            && s.program() == "ip"
            && s.words.iter().take(4).any(|w| matches!(w.as_str(), "route" | "r" | "ro"))
    };
    let default = |s: &&Step| (s.has("default") || s.has("0.0.0.0/0") || s.has("::/0")) && of_main(s);
    let gone = facts.steps.iter().any(|s| {
        let rule = s.words.iter().take(4).any(|w| matches!(w.as_str(), "rule" | "ru"));
        let deletes = s.has("del") || s.has("delete") || s.has("flush");
        s.program() == "ip"
            && (rule && (deletes && (of_main(s) && !s.has("from")) || s.has("suppress_prefixlength"))
                || routes(&s) && deletes && default(&s))
    });
    if gone || facts.partial {
        return;
    }
    for (at, step) in ip_rules(facts) {
        let Some(word) = step.value(&["pref", "priority", "preference", "order", "prio"]) else { continue };
        let late = number(word).is_some_and(|n| n > 32_766);
        let leads = step
            .value(&["table", "lookup"])
            .is_some_and(|t| !matches!(t, "main" | "default" | "local" | "253" | "254" | "255"));
        let has_default =
            facts.steps.iter().filter(routes).any(|s| default(&s) && six(s) == six(step) && !s.has("del"));
        // Who marks packets for a table does not mean it as the last resort.
        if late && leads && (has_default || step.has("fwmark")) {
            let reason =
                "The main table, preference 32766, has a default route: it has an answer for every packet.";
            found.at(
                at,
                word,
                Say::new("no packet comes to this rule", reason, step.with(option_of(step, word), "1000")),
            );
        }
    }
}

/// The word in front of a value.
fn option_of<'a>(step: &'a Step, value: &str) -> &'a str {
    let at = step.words.iter().position(|w| w == value).unwrap_or(1);
    &step.words[at.saturating_sub(1)]
}

fn realms(facts: &Facts, found: &mut Found) {
    let mut given: BTreeSet<&str> = BTreeSet::new();
    for step in facts.steps.iter().filter(|s| s.program() == "ip") {
        given.extend(step.value(&["realm", "realms"]).into_iter().flat_map(|r| r.split('/')));
    }
    if given.is_empty() || facts.partial || facts.source.holds(&["bird", "quagga", "frr", "zebra"]) {
        return;
    }
    let same = |a: &str, b: &str| a == b || number(a).is_some() && number(a) == number(b);
    for (at, step) in facts.steps.iter().enumerate().filter(|s| s.1.ok() && s.1.program() == "tc") {
        let Some(kind) =
            step.words.iter().position(|w| w == "route").filter(|_| step.has("filter") && step.has("add"))
        else {
            continue;
        };
        for pair in step.words[kind..].windows(2).filter(|w| matches!(w[0].as_str(), "to" | "from")) {
            let named = number(&pair[1]).is_none() && given.iter().all(|g| number(g).is_some());
            if named || given.iter().any(|g| same(g, &pair[1])) {
                continue;
            }
            let have: Vec<&str> = given.iter().copied().collect();
            let reason = format!("The script's routes have {}.", have.join(", "));
            found.at(at, &pair[1], Say::new(format!("no route has realm {}", pair[1]), reason, ""));
        }
    }
}

fn other_address(facts: &Facts, found: &mut Found) {
    for (at, step) in
        facts.steps.iter().enumerate().filter(|s| s.1.ok() && s.1.program() == "tc" && s.1.has("filter"))
    {
        let words = &step.words;
        let word = |n: usize| words.get(n).map_or("", String::as_str);
        let Some(nat) =
            words.iter().position(|w| w == "nat").filter(|n| matches!(word(n + 1), "ingress" | "egress"))
        else {
            continue;
        };
        let plain = |a: &str| a.split('/').next().unwrap_or(a).to_owned();
        let old = plain(word(nat + 2));
        let asks = |of: [&str; 2]| {
            let asked = (0..nat)
                .filter(|n| word(*n) == of[1] || word(*n) == of[0] && matches!(word(n - 1), "ip" | "ip6"));
            asked.map(|n| plain(word(n + 1))).collect::<Vec<_>>()
        };
        let (sources, destinations) = (asks(["src", "src_ip"]), asks(["dst", "dst_ip"]));
        let (own, other, name, right) = match word(nat + 1) {
            "egress" => (sources, destinations, "source", "ingress"),
            _ => (destinations, sources, "destination", "egress"),
        };
        if own.is_empty() && other.contains(&old) {
            let reason = format!(
                "The filter asks for {old} as the other address; `nat {}` changes a {name} that is {old}.",
                word(nat + 1)
            );
            let mut fixed = step.clone();
            right.clone_into(&mut fixed.words[nat + 1]);
            found.at(
                at,
                word(nat + 1),
                Say::new("nothing of these packets is translated", reason, fixed.text()),
            );
        }
    }
}

fn unknown_device(facts: &Facts, found: &mut Found) {
    let n = &facts.netfilter;
    for ruled in &n.rules {
        let ways = n.ways(ruled);
        let all = |hooks: &[&str]| !ways.is_empty() && ways.iter().all(|w| hooks.contains(&w.0.as_str()));
        let outside = ruled.rule.output.is_some() && all(&["PREROUTING", "INPUT"]);
        let inside = ruled.rule.input.is_some() && all(&["OUTPUT"]);
        if (outside || inside) && !ruled.table.built_in().contains(&ruled.chain.as_str()) {
            let (option, which) = if outside { ("-o", "outgoing") } else { ("-i", "incoming") };
            say(found, (ruled.step, 0), option, (which, &ways[0].0));
        }
    }
    for (at, step) in facts.steps.iter().enumerate().filter(|s| s.1.ok() && s.1.program() == "nft") {
        let What::Rules(text) = &step.what else { continue };
        let mut hook = "";
        for (line, text) in text.lines().enumerate() {
            let words: Vec<&str> = text
                .split(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}'))
                .filter(|w| !w.is_empty())
                .collect();
            if words.first().is_some_and(|w| matches!(*w, "chain" | "table" | "set" | "map" | "add")) {
                hook = "";
            }
            if let Some(of) = words.iter().position(|w| *w == "hook") {
                hook = words.get(of + 1).copied().unwrap_or("");
                continue;
            }
            let asked = |names: [&'static str; 2]| {
                names.into_iter().find(|n| words.contains(n) && !text.trim_start().starts_with('#'))
            };
            let word = match hook {
                // PS205 tells of marks there.
                "input" if text.contains("mark set") => None,
                "prerouting" | "input" => asked(["oifname", "oif"]).map(|w| (w, "outgoing")),
                "output" => asked(["iifname", "iif"]).map(|w| (w, "incoming")),
                _ => None,
            };
            if let Some((word, which)) = word.filter(|_| !text.contains("!=")) {
                say(found, (at, line), word, (which, hook));
            }
        }
    }
}

fn say(found: &mut Found, (step, line): (usize, usize), word: &str, (which, hook): (&str, &str)) {
    let reason = format!("In {hook} a packet has no {which} device.");
    found.at_text(step, line, word, Say::new("no packet fits this rule", reason, ""));
}
