//! PS330 to PS334, PS340: filters, gates and commands that stand where nothing comes to them, or where they may not do what they are to do.

use crate::facts::{Facts, Step};
use crate::filters::{Bits, Field, Filter, IP, IP6};
use crate::finding::{Found, Rule, Say};
use penstock_model::Handle;
use std::collections::BTreeSet;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS330",
        "`goto chain` and the chains do not go together",
        "Packets come to a chain other than 0 by `action goto chain N` alone. A chain without filters answers nothing (`tcf_classify`): the packet goes on as if no filter \
         had fitted, and what was to be dropped there passes. Filters of a chain that no `goto` names are never asked. tc-actions(8).",
        chains,
    ),
    Rule::warning(
        "PS331",
        "a filter for the outgoing side stands on the incoming one",
        "The qdisc `ingress` has one list of filters, and the kernel finds it by `egress` too (`ingress_tcf_block`): such a filter is asked for packets that come in. Only \
         `clsact` has both sides.",
        egress_at_ingress,
    ),
    Rule::warning(
        "PS332",
        "taprio: time for a class that no priority leads to",
        "`map` says which traffic class each priority goes to. While an entry opens the gates of classes alone that are not in it nothing is sent, and the packets that were \
         to have the time wait with others. A band no longer than a frame at 100 Mbit/s is taken for a guard. tc-taprio(8): https://man7.org/linux/man-pages/man8/tc-taprio.8.html.",
        nobodys_time,
    ),
    Rule::warning(
        "PS333",
        "a tunnel's own packets are looked for within it",
        "A tunnel's device has the packets before they are wrapped, or after they are unwrapped: inner addresses, inner ports. The tunnel's own UDP port or IP protocol is \
         that of the outer packet, which leaves by another device, where a filter can see it.",
        within_tunnel,
    ),
    Rule::note(
        "PS334",
        "a container without the right to change its network",
        "tc in a container needs CAP_NET_ADMIN, which containers do not have by default: `RTNETLINK answers: Operation not permitted`. `cap_add: [NET_ADMIN]` in a compose \
         file, `docker run --cap-add NET_ADMIN`, `securityContext: {capabilities: {add: [NET_ADMIN]}}` of a container of Kubernetes give it. capabilities(7).",
        by_file,
    ),
];

/// Those of later numbers.
pub const LATER: &[Rule] = &[Rule::warning(
    "PS340",
    "tc while an image is built",
    "`RUN` is carried out once, in a container that is thrown away; an image keeps files, not qdiscs or filters. A container that is started from it has none of them, and \
         a build without CAP_NET_ADMIN stops there. Give the command to `ENTRYPOINT` or `CMD`, or to what the container starts.",
    by_file,
)];

/// The chain that one of a filter's actions goes to (`TC_ACT_GOTO_CHAIN`).
fn goes_to(filter: &Filter) -> impl Iterator<Item = u32> + '_ {
    let codes = filter.actions().flat_map(|(_, o)| ["action", "result", "control"].map(|n| o.i64(n)));
    codes.flatten().filter(|n| n >> 28 == 2).map(|n| (n & 0x0fff_ffff) as u32)
}

fn chains(facts: &Facts, found: &mut Found) {
    // Blocks have filters of several devices, and what is not known may be a filter.
    let blocks = |s: &Step| s.has("block") || s.has("ingress_block") || s.has("egress_block");
    if facts.partial || !facts.left_out.is_empty() || facts.steps.iter().any(blocks) {
        return;
    }
    for device in &facts.devices {
        let mut said = BTreeSet::new();
        for filter in &device.filters {
            let same = |f: &&Filter| f.parent == filter.parent;
            for chain in goes_to(filter).filter(|c| *c != 0) {
                let there = device.filters.iter().filter(same).any(|f| f.chain == chain);
                if !there && said.insert((filter.parent, chain)) {
                    let reason = "What comes there goes on as if no filter had fitted.";
                    let say = Say::new(format!("chain {chain} has no filter"), reason, "");
                    found.at(filter.step, "goto", say);
                }
            }
            let led = || device.filters.iter().filter(same).any(|f| goes_to(f).any(|c| c == filter.chain));
            if filter.chain != 0 && !led() && said.insert((filter.parent, filter.chain)) {
                let reason = "Packets come to a chain by `action goto chain` alone, and no filter has that.";
                let say = Say::new(format!("nothing leads to chain {}", filter.chain), reason, "");
                found.at(filter.step, "chain", say);
            }
        }
    }
}

/// The outgoing side of `clsact`: `TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS)`.
const EGRESS: Handle = Handle(0xffff_fff3);

fn egress_at_ingress(facts: &Facts, found: &mut Found) {
    for device in &facts.devices {
        if device.ingress().is_none_or(|q| q.kind != "ingress") {
            continue;
        }
        for filter in device.filters.iter().filter(|f| f.parent == EGRESS) {
            let reason =
                format!("{} has the qdisc ingress: this filter is asked for what comes in.", device.name);
            let fix = format!("tc qdisc add dev {} clsact", device.name);
            found.at(filter.step, "egress", Say::new("this filter sees no packet that leaves", reason, fix));
        }
    }
}

