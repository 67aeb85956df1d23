//! `u32`: match on words of the packet, hash tables of such matches.
//!
//! Follows: iproute2 6.1.0 `tc/f_u32.c`; 2.6.35 `tc/f_u32.c` with its own idea of `firstfrag` and `icmp_code`, its hash of
//! samples and its IPv6 masks of 31 bits.
//! Differs: keys are kept in host order of the packet's big-endian words. Actions and policing are refused.

use super::address::{mask_bits, prefix4, prefix6};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::kinds::{helped, what_is};
use crate::tc::{Failure, num};
use penstock_model::rtnetlink::FilterDump;
use penstock_model::{Handle, Options};
use std::net::Ipv4Addr;

const USAGE: &str = "\
Usage: ... u32 [ match SELECTOR ... ] [ classid CLASSID ] [ ht HTID ] [ sample SAMPLE ]
          [ link HTID ] [ offset OFFSET_SPEC ] [ hashkey mask MASK at OFFSET ] [ order N ] [ indev DEV ]
       ... [ handle HTID ] u32 divisor DIVISOR
SELECTOR := { ip | ip6 | tcp | udp | icmp | ether | u32 | u16 | u8 | mark } ...
          ip { src | dst } PREFIX, ip { sport | dport | protocol | tos | icmp_type | ... } VALUE MASK,
          u{32|16|8} VALUE MASK at [nexthdr+]OFFSET
HTID := HEX: , CLASSID := HEX:HEX, MASK := HEX
";

const TERMINAL: u32 = 1;
const OFFSET: u32 = 2;
const VAROFFSET: u32 = 4;
const EAT: u32 = 8;

const SKIP_HW: u32 = 1;
const SKIP_SW: u32 = 2;

/// `struct tc_u32_key`.
#[derive(Clone, Copy)]
struct Key {
    mask: u32,
    val: u32,
    off: i32,
    offmask: i32,
}

/// `struct tc_u32_sel`.
#[derive(Default)]
struct Sel {
    keys: Vec<Key>,
    flags: u32,
    offshift: u8,
    off: u16,
    offoff: i16,
    offmask: u16,
    hoff: i16,
    hmask: u32,
    /// TCA_U32_MARK: value, mask.
    mark: Option<(u32, u32)>,
}

/// Why a selector is none: tc's deeper complaints, which precede `Illegal "match"`, or the end of everything.
enum Bad {
    Plain,
    Said(String),
    Fatal(Failure),
}

impl From<Failure> for Bad {
    fn from(failure: Failure) -> Bad {
        Bad::Fatal(failure)
    }
}

type Parsed = Result<(), Bad>;

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

impl Sel {
    /// `pack_key`: a new key, or more of one at the same place, so long as they agree.
    fn pack(&mut self, val: u32, mask: u32, off: i32, offmask: i32) -> Parsed {
        let val = val & mask;
        if let Some(key) = self.keys.iter_mut().find(|k| k.off == off && k.offmask == offmask) {
            if (val ^ key.val) & mask & key.mask != 0 {
                return Err(Bad::Plain);
            }
            key.val |= val;
            key.mask |= mask;
            return Ok(());
        }
        if self.keys.len() >= 128 || off % 4 != 0 {
            return Err(Bad::Plain);
        }
        self.keys.push(Key { mask, val, off, offmask });
        Ok(())
    }

    fn pack16(&mut self, val: u32, mask: u32, off: i32, offmask: i32) -> Parsed {
        if val > 0xffff || mask > 0xffff {
            return Err(Bad::Plain);
        }
        let shift = if off & 3 == 0 { 16 } else { 0 };
        self.pack(val << shift, mask << shift, off & !3, offmask)
    }

    fn pack8(&mut self, val: u32, mask: u32, off: i32, offmask: i32) -> Parsed {
        if val > 0xff || mask > 0xff {
            return Err(Bad::Plain);
        }
        let shift = 24 - 8 * (off & 3) as u32;
        self.pack(val << shift, mask << shift, off & !3, offmask)
    }
}

