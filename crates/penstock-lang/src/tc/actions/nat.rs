//! `nat`: rewrite addresses without state.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/m_nat.c`.
//! Differs: `nat index N` of a filter, which 6.1 refuses, is read as 6.12 does.

use super::{Action, advance, control, explained, next_is, print_end, print_times, tail, usage};
use crate::show::Out;
use crate::tc::Failure;
use crate::tc::args::{Args, matches};
use crate::tc::filters::prefix4;
use penstock_model::Options;
use std::net::Ipv4Addr;

pub(super) static KIND: Action = Action { id: "nat", old: true, parse, print };

const USAGE: &str = "\
Usage: ... nat NAT
NAT := { ingress | egress } OLD[/PREFIXLEN] NEW
";
const EGRESS: u32 = 1;

/// `parse_nat_args`; the next word is the direction.
fn addresses(args: &mut Args, o: &mut Options) -> Result<(), Failure> {
    let word = args.peek_text().unwrap_or("").to_owned();
    let illegal = |args: &Args| explained(args, &format!("Illegal nat construct ({word})"), USAGE);
    let egress = matches(&word, "egress");
    if !egress && !matches(&word, "ingress") {
        return Err(illegal(args));
    }
    advance(args)?;
    let kernel = args.kernel();
    let (old, bits) = prefix4(args.peek_text().unwrap_or(""), kernel).ok_or_else(|| illegal(args))?;
    advance(args)?;
    let (new, _) = prefix4(args.peek_text().unwrap_or(""), kernel).ok_or_else(|| illegal(args))?;
    args.next_word();
    // A shift by 32 is none at all, up to the tc that looks for it.
    let all = args.since_7() && bits == 0;
    let mask = if all { 0 } else { u32::MAX.wrapping_shl(32 - bits) };
    for (name, value) in
        [("old_addr", old), ("new_addr", new), ("mask", mask), ("flags", u32::from(egress) * EGRESS)]
    {
        o.set(name, value.into());
    }
    Ok(())
}

fn parse(args: &mut Args) -> Result<Options, Failure> {
    let mut o = Options::new();
    loop {
        if next_is(args, "nat") {
            advance(args)?;
            if args.of_filter && !args.old() && args.peek_text() == Some("index") {
                super::index_here(args, &mut o, "Nat: Illegal \"index\"")?;
                return Ok(o.with("action", 0i64));
            }
            addresses(args, &mut o)?;
        } else if next_is(args, "help") {
            return Err(usage(args, USAGE));
        } else {
            break;
        }
    }
    if args.old() {
        o.set("action", i64::from(control::old_control(args, false)?).into());
        super::index_here(args, &mut o, "Pedit: Illegal \"index\"")?;
        return Ok(o);
    }
    tail(args, &mut o, 0, "Nat: Illegal \"index\"")?;
    Ok(o)
}

fn print(o: &Options, out: &mut Out) {
    let n = |name: &str| o.u32(name).unwrap_or(0);
    let mask = n("mask");
    // `ffs` of the mask, which only tc of the profile 7.2 turns round first on a little-endian machine.
    let host = if out.since_7() { mask } else { mask.swap_bytes() };
    let bits = if mask == 0 { 0 } else { 32 - host.trailing_zeros() };
    let direction = if n("flags") & EGRESS != 0 { "egress" } else { "ingress" };
    out.string("type", "nat", format_args!(" nat "));
    out.string("direction", direction, format_args!("{direction}"));
    let from = format!("{}/{bits}", Ipv4Addr::from_bits(n("old_addr")));
    out.string("old_addr", &from, format_args!(" {from}"));
    let to = Ipv4Addr::from_bits(n("new_addr")).to_string();
    out.string("new_addr", &to, format_args!(" {to}"));
    if out.old() {
        out.text_only(format_args!(" {}", control::name(control::of(o))));
        if out.form.stats {
            print_times(o, out);
        }
        return;
    }
    control::print_control(" ", control::of(o), "", out);
    out.nl();
    print_end(o, out);
}
