//! PS101 to PS113: rates and ceilings of HTB's classes.

use crate::facts::{Class, Device, Facts, lasts, rate};
use crate::finding::{Found, Rule, Say};
use penstock_lang::tc::Command;
use penstock_model::Handle;
use penstock_sched::traits::{LimitsRate, Sorting};
use std::collections::BTreeMap;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS101",
        "children are promised more than their parent has",
        "HTB lets a class send up to its `rate` without asking its parent. Where the rates of the children add up to more than the parent's rate, the children \
         together pass the parent's \
         limit, and nobody is guaranteed anything: the rates are not scaled down.",
        children_above_parent,
    ),
    Rule::warning(
        "PS102",
        "ceil above the parent's ceil",
        "A class borrows from its parent, and the parent never sends more than its own ceil. The part of the ceil above that can never be used.",
        ceil_above_parent,
    ),
    Rule::warning(
        "PS103",
        "ceil below rate",
        "A ceil below the rate takes back what the rate promises: the class never gets more than its ceil.",
        ceil_below_rate,
    ),
    Rule::warning(
        "PS104",
        "rate or ceil above the link",
        "If the shaper lets more through than the link carries, the queue forms in the modem or the card, where none of the classes and priorities count. A shaper \
         must be the narrowest place, \
         so its rate belongs a little below the link's.",
        above_link,
    ),
    Rule::warning(
        "PS105",
        "a class without a parent cannot borrow",
        "Classes right below HTB's qdisc have nobody to borrow from: once their rate is used up they wait, whatever their ceil says. Put one class with the link's rate \
         below the qdisc and the others below it.",
        root_borrows,
    ),
    Rule::warning(
        "PS106",
        "no default class",
        "HTB sends what no filter sorts through its direct queue: past all classes, unshaped and first. ARP, IPv6 and everything forgotten goes there.",
        no_default,
    ),
    Rule::warning(
        "PS107",
        "the default class does not exist",
        "A default that names no class is the same as none: what no filter sorts goes past all classes, unshaped. Minor numbers of classes are hexadecimal, in \
         `default` too.",
        default_missing,
    ),
    Rule::warning(
        "PS108",
        "the default is a class with children",
        "Only leaves have queues. HTB treats a default that is an inner class as none: the packets go past all classes, unshaped.",
        default_inner,
    ),
    Rule::warning(
        "PS109",
        "the parent class does not exist",
        "HTB does not refuse a parent that is not there: the class becomes one right below the qdisc, and neither the limit of the intended parent nor borrowing works.",
        parent_missing,
    ),
    Rule::note(
        "PS110",
        "quantum far from what one turn should be",
        "When leaves of one priority share what is left, each may send `quantum` bytes a turn; HTB computes rate / r2q (10 unless said otherwise) and, outside 1000 to \
         200000 bytes, clips it and says so. Small \
         quanta make small turns and shares that are wrong; 200000 bytes are more than 130 packets in a row, while the others wait.",
        quantum_computed,
    ),
    Rule::warning(
        "PS111",
        "quantum below one packet",
        "With a quantum below a full frame a class must wait several turns for one packet, and the shares are no longer those of the quanta.",
        quantum_small,
    ),
    Rule::warning(
        "PS112",
        "priority above 7",
        "HTB has eight priorities, 0 to 7; a greater number silently becomes 7, so classes that were to differ are equal.",
        prio_clipped,
    ),
    Rule::note(
        "PS113",
        "two classes share the first priority",
        "HTB's priorities begin at 0. Where the numbers begin at 1 and two classes have it, neither goes before the other: what is left is shared by their quanta.",
        shared_first,
    ),
];

/// HTB's classes of a device.
pub fn htb(device: &Device) -> impl Iterator<Item = &Class> {
    device.classes.iter().filter(|c| c.kind == "htb")
}

fn each_htb(facts: &Facts) -> impl Iterator<Item = (&Device, &Class)> {
    facts.devices.iter().flat_map(|d| htb(d).map(move |c| (d, c)))
}

