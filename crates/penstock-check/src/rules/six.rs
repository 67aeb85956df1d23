//! PS270 to PS273: IPv6 left out, or looked for in the wrong place.

use crate::facts::Facts;
use crate::filters::{ALL, Field, Filter, IP, IP6};
use crate::finding::{Found, Level, Rule, Say};
use penstock_lang::iptables::{Edit, Family, Target};
use std::collections::BTreeSet;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS270",
        "marks of IPv6 that no filter asks for",
        "A filter is asked for one protocol only. `protocol ip` is IPv4; packets that ip6tables marks are `protocol ipv6` and go to the default. Ask for `protocol \
         all` (a filter by mark looks at \
         no header), or give a second filter for ipv6.",
        marks,
    ),
    Rule::note(
        "PS271",
        "what comes in over IPv6 is not redirected",
        "A redirect or a policer for `protocol ip` takes IPv4 alone; IPv6 comes in past it, unshaped. `protocol all` with matchall takes everything. SQM and the \
         Arch wiki write it so. \
         It is a warning where the script has to do with IPv6 elsewhere.",
        redirect,
    ),
    Rule::warning(
        "PS272",
        "a filter waits for marks of the other IP version",
        "iptables marks IPv4 only, ip6tables IPv6 only, and so do nft's tables of the families ip and ip6 (inet is both). A filter for the one protocol never sees marks that are set in the other.",
        other_version,
    ),
    Rule::warning(
        "PS273",
        "IPv6 looked for at IPv4's offsets",
        "IPv6's header has 40 bytes: the source stands at 8, the destination at 24, the next header at 6, ports at 40 (RFC 8200, 3). At 9, 12, 16 and 20, where IPv4 \
         has protocol, addresses and ports, there is the middle of the source address. `match ip6 dst`, `match ip6 protocol` and `match ip6 dport` know the places.",
        offsets,
    ),
    Rule::warning(
        "PS274",
        "neighbour discovery is dropped with ICMPv6",
        "IPv6 finds its neighbours by ICMPv6 (RFC 4861), as IPv4 does by ARP, which is no IP. Where all of it is dropped no address is resolved any more, and IPv6 stops as \
         soon as what is known has aged; RFC 4890 says what must pass. Drop types (flower: `type 128` is echo request), or let 133 to 137 pass before.",
        discovery,
    ),
];

/// Whether a filter asks for ICMPv6, and whether for all of it.
fn of_icmp(filter: &Filter) -> Option<bool> {
    let flower = filter.tests.get(&Field::Named("ip_proto")).map(|b| b.value);
    let u32 =
        filter.tests.get(&Field::Net(4)).filter(|b| b.mask & 0xff00 == 0xff00).map(|b| b.value >> 8 & 0xff);
    let own = flower.or(u32) == Some(58) && filter.protocol == IP6;
    own.then(|| filter.exact && filter.tests.values().filter(|t| t.mask != 0).count() == 1)
}

fn discovery(facts: &Facts, found: &mut Found) {
    for device in &facts.devices {
        for filter in device.filters.iter().filter(|f| of_icmp(f) == Some(true) && f.reached) {
            let mut actions = filter.actions().map(|a| (a.0, a.1.i64("action")));
            let drops = actions.next() == Some(("gact", Some(2)));
            let same = |f: &&Filter| f.parent == filter.parent;
            // What is let by before, and what is to have no IPv6 at all.
            let passed = |f: &Filter| of_icmp(f).is_some() && f.prio <= filter.prio && f.step != filter.step;
            let without = |f: &Filter| matches!(f.protocol, IP6 | ALL) && f.takes_all();
            if drops && !device.filters.iter().filter(same).any(|f| passed(f) || without(f)) {
                let reason =
                    "Addresses of IPv6 are resolved by ICMPv6 of types 135 and 136, which are dropped too.";
                let say =
                    Say::new(format!("IPv6 stops on {}: all of ICMPv6 is dropped", device.name), reason, "");
                found.at(filter.step, "drop", say);
            }
        }
    }
}

fn by_mark(filter: &Filter) -> Option<u32> {
    (filter.kind == "fw" && filter.handle != 0).then_some(filter.handle)
}

/// Marks that rules of a family set.
fn set_by(facts: &Facts, family: Family) -> BTreeSet<u32> {
    let rules = facts.netfilter.rules.iter().filter(|r| r.family == family);
    rules
        .filter_map(|r| {
            if let Target::Edit(Edit::Mark { value, .. }) = r.rule.target { Some(value) } else { None }
        })
        .collect()
}

fn fits(filter: &Filter, marks: &BTreeSet<u32>) -> bool {
    let bits = filter.tests.get(&Field::Mark).copied();
    bits.is_some_and(|b| marks.iter().any(|m| m & b.mask == b.value & b.mask))
}

fn marks(facts: &Facts, found: &mut Found) {
    let netfilter = &facts.netfilter;
    let mut six = set_by(facts, Family::Ip6);
    six.extend(netfilter.versions.iter().filter(|v| v.1).map(|v| v.0));
    if six.is_empty() || netfilter.texts && netfilter.any_version {
        return;
    }
    for device in &facts.devices {
        let same = |a: &Filter, b: &Filter| a.parent == b.parent && a.handle == b.handle;
        let missing: Vec<&Filter> = device
            .filters
            .iter()
            .filter(|f| by_mark(f).is_some() && f.protocol == IP && fits(f, &six))
            .filter(|f| !device.filters.iter().any(|o| matches!(o.protocol, IP6 | ALL) && same(f, o)))
            .collect();
        for filter in &missing {
            let step = &facts.steps[filter.step];
            // All filters of one priority have one protocol.
            let group = device
                .filters
                .iter()
                .filter(|f| f.parent == filter.parent && f.prio == filter.prio && f.protocol == IP);
            let alone = group.count()
                == missing.iter().filter(|f| f.parent == filter.parent && f.prio == filter.prio).count();
            let fix =
                if step.has("proto") { step.with("proto", "all") } else { step.with("protocol", "all") };
            let by = if netfilter.texts { "A rule for IPv6" } else { "ip6tables" };
            let reason = format!("{by} sets mark {}; the filter is asked for IPv4 only.", filter.handle);
            let word = step.value(&["protocol", "proto"]).unwrap_or("");
            found.at(
                filter.step,
                word,
                Say::new(format!("IPv6 packets of mark {} do not come here", filter.handle), reason, fix)
                    .unsure(!alone),
            );
        }
    }
}

