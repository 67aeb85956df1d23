//! `sfq`.
//!
//! Follows: iproute2 6.1.0 `tc/q_sfq.c`, `tc/tc_red.c`; 2.6.35 `tc/q_sfq.c`.

use super::red_parms::{eval_ewma, eval_p, print_flags};
use super::{Kind, OptionWord, Side, helped, what_is, word};
use crate::show::Out;
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit, red};
use crate::tc::{Command, Failure, num};
use penstock_model::{Options, Value, time::general};

const USAGE: &str = "\
Usage: ... sfq\t[ limit NUMBER ] [ perturb SECS ] [ quantum BYTES ]
\t\t[ divisor NUMBER ] [ flows NUMBER] [ depth NUMBER ]
\t\t[ headdrop ]
\t\t[ redflowlimit BYTES ] [ min BYTES ] [ max BYTES ]
\t\t[ avpkt BYTES ] [ burst PACKETS ] [ probability P ]
\t\t[ ecn ] [ harddrop ]
";
const OLD_USAGE: &str = "Usage: ... sfq [ limit PACKETS ] [ perturb SECS ] [ quantum BYTES ]\n";

const ECN: u32 = 1;
const HARDDROP: u32 = 2;

const WORDS: &[OptionWord] = &[
    word("limit", "PACKETS", "maximum packets queued; default 127"),
    word("perturb", "SECS", "how often the hash changes; default 0: never"),
    word("quantum", "BYTES", "bytes a flow may send per turn; default MTU with header"),
    word("divisor", "NUMBER", "size of the hash table, a power of two up to 65536; default 1024"),
    word("flows", "NUMBER", "maximum flows at once; default 127"),
    word("depth", "PACKETS", "maximum packets a flow; default 127"),
    word("headdrop", "", "drop a flow's oldest packet, not its newest"),
    word("redflowlimit", "BYTES", "turn RED on in each flow, with this limit"),
    word("min", "BYTES", "RED: average length where marking begins"),
    word("max", "BYTES", "RED: average length where all are marked"),
    word("avpkt", "BYTES", "RED: average packet; default 1000"),
    word("burst", "PACKETS", "RED: packets that may pass in a burst"),
    word("probability", "P", "RED: marking probability at max; default 0.02"),
    word("ecn", "", "RED: mark instead of dropping"),
    word("harddrop", "", "RED: drop above max even what could be marked"),
];

pub static KIND: Kind = Kind {
    id: "sfq",
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print,
    print_xstats: Some(print_xstats),
    ..Kind::BARE
};

/// The words of SFQ's RED mode.
struct Red {
    limit: u32,
    min: u32,
    max: u32,
    burst: u32,
    avpkt: u32,
    probability: f64,
    flags: u32,
    any: bool,
}

fn parse(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let usage = if args.old() { OLD_USAGE } else { USAGE };
    let mut o = Options::new();
    let mut red =
        Red { limit: 0, min: 0, max: 0, burst: 0, avpkt: 1000, probability: 0.02, flags: 0, any: false };
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "quantum" => {
                let v = args.value()?;
                let quantum = num::size(&v.text, args.kernel()).ok_or_else(|| {
                    args.fail("Illegal \"limit\"", 1, "quantum is a number of bytes, e.g. 1514")
                })?;
                o = o.with("quantum", quantum);
            }
            "perturb" => {
                let v = args.value()?;
                let seconds = num::integer(&v.text, 0).ok_or_else(|| {
                    args.fail("Illegal \"perturb\"", 1, "a whole number of seconds, without a unit")
                })?;
                o = o.with("perturb", seconds);
            }
            "limit" => {
                let limit = number(args, "limit", "packets, without a unit")?;
                if limit < 2 {
                    return Err(args.fail("Illegal \"limit\", must be > 1", 1, "2 packets at least"));
                }
                o = o.with("limit", limit);
            }
            "help" => return Err(helped(args, usage)),
            _ if args.old() => {
                return Err(what_is(args, &word.text, usage, "sfq takes limit, perturb, quantum"));
            }
            "divisor" => o = o.with("divisor", number(args, "divisor", "a power of two, 65536 at most")?),
            "flows" => o = o.with("flows", number(args, "flows", "a number of flows")?),
            // tc says "flows" of a wrong depth too.
            "depth" => {
                o = o.with("depth", number(args, "flows", "depth is a number of packets, 127 at most")?)
            }
            "headdrop" => {
                o.set("headdrop", Value::Flag);
            }
            other => red_word(args, other, &mut red)?,
        }
    }
    if red.any {
        thresholds(args, &mut red)?;
        o = red_options(args, &red, o)?;
    }
    // tc sends zeroes for what was not given; the kernel takes zero as "as before".
    Ok((!o.is_empty()).then_some(o))
}

