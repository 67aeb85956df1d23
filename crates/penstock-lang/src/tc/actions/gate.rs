//! `gate`: let packets pass by a schedule.
//!
//! Follows: iproute2 6.1.0 `tc/m_gate.c`.

use super::{Action, PIPE, advance, bad, control, option_value, print_times, usage};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::{Failure, num};
use penstock_model::time::general;
use penstock_model::{Options, Value};

pub(super) static KIND: Action = Action { id: "gate", old: false, parse, print };

const USAGE: &str = "\
Usage: gate [ priority PRIO-SPEC ] [ base-time BASE-TIME ]
          [ cycle-time CYCLE-TIME ] [ cycle-time-ext CYCLE-TIME-EXT ] [ clockid CLOCKID ] [flags FLAGS]
          [ sched-entry SCHED0 ] [ sched-entry SCHED1 ] ...
";
const ENTRY_USAGE: &str =
    "Usage: sched-entry <open | close> <interval> [ <interval ipv> <octets max bytes> ]\n";
const CLOCKS: [(&str, i64); 4] = [("REALTIME", 0), ("TAI", 11), ("BOOTTIME", 7), ("MONOTONIC", 1)];
/// No traffic class, no limit.
const ANY: i64 = -1;

/// `get_time64`: a time in ns; a bare number is ns too.
fn time64(text: &str) -> Option<i64> {
    let (number, unit) = num::strtod(text)?;
    let scale = match unit.to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" => 1e9,
        "ms" | "msec" | "msecs" => 1e6,
        "us" | "usec" | "usecs" => 1e3,
        "" | "ns" | "nsec" | "nsecs" => 1.0,
        _ => return None,
    };
    Some((number * scale) as i64)
}

/// `sprint_time64`.
fn time64_text(ns: i64) -> String {
    let t = ns as f64;
    if ns >= 1_000_000_000 {
        format!("{}s", general(t / 1e9, 3))
    } else if ns >= 1_000_000 {
        format!("{}ms", general(t / 1e6, 3))
    } else if ns >= 1000 {
        format!("{}us", general(t / 1e3, 3))
    } else {
        format!("{ns}ns")
    }
}

fn parse(args: &mut Args) -> Result<Options, Failure> {
    advance(args)?;
    let mut o = Options::new();
    let mut entries = Vec::new();
    while let Some(word) = args.peek_text() {
        let is = |full: &str| matches(word, full);
        let times =
            [("base-time", "base_time"), ("cycle-time", "cycle_time"), ("cycle-time-ext", "cycle_time_ext")];
        if is("index") {
            let v = option_value(args)?;
            o.set("index", num::u32(v, 10).ok_or_else(|| args.invarg("index", v, "a number"))?.into());
        } else if is("priority") {
            let v = option_value(args)?;
            let prio = num::integer(v, 0).ok_or_else(|| args.invarg("priority", v, "a number"))?;
            o.remove("priority");
            if prio != -1 {
                o.set("priority", i64::from(prio).into());
            }
        } else if let Some((said, name)) = times.iter().find(|(said, _)| is(said)) {
            let v = option_value(args)?;
            let ns = v.parse::<i64>().ok().or_else(|| time64(v));
            let ns = ns.ok_or_else(|| args.invarg(said, v, "a time, e.g. 200ms, or ns"))?;
            o.remove(name);
            if ns != 0 {
                o.set(name, ns.into());
            }
        } else if is("clockid") {
            let v = option_value(args)?;
            let upper = v.to_ascii_uppercase();
            let name = if upper.contains("CLOCK_") { upper.get(6..).unwrap_or("") } else { upper.as_str() };
            let clock = CLOCKS.iter().find(|c| c.0 == name);
            let help = "REALTIME, TAI, BOOTTIME or MONOTONIC";
            o.set("clockid", clock.ok_or_else(|| args.invarg("clockid", v, help))?.1.into());
        } else if is("flags") {
            let v = option_value(args)?;
            let flags = num::u32(v, 0).ok_or_else(|| args.invarg("flags", v, "a number"))?;
            o.remove("flags");
            if flags != 0 {
                o.set("flags", flags.into());
            }
        } else if is("sched-entry") {
            args.next_word();
            entries.push(entry(args)?);
        } else if is("help") {
            return Err(usage(args, USAGE));
        } else {
            break;
        }
    }
    let action = control::control_or(args, false, PIPE)?;
    o.set("action", i64::from(action).into());
    if entries.is_empty() && o.u32("index").unwrap_or(0) == 0 {
        return Err(bad(args, "gate: must add at least one entry", "e.g. sched-entry open 100ms"));
    }
    o.set("entries", Value::List(entries));
    Ok(o)
}

