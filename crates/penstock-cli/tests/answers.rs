//! Answers for programs, and answers to what was misspelt: `--json` on every verb that answers, "did you mean" for verbs, options, names, files.

mod scratch;

use scratch::{Scratch, text};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn penstock(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    command.args(words).current_dir(folder).env("PENSTOCK_STATE", folder.join("state")).output().unwrap()
}

const TWO: &str = r#"title = "Two machines"
duration = "1s"
[host]
a.eth0 = "10.0.0.1/24"
b.eth0 = "10.0.0.2/24"
[[link]]
ends = ["a:eth0", "b:eth0"]
rate = "10mbit"
delay = "5ms"
[[app]]
on = "a"
run = "ping -c 3 -i 0.2 10.0.0.2"
[[flow]]
name = "up"
from = "a"
to = "b"
load = { gap = { mean = "10ms" }, size = 1000 }
"#;

/// The JSON it prints, and nothing else on either output.
fn json(folder: &Path, words: &[&str]) -> Value {
    let done = penstock(folder, words);
    assert_eq!(text(&done.stderr), "", "{words:?}");
    serde_json::from_slice(&done.stdout).unwrap_or_else(|e| panic!("{words:?}: {e}: {}", text(&done.stdout)))
}

#[test]
fn every_verb_that_answers_answers_in_json() {
    let folder = Scratch::new("answers-json");
    let folder = &folder.0;
    let new = json(folder, &["new", "my-script", "--json"]);
    assert_eq!((&new["template"], &new["experiment"]), (&"my-script".into(), &"my-script.toml".into()));
    assert_eq!(new["written"], serde_json::json!(["my-script.toml", "my-script.sh"]));
    let example = json(folder, &["examples", "home-line", "--json"]);
    assert_eq!(example["name"], "home-line");
    assert!(example["text"].as_str().unwrap().contains("title = "));
    let studies = json(folder, &["study", "--json"]);
    let lab = studies.as_array().unwrap().iter().find(|s| s["name"] == "virtual-lab").unwrap();
    assert!(lab["experiments"].as_array().unwrap().iter().any(|e| e == "6.1-htb-10mbit"));
    let kernel = json(folder, &["kernel", "status", "--json"]);
    assert_eq!(kernel["profile"], "6.12");
    match kernel["there"].as_bool().unwrap() {
        true => assert!(kernel["bytes"].as_u64().unwrap() > 0),
        false => assert!(kernel["why"].as_str().unwrap().contains("kernel build")),
    }
    std::fs::write(
        folder.join("q.txt"),
        "qdisc tbf 1: dev eth0 root refcnt 2 rate 1Mbit burst 5Kb lat 50ms\n",
    )
    .unwrap();
    let import = json(folder, &["import", "q.txt", "--json"]);
    let commands: Vec<&str> =
        import["commands"].as_array().unwrap().iter().map(|c| c.as_str().unwrap()).collect();
    assert!(
        commands.iter().any(|c| c.starts_with("tc qdisc add dev eth0 root handle 1: tbf")),
        "{commands:?}"
    );
    assert!(import["notes"].is_array());
    let made = json(folder, &["import", "q.txt", "--json", "--state", "machine"]);
    assert_eq!((&made["status"], &made["state"]), (&0.into(), &"machine".into()));
    let toml = json(folder, &["import", "q.txt", "--json", "--toml", "gw"]);
    assert!(toml["toml"].as_str().unwrap().contains("[host.gw]"), "{toml}");
    std::fs::write(folder.join("two.toml"), TWO).unwrap();
    let record = json(folder, &["run", "two.toml", "--out", "runs/one", "--json"]);
    assert_eq!(record["title"], "Two machines");
    penstock(folder, &["run", "two.toml", "--out", "runs/two", "--seed", "2"]);
    let report = json(folder, &["report", "runs/one", "runs/two", "--json"]);
    assert_eq!(report["reports"][1]["report"], "runs/two/report.html");
    let rtt = report["rows"].as_array().unwrap().iter().find(|r| r["figure"] == "rtt mean").unwrap();
    assert_eq!((&rtt["subject"], &rtt["unit"]), (&"a ping".into(), &"ms".into()));
    assert!(rtt["values"].as_array().unwrap().iter().all(|v| v.as_f64().unwrap() > 10.0), "{rtt}");
    let compared = json(folder, &["compare", "runs/one", "runs/two", "--json"]);
    assert!(compared[0]["advice"].as_str().unwrap().contains("--repeat 4"), "{compared}");
    let rows = compared[0]["rows"].as_array().unwrap();
    assert_eq!(rows[0]["group"], "program");
    let goodput = rows.iter().find(|r| r["subject"] == "flow up" && r["figure"] == "goodput").unwrap();
    assert_eq!((&goodput["verdict"], goodput.get("interval")), (&"unknown".into(), None));
    assert!(goodput["effect"].as_f64().unwrap() > 0.0);
}

