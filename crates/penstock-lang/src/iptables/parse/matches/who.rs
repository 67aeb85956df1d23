//! Whose packet it is, and where it comes from: `owner`, `cpu`, `mac`, `iprange`, `addrtype`, `physdev`.

use super::super::option::{Fault, Kind, Opt, ParsedOption, Seen, Value, fault, number_prefix, opt};
use super::{Ext, Head, ext};
use crate::iptables::{ADDR_TYPES, Asks, Match, Owner, Physdev, Plain};
use std::fmt::Write;

pub(super) const MATCHES: &[Ext<Match>] = &[
    ext("addrtype", ADDRTYPE, addrtype).reads(read_addrtype).checks(|seen, _| {
        match seen.has("src-type") || seen.has("dst-type") {
            true => Ok(()),
            false => fault("addrtype: you must specify --src-type or --dst-type", "e.g. --dst-type LOCAL"),
        }
    }),
    ext("cpu", &[opt("cpu", Kind::Int(0, u32::MAX as u64)).must().inv()], |seen, _| {
        let (cpu, invert) = (seen.int("cpu").unwrap_or(0), seen.inverted("cpu"));
        let save = format!("{} --cpu {cpu}", if invert { " !" } else { "" });
        let list = format!("cpu {}{cpu}", if invert { "! " } else { "" });
        let words = Plain { name: "cpu".to_owned(), save, numeric: list.clone(), list };
        Match::Worded(words, Asks::Cpu { cpu: cpu as u32, invert })
    }),
    ext("iprange", IPRANGE, iprange).reads(read_iprange).checks(|seen, _| match seen.0.is_empty() {
        true => fault("iprange match: You must specify `--src-range' or `--dst-range'", ""),
        false => Ok(()),
    }),
    ext("mac", &[opt("mac-source", Kind::Mac).must().inv()], |seen, _| {
        let mac = match seen.find("mac-source").map(|g| &g.value) {
            Some(Value::Mac(mac)) => *mac,
            _ => [0; 6],
        };
        Match::Mac { mac, invert: seen.inverted("mac-source") }
    }),
    ext("owner", OWNER, owner).reads(read_owner).checks(check_owner),
    ext("physdev", PHYSDEV, physdev).checks(|seen, _| match seen.0.is_empty() {
        true => fault("PHYSDEV: no physdev option specified", "e.g. --physdev-in eth0"),
        false => Ok(()),
    }),
];

const ADDRTYPE: &[Opt] = &[
    opt("src-type", Kind::Text(0, 0)).inv(),
    opt("dst-type", Kind::Text(0, 0)).inv(),
    opt("limit-iface-in", Kind::None).excl(&["limit-iface-out"]),
    opt("limit-iface-out", Kind::None).excl(&["limit-iface-in"]),
];

/// The bits of a list of types; the error is the rest of the list from the bad one on.
fn types(text: &str) -> Result<u16, &str> {
    let mut bits = 0;
    let mut rest = text;
    loop {
        let part = rest.split(',').next().unwrap_or("");
        let fits = |name: &&str| name.get(..part.len()).is_some_and(|n| n.eq_ignore_ascii_case(part));
        match ADDR_TYPES.iter().position(fits).filter(|_| !part.is_empty()) {
            Some(bit) => bits |= 1 << bit,
            None => return Err(rest),
        }
        match rest.split_once(',') {
            Some((_, tail)) => rest = tail,
            None => return Ok(bits),
        }
    }
}

fn read_addrtype(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    let help = "UNICAST, LOCAL, BROADCAST, MULTICAST, …";
    match types(&given.text) {
        Err(rest) if given.value == Value::Text && rest.contains(',') => {
            fault(format!("addrtype: bad type `{rest}'"), help)
        }
        Err(rest) if given.value == Value::Text => fault(format!("addrtype: bad type \"{rest}\""), help),
        _ => Ok(()),
    }
}

fn addrtype(seen: &Seen, _: &Head) -> Match {
    let side = |id: &str| (types(seen.text(id)).unwrap_or(0), seen.inverted(id));
    Match::Addrtype {
        src: side("src-type"),
        dst: side("dst-type"),
        limit_in: seen.has("limit-iface-in"),
        limit_out: seen.has("limit-iface-out"),
    }
}

const IPRANGE: &[Opt] = &[opt("src-range", Kind::Text(0, 0)).inv(), opt("dst-range", Kind::Text(0, 0)).inv()];

fn read_iprange(given: &ParsedOption, head: &Head) -> Result<(), Fault> {
    let (from, to) = given.text.split_once('-').unwrap_or((&given.text, &given.text));
    for text in [from, to] {
        if head.family.parse(text).is_none() {
            let message = format!("iprange: Bad value for \"--{}\" option: \"{text}\"", given.id);
            return fault(message, "first-last");
        }
    }
    Ok(())
}

fn iprange(seen: &Seen, head: &Head) -> Match {
    let side = |id: &str| {
        let given = seen.find(id)?;
        let (from, to) = given.text.split_once('-').unwrap_or((&given.text, &given.text));
        Some((head.family.parse(from)?, head.family.parse(to)?, given.invert))
    };
    Match::Iprange { src: side("src-range"), dst: side("dst-range") }
}

const OWNER: &[Opt] = &[
    opt("uid-owner", Kind::Text(0, 0)).inv(),
    opt("gid-owner", Kind::Text(0, 0)).inv(),
    opt("socket-exists", Kind::None).inv(),
    opt("suppl-groups", Kind::None),
];

