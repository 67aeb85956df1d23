//! `cmp`: compares a byte, a half word or a word of the packet.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/em_cmp.c`, whose `nbyte: unknown parameter` is tc's own; the tc of 2010 does not
//! print `u32`.

use super::{Bstr, Em, Said, layer, operand, operand_name};
use penstock_model::{Kernel, Options};

pub(super) static EMATCH: Em = Em {
    id: "cmp",
    kind: 1,
    usage: "\
Usage: cmp(ALIGN at OFFSET [ layer LAYER ] [ mask MASK ] [ trans ] { eq | lt | gt } VALUE)
where: ALIGN := { u8 | u16 | u32 }, LAYER := { link | network | transport | 0..2 }
",
    parse,
    print,
};

fn parse(said: &Said<'_>, args: &[Bstr]) -> Result<Options, String> {
    let fail = |at: Option<usize>, message: &str| Err(said.error(args, at, message));
    let Some(align) = ["u8", "u16", "u32"].iter().position(|word| args[0].is(word)) else {
        return fail(Some(0), "cmp: invalid alignment");
    };
    let (mut off, mut on_layer, mut mask, mut value) = (None, 1, 0, None);
    let (mut trans, mut opnd) = (0u32, 0);
    let mut i = 1;
    while i < args.len() {
        let word = &args[i];
        if word.is("trans") {
            trans = 1;
            i += 1;
            continue;
        }
        let test = operand(word);
        if !(word.is("at") || word.is("layer") || word.is("mask") || test.is_some()) {
            return fail(Some(i), "nbyte: unknown parameter");
        }
        if i + 1 == args.len() {
            return fail(Some(i), "cmp: missing argument");
        }
        i += 1;
        let arg = &args[i];
        if let Some(test) = test {
            opnd = test;
            match arg.number() {
                Some(n) => value = Some(n),
                None => return fail(Some(i), "cmp: invalid value"),
            }
        } else if word.is("at") {
            match arg.number() {
                Some(n) => off = Some(n),
                None => return fail(Some(i), "cmp: invalid offset, must be numeric"),
            }
        } else if word.is("layer") {
            match layer(arg) {
                Some(n @ 0..=2) => on_layer = n,
                Some(_) => return fail(Some(i), "cmp: illegal layer, must be in 0..2"),
                None => return fail(Some(i), "cmp: invalid layer"),
            }
        } else {
            match arg.number() {
                Some(n) => mask = n,
                None => return fail(Some(i), "cmp: invalid mask"),
            }
        }
        i += 1;
    }
    let (Some(off), Some(value)) = (off, value) else {
        return fail(None, "cmp: offset and value required");
    };
    let align = [1u32, 2, 4][align];
    Ok(Options::new()
        .with("val", value as u32)
        .with("mask", mask as u32)
        .with("off", u32::from(off as u16))
        .with("align", align)
        .with("trans", trans)
        .with("layer", on_layer as u32)
        .with("opnd", opnd))
}

fn print(o: &Options, kernel: Kernel, text: &mut String) {
    let n = |name| o.u32(name).unwrap_or(0);
    match n("align") {
        1 => text.push_str("u8 "),
        2 => text.push_str("u16 "),
        4 if kernel != Kernel::V2_6_35 => text.push_str("u32 "),
        _ => {}
    }
    text.push_str(&format!("at {} layer {} ", n("off"), n("layer")));
    if n("mask") != 0 {
        text.push_str(&format!("mask 0x{:x} ", n("mask")));
    }
    if n("trans") != 0 {
        text.push_str("trans ");
    }
    text.push_str(&format!("{} {}", operand_name(n("opnd")), n("val") as i32));
}
