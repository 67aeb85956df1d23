//! What the real programs give, against what we give: exit status, the first line of standard error and all of standard
//! output, word for word.
//!
//! `golden/*-*.txt` were recorded by `golden/record.py` from the scenes in the file before the dash: `iptables` on
//! Linux 6.12.117, the others on Linux 6.18.44; the file's name says with which version of the program.

use penstock_host::{FileError, Files, Host, Output};
use penstock_model::{Kernel, Time};
use std::fmt::Write;

/// Standard input and nothing else.
struct Input(String);

impl Files for Input {
    fn read(&mut self, path: &str) -> Result<String, FileError> {
        if path == "-" { Ok(self.0.clone()) } else { Err(FileError::NotFound) }
    }
}

/// What a command gave, in the form of the recorded files.
fn told(line: &str, given: &str, out: &Output) -> String {
    let mut text = format!("$ {line}\n");
    for line in given.lines() {
        let _ = writeln!(text, "< {line}");
    }
    let _ = writeln!(text, "= {}", out.status);
    if let Some(first) = out.stderr.lines().next() {
        let _ = writeln!(text, "! {first}");
    }
    for line in out.stdout.lines().filter(|l| !l.starts_with("# Generated") && !l.starts_with("# Completed"))
    {
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// Words as a shell makes them: quotes and backslashes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut any) = (Vec::new(), String::new(), None, false);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('\'' | '"', None) => (quote, any) = (Some(c), true),
            ('\\', None | Some('"')) => word.extend(chars.next()),
            (' ', None) => {
                if any || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            _ => word.push(c),
        }
    }
    if any || !word.is_empty() {
        words.push(word);
    }
    words
}

/// Runs every scene on a machine that `make` gives.
fn check(golden: &str, make: fn() -> Host) {
    let mut wrong = Vec::new();
    let mut count = 0;
    let mut host = make();
    let mut lines = golden.lines().filter(|l| !l.starts_with('#')).peekable();
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ ") else {
            assert!(line.is_empty(), "not a command: {line}");
            host = make();
            continue;
        };
        let mut theirs = format!("{line}\n");
        let mut given = String::new();
        while let Some(more) = lines.next_if(|l| !l.is_empty() && !l.starts_with("$ ")) {
            theirs += &format!("{more}\n");
            if let Some(text) = more.strip_prefix("< ") {
                given += &format!("{text}\n");
            }
        }
        count += 1;
        let out = host.command(&words(command), &mut Input(given.clone()), Time::ZERO);
        let ours = told(command, &given, &out);
        if ours != theirs {
            wrong.push(format!("{theirs}-- we:\n{ours}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn router() -> Host {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    host.add_device("eth0");
    host.add_device("eth1");
    host
}

/// No devices but `lo`.
fn bare() -> Host {
    Host::new("r", Kernel::V6_12, 1)
}

#[test]
fn iptables_1_8_9_says_the_same() {
    check(include_str!("golden/iptables-1.8.9.txt"), router);
}

#[test]
fn saved_files_ip6tables_and_all_extensions_say_the_same() {
    check(include_str!("golden/netfilter-1.8.9.txt"), bare);
}

#[test]
fn nft_1_0_6_says_the_same() {
    check(include_str!("golden/nft-1.0.6.txt"), bare);
}
