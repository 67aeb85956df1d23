//! Qdiscs.

use super::{Part, Said, Say, Unit, netem, red};
use crate::tc::kinds::{clock, linklayer_name};
use penstock_model::{Options, psched};
use std::fmt::Display;

/// The words that make a qdisc of this kind with these options, as a dump has them. `old`: for the tc of 2010.
pub fn qdisc(kind: &str, o: &Options, old: bool) -> Said {
    let mut say = Say::new(o);
    let lacking = match kind {
        "pfifo" | "bfifo" | "pfifo_head_drop" | "skbprio" => none(say.given("limit", Unit::Plain)),
        "codel" | "fq_codel" | "pie" | "fq_pie" | "hhf" => none(plain(kind, &mut say)),
        "fq" => fq(&mut say),
        "sfq" => sfq(&mut say, old),
        "cake" => cake(&mut say),
        "cbs" => {
            for name in ["hicredit", "locredit", "sendslope", "idleslope", "offload"] {
                signed(&mut say, name);
            }
            None
        }
        "etf" => etf(&mut say),
        "prio" => none(list(say.pair("bands", o.u32("bands").unwrap_or(3)), "priomap", o.bytes("priomap"))),
        "ets" => ets(&mut say),
        "mqprio" => none(queues(&mut say).pair("hw", 0)),
        "taprio" => taprio(&mut say),
        "hfsc" => {
            if say.n("default") != 0 {
                let default = say.n("default");
                say.pair("default", format!("{default:x}"));
            }
            None
        }
        "htb" => htb(&mut say, old),
        "dsmark" => dsmark(&mut say),
        "sfb" => sfb(&mut say),
        "tbf" => tbf(&mut say, old),
        "red" => red_words(&mut say, old),
        "choke" => choke(&mut say),
        "gred" => return gred(o, old),
        "netem" => netem::words(&mut say),
        "cbq" => cbq(&mut say),
        "plug" => plug(&mut say),
        _ => None,
    };
    let mut said = say.done();
    said.lacking.extend(lacking);
    if kind == "netem" {
        netem::late(o, &mut said);
    }
    said
}

fn none(_: &mut Say) -> Option<&'static str> {
    None
}

/// A word and its numbers.
fn list<'a, 's, T: Display>(
    say: &'s mut Say<'a>,
    word: &str,
    items: Option<impl IntoIterator<Item = T>>,
) -> &'s mut Say<'a> {
    if let Some(items) = items {
        say.word(word);
        items.into_iter().for_each(|item| {
            say.word(item.to_string());
        });
    }
    say
}

fn signed(say: &mut Say, name: &str) {
    if let Some(n) = say.o.i64(name) {
        say.pair(name, n);
    }
}

/// Kinds whose words are the names of their options.
fn plain<'a, 's>(kind: &str, say: &'s mut Say<'a>) -> &'s mut Say<'a> {
    const NUMBERS: [&str; 12] = [
        "limit",
        "flows",
        "quantum",
        "alpha",
        "beta",
        "memory_limit",
        "ecn_prob",
        "hh_limit",
        "admit_bytes",
        "non_hh_weight",
        "drop_batch",
        "min_backlog",
    ];
    for name in NUMBERS {
        if name != "drop_batch" || say.n(name) != 0 {
            say.given(name, Unit::Plain);
        }
    }
    for name in ["target", "interval", "ce_threshold", "tupdate", "reset_timeout", "evict_timeout"] {
        say.given(name, Unit::Us);
    }
    let (selector, mask) = (say.n("ce_threshold_selector"), say.n("ce_threshold_mask"));
    if selector != 0 || mask != 0 {
        say.pair("ce_threshold_selector", format!("{selector:#x}/{mask:#x}"));
    }
    if kind != "hhf" {
        say.either("ecn", "ecn", "noecn");
    }
    say.either("bytemode", "bytemode", "nobytemode");
    say.either("dq_rate_estimator", "dq_rate_estimator", "no_dq_rate_estimator")
}

