//! `sample`: hand samples of packets to a psample group.
//!
//! Follows: iproute2 6.1.0 `tc/m_sample.c`.

use super::{Action, PIPE, advance, control, next_is, option_value, print_end, tail, usage};
use crate::show::Out;
use crate::tc::args::{Args, matches};
use crate::tc::{Failure, num};
use penstock_model::Options;

pub(super) static KIND: Action = Action { id: "sample", old: false, parse, print };

const USAGE: &str = "\
Usage: sample SAMPLE_CONF
SAMPLE_CONF := rate RATE group GROUP [trunc SIZE] [index INDEX] | index INDEX
";

/// A line, then the usage and the end of tc.
fn fatal(args: &Args, line: &str) -> Failure {
    usage(args, USAGE).also(line)
}

fn parse(args: &mut Args) -> Result<Options, Failure> {
    if args.left() <= 1 {
        return Err(fatal(args, &format!("sample bad argument count {}", args.left())));
    }
    advance(args)?;
    let mut o = Options::new();
    while let Some(word) = args.peek_text() {
        let found =
            [("rate", "Illegal rate"), ("group", "Illegal group num"), ("trunc", "Illegal truncation size")];
        if let Some((name, line)) = found.iter().find(|(name, _)| matches(word, name)) {
            let v = option_value(args)?;
            let n = num::u32(v, 10).ok_or_else(|| fatal(args, &format!("{line} {v}")))?;
            o.set(name, n.into());
        } else if next_is(args, "help") {
            return Err(usage(args, USAGE));
        } else {
            break;
        }
    }
    tail(args, &mut o, PIPE, "sample: Illegal \"index\"")?;
    let indexed = o.u32("index").is_some_and(|i| i != 0);
    for name in ["group", "rate"] {
        if !indexed && !o.has(name) {
            return Err(fatal(args, &format!("param \"{name}\" not set")));
        }
    }
    Ok(o)
}

fn print(o: &Options, out: &mut Out) {
    let n = |name: &str| o.u32(name).unwrap_or(0);
    out.string("kind", "sample", format_args!("sample "));
    out.num("rate", n("rate"), format_args!("rate 1/{} ", n("rate")));
    out.num("group", n("group"), format_args!("group {}", n("group")));
    if let Some(trunc) = o.u32("trunc") {
        out.num("trunc_size", trunc, format_args!(" trunc_size {trunc}"));
    }
    control::print_control(" ", control::of(o), "", out);
    out.nl();
    print_end(o, out);
}
