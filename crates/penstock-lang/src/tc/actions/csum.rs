//! `csum`: compute checksums anew.
//!
//! Follows: iproute2 6.1.0 `tc/m_csum.c`, 6.12.0 for `csum index N`.
//! Differs: `csum index N` of a filter, which 6.1 refuses, is read as 6.12 does.

use super::{Action, advance, bad, control, explained, index_here, next_is, print_times, tail, usage};
use crate::show::Out;
use crate::tc::Failure;
use crate::tc::args::{Args, matches};
use penstock_model::Options;

pub(super) static KIND: Action = Action { id: "csum", old: false, parse, print };

const USAGE: &str = "\
Usage: ... csum <UPDATE>
UPDATE := WHAT [ { and | or | + } WHAT ... ], WHAT := iph | icmp | igmp | tcp | udp | udplite | sctp
";
const ILLEGAL: &str = "Illegal \"index\" (%s) <csum>";
/// By their bits, and in the order they are tried.
const HEADERS: [(&str, u32); 7] =
    [("iph", 1), ("icmp", 2), ("igmp", 4), ("tcp", 8), ("udp", 16), ("udplite", 32), ("sctp", 64)];

/// One header, or a word between two.
fn header(word: &str) -> Option<u32> {
    if ["ip4h", "ipv4h"].iter().any(|w| matches(word, w)) {
        return Some(1);
    }
    let found = HEADERS.iter().find(|(name, _)| matches(word, name)).map(|h| h.1);
    found.or_else(|| ["and", "or", "+"].iter().any(|w| matches(word, w)).then_some(0))
}

fn parse(args: &mut Args) -> Result<Options, Failure> {
    let (mut flags, mut any) = (0, false);
    loop {
        if next_is(args, "csum") {
            advance(args)?;
            if args.of_filter && args.peek_text() == Some("index") {
                let mut o = Options::new().with("update_flags", flags).with("action", 0i64);
                index_here(args, &mut o, ILLEGAL)?;
                return Ok(o);
            }
            while let Some(bit) = args.peek_text().and_then(header) {
                flags |= bit;
                args.next_word();
            }
            any = true;
        } else if next_is(args, "help") {
            return Err(usage(args, USAGE));
        } else {
            break;
        }
    }
    if !any {
        return Err(explained(args, "", USAGE));
    }
    if flags == 0 {
        return Err(bad(args, "Illegal csum construct, empty <UPDATE> list", "e.g. csum iph and tcp"));
    }
    let mut o = Options::new().with("update_flags", flags);
    tail(args, &mut o, 0, ILLEGAL)?;
    Ok(o)
}

fn print(o: &Options, out: &mut Out) {
    let n = |name: &str| o.u32(name).unwrap_or(0);
    let set: Vec<&str> = HEADERS.iter().filter(|h| n("update_flags") & h.1 != 0).map(|h| h.0).collect();
    let text = if set.is_empty() { "?empty".to_owned() } else { set.join(", ") };
    out.string("kind", "csum", format_args!("csum "));
    out.string("csum", &text, format_args!("({text}) "));
    control::print_control("action ", control::of(o), "", out);
    out.nl();
    out.num("index", n("index"), format_args!("\tindex {}", n("index")));
    out.num("ref", n("ref"), format_args!(" ref {}", n("ref")));
    out.num("bind", n("bind"), format_args!(" bind {}", n("bind")));
    if out.form.stats {
        print_times(o, out);
    }
    out.nl();
}
