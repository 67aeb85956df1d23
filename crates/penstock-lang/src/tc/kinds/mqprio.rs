//! `mqprio`.
//!
//! Follows: iproute2 6.1.0 `tc/q_mqprio.c`; 6.12.0 for `fp`. The tc of 2010 had none.
//! Differs: what only hardware offload can set (`mode`, `shaper`, rates) is never shown: no device has it.

use super::queues::{self, Queues};
use super::{Kind, OptionWord, Side, helped, word};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::say::Say;
use crate::tc::{Failure, num};
use penstock_model::{Options, Value};

const USAGE: &str = "\
Usage: ... mqprio	[num_tc NUMBER] [map P0 P1 ...]
          [ queues COUNT@OFFSET ... ] [ hw 1|0 ]
          with hw 1 only: [ mode dcb|channel ] [ shaper dcb|bw_rlimit ] [ min_rate RATE ... ] [ max_rate RATE ... ]
                          [ fp E|P ... ]
";

const WORDS: &[OptionWord] = &[
    word("num_tc", "NUMBER", "traffic classes, 1 to 16; default 8"),
    word(
        "map",
        "CLASS…",
        "a traffic class for each of 16 priorities; default 0 1 2 3 4 5 6 7 0 1 1 1 3 3 3 3",
    ),
    word("queues", "COUNT@OFFSET…", "each traffic class's transmit queues: how many, from which"),
    word("hw", "1|0", "let the card sort; default 1, which none here can"),
    word("mode", "MODE", "dcb or channel; default dcb"),
    word("shaper", "SHAPER", "dcb or bw_rlimit; default dcb"),
    word("min_rate", "RATE…", "with bw_rlimit: minimum rate of each traffic class"),
    word("max_rate", "RATE…", "with bw_rlimit: maximum rate of each traffic class"),
    word("fp", "E|P…", "express or preemptible, by traffic class"),
];

/// Classes by priority where no map is given.
const MAP: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 1, 1, 3, 3, 3, 3];

pub static KIND: Kind = Kind {
    id: "mqprio",
    in_2_6_35: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print,
    ..Kind::BARE
};

fn byte(args: &mut Args, name: &str) -> Result<u8, Failure> {
    let v = args.value()?;
    num::u8(&v.text, 10).ok_or_else(|| args.fail(format!("Illegal \"{name}\""), 1, "a small number"))
}

fn parse(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let (mut number, mut map, mut hw) = (8, MAP.to_vec(), 1);
    let mut queues = Queues::default();
    let mut limits = false;
    let mut extra = Options::new();
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "num_tc" => number = byte(args, "num_tc")?,
            "map" => map = queues::map(args),
            "queues" => queues.read(args),
            "hw" => hw = byte(args, "hw")?,
            "mode" if hw != 0 => {
                let v = args.value()?;
                if matches(&v.text, "channel") && !matches(&v.text, "dcb") {
                    extra.set("mode", Value::U32(1));
                } else if !matches(&v.text, "dcb") {
                    let line = format!("Illegal mode ({})", v.text);
                    return Err(args.fail(line, 1, "dcb or channel"));
                }
            }
            "shaper" if hw != 0 => {
                let v = args.value()?;
                limits = !matches(&v.text, "dcb");
                if limits && !matches(&v.text, "bw_rlimit") {
                    let line = format!("Illegal shaper ({})", v.text);
                    return Err(args.fail(line, 1, "dcb or bw_rlimit"));
                }
                if limits {
                    extra.set("shaper", Value::U32(1));
                    if args.left() == 0 {
                        return Err(args.fail("Incomplete shaper arguments", 1, "min_rate or max_rate"));
                    }
                }
            }
            name @ ("min_rate" | "max_rate") if limits => {
                let kernel = args.kernel();
                let rates = queues::several(args, |text| num::rate(text, kernel));
                if rates.len() < usize::from(number) && args.left() == 0 {
                    let line = format!("Incomplete arguments, {name} values expected");
                    return Err(args.fail(line, 1, "a rate for each traffic class"));
                }
                let key = if name == "min_rate" { "min_rate" } else { "max_rate" };
                let rates = rates.into_iter().map(|rate| Options::new().with("rate", rate));
                extra.set(key, Value::List(rates.collect()));
            }
            "fp" => {
                let fp = queues::preemption(args);
                if !fp.is_empty() {
                    extra.set("fp", Value::Bytes(fp));
                }
            }
            "help" => return Err(helped(args, USAGE)),
            other => {
                let help =
                    "mqprio takes num_tc, map, queues, hw, and with hw 1 mode, shaper, min_rate, max_rate";
                return Err(args.invarg("unknown argument", other, help));
            }
        }
    }
    if queues.pairs > usize::from(number) {
        let line = format!(
            "queues count/offset pair count {} can not be higher than given num_tc {number}",
            queues.pairs
        );
        return Err(args.fail(line, 1, "a pair for each traffic class"));
    }
    let mut o = Options::new().with("num_tc", number).with("map", map);
    o = o.with("queues", queues.options()).with("hw", hw);
    for (name, value) in extra.iter() {
        o.set(name, value.clone());
    }
    Ok(Some(o))
}

fn print(o: &Options, out: &mut Out) {
    let number = o.u32("num_tc").unwrap_or(0);
    out.num("tc", number, format_args!("tc {number} "));
    out.open_array("map", "map ");
    for &class in o.bytes("map").unwrap_or(&[]) {
        out.item(class, format_args!("{class} "));
    }
    out.close_array();
    out.open_array("queues", "\n             queues:");
    for range in o.list("queues") {
        let value = |name: &str| range.u32(name).unwrap_or(0);
        let first = value("offset");
        let last = first.wrapping_add(value("count")).wrapping_sub(1);
        out.open_list();
        out.item(first, format_args!("({first}:"));
        out.item(last, format_args!("{last}) "));
        out.close_array();
    }
    out.close_array();
    for name in ["mode", "shaper"] {
        out.string(name, "dcb", format_args!("\n             {name}:dcb"));
    }
    if out.since_7() && o.has("fp") {
        out.open_array("fp", "\n             fp:");
        queues::print_preemption(o, out);
        out.nl();
    }
}

fn say_qdisc(say: &mut Say) {
    queues::say(say).pair("hw", 0);
}
