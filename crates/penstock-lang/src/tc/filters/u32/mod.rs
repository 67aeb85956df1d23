//! `u32`: match on words of the packet, hash tables of such matches.
//!
//! This file reads a filter's options; [`mod@selector`] its keys, [`mod@print`] prints it.
//!
//! Follows: iproute2 6.1.0 `tc/f_u32.c`; 2.6.35 `tc/f_u32.c` with its own idea of `firstfrag` and `icmp_code`, its hash of
//! samples and its IPv6 masks of 31 bits.
//! Differs: keys are kept in host order of the packet's big-endian words.

mod print;
mod selector;

use super::{FilterHead, FilterKind, exts};
use crate::tc::args::{Args, matches};
use crate::tc::kinds::{helped, what_is, word};
use crate::tc::{Failure, num};
use penstock_model::Options;
use selector::{Bad, Key, Sel, hashkey, offset, selector};

const USAGE: &str = "\
Usage: ... u32 [ match SELECTOR ... ] [ link HTID ] [ classid CLASSID ]
       ... u32 [ match SELECTOR ... ] [ classid CLASSID ] [ ht HTID ] [ sample SAMPLE ]
          [ link HTID ] [ offset OFFSET_SPEC ] [ hashkey mask MASK at OFFSET ] [ order N ] [ indev DEV ]
       ... [ handle HTID ] u32 divisor DIVISOR
SELECTOR := { ip | ip6 | tcp | udp | icmp | ether | u32 | u16 | u8 | mark } ...
          ip { src | dst } PREFIX, ip { sport | dport | protocol | tos | icmp_type | ... } VALUE MASK,
          u{32|16|8} VALUE MASK at [nexthdr+]OFFSET
HTID := HEX: , CLASSID := HEX:HEX, MASK := HEX
";

pub static KIND: FilterKind = FilterKind {
    id: "u32",
    parse,
    print: print::print,
    words: &[
        word(
            "match",
            "SELECTOR",
            "words of the packet: ip src PREFIX, ip dport N MASK, u32 VALUE MASK at OFFSET, mark VALUE MASK, …",
        ),
        word("classid", "CLASSID", "the class for matching packets"),
        word("divisor", "N", "makes a hash table of this many buckets: a power of two up to 256"),
        word("ht", "HTID", "the hash table the filter is put in; default: the priority's own"),
        word("sample", "SELECTOR", "the bucket a packet like this falls in"),
        word("link", "HTID", "the hash table it hands packets on to"),
        word("hashkey", "mask MASK at OFFSET", "which word chooses the bucket there"),
        word(
            "offset",
            "OFFSET_SPEC",
            "how much further that table looks: plus N, at N mask HEX shift N, eat",
        ),
        word("order", "N", "the filter's place in its bucket, 1 to 4095"),
        word("indev", "DEV", "the interface the packet must have come in by"),
        word("action", "ACTION_SPEC", "action for matching packets"),
        word("police", "POLICE_SPEC", "a policer, in the old form"),
        word("skip_hw", "", "do not offload to hardware"),
        word("skip_sw", "", "only offload to hardware"),
    ],
    ..FilterKind::BARE
};

const TERMINAL: u32 = 1;
const OFFSET: u32 = 2;
const VAROFFSET: u32 = 4;
const EAT: u32 = 8;

const SKIP_HW: u32 = 1;
const SKIP_SW: u32 = 2;
/// `get_u32_handle`: `HTID:HASH:NODE`, all hexadecimal, or `0x…`.
fn handle(text: &str) -> Option<u32> {
    if !text.contains(':') {
        return if text.starts_with("0x") { num::u32(text, 16) } else { None };
    }
    // Each part may be empty; one character, whatever it is, separates two.
    let part = |text: &'_ str, may_colon: bool| -> Option<(u32, usize)> {
        match num::strtoul(text, 16) {
            Some((v, rest)) => Some((v as u32, text.len() - rest.len())),
            None if text.is_empty() || (may_colon && text.starts_with(':')) => Some((0, 0)),
            None => None,
        }
    };
    let after =
        |text: &'_ str, n: usize| -> Option<usize> { text[n..].chars().next().map(|c| n + c.len_utf8()) };
    let (htid, n) = part(text, true)?;
    if htid >= 0x1000 {
        return None;
    }
    let (mut hash, mut node) = (0, 0);
    if let Some(n) = after(text, n) {
        let rest = &text[n..];
        let (h, n) = part(rest, true)?;
        if h >= 0x100 {
            return None;
        }
        hash = h;
        if let Some(n) = after(rest, n) {
            node = part(&rest[n..], false)?.0;
            if node >= 0x1000 {
                return None;
            }
        }
    }
    Some(htid << 20 | hash << 12 | node)
}

