//! A search over free parameters: every combination of the values that some of them may have, by how near the numbers come to the published.

use super::parameters::{Parameter, Setting};
use super::{Judgement, Matrix, Study, texts};
use penstock_measure::table::{Align, Table};
use penstock_model::Diagnostic;
use serde::Serialize;

/// Seeds of each combination, unless the caller says otherwise.
const SEEDS: u64 = 2;
/// Most combinations of one search.
const MOST: usize = 1000;

/// What a search found.
#[derive(Clone, Debug, Serialize)]
pub struct Search {
    /// The study.
    pub study: &'static str,
    /// Seeds of each combination.
    pub seeds: u64,
    /// The parameters that were varied.
    pub parameters: Vec<String>,
    /// The combinations, the nearest first.
    pub found: Vec<Found>,
}

/// A combination of values.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// Of each parameter, as the study's files write it.
    pub values: Vec<String>,
    /// Whether these are the study's own.
    pub stated: bool,
    /// Median of the absolute differences from the published numbers, as a share of them; none where nothing was measured.
    pub difference: Option<f64>,
    /// How many claims hold.
    pub hold: usize,
}

impl Search {
    /// The combinations as a table.
    pub fn text(&self) -> String {
        let mut columns = vec![("difference", Align::Right), ("hold", Align::Right)];
        columns.extend(self.parameters.iter().map(|p| (p.as_str(), Align::Left)));
        columns.push(("", Align::Left));
        let mut table = Table::new(&columns);
        for f in &self.found {
            let mut cells = vec![
                f.difference.map_or("–".to_owned(), |d| format!("{:.1} %", d * 100.0)),
                f.hold.to_string(),
            ];
            cells.extend(f.values.iter().cloned());
            cells.push(if f.stated { "the study's own" } else { "" }.to_owned());
            table.row(cells);
        }
        format!(
            "{}: {} combinations, {} seeds of each; median difference from the published numbers, and how many claims hold\n\n{}",
            self.study,
            self.found.len(),
            self.seeds,
            table.text(0)
        )
    }
}

/// What differs of a text of several lines is in its last.
fn short(text: &str) -> String {
    text.lines().last().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// All combinations of the parameters' values; the first is the study's own. Each with its values as text.
fn combinations(parameters: &[Parameter]) -> Vec<(Setting, Vec<String>)> {
    let mut all = vec![(Setting::stated(), Vec::new())];
    for p in parameters {
        let with = |(setting, values): &(Setting, Vec<String>)| {
            let own = (setting.clone(), [values.clone(), vec![short(&p.text)]].concat());
            let others =
                p.range.iter().map(|to| (setting.with(p, to), [values.clone(), vec![short(to)]].concat()));
            std::iter::once(own).chain(others).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

impl Study {
    /// Runs the study with every combination of the values that the parameters may have whose names contain one of `wanted`.
    ///
    /// # Errors
    /// A name that no parameter contains; too many combinations; an experiment that cannot be run.
    pub fn search(&self, ask: &Matrix<'_>, wanted: &[String]) -> Result<Search, Vec<Diagnostic>> {
        let all = self.parameters();
        let fits = |p: &Parameter, name: &str| p.name.to_lowercase().contains(&name.to_lowercase());
        if let Some(name) = wanted.iter().find(|name| !all.iter().any(|p| fits(p, name))) {
            let names: Vec<&str> = all.iter().map(|p| p.name.as_str()).collect();
            let message = format!("study {} has no free parameter \"{name}\"", self.name);
            return Err(vec![Diagnostic::error(message).help(format!("it has {}", names.join("; ")))]);
        }
        let parameters: Vec<Parameter> =
            all.into_iter().filter(|p| wanted.iter().any(|name| fits(p, name))).collect();
        let count = parameters
            .iter()
            .try_fold(1usize, |n, p| n.checked_mul(p.range.len() + 1))
            .filter(|n| *n <= MOST);
        if count.is_none() {
            let message = format!("these are more than {MOST} combinations");
            return Err(vec![Diagnostic::error(message).help("name fewer parameters")]);
        }
        let (settings, values): (Vec<Setting>, Vec<Vec<String>>) =
            combinations(&parameters).into_iter().unzip();
        let seeds = ask.seeds.unwrap_or(SEEDS);
        let (rows, claims) = (self.rows(), self.claims().len());
        let mut found = Vec::new();
        for ((n, seen), values) in self.runs(ask, &settings, seeds)?.iter().enumerate().zip(values) {
            let difference = |(at, row): (usize, &super::NumberRow)| {
                let measured: Vec<f64> = seen.iter().filter_map(|s| s.measured[at]).collect();
                let row = super::NumberRow { measured: texts::median(&measured), ..row.clone() };
                row.difference().filter(|_| row.excluded.is_none() && row.published != 0.0).map(f64::abs)
            };
            let differences: Vec<f64> = rows.iter().enumerate().filter_map(difference).collect();
            let holds = |claim: &usize| {
                let judged: Vec<Judgement> = seen.iter().map(|s| s.judged[*claim].clone()).collect();
                Judgement::over(&judged).0.holds()
            };
            let hold = (0..claims).filter(holds).count();
            found.push(Found { values, stated: n == 0, difference: texts::median(&differences), hold });
        }
        let nearness = |f: &Found| f.difference.unwrap_or(f64::INFINITY);
        found.sort_by(|a, b| nearness(a).total_cmp(&nearness(b)));
        Ok(Search {
            study: self.name,
            seeds,
            parameters: parameters.into_iter().map(|p| p.name).collect(),
            found,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_combination_is_tried_once() {
        let all = Study::find("aqm-domains").unwrap().parameters();
        let red: Vec<Parameter> = all.into_iter().filter(|p| p.name.starts_with("RED")).collect();
        let combinations = combinations(&red);
        let values: BTreeSet<Vec<String>> = combinations.iter().map(|c| c.1.clone()).collect();
        assert_eq!((combinations.len(), values.len()), (12, 12));
        assert_eq!(combinations[0].1, ["thresh = \"25%\"", "maxthresh = \"75%\"", "q_weight = 0.002"]);
        // Each changes what it says, in one file of the study.
        let text = "thresh         = \"25%\"\nmaxthresh      = \"75%\"\nq_weight       = 0.002\n";
        let last = combinations.last().unwrap().0.apply("DT-RED-gentle-72.toml", text).unwrap();
        assert_eq!(last, "thresh         = \"33%\"\nmaxthresh      = \"66%\"\nq_weight       = 0.004\n");
        assert_eq!(combinations[0].0.apply("DT-RED-gentle-72.toml", text), None);
    }

    #[test]
    fn a_search_finds_the_clock_s_cost_again() {
        let study = Study::find("pfifo-fast-tos").unwrap();
        let ask = Matrix {
            only: None,
            out: None,
            page: false,
            seeds: Some(1),
            duration: Some(penstock_model::Span::from_ms(200)),
            aqm: None,
            jobs: None,
            progress: &|_, _| {},
        };
        let name = study.parameters()[0].name.clone();
        let search = study.search(&ask, std::slice::from_ref(&name)).unwrap();
        assert_eq!(search.found.len(), study.parameters()[0].range.len() + 1);
        assert_eq!(search.found.iter().filter(|f| f.stated).count(), 1);
        assert!(search.text().contains("the study's own"), "{}", search.text());
        let none = study.search(&ask, &["moon".to_owned()]).unwrap_err();
        assert!(none[0].message.contains("has no free parameter \"moon\""));
    }
}
