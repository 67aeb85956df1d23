//! `killall` and `pkill`: programs end by their name.
//!
//! Follows: psmisc 23.6 `killall.1`; procps-ng 4.0 `pgrep.1`.
//! Differs: a pattern is a part of the name, not an expression.

use super::programs::Call;
use crate::{Host, Output};

/// The program that a pattern means: one whose name has it, or whose command line begins with it (`-f`).
fn meant(pattern: &str, whole: bool) -> &str {
    let first = pattern.split_whitespace().next().unwrap_or(pattern);
    let bare = first.rsplit('/').next().unwrap_or(first).trim_start_matches('^').trim_end_matches('$');
    let bare = if whole { bare } else { pattern.trim_start_matches('^').trim_end_matches('$') };
    let known =
        ["radvd", "pppd", "pppoe-server"].into_iter().find(|name| !bare.is_empty() && name.contains(bare));
    known.unwrap_or(pattern)
}

impl Host {
    /// `killall NAME …` and `pkill NAME`.
    pub(super) fn killall(&mut self, call: Call<'_>) -> Output {
        let words: Vec<&str> = call.line.words.iter().map(|w| w.text.as_str()).collect();
        let by_pattern = words[0].ends_with("pkill");
        let (mut names, mut quiet, mut signal, mut whole) = (Vec::new(), by_pattern, "TERM", false);
        let mut rest = words[1..].iter().copied();
        while let Some(word) = rest.next() {
            match word {
                "-q" | "--quiet" => quiet = true,
                "-s" | "--signal" => signal = rest.next().unwrap_or("TERM"),
                "-f" | "--full" => whole = true,
                "-x" | "-w" | "-e" | "--wait" | "--exact" => {}
                _ => match word.strip_prefix('-') {
                    Some(name) => signal = name,
                    None => names.push(word),
                },
            }
        }
        let signal = signal.trim_start_matches("SIG");
        if names.is_empty() {
            let said = format!("Usage: {} [ -s,--signal SIGNAL ] NAME...\n", words[0]);
            return Output::fail(said, 1, "killall radvd");
        }
        if !matches!(signal, "TERM" | "15" | "INT" | "2" | "KILL" | "9") {
            let said = format!("{}: signal {signal} is not simulated\n", words[0]);
            return Output::fail(said, 1, "end the program and begin it anew");
        }
        let (mut said, mut any) = (String::new(), false);
        for name in names {
            let name = if by_pattern { meant(name, whole) } else { name };
            let found = match name {
                "pppoe-server" => {
                    said += &format!("{}: to end pppoe-server is not simulated\n", words[0]);
                    continue;
                }
                "radvd" if matches!(signal, "KILL" | "9") => self.radvd_is_gone(),
                "radvd" => self.radvd_end(call.now),
                "pppd" => self.ppp_end_all(call.now),
                _ => false,
            };
            any |= found;
            if !found && !quiet {
                said += &format!("{name}: no process found\n");
            }
        }
        let status = if any && (by_pattern || said.is_empty()) { 0 } else { 1 };
        Output { stderr: said, status, ..Output::default() }
    }
}
