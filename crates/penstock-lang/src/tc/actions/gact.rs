//! `gact`: one control action, by chance another. Its name may be left out.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/m_gact.c`.

use super::{Action, bad, control, index_here, next_is, print_end, usage};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::{Failure, num};
use penstock_model::Options;

pub(super) static KIND: Action = Action { id: "gact", old: true, parse, print };

const USAGE: &str = "\
Usage: ... gact <ACTION> [RAND] [INDEX]
ACTION := reclassify | drop | continue | pass | pipe | goto chain INDEX | jump COUNT
RAND := random { netrand | determ } ACTION VAL, VAL at most 10000; INDEX := index N
";

const ILLEGAL: &str = "Illegal \"index\"";

/// A control action of gact; anything else is the end of tc, in 2010 of the action.
fn control_word(args: &mut Args) -> Result<i32, Failure> {
    if !args.old() {
        return control::control(args, false).map_err(|f| match f.aborts {
            true => f,
            false => f.usage(USAGE).aborting_with(255),
        });
    }
    let text = args.peek_text().unwrap_or("(null)");
    let found = if matches(text, "ok") { Some(0) } else { control::word(text, false, false) };
    match found.filter(|&n| n <= 3) {
        Some(found) => {
            args.next_word();
            Ok(found)
        }
        None => {
            let line = format!("bad action type {text}");
            Err(bad(args, line, "reclassify, drop, continue, pass, pipe").usage(USAGE))
        }
    }
}

fn parse(args: &mut Args) -> Result<Options, Failure> {
    let mut o = Options::new();
    if next_is(args, "gact") {
        args.next_word();
        if args.old() {
            // The action itself is not read behind the name.
            o.set("action", 1i64.into());
        } else if args.left() == 0 {
            args.value()?;
        }
    }
    if !args.old() && next_is(args, "index") {
        index_here(args, &mut o, ILLEGAL)?;
        return Ok(o);
    }
    if !o.has("action") {
        o.set("action", i64::from(control_word(args)?).into());
    }
    if next_is(args, "random") {
        args.next_word();
        let v = args.value()?;
        let kind = if matches(&v.text, "netrand") {
            1u32
        } else if matches(&v.text, "determ") {
            2
        } else {
            return Err(bad(args, "Illegal \"random type\"", "netrand or determ"));
        };
        if args.left() == 0 {
            args.value()?;
        }
        let other = control_word(args)?;
        // tc prints what it never set; this is what that was seen to be.
        let help = "one in how many: a number up to 10000";
        let text = args.next_word().map_or("", |w| w.text.as_str());
        let val = num::u16(text, 10).ok_or_else(|| bad(args, "Illegal probability val 0x1000", help))?;
        if val > 10_000 {
            return Err(bad(args, format!("Illegal probability val  0x{val:x}"), help));
        }
        let random = Options::new().with("type", kind).with("val", val).with("action", i64::from(other));
        o.set("random", random.into());
    } else if next_is(args, "help") {
        return Err(usage(args, USAGE));
    }
    if !index_here(args, &mut o, ILLEGAL)? && next_is(args, "help") {
        return Err(usage(args, USAGE));
    }
    Ok(o)
}

fn print(o: &Options, out: &mut Out) {
    let none = Options::new();
    let random = o.nested("random").unwrap_or(&none);
    let (other, val) = (control::of(random), random.u32("val").unwrap_or(0));
    let way = match random.u32("type") {
        Some(1) => "netrand",
        Some(2) => "determ",
        _ => "none",
    };
    if out.old() {
        out.text_only(format_args!("gact action {}", control::name(control::of(o))));
        out.text_only(format_args!("\n\t random type {way} {} val {val}", control::name(other)));
        out.nl();
        print_end(o, out);
        return;
    }
    out.string("kind", "gact", format_args!("gact "));
    control::print_control("action ", control::of(o), "", out);
    out.open_object(Some("prob"));
    out.nl();
    out.string("random_type", way, format_args!("\t random type {way}"));
    control::print_control(" ", other, " ", out);
    out.num("val", val, format_args!("val {val}"));
    out.close_object();
    out.nl();
    print_end(o, out);
}
