//! One stream that is text or JSON: tc says each thing once for both.
//!
//! Follows: iproute2 6.1.0 `lib/json_print.c`, `lib/json_print_math.c`, `lib/json_writer.c`, `lib/utils.c` `print_time`;
//! 2.6.35 `tc/tc_util.c` `print_rate`, `print_size`, `print_time`.

use super::Form;
use penstock_model::{Kernel, Options, Rate, Size, time::general};
use std::fmt::{Arguments, Display, Write};

/// Where tc's words go.
pub struct Out {
    /// How to print.
    pub form: Form,
    kernel: Kernel,
    text: String,
    json: Option<Json>,
    /// The names of realms have been read (`/etc/iproute2/rt_realms`), which tc does at the first number it has none for.
    pub realms_read: bool,
    /// What 2.6.35 adds to the next list's numbers of actions.
    orders: u32,
}

/// The state of tc's JSON writer.
#[derive(Default)]
struct Json {
    depth: usize,
    /// Something stands before: a comma is due.
    comma: bool,
}

impl Out {
    /// Text, or JSON with `-j` where `may_be_json` and the profile has it; an array then stands around all.
    pub fn new(form: &Form, kernel: Kernel, may_be_json: bool) -> Out {
        let json = (form.json && may_be_json && kernel != Kernel::V2_6_35).then(Json::default);
        let mut out =
            Out { form: form.clone(), kernel, text: String::new(), json, realms_read: false, orders: 0 };
        if out.json.is_some() {
            out.open('[');
            if out.form.pretty {
                out.text.push(' ');
            }
        }
        out
    }
    /// The end of it.
    pub fn finish(mut self) -> String {
        if self.json.is_some() {
            self.end_array();
            self.text.push('\n');
        }
        self.text
    }
    /// `print_devname`: the device, cyan where colours are asked for.
    pub fn device(&mut self, dev: &str) {
        if self.form.colour {
            self.string("dev", dev, format_args!("dev \x1b[36m{dev} \x1b[0m"));
        } else {
            self.string("dev", dev, format_args!("dev {dev} "));
        }
    }
    /// Whether the forms are those of 2010.
    pub fn old(&self) -> bool {
        self.kernel == Kernel::V2_6_35
    }
    /// Whether the forms are those of the profile 7.2 or later.
    pub fn since_7(&self) -> bool {
        self.kernel >= Kernel::V7_2
    }
    /// The profile.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }
    /// What is added to the numbers of a list of actions: tc of 2010 counts 32 for each list before it.
    pub fn order_base(&self) -> u32 {
        if self.old() { self.orders } else { 0 }
    }
    /// A list of actions is done.
    pub fn next_orders(&mut self) {
        self.orders += 32;
    }
    /// A rate of a dump as this tc sees it: that of 2010 knows only the 32-bit field, which is all ones above.
    pub fn wire_rate(&self, options: &Options, name: &str) -> u64 {
        let rate = options.u64(name).unwrap_or(0);
        if self.old() { rate.min(u64::from(u32::MAX)) } else { rate }
    }
    /// Whether this is JSON.
    pub fn is_json(&self) -> bool {
        self.json.is_some()
    }

    fn add(&mut self, text: impl Display) {
        write!(self.text, "{text}").expect("a String takes everything");
    }
    fn comma(&mut self) {
        if let Some(json) = &mut self.json
            && std::mem::replace(&mut json.comma, true)
        {
            self.text.push(',');
        }
    }
    fn eol(&mut self) {
        if self.form.pretty {
            self.text.push('\n');
            let depth = self.json.as_ref().map_or(0, |j| j.depth);
            (0..depth).for_each(|_| self.text.push_str("    "));
        }
    }
    fn open(&mut self, bracket: char) {
        self.comma();
        self.text.push(bracket);
        if let Some(json) = &mut self.json {
            json.depth += 1;
            json.comma = false;
        }
    }
    fn close(&mut self, bracket: char) {
        let mut due = false;
        if let Some(json) = &mut self.json {
            json.depth -= 1;
            due = json.comma;
        }
        if due {
            self.eol();
        }
        self.text.push(bracket);
        if let Some(json) = &mut self.json {
            json.comma = true;
        }
    }
    fn key(&mut self, key: &str) {
        self.comma();
        self.eol();
        if let Some(json) = &mut self.json {
            json.comma = false;
        }
        self.quoted(key);
        self.text.push(':');
        if self.form.pretty {
            self.text.push(' ');
        }
    }
    fn quoted(&mut self, text: &str) {
        self.text.push('"');
        for c in text.chars() {
            match c {
                '\t' => self.text.push_str("\\t"),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\x0c' => self.text.push_str("\\f"),
                '\x08' => self.text.push_str("\\b"),
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                c if u32::from(c) < 0x20 => self.add(format_args!("\\u{:04x}", u32::from(c))),
                c => self.text.push(c),
            }
        }
        self.text.push('"');
    }
    fn field(&mut self, key: &str, value: impl Display) {
        self.key(key);
        self.comma();
        self.add(value);
    }

