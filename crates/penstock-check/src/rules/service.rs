//! PS13x: HFSC, DRR, QFQ and prio: what is dropped, what is promised twice, what starves.

use crate::facts::{Class, Facts, rate};
use crate::finding::{Found, Rule, Say};
use penstock_model::Handle;
use penstock_sched::traits::Sorting;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS130",
        "hfsc without a default class drops packets",
        "HFSC drops what no filter sorts and no default takes: ARP too, so the machine is soon unreachable.",
        hfsc_default,
    ),
    Rule::warning(
        "PS131",
        "real-time curves guarantee more than there is",
        "HFSC serves real-time curves before everything and without looking at the hierarchy. If their long-term rates add up to more than the link has, the deadlines \
         cannot be kept and link sharing no longer counts.",
        hfsc_sum,
    ),
    Rule::warning(
        "PS132",
        "a real-time curve on an inner class",
        "Real-time curves count on leaves only; on a class with children the kernel ignores it.",
        hfsc_inner,
    ),
    Rule::warning(
        "PS133",
        "an upper limit below the guaranteed rate",
        "`ul` bounds link sharing, not the real-time part. With a limit below it the two contradict each other: the class either passes its limit or never gets what \
         link sharing would give.",
        hfsc_limit,
    ),
    Rule::warning(
        "PS134",
        "drr and qfq drop packets that no filter classifies",
        "DRR and QFQ have no default class: a packet that no filter sends into a class is dropped. A last filter that takes everything is needed, for protocol all, \
         or ARP is lost.",
        drr_default,
    ),
    Rule::warning(
        "PS135",
        "the first band gets bulk traffic and starves the others",
        "prio asks a band only while all bands before it are empty. Traffic that can fill the link in the first band leaves nothing to the others.",
        starvation,
    ),
    Rule::warning(
        "PS136",
        "every priority goes to one band",
        "A priomap that names one band only makes the other bands unreachable but by filters.",
        one_band,
    ),
];

fn curve(class: &Class, name: &str) -> Option<u64> {
    class.options.nested(name)?.u64("m2")
}

fn hfsc_default(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["hfsc"]) {
        let any = device.classes_of(qdisc.handle).any(|c| c.id != qdisc.handle);
        if any && qdisc.options.u32("default").unwrap_or(0) == 0 {
            let leaf = device.classes_of(qdisc.handle).filter(|c| c.children.is_empty()).last();
            let fix = leaf
                .map_or(String::new(), |l| facts.steps[at].with("default", &format!("{:x}", l.id.minor())));
            let reason = "default is 0: what no filter sorts is dropped, ARP included".to_owned();
            found.at(
                at,
                "hfsc",
                Say::new(format!("hfsc {} has no default class", qdisc.handle), reason, fix),
            );
        }
    }
}

fn hfsc_sum(facts: &Facts, found: &mut Found) {
    for (device, qdisc, _) in facts.made_of(&["hfsc"]) {
        let mut leaves: Vec<&Class> = device
            .classes_of(qdisc.handle)
            .filter(|c| c.children.is_empty() && curve(c, "rt").is_some())
            .collect();
        leaves.sort_by_key(|c| c.step);
        let top = device
            .classes_of(qdisc.handle)
            .filter(|c| !c.children.is_empty() && c.id != qdisc.handle)
            .filter_map(|c| curve(c, "ul").filter(|&m| m > 0).or(curve(c, "ls")))
            .max();
        let Some(has) = top.into_iter().chain(facts.link_of(&device.name)).min() else { continue };
        let mut sum = 0;
        for class in leaves {
            sum += curve(class, "rt").unwrap_or(0);
            if let (Some(at), true) = (class.step, sum > has) {
                let word = facts.steps[at].value(&["m2", "rate"]).unwrap_or("");
                let reason =
                    format!("The real-time curves add up to {} here; there is {}.", rate(sum), rate(has));
                found.at(
                    at,
                    word,
                    Say::new(format!("class {} is guaranteed more than there is", class.id), reason, ""),
                );
                break;
            }
        }
    }
}

fn hfsc_inner(facts: &Facts, found: &mut Found) {
    for class in
        facts.devices.iter().flat_map(|d| &d.classes).filter(|c| c.kind == "hfsc" && !c.children.is_empty())
    {
        // `sc` on an inner class is how its share is usually written.
        if let (Some(at), Some(m2)) = (class.step, curve(class, "rt"))
            && facts.steps[at].has("rt")
        {
            let word = "rt";
            let reason =
                format!("{} has children; its real-time curve of {} is ignored.", class.id, rate(m2));
            let fix = facts.steps[at].text().replacen(" rt ", " ls ", 1);
            found.at(
                at,
                word,
                Say::new(format!("class {} has a real-time curve and children", class.id), reason, fix),
            );
        }
    }
}

