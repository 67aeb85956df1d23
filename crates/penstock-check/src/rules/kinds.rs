//! PS28x and PS29x: what people get wrong with netem, HFSC and the queues that few use.

use super::cake::OVERHEADS;
use crate::facts::{Class, Device, Facts, Qdisc, Step, lasts, rate};
use crate::finding::{Found, Level, Rule, Say};
use penstock_lang::tc::num;
use penstock_model::Handle;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS280",
        "netem: the jitter is larger than the delay",
        "netem draws each delay from delay minus jitter to delay plus jitter (`tabledist`). Where that is below zero the packet leaves at once: many packets have no \
         delay at all, the mean is not what was asked for, and packets overtake one another. A delay of 10 ms with a jitter of 15 ms stands in a test of Facebook's \
         shaper: https://github.com/facebookarchive/augmented-traffic-control/pull/164; what reordering by jitter does to a protocol: \
         https://github.com/Haivision/srt/issues/735.",
        jitter,
    ),
    Rule::note(
        "PS281",
        "netem: a share below one percent without its sign",
        "tc reads the number of `loss`, `duplicate`, `corrupt` and `reorder` as percent, with the sign or without (`parse_percent` of utils.c): `loss 0.1` is one packet \
         of a thousand and not one of ten. Write the sign, and nobody has to know.",
        share,
    ),
    Rule::note(
        "PS282",
        "netem: the rate's queue holds seconds of traffic",
        "`rate` makes netem a slow line, and what waits for that line waits in netem: `limit` packets, 1000 where nobody says it, which is 12 seconds at 1mbit \
         (`netem_enqueue`). TCP fills that. Give the buffer that the line is to have. Others met it: https://stackoverflow.com/questions/62227100.",
        netem_queue,
    ),
    Rule::warning(
        "PS283",
        "hfsc without any upper limit shapes nothing",
        "`rt`, `ls` and `sc` say how the line is shared; only `ul` holds traffic back (`HFSC_USC`, `init_vf` of sch_hfsc.c). Without one the tree sends as fast as the \
         card takes it, and the queue stands in the modem. Give the topmost class `ul m2` with the line's rate. tc-hfsc(7) says so under CAVEAT: \
         https://manpath.be/f33/7/tc-hfsc; a tree as it is meant: https://github.com/firehol/firehol/issues/297.",
        hfsc_open,
    ),
    Rule::warning(
        "PS284",
        "hfsc: the first slope is over before a packet is through",
        "A curve's first slope holds for `d` (`dmax`). Slope times time is what it gives: if that is less than the smallest packet, the curve is its second slope and the \
         delay that was asked for is not kept (`rtsc_init`, `sc2isc`). A time without a unit is in microseconds. tc-hfsc(7): https://manpath.be/f33/7/tc-hfsc.",
        hfsc_slope,
    ),
    Rule::warning(
        "PS287",
        "ets without priomap sends everything to the last band",
        "Where `priomap` is missing all priorities go to the last band (`ets_qdisc_change`), so the strict bands stay empty. Name a band for each priority, or sort by \
         filters. tc-ets(8): https://manpages.ubuntu.com/manpages/oracular/en/man8/tc-ets.8.html.",
        ets_map,
    ),
    Rule::warning(
        "PS288",
        "choke counts packets, not bytes",
        "The parameters are called as RED's are, but `limit`, `min` and `max` are packets (`choke_change`): RED's 30000 bytes become 30000 packets. tc-choke(8) says so; \
         its first edition said bytes: https://manpages.ubuntu.com/manpages/focal/man8/tc-choke.8.html, http://man.he.net/man8/tc-choke.",
        choke_bytes,
    ),
    Rule::warning(
        "PS289",
        "gred: the default virtual queue is never set up",
        "A packet whose virtual queue is not set up takes the default one. Where that is not set up either, gred is a plain FIFO for it (`gred_enqueue`). LARTC's chapter: \
         https://www1.opennet.ru/docs/HOWTO/Adv-Routing-HOWTO/lartc.adv-qdisc.gred.html.",
        gred_default,
    ),
    Rule::warning(
        "PS290",
        "gred: nothing chooses a virtual queue",
        "gred takes the virtual queue from the last four bits of the packet's `tc_index` (`tc_index_to_dp`). dsmark set it; since Linux 6.3 only a filter with a classid \
         at ingress or clsact does. Without one every packet takes the default queue. http://qos.ittc.ku.edu/diffoverview/tsld018.htm.",
        gred_index,
    ),
    Rule::warning(
        "PS291",
        "sfb: target is not below max",
        "A bin's probability rises once it holds `target` packets, and at `max` its packets are dropped before that is looked at (`sfb_enqueue`). With target at or above \
         max sfb never marks and only cuts off. tc-sfb(8): https://man7.org/linux/man-pages/man8/tc-sfb.8.html.",
        sfb_target,
    ),
    Rule::warning(
        "PS292",
        "PIE's target is less than one packet's time",
        "PIE lets two packets stand and drops beyond them when the delay is above `target` (`pie_drop_early`). Where one frame alone takes longer, that is always so. Set \
         target to one and a half packet times. RFC 8033, 4.1 and 5.1: https://www.rfc-editor.org/rfc/rfc8033.",
        pie_target,
    ),
    Rule::warning(
        "PS294",
        "plug holds every packet until it is released",
        "plug begins plugged: nothing leaves before `tc qdisc change … plug release_indefinite` (`plug_init`, `plug_dequeue`). Those who use it for seamless reloads \
         release it first: https://git.progress-linux.org/packages/graograman-backports/haproxy/plain/dev/plug_qdisc/README.",
        plugged,
    ),
    Rule::warning(
        "PS295",
        "tbf: mtu below a full frame",
        "With `peakrate`, `mtu` (`minburst`) is the second bucket. A packet that does not fit into it is dropped (`tbf_enqueue`, `max_size`): it has to be at least the \
         largest frame, header included. tc-tbf(8): https://man7.org/linux/man-pages/man8/tc-tbf.8.html.",
        tbf_mtu,
    ),
];

