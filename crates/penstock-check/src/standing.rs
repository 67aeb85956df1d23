//! The rules of `iptables` and `ip6tables` as they stand at a script's end, whether they were typed or restored.
//!
//! Follows: iptables 1.8.9 `iptables/iptables-restore.c` `ip46tables_restore_main`: a table is put in place at its COMMIT.

use crate::facts::Step;
use crate::marks::Ruled;
use penstock_host::netfilter::nft::{StandingTable, Written};
use penstock_lang::iptables::restore::{self, Line};
use penstock_lang::iptables::{Action, Command, Family, Table};
use penstock_lang::token;
use penstock_model::Kernel;
use std::collections::BTreeMap;

/// A policy that drops: family, table, chain.
type Place = (u8, Table, String);

/// Rules and policies.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Rules in the order of their chains.
    pub rules: Vec<Ruled>,
    /// Built-in chains whose policy drops: the command, and the line of the text that it reads.
    pub drops: BTreeMap<Place, (usize, u32)>,
}

impl Standing {
    /// Carries out a command; `line` is that of the text it stands in, 0 where it was typed.
    pub(crate) fn carry_out(&mut self, command: &Command, step: usize, line: u32) {
        let (family, table) = (command.program.family, command.table);
        apply(&mut self.rules, (family, table), &command.action, (step, line));
        match &command.action {
            Action::Policy(chain, verdict, _) => {
                self.policy((family, table), chain, verdict == "DROP", (step, line));
            }
            Action::Rename(old, new) => {
                let own = self.rules.iter_mut().filter(|r| (r.family, r.table) == (family, table));
                own.filter(|r| r.chain == *old).for_each(|r| r.chain.clone_from(new));
            }
            _ => {}
        }
    }
    fn policy(&mut self, (family, table): (Family, Table), chain: &str, drops: bool, by: (usize, u32)) {
        let place = (family as u8, table, chain.to_owned());
        if drops {
            self.drops.insert(place, by);
        } else {
            self.drops.remove(&place);
        }
    }
    /// Reads what `iptables-restore` was given: behind its words, which are the text's first line. Other programs' texts are left.
    pub(crate) fn restore(&mut self, words: &[String], text: &str, step: usize, kernel: Kernel) {
        let program = words.first().map_or("", |w| w.rsplit('/').next().unwrap_or(w));
        let family = match program {
            "iptables-restore" => Family::Ip,
            "ip6tables-restore" => Family::Ip6,
            _ => return,
        };
        let Ok(options) = restore::restore_options(&token::Line::of_words(words).words, family) else {
            return;
        };
        if options.test || options.version || options.help {
            return;
        }
        let mut staged: Option<(Table, Standing)> = None;
        let mut skipping = false;
        for (number, line) in text.lines().enumerate().skip(1) {
            let number = number as u32;
            if skipping && !line.starts_with('*') {
                continue;
            }
            let table = staged.as_ref().map(|s| s.0);
            let Ok(read) = restore::read_line(line, number, table, &options, (family, kernel)) else {
                return;
            };
            match (read, &mut staged) {
                (Line::Table(name), _) => {
                    skipping = options.table.as_deref().is_some_and(|t| t != name);
                    if skipping {
                        continue;
                    }
                    let Some(table) = Table::named(&name) else { return };
                    let mut new = self.clone();
                    if !options.noflush {
                        new.rules.retain(|r| (r.family, r.table) != (family, table));
                    }
                    staged = Some((table, new));
                }
                (Line::Chain { name, policy, .. }, Some((table, new))) => {
                    let table = *table;
                    if let Some(policy) = policy {
                        new.policy((family, table), &name, policy == "DROP", (step, number));
                    }
                    // A chain of the user's that is named begins empty, with `-n` too.
                    if !table.built_in().contains(&name.as_str()) {
                        new.rules.retain(|r| (r.family, r.table) != (family, table) || r.chain != name);
                    }
                }
                (Line::Rule(command), Some((_, new))) => new.carry_out(&command, step, number),
                (Line::Commit, _) => {
                    if let Some((_, new)) = staged.take() {
                        *self = new;
                    }
                }
                _ => {}
            }
        }
    }
    /// Chains with their rules, in order.
    pub fn by_chain(&self) -> BTreeMap<(u8, Table, &str), Vec<&Ruled>> {
        by_chain(&self.rules)
    }
}

/// The rules of `nft` as they stand at the end, and the commands that made them.
#[derive(Clone, Debug, Default)]
pub struct OfNft {
    /// The tables, the oldest first.
    pub tables: Vec<StandingTable>,
    /// How many calls had changed something behind a command, and the command's number.
    pub calls: Vec<(u32, usize)>,
}

