//! PS182 to PS187: filters that no packet can fit.

use crate::facts::{Device, Facts, Step};
use crate::filters::{Field, Filter, IP, IP6};
use crate::finding::{Found, Rule, Say};
use penstock_lang::iptables::{Match, PortMatch};
use std::collections::{BTreeMap, BTreeSet};

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS182",
        "a filter that no packet fits",
        "All packets that leave by the device were laid over the rules and filters: none of them is left to this filter. What it asks for contradicts itself, is \
         changed before the packet comes here, or \
         is taken by what stands before. `penstock explain --all` shows the parts.",
        never,
    ),
    Rule::warning(
        "PS183",
        "the same port on both sides",
        "All matches of a filter must hold at once. A client's port is chosen at random, so a packet with port 80 on both sides does not come. Write one filter for \
         `sport` and one for `dport`. \
         (NTP, IKE, DHCP and the like do use one port on both sides; they are not reported.)",
        both_ports,
    ),
    Rule::warning(
        "PS184",
        "a rule stands in a bucket that its packets do not come to",
        "`ht 2:a:` names the bucket in hexadecimal, as all of u32's handles are, and `hashkey` says which bits of the packet choose it. A rule whose packets hash to \
         another bucket is never asked: \
         a decimal number from a loop goes wrong from 10 on. LARTC's chapter on hashing filters has the form: https://lartc.org/howto/lartc.adv-filter.hashing.html.",
        bucket,
    ),
    Rule::warning(
        "PS185",
        "TCP's flags are looked for in the IP header",
        "Without `nexthdr+`, `at` counts from the beginning of the IP header, where byte 13 belongs to the source address. TCP's flags are at 33 where the IP header \
         has 20 bytes (ask for that with \
         `match u8 0x05 0x0f at 0`), or at `nexthdr+13` in a table that is reached with an offset. LARTC and wondershaper write `at 33`.",
        flags,
    ),
    Rule::warning(
        "PS186",
        "the address of a network, asked for as one host",
        "Without a prefix length an address is one host. The first address of a network is the network's own; no host of a /24 or larger has it, so that 192.168.1.0 without \
         `/24` fits no packet of 192.168.1.7.",
        network_as_host,
    ),
    Rule::warning(
        "PS187",
        "filters for IP on a device that carries PPPoE",
        "Below a PPPoE session the Ethernet device sends frames of type 0x8864; `protocol ip` does not fit them. Shape the ppp device, whose packets are IP.",
        pppoe,
    ),
];

/// More filters than this are not laid over one another here; `explain --all` still does it.
const MOST: usize = 1500;

fn never(facts: &Facts, found: &mut Found) {
    let netfilter = &facts.netfilter;
    for device in &facts.devices {
        let many = device.filters.len() + netfilter.rules.len();
        if device.root().is_none() || device.filters.is_empty() || many > MOST {
            continue;
        }
        // The version stands in every IP header.
        let mut versions: BTreeSet<u32> = BTreeSet::new();
        for filter in device.filters.iter().filter(|f| f.kind == "u32") {
            let version = match filter.protocol {
                IP => 4,
                IP6 => 6,
                _ => continue,
            };
            let Some(bits) = filter.tests.get(&Field::Net(0)).filter(|b| b.mask >> 28 != 0) else { continue };
            if (bits.value >> 28 ^ version) & bits.mask >> 28 != 0 {
                let reason = format!(
                    "It asks for {:x} where every IPv{version} header begins with {version}.",
                    bits.value >> 28 & bits.mask >> 28
                );
                versions.insert(facts.known_line(&facts.steps[filter.step]));
                found.at(filter.step, "match", Say::new("no packet fits this filter", reason, ""));
            }
        }
        let last = facts.devices.iter().rfind(|d| d.name == device.name && d.root().is_some());
        if !last.is_some_and(|d| std::ptr::eq(d, device)) {
            continue;
        }
        // A line that stands for several filters is one of a loop: if all of them fit nothing, that is said once.
        let mut of_line: BTreeMap<u32, Vec<&Filter>> = BTreeMap::new();
        for filter in &device.filters {
            of_line.entry(facts.known_line(&facts.steps[filter.step])).or_default().push(filter);
        }
        // Who sets a mark, and where, is asked by rules of their own; an inner class's packets are sorted further down.
        let unasked = |f: &&Filter| {
            let by_mark = f.kind == "fw" || f.tests.contains_key(&Field::Mark);
            let inner = f.classid.and_then(|c| device.class(c)).is_some_and(|c| !c.children.is_empty());
            // What names no class goes on to the default, and its actions are done all the same.
            by_mark
                || f.classid.is_none()
                || inner
                || !is_followed(device, f.parent.qdisc())
                || facts.steps[f.step].guessed.is_some()
        };
        let judged = |f: &&Filter| {
            let step = &facts.steps[f.step];
            facts.judged.contains(&(step.file.clone(), step.line))
        };
        of_line.retain(|line, all| {
            !versions.contains(line) && !all.iter().any(unasked) && !all.iter().all(judged)
        });
        // Laying packets over filters costs more than all other rules together: only where there is something to ask.
        if of_line.is_empty() {
            continue;
        }
        let Ok(all) = crate::explain::partition(facts, &device.name) else { continue };
        if all.cut {
            continue;
        }
        let lines: BTreeSet<u32> = all.never.iter().copied().collect();
        for (line, filters) in of_line {
            if !lines.contains(&line) {
                continue;
            }
            let Some(filter) = filters.into_iter().find(|f| f.parent.major() != 0xffff) else { continue };
            let step = &facts.steps[filter.step];
            let to = filter.classid.map_or("its action".to_owned(), |c| c.to_string());
            let mut reason = format!("Nothing of what leaves by {} comes to {to} through it.", device.name);
            if let Some(first) = all.parts.first().filter(|p| {
                p.left == crate::explain::Reached::Yes && p.except.is_empty() && p.packets == "everything"
            }) {
                reason += &format!(" Everything goes to {} first.", first.class);
            }
            let word = if step.has(&filter.kind) { filter.kind.as_str() } else { "filter" };
            found.at(filter.step, word, Say::new("no packet fits this filter", reason, ""));
        }
    }
}