/// The last two, behind the rules of [`super::timed`] and [`super::deeds`].
pub const LATER: &[Rule] = &[
    Rule::warning(
        "PS305",
        "the line's overhead is counted twice",
        "`stab` makes every packet longer for the whole tree below it (`qdisc_calculate_pkt_len`); cake's and HTB's own overhead comes on top. qosmate had it: \
         https://github.com/hudra0/qosmate/issues/117.",
        overhead_twice,
    ),
    Rule::warning(
        "PS306",
        "priorities between classes with children",
        "HTB looks at `prio` of leaves only; a class with children is asked whenever one of its leaves has a turn (`htb_activate_prios`). Where the leaves say nothing all \
         have priority 0. Write `prio` on the leaves. HTB's own help: http://yesican.chsoft.biz/lartc/htb-help.html.",
        inner_prio,
    ),
];

/// The time of a word, in microseconds.
fn time(word: &str) -> Option<u64> {
    num::time(word).map(u64::from)
}

fn jitter(facts: &Facts, found: &mut Found) {
    for (_, _, at) in facts.made_of(&["netem"]) {
        let step = &facts.steps[at];
        let Some(place) = step.words.iter().position(|w| w == "delay") else { continue };
        let word = |n: usize| step.words.get(place + n).map_or("", String::as_str);
        let (Some(delay), Some(spread)) = (time(word(1)), time(word(2))) else { continue };
        if delay == 0 || spread <= delay {
            continue;
        }
        let less = 50 - delay * 50 / spread;
        let reason = format!(
            "Delays are drawn from {} below zero up; about {less} percent of the packets leave at once.",
            lasts(spread - delay, 1_000_000)
        );
        let mut words = step.words.clone();
        words[place + 2] = word(1).to_owned();
        let say =
            Say::new(format!("jitter {} is larger than delay {}", word(2), word(1)), reason, words.join(" "));
        found.at(at, word(2), say);
    }
}

