//! Statements that only do: `limit`, `log`, `reject`, translation of addresses, TCP options.

use super::context::Known;
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

    /// What stands behind `log`, kept as `nft list` writes it (`log_stmt_print`).
    pub(super) fn log(&mut self) -> Parsed<Statement> {
        const LEVELS: [&str; 9] =
            ["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "audit"];
        const FLAGS: [(&str, &str); 5] = [
            ("tcp sequence", "sequence"),
            ("tcp options", "options"),
            ("ip options", "options"),
            ("skuid", ""),
            ("ether", ""),
        ];
        let (mut prefix, mut level, mut group) = (None, None, None);
        let mut numbers: [Option<u64>; 2] = [None, None];
        let mut flags = [false; 5];
        loop {
            let at = self.pos();
            if self.take_word("prefix") {
                prefix = Some(self.comment()?);
            } else if self.take_word("level") {
                let pos = self.pos();
                let (word, _) = self.word()?;
                let Some(known) = LEVELS.iter().find(|l| **l == word) else {
                    return Err(Fault::new(pos, "invalid log level", &LEVELS.join(" ")));
                };
                if group.is_some() {
                    return Err(exclusive(at));
                }
                level = Some(*known);
            } else if self.take_word("group") {
                if level.is_some() {
                    return Err(exclusive(at));
                }
                group = Some(self.number()?);
            } else if self.take_word("snaplen") {
                numbers[0] = Some(self.number()?);
            } else if self.take_word("queue-threshold") {
                numbers[1] = Some(self.number()?);
            } else if self.take_word("flags") {
                if self.take_word("all") {
                    flags = [true; 5];
                } else if self.take_word("tcp") {
                    loop {
                        let (word, pos) = self.word()?;
                        match FLAGS[..2].iter().position(|f| f.1 == word) {
                            Some(at) => flags[at] = true,
                            None => {
                                let message =
                                    "syntax error, unexpected string, expecting options or sequence";
                                return Err(Fault::new(pos, message, "sequence, options"));
                            }
                        }
                        if !self.take_sign(",") {
                            break;
                        }
                    }
                } else if self.take_word("ip") {
                    if !self.take_word("options") {
                        return self.unexpected("options");
                    }
                    flags[2] = true;
                } else if self.take_word("skuid") {
                    flags[3] = true;
                } else if self.take_word("ether") {
                    flags[4] = true;
                } else {
                    return self.unexpected("");
                }
            } else {
                break;
            }
        }
        let mut out = String::from("log");
        let mut say = |text: String| out.push_str(&text);
        if let Some(prefix) = prefix {
            say(format!(" prefix \"{prefix}\""));
        }
        if let Some(level) = level.filter(|l| *l != "warn") {
            say(format!(" level {level}"));
        }
        if let Some(group) = group {
            say(format!(" group {group}"));
        }
        for (number, word) in numbers.into_iter().zip(["snaplen", "queue-threshold"]) {
            if let Some(number) = number {
                say(format!(" {word} {number}"));
            }
        }
        match flags {
            [true, true, true, true, true] => say(" flags all".to_owned()),
            [true, true, ..] => say(" flags tcp sequence,options".to_owned()),
            [true, false, ..] => say(" flags tcp sequence".to_owned()),
            [false, true, ..] => say(" flags tcp options".to_owned()),
            _ => {}
        }
        if !flags.iter().all(|f| *f) {
            let rest = FLAGS[2..].iter().zip(&flags[2..]).filter(|(_, given)| **given);
            rest.for_each(|(flag, _)| say(format!(" flags {}", flag.0)));
        }
        Ok(Statement::Log(out))
    }

    pub(super) fn reject(&mut self, at: Pos, family: Family, known: &mut Known) -> Parsed<Statement> {
        if !self.take_word("with") {
            // In a table of both families the answer is named (`verbose_print`).
            return Ok(match (family, known.carries()) {
                (Family::Ip6, _) => Statement::Reject("reject".to_owned(), Some(4)),
                (Family::Ip, _) | (_, None) => Statement::Reject("reject".to_owned(), Some(3)),
                (_, Some("ip")) => Statement::Reject("reject with icmp port-unreachable".to_owned(), Some(3)),
                (_, Some(_)) => Statement::Reject("reject with icmpv6 port-unreachable".to_owned(), Some(4)),
            });
        }
        let pos = self.pos();
        let Token::Word(kind) = self.next() else { return self.unexpected("") };
        if kind == "tcp" {
            let reset = self.pos();
            if !self.take_word("reset") {
                return self.unexpected("reset");
            }
            if !known.may_be_tcp() {
                let message = "you cannot use tcp reset with this protocol";
                return Err(Fault::new(at.to(reset), message, "a reset answers TCP alone"));
            }
            known.needs_tcp();
            return Ok(Statement::Reject("reject with tcp reset".to_owned(), None));
        }
        self.take_word("type");
        let place = self.pos();
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
                let of = match kind.as_str() {
                    "icmp" => Some("ip"),
                    "icmpv6" => Some("ip6"),
                    _ => None,
                };
                match (of, family) {
                    (None, Family::Ip | Family::Ip6) => {
                        let message = "abstracted ICMP unreachable not supported";
                        return Err(Fault::new(
                            place,
                            message,
                            "reject with icmp or icmpv6: the table has one family",
                        ));
                    }
                    (Some(of), _) if known.carries().is_some_and(|n| n != of) => {
                        let message = "conflicting protocols specified: ip vs ip6";
                        return Err(Fault::new(place, message, "icmp answers IPv4, icmpv6 IPv6, icmpx both"));
                    }
                    (Some(of), _) => known.needs_answer(of),
                    _ => {}
                }
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

/// `log level` and `log group` in one.
fn exclusive(pos: Pos) -> Fault {
    Fault::new(
        pos,
        "level and group are mutually exclusive",
        "level goes to the kernel's log, group to a program",
    )
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
