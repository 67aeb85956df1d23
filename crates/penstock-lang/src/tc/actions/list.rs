//! A list of actions, as filters and `tc actions` read and print it.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/m_action.c` `parse_action`, `tc_print_one_action`, `tc_dump_action`.

use super::{Action, bad, control, find, silent};
use crate::show::{self, Out};
use crate::tc::args::{Args, matches};
use crate::tc::{Failure, num};
use penstock_model::{Options, Stats, Value};

const NO_PERCPU: u32 = 1;
const SKIP_HW: u32 = 2;
const SKIP_SW: u32 = 4;
const COOKIE_MAX: usize = 16;

/// Words that begin the next command of `tc actions`.
fn new_command(word: &str, old: bool) -> bool {
    ["change", "replace", "delete", "add"].into_iter().any(|c| matches(word, c))
        || (!old && matches(word, "get"))
}

/// `parse_action`: what follows the word `action` of a filter, or a verb of `tc actions`. Stops before `flowid`, `classid`, another
/// verb, and at the end.
///
/// # Errors
/// tc's refusal; the caller adds its own line with [`Failure::then`].
pub fn parse_action(args: &mut Args) -> Result<Vec<Options>, Failure> {
    let old = args.old();
    let mut list: Vec<Options> = Vec::new();
    let mut expects = false;
    let mut cookie = Vec::new();
    if args.left() == 0 {
        return Err(silent(args));
    }
    while let Some(word) = args.peek() {
        let text = word.text.as_str();
        match text {
            "action" => {
                args.next_word();
                expects = true;
                continue;
            }
            "flowid" | "classid" => break,
            "help" => return Err(silent(args)),
            _ if new_command(text, old) => {
                if list.is_empty() {
                    return Ok(list);
                }
                break;
            }
            _ => {}
        }
        expects = false;
        let kind = kind_of(text, old);
        let (left, here) = (args.left(), text.to_owned());
        let options = (kind.parse)(args).map_err(|f| {
            f.then("bad action parsing").then(&format!("parse_action: bad value ({left}:{here})!"))
        })?;
        let mut one = Options::new().with("kind", kind.id).with("options", options);
        if !old {
            common(args, &mut one, &mut cookie)?;
        }
        list.push(one);
    }
    if expects {
        let f = bad(args, "bad action empty 1", "name an action: action drop");
        return Err(f.then("parse_action: bad value (0:(null))!"));
    }
    Ok(list)
}

/// A filter's word `action` and what follows: its options' `action`. `illegal` is the filter's own line where it goes wrong.
///
/// # Errors
/// tc's refusal.
pub fn action_of_filter(args: &mut Args, o: &mut Options, illegal: &str) -> Result<(), Failure> {
    if args.left() == 0 {
        args.value()?;
    }
    args.of_filter = true;
    let list = parse_action(args).map_err(|f| f.then(illegal))?;
    args.of_filter = false;
    o.set("action", Value::List(list));
    Ok(())
}

/// `get_action_kind`: what no kind is called is left to gact, as are control words.
fn kind_of(word: &str, old: bool) -> &'static Action {
    let gact = find("gact", old).expect("gact is always there");
    match word {
        _ if control::word(word, false, false).is_some() => gact,
        _ => find(word, old).unwrap_or(gact),
    }
}

/// What may follow any kind's options.
fn common(args: &mut Args, one: &mut Options, cookie: &mut Vec<u8>) -> Result<(), Failure> {
    if args.peek_text() == Some("cookie") {
        args.next_word();
        let v = args.value()?;
        let len = v.text.len();
        let help = "an even number of hexadecimal digits, at most 32";
        if len > COOKIE_MAX * 2 {
            return Err(args.invarg(&format!("{len} Max allowed size {}", COOKIE_MAX * 2), &v.text, help));
        }
        *cookie =
            num::hex(&v.text).ok_or_else(|| args.invarg("cookie must be a hex string\n", &v.text, help))?;
    }
    // One cookie is for all that follow.
    if !cookie.is_empty() {
        one.set("cookie", Value::Bytes(cookie.clone()));
    }
    if args.peek_text().is_some_and(|w| matches(w, "hw_stats")) {
        args.next_word();
        let v = args.value()?;
        let types = [("immediate", 1u32), ("delayed", 2), ("disabled", 0)];
        let found = types.iter().find(|(name, _)| matches(&v.text, name));
        let Some((_, bits)) = found else {
            return Err(args.invarg("value is invalid\n", &v.text, "immediate, delayed or disabled"));
        };
        one.set("hw_stats", Value::U32(*bits));
    }
    let mut flags = 0;
    if args.peek_text() == Some("no_percpu") {
        args.next_word();
        flags |= NO_PERCPU;
    }
    for _ in 0..2 {
        match args.peek_text() {
            Some("skip_sw") => flags |= SKIP_SW,
            Some("skip_hw") => flags |= SKIP_HW,
            _ => continue,
        }
        args.next_word();
    }
    if flags != 0 {
        one.set("flags", Value::U32(flags));
    }
    Ok(())
}

