//! PS296 to PS300: taprio, etf and cbs, whose times and slopes are easily written wrongly.

use crate::facts::{Facts, Step, lasts, rate};
use crate::finding::{Found, Rule, Say};

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS296",
        "taprio: a gate that no entry opens",
        "The masks of `sched-entry` are hexadecimal, a bit for each traffic class: class 2 is 4, class 5 is 20, class 7 is 80. Packets of a class whose bit is in no entry \
         stay for ever (`taprio_dequeue`). Somebody opened 10, 32 and 128 and waited for classes 2, 5 and 7: https://github.com/Avnu/tsn-doc/issues/34.",
        closed,
    ),
    Rule::warning(
        "PS297",
        "taprio: entries behind the end of the cycle",
        "`cycle-time` cuts the schedule off: an entry that would begin at its end or later is never carried out (`should_restart_cycle` of sch_taprio.c), and one that is \
         open then ends with it. Leave cycle-time \
         out, or make it the sum of the intervals. tc-taprio(8): https://man7.org/linux/man-pages/man8/tc-taprio.8.html.",
        behind_cycle,
    ),
    Rule::warning(
        "PS298",
        "taprio: a gate is open for less than a full frame takes",
        "A packet leaves only if it is through before its gate closes (`taprio_dequeue_from_txq`). A full frame of such a class never is. INET's users met the same \
         question: https://github.com/inet-framework/inet/issues/822; tc-taprio(8): https://man7.org/linux/man-pages/man8/tc-taprio.8.html.",
        narrow,
    ),
    Rule::warning(
        "PS299",
        "etf: without delta every packet is too late",
        "etf's timer goes off `delta` before a packet's time. With 0, which is the default, it goes off at that time, the packet is looked at after it, and what is late is \
         dropped (`etf_dequeue_timesortedlist`). Give the time your machine needs, 200000 to 500000 ns. tc-etf(8): https://www.man7.org/linux/man-pages/man8/tc-etf.8.html.",
        etf_delta,
    ),
    Rule::warning(
        "PS300",
        "cbs: slopes or credits that do not go together",
        "`sendslope` is what a class loses while it sends, idleslope minus the port's rate: a negative number. With a positive one its credit never falls below zero and \
         nothing is shaped (`cbs_dequeue_soft`). `locredit` is below zero and `hicredit` above: the credit is kept between them. idleslope minus sendslope is the port's \
         rate in kbit/s. tc-cbs(8): https://manpages.ubuntu.com/manpages/focal/en/man8/tc-cbs.8.html.",
        cbs_slope,
    ),
];

/// An entry of a schedule: its gates and how long, in nanoseconds.
pub(super) struct Entry<'a> {
    pub(super) mask: u32,
    pub(super) word: &'a str,
    pub(super) ns: u64,
}

/// The entries that set gates, as the kernel reads them: masks in hexadecimal.
pub(super) fn entries(step: &Step) -> Vec<Entry<'_>> {
    let at = step.words.iter().enumerate().filter(|w| w.1 == "sched-entry").map(|w| w.0);
    let one = |at: usize| {
        let word = step.words.get(at + 2)?.as_str();
        let mask = u32::from_str_radix(word.trim_start_matches("0x"), 16).ok()?;
        Some(Entry { mask, word, ns: step.words.get(at + 3)?.parse().ok()? })
    };
    at.filter_map(one).collect()
}

