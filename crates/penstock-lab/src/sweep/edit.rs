//! One value put into the text of an experiment: where a path such as `link.uplink.rate` leads, and what is written there.
//!
//! The text itself is changed and then read as any other: what is wrong with the new value is found by those who read the file, and the record of a
//! run holds the text that was run. A value that is there is replaced; a key that is not there is written below the head of its table.

use super::value::Value;
use crate::experiment::{Experiment, Loader, Source, meant, program};
use penstock_lang::toml::key;
use penstock_model::Diagnostic;
use std::ops::Range;
use std::path::Path as File;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// How deep one `base` may stand on another: what reads them refuses more.
const BASES: usize = 8;
/// The lists whose tables are found by name or number.
const LISTS: [&str; 5] = ["link", "app", "flow", "meter", "expect"];

/// The words of a path, each with its place in what somebody wrote.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Path {
    words: Vec<(String, Range<usize>)>,
}

/// What is wrong with a path: where in it, what, and what to write.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Fault {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: String,
}

fn fault<T>(span: &Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { span: span.clone(), message: message.into(), help: help.into() })
}

impl Path {
    /// Reads a path as TOML reads a dotted key.
    pub(super) fn parse(text: &str) -> Result<Path, Fault> {
        let whole = 0..text.len();
        let line = format!("{text} = 0");
        let (root, errors) = DeTable::parse_recoverable(&line);
        let mut words = Vec::new();
        let mut table = root.get_ref();
        while let (1, Some((word, value))) = (table.len(), table.iter().next()) {
            words.push((word.get_ref().to_string(), word.span()));
            match value.get_ref() {
                DeValue::Table(inner) => table = inner,
                _ => break,
            }
        }
        if !errors.is_empty() || words.is_empty() || text.contains(['\n', '#', '=']) {
            let help = "write names with dots between them, in quotes where they hold other characters: app.\"pc iperf\".at";
            return fault(&whole, format!("\"{text}\" is not the path of a key"), help);
        }
        Ok(Path { words })
    }

    /// As it is written in TOML.
    pub(super) fn shown(&self) -> String {
        self.to(self.words.len())
    }

    /// Its first words.
    fn to(&self, words: usize) -> String {
        self.words[..words].iter().map(|w| key(&w.0)).collect::<Vec<_>>().join(".")
    }
}

/// Puts values into a link of an experiment, by its number among all links, from 0: keys such as `rate` or `ends.2.rate`. Answers the number of the source
/// that says so, and its new text, in which all else stands as it stood.
///
/// # Errors
/// There is no such link, it is made by something else than a `[[link]]`, or it has no such key.
pub fn change_link(
    experiment: &Experiment,
    link: usize,
    set: &[(String, String)],
) -> Result<(usize, String), Diagnostic> {
    let place = &experiment
        .links
        .get(link)
        .ok_or_else(|| {
            Diagnostic::error(format!("there is no link {link}"))
                .help(format!("there are {}", experiment.links.len()))
        })?
        .place;
    let source = &experiment.sources[place.source];
    let (root, _) = DeTable::parse_recoverable(&source.text);
    let items = root.get_ref().get("link").and_then(|l| l.get_ref().as_array());
    let at = items.into_iter().flatten().position(|item| item.span() == place.span);
    let Some(at) = at else {
        return Err(Diagnostic::error("this link is no [[link]] of the file")
            .help("it is a port of a [switch.NAME]: change it there"));
    };
    let mut texts = Texts(vec![source.clone()]);
    for (key, value) in set {
        let put = Path::parse(&format!("link.{}.{key}", at + 1))
            .and_then(|path| texts.put(&path, &Value::of(value)));
        put.map_err(|f| Diagnostic::error(f.message).help(f.help))?;
    }
    let text = texts.0.remove(0).text;
    Ok((place.source, text))
}

/// The texts that an experiment is read from: the file first, then its bases.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Texts(pub(super) Vec<Source>);

