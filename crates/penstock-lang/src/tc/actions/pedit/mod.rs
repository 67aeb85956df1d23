//! `pedit`: rewrite words of a packet.
//!
//! [`layers`] names fields of headers; this file reads commands on them and packs keys.
//!
//! Follows: iproute2 6.1.0 `tc/m_pedit.c`; 2.6.35 `tc/m_pedit.c`, which knows no `ex`, no `decrement`, and of the headers only IP.
//! Differs: keys are kept in host order of the packet's big-endian words.

mod layers;
mod words;

pub use words::words;

use super::{
    Action, advance, bad, control, explained, index_here, mac, next_is, print_index, print_times, silent,
    usage,
};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::filters::{prefix4, prefix6};
use crate::tc::{Failure, num};
use penstock_model::{Options, Value};

pub(super) static KIND: Action = Action { id: "pedit", old: true, parse, print };

const USAGE: &str = "\
Usage: ... pedit munge [ex] <MUNGE> [CONTROL]
MUNGE := offset OFF { u8 | u16 | u32 } [ at AT offmask MASK shift SHIFT ] CMD |
         { ip | ip6 | tcp | udp | eth } FIELD CMD
CMD := clear | invert | preserve | set VALUE | add VALUE | decrement, [ retain MASK ]
";
const EXAMPLE: &str = "e.g. pedit ex munge ip ttl set 64, pedit munge offset 12 u32 set 0x0a000001";
/// Most keys of one action.
const MAX_KEYS: usize = 128;
/// `TCA_PEDIT_KEY_EX_HDR_TYPE_*`, in their order.
const HEADERS: [&str; 6] = ["", "eth", "ipv4", "ipv6", "tcp", "udp"];

/// The keys so far.
struct Sel {
    keys: Vec<Key>,
    extended: bool,
}

/// One key: `struct m_pedit_key`.
#[derive(Clone, Copy, Default)]
struct Key {
    mask: u32,
    val: u32,
    off: u32,
    at: u32,
    offmask: u32,
    shift: u32,
    header: u32,
    add: bool,
}

/// What a field holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Number,
    Ipv4,
    Ipv6,
    Mac,
}

/// A field: its length in bytes, its type, the bits that change, and whether it can count down.
struct Field {
    len: u32,
    kind: Type,
    retain: u32,
    decrements: bool,
}

/// What stood behind a command.
enum Operand {
    Words([u32; 4]),
    Mac(Vec<u8>),
}

fn pack(args: &Args, sel: &mut Sel, key: &Key) -> Result<(), Failure> {
    if sel.keys.len() >= MAX_KEYS {
        return Err(silent(args));
    }
    if !key.off.is_multiple_of(4) {
        return Err(bad(args, "offsets MUST be in 32 bit boundaries", EXAMPLE));
    }
    if !sel.extended && (key.header != 0 || key.add) {
        return Err(bad(args, "Munge parameters not supported. Use 'pedit ex munge ...'.", EXAMPLE));
    }
    sel.keys.push(*key);
    Ok(())
}

fn pack32(args: &Args, retain: u32, sel: &mut Sel, key: &mut Key) -> Result<(), Failure> {
    if key.off & 3 != 0 {
        let line = "pack_key32: 32 bit offsets must begin in 32bit boundaries";
        return Err(bad(args, line, EXAMPLE));
    }
    (key.val, key.mask) = (key.val & retain, key.mask | !retain);
    pack(args, sel, key)
}

fn pack16(args: &Args, retain: u32, sel: &mut Sel, key: &mut Key) -> Result<(), Failure> {
    if key.val > 0xffff || key.mask > 0xffff {
        return Err(bad(args, "pack_key16 bad value", "16 bits"));
    }
    let at = key.off & 3;
    if at == 3 {
        return Err(bad(args, "pack_key16 bad index value 3", EXAMPLE));
    }
    let others = [0x0000_ffff, 0xff00_00ff, 0xffff_0000][at as usize];
    let stride = 8 * (2 - at);
    if args.old() {
        // What is retained is left as it is, and the rest of the word with it.
        let half = key.val.swap_bytes() >> 16;
        key.val = (half << (8 * at)).swap_bytes();
        key.mask = (retain << (8 * at)).swap_bytes() | others;
        key.off &= !3;
        return pack(args, sel, key);
    }
    key.val = (key.val & retain) << stride;
    key.mask = ((key.mask | !retain) << stride) | others;
    key.off &= !3;
    pack(args, sel, key)
}

