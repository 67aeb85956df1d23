//! PS17x: where filters lead, and classes nobody leads to.

use crate::facts::{Device, Facts};
use crate::filters::Filter;
use crate::finding::{Found, Rule, Say};
use penstock_lang::iptables::{Edit, Target};
use penstock_lang::tc::Command;
use penstock_model::Handle;
use penstock_sched::traits::Classes;
use std::collections::BTreeSet;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS170",
        "a filter leads to a class that does not exist",
        "The kernel does not ask whether the class is there. Packets that fit go to the default, or unshaped past all classes. Minor numbers are hexadecimal: the \
         class of `1:10` is the sixteenth.",
        no_class,
    ),
    Rule::warning(
        "PS171",
        "a filter leads to a class with children",
        "Only leaves have queues. HTB and HFSC look for filters on the inner class next, and where there are none (or none fits) the packet goes to the default.",
        inner_class,
    ),
    Rule::warning(
        "PS172",
        "a filter on a leaf is never asked",
        "HTB asks the filters of the qdisc, then those of the inner class they lead to. At a leaf the search is over: filters on it are dead.",
        on_leaf,
    ),
    Rule::warning(
        "PS173",
        "filters on an inner class that nothing leads to",
        "A class's own filters are asked only after a filter above has led there.",
        unled,
    ),
    Rule::warning(
        "PS174",
        "a filter matches packets but does nothing with them",
        "Without flowid (classid), link or action a match decides nothing.",
        no_target,
    ),
    Rule::warning(
        "PS175",
        "no packet ever reaches a class",
        "No filter, no default, no CLASSIFY and no skbedit names it: its rate is guaranteed to nobody.",
        unused_class,
    ),
    Rule::warning(
        "PS176",
        "a class lost its qdisc when it got children",
        "HTB throws a leaf's qdisc away when a class is put below it. Give qdiscs to the leaves.",
        lost_leaf,
    ),
    Rule::warning(
        "PS177",
        "prio 0 is not a priority",
        "`prio 0` means the kernel is to choose one: 49152, then 49151 and so on, so that filters given later are asked first.",
        prio_zero,
    ),
    Rule::warning(
        "PS178",
        "a hash table of u32 that nothing links to",
        "Filters in a table of their own are asked only through a filter with `link`.",
        unlinked,
    ),
    Rule::note(
        "PS179",
        "a filter leads past all classes",
        "A class `1:` or `1:0` is HTB itself: the packet goes to the direct queue (`HTB_DIRECT`), before every class and without any rate. For a few packets that may be \
         meant; for one's traffic it is a minor number that is missing.",
        direct,
    ),
];

fn shapers(facts: &Facts) -> impl Iterator<Item = (&Device, &Filter)> {
    facts.devices.iter().flat_map(|d| d.filters.iter().map(move |f| (d, f)))
}

/// The classful qdisc a filter sorts for, where its classes are the script's.
fn owner<'a>(device: &'a Device, filter: &Filter) -> Option<&'a crate::facts::Qdisc> {
    device.qdisc(filter.parent.qdisc()).filter(|q| q.traits().is_classful() && q.traits().takes_filters)
}

fn word<'a>(facts: &'a Facts, filter: &Filter) -> &'a str {
    facts.steps[filter.step].value(&["flowid", "classid"]).unwrap_or("")
}

fn retarget(facts: &Facts, filter: &Filter, to: Handle) -> String {
    let step = &facts.steps[filter.step];
    step.with(if step.has("classid") { "classid" } else { "flowid" }, &to.to_string())
}

fn direct(facts: &Facts, found: &mut Found) {
    for (device, filter) in shapers(facts) {
        let (Some(qdisc), Some(id)) = (owner(device, filter), filter.classid) else { continue };
        let ends = filter.actions().all(|a| a.0 == "gact" || a.0 == "police");
        if qdisc.kind == "htb" && id == qdisc.handle && filter.reached && ends && filter.kind != "flow" {
            let have: Vec<String> = device
                .classes_of(qdisc.handle)
                .filter(|c| c.children.is_empty())
                .take(8)
                .map(|c| c.id.to_string())
                .collect();
            let reason = format!("{id} is the qdisc. Its leaves are {}.", have.join(", "));
            let say = Say::new("these packets are not shaped", reason, "");
            found.at(filter.step, word(facts, filter), say);
        }
    }
}