fn redirect(facts: &Facts, found: &mut Found) {
    let cares = facts.steps.iter().any(|s| {
        s.program() == "ip6tables"
            || s.has("ipv6")
            || s.has("ip6")
            || s.words.first().is_some_and(|w| w == "ip") && s.has("-6")
    });
    for device in &facts.devices {
        let here: Vec<&Filter> = device
            .filters
            .iter()
            .filter(|f| f.parent.major() == 0xffff && f.parent.minor() != 0xfff3)
            .collect();
        let limits = |f: &&&Filter| {
            let acts = f.actions().any(|a| a.0 == "mirred" || cares && a.0 == "police");
            acts && f.exact && f.tests.values().all(|b| b.mask == 0)
        };
        let Some(first) = here.iter().find(limits).filter(|f| f.protocol == IP) else { continue };
        if here.iter().any(|f| f.protocol == ALL || f.protocol == IP6) {
            continue;
        }
        let step = &facts.steps[first.step];
        let name = if step.has("proto") { "proto" } else { "protocol" };
        let say = Say::new(
            format!("what comes in by {} over IPv6 goes past this", device.name),
            format!("It is asked for IPv4 only, and no filter of {} is for IPv6.", device.name),
            step.with(name, "all"),
        );
        found.at(
            first.step,
            step.value(&[name]).unwrap_or(""),
            if cares { say.level(Level::Warning) } else { say },
        );
    }
}

fn other_version(facts: &Facts, found: &mut Found) {
    let netfilter = &facts.netfilter;
    if netfilter.texts && (netfilter.any_version || netfilter.versions.is_empty())
        || netfilter.unknown
        || facts.steps.iter().any(|s| s.has("skbedit") || s.has("connmark") && s.program() == "tc")
    {
        return;
    }
    let (mut four, mut six) = (set_by(facts, Family::Ip), set_by(facts, Family::Ip6));
    for (mark, of_six) in &netfilter.versions {
        if *of_six {
            six.insert(*mark)
        } else {
            four.insert(*mark)
        };
    }
    for filter in facts.devices.iter().flat_map(|d| &d.filters).filter(|f| by_mark(f).is_some()) {
        let (own, other, program) = match filter.protocol {
            IP => (&four, &six, "for IPv6"),
            IP6 => (&six, &four, "for IPv4"),
            _ => continue,
        };
        if fits(filter, own) || !fits(filter, other) {
            continue;
        }
        // Said already where a filter is missing for IPv6; one too many does no harm.
        let twin = facts
            .devices
            .iter()
            .flat_map(|d| &d.filters)
            .any(|f| f.kind == "fw" && f.handle == filter.handle && matches!(f.protocol, IP | ALL));
        if filter.protocol == IP || twin {
            continue;
        }
        let step = &facts.steps[filter.step];
        let reason = format!("Mark {} is set {program} alone.", filter.handle);
        found.at(
            filter.step,
            step.value(&["protocol", "proto"]).unwrap_or(""),
            Say::new(format!("no packet of this protocol has mark {}", filter.handle), reason, ""),
        );
    }
}

fn offsets(facts: &Facts, found: &mut Found) {
    for filter in facts.devices.iter().flat_map(|d| &d.filters).filter(|f| f.kind == "u32") {
        // What is asked for behind bytes of the source's beginning is the rest of it; `u8 … at 9` is one byte of these.
        let source = filter.tests.get(&Field::Net(8)).is_some_and(|b| b.mask != 0x00ff_0000);
        if filter.protocol != IP6 || source {
            continue;
        }
        let step = &facts.steps[filter.step];
        let mut raw = step
            .words
            .windows(5)
            .filter(|w| w[0] == "match" && matches!(w[1].as_str(), "u8" | "u16" | "u32"));
        let place = |w: &[String]| -> Option<u32> {
            let n = step.words.iter().position(|x| std::ptr::eq(x, &w[0]))?;
            (step.words.get(n + 4)? == "at").then(|| step.words.get(n + 5)?.parse().ok())?
        };
        let number = |t: &str| match t.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => t.parse().ok(),
        };
        let wrong = raw.find_map(|w| {
            let off = place(w)?;
            let value = number(&w[2])?;
            let (what, instead) = match (w[1].as_str(), off) {
                ("u8", 9) if matches!(value, 1 | 6 | 17 | 58) => ("the protocol", "match ip6 protocol"),
                ("u32", 12) => ("the source", "match ip6 src"),
                ("u32", 16) => ("the destination", "match ip6 dst"),
                ("u16", 20) => ("the source port", "match ip6 sport"),
                ("u16", 22) => ("the destination port", "match ip6 dport"),
                _ => return None,
            };
            Some((off, what, instead))
        });
        if let Some((off, what, instead)) = wrong {
            let reason =
                format!("At {off} IPv4 has {what}; IPv6 has the middle of the source address there.");
            let say = Say::new(format!("{what} of IPv6 is not at {off}"), reason, format!("{instead} …"));
            found.at(filter.step, &off.to_string(), say);
        }
    }
}
