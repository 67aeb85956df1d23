//! `[sweep]`: what `penstock sweep` varies, how often it runs each point, and what it shows.
//!
//! What the paths under `set` lead to is found by `crate::sweep`, which puts the values into the text of the file.

use super::Builder;
use super::forms;
use super::read::{self, Faults, Table, Val};
use super::source::{Place, meant};
use penstock_lang::toml::key;
use toml::de::DeValue;

/// The table `[sweep]`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sweep {
    /// Where it begins.
    pub place: Place,
    /// How many seeds every point is run with.
    pub seeds: Option<u64>,
    /// How the points are chosen, a name of [`DESIGNS`].
    pub design: Option<&'static str>,
    /// How many points a random design has.
    pub points: Option<u64>,
    /// The figures that are shown, in the words of expectations.
    pub figures: Vec<(String, Place)>,
    /// Two figures between which compromises are sought.
    pub pareto: Vec<(String, Place)>,
    /// What is varied: path, its place, values.
    pub set: Vec<(String, Place, Given)>,
}

/// The values of one parameter as a file has them.
#[derive(Clone, PartialEq, Debug)]
pub enum Given {
    /// As on the command line: `10mbit,20mbit`, `1ms..20ms/5`.
    Text(String, Place),
    /// A list: each value as it is written in TOML.
    List(Vec<(String, Place)>),
}

/// Ways to choose points.
pub const DESIGNS: [&str; 3] = ["grid", "random", "latin"];

/// The design of this name; else what to write.
pub(crate) fn design(name: &str) -> Result<&'static str, String> {
    DESIGNS.into_iter().find(|d| *d == name).ok_or_else(|| match meant(name, &DESIGNS) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => {
            "there are grid, random (points drawn from the ranges) and latin (a Latin hypercube)".to_owned()
        }
    })
}

/// Most seeds, and most points of a random design.
pub(crate) const MOST: u64 = 1_000_000;

impl Builder<'_> {
    pub(super) fn read_sweep(&mut self, root: &mut Table<'_>, faults: &mut Faults<'_>) {
        let Some(value) = root.take("sweep") else { return };
        let Some(mut table) = Table::of(value, "[sweep]", &forms::SWEEP, faults) else { return };
        let mut sweep = Sweep { place: faults.place(value.span()), ..Sweep::default() };
        sweep.seeds = table.take("seeds").and_then(|v| read::integer("seeds", v, 1..MOST + 1, faults));
        sweep.points = table.take("points").and_then(|v| read::integer("points", v, 1..MOST + 1, faults));
        if let Some(value) = table.take("design")
            && let Some(name) = read::string("design", value, faults)
        {
            match design(&name) {
                Ok(name) => sweep.design = Some(name),
                Err(help) => faults.add(value.span(), format!("design: \"{name}\" is unknown"), help),
            }
        }
        let mut texts = |key: &'static str, faults: &mut Faults<'_>| -> Vec<(String, Place)> {
            let items = table.take(key).map(read::list).unwrap_or_default();
            let text = |v: Val<'_>| Some((read::string(key, v, faults)?, faults.place(v.span())));
            items.into_iter().filter_map(text).collect()
        };
        sweep.figures = texts("figures", faults);
        sweep.pareto = texts("pareto", faults);
        if let (1 | 3.., Some((_, place))) = (sweep.pareto.len(), sweep.pareto.last()) {
            let help = "write pareto = [\"backup throughput\", \"call owd p99\"]";
            faults.add(place.span.clone(), "pareto is not two figures", help);
        }
        match table.take("set") {
            Some(set) => settings(set, &mut Vec::new(), &mut sweep.set, faults),
            None => {
                let help = "add [sweep.set] and below it \"link.uplink.rate\" = [\"10mbit\", \"20mbit\"]";
                faults.add(value.span(), "[sweep] varies nothing", help);
            }
        }
        table.finish(faults);
        self.experiment.sweep = Some(sweep);
    }
}

/// The paths of a table and of those within it: `"link.up.rate" = …` and `link.up.rate = …` say the same.
fn settings(
    value: Val<'_>,
    above: &mut Vec<String>,
    out: &mut Vec<(String, Place, Given)>,
    faults: &mut Faults<'_>,
) {
    let Some(table) = Table::of(value, "[sweep.set]", &forms::SET, faults) else { return };
    for (name, span, value) in table.rest() {
        // A name with dots in quotes is a path of its own.
        let word = if above.is_empty() { name } else { key(&name) };
        above.push(word);
        let place = |span| Place { source: faults.index, span };
        let raw = |v: Val<'_>| (faults.source.text[v.span()].to_owned(), place(v.span()));
        match value.get_ref() {
            DeValue::Table(_) => settings(value, above, out, faults),
            DeValue::Array(items) if items.is_empty() => {
                faults.add(value.span(), "the list of values is empty", "write at least one value");
            }
            DeValue::Array(items) => {
                out.push((above.join("."), place(span), Given::List(items.iter().map(raw).collect())));
            }
            DeValue::String(text) => {
                out.push((above.join("."), place(span), Given::Text(text.to_string(), place(value.span()))));
            }
            _ => out.push((above.join("."), place(span), Given::List(vec![raw(value)]))),
        }
        above.pop();
    }
}