/// The number and its place in a line that gives a control group its class: `echo 0x100001 > …/net_cls.classid`, `cgset -r net_cls.classid=0x100001`.
fn class_of_group(line: &str) -> Option<(Handle, &str, u32)> {
    let at = line.find("net_cls.classid").filter(|_| !line.trim_start().starts_with('#'))?;
    let behind = line[at..].strip_prefix("net_cls.classid=").and_then(|t| t.split_whitespace().next());
    let before = || line[..at].split('>').next()?.split("echo ").nth(1)?.split_whitespace().last();
    let word = behind.or_else(before)?.trim_matches(['"', '\'']);
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    let number = match digits {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => word.parse().ok()?,
    };
    let column = line[..line.find(word)?].chars().count() as u32 + 1;
    (number != 0).then_some((Handle(number), word, column))
}

/// Classes of control groups, where a filter of the kind cgroup sorts by them (`task_cls_classid`).
fn groups(facts: &Facts, found: &mut Found) {
    let sorting = || shapers(facts).filter(|(_, f)| f.kind == "cgroup");
    for (at, line) in facts.source.lines.iter().enumerate() {
        let Some((id, word, column)) = class_of_group(line) else { continue };
        if sorting().next().is_none() || sorting().any(|(d, _)| d.class(id).is_some()) || facts.partial {
            continue;
        }
        let Some(qdisc) =
            sorting().find_map(|(d, f)| owner(d, f).filter(|q| d.classes_of(q.handle).next().is_some()))
        else {
            continue;
        };
        let reason = format!(
            "{word} is the class {id}: the upper 16 bits are the qdisc's number, the lower 16 the class's. The filter sorts for {}, which has no such class.",
            qdisc.handle
        );
        let say = Say::new(format!("class {id} does not exist"), reason, "");
        found.at_line(at as u32 + 1, column, word.chars().count() as u32, say);
    }
}

fn no_class(facts: &Facts, found: &mut Found) {
    groups(facts, found);
    for (device, filter) in shapers(facts) {
        let (Some(qdisc), Some(id)) = (owner(device, filter), filter.classid) else { continue };
        // Only a u32, fw and the like name one class; others count from it.
        if filter.kind == "flow" || id == Handle::UNSPEC {
            continue;
        }
        let there = id.qdisc() == qdisc.handle && (device.class(id).is_some() || id == qdisc.handle);
        let near = id.major() == 0 && device.class(Handle::new(qdisc.handle.major(), id.minor())).is_some();
        if there || near || super::rates::was_refused(facts, &device.name, id) {
            continue;
        }
        let own = |minor: u16| {
            Some(Handle::new(qdisc.handle.major(), minor))
                .filter(|h| minor != 0 && device.class(*h).is_some())
        };
        let text = word(facts, filter).rsplit(':').next().unwrap_or("").to_owned();
        let twin = text
            .parse::<u16>()
            .ok()
            .and_then(own)
            .or_else(|| u16::from_str_radix(&id.minor().to_string(), 16).ok().and_then(own));
        let elsewhere = (id.qdisc() != qdisc.handle).then(|| own(id.minor())).flatten();
        let near = elsewhere.or(twin);
        let hint = match (elsewhere, twin) {
            (Some(h), _) => format!(" The filter sorts for {}, whose class is {h}.", qdisc.handle),
            (None, Some(h)) => format!(" Minors are hexadecimal; {h} is there."),
            _ if id.qdisc() != qdisc.handle => {
                format!(" The filter sorts for {}, and {id} is not one of its classes.", qdisc.handle)
            }
            _ => String::new(),
        };
        let mut have: Vec<String> = device.classes_of(qdisc.handle).map(|c| c.id.to_string()).collect();
        let more = have.len().saturating_sub(8);
        have.truncate(8);
        let list = have.join(", ");
        let there = match (have.is_empty(), more) {
            (true, _) => "has no class".to_owned(),
            (_, 0) => format!("has the classes {list}"),
            (_, more) => format!("has the classes {list} and {more} more"),
        };
        let reason = format!("{} {there}.{hint}", qdisc.handle);
        let fix = near.map_or(String::new(), |h| retarget(facts, filter, h));
        found.at(
            filter.step,
            word(facts, filter),
            Say::new(format!("the filter leads to {id}, which does not exist"), reason, fix)
                .unsure(twin.is_none()),
        );
    }
}

