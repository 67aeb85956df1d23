//! Statements that only do: `limit`, `log`, `reject`, translation of addresses, TCP options.

use super::cursor::{Parsed, Parser};
use super::data::{Family, Limit, Statement};
use super::lex::Token;
use super::{Fault, Pos};

impl Parser {
    /// `rate [over] N[ unit]/time [burst N unit]`.
    pub(super) fn limit(&mut self) -> Parsed<Statement> {
        if !self.take_word("rate") {
            return self.unexpected("rate");
        }
        let over = self.take_word("over");
        let at = self.pos();
        let amount = self.number()?;
        let (mut bytes, mut rate) = (false, amount);
        let time = if self.take_sign("/") {
            let pos = self.pos();
            match self.next() {
                Token::Word(w) => (w, pos),
                _ => {
                    return Err(Fault::new(
                        pos,
                        "syntax error, unexpected newline",
                        "second, minute, hour, day or week",
                    ));
                }
            }
        } else if let Token::Word(word) = self.peek().clone()
            && let Some((unit, time)) = word.split_once('/')
        {
            let pos = self.pos();
            self.next();
            bytes = true;
            rate = amount.saturating_mul(size(unit, pos)?);
            (time.to_owned(), pos)
        } else {
            return self.unexpected("/ or string or bytes");
        };
        let per_s = match time.0.as_str() {
            "second" => 1,
            "minute" => 60,
            "hour" => 3600,
            "day" => 86_400,
            "week" => 604_800,
            _ => {
                return Err(Fault::new(
                    time.1,
                    "syntax error, unexpected string",
                    "second, minute, hour, day or week",
                ));
            }
        };
        let mut burst = if bytes { 0 } else { 5 };
        if self.take_word("burst") {
            burst = self.number()?;
            let pos = self.pos();
            if burst == 0 && !bytes {
                return Err(Fault::new(
                    pos,
                    "packet limit burst must be > 0",
                    "burst 5 packets is the default",
                ));
            }
            match self.next() {
                Token::Word(w) if w == "packets" && !bytes => {}
                Token::Word(w) if bytes => burst = burst.saturating_mul(size(&w, pos)?),
                _ => return Err(Fault::new(pos, "syntax error, unexpected string", "packets or bytes")),
            }
        }
        //= linux v6.12 net/netfilter/nft_limit.c nft_limit_init
        if rate == 0 {
            return Err(Fault::kernel(at, "Invalid argument", "a rate above 0"));
        }
        Ok(Statement::Limit(Limit { over, rate, per_s, bytes, burst }))
    }

    pub(super) fn log(&mut self) -> Parsed<Statement> {
        let mut out = String::from("log");
        loop {
            if self.take_word("prefix") {
                out.push_str(&format!(" prefix \"{}\"", self.comment()?));
            } else if self.is_word("level") || self.is_word("group") || self.is_word("snaplen") {
                if let Token::Word(word) = self.next() {
                    let value = match self.next() {
                        Token::Word(v) | Token::Number(v) => v,
                        _ => return self.unexpected("string"),
                    };
                    if (word.as_str(), value.as_str()) != ("level", "warn") {
                        out.push_str(&format!(" {word} {value}"));
                    }
                }
            } else {
                return Ok(Statement::Log(out));
            }
        }
    }

    pub(super) fn reject(&mut self, family: Family) -> Parsed<Statement> {
        if !self.take_word("with") {
            return Ok(Statement::Reject(
                "reject".to_owned(),
                Some(if family == Family::Ip6 { 4 } else { 3 }),
            ));
        }
        let pos = self.pos();
        let Token::Word(kind) = self.next() else { return self.unexpected("") };
        if kind == "tcp" {
            if !self.take_word("reset") {
                return self.unexpected("reset");
            }
            return Ok(Statement::Reject("reject with tcp reset".to_owned(), None));
        }
        self.take_word("type");
        let Token::Word(code) = self.next() else { return self.unexpected("") };
        const IP: [(&str, u8); 7] = [
            ("net-unreachable", 0),
            ("host-unreachable", 1),
            ("prot-unreachable", 2),
            ("port-unreachable", 3),
            ("net-prohibited", 9),
            ("host-prohibited", 10),
            ("admin-prohibited", 13),
        ];
        const X: [(&str, u8); 4] =
            [("no-route", 0), ("port-unreachable", 3), ("host-unreachable", 1), ("admin-prohibited", 13)];
        const IP6: [(&str, u8); 6] = [
            ("no-route", 0),
            ("admin-prohibited", 1),
            ("addr-unreachable", 3),
            ("port-unreachable", 4),
            ("policy-fail", 5),
            ("reject-route", 6),
        ];
        let table: &[(&str, u8)] = match kind.as_str() {
            "icmp" => &IP,
            "icmpx" => &X,
            "icmpv6" => &IP6,
            _ => {
                return Err(Fault::new(
                    pos,
                    "syntax error, unexpected string",
                    "icmp, icmpv6, icmpx or tcp reset",
                ));
            }
        };
        match table.iter().find(|c| c.0 == code) {
            Some((_, number)) => {
                let default = code == "port-unreachable"
                    && (kind == "icmp" && family == Family::Ip || kind == "icmpv6" && family == Family::Ip6);
                let text = if default { "reject".to_owned() } else { format!("reject with {kind} {code}") };
                Ok(Statement::Reject(text, Some(*number)))
            }
            None => Err(Fault::new(pos, format!("Could not parse {kind} code"), "")),
        }
    }

    /// `tcp option maxseg size set rt mtu`, or a number.
    pub(super) fn option(&mut self) -> Parsed<Statement> {
        let pos = self.pos();
        let help = "tcp option maxseg size set rt mtu is understood here, or a number";
        let fault = || Fault::new(pos, "syntax error, unexpected option", help);
        for known in ["tcp", "option", "maxseg", "size", "set"] {
            match self.next() {
                Token::Word(word) if word == known => {}
                _ => return Err(fault()),
            }
        }
        let size = match self.next() {
            Token::Word(word) if word == "rt" && self.is_word("mtu") => {
                self.next();
                "rt mtu".to_owned()
            }
            Token::Number(bytes) if bytes.parse::<u16>().is_ok() => bytes,
            _ => return Err(fault()),
        };
        Ok(Statement::Other(format!("tcp option maxseg size set {size}")))
    }
}

/// `bytes`, `kbytes`, `mbytes`.
pub(super) fn size(unit: &str, pos: Pos) -> Parsed<u64> {
    match unit {
        "bytes" => Ok(1),
        "kbytes" => Ok(1024),
        "mbytes" => Ok(1024 * 1024),
        _ => Err(Fault::new(pos, "Wrong unit format", "bytes, kbytes or mbytes")),
    }
}
