//! `fw`: classification by netfilter's mark.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/f_fw.c`.

use crate::show::Out;
use crate::tc::actions::{action_of_filter, police_of_filter, print_actions, print_police};
use crate::tc::args::{Args, matches};
use crate::tc::kinds::{helped, what_is};
use crate::tc::{Failure, num};
use penstock_model::rtnetlink::FilterDump;
use penstock_model::{Handle, Options};

const USAGE: &str = "\
Usage: ... [ handle MARK[/MASK] ] fw [ classid CLASSID ] [ indev DEV ]
";

pub fn parse(handle: Option<&str>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    let (mut mark, mut mask) = (0, None);
    if let Some(handle) = handle {
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
        o = o.with("mask", mask);
    }
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        if is("classid") || is("flowid") {
            let v = args.value()?;
            let id = num::classid(&v.text, args.kernel())
                .ok_or_else(|| args.fail("Illegal \"classid\"", 1, "two hexadecimal numbers, e.g. 1:10"))?;
            o = o.with("classid", id.0);
        } else if is("police") {
            police_of_filter(args, &mut o, "Illegal \"police\"")?;
        } else if is("action") {
            action_of_filter(args, &mut o, "Illegal fw \"action\"")?;
        } else if word.text == "indev" {
            let Some(dev) = args.next_word() else {
                return Err(args.fail("Illegal indev", 1, "name the device the packet came in by"));
            };
            o = o.with("indev", dev.text.chars().take(16).collect::<String>());
        } else if word.text == "help" {
            return Err(helped(args, USAGE));
        } else {
            return Err(what_is(args, &word.text, USAGE, "fw takes classid and indev"));
        }
    }
    Ok((mark, Some(o)))
}

pub fn print(dump: &FilterDump, out: &mut Out) {
    let o = &dump.options;
    let mark = dump.handle;
    let mask = o.u32("mask");
    if mark != 0 || mask.is_some() {
        match mask.filter(|&m| m != u32::MAX) {
            Some(mask) => {
                let text = format!("0x{mark:x}/0x{mask:x}");
                out.string("handle", &text, format_args!("handle {text} "));
            }
            None => out.string("handle", &format!("0x{mark:x}"), format_args!("handle 0x{mark:x} ")),
        }
    }
    if let Some(id) = o.u32("classid") {
        let id = Handle(id);
        out.string("classid", &id.to_string(), format_args!("classid {id} "));
    }
    if let Some(police) = o.nested("police") {
        print_police(police, out);
    }
    if let Some(dev) = o.str("indev") {
        out.string("input_dev", dev, format_args!("input dev {dev} "));
    }
    if o.has("action") {
        out.nl();
        print_actions(o.list("action"), true, out);
    }
}
