//! PS23x: ingress, policers, ifb, and which device is shaped.

use crate::facts::{Facts, Step, lasts, rate};
use crate::filters::{ALL, Filter};
use crate::finding::{Found, Rule, Say};
use penstock_lang::iptables::Iface;
use penstock_lang::tc::num;
use penstock_model::Handle;
use penstock_sched::act;
use penstock_sched::traits::Holds;
use std::collections::BTreeSet;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS230",
        "an ifb that no packets are redirected to",
        "An ifb is fed by `action mirred egress redirect dev ifb0` on another device's ingress. Without that its qdiscs see nothing.",
        unfed,
    ),
    Rule::warning(
        "PS231",
        "packets are redirected to a device that is down",
        "mirred drops what it cannot deliver: with the ifb down everything that comes in is lost.",
        down,
    ),
    Rule::warning(
        "PS232",
        "an ingress qdisc without filters",
        "The ingress qdisc has no queue; it does nothing but ask its filters.",
        no_filters,
    ),
    Rule::warning(
        "PS233",
        "packets are copied where they should be redirected",
        "`mirror` sends a copy to the ifb and lets the original go on: nothing is shaped, and the copies come in as well.",
        mirrored,
    ),
    Rule::warning(
        "PS234",
        "a policer's burst is below one packet",
        "A policer has no queue. A packet larger than its bucket never conforms: nothing but small packets pass.",
        police_small,
    ),
    Rule::warning(
        "PS235",
        "a policer's burst is too small for its rate",
        "Packets arrive in bursts; GRO joins up to 64 KiB before the policer sees them. With a bucket of less than some milliseconds TCP gets a fraction of the rate.",
        police_short,
    ),
    Rule::warning(
        "PS236",
        "a policer that drops nothing",
        "With `pass` (`ok`) for what exceeds the rate, everything goes through; so it does with `continue` at ingress where no filter stands behind, and with `pipe` as the last \
         action. Without a word tc asks for `reclassify`: the packet meets the same \
         policer again, and after 16 rounds the kernel drops it.",
        police_idle,
    ),
    Rule::warning(
        "PS237",
        "lo is shaped",
        "Over lo a machine talks to itself; nothing from outside and nothing for outside passes it. With `netem` in its tree a network \
         of one machine is meant, and nothing is said.",
        on_lo,
    ),
    Rule::warning(
        "PS238",
        "a device's name is misspelled",
        "A device that only one command names, and that differs in a letter from one that all others name, is that one.",
        misspelled,
    ),
    Rule::warning(
        "PS239",
        "one port of a bridge is shaped",
        "Packets of a bridge leave by whichever port leads to their destination, those of a bond by whichever slave its mode takes. A qdisc on one of them shapes what \
         leaves by it, and nothing of the others.",
        bridge_port,
    ),
    Rule::warning(
        "PS240",
        "a rule asks for a bridge's port",
        "To iptables packets come in by and leave by the bridge (br0), not by its port: -i and -o with the port's name never fit.",
        port_rule,
    ),
    Rule::warning(
        "PS241",
        "the ifb is never created",
        "An ifb is there only after `modprobe ifb` or `ip link add ifb0 type ifb`; without, every command on it fails.",
        no_ifb,
    ),
    Rule::warning(
        "PS242",
        "another device is shaped than the one named by --dev",
        "Nothing in the script shapes the device that was named with --dev.",
        other_device,
    ),
    Rule::warning(
        "PS243",
        "a class is named at ingress",
        "The ingress qdisc has no classes and no queue: a filter there that names a class and has no action lets the packet through as if it were not there. Police it, \
         or redirect it to an ifb and sort it there.",
        class_at_ingress,
    ),
];

/// Every policer: filter, its options.
pub(super) fn policers(
    facts: &Facts,
) -> impl Iterator<Item = (&crate::facts::Device, &Filter, &penstock_model::Options)> {
    facts.devices.iter().flat_map(|d| {
        d.filters.iter().flat_map(move |f| f.actions().filter(|a| a.0 == "police").map(move |a| (d, f, a.1)))
    })
}