impl OfNft {
    /// The command that something was written in, and the line of the text that it read; 0 where it read none.
    pub(crate) fn by(&self, written: Written, steps: &[Step]) -> (usize, u32) {
        let step = self.calls.iter().find(|c| c.0 >= written.call).map_or(0, |c| c.1);
        let reads = steps.get(step).is_some_and(|s| {
            s.words
                .iter()
                .any(|w| w == "--file" || w.starts_with('-') && !w.starts_with("--") && w.ends_with('f'))
        });
        (step, if reads { written.line } else { 0 })
    }
}

/// Chains with their rules, in order.
pub(crate) fn by_chain(rules: &[Ruled]) -> BTreeMap<(u8, Table, &str), Vec<&Ruled>> {
    let mut chains: BTreeMap<_, Vec<&Ruled>> = BTreeMap::new();
    for rule in rules {
        chains.entry((rule.family as u8, rule.table, rule.chain.as_str())).or_default().push(rule);
    }
    chains
}

/// What a command does to rules; `by` is the command and the line of the text that it reads.
pub(crate) fn apply(rules: &mut Vec<Ruled>, of: (Family, Table), action: &Action, by: (usize, u32)) {
    let (family, table) = of;
    let same = |r: &Ruled, chain: &str| (r.family, r.table) == of && r.chain == chain;
    let places = |rules: &[Ruled], chain: &str| -> Vec<usize> {
        rules.iter().enumerate().filter(|r| same(r.1, chain)).map(|r| r.0).collect()
    };
    let new = |chain: &str, rule: &penstock_lang::iptables::Rule| Ruled {
        family,
        table,
        chain: chain.to_owned(),
        rule: rule.clone(),
        step: by.0,
        line: by.1,
    };
    match action {
        Action::Append(chain, more, _) => rules.extend(more.iter().map(|r| new(chain, r))),
        Action::Insert(chain, number, more, _) => {
            let places = places(rules, chain);
            let end = places.last().map_or(rules.len(), |l| l + 1);
            let at = places.get(*number as usize - 1).copied().unwrap_or(end);
            rules.splice(at..at, more.iter().map(|r| new(chain, r)));
        }
        Action::Replace(chain, number, rule, _) => {
            if let Some(&at) = places(rules, chain).get(*number as usize - 1) {
                rules[at] = new(chain, rule);
            }
        }
        Action::Delete(chain, gone) => {
            for rule in gone {
                if let Some(at) = rules.iter().position(|r| same(r, chain) && r.rule == *rule) {
                    rules.remove(at);
                }
            }
        }
        Action::DeleteNumber(chain, number) => {
            if let Some(&at) = places(rules, chain).get(*number as usize - 1) {
                rules.remove(at);
            }
        }
        Action::Flush(chain) => {
            rules.retain(|r| (r.family, r.table) != of || chain.as_ref().is_some_and(|c| *c != r.chain));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restored(standing: &mut Standing, words: &[&str], text: &str) -> Vec<(String, u32)> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let text = format!("{}\n{text}", words.join(" "));
        standing.restore(&words, &text, 7, Kernel::default());
        standing.rules.iter().map(|r| (r.chain.clone(), r.line)).collect()
    }

    #[test]
    fn a_table_is_replaced_at_its_commit() {
        let mut all = Standing::default();
        let text = "*mangle\n:POSTROUTING ACCEPT [0:0]\n:UP - [0:0]\n-A POSTROUTING -j UP\n-A UP -j MARK --set-mark 1\nCOMMIT\n";
        let two = [("POSTROUTING".to_owned(), 4), ("UP".to_owned(), 5)];
        assert_eq!(restored(&mut all, &["iptables-restore"], text), two);
        // Without its COMMIT nothing is put in place; a test changes nothing.
        assert_eq!(restored(&mut all, &["iptables-restore"], "*mangle\n-A POSTROUTING -j ACCEPT\n"), two);
        assert_eq!(restored(&mut all, &["iptables-restore", "-t"], "*mangle\nCOMMIT\n"), two);
        // What is there stays with -n, but for chains that are named.
        let more = "*mangle\n:UP - [0:0]\n-A UP -j MARK --set-mark 2\nCOMMIT\n";
        let now = restored(&mut all, &["iptables-restore", "-n"], more);
        assert_eq!(now, [("POSTROUTING".to_owned(), 4), ("UP".to_owned(), 3)]);
        // Another family's table is its own.
        assert_eq!(restored(&mut all, &["ip6tables-restore"], "*mangle\nCOMMIT\n").len(), 2);
        assert!(restored(&mut all, &["iptables-restore"], "*mangle\nCOMMIT\n").is_empty());
    }

    #[test]
    fn policies_are_kept() {
        let mut all = Standing::default();
        restored(&mut all, &["iptables-restore"], "*filter\n:FORWARD DROP [0:0]\nCOMMIT\n");
        assert_eq!(all.drops.values().collect::<Vec<_>>(), [&(7, 2)]);
        restored(&mut all, &["iptables-restore"], "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
        assert!(all.drops.is_empty());
    }
}
