//! Sets of packets in words: fields by name, numbers as ranges, several sets in one line.

use super::cube::{Cube, Place, STATES};
use super::names::Names;
use crate::filters::{ARP, IP, IP6};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Values that one line lists.
const LISTED: usize = 12;
/// Most sets whose numbers are marked one by one.
const MARKED: usize = 256;

/// A set of packets in words.
pub fn words(cube: &Cube, names: &Names) -> String {
    let said = pieces(cube, names);
    if said.is_empty() { "everything".to_owned() } else { said.join(", ") }
}

fn family(cube: &Cube) -> u16 {
    let protocol = cube.at(Place::Ethertype);
    if protocol.0 == 0xffff { protocol.1 as u16 } else { 0 }
}

fn pieces(cube: &Cube, names: &Names) -> Vec<String> {
    let mut said = Vec::new();
    let family = family(cube);
    let protocol = protocol_of(cube, family);
    // Ports are in first fragments only: that need not be said.
    let port = if family == IP6 { 40 } else { 20 };
    let ports = cube.0.iter().any(|b| matches!(b.0, Place::Word(off) if off >= port));
    if family == IP6 {
        said.push("ipv6".to_owned());
        for (name, off) in [("src", 8), ("dst", 24)] {
            said.extend(address(cube, name, off));
        }
    }
    for &(place, mask, value) in &cube.0 {
        match place {
            Place::Ethertype if family == IP6 => {}
            Place::Ethertype => said.push(match value as u16 {
                IP => "ip".to_owned(),
                ARP => "arp".to_owned(),
                other if mask == 0xffff => format!("ethertype {other:#06x}"),
                other => format!("ethertype {other:#06x}/{mask:#06x}"),
            }),
            Place::Word(8..=36) if family == IP6 => {}
            Place::Word(off) => header(off, mask, value, (family, protocol, ports), &mut said),
            Place::Mark => {
                let name = if names.conn { "connmark" } else { "mark" };
                said.push(number(name, value, mask, u32::MAX));
            }
            Place::Conn => said.push(number("connmark", value, mask, u32::MAX)),
            Place::State => {
                let fits = |n: &u32| (n ^ value) & mask == 0;
                let mut all: Vec<&str> = (0..8).filter(fits).map(|n| STATES[n.min(4) as usize]).collect();
                all.dedup();
                said.push(format!("ct state {}", all.join(",")));
            }
            Place::Tag => said.extend(tag(mask, value, family)),
            Place::Priority => said.push(number("priority", value, mask, 0xf)),
            Place::Forwarded => said.push(if value == 1 { "forwarded" } else { "made here" }.to_owned()),
            Place::Input => {
                let fits = (0..=names.inputs.len() as u32).filter(|n| (n ^ value) & mask == 0);
                said.push(format!("in {}", names.devices(&fits.collect::<Vec<_>>())));
            }
            Place::Long(n) if value != 0 => said.push(format!("len {n} or more")),
            Place::Long(n) => said.push(format!("len below {n}")),
            Place::Other(n) => {
                let text = names.others.get(n as usize).map_or("", String::as_str);
                said.push(format!("{}[{text}]", if value != 0 { "" } else { "not " }));
            }
        }
    }
    said.dedup();
    said
}

/// The protocol number, where all packets have the same.
fn protocol_of(cube: &Cube, family: u16) -> Option<u8> {
    let (place, shift) = if family == IP6 { (Place::Word(4), 8) } else { (Place::Word(8), 16) };
    let (mask, value) = cube.at(place);
    (mask >> shift & 0xff == 0xff).then_some((value >> shift) as u8)
}

/// Whether ports stand at this place behind the header of the packet's family.
fn ports_at(cube: &Cube, at: i32) -> bool {
    let of = family(cube);
    let begins = if of == IP6 { 40 } else { 20 };
    at == begins && matches!(protocol_of(cube, of), Some(6 | 17 | 33 | 132))
}

