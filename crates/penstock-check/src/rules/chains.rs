//! PS208 to PS213: the order of rules in netfilter's chains, and what a rule names.

use crate::facts::{Device, Facts, Step, What};
use crate::finding::{Found, Rule, Say};
use crate::marks::{Ruled, covers, leaves};
use penstock_lang::iptables::{Connmark, Edit, Match, Target, Verdict};
use penstock_lang::tc::Command;
use penstock_model::Handle;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS208",
        "a mark that a later rule overwrites",
        "MARK does not end the way through the chain: the packet goes on, and the last MARK that fits wins. End with RETURN or ACCEPT, mark only what has no mark yet \
         (`-m mark --mark 0`), or put the wide rule first.",
        overwritten,
    ),
    Rule::warning(
        "PS209",
        "a rule after one that takes everything",
        "ACCEPT, DROP and RETURN end the way through the chain. What fits them never comes to later rules.",
        unreachable,
    ),
    Rule::warning(
        "PS210",
        "a chain that no rule jumps to",
        "A chain of one's own is only a place for rules; packets come to it by a jump from a built-in chain.",
        unjumped,
    ),
    Rule::warning(
        "PS211",
        "CLASSIFY names a class that does not exist",
        "CLASSIFY, nft's `meta priority set` and `skbedit priority` at the egress of clsact set the packet's priority to the class's id. If no class has it, the packet goes to the default.",
        classify,
    ),
    Rule::warning(
        "PS212",
        "marks are restored that were never saved",
        "CONNMARK --restore-mark copies the connection's mark to the packet. Without --save-mark or --set-mark on connections it copies 0, over marks set before.",
        unsaved,
    ),
    Rule::warning(
        "PS213",
        "the filter's mask hides the mark",
        "A fw filter compares mark & mask with its handle; a handle with bits outside the mask never fits.",
        masked,
    ),
];

fn overwritten(facts: &Facts, found: &mut Found) {
    for chain in facts.netfilter.standing.by_chain().values() {
        let mut first: Vec<&Ruled> = Vec::new();
        for later in chain {
            if let Target::Edit(Edit::Mark { value, mask }) = later.rule.target {
                let lost = first.iter().filter(|f| {
                    let Target::Edit(Edit::Mark { value: v, mask: m }) = f.rule.target else { return false };
                    covers(&later.rule, &f.rule)
                        && mask & m == m
                        && (v ^ value) & mask != 0
                        && !asks_other(&later.rule, v, m)
                });
                if let Some(f) = lost.collect::<Vec<_>>().first() {
                    let Target::Edit(Edit::Mark { value: v, .. }) = f.rule.target else { continue };
                    let (a, b) = (&facts.steps[f.step], &facts.steps[later.step]);
                    let reason = if (f.line, later.line) == (0, 0) {
                        format!(
                            "Line {} fits the same packets and sets {value} over {v} of line {}.",
                            b.line, a.line
                        )
                    } else {
                        format!("It fits the same packets as a rule above and sets {value} over its {v}.")
                    };
                    let at = b.words.iter().position(|w| w == "-j").unwrap_or(b.words.len());
                    let fix = match later.line {
                        0 => {
                            format!(
                                "{} -m mark --mark 0 {}",
                                b.words[..at].join(" "),
                                b.words[at..].join(" ")
                            )
                        }
                        _ => String::new(),
                    };
                    let word = b.value(&["--set-mark", "--set-xmark"]).unwrap_or("");
                    let say = Say::new(format!("this overwrites mark {v}"), reason, fix);
                    found.at_text(later.step, later.line as usize, word, say);
                }
                // What was marked and then taken out of the chain stays.
                first.push(later);
            }
            if leaves(&later.rule.target) {
                first.retain(|f| !covers(&later.rule, &f.rule) && !by_mark(&later.rule, f));
            }
        }
    }
}

