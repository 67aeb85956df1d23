//! `codel`.
//!
//! Follows: iproute2 6.1.0 `tc/q_codel.c`.

use super::plain::{self, NUMBER, Plain, Read, Shown, flag, plain};
use super::{Kind, OptionWord, Side, word};
use crate::show::{Out, time_text};
use crate::tc::Failure;
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use penstock_model::Options;

const USAGE: &str = "\
Usage: ... codel [ limit PACKETS ] [ target TIME ]
               [ interval TIME ] [ ecn | noecn ] [ ce_threshold TIME ]
";

const WORDS: &[OptionWord] = &[
    word("limit", "PACKETS", "maximum packets queued; default 1000"),
    word("target", "TIME", "acceptable delay; default 5ms"),
    word("interval", "TIME", "how long it may stay above target; default 100ms"),
    word("ecn", "", "mark instead of dropping"),
    word("noecn", "", "drop; the default"),
    word("ce_threshold", "TIME", "delay above which all is marked; default: none"),
];

const TABLE: &[Plain] = &[
    plain("limit", NUMBER),
    plain("target", Read::Time),
    plain("interval", Read::Time),
    flag("ecn", "ecn", 1),
    flag("noecn", "ecn", 0),
    Plain { unset: Some(u32::MAX), ..plain("ce_threshold", Read::Time) },
];

pub static KIND: Kind = Kind {
    id: "codel",
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
        ("ce_threshold", Shown::Time),
        ("interval", Shown::Time),
        ("ecn", Shown::Flag),
    ];
    plain::print(o, &fields, out);
}

fn print_xstats(o: &Options, out: &mut Out) {
    plain::counters(o, &["count", "lastcount"], out);
    let ldelay = o.u32("ldelay").unwrap_or(0);
    plain::time("ldelay", ldelay, format_args!(" ldelay {}", time_text(ldelay, false)), out);
    if o.u32("dropping").unwrap_or(0) != 0 {
        out.flag("dropping", format_args!(" dropping"));
    }
    let next = o.i64("drop_next").unwrap_or(0) as i32;
    out.json_num("drop_next", next);
    let sign = if next < 0 { "-" } else { "" };
    out.text_only(format_args!(" drop_next {sign}{}", time_text(next.unsigned_abs(), false)));
    out.nl();
    plain::counters(o, &["maxpacket", "ecn_mark", "drop_overlimit"], out);
    plain::counters_of_some(o, &["ce_mark"], out);
}

fn say_qdisc(say: &mut Say) {
    say.given("limit", Unit::Plain).all(&["target", "interval", "ce_threshold"], Unit::Us);
    say.either("ecn", "ecn", "noecn");
}
