//! Reading one table of the file: keys that are known, values of the right kind, quantities as tc writes them.

use super::form::Form;
use super::source::{Place, Source, meant};
use penstock_model::time::split_number;
use penstock_model::{Diagnostic, Rate, Size, Span};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value with its place.
pub type Val<'a> = &'a Spanned<DeValue<'a>>;

/// One file being read, with the faults found so far.
pub struct Faults<'a> {
    /// Its text.
    pub source: &'a Source,
    /// Its number.
    pub index: usize,
    /// What is wrong.
    pub list: &'a mut Vec<Diagnostic>,
}

impl Faults<'_> {
    /// One more.
    pub fn add(&mut self, span: Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.list.push(self.source.fault(span, message, help));
    }
    /// The place of these bytes.
    pub fn place(&self, span: Range<usize>) -> Place {
        Place { source: self.index, span }
    }
}

/// The order of a table's keys: that of the file, and of those that one template made, that of their numbers.
pub fn order(key: &Spanned<std::borrow::Cow<'_, str>>) -> (usize, usize) {
    (key.span().start, key.get_ref().len())
}

/// One table: remembers which keys were asked for.
pub struct Table<'a> {
    what: String,
    form: &'static Form,
    span: Range<usize>,
    entries: Vec<(&'a Spanned<std::borrow::Cow<'a, str>>, Val<'a>)>,
    known: Vec<&'static str>,
    taken: Vec<Range<usize>>,
}

impl<'a> Table<'a> {
    /// A table called `what` in messages (`[[link]]`), of a form.
    pub fn new(
        table: &'a DeTable<'a>,
        span: Range<usize>,
        what: impl Into<String>,
        form: &'static Form,
    ) -> Table<'a> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| order(key));
        Table { what: what.into(), form, span, entries, known: Vec::new(), taken: Vec::new() }
    }
    /// The same of a value, if it is a table.
    pub fn of(
        value: Val<'a>,
        what: impl Into<String>,
        form: &'static Form,
        faults: &mut Faults<'_>,
    ) -> Option<Table<'a>> {
        let what = what.into();
        match value.get_ref() {
            DeValue::Table(table) => Some(Table::new(table, value.span(), what, form)),
            other => {
                faults.add(value.span(), format!("{what} is {}, not a table", article(other)), "write { … }");
                None
            }
        }
    }
    /// Where it stands.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }
    /// The value of a key, if it is there. Keys that the form does not list are nobody's: nothing is read that the schema does not say.
    pub fn take(&mut self, key: &'static str) -> Option<Val<'a>> {
        debug_assert!(self.form.takes(key), "the form {} has no key {key}", self.form.name);
        if !self.form.takes(key) {
            return None;
        }
        self.known.push(key);
        let (k, v) = self.entries.iter().find(|(k, _)| k.get_ref() == key)?;
        self.taken.push(k.span());
        Some(v)
    }
    /// The value of a key that must be there.
    pub fn need(&mut self, key: &'static str, example: &str, faults: &mut Faults<'_>) -> Option<Val<'a>> {
        let found = self.take(key);
        if found.is_none() {
            faults.add(self.span(), format!("{} has no \"{key}\"", self.what), format!("add e.g. {example}"));
        }
        found
    }
    /// Keys that `fits` and their values, in the order of the file.
    pub fn take_all(&mut self, fits: impl Fn(&str) -> bool) -> Vec<(String, Range<usize>, Val<'a>)> {
        let mut found = Vec::new();
        for (k, v) in &self.entries {
            if fits(k.get_ref()) {
                self.taken.push(k.span());
                found.push((k.get_ref().to_string(), k.span(), *v));
            }
        }
        found
    }
    /// Keys that nobody has asked for so far, with their values, in the order of the file.
    pub fn rest(&self) -> Vec<(String, Range<usize>, Val<'a>)> {
        let known = |k: &&str| self.known.contains(k);
        let rest = self.entries.iter().filter(|(k, _)| !known(&&**k.get_ref()));
        rest.map(|(k, v)| (k.get_ref().to_string(), k.span(), *v)).collect()
    }
    /// Keys that have been asked for, whether they are there or not.
    pub fn known(&self) -> &[&'static str] {
        &self.known
    }
    /// Takes the key at this place.
    pub fn took(&mut self, key: Range<usize>) {
        self.taken.push(key);
    }
    /// Every key that nobody asked for is a fault.
    pub fn finish(self, faults: &mut Faults<'_>) {
        for (k, _) in &self.entries {
            if self.taken.contains(&k.span()) {
                continue;
            }
            let help = match meant(k.get_ref(), &self.known) {
                Some(word) => format!("did you mean \"{word}\"?"),
                None => format!("there are {}", self.known.join(", ")),
            };
            faults.add(k.span(), format!("{} has no key \"{}\"", self.what, k.get_ref()), help);
        }
    }
}

