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
