//! `dsmark`: the qdisc and its classes.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/q_dsmark.c`.
//! Differs: `-j` is valid JSON, which tc's is not.

use super::{Kind, OptionWord, Side, helped, word};
use crate::show::Out;
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use crate::tc::{Failure, num};
use penstock_model::{Options, Value};

const USAGE: &str = "Usage: dsmark indices INDICES [ default_index DEFAULT_INDEX ] [ set_tc_index ]\n";
const CLASS_USAGE: &str = "Usage: ... dsmark [ mask MASK ] [ value VALUE ]\n";

const WORDS: &[OptionWord] = &[
    word("indices", "NUMBER", "size of the table, a power of two up to 32768"),
    word("default_index", "NUMBER", "index of packets that nothing sorts; default: their tc_index as it is"),
    word("set_tc_index", "", "first set a packet's tc_index to its DS field"),
];
const CLASS_WORDS: &[OptionWord] = &[
    word("mask", "MASK", "what of the DS field is kept; default 0xff: all"),
    word("value", "VALUE", "what is then or-ed into it; default 0"),
];

pub static KIND: Kind = Kind {
    id: "dsmark",
    in_7_2: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    class: Some(Side { parse: parse_class, say: say_class, words: CLASS_WORDS }),
    print,
    ..Kind::BARE
};

/// `strtoul` of the whole word; an empty one is 0.
fn number(args: &mut Args, usage: &str) -> Result<u64, Failure> {
    let v = args.value()?;
    let (value, rest) = num::strtoul(&v.text, 0).unwrap_or((0, &v.text));
    if rest.is_empty() { Ok(value) } else { Err(helped(args, usage)) }
}

fn parse(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let (mut indices, mut default, mut set) = (0u16, -1i32, false);
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "indices" => indices = number(args, USAGE)? as u16,
            "default_index" | "default" => default = number(args, USAGE)? as i32,
            "set_tc_index" => set = true,
            _ => return Err(helped(args, USAGE)),
        }
    }
    if indices == 0 {
        return Err(helped(args, USAGE));
    }
    let mut o = Options::new().with("indices", indices);
    if default != -1 {
        o = o.with("default_index", default as u16);
    }
    if set {
        o.set("set_tc_index", Value::Flag);
    }
    Ok(Some(o))
}

fn parse_class(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut o = Options::new();
    while let Some(word) = args.next_word() {
        let name = match word.text.as_str() {
            "mask" => "mask",
            "value" => "value",
            _ => return Err(helped(args, CLASS_USAGE)),
        };
        o = o.with(name, number(args, CLASS_USAGE)? as u8);
    }
    Ok(Some(o))
}

fn print(o: &Options, out: &mut Out) {
    for (name, digits) in [("mask", 2), ("value", 2), ("indices", 4), ("default_index", 4)] {
        if let Some(value) = o.u32(name) {
            let hex = format!("{value:#0width$x}", width = digits + 2);
            out.string(name, &hex, format_args!("{name} {hex} "));
        }
    }
    if o.has("set_tc_index") {
        out.flag("set_tc_index", format_args!("set_tc_index "));
    }
}

fn say_qdisc(say: &mut Say) {
    let o = say.o;
    say.given("indices", Unit::Plain);
    if let Some(default) = o.u32("default_index").filter(|&d| d != 0xffff) {
        say.pair("default_index", default);
    }
    if o.has("set_tc_index") {
        say.word("set_tc_index");
    }
}

fn say_class(say: &mut Say) {
    say.all(&["mask", "value"], Unit::Plain);
}
