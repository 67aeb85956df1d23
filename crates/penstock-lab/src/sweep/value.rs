//! Values of a parameter: texts, numbers, and ranges of quantities.

use penstock_lang::toml::quoted;
use penstock_model::time::split_number;
use penstock_model::{Rate, Size, Span, time::general};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// One value: how it is shown, and how it stands in TOML.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Value {
    /// Without quotes: `10mbit`, `7`, `["true"]`.
    pub(super) shown: String,
    /// As TOML; none: it is text.
    toml: Option<String>,
    /// Whether it is a number, or true or false: text where text was.
    plain: bool,
}

impl Value {
    /// Of a word: what TOML takes for a number, a list or a table is one, all else is text.
    pub(super) fn of(word: &str) -> Value {
        let line = format!("x = {word}");
        let (root, errors) = DeTable::parse_recoverable(&line);
        let value = root.get_ref().get("x").filter(|_| errors.is_empty() && root.get_ref().len() == 1);
        let Some(value) = value.map(|v| v.get_ref()) else { return Value::text(word) };
        match value {
            DeValue::String(text) => Value::text(text),
            DeValue::Datetime(_) => Value::text(word),
            other => {
                let plain = !other.is_array() && !other.is_table();
                Value { shown: word.to_owned(), toml: Some(word.to_owned()), plain }
            }
        }
    }
    fn text(text: &str) -> Value {
        Value { shown: text.to_owned(), toml: None, plain: false }
    }
    /// As it is written into the file; `text`: in place of a text.
    pub(super) fn written(&self, text: bool) -> String {
        match &self.toml {
            Some(toml) if !(self.plain && text) => toml.clone(),
            _ => quoted(&self.shown),
        }
    }
}

/// What a quantity measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Quantity {
    Rate,
    Time,
    Size,
    Share,
    Number,
}

impl Quantity {
    /// The quantity that a text is, in bit/s, ms, bytes, a share 0..=1, or as it stands.
    pub(super) fn of(text: &str) -> Option<(Quantity, f64)> {
        let (number, unit) = split_number(text)?;
        if unit.is_empty() {
            return Some((Quantity::Number, number));
        }
        if unit == "%" {
            return Some((Quantity::Share, number / 100.0));
        }
        if let Ok(span) = Span::parse(text) {
            return Some((Quantity::Time, span.as_ns() as f64 / 1e6));
        }
        if Rate::parse(text).is_ok() {
            return Some((Quantity::Rate, number * penstock_model::rate::unit_scale(unit)?));
        }
        Size::parse(text).ok().map(|size| (Quantity::Size, size.bytes() as f64))
    }

    /// Its unit in the names of columns.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Quantity::Rate => "bit_s",
            Quantity::Time => "ms",
            Quantity::Size => "bytes",
            Quantity::Share => "share",
            Quantity::Number => "number",
        }
    }

    /// A value of it as tc writes it.
    fn written(self, x: f64) -> String {
        match self {
            Quantity::Rate => format!("{x:.0}bit"),
            Quantity::Time => format!("{:.0}ns", x * 1e6),
            Quantity::Size => format!("{x:.0}"),
            Quantity::Share => format!("{}%", general(x * 100.0, 6)),
            Quantity::Number => general(x, 6),
        }
    }
}

/// A range of quantities.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Stretch {
    from: f64,
    to: f64,
    /// The unit both ends have; none: they are written in the least unit.
    unit: Option<String>,
    quantity: Quantity,
    whole: bool,
    /// Steps are equal factors.
    pub(super) log: bool,
    /// How many values a grid takes of it.
    pub(super) steps: Option<usize>,
}

impl Stretch {
    /// Between two texts.
    pub(super) fn between(from: &str, to: &str) -> Result<Stretch, (String, String)> {
        let bad = |text: &str| {
            let help = "write two quantities of one kind: 10mbit..50mbit, 1ms..20ms, 1..8";
            (format!("\"{text}\" is not a quantity"), help.to_owned())
        };
        let (kind, low) = Quantity::of(from).ok_or_else(|| bad(from))?;
        let (other, high) = Quantity::of(to).ok_or_else(|| bad(to))?;
        if kind != other {
            let help = "write two quantities of one kind: 10mbit..50mbit, 1ms..20ms, 1..8";
            return Err((format!("{from} and {to} are of two kinds"), help.to_owned()));
        }
        if low >= high {
            return Err((format!("{from}..{to} is empty"), "write the smaller one first".to_owned()));
        }
        let (a, b) = (split_number(from).unwrap_or_default(), split_number(to).unwrap_or_default());
        let same = a.1 == b.1;
        let (from_number, to_number) = if same { (a.0, b.0) } else { (low, high) };
        let digits = |text: &str| !text.contains(['.', 'e', 'E']);
        Ok(Stretch {
            from: from_number,
            to: to_number,
            unit: same.then(|| a.1.to_owned()),
            quantity: kind,
            whole: kind == Quantity::Number && digits(from) && digits(to),
            log: false,
            steps: None,
        })
    }

