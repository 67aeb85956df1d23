//! Python's values and how they are written.

use super::tree::Def;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A string with the line of the text it came from; 0 where it came from none.
#[derive(Clone, Debug)]
pub struct Text {
    pub text: Rc<str>,
    pub line: u32,
}

/// An object: attributes by name.
#[derive(Debug, Default)]
pub struct Object {
    pub class: Option<Rc<Class>>,
    pub attrs: BTreeMap<String, Value>,
}

/// A class: its functions and values.
#[derive(Debug, Default)]
pub struct Class {
    pub attrs: BTreeMap<String, Value>,
    pub fields: Vec<String>,
}

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Text),
    List(Rc<RefCell<Vec<Value>>>),
    Dict(Rc<RefCell<Vec<(Value, Value)>>>),
    Def(Rc<Def>),
    /// A function of an object's.
    Method(Rc<RefCell<Object>>, Rc<Def>),
    /// A function of a value's that is built in.
    Own(Box<Value>, String),
    Class(Rc<Class>),
    Object(Rc<RefCell<Object>>),
    /// Something of a library's, by its path.
    Lib(String),
    /// What cannot be known without running Python itself.
    Unknown,
}

/// Bytes of a place in a list.
pub const PLACE: u64 = 64;

/// Values within each other.
pub const DEPTH: usize = 200;

/// Widths and places of a format, at most.
pub const WIDTH: usize = 1_000_000;

/// Something would be larger than it may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLarge;

/// Stands in a string for what is not known.
pub const UNKNOWN: char = '\u{fffd}';

impl Value {
    /// A string that came from nowhere.
    pub fn str(text: impl Into<Rc<str>>) -> Value {
        Value::Str(Text { text: text.into(), line: 0 })
    }
    /// A string that came from a line.
    pub fn at(text: impl Into<Rc<str>>, line: u32) -> Value {
        Value::Str(Text { text: text.into(), line })
    }
    /// A list.
    pub fn list(all: Vec<Value>) -> Value {
        Value::List(Rc::new(RefCell::new(all)))
    }
    /// What `str()` gives.
    pub fn show(&self) -> String {
        match self {
            Value::None => "None".to_owned(),
            Value::Bool(true) => "True".to_owned(),
            Value::Bool(false) => "False".to_owned(),
            Value::Int(n) => n.to_string(),
            Value::Float(n) if n.fract() == 0.0 && n.abs() < 1e15 => format!("{n:.1}"),
            Value::Float(n) => n.to_string(),
            Value::Str(t) => t.text.to_string(),
            _ => UNKNOWN.to_string(),
        }
    }
    /// The line a string came from.
    pub fn line(&self) -> u32 {
        match self {
            Value::Str(t) => t.line,
            _ => 0,
        }
    }
    /// The line of a text that is put together of its own words, which stand on `line`, and of this value: that of whichever has more words.
    pub fn line_among(&self, own: usize, line: u32) -> u32 {
        match self {
            Value::Str(t) if t.line > 0 && t.text.split_whitespace().count() > own.max(1) => t.line,
            _ => line,
        }
    }
    /// Whether it counts as true; `None` where that is not known.
    pub fn truth(&self) -> Option<bool> {
        Some(match self {
            Value::None => false,
            Value::Bool(b) => *b,
            Value::Int(n) => *n != 0,
            Value::Float(n) => *n != 0.0,
            Value::Str(t) if t.text.contains(UNKNOWN) => return None,
            Value::Str(t) => !t.text.is_empty(),
            Value::List(l) => !l.borrow().is_empty(),
            Value::Dict(d) => !d.borrow().is_empty(),
            Value::Unknown => return None,
            _ => true,
        })
    }
    /// As a number.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Float(n) => Some(*n),
            Value::Bool(b) => Some(f64::from(u8::from(*b))),
            _ => None,
        }
    }
    /// Whether two are equal; `None` where that is not known, or where they hold more within each other than is looked at.
    pub fn same(&self, other: &Value) -> Option<bool> {
        self.same_within(other, DEPTH)
    }
    fn same_within(&self, other: &Value, depth: usize) -> Option<bool> {
        let depth = depth.checked_sub(1)?;
        Some(match (self, other) {
            (Value::Unknown, _) | (_, Value::Unknown) => return None,
            (Value::Str(a), Value::Str(b)) => {
                if a.text.contains(UNKNOWN) || b.text.contains(UNKNOWN) {
                    return None;
                }
                a.text == b.text
            }
            (Value::None, Value::None) => true,
            (Value::List(a), Value::List(b)) => {
                let (a, b) = (a.borrow(), b.borrow());
                a.len() == b.len()
                    && a.iter().zip(b.iter()).all(|(a, b)| a.same_within(b, depth) == Some(true))
            }
            _ => match (self.number(), other.number()) {
                (Some(a), Some(b)) => a == b,
                _ => false,
            },
        })
    }
    /// About how many bytes it takes, what it holds counted as places only.
    pub fn bytes(&self) -> u64 {
        match self {
            Value::Str(t) => t.text.len() as u64,
            Value::List(l) => l.borrow().len() as u64 * PLACE,
            Value::Dict(d) => d.borrow().len() as u64 * 2 * PLACE,
            _ => 0,
        }
    }
    /// Whether too much stands within it, as far as first and last elements lead.
    pub fn is_deep(&self) -> bool {
        let mut todo = vec![(self.clone(), 0)];
        while let Some((value, depth)) = todo.pop() {
            let inner: Vec<Value> = match &value {
                Value::List(l) => l.borrow().first().into_iter().chain(l.borrow().last()).cloned().collect(),
                Value::Dict(d) => d.borrow().last().map(|p| p.1.clone()).into_iter().collect(),
                Value::Object(o) => o.borrow().attrs.values().take(4).cloned().collect(),
                _ => continue,
            };
            if depth >= DEPTH {
                return true;
            }
            // Two ways down from each: the first is enough where both lead to the same.
            todo.extend(inner.into_iter().take(if depth < 4 { 4 } else { 1 }).map(|v| (v, depth + 1)));
        }
        false
    }
    /// What a loop goes over; `None` where that is not known.
    pub fn each(&self) -> Option<Vec<Value>> {
        Some(match self {
            Value::List(l) => l.borrow().clone(),
            Value::Dict(d) => d.borrow().iter().map(|p| p.0.clone()).collect(),
            Value::Str(t) => t.text.chars().map(|c| Value::at(c.to_string(), t.line)).collect(),
            _ => return None,
        })
    }
}

