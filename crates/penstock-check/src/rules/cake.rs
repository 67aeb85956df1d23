//! PS26x: CAKE's keywords: direction, isolation, NAT, tins.

use super::direction::is_outside;
use super::nat::{feeder, is_translated, translated};
use crate::facts::{Device, Facts, Qdisc, Step};
use crate::finding::{Found, Rule, Say};
use penstock_lang::iptables::{Edit, Target};
use penstock_model::Handle;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS260",
        "CAKE is to be fair between hosts behind NAT, without `nat`",
        "CAKE sees packets as they are on the outside, where NAT gives all hosts one address. With `nat` it asks conntrack for the inside addresses; without, all \
         inside hosts are one host. Needed in both \
         directions: https://github.com/dtaht/sch_cake/issues/50.",
        no_nat,
    ),
    Rule::warning(
        "PS261",
        "CAKE is fair between the hosts of the wrong side",
        "On the way out the inside hosts are the sources: `dual-srchost`. On the way in they are the destinations: `dual-dsthost`. The other way round it is fair \
         between servers on the Internet: \
         https://github.com/lede-project/source/pull/362 gives the usual pair.",
        wrong_side,
    ),
    Rule::warning(
        "PS262",
        "`ingress` where packets leave",
        "With `ingress` CAKE counts what it drops as if it had been sent, since that has already come over the line: right behind the bottleneck (an ifb, the inside \
         device), wrong in front of it: there it \
         sends less than the rate.",
        ingress_at_egress,
    ),
    Rule::warning(
        "PS263",
        "keywords of CAKE that exclude one another",
        "Of keywords for one thing (the tins, the isolation, the link layer's cells, the round trip) the last one counts. Two whole link layers also add up their \
         overheads.",
        exclusive,
    ),
    Rule::note(
        "PS264",
        "an ACK filter on the way in",
        "`ack-filter` helps where the uplink is so slow that acknowledgements fill it. What comes in are acknowledgements of uploads, of which there is room. \
         tc-cake(8): \
         for very asymmetric links, in the slow direction.",
        ack_filter_in,
    ),
    Rule::warning(
        "PS265",
        "CAKE with one tin, and marks to choose it",
        "`besteffort` has one tin. `fwmark` chooses among tins, so with one it does nothing; take diffserv3 or diffserv4.",
        one_tin,
    ),
    Rule::warning(
        "PS266",
        "DSCPs that netfilter sets are not there yet at ingress",
        "Packets come to an ifb before PREROUTING: rules with DSCP or TOS have not seen them. CAKE's tins there see what the sender wrote. Restore the DSCP from the \
         connection (`action ctinfo dscp`), or use `besteffort`. Found in SQM's own scripts: https://github.com/tohojo/sqm-scripts/issues/5.",
        dscp_at_ingress,
    ),
];

fn cakes(facts: &Facts) -> impl Iterator<Item = (&Device, &Qdisc, &Step, usize)> {
    facts.made_of(&["cake"]).map(|(d, q, at)| (d, q, &facts.steps[at], at))
}

/// Keywords behind `cake`.
fn keywords(step: &Step) -> &[String] {
    let at = step.words.iter().position(|w| w == "cake").map_or(step.words.len(), |n| n + 1);
    &step.words[at..]
}

fn has(step: &Step, word: &str) -> bool {
    keywords(step).iter().any(|w| w == word)
}

/// Keywords that say what the line behind adds to a packet.
pub(super) const OVERHEADS: [&str; 15] = [
    "docsis",
    "ethernet",
    "ether-vlan",
    "pppoe-ptm",
    "bridged-ptm",
    "pppoe-vcmux",
    "pppoe-llcsnap",
    "pppoa-vcmux",
    "pppoa-llc",
    "bridged-vcmux",
    "bridged-llcsnap",
    "ipoa-vcmux",
    "ipoa-llcsnap",
    "conservative",
    "overhead",
];

/// Whether cake is told of a link to the outside.
fn speaks_of_a_link(step: &Step) -> bool {
    has(step, "nat") || OVERHEADS.iter().any(|w| has(step, w))
}

/// Which way packets go through a device's root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Out,
    In,
}

