//! PS19x: what u32 looks at, and what it finds there.

use crate::facts::{Facts, Step};
use crate::filters::{ALL, ARP, Field, Filter, IP, IP6, QINQ, VLAN};
use crate::finding::{Found, Rule, Say};
use penstock_lang::tc::num;
use penstock_model::Handle;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS188",
        "filters for IP skip tagged frames",
        "A frame that a VLAN device sends is 802.1Q to the qdisc of the device below, whatever it carries: `protocol ip` does not fit it. Shape the VLAN device, or ask \
         for `protocol 802.1q`: the tag is out of the data, so u32's offsets stay; flower says `vlan_ethtype ipv4`. The other way round, packets that the VLAN device itself \
         sends have no tag yet: `protocol 802.1q` fits none of them.",
        untagged,
    ),
    Rule::warning(
        "PS189",
        "ports are looked for in later fragments",
        "Only the first fragment of a packet has the transport header. In the others the same bytes are payload, so a match on ports fits by chance or never; iptables' \
         port matches never fit them. Mark by \
         addresses, or let conntrack put the packet together.",
        fragments,
    ),
    Rule::note(
        "PS190",
        "a port match without a protocol",
        "`match ip dport` looks at two bytes behind a header of 20 bytes, whatever they are: of TCP and of UDP, of ICMP (where they are part of the data), of the second \
         fragment of anything. Say which protocol is meant.",
        no_protocol,
    ),
    Rule::note(
        "PS191",
        "a fixed offset behind the IP header",
        "An IP header has 20 to 60 bytes. `at 20` is the transport header only where there are no options; ask for that (`match u8 0x05 0x0f at 0`), or take \
         `nexthdr+` with an offset.",
        fixed_offset,
    ),
    Rule::warning(
        "PS192",
        "the wrong IP for the protocol",
        "`match ip` looks at the places of IPv4's fields, `match ip6` at those of IPv6's. In the other protocol's packets other things stand there. ICMP has a number for each: \
         1 in IPv4, 58 in IPv6 (`ip6tables -p icmp` fits nothing).",
        wrong_family,
    ),
    Rule::warning(
        "PS193",
        "protocol all with fields of IPv4",
        "With `protocol all` the same bytes are looked at in ARP, IPv6 and everything else, and may fit by chance.",
        all_protocols,
    ),
    Rule::warning(
        "PS194",
        "bits of the value lie outside the mask",
        "Only bits in the mask are compared; the others of the value are thrown away, so the filter fits more, and other, packets than written.",
        outside_mask,
    ),
    Rule::warning(
        "PS195",
        "a mask of ports or lengths that is not a range",
        "A port's mask has its ones at the left: 0xffff is one port, 0xfff0 sixteen. Another one fits ports scattered over the whole range. The same holds for the \
         packet's length \
         (`match u16 0x0000 0xffc0 at 2`: shorter than 64 bytes).",
        port_mask,
    ),
    Rule::warning(
        "PS196",
        "an address with bits behind its prefix",
        "The prefix length decides: 10.0.0.5/24 is all of 10.0.0.0/24, not one host.",
        host_bits,
    ),
    Rule::warning(
        "PS197",
        "a DSCP that was not shifted",
        "The DSCP is the upper six bits of the byte; the lower two are ECN. DSCP 46 (EF) is 0xb8 with mask 0xfc. The value as written asks for an ECN codepoint.",
        dscp,
    ),
    Rule::warning(
        "PS198",
        "IPv4 matches for frames with two tags",
        "The kernel keeps one tag beside the packet, so that offsets of IPv4 hold for `protocol 802.1q`. A frame that comes in with two tags \
         (802.1ad) still has the inner one before its IP header: all offsets of IPv4 are four too small.",
        vlan,
    ),
    Rule::warning(
        "PS199",
        "nexthdr+ without the header's length",
        "`match tcp`, `match udp`, `match icmp` and `nexthdr+` count from the header behind IP only in a table that a filter with `link` and `offset` leads to. In the \
         first table that place is not known, and they look at \
         the IP header itself. Use `match ip dport` with a protocol, or flower.",
        nexthdr,
    ),
];