/// First and last id; names are those every Debian has.
fn ids(id: &str, text: &str) -> Option<(u32, u32)> {
    const USERS: &[(&str, u32)] = &[
        ("root", 0),
        ("daemon", 1),
        ("bin", 2),
        ("sys", 3),
        ("games", 5),
        ("man", 6),
        ("lp", 7),
        ("mail", 8),
        ("news", 9),
        ("uucp", 10),
        ("proxy", 13),
        ("www-data", 33),
        ("backup", 34),
        ("list", 38),
        ("irc", 39),
        ("nobody", 65_534),
    ];
    const GROUPS: &[(&str, u32)] = &[
        ("root", 0),
        ("daemon", 1),
        ("bin", 2),
        ("sys", 3),
        ("adm", 4),
        ("tty", 5),
        ("disk", 6),
        ("mail", 8),
        ("proxy", 13),
        ("sudo", 27),
        ("www-data", 33),
        ("users", 100),
        ("nogroup", 65_534),
    ];
    let table = if id == "uid-owner" { USERS } else { GROUPS };
    if let Some((_, number)) = table.iter().find(|(name, _)| *name == text) {
        return Some((*number, *number));
    }
    let one = |t: &str| -> Option<(u32, String)> {
        let (n, rest) = number_prefix(t)?;
        Some((u32::try_from(n).ok().filter(|&n| n < u32::MAX)?, rest.to_owned()))
    };
    let (from, rest) = one(text)?;
    match rest.strip_prefix(['-', ':']) {
        None if rest.is_empty() => Some((from, from)),
        None => None,
        Some(tail) => one(tail).filter(|(_, rest)| rest.is_empty()).map(|(to, _)| (from, to)),
    }
}

fn read_owner(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    if given.value == Value::Text && ids(given.id, &given.text).is_none() {
        let message = format!("owner: Bad value for \"--{}\" option: \"{}\"", given.id, given.text);
        return fault(message, "a number, a range of numbers, or a name");
    }
    Ok(())
}

fn check_owner(seen: &Seen, _: &Head) -> Result<(), Fault> {
    let at = |id: &str| seen.0.iter().position(|g| g.id == id);
    if at("suppl-groups").is_some_and(|s| at("gid-owner").is_none_or(|g| g > s)) {
        let message = "owner: Bad value for \"--suppl-groups\" option: \"you need to use --gid-owner first\"";
        return fault(message, "");
    }
    match seen.0.is_empty() {
        true => fault(
            "owner: At least one of --uid-owner, --gid-owner or --socket-exists is required",
            "e.g. --uid-owner 1000",
        ),
        false => Ok(()),
    }
}

fn owner(seen: &Seen, _: &Head) -> Match {
    let (mut save, mut list, mut numeric) = (String::new(), String::new(), String::new());
    for (id, label) in [
        ("socket-exists", "owner socket exists"),
        ("uid-owner", "owner UID match"),
        ("gid-owner", "owner GID match"),
        ("suppl-groups", "incl. suppl. groups"),
    ] {
        let Some(given) = seen.find(id) else { continue };
        let not = if given.invert { " !" } else { "" };
        let value = match ids(id, &given.text).filter(|_| given.value == Value::Text) {
            Some((from, to)) if from == to => format!(" {from}"),
            Some((from, to)) => format!(" {from}-{to}"),
            None => String::new(),
        };
        // Only root's name is the same everywhere.
        let named = if value == " 0" { " root".to_owned() } else { value.clone() };
        let _ = write!(save, "{not} --{id}{value}");
        let _ = write!(list, "{not} {label}{named}");
        let _ = write!(numeric, "{not} {label}{value}");
    }
    let words = Plain {
        name: "owner".to_owned(),
        save,
        list: list.trim_start().to_owned(),
        numeric: numeric.trim_start().to_owned(),
    };
    let range = |id: &str| {
        let given = seen.find(id)?;
        ids(id, &given.text).map(|(from, to)| (from, to, given.invert))
    };
    let exists = seen.find("socket-exists").map(|g| g.invert);
    Match::Worded(words, Asks::Owner(Owner { uid: range("uid-owner"), gid: range("gid-owner"), exists }))
}

const PHYSDEV: &[Opt] = &[
    opt("physdev-in", Kind::Text(0, 0)).inv(),
    opt("physdev-out", Kind::Text(0, 0)).inv(),
    opt("physdev-is-in", Kind::None).inv(),
    opt("physdev-is-out", Kind::None).inv(),
    opt("physdev-is-bridged", Kind::None).inv(),
];

fn physdev(seen: &Seen, _: &Head) -> Match {
    let mut save = String::new();
    for id in ["physdev-is-in", "physdev-in", "physdev-is-out", "physdev-out", "physdev-is-bridged"] {
        if let Some(given) = seen.find(id) {
            let value = if given.value == Value::Text { format!(" {}", given.text) } else { String::new() };
            let _ = write!(save, "{} --{id}{value}", if given.invert { " !" } else { "" });
        }
    }
    let list = format!("PHYSDEV match{save}");
    let words = Plain { name: "physdev".to_owned(), save, numeric: list.clone(), list };
    let flag = |id| seen.find(id).map(|given| given.invert);
    let name = |id| seen.find(id).map(|given| (given.text.clone(), given.invert));
    let physdev = Physdev {
        input: name("physdev-in"),
        output: name("physdev-out"),
        is_in: flag("physdev-is-in"),
        is_out: flag("physdev-is-out"),
        is_bridged: flag("physdev-is-bridged"),
    };
    Match::Worded(words, Asks::Physdev(physdev))
}
