//! `flow`: a class computed from fields of the packet.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/f_flow.c`; `rxhash` is not known in 2010.
//! Differs: the JSON, which tc leaves out, has the keys of iproute2 6.12.

use super::address::{prefix4, prefix6};
use super::{FilterHead, FilterKind, basic, ematch, exts};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::kinds::{helped, what_is, word};
use crate::tc::{Failure, num};
use penstock_model::rtnetlink::FilterDump;
use penstock_model::{Handle, Options};

const USAGE: &str = "\
Usage: ... flow ...
       ... flow map key KEY [ OPS ] | hash keys KEY[,KEY ...] [ perturb SECS ]
          [ divisor NUM ] [ baseclass ID ] [ match EMATCH_TREE ] [ action ACTION_SPEC ]
KEY := { src | dst | proto | proto-src | proto-dst | iif | priority | mark | nfct | nfct-src | nfct-dst |
         nfct-proto-src | nfct-proto-dst | rt-classid | sk-uid | sk-gid | vlan-tag | rxhash }
OPS := { or NUM | and NUM | xor NUM | rshift NUM | addend NUM }
";

pub static KIND: FilterKind = FilterKind {
    id: "flow",
    parse,
    print,
    words: &[
        word("map", "", "the key itself is the class (the default)"),
        word("hash", "", "a hash of the keys is the class"),
        word("keys", "KEY[,KEY ...]", "fields: src dst proto proto-src proto-dst iif priority mark …"),
        word("and", "NUM", "map: keeps these bits"),
        word("or", "NUM", "map: sets these bits"),
        word("xor", "NUM", "map: turns these bits"),
        word("rshift", "NUM", "map: shifts right, 0 to 31 bits"),
        word("addend", "NUM", "map: adds at last; default 0"),
        word("divisor", "NUM", "the remainder of the division by this; default 0: none"),
        word("baseclass", "ID", "the class of the result 0; default: the qdisc's first"),
        word("perturb", "SECS", "hash: another hash after this many seconds; default 0: never"),
        word("match", "EMATCH_TREE", "conditions on the packet; default: none"),
        word("action", "ACTION_SPEC", "action for matching packets"),
    ],
    ..FilterKind::BARE
};

/// The keys by their bit.
const KEYS: [&str; 18] = [
    "src",
    "dst",
    "proto",
    "proto-src",
    "proto-dst",
    "iif",
    "priority",
    "mark",
    "nfct",
    "nfct-src",
    "nfct-dst",
    "nfct-proto-src",
    "nfct-proto-dst",
    "rt-classid",
    "sk-uid",
    "sk-gid",
    "vlan-tag",
    "rxhash",
];
/// tc's own test of the keys that an address may be added to: the enum's values taken for bits.
const ADDRESS_KEYS: u32 = 1 | 9 | 10;

/// `flow_parse_keys`: the keys as bits and how many words there were.
fn keys(args: &mut Args) -> Result<(u32, u32), Failure> {
    let v = args.value()?;
    let known = if args.old() { &KEYS[..17] } else { &KEYS[..] };
    let (mut bits, mut count) = (0, 0);
    for name in v.text.split(',') {
        // An empty word abbreviates everything.
        let key = known.iter().position(|key| key.starts_with(name));
        let Some(key) = key else {
            let line = format!("Unknown flow key \"{name}\"");
            return Err(args.fail(line, 1, format!("keys: {}", known.join(", "))));
        };
        bits |= 1 << key;
        count += 1;
    }
    Ok((bits, count))
}

/// `get_addend`: a number or, behind certain keys, an address; either may be negative.
fn addend(text: &str, keys: u32, args: &Args) -> Option<u32> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let address = || {
        // An address, not a prefix.
        let plain = !text.contains('/');
        let four = prefix4(text, args.kernel()).map(|p| p.0);
        four.or_else(|| prefix6(text, args.kernel()).map(|p| p.0[3])).filter(|_| plain)
    };
    let value = num::u32(text, 0).or_else(|| address().filter(|_| keys & ADDRESS_KEYS != 0))?;
    Some(if negative { value.wrapping_neg() } else { value })
}

