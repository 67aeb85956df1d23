//! The Python that scripts have between `%{` and `}%`, as far as it asserts something of numbers.
//!
//! Follows: the Python 3 reference, for `assert`, `print`, assignments and expressions of integers, floats, strings and tuples.
//! Differs: no `if`, `for`, `def`, `import`, no lists, no attributes; each is refused by its name.

use std::collections::BTreeMap;

/// How deep expressions may stand within each other.
const DEEPEST: u32 = 64;
/// The longest text a value has, bytes.
const LONGEST: usize = 1 << 16;

/// A value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Int(i128),
    Float(f64),
    Bool(bool),
    Text(String),
    Tuple(Vec<Value>),
    Nothing,
}
use Value::{Bool, Float, Int, Nothing, Text, Tuple};

impl Value {
    fn is_true(&self) -> bool {
        match self {
            Int(n) => *n != 0,
            Float(x) => *x != 0.0,
            Bool(b) => *b,
            Text(t) => !t.is_empty(),
            Tuple(t) => !t.is_empty(),
            Nothing => false,
        }
    }
    fn int(&self) -> Option<i128> {
        match self {
            Int(n) => Some(*n),
            Bool(b) => Some((*b).into()),
            _ => None,
        }
    }
    fn float(&self) -> Option<f64> {
        match self {
            Float(x) => Some(*x),
            other => other.int().map(|n| n as f64),
        }
    }
    fn kind(&self) -> &'static str {
        match self {
            Int(_) => "int",
            Float(_) => "float",
            Bool(_) => "bool",
            Text(_) => "str",
            Tuple(_) => "tuple",
            Nothing => "NoneType",
        }
    }
    /// As Python writes it within a tuple.
    fn quoted(&self) -> String {
        match self {
            Text(text) => format!("'{text}'"),
            other => other.to_string(),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Int(n) => write!(f, "{n}"),
            Float(x) if x.fract() == 0.0 && x.abs() < 1e16 => write!(f, "{x:.1}"),
            Float(x) => write!(f, "{x}"),
            Bool(b) => f.write_str(if *b { "True" } else { "False" }),
            Text(text) => f.write_str(text),
            Tuple(values) => {
                let all: Vec<String> = values.iter().map(Value::quoted).collect();
                write!(f, "({}{})", all.join(", "), if all.len() == 1 { "," } else { "" })
            }
            Nothing => f.write_str("None"),
        }
    }
}

/// Names and their values, from one piece of code to the next.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Names(BTreeMap<String, Value>);

impl Names {
    pub fn set(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }
    pub fn set_int(&mut self, name: &str, value: impl Into<i128>) {
        self.set(name, Int(value.into()));
    }

    /// Runs a piece of code; what it prints is put into `printed`.
    ///
    /// # Errors
    /// `AssertionError: …`, or another error with its name.
    pub fn run(&mut self, text: &str, printed: &mut String) -> Result<(), String> {
        let tokens = tokens(text)?;
        let mut p = Parser { names: self, tokens, at: 0, printed };
        while p.at < p.tokens.len() {
            if !p.has(";") && !p.has("\n") {
                p.statement()?;
                if p.at < p.tokens.len() && !p.has(";") && !p.has("\n") {
                    return Err(format!("SyntaxError: {} is not expected there", p.shown()));
                }
            }
        }
        Ok(())
    }
}

