//! PS22x and PS353: addresses that were translated before the qdisc sees them, and one that no packet may come to.

use crate::facts::{Device, Facts};
use crate::filters::{Field, Filter};
use crate::finding::{Found, Level, Rule, Say};
use crate::marks::Ruled;
use penstock_lang::iptables::{Family, Iface, Table, Target};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

pub const RULES: &[Rule] = &[
    Rule {
        code: "PS220",
        severity: Level::Warning,
        about: "the source address is translated before the filter sees it",
        why: "SNAT and MASQUERADE change the source in POSTROUTING, before the packet comes to the device's qdisc: every packet of the inside network then has the \
            outside address. Mark by the inside address in \
              FORWARD or PREROUTING (mangle) and filter by the mark.",
        find: source,
    },
    Rule {
        code: "PS221",
        severity: Level::Warning,
        about: "the destination is another one where the filter looks",
        why: "At ingress, and on an ifb fed from it, an answer from outside still has the router's own address: NAT puts the inside address back later, in PREROUTING. \
            Shape the download on the inside device, or restore \
              a mark (`action connmark`). On the inside device what DNAT was given has its new address already.",
        find: destination,
    },
    Rule {
        code: "PS222",
        severity: Level::Warning,
        about: "a filter for incoming packets on the outgoing side",
        why: "A qdisc on the outside device sees what leaves by it: uploads. Packets for hosts of the inside network leave by the inside device. Shape downloads there, \
            or on an ifb fed from the outside \
              device's ingress.",
        find: wrong_way,
    },
];

pub const TO_LOOPBACK: &[Rule] = &[Rule {
    code: "PS353",
    severity: Level::Warning,
    about: "packets from outside are sent to 127.0.0.1, where none may come",
    why: "Linux drops what comes in by a card and goes to 127.0.0.0/8 without a word (`ip_route_input_slow`), unless `net.ipv4.conf.NAME.route_localnet` is 1 for that \
        card or for all. REDIRECT needs no such setting: it leads to the card's own address, on which the program must listen then.",
    find: to_loopback,
}];

/// Devices whose packets are masqueraded on the way out; an empty name is every device.
pub fn translated(facts: &Facts) -> Vec<Option<&Iface>> {
    translated_of(facts, &[Family::Ip, Family::Ip6])
}
/// The same of packets of IPv4 alone.
pub fn translated4(facts: &Facts) -> Vec<Option<&Iface>> {
    translated_of(facts, &[Family::Ip])
}
fn translated_of<'a>(facts: &'a Facts, families: &[Family]) -> Vec<Option<&'a Iface>> {
    let nat = |t: &Target| matches!(t, Target::Plain(p) if matches!(p.name.as_str(), "MASQUERADE" | "SNAT"));
    let mut all: Vec<Option<&Iface>> = facts
        .netfilter
        .rules
        .iter()
        .filter(|r| families.contains(&r.family) && r.table == Table::Nat && nat(&r.rule.target))
        .map(|r| r.rule.output.as_ref())
        .collect();
    let by_nft = facts.steps.iter().any(|s| matches!(&s.what, crate::facts::What::Rules(t) if t.contains("masquerade") || t.contains("MASQUERADE")));
    if by_nft && all.is_empty() {
        all.push(None);
    }
    all
}

pub fn is_translated(facts: &Facts, nat: &[Option<&Iface>], dev: &str) -> bool {
    let own = facts.devices.iter().filter(|d| d.filters.iter().any(|f| f.parent.major() != 0xffff)).count();
    nat.iter().any(|o| o.map_or(own == 1, |i| i.matches(dev)))
}

/// The private network a filter asks for at an offset.
pub fn private(filter: &Filter, off: i32) -> Option<Ipv4Addr> {
    let bits = filter.tests.get(&Field::Net(off)).filter(|b| b.mask >> 24 == 0xff)?;
    let addr = Ipv4Addr::from(bits.value & bits.mask);
    addr.is_private().then_some(addr)
}

fn each(facts: &Facts) -> impl Iterator<Item = (&Device, &Filter)> {
    facts.devices.iter().flat_map(|d| d.filters.iter().map(move |f| (d, f)))
}

