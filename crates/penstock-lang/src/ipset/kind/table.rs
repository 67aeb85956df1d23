//! The types, one by one.

use super::Arg::{self, *};
use super::opt::{CIDR, CIDR2, ETHER, IFACE, IP, IP_TO, IP2, IP2_TO, MARK, NAME, PORT, PORT_TO, PROTO};
use super::{Families, Kind, Part};

const IGNORED: [Arg; 5] = [Probes, Resize, IgnoredFrom, IgnoredTo, IgnoredNetwork];
const HASH: &[Arg] = &[
    Family, Inet, Inet6, Hashsize, Maxelem, Timeout, Counters, Comment, Forceadd, Skbinfo, Bucketsize,
    Initval,
];
const HASH_IP: &[Arg] = &[
    Family, Inet, Inet6, Hashsize, Maxelem, Netmask, Bitmask, Timeout, Counters, Comment, Forceadd, Skbinfo,
    Bucketsize, Initval, Probes, Resize, Gc,
];
const HASH_OLD: &[Arg] = &[
    Family, Inet, Inet6, Hashsize, Maxelem, Timeout, Counters, Comment, Forceadd, Skbinfo, Bucketsize,
    Initval, IGNORED[0], IGNORED[1], IGNORED[2], IGNORED[3], IGNORED[4],
];
const HASH_IPPORT: &[Arg] = &[
    Family, Inet, Inet6, Hashsize, Maxelem, Timeout, Counters, Comment, Forceadd, Skbinfo, Bucketsize,
    Initval, Netmask, Bitmask, IGNORED[0], IGNORED[1], IGNORED[2], IGNORED[3], IGNORED[4],
];
const HASH_IPMARK: &[Arg] = &[
    Family, Inet, Inet6, Markmask, Hashsize, Maxelem, Timeout, Counters, Comment, Forceadd, Skbinfo,
    Bucketsize, Initval, IGNORED[0], IGNORED[1], IGNORED[2], IGNORED[3], IGNORED[4],
];
const HASH_NET: &[Arg] = &[
    Family, Inet, Inet6, Hashsize, Maxelem, Timeout, Counters, Comment, Forceadd, Skbinfo, Bucketsize,
    Initval, Probes, Resize,
];
const HASH_NETNET: &[Arg] = &[
    Family, Inet, Inet6, Hashsize, Maxelem, Timeout, Counters, Comment, Forceadd, Skbinfo, Bucketsize,
    Initval, Bitmask, Netmask,
];
const HASH_MAC: &[Arg] =
    &[Hashsize, Maxelem, Timeout, Counters, Comment, Forceadd, Skbinfo, Bucketsize, Initval];
const ADD: &[Arg] = &[Timeout, Packets, Bytes, AdtComment, Skbmark, Skbprio, Skbqueue];
const ADD_NET: &[Arg] = &[Timeout, Nomatch, Packets, Bytes, AdtComment, Skbmark, Skbprio, Skbqueue];
const ADD_IFACE: &[Arg] =
    &[Timeout, Nomatch, Wildcard, Packets, Bytes, AdtComment, Skbmark, Skbprio, Skbqueue];
const ADD_LIST: &[Arg] = &[Timeout, Before, After, Packets, Bytes, AdtComment, Skbmark, Skbprio, Skbqueue];

const fn hash(
    (name, alias, revision): (&'static str, &'static str, u8),
    parts: &'static [Part],
    create: &'static [Arg],
    (need, more, test_more): (u32, u32, u32),
) -> Kind {
    Kind {
        name,
        alias,
        revision,
        families: Families::Both,
        parts,
        last_optional: false,
        nets: false,
        create,
        add: ADD,
        del: &[],
        test: &[],
        need,
        more,
        test_more,
    }
}
const fn nets(kind: Kind) -> Kind {
    Kind { nets: true, add: ADD_NET, test: &[Nomatch], ..kind }
}
const fn bitmap(
    (name, alias): (&'static str, &'static str),
    families: Families,
    parts: &'static [Part],
    create: &'static [Arg],
    (need, more, test_more): (u32, u32, u32),
) -> Kind {
    Kind { families, ..hash((name, alias, 3), parts, create, (need, more, test_more)) }
}

const PP: u32 = PROTO | PORT;