fn share(facts: &Facts, found: &mut Found) {
    for (_, _, at) in facts.made_of(&["netem"]) {
        let step = &facts.steps[at];
        for name in ["loss", "drop", "duplicate", "corrupt", "reorder"] {
            let Some(place) = step.words.iter().position(|w| w == name) else { continue };
            let place = place + 1 + usize::from(step.words.get(place + 1).is_some_and(|w| w == "random"));
            let Some(word) = step.words.get(place) else { continue };
            let Some(number) = word.parse::<f64>().ok().filter(|n| *n > 0.0 && *n < 1.0) else { continue };
            let mut words = step.words.clone();
            words[place] = format!("{word}%");
            let reason = format!(
                "One packet of {:.0}; a share of {number} of all packets is {}%.",
                100.0 / number,
                number * 100.0
            );
            found.at(at, word, Say::new(format!("{name} {word} is {word} percent"), reason, words.join(" ")));
        }
    }
}

fn netem_queue(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["netem"]) {
        let step = &facts.steps[at];
        let Some(word) = step.value(&["rate"]).filter(|_| !step.has("limit")) else { continue };
        let Some(speed) = num::rate(word, facts.kernel).filter(|r| *r > 0) else { continue };
        let limit = u64::from(qdisc.options.u32("limit").unwrap_or(1000));
        // What another qdisc below it holds is that one's.
        let own = device.leaf(Handle::new(qdisc.handle.major(), 1)).is_none();
        if own && limit * device.frame() >= 2 * speed {
            let reason = format!(
                "{limit} packets of {} bytes are {} at {}.",
                device.frame(),
                lasts(limit * device.frame(), speed),
                rate(speed)
            );
            let enough = (speed / 4 / device.frame()).max(20);
            let fix = step.with("limit", &enough.to_string());
            found.at(at, word, Say::new("netem's queue for its rate is seconds long", reason, fix));
        }
    }
}

fn curve<'a>(class: &'a Class, name: &str) -> Option<&'a penstock_model::Options> {
    class.options.nested(name)
}

/// Whether a curve gives anything.
fn gives(class: &Class, name: &str) -> bool {
    curve(class, name).is_some_and(|c| c.u64("m2").unwrap_or(0) > 0 || c.u64("m1").unwrap_or(0) > 0)
}

fn hfsc_open(facts: &Facts, found: &mut Found) {
    // Rates of cards: who writes one means the card.
    const CARDS: [u64; 5] = [12_500_000, 125_000_000, 312_500_000, 1_250_000_000, 3_125_000_000];
    for (device, qdisc, at) in facts.made_of(&["hfsc"]) {
        if qdisc.parent != Handle::ROOT {
            continue;
        }
        let classes: Vec<&Class> = device.classes_of(qdisc.handle).filter(|c| c.id != qdisc.handle).collect();
        let shares = classes.iter().any(|c| gives(c, "ls"));
        if !shares || classes.iter().any(|c| gives(c, "ul")) {
            continue;
        }
        // What hangs below may limit itself.
        let limited =
            device.qdiscs.iter().any(|q| q.parent.major() == qdisc.handle.major() && q.traits().is_shaper());
        let top: u64 = classes
            .iter()
            .filter(|c| device.class(c.parent).is_none_or(|p| p.id == qdisc.handle))
            .filter_map(|c| curve(c, "ls")?.u64("m2"))
            .sum();
        let link = facts.link_of(&device.name);
        if limited || top == 0 || CARDS.contains(&top) || link.is_some_and(|l| top >= l) {
            continue;
        }
        let first = classes.iter().filter(|c| gives(c, "ls")).filter_map(|c| c.step).min();
        let fix = match (
            first,
            classes.iter().filter(|c| device.class(c.parent).is_none_or(|p| p.id == qdisc.handle)).count(),
        ) {
            (Some(first), 1) => format!("{} ul m2 {}", facts.steps[first].text(), rate(top)),
            _ => String::new(),
        };
        let reason = format!("The classes share {}, and nothing holds them to it.", rate(top));
        found.at(
            first.unwrap_or(at),
            "hfsc",
            Say::new(format!("no class of hfsc {} has an upper limit", qdisc.handle), reason, fix),
        );
    }
}

