//! What a packet carries, and words beside the rule: `comment`, `string`, `u32`; `layer7` and `ipp2p` are gone.

use super::super::option::{Fault, Kind, Opt, ParsedOption, Seen, fault, number_prefix, opt};
use super::{Ext, Head, ext};
use crate::iptables::{Match, Plain, U32Test};
use std::fmt::Write;

pub(super) const MATCHES: &[Ext<Match>] = &[
    ext("comment", &[opt("comment", Kind::Text(0, 0)).must()], |seen, _| {
        Match::Comment(seen.text("comment").to_owned())
    })
    .reads(|given, _| match given.text.len() > 255 {
        true => fault("COMMENT must be shorter than 256 characters", ""),
        false => Ok(()),
    }),
    ext("string", STRING, string).reads(read_string).checks(|seen, _| {
        match seen.has("string") || seen.has("hex-string") {
            true => Ok(()),
            false => fault("STRING match: You must specify `--string' or `--hex-string'", ""),
        }
    }),
    ext("u32", &[opt("u32", Kind::Text(0, 0)).must().inv()], |seen, _| Match::U32 {
        tests: tests(seen.text("u32")).unwrap_or_default(),
        invert: seen.inverted("u32"),
    })
    .reads(|given, _| tests(&given.text).map(drop)),
];

const STRING: &[Opt] = &[
    opt("from", Kind::Int(0, 65_535)),
    opt("to", Kind::Int(0, 65_535)),
    opt("algo", Kind::Text(0, 0)).must(),
    opt("string", Kind::Text(0, 0)).excl(&["hex-string"]).inv(),
    opt("hex-string", Kind::Text(0, 0)).excl(&["string"]).inv(),
    opt("icase", Kind::None),
];

/// The bytes of `--hex-string`: text, with hex between bars.
fn hex_string(text: &str) -> Result<Vec<u8>, Fault> {
    let s = text.as_bytes();
    if s.is_empty() {
        return fault("STRING must contain at least one char", "");
    }
    let mut out = Vec::new();
    let (mut i, mut hex) = (0, false);
    while i < s.len() {
        if out.len() >= 128 {
            return fault(format!("STRING too long \"{text}\""), "at most 128 bytes");
        }
        let mut literal = false;
        if s[i] == b'\\' && hex {
            return fault("Cannot include literals in hex data", "");
        } else if s[i] == b'\\' {
            literal = true;
        } else if s[i] == b'|' {
            hex = !hex;
            while hex && s.get(i + 1) == Some(&b' ') {
                i += 1;
            }
            if i + 1 >= s.len() {
                break;
            }
            i += 1;
        }
        if literal {
            let Some(&byte) = s.get(i + 1) else {
                return fault("Bad literal placement at end of string", "");
            };
            out.push(byte);
            i += 2;
        } else if hex {
            if i + 1 >= s.len() {
                return fault("Odd number of hex digits", "");
            }
            if i + 2 >= s.len() {
                return fault("Invalid hex block", "");
            }
            let mut value = 0;
            for &c in &s[i..i + 2] {
                match char::from(c).to_digit(16) {
                    Some(d) => value = value << 4 | d as u8,
                    None => return fault(format!("Invalid hex char '{}'", char::from(c)), ""),
                }
            }
            out.push(value);
            i += if s[i + 2] == b' ' { 3 } else { 2 };
        } else {
            out.push(s[i]);
            i += 1;
        }
    }
    Ok(out)
}

fn read_string(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    match given.id {
        "string" if given.text.len() > 128 => {
            fault(format!("STRING too long \"{}\"", given.text), "at most 128 bytes")
        }
        "hex-string" => hex_string(&given.text).map(drop),
        _ => Ok(()),
    }
}

fn string(seen: &Seen, _: &Head) -> Match {
    let given = seen.find("string").or_else(|| seen.find("hex-string"));
    let bytes = match given {
        Some(g) if g.id == "hex-string" => hex_string(&g.text).unwrap_or_default(),
        Some(g) => g.text.clone().into_bytes(),
        None => Vec::new(),
    };
    let in_hex = bytes.iter().any(|b| !(0x20..0x7f).contains(b)) || bytes.last() == Some(&b'\\');
    let pattern = if in_hex {
        let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
        format!("\"|{hex}|\"")
    } else {
        let text: String = bytes.iter().map(|&b| char::from(b)).collect();
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    };
    let invert = given.is_some_and(|g| g.invert);
    // 16 bytes, the last of them 0.
    let algo: String = seen.text("algo").chars().take(15).collect();
    let option = if in_hex { "--hex-string" } else { "--string" };
    let mut save = format!("{} {option} {pattern} --algo {algo}", if invert { " !" } else { "" });
    let mut list = format!("STRING match {} {pattern} ALGO name {algo}", if invert { "!" } else { "" });
    if let Some(from) = seen.int("from").filter(|&n| n != 0) {
        let _ = write!(save, " --from {from}");
        let _ = write!(list, " FROM {from}");
    }
    if let Some(to) = seen.int("to").filter(|&n| n != 65_535) {
        let _ = write!(save, " --to {to}");
        let _ = write!(list, " TO {to}");
    }
    if seen.has("icase") {
        save.push_str(" --icase");
        list.push_str(" ICASE");
    }
    Match::Plain(Plain { name: "string".to_owned(), save, numeric: list.clone(), list })
}

/// The most steps, values or tests there may be.
const U32_MAX: usize = 10;

