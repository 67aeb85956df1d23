//! What the real tc says of a command, against what we say: exit code and first line, word for word.
//!
//! `golden/commands-6.1.txt` and `golden/commands-2.6.35.txt` were recorded by `golden/record-commands.sh` with iproute2 6.1.0 and 2.6.35 on
//! Linux 6.12.117, `golden/commands-7.3.0.txt` with iproute2 7.3.0 on Linux 7.2.13. A line of them is exit code, first line of stderr (empty where that is a usage text), command.

use penstock_lang::tc::{self, Command, Env, Failure, Link};
use penstock_lang::token;
use penstock_model::Kernel;

fn device(name: &str) -> Option<Link> {
    // A dummy device has no speed.
    matches!(name, "d0" | "d1" | "lo").then(Link::default)
}

/// tc's half of a command: the device is looked up last, as tc does.
fn run(line: &str, kernel: Kernel) -> Result<Vec<Command>, Failure> {
    let words = token::words(line).expect("the file holds plain words");
    let commands = tc::parse_in(&words, &Env { kernel, device: &device, objects: &tc::NoObjects })?;
    for command in &commands {
        let dev = match command {
            Command::Qdisc { dev, .. } | Command::Class { dev, .. } | Command::Filter { dev, .. } => {
                dev.as_deref()
            }
            Command::ShowQdisc(s)
            | Command::ShowClass(s)
            | Command::ShowFilter(s)
            | Command::GetFilter(s, _) => s.dev.as_deref(),
            _ => None,
        };
        if let Some(name) = dev.filter(|d| device(d).is_none()) {
            return Err(tc::no_device(name));
        }
    }
    Ok(commands)
}

fn check(golden: &str, kernel: Kernel) {
    let mut wrong = Vec::new();
    for entry in golden.lines().filter(|l| !l.starts_with('#')) {
        let mut parts = entry.splitn(3, '|');
        let (code, said, line) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let code: i32 = code.parse().unwrap();
        match run(line, kernel) {
            // Accepted by tc; 2 is the kernel's refusal.
            Ok(_) if code == 0 || code == 2 => {}
            Ok(c) => wrong.push(format!("{line}\n   tc: {code} {said}\n   we: {c:?}")),
            Err(f) => {
                let first = f.stderr.lines().next().filter(|l| !l.starts_with("Usage:")).unwrap_or("");
                if f.exit != code || first != said {
                    wrong.push(format!("{line}\n   tc: {code} {said}\n   we: {} {first}", f.exit));
                }
                assert!(
                    f.diagnostic.message.lines().next().is_some_and(|l| !l.is_empty()),
                    "{line}: no message"
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{} lines differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn tc_6_1_says_the_same() {
    check(include_str!("golden/commands-6.1.txt"), Kernel::V6_12);
}

#[test]
fn tc_7_3_says_the_same() {
    check(include_str!("golden/commands-7.3.0.txt"), Kernel::V7_2);
}

#[test]
fn tc_2_6_35_says_the_same() {
    check(include_str!("golden/commands-2.6.35.txt"), Kernel::V2_6_35);
}
