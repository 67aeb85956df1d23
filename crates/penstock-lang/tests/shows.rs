//! What the real tc prints of what a real kernel dumps, against what we print of the same dumps: byte for byte.
//!
//! `golden/shows-6.1.txt` and `golden/shows-2.6.35.txt` were recorded by `golden/record.py` with iproute2 6.1.0 and 2.6.35 on Linux 6.12.117.

use crate::wire;

use penstock_lang::tc::{self, Command};
use penstock_lang::{show, token};
use penstock_model::rtnetlink::{ClassDump, Counters, FilterDump, QdiscDump, Stats};
use penstock_model::{Handle, Kernel, Options};

#[derive(Default)]
struct Scene {
    qdiscs: Vec<(String, QdiscDump)>,
    classes: Vec<(String, ClassDump)>,
    filters: Vec<(String, FilterDump)>,
}

fn fixed(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

fn stats(o: &Options) -> Stats {
    let n = |name: &str| o.u32(name).unwrap_or(0);
    Stats {
        bytes: o.u64("bytes").unwrap_or(0),
        packets: o.u64("packets").unwrap_or(0),
        drops: n("drops"),
        overlimits: n("overlimits"),
        requeues: n("requeues"),
        qlen: n("qlen"),
        backlog: n("backlog"),
        rate: o.u64("bps").map(|bps| (bps, o.u64("pps").unwrap_or(0))),
    }
}

impl Scene {
    fn dump(&mut self, line: &str) {
        let (head, mut rest) = line.split_at(line.find(" {").expect("options"));
        let mut blocks = Vec::new();
        while let Some(next) = rest.strip_prefix(' ') {
            rest = next;
            blocks.push(wire::read(&mut rest));
        }
        let mut words = head.split(' ');
        let what = words.next().unwrap();
        let field = |name: &str| head.split(' ').find_map(|w| w.strip_prefix(name)?.strip_prefix('='));
        let hex = |name: &str| u32::from_str_radix(field(name).unwrap(), 16).unwrap();
        let dev = field("dev").unwrap().to_owned();
        let (kind, handle, parent) =
            (fixed(field("kind").unwrap()), Handle(hex("handle")), Handle(hex("parent")));
        let info = hex("info");
        let mut blocks = blocks.into_iter();
        let options = blocks.next().unwrap();
        let stats = blocks.next().map(|o| stats(&o)).unwrap_or_default();
        let xstats = blocks.next();
        match what {
            "qdisc" => {
                self.qdiscs
                    .push((dev, QdiscDump { kind, handle, parent, refcnt: info, options, stats, xstats }));
            }
            "class" => {
                let leaf = (info != 0).then_some(Handle(info));
                // As the kinds' `dump_stats` have it.
                let counters = match kind {
                    "cbs" | "dsmark" | "netem" | "red" | "tbf" => Counters::None,
                    "fq_codel" | "sfq" | "skbprio" => Counters::Queue,
                    _ => Counters::All,
                };
                let dump =
                    ClassDump { kind, classid: handle, parent, leaf, options, counters, stats, xstats };
                self.classes.push((dev, dump));
            }
            _ => self.filters.push((
                dev,
                FilterDump {
                    kind,
                    block: 0,
                    parent,
                    protocol: (info as u16).swap_bytes(),
                    prio: (info >> 16) as u16,
                    chain: field("chain").map_or(0, |c| c.parse().unwrap()),
                    handle: handle.0,
                    // The header of a priority has no options.
                    options: (handle.0 != 0 || options != Options::new()).then_some(options),
                },
            )),
        }
    }

    fn show(&self, line: &str, kernel: Kernel) -> String {
        let words = token::words(line).unwrap();
        // What that tc does not know it does not print; tests/commands.rs looks at the words.
        let Ok(mut commands) = tc::parse(&words, kernel) else { return String::new() };
        let command = commands.pop().unwrap();
        let on = |dev: &str, wanted: &Option<String>| wanted.as_deref().is_none_or(|w| w == dev);
        match command {
            Command::ShowQdisc(s) => {
                let found: Vec<_> = self.qdiscs.iter().filter(|d| on(&d.0, &s.dev)).cloned().collect();
                show::qdiscs(&found, &s, kernel)
            }
            // Without a device the kernel has no classes and no filters to dump.
            Command::ShowClass(s) => {
                let found: Vec<_> =
                    self.classes.iter().filter(|d| Some(&d.0) == s.dev.as_ref()).cloned().collect();
                show::classes(&found, &s, kernel)
            }
            Command::ShowFilter(s) => {
                let wanted = |d: &&(String, FilterDump)| {
                    Some(&d.0) == s.dev.as_ref()
                        && (s.prio == 0 || s.prio == u32::from(d.1.prio))
                        && (s.protocol == 0 || s.protocol == d.1.protocol)
                };
                let found: Vec<_> = self.filters.iter().filter(wanted).cloned().collect();
                show::filters(&found, &s, kernel)
            }
            other => panic!("{line}: {other:?}"),
        }
    }
}

fn check(golden: &str, kernel: Kernel, skip: &[&str]) {
    let mut wrong = Vec::new();
    let mut shown = 0;
    for scene in golden.split("== ").skip(1) {
        let (title, body) = scene.split_once('\n').unwrap();
        let mut world = Scene::default();
        let mut shows: Vec<(&str, String)> = Vec::new();
        for line in body.lines() {
            if let Some(dump) = line.strip_prefix("@ ") {
                world.dump(dump);
            } else if let Some(command) = line.strip_prefix("$ ") {
                shows.push((command, String::new()));
            } else if line == "%% no newline" {
                shows.last_mut().unwrap().1.pop();
            } else if !line.starts_with("!! ") {
                let text = &mut shows.last_mut().unwrap().1;
                text.push_str(line);
                text.push('\n');
            }
        }
        for (command, want) in shows {
            if skip.iter().any(|s| command.contains(s)) || title.starts_with('-') {
                continue;
            }
            shown += 1;
            let got = world.show(command, kernel);
            if got != want {
                wrong.push(format!("== {title}: {command}\n--- tc\n{want}--- we\n{got}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {shown} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn tc_6_1_prints_the_same() {
    check(include_str!("golden/shows-6.1.txt"), Kernel::V6_12, &[]);
}

#[test]
fn tc_2_6_35_prints_the_same() {
    check(include_str!("golden/shows-2.6.35.txt"), Kernel::V2_6_35, &[]);
}
