//! What rules say of translation: `SNAT`, `DNAT`, `MASQUERADE`, `REDIRECT`, `NETMAP`, and nft's `snat`, `dnat`, `masquerade`, `redirect`.

use super::super::conntrack::any;
use super::super::eval::Way;
use super::super::{Fate, Hook, Ports};
use super::{Range, Table, address, of_source};
use crate::six::source;
use penstock_lang::iptables::{Family, Plain};
use penstock_packet::{L3, Skb};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::netfilter) enum Target {
    Snat,
    Dnat,
    Masquerade,
    Redirect,
    Netmap,
}

/// A rule's translation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::netfilter) struct Nat {
    target: Target,
    range: Range,
    /// The packets that nft's statement is for, where it says so.
    family: Option<Family>,
}

fn number(text: &str) -> Option<u16> {
    text.parse().ok()
}

/// `first[-last]`.
fn ports(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((number(first)?, number(last)?))
}

fn addresses(text: &str, family: Family) -> Option<(u128, u128)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((family.parse(first)?, family.parse(last)?))
}

impl Range {
    /// `[address[-address]][:port[-port[/base]]]`, with addresses of IPv6 in brackets where there are ports.
    fn to(&mut self, text: &str, family: Family) -> Option<()> {
        let bare;
        let (addr, port) = match text.rsplit_once(']') {
            Some((inside, rest)) => {
                bare = inside.replace(['[', ']'], "");
                (bare.as_str(), rest.strip_prefix(':'))
            }
            None if text.matches(':').count() == 1 => {
                text.split_once(':').map(|(a, p)| (a, Some(p))).unwrap_or((text, None))
            }
            None => (text, None),
        };
        if !addr.is_empty() {
            self.addresses = Some(addresses(addr, family)?);
        }
        let Some(port) = port else { return Some(()) };
        let (range, base) = match port.split_once('/') {
            Some((range, base)) => (range, Some(number(base)?)),
            None => (port, None),
        };
        (self.ports, self.base) = (Some(ports(range)?), base);
        Some(())
    }
    /// `address[/mask]`, as first and last address.
    fn net(&mut self, text: &str, family: Family) -> Option<()> {
        if family == Family::Ip6 {
            let (addr, len) = text.split_once('/').unwrap_or((text, "128"));
            let (addr, mask) = (family.parse(addr)?, crate::six::mask(len.parse().ok()?));
            self.addresses = Some((addr & mask, addr | !mask));
            return Some(());
        }
        let (addr, mask) = text.split_once('/').unwrap_or((text, "32"));
        let addr = u32::from(addr.parse::<Ipv4Addr>().ok()?);
        let mask = match mask.parse::<u32>() {
            Ok(len) => u32::MAX.checked_shl(32 - len.min(32)).unwrap_or(0),
            Err(_) => u32::from(mask.parse::<Ipv4Addr>().ok()?),
        };
        self.addresses = Some((u128::from(addr & mask), u128::from(addr | !mask)));
        Some(())
    }
}

