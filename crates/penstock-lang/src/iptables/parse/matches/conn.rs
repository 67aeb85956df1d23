//! What is known of the connection a packet belongs to: `conntrack`, `state`, `connmark`, `connbytes`, `connlimit`,
//! `helper`.

use super::super::option::{Fault, Kind, Opt, ParsedOption, Seen, Value, fault, opt};
use super::{Ext, Head, ext};
use crate::iptables::extension::state;
use crate::iptables::{
    AddrMatch, Asks, ConnCount, ConnDir, Connlimit, Conntrack, Match, Plain, PortMatch, Ports,
};

pub(super) const MATCHES: &[Ext<Match>] = &[
    ext("connbytes", CONNBYTES, connbytes).reads(read_connbytes),
    ext("connlimit", CONNLIMIT, connlimit).checks(|seen, _| {
        match seen.has("connlimit-upto") || seen.has("connlimit-above") {
            true => Ok(()),
            false => fault("You must specify \"--connlimit-above\" or \"--connlimit-upto\".", ""),
        }
    }),
    ext("connmark", &[opt("mark", Kind::Mark).must().inv()], |seen, _| {
        let (mark, mask) = seen.mark("mark").unwrap_or_default();
        Match::Connmark { mark, mask, invert: seen.inverted("mark") }
    }),
    ext("conntrack", CONNTRACK, conntrack).reads(read_conntrack).checks(|seen, _| match seen.0.is_empty() {
        true => fault("conntrack: At least one option is required", "e.g. --ctstate ESTABLISHED,RELATED"),
        false => Ok(()),
    }),
    ext("helper", &[opt("helper", Kind::Text(0, 0)).must().inv()], |seen, _| {
        let (not, name) = (seen.inverted("helper"), seen.text("helper"));
        let list = format!("helper match {}\"{name}\"", if not { "!" } else { "" });
        let words = Plain {
            name: "helper".to_owned(),
            save: format!("{} --helper {}", if not { " !" } else { "" }, super::super::save_string(name)),
            numeric: list.clone(),
            list,
        };
        Match::Worded(words, Asks::Helper { invert: not })
    }),
    ext("state", &[opt("state", Kind::Text(0, 0)).must().inv()], |seen, _| {
        let states = states(seen.text("state"), 5).unwrap_or(0);
        Match::Conntrack(Conntrack {
            as_state: true,
            states: Some((states, seen.inverted("state"))),
            ..Conntrack::default()
        })
    })
    .reads(|given, _| match states(&given.text, 5) {
        Ok(_) => Ok(()),
        Err(Some(bad)) => fault(format!("Bad state \"{bad}\""), "NEW,ESTABLISHED,RELATED,INVALID,UNTRACKED"),
        Err(None) => {
            fault("\"--state\" requires a list of states with no spaces, e.g. ESTABLISHED,RELATED", "")
        }
    }),
];

/// A list of states, the first `known` of [`state::NAMES`]: each by any beginning, in this order. The error is the rest
/// of the list from the bad one on, or nothing where the list ends in a comma.
fn states(text: &str, known: usize) -> Result<u8, Option<&str>> {
    const ORDER: [&str; 7] = ["INVALID", "NEW", "ESTABLISHED", "RELATED", "UNTRACKED", "SNAT", "DNAT"];
    let mut bits = 0;
    let mut rest = text;
    loop {
        let part = rest.split(',').next().unwrap_or("");
        if part.is_empty() {
            return Err(if rest.is_empty() && known == 5 { None } else { Some(rest) });
        }
        let fits = |name: &&&str| name.get(..part.len()).is_some_and(|n| n.eq_ignore_ascii_case(part));
        let Some(name) = ORDER[..known].iter().find(fits) else { return Err(Some(rest)) };
        bits |= state::NAMES.iter().find(|n| n.0 == *name).map_or(0, |n| n.1);
        match rest.split_once(',') {
            Some((_, tail)) => rest = tail,
            None => return Ok(bits),
        }
    }
}

