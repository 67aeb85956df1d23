//! `mirred`: redirect or mirror to another device.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/m_mirred.c`, 6.12.0 for `blockid`.
//! Differs: `blockid`, which 6.1 does not know, is read and printed as 6.12 does.

use super::{
    Action, PIPE, advance, bad, control, index_here, next_is, option_value, print_times, silent, usage,
};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::{Failure, num};
use penstock_model::Options;

pub(super) static KIND: Action = Action { id: "mirred", old: true, parse, print };

const USAGE: &str = "\
Usage: mirred <DIRECTION> <ACTION> [index INDEX] <dev DEVICENAME>
DIRECTION := ingress | egress, ACTION := mirror | redirect
";
const EXAMPLE: &str = "e.g. mirred egress redirect dev ifb0";
const STOLEN: i32 = 4;
const EGRESS_REDIR: u32 = 1;
const EGRESS_MIRROR: u32 = 2;
const INGRESS_REDIR: u32 = 3;
const INGRESS_MIRROR: u32 = 4;

/// What the words said.
#[derive(Default)]
struct MirredOptions {
    eaction: u32,
    action: i32,
    index: u32,
    dev: String,
    block: u32,
    ingress: bool,
    egress: bool,
    mirror: bool,
    redirect: bool,
    any: bool,
    indexed: bool,
}

fn parse(args: &mut Args) -> Result<Options, Failure> {
    advance(args)?;
    let word = args.peek_text().unwrap_or("");
    let known: &[&str] = if args.old() { &["egress", "index"] } else { &["egress", "ingress", "index"] };
    if known.iter().any(|w| matches(word, w)) {
        return direction(args);
    }
    if args.old() && matches(word, "ingress") {
        return Err(bad(args, "mirred ingress not supported at the moment", EXAMPLE));
    }
    if matches(word, "help") {
        return Err(usage(args, USAGE));
    }
    Err(bad(args, format!("mirred option not supported {word}"), EXAMPLE))
}

/// `parse_direction`. Words it does not know are passed over.
fn direction(args: &mut Args) -> Result<Options, Failure> {
    let mut g = MirredOptions::default();
    while let Some(word) = args.peek_text() {
        let is = |full: &str| matches(word, full);
        let either = if args.old() { "" } else { " or ingress" };
        if is("action") {
            if !args.old() {
                advance(args)?;
            }
            break;
        } else if (args.old() || !g.egress) && is("egress") {
            g.egress = true;
            if g.ingress {
                return Err(bad(args, "Can't have both egress and ingress", EXAMPLE));
            }
            advance(args)?;
            g.any = true;
            continue;
        } else if !args.old() && !g.ingress && is("ingress") {
            g.ingress = true;
            if g.egress {
                return Err(bad(args, "Can't have both ingress and egress", EXAMPLE));
            }
            advance(args)?;
            g.any = true;
            continue;
        } else if is("index") {
            advance(args)?;
            let v = args.peek_text().unwrap_or("");
            g.index = num::u32(v, 10).ok_or_else(|| bad(args, "Illegal \"index\"", "a number"))?;
            g.indexed = true;
            if !g.any {
                args.next_word();
                break;
            }
        } else if !g.any {
            args.said.push(crate::tc::Command::Help(format!("was expecting egress{either} ({word})\n")));
            break;
        } else if what(args, word, &mut g)? {
            break;
        }
        advance(args)?;
    }
    if !g.any && !g.indexed {
        return Err(silent(args));
    }
    finish(args, g)
}

