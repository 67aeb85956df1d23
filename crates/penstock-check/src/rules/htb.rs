//! PS116 to PS119: HTB's classes made twice, changed by halves, in the wrong order, or not at all.

use super::rates::was_refused;
use super::sorted::{Kind, kinds_of};
use crate::facts::{Facts, Step, rate};
use crate::finding::{Found, Level, Rule, Say};
use penstock_lang::tc::{Command, num};
use penstock_model::Handle;
use penstock_model::rtnetlink::Verb;
use std::collections::BTreeMap;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS116",
        "every turn of a loop makes the same class",
        "`tc class replace` takes a class that is there for one to change. In a loop whose variable is not in the class's id every turn changes the one class, and \
         the last one stays. \
         (With `add` the second turn is refused: File exists.)",
        same_class,
    ),
    Rule::warning(
        "PS117",
        "a change takes back what the class had",
        "`tc class change` and `replace` set everything anew. What the command does not name gets tc's default and not the value from before: `ceil` becomes the \
         rate, `prio` 0, the quantum \
         rate / r2q. So a class that could borrow cannot any more. tc-htb(8) gives the defaults. `tc qdisc change … netem` too: delay, loss and rate that it does not name \
         are gone (`netem_change`).",
        changed_by_halves,
    ),
    Rule::warning(
        "PS118",
        "urgent traffic stands behind bulk traffic",
        "Lower numbers go first: HTB offers what is left to classes of prio 0 before those of prio 7, and the qdisc prio asks band 0 (class 1:1) first. A class for \
         EF, voice or low delay \
         with a higher number than the default or the bulk class waits for it. RFC 4594 has the order of the DSCPs.",
        behind_bulk,
    ),
    Rule::warning(
        "PS119",
        "HTB without a class shapes nothing",
        "HTB's qdisc has no rate of its own. Without a class everything goes through its direct queue at the speed of the link, whatever `default` says.",
        no_class,
    ),
];

/// Commands that make or change classes: step, device, class, verb.
fn class_commands(facts: &Facts) -> Vec<(usize, &Step, &str, Handle, Verb)> {
    facts
        .tc_done()
        .filter_map(|(at, step, command)| match command {
            Command::Class { dev: Some(dev), req } if req.kind.as_deref().is_none_or(|k| k == "htb") => {
                Some((at, step, dev.as_str(), req.classid, req.verb))
            }
            _ => None,
        })
        .collect()
}

fn same_class(facts: &Facts, found: &mut Found) {
    let mut made: BTreeMap<(&str, Handle), &Step> = BTreeMap::new();
    for (at, step, dev, id, verb) in class_commands(facts) {
        if verb == Verb::Del {
            made.remove(&(dev, id));
            continue;
        }
        let before = made.insert((dev, id), step);
        let Some(before) =
            before.filter(|b| b.line == step.line && verb == Verb::Replace && b.file == step.file)
        else {
            continue;
        };
        if before.words == step.words && before.calls != step.calls {
            continue;
        }
        // What goes on for ever, or waits between its turns, changes rates on purpose.
        // `while read` reads a list.
        let asks = |l: &String| l.trim_start().starts_with("read ");
        if facts.source.commands(&["sleep", "wait"]) || facts.source.lines.iter().any(asks) {
            return;
        }
        let reason = format!("`{}` was made by the turn before; this one changes it.", before.text());
        found.at(
            at,
            step.value(&["classid"]).unwrap_or(""),
            Say::new(format!("every turn of the loop makes {id}"), reason, ""),
        );
    }
}

/// What netem had and a `change` does not name, once in a script: who changes it again and again tries one thing after the other.
fn netem_by_halves(facts: &Facts, found: &mut Found) {
    let mut made: BTreeMap<(&str, Handle), &Step> = BTreeMap::new();
    let mut changes = Vec::new();
    for (at, step, command) in facts.tc_done() {
        let Command::Qdisc { dev: Some(dev), req } = command else { continue };
        if req.kind.as_deref() != Some("netem") {
            continue;
        }
        let before = made.insert((dev.as_str(), req.parent), step);
        if let (Verb::Change, Some(before)) = (req.verb, before.filter(|b| b.line != step.line)) {
            changes.push((at, step, before));
        }
    }
    let [(at, step, before)] = changes.as_slice() else { return };
    let had = ["delay", "loss", "rate", "duplicate", "corrupt", "reorder"];
    let lost: Vec<&str> = had.into_iter().filter(|n| before.has(n) && !step.has(n)).collect();
    let adds = had.iter().any(|n| step.has(n) && !before.has(n));
    let Some(first) = lost.first().filter(|_| adds) else { return };
    let reason = format!(
        "It had {} before, and `change` sets all of netem anew: {first} is gone now.",
        lost.join(", ")
    );
    let words = before.words.iter().skip_while(|w| *w != first);
    let value: Vec<&str> =
        words.skip(1).take_while(|w| !had.contains(&w.as_str())).map(String::as_str).collect();
    let fix = format!("{} {first} {}", step.text(), value.join(" "));
    let say = Say::new(format!("this change takes away netem's {}", lost.join(" and ")), reason, fix);
    found.at(*at, "change", say.level(Level::Note));
}

