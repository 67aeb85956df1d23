//! Grammars of command sequences, and random sequences from them.
//!
//! A grammar file holds rules, one a line (a line that begins with a blank goes on with the one before; `#` begins a
//! comment):
//! ```text
//! sequence = <add> {0..3 ; <step>}
//! add      = tc qdisc (add|replace) dev d0 root [handle %handle] codel {0..4 <option>}
//! option   = limit %num(0,2000) | target %time | interval %time | ecn | noecn
//! ```
//! `|` separates alternatives of equal chance, `( )` groups, `[ ]` is there half of the time, `{m..n …}` repeats, `<rule>`
//! refers, `%name` and `%name(…)` are values ([`super::values`]), `;` ends a command, everything else is a word. `~` joins
//! what stands on its two sides to one word: `dev ~ %num(0,3)`. Between single quotes brackets are words, as any
//! character behind a backslash is. The first rule is where a sequence begins; a rule `record` makes a kind with legal options for `cargo xtask record`. Words of the form
//! `key: value` before the first rule set: `count` (sequences recorded), `final` (commands added to each sequence, instead of
//! the usual shows; `;` between them).

use super::values;
use anyhow::{Context, Result, bail};
use penstock_model::Rng;
use std::collections::BTreeMap;

#[derive(Debug)]
enum Item {
    Word(String),
    Rule(String),
    Value(String, Vec<String>),
    Group(Vec<Vec<Item>>),
    Maybe(Vec<Vec<Item>>),
    Times(u32, u32, Vec<Vec<Item>>),
    Join,
    End,
}

/// One grammar file, read.
#[derive(Debug)]
pub struct Grammar {
    /// The file's name without its ending.
    pub name: String,
    /// Sequences to record.
    pub count: u64,
    finals: Vec<String>,
    first: String,
    rules: BTreeMap<String, Vec<Vec<Item>>>,
}

/// What each sequence ends with unless the grammar says otherwise.
const FINALS: &[&str] = &[
    "tc qdisc show dev d0",
    "tc -s -d qdisc show dev d0",
    "tc -j qdisc show dev d0",
    "tc class show dev d0",
    "tc -j -s class show dev d0",
];

impl Grammar {
    /// Reads a file's text.
    pub fn parse(name: &str, text: &str) -> Result<Grammar> {
        let mut lines: Vec<String> = Vec::new();
        for line in text.lines() {
            let line = match line.split_once('#') {
                Some((before, _)) if before.is_empty() || before.ends_with(' ') => before,
                _ => line,
            };
            if line.trim().is_empty() {
                continue;
            }
            match lines.last_mut().filter(|_| line.starts_with(' ')) {
                Some(last) => last.push_str(&format!(" {}", line.trim())),
                None => lines.push(line.trim_end().to_owned()),
            }
        }
        let finals = FINALS.iter().map(|s| (*s).to_owned()).collect();
        let mut g = Grammar {
            name: name.to_owned(),
            count: 60,
            finals,
            first: String::new(),
            rules: BTreeMap::new(),
        };
        for line in lines {
            let key = line.split_once(": ").filter(|(k, _)| matches!(*k, "count" | "final"));
            match key {
                Some(("count", n)) => g.count = n.trim().parse().with_context(|| line.clone())?,
                Some((_, all)) => g.finals = all.split(';').map(|c| c.trim().to_owned()).collect(),
                None => {
                    let (rule, body) =
                        line.split_once(" = ").with_context(|| format!("{name}: no rule: {line}"))?;
                    let tokens = tokens(body);
                    let mut at = 0;
                    let body =
                        alternatives(&tokens, &mut at, "").with_context(|| format!("{name}: {line}"))?;
                    let rule = rule.trim().to_owned();
                    if g.rules.is_empty() {
                        g.first.clone_from(&rule);
                    }
                    g.rules.insert(rule, body);
                }
            }
        }
        if g.rules.is_empty() {
            bail!("{name}: no rules");
        }
        Ok(g)
    }

