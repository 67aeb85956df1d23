//! `hhf`.
//!
//! Follows: iproute2 6.1.0 `tc/q_hhf.c`.

use super::plain::{self, NUMBER, Plain, Read, Shown, plain};
use super::{Kind, OptionWord, Side, word};
use crate::show::Out;
use crate::tc::Failure;
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use penstock_model::Options;

const USAGE: &str = "\
Usage: ... hhf\t[ limit PACKETS ] [ quantum BYTES]
       ... hhf [ limit PACKETS ] [ quantum BYTES ] [ hh_limit NUMBER ] [ reset_timeout TIME ] [ admit_bytes BYTES ]
          [ evict_timeout TIME ] [ non_hh_weight NUMBER ]
";

const WORDS: &[OptionWord] = &[
    word("limit", "PACKETS", "maximum packets queued; default 1000"),
    word("quantum", "BYTES", "what heavy hitters may send a turn, 256 at least; default MTU with header"),
    word("hh_limit", "NUMBER", "most heavy hitters at once, 2048 at most; default 2048"),
    word("reset_timeout", "TIME", "how often the counters are reset; default 40ms"),
    word("admit_bytes", "BYTES", "bytes in that time that make a heavy hitter; default 128Kb"),
    word("evict_timeout", "TIME", "idle time after which it is one no more; default 1s"),
    word("non_hh_weight", "NUMBER", "quanta the others may send a turn; default 2"),
];

const TABLE: &[Plain] = &[
    plain("limit", NUMBER),
    plain("quantum", NUMBER),
    plain("hh_limit", NUMBER),
    plain("reset_timeout", Read::Time),
    plain("admit_bytes", NUMBER),
    plain("evict_timeout", Read::Time),
    plain("non_hh_weight", NUMBER),
];

pub static KIND: Kind = Kind {
    id: "hhf",
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
        ("quantum", Shown::Size),
        ("hh_limit", Shown::Number),
        ("reset_timeout", Shown::Time),
        ("admit_bytes", Shown::Size),
        ("evict_timeout", Shown::Time),
        ("non_hh_weight", Shown::Number),
    ];
    plain::print(o, &fields, out);
}

fn print_xstats(o: &Options, out: &mut Out) {
    plain::counters(o, &["drop_overlimit", "hh_overlimit", "tot_hh", "cur_hh"], out);
}

fn say_qdisc(say: &mut Say) {
    let numbers = ["limit", "quantum", "hh_limit", "admit_bytes", "non_hh_weight"];
    say.all(&numbers, Unit::Plain).all(&["reset_timeout", "evict_timeout"], Unit::Us);
}