fn children_above_parent(facts: &Facts, found: &mut Found) {
    for (device, parent) in each_htb(facts).filter(|c| !c.1.children.is_empty()) {
        let mut children: Vec<&Class> = parent.children.iter().filter_map(|&id| device.class(id)).collect();
        children.sort_by_key(|c| c.step);
        let sum: u64 = children.iter().map(|c| c.rate()).sum();
        if sum <= parent.rate() {
            continue;
        }
        let mut before = 0;
        let alone: Vec<&Class> = children.iter().copied().filter(|c| c.rate() > parent.rate()).collect();
        let mut guilty = alone.clone();
        if alone.is_empty() {
            guilty.extend(children.iter().find(|c| {
                before += c.rate();
                before > parent.rate()
            }));
            before -= guilty.first().map_or(0, |c| c.rate());
        }
        for child in guilty {
            let Some(at) = child.step else { continue };
            let step = &facts.steps[at];
            let word = step.value(&["rate"]).unwrap_or("");
            let left = parent.rate().saturating_sub(before);
            let reason = format!(
                "The children of {} have {} together ({}), the parent has {}.",
                parent.id,
                rate(sum),
                children
                    .iter()
                    .take(6)
                    .map(|c| format!("{} {}", c.id, rate(c.rate())))
                    .collect::<Vec<_>>()
                    .join(", "),
                rate(parent.rate()),
            );
            let fix = if left > 0 { step.with("rate", &rate(left)) } else { String::new() };
            found.at(
                at,
                word,
                Say::new(
                    format!("class {} is promised more than its parent {} has left", child.id, parent.id),
                    reason,
                    fix,
                ),
            );
        }
    }
}

fn ceil_above_parent(facts: &Facts, found: &mut Found) {
    for (device, class) in each_htb(facts) {
        let (Some(parent), Some(at)) = (device.class(class.parent), class.step) else { continue };
        let step = &facts.steps[at];
        let Some(word) = step.value(&["ceil"]) else { continue };
        if class.ceil() > parent.ceil() && class.rate() <= parent.rate() {
            let reason = format!(
                "{} may go up to {}, but its parent {} to {} only.",
                class.id,
                rate(class.ceil()),
                parent.id,
                rate(parent.ceil())
            );
            found.at(
                at,
                word,
                Say::new(
                    format!("the ceil of {} is above its parent's", class.id),
                    reason,
                    step.with("ceil", &rate(parent.ceil())),
                ),
            );
        }
    }
}

fn ceil_below_rate(facts: &Facts, found: &mut Found) {
    for (_, class) in each_htb(facts).filter(|c| c.1.ceil() < c.1.rate()) {
        let Some(at) = class.step else { continue };
        let step = &facts.steps[at];
        let reason = format!(
            "{} is promised {} and may have {} at most.",
            class.id,
            rate(class.rate()),
            rate(class.ceil())
        );
        found.at(
            at,
            step.value(&["ceil"]).unwrap_or(""),
            Say::new(
                format!("the ceil of {} is below its rate", class.id),
                reason,
                step.with("ceil", &rate(class.rate())),
            ),
        );
    }
}

fn above_link(facts: &Facts, found: &mut Found) {
    for device in &facts.devices {
        let Some(link) = facts.link_of(&device.name) else { continue };
        let top = |c: &&Class| c.kind == "htb" && device.class(c.parent).is_none();
        for class in device.classes.iter().filter(top) {
            if let (Some(at), true) = (class.step, class.ceil() > link) {
                let step = &facts.steps[at];
                let name = if class.rate() > link { "rate" } else { "ceil" };
                let reason =
                    format!("{} may send {}, the link carries {}.", class.id, rate(class.ceil()), rate(link));
                let fix = step.without("ceil").replace(
                    &format!("rate {}", step.value(&["rate"]).unwrap_or("")),
                    &format!("rate {}", rate(link / 100 * 95)),
                );
                found.at(
                    at,
                    step.value(&[name]).unwrap_or(""),
                    Say::new(format!("class {} is faster than the link", class.id), reason, fix),
                );
            }
        }
        for qdisc in &device.qdiscs {
            let LimitsRate::Qdisc(name) = qdisc.traits().limits_rate else { continue };
            let has = qdisc.most().unwrap_or(0);
            if let (Some(at), true) = (qdisc.step, has > link) {
                let step = &facts.steps[at];
                let reason =
                    format!("{} lets {} through, the link carries {}.", qdisc.kind, rate(has), rate(link));
                found.at(
                    at,
                    step.value(&[name]).unwrap_or(""),
                    Say::new(
                        format!("{} is faster than the link", qdisc.kind),
                        reason,
                        step.with(name, &rate(link / 100 * 95)),
                    ),
                );
            }
        }
    }
}

