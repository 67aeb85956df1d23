//! JSON as iperf3 prints it: members in order, tabs or one line, numbers in cJSON's way.
//!
//! Follows: cJSON 1.7.15 `print_number`, `print_object`, `print_array`.

use penstock_model::time::general;
use std::fmt::Write as _;

/// A JSON value whose members keep their order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Json {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    /// `cJSON_Print`.
    pub(crate) fn print(&self, depth: usize) -> String {
        match self {
            Json::Array(items) => {
                let items: Vec<String> = items.iter().map(|i| i.print(depth + 1)).collect();
                format!("[{}]", items.join(", "))
            }
            Json::Object(members) => {
                let tabs = "\t".repeat(depth + 1);
                let mut text = "{\n".to_owned();
                for (n, (name, value)) in members.iter().enumerate() {
                    let comma = if n + 1 < members.len() { "," } else { "" };
                    let _ = writeln!(text, "{tabs}\"{name}\":\t{}{comma}", value.print(depth + 1));
                }
                text + &"\t".repeat(depth) + "}"
            }
            plain => plain.plain(),
        }
    }
    /// `cJSON_PrintUnformatted`.
    pub(crate) fn line(&self) -> String {
        match self {
            Json::Array(items) => {
                format!("[{}]", items.iter().map(Json::line).collect::<Vec<_>>().join(","))
            }
            Json::Object(members) => {
                let members: Vec<String> =
                    members.iter().map(|(name, value)| format!("\"{name}\":{}", value.line())).collect();
                format!("{{{}}}", members.join(","))
            }
            plain => plain.plain(),
        }
    }
    fn plain(&self) -> String {
        match self {
            Json::Int(n) => number(*n as f64),
            Json::Float(x) => number(*x),
            Json::Bool(b) => b.to_string(),
            Json::Text(t) => quoted(t),
            Json::Array(_) | Json::Object(_) => String::new(),
        }
    }
}

/// `print_string_ptr`.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => _ = write!(out, "\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// With fifteen digits, or seventeen where fifteen are not the same number.
fn number(x: f64) -> String {
    if !x.is_finite() {
        return "null".to_owned();
    }
    if x == f64::from(x as i32) {
        return (x as i32).to_string();
    }
    let short = general(x, 15);
    // `compare_double`: the same but for the last bit.
    let same = short.parse::<f64>().is_ok_and(|y| (y - x).abs() <= x.abs().max(y.abs()) * f64::EPSILON);
    if same { short } else { general(x, 17) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_cjson_s() {
        let check = |x: f64, text: &str| assert_eq!(number(x), text);
        check(10.0, "10");
        check(10.000_123, "10.000123");
        check(1.5e-9, "1.5e-09");
        check(3.1e-5, "3.1e-05");
        check(10_473_004.285_966_191, "10473004.285966191");
        check(f64::from(1.001_218_f32), "1.00121796131134");
        check(3_000_000_000.0, "3000000000");
        check(0.0, "0");
    }

    #[test]
    fn objects_are_indented_with_tabs_or_stand_in_one_line() {
        let json = Json::Object(vec![("a", Json::Array(vec![Json::Object(vec![("b", Json::Bool(true))])]))]);
        assert_eq!(json.print(0), "{\n\t\"a\":\t[{\n\t\t\t\"b\":\ttrue\n\t\t}]\n}");
        assert_eq!(json.line(), "{\"a\":[{\"b\":true}]}");
        let none = Json::Object(vec![("end", Json::Object(Vec::new())), ("say", Json::Text("a\n".into()))]);
        assert_eq!(none.print(0), "{\n\t\"end\":\t{\n\t},\n\t\"say\":\t\"a\\n\"\n}");
    }
}
