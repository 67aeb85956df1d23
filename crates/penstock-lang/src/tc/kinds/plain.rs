//! Kinds whose options are words with a number each, sent one attribute a word: read and printed from tables.
//!
//! Follows: iproute2 6.1.0 `tc/q_codel.c`, `q_fq_codel.c`, `q_fq.c`, `q_fq_pie.c`, `q_pie.c`, `q_hhf.c`, which share these forms.

use super::{helped, rate32, what_is};
use crate::show::{Out, time_text};
use crate::tc::args::Args;
use crate::tc::{Failure, num};
use penstock_model::{Options, Value};

/// How a word's value is read.
#[derive(Clone, Copy)]
pub enum Read {
    /// `get_unsigned`, with a largest value.
    Number(u32),
    /// `get_time`: µs.
    Time,
    /// `get_size`: bytes.
    Size,
    /// `get_rate`: bytes per second in 32 bits.
    Rate,
    /// The same, or a share of the device's speed.
    PercentRate,
    /// The word stands alone and means this.
    Is(u32),
}

/// One word of such a kind.
pub struct Plain {
    /// The word, also in tc's `Illegal "…"`.
    pub word: &'static str,
    /// The option it sets.
    pub name: &'static str,
    /// How its value is read.
    pub read: Read,
    /// The value that tc takes for "not given".
    pub unset: Option<u32>,
}

/// Writes a [`Plain`] of which zero is not sent.
pub const fn plain(word: &'static str, read: Read) -> Plain {
    Plain { word, name: word, read, unset: Some(0) }
}
/// Writes a [`Plain`] that is sent whatever it is.
pub const fn always(word: &'static str, read: Read) -> Plain {
    Plain { word, name: word, read, unset: None }
}
/// Writes a word that stands alone and sets `name`.
pub const fn flag(word: &'static str, name: &'static str, value: u32) -> Plain {
    Plain { word, name, read: Read::Is(value), unset: None }
}
/// Any number of 32 bits.
pub const NUMBER: Read = Read::Number(u32::MAX);

/// `Illegal "limit"`.
pub fn illegal(args: &Args, name: &str, help: &str) -> Failure {
    args.fail(format!("Illegal \"{name}\""), 1, help)
}

/// A word of the kind that the table does not hold: whether it was one.
type Other<'f> = &'f mut dyn FnMut(&mut Args, &str, &mut Options) -> Result<bool, Failure>;

/// Reads all words.
pub fn parse(
    args: &mut Args,
    dev: Option<&str>,
    table: &[Plain],
    usage: &str,
    other: Other,
) -> Result<Options, Failure> {
    let mut o = Options::new();
    while let Some(word) = args.next_word() {
        if let Some(entry) = table.iter().find(|entry| entry.word == word.text) {
            let value = read(args, dev, entry)?;
            o.set(entry.name, Value::U32(value));
        } else if word.text == "help" {
            return Err(helped(args, usage));
        } else if !other(args, &word.text, &mut o)? {
            let known: Vec<&str> = table.iter().map(|entry| entry.word).collect();
            let help = format!("words here: {}", known.join(", "));
            return Err(what_is(args, &word.text, usage, help));
        }
    }
    for entry in table {
        if entry.unset.is_some() && o.u32(entry.name) == entry.unset {
            o.remove(entry.name);
        }
    }
    Ok(o)
}

/// The value of one word.
pub fn read(args: &mut Args, dev: Option<&str>, entry: &Plain) -> Result<u32, Failure> {
    if let Read::Is(value) = entry.read {
        return Ok(value);
    }
    let text = &args.value()?.text;
    let kernel = args.kernel();
    let (value, help) = match entry.read {
        Read::Is(value) => (Some(value), ""),
        Read::Number(max) => (num::u32(text, 0).filter(|&v| v <= max), "a whole number, without a unit"),
        Read::Time => (num::time(text), "a time, e.g. 5ms; without a unit microseconds"),
        Read::Size => (num::size(text, kernel), "bytes, e.g. 1514, 32mb"),
        Read::Rate => (num::rate32(text, kernel), "a rate, e.g. 10mbit"),
        Read::PercentRate => {
            let refused = |said: Option<String>| {
                let f = illegal(args, entry.word, "a rate, e.g. 10mbit, 50%");
                said.map_or(f.clone(), |line| f.also(&line))
            };
            return rate32(text, args, dev).map_err(refused);
        }
    };
    value.ok_or_else(|| illegal(args, entry.word, help))
}

/// How a dumped number is printed.
#[derive(Clone, Copy)]
pub enum Shown {
    /// `limit 1000p `.
    Packets,
    /// `flows 1024 `.
    Number,
    /// `target 5ms `.
    Time,
    /// `memory_limit 32Mb `.
    Size,
    /// `maxrate 10Mbit `, unless it is this.
    Rate(u32),
    /// The word alone, where it is not 0.
    Flag,
}

/// Prints what a dump holds of `fields`, in their order.
pub fn print(o: &Options, fields: &[(&'static str, Shown)], out: &mut Out) {
    for &(name, how) in fields {
        let Some(value) = o.u32(name) else { continue };
        match how {
            Shown::Packets => out.num(name, value, format_args!("{name} {value}p ")),
            Shown::Number => out.num(name, value, format_args!("{name} {value} ")),
            Shown::Time => time(name, value, format_args!("{name} {} ", time_text(value, false)), out),
            Shown::Size => out.size(name, &format!("{name} "), value, " "),
            Shown::Rate(none) if value == none => {}
            Shown::Rate(_) => out.rate(Some(name), &format!("{name} "), value.into(), " "),
            Shown::Flag if value == 0 => {}
            Shown::Flag => out.flag(name, format_args!("{name} ")),
        }
    }
}

/// A time: µs in JSON, `text` otherwise.
pub fn time(key: &str, us: u32, text: std::fmt::Arguments, out: &mut Out) {
    out.json_num(key, us);
    out.text_only(text);
}

/// One line of counters: `  marked 0 early 0`.
pub fn counters(o: &Options, names: &[&str], out: &mut Out) {
    for (i, name) in names.iter().enumerate() {
        counter(o, name, if i == 0 { "  " } else { " " }, out);
    }
}
/// Counters, each behind a blank.
pub fn counters_each(o: &Options, names: &[&str], out: &mut Out) {
    for name in names {
        counter(o, name, " ", out);
    }
}
/// One counter behind `before`.
pub fn counter(o: &Options, name: &str, before: &str, out: &mut Out) {
    let value = o.u64(name).unwrap_or(0);
    out.num(name, value, format_args!("{before}{name} {value}"));
}
/// Counters of which tc prints those that are not zero.
pub fn counters_of_some(o: &Options, names: &[&str], out: &mut Out) {
    for name in names.iter().filter(|name| o.u64(name).unwrap_or(0) != 0) {
        counter(o, name, " ", out);
    }
}
