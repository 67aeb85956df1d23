//! `matchall`: every packet.
//!
//! Follows: iproute2 6.1.0 `tc/f_matchall.c`, which wants a word behind `skip_hw` and `skip_sw`.

use super::{FilterHead, FilterKind, exts};
use crate::show::Out;
use crate::tc::Failure;
use crate::tc::args::{Args, matches};
use crate::tc::kinds::{helped, what_is, word};
use penstock_model::Options;
use penstock_model::rtnetlink::FilterDump;

const USAGE: &str = "\
Usage: ... matchall [skip_sw | skip_hw]
       ... matchall [ skip_sw | skip_hw ] [ action ACTION_SPEC ] [ classid CLASSID ]
";

pub static KIND: FilterKind = FilterKind {
    id: "matchall",
    old: false,
    parse,
    print,
    words: &[
        word("classid", "CLASSID", "the class every packet goes to"),
        word("action", "ACTION_SPEC", "action for matching packets"),
        word("skip_hw", "", "do not offload to hardware"),
        word("skip_sw", "", "only offload to hardware"),
    ],
};

fn parse(given: &FilterHead<'_>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    let handle = exts::loose_handle(given.handle, args)?;
    if args.left() == 0 {
        return Ok((handle, None));
    }
    let mut o = Options::new();
    let mut flags = 0;
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        if is("classid") || word.text == "flowid" {
            o.set("classid", exts::classid(args)?.into());
        } else if is("action") {
            exts::action(args, &mut o, "Illegal \"action\"")?;
        } else if word.text == "skip_hw" {
            exts::follows(args)?;
            flags |= exts::SKIP_HW;
        } else if word.text == "skip_sw" {
            exts::follows(args)?;
            flags |= exts::SKIP_SW;
        } else if word.text == "help" {
            return Err(helped(args, USAGE));
        } else {
            return Err(what_is(args, &word.text, USAGE, "matchall takes classid, action, skip_hw, skip_sw"));
        }
    }
    exts::exclusive(flags, args)?;
    if flags != 0 {
        o.set("flags", flags.into());
    }
    Ok((handle, Some(o)))
}

fn print(dump: &FilterDump, o: &Options, out: &mut Out) {
    if dump.handle != 0 {
        out.num("handle", dump.handle, format_args!("handle 0x{:x} ", dump.handle));
    }
    exts::print_flowid(o, out);
    exts::print_flags(o.u32("flags").unwrap_or(0), "\n  ", "", out);
    if let Some(hits) = o.u64("rhit").filter(|_| out.form.stats) {
        out.num("rule_hit", hits, format_args!(" (rule hit {hits})"));
    }
    exts::print_action(o, out);
}
