//! Tables as `nft list` prints them.

use super::{ChainState, Ruleset, TableState};
use penstock_lang::nft::{Family, Options, What, show};
use std::fmt::Write;

impl ChainState {
    fn text(&self, family: Family, bare: bool, o: &Options) -> String {
        let mut out = format!("\tchain {} {{", self.name);
        if o.handles {
            let _ = write!(out, " # handle {}", self.handle);
        }
        out.push('\n');
        if let Some(comment) = &self.comment {
            let _ = writeln!(out, "\t\tcomment \"{comment}\"");
        }
        if let Some(base) = &self.base {
            let _ = writeln!(out, "\t\t{}", show::base(base, family, o));
        }
        for rule in self.rules.iter().filter(|_| !bare) {
            let _ = write!(out, "\t\t{}", show::rule(&rule.rule, o));
            if o.handles {
                let _ = write!(out, " # handle {}", rule.handle);
            }
            out.push('\n');
        }
        out.push_str("\t}\n");
        out
    }
}

impl TableState {
    fn head(&self, o: &Options) -> String {
        let handle = if o.handles { format!(" # handle {}", self.handle) } else { String::new() };
        format!("table {} {} {{{handle}\n", self.family.name(), self.name)
    }
    fn set_texts(&self, maps: Option<bool>, o: &Options) -> Vec<String> {
        let chosen = self.sets.iter().filter(|s| maps.is_none_or(|m| m == s.set.data.is_some()));
        chosen.map(|s| show::set(&s.name, &s.set, s.comment.as_deref(), s.handle, o)).collect()
    }
    pub(super) fn text(&self, o: &Options) -> String {
        let mut blocks = self.set_texts(None, o);
        blocks.extend(self.chains.iter().map(|c| c.text(self.family, false, o)));
        let mut out = self.head(o);
        if let Some(comment) = &self.comment {
            let _ = writeln!(out, "\tcomment \"{comment}\"");
            out.push_str(if blocks.is_empty() { "" } else { "\n" });
        }
        out.push_str(&blocks.join("\n"));
        out.push_str("}\n");
        out
    }
    pub(super) fn chain_text(&self, at: usize, o: &Options) -> String {
        let plain = Options { handles: false, ..o.clone() };
        let head = self.head(&plain);
        format!("{head}{}}}\n", self.chains[at].text(self.family, false, o))
    }
    pub(super) fn set_text(&self, name: &str, o: &Options) -> Option<String> {
        let s = self.sets.iter().find(|s| s.name == name)?;
        let plain = Options { handles: false, ..o.clone() };
        let head = self.head(&plain);
        Some(format!("{head}{}}}\n", show::set(&s.name, &s.set, s.comment.as_deref(), s.handle, o)))
    }
}

impl Ruleset {
    pub(super) fn list(&self, what: What, family: Option<Family>, o: &Options) -> String {
        let mut out = String::new();
        for table in self.tables.iter().filter(|t| family.is_none_or(|f| f == t.family)) {
            match what {
                What::Ruleset => out.push_str(&table.text(o)),
                What::Tables => {
                    let handle =
                        if o.handles { format!(" # handle {}", table.handle) } else { String::new() };
                    let _ = writeln!(out, "table {} {}{handle}", table.family.name(), table.name);
                }
                What::Chains => {
                    out.push_str(&table.head(&Options::default()));
                    out.extend(table.chains.iter().map(|c| c.text(table.family, true, o)));
                    out.push_str("}\n");
                }
                What::Sets | What::Maps => {
                    out.push_str(&table.head(&Options::default()));
                    out.extend(table.set_texts(Some(what == What::Maps), o));
                    out.push_str("}\n");
                }
                What::Nothing => {}
            }
        }
        out
    }
}
