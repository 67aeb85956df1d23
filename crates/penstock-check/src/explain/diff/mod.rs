//! Two scripts side by side: which traffic lands elsewhere, and every parameter that is not the same.
//!
//! Nothing is left out by construction: qdiscs and classes are compared by all that a dump has of them, filters and rules by all that
//! was asked for. Only filters and rules whose whole effect is known as sets of packets are compared by that effect instead.

mod filters;
mod rules;
mod state;
mod traffic;

use crate::facts::{Device, Facts};
use penstock_model::Options;

/// What differs on a device between two scripts, a line each (`what: before -> after`); nothing where nothing does.
///
/// Devices to which filters send packets are compared too, with their names before their lines.
///
/// # Errors
/// Neither of the two puts a qdisc on the device.
pub fn diff(a: &Facts, b: &Facts, dev: &str) -> Result<Vec<String>, String> {
    let (a, b) = (a.having(dev), b.having(dev));
    let mut said = one(a, b, dev)?;
    let mut known = vec![dev.to_owned()];
    let mut at = 0;
    while at < known.len() {
        for facts in [a, b] {
            for next in shaped(facts, &known[at]).map(reached).unwrap_or_default() {
                if known.contains(&next) {
                    continue;
                }
                // A device without queues of its own only passes packets on.
                if let Ok(more) = one(a, b, &next) {
                    said.extend(more.into_iter().map(|line| format!("{next}: {line}")));
                }
                known.push(next);
            }
        }
        at += 1;
    }
    said.extend(rules::rules(a, b));
    said.dedup();
    Ok(said)
}

/// The device as a script leaves it, where it puts any qdisc on it.
fn shaped<'a>(facts: &'a Facts, dev: &str) -> Option<&'a Device> {
    facts.shaped().filter(|d| d.name == dev).last()
}

/// The devices to which filters of one send packets.
fn reached(device: &Device) -> Vec<String> {
    let actions = device.filters.iter().flat_map(|f| f.actions());
    let mut all: Vec<String> = actions
        .filter(|(kind, _)| *kind == "mirred")
        .filter_map(|(_, o)| o.str("dev").map(str::to_owned))
        .collect();
    all.sort();
    all.dedup();
    all
}

fn one(a: &Facts, b: &Facts, dev: &str) -> Result<Vec<String>, String> {
    let (one, two) = match (shaped(a, dev), shaped(b, dev)) {
        (Some(one), Some(two)) => (one, two),
        (None, None) => return Err(format!("neither puts a qdisc on {dev}")),
        (None, Some(_)) => {
            return Ok(vec![format!("{dev}: {} puts no qdisc on it, {} does", a.name, b.name)]);
        }
        (Some(_), None) => {
            return Ok(vec![format!("{dev}: {} puts no qdisc on it, {} does", b.name, a.name)]);
        }
    };
    let (mut said, marks) = filters::filters(a, b, one, two);
    let mut traffic = traffic::traffic(a, b, dev, &marks)?;
    traffic.append(&mut said);
    traffic.extend(state::state(a, b, one, two));
    Ok(traffic)
}

/// Options as tc names them, with their values, one a line; those within others behind the outer one's name.
fn flat(o: &Options, before: &str, out: &mut Vec<(String, String)>) {
    use penstock_model::Value;
    for (name, value) in o.iter() {
        let name = format!("{before}{name}");
        match value {
            Value::Nested(inner) => flat(inner, &format!("{name} "), out),
            Value::List(list) => {
                for (n, inner) in list.iter().enumerate() {
                    flat(inner, &format!("{name} {n} "), out);
                }
                out.push((name, format!("{} entries", list.len())));
            }
            Value::Flag => out.push((name, "on".to_owned())),
            Value::U32(n) => out.push((name, n.to_string())),
            Value::U64(n) => out.push((name, n.to_string())),
            Value::I64(n) => out.push((name, n.to_string())),
            Value::Str(text) => out.push((name, text.clone())),
            Value::Bytes(bytes) => {
                let all: Vec<String> = bytes.iter().map(u8::to_string).collect();
                out.push((name, all.join(" ")));
            }
        }
    }
}

/// What of two lists of options is not the same, in words; `none` where one side has nothing of it.
fn changed(old: &Options, new: &Options) -> Option<(String, String)> {
    let (mut one, mut two) = (Vec::new(), Vec::new());
    flat(old, "", &mut one);
    flat(new, "", &mut two);
    let only = |a: &[(String, String)], b: &[(String, String)]| {
        let all: Vec<String> =
            a.iter().filter(|e| !b.contains(e)).map(|(name, value)| format!("{name} {value}")).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(" ") }
    };
    let both = (only(&one, &two), only(&two, &one));
    (both.0 != both.1).then_some(both)
}

/// Words in pieces that begin with a known one; the same of both is left out. `None` where all is the same.
fn said(old: &[String], new: &[String], begins: &dyn Fn(&str) -> bool) -> Option<(String, String)> {
    let pieces = |words: &[String]| {
        let mut out: Vec<String> = Vec::new();
        for word in words {
            match out.last_mut() {
                Some(last) if !begins(word) => *last += &format!(" {word}"),
                _ => out.push(word.clone()),
            }
        }
        out
    };
    let (one, two) = (pieces(old), pieces(new));
    // What stands twice counts twice.
    let only = |a: &[String], b: &[String]| {
        let mut rest = b.to_vec();
        let all: Vec<String> = a
            .iter()
            .filter(|piece| match rest.iter().position(|r| r == *piece) {
                Some(at) => {
                    rest.remove(at);
                    false
                }
                None => true,
            })
            .cloned()
            .collect();
        if all.is_empty() { "none".to_owned() } else { all.join(" ") }
    };
    let both = (only(&one, &two), only(&two, &one));
    (both.0 != both.1).then_some(both)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn pieces_that_are_the_same_are_left_out() {
        let begins = |w: &str| matches!(w, "rate" | "burst" | "priomap" | "ecn");
        let of = |a: &str, b: &str| said(&words(a), &words(b), &begins);
        let both = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(of("rate 1mbit burst 10k", "rate 2mbit burst 10k"), both("rate 1mbit", "rate 2mbit"));
        assert_eq!(of("rate 1mbit", "rate 1mbit ecn"), both("none", "ecn"));
        assert_eq!(of("priomap 1 2 2", "priomap 1 2 1"), both("priomap 1 2 2", "priomap 1 2 1"));
        assert_eq!(of("rate 1mbit ecn", "rate 1mbit ecn"), None);
    }

    #[test]
    fn values_within_values_are_seen() {
        let inner = |n: u32| {
            Options::new().with("curve", penstock_model::Value::Nested(Options::new().with("m2", n)))
        };
        assert_eq!(changed(&inner(1), &inner(1)), None);
        assert_eq!(changed(&inner(1), &inner(2)), Some(("curve m2 1".to_owned(), "curve m2 2".to_owned())));
    }
}
