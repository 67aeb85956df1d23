//! Tokens to commands.

use super::Fault;
use super::cursor::{Parsed, Parser};
use super::data::{Base, Command, Family, Name, Place, What};
use super::dynamic::Kind;
use super::lex::{Token, tokens};
use super::show::priority_named;
use super::unread;

/// Reads commands, one a line or with semicolons between, and tables written as blocks.
///
/// # Errors
/// The first fault; nothing is to be done then.
pub fn parse(text: &str) -> Result<Vec<Command>, Fault> {
    let tokens = tokens(text)?;
    let mut p = Parser::new(tokens);
    match p.file() {
        Ok(()) => Ok(p.out),
        Err(fault) => Err(unread::named(&p.tokens, fault)),
    }
}

/// Words and signs that a name may stand for.
const MOST_TOKENS: usize = 20_000;

impl Parser {
    fn file(&mut self) -> Parsed<()> {
        loop {
            self.skip_ends();
            if *self.peek() == Token::End {
                return Ok(());
            }
            self.line()?;
            if !matches!(self.peek(), Token::Newline | Token::End) && !self.is_sign(";") {
                return self.unexpected("end of file or newline or semicolon");
            }
        }
    }

    fn line(&mut self) -> Parsed<()> {
        let verb = match self.peek() {
            Token::Word(w) => w.clone(),
            _ => return self.unexpected("string"),
        };
        match verb.as_str() {
            "add" | "create" | "insert" | "replace" | "delete" | "destroy" | "list" | "flush" | "rename"
            | "reset" | "get" => {
                self.at += 1;
                self.verb(&verb)
            }
            "define" | "redefine" => self.define(),
            _ => self.add("add"),
        }
    }

    /// `define NAME = …`: up to the end of the line, or of the braces.
    fn define(&mut self) -> Parsed<()> {
        self.at += 1;
        let (name, _) = self.word()?;
        self.sign("=", "'='")?;
        let start = self.at;
        let mut depth = 0;
        while (depth > 0 || !(matches!(self.peek(), Token::Newline) || self.is_sign(";")))
            && *self.peek() != Token::End
        {
            depth += i32::from(self.is_sign("{")) - i32::from(self.is_sign("}"));
            self.at += 1;
        }
        // What it is made of is known now: a name within its own definition stands for what it was before, or for nothing.
        let mut value = Vec::new();
        for token in self.tokens[start..self.at].iter().filter(|t| t.0 != Token::Newline) {
            let of = match &token.0 {
                Token::Word(word) => word.strip_prefix('$'),
                _ => None,
            };
            match of {
                None => value.push(token.clone()),
                Some(of) => match self.defined.get(of) {
                    Some(tokens) => value.extend(tokens.iter().cloned()),
                    None => {
                        let said = format!("unknown identifier '{of}'");
                        return Err(Fault::new(token.1, said, "define it first"));
                    }
                },
            }
            if value.len() > MOST_TOKENS {
                return Err(Fault::new(token.1, format!("'{name}' stands for too much"), "a set"));
            }
        }
        self.defined.insert(name, value);
        Ok(())
    }

    fn verb(&mut self, verb: &str) -> Parsed<()> {
        match verb {
            "add" | "create" | "insert" | "replace" => self.add(verb),
            "delete" | "destroy" => self.delete(),
            "list" => self.list(),
            "flush" => self.flush(),
            "reset" => self.reset(),
            "get" => {
                let start = self.tokens[self.at - 1].1;
                if !self.take_word("element") {
                    return self.unexpected("element");
                }
                let name = self.named()?;
                if self.is_sign("{") && matches!(self.peek_after(), Token::Sign("}")) {
                    self.at += 1;
                    return self.unexpected("");
                }
                let elements = self.elements()?;
                let end = self.tokens[self.at - 1].1;
                self.out.push(Command::GetElement(name, elements, start.to(end)));
                Ok(())
            }
            _ => {
                if !self.take_word("chain") {
                    return self.unexpected("chain");
                }
                let name = self.named()?;
                let (new, _) = self.word()?;
                self.out.push(Command::RenameChain(name, new));
                Ok(())
            }
        }
    }

