//! Scripts of nothing but plain commands need no interpreter: a network of thousands of machines has a setup for each, and a script for a
//! thousand customers has ten thousand lines.
//!
//! Plain is narrow on purpose: words of characters that mean themselves to every shell, the first of them a program of the machine's. What is
//! only looked at ([`wide`]) may also have quotes, variables with plain values, `set -e`, `|| true` and errors that go to `/dev/null`. Such a
//! script means the same here and in the interpreter; a test holds the two against each other.

use crate::{Console, Given, Machine, Script, given, limits};
use penstock_host::{FileError, Files, Output, Program};
use std::collections::BTreeMap;

/// A command: its line, from 1, and its words; without words it is `:`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Plain {
    line: u32,
    words: Vec<String>,
    /// Whether its standard output and its standard error are thrown away.
    quiet: (bool, bool),
    /// Whether `|| true` stands behind it.
    forgiven: bool,
    /// Whether `set -e` holds.
    errexit: bool,
}

/// Whether a character means itself to every shell.
fn usual(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '_' | '.' | '/' | ':' | ',' | '=' | '@' | '%' | '+' | '-' | ' ' | '\t')
}

/// Whether a command reads files, or standard input: it is given the script's, so the interpreter has to know it. A program that takes time is the
/// interpreter's to begin and to wait for, in a namespace too.
fn reads(words: &[String]) -> bool {
    let loads = |w: &str| match words.first().map(String::as_str) {
        Some("sysctl") => w.starts_with("-p") || w.starts_with("--load") || w.starts_with("--system"),
        Some("nft") => w.starts_with("-f") || w.starts_with("--file"),
        // Programs of bpf are in files, mostly.
        Some("tc") => w.starts_with("-b") || w == "bpf",
        _ => w.starts_with("-b") || w.contains("restore"),
    };
    words.iter().any(|w| w == "-" || w.contains("/dev/") || loads(w))
        || crate::programs::in_namespace(words).is_some()
}

/// The commands of a script that is plain from its first line to its last; `None` where it is not.
pub(crate) fn commands(text: &str) -> Option<Vec<Plain>> {
    let mut commands = Vec::new();
    if text.contains('\r') {
        return None;
    }
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim_matches([' ', '\t']);
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if text == ":" {
            commands.push(Plain { line, ..Plain::default() });
            continue;
        }
        if !text.chars().all(usual) {
            return None;
        }
        let mut words = text.split_ascii_whitespace().map(str::to_owned).peekable();
        words.next_if(|w| w == "sudo");
        let words: Vec<String> = words.collect();
        if !Program::is_of_scripts(words.first()?) || reads(&words) {
            return None;
        }
        commands.push(Plain { line, words, ..Plain::default() });
    }
    Some(commands)
}

/// Variables that the shell gives a meaning of its own.
const SPECIAL: [&str; 27] = [
    "PATH",
    "IFS",
    "UID",
    "EUID",
    "PPID",
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "LINENO",
    "HOME",
    "PWD",
    "OLDPWD",
    "PS4",
    "OPTIND",
    "OPTARG",
    "OPTERR",
    "FUNCNAME",
    "GROUPS",
    "DIRSTACK",
    "SHELLOPTS",
    "POSIXLY_CORRECT",
    "ENV",
    "CDPATH",
    "GLOBIGNORE",
    "TMOUT",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
];

/// What stands behind a command and changes only what is seen of it, and whether standard output or error goes away by it.
const BEHIND: [(&str, (bool, bool)); 7] = [
    (">/dev/null 2>&1", (true, true)),
    ("> /dev/null 2>&1", (true, true)),
    ("&>/dev/null", (true, true)),
    ("2>/dev/null", (false, true)),
    ("2> /dev/null", (false, true)),
    (">/dev/null", (true, false)),
    ("> /dev/null", (true, false)),
];

/// The same of a script that may also set variables to plain values, quote words, say `set -e`, throw output away and forgive failures.
pub(crate) fn wide(text: &str) -> Option<Vec<Plain>> {
    let (mut commands, mut errexit) = (Vec::new(), false);
    let mut values: BTreeMap<&str, String> = BTreeMap::new();
    if text.contains('\r') {
        return None;
    }
    for (line, text) in (1..).zip(text.lines()) {
        let mut text = text.trim_matches([' ', '\t']);
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if !text.contains(['"', '\'']) {
            text = text.split_once(" #").map_or(text, |(before, _)| before.trim_end_matches([' ', '\t']));
        }
        let (mut quiet, mut forgiven) = ((false, false), false);
        for behind in ["|| true", "|| :"] {
            if let Some(before) = text.strip_suffix(behind) {
                (text, forgiven) = (before.trim_end_matches([' ', '\t']), true);
                break;
            }
        }
        for (behind, away) in BEHIND {
            // `x2>/dev/null` is a word and `>/dev/null`.
            if let Some(before) = text.strip_suffix(behind).filter(|b| b.ends_with([' ', '\t'])) {
                (text, quiet) = (before.trim_end_matches([' ', '\t']), away);
                break;
            }
        }
        let plain = Plain { line, quiet, forgiven, errexit, ..Plain::default() };
        let bare = quiet == (false, false) && !forgiven;
        match text {
            ":" | "true" => {
                commands.push(plain);
                continue;
            }
            "set -e" | "set -eu" | "set -ue" | "set -euo pipefail" | "set -eo pipefail" if bare => {
                errexit = true;
                commands.push(plain);
                continue;
            }
            _ => {}
        }
        let assigned = text.strip_prefix("export ").unwrap_or(text);
        if let Some((name, value)) = assigned.split_once('=')
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        {
            let is_number = name.starts_with(|c: char| c.is_ascii_digit());
            if is_number
                || SPECIAL.contains(&name)
                || name.starts_with("BASH")
                || name.starts_with("PENSTOCK")
            {
                return None;
            }
            let mut value = words(value, &values)?.into_iter();
            let (value, None) = (value.next()?, value.next()) else { return None };
            if !bare || value.is_empty() || value.contains([' ', '\t']) {
                return None;
            }
            values.insert(name, value);
            commands.push(plain);
            continue;
        }
        let mut words = words(text, &values)?;
        if words.first().is_some_and(|w| w == "sudo") {
            words.remove(0);
        }
        let echoes = words.first().is_some_and(|w| w == "echo") && !words.iter().any(|w| w.starts_with('-'));
        if !echoes && (!Program::is_of_scripts(words.first()?) || reads(&words)) {
            return None;
        }
        commands.push(Plain { words, ..plain });
    }
    Some(commands)
}

