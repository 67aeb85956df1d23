//! Shaping scripts of other people, unchanged: how much of them is read. Fetched when the test runs, never kept in this project, and skipped
//! aloud where they cannot be had.

#[path = "../../penstock-shell/tests/material/mod.rs"]
mod material;

use material::{fetched, text};
use penstock_check::{Settings, Sourced, examine, examine_with};
use penstock_shell::Script;

const SQM: &str = "https://github.com/tohojo/sqm-scripts";
const COMMIT: &str = "95337de67a35b474d493966223f324eb1302adfc";

#[test]
fn sqm_scripts_are_read_whole() {
    let fetch = ["git", "fetch", "-q", "--depth", "1", SQM, COMMIT];
    let commands: [&[&str]; 3] = [&["git", "init", "-q"], &fetch, &["git", "checkout", "-q", "FETCH_HEAD"]];
    let Some(folder) = fetched("sqm-scripts", &commands) else { return };
    for (name, commands) in [
        ("simple.qos", 40),
        ("simplest.qos", 18),
        ("simplest_tbf.qos", 10),
        ("layer_cake.qos", 8),
        ("piece_of_cake.qos", 8),
        ("functions.sh", 20),
    ] {
        let text = text(folder.join("src").join(name));
        let script = Script { text, name: name.to_owned(), ..Script::default() };
        let answer = examine(&script, &Settings::default());
        let coverage = &answer.coverage;
        assert_eq!((coverage.looked_at, coverage.commands), (commands, commands), "{name}: {coverage:#?}");
        assert_eq!(answer.findings, [], "{name}");
    }
}

/// With what they source: the functions that carry out their commands stand in another file.
#[test]
fn sqm_scripts_are_read_with_what_they_source() {
    let fetch = ["git", "fetch", "-q", "--depth", "1", SQM, COMMIT];
    let commands: [&[&str]; 3] = [&["git", "init", "-q"], &fetch, &["git", "checkout", "-q", "FETCH_HEAD"]];
    let Some(folder) = fetched("sqm-scripts", &commands) else { return };
    let beside = |within: &str, name: &str| Sourced {
        within: within.to_owned(),
        word: format!("${{SQM_LIB_DIR}}/{name}"),
        name: name.to_owned(),
        text: Ok(text(folder.join("src").join(name))),
    };
    for (name, commands, unread) in [("start-sqm", 20, 2), ("stop-sqm", 20, 2), ("run-openwrt.sh", 20, 3)] {
        let script =
            Script { text: text(folder.join("src").join(name)), name: name.to_owned(), ..Script::default() };
        let files = [beside(name, "functions.sh"), beside(name, "defaults.sh")];
        let answer = examine_with(&script, &files, &Settings::default());
        let coverage = &answer.coverage;
        assert_eq!((coverage.looked_at, coverage.commands), (commands, commands), "{name}: {coverage:#?}");
        assert_eq!(
            coverage.missed.iter().filter(|m| m.commands == 0).count(),
            unread,
            "{name}: {coverage:#?}"
        );
        assert_eq!(answer.findings, [], "{name}");
        assert_eq!(answer.exit_status(), 3, "{name}");
    }
}