/// Bits of `--ctstatus`, by any beginning of a name.
fn statuses(text: &str) -> Option<u8> {
    const NAMES: [(&str, u8); 5] =
        [("NONE", 0), ("EXPECTED", 1), ("SEEN_REPLY", 2), ("ASSURED", 4), ("CONFIRMED", 8)];
    text.split(',').try_fold(0, |bits, part| {
        let fits = |n: &&(&str, u8)| n.0.get(..part.len()).is_some_and(|n| n.eq_ignore_ascii_case(part));
        NAMES.iter().find(fits).filter(|_| !part.is_empty()).map(|n| bits | n.1)
    })
}

const CONNTRACK: &[Opt] = &[
    opt("ctstate", Kind::Text(0, 0)).inv(),
    opt("ctproto", Kind::Protocol).inv(),
    opt("ctorigsrc", Kind::HostMask).inv(),
    opt("ctorigdst", Kind::HostMask).inv(),
    opt("ctreplsrc", Kind::HostMask).inv(),
    opt("ctrepldst", Kind::HostMask).inv(),
    opt("ctstatus", Kind::Text(0, 0)).inv(),
    opt("ctexpire", Kind::Range(u32::MAX as u64)).inv(),
    opt("ctorigsrcport", Kind::Ports).inv(),
    opt("ctorigdstport", Kind::Ports).inv(),
    opt("ctreplsrcport", Kind::Ports).inv(),
    opt("ctrepldstport", Kind::Ports).inv(),
    opt("ctdir", Kind::Text(0, 0)),
];
const CT_ADDRS: [&str; 4] = ["ctorigsrc", "ctorigdst", "ctreplsrc", "ctrepldst"];
const CT_PORTS: [&str; 4] = ["ctorigsrcport", "ctorigdstport", "ctreplsrcport", "ctrepldstport"];

fn read_conntrack(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    let text = given.text.as_str();
    match given.id {
        "ctstate" => match states(text, 7) {
            Ok(_) => Ok(()),
            Err(bad) => {
                let bad = bad.unwrap_or("");
                fault(format!("Bad ctstate \"{bad}\""), "NEW,ESTABLISHED,RELATED,INVALID,UNTRACKED,SNAT,DNAT")
            }
        },
        "ctstatus" => match statuses(text) {
            Some(_) => Ok(()),
            None => {
                let mut rest = text;
                while let Some((part, tail)) = rest.split_once(',')
                    && statuses(part).is_some()
                {
                    rest = tail;
                }
                fault(format!("Bad ctstatus \"{rest}\""), "NONE,EXPECTED,SEEN_REPLY,ASSURED,CONFIRMED")
            }
        },
        "ctdir" if !["ORIGINAL", "REPLY"].iter().any(|d| d.eq_ignore_ascii_case(text)) => {
            fault(format!("conntrack: Bad value for \"--ctdir\" option: \"{text}\""), "ORIGINAL or REPLY")
        }
        _ => Ok(()),
    }
}

fn conntrack(seen: &Seen, _: &Head) -> Match {
    let addr = |id: &str| {
        let (addr, mask) = seen.net(id)?;
        Some(AddrMatch { addr, mask, invert: seen.inverted(id) })
    };
    let port = |id: &str| match seen.find(id)?.value {
        Value::Ports(from, to) => Some(PortMatch { ports: Ports { from, to }, invert: seen.inverted(id) }),
        _ => None,
    };
    let expire = seen.range("ctexpire").map(|([from, to], count)| {
        let to = if count == 2 { to } else { from };
        (from as u32, to as u32, seen.inverted("ctexpire"))
    });
    let listed = |id: &str, bits: Option<u8>| Some((bits?, seen.inverted(id)));
    Match::Conntrack(Conntrack {
        as_state: false,
        states: listed("ctstate", seen.find("ctstate").and_then(|g| states(&g.text, 7).ok())),
        protocol: seen.int("ctproto").map(|n| (n as u8, seen.inverted("ctproto"))),
        addrs: CT_ADDRS.map(addr),
        ports: CT_PORTS.map(port),
        status: listed("ctstatus", seen.find("ctstatus").and_then(|g| statuses(&g.text))),
        expire,
        reply: seen.find("ctdir").map(|g| g.text.eq_ignore_ascii_case("REPLY")),
    })
}

