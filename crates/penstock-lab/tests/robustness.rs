//! Experiments that once hung, panicked or counted wrongly (`cargo xtask overload` keeps what it finds): each ends, and gives the same
//! bytes again.

use penstock_lab::experiment;
use penstock_lab::run::{Options, run};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Longest a case may take, on a machine that is busy.
const LONGEST: Duration = Duration::from_secs(120);

fn once(path: &Path) -> (String, Vec<u8>, Vec<String>) {
    let text = std::fs::read_to_string(path).unwrap();
    let parsed = experiment::parse(&text, "case.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    let outcome = run(&parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    let outcome = outcome.unwrap_or_else(|d| panic!("{}", d[0]));
    (outcome.record.to_json(), outcome.series.to_parquet().unwrap(), outcome.outputs)
}

#[test]
fn every_case_ends_and_repeats() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/robustness");
    let files = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut cases: Vec<PathBuf> = files.filter(|p| p.extension().is_some_and(|e| e == "toml")).collect();
    cases.sort();
    assert!(!cases.is_empty());
    for path in cases {
        let (done, end) = channel();
        let case = path.clone();
        let thread = std::thread::spawn(move || {
            assert!(once(&case) == once(&case), "run again it gives other bytes");
            let _ = done.send(());
        });
        // One that hangs leaves its thread behind; the test ends all the same.
        match end.recv_timeout(LONGEST) {
            Err(RecvTimeoutError::Timeout) => panic!("{}: no end within {LONGEST:?}", path.display()),
            _ => thread.join().unwrap_or_else(|_| panic!("{}: it panicked, see above", path.display())),
        }
    }
}
