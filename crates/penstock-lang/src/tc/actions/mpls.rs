//! `mpls`: push, pop or modify an MPLS label.
//!
//! Follows: iproute2 6.1.0 `tc/m_mpls.c`, 6.12.0 for `mpls index N`.
//! Differs: `mpls index N` of a filter, which 6.1 refuses, is read as 6.12 does.

use super::{Action, PIPE, advance, bad, control, explained, next_is, option_value, print_end, usage};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::{Failure, num};
use penstock_model::Options;

pub(super) static KIND: Action = Action { id: "mpls", old: false, parse, print };

const USAGE: &str = "\
Usage: mpls pop [ protocol MPLS_PROTO ] [CONTROL]
       mpls { push | mac_push } [ protocol { mpls_uc | mpls_mc } ] [ label LABEL ] [ tc TC ] [ ttl TTL ] [ bos BOS ] [CONTROL]
       mpls modify [ label LABEL ] [ tc TC ] [ ttl TTL ] [ bos BOS ] [CONTROL]
       mpls dec_ttl [CONTROL]
";
/// In the order they are tried, with their numbers.
const ACTIONS: [(&str, u32); 5] = [("pop", 1), ("push", 2), ("modify", 3), ("mac_push", 5), ("dec_ttl", 4)];
const POP: u32 = 1;
const PUSH: u32 = 2;
const MODIFY: u32 = 3;
const MAC_PUSH: u32 = 5;

fn name(action: u32) -> &'static str {
    ACTIONS.iter().find(|a| a.1 == action).map_or("(null)", |a| a.0)
}

fn parse(args: &mut Args) -> Result<Options, Failure> {
    advance(args)?;
    let mut action = 0;
    let mut o = Options::new();
    if args.of_filter && args.peek_text() == Some("index") {
        let v = option_value(args)?;
        let index = num::u32(v, 10).ok_or_else(|| args.invarg("illegal index", v, "a number"))?;
        return Ok(o.with("index", index).with("action", 0i64).with("m_action", 0u32));
    }
    while let Some(word) = args.peek_text() {
        let is = |full: &str| matches(word, full);
        if let Some(found) = ACTIONS.iter().find(|(name, _)| is(name)) {
            if action != 0 {
                let line = format!("Error: got \"{word}\" but action already set to \"{}\"", name(action));
                return Err(explained(args, &line, USAGE));
            }
            action = found.1;
            args.next_word();
        } else if is("label") {
            fields(args, action, word)?;
            let v = option_value(args)?;
            let label = num::u32(v, 0).filter(|&l| l <= 0xfffff);
            o.set("label", label.ok_or_else(|| args.invarg("label must be <=0xFFFFF", v, "20 bits"))?.into());
        } else if is("tc") {
            fields(args, action, word)?;
            let v = option_value(args)?;
            let tc = num::u8(v, 0).filter(|&n| n <= 7);
            o.set("tc", tc.ok_or_else(|| args.invarg("tc field is 3 bits max", v, "0 to 7"))?.into());
        } else if is("ttl") {
            fields(args, action, word)?;
            let v = option_value(args)?;
            let ttl = num::u8(v, 0).filter(|&n| n != 0);
            o.set("ttl", ttl.ok_or_else(|| args.invarg("ttl must be >0 and <=255", v, "1 to 255"))?.into());
        } else if is("bos") {
            fields(args, action, word)?;
            let v = option_value(args)?;
            let bos = num::u8(v, 0).filter(|&n| n <= 1);
            o.set("bos", bos.ok_or_else(|| args.invarg("bos must be 0 or 1", v, "0 or 1"))?.into());
        } else if is("protocol") {
            if !matches!(action, PUSH | MAC_PUSH | POP) {
                return Err(args.invarg(
                    "only valid for push, mac_push and pop",
                    word,
                    "say push or pop first",
                ));
            }
            let v = option_value(args)?;
            let help = "mpls_uc, mpls_mc, ip, …";
            let protocol = num::protocol(v, args.kernel());
            let protocol = protocol.ok_or_else(|| args.invarg("protocol is invalid", v, help))?;
            o.remove("protocol");
            if protocol != 0 {
                o.set("protocol", protocol.into());
            }
        } else if is("help") {
            return Err(usage(args, USAGE));
        } else {
            break;
        }
    }
    if action == 0 {
        let line = "Command line is not complete. Try option \"help\"";
        return Err(bad(args, line, "say push, pop, modify, mac_push or dec_ttl").aborting_with(255));
    }
    let found = control::control_or(args, false, PIPE)?;
    o.set("action", i64::from(found).into());
    if next_is(args, "index") {
        let v = option_value(args)?;
        o.set("index", num::u32(v, 10).ok_or_else(|| args.invarg("illegal index", v, "a number"))?.into());
    }
    let missing = |args: &Args, word: &str| {
        bad(args, format!("Error: argument \"{word}\" is required"), "see tc actions add action mpls help")
            .aborting_with(255)
    };
    if action == PUSH && !o.has("label") {
        return Err(missing(args, "label"));
    }
    let protocol = o.u32("protocol").unwrap_or(0);
    if matches!(action, PUSH | MAC_PUSH) && !matches!(protocol, 0 | 0x8847 | 0x8848) {
        let mac = if action == MAC_PUSH { "mac_" } else { "" };
        let line = format!("invalid {mac}push protocol \"0x{protocol:04x}\" - use mpls_(uc|mc)");
        return Err(bad(args, line, "mpls_uc or mpls_mc"));
    }
    if action == POP && protocol == 0 {
        return Err(missing(args, "protocol"));
    }
    o.set("m_action", action.into());
    Ok(o)
}

/// `can_modify_mpls_fields`.
fn fields(args: &mut Args, action: u32, word: &str) -> Result<(), Failure> {
    match action {
        PUSH | MAC_PUSH | MODIFY => Ok(()),
        _ => Err(args.invarg("only valid for push, mac_push and modify", word, "say push or modify first")),
    }
}

fn print(o: &Options, out: &mut Out) {
    let action = o.u32("m_action").unwrap_or(0);
    let word = name(action);
    out.string("kind", "mpls", format_args!("mpls "));
    out.string("mpls_action", word, format_args!(" {word}"));
    if let (POP | PUSH | MAC_PUSH, Some(protocol)) = (action, o.u32("protocol")) {
        let name = num::protocol_name(protocol as u16, out.kernel(), out.form.numeric);
        out.string("protocol", &name, format_args!(" protocol {name}"));
    }
    if matches!(action, PUSH | MAC_PUSH | MODIFY) {
        for name in ["label", "tc", "bos", "ttl"] {
            if let Some(n) = o.u32(name) {
                out.num(name, n, format_args!(" {name} {n}"));
            }
        }
    }
    control::print_control(" ", control::of(o), "", out);
    out.nl();
    print_end(o, out);
}
