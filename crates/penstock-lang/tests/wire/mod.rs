//! The notation of `golden/record.py`: `{name=1,list=[{…}],map=(1,2),text="…",flag=!}`, names sorted.

#![allow(dead_code, reason = "each test uses one direction")]

use penstock_model::{Options, Value};

/// Writes options.
pub fn text(options: &Options) -> String {
    let mut fields: Vec<String> =
        options.iter().map(|(name, value)| format!("{name}={}", one(value))).collect();
    fields.sort();
    format!("{{{}}}", fields.join(","))
}

fn one(value: &Value) -> String {
    let join = |parts: Vec<String>| parts.join(",");
    match value {
        Value::Flag => "!".to_owned(),
        Value::U32(v) => v.to_string(),
        Value::U64(v) => v.to_string(),
        Value::I64(v) => v.to_string(),
        Value::Str(v) => format!("\"{v}\""),
        Value::Bytes(v) => format!("({})", join(v.iter().map(u8::to_string).collect())),
        Value::Nested(v) => text(v),
        Value::List(v) => format!("[{}]", join(v.iter().map(text).collect())),
    }
}

/// Reads options at the beginning of `rest` and moves it behind them.
pub fn read(rest: &mut &str) -> Options {
    let mut options = Options::new();
    *rest = rest.strip_prefix('{').expect("options begin with {");
    while !rest.starts_with('}') {
        let (name, after) = rest.split_once('=').expect("name=value");
        *rest = after;
        let value = value(rest);
        options.set(Box::leak(name.to_owned().into_boxed_str()), value);
        *rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    *rest = &rest[1..];
    options
}

fn value(rest: &mut &str) -> Value {
    match rest.as_bytes()[0] {
        b'!' => {
            *rest = &rest[1..];
            Value::Flag
        }
        b'{' => Value::Nested(read(rest)),
        b'[' => {
            *rest = &rest[1..];
            let mut list = Vec::new();
            while !rest.starts_with(']') {
                list.push(read(rest));
                *rest = rest.strip_prefix(',').unwrap_or(rest);
            }
            *rest = &rest[1..];
            Value::List(list)
        }
        b'(' => {
            let (inside, after) = rest[1..].split_once(')').expect("( … )");
            *rest = after;
            Value::Bytes(inside.split(',').map(|n| n.parse().expect("a byte")).collect())
        }
        b'"' => {
            let (inside, after) = rest[1..].split_once('"').expect("\" … \"");
            *rest = after;
            Value::Str(inside.to_owned())
        }
        _ => {
            let end = rest.find([',', '}']).unwrap_or(rest.len());
            let number: i128 = rest[..end].parse().expect("a number");
            *rest = &rest[end..];
            match u32::try_from(number) {
                Ok(n) => Value::U32(n),
                Err(_) if number < 0 => Value::I64(number as i64),
                Err(_) => Value::U64(number as u64),
            }
        }
    }
}
