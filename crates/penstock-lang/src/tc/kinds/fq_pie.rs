//! `fq_pie`.
//!
//! Follows: iproute2 6.1.0 `tc/q_fq_pie.c`.

use super::plain::{self, NUMBER, Plain, Read, Shown, flag, plain};
use super::{Kind, OptionWord, Side, word};
use crate::show::Out;
use crate::tc::Failure;
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use penstock_model::Options;

const USAGE: &str = "\
Usage: ... fq_pie [ limit PACKETS ] [ flows NUMBER ]
               [ target TIME ] [ tupdate TIME ] [ alpha NUMBER ]
          [ beta NUMBER ] [ quantum BYTES ] [ memory_limit BYTES ] [ ecn_prob PERCENTAGE ] [ [no]ecn ]
          [ [no]bytemode ] [ [no_]dq_rate_estimator ]
";

const WORDS: &[OptionWord] = &[
    word("limit", "PACKETS", "maximum packets queued; default 10240"),
    word("flows", "NUMBER", "queues that flows share by chance, 1 to 65536; default 1024; fixed once made"),
    word("target", "TIME", "delay to be kept; default 15ms"),
    word("tupdate", "TIME", "how often the probability is computed; default 15ms, rounded up to 4ms"),
    word("alpha", "NUMBER", "weight of the delay's distance from target, 0 to 32; default 2"),
    word("beta", "NUMBER", "weight of the delay's growth, 0 to 32; default 20"),
    word("quantum", "BYTES", "bytes a flow may send per turn, 256 to 1Mb; default MTU with header"),
    word("memory_limit", "BYTES", "maximum memory for packets; default 32Mb"),
    word("ecn_prob", "PERCENTAGE", "probability above which ecn drops too, 0 to 99; default 10"),
    word("ecn", "", "mark instead of dropping"),
    word("noecn", "", "drop; the default"),
    word("bytemode", "", "the probability grows with the packet's length"),
    word("nobytemode", "", "it does not; the default"),
    word("dq_rate_estimator", "", "the delay is estimated from the rate at which the queue drains"),
    word("no_dq_rate_estimator", "", "it is measured; the default"),
];

const TABLE: &[Plain] = &[
    plain("limit", NUMBER),
    plain("flows", NUMBER),
    plain("target", Read::Time),
    plain("tupdate", Read::Time),
    plain("alpha", Read::Number(32)),
    plain("beta", Read::Number(32)),
    plain("quantum", Read::Size),
    plain("memory_limit", Read::Size),
    plain("ecn_prob", Read::Number(99)),
    flag("ecn", "ecn", 1),
    flag("noecn", "ecn", 0),
    flag("bytemode", "bytemode", 1),
    flag("nobytemode", "bytemode", 0),
    flag("dq_rate_estimator", "dq_rate_estimator", 1),
    flag("no_dq_rate_estimator", "dq_rate_estimator", 0),
];

pub static KIND: Kind = Kind {
    id: "fq_pie",
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
        ("flows", Shown::Number),
        ("target", Shown::Time),
        ("tupdate", Shown::Time),
        ("alpha", Shown::Number),
        ("beta", Shown::Number),
        ("quantum", Shown::Size),
        ("memory_limit", Shown::Size),
        ("ecn_prob", Shown::Number),
        ("ecn", Shown::Flag),
        ("bytemode", Shown::Flag),
        ("dq_rate_estimator", Shown::Flag),
    ];
    plain::print(o, &fields, out);
}

fn print_xstats(o: &Options, out: &mut Out) {
    plain::counters(o, &["pkts_in", "overlimit", "overmemory", "dropped", "ecn_mark"], out);
    out.nl();
    plain::counters(o, &["new_flow_count", "new_flows_len", "old_flows_len", "memory_used"], out);
}

fn say_qdisc(say: &mut Say) {
    let numbers = ["limit", "flows", "quantum", "alpha", "beta", "memory_limit", "ecn_prob"];
    say.all(&numbers, Unit::Plain).all(&["target", "tupdate"], Unit::Us);
    say.either("ecn", "ecn", "noecn").either("bytemode", "bytemode", "nobytemode");
    say.either("dq_rate_estimator", "dq_rate_estimator", "no_dq_rate_estimator");
}
