//! Templates: one table of the file for many hosts, devices, links, apps, flows, meters or expectations.
//!
//! A name with a range, `[host."u{1..50}"]`, is as many hosts; `each = "1..50"` in a `[[link]]`, `[[app]]`, `[[flow]]`, `[[meter]]`, `[[capture]]` or `[[expect]]` makes as many
//! of these. In their texts `{n}` is the number, `{n+1}`, `{n-1}`, `{n*4+1}` are computed from it, `{n:x}` is the number in hexadecimal. In the last
//! place of an IPv4 address a number above 255 carries, so that `10.0.0.{n}` counts addresses. `${n}` is the shell's.
//!
//! All of it is done before anything is read, with the places of the template: what is wrong in one of many is shown where it was written.

use super::read::Faults;
use std::borrow::Cow;
use std::net::Ipv4Addr;
use std::ops::{Range, RangeInclusive};
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Most copies that one template makes.
const MAX_COPIES: u64 = 100_000;
/// The lists whose tables may have `each`.
const LISTS: [&str; 7] = ["link", "app", "flow", "test", "meter", "capture", "expect"];
/// Keys that name hosts: a range in one of these stands for `each`.
const HOSTS: [&str; 3] = ["on", "from", "to"];

/// The numbers of a template, by the letter that stands for each in texts.
type Numbers<'n> = &'n [(char, u64)];

/// Puts copies in place of every template of a file.
pub(super) fn expand(root: &mut DeTable<'_>, faults: &mut Faults<'_>) {
    if let Some(hosts) = root.get_mut("host")
        && let DeValue::Table(hosts) = hosts.get_mut()
    {
        names(hosts, 'h', &[], faults);
        for (_, host) in hosts.iter_mut() {
            // Devices of hosts that are no template; those of templates were counted with their host.
            devices(host, &[], faults);
        }
    }
    if let Some(switches) = root.get_mut("switch")
        && let DeValue::Table(switches) = switches.get_mut()
    {
        switches.iter_mut().for_each(|(_, switch)| ends(switch, "ports", faults));
    }
    for list in LISTS {
        let Some(value) = root.get_mut(list) else { continue };
        let DeValue::Array(tables) = value.get_mut() else { continue };
        let wanted = tables.iter().any(|t| t.get_ref().as_table().is_some_and(|t| is_template(t)));
        if wanted {
            let old = std::mem::replace(tables, DeArray::new());
            for table in &old {
                copies(table, tables, faults);
            }
        }
        for table in tables.iter_mut() {
            ends(table, "ends", faults);
        }
    }
}

/// A name with a range: what stands before it, its numbers, how many digits at least, what stands behind it.
struct Counted<'t> {
    before: &'t str,
    numbers: RangeInclusive<u64>,
    digits: usize,
    behind: &'t str,
}

impl Counted<'_> {
    fn name(&self, n: u64) -> String {
        format!("{}{n:0digits$}{}", self.before, self.behind, digits = self.digits)
    }
}

/// `u{1..50}`; `None` without a range.
fn counted<'t>(text: &'t str, span: &Range<usize>, faults: &mut Faults<'_>) -> Option<Counted<'t>> {
    let (before, rest) = text.split_once('{')?;
    let (inside, behind) = rest.split_once('}')?;
    let (first, last) = inside.split_once("..")?;
    if behind.contains('{') {
        faults.add(span.clone(), format!("\"{text}\" has two ranges"), "write one, e.g. u{1..50}");
        return None;
    }
    let numbers = numbers(first, last, span, faults)?;
    let digits = if first.starts_with('0') && first.len() > 1 { first.len() } else { 0 };
    Some(Counted { before, numbers, digits, behind })
}

/// The numbers of `first..last`.
fn numbers(
    first: &str,
    last: &str,
    span: &Range<usize>,
    faults: &mut Faults<'_>,
) -> Option<RangeInclusive<u64>> {
    let (Ok(from), Ok(to)) = (first.trim().parse::<u64>(), last.trim().parse::<u64>()) else {
        let message = format!("\"{first}..{last}\" is not a range of numbers");
        faults.add(span.clone(), message, "write the first and the last number: 1..50");
        return None;
    };
    if to < from {
        let message = format!("the range {from}..{to} is empty");
        faults.add(span.clone(), message, format!("write the smaller number first: {to}..{from}"));
        return None;
    }
    if to - from >= MAX_COPIES || to > u64::from(u32::MAX) {
        let message = format!("the range {from}..{to} is too long");
        faults.add(span.clone(), message, format!("a template makes at most {MAX_COPIES} copies"));
        return None;
    }
    Some(from..=to)
}