/// The number of the next word, which must be there.
fn number(args: &mut Args, base: u32) -> Result<u32, Bad> {
    let word = args.next_word().ok_or(Bad::Plain)?;
    num::u32(&word.text, base).ok_or(Bad::Plain)
}

/// `[ at [nexthdr+]OFFSET ]`.
fn at(args: &mut Args, off: &mut i32, offmask: &mut i32) -> Parsed {
    if args.peek_text() != Some("at") {
        return Ok(());
    }
    args.next_word();
    let mut word = args.value()?.text.as_str();
    if let Some(rest) = word.strip_prefix("nexthdr+").filter(|r| !r.is_empty()) {
        *offmask = -1;
        word = rest;
    } else if matches(word, "nexthdr+") {
        *offmask = -1;
        word = &args.value()?.text;
    }
    *off = num::integer(word, 0).ok_or(Bad::Plain)?;
    Ok(())
}

/// `VALUE MASK [ at … ]` of 32, 16 or 8 bits.
fn masked(args: &mut Args, sel: &mut Sel, bits: u32, mut off: i32, mut offmask: i32) -> Parsed {
    if args.left() < 2 {
        return Err(Bad::Plain);
    }
    let val = number(args, 0)?;
    let mask = number(args, 16)?;
    if bits == 8 && (val > 0xff || mask > 0xff) {
        return Err(Bad::Plain);
    }
    at(args, &mut off, &mut offmask)?;
    match bits {
        32 => sel.pack(val, mask, off, offmask),
        16 => sel.pack16(val, mask, off, offmask),
        _ => sel.pack8(val, mask, off, offmask),
    }
}

fn address4(args: &mut Args, sel: &mut Sel, mut off: i32) -> Parsed {
    let word = args.next_word().ok_or(Bad::Plain)?;
    let (address, bits) = prefix4(&word.text, args.kernel()).ok_or(Bad::Plain)?;
    let mut offmask = 0;
    at(args, &mut off, &mut offmask)?;
    let mask = if bits == 0 { 0 } else { u32::MAX << (32 - bits) };
    sel.pack(address, mask, off, offmask)
}

fn address6(args: &mut Args, sel: &mut Sel, mut off: i32) -> Parsed {
    let word = args.next_word().ok_or(Bad::Plain)?;
    let (address, bits) = prefix6(&word.text, args.kernel()).ok_or(Bad::Plain)?;
    let mut offmask = 0;
    at(args, &mut off, &mut offmask)?;
    let old = args.old();
    for (i, word) in address.into_iter().enumerate() {
        let done = 32 * i as u32;
        if done >= bits {
            break;
        }
        let left = bits - done;
        let mask = if left >= 32 || (old && left == 31) { u32::MAX } else { u32::MAX << (32 - left) };
        sel.pack(word, mask, off.wrapping_add(4 * i as i32), offmask)?;
    }
    Ok(())
}

fn ip(args: &mut Args, sel: &mut Sel) -> Parsed {
    if args.left() < 2 {
        // So "match ip df" at the very end is refused: tc asks for two words where it needs one.
        return Err(Bad::Plain);
    }
    let old = args.old();
    let word = args.next_word().ok_or(Bad::Plain)?.text.as_str();
    if word == "tos" || matches(word, "dsfield") || matches(word, "precedence") {
        value_follows(args)?;
        return masked(args, sel, 8, 1, 0);
    }
    match word {
        "src" | "dst" => {
            value_follows(args)?;
            address4(args, sel, if word == "src" { 12 } else { 16 })
        }
        "nofrag" => sel.pack16(0, 0x3fff, 6, 0),
        "firstfrag" if old => sel.pack16(0, 0x1fff, 6, 0),
        "firstfrag" => sel.pack16(0x2000, 0x3fff, 6, 0),
        "df" => sel.pack16(0x4000, 0x4000, 6, 0),
        "mf" => sel.pack16(0x2000, 0x2000, 6, 0),
        _ => {
            let (bits, off, offmask) = match word {
                "ihl" => (8, 0, 0),
                "protocol" => (8, 9, 0),
                "dport" => (16, 22, 0),
                "sport" => (16, 20, 0),
                "icmp_type" => (8, 20, 0),
                "icmp_code" if old => (8, 20, 1),
                "icmp_code" => (8, 21, 0),
                _ => return Err(Bad::Plain),
            };
            value_follows(args)?;
            masked(args, sel, bits, off, offmask)
        }
    }
}

