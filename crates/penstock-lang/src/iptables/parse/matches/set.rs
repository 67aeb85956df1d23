//! `set`, and what it shares with the target `SET`.
//!
//! Follows: iptables 1.8.9 `extensions/libxt_set.c`, `libxt_set.h`.

use super::super::option::{Fault, Kind, Opt, ParsedOption, Seen, fault, number, opt};
use super::{Ext, Head, ext};
use crate::iptables::{Asks, Counter, Direction, Match, Plain, SetAsk, SetName};
use std::fmt::Write;

pub(super) const MATCHES: &[Ext<Match>] = &[ext("set", SET, set).reads(read).checks(check)];

const COUNTERS: [(&str, &str, Counter); 6] = [
    ("packets-eq", "packets", Counter::Eq),
    ("packets-lt", "packets", Counter::Lt),
    ("packets-gt", "packets", Counter::Gt),
    ("bytes-eq", "bytes", Counter::Eq),
    ("bytes-lt", "bytes", Counter::Lt),
    ("bytes-gt", "bytes", Counter::Gt),
];

const SET: &[Opt] = &[
    opt("match-set", Kind::Text(0, 0)).inv(),
    opt("set", Kind::Text(0, 0)).id("match-set").inv(),
    opt("return-nomatch", Kind::None).inv(),
    opt("update-counters", Kind::None).inv(),
    opt("update-subcounters", Kind::None).inv(),
    opt("packets-eq", Kind::Text(0, 0)).inv(),
    opt("packets-lt", Kind::Text(0, 0)).inv(),
    opt("packets-gt", Kind::Text(0, 0)).inv(),
    opt("bytes-eq", Kind::Text(0, 0)).inv(),
    opt("bytes-lt", Kind::Text(0, 0)).inv(),
    opt("bytes-gt", Kind::Text(0, 0)).inv(),
];

/// Looks at `NAME src,dst`: the name's length and its directions.
pub(in crate::iptables::parse) fn read_name(text: &str) -> Result<(), Fault> {
    let (name, dirs) = text.split_once(' ').unwrap_or((text, ""));
    if name.len() > 31 {
        return fault(format!("setname `{name}' too long, max 31 characters."), "");
    }
    for (i, dir) in dirs.split(',').enumerate() {
        if i == 6 {
            return fault("Can't be more src/dst options than 6.", "");
        }
        if !dir.starts_with("src") && !dir.starts_with("dst") {
            // Word for word, the misprint included.
            let message = "You must spefify (the comma separated list of) 'src' or 'dst'.";
            return fault(message, "one for each part of the set's elements, e.g. src,dst");
        }
    }
    Ok(())
}

/// The name and the directions.
pub(in crate::iptables::parse) fn set_name(text: &str) -> SetName {
    let (name, dirs) = text.split_once(' ').unwrap_or((text, ""));
    let dir = |d: &str| if d.starts_with("src") { Direction::Src } else { Direction::Dst };
    SetName { name: name.to_owned(), dirs: dirs.split(',').map(dir).collect() }
}

/// As it is written.
pub(in crate::iptables::parse) fn written(set: &SetName) -> String {
    let dir = |d: &Direction| if *d == Direction::Src { "src" } else { "dst" };
    format!("{} {}", set.name, set.dirs.iter().map(dir).collect::<Vec<_>>().join(","))
}

fn read(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    match given.id {
        "match-set" => read_name(&given.text),
        "return-nomatch" if given.invert => {
            fault("--return-nomatch flag cannot be inverted", "take the ! off")
        }
        "return-nomatch" | "update-counters" | "update-subcounters" => Ok(()),
        id if number(&given.text).is_none() => {
            fault(format!("Cannot parse {} as a counter value\n", given.text), &format!("--{id} NUMBER"))
        }
        id if given.invert && !id.ends_with("-eq") => {
            fault(format!("--{id} option cannot be inverted"), "take the ! off")
        }
        _ => Ok(()),
    }
}

fn check(seen: &Seen, _: &Head) -> Result<(), Fault> {
    for what in ["packets", "bytes"] {
        if COUNTERS.iter().filter(|c| c.1 == what && seen.has(c.0)).count() > 1 {
            return fault(format!("only one of the --{what}-[eq|lt|gt] is allowed"), "take one off");
        }
    }
    match seen.has("match-set") {
        true => Ok(()),
        false => fault(
            "You must specify `--match-set' with proper arguments",
            "--match-set NAME src, or dst, or src,dst",
        ),
    }
}

fn set(seen: &Seen, _: &Head) -> Match {
    let counter = |what: &str| {
        let (id, _, op) = COUNTERS.iter().find(|c| c.1 == what && seen.has(c.0))?;
        let given = seen.find(id)?;
        let op = if given.invert { Counter::Ne } else { *op };
        Some((op, number(&given.text)?))
    };
    let ask = SetAsk {
        set: set_name(seen.text("match-set")),
        invert: seen.inverted("match-set"),
        return_nomatch: seen.has("return-nomatch"),
        update_counters: !seen.inverted("update-counters"),
        update_subcounters: !seen.inverted("update-subcounters"),
        packets: counter("packets"),
        bytes: counter("bytes"),
    };
    let text = |pre: &str| {
        let mut out = format!("{}{pre}match-set {}", if ask.invert { "! " } else { "" }, written(&ask.set));
        for (on, word) in [
            (ask.return_nomatch, format!(" {pre}return-nomatch")),
            (!ask.update_counters, format!(" ! {pre}update-counters")),
            (!ask.update_subcounters, format!(" ! {pre}update-subcounters")),
        ] {
            out += if on { &word } else { "" };
        }
        for (what, counter) in [("packets", ask.packets), ("bytes", ask.bytes)] {
            let Some((op, n)) = counter else { continue };
            let (not, word) = match op {
                Counter::Eq => ("", "eq"),
                Counter::Ne => ("! ", "eq"),
                Counter::Lt => ("", "lt"),
                Counter::Gt => ("", "gt"),
            };
            let _ = write!(out, " {not}{pre}{what}-{word} {n}");
        }
        out
    };
    let list = text("");
    let words =
        Plain { name: "set".to_owned(), save: format!(" {}", text("--")), numeric: list.clone(), list };
    Match::Worded(words, Asks::Set(ask))
}
