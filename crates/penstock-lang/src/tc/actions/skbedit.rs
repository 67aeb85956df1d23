//! `skbedit`: set priority, queue, mark or type of a packet.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `tc/m_skbedit.c`.

use super::{Action, PIPE, advance, bad, control, explained, option_value, print_end, tail, usage};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::{Failure, num};
use penstock_model::{Handle, Options};

pub(super) static KIND: Action = Action { id: "skbedit", old: true, parse, print };

const USAGE: &str = "\
Usage: ... skbedit <[QM] [PM] [MM] [PT] [IF]>
QM := queue_mapping QUEUE, PM := priority CLASSID, MM := mark MARK[/MASK],
PT := ptype { host | otherhost | broadcast | multicast }, IF := inheritdsfield
";
const OLD_USAGE: &str = "\
Usage: ... skbedit <[QM] [PM] [MM]>
QM := queue_mapping QUEUE, PM := priority CLASSID, MM := mark MARK
";
const INHERITDSFIELD: u64 = 0x20;
const PTYPES: [(&str, u32); 4] = [("host", 0), ("broadcast", 1), ("multicast", 2), ("otherhost", 3)];

fn parse(args: &mut Args) -> Result<Options, Failure> {
    let old = args.old();
    let text = if old { OLD_USAGE } else { USAGE };
    advance(args)?;
    let mut o = Options::new();
    while let Some(word) = args.peek_text() {
        let is = |full: &str| matches(word, full);
        if is("queue_mapping") {
            let v = option_value(args)?;
            let queue = num::u32(v, 10).filter(|&q| q <= 65535);
            o.set(
                "queue_mapping",
                queue.ok_or_else(|| bad(args, "Illegal queue_mapping", "0 to 65535"))?.into(),
            );
        } else if is("priority") {
            let v = option_value(args)?;
            let help = "a classid, e.g. 1:10";
            let id = num::classid(v, args.kernel()).ok_or_else(|| bad(args, "Illegal priority", help))?;
            o.set("priority", id.0.into());
        } else if is("mark") {
            let v = option_value(args)?;
            let (mark, mask) = match v.split_once('/') {
                Some((mark, mask)) if !old => (mark, Some(mask)),
                _ => (v, None),
            };
            let mark = num::u32(mark, 0).ok_or_else(|| bad(args, "Illegal mark", "a number, e.g. 0x10"))?;
            o.set("mark", mark.into());
            if let Some(mask) = mask {
                let mask =
                    num::u32(mask, 0).ok_or_else(|| bad(args, "Illegal mask", "a number, e.g. 0xff"))?;
                o.set("mask", mask.into());
            }
        } else if !old && is("ptype") {
            let v = option_value(args)?;
            let found = PTYPES.iter().find(|(name, _)| matches(v, name));
            let help = "host, otherhost, broadcast or multicast";
            let kind = found.ok_or_else(|| bad(args, format!("Illegal ptype ({v})"), help))?.1;
            o.set("ptype", kind.into());
        } else if !old && is("inheritdsfield") {
            args.next_word();
            o.set("flags", INHERITDSFIELD.into());
        } else if is("help") {
            return Err(usage(args, text));
        } else {
            break;
        }
    }
    let edits = !o.is_empty();
    let indexed = if old {
        o.set("action", i64::from(control::old_control(args, true)?).into());
        super::index_here(args, &mut o, "Pedit: Illegal \"index\"")?
    } else {
        tail(args, &mut o, PIPE, "skbedit: Illegal \"index\"")?
    };
    if !edits && !indexed {
        return Err(explained(args, "", text));
    }
    Ok(o)
}

fn print(o: &Options, out: &mut Out) {
    let (start, before) = if out.old() { (" skbedit", " ") } else { ("skbedit ", "") };
    out.string("kind", "skbedit", format_args!("{start}"));
    if let Some(queue) = o.u32("queue_mapping") {
        out.num("queue_mapping", queue, format_args!("{before}queue_mapping {queue}"));
    }
    if let Some(id) = o.u32("priority") {
        let id = Handle(id).to_string();
        out.string("priority", &id, format_args!(" priority {id}"));
    }
    if let Some(mark) = o.u32("mark") {
        out.num("mark", mark, format_args!(" mark {mark}"));
    }
    if let Some(mask) = o.u32("mask") {
        let zero = if mask == 0 { "" } else { "0x" };
        out.hex("mask", mask, format_args!("/{zero}{mask:x}"));
    }
    if let Some(kind) = o.u32("ptype") {
        match PTYPES.iter().find(|p| p.1 == kind) {
            Some((name, _)) => out.string("ptype", name, format_args!(" ptype {name}")),
            None => out.num("ptype", kind, format_args!(" ptype {kind}")),
        }
    }
    if o.u64("flags").is_some_and(|f| f & INHERITDSFIELD != 0) {
        out.null("inheritdsfield", format_args!(" inheritdsfield"));
    }
    if out.old() {
        if out.form.stats {
            super::print_times(o, out);
        }
        return;
    }
    control::print_control(" ", control::of(o), "", out);
    out.nl();
    print_end(o, out);
}