/// `sprint_u32_handle`.
fn handle_text(handle: u32, raw: bool, old: bool) -> String {
    if handle == 0 {
        return "none".to_owned();
    }
    let (htid, hash, node) = (handle >> 20, handle >> 12 & 0xff, handle & 0xfff);
    let mut text = String::new();
    if htid != 0 {
        text += &format!("{htid:x}:");
    }
    if hash != 0 {
        text += &format!("{hash:x}");
    }
    if node != 0 {
        text += &format!(":{node:x}");
    }
    if raw {
        text += &if old { format!("[{handle:08x}] ") } else { format!("[{handle:08x}]") };
    }
    text
}

/// A deeper refusal with the line of the option it happened in.
fn illegal(args: &Args, bad: Bad, what: &str, help: &str) -> Failure {
    match bad {
        Bad::Fatal(failure) => failure,
        Bad::Plain => args.fail(format!("Illegal \"{what}\""), 1, help),
        Bad::Said(line) => args.fail(format!("Illegal \"{what}\""), 1, help).also(&line),
    }
}

/// `u32_hash_fold`.
fn fold(key: &Key, old: bool) -> u32 {
    let val = key.val & key.mask;
    if old {
        // In network order, on a little-endian machine.
        let mut hash = val.swap_bytes();
        hash ^= hash >> 16;
        return hash ^ hash >> 8;
    }
    if key.mask == 0 { val } else { val >> key.mask.trailing_zeros() }
}

fn divisor(text: &str) -> Option<u32> {
    num::u32(text, 0).filter(|&d| d.is_power_of_two() && d <= 0x100)
}

const MATCH_HELP: &str = "e.g. match ip src 10.0.0.0/8, match ip dport 80 0xffff, match u32 0x1 0xff at 20";
const HT_HELP: &str = "a hash table's id is a hexadecimal number and a colon, e.g. 2:";
const DIVISOR_HELP: &str = "a power of two up to 256";

