//! What nft 1.0.6 and Linux have and is not read here: so that nobody takes a gap of ours for a mistake of theirs.

use super::lex::Token;
use super::{Fault, Pos};

/// Words that begin a statement, an expression or an object.
const ALONE: &[&str] = &[
    "tproxy",
    "vlan",
    "arp",
    "sctp",
    "ah",
    "esp",
    "synproxy",
    "socket",
    "queue",
    "osf",
    "dup",
    "fwd",
    "xt",
    "rt",
    "ipsec",
    "xfrm",
    "hbh",
    "rt0",
    "rt2",
    "srh",
    "mh",
    "dst",
    "comp",
    "udplite",
    "dccp",
    "igmp",
    "gre",
    "geneve",
    "vxlan",
    "offload",
    "flowtable",
    "secmark",
    "policy-map",
    "monitor",
    "describe",
    "export",
    "import",
    "include",
    "undefine",
    "redefine",
    "last",
    "netmap",
    "tunnel",
];

/// Pairs that stand side by side: a key of `meta` or `ct`, an object by its name, a flag.
const PAIRS: &[(&str, &[&str])] = &[
    (
        "meta",
        &[
            "cgroup",
            "secmark",
            "ibrname",
            "obrname",
            "ibridgename",
            "obridgename",
            "ibrpvid",
            "ibrvproto",
            "hour",
            "day",
            "time",
            "ipsec",
            "secpath",
            "rtclassid",
            "iifgroup",
            "oifgroup",
            "iifkind",
            "oifkind",
            "iiftype",
            "oiftype",
            "sdif",
            "sdifname",
            "broute",
        ],
    ),
    (
        "ct",
        &[
            "expiration",
            "helper",
            "label",
            "original",
            "reply",
            "eventmask",
            "event",
            "timeout",
            "expectation",
            "src",
            "dst",
        ],
    ),
    ("ip", &["option", "hdrlength", "checksum"]),
    ("tcp", &["option", "urgptr", "checksum", "doff", "reserved"]),
    ("udp", &["checksum"]),
    ("icmp", &["id", "sequence", "gateway", "mtu", "checksum"]),
    ("icmpv6", &["id", "sequence", "mtu", "checksum", "parameter-problem", "packet-too-big", "max-delay"]),
    ("ether", &["vlan"]),
    ("synproxy", &["name"]),
    ("flags", &["dormant", "owner"]),
    ("add", &["flowtable", "secmark", "synproxy", "ct"]),
    ("list", &["flowtable", "flowtables", "hooks", "synproxys", "secmarks"]),
];

/// That nft has it and it is not read here.
pub(super) fn not_simulated(what: &str, pos: Pos) -> Fault {
    Fault::new(
        pos,
        format!("nft {what}: not simulated"),
        "take it away, or run the experiment on Linux itself",
    )
}

/// The fault again, or what is not read here where one of these words stands in the statement at fault.
pub(super) fn named(tokens: &[(Token, Pos)], fault: Fault) -> Fault {
    let about = fault.message.contains("syntax error")
        || fault.message.contains("No symbol type information")
        || fault.message.contains("unknown datatype")
        || fault.message.contains("Could not parse");
    if !about {
        return fault;
    }
    let place = |p: Pos| (p.line, p.from);
    let at = tokens.partition_point(|t| place(t.1) < place(fault.pos)).min(tokens.len().saturating_sub(1));
    let ends = |t: &(Token, Pos)| matches!(t.0, Token::Newline) || t.0 == Token::Sign(";");
    let from = tokens[..at].iter().rposition(ends).map_or(0, |n| n + 1);
    let to = tokens[at..].iter().position(ends).map_or(tokens.len(), |n| at + n);
    let word = |n: usize| match tokens.get(n).filter(|_| n < to) {
        Some((Token::Word(w), _)) => w.as_str(),
        _ => "",
    };
    // The nearest before the fault, or right at it: what comes later was not read yet.
    let found = (from..=at).rev().find_map(|n| {
        let (here, next) = (word(n), word(n + 1));
        if PAIRS.iter().any(|p| p.0 == here && p.1.contains(&next)) {
            return Some(format!("{here} {next}"));
        }
        // A name of the user's may be any word.
        let named = n > 0
            && matches!(
                word(n - 1),
                "table" | "chain" | "set" | "map" | "jump" | "goto" | "inet" | "ip" | "ip6"
            );
        let raw = ["@th", "@nh", "@ll", "@ih"].contains(&here);
        ((ALONE.contains(&here) || raw) && !named && n + 2 > at).then(|| here.to_owned())
    });
    match found {
        Some(what) => not_simulated(&what, fault.pos),
        None => fault,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn gaps_are_named_and_mistakes_stay_mistakes() {
        let said =
            |rule: &str| super::super::parse(&format!("add rule inet t c {rule}")).unwrap_err().message;
        for (rule, what) in [
            ("meta cgroup 5 accept", "meta cgroup"),
            ("ct expiration 5s accept", "ct expiration"),
            ("ct original ip saddr 1.2.3.4 accept", "ct original"),
            ("ip option lsrr exists drop", "ip option"),
            ("tproxy to :1", "tproxy"),
            ("tcp dport 22 queue num 1", "queue"),
            ("counter name tcp dport map { 22 : \"x\" }", "counter name … map"),
            ("vlan id 5 accept", "vlan"),
            ("@th,16,16 22 accept", "@th"),
        ] {
            assert_eq!(said(rule), format!("nft {what}: not simulated"), "{rule}");
        }
        for rule in [
            "meta marc set 5",
            "ip sadr 1.2.3.4 accept",
            "tcp dport 22 mark sett 5",
            "meta mark set",
            "accpet",
        ] {
            assert!(!said(rule).contains("not simulated"), "{rule}: {}", said(rule));
        }
        super::super::parse("add rule inet t c meta mark set ip daddr . th dport map { 10.0.0.1 . 22 : 5 }")
            .unwrap();
        let whole = |text: &str| super::super::parse(text).unwrap_err().message;
        assert_eq!(whole("table inet t { flags dormant; }"), "nft flags dormant: not simulated");
        assert_eq!(
            whole("add map inet t m { type ipv4_addr : counter; }"),
            "nft map of counter: not simulated"
        );
    }
}
