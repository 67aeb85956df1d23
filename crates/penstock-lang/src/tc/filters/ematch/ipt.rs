//! `ipt`: a match of iptables. Its options are passed on as they stand.
//!
//! Follows: iproute2 6.1.0 `tc/em_ipt.c`; which matches there are: xtables' `policy` and `addrtype` are those that the kernel
//! takes, the others it refuses.
//! Differs: options of a match are not checked, and printed as they were given.

use super::{Bstr, Em, Said};
use penstock_model::{Kernel, Options};

pub(super) static EMATCH: Em = Em {
    id: "ipt",
    kind: 9,
    usage: "\
Usage: ipt([ -6 ] -m MATCH [ OPTIONS ])
",
    parse,
    print,
};

/// Matches that xtables has.
const MATCHES: [&str; 20] = [
    "addrtype",
    "comment",
    "connmark",
    "conntrack",
    "dscp",
    "hashlimit",
    "iprange",
    "length",
    "limit",
    "mac",
    "mark",
    "multiport",
    "owner",
    "policy",
    "recent",
    "state",
    "statistic",
    "tcp",
    "tos",
    "udp",
];

fn parse(_: &Said<'_>, args: &[Bstr]) -> Result<Options, String> {
    let mut six = 0u32;
    let mut words = args.iter().map(Bstr::text);
    while let Some(word) = words.next() {
        if word == "-6" || word == "--ipv6" {
            six = 1;
            continue;
        }
        let name = match word.strip_prefix("-m") {
            Some("") => words.next(),
            Some(name) => Some(name.to_owned()),
            None if word == "--match" => words.next(),
            None => continue,
        };
        let name = name.unwrap_or_default();
        if !MATCHES.contains(&name.as_str()) {
            return Err(format!(" failed to find match {name}\n\n"));
        }
        let rest: Vec<String> = words.collect();
        return Ok(Options::new().with("match", name).with("six", six).with("args", rest.join(" ")));
    }
    Err(" failed to parse parameters (ipt)\n".to_owned())
}

fn print(o: &Options, _: Kernel, text: &mut String) {
    text.push_str(&format!(" {} match {}", o.str("match").unwrap_or(""), o.str("args").unwrap_or("")));
}
