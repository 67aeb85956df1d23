//! `penstock import`: a machine from what `ip`, `tc` and `iptables-save` print of a real one.
//!
//! Each text is known by its form: JSON of `ip -j` and `tc -j`, text of `tc`, `iptables-save`. What comes out is commands. Those of qdiscs and
//! classes are found by trying ([`words`]): a scratch machine executes them and must show what was shown. What cannot be said in commands,
//! or shows otherwise, is noted.

mod filters;
mod words;

use penstock_host::{Host, NoFiles};
use penstock_lang::token::{Line, quoted};
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
    links: Vec<Value>,
    routes: Vec<Value>,
    rules: Vec<Value>,
    qdiscs: Vec<Shown>,
    classes: Vec<Shown>,
    filters: Vec<(String, String)>,
    chains: Vec<(String, String)>,
    actions: Vec<String>,
    iptables: Vec<String>,
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
    let mut made = Made { host: Host::new("import", kernel, 1), import: Import::default(), kept: Vec::new() };
    made.host.add_device("eth0");
    made.host.add_device("eth1");
    links(&found.links, &mut made);
    routes(&found, &mut made);
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
        made.import.commands.push(format!("iptables-restore <<'END'\n{}\nEND", text.trim_end()));
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
    /// Carries a command out and keeps it; notes when it is refused.
    fn say(&mut self, line: &str) {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        self.give(line, &words);
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
            self.say(&format!("ip link add {} type dummy", quoted(name)));
            self.say(&format!("ip link set {} up", quoted(name)));
        }
    }
}

/// Sorts a text by its form.
fn sort(text: &Text, found: &mut Found) -> Result<(), String> {
    let unknown = || format!("{}: not what ip, tc or iptables-save print", text.name);
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
                found.links.push(object);
            } else if has("dst") {
                found.routes.push(object);
            } else if has("priority") && has("src") {
                found.rules.push(object);
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
    for line in text.lines() {
        match all.last_mut() {
            _ if line.starts_with(start) => all.push(line.trim_end().to_owned()),
            // Counters say nothing of how it was made.
            Some(last) if !line.trim_start().starts_with("Sent ") => {
                last.push_str(&format!(" {}", line.trim()))
            }
            _ => {}
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

fn links(links: &[Value], made: &mut Made) {
    for link in links {
        let word = |key: &str| link.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |key: &str| link.get(key).and_then(Value::as_u64);
        let name = word("ifname");
        let kind =
            link.get("linkinfo").and_then(|l| l.get("info_kind")).and_then(Value::as_str).unwrap_or_default();
        if made.host.ifindex(&name).is_none() {
            match kind {
                "dummy" | "ifb" | "bridge" | "vlan" | "veth" => {
                    made.say(&format!("ip link add {name} type {kind}"))
                }
                _ => {
                    made.say(&format!("ip link add {name} type dummy"));
                    made.note(format!("{name} is a dummy device here: the machine is its own"));
                }
            }
        }
        if let Some(mtu) = number("mtu").filter(|_| name != "lo") {
            made.say(&format!("ip link set {name} mtu {mtu}"));
        }
        if let Some(len) = number("txqlen").filter(|&len| len != 1000) {
            made.say(&format!("ip link set {name} txqueuelen {len}"));
        }
        let flags = link.get("flags").and_then(Value::as_array);
        let up = flags.is_none_or(|f| f.iter().any(|f| f == "UP"));
        made.say(&format!("ip link set {name} {}", if up { "up" } else { "down" }));
        for address in link.get("addr_info").and_then(Value::as_array).into_iter().flatten() {
            let part = |key: &str| address.get(key).and_then(Value::as_str).unwrap_or_default();
            let local = part("local");
            let loopback = name == "lo" && matches!(local, "127.0.0.1" | "::1");
            if local.is_empty() || loopback || part("scope") == "link" {
                continue;
            }
            let len = address.get("prefixlen").and_then(Value::as_u64).unwrap_or(32);
            let broadcast = part("broadcast");
            let broadcast = if broadcast.is_empty() { String::new() } else { format!(" brd {broadcast}") };
            made.say(&format!("ip addr add {local}/{len}{broadcast} dev {name}"));
        }
    }
}

fn routes(found: &Found, made: &mut Made) {
    for route in &found.routes {
        let word = |key: &str| route.get(key).and_then(Value::as_str);
        // The kernel makes those itself when the address is given.
        if word("protocol") == Some("kernel") {
            continue;
        }
        let mut line = "ip route add".to_owned();
        if let Some(kind) = word("type").filter(|t| *t != "unicast") {
            line.push_str(&format!(" {kind}"));
        }
        line.push_str(&format!(" {}", word("dst").unwrap_or("default")));
        for (key, say) in [("gateway", "via"), ("dev", "dev"), ("prefsrc", "src"), ("table", "table")] {
            if let Some(value) = word(key) {
                line.push_str(&format!(" {say} {value}"));
            }
        }
        if let Some(metric) = route.get("metric").and_then(Value::as_u64) {
            line.push_str(&format!(" metric {metric}"));
        }
        made.say(&line);
    }
    for rule in &found.rules {
        let priority = rule.get("priority").and_then(Value::as_u64).unwrap_or_default();
        if matches!(priority, 0 | 32766 | 32767) {
            continue;
        }
        let word = |key: &str| rule.get(key).and_then(Value::as_str);
        let mut line = format!("ip rule add pref {priority}");
        for (key, len, say) in [("src", "srclen", "from"), ("dst", "dstlen", "to")] {
            if let Some(value) = word(key) {
                let len = rule.get(len).and_then(Value::as_u64).map(|l| format!("/{l}")).unwrap_or_default();
                line.push_str(&format!(" {say} {value}{len}"));
            }
        }
        for (key, say) in [("fwmark", "fwmark"), ("iif", "iif"), ("oif", "oif"), ("table", "table")] {
            if let Some(value) = word(key) {
                line.push_str(&format!(" {say} {value}"));
            }
        }
        made.say(&line);
    }
}

/// The commands as a fragment of an experiment file: `[host.NAME]` with its setup.
pub fn fragment(name: &str, import: &Import) -> String {
    let text = import.commands.join("\n");
    let notes: String = import.notes.iter().map(|n| format!("# {n}\n")).collect();
    let fence = if text.contains("'''") { "\"\"\"" } else { "'''" };
    format!("{notes}[host.{name}]\nsetup = {fence}\n{text}\n{fence}\n")
}

#[cfg(test)]
mod tests;