/// Copies each entry whose name has a range. Names that stand in the table themselves come first: such a table's keys replace the template's.
fn names(table: &mut DeTable<'_>, letter: char, outer: Numbers<'_>, faults: &mut Faults<'_>) {
    let templates: Vec<_> = table.keys().filter(|k| has_range(k.get_ref())).cloned().collect();
    for key in templates {
        let span = key.span();
        let Some(name) = counted(key.get_ref(), &span, faults) else { continue };
        let Some(value) = table.remove(&**key.get_ref()) else { continue };
        for n in name.numbers.clone() {
            let mut numbers: Vec<(char, u64)> = vec![('n', n), (letter, n)];
            numbers.extend(outer.iter().filter(|(l, _)| *l != 'n'));
            let mut copy = value.clone();
            if letter == 'h' {
                devices(&mut copy, &numbers, faults);
            }
            fill(&mut copy, &numbers, faults);
            let called = Spanned::new(span.clone(), Cow::Owned(name.name(n)));
            match table.get_mut(&**called.get_ref()) {
                Some(own) => merge(own, copy),
                None => drop(table.insert(called, copy)),
            }
        }
    }
}

/// The devices of a host: its own keys, and those of its table `device`.
fn devices(host: &mut Spanned<DeValue<'_>>, outer: Numbers<'_>, faults: &mut Faults<'_>) {
    let DeValue::Table(host) = host.get_mut() else { return };
    names(host, 'd', outer, faults);
    if let Some(more) = host.get_mut("device")
        && let DeValue::Table(more) = more.get_mut()
    {
        names(more, 'd', outer, faults);
    }
}

/// What the template says and the table itself does not.
fn merge<'i>(own: &mut Spanned<DeValue<'i>>, template: Spanned<DeValue<'i>>) {
    let (DeValue::Table(own), DeValue::Table(template)) = (own.get_mut(), template.into_inner()) else {
        return;
    };
    for (key, value) in template {
        if !own.contains_key(&**key.get_ref()) {
            own.insert(key, value);
        }
    }
}

/// Whether a table of a list stands for several.
fn is_template(table: &DeTable<'_>) -> bool {
    let ranged = |key: &str| table.get(key).and_then(|v| v.get_ref().as_str()).is_some_and(has_range);
    table.contains_key("each") || HOSTS.iter().any(|key| ranged(key))
}

fn has_range(text: &str) -> bool {
    text.split_once('{').is_some_and(|(_, rest)| rest.split_once('}').is_some_and(|(r, _)| r.contains("..")))
}

/// The copies of one table of a list, or itself.
fn copies<'i>(value: &Spanned<DeValue<'i>>, out: &mut DeArray<'i>, faults: &mut Faults<'_>) {
    let DeValue::Table(table) = value.get_ref() else {
        out.push(value.clone());
        return;
    };
    let mut each = None;
    if let Some(given) = table.get("each") {
        each = each_of(given, faults);
        if each.is_none() {
            return;
        }
    }
    // Hosts with a range go through their numbers together.
    let mut ranged = Vec::new();
    for key in HOSTS {
        let Some(text) = table.get(key).filter(|v| v.get_ref().as_str().is_some_and(has_range)) else {
            continue;
        };
        let span = text.span();
        let Some(name) = counted(text.get_ref().as_str().unwrap_or_default(), &span, faults) else { return };
        let steps = |r: &RangeInclusive<u64>| r.end() - r.start();
        let have = each.get_or_insert_with(|| name.numbers.clone());
        if steps(have) != steps(&name.numbers) {
            let message = format!("{key} counts {} hosts, not {}", steps(&name.numbers) + 1, steps(have) + 1);
            faults.add(span, message, "ranges of one table go side by side: make them equally long");
            return;
        }
        ranged.push((key, span, name));
    }
    let Some(each) = each else {
        out.push(value.clone());
        return;
    };
    for (step, n) in each.enumerate() {
        let mut copy = value.clone();
        if let DeValue::Table(table) = copy.get_mut() {
            table.remove("each");
            for (key, span, name) in &ranged {
                let host = name.name(name.numbers.start() + step as u64);
                if let Some(value) = table.get_mut(*key) {
                    *value = Spanned::new(span.clone(), DeValue::String(Cow::Owned(host)));
                }
            }
        }
        fill(&mut copy, &[('n', n)], faults);
        out.push(copy);
    }
}