/// What a frame of 1542 bytes with all that is around it takes at 100 Mbit/s, in nanoseconds: a band of that length keeps others' frames out on purpose.
const GUARD: u64 = 123_360;

fn nobodys_time(facts: &Facts, found: &mut Found) {
    for (_, _, at) in facts.made_of(&["taprio"]) {
        let step = &facts.steps[at];
        let used = super::timed::classes(step).iter().fold(0u32, |m, c| m | 1 << c);
        let number = step.value(&["num_tc"]).and_then(|w| w.parse::<u32>().ok()).unwrap_or(0);
        let all = super::timed::entries(step);
        let own = 1u32.checked_shl(number).unwrap_or(0).wrapping_sub(1);
        if used == 0 || number == 0 || number > 16 {
            continue;
        }
        // Bits of classes that there are not open nothing; without any bit the time is a guard on purpose.
        if let Some(entry) = all.iter().find(|e| e.mask & own == 0 && e.mask != 0) {
            let last = number - 1;
            let reason = format!(
                "Gates {:#x} are of none of the classes 0 to {last}: all are shut for {} ns.",
                entry.mask, entry.ns
            );
            found.at(at, entry.word, Say::new("nothing is sent in this entry's time", reason, ""));
            continue;
        }
        if let Some(entry) = all.iter().find(|e| e.mask & own != 0 && e.mask & used == 0 && e.ns > GUARD) {
            let classes: Vec<String> =
                (0..number).filter(|c| entry.mask >> c & 1 == 1).map(|c| c.to_string()).collect();
            let reason = format!(
                "`map` names class {} for no priority, and for {} ns no other gate is open.",
                classes.join(", "),
                entry.ns
            );
            found.at(at, entry.word, Say::new("nothing is sent in this entry's time", reason, ""));
        }
    }
}

/// What the packets of a tunnel look like from without: what makes them, protocol of IP, ports of UDP.
fn outside(facts: &Facts, name: &str, kind: &str) -> Option<(&'static str, u32, Vec<u32>)> {
    let port = |words: &[&str], default: u32| {
        let names = |s: &&Step| s.words.iter().any(|w| w == name);
        let given = facts.steps.iter().filter(names).filter_map(|s| s.value(words)?.parse().ok());
        let mut all: Vec<u32> = given.collect();
        if all.is_empty() {
            all.push(default);
        }
        all
    };
    let numbered =
        |prefix: &str| name.strip_prefix(prefix).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    Some(match kind {
        "wireguard" => ("WireGuard", 17, port(&["listen-port"], 51820)),
        "vxlan" => ("VXLAN", 17, port(&["dstport"], 4789)),
        "gre" | "gretap" => ("GRE", 47, Vec::new()),
        "ipip" => ("IPIP", 4, Vec::new()),
        "" if numbered("wg") => ("WireGuard", 17, port(&["listen-port"], 51820)),
        "" if numbered("tun") || numbered("tap") => ("OpenVPN", 17, vec![1194]),
        _ => return None,
    })
}

/// The value of a field that a filter asks for with all of its bits.
fn asked(filter: &Filter, field: Field, mask: u32) -> Option<u32> {
    let bits: &Bits = filter.tests.get(&field).filter(|b| b.mask & mask == mask)?;
    Some((bits.value & mask) >> mask.trailing_zeros())
}

fn within_tunnel(facts: &Facts, found: &mut Found) {
    for device in &facts.devices {
        let Some((what, proto, ports)) = outside(facts, &device.name, device.kind) else { continue };
        // A tunnel within the tunnel has such packets in it.
        let nested =
            |s: &Step| s.value(&["dev", "link"]) == Some(&device.name) && s.has("link") && s.has("type");
        if facts.steps.iter().any(nested) {
            continue;
        }
        for filter in device.filters.iter().filter(|f| f.protocol == IP || f.protocol == IP6) {
            let by_name = filter.tests.get(&Field::Named("ip_proto")).map(|b| b.value);
            let protocol =
                by_name.or(asked(filter, Field::Net(8), 0x00ff_0000).filter(|_| filter.protocol == IP));
            let (high, low) = (0xffff_0000, 0x0000_ffff);
            let numbers = [
                asked(filter, Field::Net(20), high).filter(|_| filter.protocol == IP),
                asked(filter, Field::Net(20), low).filter(|_| filter.protocol == IP),
                asked(filter, Field::Next(0), high),
                asked(filter, Field::Next(0), low),
                asked(filter, Field::Named("udp_dst"), low),
                asked(filter, Field::Named("udp_src"), low),
                asked(filter, Field::Named("dst_port"), low),
                asked(filter, Field::Named("src_port"), low),
            ];
            let fits = match ports.is_empty() {
                true => protocol == Some(proto),
                false => {
                    protocol.is_none_or(|p| p == proto) && numbers.iter().flatten().any(|n| ports.contains(n))
                }
            };
            if !fits {
                continue;
            }
            let reason = format!(
                "{} has the packets within the tunnel; what {what} makes of them leaves by the device that the way to the other end goes by.",
                device.name
            );
            found.at(
                filter.step,
                "match",
                Say::new(format!("the packets of {what} are not in its own device"), reason, ""),
            );
        }
    }
}

/// Found in the file and not in its commands: [`crate::rights`].
fn by_file(_: &Facts, _: &mut Found) {}
