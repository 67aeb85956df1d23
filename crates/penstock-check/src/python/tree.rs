//! Python's statements and expressions, as far as scripts that call other programs need them.
//!
//! A statement that is not understood is left out with its block.

use super::read::{Placed, Token};
use std::rc::Rc;

/// An expression.
#[derive(Clone, Debug)]
pub enum Expr {
    Str(String, bool, u32),
    Int(i64),
    Float(f64),
    Name(String),
    Attr(Box<Expr>, String),
    Call(Box<Expr>, Vec<Arg>, u32),
    Index(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    List(Vec<Expr>),
    Dict(Vec<(Expr, Expr)>),
    Star(Box<Expr>),
    Not(Box<Expr>),
    Minus(Box<Expr>),
    Op(Box<Expr>, &'static str, Box<Expr>),
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// What each is, names, over what, conditions.
    Each(Box<Expr>, Box<Expr>, Box<Expr>, Vec<Expr>),
    Unknown,
}

/// An argument of a call.
#[derive(Clone, Debug)]
pub struct Arg {
    pub name: Option<String>,
    pub value: Expr,
}

/// A function.
#[derive(Debug)]
pub struct Def {
    pub name: String,
    /// Names and defaults; `*rest` keeps its star.
    pub params: Vec<(String, Option<Expr>)>,
    pub body: Vec<Stmt>,
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    Expr(Expr),
    Assign(Vec<Expr>, Expr),
    Augment(Expr, &'static str, Expr),
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    For(Expr, Expr, Vec<Stmt>),
    While(Expr, Vec<Stmt>),
    Def(Rc<Def>),
    /// Name, body, and the names of its fields in order (`name: type`).
    Class(String, Vec<Stmt>, Vec<String>),
    Try(Vec<Stmt>, Vec<Stmt>, Vec<Stmt>),
    With(Vec<(Expr, Option<Expr>)>, Vec<Stmt>),
    Return(Option<Expr>),
    Raise,
    Break,
    Continue,
    Import(String, String),
    Pass,
}

pub(super) struct Parser<'a> {
    pub(super) tokens: &'a [Placed],
    pub(super) at: usize,
    /// Parentheses, signs and blocks that are open.
    pub(super) depth: usize,
    /// What Python says of a text that is nested too deeply.
    pub(super) refused: Option<String>,
}

/// Parentheses and blocks within each other, as in Python's own reader.
const PARENTHESES: usize = 200;

/// Operators, attributes and calls one behind the other.
pub(super) const CHAIN: usize = 2_000;

/// Not understood.
pub(super) struct Lost;
pub(super) type Read<T> = Result<T, Lost>;

/// The statements of a text.
///
/// # Errors
/// It is nested more deeply than it can be read, in Python's own words.
pub fn parse(tokens: &[Placed]) -> Result<Vec<Stmt>, String> {
    let mut parser = Parser { tokens, at: 0, depth: 0, refused: None };
    let mut all = Vec::new();
    while parser.at < tokens.len() {
        parser.depth = 0;
        parser.statement(&mut all);
        if let Some(refused) = parser.refused {
            return Err(refused);
        }
    }
    Ok(all)
}

impl Parser<'_> {
    pub(super) fn token(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|t| &t.0)
    }
    pub(super) fn line(&self) -> u32 {
        self.tokens.get(self.at).map_or(0, |t| t.1)
    }
    pub(super) fn op(&mut self, op: &str) -> bool {
        let is = matches!(self.token(), Some(Token::Op(o)) if *o == op);
        self.at += usize::from(is);
        is
    }
    pub(super) fn word(&mut self, word: &str) -> bool {
        let is = matches!(self.token(), Some(Token::Name(n)) if n == word);
        self.at += usize::from(is);
        is
    }
    pub(super) fn need(&mut self, op: &str) -> Read<()> {
        if self.op(op) { Ok(()) } else { Err(Lost) }
    }
    pub(super) fn name(&mut self) -> Read<String> {
        let Some(Token::Name(name)) = self.token() else { return Err(Lost) };
        let name = name.clone();
        self.at += 1;
        Ok(name)
    }

    /// One level down.
    pub(super) fn deeper(&mut self) -> Read<()> {
        self.depth += 1;
        if self.depth <= PARENTHESES {
            return Ok(());
        }
        let line = self.line();
        self.refused.get_or_insert(format!("line {line}: SyntaxError: too many nested parentheses"));
        Err(Lost)
    }
    /// One more behind the others.
    pub(super) fn longer(&mut self, chain: &mut usize) -> Read<()> {
        *chain += 1;
        if *chain <= CHAIN {
            return Ok(());
        }
        let line = self.line();
        let said =
            format!("line {line}: RecursionError: maximum recursion depth exceeded during compilation");
        self.refused.get_or_insert(said);
        Err(Lost)
    }

