//! `pie`.
//!
//! Follows: iproute2 6.1.0 `tc/q_pie.c`.

use super::plain::{self, NUMBER, Plain, Read, Shown, flag, plain};
use super::{Kind, OptionWord, Side, word};
use crate::show::{Out, time_text};
use crate::tc::Failure;
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use penstock_model::{Options, time::general};

const USAGE: &str = "\
Usage: ... pie [ limit PACKETS ] [ target TIME ]
               [ tupdate TIME ] [ alpha ALPHA ] [ beta BETA ]
          [ bytemode | nobytemode ] [ ecn | noecn ] [ dq_rate_estimator | no_dq_rate_estimator ]
";

const WORDS: &[OptionWord] = &[
    word("limit", "PACKETS", "maximum packets queued; default 1000"),
    word("target", "TIME", "delay to be kept; default 15ms"),
    word("tupdate", "TIME", "how often the probability is computed; default 15ms, rounded up to 4ms"),
    word("alpha", "ALPHA", "weight of the delay's distance from target, 0 to 32; default 2"),
    word("beta", "BETA", "weight of the delay's growth, 0 to 32; default 20"),
    word("bytemode", "", "the probability grows with the packet's length"),
    word("nobytemode", "", "it does not; the default"),
    word("ecn", "", "mark instead of dropping"),
    word("noecn", "", "drop; the default"),
    word("dq_rate_estimator", "", "the delay is estimated from the rate at which the queue drains"),
    word("no_dq_rate_estimator", "", "it is measured; the default"),
];

const TABLE: &[Plain] = &[
    plain("limit", NUMBER),
    plain("target", Read::Time),
    plain("tupdate", Read::Time),
    plain("alpha", Read::Number(32)),
    plain("beta", Read::Number(32)),
    flag("ecn", "ecn", 1),
    flag("noecn", "ecn", 0),
    flag("bytemode", "bytemode", 1),
    flag("nobytemode", "bytemode", 0),
    flag("dq_rate_estimator", "dq_rate_estimator", 1),
    flag("no_dq_rate_estimator", "dq_rate_estimator", 0),
];

pub static KIND: Kind = Kind {
    id: "pie",
    in_2_6_35: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print,
    print_xstats: Some(print_xstats),
    ..Kind::BARE
};

fn parse(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    plain::parse(args, dev, TABLE, USAGE, &mut |_, _, _| Ok(false)).map(Some)
}

fn print(o: &Options, out: &mut Out) {
    let fields = [
        ("limit", Shown::Packets),
        ("target", Shown::Time),
        ("tupdate", Shown::Time),
        ("alpha", Shown::Number),
        ("beta", Shown::Number),
        ("ecn", Shown::Flag),
        ("bytemode", Shown::Flag),
        ("dq_rate_estimator", Shown::Flag),
    ];
    plain::print(o, &fields, out);
}

fn print_xstats(o: &Options, out: &mut Out) {
    let prob = general(o.u64("prob").unwrap_or(0) as f64 / u64::MAX as f64, 6);
    out.literal("prob", &prob, format_args!("  prob {prob}"));
    let delay = o.u32("delay").unwrap_or(0);
    plain::time("delay", delay, format_args!(" delay {}", time_text(delay, false)), out);
    if o.u32("dq_rate_estimating").unwrap_or(0) != 0 {
        plain::counter(o, "avg_dq_rate", " ", out);
    }
    out.nl();
    plain::counters(o, &["pkts_in", "overlimit", "dropped", "maxq", "ecn_mark"], out);
}

fn say_qdisc(say: &mut Say) {
    say.all(&["limit", "alpha", "beta"], Unit::Plain).all(&["target", "tupdate"], Unit::Us);
    say.either("ecn", "ecn", "noecn").either("bytemode", "bytemode", "nobytemode");
    say.either("dq_rate_estimator", "dq_rate_estimator", "no_dq_rate_estimator");
}
