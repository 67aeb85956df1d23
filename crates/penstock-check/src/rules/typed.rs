//! PS010 to PS013: commands that are typed so that the shell, or Python, runs another program than the one meant.

use crate::facts::Facts;
use crate::finding::{Edit, Found, Level, Rule, Say};
use crate::source::Form;
use crate::syntax::tokens;

pub const RULES: &[Rule] = &[
    Rule::warning(
        "PS010",
        "no space after `[`",
        "`[` is a program like any other, and its name ends at a space. `[$A = b ]` runs a program by the name of `[` and the variable's value; there is none, \
         the condition is false, and what stands behind it is never done.",
        bracket,
    ),
    Rule::warning(
        "PS011",
        "blanks around `=` make an assignment a command",
        "`DEV = eth0` runs a program `DEV` with two arguments, and `DEV= eth0` a program `eth0` with an empty DEV. The variable stays as it was: mostly unset. \
         Write `DEV=eth0`.",
        spaced,
    ),
    Rule::warning(
        "PS012",
        "a command in one string, without a shell",
        "Without `shell=True` Python takes the whole string for the name of a program: `FileNotFoundError: [Errno 2] No such file or directory: 'tc qdisc …'`. \
         Give a list of words, `shlex.split(…)`, or `shell=True`. Neither does systemd take a shell for `ExecStart=`, nor Ansible for `command`, nor Docker for a `command` of \
         compose: `|| true`, `&&` and `2>/dev/null` are then words that tc refuses. Write `/bin/sh -c '…'`, a leading `-` (systemd), or `shell` (Ansible).",
        one_string,
    ),
    Rule {
        code: "PS013",
        severity: Level::Error,
        about: "nft refuses the command",
        why: "nft reads a file or a command whole, and the kernel takes all of it or nothing: with one mistake no rule of it is there. The message is nft's own.",
        find: nft_refuses,
    },
];

fn bracket(facts: &Facts, found: &mut Found) {
    for (_, line) in facts.unknown.iter().filter(|(p, _)| p.len() > 1 && p.starts_with('[') && p != "[[") {
        let text = facts.source.line(*line);
        let open = |(at, _): &(usize, char)| {
            let (before, behind) = (text[..*at].trim_end(), &text[at + 1..]);
            let begins = before.is_empty()
                || before.ends_with(['(', ';', '&', '|', '!', '{'])
                || ["if", "elif", "while", "until", "then", "else", "do"].iter().any(|w| before.ends_with(w));
            begins && !behind.starts_with([' ', '\t', '['])
        };
        let Some((at, _)) = text.char_indices().filter(|c| c.1 == '[').find(open) else { continue };
        let column = text[..at].chars().count() as u32 + 1;
        let fix = format!("{}[ {}", &text[..at], &text[at + 1..]);
        let say = Say::new(
            "a space is missing after `[`, so the shell makes no test",
            "The shell looks for a program whose name begins with `[`.",
            fix.trim(),
        );
        found.at_line(*line, column, 1, say.edit(Some(Edit::Replace(*line, column + 1, 0, " ".to_owned()))));
    }
}

/// The assignment that is meant by `NAME = value`, `NAME= value` or `NAME =value`: name, value, where the name begins and where the value does.
fn meant(text: &str) -> Option<(&str, &str, usize, usize)> {
    let from = text.len() - text.trim_start().len();
    let rest = &text[from..];
    let name = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
    let name = &rest[..name];
    let behind = rest[name.len()..].trim_start_matches([' ', '\t']).strip_prefix('=')?;
    let value = behind.trim_start_matches([' ', '\t']);
    let blanks = rest.len() - name.len() - 1 - value.len();
    let plain = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
    (plain && blanks > 0 && !value.is_empty() && !value.starts_with(['=', '~', '#']))
        .then(|| (name, value.trim_end(), from, text.len() - value.len()))
}

fn spaced(facts: &Facts, found: &mut Found) {
    if facts.source.form != Form::Script {
        return;
    }
    // What stands in quotes or in a here-document is nobody's command.
    let whole = facts.source.lines.join("\n");
    let all = tokens(&whole, 0, whole.len(), 1);
    let stands = |line: u32, word: &str| all.iter().any(|t| t.line == line && whole[t.start..t.end] == *word);
    for (at, text) in facts.source.lines.iter().enumerate().filter(|l| l.1.contains('=')) {
        let line = at as u32 + 1;
        let Some((name, value, from, to)) = meant(text) else { continue };
        // `DEV= eth0` runs eth0; `IFS= read` is what it says.
        let run = value.split([' ', '\t', ';']).next().unwrap_or("").trim_matches(['"', '\'']);
        let ran = facts.unknown.iter().find(|(p, l)| *l == line && (p == name || p == run));
        let number =
            run == value && run.contains(|c: char| c.is_ascii_digit()) && !run.contains(['(', ')', '/']);
        let program = match ran {
            Some((program, _)) => program.as_str(),
            // An empty variable and a word that is a device, a rate or an address and no program.
            None if number && stands(line, &format!("{name}=")) => run,
            None => continue,
        };
        let places = |n: usize| text[..n].chars().count() as u32;
        let reason = format!("The shell runs `{program}`; {name} stays as it was.");
        let fix = format!("{name}={value}");
        let edit = Edit::Replace(line, places(from) + 1, places(to) - places(from), format!("{name}="));
        let say = Say::new(format!("this does not set {name}"), reason, fix);
        found.at_line(line, places(from) + 1, name.chars().count() as u32, say.edit(Some(edit)));
    }
}

