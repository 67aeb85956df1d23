//! The place in the tokens: what stands there, whether it is what is wanted, and what is said where it is not.

use super::data::Command;
use super::lex::Token;
use super::{Fault, Pos};
use std::collections::BTreeMap;

pub(super) type Parsed<T> = Result<T, Fault>;

pub(super) struct Parser {
    pub(super) tokens: Vec<(Token, Pos)>,
    pub(super) at: usize,
    /// `define`.
    pub(super) defined: BTreeMap<String, Vec<(Token, Pos)>>,
    /// What was read.
    pub(super) out: Vec<Command>,
}

impl Parser {
    pub(super) fn new(tokens: Vec<(Token, Pos)>) -> Parser {
        Parser { tokens, at: 0, defined: BTreeMap::new(), out: Vec::new() }
    }
    pub(super) fn peek(&self) -> &Token {
        self.tokens.get(self.at).map_or(&Token::End, |t| &t.0)
    }
    pub(super) fn peek_after(&self) -> &Token {
        self.tokens.get(self.at + 1).map_or(&Token::End, |t| &t.0)
    }
    pub(super) fn pos(&self) -> Pos {
        self.tokens.get(self.at).or(self.tokens.last()).map_or(Pos::default(), |t| t.1)
    }
    pub(super) fn next(&mut self) -> Token {
        let token = self.peek().clone();
        if self.at < self.tokens.len() {
            self.at += 1;
        }
        token
    }
    /// `unexpected …`, with what was expected where that is known.
    pub(super) fn unexpected<T>(&self, expecting: &str) -> Parsed<T> {
        let named = self.peek().named();
        let tail = if expecting.is_empty() { String::new() } else { format!(", expecting {expecting}") };
        let help = "what nft knows beyond marks, dscp, priority and what they need is not understood here";
        Err(Fault::new(self.pos(), format!("syntax error, unexpected {named}{tail}"), help))
    }
    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Token::Sign(s) if *s == sign)
    }
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Token::Word(w) if w == word)
    }
    pub(super) fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.at += usize::from(found);
        found
    }
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }
    pub(super) fn sign(&mut self, sign: &'static str, expecting: &str) -> Parsed<()> {
        if self.take_sign(sign) { Ok(()) } else { self.unexpected(expecting) }
    }
    pub(super) fn word(&mut self) -> Parsed<(String, Pos)> {
        let pos = self.pos();
        match self.peek().clone() {
            Token::Word(word) if !word.starts_with(['@', '$']) => {
                self.at += 1;
                Ok((word, pos))
            }
            _ => self.unexpected("string"),
        }
    }
    pub(super) fn number(&mut self) -> Parsed<u64> {
        match self.peek().clone() {
            Token::Number(text) => {
                self.at += 1;
                let value = match text.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16).ok(),
                    None => text.parse().ok(),
                };
                Ok(value.unwrap_or(u64::MAX))
            }
            _ => self.unexpected("number"),
        }
    }
    /// Whether a statement ends here.
    pub(super) fn at_end(&self) -> bool {
        matches!(self.peek(), Token::Newline | Token::End) || self.is_sign(";") || self.is_sign("}")
    }
    pub(super) fn skip_ends(&mut self) {
        while matches!(self.peek(), Token::Newline) || self.is_sign(";") {
            self.at += 1;
        }
    }
    /// Puts what `$name` stands for in its place.
    pub(super) fn expand(&mut self) -> Parsed<()> {
        if let Token::Word(word) = self.peek()
            && let Some(name) = word.strip_prefix('$')
        {
            let Some(tokens) = self.defined.get(name).cloned() else {
                return Err(Fault::new(
                    self.pos(),
                    format!("unknown identifier '{name}'"),
                    "define it first",
                ));
            };
            let pos = self.pos();
            self.tokens.splice(self.at..=self.at, tokens.into_iter().map(|t| (t.0, pos)));
        }
        Ok(())
    }
}