fn article(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A number as it was written, without underscores.
fn number_text(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::Integer(i) if i.radix() == 10 => Some(i.as_str().to_owned()),
        DeValue::Float(x) => Some(x.as_str().to_owned()),
        _ => None,
    }
}

/// A number as it was written; `None` for anything else.
pub fn number(value: Val<'_>) -> Option<String> {
    number_text(value.get_ref()).map(|text| text.replace('_', ""))
}

/// Text.
pub fn string(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<String> {
    match value.get_ref() {
        DeValue::String(s) => Some(s.to_string()),
        other => {
            let help =
                number_text(other).map_or("write it in quotes".into(), |n| format!("write {key} = \"{n}\""));
            faults.add(value.span(), format!("{key} is {}, not text", article(other)), help);
            None
        }
    }
}

/// Yes or no.
pub fn boolean(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<bool> {
    let found = value.get_ref().as_bool();
    if found.is_none() {
        faults.add(
            value.span(),
            format!("{key} is {}, not true or false", article(value.get_ref())),
            format!("write {key} = true"),
        );
    }
    found
}

/// A whole number of `range`.
pub fn integer(key: &str, value: Val<'_>, range: Range<u64>, faults: &mut Faults<'_>) -> Option<u64> {
    let bounds = format!("write a whole number from {} to {}", range.start, range.end - 1);
    let read = match value.get_ref() {
        DeValue::Integer(i) => {
            let digits: String = i.as_str().chars().filter(|c| *c != '_').collect();
            u64::from_str_radix(&digits, i.radix()).ok().filter(|n| range.contains(n))
        }
        other => {
            faults.add(value.span(), format!("{key} is {}, not a whole number", article(other)), bounds);
            return None;
        }
    };
    if read.is_none() {
        faults.add(value.span(), format!("{key} is out of range"), bounds);
    }
    read
}

/// A number, whole or with a fraction.
pub fn fraction(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<f64> {
    let read = number_text(value.get_ref()).and_then(|text| text.replace('_', "").parse::<f64>().ok());
    if read.is_none() {
        let message = format!("{key} is {}, not a number", article(value.get_ref()));
        faults.add(value.span(), message, format!("write e.g. {key} = 1.5"));
    }
    read
}

/// A list, or one value standing for a list of one.
pub fn list<'a>(value: Val<'a>) -> Vec<Val<'a>> {
    match value.get_ref() {
        DeValue::Array(items) => items.iter().collect(),
        _ => vec![value],
    }
}

/// A time that is not negative: `50ms`. A bare number is refused, since tc would read it as microseconds.
pub fn time(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<Span> {
    let (text, bare) = quantity(key, value, faults)?;
    let span = Span::parse(&text).ok().filter(|s| s.as_ns() >= 0);
    let zero = span == Some(Span::ZERO);
    if let (Some(span), true) = (span, !bare || zero) {
        return Some(span);
    }
    let help = match bare {
        true => format!("it has no unit: write {key} = \"{text}s\" or \"{text}ms\""),
        false => format!("write a number and s, ms, us or ns: {key} = \"50ms\""),
    };
    faults.add(value.span(), format!("{key}: \"{text}\" is not a duration"), help);
    None
}

/// A rate above zero: `10mbit`. A bare number is refused.
pub fn rate(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<Rate> {
    let (text, bare) = quantity(key, value, faults)?;
    let rate = Rate::parse(&text).ok();
    // tc reads Mbps as bytes; nobody else does.
    if let (Some(rate), Some(number)) = (rate, text.strip_suffix("bps"))
        && number.ends_with(['K', 'M', 'G'])
    {
        let bits = number.to_ascii_lowercase();
        let message = format!(
            "{key}: \"{text}\" is {} Mbit/s to tc, whose bps are bytes",
            rate.bit_per_s() as f64 / 1e6
        );
        faults.add(
            value.span(),
            message,
            format!("write {key} = \"{bits}bit\", or \"{bits}bps\" where bytes a second are meant"),
        );
        return None;
    }
    if let (Some(rate), false) = (rate, bare)
        && rate.bytes_per_s() > 0
        && rate.bytes_per_s() <= u64::MAX / 8
    {
        return Some(rate);
    }
    let help = if bare && rate.is_some() {
        format!("it has no unit: write {key} = \"{text}mbit\" or \"{text}kbit\"")
    } else if rate.is_some() {
        "the minimum is 8bit, one byte a second; the maximum fits 64 bits".into()
    } else {
        format!("write a number and bit, kbit, mbit, gbit (or kbps … for bytes): {key} = \"10mbit\"")
    };
    faults.add(value.span(), format!("{key}: \"{text}\" is not a rate"), help);
    None
}

/// A size in bytes: `15k`, `1500`.
pub fn size(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<u64> {
    let (text, _) = quantity(key, value, faults)?;
    let size = Size::parse(&text).ok();
    if size.is_none() {
        faults.add(
            value.span(),
            format!("{key}: \"{text}\" is not a size"),
            format!("write bytes, or a number and k, m, g: {key} = \"15k\""),
        );
    }
    size.map(Size::bytes)
}

/// A chance: `1%` or `0.01`; parts per 1,000,000,000.
pub fn chance(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<u32> {
    let (text, _) = quantity(key, value, faults)?;
    let share = match split_number(&text) {
        Some((number, "%")) => Some(number / 100.0),
        Some((number, "")) => Some(number),
        _ => None,
    };
    let fits = share.filter(|s| (0.0..=1.0).contains(s));
    if fits.is_none() {
        faults.add(
            value.span(),
            format!("{key}: \"{text}\" is not a probability"),
            format!("write 0% to 100%: {key} = \"1%\""),
        );
    }
    fits.map(|s| (s * 1e9).round() as u32)
}

/// The text of a quantity and whether it is a bare number.
fn quantity(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<(String, bool)> {
    let text = match number_text(value.get_ref()) {
        Some(number) => number.replace('_', ""),
        None => string(key, value, faults)?,
    };
    let bare = split_number(&text).is_some_and(|(_, unit)| unit.is_empty());
    Some((text, bare))
}

/// An IPv4 address.
pub fn address(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<Ipv4Addr> {
    let text = string(key, value, faults)?;
    let read = text.parse().ok();
    if read.is_none() {
        let help = match text.split_once('/') {
            Some((ip, _)) if ip.parse::<Ipv4Addr>().is_ok() => {
                format!("no prefix length here: {key} = \"{ip}\"")
            }
            _ => format!("write {key} = \"10.0.0.1\""),
        };
        faults.add(value.span(), format!("{key}: \"{text}\" is not an IPv4 address"), help);
    }
    read
}

/// An address with its prefix length, IPv4 or IPv6, as it is written; `None` where it is none.
pub fn parse_prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (ip, len) = text.split_once('/')?;
    let ip: IpAddr = ip.parse().ok()?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    let digits = !len.is_empty() && len.bytes().all(|b| b.is_ascii_digit());
    Some((ip, len.parse().ok().filter(|&l: &u8| digits && l <= most)?))
}

/// An address with its prefix length.
pub fn prefix(key: &str, value: Val<'_>, faults: &mut Faults<'_>) -> Option<(IpAddr, u8)> {
    let text = string(key, value, faults)?;
    let read = parse_prefix(&text);
    if read.is_none() {
        let key = penstock_lang::toml::key(key);
        let help = match text.parse::<IpAddr>() {
            Ok(ip) => {
                format!("add the prefix length: {key} = \"{ip}/{}\"", if ip.is_ipv4() { 24 } else { 64 })
            }
            Err(_) => format!("write {key} = \"10.0.0.1/24\""),
        };
        faults.add(value.span(), format!("{key}: \"{text}\" is not an address with a prefix length"), help);
    }
    read
}
