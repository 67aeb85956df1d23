//! Sets as `list` and `save` print them.
//!
//! Follows: ipset 7.17 `lib/session.c` `list_create`, `list_adt`, `bystrcmp`; `print.c`.

use super::kind::{Arg, Families, Part};
use super::value::{ICMP, ICMP6, protocol_name};
use super::{Attributes, Kind};
use crate::iptables::Family;
use std::cmp::Ordering;
use std::fmt::Write;

/// What a listing says of a set besides its members.
#[derive(Clone, PartialEq, Debug)]
pub struct Header {
    /// Name.
    pub name: String,
    /// Type.
    pub kind: &'static Kind,
    /// Family.
    pub family: Option<Family>,
    /// The options it was made with, defaults included.
    pub options: Attributes,
    /// Bytes that the kernel says it takes.
    pub memory: u64,
    /// Rules and lists that name it.
    pub references: u32,
    /// Elements.
    pub entries: u64,
}

fn address(out: &mut String, family: Option<Family>, ip: u128, cidr: Option<u8>) {
    let family = family.unwrap_or_default();
    out.push_str(&family.address(ip));
    if let Some(cidr) = cidr.filter(|c| u32::from(*c) != family.bits()) {
        let _ = write!(out, "/{cidr}");
    }
}

fn addresses(out: &mut String, family: Option<Family>, ip: u128, to: Option<u128>, cidr: Option<u8>) {
    address(out, family, ip, cidr);
    if let Some(to) = to {
        out.push('-');
        address(out, family, to, cidr);
    }
}

fn ports(out: &mut String, a: &Attributes) {
    let _ = write!(out, "{}", a.port.unwrap_or(0));
    if let Some(to) = a.port_to {
        let _ = write!(out, "-{to}");
    }
}

fn mac(out: &mut String, ether: [u8; 6]) {
    let bytes: Vec<String> = ether.iter().map(|b| format!("{b:02X}")).collect();
    out.push_str(&bytes.join(":"));
}

/// An element as it is written (`ipset_print_elem`).
pub fn element(kind: &Kind, family: Option<Family>, a: &Attributes) -> String {
    let mut out = String::new();
    for (i, part) in kind.parts.iter().enumerate() {
        if i > 0 && kind.last_optional && a.ether.is_none() {
            break;
        }
        if i > 0 {
            out.push(',');
        }
        match part {
            Part::Ip | Part::SingleIp | Part::Ip4Single6 | Part::Ip4Net6 => {
                addresses(&mut out, family, a.ip.unwrap_or(0), a.ip_to, a.cidr);
            }
            Part::SingleIp2 | Part::Ip4Net6Second => {
                addresses(&mut out, family, a.ip2.unwrap_or(0), a.ip_to, a.cidr2);
            }
            Part::ProtoPort => {
                let proto = a.proto.unwrap_or(0);
                let _ = write!(out, "{}:", protocol_name(proto));
                let names = match proto {
                    1 => Some(ICMP),
                    58 => Some(ICMP6),
                    _ => None,
                };
                let [ty, code] = a.port.unwrap_or(0).to_be_bytes();
                match names {
                    Some(names) => match names.iter().find(|n| (n.1, n.2) == (ty, code)) {
                        Some(name) => out.push_str(name.0),
                        None => {
                            let _ = write!(out, "{ty}/{code}");
                        }
                    },
                    None => ports(&mut out, a),
                }
            }
            Part::Port => ports(&mut out, a),
            Part::Ether => mac(&mut out, a.ether.unwrap_or_default()),
            Part::Mark => {
                let _ = write!(out, "0x{:08x}", a.mark.unwrap_or(0));
            }
            Part::Iface => {
                out.push_str(if a.physdev { "physdev:" } else { "" });
                out.push_str(a.iface.as_deref().unwrap_or(""));
            }
            Part::Name => {
                out.push_str(a.name.as_deref().unwrap_or(""));
                if let Some(reference) = &a.nameref {
                    // `before` is not kept where it is printed from.
                    let _ = write!(out, " after {reference}");
                }
            }
        }
    }
    out
}

