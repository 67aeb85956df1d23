//! Tokens to sets, maps and their elements.
//!
//! Follows: nftables 1.0.6 `parser_bison.y` `set_block`, `map_block`, `set_elem_expr`.

use super::context::Known;
use super::cursor::{Parsed, Parser};
use super::data::{Command, Expr, Family, Name, Raw, RawData, RawElement, Set, Type};
use super::dynamic::More;
use super::keys::types;
use super::lex::Token;
use super::{Fault, unread};

impl Parser {
    pub(super) fn set(&mut self, name: Name, create: bool, map: bool) -> Parsed<()> {
        self.sign("{", "'{'")?;
        let mut set = Set::default();
        let (mut elements, mut comment) = (Vec::new(), None);
        loop {
            self.skip_ends();
            if self.take_sign("}") {
                break;
            }
            if self.take_word("type") {
                self.types(&mut set, map)?;
            } else if self.take_word("typeof") {
                self.type_of(&mut set, map)?;
            } else if self.take_word("flags") {
                self.flags(&mut set)?;
            } else if self.take_word("elements") {
                self.sign("=", "'='")?;
                self.expand()?;
                elements = self.elements()?;
            } else if self.take_word("comment") {
                comment = Some(self.comment()?);
            } else if !map && self.take_word("auto-merge") {
                set.auto_merge = true;
            } else if self.take_word("timeout") {
                set.timeout = Some(self.time()?);
                set.timeouts = true;
            } else if !map && self.take_word("gc-interval") {
                set.gc_interval = Some(self.time()?);
            } else if self.take_word("size") {
                set.size = Some(self.number()?.min(u32::MAX.into()) as u32);
            } else if self.take_word("policy") {
                set.memory = self.take_word("memory");
                if !set.memory && !self.take_word("performance") {
                    return self.unexpected("performance or memory");
                }
            } else if let Some(state) = self.state()? {
                set.states.push(state);
            } else {
                return self.unexpected("");
            }
        }
        if set.key.is_empty() {
            return Err(Fault::new(name.pos, "set definition does not specify key", "type inet_service"));
        }
        if set.auto_merge && !set.interval {
            return Err(Fault::new(name.pos, "auto-merge only works with interval sets", "flags interval"));
        }
        self.out.push(Command::AddSet(name, create, set, elements, comment));
        Ok(())
    }

    fn types(&mut self, set: &mut Set, map: bool) -> Parsed<()> {
        loop {
            set.key.push(self.type_name()?);
            if !self.take_sign(".") {
                break;
            }
        }
        if map {
            self.sign(":", "colon")?;
            let pos = self.pos();
            if let Token::Word(object) = self.peek()
                && matches!(object.as_str(), "counter" | "quota" | "limit" | "secmark" | "synproxy")
            {
                return Err(unread::not_simulated(&format!("map of {object}"), pos));
            }
            set.data = Some(self.type_name()?);
        }
        Ok(())
    }

    /// `typeof EXPR [. EXPR …] [: EXPR]`.
    fn type_of(&mut self, set: &mut Set, map: bool) -> Parsed<()> {
        let one = |p: &mut Parser| p.left(Family::Inet, &mut Known::default());
        let mut parts = vec![one(self)?];
        while self.take_sign(".") {
            parts.push(one(self)?);
        }
        let key = if parts.len() == 1 { parts.swap_remove(0) } else { Expr::Concat(parts) };
        set.key = types(&key);
        let mut data = None;
        if map {
            self.sign(":", "colon")?;
            if self.take_word("verdict") {
                set.data = Some(Type::Verdict);
            } else {
                let given = one(self)?;
                set.data = types(&given).first().copied();
                data = Some(given);
            }
        }
        set.type_of = Some(Box::new((key, data)));
        Ok(())
    }

    fn flags(&mut self, set: &mut Set) -> Parsed<()> {
        loop {
            let (flag, pos) = self.word()?;
            match flag.as_str() {
                "interval" => set.interval = true,
                "constant" => set.constant = true,
                "dynamic" => set.dynamic = true,
                "timeout" => set.timeouts = true,
                _ => {
                    let help = "constant, interval, timeout or dynamic";
                    return Err(Fault::new(pos, "syntax error, unexpected string", help));
                }
            }
            if !self.take_sign(",") {
                return Ok(());
            }
        }
    }

    fn type_name(&mut self) -> Parsed<Type> {
        let (name, pos) = self.word()?;
        match Type::named(&name) {
            Some(ty) => Ok(ty),
            None => {
                Err(Fault::new(pos, format!("unknown datatype {name}"), "e.g. ipv4_addr, inet_service, mark"))
            }
        }
    }

    /// `{ a, b : c }`, with newlines between.
    pub(super) fn elements(&mut self) -> Parsed<Vec<RawElement>> {
        self.sign("{", "'{'")?;
        let mut out = Vec::new();
        loop {
            while matches!(self.peek(), Token::Newline) {
                self.at += 1;
            }
            if self.take_sign("}") {
                return Ok(out);
            }
            let key = self.element_key()?;
            let more = self.more()?;
            let data = if self.take_sign(":") {
                match self.verdict()? {
                    Some(verdict) => Some(RawData::Verdict(verdict)),
                    None => Some(RawData::Value(self.combined()?)),
                }
            } else {
                None
            };
            out.push(RawElement { key, data, more });
            while matches!(self.peek(), Token::Newline) {
                self.at += 1;
            }
            if !self.take_sign(",") && !self.is_sign("}") {
                return self.unexpected("comma or '}'");
            }
        }
    }

    fn element_key(&mut self) -> Parsed<Raw> {
        let mut parts = vec![self.combined()?];
        while self.take_sign(".") {
            parts.push(self.combined()?);
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Raw::Concat(parts) })
    }

    /// What an element counts or limits, then its time and comment.
    fn more(&mut self) -> Parsed<Option<Box<More>>> {
        let mut more = More::default();
        while let Some(state) = self.state()? {
            more.states.push(state);
        }
        loop {
            if self.take_word("timeout") {
                more.timeout = Some(self.time()?);
            } else if self.take_word("expires") {
                more.expires = Some(self.time()?);
            } else if self.is_word("comment") {
                self.at += 1;
                more.comment = Some(self.comment()?);
            } else {
                break;
            }
        }
        Ok((more != More::default()).then(|| Box::new(more)))
    }

    /// A time with its units, ms.
    pub(super) fn time(&mut self) -> Parsed<u64> {
        self.expand()?;
        match self.peek().clone() {
            Token::Word(word) | Token::Quoted(word) => match super::time::read(&word) {
                Some(ms) => {
                    self.at += 1;
                    Ok(ms)
                }
                None => {
                    Err(Fault::new(self.pos(), "syntax error, unexpected string", "e.g. 30s, 5m, 1h, 1d"))
                }
            },
            _ => self.unexpected("string"),
        }
    }
}
