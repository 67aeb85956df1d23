//! `vlan`: push, pop or modify a VLAN tag.
//!
//! Follows: iproute2 6.1.0 `tc/m_vlan.c`.

use super::{Action, PIPE, advance, control, explained, mac, option_value, print_end, tail, usage};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::{Failure, num};
use penstock_model::{Options, Value};

pub(super) static KIND: Action = Action { id: "vlan", old: false, parse, print };

const USAGE: &str = "\
Usage: vlan pop [CONTROL]
       vlan { push | modify } [ protocol { 802.1Q | 802.1AD } ] id VLANID [ priority PRIO ] [CONTROL]
       vlan pop_eth [CONTROL]
       vlan push_eth dst_mac LLADDR src_mac LLADDR [CONTROL]
";
/// In the order of their numbers, from 1.
const ACTIONS: [&str; 5] = ["pop", "push", "modify", "pop_eth", "push_eth"];
const PUSH: u32 = 2;
const MODIFY: u32 = 3;
const PUSH_ETH: u32 = 5;
const ETH_P_8021Q: u16 = 0x8100;
const ETH_P_8021AD: u16 = 0x88a8;

fn parse(args: &mut Args) -> Result<Options, Failure> {
    advance(args)?;
    let mut action = 0;
    let mut o = Options::new();
    while let Some(word) = args.peek_text() {
        let is = |full: &str| matches(word, full);
        let tagged = |args: &mut Args| match action {
            PUSH | MODIFY => Ok(()),
            _ => Err(args.invarg("only valid for push/modify", word, "say push or modify first")),
        };
        let wrapped = |args: &mut Args| match action {
            PUSH_ETH => Ok(()),
            _ => Err(args.invarg("only valid for push_eth", word, "say push_eth first")),
        };
        if let Some(found) = ACTIONS.iter().position(|name| is(name)) {
            if action != 0 {
                let line = format!("unexpected \"{word}\" - action already specified");
                return Err(explained(args, &line, USAGE));
            }
            action = found as u32 + 1;
            args.next_word();
        } else if is("id") {
            tagged(args)?;
            let v = option_value(args)?;
            let id = num::u16(v, 0).ok_or_else(|| args.invarg("id is invalid", v, "1 to 4094"))?;
            o.set("id", id.into());
        } else if is("protocol") {
            tagged(args)?;
            let v = option_value(args)?;
            let protocol = num::protocol(v, args.kernel());
            let help = "802.1Q or 802.1AD";
            o.set("protocol", protocol.ok_or_else(|| args.invarg("protocol is invalid", v, help))?.into());
        } else if is("priority") {
            tagged(args)?;
            let v = option_value(args)?;
            let prio = num::u8(v, 0).filter(|&p| p <= 7);
            o.set("priority", prio.ok_or_else(|| args.invarg("prio is invalid", v, "0 to 7"))?.into());
        } else if is("dst_mac") {
            wrapped(args)?;
            let v = option_value(args)?;
            o.set("dst_mac", Value::Bytes(mac::link_address_or(args, v, "dst_mac is invalid")?));
        } else if is("src_mac") {
            wrapped(args)?;
            let v = option_value(args)?;
            o.set("src_mac", Value::Bytes(mac::link_address_or(args, v, "src_mac is invalid")?));
        } else if is("help") {
            return Err(usage(args, USAGE));
        } else {
            break;
        }
    }
    tail(args, &mut o, PIPE, "vlan: Illegal \"index\"")?;
    let needs: &[&str] = match action {
        PUSH | MODIFY => &["id"],
        PUSH_ETH => &["dst_mac", "src_mac"],
        _ => &[],
    };
    if let Some(missing) = needs.iter().find(|name| !o.has(name)) {
        let line = format!("{missing} needs to be set for {}", ACTIONS[action as usize - 1]);
        return Err(explained(args, &line, USAGE));
    }
    let known = |p: u32| p == u32::from(ETH_P_8021Q) || p == u32::from(ETH_P_8021AD);
    if o.u32("protocol").is_some_and(|p| !known(p)) {
        return Err(explained(args, "protocol not supported", USAGE));
    }
    o.set("v_action", action.into());
    Ok(o)
}

fn print(o: &Options, out: &mut Out) {
    let action = o.u32("v_action").unwrap_or(0);
    let name = ACTIONS.get((action as usize).wrapping_sub(1)).copied().unwrap_or("(null)");
    out.string("kind", "vlan", format_args!("vlan "));
    out.string("vlan_action", name, format_args!(" {name}"));
    if let Some(id) = o.u32("id") {
        out.num("id", id, format_args!(" id {id}"));
    }
    if let Some(protocol) = o.u32("protocol") {
        let name = num::protocol_name(protocol as u16, out.kernel(), out.form.numeric);
        out.string("protocol", &name, format_args!(" protocol {name}"));
    }
    if let Some(priority) = o.u32("priority") {
        out.num("priority", priority, format_args!(" priority {priority}"));
    }
    for name in ["dst_mac", "src_mac"] {
        if let Some(text) = mac::of(o, name) {
            out.string(name, &text, format_args!(" {name} {text}"));
        }
    }
    control::print_control(" ", control::of(o), "", out);
    out.nl();
    print_end(o, out);
}
