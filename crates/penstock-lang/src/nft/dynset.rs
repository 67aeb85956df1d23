//! Tokens to statements that change sets, and to numbers that are drawn or hashed.
//!
//! Follows: nftables 1.0.6 `parser_bison.y` `set_stmt`, `map_stmt`, `meter_stmt_alloc`, `flow_stmt_legacy_alloc`, `numgen_expr`, `hash_expr`.

use super::context::Known;
use super::cursor::{Parsed, Parser};
use super::data::{Expr, Family, Statement, Type};
use super::dynamic::{Dynset, Op};
use super::keys::types;
use super::lex::Token;
use super::{Fault, Pos};

/// Most statements of one element (`NFT_SET_EXPR_MAX`).
const MOST_STATES: usize = 2;
/// The size of a meter that names none.
const SIZE: u32 = 65_535;

impl Parser {
    /// `add @SET { … }`, `set add KEY @SET`, `meter NAME { … }`, `flow table NAME { … }`; `word` stands here.
    pub(super) fn dynset(&mut self, word: &str, family: Family, known: &mut Known) -> Parsed<Statement> {
        let at = self.pos();
        self.next();
        let dynset = match word {
            "meter" => self.meter(family, known)?,
            "flow" => {
                if !self.take_word("table") {
                    return self.unexpected("table");
                }
                self.meter(family, known)?
            }
            "set" => {
                let Token::Word(op) = self.peek().clone() else { return self.unexpected("") };
                let Some(op) = operation(&op) else { return self.unexpected("add or update or delete") };
                self.next();
                let (key, timeout) = self.member(family, known)?;
                let (set, pos) = self.reference()?;
                Dynset {
                    op,
                    set,
                    pos,
                    meter: None,
                    key,
                    data: None,
                    given: None,
                    timeout,
                    states: Vec::new(),
                }
            }
            word => {
                let op = operation(word).unwrap_or(Op::Add);
                let (set, pos) = self.reference()?;
                self.sign("{", "'{'")?;
                let (key, timeout) = self.member(family, known)?;
                let states = self.states(at)?;
                let given = if self.take_sign(":") { Some(self.right_side(family, known)?) } else { None };
                if given.is_some() && self.is_word("timeout") {
                    let help = "the time stands behind the key";
                    return Err(Fault::new(self.pos(), "Data expression timeouts are not supported", help));
                }
                self.sign("}", "'}'")?;
                Dynset { op, set, pos, meter: None, key, data: None, given, timeout, states }
            }
        };
        Ok(Statement::Dynset(Box::new(dynset)))
    }

    fn meter(&mut self, family: Family, known: &mut Known) -> Parsed<Dynset> {
        self.expand()?;
        let (set, pos) = self.word()?;
        let size = if self.take_word("size") { self.number()?.min(u32::MAX.into()) as u32 } else { SIZE };
        self.sign("{", "'{'")?;
        let (key, timeout) = self.member(family, known)?;
        let Some(state) = self.state()? else { return self.unexpected("") };
        self.sign("}", "'}'")?;
        // What has a time gets it anew with each packet (`netlink_gen_meter_stmt`).
        let op = if timeout.is_some() { Op::Update } else { Op::Add };
        let states = vec![state];
        Ok(Dynset { op, set, pos, meter: Some(size), key, data: None, given: None, timeout, states })
    }

    /// `@NAME`.
    fn reference(&mut self) -> Parsed<(String, Pos)> {
        let pos = self.pos();
        match self.peek().clone() {
            Token::Word(word) if word.len() > 1 && word.starts_with('@') => {
                self.next();
                Ok((word[1..].to_owned(), pos))
            }
            _ => self.unexpected("'@'"),
        }
    }

    /// The element's key and its time, ms.
    fn member(&mut self, family: Family, known: &mut Known) -> Parsed<(Expr, Option<u64>)> {
        let mut parts = Vec::new();
        loop {
            let mut part = self.left(family, known)?;
            while let Some(op) = self.operator() {
                let right = self.value()?;
                let key = types(&part);
                part = super::value::folded(op, part, super::value::resolve(&right, &key)?);
            }
            parts.push(part);
            if !self.take_sign(".") {
                break;
            }
        }
        let key = if parts.len() == 1 { parts.swap_remove(0) } else { Expr::Concat(parts) };
        let timeout = if self.take_word("timeout") { Some(self.time()?) } else { None };
        if self.is_word("comment") {
            let help = "a comment stands behind the rule";
            return Err(Fault::new(self.pos(), "Key expression comments are not supported", help));
        }
        Ok((key, timeout))
    }

    fn states(&mut self, at: Pos) -> Parsed<Vec<Statement>> {
        let mut states = Vec::new();
        while let Some(state) = self.state()? {
            states.push(state);
        }
        if states.len() > MOST_STATES {
            return Err(Fault::kernel(at, "Argument list too long", "an element has two of them at most"));
        }
        Ok(states)
    }