    pub(super) fn family(&mut self) -> Option<Family> {
        let Token::Word(word) = self.peek() else { return None };
        let family = Family::ALL.into_iter().find(|f| f.name() == word)?;
        self.at += 1;
        Some(family)
    }
    pub(super) fn table(&mut self) -> Parsed<Name> {
        let family = self.family().unwrap_or(Family::Ip);
        let (table, table_pos) = self.word()?;
        Ok(Name { family, table, table_pos, name: String::new(), pos: table_pos })
    }
    pub(super) fn named(&mut self) -> Parsed<Name> {
        let name = self.table()?;
        let (own, pos) = self.word()?;
        Ok(Name { name: own, pos, ..name })
    }

    fn add(&mut self, verb: &str) -> Parsed<()> {
        let create = verb == "create";
        let object = match self.peek() {
            Token::Word(w) => w.clone(),
            _ => return self.unexpected("string"),
        };
        match object.as_str() {
            "table" if matches!(verb, "add" | "create") => {
                self.at += 1;
                self.add_table(create)
            }
            "chain" if matches!(verb, "add" | "create") => {
                self.at += 1;
                let name = self.named()?;
                self.chain(name, create)
            }
            "set" | "map" if matches!(verb, "add" | "create") => {
                self.at += 1;
                let name = self.named()?;
                self.set(name, create, object == "map")
            }
            "counter" | "quota" | "limit" if matches!(verb, "add" | "create") => {
                self.at += 1;
                let name = self.named()?;
                self.object(name, create, &object)
            }
            "element" if matches!(verb, "add" | "create") => {
                self.at += 1;
                let name = self.named()?;
                let pos = self.pos();
                let elements = self.elements()?;
                self.out.push(Command::AddElement(name, create, elements, pos));
                Ok(())
            }
            _ => {
                self.take_word("rule");
                let name = self.named()?;
                self.rule_command(verb, name)
            }
        }
    }

    fn add_table(&mut self, create: bool) -> Parsed<()> {
        let name = self.table()?;
        if !self.take_sign("{") {
            self.out.push(Command::AddTable(name, create, None));
            return Ok(());
        }
        let at = self.out.len();
        self.out.push(Command::AddTable(name.clone(), create, None));
        // What is defined within holds within.
        let outer = self.defined.clone();
        loop {
            self.skip_ends();
            if self.take_sign("}") {
                self.defined = outer;
                // `nft_cmd_expand`: a rule may name a set that stands below it.
                self.out[at + 1..].sort_by_key(|c| match c {
                    Command::AddChain(..) => 0,
                    Command::AddObject(..) => 1,
                    Command::AddSet(..) => 2,
                    _ => 3,
                });
                return Ok(());
            }
            let word = match self.peek() {
                Token::Word(w) => w.clone(),
                _ => return self.unexpected("'}'"),
            };
            if matches!(word.as_str(), "define" | "redefine") {
                self.define()?;
                continue;
            }
            self.at += 1;
            match word.as_str() {
                "comment" => {
                    let comment = self.comment()?;
                    if let Command::AddTable(_, _, slot) = &mut self.out[at] {
                        *slot = Some(comment);
                    }
                }
                "chain" => {
                    let (own, pos) = self.word()?;
                    self.chain(Name { name: own, pos, ..name.clone() }, false)?;
                }
                "set" | "map" => {
                    let (own, pos) = self.word()?;
                    self.set(Name { name: own, pos, ..name.clone() }, false, word == "map")?;
                }
                "counter" | "quota" | "limit" => {
                    let (own, pos) = self.word()?;
                    self.object(Name { name: own, pos, ..name.clone() }, false, &word)?;
                }
                _ => {
                    self.at -= 1;
                    return self.unexpected("");
                }
            }
        }
    }

    /// A quoted text.
    pub(super) fn comment(&mut self) -> Parsed<String> {
        match self.next() {
            Token::Quoted(text) | Token::Word(text) => Ok(text),
            _ => {
                self.at -= 1;
                self.unexpected("string")
            }
        }
    }