/// `tc_dump_action`. `bind`: of a filter, where flags that are the filter's are not printed.
pub fn print_actions(list: &[Options], bind: bool, out: &mut Out) {
    let brief = out.form.brief;
    out.open_array("actions", "");
    for one in list {
        out.open_object(None);
        out.nl();
        let order = one.u32("order").unwrap_or(0) + out.order_base();
        out.num("order", order, format_args!("\taction order {order}: "));
        match brief {
            true => print_brief(one, bind, out),
            false => print_one(one, bind, out),
        }
        out.close_object();
    }
    out.close_array();
    out.next_orders();
}

/// What a terse dump holds (`-br`): the kind, in the words of those that begin with it, index (not of a filter's), counters,
/// cookie.
fn print_brief(one: &Options, bind: bool, out: &mut Out) {
    let kind = one.str("kind").unwrap_or("");
    match kind {
        "simple" | "skbmod" => {}
        "police" => {
            if out.is_json() {
                out.string("kind", kind, format_args!(""));
            }
        }
        "nat" => out.string("type", kind, format_args!(" nat ")),
        "pedit" => out.string("kind", kind, format_args!(" pedit ")),
        "ct" => out.string("kind", kind, format_args!("ct")),
        "gate" => return,
        _ => out.string("kind", kind, format_args!("{kind} ")),
    }
    if !bind {
        let index = one.nested("options").and_then(|o| o.u32("index")).unwrap_or(0);
        out.num("index", index, format_args!("\t index {index}"));
        out.nl();
    }
    print_counters(one, out);
    print_cookie(one, out);
}

/// With `-s`.
fn print_counters(one: &Options, out: &mut Out) {
    if let (true, Some(stats)) = (out.form.stats, one.nested("stats")) {
        out.text_only(format_args!("\tAction statistics:"));
        out.nl();
        out.open_object(Some("stats"));
        show::stats(&Stats::from_options(stats), "\t", out);
        out.close_object();
        out.nl();
    }
}

fn print_cookie(one: &Options, out: &mut Out) {
    if let Some(cookie) = one.bytes("cookie") {
        let text: String = cookie.iter().map(|b| format!("{b:02x}")).collect();
        out.string("cookie", &text, format_args!("\tcookie {text}"));
        out.nl();
    }
}

/// `tc_print_one_action`.
fn print_one(one: &Options, bind: bool, out: &mut Out) {
    let kind = one.str("kind").unwrap_or("");
    let none = Options::new();
    let options = one.nested("options");
    if let Some(action) = find(kind, out.old()) {
        (action.print)(options.unwrap_or(&none), out);
    }
    print_counters(one, out);
    if out.old() {
        return;
    }
    print_cookie(one, out);
    let flags = one.u32("flags").unwrap_or(0);
    let mut line = false;
    let mut flag = |bit: u32, name: &str, out: &mut Out| {
        if flags & bit != 0 {
            line = true;
            out.flag(name, format_args!("\t{name}"));
        }
    };
    flag(NO_PERCPU, "no_percpu", out);
    if !bind {
        flag(SKIP_HW, "skip_hw", out);
        flag(SKIP_SW, "skip_sw", out);
        if one.has("in_hw_count") && flags & SKIP_HW == 0 {
            line = true;
            out.flag("not_in_hw", format_args!("\tnot_in_hw"));
        }
    }
    if line {
        out.nl();
    }
    for name in ["hw_stats", "used_hw_stats"] {
        let Some(bits) = one.u32(name) else { continue };
        out.text_only(format_args!("\t"));
        out.open_array(name, name);
        for (name, bit) in [("immediate", 1), ("delayed", 2), ("disabled", 0)] {
            if bits & bit != 0 || (bits == 0 && bit == 0) {
                out.text_item(name, format_args!(" {name}"));
            }
        }
        out.close_array();
        out.nl();
    }
}