fn redirects(step: &Step) -> Option<&str> {
    let at = step.words.iter().position(|w| w == "redirect" || w == "mirror")?;
    let dev = step.words[at..].iter().position(|w| w == "dev")? + at + 1;
    step.words.get(dev).map(String::as_str)
}

/// Where packets are copied to.
pub(super) fn copied(step: &Step) -> Option<&str> {
    redirects(step).filter(|_| step.has("mirror"))
}

fn unfed(facts: &Facts, found: &mut Found) {
    let ifb = |d: &&crate::facts::Device| d.kind == "ifb" || d.name.starts_with("ifb");
    let fed: BTreeSet<&str> = facts.steps.iter().filter_map(redirects).collect();
    for device in facts.devices.iter().filter(ifb) {
        let Some(at) = device.root().and_then(|r| r.step) else { continue };
        if !fed.contains(device.name.as_str()) {
            let outer = facts.foreign.iter().find(|n| !n.starts_with("ifb")).map_or("eth0", String::as_str);
            let fix = format!(
                "tc qdisc add dev {outer} handle ffff: ingress\ntc filter add dev {outer} parent ffff: protocol all prio 1 matchall action mirred egress redirect dev {}",
                device.name
            );
            found.at(
                at,
                &device.name,
                Say::new(
                    format!("no packet comes to {}", device.name),
                    format!("No command redirects packets to {}.", device.name),
                    fix,
                ),
            );
        }
    }
}

fn down(facts: &Facts, found: &mut Found) {
    let mut told = BTreeSet::new();
    for (at, step) in facts.steps.iter().enumerate().filter(|s| s.1.ok() && s.1.program() == "tc") {
        let Some(to) = redirects(step) else { continue };
        // As it stands in the end.
        let Some(device) = facts.devices.iter().rfind(|d| d.name == to) else { continue };
        let lent = facts.foreign.contains(to);
        let virtual_one = matches!(device.kind, "ifb" | "dummy" | "veth");
        // One command sets it up for all that is redirected to it.
        if virtual_one && !lent && !device.up && told.insert((to, step.file.as_str())) {
            found.at(
                at,
                to,
                Say::new(
                    format!("{to} is down"),
                    format!("No command sets {to} up; what is redirected to it is dropped."),
                    format!("ip link set dev {to} up"),
                )
                .edit(up(facts, at, to)),
            );
        }
    }
}

/// A line that sets a device up, where the command stands for itself.
fn up(facts: &Facts, at: usize, dev: &str) -> Option<crate::finding::Edit> {
    let step = &facts.steps[at];
    let script = matches!(facts.source.form, crate::source::Form::Script | crate::source::Form::List);
    let plain = script
        && step.calls.is_empty()
        && step.file == facts.name
        && facts.source.line(step.line).trim_start().starts_with("tc ");
    let logical = facts.source.logical(step.line);
    let written = logical.split_whitespace().rev().collect::<Vec<_>>();
    let last =
        written.iter().position(|w| *w == "dev").and_then(|n| n.checked_sub(1)).map_or(dev, |n| written[n]);
    plain.then(|| crate::finding::Edit::Before(step.line, format!("ip link set dev {last} up")))
}

fn no_filters(facts: &Facts, found: &mut Found) {
    for device in &facts.devices {
        let Some(ingress) = device.ingress().filter(|q| q.kind == "ingress") else { continue };
        let Some(at) = ingress.step else { continue };
        let step = &facts.steps[at];
        // A filter that is refused is told of by itself.
        let refused = facts.steps.iter().any(|s| {
            let here = s.value(&["parent"]).is_some_and(|p| p.starts_with("ffff:")) || s.has("ingress");
            let acts = s.has("mirred") || s.has("police");
            !s.ok() && s.program() == "tc" && s.has("filter") && (here || acts) && s.has(&device.name)
        });
        let any =
            device.filters.iter().any(|f| f.parent.major() == 0xffff) || step.has("ingress_block") || refused;
        if !any {
            let fix = format!(
                "tc filter add dev {} parent ffff: protocol all prio 1 matchall action police rate 10mbit burst 100k drop",
                device.name
            );
            found.at(
                at,
                "ingress",
                Say::new(
                    format!("the ingress qdisc of {} does nothing", device.name),
                    "It has no filters.".to_owned(),
                    fix,
                ),
            );
        }
    }
}

