//! Commands in YAML: of workflows, compose files, playbooks and lists of what is run.

use crate::holders::{from, is_command, joined};

/// Keys whose values are commands.
pub(crate) const KEYS: [&str; 18] = [
    "runcmd",
    "bootcmd",
    "exec",
    "commands",
    "cmds",
    "args",
    "run",
    "shell",
    "command",
    "ansible.builtin.shell",
    "ansible.builtin.command",
    "script",
    "before_script",
    "entrypoint",
    "cmd",
    "argv",
    "ansible.legacy.command",
    "ansible.legacy.shell",
];
/// Those whose lists are the words of one command.
const WORDS: [&str; 3] = ["argv", "command", "entrypoint"];
/// Those that no shell reads, where their values are no list.
pub(crate) const UNSHELLED: [&str; 4] =
    ["command", "ansible.builtin.command", "ansible.legacy.command", "cmd"];

/// Whether a line of YAML is one that playbooks, lists of tasks or compose files have.
pub(crate) fn is_ansible_or_compose(line: &str) -> bool {
    let key = line.trim_start().trim_start_matches("- ").split(':').next().unwrap_or("");
    matches!(key, "hosts" | "tasks" | "handlers" | "pre_tasks" | "post_tasks" | "services")
        || key.starts_with("ansible.")
}

/// A list between brackets as the words of one command: brackets and commas become blanks.
pub(crate) fn words_of_list(line: &str) -> String {
    let mut quote = None;
    let one = |c: char| {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | ']' | ',') => return ' ',
            _ => {}
        }
        c
    };
    line.chars().map(one).collect()
}

/// Commands that a list has for one word, which no program's name is: `command: ["tc qdisc add …"]`. Line and column, from 1, and length.
pub(crate) fn one_word(lines: &[&str]) -> Vec<(u32, u32, u32)> {
    let mut out = Vec::new();
    let mut first_of = false;
    for (n, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let below = std::mem::take(&mut first_of);
        let value = match trimmed.trim_start_matches("- ").split_once(':') {
            Some(("command" | "entrypoint" | "argv", value)) => {
                first_of = value.trim().is_empty();
                value.trim().strip_prefix('[').map(str::trim_start)
            }
            _ if below => trimmed.strip_prefix("- "),
            _ => None,
        };
        let Some(value) = value else { continue };
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let word = match quote {
            Some(q) => value[1..].split(q).next().unwrap_or(""),
            None => value.split([',', ']']).next().unwrap_or(""),
        };
        if is_command(word) && word.trim().contains(' ') {
            let column = line.find(word).map_or(0, |at| line[..at].chars().count() as u32 + 1);
            out.push((n as u32 + 1, column, word.chars().count() as u32));
        }
    }
    out
}

/// `run: …`, `run: |` and lists below such keys.
pub(crate) fn yaml(lines: &[&str]) -> String {
    yaml_of(lines, &KEYS)
}

/// What is read below a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    /// A text of several lines.
    Text,
    /// Commands.
    Commands,
    /// The words of one command, or keys of its own.
    Words,
}

