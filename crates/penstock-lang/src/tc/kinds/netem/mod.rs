//! `netem`: the words of 6.x. Those of 2010 are in [`old`], what is printed in [`mod@print`].
//!
//! Follows: iproute2 6.1.0 `tc/q_netem.c`.
//! Differs: `seed` is iproute2 6.12.0's, and printed as there where it was set; of the distributions the four that come
//! with iproute2 are there by name.

mod old;
mod print;
mod say;

use super::{Kind, OptionWord, Side, rate, what_is, word};
use crate::tc::args::{Args, matches};
use crate::tc::{Failure, num};
use penstock_model::psched::{TICK_IN_USEC, time2tick};
use penstock_model::{Options, Value};

const USAGE: &str = "\
Usage: ... netem [ limit PACKETS ]
               [ delay TIME [ JITTER [ CORRELATION ] ] ]
          [ distribution { normal | pareto | paretonormal | experimental } ]
          [ corrupt PERCENT [ CORRELATION ] ] [ duplicate PERCENT [ CORRELATION ] ]
          [ loss random PERCENT [ CORRELATION ] ] [ loss state P13 [ P31 [ P32 [ P23 [ P14 ] ] ] ] ]
          [ loss gemodel PERCENT [ R [ 1-H [ 1-K ] ] ] ] [ seed SEED ] [ ecn ]
          [ reorder PERCENT [ CORRELATION ] [ gap DISTANCE ] ]
          [ rate RATE [ PACKETOVERHEAD ] [ CELLSIZE ] [ CELLOVERHEAD ] ]
          [ slot MIN_DELAY [ MAX_DELAY ] [ packets MAX_PACKETS ] [ bytes MAX_BYTES ] ]
          [ slot distribution DISTRIBUTION DELAY JITTER [ packets MAX_PACKETS ] [ bytes MAX_BYTES ] ]
";
const PERCENT: &str = "a percentage, e.g. 0.1%";
const TIME: &str = "a time, e.g. 100ms";

const WORDS: &[OptionWord] = &[
    word("limit", "PACKETS", "maximum packets held; default 1000"),
    word("delay", "TIME [JITTER [CORRELATION]]", "how long each packet is held; also latency"),
    word(
        "distribution",
        "NAME",
        "of the jitter: normal, pareto, paretonormal, experimental; default uniform",
    ),
    word("loss", "random PERCENT [CORRELATION]", "packets lost by chance; also drop"),
    word("loss", "state P13 [P31 [P32 [P23 [P14]]]]", "packets lost by a chain of four states"),
    word("loss", "gemodel P [R [1-H [1-K]]]", "packets lost by the Gilbert-Elliott model"),
    word("ecn", "", "mark instead of losing"),
    word("corrupt", "PERCENT [CORRELATION]", "packets with a bit turned over"),
    word("duplicate", "PERCENT [CORRELATION]", "packets sent twice"),
    word("reorder", "PERCENT [CORRELATION]", "packets sent at once, before those that are held"),
    word("gap", "DISTANCE", "only every Nth packet; needs reorder"),
    word("rate", "RATE [OVERHEAD [CELL [CELLOVERHEAD]]]", "hold each for the time it takes at this rate"),
    word(
        "slot",
        "MIN [MAX] [packets N] [bytes N]",
        "packets leave in bursts so long apart; without a unit ns",
    ),
    word("seed", "SEED", "where the dice begin"),
];

pub static KIND: Kind = Kind {
    id: "netem",
    qdisc: Some(Side { parse, say: say::say_qdisc, words: WORDS }),
    print: print::print,
    print_xstats: Some(print::xstats),
    ..Kind::BARE
};

/// `struct tc_netem_qopt` and the rest, as the words say it.
struct NetemOptions {
    limit: u32,
    latency: u32,
    jitter: u32,
    /// Both in ns, as tc sends them since 7.2.
    exact: [Option<i64>; 2],
    loss: u32,
    duplicate: u32,
    gap: u32,
    /// Of delay, loss and duplicates.
    corr: [u32; 3],
    /// Whether they are sent at all.
    corr_given: bool,
    reorder: Option<[u32; 2]>,
    corrupt: Option<[u32; 2]>,
    /// What else is sent as it stands here.
    o: Options,
}

