//! `basic`: extended matches in a tree.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/f_basic.c`.

use super::{FilterHead, FilterKind, ematch, exts};
use crate::show::Out;
use crate::tc::Failure;
use crate::tc::args::{Args, matches};
use crate::tc::kinds::{helped, what_is, word};
use penstock_model::rtnetlink::FilterDump;
use penstock_model::{Options, Value};

const USAGE: &str = "\
Usage: ... basic [ match EMATCH_TREE ]
               [ action ACTION_SPEC ] [ classid CLASSID ]
";

pub static KIND: FilterKind = FilterKind {
    id: "basic",
    parse,
    print,
    words: &[
        word(
            "match",
            "EMATCH_TREE",
            "what the packet must be like: cmp, meta, nbyte, u32, … with and, or, not; default: anything",
        ),
        word("classid", "CLASSID", "the class for matching packets"),
        word("action", "ACTION_SPEC", "action for matching packets"),
        word("police", "POLICE_SPEC", "a policer, in the old form"),
    ],
    ..FilterKind::BARE
};

/// `match EXPR` of this and its relatives: the word was taken.
pub fn ematches(args: &mut Args, o: &mut Options) -> Result<(), Failure> {
    exts::follows(args)?;
    if let Some(list) = ematch::parse(args)? {
        o.set("ematches", Value::List(list));
    }
    Ok(())
}

fn parse(given: &FilterHead<'_>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    let handle = if args.old() && args.left() == 0 { 0 } else { exts::loose_handle(given.handle, args)? };
    if args.left() == 0 {
        return Ok((handle, None));
    }
    let mut o = Options::new();
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        if is("match") {
            ematches(args, &mut o)?;
        } else if is("classid") || word.text == "flowid" {
            o.set("classid", exts::classid(args)?.into());
        } else if is("action") {
            exts::action(args, &mut o, "Illegal \"action\"")?;
        } else if is("police") {
            exts::police(args, &mut o)?;
        } else if word.text == "help" {
            return Err(helped(args, USAGE));
        } else {
            return Err(what_is(args, &word.text, USAGE, "basic takes match, classid, action, police"));
        }
    }
    Ok((handle, Some(o)))
}

fn print(dump: &FilterDump, o: &Options, out: &mut Out) {
    if dump.handle != 0 {
        out.hex("handle", dump.handle, format_args!("handle 0x{:x} ", dump.handle));
    }
    exts::print_flowid(o, out);
    ematch::print(o, out);
    exts::print_old_police(o, true, out);
    exts::print_action(o, out);
}