/// `each = "1..50"`, or `each = 50` for the same.
fn each_of(value: &Spanned<DeValue<'_>>, faults: &mut Faults<'_>) -> Option<RangeInclusive<u64>> {
    let text = match value.get_ref() {
        DeValue::Integer(i) => format!("1..{}", i.as_str()),
        DeValue::String(s) => s.to_string(),
        _ => String::new(),
    };
    match text.split_once("..") {
        Some((first, last)) => numbers(first, last, &value.span(), faults),
        None => {
            faults.add(value.span(), "each is not a range of numbers", "write each = \"1..50\"");
            None
        }
    }
}

/// Ranges in the ends of a link: so many ends of one medium.
fn ends(link: &mut Spanned<DeValue<'_>>, key: &str, faults: &mut Faults<'_>) {
    let DeValue::Table(link) = link.get_mut() else { return };
    let Some(ends) = link.get_mut(key) else { return };
    let DeValue::Array(ends) = ends.get_mut() else { return };
    let name = |end: &Spanned<DeValue<'_>>| match end.get_ref() {
        DeValue::Table(t) => t.get("end").and_then(|v| v.get_ref().as_str()).map(str::to_owned),
        other => other.as_str().map(str::to_owned),
    };
    if !ends.iter().any(|end| name(end).is_some_and(|n| has_range(&n))) {
        return;
    }
    for end in &std::mem::replace(ends, DeArray::new()) {
        let text = name(end).filter(|n| has_range(n));
        let Some(many) = text.as_deref().and_then(|t| counted(t, &end.span(), faults)) else {
            ends.push(end.clone());
            continue;
        };
        for n in many.numbers.clone() {
            let called = DeValue::String(Cow::Owned(many.name(n)));
            let mut copy = end.clone();
            match copy.get_mut() {
                DeValue::Table(t) => drop(t.get_mut("end").map(|v| *v.get_mut() = called)),
                other => *other = called,
            }
            ends.push(copy);
        }
    }
}

/// Puts numbers into every text of a value.
fn fill(value: &mut Spanned<DeValue<'_>>, numbers: Numbers<'_>, faults: &mut Faults<'_>) {
    let span = value.span();
    match value.get_mut() {
        DeValue::String(text) => match filled(text, numbers) {
            Ok(Some(new)) => *text = Cow::Owned(new),
            Ok(None) => {}
            Err(message) => {
                faults.add(span, message, "let the range begin elsewhere, or write another number")
            }
        },
        DeValue::Array(items) => items.iter_mut().for_each(|item| fill(item, numbers, faults)),
        DeValue::Table(table) => table.iter_mut().for_each(|(_, item)| fill(item, numbers, faults)),
        _ => {}
    }
}

/// A text with its numbers put in; `None` where it has no place for one.
fn filled(text: &str, numbers: Numbers<'_>) -> Result<Option<String>, String> {
    let mut out = String::new();
    let mut rest = text;
    let mut any = false;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let place = from[1..].split_once('}').filter(|_| !before.ends_with('$'));
        match place.and_then(|(inside, behind)| Some((computed(inside, numbers)?, inside, behind))) {
            Some((value, inside, behind)) => {
                let value = value.ok_or_else(|| beyond(inside, numbers))?;
                match inside.ends_with(":x") {
                    true => out.push_str(&format!("{value:x}")),
                    false => number(&mut out, value, behind)?,
                }
                (any, rest) = (true, behind);
            }
            None => {
                out.push('{');
                rest = &from[1..];
            }
        }
    }
    out.push_str(rest);
    Ok(any.then_some(out))
}

/// Why an expression has no value.
fn beyond(inside: &str, numbers: Numbers<'_>) -> String {
    let given = numbers.iter().find(|(letter, _)| inside.starts_with(*letter));
    let given = given.map_or(String::new(), |(letter, n)| format!(" where {letter} is {n}"));
    let how = if inside.contains('-') { "below 0" } else { "too large" };
    format!("{{{inside}}} is {how}{given}")
}