/// Whether a rule asks for another mark than the one that has been set in these bits.
fn asks_other(rule: &penstock_lang::iptables::Rule, set: u32, bits: u32) -> bool {
    let other = |m: &Match| match m {
        Match::Mark { mark, mask, invert } if mask & !bits == 0 => (set & mask == *mark) == *invert,
        _ => false,
    };
    rule.matches.iter().any(other)
}

/// Whether a rule lets go of what another has marked: it asks for that mark and leaves the chain.
fn by_mark(rule: &penstock_lang::iptables::Rule, marked: &Ruled) -> bool {
    let Target::Edit(Edit::Mark { value, .. }) = marked.rule.target else { return false };
    rule.matches
        .iter()
        .any(|m| matches!(m, Match::Mark { mark, mask, invert } if (value & mask == *mark) != *invert))
}

fn unreachable(facts: &Facts, found: &mut Found) {
    unreachable_of_nft(facts, found);
    for chain in facts.netfilter.standing.by_chain().values() {
        for (at, b) in chain.iter().enumerate() {
            let tame = |a: &&&Ruled| {
                leaves(&a.rule.target)
                    && !a.rule.matches.iter().any(|m| {
                        matches!(
                            m,
                            Match::Limit { .. }
                                | Match::Statistic { .. }
                                | Match::Connbytes { .. }
                                | Match::Mark { .. }
                                | Match::Worded(..)
                                | Match::Plain(_)
                        )
                    })
            };
            let a = chain[..at].iter().find(|a| tame(a) && covers(&a.rule, &b.rule));
            let told = |a: &&&Ruled| {
                a.rule.target != b.rule.target
                    && (marks_or_sorts(&b.rule.target) || decides_otherwise(&a.rule.target, &b.rule.target))
            };
            if let Some(a) = a.filter(told) {
                let taker = match a.line {
                    0 => format!("line {}", facts.steps[a.step].line),
                    _ => "a rule above".to_owned(),
                };
                let reason = format!(
                    "It fits all of its packets and ends their way with {}.",
                    a.rule.target.name(a.family)
                );
                let fix = match b.line {
                    0 => facts.steps[b.step].text().replacen(" -A ", " -I ", 1),
                    _ => String::new(),
                };
                let say = Say::new(format!("no packet reaches this rule: {taker} takes them"), reason, fix);
                found.at_text(b.step, b.line as usize, "-j", say);
            }
        }
    }
}

/// The same of nft's rules.
fn unreachable_of_nft(facts: &Facts, found: &mut Found) {
    if facts.partial || facts.netfilter.of_nft.tables.is_empty() {
        return;
    }
    // Namespaces whose names are unknown are one here: what stands in two texts may stand in two of them.
    let apart = |dead: &crate::explain::Behind| {
        let texts = dead.by.1 > 0 || dead.taker.1 > 0;
        dead.by.0 != dead.taker.0 && (texts || !facts.prefix.is_empty())
    };
    for dead in crate::explain::behind(facts).iter().filter(|d| !apart(d)) {
        let taker = facts.rule_place(dead.taker.0, dead.taker.1);
        let reason = format!("It fits all of its packets and ends their way with {}.", dead.verdict);
        let say = Say::new(format!("no packet reaches this rule: {taker} takes them"), reason, "");
        found.at_text(dead.by.0, dead.by.1 as usize, "", say);
    }
}

fn marks_or_sorts(target: &Target) -> bool {
    matches!(
        target,
        Target::Edit(Edit::Mark { .. })
            | Target::Edit(Edit::Classify(_))
            | Target::Edit(Edit::Tos { .. })
            | Target::Edit(Edit::Dscp(_))
            | Target::Edit(Edit::Connmark { .. })
            | Target::Jump(_)
    )
}

/// Whether one of two verdicts lets packets through and the other does not: the second rule is there for something.
fn decides_otherwise(a: &Target, b: &Target) -> bool {
    let passes = |t: &Target| match t {
        Target::Verdict(Verdict::Accept) => Some(true),
        Target::Verdict(Verdict::Drop) | Target::Reject(_) => Some(false),
        _ => None,
    };
    passes(a).zip(passes(b)).is_some_and(|(a, b)| a != b)
}

