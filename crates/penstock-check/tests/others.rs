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
        // ICMP by its number of IPv4, in packets of IPv6.
        let found: Vec<(&str, u32)> = answer.findings.iter().map(|f| (f.code, f.line)).collect();
        let known: &[(&str, u32)] = if name == "simple.qos" { &[("PS192", 157); 2] } else { &[] };
        assert_eq!(found, known, "{name}");
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
    for (name, commands, unread) in [("start-sqm", 21, 2), ("stop-sqm", 22, 2), ("run-openwrt.sh", 20, 3)] {
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

/// Scripts whose own functions are called `tc`, whose values come from programs, configurations and files that are not here, and which are called without arguments:
/// how much is read, and that nothing of it is said to be wrong that is not.
#[test]
fn conditioners_of_other_people_are_read() {
    let of = |name: &str, repository: &str, commit: &str| {
        let url = format!("https://github.com/{repository}");
        let fetch = ["git", "fetch", "-q", "--depth", "1", url.as_str(), commit];
        let commands: [&[&str]; 3] =
            [&["git", "init", "-q"], &fetch, &["git", "checkout", "-q", "FETCH_HEAD"]];
        fetched(name, &commands)
    };
    for (name, repository, commit, file, looked_at, commands, codes) in [
        (
            "FairNAT",
            "frostschutz/FairNAT",
            "602a026280371d0a85654238c8bcdd04974e57a6",
            "fairnat.sh",
            98,
            98,
            &[] as &[&str],
        ),
        ("htb.init", "lbulej/htb.init", "323f000a32d850bcf977bec4033f2d197808878e", "htb.init", 21, 23, &[]),
        (
            "cake-autorate",
            "lynxthecat/cake-autorate",
            "94238bef6184ffde3c5e44d4f72784a140849571",
            "cake-autorate.sh",
            3,
            3,
            &[],
        ),
        (
            "qosmate",
            "hudra0/qosmate",
            "ad5ef37a6b38b651849eccb33670a5398e06c876",
            "etc/qosmate.sh",
            70,
            73,
            &["PS121"; 3],
        ),
    ] {
        let Some(folder) = of(name, repository, commit) else { continue };
        let script = Script { text: text(folder.join(file)), name: file.to_owned(), ..Script::default() };
        let answer = examine(&script, &Settings::default());
        let coverage = &answer.coverage;
        assert_eq!((coverage.looked_at, coverage.commands), (looked_at, commands), "{name}: {coverage:#?}");
        let found: Vec<&str> = answer.findings.iter().map(|f| f.code).collect();
        assert_eq!(found, codes, "{name}: {:#?}", answer.findings);
    }
}
