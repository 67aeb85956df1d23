//! `meta`: what the kernel knows of a packet beside its bytes.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/em_meta.c`.

use super::{Bstr, Em, Said, operand, operand_name, shown};
use penstock_model::{Kernel, Options, Value};

pub(super) static EMATCH: Em = Em {
    id: "meta",
    kind: 4,
    usage: "\
Usage: meta(OBJECT { eq | lt | gt } OBJECT)
where: OBJECT := { ID [ shift SHIFT ] [ mask MASK ] | VALUE }; meta(list) lists the identifiers
",
    parse,
    print,
};

/// `TCF_META_TYPE_VAR`, `_INT`.
const VAR: u32 = 0;
const INT: u32 = 1;

/// Number, name, whether it can also be text, what it is; sections have number 0.
type Entry = (u32, &'static str, bool, &'static str);

const TABLE: [Entry; 42] = [
    (0, "Generic", false, ""),
    (1, "random", false, "Random value (32 bit)"),
    (2, "loadavg_1", false, "Load average in last minute"),
    (3, "loadavg_5", false, "Load average in last 5 minutes"),
    (4, "loadavg_15", false, "Load average in last 15 minutes"),
    (0, "Interfaces", false, ""),
    (5, "dev", true, "Device the packet is on"),
    (0, "Packet attributes", false, ""),
    (6, "priority", false, "Priority of packet"),
    (7, "protocol", false, "Link layer protocol"),
    (8, "pkt_type", false, "Packet type (uni|multi|broad|...)cast"),
    (9, "pkt_len", false, "Length of packet"),
    (10, "data_len", false, "Length of data in packet"),
    (11, "mac_len", false, "Length of link layer header"),
    (0, "Netfilter", false, ""),
    (12, "nf_mark", false, "Netfilter mark"),
    (12, "fwmark", false, "Alias for nf_mark"),
    (0, "Traffic Control", false, ""),
    (13, "tc_index", false, "TC Index"),
    (0, "Routing", false, ""),
    (14, "rt_classid", false, "Routing ClassID (cls_route)"),
    (15, "rt_iif", false, "Incoming interface index"),
    (46, "vlan", false, "Vlan tag"),
    (0, "Sockets", false, ""),
    (16, "sk_family", false, "Address family"),
    (17, "sk_state", false, "State"),
    (18, "sk_reuse", false, "Reuse Flag"),
    (19, "sk_bind_if", true, "Bound interface"),
    (20, "sk_refcnt", false, "Reference counter"),
    (21, "sk_shutdown", false, "Shutdown mask"),
    (22, "sk_proto", false, "Protocol"),
    (23, "sk_type", false, "Type"),
    (24, "sk_rcvbuf", false, "Receive buffer size"),
    (25, "sk_rmem", false, "RMEM"),
    (26, "sk_wmem", false, "WMEM"),
    (27, "sk_omem", false, "OMEM"),
    (28, "sk_wmem_queue", false, "WMEM queue"),
    (30, "sk_snd_queue", false, "Send queue length"),
    (29, "sk_rcv_queue", false, "Receive queue length"),
    (31, "sk_err_queue", false, "Error queue length"),
    (32, "sk_fwd_alloc", false, "Forward allocations"),
    (33, "sk_sndbuf", false, "Send buffer size"),
];

fn list() -> String {
    let line = "-".repeat(56);
    let mut text = format!("{line}\n  ID               Type       Description\n{line}");
    for (id, name, var, about) in &TABLE {
        if *id == 0 {
            text += &format!("\n{name}:\n");
        } else {
            let types = if *var { "INT,VAR" } else { "INT" };
            text += &format!("  {name:<16} {types:<10} {about}\n");
        }
    }
    text + &line + "\n"
}

/// `struct tcf_meta_val` and its value.
#[derive(Default)]
struct Object {
    id: u32,
    of: u32,
    shift: u32,
    number: u32,
    bytes: Vec<u8>,
    can_be_text: bool,
}

