//! PS15x: RED by Floyd's rules, CoDel's target, CAKE's place.

use crate::facts::{Facts, Qdisc, Step, lasts, rate};
use crate::finding::{Found, Level, Rule, Say};
use penstock_lang::tc::num;
use penstock_model::Handle;
use penstock_sched::traits::Classes;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS150",
        "red: max less than twice min",
        "Floyd asks for max of two to three times min. Where they are close, red goes from no drops to dropping everything within a few packets, and all flows slow \
         down at once.",
        red_max,
    ),
    Rule::warning(
        "PS151",
        "red: the limit leaves no room above max",
        "`limit` is the hard end of the queue. If it is not well above max (the manual: max plus burst, usually more than twice max), the queue drops from its tail \
         before red has answered.",
        red_limit,
    ),
    Rule::warning(
        "PS152",
        "red: probability far from what it should be",
        "`probability` is the highest marking rate before max, 0.01 to 0.1 by Floyd. Near 1 red drops almost everything as soon as the average passes min.",
        red_probability,
    ),
    Rule::warning(
        "PS153",
        "red: avpkt is not a packet size",
        "`avpkt` is an average packet, used with `burst` to find the time constant: above the MTU no packet is that large, below 64 bytes none that small.",
        red_avpkt,
    ),
    Rule::warning(
        "PS154",
        "red: min holds a second of traffic",
        "red keeps the average queue between min and max. If min alone is a second of traffic, the queue is a second long all the time. Floyd: a few packets, or the \
         delay you accept times the rate.",
        red_min,
    ),
    Rule::warning(
        "PS155",
        "red: bandwidth is not the rate it sends at",
        "`bandwidth` says how fast its average falls while the queue is empty. tc assumes 10mbit if it is missing; at a much slower rate the average falls far too \
         fast after each pause.",
        red_bandwidth,
    ),
    Rule::warning(
        "PS156",
        "CoDel's target is less than one packet's time",
        "CoDel wants packets out within `target`. At a rate where one full frame takes longer, the goal cannot be met and CoDel drops although there is no queue to \
         speak \
         of. Set target to 1.5 packet times.",
        codel_target,
    ),
    Rule::warning(
        "PS157",
        "CoDel's target is not a fraction of its interval",
        "RFC 8289: interval is a usual round-trip time, target 5 to 10 percent of it. A target of half the interval or more makes the control loop answer too late.",
        codel_interval,
    ),
    Rule::warning(
        "PS158",
        "CAKE below another shaper",
        "CAKE shapes, sorts by host and flow, and manages the queue as one; as a leaf it sees one class's packets only, cannot share between classes, and two shapers in \
         a row work against each other. Use CAKE as root with \
         `bandwidth` and its tins, or fq_codel in the leaves. Without `bandwidth`, in a class of HTB or HFSC, it is a queue alone, as one that is a subscriber's \
         own may be: that is a note.",
        cake_leaf,
    ),
    Rule::warning(
        "PS159",
        "CAKE without bandwidth",
        "Without `bandwidth` CAKE does not shape: the queue forms behind it, in the modem, where CAKE cannot manage it.",
        cake_unlimited,
    ),
];

fn n(qdisc: &Qdisc, name: &str) -> u64 {
    u64::from(qdisc.options.u32(name).unwrap_or(0))
}

fn red_max(facts: &Facts, found: &mut Found) {
    for (_, qdisc, at) in facts.made_of(&["red"]) {
        let (min, max) = (n(qdisc, "min"), n(qdisc, "max"));
        let step = &facts.steps[at];
        if let Some(word) = step.value(&["max"]).filter(|_| max < 2 * min) {
            let reason = format!(
                "min is {min} bytes, max {max}: {}.{} times min.",
                max / min.max(1),
                max * 10 / min.max(1) % 10
            );
            found.at(
                at,
                word,
                Say::new(
                    "red's max is less than twice its min",
                    reason,
                    step.with("max", &(3 * min).to_string()),
                ),
            );
        }
    }
}

/// A red that is refused and whose min is not below its max: what tc says is of what follows from that.
pub(super) fn swapped(step: &Step) -> Option<(String, String)> {
    let bytes = |name: &str| penstock_model::Size::parse(step.value(&[name])?).ok().map(|s| s.bytes());
    if !step.has("red") {
        return None;
    }
    let (min, max) = (bytes("min")?, bytes("max")?);
    let why =
        format!("min {min} is not below max {max}: red drops nothing below min and everything above max.");
    let fix = Step { words: step.words.clone(), ..Step::new() };
    let fix = fix.with("min", &max.to_string());
    let words: Vec<String> = fix.split_whitespace().map(str::to_owned).collect();
    let fix = Step { words, ..Step::new() }.with("max", &min.to_string());
    (min >= max).then_some((why, if min > max { fix } else { String::new() }))
}

