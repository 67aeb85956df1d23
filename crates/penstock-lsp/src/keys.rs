//! Where a place in an experiment file stands: in which tables, behind which key; and which keys and words may stand there.
//!
//! The file is being typed, so it need not be TOML yet: what stands before the place is read token by token.

use penstock_lab::experiment::{Form, Key, Kind, form};
use serde_json::{Value, json};

/// A step from the whole file inwards.
#[derive(Clone, PartialEq, Debug)]
enum Step {
    Key(String),
    List,
}

/// An open brace or bracket of a value: the way to what stands before it, and the keys that its table has so far.
struct Frame {
    brace: bool,
    way: Vec<Step>,
    key: Vec<String>,
    seen: Vec<String>,
}

/// A place.
#[derive(Default)]
pub(crate) struct Place {
    /// The table of the last heading.
    base: Vec<Step>,
    frames: Vec<Frame>,
    /// The key that is being written, or whose value is.
    key: Vec<String>,
    /// Keys of this table above the place.
    seen: Vec<String>,
    in_value: bool,
    /// Within a text that has no end yet.
    in_text: bool,
    in_comment: bool,
    /// Within a heading that has no end yet: what stands there so far.
    heading: Option<String>,
}

impl Place {
    /// The end of a text.
    pub(crate) fn behind(text: &str) -> Place {
        let mut place = Place::default();
        let mut left = text;
        while let Some(c) = left.chars().next() {
            left = place.token(c, left);
        }
        place
    }

