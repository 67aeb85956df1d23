//! Studies: published experiments run again, their numbers side by side with ours, each claim judged by code.
//!
//! A study is a folder of this crate's `studies/`: an experiment file for each experiment, `claims.toml` (what the study says),
//! `published.toml` (the numbers it printed). The folders are part of the program, so a study runs anywhere.

pub mod aqm_domains;
mod beside;
pub mod cbq_router;
pub mod cbq_tbf_clock;
pub mod evidence;
mod figures;
mod matrix;
mod numbers;
mod page;
mod parameters;
pub mod pfifo_fast_tos;
mod programs;
mod report;
mod rfc7928;
mod search;
mod summary;
mod texts;
mod verdict;
pub mod virtual_lab;

pub use figures::Figure;
pub use report::{ClaimRow, GroundClaim, GroundRow, NumberRow, Sensitivity, Shift, StudyReport, Variation};
pub use search::{Found, Search};
pub use verdict::Judgement;

use include_dir::{Dir, include_dir};
use parameters::Setting;
use penstock_lab::experiment::{self, Experiment};
use penstock_model::Diagnostic;
use serde::Deserialize;
use std::cell::Cell;
use std::path::Path;

static STUDIES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/studies");

/// A study there is.
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// Author, title, place, year.
    pub source: &'static str,
    how: How,
}

/// How a study's runs are made and judged.
enum How {
    /// From the run of each experiment, seed by seed; and the figures drawn from those of the first.
    Programs(programs::Judge, programs::Draw),
    /// The columns of tables, by `aqm_domains`.
    Domains,
    /// One queue management through scenarios, by `rfc7928`.
    Guidelines,
}

/// Repetitions, unless the caller says otherwise.
pub const SEEDS: u64 = 20;

/// What the runs of one seed gave.
struct Seen {
    /// Of each claim, in the order of `claims.toml`.
    judged: Vec<Judgement>,
    /// Of each published number, in the order of the study's rows.
    measured: Vec<Option<f64>>,
    /// What was drawn.
    figures: Vec<Figure>,
}

/// What is asked of a study.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    /// One part of it, or all.
    pub only: Option<&'a str>,
    /// Where the run folders go, those of the first seed.
    pub out: Option<&'a Path>,
    /// Whether a page with figures is asked for.
    pub page: bool,
    /// How many repetitions; `None`: [`SEEDS`].
    pub seeds: Option<u64>,
    /// Runs are cut to this length; `None`: the document's.
    pub duration: Option<penstock_model::Span>,
    /// The queue management under test, as tc takes it, for a study that asks for one.
    pub aqm: Option<&'a str>,
    /// Runs at a time; `None`: as many as there are processors. It changes nothing but the time.
    pub jobs: Option<usize>,
    /// Is told how many of how many runs are made.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

impl Matrix<'_> {
    /// Whether figures are drawn: for a page or for a folder.
    fn draws(&self) -> bool {
        self.page || self.out.is_some()
    }
}

/// All studies, alphabetical.
pub static LIST: &[Study] = &[
    Study {
        name: "aqm-domains",
        source: "S. Mišković, G. Petrović, Lj. Trajković, Interaction of conventional IP networks and networks with AQM, 2004",
        how: How::Domains,
    },
    Study {
        name: "cbq-router",
        source: "Falko Dressler, Ursula Hilgers, Routing mit QoS-Eigenschaften unter Linux, Universität Erlangen-Nürnberg, about 2000",
        how: How::Programs(cbq_router::judge, cbq_router::figures),
    },
    Study {
        name: "cbq-tbf-clock",
        source: "Eduardo Magaña, Edurne Izkue, Jesús Villadangos, Análisis de Prestaciones de un Planificador de Tráfico sobre \
                 Plataformas de Propósito General, SIGCOMM Latin America and Caribbean, San José, 2001",
        how: How::Programs(cbq_tbf_clock::judge, cbq_tbf_clock::figures),
    },
    Study {
        name: "pfifo-fast-tos",
        source: "Linuxにおけるpfifo_fastのTOSによる挙動 (pfifo_fast's behaviour by ToS on Linux), web article, undated",
        how: How::Programs(pfifo_fast_tos::judge, pfifo_fast_tos::figures),
    },
    Study {
        name: "rfc7928",
        source: "RFC 7928, Characterization Guidelines for Active Queue Management (AQM), 2016",
        how: How::Guidelines,
    },
    Study {
        name: "virtual-lab",
        source: "Kanwar Pal Singh, Linux Traffic Control in Virtual Environment, University of Alberta, 2011",
        how: How::Programs(virtual_lab::judge, virtual_lab::pictures),
    },
];

/// A claim as `claims.toml` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    id: String,
    experiment: String,
    says: String,
    check: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    claim: Vec<Claim>,
}

