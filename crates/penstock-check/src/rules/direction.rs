//! PS223 and PS224: the way packets go, by the machine's own addresses, routes and devices.

use super::nat::{is_translated, private, translated, translated4};
use crate::facts::{Device, Facts, Step};
use crate::filters::{Field, Filter};
use crate::finding::{Found, Rule, Say};
use std::net::Ipv4Addr;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS223",
        "packets for this destination leave by another device",
        "A qdisc sees what leaves by its device, and routes say by which device that is. The script's own addresses and routes send this destination elsewhere, or \
         it is the machine's own address, which \
         is not sent at all.",
        destination,
    ),
    Rule::warning(
        "PS224",
        "packets of this source come in by the device, they do not leave by it",
        "What leaves towards a network goes to its hosts: there they are the destination. What they send comes in by that device and leaves by another. On a host's \
         end of a veth or a tap the guest is on \
         the other side, so its downloads leave here with its address as destination. Which side is which confuses tools too: \
         https://github.com/thombashi/tcconfig/issues/121.",
        source,
    ),
];

/// The network behind an address: address and mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Net {
    addr: u32,
    mask: u32,
}

impl Net {
    fn parse(text: &str) -> Option<Net> {
        let (addr, len) = text.split_once('/').unwrap_or((text, "32"));
        let (addr, len) = (addr.parse::<Ipv4Addr>().ok()?, len.parse::<u32>().ok().filter(|l| *l <= 32)?);
        Some(Net { addr: addr.into(), mask: u32::MAX.checked_shl(32 - len).unwrap_or(0) })
    }
    fn holds(self, addr: u32, mask: u32) -> bool {
        self.mask != 0 && self.mask & !mask == 0 && (self.addr ^ addr) & self.mask == 0
    }
}

/// Addresses that the script gives its devices: device, address, mask.
pub fn own_addresses(facts: &Facts) -> Vec<(&str, u32, u32)> {
    let mut all = Vec::new();
    for step in facts.steps.iter().filter(|s| s.ok()) {
        match step.program() {
            "ip" => {
                let gives =
                    step.words.get(1).is_some_and(|w| "address".starts_with(w.as_str()) || w == "addr");
                let Some(at) = step
                    .words
                    .iter()
                    .position(|w| matches!(w.as_str(), "add" | "a" | "replace"))
                    .filter(|_| gives)
                else {
                    continue;
                };
                let net = step.words[at + 1..]
                    .iter()
                    .find_map(|w| w.contains('.').then(|| Net::parse(w)).flatten());
                if let (Some(net), Some(dev)) = (net, step.value(&["dev"])) {
                    all.push((dev, net.addr, net.mask));
                }
            }
            "ifconfig" => {
                let Some(net) = step.words.get(2).and_then(|w| Net::parse(w)) else { continue };
                let mask = step
                    .value(&["netmask"])
                    .and_then(|m| m.parse::<Ipv4Addr>().ok())
                    .map_or(net.mask, u32::from);
                all.push((step.words[1].as_str(), net.addr, mask));
            }
            _ => {}
        }
    }
    all
}

/// Networks that the script's routes lead to: device, network.
fn routes(facts: &Facts) -> Vec<(&str, Net)> {
    let leads = |step: &'_ Step| {
        let route =
            step.program() == "ip" && step.words.get(1).is_some_and(|w| "route".starts_with(w.as_str()));
        let at = step
            .words
            .iter()
            .position(|w| matches!(w.as_str(), "add" | "a" | "replace" | "append"))
            .filter(|_| route && !step.has("table"))?;
        let net = Net::parse(step.words.get(at + 1)?).filter(|n| n.mask != 0)?;
        let dev = step.words.iter().position(|w| w == "dev")? + 1;
        Some((dev, net))
    };
    facts
        .steps
        .iter()
        .filter(|s| s.ok())
        .filter_map(|s| leads(s).and_then(|(dev, net)| Some((s.words.get(dev)?.as_str(), net))))
        .collect()
}

/// Whether a device leads to the outside, as far as the script says or the name does.
pub fn is_outside(facts: &Facts, dev: &str) -> bool {
    let nat = translated(facts);
    dev.starts_with("ppp")
        || dev.starts_with("wan")
        || dev.starts_with("pppoe")
        || dev.starts_with("wwan")
        || is_translated(facts, &nat, dev)
}

