//! Elements: addresses and what stands behind their commas.
//!
//! Follows: ipset 7.17 `lib/parse.c` `ipset_parse_elem`, `parse_ip`, `parse_ipaddr`.

use super::kind::Part;
use super::parse::Reader;
use super::value::{self, separator};
use super::{Attributes, Failure, Kind};
use crate::iptables::Family;

/// A name within square brackets, which may have a dash in it.
fn unescaped(text: &str) -> &str {
    text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text)
}

/// Where a range is divided.
fn range_at(text: &str) -> Option<usize> {
    match text.strip_prefix('[') {
        Some(rest) => rest.find("]-").map(|at| at + 2),
        None => separator(text, '-'),
    }
}

impl Reader {
    fn address(&self, text: &str) -> Result<u128, Failure> {
        let family = self.family.unwrap_or_default();
        let text = unescaped(text);
        family.parse(text).ok_or_else(|| {
            let which = if family == Family::Ip { "IPv4" } else { "IPv6" };
            self.report(&format!("Syntax error: cannot parse {text}: resolving to {which} address failed"))
                .advise("an address in numbers, of the set's family: names are not looked up")
        })
    }

    /// `parse_ipaddr`.
    fn addresses(&self, second: bool, text: &str, out: &mut Attributes) -> Result<(), Failure> {
        let most = self.family.unwrap_or_default().bits() as u8;
        let (mut cidr, mut to, mut from) = (None, None, text);
        if let Some(at) = separator(text, '/') {
            cidr = Some(value::cidr(&text[at + 1..], 0, most).map_err(|e| self.report(&e))?);
            from = &text[..at];
        } else if let Some(at) = range_at(text) {
            (from, to) = (&text[..at], Some(&text[at + 1..]));
        }
        let ip = self.address(from)?;
        let ip_to = to.map(|to| self.address(to)).transpose()?;
        match second {
            false => (out.ip, out.cidr, out.ip_to) = (Some(ip), cidr.or(out.cidr), ip_to.or(out.ip_to)),
            true => (out.ip2, out.cidr2, out.ip2_to) = (Some(ip), cidr, ip_to),
        }
        Ok(())
    }

    /// `ipset_parse_single_ip`.
    pub(super) fn single_ip(&self, second: bool, text: &str, out: &mut Attributes) -> Result<(), Failure> {
        let host = if self.family == Some(Family::Ip6) { "/128" } else { "/32" };
        let prefix = separator(text, '/').is_some_and(|at| &text[at..] != host);
        if range_at(text).is_some() || prefix {
            return Err(self.report(&format!("Syntax error: plain IP address must be supplied: {text}")));
        }
        self.addresses(second, text, out)
    }

    /// `ipset_parse_netrange`.
    pub(super) fn net_range(&self, text: &str, out: &mut Attributes) -> Result<(), Failure> {
        if range_at(text).is_none() && separator(text, '/').is_none() {
            let words = format!("Syntax error: IP/cidr or IP-IP range must be specified: {text}");
            return Err(self.report(&words));
        }
        self.addresses(false, text, out)
    }

    /// `ipset_parse_net`.
    pub(super) fn net(&self, text: &str, out: &mut Attributes) -> Result<(), Failure> {
        if range_at(text).is_some() || separator(text, '/').is_none() {
            return Err(self.report(&format!("Syntax error: IP/netblock must be supplied: {text}")));
        }
        self.addresses(false, text, out)
    }

    /// Addresses of IPv4, or an address or prefix of IPv6.
    fn ip4_net6(&self, second: bool, text: &str, out: &mut Attributes) -> Result<(), Failure> {
        if self.family == Some(Family::Ip6) && range_at(text).is_some() {
            let words = format!("Syntax error: IP address or IP/cidr must be specified: {text}");
            return Err(self.report(&words).advise("ranges are for IPv4 alone"));
        }
        self.addresses(second, text, out)
    }

