//! `docs/cookbook.md`: each question is a file under `examples/questions`, whose expectations are the answer.

use penstock_lab::experiment;
use penstock_lab::run::{Options, run};
use std::path::{Path, PathBuf};

fn root(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(below)
}

/// Those of the page, and those that only show how something is written, with so many expectations at least.
#[test]
fn every_answer_is_what_the_run_shows() {
    let page = std::fs::read_to_string(root("docs/cookbook.md")).unwrap();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root("examples/questions")).unwrap().map(|f| f.unwrap().path()).collect();
    files.extend(["switch", "lte", "rrul"].map(|name| root(&format!("examples/{name}.toml"))));
    files.sort();
    assert!(files.len() >= 15 + 3);
    let mut wrong = Vec::new();
    for file in &files {
        let name = file.file_name().unwrap().to_string_lossy();
        let question = file.parent().unwrap().ends_with("questions");
        assert!(
            !question || page.contains(&format!("(../examples/questions/{name})")),
            "{name} is not in the cookbook"
        );
        let experiment = experiment::load(file).unwrap_or_else(|d| panic!("{}", d[0]));
        let mut options = Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} };
        let record = run(&experiment, &mut options).unwrap_or_else(|d| panic!("{name}: {}", d[0])).record;
        assert!(!record.expects.is_empty(), "{name} answers nothing");
        wrong.extend(record.warnings.iter().map(|w| format!("{name}: {}", w.message)));
        for expect in record.expects.iter().filter(|e| !e.ok) {
            wrong.push(format!("{name}: {} {}: {:?}", expect.what, expect.value, expect.measured));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Nothing on the page that is not there.
    for link in page.split("(../examples/questions/").skip(1) {
        let name = link.split(')').next().unwrap();
        assert!(root("examples/questions").join(name).is_file(), "{name}");
    }
}
