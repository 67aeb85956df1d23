//! PS14x: queues that hold too much or too little; sfq.

use crate::facts::{Device, Facts, Qdisc, lasts, ms, rate};
use crate::finding::{Edit, Found, Rule, Say};
use penstock_lang::tc::num;
use penstock_model::Handle;
use penstock_sched::traits::{Holds, Limit};

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS140",
        "a FIFO that can hold seconds of traffic",
        "A FIFO drops only when it is full, and TCP fills it: every packet then waits as long as the whole queue takes at the class's rate. Interactive traffic in the \
         same queue waits with it. Tens of \
         milliseconds are enough, or a queue that manages itself (fq_codel).",
        fifo_long,
    ),
    Rule::warning(
        "PS141",
        "tbf keeps packets too long",
        "`limit` and `latency` say how long a packet may wait for tokens. TCP fills what there is, so the delay becomes exactly that.",
        tbf_long,
    ),
    Rule::warning(
        "PS142",
        "tbf's queue has no room for a second packet",
        "`limit` is in bytes. A limit below a full frame drops every such packet, and one a little above it drops every second packet that comes while a first one waits. \
         `latency` is turned into a limit: rate times latency, and `burst`.",
        tbf_limit,
    ),
    Rule::warning(
        "PS143",
        "txqueuelen far too long",
        "txqueuelen is the length of every FIFO without a limit of its own: pfifo_fast, pfifo, the leaves of classes. Thousands of packets are seconds on a slow link.",
        txqueuelen,
    ),
    Rule::warning(
        "PS144",
        "txqueuelen 0 leaves FIFOs one packet",
        "pfifo, and the queue the kernel puts into each class, take txqueuelen as their limit, and 1 where it is 0: every burst loses all but one packet.",
        no_txqueuelen,
    ),
    Rule::warning(
        "PS145",
        "a FIFO of one packet",
        "With room for one packet every pair of packets loses one. Give it a few milliseconds of its rate.",
        fifo_short,
    ),
    Rule::warning(
        "PS146",
        "sfq without perturb",
        "sfq sorts flows by a hash into 1024 slots. Two flows that share a slot share one turn, and without `perturb` they do so for as long as the qdisc lives. \
         `perturb \
         10` mixes anew every ten seconds.",
        no_perturb,
    ),
    Rule::warning(
        "PS147",
        "sfq mixes too often",
        "Each time sfq mixes its hash, packets of one flow can overtake each other. Below some seconds that happens all the time, and TCP takes it for loss.",
        perturb_short,
    ),
    Rule::warning(
        "PS148",
        "sfq's limit holds seconds of traffic",
        "A single flow may fill the whole of sfq's limit, and waits for itself as in a FIFO.",
        sfq_long,
    ),
    Rule::warning(
        "PS149",
        "sfq's quantum is less than a packet",
        "A flow's turn is `quantum` bytes. Below a full frame a turn is not enough for one packet; the manual asks for at least the MTU.",
        sfq_quantum,
    ),
];

/// Longest wait of a queue that nobody complains of, ms.
const PATIENCE: u64 = 1000;

/// FIFOs that a command made, with its place.
fn fifos(facts: &Facts) -> impl Iterator<Item = (&Device, &Qdisc, usize)> {
    facts.made().filter(|(_, qdisc, _)| qdisc.traits().queue == Holds::Fifo)
}

/// Whether `limit` is bytes and not packets.
fn counts_bytes(qdisc: &Qdisc) -> bool {
    qdisc.traits().limit == Limit::Bytes
}

fn fifo_long(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in fifos(facts) {
        let step = &facts.steps[at];
        let Some(drain) = device.drain(qdisc.parent, facts.link_of(&device.name)) else { continue };
        let limit = u64::from(qdisc.options.u32("limit").unwrap_or(0));
        let bytes = if counts_bytes(qdisc) { limit } else { limit * device.frame() };
        let Some(word) = step.value(&["limit"]) else { continue };
        if ms(bytes, drain) > PATIENCE {
            let least = if counts_bytes(qdisc) { drain / 10 } else { (drain / 10 / device.frame()).max(5) };
            let reason = format!(
                "{limit} {} are {} at {}.",
                if counts_bytes(qdisc) { "bytes" } else { "packets" },
                lasts(bytes, drain),
                rate(drain)
            );
            found.at(
                at,
                word,
                Say::new(
                    format!("the {} in {} can hold {}", qdisc.kind, qdisc.parent, lasts(bytes, drain)),
                    reason,
                    step.with("limit", &least.to_string()),
                ),
            );
        }
    }
}

