//! `multiq`.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/q_multiq.c`.
//! Differs: `-j` is valid JSON, which tc's is not.

use super::{Kind, Side, helped, what_is};
use crate::show::Out;
use crate::tc::Failure;
use crate::tc::args::Args;
use penstock_model::Options;

const USAGE: &str = "Usage: ... multiq [help]\n";

pub static KIND: Kind =
    Kind { id: "multiq", qdisc: Some(Side { parse, say: |_| (), words: &[] }), print, ..Kind::BARE };

fn parse(args: &mut Args, _dev: Option<&str>) -> Result<Option<Options>, Failure> {
    match args.next_word() {
        None => Ok(Some(Options::new())),
        Some(word) if word.text == "help" => Err(helped(args, USAGE)),
        Some(word) => {
            Err(what_is(args, &word.text, USAGE, "multiq takes no options: the device says how many bands"))
        }
    }
}

fn print(o: &Options, out: &mut Out) {
    let number = |name: &str| o.u32(name).unwrap_or(0);
    let (bands, most) = (number("bands"), number("max_bands"));
    out.num("bands", bands, format_args!("bands {bands}/{most} "));
    out.json_num("max_bands", most);
}
