//! What one types first: templates, examples by name, completions, manual pages.

mod scratch;

use scratch::{Scratch, text};
use std::path::Path;
use std::process::{Command, Output};

fn penstock(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_penstock"));
    command.args(words).current_dir(folder).env("PENSTOCK_STATE", folder.join("state")).output().unwrap()
}

/// What it printed, where it did well.
fn ok(folder: &Path, words: &[&str]) -> String {
    let done = penstock(folder, words);
    assert!(done.status.success(), "{words:?}: {}{}", text(&done.stdout), text(&done.stderr));
    text(&done.stdout)
}

#[test]
fn every_template_runs_and_what_it_expects_comes_out() {
    let folder = Scratch::new("begin-templates");
    let list: serde_json::Value = serde_json::from_str(&ok(&folder.0, &["new", "--list", "--json"])).unwrap();
    let names: Vec<&str> = list.as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["bufferbloat", "home-line", "incast", "isp", "my-script", "two-aqms", "wan"]);
    for name in names {
        let file = format!("{name}.toml");
        let said = ok(&folder.0, &["new", name]);
        assert!(said.starts_with(&format!("{file}\n")), "{said}");
        assert!(said.ends_with(&format!("Next:  penstock run {file}\n")), "{said}");
        let done = penstock(&folder.0, &["run", &file]);
        let (shown, warned) = (text(&done.stdout), text(&done.stderr));
        assert_eq!(done.status.code(), Some(0), "{name}: {shown}{warned}");
        assert_eq!(warned, "", "{name}");
        assert!(shown.contains("  met  "), "{name} expects nothing: {shown}");
        let text = std::fs::read_to_string(folder.0.join(&file)).unwrap();
        assert!(text.starts_with("# "), "{name} begins with what it is");
    }
}

#[test]
fn the_other_half_of_a_template_holds_too() {
    let folder = Scratch::new("begin-half");
    let change = |name: &str, changes: &[(&str, &str)]| {
        ok(&folder.0, &["new", name]);
        let file = folder.0.join(format!("{name}.toml"));
        let mut text = std::fs::read_to_string(&file).unwrap();
        for (from, to) in changes {
            assert!(text.contains(from), "{name}: {from}");
            text = text.replace(from, to);
        }
        std::fs::write(&file, text).unwrap();
        ok(&folder.0, &["run", &format!("{name}.toml")])
    };
    // What the comments of the files promise.
    change("bufferbloat", &[("    # \"tc", "    \"tc"), ("\">300ms\"", "\"<50ms\"")]);
    change(
        "incast",
        &[
            ("    \"tc qdisc replace dev up root pfifo", "    # \"tc qdisc replace dev up root pfifo"),
            ("    # \"tc qdisc replace dev up root red", "    \"tc qdisc replace dev up root red"),
            ("# tcp = ", "tcp = "),
            ("\">0\"", "\"0\""),
            ("\">17ms\"", "\"<40ms\""),
        ],
    );
}

#[test]
fn new_replaces_nothing_and_writes_where_it_is_told() {
    let folder = Scratch::new("begin-new");
    assert!(ok(&folder.0, &["new"]).starts_with("home-line.toml\n"));
    let mine = folder.0.join("home-line.toml");
    std::fs::write(&mine, "mine").unwrap();
    let done = penstock(&folder.0, &["new", "home-line"]);
    assert_eq!(done.status.code(), Some(2));
    let why = "penstock: home-line.toml is there already; nothing was written. Name another file: penstock new home-line FILE\n";
    assert_eq!(text(&done.stderr), why);
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
    // A script that is there is as much somebody's own; then nothing is written at all.
    std::fs::create_dir(folder.0.join("own")).unwrap();
    std::fs::write(folder.0.join("own/my-script.sh"), "mine").unwrap();
    let done = penstock(&folder.0, &["new", "my-script", "own"]);
    assert!(text(&done.stderr).contains("own/my-script.sh is there already"), "{done:?}");
    assert!(!folder.0.join("own/my-script.toml").exists());
    let said = ok(&folder.0, &["new", "my-script", "deep/er/x.toml"]);
    assert_eq!(said, "deep/er/x.toml\ndeep/er/my-script.sh\n\nNext:  penstock run deep/er/x.toml\n");
    let done = penstock(&folder.0, &["new", "bufferbloot"]);
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    assert!(
        said.contains(
            "there is no template \"bufferbloot\"; did you mean bufferbloat? there is bufferbloat, home-line"
        ),
        "{said}"
    );
}

#[test]
fn an_example_is_run_by_its_name_without_any_file() {
    let folder = Scratch::new("begin-example");
    let shown = ok(&folder.0, &["run", "example:home-line"]);
    assert!(shown.starts_with("A home line with shaping (30 s, seed 1)\n"), "{shown}");
    assert!(shown.ends_with("runs/home-line/report.html\n"), "{shown}");
    // The same as from the files.
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/home-line.toml");
    let from_file = ok(&folder.0, &["run", file.to_str().unwrap(), "--out", "runs/home-line"]);
    assert_eq!(shown, from_file);
    // In a folder, with files beside it.
    ok(&folder.0, &["run", "example:systems/ios-or-linux"]);
    let done = penstock(&folder.0, &["run", "example:home-lien"]);
    assert_eq!(done.status.code(), Some(2));
    assert_eq!(
        text(&done.stderr),
        "penstock: there is no example \"home-lien\"; did you mean home-line? penstock examples lists them\n"
    );
}

