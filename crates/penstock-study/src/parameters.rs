//! What a study's document does not say and had to be taken: each value, how it was found, the claims it was fitted to, and the range that
//! it may plausibly have.

use super::report::{Shift, Variation};
use super::{ClaimRow, Judgement, Matrix, Sensitivity, Study};
use penstock_model::Diagnostic;
use serde::Deserialize;

/// Seeds of each setting, unless the caller says otherwise.
const SEEDS: u64 = 5;

/// A free parameter as `parameters.toml` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameter {
    /// What it is.
    pub(super) name: String,
    /// Its value in words.
    pub(super) value: String,
    /// How the value was found.
    pub(super) found: String,
    /// Claims that it was fitted to: they hold by construction.
    #[serde(default)]
    pub(super) fitted: Vec<String>,
    /// Where it stands; empty for all files of the study.
    #[serde(default)]
    pub(super) files: Vec<String>,
    /// The text that gives it.
    pub(super) text: String,
    /// What may stand there instead.
    pub(super) range: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    #[serde(default)]
    pub(super) parameter: Vec<Parameter>,
}

/// A study's files with parameters at other values, or as they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Setting {
    changes: Vec<(Parameter, String)>,
}

impl Setting {
    /// The study's own.
    pub(super) fn stated() -> Setting {
        Setting::default()
    }
    /// The same with one parameter more at another value.
    pub(super) fn with(&self, parameter: &Parameter, to: &str) -> Setting {
        let mut changes = self.changes.clone();
        changes.push((parameter.clone(), to.to_owned()));
        Setting { changes }
    }
    /// A file's text under it, if that differs from what it was.
    pub(super) fn apply(&self, file: &str, text: &str) -> Option<String> {
        let mut other = None;
        for (parameter, to) in &self.changes {
            let meant = parameter.files.is_empty() || parameter.files.iter().any(|f| f == file);
            let now: &str = other.as_deref().unwrap_or(text);
            if meant && now.contains(&parameter.text) {
                other = Some(now.replace(&parameter.text, to));
            }
        }
        other
    }
}

/// All values of the parameters but the stated ones.
fn settings(parameters: &[Parameter]) -> Vec<Setting> {
    let of = |p: &Parameter| {
        let all = p.range.iter().map(|to| Setting { changes: vec![(p.clone(), to.clone())] });
        all.collect::<Vec<Setting>>()
    };
    parameters.iter().flat_map(of).collect()
}

impl Study {
    /// Its free parameters.
    pub(super) fn parameters(&self) -> Vec<Parameter> {
        if self.find_text("parameters.toml").is_none() {
            return Vec::new();
        }
        self.table::<Parameters>("parameters.toml").parameter
    }

    /// Names of the parameters that were fitted to a claim.
    pub(super) fn fitted_to(&self, claim: &str) -> Vec<String> {
        let fitted = |p: &Parameter| p.fitted.iter().any(|c| c == claim);
        self.parameters().into_iter().filter(fitted).map(|p| p.name).collect()
    }

    /// Runs the study once for each value that a free parameter may have, and says which verdicts change.
    ///
    /// # Errors
    /// It has no free parameters; an experiment that cannot be run with such a value.
    pub fn sensitivity(&self, ask: &Matrix<'_>) -> Result<Sensitivity, Vec<Diagnostic>> {
        let parameters = self.parameters();
        if parameters.is_empty() {
            let message = format!("study {} has no free parameters to vary", self.name);
            return Err(vec![Diagnostic::error(message)]);
        }
        let mut all = vec![Setting::stated()];
        all.extend(settings(&parameters));
        let seeds = ask.seeds.unwrap_or(SEEDS);
        let claims: Vec<ClaimRow> = self.claims().iter().map(|c| self.claim_row(c, &[])).collect();
        let over: Vec<Vec<&'static str>> = self
            .runs(ask, &all, seeds)?
            .iter()
            .map(|seen| {
                let of = |n: usize| {
                    let judged: Vec<Judgement> = seen.iter().map(|s| s.judged[n].clone()).collect();
                    Judgement::over(&judged).0.verdict
                };
                (0..claims.len()).map(of).collect()
            })
            .collect();
        let hold = |verdicts: &[&str]| verdicts.iter().filter(|v| **v == Judgement::HOLDS).count();
        let mut report =
            Sensitivity { study: self.name, seeds, hold: hold(&over[0]), variations: Vec::new() };
        for (setting, verdicts) in all.iter().zip(&over).skip(1) {
            let Some((parameter, to)) = setting.changes.first() else { continue };
            let changes = claims.iter().zip(over[0].iter().zip(verdicts)).filter(|(_, (a, b))| a != b);
            let shifts = changes.map(|(claim, (from, to))| Shift { claim: claim.id.clone(), from, to });
            report.variations.push(Variation {
                parameter: parameter.name.clone(),
                value: parameter.value.clone(),
                found: parameter.found.clone(),
                stated: parameter.text.clone(),
                instead: to.clone(),
                hold: hold(verdicts),
                changes: shifts.collect(),
            });
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::super::LIST;
    use super::*;

    #[test]
    fn a_setting_touches_the_files_that_are_meant() {
        let parameter = Parameter {
            name: "ring".to_owned(),
            value: "16".to_owned(),
            found: String::new(),
            fitted: Vec::new(),
            files: vec!["network.toml".to_owned()],
            text: "ring = 15".to_owned(),
            range: vec!["ring = 0".to_owned(), "ring = 31".to_owned()],
        };
        let all = settings(&[parameter]);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].apply("network.toml", "{ ring = 15 }").as_deref(), Some("{ ring = 0 }"));
        assert_eq!(all[1].apply("network.toml", "{ ring = 7 }"), None);
        assert_eq!(all[1].apply("other.toml", "{ ring = 15 }"), None);
        assert_eq!(Setting::stated().apply("network.toml", "ring = 15"), None);
    }

    /// Each parameter stands where it is said to, in the README's table with its value, names claims that exist, and every value of its
    /// range can be read.
    #[test]
    fn parameters_are_where_they_are_said_to_be() {
        for study in LIST {
            let parameters = study.parameters();
            let ids: Vec<String> = study.claims().into_iter().map(|c| c.id).collect();
            let readme = study.text("README.md");
            for p in &parameters {
                let row = readme.lines().find(|l| l.starts_with(&format!("| {} |", p.name)));
                let row =
                    row.unwrap_or_else(|| panic!("{}: the README has no row \"{}\"", study.name, p.name));
                assert!(
                    row.contains(&format!("| {} |", p.value)),
                    "{}: {row} has not \"{}\"",
                    study.name,
                    p.value
                );
                assert!(!p.found.is_empty() && !p.range.is_empty(), "{}", p.name);
                for claim in &p.fitted {
                    assert!(ids.contains(claim), "{}: {} is fitted to {claim}", study.name, p.name);
                }
                // Neighbours are written as "AD2 to AD12".
                let ends = [p.fitted.first(), p.fitted.last()];
                assert!(ends.iter().flatten().all(|c| row.contains(c.as_str())), "{}: {row}", study.name);
            }
            for setting in settings(&parameters) {
                let mut touched = 0;
                for name in study.files() {
                    match study.read(name, &setting) {
                        Ok((_, changed)) => touched += usize::from(changed),
                        Err(faults) => panic!("{} {name} {:?}: {}", study.name, setting.changes, faults[0]),
                    }
                }
                assert!(touched > 0, "{}: {:?} touches nothing", study.name, setting.changes);
            }
        }
    }
}
