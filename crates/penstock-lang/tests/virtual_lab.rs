//! The scripts and the printed outputs of the virtual-lab study (2011, iproute2 and Linux of Ubuntu 10.10).
//!
//! Every script parses, but for the line that lost a blank in print. Every output is printed again from its own counters and from the
//! options its script gives, as Linux 2.6.35 dumps them; lines are compared without trailing blanks, which the print does not show.

use penstock_lang::tc::{self, Command, Show};
use penstock_lang::token::{self, Line};
use penstock_lang::{show, token::Word};
use penstock_model::rtnetlink::{ClassDump, Counters, FilterDump, QdiscDump, Stats};
use penstock_model::{Handle, Kernel, Options};
use std::collections::BTreeMap;
use std::path::PathBuf;

const OLD: Kernel = Kernel::V2_6_35;

/// What was printed.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/virtual-lab")
}

/// What was typed: the study's own files.
fn scripts() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../penstock-study/studies/virtual-lab/commands")
}

fn file(name: &str) -> String {
    let folder = if name.ends_with(".sh") { scripts() } else { folder() };
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn tc_lines(text: &str) -> Vec<Line> {
    let lines = (1..).zip(text.lines()).map(|(number, line)| token::read(line, number).unwrap());
    lines.filter(|l| l.words.first().is_some_and(|w| w.text == "tc")).collect()
}

#[test]
fn every_script_parses() {
    let mut lines = 0;
    let mut names: Vec<_> = std::fs::read_dir(scripts()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    for name in names.iter().filter_map(|n| n.to_str()).filter(|n| n.ends_with(".sh")) {
        for line in tc_lines(&file(name)) {
            lines += 1;
            for kernel in Kernel::ALL {
                match tc::parse(&line.words, kernel) {
                    Ok(_) => {}
                    Err(f) => {
                        assert!(name.ends_with(".as-printed.sh"), "{name}: {f:?}");
                        let want = "Unknown qdisc \"tbfrate\", hence option \"1000kbit\" is unparsable\n";
                        assert_eq!((f.stderr.as_str(), f.exit), (want, 1));
                        let d = line.place(name, *f.diagnostic);
                        assert_eq!((d.line, d.column, d.len), (5, 53, 8));
                        assert_eq!(d.help, "a blank is missing: \"tbf rate\"");
                    }
                }
            }
        }
    }
    assert_eq!(lines, 117);
}

/// What the script leaves behind, as the kernel of 2010 would dump it.
#[derive(Default)]
struct World {
    qdiscs: Vec<QdiscDump>,
    classes: Vec<ClassDump>,
    filters: Vec<FilterDump>,
}

fn qdisc(kind: &'static str, handle: Handle, parent: Handle, options: Options) -> QdiscDump {
    let refcnt = if parent == Handle::ROOT { 2 } else { 1 };
    QdiscDump { kind, handle, parent, refcnt, options, stats: Stats::default(), xstats: None }
}

fn pfifo_fast() -> QdiscDump {
    let map = vec![1u8, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
    let options = Options::new().with("bands", 3u32).with("priomap", map);
    qdisc("pfifo_fast", Handle::UNSPEC, Handle::ROOT, options)
}

fn world(script: &str) -> World {
    let mut w = World::default();
    for line in tc_lines(script) {
        let command = tc::parse(&line.words, OLD).unwrap().remove(0);
        match command {
            Command::Qdisc { req, .. } => {
                let Some(kind) = req.kind else { continue };
                let mut o = req.options.unwrap_or_default();
                let kind: &'static str = match kind.as_str() {
                    "htb" => {
                        o = o.with("direct_packets_stat", 0u32).with("version", 0x3_0011u32);
                        "htb"
                    }
                    "sfq" => {
                        let perturb = o.i64("perturb").unwrap_or(0);
                        o = Options::new().with("limit", 127u32).with("quantum", 1514u32);
                        o = o.with("flows", 127u32).with("divisor", 1024u32).with("perturb", perturb);
                        "sfq"
                    }
                    "prio" => "prio",
                    "tbf" => "tbf",
                    "pfifo" => "pfifo",
                    other => panic!("{other}"),
                };
                w.qdiscs.push(qdisc(kind, req.handle, req.parent, o));
            }
            Command::Class { req, .. } => {
                let mut o = req.options.unwrap();
                let quantum = (o.u64("rate").unwrap() / 10) as u32;
                o = o.with("quantum", quantum).with("level", 0u32);
                w.classes.push(ClassDump {
                    kind: "htb",
                    classid: req.classid,
                    parent: req.parent,
                    leaf: None,
                    options: o,
                    counters: Counters::All,
                    stats: Stats::default(),
                    xstats: None,
                });
            }
            Command::Filter { req, .. } => {
                let filter = |handle, options: Option<Options>| FilterDump {
                    kind: "u32",
                    block: 0,
                    parent: req.parent,
                    protocol: req.protocol,
                    prio: req.prio,
                    chain: 0,
                    handle,
                    options,
                };
                if w.filters.is_empty() {
                    w.filters.push(filter(0, None));
                    w.filters.push(filter(0x8000_0000, Some(Options::new().with("divisor", 1u32))));
                }
                let node = 0x8000_0800 + w.filters.len() as u32 - 2;
                w.filters.push(filter(node, req.options.clone().map(|o| o.with("hash", 0x8000_0000u32))));
            }
            other => panic!("{other:?}"),
        }
    }
    // A parent that is not there makes a root class; parents have level 7 here, children none of their own.
    let ids: Vec<Handle> = w.classes.iter().map(|c| c.classid).collect();
    for i in 0..w.classes.len() {
        if !ids.contains(&w.classes[i].parent) {
            w.classes[i].parent = Handle::ROOT;
        }
        let id = w.classes[i].classid;
        if w.classes.iter().any(|c| c.parent == id) {
            let o = std::mem::take(&mut w.classes[i].options);
            w.classes[i].options = o.with("level", 7u32);
        }
        w.classes[i].leaf = w.qdiscs.iter().find(|q| q.parent == id).map(|q| q.handle);
    }
    w
}

/// The numbers behind each name of one object's lines.
fn counters(block: &[&str]) -> (Stats, BTreeMap<String, i64>) {
    let text = block[1..].join(" ");
    let words: Vec<&str> = text.split([' ', '(', ')', ',', ':']).filter(|w| !w.is_empty()).collect();
    let mut named = BTreeMap::new();
    for (i, word) in words.iter().enumerate() {
        if let Some(n) = words.get(i + 1).and_then(|n| n.parse::<i64>().ok()) {
            named.entry((*word).to_owned()).or_insert(n);
        }
    }
    let n = |name: &str| named.get(name).copied().unwrap_or(0);
    let before = |name: &str| {
        words.iter().position(|w| *w == name).and_then(|i| words[i - 1].parse::<u64>().ok()).unwrap_or(0)
    };
    let ending = |end: &str| words.iter().find_map(|w| w.strip_suffix(end)?.parse::<u64>().ok());
    let stats = Stats {
        bytes: before("bytes"),
        packets: before("pkt"),
        drops: n("dropped") as u32,
        overlimits: n("overlimits") as u32,
        requeues: n("requeues") as u32,
        qlen: 0,
        backlog: 0,
        rate: ending("bit").map(|bits| (bits / 8, ending("pps").unwrap_or(0))),
    };
    (stats, named)
}

/// The printed text in blocks, one an object.
fn blocks<'a>(text: &'a str, first: &str) -> Vec<Vec<&'a str>> {
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        if line.starts_with(first) {
            blocks.push(Vec::new());
        }
        blocks.last_mut().expect("the first line begins a block").push(line);
    }
    blocks
}

