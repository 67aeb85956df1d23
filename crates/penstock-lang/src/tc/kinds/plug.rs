//! `plug`.
//!
//! Follows: iproute2 6.1.0 `tc/q_plug.c`.

use super::{Kind, OptionWord, Side, helped, word};
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use crate::tc::{Failure, num};
use penstock_model::{Options, Value};

const USAGE: &str = "Usage: ... plug [block | release | release_indefinite | limit NUMBER]
       ... plug [ block | release | release_indefinite | limit NUMBER ]\n";

const WORDS: &[OptionWord] = &[
    word("block", "", "hold packets from now on"),
    word("release", "", "release packets that came before the last block"),
    word("release_indefinite", "", "let everything pass until the next block"),
    word("limit", "BYTES", "maximum bytes held; default txqueuelen times MTU with header"),
];

pub static KIND: Kind = Kind {
    id: "plug",
    in_2_6_35: false,
    qdisc: Some(Side { parse, say: say_qdisc, words: WORDS }),
    ..Kind::BARE
};

fn parse(args: &mut Args, _: Option<&str>) -> Result<Option<Options>, Failure> {
    let mut o = Options::new();
    while let Some(word) = args.next_word() {
        let action = word.text.as_str();
        match action {
            "block" | "release" | "release_indefinite" => {}
            "limit" => {
                let v = args.value()?;
                let limit = num::size(&v.text, args.kernel()).ok_or_else(|| {
                    let line = format!("Illegal value for \"limit\": \"{}\"", v.text);
                    args.fail(line, 1, "bytes, e.g. 100kb")
                })?;
                o.set("limit", Value::U32(limit));
            }
            "help" => return Err(helped(args, USAGE)),
            _ => {
                let line = format!("plug: unknown parameter \"{action}\"");
                let help = "plug takes block, release, release_indefinite, limit";
                return Err(args.fail(line, 1, help).usage(USAGE));
            }
        }
        // The last one counts.
        o.set("action", action.into());
    }
    Ok((!o.is_empty()).then_some(o))
}

fn say_qdisc(say: &mut Say) {
    if say.o.u32("limit").is_some() {
        say.given("limit", Unit::Plain);
    }
}