/// Which way it is, as far as the script says.
fn way(facts: &Facts, device: &Device) -> Option<Way> {
    let own_step = device.root().and_then(|r| r.step).map(|s| &facts.steps[s]);
    let inside = |dev: &str| dev.starts_with("br-lan") || dev == "lan" || dev.starts_with("br0");
    if device.kind == "ifb" || device.name.starts_with("ifb") {
        let from = feeder(facts, &device.name)?;
        let feeding = facts.devices.iter().find(|d| d.name == from);
        let speaks = |s: &Step| speaks_of_a_link(s) || has(s, "ingress");
        let by_words = own_step.is_some_and(speaks)
            || feeding.and_then(|d| d.root()?.step).is_some_and(|s| speaks_of_a_link(&facts.steps[s]));
        return (!inside(from) && (is_outside(facts, from) || by_words)).then_some(Way::In);
    }
    if inside(&device.name) {
        return Some(Way::In);
    }
    let feeds = facts.devices.iter().any(|d| {
        (d.kind == "ifb" || d.name.starts_with("ifb"))
            && feeder(facts, &d.name) == Some(device.name.as_str())
            && d.root()
                .and_then(|r| r.step)
                .is_some_and(|s| has(&facts.steps[s], "ingress") || speaks_of_a_link(&facts.steps[s]))
    });
    // Where the script translates what leaves by another device, that one is the outside.
    let nat = translated(facts);
    let other = nat.iter().any(Option::is_some) && !is_translated(facts, &nat, &device.name);
    let by_words = !other && own_step.is_some_and(speaks_of_a_link);
    (is_outside(facts, &device.name) || feeds || by_words).then_some(Way::Out)
}

fn no_nat(facts: &Facts, found: &mut Found) {
    let nat = translated(facts);
    // The other direction of the same line is told of NAT.
    let ifb = |d: &Device| d.kind == "ifb" || d.name.starts_with("ifb");
    let told = |device: &Device| {
        cakes(facts).find(|(other, q, ..)| {
            let fed = |a: &Device, b: &Device| ifb(a) && feeder(facts, &a.name) == Some(b.name.as_str());
            q.options.u32("nat").unwrap_or(0) != 0 && (fed(other, device) || fed(device, other))
        })
    };
    for (device, qdisc, step, at) in cakes(facts) {
        let outer = match device.name.starts_with("ifb") || device.kind == "ifb" {
            true => feeder(facts, &device.name).is_some_and(|d| is_translated(facts, &nat, d)),
            false => is_translated(facts, &nat, &device.name) && qdisc.parent == Handle::ROOT,
        };
        let hosts = ["dual-srchost", "dual-dsthost", "srchost", "dsthost", "hosts", "triple-isolate"]
            .into_iter()
            .find(|w| has(step, w));
        let other = told(device).filter(|_| !has(step, "nonat"));
        let sees = outer || other.is_some();
        let Some(word) = hosts.filter(|_| sees && qdisc.options.u32("nat").unwrap_or(0) == 0) else {
            continue;
        };
        let fix = if has(step, "nonat") {
            step.with_word("nonat", "nat")
        } else {
            step.text().replacen(&format!(" {word}"), &format!(" {word} nat"), 1)
        };
        let mut reason =
            format!("Packets of {} have the outside address; all inside hosts look like one.", device.name);
        if let Some((other, ..)) = other.filter(|_| !outer) {
            reason = format!("{} is told of NAT; the other direction of the line is not.", other.name);
        }
        found.at(at, word, Say::new(format!("{word} sees one host behind NAT"), reason, fix));
    }
}

fn wrong_side(facts: &Facts, found: &mut Found) {
    for (device, _, step, at) in cakes(facts).filter(|c| c.1.parent == Handle::ROOT) {
        let (words, by) = match way(facts, device) {
            Some(Way::Out) => (["dual-dsthost", "dsthost"], ["dual-srchost", "srchost"]),
            Some(Way::In) => (["dual-srchost", "srchost"], ["dual-dsthost", "dsthost"]),
            None => continue,
        };
        let Some(n) = words.iter().position(|w| has(step, w)) else { continue };
        let side = if words[0] == "dual-dsthost" {
            "leave: inside hosts are the sources"
        } else {
            "come in: inside hosts are the destinations"
        };
        let reason = format!("Here packets {side}.");
        found.at(
            at,
            words[n],
            Say::new(
                format!("{} on {} is fair between the hosts outside", words[n], device.name),
                reason,
                step.with_word(words[n], by[n]),
            ),
        );
    }
}

fn ingress_at_egress(facts: &Facts, found: &mut Found) {
    for (device, _, step, at) in cakes(facts).filter(|c| c.1.parent == Handle::ROOT) {
        if has(step, "ingress")
            && !device.name.starts_with("ifb")
            && device.kind != "ifb"
            && way(facts, device) == Some(Way::Out)
        {
            let mut words = step.words.clone();
            if let Some(n) = words.iter().rposition(|w| w == "ingress") {
                words.remove(n);
            }
            let reason =
                format!("Packets leave by {}; what CAKE drops has not been over the line yet.", device.name);
            found.at(
                at,
                "ingress",
                Say::new(format!("`ingress` on the way out of {}", device.name), reason, words.join(" ")),
            );
        }
    }
}

