//! PS16x: netem.

use crate::facts::{Device, Facts, Qdisc, rate};
use crate::finding::{Found, Rule, Say};
use penstock_lang::tc::kinds;
use penstock_model::Handle;
use penstock_sched::traits::Holds;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS160",
        "netem's limit is too small for delay times rate",
        "Packets that wait for their delay count against `limit` (1000 unless said otherwise). At a high rate more are on their way than that, and netem drops what \
         nobody asked it to drop.",
        limit,
    ),
    Rule::warning(
        "PS161",
        "netem on the device under test",
        "netem in the same tree as a shaper or a queue management changes what is measured: waiting packets count as its queue, TCP's own limits on local queues \
         come in, \
         and the discipline below sees packets \
         that are delayed already. Emulate the network on another machine, another device, or on an ifb.",
        same_tree,
    ),
    Rule::warning(
        "PS162",
        "a delay without a unit",
        "tc takes a bare number of a time for microseconds: `delay 100` is 0.1 ms, and so is the jitter behind it. Others met it: \
         https://github.com/chaos-mesh/chaos-mesh/issues/4545, \
         https://github.com/nsg-ethz/mini_internet_project/issues/35.",
        bare_time,
    ),
    Rule::warning(
        "PS163",
        "red: burst smaller than its queue needs",
        "`burst` says how many packets may come at once before the average follows; tc makes the weight from it. The manual asks for (2 min + max) / (3 avpkt). With \
         less \
         the average runs after every burst, and red \
         drops where no queue stands.",
        super::aqm::red_burst,
    ),
];

fn made(facts: &Facts) -> impl Iterator<Item = (&Device, &Qdisc, usize)> {
    facts.made_of(&["netem"])
}

fn delay_us(qdisc: &Qdisc) -> u64 {
    // Ticks of 64 ns.
    u64::from(qdisc.options.u32("latency").unwrap_or(0)) * 64 / 1000
}

fn limit(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in made(facts) {
        let own = qdisc
            .options
            .nested("rate")
            .and_then(|r| r.u64("rate"))
            .or(qdisc.options.u64("rate"))
            .filter(|&r| r > 0);
        let below = device
            .qdiscs
            .iter()
            .filter(|q| q.parent.qdisc() == qdisc.handle)
            .find_map(|q| q.options.u64("rate"));
        let Some(speed) = own.or(below).or(device.drain(qdisc.parent, facts.link_of(&device.name))) else {
            continue;
        };
        let limit = u64::from(qdisc.options.u32("limit").unwrap_or(1000));
        let flying = speed * delay_us(qdisc) / 1_000_000 / device.frame();
        if flying > limit {
            let step = &facts.steps[at];
            let reason = format!(
                "{} for {} ms are {flying} packets of {} bytes on their way; limit is {limit}.",
                rate(speed),
                delay_us(qdisc) / 1000,
                device.frame()
            );
            let fix = step.with("limit", &(flying * 3 / 2).to_string());
            found.at(
                at,
                step.value(&["limit", "delay"]).unwrap_or("netem"),
                Say::new("netem's limit is too small for its delay", reason, fix),
            );
        }
    }
}

fn same_tree(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in made(facts) {
        // A rate and a delay for everything, or for one address, are a line that is emulated; classes that borrow from one another
        // are a shaper.
        let shapes = device.classes.iter().any(|c| {
            c.kind == "htb"
                && c.ceil() > c.rate()
                && device.class(c.parent).is_some_and(|p| p.children.len() > 1)
        });
        // What stands in another band of a prio waits for nothing here and keeps nothing from netem.
        let of_prio = |q: &Qdisc| {
            let top = device.qdiscs.iter().find(|t| t.handle == q.parent.qdisc());
            top.is_some_and(|t| t.kind == "prio")
        };
        let aside =
            |q: &&Qdisc| q.parent.qdisc() == qdisc.parent.qdisc() && q.parent != qdisc.parent && of_prio(q);
        let rival = device.qdiscs.iter().filter(|q| !aside(q)).find(|q| {
            q.step.is_some() && q.parent != Handle::INGRESS && (q.kind == "htb" && shapes)
                || q.step.is_some() && (q.traits().queue == Holds::Managed || q.kind == "hfsc")
        });
        let Some(rival) = rival else { continue };
        let reason = format!(
            "{} {} and netem {} stand in one tree on {}.",
            rival.kind, rival.handle, qdisc.handle, device.name
        );
        let fix = format!(
            "ip link add ifb0 type ifb && ip link set ifb0 up && tc qdisc add dev ifb0 root {}",
            facts.steps[at].words.iter().skip_while(|w| *w != "netem").cloned().collect::<Vec<_>>().join(" ")
        );
        found.at(
            at,
            "netem",
            Say::new(format!("netem is on the same device as {}", rival.kind), reason, fix),
        );
    }
}

fn bare_time(facts: &Facts, found: &mut Found) {
    for (_, qdisc, at) in facts.made() {
        let Some(kind) = kinds::find(qdisc.kind) else { continue };
        // Some are nanoseconds.
        let is_time = |w: &kinds::OptionWord| w.value.starts_with("TIME") && w.word != "timer_slack";
        let names: Vec<&str> = kind.words().iter().filter(|w| is_time(w)).map(|w| w.word).collect();
        let step = &facts.steps[at];
        let bare = |w: &str| w.parse::<u32>().is_ok_and(|v| v > 0 && v < 10_000);
        // All of the command at once: one without a unit beside one with it is as wrong.
        let mut whole = step.words.clone();
        for name in &names {
            let Some(place) = step.words.iter().position(|w| w == name) else { continue };
            let values = if *name == "delay" { 2 } else { 1 };
            for word in whole.iter_mut().skip(place + 1).take(values).filter(|w| bare(w)) {
                word.push_str("ms");
            }
        }
        let whole = whole.join(" ");
        for name in names {
            let Some(place) = step.words.iter().position(|w| w == name) else { continue };
            // Behind netem's delay stands the jitter.
            let values = if name == "delay" { 2 } else { 1 };
            for n in place + 1..(place + 1 + values).min(step.words.len()) {
                let word = step.words[n].as_str();
                let text = if n == place + 1 {
                    name.to_owned()
                } else {
                    format!("{name} {}", step.words[place + 1])
                };
                if !bare(word) {
                    continue;
                }
                let reason = format!("`{text} {word}` is {word} microseconds.");
                found.at(
                    at,
                    word,
                    Say::new(format!("{text} {word} of {} has no unit", qdisc.kind), reason, whole.clone()),
                );
            }
        }
    }
}
