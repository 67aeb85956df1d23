//! `connmark`: copy the connection's mark to the packet.
//!
//! Follows: iproute2 6.1.0 `tc/m_connmark.c`.

use super::{Action, PIPE, bad, control, next_is, option_value, print_end, tail, usage};
use crate::show::Out;
use crate::tc::args::Args;
use crate::tc::{Failure, num};
use penstock_model::Options;

pub(super) static KIND: Action = Action { id: "connmark", old: false, parse, print };

const USAGE: &str = "\
Usage: ... connmark [zone ZONE] [CONTROL] [index <INDEX>]
CONTROL := reclassify | pipe | drop | continue | ok | goto chain INDEX
";

fn parse(args: &mut Args) -> Result<Options, Failure> {
    while next_is(args, "connmark") {
        args.next_word();
    }
    if next_is(args, "help") {
        return Err(usage(args, USAGE));
    }
    let mut o = Options::new().with("zone", 0u32);
    if next_is(args, "zone") {
        let v = option_value(args)?;
        let zone = num::u16(v, 10).ok_or_else(|| bad(args, "connmark: Illegal \"zone\"", "0 to 65535"))?;
        o.set("zone", zone.into());
    }
    tail(args, &mut o, PIPE, "connmark: Illegal \"index\"")?;
    Ok(o)
}

fn print(o: &Options, out: &mut Out) {
    let zone = o.u32("zone").unwrap_or(0);
    out.string("kind", "connmark", format_args!("connmark "));
    out.num("zone", zone, format_args!("zone {zone}"));
    control::print_control(" ", control::of(o), "", out);
    out.nl();
    print_end(o, out);
}
