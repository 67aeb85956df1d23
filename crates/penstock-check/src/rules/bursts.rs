//! PS12x: bursts, and overhead of the link layer.

use crate::facts::{Facts, lasts, rate};
use crate::finding::{Found, Rule, Say};
use penstock_lang::tc::num;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS120",
        "burst too small for the rate",
        "tbf looks at its tokens when its timer goes off. What the bucket cannot hold until then is lost, and the rate is not reached. The timer is fine, but not \
         free: on Linux 6.18 a tbf of \
         500mbit carried 374 Mbit/s with a burst of 2kb, 470 with 20kb, 464 with 200kb, 480 with 1mb. So this is said of a tbf whose bucket lasts \
         less than 0.3 ms. HTB lends by its `mbuffer` and does \
         not depend on the burst: 2gbit carried 1766 Mbit/s with the default of 1600 bytes, 1808 with 20k, 1772 with 200k.",
        small,
    ),
    Rule::warning(
        "PS121",
        "burst below one packet",
        "A bucket smaller than a full frame never holds what one packet costs: tbf throws such packets away, HTB sends them on credit.",
        below_packet,
    ),
    Rule::warning(
        "PS122",
        "burst so big that the rate is not limited for a while",
        "After a pause the whole bucket goes out at once. What is behind the shaper gets a burst it cannot carry, and latency suffers for as long as that takes.",
        big,
    ),
    Rule::warning(
        "PS123",
        "overhead of the DSL line forgotten",
        "On DSL every packet is longer on the line than the kernel thinks: PPPoE adds 8 bytes, AAL5 its trailer, and ATM fills cells of 53 bytes of which 48 carry. A \
         small packet takes twice its length. Without \
         `overhead` and `linklayer` the shaper lets too much through and the queue moves into the modem.",
        overhead,
    ),
];

/// The HZ that tc and the manual page speak of.
const HZ: u64 = 250;

/// A bucket of one of HTB's classes or of a tbf.
struct Bucket {
    /// The command that makes it.
    at: usize,
    /// Bytes per second.
    speed: u64,
    /// The option's name as written, and its value.
    option: String,
    word: String,
    bytes: u64,
    /// The largest frame.
    frame: u64,
    /// Whose bucket it is.
    name: String,
}

impl Bucket {
    /// The command with another value of this option.
    fn with(&self, facts: &Facts, value: &str) -> String {
        facts.steps[self.at].with(&self.option, value)
    }
}

fn buckets(facts: &Facts) -> Vec<Bucket> {
    let mut all = Vec::new();
    for device in &facts.devices {
        let of_class = device
            .classes
            .iter()
            .filter(|c| c.kind == "htb")
            .filter_map(|c| Some((c.step?, c.rate(), c.ceil(), format!("class {}", c.id))));
        let of_tbf = device
            .qdiscs
            .iter()
            .filter(|q| q.kind == "tbf")
            .filter_map(|q| Some((q.step?, q.options.u64("rate")?, 0, "tbf".to_owned())));
        for (at, rate, ceil, name) in of_class.chain(of_tbf) {
            let step = &facts.steps[at];
            for (names, rate) in
                [(["burst", "buffer", "maxburst"], rate), (["cburst", "cbuffer", "cmaxburst"], ceil)]
            {
                let Some(option) = names.iter().find(|n| step.value(&[n]).is_some()) else { continue };
                let Some(word) = step.value(&[option]) else { continue };
                if let Some(bytes) = num::size_and_cell(word, facts.kernel).map(|b| u64::from(b.0)) {
                    all.push(Bucket {
                        at,
                        speed: rate,
                        option: (*option).to_owned(),
                        word: word.to_owned(),
                        bytes,
                        frame: device.frame(),
                        name: name.clone(),
                    });
                }
            }
        }
    }
    all
}

fn small(facts: &Facts, found: &mut Found) {
    for bucket in buckets(facts) {
        let Bucket { at, speed, option, word, bytes, frame, name } = &bucket;
        let (at, speed, bytes, frame) = (*at, *speed, *bytes, *frame);
        //= linux v6.12 net/sched/sch_tbf.c tbf_dequeue
        //= linux v6.12 net/sched/sch_htb.c htb_charge_class
        let need = speed / 2500;
        if name == "tbf" && bytes >= frame && bytes < need * 3 / 4 {
            let reason = format!(
                "{bytes} bytes last {} at {}; the timer needs some {need} bytes to keep up.",
                lasts(bytes, speed),
                rate(speed)
            );
            let fix = bucket.with(facts, &format!("{}k", (need + frame).div_ceil(1024)));
            found.at(
                at,
                word,
                Say::new(format!("the {option} of {name} is too small for {}", rate(speed)), reason, fix),
            );
        }
    }
}

