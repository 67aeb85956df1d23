//! `fq`.
//!
//! Follows: iproute2 6.1.0 `tc/q_fq.c`.
//! Differs: `bands 3 priomap …` and `weights …` are iproute2 6.12.0's, and printed as there where they were set. Of the
//! weights that tc skips the first and wants a fourth; here three are read, as its manual has them.

use super::plain::{self, NUMBER, Plain, Read, Shown, always, flag, plain};
use super::{Kind, OptionWord, Side, word};
use crate::show::Out;
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use crate::tc::{Failure, num};
use penstock_model::{Options, Span, Value};

const USAGE: &str = "\
Usage: ... fq\t[ limit PACKETS ] [ flow_limit PACKETS ]
               [ quantum BYTES ] [ initial_quantum BYTES ] [ maxrate RATE ]
          [ buckets NUMBER ] [ [no]pacing ] [ refill_delay TIME ] [ bands 3 priomap P0 P1 ... P14 P15 ]
          [ weights W1 W2 W3 ] [ low_rate_threshold RATE ] [ orphan_mask MASK ] [ timer_slack TIME ]
          [ ce_threshold TIME ] [ horizon TIME ] [ horizon_{cap|drop} ]
";

const WORDS: &[OptionWord] = &[
    word("limit", "PACKETS", "maximum packets queued; default 10000"),
    word("flow_limit", "PACKETS", "maximum packets of a flow; default 100"),
    word("quantum", "BYTES", "bytes a flow may send per turn, 256 to 1Mb; default two MTU with header"),
    word(
        "initial_quantum",
        "BYTES",
        "what a new flow may send at once, 1Mb at most; default ten MTU with header",
    ),
    word("maxrate", "RATE", "most a flow may send; default: no limit"),
    word("buckets", "NUMBER", "size of the hash table, a power of two up to 262144; default 1024"),
    word("pacing", "", "flows are paced as their sockets ask; the default"),
    word("nopacing", "", "they are not"),
    word("refill_delay", "TIME", "idle time after which a flow is new again; default 40ms"),
    word("bands", "3 priomap P0 … P15", "the band of each priority, 0 to 2"),
    word(
        "weights",
        "W1 W2 W3",
        "what each band may send a turn, bytes, 16384 at least; default 589824 196608 65536",
    ),
    word("low_rate_threshold", "RATE", "flows slower than this are paced packet by packet; default 550Kbit"),
    word("orphan_mask", "MASK", "by how many bits packets without a socket are told apart; default 1023"),
    word("timer_slack", "TIME", "by how much a timer may be late; without a unit ns; default 10us"),
    word("ce_threshold", "TIME", "delay above which all is marked; default: none"),
    word("horizon", "TIME", "how far in the future a packet may be due; default 10s"),
    word(
        "offload_horizon",
        "TIME",
        "how long before its time a packet may go to the card; default 0; since 7.2",
    ),
    word("horizon_cap", "", "what is due later is due then"),
    word("horizon_drop", "", "what is due later is dropped; the default"),
    word("defrate", "RATE", "has no effect any more"),
];

const TABLE: &[Plain] = &[
    always("limit", NUMBER),
    always("flow_limit", NUMBER),
    plain("buckets", NUMBER),
    always("maxrate", Read::PercentRate),
    always("low_rate_threshold", Read::Rate),
    always("ce_threshold", Read::Time),
    flag("horizon_drop", "horizon_drop", 1),
    flag("horizon_cap", "horizon_drop", 0),
    always("horizon", Read::Time),
    always("defrate", Read::PercentRate),
    always("quantum", NUMBER),
    always("initial_quantum", NUMBER),
    always("refill_delay", Read::Time),
    flag("pacing", "pacing", 1),
    flag("nopacing", "pacing", 0),
];

pub static KIND: Kind = Kind {
    id: "fq",
    in_2_6_35: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print,
    print_xstats: Some(print_xstats),
    ..Kind::BARE
};