fn on<T>(objects: Vec<T>) -> Vec<(String, T)> {
    objects.into_iter().map(|o| ("eth0".to_owned(), o)).collect()
}

fn print_again(name: &str, command: &str, script: &str) -> String {
    let text = file(name);
    let words: Vec<Word> = token::words(command).unwrap();
    let default = text.starts_with("qdisc pfifo_fast");
    let mut w =
        if default { World { qdiscs: vec![pfifo_fast()], ..World::default() } } else { world(&file(script)) };
    match tc::parse(&words, OLD).unwrap().remove(0) {
        Command::ShowQdisc(s) => {
            let blocks = blocks(&text, "qdisc");
            assert_eq!(blocks.len(), w.qdiscs.len(), "{name}");
            for (q, block) in w.qdiscs.iter_mut().zip(blocks) {
                q.stats = counters(&block).0;
            }
            show::qdiscs(&on(w.qdiscs), &s, OLD)
        }
        Command::ShowClass(s) => {
            for (c, block) in w.classes.iter_mut().zip(blocks(&text, "class")) {
                let (stats, named) = counters(&block);
                let n = |name: &str| named[name];
                c.stats = stats;
                let o =
                    Options::new().with("lends", n("lended") as u32).with("borrows", n("borrowed") as u32);
                c.xstats = Some(o.with("tokens", n("tokens")).with("ctokens", n("ctokens")));
            }
            show::classes(&on(w.classes), &s, OLD)
        }
        Command::ShowFilter(s) => show::filters(&on(w.filters), &Show { parent: Handle::UNSPEC, ..s }, OLD),
        other => panic!("{other:?}"),
    }
}

