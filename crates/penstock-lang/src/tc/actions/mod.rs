//! The kinds of actions: what tc reads and prints of each.
//!
//! A filter reads its `action …` with [`parse_action`] and prints it with [`print_actions`]; the old `police …` is
//! [`parse_police`] and [`print_police`]. The form of a list is told in `sched::act`.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/m_action.c`, `tc/tc_util.c` `action_a2n`, `parse_action_control`,
//! `print_action_control`, `print_tm`.

mod bpf;
mod command;
mod connmark;
mod control;
mod csum;
mod ct;
mod ctinfo;
mod gact;
mod gate;
mod ife;
mod list;
mod mac;
mod mirred;
mod mpls;
mod nat;
mod pedit;
mod police;
mod sample;
mod simple;
mod skbedit;
mod skbmod;
mod tunnel_key;
mod vlan;
mod xt;

pub(super) use command::command;
pub use list::{action_of_filter, parse_action, print_actions};
pub use pedit::words as pedit_words;
pub use police::{parse_police, police_of_filter, print_police};

use super::args::{Args, matches};
use super::{Failure, num};
use crate::show::Out;
use penstock_model::Options;

/// tc's half of one kind (`struct action_util`).
struct Action {
    /// The word.
    id: &'static str,
    /// Whether the tc of 2010 has it.
    old: bool,
    /// Reads the kind's options; the next word is the kind's own, or the first control word.
    parse: fn(&mut Args) -> Result<Options, Failure>,
    /// Prints its options; ends with a newline where tc's does.
    print: fn(&Options, &mut Out),
}

/// Every kind, by name.
static KINDS: &[&Action] = &[
    &bpf::KIND,
    &connmark::KIND,
    &csum::KIND,
    &ct::KIND,
    &ctinfo::KIND,
    &gact::KIND,
    &gate::KIND,
    &ife::KIND,
    &mirred::KIND,
    &mpls::KIND,
    &nat::KIND,
    &pedit::KIND,
    &police::KIND,
    &sample::KIND,
    &simple::KIND,
    &skbedit::KIND,
    &skbmod::KIND,
    &tunnel_key::KIND,
    &vlan::KIND,
    &xt::KIND,
];

/// The names of all kinds.
pub fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|k| k.id)
}

fn find(id: &str, old: bool) -> Option<&'static Action> {
    KINDS.iter().copied().find(|k| k.id == id && (k.old || !old))
}

/// `usage()` of a kind: its text, and the end of tc.
fn usage(args: &Args, text: &str) -> Failure {
    let mut f = args.fail("", 255, "");
    f.stderr = text.to_owned();
    f.diagnostic.message = text.lines().next().unwrap_or("").to_owned();
    f.aborting()
}

/// A kind's refusal: one line; the caller's lines follow.
fn bad(args: &Args, line: impl Into<String>, help: &str) -> Failure {
    args.fail(line, 1, help)
}

/// A refusal without a word of its own.
fn silent(args: &Args) -> Failure {
    let mut f = args.fail("", 1, "");
    f.stderr.clear();
    f
}

/// A refusal with the kind's usage behind it.
fn explained(args: &Args, line: &str, text: &str) -> Failure {
    if line.is_empty() {
        return Failure { exit: 1, aborts: false, ..usage(args, text) };
    }
    bad(args, line, "").usage(text)
}

/// Whether the next word is this one or begins it.
fn next_is(args: &Args, full: &str) -> bool {
    args.peek_text().is_some_and(|w| matches(w, full))
}

/// `NEXT_ARG`: the next word is done with, and another must follow.
fn advance(args: &mut Args) -> Result<(), Failure> {
    args.next_word();
    if args.left() == 0 {
        args.value()?;
    }
    Ok(())
}

/// The word after the next one, which is an option's name.
fn option_value<'a>(args: &mut Args<'a>) -> Result<&'a str, Failure> {
    args.next_word();
    Ok(args.value()?.text.as_str())
}

/// `index N`, decimal, where it comes next; `line` is what the kind says of a bad one.
fn index_here(args: &mut Args, o: &mut Options, line: &str) -> Result<bool, Failure> {
    if !next_is(args, "index") {
        return Ok(false);
    }
    let v = option_value(args)?;
    let n = num::u32(v, 10).ok_or_else(|| bad(args, line.replace("%s", v), "a number, e.g. index 10"))?;
    o.set("index", n.into());
    Ok(true)
}

/// What most kinds end with: a control action, `otherwise` where none is given, and an index. Whether there was one.
fn tail(args: &mut Args, o: &mut Options, otherwise: i32, line: &str) -> Result<bool, Failure> {
    let action = control::control_or(args, false, otherwise)?;
    o.set("action", i64::from(action).into());
    index_here(args, o, line)
}

/// `pipe`.
const PIPE: i32 = 3;

/// `\t index N ref N bind N` and with `-s` the times; a newline.
fn print_end(o: &Options, out: &mut Out) {
    print_index(o, out);
    if out.form.stats {
        print_times(o, out);
    }
    out.nl();
}

/// `\t index N ref N bind N`.
fn print_index(o: &Options, out: &mut Out) {
    let n = |name| o.u32(name).unwrap_or(0);
    out.num("index", n("index"), format_args!("\t index {}", n("index")));
    out.num("ref", n("ref"), format_args!(" ref {}", n("ref")));
    out.num("bind", n("bind"), format_args!(" bind {}", n("bind")));
}

/// `print_tm`.
fn print_times(o: &Options, out: &mut Out) {
    let old = out.old();
    for (name, key, word) in [
        ("installed", "installed", "installed"),
        ("used", "last_used", "used"),
        ("firstused", "first_used", "firstused"),
        ("expires", "expires", "expires"),
    ] {
        let hundredths = o.u64(name).unwrap_or(0);
        if hundredths != 0 && !(old && name == "firstused") {
            let seconds = (hundredths / 100) as u32;
            out.num(key, seconds, format_args!(" {word} {seconds} sec"));
        }
    }
}
