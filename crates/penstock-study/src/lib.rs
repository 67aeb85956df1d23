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
pub mod pfifo_fast_tos;
mod report;
mod rfc7928;
mod summary;
mod verdict;
pub mod virtual_lab;

pub use figures::Figure;
pub use report::{ClaimRow, GroundRow, NumberRow, StudyReport};
pub use verdict::Judgement;

use evidence::{Evidence, Run};
use include_dir::{Dir, include_dir};
use numbers::Numbers;
use penstock_lab::experiment::{self, Experiment};
use penstock_lab::many;
use penstock_lab::run::{self, Options};
use penstock_model::Diagnostic;
use serde::Deserialize;
use std::path::Path;
use summary::summarise;

static STUDIES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/studies");

/// A study there is.
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// Author, title, place, year.
    pub source: &'static str,
    how: How,
}

/// How a study's claims are judged.
enum How {
    /// From one run of each experiment; and the figures drawn from these.
    Programs(fn(&str, &Evidence) -> Judgement, fn(&Evidence) -> Vec<Figure>),
    /// From many runs over seeds, by the study's own module; and which parts of the document it has.
    Seeds { run: SeedsRun, parts: &'static [&'static str] },
}

/// Runs a study over seeds and judges it.
type SeedsRun = fn(&Study, &Matrix<'_>) -> Result<StudyReport, Vec<Diagnostic>>;

/// What is asked of a study.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    /// One part of it, or all.
    pub only: Option<&'a str>,
    /// Where the run folders go, those of the first seed.
    pub out: Option<&'a Path>,
    /// How many repetitions, where the study has any; `None`: as many as it asks for.
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

/// All studies, alphabetical.
pub static LIST: &[Study] = &[
    Study {
        name: "aqm-domains",
        source: "S. Mišković, G. Petrović, Lj. Trajković, Interaction of conventional IP networks and networks with AQM, 2004",
        how: How::Seeds {
            run: aqm_domains::run,
            parts: &[
                "figure-1",
                "figure-2",
                "table-1",
                "table-2",
                "figure-4",
                "table-3",
                "table-4",
                "table-5",
                "conclusions",
            ],
        },
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
        how: How::Seeds { run: rfc7928::run, parts: rfc7928::PARTS },
    },
    Study {
        name: "virtual-lab",
        source: "Kanwar Pal Singh, Linux Traffic Control in Virtual Environment, University of Alberta, 2011",
        how: How::Programs(virtual_lab::judge, |_| Vec::new()),
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
        if let How::Seeds { parts, .. } = self.how {
            return parts.to_vec();
        }
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
        let path = format!("{}/{name}.toml", self.name);
        let Some(text) = STUDIES.get_file(&path).and_then(include_dir::File::contents_utf8) else {
            let help = format!("it has {}", self.experiments().join(", "));
            let message = format!("study {} has no experiment \"{name}\"", self.name);
            return Err(vec![Diagnostic::error(message).help(help)]);
        };
        experiment::parse_with(text, &path, &|path| {
            let file =
                STUDIES.get_file(path).ok_or_else(|| "there is no such file in the study".to_owned())?;
            file.contents_utf8().map(str::to_owned).ok_or_else(|| "it is not a text file".to_owned())
        })
    }

    /// Runs all its experiments, or what the part named needs, and judges. Each run's folder is written below `out`, if given.
    ///
    /// # Errors
    /// There is no such part; an experiment that cannot be read or run; a folder that cannot be written.
    pub fn run(&self, ask: &Matrix<'_>) -> Result<StudyReport, Vec<Diagnostic>> {
        let Matrix { only, out, jobs, progress, .. } = *ask;
        let (judge, draw) = match self.how {
            How::Programs(judge, figures) => (judge, figures),
            How::Seeds { run, parts } => {
                if let Some(name) = only.filter(|o| !parts.contains(o)) {
                    let help = format!("it has {}", parts.join(", "));
                    return Err(vec![
                        Diagnostic::error(format!("study {} has no part \"{name}\"", self.name)).help(help),
                    ]);
                }
                return run(self, ask);
            }
        };
        let claims = self.claims();
        let numbers: Numbers = self.table("published.toml");
        let all = self.experiments();
        if let Some(name) = only {
            self.experiment(name)?;
        }
        let wanted = |experiment: &str| only.is_none_or(|o| o == experiment);
        let evidence = self.evidence(&all, out, jobs.unwrap_or_else(many::processors), progress)?;
        let mut report = StudyReport { study: self.name, source: self.source, ..StudyReport::default() };
        for claim in claims.iter().filter(|c| wanted(&c.experiment)) {
            let judged = judge(&claim.id, &evidence);
            report.claims.push(ClaimRow::judged(self.name, claim, judged));
        }
        for number in numbers.number.iter().filter(|n| wanted(&n.experiment)) {
            let measured = number.measured(&evidence);
            report.numbers.push(NumberRow {
                experiment: number.experiment.clone(),
                quantity: number.quantity.clone(),
                unit: number.unit.clone(),
                published: number.value,
                measured,
                range: None,
                witness: None,
                table: number.table.clone(),
                excluded: number.excluded.clone(),
            });
        }
        if let Some(folder) = out {
            let drawn = draw(&evidence);
            let path = folder.join("report.html");
            let made = figures::write(&drawn, &folder.join("figures")).and_then(|()| {
                penstock_files::replace(&path, page::page(&report, &drawn))
                    .map_err(|e| format!("{}: {e}", path.display()))
            });
            made.map_err(|e| vec![Diagnostic::error(e)])?;
        }
        Ok(report)
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

    /// Runs the experiments, as many at a time as there are processors; each is a world of its own, so the order in
    /// which they end changes nothing.
    fn evidence(
        &self,
        names: &[&str],
        out: Option<&Path>,
        jobs: usize,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Evidence, Vec<Diagnostic>> {
        let work = |at: usize| -> Result<Run, Vec<Diagnostic>> {
            let name = names[at];
            let e = self.experiment(name)?;
            let outcome = run::run(&e, &mut Options { seed: None, progress: &mut |_| {} })?;
            if let Some(folder) = out {
                std::fs::create_dir_all(folder)
                    .map_err(|e| e.to_string())
                    .and_then(|()| outcome.write(&folder.join(name)))
                    .map_err(|e| vec![Diagnostic::error(e)])?;
            }
            Ok(summarise(&outcome))
        };
        let told = |done| progress(done, names.len());
        let mut evidence = Evidence::default();
        for (at, run) in many::each(names.len(), jobs, &told, &work).into_iter().enumerate() {
            evidence.runs.insert(names[at].to_owned(), run?);
        }
        Ok(evidence)
    }
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
            let data = ["claims", "published"];
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
            let numbers: Numbers = study.table("published.toml");
            assert!(numbers.number.iter().all(|n| names.contains(&n.experiment.as_str())));
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
            let How::Programs(judge, _) = study.how else { panic!("{name} runs over seeds") };
            let evidence = study.evidence(experiments, None, many::processors(), &|_, _| {}).unwrap();
            for claim in claims {
                let judged = judge(claim, &evidence);
                assert!(judged.holds(), "{claim}: {} {}: {}", judged.verdict, judged.measured, judged.note);
            }
            // What has not run cannot be judged, and is not taken to hold.
            let nothing = judge(claims[0], &Evidence::default());
            assert_eq!(nothing.verdict, "open");
        }
    }

    #[test]
    fn a_part_that_is_not_there_is_named() {
        let ask = Matrix {
            only: Some("table-9"),
            out: None,
            seeds: None,
            duration: None,
            aqm: None,
            jobs: None,
            progress: &|_, _| {},
        };
        let faults = Study::find("aqm-domains").unwrap().run(&ask).unwrap_err();
        assert_eq!(faults[0].message, "study aqm-domains has no part \"table-9\"");
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
