//! `gred`.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/q_gred.c`.
//! Differs: where tc of 2010 prints a number it has not set yet (`"default DP" must be less than`), here stands 0.

use super::plain::{self, NUMBER, Plain, Read, illegal, plain};
use super::red_parms::{RedOptions, evaluate, print_details, print_flags, probability, say};
use super::{CREATES, Kind, OptionWord, Side, helped, what_is, word};
use crate::show::{Out, size_text};
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit, red};
use crate::tc::{Failure, num};
use penstock_model::{Options, Value};

const USAGE: &str = "\
Usage: tc qdisc { add | replace | change } ... gred setup vqs NUMBER
          default DEFAULT_VQ [ grio ] [ limit BYTES ] [ ecn ] [ harddrop ]
       tc qdisc change ... gred vq VQ [ prio VALUE ] limit BYTES min BYTES max BYTES avpkt BYTES
          [ burst PACKETS ] [ probability PROBABILITY ] [ bandwidth RATE ] [ ecn ] [ harddrop ]
";
const OLD_USAGE: &str = "\
Usage: ... gred setup DPs NUMBER default DEFAULT_DP [ grio ]
       ... gred DP NUMBER limit BYTES min BYTES max BYTES avpkt BYTES burst PACKETS
          probability PROBABILITY bandwidth RATE [ prio VALUE ]
";
const KNOWN: &str =
    "gred takes setup; or vq, limit, min, max, burst, avpkt, probability, prio, bandwidth, ecn, harddrop";
/// `MAX_DPs`.
const VQS_MAX: u32 = 16;

const WORDS: &[OptionWord] = &[
    word(
        "setup",
        "vqs N default VQ",
        "make it, with N virtual queues (16 at most) and one for what names none",
    ),
    word("grio", "", "setup: priorities count"),
    word("vq", "VQ", "the virtual queue to be changed"),
    word("prio", "VALUE", "its priority in grio, 1 to 255; default 8"),
    word("limit", "BYTES", "maximum bytes queued; setup: default txqueuelen times MTU with header"),
    word("min", "BYTES", "average length where marking begins; required"),
    word("max", "BYTES", "average length from which all are marked; required"),
    word("avpkt", "BYTES", "average packet; required"),
    word("burst", "PACKETS", "packets that may pass in a burst; default (2 min + max) / (3 avpkt)"),
    word("probability", "P", "of a mark at max, 0 to 1; default 0.02"),
    word("bandwidth", "RATE", "rate by which idle time is counted; default 10Mbit"),
    word("ecn", "", "mark instead of dropping"),
    word("harddrop", "", "drop above max even what could be marked"),
];

pub static KIND: Kind =
    Kind { id: "gred", qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }), print, ..Kind::BARE };

fn only_16(args: &Args, line: &str) -> Failure {
    args.fail(line, 1, "16 at most, numbered from 0")
}

/// `strtol` where nobody looks at what it could not read.
fn strtol(args: &mut Args) -> Result<i32, Failure> {
    let v = args.value()?;
    Ok(num::strtoul(&v.text, 10).map_or(0, |(value, _)| value as i32))
}

/// `init_gred`.
fn set_up(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    if args.old() {
        return old_set_up(args);
    }
    let (mut vqs, mut default, mut limit, mut flags) = (0, VQS_MAX, 0, 0u32);
    let mut o = Options::new();
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "vqs" | "DPs" => {
                let v = args.value()?;
                vqs = num::u32(&v.text, 10)
                    .ok_or_else(|| illegal(args, "vqs", "a whole number, 16 at most"))?;
                if vqs > VQS_MAX {
                    return Err(only_16(args, "GRED: only 16 VQs are currently supported"));
                }
            }
            "default" => {
                let help = "e.g. vqs 4 default 3";
                if vqs == 0 {
                    return Err(args.fail("\"default\" must be defined after \"vqs\"", 1, help));
                }
                let v = args.value()?;
                default = num::u32(&v.text, 10).ok_or_else(|| illegal(args, "default", help))?;
                if default >= vqs {
                    return Err(args.fail("\"default\" must be less than \"vqs\"", 1, help));
                }
            }
            "grio" => o = o.with("grio", 1u32),
            "limit" => limit = plain::read(args, dev, &plain("limit", Read::Size))?,
            "ecn" => flags |= 1,
            "harddrop" => flags |= 2,
            "help" => return Err(helped(args, USAGE)),
            other => {
                return Err(what_is(
                    args,
                    other,
                    USAGE,
                    "after setup: vqs, default, grio, limit, ecn, harddrop",
                ));
            }
        }
    }
    if vqs == 0 || default == VQS_MAX {
        return Err(args.fail("Illegal gred setup parameters", 1, "e.g. gred setup vqs 4 default 3"));
    }
    if limit != 0 {
        o = o.with("limit", limit);
    }
    Ok(Some(o.with("vqs", vqs).with("default", default).with("flags", flags).with(CREATES, Value::Flag)))
}