fn one_string(facts: &Facts, found: &mut Found) {
    if facts.source.form != Form::Python {
        return;
    }
    for (program, line) in &facts.unknown {
        let first = program.split(' ').next().unwrap_or("");
        let first = first.rsplit('/').next().unwrap_or(first);
        let network =
            matches!(first, "tc" | "ip" | "iptables" | "ip6tables" | "nft" | "ethtool" | "sudo" | "modprobe");
        if network && program.contains(' ') {
            let reason = "Python looks for a program of that whole name, and nothing is carried out.";
            let say = Say::new(
                "a command in one string needs shell=True",
                reason,
                format!("subprocess.run(shlex.split({program:?}), check=True)"),
            );
            found.at_line(*line, 0, 0, say);
        }
    }
}

/// Where nft says that a mistake is: line and columns of what it read, and its sentence. `FILE:LINE:FROM-TO: Error: …`, or `Error: …` above
/// the command and a line of `^`.
fn place(stderr: &str) -> Option<(Option<u32>, u32, u32, &str)> {
    let line = stderr.lines().find(|l| l.contains("Error: "))?;
    let (place, said) = line.split_once("Error: ")?;
    if let Some((before, columns)) = place.trim_end().trim_end_matches(':').rsplit_once(':') {
        let (from, to) = columns.split_once('-').unwrap_or((columns, columns));
        let number = before.rsplit(':').next()?.parse().ok();
        let (from, to) = (from.parse().unwrap_or(0), to.parse().unwrap_or(0));
        return Some((number, from, to, said));
    }
    let marks = stderr.lines().find(|l| l.contains('^')).unwrap_or("");
    let from = marks.chars().position(|c| c == '^').map_or(0, |n| n as u32 + 1);
    let to = from + marks.chars().filter(|c| *c == '^').count() as u32;
    Some((None, from, to.saturating_sub(1), said))
}

fn nft_refuses(facts: &Facts, found: &mut Found) {
    for (at, step) in facts.steps.iter().enumerate().filter(|s| !s.1.ok() && s.1.program() == "nft") {
        let stderr = step.output.stderr.as_str();
        let takes_away =
            step.words.iter().any(|w| matches!(w.as_str(), "delete" | "flush" | "destroy" | "reset"));
        let shows = step.words.iter().any(|w| matches!(w.as_str(), "list" | "-c" | "--check"));
        let elsewhere = ["not simulated", "No such file or directory: "];
        let guessed = step.guessed.as_ref().is_some_and(|g| g.whole || g.deep);
        let expected = step.file == facts.name && facts.source.expects_failure(step.line);
        // Devices that chains are put on are the machine's.
        let text = match &step.what {
            crate::facts::What::Rules(text) => text.as_str(),
            _ => "",
        };
        let on_device = stderr.contains("Could not process rule: No such file")
            && (text.contains("hook ingress") || text.contains("hook egress"));
        if on_device
            || takes_away
            || shows
            || guessed
            || expected
            || elsewhere.iter().any(|w| stderr.contains(w))
        {
            continue;
        }
        let Some((line, from, to, said)) = place(stderr) else { continue };
        let why = match line {
            Some(_) => "Nothing of what is read here is taken.".to_owned(),
            None => format!("`{}` is refused.", step.text()),
        };
        let help = step.output.diagnostics.first().map(|d| d.help.clone()).unwrap_or_default();
        let help = if help.contains("is not understood here") { String::new() } else { help };
        let say = Say::new(said, why, help);
        let here = step.words.iter().any(|w| w == "-" || w == "/dev/stdin");
        match line {
            // A here-document begins on the line behind the command.
            Some(line) if here && step.file == facts.name && step.line > 0 => {
                let len = (to + 1).saturating_sub(from);
                found.at_line(step.line + line, from, len, say);
            }
            Some(_) => found.at(at, "-f", say),
            None => {
                // The command as nft reads it: its words behind the program's own, one blank between.
                let text = step.words.iter().skip(1).skip_while(|w| w.starts_with('-'));
                let mut column = 1;
                let word = text.clone().find(|w| {
                    let begins = column;
                    column += w.chars().count() as u32 + 1;
                    (begins..column).contains(&from)
                });
                found.at(at, word.map_or("", String::as_str), say);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_nft() {
        assert_eq!(
            place("/dev/stdin:4:5-9: Error: syntax error, unexpected string\nx\n"),
            Some((Some(4), 5, 9, "syntax error, unexpected string"))
        );
        assert_eq!(place("Error: No such file\nadd x\n    ^^\n"), Some((None, 5, 6, "No such file")));
        assert_eq!(place("netlink: gone"), None);
    }

    #[test]
    fn assignments_with_blanks() {
        assert_eq!(meant("  DEV = eth0"), Some(("DEV", "eth0", 2, 8)));
        assert_eq!(meant("DEV= eth0"), Some(("DEV", "eth0", 0, 5)));
        assert_eq!(meant("RATE =20mbit "), Some(("RATE", "20mbit", 0, 6)));
        for right in ["DEV=eth0", "DEV=", "[ a = b ]", "test a = b", "A == b", "x =~ y", "1 = 2", "DEV = "] {
            assert_eq!(meant(right), None, "{right}");
        }
    }
}