#[test]
fn examples_are_listed_and_printed() {
    let folder = Scratch::new("begin-list");
    let shown = ok(&folder.0, &["examples"]);
    for name in ["home-line", "isp-10k", "systems/rsvp", "new/bufferbloat"] {
        assert!(shown.lines().any(|l| l.starts_with(&format!("{name} "))), "{name} in {shown}");
    }
    let list: serde_json::Value = serde_json::from_str(&ok(&folder.0, &["examples", "--json"])).unwrap();
    let row = list.as_array().unwrap().iter().find(|e| e["name"] == "home-line").unwrap();
    assert_eq!(row["title"], "A home line with shaping");
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/home-line.toml");
    let wanted = std::fs::read_to_string(file).unwrap();
    for name in ["home-line", "home-line.toml", "example:home-line"] {
        assert_eq!(ok(&folder.0, &["examples", name]), wanted);
    }
}

/// Runs a line of a shell; whether that shell is there.
fn shell(name: &str, script: &str, folder: &Path) -> Option<String> {
    let done = Command::new(name).arg("-c").arg(script).current_dir(folder).output().ok()?;
    assert!(done.status.success(), "{name}: {}", text(&done.stderr));
    Some(text(&done.stdout))
}

#[test]
fn the_schema_is_the_one_of_the_docs() {
    let folder = Scratch::new("begin-schema");
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/experiment.schema.json");
    assert!(ok(&folder.0, &["schema"]) == std::fs::read_to_string(docs).unwrap());
}

#[test]
fn completions_are_of_every_verb_and_a_shell_takes_them() {
    let folder = Scratch::new("begin-completions");
    for name in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = ok(&folder.0, &["completions", name]);
        for word in ["run", "compare", "new", "repeat"] {
            assert!(script.contains(word), "{name} does not know {word}");
        }
        std::fs::write(folder.0.join(name), script).unwrap();
    }
    let asked = "set -e; . ./bash; COMP_WORDS=(penstock ru); COMP_CWORD=1; _penstock penstock ru penstock; echo \"${COMPREPLY[@]}\"";
    if let Some(said) = shell("bash", asked, &folder.0) {
        assert_eq!(said, "run\n");
    }
    let asked = "set -e; . ./bash; COMP_WORDS=(penstock run --re); COMP_CWORD=2; _penstock penstock --re run; echo \"${COMPREPLY[@]}\"";
    if let Some(said) = shell("bash", asked, &folder.0) {
        assert_eq!(said, "--repeat\n");
    }
}

#[test]
fn every_verb_has_a_manual_page() {
    let folder = Scratch::new("begin-man");
    let said = ok(&folder.0, &["man", "--out", "man1"]);
    let mut names: Vec<String> = std::fs::read_dir(folder.0.join("man1"))
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(said, format!("man1: {} pages\n", names.len()));
    // As many as the help names, and penstock itself.
    let help = ok(&folder.0, &["--help"]);
    let verbs: Vec<&str> = help
        .lines()
        .skip_while(|l| *l != "Commands:")
        .skip(1)
        .take_while(|l| !l.is_empty())
        // A terminal may fold what stands behind a verb.
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .collect();
    assert!(verbs.contains(&"run") && verbs.contains(&"man"), "{verbs:?}");
    let mut wanted: Vec<String> = verbs.iter().map(|verb| format!("penstock-{verb}.1")).collect();
    wanted.push("penstock.1".to_owned());
    wanted.sort();
    assert_eq!(names, wanted);
    let page = ok(&folder.0, &["man", "run"]);
    assert_eq!(page, std::fs::read_to_string(folder.0.join("man1/penstock-run.1")).unwrap());
    assert!(page.contains("\\-\\-repeat") && page.contains(".TH"), "{page}");
    let main = ok(&folder.0, &["man"]);
    assert!(main.contains("penstock\\-run(1)") && !main.contains("penstock\\-inside"), "{main}");
    let done = penstock(&folder.0, &["man", "rnu"]);
    assert_eq!(done.status.code(), Some(2));
}

#[test]
fn a_mistyped_verb_is_told_what_was_meant() {
    let folder = Scratch::new("begin-meant");
    for (word, near) in [
        ("rnu", "run"),
        ("chekc", "check"),
        ("comparison", "compare"),
        ("exmaples", "examples"),
        ("home.toml", "run home.toml"),
        ("example:home-line", "run example:home-line"),
    ] {
        let done = penstock(&folder.0, &[word]);
        assert_eq!(done.status.code(), Some(2), "{word}");
        let said = text(&done.stderr);
        assert!(said.contains(&format!("'{near}'")), "{word}: {said}");
    }
    let said = text(&penstock(&folder.0, &["xyzzy"]).stderr);
    assert!(said.contains("unrecognized subcommand 'xyzzy'") && !said.contains("similar"), "{said}");
    // Verbs that are not for people are not offered.
    let said = text(&penstock(&folder.0, &["insid"]).stderr);
    assert!(!said.contains("'inside'"), "{said}");
}