fn inner_class(facts: &Facts, found: &mut Found) {
    for (device, filter) in shapers(facts) {
        let Some(class) = filter.classid.and_then(|id| device.class(id)) else { continue };
        if matches!(class.kind, "htb" | "hfsc")
            && !class.children.is_empty()
            && filter.parent != class.id
            && filter.parent.qdisc() == class.id.qdisc()
            && !device.filters.iter().any(|f| f.parent == class.id)
        {
            let leaf = class.children.last().copied().unwrap_or(class.id);
            let reason = format!(
                "{} has the children {} and no filters of its own.",
                class.id,
                class.children.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            );
            found.at(
                filter.step,
                word(facts, filter),
                Say::new(
                    format!("the filter leads to {}, which is not a leaf", class.id),
                    reason,
                    retarget(facts, filter, leaf),
                ),
            );
        }
    }
}

fn on_leaf(facts: &Facts, found: &mut Found) {
    for (device, filter) in shapers(facts) {
        let Some(class) = device.class(filter.parent).filter(|c| c.kind == "htb" && c.children.is_empty())
        else {
            continue;
        };
        let step = &facts.steps[filter.step];
        let fix = step.with("parent", &class.id.qdisc().to_string());
        let reason =
            format!("{} is a leaf; filters belong on {} or on an inner class.", class.id, class.id.qdisc());
        found.at(
            filter.step,
            step.value(&["parent"]).unwrap_or(""),
            Say::new(format!("the filter on the leaf {} is never asked", class.id), reason, fix),
        );
    }
}

fn unled(facts: &Facts, found: &mut Found) {
    let named = Named::of(facts);
    for (device, filter) in shapers(facts) {
        let Some(class) = device.class(filter.parent).filter(|c| c.kind == "htb" && !c.children.is_empty())
        else {
            continue;
        };
        let led = device.filters.iter().any(|f| {
            f.classid == Some(class.id) || !f.exact && f.kind != "u32" && f.parent == class.id.qdisc()
        });
        if !led && !named.has(class.id) {
            let step = &facts.steps[filter.step];
            let reason = format!("No filter of {} leads to {}.", class.id.qdisc(), class.id);
            found.at(
                filter.step,
                step.value(&["parent"]).unwrap_or(""),
                Say::new(
                    format!("the filters on {} are never asked", class.id),
                    reason,
                    step.with("parent", &class.id.qdisc().to_string()),
                ),
            );
        }
    }
}

fn no_target(facts: &Facts, found: &mut Found) {
    for (device, filter) in shapers(facts) {
        let acts = filter.actions().next().is_some();
        let sorts = matches!(filter.kind.as_str(), "u32" | "flower" | "matchall" | "basic");
        if sorts
            && filter.classid.is_none()
            && !acts
            && !filter.options.has("link")
            && !filter.options.has("hw_tc")
        {
            let class = device.classes.last().map_or(Handle::new(1, 1), |c| c.id);
            let step = &facts.steps[filter.step];
            found.at(
                filter.step,
                &filter.kind,
                Say::new(
                    "the filter does nothing with what fits",
                    "It names no class and no action.".to_owned(),
                    step.with("flowid", &class.to_string()),
                ),
            );
        }
    }
}

/// Whether a class is named by something other than filters of its qdisc.
/// Whether something but tc's filters may name a class: a rule, or the text of another program. Gathered once for many classes.
struct Named<'a> {
    classified: BTreeSet<Handle>,
    words: Vec<&'a str>,
}

impl<'a> Named<'a> {
    fn of(facts: &'a Facts) -> Self {
        let classify = |t: &Target| match t {
            Target::Edit(Edit::Classify(h)) => Some(*h),
            _ => None,
        };
        let classified = facts.netfilter.rules.iter().filter_map(|r| classify(&r.rule.target)).collect();
        let foreign = facts.steps.iter().filter(|s| s.program() != "tc");
        let words: BTreeSet<&str> =
            foreign.flat_map(|s| &s.words).map(String::as_str).filter(|w| w.contains(':')).collect();
        Self { classified, words: words.into_iter().collect() }
    }
    fn has(&self, id: Handle) -> bool {
        let text = id.to_string();
        self.classified.contains(&id) || self.words.iter().any(|w| w.contains(&text))
    }
}

