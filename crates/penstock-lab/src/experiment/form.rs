//! What a table of the file may hold. The readers take no key that its form does not list ([`Table::take`](super::read::Table::take)); the
//! schema of the file and what an editor offers are made from the same forms, so none of them can tell of another language than the one that is read.

use std::fmt::Write as _;

/// A table: the keys it has.
#[derive(Debug)]
pub struct Form {
    /// Its name in the schema.
    pub name: &'static str,
    /// What it says.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// What stands under any other name, where any name may stand: a device of a host.
    pub others: Option<&'static Kind>,
}

/// A key.
#[derive(Debug)]
pub struct Key {
    /// The word.
    pub name: &'static str,
    /// What it means, in a sentence.
    pub about: &'static str,
    /// What stands behind it.
    pub kind: Kind,
    /// Whether it must be there.
    pub needed: bool,
    /// What it is where it does not stand there, as TOML.
    pub default: Option<&'static str>,
    /// The same in words, where it is not one value.
    pub otherwise: Option<&'static str>,
    /// An example, as TOML.
    pub example: Option<&'static str>,
}

/// What stands behind a key.
#[derive(Debug)]
pub enum Kind {
    /// Any text.
    Text,
    /// Yes or no.
    Flag,
    /// `true` alone.
    Yes,
    /// A whole number: the least and the greatest.
    Whole(u64, u64),
    /// A number.
    Number,
    /// A number, also as text.
    Figure,
    /// A number, or a share of something in percent as text.
    Share,
    /// A rate with its unit.
    Rate,
    /// A length of time with its unit.
    Time,
    /// The same as text alone.
    TimeText,
    /// A time for a byte: `us`, `ns` or `ps`.
    ByteTime,
    /// Bytes.
    Size,
    /// Bytes as text.
    SizeText,
    /// A probability.
    Chance,
    /// One of some words.
    Words(fn() -> Vec<&'static str>),
    /// A kernel profile, with quotes or without.
    Kernel,
    /// A code point: a name or a number.
    CodePoint,
    /// An address with its prefix length.
    Prefix,
    /// An address.
    Address,
    /// A machine and a device.
    End,
    /// A file: `"@name"`.
    File,
    /// A text, or a number that is taken as text.
    Variable,
    /// Anything that TOML has.
    Anything,
    /// A list.
    List(&'static Kind),
    /// A list, or one.
    Few(&'static Kind),
    /// A table.
    Table(&'static Form),
    /// Tables of one form under names of one's own.
    Named(&'static Form),
    /// One of these.
    Any(&'static [Kind]),
}

/// A key, to be gone on with: `key(…).default("…")`.
pub const fn key(name: &'static str, kind: Kind, about: &'static str) -> Key {
    Key { name, about, kind, needed: false, default: None, otherwise: None, example: None }
}

impl Key {
    /// It must be there.
    #[must_use]
    pub const fn needed(mut self) -> Key {
        self.needed = true;
        self
    }
    /// What it is where it does not stand there, as TOML.
    #[must_use]
    pub const fn default(mut self, value: &'static str) -> Key {
        self.default = Some(value);
        self
    }
    /// The same in words.
    #[must_use]
    pub const fn otherwise(mut self, words: &'static str) -> Key {
        self.otherwise = Some(words);
        self
    }
    /// An example, as TOML.
    #[must_use]
    pub const fn example(mut self, value: &'static str) -> Key {
        self.example = Some(value);
        self
    }
    /// What it means and what it is where it does not stand there, in Markdown.
    pub fn doc(&self) -> String {
        let mut text = self.about.to_owned();
        text.push('.');
        match (self.needed, self.default, self.otherwise) {
            (true, ..) => text.push_str(" Required."),
            (_, Some(value), _) => write!(text, " Default: `{value}`.").unwrap_or_default(),
            (_, _, Some(words)) => write!(text, " Default: {words}.").unwrap_or_default(),
            _ => {}
        }
        if let Some(example) = self.example {
            write!(text, " Example: `{} = {example}`.", self.name).unwrap_or_default();
        }
        text
    }
}

impl Form {
    /// Whether a key of this name may stand in it.
    pub fn takes(&self, name: &str) -> bool {
        self.others.is_some() || self.key(name).is_some()
    }
    /// A key by its name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|k| k.name == name)
    }
}

impl Kind {
    /// The table within: that of a list, or one of several forms, which goes by a key.
    pub fn table(&self) -> Option<&'static Form> {
        match self {
            Kind::Table(form) => Some(form),
            Kind::List(kind) | Kind::Few(kind) => kind.table(),
            Kind::Any(kinds) => kinds.iter().find_map(Kind::table),
            _ => None,
        }
    }
    /// The words that may stand there, each as TOML.
    pub fn words(&self) -> Vec<String> {
        match self {
            Kind::Words(words) => words().into_iter().map(|w| format!("\"{w}\"")).collect(),
            Kind::Kernel => super::host::kernels().into_iter().map(|w| format!("\"{w}\"")).collect(),
            Kind::CodePoint => penstock_packet::dscp::names().map(|w| format!("\"{w}\"")).collect(),
            Kind::Flag => vec!["true".to_owned(), "false".to_owned()],
            Kind::Yes => vec!["true".to_owned()],
            Kind::List(kind) | Kind::Few(kind) => kind.words(),
            Kind::Any(kinds) => kinds.iter().flat_map(Kind::words).collect(),
            _ => Vec::new(),
        }
    }
    /// What it is, for a reader.
    pub fn says(&self) -> String {
        match self {
            Kind::Text => "text".into(),
            Kind::Flag => "true or false".into(),
            Kind::Yes => "true".into(),
            Kind::Whole(least, most) => format!("a whole number, {least} to {most}"),
            Kind::Number | Kind::Figure => "a number".into(),
            Kind::Share => "a number, or a share: \"25%\"".into(),
            Kind::Rate => "a rate: \"10mbit\"".into(),
            Kind::Time | Kind::TimeText => "a time: \"50ms\"".into(),
            Kind::ByteTime => "a time for a byte: \"0.8ns\"".into(),
            Kind::Size | Kind::SizeText => "bytes: \"15k\"".into(),
            Kind::Chance => "a probability: \"1%\"".into(),
            Kind::Words(_) | Kind::Kernel | Kind::CodePoint => "a word".into(),
            Kind::Prefix => "an address with prefix length: \"10.0.0.1/24\"".into(),
            Kind::Address => "an address: \"10.0.0.1\"".into(),
            Kind::End => "a machine and a device: \"a:eth0\"".into(),
            Kind::File => "a file: \"@name\"".into(),
            Kind::Variable => "text, or a number".into(),
            Kind::Anything => "a value".into(),
            Kind::List(kind) => format!("a list of: {}", kind.says()),
            Kind::Few(kind) => format!("{}; or a list of these", kind.says()),
            Kind::Table(_) => "a table".into(),
            Kind::Named(_) => "tables with names".into(),
            Kind::Any(kinds) => {
                let all: Vec<String> = kinds.iter().map(Kind::says).collect();
                all.join("; or ")
            }
        }
    }
}
