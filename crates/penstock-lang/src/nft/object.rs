//! Tokens to what counts and limits: statements of an element, and objects of a table.
//!
//! Follows: nftables 1.0.6 `parser_bison.y` `stateful_stmt`, `quota_stmt`, `connlimit_stmt`, `counter_block`, `quota_block`, `limit_block`.

use super::cursor::{Parsed, Parser};
use super::data::{Command, Name, Statement, What};
use super::dynamic::{Kind, Object, Quota};
use super::lex::Token;
use super::{Fault, unread};

impl Parser {
    /// `counter`, `limit`, `quota` or `ct count`, where one stands here.
    pub(super) fn state(&mut self) -> Parsed<Option<Statement>> {
        let Token::Word(word) = self.peek().clone() else { return Ok(None) };
        let state = match word.as_str() {
            "counter" => {
                self.next();
                self.counted()?
            }
            "limit" => {
                self.next();
                self.limit()?
            }
            "quota" => {
                self.next();
                Statement::Quota(self.quota()?)
            }
            "ct" if matches!(self.peek_after(), Token::Word(w) if w == "count") => {
                self.at += 2;
                let over = self.take_word("over");
                Statement::Count { over, count: self.number()?.min(u32::MAX.into()) as u32 }
            }
            _ => return Ok(None),
        };
        Ok(Some(state))
    }

    fn counted(&mut self) -> Parsed<Statement> {
        let (mut packets, mut bytes) = (0, 0);
        if self.take_word("packets") {
            packets = self.number()?;
            if !self.take_word("bytes") {
                return self.unexpected("bytes");
            }
            bytes = self.number()?;
        }
        Ok(Statement::Counter(packets, bytes))
    }

    /// `[over | until] N bytes [used N bytes]`.
    fn quota(&mut self) -> Parsed<Quota> {
        let over = self.take_word("over");
        if !over {
            self.take_word("until");
        }
        let bytes = self.sized()?;
        let used = if self.take_word("used") { self.sized()? } else { 0 };
        Ok(Quota { over, bytes, used })
    }

    /// A number of bytes with its unit.
    fn sized(&mut self) -> Parsed<u64> {
        let number = self.number()?;
        let pos = self.pos();
        match self.peek().clone() {
            Token::Word(unit) => {
                self.next();
                let rate_words = |f: Fault| Fault { message: "Wrong rate format".to_owned(), ..f };
                Ok(number.saturating_mul(super::act::size(&unit, pos).map_err(rate_words)?))
            }
            _ => self.unexpected("string or bytes"),
        }
    }

    /// `counter name X` and its kin, where it is one; `word` stands here.
    pub(super) fn object_named(&mut self, word: &str) -> Parsed<Option<Statement>> {
        if !matches!(self.peek_after(), Token::Word(w) if w == "name") {
            return Ok(None);
        }
        self.at += 2;
        self.expand()?;
        let pos = self.pos();
        let (Token::Word(name) | Token::Quoted(name)) = self.peek().clone() else {
            return self.unexpected("");
        };
        let looks = ["meta", "ct", "numgen", "jhash", "symhash"].contains(&name.as_str())
            || super::keys::FIELDS.iter().any(|f| f.0 == name)
            || super::keys::BARE.contains(&name.as_str());
        if looks && matches!(self.peek(), Token::Word(_)) && matches!(self.peek_after(), Token::Word(_)) {
            return Err(unread::not_simulated(&format!("{word} name … map"), pos));
        }
        self.next();
        Ok(Some(Statement::Object(Kind::named(word).unwrap_or(Kind::Counter), name, pos)))
    }

    /// `add counter NAME …`, or within a table: the words behind the name, with or without braces.
    pub(super) fn object(&mut self, name: Name, create: bool, word: &str) -> Parsed<()> {
        let kind = Kind::named(word).unwrap_or(Kind::Counter);
        let (mut object, mut comment) = (None, None);
        if self.take_sign("{") {
            loop {
                self.skip_ends();
                if self.take_sign("}") {
                    break;
                }
                if self.is_word("comment") {
                    self.at += 1;
                    comment = Some(self.comment()?);
                } else {
                    object = Some(self.object_words(kind)?);
                }
            }
        } else if !self.at_end() {
            object = Some(self.object_words(kind)?);
        }
        let object = match (object, kind) {
            (Some(object), _) => object,
            (None, Kind::Counter) => Object::Counter(0, 0),
            (None, Kind::Quota) => return Err(empty(&name, kind, "over 500 mbytes")),
            (None, Kind::Limit) => return Err(empty(&name, kind, "rate 10/second")),
        };
        self.out.push(Command::AddObject(name, create, object, comment));
        Ok(())
    }

    fn object_words(&mut self, kind: Kind) -> Parsed<Object> {
        Ok(match kind {
            Kind::Counter => {
                if !self.is_word("packets") {
                    return self.unexpected("");
                }
                match self.counted()? {
                    Statement::Counter(packets, bytes) => Object::Counter(packets, bytes),
                    _ => return self.unexpected(""),
                }
            }
            Kind::Quota => Object::Quota(self.quota()?),
            Kind::Limit => match self.limit()? {
                Statement::Limit(limit) => Object::Limit(limit),
                _ => return self.unexpected(""),
            },
        })
    }

    /// `reset counter|quota NAME`, `reset counters|quotas`.
    pub(super) fn reset(&mut self) -> Parsed<()> {
        let expected = "counter or counters or quotas or quota";
        let Token::Word(word) = self.peek().clone() else { return self.unexpected(expected) };
        let (kind, all) = match word.as_str() {
            "counter" => (Kind::Counter, false),
            "quota" => (Kind::Quota, false),
            "counters" => (Kind::Counter, true),
            "quotas" => (Kind::Quota, true),
            _ => return self.unexpected(expected),
        };
        self.next();
        let command = if !all {
            Command::ListObject(self.named()?, kind, true)
        } else if self.take_word("table") {
            Command::ResetObjects(kind, None, Some(self.table()?))
        } else {
            Command::ResetObjects(kind, self.family(), None)
        };
        self.out.push(command);
        Ok(())
    }

    /// `list sets|maps|meters|counters|quotas|limits`: of a family, of one `table`, or of every table.
    pub(super) fn list_all(&mut self, what: What) -> Parsed<Command> {
        if self.take_word("table") {
            return Ok(Command::List(what, None, Some(self.table()?)));
        }
        Ok(Command::List(what, self.family(), None))
    }
}

fn empty(name: &Name, kind: Kind, example: &str) -> Fault {
    Fault::kernel(name.pos, "Invalid argument", &format!("a {} says what it is, e.g. {example}", kind.word()))
}
