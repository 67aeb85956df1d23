//! What operators, attributes, indices and slices make of values.

use super::value::{PLACE, Text, TooLarge, UNKNOWN, Value, percent};
use std::rc::Rc;

/// Gives a dictionary's key a value.
pub(super) fn put(pairs: &mut Vec<(Value, Value)>, key: Value, value: Value) {
    match pairs.iter_mut().find(|p| p.0.same(&key) == Some(true)) {
        Some(pair) => pair.1 = value,
        None => pairs.push((key, value)),
    }
}

pub(super) fn attribute(of: &Value, name: &str) -> Value {
    match of {
        Value::Object(object) => {
            let held = object.borrow();
            if let Some(value) = held.attrs.get(name) {
                return value.clone();
            }
            if held.attrs.contains_key(super::calls::OPTIONS) {
                return Value::Own(Box::new(of.clone()), name.to_owned());
            }
            match held.class.as_ref().and_then(|c| c.attrs.get(name)) {
                Some(Value::Def(def)) => Value::Method(Rc::clone(object), Rc::clone(def)),
                Some(value) => value.clone(),
                None => Value::Unknown,
            }
        }
        Value::Class(class) => class.attrs.get(name).cloned().unwrap_or(Value::Unknown),
        Value::Lib(path) => Value::Lib(format!("{path}.{name}")),
        Value::Unknown => Value::Unknown,
        other => Value::Own(Box::new(other.clone()), name.to_owned()),
    }
}

pub(super) fn index(of: &Value, key: &Value) -> Value {
    match (of, key) {
        (Value::Dict(d), key) => {
            d.borrow().iter().find(|p| p.0.same(key) == Some(true)).map_or(Value::Unknown, |p| p.1.clone())
        }
        (Value::List(l), Value::Int(n)) => {
            let l = l.borrow();
            let at = if *n < 0 { l.len() as i64 + n } else { *n };
            l.get(at as usize).cloned().unwrap_or(Value::Unknown)
        }
        (Value::Str(t), Value::Int(n)) => {
            let chars: Vec<char> = t.text.chars().collect();
            let at = if *n < 0 { chars.len() as i64 + n } else { *n };
            chars.get(at as usize).map_or(Value::Unknown, |c| Value::at(c.to_string(), t.line))
        }
        _ => Value::Unknown,
    }
}

pub(super) fn slice(of: &Value, from: Option<i64>, to: Option<i64>) -> Value {
    let cut = |len: usize| {
        let place = |n: i64| if n < 0 { (len as i64 + n).max(0) } else { n.min(len as i64) } as usize;
        let (from, to) = (place(from.unwrap_or(0)), place(to.unwrap_or(len as i64)));
        (from, to.max(from))
    };
    match of {
        Value::List(l) => {
            let l = l.borrow();
            let (from, to) = cut(l.len());
            Value::list(l[from..to].to_vec())
        }
        Value::Str(t) => {
            let chars: Vec<char> = t.text.chars().collect();
            let (from, to) = cut(chars.len());
            Value::at(chars[from..to].iter().collect::<String>(), t.line)
        }
        _ => Value::Unknown,
    }
}

/// About how many bytes an operator makes.
pub(super) fn cost(left: &Value, op: &str, right: &Value) -> u64 {
    match (op, left, right) {
        ("+", Value::Str(_) | Value::List(_), _) => left.bytes().saturating_add(right.bytes()),
        ("*", Value::Str(_) | Value::List(_), Value::Int(n)) => {
            left.bytes().max(1).saturating_mul(u64::try_from(*n).unwrap_or(0))
        }
        ("%", Value::Str(t), Value::List(l)) => {
            l.borrow().iter().fold(t.text.len() as u64, |sum, v| sum.saturating_add(v.bytes()))
        }
        ("%", Value::Str(t), Value::Dict(d)) => {
            let most = d.borrow().iter().map(|p| p.1.bytes()).max().unwrap_or(0).max(PLACE);
            (t.text.matches('%').count() as u64).saturating_mul(most).saturating_add(t.text.len() as u64)
        }
        ("%", Value::Str(t), other) => t.text.len() as u64 + other.bytes(),
        _ => 0,
    }
}