/// Whether a packet's way to a qdisc is known: all above it sort by filters.
fn is_followed(device: &Device, qdisc: penstock_model::Handle) -> bool {
    let mut at = qdisc;
    for _ in 0..16 {
        let Some(here) = device.qdisc(at).filter(|q| q.traits().sorting.is_followed()) else { return false };
        if here.parent == penstock_model::Handle::ROOT {
            return true;
        }
        at = here.parent.qdisc();
    }
    false
}

/// Protocols that use one port on both sides.
const BOTH: [u16; 18] =
    [53, 67, 68, 123, 137, 138, 500, 520, 521, 646, 1701, 1985, 4500, 4784, 5060, 5353, 5355, 3784];

fn both_ports(facts: &Facts, found: &mut Found) {
    let say = |port: u16| {
        Say::new(
            format!("port {port} is asked for on both sides at once"),
            "Both must hold; a packet from or to a client has the port on one side only.",
            "",
        )
    };
    for filter in facts.devices.iter().flat_map(|d| &d.filters) {
        let port = match filter.kind.as_str() {
            "u32" => filter
                .tests
                .get(&Field::Net(20))
                .filter(|b| b.mask == u32::MAX && b.value >> 16 == b.value & 0xffff)
                .map(|b| b.value as u16),
            "flower" => {
                let of = |names: [&str; 3]| names.iter().find_map(|n| filter.options.u32(n));
                let src = of(["tcp_src", "udp_src", "sctp_src"]);
                src.filter(|s| of(["tcp_dst", "udp_dst", "sctp_dst"]) == Some(*s)).map(|p| p as u16)
            }
            _ => None,
        };
        if let Some(port) = port.filter(|p| *p != 0 && !BOTH.contains(p)) {
            let step = &facts.steps[filter.step];
            let word = ["dport", "dst_port", "sport", "src_port"]
                .into_iter()
                .find(|w| step.has(w))
                .unwrap_or("match");
            found.at(filter.step, word, say(port));
        }
    }
    for ruled in &facts.netfilter.rules {
        let one = |p: PortMatch| (p.ports.from == p.ports.to && !p.invert).then_some(p.ports.from);
        let port = ruled.rule.matches.iter().find_map(|m| match m {
            Match::Tcp(t) => one(t.sport).filter(|s| one(t.dport) == Some(*s)),
            Match::Udp(s, d) => one(*s).filter(|s| one(*d) == Some(*s)),
            _ => None,
        });
        if let Some(port) = port.filter(|p| *p != 0 && !BOTH.contains(p)) {
            found.at(ruled.step, "--dport", say(port));
        }
    }
}

/// The filters that link to a table, and what chooses its bucket: mask and place.
fn link_of<'a>(device: &'a Device, filter: &Filter, table: u32) -> Option<(&'a Filter, u32, i64)> {
    let link = device.filters.iter().find(|f| {
        f.parent.qdisc() == filter.parent.qdisc() && f.options.u32("link").is_some_and(|l| l >> 20 == table)
    })?;
    let sel = link.options.nested("sel")?;
    Some((link, sel.u32("hmask").filter(|m| *m != 0)?, sel.i64("hoff").unwrap_or(0)))
}