pub(super) fn all(facts: &Facts) -> impl Iterator<Item = &Filter> {
    facts.devices.iter().flat_map(|d| &d.filters).filter(|f| f.kind == "u32")
}

/// The words of a filter's matches: `ip dport 80 0xffff` and so on.
pub(super) fn matches<'a>(facts: &'a Facts, filter: &Filter) -> Vec<&'a [String]> {
    let words = &facts.steps[filter.step].words;
    let starts: Vec<usize> = words.iter().enumerate().filter(|w| w.1 == "match").map(|w| w.0 + 1).collect();
    let ends = |from: usize| {
        let stop = |w: &String| {
            matches!(
                w.as_str(),
                "match" | "flowid" | "classid" | "action" | "police" | "link" | "offset" | "hashkey" | "ht"
            )
        };
        words[from..].iter().position(stop).map_or(words.len(), |n| from + n)
    };
    starts.into_iter().map(|s| &words[s..ends(s)]).collect()
}

pub(super) fn word(m: &[String], at: usize) -> &str {
    m.get(at).map_or("", String::as_str)
}

fn no_protocol(facts: &Facts, found: &mut Found) {
    for filter in all(facts).filter(|f| f.reached) {
        let asks = filter.looks_at(8, 0x00ff_0000) || filter.tests.contains_key(&Field::Mark);
        let six = filter.looks_at(4, 0x0000_ff00);
        let port = matches(facts, filter)
            .into_iter()
            .find(|m| matches!(word(m, 0), "ip" | "ip6") && matches!(word(m, 1), "dport" | "sport"));
        let Some(port) = port else { continue };
        if (word(port, 0) == "ip" && asks) || (word(port, 0) == "ip6" && six) {
            continue;
        }
        // iperf speaks TCP and UDP on its ports; who types them to try something means both.
        if !facts.installed() && matches!(word(port, 2), "5001" | "5002" | "5003" | "5201" | "5202" | "5203")
        {
            continue;
        }
        let step = &facts.steps[filter.step];
        let protocol = if matches!(
            word(port, 2),
            "53" | "123" | "161" | "500" | "514" | "1194" | "4500" | "5060" | "51820" | "69" | "67"
        ) {
            "17"
        } else {
            "6"
        };
        let fix = step.text().replacen(
            "match",
            &format!("match {} protocol {protocol} 0xff match", word(port, 0)),
            1,
        );
        let reason = format!(
            "`{} {} {}` fits TCP, UDP, and every packet with these bytes there.",
            word(port, 0),
            word(port, 1),
            word(port, 2)
        );
        found.at(filter.step, word(port, 1), Say::new("a port is matched without a protocol", reason, fix));
    }
}

fn fragments(facts: &Facts, found: &mut Found) {
    for filter in all(facts).filter(|f| f.protocol != IP6) {
        let later = filter.tests.get(&Field::Net(4)).is_some_and(|b| b.value & b.mask & 0x1fff != 0);
        let behind = filter.tests.iter().any(|(f, b)| match f {
            Field::Net(off) => *off >= 20 && b.mask != 0,
            Field::Next(_) => true,
            _ => false,
        });
        if later && behind {
            let reason =
                "It asks for a fragment's offset above 0 and for bytes behind the IP header.".to_owned();
            found.at(filter.step, "match", Say::new("later fragments have no ports", reason, ""));
        }
    }
    for ruled in facts.netfilter.rules.iter().filter(|r| r.rule.fragment == Some(false)) {
        use penstock_lang::iptables::Match;
        if ruled
            .rule
            .matches
            .iter()
            .any(|m| matches!(m, Match::Tcp(_) | Match::Udp(..) | Match::Multiport { .. }))
        {
            let reason = "-f asks for the second and later fragments, which have no ports.".to_owned();
            found.at(ruled.step, "-f", Say::new("no later fragment has ports", reason, ""));
        }
    }
}

