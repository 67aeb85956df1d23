//! `qfq`.
//!
//! Follows: iproute2 6.1.0 `tc/q_qfq.c`. The tc of 2010 had none.

use super::{Kind, OptionWord, Side, helped, what_is, word};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::say::{Say, Unit};
use crate::tc::{Failure, num};
use penstock_model::Options;

const USAGE: &str = "Usage: ... qfq\n";
const CLASS_USAGE: &str = "Usage: ... qfq weight NUMBER maxpkt BYTES\n";

const CLASS_WORDS: &[OptionWord] = &[
    word("weight", "NUMBER", "the class's share, 1 to 1024; default 1"),
    word("maxpkt", "BYTES", "its largest packet, 512 to 65536; default MTU with header"),
];

pub static KIND: Kind = Kind {
    id: "qfq",
    in_2_6_35: false,
    qdisc: Some(Side { parse, say: |_| (), words: &[] }),
    class: Some(Side { parse: parse_class, say: say_class, words: CLASS_WORDS }),
    print,
    ..Kind::BARE
};

fn parse(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    match args.next_word() {
        None => Ok(None),
        Some(word) if matches(&word.text, "help") => Err(helped(args, USAGE)),
        Some(word) => Err(what_is(args, &word.text, USAGE, "the qfq qdisc takes no options, its classes do")),
    }
}

fn parse_class(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut o = Options::new();
    while let Some(word) = args.next_word() {
        let name = match word.text.as_str() {
            text if matches(text, "weight") => "weight",
            text if matches(text, "maxpkt") => "maxpkt",
            "help" => return Err(helped(args, CLASS_USAGE)),
            other => return Err(what_is(args, other, CLASS_USAGE, "a qfq class takes weight and maxpkt")),
        };
        let v = args.value()?;
        let number = num::u32(&v.text, 10)
            .ok_or_else(|| args.fail(format!("Illegal \"{name}\""), 1, "a whole number, without a unit"))?;
        o = o.with(name, number);
    }
    Ok(Some(o))
}

fn print(o: &Options, out: &mut Out) {
    for name in ["weight", "maxpkt"] {
        if let Some(number) = o.u32(name) {
            out.num(name, number, format_args!("{name} {number} "));
        }
    }
}

fn say_class(say: &mut Say) {
    say.all(&["weight", "maxpkt"], Unit::Plain);
}