/// What stands for an expression: `n`, `n+1`, `n-1`, `n*4`, `n*4+1`, with `:x` behind it or not. `None`: it is none; `Some(None)`: it has no value.
fn computed(inside: &str, numbers: Numbers<'_>) -> Option<Option<u64>> {
    let inside = inside.strip_suffix(":x").unwrap_or(inside);
    let letter = inside.chars().next()?;
    let value = numbers.iter().find(|(l, _)| *l == letter)?.1;
    let mut rest = &inside[letter.len_utf8()..];
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let mut value = Some(value);
    for sign in ['*', '+', '-'] {
        let Some(operand) = rest.strip_prefix(sign) else { continue };
        let end = digits(operand);
        let operand_value: u64 = operand[..end].parse().ok()?;
        value = value.and_then(|v| match sign {
            '*' => v.checked_mul(operand_value),
            '+' => v.checked_add(operand_value),
            _ => v.checked_sub(operand_value),
        });
        rest = &operand[end..];
        if sign == '+' {
            break;
        }
    }
    rest.is_empty().then_some(value.filter(|v| *v < 1 << 63))
}

/// Writes a number. In the last place of an IPv4 address one above 255 carries.
fn number(out: &mut String, value: u64, behind: &str) -> Result<(), String> {
    let last = !behind.starts_with(|c: char| c == '.' || c.is_ascii_digit());
    let begin = out
        .rfind(|c: char| c != '.' && !c.is_ascii_digit())
        .map_or(0, |i| i + out[i..].chars().next().map_or(1, char::len_utf8));
    let base = out[begin..].strip_suffix('.').filter(|_| last && value > 255);
    let Some(base) = base.and_then(|b| format!("{b}.0").parse::<Ipv4Addr>().ok()) else {
        out.push_str(&value.to_string());
        return Ok(());
    };
    let sum = u64::from(u32::from(base)).checked_add(value).and_then(|sum| u32::try_from(sum).ok());
    let sum = sum.ok_or_else(|| format!("{base} and {value} lie beyond the last IPv4 address"))?;
    out.truncate(begin);
    out.push_str(&Ipv4Addr::from(sum).to_string());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Experiment, parse_with};

    fn read(text: &str) -> Result<Experiment, Vec<penstock_model::Diagnostic>> {
        parse_with(text, "t.toml", &|_| Err("no files".to_owned()))
    }

    #[test]
    fn expressions() {
        let fill = |text: &str| filled(text, &[('n', 300), ('h', 7)]);
        let is = |text: &str, expected: &str| assert_eq!(fill(text).unwrap().as_deref(), Some(expected));
        is("u{n}", "u300");
        is("{n+1} {n-300} {n*4} {n*4+2} {n*2-1} {h}", "301 0 1200 1202 599 7");
        is("10.0.0.{n}/16", "10.0.1.44/16");
        is("ip addr add 10.1.255.{n*4+1}/8", "ip addr add 10.2.3.177/8");
        is("10.0.{n}.1", "10.0.300.1");
        is("2001:db8::{n:x}/64", "2001:db8::12c/64");
        is("${n} {n}", "${n} 300");
        for other in ["", "{}", "{m}", "{n", "awk '{n++}'", "{n/2}", "{ n }", "${n}"] {
            assert_eq!(fill(other), Ok(None), "{other}");
        }
        assert!(fill("{n-301}").is_err());
        assert!(fill("255.255.255.{n}").is_err());
    }

    const MANY: &str = r#"