/// A member with its options, as `list` has it.
pub fn member(kind: &Kind, family: Option<Family>, a: &Attributes) -> String {
    let mut out = element(kind, family, a);
    for arg in kind.add {
        let name = arg.name();
        let _ = match arg {
            Arg::Timeout => a.timeout.map_or(Ok(()), |t| write!(out, " {name} {t}")),
            Arg::Nomatch if a.nomatch => write!(out, " {name}"),
            Arg::Wildcard if a.wildcard => write!(out, " {name}"),
            Arg::Packets => a.packets.map_or(Ok(()), |n| write!(out, " {name} {n}")),
            Arg::Bytes => a.bytes.map_or(Ok(()), |n| write!(out, " {name} {n}")),
            Arg::AdtComment => a.comment.as_ref().map_or(Ok(()), |c| write!(out, " {name} \"{c}\"")),
            Arg::Skbmark => match a.skbmark {
                Some((mark, u32::MAX)) => write!(out, " {name} 0x{mark:x}"),
                Some((mark, mask)) => write!(out, " {name} 0x{mark:x}/0x{mask:x}"),
                None => Ok(()),
            },
            Arg::Skbprio => {
                a.skbprio.map_or(Ok(()), |p| write!(out, " {name} {:x}:{:x}", p >> 16, p & 0xffff))
            }
            Arg::Skbqueue => a.skbqueue.map_or(Ok(()), |q| write!(out, " {name} {q}")),
            _ => Ok(()),
        };
    }
    out
}

fn options(h: &Header) -> String {
    let (mut out, a) = (String::new(), &h.options);
    for arg in h.kind.create {
        let name = arg.name();
        let number = |n: Option<u64>| n.map_or(String::new(), |n| format!(" {name} {n}"));
        let flag = |on: bool| if on { format!(" {name}") } else { String::new() };
        out += &match arg {
            Arg::Family if h.kind.families == Families::Both => {
                format!(" family {}", if h.family == Some(Family::Ip6) { "inet6" } else { "inet" })
            }
            Arg::Hashsize => number(a.hashsize.map(u64::from)),
            Arg::Maxelem => number(a.maxelem.map(u64::from)),
            Arg::Netmask => number(a.netmask.map(u64::from)),
            Arg::Timeout => number(a.timeout.map(u64::from)),
            Arg::Bucketsize => number(a.bucketsize.map(u64::from)),
            Arg::Size => number(a.size.map(u64::from)),
            Arg::Bitmask => a
                .bitmask
                .map_or(String::new(), |m| format!(" {name} {}", h.family.unwrap_or_default().address(m))),
            Arg::Markmask => a.markmask.map_or(String::new(), |m| format!(" {name} 0x{m:08x}")),
            Arg::Initval => a.initval.map_or(String::new(), |m| format!(" {name} 0x{m:08x}")),
            Arg::Counters => flag(a.counters),
            Arg::Comment => flag(a.comments),
            // ipset 7.17 does not show `forceadd`.
            Arg::Skbinfo => flag(a.skbinfo),
            Arg::IpRange => {
                let mut text = format!(" {name} ");
                addresses(&mut text, h.family, a.ip.unwrap_or(0), a.ip_to, None);
                text
            }
            Arg::PortRange => {
                let mut text = format!(" {name} ");
                ports(&mut text, a);
                text
            }
            _ => String::new(),
        };
    }
    out
}

/// A set: as commands, or its header alone, or with its members.
pub fn list(h: &Header, members: &[String], as_commands: bool, terse: bool) -> String {
    let (name, kind) = (&h.name, h.kind.name);
    let mut out = String::new();
    if as_commands {
        let _ = writeln!(out, "create {name} {kind}{}", options(h));
        for member in members {
            let _ = writeln!(out, "add {name} {member}");
        }
        return out;
    }
    let _ = writeln!(out, "Name: {name}\nType: {kind}\nRevision: {}\nHeader:{}", h.kind.revision, options(h));
    let _ = writeln!(
        out,
        "Size in memory: {}\nReferences: {}\nNumber of entries: {}",
        h.memory, h.references, h.entries
    );
    if !terse {
        out.push_str("Members:\n");
        for member in members {
            let _ = writeln!(out, "{member}");
        }
    }
    out
}

