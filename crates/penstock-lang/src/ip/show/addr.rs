//! Addresses as `ip address` prints them.

use super::LinkView;
use crate::ip::addr::{AUTOJOIN, HOME, MANAGE_TEMPORARY, NODAD};
use crate::ip::{Family, Form, LinkFilter};
use crate::show::Out;
use std::net::{IpAddr, Ipv4Addr};

/// An address as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressView {
    /// Address.
    pub addr: IpAddr,
    /// Length.
    pub len: u8,
    /// `peer`.
    pub peer: Option<IpAddr>,
    /// `brd`.
    pub broadcast: Option<Ipv4Addr>,
    /// `secondary`.
    pub secondary: bool,
    /// `metric` of its network's route; 0 is not shown.
    pub metric: u32,
    /// `nodad`, `home`, `mngtmpaddr`, `autojoin`: `IFA_F_*`, as [`crate::ip::AddrSpec::flags`].
    pub flags: u32,
    /// `noprefixroute`.
    pub no_prefix_route: bool,
    /// `scope`.
    pub scope: u8,
    /// `label`; IPv6 has none.
    pub label: String,
    /// Seconds it is valid and preferred.
    pub lifetime: (u32, u32),
    /// `deprecated`.
    pub deprecated: bool,
    /// `dynamic`: it was not made to stay.
    pub dynamic: bool,
}

impl AddressView {
    /// `IFA_F_*`.
    fn flags(&self) -> u32 {
        u32::from(self.secondary)
            | if self.dynamic { 0 } else { 0x80 }
            | self.flags
            | if self.no_prefix_route { 0x200 } else { 0 }
            | if self.deprecated { 0x20 } else { 0 }
    }
    /// Whether a filter lets it through.
    pub(super) fn wanted(&self, filter: &LinkFilter) -> bool {
        let family = match filter.family {
            Family::Any => true,
            Family::Inet => self.addr.is_ipv4(),
            Family::Inet6 => self.addr.is_ipv6(),
            Family::Link | Family::Other => false,
        };
        family
            && filter.to.is_none_or(|net| net.contains(self.addr))
            && filter.scope.is_none_or(|s| s == self.scope)
            && filter.label.as_ref().is_none_or(|l| crate::glob::fits(l, &self.label))
            && (filter.flags.0 ^ self.flags()) & filter.flags.1 == 0
    }
}

/// `print_addrinfo`.
pub(super) fn print(out: &mut Out, a: &AddressView, link: &LinkView, form: Form) {
    out.open_object(None);
    if form.brief {
        out.string("local", &a.addr.to_string(), format_args!("{}", a.addr));
        if let Some(peer) = a.peer {
            out.string("address", &peer.to_string(), format_args!(" peer {peer}"));
        }
        out.num("prefixlen", a.len, format_args!("/{} ", a.len));
        if a.metric != 0 {
            out.num("metric", a.metric, format_args!("metric {} ", a.metric));
        }
        out.close_object();
        return;
    }
    if form.oneline {
        out.num("index", link.ifindex, format_args!("{}: ", link.ifindex));
        out.string("dev", &link.name, format_args!("{}", link.name));
    }
    let family = if a.addr.is_ipv4() { "inet" } else { "inet6" };
    out.string("family", family, format_args!("    {family} "));
    out.string("local", &a.addr.to_string(), format_args!("{}", a.addr));
    if let Some(peer) = a.peer {
        out.string("address", &peer.to_string(), format_args!(" peer {peer}"));
    }
    out.num("prefixlen", a.len, format_args!("/{} ", a.len));
    if a.metric != 0 {
        out.num("metric", a.metric, format_args!("metric {} ", a.metric));
    }
    if let Some(brd) = a.broadcast {
        out.string("broadcast", &brd.to_string(), format_args!("brd {brd} "));
    }
    let scope = crate::ip::scope_name(a.scope);
    out.string("scope", &scope, format_args!("scope {scope} "));
    if a.secondary {
        out.flag(if a.addr.is_ipv4() { "secondary" } else { "temporary" }, format_args!("secondary "));
    }
    if a.flags & NODAD != 0 {
        out.flag("nodad", format_args!("nodad "));
    }
    if a.flags & HOME != 0 {
        out.flag("home", format_args!("home "));
    }
    if a.deprecated {
        out.flag("deprecated", format_args!("deprecated "));
    }
    if a.dynamic {
        out.flag("dynamic", format_args!("dynamic "));
    }
    if a.flags & MANAGE_TEMPORARY != 0 {
        out.flag("mngtmpaddr", format_args!("mngtmpaddr "));
    }
    if a.no_prefix_route {
        out.flag("noprefixroute", format_args!("noprefixroute "));
    }
    if a.flags & AUTOJOIN != 0 {
        out.flag("autojoin", format_args!("autojoin "));
    }
    if a.addr.is_ipv4() {
        out.string("label", &a.label, format_args!("{}", a.label));
    }
    if !out.old() {
        out.nl();
        lifetime(out, "valid_life_time", "       valid_lft ", a.lifetime.0, "");
        lifetime(out, "preferred_life_time", " preferred_lft ", a.lifetime.1, "");
    }
    out.text_only(format_args!("\n"));
    out.close_object();
}

fn lifetime(out: &mut Out, key: &str, before: &str, value: u32, after: &str) {
    match value {
        u32::MAX => out.num(key, value, format_args!("{before}forever{after}")),
        0 => out.num(key, value, format_args!("{before}0sec{after}")),
        n => out.num(key, n, format_args!("{before}{n}sec{after}")),
    }
}