fn root_borrows(facts: &Facts, found: &mut Found) {
    for (device, class) in each_htb(facts) {
        let Some(at) = class.step else { continue };
        let step = &facts.steps[at];
        let Some(word) = step.value(&["ceil"]) else { continue };
        let meant_one = matches!(step.tc(), Some(Command::Class { req, .. }) if req.parent.minor() != 0 && req.parent != Handle::ROOT);
        if device.class(class.parent).is_none() && class.ceil() > class.rate() && !meant_one {
            let reason = format!(
                "{} has {} and nobody above it to borrow the rest up to {} from.",
                class.id,
                rate(class.rate()),
                rate(class.ceil())
            );
            // One class above them all, with a minor that is free.
            let qdisc = class.id.qdisc();
            let free = [1u16, 0xffff, 0xfffe]
                .into_iter()
                .map(|m| Handle::new(qdisc.major(), m))
                .find(|h| device.class(*h).is_none());
            let top = free.unwrap_or(class.parent);
            let fix = format!(
                "tc class add dev {} parent {qdisc} classid {top} htb rate {word}\n{}",
                device.name,
                step.with("parent", &top.to_string())
            );
            found.at(at, word, Say::new(format!("{} will never reach its ceil", class.id), reason, fix));
        }
    }
}

/// Whether every packet, or every one of IPv4, is sorted by some filter.
pub fn sorts_all(device: &Device, qdisc: Handle) -> bool {
    device.filters.iter().filter(|f| f.parent == qdisc).any(|f| {
        f.takes_all()
            || f.kind == "fw" && f.handle == 0
            || !matches!(f.kind.as_str(), "u32" | "fw" | "flower" | "basic" | "matchall" | "route")
            || f.options.has("link")
    })
}

fn no_default(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["htb"]) {
        let any = device.classes_of(qdisc.handle).next().is_some();
        if any && qdisc.options.u32("default").unwrap_or(0) == 0 && !sorts_all(device, qdisc.handle) {
            let leaf = device.classes_of(qdisc.handle).filter(|c| c.children.is_empty()).last();
            let fix = leaf
                .map_or(String::new(), |l| facts.steps[at].with("default", &format!("{:x}", l.id.minor())));
            let reason = "default is 0: what no filter sorts is sent unshaped, before all classes".to_owned();
            found.at(at, "htb", Say::new(format!("htb {} has no default class", qdisc.handle), reason, fix));
        }
    }
}

fn default_missing(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made() {
        if let Sorting::Tree { direct } = qdisc.traits().sorting {
            let default = qdisc.options.u32("default").unwrap_or(0);
            let id = Handle::new(qdisc.handle.major(), default as u16);
            if default == 0
                || device.class(id).is_some_and(|c| c.id != qdisc.handle)
                || device.classes_of(qdisc.handle).all(|c| c.id == qdisc.handle)
                || was_refused(facts, &device.name, id)
            {
                continue;
            }
            let step = &facts.steps[at];
            let word = step.value(&["default"]).unwrap_or("");
            // 16 and 10, hexadecimal and decimal, are the usual mistake.
            let twin = word.parse::<u16>().ok().map(|d| Handle::new(qdisc.handle.major(), d));
            let twin = twin.filter(|t| device.class(*t).is_some());
            let other = u16::from_str_radix(&format!("{}", default), 16)
                .ok()
                .map(|d| Handle::new(qdisc.handle.major(), d));
            let twin = twin.or(other.filter(|t| device.class(*t).is_some()));
            let leaf = device
                .classes_of(qdisc.handle)
                .filter(|c| c.children.is_empty() && c.id.minor() != 0)
                .last()
                .map(|c| c.id);
            let hint = twin.map_or(String::new(), |t| {
                format!(" Minors are hexadecimal: {t} would be `default {:x}`.", t.minor())
            });
            // Where a command that tc did not understand would have made it, that command is what is wrong.
            let meant = |s: &crate::facts::Step| {
                let class = s.value(&["classid"]).and_then(|c| Handle::parse_classid(c).ok());
                !s.ok() && s.program() == "tc" && s.has("class") && s.tc().is_none() && class == Some(id)
            };
            let to = twin.or(leaf).filter(|_| !facts.steps.iter().any(meant));
            let fix = to.map_or(String::new(), |t| step.with("default", &format!("{:x}", t.minor())));
            let what = if direct { "sent unshaped, before all classes" } else { "thrown away" };
            let reason = format!("`default {word}` is class {id}; what no filter sorts is {what}.{hint}");
            let say = Say::new(format!("the default class {id} does not exist"), reason, fix);
            found.at(at, word, say.unsure(twin.is_none()));
        }
    }
}

