//! PS015: names of variables that nothing sets, a slip away from one that is set.

use crate::environment;
use crate::facts::Facts;
use crate::finding::{Edit, Found, Rule, Say};
use crate::source::Form;

pub const RULES: &[Rule] = &[Rule::warning(
    "PS015",
    "a variable's name is misspelt",
    "The shell puts nothing in the place of a variable that nothing sets, and says nothing of it. The script sets one of nearly this name. A variable that comes from the \
     environment is not meant: its name is like no other, or the script tests whether it is there (`${NAME:?}`, `[ -n \"$NAME\" ]`).",
    misspelt,
)];

fn misspelt(facts: &Facts, found: &mut Found) {
    if facts.source.form != Form::Script {
        return;
    }
    for (name, meant) in &facts.misspelt {
        for (number, line) in facts.source.lines.iter().enumerate() {
            if line.trim_start().starts_with('#') || !line.contains(name.as_str()) {
                continue;
            }
            for (at, len) in environment::reads(line, name) {
                let column = line[..at].chars().count() as u32 + 1;
                let number = number as u32 + 1;
                let edit = Edit::Replace(number, column, len as u32, meant.clone());
                let fix = format!("{}{meant}{}", &line[..at], &line[at + len..]);
                let say = Say::new(
                    format!("${name} is not set anywhere; did you mean ${meant}?"),
                    "There is no word in its place.",
                    fix.trim(),
                );
                found.at_line(number, column, len as u32, say.edit(Some(edit)));
            }
        }
    }
}

/// The VLAN device or the like that the script makes, where it is the only one whose name a digit more or less makes of this one: `eth0.20` for `eth0.200`.
pub(super) fn made_alike<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    let (base, number) = name.rsplit_once('.')?;
    let made: Vec<&str> = facts
        .steps
        .iter()
        .filter(|s| s.ok() && s.program() == "ip" && s.has("link") && s.has("add") && s.has("vlan"))
        .filter_map(|s| {
            let own = |w: &&String| {
                w.rsplit_once('.')
                    .is_some_and(|(b, n)| b == base && !n.is_empty() && n.bytes().all(|c| c.is_ascii_digit()))
            };
            s.words.iter().find(own).map(String::as_str)
        })
        .collect();
    let alike = |made: &str| {
        let made = made.rsplit_once('.').map_or("", |m| m.1);
        let (long, short) = if made.len() > number.len() { (made, number) } else { (number, made) };
        let shorter = long.len() == short.len() + 1
            && (0..long.len()).any(|at| format!("{}{}", &long[..at], &long[at + 1..]) == short);
        let turned = long.len() == short.len()
            && {
                let differ: Vec<usize> =
                    (0..long.len()).filter(|&i| long.as_bytes()[i] != short.as_bytes()[i]).collect();
                matches!(differ.as_slice(), [i, j] if j - i == 1 && long.as_bytes()[*i] == short.as_bytes()[*j] && long.as_bytes()[*j] == short.as_bytes()[*i])
            };
        shorter || turned
    };
    let digits = number.bytes().all(|c| c.is_ascii_digit());
    let near: Vec<&str> = made.iter().copied().filter(|m| *m != name && alike(m)).collect();
    match near.as_slice() {
        [one] if digits && !made.contains(&name) => Some(one),
        _ => None,
    }
}

/// The name under which the script makes the VLAN that this one says (`eth0.10`: VLAN 10 of eth0), and the command; nothing makes this one.
pub(super) fn made_otherwise<'a>(facts: &'a Facts, name: &str) -> Option<(&'a str, usize)> {
    let (base, number) = name.rsplit_once('.')?;
    let adds = |s: &&crate::facts::Step| {
        s.ok() && s.program() == "ip" && s.has("add") && s.has("link") && s.value(&["type"]) == Some("vlan")
    };
    if number.is_empty() || !number.bytes().all(|c| c.is_ascii_digit()) {
        return None;
    }
    // Another program may have made it: then it is set up, or asked for, before.
    let at = facts.steps.iter().position(|s| {
        adds(&s)
            && s.value(&["id"]) == Some(number)
            && s.words.windows(2).any(|w| w[0] == "link" && w[1] == base)
    })?;
    let own = facts.steps[at].value(&["name"])?;
    let early = facts.steps[..at].iter().any(|s| s.has(name));
    (own != name && !early && !facts.source.holds(&["vconfig"])).then_some((own, at))
}
