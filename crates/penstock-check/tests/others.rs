//! Shaping scripts of other people, unchanged: how much of them is read. Fetched when the test runs, never kept in this project, and skipped
//! aloud where they cannot be had.

#[path = "../../penstock-shell/tests/material/mod.rs"]
mod material;

use material::{fetched, text};
use penstock_check::{Settings, examine};
use penstock_shell::Script;

const SQM: &str = "https://github.com/tohojo/sqm-scripts";
const COMMIT: &str = "95337de67a35b474d493966223f324eb1302adfc";

#[test]
fn sqm_scripts_are_read_whole() {
    let fetch = ["git", "fetch", "-q", "--depth", "1", SQM, COMMIT];
    let commands: [&[&str]; 3] = [&["git", "init", "-q"], &fetch, &["git", "checkout", "-q", "FETCH_HEAD"]];
    let Some(folder) = fetched("sqm-scripts", &commands) else { return };
    for (name, commands) in [
        ("simple.qos", 38),
        ("simplest.qos", 16),
        ("simplest_tbf.qos", 9),
        ("layer_cake.qos", 7),
        ("piece_of_cake.qos", 7),
        ("functions.sh", 16),
    ] {
        let text = text(folder.join("src").join(name));
        let script = Script { text, name: name.to_owned(), ..Script::default() };
        let answer = examine(&script, &Settings::default());
        let coverage = &answer.coverage;
        assert_eq!((coverage.looked_at, coverage.commands), (commands, commands), "{name}: {coverage:#?}");
        assert_eq!(answer.findings, [], "{name}");
    }
}