/// `NEXT_ARG` after a field's name: a word must follow.
fn value_follows(args: &mut Args) -> Parsed {
    if args.left() == 0 {
        args.value()?;
    }
    Ok(())
}

fn ip6(args: &mut Args, sel: &mut Sel) -> Parsed {
    if args.left() < 2 {
        return Err(Bad::Plain);
    }
    let word = args.next_word().ok_or(Bad::Plain)?.text.as_str();
    let (bits, off, offmask) = match word {
        "src" => return address6(args, sel, 8),
        "dst" => return address6(args, sel, 24),
        "priority" => {
            if args.left() < 2 {
                return Err(Bad::Plain);
            }
            let (val, mask) = (number(args, 0)?, number(args, 16)?);
            if val > 0xff || mask > 0xff {
                return Err(Bad::Plain);
            }
            return sel.pack(val << 20, mask << 20, 0, 0);
        }
        "protocol" => (8, 6, 0),
        "flowlabel" => (32, 0, 0),
        "dport" => (16, 42, 0),
        "sport" => (16, 40, 0),
        "icmp_type" => (8, 40, 0),
        "icmp_code" => (8, 41, 1),
        _ => return Err(Bad::Plain),
    };
    masked(args, sel, bits, off, offmask)
}

/// `sscanf` of six `%hhx`: what follows the last is not looked at.
fn ether_address(text: &str) -> Option<[u8; 6]> {
    let mut octets = [0; 6];
    let mut rest = text;
    for (i, octet) in octets.iter_mut().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix(':')?;
        }
        let (value, after) = num::strtoul(rest, 16)?;
        (*octet, rest) = (value as u8, after);
    }
    Some(octets)
}

fn ether(args: &mut Args, sel: &mut Sel) -> Parsed {
    if args.left() < 2 {
        return Err(Bad::Plain);
    }
    let word = args.next_word().ok_or(Bad::Plain)?.text.as_str();
    let mut off = match word {
        "src" => -8,
        "dst" => -14,
        _ => return Err(Bad::Said(format!("Unknown match: ether {word}"))),
    };
    let text = args.value()?.text.as_str();
    let Some(octets) = ether_address(text) else {
        return Err(Bad::Said(format!("parse_ether_addr: improperly formed address '{text}'")));
    };
    let mut offmask = 0;
    at(args, &mut off, &mut offmask)?;
    for (i, octet) in octets.into_iter().enumerate() {
        sel.pack8(u32::from(octet), 0xff, off.wrapping_add(i as i32), offmask)?;
    }
    Ok(())
}

fn mark(args: &mut Args, sel: &mut Sel) -> Parsed {
    if args.left() <= 1 {
        return Err(Bad::Plain);
    }
    let said = |what: &str| Bad::Said(format!("Illegal \"mark\" {what}"));
    let val = number(args, 0).map_err(|_| said("value"))?;
    let mask = number(args, 0).map_err(|_| said("mask"))?;
    // tc wants one more word behind the mask.
    value_follows(args)?;
    if val & mask != val {
        return Err(said("(impossible combination)"));
    }
    sel.mark = Some((val, mask));
    Ok(())
}

/// `parse_selector`.
fn selector(args: &mut Args, sel: &mut Sel) -> Parsed {
    let word = args.next_word().ok_or(Bad::Plain)?.text.as_str();
    let names = ["u32", "u16", "u8", "ip", "ip6", "udp", "tcp", "icmp", "mark", "ether"];
    let Some(name) = names.into_iter().find(|name| matches(word, name)) else { return Err(Bad::Plain) };
    value_follows(args)?;
    match name {
        "u32" => masked(args, sel, 32, 0, 0),
        "u16" => masked(args, sel, 16, 0, 0),
        "u8" => masked(args, sel, 8, 0, 0),
        "ip" => ip(args, sel),
        "ip6" => ip6(args, sel),
        "mark" => mark(args, sel),
        "ether" => ether(args, sel),
        header => {
            if args.left() < 2 {
                return Err(Bad::Plain);
            }
            let field = args.next_word().ok_or(Bad::Plain)?.text.as_str();
            match (header, field) {
                ("icmp", "type") => masked(args, sel, 8, 0, -1),
                ("icmp", "code") => masked(args, sel, 8, 1, -1),
                ("udp" | "tcp", "src") => masked(args, sel, 16, 0, -1),
                ("udp" | "tcp", "dst") => masked(args, sel, 16, 2, -1),
                _ => Err(Bad::Plain),
            }
        }
    }
}

