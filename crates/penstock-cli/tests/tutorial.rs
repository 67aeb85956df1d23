//! `docs/tutorial.md`: its files are written, its commands run in order, and what they print is what the page shows.
//!
//! A block after a line that ends in "`NAME`:" is the text of that file. In a `console` block, lines with `$` are commands and the others
//! what they print, standard error too. `PENSTOCK_BLESS=1` writes what they print into the page.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// A part of a page.
enum Part {
    /// What is not run.
    Text(String),
    /// A file: its name, its block's language, its text.
    File(String, String, String),
    /// Commands, each with what it prints.
    Console(Vec<(String, String)>),
}

fn parts(page: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```") else {
            writeln!(text, "{line}").unwrap();
            continue;
        };
        let block: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
        let last = text.lines().rev().find(|l| !l.is_empty()).unwrap_or_default();
        let file = last.strip_suffix("`:").and_then(|l| l.rsplit_once('`')).map(|(_, name)| name.to_owned());
        parts.push(Part::Text(std::mem::take(&mut text)));
        match (language, file) {
            ("console", _) => {
                let mut commands: Vec<(String, String)> = Vec::new();
                for line in block {
                    match (line.strip_prefix("$ "), commands.last_mut()) {
                        (Some(command), _) => commands.push((command.to_owned(), String::new())),
                        (None, Some((_, output))) => writeln!(output, "{line}").unwrap(),
                        (None, None) => panic!("output without a command: {line}"),
                    }
                }
                parts.push(Part::Console(commands));
            }
            (_, Some(name)) => {
                parts.push(Part::File(name, language.to_owned(), block.join("\n") + "\n"));
            }
            _ => panic!("a block that is neither a file nor commands: {block:?}"),
        }
    }
    parts.push(Part::Text(text));
    parts
}

/// What a reader sees when typing this in that folder, without colours.
fn typed(folder: &Path, command: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_penstock")).parent().unwrap();
    let path = std::env::join_paths(
        std::iter::once(program.to_owned()).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let done = Command::new("sh")
        .args(["-c", &format!("{{ {command}\n}} 2>&1")])
        .current_dir(folder)
        .env("PATH", path)
        .env("PENSTOCK_STATE", folder.join(".state"))
        .env("LC_ALL", "C")
        .env_remove("PENSTOCK_KERNEL")
        .env_remove("PENSTOCK_ADVICE")
        .output()
        .unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    // Trailing blanks are the editor's business.
    said.lines().map(str::trim_end).fold(String::new(), |all, line| all + line + "\n")
}

#[test]
fn every_step_prints_what_the_page_shows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorial.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let folder = std::env::temp_dir().join(format!("penstock-tutorial-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut new = String::new();
    let mut commands_run = 0;
    for part in parts(&page) {
        match part {
            Part::Text(text) => new += &text,
            Part::File(name, language, text) => {
                std::fs::write(folder.join(name), &text).unwrap();
                write!(new, "```{language}\n{text}```\n").unwrap();
            }
            Part::Console(commands) => {
                new += "```console\n";
                for (command, _) in commands {
                    commands_run += 1;
                    write!(new, "$ {command}\n{}", typed(&folder, &command)).unwrap();
                }
                new += "```\n";
            }
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    assert!(commands_run >= 15, "only {commands_run} commands: is the page still a tutorial?");
    let steps = page.lines().filter(|l| l.starts_with("## ") && l.as_bytes()[3].is_ascii_digit()).count();
    assert_eq!(steps, 8);
    if std::env::var_os("PENSTOCK_BLESS").is_some() {
        std::fs::write(&path, new).unwrap();
        return;
    }
    for (n, (is, should)) in new.lines().zip(page.lines()).enumerate() {
        assert_eq!(is, should, "docs/tutorial.md:{}: PENSTOCK_BLESS=1 writes what is printed now", n + 1);
    }
    assert_eq!(
        new.lines().count(),
        page.lines().count(),
        "docs/tutorial.md is longer or shorter than what is printed"
    );
}