fn fixed_offset(facts: &Facts, found: &mut Found) {
    for filter in all(facts).filter(|f| f.reached && f.protocol == IP && !f.looks_at(0, 0x0f00_0000)) {
        let raw = |m: &&[String]| {
            let at = m.iter().position(|w| w == "at").and_then(|n| m.get(n + 1)?.parse::<i64>().ok());
            matches!(word(m, 0), "u32" | "u16" | "u8") && at.is_some_and(|a| a >= 20)
        };
        if let Some(m) = matches(facts, filter).into_iter().find(raw) {
            let step = &facts.steps[filter.step];
            let at = m.last().map_or("", String::as_str);
            let fix = step.text().replacen("match", "match u8 0x05 0x0f at 0 match", 1);
            let reason = format!(
                "Byte {at} is byte {} of the transport header only where the IP header has 20 bytes.",
                at.parse::<i64>().unwrap_or(20) - 20
            );
            found.at(
                filter.step,
                "at",
                Say::new("the offset assumes an IP header without options", reason, fix),
            );
        }
    }
}

fn wrong_family(facts: &Facts, found: &mut Found) {
    super::fields::wrong_icmp(facts, found);
    in_tunnels(facts, found);
    for filter in all(facts) {
        let wrong = match filter.protocol {
            IP6 => "ip",
            IP => "ip6",
            ARP => "ip",
            _ => continue,
        };
        let step = &facts.steps[filter.step];
        if matches(facts, filter).iter().any(|m| word(m, 0) == wrong) {
            let (protocol, fix) = match filter.protocol {
                IP6 => ("IPv6", step.text().replace("match ip ", "match ip6 ")),
                ARP => ("ARP", step.with("protocol", "ip")),
                _ => ("IPv4", step.with("protocol", "ipv6")),
            };
            let reason = format!(
                "The filter is asked for {protocol} only, and `match {wrong}` looks at other places."
            );
            found.at(
                filter.step,
                wrong,
                Say::new(format!("match {wrong} in packets of {protocol}"), reason, fix),
            );
        }
    }
}

/// Tunnels that carry one version of IP only, and filters for the other.
fn in_tunnels(facts: &Facts, found: &mut Found) {
    for device in &facts.devices {
        let made = facts.steps.iter().find(|s| {
            s.program() == "ip" && s.has("add") && s.has(&device.name) && (s.has("mode") || s.has("type"))
        });
        // `mode any` carries both; ip6tnl's is ip6ip6 where nobody says another.
        let mode = |usual: &'static str| match made.and_then(|s| s.value(&["mode"])) {
            Some("any" | "mplsip") => "any",
            Some("ipip" | "ip4ip4" | "ipv4/ipv4") => "ipip",
            Some("ipip6" | "ip4ip6" | "ipv4/ipv6") => "ipip6",
            _ => usual,
        };
        let carries = match (device.kind, made.is_some()) {
            ("sit", true) => mode("ip6ip"),
            ("ipip", true) => mode("ipip"),
            _ => continue,
        };
        let (wrong, right, named) = match carries {
            "ip6ip" => (IP, "ipv6", "IPv6"),
            "ipip" => (IP6, "ip", "IPv4"),
            _ => continue,
        };
        let out = |f: &&Filter| f.protocol == wrong && f.parent.major() != 0xffff;
        for filter in device.filters.iter().filter(out) {
            let step = &facts.steps[filter.step];
            let name = if step.has("proto") { "proto" } else { "protocol" };
            let Some(word) = step.value(&[name]) else { continue };
            let reason = format!(
                "{} is a {} tunnel: what leaves by it is {named}, and is wrapped below the qdisc.",
                device.name, device.kind
            );
            let fix = match wrong {
                IP => step.with(name, right).replace("match ip ", "match ip6 "),
                _ => step.with(name, right).replace("match ip6 ", "match ip "),
            };
            let message = format!("only {named} goes through {}", device.name);
            found.at(filter.step, word, Say::new(message, reason, fix));
        }
    }
}

fn all_protocols(facts: &Facts, found: &mut Found) {
    for filter in all(facts).filter(|f| f.protocol == ALL && f.reached) {
        let has = |f: &str| matches(facts, filter).iter().any(|m| word(m, 0) == f);
        // Asking for the version's nibble says what is meant.
        if filter.looks_at(0, 0xf000_0000) || !(has("ip") || has("ip6")) {
            continue;
        }
        let (name, word) = if has("ip6") { ("ipv6", "ip6") } else { ("ip", "ip") };
        let step = &facts.steps[filter.step];
        let fix = if step.has("protocol") {
            step.with("protocol", name)
        } else {
            step.text().replacen("u32", "protocol ip u32", 1)
        };
        let mark = if step.has("all") { "all" } else { word };
        found.at(
            filter.step,
            mark,
            Say::new(
                format!("match {word} is asked of every protocol"),
                "ARP, IPv6 and others have other things at these places.".to_owned(),
                fix,
            ),
        );
    }
}