fn unjumped(facts: &Facts, found: &mut Found) {
    if facts.netfilter.texts {
        return;
    }
    for (family, table, name, step) in &facts.netfilter.chains {
        let jumped = facts.netfilter.rules.iter().any(|r| {
            (r.family, r.table) == (*family, *table)
                && matches!(&r.rule.target, Target::Jump(to) | Target::Goto(to) if to == name)
        });
        let rules = facts.netfilter.rules.iter().filter(|r| r.chain == *name && r.table == *table).count();
        if !jumped && rules > 0 {
            let fix = format!("{} -t {} -A POSTROUTING -j {name}", family.program(), table.name());
            let reason = format!("{rules} rules stand in it; no rule jumps to it.");
            found.at(*step, name, Say::new(format!("no rule jumps to the chain {name}"), reason, fix));
        }
    }
}

/// A class of a qdisc that nobody makes, where the device's own has one of that minor number: HTB and its like take the priority for one of theirs by the major
/// number (`htb_classify`).
fn another_major(
    facts: &Facts,
    found: &mut Found,
    (id, at, text): (Handle, usize, usize),
    out: Option<&str>,
) {
    let step = &facts.steps[at];
    let word = step.value(&["--set-class"]).map_or_else(|| id.to_string(), str::to_owned);
    let roots = facts
        .devices
        .iter()
        .filter_map(|d| Some((d, d.root().filter(|q| q.traits().sorting.is_followed())?)));
    let named: Vec<_> = roots.filter(|(d, _)| out.is_none_or(|o| o == d.name)).collect();
    let [(device, root)] = named.as_slice() else { return };
    let own = Handle::new(root.handle.major(), id.minor());
    if id.major() == 0 || facts.partial || device.class(own).is_none() || root.handle.major() == id.major() {
        return;
    }
    let reason = format!("{} has the qdisc {} and the class {own}.", device.name, root.handle);
    let fix = if step.has(&word) { step.with_word(&word, &own.to_string()) } else { String::new() };
    found.at_text(at, text, &word, Say::new(format!("there is no qdisc {}", id.qdisc()), reason, fix));
}

fn classify(facts: &Facts, found: &mut Found) {
    let by_rule = |r: &Ruled| match r.rule.target {
        Target::Edit(Edit::Classify(id)) => Some((id, r.step, 0)),
        _ => None,
    };
    let n = &facts.netfilter;
    // What clsact gives a packet before the root qdisc is asked.
    let leaving = facts.devices.iter().flat_map(|d| &d.filters).filter(|f| f.parent == Handle(0xffff_fff3));
    let by_action = leaving.flat_map(|f| {
        let given = f.actions().filter(|a| a.0 == "skbedit").filter_map(|a| a.1.u32("priority"));
        given.map(|id| (Handle(id), f.step, 0)).collect::<Vec<_>>()
    });
    for (id, at, text) in
        n.rules.iter().filter_map(by_rule).chain(n.priorities.iter().copied()).chain(by_action)
    {
        let there = facts.devices.iter().any(|d| d.class(id).is_some() || d.qdisc(id).is_some());
        let owners: Vec<&Device> = facts
            .devices
            .iter()
            .filter(|d| d.qdisc(id.qdisc()).is_some_and(|q| q.traits().sorting.is_followed()))
            .collect();
        let out = n.rules.iter().find(|r| r.step == at).and_then(|r| r.rule.output.as_ref());
        let out = out.filter(|o| !o.invert && !o.wildcard && !facts.partial);
        if let (true, Some(out), Some(owner)) = (there, out, owners.first())
            && !owners.iter().any(|d| d.name == out.name)
            && !facts.devices.iter().any(|d| d.name == out.name && d.master.is_some())
        {
            let say = Say::new(
                format!("{} has no class {id}", out.name),
                format!(
                    "{} stands on {}; the rule is for what leaves by {}.",
                    id.qdisc(),
                    owner.name,
                    out.name
                ),
                facts.steps[at].with_word(&out.name, &owner.name),
            );
            found.at(at, &out.name, say);
            continue;
        }
        // What leaves by a device with a qdisc of its own has nothing to do with the classes of others.
        let own = out.and_then(|o| facts.devices.iter().find(|d| d.name == o.name && d.root().is_some()));
        let owner = match own {
            Some(own) => owners.iter().find(|d| d.name == own.name),
            None => owners.first(),
        };
        if !there && owner.is_none() {
            another_major(facts, found, (id, at, text), out.map(|o| o.name.as_str()));
        }
        if !there && let Some(device) = owner {
            let step = &facts.steps[at];
            let have: Vec<String> = device.classes_of(id.qdisc()).take(8).map(|c| c.id.to_string()).collect();
            let by_nft = step.value(&["--set-class"]).is_none();
            let given = step.value(&["priority"]).filter(|_| step.has("skbedit"));
            let (who, word) = match by_nft {
                true if given.is_some() => ("skbedit", given.unwrap_or("").to_owned()),
                true => ("nft", id.to_string()),
                false => ("CLASSIFY", step.value(&["--set-class"]).unwrap_or("").to_owned()),
            };
            let fix = match have.last() {
                Some(last) if !by_nft => step.with("--set-class", last),
                Some(last) if step.has(&word) => step.with_word(&word, last),
                _ => String::new(),
            };
            found.at_text(
                at,
                text,
                &word,
                Say::new(
                    format!("{who} names {id}, which does not exist"),
                    format!("{} has {}.", id.qdisc(), have.join(", ")),
                    fix,
                ),
            );
        }
    }
}

