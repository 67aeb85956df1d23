//! `dualpi2`.
//!
//! Follows: iproute2 7.1.0 `tc/q_dualpi2.c`.

use super::netem::share;
use super::plain::{self, NUMBER, Plain, Read, Shown, flag, illegal, plain};
use super::{Kind, OptionWord, Side, word};
use crate::show::{Out, time_text};
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use crate::tc::{Command, Failure, num};
use penstock_model::{Options, Value, time::general};

const USAGE: &str = "\
Usage: ... dualpi2 [ limit PACKETS ] [ memlimit BYTES ] [ coupling_factor NUMBER ]
          [ step_thresh TIME|PACKETS ] [ min_qlen_step PACKETS ] [ drop_on_overload | overflow ]
          [ drop_enqueue | drop_dequeue ] [ classic_protection PERCENTAGE ] [ l4s_ect | any_ect ]
          [ max_rtt TIME [ typical_rtt TIME ] ] [ target TIME ] [ tupdate TIME ]
          [ alpha ALPHA ] [ beta BETA ] [ split_gso | no_split_gso ]
";

const WORDS: &[OptionWord] = &[
    word("limit", "PACKETS", "maximum packets queued in both queues; default 10000"),
    word("memlimit", "BYTES", "maximum memory for packets; default from limit and MTU"),
    word("coupling_factor", "NUMBER", "by how much more often the low queue is marked, 1 to 255; default 2"),
    word(
        "step_thresh",
        "TIME|PACKETS",
        "delay (or packets, 5p) above which all of the low queue is marked; default 1ms",
    ),
    word("min_qlen_step", "PACKETS", "packets in the low queue below which that is not so; default 0"),
    word("drop_on_overload", "", "where marking does not suffice, drop; the default"),
    word("overflow", "", "mark on, and let the queue overflow"),
    word("drop_enqueue", "", "drop and mark what comes"),
    word("drop_dequeue", "", "drop and mark what leaves; the default"),
    word("classic_protection", "PERCENTAGE", "share of the classic queue where both wait; default 10%"),
    word("l4s_ect", "", "ECT(1) and CE go to the low queue; the default"),
    word("any_ect", "", "ECT(0) does too"),
    word("max_rtt", "TIME", "greatest round trip: target, tupdate, alpha and beta from it"),
    word("typical_rtt", "TIME", "usual round trip; default a sixth of max_rtt"),
    word("target", "TIME", "delay of the classic queue to be kept; default 15ms"),
    word("tupdate", "TIME", "how often the probability is computed; default 16ms"),
    word("alpha", "ALPHA", "weight of the delay's distance from target, Hz; default 0.16"),
    word("beta", "BETA", "weight of the delay's growth, Hz; default 3.2"),
    word("split_gso", "", "take large packets apart; the default"),
    word("no_split_gso", "", "leave them whole"),
];

const TABLE: &[Plain] = &[
    plain("limit", NUMBER),
    plain("memlimit", NUMBER),
    plain("target", Read::Time),
    plain("tupdate", Read::Time),
    flag("l4s_ect", "ecn_mask", 1),
    flag("any_ect", "ecn_mask", 3),
    flag("overflow", "drop_overload", 0),
    flag("drop_on_overload", "drop_overload", 1),
    flag("drop_enqueue", "drop_early", 1),
    flag("drop_dequeue", "drop_early", 0),
    flag("split_gso", "split_gso", 1),
    flag("no_split_gso", "split_gso", 0),
];

pub static KIND: Kind = Kind {
    id: "dualpi2",
    in_2_6_35: false,
    in_6_12: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print,
    print_xstats: Some(print_xstats),
    ..Kind::BARE
};

/// `ALPHA_BETA_MAX` and `ALPHA_BETA_SCALE`.
const GAIN_MAX: f64 = 16_777_215.0;
const GAIN_SCALE: f32 = 256.0;
/// `TIME_UNITS_PER_SEC`: microseconds.
const SECOND: f64 = 1_000_000.0;
/// What C makes of `0.1f` and `0.3f`.
const TENTH: f64 = 0.1f32 as f64;
const THREE_TENTHS: f64 = 0.3f32 as f64;
/// `RTT_TYP_TO_MAX`.
const TYPICAL: u32 = 6;

fn parse(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut rtt = [0u32; 2];
    let mut o = plain::parse(args, dev, TABLE, USAGE, &mut |args, name, o| other(args, name, o, &mut rtt))?;
    if rtt != [0, 0] {
        from_round_trips(args, rtt, &mut o)?;
    }
    Ok(Some(o))
}

