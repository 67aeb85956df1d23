//! Which words made a qdisc or a class that was shown: tried on a scratch machine, which must show the same.
//!
//! A kind's table names its words. A value is written as the text had it, or as one of the ways tc takes a number that JSON holds. Of all the
//! commands tried the one stays whose showing differs least.

use super::{Made, Shown};
use penstock_lang::tc::kinds::{KINDS, OptionWord};
use serde_json::Value;

/// Tries for one object.
const TRIES: usize = 400;

/// Adds a qdisc that was shown.
pub(super) fn qdisc(shown: &Shown, made: &mut Made) {
    // What every device has by itself: no handle.
    if shown.handle == "0:" || matches!(shown.kind.as_str(), "noqueue" | "noop") {
        return;
    }
    let mut start: Vec<String> = ["tc", "qdisc", "add", "dev", &shown.dev].map(str::to_owned).to_vec();
    let takes_place = !matches!(shown.kind.as_str(), "ingress" | "clsact");
    if takes_place {
        start.extend(shown.place.iter().cloned());
        start.extend(["handle".to_owned(), shown.handle.clone()]);
    }
    start.push(shown.kind.clone());
    let mut undo: Vec<String> = ["tc", "qdisc", "del", "dev", &shown.dev].map(str::to_owned).to_vec();
    undo.extend(shown.place.iter().cloned());
    let table = KINDS.iter().find(|k| k.id == shown.kind).map_or(&[][..], |k| k.words());
    settle(shown, "qdisc", table, &start, &undo, made);
}

/// Adds a class that was shown, once.
pub(super) fn class(shown: &Shown, made: &mut Made) {
    let there = made.show(&format!("tc class show dev {}", shown.dev));
    if there.lines().any(|l| l.split_whitespace().nth(2) == Some(shown.handle.as_str())) {
        return;
    }
    let major = super::major(&shown.handle);
    let parent = match shown.place.as_slice() {
        [word, parent] if word == "parent" => parent.clone(),
        _ => format!("{major}:"),
    };
    let mut start: Vec<String> = ["tc", "class", "add", "dev", &shown.dev].map(str::to_owned).to_vec();
    start.extend([
        "parent".to_owned(),
        parent,
        "classid".to_owned(),
        shown.handle.clone(),
        shown.kind.clone(),
    ]);
    let undo =
        ["tc", "class", "del", "dev", &shown.dev, "classid", &shown.handle].map(str::to_owned).to_vec();
    let table = KINDS.iter().find(|k| k.id == shown.kind).map_or(&[][..], |k| k.class_words());
    settle(shown, "class", table, &start, &undo, made);
}

/// A word that may stand in the command, and the ways its value may be written.
struct Slot {
    word: &'static str,
    /// Empty: the word stands alone.
    ways: Vec<String>,
    /// The way taken, from 1; 0: left out.
    taken: usize,
}

impl Slot {
    fn count(&self) -> usize {
        self.ways.len().max(1)
    }
}

fn settle(
    shown: &Shown,
    object: &'static str,
    table: &'static [OptionWord],
    start: &[String],
    undo: &[String],
    made: &mut Made,
) {
    let mut slots: Vec<Slot> = table.iter().filter_map(|o| slot(o, shown)).collect();
    let mut tries = 0;
    let mut judge = |slots: &[Slot], made: &mut Made| {
        tries += 1;
        if tries > TRIES {
            return i64::MIN;
        }
        let words = command(start, slots);
        if made.exec(&words) != 0 {
            return i64::MIN + 1;
        }
        let score = likeness(shown, object, made);
        made.exec(undo);
        score
    };
    let mut best = judge(&slots, made);
    for _ in 0..3 {
        let before = best;
        for i in 0..slots.len() {
            let mut choice = slots[i].taken;
            for way in 0..=slots[i].count() {
                slots[i].taken = way;
                let now = judge(&slots, made);
                if now > best {
                    (best, choice) = (now, way);
                }
            }
            slots[i].taken = choice;
        }
        if best == before {
            break;
        }
    }
    // What changes nothing goes.
    for i in 0..slots.len() {
        let kept = std::mem::take(&mut slots[i].taken);
        if kept > 0 && judge(&slots, made) < best {
            slots[i].taken = kept;
        }
    }
    let words = command(start, &slots);
    let what = format!("{object} {} {} of {}", shown.kind, shown.handle, shown.dev);
    if made.exec(&words) != 0 {
        made.note(format!("{what}: no words were found that make it"));
        return;
    }
    made.keep(&words);
    made.kept.push((object, shown.clone()));
}

/// Notes what is shown otherwise than it was, now that all is there.
pub(super) fn compare(made: &mut Made) {
    for (object, shown) in std::mem::take(&mut made.kept) {
        if likeness(&shown, object, made) < 0 {
            made.note(format!(
                "{object} {} {} of {}: shown otherwise than it was",
                shown.kind, shown.handle, shown.dev
            ));
        }
    }
}

fn command(start: &[String], slots: &[Slot]) -> Vec<String> {
    let mut words = start.to_vec();
    for slot in slots.iter().filter(|s| s.taken > 0) {
        words.push(slot.word.to_owned());
        words.extend(slot.ways.get(slot.taken - 1).into_iter().flat_map(|w| w.split(' ')).map(str::to_owned));
    }
    words
}

