//! `ct`: track the packet's connection.
//!
//! Follows: iproute2 6.1.0 `tc/m_ct.c`, 6.12.0 for `helper`.
//! Differs: `helper`, which 6.1 does not know, is read and printed as 6.12 does.

use super::{Action, PIPE, advance, bad, control, next_is, option_value, print_end, usage};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::filters::{address, address_text};
use crate::tc::{Failure, num};
use penstock_model::{Options, Value};

pub(super) static KIND: Action = Action { id: "ct", old: false, parse, print };

const USAGE: &str = "\
Usage: ct clear
       ct commit [force] [zone ZONE] [mark MASKED_MARK] [label MASKED_LABEL] [nat NAT_SPEC] [helper HELPER]
       ct [nat] [zone ZONE]
NAT_SPEC := { src | dst } addr ADDR[-ADDR] [ port PORT[-PORT] ], HELPER := FAMILY-PROTO-NAME
";
const COMMIT: u32 = 1;
const FORCE: u32 = 2;
const CLEAR: u32 = 4;
const NAT: u32 = 8;
const NAT_SRC: u32 = 16;
const NAT_DST: u32 = 32;
const LABELS: usize = 16;

fn parse(args: &mut Args) -> Result<Options, Failure> {
    if next_is(args, "ct") {
        args.next_word();
    }
    let mut action = 0;
    let mut o = Options::new();
    while let Some(word) = args.peek_text() {
        let is = |full: &str| matches(word, full);
        if is("zone") {
            let v = option_value(args)?;
            let zone = num::u16(v, 0).ok_or_else(|| bad(args, "ct: Illegal \"zone\"", "0 to 65535"))?;
            o.set("zone", zone.into());
        } else if is("nat") {
            nat(args, &mut o, &mut action)?;
        } else if let Some((_, bit)) =
            [("clear", CLEAR), ("commit", COMMIT), ("force", FORCE)].iter().find(|(name, _)| is(name))
        {
            action |= bit;
            args.next_word();
        } else if is("index") {
            let v = option_value(args)?;
            let index = num::u32(v, 10).ok_or_else(|| bad(args, "ct: Illegal \"index\"", "a number"))?;
            o.set("index", index.into());
        } else if is("mark") {
            let v = option_value(args)?;
            let (value, mask) = v.split_once('/').map_or((v, None), |(a, b)| (a, Some(b)));
            let pair = num::u32(value, 0).zip(mask.map_or(Some(u32::MAX), |m| num::u32(m, 0)));
            let (mark, mask) = pair.ok_or_else(|| bad(args, "ct: Illegal \"mark\"", "MARK or MARK/MASK"))?;
            o.set("mark", mark.into());
            o.set("mark_mask", mask.into());
        } else if is("label") {
            labels(args, &mut o)?;
        } else if is("help") {
            return Err(usage(args, USAGE));
        } else if is("helper") {
            helper(args, &mut o)?;
        } else {
            break;
        }
    }
    agree(args, action)?;
    let control = control::control_or(args, false, PIPE)?;
    Ok(o.with("action", i64::from(control)).with("ct_action", action))
}

/// What does not go together.
fn agree(args: &Args, action: u32) -> Result<(), Failure> {
    let sides = action & (NAT_SRC | NAT_DST);
    let line = if action & CLEAR != 0 && action != CLEAR {
        "ct: clear can only be used alone"
    } else if sides == NAT_SRC | NAT_DST {
        "ct: src and dst nat can't be used together"
    } else if action & COMMIT != 0 && action & NAT != 0 && sides == 0 {
        "ct: commit and nat must set src or dst"
    } else if action & COMMIT == 0 && sides != 0 {
        "ct: src or dst is only valid if commit is set"
    } else {
        return Ok(());
    };
    Err(bad(args, line, "see tc actions add action ct help"))
}

/// `nat [ { src | dst } addr … [ port … ] ]`. Something must follow.
fn nat(args: &mut Args, o: &mut Options, action: &mut u32) -> Result<(), Failure> {
    *action |= NAT;
    advance(args)?;
    if next_is(args, "src") {
        *action |= NAT_SRC;
    } else if next_is(args, "dst") {
        *action |= NAT_DST;
    } else {
        return Ok(());
    }
    advance(args)?;
    if !next_is(args, "addr") {
        return Err(usage(args, USAGE));
    }
    let v = option_value(args)?;
    let (from, to) = v.split_once('-').map_or((v, None), |(a, b)| (a, Some(b)));
    let from = address(args, from)?;
    let to = to.map(|to| address(args, to)).transpose()?.unwrap_or_else(|| from.clone());
    o.set("addr_min", Value::Bytes(from));
    o.set("addr_max", Value::Bytes(to));
    if args.left() == 0 {
        args.value()?;
    }
    if !next_is(args, "port") {
        return Ok(());
    }
    let v = option_value(args)?;
    let (from, to) = v.split_once('-').map_or((v, None), |(a, b)| (a, Some(b)));
    let from = num::u16(from, 10);
    let range = from.zip(to.map_or(from, |to| num::u16(to, 10)));
    let (min, max) = range.ok_or_else(|| bad(args, "ct: Illegal nat port range", "PORT or PORT-PORT"))?;
    o.set("port_min", min.into());
    o.set("port_max", max.into());
    Ok(())
}

