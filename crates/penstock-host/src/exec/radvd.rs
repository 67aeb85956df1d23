//! `radvd`, and `killall` of what runs here.
//!
//! Follows: radvd 2.19 `radvd.c` `main`, `radvd.8`; psmisc 23.6 `killall`.

use super::programs::Call;
use crate::radvd::conf;
use crate::{Host, Output};

/// Where the file is unless `-C` says another.
const CONFIG: &str = "/etc/radvd.conf";
const HELP: &str = "radvd -C /etc/radvd.conf";
const USAGE: &str = "usage: radvd [-hsvcn] [-d level] [-C config_path] [-m log_method] [-l log_file]\n\
    \t[-f facility] [-p pid_file] [-u username] [-t chrootdir]\n";

impl Host {
    pub(super) fn radvd(&mut self, call: Call<'_>) -> Output {
        let mut words = call.line.words[1..].iter().map(|w| w.text.as_str());
        let (mut path, mut only_tests) = (CONFIG.to_owned(), false);
        while let Some(word) = words.next() {
            let (name, mut value) = match word.strip_prefix("--").and_then(|w| w.split_once('=')) {
                Some((name, value)) => (name, Some(value)),
                None => (word.trim_start_matches('-'), None),
            };
            let takes = matches!(
                name,
                "C" | "config"
                    | "d"
                    | "debug"
                    | "m"
                    | "logmethod"
                    | "l"
                    | "logfile"
                    | "f"
                    | "facility"
                    | "p"
                    | "pidfile"
                    | "u"
                    | "username"
                    | "t"
                    | "chrootdir"
            );
            if takes && value.is_none() {
                value = words.next();
                if value.is_none() {
                    let said = format!("radvd: option requires an argument -- '{name}'\n{USAGE}");
                    return Output::fail(said, 1, HELP);
                }
            }
            match (name, word.starts_with('-')) {
                ("C" | "config", true) => path = value.unwrap_or_default().to_owned(),
                ("c" | "configtest", true) => only_tests = true,
                ("n" | "nodaemon" | "s" | "singleprocess", true) => {}
                ("v" | "version", true) => return Output::say("Version: 2.19\n".to_owned()),
                ("h" | "help", true) => return Output::say(USAGE.to_owned()),
                (_, true) if takes => {}
                _ => {
                    let said = format!("radvd: invalid option -- '{}'\n{USAGE}", name);
                    return Output::fail(said, 1, HELP);
                }
            }
        }
        let text = match call.files.read(&path) {
            Ok(text) => text,
            Err(why) => {
                let said = format!("radvd: can't open {path}: {why}\n");
                return Output::fail(said, 1, "cat >/etc/radvd.conf <<E … E before it");
            }
        };
        let all = match conf::parse(&text) {
            Ok(all) => all,
            Err(why) => {
                let said = format!("radvd: {path}:{why}\n");
                return Output::fail(said, 1, "man 5 radvd.conf names the words");
            }
        };
        if only_tests {
            return Output::default();
        }
        if self.radvd_runs() {
            let said = "radvd: unable to lock pid file: radvd already running?\n".to_owned();
            return Output::fail(said, 1, "killall radvd ends the one that runs");
        }
        let silent: Vec<&str> = all.iter().filter(|i| !i.send).map(|i| i.name.as_str()).collect();
        let mut said = String::new();
        if !self.six.forwarding {
            said = "radvd: IPv6 forwarding seems to be disabled, but continuing anyway\n".to_owned();
        }
        for name in silent {
            said += &format!("radvd: AdvSendAdvert is off for {name}: nothing is sent there\n");
        }
        match self.radvd_begin(all, call.now) {
            Ok(()) => Output { stderr: said, ..Output::default() },
            Err(why) => Output::fail(format!("radvd: {why}\n"), 1, HELP),
        }
    }
}

impl Host {
    /// `killall NAME …` and `pkill NAME`.
    pub(super) fn killall(&mut self, call: Call<'_>) -> Output {
        let words: Vec<&str> = call.line.words.iter().map(|w| w.text.as_str()).collect();
        let by_pattern = words[0].ends_with("pkill");
        let (mut names, mut quiet, mut signal) = (Vec::new(), by_pattern, "TERM");
        let mut rest = words[1..].iter().copied();
        while let Some(word) = rest.next() {
            match word {
                "-q" | "--quiet" => quiet = true,
                "-s" | "--signal" => signal = rest.next().unwrap_or("TERM"),
                "-x" | "-w" | "-e" | "-f" | "--wait" | "--exact" | "--full" => {}
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
            let found = match name {
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