fn trimmed(text: &str) -> Vec<&str> {
    text.trim_end().lines().map(str::trim_end).collect()
}

fn check(name: &str, command: &str, script: &str) {
    let printed = print_again(name, command, script);
    assert_eq!(trimmed(&printed), trimmed(&file(name)), "{name}");
}

#[test]
fn every_output_is_printed_again() {
    let ls = "tc -s qdisc ls dev eth0";
    let mut names: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    let mut outputs = 0;
    for name in names.iter().filter_map(|n| n.to_str()).filter(|n| n.ends_with(".txt")) {
        outputs += 1;
        let has = |part: &str| name.contains(part);
        let (command, script) = match name {
            _ if has("06.1") => (ls, "06.1-htb-10mbit.sh"),
            _ if has("06.2") => (ls, "06.2-htb-pfifo.sh"),
            _ if has("06.3") => (ls, "06.3-htb-sfq.sh"),
            _ if has("06.4") => (ls, "06.4-htb-sfq-perturb.sh"),
            _ if has("07.0") => (ls, "07.0-htb-10mbit.sh"),
            _ if has("07.1") => (ls, "07.1-htb-pfifo.sh"),
            _ if has("07.2") => (ls, "07.2-htb-sfq-perturb.sh"),
            _ if has("07.4") => (ls, "07.4-prio.sh"),
            "vl-08.1-qdisc.txt" => ("tc -s -d qdisc show dev eth0", "08.1-user-limits.sh"),
            "vl-08.1-class.txt" => ("tc -s -d class show dev eth0", "08.1-user-limits.sh"),
            "vl-08.1-filter.txt" => ("tc -s -d filter show dev eth0", "08.1-user-limits.sh"),
            "vl-08.2-ceil-qdisc.txt" => ("tc -s -d qdisc show dev eth0", "08.2-user-ceilings.sh"),
            "vl-08.2-ceil-class.txt" => ("tc -s -d class show dev eth0", "08.2-user-ceilings.sh"),
            "vl-08.2-ceil-filter.txt" => ("tc -s -d filter show dev eth0", "08.2-user-ceilings.sh"),
            _ => (ls, ""),
        };
        check(name, command, script);
    }
    assert_eq!(outputs, 32);
}
