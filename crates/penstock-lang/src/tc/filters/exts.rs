//! What several kinds of filters share: `action`, `police`, `classid`, handles, hardware flags.

use crate::show::Out;
use crate::tc::actions::{action_of_filter, police_of_filter, print_actions, print_police};
use crate::tc::args::Args;
use crate::tc::{Failure, num};
use penstock_model::{Handle, Options};

/// `TCA_CLS_FLAGS_*`.
pub const SKIP_HW: u32 = 1;
pub const SKIP_SW: u32 = 2;
const IN_HW: u32 = 4;
const NOT_IN_HW: u32 = 8;

/// `action LIST`: the word was taken; one more must follow.
pub fn action(args: &mut Args, o: &mut Options, line: &str) -> Result<(), Failure> {
    action_of_filter(args, o, line)
}

/// `police …`.
pub fn police(args: &mut Args, o: &mut Options) -> Result<(), Failure> {
    police_of_filter(args, o, "Illegal \"police\"")
}

/// `NEXT_ARG` of a word that another reader takes.
pub fn follows(args: &mut Args) -> Result<(), Failure> {
    if args.left() == 0 {
        args.value()?;
    }
    Ok(())
}

/// Prints the actions.
pub fn print_action(o: &Options, out: &mut Out) {
    if o.has("action") {
        print_actions(o.list("action"), true, out);
    }
}

/// Prints the old `police`, behind a newline where the kind has one.
pub fn print_old_police(o: &Options, newline: bool, out: &mut Out) {
    if let Some(police) = o.nested("police") {
        if newline {
            out.nl();
        }
        print_police(police, out);
    }
}

/// `classid X:Y`.
pub fn classid(args: &mut Args) -> Result<u32, Failure> {
    let v = args.value()?;
    num::classid(&v.text, args.kernel())
        .map(|id| id.0)
        .ok_or_else(|| args.fail("Illegal \"classid\"", 1, "two hexadecimal numbers, e.g. 1:10"))
}

/// `indev DEV` of u32 and fw: the word was taken.
pub fn indev(args: &mut Args) -> Result<String, Failure> {
    let Some(dev) = args.next_word() else {
        return Err(args.fail("Illegal indev", 1, "name the device the packet came in by"));
    };
    Ok(dev.text.chars().take(16).collect())
}

/// Prints `flowid X:Y`.
pub fn print_flowid(o: &Options, out: &mut Out) {
    if let Some(id) = o.u32("classid").map(Handle) {
        out.string("flowid", &id.to_string(), format_args!("flowid {id} "));
    }
}

/// A handle read by `strtol`: whatever begins with no number is 0; only what passes 64 bits is refused.
pub fn loose_handle(handle: Option<&str>, args: &Args) -> Result<u32, Failure> {
    let Some(text) = handle else { return Ok(0) };
    match num::strtol(text, 0) {
        i64::MIN | i64::MAX => {
            let line = format!("Illegal handle \"{text}\", must be numeric.");
            Err(args.fail(line, 1, "the handle is a number"))
        }
        n => Ok(n as u32),
    }
}

/// A handle read by `get_u32`.
pub fn strict_handle(handle: Option<&str>, args: &Args) -> Result<u32, Failure> {
    let Some(text) = handle else { return Ok(0) };
    num::u32(text, 0).ok_or_else(|| args.fail("Illegal \"handle\"", 1, "the handle is a number"))
}

/// Refuses `skip_hw` and `skip_sw` at once.
pub fn exclusive(flags: u32, args: &Args) -> Result<(), Failure> {
    if flags & (SKIP_HW | SKIP_SW) == SKIP_HW | SKIP_SW {
        let line = "skip_hw and skip_sw are mutually exclusive";
        return Err(args.fail(line, 1, "leave one of them"));
    }
    Ok(())
}

/// Prints the hardware flags, each between `before` and `after`.
pub fn print_flags(flags: u32, before: &str, after: &str, out: &mut Out) {
    for (bit, name) in [(SKIP_HW, "skip_hw"), (SKIP_SW, "skip_sw")] {
        if flags & bit != 0 {
            out.flag(name, format_args!("{before}{name}{after}"));
        }
    }
    if flags & IN_HW != 0 {
        out.flag("in_hw", format_args!("{before}in_hw{after}"));
    } else if flags & NOT_IN_HW != 0 {
        out.flag("not_in_hw", format_args!("{before}not_in_hw{after}"));
    }
}
