//! No line of our texts is longer than a screen is wide.

use crate::tidy::root;
use anyhow::Result;
use std::process::Command;

/// Characters a line may have.
const MAX_LINE: usize = 200;

/// Whether a file's lines are checked: Rust, Markdown and TOML. Recorded material keeps the lines it came with.
fn checked(name: &str) -> bool {
    [".rs", ".md", ".toml"].iter().any(|e| name.ends_with(e)) && !name.starts_with("vectors/")
}

/// The lines of a text that are too long, each with its file, number and length.
fn too_long(name: &str, text: &str) -> Vec<String> {
    let lengths = text.lines().map(|line| line.chars().count()).enumerate();
    lengths
        .filter(|(_, length)| *length > MAX_LINE)
        .map(|(at, length)| format!("{name}:{}: {length} characters; a line has at most {MAX_LINE}", at + 1))
        .collect()
}

/// Every line that is too long, in the files that git knows.
pub fn run() -> Result<Vec<String>> {
    let Ok(out) = Command::new("git").args(["ls-files"]).current_dir(root()).output() else {
        return Ok(Vec::new());
    };
    let names = String::from_utf8_lossy(&out.stdout).into_owned();
    let read = |name: &str| std::fs::read_to_string(root().join(name)).unwrap_or_default();
    Ok(names.lines().filter(|n| checked(n)).flat_map(|n| too_long(n, &read(n))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_201_characters_is_told_with_its_place() {
        let text = format!("short\n{}\n{}\n", "ü".repeat(200), "ü".repeat(201));
        assert_eq!(too_long("a.md", &text), ["a.md:3: 201 characters; a line has at most 200"]);
    }

    #[test]
    fn recorded_material_keeps_its_lines() {
        assert!(checked("README.md") && checked("crates/x/src/lib.rs") && checked("studies/a/b.toml"));
        assert!(!checked("vectors/tc/README.md") && !checked("studies/a/commands/x.sh"));
    }

    #[test]
    fn no_line_is_too_long() {
        assert_eq!(run().unwrap(), Vec::<String>::new());
    }
}