/// Whether a command would have made the class and was refused: that is said already.
pub fn was_refused(facts: &Facts, device: &str, id: Handle) -> bool {
    facts.steps.iter().filter(|s| !s.ok()).any(|s| match s.tc() {
        // On a device of another name as well: the name may be what is wrong.
        Some(Command::Class { dev: Some(dev), req }) => {
            req.classid == id
                && (dev == device || !facts.devices.iter().any(|d| d.name == *dev && d.root().is_some()))
        }
        _ => false,
    })
}

fn default_inner(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["htb"]) {
        let id = Handle::new(qdisc.handle.major(), qdisc.options.u32("default").unwrap_or(0) as u16);
        let Some(class) = device.class(id).filter(|c| !c.children.is_empty()) else { continue };
        let step = &facts.steps[at];
        let last = class.children.last().copied().unwrap_or(id);
        let reason = format!(
            "{id} has the children {}.",
            class.children.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        );
        found.at(
            at,
            step.value(&["default"]).unwrap_or(""),
            Say::new(
                format!("the default {id} is not a leaf"),
                reason,
                step.with("default", &format!("{:x}", last.minor())),
            ),
        );
    }
}

fn parent_missing(facts: &Facts, found: &mut Found) {
    for (device, class) in each_htb(facts) {
        let Some(at) = class.step else { continue };
        let Some(Command::Class { req, .. }) = facts.steps[at].tc() else { continue };
        let asked = req.parent.minor() != 0 && req.parent != Handle::ROOT;
        if asked && device.class(class.parent).is_none() {
            let step = &facts.steps[at];
            let word = step.value(&["parent"]).unwrap_or("");
            let later = device.class(req.parent).is_some();
            let reason = match later {
                true => format!(
                    "{} is made further down; when {} is made it is not there, so {} becomes a class right below the qdisc.",
                    req.parent, class.id, class.id
                ),
                false => format!(
                    "No command makes {}; the kernel takes {} as a class right below the qdisc and says nothing.",
                    req.parent, class.id
                ),
            };
            let fix = match later {
                true => step.text(),
                false => format!(
                    "tc class add dev {} parent {} classid {} htb rate {}",
                    device.name,
                    req.parent.qdisc(),
                    req.parent,
                    rate(class.ceil().max(class.rate()))
                ),
            };
            // What would have made it was refused, and that is said.
            let parent = req.parent.to_string();
            let refused = |s: &crate::facts::Step| {
                !s.ok()
                    && s.value(&["classid"]) == Some(parent.as_str())
                    && s.value(&["dev"]) == step.value(&["dev"])
            };
            if facts.steps[..at].iter().any(refused) {
                continue;
            }
            found.at(
                at,
                word,
                Say::new(
                    format!("the parent {} of class {} does not exist", req.parent, class.id),
                    reason,
                    fix,
                ),
            );
        }
    }
}

fn quantum_computed(facts: &Facts, found: &mut Found) {
    // Leaves of each qdisc: those that share turns.
    let mut leaves: BTreeMap<(&str, Handle), usize> = BTreeMap::new();
    for (device, class) in each_htb(facts).filter(|c| c.1.children.is_empty()) {
        *leaves.entry((&device.name, class.id.qdisc())).or_default() += 1;
    }
    for (device, class) in each_htb(facts).filter(|c| c.1.children.is_empty()) {
        let Some(at) = class.step else { continue };
        let step = &facts.steps[at];
        let rivals = leaves.get(&(device.name.as_str(), class.id.qdisc())).copied().unwrap_or(0);
        let Some(qdisc) = device.qdisc(class.id.qdisc()) else { continue };
        let r2q = u64::from(qdisc.options.u32("r2q").unwrap_or(10)).max(1);
        let computed = class.rate() / r2q;
        // What never borrows takes no turns.
        if rivals < 2 || class.ceil() <= class.rate() {
            continue;
        }
        if let Some(word) = step.value(&["quantum"]) {
            given_quantum(device, class, at, word, step, found);
            continue;
        }
        // Somewhat above the clip the turns are long and the shares still about right.
        let chosen = facts.steps.get(qdisc.step.unwrap_or(usize::MAX)).is_some_and(|s| s.has("r2q"));
        let most = if chosen { 200_000 } else { 2_000_000 };
        if (1000..=most).contains(&computed) {
            continue;
        }
        let (word, fix) = if computed < 1000 { ("small", "1514") } else { ("big", "30280") };
        let reason = format!(
            "{} / r2q {r2q} is {computed} bytes; the kernel makes that {} and says: quantum of class {:X} is {word}. Consider r2q change.",
            rate(class.rate()),
            computed.clamp(1000, 200_000),
            class.id.0
        );
        found.at(
            at,
            step.value(&["rate"]).unwrap_or(""),
            Say::new(format!("the quantum of {} is too {word}", class.id), reason, step.with("quantum", fix)),
        );
    }
}