    fn chain(&mut self, name: Name, create: bool) -> Parsed<()> {
        let slot = self.out.len();
        self.out.push(Command::AddChain(name.clone(), create, None, None));
        if !self.take_sign("{") {
            return Ok(());
        }
        let (mut base, mut comment): (Option<Base>, Option<String>) = (None, None);
        let outer = self.defined.clone();
        loop {
            self.skip_ends();
            if self.take_sign("}") {
                self.defined = outer;
                break;
            }
            if self.take_word("type") {
                base = Some(self.base(name.family)?);
            } else if self.take_word("policy") {
                let drop = if self.take_word("drop") {
                    true
                } else if self.take_word("accept") {
                    false
                } else {
                    return self.unexpected("accept or drop or '$'");
                };
                if let Some(base) = &mut base {
                    base.drop = drop;
                }
            } else if self.is_word("define") || self.is_word("redefine") {
                self.define()?;
            } else if self.is_word("comment") && matches!(self.peek_after(), Token::Quoted(_)) {
                self.at += 1;
                comment = Some(self.comment()?);
            } else {
                let pos = self.pos();
                let rule = self.rule(name.family)?;
                self.out.push(Command::AddRule(name.clone(), false, Place::Edge, rule, pos));
            }
            let ends = matches!(self.peek(), Token::Newline) || self.is_sign(";");
            if !ends {
                return self.unexpected("newline or semicolon");
            }
        }
        self.out[slot] = Command::AddChain(name, create, base, comment);
        Ok(())
    }

    fn base(&mut self, family: Family) -> Parsed<Base> {
        let pos = self.pos();
        let (ty, _) = self.word()?;
        if !["filter", "nat", "route"].contains(&ty.as_str()) {
            return Err(Fault::new(pos, "unknown chain type", "filter, nat or route"));
        }
        if !self.take_word("hook") {
            return self.unexpected("hook");
        }
        let pos = self.pos();
        let (hook, _) = self.word()?;
        const HOOKS: [&str; 7] =
            ["prerouting", "input", "forward", "output", "postrouting", "ingress", "egress"];
        let at_device = matches!(hook.as_str(), "ingress" | "egress");
        let known = match family {
            Family::Netdev => at_device,
            Family::Arp => matches!(hook.as_str(), "input" | "output"),
            Family::Inet => hook != "egress",
            _ => !at_device,
        };
        if HOOKS.contains(&hook.as_str()) && !known {
            let message = format!("The {} family does not support this hook", family.name());
            return Err(Fault::new(pos, message, "ingress and egress belong to netdev, ingress to inet too"));
        }
        if !HOOKS.contains(&hook.as_str()) {
            return Err(Fault::new(pos, "unknown chain hook", &HOOKS.join(" ")));
        }
        let mut devices = Vec::new();
        if self.take_word("device") {
            self.expand()?;
            devices.push(self.comment()?);
        } else if self.take_word("devices") {
            self.sign("=", "'='")?;
            self.expand()?;
            self.sign("{", "'{'")?;
            while !self.take_sign("}") {
                if matches!(self.peek(), Token::Newline) || self.is_sign(",") {
                    self.at += 1;
                    continue;
                }
                self.expand()?;
                devices.push(self.comment()?);
            }
        }
        if !self.take_word("priority") {
            return self.unexpected("priority");
        }
        if at_device && devices.is_empty() {
            let message = "Missing `device' in this chain definition";
            return Err(Fault::new(pos, message, &format!("type filter hook {hook} device eth0 priority 0")));
        }
        self.expand()?;
        let pos = self.pos();
        let minus = self.take_sign("-");
        let mut priority = match self.peek().clone() {
            Token::Number(_) => {
                let n = self.number()? as i32;
                if minus { -n } else { n }
            }
            Token::Word(name) => {
                self.at += 1;
                match priority_named(&name, family, &hook) {
                    Some(value) => value,
                    None => {
                        let message = "invalid priority expression value in this context.";
                        return Err(Fault::new(
                            pos,
                            message,
                            "raw, mangle, dstnat, filter, security or srcnat",
                        ));
                    }
                }
            }
            _ => return self.unexpected(""),
        };
        if self.take_sign("+") {
            priority += self.number()? as i32;
        } else if self.take_sign("-") {
            priority -= self.number()? as i32;
        }
        Ok(Base { ty, hook, devices, priority, drop: false })
    }

    fn rule_command(&mut self, verb: &str, name: Name) -> Parsed<()> {
        let mut place = Place::Edge;
        let pos = self.pos();
        if self.take_word("handle") || self.take_word("position") {
            let pos = self.pos();
            place = Place::Handle(self.number()?, pos);
        } else if self.take_word("index") {
            let pos = self.pos();
            place = Place::Index(self.number()?, pos);
        }
        if verb == "replace" {
            let Place::Handle(handle, at) = place else { return self.unexpected("handle") };
            let rule = self.rule(name.family)?;
            self.out.push(Command::ReplaceRule(name, handle, at, rule));
            return Ok(());
        }
        let rule = self.rule(name.family)?;
        self.out.push(Command::AddRule(name, verb == "insert", place, rule, pos));
        Ok(())
    }

