//! Scripts of nothing but plain commands need no interpreter: a network of thousands of machines has a setup for each.
//!
//! Plain is narrow on purpose: words of characters that mean themselves to every shell, the first of them a program of the machine's. Such a
//! script means the same here and in the interpreter; a test holds the two against each other.

use crate::{Console, Given, Limits, Machine, Script, given, limits};
use penstock_host::{FileError, Files, Output, Program};

/// A command: its line, from 1, and its words; without words it is `:`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plain {
    line: u32,
    words: Vec<String>,
}

/// The commands of a script that is plain from its first line to its last; `None` where it is not.
pub(crate) fn commands(text: &str) -> Option<Vec<Plain>> {
    let usual = |c: char| c.is_ascii_alphanumeric() || "_./:,=@%+- \t".contains(c);
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
            commands.push(Plain { line, words: Vec::new() });
            continue;
        }
        if !text.chars().all(usual) {
            return None;
        }
        let mut words = text.split_ascii_whitespace().map(str::to_owned).peekable();
        words.next_if(|w| w == "sudo");
        let words: Vec<String> = words.collect();
        // What reads files or standard input is given the script's.
        let loads = |w: &str| match words.first().map(String::as_str) {
            Some("sysctl") => w.starts_with("-p") || w.starts_with("--load") || w.starts_with("--system"),
            Some("nft") => w.starts_with("-f") || w.starts_with("--file"),
            _ => w.starts_with("-b") || w.contains("restore"),
        };
        let reads = |w: &String| w == "-" || w.contains("/dev/") || loads(w);
        // A program that takes time is the interpreter's to begin and to wait for, in a namespace too.
        let begins = crate::programs::in_namespace(&words).is_some();
        if !Program::is_of_scripts(words.first()?) || words.iter().any(reads) || begins {
            return None;
        }
        commands.push(Plain { line, words });
    }
    Some(commands)
}

/// Lends nothing: a plain command reads no file.
struct Nothing;

impl Files for Nothing {
    fn read(&mut self, _: &str) -> Result<String, FileError> {
        Err(FileError::NotFound)
    }
}

/// Carries them out. With `marks`, failures are marked as [`penstock_lang::setup::TRAP`] does. Answers the exit status.
///
/// # Errors
/// The limit that was met.
pub(crate) fn run(
    commands: Vec<Plain>,
    script: &Script,
    marks: bool,
    machine: &mut dyn Machine,
    console: &mut dyn Console,
) -> Result<i32, String> {
    let most = Limits::default().commands;
    let mut status = 0;
    for (n, Plain { line, mut words }) in commands.into_iter().enumerate() {
        if words.is_empty() {
            status = 0;
            continue;
        }
        if n >= most {
            return Err(limits::met(line, &format!("commands given to the machine: {most}")));
        }
        words[0] = crate::tools::usual_name(&words[0]);
        let output: Output = machine.command(&words, &mut Nothing);
        console.print(&output.stdout, &output.stderr);
        status = output.status;
        if marks && status != 0 {
            console.print("", &penstock_lang::setup::mark(line, status));
        }
        let place = format!("{line}:");
        let given: Given = given::given(words, output, &place, script);
        console.given(given);
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
