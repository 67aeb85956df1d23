//! Reads Python's expressions.

use super::read::Token;
use super::tree::{Arg, Expr, Lost, Parser, Read};

const LEVELS: [&[&str]; 8] = [
    &["or"],
    &["and"],
    &["<", ">", "==", "!=", "<=", ">=", "in", "is", "not"],
    &["|"],
    &["&", "^"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "//", "%", "@"],
];

impl Parser<'_> {
    /// Names that are given values: `a`, `a, b`, `(a, b)`.
    pub(super) fn targets(&mut self) -> Read<Expr> {
        let mut all = vec![self.postfix()?];
        while self.op(",") {
            if matches!(self.token(), Some(Token::Name(n)) if n == "in") {
                break;
            }
            all.push(self.postfix()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Expr::List(all) })
    }
    /// An expression, or several with commas: a tuple.
    pub(super) fn list(&mut self) -> Read<Expr> {
        let first = self.expr()?;
        if !matches!(self.token(), Some(Token::Op(","))) {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.op(",") {
            if matches!(self.token(), Some(Token::Newline) | Some(Token::Op("=" | ")" | ":")) | None) {
                break;
            }
            all.push(self.expr()?);
        }
        Ok(Expr::List(all))
    }
    pub(super) fn expr(&mut self) -> Read<Expr> {
        self.deeper()?;
        let value = self.expr_here()?;
        self.depth -= 1;
        Ok(value)
    }
    fn expr_here(&mut self) -> Read<Expr> {
        if self.op("*") {
            return Ok(Expr::Star(Box::new(self.level(0)?)));
        }
        if self.word("lambda") {
            let mut depth = 0i32;
            while let Some(token) = self.token() {
                match token {
                    Token::Op("(" | "[" | "{") => depth += 1,
                    Token::Op(")" | "]" | "}") if depth == 0 => break,
                    Token::Op(")" | "]" | "}") => depth -= 1,
                    Token::Op(",") if depth == 0 => break,
                    Token::Newline => break,
                    _ => {}
                }
                self.at += 1;
            }
            return Ok(Expr::Unknown);
        }
        self.word("await");
        let value = self.level(0)?;
        if self.word("if") {
            let condition = self.level(0)?;
            if !self.word("else") {
                return Err(Lost);
            }
            let other = self.expr()?;
            return Ok(Expr::If(Box::new(condition), Box::new(value), Box::new(other)));
        }
        if self.op(":=") {
            return self.expr();
        }
        Ok(value)
    }
    pub(super) fn level(&mut self, level: usize) -> Read<Expr> {
        let Some(ops) = LEVELS.get(level) else { return self.unary() };
        if level == 2 && self.word("not") {
            self.deeper()?;
            let value = self.level(2)?;
            self.depth -= 1;
            return Ok(Expr::Not(Box::new(value)));
        }
        let mut left = self.level(level + 1)?;
        let mut chain = 0;
        'more: loop {
            for op in *ops {
                let named = op.chars().all(char::is_alphabetic);
                let here = if named { self.word(op) } else { self.op(op) };
                if !here {
                    continue;
                }
                let (mut op, mut negated) = (*op, false);
                if op == "not" {
                    if !self.word("in") {
                        return Err(Lost);
                    }
                    (op, negated) = ("in", true);
                }
                if op == "is" {
                    negated = self.word("not");
                    op = "==";
                }
                let right = self.level(level + 1)?;
                left = Expr::Op(Box::new(left), op, Box::new(right));
                if negated {
                    left = Expr::Not(Box::new(left));
                }
                self.longer(&mut chain)?;
                continue 'more;
            }
            return Ok(left);
        }
    }
    fn unary(&mut self) -> Read<Expr> {
        self.deeper()?;
        let value = self.unary_here()?;
        self.depth -= 1;
        Ok(value)
    }
    fn unary_here(&mut self) -> Read<Expr> {
        if self.op("-") {
            return Ok(Expr::Minus(Box::new(self.unary()?)));
        }
        if self.op("+") || self.op("~") {
            return self.unary();
        }
        if self.word("not") {
            return Ok(Expr::Not(Box::new(self.unary()?)));
        }
        self.word("await");
        let base = self.postfix()?;
        if self.op("**") {
            let power = self.unary()?;
            return Ok(Expr::Op(Box::new(base), "**", Box::new(power)));
        }
        Ok(base)
    }
    pub(super) fn postfix(&mut self) -> Read<Expr> {
        let mut value = self.atom()?;
        let mut chain = 0;
        loop {
            // These are taken by recursion, each of which is larger than an operator's.
            chain += 4;
            self.longer(&mut chain)?;
            if self.op(".") {
                value = Expr::Attr(Box::new(value), self.name()?);
            } else if self.op("(") {
                let line = self.line();
                let args = self.arguments()?;
                value = Expr::Call(Box::new(value), args, line);
            } else if self.op("[") {
                let from = if matches!(self.token(), Some(Token::Op(":"))) {
                    None
                } else {
                    Some(Box::new(self.list()?))
                };
                if self.op(":") {
                    let to = if matches!(self.token(), Some(Token::Op("]"))) {
                        None
                    } else {
                        Some(Box::new(self.expr()?))
                    };
                    self.need("]")?;
                    value = Expr::Slice(Box::new(value), from, to);
                } else {
                    self.need("]")?;
                    value = Expr::Index(Box::new(value), from.ok_or(Lost)?);
                }
            } else {
                return Ok(value);
            }
        }
    }
    pub(super) fn arguments(&mut self) -> Read<Vec<Arg>> {
        let mut args = Vec::new();
        while !self.op(")") {
            if self.op("**") {
                self.expr()?;
            } else {
                let named = matches!(self.tokens.get(self.at + 1), Some((Token::Op("="), _)));
                let name = if named { Some(self.name()?) } else { None };
                if named {
                    self.need("=")?;
                }
                let value = self.expr()?;
                let value = self.comprehension(value)?;
                args.push(Arg { name, value });
            }
            if !self.op(",") {
                self.need(")")?;
                break;
            }
        }
        Ok(args)
    }
    /// `for … in … if …` behind an expression.
    fn comprehension(&mut self, value: Expr) -> Read<Expr> {
        if !self.word("for") {
            return Ok(value);
        }
        let names = self.targets()?;
        if !self.word("in") {
            return Err(Lost);
        }
        let over = self.level(0)?;
        let mut conditions = Vec::new();
        while self.word("if") {
            conditions.push(self.level(0)?);
        }
        Ok(Expr::Each(Box::new(value), Box::new(names), Box::new(over), conditions))
    }
    fn atom(&mut self) -> Read<Expr> {
        let line = self.line();
        let Some(token) = self.token().cloned() else { return Err(Lost) };
        self.at += 1;
        match token {
            Token::Int(n) => Ok(Expr::Int(n)),
            Token::Float(n) => Ok(Expr::Float(n)),
            Token::Name(name) => Ok(Expr::Name(name)),
            Token::Str(text, formatted) => {
                let mut value = Expr::Str(text, formatted, line);
                let mut chain = 0;
                // Strings side by side are one.
                while let Some(Token::Str(text, formatted)) = self.token().cloned() {
                    let next = Expr::Str(text, formatted, self.line());
                    self.at += 1;
                    self.longer(&mut chain)?;
                    value = Expr::Op(Box::new(value), "+", Box::new(next));
                }
                Ok(value)
            }
            Token::Op("(") => {
                if self.op(")") {
                    return Ok(Expr::List(Vec::new()));
                }
                let value = self.list()?;
                let value = self.comprehension(value)?;
                self.need(")")?;
                Ok(value)
            }
            Token::Op("[") => {
                let mut all = Vec::new();
                while !self.op("]") {
                    let one = self.expr()?;
                    if matches!(self.token(), Some(Token::Name(n)) if n == "for") {
                        let each = self.comprehension(one)?;
                        self.need("]")?;
                        return Ok(each);
                    }
                    all.push(one);
                    if !self.op(",") {
                        self.need("]")?;
                        break;
                    }
                }
                Ok(Expr::List(all))
            }
            Token::Op("{") => {
                let mut pairs = Vec::new();
                let mut set = Vec::new();
                while !self.op("}") {
                    let key = self.expr()?;
                    if self.op(":") {
                        pairs.push((key, self.expr()?));
                    } else {
                        set.push(key);
                    }
                    if !self.op(",") {
                        self.need("}")?;
                        break;
                    }
                }
                Ok(if set.is_empty() { Expr::Dict(pairs) } else { Expr::List(set) })
            }
            _ => Err(Lost),
        }
    }
}
