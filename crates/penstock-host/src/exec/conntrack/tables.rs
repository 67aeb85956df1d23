//! The options of `conntrack`: their names, and which go with which command.
//!
//! Follows: conntrack-tools 1.4.7 `src/conntrack.c` `original_opts`, `optflags`, `commands_v_options`; `extensions/libct_proto_*.c`.

/// Options by their bit: `--src` is the first.
pub(super) const FLAGS: [&str; 29] = [
    "src",
    "dst",
    "reply-src",
    "reply-dst",
    "protonum",
    "timeout",
    "status",
    "zero",
    "event-mask",
    "tuple-src",
    "tuple-dst",
    "mask-src",
    "mask-dst",
    "nat-range",
    "mark",
    "id",
    "family",
    "src-nat",
    "dst-nat",
    "output",
    "secmark",
    "buffer-size",
    "any-nat",
    "zone",
    "label",
    "label-add",
    "label-del",
    "orig-zone",
    "reply-zone",
];
/// The letter of each.
pub(super) const LETTERS: &[u8; 29] = b"sdrqptuze[]{}amifngocbjwl<>()";
/// Commands by letter, then of connections and of expectations: by option 0 is refused, 1 has to be, 2 may be, 3 belongs with others.
pub(super) const ALLOWED: [(char, &[u8; 29], &[u8; 29]); 10] = [
    ('L', b"22222022000220202222202220022", b"00000000000000002002000000000"),
    ('I', b"33331120000002200220000202022", b"11221120011110000000000000000"),
    ('A', b"33331120000002200220000202022", NONE),
    ('U', b"22222220000220222222000022200", NONE),
    ('D', b"22222220000220222222000220022", b"11221000000000000000000000000"),
    ('G', b"33331000000000020002000020000", b"11221000000000000000000000000"),
    ('F', b"00000000000000002000000000000", NONE),
    ('E', b"22222000200220202222222220022", b"00000000000000000002000000000"),
    ('C', NONE, NONE),
    ('S', NONE, NONE),
];
pub(super) const NONE: &[u8; 29] = b"00000000000000000000000000000";
pub(super) const LONG: [(&str, u8, char); 43] = [
    ("dump", 2, 'L'),
    ("create", 2, 'I'),
    ("add", 2, 'A'),
    ("delete", 2, 'D'),
    ("update", 2, 'U'),
    ("get", 2, 'G'),
    ("flush", 2, 'F'),
    ("event", 2, 'E'),
    ("counter", 2, 'C'),
    ("stats", 0, 'S'),
    ("version", 0, 'V'),
    ("help", 0, 'h'),
    ("orig-src", 1, 's'),
    ("src", 1, 's'),
    ("orig-dst", 1, 'd'),
    ("dst", 1, 'd'),
    ("reply-src", 1, 'r'),
    ("reply-dst", 1, 'q'),
    ("protonum", 1, 'p'),
    ("timeout", 1, 't'),
    ("status", 1, 'u'),
    ("zero", 0, 'z'),
    ("event-mask", 1, 'e'),
    ("tuple-src", 1, '['),
    ("tuple-dst", 1, ']'),
    ("mask-src", 1, '{'),
    ("mask-dst", 1, '}'),
    ("nat-range", 1, 'a'),
    ("mark", 1, 'm'),
    ("secmark", 1, 'c'),
    ("id", 2, 'i'),
    ("family", 1, 'f'),
    ("src-nat", 2, 'n'),
    ("dst-nat", 2, 'g'),
    ("output", 1, 'o'),
    ("buffer-size", 1, 'b'),
    ("any-nat", 2, 'j'),
    ("zone", 1, 'w'),
    ("label", 1, 'l'),
    ("label-add", 1, '<'),
    ("label-del", 2, '>'),
    ("orig-zone", 1, '('),
    ("reply-zone", 1, ')'),
];

