//! PS244 and PS245: the largest packet of a policer.

use super::ingress::policers;
use crate::facts::Facts;
use crate::finding::{Found, Rule, Say};

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS244",
        "a policer takes every jumbo frame for too much",
        "Without `mtu` tc makes the policer's table for packets up to 2047 bytes, and the kernel takes 2040 as its MTU (tcf_police_init: 255 << cell_log): longer \
         packets exceed the rate however slow they come. On a device with a larger MTU say `mtu`.",
        police_mtu,
    ),
    Rule::warning(
        "PS245",
        "a policer's mtu is below a full frame",
        "`mtu` is the largest packet that a policer knows: what is longer exceeds the rate, however slow it comes (`tcf_police_act`). At ingress the kernel counts the \
         packet without its Ethernet header, on the way out with it.",
        small_mtu,
    ),
];

fn police_mtu(facts: &Facts, found: &mut Found) {
    //= linux v6.12 net/sched/act_police.c tcf_police_init
    const TABLE: u64 = 255 << 3;
    for (device, filter, _) in policers(facts) {
        let step = &facts.steps[filter.step];
        if device.frame() <= TABLE || step.has("mtu") || step.has("minburst") || !step.has("rate") {
            continue;
        }
        let Some(word) = step.value(&["burst", "buffer", "maxburst"]) else { continue };
        let name = ["burst", "buffer", "maxburst"].into_iter().find(|n| step.has(n)).unwrap_or("burst");
        let fix = step.text().replacen(
            &format!("{name} {word}"),
            &format!("{name} {word} mtu {}", device.frame()),
            1,
        );
        let reason = format!(
            "{} has an MTU of {}; the policer takes packets of more than {TABLE} bytes for too much.",
            device.name, device.mtu
        );
        found.at(filter.step, "police", Say::new("no jumbo frame passes this policer", reason, fix));
    }
}

fn small_mtu(facts: &Facts, found: &mut Found) {
    for (device, filter, options) in policers(facts) {
        let step = &facts.steps[filter.step];
        let Some(word) = step.value(&["mtu", "minburst"]) else { continue };
        let mtu = u64::from(options.u32("mtu").unwrap_or(0));
        let inward = filter.parent.major() == 0xffff && filter.parent.minor() != 0xfff3;
        let full = if inward { u64::from(device.mtu) } else { device.frame() };
        if mtu == 0 || mtu >= full || device.kind == "ifb" {
            continue;
        }
        let name = if step.has("mtu") { "mtu" } else { "minburst" };
        let reason = format!("A full packet of {} has {full} bytes and is taken for too much.", device.name);
        let fix = step.with(name, &device.frame().to_string());
        found.at(
            filter.step,
            word,
            Say::new(format!("no packet of more than {mtu} bytes passes this policer"), reason, fix),
        );
    }
}