fn changed_by_halves(facts: &Facts, found: &mut Found) {
    netem_by_halves(facts, found);
    let mut made: BTreeMap<(&str, Handle), &Step> = BTreeMap::new();
    for (at, step, dev, id, verb) in class_commands(facts) {
        let before = match verb {
            Verb::Del => made.remove(&(dev, id)).and(None),
            _ => made.insert((dev, id), step),
        };
        let Some(before) = before.filter(|_| matches!(verb, Verb::Change | Verb::Replace)) else { continue };
        if before.line == step.line {
            continue;
        }
        let ceil = before.value(&["ceil"]).and_then(|w| num::rate(w, facts.kernel));
        let now = step.value(&["rate"]).and_then(|w| num::rate(w, facts.kernel)).unwrap_or(0);
        let lost: Vec<&str> = ["ceil", "prio", "quantum", "burst", "cburst"]
            .into_iter()
            .filter(|n| before.has(n) && !step.has(n))
            .filter(|n| *n != "ceil" || ceil.is_some_and(|c| c > now))
            .filter(|n| *n != "prio" || before.value(&["prio"]) != Some("0"))
            // A burst follows the rate where nobody gives it.
            .filter(|n| !n.ends_with("burst"))
            .collect();
        let Some(first) = lost.first() else { continue };
        let new = match *first {
            "ceil" => format!("ceil is {} now, which is the rate", rate(now)),
            "prio" => "prio is 0 now".to_owned(),
            _ => "quantum is rate / r2q now".to_owned(),
        };
        let kept = |n: &&&str| format!("{n} {}", before.value(&[n]).unwrap_or(""));
        let words: Vec<String> = lost.iter().map(|n| kept(&n)).collect();
        let reason = format!("Line {} gave it {}; {new}.", before.line, words.join(" "));
        let fix = format!("{} {}", step.text(), words.join(" "));
        found.at(
            at,
            step.value(&["rate"]).unwrap_or(""),
            Say::new(format!("this takes {first} back from {id}"), reason, fix),
        );
    }
}

fn behind_bulk(facts: &Facts, found: &mut Found) {
    for device in facts.shaped() {
        for qdisc in device.qdiscs.iter().filter(|q| q.step.is_some()) {
            match qdisc.kind {
                "htb" => {
                    let default =
                        Handle::new(qdisc.handle.major(), qdisc.options.u32("default").unwrap_or(0) as u16);
                    let prio = |id: Handle| device.class(id).and_then(|c| c.options.u32("prio")).unwrap_or(0);
                    let leaves: Vec<_> = device
                        .classes_of(qdisc.handle)
                        .filter(|c| c.children.is_empty())
                        .map(|c| (c, kinds_of(facts, device, c.id)))
                        .collect();
                    for (class, _) in leaves.iter().filter(|l| l.1 == Some(Kind::Urgent) && l.0.id != default)
                    {
                        let ahead = leaves.iter().find(|(other, kind)| {
                            prio(other.id) < prio(class.id)
                                && other.parent == class.parent
                                && (*kind == Some(Kind::Bulk)
                                    || other.id == default && *kind != Some(Kind::Urgent))
                        });
                        let (Some((other, _)), Some(at)) = (ahead, class.step) else { continue };
                        let step = &facts.steps[at];
                        let reason = format!(
                            "{} has prio {}, and {} ({}) has prio {}: what is left goes to that one first.",
                            class.id,
                            prio(class.id),
                            other.id,
                            if other.id == default { "the default" } else { "bulk" },
                            prio(other.id)
                        );
                        found.at(
                            at,
                            step.value(&["prio"]).unwrap_or(""),
                            Say::new(
                                format!("the urgent class {} stands behind {}", class.id, other.id),
                                reason,
                                step.with("prio", "0"),
                            ),
                        );
                    }
                }
                "prio" => {
                    let map = qdisc.options.bytes("priomap").unwrap_or(&[]);
                    let usual = u16::from(map.first().copied().unwrap_or(1)) + 1;
                    for filter in device.filters.iter().filter(|f| f.parent == qdisc.handle) {
                        let Some(to) =
                            filter.classid.filter(|c| c.qdisc() == qdisc.handle && c.minor() > usual)
                        else {
                            continue;
                        };
                        if super::sorted::kind_of(filter) != Some(Kind::Urgent) {
                            continue;
                        }
                        let step = &facts.steps[filter.step];
                        let reason = format!(
                            "Packets without a mark or a TOS go to {}:{usual}, which is asked before {to}.",
                            qdisc.handle.major()
                        );
                        found.at(
                            filter.step,
                            step.value(&["flowid", "classid"]).unwrap_or(""),
                            Say::new(format!("urgent packets go to {to}, behind the others"), reason, ""),
                        );
                    }
                }
                _ => {}
            }
        }
    }
}

fn no_class(facts: &Facts, found: &mut Found) {
    if facts.partial || !facts.installed() && facts.steps.len() < 2 {
        return;
    }
    for (device, qdisc, at) in facts.made_of(&["htb"]) {
        let last = facts.devices.iter().rfind(|d| d.name == device.name);
        let stands = last.is_some_and(|d| std::ptr::eq(d, device)) && facts.foreign.contains(&device.name);
        let any = device.classes_of(qdisc.handle).next().is_some();
        let default = qdisc.options.u32("default").unwrap_or(0);
        let refused = facts.steps.iter().any(|s| !s.ok() && s.has("class"))
            || was_refused(facts, &device.name, Handle::new(qdisc.handle.major(), default as u16));
        if any || default == 0 || !stands || refused || qdisc.parent != Handle::ROOT {
            continue;
        }
        let step = &facts.steps[at];
        let fix = format!(
            "tc class add dev {} parent {} classid {}{default:x} htb rate {}",
            device.name,
            qdisc.handle,
            qdisc.handle,
            facts.link_of(&device.name).map_or("10mbit".to_owned(), rate)
        );
        found.at(
            at,
            step.value(&["default"]).unwrap_or("htb"),
            Say::new(
                format!("htb {} has no class at all", qdisc.handle),
                "No command makes one: everything is sent unshaped.",
                fix,
            ),
        );
    }
}
