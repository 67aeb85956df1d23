//! The device, its qdiscs and classes: everything a dump has.

use super::{changed, said};
use crate::explain::promise;
use crate::facts::{Class, Device, Facts, Qdisc, rate};
use penstock_lang::tc::{kinds, say};
use penstock_model::{Handle, Kernel, Options};
use penstock_sched::sch;
use penstock_sched::traits::Classes;
use std::collections::BTreeSet;

/// What differs, a line each.
pub fn state(a: &Facts, b: &Facts, one: &Device, two: &Device) -> Vec<String> {
    let mut out = Vec::new();
    let name = &one.name;
    let mut word = |what: &str, old: String, new: String| {
        if old != new {
            out.push(format!("{name}: {what} {old} -> {what} {new}"));
        }
    };
    word("mtu", one.mtu.to_string(), two.mtu.to_string());
    word("txqueuelen", one.txqueuelen.to_string(), two.txqueuelen.to_string());
    word("kind", one.kind.to_owned(), two.kind.to_owned());
    let master = |d: &Device| d.master.clone().unwrap_or_else(|| "none".to_owned());
    word("master", master(one), master(two));

    let parents: BTreeSet<Handle> = one.qdiscs.iter().chain(&two.qdiscs).map(|q| q.parent).collect();
    for parent in parents {
        out.extend(qdisc((a, one), (b, two), parent));
    }
    let ids: BTreeSet<Handle> = one.by_id.keys().chain(two.by_id.keys()).copied().collect();
    for id in ids {
        out.extend(class((a, one), (b, two), id));
    }
    let wait = |d: &Device| promise::root(d, None).map(|w| w.ns.div_ceil(1_000_000));
    if let (Some(x), Some(y)) = (wait(one), wait(two))
        && x != y
    {
        out.push(format!("root: waits at most {x} ms -> {y} ms"));
    }
    out
}

fn place(parent: Handle) -> String {
    match parent {
        Handle::ROOT => "root".to_owned(),
        Handle::INGRESS => "ingress".to_owned(),
        Handle::UNSPEC => "default".to_owned(),
        id => format!("queue of {id}"),
    }
}

/// The words that make it, kind first.
fn words(q: &Qdisc, kernel: Kernel) -> (Vec<String>, bool) {
    let mut words = Vec::new();
    if let Some(stab) = q.options.nested("stab") {
        words.extend(say::words(&say::stab(stab)));
    }
    let made = say::qdisc(q.kind, &q.options, kernel);
    words.extend(say::words(&made.add));
    words.extend(made.then.iter().flat_map(|t| say::words(t)));
    (words, !made.lacking.is_empty())
}

/// What the script asked for, where the dump does not tell all of it.
fn asked(facts: &Facts, step: Option<usize>) -> Option<Options> {
    use penstock_lang::tc::Command;
    match facts.steps.get(step?)?.tc()? {
        Command::Qdisc { req, .. } => req.options.clone(),
        Command::Class { req, .. } => req.options.clone(),
        _ => None,
    }
}

/// Words that change what a kind does and that no dump tells: RED's table for idle times, HTB's cells, a plug's room, taprio's frames.
const UNTOLD: [(&str, &[&str]); 7] = [
    ("choke", &["avpkt", "bandwidth"]),
    ("gred", &["avpkt", "bandwidth"]),
    ("htb", &["mtu"]),
    ("plug", &["limit"]),
    ("red", &["avpkt", "bandwidth"]),
    ("sfq", &["avpkt", "redflowlimit"]),
    ("taprio", &["max-sdu"]),
];

/// What the commands that made both say in words that no dump tells.
fn untold(kind: &str, a: (&Facts, Option<usize>), b: (&Facts, Option<usize>)) -> Option<(String, String)> {
    let (_, words) = UNTOLD.iter().find(|(k, _)| *k == kind)?;
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for word in *words {
        let value = |(facts, step): (&Facts, Option<usize>)| {
            let own = step.and_then(|s| facts.steps.get(s));
            // Of gred each virtual queue has a command of its own.
            let others = facts.steps.iter().filter(|s| kind == "gred" && s.ok() && s.has(kind));
            let steps = own.filter(|_| kind != "gred").into_iter().chain(others);
            let values: Vec<String> =
                steps.filter_map(|s| Some(format!("{word} {}", s.value(&[word])?))).collect();
            if values.is_empty() { format!("no {word}") } else { values.join(" ") }
        };
        if value(a) != value(b) {
            old.push(value(a));
            new.push(value(b));
        }
    }
    (!old.is_empty()).then(|| (old.join(" "), new.join(" ")))
}

/// The queue a class has where nobody gives it one, and the qdisc a device has.
fn plain(device: &Device, parent: Handle) -> Option<Qdisc> {
    device.class(parent)?;
    let options = Options::new().with("limit", device.txqueuelen.max(1));
    Some(Qdisc { kind: "pfifo", handle: Handle::UNSPEC, parent, options, step: None })
}