fn class_at_ingress(facts: &Facts, found: &mut Found) {
    for device in &facts.devices {
        for filter in
            device.filters.iter().filter(|f| f.parent.major() == 0xffff && f.parent.minor() != 0xfff3)
        {
            let step = &facts.steps[filter.step];
            let sorts = matches!(filter.kind.as_str(), "u32" | "fw" | "flower" | "matchall" | "basic");
            // `flowid :1` is what policers are given, and a filter that lets some pass before a policer.
            let Some(class) = filter.classid.filter(|c| c.major() != 0 && c.major() != 0xffff) else {
                continue;
            };
            if sorts && filter.actions().next().is_none() && !filter.options.has("link") {
                let reason = format!("{class} is a class of no qdisc here; nothing is limited.");
                let before = step.text();
                let fix = before
                    .split(" flowid ")
                    .next()
                    .and_then(|t| t.split(" classid ").next())
                    .map_or(String::new(), |t| format!("{t} action mirred egress redirect dev ifb0"));
                found.at(
                    filter.step,
                    step.value(&["flowid", "classid"]).unwrap_or(""),
                    Say::new(format!("the filter at ingress names {class} and does nothing"), reason, fix),
                );
            }
        }
    }
}

fn mirrored(facts: &Facts, found: &mut Found) {
    for (at, step) in facts.steps.iter().enumerate().filter(|s| s.1.ok() && s.1.program() == "tc") {
        let to = redirects(step).unwrap_or("");
        let shaped = facts.devices.iter().any(|d| d.name == to && d.root().is_some());
        if step.has("mirror") && step.has("mirred") && shaped {
            let reason = format!("{to} shapes copies; the packets themselves go on unshaped.");
            found.at(
                at,
                "mirror",
                Say::new(
                    "packets are copied, not redirected",
                    reason,
                    step.text().replacen(" mirror ", " redirect ", 1),
                ),
            );
        }
    }
}

/// A policer's rate and burst in bytes, with the burst's word.
fn bucket<'a>(facts: &'a Facts, filter: &Filter, o: &penstock_model::Options) -> Option<(u64, u64, &'a str)> {
    let step = &facts.steps[filter.step];
    let word = step.value(&["burst", "buffer", "maxburst"])?;
    let bytes = num::size_and_cell(word, facts.kernel)?.0;
    Some((o.u64("rate")?, u64::from(bytes), word))
}

fn police_small(facts: &Facts, found: &mut Found) {
    for (device, filter, o) in policers(facts) {
        let Some((_, bytes, word)) = bucket(facts, filter, o) else { continue };
        if bytes < device.frame() - 14 {
            let reason = format!("The bucket holds {bytes} bytes, a full packet has {}.", device.mtu);
            found.at(
                filter.step,
                word,
                Say::new(
                    "no full packet passes this policer",
                    reason,
                    facts.steps[filter.step].with("burst", "100k"),
                ),
            );
        }
    }
}

fn police_short(facts: &Facts, found: &mut Found) {
    for (device, filter, o) in policers(facts) {
        let Some((speed, bytes, word)) = bucket(facts, filter, o) else { continue };
        if bytes >= device.frame() - 14 && bytes < speed / 250 {
            let reason = format!("{bytes} bytes are {} at {}.", lasts(bytes, speed), rate(speed));
            let fix = facts.steps[filter.step].with("burst", &format!("{}k", (speed / 50).div_ceil(1024)));
            found.at(
                filter.step,
                word,
                Say::new(format!("the policer's burst is too small for {}", rate(speed)), reason, fix),
            );
        }
    }
}