fn number(args: &mut Args, name: &str, help: &str) -> Result<u32, Failure> {
    let v = args.value()?;
    num::u32(&v.text, 0).ok_or_else(|| args.fail(format!("Illegal \"{name}\""), 1, help))
}

fn red_word(args: &mut Args, name: &str, red: &mut Red) -> Result<(), Failure> {
    const BYTES: &str = "a number of bytes, without a unit";
    match name {
        "redflowlimit" => red.limit = number(args, name, BYTES)?,
        "min" => red.min = number(args, name, BYTES)?,
        "max" => red.max = number(args, name, BYTES)?,
        "burst" => red.burst = number(args, name, "a number of packets")?,
        "avpkt" => {
            let v = args.value()?;
            red.avpkt = num::size(&v.text, args.kernel())
                .ok_or_else(|| args.fail("Illegal \"avpkt\"", 1, "bytes, e.g. 1000"))?;
        }
        "probability" => {
            let v = args.value()?;
            red.probability = num::strtod(&v.text)
                .ok_or_else(|| args.fail("Illegal \"probability\"", 1, "a number from 0 to 1"))?
                .0;
        }
        "ecn" => red.flags |= ECN,
        "harddrop" => red.flags |= HARDDROP,
        other => {
            let help = "sfq takes limit, perturb, quantum, divisor, flows, depth, headdrop, and RED's words";
            return Err(what_is(args, other, USAGE, help));
        }
    }
    red.any = true;
    Ok(())
}

/// What is not given of RED follows from its limit.
fn thresholds(args: &Args, red: &mut Red) -> Result<(), Failure> {
    if red.limit == 0 {
        let help = "redflowlimit BYTES turns RED on";
        return Err(args.fail("Required parameter (redflowlimit) is missing", 1, help));
    }
    if red.avpkt == 0 {
        // tc divides by it and dies.
        return Err(args.fail("Illegal \"avpkt\"", 1, "bytes, more than 0"));
    }
    if red.max == 0 {
        red.max = red.limit / 4;
    }
    if red.min == 0 {
        red.min = red.max / 3;
    }
    if red.burst == 0 {
        let bytes = red.min.wrapping_mul(2).wrapping_add(red.max);
        red.burst = bytes.checked_div(red.avpkt.wrapping_mul(3)).unwrap_or(0);
    }
    if red.max > red.limit {
        return Err(args.fail("\"max\" is larger than \"limit\"", 1, "max lies below redflowlimit"));
    }
    if red.min >= red.max {
        return Err(args.fail("\"min\" is not smaller than \"max\"", 1, "min lies below max"));
    }
    Ok(())
}

fn red_options(args: &mut Args, red: &Red, o: Options) -> Result<Options, Failure> {
    let wlog = eval_ewma(red.min, red.burst, red.avpkt).map_err(|line| {
        let least = 1 + red.min / red.avpkt;
        let f = args.fail("SFQ: failed to calculate EWMA constant.", 1, format!("burst {least}, or another"));
        line.map_or(f.clone(), |line| f.also(&line))
    })?;
    if wlog >= 10 {
        let line = format!("SFQ: WARNING. Burst {} seems to be too large.\n", red.burst);
        args.said.push(Command::Help(line));
    }
    let plog = eval_p(red.min, red.max, red.probability, false)
        .ok_or_else(|| args.fail("SFQ: failed to calculate probability.", 1, "a larger probability"))?;
    Ok(o.with("redflowlimit", red.limit)
        .with("min", red.min)
        .with("max", red.max)
        .with("ewma", wlog)
        .with("plog", plog)
        .with("max_p", num::cast_u32(red.probability * 4_294_967_296.0))
        .with("redflags", red.flags))
}

