//! PS006: kinds that have left Linux.

use crate::facts::{Facts, Step};
use crate::finding::{Found, Level, Rule, Say};
use penstock_lang::tc::Command;
use penstock_model::Kernel;
use penstock_model::rtnetlink::Verb;

pub const RULES: &[Rule] = &[Rule {
    code: "PS006",
    severity: Level::Error,
    about: "the kind was removed from Linux",
    why: "CBQ, dsmark, ATM's qdisc, tcindex and rsvp were taken out in Linux 6.3, the action ipt in 6.8; scripts that use them stop working with the kernel. The fix \
         is the command in \
          today's words: CBQ becomes HTB with the same shares (`bounded` is a ceil that equals the rate; CBQ's prio counts from 1, HTB's from 0), dsmark becomes \
         skbedit and pedit, \
          tcindex becomes flower on the DSCP or fw on a mark, rsvp becomes flower, ipt becomes connmark, skbedit or pedit. `--kernel 2.6.35` reads the script as an \
         old kernel does.",
    find: removed,
}];

fn kind_of(step: &Step) -> Option<(&str, Verb)> {
    match step.tc()? {
        Command::Qdisc { req, .. } => Some((req.kind.as_deref()?, req.verb)),
        Command::Class { req, .. } => Some((req.kind.as_deref()?, req.verb)),
        Command::Filter { req, .. } => Some((req.kind.as_deref()?, req.verb)),
        _ => None,
    }
}

/// What stands today for a command whose kind is gone; `None` for every other command.
pub fn replacement(facts: &Facts, step: &Step) -> Option<String> {
    if facts.kernel == Kernel::V2_6_35 {
        return None;
    }
    if let Some(fix) = by_ipt(step) {
        return Some(fix);
    }
    let (kind, verb) = kind_of(step)?;
    if verb == Verb::Del {
        return None;
    }
    let said = match kind {
        "cbq" => return Some(htb(facts, step)),
        "dsmark" => match step.tc()? {
            Command::Qdisc { .. } => step.text().split(" dsmark").next()?.to_owned() + " prio",
            _ => {
                let value = step.value(&["value"]).unwrap_or("0xb8");
                format!(
                    "tc filter add dev {} parent 1: protocol ip prio 1 matchall action pedit ex munge ip dsfield set {value} retain 0xfc pipe action csum ip4h",
                    dev(step)
                )
            }
        },
        "tcindex" => format!(
            "tc filter add dev {} parent {} protocol ip prio 1 flower ip_tos {}/0xfc classid {}",
            dev(step),
            step.value(&["parent"]).unwrap_or("1:"),
            step.value(&["handle"]).map_or("0xb8".to_owned(), |h| match crate::marks::number(h) {
                Some(dscp) if dscp < 64 => format!("0x{:x}", dscp << 2),
                _ => "0xb8".to_owned(),
            }),
            step.value(&["classid", "flowid"]).unwrap_or("1:1"),
        ),
        "rsvp" | "rsvp6" => format!(
            "tc filter add dev {} parent {} protocol {} prio 1 flower dst_ip {} classid {}",
            dev(step),
            step.value(&["parent"]).unwrap_or("1:"),
            if kind == "rsvp" { "ip" } else { "ipv6" },
            step.value(&["session"]).unwrap_or("10.0.0.1").split('/').next()?,
            step.value(&["classid", "flowid"]).unwrap_or("1:1"),
        ),
        "atm" => step.text().split(" atm").next()?.to_owned() + " htb default 1",
        _ => return None,
    };
    Some(said)
}

/// What stands today for the action `ipt` of a filter; tc itself may not know the word any more.
fn by_ipt(step: &Step) -> Option<String> {
    let from =
        step.words.windows(2).position(|w| w[0] == "action" && matches!(w[1].as_str(), "ipt" | "xt"))?;
    if step.program() != "tc" || step.words.iter().any(|w| w == "del" || w == "delete") {
        return None;
    }
    let before = step.words[..from].join(" ");
    let rest = &step.words[from + 2..];
    let until = rest.iter().position(|w| w == "action").unwrap_or(rest.len());
    let after = rest[until..].join(" ");
    let then = if after.is_empty() { String::new() } else { format!(" pipe {after}") };
    let said = if step.has("CONNMARK") {
        "connmark".to_owned()
    } else if step.has("DSCP") || step.has("TOS") {
        let set = step.value(&["--set-dscp", "--set-tos"]).unwrap_or("0x10");
        let value = crate::marks::number(set.split('/').next()?);
        let value =
            value.map_or(set.to_owned(), |v| format!("{:#x}", if step.has("DSCP") { v << 2 } else { v }));
        format!("pedit ex munge ip dsfield set {value} retain 0xfc pipe action csum ip4h")
    } else {
        format!("skbedit mark {}", step.value(&["--set-mark", "--set-xmark"]).unwrap_or("1"))
    };
    Some(format!("{before} action {said}{then}"))
}

fn dev(step: &Step) -> &str {
    step.value(&["dev"]).unwrap_or("eth0")
}

/// CBQ's command in HTB's words.
fn htb(facts: &Facts, step: &Step) -> String {
    let words = &step.words;
    let at = words.iter().position(|w| w == "cbq").unwrap_or(words.len());
    let before = words[..at].join(" ");
    if matches!(step.tc(), Some(Command::Qdisc { .. })) {
        return format!("{before} htb default 10");
    }
    let rate = step.value(&["rate"]).or(step.value(&["bandwidth"])).unwrap_or("1mbit").to_lowercase();
    let ceil = match step.has("bounded") {
        true => rate.clone(),
        // An unbounded class borrows what its parent has.
        false => {
            let parent = step.value(&["parent"]).unwrap_or("");
            let above = facts
                .steps
                .iter()
                .find(|s| s.value(&["classid"]) == Some(parent) && dev(s) == dev(step))
                .and_then(|s| s.value(&["rate"]));
            above.or(step.value(&["bandwidth"])).map_or(rate.clone(), str::to_lowercase)
        }
    };
    let prio = step
        .value(&["prio"])
        .and_then(|p| p.parse::<u32>().ok())
        .map_or(String::new(), |p| format!(" prio {}", p.saturating_sub(1).min(7)));
    format!("{before} htb rate {rate} ceil {ceil}{prio}")
}

fn removed(facts: &Facts, found: &mut Found) {
    for (at, step) in facts.steps.iter().enumerate() {
        if let Some(fix) = replacement(facts, step) {
            let kind = kind_of(step).map_or("", |k| k.0);
            let by_ipt = by_ipt(step).is_some();
            let kind = if by_ipt { if step.has("ipt") { "ipt" } else { "xt" } } else { kind };
            let since = if by_ipt { "6.8" } else { "6.3" };
            let message = format!("{kind} was removed from Linux");
            found.at(
                at,
                kind,
                Say::new(
                    message,
                    format!("{kind} is in no kernel since {since}; this one is {}.", facts.kernel),
                    fix,
                ),
            );
        }
    }
}
