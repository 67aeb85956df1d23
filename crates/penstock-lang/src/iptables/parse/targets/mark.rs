//! `MARK`, `CONNMARK`, `CLASSIFY`.

use super::super::matches::{Ext, Head, ext};
use super::super::option::{Kind, Opt, Seen, fault, opt};
use super::Target;
use crate::iptables::{Connmark, Edit};
use penstock_model::Handle;

pub(super) const TARGETS: &[Ext<Target>] = &[
    ext("CLASSIFY", &[opt("set-class", Kind::Text(0, 0)).must()], |seen, head| {
        Target::Edit(Edit::Classify(class(seen.text("set-class"), head.old).unwrap_or(Handle::UNSPEC)))
    })
    .reads(|given, head| match (class(&given.text, head.old), head.old) {
        (Some(_), _) => Ok(()),
        (None, true) => fault(format!("Bad class value `{}'", given.text), CLASS_HELP),
        (None, false) => fault(format!("Bad class value \"{}\"", given.text), CLASS_HELP),
    })
    .checks(|seen, head| match seen.0.is_empty() && head.old {
        true => fault("CLASSIFY: Parameter --set-class is required", "e.g. --set-class 1:10"),
        false => Ok(()),
    }),
    ext("CONNMARK", CONNMARK, connmark).checks(|seen, _| match seen.0.iter().any(|g| OPS.contains(&g.id)) {
        true => Ok(()),
        false => {
            fault("CONNMARK target: No operation specified", "--set-mark, --save-mark or --restore-mark")
        }
    }),
    ext("MARK", MARK, mark).checks(|seen, head| match (seen.0.is_empty(), head.old) {
        (false, _) => Ok(()),
        (true, true) => fault("MARK target: Parameter --set-xmark is required", "e.g. --set-mark 10"),
        (true, false) => fault(
            "MARK: One of the --set-xmark, --{and,or,xor,set}-mark options is required",
            "e.g. --set-mark 10",
        ),
    }),
];

const CLASS_HELP: &str = "MAJOR:MINOR in hex, e.g. 1:10";
const WORD: Kind = Kind::Int(0, u32::MAX as u64);
const ANY: &[&str] = &["set-xmark", "set-mark", "and-mark", "or-mark", "xor-mark"];
const MARK: &[Opt] = &[
    opt("set-xmark", Kind::Mark).excl(ANY),
    opt("set-mark", Kind::Mark).excl(ANY),
    opt("and-mark", WORD).excl(ANY),
    opt("or-mark", WORD).excl(ANY),
    opt("xor-mark", WORD).excl(ANY),
];

/// `sscanf("%x:%x")`: what lies above 16 bits is lost; 1.4.4 took no more than that either.
fn class(text: &str, old: bool) -> Option<Handle> {
    let (major, minor) = text.split_once(':')?;
    if old {
        let hex = |t: &str| u32::from_str_radix(t, 16).ok().filter(|&v| v <= 0xffff && !t.starts_with('+'));
        return Some(Handle(hex(major)? << 16 | hex(minor)?));
    }
    let leading = |t: &str| {
        let t = t.strip_prefix("0x").unwrap_or(t);
        let digits = t.bytes().take_while(u8::is_ascii_hexdigit).count();
        u32::from_str_radix(&t[..digits], 16).ok()
    };
    u32::from_str_radix(major.strip_prefix("0x").unwrap_or(major), 16).ok()?;
    Some(Handle(leading(major)? << 16 | leading(minor)? & 0xffff))
}

/// Value and mask of the operations MARK and CONNMARK share.
fn operation(seen: &Seen) -> Option<(u32, u32)> {
    let bits = |id: &str| seen.int(id).map(|n| n as u32);
    if let Some((value, mask)) = seen.mark("set-xmark") {
        return Some((value, mask));
    }
    if let Some((value, mask)) = seen.mark("set-mark") {
        return Some((value, value | mask));
    }
    let and = || bits("and-mark").map(|b| (0, !b));
    let or = || bits("or-mark").map(|b| (b, b));
    and().or_else(or).or_else(|| bits("xor-mark").map(|b| (b, 0)))
}

fn mark(seen: &Seen, _: &Head) -> Target {
    let (value, mask) = operation(seen).unwrap_or_default();
    Target::Edit(Edit::Mark { value, mask })
}

const OPS: &[&str] =
    &["set-xmark", "set-mark", "and-mark", "or-mark", "xor-mark", "save-mark", "restore-mark"];
const CONNMARK: &[Opt] = &[
    opt("set-xmark", Kind::Mark).excl(OPS),
    opt("set-mark", Kind::Mark).excl(OPS),
    opt("and-mark", WORD).excl(OPS),
    opt("or-mark", WORD).excl(OPS),
    opt("xor-mark", WORD).excl(OPS),
    opt("save-mark", Kind::None).excl(OPS),
    opt("restore-mark", Kind::None).excl(OPS),
    opt("left-shift-mark", Kind::Int(0, 32)),
    opt("right-shift-mark", Kind::Int(0, 32)),
    opt("ctmask", WORD).excl(&["mask"]),
    opt("nfmask", WORD).excl(&["mask"]),
    opt("mask", WORD).excl(&["ctmask", "nfmask"]),
];

fn connmark(seen: &Seen, _: &Head) -> Target {
    let bits = |id: &str| seen.int(id).map(|n| n as u32);
    let mask = bits("mask").unwrap_or(u32::MAX);
    let set = operation(seen);
    let op = match set {
        Some(_) => Connmark::Set,
        None if seen.has("save-mark") => Connmark::Save,
        None => Connmark::Restore,
    };
    // The last of those that set the connection's mask holds.
    let mut ctmask = set.map_or(u32::MAX, |s| s.1);
    for given in &seen.0 {
        match given.id {
            "mask" | "ctmask" => ctmask = bits(given.id).unwrap_or(ctmask),
            id if OPS.contains(&id) => ctmask = set.map_or(ctmask, |s| s.1),
            _ => {}
        }
    }
    let shift = match (seen.int("left-shift-mark"), seen.int("right-shift-mark")) {
        (Some(n), _) => n as i8,
        (None, Some(n)) => -(n as i8),
        (None, None) => 0,
    };
    let value = set.map_or(0, |s| s.0);
    Target::Edit(Edit::Connmark { op, value, ctmask, nfmask: bits("nfmask").unwrap_or(mask), shift })
}
