//! `REJECT`, `LOG`, `NFLOG`, `AUDIT`, `TRACE`, `NFQUEUE`, `TEE`, `CT`, `NOTRACK`.

use super::super::matches::{Ext, Head, ext};
use super::super::option::{Fault, Kind, Opt, ParsedOption, Seen, Value, fault, number, opt};
use super::super::save_string;
use super::Target;
use crate::iptables::{Plain, ZoneOf, reject_names};
use std::fmt::Write;

pub(super) const TARGETS: &[Ext<Target>] = &[
    ext("AUDIT", &[opt("type", Kind::Text(0, 0)).must()], |seen, _| {
        let ty = seen.text("type").to_ascii_lowercase();
        let (save, list) = (format!(" --type {ty}"), format!("AUDIT {ty}"));
        Target::Log(Plain { name: "AUDIT".to_owned(), save, numeric: list.clone(), list })
    })
    .reads(|given, _| {
        match ["accept", "drop", "reject"].contains(&given.text.to_ascii_lowercase().as_str()) {
            true => Ok(()),
            false => fault(format!("Bad action type value \"{}\"", given.text), "accept, drop or reject"),
        }
    }),
    // Packets here have right sums at all times.
    ext("CHECKSUM", &[opt("checksum-fill", Kind::None).must()], |_, _| {
        let (save, list) = (" --checksum-fill".to_owned(), "CHECKSUM fill".to_owned());
        Target::Log(Plain { name: "CHECKSUM".to_owned(), save, numeric: list.clone(), list })
    }),
    ext("CT", CT, ct).reads(read_ct),
    ext("LOG", LOG, log).reads(no_newlines),
    ext("NFLOG", NFLOG, nflog).reads(no_newlines),
    ext("NFQUEUE", NFQUEUE, nfqueue).reads(read_nfqueue),
    ext("NOTRACK", &[], |_, _| Target::Notrack(true)),
    ext("REJECT", &[opt("reject-with", Kind::Text(0, 0))], |seen, head| {
        let default = reject_names(head.family).iter().position(|n| n.1 == "port-unreach").unwrap_or(0);
        let at = seen.find("reject-with").and_then(|g| reject(&g.text, head)).unwrap_or(default);
        Target::Reject(at as u8)
    })
    .reads(|given, head| match reject(&given.text, head) {
        Some(_) => Ok(()),
        None => fault(
            format!("unknown reject type \"{}\"", given.text),
            &reject_names(head.family).iter().map(|n| n.0).collect::<Vec<_>>().join(" "),
        ),
    }),
    ext("TRACE", &[], |_, _| {
        let none = String::new();
        Target::Log(Plain { name: "TRACE".to_owned(), save: none.clone(), numeric: none.clone(), list: none })
    }),
    ext("TEE", &[opt("gateway", Kind::Host).must(), opt("oif", Kind::Text(0, 0))], |seen, head| {
        let gateway = head.family.address(seen.net("gateway").map_or(0, |n| n.0));
        let (mut save, mut list) = (format!(" --gateway {gateway}"), format!("TEE gw:{gateway}"));
        if let Some(oif) = seen.find("oif") {
            let _ = write!(save, " --oif {}", oif.text);
            let _ = write!(list, " oif={}", oif.text);
        }
        Target::Plain(Plain { name: "TEE".to_owned(), save, numeric: list.clone(), list })
    }),
];

/// By any beginning of a name.
fn reject(text: &str, head: &Head) -> Option<usize> {
    let fits = |name: &str| name.get(..text.len()).is_some_and(|n| n.eq_ignore_ascii_case(text));
    reject_names(head.family).iter().position(|n| fits(n.0) || fits(n.1))
}

fn no_newlines(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    match given.id.ends_with("-prefix") && given.text.contains('\n') {
        true => fault("Newlines not allowed in --log-prefix", ""),
        false => Ok(()),
    }
}