    fn part(&self, part: Part, text: &str, out: &mut Attributes) -> Result<(), Failure> {
        match part {
            Part::Ip => self.addresses(false, text, out),
            Part::SingleIp => self.single_ip(false, text, out),
            Part::SingleIp2 => self.single_ip(true, text, out),
            Part::Ip4Single6 if self.family == Some(Family::Ip6) => self.single_ip(false, text, out),
            Part::Ip4Single6 => self.addresses(false, text, out),
            Part::Ip4Net6 => self.ip4_net6(false, text, out),
            Part::Ip4Net6Second => self.ip4_net6(true, text, out),
            Part::ProtoPort => self.proto_port(text, out),
            Part::Port => self.tcp_udp_port(text, out),
            Part::Ether => {
                let words =
                    || self.report(&format!("Syntax error: cannot parse '{text}' as ethernet address"));
                out.ether = Some(value::ether(text).ok_or_else(words)?);
                Ok(())
            }
            Part::Mark => {
                let mark = value::number(text, 0, u32::MAX.into()).map_err(|e| self.report(&e))?;
                out.mark = Some(mark as u32);
                Ok(())
            }
            Part::Iface => {
                let (physdev, name) = match text.strip_prefix("physdev:") {
                    Some(name) => (true, name),
                    None => (false, text),
                };
                if name.len() > 15 {
                    let words = format!("Syntax error: interface name '{name}' is longer than 15 characters");
                    return Err(self.report(&words));
                }
                out.physdev = physdev;
                out.iface = Some(name.to_owned());
                Ok(())
            }
            Part::Name => {
                self.check_name(text)?;
                out.name = Some(text.to_owned());
                Ok(())
            }
        }
    }

    /// `ipset_parse_name_compat`: `SET,before,SET`.
    fn name_compat(&self, text: &str, out: &mut Attributes) -> Result<(), Failure> {
        let parts: Vec<&str> = text.split(',').collect();
        match parts[..] {
            [name, side @ ("before" | "after"), reference] => {
                self.check_name(name)?;
                self.check_name(reference)?;
                (out.name, out.nameref) = (Some(name.to_owned()), Some(reference.to_owned()));
                out.before = side == "before";
                Ok(())
            }
            _ => Err(self.report("you must specify elements as setname,[before|after],setname")),
        }
    }

    /// `ipset_parse_elem`.
    pub(super) fn elem(&self, kind: &Kind, text: &str, out: &mut Attributes) -> Result<(), Failure> {
        let count = kind.parts.len();
        let wrong = |words: String| Err(self.report(&format!("Syntax error: {words}")));
        let split =
            |text: &str| separator(text, ',').map(|at| (text[..at].to_owned(), text[at + 1..].to_owned()));
        let (first, second) = match split(text) {
            None if count > 1 && !kind.last_optional => {
                return wrong(format!("Second element is missing from {text}."));
            }
            None => (text.to_owned(), None),
            Some(_) if count == 1 => {
                if kind.parts[0] == Part::Name {
                    return self.name_compat(text, out);
                }
                let name = kind.name;
                return wrong(format!("Elem separator in {text}, but settype {name} supports none."));
            }
            Some((first, rest)) => (first, Some(rest)),
        };
        let (second, third) = match second.as_deref().and_then(split) {
            Some(_) if count == 2 => {
                let name = kind.name;
                return wrong(format!("Two elem separators in {text}, but settype {name} supports one."));
            }
            Some((second, third)) => (Some(second), Some(third)),
            None if count > 2 => return wrong(format!("Third element is missing from {text}.")),
            None => (second, None),
        };
        if third.as_deref().is_some_and(|t| separator(t, ',').is_some()) {
            let name = kind.name;
            return wrong(format!("Three elem separators in {text}, but settype {name} supports two."));
        }
        for (part, text) in kind.parts.iter().zip([Some(first), second, third]) {
            if let Some(text) = text {
                self.part(*part, &text, out)?;
            }
        }
        Ok(())
    }
}
