//! `tunnel_key`: set or release the metadata of a tunnel.
//!
//! Follows: iproute2 6.1.0 `tc/m_tunnel_key.c`.

use super::{Action, PIPE, advance, bad, control, explained, option_value, print_end, tail, usage};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::filters::{address, address_text};
use crate::tc::{Failure, num};
use penstock_model::{Options, Value};

pub(super) static KIND: Action = Action { id: "tunnel_key", old: false, parse, print };

const USAGE: &str = "\
Usage: tunnel_key unset
       tunnel_key set id TUNNELID src_ip IP dst_ip IP [ dst_port PORT ]
          [ geneve_opts CLASS:TYPE:DATA,... | vxlan_opts GBP | erspan_opts VER:INDEX:DIR:HWID ]
          [ csum | nocsum ] [ tos TOS ] [ ttl TTL ]
";
const SET: u32 = 1;
const RELEASE: u32 = 2;

/// An option with its value, read by `read`; `line` is what tc says of a bad one.
fn take(
    args: &mut Args,
    o: &mut Options,
    name: &'static str,
    line: &str,
    read: impl FnOnce(&str) -> Option<Value>,
) -> Result<(), Failure> {
    let v = option_value(args)?;
    let value = read(v).ok_or_else(|| bad(args, line, "see tc actions add action tunnel_key help"))?;
    o.set(name, value);
    Ok(())
}

fn parse(args: &mut Args) -> Result<Options, Failure> {
    advance(args)?;
    let mut action = 0;
    let mut o = Options::new().with("no_csum", 0u32);
    while let Some(word) = args.peek_text() {
        let is = |full: &str| matches(word, full);
        let byte = |v: &str| num::u8(v, 10).or_else(|| num::u8(v, 16)).map(Value::from);
        if is("unset") || is("set") {
            if action != 0 {
                let line = format!("unexpected \"{word}\" - action already specified");
                return Err(explained(args, &line, USAGE));
            }
            action = if is("unset") { RELEASE } else { SET };
            args.next_word();
        } else if is("src_ip") || is("dst_ip") {
            let name = if is("src_ip") { "src_ip" } else { "dst_ip" };
            let v = option_value(args)?;
            o.set(name, Value::Bytes(address(args, v)?));
        } else if is("id") {
            take(args, &mut o, "key_id", "Illegal \"id\"", |v| num::u32(v, 10).map(Value::from))?;
        } else if is("dst_port") {
            take(args, &mut o, "dst_port", "Illegal \"dst port\"", |v| num::u16(v, 10).map(Value::from))?;
        } else if is("geneve_opts") {
            let inner = |v: &str| Some(Options::new().with("geneve", Value::List(geneve(v)?)).into());
            take(args, &mut o, "opts", "Illegal \"geneve_opts\"", inner)?;
        } else if is("vxlan_opts") {
            let inner = |v: &str| {
                let gbp = Options::new().with("gbp", num::u32(v, 0)?);
                Some(Options::new().with("vxlan", gbp).into())
            };
            take(args, &mut o, "opts", "Illegal \"vxlan_opts\"", inner)?;
        } else if is("erspan_opts") {
            let inner = |v: &str| Some(Options::new().with("erspan", erspan(v)?).into());
            take(args, &mut o, "opts", "Illegal \"erspan_opts\"", inner)?;
        } else if is("tos") {
            take(args, &mut o, "tos", "Illegal \"tos\"", byte)?;
        } else if is("ttl") {
            take(args, &mut o, "ttl", "Illegal \"ttl\"", byte)?;
        } else if is("csum") || is("nocsum") {
            o.set("no_csum", u32::from(!is("csum")).into());
            args.next_word();
        } else if is("help") {
            return Err(usage(args, USAGE));
        } else {
            break;
        }
    }
    tail(args, &mut o, PIPE, "tunnel_key: Illegal \"index\"")?;
    if action == SET && !(o.has("src_ip") && o.has("dst_ip")) {
        return Err(explained(args, "set needs tunnel_key parameters", USAGE));
    }
    o.set("t_action", action.into());
    Ok(o)
}

