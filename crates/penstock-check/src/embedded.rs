//! More files that hold commands among other things: interfaces(5), Makefiles, crontabs, here-documents in other languages, scripts of OpenRC; and lines of such files
//! that speak of network commands and were not read.

use crate::coverage::Missed;
use crate::holders::{from, is_command, joined};

/// What kind of file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// `/etc/network/interfaces`.
    Interfaces,
    /// A Makefile.
    Make,
    /// A justfile.
    Just,
    /// A service of OpenRC: a shell script whose functions are called by another program.
    OpenRc,
    /// A crontab(5), with the column of users or without.
    Cron,
    /// Settings of systemd-networkd, which are not read.
    Networkd,
    /// What Android's init carries out.
    AndroidInit,
    /// A text in a language that is not read, with here-documents and quoted blocks for a shell in it.
    Other,
}

/// Endings of files in languages that are not read.
const OTHERS: [&str; 26] = [
    "rb", "pl", "pm", "php", "go", "js", "ts", "mjs", "rs", "c", "cc", "cpp", "h", "java", "kt", "lua",
    "tcl", "exp", "tf", "hcl", "groovy", "fish", "html", "htm", "xml", "nix",
];
/// Programs of first lines whose languages are not read.
const PROGRAMS: [&str; 10] = ["perl", "ruby", "php", "node", "lua", "expect", "tclsh", "fish", "csh", "tcsh"];

/// By the file's name, its first line, and what is in it.
pub(crate) fn kind(file: &str, text: &str) -> Option<Kind> {
    let first = text.lines().next().unwrap_or("");
    if first.starts_with("#!") {
        let mut words = first.split(['/', ' ', '\t', '!']);
        return match words.next_back() {
            Some("openrc-run" | "runscript") => Some(Kind::OpenRc),
            Some(last) if PROGRAMS.contains(&last) => Some(Kind::Other),
            _ => None,
        };
    }
    let suffix = file.rsplit_once('.').map_or("", |s| s.1);
    if matches!(suffix, "network" | "netdev" | "link")
        && text.lines().any(|l| l.trim_start().starts_with('['))
    {
        return Some(Kind::Networkd);
    }
    if matches!(file, "makefile" | "gnumakefile") || suffix == "mk" {
        return Some(Kind::Make);
    }
    if matches!(file, "justfile" | ".justfile") || suffix == "just" {
        return Some(Kind::Just);
    }
    let first_words = |l: &str| {
        l.starts_with("on ")
            || l.starts_with("service ") && l.split_whitespace().nth(2).is_some_and(|w| w.starts_with('/'))
    };
    if suffix == "rc" && text.lines().any(first_words) {
        return Some(Kind::AndroidInit);
    }
    // `base.Vagrantfile`, `Jenkinsfile-nightly`.
    let of_ruby = text.lines().any(|l| l.trim_start().starts_with("Vagrant.configure("));
    if of_ruby || file.contains("vagrantfile") || file.contains("jenkinsfile") || OTHERS.contains(&suffix) {
        return Some(Kind::Other);
    }
    let iface = |l: &str| {
        let words: Vec<&str> = l.split_whitespace().collect();
        matches!(words.as_slice(), ["iface", _, "inet" | "inet6" | "can", ..])
    };
    if is_crontab(text) {
        return Some(Kind::Cron);
    }
    let script = matches!(suffix, "sh" | "bash" | "py" | "yml" | "yaml" | "md" | "service");
    (!script && text.lines().any(iface)).then_some(Kind::Interfaces)
}

/// The scripts in it, each with the file's own lines and columns.
pub(crate) fn scripts(kind: Kind, lines: &[&str]) -> Vec<String> {
    match kind {
        Kind::Interfaces => interfaces(lines),
        Kind::Make => make(lines),
        Kind::Just => crate::recipes::just(lines),
        Kind::Cron => crontab(lines),
        Kind::OpenRc => {
            let first = std::iter::once("#!/bin/sh".to_owned());
            vec![joined(first.chain(lines.iter().skip(1).map(|l| (*l).to_owned())).collect())]
        }
        Kind::AndroidInit => android(lines),
        Kind::Networkd => Vec::new(),
        Kind::Other => blocks(lines),
    }
}

