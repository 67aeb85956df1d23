//! `skbprio`.
//!
//! Follows: iproute2 6.1.0 `tc/q_skbprio.c`.

use super::plain::{self, Shown};
use super::{Kind, OptionWord, Side, helped, word};
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use crate::tc::{Failure, num};
use penstock_model::Options;

const USAGE: &str = "Usage: ... <skbprio> [ limit NUMBER ]\n";

const WORDS: &[OptionWord] = &[word("limit", "PACKETS", "maximum packets queued; default 64")];

pub static KIND: Kind = Kind {
    id: "skbprio",
    in_2_6_35: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    print: |o, out| plain::print(o, &[("limit", Shown::Number)], out),
    ..Kind::BARE
};

fn parse(args: &mut Args, _: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut o = None;
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "limit" => {
                let v = args.value()?;
                let limit = num::size(&v.text, args.kernel()).ok_or_else(|| {
                    let line = format!("skbprio: Illegal \"limit\" value:\"{}\"", v.text);
                    args.fail(line, 1, "a number of packets")
                })?;
                o = Some(Options::new().with("limit", limit));
            }
            "help" => return Err(helped(args, USAGE)),
            other => {
                let line = format!("skbprio: unknown parameter \"{other}\"");
                return Err(args.fail(line, 1, "skbprio takes limit").usage(USAGE));
            }
        }
    }
    Ok(o)
}

fn say_qdisc(say: &mut Say) {
    say.given("limit", Unit::Plain);
}
