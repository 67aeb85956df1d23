//! What the real tc sends to the kernel for a command, against what we make of it: every number of it.
//!
//! `golden/requests-6.1.txt` and `golden/requests-2.6.35.txt` were recorded by `golden/record.py` with iproute2 6.1.0 and 2.6.35. Rate tables are
//! left out: they follow from the numbers.

use crate::wire;

use penstock_lang::tc::{self, Command};
use penstock_lang::token;
use penstock_model::rtnetlink::Verb;
use penstock_model::{Handle, Kernel, Options, Value};

fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Add => "add",
        Verb::Change => "change",
        Verb::Replace => "replace",
        Verb::Create => "create",
        Verb::Link => "link",
        Verb::Del => "del",
    }
}

struct Parts<'a> {
    head: String,
    handle: u32,
    parent: Handle,
    between: String,
    kind: &'a Option<String>,
    estimator: Option<(i8, u8)>,
    stab: &'a Option<Options>,
    options: &'a Option<Options>,
}

/// The notation of `golden/record.py` `request`.
fn text(p: Parts, kernel: Kernel) -> String {
    let mut s = format!("{} handle={:x} parent={:x}{}", p.head, p.handle, p.parent.0, p.between);
    if let Some(kind) = p.kind {
        s += &format!(" kind={kind}");
    }
    if let Some((interval, log)) = p.estimator {
        s += &format!(" est={interval},{log}");
    }
    if let Some(stab) = p.stab {
        s += &format!(" stab={}", wire::text(stab));
    }
    if let Some(options) = p.options {
        s += &format!(" {}", wire::text(&as_sent(options, p.kind.as_deref(), kernel)));
    }
    s
}

/// Zeroes that stand for "not given" in a struct of fixed size are not recorded; 2.6.35's ratespec has no link layer, which
/// is in its tables alone.
fn as_sent(options: &Options, kind: Option<&str>, kernel: Kernel) -> Options {
    let mut sent = Options::new();
    for (name, value) in options.iter() {
        let zero = matches!(value, Value::U32(0) | Value::I64(0));
        if kind == Some("sfq") && zero {
            continue;
        }
        let value = match (name, kernel) {
            ("linklayer", Kernel::V2_6_35) => Value::U32(0),
            _ => value.clone(),
        };
        sent.set(name, value);
    }
    sent
}

fn request(command: &Command, kernel: Kernel) -> Option<String> {
    Some(match command {
        Command::Qdisc { req, .. } => text(
            Parts {
                head: format!("qdisc {}", verb(req.verb)),
                handle: req.handle.0,
                parent: req.parent,
                between: String::new(),
                kind: &req.kind,
                estimator: req.estimator,
                stab: &req.stab,
                options: &req.options,
            },
            kernel,
        ),
        Command::Class { req, .. } => text(
            Parts {
                head: format!("class {}", verb(req.verb)),
                handle: req.classid.0,
                parent: req.parent,
                between: String::new(),
                kind: &req.kind,
                estimator: req.estimator,
                stab: &None,
                options: &req.options,
            },
            kernel,
        ),
        Command::Filter { req, .. } | Command::GetFilter(_, req) => {
            let get = matches!(command, Command::GetFilter(..));
            let mut between = format!(" prio={} protocol={:x}", req.prio, req.protocol);
            if let Some(chain) = req.chain {
                between += &format!(" chain={chain}");
            }
            text(
                Parts {
                    head: format!("filter {}", if get { "get" } else { verb(req.verb) }),
                    handle: req.handle,
                    parent: req.parent,
                    between,
                    kind: &req.kind,
                    estimator: None,
                    stab: &None,
                    options: &req.options,
                },
                kernel,
            )
        }
        _ => return None,
    })
}

fn check(golden: &str, kernel: Kernel) {
    let mut wrong = Vec::new();
    for entry in golden.lines() {
        let (want, line) = entry.split_once('|').unwrap();
        let words = token::words(line).unwrap();
        let got = match tc::parse(&words, kernel) {
            Ok(commands) => commands.iter().find_map(|c| request(c, kernel)).unwrap_or_default(),
            Err(f) => f.stderr,
        };
        if got != want {
            wrong.push(format!("{line}\n   tc: {want}\n   we: {got}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn tc_6_1_sends_the_same() {
    check(include_str!("golden/requests-6.1.txt"), Kernel::V6_12);
}

#[test]
fn tc_2_6_35_sends_the_same() {
    check(include_str!("golden/requests-2.6.35.txt"), Kernel::V2_6_35);
}
