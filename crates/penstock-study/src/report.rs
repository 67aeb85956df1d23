//! A study's result as tables and as JSON.

use super::Judgement;
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
    /// How many seeds each experiment was run with; 0 on another ground.
    pub seeds: u64,
    /// Its claims, judged.
    pub claims: Vec<ClaimRow>,
    /// Its numbers, published and measured.
    pub numbers: Vec<NumberRow>,
    /// How the numbers fare, in a sentence or two.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remark: String,
    /// All of it on one page, an HTML file that needs nothing else; empty where none was asked for.
    #[serde(skip)]
    pub page: String,
    /// Pictures: name of the file, SVG.
    #[serde(skip)]
    pub pictures: Vec<(String, String)>,
    /// On another ground: each program's figures on the simulator and there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grounds: Vec<GroundRow>,
    /// On another ground: each claim's verdict by one run on the simulator and there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ground_claims: Vec<GroundClaim>,
    /// On another ground: experiments that it cannot run, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<(String, String)>,
}

/// A claim judged on the simulator and on another ground, on both by one run with Linux machines of today.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroundClaim {
    /// Its id.
    pub id: String,
    /// The verdict on the simulator.
    pub sim: &'static str,
    /// The verdict on the ground; `open`: it has no part that the claim needs.
    pub ground: &'static str,
    /// What the simulator's runs showed.
    pub measured_sim: String,
    /// What the ground's runs showed.
    pub measured_ground: String,
    /// Why it is open on the ground.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// One figure on the simulator and on another ground.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroundRow {
    /// The experiment.
    pub experiment: String,
    /// Program and figure.
    pub quantity: String,
    /// Its unit.
    pub unit: &'static str,
    /// On the simulator, every machine a Linux of today whose processor costs nothing.
    pub sim: f64,
    /// On the ground.
    pub ground: f64,
    /// Standard error of the difference, where the figures are means of samples: round trips of as many pings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
}

impl GroundRow {
    /// Difference of the ground from the simulator, as a share of it.
    pub fn difference(&self) -> f64 {
        if self.sim == self.ground { 0.0 } else { (self.ground - self.sim) / self.sim }
    }
    /// How large it may be: 2 % of a throughput, 5 % of a round trip.
    pub fn tolerance(&self) -> f64 {
        if self.unit == "ms" { 0.05 } else { 0.02 }
    }
    /// Whether it is not larger.
    pub fn agrees(&self) -> bool {
        self.difference().abs() <= self.tolerance()
    }
    /// Whether so few samples differ as much by chance: by less than two standard errors.
    pub fn is_chance(&self) -> bool {
        self.error.is_some_and(|e| (self.ground - self.sim).abs() < 2.0 * e)
    }
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
    /// `holds`, `fails`, `fails as printed`, `explored`, `open`.
    pub verdict: &'static str,
    /// In how many seeds it holds.
    pub holds_in: usize,
    /// Of how many.
    pub seeds: usize,
    /// The free parameters that were fitted to it: it holds by construction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fitted: Vec<String>,
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
    /// What the runs showed, the median of the seeds; absent where they measured nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// Least and greatest of the seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// What another program gives for it: mean, least, greatest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<[f64; 3]>,
    /// The table of the document and its columns that it is counted with; empty for none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub table: String,
    /// Why the printed number is not counted: a misprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded: Option<String>,
}

impl ClaimRow {
    /// In how many seeds it holds, and to what it was fitted.
    pub(super) fn terms(&self) -> String {
        let judged = self.verdict != Judgement::EXPLORED && self.verdict != Judgement::OPEN;
        let seeds = match judged && self.seeds > 1 {
            true => format!(" {}/{}", self.holds_in, self.seeds),
            false => String::new(),
        };
        let fitted = if self.fitted.is_empty() { "" } else { " (fitted)" };
        format!("{seeds}{fitted}")
    }
}

/// Which verdicts a study's free parameters decide.
#[derive(Clone, Debug, Serialize)]
pub struct Sensitivity {
    /// The study.
    pub study: &'static str,
    /// Seeds of each setting.
    pub seeds: u64,
    /// How many claims hold with the study's own values.
    pub hold: usize,
    /// A value of a parameter each.
    pub variations: Vec<Variation>,
}

/// One parameter at another value.
#[derive(Clone, Debug, Serialize)]
pub struct Variation {
    /// The parameter.
    pub parameter: String,
    /// Its value in words.
    pub value: String,
    /// How that was found.
    pub found: String,
    /// Its text as the study has it.
    pub stated: String,
    /// And instead.
    pub instead: String,
    /// How many claims hold with it.
    pub hold: usize,
    /// The verdicts that change.
    pub changes: Vec<Shift>,
}

/// A verdict that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shift {
    /// The claim.
    pub claim: String,
    /// With the study's own value.
    pub from: &'static str,
    /// With the other.
    pub to: &'static str,
}