fn bucket(facts: &Facts, found: &mut Found) {
    for device in &facts.devices {
        let mut by_table: BTreeMap<(penstock_model::Handle, u32), Vec<&Filter>> = Default::default();
        for filter in device.filters.iter().filter(|f| f.kind == "u32") {
            let hash = filter.options.u32("hash").unwrap_or(0);
            if hash != 0 && hash >> 20 < 0x800 {
                by_table.entry((filter.parent.qdisc(), hash >> 20)).or_default().push(filter);
            }
        }
        for ((qdisc, table), inside) in by_table {
            let Some((link, mask, place)) = inside.first().and_then(|f| link_of(device, f, table)) else {
                continue;
            };
            let divisor = device.tables.get(&(qdisc, table)).copied().unwrap_or(1);
            if divisor < 2 {
                continue;
            }
            let looked =
                |f: &&&Filter| f.tests.get(&Field::Net(place as i32)).is_some_and(|b| b.mask & mask != 0);
            let (other, name, its) = match place {
                12 => (16, "source", "destination"),
                16 => (12, "destination", "source"),
                _ => (-1, "", ""),
            };
            let by_other = |f: &&Filter| f.tests.get(&Field::Net(other)).is_some_and(|b| b.mask & mask != 0);
            if inside.len() > 1 && !inside.iter().any(|f| looked(&f)) && inside.iter().all(by_other) {
                let step = &facts.steps[link.step];
                let at = step.words.iter().rposition(|w| w == "at").and_then(|n| step.words.get(n + 1));
                let reason = format!(
                    "The bucket is chosen by the {name} (at {place}), and the {} rules in the table ask for the {its}.",
                    inside.len()
                );
                let fix = match step.words.iter().position(|w| w == "hashkey") {
                    Some(n) => {
                        let mut words = step.words.clone();
                        if let Some(p) = words[n..]
                            .iter()
                            .position(|w| w == "at")
                            .map(|p| p + n + 1)
                            .filter(|p| *p < words.len())
                        {
                            words[p] = other.to_string();
                        }
                        words.join(" ")
                    }
                    None => String::new(),
                };
                found.at(
                    link.step,
                    at.map_or("hashkey", |w| w.as_str()),
                    Say::new(
                        format!("the table is hashed by the {name}, its rules are by the {its}"),
                        reason,
                        fix,
                    ),
                );
                continue;
            }
            for filter in inside {
                let Some(bits) =
                    filter.tests.get(&Field::Net(place as i32)).filter(|b| b.mask & mask == mask)
                else {
                    // One of them asks for the other address, and stands where that one's byte would lead.
                    let hash = filter.options.u32("hash").unwrap_or(0);
                    let by = filter
                        .tests
                        .get(&Field::Net(other))
                        .filter(|b| b.mask & mask == mask && !looked(&&filter));
                    let led = by.map(|b| (b.value & mask) >> mask.trailing_zeros() & (divisor - 1));
                    if led == Some(hash >> 12 & 0xff) {
                        let step = &facts.steps[filter.step];
                        let (is, meant) = if other == 12 { ("src", "dst") } else { ("dst", "src") };
                        let reason = format!(
                            "The bucket is chosen by the {name} (at {place}), and this asks for the {its}."
                        );
                        let fix = step.text().replacen(&format!(" {is} "), &format!(" {meant} "), 1);
                        found.at(
                            filter.step,
                            is,
                            Say::new(
                                format!("the table is hashed by the {name}, this rule is by the {its}"),
                                reason,
                                fix,
                            ),
                        );
                    }
                    continue;
                };
                let want = (bits.value & mask) >> mask.trailing_zeros() & (divisor - 1);
                let hash = filter.options.u32("hash").unwrap_or(0);
                let have = hash >> 12 & 0xff;
                if want == have {
                    continue;
                }
                let step = &facts.steps[filter.step];
                let word = step.value(&["ht"]).unwrap_or("");
                let decimal = if format!("{have:x}") == want.to_string() {
                    format!(" Buckets are hexadecimal: {want} is {want:x}.")
                } else {
                    String::new()
                };
                let reason = format!(
                    "Its packets come to bucket {want:x} of table {table:x}:, the rule stands in {have:x}.{decimal}"
                );
                let fix = step.with("ht", &format!("{table:x}:{want:x}:"));
                found.at(filter.step, word, Say::new("no packet comes to this rule's bucket", reason, fix));
            }
        }
    }
}