#[derive(Clone, PartialEq, Debug)]
enum Token {
    Value(Value),
    Name(String),
    Op(&'static str),
}

const OPS: [&str; 34] = [
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+=", "-=", "*=", "+", "-", "*", "/", "%", "<", ">", "=",
    "(", ")", ",", ";", "&", "|", "^", "~", "[", "]", "{", "}", ".", ":", "\n",
];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut all = Vec::new();
    let mut rest = text;
    let mut depth = 0_i32;
    while let Some(c) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix('\\') {
            rest = behind
                .trim_start_matches([' ', '\t', '\r'])
                .strip_prefix('\n')
                .ok_or("SyntaxError: \\ stands at the end of a line")?;
        } else if c == '#' {
            rest = rest.find('\n').map_or("", |at| &rest[at..]);
        } else if c == '\n' && depth > 0 || c != '\n' && c.is_whitespace() {
            rest = &rest[c.len_utf8()..];
        } else if c.is_ascii_digit() || c == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
            let len = rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_'))
                .unwrap_or(rest.len());
            let (number, behind) = rest.split_at(len);
            let plain = number.replace('_', "");
            let value = match plain.strip_prefix("0x").or(plain.strip_prefix("0X")) {
                Some(hex) => i128::from_str_radix(hex, 16).ok().map(Int),
                None => plain.parse().ok().map(Int).or_else(|| plain.parse().ok().map(Float)),
            };
            all.push(Token::Value(value.ok_or_else(|| format!("SyntaxError: {number} is not a number"))?));
            rest = behind;
        } else if c.is_alphabetic() || c == '_' {
            let len = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(len);
            all.push(match name {
                "True" => Token::Value(Bool(true)),
                "False" => Token::Value(Bool(false)),
                "None" => Token::Value(Nothing),
                name => Token::Name(name.to_owned()),
            });
            rest = behind;
        } else if c == '\'' || c == '"' {
            let mut value = String::new();
            let mut chars = rest[1..].char_indices();
            let end = loop {
                match chars.next() {
                    Some((at, end)) if end == c => break at,
                    Some((_, '\\')) => match chars.next() {
                        Some((_, 'n')) => value.push('\n'),
                        Some((_, 't')) => value.push('\t'),
                        Some((_, other)) => value.push(other),
                        None => return Err("SyntaxError: a string has no end".to_owned()),
                    },
                    Some((_, other)) => value.push(other),
                    None => return Err("SyntaxError: a string has no end".to_owned()),
                }
            };
            rest = &rest[1 + end + 1..];
            all.push(Token::Value(Text(value)));
        } else {
            let op = OPS
                .iter()
                .find(|op| rest.starts_with(**op))
                .ok_or_else(|| format!("SyntaxError: {c} is not expected there"))?;
            depth += i32::from(*op == "(") - i32::from(*op == ")");
            all.push(Token::Op(op));
            rest = &rest[op.len()..];
        }
    }
    Ok(all)
}

struct Parser<'a> {
    names: &'a mut Names,
    tokens: Vec<Token>,
    at: usize,
    printed: &'a mut String,
}