/// The traffic classes that some priority is mapped to.
pub(super) fn classes(step: &Step) -> Vec<u32> {
    let map = step.words.iter().skip_while(|w| *w != "map").skip(1);
    let mut all: Vec<u32> = map.map_while(|w| w.parse().ok()).take(16).filter(|c| *c < 16).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn closed(facts: &Facts, found: &mut Found) {
    for (_, _, at) in facts.made_of(&["taprio"]) {
        let step = &facts.steps[at];
        let all = entries(step);
        let Some(first) = all.first() else { continue };
        let open = all.iter().fold(0, |m, e| m | e.mask);
        let shut: Vec<String> =
            classes(step).iter().filter(|c| open >> **c & 1 == 0).map(u32::to_string).collect();
        if shut.is_empty() {
            continue;
        }
        let decimal =
            |e: &&Entry<'_>| e.word.parse::<u32>().is_ok_and(|n| n.is_power_of_two() && n != e.mask);
        let hint = match all.iter().find(decimal) {
            Some(e) => format!(" Masks are hexadecimal: {} is {}.", e.word, e.mask),
            None => String::new(),
        };
        let plural = if shut.len() == 1 { "class" } else { "classes" };
        let reason = format!("All entries together open {open:#x}.{hint}");
        let word = all.iter().find(decimal).map_or(first.word, |e| e.word);
        found.at(
            at,
            word,
            Say::new(format!("packets of {plural} {} never leave", shut.join(", ")), reason, ""),
        );
    }
}

fn behind_cycle(facts: &Facts, found: &mut Found) {
    for (_, _, at) in facts.made_of(&["taprio"]) {
        let step = &facts.steps[at];
        let Some((word, cycle)) = step.value(&["cycle-time"]).and_then(|w| Some((w, w.parse::<u64>().ok()?)))
        else {
            continue;
        };
        let all = entries(step);
        let begins = all.iter().take(all.len().saturating_sub(1)).map(|e| e.ns).sum::<u64>();
        let whole = begins + all.last().map_or(0, |e| e.ns);
        if all.len() > 1 && cycle > 0 && whole > cycle {
            let reason = format!("The last entry begins after {begins} ns, the cycle ends after {cycle} ns.");
            let fix = step.with("cycle-time", &whole.to_string());
            let message = match begins >= cycle {
                true => "the last entry of the schedule is never carried out",
                false => "the last entry of the schedule is cut short",
            };
            found.at(at, word, Say::new(message, reason, fix));
        }
    }
}

fn narrow(facts: &Facts, found: &mut Found) {
    for (device, _, at) in facts.made_of(&["taprio"]) {
        let step = &facts.steps[at];
        let all = entries(step);
        // Where nobody says the rate, the fastest usual one: who is too narrow for that is too narrow.
        let speed = facts.link_of(&device.name).unwrap_or(1_250_000_000);
        let need = device.frame().saturating_mul(1_000_000_000) / speed.max(1);
        for class in classes(step) {
            let is_open = |e: &Entry<'_>| e.mask >> class & 1 == 1;
            if all.iter().all(is_open) || !all.iter().any(is_open) {
                continue;
            }
            // Windows that meet are one, around the end of the cycle as well.
            let (mut widest, mut now) = (0, 0);
            for entry in all.iter().chain(&all) {
                now = if is_open(entry) { now + entry.ns } else { 0 };
                widest = widest.max(now);
            }
            if widest < need {
                let word = all.iter().find(|e| is_open(e)).map_or("taprio", |e| e.word);
                let reason = format!(
                    "Its gate is open for {widest} ns, {} bytes take {} at {}.",
                    device.frame(),
                    lasts(device.frame(), speed),
                    rate(speed)
                );
                found.at(
                    at,
                    word,
                    Say::new(format!("no full frame of class {class} ever leaves"), reason, ""),
                );
                break;
            }
        }
    }
}

fn etf_delta(facts: &Facts, found: &mut Found) {
    for (_, _, at) in facts.made_of(&["etf"]) {
        let step = &facts.steps[at];
        let word = step.value(&["delta"]);
        if step.has("deadline_mode") || word.is_some_and(|w| w != "0") {
            continue;
        }
        let reason = "Its timer goes off at a packet's time; when it is looked at that time is over.";
        found.at(
            at,
            if word.is_some() { "delta" } else { "etf" },
            Say::new("etf drops what comes at its own time", reason, step.with("delta", "300000")),
        );
    }
}

/// Rates of ports, kbit/s: of Ethernet, and of 802.3's half steps.
const PORTS: [i64; 10] = [
    10_000,
    100_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    40_000_000,
    50_000_000,
    100_000_000,
];

fn cbs_slope(facts: &Facts, found: &mut Found) {
    for (_, _, at) in facts.made_of(&["cbs"]) {
        let step = &facts.steps[at];
        let number = |name: &str| {
            let word = step.value(&[name])?;
            Some((word, word.parse::<i64>().ok()?))
        };
        let (idle, send) = (number("idleslope"), number("sendslope"));
        if let Some((word, slope)) = send.filter(|s| s.1 > 0) {
            let reason = format!("sendslope is {slope}: the credit never falls below zero.");
            let fix = step.with("sendslope", &format!("-{slope}"));
            found.at(at, word, Say::new("cbs limits nothing", reason, fix));
            continue;
        }
        if let (Some((_, idle)), Some((word, send))) = (idle, send.filter(|s| s.1 < 0)) {
            let port = idle.saturating_sub(send);
            // One digit that slipped, or another port's number.
            let near = PORTS.iter().min_by_key(|p| (*p - port).abs()).copied().unwrap_or(port);
            if port != near && idle > 0 {
                let reason = format!(
                    "idleslope minus sendslope is the port's rate, and that is {port} kbit/s here; the next that there is has {near}."
                );
                let fix = step.with("sendslope", &(idle - near).to_string());
                found.at(at, word, Say::new("sendslope does not go with idleslope", reason, fix));
            }
        }
        if let Some((word, low)) = number("locredit").filter(|l| l.1 > 0) {
            let reason = format!("locredit is {low}: the credit is held above zero, so that nothing waits.");
            let fix = step.with("locredit", &format!("-{low}"));
            found.at(at, word, Say::new("the least credit is above zero", reason, fix));
        }
        if let Some((word, high)) = number("hicredit").filter(|h| h.1 < 0) {
            let reason = format!("hicredit is {high}: the credit is held below zero, and nothing is sent.");
            let fix = step.with("hicredit", &(-high).to_string());
            found.at(at, word, Say::new("the most credit is below zero", reason, fix));
        }
    }
}
