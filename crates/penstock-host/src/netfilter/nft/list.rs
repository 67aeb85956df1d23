//! Tables as `nft list` prints them.

use super::live::Clock;
use super::{ChainState, Ruleset, SetState, TableState};
use penstock_lang::nft::{Element, Expr, Family, Kind, Name, Options, What, show, value};
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
            let _ = write!(out, "\t\t{}", show::rule(&rule.rule, family, o));
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
    /// Sets, maps or meters; `None`: sets and maps.
    fn set_texts(&self, what: Option<What>, o: &Options, clock: Clock) -> Vec<String> {
        let chosen = self.sets.iter().filter(|s| match what {
            Some(What::Meters) => s.set.meter,
            _ if s.set.meter => false,
            Some(What::Maps) => s.set.data.is_some(),
            Some(_) => s.set.data.is_none(),
            None => true,
        });
        chosen.map(|s| s.text(o, clock)).collect()
    }
    fn object_texts(&self, kind: Option<Kind>, o: &Options) -> Vec<String> {
        let chosen = self.objects.iter().filter(|b| kind.is_none_or(|k| k == b.kind));
        let text =
            |b: &super::ObjectState| show::object(&b.name, &b.object(), b.comment.as_deref(), b.handle, o);
        chosen.map(text).collect()
    }
    pub(super) fn object_text(&self, kind: Kind, name: &str, o: &Options) -> Option<String> {
        let b = &self.objects[self.object(kind, name)?];
        let head = self.head(&Options { handles: false, ..o.clone() });
        Some(format!("{head}{}}}\n", show::object(&b.name, &b.object(), b.comment.as_deref(), b.handle, o)))
    }
    pub(super) fn text(&self, o: &Options, clock: Clock) -> String {
        let mut blocks = self.object_texts(None, o);
        blocks.extend(self.set_texts(None, o, clock));
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
    pub(super) fn set_text(&self, name: &str, meter: bool, o: &Options, clock: Clock) -> Option<String> {
        let s = self.sets.iter().find(|s| s.name == name && s.set.meter == meter)?;
        let plain = Options { handles: false, ..o.clone() };
        let head = self.head(&plain);
        Some(format!("{head}{}}}\n", s.text(o, clock)))
    }
}

impl TableState {
    /// A set with those of its elements alone that were asked for (`nft get element`): of intervals those that they lie in, in the
    /// order of the question. `Some(None)`: one is not there.
    pub(super) fn got(
        &self,
        name: &str,
        asked: &[Element],
        o: &Options,
        clock: Clock,
    ) -> Option<Option<String>> {
        let s = self.sets.iter().find(|s| s.name == name && !s.set.meter)?;
        let mut shown = s.kept.shown(&s.set, clock);
        let found = |key: &Expr| {
            if let Some(same) = shown.elements.iter().find(|e| e.key == *key) {
                return Some(same.clone());
            }
            let (first, last) = value::bounds(key);
            let holds = |e: &&Element| {
                let (from, to) = value::bounds(&e.key);
                from <= first && last <= to
            };
            shown.elements.iter().filter(|_| shown.interval).find(holds).cloned()
        };
        let Some(mut all) = asked.iter().map(|e| found(&e.key)).collect::<Option<Vec<Element>>>() else {
            return Some(None);
        };
        if !shown.interval {
            value::ordered(&mut all);
        }
        *shown.elements_mut() = all;
        shown.states.clear();
        let plain = Options { handles: false, ..o.clone() };
        let set = show::set(&s.name, &shown, s.comment.as_deref(), s.handle, o);
        Some(Some(format!("{}{set}}}\n", self.head(&plain))))
    }
}

impl SetState {
    fn text(&self, o: &Options, clock: Clock) -> String {
        let shown = self.kept.shown(&self.set, clock);
        show::set(&self.name, &shown, self.comment.as_deref(), self.handle, o)
    }
}

impl Ruleset {
    /// What is listed: of a family or all, of one table or all.
    pub(super) fn list(
        &self,
        (what, family, one): (What, Option<Family>, Option<&Name>),
        o: &Options,
        clock: Clock,
    ) -> String {
        let mut out = String::new();
        let is = |t: &TableState| match one {
            Some(name) => name.family == t.family && name.table == t.name,
            None => family.is_none_or(|f| f == t.family),
        };
        for table in self.tables.iter().filter(|t| is(t)) {
            match what {
                What::Ruleset => out.push_str(&table.text(o, clock)),
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
                What::Sets | What::Maps | What::Meters => {
                    out.push_str(&table.head(&Options::default()));
                    out.extend(table.set_texts(Some(what), o, clock));
                    out.push_str("}\n");
                }
                What::Objects(kind) => {
                    let texts = table.object_texts(Some(kind), o);
                    if !texts.is_empty() {
                        out.push_str(&table.head(&Options::default()));
                        out.extend(texts);
                        out.push_str("}\n");
                    }
                }
                What::Nothing => {}
            }
        }
        out
    }
}