/// What a protocol has for options of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Handler {
    Tcp,
    Udp,
    Icmp,
    Icmpv6,
    /// SCTP, DCCP, GRE: read, and made by no command here.
    Other,
    Unknown,
}
pub(super) const PROTOCOLS: [(&str, u8, Handler); 8] = [
    ("tcp", 6, Handler::Tcp),
    ("udp", 17, Handler::Udp),
    ("udplite", 136, Handler::Udp),
    ("icmp", 1, Handler::Icmp),
    ("icmpv6", 58, Handler::Icmpv6),
    ("sctp", 132, Handler::Other),
    ("dccp", 33, Handler::Other),
    ("gre", 47, Handler::Other),
];
/// Names of `/etc/protocols` beside.
pub(super) const NAMES: [(&str, u8); 10] = [
    ("igmp", 2),
    ("ipencap", 4),
    ("egp", 8),
    ("igp", 9),
    ("ipv6", 41),
    ("esp", 50),
    ("ah", 51),
    ("ipv6-icmp", 58),
    ("ospf", 89),
    ("pim", 103),
];

pub(super) const PORTS: [(&str, u8); 8] = [
    ("orig-port-src", 0),
    ("sport", 0),
    ("orig-port-dst", 1),
    ("dport", 1),
    ("reply-port-src", 2),
    ("reply-port-dst", 3),
    ("mask-port-src", 4),
    ("mask-port-dst", 5),
];

impl Handler {
    /// Its options, with the bit of each.
    pub(super) fn options(self) -> Vec<(&'static str, u8)> {
        let with = |more: &[(&'static str, u8)]| PORTS.iter().chain(more).copied().collect();
        match self {
            Handler::Tcp => with(&[("state", 6), ("tuple-port-src", 7), ("tuple-port-dst", 8)]),
            Handler::Udp => with(&[("tuple-port-src", 6), ("tuple-port-dst", 7)]),
            Handler::Icmp => vec![("icmp-type", 0), ("icmp-code", 1), ("icmp-id", 2)],
            Handler::Icmpv6 => vec![("icmpv6-type", 0), ("icmpv6-code", 1), ("icmpv6-id", 2)],
            Handler::Other => with(&[
                ("state", 6),
                ("orig-vtag", 7),
                ("reply-vtag", 8),
                ("role", 9),
                ("srckey", 10),
                ("dstkey", 11),
                ("reply-key-src", 12),
                ("reply-key-dst", 13),
            ]),
            Handler::Unknown => Vec::new(),
        }
    }
    /// By bit for a command on connections: as [`ALLOWED`], and the names.
    pub(super) fn allowed(self, command: char) -> (&'static [u8], &'static [&'static str]) {
        const TCP: [&str; 9] = [
            "sport",
            "dport",
            "reply-port-src",
            "reply-port-dst",
            "mask-port-src",
            "mask-port-dst",
            "state",
            "tuple-port-src",
            "tuple-port-dst",
        ];
        const UDP: [&str; 8] = [
            "sport",
            "dport",
            "reply-port-src",
            "reply-port-dst",
            "mask-port-src",
            "mask-port-dst",
            "tuple-port-src",
            "tuple-port-dst",
        ];
        match (self, command) {
            (Handler::Tcp, 'L' | 'U' | 'D' | 'E') => (b"222200200", &TCP),
            (Handler::Tcp, 'I' | 'A') => (b"333300100", &TCP),
            (Handler::Tcp, 'G') => (b"333300200", &TCP),
            (Handler::Tcp, _) => (b"000000000", &TCP),
            (Handler::Udp, 'L' | 'U' | 'D' | 'E') => (b"22220000", &UDP),
            (Handler::Udp, 'I' | 'A' | 'G') => (b"33330000", &UDP),
            (Handler::Udp, _) => (b"00000000", &UDP),
            (Handler::Icmp, 'I' | 'A' | 'G') => (b"112", &["icmp-type", "icmp-code", "icmp-id"]),
            (Handler::Icmp, 'L' | 'U' | 'D' | 'E') => (b"222", &["icmp-type", "icmp-code", "icmp-id"]),
            (Handler::Icmp, _) => (b"000", &["icmp-type", "icmp-code", "icmp-id"]),
            (Handler::Icmpv6, 'I' | 'A' | 'G') => (b"112", &["icmpv6-type", "icmpv6-code", "icmpv6-id"]),
            (Handler::Icmpv6, 'L' | 'U' | 'D' | 'E') => {
                (b"222", &["icmpv6-type", "icmpv6-code", "icmpv6-id"])
            }
            (Handler::Icmpv6, _) => (b"000", &["icmpv6-type", "icmpv6-code", "icmpv6-id"]),
            _ => (b"", &[]),
        }
    }
}
