//! PS164 and PS165: limits of queues that manage themselves, against the rate they send at.

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
