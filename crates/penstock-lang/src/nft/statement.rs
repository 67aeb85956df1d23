//! Tokens to a rule's statements.
//!
//! Follows: nftables 1.0.6 `parser_bison.y` `rule`, `evaluate.c` `stmt_evaluate`, `proto_ctx_update`.

use super::context::Known;
use super::cursor::{Parsed, Parser};
use super::data::{Compare, Expr, Family, FibResult, Op, Raw, Rule, Statement, Type, Verdict, fib};
use super::keys::{BARE, CT, FIELDS, META, META_KEYS, source_type, types};
use super::lex::Token;
use super::value::{anonymous, elements, place, resolve};
use super::{Fault, Pos};

impl Parser {
    /// A rule up to its end.
    pub(super) fn rule(&mut self, family: Family) -> Parsed<Rule> {
        let mut rule = Rule::default();
        let mut known = Known::of(family);
        if self.at_end() {
            return self.unexpected("");
        }
        while !self.at_end() {
            self.expand()?;
            if self.is_word("comment") && !rule.statements.is_empty() {
                self.next();
                rule.comment = Some(self.comment()?);
                break;
            }
            if self.is_word("comment") {
                return self.unexpected("");
            }
            if !rule.statements.is_empty() && !matches!(self.peek(), Token::Word(_)) {
                return self.unexpected("end of file or newline or semicolon");
            }
            let pos = self.pos();
            let read = self.statement(family, &mut known);
            // What is no statement at all is said first, what it would mean is not looked at (`rule_evaluate`).
            let is_one = read.as_ref().map_or_else(|f| !f.message.starts_with("syntax error"), |_| true);
            if known.over && is_one {
                let message = "Statement after terminal statement has no effect";
                return Err(Fault::new(pos, message, "take it off"));
            }
            let statement = read?;
            known.over = terminal(&statement);
            if let Some(statement) = kept(statement, family) {
                rule.statements.push(statement);
            }
        }
        if let Some(first) = known.first.take() {
            rule.statements.insert(0, first);
        }
        Ok(rule)
    }

    /// A verdict, where one stands here.
    pub(super) fn verdict(&mut self) -> Parsed<Option<Verdict>> {
        let Token::Word(word) = self.peek().clone() else { return Ok(None) };
        let plain = match word.as_str() {
            "accept" => Verdict::Accept,
            "drop" => Verdict::Drop,
            "continue" => Verdict::Continue,
            "return" => Verdict::Return,
            "jump" | "goto" => {
                self.next();
                self.expand()?;
                let Token::Word(chain) = self.peek().clone() else { return self.unexpected("'{'") };
                self.next();
                return Ok(Some(if word == "jump" { Verdict::Jump(chain) } else { Verdict::Goto(chain) }));
            }
            _ => return Ok(None),
        };
        self.next();
        Ok(Some(plain))
    }

    fn statement(&mut self, family: Family, known: &mut Known) -> Parsed<Statement> {
        if let Some(verdict) = self.verdict()? {
            return Ok(Statement::Verdict(verdict));
        }
        let Token::Word(word) = self.peek().clone() else { return self.unexpected("") };
        match word.as_str() {
            "counter" | "limit" | "quota" => match self.object_named(&word)? {
                Some(object) => Ok(object),
                None => self.state().map(|s| s.unwrap_or(Statement::Counter(0, 0))),
            },
            "ct" if matches!(self.peek_after(), Token::Word(w) if w == "count") => {
                self.state().map(|s| s.unwrap_or(Statement::Counter(0, 0)))
            }
            "add" | "update" | "delete" | "set" | "meter" | "flow" => self.dynset(&word, family, known),
            "log" => {
                self.next();
                self.log()
            }
            "reject" => {
                let pos = self.pos();
                self.next();
                self.reject(pos, family, known)
            }
            "notrack" => {
                self.next();
                Ok(Statement::Notrack)
            }
            "masquerade" | "redirect" | "snat" | "dnat" => {
                let pos = self.pos();
                self.next();
                self.nat(&word, pos, family, known)
            }
            "tcp" if matches!(self.peek_after(), Token::Word(w) if w == "option") => self.option(),
            _ => self.comparison(family, known),
        }
    }