/// `parse_offset`.
fn offset(args: &mut Args, sel: &mut Sel) -> Parsed {
    while let Some(word) = args.peek_text() {
        let is = |full: &str| matches(word, full);
        if is("plus") {
            args.next_word();
            sel.off = signed(args)? as u16;
            sel.flags |= OFFSET;
        } else if is("at") {
            args.next_word();
            let off = signed(args)?;
            sel.offoff = off as i16;
            if off % 2 != 0 {
                return Err(Bad::Said("offset \"at\" must be even".to_owned()));
            }
            sel.flags |= VAROFFSET;
        } else if is("mask") {
            args.next_word();
            sel.offmask = num::u16(&args.value()?.text, 16).ok_or(Bad::Plain)?;
            sel.flags |= VAROFFSET;
        } else if is("shift") {
            args.next_word();
            sel.offshift = signed(args)? as u8;
            sel.flags |= VAROFFSET;
        } else if is("eat") {
            args.next_word();
            sel.flags |= EAT;
        } else {
            break;
        }
    }
    Ok(())
}

fn signed(args: &mut Args) -> Result<i32, Bad> {
    num::integer(&args.value()?.text, 0).ok_or(Bad::Plain)
}

/// `parse_hashkey`.
fn hashkey(args: &mut Args, sel: &mut Sel) -> Parsed {
    while let Some(word) = args.peek_text() {
        if matches(word, "mask") {
            args.next_word();
            sel.hmask = num::u32(&args.value()?.text, 16).ok_or(Bad::Plain)?;
        } else if matches(word, "at") {
            args.next_word();
            let off = signed(args)?;
            if off % 4 != 0 {
                return Err(Bad::Plain);
            }
            sel.hoff = off as i16;
        } else {
            break;
        }
    }
    Ok(())
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

pub fn parse(fhandle: Option<&str>, args: &mut Args) -> Result<(u32, Option<Options>), Failure> {
    let mut own = 0;
    if let Some(text) = fhandle {
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
            let looks = if args.old() { ht != 0 } else { fhandle.is_some() };
            if looks && ht & 0xfff != 0 {
                return Err(args.fail("\"ht\" must be a hash table.", 1, HT_HELP));
            }
            htid = if sample_ok { htid & 0xff000 | ht & 0xfff0_0000 } else { ht & 0xffff_f000 };
        } else if word.text == "sample" {
            htid = sample(args, htid, &mut sel.mark)?;
            sample_ok = true;
        } else if word.text == "indev" {
            let Some(dev) = args.next_word() else {
                return Err(args.fail("Illegal indev", 1, "name the device the packet came in by"));
            };
            o = o.with("indev", dev.text.chars().take(16).collect::<String>());
        } else if is("action") || is("police") {
            args.value()?;
            let what = if is("action") { "action" } else { "police" };
            let help = "actions are not modelled; give the filter a flowid";
            return Err(args.fail(format!("Illegal \"{what}\""), 1, help));
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

pub fn print(dump: &FilterDump, out: &mut Out) {
    let (o, old, raw) = (&dump.options, out.old(), out.form.raw);
    if dump.handle != 0 {
        let fh = handle_text(dump.handle, raw, old);
        out.string("fh", &fh, format_args!("fh {fh} "));
    }
    let node = dump.handle & 0xfff;
    if node != 0 {
        out.num("order", node, format_args!("order {node} "));
    }
    if let Some(divisor) = o.u32("divisor") {
        out.num("ht_divisor", divisor, format_args!("ht divisor {divisor} "));
    } else if let Some(htid) = o.u32("hash") {
        let (table, bucket) = (htid >> 20, htid >> 12 & 0xff);
        out.hex("key_ht", table, format_args!("key ht {table:x} "));
        out.hex("bkt", bucket, format_args!("bkt {bucket:x} "));
    } else if old {
        out.text_only(format_args!("??? "));
    }
    let sel = o.nested("sel");
    let flags = sel.and_then(|s| s.u32("flags")).unwrap_or(0);
    let terminal = flags & TERMINAL != 0;
    if let Some(id) = o.u32("classid") {
        let id = Handle(id);
        if terminal != old {
            out.text_only(format_args!("*"));
        }
        out.string("flowid", &id.to_string(), format_args!("flowid {id} "));
    } else if terminal {
        out.text_only(format_args!("terminal flowid {}", if old { "??? " } else { "" }));
    }
    if let Some(link) = o.u32("link") {
        let link = handle_text(link, raw, old);
        out.string("link", &link, format_args!("link {link} "));
    }
    if !old {
        for (bit, name) in [(SKIP_HW, "skip_hw"), (SKIP_SW, "skip_sw")] {
            if o.u32("flags").unwrap_or(0) & bit != 0 {
                out.flag(name, format_args!("{name} "));
            }
        }
        let in_hw = o.u32("flags").unwrap_or(0);
        if in_hw & 4 != 0 {
            out.flag("in_hw", format_args!("in_hw "));
        } else if in_hw & 8 != 0 {
            out.flag("not_in_hw", format_args!("not_in_hw "));
        }
    }
    let counted = out.form.stats.then(|| o.nested("pcnt")).flatten();
    if let (Some(_), Some(pcnt)) = (sel, counted) {
        let n = |name| pcnt.u64(name).unwrap_or(0);
        let before = if old { " " } else { "" };
        out.num("rule_hit", n("rcnt"), format_args!("{before}(rule hit {} ", n("rcnt")));
        out.num("success", n("rhit"), format_args!("success {})", n("rhit")));
    }
    if let Some(mark) = o.nested("mark") {
        let n = |name| mark.u32(name).unwrap_or(0);
        out.nl();
        out.string("fwmark_value", &c_hex(n("val")), format_args!("  mark 0x{:04x} ", n("val")));
        out.string("fwmark_mask", &c_hex(n("mask")), format_args!("0x{:04x} ", n("mask")));
        out.num("fwmark_success", n("success"), format_args!("(success {})", n("success")));
    }
    if let Some(sel) = sel {
        print_sel(dump, sel, counted, out);
    }
    if let Some(dev) = o.str("indev") {
        out.nl();
        out.string("input_dev", dev, format_args!("  input dev {dev}"));
        out.nl();
    }
}

/// C's `%#x`.
fn c_hex(n: u32) -> String {
    if n == 0 { "0".to_owned() } else { format!("{n:#x}") }
}

fn print_sel(dump: &FilterDump, sel: &Options, counted: Option<&Options>, out: &mut Out) {
    let keys = sel.list("keys");
    let hits = counted.map(|p| p.list("kcnts")).unwrap_or(&[]);
    let many = keys.len() > 1;
    if many && out.is_json() {
        out.open_array("match", "");
    }
    for (i, key) in keys.iter().enumerate() {
        let name = if many { None } else { Some("match") };
        print_key(dump.protocol, key, name, hits.get(i).and_then(|k| k.u64("hits")), out);
    }
    if many && out.is_json() {
        out.close_array();
    }
    let u32 = |name: &str| sel.u32(name).unwrap_or(0);
    let i64 = |name: &str| sel.i64(name).unwrap_or(0);
    if u32("flags") & (VAROFFSET | OFFSET) != 0 {
        out.nl();
        out.text_only(format_args!("    offset "));
        if u32("flags") & VAROFFSET != 0 {
            out.hex("offset_mask", u32("offmask"), format_args!("{:04x}", u32("offmask")));
            out.num("offset_shift", u32("offshift"), format_args!(">>{} ", u32("offshift")));
            out.num("offset_off", i64("offoff"), format_args!("at {} ", i64("offoff")));
        }
        if u32("off") != 0 {
            out.num("plus", u32("off"), format_args!("plus {} ", u32("off")));
        }
    }
    if u32("flags") & EAT != 0 {
        out.flag("eat", format_args!(" eat "));
    }
    if u32("hmask") != 0 {
        out.nl();
        out.hex("hash_mask", u32("hmask"), format_args!("    hash mask {:08x} ", u32("hmask")));
        out.num("hash_off", i64("hoff"), format_args!("at {} ", i64("hoff")));
    }
}

/// One key, with `-p` as what it means; `hits` where the kernel counts.
fn print_key(protocol: u16, key: &Options, name: Option<&str>, hits: Option<u64>, out: &mut Out) {
    let val = key.u32("val").unwrap_or(0);
    let mask = key.u32("mask").unwrap_or(0);
    let off = key.i64("off").unwrap_or(0);
    let nexthdr = key.i64("offmask").unwrap_or(0) != 0;
    out.open_object(name);
    let meaning = if out.form.pretty { protocol } else { 0 };
    match meaning {
        0x0800 => print_ip(val, mask, off, false, out),
        0x86dd => print_ip(val, mask, off, true, out),
        _ => {
            out.nl();
            out.hex("value", val, format_args!("  match {val:08x}"));
            out.hex("mask", mask, format_args!("/{mask:08x} "));
            let next = if nexthdr { "nexthdr+" } else { "" };
            out.string("offmask", next, format_args!("at {next}"));
            out.num("off", off, format_args!("{off}"));
        }
    }
    if let Some(hits) = hits {
        out.num("success", hits, format_args!(" (success {hits} ) "));
    }
    out.close_object();
}

/// `print_ipv4` and `print_ipv6`, which differ in the ports only (and of IPv6 know nothing). What they do not know they do not print.
fn print_ip(val: u32, mask: u32, off: i64, six: bool, out: &mut Out) {
    let old = out.old();
    match (off, mask) {
        (0, 0x0f00_0000) => {
            out.nl();
            out.num("ip_ihl", val >> 24, format_args!("  match IP ihl {}", val >> 24));
        }
        (0, 0x00ff_0000) => {
            out.nl();
            let field = c_hex(val >> 16);
            out.string("ip_dsfield", &field, format_args!("  match IP dsfield {field}"));
        }
        (8, 0x00ff_0000) => {
            out.nl();
            out.num("ip_protocol", val >> 16, format_args!("  match IP protocol {}", val >> 16));
        }
        (12 | 16, _) => {
            let Some(bits) = mask_bits(mask) else { return };
            let side = if off == 12 { "src" } else { "dst" };
            let address = Ipv4Addr::from_bits(val).to_string();
            out.nl();
            out.text_only(format_args!("  match IP {side} "));
            out.open_object(Some(side));
            out.string("address", &address, format_args!("{address}"));
            out.num("prefixlen", bits, format_args!("/{bits}"));
            out.close_object();
        }
        (20, 0x0000_ffff | 0xffff_0000 | u32::MAX) => print_ports(val, mask, six, old, out),
        _ => {}
    }
}

/// The ports: what 2.6.35 and today's IPv6 printer call sport stands in the lower half, where the destination port is.
fn print_ports(val: u32, mask: u32, six: bool, old: bool, out: &mut Out) {
    let (low, high) = (val & 0xffff, val >> 16);
    let (low_name, high_name) = if six || old { ("sport", "dport") } else { ("dport", "sport") };
    match mask {
        0x0000_ffff => {
            let own_line = six || old;
            if own_line {
                out.nl();
            }
            let blank = if own_line { "  " } else { "" };
            out.num(low_name, low, format_args!("{blank}match {low_name} {low}"));
        }
        0xffff_0000 => {
            let own_line = !six || old;
            if own_line {
                out.nl();
            }
            let blank = if own_line { "  " } else { "" };
            out.num(high_name, high, format_args!("{blank}match {high_name} {high}"));
        }
        _ => {
            out.nl();
            out.num(low_name, low, format_args!("  match {low_name} {low}, "));
            out.num(high_name, high, format_args!("match {high_name} {high}"));
        }
    }
}