fn fq(say: &mut Say) -> Option<&'static str> {
    let o = say.o;
    say.given("limit", Unit::Plain).given("flow_limit", Unit::Plain);
    if let Some(log) = o.u32("buckets") {
        say.pair("buckets", 1u64 << (log & 31));
    }
    say.given("orphan_mask", Unit::Plain).either("pacing", "pacing", "nopacing");
    if let Some(map) = o.bytes("priomap") {
        say.pair("bands", 3);
        list(say, "priomap", Some(map));
    }
    if let Some(weights) = o.nested("weights") {
        let three = ["weight0", "weight1", "weight2"].map(|name| weights.i64(name).unwrap_or(0));
        list(say, "weights", Some(three));
    }
    say.given("quantum", Unit::Plain).given("initial_quantum", Unit::Plain);
    if o.u32("maxrate") != Some(u32::MAX) {
        say.given("maxrate", Unit::Rate);
    }
    say.given("low_rate_threshold", Unit::Rate).given("refill_delay", Unit::Us);
    if o.u32("ce_threshold") != Some(u32::MAX) {
        say.given("ce_threshold", Unit::Us);
    }
    say.given("timer_slack", Unit::Ns).given("horizon", Unit::Us);
    say.either("horizon_drop", "horizon_drop", "horizon_cap");
    None
}

fn sfq(say: &mut Say, old: bool) -> Option<&'static str> {
    let o = say.o;
    // With a limit the kernel takes no more flows than packets; more of them are its own number.
    if say.n("flows") <= say.n("limit") || old {
        say.pair("limit", o.u32("limit").unwrap_or(0));
        if !old {
            say.pair("flows", o.u32("flows").unwrap_or(0));
        }
    }
    say.pair("quantum", o.u32("quantum").unwrap_or(0));
    if o.i64("perturb").is_some_and(|n| n != 0) {
        signed(say, "perturb");
    }
    if old {
        return None;
    }
    for name in ["depth", "divisor"] {
        say.pair(name, o.u32(name).unwrap_or(0));
    }
    if o.has("headdrop") {
        say.word("headdrop");
    }
    let (min, flags) = (say.n("min"), say.n("redflags"));
    if min == 0 {
        return None;
    }
    // tc wants a limit; the kernel neither keeps nor dumps it.
    say.pair("redflowlimit", o.u32("max").unwrap_or(0)).given("min", Unit::Plain).given("max", Unit::Plain);
    red::probability(say, o);
    say.flag(flags, 1, "ecn").flag(flags, 2, "harddrop");
    match red::burst(min, say.n("ewma")) {
        Some((burst, avpkt)) => {
            say.pair("burst", burst).pair("avpkt", avpkt);
            None
        }
        None => Some("burst"),
    }
}

fn cake(say: &mut Say) -> Option<&'static str> {
    const DIFFSERV: [&str; 5] = ["diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"];
    const FLOWS: [&str; 8] = [
        "flowblind",
        "srchost",
        "dsthost",
        "hosts",
        "flows",
        "dual-srchost",
        "dual-dsthost",
        "triple-isolate",
    ];
    const ACKS: [&str; 3] = ["no-ack-filter", "ack-filter", "ack-filter-aggressive"];
    let o = say.o;
    match o.u64("bandwidth").unwrap_or(0) {
        0 => say.word("unlimited"),
        rate => say.word("bandwidth").value("bandwidth", rate, Unit::Rate),
    };
    // Behind the bandwidth, which turns it off.
    if say.n("autorate") != 0 {
        say.word("autorate-ingress");
    }
    for (name, words) in [("diffserv", &DIFFSERV[..]), ("flowmode", &FLOWS), ("ack_filter", &ACKS)] {
        if let Some(word) = words.get(say.n(name) as usize).filter(|_| o.has(name)) {
            say.word(*word);
        }
    }
    say.either("nat", "nat", "nonat").either("wash", "wash", "nowash").either("ingress", "ingress", "egress");
    say.either("split_gso", "split-gso", "no-split-gso");
    if let Some(rtt) = o.u64("rtt").filter(|&rtt| rtt != 0) {
        say.word("rtt").value("rtt", rtt, Unit::Us);
    }
    // raw takes ATM back: what is said of it comes behind.
    if o.has("raw") {
        say.word("raw");
    }
    match say.n("atm") {
        1 => {
            say.word("atm");
        }
        2 => {
            say.word("ptm");
        }
        _ if !o.has("raw") => {
            say.word("noatm");
        }
        _ => {}
    }
    if !o.has("raw") || o.i64("overhead").is_some_and(|n| n != 0) {
        signed(say, "overhead");
    }
    for name in ["mpu", "memlimit", "fwmark"] {
        if say.n(name) != 0 {
            say.given(name, Unit::Plain);
        }
    }
    None
}