fn labels(args: &mut Args, o: &mut Options) -> Result<(), Failure> {
    let v = option_value(args)?;
    let (value, mask) = v.split_once('/').map_or((v, None), |(a, b)| (a, Some(b)));
    let help = "at most 32 hexadecimal digits";
    if value.len() > LABELS * 2 || mask.is_some_and(|m| m.len() > LABELS * 2) {
        let line = format!("{} Max allowed size {}", value.len(), LABELS * 2);
        return Err(args.invarg(&line, value, help));
    }
    let even = |text: &str| num::hex(text.get(..text.len() / 2 * 2)?);
    let labels = even(value).ok_or_else(|| args.invarg("ct: labels must be a hex string\n", value, help))?;
    let mask = match mask {
        None => vec![0xff; LABELS],
        Some(mask) => {
            even(mask).ok_or_else(|| args.invarg("ct: labels mask must be a hex string\n", mask, help))?
        }
    };
    o.set("labels", Value::Bytes(labels));
    o.set("labels_mask", Value::Bytes(mask));
    Ok(())
}

/// `ipv4-tcp-ftp`.
fn helper(args: &mut Args, o: &mut Options) -> Result<(), Failure> {
    let v = option_value(args)?;
    let parts: Vec<&str> = v.splitn(3, '-').collect();
    let fits = match parts.as_slice() {
        ["ipv4" | "ipv6", "tcp" | "udp" | "icmp" | "sctp", name] => !name.is_empty() && v.len() < 32,
        _ => false,
    };
    if !fits {
        return Err(bad(args, "ct: Illegal \"helper\"", "e.g. ipv4-tcp-ftp"));
    }
    o.set("helper", v.into());
    Ok(())
}

fn print(o: &Options, out: &mut Out) {
    let action = o.u32("ct_action").unwrap_or(0);
    out.string("kind", "ct", format_args!("ct"));
    if action & COMMIT != 0 {
        let commit = if action & FORCE != 0 { "commit force" } else { "commit" };
        out.string("action", commit, format_args!(" {commit}"));
    } else if action & CLEAR != 0 {
        out.string("action", "clear", format_args!(" clear"));
    }
    if let Some(mark) = o.u32("mark") {
        let mask = o.u32("mark_mask").unwrap_or(u32::MAX);
        out.num("mark", mark, format_args!(" mark {mark}"));
        if mask != u32::MAX {
            out.hex("mark_mask", mask, format_args!("/0x{mask:x}"));
        }
    }
    if let Some(zone) = o.u32("zone") {
        out.num("zone", zone, format_args!(" zone {zone}"));
    }
    if let (Some(labels), Some(mask)) = (o.bytes("labels"), o.bytes("labels_mask")) {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let mut text = hex(labels);
        if mask.iter().any(|&b| b != 0xff) {
            text = format!("{text}/{}", hex(mask));
        }
        out.string("label", &text, format_args!(" label {text}"));
    }
    if action & NAT != 0 {
        let text = nat_text(action, o);
        let gap = if text.is_empty() { "" } else { " " };
        out.string("nat", &text, format_args!(" nat{gap}{text}"));
    }
    if let Some(helper) = o.str("helper") {
        out.string("helper", helper, format_args!(" helper {helper}"));
    }
    control::print_control(" ", control::of(o), "", out);
    out.nl();
    print_end(o, out);
}

fn nat_text(action: u32, o: &Options) -> String {
    let mut text = match action & (NAT_SRC | NAT_DST) {
        0 => return String::new(),
        side if side & NAT_SRC != 0 => "src".to_owned(),
        _ => "dst".to_owned(),
    };
    if let (Some(min), Some(max)) = (o.bytes("addr_min"), o.bytes("addr_max"))
        && !min.is_empty()
    {
        text += &format!(" addr {}", address_text(min));
        if min != max {
            text += &format!("-{}", address_text(max));
        }
    }
    if let (Some(min), Some(max)) = (o.u32("port_min"), o.u32("port_max")) {
        text += &format!(" port {min}");
        if min != max {
            text += &format!("-{max}");
        }
    }
    text
}