/// Whether a match of the byte with the DSCP gives a code point in its lower bits: one with bits where ECN is, and a mask for more than these.
fn unshifted(m: &[String]) -> bool {
    let field = matches!(word(m, 0), "ip" | "ip6")
        && matches!(word(m, 1), "tos" | "dsfield" | "precedence" | "priority");
    let (value, mask) = (num::strtoul(word(m, 2), 0), num::strtoul(word(m, 3), 16));
    let (Some((value, "")), Some((mask, ""))) = (value, mask) else { return false };
    field && value & 3 != 0 && value < 64 && mask & 0xfc != 0
}

fn outside_mask(facts: &Facts, found: &mut Found) {
    for filter in all(facts) {
        for m in matches(facts, filter) {
            let (value, mask) = match (word(m, 0), word(m, 1)) {
                ("u32" | "u16" | "u8", _) => (num::strtoul(word(m, 1), 16), num::strtoul(word(m, 2), 16)),
                (
                    "ip" | "ip6",
                    "dport" | "sport" | "protocol" | "tos" | "dsfield" | "precedence" | "priority"
                    | "icmp_type",
                ) => (num::strtoul(word(m, 2), 0), num::strtoul(word(m, 3), 16)),
                _ => continue,
            };
            let (Some((value, "")), Some((mask, ""))) = (value, mask) else { continue };
            // What was not shifted is told as that (PS197): a wider mask would not help.
            if value & !mask != 0 && !unshifted(m) {
                let width = if mask > 0xffff {
                    0xffff_ffffu64
                } else if mask > 0xff {
                    0xffff
                } else {
                    0xff
                };
                let step = &facts.steps[filter.step];
                let (v, k) = (
                    word(m, m.len().min(if matches!(word(m, 0), "ip" | "ip6") { 3 } else { 2 }) - 1),
                    if matches!(word(m, 0), "ip" | "ip6") { word(m, 3) } else { word(m, 2) },
                );
                let full = format!("0x{:x}", width.max(if value > 0xff { 0xffff } else { 0xff }));
                // The two halves of a byte (version and length of the header): the value stands in the other.
                let swapped = word(m, 0) == "u8" && value & mask == 0 && (value >> 4) & !mask == 0;
                let (new, full) = match swapped {
                    true => (format!("{:#04x}", value >> 4), k.to_owned()),
                    false => (v.to_owned(), full),
                };
                let reason = format!("{value:#x} & {mask:#x} is {:#x}: the filter fits that.", value & mask);
                found.at(
                    filter.step,
                    k,
                    Say::new(
                        "bits of the value lie outside the mask",
                        reason,
                        step.text().replacen(&format!("{v} {k}"), &format!("{new} {full}"), 1),
                    ),
                );
            }
        }
    }
}