fn tbf_long(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["tbf"]) {
        let step = &facts.steps[at];
        let speed = qdisc.options.u64("rate").unwrap_or(0);
        let limit = u64::from(qdisc.options.u32("limit").unwrap_or(0));
        let (name, word) = match (step.value(&["latency"]), step.value(&["limit"])) {
            (Some(word), _) => ("latency", word),
            (_, Some(word)) => ("limit", word),
            _ => continue,
        };
        let queued = if name == "latency" {
            num::time(word).map_or(0, |us| u64::from(us) * speed / 1_000_000)
        } else {
            limit
        };
        if speed > 0 && ms(queued, speed) > PATIENCE {
            let fix =
                if name == "latency" { "50ms".to_owned() } else { (speed / 20 + device.frame()).to_string() };
            let reason = format!("{queued} bytes are {} at {}.", lasts(queued, speed), rate(speed));
            found.at(
                at,
                word,
                Say::new(
                    format!("tbf keeps packets up to {}", lasts(queued, speed)),
                    reason,
                    step.with(name, &fix),
                ),
            );
        }
    }
}

fn tbf_limit(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["tbf"]) {
        let step = &facts.steps[at];
        let limit = u64::from(qdisc.options.u32("limit").unwrap_or(0));
        if let Some(word) = step.value(&["limit", "latency"]).filter(|_| 2 * limit < 3 * device.frame()) {
            let name = if step.has("latency") { "latency" } else { "limit" };
            let reason = format!("The queue takes {limit} bytes, a full frame has {}.", device.frame());
            let fix = step.with(name, if name == "latency" { "50ms" } else { "15kb" });
            let room =
                if limit < device.frame() { "no room for a full packet" } else { "room for one packet" };
            found.at(at, word, Say::new(format!("tbf has {room}"), reason, fix));
        }
    }
}

/// Commands that set txqueuelen: step, device, value's word.
fn txqueuelens(facts: &Facts) -> impl Iterator<Item = (usize, &str, u32)> {
    facts.steps.iter().enumerate().filter(|s| matches!(s.1.program(), "ip" | "ifconfig")).filter_map(
        |(at, step)| {
            let value = step.value(&["txqueuelen", "qlen", "txqlen"])?.parse().ok()?;
            let dev = match step.program() {
                "ifconfig" => step.words.get(1)?,
                _ => {
                    let at = step.words.iter().position(|w| w == "set")? + 1;
                    let named = step.words.get(at)?;
                    if named == "dev" { step.words.get(at + 1)? } else { named }
                }
            };
            Some((at, dev.as_str(), value))
        },
    )
}

fn txqueuelen(facts: &Facts, found: &mut Found) {
    for (at, dev, packets) in txqueuelens(facts) {
        let link = facts.link_of(dev);
        let too_long =
            link.map_or(packets >= 5000, |l| packets > 1000 && ms(u64::from(packets) * 1514, l) > PATIENCE);
        if too_long {
            let speed = link.unwrap_or(12_500_000);
            let bytes = u64::from(packets) * 1514;
            let step = &facts.steps[at];
            let name =
                ["txqueuelen", "qlen", "txqlen"].into_iter().find(|n| step.has(n)).unwrap_or("txqueuelen");
            let reason = format!(
                "{packets} packets are {} at {}, {} at 10mbit.",
                lasts(bytes, speed),
                rate(speed),
                lasts(bytes, 1_250_000)
            );
            found.at(
                at,
                step.value(&[name]).unwrap_or(""),
                Say::new(
                    format!("txqueuelen {packets} of {dev} lets queues grow to {packets} packets"),
                    reason,
                    step.with(name, "1000"),
                ),
            );
        }
    }
}

fn no_txqueuelen(facts: &Facts, found: &mut Found) {
    for (at, dev, packets) in txqueuelens(facts).filter(|t| t.2 == 0) {
        let Some(device) =
            facts.devices.iter().find(|d| d.name == dev && d.qdiscs.iter().any(|q| q.step.is_some()))
        else {
            continue;
        };
        let plain =
            |q: &Qdisc| q.kind == "pfifo" && q.step.is_some_and(|s| s > at && !facts.steps[s].has("limit"));
        let bare = device.classes.iter().any(|c| {
            c.kind == "htb"
                && c.children.is_empty()
                && device.leaf(c.id).is_none()
                && c.step.is_some_and(|s| s > at)
        });
        if bare || device.qdiscs.iter().any(plain) {
            let step = &facts.steps[at];
            let name =
                ["txqueuelen", "qlen", "txqlen"].into_iter().find(|n| step.has(n)).unwrap_or("txqueuelen");
            let reason = format!("txqueuelen is {packets}; FIFOs made after this hold one packet.");
            found.at(
                at,
                step.value(&[name]).unwrap_or(""),
                Say::new(
                    format!("txqueuelen 0 makes the queues of {dev} one packet long"),
                    reason,
                    step.with(name, "100"),
                ),
            );
        }
    }
}