fn source(facts: &Facts, found: &mut Found) {
    let nat = translated4(facts);
    if nat.is_empty() {
        return;
    }
    let fed = super::marks::fed_from_ingress(facts);
    for (device, filter) in each(facts) {
        if filter.parent.major() == 0xffff
            || fed.contains(device.name.as_str())
            || !is_translated(facts, &nat, &device.name)
        {
            continue;
        }
        if let Some(addr) = private(filter, 12) {
            let word = facts.steps[filter.step].value(&["src", "src_ip"]).unwrap_or_default();
            let class = filter.classid.map_or("1:10".to_owned(), |c| c.to_string());
            let mark = filter.classid.map_or(10, |c| u32::from(c.minor()));
            let fix = format!(
                "iptables -t mangle -A FORWARD -s {} -o {} -j MARK --set-mark {mark}\ntc filter add dev {} parent {} protocol ip prio {} handle {mark} fw flowid {class}",
                if word.is_empty() { addr.to_string() } else { word.to_owned() },
                device.name,
                device.name,
                filter.parent,
                filter.prio
            );
            let reason = format!(
                "What leaves by {} has been given the outside address; {addr} is a private one.",
                device.name
            );
            found.at(filter.step, word, Say::new("no packet has this source any more", reason, fix));
        }
    }
}

/// DNAT to 127.0.0.0/8 of what comes in by a card that does not route it.
fn to_loopback(facts: &Facts, found: &mut Found) {
    let says = |text: &str| text.contains("route_localnet");
    if facts.source.lines.iter().any(|l| says(l)) || facts.steps.iter().any(|s| says(&s.text())) {
        return;
    }
    for r in &facts.netfilter.rules {
        let step = &facts.steps[r.step];
        let nat = r.table == Table::Nat && r.family == Family::Ip && r.chain == "PREROUTING";
        let by_lo = r.rule.input.as_ref().is_some_and(|i| i.name == "lo" && !i.invert);
        let Some(to) = step.value(&["--to-destination", "--to"]).filter(|_| nat && !by_lo) else { continue };
        let first = to.split([':', '-']).next().and_then(|a| a.parse::<Ipv4Addr>().ok());
        if !step.has("DNAT") || !first.is_some_and(|a| a.is_loopback()) {
            continue;
        }
        let input = r.rule.input.as_ref().filter(|i| !i.invert && !i.wildcard);
        let dev = input.map_or("all", |i| i.name.as_str());
        let fix = format!("sysctl -w net.ipv4.conf.{dev}.route_localnet=1");
        let reason = "What comes in by a card and goes to 127.0.0.0/8 is dropped, where route_localnet is 0.";
        found.at(r.step, to, Say::new("no packet reaches this address", reason, fix));
    }
}

/// Addresses that DNAT puts in, each with the device that packets come in by.
fn put_in(facts: &Facts) -> Vec<(Ipv4Addr, &Iface)> {
    fn of<'a>(facts: &Facts, r: &'a Ruled) -> Option<(Ipv4Addr, &'a Iface)> {
        let to = facts.steps.get(r.step)?.value(&["--to-destination", "--to"])?;
        let addr = to.split([':', '-']).next()?.parse().ok()?;
        let input = r.rule.input.as_ref().filter(|i| !i.invert && !i.wildcard)?;
        (r.family == Family::Ip && r.chain == "PREROUTING").then_some((addr, input))
    }
    facts.netfilter.rules.iter().filter_map(|r| of(facts, r)).collect()
}

/// Filters at ingress for the address that DNAT puts in later.
fn forwarded(facts: &Facts, found: &mut Found) {
    let all = put_in(facts);
    for (device, filter) in each(facts) {
        let ingress = filter.parent.major() == 0xffff && filter.parent.minor() != 0xfff3;
        let fed = || feeder(facts, &device.name);
        let from = if ingress { Some(device.name.as_str()) } else { fed() };
        let Some(from) = from else { continue };
        let Some(addr) = private(filter, 16) else { continue };
        if all.iter().any(|(a, i)| *a == addr && i.name == from) {
            let word = facts.steps[filter.step].value(&["dst", "dst_ip"]).unwrap_or_default();
            let reason = format!(
                "Packets still carry the outside address here; DNAT puts {addr} in later, in PREROUTING."
            );
            found.at(filter.step, word, Say::new("no packet has this destination yet", reason, ""));
        }
    }
}