    /// `EXPR [how] VALUE`, `EXPR set VALUE`, `EXPR vmap MAP`.
    fn comparison(&mut self, family: Family, known: &mut Known) -> Parsed<Statement> {
        let mut left = self.left(family, known)?;
        if self.is_sign(".") {
            let mut parts = vec![left];
            while self.take_sign(".") {
                parts.push(self.left(family, known)?);
            }
            left = Expr::Concat(parts);
        }
        if self.take_word("set") {
            return self.set_statement(left, family, known);
        }
        let key = types(&left);
        while let Some(op) = self.operator() {
            let right = self.value()?;
            left = super::value::folded(op, left, resolve(&right, &key)?);
        }
        if self.take_word("vmap") {
            if let Token::Word(name) = self.peek().clone()
                && let Some(name) = name.strip_prefix('@')
            {
                let at = self.pos();
                self.next();
                return Ok(Statement::Vmap(left, Expr::Named(name.to_owned(), at)));
            }
            let list = elements(&self.elements()?, &key, Some(Type::Verdict))?;
            return Ok(Statement::Vmap(left, Expr::Set(anonymous(&key, Some(Type::Verdict), list))));
        }
        if let Expr::Fib { by, result: FibResult::Oif } = left
            && (self.is_word("exists") || self.is_word("missing"))
        {
            left = Expr::Fib { by, result: FibResult::Present };
        }
        let key = types(&left);
        // Flags take `& mask == value` as a value and its mask.
        let mut how = self.compare();
        let at = self.pos();
        let raw = self.value_list(key.first().copied())?;
        let mut right = resolve(&raw, &key)?;
        if matches!(&raw, Raw::Set(written, _) if written.len() == 1) {
            right = alone(right);
        }
        // Device 0: there is none.
        if let (Expr::Fib { by, result: FibResult::Oif }, Expr::Name(name)) = (&left, &right)
            && name == "0"
        {
            (left, right) =
                (Expr::Fib { by: *by, result: FibResult::Oif }, Expr::Value(0, Type::Integer(32)));
        }
        if let (Expr::Op(Op::And, inner, mask), Expr::Flags(v, None, ty)) = (&left, &right)
            && let Expr::Flags(m, None, _) = mask.as_ref()
            && ty.is_flags()
            && matches!(how, Compare::Is | Compare::Equal | Compare::Not)
        {
            right = Expr::Flags(*v, Some(*m), *ty);
            left = inner.as_ref().clone();
        } else if self.take_sign("/") {
            let mask = self.value_list(key.first().copied())?;
            if !matches!(mask, Raw::List(_)) {
                return self.unexpected("comma");
            }
            if let (Expr::Flags(v, None, ty), Expr::Flags(m, None, _)) = (&right, resolve(&mask, &key)?) {
                right = Expr::Flags(*v, Some(m), *ty);
            }
        }
        if how == Compare::Without {
            let place = at.to(place(&raw));
            if matches!(left, Expr::Op(..)) {
                let message = "cannot combine negation with binary expression";
                return Err(Fault::new(place, message, "& (a | b) == 0"));
            }
            match right {
                Expr::Flags(_, None, _) => {}
                Expr::Flags(..) => {
                    return Err(Fault::new(place, "either == or != is allowed", "! a,b, or != a / a,b"));
                }
                _ => {
                    let message = "negation can only be used with singleton bitmask values";
                    return Err(Fault::new(place, message, "! goes before flags: ! a,b"));
                }
            }
        }
        // None of the masked flags, or any of them (`relational_binop_postprocess`).
        if let Expr::Flags(0, Some(mask), ty) = right {
            right = Expr::Flags(mask, None, ty);
            how = if how == Compare::Not { Compare::Is } else { Compare::Without };
        }
        known.learn(&left, how, &right, family);
        Ok(Statement::Match(left, how, right))
    }

    fn set_statement(&mut self, left: Expr, family: Family, known: &mut Known) -> Parsed<Statement> {
        let settable = match &left {
            Expr::Meta(key) => ["mark", "priority", "pkttype", "nftrace"].contains(key),
            Expr::Ct("zone", Some(_)) => {
                return Err(super::unread::not_simulated("ct original zone set", self.pos()));
            }
            Expr::Ct(key, _) => *key == "mark" || *key == "zone",
            Expr::Field(..) => true,
            _ => false,
        };
        if !settable {
            return self.unexpected("");
        }
        let wanted = types(&left);
        let pos = self.pos();
        let raw = self.right_side(family, known)?;
        let mut right = resolve_mixed(&raw, &wanted)?;
        // What is set is shown as it is kept: masks behind one another are one.
        right = kept_masks(right);
        if let (Some(ty), Some(want)) = (source_type(&right), wanted.first())
            && ty != *want
            && !matches!((ty, want), (Type::Integer(_), _))
        {
            let message = format!(
                "datatype mismatch: expected {}, expression has type {}",
                want.described(),
                ty.described()
            );
            return Err(Fault::new(pos, message, "the two sides are of different kinds"));
        }
        Ok(Statement::Set(left, right))
    }

