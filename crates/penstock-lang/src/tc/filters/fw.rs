//! `fw`: classification by netfilter's mark.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/f_fw.c`.
//! Differs: the JSON, which tc leaves out, has the keys of iproute2 6.12.

use super::{FilterHead, FilterKind, exts};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::kinds::{helped, what_is, word};
use crate::tc::{Failure, num};
use penstock_model::rtnetlink::FilterDump;
use penstock_model::{Handle, Options};

const USAGE: &str = "\
Usage: ... fw [ classid CLASSID ] [ indev DEV ] [ action ACTION_SPEC ]
       ... [ handle MARK[/MASK] ] fw [ classid CLASSID ] [ indev DEV ] [ action ACTION_SPEC ]
";

pub static KIND: FilterKind = FilterKind {
    id: "fw",
    parse,
    print,
    words: &[
        word("classid", "CLASSID", "the class packets with the mark that is the handle go to"),
        word("indev", "DEV", "the interface the packet must have come in by"),
        word("action", "ACTION_SPEC", "action for matching packets"),
        word("police", "POLICE_SPEC", "a policer, in the old form"),
    ],
    ..FilterKind::BARE
};

fn parse(given: &FilterHead<'_>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    let (mut mark, mut mask) = (0, None);
    if let Some(handle) = given.handle {
        let (before, slash) = match handle.split_once('/') {
            Some((mark, mask)) => (mark, Some(mask)),
            None => (handle, None),
        };
        mark = num::u32(before, 0).ok_or_else(|| {
            args.fail("Illegal \"handle\"", 1, "the handle is the mark: a number, e.g. 10 or 0xa")
        })?;
        if let Some(slash) = slash {
            let help = "the mask is a number, e.g. 0xff";
            mask = Some(num::u32(slash, 0).ok_or_else(|| args.fail("Illegal \"handle\" mask", 1, help))?);
        }
    }
    if args.left() == 0 {
        return Ok((mark, None));
    }
    let mut o = Options::new();
    if let Some(mask) = mask {
        o.set("mask", mask.into());
    }
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        if is("classid") || is("flowid") {
            o.set("classid", exts::classid(args)?.into());
        } else if is("police") {
            exts::police(args, &mut o)?;
        } else if is("action") {
            exts::action(args, &mut o, "Illegal fw \"action\"")?;
        } else if word.text == "indev" {
            let dev = exts::indev(args)?;
            o.set("indev", dev.into());
        } else if word.text == "help" {
            return Err(helped(args, USAGE));
        } else {
            return Err(what_is(args, &word.text, USAGE, "fw takes classid, indev, action, police"));
        }
    }
    Ok((mark, Some(o)))
}

fn print(dump: &FilterDump, o: &Options, out: &mut Out) {
    let mark = dump.handle;
    let mask = o.u32("mask");
    if mark != 0 || mask.is_some() {
        let hex = |n: u32| if n == 0 { "0".to_owned() } else { format!("0x{n:x}") };
        out.open_object(Some("fw"));
        match mask.filter(|&m| m != u32::MAX) {
            Some(mask) => {
                out.string("mark", &hex(mark), format_args!("handle 0x{mark:x}"));
                out.string("mask", &hex(mask), format_args!("/0x{mask:x} "));
            }
            None => {
                out.string("mark", &hex(mark), format_args!("handle 0x{mark:x} "));
                out.json_text("mask", "0xffffffff");
            }
        }
        out.close_object();
    }
    if let Some(id) = o.u32("classid").map(Handle) {
        out.string("classid", &id.to_string(), format_args!("classid {id} "));
    }
    exts::print_old_police(o, false, out);
    if let Some(dev) = o.str("indev") {
        out.string("indev", dev, format_args!("input dev {dev} "));
    }
    if o.has("action") {
        out.nl();
        exts::print_action(o, out);
    }
}