impl Texts {
    /// The file and its bases, as far as they can be read: those who read the experiment tell what cannot.
    pub(super) fn read(text: &str, name: &str, loader: Loader<'_>) -> Texts {
        let mut all = vec![Source { name: name.to_owned(), text: text.to_owned() }];
        while all.len() <= BASES {
            let from = &all[all.len() - 1];
            let (root, _) = DeTable::parse_recoverable(&from.text);
            let base = root.get_ref().get("base").and_then(|b| b.get_ref().as_str());
            let Some(base) = base else { break };
            let beside = File::new(&from.name).parent().filter(|p| !p.as_os_str().is_empty());
            let full = match beside {
                Some(folder) if !File::new(base).is_absolute() => {
                    folder.join(base).to_string_lossy().into_owned()
                }
                _ => base.to_owned(),
            };
            let Ok(text) = loader(&full) else { break };
            all.push(Source { name: full, text });
        }
        Texts(all)
    }

    /// Puts a value where a path leads.
    pub(super) fn put(&mut self, path: &Path, value: &Value) -> Result<(), Fault> {
        let mut best: Option<(usize, Found)> = None;
        for (n, source) in self.0.iter().enumerate() {
            let (root, errors) = DeTable::parse_recoverable(&source.text);
            if !errors.is_empty() {
                // Told when the experiment is read.
                continue;
            }
            let Some(found) = find(&source.text, root.get_ref(), path)? else { continue };
            if best.as_ref().is_none_or(|(_, b)| found.depth > b.depth) {
                best = Some((n, found));
            }
        }
        let Some((n, found)) = best else { return Err(self.unknown(path)) };
        let written = value.written(found.text);
        self.0[n].text.replace_range(found.at, &format!("{}{written}{}", found.before, found.behind));
        if let [(list, _), _, (last, _)] = &path.words[..]
            && (list.as_str(), last.as_str()) == ("host", "setup")
        {
            // The lines of a file follow those of its base: the new ones stand alone.
            for source in &mut self.0[n + 1..] {
                let (root, _) = DeTable::parse_recoverable(&source.text);
                if let Some(Found { at, before, .. }) = find(&source.text, root.get_ref(), path)?
                    && before.is_empty()
                {
                    drop(root);
                    source.text.replace_range(at, "[]");
                }
            }
        }
        Ok(())
    }

    /// Why nothing has this name.
    fn unknown(&self, path: &Path) -> Fault {
        let (list, _) = &path.words[0];
        let (name, span) = path.words.get(1).unwrap_or(&path.words[0]);
        let mut names: Vec<String> = Vec::new();
        for source in &self.0 {
            let (root, _) = DeTable::parse_recoverable(&source.text);
            match root.get_ref().get(&**list).map(|v| v.get_ref()) {
                Some(DeValue::Array(items)) => names.extend(items.iter().filter_map(|i| called(list, i))),
                Some(DeValue::Table(hosts)) => names.extend(hosts.keys().map(|k| k.get_ref().to_string())),
                _ => {}
            }
        }
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let shown = || known.iter().take(12).map(|n| key(n)).collect::<Vec<_>>().join(", ");
        let help = match meant(name, &known) {
            Some(near) => format!("did you mean {}?", key(near)),
            None if known.is_empty() => format!("the file has no {list}"),
            None => format!("there are {}; or a number, counted from 1", shown()),
        };
        Fault { span: span.clone(), message: format!("no {list} is called \"{name}\""), help }
    }
}

/// Where a value goes.
struct Found {
    /// How many words of the path are there.
    depth: usize,
    /// The bytes it takes the place of.
    at: Range<usize>,
    /// What stands before and behind it.
    before: String,
    behind: &'static str,
    /// Whether there is a text now: a number is then written as one.
    text: bool,
}