/// `LOCATION=VALUES[&&…]`.
fn tests(text: &str) -> Result<Vec<U32Test>, Fault> {
    let help = "e.g. 0>>22&0x3C@12=0x5000000:0x5FFFFFF";
    let mut rest = text;
    let at = |rest: &str| text.len() - rest.len();
    let bad = |rest: &str, what: &str| (format!("u32: at char {}: {what}", at(rest)), help.to_owned());
    let mut all: Vec<U32Test> = Vec::new();
    let mut test = U32Test { steps: Vec::new(), values: Vec::new() };
    let mut in_values = false;
    let number = |rest: &mut &str| match number_prefix(rest) {
        Some((n, tail)) if n <= u64::from(u32::MAX) => {
            *rest = tail;
            Ok(n as u32)
        }
        _ => Err(bad(rest, "not a number or out of range")),
    };
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            if !in_values {
                return fault("u32: abrupt end of input after location specifier", help);
            }
            if test.values.is_empty() {
                return fault("u32: test ended with no value specified", help);
            }
            all.push(test);
            return Ok(all);
        };
        if !in_values {
            if first == '=' {
                if test.steps.is_empty() {
                    return Err(bad(rest, "location spec missing"));
                }
                rest = &rest[1..];
                in_values = true;
                continue;
            }
            let mut op = ' ';
            if !test.steps.is_empty() {
                op = first;
                match first {
                    '&' | '@' => rest = &rest[1..],
                    '<' | '>' => {
                        rest = &rest[1..];
                        if !rest.starts_with(first) {
                            return Err(bad(rest, &format!("a second '{first}' was expected")));
                        }
                        rest = &rest[1..];
                    }
                    _ => return Err(bad(rest, "operator expected")),
                }
            }
            let n = number(&mut rest)?;
            test.steps.push((op, n));
            if test.steps.len() > U32_MAX {
                return Err(bad(rest, "too many operators"));
            }
        } else if first == '&' {
            rest = &rest[1..];
            if !rest.starts_with('&') {
                return Err(bad(rest, "a second '&' was expected"));
            }
            if test.values.is_empty() {
                return Err(bad(rest, "value spec missing"));
            }
            all.push(std::mem::replace(&mut test, U32Test { steps: Vec::new(), values: Vec::new() }));
            if all.len() > U32_MAX {
                return Err(bad(rest, "too many \"&&\"s"));
            }
            rest = &rest[1..];
            in_values = false;
        } else {
            if !test.values.is_empty() {
                if first != ',' {
                    return Err(bad(rest, "expected \",\" or \"&&\""));
                }
                rest = &rest[1..];
            }
            let from = number(&mut rest)?;
            rest = rest.trim_start();
            let to = match rest.strip_prefix(':') {
                Some(tail) => {
                    rest = tail;
                    number(&mut rest)?
                }
                None => from,
            };
            test.values.push((from, to));
            if test.values.len() > U32_MAX {
                return Err(bad(rest, "too many \",\"s"));
            }
        }
    }
}

/// Names that once were matches of patched kernels, and what does their work today; and headers that no packet has here.
pub(in crate::iptables::parse) fn replaced(name: &str) -> Option<&'static str> {
    match name {
        "layer7" => Some(
            "layer7 was a patch that ended in 2009. Today: mark by ports and addresses (-m multiport, -m iprange), \
             by DSCP (-m dscp), or by volume (-m connbytes) and keep the mark with -j CONNMARK",
        ),
        "ipp2p" => Some(
            "ipp2p was a patch for protocols of 2004. Today: mark what is known by port and shape the rest as bulk, \
             or by volume (-m connbytes) and keep the mark with -j CONNMARK",
        ),
        "hbh" | "dst" | "rt" | "mh" => Some(
            "not simulated: no packet here has options, a routing header or one of mobility; of the headers of IPv6 \
             that of fragments is there (-m frag, -m ipv6header)",
        ),
        "ah" | "esp" | "ipcomp" => Some(
            "not simulated: IPsec is not, so no packet here has such a header; -p ah and -p esp match the protocol",
        ),
        "sctp" | "dccp" | "eui64" | "srh" => Some(
            "not simulated: no packet here has such a header; -p matches the protocol, -s and -d the addresses",
        ),
        "cgroup" => Some(
            "not simulated: programs here are in no control group; match the program's user (-m owner --uid-owner), \
             its port, or mark the socket",
        ),
        "devgroup" => Some("not simulated: name the devices (-i eth+ fits every name that begins so)"),
        "socket" => Some(
            "not simulated: there are no transparent sockets here; -m conntrack --ctstate ESTABLISHED fits packets of \
             connections that are there",
        ),
        "bpf" => {
            Some("not simulated: -m u32 looks at bytes of the packet, and tc's bpf filters run such programs")
        }
        "cluster" | "connlabel" | "ipvs" | "nfacct" | "osf" | "rateest" => {
            Some("not simulated: leave it out to see what the rest of the rule does")
        }
        _ => None,
    }
}

#[cfg(test)]
mod unit {
    use super::super::super::save_string;
    use super::*;

    #[test]
    fn strings_in_hex_and_back() {
        assert_eq!(hex_string("a|0d 0A|b\\|c").unwrap(), b"a\r\nb|c");
        assert_eq!(hex_string("|0d").unwrap_err().0, "Invalid hex block");
        assert_eq!(save_string("it's"), "\"it\\'s\"");
        assert_eq!(tests("0&0xFF=1:2&&4=3").unwrap().len(), 2);
        assert_eq!(tests("0&&").unwrap_err().0, "u32: at char 2: not a number or out of range");
    }
}
