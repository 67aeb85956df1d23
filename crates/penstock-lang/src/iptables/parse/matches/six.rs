//! Extension headers of IPv6: `frag`, `ipv6header`.
//!
//! Follows: iptables 1.8.9 `extensions/libip6t_frag.c`, `libip6t_ipv6header.c`.

use super::super::option::{Fault, Kind, Opt, ParsedOption, Seen, fault, opt};
use super::{Ext, Head, ext};
use crate::iptables::asks::{Frag, Ipv6Header};
use crate::iptables::{Asks, Family, Match, Plain};

pub(super) const MATCHES: &[Ext<Match>] = &[
    ext("frag", FRAG, frag).only(Family::Ip6),
    ext("ipv6header", HEADER, ipv6header).only(Family::Ip6).reads(read_header),
];

const FRAG: &[Opt] = &[
    opt("fragid", Kind::Range(0xffff_ffff)).inv(),
    opt("fraglen", Kind::Int(0, 0xffff_ffff)).inv(),
    opt("fragres", Kind::None),
    opt("fragfirst", Kind::None),
    opt("fragmore", Kind::None).excl(&["fraglast"]),
    opt("fraglast", Kind::None).excl(&["fragmore"]),
];

fn frag(seen: &Seen, _: &Head) -> Match {
    const MOST: u64 = 0xffff_ffff;
    let (first, last) = match seen.range("fragid") {
        Some(([first, last], 2)) => (first, last),
        Some(([only, _], _)) => (only, only),
        None => (0, MOST),
    };
    let invert_id = seen.inverted("fragid");
    let (mut save, mut list) = (String::new(), String::from("frag "));
    if (first, last) != (0, MOST) {
        let range = if first == last { first.to_string() } else { format!("{first}:{last}") };
        save.push_str(&format!("{} --fragid {range}", if invert_id { " !" } else { "" }));
    }
    if (first, last) != (0, MOST) || invert_id {
        let (many, not) = (if first == last { "" } else { "s" }, if invert_id { "!" } else { "" });
        let range = if first == last { first.to_string() } else { format!("{first}:{last}") };
        list.push_str(&format!("id{many}:{not}{range}"));
    }
    if let Some(len) = seen.int("fraglen") {
        let not = seen.inverted("fraglen");
        save.push_str(&format!("{} --fraglen {len}", if not { " !" } else { "" }));
        list.push_str(&format!(" length:{}{len}", if not { "!" } else { "" }));
    }
    let flags = [("fragres", "reserved"), ("fragfirst", "first"), ("fragmore", "more"), ("fraglast", "last")];
    for (option, shown) in flags {
        if seen.has(option) {
            save.push_str(&format!(" --{option}"));
            list.push_str(&format!(" {shown}"));
        }
    }
    let more = match (seen.has("fragmore"), seen.has("fraglast")) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    let id = (first as u32, last as u32);
    let asks = Frag { id, invert_id, reserved: seen.has("fragres"), first: seen.has("fragfirst"), more };
    let words = Plain { name: "frag".to_owned(), save, numeric: list.clone(), list };
    Match::Worded(words, Asks::Frag(asks))
}

const HEADER: &[Opt] = &[opt("header", Kind::Text(0, 0)).must().inv(), opt("soft", Kind::None)];

/// Names of headers, beside those of [`Ipv6Header::BITS`] and their numbers.
const ALIASES: [(&str, u8); 9] = [
    ("hop", 0),
    ("hopopt", 0),
    ("dst", 60),
    ("route", 43),
    ("frag", 44),
    ("auth", 51),
    ("none", 59),
    ("prot", 255),
    ("IPv6-Frag", 44),
];

/// The bits of a list of headers.
fn headers(text: &str) -> Result<u8, Fault> {
    let mut bits = 0;
    for word in text.split(',').filter(|w| !w.is_empty()) {
        let alias = ALIASES.iter().find(|a| a.0 == word).map(|a| a.1);
        let number = alias.or_else(|| word.parse().ok());
        let found = Ipv6Header::BITS.iter().find(|b| b.0.eq_ignore_ascii_case(word) || Some(b.1) == number);
        match found {
            Some((_, _, bit)) => bits |= bit,
            None => {
                let help = "hop, dst, route, frag, auth, esp, none, prot";
                return fault(format!("unknown header `{word}' specified"), help);
            }
        }
    }
    Ok(bits)
}

fn read_header(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    if given.id == "header" { headers(&given.text).map(drop) } else { Ok(()) }
}

fn ipv6header(seen: &Seen, _: &Head) -> Match {
    let bits = headers(seen.text("header")).unwrap_or_default();
    let (invert, soft) = (seen.inverted("header"), seen.has("soft"));
    let names: Vec<&str> = Ipv6Header::BITS.iter().filter(|b| bits & b.2 != 0).map(|b| b.0).collect();
    let names = names.join(",");
    let (not, end) = (if invert { "!" } else { "" }, if soft { " soft" } else { "" });
    let words = Plain {
        name: "ipv6header".to_owned(),
        save: format!(
            "{} --header {names}{}",
            if invert { " !" } else { "" },
            if soft { " --soft" } else { "" }
        ),
        numeric: format!("ipv6header flags:{not}0x{bits:02x}{end}"),
        list: format!("ipv6header flags:{not}{names}{end}"),
    };
    Match::Worded(words, Asks::Ipv6Header(Ipv6Header { headers: bits, invert, soft }))
}
