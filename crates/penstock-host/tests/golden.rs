//! What the real programs give, against what we give: exit status, the first line of standard error and all of standard
//! output, word for word.
//!
//! `golden/*-*.txt` were recorded by `golden/record.py` from the scenes in `golden/iptables.txt`, on
//! Linux 6.12.117; the file's name says with which version of the program.

use penstock_host::{Host, Output};
use penstock_model::{Kernel, Time};
use std::fmt::Write;

/// What a command gave, in the form of the recorded files.
fn told(line: &str, out: &Output) -> String {
    let mut text = format!("$ {line}\n= {}\n", out.status);
    if let Some(first) = out.stderr.lines().next() {
        let _ = writeln!(text, "! {first}");
    }
    for line in out.stdout.lines() {
        let _ = writeln!(text, "  {line}");
    }
    text
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
        while let Some(more) = lines.next_if(|l| !l.is_empty() && !l.starts_with("$ ")) {
            theirs += &format!("{more}\n");
        }
        count += 1;
        let ours = told(command, &host.exec(command, Time::ZERO));
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

#[test]
fn iptables_1_8_9_says_the_same() {
    check(include_str!("golden/iptables-1.8.9.txt"), router);
}