/// Filters on the way out to the inside for the outside address that DNAT has taken out before.
fn taken_out(facts: &Facts, found: &mut Found) {
    let outside =
        |r: &&Ruled| r.table == Table::Nat && facts.steps[r.step].has("DNAT") && r.family == Family::Ip;
    for (device, filter) in each(facts) {
        let step = &facts.steps[filter.step];
        let word = step.value(&["dst", "dst_ip"]).unwrap_or_default();
        let plain = word.strip_suffix("/32").unwrap_or(word);
        let Some(addr) = plain.parse::<Ipv4Addr>().ok().map(u32::from) else { continue };
        let out = filter.parent.major() != 0xffff && feeder(facts, &device.name).is_none();
        let rule = facts.netfilter.rules.iter().filter(outside).find(|r| {
            let from = r.rule.input.as_ref().is_some_and(|i| !i.invert && !i.matches(&device.name));
            from && r
                .rule
                .dst
                .is_some_and(|d| !d.invert && d.addr as u32 == addr && d.mask as u32 == u32::MAX)
        });
        if let Some(rule) = rule.filter(|_| out) {
            let reason = format!(
                "DNAT (line {}) has put another address in its place before.",
                facts.steps[rule.step].line
            );
            found.at(filter.step, word, Say::new("no packet has this destination any more", reason, ""));
        }
    }
}

fn destination(facts: &Facts, found: &mut Found) {
    forwarded(facts, found);
    taken_out(facts, found);
    let nat = translated4(facts);
    if nat.is_empty() {
        return;
    }
    let fed = super::marks::fed_from_ingress(facts);
    for (device, filter) in each(facts) {
        let direct = filter.parent.major() == 0xffff
            && filter.parent.minor() != 0xfff3
            && is_translated(facts, &nat, &device.name);
        let through = fed.contains(device.name.as_str())
            && feeder(facts, &device.name).is_some_and(|d| is_translated(facts, &nat, d));
        if let Some(addr) = private(filter, 16).filter(|_| direct || through) {
            let word = facts.steps[filter.step].value(&["dst", "dst_ip"]).unwrap_or_default();
            let reason = format!(
                "Answers still carry the outside address here; {addr} is put back in PREROUTING, later."
            );
            found.at(filter.step, word, Say::new("no packet has this destination yet", reason, ""));
        }
    }
}

/// The inside networks that the script itself names, by their first 16 bits: those that rules' packets come from, and devices' own.
pub fn inside(facts: &Facts) -> BTreeSet<u32> {
    let by_rules = facts
        .netfilter
        .rules
        .iter()
        .filter(|r| r.family == Family::Ip)
        .filter_map(|r| r.rule.src)
        .map(|s| s.addr as u32);
    let gives = |s: &&crate::facts::Step| s.program() == "ip" && s.has("add") || s.program() == "ifconfig";
    let word = |w: &String| w.split('/').next().and_then(|a| a.parse::<Ipv4Addr>().ok());
    let by_devices = facts.steps.iter().filter(gives).flat_map(|s| &s.words).filter_map(word).map(u32::from);
    by_rules.chain(by_devices).map(|a| a >> 16).collect()
}

fn wrong_way(facts: &Facts, found: &mut Found) {
    let nat = translated4(facts);
    let fed = super::marks::fed_from_ingress(facts);
    let inside = inside(facts);
    // One of the range homes have, or of a network the script names.
    let near = |a: &Ipv4Addr| a.octets()[..2] == [192, 168] || inside.contains(&(u32::from(*a) >> 16));
    for (device, filter) in each(facts) {
        let outside = nat.iter().flatten().any(|i| i.matches(&device.name) && !i.wildcard && !i.invert)
            || ["ppp", "wan", "pppoe-"].iter().any(|p| device.name.starts_with(p));
        if filter.parent.major() == 0xffff || fed.contains(device.name.as_str()) || !outside {
            continue;
        }
        let Some(addr) = private(filter, 16).filter(near) else { continue };
        let step = &facts.steps[filter.step];
        let word = step.value(&["dst", "dst_ip"]).unwrap_or_default();
        let reason = format!(
            "{} is the outside device (what leaves by it is given its address); no packet for {addr} leaves there.",
            device.name
        );
        let inside = facts.foreign.iter().find(|d| **d != device.name && !d.starts_with("ifb"));
        let fix = inside.map_or(String::new(), |i| step.with("dev", i));
        found.at(filter.step, word, Say::new("no packet on this path has this destination", reason, fix));
    }
}

/// The device whose ingress feeds an ifb.
pub fn feeder<'a>(facts: &'a Facts, ifb: &str) -> Option<&'a str> {
    let feeds = |f: &&Filter| {
        f.parent.major() == 0xffff
            && facts.steps[f.step].words.last().is_some()
            && facts.steps[f.step].words.windows(2).any(|w| w[0] == "dev" && w[1] == ifb)
    };
    facts.devices.iter().find(|d| d.filters.iter().any(|f| feeds(&f))).map(|d| d.name.as_str())
}
