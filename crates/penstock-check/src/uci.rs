//! OpenWrt's configuration (UCI): that of sqm-scripts and of qosmate is read; of others it is said that it is not.

use crate::coverage::{Coverage, Missed};

/// Whose configuration it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Package {
    /// `/etc/config/sqm` of sqm-scripts.
    Sqm,
    /// `/etc/config/qosmate`.
    Qosmate,
}

/// A value and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// Name of the option.
    pub name: String,
    /// Its value without quotes.
    pub value: String,
    pub line: u32,
    /// Column of the value, in characters from 1; the same of the name.
    pub column: u32,
    pub name_column: u32,
}

/// `config TYPE NAME` and its options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Section {
    pub kind: String,
    pub line: u32,
    pub entries: Vec<Entry>,
}

/// A configuration whose meaning is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Uci {
    pub package: Package,
    pub sections: Vec<Section>,
}

impl Section {
    /// The last option of a name: later ones count.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().rfind(|e| e.name == name)
    }
    /// Whether it is switched on.
    pub fn enabled(&self) -> bool {
        self.get("enabled").is_some_and(|e| e.value == "1")
    }
}

/// A line's words as UCI reads them, with their columns.
fn words(line: &str) -> Vec<(String, u32)> {
    let mut out = Vec::new();
    let mut word: Option<(String, u32)> = None;
    let mut quote = None;
    for (at, c) in (1..).zip(line.chars()) {
        match c {
            '\'' | '"' if quote == Some(c) => quote = None,
            '\'' | '"' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert((String::new(), at + 1));
            }
            '#' if quote.is_none() && word.is_none() => break,
            c if c.is_whitespace() && quote.is_none() => out.extend(word.take()),
            c => word.get_or_insert((String::new(), at)).0.push(c),
        }
    }
    out.extend(word);
    out
}

/// Its sections; `None` where a text is not UCI.
fn sections(text: &str) -> Option<Vec<Section>> {
    let mut out: Vec<Section> = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let words = words(text.trim_end_matches('\r'));
        let Some((first, _)) = words.first() else { continue };
        match (first.as_str(), words.get(1), words.get(2)) {
            ("package", Some(_), _) => {}
            ("config", Some((kind, _)), _) => {
                out.push(Section { kind: kind.clone(), line, entries: Vec::new() });
            }
            ("option" | "list", Some((name, name_column)), value) => {
                let (value, column) = value.cloned().unwrap_or_default();
                let (name, name_column) = (name.clone(), *name_column);
                out.last_mut()?.entries.push(Entry { name, value, line, column, name_column });
            }
            _ => return None,
        }
    }
    (!out.is_empty()).then_some(out)
}

/// What a file of configuration is.
pub(crate) enum Read {
    Known(Uci),
    /// What it is, which is not read.
    Other(String),
}

/// Reads a file by its name and its text; `None` for what is neither UCI nor JSON.
pub(crate) fn read(name: &str, text: &str) -> Option<Read> {
    let file = name.rsplit('/').next().unwrap_or(name);
    if file.ends_with(".json") {
        return Some(Read::Other("JSON".to_owned()));
    }
    if text.starts_with("#!") || !text.lines().any(|l| l.trim_start().starts_with("config ")) {
        return None;
    }
    let sections = sections(text)?;
    let has = |kind: &str, option: &str| {
        sections.iter().any(|s| s.kind == kind && s.entries.iter().any(|e| e.name == option))
    };
    let package = match () {
        () if has("queue", "interface")
            && (has("queue", "download") || has("queue", "upload") || file == "sqm") =>
        {
            Package::Sqm
        }
        () if has("settings", "UPRATE") || has("settings", "DOWNRATE") || has("settings", "ROOT_QDISC") => {
            Package::Qosmate
        }
        () => return Some(Read::Other(format!("UCI's `{file}`"))),
    };
    Some(Read::Known(Uci { package, sections }))
}

/// The coverage of a configuration: a section that says something of queues counts as a command.
pub(crate) fn coverage(read: &Read, text: &str) -> Coverage {
    match read {
        Read::Known(uci) => {
            let sections =
                uci.sections.iter().filter(|s| matches!(s.kind.as_str(), "queue" | "settings")).count();
            Coverage { commands: sections, looked_at: sections, ..Coverage::default() }
        }
        Read::Other(what) => {
            let why = format!("{what} is not read; only the configuration of sqm-scripts and of qosmate is");
            let to = text.lines().count().max(1) as u32;
            Coverage {
                commands: 1,
                missed: vec![Missed { file: String::new(), from: 1, to, commands: 1, why }],
                ..Coverage::default()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_options_and_columns() {
        let text = "config queue 'wan'\n\toption enabled '1' # on\n\toption interface \"eth1\"\n\toption download 50000\n";
        let Some(Read::Known(uci)) = read("/etc/config/sqm", text) else { panic!() };
        let section = &uci.sections[0];
        assert_eq!((uci.package, section.kind.as_str(), section.enabled()), (Package::Sqm, "queue", true));
        let entry = section.get("download").unwrap();
        assert_eq!((entry.value.as_str(), entry.line, entry.column), ("50000", 4, 18));
        assert_eq!(section.get("interface").unwrap().column, 20);
    }

    #[test]
    fn what_is_not_read_is_named() {
        let other = |name: &str, text: &str| match read(name, text) {
            Some(Read::Other(what)) => what,
            _ => String::new(),
        };
        assert_eq!(other("network", "config interface 'lan'\n\toption device 'br-lan'\n"), "UCI's `network`");
        assert_eq!(other("a.json", "{}"), "JSON");
        assert!(read("s.sh", "config add\ntc qdisc add dev eth0 root sfq\n").is_none());
        assert!(read("s.sh", "#!/bin/sh\nconfig x\n").is_none());
    }
}