impl Sensitivity {
    /// A paragraph for each parameter: its values, and what each changes.
    pub fn text(&self) -> String {
        // What differs of a text of several lines is in its last.
        let short = |text: &str| -> String {
            let last = text.lines().last().unwrap_or_default();
            last.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let mut text = format!(
            "{}: {} seeds of each setting; {} claims hold with the study's own\n",
            self.study, self.seeds, self.hold
        );
        let mut before = "";
        for v in &self.variations {
            if v.parameter != before {
                text.push_str(&format!("\n{}: {} ({})\n", v.parameter, v.value, v.found));
                before = &v.parameter;
            }
            let changes: Vec<String> =
                v.changes.iter().map(|s| format!("{} {} -> {}", s.claim, s.from, s.to)).collect();
            let changes =
                if changes.is_empty() { "no verdict changes".to_owned() } else { changes.join("; ") };
            text.push_str(&format!(
                "  {} instead of {}: {} hold; {changes}\n",
                short(&v.instead),
                short(&v.stated),
                v.hold
            ));
        }
        text
    }
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
    /// How many fail, as printed or at all.
    pub fn fails(&self) -> usize {
        self.count(Judgement::FAILS) + self.count(Judgement::AS_PRINTED)
    }
    /// How the claims stand, in a sentence.
    pub(super) fn score(&self) -> String {
        let fitted =
            self.claims.iter().filter(|c| c.verdict == Judgement::HOLDS && !c.fitted.is_empty()).count();
        let mut text = format!("{} of {} claims hold", self.count(Judgement::HOLDS), self.claims.len());
        if fitted > 0 {
            text.push_str(&format!(" ({fitted} of them were fitted to)"));
        }
        text.push_str(&format!(", {} fail", self.fails()));
        for (verdict, words) in [
            (Judgement::AS_PRINTED, "only as printed"),
            (Judgement::EXPLORED, "explored"),
            (Judgement::OPEN, "open"),
        ] {
            match self.count(verdict) {
                0 => {}
                n if verdict == Judgement::AS_PRINTED => text.push_str(&format!(" ({n} {words})")),
                n => text.push_str(&format!(", {n} {words}")),
            }
        }
        text.push('.');
        text
    }
    /// Median of the relative differences (without sign) of the numbers of a unit.
    pub fn median_difference(&self, unit: &str) -> Option<f64> {
        self.median(|n| n.unit == unit)
    }
    /// The tables its numbers are counted by, in the order of the numbers.
    fn tables(&self) -> Vec<&str> {
        let mut tables: Vec<&str> = Vec::new();
        for table in self.numbers.iter().map(|n| n.table.as_str()).filter(|t| !t.is_empty()) {
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        tables
    }
    /// The median differences of its tables, where it counts by tables.
    pub(super) fn medians(&self) -> Vec<(&str, f64)> {
        let tables = self.tables().into_iter();
        tables.filter_map(|t| self.median(|n| n.table == t).map(|m| (t, m))).collect()
    }
    fn median(&self, wanted: impl Fn(&NumberRow) -> bool) -> Option<f64> {
        let counted = self.numbers.iter().filter(|n| n.excluded.is_none() && wanted(n));
        let mut all: Vec<f64> = counted.filter_map(|n| n.difference().map(f64::abs)).collect();
        all.sort_by(f64::total_cmp);
        match all.len() {
            0 => None,
            n if n % 2 == 1 => Some(all[n / 2]),
            n => Some((all[n / 2 - 1] + all[n / 2]) / 2.0),
        }
    }

    /// The simulator and another ground side by side.
    fn grounds_text(&self) -> String {
        let mut table = Table::new(&[
            ("experiment", Align::Left),
            ("quantity", Align::Left),
            ("unit", Align::Left),
            ("sim", Align::Right),
            ("ground", Align::Right),
            ("difference", Align::Right),
            ("", Align::Left),
        ]);
        for row in &self.grounds {
            table.row([
                row.experiment.clone(),
                row.quantity.clone(),
                row.unit.to_owned(),
                format!("{:.3}", row.sim),
                format!("{:.3}", row.ground),
                format!("{:+.2} %", row.difference() * 100.0),
                match (row.agrees(), row.is_chance()) {
                    (true, _) => "",
                    (false, true) => "beyond, and less than two standard errors of so few pings",
                    (false, false) => "beyond",
                }
                .to_owned(),
            ]);
        }
        let mut text = format!("\n{}", table.text(0));
        for (name, why) in &self.left_out {
            text.push_str(&format!("left out: {name}: {why}\n"));
        }
        let agree = self.grounds.iter().filter(|r| r.agrees()).count();
        let all = self.grounds.len();
        text.push_str(&format!(
            "{agree} of {all} figures agree within 2 % of a throughput and 5 % of a mean round trip.\n"
        ));
        if self.ground_claims.is_empty() {
            return text;
        }
        let mut table = Table::new(&[
            ("claim", Align::Left),
            ("sim", Align::Left),
            ("ground", Align::Left),
            ("", Align::Left),
        ]);
        let judged: Vec<&GroundClaim> =
            self.ground_claims.iter().filter(|c| c.ground != Judgement::OPEN).collect();
        for c in &self.ground_claims {
            let told = match (c.ground, c.sim == c.ground) {
                (Judgement::OPEN, _) => c.why.clone(),
                (_, true) => String::new(),
                (_, false) => format!("sim: {}; ground: {}", c.measured_sim, c.measured_ground),
            };
            table.row([c.id.clone(), c.sim.to_owned(), c.ground.to_owned(), told]);
        }
        let same = judged.iter().filter(|c| c.sim == c.ground).count();
        text.push_str(&format!(
            "\n{}{same} of {} verdicts are the same on both; {} claims stay open: the ground has no part that they need.\n",
            table.text(0),
            judged.len(),
            self.ground_claims.len() - judged.len()
        ));
        text
    }

    /// The report as text: numbers, claims, what to make of them.
    pub fn text(&self) -> String {
        if !self.grounds.is_empty() || !self.left_out.is_empty() {
            return format!("{}\n{}\n{}", self.study, self.source, self.grounds_text());
        }
        let ranges = self.numbers.iter().any(|n| n.range.is_some());
        let witnesses = self.numbers.iter().any(|n| n.witness.is_some());
        let mut heads = vec![
            ("experiment", Align::Left),
            ("quantity", Align::Left),
            ("unit", Align::Left),
            ("published", Align::Right),
            (if ranges { "median" } else { "measured" }, Align::Right),
            ("difference", Align::Right),
            ("", Align::Left),
        ];
        if ranges {
            heads.push(("from .. to", Align::Right));
        }
        if witnesses {
            heads.extend([("ns-2", Align::Right), ("from .. to", Align::Right)]);
        }
        let range = |r: [f64; 2]| format!("{:.3} .. {:.3}", r[0], r[1]);
        let mut numbers = Table::new(&heads);
        for n in &self.numbers {
            let measured = n.measured.map_or("–".to_owned(), |m| format!("{m:.3}"));
            let difference = n.difference().map_or("–".to_owned(), |d| format!("{:+.1} %", d * 100.0));
            let published = format!("{:.3}", n.published);
            let difference = if n.published == 0.0 { "–".to_owned() } else { difference };
            let mut cells = vec![
                n.experiment.clone(),
                n.quantity.clone(),
                n.unit.clone(),
                published,
                measured,
                difference,
                n.excluded.as_ref().map_or(String::new(), |why| format!("not counted: {why}")),
            ];
            if ranges {
                cells.push(n.range.map_or(String::new(), range));
            }
            if witnesses {
                cells.push(n.witness.map_or(String::new(), |w| format!("{:.3}", w[0])));
                cells.push(n.witness.map_or(String::new(), |w| range([w[1], w[2]])));
            }
            numbers.row(cells);
        }
        let mut text = format!("{}\n{}\n\n{}\n", self.study, self.source, numbers.text(0));
        for c in &self.claims {
            text.push_str(&format!("{:5} {}{}  {}\n", c.id, c.verdict, c.terms(), c.says));
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
        if !self.remark.is_empty() {
            text.push_str(&format!("\n{}", self.remark));
        }
        text.push_str(&format!("\n{}", self.score()));
        if self.seeds > 1 {
            text.push_str(&format!(" Over {} seeds; a claim holds if it does in 9 of 10.", self.seeds));
        }
        let median = |unit| self.median_difference(unit).map(|m| format!("{:.1} % for {unit}", m * 100.0));
        let medians: Vec<String> = ["Mbit/s", "kbit/s", "ms"].into_iter().filter_map(median).collect();
        let tables = self.tables();
        for (table, m) in self.medians() {
            text.push_str(&format!("\nMedian difference of {table}: {:.1} %.", m * 100.0));
        }
        if !medians.is_empty() && tables.is_empty() {
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
    fn a_parameter_is_told_with_what_it_changes() {
        let variation = |instead: &str, changes| Variation {
            parameter: "ring".to_owned(),
            value: "64 places".to_owned(),
            found: "a common card".to_owned(),
            stated: "a\nring  = 63".to_owned(),
            instead: instead.to_owned(),
            hold: 3,
            changes,
        };
        let shift = Shift { claim: "PF5".to_owned(), from: "holds", to: "fails" };
        let variations =
            vec![variation("a\nring  = 127", vec![shift]), variation("a\nring  = 31", Vec::new())];
        let text = Sensitivity { study: "x", seeds: 5, hold: 4, variations }.text();
        let expected = "x: 5 seeds of each setting; 4 claims hold with the study's own\n\nring: 64 places (a common card)\n  ring = 127 \
                        instead of ring = 63: 3 hold; PF5 holds -> fails\n  ring = 31 instead of ring = 63: 3 hold; no verdict changes\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn medians_are_of_one_unit() {
        let row = |unit: &str, published, measured| NumberRow {
            experiment: String::new(),
            quantity: String::new(),
            unit: unit.to_owned(),
            published,
            measured,
            range: None,
            witness: None,
            table: String::new(),
            excluded: None,
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