fn tag(mask: u32, value: u32, family: u16) -> Option<String> {
    if value == 0 && mask == u32::MAX {
        // An ethertype alone stands for packets without a tag.
        return (family == 0).then(|| "untagged".to_owned());
    }
    let (id, bits) = (value & 0xfff, mask & 0xfff);
    let kind = match (value >> 16, mask >> 16) {
        (_, 0) => "tag",
        (0x88a8, _) => "802.1ad",
        _ => "vlan",
    };
    let mut text = match bits {
        0 => format!("{kind} any"),
        _ => number(kind, id, bits, 0xfff),
    };
    if mask & 0xe000 != 0 {
        text += &format!(" {}", number("pcp", value >> 13 & 7, mask >> 13 & 7, 7));
    }
    Some(text)
}

/// A number, or the range that a mask leaves.
fn number(name: &str, value: u32, mask: u32, full: u32) -> String {
    match span(value, mask, full) {
        Some((from, to)) if from == to => format!("{name} {from}"),
        Some((from, to)) => format!("{name} {from}-{to}"),
        None => format!("{name} {value:#x}/{mask:#x}"),
    }
}

/// The numbers that have these bits, where they follow one another.
fn span(value: u32, mask: u32, full: u32) -> Option<(u32, u32)> {
    let free = full & !mask;
    (free & free.wrapping_add(1) == 0).then_some((value & mask, value & mask | free))
}

/// An IPv6 address, from its four words.
fn address(cube: &Cube, name: &str, off: i32) -> Option<String> {
    let (mut mask, mut value) = (0u128, 0u128);
    for word in 0..4 {
        let (m, v) = cube.at(Place::Word(off + 4 * word));
        mask |= u128::from(m) << (96 - 32 * word);
        value |= u128::from(v) << (96 - 32 * word);
    }
    let address = Ipv6Addr::from(value);
    match (mask, mask.leading_ones() + mask.trailing_zeros() == 128) {
        (0, _) => None,
        (_, true) => Some(format!("{name} {address}/{}", mask.count_ones())),
        (_, false) => Some(format!("{name} {address}/{}", Ipv6Addr::from(mask))),
    }
}

const FLAGS: [&str; 8] = ["fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"];

fn flags(bits: u32) -> String {
    let all: Vec<&str> = (0..8).filter(|n| bits >> n & 1 != 0).map(|n| FLAGS[n as usize]).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(",") }
}