fn police_idle(facts: &Facts, found: &mut Found) {
    for (device, filter, o) in policers(facts) {
        let step = &facts.steps[filter.step];
        // A policer without a rate, and one that others share by its number, may be there to count.
        if step.has("index") || !step.has("rate") {
            continue;
        }
        // What goes on to the next filter, or to the next action, is let through where there is none.
        let behind = |f: &Filter| {
            let later = (f.prio, f.step) > (filter.prio, filter.step);
            let asked = [f.protocol, filter.protocol].contains(&ALL) || f.protocol == filter.protocol;
            f.parent == filter.parent && f.chain == filter.chain && later && asked
        };
        // One that is refused is told of by itself.
        let refused = |s: &Step| !s.ok() && s.has("filter") && s.has(&device.name);
        if facts.steps.iter().any(refused) {
            continue;
        }
        let last = filter.actions().last().is_some_and(|a| std::ptr::eq(a.1, o));
        let through = match o.i64("action").map(|n| n as i32) {
            Some(act::OK) => true,
            Some(act::UNSPEC) => filter.parent.major() == 0xffff && !device.filters.iter().any(behind),
            Some(act::PIPE) => filter.parent.major() == 0xffff && last,
            _ => false,
        };
        if !through {
            continue;
        }
        let exceeding = |w: &&String| matches!(w.as_str(), "pass" | "ok" | "continue" | "pipe");
        let behind = step.words.iter().skip_while(|w| *w != "police");
        let Some(word) = behind.clone().find(exceeding).cloned() else { continue };
        let fix = step.with_word(&word, "drop");
        found.at(
            filter.step,
            &word,
            Say::new(
                "the policer drops nothing",
                format!("What exceeds its rate goes through as well (`{word}`)."),
                fix,
            ),
        );
    }
}

fn on_lo(facts: &Facts, found: &mut Found) {
    for device in facts.devices.iter().filter(|d| d.name == "lo") {
        let shapes = |r: &&crate::facts::Qdisc| {
            let traits = r.traits();
            traits.is_shaper() || traits.is_classful() || traits.queue == Holds::Managed
        };
        let Some(root) = device.root().filter(shapes) else { continue };
        // Who delays it builds a network of one machine: lo is meant.
        if device.qdiscs.iter().any(|q| q.kind == "netem") {
            continue;
        }
        let Some(at) = root.step else { continue };
        let fix = facts.steps[at].with("dev", "eth0");
        found.at(
            at,
            "lo",
            Say::new(
                "lo carries nothing from or for outside",
                "Only this machine's talk with itself passes it.".to_owned(),
                fix,
            ),
        );
    }
}

/// Whether two names differ by one letter, or two that changed places.
fn near(a: &str, b: &str) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let differ: Vec<usize> = (0..a.len().min(b.len())).filter(|&i| a[i] != b[i]).collect();
    // eth0 and eth1 are two devices, eth0 and etho are one.
    let letters = |i: &usize| a[*i].is_alphabetic() || b[*i].is_alphabetic();
    match (a.len() == b.len(), differ.as_slice()) {
        (true, [i]) => letters(i),
        (true, [i, j]) => j - i == 1 && a[*i] == b[*j] && a[*j] == b[*i] && a[*i].is_alphabetic(),
        _ => false,
    }
}

fn misspelled(facts: &Facts, found: &mut Found) {
    for name in &facts.foreign {
        let Some(made) = super::spelling::made_alike(facts, name) else { continue };
        let uses = |s: &Step| s.has(name) && s.program() == "tc";
        let Some((at, step)) = facts.steps.iter().enumerate().find(|s| uses(s.1)) else { continue };
        // Both may be there where both are worked with.
        let shaped = facts.steps.iter().any(|s| s.program() == "tc" && s.has(made));
        if !shaped {
            let reason = format!("The script makes {made} and no {name}.");
            let fix = step.text().replace(name.as_str(), made);
            found.at(
                at,
                name,
                Say::new(format!("{name} is not made here; {made} may be meant"), reason, fix),
            );
        }
    }
    for name in &facts.foreign {
        let Some((made, at)) = super::spelling::made_otherwise(facts, name) else { continue };
        let uses = |s: &Step| s.has(name) && matches!(s.program(), "tc" | "ip");
        let Some((first, step)) = facts.steps.iter().enumerate().find(|s| uses(s.1)) else { continue };
        let reason = format!("Line {} makes this VLAN under the name {made}.", facts.steps[at].line);
        let fix = step.text().replace(name.as_str(), made);
        found.at(first, name, Say::new(format!("there is no {name}: the VLAN is {made}"), reason, fix));
    }
    let uses = |name: &str| {
        facts.steps.iter().enumerate().filter(|s| s.1.has(name)).map(|s| s.0).collect::<Vec<_>>()
    };
    for name in &facts.foreign {
        let here = uses(name);
        let [at] = here.as_slice() else { continue };
        let twin = facts
            .foreign
            .iter()
            .chain(facts.devices.iter().map(|d| &d.name))
            .find(|n| *n != name && near(n, name) && uses(n).len() > 1);
        if let Some(twin) = twin {
            let step = &facts.steps[*at];
            let fix = step.text().replace(name.as_str(), twin);
            found.at(
                *at,
                name,
                Say::new(
                    format!("{name} is named once only; {twin} may be meant"),
                    format!("{} commands name {twin}.", uses(twin).len()),
                    fix,
                ),
            );
        }
    }
}