fn port_mask(facts: &Facts, found: &mut Found) {
    for filter in all(facts) {
        // `match u16 VALUE MASK at 2` is the total length.
        let length = |m: &[String]| word(m, 0) == "u16" && word(m, 3) == "at" && word(m, 4) == "2";
        let wanted = |m: &&[String]| matches!(word(m, 1), "dport" | "sport") || length(m);
        for m in matches(facts, filter).into_iter().filter(wanted) {
            let (v, k, base) = if length(m) { (1, 2, 16) } else { (2, 3, 0) };
            let Some((mask, "")) = num::strtoul(word(m, k), 16) else { continue };
            let Some((value, "")) = num::strtoul(word(m, v), base) else { continue };
            let low = (!mask & 0xffff) + 1;
            if mask <= 0xffff && !low.is_power_of_two() && value & !mask == 0 {
                let step = &facts.steps[filter.step];
                let what = if length(m) { "lengths" } else { "ports" };
                let reason = format!(
                    "mask {mask:#06x} leaves bits open that are not the lowest: {} {what} fit, scattered.",
                    1u32 << (!mask as u16).count_ones()
                );
                // The nearest range that is wider: everything below the highest open bit is open.
                // Of nothing but zeros a range ends where the mask's lowest bit is.
                let range = match value {
                    0 if mask > 0 => !(mask & mask.wrapping_neg()).wrapping_sub(1) & 0xffff,
                    _ => !((1u64 << (64 - (!mask & 0xffff).leading_zeros())) - 1) & 0xffff,
                };
                let new = if length(m) { format!("{range:#06x}") } else { "0xffff".to_owned() };
                let fix = step.text().replacen(
                    &format!("{} {}", word(m, v), word(m, k)),
                    &format!("{} {new}", word(m, v)),
                    1,
                );
                found.at(
                    filter.step,
                    word(m, k),
                    Say::new(
                        format!(
                            "the mask of the {} is not a range",
                            if length(m) { "length" } else { "port" }
                        ),
                        reason,
                        fix,
                    ),
                );
            }
        }
    }
}

fn host_bits(facts: &Facts, found: &mut Found) {
    for filter in facts.devices.iter().flat_map(|d| &d.filters).filter(|f| f.kind == "flower") {
        let step = &facts.steps[filter.step];
        for name in ["src_ip", "dst_ip"] {
            let Some((word, addr, len)) = step.value(&[name]).and_then(|w| {
                let (addr, len) = w.split_once('/')?;
                Some((w, addr.parse::<std::net::IpAddr>().ok()?, len.parse::<u32>().ok()?))
            }) else {
                continue;
            };
            let (bits, width) = match addr {
                std::net::IpAddr::V4(a) => (u128::from(u32::from(a)), 32),
                std::net::IpAddr::V6(a) => (u128::from(a), 128),
            };
            let behind = if len >= width { 0 } else { u128::MAX >> (128 - (width - len)) };
            if len < width && bits & behind != 0 {
                let reason =
                    format!("/{len} is every address with these {len} first bits, not {addr} alone.");
                let fix = step.with(name, &addr.to_string());
                found.at(
                    filter.step,
                    word,
                    Say::new(format!("{word} is a network, not a host"), reason, fix),
                );
            }
        }
    }
    for filter in all(facts) {
        let of_six = |m: &&[String]| word(m, 0) == "ip6" && matches!(word(m, 1), "src" | "dst");
        for m in matches(facts, filter).into_iter().filter(of_six) {
            let Some((addr, len)) = word(m, 2).split_once('/') else { continue };
            let (Ok(addr), Ok(len)) = (addr.parse::<std::net::Ipv6Addr>(), len.parse::<u32>()) else {
                continue;
            };
            let behind = u128::MAX.checked_shr(len).unwrap_or(0);
            if u128::from(addr) & behind != 0 {
                let net = std::net::Ipv6Addr::from(u128::from(addr) & !behind);
                let step = &facts.steps[filter.step];
                let reason = format!(
                    "/{len} is every address with these {len} first bits; the network is written {net}/{len}."
                );
                let fix = step.text().replacen(word(m, 2), &addr.to_string(), 1);
                let message = format!("{} is a network, not a host", word(m, 2));
                found.at(filter.step, word(m, 2), Say::new(message, reason, fix));
            }
        }
        for m in matches(facts, filter)
            .into_iter()
            .filter(|m| word(m, 0) == "ip" && matches!(word(m, 1), "src" | "dst"))
        {
            let Some((addr, len)) = word(m, 2).split_once('/') else { continue };
            let (Ok(addr), Ok(len)) = (addr.parse::<std::net::Ipv4Addr>(), len.parse::<u32>()) else {
                continue;
            };
            let mask = u32::MAX.checked_shl(32 - len.min(32)).unwrap_or(0);
            if u32::from(addr) & !mask != 0 {
                let net = std::net::Ipv4Addr::from(u32::from(addr) & mask);
                let step = &facts.steps[filter.step];
                let reason = format!(
                    "/{len} is {} addresses, {net} to {}; the network is written {net}/{len}.",
                    1u64 << (32 - len.min(32)),
                    std::net::Ipv4Addr::from(u32::from(addr) | !mask)
                );
                let fix = step.text().replacen(word(m, 2), &addr.to_string(), 1);
                found.at(
                    filter.step,
                    word(m, 2),
                    Say::new(format!("{} is a network, not a host", word(m, 2)), reason, fix),
                );
            }
        }
    }
}