fn red_limit(facts: &Facts, found: &mut Found) {
    for (_, qdisc, at) in facts.made_of(&["red"]) {
        let (max, limit) = (n(qdisc, "max"), n(qdisc, "limit"));
        let step = &facts.steps[at];
        if limit > 0 && limit * 10 < max * 13 {
            let reason = format!("limit is {limit} bytes, max {max}.");
            found.at(
                at,
                step.value(&["limit"]).unwrap_or(""),
                Say::new(
                    "red's limit leaves no room above max",
                    reason,
                    step.with("limit", &(4 * max).to_string()),
                ),
            );
        }
    }
}

fn red_probability(facts: &Facts, found: &mut Found) {
    for (_, _, at) in facts.made_of(&["red"]) {
        let step = &facts.steps[at];
        let Some(word) = step.value(&["probability"]) else { continue };
        // Thousandths, so that nothing is decided by floating point.
        let digits: String = word
            .split_once('.')
            .map_or_else(|| format!("{word}000"), |(whole, part)| format!("{whole}{:0<3.3}", part));
        if digits.parse::<u32>().is_ok_and(|p| p > 300) {
            let reason = format!("probability {word}; Floyd's range is 0.01 to 0.1.");
            found.at(
                at,
                word,
                Say::new("red drops nearly everything above min", reason, step.with("probability", "0.1")),
            );
        }
    }
}

fn red_avpkt(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["red"]) {
        let step = &facts.steps[at];
        let Some(word) = step.value(&["avpkt"]) else { continue };
        let bytes = num::size(word, facts.kernel).map_or(0, u64::from);
        if bytes > device.frame() || bytes < 64 {
            let reason = format!("avpkt is {bytes} bytes, a full frame {}.", device.frame());
            found.at(
                at,
                word,
                Say::new("red's avpkt is not a packet size", reason, with_packets(qdisc, step)),
            );
        }
    }
}

/// The command with packets of 1000 bytes, and the burst that goes with them: it is counted in such packets.
fn with_packets(qdisc: &Qdisc, step: &Step) -> String {
    let burst = (2 * n(qdisc, "min") + n(qdisc, "max")) / 3000 + 1;
    let fix = step.with("avpkt", "1000");
    match step.value(&["burst"]) {
        Some(old) => fix.replacen(&format!(" burst {old}"), &format!(" burst {burst}"), 1),
        None => fix,
    }
}

pub fn red_burst(facts: &Facts, found: &mut Found) {
    for (_, qdisc, at) in facts.made_of(&["red"]) {
        let step = &facts.steps[at];
        let (Some(word), avpkt) = (step.value(&["burst"]), step.value(&["avpkt"])) else { continue };
        let avpkt = avpkt.and_then(|w| num::size(w, facts.kernel)).map_or(1000, u64::from).max(1);
        let (min, max) = (n(qdisc, "min"), n(qdisc, "max"));
        let need = (2 * min + max) / (3 * avpkt);
        if let Ok(burst) = word.parse::<u64>()
            && burst * 10 < need * 7
        {
            let reason = format!("burst is {burst} packets; (2 x {min} + {max}) / (3 x {avpkt}) is {need}.");
            let fix = step.with("burst", &(need + 1).to_string());
            found.at(at, word, Say::new("red's burst is too small", reason, fix));
        }
    }
}

fn red_min(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["red"]) {
        let step = &facts.steps[at];
        let said = step.value(&["bandwidth"]).and_then(|b| num::rate(b, facts.kernel));
        let Some(drain) = device.drain(qdisc.parent, facts.link_of(&device.name)).or(said) else { continue };
        let min = n(qdisc, "min");
        if drain > 0 && min * 1000 / drain >= 1000 {
            let reason = format!("min is {min} bytes: {} at {}.", lasts(min, drain), rate(drain));
            let fine = (drain / 50).max(5 * device.frame());
            let fix = step.with("min", &fine.to_string());
            found.at(
                at,
                step.value(&["min"]).unwrap_or(""),
                Say::new("red lets the queue grow to a second or more", reason, fix),
            );
        }
    }
}

fn red_bandwidth(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["red"]) {
        let step = &facts.steps[at];
        let Some(drain) = device.drain(qdisc.parent, facts.link_of(&device.name)) else { continue };
        let word = step.value(&["bandwidth"]);
        let said = word.map_or(Some(1_250_000), |w| num::rate(w, facts.kernel)).unwrap_or(1_250_000);
        if said > 4 * drain || drain > 20 * said {
            let reason = format!(
                "red counts with {}{}, its class sends {}.",
                rate(said),
                if word.is_none() { " (what tc takes)" } else { "" },
                rate(drain)
            );
            found.at(
                at,
                word.unwrap_or("red"),
                Say::new(
                    "red's bandwidth is not the rate it sends at",
                    reason,
                    step.with("bandwidth", &rate(drain)),
                ),
            );
        }
    }
}

