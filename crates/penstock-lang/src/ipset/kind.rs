//! The types of sets: what their elements consist of and which options they take.
//!
//! Follows: ipset 7.17 `lib/ipset_*.c`, the newest revision that Linux 6.12 has of each.

use crate::iptables::Family;

mod table;

pub use table::KINDS;

/// A part of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// An address, range or prefix.
    Ip,
    /// One address.
    SingleIp,
    /// An address, range or prefix of IPv4; one address of IPv6.
    Ip4Single6,
    /// An address, range or prefix of IPv4; an address or prefix of IPv6.
    Ip4Net6,
    /// The second address: one.
    SingleIp2,
    /// The second address: as [`Part::Ip4Net6`].
    Ip4Net6Second,
    /// `[PROTO:]PORT[-PORT]`.
    ProtoPort,
    /// The same of TCP or UDP, whose name is not kept.
    Port,
    /// A hardware address.
    Ether,
    /// A firewall mark.
    Mark,
    /// A device.
    Iface,
    /// A set.
    Name,
}

/// Which families a type has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Families {
    /// IPv4 and IPv6, IPv4 where none is named.
    Both,
    /// IPv4.
    Ip,
    /// None.
    None,
}

/// An option of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arg {
    Family,
    Inet,
    Inet6,
    Hashsize,
    Maxelem,
    Netmask,
    Bitmask,
    Markmask,
    Timeout,
    Counters,
    Comment,
    Forceadd,
    Skbinfo,
    Bucketsize,
    Initval,
    Size,
    Probes,
    Resize,
    Gc,
    IgnoredFrom,
    IgnoredTo,
    IgnoredNetwork,
    IpRange,
    PortRange,
    FromIp,
    ToIp,
    Network,
    FromPort,
    ToPort,
    Nomatch,
    Wildcard,
    Packets,
    Bytes,
    AdtComment,
    Skbmark,
    Skbprio,
    Skbqueue,
    Before,
    After,
}

impl Arg {
    /// Its word.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Arg::Family => "family",
            Arg::Inet => "-4",
            Arg::Inet6 => "-6",
            Arg::Hashsize => "hashsize",
            Arg::Maxelem => "maxelem",
            Arg::Netmask => "netmask",
            Arg::Bitmask => "bitmask",
            Arg::Markmask => "markmask",
            Arg::Timeout => "timeout",
            Arg::Counters => "counters",
            Arg::Comment | Arg::AdtComment => "comment",
            Arg::Forceadd => "forceadd",
            Arg::Skbinfo => "skbinfo",
            Arg::Bucketsize => "bucketsize",
            Arg::Initval => "initval",
            Arg::Size => "size",
            Arg::Probes => "probes",
            Arg::Resize => "resize",
            Arg::Gc => "gc",
            Arg::IgnoredFrom | Arg::FromIp | Arg::FromPort => "from",
            Arg::IgnoredTo | Arg::ToIp | Arg::ToPort => "to",
            Arg::IgnoredNetwork | Arg::Network => "network",
            Arg::IpRange | Arg::PortRange => "range",
            Arg::Nomatch => "nomatch",
            Arg::Wildcard => "wildcard",
            Arg::Packets => "packets",
            Arg::Bytes => "bytes",
            Arg::Skbmark => "skbmark",
            Arg::Skbprio => "skbprio",
            Arg::Skbqueue => "skbqueue",
            Arg::Before => "before",
            Arg::After => "after",
        }
    }
    /// Whether a value follows.
    pub(super) const fn takes_value(self) -> bool {
        !matches!(
            self,
            Arg::Inet
                | Arg::Inet6
                | Arg::Counters
                | Arg::Comment
                | Arg::Forceadd
                | Arg::Skbinfo
                | Arg::Nomatch
                | Arg::Wildcard
        )
    }
    /// Whether it is read once only for the family.
    pub(super) const fn is_family(self) -> bool {
        matches!(self, Arg::Family | Arg::Inet | Arg::Inet6)
    }
}

/// What an element may consist of, as bits.
pub(super) mod opt {
    pub const IP: u32 = 1;
    pub const IP_TO: u32 = 1 << 1;
    pub const CIDR: u32 = 1 << 2;
    pub const MARK: u32 = 1 << 3;
    pub const PORT: u32 = 1 << 4;
    pub const PORT_TO: u32 = 1 << 5;
    pub const ETHER: u32 = 1 << 6;
    pub const NAME: u32 = 1 << 7;
    pub const IP2: u32 = 1 << 8;
    pub const CIDR2: u32 = 1 << 9;
    pub const IP2_TO: u32 = 1 << 10;
    pub const PROTO: u32 = 1 << 11;
    pub const IFACE: u32 = 1 << 12;
}

/// A type of sets.
#[derive(PartialEq, Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// The name it had before.
    pub alias: &'static str,
    /// The revision that Linux 6.12 has.
    pub revision: u8,
    /// Its families.
    pub families: Families,
    /// What its elements consist of.
    pub parts: &'static [Part],
    /// The last part may be left out.
    pub last_optional: bool,
    /// Its elements may have `nomatch`, and its prefixes any length.
    pub nets: bool,
    /// Options of `create`, in the order a listing has them.
    pub(super) create: &'static [Arg],
    /// Options of `add`.
    pub(super) add: &'static [Arg],
    /// Options of `del`.
    pub(super) del: &'static [Arg],
    /// Options of `test`.
    pub(super) test: &'static [Arg],
    /// What must be there in an element.
    pub(super) need: u32,
    /// What may be there with `add` and `del` besides.
    pub(super) more: u32,
    /// What may be there with `test` besides.
    pub(super) test_more: u32,
}

impl Kind {
    /// The type of this name.
    pub fn named(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|k| k.name == name || k.alias == name)
    }
    /// The family where none is named.
    pub const fn default_family(&self) -> Option<Family> {
        match self.families {
            Families::Both | Families::Ip => Some(Family::Ip),
            Families::None => None,
        }
    }
    /// Whether elements of another type consist of the same kinds of things (`features`).
    pub fn parts_alike(&self, other: &Kind) -> bool {
        let features = |k: &Kind| {
            let of = |part: &Part| match part {
                Part::Ip | Part::SingleIp | Part::Ip4Single6 | Part::Ip4Net6 => 1u8,
                Part::SingleIp2 | Part::Ip4Net6Second => 2,
                Part::ProtoPort | Part::Port => 4,
                Part::Ether => 8,
                Part::Mark => 16,
                Part::Iface => 32,
                Part::Name => 64,
            };
            (k.parts.iter().map(of).sum::<u8>(), k.nets)
        };
        features(self) == features(other)
    }
    /// Whether it is a hash.
    pub fn is_hash(&self) -> bool {
        self.name.starts_with("hash:")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_stand_by_name_and_are_found_by_both() {
        assert!(KINDS.windows(2).all(|w| w[0].name < w[1].name));
        assert_eq!(Kind::named("nethash").map(|k| k.name), Some("hash:net"));
        assert_eq!(Kind::named("hash:net").map(|k| k.name), Some("hash:net"));
        assert!(Kind::named("hash:nets").is_none());
    }
}
