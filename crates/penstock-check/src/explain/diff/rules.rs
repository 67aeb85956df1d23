//! Rules of the packet filter whose effect is not known as sets of packets, and commands that nothing else speaks of.

use crate::facts::{Facts, Step, What};
use penstock_lang::iptables::{Connmark, Edit, Rule, Target};
use penstock_lang::tc::Command;

/// What differs, a line each.
pub fn rules(a: &Facts, b: &Facts) -> Vec<String> {
    let mut said = Vec::new();
    let own = |facts: &Facts| -> Vec<(String, bool, String)> {
        let one = |r: &crate::marks::Ruled| {
            let key = format!("{:?} {:?} {} {:?}", r.family, r.table, r.chain, r.rule);
            (key, known(&r.rule), facts.steps[r.step].text())
        };
        facts.netfilter.rules.iter().map(one).collect()
    };
    let (x, y) = (own(a), own(b));
    let same = x.iter().map(|r| &r.0).eq(y.iter().map(|r| &r.0));
    // Sets tell what becomes of packets, but not what other rules would have met.
    if !same && !x.iter().chain(&y).all(|r| r.1) {
        differ(&x, &y, &mut said);
    }
    let texts = |facts: &Facts| -> Vec<(String, bool, String)> {
        let all = facts.steps.iter().filter(|s| s.ok());
        all.filter_map(|s| Some((other(s)?, false, s.text()))).collect()
    };
    let (x, y) = (texts(a), texts(b));
    if x.iter().map(|t| &t.0).ne(y.iter().map(|t| &t.0)) {
        differ(&x, &y, &mut said);
    }
    said
}

/// What one has and the other has not; their order, where that is all.
fn differ(x: &[(String, bool, String)], y: &[(String, bool, String)], said: &mut Vec<String>) {
    let before = said.len();
    let only = |a: &[(String, bool, String)], b: &[(String, bool, String)]| -> Vec<String> {
        let mut rest: Vec<&String> = b.iter().map(|r| &r.0).collect();
        let lone = a.iter().filter(|r| match rest.iter().position(|key| **key == r.0) {
            Some(at) => {
                rest.remove(at);
                false
            }
            None => true,
        });
        lone.map(|r| r.2.clone()).collect()
    };
    said.extend(only(x, y).into_iter().map(|text| format!("command: {text} -> none")));
    said.extend(only(y, x).into_iter().map(|text| format!("command: none -> {text}")));
    if said.len() == before {
        said.push("command: the same commands in another order".to_owned());
    }
}

/// Whether all that a rule does to packets is known as sets.
fn known(rule: &Rule) -> bool {
    match &rule.target {
        Target::Edit(Edit::Connmark { op, shift, .. }) => *op == Connmark::Restore && *shift == 0,
        Target::Edit(edit) => {
            matches!(edit, Edit::Mark { .. } | Edit::Tos { .. } | Edit::Dscp(_) | Edit::Classify(_))
        }
        Target::Plain(plain) => matches!(plain.name.as_str(), "MASQUERADE" | "SNAT"),
        Target::Notrack(_) | Target::Set(..) | Target::Zone(..) => false,
        Target::None
        | Target::Verdict(_)
        | Target::Return
        | Target::Jump(_)
        | Target::Goto(_)
        | Target::Reject(_)
        | Target::Log(_) => true,
    }
}

/// A command that is compared by its words: actions of their own, chains, filters of shared blocks, rules read as a text.
fn other(step: &Step) -> Option<String> {
    match &step.what {
        What::Rules(text) => Some(text.clone()),
        What::Tc(commands) => {
            let by_words = commands.iter().any(|c| match c {
                Command::Filter { dev, .. } => dev.is_none(),
                Command::Action { .. } | Command::Chain { .. } => true,
                _ => false,
            });
            by_words.then(|| format!("{commands:?}"))
        }
        What::Iptables(_) | What::Other => None,
    }
}
