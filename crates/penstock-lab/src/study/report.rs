//! A study's result as tables and as JSON.

use penstock_measure::table::{Align, Table};
use serde::Serialize;

/// What a study gave.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StudyReport {
    /// Its name.
    #[serde(skip)]
    pub study: &'static str,
    /// What was published and where.
    #[serde(skip)]
    pub source: &'static str,
    /// Its claims, judged.
    pub claims: Vec<ClaimRow>,
    /// Its numbers, published and measured.
    pub numbers: Vec<NumberRow>,
}

/// One claim.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimRow {
    /// `VL1` …
    pub id: String,
    /// The study.
    pub study: &'static str,
    /// The experiment it belongs to.
    pub experiment: String,
    /// What the study says.
    pub says: String,
    /// How it is checked.
    pub check: String,
    /// `holds`, `fails`, `open`.
    pub verdict: &'static str,
    /// What the study printed.
    pub published: String,
    /// What the runs showed.
    pub measured: String,
    /// Why, or on what terms.
    pub note: String,
}

/// One number.
#[derive(Clone, Debug, Serialize)]
pub struct NumberRow {
    /// The experiment.
    pub experiment: String,
    /// What was measured: host, command, result.
    pub quantity: String,
    /// Its unit.
    pub unit: String,
    /// What the study printed.
    pub published: f64,
    /// What the run showed; absent where it measured nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
}

impl NumberRow {
    /// Difference from the published number, as a share of it.
    pub fn difference(&self) -> Option<f64> {
        self.measured.map(|m| (m - self.published) / self.published)
    }
}

impl StudyReport {
    /// How many claims have this verdict.
    pub fn count(&self, verdict: &str) -> usize {
        self.claims.iter().filter(|c| c.verdict == verdict).count()
    }
    /// Median of the relative differences (without sign) of the numbers of a unit.
    pub fn median_difference(&self, unit: &str) -> Option<f64> {
        let mut all: Vec<f64> = self
            .numbers
            .iter()
            .filter(|n| n.unit == unit)
            .filter_map(|n| n.difference().map(f64::abs))
            .collect();
        all.sort_by(f64::total_cmp);
        match all.len() {
            0 => None,
            n if n % 2 == 1 => Some(all[n / 2]),
            n => Some((all[n / 2 - 1] + all[n / 2]) / 2.0),
        }
    }

    /// The report as text: numbers, claims, what to make of them.
    pub fn text(&self) -> String {
        let mut numbers = Table::new(&[
            ("experiment", Align::Left),
            ("quantity", Align::Left),
            ("unit", Align::Left),
            ("published", Align::Right),
            ("measured", Align::Right),
            ("difference", Align::Right),
        ]);
        for n in &self.numbers {
            let measured = n.measured.map_or("–".to_owned(), |m| format!("{m:.3}"));
            let difference = n.difference().map_or("–".to_owned(), |d| format!("{:+.1} %", d * 100.0));
            let published = format!("{:.3}", n.published);
            numbers.row([
                n.experiment.clone(),
                n.quantity.clone(),
                n.unit.clone(),
                published,
                measured,
                difference,
            ]);
        }
        let mut text = format!("{}\n{}\n\n{}\n", self.study, self.source, numbers.text(0));
        for c in &self.claims {
            text.push_str(&format!("{:5} {:5}  {}\n", c.id, c.verdict, c.says));
            if !c.published.is_empty() || !c.measured.is_empty() {
                text.push_str(&format!(
                    "             published: {}\n             measured:  {}\n",
                    c.published, c.measured
                ));
            }
            if !c.note.is_empty() {
                text.push_str(&format!("             {}\n", c.note));
            }
        }
        let (holds, fails, open) = (self.count("holds"), self.count("fails"), self.count("open"));
        text.push_str(&format!("\n{holds} claims hold, {fails} fail, {open} are open."));
        let median = |unit| self.median_difference(unit).map(|m| format!("{:.1} % for {unit}", m * 100.0));
        let medians: Vec<String> = ["Mbit/s", "ms"].into_iter().filter_map(median).collect();
        if !medians.is_empty() {
            text.push_str(&format!(" Median difference of the numbers: {}.", medians.join(", ")));
        }
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_one_unit() {
        let row = |unit: &str, published, measured| NumberRow {
            experiment: String::new(),
            quantity: String::new(),
            unit: unit.to_owned(),
            published,
            measured,
        };
        let numbers = vec![
            row("ms", 2.0, Some(2.2)),
            row("ms", 1.0, Some(1.0)),
            row("Mbit/s", 10.0, Some(5.0)),
            row("ms", 1.0, None),
        ];
        let report = StudyReport { numbers, ..StudyReport::default() };
        assert!((report.median_difference("ms").unwrap() - 0.05).abs() < 1e-9);
        assert_eq!(report.median_difference("s"), None);
    }
}
