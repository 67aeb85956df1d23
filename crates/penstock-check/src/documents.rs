//! Scripts within other files: templates, files that stand as texts in YAML, and here-documents of a shell script for another machine (`ssh`) or for a file
//! that is run another time.

use crate::holders::{is_command, is_script, joined, scripts, unit};
use crate::source::{Form, Source};
use crate::templates::{template_of, without_templates};
use crate::yaml::{KEYS, is_text};
use std::collections::BTreeSet;

/// A here-document that is a script of its own, in the lines and columns of the file it stands in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Document {
    /// The file it is written to; empty for what goes to another shell.
    pub name: String,
    /// Blank lines, and then its own.
    pub text: String,
    /// Its first line and the one behind its last.
    pub lines: std::ops::Range<u32>,
    /// Whether the shell around it fills in variables.
    pub filled_in: bool,
}

/// Programs that hand what they read to a shell elsewhere.
const REMOTE: [&str; 10] =
    ["ssh", "sshpass", "docker", "podman", "kubectl", "lxc", "incus", "nsenter", "vagrant", "su"];

/// The here-documents of a shell script that hold commands and that the script itself does not carry out.
pub(crate) fn here(text: &str) -> Vec<Document> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some((word, quoted, tabs)) = opener(lines[at]) else {
            at += 1;
            continue;
        };
        let ends = |l: &&str| (if tabs { l.trim_start_matches('\t') } else { l }) == word;
        let Some(count) = lines[at + 1..].iter().position(ends) else {
            at += 1;
            continue;
        };
        all.extend(target(lines[at]).and_then(|name| document(&lines, at, count, name, quoted)));
        at += count + 2;
    }
    all
}