    /// Takes what stands first, answers what is left.
    fn token<'t>(&mut self, c: char, text: &'t str) -> &'t str {
        let rest = &text[c.len_utf8()..];
        match c {
            '#' => {
                self.in_comment = !rest.contains('\n');
                return &rest[rest.find('\n').unwrap_or(rest.len())..];
            }
            '"' | '\'' => return self.text(c, text),
            '\n' if self.frames.is_empty() => self.next(),
            '[' if self.frames.is_empty() && !self.in_value && self.key.is_empty() => {
                return self.heading(rest);
            }
            '[' | '{' if self.in_value => self.open(c == '{'),
            ']' | '}' => self.close(c == '}'),
            ',' if self.frames.last().is_some_and(|f| f.brace) => self.next(),
            '=' => {
                self.in_value = true;
                self.seen.extend(self.key.first().cloned());
            }
            '.' | ',' => {}
            c if c.is_whitespace() => {}
            _ => {
                let bare = |c: char| c.is_alphanumeric() || "_-".contains(c);
                let end = text.find(|c| !bare(c)).unwrap_or(text.len()).max(c.len_utf8());
                self.word(&text[..end]);
                return &text[end..];
            }
        }
        rest
    }

    fn word(&mut self, word: &str) {
        if !self.in_value {
            self.key.push(word.to_owned());
        }
    }

    /// A text, of one line or of several.
    fn text<'t>(&mut self, quote: char, text: &'t str) -> &'t str {
        let long: String = [quote; 3].iter().collect();
        let (mark, escapes) = if text.starts_with(&long) { (3, quote == '"') } else { (1, quote == '"') };
        let inner = &text[mark..];
        let mut letters = inner.char_indices();
        while let Some((at, c)) = letters.next() {
            if c == '\\' && escapes {
                letters.next();
            } else if (mark == 3 && inner[at..].starts_with(&long)) || (mark == 1 && c == quote) {
                self.word(&inner[..at]);
                return &inner[at + mark..];
            } else if mark == 1 && c == '\n' {
                // It has no end on its line: not TOML yet.
                return &inner[at..];
            }
        }
        self.in_text = true;
        self.word(inner);
        ""
    }

    /// `[host.a]`, `[[link]]`.
    fn heading<'t>(&mut self, rest: &'t str) -> &'t str {
        let line = &rest[..rest.find('\n').unwrap_or(rest.len())];
        let (list, inner) = match line.strip_prefix('[') {
            Some(inner) => (true, inner),
            None => (false, line),
        };
        let Some(end) = inner.find(']') else {
            if rest.contains('\n') {
                return &rest[line.len()..];
            }
            self.heading = Some(line.to_owned());
            return "";
        };
        let mut within = Place::behind(&inner[..end]);
        self.base = std::mem::take(&mut within.key).into_iter().map(Step::Key).collect();
        if list {
            self.base.push(Step::List);
        }
        self.seen.clear();
        &rest[line.len()..]
    }

    fn next(&mut self) {
        self.key.clear();
        self.in_value = false;
    }

    /// The way to what is being written here, without its key.
    fn way(&self) -> Vec<Step> {
        self.frames.last().map_or_else(|| self.base.clone(), |f| f.way.clone())
    }

    fn open(&mut self, brace: bool) {
        let mut way = self.way();
        way.extend(self.key.iter().cloned().map(Step::Key));
        if !brace {
            way.push(Step::List);
        }
        let (key, seen) = (std::mem::take(&mut self.key), std::mem::take(&mut self.seen));
        self.frames.push(Frame { brace, way, key, seen });
        self.in_value = !brace;
    }

    fn close(&mut self, brace: bool) {
        if self.frames.last().is_some_and(|f| f.brace == brace)
            && let Some(frame) = self.frames.pop()
        {
            (self.key, self.seen, self.in_value) = (frame.key, frame.seen, true);
        }
    }

    /// The tables that this place may be in.
    fn forms(&self) -> Vec<&'static Form> {
        nodes(&self.way()).into_iter().filter_map(Node::form).collect()
    }

    /// The key whose name or value stands here.
    pub(crate) fn named(&self) -> Option<&'static Key> {
        let (last, before) = self.key.split_last()?;
        let mut way = self.way();
        way.extend(before.iter().cloned().map(Step::Key));
        nodes(&way).into_iter().filter_map(Node::form).find_map(|form| form.key(last))
    }

    /// What the key, or the heading, at this place means.
    pub(crate) fn meaning(&self) -> Option<String> {
        if self.in_comment {
            return None;
        }
        let key = self.named()?;
        let words = key.kind.words();
        let mut text = format!("**{}**: {}\n\n{}", key.name, key.kind.says(), key.doc());
        if (1..=24).contains(&words.len()) {
            text += &format!("\n\n{}", words.iter().map(|w| format!("`{w}`")).collect::<Vec<_>>().join(" "));
        }
        Some(text)
    }

    /// The keys, or words of a value, that may stand here.
    pub(crate) fn choices(&self) -> Vec<Value> {
        if self.in_comment {
            return Vec::new();
        }
        if let Some(begun) = &self.heading {
            let list = begun.starts_with('[');
            let fits = |kind: &Kind| match kind {
                Kind::List(_) => list,
                Kind::Named(_) | Kind::Table(_) => !list,
                _ => false,
            };
            return form().keys.iter().filter(|key| fits(&key.kind)).map(|key| item(key, "")).collect();
        }
        if self.in_value {
            let mut way = self.way();
            way.extend(self.key.iter().cloned().map(Step::Key));
            let words = nodes(&way).into_iter().flat_map(Node::words);
            let bare = |word: String| match self.in_text {
                true => word.trim_matches('"').to_owned(),
                false => word,
            };
            let mut all: Vec<String> = words.map(bare).collect();
            all.sort();
            all.dedup();
            return all.into_iter().map(|word| json!({ "label": word, "kind": 12 })).collect();
        }
        let forms = self.forms();
        // What is half written is the editor's to compare.
        let begun = self.key.last();
        let fresh = |key: &&Key| !self.seen.iter().any(|s| s == key.name && Some(s) != begun);
        let keys = forms.iter().flat_map(|form| form.keys.iter()).filter(fresh);
        let table = |key: &Key| matches!(key.kind, Kind::Named(_) | Kind::List(Kind::Table(_)));
        // A table of the file is begun by its heading.
        keys.filter(|key| !(self.frames.is_empty() && table(key))).map(|key| item(key, " = ")).collect()
    }
}

/// A key, for an editor.
fn item(key: &Key, behind: &str) -> Value {
    json!({
        "label": key.name, "kind": 10, "detail": key.kind.says(), "insertText": format!("{}{behind}", key.name),
        "documentation": { "kind": "markdown", "value": key.doc() },
    })
}

