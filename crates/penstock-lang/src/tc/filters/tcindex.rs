//! `tcindex`: the class by the packet's tcindex, which dsmark sets.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/f_tcindex.c`, which answers most nonsense with its usage alone.
//! Differs: the JSON, which tc leaves out, has the words of the options.

use super::{FilterHead, FilterKind, exts};
use crate::show::Out;
use crate::tc::args::Args;
use crate::tc::kinds::{helped, word};
use crate::tc::{Failure, num};
use penstock_model::rtnetlink::FilterDump;
use penstock_model::{Handle, Options};

const USAGE: &str = "\
\x20Usage: ... tcindex\t[ hash SIZE ] [ mask MASK ] [ shift SHIFT ]
               [ pass_on | fall_through ]
          [ classid CLASSID ] [ action ACTION_SPEC ]
";

pub static KIND: FilterKind = FilterKind {
    id: "tcindex",
    parse,
    print,
    words: &[
        word("hash", "SIZE", "buckets, 1 to 65536; default 64, or all that mask and shift leave"),
        word("mask", "MASK", "the bits of tcindex that count; default 0xffff"),
        word("shift", "SHIFT", "how far they are shifted right; default 0"),
        word("fall_through", "", "without an entry the number itself is the class (the default)"),
        word("pass_on", "", "without an entry the next filter is asked"),
        word("classid", "CLASSID", "the class of the number that is the handle"),
        word("action", "ACTION_SPEC", "action for matching packets"),
        word("police", "POLICE_SPEC", "a policer, in the old form"),
    ],
    ..FilterKind::BARE
};

/// `strtoul` of the whole text.
fn number(args: &mut Args) -> Result<u64, Failure> {
    let v = args.value()?;
    match num::strtoul(&v.text, 0) {
        Some((n, "")) => Ok(n),
        // Nothing at all counts as 0.
        None if v.text.is_empty() => Ok(0),
        _ => Err(helped(args, USAGE)),
    }
}

fn parse(given: &FilterHead<'_>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    let handle = match given.handle.map(|text| (text, num::strtoul(text, 0))) {
        None | Some(("", _)) => 0,
        Some((_, Some((n, "")))) => n as u32,
        _ => return Err(args.fail("Illegal filter ID", 1, "the handle is the tcindex: a number")),
    };
    if args.left() == 0 {
        return Ok((handle, None));
    }
    let mut o = Options::new();
    while let Some(word) = args.next_word() {
        match word.text.as_str() {
            "hash" => {
                let hash = number(args)? as u32 as i32;
                if hash == 0 || hash > 0x1_0000 {
                    return Err(helped(args, USAGE));
                }
                o.set("hash", (hash as u32).into());
            }
            "mask" => {
                let mask = number(args)? as u16;
                o.set("mask", mask.into());
            }
            "shift" => {
                let shift = number(args)? as u32;
                o.set("shift", shift.into());
            }
            "fall_through" => {
                o.set("fall_through", 1u32.into());
            }
            "pass_on" => {
                o.set("fall_through", 0u32.into());
            }
            "classid" => {
                o.set("classid", exts::classid(args)?.into());
            }
            "police" => exts::police(args, &mut o)?,
            "action" if !args.old() => exts::action(args, &mut o, "Illegal \"action\"")?,
            _ => return Err(helped(args, USAGE)),
        }
    }
    Ok((handle, Some(o)))
}

fn print(dump: &FilterDump, o: &Options, out: &mut Out) {
    if dump.handle != u32::MAX {
        out.num("handle", dump.handle, format_args!("handle 0x{:04x} ", dump.handle));
    }
    if let Some(hash) = o.u32("hash").map(|hash| hash as u16) {
        out.num("hash", hash, format_args!("hash {hash} "));
    }
    if let Some(mask) = o.u32("mask") {
        out.string("mask", &format!("0x{mask:04x}"), format_args!("mask 0x{mask:04x} "));
    }
    if let Some(shift) = o.u32("shift").map(|shift| shift as i32) {
        out.num("shift", shift, format_args!("shift {shift} "));
    }
    if let Some(fall_through) = o.u32("fall_through") {
        let name = if fall_through != 0 { "fall_through" } else { "pass_on" };
        out.flag(name, format_args!("{name} "));
    }
    if let Some(id) = o.u32("classid").map(Handle) {
        out.string("classid", &id.to_string(), format_args!("classid {id} "));
    }
    exts::print_old_police(o, true, out);
    if o.has("action") {
        out.nl();
        exts::print_action(o, out);
    }
}