impl Study {
    /// The study of this name.
    pub fn find(name: &str) -> Option<&'static Study> {
        LIST.iter().find(|s| s.name == name)
    }

    /// Its experiments in the order of the document; those that only serve a claim come last.
    pub fn experiments(&self) -> Vec<&'static str> {
        match self.how {
            How::Programs(..) => self.files(),
            How::Domains => aqm_domains::PARTS.to_vec(),
            How::Guidelines => rfc7928::PARTS.to_vec(),
        }
    }

    /// What to do about an experiment that there is not.
    fn known(&self, name: &str) -> String {
        let known = self.experiments();
        let near = experiment::meant(name, &known);
        let near = near.map(|near| format!("did you mean {near}? ")).unwrap_or_default();
        format!("{near}it has {}", known.join(", "))
    }

    /// The files that are experiments.
    fn files(&self) -> Vec<&'static str> {
        let stem = |f: &include_dir::File<'static>| {
            let path = f.path();
            let is_experiment = path.extension().is_some_and(|e| e == "toml")
                && f.contents_utf8().is_some_and(|t| t.lines().any(|l| l.starts_with("base")));
            is_experiment.then(|| path.file_stem().and_then(|s| s.to_str())).flatten()
        };
        let folder = STUDIES.get_dir(self.name);
        let mut names: Vec<&'static str> = folder.into_iter().flat_map(Dir::files).filter_map(stem).collect();
        names.sort_by_key(|n| order(n));
        names
    }

    /// An experiment of it, read.
    ///
    /// # Errors
    /// There is none of that name, with those there are; what is wrong with the file.
    pub fn experiment(&self, name: &str) -> Result<Experiment, Vec<Diagnostic>> {
        self.read(name, &Setting::stated()).map(|(experiment, _)| experiment)
    }

    /// An experiment with a parameter at another value, and whether any file of it says so.
    fn read(&self, name: &str, setting: &Setting) -> Result<(Experiment, bool), Vec<Diagnostic>> {
        let path = format!("{}/{name}.toml", self.name);
        let Some(text) = STUDIES.get_file(&path).and_then(include_dir::File::contents_utf8) else {
            let help = self.known(name);
            let message = format!("study {} has no experiment \"{name}\"", self.name);
            return Err(vec![Diagnostic::error(message).help(help)]);
        };
        let changed = Cell::new(false);
        let set = |path: &str, text: &str| {
            let file = path.strip_prefix(self.name).map_or(path, |p| p.trim_start_matches('/'));
            let other = setting.apply(file, text);
            changed.set(changed.get() || other.is_some());
            other.unwrap_or_else(|| text.to_owned())
        };
        let experiment = experiment::parse_with(&set(&path, text), &path, &|path| {
            let file =
                STUDIES.get_file(path).ok_or_else(|| "there is no such file in the study".to_owned())?;
            let text = file.contents_utf8().ok_or_else(|| "it is not a text file".to_owned())?;
            Ok(set(path, text))
        })?;
        Ok((experiment, changed.get()))
    }

    /// Runs all its experiments over the seeds, or what the part named needs, and judges. The folders of the first seed's runs are written
    /// below `out`, if given.
    ///
    /// # Errors
    /// There is no such part; an experiment that cannot be read or run; a folder that cannot be written.
    pub fn run(&self, ask: &Matrix<'_>) -> Result<StudyReport, Vec<Diagnostic>> {
        if let Some(name) = ask.only.filter(|o| !self.experiments().contains(o)) {
            let part = if matches!(self.how, How::Programs(..)) { "experiment" } else { "part" };
            let message = format!("study {} has no {part} \"{name}\"", self.name);
            let help = self.known(name);
            return Err(vec![Diagnostic::error(message).help(help)]);
        }
        if ask.aqm.is_some() && !matches!(self.how, How::Guidelines) {
            let message = format!("study {} takes no --aqm: it has its own queues", self.name);
            return Err(vec![Diagnostic::error(message).help("penstock study rfc7928 --aqm KIND")]);
        }
        let seeds = ask.seeds.unwrap_or(SEEDS);
        let mut seen = self.runs(ask, &[Setting::stated()], seeds)?.pop().unwrap_or_default();
        let mut report =
            StudyReport { study: self.name, source: self.source, seeds, ..StudyReport::default() };
        let wanted = |experiment: &str| ask.only.is_none_or(|o| o == experiment);
        for (n, claim) in self.claims().iter().enumerate().filter(|(_, c)| wanted(&c.experiment)) {
            let judged: Vec<Judgement> = seen.iter().map(|s| s.judged[n].clone()).collect();
            report.claims.push(self.claim_row(claim, &judged));
        }
        for (n, mut row) in self.rows().into_iter().enumerate().filter(|(_, r)| wanted(&r.experiment)) {
            let values: Vec<f64> = seen.iter().filter_map(|s| s.measured[n]).collect();
            row.measured = texts::median(&values);
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.range = (values.len() > 1).then_some([least, most]);
            report.numbers.push(row);
        }
        let figures: Vec<Vec<Figure>> = seen.iter_mut().map(|s| std::mem::take(&mut s.figures)).collect();
        let drawn = self.drawn(&figures);
        match self.how {
            How::Programs(..) => {}
            How::Domains => report.remark = aqm_domains::remark(&report.numbers, seeds),
            How::Guidelines => {
                let aqm = ask.aqm.unwrap_or_default();
                report.remark = rfc7928::remark(aqm);
                report.pictures = rfc7928::pictures(aqm, &drawn, &report);
            }
        }
        if ask.draws() {
            report.page = page::page(self, &report, &drawn);
        }
        if let Some(out) = ask.out.filter(|_| !matches!(self.how, How::Guidelines)) {
            write(&report, &drawn, out).map_err(|e| vec![Diagnostic::error(e)])?;
        }
        Ok(report)
    }

    /// Makes the runs: what they give by setting and seed.
    fn runs(
        &self,
        ask: &Matrix<'_>,
        settings: &[Setting],
        seeds: u64,
    ) -> Result<Vec<Vec<Seen>>, Vec<Diagnostic>> {
        match self.how {
            How::Programs(judge, draw) => {
                programs::runs(self, self.files(), (judge, draw), ask, settings, seeds)
            }
            How::Domains => aqm_domains::runs(self, ask, settings, seeds),
            How::Guidelines => rfc7928::runs(self, ask, seeds),
        }
    }

    /// Its numbers, before anything is measured.
    fn rows(&self) -> Vec<NumberRow> {
        match self.how {
            How::Programs(..) => programs::rows(self),
            How::Domains => aqm_domains::rows(self.text("published.csv")),
            How::Guidelines => Vec::new(),
        }
    }

    /// A claim with what the judges of all seeds say; none, if it is not run.
    fn claim_row(&self, claim: &Claim, seeds: &[Judgement]) -> ClaimRow {
        let (judged, held) = match seeds {
            [] => (Judgement::open("it was not run".to_owned()), 0),
            all => Judgement::over(all),
        };
        ClaimRow {
            id: claim.id.clone(),
            study: self.name,
            experiment: claim.experiment.clone(),
            says: claim.says.clone(),
            check: claim.check.clone(),
            verdict: judged.verdict,
            holds_in: held,
            seeds: seeds.len(),
            fitted: self.fitted_to(&claim.id),
            published: judged.published,
            measured: judged.measured,
            note: judged.note,
        }
    }

    /// What the study says, claim by claim.
    fn claims(&self) -> Vec<Claim> {
        self.table::<Claims>("claims.toml").claim
    }
    /// A text file of the study. They are part of the program and a test reads them all.
    fn text(&self, name: &str) -> &'static str {
        self.find_text(name).expect("every study has its tables")
    }
    /// The same of a file that may not be there.
    fn find_text(&self, name: &str) -> Option<&'static str> {
        STUDIES.get_file(format!("{}/{name}", self.name)).and_then(include_dir::File::contents_utf8)
    }
    /// A data file of the study. They are part of the program and a test reads them all.
    fn table<T: serde::de::DeserializeOwned>(&self, name: &str) -> T {
        toml::from_str(self.text(name)).expect("the study's tables are valid")
    }
}

