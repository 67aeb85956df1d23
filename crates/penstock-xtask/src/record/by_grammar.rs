//! Cases of kinds that need no generator of their own: qdiscs without classes and filters, whose options come from the rule `record` of
//! `grammar/KIND.txt`. All packets go through the one qdisc, with priorities and marks.

use super::dice::Dice;
use super::kinds::Service;
use super::packets::sequence;
use crate::difftc::Grammar;
use crate::tidy::root;
use serde_json::{Value, json};

/// The rule that makes a kind with its options.
const RULE: &str = "record";

/// The kind's grammar, where it has that rule.
pub fn grammar(kind: &str) -> Option<Grammar> {
    let path = root().join("crates/penstock-xtask/grammar").join(format!("{kind}.txt"));
    let grammar = Grammar::parse(kind, &std::fs::read_to_string(path).ok()?).ok()?;
    grammar.has(RULE).then_some(grammar)
}

/// A case; `None` where there is no such grammar.
pub fn case(d: &mut Dice, kind: &str, seed: u64) -> Option<Value> {
    let grammar = grammar(kind)?;
    let words = |n: u64| grammar.words(RULE, 2 * seed + n).ok();
    let s = Service::choose(d, 15, 1_000_000);
    let mut setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: {}", words(0)?)];
    if d.chance(30) {
        let verb = d.pick(&["change", "replace"]);
        setup.push(format!("qdisc {verb} dev $DEV $PARENT handle 1: {}", words(1)?));
    }
    let packets = sequence(d, s.traffic(120, 5, true), |d, m| {
        if d.chance(60) {
            m.insert("priority".into(), json!(d.range(0, 70)));
        }
        if d.chance(10) {
            m.insert("mark".into(), json!(d.range(0, 9)));
        }
    });
    Some(s.spec(setup, packets))
}

#[cfg(test)]
mod tests {
    use super::super::kinds;
    use penstock_model::Kernel;

    #[test]
    fn a_grammar_s_rule_makes_cases() {
        assert!(kinds::all(Kernel::V6_12).contains(&"blackhole"));
        let case = kinds::generate("blackhole", 1).unwrap();
        assert!(case["setup"][0].as_str().unwrap().ends_with("handle 1: blackhole"), "{case}");
        assert_eq!(kinds::generate("blackhole", 1), kinds::generate("blackhole", 1));
        assert!(kinds::generate("no_such_kind", 1).is_none());
    }
}