fn below_packet(facts: &Facts, found: &mut Found) {
    let all: Vec<Bucket> = buckets(facts).into_iter().filter(|b| b.bytes < b.frame).collect();
    // Both buckets of a class are one finding with one fix: a fix for one alone would leave the other too small.
    for of in all.chunk_by(|a, b| a.at == b.at && a.name == b.name) {
        let Some(first) = of.first() else { continue };
        let mut step = facts.steps[first.at].clone();
        let (mut reasons, mut options) = (Vec::new(), Vec::new());
        for Bucket { speed, option, word, bytes, frame, .. } in of {
            let value = format!("{}k", (speed / HZ + frame).div_ceil(1024));
            if let Some(at) = step.words.iter().position(|w| w == option)
                && let Some(old) = step.words.get_mut(at + 1)
            {
                *old = value;
            }
            reasons.push(format!("{option} {word} is {bytes} bytes, a full frame has {frame}."));
            options.push(option.as_str());
        }
        let verb = if of.len() > 1 { "are" } else { "is" };
        let message =
            format!("the {} of {} {verb} less than one packet", options.join(" and the "), first.name);
        found.at(first.at, &first.word, Say::new(message, reasons.join(" "), step.text()));
    }
}

fn big(facts: &Facts, found: &mut Found) {
    for bucket in buckets(facts) {
        let Bucket { at, speed, option, word, bytes, frame, name } = &bucket;
        let (at, speed, bytes, frame) = (*at, *speed, *bytes, *frame);
        if bytes > 60_000 && bytes > speed / 2 {
            let reason = format!(
                "{bytes} bytes are {} at {}: that many leave at once after a pause.",
                lasts(bytes, speed),
                rate(speed)
            );
            let fix = bucket.with(facts, &format!("{}k", (speed / HZ + frame).div_ceil(1024).max(15)));
            found.at(
                at,
                word,
                Say::new(
                    format!("the {option} of {name} is {} of traffic", lasts(bytes, speed)),
                    reason,
                    fix,
                ),
            );
        }
    }
}

/// Words that say that there is a DSL line.
const DSL: [&str; 7] = ["adsl", "dsl", "adsl2", "vdsl", "pppoe", "atm", "pppoa"];

fn overhead(facts: &Facts, found: &mut Found) {
    // That a device is called ppp0 says nothing of what is below it.
    if !facts.source.claims(&DSL) {
        return;
    }
    // What stands before the first word of it is meant by it only where nothing behind it can be.
    let first = facts.source.first_claim(&DSL);
    let behind = |device: &crate::facts::Device| {
        let step = device.root().and_then(|r| Some(&facts.steps[r.step?]));
        step.is_none_or(|s| s.file != facts.name || s.line >= first)
    };
    let any_behind = facts.devices.iter().any(|d| d.root().is_some_and(|r| r.step.is_some()) && behind(d));
    let cells_said = facts.source.claims(&["adsl", "adsl2", "atm", "pppoa"]);
    for device in &facts.devices {
        let Some(root) = device.root() else { continue };
        let Some(at) = root.step else { continue };
        // Of radio there is no such line.
        let radio = ["wwan", "wlan", "wlp", "wlx"].iter().any(|p| device.name.starts_with(p));
        if radio || any_behind && !behind(device) {
            continue;
        }
        let counted = |o: &penstock_model::Options| {
            o.i64("overhead").unwrap_or(0) != 0
                || o.u32("linklayer").unwrap_or(1) == 2
                || o.u32("atm").unwrap_or(0) != 0
                || o.has("stab")
        };
        let (place, speed) = match (root.kind, root.most()) {
            ("htb", _) => {
                let mut top = device.classes.iter().filter(|c| device.class(c.parent).is_none());
                top.find(|c| c.kind == "htb").map_or((at, 0), |c| (c.step.unwrap_or(at), c.rate()))
            }
            (_, Some(rate)) => (at, rate),
            (_, None) => continue,
        };
        let any = counted(&root.options)
            || device.classes.iter().any(|c| counted(&c.options))
            || facts.steps[at].has("stab")
            || facts.steps[at].has("overhead");
        let cake_knows = facts.steps[at].words.iter().any(|w| {
            ["adsl", "atm", "docsis", "ethernet", "pppoe", "pppoa", "bridged", "ptm", "conservative"]
                .iter()
                .any(|k| w.starts_with(k))
        });
        if any || cake_knows || speed == 0 || speed > 3_125_000 {
            continue;
        }
        let (fix, cells) = match root.kind {
            "cake" => (format!("{} pppoe-ptm", facts.steps[at].text()), 64),
            _ if cells_said => {
                (facts.steps[at].text().replacen("root", "root stab overhead 40 linklayer atm", 1), 106)
            }
            _ => (facts.steps[at].text().replacen("root", "root stab overhead 30 linklayer ethernet", 1), 84),
        };
        let reason = format!(
            "At {} no overhead is counted; an acknowledgement of 54 bytes takes {cells} on the line.",
            rate(speed)
        );
        found.at(
            place,
            facts.steps[place].value(&["rate", "bandwidth"]).unwrap_or(""),
            Say::new(format!("the overhead of the DSL line is not counted on {}", device.name), reason, fix),
        );
    }
}