fn hfsc_limit(facts: &Facts, found: &mut Found) {
    for class in facts.devices.iter().flat_map(|d| &d.classes).filter(|c| c.kind == "hfsc") {
        let (Some(at), Some(ul)) = (class.step, curve(class, "ul").filter(|&m| m > 0)) else { continue };
        let most = curve(class, "rt").unwrap_or(0).max(curve(class, "ls").unwrap_or(0));
        if most > ul {
            let reason = format!("The limit is {}, promised are {}.", rate(ul), rate(most));
            found.at(
                at,
                "ul",
                Say::new(format!("the upper limit of {} is below what it is promised", class.id), reason, ""),
            );
        }
    }
}

fn drr_default(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made().filter(|(_, q, _)| q.traits().sorting == Sorting::Flat) {
        let any = device.classes_of(qdisc.handle).next().is_some();
        let open = |f: &&crate::filters::Filter| {
            f.parent == qdisc.handle
                && (f.takes_all() && f.protocol == crate::filters::ALL
                    || !f.exact && !matches!(f.kind.as_str(), "u32" | "flower" | "basic"))
        };
        if any && !device.filters.iter().any(|f| open(&f)) {
            let class = device.classes_of(qdisc.handle).last().map_or(Handle::new(1, 1), |c| c.id);
            let fix = format!(
                "tc filter add dev {} parent {} protocol all prio 65535 matchall classid {class}",
                device.name, qdisc.handle
            );
            let reason =
                format!("{} drops what no filter sorts, and no filter takes everything.", qdisc.kind);
            found.at(
                at,
                qdisc.kind,
                Say::new(
                    format!("{} {} has no class for the other packets", qdisc.kind, qdisc.handle),
                    reason,
                    fix,
                ),
            );
        }
    }
}

fn starvation(facts: &Facts, found: &mut Found) {
    for (device, qdisc, _) in facts.made_of(&["prio"]) {
        let first = Handle::new(qdisc.handle.major(), 1);
        // A band that is limited by itself starves nobody.
        if device.leaf(first).is_some_and(|l| l.traits().is_shaper()) {
            continue;
        }
        for filter in device
            .filters
            .iter()
            .filter(|f| f.parent == qdisc.handle && f.classid == Some(first) && f.exact && f.ends)
        {
            let ports = filter.looks_at(20, u32::MAX)
                || filter.tests.keys().any(|k| !matches!(k, crate::filters::Field::Net(_)));
            let fields = |off, mask| filter.looks_at(off, mask);
            let tcp = filter
                .tests
                .get(&crate::filters::Field::Net(8))
                .is_some_and(|b| b.mask & 0x00ff_0000 != 0 && b.value >> 16 & 0xff == 6);
            let narrow = ports
                || fields(0, 0x00ff_ffff)
                || fields(12, u32::MAX)
                || fields(16, u32::MAX)
                || filter.tests.iter().any(|(f, b)| {
                    matches!(f, crate::filters::Field::Net(off) if *off == 4 || *off > 20) && b.mask != 0
                })
                || (fields(8, 0x00ff_0000) && !tcp);
            let limited = filter.actions().any(|a| a.0 == "police");
            if !narrow && !limited && !filter.auto {
                let what = if tcp { "all of TCP" } else { "everything" };
                let step = &facts.steps[filter.step];
                let last = Handle::new(qdisc.handle.major(), qdisc.options.u32("bands").unwrap_or(3) as u16);
                let reason = format!(
                    "{what} goes to {first}; the other bands of {} get what that leaves.",
                    qdisc.handle
                );
                let fix =
                    step.with(if step.has("classid") { "classid" } else { "flowid" }, &last.to_string());
                found.at(
                    filter.step,
                    step.value(&["flowid", "classid"]).unwrap_or(""),
                    Say::new(format!("{what} in the first band starves the others"), reason, fix),
                );
            }
        }
    }
}

fn one_band(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["prio"]) {
        let Some(map) = qdisc.options.bytes("priomap") else { continue };
        let bands = qdisc.options.u32("bands").unwrap_or(3);
        let one = map.iter().all(|b| *b == map[0]);
        // All to the last band or to one that filters leave for the rest is a plan.
        let planned = device.filters.iter().any(|f| f.parent == qdisc.handle);
        if one && bands > 1 && !planned && facts.steps[at].has("priomap") {
            let reason =
                format!("All 16 priorities go to band {}; {} bands are never used.", map[0], bands - 1);
            found.at(
                at,
                "priomap",
                Say::new(
                    format!("prio {} has one band in use", qdisc.handle),
                    reason,
                    facts.steps[at].text().split(" priomap").next().unwrap_or("").to_owned(),
                ),
            );
        }
    }
}