type Eval = Result<Value, String>;

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }
    fn has(&mut self, op: &str) -> bool {
        let is = matches!(self.peek(), Some(Token::Op(o)) if *o == op);
        self.at += usize::from(is);
        is
    }
    fn has_name(&mut self, name: &str) -> bool {
        let is = matches!(self.peek(), Some(Token::Name(n)) if n == name);
        self.at += usize::from(is);
        is
    }
    fn shown(&self) -> String {
        match self.peek() {
            None => "the end".to_owned(),
            Some(Token::Value(value)) => value.quoted(),
            Some(Token::Name(name)) => name.clone(),
            Some(Token::Op("\n")) => "the end of the line".to_owned(),
            Some(Token::Op(op)) => (*op).to_owned(),
        }
    }

    fn statement(&mut self) -> Result<(), String> {
        if self.has_name("assert") {
            let good = self.expr(0)?.is_true();
            let said = if self.has(",") { Some(self.expr(0)?) } else { None };
            return match (good, said) {
                (true, _) => Ok(()),
                (false, None) => Err("AssertionError".to_owned()),
                (false, Some(said)) => Err(format!("AssertionError: {said}")),
            };
        }
        if self.has_name("pass") {
            return Ok(());
        }
        let Some(Token::Name(name)) = self.peek().cloned() else { return self.expr(0).map(|_| ()) };
        if [
            "if", "for", "while", "def", "class", "import", "from", "try", "with", "lambda", "del", "global",
            "return", "raise",
        ]
        .contains(&name.as_str())
        {
            return Err(format!(
                "{name} is not run here: of Python there are assert, print, assignments and expressions"
            ));
        }
        let Some(Token::Op(op @ ("=" | "+=" | "-=" | "*="))) = self.tokens.get(self.at + 1).cloned() else {
            return self.expr(0).map(|_| ());
        };
        self.at += 2;
        let value = self.tuple(0)?;
        let value = match op {
            "=" => value,
            op => arithmetic(&op[..1], self.named(&name)?, value)?,
        };
        self.names.set(&name, value);
        Ok(())
    }

    fn named(&self, name: &str) -> Eval {
        self.names.0.get(name).cloned().ok_or_else(|| format!("NameError: name '{name}' is not defined"))
    }

    /// `a, b`, or one expression.
    fn tuple(&mut self, depth: u32) -> Eval {
        let first = self.expr(depth)?;
        if !matches!(self.peek(), Some(Token::Op(","))) {
            return Ok(first);
        }
        let mut all = vec![first];
        while self.has(",") {
            if matches!(self.peek(), None | Some(Token::Op(")" | ";" | "\n"))) {
                break;
            }
            all.push(self.expr(depth)?);
        }
        Ok(Tuple(all))
    }

    fn expr(&mut self, depth: u32) -> Eval {
        if depth > DEEPEST {
            return Err("RecursionError: expressions stand too deep within each other".to_owned());
        }
        let mut left = self.and(depth)?;
        while self.has_name("or") {
            let right = self.and(depth)?;
            left = if left.is_true() { left } else { right };
        }
        Ok(left)
    }
    fn and(&mut self, depth: u32) -> Eval {
        let mut left = self.not(depth)?;
        while self.has_name("and") {
            let right = self.not(depth)?;
            left = if left.is_true() { right } else { left };
        }
        Ok(left)
    }
    fn not(&mut self, depth: u32) -> Eval {
        let mut turned = false;
        let mut some = false;
        while self.has_name("not") {
            (turned, some) = (!turned, true);
        }
        let value = self.comparison(depth)?;
        Ok(if some { Bool(value.is_true() != turned) } else { value })
    }
    fn comparison(&mut self, depth: u32) -> Eval {
        let mut left = self.binary(0, depth)?;
        let mut good = None;
        while let Some(Token::Op(op @ ("<" | ">" | "<=" | ">=" | "==" | "!="))) = self.peek().cloned() {
            self.at += 1;
            let right = self.binary(0, depth)?;
            good = Some(good.unwrap_or(true) && compare(op, &left, &right)?);
            left = right;
        }
        Ok(good.map_or(left, Bool))
    }
    fn binary(&mut self, level: usize, depth: u32) -> Eval {
        const LEVELS: [&[&str]; 6] =
            [&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["*", "/", "//", "%"]];
        let Some(ops) = LEVELS.get(level) else { return self.unary(depth) };
        let mut left = self.binary(level + 1, depth)?;
        while let Some(Token::Op(op)) = self.peek().cloned()
            && ops.contains(&op)
        {
            self.at += 1;
            let right = self.binary(level + 1, depth)?;
            left = arithmetic(op, left, right)?;
        }
        Ok(left)
    }
    fn unary(&mut self, depth: u32) -> Eval {
        let mut minus = false;
        loop {
            if self.has("-") {
                minus = !minus;
            } else if !self.has("+") {
                break;
            }
        }
        let value = self.primary(depth)?;
        match (minus, value) {
            (false, value) => Ok(value),
            (true, Float(x)) => Ok(Float(-x)),
            (true, value) => arithmetic("-", Int(0), value),
        }
    }
    fn primary(&mut self, depth: u32) -> Eval {
        if self.has("(") {
            if self.has(")") {
                return Ok(Tuple(Vec::new()));
            }
            let value = self.tuple(depth + 1)?;
            return if self.has(")") {
                Ok(value)
            } else {
                Err(format!("SyntaxError: ) is expected, not {}", self.shown()))
            };
        }
        match self.peek().cloned() {
            Some(Token::Value(value)) => {
                self.at += 1;
                Ok(value)
            }
            Some(Token::Name(name)) => {
                self.at += 1;
                if !self.has("(") {
                    return self.named(&name);
                }
                let mut args = Vec::new();
                while !self.has(")") {
                    args.push(self.expr(depth + 1)?);
                    if !self.has(",") && !matches!(self.peek(), Some(Token::Op(")"))) {
                        return Err(format!("SyntaxError: ) is expected, not {}", self.shown()));
                    }
                }
                self.call(&name, args)
            }
            _ => Err(format!("SyntaxError: an expression is expected, not {}", self.shown())),
        }
    }

    fn call(&mut self, name: &str, args: Vec<Value>) -> Eval {
        let wrong = |v: &Value| format!("TypeError: {name}() does not take {}", v.kind());
        match (name, &args[..]) {
            ("print", _) => {
                let all: Vec<String> = args.iter().map(Value::to_string).collect();
                if self.printed.len() < LONGEST {
                    self.printed.push_str(&(all.join(" ") + "\n"));
                }
                Ok(Nothing)
            }
            ("abs", [v]) => match v {
                Float(x) => Ok(Float(x.abs())),
                v => Ok(Int(v.int().ok_or_else(|| wrong(v))?.saturating_abs())),
            },
            ("int", [Float(x)]) => Ok(Int(*x as i128)),
            ("int", [v]) => Ok(Int(v.int().ok_or_else(|| wrong(v))?)),
            ("float", [v]) => Ok(Float(v.float().ok_or_else(|| wrong(v))?)),
            ("str", [v]) => Ok(Text(v.to_string())),
            ("min" | "max", [first, rest @ ..]) => {
                let op = if name == "min" { "<" } else { ">" };
                let mut best = first.clone();
                for v in rest {
                    if compare(op, v, &best)? {
                        best = v.clone();
                    }
                }
                Ok(best)
            }
            _ => Err(format!("NameError: {name}() is not here: there are print abs int float str min max")),
        }
    }
}