/// `mirror`, `redirect`, `dev DEV`. Whether it was the last.
fn what(args: &mut Args, word: &str, g: &mut MirredOptions) -> Result<bool, Failure> {
    let both =
        if args.old() { "Cant have both mirror and redir" } else { "Can't have both mirror and redir" };
    if !g.mirror && matches(word, "mirror") {
        g.mirror = true;
        if g.redirect {
            return Err(bad(args, both, EXAMPLE));
        }
        (g.eaction, g.action) = (if g.egress { EGRESS_MIRROR } else { INGRESS_MIRROR }, PIPE);
    } else if !g.redirect && matches(word, "redirect") {
        g.redirect = true;
        if g.mirror {
            return Err(bad(args, both, EXAMPLE));
        }
        (g.eaction, g.action) = (if g.egress { EGRESS_REDIR } else { INGRESS_REDIR }, STOLEN);
    } else if g.redirect || g.mirror {
        if !args.old() && word == "blockid" {
            let v = option_value(args)?;
            let block = num::u32(v, 0).filter(|&b| b != 0);
            g.block = block.ok_or_else(|| bad(args, "invalid block ID", "the number of a shared block"))?;
            return Ok(true);
        }
        if matches(word, "dev") {
            g.dev = option_value(args)?.chars().take(15).collect();
            return Ok(true);
        }
    }
    Ok(false)
}

fn finish(args: &mut Args, mut g: MirredOptions) -> Result<Options, Failure> {
    if !g.dev.is_empty() && (args.env.device)(&g.dev).is_none() {
        return Err(bad(args, format!("Cannot find device \"{}\"", g.dev), "there is no such device here"));
    }
    if matches!(g.eaction, EGRESS_MIRROR | INGRESS_MIRROR) {
        if !args.old() {
            g.action = control::control_or(args, false, PIPE)?;
        } else if args.left() > 0 {
            let mark = args.mark();
            let action = control::old_control(args, true)?;
            g.action = if args.mark() == mark { g.action } else { action };
        }
    }
    if g.indexed && next_is(args, "index") {
        return Err(bad(args, "mirred: Illegal double index", "give index once"));
    }
    let mut o =
        Options::new().with("eaction", g.eaction).with("action", i64::from(g.action)).with("index", g.index);
    if !g.dev.is_empty() {
        o = o.with("dev", g.dev);
    }
    if g.block != 0 {
        o = o.with("blockid", g.block);
    }
    index_here(args, &mut o, "mirred: Illegal \"index\"")?;
    Ok(o)
}

fn print(o: &Options, out: &mut Out) {
    let (long, direction, action) = match o.u32("eaction") {
        Some(EGRESS_REDIR) => ("Egress Redirect", "egress", "redirect"),
        Some(EGRESS_MIRROR) => ("Egress Mirror", "egress", "mirror"),
        Some(INGRESS_REDIR) => ("Ingress Redirect", "ingress", "redirect"),
        Some(INGRESS_MIRROR) => ("Ingress Mirror", "ingress", "mirror"),
        _ => ("unknown", "unknown", "unknown"),
    };
    let n = |name: &str| o.u32(name).unwrap_or(0);
    out.string("kind", "mirred", format_args!("mirred "));
    out.text_only(format_args!("({long}"));
    if out.is_json() {
        out.string("mirred_action", action, format_args!(""));
        out.string("direction", direction, format_args!(""));
    }
    match o.u32("blockid") {
        Some(block) => out.num("to_blockid", block, format_args!(" to blockid {block})")),
        None => {
            let dev = o.str("dev").unwrap_or("*");
            out.string("to_dev", dev, format_args!(" to device {dev})"));
        }
    }
    if out.old() {
        out.text_only(format_args!(" {}\n ", control::name(control::of(o))));
    } else {
        control::print_control(" ", control::of(o), "", out);
        out.nl();
    }
    out.num("index", n("index"), format_args!("\tindex {}", n("index")));
    out.num("ref", n("ref"), format_args!(" ref {}", n("ref")));
    out.num("bind", n("bind"), format_args!(" bind {}", n("bind")));
    if out.form.stats {
        print_times(o, out);
    }
    match out.old() {
        true => out.text_only(format_args!("\n ")),
        false => out.nl(),
    }
}