/// Fields of a header that a word's bits are.
fn header(off: i32, mask: u32, value: u32, of: (u16, Option<u8>, bool), said: &mut Vec<String>) {
    let (family, protocol, ports) = of;
    let mut rest = mask;
    let mut field = |name: &str, shift: u32, full: u32, said: &mut Vec<String>| {
        let bits = full << shift;
        if mask & bits != 0 {
            said.push(number(name, value >> shift & full, mask >> shift & full, full));
        }
        rest &= !bits;
    };
    let ip = family == IP || family == 0;
    let transport = if family == IP6 { 40 } else { 20 };
    match off {
        12 | 16 if ip => {
            let name = if off == 12 { "src" } else { "dst" };
            let prefix = mask.leading_ones() + mask.trailing_zeros() == 32;
            said.push(match prefix {
                true => format!("{name} {}/{}", Ipv4Addr::from(value), mask.count_ones()),
                false => format!("{name} {}/{}", Ipv4Addr::from(value), Ipv4Addr::from(mask)),
            });
            return;
        }
        8 if ip => {
            field("ttl", 24, 0xff, said);
            match protocol {
                Some(number) => said.push(protocol_name(number)),
                None => field("protocol", 16, 0xff, said),
            }
            rest &= 0xffff;
        }
        4 if ip => {
            field("id", 16, 0xffff, said);
            match (mask & 0x3fff, value & 0x3fff) {
                (0, _) => {}
                (0x3fff, 0) => said.push("not a fragment".to_owned()),
                (0x1fff, 0) if ports => {}
                (0x1fff, 0) => said.push("first fragments only".to_owned()),
                (0x2000, 0x2000) => said.push("more fragments follow".to_owned()),
                (bits, _) => said.push(number("fragment offset", value & 0x1fff, bits & 0x1fff, 0x1fff)),
            }
            if mask & 0x4000 != 0 {
                said.push(if value & 0x4000 != 0 { "df" } else { "not df" }.to_owned());
            }
            rest &= 0x8000;
        }
        0 => {
            let shift = if family == IP6 { 20 } else { 16 };
            let (m, v) = (mask >> shift & 0xff, value >> shift & 0xff);
            match m {
                0 => {}
                // All of the code point, or its upper bits.
                _ if m & 3 == 0 && span(v >> 2, m >> 2, 63).is_some() => {
                    said.push(number("dscp", v >> 2, m >> 2, 63));
                }
                0xff => said.push(format!("tos {v:#04x}")),
                _ => said.push(format!("tos {v:#04x}/{m:#04x}")),
            }
            rest &= !(0xff << shift);
            if ip {
                let (m, v) = (mask & 0xffff, value & 0xffff);
                if m != 0 {
                    said.push(number("total length", v, m, 0xffff));
                }
                // Version and header length are what they are.
                rest &= 0x00ff_0000;
            } else {
                rest &= 0x000f_ffff;
            }
        }
        4 if family == IP6 => {
            match protocol {
                Some(number) => said.push(protocol_name(number)),
                None => field("protocol", 8, 0xff, said),
            }
            field("hop limit", 0, 0xff, said);
            rest &= 0xffff_0000;
        }
        _ if off == transport && matches!(protocol, Some(1 | 58)) => {
            field("type", 24, 0xff, said);
            field("code", 16, 0xff, said);
        }
        _ if off == transport => {
            field("sport", 16, 0xffff, said);
            field("dport", 0, 0xffff, said);
        }
        _ if off == transport + 12 && protocol == Some(6) => {
            let (m, v) = (mask >> 16 & 0xff, value >> 16 & 0xff);
            if m != 0 {
                said.push(format!("tcp flags {} of {}", flags(v), flags(m)));
            }
            rest &= !0x00ff_0000;
        }
        _ => {}
    }
    if rest != 0 {
        let bytes: Vec<String> = (0..4)
            .filter(|n| rest >> (24 - 8 * n) & 0xff != 0)
            .map(|n| {
                let at = |word: u32| word >> (24 - 8 * n) & 0xff;
                let mask = at(rest);
                let masked = if mask == 0xff { String::new() } else { format!("/{mask:#04x}") };
                format!("byte {} is {:#04x}{masked}", off + n, at(value) & mask)
            })
            .collect();
        said.push(bytes.join(" and "));
    }
}

fn protocol_name(number: u8) -> String {
    match number {
        1 => "icmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        58 => "icmpv6".to_owned(),
        n => format!("protocol {n}"),
    }
}

/// Several sets with fewer lines: sets that differ in one thing alone become one line that lists it. With each line a set that is in it.
pub fn folded(cubes: &[Cube], names: &Names) -> Vec<(String, Cube)> {
    let mut left: Vec<Cube> = cubes.to_vec();
    let mut out = Vec::new();
    while !left.is_empty() {
        // The place in which most of them differ alone.
        let mut best: Option<(usize, Place, Cube)> = None;
        let places: Vec<Place> = left.iter().flat_map(|c| c.0.iter().map(|b| b.0)).collect();
        let mut places = places;
        places.sort_unstable();
        places.dedup();
        for place in places {
            let mut groups: BTreeMap<Cube, usize> = BTreeMap::new();
            for cube in left.iter().filter(|c| c.at(place).0 != 0) {
                *groups.entry(without(cube, place)).or_default() += 1;
            }
            if let Some((rest, count)) = groups.into_iter().max_by_key(|g| g.1)
                && count > 1
                && best.as_ref().is_none_or(|b| count > b.0)
            {
                best = Some((count, place, rest));
            }
        }
        let Some((_, place, rest)) = best else { break };
        let (group, others): (Vec<Cube>, Vec<Cube>) =
            left.into_iter().partition(|c| c.at(place).0 != 0 && without(c, place) == rest);
        left = others;
        let example = group[0].clone();
        out.push((listed(&group, place, &rest, names), example));
    }
    // In the order they came, as far as they stand alone.
    let alone = left.into_iter().map(|cube| (words(&cube, names), cube));
    out.extend(alone);
    out
}

fn without(cube: &Cube, place: Place) -> Cube {
    Cube(cube.0.iter().filter(|b| b.0 != place).copied().collect())
}

