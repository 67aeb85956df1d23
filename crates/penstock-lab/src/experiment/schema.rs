//! The JSON schema of experiment files (draft 7, which editors of TOML read), made from the forms.
//!
//! It takes all that the reader takes. What only the whole can tell (names that mean something, keys that go together) is the reader's.

use super::form::{Form, Key, Kind};
use super::forms;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A number as tc reads it.
const NUMBER: &str = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?";
/// A text that a template completes.
const TEMPLATE: &str = r"[^{]*\{.*\}.*";

/// The form of the whole file.
pub fn form() -> &'static Form {
    &forms::EXPERIMENT
}

/// The schema.
pub fn schema() -> Value {
    let mut all = BTreeMap::new();
    collect(&forms::EXPERIMENT, &mut all);
    let definitions: Map<String, Value> =
        all.iter().map(|(name, form)| ((*name).to_owned(), table(form))).collect();
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://github.com/penstock/penstock/raw/main/docs/experiment.schema.json",
        "title": "Penstock's experiment file",
        "$ref": "#/definitions/experiment",
        "definitions": definitions,
    })
}

/// All forms that a form leads to.
fn collect(form: &'static Form, all: &mut BTreeMap<&'static str, &'static Form>) {
    if all.insert(form.name, form).is_some() {
        return;
    }
    let kinds = form.keys.iter().map(|k| &k.kind).chain(form.others);
    for kind in kinds {
        within(kind, all);
    }
}

fn within(kind: &'static Kind, all: &mut BTreeMap<&'static str, &'static Form>) {
    match kind {
        Kind::Table(form) | Kind::Named(form) => collect(form, all),
        Kind::List(kind) | Kind::Few(kind) => within(kind, all),
        Kind::Any(kinds) => kinds.iter().for_each(|kind| within(kind, all)),
        _ => {}
    }
}

/// A table's schema.
fn table(form: &Form) -> Value {
    let properties: Map<String, Value> =
        form.keys.iter().map(|key| (key.name.to_owned(), property(key))).collect();
    let needed: Vec<&str> = form.keys.iter().filter(|k| k.needed).map(|k| k.name).collect();
    let mut made = json!({
        "type": "object",
        "description": form.about,
        "properties": properties,
        "additionalProperties": form.others.map_or(Value::Bool(false), value),
    });
    if !needed.is_empty() {
        made["required"] = json!(needed);
    }
    made
}

/// A key's schema: what may stand there, with what it means.
fn property(key: &Key) -> Value {
    let made = value(&key.kind);
    // In draft 7 nothing counts beside a reference.
    let mut made = if made.get("$ref").is_some() { json!({ "allOf": [made] }) } else { made };
    made["description"] = json!(key.doc());
    for (name, text) in [("default", key.default), ("examples", key.example)] {
        if let Some(read) = text.and_then(literal) {
            made[name] = if name == "examples" { json!([read]) } else { read };
        }
    }
    made
}

/// A value of TOML.
fn literal(text: &str) -> Option<Value> {
    let table: toml::Table = toml::from_str(&format!("it = {text}")).ok()?;
    serde_json::to_value(table.get("it")?).ok()
}

/// Text of a pattern, or of a template.
fn text(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^({pattern}|{TEMPLATE})$") })
}

/// A word with its letters however they are written.
fn any_case(word: &str) -> String {
    word.chars().map(|c| format!("[{}{}]", c.to_ascii_uppercase(), c.to_ascii_lowercase())).collect()
}

/// Each of the words with its letters however they are written.
fn units(words: &[&str]) -> String {
    words.iter().map(|w| any_case(w)).collect::<Vec<_>>().join("|")
}

fn any(all: impl IntoIterator<Item = Value>) -> Value {
    json!({ "anyOf": all.into_iter().collect::<Vec<_>>() })
}

/// What may stand there.
fn value(kind: &Kind) -> Value {
    let size = || {
        let units = units(&["b", "kb?", "mb?", "gb?", "kbit", "mbit", "gbit"]);
        text(&format!(r"{NUMBER}({units})?").replace("[??]", "?"))
    };
    let time = || {
        let units =
            units(&["s", "secs?", "ms", "msecs?", "us", "usecs?", "ns", "nsecs?"]).replace("[??]", "?");
        text(&format!(r"{NUMBER}({units})|0+\.?0*"))
    };
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Yes => json!({ "const": true }),
        Kind::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Kind::Number => json!({ "type": "number" }),
        Kind::Figure => any([json!({ "type": "number" }), text(NUMBER)]),
        Kind::Share => any([json!({ "type": "number" }), text(&format!("{NUMBER}%?"))]),
        Kind::Rate => {
            // tc's bps are bytes; with a capital before them, bits were meant.
            let bits = units(&["bit", "bps"]);
            text(&format!("{NUMBER}([KMGTkmgt]?[iI]?({bits}))"))
        }
        Kind::Time => any([time(), json!({ "const": 0 })]),
        Kind::TimeText => time(),
        Kind::ByteTime => text(&format!("{NUMBER}(us|ns|ps)")),
        Kind::Size => any([size(), json!({ "type": "number", "minimum": 0 })]),
        Kind::SizeText => size(),
        Kind::Chance => {
            let power = r"\+?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+";
            let percent = r"\+?(0*[0-9]{1,2}(\.[0-9]*)?|\.[0-9]+|0*100(\.0*)?)";
            let share = r"\+?(0*\.[0-9]+|0+\.?|0*1(\.0*)?)";
            let all = format!("({percent}|{power})%|{share}|{power}");
            any([text(&all), json!({ "type": "number", "minimum": 0, "maximum": 1 })])
        }
        Kind::Words(words) => json!({ "enum": words() }),
        Kind::Kernel => {
            let names = super::host::kernels();
            let bare = names.iter().filter_map(|name| name.parse::<f64>().ok()).map(Value::from);
            let all: Vec<Value> = names.iter().map(|name| Value::from(*name)).chain(bare).collect();
            json!({ "enum": all })
        }
        Kind::CodePoint => {
            let names: Vec<&str> = penstock_packet::dscp::names().collect();
            let any_way = format!("{}|[0-9]+|0[xX][0-9a-fA-F]+", units(&names));
            any([
                json!({ "enum": names }),
                text(&any_way),
                json!({ "type": "integer", "minimum": 0, "maximum": 63 }),
            ])
        }
        Kind::Prefix => text(r"[0-9a-fA-F.:]+/[0-9]+"),
        Kind::Address => text(r"[0-9a-fA-F.:]+"),
        Kind::End => text(r"[^:]+:.+"),
        Kind::File => text("@.+"),
        Kind::Variable => json!({ "type": ["string", "number"] }),
        Kind::Anything => Value::Bool(true),
        Kind::List(kind) => json!({ "type": "array", "items": value(kind) }),
        Kind::Few(kind) => any([value(kind), json!({ "type": "array", "items": value(kind) })]),
        Kind::Table(form) => json!({ "$ref": format!("#/definitions/{}", form.name) }),
        Kind::Named(form) => {
            let one = json!({ "$ref": format!("#/definitions/{}", form.name) });
            json!({ "type": "object", "additionalProperties": one })
        }
        Kind::Any(kinds) => any(kinds.iter().map(value)),
    }
}