/// A quantum that was given and is many packets.
fn given_quantum(
    device: &Device,
    class: &Class,
    at: usize,
    word: &str,
    step: &crate::facts::Step,
    found: &mut Found,
) {
    let quantum = u64::from(class.options.u32("quantum").unwrap_or(0));
    if quantum > 200_000 {
        let top = class.ceil().max(1);
        let reason = format!(
            "{quantum} bytes are {} packets in one turn, {} at {}; the other classes wait that long.",
            quantum / device.frame(),
            lasts(quantum, top),
            rate(top)
        );
        found.at(
            at,
            word,
            Say::new(
                format!("the quantum of {} is too big", class.id),
                reason,
                step.with("quantum", "30280"),
            ),
        );
    }
}

/// The least quantum that lets a packet of the network's go in one turn: tunnels and PPPoE take some of the MTU.
pub fn least_quantum(device: &Device) -> u64 {
    u64::from(device.mtu) * 9 / 10
}

fn quantum_small(facts: &Facts, found: &mut Found) {
    for (device, class) in facts.devices.iter().flat_map(|d| d.classes.iter().map(move |c| (d, c))) {
        let Some(at) = class.step else { continue };
        let step = &facts.steps[at];
        let Some(word) = step.value(&["quantum"]) else { continue };
        let quantum = u64::from(class.options.u32("quantum").unwrap_or(0));
        if class.children.is_empty() && quantum > 0 && quantum < least_quantum(device) {
            let reason = format!("{quantum} bytes a turn; a full frame has {}.", device.frame());
            found.at(
                at,
                word,
                Say::new(
                    format!("the quantum of {} is less than one packet", class.id),
                    reason,
                    step.with("quantum", &device.frame().to_string()),
                ),
            );
        }
    }
}

fn prio_clipped(facts: &Facts, found: &mut Found) {
    for (at, step, command) in facts.tc_done() {
        let Command::Class { req, .. } = command else { continue };
        let prio = step.value(&["prio"]).and_then(|p| p.parse::<u32>().ok()).unwrap_or(0);
        if req.kind.as_deref() == Some("htb") && prio > 7 {
            let word = step.value(&["prio"]).unwrap_or("");
            found.at(
                at,
                word,
                Say::new(
                    format!("HTB has no priority {prio}"),
                    format!("{prio} silently becomes 7, the last of eight."),
                    step.with("prio", "7"),
                ),
            );
        }
    }
}

fn shared_first(facts: &Facts, found: &mut Found) {
    for (device, parent) in each_htb(facts).filter(|c| c.1.children.len() > 2) {
        let mut leaves: Vec<&Class> = parent
            .children
            .iter()
            .filter_map(|&id| device.class(id))
            .filter(|c| c.children.is_empty())
            .collect();
        leaves.sort_by_key(|c| c.step);
        let prio = |c: &Class| c.options.u32("prio").unwrap_or(0);
        let first = leaves.iter().map(|c| prio(c)).min().unwrap_or(0);
        let sharing: Vec<&&Class> = leaves.iter().filter(|c| prio(c) == first).collect();
        let others = leaves.iter().any(|c| prio(c) > first);
        if let (1.., true, [a, b]) = (first, others, sharing.as_slice())
            && (a.rate(), a.ceil()) == (b.rate(), b.ceil())
            && let Some(at) = b.step
        {
            let step = &facts.steps[at];
            let reason = format!(
                "{} and {} both have prio {first}, the same rate and the same ceil, and no class has prio 0.",
                a.id, b.id
            );
            found.at(
                at,
                step.value(&["prio"]).unwrap_or(""),
                Say::new(
                    format!("{} has no priority over {}", a.id, b.id),
                    reason,
                    step.with("prio", &(first + 1).to_string()),
                ),
            );
        }
    }
}
