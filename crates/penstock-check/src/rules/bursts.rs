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

/// Buckets of HTB's classes and tbf's: step, rate, the burst's word and bytes, largest frame, name.
fn buckets(facts: &Facts) -> Vec<(usize, u64, String, u64, u64, String)> {
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
                let Some(word) = step.value(&names) else { continue };
                if let Some(bytes) = num::size_and_cell(word, facts.kernel).map(|b| u64::from(b.0)) {
                    all.push((at, rate, word.to_owned(), bytes, device.frame(), name.clone()));
                }
            }
        }
    }
    all
}

fn name_of(facts: &Facts, at: usize, word: &str) -> String {
    let words = &facts.steps[at].words;
    let found = words.iter().position(|w| w == word).and_then(|n| words.get(n.checked_sub(1)?));
    found.cloned().unwrap_or_else(|| "burst".to_owned())
}

fn small(facts: &Facts, found: &mut Found) {
    for (at, speed, word, bytes, frame, name) in buckets(facts) {
        //= linux v6.12 net/sched/sch_tbf.c tbf_dequeue
        //= linux v6.12 net/sched/sch_htb.c htb_charge_class
        let need = speed / 2500;
        if name == "tbf" && bytes >= frame && bytes < need * 3 / 4 {
            let option = name_of(facts, at, &word);
            let reason = format!(
                "{bytes} bytes last {} at {}; the timer needs some {need} bytes to keep up.",
                lasts(bytes, speed),
                rate(speed)
            );
            let fix = facts.steps[at].with(&option, &format!("{}k", (need + frame).div_ceil(1024)));
            found.at(
                at,
                &word,
                Say::new(format!("the {option} of {name} is too small for {}", rate(speed)), reason, fix),
            );
        }
    }
}

fn below_packet(facts: &Facts, found: &mut Found) {
    for (at, speed, word, bytes, frame, name) in buckets(facts) {
        if bytes < frame {
            let option = name_of(facts, at, &word);
            let reason = format!("{option} {word} is {bytes} bytes, a full frame has {frame}.");
            let fix = facts.steps[at].with(&option, &format!("{}k", (speed / HZ + frame).div_ceil(1024)));
            found.at(
                at,
                &word,
                Say::new(format!("the {option} of {name} is less than one packet"), reason, fix),
            );
        }
    }
}

fn big(facts: &Facts, found: &mut Found) {
    for (at, speed, word, bytes, frame, name) in buckets(facts) {
        if bytes > 60_000 && bytes > speed / 2 {
            let option = name_of(facts, at, &word);
            let reason = format!(
                "{bytes} bytes are {} at {}: that many leave at once after a pause.",
                lasts(bytes, speed),
                rate(speed)
            );
            let fix =
                facts.steps[at].with(&option, &format!("{}k", (speed / HZ + frame).div_ceil(1024).max(15)));
            found.at(
                at,
                &word,
                Say::new(
                    format!("the {option} of {name} is {} of traffic", lasts(bytes, speed)),
                    reason,
                    fix,
                ),
            );
        }
    }
}

fn overhead(facts: &Facts, found: &mut Found) {
    // That a device is called ppp0 says nothing of what is below it.
    if !facts.source.claims(&["adsl", "dsl", "adsl2", "vdsl", "pppoe", "atm", "pppoa"]) {
        return;
    }
    let cells_said = facts.source.claims(&["adsl", "adsl2", "atm", "pppoa"]);
    for device in &facts.devices {
        let Some(root) = device.root() else { continue };
        let Some(at) = root.step else { continue };
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