    /// What may be looked at.
    pub(super) fn left(&mut self, family: Family, known: &mut Known) -> Parsed<Expr> {
        self.expand()?;
        let pos = self.pos();
        let Token::Word(word) = self.peek().clone() else { return self.unexpected("") };
        if BARE.contains(&word.as_str()) && META.iter().any(|m| m.0 == word) {
            self.next();
            return Ok(Expr::Meta(META.iter().find(|m| m.0 == word).map_or("mark", |m| m.0)));
        }
        match word.as_str() {
            "meta" => {
                self.next();
                let pos = self.pos();
                let Token::Word(key) = self.peek().clone() else { return self.unexpected("") };
                match META.iter().find(|m| m.0 == key) {
                    Some((key @ "nfproto", _)) if family != Family::Inet => {
                        let at = pos;
                        self.next();
                        let _ = key;
                        Err(Fault::new(at, "meta nfproto is only useful in the inet family", "take it off"))
                    }
                    Some((key, _)) => {
                        self.next();
                        Ok(Expr::Meta(key))
                    }
                    None => {
                        let message = format!("syntax error, unexpected {key}, known keys are {META_KEYS}");
                        Err(Fault::new(pos, message, "mark, priority, iifname, oifname, l4proto, length, …"))
                    }
                }
            }
            "ct" => {
                self.next();
                let mut dir = None;
                if self.take_word("original") {
                    dir = Some(false);
                } else if self.take_word("reply") {
                    dir = Some(true);
                }
                let Token::Word(key) = self.peek().clone() else { return self.unexpected("") };
                match CT.iter().find(|c| c.0 == key) {
                    Some((key, _)) => {
                        self.next();
                        Ok(Expr::Ct(key, dir))
                    }
                    None => self.unexpected(""),
                }
            }
            "numgen" | "jhash" | "symhash" => self.generated(&word, family, known),
            "fib" if matches!(self.peek_after(), Token::Word(_)) => self.fib(),
            header if FIELDS.iter().any(|f| f.0 == header) => {
                self.next();
                let end = self.pos();
                let Token::Word(field) = self.peek().clone() else { return self.unexpected("") };
                match FIELDS.iter().find(|f| f.0 == header && f.1 == field) {
                    Some((header, field, _)) => {
                        self.next();
                        known.header(header, pos.to(end), family)?;
                        let header =
                            if *header == "th" { known.with_ports().unwrap_or(header) } else { header };
                        Ok(Expr::Field(header, field))
                    }
                    None => self.unexpected(""),
                }
            }
            _ if matches!(self.peek_after(), Token::Newline | Token::End) => {
                self.next();
                self.unexpected("")
            }
            _ => Err(Fault::new(
                pos,
                "No symbol type information",
                "this word begins no statement that is understood here",
            )),
        }
    }

    /// `fib saddr . iif oif`.
    fn fib(&mut self) -> Parsed<Expr> {
        let start = self.pos();
        self.next();
        let mut by = 0;
        loop {
            let Token::Word(word) = self.peek().clone() else { return self.unexpected("") };
            let Some((_, bit)) = fib::WORDS.iter().find(|w| w.0 == word) else {
                return self.unexpected("saddr or daddr or mark or iif or oif");
            };
            by |= bit;
            self.next();
            if !self.take_sign(".") {
                break;
            }
        }
        let end = self.pos();
        let result = match self.peek() {
            Token::Word(w) if w == "type" => FibResult::Type,
            Token::Word(w) if w == "oif" => FibResult::Oif,
            Token::Word(w) if w == "oifname" => FibResult::Oifname,
            _ => return self.unexpected("oif or oifname or type"),
        };
        self.next();
        let both = fib::SADDR | fib::DADDR;
        let refuse =
            |message: &str| Err(Fault::new(start.to(end), message, "fib saddr . iif oif missing drop"));
        match by & both {
            0 => refuse("fib: need either saddr or daddr"),
            given if given == both => refuse("fib: saddr and daddr are mutually exclusive"),
            _ => Ok(Expr::Fib { by, result }),
        }
    }

    fn compare(&mut self) -> Compare {
        let how = match self.peek() {
            Token::Sign("==") => Compare::Equal,
            Token::Sign("!=") => Compare::Not,
            Token::Sign("!") => Compare::Without,
            Token::Sign("<") => Compare::Less,
            Token::Sign(">") => Compare::Greater,
            Token::Sign("<=") => Compare::AtMost,
            Token::Sign(">=") => Compare::AtLeast,
            Token::Word(w) => match w.as_str() {
                "eq" => Compare::Equal,
                "ne" => Compare::Not,
                "lt" => Compare::Less,
                "gt" => Compare::Greater,
                "le" => Compare::AtMost,
                "ge" => Compare::AtLeast,
                _ => return Compare::Is,
            },
            _ => return Compare::Is,
        };
        self.next();
        how
    }