/// Whether a device leads to hosts behind this machine, by its name.
fn is_inside(dev: &str) -> bool {
    let lan = dev == "lan"
        || dev.starts_with("br-lan")
        || dev.starts_with("lan") && dev[3..].chars().all(|c| c.is_ascii_digit());
    lan || leads_to_guest(dev)
}

/// The host's end of a guest's device.
fn leads_to_guest(dev: &str) -> bool {
    let of_docker = dev
        .strip_prefix("veth")
        .is_some_and(|rest| rest.len() >= 7 && rest.chars().all(|c| c.is_ascii_hexdigit()));
    of_docker
        || ["vnet", "docker", "virbr", "lxcbr", "cali", "cni", "fwpr", "fwln", "vif"]
            .iter()
            .any(|p| dev.starts_with(p))
}

/// Whether one device stands on the other or is a port of it: then packets of one pass the other as well.
fn related(facts: &Facts, a: &str, b: &str) -> bool {
    let master = |d: &Device, m: &str| d.master.as_deref() == Some(m);
    let port = facts.devices.iter().any(|d| d.name == a && master(d, b) || d.name == b && master(d, a));
    let above =
        |x: &str, y: &str| x.starts_with(&format!("{y}.")) || x.starts_with("vlan") || x.starts_with("ppp");
    let linked = facts
        .steps
        .iter()
        .any(|s| s.program() == "ip" && s.has("link") && s.has("add") && s.has(a) && s.has(b));
    port || above(a, b) || above(b, a) || linked
}

fn each(facts: &Facts) -> impl Iterator<Item = (&Device, &Filter)> {
    facts.devices.iter().flat_map(|d| d.filters.iter().map(move |f| (d, f)))
}

fn destination(facts: &Facts, found: &mut Found) {
    let own = own_addresses(facts);
    let nets: Vec<(&str, Net)> = own
        .iter()
        .map(|(dev, addr, mask)| (*dev, Net { addr: addr & mask, mask: *mask }))
        .chain(routes(facts))
        .collect();
    rules_out(facts, &nets, found);
    let fed = super::marks::fed_from_ingress(facts);
    for (device, filter) in each(facts) {
        let name = device.name.as_str();
        if filter.parent.major() == 0xffff || fed.contains(name) || name.starts_with("ifb") || name == "lo" {
            continue;
        }
        let Some(bits) = filter.tests.get(&Field::Net(16)).filter(|b| b.mask >> 24 == 0xff) else { continue };
        let step = &facts.steps[filter.step];
        let word = step.value(&["dst", "dst_ip"]).unwrap_or("");
        if let Some((dev, ..)) = own.iter().find(|a| bits.mask == u32::MAX && a.1 == bits.value) {
            let reason = format!(
                "{} is an address of this machine's {dev}; what is for it stays here.",
                Ipv4Addr::from(bits.value)
            );
            let fix = if step.has("dst_ip") {
                step.text().replacen(" dst_ip ", " src_ip ", 1)
            } else {
                step.text().replacen(" dst ", " src ", 1)
            };
            found.at(filter.step, word, Say::new("no packet for this address leaves", reason, fix));
            continue;
        }
        // The narrowest network counts, as for the kernel.
        let best = nets.iter().filter(|(_, n)| n.holds(bits.value, bits.mask)).max_by_key(|(_, n)| n.mask);
        let Some((other, net)) = best.filter(|(dev, _)| *dev != name && !related(facts, dev, name)) else {
            continue;
        };
        // Another route that is as narrow may lead here.
        if nets.iter().any(|(dev, n)| *dev == name && n.mask == net.mask && n.holds(bits.value, bits.mask)) {
            continue;
        }
        let reason = format!("{}/{} is behind {other}.", Ipv4Addr::from(net.addr), net.mask.count_ones());
        found.at(
            filter.step,
            word,
            Say::new(
                format!("packets for {} leave by {other}", if word.is_empty() { "it" } else { word }),
                reason,
                step.with("dev", other),
            ),
        );
    }
}

