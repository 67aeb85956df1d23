//! A study writes the same bytes however it is run.

#[path = "../../penstock-lab/tests/folders/mod.rs"]
mod folders;

use folders::{files, scratch};
use penstock_model::Span;
use penstock_study::{Matrix, Study};

/// However many threads make the runs of a study: the same folders, the same words.
#[test]
fn the_number_of_threads_changes_no_byte() {
    let folder = scratch("jobs");
    let studies = [("aqm-domains", Some("table-1"), 2), ("pfifo-fast-tos", None, 1)];
    for (name, only, seeds) in studies {
        let study = Study::find(name).unwrap();
        let made = |jobs: usize| {
            let out = folder.join(format!("{name}-{jobs}"));
            let ask = Matrix {
                only,
                out: Some(&out),
                page: false,
                seeds: Some(seeds),
                duration: Some(Span::from_secs(3)),
                aqm: None,
                jobs: Some(jobs),
                progress: &|_, _| {},
            };
            let report = study.run(&ask).unwrap_or_else(|d| panic!("{}", d[0]));
            (report.text(), files(&out))
        };
        let (text, bytes) = made(1);
        assert!(bytes.len() > 5, "{name}: {}", bytes.len());
        for jobs in [2, 8] {
            let (other, others) = made(jobs);
            assert_eq!(text, other, "{name} with {jobs} threads");
            assert!(bytes == others, "{name} with {jobs} threads writes other bytes");
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// A parameter at another value is a run of its own where a file says so, and the study's own run where none does, in any order.
#[test]
fn what_parameters_decide_is_the_same_with_any_threads() {
    let study = Study::find("pfifo-fast-tos").unwrap();
    let told = |jobs: usize| {
        let ask = Matrix {
            only: None,
            out: None,
            page: false,
            seeds: Some(1),
            duration: Some(Span::from_secs(1)),
            aqm: None,
            jobs: Some(jobs),
            progress: &|_, _| {},
        };
        study.sensitivity(&ask).unwrap_or_else(|d| panic!("{}", d[0])).text()
    };
    let one = told(1);
    assert!(one.contains("ring = 127 instead of ring = 63"), "{one}");
    assert_eq!(one, told(4));
}
