//! PS307 to PS309: connections that filters track and look at, and gates.

use crate::facts::{Device, Facts};
use crate::filters::Filter;
use crate::finding::{Found, Rule, Say};

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS307",
        "a filter waits for connections that nothing has tracked",
        "Packets meet the ingress hook before netfilter: nobody has looked for their connection. flower's `ct_state`, `ct_zone`, `ct_mark` and `ct_label` \
         read as 0 until `action ct` has been there (`skb_flow_dissect_ct`). Send untracked packets through it first and look in another chain. tc-ct(8): \
         https://man7.org/linux/man-pages/man8/tc-ct.8.html.",
        untracked,
    ),
    Rule::warning(
        "PS308",
        "connections are tracked and none is kept",
        "`action ct` alone begins a connection for each packet and lets it go with the packet (`tcf_ct_act`). Only `commit` keeps it, so that the next packet is \
         of an established one and has its mark. Commit what is new and may pass. tc-ct(8): https://man7.org/linux/man-pages/man8/tc-ct.8.html.",
        uncommitted,
    ),
    Rule::warning(
        "PS309",
        "gate: cycle-time is not the sum of its entries",
        "The entries of `gate` follow one another without a pause, whatever `cycle-time` says; it counts for the beginning alone (`gate_timer_func`, \
         `gate_get_start_time`). Leave it out, or make the intervals as long. tc-gate(8): https://man7.org/linux/man-pages/man8/tc-gate.8.html.",
        cycle,
    ),
];

/// `+trk`, and `+est`.
const TRACKED: u32 = 8;
const ESTABLISHED: u32 = 2;
/// `ct commit`, `ct clear`.
const COMMIT: u32 = 1;
const CLEAR: u32 = 4;

fn filters(facts: &Facts) -> impl Iterator<Item = (&Device, &Filter)> {
    facts.devices.iter().flat_map(|d| d.filters.iter().map(move |f| (d, f)))
}

fn at_ingress(filter: &Filter) -> bool {
    filter.parent.major() == 0xffff && filter.parent.minor() != 0xfff3
}

/// What a filter's `ct` actions do: their bits.
fn tracks(filter: &Filter) -> impl Iterator<Item = u32> + '_ {
    let bits =
        filter.actions().filter(|(kind, _)| *kind == "ct").map(|(_, o)| o.u32("ct_action").unwrap_or(0));
    bits.filter(|bits| bits & CLEAR == 0)
}

/// The bits of a connection's state that must be set.
fn state(filter: &Filter) -> u32 {
    let n = |name| filter.options.u32(name);
    n("ct_state").unwrap_or(0) & n("ct_state_mask").unwrap_or(u32::MAX)
}

/// The word that asks for something only a tracked packet has.
fn asks(filter: &Filter) -> Option<&'static str> {
    if filter.kind != "flower" {
        return None;
    }
    let some = |name: &str| filter.options.u32(name).is_some_and(|n| n != 0);
    let label = filter.options.bytes("ct_label").is_some_and(|b| b.iter().any(|b| *b != 0));
    match () {
        () if state(filter) & TRACKED != 0 => Some("ct_state"),
        () if some("ct_mark") => Some("ct_mark"),
        () if some("ct_zone") => Some("ct_zone"),
        () if label => Some("ct_label"),
        () => None,
    }
}

fn untracked(facts: &Facts, found: &mut Found) {
    for (device, filter) in filters(facts).filter(|(_, f)| at_ingress(f)) {
        let Some(word) = asks(filter) else { continue };
        if device.filters.iter().any(|f| at_ingress(f) && tracks(f).next().is_some()) {
            continue;
        }
        let reason =
            format!("No filter at the ingress of {} has `action ct`; `{word}` is 0 there.", device.name);
        let fix = format!(
            "tc filter add dev {} ingress prio 1 protocol ip flower ct_state -trk action ct pipe action goto chain 1",
            device.name
        );
        found.at(filter.step, word, Say::new("this filter never matches", reason, fix));
    }
}

fn uncommitted(facts: &Facts, found: &mut Found) {
    let all = || filters(facts).flat_map(|(_, f)| tracks(f));
    let netfilter = ["iptables", "ip6tables", "nft", "iptables-restore"];
    let kept =
        all().any(|bits| bits & COMMIT != 0) || facts.steps.iter().any(|s| netfilter.contains(&s.program()));
    if kept || all().next().is_none() {
        return;
    }
    for (_, filter) in filters(facts) {
        let established = state(filter) & ESTABLISHED != 0;
        let word = asks(filter).filter(|word| established || matches!(*word, "ct_mark" | "ct_label"));
        let Some(word) = word else { continue };
        let reason =
            "No `action ct` has `commit`: every packet is the first of its connection, without a mark.";
        found.at(filter.step, word, Say::new("this filter never matches", reason.to_owned(), ""));
    }
}

fn cycle(facts: &Facts, found: &mut Found) {
    for (_, filter) in filters(facts) {
        for (_, o) in filter.actions().filter(|(kind, _)| *kind == "gate") {
            let all: i64 = o.list("entries").iter().map(|e| i64::from(e.u32("interval").unwrap_or(0))).sum();
            let Some(given) = o.i64("cycle_time").filter(|&c| c != 0 && c != all && all != 0) else {
                continue;
            };
            let reason =
                format!("The entries last {all} ns, `cycle-time` says {given} ns; a round takes {all} ns.");
            found.at(filter.step, "cycle-time", Say::new("cycle-time does not hold", reason, ""));
        }
    }
}