    /// The `n`th sequence: command lines.
    pub fn sequence(&self, n: u64) -> Result<Vec<String>> {
        let mut rng = Rng::named(n, &format!("difftc/{}", self.name));
        let mut words = Vec::new();
        self.expand(&self.rules[&self.first], &mut rng, &mut words, 0)?;
        let mut commands: Vec<Vec<String>> = vec![Vec::new()];
        let mut join = false;
        for word in words {
            let last = commands.last_mut().expect("never empty");
            match word {
                Out::End => commands.push(Vec::new()),
                Out::Join => join = true,
                Out::Word(w) if std::mem::take(&mut join) && !last.is_empty() => {
                    last.last_mut().expect("not empty").push_str(&w);
                }
                Out::Word(w) => last.push(w),
            }
        }
        commands.retain(|c| !c.is_empty());
        for command in &mut commands {
            if rng.below(12) == 0 {
                mutate(command, &mut rng);
            }
        }
        let commands = commands.into_iter().map(|c| c.join(" "));
        Ok(commands.chain(self.finals.iter().cloned()).collect())
    }

    /// Whether it has a rule of this name.
    pub fn has(&self, rule: &str) -> bool {
        self.rules.contains_key(rule)
    }
    /// The `n`th line that a rule makes, without slips of the hand.
    ///
    /// # Errors
    /// No such rule, or one that never ends.
    pub fn words(&self, rule: &str, n: u64) -> Result<String> {
        let mut rng = Rng::named(n, &format!("difftc/{}/{rule}", self.name));
        let rule = self.rules.get(rule).with_context(|| format!("{}: no rule <{rule}>", self.name))?;
        let mut words = Vec::new();
        self.expand(rule, &mut rng, &mut words, 0)?;
        let mut line = String::new();
        let mut joins = true;
        for word in words {
            match word {
                Out::Join => joins = true,
                Out::End => bail!("{}: a line, not a sequence of commands", self.name),
                Out::Word(word) => {
                    if !std::mem::take(&mut joins) {
                        line.push(' ');
                    }
                    line.push_str(&word);
                }
            }
        }
        Ok(line)
    }

    fn expand(&self, any: &[Vec<Item>], rng: &mut Rng, out: &mut Vec<Out>, depth: u32) -> Result<()> {
        if depth > 60 {
            bail!("{}: a rule never ends", self.name);
        }
        let one = &any[rng.below(any.len() as u32) as usize];
        for item in one {
            match item {
                Item::Word(w) => out.push(Out::Word(w.clone())),
                Item::Rule(r) => {
                    let rule = self.rules.get(r).with_context(|| format!("{}: no rule <{r}>", self.name))?;
                    self.expand(rule, rng, out, depth + 1)?;
                }
                Item::Value(v, args) => {
                    let text = values::value(v, args, rng).with_context(|| format!("{}: %{v}", self.name))?;
                    out.push(Out::Word(text));
                }
                Item::Group(g) => self.expand(g, rng, out, depth + 1)?,
                Item::Maybe(g) if rng.below(2) == 0 => self.expand(g, rng, out, depth + 1)?,
                Item::Maybe(_) => {}
                Item::Times(from, to, g) => {
                    for _ in 0..from + rng.below(to - from + 1) {
                        self.expand(g, rng, out, depth + 1)?;
                    }
                }
                Item::Join => out.push(Out::Join),
                Item::End => out.push(Out::End),
            }
        }
        Ok(())
    }
}

enum Out {
    Word(String),
    Join,
    End,
}

/// A slip of the hand: a word lost, doubled, cut, unknown, or two changed over.
fn mutate(words: &mut Vec<String>, rng: &mut Rng) {
    if words.len() < 4 || words.iter().any(|w| w.contains(['\'', '"'])) {
        return;
    }
    let at = 3 + rng.below(words.len() as u32 - 3) as usize;
    match rng.below(6) {
        0 => drop(words.remove(at)),
        1 => words.insert(at, words[at].clone()),
        2 => words.insert(at, "nonsense".to_owned()),
        3 => words.truncate(at),
        4 if words[at].len() > 2 && words[at].is_ascii() => {
            let keep = words[at].len() - 1;
            words[at].truncate(keep);
        }
        _ if at + 1 < words.len() => words.swap(at, at + 1),
        _ => words.push("extra".to_owned()),
    }
}