fn pack8(args: &Args, retain: u32, sel: &mut Sel, key: &mut Key) -> Result<(), Failure> {
    if key.val > 0xff || key.mask > 0xff {
        let line = format!("pack_key8 bad value (val {:x} mask {:x}", key.val, key.mask);
        return Err(bad(args, line, "8 bits"));
    }
    let at = key.off & 3;
    let others = [0x00ff_ffff, 0xff00_ffff, 0xffff_00ff, 0xffff_ff00][at as usize];
    let stride = 8 * (3 - at);
    if args.old() {
        key.val = (key.val << (8 * at)).swap_bytes();
        key.mask = (retain << (8 * at)).swap_bytes() | others;
        key.off &= !3;
        return pack(args, sel, key);
    }
    key.val = (key.val & retain) << stride;
    key.mask = ((key.mask | !retain) << stride) | others;
    key.off &= !3;
    pack(args, sel, key)
}

fn pack_mac(args: &Args, sel: &mut Sel, key: &mut Key, mac: &[u8]) -> Result<(), Failure> {
    let half = |i: usize| u32::from(mac[i]) << 8 | u32::from(mac[i + 1]);
    let word = |i: usize| half(i) << 16 | half(i + 2);
    key.mask = 0;
    if key.off & 3 == 0 {
        key.val = word(0);
        pack32(args, u32::MAX, sel, key)?;
        key.off += 4;
        (key.mask, key.val) = (0, half(4));
        pack16(args, u32::MAX, sel, key)
    } else {
        key.val = half(0);
        pack16(args, u32::MAX, sel, key)?;
        key.off += 4;
        (key.mask, key.val) = (0, word(2));
        pack32(args, u32::MAX, sel, key)
    }
}

/// `parse_val`: the next word.
fn value(args: &mut Args, kind: Type) -> Result<Operand, Failure> {
    let text = args.peek_text().unwrap_or("");
    let kernel = args.kernel();
    let one = |n: u32| Operand::Words([n, 0, 0, 0]);
    let found = match kind {
        Type::Number => num::u32(text, 0).map(one),
        // In 2010 an address is turned round once too often.
        Type::Ipv4 if args.old() => prefix4(text, kernel).map(|(a, _)| one(a.swap_bytes())),
        Type::Ipv4 => prefix4(text, kernel).map(|(a, _)| one(a)),
        Type::Ipv6 => prefix6(text, kernel).map(|(a, _)| Operand::Words(a)),
        Type::Mac => {
            let mac = mac::link_address(text).map_err(|(line, _)| bad(args, line, "02:00:00:00:00:01"))?;
            (text.split(':').count() == 6).then_some(Operand::Mac(mac))
        }
    };
    found.ok_or_else(|| silent(args))
}

/// `parse_cmd`: what is done to a field. Where it goes wrong before a key is packed, the command is still the next word.
fn command(args: &mut Args, field: &Field, sel: &mut Sel, key: &mut Key) -> Result<(), Failure> {
    let start = args.mark();
    let read = operands(args, field, sel, key);
    let (given, retain) = match read {
        Ok(read) => read,
        Err(failure) => {
            args.back_to(start);
            return Err(failure);
        }
    };
    let words = match given {
        Operand::Mac(mac) => return pack_mac(args, sel, key, &mac),
        Operand::Words(words) => words,
    };
    if field.kind == Type::Ipv6 {
        for word in words {
            (key.mask, key.val) = (0, word);
            pack32(args, u32::MAX, sel, key)?;
            key.off += 4;
        }
        return Ok(());
    }
    key.val = words[0];
    match field.len {
        1 => pack8(args, retain, sel, key),
        2 => pack16(args, retain, sel, key),
        _ => pack32(args, retain, sel, key),
    }
}

