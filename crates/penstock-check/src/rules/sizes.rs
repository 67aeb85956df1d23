//! PS164 to PS167: limits of queues that manage themselves, against the rate they send at; numbers that are another's for the kernel.

use crate::facts::{Facts, lasts, rate};
use crate::finding::{Found, Rule, Say};

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS164",
        "an AQM whose queue is too short to manage",
        "CoDel and PIE act on delay. Where the whole queue is shorter than their target, it overflows before they ever see that delay, and what is left is a short FIFO: \
         bursts are lost, and TCP does not \
     reach the rate. Each sender's burst has to fit: at 500mbit a window of 64 packets comes within 2 ms. fq_codel's default is 10240 packets; small routers take 1000. \
     RFC 8290, 5.2.3.",
        limit,
    ),
    Rule::warning(
        "PS165",
        "sfq's limit leaves no room for a burst",
        "sfq drops from its longest queue as soon as all of them together hold `limit` packets. With room for a handful every burst loses most of itself, whichever \
         flow it belongs to; 127 is what there is without the word.",
        few,
    ),
    Rule::warning(
        "PS166",
        "the kernel takes another number than the one written",
        "Some numbers have a least or a most, and the kernel takes that without a word: fq_codel's quantum is 256 bytes at least (`fq_codel_change`), sfq holds `depth` \
         packets of each of `flows` flows at most, 127 of 127 where nobody says more (`sfq_change`). What `tc qdisc show` prints is not what the script says.",
        other_number,
    ),
    Rule::warning(
        "PS167",
        "fq's quantum is less than a packet",
        "A flow sends `quantum` bytes a turn. Below a full frame each packet costs several turns of all flows, and paced flows wait for nothing (`fq_dequeue`). Two \
         frames are what there is without the word; tc-fq(8).",
        fq_turn,
    ),
];

/// Least packets where nobody knows the rate.
const LEAST: u64 = 32;

fn limit(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["fq_codel", "codel", "pie", "fq_pie", "cake"]) {
        let step = &facts.steps[at];
        let drain = device.drain(qdisc.parent, facts.link_of(&device.name)).or(qdisc.most());
        let drain = match qdisc.most() {
            Some(own) => Some(drain.map_or(own, |d| d.min(own))),
            None => drain,
        };
        for (name, option, packets) in [
            ("limit", "limit", true),
            ("memory_limit", "memory_limit", false),
            ("memlimit", "memlimit", false),
        ] {
            let Some(word) = step.value(&[name]) else { continue };
            let given = match packets {
                true => u64::from(qdisc.options.u32(option).unwrap_or(0)),
                false => penstock_lang::tc::num::size(word, facts.kernel).map_or(0, u64::from),
            };
            let bytes = if packets { given * device.frame() } else { given };
            let short = match drain {
                // Less than 5 ms, the least target that is usual.
                Some(drain) => u128::from(bytes) * 1000 < u128::from(drain) * 5,
                None => bytes < LEAST * device.frame(),
            };
            // Not even the first packets of one sender fit, unless a few packets are long on the line.
            let few = bytes < u64::from(WINDOW) * device.frame()
                && drain.is_none_or(|d| u128::from(bytes) * 1000 < u128::from(d) * 50);
            let short = short || few;
            // On a slow line a few packets are long.
            if given == 0 || !short || bytes >= 1000 * device.frame() {
                continue;
            }
            let reason = match drain {
                Some(drain) => format!(
                    "{bytes} bytes last {} at {}; the target is 5 ms and more.",
                    lasts(bytes, drain),
                    rate(drain)
                ),
                None => format!("{bytes} bytes are {} full frames.", bytes / device.frame()),
            };
            let enough = drain.map_or(1000, |d| (d / 10 / device.frame()).clamp(1000, 10_240));
            let fix = match packets {
                true => step.with(name, &enough.to_string()),
                false => step.with(name, &format!("{}Kb", (enough * device.frame() * 2).div_ceil(1024))),
            };
            found.at(
                at,
                word,
                Say::new(format!("{name} {word} of {} is too short to manage", qdisc.kind), reason, fix),
            );
        }
    }
}

/// A single sender's first window is ten packets (RFC 6928).
const WINDOW: u32 = 10;

fn few(facts: &Facts, found: &mut Found) {
    for (_, qdisc, at) in facts.made_of(&["sfq"]) {
        let step = &facts.steps[at];
        let limit = qdisc.options.u32("limit").unwrap_or(127);
        let Some(word) = step.value(&["limit"]).filter(|_| limit < WINDOW) else { continue };
        let reason =
            format!("All flows together have room for {limit} packets; a TCP sender begins with {WINDOW}.");
        found.at(at, word, Say::new(format!("sfq holds {limit} packets"), reason, step.with("limit", "127")));
    }
}

fn other_number(facts: &Facts, found: &mut Found) {
    for (_, qdisc, at) in facts.made_of(&["fq_codel", "sfq"]) {
        let step = &facts.steps[at];
        let name = if qdisc.kind == "sfq" { "limit" } else { "quantum" };
        let (Some(word), Some(taken)) = (step.value(&[name]), qdisc.options.u32(name)) else { continue };
        let Ok(given) = word.parse::<u32>() else { continue };
        if given == taken || given == 0 {
            continue;
        }
        let reason = match qdisc.kind {
            "sfq" => format!(
                "{} packets of each of {} flows are all it can hold; `depth` and `flows` say more.",
                qdisc.options.u32("depth").unwrap_or(127),
                qdisc.options.u32("flows").unwrap_or(127)
            ),
            _ => "A turn of fq_codel is 256 bytes at least; a full frame is usual, 300 on slow lines."
                .to_owned(),
        };
        let instead = if qdisc.kind == "sfq" { taken } else { 300 };
        let say = Say::new(
            format!("{} takes {name} {taken} for {given}", qdisc.kind),
            reason,
            step.with(name, &instead.to_string()),
        );
        found.at(at, word, say);
    }
}

fn fq_turn(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["fq"]) {
        let step = &facts.steps[at];
        for name in ["quantum", "initial_quantum"] {
            let (Some(word), Some(quantum)) = (step.value(&[name]), qdisc.options.u32(name)) else {
                continue;
            };
            if u64::from(quantum) >= u64::from(device.mtu) {
                continue;
            }
            let turns = device.frame().div_ceil(u64::from(quantum.max(1)));
            let reason = format!("A full frame of {} bytes costs {turns} turns.", device.frame());
            let usual = device.frame() * if name == "quantum" { 2 } else { 10 };
            let say = Say::new(
                format!("fq's {name} is {quantum} bytes"),
                reason,
                step.with(name, &usual.to_string()),
            );
            found.at(at, word, say);
        }
    }
}
