//! `fq_codel`.
//!
//! Follows: iproute2 6.1.0 `tc/q_fq_codel.c`.

use super::plain::{self, NUMBER, Plain, Read, Shown, flag, plain};
use super::{Kind, OptionWord, Side, word};
use crate::show::{Out, time_text};
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use crate::tc::{Failure, num};
use penstock_model::{Options, Value};

const USAGE: &str = "\
Usage: ... fq_codel\t[ limit PACKETS ] [ flows NUMBER ]
               [ memory_limit BYTES ] [ target TIME ] [ interval TIME ]
          [ quantum BYTES ] [ [no]ecn ] [ ce_threshold TIME ] [ ce_threshold_selector VALUE/MASK ]
          [ drop_batch SIZE ]
";

const WORDS: &[OptionWord] = &[
    word("limit", "PACKETS", "maximum packets queued; default 10240"),
    word("flows", "NUMBER", "queues that flows share by chance, 1 to 65536; default 1024; fixed once made"),
    word("memory_limit", "BYTES", "maximum memory for packets; default 32Mb"),
    word("target", "TIME", "acceptable delay; default 5ms"),
    word("interval", "TIME", "how long it may stay above target; default 100ms"),
    word("quantum", "BYTES", "bytes a flow may send per turn, 256 to 1Mb; default MTU with header"),
    word("ecn", "", "mark instead of dropping; the default"),
    word("noecn", "", "drop"),
    word("ce_threshold", "TIME", "delay above which all is marked; default: none"),
    word(
        "ce_threshold_selector",
        "VALUE/MASK",
        "only what has this in the DS field falls under ce_threshold",
    ),
    word("drop_batch", "SIZE", "maximum packets dropped at once over the limit; default 64"),
];

const TABLE: &[Plain] = &[
    plain("limit", NUMBER),
    plain("flows", NUMBER),
    plain("quantum", NUMBER),
    plain("drop_batch", NUMBER),
    plain("target", Read::Time),
    Plain { unset: Some(u32::MAX), ..plain("ce_threshold", Read::Time) },
    Plain { unset: Some(u32::MAX), ..plain("memory_limit", Read::Size) },
    plain("interval", Read::Time),
    flag("ecn", "ecn", 1),
    flag("noecn", "ecn", 0),
];

pub static KIND: Kind = Kind {
    id: "fq_codel",
    in_2_6_35: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print,
    print_xstats: Some(print_xstats),
    ..Kind::BARE
};

fn parse(args: &mut Args, dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut o = plain::parse(args, dev, TABLE, USAGE, &mut selector)?;
    // tc takes 255 for "not given".
    if o.u32("ce_threshold_selector") == Some(0xff) {
        o.remove("ce_threshold_selector");
        o.remove("ce_threshold_mask");
    }
    Ok(Some(o))
}

fn selector(args: &mut Args, name: &str, o: &mut Options) -> Result<bool, Failure> {
    if name != "ce_threshold_selector" {
        return Ok(false);
    }
    let help = "a value and a mask of 8 bits, e.g. 0x1/0x3";
    let text = &args.value()?.text;
    let Some((value, mask)) = text.split_once('/') else {
        return Err(args.fail("Missing mask for \"ce_threshold_selector\"", 1, help));
    };
    let Some(mask) = num::u8(mask, 0) else {
        return Err(args.fail("Illegal mask for \"ce_threshold_selector\"", 1, help));
    };
    let value = num::u8(value, 0).ok_or_else(|| plain::illegal(args, name, help))?;
    o.set("ce_threshold_selector", Value::U32(value.into()));
    o.set("ce_threshold_mask", Value::U32(mask.into()));
    Ok(true)
}

fn print(o: &Options, out: &mut Out) {
    let first = [
        ("limit", Shown::Packets),
        ("flows", Shown::Number),
        ("quantum", Shown::Number),
        ("target", Shown::Time),
        ("ce_threshold", Shown::Time),
    ];
    plain::print(o, &first, out);
    let byte = |name| o.u32(name).unwrap_or(0);
    let (selector, mask) = (byte("ce_threshold_selector"), byte("ce_threshold_mask"));
    if selector != 0 || mask != 0 {
        // C's %#x has no 0x before a zero.
        let hex = |v: u32| if v == 0 { "0".to_owned() } else { format!("{v:#x}") };
        let name = "ce_threshold_selector";
        out.num(name, selector, format_args!("{name} {}", hex(selector)));
        out.num("ce_threshold_mask", mask, format_args!("/{} ", hex(mask)));
    }
    plain::print(o, &[("interval", Shown::Time), ("memory_limit", Shown::Size), ("ecn", Shown::Flag)], out);
    if byte("drop_batch") != 0 {
        plain::print(o, &[("drop_batch", Shown::Number)], out);
    }
}

/// A flow's own.
fn print_class(o: &Options, out: &mut Out) {
    let n = |name| o.u32(name).unwrap_or(0);
    let deficit = o.i64("deficit").unwrap_or(0);
    out.num("deficit", deficit, format_args!("  deficit {deficit}"));
    for name in ["count", "lastcount"] {
        out.num(name, n(name), format_args!(" {name} {}", n(name)));
    }
    plain::time("ldelay", n("ldelay"), format_args!(" ldelay {}", time_text(n("ldelay"), false)), out);
    if n("dropping") != 0 {
        out.flag("dropping", format_args!(" dropping"));
        let next = o.i64("drop_next").unwrap_or(0) as i32;
        out.json_num("drop_next", next);
        let sign = if next < 0 { "-" } else { "" };
        out.text_only(format_args!(" drop_next {sign}{}", time_text(next.unsigned_abs(), false)));
    }
}

fn print_xstats(o: &Options, out: &mut Out) {
    if o.has("deficit") {
        return print_class(o, out);
    }
    plain::counters(o, &["maxpacket", "drop_overlimit", "new_flow_count", "ecn_mark"], out);
    plain::counters_of_some(o, &["ce_mark", "memory_used", "drop_overmemory"], out);
    out.nl();
    plain::counters(o, &["new_flows_len", "old_flows_len"], out);
}

fn say_qdisc(say: &mut Say) {
    say.all(&["limit", "flows", "quantum", "memory_limit"], Unit::Plain)
        .unless_zero("drop_batch", Unit::Plain);
    say.all(&["target", "interval", "ce_threshold"], Unit::Us);
    let (selector, mask) = (say.n("ce_threshold_selector"), say.n("ce_threshold_mask"));
    if selector != 0 || mask != 0 {
        say.pair("ce_threshold_selector", format!("{selector:#x}/{mask:#x}"));
    }
    say.either("ecn", "ecn", "noecn");
}