    fn statement(&mut self, out: &mut Vec<Stmt>) {
        if self.refused.is_some() {
            self.at = self.tokens.len();
            return;
        }
        let from = self.at;
        match self.known(out) {
            Ok(()) => {}
            Err(Lost) => {
                self.at = from;
                self.skip();
            }
        }
        self.at += usize::from(self.at == from);
    }
    /// To the end of a statement and of the block below it.
    fn skip(&mut self) {
        while self.token().is_some_and(|t| *t != Token::Newline) {
            self.at += 1;
        }
        self.at += 1;
        if self.token() == Some(&Token::Indent) {
            let mut depth = 0;
            while let Some(token) = self.token() {
                match token {
                    Token::Indent => depth += 1,
                    Token::Dedent => depth -= 1,
                    _ => {}
                }
                self.at += 1;
                if depth == 0 {
                    break;
                }
            }
        }
    }
    fn known(&mut self, out: &mut Vec<Stmt>) -> Read<()> {
        if let Some(Token::Newline | Token::Dedent | Token::Indent) = self.token() {
            self.at += 1;
            return Ok(());
        }
        while self.op("@") {
            // A decorator.
            self.skip_line();
        }
        self.word("async");
        let Some(Token::Name(first)) = self.token() else { return self.simple(out) };
        match first.clone().as_str() {
            "if" => {
                let mut arms = Vec::new();
                let mut rest = Vec::new();
                self.at += 1;
                let condition = self.expr()?;
                arms.push((condition, self.block()?));
                loop {
                    if self.word("elif") {
                        let condition = self.expr()?;
                        arms.push((condition, self.block()?));
                    } else if self.word("else") {
                        rest = self.block()?;
                        break;
                    } else {
                        break;
                    }
                }
                out.push(Stmt::If(arms, rest));
            }
            "for" => {
                self.at += 1;
                let names = self.targets()?;
                if !self.word("in") {
                    return Err(Lost);
                }
                let over = self.list()?;
                let body = self.block()?;
                out.push(Stmt::For(names, over, body));
            }
            "while" => {
                self.at += 1;
                let condition = self.expr()?;
                out.push(Stmt::While(condition, self.block()?));
            }
            "def" => {
                self.at += 1;
                let def = self.def()?;
                out.push(Stmt::Def(Rc::new(def)));
            }
            "class" => {
                self.at += 1;
                let name = self.name()?;
                while self.token().is_some_and(|t| *t != Token::Newline) && !self.op(":") {
                    self.at += 1;
                }
                self.at -= 1;
                let begins = self.at;
                let body = self.block()?;
                let fields = fields(&self.tokens[begins..self.at.min(self.tokens.len())]);
                out.push(Stmt::Class(name, body, fields));
            }
            "try" => {
                self.at += 1;
                let body = self.block()?;
                let (mut rescue, mut last) = (Vec::new(), Vec::new());
                loop {
                    if self.word("except") {
                        while !matches!(self.token(), Some(Token::Op(":")) | None) {
                            self.at += 1;
                        }
                        let block = self.block()?;
                        if rescue.is_empty() {
                            rescue = block;
                        }
                    } else if self.word("finally") || self.word("else") {
                        last.extend(self.block()?);
                    } else {
                        break;
                    }
                }
                out.push(Stmt::Try(body, rescue, last));
            }
            "with" => {
                self.at += 1;
                let mut items = Vec::new();
                loop {
                    let what = self.expr()?;
                    let name = if self.word("as") { Some(self.postfix()?) } else { None };
                    items.push((what, name));
                    if !self.op(",") {
                        break;
                    }
                }
                out.push(Stmt::With(items, self.block()?));
            }
            _ => return self.simple(out),
        }
        Ok(())
    }
    fn skip_line(&mut self) {
        while self.token().is_some_and(|t| *t != Token::Newline) {
            self.at += 1;
        }
        self.at += 1;
    }
    fn def(&mut self) -> Read<Def> {
        let name = self.name()?;
        self.need("(")?;
        let mut params = Vec::new();
        while !self.op(")") {
            let star = if self.op("**") {
                "**"
            } else if self.op("*") {
                "*"
            } else {
                ""
            };
            if star == "*" && self.op(",") {
                continue;
            }
            if self.op("/") {
                self.op(",");
                continue;
            }
            let name = self.name()?;
            if self.op(":") {
                self.expr()?;
            }
            let default = if self.op("=") { Some(self.expr()?) } else { None };
            params.push((format!("{star}{name}"), default));
            if !self.op(",") {
                self.need(")")?;
                break;
            }
        }
        if self.op("->") {
            self.expr()?;
        }
        Ok(Def { name, params, body: self.block()? })
    }
    fn block(&mut self) -> Read<Vec<Stmt>> {
        self.need(":")?;
        let mut body = Vec::new();
        if self.token() != Some(&Token::Newline) {
            self.simple(&mut body)?;
            return Ok(body);
        }
        self.at += 1;
        if self.token() != Some(&Token::Indent) {
            return Err(Lost);
        }
        self.at += 1;
        self.deeper()?;
        let depth = self.depth;
        while self.token().is_some_and(|t| *t != Token::Dedent) {
            self.depth = depth;
            self.statement(&mut body);
        }
        self.depth = depth - 1;
        self.at += 1;
        Ok(body)
    }
    /// Statements of one line.
    fn simple(&mut self, out: &mut Vec<Stmt>) -> Read<()> {
        loop {
            out.push(self.small()?);
            if !self.op(";") {
                break;
            }
            if self.token() == Some(&Token::Newline) {
                break;
            }
        }
        if self.token() == Some(&Token::Newline) {
            self.at += 1;
            return Ok(());
        }
        Err(Lost)
    }
    fn small(&mut self) -> Read<Stmt> {
        let ends = |p: &Self| matches!(p.token(), Some(Token::Newline) | Some(Token::Op(";")) | None);
        for (word, stmt) in [("pass", Stmt::Pass), ("break", Stmt::Break), ("continue", Stmt::Continue)] {
            if self.word(word) {
                return Ok(stmt);
            }
        }
        if self.word("return") {
            let value = if ends(self) { None } else { Some(self.list()?) };
            return Ok(Stmt::Return(value));
        }
        if self.word("import") {
            let mut path = self.name()?;
            while self.op(".") {
                path += &format!(".{}", self.name()?);
            }
            let name =
                if self.word("as") { self.name()? } else { path.split('.').next().unwrap_or("").to_owned() };
            // `import os, sys`: the others are known by their own names.
            while !ends(self) {
                self.at += 1;
            }
            return Ok(Stmt::Import(path, name));
        }
        if self.word("from") {
            let path = self.name()?;
            while !ends(self) && !self.word("import") {
                self.at += 1;
            }
            let name = self.name().unwrap_or_default();
            let known = if self.word("as") { self.name()? } else { name.clone() };
            while !ends(self) {
                self.at += 1;
            }
            return Ok(Stmt::Import(format!("{path}.{name}"), known));
        }
        if self.word("raise") {
            while !ends(self) {
                self.at += 1;
            }
            return Ok(Stmt::Raise);
        }
        if ["global", "nonlocal", "assert", "del"].into_iter().any(|w| self.word(w)) {
            while !ends(self) {
                self.at += 1;
            }
            return Ok(Stmt::Pass);
        }
        let first = self.list()?;
        if self.op(":") {
            self.expr()?;
            if !self.op("=") {
                return Ok(Stmt::Pass);
            }
            self.at -= 1;
        }
        for op in ["+=", "-=", "*=", "/=", "//=", "%="] {
            if self.op(op) {
                let value = self.list()?;
                let op = match op {
                    "+=" => "+",
                    "-=" => "-",
                    "*=" => "*",
                    "/=" => "/",
                    "//=" => "//",
                    _ => "%",
                };
                return Ok(Stmt::Augment(first, op, value));
            }
        }
        let mut all = vec![first];
        while self.op("=") {
            all.push(self.list()?);
        }
        let value = all.pop().ok_or(Lost)?;
        Ok(if all.is_empty() { Stmt::Expr(value) } else { Stmt::Assign(all, value) })
    }
}
/// The names that a class's body gives types, in order and without those within its functions: the fields of a dataclass.
fn fields(body: &[Placed]) -> Vec<String> {
    let (mut out, mut depth) = (Vec::new(), 0);
    for (at, (token, _)) in body.iter().enumerate() {
        match token {
            Token::Indent => depth += 1,
            Token::Dedent => depth -= 1,
            _ => {}
        }
        let begins = matches!(token, Token::Newline | Token::Indent | Token::Dedent);
        if let (true, 1, [(Token::Name(name), _), (Token::Op(":"), _), ..]) = (begins, depth, &body[at + 1..])
            && !matches!(name.as_str(), "else" | "try" | "finally" | "except")
        {
            out.push(name.clone());
        }
    }
    out
}