const LOG: &[Opt] = &[
    opt("log-level", Kind::Syslog),
    opt("log-prefix", Kind::Text(1, 0)),
    opt("log-tcp-sequence", Kind::None),
    opt("log-tcp-options", Kind::None),
    opt("log-ip-options", Kind::None),
    opt("log-uid", Kind::None),
    opt("log-macdecode", Kind::None),
];

/// The most a buffer of so many bytes holds, its end not counted.
fn held(text: &str, bytes: usize) -> String {
    let mut end = text.len().min(bytes - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

fn log(seen: &Seen, _: &Head) -> Target {
    const NAMES: [&str; 8] = ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"];
    const FLAGS: [(&str, u32); 5] = [
        ("log-tcp-sequence", 1),
        ("log-tcp-options", 2),
        ("log-ip-options", 4),
        ("log-uid", 8),
        ("log-macdecode", 32),
    ];
    let level = seen.int("log-level").unwrap_or(4) as usize;
    let prefix = held(seen.text("log-prefix"), 30);
    let flags = FLAGS.iter().filter(|f| seen.has(f.0));
    let bits: u32 = flags.clone().map(|f| f.1).sum();
    let mut save = String::new();
    if !prefix.is_empty() {
        let _ = write!(save, " --log-prefix {}", save_string(&prefix));
    }
    if level != 4 {
        let _ = write!(save, " --log-level {level}");
    }
    let mut list = format!("LOG level {}", NAMES[level.min(7)]);
    for (flag, _) in flags {
        let _ = write!(save, " --{flag}");
        let _ = write!(list, " {}", &flag[4..]);
    }
    let mut numeric = format!("LOG flags {bits} level {level}");
    if !prefix.is_empty() {
        let _ = write!(list, " prefix \"{prefix}\"");
        let _ = write!(numeric, " prefix \"{prefix}\"");
    }
    Target::Log(Plain { name: "LOG".to_owned(), save, list, numeric })
}

const NFLOG: &[Opt] = &[
    opt("nflog-group", Kind::Int(0, 65_535)),
    opt("nflog-prefix", Kind::Text(1, 0)),
    opt("nflog-range", Kind::Int(0, u32::MAX as u64)).excl(&["nflog-size"]),
    opt("nflog-size", Kind::Int(0, u32::MAX as u64)).excl(&["nflog-range"]),
    opt("nflog-threshold", Kind::Int(0, 65_535)),
];

fn nflog(seen: &Seen, _: &Head) -> Target {
    let text = |pre: &str| {
        let mut out = String::new();
        let prefix = held(seen.text("nflog-prefix"), 64);
        if !prefix.is_empty() {
            let _ = write!(out, " {pre}nflog-prefix {}", save_string(&prefix));
        }
        let mut number = |id: &str, absent: Option<u64>| {
            if let Some(n) = seen.int(id).filter(|n| Some(*n) != absent) {
                let _ = write!(out, " {pre}{id} {n}");
            }
        };
        number("nflog-group", Some(0));
        number("nflog-size", None);
        number("nflog-range", Some(0));
        number("nflog-threshold", Some(0));
        out
    };
    let list = text("").trim_start().to_owned();
    Target::Log(Plain { name: "NFLOG".to_owned(), save: text("--"), numeric: list.clone(), list })
}

const NFQUEUE: &[Opt] = &[
    opt("queue-num", Kind::Int(0, 65_535)).excl(&["queue-balance"]),
    opt("queue-balance", Kind::Range(65_535)).excl(&["queue-num"]),
    opt("queue-bypass", Kind::None),
    opt("queue-cpu-fanout", Kind::None).also(&["queue-balance"]),
];

fn read_nfqueue(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    match given.value {
        Value::Range(_, 1) => fault(format!("Bad range \"{}\"", given.text), "first:last"),
        Value::Range([from, to], _) if from >= to => {
            fault(format!("{from} should be less than {to}"), "first:last")
        }
        _ => Ok(()),
    }
}

fn nfqueue(seen: &Seen, _: &Head) -> Target {
    let (mut save, mut list) = match seen.range("queue-balance") {
        Some(([from, to], _)) => {
            (format!(" --queue-balance {from}:{to}"), format!("NFQUEUE balance {from}:{to}"))
        }
        None => {
            let n = seen.int("queue-num").unwrap_or(0);
            (format!(" --queue-num {n}"), format!("NFQUEUE num {n}"))
        }
    };
    for (id, word) in [("queue-bypass", "bypass"), ("queue-cpu-fanout", "cpu-fanout")] {
        if seen.has(id) {
            let _ = write!(save, " --{id}");
            let _ = write!(list, " {word}");
        }
    }
    Target::Plain(Plain { name: "NFQUEUE".to_owned(), save, numeric: list.clone(), list })
}

const CT: &[Opt] = &[
    opt("notrack", Kind::None),
    opt("helper", Kind::Text(0, 0)),
    opt("timeout", Kind::Text(0, 0)),
    opt("ctevents", Kind::Text(0, 0)),
    opt("expevents", Kind::Text(0, 0)),
    opt("zone-orig", Kind::Text(0, 0)),
    opt("zone-reply", Kind::Text(0, 0)),
    opt("zone", Kind::Text(0, 0)),
];
const EVENTS: [&str; 10] =
    ["new", "related", "destroy", "reply", "assured", "protoinfo", "helper", "mark", "natseqinfo", "secmark"];

fn read_ct(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    let text = given.text.as_str();
    let known: &[&str] = match given.id {
        "ctevents" => &EVENTS,
        "expevents" => &EVENTS[..1],
        "zone" | "zone-orig" | "zone-reply" => {
            let number = number(text).filter(|&n| n <= 65_535).is_some();
            return match number || text.eq_ignore_ascii_case("mark") {
                true => Ok(()),
                false => fault(format!("Cannot parse {text} as a zone ID"), "0 to 65535, or mark"),
            };
        }
        _ => return Ok(()),
    };
    match text.split(',').find(|e| !known.contains(e)) {
        Some(bad) => fault(format!("Unknown event type \"{bad}\""), &known.join(",")),
        None => Ok(()),
    }
}

fn ct(seen: &Seen, _: &Head) -> Target {
    if seen.0.len() == 1 && seen.has("notrack") {
        return Target::Notrack(false);
    }
    // The last of these counts.
    let zone = seen.0.iter().rev().find(|g| ["zone", "zone-orig", "zone-reply"].contains(&g.id));
    let text = |pre: &str| {
        let mut out = String::new();
        if seen.has("notrack") {
            let _ = write!(out, " {pre}notrack");
        }
        for id in ["helper", "timeout"] {
            if let Some(g) = seen.find(id).filter(|g| !g.text.is_empty()) {
                let _ = write!(out, " {pre}{id} {}", g.text);
            }
        }
        for (id, known) in [("ctevents", &EVENTS[..]), ("expevents", &EVENTS[..1])] {
            if let Some(g) = seen.find(id) {
                let names: Vec<&str> =
                    known.iter().filter(|e| g.text.split(',').any(|x| x == **e)).copied().collect();
                let _ = write!(out, " {pre}{id} {}", names.join(","));
            }
        }
        if let Some(g) = zone {
            match number(&g.text) {
                Some(0) => {}
                Some(n) => {
                    let _ = write!(out, " {pre}{} {n}", g.id);
                }
                None => {
                    let _ = write!(out, " {pre}{} mark", g.id);
                }
            }
        }
        out
    };
    let list = format!("CT{}", text(""));
    let words = Plain { name: "CT".to_owned(), save: text("--"), numeric: list.clone(), list };
    let directed = zone.is_some_and(|g| g.id != "zone");
    let more = ["helper", "timeout"].iter().any(|id| seen.find(id).is_some_and(|g| !g.text.is_empty()));
    if directed || more {
        return Target::Plain(words);
    }
    // What is told of connections has no listener.
    let zone = match zone.map(|g| number(&g.text)) {
        Some(None) => ZoneOf::Mark,
        Some(Some(n)) => ZoneOf::Number(n as u16),
        None => ZoneOf::Number(0),
    };
    Target::Zone(words, if seen.has("notrack") { ZoneOf::Untracked } else { zone })
}