fn hfsc_slope(facts: &Facts, found: &mut Found) {
    for class in facts.devices.iter().flat_map(|d| &d.classes).filter(|c| c.kind == "hfsc") {
        let Some(at) = class.step else { continue };
        let step = &facts.steps[at];
        for name in ["rt", "ls"] {
            let Some(of) = curve(class, name) else { continue };
            let (m1, m2) = (of.u64("m1").unwrap_or(0), of.u64("m2").unwrap_or(0));
            let d = of.u64("d").or(of.u32("d").map(u64::from)).unwrap_or(0);
            // tc takes `m1 … m2 …` without `d`, which is 0 then (`hfsc_get_sc1`).
            if d == 0 && m1 != 0 && m1 != m2 {
                let word = step.value(&["m1"]).unwrap_or(name);
                let reason =
                    format!("Without `d` the slope m1 lasts no time: the curve is m2 alone, {}.", rate(m2));
                let say = Say::new(format!("m1 of {} counts for nothing without d", class.id), reason, "");
                found.at(at, word, say);
                break;
            }
            let bytes = m1.saturating_mul(d) / 1_000_000;
            if m1 <= m2 || d == 0 || bytes >= 64 {
                continue;
            }
            let word = step.value(&["d", "dmax"]).unwrap_or(name);
            let reason = format!("{} for {d} us are {bytes} bytes.", rate(m1));
            let bare = word.bytes().all(|b| b.is_ascii_digit());
            let fix = match (bare, step.has("d")) {
                (true, true) => step.with("d", &format!("{word}ms")),
                (true, false) => step.with("dmax", &format!("{word}ms")),
                _ => String::new(),
            };
            found.at(
                at,
                word,
                Say::new(format!("the first slope of {} gives less than a packet", class.id), reason, fix),
            );
            break;
        }
    }
}

fn ets_map(facts: &Facts, found: &mut Found) {
    let sets =
        |s: &Step| s.words.iter().any(|w| matches!(w.as_str(), "skbedit" | "CLASSIFY" | "--set-class"));
    for (device, qdisc, at) in facts.made_of(&["ets"]) {
        let step = &facts.steps[at];
        let bands = qdisc.options.u32("bands").unwrap_or(0);
        let sorted = device.filters.iter().any(|f| f.parent == qdisc.handle);
        if step.has("priomap") || bands < 2 || sorted || facts.steps.iter().any(sets) {
            continue;
        }
        let reason =
            format!("All 16 priorities go to band {}; {} bands are never used.", bands - 1, bands - 1);
        found.at(
            at,
            "ets",
            Say::new(format!("ets {} sends everything to its last band", qdisc.handle), reason, ""),
        );
    }
}

fn choke_bytes(facts: &Facts, found: &mut Found) {
    for (device, _, at) in facts.made_of(&["choke"]) {
        let step = &facts.steps[at];
        let number = |name: &str| step.value(&[name]).and_then(|w| Some((w, w.parse::<u64>().ok()?)));
        let Some((word, packets)) =
            ["max", "min", "limit"].into_iter().find_map(|n| number(n).filter(|n| n.1 >= 5000))
        else {
            continue;
        };
        let reason = format!(
            "{packets} packets of {} bytes are {} MB.",
            device.frame(),
            packets * device.frame() / 1_000_000
        );
        let mut fix = step.clone();
        for name in ["limit", "min", "max"] {
            if let Some((_, bytes)) = number(name)
                && let Some(value) =
                    fix.words.iter().position(|w| w == name).and_then(|n| fix.words.get_mut(n + 1))
            {
                *value = bytes.div_ceil(1000).max(1).to_string();
            }
        }
        found.at(at, word, Say::new("choke counts packets where bytes are meant", reason, fix.text()));
    }
}