impl NetemOptions {
    fn new() -> NetemOptions {
        NetemOptions {
            limit: 1000,
            latency: 0,
            jitter: 0,
            exact: [None; 2],
            loss: 0,
            duplicate: 0,
            gap: 0,
            corr: [0; 3],
            corr_given: false,
            reorder: None,
            corrupt: None,
            o: Options::new(),
        }
    }
    /// The whole request.
    fn request(self) -> Options {
        let mut o = Options::new()
            .with("limit", self.limit)
            .with("latency", self.latency)
            .with("jitter", self.jitter)
            .with("loss", self.loss)
            .with("duplicate", self.duplicate)
            .with("gap", self.gap);
        for (name, ns) in ["latency64", "jitter64"].into_iter().zip(self.exact) {
            if let Some(ns) = ns {
                o = o.with(name, ns);
            }
        }
        if self.corr_given {
            let [delay, loss, duplicate] = self.corr;
            let corr = Options::new().with("delay", delay).with("loss", loss).with("duplicate", duplicate);
            o = o.with("corr", corr);
        }
        for (name, pair) in [("reorder", self.reorder), ("corrupt", self.corrupt)] {
            if let Some([probability, correlation]) = pair {
                let pair = Options::new().with("probability", probability).with("correlation", correlation);
                o = o.with(name, pair);
            }
        }
        for (name, value) in self.o.iter() {
            o.set(name, value.clone());
        }
        o
    }
    fn has_loss_model(&self) -> bool {
        self.o.has("loss_state") || self.o.has("loss_gemodel")
    }
}

/// `explain1`.
fn illegal(args: &Args, name: &str, help: &str) -> Failure {
    args.fail(format!("Illegal \"{name}\""), 1, help)
}
fn next_is_number(args: &Args) -> bool {
    args.peek_text().is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit()))
}
fn next_is_signed_number(args: &Args) -> bool {
    next_is_number(args) || args.peek_text().is_some_and(|text| text.starts_with('-'))
}

/// `parse_percent`: a share of one. What is not a number at all is nothing.
pub(super) fn share(text: &str) -> Option<f64> {
    let (number, rest) = num::strtod(text).unwrap_or((0.0, text));
    let share = number / 100.0;
    ((0.0..=1.0).contains(&share) && (rest.is_empty() || rest == "%")).then_some(share)
}
/// `set_percent`: in units of 2^-32, nearly.
fn scaled(share: f64) -> u32 {
    num::cast_u32((share * f64::from(u32::MAX)).round_ties_even())
}
/// `get_percent` of the next word.
fn percent(args: &mut Args, name: &str) -> Result<u32, Failure> {
    let v = args.value()?;
    share(&v.text).map(scaled).ok_or_else(|| illegal(args, name, PERCENT))
}
/// A percentage and, where a number follows, its correlation.
fn percent_pair(args: &mut Args, name: &str) -> Result<(u32, Option<u32>), Failure> {
    let first = percent(args, name)?;
    let second = if next_is_number(args) { Some(percent(args, name)?) } else { None };
    Ok((first, second))
}
/// `get_ticks` of the next word.
fn ticks(args: &mut Args) -> Result<u32, Failure> {
    let v = args.value()?;
    let us = num::time(&v.text).ok_or_else(|| illegal(args, "latency", TIME))?;
    if f64::from(us) * TICK_IN_USEC >= 4_294_967_296.0 {
        return Err(illegal(args, "latency", "274 s at most").also(&format!("Illegal {us} time (too large)")));
    }
    Ok(time2tick(f64::from(us)))
}

/// `get_distribution`: the tables that come with iproute2.
fn distribution(args: &mut Args) -> Result<Value, Failure> {
    let v = args.value()?;
    if ["normal", "pareto", "paretonormal", "experimental"].contains(&v.text.as_str()) {
        return Ok(Value::Str(v.text.clone()));
    }
    let folder = if args.old() { "/usr/lib//tc/" } else { "/usr/lib/x86_64-linux-gnu/tc/" };
    let mut path = format!("{folder}/{}.dist", v.text);
    let end = (0..=path.len().min(127)).rev().find(|&i| path.is_char_boundary(i)).unwrap_or(0);
    path.truncate(end);
    let line = format!("No distribution data for {} ({path}: No such file or directory)", v.text);
    Err(args.fail(line, 1, "there are normal, pareto, paretonormal, experimental"))
}

