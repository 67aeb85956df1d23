//! `canid`: identifiers of CAN frames.
//!
//! Follows: iproute2 6.1.0 `tc/em_canid.c`.

use super::{Bstr, Em, Said};
use crate::tc::num;
use penstock_model::{Kernel, Options};

pub(super) static EMATCH: Em = Em {
    id: "canid",
    kind: 7,
    usage: "\
Usage: canid(IDSPEC ...)
where: IDSPEC := { sff | eff } ID[:MASK], hexadecimal
",
    parse,
    print,
};

const EFF_FLAG: u32 = 0x8000_0000;
const SFF_MASK: u32 = 0x7ff;
const EFF_MASK: u32 = 0x1fff_ffff;
/// The room for rules doubles from 25 as long as it is not above 200.
const MAX_RULES: usize = 400;

/// `sscanf` of `%x:%x`, or of `%x` alone.
fn id(text: &str, whole: u32) -> Option<(u32, u32)> {
    let (id, rest) = num::strtoul(text, 16)?;
    let mask = rest.strip_prefix(':').and_then(|mask| num::strtoul(mask, 16));
    Some((id as u32, mask.map_or(whole, |(mask, _)| mask as u32)))
}

fn parse(said: &Said<'_>, args: &[Bstr]) -> Result<Options, String> {
    let mut rules = Vec::new();
    let mut i = 0;
    while i < args.len() {
        // tc has lost the arguments before by now.
        let rest = &args[i..];
        let extended = rest[0].is("eff");
        if !extended && !rest[0].is("sff") {
            return Err(said.error(rest, Some(0), "canid: invalid key"));
        }
        let Some(word) = rest.get(1) else {
            return Err(said.error(&[], None, "canid: missing argument"));
        };
        let Some((id, mask)) = id(&word.text(), if extended { EFF_MASK } else { SFF_MASK }) else {
            return Err(said.error(&rest[1..], Some(0), "canid: Improperly formed CAN ID & mask\n"));
        };
        if rules.len() == MAX_RULES {
            return Err(said.error(&rest[1..], Some(0), "canid: Too many arguments on input\n"));
        }
        let flag = if extended { EFF_FLAG } else { 0 };
        rules.push(Options::new().with("id", id | flag).with("mask", mask | EFF_FLAG));
        i += 2;
    }
    Ok(Options::new().with("rules", rules))
}

fn print(o: &Options, _: Kernel, text: &mut String) {
    let rules: Vec<String> = o.list("rules").iter().map(rule).collect();
    text.push_str(&rules.join(" "));
}

fn rule(rule: &Options) -> String {
    let (id, mask) = (rule.u32("id").unwrap_or(0), rule.u32("mask").unwrap_or(0));
    let (name, whole) = if id & EFF_FLAG != 0 { ("eff", EFF_MASK) } else { ("sff", SFF_MASK) };
    if mask == EFF_FLAG | whole {
        format!("{name} 0x{:X}", id & whole)
    } else {
        format!("{name} 0x{:X}:0x{:X}", id & whole, mask & whole)
    }
}