    pub(super) fn operator(&mut self) -> Option<Op> {
        let op = match self.peek() {
            Token::Sign("&") => Op::And,
            Token::Sign("|") => Op::Or,
            Token::Sign("^") => Op::Xor,
            Token::Sign("<<") => Op::Left,
            Token::Sign(">>") => Op::Right,
            Token::Word(w) => match w.as_str() {
                "and" => Op::And,
                "or" => Op::Or,
                "xor" => Op::Xor,
                "lshift" => Op::Left,
                "rshift" => Op::Right,
                _ => return None,
            },
            _ => return None,
        };
        self.next();
        Some(op)
    }

    /// The right of `set`: values and what may be looked at, with arithmetic and maps.
    pub(super) fn right_side(&mut self, family: Family, known: &mut Known) -> Parsed<Raw> {
        let one = |p: &mut Parser, known: &mut Known| -> Parsed<Raw> {
            p.expand()?;
            let pos = p.pos();
            if let Token::Word(w) = p.peek()
                && matches!(w.as_str(), "socket" | "osf")
                && matches!(p.peek_after(), Token::Word(_))
            {
                return Err(super::unread::not_simulated(w, pos));
            }
            let looks = matches!(p.peek(), Token::Word(w)
                if ["meta", "ct", "numgen", "jhash", "symhash"].contains(&w.as_str())
                    || BARE.contains(&w.as_str())
                    || FIELDS.iter().any(|f| f.0 == w) && matches!(p.peek_after(), Token::Word(_)));
            if looks { Ok(Raw::Expr(p.left(family, known)?, pos)) } else { p.value() }
        };
        let mut all = one(self, known)?;
        loop {
            if self.take_word("map") {
                let map = match self.peek().clone() {
                    Token::Word(name) if name.starts_with('@') => {
                        let pos = self.pos();
                        self.next();
                        Raw::Named(name[1..].to_owned(), pos)
                    }
                    _ => {
                        let pos = self.pos();
                        Raw::Set(self.elements()?, pos)
                    }
                };
                all = Raw::Map(Box::new(all), Box::new(map));
            } else if self.is_sign(".")
                && let Raw::Expr(first, pos) = &all
            {
                // `ip daddr . th dport map …`: the key of a map, part by part.
                let (mut parts, pos) = (vec![first.clone()], *pos);
                while self.take_sign(".") {
                    parts.push(self.left(family, known)?);
                }
                all = Raw::Expr(Expr::Concat(parts), pos);
            } else if let Some(op) = self.operator() {
                let right = one(self, known)?;
                all = Raw::Op(op, Box::new(all), Box::new(right));
            } else {
                return Ok(all);
            }
        }
    }

    /// A value, or several flags with commas.
    fn value_list(&mut self, ty: Option<Type>) -> Parsed<Raw> {
        let mut first = self.value()?;
        if !ty.is_some_and(Type::is_flags) {
            return Ok(first);
        }
        while let Some(op) = self.operator() {
            first = Raw::Op(op, Box::new(first), Box::new(self.value()?));
        }
        let mut all = vec![first];
        while self.take_sign(",") {
            all.push(self.value()?);
        }
        Ok(if all.len() == 1 { all.swap_remove(0) } else { Raw::List(all) })
    }

    /// An element's part: a value, or several with arithmetic between them (`syn | ack`).
    pub(super) fn combined(&mut self) -> Parsed<Raw> {
        let one = |p: &mut Parser| if p.is_sign("(") { p.value() } else { p.simple() };
        let mut all = one(self)?;
        while let Some(op) = self.operator() {
            let right = one(self)?;
            all = Raw::Op(op, Box::new(all), Box::new(right));
        }
        Ok(all)
    }

    /// `{ … }`, `@name`, `( … )`, or a simple value.
    pub(super) fn value(&mut self) -> Parsed<Raw> {
        self.expand()?;
        let pos = self.pos();
        if self.is_sign("{") {
            let all = self.elements()?;
            return Ok(Raw::Set(all, pos));
        }
        if self.take_sign("(") {
            let mut all = self.value()?;
            while let Some(op) = self.operator() {
                let right = self.value()?;
                all = Raw::Op(op, Box::new(all), Box::new(right));
            }
            self.sign(")", "')'")?;
            return Ok(all);
        }
        if let Token::Word(word) = self.peek()
            && let Some(name) = word.strip_prefix('@')
        {
            let name = name.to_owned();
            self.next();
            return Ok(Raw::Named(name, pos));
        }
        self.simple()
    }

