//! The kinds of actions: what tc reads and prints of each.
//!
//! A filter reads its `action …` with [`parse_action`] and prints it with [`print_actions`]; the old `police …` is
//! [`parse_police`] and [`print_police`]. The form of a list is told in `sched::act`.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/m_action.c`, `tc/tc_util.c` `action_a2n`, `parse_action_control`,
//! `print_action_control`, `print_tm`.

mod control;
mod gact;
mod list;

pub use control::{Controls, control, control_slash, print_control};
pub use list::{action_of_filter, parse_action, print_actions};

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
static KINDS: &[&Action] = &[&gact::KIND];

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

/// The value of `index`, decimal. The word has been taken.
fn index(args: &mut Args) -> Result<u32, Failure> {
    let v = args.value()?;
    num::u32(&v.text, 10).ok_or_else(|| bad(args, "Illegal \"index\"", "a number, e.g. index 10"))
}

/// The word `index` and its value, where they come next.
fn index_here(args: &mut Args, o: &mut Options) -> Result<bool, Failure> {
    if !args.peek_text().is_some_and(|w| matches(w, "index")) {
        return Ok(false);
    }
    args.next_word();
    o.set("index", index(args)?.into());
    Ok(true)
}

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
