//! `cgroup`: the class that the sender's control group names.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/f_cgroup.c`.
//! Differs: tc writes bare text into its JSON; here it has the key of iproute2 6.12, `handle`.

use super::{FilterHead, FilterKind, basic, ematch, exts};
use crate::show::Out;
use crate::tc::Failure;
use crate::tc::args::{Args, matches};
use crate::tc::kinds::{helped, what_is, word};
use penstock_model::Options;
use penstock_model::rtnetlink::FilterDump;

const USAGE: &str = "\
Usage: ... cgroup [ match EMATCH_TREE ]
               [ action ACTION_SPEC ]
";

pub static KIND: FilterKind = FilterKind {
    id: "cgroup",
    parse,
    print,
    words: &[
        word("match", "EMATCH_TREE", "conditions on the packet; default: none"),
        word("action", "ACTION_SPEC", "action for matching packets"),
        word("police", "POLICE_SPEC", "a policer, in the old form"),
    ],
    ..FilterKind::BARE
};

fn parse(given: &FilterHead<'_>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    let handle = exts::loose_handle(given.handle, args)?;
    let mut o = Options::new();
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        if is("match") {
            basic::ematches(args, &mut o)?;
        } else if is("action") {
            exts::action(args, &mut o, "Illegal \"action\"")?;
        } else if is("police") {
            exts::police(args, &mut o)?;
        } else if word.text == "help" {
            return Err(helped(args, USAGE));
        } else {
            return Err(what_is(args, &word.text, USAGE, "cgroup takes match, action, police"));
        }
    }
    Ok((handle, Some(o)))
}

fn print(dump: &FilterDump, o: &Options, out: &mut Out) {
    if dump.handle != 0 {
        let handle = format!("0x{:x}", dump.handle);
        out.string("handle", &handle, format_args!("handle {handle} "));
    }
    ematch::print(o, out);
    exts::print_old_police(o, true, out);
    exts::print_action(o, out);
}