fn parse(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    if args.old() {
        return old::parse(args);
    }
    let mut g = NetemOptions::new();
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        if is("limit") {
            let v = args.value()?;
            g.limit = num::size(&v.text, args.kernel())
                .ok_or_else(|| illegal(args, "limit", "a number of packets"))?;
        } else if is("latency") || is("delay") {
            let exact = args.since_7();
            let mut time = |n: usize, args: &mut Args| -> Result<u32, Failure> {
                if !exact {
                    return ticks(args);
                }
                let v = args.value()?;
                let ns = num::time64(&v.text).ok_or_else(|| illegal(args, "latency", TIME))?;
                g.exact[n] = Some(ns);
                Ok(0)
            };
            g.latency = time(0, args)?;
            if next_is_number(args) {
                g.jitter = time(1, args)?;
                if next_is_number(args) {
                    g.corr_given = true;
                    g.corr[0] = percent(args, "latency")?;
                }
            }
        } else if is("loss") || is("drop") {
            loss(args, &mut g)?;
        } else if is("seed") && word.text.len() > 1 {
            let v = args.value()?;
            let seed = num::u64(&v.text, 10).ok_or_else(|| illegal(args, "seed", "a whole number"))?;
            g.o.set("seed", Value::U64(seed));
        } else if is("ecn") {
            g.o.set("ecn", Value::U32(1));
        } else if is("reorder") {
            let (probability, correlation) = percent_pair(args, "reorder")?;
            g.corr_given |= correlation.is_some();
            let before = g.reorder.map_or(0, |r| r[1]);
            g.reorder = Some([probability, correlation.unwrap_or(before)]);
        } else if is("corrupt") {
            let (probability, correlation) = percent_pair(args, "corrupt")?;
            g.corr_given |= correlation.is_some();
            let before = g.corrupt.map_or(0, |c| c[1]);
            g.corrupt = Some([probability, correlation.unwrap_or(before)]);
        } else if is("gap") {
            let v = args.value()?;
            g.gap = num::u32(&v.text, 0).ok_or_else(|| illegal(args, "gap", "a whole number"))?;
        } else if is("duplicate") {
            // Of this correlation tc forgets to say that it is there.
            let (probability, correlation) = percent_pair(args, "duplicate")?;
            (g.duplicate, g.corr[2]) = (probability, correlation.unwrap_or(g.corr[2]));
        } else if is("distribution") {
            let name = distribution(args)?;
            g.o.set("distribution", name);
        } else if is("rate") {
            rate_words(args, dev, &mut g)?;
        } else if is("slot") {
            slot(args, &mut g)?;
        } else if word.text == "help" {
            return Err(super::helped(args, USAGE));
        } else {
            let help = "netem takes limit, delay, loss, ecn, reorder, gap, corrupt, duplicate, distribution, rate, slot, seed";
            return Err(what_is(args, &word.text, USAGE, help));
        }
    }
    check(args, &mut g)?;
    Ok(Some(g.request()))
}

/// What does not go together.
fn check(args: &Args, g: &mut NetemOptions) -> Result<(), Failure> {
    let no = |line: &str, help: &str| Err(args.fail(line, 1, help).usage(USAGE));
    let some = |ticks: u32, exact: Option<i64>| ticks != 0 || exact.is_some_and(|ns| ns != 0);
    let (latency, jitter) = (some(g.latency, g.exact[0]), some(g.jitter, g.exact[1]));
    if g.reorder.is_some_and(|r| r[0] != 0) {
        if !latency {
            return no("reordering not possible without specifying some delay", "delay 10ms reorder 25%");
        }
        g.gap = g.gap.max(1);
    } else if g.gap > 0 {
        return no("gap specified without reorder probability", "delay 10ms reorder 25% gap 5");
    }
    if g.o.has("ecn") && g.loss == 0 && !g.has_loss_model() {
        return no("ecn requested without loss model", "loss 1% ecn");
    }
    if g.o.has("distribution") && !(latency && jitter) {
        let line = "distribution specified but no latency and jitter values";
        return no(line, "delay 100ms 10ms distribution normal");
    }
    Ok(())
}

fn loss(args: &mut Args, g: &mut NetemOptions) -> Result<(), Failure> {
    if g.loss > 0 || g.has_loss_model() {
        return Err(illegal(args, "duplicate loss argument\n", "one kind of loss"));
    }
    // The oldest form has the percentage at once.
    if !next_is_number(args) {
        let v = args.value()?;
        match v.text.as_str() {
            "random" => {}
            "state" => return loss_state(args, g),
            "gemodel" => return loss_gemodel(args, g),
            other => {
                let line = format!("Unknown loss parameter: {other}");
                return Err(args.fail(line, 1, "loss random, loss state, loss gemodel"));
            }
        }
    }
    g.loss = percent(args, "loss percent")?;
    if next_is_number(args) {
        g.corr_given = true;
        g.corr[1] = percent(args, "loss correlation")?;
    }
    Ok(())
}