/// `init_gred` of 2010, which forgets `grio`.
fn old_set_up(args: &mut Args) -> Result<Option<Options>, Failure> {
    let (mut dps, mut default) = (0, -1);
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "DPs" => {
                dps = strtol(args)?;
                if !(0..=VQS_MAX as i32).contains(&dps) {
                    let lines =
                        format!("DPs ={dps}\nIllegal \"DPs\"\nGRED: only 16 DPs are currently supported");
                    return Err(only_16(args, &lines));
                }
            }
            "default" => {
                default = strtol(args)?;
                let help = "e.g. DPs 4 default 3";
                if dps == 0 {
                    return Err(args.fail("\"default DP\" must be defined after DPs", 1, help));
                }
                if !(0..=dps).contains(&default) {
                    return Err(args.fail("\"default DP\" must be less than 0", 1, help));
                }
            }
            "grio" => {}
            "help" => return Err(helped(args, OLD_USAGE)),
            other => return Err(what_is(args, other, OLD_USAGE, "after setup: DPs, default, grio")),
        }
    }
    if dps == 0 || default == -1 {
        return Err(args.fail("Illegal gred setup parameters ", 1, "e.g. gred setup DPs 4 default 3"));
    }
    let o = Options::new().with("vqs", dps as u32).with("default", default as u32);
    Ok(Some(o.with(CREATES, Value::Flag)))
}

/// The number behind `vq` or `DP`.
fn index(args: &mut Args) -> Result<u32, Failure> {
    if args.old() {
        let dp = strtol(args)? as u32;
        if dp > VQS_MAX {
            let lines = format!("DP ={dp} \nIllegal \"DP\"\nGRED: only 16 DPs are currently supported");
            return Err(only_16(args, &lines));
        }
        return Ok(dp);
    }
    let v = args.value()?;
    let vq = num::u32(&v.text, 10).ok_or_else(|| illegal(args, "vq", "a whole number, 15 at most"))?;
    if vq >= VQS_MAX {
        return Err(only_16(args, "GRED: only 16 VQs are currently supported"));
    }
    Ok(vq)
}

fn parse(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let old = args.old();
    let usage = if old { OLD_USAGE } else { USAGE };
    let mut g = RedOptions { min: 0, max: 0, burst: 0, avpkt: 0, rate: 0, probability: 0.02 };
    let (mut vq, mut limit, mut prio, mut flags, mut any) =
        (if old { 0 } else { VQS_MAX }, 0, 0, 0u32, false);
    const NUMBERS: [Plain; 5] = [
        plain("limit", Read::Size),
        plain("min", Read::Size),
        plain("max", Read::Size),
        plain("burst", NUMBER),
        plain("avpkt", Read::Size),
    ];
    while let Some(word) = args.next_word() {
        let name = word.text.as_str();
        if let Some(entry) = NUMBERS.iter().find(|entry| entry.word == name) {
            let value = plain::read(args, dev, entry)?;
            match name {
                "limit" => limit = value,
                "min" => g.min = value,
                "max" => g.max = value,
                "burst" => g.burst = value,
                _ => g.avpkt = value,
            }
            any = true;
            continue;
        }
        match name {
            "setup" if any => return Err(illegal(args, "setup", "setup stands alone, before all else")),
            "setup" => return set_up(args, dev),
            "vq" if !old => vq = index(args)?,
            "DP" => vq = index(args)?,
            "probability" => g.probability = probability(args)?,
            "prio" => prio = u32::from(strtol(args)? as u8),
            "bandwidth" => g.rate = plain::read(args, dev, &plain("bandwidth", Read::PercentRate))?,
            "help" => return Err(helped(args, usage)),
            "ecn" if !old => flags |= 1,
            "harddrop" if !old => flags |= 2,
            other => return Err(what_is(args, other, usage, KNOWN)),
        }
        any |= !matches!(name, "ecn" | "harddrop");
    }
    required(args, any, vq, limit, &mut g)?;
    let mut o = Options::new()
        .with("vq", vq)
        .with("limit", limit)
        .with("min", g.min)
        .with("max", g.max)
        .with("prio", prio);
    if !old {
        o = o.with("vq_flags", flags);
    }
    evaluate(args, "GRED", &g, o).map(Some)
}

/// What must be given, and what follows where it is not.
fn required(args: &mut Args, any: bool, vq: u32, limit: u32, g: &mut RedOptions) -> Result<(), Failure> {
    let help = "e.g. gred vq 1 limit 60kb min 15kb max 25kb burst 20 avpkt 1000";
    if args.old() {
        if g.min == 0 || g.max == 0 || g.burst == 0 || limit == 0 || g.avpkt == 0 {
            let line = "Required parameter (min, max, burst, limit, avpkt, DP) is missing";
            return Err(args.fail(line, 1, help));
        }
        if g.rate == 0 {
            g.rate = 1_250_000;
        }
        return Ok(());
    }
    if !any {
        return Err(helped(args, USAGE));
    }
    if vq == VQS_MAX || limit == 0 || g.min == 0 || g.max == 0 || g.avpkt == 0 {
        let line = "Required parameter (vq, limit, min, max, avpkt) is missing";
        return Err(args.fail(line, 1, help));
    }
    if g.burst == 0 {
        g.burst = g.min.wrapping_mul(2).wrapping_add(g.max) / g.avpkt.wrapping_mul(3);
        say(args, format!("GRED: set burst to {}\n", g.burst));
    }
    if g.rate == 0 {
        g.rate = 1_250_000;
        say(args, "GRED: set bandwidth to 10Mbit\n".to_owned());
    }
    Ok(())
}