/// A value in the form a format says: `05d`, `x`, `.2f`, `>8`.
///
/// # Errors
/// Its width or its places are more than [`WIDTH`].
pub fn formatted(value: &Value, spec: &str) -> Result<String, TooLarge> {
    let shown = value.show();
    if spec.is_empty() || shown.contains(UNKNOWN) {
        return Ok(shown);
    }
    let numbers = spec.split(|c: char| !c.is_ascii_digit());
    if numbers.filter(|n| !n.is_empty()).any(|n| n.parse::<usize>().map_or(true, |n| n > WIDTH)) {
        return Err(TooLarge);
    }
    let kind = spec.chars().last().filter(char::is_ascii_alphabetic);
    let head = spec.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let (head, places) = head.split_once('.').map_or((head, None), |(h, p)| (h, p.parse::<usize>().ok()));
    let alternate = head.contains('#');
    let digits: String = head.chars().filter(char::is_ascii_digit).collect();
    let zero = digits.starts_with('0');
    let width = digits.parse::<usize>().unwrap_or(0);
    let whole = value.number().map(|n| n as i64);
    let text = match (kind, whole, value.number()) {
        (Some('x'), Some(n), _) => format!("{}{n:x}", if alternate { "0x" } else { "" }),
        (Some('X'), Some(n), _) => format!("{}{n:X}", if alternate { "0x" } else { "" }),
        (Some('d' | 'i'), Some(n), _) => n.to_string(),
        (Some('f' | 'g'), _, Some(n)) => format!("{n:.*}", places.unwrap_or(6)),
        _ => shown,
    };
    let pad = width.saturating_sub(text.chars().count());
    let fill = if zero { "0" } else { " " }.repeat(pad);
    Ok(if head.starts_with('<') { text + &fill } else { fill + &text })
}

/// `%` with a string on its left.
///
/// # Errors
/// A width or places are more than [`WIDTH`].
pub fn percent(template: &str, values: &[Value]) -> Result<String, TooLarge> {
    let mut out = String::new();
    let mut values = values.iter();
    let mut rest = template.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if rest.peek() == Some(&'%') {
            rest.next();
            out.push('%');
            continue;
        }
        let mut name = None;
        if rest.peek() == Some(&'(') {
            rest.next();
            name = Some(rest.by_ref().take_while(|c| *c != ')').collect::<String>());
        }
        let mut spec = String::new();
        for c in rest.by_ref() {
            spec.push(c);
            if c.is_ascii_alphabetic() {
                break;
            }
        }
        let value = match (&name, values.clone().next()) {
            (Some(name), Some(Value::Dict(d))) => {
                d.borrow().iter().find(|p| p.0.show() == *name).map_or(Value::Unknown, |p| p.1.clone())
            }
            _ => values.next().cloned().unwrap_or(Value::Unknown),
        };
        out += &formatted(&value, spec.trim_end_matches(['s', 'r']))?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        assert_eq!(formatted(&Value::Int(10), "x").unwrap(), "a");
        assert_eq!(formatted(&Value::Int(10), "02x").unwrap(), "0a");
        assert_eq!(formatted(&Value::Float(2.5), ".2f").unwrap(), "2.50");
        assert_eq!(Value::Float(3.0).show(), "3.0");
        assert_eq!(
            percent("rate %dkbit dev %s 5%%", &[Value::Int(5), Value::str("eth0")]),
            Ok("rate 5kbit dev eth0 5%".to_owned())
        );
    }
}
