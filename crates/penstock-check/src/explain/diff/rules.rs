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
        facts.netfilter.standing.rules.iter().map(one).collect()
    };
    let (x, y) = (own(a), own(b));
    let same = x.iter().map(|r| &r.0).eq(y.iter().map(|r| &r.0));
    // Sets tell what becomes of packets, but not what other rules would have met.
    if !same && !x.iter().chain(&y).all(|r| r.1) {
        differ(&x, &y, &mut said);
    }
    // What nft's commands leave is compared where all of it is simulated; else their words are.
    let simulated = |f: &Facts| {
        f.steps
            .iter()
            .filter(|s| s.program() == "nft")
            .all(|s| s.unsimulated.is_none() && s.guessed.is_none())
    };
    let by_rules = simulated(a) && simulated(b);
    if by_rules && a.nft != b.nft {
        of_nft(&lines(&a.nft), &lines(&b.nft), &mut said);
    }
    let texts = |facts: &Facts| -> Vec<(String, bool, String)> {
        let read = |s: &Step| s.program() == "nft" && by_rules || is_restored(s);
        let all = facts.steps.iter().filter(|s| s.ok() && !read(s));
        all.filter_map(|s| Some((other(s)?, false, s.text()))).collect()
    };
    let (x, y) = (texts(a), texts(b));
    if x.iter().map(|t| &t.0).ne(y.iter().map(|t| &t.0)) {
        differ(&x, &y, &mut said);
    }
    said
}

/// The lines of a list of rules, each with the table and the chain it stands in.
fn lines(list: &str) -> Vec<(String, String)> {
    let mut at: Vec<&str> = Vec::new();
    let mut out = Vec::new();
    for line in list.lines().map(str::trim).filter(|l| !l.is_empty()) {
        match line.strip_suffix('{') {
            _ if line == "}" => drop(at.pop()),
            Some(opens) => {
                at.push(opens.trim());
                out.push((at.join(" "), String::new()));
            }
            None => out.push((at.join(" "), line.to_owned())),
        }
    }
    out
}

/// What differs between two lists of nft's rules: one line for another in the same chain, lines that one has alone, their order.
fn of_nft(a: &[(String, String)], b: &[(String, String)], said: &mut Vec<String>) {
    let only = |a: &[(String, String)], b: &[(String, String)]| -> Vec<(String, String)> {
        let mut rest: Vec<&(String, String)> = b.iter().collect();
        let lone = a.iter().filter(|line| match rest.iter().position(|r| r == line) {
            Some(at) => {
                rest.remove(at);
                false
            }
            None => true,
        });
        lone.cloned().collect()
    };
    let (gone, mut new) = (only(a, b), only(b, a));
    if gone.is_empty() && new.is_empty() {
        said.push("nft: the same rules in another order".to_owned());
    }
    let show = |text: &str| if text.is_empty() { "there".to_owned() } else { text.to_owned() };
    for (place, text) in gone {
        let instead = match new.iter().position(|n| n.0 == place && !n.1.is_empty() && !text.is_empty()) {
            Some(at) => new.remove(at).1,
            None => "none".to_owned(),
        };
        said.push(format!("nft: {place}: {} -> {instead}", show(&text)));
    }
    said.extend(new.into_iter().map(|(place, text)| format!("nft: {place}: none -> {}", show(&text))));
}

/// Whether a command restores rules, all of which are known: they are compared rule by rule.
fn is_restored(step: &Step) -> bool {
    let known = matches!(&step.what, What::Rules(text) if text.lines().nth(1).is_some());
    known && step.guessed.is_none() && matches!(step.program(), "iptables-restore" | "ip6tables-restore")
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