[host."u{1..12}"]
eth0 = "10.64.0.{n*4+2}/30"
via = "10.64.0.{n*4+1}"
setup = "for i in 1 2; do echo ${i}; done"
[host.u3]
kernel = "2.6.35"
[host.agg]
"p{1..12}" = "10.64.0.{n*4+1}/30"
up = "192.0.2.1/24"
[host.s]
eth0 = "192.0.2.2/24"
[[link]]
each = 12
ends = ["agg:p{n}", "u{n}:eth0"]
rate = "10mbit"
[[link]]
ends = ["agg:up", "s:eth0"]
[[flow]]
from = "s"
to = "u{1..12}"
load = "greedy"
[[app]]
each = "2..3"
on = "u{n}"
run = "ping -c {n} 192.0.2.2"
[[expect]]
each = "2..3"
what = "u{n} ping sent"
value = "{n}"
"#;

    #[test]
    fn one_table_stands_for_many() {
        let e = read(MANY).unwrap();
        let names: Vec<&str> = e.hosts.iter().map(|h| h.name.as_str()).collect();
        assert_eq!(names[..4], ["u1", "u2", "u4", "u5"]);
        assert_eq!(names[10..], ["u12", "u3", "agg", "s"]);
        let agg = e.host("agg").unwrap();
        let devices: Vec<&str> = agg.devices.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(devices[..3], ["p1", "p2", "p3"]);
        assert_eq!(devices[11..], ["p12", "up"]);
        assert_eq!(agg.devices[9].addresses[0].0.to_string(), "10.64.0.41");
        let u10 = e.host("u10").unwrap();
        assert_eq!(u10.via.as_ref().unwrap().0.to_string(), "10.64.0.41");
        assert_eq!(u10.setup[0].text, "for i in 1 2; do echo ${i}; done");
        // A table of its own adds to what the template says.
        let u3 = e.host("u3").unwrap();
        assert_eq!(u3.kernel, penstock_model::Kernel::V2_6_35);
        assert_eq!(u3.devices[0].addresses[0].0.to_string(), "10.64.0.14");
        assert_eq!(e.links.len(), 13);
        assert_eq!((e.links[11].ends[0].dev.as_str(), e.links[11].ends[1].host.as_str()), ("p12", "u12"));
        assert_eq!(e.flows.iter().map(|f| f.to.as_str()).collect::<Vec<_>>()[10..], ["u11", "u12"]);
        assert_eq!(
            e.apps.iter().map(|a| a.run.as_str()).collect::<Vec<_>>(),
            ["ping -c 2 192.0.2.2", "ping -c 3 192.0.2.2"]
        );
    }

    #[test]
    fn ends_of_one_medium_and_padded_names() {
        let e = read(
            "[host.\"h{08..11}\"]\neth0 = \"10.0.0.{n}/24\"\n[[link]]\nends = [\"h{08..11}:eth0\"]\nrate = \"10mbit\"\n",
        );
        let e = e.unwrap();
        let ends: Vec<String> =
            e.links[0].ends.iter().map(|end| format!("{}:{}", end.host, end.dev)).collect();
        assert_eq!(ends, ["h08:eth0", "h09:eth0", "h10:eth0", "h11:eth0"]);
    }

    #[test]
    fn devices_within_counted_hosts() {
        let e = read("[host.\"r{1..3}\"]\n\"p{1..2}\" = \"10.{h}.{n}.1/24\"\n").unwrap();
        let address = |host: usize, dev: usize| e.hosts[host].devices[dev].addresses[0].0.to_string();
        assert_eq!((address(2, 0), address(2, 1)), ("10.3.1.1".to_owned(), "10.3.2.1".to_owned()));
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let fault = |text: &str| {
            let faults = read(text).unwrap_err();
            (faults[0].line, faults[0].message.clone(), faults.len())
        };
        let is = |text: &str, line, message: &str| {
            let (at, said, _) = fault(text);
            assert_eq!((at, said.as_str()), (line, message));
        };
        is("[host.\"u{5..1}\"]\n", 1, "the range 5..1 is empty");
        is("[host.\"u{a..b}\"]\n", 1, "\"a..b\" is not a range of numbers");
        is("[host.\"u{1..9999999}\"]\n", 1, "the range 1..9999999 is too long");
        is("[host.\"u{1..2}p{1..2}\"]\n", 1, "\"u{1..2}p{1..2}\" has two ranges");
        is(
            "[host.a]\n[[app]]\neach = true\non = \"a\"\nrun = \"ping 1.1.1.1\"",
            3,
            "each is not a range of numbers",
        );
        is(
            "[host.a]\n[[flow]]\nfrom = \"u{1..2}\"\nto = \"u{1..3}\"\nload = \"greedy\"",
            4,
            "to counts 3 hosts, not 2",
        );
        is("[host.\"u{3..9}\"]\neth0 = \"10.0.0.{n-5}/24\"", 2, "{n-5} is below 0 where n is 3");
        // One fault of the template, not one for each copy, nor what follows from it.
        assert_eq!(fault("[host.\"u{5..1}\"]\n").2, 1);
        let (line, said, faults) =
            fault("[host.a]\n[[flow]]\nfrom = \"w{1..9}\"\nto = \"a\"\nload = \"greedy\"");
        assert_eq!((line, said.as_str(), faults), (2, "there is no host \"w1\"", 1));
        let (line, said, faults) = fault("[host.\"u{1..50}\"]\nvia = \"10.0.0\"\neth0 = \"10.0.0.{n}/24\"\n");
        assert_eq!((line, said.as_str(), faults), (2, "via: \"10.0.0\" is not an IPv4 address", 1));
    }
}