fn compare(op: &str, left: &Value, right: &Value) -> Result<bool, String> {
    use std::cmp::Ordering;
    let order = match (left, right) {
        (Text(a), Text(b)) => Some(a.cmp(b)),
        (a, b) => match (a.int().zip(b.int()), a.float().zip(b.float())) {
            (Some((a, b)), _) => Some(a.cmp(&b)),
            (None, Some((a, b))) => a.partial_cmp(&b),
            (None, None) if op == "==" || op == "!=" => {
                (a == b).then_some(Ordering::Equal).or(Some(Ordering::Less))
            }
            (None, None) => {
                return Err(format!(
                    "TypeError: '{op}' not supported between '{}' and '{}'",
                    a.kind(),
                    b.kind()
                ));
            }
        },
    };
    let order = order.unwrap_or(Ordering::Greater);
    Ok(match op {
        "<" => order.is_lt(),
        ">" => order.is_gt(),
        "<=" => order.is_le(),
        ">=" => order.is_ge(),
        "==" => order.is_eq(),
        _ => order.is_ne(),
    })
}

fn arithmetic(op: &str, left: Value, right: Value) -> Eval {
    let overflow = || "OverflowError: the number is too large".to_owned();
    if let Text(format) = &left {
        let text = match (op, right) {
            ("%", values) => formatted(format, values)?,
            ("+", Text(more)) => format!("{format}{more}"),
            (_, right) => {
                return Err(format!("TypeError: '{op}' not supported between 'str' and '{}'", right.kind()));
            }
        };
        return if text.len() <= LONGEST { Ok(Text(text)) } else { Err(overflow()) };
    }
    let none = |a: &Value, b: &Value| {
        format!("TypeError: '{op}' not supported between '{}' and '{}'", a.kind(), b.kind())
    };
    if let (Some(a), Some(b)) = (left.int(), right.int())
        && op != "/"
    {
        if b == 0 && matches!(op, "//" | "%") {
            return Err("ZeroDivisionError: division by zero".to_owned());
        }
        let floor = || a.checked_div_euclid(b).map(|q| if b < 0 && a.rem_euclid(b) != 0 { q - 1 } else { q });
        let small = u32::try_from(b).ok().filter(|b| *b < 64);
        let value = match op {
            "+" => a.checked_add(b),
            "-" => a.checked_sub(b),
            "*" => a.checked_mul(b),
            "//" => floor(),
            "%" => floor().and_then(|q| q.checked_mul(b)).and_then(|p| a.checked_sub(p)),
            "<<" => small.and_then(|n| a.checked_mul(1 << n)),
            ">>" => small.map(|n| a >> n),
            "&" => Some(a & b),
            "|" => Some(a | b),
            "^" => Some(a ^ b),
            _ => None,
        };
        return value.map(Int).ok_or_else(overflow);
    }
    let (Some(a), Some(b)) = (left.float(), right.float()) else { return Err(none(&left, &right)) };
    match op {
        "+" => Ok(Float(a + b)),
        "-" => Ok(Float(a - b)),
        "*" => Ok(Float(a * b)),
        "/" | "//" | "%" if b == 0.0 => Err("ZeroDivisionError: division by zero".to_owned()),
        "/" => Ok(Float(a / b)),
        "//" => Ok(Float((a / b).floor())),
        "%" => Ok(Float(a - (a / b).floor() * b)),
        _ => Err(none(&left, &right)),
    }
}