/// What follows `sched-entry`.
fn entry(args: &mut Args) -> Result<Options, Failure> {
    let incomplete = |args: &Args| {
        let f = bad(args, "\"sched-entry\" is incomplete", "sched-entry { open | close } INTERVAL");
        Failure { stderr: format!("{ENTRY_USAGE}{}", f.stderr), ..f }
    };
    let open = match args.next_word().map(|w| w.text.to_ascii_lowercase()) {
        Some(w) if w == "open" => true,
        Some(w) if w == "close" => false,
        _ => return Err(incomplete(args)),
    };
    let Some(word) = args.next_word() else { return Err(incomplete(args)) };
    let long = || time64(&word.text);
    let interval = num::u32(&word.text, 0).map(i64::from).or_else(long).ok_or_else(|| incomplete(args))?;
    if interval > i64::from(u32::MAX) {
        return Err(bad(args, "\"interval\" is too large", "below 4.3 s"));
    }
    let (mut ipv, mut octets) = (ANY, ANY);
    if let Some(n) = args.peek_text().and_then(|w| num::integer(w, 0)) {
        args.next_word();
        ipv = i64::from(n);
        if let Some(word) = args.peek_text() {
            let size = || num::size(word, args.kernel());
            let found = num::integer(word, 0).map(i64::from).or_else(|| size().map(i64::from));
            if let Some(n) = found {
                args.next_word();
                if n > i64::from(i32::MAX) {
                    return Err(bad(args, "\"maxoctets\" is too large", "below 2 GB"));
                }
                octets = n;
            }
        }
    }
    if !open {
        (ipv, octets) = (ANY, ANY);
    }
    Ok(Options::new()
        .with("open", u32::from(open))
        .with("interval", interval as u32)
        .with("ipv", ipv)
        .with("max_octets", octets))
}

fn print(o: &Options, out: &mut Out) {
    let i64 = |name: &str| o.i64(name).unwrap_or(0);
    out.text_only(format_args!("\n"));
    let prio = o.i64("priority").unwrap_or(ANY);
    match prio {
        ANY => {
            out.text_only(format_args!("\tpriority wildcard"));
            out.json_num("priority", prio);
        }
        prio => out.num("priority", prio, format_args!("\tpriority {prio:<8}")),
    }
    let clock = CLOCKS.iter().find(|c| c.1 == i64("clockid")).map_or("invalid", |c| c.0);
    out.string("clockid", clock, format_args!("\tclockid {clock}"));
    let flags = o.u32("flags").unwrap_or(0);
    let hex = if flags == 0 { "0".to_owned() } else { format!("{flags:#x}") };
    out.string("flags", &hex, format_args!("\tflags {hex}"));
    out.text_only(format_args!("\n"));
    for (word, name) in
        [("base-time", "base_time"), ("cycle-time", "cycle_time"), ("cycle-time-ext", "cycle_time_ext")]
    {
        out.text_only(format_args!("\t{word} {}", time64_text(i64(name))));
        out.json_num(name, i64(name) as u64);
    }
    out.nl();
    out.text_only(format_args!("\tschedule:"));
    out.nl();
    out.open_array("schedule", "");
    for entry in o.list("entries") {
        print_entry(entry, out);
    }
    out.close_array();
    control::print_control("\t", control::of(o), "", out);
    let n = |name: &str| o.u32(name).unwrap_or(0);
    out.num("index", n("index"), format_args!("\n\t index {}", n("index")));
    out.num("ref", n("ref"), format_args!(" ref {}", n("ref")));
    out.num("bind", n("bind"), format_args!(" bind {}", n("bind")));
    if out.form.stats {
        print_times(o, out);
    }
    out.text_only(format_args!("\n"));
}

fn print_entry(entry: &Options, out: &mut Out) {
    let n = |name: &str| entry.u32(name).unwrap_or(0);
    let state = if n("open") != 0 { "open" } else { "close" };
    out.open_object(None);
    out.num("number", n("number"), format_args!("\t number {:4}", n("number")));
    out.string("gate_state", state, format_args!("\tgate-state {state} "));
    out.json_num("interval", n("interval"));
    out.text_only(format_args!("\tinterval {}", time64_text(i64::from(n("interval")))));
    match entry.i64("ipv").unwrap_or(ANY) {
        ANY => {
            out.json_num("ipv", ANY);
            out.text_only(format_args!("\t ipv wildcard"));
        }
        ipv => out.num("ipv", ipv as u32, format_args!("\t ipv {:<10}", ipv as u32)),
    }
    match entry.i64("max_octets").unwrap_or(ANY) {
        ANY => {
            out.text_only(format_args!("\t max-octets wildcard"));
            out.json_num("max_octets", ANY);
        }
        octets => out.size("max_octets", "\t max-octets ", octets as u32, ""),
    }
    out.close_object();
    out.nl();
}