    fn delete(&mut self) -> Parsed<()> {
        let object = match self.peek() {
            Token::Word(w) => w.clone(),
            _ => return self.unexpected("string"),
        };
        self.at += 1;
        let command = match object.as_str() {
            "table" if self.at_end() => return self.unexpected("handle or string"),
            "table" => Command::DeleteTable(self.table()?),
            "chain" => Command::DeleteChain(self.named()?),
            "set" | "map" => Command::DeleteSet(self.named()?),
            kind @ ("counter" | "quota" | "limit") => {
                let kind = Kind::named(kind).unwrap_or(Kind::Counter);
                Command::DeleteObject(self.named()?, kind)
            }
            "rule" => {
                let name = self.named()?;
                if !self.take_word("handle") {
                    return self.unexpected("handle");
                }
                let pos = self.pos();
                Command::DeleteRule(name, self.number()?, pos)
            }
            "element" => {
                let name = self.named()?;
                let pos = self.pos();
                Command::DeleteElement(name, self.elements()?, pos)
            }
            _ => {
                self.at -= 1;
                return self.unexpected("");
            }
        };
        self.out.push(command);
        Ok(())
    }

    fn flush(&mut self) -> Parsed<()> {
        let object = match self.peek() {
            Token::Word(w) => w.clone(),
            _ => return self.unexpected(""),
        };
        self.at += 1;
        let command = match object.as_str() {
            "ruleset" => Command::FlushRuleset(self.family()),
            "table" => Command::FlushTable(self.table()?),
            "chain" => Command::FlushChain(self.named()?),
            "set" | "map" => Command::FlushSet(self.named()?),
            _ => {
                self.at -= 1;
                return self.unexpected("");
            }
        };
        self.out.push(command);
        Ok(())
    }

    fn list(&mut self) -> Parsed<()> {
        let object = match self.peek() {
            Token::Word(w) => w.clone(),
            _ => return self.unexpected(""),
        };
        self.at += 1;
        let command = match object.as_str() {
            "ruleset" => Command::List(What::Ruleset, self.family(), None),
            "tables" => Command::List(What::Tables, self.family(), None),
            "chains" => Command::List(What::Chains, self.family(), None),
            "sets" => self.list_all(What::Sets)?,
            "maps" => self.list_all(What::Maps)?,
            "meters" => self.list_all(What::Meters)?,
            "counters" => self.list_all(What::Objects(Kind::Counter))?,
            "quotas" => self.list_all(What::Objects(Kind::Quota))?,
            "limits" => self.list_all(What::Objects(Kind::Limit))?,
            "hooks" | "flowtables" => Command::List(What::Nothing, self.family(), None),
            "meter" => Command::ListMeter(self.named()?),
            kind @ ("counter" | "quota" | "limit") => {
                let kind = Kind::named(kind).unwrap_or(Kind::Counter);
                Command::ListObject(self.named()?, kind, false)
            }
            "table" => Command::ListTable(self.table()?),
            "chain" => Command::ListChain(self.named()?),
            "set" | "map" => Command::ListSet(self.named()?),
            _ => {
                self.at -= 1;
                return self.unexpected("");
            }
        };
        self.out.push(command);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_come_before_the_rules_that_name_them_and_definitions_hold_within() {
        let text = "table inet t {\n define lan = { eth1, br-lan }\n chain c {\n  iifname $lan goto d\n  th dport @s accept\n }\n \
                    chain d {\n  define x = 5; meta mark set $x\n }\n set s { type inet_service; }\n}\n";
        let all = parse(text).unwrap();
        let kinds: Vec<u8> = all
            .iter()
            .map(|c| match c {
                Command::AddTable(..) => 0,
                Command::AddChain(..) => 1,
                Command::AddSet(..) => 2,
                Command::AddRule(..) => 3,
                _ => 9,
            })
            .collect();
        assert_eq!(kinds, [0, 1, 1, 2, 3, 3, 3]);
        assert!(parse(&format!("{text}add rule inet t c iifname $lan accept")).is_err());
    }
}