fn etf(say: &mut Say) -> Option<&'static str> {
    let (clock, flags) = (say.o.i64("clockid").unwrap_or(-1), say.n("flags"));
    say.pair("clockid", format!("CLOCK_{}", clock::name(clock)));
    if say.o.i64("delta").is_some_and(|n| n != 0) {
        signed(say, "delta");
    }
    say.flag(flags, 1, "deadline_mode").flag(flags, 2, "offload").flag(flags, 4, "skip_sock_check");
    None
}

fn ets(say: &mut Say) -> Option<&'static str> {
    let o = say.o;
    say.given("bands", Unit::Plain);
    if say.n("strict") != 0 {
        say.given("strict", Unit::Plain);
    }
    let quanta: Vec<u32> = o.list("quanta").iter().filter_map(|q| q.u32("quantum")).collect();
    if !quanta.is_empty() {
        list(say, "quanta", Some(quanta));
    }
    list(say, "priomap", o.bytes("priomap").filter(|map| !map.is_empty()));
    None
}

/// `num_tc`, `map`, `queues`.
fn queues<'a, 's>(say: &'s mut Say<'a>) -> &'s mut Say<'a> {
    let o = say.o;
    let number = say.n("num_tc") as usize;
    say.given("num_tc", Unit::Plain);
    list(say, "map", o.bytes("map"));
    let range = |r: &Options| format!("{}@{}", r.u32("count").unwrap_or(0), r.u32("offset").unwrap_or(0));
    let ranges: Vec<String> = o.list("queues").iter().take(number).map(range).collect();
    if !ranges.is_empty() {
        list(say, "queues", Some(ranges));
    }
    say
}

fn taprio(say: &mut Say) -> Option<&'static str> {
    let o = say.o;
    queues(say);
    // What runs, or what waits to.
    if let Some(schedule) = o.nested("admin").or(o.nested("oper")) {
        for name in ["base-time", "cycle-time", "cycle-time-extension"] {
            if let Some(time) = schedule.i64(name).filter(|&t| t != 0) {
                say.pair(name, time);
            }
        }
        for entry in schedule.list("sched-entry") {
            let n = |name| entry.u32(name).unwrap_or(0);
            say.word("sched-entry")
                .word("S")
                .word(format!("{:x}", n("gate-mask")))
                .word(n("interval").to_string());
        }
    }
    if let Some(flags) = o.u32("flags").filter(|&f| f != 0) {
        say.pair("flags", format!("{flags:#x}"));
    }
    if let Some(delay) = o.u32("txtime-delay").filter(|&d| d != 0) {
        say.pair("txtime-delay", delay);
    }
    if let Some(clock) = o.i64("clockid").filter(|&c| c >= 0) {
        say.pair("clockid", format!("CLOCK_{}", clock::name(clock)));
    }
    None
}

fn htb(say: &mut Say, old: bool) -> Option<&'static str> {
    let default = say.n("default");
    say.pair("default", format!("{default:x}")).given("r2q", Unit::Plain);
    if !old {
        say.given("direct_qlen", Unit::Plain);
        if say.o.has("offload") {
            say.word("offload");
        }
    }
    None
}