/// All types, by name.
pub static KINDS: &[Kind] = &[
    bitmap(
        ("bitmap:ip", "ipmap"),
        Families::Ip,
        &[Part::Ip],
        &[IpRange, Netmask, Timeout, Counters, Comment, Skbinfo, FromIp, ToIp, Network],
        (IP, IP_TO | CIDR, 0),
    ),
    Kind {
        last_optional: true,
        ..bitmap(
            ("bitmap:ip,mac", "macipmap"),
            Families::Ip,
            &[Part::SingleIp, Part::Ether],
            &[IpRange, Timeout, Counters, Comment, Skbinfo, FromIp, ToIp, Network],
            (IP, ETHER, ETHER),
        )
    },
    bitmap(
        ("bitmap:port", "portmap"),
        Families::None,
        &[Part::Port],
        &[PortRange, Timeout, Counters, Comment, Skbinfo, FromPort, ToPort],
        (PORT, PORT_TO, 0),
    ),
    hash(("hash:ip", "iphash", 6), &[Part::Ip4Single6], HASH_IP, (IP, IP_TO | CIDR, IP_TO | CIDR)),
    hash(("hash:ip,mac", "ipmachash", 1), &[Part::Ip4Single6, Part::Ether], HASH, (IP | ETHER, 0, 0)),
    hash(
        ("hash:ip,mark", "ipmarkhash", 3),
        &[Part::Ip4Single6, Part::Mark],
        HASH_IPMARK,
        (IP | MARK, IP_TO | CIDR, IP_TO | CIDR),
    ),
    hash(
        ("hash:ip,port", "ipporthash", 7),
        &[Part::Ip4Single6, Part::ProtoPort],
        HASH_IPPORT,
        (IP | PP, IP_TO | CIDR | PORT_TO, 0),
    ),
    hash(
        ("hash:ip,port,ip", "ipportiphash", 6),
        &[Part::Ip4Single6, Part::ProtoPort, Part::SingleIp2],
        HASH_OLD,
        (IP | PP | IP2, IP_TO | CIDR | PORT_TO, 0),
    ),
    nets(hash(
        ("hash:ip,port,net", "ipportnethash", 8),
        &[Part::Ip4Single6, Part::ProtoPort, Part::Ip4Net6Second],
        HASH_OLD,
        (IP | PP | IP2, IP_TO | CIDR | PORT_TO | CIDR2 | IP2_TO, CIDR2),
    )),
    Kind {
        families: Families::None,
        ..hash(("hash:mac", "machash", 1), &[Part::Ether], HASH_MAC, (ETHER, 0, 0))
    },
    nets(hash(("hash:net", "nethash", 7), &[Part::Ip4Net6], HASH_NET, (IP, CIDR | IP_TO, CIDR))),
    Kind {
        add: ADD_IFACE,
        ..nets(hash(
            ("hash:net,iface", "netifacehash", 8),
            &[Part::Ip4Net6, Part::Iface],
            HASH,
            (IP | IFACE, CIDR | IP_TO, CIDR),
        ))
    },
    nets(hash(
        ("hash:net,net", "netnethash", 4),
        &[Part::Ip4Net6, Part::Ip4Net6Second],
        HASH_NETNET,
        (IP | IP2, CIDR | IP_TO | CIDR2 | IP2_TO, CIDR | CIDR2),
    )),
    nets(hash(
        ("hash:net,port", "netporthash", 8),
        &[Part::Ip4Net6, Part::ProtoPort],
        HASH,
        (IP | PP, PORT_TO | CIDR | IP_TO, CIDR),
    )),
    nets(hash(
        ("hash:net,port,net", "netportnethash", 3),
        &[Part::Ip4Net6, Part::ProtoPort, Part::Ip4Net6Second],
        HASH,
        (IP | PP | IP2, PORT_TO | CIDR | IP_TO | CIDR2 | IP2_TO, CIDR | CIDR2),
    )),
    Kind {
        families: Families::None,
        add: ADD_LIST,
        del: &[Before, After],
        test: &[Before, After],
        ..hash(
            ("list:set", "setlist", 3),
            &[Part::Name],
            &[Size, Timeout, Counters, Comment, Skbinfo],
            (NAME, 0, 0),
        )
    },
];