fn unsaved(facts: &Facts, found: &mut Found) {
    let is = |op: Connmark| move |r: &&Ruled| matches!(r.rule.target, Target::Edit(Edit::Connmark { op: o, .. }) if o == op);
    let n = &facts.netfilter;
    let kept = n.rules.iter().any(|r| is(Connmark::Save)(&r) || is(Connmark::Set)(&r))
        || n.texts
        || facts.source.mentions(&["connmark --save-mark", "--save-mark"]);
    if let Some(restore) = n.rules.iter().find(is(Connmark::Restore)).filter(|_| !kept) {
        let fix = "iptables -t mangle -A POSTROUTING -j CONNMARK --save-mark".to_owned();
        found.at(
            restore.step,
            "--restore-mark",
            Say::new(
                "no rule ever saves a mark to the connection",
                "The connection's mark stays 0, and that is what is copied to each packet.".to_owned(),
                fix,
            ),
        );
    }
    // tc's own actions read the connection's mark too; whose rules are not the script's may save it elsewhere.
    let own = n.rules.iter().any(|r| matches!(r.rule.target, Target::Edit(_)));
    let program = facts.source.holds(&["ct mark", "conntrack -", "so_mark"]);
    if kept || !own || program || n.unknown || facts.partial {
        return;
    }
    let reads = |s: &Step| {
        let acts =
            s.words.windows(2).find(|w| w[0] == "action" && matches!(w[1].as_str(), "connmark" | "ctinfo"));
        acts.filter(|_| s.ok() && s.program() == "tc").map(|w| w[1].clone())
    };
    let first = facts.steps.iter().enumerate().find_map(|(at, s)| Some((at, reads(s)?)));
    if let Some((at, action)) = first {
        let reason = format!("The connection's mark stays 0, and that is what `{action}` reads.");
        found.at(at, &action, Say::new("no rule ever saves a mark to the connection", reason, ""));
    }
}