/// Whether a device is a bond, as far as the script says.
fn is_bond(facts: &Facts, name: &str) -> bool {
    let made = |s: &Step| s.program() == "ip" && s.has("bond") && s.has(name) && !s.has("active-backup");
    facts.steps.iter().any(|s| s.ok() && made(s))
}

fn bridge_port(facts: &Facts, found: &mut Found) {
    for device in facts.devices.iter().filter(|d| d.root().is_some()) {
        let Some(bridge) = device.master.as_ref().filter(|m| {
            m.starts_with("br")
                || is_bond(facts, m)
                || facts.steps.iter().any(|s| s.has("bridge") && s.has(m))
        }) else {
            continue;
        };
        let ports: Vec<&crate::facts::Device> =
            facts.devices.iter().filter(|d| d.master.as_ref() == Some(bridge)).collect();
        let shaped = ports.iter().filter(|p| p.root().is_some()).count();
        if ports.len() > 1 && shaped == 1 && facts.dev.as_ref() != Some(&device.name) {
            let Some(at) = device.root().and_then(|r| r.step) else { continue };
            let reason = format!(
                "{bridge} has {} {}; what leaves by the others passes no qdisc of this script.",
                ports.len(),
                if is_bond(facts, bridge) { "slaves" } else { "ports" }
            );
            found.at(
                at,
                &device.name,
                Say::new(
                    format!(
                        "{} is a {} of {bridge}",
                        device.name,
                        if is_bond(facts, bridge) { "slave" } else { "port" }
                    ),
                    reason,
                    facts.steps[at].with("dev", bridge),
                ),
            );
        }
    }
}

fn port_rule(facts: &Facts, found: &mut Found) {
    let called = facts.steps.iter().flat_map(|s| &s.words).any(|w| w.contains("bridge-nf-call-iptables"));
    for ruled in &facts.netfilter.rules {
        let port = |i: &Option<Iface>| {
            i.as_ref().filter(|i| !i.wildcard && !i.invert).and_then(|i| {
                facts
                    .devices
                    .iter()
                    .find(|d| d.name == i.name)?
                    .master
                    .as_ref()
                    .map(|m| (i.name.clone(), m.clone()))
            })
        };
        if let Some((name, bridge)) =
            port(&ruled.rule.input).or(port(&ruled.rule.output)).filter(|p| p.1.starts_with("br"))
        {
            let step = &facts.steps[ruled.step];
            if !called {
                let reason = format!("{name} is a port of {bridge}; packets come in by {bridge}.");
                found.at(
                    ruled.step,
                    &name,
                    Say::new(
                        format!("no packet fits this rule: {name} is a port"),
                        reason,
                        step.text().replace(&format!(" {name} "), &format!(" {bridge} ")),
                    ),
                );
            }
        }
    }
}

/// How many ifb devices the module makes where the script loads it; `None` where it does not.
fn by_module(facts: &Facts) -> Option<(usize, u32)> {
    let loads = |s: &&(usize, &Step)| {
        matches!(s.1.program(), "modprobe" | "insmod")
            && s.1.words.iter().any(|w| w == "ifb" || w.ends_with("/ifb.ko") || w == "ifb.ko")
    };
    let (at, step) = facts.steps.iter().enumerate().find(|s| loads(&s))?;
    let said = step.words.iter().find_map(|w| w.strip_prefix("numifbs="));
    Some((at, said.map_or(2, |n| n.parse().unwrap_or(u32::MAX))))
}