pub(crate) fn yaml_of(lines: &[&str], keys: &[&str]) -> String {
    let mut out: Vec<String> = Vec::new();
    // The indentation of the key whose block is being read, and what it is.
    let mut block: Option<(usize, Block)> = None;
    // The list that the block is an element of.
    let mut under: Option<(usize, Block)> = None;
    // Whether a text's lines are folded into one.
    let mut folded = false;
    // Where a list's words began, which are one command; the indentation of the `shell` whose keys are read.
    let (mut word, mut shell): (Option<usize>, Option<usize>) = (None, None);
    for line in lines {
        let indent = line.chars().take_while(|c| *c == ' ').count();
        let trimmed = line.trim_start();
        if let Some((of, what)) = block {
            if trimmed.is_empty() {
                out.push(String::new());
                continue;
            }
            let listed = trimmed.starts_with("- ");
            let inside = indent > of || what != Block::Text && indent == of && listed;
            match what {
                Block::Text if inside => {
                    let before =
                        out.last_mut().filter(|l| folded && !l.trim().is_empty() && !l.ends_with('\\'));
                    if let Some(before) = before {
                        before.push_str(" \\");
                    }
                    out.push((*line).to_owned());
                    continue;
                }
                // `- |`: a script of its own, and the list goes on behind it.
                Block::Commands if inside && listed && is_text(trimmed[2..].trim()) => {
                    (under, block) = (Some((of, what)), Some((indent, Block::Text)));
                    folded = trimmed[2..].trim().starts_with('>');
                    out.push(String::new());
                    continue;
                }
                Block::Commands if inside && listed => {
                    out.push(item(line, indent));
                    continue;
                }
                // A text of several lines among the words: what `sh -c` before it carries out.
                Block::Words if inside && listed && is_text(trimmed[2..].trim()) => {
                    let words = out.iter_mut().rev().take_while(|l| !l.trim().is_empty());
                    words.for_each(String::clear);
                    (block, word) = (Some((indent, Block::Text)), None);
                    folded = trimmed[2..].trim().starts_with('>');
                    out.push(String::new());
                    continue;
                }
                Block::Words if inside && listed => {
                    if let Some(last) = word {
                        out[last].push_str(" \\");
                    }
                    word = Some(out.len());
                    out.push(quoted(line, indent));
                    continue;
                }
                // Keys below it are looked at as any.
                _ => {}
            }
            (block, word) = (None, None);
            // Behind a script within a list: the list's next.
            if let Some((of, what)) = under.take()
                && trimmed.starts_with("- ")
                && indent >= of
            {
                block = Some((of, what));
                out.push(item(line, indent));
                continue;
            }
        }
        let dashes =
            trimmed.strip_prefix("- ").map_or(0, |r| 2 + r.chars().take_while(|c| *c == ' ').count());
        let key = trimmed[dashes..].split_once(':').filter(|(key, _)| KEYS.contains(&key.trim()));
        let Some((key, value)) = key else {
            out.push(String::new());
            continue;
        };
        // `cmd` below `shell` is a shell's.
        let of_shell = key.trim() == "cmd" && shell.is_some_and(|of| indent > of);
        let wanted = keys.contains(&key.trim()) && (!of_shell || keys.contains(&"shell"));
        shell = if key.trim().ends_with("shell") {
            Some(indent + dashes)
        } else {
            shell.filter(|of| indent > *of)
        };
        let value_trimmed = value.trim();
        folded = value_trimmed.starts_with('>');
        if value_trimmed.is_empty() || value_trimmed.starts_with(['|', '>']) {
            let what = match value_trimmed.is_empty() {
                false => Block::Text,
                true if WORDS.contains(&key.trim()) || key.trim().starts_with("ansible.") => Block::Words,
                true => Block::Commands,
            };
            block = (wanted || what == Block::Words).then_some((indent + dashes, what));
            out.push(String::new());
            continue;
        }
        if !wanted {
            out.push(String::new());
            continue;
        }
        let at = indent + dashes + key.chars().count() + 1;
        // Of arguments only those that are a shell's text.
        if key.trim() == "args" {
            out.push(text_among(line, at));
            continue;
        }
        out.push(plain(line, at + value.chars().take_while(|c| *c == ' ').count()));
    }
    joined(out)
}

/// Whether a value says that a text of several lines follows: `|`, `>-`, `|2`.
pub(crate) fn is_text(value: &str) -> bool {
    value.starts_with(['|', '>']) && value[1..].chars().all(|c| "+-123456789".contains(c))
}

/// An element of a list of words, in the quotes that keep it one word.
fn quoted(line: &str, indent: usize) -> String {
    let text = item(line, indent);
    let bare = text.trim();
    if bare.is_empty() || !bare.contains(|c: char| c.is_whitespace() || "'\"$&|;<>()*?`\\".contains(c)) {
        return text.trim_end().to_owned();
    }
    let at = text.chars().count() - text.trim_start().chars().count();
    let quote = if bare.contains('\'') { '"' } else { '\'' };
    let blanks = " ".repeat(at.saturating_sub(1));
    format!("{blanks}{quote}{bare}{quote}")
}

/// Of a list's elements the one that is a command in words: `["-c", "tc …"]`.
fn text_among(line: &str, at: usize) -> String {
    let rest: String = line.chars().skip(at).collect();
    let mut column = at;
    for (n, part) in rest.split('"').enumerate() {
        if n % 2 == 1 && is_command(part) {
            return format!("{}{part}", " ".repeat(column));
        }
        column += part.chars().count() + 1;
    }
    String::new()
}

/// An element of a list of commands.
fn item(line: &str, indent: usize) -> String {
    let Some(rest) = line.trim_start().strip_prefix("- ") else { return String::new() };
    plain(line, indent + 2 + rest.chars().take_while(|c| *c == ' ').count())
}

/// A value on one line, without YAML's quotes.
fn plain(line: &str, at: usize) -> String {
    let value: String = line.chars().skip(at).collect();
    for quote in ['"', '\''] {
        if let Some(inner) = value.trim_end().strip_prefix(quote).and_then(|v| v.strip_suffix(quote)) {
            return format!("{} {inner}", " ".repeat(at));
        }
    }
    if value.starts_with('[') { words_of_list(&from(line, at)) } else { from(line, at) }
}
