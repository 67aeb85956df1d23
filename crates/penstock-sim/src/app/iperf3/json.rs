//! JSON as iperf3 prints it: members in order, tabs, numbers in cJSON's way.
//!
//! Follows: cJSON `print_number`, `print_object`, `print_array`.

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
    /// The text.
    pub(crate) fn print(&self, depth: usize) -> String {
        match self {
            Json::Int(n) => n.to_string(),
            Json::Float(x) => number(*x),
            Json::Bool(b) => b.to_string(),
            Json::Text(t) => format!("\"{}\"", t.replace('\\', "\\\\").replace('"', "\\\"")),
            Json::Array(items) => {
                let items: Vec<String> = items.iter().map(|i| i.print(depth + 1)).collect();
                format!("[{}]", items.join(", "))
            }
            Json::Object(members) => {
                let tabs = "\t".repeat(depth + 1);
                let members: Vec<String> =
                    members.iter().map(|(k, v)| format!("{tabs}\"{k}\":\t{}", v.print(depth + 1))).collect();
                if members.is_empty() {
                    return "{\n}".to_owned();
                }
                format!("{{\n{}\n{}}}", members.join(",\n"), "\t".repeat(depth))
            }
        }
    }
}

fn number(x: f64) -> String {
    if !x.is_finite() {
        return "null".to_owned();
    }
    if x.floor() == x && x.abs() < 1e60 {
        return format!("{x:.0}");
    }
    if x.abs() < 1e-6 || x.abs() > 1e9 {
        let text = format!("{x:.6e}");
        let (mantissa, exponent) = text.split_once('e').expect("LowerExp prints an e");
        let exponent: i32 = exponent.parse().expect("LowerExp prints a decimal exponent");
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    format!("{x:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_cjson_s() {
        let check = |x: f64, text: &str| assert_eq!(number(x), text);
        check(10.0, "10");
        check(10.000_123, "10.000123");
        check(1.5e-9, "1.500000e-09");
        check(1_234_567_890.5, "1.234568e+09");
        check(0.0, "0");
    }

    #[test]
    fn objects_are_indented_with_tabs() {
        let json = Json::Object(vec![("a", Json::Array(vec![Json::Object(vec![("b", Json::Bool(true))])]))]);
        assert_eq!(json.print(0), "{\n\t\"a\":\t[{\n\t\t\t\"b\":\ttrue\n\t\t}]\n}");
    }
}
