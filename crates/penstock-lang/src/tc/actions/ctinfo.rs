//! `ctinfo`: restore DSCP and mark from the connection's mark.
//!
//! Follows: iproute2 6.1.0 `tc/m_ctinfo.c`.

use super::{Action, PIPE, bad, control, next_is, option_value, print_index, print_times, tail, usage};
use crate::show::Out;
use crate::tc::args::Args;
use crate::tc::{Failure, num};
use penstock_model::Options;

pub(super) static KIND: Action = Action { id: "ctinfo", old: false, parse, print };

const USAGE: &str = "\
Usage: ... ctinfo [dscp mask [statemask]] [cpmark [mask]] [zone ZONE] [CONTROL] [index <INDEX>]
CONTROL := reclassify | pipe | drop | continue | ok | goto chain INDEX
";

/// A number that may follow.
fn mask_here(args: &mut Args) -> Option<u32> {
    let mask = num::u32(args.peek_text()?, 0)?;
    args.next_word();
    Some(mask)
}

fn parse(args: &mut Args) -> Result<Options, Failure> {
    while next_is(args, "ctinfo") {
        args.next_word();
    }
    if next_is(args, "help") {
        return Err(usage(args, USAGE));
    }
    let mut o = Options::new();
    let (mut mask, mut state, mut cpmark) = (0, 0, 0);
    if next_is(args, "dscp") {
        let v = option_value(args)?;
        mask = num::u32(v, 0).ok_or_else(|| bad(args, "ctinfo: Illegal dscp \"mask\"", "e.g. 0xfc000000"))?;
        state = mask_here(args).unwrap_or(0);
    }
    if next_is(args, "cpmark") {
        args.next_word();
        cpmark = mask_here(args).unwrap_or(u32::MAX);
    }
    o.set("zone", 0u32.into());
    if next_is(args, "zone") {
        let v = option_value(args)?;
        let zone = num::u16(v, 10).ok_or_else(|| bad(args, "ctinfo: Illegal \"zone\"", "0 to 65535"))?;
        o.set("zone", zone.into());
    }
    tail(args, &mut o, PIPE, "ctinfo: Illegal \"index\"")?;
    if mask & state != 0 {
        return Err(bad(
            args,
            "ctinfo: dscp mask & statemask must NOT overlap",
            "e.g. 0xfc000000 0x01000000",
        ));
    }
    if mask != 0 && mask >> mask.trailing_zeros() != 0x3f {
        return Err(bad(args, "ctinfo: dscp mask must be 6 contiguous bits long", "e.g. 0xfc000000"));
    }
    for (name, value) in [("dscp", mask), ("dscpstate", state), ("cpmark", cpmark)] {
        if value != 0 {
            o.set(name, value.into());
        }
    }
    Ok(o)
}

/// `%#010llx`, and what JSON has of it.
fn hex(key: &str, value: u32, before: &str, out: &mut Out) {
    let short = if value == 0 { "0".to_owned() } else { format!("{value:#x}") };
    let long = if value == 0 { "0000000000".to_owned() } else { format!("{value:#010x}") };
    out.string(key, &short, format_args!("{before}{long}"));
}

fn print(o: &Options, out: &mut Out) {
    let zone = o.u32("zone").unwrap_or(0);
    out.string("kind", "ctinfo", format_args!("ctinfo "));
    out.num("zone", zone, format_args!("zone {zone}"));
    control::print_control(" ", control::of(o), "", out);
    out.nl();
    print_index(o, out);
    if let Some(mask) = o.u32("dscp") {
        hex("dscpmask", mask, " dscp ", out);
        hex("dscpstatemask", o.u32("dscpstate").unwrap_or(0), " ", out);
    }
    if let Some(mask) = o.u32("cpmark") {
        hex("cpmark", mask, " cpmark ", out);
    }
    if out.form.stats {
        print_times(o, out);
        for (key, word) in [("dscpset", "DSCP set"), ("dscperror", "error"), ("cpmarkset", "CPMARK set")] {
            let count = o.u64(key).unwrap_or(0);
            out.num(key, count, format_args!(" {word} {count}"));
        }
    }
    out.nl();
}
