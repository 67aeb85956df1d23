//! `red`.
//!
//! Follows: iproute2 6.1.0 `tc/q_red.c`, `tc/tc_qevent.c`; 2.6.35 `tc/q_red.c`.

use super::plain::{self, NUMBER, Read, plain};
use super::red_parms::{RedOptions, evaluate, print_details, print_flags, probability, say};
use super::{Kind, OptionWord, Side, helped, what_is, word};
use crate::show::{Out, size_text};
use crate::tc::args::{Args, matches};
use crate::tc::say::{Say, Unit, red};
use crate::tc::{Failure, num};
use penstock_model::{Options, Value};

const USAGE: &str = "\
Usage: ... red\tlimit BYTES [min BYTES] [max BYTES] avpkt BYTES [burst PACKETS]
       ... red limit BYTES [ min BYTES ] [ max BYTES ] avpkt BYTES [ burst PACKETS ] [ adaptive ]
          [ probability PROBABILITY ] [ bandwidth RATE ] [ ecn ] [ harddrop ] [ nodrop ]
          [ qevent early_drop block IDX ] [ qevent mark block IDX ]
";
const OLD_USAGE: &str = "\
Usage: ... red limit BYTES min BYTES max BYTES avpkt BYTES burst PACKETS
          probability PROBABILITY bandwidth RATE [ ecn ]
";
const KNOWN: &str = "red takes limit, min, max, avpkt, burst, probability, bandwidth, ecn, harddrop, nodrop, adaptive, qevent";

const WORDS: &[OptionWord] = &[
    word("limit", "BYTES", "maximum bytes queued; required"),
    word("min", "BYTES", "average length where marking begins; default a third of max"),
    word("max", "BYTES", "average length from which all are marked; default a quarter of limit"),
    word("avpkt", "BYTES", "average packet; required"),
    word("burst", "PACKETS", "packets that may pass in a burst; default (2 min + max) / (3 avpkt)"),
    word("probability", "P", "of a mark at max, 0 to 1; default 0.02"),
    word("bandwidth", "RATE", "rate by which idle time is counted; default 10Mbit"),
    word("adaptive", "", "let the probability follow the average"),
    word("ecn", "", "mark instead of dropping"),
    word("harddrop", "", "drop above max even what could be marked"),
    word("nodrop", "", "let pass what cannot be marked; needs ecn"),
    word(
        "qevent",
        "early_drop|mark block IDX",
        "what is dropped or marked goes through this block's filters",
    ),
];

pub static KIND: Kind = Kind {
    id: "red",
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print,
    print_xstats: Some(print_xstats),
    ..Kind::BARE
};

fn parse(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let old = args.old();
    let mut g = RedOptions { min: 0, max: 0, burst: 0, avpkt: 0, rate: 0, probability: 0.02 };
    let (mut limit, mut flags, mut o) = (0, 0u32, Options::new());
    while let Some(word) = args.next_word() {
        let name = word.text.as_str();
        match name {
            "limit" => limit = plain::read(args, dev, &plain("limit", Read::Size))?,
            "min" => g.min = plain::read(args, dev, &plain("min", Read::Size))?,
            "max" => g.max = plain::read(args, dev, &plain("max", Read::Size))?,
            "burst" => g.burst = plain::read(args, dev, &plain("burst", NUMBER))?,
            "avpkt" => g.avpkt = plain::read(args, dev, &plain("avpkt", Read::Size))?,
            "probability" => g.probability = probability(args)?,
            "bandwidth" => g.rate = plain::read(args, dev, &plain("bandwidth", Read::PercentRate))?,
            "ecn" => flags |= 1,
            "help" => return Err(helped(args, if old { OLD_USAGE } else { USAGE })),
            _ if old => return Err(what_is(args, name, OLD_USAGE, KNOWN)),
            "harddrop" => flags |= 2,
            "adaptive" | "adaptative" => flags |= 4,
            "nodrop" => flags |= 8,
            _ if matches(name, "qevent") => qevent(args, &mut o)?,
            _ => return Err(what_is(args, name, USAGE, KNOWN)),
        }
    }
    if old {
        if g.min == 0 || g.max == 0 || g.burst == 0 || limit == 0 || g.avpkt == 0 {
            let line = "Required parameter (min, max, burst, limit, avpkt) is missing";
            return Err(args.fail(line, 1, "e.g. red limit 60kb min 15kb max 45kb burst 20 avpkt 1000"));
        }
    } else {
        if limit == 0 || g.avpkt == 0 {
            let line = "RED: Required parameter (limit, avpkt) is missing";
            return Err(args.fail(line, 1, "e.g. red limit 400kb avpkt 1000"));
        }
        if g.max == 0 {
            g.max = if g.min != 0 { g.min.wrapping_mul(3) } else { limit / 4 };
        }
        if g.min == 0 {
            g.min = g.max / 3;
        }
        if g.burst == 0 {
            g.burst = g.min.wrapping_mul(2).wrapping_add(g.max) / g.avpkt.wrapping_mul(3);
        }
    }
    if g.rate == 0 {
        g.rate = 1_250_000;
        if !old {
            say(args, "RED: set bandwidth to 10Mbit\n".to_owned());
        }
    }
    o = o.with("limit", limit).with("min", g.min).with("max", g.max).with("flags", flags);
    evaluate(args, "RED", &g, o).map(Some)
}

