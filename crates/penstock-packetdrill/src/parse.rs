//! From tokens to a script.
//!
//! Follows: google/packetdrill `parser.y`.
//! Differs: packets of UDP and ICMP, headers around a packet (GRE, MPLS, PSP, IP in IP) and the options of Fast Open and MD5 are
//! refused by name.

use crate::lex::{Placed, Token, tokens};
use crate::script::{Action, Call, Event, Expr, Fault, Packet, Script, TcpOption, Tos, When};
use penstock_packet::AccEcn;

/// How deep arguments may stand within each other.
const DEEPEST: u32 = 64;

/// Reads a script; `defines` are words that stand for something else (`--define NAME=VALUE`).
///
/// # Errors
/// What is wrong, and in which line.
pub fn parse(text: &str, defines: &[(String, String)]) -> Result<Script, Fault> {
    let tokens = tokens(text, &mut defines.to_vec())?;
    Parser { tokens, at: 0 }.script()
}

struct Parser {
    tokens: Vec<Placed>,
    at: usize,
}

type Read<T> = Result<T, Fault>;

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|p| &p.token)
    }
    fn peek_at(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead).map(|p| &p.token)
    }
    /// The line of what comes next, or of the last token.
    fn line(&self) -> u32 {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(1, |p| p.line)
    }
    fn fault<T>(&self, message: impl Into<String>) -> Read<T> {
        Err(Fault::new(self.line(), message))
    }
    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at)?.token.clone();
        self.at += 1;
        Some(token)
    }
    /// Takes this character, if it is next.
    fn has(&mut self, c: char) -> bool {
        let is = self.peek() == Some(&Token::Char(c));
        self.at += usize::from(is);
        is
    }
    fn expect(&mut self, c: char) -> Read<()> {
        if self.has(c) { Ok(()) } else { self.fault(format!("{c} is expected, not {}", self.shown())) }
    }
    /// Takes this word, if it is next.
    fn has_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        self.at += usize::from(is);
        is
    }
    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Word(w)) if w == word)
    }
    /// What comes next, for a message.
    fn shown(&self) -> String {
        match self.peek() {
            None => "the end".to_owned(),
            Some(Token::Ellipsis) => "...".to_owned(),
            Some(Token::Int(n)) => n.to_string(),
            Some(Token::Hex(n)) => format!("{n:#x}"),
            Some(Token::Float(_, text)) => text.clone(),
            Some(Token::Word(word)) => word.clone(),
            Some(Token::Str(text)) => format!("\"{text}\""),
            Some(Token::Command(_)) => "a command".to_owned(),
            Some(Token::Code(_)) => "a piece of code".to_owned(),
            Some(Token::Option(name, _)) => format!("--{name}"),
            Some(Token::Char(c)) => c.to_string(),
        }
    }
    /// A decimal number from 0 to `most`.
    fn number(&mut self, most: i64, what: &str) -> Read<i64> {
        match self.peek() {
            Some(&Token::Int(n)) if (0..=most).contains(&n) => {
                self.at += 1;
                Ok(n)
            }
            Some(Token::Int(n)) => self.fault(format!("{what} {n} is out of range (0 to {most})")),
            _ => self.fault(format!("{what}: a number is expected, not {}", self.shown())),
        }
    }

    fn script(mut self) -> Read<Script> {
        let mut script = Script::default();
        while let Some(Token::Option(name, value)) = self.peek().cloned() {
            script.options.push((name, value));
            self.at += 1;
        }
        if let Some(Token::Command(text)) = self.peek().cloned() {
            script.init = Some(text);
            self.at += 1;
        }
        while let Some(token) = self.peek() {
            if let Token::Command(text) = token {
                script.cleanup = Some(text.clone());
                self.at += 1;
                if self.peek().is_some() {
                    return self.fault(format!(
                        "{} stands behind the commands that clean up: an event begins with its time",
                        self.shown()
                    ));
                }
                break;
            }
            let event = self.event()?;
            script.events.push(event);
        }
        match script.events.is_empty() {
            true => self.fault("there is no event in the script"),
            false => Ok(script),
        }
    }

    // ---- Events ----

    fn event(&mut self) -> Read<Event> {
        let line = self.line();
        let when = self.when()?;
        let action = match self.peek() {
            Some(Token::Char('<' | '>')) => Action::Packet(self.packet()?),
            Some(Token::Command(text)) => {
                let text = text.clone();
                self.at += 1;
                Action::Command(text)
            }
            Some(Token::Code(text)) => {
                let text = text.clone();
                self.at += 1;
                Action::Code(text)
            }
            Some(Token::Ellipsis | Token::Word(_)) => Action::Call(self.call()?),
            _ => {
                return self.fault(format!(
                    "a packet, a system call, a command or code is expected, not {}",
                    self.shown()
                ));
            }
        };
        let leaves = matches!(&action, Action::Packet(p) if !p.inbound);
        let fault = |message: &str| Err(Fault::new(line, message));
        match when {
            When::Any if !leaves => fault("* as a time is for packets that leave"),
            When::Between(..) | When::Within(..) if !leaves => {
                fault("a range of times is for packets that leave")
            }
            When::Between(a, b) | When::Within(a, b) if b < a => {
                fault("the range of times ends before it begins")
            }
            _ => Ok(Event { line, when, action }),
        }
    }

    fn when(&mut self) -> Read<When> {
        if self.has('*') {
            return Ok(When::Any);
        }
        let relative = self.has('+');
        let first = self.time()?;
        if !self.has('~') {
            return Ok(if relative { When::After(first) } else { When::At(first) });
        }
        if relative {
            self.expect('+')?;
        }
        let last = self.time()?;
        Ok(if relative { When::Within(first, last) } else { When::Between(first, last) })
    }

    /// A time in seconds, answered in microseconds.
    fn time(&mut self) -> Read<i64> {
        let us = match self.peek() {
            Some(&Token::Float(us, _)) => Some(us),
            Some(&Token::Int(s)) => s.checked_mul(1_000_000),
            _ => return self.fault(format!("a time in seconds is expected, not {}", self.shown())),
        };
        // A year is enough for everybody.
        match us.filter(|us| (0..=31_536_000_000_000).contains(us)) {
            Some(us) => {
                self.at += 1;
                Ok(us)
            }
            None => self.fault(format!("{} is no time a script may have", self.shown())),
        }
    }

    // ---- Packets ----

    fn packet(&mut self) -> Read<Packet> {
        let inbound = self.has('<');
        if !inbound {
            self.expect('>')?;
        }
        let mut p = Packet { inbound, ..Packet::default() };
        for (word, what) in [
            ("ipv4", "a packet within another (ipv4)"),
            ("ipv6", "a packet within another (ipv6)"),
            ("gre", "GRE"),
            ("GREv0", "GRE"),
            ("mpls", "MPLS"),
            ("encap", "PSP"),
        ] {
            if self.is_word(word) {
                return self.fault(format!("{what} is not run here: write the TCP segment alone"));
            }
        }
        self.ip_info(&mut p)?;
        if self.is_word("udp") || self.is_word("icmp") {
            return self.fault(format!("packets of {} are not run here: TCP alone", self.shown()));
        }
        if let (Some(&Token::Int(source)), Some(Token::Char('>')), Some(&Token::Int(target))) =
            (self.peek(), self.peek_at(1), self.peek_at(2))
        {
            let port = |n: i64| {
                u16::try_from(n).map_err(|_| Fault::new(self.line(), format!("port {n} is out of range")))
            };
            p.ports = Some((port(source)?, port(target)?));
            self.at += 3;
        }
        p.flags = self.flags()?;
        p.seq = self.number(u32::MAX.into(), "the first sequence number")? as u32;
        self.expect(':')?;
        let end = self.number(u32::MAX.into(), "the last sequence number")?;
        self.expect('(')?;
        p.len = self.number(65_535, "the payload")? as u32;
        self.expect(')')?;
        if i64::from(p.seq) + i64::from(p.len) != end {
            return self.fault(format!("{}:{end}({}) does not add up", p.seq, p.len));
        }
        if self.has_word("ack") {
            p.ack = self.number(u32::MAX.into(), "the acknowledgement number")? as u32;
        }
        if self.has_word("win") {
            p.window = Some(self.number(65_535, "the window")? as u16);
        }
        if self.is_word("urg") {
            return self.fault("urgent data is not run here");
        }
        p.options = Some(Vec::new());
        if self.has('<') {
            p.options = self.options()?;
        }
        match (inbound, &p.options, p.tos) {
            (true, None, _) => self.fault("<...> is for packets that leave"),
            (true, _, Tos::Ect) => self.fault("[ect01] is for packets that leave"),
            _ => Ok(p),
        }
    }

    /// `[ect0]`, `(tos 0x10)`, `[ttl 64]`.
    fn ip_info(&mut self, p: &mut Packet) -> Read<()> {
        let close = if self.has('[') {
            ']'
        } else if self.has('(') {
            ')'
        } else {
            return Ok(());
        };
        match self.next() {
            Some(Token::Word(word)) => match word.as_str() {
                "noecn" => p.tos = Tos::Ecn(0),
                "ect1" => p.tos = Tos::Ecn(1),
                "ect0" => p.tos = Tos::Ecn(2),
                "ce" => p.tos = Tos::Ecn(3),
                "ect01" => p.tos = Tos::Ect,
                "tos" => match self.next() {
                    Some(Token::Hex(n @ 0..=255)) => p.tos = Tos::Whole(n as u8),
                    _ => return self.fault("tos is a byte in hexadecimal: tos 0x10"),
                },
                "ttl" => p.ttl = Some(self.number(255, "ttl")? as u8),
                "flowlabel" => return self.fault("flow labels are not run here"),
                _ => {
                    return self.fault(format!(
                        "{word} is nothing of the IP header: noecn, ect0, ect1, ect01, ce, tos, ttl"
                    ));
                }
            },
            _ => {
                return self
                    .fault("something of the IP header is expected: noecn, ect0, ect1, ect01, ce, tos, ttl");
            }
        }
        self.expect(close)
    }

    /// `S`, `P.`, `.`, `SEW`, `-`; `.5`, `P5.`: what the ACE field says (RFC 9768).
    fn flags(&mut self) -> Read<u16> {
        if self.has('-') {
            return Ok(0);
        }
        let mut flags = 0;
        let mut some = false;
        if let Some(Token::Word(letters)) = self.peek().cloned() {
            some = true;
            self.at += 1;
            for c in letters.chars() {
                flags |= match c {
                    'F' => 0x01,
                    'S' => 0x02,
                    'R' => 0x04,
                    'P' => 0x08,
                    'U' => return self.fault("urgent data is not run here"),
                    'E' => 0x40,
                    'W' => 0x80,
                    'A' => 0x100,
                    '0'..='7' => (c as u16 - u16::from(b'0')) << 6,
                    _ => return self.fault(format!("{letters}: {c} is no flag (F S R P . E W A)")),
                };
            }
        }
        if let Some(Token::Float(_, text)) = self.peek().cloned() {
            let ace = text.strip_prefix('.').and_then(|n| n.parse::<u16>().ok()).filter(|&n| n < 8);
            let Some(ace) = ace else {
                return self.fault(format!("{text}: the ACE field says 0 to 7: .5"));
            };
            self.at += 1;
            return Ok(flags | 0x10 | ace << 6);
        }
        if self.has('.') {
            return Ok(flags | 0x10);
        }
        if some { Ok(flags) } else { self.fault(format!("flags are expected, not {}", self.shown())) }
    }

    /// What stands between `<` and `>`; `None` is `...`.
    fn options(&mut self) -> Read<Option<Vec<TcpOption>>> {
        if self.peek() == Some(&Token::Ellipsis) {
            self.at += 1;
            self.expect('>')?;
            return Ok(None);
        }
        let mut all = Vec::new();
        let mut bytes = 0;
        loop {
            let Some(Token::Word(word)) = self.next() else {
                return self.fault("a TCP option is expected: nop, eol, mss, wscale, sackOK, sack, TS");
            };
            let option = match word.as_str() {
                "nop" => TcpOption::Nop,
                "eol" => TcpOption::Eol,
                "mss" => TcpOption::Mss(self.number(65_535, "mss")? as u16),
                "wscale" => TcpOption::Wscale(self.number(255, "wscale")? as u8),
                "sackOK" => TcpOption::SackOk,
                "sack" => TcpOption::Sack(self.sack()?),
                "TS" => {
                    let mut part = |name: &str| {
                        if !self.has_word(name) {
                            return self.fault("timestamps are written TS val N ecr N");
                        }
                        self.number(u32::MAX.into(), name).map(|n| n as u32)
                    };
                    TcpOption::Timestamps(part("val")?, part("ecr")?)
                }
                "FO" | "FOEXP" => TcpOption::FastOpen(self.cookie()?, word == "FOEXP"),
                "md5" => return self.fault("MD5 signatures are not run here"),
                "ECN" => TcpOption::AccEcn(self.accurate_ecn()?),
                _ => {
                    return self.fault(format!(
                        "{word} is no TCP option here: nop, eol, mss, wscale, sackOK, sack, TS"
                    ));
                }
            };
            bytes += crate::wire::option_len(&option);
            if bytes > 40 {
                return self.fault("the options of a segment have at most 40 bytes");
            }
            all.push(option);
            if self.has('>') {
                return Ok(Some(all));
            }
            self.expect(',')?;
        }
    }

    /// The digits of a cookie of Fast Open, where there are some.
    fn cookie(&mut self) -> Read<Vec<u8>> {
        let Some(Token::Word(digits)) = self.peek().cloned() else { return Ok(Vec::new()) };
        let pair = |n: usize| digits.get(n..n + 2).and_then(|d| u8::from_str_radix(d, 16).ok());
        let cookie: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(pair).collect();
        let Some(cookie) = cookie else {
            return self.fault(format!("{digits} is no cookie: write an even number of hexadecimal digits"));
        };
        self.at += 1;
        Ok(cookie)
    }

    /// `e1b 1 ceb 0 e0b 1`, or the other way round; fields from the end may be left out.
    fn accurate_ecn(&mut self) -> Read<AccEcn> {
        let order1 = !self.is_word("e0b");
        let names = if order1 { ["e1b", "ceb", "e0b"] } else { ["e0b", "ceb", "e1b"] };
        let (mut counters, mut fields) = ([0; 3], 0);
        for (name, counter) in names.into_iter().zip(&mut counters) {
            if !self.has_word(name) {
                break;
            }
            *counter = self.number(0xff_ffff, name)? as u32;
            fields += 1;
        }
        Ok(AccEcn::new(order1, fields, counters))
    }
    fn sack(&mut self) -> Read<Vec<(u32, u32)>> {
        let mut blocks = Vec::new();
        while matches!(self.peek(), Some(Token::Int(_))) {
            let left = self.number(u32::MAX.into(), "a block's left edge")? as u32;
            self.expect(':')?;
            blocks.push((left, self.number(u32::MAX.into(), "a block's right edge")? as u32));
        }
        match blocks.len() {
            1..=4 => Ok(blocks),
            _ => self.fault("sack has one to four blocks: sack 1001:2001"),
        }
    }

    // ---- System calls ----

    fn call(&mut self) -> Read<Call> {
        let mut ends = None;
        if self.peek() == Some(&Token::Ellipsis) {
            self.at += 1;
            ends = Some(self.time()?);
        }
        let Some(Token::Word(name)) = self.next() else {
            return self.fault("the name of a system call is expected");
        };
        self.expect('(')?;
        let args = self.list(')', 0)?;
        self.expect('=')?;
        let result = self.expr(0)?;
        let mut errno = None;
        if let Some(Token::Word(word)) = self.peek().cloned() {
            errno = Some(word);
            self.at += 1;
        }
        if self.has('(') {
            // What strerror says, or flags: for the reader.
            while !self.has(')') {
                if self.next().is_none() {
                    return self.fault(") is missing");
                }
            }
        }
        Ok(Call { ends, name, args, result, errno })
    }

    /// Expressions up to `close`.
    fn list(&mut self, close: char, depth: u32) -> Read<Vec<Expr>> {
        let mut all = Vec::new();
        if self.has(close) {
            return Ok(all);
        }
        loop {
            all.push(self.expr(depth)?);
            if self.has(close) {
                return Ok(all);
            }
            self.expect(',')?;
        }
    }

    fn expr(&mut self, depth: u32) -> Read<Expr> {
        if depth > DEEPEST {
            return self.fault("arguments stand too deep within each other");
        }
        let mut left = self.plain(depth)?;
        loop {
            if self.has('|') {
                left = Expr::Or(Box::new(left), Box::new(self.plain(depth)?));
            } else if matches!(left, Expr::Word(_) | Expr::Of(..)) && self.has('=') {
                left = Expr::Is(Box::new(left), Box::new(self.expr(depth + 1)?));
            } else {
                return Ok(left);
            }
        }
    }

    fn plain(&mut self, depth: u32) -> Read<Expr> {
        let shown = self.shown();
        match self.next() {
            Some(Token::Ellipsis) => Ok(Expr::Ellipsis),
            Some(Token::Int(n) | Token::Hex(n)) => Ok(Expr::Int(n)),
            Some(Token::Str(mut text)) => {
                while let Some(Token::Str(more)) = self.peek() {
                    text.push_str(more);
                    self.at += 1;
                }
                if self.peek() == Some(&Token::Ellipsis) {
                    self.at += 1;
                }
                Ok(Expr::Str(text))
            }
            Some(Token::Word(word)) if self.has('(') => Ok(Expr::Of(word, self.list(')', depth + 1)?)),
            Some(Token::Word(word)) => Ok(Expr::Word(word)),
            Some(Token::Char('[')) => Ok(Expr::List(self.list(']', depth + 1)?)),
            Some(Token::Char('{')) => Ok(Expr::Fields(self.list('}', depth + 1)?)),
            _ => {
                self.at -= usize::from(self.at > 0);
                self.fault(format!("an argument is expected, not {shown}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Event {
        parse(text, &[]).unwrap().events.remove(0)
    }
    fn fault(text: &str) -> String {
        parse(text, &[]).unwrap_err().message
    }

    #[test]
    fn a_packet_has_its_parts() {
        let Action::Packet(p) =
            one("+.1~+.2 > [ect0] P. 1:1001(1000) ack 7 win 9 <nop,nop,TS val 1 ecr 2>").action
        else {
            panic!("a packet")
        };
        assert_eq!(
            (p.inbound, p.tos, p.flags, p.seq, p.len, p.ack, p.window),
            (false, Tos::Ecn(2), 0x18, 1, 1000, 7, Some(9))
        );
        assert_eq!(p.options, Some(vec![TcpOption::Nop, TcpOption::Nop, TcpOption::Timestamps(1, 2)]));
        let Action::Packet(p) = one("0 < SEW 0:0(0) win 5 <sack 1:2 3:4>").action else { panic!("a packet") };
        assert_eq!((p.inbound, p.flags, p.ack), (true, 0xc2, 0));
        assert_eq!(p.options, Some(vec![TcpOption::Sack(vec![(1, 2), (3, 4)])]));
        let Action::Packet(p) = one("* > R 1:1(0) <...>").action else { panic!("a packet") };
        assert_eq!((p.flags, p.options), (4, None));
        for (text, flags) in [("P.5", 0x158), ("F5.", 0x151), ("EAP.", 0x158), ("WA.", 0x190)] {
            let Action::Packet(p) = one(&format!("0 > {text} 1:1(0) ack 1")).action else {
                panic!("a packet")
            };
            assert_eq!(p.flags, flags, "{text}");
        }
        let Action::Packet(p) = one("0 < . 1:1(0) ack 1 <ECN e0b 7 ceb 8,nop>").action else {
            panic!("a packet")
        };
        let option = AccEcn::new(false, 2, [7, 8, 0]);
        assert_eq!(p.options, Some(vec![TcpOption::AccEcn(option), TcpOption::Nop]));
    }

    #[test]
    fn a_call_has_its_parts() {
        let text = "+0...0.020 poll([{fd=4, events=POLLOUT|POLLIN, revents=POLLOUT}], 1, 1000) = -1 EINTR (Interrupted system call)";
        let Action::Call(c) = one(text).action else { panic!("a call") };
        assert_eq!(
            (c.ends, c.name.as_str(), c.args.len(), c.errno.as_deref()),
            (Some(20_000), "poll", 3, Some("EINTR"))
        );
        assert_eq!(c.result, Expr::Int(-1));
        let Expr::List(fds) = &c.args[0] else { panic!("a list") };
        let Expr::Fields(fields) = &fds[0] else { panic!("fields") };
        assert_eq!(fields[0], Expr::Is(Box::new(Expr::Word("fd".to_owned())), Box::new(Expr::Int(4))));
        let text = "0 sendmsg(4, {msg_name(...)=..., msg_iov(1)=[{..., 40}], msg_flags=0}, MSG_MORE) = 40";
        assert!(matches!(one(text).action, Action::Call(c) if c.args.len() == 3));
    }

    #[test]
    fn a_script_has_its_parts() {
        let text = "--tolerance_usecs=7\n`a\nb`\n0 %{ x = 1 }%\n+1 `c`\n`d`\n";
        let script = parse(text, &[]).unwrap();
        assert_eq!(script.options, [("tolerance_usecs".to_owned(), Some("7".to_owned()))]);
        assert_eq!((script.init.as_deref(), script.cleanup.as_deref()), (Some("a\nb"), Some("d")));
        assert_eq!(
            script.events.iter().map(|e| (e.line, e.when)).collect::<Vec<_>>(),
            [(4, When::At(0)), (5, When::After(1_000_000))]
        );
    }

    #[test]
    fn what_is_wrong_is_told() {
        assert_eq!(fault("0 > P. 1:1000(1000)"), "1:1000(1000) does not add up");
        assert_eq!(fault("0~1 < . 1:1(0)"), "a range of times is for packets that leave");
        assert_eq!(fault("0 < udp (8)"), "packets of udp are not run here: TCP alone");
        assert_eq!(
            fault("0 < S 0:0(0) <FO 1>"),
            "1 is no cookie: write an even number of hexadecimal digits"
        );
        assert_eq!(fault("0 < S 0:0(0) <...>"), "<...> is for packets that leave");
        assert_eq!(fault("0 > .8 1:1(0) ack 1"), ".8: the ACE field says 0 to 7: .5");
        assert_eq!(
            fault("0 < . 1:1(0) ack 1 <ECN e0b 16777216>"),
            "e0b 16777216 is out of range (0 to 16777215)"
        );
        assert_eq!(fault(""), "there is no event in the script");
        assert_eq!(fault(&format!("0 a({}", "[".repeat(100))), "arguments stand too deep within each other");
    }
}
