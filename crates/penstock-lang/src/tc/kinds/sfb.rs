//! `sfb`.
//!
//! Follows: iproute2 6.1.0 `tc/q_sfb.c`.

use super::plain::{self, NUMBER, Shown, illegal, plain};
use super::{Kind, OptionWord, Side, what_is, word};
use crate::show::{Out, time_text};
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use crate::tc::{Failure, num};
use penstock_model::{Options, Value, time::general};

const USAGE: &str = "\
Usage: ... sfb [ rehash MSECS ] [ db MSECS ] [ limit PACKETS ] [ max PACKETS ] [ target PACKETS ]
          [ increment FLOAT ] [ decrement FLOAT ] [ penalty_rate PPS ] [ penalty_burst PACKETS ]
";
const KNOWN: &str =
    "sfb takes rehash, db, limit, max, target, increment, decrement, penalty_rate, penalty_burst";
/// `SFB_MAX_PROB`.
const MAX_PROB: f64 = 65535.0;

const WORDS: &[OptionWord] = &[
    word("rehash", "MSECS", "how often the hash changes; default 600000"),
    word("db", "MSECS", "how long before that the next one warms up; default 60000"),
    word("limit", "PACKETS", "maximum packets queued; default txqueuelen"),
    word("max", "PACKETS", "maximum packets of a bin; default five quarters of target, or 25"),
    word("target", "PACKETS", "length above which a bin's probability rises; default four fifths of max"),
    word("increment", "FLOAT", "by how much it rises, 0 to 1; default 0.0005"),
    word("decrement", "FLOAT", "by how much it falls, 0 to 1; default 0.00005"),
    word("penalty_rate", "PPS", "what flows that do not respond may send, packets a second; default 10"),
    word("penalty_burst", "PACKETS", "and at once; default 20"),
];

pub static KIND: Kind = Kind {
    id: "sfb",
    in_2_6_35: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print,
    print_xstats: Some(print_xstats),
    ..Kind::BARE
};

fn parse(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut o = Options::new()
        .with("rehash", 600_000u32)
        .with("db", 60_000u32)
        .with("limit", 0u32)
        .with("max", 0u32)
        .with("target", 0u32)
        .with("increment", 33u32)
        .with("decrement", 3u32)
        .with("penalty_rate", 10u32)
        .with("penalty_burst", 20u32);
    const NUMBERS: [&str; 7] = ["rehash", "db", "limit", "max", "target", "penalty_rate", "penalty_burst"];
    while let Some(word) = args.next_word() {
        if let Some(name) = NUMBERS.into_iter().find(|&name| name == word.text) {
            o.set(name, Value::U32(plain::read(args, dev, &plain(name, NUMBER))?));
        } else if let Some(name) = ["increment", "decrement"].into_iter().find(|&name| name == word.text) {
            let v = args.value()?;
            let share = num::strtod(&v.text).map(|(share, _)| share).filter(|s| !(*s < 0.0 || *s > 1.0));
            let share = share.ok_or_else(|| illegal(args, name, "a number from 0 to 1"))?;
            o.set(name, Value::U32(num::cast_u32(share * MAX_PROB + 0.5)));
        } else {
            return Err(what_is(args, &word.text, USAGE, KNOWN));
        }
    }
    let n = |name| o.u32(name).unwrap_or(0);
    let max = match (n("max"), n("target")) {
        (0, 0) => 25,
        (0, target) => target.wrapping_mul(5).wrapping_add(1) / 4,
        (max, _) => max,
    };
    let target = if n("target") == 0 { max.wrapping_mul(4).wrapping_add(3) / 5 } else { n("target") };
    Ok(Some(o.with("max", max).with("target", target)))
}

fn share(o: &Options, name: &str, before: &str, after: &str, out: &mut Out) {
    let share = general(f64::from(o.u32(name).unwrap_or(0)) / MAX_PROB, 6);
    out.literal(name, &share, format_args!("{before}{name} {share}{after}"));
}

fn print(o: &Options, out: &mut Out) {
    for name in ["rehash", "db"] {
        let us = o.u32(name).unwrap_or(0).wrapping_mul(1000);
        plain::time(name, us, format_args!("{name} {} ", time_text(us, false)), out);
    }
    plain::print(o, &[("limit", Shown::Packets), ("max", Shown::Packets), ("target", Shown::Packets)], out);
    share(o, "increment", "", " ", out);
    share(o, "decrement", "", " ", out);
    let rate = o.u32("penalty_rate").unwrap_or(0);
    out.num("penalty_rate", rate, format_args!("penalty_rate {rate}pps "));
    plain::print(o, &[("penalty_burst", Shown::Packets)], out);
}

fn print_xstats(o: &Options, out: &mut Out) {
    let first = ["earlydrop", "penaltydrop", "bucketdrop", "queuedrop", "childdrop", "marked"];
    plain::counters(o, &first, out);
    out.nl();
    plain::counters(o, &["maxqlen"], out);
    share(o, "maxprob", " ", "", out);
    share(o, "avgprob", " ", "", out);
}

fn say_qdisc(say: &mut Say) {
    for name in ["rehash", "db", "limit", "max", "target", "penalty_rate", "penalty_burst"] {
        say.given(name, Unit::Plain);
    }
    for name in ["increment", "decrement"] {
        let share = f64::from(say.n(name)) / 65535.0;
        say.pair(name, share);
    }
}
