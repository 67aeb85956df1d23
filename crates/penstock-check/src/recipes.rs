//! Commands in justfiles and in reStructuredText.

use crate::holders::{from, is_command, joined, transcript};
use crate::templates::without_templates;

/// The recipes of a justfile: the body of each, without `@` and `-`; of recipes that take down each for itself. `{{name}}` of a plain assignment is that variable, what else
/// stands in such braces is unknown. Everything stays in its line.
pub(crate) fn just(lines: &[&str]) -> Vec<String> {
    let mut all = vec![vec![String::new(); lines.len()]];
    let mut into = 0;
    let mut names: Vec<&str> = Vec::new();
    let mut goes_on = false;
    for (n, line) in lines.iter().enumerate() {
        if line.starts_with([' ', '\t']) {
            let indent = line.chars().take_while(|c| c.is_whitespace()).count();
            let bare: String = line.chars().skip(indent).collect();
            let signs = if goes_on { 0 } else { bare.chars().take_while(|c| "@-".contains(*c)).count() };
            // A recipe with an interpreter of its own is a script within.
            let text = if bare.starts_with("#!") { String::new() } else { from(line, indent + signs) };
            all[into][n] = without_templates(&with_names(&text, &names));
            goes_on = line.ends_with('\\');
            continue;
        }
        goes_on = false;
        let line = line.strip_prefix("export ").unwrap_or(line);
        if let Some((name, value)) = line.split_once(":=") {
            let (name, value) = (name.trim(), value.trim());
            let quoted =
                ['"', '\''].iter().any(|q| value.len() > 1 && value.starts_with(*q) && value.ends_with(*q));
            let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if plain && quoted {
                names.push(name);
                all[0][n] = format!("{name}={value}");
            }
        } else if line.contains(':') && !line.starts_with(['#', '[', '@']) {
            let target = line.split([' ', ':']).next().unwrap_or("");
            into = 0;
            if crate::embedded::takes_down(target) {
                all.push(
                    all[0]
                        .iter()
                        .map(|l| if crate::embedded::is_set(l) { l.clone() } else { String::new() })
                        .collect(),
                );
                into = all.len() - 1;
            }
        }
    }
    all.into_iter().map(joined).collect()
}

/// `{{name}}` of these names as `${name-}`, which is as long; with blanks in it as `"${name-}"` where that fits.
fn with_names(line: &str, names: &[&str]) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find("{{") {
        let Some(end) = rest[at..].find("}}").map(|n| at + n + 2) else { break };
        let inner = rest[at + 2..end - 2].trim();
        out += &rest[..at];
        let more = rest[at..end].len() - inner.len();
        let default = if more % 2 == 1 { ":-" } else { "-" };
        match more {
            _ if !names.contains(&inner) => out += &rest[at..end],
            4 | 5 => out += &format!("${{{inner}{default}}}"),
            more => out += &format!("\"${{{inner}{default}}}{}\"", "\"\"".repeat((more - 6) / 2)),
        }
        rest = &rest[end..];
    }
    out + rest
}

/// Blocks of reStructuredText: behind `.. code-block:: bash` and its like, and behind `::` where they begin with a command; each for itself.
pub(crate) fn rst(lines: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    let mut n = 0;
    while n < lines.len() {
        let line = lines[n];
        let indent = depth(line);
        let trimmed = line.trim();
        let directive = trimmed
            .strip_prefix(".. ")
            .and_then(|t| t.split_once("::"))
            .map(|(d, word)| (d.trim(), word.trim()));
        let wanted = match directive {
            Some(("code-block" | "code" | "sourcecode" | "prompt", word)) => {
                let word = word.split_whitespace().next().unwrap_or("");
                matches!(word, "sh" | "bash" | "shell" | "console" | "shell-session" | "zsh").then_some(true)
            }
            Some(_) => None,
            None => trimmed.ends_with("::").then_some(false),
        };
        n += 1;
        let Some(named) = wanted else { continue };
        let mut block = vec![String::new(); n];
        let mut begins = None;
        while n < lines.len() && (lines[n].trim().is_empty() || depth(lines[n]) > indent) {
            let text = lines[n].trim();
            let option = begins.is_none() && text.starts_with(':');
            if !text.is_empty() && !option {
                begins = begins.or(Some(is_command(text.trim_start_matches("$ ").trim_start_matches("# "))));
            }
            block.push(if option { String::new() } else { lines[n].to_owned() });
            n += 1;
        }
        if begins.is_some_and(|command| command || named) {
            all.push(transcript(joined(block)));
        }
    }
    all
}

fn depth(line: &str) -> usize {
    line.chars().take_while(|c| c.is_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(got: Vec<String>, want: &[&[&str]]) {
        let got: Vec<Vec<&str>> = got.iter().map(|t| t.lines().map(str::trim_end).collect()).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn recipes_of_justfiles() {
        let text = "dev := \"eth0\"\n# up\nup rate=\"5mbit\":\n    @tc a {{dev}} {{ dev }} \\\n      {{rate}}\n    -tc b\ndown:\n\ttc c {{dev}}\nall: up\n    #!/bin/bash\n    tc d\n";
        check(
            just(&text.lines().collect::<Vec<_>>()),
            &[
                &[
                    "dev=\"eth0\"",
                    "",
                    "",
                    "     tc a ${dev-} \"${dev-}\" \\",
                    "      $(j2   )",
                    "     tc b",
                    "",
                    "",
                    "",
                    "",
                    "    tc d",
                ],
                &["dev=\"eth0\"", "", "", "", "", "", "", " tc c ${dev-}", "", "", ""],
            ],
        );
    }

    #[test]
    fn blocks_of_restructured_text() {
        let text = "Title\n\n.. code-block:: bash\n   :linenos:\n\n   tc a\n   tc b\n\nThen::\n\n  $ tc c\n  qdisc 1:\n\nNot::\n\n  x = 1\n\n.. code:: python\n\n   tc d\n\n.. note:: x\n";
        check(
            rst(&text.lines().collect::<Vec<_>>()),
            &[
                &["", "", "", "", "", "   tc a", "   tc b", ""],
                &["", "", "", "", "", "", "", "", "", "", "    tc c", "", ""],
            ],
        );
        for odd in ["::", ".. code-block:: sh", "é::\n  é", ".. ::", "{{", "a::\n\u{a0}tc x"] {
            rst(&odd.lines().collect::<Vec<_>>());
            just(&odd.lines().collect::<Vec<_>>());
        }
    }
}
