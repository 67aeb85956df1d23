//! Match extensions: their options, what they say of wrong ones, and the data they make.

mod conn;
mod data;
mod pace;
mod packet;
mod ports;
mod recent;
mod route;
pub(super) mod set;
mod six;
mod who;

use super::option::{Fault, Opt, ParsedOption, Seen};
use super::{Family, Match};

pub(super) use data::replaced;
pub(super) use packet::dscp_class;
pub(in crate::iptables) use packet::{ICMP_NAMES, ICMP6_NAMES};
pub(in crate::iptables) use ports::TCP_FLAGS;

/// What is known of the rule while its extensions are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub family: Family,
    pub protocol: Option<(u8, bool)>,
    /// 1.4.4.
    pub old: bool,
}

/// An extension: `T` is what it makes.
pub(super) struct Ext<T: 'static> {
    pub name: &'static str,
    /// The one program that has it, or both.
    pub family: Option<Family>,
    pub options: &'static [Opt],
    /// Looks at a value as it is read.
    pub read: fn(&ParsedOption, &Head) -> Result<(), Fault>,
    /// Looks at all of them, before the table of options does.
    pub check: fn(&Seen, &Head) -> Result<(), Fault>,
    /// What it makes, once nothing is wrong.
    pub make: fn(&Seen, &Head) -> T,
}

pub(super) const fn any_value(_: &ParsedOption, _: &Head) -> Result<(), Fault> {
    Ok(())
}
pub(super) const fn anything(_: &Seen, _: &Head) -> Result<(), Fault> {
    Ok(())
}

/// An extension with nothing to look at but its table.
pub(super) const fn ext<T>(
    name: &'static str,
    options: &'static [Opt],
    make: fn(&Seen, &Head) -> T,
) -> Ext<T> {
    Ext { name, family: None, options, read: any_value, check: anything, make }
}

impl<T> Ext<T> {
    pub(super) const fn only(self, family: Family) -> Ext<T> {
        Ext { family: Some(family), ..self }
    }
    pub(super) const fn reads(self, read: fn(&ParsedOption, &Head) -> Result<(), Fault>) -> Ext<T> {
        Ext { read, ..self }
    }
    pub(super) const fn checks(self, check: fn(&Seen, &Head) -> Result<(), Fault>) -> Ext<T> {
        Ext { check, ..self }
    }
}

const TABLES: [&[Ext<Match>]; 10] = [
    conn::MATCHES,
    data::MATCHES,
    pace::MATCHES,
    packet::MATCHES,
    ports::MATCHES,
    recent::MATCHES,
    route::MATCHES,
    set::MATCHES,
    six::MATCHES,
    who::MATCHES,
];

/// The match of this name.
pub(super) fn find(name: &str, family: Family) -> Option<&'static Ext<Match>> {
    let name = match name {
        "icmpv6" | "ipv6-icmp" if family == Family::Ip6 => "icmp6",
        _ => name,
    };
    let mut all = TABLES.iter().flat_map(|t| t.iter());
    all.find(|e| e.name == name && e.family.is_none_or(|f| f == family))
}

/// All there are, by name.
pub(super) fn names(family: Family) -> Vec<&'static str> {
    let all = TABLES.iter().flat_map(|t| t.iter());
    let mut names: Vec<_> = all.filter(|e| e.family.is_none_or(|f| f == family)).map(|e| e.name).collect();
    names.sort_unstable();
    names
}