    /// Whether it can be divided by equal factors.
    pub(super) fn positive(&self) -> bool {
        self.from > 0.0
    }

    /// The value at a share of it, 0..=1, with four digits or so.
    pub(super) fn at(&self, share: f64) -> Value {
        let x = match self.log {
            true => (self.from.ln() + share * (self.to.ln() - self.from.ln())).exp(),
            false => self.from + share * (self.to - self.from),
        };
        let x = match share {
            0.0 => self.from,
            1.0 => self.to,
            _ if self.whole => x.round(),
            _ => x,
        };
        Value::of(&match &self.unit {
            Some(unit) => format!("{}{unit}", if self.whole { format!("{x:.0}") } else { general(x, 4) }),
            None => self.quantity.written(x),
        })
    }
}

/// What a parameter may be.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Values {
    /// These.
    List(Vec<Value>),
    /// Anything in a range.
    Range(Stretch),
}

impl Values {
    /// Reads `10mbit,20mbit`, `1ms..20ms`, `1ms..20ms/log`, `1ms..20ms/5`, `1ms..20ms/5log`; what is wrong comes with its place in the text.
    pub(super) fn parse(text: &str) -> Result<Values, (Range<usize>, String, String)> {
        let words = split(text);
        let whole = 0..text.len();
        if let [word] = &words[..]
            && let Some((from, rest)) = text[word.clone()].split_once("..")
            && split_number(from).is_some()
            && rest.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        {
            let (to, steps) = rest.split_once('/').map_or((rest, None), |(to, steps)| (to, Some(steps)));
            let mut range = Stretch::between(from, to).map_err(|(m, h)| (whole.clone(), m, h))?;
            if steps == Some("log") {
                range.log = true;
            } else if let Some(steps) = steps {
                let number = steps.strip_suffix("log");
                range.log = number.is_some();
                let count = number.unwrap_or(steps).parse().ok().filter(|n| (2..=MOST).contains(n));
                if count.is_none() {
                    let at = text.len() - steps.len()..text.len();
                    let help = format!(
                        "write 2 to {MOST}, with log behind it for equal factors: /5 or /5log; or /log alone"
                    );
                    return Err((at, format!("\"{steps}\" is not a number of steps"), help));
                }
                range.steps = count;
            }
            if range.log && !range.positive() {
                let help = "let the range begin above 0".to_owned();
                return Err((whole, "equal factors need a range above 0".to_owned(), help));
            }
            return Ok(Values::Range(range));
        }
        if let Some(empty) = words.iter().find(|w| text[(*w).clone()].trim().is_empty()) {
            let help = "write values with commas between them: 10mbit,20mbit".to_owned();
            return Err((empty.clone(), "a value is empty".to_owned(), help));
        }
        Ok(Values::List(words.into_iter().map(|w| Value::of(text[w].trim())).collect()))
    }

    /// The values of a grid; `None`: a range that does not say how many.
    pub(super) fn grid(&self) -> Option<Vec<Value>> {
        match self {
            Values::List(values) => Some(values.clone()),
            Values::Range(range) => {
                let steps = range.steps?;
                let mut all: Vec<Value> =
                    (0..steps).map(|n| range.at(n as f64 / (steps - 1) as f64)).collect();
                all.dedup();
                Some(all)
            }
        }
    }

    /// The value at a share of them, 0..1.
    pub(super) fn at(&self, share: f64) -> Value {
        match self {
            Values::List(values) => {
                values[((share * values.len() as f64) as usize).min(values.len() - 1)].clone()
            }
            Values::Range(range) => range.at(share),
        }
    }