    /// Begins an object, `key` before it where it is a field.
    pub fn open_object(&mut self, key: Option<&str>) {
        if self.json.is_some() {
            if let Some(key) = key {
                self.key(key);
            }
            self.open('{');
        }
    }
    /// Ends it.
    pub fn close_object(&mut self) {
        if self.json.is_some() {
            self.close('}');
        }
    }
    /// Begins an array; in text `text`.
    pub fn open_array(&mut self, key: &str, text: &str) {
        if self.json.is_some() {
            self.key(key);
            self.open('[');
            if self.form.pretty {
                self.text.push(' ');
            }
        } else {
            self.text.push_str(text);
        }
    }
    /// Begins an array within an array; nothing in text.
    pub fn open_list(&mut self) {
        if self.json.is_some() {
            self.open('[');
            if self.form.pretty {
                self.text.push(' ');
            }
        }
    }
    /// Ends it.
    pub fn close_array(&mut self) {
        if self.json.is_some() {
            self.end_array();
        }
    }
    fn end_array(&mut self) {
        if let Some(json) = &mut self.json {
            let due = std::mem::take(&mut json.comma);
            if due && self.form.pretty {
                self.text.push(' ');
            }
        }
        self.close(']');
    }

    /// A number.
    pub fn num(&mut self, key: &str, value: impl Display, text: Arguments) {
        if self.json.is_some() { self.field(key, value) } else { self.add(text) }
    }
    /// A number that stands in JSON as it is written.
    pub fn literal(&mut self, key: &str, value: &str, text: Arguments) {
        self.num(key, value, text);
    }
    /// An element of an array.
    pub fn item(&mut self, value: impl Display, text: Arguments) {
        if self.json.is_some() {
            self.comma();
            self.add(value);
        } else {
            self.add(text);
        }
    }
    /// A text in an array.
    pub fn text_item(&mut self, value: &str, text: Arguments) {
        if self.json.is_some() {
            self.comma();
            self.quoted(value);
        } else {
            self.add(text);
        }
    }
    /// Text.
    pub fn string(&mut self, key: &str, value: &str, text: Arguments) {
        if self.json.is_some() {
            self.key(key);
            self.comma();
            self.quoted(value);
        } else {
            self.add(text);
        }
    }
    /// A number that JSON has as hexadecimal text.
    pub fn hex(&mut self, key: &str, value: u32, text: Arguments) {
        self.string(key, &format!("{value:x}"), text);
    }
    /// Present or not: `true` in JSON.
    pub fn flag(&mut self, key: &str, text: Arguments) {
        self.num(key, "true", text);
    }
    /// `null` in JSON.
    pub fn null(&mut self, key: &str, text: Arguments) {
        self.num(key, "null", text);
    }
    /// Nothing in JSON.
    pub fn text_only(&mut self, text: Arguments) {
        if self.json.is_none() {
            self.add(text);
        }
    }
    /// Nothing in text.
    pub fn json_num(&mut self, key: &str, value: impl Display) {
        if self.json.is_some() {
            self.field(key, value);
        }
    }
    /// Nothing in text.
    pub fn json_text(&mut self, key: &str, value: &str) {
        if self.json.is_some() {
            self.string(key, value, format_args!(""));
        }
    }
    /// Nothing in text.
    pub fn json_bool(&mut self, key: &str, value: bool) {
        self.json_num(key, value);
    }
    /// The end of a line: `\` with `-o`; nothing in JSON.
    pub fn nl(&mut self) {
        let nl = if self.form.oneline { "\\" } else { "\n" };
        self.text_only(format_args!("{nl}"));
    }
    /// Text, which JSON has only since 7.2.
    pub fn since_7_text(&mut self, key: &str, value: &str, text: Arguments) {
        if self.since_7() { self.string(key, value, text) } else { self.text_only(text) }
    }
    /// A number, which JSON has only since 7.2.
    pub fn since_7_num(&mut self, key: &str, value: impl Display, text: Arguments) {
        if self.since_7() { self.num(key, value, text) } else { self.text_only(text) }
    }
    /// A size: bytes in JSON, `15Kb` in text.
    pub fn size(&mut self, key: &str, before: &str, size: impl Into<u64>, after: &str) {
        let size = size.into();
        if self.json.is_some() {
            // `print_color_uint`: 32 bits.
            self.field(key, size as u32);
        } else {
            let text = self.size_text(size);
            self.add(format_args!("{before}{text}{after}"));
        }
    }
    /// `sprint_size`: `15Kb`, `1600b`; since 7.2 `2Gb` too.
    pub fn size_text(&self, size: impl Into<u64>) -> String {
        size_text(size, self.kernel)
    }
    /// A rate: bytes per second in JSON (nothing without a key), `10Mbit` in text.
    pub fn rate(&mut self, key: Option<&str>, before: &str, rate: u64, after: &str) {
        if self.json.is_some() {
            if let Some(key) = key {
                self.field(key, rate);
            }
        } else {
            let text = Rate::from_bytes_per_s(rate).tc_text(self.kernel, self.form.iec);
            self.add(format_args!("{before}{text}{after}"));
        }
    }
}

