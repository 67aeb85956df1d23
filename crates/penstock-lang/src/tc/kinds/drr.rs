//! `drr`.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/q_drr.c`.

use super::{Kind, OptionWord, Side, helped, what_is, word};
use crate::show::{Out, size_text};
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use crate::tc::{Failure, num};
use penstock_model::Options;

const USAGE: &str = "Usage: ... drr\n";
const CLASS_USAGE: &str = "Usage: ... drr quantum SIZE\n";

const CLASS_WORDS: &[OptionWord] =
    &[word("quantum", "BYTES", "rate of the class send a turn, 256 to 1048576; default MTU with header")];

pub static KIND: Kind = Kind {
    id: "drr",
    qdisc: Some(Side { parse, say: |_| (), words: &[] }),
    class: Some(Side { parse: parse_class, say: say_class, words: CLASS_WORDS }),
    print,
    print_xstats: Some(print_xstats),
    ..Kind::BARE
};

fn parse(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    match args.next_word() {
        None => Ok(None),
        Some(word) if word.text == "help" => Err(helped(args, USAGE)),
        Some(word) => Err(what_is(args, &word.text, USAGE, "the drr qdisc takes no options, its classes do")),
    }
}

fn parse_class(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut o = Options::new();
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "quantum" => {
                let v = args.value()?;
                let quantum = num::size(&v.text, args.kernel())
                    .ok_or_else(|| args.fail("Illegal \"quantum\"", 1, "bytes, e.g. 1514"))?;
                o = o.with("quantum", quantum);
            }
            "help" => return Err(helped(args, CLASS_USAGE)),
            other => return Err(what_is(args, other, CLASS_USAGE, "a drr class takes quantum")),
        }
    }
    Ok(Some(o))
}

fn print(o: &Options, out: &mut Out) {
    if let Some(quantum) = o.u32("quantum") {
        out.text_only(format_args!("quantum {} ", size_text(quantum, out.kernel())));
    }
}

fn print_xstats(o: &Options, out: &mut Out) {
    out.text_only(format_args!(" deficit {} ", size_text(o.u32("deficit").unwrap_or(0), out.kernel())));
}

fn say_class(say: &mut Say) {
    say.all(&["quantum"], Unit::Plain);
}