    /// Values that stand for all: a list's own, and the ends of a range.
    pub(super) fn tried(&self) -> Vec<Value> {
        match self {
            Values::List(values) => values.clone(),
            Values::Range(range) => vec![range.at(0.0), range.at(1.0)],
        }
    }
}

/// Most values of a range in a grid.
pub(super) const MOST: usize = 10_000;

/// The places of the words between commas that stand in no quotes and no brackets.
fn split(text: &str) -> Vec<Range<usize>> {
    let (mut all, mut from, mut depth) = (Vec::new(), 0, 0i32);
    let mut quote: Option<char> = None;
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if let Some(open) = quote {
            quote = quote.filter(|_| c != open || escaped);
            escaped = open == '"' && c == '\\' && !escaped;
            continue;
        }
        match c {
            '"' | '\'' => quote = Some(c),
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ',' if depth <= 0 => {
                all.push(from..at);
                from = at + 1;
            }
            _ => {}
        }
    }
    all.push(from..text.len());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(text: &str) -> Vec<String> {
        Values::parse(text).unwrap().grid().unwrap().into_iter().map(|v| v.shown).collect()
    }

    #[test]
    fn lists_are_split_at_commas_that_stand_alone() {
        assert_eq!(grid("10mbit,20mbit"), ["10mbit", "20mbit"]);
        assert_eq!(
            grid("[\"a, b\", 'c,d'],{ x = 1, y = 2 },\"e,f\""),
            ["[\"a, b\", 'c,d']", "{ x = 1, y = 2 }", "e,f"]
        );
        assert_eq!(
            grid("@../x.sh,tc qdisc add dev eth0 root fq"),
            ["@../x.sh", "tc qdisc add dev eth0 root fq"]
        );
    }

    #[test]
    fn ranges_have_steps() {
        assert_eq!(grid("10mbit..20mbit/3"), ["10mbit", "15mbit", "20mbit"]);
        assert_eq!(grid("1ms..100ms/3log"), ["1ms", "10ms", "100ms"]);
        assert_eq!(grid("1..4/3"), ["1", "3", "4"]);
        assert_eq!(grid("500kbit..1mbit/2"), ["500000bit", "1000000bit"]);
        assert_eq!(Values::parse("1ms..5ms").unwrap().grid(), None);
        // A range by factors without steps is for drawing and searching.
        let factors = Values::parse("1ms..100ms/log").unwrap();
        assert_eq!((factors.grid(), factors.at(0.5).shown.as_str()), (None, "10ms"));
        let far = Values::parse("1ms..5ms").unwrap();
        assert_eq!((far.at(0.5).shown.as_str(), far.tried().len()), ("3ms", 2));
    }

    #[test]
    fn what_is_none_is_told() {
        for (text, message) in [
            ("1ms..x", "1ms..x"),
            ("5ms..1ms", "is empty"),
            ("5ms..1mbit", "of two kinds"),
            ("1..9/1", "not a number of steps"),
            ("0..9/3log", "above 0"),
            ("1,,2", "a value is empty"),
            ("", "a value is empty"),
        ] {
            match Values::parse(text) {
                Err((_, said, _)) => assert!(said.contains(message), "{text}: {said}"),
                Ok(values) => assert_eq!(values, Values::List(vec![Value::of(message)]), "{text}"),
            }
        }
    }

    #[test]
    fn a_value_is_text_where_text_was() {
        assert_eq!(
            (Value::of("7").written(false), Value::of("7").written(true)),
            ("7".into(), "\"7\"".into())
        );
        assert_eq!(Value::of("10mbit").written(false), "\"10mbit\"");
        assert_eq!(Value::of("a \"b\"").written(true), "\"a \\\"b\\\"\"");
        assert_eq!(Value::of("[1, 2]").written(true), "[1, 2]");
        assert_eq!(Value::of("1 \n y = 2").written(false), "\"1 \\u000a y = 2\"");
    }

    #[test]
    fn quantities_have_their_kind() {
        assert_eq!(Quantity::of("10mbit"), Some((Quantity::Rate, 1e7)));
        assert_eq!(Quantity::of("20ms"), Some((Quantity::Time, 20.0)));
        assert_eq!(Quantity::of("15k"), Some((Quantity::Size, 15360.0)));
        assert_eq!(Quantity::of("1%"), Some((Quantity::Share, 0.01)));
        assert_eq!(Quantity::of("8"), Some((Quantity::Number, 8.0)));
        assert_eq!(Quantity::of("fq_codel"), None);
    }
}
