//! `u32`: one key as the classifier of that name has it.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/em_u32.c`.
//! Differs: the key is kept in host order of the packet's big-endian word.

use super::{Bstr, Em, Said};
use crate::tc::num;
use penstock_model::{Kernel, Options};

pub(super) static EMATCH: Em = Em {
    id: "u32",
    kind: 3,
    usage: "\
Usage: u32(ALIGN VALUE MASK at [ nexthdr+ ] OFFSET)
where: ALIGN := { u8 | u16 | u32 }
",
    parse,
    print,
};

fn parse(said: &Said<'_>, args: &[Bstr]) -> Result<Options, String> {
    let fail = |at: Option<usize>, message: &str| Err(said.error(args, at, message));
    let at = |i: usize| Some(i).filter(|&i| i < args.len());
    let Some(align) = ["u8", "u16", "u32"].iter().position(|word| args[0].is(word)) else {
        return fail(Some(0), "u32: invalid alignment");
    };
    let number = |i: usize| args.get(i).map(Bstr::number);
    let mut key = match number(1) {
        None => return fail(None, "u32: missing key"),
        Some(None) => return fail(Some(1), "u32: invalid key, must be numeric"),
        Some(Some(n)) => n,
    };
    let mut mask = match number(2) {
        None => return fail(None, "u32: missing mask"),
        Some(None) => return fail(Some(2), "u32: invalid mask, must be numeric"),
        Some(Some(n)) => n,
    };
    if !args.get(3).is_some_and(|a| a.is("at")) {
        return fail(at(3), "u32: missing \"at\"");
    }
    let mut i = 4;
    let Some(word) = args.get(i) else { return fail(None, "u32: missing offset") };
    let text = word.text();
    let (mut offmask, offset) = (0i64, text.strip_prefix("nexthdr+"));
    let offset = match offset {
        Some("") => {
            i += 1;
            match number(i) {
                None => return fail(None, "u32: missing offset"),
                Some(n) => n,
            }
        }
        Some(rest) => {
            offmask = -1;
            // A number that is none counts as 0.
            Some(num::strtoul(rest, 0).map_or(0, |(n, _)| n)).filter(|&n| n != u64::MAX)
        }
        None => word.number(),
    };
    let Some(mut offset) = offset else { return fail(Some(i), "u32: invalid offset") };
    if i + 1 < args.len() {
        return fail(Some(i + 1), "u32: unexpected trailer");
    }
    let most = [0xff, 0xffff][align.min(1)];
    if align < 2 {
        let named = ["0xFF", "0xFFFF"][align];
        if key > most {
            return fail(Some(i), &format!("Illegal key (>{named})"));
        }
        if mask > most {
            return fail(Some(i), &format!("Illegal mask (>{named})"));
        }
        let shift = match align {
            0 => 24 - (offset & 3) * 8,
            _ if offset & 3 == 0 => 16,
            _ => 0,
        };
        (key, mask) = (key << shift, mask << shift);
        offset &= !3;
    }
    if offset % 4 != 0 {
        return fail(Some(i), "u32: invalid offset alignment, must be aligned to 4.");
    }
    let mask = mask as u32;
    Ok(Options::new()
        .with("mask", mask)
        .with("val", key as u32 & mask)
        .with("off", i64::from(offset as u32 as i32))
        .with("offmask", offmask))
}

fn print(o: &Options, _: Kernel, text: &mut String) {
    let n = |name| o.u32(name).unwrap_or(0);
    let i = |name| o.i64(name).unwrap_or(0);
    let next = if i("offmask") != 0 { "nexthdr+" } else { "" };
    text.push_str(&format!("{:08x}/{:08x} at {next}{}", n("val"), n("mask"), i("off")));
}