/// The place of a path in a file; `None` where the file does not have what it names.
fn find<'t>(text: &str, root: &'t DeTable<'t>, path: &Path) -> Result<Option<Found>, Fault> {
    let (first, span) = &path.words[0];
    if !LISTS.contains(&first.as_str()) && first != "host" {
        return descend(text, None, root, path, 0).map(Some);
    }
    if path.words.len() < 3 {
        let example = if first == "host" { "host.NAME.via" } else { "link.NAME.rate" };
        return fault(span, format!("\"{}\" names no key", path.shown()), format!("write e.g. {example}"));
    }
    let Some(list) = root.get(&**first) else { return Ok(None) };
    let (name, span) = &path.words[1];
    let element = match list.get_ref() {
        DeValue::Table(hosts) => hosts.get(&**name),
        DeValue::Array(items) => {
            let named: Vec<_> =
                items.iter().enumerate().filter(|(_, i)| called(first, i).as_ref() == Some(name)).collect();
            if let [(a, _), (b, _), ..] = &named[..] {
                let message = format!("several tables [[{first}]] are called \"{name}\"");
                return fault(span, message, format!("write {first}.{} or {first}.{}", a + 1, b + 1));
            }
            let number = name.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            named.first().map(|(_, item)| *item).or_else(|| items.get(number?))
        }
        _ => None,
    };
    let Some(element) = element else { return Ok(None) };
    let Some(table) = element.get_ref().as_table() else { return Ok(None) };
    descend(text, Some(element.span()), table, path, 2).map(Some)
}

/// The name of a table of a list.
fn called(list: &str, item: &Spanned<DeValue<'_>>) -> Option<String> {
    let table = item.get_ref().as_table()?;
    let text = |key: &str| table.get(key).and_then(|v| v.get_ref().as_str()).map(str::to_owned);
    let host = |end: &Spanned<DeValue<'_>>| {
        let end = end.get_ref();
        let end = end.as_str().or_else(|| end.as_table()?.get("end")?.get_ref().as_str())?;
        Some(end.split(':').next().unwrap_or(end).to_owned())
    };
    let own = match list {
        "link" => {
            let ends = table.get("ends").and_then(|e| e.get_ref().as_array());
            let hosts: Option<Vec<String>> = ends.and_then(|e| e.iter().map(host).collect());
            hosts.map(|h| h.join("-"))
        }
        "app" => text("on").zip(text("run")).map(|(on, run)| format!("{on} {}", program(&run))),
        "flow" => text("from").zip(text("to")).map(|(from, to)| format!("{from}-{to}")),
        "expect" => text("what"),
        _ => None,
    };
    text("name").or(own)
}

/// Goes down a table to the last word of a path that is there. `head` is where the table was written; none: it is the file.
fn descend<'t>(
    text: &str,
    head: Option<Range<usize>>,
    table: &'t DeTable<'t>,
    path: &Path,
    from: usize,
) -> Result<Found, Fault> {
    // The last table that has a place of its own, and the word that follows it: tables made by dots have none.
    let (mut place, mut rest) = (head, from);
    let mut empty = table.is_empty();
    let mut here = Here::Table(table);
    for (depth, (word, span)) in path.words.iter().enumerate().skip(from) {
        let value = match here {
            Here::Table(table) => table.get(&**word),
            Here::List(items) => {
                let at =
                    word.parse::<usize>().ok().and_then(|n| n.checked_sub(1)).filter(|&n| n < items.len());
                let Some(at) = at else {
                    let message = format!("\"{word}\" is no place in the list {}", path.to(depth));
                    return fault(span, message, format!("write a number from 1 to {}", items.len()));
                };
                items.get(at)
            }
        };
        let Some(value) = value else { return Ok(insert(text, place, empty, path, rest, depth)) };
        let begins = text[value.span()].chars().next();
        let last = depth + 1 == path.words.len();
        match value.get_ref() {
            DeValue::Table(inner) if last && begins != Some('{') => {
                let keys: Vec<String> = inner.keys().take(8).map(|k| key(k.get_ref())).collect();
                let message = format!("\"{}\" is a table", path.shown());
                return fault(span, message, format!("write one of its keys behind it: {}", keys.join(", ")));
            }
            _ if last => {
                let text = value.get_ref().is_str();
                return Ok(Found {
                    depth: depth + 1,
                    at: value.span(),
                    before: String::new(),
                    behind: "",
                    text,
                });
            }
            DeValue::Table(inner) => {
                if matches!(begins, Some('{' | '[')) {
                    (place, rest, empty) = (Some(value.span()), depth + 1, inner.is_empty());
                }
                here = Here::Table(inner);
            }
            DeValue::Array(items) => here = Here::List(items),
            _ => {
                let (next, span) = &path.words[depth + 1];
                let message = format!("{} is not a table: it has no \"{next}\"", key(word));
                return fault(
                    span,
                    message,
                    format!("give all of it a value: {}={{ … }}", path.to(depth + 1)),
                );
            }
        }
    }
    unreachable!("the last word of a path returns")
}