fn print(o: &Options, out: &mut Out) {
    if out.old() {
        return o.list("list").iter().for_each(|vq| old_print_vq(vq, out));
    }
    let n = |name: &str| o.u32(name).unwrap_or(0);
    out.num("dp_cnt", n("vqs"), format_args!("vqs {} ", n("vqs")));
    out.num("dp_default", n("default"), format_args!("default {} ", n("default")));
    if n("grio") != 0 {
        out.flag("grio", format_args!("grio "));
    } else {
        out.json_bool("grio", false);
    }
    out.size("limit", "limit ", n("limit"), " ");
    print_flags(n("flags"), out);
    out.open_array("vqs", "");
    for vq in o.list("list") {
        out.open_object(None);
        print_vq(vq, out);
        out.close_object();
    }
    out.close_array();
}

fn print_vq(o: &Options, out: &mut Out) {
    let n = |name: &str| o.u32(name).unwrap_or(0);
    out.num("vq", n("vq"), format_args!("\n vq {} ", n("vq")));
    out.num("prio", n("prio"), format_args!("prio {} ", n("prio")));
    for name in ["limit", "min", "max"] {
        out.size(name, &format!("{name} "), n(name), " ");
    }
    print_flags(n("flags"), out);
    if out.form.details {
        print_details(o, " ", out);
    }
    if !out.form.stats {
        return;
    }
    out.text_only(format_args!("\n  Queue size: "));
    out.size("qave", "average ", n("qave"), " ");
    out.size("backlog", "current ", n("backlog"), " ");
    out.text_only(format_args!("\n  Dropped packets: "));
    let named =
        |name: &str, shown: &str, out: &mut Out| out.num(name, n(name), format_args!("{shown} {} ", n(name)));
    named("forced_drop", "forced", out);
    named("prob_drop", "early", out);
    named("pdrop", "pdrop", out);
    named("other", "other", out);
    out.text_only(format_args!("\n  Marked packets: "));
    named("forced_mark", "forced", out);
    named("prob_mark", "early", out);
    out.text_only(format_args!("\n  Total packets: "));
    out.num("packets", n("packets"), format_args!("{} ", n("packets")));
    out.size("bytes", "(", n("bytes"), ") ");
}

/// In 2010 thresholds stand in the details only, weights always.
fn old_print_vq(o: &Options, out: &mut Out) {
    let n = |name: &str| o.u32(name).unwrap_or(0);
    let kernel = out.kernel();
    let size = |name| size_text(n(name), kernel);
    let (forced, early) = (n("forced_drop"), n("prob_drop"));
    out.text_only(format_args!(
        "\n DP:{} (prio {}) Average Queue {} Measured Queue {}  ",
        n("vq"),
        n("prio"),
        size("qave"),
        size("backlog")
    ));
    let drops = forced.wrapping_add(early);
    out.text_only(format_args!("\n\t Packet drops: {drops} (forced {forced} early {early})  "));
    out.text_only(format_args!("\n\t Packet totals: {} (bytes {})  ", n("packets"), n("bytes")));
    if out.form.details {
        let (limit, min, max) = (size("limit"), size("min"), size("max"));
        out.text_only(format_args!("\n limit {limit} min {min} max {max} "));
    }
    let (ewma, plog, scell_log) = (n("ewma"), n("plog"), n("scell_log"));
    out.text_only(format_args!("ewma {ewma} Plog {plog} Scell_log {scell_log}"));
}

fn say_qdisc(say: &mut Say) {
    let (o, old, kernel) = (say.o, say.old, say.kernel);
    let flags = say.n("flags");
    say.word("setup")
        .pair(if old { "DPs" } else { "vqs" }, o.u32("vqs").unwrap_or(0))
        .given("default", Unit::Plain);
    if say.n("grio") != 0 {
        say.word("grio");
    }
    if !old {
        say.unless_zero("limit", Unit::Plain).flag(flags, 1, "ecn").flag(flags, 2, "harddrop");
    }
    for vq in o.list("list") {
        let mut change = Say::new(vq, kernel);
        let flags = change.n("flags");
        change.pair(if old { "DP" } else { "vq" }, vq.u32("vq").unwrap_or(0));
        change.given("limit", Unit::Plain).given("min", Unit::Plain).given("max", Unit::Plain);
        let lacking = red::evaluated(&mut change, 0);
        change.lacks(lacking).given("prio", Unit::Plain);
        if !old {
            change.flag(flags, 1, "ecn").flag(flags, 2, "harddrop");
        }
        say.then(change);
    }
}