fn dscp(facts: &Facts, found: &mut Found) {
    super::fields::dscp_of_rules(facts, found);
    // flower's `ip_tos` is the whole byte, too.
    for filter in facts.devices.iter().flat_map(|d| &d.filters).filter(|f| f.kind == "flower") {
        let Some(value) = filter.options.u32("ip_tos").filter(|v| *v > 0 && *v < 64 && v & 3 != 0) else {
            continue;
        };
        let mask = filter.options.u32("ip_tos_mask").unwrap_or(0xff);
        if mask & 3 == 0 {
            continue;
        }
        let step = &facts.steps[filter.step];
        let reason = format!(
            "{value:#04x} has ECN bits {}; DSCP {value} is {:#04x} with mask 0xfc.",
            value & 3,
            value << 2
        );
        let word = step.value(&["ip_tos"]).unwrap_or("ip_tos");
        let fix = step.with("ip_tos", &format!("{:#04x}/0xfc", value << 2));
        found.at(filter.step, word, Say::new(format!("DSCP {value} was not shifted"), reason, fix));
    }
    for filter in all(facts) {
        for m in matches(facts, filter).into_iter().filter(|m| {
            matches!(word(m, 1), "tos" | "dsfield" | "precedence" | "priority")
                && matches!(word(m, 0), "ip" | "ip6")
        }) {
            let Some((value, "")) = num::strtoul(word(m, 2), 0) else { continue };
            if unshifted(m) {
                let step = &facts.steps[filter.step];
                let reason =
                    format!("{value:#04x} has ECN bits {}; DSCP {value} is {:#04x}.", value & 3, value << 2);
                let fix = step.text().replacen(
                    &format!("{} {}", word(m, 2), word(m, 3)),
                    &format!("{:#04x} 0xfc", value << 2),
                    1,
                );
                found.at(
                    filter.step,
                    word(m, 2),
                    Say::new(format!("DSCP {value} was not shifted"), reason, fix),
                );
            }
        }
    }
}

fn vlan(facts: &Facts, found: &mut Found) {
    //= linux v6.12 net/core/dev.c __netif_receive_skb_core, net/8021q/vlan_dev.c vlan_dev_hard_start_xmit
    // One tag is beside the packet's data, whoever put it on; the second one of a frame that comes in is in it.
    let received = |f: &&Filter| f.protocol == 0x88a8 && f.parent.major() == 0xffff;
    for filter in all(facts).filter(received) {
        if matches(facts, filter).iter().any(|m| word(m, 0) == "ip") {
            let step = &facts.steps[filter.step];
            let fix = format!(
                "tc filter add dev {} parent {} protocol 802.1ad prio {} flower vlan_ethtype 802.1q cvlan_ethtype ipv4",
                step.value(&["dev"]).unwrap_or("eth0"),
                filter.parent,
                filter.prio
            );
            found.at(
                filter.step,
                "ip",
                Say::new(
                    "IPv4's places in frames with two tags",
                    "The kernel takes the outer tag off; the inner tag's four bytes stand before the IP header.".to_owned(),
                    fix,
                ),
            );
        }
    }
}

