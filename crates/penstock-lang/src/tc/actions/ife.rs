//! `ife`: carry metadata between machines in an Ethernet frame.
//!
//! Follows: iproute2 6.1.0 `tc/m_ife.c`.

use super::{Action, PIPE, advance, bad, control, mac, next_is, option_value, print_end, usage};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::{Command, Failure, num};
use penstock_model::{Options, Value};

pub(super) static KIND: Action = Action { id: "ife", old: false, parse, print };

const USAGE: &str = "\
Usage:... ife {decode|encode} [{ALLOW|USE} ATTR] [dst DMAC] [src SMAC] [type TYPE] [CONTROL] [index INDEX]
ALLOW := allow { mark | prio | tcindex }, USE := use { mark | prio | tcindex } VALUE
";
const ENCODE: u32 = 1;
const ETH_P_IFE: u16 = 0xed3e;
/// The metadata in the order of its numbers.
const META: [&str; 3] = ["mark", "prio", "tcindex"];

/// What the words said.
#[derive(Default)]
struct IfeOptions {
    encode: bool,
    any: bool,
    kind: Option<u16>,
    allowed: [bool; 3],
    used: [u32; 3],
}

fn parse(args: &mut Args) -> Result<Options, Failure> {
    let mut g = IfeOptions::default();
    let mut o = Options::new();
    while let Some(word) = args.peek_text() {
        let is = |full: &str| matches(word, full);
        if is("ife") {
            advance(args)?;
        } else if is("decode") || is("encode") {
            (g.encode, g.any) = (!is("decode"), true);
            args.next_word();
        } else if is("allow") {
            let v = option_value(args)?;
            let found = META.iter().position(|m| matches(v, m));
            g.allowed
                [found.ok_or_else(|| args.invarg("Illegal meta define", v, "mark, prio or tcindex"))?] = true;
        } else if is("use") {
            uses(args, &mut g)?;
        } else if is("type") {
            let v = option_value(args)?;
            let kind = num::u16(v, 0).ok_or_else(|| args.invarg("ife type is invalid", v, "e.g. 0xdead"))?;
            say_type(args, kind);
            g.kind = Some(kind);
        } else if is("dst") || is("src") {
            let name = if is("dst") { "dst" } else { "src" };
            let v = option_value(args)?;
            let help = "six hexadecimal bytes";
            if mac::six_bytes(v).is_none() {
                return Err(args.invarg("Invalid mac address", v, help));
            }
            o.set(name, Value::Bytes(mac::said_aloud(args, v, name, "")?));
        } else if is("help") {
            return Err(usage(args, USAGE));
        } else {
            break;
        }
    }
    let action = control::control_or(args, false, PIPE)?;
    o.set("action", i64::from(action).into());
    if next_is(args, "index") {
        let v = option_value(args)?;
        o.set("index", num::u32(v, 0).ok_or_else(|| bad(args, "ife: Illegal \"index\"", "a number"))?.into());
        g.any = true;
    }
    if !g.any {
        return Err(usage(args, USAGE).also("IFE requires decode/encode specified"));
    }
    o.set("flags", (if g.encode { ENCODE } else { 0 }).into());
    if !g.encode {
        o.remove("dst");
        o.remove("src");
        return Ok(o);
    }
    match g.kind {
        Some(kind) => {
            o.set("type", kind.into());
        }
        None => say_type(args, ETH_P_IFE),
    }
    let mut meta = Options::new();
    for (i, name) in META.into_iter().enumerate() {
        if g.used[i] != 0 {
            meta.set(name, g.used[i].into());
        } else if g.allowed[i] {
            meta.set(name, Value::Flag);
        }
    }
    o.set("meta", meta.into());
    Ok(o)
}

fn say_type(args: &mut Args, kind: u16) {
    args.said.push(Command::Help(format!("IFE type 0x{kind:04X}\n")));
}

/// `use mark 10`.
fn uses(args: &mut Args, g: &mut IfeOptions) -> Result<(), Failure> {
    let v = option_value(args)?;
    let Some(found) = META.iter().position(|m| matches(v, m)) else {
        return Err(args.invarg("Illegal meta use type", v, "mark, prio or tcindex"));
    };
    let v = args.value()?.text.as_str();
    let n = if META[found] == "tcindex" { num::u16(v, 0).map(u32::from) } else { num::u32(v, 0) };
    let line = format!("ife {} val is invalid", META[found]);
    g.used[found] = n.ok_or_else(|| args.invarg(&line, v, "a number"))?;
    Ok(())
}

fn print(o: &Options, out: &mut Out) {
    let mode = if o.u32("flags").unwrap_or(0) & ENCODE != 0 { "encode" } else { "decode" };
    out.string("kind", "ife", format_args!("ife "));
    out.string("mode", mode, format_args!("{mode} "));
    control::print_control("action ", control::of(o), " ", out);
    if let Some(kind) = o.u32("type") {
        let (low, high) = match kind {
            0 => ("0".to_owned(), "0".to_owned()),
            k => (format!("{k:#x}"), format!("0X{k:X}")),
        };
        out.string("type", &low, format_args!("type {high} "));
        out.nl();
        out.text_only(format_args!("\t"));
    }
    let none = Options::new();
    let meta = o.nested("meta").unwrap_or(&none);
    for name in ["mark", "tcindex", "prio"] {
        match meta.value(name) {
            Some(Value::Flag) => out.string(name, "allow", format_args!("allow {name} ")),
            Some(_) => {
                let n = meta.u32(name).unwrap_or(0);
                out.num(name, n, format_args!("use {name} {n} "));
            }
            None => {}
        }
    }
    for name in ["dst", "src"] {
        if let Some(text) = mac::of(o, name) {
            out.string(name, &text, format_args!("{name} {text} "));
        }
    }
    out.nl();
    print_end(o, out);
}
