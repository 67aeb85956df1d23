//! `pfifo`, `bfifo`, `pfifo_head_drop`, `pfifo_fast`.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/q_fifo.c`.

use super::{Kind, OptionWord, Side, helped, prio, what_is, word};
use crate::show::Out;
use crate::tc::args::Args;
use crate::tc::say::{Say, Unit};
use crate::tc::{Failure, num};
use penstock_model::Options;

const USAGE: &str = "Usage: ... <[p|b]fifo | pfifo_head_drop> [ limit NUMBER ]
       ... { pfifo | bfifo | pfifo_head_drop } [ limit NUMBER ]\n";

const PACKETS: &[OptionWord] =
    &[word("limit", "PACKETS", "maximum packets queued; default: txqueuelen, at least 1")];
const BYTES: &[OptionWord] =
    &[word("limit", "BYTES", "maximum bytes queued; default: txqueuelen times the MTU")];

pub static PFIFO: Kind = fifo("pfifo", PACKETS, |args, _| parse("pfifo", args), print_packets);
pub static PFIFO_HEAD_DROP: Kind =
    fifo("pfifo_head_drop", PACKETS, |args, _| parse("pfifo_head_drop", args), print_packets);
pub static BFIFO: Kind = fifo(
    "bfifo",
    BYTES,
    |args, _| parse("bfifo", args),
    |options, out| {
        if let Some(limit) = options.u32("limit") {
            out.size("limit", "limit ", limit, "");
        }
    },
);
pub static PFIFO_FAST: Kind = Kind { id: "pfifo_fast", print: prio::print, ..Kind::BARE };

const fn fifo(
    id: &'static str,
    words: &'static [OptionWord],
    parse: super::Parse,
    print: super::Print,
) -> Kind {
    Kind { id, qdisc: Some(Side { parse, say: say_qdisc, words }), print, ..Kind::BARE }
}

fn say_qdisc(say: &mut Say) {
    say.given("limit", Unit::Plain);
}

fn parse(id: &str, args: &mut Args) -> Result<Option<Options>, Failure> {
    let mut limit = None;
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "limit" => {
                let v = args.value()?;
                let Some(size) = num::size(&v.text, args.kernel()) else {
                    let line = if args.old() {
                        "Illegal \"limit\"".to_owned()
                    } else {
                        format!("{id}: Illegal value for \"limit\": \"{}\"", v.text)
                    };
                    let unit = if id == "bfifo" { "bytes, e.g. 30k" } else { "packets, e.g. 100" };
                    return Err(args.fail(line, 1, format!("a number of {unit}")));
                };
                limit = Some(size);
            }
            "help" => return Err(helped(args, USAGE)),
            _ if args.old() => {
                return Err(what_is(args, &word.text, USAGE, format!("{id} takes only limit")));
            }
            other => {
                let line = format!("{id}: unknown parameter \"{other}\"");
                return Err(args.fail(line, 1, format!("{id} takes only limit")).usage(USAGE));
            }
        }
    }
    Ok(limit.map(|l| Options::new().with("limit", l)))
}

fn print_packets(options: &Options, out: &mut Out) {
    if let Some(limit) = options.u32("limit") {
        out.num("limit", limit, format_args!("limit {limit}p"));
    }
}
