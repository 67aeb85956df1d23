//! `penstock import`: a machine from what `ip`, `tc`, `iptables-save`, `nft` and `sysctl` print of a real one.
//!
//! Each text is known by its form: JSON of `ip -j` and `tc -j`, text of `ip` and `tc`, `iptables-save`, `nft list ruleset`, `sysctl`. What comes out is commands. Those of qdiscs and
//! classes are found by trying ([`words`]): a scratch machine executes them and must show what was shown. What cannot be said in commands,
//! or shows otherwise, is noted.

mod experiment;
mod filters;
mod firewall;
mod link;
mod route;
mod words;

pub use experiment::{Fragment, experiment};
use link::Link;

use penstock_host::{Host, NoFiles};
use penstock_lang::token::Line;
use penstock_model::{Kernel, Time};
use serde_json::Value;

/// One text that a program printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Text {
    /// Where it comes from, for messages.
    pub name: String,
    /// The text.
    pub text: String,
    /// The device it is of, where the text does not say (classes and filters).
    pub dev: Option<String>,
}

/// A machine in commands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Import {
    /// The commands, in an order that works; the last ones may carry a here-document.
    pub commands: Vec<String>,
    /// What was left out, or is not exactly as it was.
    pub notes: Vec<String>,
}

/// What the texts hold, by kind.
#[derive(Default)]
struct Found {
    links: Vec<Link>,
    /// Commands that make them.
    routes: Vec<Vec<String>>,
    rules: Vec<Vec<String>>,
    settings: Vec<(String, String)>,
    qdiscs: Vec<Shown>,
    classes: Vec<Shown>,
    filters: Vec<(String, String)>,
    chains: Vec<(String, String)>,
    actions: Vec<String>,
    iptables: Vec<String>,
    nft: Vec<String>,
}

/// A qdisc or a class as it was shown.
#[derive(Clone, PartialEq, Debug)]
struct Shown {
    dev: String,
    kind: String,
    handle: String,
    /// `root`, `parent 1:1`, `ingress`.
    place: Vec<String>,
    /// JSON's options, where the text was JSON.
    json: Option<Value>,
    /// The words behind the place, where it was text.
    words: Vec<String>,
}

/// Makes commands of the texts.
///
/// # Errors
/// A text whose form is not known.
pub fn import(texts: &[Text], kernel: Kernel) -> Result<Import, String> {
    let mut found = Found::default();
    for text in texts {
        sort(text, &mut found)?;
    }
    parents_first(&mut found.classes);
    let mut made = Made::new(Host::new("import", kernel, 1));
    made.host.add_device("eth0");
    made.host.add_device("eth1");
    links(&found.links, &mut made);
    for words in found.routes.iter().chain(&found.rules) {
        made.run(words);
    }
    for (name, value) in &found.settings {
        made.run(&["sysctl", "-q", "-w", &format!("{name}={value}")].map(str::to_owned));
    }
    for shown in &found.qdiscs {
        made.device(&shown.dev);
        // A parent's classes come before what hangs on them.
        if let [word, parent] = shown.place.as_slice()
            && word == "parent"
        {
            let of = |c: &&Shown| c.dev == shown.dev && major(&c.handle) == major(parent);
            found.classes.iter().filter(of).for_each(|c| words::class(c, &mut made));
        }
        words::qdisc(shown, &mut made);
    }
    for shown in &found.classes {
        made.device(&shown.dev);
        words::class(shown, &mut made);
    }
    words::compare(&mut made);
    for text in &found.actions {
        filters::actions(text, &mut made);
    }
    for (dev, text) in &found.chains {
        filters::chains(dev, text, &mut made);
    }
    for (dev, text) in &found.filters {
        filters::filters(dev, text, &mut made);
    }
    for text in &found.iptables {
        let program = firewall::program(text);
        made.import.commands.push(format!("{program} <<'END'\n{}\nEND", text.trim_end()));
    }
    for text in &found.nft {
        made.import.commands.push(format!("nft -f - <<'END'\n{}\nEND", text.trim_end()));
    }
    Ok(made.import)
}