fn codel_target(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["fq_codel", "codel"]) {
        let Some(drain) = device.drain(qdisc.parent, facts.link_of(&device.name)) else { continue };
        let target = n(qdisc, "target").max(1);
        let packet = device.frame() * 1_000_000 / drain.max(1);
        if packet > 2 * target {
            let step = &facts.steps[at];
            let reason = format!(
                "A full frame takes {} at {}; target is {} ms.",
                lasts(device.frame(), drain),
                rate(drain),
                target.div_ceil(1000)
            );
            let fix = step.with("target", &format!("{}ms", (packet * 3 / 2).div_ceil(1000)));
            found.at(
                at,
                step.value(&["target"]).unwrap_or(qdisc.kind),
                Say::new(format!("the target of {} is less than one packet's time", qdisc.kind), reason, fix),
            );
        }
    }
}

fn codel_interval(facts: &Facts, found: &mut Found) {
    for (_, qdisc, at) in facts.made_of(&["fq_codel", "codel"]) {
        let (target, interval) = (n(qdisc, "target"), n(qdisc, "interval"));
        if interval > 0 && target * 2 >= interval {
            let step = &facts.steps[at];
            // The kernel keeps both in units of 1.024 us.
            let time = |us: u64| match (us + 5) / 10 * 10 {
                us if us >= 1000 && us % 1000 == 0 => format!("{}ms", us / 1000),
                us if us >= 10_000 => format!("{}ms", us.div_ceil(1000)),
                us => format!("{us}us"),
            };
            let said = |name: &str, us: u64| step.value(&[name]).map_or(time(us), str::to_owned);
            let (t, i) = (said("target", target), said("interval", interval));
            let reason = format!("target is {t}, interval {i}: {} percent.", target * 100 / interval);
            // Far more than the interval is the interval's place; else the interval grows with the target, up to a second.
            let swapped = target >= 5 * interval && step.has("target") && step.has("interval");
            let fix = match () {
                () if swapped => {
                    let turned = step.with("target", &i);
                    turned.replacen(&format!("interval {i}"), &format!("interval {t}"), 1)
                }
                () if target * 20 <= 1_000_000 => step.with("interval", &time(target * 20)),
                () => step.with("target", &time(interval / 20)),
            };
            let more = if swapped { " They may have changed places." } else { "" };
            found.at(
                at,
                step.value(&["target", "interval"]).unwrap_or(""),
                Say::new("target is not a fraction of interval", reason + more, fix).unsure(!swapped),
            );
        }
    }
}

fn cake_leaf(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["cake"]) {
        let inside = !matches!(qdisc.parent, Handle::ROOT | Handle::INGRESS);
        let Some(above) = device.qdisc(qdisc.parent.qdisc()).filter(|_| inside) else { continue };
        let traits = above.traits();
        // Where each transmit queue has its own, that is how it is meant.
        if traits.is_shaper() || traits.is_classful() && traits.classes != Classes::Queues {
            let step = &facts.steps[at];
            let fix = format!("{} fq_codel", step.text().split(" cake").next().unwrap_or(""));
            let reason = format!(
                "cake is a leaf of {} {}; it sees the packets of {} only.",
                above.kind, above.handle, qdisc.parent
            );
            // In a class of HTB or HFSC that is one subscriber's, CAKE without a rate of its own is their queue alone (LibreQoS has it so).
            let queue = traits.is_classful() && traits.is_shaper() && qdisc.most().is_none();
            let level = if queue { Level::Note } else { Level::Warning };
            let say = Say::new(format!("cake below {}", above.kind), reason, fix);
            found.at(at, "cake", say.level(level));
        }
    }
}

fn cake_unlimited(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["cake"]) {
        let step = &facts.steps[at];
        // Who speaks of a link, of NAT or of the direction means the bottleneck.
        const OUTSIDE: [&str; 12] = [
            "nat",
            "docsis",
            "ethernet",
            "pppoe-ptm",
            "bridged-ptm",
            "pppoe-vcmux",
            "pppoe-llcsnap",
            "conservative",
            "overhead",
            "ingress",
            "ack-filter",
            "dual-srchost",
        ];
        let words = step.words.iter().skip_while(|w| *w != "cake");
        let outer = device.name.starts_with("ppp")
            || device.name.starts_with("wan")
            || device.kind == "ifb"
            || facts.link_of(&device.name).is_some()
            || words.into_iter().any(|w| OUTSIDE.contains(&w.as_str()))
            || super::direction::is_outside(facts, &device.name);
        if qdisc.parent == Handle::ROOT
            && outer
            && qdisc.options.u64("bandwidth").unwrap_or(0) == 0
            && !step.has("autorate-ingress")
        {
            let fix = facts
                .link_of(&device.name)
                .map_or(String::new(), |l| step.with("bandwidth", &rate(l / 100 * 95)));
            found.at(
                at,
                "cake",
                Say::new("cake shapes nothing", format!("No bandwidth is given on {}.", device.name), fix),
            );
        }
    }
}