fn parse(given: &FilterHead<'_>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    let handle = exts::strict_handle(given.handle, args)?;
    let mut o = Options::new();
    let (mut mask, mut xor) = (u32::MAX, 0u32);
    let (mut bits, mut nkeys, mut mode) = (0, 0, 0u32);
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        let number = |args: &mut Args, name: &str| {
            let v = args.value()?;
            num::u32(&v.text, 0).ok_or_else(|| args.fail(format!("Illegal \"{name}\""), 1, "a number"))
        };
        if is("map") {
            mode = 0;
        } else if is("hash") {
            mode = 1;
        } else if is("keys") {
            let (these, count) = keys(args)?;
            (bits, nkeys) = (these, count);
            o.set("keys", bits.into());
        } else if is("and") {
            let n = number(args, "mask")?;
            (xor, mask) = (xor & n, mask & n);
        } else if is("or") {
            let n = number(args, "or")?;
            (xor, mask) = (n ^ (xor & !n), mask & !n);
        } else if is("xor") {
            xor ^= number(args, "xor")?;
        } else if is("rshift") {
            o.set("rshift", number(args, "rshift")?.into());
        } else if is("addend") {
            let v = args.value()?;
            let n = addend(&v.text, bits, args);
            let wants_address = bits & ADDRESS_KEYS != 0;
            let none = format!(
                "Error: any valid address is expected rather than \"{}\".",
                v.text.trim_start_matches('-')
            );
            let line = if wants_address { none.as_str() } else { "Illegal \"addend\"" };
            let n = n.ok_or_else(|| args.fail(line, 1, "a number, or an address behind src"))?;
            o.set("addend", n.into());
        } else if is("divisor") {
            o.set("divisor", number(args, "divisor")?.into());
        } else if is("baseclass") {
            let v = args.value()?;
            let id = num::classid(&v.text, args.kernel()).filter(|id| id.minor() != 0);
            let id = id.ok_or_else(|| args.fail("Illegal \"baseclass\"", 1, "a class, e.g. 1:10"))?;
            o.set("baseclass", id.0.into());
        } else if is("perturb") {
            o.set("perturb", number(args, "perturb")?.into());
        } else if is("police") {
            exts::police(args, &mut o)?;
        } else if is("action") {
            exts::action(args, &mut o, "Illegal \"action\"")?;
        } else if is("match") {
            basic::ematches(args, &mut o)?;
        } else if is("help") {
            return Err(helped(args, USAGE));
        } else {
            let help = "flow takes map, hash, keys, and, or, xor, rshift, addend, divisor, baseclass, perturb, match";
            return Err(what_is(args, &word.text, USAGE, help));
        }
    }
    if nkeys > 1 && mode == 0 {
        let line = "Invalid mode \"map\" for multiple keys";
        return Err(args.fail(line, 1, "several keys need the mode hash"));
    }
    o.set("mode", mode.into());
    if mask != u32::MAX || xor != 0 {
        o.set("mask", mask.into());
        o.set("xor", xor.into());
    }
    Ok((handle, Some(o)))
}

fn print(dump: &FilterDump, o: &Options, out: &mut Out) {
    let hex = |out: &mut Out, name: &str, n: u32, text: std::fmt::Arguments| {
        let value = if n == 0 { "0".to_owned() } else { format!("0x{n:x}") };
        out.string(name, &value, text);
    };
    hex(out, "handle", dump.handle, format_args!("handle 0x{:x} ", dump.handle));
    if let Some(mode) = o.u32("mode").and_then(|mode| ["map", "hash"].get(mode as usize)) {
        out.string("mode", mode, format_args!("{mode} "));
    }
    if let Some(bits) = o.u32("keys") {
        out.open_array("keys", "keys ");
        let mut before = "";
        for (_, key) in KEYS.iter().enumerate().filter(|(i, _)| bits & 1 << i != 0) {
            out.text_item(key, format_args!("{before}{key}"));
            before = ",";
        }
        out.close_array();
        out.text_only(format_args!(" "));
    }
    let mask = o.u32("mask").unwrap_or(u32::MAX);
    let value = o.u32("xor").unwrap_or(0);
    let (or, xor) = ((mask & value) ^ value, mask & value);
    if mask != u32::MAX {
        hex(out, "and", mask, format_args!("and 0x{mask:08x} "));
    }
    if xor != 0 {
        hex(out, "xor", xor, format_args!("xor 0x{xor:08x} "));
    }
    if or != 0 {
        hex(out, "or", or, format_args!("or 0x{or:08x} "));
    }
    if let Some(n) = o.u32("rshift") {
        out.num("rshift", n, format_args!("rshift {n} "));
    }
    if let Some(n) = o.u32("addend") {
        hex(out, "addend", n, format_args!("addend 0x{n:x} "));
    }
    if let Some(n) = o.u32("divisor") {
        out.num("divisor", n, format_args!("divisor {n} "));
    }
    if let Some(id) = o.u32("baseclass").map(Handle) {
        out.string("baseclass", &id.to_string(), format_args!("baseclass {id} "));
    }
    if let Some(n) = o.u32("perturb") {
        out.num("perturb", n, format_args!("perturb {n}sec "));
    }
    ematch::print(o, out);
    exts::print_old_police(o, false, out);
    if o.has("action") {
        out.nl();
        exts::print_action(o, out);
    }
}