/// What may stand at the end of a way.
#[derive(Clone, Copy)]
enum Node {
    Kind(&'static Kind),
    /// A table.
    Form(&'static Form),
    /// Tables under names.
    Named(&'static Form),
}

impl Node {
    fn form(self) -> Option<&'static Form> {
        match self {
            Node::Form(form) => Some(form),
            _ => None,
        }
    }
    fn words(self) -> Vec<String> {
        match self {
            Node::Kind(kind) => kind.words(),
            _ => Vec::new(),
        }
    }
}

/// A kind as what it may be.
fn opened(kind: &'static Kind, out: &mut Vec<Node>) {
    match kind {
        Kind::Table(form) => out.push(Node::Form(form)),
        Kind::Named(form) => out.push(Node::Named(form)),
        Kind::Any(kinds) => kinds.iter().for_each(|kind| opened(kind, out)),
        Kind::Few(one) => {
            out.push(Node::Kind(kind));
            if matches!(one, Kind::Table(_) | Kind::Any(_)) {
                opened(one, out);
            }
        }
        other => out.push(Node::Kind(other)),
    }
}

fn nodes(way: &[Step]) -> Vec<Node> {
    let mut here = vec![Node::Form(form())];
    for step in way {
        let mut next = Vec::new();
        for node in here {
            match (step, node) {
                (Step::Key(name), Node::Form(form)) => {
                    if let Some(kind) = form.key(name).map(|key| &key.kind).or(form.others) {
                        opened(kind, &mut next);
                    }
                }
                (Step::Key(_), Node::Named(form)) => next.push(Node::Form(form)),
                (Step::List, Node::Kind(Kind::List(kind) | Kind::Few(kind))) => opened(kind, &mut next),
                _ => {}
            }
        }
        here = next;
    }
    here
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<String> {
        let all = Place::behind(text).choices();
        all.iter().map(|one| one["label"].as_str().unwrap().to_owned()).collect()
    }
    fn key(text: &str) -> Option<&'static str> {
        Place::behind(text).named().map(|key| key.name)
    }

    #[test]
    fn keys_of_the_table_that_one_stands_in() {
        let has = |text: &str, word: &str| {
            let labels = labels(text);
            assert!(labels.iter().any(|l| l == word), "{word} behind {text:?}: {labels:?}");
        };
        let not = |text: &str, word: &str| {
            let labels = labels(text);
            assert!(!labels.iter().any(|l| l == word), "{word} behind {text:?}: {labels:?}");
        };
        has("", "duration");
        not("", "link");
        has("[", "host");
        has("[[", "link");
        not("[[", "host");
        has("[host.a]\n", "setup");
        not("[host.a]\nsetup = \"x\"\n", "setup");
        has("[host.a]\neth0 = { ", "mtu");
        has("[host.a]\ncost = { pause = { ", "lasts");
        has("[host.a]\ncost = { packet = { ", "deviation");
        has("[[link]]\n", "framing");
        has("[[link]]\nends = [\"a:eth0\", { end = \"b:eth0\", ", "ring");
        has("[[link]]\nrate = { ", "trace");
        not("[[link]]\ndelay = { ", "trace");
        has("[[link]]\nrate = [{ ", "value");
        has("[[flow]]\ntcp = { cc = \"reno\", ", "mss");
        has("[[flow]]\ntcp = { cc = \"reno\" }\n", "load");
        has("[[flow]]\nload = { size = { ", "shape");
        has("[sweep]\n", "seeds");
        // Words of values.
        has("[[flow]]\ntcp = { cc = ", "\"bbr\"");
        has("[[flow]]\ntcp = { cc = \"", "bbr");
        has("kernel = ", "\"2.2\"");
        has("[[meter]]\ndscp = [\"", "AF11");
        has("[[flow]]\nudp = ", "true");
        // Text and comments hold no keys, whatever stands in them.
        has("[host.a]\nsetup = \"\"\"\n[[flow]]\ntcp = {\n\"\"\"\n", "via");
        has("[host.a] # [[flow]]\n# x = {\n", "via");
        assert!(labels("[host.a]\n# ").is_empty());
    }

    #[test]
    fn what_a_key_means() {
        assert_eq!(key("[[link]]\nrate"), Some("rate"));
        assert_eq!(key("[[link]]\nrate = \"10m"), Some("rate"));
        assert_eq!(key("[[flow]]\ntcp = { min_rto = \"2"), Some("min_rto"));
        assert_eq!(key("host.a.via = "), Some("via"));
        assert_eq!(key("[host.a]\neth0"), None);
        let said = Place::behind("[[link]]\nframing").meaning().unwrap();
        assert!(said.contains("Default: `\"ethernet\"`") && said.contains("`\"atm\"`"), "{said}");
        assert_eq!(Place::behind("[host.a] # via").meaning(), None);
    }

    #[test]
    fn any_text_is_borne() {
        let text =
            "[[link]]\nends = [\"a:eth0\", { end = 'é', ]}{\"\"\"\\\n]] = = [[[ é.é,\u{1f600} { [ # x\n}";
        for (at, _) in text.char_indices() {
            let place = Place::behind(&text[..at]);
            drop((place.choices(), place.meaning()));
        }
    }
}