fn no_ifb(facts: &Facts, found: &mut Found) {
    let module = by_module(facts);
    for name in facts.foreign.iter().filter(|n| n.starts_with("ifb")) {
        let number: Option<u32> = name[3..].parse().ok();
        let made = match (module, number) {
            (Some((_, many)), Some(number)) => number < many,
            (Some(_), None) => true,
            (None, _) => facts.source.mentions(&["modprobe", "insmod", "numifbs"]),
        };
        if facts.dev.as_ref() == Some(name) || made {
            continue;
        }
        // Only a command that needs it is at fault: a deletion may find nothing.
        let needs = |s: &Step| s.has(name) && !s.has("del") && !s.has("delete");
        let Some(at) = facts.steps.iter().position(needs) else { continue };
        let step = &facts.steps[at];
        // One of the script's own has nearly that name; numbers are another matter.
        let letters = |n: &str| n.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        let is_near = |made: &String| {
            let most = 1 + usize::from(name.len() > 7);
            letters(made) != letters(name) && strsim::damerau_levenshtein(made, name) <= most
        };
        let makes = |(at, s): (usize, &Step)| Some((at, crate::names::made_ifb(&s.words)?));
        // One that nothing else names is meant rather than one in use.
        let used = |made: &str| facts.steps.iter().filter(|s| s.has(made)).count() > 1;
        let all = facts.steps.iter().enumerate().filter_map(makes).filter(|(_, made)| is_near(made));
        if let Some((by, made)) = all.min_by_key(|(_, made)| used(made)) {
            // Where the other name is used throughout, the one that makes it is at fault.
            let often = facts.steps.iter().filter(|s| needs(s)).count() > 1;
            let (at, word, fix) = match often {
                true if used(&made) => (at, name.as_str(), String::new()),
                true => (by, made.as_str(), facts.steps[by].with_word(&made, name)),
                false => (at, name.as_str(), step.with_word(name, &made)),
            };
            let say = Say::new(format!("{name} is never created"), format!("The script makes {made}."), fix);
            found.at(at, word, say.unsure(true));
            continue;
        }
        let (reason, fix) = match module {
            Some((_, many)) => (
                format!(
                    "The module makes {many} (ifb0 to ifb{}); {name} is not among them.",
                    many.saturating_sub(1)
                ),
                format!("ip link add {name} type ifb"),
            ),
            None => (
                "Neither modprobe ifb nor ip link add stands before this.".to_owned(),
                format!("ip link add {name} type ifb\nip link set dev {name} up"),
            ),
        };
        let plain = facts
            .source
            .line(step.line)
            .trim_start()
            .starts_with(step.words.first().map_or("ip", String::as_str));
        let begins = facts.source.form != crate::source::Form::Batch
            && step.file == facts.name
            && plain
            && step.calls.is_empty();
        // As the script writes the name.
        let edit =
            begins.then(|| crate::finding::Edit::Before(step.line, format!("ip link add {name} type ifb")));
        found.at(at, name, Say::new(format!("{name} is never created"), reason, fix).edit(edit));
    }
}

fn other_device(facts: &Facts, found: &mut Found) {
    let Some(dev) = &facts.dev else { return };
    let on = |name: &str| {
        facts.devices.iter().any(|d| d.name == name && d.qdiscs.iter().any(|q| q.step.is_some()))
    };
    let others: Vec<&crate::facts::Device> = facts.shaped().filter(|d| d.name != *dev).collect();
    if !on(dev)
        && let Some(other) = others.first()
    {
        let Some(at) = other
            .qdiscs
            .iter()
            .find(|q| q.parent == Handle::ROOT || q.parent == Handle::INGRESS)
            .and_then(|q| q.step)
        else {
            return;
        };
        let redirected = others.iter().any(|d| d.kind == "ifb");
        if !redirected {
            let names: Vec<&str> = others.iter().map(|d| d.name.as_str()).collect();
            found.at(
                at,
                &other.name,
                Say::new(
                    format!("{dev} is not shaped"),
                    format!("The script shapes {}.", names.join(", ")),
                    facts.steps[at].with("dev", dev),
                ),
            );
        }
    }
}