fn unused_class(facts: &Facts, found: &mut Found) {
    let named = Named::of(facts);
    let by_priority = facts.steps.iter().any(|s| s.has("skbedit"));
    for device in &facts.devices {
        for qdisc in device
            .qdiscs
            .iter()
            .filter(|q| q.traits().sorting.is_followed() && q.traits().classes == Classes::Made)
        {
            let filters: Vec<&Filter> =
                device.filters.iter().filter(|f| f.parent.qdisc() == qdisc.handle).collect();
            let opaque = |f: &&Filter| {
                !matches!(f.kind.as_str(), "u32" | "fw" | "flower" | "matchall" | "basic" | "route")
                    || f.kind == "fw" && f.classid.is_none()
            };
            // Without any filter the packets' own priorities may choose.
            if filters.is_empty() || filters.iter().any(opaque) || facts.netfilter.texts || by_priority {
                continue;
            }
            let led: BTreeSet<Handle> = filters.iter().filter_map(|f| f.classid).collect();
            let default = Handle::new(qdisc.handle.major(), qdisc.options.u32("default").unwrap_or(0) as u16);
            // Where a filter misses by its number, that is said already.
            let missed = led.iter().any(|h| device.class(*h).is_none() && *h != qdisc.handle);
            let strays = default.minor() != 0 && device.class(default).is_none();
            for class in
                device.classes_of(qdisc.handle).filter(|c| c.children.is_empty() && c.id != qdisc.handle)
            {
                let Some(at) = class.step else { continue };
                if class.id != default
                    && !led.contains(&class.id)
                    && !missed
                    && !strays
                    && !named.has(class.id)
                {
                    let step = &facts.steps[at];
                    let default = if default.minor() == 0 {
                        "there is no default".to_owned()
                    } else {
                        format!("the default is {default}")
                    };
                    let reason = format!(
                        "No filter of {} names {}, and {default}. Give it a filter with `flowid`, or make it the default.",
                        qdisc.handle, class.id
                    );
                    found.at(
                        at,
                        step.value(&["classid"]).unwrap_or(""),
                        Say::new(format!("no packet reaches class {}", class.id), reason, ""),
                    );
                }
            }
        }
    }
}

fn lost_leaf(facts: &Facts, found: &mut Found) {
    for (at, step, command) in facts.tc_done() {
        let Command::Qdisc { dev: Some(dev), req } = command else { continue };
        if req.parent.minor() == 0
            || req.parent == Handle::ROOT
            || req.verb == penstock_model::rtnetlink::Verb::Del
        {
            continue;
        }
        let Some(device) = facts.devices.iter().find(|d| d.name == *dev && d.class(req.parent).is_some())
        else {
            continue;
        };
        let Some(class) = device.class(req.parent).filter(|c| c.kind == "htb" && !c.children.is_empty())
        else {
            continue;
        };
        if device.leaf(class.id).is_none() && class.step.is_some_and(|s| s < at) {
            let child = class.children[0];
            let reason = format!(
                "{} got the child {child} after this; its {} is gone.",
                class.id,
                req.kind.as_deref().unwrap_or("qdisc")
            );
            found.at(
                at,
                step.value(&["parent"]).unwrap_or(""),
                Say::new(
                    format!("the qdisc in {} does not stay", class.id),
                    reason,
                    step.with("parent", &child.to_string()),
                ),
            );
        }
    }
}

fn prio_zero(facts: &Facts, found: &mut Found) {
    for (_, filter) in shapers(facts).filter(|f| f.1.auto) {
        let step = &facts.steps[filter.step];
        let zero = |name: &&str| step.value(&[name]).is_some_and(|v| v == "0");
        if let Some(name) = ["prio", "pref", "preference", "priority"].into_iter().find(|n| zero(n)) {
            let reason = format!(
                "The kernel gives this filter {}; those given later get lower numbers and are asked first.",
                filter.prio
            );
            found.at(filter.step, "0", Say::new("prio 0 is not a priority", reason, step.with(name, "1")));
        }
    }
}

fn unlinked(facts: &Facts, found: &mut Found) {
    for (device, filter) in shapers(facts).filter(|f| f.1.kind == "u32" && !f.1.reached && f.1.chain == 0) {
        let table = filter.options.u32("hash").unwrap_or(0) >> 20;
        let linked = device
            .filters
            .iter()
            .any(|f| f.parent == filter.parent && f.options.u32("link").is_some_and(|l| l >> 20 == table));
        if !linked {
            let step = &facts.steps[filter.step];
            let reason = format!("No filter has `link {table:x}:`.");
            let fix = format!(
                "tc filter add dev {} parent {} protocol ip prio {} u32 ht 800:: match u32 0 0 link {table:x}:",
                device.name, filter.parent, filter.prio
            );
            found.at(
                filter.step,
                step.value(&["ht"]).unwrap_or(""),
                Say::new(format!("nothing links to the hash table {table:x}:"), reason, fix),
            );
        }
    }
}