/// The command, its value, and `retain`.
fn operands(args: &mut Args, field: &Field, sel: &Sel, key: &mut Key) -> Result<(Operand, u32), Failure> {
    let Some(word) = args.peek_text() else { return Err(silent(args)) };
    let is = |full: &str| matches(word, full);
    let old = args.old();
    let mut retain = field.retain;
    let zero = match field.kind {
        Type::Mac => Operand::Mac(vec![0; 6]),
        _ => Operand::Words([0; 4]),
    };
    let mut given = zero;
    let only_set = "Non extended mode. only 'set' command is supported";
    if is("invert") {
        let all = match field.len {
            1 => 0xff,
            2 => 0xffff,
            4 => u32::MAX,
            _ => 0xff,
        };
        key.mask = all;
        if old {
            retain = all;
        }
        given = match field.kind {
            Type::Mac => Operand::Mac(vec![0xff, 0, 0, 0, 0, 0]),
            _ => Operand::Words([all, 0, 0, 0]),
        };
    } else if is("set") || (!old && is("add")) {
        key.add = !old && is("add");
        if !sel.extended && key.add {
            return Err(bad(args, only_set, EXAMPLE));
        }
        advance(args)?;
        given = value(args, field.kind)?;
    } else if !old && is("decrement") {
        if !field.decrements {
            return Err(bad(args, "decrement command is not supported for this field", EXAMPLE));
        }
        if !sel.extended {
            return Err(bad(args, only_set, EXAMPLE));
        }
        key.add = true;
        given = Operand::Words([retain, 0, 0, 0]);
    } else if is("preserve") {
        retain = 0;
        if old {
            retain = [0, 0xff, 0xffff, 0, u32::MAX][field.len as usize];
            key.mask = retain;
        }
    } else if !is("clear") {
        return Err(silent(args));
    }
    args.next_word();
    if next_is(args, "retain") {
        advance(args)?;
        retain = num::u32(args.peek_text().unwrap_or(""), 0).ok_or_else(|| silent(args))?;
        args.next_word();
    }
    if field.len > 4 && retain != u32::MAX {
        return Err(bad(args, "retain is not supported for fields longer the 32 bits", EXAMPLE));
    }
    Ok((given, retain))
}

/// `parse_offset`: `offset OFF u32 [at … offmask … shift …] CMD`; the next word is the offset.
fn offset(args: &mut Args, sel: &mut Sel) -> Result<(), Failure> {
    let start = args.mark();
    let early = |args: &mut Args| {
        args.back_to(start);
        silent(args)
    };
    let mut key = Key::default();
    let off = args.peek_text().and_then(|w| num::integer(w, 0));
    key.off = off.ok_or_else(|| early(args))? as u32;
    args.next_word();
    let sizes = [("u32", 4, u32::MAX), ("u16", 2, 0xffff), ("u8", 1, 0xff)];
    let size = args.peek_text().and_then(|w| sizes.iter().find(|(name, ..)| matches(w, name)));
    let &(_, len, retain) = size.ok_or_else(|| early(args))?;
    advance(args)?;
    if next_is(args, "at") {
        advance(args)?;
        for (place, base) in [(&mut key.at, 0), (&mut key.offmask, 16), (&mut key.shift, 0)] {
            let n = args.peek_text().and_then(|w| num::u32(w, base));
            *place = n.ok_or_else(|| early(args))?;
            advance(args)?;
        }
    }
    command(args, &Field { len, kind: Type::Number, retain, decrements: false }, sel, &mut key)
}

fn munge(args: &mut Args, sel: &mut Sel) -> Result<(), Failure> {
    if next_is(args, "offset") {
        advance(args)?;
        return offset(args, sel);
    }
    let start = args.mark();
    layers::layer(args, sel).map_err(|f| {
        args.back_to(start);
        f.then("bad pedit parsing")
    })
}

