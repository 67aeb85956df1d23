//! What mtr says: its fields, and reports as text, CSV, JSON and XML.
//!
//! Follows: mtr 0.95 `ui/mtr.c` `data_fields`, `ui/report.c`, `ui/net.c` `net_loss` and its like; jansson's `JSON_REAL_PRECISION`.

use super::Hop;
use std::fmt::Write;

pub(super) const USAGE: &str = "\nUsage:\n mtr [options] hostname\n\nSee the 'man 8 mtr' for details.\n";

/// A field of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Field(usize);

/// How a figure is printed: with how many letters before the point and one behind it, as thousandths, or whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Figure {
    Blank,
    Whole(usize),
    Thousandths(usize, &'static str),
}

/// Key, title, form, width.
const FIELDS: [(char, &str, Figure, usize); 15] = [
    (' ', " ", Figure::Blank, 1),
    ('L', "Loss%", Figure::Thousandths(4, "%"), 6),
    ('D', "Drop", Figure::Whole(4), 5),
    ('R', "Rcv", Figure::Whole(5), 6),
    ('S', "Snt", Figure::Whole(5), 6),
    ('N', "Last", Figure::Thousandths(5, ""), 6),
    ('B', "Best", Figure::Thousandths(5, ""), 6),
    ('A', "Avg", Figure::Thousandths(5, ""), 6),
    ('W', "Wrst", Figure::Thousandths(5, ""), 6),
    ('V', "StDev", Figure::Thousandths(5, ""), 6),
    ('G', "Gmean", Figure::Thousandths(5, ""), 6),
    ('J', "Jttr", Figure::Thousandths(4, ""), 5),
    ('M', "Javg", Figure::Thousandths(4, ""), 5),
    ('X', "Jmax", Figure::Thousandths(4, ""), 5),
    ('I', "Jint", Figure::Thousandths(4, ""), 5),
];

impl Field {
    /// The field of a key.
    pub(super) fn of(key: char) -> Option<Field> {
        FIELDS.iter().position(|field| field.0 == key).map(Field)
    }
    fn title(self) -> &'static str {
        FIELDS[self.0].1
    }
    fn width(self) -> usize {
        FIELDS[self.0].3
    }
    fn is_blank(self) -> bool {
        self.0 == 0
    }
    fn value(self, hop: &Hop) -> i64 {
        let sent = hop.sent - i64::from(hop.transit);
        match FIELDS[self.0].0 {
            'L' if sent == 0 => 0,
            'L' => (1000.0 * (100.0 - 100.0 * hop.returned as f64 / sent as f64)) as i64,
            'R' => hop.returned,
            'S' => hop.sent,
            'N' => hop.last,
            'B' => hop.best,
            'A' => hop.avg,
            'W' => hop.worst,
            'V' if hop.returned > 1 => (hop.ssd as f64 / (hop.returned as f64 - 1.0)).sqrt() as i64,
            'V' => 0,
            'G' => hop.gmean,
            'J' => hop.jitter,
            'M' => hop.javg,
            'X' => hop.jworst,
            'I' => hop.jinta,
            _ => sent - hop.returned,
        }
    }
    /// As a report has it.
    fn shown(self, hop: &Hop) -> String {
        let value = self.value(hop);
        match FIELDS[self.0].2 {
            Figure::Blank => " ".to_owned(),
            Figure::Whole(width) => format!(" {value:width$}"),
            Figure::Thousandths(width, sign) => format!(" {:width$.1}{sign}", value as f64 / 1000.0),
        }
    }
    fn is_whole(self) -> bool {
        !matches!(FIELDS[self.0].2, Figure::Thousandths(..))
    }
}

/// A hop with the names of who has answered: the latest, and the others in the order they came.
pub(super) struct Named<'a> {
    pub(super) number: usize,
    pub(super) hop: &'a Hop,
    pub(super) name: String,
    pub(super) others: Vec<String>,
}

