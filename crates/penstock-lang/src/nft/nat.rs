//! `snat`, `dnat`, `masquerade`, `redirect`: read, and kept as `nft list` writes them.
//!
//! Follows: nftables 1.0.6 `parser_bison.y` `nat_stmt`, `evaluate.c` `stmt_evaluate_nat`, `statement.c` `nat_stmt_print`.

use super::context::Known;
use super::cursor::{Parsed, Parser};
use super::data::{Family, Statement};
use super::lex::Token;
use super::{Fault, Pos};
use crate::services;
use std::fmt::Write;
use std::net::IpAddr;

fn not_understood<T>(pos: Pos) -> Parsed<T> {
    Err(Fault::new(pos, "syntax error, unexpected string", "addresses and ports alone are understood here"))
}

/// What may stand behind (`nf_nat_flag`).
const FLAGS: [&str; 3] = ["random", "fully-random", "persistent"];

fn name(addr: IpAddr) -> &'static str {
    if addr.is_ipv6() { "ip6" } else { "ip" }
}

impl Parser {
    /// What stands behind `word`, which stands at `at`.
    pub(super) fn nat(&mut self, word: &str, at: Pos, family: Family, known: &Known) -> Parsed<Statement> {
        let within = match family {
            Family::Ip => Some("ip"),
            Family::Ip6 => Some("ip6"),
            _ => known.carries(),
        };
        let takes_addresses = matches!(word, "snat" | "dnat");
        let said = ["ip", "ip6"].into_iter().find(|f| takes_addresses && self.take_word(f));
        if let (Some(of), Some(within)) = (said, within)
            && of != within
        {
            let message = format!(
                "conflicting protocols specified: {within} vs. {of}. You must specify ip or ip6 family in nat statement"
            );
            return Err(Fault::new(at, message, "one packet has one of them"));
        }
        let prefix = takes_addresses && self.take_word("prefix");
        let (mut addresses, mut net, mut ports) = (Vec::new(), String::new(), None);
        let to = self.take_word("to");
        let begins = match self.peek() {
            Token::Number(_) | Token::Sign("[" | ":" | "{") => true,
            Token::Word(w) => !FLAGS.contains(&w.as_str()),
            _ => false,
        };
        let address = takes_addresses && begins;
        if to || address {
            self.expand()?;
            let bare = matches!(self.peek(), Token::Number(_)) && !takes_addresses;
            if !self.is_sign(":") && !bare {
                let pos = self.pos();
                let Some(of) = said.or(within) else {
                    let message = "ip or ip6 must be specified with address for inet tables.";
                    let of = match self.nat_address() {
                        Ok(IpAddr::V6(_)) => "ip6",
                        _ => "ip",
                    };
                    return Err(Fault::new(at, message, &format!("{word} {of} to …")));
                };
                if !matches!(self.peek(), Token::Number(_) | Token::Sign("["))
                    && !matches!(self.peek(), Token::Word(w) if w.parse::<IpAddr>().is_ok())
                {
                    return Err(super::unread::not_simulated(&format!("{word} to what a map gives"), pos));
                }
                let first = self.nat_address()?;
                addresses.push(first);
                if self.take_sign("-") {
                    addresses.push(self.nat_address()?);
                } else if self.take_sign("/") {
                    net = format!("/{}", self.number()?);
                }
                if addresses.iter().any(|a| name(*a) != of) {
                    let message = "Could not resolve hostname: Address family for hostname not supported";
                    return Err(Fault::new(pos, message, &format!("an address of {of}")));
                }
            }
            if bare || self.take_sign(":") {
                let pos = self.pos();
                if !known.has_transport() {
                    let message = "transport protocol mapping is only valid after transport protocol match";
                    return Err(Fault::new(pos, message, "e.g. tcp dport 80 before it"));
                }
                let first = self.nat_port()?;
                let last = if self.take_sign("-") { Some(self.nat_port()?) } else { None };
                ports = Some((first, last));
            }
        }
        let mut out = word.to_owned();
        if let (Some(first), Family::Inet) = (addresses.first(), family) {
            let _ = write!(out, " {}", name(*first));
        }
        if prefix {
            out += " prefix";
        }
        if !addresses.is_empty() || ports.is_some() {
            out += " to ";
        }
        for (n, addr) in addresses.iter().enumerate() {
            let dash = if n > 0 { "-" } else { "" };
            let _ = match addr {
                IpAddr::V6(a) if ports.is_some() => write!(out, "{dash}[{a}]"),
                a => write!(out, "{dash}{a}"),
            };
        }
        out += &net;
        if let Some((first, last)) = ports {
            let _ = write!(out, ":{first}");
            if let Some(last) = last {
                let _ = write!(out, "-{last}");
            }
        }
        let mut flags = Vec::new();
        while let Token::Word(w) = self.peek().clone()
            && FLAGS.contains(&w.as_str())
        {
            self.next();
            flags.push(w);
            self.take_sign(",");
        }
        if !flags.is_empty() {
            let _ = write!(out, " {}", flags.join(","));
        }
        Ok(Statement::Nat(out))
    }
    /// An address, one of IPv6 in brackets or without.
    fn nat_address(&mut self) -> Parsed<IpAddr> {
        self.expand()?;
        let bracket = self.pos();
        let brackets = self.take_sign("[");
        let pos = self.pos();
        let found = match self.next() {
            Token::Word(w) | Token::Number(w) => w.parse::<IpAddr>().ok(),
            _ => None,
        };
        match found {
            Some(IpAddr::V4(_)) if brackets => {
                Err(Fault::new(bracket, "syntax error, unexpected '['", "brackets are for IPv6"))
            }
            Some(addr) if brackets => self.sign("]", "']'").map(|()| addr),
            Some(addr) => Ok(addr),
            None => not_understood(pos),
        }
    }
    fn nat_port(&mut self) -> Parsed<u16> {
        self.expand()?;
        let pos = self.pos();
        let found = match self.next() {
            Token::Word(w) | Token::Number(w) => w.parse().ok().or_else(|| services::port(&w)),
            _ => None,
        };
        found.map_or_else(|| not_understood(pos), Ok)
    }
}
