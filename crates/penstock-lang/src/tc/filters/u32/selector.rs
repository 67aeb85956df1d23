//! The keys of a u32 filter, packed as tc packs them.
//!
//! Follows: iproute2 6.1.0 `tc/f_u32.c` `pack_key` and its kin, `parse_selector`, `parse_offset`, `parse_hashkey`; 2.6.35.

use super::{EAT, OFFSET, VAROFFSET};
use crate::tc::args::{Args, matches};
use crate::tc::filters::address::{prefix4, prefix6};
use crate::tc::{Failure, num};

/// `struct tc_u32_key`.
#[derive(Clone, Copy)]
pub struct Key {
    pub mask: u32,
    pub val: u32,
    pub off: i32,
    pub offmask: i32,
}

/// `struct tc_u32_sel`.
#[derive(Default)]
pub struct Sel {
    pub keys: Vec<Key>,
    pub flags: u32,
    pub offshift: u8,
    pub off: u16,
    pub offoff: i16,
    pub offmask: u16,
    pub hoff: i16,
    pub hmask: u32,
    /// TCA_U32_MARK: value, mask.
    pub mark: Option<(u32, u32)>,
}

/// Why a selector is none: tc's deeper complaints, which precede `Illegal "match"`, or the end of everything.
pub enum Bad {
    Plain,
    Said(String),
    Fatal(Failure),
}

impl From<Failure> for Bad {
    fn from(failure: Failure) -> Bad {
        Bad::Fatal(failure)
    }
}

pub type Parsed = Result<(), Bad>;
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
pub fn selector(args: &mut Args, sel: &mut Sel) -> Parsed {
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
pub fn offset(args: &mut Args, sel: &mut Sel) -> Parsed {
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
pub fn hashkey(args: &mut Args, sel: &mut Sel) -> Parsed {
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