/// `sprint_size`: `15Kb`, `1600b`; since 7.2 `2Gb` too.
pub fn size_text(size: impl Into<u64>, kernel: Kernel) -> String {
    const GIGA: f64 = 1_073_741_824.0;
    let bytes: u64 = size.into();
    let size = bytes as f64;
    let whole = (size / GIGA).round_ties_even();
    if kernel >= Kernel::V7_2 && size >= GIGA && (GIGA * whole - size).abs() < 1024.0 {
        return format!("{whole}Gb");
    }
    Size::from_bytes(bytes).to_string()
}

/// `print_time` of microseconds: three significant figures today, one decimal in 2010.
pub fn time_text(us: u32, old: bool) -> String {
    let t = f64::from(us);
    let number = |x: f64| if old { format!("{x:.1}") } else { general(x, 3) };
    if t >= 1e6 {
        format!("{}s", number(t / 1e6))
    } else if t >= 1e3 {
        format!("{}ms", number(t / 1e3))
    } else {
        format!("{us}us")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times() {
        let text = |size| size_text(size, Kernel::V6_12);
        assert_eq!(text(15_360), "15Kb");
        assert_eq!(text(1599), "1599b");
        assert_eq!(text(15_350), "15Kb");
        assert_eq!(text(1_048_576), "1Mb");
        assert_eq!(text(0), "0b");
        assert_eq!([text(1 << 30), text(u32::MAX)], ["1024Mb", "4096Mb"]);
        let newer = |size| size_text(size, Kernel::V7_2);
        assert_eq!([newer(1 << 30), newer(u32::MAX), newer(1 << 29)], ["1Gb", "4Gb", "512Mb"]);
        assert_eq!(time_text(11_200, true), "11.2ms");
        assert_eq!(time_text(11_200, false), "11.2ms");
        assert_eq!(time_text(50_000, true), "50.0ms");
        assert_eq!(time_text(50_000, false), "50ms");
        assert_eq!(time_text(999, false), "999us");
    }

    #[test]
    fn json_as_tc_writes_it() {
        let mut out = Out::new(&Form { json: true, ..Form::default() }, Kernel::V6_12, true);
        for _ in 0..2 {
            out.open_object(None);
            out.string("kind", "a\"b", format_args!(""));
            out.open_array("map", "");
            out.item(1, format_args!(""));
            out.item(2, format_args!(""));
            out.close_array();
            out.open_object(Some("options"));
            out.close_object();
            out.close_object();
        }
        let one = "{\"kind\":\"a\\\"b\",\"map\":[1,2],\"options\":{}}";
        assert_eq!(out.finish(), format!("[{one},{one}]\n"));
        let out = Out::new(&Form { json: true, ..Form::default() }, Kernel::V6_12, true);
        assert_eq!(out.finish(), "[]\n");
    }
}