/// `CLASS:TYPE:DATA,…`, all hexadecimal.
fn geneve(text: &str) -> Option<Vec<Options>> {
    let mut list = Vec::new();
    for one in text.split(',').filter(|t| !t.is_empty()) {
        let mut o = Options::new();
        for (i, part) in one.split(':').filter(|t| !t.is_empty()).enumerate() {
            match i {
                0 => o.set("class", num::u16(part, 16)?.into()),
                1 => o.set("type", num::u8(part, 16)?.into()),
                // Of an odd number of digits the last is left.
                2 => o.set("data", Value::Bytes(num::hex(part.get(..part.len() / 2 * 2)?)?)),
                _ => return None,
            };
        }
        list.push(o);
    }
    Some(list)
}

/// `VER:INDEX:DIR:HWID`.
fn erspan(text: &str) -> Option<Options> {
    let mut o = Options::new();
    for (i, part) in text.split(':').filter(|t| !t.is_empty()).enumerate() {
        let names = ["ver", "index", "dir", "hwid"];
        let name = *names.get(i)?;
        let n = if name == "index" { num::u32(part, 0)? } else { u32::from(num::u8(part, 0)?) };
        o.set(name, n.into());
    }
    Some(o)
}

fn print(o: &Options, out: &mut Out) {
    let n = |name: &str| o.u32(name);
    out.string("kind", "tunnel_key", format_args!("tunnel_key "));
    match n("t_action") {
        Some(RELEASE) => out.string("mode", "unset", format_args!(" unset")),
        Some(SET) => {
            out.string("mode", "set", format_args!(" set"));
            for name in ["src_ip", "dst_ip"] {
                let text = address_text(o.bytes(name).unwrap_or(&[]));
                out.nl();
                out.string(name, &text, format_args!("\t{name} {text}"));
            }
            for name in ["key_id", "dst_port"] {
                if let Some(n) = n(name) {
                    out.nl();
                    out.num(name, n, format_args!("\t{name} {n}"));
                }
            }
            if let Some(inner) = o.nested("opts") {
                print_opts(inner, out);
            }
            let flag = if n("no_csum").unwrap_or(0) != 0 { "nocsum" } else { "csum" };
            out.nl();
            out.string("flag", flag, format_args!("\t{flag}"));
            if let Some(tos) = n("tos") {
                out.nl();
                out.num("tos", tos, format_args!("\ttos 0x{tos:x}"));
            }
            if let Some(ttl) = n("ttl") {
                out.nl();
                out.num("ttl", ttl, format_args!("\tttl {ttl}"));
            }
        }
        _ => {}
    }
    control::print_control(" ", control::of(o), "", out);
    out.nl();
    print_end(o, out);
}

fn print_opts(inner: &Options, out: &mut Out) {
    let list = inner.list("geneve");
    if !list.is_empty() {
        out.open_array("geneve_opts", "");
        out.nl();
        out.text_only(format_args!("\tgeneve_opts "));
        for (i, one) in list.iter().enumerate() {
            let (class, kind) = (one.u32("class").unwrap_or(0), one.u32("type").unwrap_or(0));
            let data = one.bytes("data").unwrap_or(&[]);
            out.open_object(None);
            out.json_num("class", class);
            out.json_num("type", kind);
            out.open_array("data", "");
            if out.is_json() {
                data.iter().for_each(|b| out.item(b, format_args!("")));
            }
            out.close_array();
            out.close_object();
            let hex: String = data.iter().map(|b| format!("{b:02x}")).collect();
            let comma = if i + 1 < list.len() { "," } else { "" };
            out.text_only(format_args!("{class:04x}:{kind:02x}:{hex}{comma}"));
        }
        out.close_array();
    }
    if let Some(vxlan) = inner.nested("vxlan") {
        let gbp = vxlan.u32("gbp").unwrap_or(0);
        out.nl();
        out.open_array("vxlan_opts", "\tvxlan_opts ");
        out.open_object(None);
        out.num("gbp", gbp, format_args!("{gbp}"));
        out.close_object();
        out.close_array();
    }
    if let Some(erspan) = inner.nested("erspan") {
        out.nl();
        out.open_array("erspan_opts", "\terspan_opts ");
        out.open_object(None);
        for name in ["ver", "index", "dir", "hwid"] {
            let n = erspan.u32(name).unwrap_or(0);
            let colon = if name == "ver" { "" } else { ":" };
            out.num(name, n, format_args!("{colon}{n}"));
        }
        out.close_object();
        out.close_array();
    }
}