/// Options behind a name as elements: those of `flags` stand alone.
fn tags(text: &str) -> String {
    const FLAGS: [&str; 6] = ["counters", "comment", "skbinfo", "forceadd", "nomatch", "wildcard"];
    let (mut out, mut rest) = (String::new(), text.trim_start());
    while !rest.is_empty() {
        let (name, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        // The comment of a member is in quotes; that a set has comments stands alone.
        let quoted = behind.starts_with('"');
        if FLAGS.contains(&name) && !(name == "comment" && quoted) {
            let _ = write!(out, "<{name}/>");
            rest = behind;
            continue;
        }
        let end = match quoted {
            true => behind[1..].find('"').map_or(behind.len(), |at| at + 2),
            false => behind.find(' ').unwrap_or(behind.len()),
        };
        let _ = write!(out, "<{name}>{}</{name}>", &behind[..end]);
        rest = behind[end..].trim_start();
    }
    out
}

/// A set as XML (`-o xml`), its members as [`member`] has them.
pub fn xml(h: &Header, members: &[String], terse: bool) -> String {
    let (name, kind, revision) = (&h.name, h.kind.name, h.kind.revision);
    let mut out = format!("<ipset name=\"{name}\">\n<type>{kind}</type>\n<revision>{revision}</revision>\n");
    let _ = writeln!(out, "<header>{}\n<memsize>{}</memsize>", tags(&options(h)), h.memory);
    let _ = writeln!(
        out,
        "<references>{}</references>\n<numentries>{}</numentries>\n</header>",
        h.references, h.entries
    );
    if !terse {
        out.push_str("<members>\n");
        for member in members {
            let words = if h.kind.name == "list:set" && member.contains(" after ") { 3 } else { 1 };
            let end = member.match_indices(' ').nth(words - 1).map_or(member.len(), |m| m.0);
            let _ = writeln!(out, "<member><elem>{}</elem>{}</member>", &member[..end], tags(&member[end..]));
        }
        out.push_str("</members>\n");
    }
    out.push_str("</ipset>\n");
    out
}

/// The number at a text's beginning in base 16, and what follows.
fn hex(text: &str) -> Option<(i64, &str)> {
    let digits = text.trim_start();
    let len = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
    let value = i64::from_str_radix(digits.get(..len)?, 16).ok()?;
    Some((value, &digits[len..]))
}

/// `bystrcmp`: by numbers in base 16, longer prefixes first.
fn by_numbers(one: &str, two: &str) -> Ordering {
    let (mut one, mut two, mut turned) = (one, two, false);
    while !one.is_empty() && !two.is_empty() {
        let (Some((a, rest_a)), Some((b, rest_b))) = (hex(one), hex(two)) else {
            let end = |t: &str| t.find([':', ',']).unwrap_or(t.len());
            let (a, b) = (end(one), end(two));
            if a == 0 && b == 0 {
                return one.cmp(two);
            }
            match a.cmp(&b).then_with(|| one[..a].cmp(&two[..b])) {
                Ordering::Equal => {
                    (one, two) = (one.get(a + 1..).unwrap_or(""), two.get(b + 1..).unwrap_or(""));
                    turned = false;
                    continue;
                }
                other => return other,
            }
        };
        match a.cmp(&b) {
            Ordering::Equal => {}
            other => return if turned { other.reverse() } else { other },
        }
        match (rest_a.starts_with('/'), rest_b.starts_with('/')) {
            (true, true) => turned = true,
            (true, false) => return Ordering::Greater,
            (false, true) => return Ordering::Less,
            (false, false) => {}
        }
        (one, two) = (rest_a.get(1..).unwrap_or(""), rest_b.get(1..).unwrap_or(""));
        match (one.strip_prefix(':'), two.strip_prefix(':')) {
            (Some(a), Some(b)) => (one, two) = (a, b),
            (Some(_), None) => return Ordering::Less,
            (None, Some(_)) => return Ordering::Greater,
            (None, None) => {}
        }
    }
    (!one.is_empty()).cmp(&!two.is_empty())
}

/// Members in the order of `-s`.
pub fn sort(members: &mut [String]) {
    members.sort_by(|a, b| by_numbers(a, b));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_sorted_by_their_numbers() {
        let mut all = ["10.0.0.10", "10.0.0.9", "9.0.0.1", "10.0.0.0/8", "10.0.0.0/16"].map(str::to_owned);
        sort(&mut all);
        assert_eq!(all, ["9.0.0.1", "10.0.0.0/16", "10.0.0.0/8", "10.0.0.9", "10.0.0.10"]);
    }
}