/// 0: shown as it was. Less: so many parts differ.
fn likeness(shown: &Shown, object: &str, made: &mut Made) -> i64 {
    let differ = |a: &[String], b: &[String]| {
        let missing = |a: &[String], b: &[String]| a.iter().filter(|w| !b.contains(w)).count() as i64;
        missing(a, b) + missing(b, a)
    };
    match &shown.json {
        Some(want) => {
            let text = made.show(&format!("tc -j {object} show dev {}", shown.dev));
            let Ok(Value::Array(all)) = serde_json::from_str(&text) else { return -1000 };
            let found =
                all.iter().find(|o| o.get("handle").and_then(Value::as_str) == Some(shown.handle.as_str()));
            let Some(found) = found else { return -1000 };
            let options = found.get("options").unwrap_or(found);
            let parts = |v: &Value| {
                let entries = v.as_object().into_iter().flatten();
                entries.map(|(k, v)| format!("{k} {v}")).collect::<Vec<_>>()
            };
            let got: Vec<String> = parts(options).into_iter().filter(|p| parts_count(p)).collect();
            let want: Vec<String> = parts(want).into_iter().filter(|p| parts_count(p)).collect();
            -differ(&want, &got)
        }
        None => {
            let text = made.show(&format!("tc {object} show dev {}", shown.dev));
            let start = format!("{object} ");
            let named = super::Text { dev: Some(shown.dev.clone()), ..super::Text::default() };
            let all = super::objects(&text, &start);
            let found =
                all.iter().filter_map(|l| super::words_of(l, &named)).find(|s| s.handle == shown.handle);
            found.map_or(-1000, |found| -differ(&shown.words, &found.words))
        }
    }
}

/// Whether a part of JSON says how the object was made: not where it stands, not what it has counted.
fn parts_count(part: &str) -> bool {
    const OTHERS: &[&str] = &[
        "class ",
        "kind ",
        "handle ",
        "root ",
        "parent ",
        "leaf ",
        "dev ",
        "refcnt ",
        "stats ",
        "options ",
        "direct_packets_stat ",
    ];
    !OTHERS.iter().any(|o| part.starts_with(o))
}

/// The names a word's value is shown under.
fn shown_as(word: &str) -> Vec<&str> {
    match word {
        "latency" => vec!["latency", "lat"],
        "burst" => vec!["burst", "buffer"],
        "mtu" => vec!["mtu", "minburst"],
        word => vec![word],
    }
}

fn slot(option: &OptionWord, shown: &Shown) -> Option<Slot> {
    let names = shown_as(option.word);
    let mut ways = Vec::new();
    let mut there = false;
    if let Some(value) = shown.json.as_ref().and_then(|j| names.iter().find_map(|n| j.get(*n))) {
        there = value != &Value::Bool(false);
        ways.extend(spellings(value));
    }
    if let Some(at) = shown.words.iter().position(|w| names.contains(&w.as_str())) {
        there = true;
        let rest: Vec<&str> = shown.words[at + 1..].iter().map(String::as_str).collect();
        if let Some(first) = rest.first() {
            // tc prints units here that it does not read: `limit 127p`, `perturb 10sec`.
            let printed = ["p", "sec", "b"].iter().find_map(|unit| first.strip_suffix(unit));
            ways.extend(printed.filter(|p| p.bytes().all(|b| b.is_ascii_digit())).map(str::to_owned));
            ways.push((*first).to_owned());
            ways.push(first.split('/').next().unwrap_or_default().to_owned());
            ways.push(first.trim_end_matches(char::is_alphabetic).to_owned());
            ways.push(first.trim_start_matches("0x").to_owned());
        }
        // A list, as far as numbers go.
        let list: Vec<&str> =
            rest.iter().copied().take_while(|w| w.starts_with(|c: char| c.is_ascii_digit())).collect();
        if list.len() > 1 {
            ways.push(list.join(" "));
        }
    }
    if option.value.is_empty() {
        return Some(Slot { word: option.word, ways: Vec::new(), taken: usize::from(there) });
    }
    ways.retain(|w| !w.is_empty());
    let taken = usize::from(!ways.is_empty());
    (taken > 0).then_some(Slot { word: option.word, ways, taken })
}

/// The ways tc may want a value of JSON written.
fn spellings(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone(), text.trim_start_matches("0x").to_owned()],
        Value::Number(number) => {
            let mut ways = vec![number.to_string()];
            if let Some(n) = number.as_u64() {
                ways.extend([
                    format!("{n}us"),
                    format!("{n}b"),
                    format!("{}bit", u128::from(n) * 8),
                    format!("{n}ns"),
                    format!("{n:x}"),
                ]);
            }
            if let Some(x) = number.as_f64() {
                ways.push(format!("{}%", x * 100.0));
                ways.push(format!("{:.0}us", x * 1e6));
            }
            ways
        }
        Value::Array(list) => vec![
            list.iter()
                .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
                .collect::<Vec<_>>()
                .join(" "),
        ],
        _ => Vec::new(),
    }
}