/// `parse_object` from argument `i`: the object and where it ends.
fn object(
    said: &Said<'_>,
    args: &[Bstr],
    mut i: usize,
    left: Option<&mut Object>,
) -> Result<(Object, usize), String> {
    let arg = &args[i];
    if arg.quoted {
        return Ok((Object { of: VAR, bytes: arg.bytes.clone(), ..Object::default() }, i + 1));
    }
    if let Some(n) = arg.number() {
        return Ok((Object { of: INT, number: n as u32, ..Object::default() }, i + 1));
    }
    let Some((id, _, var, _)) = TABLE.iter().find(|(id, name, ..)| *id != 0 && arg.is(name)) else {
        return Err(said.error(args, Some(i), "meta: unknown meta id\n"));
    };
    let mut obj = Object { id: *id, of: INT, can_be_text: *var, ..Object::default() };
    if let Some(left) = left
        && left.of != obj.of
    {
        // The left side is text: a string, or an identifier that can be one. tc looks for a letter of the right type
        // beyond the end of its table, so that it takes every other identifier too.
        if left.id != 0 && left.can_be_text {
            left.of = obj.of;
        } else {
            obj.of = left.of;
        }
    }
    i += 1;
    while let Some(word) = args.get(i) {
        let name = match word {
            w if w.is("shift") => "shift",
            w if w.is("mask") => "mask",
            _ => break,
        };
        let Some(value) = args.get(i + 1) else {
            return Err(said.error(args, Some(i), "meta: missing argument"));
        };
        let Some(n) = value.number() else {
            let what = if name == "shift" { "shift, must be numeric" } else { "mask, must be numeric" };
            return Err(said.error(args, Some(i + 1), &format!("meta: invalid {what}")));
        };
        match name {
            "shift" => obj.shift = u32::from(n as u8),
            _ => obj.number = n as u32,
        }
        i += 2;
    }
    Ok((obj, i))
}

fn parse(said: &Said<'_>, args: &[Bstr]) -> Result<Options, String> {
    if args[0].is("list") {
        return Err(list());
    }
    let (mut left, i) = object(said, args, 0, None)?;
    let Some(word) = args.get(i) else { return Err(said.error(args, Some(0), "meta: missing operand")) };
    let Some(opnd) = operand(word) else { return Err(said.error(args, Some(i), "meta: invalid operand")) };
    if i + 1 == args.len() {
        return Err(said.error(args, Some(0), "meta: missing rvalue"));
    }
    let (right, end) = object(said, args, i + 1, Some(&mut left))?;
    if end < args.len() {
        return Err(said.error(args, Some(end), "meta: unexpected trailer"));
    }
    let side = |o: Object| {
        let head = Options::new().with("id", o.id).with("type", o.of).with("shift", o.shift);
        match (o.of, o.id) {
            (INT, _) => head.with("value", o.number),
            (_, 0) => head.with("value", o.bytes),
            _ => head,
        }
    };
    Ok(Options::new().with("left", side(left)).with("opnd", opnd).with("right", side(right)))
}

fn print(o: &Options, kernel: Kernel, text: &mut String) {
    let empty = Options::new();
    let side = |name| o.nested(name).unwrap_or(&empty);
    print_object(side("left"), kernel, text);
    text.push_str(&format!(" {} ", operand_name(o.u32("opnd").unwrap_or(0))));
    print_object(side("right"), kernel, text);
}

fn print_object(o: &Options, kernel: Kernel, text: &mut String) {
    let id = o.u32("id").unwrap_or(0);
    if id == 0 {
        match o.value("value") {
            Some(Value::Bytes(bytes)) => print_binary(bytes, text),
            Some(Value::U32(n)) => text.push_str(&(*n as i32).to_string()),
            _ => {}
        }
        return;
    }
    match TABLE.iter().find(|e| e.0 == id) {
        Some((_, name, ..)) => text.push_str(name),
        None => text.push_str(&format!("[unknown meta id {id}]")),
    }
    let shift = o.u32("shift").unwrap_or(0);
    if shift != 0 {
        text.push_str(&format!(" shift {shift}"));
    }
    if let Some(mask) = o.u32("value").filter(|&mask| mask != 0 || kernel == Kernel::V2_6_35) {
        text.push_str(&format!(" mask 0x{mask:08x}"));
    }
}

/// `print_binary`: text where all of it can be printed, else bytes and text.
fn print_binary(bytes: &[u8], text: &mut String) {
    let plain: String = bytes.iter().map(|&c| char::from(shown(c))).collect();
    if bytes.iter().all(|&c| shown(c) == c) {
        text.push_str(&plain);
        return;
    }
    bytes.iter().for_each(|c| text.push_str(&format!("{c:02x} ")));
    text.push_str(&format!("\"{plain}\""));
}