/// `'…' % values`.
fn formatted(format: &str, values: Value) -> Result<String, String> {
    let mut values = match values {
        Tuple(all) => all.into_iter(),
        one => vec![one].into_iter(),
    };
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut spec = String::new();
        let kind = loop {
            match chars.next() {
                Some(c) if c.is_ascii_digit() || c == '.' || c == '-' => spec.push(c),
                Some('l') => {}
                Some(c) => break c,
                None => return Err("ValueError: incomplete format".to_owned()),
            }
        };
        if kind == '%' {
            out.push('%');
            continue;
        }
        let value = values.next().ok_or("TypeError: not enough arguments for format string")?;
        let number = || format!("TypeError: %{kind} format: a real number is required, not {}", value.kind());
        let text = match kind {
            'd' | 'u' | 'i' => (value.float().ok_or_else(number)? as i128).to_string(),
            'x' => format!("{:x}", value.int().ok_or_else(number)?),
            'f' => {
                let digits = spec.split_once('.').map_or(6, |s| s.1.parse().unwrap_or(6)).min(30);
                format!("{:.digits$}", value.float().ok_or_else(number)?)
            }
            's' => value.to_string(),
            'r' => value.quoted(),
            other => return Err(format!("ValueError: unsupported format character '{other}'")),
        };
        let width =
            spec.split('.').next().unwrap_or("").trim_start_matches('-').parse().unwrap_or(0).min(100);
        out.push_str(&if spec.starts_with('-') {
            format!("{text:<width$}")
        } else {
            format!("{text:>width$}")
        });
    }
    match values.next() {
        Some(_) => Err("TypeError: not all arguments converted during string formatting".to_owned()),
        None => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Result<String, String> {
        let mut names = Names::default();
        names.set_int("tcpi_snd_cwnd", 10);
        let mut printed = String::new();
        names.run(text, &mut printed).map(|()| printed)
    }

    #[test]
    fn assertions_hold_or_not() {
        assert_eq!(run("assert tcpi_snd_cwnd == 10, tcpi_snd_cwnd"), Ok(String::new()));
        assert_eq!(run("assert tcpi_snd_cwnd == 9, tcpi_snd_cwnd"), Err("AssertionError: 10".to_owned()));
        assert_eq!(run("assert 9 <= tcpi_snd_cwnd <= 11"), Ok(String::new()));
        assert_eq!(run("assert 9 <= tcpi_snd_cwnd < 10"), Err("AssertionError".to_owned()));
        assert_eq!(
            run("assert 1;\\\n   assert 0, 'x%d y%s' % (1, 'b')"),
            Err("AssertionError: x1 yb".to_owned())
        );
        assert_eq!(run("assert not (1 and 0) # text\n\nassert 2 > 1"), Ok(String::new()));
    }

    #[test]
    fn numbers_are_reckoned_as_in_python() {
        let text =
            "a = 7; a += 3\nprint(a, -7 // 2, -7 % 3, 7 % -3, 7 / 2, 1 << 4 | 1, 0x10, max(1, a), abs(-2))";
        assert_eq!(run(text), Ok("10 -4 2 -2 3.5 17 16 10 2\n".to_owned()));
        assert_eq!(
            run("print('%.2f|%5d|%x' % (1.5, 7, 255), (1, 'a'))"),
            Ok("1.50|    7|ff (1, 'a')\n".to_owned())
        );
    }

    #[test]
    fn what_is_not_here_is_refused_by_name() {
        assert_eq!(
            run("if 1: pass"),
            Err("if is not run here: of Python there are assert, print, assignments and expressions"
                .to_owned())
        );
        assert_eq!(run("assert b"), Err("NameError: name 'b' is not defined".to_owned()));
        assert_eq!(run("assert 1 % 0"), Err("ZeroDivisionError: division by zero".to_owned()));
        assert!(run(&"(".repeat(1000)).is_err() && run("'").is_err() && run("1 2").is_err());
    }
}