fn fifo_short(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in fifos(facts) {
        let limit = u64::from(qdisc.options.u32("limit").unwrap_or(0));
        let short = if counts_bytes(qdisc) { limit < 2 * device.frame() } else { limit < 2 };
        let step = &facts.steps[at];
        // One with room for nothing at all is told of by itself (PS349).
        if let Some(word) = step.value(&["limit"]).filter(|_| short && limit > 0) {
            let (unit, fix) = if counts_bytes(qdisc) { ("bytes", "15000") } else { ("packets", "10") };
            let none = counts_bytes(qdisc) && limit < device.frame();
            let (what, more) = match none {
                true => (
                    "has no room for a full frame",
                    format!(", a full frame has {} and never fits", device.frame()),
                ),
                false => ("holds one packet", String::new()),
            };
            found.at(
                at,
                word,
                Say::new(
                    format!("the {} {what}", qdisc.kind),
                    format!("limit {word} is {limit} {unit}{more}."),
                    step.with("limit", fix),
                ),
            );
        }
    }
}

fn no_perturb(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["sfq"]) {
        if qdisc.options.i64("perturb").unwrap_or(0) == 0 {
            let step = &facts.steps[at];
            // Flows that a filter of its own tells apart are not mixed by it (`sfq_classify`).
            if device.filters.iter().any(|f| f.parent == qdisc.handle) {
                continue;
            }
            // Typed commands that sort nothing, or that try sfq with and without, are an experiment.
            let sorted = device.filters.iter().any(|f| f.parent.major() != 0xffff);
            let compares =
                facts.made_of(&["sfq"]).any(|(_, q, _)| q.options.i64("perturb").unwrap_or(0) != 0);
            if !facts.installed() && qdisc.parent != Handle::ROOT && (!sorted || compares) {
                continue;
            }
            let place = facts
                .source
                .find(step.line, "sfq", 0)
                .filter(|_| step.file == facts.name && !step.has("perturb"));
            let edit = place
                .map(|(line, column, len)| Edit::Replace(line, column, len, "sfq perturb 10".to_owned()));
            let reason =
                "perturb is 0: flows that fall into one of the 1024 slots together stay together.".to_owned();
            found.at(
                at,
                "sfq",
                Say::new(
                    format!("sfq {} never mixes its hash", qdisc.handle),
                    reason,
                    step.with("perturb", "10"),
                )
                .edit(edit),
            );
        }
    }
}

fn perturb_short(facts: &Facts, found: &mut Found) {
    for (_, qdisc, at) in facts.made_of(&["sfq"]) {
        let seconds = qdisc.options.i64("perturb").unwrap_or(0);
        if (1..3).contains(&seconds) {
            let step = &facts.steps[at];
            let word = step.value(&["perturb"]).unwrap_or("");
            found.at(
                at,
                word,
                Say::new(
                    format!("sfq mixes its hash every {seconds} s"),
                    format!("Every {seconds} s packets of each flow can change their order."),
                    step.with("perturb", "10"),
                ),
            );
        }
    }
}

fn sfq_long(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["sfq"]) {
        let step = &facts.steps[at];
        let (Some(word), Some(drain)) =
            (step.value(&["limit"]), device.drain(qdisc.parent, facts.link_of(&device.name)))
        else {
            continue;
        };
        let bytes = u64::from(qdisc.options.u32("limit").unwrap_or(0)) * device.frame();
        if ms(bytes, drain) > 2 * PATIENCE {
            let reason = format!("{word} packets are {} at {}.", lasts(bytes, drain), rate(drain));
            let fix = (drain / 5 / device.frame()).clamp(16, 127).to_string();
            found.at(
                at,
                word,
                Say::new(
                    format!("sfq in {} can hold {}", qdisc.parent, lasts(bytes, drain)),
                    reason,
                    step.with("limit", &fix),
                ),
            );
        }
    }
}

fn sfq_quantum(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["sfq"]) {
        let step = &facts.steps[at];
        let quantum = u64::from(qdisc.options.u32("quantum").unwrap_or(0));
        if let Some(word) = step.value(&["quantum"]).filter(|_| quantum < super::rates::least_quantum(device))
        {
            let reason = format!("{quantum} bytes a turn, a full frame has {}.", device.frame());
            found.at(
                at,
                word,
                Say::new(
                    "sfq's quantum is less than one packet",
                    reason,
                    step.with("quantum", &device.frame().to_string()),
                ),
            );
        }
    }
}