/// The virtual queues of a gred that commands set up.
fn queues_of(facts: &Facts, device: &Device) -> Vec<u32> {
    let of = |s: &&Step| s.ok() && s.has("gred") && s.value(&["dev"]) == Some(device.name.as_str());
    facts.steps.iter().filter(of).filter_map(|s| s.value(&["DP", "vq"])?.parse().ok()).collect()
}

fn gred_default(facts: &Facts, found: &mut Found) {
    for (device, _, at) in facts.made_of(&["gred"]) {
        let step = &facts.steps[at];
        let Some((word, default)) = step.value(&["default"]).and_then(|w| Some((w, w.parse::<u32>().ok()?)))
        else {
            continue;
        };
        let made = queues_of(facts, device);
        if !made.is_empty() && !made.contains(&default) {
            let mut all: Vec<String> = made.iter().map(u32::to_string).collect();
            all.dedup();
            let reason = format!(
                "Set up are {}; what is not sorted takes {default}, which is a FIFO.",
                all.join(", ")
            );
            found.at(
                at,
                word,
                Say::new(
                    format!("gred's default virtual queue {default} is never set up"),
                    reason,
                    step.with("default", &all[0]),
                ),
            );
        }
    }
}

fn gred_index(facts: &Facts, found: &mut Found) {
    let index = facts
        .devices
        .iter()
        .flat_map(|d| &d.filters)
        .any(|f| f.parent.major() == 0xffff && f.classid.is_some());
    let marks = facts.devices.iter().flat_map(|d| &d.qdiscs).any(|q| q.kind == "dsmark");
    if index || marks {
        return;
    }
    for (device, _, at) in facts.made_of(&["gred"]) {
        let mut made = queues_of(facts, device);
        made.sort_unstable();
        made.dedup();
        if made.len() > 1 {
            let reason = format!("{} virtual queues are set up, and no packet has a tc_index.", made.len());
            found.at(at, "gred", Say::new("every packet takes gred's default virtual queue", reason, ""));
        }
    }
}

fn sfb_target(facts: &Facts, found: &mut Found) {
    for (_, _, at) in facts.made_of(&["sfb"]) {
        let step = &facts.steps[at];
        let number = |name: &str| step.value(&[name]).and_then(|w| w.parse::<u64>().ok());
        let (Some(target), Some(max)) = (number("target"), number("max")) else { continue };
        if target >= max {
            let reason = format!("Bins are cut off at {max} packets and would be marked from {target} on.");
            let fix = step.with("target", &(max * 4 / 5).max(1).to_string());
            found.at(
                at,
                step.value(&["target"]).unwrap_or("sfb"),
                Say::new("sfb's target is not below its max", reason, fix),
            );
        }
    }
}

fn pie_target(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["pie", "fq_pie"]) {
        let step = &facts.steps[at];
        let Some(drain) = device.drain(qdisc.parent, facts.link_of(&device.name)) else { continue };
        let target = step.value(&["target"]).map_or(Some(15_000), time).unwrap_or(15_000);
        let packet = device.frame() * 1_000_000 / drain.max(1);
        if packet > 2 * target {
            let reason = format!(
                "A full frame takes {} at {}; target is {} ms.",
                lasts(device.frame(), drain),
                rate(drain),
                target.div_ceil(1000)
            );
            let fix = step.with("target", &format!("{}ms", (packet * 3 / 2).div_ceil(1000)));
            let word = step.value(&["target"]).unwrap_or(qdisc.kind);
            found.at(
                at,
                word,
                Say::new(format!("the target of {} is less than one packet's time", qdisc.kind), reason, fix),
            );
        }
    }
}

fn plugged(facts: &Facts, found: &mut Found) {
    for (device, _, at) in facts.made_of(&["plug"]) {
        let releases = |s: &Step| {
            s.value(&["dev"]) == Some(device.name.as_str())
                && (s.has("release") || s.has("release_indefinite") || s.has("del"))
        };
        if facts.steps[at..].iter().any(releases) || !facts.unknown.is_empty() {
            continue;
        }
        let reason = format!("Nothing leaves by {}: no command releases it.", device.name);
        let fix = format!("tc qdisc change dev {} root plug release_indefinite", device.name);
        found.at(at, "plug", Say::new("plug is never released", reason, fix));
    }
}