/// Sets that differ in the numbers of one field alone, in one line with the ranges of all; `None` where they do not.
pub(super) fn in_one(cubes: &[Cube], names: &Names) -> Option<String> {
    let place = differ_at(&cubes[0], &cubes[1])?;
    let rest = without(&cubes[0], place);
    let same = |c: &Cube| c.at(place).0 != 0 && without(c, place) == rest;
    (cubes.iter().all(same) && field_of(place, cubes).is_some()).then(|| listed(cubes, place, &rest, names))
}

/// The one place at which two sets differ.
pub(super) fn differ_at(a: &Cube, b: &Cube) -> Option<Place> {
    let mut places = a.0.iter().map(|x| x.0).filter(|&p| a.at(p) != b.at(p));
    places.next().filter(|&p| places.next().is_none() && without(a, p) == without(b, p))
}

/// Sets that differ at one place: what they have in common, and each one's own.
fn listed(group: &[Cube], place: Place, rest: &Cube, names: &Names) -> String {
    let common = pieces(rest, names);
    let own: Vec<Vec<String>> = group
        .iter()
        .map(|cube| pieces(cube, names).into_iter().filter(|p| !common.contains(p)).collect())
        .collect();
    // Which pieces the place takes away from the common ones is said where it is the same for all.
    let whole = pieces(&group[0], names);
    let common: Vec<String> = common.into_iter().filter(|p| whole.contains(p)).collect();
    let ranges = field_of(place, group);
    let list = match ranges {
        Some((name, ranges)) => {
            let all: Vec<String> = ranges
                .iter()
                .map(|(from, to)| if from == to { from.to_string() } else { format!("{from}-{to}") })
                .collect();
            format!("{name} {}", few(&all, ","))
        }
        None => few(&own.iter().map(|p| p.join(" and ")).collect::<Vec<_>>(), " or "),
    };
    [common, vec![list]].concat().join(", ")
}