/// `report_close`.
pub(super) fn report(hostname: &str, fields: &[Field], hops: &[Named<'_>], wide: bool) -> String {
    // Each part is written at its place, over what a longer one before it has left there.
    let line = |before: String, at: Option<usize>, parts: &mut dyn Iterator<Item = String>| {
        let mut at = at.unwrap_or(before.len());
        let mut line = before;
        for (part, field) in parts.zip(fields) {
            line = line.chars().take(at).collect::<String>() + &part;
            at += field.width();
        }
        line + "\n"
    };
    let longest = hops.iter().map(|hop| hop.name.len()).max().unwrap_or(0);
    let width = if wide { longest.max(hostname.len()) } else { 33 };
    let at = (!wide).then_some(33);
    let titles = fields.iter().map(|field| format!("{:>1$}", field.title(), field.width()));
    let mut text = line(format!("HOST: {hostname:width$}"), at, &mut titles.into_iter());
    for Named { number, hop, name, others } in hops {
        let figures = fields.iter().map(|field| field.shown(hop));
        text += &line(format!(" {number:2}.|-- {name:width$}"), at, &mut figures.into_iter());
        for other in others {
            let _ = writeln!(text, "        {other:width$}");
        }
    }
    text
}

/// `csv_close`.
pub(super) fn csv(target: &str, seconds: i64, fields: &[Field], hops: &[Named<'_>], wide: bool) -> String {
    let mut text = String::new();
    if !hops.is_empty() {
        text.push_str("Mtr_Version,Start_Time,Status,Host,Hop,Ip,");
        fields.iter().for_each(|field| text += &format!("{},", field.title()));
        text.push('\n');
    }
    for Named { number, hop, name, others } in hops {
        let more = others.iter().filter(|_| wide);
        for name in [name].into_iter().chain(more) {
            let _ = write!(text, "MTR.0.95,{seconds},OK,{target},{number},{name}");
            for field in fields {
                let value = field.value(hop);
                let _ = match field.is_whole() {
                    true => write!(text, ",{value}"),
                    false => write!(text, ",{:.2}", value as f64 / 1000.0),
                };
            }
            text.push('\n');
        }
    }
    text
}

/// What stands above the hops in JSON and XML.
pub(super) struct Head<'a> {
    pub(super) source: &'a str,
    pub(super) target: &'a str,
    pub(super) tos: u8,
    pub(super) tests: i64,
    pub(super) size: i64,
    pub(super) bitpattern: i64,
}

/// A text of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// `json_close`.
pub(super) fn json(head: &Head<'_>, fields: &[Field], hops: &[Named<'_>]) -> String {
    let mut once: Vec<Field> = Vec::new();
    fields.iter().filter(|field| !field.is_blank()).for_each(|field| {
        if !once.contains(field) {
            once.push(*field);
        }
    });
    let real = |value: i64| {
        let text = penstock_model::time::general(value as f64 / 1000.0, 5);
        if text.contains(['.', 'e']) { text } else { text + ".0" }
    };
    let members = [
        ("src", quoted(head.source)),
        ("dst", quoted(head.target)),
        ("tos", head.tos.to_string()),
        ("tests", head.tests.to_string()),
        ("psize", quoted(&head.size.to_string())),
        ("bitpattern", quoted(&format!("0x{:02X}", head.bitpattern))),
    ];
    let members: Vec<String> =
        members.iter().map(|(key, value)| format!("            \"{key}\": {value}")).collect();
    let hubs = hops.iter().map(|Named { number, hop, name, .. }| {
        let mut members = vec![
            format!("                \"count\": {number}"),
            format!("                \"host\": {}", quoted(name)),
        ];
        members.extend(once.iter().map(|field| {
            let value = field.value(hop);
            let value = if field.is_whole() { value.to_string() } else { real(value) };
            format!("                \"{}\": {value}", field.title())
        }));
        format!("            {{\n{}\n            }}", members.join(",\n"))
    });
    let hubs: Vec<String> = hubs.collect();
    let hubs = if hubs.is_empty() { "[]".to_owned() } else { format!("[\n{}\n        ]", hubs.join(",\n")) };
    let mtr = members.join(",\n");
    format!(
        "{{\n    \"report\": {{\n        \"mtr\": {{\n{mtr}\n        }},\n        \"hubs\": {hubs}\n    }}\n}}\n"
    )
}

/// `xml_close`.
pub(super) fn xml(head: &Head<'_>, fields: &[Field], hops: &[Named<'_>]) -> String {
    let Head { source, target, tos, tests, size, bitpattern } = head;
    let mut text = format!(
        "<?xml version=\"1.0\"?>\n<MTR SRC=\"{source}\" DST=\"{target}\" TOS=\"0x{tos:X}\" PSIZE=\"{size}\" BITPATTERN=\"0x{bitpattern:02X}\" \
         TESTS=\"{tests}\">\n"
    );
    for Named { number, hop, name, .. } in hops {
        let _ = writeln!(text, "    <HUB COUNT=\"{number}\" HOST=\"{name}\">");
        for field in fields.iter().filter(|field| !field.is_blank()) {
            // A name has no "%" there.
            let title = field.title().trim_end_matches('%');
            let _ = writeln!(text, "        <{title}>{}</{title}>", field.shown(hop));
        }
        text.push_str("    </HUB>\n");
    }
    text + "</MTR>\n"
}