fn tokens(body: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut word = String::new();
    let mut inside = 0;
    let mut quoted = false;
    let mut chars = body.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                if !word.is_empty() {
                    tokens.push(std::mem::take(&mut word));
                }
                tokens.extend(chars.next().map(|c| format!("\\{c}")));
            }
            // A value behind other letters goes on with their word.
            '%' if inside == 0 && !word.is_empty() => {
                tokens.push(std::mem::take(&mut word));
                tokens.push("~".to_owned());
                word.push(c);
            }
            '\'' => {
                quoted = !quoted;
                if !word.is_empty() {
                    tokens.push(std::mem::take(&mut word));
                }
                tokens.push("'".to_owned());
            }
            // Between quotes brackets are words: what is read there is a language of its own.
            '(' | ')' | '{' | '}' | '|' | ';' if quoted && inside == 0 && !word.starts_with('%') => {
                if !word.is_empty() {
                    tokens.push(std::mem::take(&mut word));
                }
                tokens.push(format!("\\{c}"));
            }
            '(' if word.starts_with('%') && inside == 0 => {
                inside += 1;
                word.push(c);
            }
            ')' if inside > 0 => {
                inside -= 1;
                word.push(c);
            }
            _ if inside > 0 => word.push(c),
            ' ' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | ';' | '~' => {
                if !word.is_empty() {
                    tokens.push(std::mem::take(&mut word));
                }
                if c != ' ' {
                    tokens.push(c.to_string());
                }
            }
            _ => {
                // A value's name ends where letters do; what follows belongs to the same word.
                let named =
                    word.len() == 1 || !word.ends_with(')') && (c.is_ascii_alphanumeric() || c == '_');
                if word.starts_with('%') && !named {
                    tokens.push(std::mem::take(&mut word));
                    tokens.push("~".to_owned());
                }
                word.push(c);
            }
        }
    }
    if !word.is_empty() {
        tokens.push(word);
    }
    tokens
}

fn alternatives(tokens: &[String], at: &mut usize, end: &str) -> Result<Vec<Vec<Item>>> {
    let mut all = vec![Vec::new()];
    while let Some(token) = tokens.get(*at) {
        *at += 1;
        let last: &mut Vec<Item> = all.last_mut().expect("never empty");
        match token.as_str() {
            t if t == end => return Ok(all),
            "|" => all.push(Vec::new()),
            "(" => last.push(Item::Group(alternatives(tokens, at, ")")?)),
            "[" => last.push(Item::Maybe(alternatives(tokens, at, "]")?)),
            "{" => {
                let range = tokens.get(*at).and_then(|t| t.split_once("..")).context("{ wants m..n first")?;
                *at += 1;
                let (from, to): (u32, u32) = (range.0.parse()?, range.1.parse()?);
                if from > to {
                    bail!("{from}..{to} is not a range");
                }
                last.push(Item::Times(from, to, alternatives(tokens, at, "}")?));
            }
            ";" => last.push(Item::End),
            "~" => last.push(Item::Join),
            ")" | "]" | "}" => bail!("{token} without its opening"),
            t if t.starts_with('<') && t.ends_with('>') => {
                last.push(Item::Rule(t[1..t.len() - 1].to_owned()))
            }
            t if t.starts_with('%') && t.len() > 1 => match t[1..].split_once('(') {
                Some((name, args)) => {
                    let args = args.trim_end_matches(')').split(',').map(|a| a.trim().to_owned()).collect();
                    last.push(Item::Value(name.to_owned(), args));
                }
                None => last.push(Item::Value(t[1..].to_owned(), Vec::new())),
            },
            t => last.push(Item::Word(t.trim_start_matches('\\').to_owned())),
        }
    }
    if !end.is_empty() {
        bail!("{end} is missing");
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grammar_makes_what_it_says() {
        let text = "# a comment\ncount: 7\nfinal: tc qdisc\nsequence = <add> {2..2 ; <add>}\nadd = tc qdisc add dev d~%num(0,0)\n  (root|root) x y\n";
        let g = Grammar::parse("x", text).unwrap();
        assert_eq!(g.count, 7);
        let made = g.sequence(1).unwrap();
        assert_eq!((made.len(), made.last().unwrap().as_str()), (4, "tc qdisc"));
        assert!(made[..3].iter().any(|c| c == "tc qdisc add dev d0 root x y"), "{made:?}");
        assert_eq!(made, g.sequence(1).unwrap());
        assert!(Grammar::parse("x", "a = <b").unwrap().sequence(1).is_ok());
        assert!(Grammar::parse("x", "a = ( b").is_err());
        assert!(Grammar::parse("x", "a = <b>").unwrap().sequence(1).is_err());
        assert!(Grammar::parse("x", "a = <a>").unwrap().sequence(1).is_err());
    }
}
