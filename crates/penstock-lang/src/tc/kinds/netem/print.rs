//! What is shown of `netem`.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/q_netem.c` `netem_print_opt`; 6.12.0 for `seed`.

use crate::show::{Out, time_text};
use penstock_model::{Options, Span, psched::tick2time, time::general};

/// A share in text with its percent sign, as a part of one in JSON.
fn percent(key: &str, text: &str, value: u32, out: &mut Out) {
    let max = f64::from(u32::MAX);
    out.json_num(key, general(f64::from(value) / max, 6));
    out.text_only(format_args!("{text} {}%", general(100.0 * f64::from(value) / max, 6)));
}
/// A correlation, in text only where there is one.
fn correlation(present: bool, value: u32, out: &mut Out) {
    if out.is_json() || present {
        percent("correlation", "", value, out);
    }
}
/// A whole number, in text only where it is not zero.
fn number(key: &str, value: i64, out: &mut Out) {
    out.json_num(key, value);
    if value != 0 {
        out.text_only(format_args!(" {key} {value}"));
    }
}
/// Nanoseconds; seconds in JSON.
fn time(key: &str, text: &str, ns: i64, out: &mut Out) {
    out.json_num(key, general(ns as f64 / 1e9, 6));
    out.text_only(format_args!("{text} {}", Span::from_ns(ns)));
}

pub(super) fn print(o: &Options, out: &mut Out) {
    let n = |name: &str| o.u32(name).unwrap_or(0);
    let corr = |name: &str| o.nested("corr").and_then(|c| c.u32(name)).unwrap_or(0);
    out.num("limit", n("limit"), format_args!("limit {}", n("limit") as i32));
    if out.since_7() {
        exact_delay(o, corr("delay"), out);
    } else if n("latency") != 0 {
        delay(n("latency"), n("jitter"), corr("delay"), out);
    }
    if n("loss") != 0 {
        out.open_object(Some("loss-random"));
        percent("loss", " loss", n("loss"), out);
        correlation(corr("loss") != 0, corr("loss"), out);
        out.close_object();
    }
    loss_models(o, out);
    if n("duplicate") != 0 {
        out.open_object(Some("duplicate"));
        percent("duplicate", " duplicate", n("duplicate"), out);
        correlation(corr("duplicate") != 0, corr("duplicate"), out);
        out.close_object();
    }
    for (name, text) in [("reorder", " reorder"), ("corrupt", " corrupt")] {
        let Some(pair) = o.nested(name) else { continue };
        let (probability, rho) = (pair.u32("probability").unwrap_or(0), pair.u32("correlation").unwrap_or(0));
        if probability != 0 {
            out.open_object(Some(name));
            percent(name, text, probability, out);
            correlation(rho != 0, rho, out);
            out.close_object();
        }
    }
    if let Some(rate) = o.nested("rate").filter(|r| r.u64("rate").unwrap_or(0) != 0) {
        out.open_object(Some("rate"));
        out.rate(Some("rate"), " rate ", rate.u64("rate").unwrap_or(0), "");
        for key in ["packetoverhead", "cellsize", "celloverhead"] {
            number(key, rate.i64(key).unwrap_or(0), out);
        }
        out.close_object();
    }
    if let Some(slot) = o.nested("slot") {
        print_slot(slot, out);
    }
    if let Some(seed) = o.u64("seed") {
        out.num("seed", seed, format_args!(" seed {seed}"));
    }
    out.json_bool("ecn", o.has("ecn"));
    if o.has("ecn") {
        out.text_only(format_args!(" ecn "));
    }
    number("gap", n("gap").into(), out);
}

fn delay(latency: u32, jitter: u32, rho: u32, out: &mut Out) {
    out.open_object(Some("delay"));
    for (key, ticks) in [("delay", latency), ("jitter", jitter)] {
        out.json_num(key, general(f64::from(tick2time(ticks)) / 1e6, 6));
    }
    let old = out.old();
    out.text_only(format_args!(" delay {}", time_text(tick2time(latency), old)));
    if jitter != 0 {
        out.text_only(format_args!("  {}", time_text(tick2time(jitter), old)));
    }
    correlation(jitter != 0 && rho != 0, rho, out);
    out.close_object();
}

/// As of 7.2: to the nanosecond.
fn exact_delay(o: &Options, rho: u32, out: &mut Out) {
    let ns = |name: &str| o.i64(name).unwrap_or(0);
    let (latency, jitter) = (ns("latency64"), ns("jitter64"));
    if latency == 0 {
        return;
    }
    out.open_object(Some("delay"));
    time("delay", " delay", latency, out);
    out.json_num("jitter", general(jitter as f64 / 1e9, 6));
    if jitter != 0 {
        out.text_only(format_args!("  {}", Span::from_ns(jitter)));
    }
    correlation(jitter != 0 && rho != 0, rho, out);
    out.close_object();
}

/// What 7.2 counts.
pub(super) fn xstats(o: &Options, out: &mut Out) {
    let names = ["delayed", "dropped", "corrupted", "duplicated", "reordered", "ecn_marked"];
    super::super::plain::counters(o, &names, out);
}

fn loss_models(o: &Options, out: &mut Out) {
    if let Some(model) = o.nested("loss_state") {
        let p = |name: &str| model.u32(name).unwrap_or(0);
        out.open_object(Some("loss-state"));
        percent("p13", " loss state p13", p("p13"), out);
        for name in ["p31", "p32", "p23", "p14"] {
            percent(name, &format!(" {name}"), p(name), out);
        }
        out.close_object();
    }
    if let Some(model) = o.nested("loss_gemodel") {
        let p = |name: &str| model.u32(name).unwrap_or(0);
        out.open_object(Some("loss-gemodel"));
        percent("p", " loss gemodel p", p("p"), out);
        percent("r", " r", p("r"), out);
        percent("1-h", " 1-h", u32::MAX - p("h"), out);
        percent("1-k", " 1-k", p("k1"), out);
        out.close_object();
    }
}

fn print_slot(slot: &Options, out: &mut Out) {
    let n = |name: &str| slot.i64(name).unwrap_or(0);
    out.open_object(Some("slot"));
    if n("dist_jitter") > 0 {
        time("distribution", " slot distribution", n("dist_delay"), out);
        time("jitter", "", n("dist_jitter"), out);
    } else {
        time("min-delay", " slot", n("min_delay"), out);
        time("max-delay", "", n("max_delay"), out);
    }
    number("packets", n("packets"), out);
    number("bytes", n("bytes"), out);
    out.close_object();
}