fn other(args: &mut Args, name: &str, o: &mut Options, rtt: &mut [u32; 2]) -> Result<bool, Failure> {
    match name {
        "alpha" | "beta" => {
            let v = args.value()?;
            let help = "hertz, 0 to 16777215, e.g. 0.16";
            let gain = num::strtod(&v.text)
                .filter(|(gain, rest)| rest.is_empty() && (0.0..=GAIN_MAX).contains(gain));
            let gain = gain.ok_or_else(|| illegal(args, name, help))?.0 as f32;
            if gain < 1.0 / GAIN_SCALE {
                let line = format!("Warning: \"{name}\" is too small and will be rounded to zero.\n");
                args.said.push(Command::Help(line));
            }
            o.set(if name == "alpha" { "alpha" } else { "beta" }, Value::U32((gain * GAIN_SCALE) as u32));
        }
        "coupling_factor" => {
            let v = args.value()?;
            let factor = num::integer(&v.text, 0).filter(|n| (0..=255).contains(n));
            let factor = factor.ok_or_else(|| illegal(args, name, "a whole number from 1 to 255"))?;
            o.set("coupling_factor", Value::U32(factor as u32));
        }
        "step_thresh" => {
            let v = args.value()?;
            o.remove("step_thresh_us");
            o.remove("step_thresh_pkts");
            let (option, value) = match (time(&v.text), packets(&v.text)) {
                (Some(us), _) => ("step_thresh_us", us),
                (None, Some(packets)) => ("step_thresh_pkts", packets),
                (None, None) => return Err(illegal(args, name, "a time, e.g. 1ms, or packets, e.g. 5p")),
            };
            if value != 0 {
                o.set(option, Value::U32(value));
            }
        }
        "min_qlen_step" => {
            let v = args.value()?;
            let packets = num::u32(&v.text, 10).ok_or_else(|| illegal(args, name, "a number of packets"))?;
            o.set("min_qlen_step", Value::U32(packets));
        }
        "classic_protection" => {
            let v = args.value()?;
            let percent = share(&v.text).ok_or_else(|| illegal(args, name, "a share, e.g. 10%"))?;
            o.set("classic_protection", Value::U32((percent * 100.0).round_ties_even() as u32));
        }
        "max_rtt" | "typical_rtt" => {
            let v = args.value()?;
            let us = time(&v.text).ok_or_else(|| illegal(args, name, "a time, e.g. 100ms"))?;
            rtt[usize::from(name == "typical_rtt")] = us;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// `get_time`, which takes no negative ones.
fn time(text: &str) -> Option<u32> {
    num::time(text).filter(|_| num::strtod(text).is_some_and(|(n, _)| n >= 0.0))
}

/// `get_packets`: `5p`, `5packets`.
fn packets(text: &str) -> Option<u32> {
    let (number, unit) = num::strtoul(text, 10)?;
    ["p", "pkt", "pkts", "packet", "packets"].contains(&unit).then_some(())?;
    u32::try_from(number).ok()
}

/// Target, update, alpha and beta from the greatest and the usual round trip, µs.
fn from_round_trips(args: &mut Args, [max, typical]: [u32; 2], o: &mut Options) -> Result<(), Failure> {
    let (max, typical) = match (max, typical) {
        (max, 0) => (max, (max / TYPICAL).max(1)),
        (0, typical) => (typical.wrapping_mul(TYPICAL), typical),
        both => both,
    };
    if typical > max {
        return Err(args.fail(
            "typical_rtt must be <= max_rtt!",
            1,
            "a shorter typical_rtt, or a longer max_rtt",
        ));
    }
    if ["alpha", "beta", "tupdate", "target"].iter().any(|name| o.has(name)) {
        let line = "rtt_max is specified, ignore alpha/beta/tupdate/target\n";
        args.said.push(Command::Help(line.to_owned()));
    }
    let third = f64::from(max) / 3.0;
    let tupdate = if f64::from(typical) < third { typical } else { third as u32 }.max(1);
    let alpha = f64::from(tupdate) / f64::from(max) / f64::from(max) * SECOND * TENTH;
    let beta = THREE_TENTHS / f64::from(max) * SECOND;
    let max_text = time_text(max, false);
    if beta > GAIN_MAX {
        let line = format!("max_rtt={max_text} is too low and cause beta to overflow!");
        return Err(args.fail(line, 1, "a longer max_rtt"));
    }
    let least = 1.0 / f64::from(GAIN_SCALE);
    if alpha < least || beta < least {
        let line = format!("Large max_rtt={max_text} rounds down alpha={alpha:.6} and/or beta={beta:.6}!");
        return Err(args.fail(line, 1, "a shorter max_rtt"));
    }
    let typical_text = time_text(typical, false);
    args.said.push(Command::Help(format!(
        "Auto-config [max_rtt: {max_text}, typical_rtt: {typical_text}]: target={typical_text} tupdate={} alpha={alpha:.6} beta={beta:.6}\n",
        time_text(tupdate, false)
    )));
    let scaled = |gain: f64| (gain * f64::from(GAIN_SCALE)) as u32;
    for (name, value) in
        [("target", typical), ("tupdate", tupdate), ("alpha", scaled(alpha)), ("beta", scaled(beta))]
    {
        o.set(name, Value::U32(value));
    }
    Ok(())
}

/// A number with its unit in text, bare in JSON under another key.
fn number(o: &Options, name: &str, key: &str, (before, after): (&str, &str), out: &mut Out) {
    let value = o.u32(name).unwrap_or(0);
    out.num(key, value, format_args!("{before}{value}{after}"));
}

/// One word in text, another in JSON.
fn either(key: &str, text: &str, json: &str, out: &mut Out) {
    out.json_text(key, json);
    out.text_only(format_args!("{text} "));
}

fn print(o: &Options, out: &mut Out) {
    let n = |name: &str| o.u32(name).unwrap_or(0);
    number(o, "limit", "limit", ("limit ", "p "), out);
    number(o, "memlimit", "memory-limit", ("memlimit ", "B "), out);
    plain::print(o, &[("target", Shown::Time), ("tupdate", Shown::Time)], out);
    for name in ["alpha", "beta"] {
        let gain = f64::from(n(name) as f32 / GAIN_SCALE);
        out.literal(name, &general(gain, 6), format_args!("{name} {gain:.6} "));
    }
    if o.has("step_thresh_pkts") {
        number(o, "step_thresh_pkts", "step-thresh-pkts", ("step_thresh ", "p "), out);
    } else {
        let us = n("step_thresh_us");
        plain::time("step-thresh-us", us, format_args!("step_thresh {} ", time_text(us, false)), out);
    }
    number(o, "min_qlen_step", "min-qlen-step", ("min_qlen_step ", "p "), out);
    number(o, "coupling_factor", "coupling", ("coupling_factor ", " "), out);
    let (drop, early) = (n("drop_overload") != 0, n("drop_early") != 0);
    let words = if drop { ("drop_on_overload", "drop") } else { ("overflow", "overflow") };
    either("drop-overload", words.0, words.1, out);
    let words = if early { ("drop_enqueue", "drop-enqueue") } else { ("drop_dequeue", "drop-dequeue") };
    either("drop-early", words.0, words.1, out);
    number(o, "classic_protection", "c-protection", ("classic_protection ", "% "), out);
    let words = if n("ecn_mask") == 1 { ("l4s_ect", "l4s-ect") } else { ("any_ect", "any-ect") };
    either("ecn-mask", words.0, words.1, out);
    if n("split_gso") != 0 {
        out.null("split-gso", format_args!("split_gso "));
    } else {
        out.text_only(format_args!("no_split_gso "));
    }
}

fn print_xstats(o: &Options, out: &mut Out) {
    let prob = f64::from(o.u32("prob").unwrap_or(0)) / f64::from(u32::MAX);
    out.literal("prob", &general(prob, 6), format_args!("prob {prob:.6} "));
    number(o, "delay_c", "delay-c", ("delay_c ", "us "), out);
    number(o, "delay_l", "delay-l", ("delay_l ", "us"), out);
    out.nl();
    number(o, "pkts_in_c", "pkts-in-c", ("pkts_in_c ", " "), out);
    number(o, "pkts_in_l", "pkts-in-l", ("pkts_in_l ", " "), out);
    number(o, "maxq", "maxq", ("maxq ", ""), out);
    out.nl();
    number(o, "ecn_mark", "ecn-mark", ("ecn_mark ", " "), out);
    number(o, "step_mark", "step-mark", ("step_mark ", ""), out);
    out.nl();
    let credit = o.i64("credit").unwrap_or(0);
    out.num("credit", credit, format_args!("credit {credit} "));
    out.text_only(format_args!("({})", if credit > 0 { "C-queue" } else { "L-queue" }));
    out.nl();
    number(o, "memory_used", "memory-used", ("memory_used ", " "), out);
    number(o, "max_memory_used", "max-memory-used", ("(max ", ") "), out);
    number(o, "memory_limit", "memory-limit", ("of memory limit ", ""), out);
    out.nl();
}

fn say_qdisc(say: &mut Say) {
    let o = say.o;
    say.all(&["limit", "memlimit"], Unit::Plain).unless_zero("target", Unit::Us).given("tupdate", Unit::Us);
    for name in ["alpha", "beta"] {
        if let Some(gain) = o.u32(name) {
            // What is kept of it may be a 256th less than what was given.
            say.pair(name, f64::from(gain) / f64::from(GAIN_SCALE) + 1.0 / 512.0);
        }
    }
    match (o.u32("step_thresh_pkts"), o.u32("step_thresh_us")) {
        (Some(packets), _) => say.pair("step_thresh", format!("{packets}p")),
        (None, Some(us)) => say.word("step_thresh").value("step_thresh_us", us.into(), Unit::Us),
        (None, None) => say,
    };
    say.all(&["min_qlen_step", "coupling_factor"], Unit::Plain);
    say.either("drop_overload", "drop_on_overload", "overflow").either(
        "drop_early",
        "drop_enqueue",
        "drop_dequeue",
    );
    if let Some(share) = o.u32("classic_protection") {
        say.pair("classic_protection", format!("{share}%"));
    }
    if let Some(mask) = o.u32("ecn_mask") {
        say.word(if mask == 1 { "l4s_ect" } else { "any_ect" });
    }
    say.either("split_gso", "split_gso", "no_split_gso");
}
