//! `nbyte`: compares a string of bytes.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/em_nbyte.c`.

use super::{Bstr, Em, Said, layer, shown};
use penstock_model::{Kernel, Options};

pub(super) static EMATCH: Em = Em {
    id: "nbyte",
    kind: 2,
    usage: "\
Usage: nbyte(NEEDLE at OFFSET [ layer LAYER ])
where: NEEDLE := { word | \"c-escape-sequence\" }, LAYER := { link | network | transport | 0..2 }
",
    parse,
    print,
};

fn parse(said: &Said<'_>, args: &[Bstr]) -> Result<Options, String> {
    let fail = |at: Option<usize>, message: &str| Err(said.error(args, at, message));
    let needle = &args[0].bytes;
    if needle.is_empty() {
        return fail(Some(0), "nbyte: needle length is 0");
    }
    let (mut off, mut on_layer) = (None, 1);
    let mut i = 1;
    while i < args.len() {
        let word = &args[i];
        if !word.is("at") && !word.is("layer") {
            return fail(Some(i), "nbyte: unknown parameter");
        }
        if i + 1 == args.len() {
            return fail(Some(i), "nbyte: missing argument");
        }
        i += 1;
        if word.is("at") {
            match args[i].number() {
                Some(n) => off = Some(n),
                None => return fail(Some(i), "nbyte: invalid offset, must be numeric"),
            }
        } else {
            match layer(&args[i]) {
                Some(n @ 0..=2) => on_layer = n,
                Some(_) => return fail(Some(i), "nbyte: illegal layer, must be in 0..2"),
                None => return fail(Some(i), "nbyte: invalid layer"),
            }
        }
        i += 1;
    }
    let Some(off) = off else { return fail(None, "nbyte: offset required") };
    Ok(Options::new()
        .with("off", u32::from(off as u16))
        .with("layer", on_layer as u32)
        .with("needle", needle.clone()))
}

fn print(o: &Options, _: Kernel, text: &mut String) {
    let needle = o.bytes("needle").unwrap_or_default();
    needle.iter().for_each(|c| text.push_str(&format!("{c:02x} ")));
    let plain: String = needle.iter().map(|&c| char::from(shown(c))).collect();
    let n = |name| o.u32(name).unwrap_or(0);
    text.push_str(&format!("\"{plain}\" at {} layer {}", n("off"), n("layer")));
}
