//! PS349 to PS351: queues that hold nothing, bands that get more than was meant, commands that are never carried out.

use crate::facts::Facts;
use crate::filters::Filter;
use crate::finding::{Found, Rule, Say};
use crate::source::Form;
use crate::syntax::Syntax;
use penstock_model::Handle;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS349",
        "a queue with room for nothing",
        "A packet is taken where fewer than `limit` are waiting (`netem_enqueue`, `pfifo_enqueue`, `codel_qdisc_enqueue`): with `limit 0` each is dropped, however empty the link \
         is. `limit` does not know 0 as no limit. `blackhole` says it where it is meant.",
        no_room,
    ),
    Rule::warning(
        "PS350",
        "the band that is to be slow gets all other packets too",
        "What no filter of a prio qdisc sorts goes by `priomap`. The default one, `1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1`, sends plain packets (priority 0) to the second band, class `:2`: \
         a netem there delays everything, and the filter that leads to it changes nothing. Use a band that `priomap` does not name: `bands 4`, and class `:4`.",
        everyones_band,
    ),
    Rule::warning(
        "PS351",
        "commands behind the end of the script",
        "The shell ends at an `exit` that nothing is a condition of. What stands below is never carried out; so it is with lines that are put behind the `exit 0` of \
         `/etc/rc.local`.",
        behind_exit,
    ),
];

/// Kinds whose `limit` is the number of packets or bytes that may wait, where 0 is a number like others.
const LIMITED: [&str; 10] =
    ["netem", "pfifo", "bfifo", "pfifo_head_drop", "codel", "fq_codel", "fq", "pie", "fq_pie", "hhf"];

fn no_room(facts: &Facts, found: &mut Found) {
    for (_, qdisc, at) in facts.made_of(&LIMITED) {
        let step = &facts.steps[at];
        let Some(word) = step.value(&["limit"]) else { continue };
        let number = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let zero = number.parse::<f64>().is_ok_and(|n| n == 0.0);
        let guessed = step.guessed.as_ref().is_some_and(|g| {
            step.words.iter().position(|w| w == "limit").is_some_and(|n| g.words.contains(&(n + 1)))
        });
        if !zero || guessed || qdisc.options.u32("limit").is_some_and(|n| n > 0) {
            continue;
        }
        let reason = format!("{} takes a packet where fewer than 0 are waiting: never.", qdisc.kind);
        found.at(at, word, Say::new("this queue drops every packet", reason, step.without("limit")));
    }
}

/// The number of a class's band, from 0.
fn band(class: Handle) -> Option<u8> {
    (1..=16).contains(&class.minor()).then(|| class.minor() as u8 - 1)
}

/// The band that plain packets go to, those of priority 0, by the words of `tc qdisc … prio`: the default map says 1.
fn plain(words: &[String]) -> u8 {
    let at = words.iter().position(|w| w == "priomap");
    at.and_then(|at| words.get(at + 1)?.parse().ok()).unwrap_or(1)
}

fn everyones_band(facts: &Facts, found: &mut Found) {
    for (device, qdisc, at) in facts.made_of(&["netem"]) {
        let Some(top) = device.qdisc(qdisc.parent.qdisc()).filter(|q| q.kind == "prio") else { continue };
        let Some(made) = top.step else { continue };
        if band(qdisc.parent) != Some(plain(&facts.steps[made].words)) {
            continue;
        }
        let own: Vec<_> = device.filters.iter().filter(|f| f.parent.qdisc() == top.handle).collect();
        let asks = |f: &Filter| !f.tests.is_empty() || f.kind == "fw";
        let to_it = own.iter().find(|f| f.classid == Some(qdisc.parent) && asks(f));
        // Filters to other bands take out what is not to be slow.
        let aside = own.iter().any(|f| f.classid.is_some_and(|c| c != qdisc.parent));
        let others = device
            .qdiscs
            .iter()
            .any(|q| q.kind == "netem" && q.parent != qdisc.parent && q.parent.qdisc() == top.handle);
        let Some(filter) = to_it.filter(|_| !aside && !others) else {
            continue;
        };
        let step = &facts.steps[at];
        let reason = format!(
            "`priomap` sends what no filter sorts to {} as well; the filter of line {} adds nothing.",
            qdisc.parent, facts.steps[filter.step].line
        );
        let word = step.value(&["parent"]).unwrap_or("parent");
        let say =
            Say::new(format!("{} delays all packets, not those of the filter alone", qdisc.kind), reason, "");
        found.at(at, word, say);
    }
}

fn behind_exit(facts: &Facts, found: &mut Found) {
    let source = &facts.source;
    let ends = |l: &String| l.trim_end() == "exit" || l.starts_with("exit ");
    if source.form != Form::Script || !source.lines.iter().any(ends) {
        return;
    }
    let syntax = Syntax::of(&source.runnable());
    // Where it is written further in, something around it may be a condition after all.
    let plain = |line: &u32| source.lines.get(*line as usize - 1).is_some_and(ends);
    let Some(exit) = syntax.over.filter(plain) else { return };
    let behind = |c: &&crate::syntax::Command| c.frames.is_empty() && c.line > exit && c.network;
    let Some(first) = syntax.commands.iter().find(behind) else { return };
    let text = source.line(first.line);
    let column = text.chars().take_while(|c| c.is_whitespace()).count() as u32 + 1;
    let reason =
        format!("`{}` in line {} ends the script, whatever came before.", source.line(exit).trim(), exit);
    found.at_line(first.line, column, 0, Say::new("this is never carried out", reason, ""));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_prio_are_bands() {
        assert_eq!(band(Handle::new(1, 2)), Some(1));
        assert_eq!(band(Handle::new(1, 0)), None);
        assert_eq!(band(Handle::new(1, 17)), None);
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(plain(&words("tc qdisc add dev a root handle 1: prio")), 1);
        assert_eq!(plain(&words("tc qdisc add dev a root handle 1: prio bands 3 priomap 2 2 2")), 2);
    }
}
