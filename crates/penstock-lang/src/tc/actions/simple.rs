//! `simple`: log a word for each packet.
//!
//! Follows: iproute2 6.1.0 `tc/m_simple.c`.
//! Differs: tc 6.1 prints text in the middle of its JSON; ours has the fields of 6.12.

use super::{Action, PIPE, advance, bad, explained, next_is, option_value, print_end, tail, usage};
use crate::show::Out;
use crate::tc::Failure;
use crate::tc::args::Args;
use penstock_model::Options;

pub(super) static KIND: Action = Action { id: "simple", old: false, parse, print };

const USAGE: &str = "\
Usage:... simple [sdata STRING] [index INDEX] [CONTROL]
CONTROL := reclassify | pipe | drop | continue | ok
";
/// Longest text, with the zero at its end.
const MAX_DATA: usize = 32;

fn parse(args: &mut Args) -> Result<Options, Failure> {
    let mut o = Options::new();
    let mut data = None;
    loop {
        if next_is(args, "simple") {
            advance(args)?;
        } else if next_is(args, "sdata") {
            data = Some(option_value(args)?);
        } else if next_is(args, "help") {
            return Err(usage(args, USAGE));
        } else {
            break;
        }
    }
    let indexed = tail(args, &mut o, PIPE, "simple: Illegal \"index\" (%s)")?;
    if data.is_none() && !indexed {
        return Err(explained(args, "", USAGE));
    }
    if let Some(data) = data {
        if data.len() > MAX_DATA - 1 {
            let line = format!("simple: Illegal string len {} <{data}>", data.len());
            return Err(bad(args, line, "at most 31 characters"));
        }
        o.set("sdata", data.into());
    }
    Ok(o)
}

fn print(o: &Options, out: &mut Out) {
    let data = o.str("sdata").unwrap_or("");
    out.string("simple", data, format_args!("Simple <{data}>"));
    out.nl();
    print_end(o, out);
}
