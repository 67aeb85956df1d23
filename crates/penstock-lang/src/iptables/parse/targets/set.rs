//! `SET`.
//!
//! Follows: iptables 1.8.9 `extensions/libxt_SET.c`.

use super::super::matches::set::{read_name, set_name, written};
use super::super::matches::{Ext, Head, ext};
use super::super::option::{Fault, Kind, Opt, ParsedOption, Seen, fault, number, opt};
use super::Target;
use crate::iptables::{Plain, SetTarget};
use std::fmt::Write;

pub(super) const TARGETS: &[Ext<Target>] = &[ext("SET", SET, set).reads(read).checks(check)];

const SET: &[Opt] = &[
    opt("add-set", Kind::Text(0, 0)),
    opt("del-set", Kind::Text(0, 0)),
    opt("exist", Kind::None),
    opt("timeout", Kind::Text(0, 0)),
    opt("map-set", Kind::Text(0, 0)),
    opt("map-mark", Kind::None),
    opt("map-prio", Kind::None),
    opt("map-queue", Kind::None),
];

/// Seconds: one less than 32 bits hold at most.
fn seconds(text: &str) -> Option<u32> {
    number(text).and_then(|n| u32::try_from(n).ok()).filter(|n| *n < u32::MAX)
}

fn read(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    match given.id {
        "add-set" | "del-set" | "map-set" => read_name(&given.text),
        "timeout" if seconds(&given.text).is_none() => {
            fault("Invalid value for option --timeout or out of range 0-4294967294", "seconds")
        }
        _ => Ok(()),
    }
}

fn check(seen: &Seen, _: &Head) -> Result<(), Fault> {
    let has = |id| seen.has(id);
    if !(has("add-set") || has("del-set") || has("map-set")) {
        let message = "You must specify either `--add-set' or `--del-set' or `--map-set'";
        return fault(message, "e.g. --add-set NAME src");
    }
    if !has("add-set") {
        if has("exist") {
            return fault("Flag `--exist' can be used with `--add-set' only", "");
        }
        if has("timeout") {
            return fault("Option `--timeout' can be used with `--add-set' only", "");
        }
    }
    let flags = ["map-mark", "map-prio", "map-queue"];
    if !has("map-set") {
        return match flags.iter().find(|f| has(f)) {
            Some(flag) => fault(format!("Flag `--{flag}' can be used with `--map-set' only"), ""),
            None => Ok(()),
        };
    }
    match flags.iter().any(|f| has(f)) {
        true => Ok(()),
        false => fault("You must specify flags `--map-mark' or '--map-prio` or `--map-queue'", ""),
    }
}

fn set(seen: &Seen, _: &Head) -> Target {
    let name = |id: &str| seen.find(id).map(|g| set_name(&g.text));
    let t = SetTarget {
        add: name("add-set"),
        exist: seen.has("exist"),
        timeout: seen.find("timeout").and_then(|g| seconds(&g.text)),
        del: name("del-set"),
        map: name("map-set"),
        map_mark: seen.has("map-mark"),
        map_prio: seen.has("map-prio"),
        map_queue: seen.has("map-queue"),
    };
    let text = |pre: &str| {
        let mut out = String::new();
        if let Some(set) = &t.add {
            let _ = write!(out, " {pre}add-set {}", written(set));
        }
        if t.exist {
            let _ = write!(out, " {pre}exist");
        }
        if let Some(seconds) = t.timeout {
            let _ = write!(out, " {pre}timeout {seconds}");
        }
        for (word, set) in [("del-set", &t.del), ("map-set", &t.map)] {
            if let Some(set) = set {
                let _ = write!(out, " {pre}{word} {}", written(set));
            }
        }
        for (on, word) in [(t.map_mark, "map-mark"), (t.map_prio, "map-prio"), (t.map_queue, "map-queue")] {
            if on {
                let _ = write!(out, " {pre}{word}");
            }
        }
        out
    };
    let list = text("").trim_start().to_owned();
    let words = Plain { name: "SET".to_owned(), save: text("--"), numeric: list.clone(), list };
    Target::Set(words, Box::new(t))
}
