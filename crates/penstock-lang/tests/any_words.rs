//! Whatever is typed: no panic, and a refusal always says something. What is printed reads back.

use penstock_lang::show::{self, Form};
use penstock_lang::tc::{self, Command, Show};
use penstock_lang::token::{self, Word};
use penstock_model::rtnetlink::{ClassDump, Counters, FilterDump, QdiscDump, Stats};
use penstock_model::{Handle, Kernel};
use proptest::prelude::*;

/// Words that lead deep into the grammar, and nonsense.
fn word() -> impl Strategy<Value = String> {
    let known = [
        "tc",
        "-s",
        "-d",
        "-j",
        "-p",
        "-r",
        "-b",
        "-g",
        "qdisc",
        "class",
        "filter",
        "add",
        "del",
        "change",
        "replace",
        "link",
        "show",
        "get",
        "help",
        "dev",
        "eth0",
        "root",
        "ingress",
        "clsact",
        "parent",
        "1:",
        "1:1",
        "ffff:",
        "handle",
        "classid",
        "estimator",
        "1sec",
        "8sec",
        "stab",
        "overhead",
        "linklayer",
        "atm",
        "mtu",
        "mpu",
        "tsize",
        "pfifo",
        "bfifo",
        "pfifo_fast",
        "prio",
        "tbf",
        "sfq",
        "htb",
        "u32",
        "fw",
        "limit",
        "bands",
        "priomap",
        "rate",
        "burst",
        "latency",
        "peakrate",
        "perturb",
        "quantum",
        "divisor",
        "flows",
        "depth",
        "redflowlimit",
        "probability",
        "ecn",
        "default",
        "r2q",
        "ceil",
        "cburst",
        "protocol",
        "ip",
        "ipv6",
        "all",
        "pref",
        "chain",
        "match",
        "src",
        "dst",
        "ip6",
        "tcp",
        "udp",
        "icmp",
        "ether",
        "type",
        "code",
        "sport",
        "dport",
        "tos",
        "u8",
        "u16",
        "at",
        "nexthdr+",
        "nexthdr+4",
        "mark",
        "offset",
        "plus",
        "shift",
        "mask",
        "eat",
        "hashkey",
        "sample",
        "ht",
        "2:",
        "order",
        "indev",
        "flowid",
        "skip_hw",
        "0",
        "1",
        "2",
        "-1",
        "0x10",
        "ff",
        "1mbit",
        "15k/8",
        "50ms",
        "50%",
        "10.0.0.0/8",
        "2001:db8::/32",
        "any",
        "1e400",
        "nan",
        "",
        "00:11:22:33:44:55",
        "800::800",
        "4294967295",
        "0.2",
    ];
    prop_oneof![8 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => "[ -~]{0,12}", 1 => ".{0,6}"]
}

fn words(texts: &[String]) -> Vec<Word> {
    texts.iter().enumerate().map(|(i, t)| Word::new(t.clone(), i as u32 * 8 + 1)).collect()
}

fn start(verb: &'static str) -> impl Strategy<Value = Vec<String>> {
    let line = prop::sample::select(vec![
        "",
        "qdisc add dev eth0 root",
        "qdisc add dev eth0 root tbf rate 1mbit",
        "qdisc add dev eth0 root sfq",
        "class add dev eth0 parent 1: htb rate 1mbit",
        "filter add dev eth0 parent 1: protocol ip u32",
        "filter add dev eth0 parent 1: u32 match",
        "filter add dev eth0 fw",
        "qdisc show",
        "class show",
        "filter show",
    ]);
    (line, prop::collection::vec(word(), 0..14)).prop_map(move |(line, rest)| {
        let mut all = vec![verb.to_owned()];
        all.extend(line.split_whitespace().map(str::to_owned));
        all.extend(rest);
        all
    })
}

