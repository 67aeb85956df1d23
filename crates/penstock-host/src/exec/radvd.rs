//! `radvd`.
//!
//! Follows: radvd 2.19 `radvd.c` `main`, `radvd.8`.

use super::programs::Call;
use crate::radvd::conf;
use crate::{Host, Output};

/// Where the file is unless `-C` says another.
const CONFIG: &str = "/etc/radvd.conf";
const HELP: &str = "radvd -C /etc/radvd.conf";
const USAGE: &str = "usage: radvd [-hsvcn] [-d level] [-C config_path] [-m log_method] [-l log_file]\n\
    \t[-f facility] [-p pid_file] [-u username] [-t chrootdir]\n";

/// Options that take a value.
const WITH_VALUE: [&str; 16] = [
    "C",
    "config",
    "d",
    "debug",
    "m",
    "logmethod",
    "l",
    "logfile",
    "f",
    "facility",
    "p",
    "pidfile",
    "u",
    "username",
    "t",
    "chrootdir",
];

/// Letters of one word: `-nd5` is `-n -d 5` (getopt).
fn apart(word: &str) -> Vec<String> {
    let Some(letters) = word.strip_prefix('-').filter(|l| !l.starts_with('-')) else {
        return vec![word.to_owned()];
    };
    let mut all = Vec::new();
    for (at, letter) in letters.char_indices() {
        let rest = &letters[at + letter.len_utf8()..];
        all.push(format!("-{letter}"));
        if WITH_VALUE.contains(&letter.to_string().as_str()) {
            all.extend((!rest.is_empty()).then(|| rest.to_owned()));
            break;
        }
    }
    all
}

impl Host {
    pub(super) fn radvd(&mut self, call: Call<'_>) -> Output {
        let words: Vec<String> = call.line.words[1..].iter().flat_map(|w| apart(&w.text)).collect();
        let mut words = words.iter().map(String::as_str);
        let (mut path, mut only_tests) = (CONFIG.to_owned(), false);
        while let Some(word) = words.next() {
            let (name, mut value) = match word.strip_prefix("--").and_then(|w| w.split_once('=')) {
                Some((name, value)) => (name, Some(value)),
                None => (word.trim_start_matches('-'), None),
            };
            let takes = WITH_VALUE.contains(&name);
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