/// A class whose parent is not there yet would become a class of the root.
fn parents_first(classes: &mut [Shown]) {
    let parents: Vec<(String, String, Option<String>)> =
        classes.iter().map(|c| (c.dev.clone(), c.handle.clone(), c.place.get(1).cloned())).collect();
    let depth = |class: &Shown| {
        let (mut depth, mut at) = (0, class.place.get(1).cloned());
        while let Some(handle) = at.filter(|_| depth < parents.len()) {
            depth += 1;
            at = parents.iter().find(|p| p.0 == class.dev && p.1 == handle).and_then(|p| p.2.clone());
        }
        depth
    };
    classes.sort_by_cached_key(depth);
}

fn major(handle: &str) -> &str {
    handle.split(':').next().unwrap_or(handle)
}

/// The commands so far and the machine they have made.
struct Made {
    host: Host,
    import: Import,
    /// Qdiscs and classes that were made, to be compared in the end.
    kept: Vec<(&'static str, Shown)>,
}

impl Made {
    fn new(host: Host) -> Made {
        Made { host, import: Import::default(), kept: Vec::new() }
    }
    /// Carries out words and keeps them; notes when they are refused.
    fn run(&mut self, words: &[String]) {
        self.give(&Line::of_words(words).source, words);
    }
    fn exec(&mut self, words: &[String]) -> i32 {
        self.host.command(words, &mut NoFiles, Time::ZERO).status
    }
    fn show(&mut self, line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        self.host.command(&words, &mut NoFiles, Time::ZERO).stdout
    }
    /// Keeps a command that has been carried out already.
    fn keep(&mut self, words: &[String]) {
        self.import.commands.push(Line::of_words(words).source);
    }
    fn give(&mut self, line: &str, words: &[String]) {
        let output = self.host.command(words, &mut NoFiles, Time::ZERO);
        if output.status == 0 {
            self.keep(words);
        } else {
            self.note(format!("{line}: {}", output.stderr.lines().next().unwrap_or_default()));
        }
    }
    fn note(&mut self, text: String) {
        if !self.import.notes.contains(&text) {
            self.import.notes.push(text);
        }
    }
    /// A device that tc speaks of and ip did not is there all the same.
    fn device(&mut self, name: &str) {
        if self.host.ifindex(name).is_none() {
            self.run(&["ip", "link", "add", "name", name, "type", "dummy"].map(str::to_owned));
            self.run(&["ip", "link", "set", "dev", name, "up"].map(str::to_owned));
        }
    }
}

/// Sorts a text by its form.
fn sort(text: &Text, found: &mut Found) -> Result<(), String> {
    let unknown = || format!("{}: not what ip, tc, iptables-save, nft or sysctl print", text.name);
    let plain = text.text.trim();
    if plain.is_empty() || plain == "[]" {
        return Ok(());
    }
    if plain.starts_with('[') {
        let Ok(Value::Array(objects)) = serde_json::from_str(plain) else {
            return Err(format!(
                "{}: JSON that cannot be read (tc's own is not valid for some filters: give the text form)",
                text.name
            ));
        };
        for object in objects.into_iter().filter(|o| o.as_object().is_some_and(|o| !o.is_empty())) {
            let has = |key: &str| object.get(key).is_some();
            if has("ifname") {
                found.links.push(Link::of_json(&object));
            } else if has("dst") && !has("priority") {
                found.routes.extend(route::of_json(&object));
            } else if has("priority") && has("src") {
                found.rules.extend(rule(&object));
            } else if has("class") {
                found.classes.push(json("class", &object, text).ok_or_else(unknown)?);
            } else if has("protocol") && has("pref") {
                return Err(format!(
                    "{}: filters are read as text: leave -j away (tc's JSON of them is not always valid)",
                    text.name
                ));
            } else if has("kind") && has("handle") {
                found.qdiscs.push(json("kind", &object, text).ok_or_else(unknown)?);
            } else {
                return Err(unknown());
            }
        }
        return Ok(());
    }
    let first = plain.lines().find(|l| !l.starts_with('#')).unwrap_or_default();
    if first.starts_with('*') {
        found.iptables.push(plain.to_owned());
    } else if first.starts_with("table ") && first.ends_with('{') {
        found.nft.push(plain.to_owned());
    } else if Link::begins(first) {
        found.links.extend(Link::of_text(plain));
    } else if route::is_rule(first) {
        found.rules.extend(route::rules(plain));
    } else if route::is_route(first) {
        found.routes.extend(route::of_text(plain));
    } else if let Some(settings) = settings(plain) {
        found.settings.extend(settings);
    } else if first.starts_with("qdisc ") {
        found.qdiscs.extend(objects(plain, "qdisc ").iter().filter_map(|l| words_of(l, text)));
    } else if first.starts_with("class ") {
        found.classes.extend(objects(plain, "class ").iter().filter_map(|l| words_of(l, text)));
    } else if first.starts_with("filter ") || first.starts_with("chain ") {
        let dev = text.dev.clone().ok_or_else(|| format!("{}: of which device? say DEV=FILE", text.name))?;
        let list = if first.starts_with("filter ") { &mut found.filters } else { &mut found.chains };
        list.push((dev, plain.to_owned()));
    } else if first.starts_with("total acts ") {
        found.actions.push(plain.to_owned());
    } else {
        return Err(unknown());
    }
    Ok(())
}

/// An object of `tc -j qdisc show` or `tc -j class show`.
fn json(kind: &str, object: &Value, text: &Text) -> Option<Shown> {
    let word = |key: &str| object.get(key)?.as_str().map(str::to_owned);
    let place = match (object.get("root"), word("parent")) {
        (Some(_), _) => vec!["root".to_owned()],
        (_, Some(parent)) if parent == "ffff:fff1" => vec![word(kind)?],
        (_, Some(parent)) => vec!["parent".to_owned(), parent],
        _ => vec!["root".to_owned()],
    };
    let mut options = object.get("options").unwrap_or(object).clone();
    if let Some(map) = options.as_object_mut() {
        for known in
            ["class", "kind", "handle", "root", "parent", "leaf", "dev", "refcnt", "stats", "options"]
        {
            map.remove(known);
        }
    }
    let dev = word("dev").or_else(|| text.dev.clone())?;
    Some(Shown {
        dev,
        kind: word(kind)?,
        handle: word("handle")?,
        place,
        json: Some(options),
        words: Vec::new(),
    })
}

/// The objects of a text, one a line; lines that are indented belong to the one before.
fn objects(text: &str, start: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    // Counters say nothing of how it was made; they stand last.
    let mut counted = false;
    for line in text.lines() {
        if line.starts_with(start) {
            all.push(line.trim_end().to_owned());
            counted = false;
            continue;
        }
        counted |= line.trim_start().starts_with("Sent ");
        if let Some(last) = all.last_mut().filter(|_| !counted) {
            last.push_str(&format!(" {}", line.trim()));
        }
    }
    all
}

/// `qdisc htb 1: dev eth0 root refcnt 2 r2q 10 …`, `class htb 1:10 parent 1:1 leaf 10: prio 0 …`.
fn words_of(line: &str, text: &Text) -> Option<Shown> {
    let mut words = line.split_whitespace().skip(1).map(str::to_owned).peekable();
    let (kind, handle) = (words.next()?, words.next()?);
    let mut shown = Shown {
        dev: text.dev.clone().unwrap_or_default(),
        kind,
        handle,
        place: Vec::new(),
        json: None,
        words: Vec::new(),
    };
    while let Some(word) = words.peek().cloned() {
        match word.as_str() {
            "dev" => shown.dev = words.nth(1)?,
            "root" => {
                words.next();
                shown.place = vec![word];
            }
            "parent" => {
                words.next();
                let parent = words.next()?;
                shown.place =
                    if parent == "ffff:fff1" { vec![shown.kind.clone()] } else { vec![word, parent] };
            }
            "refcnt" | "leaf" => drop(words.nth(1)),
            _ => break,
        }
    }
    shown.words = words.collect();
    (!shown.dev.is_empty()).then_some(shown)
}

fn links(links: &[Link], made: &mut Made) {
    let word = |words: &[&str]| -> Vec<String> { words.iter().map(|w| (*w).to_owned()).collect() };
    for link in links {
        let name = link.name.as_str();
        if made.host.ifindex(name).is_none() {
            match link.kind.as_str() {
                kind @ ("dummy" | "ifb" | "bridge" | "vlan" | "veth") => {
                    made.run(&word(&["ip", "link", "add", "name", name, "type", kind]));
                }
                _ => {
                    made.run(&word(&["ip", "link", "add", "name", name, "type", "dummy"]));
                    made.note(format!("{name} is a dummy device here: the machine is its own"));
                }
            }
        }
        if let Some(mtu) = link.mtu.filter(|_| name != "lo") {
            made.run(&word(&["ip", "link", "set", "dev", name, "mtu", &mtu.to_string()]));
        }
        if let Some(len) = link.qlen.filter(|&len| len != 1000) {
            made.run(&word(&["ip", "link", "set", "dev", name, "txqueuelen", &len.to_string()]));
        }
        made.run(&word(&["ip", "link", "set", "dev", name, if link.up() { "up" } else { "down" }]));
        for address in link.addresses.iter().filter(|a| !a.is_own(link) && a.scope != "link") {
            let mut words = word(&["ip", "addr", "add"]);
            words.extend(address.words(name));
            made.run(&words);
        }
    }
}

/// `ip rule add …` for an object of `ip -j rule show`.
fn rule(rule: &Value) -> Option<Vec<String>> {
    let priority = rule.get("priority").and_then(Value::as_u64).unwrap_or_default();
    if matches!(priority, 0 | 32766 | 32767) {
        return None;
    }
    let word = |key: &str| rule.get(key).and_then(Value::as_str);
    let mut words = ["ip", "rule", "add", "pref", &priority.to_string()].map(str::to_owned).to_vec();
    let mut add = |say: &str, value: String| words.extend([say.to_owned(), value]);
    for (key, len, say) in [("src", "srclen", "from"), ("dst", "dstlen", "to")] {
        if let Some(value) = word(key) {
            let len = rule.get(len).and_then(Value::as_u64).map(|l| format!("/{l}")).unwrap_or_default();
            add(say, format!("{value}{len}"));
        }
    }
    for (key, say) in [("fwmark", "fwmark"), ("iif", "iif"), ("oif", "oif"), ("table", "table")] {
        if let Some(value) = word(key) {
            add(say, value.to_owned());
        }
    }
    Some(words)
}

/// What of `sysctl` decides what packets meet; the rest is left where it is. `None` where a line is not a setting.
fn settings(text: &str) -> Option<Vec<(String, String)>> {
    const HEEDED: [&str; 4] = [
        "net.ipv4.ip_forward",
        "net.ipv4.tcp_congestion_control",
        "net.ipv4.tcp_ecn",
        "net.ipv4.ip_default_ttl",
    ];
    let lines = text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#'));
    let each = lines.map(|line| {
        let (name, value) = line.split_once('=')?;
        let name = name.trim();
        let plain = name.contains('.') && !name.contains(' ');
        plain.then(|| (name.to_owned(), value.trim().to_owned()))
    });
    let all: Vec<(String, String)> = each.collect::<Option<_>>()?;
    Some(all.into_iter().filter(|(name, _)| HEEDED.contains(&name.as_str())).collect())
}

#[cfg(test)]
mod machines;
#[cfg(test)]
mod tests;