/// Prints what a request holds, as if the kernel had dumped just that.
fn print(command: &Command, kernel: Kernel) -> Vec<String> {
    let forms = |dev: bool| {
        [(false, false), (true, false), (true, true)].map(|(details, json)| Show {
            dev: dev.then(|| "eth0".to_owned()),
            form: Form { details, json, stats: true, raw: details, pretty: json, ..Form::default() },
            ..Show::default()
        })
    };
    let fixed = |kind: &Option<String>| -> &'static str {
        let kinds = ["pfifo", "bfifo", "prio", "tbf", "sfq", "htb", "u32", "fw"];
        kinds.into_iter().find(|k| Some(*k) == kind.as_deref()).unwrap_or("noqueue")
    };
    let stats = Stats::default();
    let mut printed = Vec::new();
    match command {
        Command::Qdisc { req, .. } => {
            let options = req.options.clone().unwrap_or_default();
            let (handle, parent) = (req.handle, req.parent);
            let dump =
                QdiscDump { kind: fixed(&req.kind), handle, parent, refcnt: 1, options, stats, xstats: None };
            for show in forms(true) {
                printed.push(show::qdiscs(&[("eth0".to_owned(), dump.clone())], &show, kernel));
            }
        }
        Command::Class { req, .. } => {
            let options = req.options.clone().unwrap_or_default();
            let (classid, parent) = (req.classid, req.parent);
            let dump = ClassDump {
                kind: fixed(&req.kind),
                classid,
                parent,
                leaf: None,
                options,
                counters: Counters::All,
                stats,
                xstats: None,
            };
            for mut show in forms(false) {
                printed.push(show::classes(&[("eth0".to_owned(), dump.clone())], &show, kernel));
                show.form.graph = true;
                printed.push(show::classes(&[("eth0".to_owned(), dump.clone())], &show, kernel));
            }
        }
        Command::Filter { req, .. } => {
            let dump = FilterDump {
                kind: fixed(&req.kind),
                block: req.block,
                parent: req.parent,
                protocol: req.protocol,
                prio: req.prio,
                chain: req.chain.unwrap_or(0),
                handle: req.handle,
                options: req.options.clone(),
            };
            for show in forms(false) {
                let text = show::filters(&[("eth0".to_owned(), dump.clone())], &show, kernel);
                if show.form.json && kernel >= Kernel::V6_12 {
                    let parsed: serde_json::Value =
                        serde_json::from_str(&text).expect("filters are valid JSON");
                    assert_eq!(parsed.as_array().map(Vec::len), Some(1));
                }
                printed.push(text);
            }
        }
        _ => {}
    }
    printed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_words_panic(texts in start("tc")) {
        for kernel in Kernel::ALL {
            match tc::parse(&words(&texts), kernel) {
                Ok(commands) => {
                    for command in &commands {
                        print(command, kernel);
                    }
                }
                Err(f) => {
                    prop_assert!(f.exit == 1 || f.exit == 255, "{f:?}");
                    prop_assert!(!f.diagnostic.message.is_empty());
                }
            }
        }
    }

    #[test]
    fn no_line_panics(text in "[ -~\n\t\\\\'\"$;&|<>{}=]{0,80}") {
        match token::read(&text, 1) {
            Ok(line) => prop_assert!(line.number > 0 && line.words.iter().all(|w| w.line > 0 && w.column > 0)),
            Err(fault) => prop_assert!(fault.line > 0 && fault.column > 0),
        }
    }

    /// `tc -r class show` prints what `tc class add` reads to the same numbers.
    #[test]
    fn classes_read_back(rate in 1u64..1_000_000, ceil in 1u64..1_000_000, burst in 0u32..100_000, prio in 0u32..8) {
        let kernel = Kernel::V6_12;
        let line = format!("class add dev eth0 parent 1: classid 1:1 htb rate {rate}kbit ceil {ceil}000 burst {burst} prio {prio}");
        let first = tc::parse(&token::words(&line).unwrap(), kernel).unwrap();
        let Command::Class { req, .. } = &first[0] else { unreachable!() };
        let options = req.options.clone().unwrap();
        let dump = ClassDump {
            kind: "htb", classid: req.classid, parent: Handle::new(1, 0), leaf: None, options: options.clone(),
            counters: Counters::All, stats: Stats::default(), xstats: None,
        };
        let show = Show { dev: Some("eth0".to_owned()), ..Show::default() };
        let text = show::classes(&[("eth0".to_owned(), dump)], &show, kernel);
        let (_, printed) = text.split_once("prio").unwrap();
        let again = format!("tc class add dev eth0 parent 1: classid 1:1 htb prio{printed}");
        let second = tc::parse(&token::words(&again).unwrap(), kernel).unwrap();
        let Command::Class { req, .. } = &second[0] else { unreachable!() };
        let back = req.options.clone().unwrap();
        for name in ["rate", "ceil", "prio"] {
            prop_assert_eq!(options.value(name), back.value(name), "{}: {}", name, text);
        }
    }
}