const CONNBYTES: &[Opt] = &[
    opt("connbytes", Kind::Range(u64::MAX)).must().inv(),
    opt("connbytes-dir", Kind::Text(0, 0)).must(),
    opt("connbytes-mode", Kind::Text(0, 0)).must(),
];

fn read_connbytes(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    let text = given.text.as_str();
    match (given.id, &given.value) {
        ("connbytes", Value::Range([from, to], 2)) if to < from => {
            fault(format!("{from} should be less than {to}"), "from:to")
        }
        ("connbytes-dir", _) if !["original", "reply", "both"].contains(&text) => {
            fault(format!("Unknown --connbytes-dir `{text}'"), "original, reply or both")
        }
        ("connbytes-mode", _) if !["packets", "bytes", "avgpkt"].contains(&text) => {
            fault(format!("Unknown --connbytes-mode `{text}'"), "packets, bytes or avgpkt")
        }
        _ => Ok(()),
    }
}

fn connbytes(seen: &Seen, _: &Head) -> Match {
    let ([mut from, most], count) = seen.range("connbytes").unwrap_or_default();
    let mut to = if count == 2 { most } else { u64::MAX };
    if seen.inverted("connbytes") {
        std::mem::swap(&mut from, &mut to);
    }
    let what = match seen.text("connbytes-mode") {
        "packets" => ConnCount::Packets,
        "bytes" => ConnCount::Bytes,
        _ => ConnCount::Average,
    };
    let dir = match seen.text("connbytes-dir") {
        "original" => ConnDir::Original,
        "reply" => ConnDir::Reply,
        _ => ConnDir::Both,
    };
    Match::Connbytes { from, to, what, dir }
}

const CONNLIMIT: &[Opt] = &[
    opt("connlimit-upto", Kind::Int(0, u32::MAX as u64)).excl(&["connlimit-above"]).inv(),
    opt("connlimit-above", Kind::Int(0, u32::MAX as u64)).excl(&["connlimit-upto"]).inv(),
    opt("connlimit-mask", Kind::Plen),
    opt("connlimit-saddr", Kind::None).excl(&["connlimit-daddr"]),
    opt("connlimit-daddr", Kind::None).excl(&["connlimit-saddr"]),
];

fn connlimit(seen: &Seen, head: &Head) -> Match {
    let above = seen.int("connlimit-above").is_some();
    let id = if above { "connlimit-above" } else { "connlimit-upto" };
    let limit = seen.int(id).unwrap_or(0);
    let upto = above == seen.inverted(id);
    let mask = seen.net("connlimit-mask").map_or(head.family.mask(head.family.bits()), |(_, mask)| mask);
    let bits = mask.count_ones();
    let side = if seen.has("connlimit-daddr") { ("dst", "daddr") } else { ("src", "saddr") };
    let list = format!("#conn {}/{bits} {} {limit}", side.0, if upto { "<=" } else { ">" });
    let word = if upto { "upto" } else { "above" };
    let words = Plain {
        name: "connlimit".to_owned(),
        save: format!(" --connlimit-{word} {limit} --connlimit-mask {bits} --connlimit-{}", side.1),
        numeric: list.clone(),
        list,
    };
    let asks = Connlimit { limit: limit as u32, upto, mask, dst: side.0 == "dst" };
    Match::Worded(words, Asks::Connlimit(asks))
}