impl Nat {
    /// Of a target as `iptables-save` has it; `None`: it is another.
    pub(in crate::netfilter) fn of_target(plain: &Plain, family: Family) -> Option<Nat> {
        let target = match plain.name.as_str() {
            "SNAT" => Target::Snat,
            "DNAT" => Target::Dnat,
            "MASQUERADE" => Target::Masquerade,
            "REDIRECT" => Target::Redirect,
            "NETMAP" => Target::Netmap,
            _ => return None,
        };
        let mut range = Range::default();
        let mut words = plain.save.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "--to-source" | "--to-destination" => range.to(words.next()?, family)?,
                "--to-ports" => range.ports = Some(ports(words.next()?)?),
                "--to" => range.net(words.next()?, family)?,
                "--random" | "--random-fully" => range.random = true,
                "--persistent" => range.persistent = true,
                _ => return None,
            }
        }
        Some(Nat { target, range, family: None })
    }
    /// Of a statement as `nft list` has it; `None`: it is not understood.
    pub(in crate::netfilter) fn of_statement(text: &str) -> Option<Nat> {
        let mut words = text.split([' ', ',']).filter(|w| !w.is_empty());
        let target = match words.next()? {
            "snat" => Target::Snat,
            "dnat" => Target::Dnat,
            "masquerade" => Target::Masquerade,
            "redirect" => Target::Redirect,
            _ => return None,
        };
        let mut range = Range::default();
        let mut family = None;
        while let Some(word) = words.next() {
            match word {
                "ip" => family = Some(Family::Ip),
                "ip6" => family = Some(Family::Ip6),
                "to" => {
                    let to = words.next()?;
                    // In a table of one family it goes without saying.
                    let six = |of: Family| { range }.to(to, of).is_some();
                    let of = family.unwrap_or(if six(Family::Ip) { Family::Ip } else { Family::Ip6 });
                    range.to(to, of)?;
                }
                "random" | "fully-random" => range.random = true,
                "persistent" => range.persistent = true,
                _ => return None,
            }
        }
        Some(Nat { target, range, family })
    }

    /// Whether it is done to packets of this family (`nft_nat_inet_eval`).
    pub(in crate::netfilter) fn is_for(&self, skb: &Skb) -> bool {
        match self.family {
            Some(Family::Ip) => matches!(skb.l3, L3::Ipv4(_)),
            Some(Family::Ip6) => matches!(skb.l3, L3::Ipv6(_)),
            None => true,
        }
    }
    /// Does it to a packet's connection, the first of which it is.
    pub(in crate::netfilter) fn apply(&self, skb: &Skb, way: &mut Way<'_>) -> Fate {
        let known = way.known(skb);
        let (family, from, to) = match skb.l3 {
            L3::Ipv4(h) => (Family::Ip, IpAddr::from(h.src), IpAddr::from(h.dst)),
            L3::Ipv6(h) => (Family::Ip6, h.src.into(), h.dst.into()),
            _ => return Fate::Accept,
        };
        let Some(id) = known.id else { return Fate::Accept };
        let mut range = Range { six: family == Family::Ip6, ..self.range };
        let mut source = of_source(way.hook);
        let ports = way.devices.ports;
        match self.target {
            Target::Snat => source = true,
            Target::Dnat => source = false,
            Target::Masquerade => {
                let unspecified = way.tracking.get(Some(id)).is_none_or(|c| c.tuples[0].src == 0);
                if unspecified && family == Family::Ip {
                    return Fate::Accept;
                }
                //= linux v6.12 net/netfilter/nf_nat_masquerade.c nf_nat_masquerade_ipv4, nf_nat_masquerade_ipv6
                let own = |p: Ports<'_>| {
                    let source: IpAddr = match to {
                        IpAddr::V4(_) => p.source()?.into(),
                        IpAddr::V6(to) => source::select(p.devices, to, p.oif)?.into(),
                    };
                    Some((p.oif, source))
                };
                let Some((oif, addr)) = ports.and_then(own) else {
                    return Fate::Drop;
                };
                range.addresses = Some(address(addr));
                if let Some(c) = way.tracking.get_mut(Some(id)) {
                    c.masqueraded = oif;
                }
            }
            Target::Redirect => {
                //= linux v6.12 net/netfilter/nf_nat_redirect.c nf_nat_redirect_ipv4, nf_nat_redirect_ipv6
                let device = ports.and_then(|p| p.devices.get(p.iif));
                let here: Option<IpAddr> = match (way.hook, to) {
                    (Hook::Output, IpAddr::V4(_)) => Some(Ipv4Addr::LOCALHOST.into()),
                    (Hook::Output, IpAddr::V6(_)) => Some(Ipv6Addr::LOCALHOST.into()),
                    (_, IpAddr::V4(_)) => device.and_then(|d| d.primary_address()).map(IpAddr::from),
                    (_, IpAddr::V6(to)) => device.and_then(|d| source::of_scope(d, to)).map(IpAddr::from),
                };
                let Some(here) = here else { return Fate::Drop };
                range.addresses = Some(address(here));
            }
            Target::Netmap => {
                let Some((first, last)) = range.addresses else { return Fate::Accept };
                let host = first ^ last;
                let new = any(if source { from } else { to }) & host | first & !host;
                range.addresses = Some((new, new));
            }
        }
        Table { tracking: way.tracking, dice: way.dice, now: way.now }.set_up(id, &range, source);
        Fate::Accept
    }
}