/// # Errors
/// A format asks for more than it may.
pub(super) fn operate(left: &Value, op: &str, right: &Value) -> Result<Value, TooLarge> {
    let known = |b: Option<bool>| b.map_or(Value::Unknown, Value::Bool);
    Ok(match (op, left, right) {
        ("==", a, b) => known(a.same(b)),
        ("!=", a, b) => known(a.same(b).map(|s| !s)),
        ("in", a, b) => match (a, b) {
            (Value::Str(a), Value::Str(b)) => Value::Bool(b.text.contains(&*a.text)),
            _ => b
                .each()
                .map_or(Value::Unknown, |all| Value::Bool(all.iter().any(|v| v.same(a) == Some(true)))),
        },
        ("+", Value::Str(a), b) | ("+", b, Value::Str(a)) if matches!(b, Value::Unknown) => {
            let text = match left {
                Value::Str(_) => format!("{}{UNKNOWN}", a.text),
                _ => format!("{UNKNOWN}{}", a.text),
            };
            Value::Str(Text { text: text.into(), line: a.line })
        }
        ("+", Value::Str(a), Value::Str(b)) => {
            let line = if a.line == 0 { b.line } else { a.line };
            let line = right.line_among(a.text.split_whitespace().count(), line);
            Value::Str(Text { text: format!("{}{}", a.text, b.text).into(), line })
        }
        ("+", Value::List(a), Value::List(b)) => {
            Value::list(a.borrow().iter().chain(b.borrow().iter()).cloned().collect())
        }
        ("*", Value::Str(t), Value::Int(n)) => Value::at(t.text.repeat((*n).max(0) as usize), t.line),
        ("*", Value::List(l), Value::Int(n)) => {
            Value::list((0..(*n).max(0)).flat_map(|_| l.borrow().clone()).collect())
        }
        ("%", Value::Str(t), b) => {
            let values = match b {
                Value::List(l) => l.borrow().clone(),
                other => vec![other.clone()],
            };
            let own = t.text.split_whitespace().filter(|w| !w.contains('%')).count();
            let line = values.iter().fold(t.line, |line, v| v.line_among(own, line));
            Value::at(percent(&t.text, &values)?, line)
        }
        (_, Value::Int(a), Value::Int(b)) => whole(*a, op, *b),
        _ => match (left.number(), right.number()) {
            (Some(a), Some(b)) => broken(a, op, b),
            _ => match (left, right) {
                (Value::Str(a), Value::Str(b)) if matches!(op, "<" | ">" | "<=" | ">=") => {
                    broken(a.text.cmp(&b.text) as i32 as f64, op, 0.0)
                }
                _ => Value::Unknown,
            },
        },
    })
}

fn whole(a: i64, op: &str, b: i64) -> Value {
    let n = match op {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "//" => a.checked_div_euclid(b),
        "%" => a.checked_rem_euclid(b),
        "**" => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        "<<" => u32::try_from(b).ok().and_then(|b| a.checked_shl(b)),
        ">>" => u32::try_from(b).ok().and_then(|b| a.checked_shr(b)),
        "|" => Some(a | b),
        "&" => Some(a & b),
        "^" => Some(a ^ b),
        _ => return broken(a as f64, op, b as f64),
    };
    n.map_or(Value::Unknown, Value::Int)
}

fn broken(a: f64, op: &str, b: f64) -> Value {
    match op {
        "+" => Value::Float(a + b),
        "-" => Value::Float(a - b),
        "*" => Value::Float(a * b),
        "/" if b != 0.0 => Value::Float(a / b),
        "//" if b != 0.0 => Value::Float((a / b).floor()),
        "<" => Value::Bool(a < b),
        ">" => Value::Bool(a > b),
        "<=" => Value::Bool(a <= b),
        ">=" => Value::Bool(a >= b),
        _ => Value::Unknown,
    }
}