/// `qevent_parse`.
fn qevent(args: &mut Args, o: &mut Options) -> Result<(), Failure> {
    let help = "qevent early_drop block N, or qevent mark block N";
    let v = args.value()?;
    let Some(name) = ["early_drop", "mark"].into_iter().find(|&name| name == v.text) else {
        return Err(args.fail(format!("Unknown qevent `{}'", v.text), 1, help));
    };
    if args.left() == 0 {
        args.value()?;
    }
    if o.has(name) {
        return Err(args.fail("Duplicate qevent", 1, help));
    }
    while args.peek_text() == Some("block") {
        args.next_word();
        let v = args.value()?;
        if o.has(name) {
            return Err(args.fail("Qevent block index already specified", 1, help));
        }
        let Some(block) = num::u32(&v.text, 10).filter(|&block| block != 0) else {
            return Err(args.fail("Illegal qevent block index", 1, "a whole number from 1"));
        };
        o.set(name, Value::U32(block));
    }
    if !o.has(name) {
        return Err(args.fail("Unspecified qevent block index", 1, help));
    }
    Ok(())
}

fn print(o: &Options, out: &mut Out) {
    let n = |name| o.u32(name).unwrap_or(0);
    if out.old() {
        let kernel = out.kernel();
        let size = |name| size_text(n(name), kernel);
        out.text_only(format_args!("limit {} min {} max {} ", size("limit"), size("min"), size("max")));
        if n("flags") & 1 != 0 {
            out.text_only(format_args!("ecn "));
        }
        if out.form.details {
            let (ewma, plog, scell_log) = (n("ewma"), n("plog"), n("scell_log"));
            out.text_only(format_args!("ewma {ewma} Plog {plog} Scell_log {scell_log}"));
        }
        return;
    }
    for name in ["limit", "min", "max"] {
        out.size(name, &format!("{name} "), n(name), " ");
    }
    print_flags(n("flags"), out);
    if out.form.details {
        print_details(o, "", out);
    }
    let events: Vec<&str> = ["early_drop", "mark"].into_iter().filter(|name| n(name) != 0).collect();
    if events.is_empty() {
        return;
    }
    out.open_array("qevents", "");
    for name in events {
        out.open_object(None);
        out.string("kind", name, format_args!("qevent {name}"));
        out.num("block", n(name), format_args!(" block {}", n(name)));
        out.text_only(format_args!(" "));
        out.close_object();
    }
    out.close_array();
}

fn print_xstats(o: &Options, out: &mut Out) {
    plain::counters(o, &["marked", "early", "pdrop", "other"], out);
    if !out.old() {
        out.text_only(format_args!(" "));
    }
}

fn say_qdisc(say: &mut Say) {
    let flags = say.n("flags");
    say.given("limit", Unit::Plain).given("min", Unit::Plain).given("max", Unit::Plain);
    let lacking = red::evaluated(say, 0);
    say.flag(flags, 1, "ecn");
    if !say.old {
        say.flag(flags, 2, "harddrop").flag(flags, 4, "adaptive").flag(flags, 8, "nodrop");
    }
    for name in ["early_drop", "mark"] {
        if say.n(name) != 0 {
            let block = say.n(name);
            say.pair("qevent", name).pair("block", block);
        }
    }
    say.lacks(lacking);
}
