//! Who was seen lately: `recent`.

use super::super::option::{Fault, Kind, Opt, Seen, fault, opt};
use super::{Ext, Head, ext};
use crate::iptables::{Asks, Match, Plain, Recent, RecentOp};
use std::fmt::Write;

pub(super) const MATCHES: &[Ext<Match>] = &[ext("recent", RECENT, recent).checks(check)];

const RECENT: &[Opt] = &[
    opt("set", Kind::None).excl(&["rcheck", "update", "remove"]).inv(),
    opt("rcheck", Kind::None).excl(&["set", "update", "remove"]).inv(),
    opt("update", Kind::None).excl(&["set", "rcheck", "remove"]).inv(),
    opt("remove", Kind::None).excl(&["set", "rcheck", "update"]).inv(),
    opt("seconds", Kind::Int(1, u32::MAX as u64)),
    opt("hitcount", Kind::Int(0, u32::MAX as u64)),
    opt("rttl", Kind::None),
    opt("name", Kind::Text(0, 199)),
    opt("rsource", Kind::None),
    opt("rdest", Kind::None),
    opt("mask", Kind::Host),
    opt("reap", Kind::None).also(&["seconds"]),
];

const OPS: [(&str, &str, RecentOp); 4] = [
    ("set", "SET", RecentOp::Set),
    ("rcheck", "CHECK", RecentOp::Rcheck),
    ("update", "UPDATE", RecentOp::Update),
    ("remove", "REMOVE", RecentOp::Remove),
];

fn check(seen: &Seen, _: &Head) -> Result<(), Fault> {
    match OPS.iter().any(|op| seen.has(op.0)) {
        true => Ok(()),
        false => fault(
            "recent: you must specify one of `--set', `--rcheck' `--update' or `--remove'",
            "e.g. --set",
        ),
    }
}

fn recent(seen: &Seen, head: &Head) -> Match {
    let (word, shown, op) = *OPS.iter().find(|op| seen.has(op.0)).unwrap_or(&OPS[0]);
    let name = if seen.has("name") { seen.text("name") } else { "DEFAULT" };
    // Of `--rsource` and `--rdest` the last counts.
    let at = |id: &str| seen.0.iter().rposition(|g| g.id == id);
    let r = Recent {
        op,
        invert: seen.inverted(word),
        seconds: seen.int("seconds").unwrap_or(0) as u32,
        hitcount: seen.int("hitcount").unwrap_or(0) as u32,
        reap: seen.has("reap"),
        ttl: seen.has("rttl"),
        name: name.to_owned(),
        dst: at("rdest") > at("rsource"),
        mask: seen.net("mask").map_or(head.family.mask(head.family.bits()), |n| n.0),
    };
    let mut save = format!("{} --{word}", if r.invert { " !" } else { "" });
    let mut list = format!("{}recent: {shown}", if r.invert { "! " } else { "" });
    if r.seconds > 0 {
        let _ = write!(save, " --seconds {}", r.seconds);
        let _ = write!(list, " seconds: {}", r.seconds);
    }
    if r.reap {
        save.push_str(" --reap");
        list.push_str(" reap");
    }
    if r.hitcount > 0 {
        let _ = write!(save, " --hitcount {}", r.hitcount);
        let _ = write!(list, " hit_count: {}", r.hitcount);
    }
    if r.ttl {
        save.push_str(" --rttl");
        list.push_str(" TTL-Match");
    }
    let mask = head.family.address(r.mask);
    let side = if r.dst { "dest" } else { "source" };
    // 1.4.4 knew no mask.
    let (in_save, in_list) = match head.old {
        true => (String::new(), String::new()),
        false => (format!(" --mask {mask}"), format!(" mask: {mask}")),
    };
    let _ = write!(save, " --name {name}{in_save} --r{side}");
    let _ = write!(list, " name: {name} side: {side}{in_list}");
    let words = Plain { name: "recent".to_owned(), save, numeric: list.clone(), list };
    Match::Worded(words, Asks::Recent(r))
}