/// Where the command of a line of a crontab begins, in characters; `None` for a line that is none.
fn cron_command(line: &str) -> Option<usize> {
    let field = |w: &str| {
        w.starts_with(|c: char| c == '*' || c.is_ascii_digit())
            && w.chars().all(|c| c.is_ascii_alphanumeric() || "*,/-".contains(c))
    };
    // Months and days of the week have names.
    let named = |w: &str| {
        w.len() >= 3
            && w.split([',', '-']).all(|p| p.len() == 3 && p.chars().all(|c| c.is_ascii_alphabetic()))
    };
    let mut at = line.len() - line.trim_start().len();
    let mut next = || {
        let word = line[at..].split_whitespace().next()?;
        let begins = at + line[at..].find(word)?;
        at = begins + word.len();
        Some((begins, word))
    };
    let (_, first) = next()?;
    let times = ["@reboot", "@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
    if !times.contains(&first) {
        let mut fields = vec![first];
        for _ in 0..4 {
            fields.push(next()?.1);
        }
        if !fields.iter().enumerate().all(|(n, w)| field(w) || n >= 3 && named(w)) {
            return None;
        }
    }
    let (mut begins, word) = next()?;
    if word == "root" {
        begins = next()?.0;
    }
    Some(line[..begins].chars().count())
}

/// Settings of the environment, and at least one command with its times.
fn is_crontab(text: &str) -> bool {
    let set = |l: &str| {
        l.split_once('=').is_some_and(|(name, _)| {
            !name.trim().is_empty() && name.trim().chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).peekable();
    let mut commands = 0;
    lines.all(|l| {
        let command = cron_command(l).is_some();
        commands += usize::from(command);
        command || set(l)
    }) && commands > 0
}

/// The commands of a crontab, each for itself: they run at times of their own.
fn crontab(lines: &[&str]) -> Vec<String> {
    let commands = lines.iter().enumerate().filter_map(|(n, l)| Some((n, cron_command(l)?)));
    // What is done at boot is there when the others change it; who makes and deletes by the clock starts anew.
    let at_boot = |l: &str| l.trim_start().starts_with("@reboot");
    let changes = |l: &str| l.split_whitespace().any(|w| matches!(w, "change" | "replace" | "show"));
    let mut each = commands.clone().map(|c| lines[c.0]);
    if each.clone().any(at_boot) && each.all(|l| at_boot(l) || changes(l)) {
        let mut out = vec![String::new(); lines.len()];
        commands.for_each(|(n, column)| out[n] = from(lines[n], column));
        return vec![joined(out)];
    }
    let script = |(n, column): (usize, usize)| {
        let mut out = vec![String::new(); lines.len()];
        out[n] = from(lines[n], column);
        joined(out)
    };
    commands.map(script).collect()
}

/// What is done when a device comes up, and for itself what is done when it goes.
fn interfaces(lines: &[&str]) -> Vec<String> {
    let asks = lines.iter().any(|l| l.contains("$IFACE") || l.contains("${IFACE"));
    let of = |wanted: [&str; 3]| {
        let mut goes_on = false;
        let mut out = Vec::new();
        for line in lines {
            let trimmed = line.trim_start();
            let word = trimmed.split_whitespace().next().unwrap_or("");
            let taken = goes_on || wanted.contains(&word);
            let cut = if goes_on { 0 } else { line.len() - trimmed.len() + word.len() };
            let mut text = if taken { from(line, line[..cut].chars().count()) } else { String::new() };
            goes_on = taken && text.ends_with('\\');
            // What the device is called is in the environment.
            if asks
                && word == "iface"
                && let Some(name) = trimmed.split_whitespace().nth(1)
            {
                text = format!("IFACE={name}");
            }
            out.push(text);
        }
        joined(out)
    };
    vec![of(["pre-up", "up", "post-up"]), of(["down", "pre-down", "post-down"])]
}

/// `service NAME PROGRAM WORDS` and `exec … -- PROGRAM WORDS` of Android's init, each for itself: they run at times of their own, and no shell reads them.
fn android(lines: &[&str]) -> Vec<String> {
    let begins = |l: &str| {
        let mut words = l.split_whitespace();
        let program = match words.next()? {
            "service" => words.nth(1)?,
            "exec" | "exec_background" => words.skip_while(|w| *w != "--").nth(1)?,
            _ => return None,
        };
        l.find(program).map(|at| l[..at].chars().count())
    };
    let commands = lines.iter().enumerate().filter_map(|(n, l)| Some((n, begins(l)?)));
    let script = |(n, column): (usize, usize)| {
        let mut out = vec![String::new(); lines.len()];
        out[n] = from(lines[n], column);
        joined(out)
    };
    commands.map(script).collect()
}

/// The recipes of a Makefile; of targets that take down each for itself. `$(NAME)` is a variable, `$$` a dollar for the shell.
fn make(lines: &[&str]) -> Vec<String> {
    let mut all = vec![vec![String::new(); lines.len()]];
    let mut into = 0;
    let mut goes_on = false;
    for (n, line) in lines.iter().enumerate() {
        if let Some(recipe) = line.strip_prefix('\t') {
            let prefix = match goes_on {
                true => 0,
                false => recipe.chars().take_while(|c| "@-+ \t".contains(*c)).count(),
            };
            all[into][n] = shell_of_make(&from(line, 1 + prefix));
            goes_on = line.ends_with('\\');
            continue;
        }
        goes_on = false;
        let line = line.trim_start_matches("export ").trim_start_matches("override ");
        let set = [":=", "?=", "::=", "="].into_iter().filter_map(|o| Some((line.find(o)?, o))).min();
        let named = |n: &str| !n.is_empty() && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match set {
            Some((at, op)) if named(line[..at].trim()) => {
                let value = line[at + op.len()..].split(" #").next().unwrap_or("").trim();
                let quote =
                    if value.contains(char::is_whitespace) && !value.contains('"') { "\"" } else { "" };
                all[0][n] = shell_of_make(&format!("{}={quote}{value}{quote}", line[..at].trim()));
            }
            _ if line.contains(':') && !line.starts_with(['#', '.', ' ']) => {
                let target = line.split(':').next().unwrap_or("").trim();
                into = 0;
                if takes_down(target) {
                    // Variables are its own too.
                    all.push(
                        all[0].iter().map(|l| if is_set(l) { l.clone() } else { String::new() }).collect(),
                    );
                    into = all.len() - 1;
                }
            }
            _ => {}
        }
    }
    all.into_iter().map(joined).collect()
}

/// Whether a recipe of this name takes down what others set up.
pub(crate) fn takes_down(target: &str) -> bool {
    ["clean", "down", "stop", "del", "reset", "teardown", "off", "clear", "remove"]
        .iter()
        .any(|w| target.contains(w))
}

pub(crate) fn is_set(line: &str) -> bool {
    line.split_once('=')
        .is_some_and(|(n, _)| !n.is_empty() && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// Names of more than one letter without parentheses, where the Makefile sets them: make takes `$DEV` for `$(D)EV`. Line and column, from 1, and the name.
pub(crate) fn bare_names(text: &str) -> Vec<(u32, u32, String)> {
    let set = |name: &str| {
        text.lines().any(|l| {
            let behind = l.trim_start_matches("export ").strip_prefix(name).map(str::trim_start);
            behind.is_some_and(|b| [":=", "?=", "::=", "="].iter().any(|o| b.starts_with(o)))
        })
    };
    let mut out = Vec::new();
    for (n, line) in text.lines().enumerate().filter(|l| l.1.starts_with('\t')) {
        for (at, _) in line.match_indices('$') {
            let name: String =
                line[at + 1..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            if !line[..at].ends_with('$') && name.len() > 1 && set(&name) {
                out.push((n as u32 + 1, line[..at].chars().count() as u32 + 1, name));
            }
        }
    }
    out
}

/// `$(NAME)` as `${NAME}`, `$$` as `$`.
fn shell_of_make(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('$') {
        out += &rest[..at];
        rest = &rest[at..];
        if rest.starts_with("$$") {
            out.push('$');
            rest = &rest[2..];
            continue;
        }
        let name = rest.strip_prefix("$(").and_then(|r| r.split_once(')'));
        match name.filter(|(n, _)| n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')) {
            Some((name, behind)) => {
                out += &format!("${{{name}}}");
                rest = behind;
            }
            None => {
                // A name without parentheses is one letter: `$DEV` is `$(D)EV`.
                match rest[1..].chars().next().filter(char::is_ascii_alphabetic) {
                    Some(letter) => {
                        out += &format!("${{{letter}-}}");
                        rest = &rest[2..];
                    }
                    None => {
                        out.push('$');
                        rest = &rest[1..];
                    }
                }
            }
        }
    }
    out + rest
}

/// Here-documents and blocks between three quotes that hold commands, each for itself.
fn blocks(lines: &[&str]) -> Vec<String> {
    let mut all = Vec::new();
    let mut open: Option<(String, Vec<String>)> = None;
    for (n, line) in lines.iter().enumerate() {
        if let Some((end, block)) = &mut open {
            let ends = match end.starts_with(['\'', '"']) {
                true => line.contains(end.as_str()),
                false => line.trim() == end,
            };
            if ends {
                if block.iter().any(|l| is_command(l)) {
                    all.push(joined(std::mem::take(block)));
                }
                open = None;
            } else {
                block.push((*line).to_owned());
            }
            continue;
        }
        let here = line.find("<<").map(|at| line[at + 2..].trim_start_matches(['-', '~']));
        let word: String = here.map_or(String::new(), |rest| {
            let rest = rest.trim_start_matches(['\'', '"']);
            rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
        });
        let quotes = ["'''", "\"\"\""].into_iter().find(|q| line.matches(q).count() == 1);
        if word.len() > 1 && word.starts_with(|c: char| c.is_ascii_uppercase()) {
            open = Some((word, vec![String::new(); n + 1]));
        } else if let Some(quotes) = quotes {
            open = Some((quotes.to_owned(), vec![String::new(); n + 1]));
        }
    }
    all
}

/// Whether a line gives a network command that changes something, wherever in the line: words of tc, iptables or nft one behind the other, in quotes or not.
pub(crate) fn speaks(line: &str) -> bool {
    let trimmed = line.trim_start();
    if ["#", "//", "*", "--", ";", "<!--"].iter().any(|c| trimmed.starts_with(c)) {
        return false;
    }
    let words: Vec<&str> = line
        .split(|c: char| !(c.is_ascii_alphanumeric() || "_-/.".contains(c)))
        .filter(|w| !w.is_empty() && !matches!(*w, "args" | "arg" | ".arg" | ".args"))
        .collect();
    let base = |w: &'_ str| w.rsplit('/').next().unwrap_or(w).to_owned();
    words.windows(3).any(|w| match base(w[0]).as_str() {
        "tc" => {
            matches!(w[1], "qdisc" | "class" | "filter")
                && matches!(w[2], "add" | "replace" | "change" | "del")
        }
        "iptables" | "ip6tables" => matches!(w[1], "-A" | "-I") || w[1] == "-t" && w[2] == "mangle",
        _ => false,
    })
}

/// Sections of systemd-networkd that set up queues (systemd.network(5)).
const QUEUES: [&str; 12] = [
    "[CAKE]",
    "[HierarchyTokenBucket]",
    "[HierarchyTokenBucketClass]",
    "[NetworkEmulator]",
    "[TokenBucketFilter]",
    "[FairQueueing]",
    "[FairQueueingControlledDelay]",
    "[ControlledDelay]",
    "[StochasticFairnessQueueing]",
    "[DeficitRoundRobinScheduler]",
    "[PFIFO]",
    "[QuickFairQueueing]",
];

/// The sections of such a file that would set up queues.
pub(crate) fn unread_sections(text: &str) -> Vec<Missed> {
    let of = text.lines().enumerate().filter(|(_, l)| QUEUES.contains(&l.trim()));
    let why = "settings of systemd-networkd are not read";
    of.map(|(n, _)| Missed {
        file: String::new(),
        from: n as u32 + 1,
        to: n as u32 + 1,
        commands: 1,
        why: why.to_owned(),
    })
    .collect()
}

/// Lines that speak of a command and stand in none of the scripts that were read.
pub(crate) fn unread(text: &str, scripts: &[String], why: &str) -> Vec<Missed> {
    let read: Vec<Vec<&str>> = scripts.iter().map(|s| s.lines().collect()).collect();
    let was_read = |n: usize| read.iter().any(|s| s.get(n).is_some_and(|l| !l.trim().is_empty()));
    let missed = text.lines().enumerate().filter(|(n, line)| speaks(line) && !was_read(*n));
    let one = |(n, _): (usize, &str)| Missed {
        file: String::new(),
        from: n as u32 + 1,
        to: n as u32 + 1,
        commands: 1,
        why: why.to_owned(),
    };
    missed.map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, text: &str, want: &[&[&str]]) {
        let lines: Vec<&str> = text.lines().collect();
        let got = scripts(kind(file, text).expect(file), &lines);
        let got: Vec<Vec<&str>> = got.iter().map(|t| t.lines().map(str::trim_end).collect()).collect();
        assert_eq!(got, want, "{file}");
    }

    #[test]
    fn commands_of_interfaces_and_makefiles() {
        check(
            "interfaces",
            "iface eth0 inet dhcp\n  up tc a \\\n    b\n  down tc c\n",
            &[&["", "     tc a \\", "    b", ""], &["", "", "", "       tc c"]],
        );
        check(
            "makefile",
            "DEV ?= eth0\nup:\n\t@tc a $(DEV) $$x\ndown:\n\t-tc b $(DEV)\n",
            &[&["DEV=eth0", "", "  tc a ${DEV} $x", "", ""], &["DEV=eth0", "", "", "", "  tc b ${DEV}"]],
        );
    }

    #[test]
    fn commands_of_crontabs() {
        let text =
            "# x\nPATH=/bin\n*/5 8-18 * * mon-fri root tc a\n@reboot /sbin/tc b\n0 22 * * * cd /x && tc c\n";
        let blank = |n: usize| " ".repeat(n);
        let (a, b, c) = (blank(26) + "tc a", blank(8) + "/sbin/tc b", blank(11) + "cd /x && tc c");
        check("shaper", text, &[&["", "", &a, "", ""], &["", "", "", &b, ""], &["", "", "", "", &c]]);
        for no in ["tc qdisc add dev eth0 root sfq\n", "A=1\n", "1 2 3\n", "* * * * *\n"] {
            assert_eq!(kind("shaper", no), None, "{no}");
        }
    }

    #[test]
    fn commands_of_other_languages() {
        check("vagrantfile", "x <<-SHELL\n  tc a\nSHELL\ny <<-TXT\n  z\nTXT\n", &[&["", "  tc a"]]);
        check("jenkinsfile", "sh '''\ntc a\n'''\n", &[&["", "tc a"]]);
        check("x", "#!/sbin/openrc-run\nstart() {\n", &[&["#!/bin/sh", "start() {"]]);
        let rc = "on boot\n  exec - root -- /system/bin/tc a\nservice x /system/bin/tc b\n  oneshot\n";
        let (a, b) = (" ".repeat(17) + "/system/bin/tc a", " ".repeat(10) + "/system/bin/tc b");
        check("init.x.rc", rc, &[&["", &a, "", ""], &["", "", &b, ""]]);
        assert_eq!(kind("x.sh", "cat <<E\niface eth0 inet dhcp\nE\n"), None);
    }

    #[test]
    fn what_speaks_of_commands() {
        for line in [
            "exec(\"tc\", \"qdisc\", \"add\", x)",
            "  up /sbin/tc class replace y",
            "system('iptables -t mangle -A')",
        ] {
            assert!(speaks(line), "{line}");
        }
        for line in ["# tc qdisc add", "tc qdisc show", "the tc tool", "etc qdisc add"] {
            assert!(!speaks(line), "{line}");
        }
        let read = ["\n tc qdisc add\n".to_owned()];
        let missed = unread("tc qdisc add a\ntc qdisc add b\n", &read, "why");
        assert_eq!(missed.iter().map(|m| m.from).collect::<Vec<_>>(), [1]);
    }
}
