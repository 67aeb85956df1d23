//! `check`, `explain` and `diff` as somebody types them: what they print, and their exit statuses.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn penstock(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_penstock"))
        .args(words)
        .current_dir(folder)
        .env("PENSTOCK_STATE", folder.join("state"))
        .env_remove("PENSTOCK_KERNEL")
        .output()
        .unwrap()
}

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("penstock-check-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Status and standard output.
fn said(folder: &Path, words: &[&str]) -> (i32, String) {
    let done = penstock(folder, words);
    (done.status.code().unwrap(), String::from_utf8_lossy(&done.stdout).into_owned())
}

const SETUP: &str = "tc qdisc add dev eth0 root handle 1: htb default 30
tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit ceil 10mbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 6mbit ceil 10mbit
tc qdisc add dev eth0 parent 1:10 handle 10: sfq
tc qdisc add dev eth0 parent 1:30 handle 30: pfifo limit 50
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 192.168.0.0/16 flowid 1:10
";

/// The setup as a script: sfq stands in line 7.
fn script() -> String {
    format!("#!/bin/bash\ntc qdisc del dev eth0 root 2>/dev/null\n{SETUP}")
}

#[test]
fn statuses_and_forms() {
    let folder = scratch("forms");
    std::fs::write(folder.join("s.sh"), script()).unwrap();
    let (status, text) = said(&folder, &["check", "s.sh"]);
    assert_eq!(status, 1, "{text}");
    assert!(text.starts_with("s.sh:7:46: warning PS146: sfq 10: never mixes its hash\n"), "{text}");
    assert!(
        text.contains("\n0 errors, 1 warning\nmore:  penstock check --explain PS146, https://"),
        "{text}"
    );
    assert!(text.ends_with("PS146.md\n8 of 8 network commands looked at\n"), "{text}");

    let (status, text) = said(&folder, &["check", "--format", "json", "s.sh"]);
    let mut found: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(found["coverage"]["looked_at"], json!(8));
    found.as_object_mut().unwrap().remove("coverage");
    let one = json!({ "format": 4, "findings": [{
        "link": "https://github.com/penstock/penstock/blob/main/docs/checks/PS146.md", "safe": true, "length": 3,
        "edits": [{ "line": 7, "column": 46, "end_line": 7, "end_column": 49, "text": "sfq perturb 10" }],
        "code": "PS146", "level": "warning", "file": "s.sh", "line": 7, "column": 46, "message": "sfq 10: never mixes its hash",
        "reason": "perturb is 0: flows that fall into one of the 1024 slots together stay together.",
        "fix": "tc qdisc add dev eth0 parent 1:10 handle 10: sfq perturb 10",
    }] });
    assert_eq!((status, found), (1, one));

    let (status, text) = said(&folder, &["check", "--format", "sarif", "s.sh"]);
    let sarif: Value = serde_json::from_str(&text).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!((status, &sarif["version"], &result["ruleId"]), (1, &json!("2.1.0"), &json!("PS146")));
    let region = &result["locations"][0]["physicalLocation"]["region"];
    assert_eq!(*region, json!({ "startLine": 7, "startColumn": 46, "endColumn": 49 }));
    let change = &result["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(change["insertedContent"]["text"], json!("sfq perturb 10"));
    assert_eq!(result["partialFingerprints"]["penstock/v1"].as_str().map(str::len), Some(16));
    let rules = sarif["runs"][0]["tool"]["driver"]["rules"].as_array().unwrap();
    assert!(rules.iter().any(|r| r["id"] == "PS146") && rules.len() >= 60, "{}", rules.len());
    assert!(rules.iter().all(|r| r["helpUri"].as_str().is_some_and(|u| u.starts_with("https://"))));

    let (status, text) = said(&folder, &["check", "--format", "gcc", "s.sh"]);
    assert_eq!((status, text.lines().count()), (1, 1), "{text}");
    assert!(
        text.starts_with("s.sh:7:46: warning: sfq 10: never mixes its hash.") && text.ends_with(" [PS146]\n"),
        "{text}"
    );
    let (status, text) = said(&folder, &["check", "--format", "checkstyle", "s.sh"]);
    let error =
        "<error line=\"7\" column=\"46\" severity=\"warning\" message=\"sfq 10: never mixes its hash&#10;";
    assert!(status == 1 && text.contains(error) && text.contains("<file name=\"s.sh\">"), "{text}");
    let (status, text) = said(&folder, &["check", "--format", "junit", "s.sh"]);
    assert!(
        status == 1 && text.contains("tests=\"1\" failures=\"1\"") && text.contains("name=\"s.sh\""),
        "{text}"
    );
    let (status, text) = said(&folder, &["check", "--format", "junit", "--fail-on", "error", "s.sh"]);
    assert!(status == 0 && text.contains("failures=\"0\"") && text.contains("<system-out>"), "{text}");

    let (status, text) = said(&folder, &["check", "--format", "github", "s.sh"]);
    let begin = "::warning file=s.sh,line=7,col=46,title=PS146::sfq 10: never mixes its hash%0A";
    assert_eq!((status, text.starts_with(begin), text.lines().count()), (1, true, 1), "{text}");

    let (status, text) = said(&folder, &["check", "--format", "json", "--dev", "eth0", "none.sh"]);
    assert_eq!((status, text.as_str()), (2, ""));
    std::fs::write(folder.join("bad.sh"), script().replace("htb rate 4mbit", "htb rate 4mbot")).unwrap();
    let (status, text) = said(&folder, &["check", "bad.sh"]);
    assert_eq!((status, text.contains("bad.sh:5:")), (2, true), "{text}");
    std::fs::write(folder.join("good.sh"), script().replace("10: sfq", "10: sfq perturb 10")).unwrap();
    let (status, text) = said(&folder, &["check", "good.sh"]);
    assert_eq!((status, text.starts_with("nothing found\n")), (0, true), "{text}");
    assert!(text.ends_with(" network commands looked at\n"), "{text}");
    let (status, text) = said(&folder, &["check", "--format", "json", "good.sh"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    let all = &json["coverage"]["commands"];
    assert_eq!((status, &json["format"], &json["findings"]), (0, &json!(4), &json!([])));
    assert!(*all == json["coverage"]["looked_at"] && all.as_u64() > Some(3), "{text}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_was_not_looked_at_is_said_with_a_status_of_its_own() {
    let folder = scratch("unread");
    let arms: String = (0..30).map(|n| format!("x{n}) tc qdisc show dev eth{n};;\n")).collect();
    std::fs::write(folder.join("s.sh"), format!("#!/bin/sh\ncase $1 in\n{arms}esac\n")).unwrap();
    let (status, text) = said(&folder, &["check", "s.sh"]);
    assert_eq!((status, text.contains(" of 30 network commands looked at\n")), (3, true), "{text}");
    let (status, text) = said(&folder, &["check", "--format", "sarif", "s.sh"]);
    let run = serde_json::from_str::<Value>(&text).unwrap()["runs"][0].clone();
    assert_eq!((status, &run["invocations"][0]["executionSuccessful"]), (3, &json!(false)));
    assert_eq!(run["properties"]["coverage"]["commands"], json!(30));
    let (status, text) = said(&folder, &["check", "--format", "github", "s.sh"]);
    assert_eq!((status, text.starts_with("::warning file=s.sh,line=")), (3, true), "{text}");

    // What is unknown may be given.
    let rates = "#!/bin/sh\ntc class add dev eth0 parent 1: classid 1:1 htb rate $1 ceil $CEIL\n";
    std::fs::write(folder.join("r.sh"), format!("tc qdisc add dev eth0 root handle 1: htb\n{rates}"))
        .unwrap();
    let (_, text) = said(&folder, &["check", "--arg", "2mbit", "--env", "CEIL=1mbit", "r.sh"]);
    assert!(text.contains("PS103") || text.contains("ceil"), "{text}");
    assert_eq!(said(&folder, &["check", "--env", "2X=1", "r.sh"]).0, 2);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn several_scripts_and_folders() {
    let folder = scratch("several");
    for name in ["scripts/sub", ".git", "target"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("scripts/b.sh", &script());
    write("scripts/sub/a", &script().replace("htb rate 4mbit", "htb rate 4mbot"));
    write("scripts/z.sh", &script().replace("10: sfq", "10: sfq perturb 10"));
    // No script, no command of tc, not of the project, not text: none of them is looked at.
    write("scripts/notes.txt", SETUP);
    write("scripts/hello.sh", "#!/bin/sh\necho hello\n");
    write(".git/hook.sh", &script());
    write("target/made.sh", &script());
    write("scripts/binary.sh", "tc\0");
    let (status, text) = said(&folder, &["check", "."]);
    let named: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("== ")).collect();
    assert_eq!((status, named), (2, vec!["scripts/b.sh", "scripts/sub/a"]), "{text}");
    assert!(text.contains("\n3 scripts: "), "{text}");
    assert!(text.contains(", 1 with nothing found\n"), "{text}");
    // Each is a script, none an argument of the first; one that is named twice is checked once.
    let both = ["check", "scripts/z.sh", "scripts/b.sh", "scripts/z.sh"];
    let (status, text) = said(&folder, &both);
    assert_eq!(status, 1, "{text}");
    let end = "\n2 scripts: 0 errors, 1 warning, 1 with nothing found\n16 of 16 network commands looked at\n";
    assert!(text.ends_with(end), "{text}");
    let (status, text) = said(&folder, &[&both[..], &["--format", "json"]].concat());
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &json["findings"][0]["file"]), (1, &json!("scripts/b.sh")));
    assert_eq!(
        (&json["files"][0]["file"], &json["coverage"]["commands"]),
        (&json!("scripts/z.sh"), &json!(16))
    );
    // What is named and cannot be read is an error, and so is a folder without a script.
    assert_eq!(said(&folder, &["check", "scripts/z.sh", "start"]).0, 2);
    assert_eq!(said(&folder, &["check", "scripts/binary.sh"]).0, 2);
    std::fs::create_dir(folder.join("empty")).unwrap();
    assert_eq!(said(&folder, &["check", "empty"]).0, 2);
    // Printed fixes are of one script; files are changed each.
    assert_eq!(said(&folder, &[&both[..], &["--fix"]].concat()).0, 2);
    assert_eq!(said(&folder, &[&both[..], &["--fix", "--write"]].concat()).0, 0);
    assert_eq!(said(&folder, &both).0, 0);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_fails_and_what_a_code_means() {
    let folder = scratch("fail-on");
    std::fs::write(folder.join("s.sh"), script()).unwrap();
    std::fs::write(folder.join("bad.sh"), script().replace("htb rate 4mbit", "htb rate 4mbot")).unwrap();
    let status = |level: &str, name: &str| said(&folder, &["check", "--fail-on", level, name]).0;
    assert_eq!(["warning", "error", "never"].map(|level| status(level, "s.sh")), [1, 0, 0]);
    assert_eq!(["warning", "error", "never"].map(|level| status(level, "bad.sh")), [2, 2, 0]);
    let (status, text) = said(&folder, &["check", "--explain", "ps250"]);
    assert_eq!(
        (
            status,
            text.starts_with("PS250: add root without del root\n\nnote · fix: `--fix` makes the change\n\n")
        ),
        (0, true),
        "{text}"
    );
    assert_eq!(said(&folder, &["check", "--explain", "PS999"]), (2, String::new()));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_allowed_and_what_is_known() {
    let folder = scratch("known");
    let check = |text: &str, words: &[&str]| {
        std::fs::write(folder.join("s.sh"), text).unwrap();
        said(&folder, &[&["check", "s.sh"], words].concat()).0
    };
    let plain = script();
    assert_eq!(check(&plain, &[]), 1);
    assert_eq!(check(&plain.replace("10: sfq", "10: sfq  # penstock: allow PS146"), &[]), 0);
    assert_eq!(
        check(
            &plain.replace(
                "tc qdisc add dev eth0 parent 1:10",
                "# penstock: allow PS146\ntc qdisc add dev eth0 parent 1:10"
            ),
            &[]
        ),
        0
    );
    assert_eq!(check(&plain.replace("10: sfq", "10: sfq  # penstock: allow PS101"), &[]), 1);
    assert_eq!(check(&format!("{plain}# penstock: allow-file PS146\n"), &[]), 0);
    // A baseline knows what was found, wherever its line is by now.
    assert_eq!(check(&plain, &["--baseline", "known.txt", "--write-baseline"]), 0);
    assert_eq!(check(&plain, &["--baseline", "known.txt"]), 0);
    let worse = plain.replace("htb rate 4mbit", "htb rate 5mbit");
    assert_eq!(check(&worse, &["--baseline", "known.txt"]), 1);
    assert_eq!(check(&plain, &["--baseline", "none.txt"]), 2);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_fixed_script_is_clean_and_differs_only_there() {
    let folder = scratch("fix");
    std::fs::write(folder.join("s.sh"), script()).unwrap();
    let (status, text) = said(&folder, &["check", "--fix", "s.sh"]);
    assert_eq!(text, script().replace("10: sfq", "10: sfq perturb 10"));
    assert_eq!(status, 0);
    std::fs::write(folder.join("fixed.sh"), &text).unwrap();
    assert!(said(&folder, &["check", "fixed.sh"]).1.starts_with("nothing found\n"));
    let differs = said(&folder, &["diff", "--dev", "eth0", "s.sh", "fixed.sh"]);
    assert_eq!(differs, (1, "queue of 1:10: none -> perturb 10\n".to_owned()));
    assert_eq!(said(&folder, &["check", "--fix", "--write", "s.sh"]), (0, String::new()));
    assert_eq!(std::fs::read_to_string(folder.join("s.sh")).unwrap(), text);
    assert_eq!(said(&folder, &["diff", "--dev", "eth0", "s.sh", "fixed.sh"]), (0, String::new()));
    assert_eq!(said(&folder, &["diff", "--dev", "eth7", "s.sh", "fixed.sh"]).0, 2);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn fixes_are_looked_at_first_and_the_likely_ones_are_asked_for() {
    let folder = scratch("likely");
    // A ceil above its parent's is safe to lower; that a ceil below the rate is to be the rate is likely.
    let text = "#!/bin/sh\nDEV=eth0\ntc qdisc replace dev $DEV root handle 1: htb default 10\n\
                tc class add dev $DEV parent 1: classid 1:1 htb rate 10mbit\n\
                tc class add dev $DEV parent 1:1 classid 1:10 htb rate 4mbit ceil 20mbit # kept\n\
                tc class add dev $DEV parent 1:1 classid 1:20 htb rate 4mbit ceil 2mbit\n\
                tc filter add dev $DEV parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.0/8 flowid 1:20\n";
    std::fs::write(folder.join("s.sh"), text).unwrap();
    let safe = text.replace("ceil 20mbit", "ceil 10mbit");
    assert_eq!(said(&folder, &["check", "--fix", "s.sh"]), (1, safe.clone()));
    assert_eq!(
        said(&folder, &["check", "--fix", "--unsafe", "s.sh"]),
        (0, safe.replace("ceil 2mbit", "ceil 4mbit"))
    );
    let (status, diff) = said(&folder, &["check", "--fix", "--diff", "s.sh"]);
    assert!(status == 1 && diff.starts_with("--- s.sh\n+++ s.sh\n@@ -2,6 +2,6 @@\n"), "{diff}");
    assert!(
        diff.contains("\n+tc class add dev $DEV parent 1:1 classid 1:10 htb rate 4mbit ceil 10mbit # kept\n"),
        "{diff}"
    );
    assert_eq!(std::fs::read_to_string(folder.join("s.sh")).unwrap(), text);
    assert_eq!(said(&folder, &["check", "--unsafe", "s.sh"]).0, 2);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn commands_are_found_in_files_that_are_no_scripts() {
    let folder = scratch("holders");
    std::fs::create_dir_all(folder.join(".github/workflows")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let class = "tc class add dev eth0 parent 1: classid 1:10 htb rate 2mbit ceil 1mbit";
    let root = "tc qdisc replace dev eth0 root handle 1: htb default 10";
    write(
        "shape.service",
        &format!(
            "[Service]\nType=oneshot\nExecStart=/sbin/{root}\nExecStart=/sbin/{class}\nExecStop=-/sbin/tc qdisc del dev eth0 root\n"
        ),
    );
    write("Dockerfile", &format!("FROM debian\nRUN {root} \\\n && {class}\n"));
    write(
        ".github/workflows/w.yml",
        &format!("jobs:\n  a:\n    steps:\n      - run: |\n          {root}\n          {class}\n"),
    );
    write("README.md", &format!("# Shaping\n\n```sh\n{root}\n{class}\n```\n"));
    write(
        "lab.toml",
        &format!(
            "duration = \"1s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\nsetup = [\n  \"{root}\",\n  \"{class}\",\n]\n"
        ),
    );
    let place = |name: &str| {
        let (status, text) = said(&folder, &["check", "--format", "gcc", name]);
        let line = text
            .lines()
            .find(|l| l.ends_with("[PS103]"))
            .unwrap_or_else(|| panic!("{name} {status}: {text}"));
        let places: Vec<u32> =
            line[name.len() + 1..].split(':').take(2).map(|n| n.parse().unwrap()).collect();
        (places[0], places[1])
    };
    assert_eq!(place("shape.service"), (4, 82));
    assert_eq!(place("Dockerfile"), (3, 70));
    assert_eq!(place(".github/workflows/w.yml"), (6, 76));
    assert_eq!(place("README.md"), (5, 66));
    assert_eq!(place("lab.toml").0, 6);
    write(
        "fire.nft",
        "flush ruleset\ntable inet t {\n  chain c { type filter hook input priority 0; }\n  chain d { accpet; }\n}\n",
    );
    let (status, text) = said(&folder, &["check", "--format", "gcc", "fire.nft"]);
    assert!(
        status == 2 && text.starts_with("fire.nft:4:13: error: ") && text.contains("[PS013]"),
        "{status} {text}"
    );
    // Of a folder what is written to be read by people is left out.
    let (status, text) = said(&folder, &["check", "."]);
    let named: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("== ")).collect();
    assert_eq!(
        (status, named),
        (2, vec![".github/workflows/w.yml", "Dockerfile", "fire.nft", "shape.service"]),
        "{text}"
    );
    write("broken.toml", "[host");
    assert_eq!(said(&folder, &["check", "broken.toml"]).0, 2);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_configuration_says_what_is_shown_and_what_fails() {
    let folder = scratch("config");
    std::fs::create_dir_all(folder.join("old/deep")).unwrap();
    for name in ["s.sh", "old/s.sh"] {
        std::fs::write(folder.join(name), script()).unwrap();
    }
    let config = |text: &str| std::fs::write(folder.join("penstock.toml"), text).unwrap();
    let check = |words: &[&str]| said(&folder, &[&["check"], words].concat());
    config("[check]\nignore = [\"PS146\"]\n");
    assert_eq!((check(&["s.sh"]).0, check(&["--no-config", "s.sh"]).0), (0, 1));
    assert_eq!(said(&folder.join("old/deep"), &["check", "../s.sh"]).0, 0);
    config("[check.severity]\nPS146 = \"error\"\n[check.per-path]\n\"old/**\" = [\"PS1\"]\n");
    assert_eq!((check(&["s.sh"]).0, check(&["old/s.sh"]).0), (2, 0));
    config("[check]\nfail-on = \"error\"\n");
    assert_eq!((check(&["s.sh"]).0, check(&["--fail-on", "warning", "s.sh"]).0), (0, 1));
    config("[check]\nselct = []\n");
    let done = penstock(&folder, &["check", "s.sh"]);
    let complaint = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.code() == Some(2) && complaint.contains("`check.selct` is not known"), "{complaint}");
    std::fs::remove_file(folder.join("penstock.toml")).unwrap();
    assert_eq!((check(&["--ignore", "ps146", "s.sh"]).0, check(&["--select", "PS2", "s.sh"]).0), (0, 0));
    assert_eq!(check(&["--ignore", "XY", "s.sh"]).0, 2);
    // Colours where they are asked for.
    let (_, text) = check(&["--color", "always", "s.sh"]);
    assert!(text.starts_with("\u{1b}[1ms.sh:7:46\u{1b}[0m: \u{1b}[1;33mwarning\u{1b}[0m PS146: "), "{text}");
    assert!(!check(&["s.sh"]).1.contains('\u{1b}'));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_script_beside_an_imported_machine() {
    let folder = scratch("import");
    std::fs::write(folder.join("s.sh"), script()).unwrap();
    for line in SETUP.lines() {
        assert_eq!(said(&folder, &line.split(' ').collect::<Vec<_>>()).0, 0, "{line}");
    }
    for (file, words) in [
        ("qdiscs", &["tc", "-j", "qdisc", "show"][..]),
        ("classes", &["tc", "-j", "class", "show", "dev", "eth0"]),
        ("filters", &["tc", "filter", "show", "dev", "eth0"]),
    ] {
        std::fs::write(folder.join(file), said(&folder, words).1).unwrap();
    }
    let import = |filters: &str| {
        let (status, text) = said(&folder, &["import", "qdiscs", "eth0=classes", &format!("eth0={filters}")]);
        assert_eq!(status, 0);
        std::fs::write(folder.join("machine.sh"), text).unwrap();
        said(&folder, &["diff", "--dev", "eth0", "s.sh", "machine.sh"])
    };
    assert_eq!(import("filters"), (0, String::new()));
    let filters = std::fs::read_to_string(folder.join("filters")).unwrap();
    let other = filters.replace("c0a80000/ffff0000", "c0a80000/ffff8000");
    assert_ne!(filters, other);
    std::fs::write(folder.join("other"), other).unwrap();
    let (status, text) = import("other");
    assert_eq!((status, text.lines().count()), (1, 1), "{text}");
    assert!(text.starts_with("ip, dst 192.168.128.0/17: 1:10 -> 1:30   (tcp "), "{text}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// A capture of UDP packets to these addresses.
fn pcap(to: &[[u8; 4]]) -> Vec<u8> {
    let mut out = Vec::new();
    for word in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1] {
        out.extend(word.to_le_bytes());
    }
    for dst in to {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        frame.extend([0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1]);
        frame.extend(dst);
        frame.extend([0x0f, 0xa0, 0, 53, 0, 40, 0, 0]);
        frame.resize(74, 0);
        for word in [0, 0, 74u32, 74] {
            out.extend(word.to_le_bytes());
        }
        out.extend(frame);
    }
    out
}

#[test]
fn packets_are_explained() {
    let folder = scratch("explain");
    std::fs::write(folder.join("s.sh"), script()).unwrap();
    let packet = "udp 10.0.0.1:4000 > 192.168.3.4:53 len 200";
    let words = ["explain", "s.sh", "--dev", "eth0", "--rate", "10mbit", "--packet", packet];
    let (status, text) = said(&folder, &words);
    assert_eq!(status, 0);
    for part in [
        "filter     line 9 (prio 1, u32): fits: at 16 it has c0a80304, wanted c0a80000/ffff0000\n",
        "class      1:10, by filter of line 9\n",
        "queue      sfq 10:\n",
        "promise    guaranteed 4mbit, ceiling 10mbit\n",
        "promise    borrows from 1:1 (10mbit)\n",
        "promise    a packet waits at most ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let to = [[192, 168, 3, 4], [10, 9, 9, 9], [192, 168, 1, 1]];
    std::fs::write(folder.join("t.pcap"), pcap(&to)).unwrap();
    let (status, text) = said(&folder, &["explain", "s.sh", "--dev", "eth0", "--pcap", "t.pcap"]);
    let want = "1:10           udp 10.0.0.1:4000 > 192.168.3.4:53 len 60\n\
                1:30           udp 10.0.0.1:4000 > 10.9.9.9:53 len 60\n\
                1:10           udp 10.0.0.1:4000 > 192.168.1.1:53 len 60\n\n\
                1:10           2 packets, 120 bytes\n1:30           1 packet, 60 bytes\n";
    assert_eq!((status, text.as_str()), (0, want));
    // Where they came in makes a difference to rules.
    let marking = format!(
        "{}tc filter add dev eth0 parent 1: protocol ip prio 2 handle 5 fw flowid 1:10\n\
         iptables -t mangle -A PREROUTING -i eth1 -d 10.9.0.0/16 -j MARK --set-mark 5\n",
        script()
    );
    std::fs::write(folder.join("m.sh"), marking).unwrap();
    let words = ["explain", "m.sh", "--dev", "eth0", "--pcap", "t.pcap", "--in", "eth1", "--json"];
    let (status, text) = said(&folder, &words);
    let all: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &all["classes"]), (0, &json!({ "1:10": { "packets": 3, "bytes": 180 } })), "{text}");
    assert_eq!(
        (&all["packets"][1]["mark_before"], &all["packets"][1]["mark"]),
        (&json!(0), &json!(5)),
        "{text}"
    );
    let (_, text) = said(&folder, &["explain", "m.sh", "--dev", "eth0", "--all", "--json"]);
    let parts: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&parts["complete"], &parts["never"]), (&json!(true), &json!([])), "{text}");
    assert!(parts["classes"]["1:10"].is_array() && parts["classes"]["1:30"].is_array(), "{text}");
    assert_eq!(said(&folder, &["explain", "s.sh", "--dev", "eth0", "--pcap", "s.sh"]).0, 2);
    assert_eq!(said(&folder, &["explain", "s.sh", "--dev", "eth1", "--packet", packet]).0, 2);
    assert_eq!(said(&folder, &["explain", "s.sh", "--dev", "eth0", "--packet", "tcp nowhere"]).0, 2);
    std::fs::remove_dir_all(folder).unwrap();
}

const RUN: &str = r#"
title    = "Two"
duration = "1s"
[host.a]
eth0  = "10.0.0.1/24"
setup = "@s.sh"
setup_may_fail = true
[host.b]
eth0 = "10.0.0.2/24"
[[link]]
ends  = ["a:eth0", "b:eth0"]
rate  = "10mbit"
delay = "2ms"
"#;

#[test]
fn a_run_tells_what_is_wrong_in_its_setups() {
    let folder = scratch("run");
    std::fs::write(folder.join("s.sh"), script()).unwrap();
    std::fs::write(folder.join("two.toml"), RUN).unwrap();
    let (status, text) = said(&folder, &["run", "two.toml", "--json"]);
    assert_eq!(status, 0);
    let record: Value = serde_json::from_str(&text).unwrap();
    let found = &record["findings"][0];
    assert_eq!((&found["host"], &found["code"], &found["line"]), (&json!("a"), &json!("PS146"), &json!(7)));
    assert_eq!(record["findings"].as_array().unwrap().len(), 1, "{text}");
    let page = std::fs::read_to_string(folder.join("runs/two/report.html")).unwrap();
    for part in [
        "<h2>Findings in the setups</h2>",
        "<td>a</td><td>s.sh:7:46</td><td>warning PS146</td><td>sfq 10: never mixes its hash",
        "<pre tabindex=\"0\">tc qdisc add dev eth0 parent 1:10 handle 10: sfq perturb 10</pre>",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // Nothing to say, nothing said.
    std::fs::write(folder.join("s.sh"), script().replace("10: sfq", "10: sfq perturb 10")).unwrap();
    let (_, text) = said(&folder, &["run", "two.toml", "--json"]);
    let record: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(record.get("findings"), None);
    let page = std::fs::read_to_string(folder.join("runs/two/report.html")).unwrap();
    assert!(!page.contains("Findings in the setups"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// What a script sources lies beside it, in the folder that was named or where one stands; nothing else is read, and that is said.
#[test]
fn files_that_are_sourced() {
    let folder = scratch("sourced");
    std::fs::create_dir_all(folder.join("p/lib")).unwrap();
    let put = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    put("secret.sh", "tc qdisc add dev eth0 root sfq\n");
    put(
        "p/x.sh",
        "#!/bin/sh\nDEV=eth0\ntc qdisc del dev $DEV root 2>/dev/null\n. \"$(dirname \"$0\")/lib/a.sh\"\n. $LIB/b.sh\n",
    );
    put("p/lib/a.sh", "tc qdisc add dev $DEV root handle 1: htb default 10\n. ./lib/c.sh\n");
    put("p/b.sh", "tc class add dev $DEV parent 1: classid 1:10 htb rate 1mbit ceil 500kbit\n");
    put("p/lib/c.sh", "tc qdisc show\n");
    let (status, text) = said(&folder, &["check", "p/x.sh"]);
    assert!(status == 1 && text.starts_with("p/b.sh:1:66: warning PS103: "), "{status} {text}");
    assert!(
        text.contains("\n    tc class add dev $DEV parent 1: classid 1:10 htb rate 1mbit ceil 500kbit\n"),
        "{text}"
    );
    assert!(text.contains("The file is sourced by p/x.sh, line 5."), "{text}");
    let end = "4 of 4 network commands looked at\n  sourced and read as well: p/b.sh (1 of 1), p/lib/a.sh (1 of 1), p/lib/c.sh (1 of 1)\n";
    assert!(text.ends_with(end), "{text}");
    let (_, json) = said(&folder, &["check", "--format", "json", "p/x.sh"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["coverage"]["sourced"][0], json!({ "file": "p/b.sh", "commands": 1, "looked_at": 1 }));
    let (_, gcc) = said(&folder, &["check", "--format", "gcc", "p/x.sh"]);
    assert!(gcc.starts_with("p/b.sh:1:66: warning: "), "{gcc}");

    // Of a folder each file is counted once, and judged as the script that sources it carries it out.
    let (status, text) = said(&folder, &["check", "p"]);
    assert!(status == 1 && text.contains("== p/b.sh\np/b.sh:1:66: warning PS103"), "{text}");
    assert!(!text.contains("PS109") && text.matches("PS103:").count() == 1, "{text}");
    assert!(
        text.ends_with(
            "4 scripts: 0 errors, 1 warning, 3 with nothing found\n4 of 4 network commands looked at\n"
        ),
        "{text}"
    );

    // A file above the script's folder is read where one stands there, and not from elsewhere.
    put("p/up.sh", "#!/bin/sh\n. ../secret.sh\n. /lib/functions.sh\n. ./none.sh\ntc qdisc show\n");
    let (status, text) = said(&folder, &["check", "p/up.sh"]);
    assert!(status == 3 && text.contains("sourced and read as well: secret.sh (1 of 1)"), "{text}");
    assert!(
        text.contains("line 3: `. /lib/functions.sh` is not read: it is not in a folder that was named; --file /lib/functions.sh gives it"),
        "{text}"
    );
    assert!(
        text.contains("line 4: `. ./none.sh` is not read: there is no such file beside the script"),
        "{text}"
    );
    let (status, text) = said(&folder.join("p"), &["check", "up.sh"]);
    assert!(status == 3 && text.contains("line 2: `. ../secret.sh` is not read: it lies outside"), "{text}");
    assert!(!text.contains("secret.sh:1"), "{text}");
    std::os::unix::fs::symlink("../secret.sh", folder.join("p/none.sh")).unwrap();
    let (_, text) = said(&folder.join("p"), &["check", "up.sh"]);
    assert!(text.contains("line 4: `. ./none.sh` is not read: it lies outside"), "{text}");
    // By its absolute path where it was named so.
    let absolute = folder.join("p/b.sh").display().to_string();
    put("p/abs.sh", &format!("#!/bin/sh\nDEV=eth0\n. {absolute}\n"));
    let script = folder.join("p/abs.sh").display().to_string();
    let (_, text) = said(&folder, &["check", &script]);
    assert!(text.contains(&format!("sourced and read as well: {absolute} (1 of 1)")), "{text}");
    let (_, text) = said(&folder, &["check", "p/abs.sh"]);
    assert!(text.contains("is not read: it is not in a folder that was named"), "{text}");
    // Given by hand.
    put("p/lsb.sh", "#!/bin/sh\n. /lib/lsb/init-functions\ntc qdisc show\n");
    let (status, text) =
        said(&folder, &["check", "--file", "/lib/lsb/init-functions=p/lib/c.sh", "p/lsb.sh"]);
    assert!(
        status == 0 && text.ends_with("sourced and read as well: /lib/lsb/init-functions (1 of 1)\n"),
        "{text}"
    );
    // The fix of a sourced file is made where that file is checked.
    let (_, text) = said(&folder, &["check", "--fix", "--unsafe", "p/x.sh"]);
    assert_eq!(text, std::fs::read_to_string(folder.join("p/x.sh")).unwrap());
    std::fs::remove_dir_all(folder).unwrap();
}

/// Lines of a program that goes on, each waited for at most half a minute.
struct Lines(std::sync::mpsc::Receiver<String>);

impl Lines {
    fn of(out: impl std::io::Read + Send + 'static) -> Lines {
        let (send, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let all = std::io::BufRead::lines(std::io::BufReader::new(out));
            all.map_while(Result::ok).all(|line| send.send(line).is_ok())
        });
        Lines(lines)
    }
    /// All lines up to one that holds this.
    fn until(&self, what: &str) -> Vec<String> {
        let mut all = Vec::new();
        while !all.last().is_some_and(|l: &String| l.contains(what)) {
            let line = self.0.recv_timeout(std::time::Duration::from_secs(30));
            all.push(line.unwrap_or_else(|e| panic!("{what}: {e}: {all:?}")));
        }
        all
    }
}

#[test]
fn watch_looks_again_when_a_script_or_what_it_sources_changes() {
    let folder = scratch("watch");
    std::fs::write(folder.join("s.sh"), format!(". ./lib.sh\n{}", script())).unwrap();
    std::fs::write(folder.join("lib.sh"), "DEV=eth0\n").unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_penstock"))
        .args(["check", "--watch", "s.sh"])
        .current_dir(&folder)
        .env_remove("PENSTOCK_KERNEL")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (out, err) = (Lines::of(child.stdout.take().unwrap()), Lines::of(child.stderr.take().unwrap()));
    let first = out.until("looked at");
    assert!(first[0].contains("s.sh:8:46: warning PS146"), "{first:?}");
    // On a pipe nothing is cleared.
    assert!(!first.concat().contains('\x1b'), "{first:?}");
    err.until("watching 2 files");
    // Written where it stands.
    std::fs::write(
        folder.join("s.sh"),
        format!(". ./lib.sh\n{}", script().replace(" sfq\n", " sfq perturb 10\n")),
    )
    .unwrap();
    err.until("s.sh has changed");
    let second = out.until("looked at");
    assert!(!second.concat().contains("PS146"), "{second:?}");
    // Another file in its place, as editors do it.
    std::fs::write(folder.join("new"), "DEV=eth0\ntc qdisc add dev eth1 root sfq\n").unwrap();
    std::fs::rename(folder.join("new"), folder.join("lib.sh")).unwrap();
    err.until("lib.sh has changed");
    let third = out.until("looked at");
    assert!(third.iter().any(|l| l.starts_with("lib.sh:2:") && l.contains("PS146")), "{third:?}");
    // A signal ends it, as Ctrl-C does. SIGINT itself is ignored by all that a shell has started in the background.
    let done = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(done.success());
    let begun = std::time::Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed().as_secs() < 30, "it goes on");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    for words in [&["check", "--watch", "-"][..], &["check", "--watch", "--fix", "s.sh"]] {
        assert_eq!(penstock(&folder, words).status.code(), Some(2), "{words:?}");
    }
}