fn tbf_mtu(facts: &Facts, found: &mut Found) {
    for (device, _, at) in facts.made_of(&["tbf"]) {
        let step = &facts.steps[at];
        let name = if step.has("minburst") { "minburst" } else { "mtu" };
        let Some(word) = step.value(&[name]).filter(|_| step.has("peakrate")) else { continue };
        let Some(bytes) = num::size_and_cell(word, facts.kernel).map(|b| u64::from(b.0)) else { continue };
        if bytes < device.frame() {
            let reason = format!("{name} is {bytes} bytes, a full frame {}: it is dropped.", device.frame());
            let fix = step.with(name, &device.frame().to_string());
            found.at(at, word, Say::new("no full frame passes this tbf", reason, fix));
        }
    }
}

/// Words that make cake count overhead.
fn cake_counts(step: &Step) -> bool {
    let counts = |w: &str| OVERHEADS.contains(&w) || ["via-ethernet", "atm", "ptm"].contains(&w);
    step.words.iter().skip_while(|w| *w != "cake").any(|w| counts(w))
}

/// The step of the `stab` that holds for a qdisc: its own, or that of one above it.
fn stab_of(facts: &Facts, device: &Device, qdisc: &Qdisc) -> Option<usize> {
    let mut here = qdisc;
    for _ in 0..16 {
        if let Some(at) = here.step.filter(|&at| facts.steps[at].has("stab")) {
            return Some(at);
        }
        here = device.qdisc(here.parent.qdisc()).filter(|_| here.parent != Handle::ROOT)?;
    }
    None
}

fn overhead_twice(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["cake", "tbf", "htb"]) {
        let Some(stab) = stab_of(facts, device, qdisc) else { continue };
        let own = match qdisc.kind {
            "cake" => cake_counts(&facts.steps[at]).then_some((at, "cake")),
            // Behind `stab` stands its own overhead.
            "tbf" => {
                let behind =
                    facts.steps[at].words.iter().skip_while(|w| *w != "tbf").any(|w| w == "overhead");
                behind.then_some((at, "tbf"))
            }
            _ => {
                let counts = |c: &&Class| c.step.is_some_and(|s| facts.steps[s].has("overhead"));
                device.classes_of(qdisc.handle).find(counts).and_then(|c| Some((c.step?, "overhead")))
            }
        };
        if let Some((at, word)) = own {
            let reason =
                format!("`stab` of line {} adds it for the whole tree already.", facts.steps[stab].line);
            let level =
                if qdisc.kind == "cake" && qdisc.most().is_none() { Level::Note } else { Level::Warning };
            found.at(at, word, Say::new("the overhead is counted twice", reason, "").level(level));
        }
    }
}

fn inner_prio(facts: &Facts, found: &mut Found) {
    for device in &facts.devices {
        let prio = |c: &Class| c.step.and_then(|at| facts.steps[at].value(&["prio"]));
        let inner =
            |c: &&Class| c.kind == "htb" && !c.children.is_empty() && device.class(c.parent).is_some();
        let silent =
            |c: &Class| c.children.iter().filter_map(|id| device.class(*id)).all(|l| prio(l).is_none());
        let said: Vec<&Class> = device.classes.iter().filter(inner).filter(|c| prio(c).is_some()).collect();
        for class in &said {
            let differs =
                said.iter().any(|o| o.parent == class.parent && prio(o) != prio(class) && silent(o));
            let (Some(at), Some(word)) = (class.step, prio(class)) else { continue };
            if differs && silent(class) && word != "0" {
                let reason = format!(
                    "{} has children, none of them with a prio: all are served with priority 0.",
                    class.id
                );
                found.at(
                    at,
                    word,
                    Say::new(format!("prio {word} of {} counts for nothing", class.id), reason, ""),
                );
            }
        }
    }
}