fn qdisc((a, one): (&Facts, &Device), (b, two): (&Facts, &Device), parent: Handle) -> Option<String> {
    let find =
        |d: &Device| d.qdiscs.iter().find(|q| q.parent == parent).cloned().or_else(|| plain(d, parent));
    let text = |q: &Qdisc, kernel| [vec![q.kind.to_owned()], words(q, kernel).0].concat().join(" ");
    let place = place(parent);
    let (x, y) = match (find(one), find(two)) {
        (Some(x), Some(y)) => (x, y),
        // With its class: that is said of the class.
        (x, y) if two.class(parent).is_none() || one.class(parent).is_none() => {
            if one.class(parent).is_some() || two.class(parent).is_some() {
                return None;
            }
            let old = x.map_or("none".to_owned(), |x| text(&x, a.kernel));
            let new = y.map_or("none".to_owned(), |y| text(&y, b.kernel));
            return (old != new).then(|| format!("{place}: {old} -> {new}"));
        }
        _ => return None,
    };
    if x.kind != y.kind {
        return Some(format!("{place}: {} -> {}", text(&x, a.kernel), text(&y, b.kernel)));
    }
    // A handle that somebody chose is a name that others use.
    let named = |q: &Qdisc| (q.handle.major() < 0x8000).then_some(q.handle);
    let begins = |word: &str| {
        word == "stab" || kinds::find(x.kind).is_some_and(|k| k.words().iter().any(|w| w.word == word))
    };
    let (old, new) = (words(&x, a.kernel), words(&y, b.kernel));
    let lacking = old.1 || new.1;
    if x.options != y.options
        && let Some(both) = said(&old.0, &new.0, &begins).or_else(|| changed(&x.options, &y.options))
    {
        return Some(format!("{place}: {} -> {}", both.0, both.1));
    }
    if named(&x) != named(&y) && x.handle != Handle::UNSPEC && y.handle != Handle::UNSPEC {
        return Some(format!("{place}: handle {} -> handle {}", x.handle, y.handle));
    }
    let none = Options::new();
    let (p, q) = (asked(a, x.step).filter(|_| lacking), asked(b, y.step).filter(|_| lacking));
    let both = changed(p.as_ref().unwrap_or(&none), q.as_ref().unwrap_or(&none))
        .or_else(|| untold(x.kind, (a, x.step), (b, y.step)))?;
    Some(format!("{place}: {} -> {}", both.0, both.1))
}

fn class((a, one): (&Facts, &Device), (b, two): (&Facts, &Device), id: Handle) -> Vec<String> {
    let made = |c: &Class| sch::traits(c.kind).classes == Classes::Made;
    let (x, y) = match (one.class(id), two.class(id)) {
        (Some(x), Some(y)) => (x, y),
        (Some(x), None) if made(x) => return vec![format!("class {id}: gone")],
        (None, Some(y)) if made(y) => return vec![format!("class {id}: new")],
        _ => return Vec::new(),
    };
    if x.kind != y.kind {
        return vec![format!("class {id}: {} -> {}", x.kind, y.kind)];
    }
    let mut out = Vec::new();
    if x.parent != y.parent {
        out.push(format!("class {id}: parent {} -> parent {}", x.parent, y.parent));
    }
    let words = |c: &Class, kernel| say::words(&say::class(c.kind, &c.options, 0, kernel).add);
    let begins =
        |word: &str| kinds::find(x.kind).is_some_and(|k| k.class_words().iter().any(|w| w.word == word));
    if x.options != y.options {
        let in_words = said(&words(x, a.kernel), &words(y, b.kernel), &begins);
        let in_words = match x.kind {
            // Rate and ceiling together: what one of them is says little.
            "htb" if (x.rate(), x.ceil()) != (y.rate(), y.ceil()) => {
                let both = |c: &Class| format!("rate {} ceil {}", rate(c.rate()), rate(c.ceil()));
                out.push(format!("class {id}: {} -> {}", both(x), both(y)));
                in_words.and_then(|_| said(&rest(x, a, b, y), &rest(y, b, a, x), &begins))
            }
            _ => in_words.or_else(|| changed(&x.options, &y.options)),
        };
        out.extend(in_words.map(|both| format!("class {id}: {} -> {}", both.0, both.1)));
    } else if let Some(both) = untold(x.kind, (a, x.step), (b, y.step)) {
        out.push(format!("class {id}: {} -> {}", both.0, both.1));
    }
    let wait = |d: &Device, c| promise::wait(d, c, None).map(|w| w.ns.div_ceil(1_000_000));
    if let (Some(x), Some(y)) = (wait(one, x), wait(two, y))
        && x != y
    {
        out.push(format!("class {id}: waits at most {x} ms -> {y} ms"));
    }
    out
}

/// The words of a class of htb but for rate and ceiling, and but for what follows them where no command gives it.
fn rest(class: &Class, facts: &Facts, others: &Facts, other: &Class) -> Vec<String> {
    let words = say::words(&say::class(class.kind, &class.options, 0, facts.kernel).add);
    let given = |facts: &Facts, class: &Class, word: &str| {
        class.step.and_then(|s| facts.steps.get(s)).is_none_or(|s| s.has(word))
    };
    let follows = |word: &str| !given(facts, class, word) && !given(others, other, word);
    let mut out = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "rate" | "ceil" => drop(words.next()),
            "burst" | "cburst" | "quantum" if follows(&word) => drop(words.next()),
            _ => out.push(word),
        }
    }
    out
}