    /// `numgen`, `jhash`, `symhash`; `word` stands here.
    pub(super) fn generated(&mut self, word: &str, family: Family, known: &mut Known) -> Parsed<Expr> {
        let at = self.pos();
        self.next();
        let mut random = false;
        let key = match word {
            "numgen" => {
                random = self.take_word("random");
                if !random && !self.take_word("inc") {
                    return self.unexpected("inc or random");
                }
                None
            }
            "jhash" => Some(Box::new(self.member(family, known)?.0)),
            _ => None,
        };
        if !self.take_word("mod") {
            return self.unexpected("mod");
        }
        let modulus = self.number()?.min(u32::MAX.into()) as u32;
        let seed = if word == "jhash" && self.take_word("seed") {
            Some(self.number()?.min(u32::MAX.into()) as u32)
        } else {
            None
        };
        let offset = if self.take_word("offset") { self.number()?.min(u32::MAX.into()) as u32 } else { 0 };
        //= linux v6.12 net/netfilter/nft_numgen.c nft_ng_inc_init, nft_hash.c nft_jhash_init
        if modulus == 0 {
            return Err(Fault::kernel(at, "Numerical result out of range", "mod 1 at least"));
        }
        if offset.checked_add(modulus - 1).is_none() {
            return Err(Fault::kernel(at, "Value too large for defined data type", "a smaller offset"));
        }
        Ok(match word {
            "numgen" => Expr::Numgen { random, modulus, offset },
            _ => Expr::Hash { key, modulus, seed, offset },
        })
    }
}

impl Dynset {
    /// What a map gets, once its type is known.
    ///
    /// # Errors
    /// A value that is none of the type.
    pub fn resolve(&mut self, data: Option<Type>) -> Result<(), Fault> {
        match (&self.given, data) {
            (Some(raw), Some(ty)) => self.data = Some(super::statement::resolve_mixed(raw, &[ty])?),
            (Some(raw), None) => {
                let help = "the set is no map: it takes no value";
                return Err(Fault::new(super::value::place(raw), "Operation not supported", help));
            }
            (None, Some(_)) => {
                let help = "a map takes KEY : VALUE";
                return Err(Fault::kernel(self.pos, "Invalid argument", help));
            }
            (None, None) => {}
        }
        Ok(())
    }
}

fn operation(word: &str) -> Option<Op> {
    [Op::Add, Op::Update, Op::Delete].into_iter().find(|o| o.word() == word)
}

#[cfg(test)]
mod tests {
    use super::super::{Command, Raw, parse};
    use super::*;

    fn one(rule: &str) -> Dynset {
        let text = format!("add rule inet t c {rule}");
        match parse(&text).unwrap_or_else(|f| panic!("{rule}: {}", f.message)).swap_remove(0) {
            Command::AddRule(_, _, _, rule, _) => rule
                .statements
                .into_iter()
                .find_map(|s| match s {
                    Statement::Dynset(d) => Some(*d),
                    _ => None,
                })
                .unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sets_are_changed_in_every_way_it_is_written() {
        let d =
            one("tcp dport 22 update @s { ip saddr timeout 1m30s limit rate over 3/minute counter } drop");
        assert_eq!((d.op, d.set.as_str(), d.timeout, d.states.len()), (Op::Update, "s", Some(90_000), 2));
        let d = one("add @fast {ct id . ct direction limit rate over 100/second} counter jump x");
        assert_eq!(types(&d.key), [Type::CtId, Type::CtDir]);
        let d = one("set update ip saddr timeout 5s @s");
        assert_eq!((d.op, d.timeout), (Op::Update, Some(5000)));
        let d = one("meter m size 9 { ip6 saddr and ffff:ffff:: limit rate 5/second } accept");
        assert_eq!((d.op, d.meter, matches!(d.key, Expr::Op(..))), (Op::Add, Some(9), true));
        assert_eq!(one("flow table f { ip saddr timeout 5s counter }").op, Op::Update);
        assert!(matches!(one("add @m { ip saddr : 5 }").given, Some(Raw::Word(..))));
        for (rule, message) in [
            ("meter m { ip saddr }", "syntax error, unexpected '}'"),
            (
                "add @s { ip saddr counter quota 5 bytes limit rate 1/second }",
                "Could not process rule: Argument list too long",
            ),
            ("add @s { ip saddr comment \"x\" }", "Key expression comments are not supported"),
            ("numgen inc mod 0 1 accept", "Could not process rule: Numerical result out of range"),
        ] {
            assert_eq!(parse(&format!("add rule inet t c {rule}")).unwrap_err().message, message, "{rule}");
        }
    }
}