/// Members of a set that the script gives it: addresses and networks.
fn members(facts: &Facts, set: &str) -> Vec<Net> {
    let of = |s: &'_ Step| {
        let at = s.words.iter().position(|w| matches!(w.as_str(), "add" | "-A" | "a")).filter(|_| s.ok())?;
        let named = s.program() == "ipset" && s.words.get(at + 1).is_some_and(|w| w == set);
        let word = s.words.get(at + 2).filter(|_| named)?;
        Net::parse(word.split(',').next().unwrap_or(""))
    };
    facts.steps.iter().filter_map(of).collect()
}

/// Rules for what leaves by a device, and for a destination that is behind another.
fn rules_out(facts: &Facts, nets: &[(&str, Net)], found: &mut Found) {
    use penstock_lang::iptables::Family;
    let behind = |addr: u32, mask: u32| {
        nets.iter().filter(move |(_, n)| n.holds(addr, mask)).max_by_key(|(_, n)| n.mask)
    };
    for ruled in facts.netfilter.rules.iter().filter(|r| r.family == Family::Ip) {
        let Some(out) = ruled.rule.output.as_ref().filter(|o| !o.invert && !o.wildcard) else { continue };
        let step = &facts.steps[ruled.step];
        let plain = ruled.rule.dst.as_ref().filter(|d| !d.invert && d.mask as u32 >> 24 == 0xff);
        let one = plain.map(|d| Net { addr: d.addr as u32, mask: d.mask as u32 });
        let set = step.words.iter().position(|w| w == "--match-set").filter(|n| step.words[n - 1] != "!");
        let set = set.filter(|n| step.words.get(n + 2).is_some_and(|w| w == "dst"));
        let sets = set.map(|n| members(facts, &step.words[n + 1]));
        let (all, word) = match (one, sets.filter(|m| !m.is_empty())) {
            (Some(net), _) => (vec![net], step.value(&["-d", "--dst", "--destination"]).unwrap_or("-d")),
            (None, Some(members)) => (members, "dst"),
            (None, None) => continue,
        };
        let leads = |n: &Net| {
            let (dev, net) = behind(n.addr, n.mask)?;
            let here =
                nets.iter().any(|(d, m)| *d == out.name && m.mask == net.mask && m.holds(n.addr, n.mask));
            (*dev != out.name && !related(facts, dev, &out.name) && !here).then_some((*dev, *net))
        };
        let ways: Option<Vec<(&str, Net)>> = all.iter().map(leads).collect();
        let Some((other, net)) = ways.and_then(|w| w.first().copied()) else { continue };
        let reason = format!(
            "{}/{} is behind {other}; what leaves by {} goes elsewhere.",
            Ipv4Addr::from(net.addr),
            net.mask.count_ones(),
            out.name
        );
        found.at(
            ruled.step,
            word,
            Say::new(format!("packets for this destination leave by {other}"), reason, ""),
        );
    }
}

/// A filter's command with the destination in the place of the source.
fn turned(step: &Step) -> String {
    if step.has("src_ip") {
        step.text().replacen(" src_ip ", " dst_ip ", 1)
    } else {
        step.text().replacen(" src ", " dst ", 1)
    }
}

/// The device, other than the one that packets come in by, whose own network these addresses are in.
fn behind_another<'a>(facts: &'a Facts, from: &str, addr: u32, mask: u32) -> Option<&'a str> {
    let own = own_addresses(facts);
    let holds = |a: &&(&str, u32, u32)| Net { addr: a.1 & a.2, mask: a.2 }.holds(addr, mask);
    let best = own.iter().filter(holds).max_by_key(|a| a.2)?;
    let known = own.iter().any(|a| a.0 == best.0 && a.1 == addr && mask == u32::MAX);
    let free = best.2 != u32::MAX && best.0 != from && !known && !related(facts, best.0, from);
    (free && !own.iter().filter(holds).any(|a| a.0 == from)).then_some(best.0)
}