fn dsmark(say: &mut Say) -> Option<&'static str> {
    let o = say.o;
    say.given("indices", Unit::Plain);
    if let Some(default) = o.u32("default_index").filter(|&d| d != 0xffff) {
        say.pair("default_index", default);
    }
    if o.has("set_tc_index") {
        say.word("set_tc_index");
    }
    None
}

fn sfb(say: &mut Say) -> Option<&'static str> {
    for name in ["rehash", "db", "limit", "max", "target", "penalty_rate", "penalty_burst"] {
        say.given(name, Unit::Plain);
    }
    for name in ["increment", "decrement"] {
        let share = f64::from(say.n(name)) / 65535.0;
        say.pair(name, share);
    }
    None
}

fn tbf(say: &mut Say, old: bool) -> Option<&'static str> {
    let o = say.o;
    let narrow = |name| o.u64(name).unwrap_or(0).min(u64::from(u32::MAX));
    let sized = |say: &mut Say, word: &str, rate: u64, ticks: u32, path: &str| {
        let size = if old { super::burst(rate, ticks) } else { psched::xmitsize(rate, ticks) };
        say.word(word).value(path, u64::from(size.max(1)), Unit::Plain);
    };
    say.given("rate", Unit::Rate);
    sized(say, "burst", narrow("rate"), say.n("buffer"), "buffer");
    if o.u64("peakrate").unwrap_or(0) != 0 {
        say.given("peakrate", Unit::Rate);
        sized(say, "mtu", narrow("peakrate"), say.n("mtu"), "mtu");
    }
    say.given("limit", Unit::Plain);
    if say.n("mpu") != 0 {
        say.given("mpu", Unit::Plain);
    }
    overhead(say);
    None
}

/// `overhead` and `linklayer`, where they are not what tc takes by itself.
pub(super) fn overhead(say: &mut Say) {
    if let Some(n) = say.o.i64("overhead").filter(|&n| n != 0) {
        say.pair("overhead", n);
    }
    let layer = say.n("linklayer");
    if layer > 1 {
        say.pair("linklayer", linklayer_name(layer));
    }
}

fn red_words(say: &mut Say, old: bool) -> Option<&'static str> {
    let (o, flags) = (say.o, say.n("flags"));
    say.given("limit", Unit::Plain).given("min", Unit::Plain).given("max", Unit::Plain);
    let lacking = red::evaluated(say, o, 0);
    say.flag(flags, 1, "ecn");
    if !old {
        say.flag(flags, 2, "harddrop").flag(flags, 4, "adaptive").flag(flags, 8, "nodrop");
    }
    for name in ["early_drop", "mark"] {
        if say.n(name) != 0 {
            let block = say.n(name);
            say.pair("qevent", name).pair("block", block);
        }
    }
    lacking
}

fn choke(say: &mut Say) -> Option<&'static str> {
    let (o, flags) = (say.o, say.n("flags"));
    say.given("limit", Unit::Plain).given("min", Unit::Plain).given("max", Unit::Plain);
    // Its thresholds are packets; any size of them does.
    let sizes = [1000, 1500, 500, 256, 100, 64, 10, 1];
    let mut lacking = Some("burst");
    for size in sizes {
        let before = say.parts.len();
        lacking = red::evaluated(say, o, size);
        if lacking.is_none() {
            break;
        }
        if size != 1 {
            say.parts.truncate(before);
        }
    }
    say.flag(flags, 1, "ecn");
    lacking
}

