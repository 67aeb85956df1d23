//! `ipset`: membership of a set. Not simulated: `iptables -m set` asks sets.
//!
//! Follows: iproute2 6.1.0 `tc/em_ipset.c`.

use super::{Bstr, Em, Said};
use penstock_model::{Kernel, Options};

pub(super) static EMATCH: Em = Em {
    id: "ipset",
    kind: 8,
    usage: "\
Usage: ipset(SETNAME FLAG[,FLAG ...])
where: FLAG := { src | dst }
",
    parse,
    print,
};

/// `IPSET_MAXNAMELEN`.
const NAME_MAX: usize = 32;

fn parse(said: &Said<'_>, args: &[Bstr]) -> Result<Options, String> {
    let name = &args[0];
    if name.bytes.len() >= NAME_MAX {
        return Err(said.error(args, Some(0), "ipset: set name too long (max 31)"));
    }
    Err(said.error(args, Some(0), "ipset: not simulated"))
}

fn print(o: &Options, _: Kernel, text: &mut String) {
    text.push_str(o.str("set").unwrap_or(""));
}