fn parse(given: &FilterHead<'_>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    let mut own = 0;
    if let Some(text) = given.handle {
        let help = "a u32 handle is HTID:HASH:NODE, hexadecimal, e.g. 800::800 or 2:";
        own = handle(text).ok_or_else(|| args.fail("Illegal filter ID", 1, help))?;
    }
    if args.left() == 0 {
        return Ok((own, None));
    }
    let mut sel = Sel::default();
    let mut o = Options::new();
    let (mut sel_ok, mut sample_ok) = (false, false);
    let (mut htid, mut order, mut flags) = (0u32, 0u32, 0u32);
    while let Some(word) = args.next_word() {
        let is = |full: &str| matches(&word.text, full);
        if is("match") {
            value_of(args)?;
            selector(args, &mut sel).map_err(|bad| illegal(args, bad, "match", MATCH_HELP))?;
            sel_ok = true;
        } else if is("offset") {
            value_of(args)?;
            let help = "offset [ plus N ] [ at N mask HEX shift N ] [ eat ]";
            offset(args, &mut sel).map_err(|bad| illegal(args, bad, "offset", help))?;
        } else if is("hashkey") {
            value_of(args)?;
            let help = "hashkey mask HEX at OFFSET, the offset a multiple of 4";
            hashkey(args, &mut sel).map_err(|bad| illegal(args, bad, "hashkey", help))?;
        } else if is("classid") || word.text == "flowid" {
            let v = args.value()?;
            let id = num::classid(&v.text, args.kernel())
                .ok_or_else(|| args.fail("Illegal \"classid\"", 1, "two hexadecimal numbers, e.g. 1:10"))?;
            o = o.with("classid", id.0);
            sel.flags |= TERMINAL;
        } else if is("divisor") {
            let v = args.value()?;
            let n = divisor(&v.text).ok_or_else(|| args.fail("Illegal \"divisor\"", 1, DIVISOR_HELP))?;
            o = o.with("divisor", n);
        } else if is("order") {
            let v = args.value()?;
            order = num::u32(&v.text, 0).ok_or_else(|| args.fail("Illegal \"order\"", 1, "a number"))?;
        } else if word.text == "link" {
            let v = args.value()?;
            let link = handle(&v.text).ok_or_else(|| args.fail("Illegal \"link\"", 1, HT_HELP))?;
            if link & 0xfff != 0 {
                return Err(args.fail("\"link\" must be a hash table.", 1, HT_HELP));
            }
            o = o.with("link", link);
        } else if word.text == "ht" {
            let v = args.value()?;
            let ht = handle(&v.text).ok_or_else(|| args.fail("Illegal \"ht\"", 1, HT_HELP))?;
            // Today's tc looks at whether the filter has a handle here, that of 2010 at the table's own.
            let looks = if args.old() { ht != 0 } else { given.handle.is_some() };
            if looks && ht & 0xfff != 0 {
                return Err(args.fail("\"ht\" must be a hash table.", 1, HT_HELP));
            }
            htid = if sample_ok { htid & 0xff000 | ht & 0xfff0_0000 } else { ht & 0xffff_f000 };
        } else if word.text == "sample" {
            htid = sample(args, htid, &mut sel.mark)?;
            sample_ok = true;
        } else if word.text == "indev" {
            let dev = exts::indev(args)?;
            o = o.with("indev", dev);
        } else if is("action") {
            exts::action(args, &mut o, "Illegal \"action\"")?;
            sel.flags |= TERMINAL;
        } else if is("police") {
            exts::police(args, &mut o)?;
            sel.flags |= TERMINAL;
        } else if !args.old() && word.text == "skip_hw" {
            flags |= SKIP_HW;
        } else if !args.old() && word.text == "skip_sw" {
            flags |= SKIP_SW;
        } else if word.text == "help" {
            return Err(helped(args, USAGE));
        } else {
            let help = "u32 takes match, flowid, ht, sample, link, offset, hashkey, divisor, order, indev";
            return Err(what_is(args, &word.text, USAGE, help));
        }
    }
    if order != 0 {
        if own & 0xfff != 0 && order != own & 0xfff {
            let line = "\"order\" contradicts \"handle\"";
            return Err(args.fail(line, 1, "the order is the last part of the handle"));
        }
        own |= order;
    }
    if htid != 0 {
        o = o.with("hash", htid);
    }
    if let Some((val, mask)) = sel.mark {
        o = o.with("mark", Options::new().with("val", val).with("mask", mask).with("success", 0u32));
    }
    if sel_ok {
        o = o.with("sel", sel_options(&sel));
    }
    if flags == SKIP_HW | SKIP_SW {
        let line = "skip_hw and skip_sw are mutually exclusive";
        return Err(args.fail(line, 1, "leave one of them"));
    }
    if flags != 0 {
        o = o.with("flags", flags);
    }
    Ok((own, Some(o)))
}

fn value_of(args: &mut Args) -> Result<(), Failure> {
    if args.left() == 0 {
        args.value()?;
    }
    Ok(())
}

/// `sample SELECTOR [ divisor N ]`: the bucket a packet like this falls in.
fn sample(args: &mut Args, htid: u32, mark: &mut Option<(u32, u32)>) -> Result<u32, Failure> {
    value_of(args)?;
    let help = "e.g. sample tcp src 80 0xffff";
    let mut sel = Sel::default();
    selector(args, &mut sel).map_err(|bad| illegal(args, bad, "sample", help))?;
    if sel.mark.is_some() {
        *mark = sel.mark;
    }
    let [key] = sel.keys.as_slice() else {
        return Err(args.fail("\"sample\" must contain exactly ONE key.", 1, help));
    };
    let mut by = 0x100;
    if args.peek_text() == Some("divisor") {
        args.next_word();
        let v = args.value()?;
        by = divisor(&v.text).ok_or_else(|| args.fail("Illegal sample \"divisor\"", 1, DIVISOR_HELP))?;
        // tc wants another word behind it.
        value_of(args)?;
    }
    Ok((fold(key, args.old()) % by) << 12 | htid & 0xfff0_0000)
}

fn sel_options(sel: &Sel) -> Options {
    let key = |k: &Key| {
        Options::new()
            .with("mask", k.mask)
            .with("val", k.val)
            .with("off", i64::from(k.off))
            .with("offmask", i64::from(k.offmask))
    };
    Options::new()
        .with("keys", sel.keys.iter().map(key).collect::<Vec<_>>())
        .with("flags", sel.flags)
        .with("offshift", u32::from(sel.offshift))
        .with("off", u32::from(sel.off))
        .with("offoff", i64::from(sel.offoff))
        .with("offmask", u32::from(sel.offmask))
        .with("hoff", i64::from(sel.hoff))
        .with("hmask", sel.hmask)
}