/// Writes the page and the figures.
fn write(report: &StudyReport, drawn: &[Figure], folder: &Path) -> Result<(), String> {
    figures::write(drawn, &folder.join("figures"))?;
    let path = folder.join("report.html");
    penstock_files::replace(&path, &report.page).map_err(|e| format!("{}: {e}", path.display()))
}

/// Document order: by the numbers of the name's head (`10.2-marks` after `9.1-baseline`), claims' own runs last.
fn order(name: &str) -> (bool, Vec<u32>, String) {
    let claim = name.strip_prefix("claim-").map(|rest| {
        let digits = rest.trim_start_matches(|c: char| c.is_ascii_uppercase());
        digits.chars().take_while(char::is_ascii_digit).collect::<String>()
    });
    let head = name.split('-').next().unwrap_or_default();
    let numbers: Vec<u32> = head.split('.').filter_map(|n| n.parse().ok()).collect();
    let numbers = claim.as_ref().and_then(|n| n.parse().ok()).map_or(numbers, |n| vec![n]);
    (claim.is_some(), numbers, name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn programs() -> impl Iterator<Item = &'static Study> {
        LIST.iter().filter(|s| matches!(s.how, How::Programs(..)))
    }

    #[test]
    fn every_experiment_of_every_study_reads() {
        for study in LIST {
            let folder = STUDIES.get_dir(study.name).unwrap();
            let files = folder.files().map(include_dir::File::path);
            let data = ["claims", "figures", "parameters", "published"];
            let names: Vec<&str> = files
                .filter(|p| p.extension().is_some_and(|e| e == "toml"))
                .map(|p| p.file_stem().unwrap().to_str().unwrap())
                .filter(|n| !data.contains(n))
                .collect();
            assert!(names.len() >= 6, "{names:?}");
            for name in names {
                if let Err(faults) = study.experiment(name) {
                    panic!(
                        "{name}: {}",
                        faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
                    );
                }
            }
        }
    }

    #[test]
    fn tables_name_experiments_that_exist() {
        for study in LIST {
            let names = study.experiments();
            assert!(study.claims().iter().all(|c| names.contains(&c.experiment.as_str())));
        }
        for study in programs() {
            let names = study.experiments();
            assert!(names.len() >= 6, "{names:?}");
            let numbers: numbers::Numbers = study.table("published.toml");
            assert!(numbers.number.iter().all(|n| names.contains(&n.experiment.as_str())));
        }
    }

    /// What the documents describe and do not run: their expectations are met.
    #[test]
    fn what_is_only_described_is_run() {
        for (name, experiment, expects) in
            [("virtual-lab", "10-ways", 3), ("virtual-lab", "11-conclusions", 3)]
        {
            let experiment =
                Study::find(name).unwrap().experiment(experiment).unwrap_or_else(|d| panic!("{}", d[0]));
            let mut options =
                penstock_lab::run::Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} };
            let outcome =
                penstock_lab::run::run(&experiment, &mut options).unwrap_or_else(|d| panic!("{}", d[0]));
            assert_eq!(outcome.record.expects.len(), expects);
            for e in &outcome.record.expects {
                assert!(e.ok, "{}: {} is {:?}, not {}", experiment.title, e.what, e.measured, e.value);
            }
        }
    }

    /// A sample of each study; the whole is `penstock study NAME`.
    #[test]
    fn samples_hold() {
        let samples: [(&str, &[&str], &[&str]); 3] = [
            ("cbq-router", &["4.2-u32-tos"], &["CR3"]),
            ("cbq-tbf-clock", &["6.2.1-figure-14"], &["CT34", "CT35", "CT36", "CT37"]),
            ("pfifo-fast-tos", &["1-none", "2-minimal-delay"], &["PF3", "PF4", "PF5"]),
        ];
        for (name, experiments, claims) in samples {
            let study = Study::find(name).unwrap();
            let How::Programs(judge, _) = study.how else { panic!("{name} has no programs") };
            let ask = Matrix { jobs: None, ..nothing() };
            let seen = programs::runs(
                study,
                experiments.to_vec(),
                (judge, |_| Vec::new()),
                &ask,
                &[Setting::stated()],
                1,
            )
            .unwrap_or_else(|d| panic!("{}", d[0]));
            for claim in claims {
                let at = study.claims().iter().position(|c| c.id == *claim).unwrap();
                let judged = &seen[0][0].judged[at];
                assert!(judged.holds(), "{claim}: {} {}: {}", judged.verdict, judged.measured, judged.note);
            }
            // What has not run cannot be judged, and is not taken to hold.
            let nothing = judge(claims[0], &evidence::Evidence::default());
            assert_eq!(nothing.verdict, "open");
        }
    }

    fn nothing() -> Matrix<'static> {
        Matrix {
            only: None,
            out: None,
            page: false,
            seeds: None,
            duration: None,
            aqm: None,
            jobs: None,
            progress: &|_, _| {},
        }
    }

    #[test]
    fn a_part_that_is_not_there_is_named() {
        let ask = Matrix { only: Some("table-9"), ..nothing() };
        let faults = Study::find("aqm-domains").unwrap().run(&ask).unwrap_err();
        assert_eq!(faults[0].message, "study aqm-domains has no part \"table-9\"");
        let ask = Matrix { aqm: Some("pie"), ..nothing() };
        let faults = Study::find("virtual-lab").unwrap().run(&ask).unwrap_err();
        assert_eq!(faults[0].message, "study virtual-lab takes no --aqm: it has its own queues");
    }

    #[test]
    fn document_order() {
        let mut names = ["claim-VL2", "10.1-marks", "9.1-baseline", "4-ping", "claim-VL10", "6.1-htb-10mbit"];
        names.sort_by_key(|n| order(n));
        assert_eq!(
            names,
            ["4-ping", "6.1-htb-10mbit", "9.1-baseline", "10.1-marks", "claim-VL2", "claim-VL10"]
        );
    }
}