/// The word that ends a here-document which begins behind the line, whether it is in quotes, and whether tabs before it do not count.
fn opener(line: &str) -> Option<(String, bool, bool)> {
    let trimmed = line.trim_start();
    let at = line.find("<<").filter(|_| !trimmed.starts_with('#'))?;
    let rest = &line[at + 2..];
    if rest.starts_with('<') || line[..at].ends_with("$((") {
        return None;
    }
    let (rest, tabs) = rest.strip_prefix('-').map_or((rest, false), |r| (r, true));
    let rest = rest.trim_start();
    let quoted = rest.starts_with(['\'', '"', '\\']);
    let word: String = rest
        .trim_start_matches(['\'', '"', '\\'])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        .collect();
    (!word.is_empty() && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
        .then_some((word, quoted, tabs))
}

/// Where a here-document goes: the file's name, nothing for a shell elsewhere; `None` for what the script itself reads.
fn target(line: &str) -> Option<String> {
    let name = |w: &str| w.trim_matches(['"', '\'']).rsplit('/').next().unwrap_or(w).to_owned();
    let words: Vec<&str> = line.split_whitespace().filter(|w| !w.starts_with("<<")).collect();
    let base = |w: &&str| w.rsplit('/').next().is_some_and(|b| REMOTE.contains(&b));
    let tee = words.iter().position(|w| *w == "tee");
    if let Some(tee) = tee {
        return words[tee + 1..].iter().find(|w| !w.starts_with('-')).map(|w| name(w));
    }
    if words.contains(&"cat") {
        let redirected = words.iter().position(|w| w.starts_with('>'))?;
        let file = words[redirected].trim_start_matches('>');
        return Some(name(if file.is_empty() { words.get(redirected + 1)? } else { file }));
    }
    words.iter().take_while(|w| **w != "|").any(base).then(String::new)
}

/// A variable's name at the beginning of a text that stands behind `$`.
fn variable(text: &str) -> &str {
    let text = text.strip_prefix('{').unwrap_or(text);
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    if text.starts_with(|c: char| c.is_ascii_digit()) { "" } else { &text[..end] }
}

fn document(lines: &[&str], at: usize, count: usize, name: String, quoted: bool) -> Option<Document> {
    let body = &lines[at + 1..=at + count];
    let mut text: Vec<String> = vec![String::new(); at + 1];
    if quoted {
        text.extend(body.iter().map(|l| (*l).to_owned()));
    } else {
        // What the shell around it fills in: values that are written in one place as they are, or output that nobody knows.
        let plain = |l: &&str| {
            let value = l.split_once('=').map_or("", |v| v.1).trim_matches(['"', '\'']);
            !value.is_empty() && value.chars().all(|c| c.is_ascii_alphanumeric() || "._:/-".contains(c))
        };
        let mut names = BTreeSet::new();
        for line in body {
            let parts = line.split('$').collect::<Vec<_>>();
            let own = parts.windows(2).filter(|p| !p[0].ends_with('\\')).map(|p| variable(p[1]));
            names.extend(own.filter(|n| !n.is_empty()));
        }
        let mut set = String::new();
        for name in names {
            let sets = |l: &&str| l.trim_start().strip_prefix(name).is_some_and(|r| r.starts_with('='));
            let mut setting = lines[..at].iter().map(|l| l.trim()).filter(|l| sets(l));
            match (setting.next(), setting.next()) {
                (Some(one), None) if plain(&one) => set += &format!("{one}; "),
                _ => set += &format!("{name}=$(j2); "),
            }
        }
        text[at] = set;
        text.extend(body.iter().map(|l| l.replace("\\$", "$").replace("\\`", "`")));
    }
    let first = body.first().map_or("", |l| l.trim());
    if first.starts_with("#!") && at > 0 {
        text[0] = first.to_owned();
    }
    let text = joined(text);
    let held = scripts(&name, &body.join("\n")).map_or_else(
        || body.iter().any(|l| is_command(l)),
        |all| all.iter().any(|t| t.lines().any(is_command)),
    );
    // Rules of nft have lines of `ip …` too; what is meant for a shell says so, or changes something with tc or iptables.
    let says_so = first.starts_with("#!") || body.iter().any(|l| crate::embedded::speaks(l));
    let of_shell = says_so && is_script(&name, &text) && Source::new(&text).form != Form::Python;
    let lines = at as u32 + 2..(at + count) as u32 + 2;
    (held && (of_shell || !is_script(&name, &text))).then_some(Document {
        name,
        text,
        lines,
        filled_in: !quoted,
    })
}

/// The text of a shell script that is a template, with output that nobody knows in the place of what will be filled in; `None` for another.
pub(crate) fn filled_in(name: &str, text: &str) -> Option<String> {
    let statement = |l: &str| l.trim_start().starts_with("{%") && l.contains("%}");
    if !is_script(name, text) || template_of(name).is_none() && !text.lines().any(statement) {
        return None;
    }
    let mut comment = false;
    let one = |line: &str| {
        comment |= line.trim_start().starts_with("{#");
        let hidden = comment;
        comment &= !line.contains("#}");
        if hidden { String::new() } else { without_templates(line) }
    };
    Some(joined(text.lines().map(one).collect()))
}

/// Commands of a compose file, where `entrypoint` has the program and `command` its words.
pub(crate) fn with_entrypoints(lines: &[&str], commands: &str) -> String {
    let mut out: Vec<String> = commands.lines().map(str::to_owned).collect();
    let indent = |l: &str| l.chars().take_while(|c| *c == ' ').count();
    for at in 0..lines.len() {
        let is_program =
            |l: &str| l.split_whitespace().count() == 1 && is_command(&l.replace(['"', '\''], " "));
        if !lines[at].trim_start().starts_with("entrypoint:") || !is_program(&out[at]) {
            continue;
        }
        let of = indent(lines[at]);
        let own = |l: &&&str| l.trim().is_empty() || indent(l) >= of;
        let count = lines[at + 1..].iter().take_while(own).count();
        let of_command =
            |l: &&str| indent(l) == of && l.trim_start().starts_with("command:") && !l.trim().ends_with(':');
        let Some(behind) = lines[at + 1..=at + count].iter().position(of_command) else { continue };
        for line in &mut out[at..=at + behind] {
            *line += " \\";
        }
    }
    joined(out)
}

/// Files that stand in YAML as texts, each for itself: `content` of Ansible's `copy` and of `write_files`, the data of a ConfigMap. Scripts with their first line,
/// or by a name that ends in `.sh`, and systemd's units.
pub(crate) fn files_of_yaml(lines: &[&str]) -> Vec<String> {
    let indent = |l: &str| l.chars().take_while(|c| *c == ' ').count();
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start().trim_start_matches("- ");
        let Some((key, value)) = trimmed.split_once(':') else { continue };
        let key = key.trim_matches(['"', '\'', ' ']);
        if !is_text(value.trim()) || value.trim().starts_with('>') || KEYS.contains(&key) {
            continue;
        }
        let of = indent(line) + line.trim_start().len() - trimmed.len();
        let within = |l: &&&str| l.trim().is_empty() || indent(l) > of;
        let count = lines[at + 1..].iter().take_while(within).count();
        let body = &lines[at + 1..=at + count];
        let mut text: Vec<&str> = vec![""; at + 1];
        text.extend(body);
        if body.iter().any(|l| l.trim() == "[Service]") {
            all.extend(unit(&text));
            continue;
        }
        let first = body.iter().find(|l| !l.trim().is_empty()).map_or("", |l| l.trim());
        let of_shell =
            first.starts_with("#!") && ["sh", "bash", "ash", "dash"].iter().any(|s| first.ends_with(s));
        if (of_shell || !first.starts_with("#!") && key.ends_with(".sh"))
            && body.iter().any(|l| is_command(l))
        {
            // What it is a script of is said in its first line.
            text[0] = if of_shell { first } else { "" };
            all.push(joined(text.into_iter().map(str::to_owned).collect()));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_for_others() {
        let of = |text: &str| {
            here(text)
                .into_iter()
                .map(|d| (d.name, d.text.trim_end().to_owned(), d.lines))
                .collect::<Vec<_>>()
        };
        let ssh = "ssh r <<'E'\ntc qdisc add $x\nE\ntc b\n";
        assert_eq!(of(ssh), [(String::new(), "\ntc qdisc add $x".to_owned(), 2..3)]);
        let file = "A=5\ncat > /x/run.sh <<E\ntc qdisc add $A \\$1 ${B}\nE\n";
        assert_eq!(
            of(file),
            [("run.sh".to_owned(), "\nA=5; B=$(j2); \ntc qdisc add $A $1 ${B}".to_owned(), 3..4)]
        );
        let tee = "sudo tee -a /etc/y >/dev/null <<-'E'\n\ttc qdisc add a\n\tE\n";
        assert_eq!(of(tee)[0].0, "y");
        // What the script reads itself, what is only printed, and no commands.
        for text in
            ["tc -b - <<E\ntc a\nE\n", "cat <<E\ntc a\nE\n", "cat > x <<E\nhello\nE\n", "bash <<E\ntc a\nE\n"]
        {
            assert_eq!(of(text), [], "{text}");
        }
    }

    #[test]
    fn templates_are_filled_in() {
        let text = "{# why #}\nD={{ dev | default('e') }}\n{% if x %}\ntc a\n{% endif %}\n";
        let got = filled_in("a.sh", text).unwrap();
        let got: Vec<&str> = got.lines().map(str::trim_end).collect();
        assert_eq!(got, ["", "D=$(j2                   )", "", "tc a", ""]);
        assert_eq!(filled_in("a.sh", "docker inspect -f '{{.Id}}' x\n"), None);
    }

    #[test]
    fn entrypoints_and_their_words() {
        let text = ["a:", "  entrypoint: [\"tc\"]", "  user: x", "  command: qdisc show", "b:"];
        let read = "\n              \"tc\"\n\n           qdisc show\n\n";
        let got = with_entrypoints(&text, read);
        assert_eq!(got.lines().map(str::trim).collect::<Vec<_>>(), ["", "\"tc\" \\", "\\", "qdisc show", ""]);
    }
}