fn parse(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut o = plain::parse(args, dev, TABLE, USAGE, &mut other)?;
    if let Some(buckets) = o.u32("buckets") {
        // The kernel is told the logarithm, rounded up.
        let log = u32::BITS - (buckets - 1).leading_zeros();
        o.set("buckets", Value::U32(log));
    }
    Ok(Some(o))
}

fn other(args: &mut Args, name: &str, o: &mut Options) -> Result<bool, Failure> {
    match name {
        "orphan_mask" => {
            let v = args.value()?;
            // tc names another word here.
            let mask = num::u32(&v.text, 0)
                .ok_or_else(|| plain::illegal(args, "initial_quantum", "orphan_mask is a whole number"))?;
            o.set("orphan_mask", Value::U32(mask));
        }
        "timer_slack" => {
            let v = args.value()?;
            let help = "a time below 4.2s; without a unit nanoseconds";
            let slack = num::time64(&v.text).ok_or_else(|| plain::illegal(args, name, help))?;
            let slack = u32::try_from(slack)
                .map_err(|_| args.fail("Illegal (out of range) \"timer_slack\"", 1, help))?;
            o.set("timer_slack", Value::U32(slack));
        }
        "offload_horizon" if args.since_7() => {
            let us = plain::read(args, None, &always("offload_horizon", Read::Time))?;
            o.set("offload_horizon", Value::U32(us));
        }
        "bands" => bands(args, o)?,
        "weights" => weights(args, o)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn bands(args: &mut Args, o: &mut Options) -> Result<(), Failure> {
    let help = "bands 3 priomap and sixteen numbers from 0 to 2";
    if o.has("priomap") {
        return Err(args.fail("Duplicate \"bands\"", 1, help));
    }
    let v = args.value()?;
    let bands = num::integer(&v.text, 10).ok_or_else(|| plain::illegal(args, "bands", help))?;
    if bands != 3 {
        return Err(args.fail("\"bands\" must be 3", 1, help));
    }
    if args.value()?.text != "priomap" {
        return Err(args.fail("\"priomap\" expected", 1, help));
    }
    let mut map = Vec::new();
    for _ in 0..16 {
        let Some(v) = args.next_word() else {
            return Err(args.fail("Not enough elements in priomap", 1, help));
        };
        let band = num::u32(&v.text, 10)
            .ok_or_else(|| args.fail("Illegal \"priomap\" element, number in [0..2] expected", 1, help))?;
        if band >= 3 {
            return Err(args.fail(format!("\"priomap\" element {band} too big"), 1, help));
        }
        map.push(band as u8);
    }
    o.set("bands", Value::U32(3));
    o.set("priomap", Value::Bytes(map));
    Ok(())
}

fn weights(args: &mut Args, o: &mut Options) -> Result<(), Failure> {
    let help = "three numbers of bytes, 16384 at least";
    if o.has("weights") {
        return Err(args.fail("Duplicate \"weights\"", 1, help));
    }
    let mut weights = Options::new();
    for name in ["weight0", "weight1", "weight2"] {
        let Some(v) = args.next_word() else {
            return Err(args.fail("Not enough elements in weights", 1, help));
        };
        let weight = num::integer(&v.text, 10)
            .ok_or_else(|| args.fail("Illegal \"weights\" element, positive number expected", 1, help))?;
        if weight < 16384 {
            return Err(args.fail(format!("\"weight\" element {weight} too small"), 1, help));
        }
        weights.set(name, Value::I64(weight.into()));
    }
    o.set("weights", weights.into());
    Ok(())
}

fn print(o: &Options, out: &mut Out) {
    plain::print(o, &[("limit", Shown::Packets), ("flow_limit", Shown::Packets)], out);
    if let Some(log) = o.u32("buckets") {
        let buckets = 1u32.wrapping_shl(log);
        out.num("buckets", buckets, format_args!("buckets {buckets} "));
    }
    plain::print(o, &[("orphan_mask", Shown::Number)], out);
    if o.u32("pacing") == Some(0) {
        out.num("pacing", "false", format_args!("nopacing "));
    }
    if let Some(map) = o.bytes("priomap") {
        plain::print(o, &[("bands", Shown::Number)], out);
        list("priomap ", map.iter().map(|&band| i64::from(band)), out);
    }
    if let Some(weights) = o.nested("weights") {
        list("weights ", ["weight0", "weight1", "weight2"].map(|name| weights.i64(name).unwrap_or(0)), out);
    }
    let fields = [
        ("quantum", Shown::Size),
        ("initial_quantum", Shown::Size),
        ("maxrate", Shown::Rate(u32::MAX)),
        ("low_rate_threshold", Shown::Rate(0)),
        ("refill_delay", Shown::Time),
    ];
    plain::print(o, &fields, out);
    if o.u32("ce_threshold") != Some(u32::MAX) {
        plain::print(o, &[("ce_threshold", Shown::Time)], out);
    }
    let slack = o.u32("timer_slack").unwrap_or(0);
    plain::time("timer_slack", slack, format_args!("timer_slack {} ", Span::from_ns(slack.into())), out);
    plain::print(o, &[("horizon", Shown::Time)], out);
    let late = if o.u32("horizon_drop") == Some(0) { "horizon_cap" } else { "horizon_drop" };
    out.null(late, format_args!("{late} "));
    plain::print(o, &[("offload_horizon", Shown::Time)], out);
}

/// An array; tc's name for it has a blank behind it in JSON too.
fn list(name: &str, items: impl IntoIterator<Item = i64>, out: &mut Out) {
    out.open_array(name, name);
    for item in items {
        out.item(item, format_args!("{item} "));
    }
    out.close_array();
}

fn print_xstats(o: &Options, out: &mut Out) {
    let n = |name: &str| o.u64(name).unwrap_or(0);
    out.num("flows", n("flows"), format_args!("  flows {}", n("flows")));
    out.num("inactive", n("inactive"), format_args!(" (inactive {}", n("inactive")));
    let throttled = n("throttled_flows");
    out.num("throttled", throttled, format_args!(" throttled {throttled})"));
    if out.since_7() {
        plain::counters_each(o, &["band0_pkts", "band1_pkts", "band2_pkts"], out);
    }
    let time = |name: &str, out: &mut Out| {
        if n(name) != 0 {
            out.json_num(name, n(name));
            out.text_only(format_args!(" {name} {}", Span::from_ns(n(name) as i64)));
        }
    };
    time("next_packet_delay", out);
    out.nl();
    plain::counters(o, &["gc", "highprio"], out);
    if out.since_7() {
        plain::counters_of_some(o, &["fastpath"], out);
    }
    plain::counters_of_some(o, &["retrans"], out);
    plain::counter(o, "throttled", " ", out);
    time("latency", out);
    plain::counters_of_some(o, &["ce_mark", "flows_plimit"], out);
    let rare = ["pkts_too_long", "alloc_errors", "horizon_drops"];
    let bands = if out.since_7() { &["band0_drops", "band1_drops", "band2_drops"][..] } else { &[] };
    if rare.iter().chain(&["horizon_caps"]).chain(bands).any(|name| n(name) != 0) {
        out.nl();
        plain::counters_of_some(o, &rare, out);
        if n("horizon_caps") != 0 {
            plain::counter(o, "horizon_caps", "  ", out);
        }
        plain::counters_of_some(o, bands, out);
    }
}

fn say_qdisc(say: &mut Say) {
    let o = say.o;
    say.given("limit", Unit::Plain).given("flow_limit", Unit::Plain);
    if let Some(log) = o.u32("buckets") {
        say.pair("buckets", 1u64 << (log & 31));
    }
    say.given("orphan_mask", Unit::Plain).either("pacing", "pacing", "nopacing");
    if let Some(map) = o.bytes("priomap") {
        say.pair("bands", 3);
        say.list("priomap", Some(map));
    }
    if let Some(weights) = o.nested("weights") {
        let three = ["weight0", "weight1", "weight2"].map(|name| weights.i64(name).unwrap_or(0));
        say.list("weights", Some(three));
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
    say.unless_zero("offload_horizon", Unit::Us);
}
