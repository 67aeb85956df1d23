//! Control words: `pass`, `drop`, `goto chain 3`, `conform-exceed`'s pair.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/tc_util.c`.

use super::bad;
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::{Failure, num};
use penstock_model::Options;

const GOTO_CHAIN: i32 = 2 << 28;
const JUMP: i32 = 1 << 28;
const ARGUMENT: i32 = 0x0fff_ffff;

const WORDS: &str = "control words: pass, drop, pipe, continue, reclassify, trap, goto chain N, jump N";

/// Two control actions, the second where one was given.
pub type Controls = (i32, Option<i32>);

/// `action_a2n`.
pub fn word(text: &str, numbers: bool, old: bool) -> Option<i32> {
    let words = [
        ("continue", -1),
        ("drop", 2),
        ("shot", 2),
        ("pass", 0),
        ("ok", 0),
        ("reclassify", 1),
        ("pipe", 3),
        ("goto", GOTO_CHAIN),
        ("jump", JUMP),
        ("trap", 8),
    ];
    let known = |name: &str| match name {
        "ok" if old => text == "ok",
        "pipe" | "goto" | "jump" | "trap" if old => false,
        _ => matches(text, name),
    };
    let found = words.iter().find(|(name, _)| known(name)).map(|w| w.1);
    found.or_else(|| if numbers { scan(text) } else { None })
}

/// `sscanf("%d")` of the whole word.
fn scan(text: &str) -> Option<i32> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let wide = digits.parse::<i64>().unwrap_or(i64::MAX);
    Some(if text.starts_with('-') { wide.wrapping_neg() } else { wide } as i32)
}

/// `parse_action_control`: a control word with its argument. Nothing is taken where it fails.
///
/// # Errors
/// tc's refusal. At the end of the line it has no words.
pub fn control(args: &mut Args, numbers: bool) -> Result<i32, Failure> {
    let Some(first) = args.peek_text() else { return Err(super::silent(args)) };
    let Some(found) = word(first, numbers, args.old()) else {
        return Err(bad(args, format!("Bad action type {first}"), WORDS));
    };
    args.next_word();
    let argument = |text: &str| num::u32(text, 10).filter(|&n| n <= ARGUMENT as u32);
    match found {
        GOTO_CHAIN => {
            let v = args.value()?;
            if !matches(&v.text, "chain") {
                return Err(bad(args, "\"chain index\" expected", "goto chain N"));
            }
            let v = args.value()?;
            match argument(&v.text) {
                Some(n) => Ok(GOTO_CHAIN | n as i32),
                None => Err(bad(args, "Illegal \"chain index\"", "a number up to 268435455")),
            }
        }
        JUMP => {
            let v = args.value()?;
            let line = format!("Invalid \"jump count\" ({})", v.text);
            argument(&v.text).map(|n| JUMP | n as i32).ok_or_else(|| bad(args, line, "a number of actions"))
        }
        plain => Ok(plain),
    }
}

/// `parse_action_control_dflt`: the same, or `otherwise` with nothing taken where it is not a control word. What is wrong behind one is
/// said, and `otherwise` taken all the same.
///
/// # Errors
/// The line's end behind `goto` or `jump`.
pub fn control_or(args: &mut Args, numbers: bool, otherwise: i32) -> Result<i32, Failure> {
    let at = args.mark();
    let known = args.peek_text().is_some_and(|w| word(w, numbers, args.old()).is_some());
    if !known {
        return Ok(otherwise);
    }
    match control(args, numbers) {
        Ok(found) => Ok(found),
        Err(failure) if failure.aborts => Err(failure),
        Err(failure) => {
            args.said.push(crate::tc::Command::Help(failure.stderr));
            args.back_to(at);
            Ok(otherwise)
        }
    }
}

/// A plain control word as the kinds of 2010 read it, each for itself; 0 where there is none. `follows`: another word must.
///
/// # Errors
/// The line's end where it must not be.
pub fn old_control(args: &mut Args, follows: bool) -> Result<i32, Failure> {
    let words = [("reclassify", 1), ("pipe", 3), ("drop", 2), ("shot", 2), ("continue", -1), ("pass", 0)];
    let Some(text) = args.peek_text() else { return Ok(0) };
    let Some((_, action)) = words.iter().find(|(name, _)| matches(text, name)) else { return Ok(0) };
    if follows {
        super::advance(args)?;
    } else {
        args.next_word();
    }
    Ok(*action)
}

/// `parse_action_control_slash`: `drop/pass`, or with blanks around the stroke, or one alone.
///
/// # Errors
/// tc's refusal.
pub fn control_slash(args: &mut Args, numbers: bool) -> Result<Controls, Failure> {
    let old = args.old();
    if let Some((one, two)) = args.peek_text().and_then(|w| w.split_once('/')) {
        let (Some(one), Some(two)) = (word(one, numbers, old), word(two, numbers, old)) else {
            return Err(super::silent(args));
        };
        args.next_word();
        return Ok((one, Some(two)));
    }
    if args.left() == 0 {
        return Ok((-1, None));
    }
    let first = control(args, numbers)?;
    if args.peek_text() != Some("/") {
        return Ok((first, None));
    }
    args.next_word();
    if args.left() == 0 {
        args.value()?;
    }
    Ok((first, Some(control(args, numbers)?)))
}

/// `action_n2a`.
pub fn name(action: i32) -> String {
    match (action as u32) >> 28 {
        1 => return "jump".to_owned(),
        2 => return "goto".to_owned(),
        _ => {}
    }
    let name = match action {
        -1 => "continue",
        0 => "pass",
        1 => "reclassify",
        2 => "drop",
        3 => "pipe",
        4 => "stolen",
        8 => "trap",
        n => return n.to_string(),
    };
    name.to_owned()
}

/// `print_action_control`.
pub fn print_control(before: &str, action: i32, after: &str, out: &mut Out) {
    out.text_only(format_args!("{before}"));
    out.open_object(Some("control_action"));
    let word = name(action);
    out.string("type", &word, format_args!("{word}"));
    let argument = action & ARGUMENT;
    match (action as u32) >> 28 {
        2 => out.num("chain", argument, format_args!(" chain {argument}")),
        1 => out.num("jump", argument, format_args!(" {argument}")),
        _ => {}
    }
    out.close_object();
    out.text_only(format_args!("{after}"));
}

/// The control action among a dump's options.
pub fn of(o: &Options) -> i32 {
    o.i64("action").unwrap_or(0) as i32
}