/// Keywords of which one counts.
const ONE: [&[&str]; 7] = [
    &["atm", "noatm", "ptm"],
    &["besteffort", "precedence", "diffserv8", "diffserv4", "diffserv3"],
    &["flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"],
    &["nat", "nonat"],
    &["wash", "nowash"],
    &["ingress", "egress"],
    &["datacentre", "lan", "metro", "regional", "internet", "oceanic", "satellite", "interplanetary"],
];
/// Whole link layers; `ether-vlan` is added to one.
const LAYERS: [&str; 14] = [
    "docsis",
    "ethernet",
    "pppoe-ptm",
    "bridged-ptm",
    "pppoe-vcmux",
    "pppoe-llcsnap",
    "pppoa-vcmux",
    "pppoa-llc",
    "bridged-vcmux",
    "bridged-llcsnap",
    "ipoa-vcmux",
    "ipoa-llcsnap",
    "conservative",
    "raw",
];

/// Link layers that have no cells.
const FRAMES: [&str; 4] = ["docsis", "ethernet", "pppoe-ptm", "bridged-ptm"];

fn exclusive(facts: &Facts, found: &mut Found) {
    for (_, _, step, at) in cakes(facts) {
        for group in ONE.iter().copied().chain([&LAYERS[..]]) {
            let said: Vec<&str> =
                keywords(step).iter().map(String::as_str).filter(|w| group.contains(w)).collect();
            let (Some(first), Some(last)) = (said.first(), said.last()) else { continue };
            if said.len() < 2 || said.iter().all(|w| w == first) {
                continue;
            }
            let layers = group.len() == LAYERS.len();
            let reason = match layers {
                true => format!("{} add up; the line has one of them.", said.join(" and ")),
                false => format!(
                    "{last} is the last one and counts; {} is as if it were not there.",
                    said[..said.len() - 1].join(", ")
                ),
            };
            let mut words = step.words.clone();
            for w in &said[..said.len() - 1] {
                if let Some(n) = words.iter().position(|x| x == w) {
                    words.remove(n);
                }
            }
            let fix = if layers { String::new() } else { words.join(" ") };
            found.at(at, first, Say::new(format!("{} exclude one another", said.join(" and ")), reason, fix));
        }
        let layer = FRAMES.into_iter().find(|w| has(step, w));
        if let (Some(layer), true) = (layer, has(step, "atm")) {
            let reason = format!("{layer} is a line without cells; `atm` counts cells of 53 bytes.");
            let words: Vec<&str> = step.words.iter().map(String::as_str).filter(|w| *w != "atm").collect();
            let say = Say::new(format!("{layer} and atm exclude one another"), reason, words.join(" "));
            found.at(at, "atm", say);
        }
    }
}

fn ack_filter_in(facts: &Facts, found: &mut Found) {
    for (device, _, step, at) in cakes(facts).filter(|c| c.1.parent == Handle::ROOT) {
        let Some(word) = ["ack-filter", "ack-filter-aggressive"].into_iter().find(|w| has(step, w)) else {
            continue;
        };
        if way(facts, device) == Some(Way::In) {
            let reason = format!("What passes {} has come in.", device.name);
            let words: Vec<&str> = step.words.iter().map(String::as_str).filter(|w| *w != word).collect();
            found.at(at, word, Say::new(format!("{word} in the fast direction"), reason, words.join(" ")));
        }
    }
}

fn one_tin(facts: &Facts, found: &mut Found) {
    for (_, qdisc, step, at) in cakes(facts) {
        if qdisc.options.u32("fwmark").unwrap_or(0) != 0
            && has(step, "fwmark")
            && qdisc.options.u32("diffserv") == Some(3)
        {
            let reason = "besteffort has one tin; the mark has nothing to choose.";
            found.at(
                at,
                "besteffort",
                Say::new("the marks choose nothing", reason, step.with_word("besteffort", "diffserv4")),
            );
        }
    }
}

fn dscp_at_ingress(facts: &Facts, found: &mut Found) {
    let sets = facts
        .netfilter
        .rules
        .iter()
        .find(|r| matches!(r.rule.target, Target::Edit(Edit::Dscp(_) | Edit::Tos { .. })));
    let Some(sets) = sets.filter(|_| !facts.steps.iter().any(|s| s.has("ctinfo") || s.has("pedit"))) else {
        return;
    };
    let fed = super::marks::fed_from_ingress(facts);
    for (device, _, step, at) in cakes(facts) {
        let tins = ["diffserv3", "diffserv4", "diffserv8", "precedence"].into_iter().find(|w| has(step, w));
        if let Some(word) = tins.filter(|_| fed.contains(device.name.as_str())) {
            let reason = format!(
                "Line {} sets DSCPs, and packets come to {} before it.",
                facts.steps[sets.step].line, device.name
            );
            found.at(at, word, Say::new("the tins do not see the script's DSCPs", reason, ""));
        }
    }
}
