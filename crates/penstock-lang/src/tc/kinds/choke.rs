//! `choke`.
//!
//! Follows: iproute2 6.1.0 `tc/q_choke.c`.

use super::plain::{self, NUMBER, Read, Shown, plain};
use super::red_parms::{RedOptions, evaluate, print_details, print_flags, probability};
use super::{Kind, OptionWord, Side, helped, what_is, word};
use crate::show::Out;
use crate::tc::Failure;
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit, red};
use penstock_model::Options;

const USAGE: &str = "\
Usage: ... choke limit PACKETS bandwidth KBPS [ecn]
       ... choke limit PACKETS bandwidth RATE [ ecn ] [ min PACKETS ] [ max PACKETS ] [ burst PACKETS ]
";
const KNOWN: &str = "choke takes limit, bandwidth, ecn, min, max, burst, avpkt, probability";

const WORDS: &[OptionWord] = &[
    word("limit", "PACKETS", "maximum packets queued, 131071 at most; required"),
    word("bandwidth", "RATE", "rate by which idle time is counted; required"),
    word("ecn", "", "mark instead of dropping"),
    word("min", "PACKETS", "average length where marking begins; default a third of max"),
    word("max", "PACKETS", "average length from which all are marked; default a quarter of limit"),
    word("burst", "PACKETS", "packets that may pass in a burst; default (2 min + max) / 3"),
    word("avpkt", "BYTES", "average packet; default 1000"),
    word("probability", "P", "of a mark at max, 0 to 1; default 0.02"),
];

pub static KIND: Kind = Kind {
    id: "choke",
    in_2_6_35: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print,
    print_xstats: Some(print_xstats),
    ..Kind::BARE
};

fn parse(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let (mut limit, mut flags, mut min, mut max) = (0, 0u32, 0, 0);
    let mut g = RedOptions { min: 0, max: 0, burst: 0, avpkt: 1000, rate: 0, probability: 0.02 };
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "limit" => limit = plain::read(args, dev, &plain("limit", NUMBER))?,
            "bandwidth" => g.rate = plain::read(args, dev, &plain("bandwidth", Read::PercentRate))?,
            "ecn" => flags = 1,
            "min" => min = plain::read(args, dev, &plain("min", NUMBER))?,
            "max" => max = plain::read(args, dev, &plain("max", NUMBER))?,
            "burst" => g.burst = plain::read(args, dev, &plain("burst", NUMBER))?,
            "avpkt" => g.avpkt = plain::read(args, dev, &plain("avpkt", Read::Size))?,
            "probability" => g.probability = probability(args)?,
            "help" => return Err(helped(args, USAGE)),
            other => return Err(what_is(args, other, USAGE, KNOWN)),
        }
    }
    if g.rate == 0 || limit == 0 {
        let line = "Required parameter (bandwidth, limit) is missing";
        return Err(args.fail(line, 1, "e.g. choke limit 1000 bandwidth 10mbit"));
    }
    if max == 0 {
        max = limit / 4;
    }
    if min == 0 {
        min = max / 3;
    }
    if g.burst == 0 {
        g.burst = min.wrapping_mul(2).wrapping_add(max) / 3;
    }
    if max > limit {
        return Err(args.fail("\"max\" is larger than \"limit\"", 1, "max lies below limit"));
    }
    if min >= max {
        return Err(args.fail("\"min\" is not smaller than \"max\"", 1, "min lies below max"));
    }
    (g.min, g.max) = (min.wrapping_mul(g.avpkt), max.wrapping_mul(g.avpkt));
    let o = Options::new().with("limit", limit).with("min", min).with("max", max).with("flags", flags);
    evaluate(args, "CHOKE", &g, o).map(Some)
}

fn print(o: &Options, out: &mut Out) {
    plain::print(o, &[("limit", Shown::Packets), ("min", Shown::Packets), ("max", Shown::Packets)], out);
    print_flags(o.u32("flags").unwrap_or(0), out);
    if out.form.details {
        print_details(o, "", out);
    }
}

fn print_xstats(o: &Options, out: &mut Out) {
    plain::counters(o, &["marked", "early", "pdrop", "other", "matched"], out);
}

fn say_qdisc(say: &mut Say) {
    let flags = say.n("flags");
    say.given("limit", Unit::Plain).given("min", Unit::Plain).given("max", Unit::Plain);
    // Its thresholds are packets; any size of them does.
    let sizes = [1000, 1500, 500, 256, 100, 64, 10, 1];
    let mut lacking = Some("burst");
    for size in sizes {
        let before = say.parts();
        lacking = red::evaluated(say, size);
        if lacking.is_none() {
            break;
        }
        if size != 1 {
            say.truncate(before);
        }
    }
    say.lacks(lacking).flag(flags, 1, "ecn");
}