fn parse(args: &mut Args) -> Result<Options, Failure> {
    let mut sel = Sel { keys: Vec::new(), extended: false };
    let mut ok = 0;
    loop {
        if next_is(args, "pedit") {
            advance(args)?;
            ok += 1;
            if !args.old() && next_is(args, "ex") {
                if ok > 1 {
                    return Err(explained(args, "'ex' must be before first 'munge'", USAGE));
                }
                sel.extended = true;
                advance(args)?;
            }
        } else if next_is(args, "help") {
            return Err(usage(args, USAGE));
        } else if next_is(args, "munge") {
            advance(args)?;
            munge(args, &mut sel).map_err(|f| match f.aborts {
                true => f,
                false => {
                    let word = args.peek_text().unwrap_or("(null)");
                    let line = match args.old() {
                        true => format!("Illegal pedit construct ({word}) "),
                        false => format!("Bad pedit construct ({word})"),
                    };
                    f.then(&line).usage(USAGE)
                }
            })?;
            ok += 1;
        } else {
            break;
        }
    }
    let mut o = Options::new();
    let otherwise = match args.old() {
        true => control::old_control(args, true)?,
        false => control::control_or(args, false, 0)?,
    };
    o.set("action", i64::from(otherwise).into());
    index_here(args, &mut o, "Pedit: Illegal \"index\"")?;
    let keys = sel.keys.iter().map(|k| {
        Options::new()
            .with("val", k.val)
            .with("mask", k.mask)
            .with("off", i64::from(k.off as i32))
            .with("at", k.at)
            .with("offmask", k.offmask)
            .with("shift", k.shift)
            .with("header", k.header)
            .with("cmd", u32::from(k.add))
    });
    if sel.extended {
        o.set("ex", Value::Flag);
    }
    o.set("keys", Value::List(keys.collect()));
    Ok(o)
}

fn print(o: &Options, out: &mut Out) {
    let keys = o.list("keys");
    let action = control::of(o);
    out.string("kind", "pedit", format_args!(" pedit "));
    if out.old() {
        out.text_only(format_args!("action {} keys {}\n ", control::name(action), keys.len()));
        out.text_only(format_args!(
            "\t index {} ref {} bind {}",
            o.u32("index").unwrap_or(0),
            o.u32("ref").unwrap_or(0),
            o.u32("bind").unwrap_or(0)
        ));
    } else {
        control::print_control("action ", action, " ", out);
        out.num("nkeys", keys.len(), format_args!("keys {}\n", keys.len()));
        out.text_only(format_args!(" "));
        print_index(o, out);
    }
    if out.form.stats {
        print_times(o, out);
    }
    out.open_array("keys", "");
    for (i, key) in keys.iter().enumerate() {
        print_key(i, key, out);
    }
    out.close_array();
    match out.old() {
        true => out.text_only(format_args!("\n ")),
        false => out.nl(),
    }
}

fn print_key(i: usize, key: &Options, out: &mut Out) {
    let n = |name: &str| key.u32(name).unwrap_or(0);
    let off = key.i64("off").unwrap_or(0);
    out.open_object(None);
    out.text_only(format_args!("\n\t key #{i}  at "));
    match HEADERS.get(n("header") as usize).filter(|_| n("header") != 0) {
        Some(header) => {
            out.string("htype", header, format_args!("{header}"));
            out.num("offset", off, format_args!("{off:+}"));
        }
        None => {
            if out.is_json() {
                out.string("htype", "network", format_args!(""));
            }
            out.num("offset", off, format_args!("{off}"));
        }
    }
    let add = n("cmd") != 0;
    out.text_only(format_args!(": {}", if add { "add" } else { "val" }));
    if out.is_json() {
        out.string("cmd", if add { "add" } else { "set" }, format_args!(""));
    }
    out.hex("val", n("val"), format_args!(" {:08x}", n("val")));
    out.hex("mask", n("mask"), format_args!(" mask {:08x}", n("mask")));
    out.close_object();
}
