//! `etf`.
//!
//! Follows: iproute2 6.1.0 `tc/q_etf.c`. The tc of 2010 had none.

use super::{Kind, OptionWord, Side, clock, helped, word};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::say::Say;
use crate::tc::{Failure, num};
use penstock_model::Options;

const USAGE: &str =
    "Usage: ... etf delta NANOS clockid CLOCKID [offload] [deadline_mode]\n          [ skip_sock_check ]\n";

const WORDS: &[OptionWord] = &[
    word("clockid", "CLOCK", "the clock of the senders' times: CLOCK_TAI"),
    word("delta", "NS", "how long before its time a packet is handed to the device, ns; default 0"),
    word("offload", "", "let the card keep the time"),
    word("deadline_mode", "", "a packet's time is the latest, not the moment, of its sending"),
    word("skip_sock_check", "", "take packets of sockets without SO_TXTIME"),
];

/// `TC_ETF_DEADLINE_MODE_ON`, `TC_ETF_OFFLOAD_ON`, `TC_ETF_SKIP_SOCK_CHECK`.
const FLAGS: [(&str, u32); 3] = [("offload", 2), ("deadline_mode", 1), ("skip_sock_check", 4)];

pub static KIND: Kind = Kind {
    id: "etf",
    in_2_6_35: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print,
    ..Kind::BARE
};

fn duplicate(args: &Args, name: &str) -> Failure {
    args.fail(format!("etf: duplicate \"{name}\" specification"), 1, format!("give {name} once"))
}

fn parse(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let (mut delta, mut clockid, mut flags) = (0, None, 0);
    while let Some(word) = args.next_word() {
        let text = word.text.as_str();
        let flag = FLAGS.iter().find(|(name, _)| match *name {
            "skip_sock_check" => text == *name,
            name => matches(text, name),
        });
        if let Some((name, flag)) = flag {
            if flags & flag != 0 {
                return Err(duplicate(args, name));
            }
            flags |= flag;
        } else if matches(text, "delta") {
            let v = args.value()?;
            if delta != 0 {
                return Err(duplicate(args, "delta"));
            }
            delta = num::integer(&v.text, 0).ok_or_else(|| {
                let line = format!("etf: illegal value for \"delta\": \"{}\"", v.text);
                args.fail(line, 1, "nanoseconds, without a unit")
            })?;
        } else if matches(text, "clockid") {
            let v = args.value()?;
            if clockid.is_some() {
                return Err(duplicate(args, "clockid"));
            }
            clockid = Some(clock::parse(&v.text).ok_or_else(|| {
                let line = format!("etf: illegal value for \"clockid\": \"{}\".", v.text);
                args.fail(line, 1, "CLOCK_TAI").usage("It must be a valid SYS-V id (i.e. CLOCK_TAI)\n")
            })?);
        } else if text == "help" {
            return Err(helped(args, USAGE));
        } else {
            let line = format!("etf: unknown parameter \"{text}\"");
            let help = "etf takes clockid, delta, offload, deadline_mode, skip_sock_check";
            return Err(args.fail(line, 1, help).usage(USAGE));
        }
    }
    let o = Options::new().with("delta", i64::from(delta)).with("clockid", clockid.unwrap_or(-1));
    Ok(Some(o.with("flags", flags)))
}

fn print(o: &Options, out: &mut Out) {
    let clock = clock::name(o.i64("clockid").unwrap_or(-1));
    out.string("clockid", clock, format_args!("clockid {clock} "));
    let delta = o.i64("delta").unwrap_or(0);
    out.num("delta", delta, format_args!("delta {delta} "));
    let flags = o.u32("flags").unwrap_or(0);
    for (name, flag) in FLAGS {
        let state = if flags & flag != 0 { "on" } else { "off" };
        let end = if name == "skip_sock_check" { "" } else { " " };
        out.string(name, state, format_args!("{name} {state}{end}"));
    }
}

fn say_qdisc(say: &mut Say) {
    let (clock, flags) = (say.o.i64("clockid").unwrap_or(-1), say.n("flags"));
    say.pair("clockid", format!("CLOCK_{}", clock::name(clock)));
    if say.o.i64("delta").is_some_and(|n| n != 0) {
        say.signed("delta");
    }
    say.flag(flags, 1, "deadline_mode").flag(flags, 2, "offload").flag(flags, 4, "skip_sock_check");
}