#[test]
fn repeated_runs_are_compared_with_an_interval() {
    let folder = Scratch::new("answers-repeat");
    let folder = &folder.0;
    std::fs::write(folder.join("two.toml"), TWO).unwrap();
    std::fs::write(folder.join("more.toml"), TWO.replace("mean = \"10ms\"", "mean = \"5ms\"")).unwrap();
    for (file, out) in [("two.toml", "before"), ("more.toml", "after")] {
        let done = penstock(folder, &["run", file, "--repeat", "4", "--out", out]);
        assert!(done.status.success(), "{}", text(&done.stderr));
    }
    let done = penstock(folder, &["compare", "before", "after", "--html", "both.html"]);
    let said = text(&done.stdout);
    assert_eq!(done.status.code(), Some(1), "{said}");
    let flows = said.split("\n\n").find(|part| part.starts_with("flows")).unwrap();
    let lines: Vec<&str> = flows.lines().collect();
    // The head, what changed most first, and what is not worth a line in one.
    let up = lines.iter().find(|l| l.contains("flow up") && l.contains("goodput")).unwrap();
    assert!(up.contains(" .. +") && up.ends_with("differs"), "{said}");
    assert!(lines[0].contains("its interval"), "{said}");
    assert!(
        lines.last().unwrap().starts_with("  not shown: ") && lines.last().unwrap().ends_with("(--all)"),
        "{said}"
    );
    // Four runs a side give 1 - 2/70.
    let json: Value =
        serde_json::from_slice(&penstock(folder, &["compare", "before", "after", "--json"]).stdout).unwrap();
    assert_eq!(json[0]["advice"], Value::Null);
    let rows = json[0]["rows"].as_array().unwrap();
    let interval =
        &rows.iter().find(|r| r["subject"] == "flow up" && r["figure"] == "goodput").unwrap()["interval"];
    assert!((interval["confidence"].as_f64().unwrap() - 68.0 / 70.0).abs() < 1e-9, "{interval}");
    assert!(interval["low"].as_f64().unwrap() > 0.0 && interval["high"].as_f64() >= interval["low"].as_f64());
    let page = std::fs::read_to_string(folder.join("both.html")).unwrap();
    assert!(page.contains("<h3>flows</h3>") && page.contains("class=\"bar lean\""));
}

/// A word of four letters or more with two letters in the middle swapped.
fn mangled(word: &str) -> String {
    let mut letters: Vec<char> = word.chars().collect();
    let at = (1..letters.len() - 1).find(|i| letters[*i] != letters[i + 1]).unwrap();
    letters.swap(at, at + 1);
    letters.into_iter().collect()
}

#[test]
fn every_verb_and_option_is_known_when_two_letters_are_swapped() {
    let folder = Scratch::new("answers-near");
    let help = text(&penstock(&folder.0, &["--help"]).stdout);
    let list = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let verbs: Vec<&str> = list
        .lines()
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert!(verbs.len() > 18 && verbs.contains(&"compare"), "{verbs:?}");
    let mut options = 0;
    for verb in verbs.iter().filter(|v| **v != "help") {
        let said = text(&penstock(&folder.0, &[&mangled(verb)]).stderr);
        assert!(said.contains(&format!("a similar subcommand exists: '{verb}'")), "{verb}: {said}");
        let help = text(&penstock(&folder.0, &[verb, "--help"]).stdout);
        let lines = help.lines().map(str::trim_start).filter(|l| l.starts_with('-'));
        let longs =
            lines.filter_map(|l| l.split([' ', ',', '=', '[', '.']).find_map(|w| w.strip_prefix("--")));
        for long in longs.filter(|l| l.len() > 3 && !l.contains(']') && *l != "help" && *l != "version") {
            let wrong = format!("--{}", mangled(long));
            let done = penstock(&folder.0, &[verb, &wrong]);
            let said = text(&done.stderr);
            assert_eq!(done.status.code(), Some(2), "{verb} {wrong}: {said}");
            assert!(
                said.contains(&format!("--{long}'")) || said.contains(&format!("did you mean --{long}?")),
                "{verb} {wrong}: {said}"
            );
            options += 1;
        }
    }
    assert!(options > 80, "{options}");
}

#[test]
fn names_and_files_are_known_when_misspelt() {
    let folder = Scratch::new("answers-names");
    let folder = &folder.0;
    std::fs::create_dir_all(folder.join("runs/home-line")).unwrap();
    for file in ["line.toml", "shape.sh", "gtest.pkt"] {
        std::fs::write(folder.join(file), "x = 1\n").unwrap();
    }
    let check = |words: &[&str], wanted: &str| {
        let done = penstock(folder, words);
        let said = text(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(wanted), "{words:?}: {said}");
    };
    check(&["run", "line.tml"], "cannot read line.tml: there is no such file; did you mean line.toml?");
    check(&["sweep", "lien.toml"], "did you mean line.toml?");
    check(&["compare", "runs/home-lin", "runs/home-line"], "did you mean runs/home-line?");
    check(&["report", "run/home-line"], "did you mean runs/home-line?");
    check(&["check", "shpae.sh"], "did you mean shape.sh?");
    check(&["diff", "shpae.sh", "shape.sh", "--dev", "eth0"], "did you mean shape.sh?");
    check(&["explain", "shpae.sh", "--dev", "eth0", "--all"], "did you mean shape.sh?");
    check(&["explain", "shape.sh", "--dve", "eth0"], "--dve is no option; did you mean --dev?");
    check(&["replay", "line.tom"], "did you mean line.toml?");
    check(&["import", "shape"], "did you mean shape.sh?");
    check(&["packetdrill", "gtets.pkt"], "did you mean gtest.pkt?");
    check(&["study", "virtual-lba"], "did you mean virtual-lab?");
    check(&["study", "virtual-lab", "6.1-htb-10mbt"], "did you mean 6.1-htb-10mbit?");
    check(&["man", "rnu"], "did you mean run?");
    check(&["run", "line.toml", "--on", "virtaul"], "did you mean virtual?");
    check(&["send", "127.0.0.1", "--udp", "--for", "1x"], "it is no time: write 10s, 500ms or 20us");
    // Nothing near: nothing is guessed.
    let said = text(&penstock(folder, &["check", "qqqq.sh"]).stderr);
    assert!(!said.contains("did you mean"), "{said}");
}