fn flags(facts: &Facts, found: &mut Found) {
    const FLAGS: [u32; 12] = [0x01, 0x02, 0x04, 0x08, 0x10, 0x11, 0x12, 0x14, 0x18, 0x20, 0x17, 0x3f];
    for filter in facts.devices.iter().flat_map(|d| &d.filters).filter(|f| f.kind == "u32" && f.reached) {
        let step: &Step = &facts.steps[filter.step];
        // Words: match u8 VALUE MASK at 13.
        for at in 0..step.words.len().saturating_sub(5) {
            let w = |n: usize| step.words[at + n].as_str();
            if (w(0), w(1), w(4), w(5)) != ("match", "u8", "at", "13") {
                continue;
            }
            let number = |t: &str| u32::from_str_radix(t.trim_start_matches("0x"), 16).ok();
            let (Some(value), Some(mask)) = (number(w(2)), number(w(3))) else { continue };
            let tcp = filter
                .tests
                .get(&Field::Net(8))
                .is_some_and(|b| b.mask & 0x00ff_0000 != 0 && b.value >> 16 & 0xff == 6);
            if !FLAGS.contains(&value) || !(tcp || mask != 0xff || value == 0x10) {
                continue;
            }
            let mut words = step.words.clone();
            words[at + 5] = "33".to_owned();
            let reason = "Byte 13 of the IP header is the second byte of the source address.";
            found.at(filter.step, "13", Say::new("these are not TCP's flags", reason, words.join(" ")));
        }
    }
}

fn pppoe(facts: &Facts, found: &mut Found) {
    if !facts.source.holds(&["pppoe"]) {
        return;
    }
    for device in facts.devices.iter().filter(|d| d.root().is_some() && !d.name.starts_with("ppp")) {
        let names = |line: &String| {
            let low = line.to_lowercase();
            let code = low.split('#').next().unwrap_or("");
            let words = |text: &str| {
                text.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-' || c == '.'))
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            let own = words(&low).iter().any(|w| *w == device.name || *w == format!("nic-{}", device.name));
            let starts = code.contains("pppoe") || code.contains("rp-pppoe");
            let says = low.trim_start().starts_with('#')
                && low.contains("pppoe")
                && !low.contains("ppp0")
                && !low.contains("lan");
            own && (starts || says) && !code.contains("tc ")
        };
        if !facts.source.lines.iter().any(names) {
            continue;
        }
        let root = device.root().map(|r| r.handle);
        let filters: Vec<&Filter> =
            device.filters.iter().filter(|f| Some(f.parent.qdisc()) == root).collect();
        let Some(first) = filters.iter().find(|f| f.protocol == IP || f.protocol == IP6) else { continue };
        if filters.iter().any(|f| !matches!(f.protocol, IP | IP6)) {
            continue;
        }
        let step = &facts.steps[first.step];
        let reason =
            format!("{} carries PPPoE: its frames have the type 0x8864, whatever is in them.", device.name);
        found.at(
            first.step,
            step.value(&["protocol", "proto"]).unwrap_or(""),
            Say::new(
                format!("no packet of {} fits `protocol ip`", device.name),
                reason,
                step.with("dev", "ppp0"),
            ),
        );
    }
}

/// The words for an address that is one host and ends in 0.
fn network_as_host(facts: &Facts, found: &mut Found) {
    let bare = |word: &str| -> Option<std::net::Ipv4Addr> {
        let (addr, len) = word.split_once('/').unwrap_or((word, "32"));
        let addr: std::net::Ipv4Addr = addr.parse().ok()?;
        (addr.octets()[3] == 0 && addr.octets()[0] != 0 && len == "32").then_some(addr)
    };
    const NAMES: [&str; 10] =
        ["src", "dst", "src_ip", "dst_ip", "-s", "-d", "--source", "--destination", "--src", "--dst"];
    for (at, step) in facts.steps.iter().enumerate().filter(|s| s.1.ok()) {
        let filters = step.program() == "tc" && step.has("filter");
        if !(filters || matches!(step.program(), "iptables" | "iptables-legacy")) || step.has("-D") {
            continue;
        }
        for pair in step.words.windows(2).filter(|p| NAMES.contains(&p[0].as_str())) {
            let Some(addr) = bare(&pair[1]) else { continue };
            // A part of a larger network that is counted through has such hosts.
            let neighbour = format!("{}.", addr.to_string().trim_end_matches(".0"));
            let near = |s: &Step| {
                s.words.iter().any(|w| {
                    w.strip_prefix(&neighbour).is_some_and(|r| !r.starts_with('0')) && !w.contains('/')
                })
            };
            let counted = facts.steps.iter().filter(|s| s.line == step.line).count() > 1
                && facts.steps.iter().any(near);
            if counted {
                continue;
            }
            let zeros = addr.octets().iter().rev().take_while(|o| **o == 0).count() as u32;
            let instead = format!("{addr}/{}", 32 - 8 * zeros);
            let reason = format!("{addr} is the network's own address; its hosts are {instead}.");
            let fix = step.with_word(&pair[1], &instead);
            found.at(at, &pair[1], Say::new(format!("no host has the address {addr}"), reason, fix));
        }
    }
}
