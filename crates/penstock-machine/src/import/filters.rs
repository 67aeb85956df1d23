//! `tc filter show`, `tc chain show` and `tc actions list` back to commands.

use super::Made;
use penstock_lang::tc::say::{self, Shown};
use penstock_lang::token::Line;

/// The objects of a text, each with the lines that belong to it.
fn objects<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    let mut at: Vec<usize> = text.match_indices(start).map(|(at, _)| at).collect();
    at.retain(|&at| at == 0 || text.as_bytes()[at - 1] == b'\n');
    let ends = at.iter().skip(1).copied().chain([text.len()]);
    at.iter().zip(ends).map(|(&from, to)| &text[from..to]).collect()
}

/// Where an object hangs: as its text says, else on the device the text is of.
fn place(own: &[String], dev: &str) -> String {
    match own {
        [block, number] if block == "block" => format!("block {number}"),
        [] => format!("dev {dev} root"),
        words => format!("dev {dev} {}", words.join(" ")),
    }
}

/// Adds the chains of a device from the text tc printed.
pub(super) fn chains(dev: &str, text: &str, made: &mut Made) {
    made.device(dev);
    for object in objects(text, "chain ") {
        match say::template(object) {
            // Chain 0 is there by itself.
            Ok(said) if said.chain == 0 && said.template.is_none() => {}
            Ok(said) => {
                let line = said.command(&place(&said.place, said.dev.as_deref().unwrap_or(dev)));
                give(&line, made);
            }
            Err(why) => made.note(format!("{}: {why}", first_line(object))),
        }
    }
}

/// Adds the actions that stand by themselves.
pub(super) fn actions(text: &str, made: &mut Made) {
    match say::actions(text, made.host.kernel()) {
        Ok(all) => {
            for action in all {
                let mut line = ["tc", "actions", "add", "action"].map(str::to_owned).to_vec();
                line.extend(action);
                give(&line, made);
            }
        }
        Err(why) => made.note(format!("actions: {why}")),
    }
}

/// Adds the filters of a device from the text tc printed.
pub(super) fn filters(dev: &str, text: &str, made: &mut Made) {
    made.device(dev);
    let mut all: Vec<Shown> = Vec::new();
    for object in objects(text, "filter ") {
        match say::filter(object, None, made.host.kernel()) {
            Ok(said) => all.push(said),
            Err(why) => made.note(format!("{}: {why}", first_line(object))),
        }
        // tc rounds what it prints of these.
        for word in ["police 0x", "gate-state"].into_iter().filter(|w| object.contains(w)) {
            let kind = if word.starts_with('g') { "gate" } else { "police" };
            made.note(format!(
                "{}: rates, sizes and times of {kind} are as tc rounds them",
                first_line(object)
            ));
        }
    }
    let group = |f: &Shown| (f.place.clone(), f.chain, f.pref.clone());
    // The table a priority of u32 has by itself is shown last; tables are made before what stands in them.
    let own = |f: &Shown| {
        let mut tables = all.iter().filter(|t| group(t) == group(f) && t.divisor.is_some());
        tables.next_back().and_then(Shown::table)
    };
    let (mut tables, rest): (Vec<&Shown>, Vec<&Shown>) = all.iter().partition(|f| f.divisor.is_some());
    tables.retain(|t| own(t) != t.table());
    tables.reverse();
    for said in tables.into_iter().chain(rest).filter(|f| !f.header) {
        let place = place(&said.place, said.dev.as_deref().unwrap_or(dev));
        let exact = said.command(&place, true);
        // Where the machine counts tables otherwise the handle is left to it.
        if made.exec(&exact) == 0 {
            made.keep(&exact);
        } else {
            let handle = said.kind != "u32" || own(said) != said.table();
            give(&said.command(&place, handle), made);
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim()
}

fn give(words: &[String], made: &mut Made) {
    made.give(&Line::of_words(words).source, words);
}