fn source(facts: &Facts, found: &mut Found) {
    let own = own_addresses(facts);
    let fed = super::marks::fed_from_ingress(facts);
    let nat = translated4(facts);
    let inside = super::nat::inside(facts);
    let real: Vec<&str> = facts
        .devices
        .iter()
        .map(|d| d.name.as_str())
        .filter(|n| *n != "lo" && !n.starts_with("ifb") && !is_outside(facts, n))
        .collect();
    let lans: std::collections::BTreeSet<&str> = real.into_iter().collect();
    for (device, filter) in each(facts) {
        let name = device.name.as_str();
        let Some(bits) = filter.tests.get(&Field::Net(12)).filter(|b| b.mask >> 24 == 0xff) else { continue };
        let step = &facts.steps[filter.step];
        let word = step.value(&["src", "src_ip"]).unwrap_or("");
        if fed.contains(name)
            && let Some((from, other)) = super::nat::feeder(facts, name)
                .and_then(|from| Some((from, behind_another(facts, from, bits.value, bits.mask)?)))
        {
            let reason = format!(
                "{} is behind {other}; what comes in by {from}, and goes through {name}, is on its way there.",
                Ipv4Addr::from(bits.value)
            );
            found.at(
                filter.step,
                word,
                Say::new("no packet that comes in has this source", reason, turned(step)),
            );
            continue;
        }
        let Some(addr) = private(filter, 12) else { continue };
        // Both ends in one network: hosts of it among themselves, or this machine's answers.
        if filter.tests.get(&Field::Net(16)).is_some_and(|b| b.mask >> 24 == 0xff) {
            continue;
        }
        let mine = own.iter().any(|a| a.1 & bits.mask == bits.value & bits.mask && bits.mask == u32::MAX);
        if mine {
            continue;
        }
        let at_ingress = filter.parent.major() == 0xffff && filter.parent.minor() != 0xfff3;
        if at_ingress || fed.contains(name) {
            // What comes in from outside has been sent there.
            let from = if at_ingress { Some(name) } else { super::nat::feeder(facts, name) };
            let Some(from) = from.filter(|f| is_outside(facts, f) && !is_inside(f)) else { continue };
            let reason =
                format!("{addr} is behind this machine; what comes in by {from} comes from outside.");
            found.at(filter.step, word, Say::new("no packet that comes in has this source", reason, ""));
            continue;
        }
        if device.master.is_some() || is_outside(facts, name) {
            continue;
        }
        let behind = own.iter().find(|(dev, a, mask)| {
            *dev == name && Net { addr: a & mask, mask: *mask }.holds(bits.value, bits.mask)
        });
        let near = addr.octets()[..2] == [192, 168] || inside.contains(&(u32::from(addr) >> 16));
        let by_nat = !nat.is_empty()
            && near
            && lans.len() == 1
            && nat.iter().flatten().any(|o| !o.wildcard && !o.invert && o.name != name);
        let routes = super::lives::forwards(facts) || lans.len() > 1;
        let guest = leads_to_guest(name)
            || other_end(facts, name).is_some_and(|nets| {
                nets.iter().any(|n| n.holds(bits.value, bits.mask) || n.addr == bits.value)
            });
        let reason = if guest {
            format!("{addr} is at the other end of {name}: what leaves by {name} goes there.")
        } else if behind.is_some() && (routes || bits.mask == u32::MAX) {
            format!(
                "{name} has an address in the network of {addr}: its hosts send towards {name}, not out of it."
            )
        } else if by_nat || is_inside(name) {
            format!("{addr} is a host behind {name}: what leaves by {name} goes to it.")
        } else {
            continue;
        };
        found.at(filter.step, word, Say::new("no packet on this path has this source", reason, turned(step)));
    }
}

/// The addresses of the other end of a veth, where the script gives it some in another namespace.
fn other_end(facts: &Facts, name: &str) -> Option<Vec<Net>> {
    let made = facts.steps.iter().find(|s| s.has("veth") && s.has("peer") && s.has(name))?;
    let peer = made
        .words
        .iter()
        .rposition(|w| w == "name")
        .and_then(|n| made.words.get(n + 1))
        .or(made.words.last())?;
    let peer = if peer == name { made.words.get(3)? } else { peer };
    let gives = |s: &&Step| {
        s.words.iter().any(|w| w == "addr" || w == "address" || w == "a")
            && s.has("add")
            && s.has("dev")
            && s.value(&["dev"]) == Some(peer)
    };
    let nets: Vec<Net> = facts
        .steps
        .iter()
        .filter(gives)
        .flat_map(|s| &s.words)
        .filter_map(|w| w.contains('/').then(|| Net::parse(w)).flatten())
        .collect();
    let nets: Vec<Net> = nets.into_iter().map(|n| Net { mask: u32::MAX, ..n }).collect();
    (!nets.is_empty()).then_some(nets)
}