/// The words of a command in which quotes stand around usual characters and variables have these values.
fn words(text: &str, values: &BTreeMap<&str, String>) -> Option<Vec<String>> {
    let mut out = Vec::new();
    let (mut word, mut quote): (Option<String>, Option<char>) = (None, None);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '"' | '\'' if quote == Some(c) => quote = None,
            '"' | '\'' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            '$' if quote != Some('\'') => {
                let in_braces = rest.strip_prefix('{');
                let from = in_braces.unwrap_or(rest);
                let end = from.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(from.len());
                word.get_or_insert_default().push_str(values.get(&from[..end])?);
                rest = &from[end..];
                if in_braces.is_some() {
                    rest = rest.strip_prefix('}')?;
                }
            }
            ' ' | '\t' if quote.is_none() => out.extend(word.take()),
            c if usual(c) => word.get_or_insert_default().push(c),
            _ => return None,
        }
    }
    out.extend(word);
    quote.is_none().then_some(out)
}

/// Lends nothing: a plain command reads no file.
struct Nothing;

impl Files for Nothing {
    fn read(&mut self, _: &str) -> Result<String, FileError> {
        Err(FileError::NotFound)
    }
}

/// Carries them out, `most` at most. With `marks`, failures are marked as [`penstock_lang::setup::TRAP`] does. Answers the exit status.
///
/// # Errors
/// The limit that was met.
pub(crate) fn run(
    commands: Vec<Plain>,
    script: &Script,
    marks: bool,
    most: usize,
    machine: &mut dyn Machine,
    console: &mut dyn Console,
) -> Result<i32, String> {
    let (mut status, mut given_to_it) = (0, 0);
    for Plain { line, mut words, quiet, forgiven, errexit } in commands {
        if words.is_empty() {
            status = 0;
            continue;
        }
        if words[0] == "echo" && !Program::is_of_scripts("echo") {
            if !quiet.0 {
                console.print(&format!("{}\n", words[1..].join(" ")), "");
            }
            status = 0;
            continue;
        }
        if given_to_it >= most {
            return Err(limits::met(line, &format!("commands given to the machine: {most}")));
        }
        given_to_it += 1;
        words[0] = crate::tools::usual_name(&words[0]);
        let output: Output = machine.command(&words, &mut Nothing);
        let seen = |text: &'_ str, away: bool| if away { String::new() } else { text.to_owned() };
        if !(output.stdout.is_empty() && output.stderr.is_empty()) {
            console.print(&seen(&output.stdout, quiet.0), &seen(&output.stderr, quiet.1));
        }
        status = output.status;
        if marks && status != 0 {
            console.print("", &penstock_lang::setup::mark(line, status));
        }
        let place = format!("{line}:");
        let given: Given = given::given(words, output, &place, script);
        console.given(given);
        if forgiven {
            status = 0;
        } else if errexit && status != 0 {
            break;
        }
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_plain() {
        let lines =
            |text: &str| commands(text).map(|all| all.iter().map(|c| (c.line, c.words.join(" "))).collect());
        assert_eq!(commands("ip netns exec n iperf3 -s"), None);
        assert!(commands("ip netns exec n ip link show").is_some());
        let whole = "#!/bin/sh\n# all\n\ntc qdisc add dev eth0 root sfq\n  sudo sysctl -w net.ipv4.ip_forward=1\n\n:\n";
        let want = vec![
            (4, "tc qdisc add dev eth0 root sfq".to_owned()),
            (5, "sysctl -w net.ipv4.ip_forward=1".to_owned()),
            (7, String::new()),
        ];
        assert_eq!(lines(whole), Some(want));
        assert_eq!(lines(""), Some(Vec::new()));
        for other in [
            "tc qdisc add dev $D root sfq",
            "tc qdisc # all",
            "tc qdisc; true",
            "set -e",
            "x=1",
            "X=1 tc qdisc",
            "tc 'a'",
            "tc \\",
            "tc qdisc > x",
            "ls /proc",
            "sudo -E tc qdisc",
            "sudo",
            "/sbin/tc qdisc",
            "tc -batch -",
            "tc filter add dev eth0 egress bpf da obj x.o",
            "iptables-restore",
            "sysctl -p",
            "sysctl -p/etc/sysctl.conf",
            "nft -f rules",
            "tc qdisc\nif true; then tc qdisc; fi",
            "tc ~",
            "tc *",
            "tc {a,b}",
            "tc qdisc\r",
        ] {
            assert_eq!(lines(other), None, "{other}");
        }
    }
}