fn few(all: &[String], between: &str) -> String {
    let shown = all[..all.len().min(LISTED)].join(between);
    match all.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Numbers of one field that all sets look at alone, as ranges.
fn field_of(place: Place, group: &[Cube]) -> Option<(&'static str, Vec<(u32, u32)>)> {
    let fields: &[(&str, u32, u32)] = match place {
        Place::Priority => &[("priority", 0, 0xf)],
        Place::Word(at @ (20 | 40)) if ports_at(&group[0], at) => {
            &[("sport", 16, 0xffff), ("dport", 0, 0xffff)]
        }
        Place::Word(0) => &[("dscp", 18, 0x3f)],
        _ => return None,
    };
    let of = |f: &&(&str, u32, u32)| group.iter().all(|c| c.at(place).0 & !(f.2 << f.1) == 0);
    let &(name, shift, full) = fields.iter().find(of)?;
    if place == Place::Word(0) && family(&group[0]) != IP {
        return None;
    }
    let one = |c: &Cube| {
        let (mask, value) = c.at(place);
        span(value >> shift, mask >> shift, full)
    };
    let mut all: Vec<(u32, u32)> = match group.iter().map(one).collect::<Option<Vec<_>>>() {
        Some(all) => all,
        // Few numbers are listed one by one.
        None if full <= 0x3f => (0..=full)
            .filter(|n| group.iter().any(|c| (c.at(place).1 >> shift ^ n) & (c.at(place).0 >> shift) == 0))
            .map(|n| (n, n))
            .collect(),
        None => marked(group.iter().map(|c| c.at(place)), shift, full)?,
    };
    all.sort_unstable();
    let mut out: Vec<(u32, u32)> = Vec::new();
    for (from, to) in all {
        match out.last_mut() {
            Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
            _ => out.push((from, to)),
        }
    }
    Some((name, out))
}

/// The ranges of all numbers of a field that any of these masks and values leaves.
fn marked(all: impl ExactSizeIterator<Item = (u32, u32)>, shift: u32, full: u32) -> Option<Vec<(u32, u32)>> {
    if all.len() > MARKED {
        return None;
    }
    let mut there = vec![false; full as usize + 1];
    for (mask, value) in all {
        let (mask, value) = (mask >> shift & full, value >> shift & full);
        // Every number of the bits that are free.
        let free = full & !mask;
        let mut bits = 0;
        loop {
            there[(value & mask | bits) as usize] = true;
            bits = bits.wrapping_sub(free) & free;
            if bits == 0 {
                break;
            }
        }
    }
    let numbers = there.iter().enumerate().filter(|n| *n.1).map(|n| n.0 as u32);
    let mut out: Vec<(u32, u32)> = Vec::new();
    for n in numbers {
        match out.last_mut() {
            Some(last) if last.1 + 1 == n => last.1 = n,
            _ => out.push((n, n)),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattered_bits_of_a_port_are_ranges() {
        let of = |all: &[(u32, u32)]| marked(all.iter().copied(), 0, 0xffff).unwrap();
        assert_eq!(of(&[(0xe800, 0x2800), (0xc000, 0x0000)]), [(0, 16383)]);
        assert_eq!(of(&[(0xdfff, 0x13c4)]), [(5060, 5060), (13252, 13252)]);
        assert_eq!(of(&[(0, 0)]), [(0, 65535)]);
        assert_eq!(of(&[(0xffff, 80), (0xfffe, 81)]), [(80, 81)]);
    }

    fn of(bits: &[(i32, u32, u32)]) -> Cube {
        bits.iter().fold(Cube::all(), |c, b| c.and(&Cube::of(Place::Word(b.0), b.1, b.2)).unwrap())
    }

    #[track_caller]
    fn check(cube: &Cube, text: &str) {
        assert_eq!(words(cube, &Names::default()), text);
    }

    #[test]
    fn words_name_the_fields() {
        let ip = |bits: &[(i32, u32, u32)]| Cube::ethertype(IP).and(&of(bits)).unwrap();
        let tcp = (8, 0xff_0000, 0x06_0000);
        check(
            &ip(&[(16, 0xffff_0000, 0x0a01_0000), tcp, (20, 0xffff, 80)]),
            "ip, tcp, dst 10.1.0.0/16, dport 80",
        );
        check(&ip(&[tcp, (20, 0xfc00, 0x0400), (4, 0x1fff, 0)]), "ip, tcp, dport 1024-2047");
        check(&ip(&[(4, 0x1fff, 0)]), "ip, first fragments only");
        check(&ip(&[(4, 0x3fff, 0)]), "ip, not a fragment");
        check(&ip(&[(0, 0x00fc_0000, 0x00b8_0000)]), "ip, dscp 46");
        check(&ip(&[(0, 0x00ff_0000, 0x0010_0000)]), "ip, tos 0x10");
        check(&ip(&[tcp, (32, 0x12_0000, 0x02_0000)]), "ip, tcp, tcp flags syn of syn,ack");
        check(&ip(&[(24, 0xff00_0000, 0x0500_0000)]), "ip, byte 24 is 0x05");
        let six = Cube::ethertype(IP6).and(&of(&[(8, u32::MAX, 0x2001_0db8), (4, 0xff00, 17 << 8)])).unwrap();
        check(&six, "ipv6, src 2001:db8::/32, udp");
        let vlan = Cube::ethertype(IP).and(&Cube::of(Place::Tag, 0xffff_0fff, 0x8100_0064)).unwrap();
        check(&vlan, "ip, vlan 100");
        let none = Cube::ethertype(IP).and(&Cube::of(Place::Tag, u32::MAX, 0)).unwrap();
        check(&none, "ip");
    }

    #[test]
    fn sets_that_differ_in_one_thing_share_a_line() {
        let priority = |n: u32| Cube::of(Place::Priority, 0xf, n);
        let lines = |cubes: &[Cube]| -> Vec<String> {
            folded(cubes, &Names::default()).into_iter().map(|l| l.0).collect()
        };
        assert_eq!(lines(&[priority(1), priority(2), priority(3), priority(9)]), ["priority 1-3,9"]);
        let odd = Cube::of(Place::Priority, 0x3, 1);
        assert_eq!(lines(&[odd.clone(), priority(2)]), ["priority 1-2,5,9,13"]);
        let net = |n: u32| of(&[(16, 0xffff_0000, n)]);
        assert_eq!(lines(&[net(0x0a01_0000), net(0x0a05_0000)]), ["dst 10.1.0.0/16 or dst 10.5.0.0/16"]);
        assert_eq!(lines(&[net(0x0a01_0000), odd]).len(), 2);
    }
}
