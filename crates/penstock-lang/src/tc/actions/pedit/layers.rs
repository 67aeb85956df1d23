//! Fields of headers by name.
//!
//! Follows: iproute2 6.1.0 `tc/p_ip.c`, `p_ip6.c`, `p_tcp.c`, `p_udp.c`, `p_eth.c`, `p_icmp.c`.

use super::{Field, Key, Sel, Type, advance, bad, command, silent};
use crate::tc::Failure;
use crate::tc::args::{Args, matches};

/// Name, offset, length, bits that change.
type Row = (&'static str, u32, u32, u32);

/// Fields by the header a key counts from, with the words for both.
pub(super) const NAMES: [(u32, &str, &str); 26] = [
    (1, "eth", "dst"),
    (1, "eth", "src"),
    (1, "eth", "type"),
    (2, "ip", "ttl"),
    (2, "ip", "src"),
    (2, "ip", "dst"),
    (2, "ip", "tos"),
    (2, "ip", "protocol"),
    (2, "ip", "ihl"),
    (2, "ip", "nofrag"),
    (2, "ip", "firstfrag"),
    (2, "ip", "ce"),
    (2, "ip", "df"),
    (2, "ip", "mf"),
    (3, "ip6", "src"),
    (3, "ip6", "dst"),
    (3, "ip6", "traffic_class"),
    (3, "ip6", "flow_lbl"),
    (3, "ip6", "payload_len"),
    (3, "ip6", "nexthdr"),
    (3, "ip6", "hoplimit"),
    (4, "tcp", "sport"),
    (4, "tcp", "dport"),
    (4, "tcp", "flags"),
    (5, "udp", "sport"),
    (5, "udp", "dport"),
];

const IP: [Row; 10] = [
    ("tos", 1, 1, 0xff),
    ("ihl", 0, 1, 0x0f),
    ("ttl", 8, 1, 0xff),
    ("protocol", 9, 1, 0xff),
    ("precedence", 1, 1, 0xff),
    ("nofrag", 6, 1, 0x3f),
    ("firstfrag", 6, 1, 0x1f),
    ("ce", 6, 1, 0x80),
    ("df", 6, 1, 0x40),
    ("mf", 6, 1, 0x20),
];
/// Behind the IP header; not with `ex`.
const BEHIND_IP: [Row; 4] = [
    ("dport", 22, 2, 0xffff),
    ("sport", 20, 2, 0xffff),
    ("icmp_type", 20, 1, 0xff),
    ("icmp_code", 20, 1, 0xff),
];
const IP6: [Row; 5] = [
    ("flow_lbl", 0, 4, 0x0007_ffff),
    ("payload_len", 4, 2, 0xffff),
    ("nexthdr", 6, 1, 0xff),
    ("hoplimit", 7, 1, 0xff),
    ("traffic_class", 1, 1, 0xff),
];
const TCP: [Row; 3] = [("sport", 0, 2, 0xffff), ("dport", 2, 2, 0xffff), ("flags", 13, 1, 0xff)];
const UDP: [Row; 2] = [("sport", 0, 2, 0xffff), ("dport", 2, 2, 0xffff)];

/// `parse_ip` and its kin: the next word names the header.
pub(super) fn layer(args: &mut Args, sel: &mut Sel) -> Result<(), Failure> {
    let header = args.peek_text().unwrap_or("").to_owned();
    advance(args)?;
    let known = match header.as_str() {
        "ip" | "icmp" | "tcp" | "udp" => true,
        "ip6" | "eth" => !args.old(),
        _ => false,
    };
    if !known {
        let word = args.peek_text().unwrap_or("");
        let line = format!("Unknown action  hence option \"{word}\" is unparsable");
        return Err(bad(args, line, "headers: ip, ip6, tcp, udp, eth"));
    }
    if args.left() < 2 || (header != "ip" && !sel.extended) {
        return Err(silent(args));
    }
    let word = args.peek_text().unwrap_or("").to_owned();
    let found = match header.as_str() {
        "ip" if args.old() && word == "ttl" => None,
        "ip" if args.old() && word == "ihl" => row(&[("ihl", 0, 1, 0xff)], &word, 0),
        "ip" => ip(&word, sel.extended),
        "ip6" => address("ip6", &word).or_else(|| row(&IP6, &word, 3)),
        "tcp" => row(&TCP, &word, 4),
        "udp" => row(&UDP, &word, 5),
        "eth" => address("eth", &word),
        _ => None,
    };
    let (mut key, field) = found.ok_or_else(|| silent(args))?;
    advance(args)?;
    command(args, &field, sel, &mut key)?;
    if header == "ip6" && word == "traffic_class" {
        // The field does not begin on a byte.
        let last = sel.keys.last_mut().expect("a key was packed");
        (last.mask, last.val) = (last.mask << 4 | 0xf, last.val << 4);
    }
    Ok(())
}

fn ip(word: &str, extended: bool) -> Option<(Key, Field)> {
    let header = if extended { 2 } else { 0 };
    let plain = |off| {
        let field = Field { len: 4, kind: Type::Ipv4, retain: u32::MAX, decrements: false };
        Some((Key { off, header, ..Key::default() }, field))
    };
    match word {
        "src" => plain(12),
        "dst" => plain(16),
        _ if matches(word, "dsfield") && word != "df" => row(&IP, "tos", header),
        _ => {
            let named = IP.iter().find(|r| r.0 == word || (r.0 == "precedence" && matches(word, r.0)));
            let behind = || BEHIND_IP.iter().find(|r| r.0 == word && !extended);
            named.or_else(behind).map(|r| of(r, header))
        }
    }
}

/// Addresses: of IPv6, and of Ethernet with its type.
fn address(header: &str, word: &str) -> Option<(Key, Field)> {
    let field = |len, kind| Field { len, kind, retain: u32::MAX, decrements: false };
    let key = |off, header| Key { off, header, ..Key::default() };
    match (header, word) {
        ("ip6", "src") => Some((key(8, 3), field(16, Type::Ipv6))),
        ("ip6", "dst") => Some((key(24, 3), field(16, Type::Ipv6))),
        ("eth", "dst") => Some((key(0, 1), field(6, Type::Mac))),
        ("eth", "src") => Some((key(6, 1), field(6, Type::Mac))),
        ("eth", "type") => Some(of(&("type", 12, 2, 0xffff), 1)),
        _ => None,
    }
}

fn row(rows: &[Row], word: &str, header: u32) -> Option<(Key, Field)> {
    rows.iter().find(|r| r.0 == word).map(|r| of(r, header))
}

fn of(&(name, off, len, retain): &Row, header: u32) -> (Key, Field) {
    let decrements = matches!(name, "ttl" | "hoplimit");
    (Key { off, header, ..Key::default() }, Field { len, kind: Type::Number, retain, decrements })
}
