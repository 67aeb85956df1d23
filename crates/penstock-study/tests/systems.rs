//! `docs/notes/systems.md` names what shows each system. That all of it exists is held here.

use penstock_study::{LIST, Study};
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(path: &str) -> Option<String> {
    std::fs::read_to_string(root().join(path)).ok()
}

/// Whether a word of the table names something there is.
fn exists(word: &str, claims: &[String]) -> bool {
    if let Some((file, test)) = word.split_once("::") {
        return text(file).is_some_and(|t| t.contains(&format!("fn {test}(")));
    }
    if let Some(name) = word.strip_prefix("examples/systems/") {
        // A file that no test runs shows nothing.
        let run =
            text("crates/penstock-lab/tests/systems.rs").is_some_and(|t| t.contains(&format!("\"{name}\"")));
        return run && text(word).is_some();
    }
    if word.starts_with("examples/") {
        return text(word).is_some();
    }
    if let Some(kind) = word.strip_prefix("vectors/") {
        return ["", ".jsonl", ".jsonl.xz", ".jsonl.gz"]
            .iter()
            .any(|end| root().join(format!("vectors/{kind}{end}")).exists());
    }
    match word.split_once('/') {
        Some((study, part)) => Study::find(study).is_some_and(|s| s.experiments().contains(&part)),
        None => claims.iter().any(|c| c == word),
    }
}

#[test]
fn what_shows_a_system_is_there() {
    let mut claims = Vec::new();
    for study in LIST {
        let path = format!("crates/penstock-study/studies/{}/claims.toml", study.name);
        let ids = text(&path).unwrap_or_default();
        claims.extend(
            ids.lines().filter_map(|l| l.strip_prefix("id = ")).map(|id| id.trim_matches('"').to_owned()),
        );
    }
    let page = text("docs/notes/systems.md").expect("the page is there");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|l| l.starts_with("| ") && l.as_bytes()[2].is_ascii_digit())
        .map(|l| l.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 150);
    let count = |verdict: &str| rows.iter().filter(|r| r[3] == verdict).count();
    let told = format!(
        "{} of 150 work, {} in part, {} are missing.",
        count("works"),
        count("partly"),
        count("missing")
    );
    assert!(page.contains(&told), "{told}");
    for row in &rows {
        let words: Vec<&str> =
            row[4].split(", ").map(|w| w.trim_matches('`')).filter(|w| !w.is_empty()).collect();
        assert!(row[3] == "missing" || !words.is_empty(), "{row:?} names nothing");
        for word in words {
            assert!(exists(word, &claims), "{}: there is no {word}", row[0]);
        }
    }
}