fn masked(facts: &Facts, found: &mut Found) {
    for (at, step, command) in facts.tc_done() {
        let Command::Filter { req, .. } = command else { continue };
        let mask = req.options.as_ref().and_then(|o| o.u32("mask"));
        if let Some(mask) = mask.filter(|m| req.kind.as_deref() == Some("fw") && req.handle & !m != 0) {
            let word = step.value(&["handle"]).unwrap_or("");
            let reason = format!(
                "{:#x} & {mask:#x} is {:#x}, never {:#x}.",
                req.handle,
                req.handle & mask,
                req.handle
            );
            found.at(
                at,
                word,
                Say::new(
                    "no mark fits this handle and mask",
                    reason,
                    step.with("handle", &format!("{:#x}/{:#x}", req.handle, own_bits(facts, req.handle))),
                ),
            );
        }
    }
}

/// Rules that `iptables-restore` refuses for a chain whose name is nearly that of one the text declares, and texts without a `COMMIT`: none of the table's
/// rules is there then.
pub(super) fn restore_refuses(facts: &Facts, found: &mut Found) {
    let reads = |s: &(usize, &Step)| matches!(s.1.program(), "iptables-restore" | "ip6tables-restore");
    for (at, step) in facts.steps.iter().enumerate().filter(|s| !s.1.ok()).filter(reads) {
        let What::Rules(text) = &step.what else { continue };
        let stderr = step.output.stderr.as_str();
        if step.guessed.as_ref().is_some_and(|g| g.whole || g.deep) {
            continue;
        }
        let number = |from: &str| {
            let digits: String = from.trim_start().chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap_or(0)
        };
        let target = stderr.split_once("Couldn't load target `").and_then(|s| s.1.split('\'').next());
        let why = "Nothing of what is read for this table is taken.";
        if let Some(target) = target {
            let mut declared = text.lines().filter_map(|l| l.strip_prefix(':')?.split_whitespace().next());
            let near = declared.find(|c| *c != target && strsim::damerau_levenshtein(c, target) <= 2);
            let Some(meant) = near else {
                // What is kept beside the text may hold the chain; targets of Linux's have no dash in their names.
                let own = target.contains('-') || target.chars().any(char::is_lowercase);
                if own && !step.has("-n") && !step.has("--noflush") {
                    let line = stderr.split_once("at line:").map_or(0, |s| number(s.1));
                    let say = Say::new(
                        format!("the text declares no chain {target}"),
                        why,
                        format!(":{target} - [0:0]"),
                    );
                    found.at_text(at, line, target, say);
                }
                continue;
            };
            let line = stderr.split_once("at line:").map_or(0, |s| number(s.1));
            let fix = text.lines().nth(line).map_or(String::new(), |l| l.replace(target, meant));
            found.at_text(
                at,
                line,
                target,
                Say::new(format!("there is no chain {target}; {meant} may be meant"), why, fix),
            );
        } else if let Some((_, line)) = stderr.split_once("COMMIT expected at line") {
            let said = stderr.lines().find(|l| l.contains("COMMIT expected")).unwrap_or("COMMIT expected");
            found.at_text(at, number(line), "", Say::new(said, why, "COMMIT"));
        } else if !stderr.contains("doesn't exist") || facts.steps.iter().any(|s| s.program() == "ipset") {
            let said = stderr.lines().next().unwrap_or("refused");
            let behind = ["at line:", "line "].iter().find_map(|w| stderr.split_once(w));
            // A table begins where the one before has not ended.
            let open = said.contains("Bad argument `*");
            let (why, fix) = if open {
                ("COMMIT is missing: the table before it is not taken.", "COMMIT")
            } else {
                (why, "")
            };
            found.at_text(at, behind.map_or(0, |s| number(s.1)), "", Say::new(said, why, fix));
        }
    }
}

/// The bits that a mark is told by: those under which a rule sets it, else the bytes it has bits in.
fn own_bits(facts: &Facts, mark: u32) -> u32 {
    let set = facts.netfilter.rules.iter().find_map(|r| match r.rule.target {
        Target::Edit(Edit::Mark { value, mask }) if value == mark => Some(mask),
        _ => None,
    });
    let bytes = (0..4).map(|n| 0xff << (8 * n)).filter(|b: &u32| mark & b != 0).fold(0, |all, b| all | b);
    set.filter(|m| mark & !m == 0).unwrap_or(bytes)
}
