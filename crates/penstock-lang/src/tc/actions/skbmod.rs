//! `skbmod`: set or swap Ethernet addresses.
//!
//! Follows: iproute2 6.1.0 `tc/m_skbmod.c`.
//! Differs: tc 6.1 prints text in the middle of its JSON; ours has the fields of 6.12.

use super::{Action, PIPE, advance, bad, control, mac, next_is, option_value, print_end, usage};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::{Command, Failure, num};
use penstock_model::{Options, Value};

pub(super) static KIND: Action = Action { id: "skbmod", old: false, parse, print };

const USAGE: &str = "\
Usage:... skbmod { set <SETTABLE> | swap <SWAPPABLE> | ecn } [CONTROL] [index INDEX]
SETTABLE := [dmac DMAC] [smac SMAC] [etype ETYPE], SWAPPABLE := mac
";
const DMAC: u32 = 1;
const SMAC: u32 = 2;
const ETYPE: u32 = 4;
const SWAPMAC: u32 = 8;
const ECN: u32 = 16;

fn parse(args: &mut Args) -> Result<Options, Failure> {
    let mut flags = 0;
    let mut o = Options::new();
    while let Some(word) = args.peek_text() {
        let is = |full: &str| matches(word, full);
        if is("skbmod") || is("swap") {
            advance(args)?;
        } else if is("mac") {
            flags |= SWAPMAC;
            args.next_word();
        } else if is("set") {
            advance(args)?;
        } else if is("etype") {
            let v = option_value(args)?;
            let help = "a number, e.g. 0x800";
            let etype = num::u16(v, 0).ok_or_else(|| args.invarg("ethertype is invalid", v, help))?;
            args.said.push(Command::Help(format!("skbmod etype 0x{etype:x}\n")));
            flags |= ETYPE;
            if etype != 0 {
                o.set("etype", etype.into());
            }
        } else if is("dmac") {
            let v = option_value(args)?;
            o.set("dmac", Value::Bytes(mac::said_aloud(args, v, "dst", "Invalid dst mac address %s")?));
            flags |= DMAC;
        } else if is("smac") {
            let v = option_value(args)?;
            o.set("smac", Value::Bytes(mac::said_aloud(args, v, "src", "Invalid smac address %s")?));
            flags |= SMAC;
        } else if is("ecn") {
            flags |= ECN;
            args.next_word();
        } else if is("help") {
            return Err(usage(args, USAGE));
        } else {
            break;
        }
    }
    let action = control::control_or(args, false, PIPE)?;
    o.set("action", i64::from(action).into());
    let indexed = next_is(args, "index");
    if indexed {
        let v = option_value(args)?;
        let n = num::u32(v, 0).ok_or_else(|| bad(args, "skbmod: Illegal \"index\"", "a number"))?;
        o.set("index", n.into());
    }
    if flags == 0 && !indexed {
        return Err(usage(args, USAGE).also("skbmod requires at least one option"));
    }
    o.set("flags", flags.into());
    Ok(o)
}

fn print(o: &Options, out: &mut Out) {
    let flags = o.u32("flags").unwrap_or(0);
    out.text_only(format_args!("skbmod "));
    control::print_control("", control::of(o), " ", out);
    if let Some(etype) = o.u32("etype") {
        out.string("etype", &format!("{etype:#x}"), format_args!("set etype 0x{etype:X} "));
        out.text_only(format_args!("\n\t "));
    }
    for name in ["dmac", "smac"] {
        if let Some(text) = mac::of(o, name) {
            out.string(name, &text, format_args!("set {name} {text} "));
        }
    }
    if flags & SWAPMAC != 0 {
        out.null("swapmac", format_args!("swap mac "));
    }
    if flags & ECN != 0 {
        out.null("ecn", format_args!("ecn "));
    }
    out.text_only(format_args!("\n"));
    print_end(o, out);
}