/// Where a path has come to.
enum Here<'a> {
    Table(&'a DeTable<'a>),
    List(&'a DeArray<'a>),
}

/// A key that is not there: below the head of its table, or first in an inline one.
fn insert(
    text: &str,
    place: Option<Range<usize>>,
    empty: bool,
    path: &Path,
    rest: usize,
    depth: usize,
) -> Found {
    let name = Path { words: path.words[rest..].to_vec() }.shown();
    let (at, before, behind) = match place {
        None => (0, format!("{name} = "), "\n"),
        Some(span) if text[span.clone()].starts_with('{') => {
            (span.start + 1, format!(" {name} = "), if empty { " " } else { "," })
        }
        Some(span) => {
            let end = text[span.end..].find('\n').map_or(text.len(), |i| span.end + i);
            (end, format!("\n{name} = "), "")
        }
    };
    Found { depth, at: at..at, before, behind, text: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "duration = \"5s\" # long\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b] # the other\neth0 = { address = \"10.0.0.2/24\", mtu = 1400 }\n\
        cost.packet = \"5us\"\n[[link]]\nname = \"uplink\"\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"20mbit\"\n\
        [[flow]]\nfrom = \"a\"\nto = \"b\"\nload = { size = 100, gap = \"1ms\" }\n[[app]]\non = \"a\"\nrun = \"ping -c 1 10.0.0.2\"\n";

    fn put(path: &str, value: &str) -> Result<String, Fault> {
        let mut texts = Texts(vec![Source { name: "x.toml".into(), text: FILE.into() }]);
        texts.put(&Path::parse(path)?, &Value::of(value))?;
        Ok(texts.0[0].text.clone())
    }

    #[test]
    fn a_link_is_changed_where_it_stands() {
        let base = format!("{}rate = \"1mbit\" # slow\n", &FILE[..FILE.find("rate").unwrap()]);
        let file = "base = \"line.toml\" # the line\n[host.c]\neth0 = \"10.0.1.1/24\"\n[host.d]\neth0 = \"10.0.1.2/24\"\n\
                    [[link]] # another\nends = [\"c:eth0\", { end = \"d:eth0\", rate = \"2mbit\" }]\nrate = \"9mbit\"\n\
                    [host.e]\neth0 = \"10.0.2.1/24\"\n[host.f]\neth0 = \"10.0.2.2/24\"\n[switch.s]\nports = [\"e:eth0\", \"f:eth0\"]\n";
        let loader = |name: &str| if name == "line.toml" { Ok(base.clone()) } else { Err("no".to_owned()) };
        let experiment = crate::experiment::parse_with(file, "x.toml", &loader).unwrap();
        let set = |link: usize, key: &str, value: &str| {
            change_link(&experiment, link, &[(key.into(), value.into())])
        };
        assert_eq!(set(0, "rate", "5mbit").unwrap(), (1, base.replace("1mbit", "5mbit")));
        assert_eq!(
            set(0, "delay", "5ms").unwrap().1,
            base.replace("[[link]]\n", "[[link]]\ndelay = \"5ms\"\n")
        );
        assert_eq!(set(3, "ends.2.rate", "3mbit").unwrap(), (0, file.replace("2mbit", "3mbit")));
        assert!(set(3, "ends.1.rate", "3mbit").unwrap_err().message.contains("is not a table"));
        assert!(set(4, "rate", "3mbit").unwrap_err().message.contains("no link 4"));
        // The ports of a switch are links too.
        assert!(set(1, "rate", "3mbit").unwrap_err().help.contains("[switch.NAME]"));
    }

    #[test]
    fn a_value_comes_where_its_path_leads() {
        let check = |path: &str, value: &str, old: &str, new: &str| {
            assert_eq!(put(path, value).unwrap(), FILE.replacen(old, new, 1), "{path}");
        };
        check("duration", "9s", "\"5s\"", "\"9s\"");
        check("link.uplink.rate", "10mbit", "\"20mbit\"", "\"10mbit\"");
        check("link.1.rate", "10", "\"20mbit\"", "\"10\"");
        check("link.uplink.delay", "5ms", "[[link]]\n", "[[link]]\ndelay = \"5ms\"\n");
        check("host.b.eth0.mtu", "1500", "1400", "1500");
        check("host.b.eth0.txqueuelen", "10", "{ address", "{ txqueuelen = 10, address");
        check("host.b.cost.packet", "7us", "\"5us\"", "\"7us\"");
        check("host.b.cost.byte", "1ns", "other\n", "other\ncost.byte = \"1ns\"\n");
        check("host.a.via", "10.0.0.2", "[host.a]\n", "[host.a]\nvia = \"10.0.0.2\"\n");
        check("flow.a-b.load.gap", "2ms", "\"1ms\"", "\"2ms\"");
        check("flow.a-b.load", "greedy", "{ size = 100, gap = \"1ms\" }", "\"greedy\"");
        check("app.\"a ping\".at", "1s", "[[app]]\n", "[[app]]\nat = \"1s\"\n");
        check("seed", "7", "duration", "seed = 7\nduration");
        check("link.1.ends.2", "a:eth1", "\"b:eth0\"", "\"a:eth1\"");
        check("host.a.setup", "[\"true\"]", "[host.a]\n", "[host.a]\nsetup = [\"true\"]\n");
    }

    #[test]
    fn what_is_not_there_is_told_with_what_was_meant() {
        let check = |path: &str, message: &str, help: &str, marked: &str| {
            let fault = put(path, "1").unwrap_err();
            assert!(fault.message.contains(message), "{path}: {fault:?}");
            assert!(fault.help.contains(help), "{path}: {fault:?}");
            assert_eq!(&path[fault.span], marked);
        };
        check("link.uplnk.rate", "no link is called \"uplnk\"", "did you mean uplink?", "uplnk");
        check("host.other.via", "no host is called \"other\"", "there are a, b", "other");
        check("link.2.rate", "no link is called \"2\"", "counted from 1", "2");
        check("meter.1.kind", "no meter", "the file has no meter", "1");
        check("host.b.eth0.mtu.x", "mtu is not a table", "host.b.eth0.mtu={ … }", "x");
        check("link.1.ends.3", "\"3\" is no place in the list link.1.ends", "from 1 to 2", "3");
        check("host.b.cost", "is a table", "packet", "cost");
        check("link.uplink", "names no key", "link.NAME.rate", "link");
        check("a b", "is not the path of a key", "in quotes", "a b");
    }

    #[test]
    fn a_base_is_changed_where_the_file_has_nothing_to_say() {
        let base = "[host.a]\nsetup = [\"one\"]\n[[link]]\nname = \"up\"\nrate = \"1mbit\"\n";
        let loader = |name: &str| match name {
            "d/base.toml" => Ok(base.to_owned()),
            _ => Err(String::new()),
        };
        let file = "base = \"base.toml\"\n[host.a]\nsetup = \"two\"\n";
        let texts = Texts::read(file, "d/x.toml", &loader);
        assert_eq!(texts.0.len(), 2);
        let mut link = texts.clone();
        link.put(&Path::parse("link.up.rate").unwrap(), &Value::of("2mbit")).unwrap();
        assert_eq!((&*link.0[0].text, link.0[1].text.contains("\"2mbit\"")), (file, true));
        let mut setup = texts;
        setup.put(&Path::parse("host.a.setup").unwrap(), &Value::of("three")).unwrap();
        assert!(setup.0[0].text.contains("setup = \"three\"") && setup.0[1].text.contains("setup = []"));
    }
}