    /// A word, a range, an address with its prefix.
    pub(super) fn simple(&mut self) -> Parsed<Raw> {
        self.expand()?;
        let one = |p: &mut Parser| -> Parsed<Raw> {
            let pos = p.pos();
            let raw = match p.peek().clone() {
                Token::Word(w) => Raw::Word(w, pos, false),
                Token::Quoted(w) => Raw::Word(w, pos, true),
                Token::Number(w) => Raw::Word(w, pos, false),
                _ => return p.unexpected(""),
            };
            p.next();
            Ok(raw)
        };
        let first = one(self)?;
        if self.take_sign("-") {
            let last = one(self)?;
            return Ok(Raw::Range(Box::new(first), Box::new(last)));
        }
        let before = self.pos();
        if self.is_sign("/") && matches!(self.peek_after(), Token::Number(_)) {
            self.next();
            let len = self.number()?;
            let start = place(&first);
            let whole = Pos { to: before.to + len.to_string().len() as u32, ..start };
            return Ok(Raw::Prefix(Box::new(first), len, whole));
        }
        Ok(first)
    }
}

/// In tables of one family its own protocol goes without saying.
fn kept(statement: Statement, family: Family) -> Option<Statement> {
    match (&statement, family) {
        (
            Statement::Match(Expr::Meta("protocol"), Compare::Is | Compare::Equal, Expr::Value(0x0800, _)),
            Family::Ip,
        )
        | (
            Statement::Match(Expr::Meta("protocol"), Compare::Is | Compare::Equal, Expr::Value(0x86dd, _)),
            Family::Ip6,
        ) => None,
        _ => Some(statement),
    }
}

/// A set that was written with one value is the value (`expr_evaluate_set`).
fn alone(right: Expr) -> Expr {
    match right {
        Expr::Set(set) => match set.elements.as_slice() {
            [one] if one.more.is_none() && !matches!(one.key, Expr::Concat(_)) => one.key.clone(),
            _ => Expr::Set(set),
        },
        other => other,
    }
}

/// Whether no packet comes past it (`STMT_F_TERMINAL`).
fn terminal(statement: &Statement) -> bool {
    match statement {
        Statement::Verdict(verdict) => *verdict != Verdict::Continue,
        Statement::Reject(..) | Statement::Nat(_) => true,
        _ => false,
    }
}

/// Values of the wanted type, among expressions of their own.
pub(super) fn resolve_mixed(raw: &Raw, wanted: &[Type]) -> Parsed<Expr> {
    Ok(match raw {
        Raw::Op(op, a, b) => {
            let a = resolve_mixed(a, wanted)?;
            let own = source_type(&a).map_or_else(|| wanted.to_vec(), |t| vec![t]);
            let b = resolve_mixed(b, &own)?;
            super::value::folded(*op, a, b)
        }
        Raw::Map(key, map) => {
            let key = resolve_mixed(key, wanted)?;
            let of = types(&key);
            let map = match map.as_ref() {
                Raw::Set(raw, _) => {
                    let list = elements(raw, &of, wanted.first().copied())?;
                    Expr::Set(anonymous(&of, wanted.first().copied(), list))
                }
                Raw::Named(name, pos) => Expr::Named(name.clone(), *pos),
                other => resolve(other, &of)?,
            };
            Expr::Map(Box::new(key), Box::new(map))
        }
        other => resolve(other, wanted)?,
    })
}

/// `(x & a) | b` is kept as `(x & (a | b)) ^ …` by the kernel and read back so: the mask has the bits of both.
fn kept_masks(e: Expr) -> Expr {
    match e {
        Expr::Op(Op::Or, left, right) => match (*left, *right) {
            (Expr::Op(Op::And, inner, mask), Expr::Value(b, ty)) => match *mask {
                Expr::Value(a, t) => {
                    let mask = Expr::Value(a | b, t);
                    let and = Expr::Op(Op::And, inner, Box::new(mask));
                    Expr::Op(Op::Or, Box::new(and), Box::new(Expr::Value(b, ty)))
                }
                other => Expr::Op(
                    Op::Or,
                    Box::new(Expr::Op(Op::And, inner, Box::new(other))),
                    Box::new(Expr::Value(b, ty)),
                ),
            },
            (left, right) => Expr::Op(Op::Or, Box::new(left), Box::new(right)),
        },
        other => other,
    }
}