fn print(o: &Options, out: &mut Out) {
    let u32 = |name: &str| o.u32(name).unwrap_or(0);
    out.num("limit", u32("limit"), format_args!("limit {}p ", u32("limit")));
    out.size("quantum", "quantum ", u32("quantum"), " ");
    let perturb = o.i64("perturb").unwrap_or(0);
    if out.old() {
        if out.form.details {
            out.text_only(format_args!("flows {}/{} ", u32("flows"), u32("divisor")));
        }
        if perturb != 0 {
            out.text_only(format_args!("perturb {perturb}sec "));
        }
        return;
    }
    if u32("depth") != 0 {
        out.num("depth", u32("depth"), format_args!("depth {} ", u32("depth")));
    }
    if o.has("headdrop") {
        out.flag("headdrop", format_args!("headdrop "));
    }
    if out.form.details {
        out.num("flows", u32("flows"), format_args!("flows {} ", u32("flows")));
    }
    out.num("divisor", u32("divisor"), format_args!("divisor {} ", u32("divisor")));
    if perturb != 0 {
        out.num("perturb", perturb, format_args!("perturb {perturb}sec "));
    }
    if u32("min") != 0 {
        print_red(o, out);
    }
}

fn print_red(o: &Options, out: &mut Out) {
    let u32 = |name: &str| o.u32(name).unwrap_or(0);
    out.num("ewma", u32("ewma"), format_args!("ewma {} ", u32("ewma")));
    out.size("min", "min ", u32("min"), " ");
    out.size("max", "max ", u32("max"), " ");
    let probability = general(f64::from(u32("max_p")) / 4_294_967_296.0, 6);
    out.literal("probability", &probability, format_args!("probability {probability} "));
    print_flags(u32("redflags"), out);
    if out.form.stats {
        let sets = [
            ["prob_mark", "prob_mark_head", "prob_drop"],
            ["forced_mark", "forced_mark_head", "forced_drop"],
        ];
        for set in sets {
            out.nl();
            for (i, name) in set.into_iter().enumerate() {
                let blank = if i == 0 { "  " } else { " " };
                out.num(name, u32(name), format_args!("{blank}{name} {}", u32(name)));
            }
        }
    }
}

fn print_xstats(o: &Options, out: &mut Out) {
    let allot = o.i64("allot").unwrap_or(0);
    if out.old() {
        out.text_only(format_args!(" allot {allot} \n"));
    } else {
        out.num("allot", allot, format_args!("  allot {allot}"));
    }
}

fn say_qdisc(say: &mut Say) {
    let (o, old) = (say.o, say.old);
    // With a limit the kernel takes no more flows than packets; more of them are its own number.
    if say.n("flows") <= say.n("limit") || old {
        say.pair("limit", o.u32("limit").unwrap_or(0));
        if !old {
            say.pair("flows", o.u32("flows").unwrap_or(0));
        }
    }
    say.pair("quantum", o.u32("quantum").unwrap_or(0));
    if o.i64("perturb").is_some_and(|n| n != 0) {
        say.signed("perturb");
    }
    if old {
        return;
    }
    for name in ["depth", "divisor"] {
        say.pair(name, o.u32(name).unwrap_or(0));
    }
    if o.has("headdrop") {
        say.word("headdrop");
    }
    let (min, flags) = (say.n("min"), say.n("redflags"));
    if min == 0 {
        return;
    }
    // tc wants a limit; the kernel neither keeps nor dumps it.
    say.pair("redflowlimit", o.u32("max").unwrap_or(0)).given("min", Unit::Plain).given("max", Unit::Plain);
    red::probability(say);
    say.flag(flags, 1, "ecn").flag(flags, 2, "harddrop");
    match red::burst(min, say.n("ewma")) {
        Some((burst, avpkt)) => {
            say.pair("burst", burst).pair("avpkt", avpkt);
        }
        None => {
            say.lacks(Some("burst"));
        }
    }
}