/// Percentages that follow one another; those not given keep the defaults.
fn chain(args: &mut Args, names: &[(&'static str, &str)], o: &mut Options) -> Result<(), Failure> {
    for (name, shown) in names {
        if !next_is_number(args) {
            break;
        }
        o.set(name, Value::U32(percent(args, shown)?));
    }
    Ok(())
}

fn loss_state(args: &mut Args, g: &mut NetemOptions) -> Result<(), Failure> {
    let v = args.value()?;
    let p13 = share(&v.text).ok_or_else(|| illegal(args, "loss p13", PERCENT))?;
    let mut o = Options::new()
        .with("p13", scaled(p13))
        .with("p31", scaled(1.0 - p13))
        .with("p32", 0u32)
        .with("p23", u32::MAX)
        .with("p14", 0u32);
    let rest = [("p31", "loss p31"), ("p32", "loss p32"), ("p23", "loss p23"), ("p14", "loss p14")];
    chain(args, &rest, &mut o)?;
    g.o.set("loss_state", o.into());
    Ok(())
}

fn loss_gemodel(args: &mut Args, g: &mut NetemOptions) -> Result<(), Failure> {
    let v = args.value()?;
    let p = share(&v.text).ok_or_else(|| illegal(args, "loss gemodel p", PERCENT))?;
    let mut o = Options::new().with("p", scaled(p)).with("r", scaled(1.0 - p));
    let rest = [("r", "loss gemodel r"), ("1-h", "loss gemodel h"), ("k1", "loss gemodel k")];
    chain(args, &rest, &mut o)?;
    // The kernel wants h, which is 0 where nothing is said.
    let h = match o.remove("1-h") {
        Some(Value::U32(h)) => u32::MAX - h,
        _ => 0,
    };
    g.o.set("loss_gemodel", o.with("h", h).into());
    Ok(())
}

fn rate_words(args: &mut Args, dev: Option<&str>, g: &mut NetemOptions) -> Result<(), Failure> {
    let no =
        |args: &Args| illegal(args, "rate", "a rate, then bytes of overhead, of a cell, of its overhead");
    let v = args.value()?;
    let rate = rate(&v.text, args, dev).map_err(|said| match said {
        Some(line) => no(args).also(&line),
        None => no(args),
    })?;
    let before = g.o.remove("rate");
    let mut o = match before {
        Some(Value::Nested(o)) => o,
        _ => Options::new().with("packetoverhead", 0i64).with("cellsize", 0u32).with("celloverhead", 0i64),
    };
    o.set("rate", Value::U64(rate));
    if next_is_signed_number(args) {
        let overhead = num::integer(&args.value()?.text, 0).ok_or_else(|| no(args))?;
        o.set("packetoverhead", Value::I64(overhead.into()));
    }
    if next_is_number(args) {
        let cell = num::u32(&args.value()?.text, 0).ok_or_else(|| no(args))?;
        o.set("cellsize", Value::U32(cell));
    }
    if next_is_signed_number(args) {
        let overhead = num::integer(&args.value()?.text, 0).ok_or_else(|| no(args))?;
        o.set("celloverhead", Value::I64(overhead.into()));
    }
    g.o.set("rate", o.into());
    Ok(())
}

fn slot(args: &mut Args, g: &mut NetemOptions) -> Result<(), Failure> {
    let mut o = match g.o.remove("slot") {
        Some(Value::Nested(o)) => o,
        _ => Options::new(),
    };
    let time = |args: &mut Args, name: &str| {
        let v = args.value()?;
        num::time64(&v.text)
            .ok_or_else(|| illegal(args, name, "a time, e.g. 800us; without a unit nanoseconds"))
    };
    if next_is_number(args) {
        let min = time(args, "slot min_delay")?;
        let max = if next_is_number(args) { time(args, "slot max_delay")? } else { min };
        if max < min {
            return Err(illegal(args, "slot max_delay", "not below the first"));
        }
        o = o.with("min_delay", min).with("max_delay", max);
    } else {
        let v = args.value()?;
        if v.text != "distribution" {
            let line = format!("Unknown slot parameter: {}", v.text);
            return Err(args.fail(line, 1, "slot MIN [MAX], or slot distribution NAME DELAY JITTER"));
        }
        let name = distribution(args)?;
        g.o.set("slot_distribution", name);
        o = o.with("dist_delay", time(args, "slot delay")?);
        let jitter = time(args, "slot jitter")?;
        if jitter <= 0 {
            return Err(args.fail("Non-positive jitter", 1, "more than nothing"));
        }
        o = o.with("dist_jitter", jitter);
    }
    if args.peek_text().is_some_and(|text| matches(text, "packets")) {
        args.next_word();
        let packets = args.next_word().and_then(|v| num::integer(&v.text, 0));
        let packets = packets.ok_or_else(|| illegal(args, "slot packets", "a whole number"))?;
        o = o.with("packets", i64::from(packets));
    }
    if args.peek_text().is_some_and(|text| matches(text, "bytes")) {
        args.next_word();
        let bytes = args.next_word().and_then(|v| num::size(&v.text, args.kernel()));
        let bytes = bytes.ok_or_else(|| illegal(args, "slot bytes", "bytes, e.g. 9000"))?;
        o = o.with("bytes", i64::from(bytes as i32));
    }
    g.o.set("slot", o.into());
    Ok(())
}