fn gred(o: &Options, old: bool) -> Said {
    let mut say = Say::new(o);
    let flags = say.n("flags");
    say.word("setup")
        .pair(if old { "DPs" } else { "vqs" }, o.u32("vqs").unwrap_or(0))
        .given("default", Unit::Plain);
    if say.n("grio") != 0 {
        say.word("grio");
    }
    if !old {
        if say.n("limit") != 0 {
            say.given("limit", Unit::Plain);
        }
        say.flag(flags, 1, "ecn").flag(flags, 2, "harddrop");
    }
    let mut said = say.done();
    for vq in o.list("list") {
        let mut say = Say::new(vq);
        let flags = say.n("flags");
        say.pair(if old { "DP" } else { "vq" }, vq.u32("vq").unwrap_or(0));
        say.given("limit", Unit::Plain).given("min", Unit::Plain).given("max", Unit::Plain);
        said.lacking.extend(red::evaluated(&mut say, vq, 0));
        say.given("prio", Unit::Plain);
        if !old {
            say.flag(flags, 1, "ecn").flag(flags, 2, "harddrop");
        }
        said.then.push(say.parts);
    }
    said
}

fn cbq(say: &mut Say) -> Option<&'static str> {
    let o = say.o;
    if let Some(rate) = o.u64("rate") {
        say.word("bandwidth").value("rate", rate, Unit::Rate);
    }
    let cell = 1u64 << (say.n("cell_log") & 31);
    say.pair("cell", cell);
    if let Some(lss) = o.nested("lss") {
        say.pair("avpkt", lss.u32("avpkt").unwrap_or(0)).pair("ewma", lss.u32("ewma").unwrap_or(0));
    }
    if say.n("mpu") != 0 {
        say.given("mpu", Unit::Plain);
    }
    overhead(say);
    if let Some(allot) = o.nested("wrr").and_then(|w| w.u32("allot")).filter(|&a| a != 0) {
        say.pair("allot", allot);
    }
    None
}

fn plug(say: &mut Say) -> Option<&'static str> {
    if say.o.u32("limit").is_some() {
        say.given("limit", Unit::Plain);
    }
    None
}

/// The words of a size table (`stab`), which stand before the kind.
pub fn stab(o: &Options) -> Vec<Part> {
    let mut say = Say::new(o);
    say.word("stab");
    for name in ["mtu", "tsize", "mpu"] {
        if say.n(name) != 0 {
            say.given(name, Unit::Plain);
        }
    }
    overhead(&mut say);
    if say.n("linklayer") == 1 {
        say.pair("linklayer", linklayer_name(1));
    }
    say.parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tc::say::words;

    #[track_caller]
    fn check(kind: &str, o: Options, text: &str) {
        assert_eq!(words(&qdisc(kind, &o, false).add).join(" "), text);
    }

    #[test]
    fn words_of_some_kinds() {
        check("pfifo", Options::new().with("limit", 7u32), "limit 7");
        check(
            "netem",
            Options::new()
                .with("limit", 1000u32)
                .with("latency", psched::time2tick(10_000.0))
                .with("loss", u32::MAX / 4),
            "limit 1000 delay 10ms loss random 24.9999999825377%",
        );
        check(
            "prio",
            Options::new().with("bands", 2u32).with("priomap", vec![1u8, 0]),
            "bands 2 priomap 1 0",
        );
        check(
            "cake",
            Options::new()
                .with("bandwidth", 1_250_000u64)
                .with("diffserv", 3u32)
                .with("overhead", -4i64)
                .with("atm", 1u32),
            "bandwidth 10mbit besteffort atm overhead -4",
        );
    }

    #[test]
    fn a_queue_of_gred_is_a_change() {
        let vq = Options::new()
            .with("vq", 1u32)
            .with("limit", 60_000u32)
            .with("min", 15_000u32)
            .with("max", 25_000u32);
        let vq = vq.with("ewma", 4u32).with("scell_log", 10u32).with("max_p", 1u32 << 30);
        let o = Options::new().with("vqs", 2u32).with("default", 1u32).with("list", vec![vq]);
        let said = qdisc("gred", &o, false);
        assert_eq!(words(&said.add).join(" "), "setup vqs 2 default 1");
        assert!(
            words(&said.then[0])
                .join(" ")
                .starts_with("vq 1 limit 60000 min 15000 max 25000 probability 0.25")
        );
    }
}