/// Filters for IP on a device that sends tagged frames only: the script puts VLANs on it and gives it no address itself.
fn untagged(facts: &Facts, found: &mut Found) {
    not_yet_tagged(facts, found);
    for device in facts.devices.iter().filter(|d| d.root().is_some_and(|r| r.step.is_some())) {
        let name = device.name.as_str();
        let carries = |s: &&Step| {
            s.program() == "ip"
                && s.has("add")
                && s.has("vlan")
                && s.words.windows(2).any(|w| w[0] == "link" && w[1] == name)
        };
        let addressed = |s: &Step| {
            let by_ip = s.words.get(1).is_some_and(|w| w.starts_with('a'))
                && s.has("add")
                && s.value(&["dev"]) == Some(name);
            let by_ifconfig =
                s.words.get(1).is_some_and(|w| w == name) && s.words.get(2).is_some_and(|w| w.contains('.'));
            s.program() == "ip" && by_ip || s.program() == "ifconfig" && by_ifconfig
        };
        let Some(vlan) = facts.steps.iter().find(carries) else { continue };
        let top = device.root().map_or(Handle::UNSPEC, |r| r.handle);
        let filters: Vec<&Filter> =
            device.filters.iter().filter(|f| f.parent.qdisc() == top && !f.auto).collect();
        let of_ip = filters.iter().all(|f| f.protocol == IP || f.protocol == IP6);
        let Some(filter) = filters.first().filter(|_| of_ip && !facts.steps.iter().any(addressed)) else {
            continue;
        };
        let step = &facts.steps[filter.step];
        // The tag is beside the data: the offsets stay.
        let fix = match filter.kind.as_str() {
            "u32" => step.with(if step.has("proto") { "proto" } else { "protocol" }, "802.1q"),
            _ => String::new(),
        };
        let reason = format!("`{}` makes a device whose frames leave by {name} tagged.", vlan.text());
        let say = Say::new(format!("the tagged frames of {name} do not fit this protocol"), reason, fix);
        found.at(filter.step, step.value(&["protocol", "proto"]).unwrap_or(""), say);
    }
}

/// Filters for tagged frames at the root of a VLAN device, which puts its tag on behind its qdisc (`vlan_dev_hard_start_xmit`). What a bridge or a VLAN device above
/// it sends may have a tag of its own.
fn not_yet_tagged(facts: &Facts, found: &mut Found) {
    for device in facts.devices.iter().filter(|d| d.kind == "vlan" && d.master.is_none()) {
        let name = device.name.as_str();
        let above = |s: &Step| {
            s.program() == "ip" && s.words.windows(2).any(|w| w[0] == "link" && w[1] == name) && s.has("add")
        };
        if facts.steps.iter().any(above) {
            continue;
        }
        // `TC_H_MIN_EGRESS` of clsact is asked before the device itself, too.
        let root = device.root().map(|r| r.handle);
        let leaves = |f: &&Filter| Some(f.parent.qdisc()) == root || f.parent == Handle(0xffff_fff3);
        for filter in device.filters.iter().filter(leaves) {
            if !matches!(filter.protocol, VLAN | QINQ) {
                continue;
            }
            let step = &facts.steps[filter.step];
            let word = if step.has("proto") { "proto" } else { "protocol" };
            let fix = match filter.kind.as_str() {
                "u32" => step.with(word, "ip"),
                _ => String::new(),
            };
            let reason = format!("{name} puts the tag on behind its qdisc: here the packets are of IP.");
            let say = Say::new(format!("no frame of {name} has its tag yet"), reason, fix);
            found.at(filter.step, step.value(&["protocol", "proto"]).unwrap_or(""), say);
        }
    }
}

fn nexthdr(facts: &Facts, found: &mut Found) {
    for filter in all(facts).filter(|f| f.reached && !f.options.has("link")) {
        if filter.tests.keys().any(|f| matches!(f, Field::Next(_))) {
            let step = &facts.steps[filter.step];
            let word = matches(facts, filter)
                .into_iter()
                .map(|m| word(m, 0))
                .find(|w| matches!(*w, "tcp" | "udp" | "icmp"));
            let fix = match word {
                Some("tcp") => step
                    .text()
                    .replacen("match tcp ", "match ip protocol 6 0xff match ip ", 1)
                    .replacen(" dst ", " dport ", 1)
                    .replacen(" src ", " sport ", 1),
                Some("udp") => step
                    .text()
                    .replacen("match udp ", "match ip protocol 17 0xff match ip ", 1)
                    .replacen(" dst ", " dport ", 1)
                    .replacen(" src ", " sport ", 1),
                _ => String::new(),
            };
            let reason =
                "No filter with link and offset leads here, so nexthdr+0 is the first byte of the IP header."
                    .to_owned();
            found.at(
                filter.step,
                word.unwrap_or("at"),
                Say::new("this looks at the IP header, not behind it", reason, fix),
            );
        }
    }
}
