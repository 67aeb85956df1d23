//! `diff` sees a changed value of every option of every kind, and exactly the traffic that moves.

use penstock_check::explain::{Explainer, Probe};
use penstock_check::{Facts, Settings, explain, facts};
use penstock_lang::tc::kinds;
use penstock_model::Kernel;
use penstock_shell::Script;
use std::collections::BTreeSet;

fn run(text: &str, kernel: Kernel) -> Result<Facts, String> {
    let script = Script { text: text.to_owned(), ..Script::default() };
    let facts = facts(&script, &Settings { kernel, ..Settings::default() });
    let refused: Vec<String> = facts
        .steps
        .iter()
        .filter(|s| !s.ok())
        .map(|s| format!("{}: {}", s.text(), s.output.stderr))
        .collect();
    if refused.is_empty() { Ok(facts) } else { Err(refused.join("")) }
}

fn try_between(a: &str, b: &str, kernel: Kernel) -> Result<Vec<String>, String> {
    explain::diff(&run(a, kernel)?, &run(b, kernel)?, "eth0")
}

#[track_caller]
fn between(a: &str, b: &str, kernel: Kernel) -> Vec<String> {
    try_between(a, b, kernel).unwrap()
}

#[track_caller]
fn check(a: &str, b: &str, want: &[&str]) {
    assert_eq!(between(a, b, Kernel::V6_12), want, "{a}\n{b}");
    assert!(between(a, a, Kernel::V6_12).is_empty() && between(b, b, Kernel::V6_12).is_empty());
}

/// Kind and two forms of its options: `kind`, `class kind`. Each row changes one word.
const CHANGES: &[(&str, &str, &str)] = &include!("diff/changes.in");

/// Words no row changes, and why.
const LEFT_OUT: &[(&str, &[&str])] = &[
    // Words for values that other words have, or that only ask what is so anyway.
    (
        "cake",
        &[
            "ethernet",
            "egress",
            "atm",
            "ptm",
            "noatm",
            "nonat",
            "nowash",
            "no-ack-filter",
            "split-gso",
            "hosts",
            "flows",
        ],
    ),
    ("codel", &["noecn"]),
    ("fq", &["pacing", "horizon_drop", "offload_horizon"]),
    ("fq_codel", &["noecn"]),
    ("fq_pie", &["noecn", "nobytemode", "no_dq_rate_estimator"]),
    ("pie", &["noecn", "nobytemode", "no_dq_rate_estimator"]),
    ("red", &["harddrop"]),
    ("gred", &["setup", "vq", "harddrop"]),
    ("sfq", &["flows", "harddrop", "depth"]),
    ("dualpi2", &["overflow", "drop_dequeue", "l4s_ect", "split_gso"]),
    // Cards that do the work themselves.
    ("htb", &["offload"]),
    ("mqprio", &["hw", "mode", "shaper", "min_rate", "max_rate", "fp"]),
    ("cbs", &["offload"]),
    ("etf", &["offload", "clockid"]),
    ("taprio", &["fp"]),
    ("hfsc", &["d", "m1", "umax", "dmax", "rate", "m2"]),
    // Commands to a queue that is there.
    ("plug", &["block", "release", "release_indefinite"]),
    ("netem", &["slot", "seed"]),
    // A word that the kernel takes and does not follow (fq_change), and one for what is so anyway.
    ("fq", &["defrate"]),
    ("dualpi2", &["drop_on_overload"]),
    // Curves are changed in what they are made of.
    ("hfsc", &["rt", "ls", "sc", "ul"]),
];

fn script(kind: &str, options: &str) -> String {
    match kind.strip_prefix("class ") {
        Some(kind) => {
            let root = match kind {
                "hfsc" => "hfsc default 10",
                "htb" => "htb default 10",
                "ets" => "ets bands 3",
                other => other,
            };
            let class = if kind == "ets" {
                "change dev eth0 parent 1: classid 1:1"
            } else {
                "add dev eth0 parent 1: classid 1:10"
            };
            format!("tc qdisc add dev eth0 root handle 1: {root}\ntc class {class} {kind} {options}\n")
        }
        // Queues of a gred are set up by a change.
        None if kind == "gred" => {
            let (setup, queue) = options.split_once(';').unwrap_or((options, ""));
            let change = format!("tc qdisc change dev eth0 root handle 1: gred {queue}\n");
            format!(
                "tc qdisc add dev eth0 root handle 1: gred {setup}\n{}",
                if queue.is_empty() { "" } else { &change }
            )
        }
        None if matches!(kind, "mqprio" | "taprio") => format!(
            "ip link add name eth0 numtxqueues 4 numrxqueues 4 type veth peer name v1\nip link set eth0 up\n\
             tc qdisc add dev eth0 root handle 1: {kind} {options}\n"
        ),
        None => format!("tc qdisc add dev eth0 root handle 1: {kind} {options}\n"),
    }
}

fn pieces(options: &str, words: &BTreeSet<&'static str>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in options.split_whitespace() {
        match out.last_mut() {
            Some(last) if !words.contains(word) => *last += &format!(" {word}"),
            _ => out.push(word.to_owned()),
        }
    }
    out
}

#[test]
fn a_changed_value_of_every_option_is_seen() {
    let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
    let mut wrong = String::new();
    for (kind, a, b) in CHANGES {
        let name = kind.strip_prefix("class ").unwrap_or(kind);
        let kernel = if matches!(name, "dualpi2" | "cake_mq") { Kernel::V7_2 } else { Kernel::V6_12 };
        match try_between(&script(kind, a), &script(kind, b), kernel) {
            Ok(said) if said.is_empty() => wrong += &format!("{kind}: {a} | {b}: nothing differs\n"),
            Ok(_) => {}
            Err(why) => wrong += &why,
        }
        if try_between(&script(kind, a), &script(kind, a), kernel).is_ok_and(|said| !said.is_empty()) {
            wrong += &format!("{kind}: {a}: differs from itself\n");
        }
        let known = kinds::find(name).unwrap();
        let words = if *kind == name { known.words() } else { known.class_words() };
        let words: BTreeSet<&str> = words.iter().map(|w| w.word).collect();
        let (x, y) = (pieces(a, &words), pieces(b, &words));
        let changed = x.iter().filter(|p| !y.contains(p)).chain(y.iter().filter(|p| !x.contains(p)));
        seen.extend(changed.map(|p| ((*kind).to_owned(), p.split(' ').next().unwrap().to_owned())));
    }
    for kind in kinds::KINDS.iter().filter(|k| !matches!(k.id, "atm" | "cbq" | "dsmark" | "cake_mq")) {
        for (class, words) in [("", kind.words()), ("class ", kind.class_words())] {
            for word in words {
                let key = (format!("{class}{}", kind.id), word.word.to_owned());
                let left = LEFT_OUT.iter().any(|l| l.0 == kind.id && l.1.contains(&word.word));
                if !left && !seen.contains(&key) {
                    wrong += &format!("{} {}: no row changes it\n", key.0, key.1);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Two forms of a filter with its actions; each row changes one thing.
const FILTERS: &[(&str, &str)] = &include!("diff/filters.in");

#[test]
fn a_changed_value_of_every_filter_and_action_is_seen() {
    let script = |filter: &str| {
        let place = if filter.contains(" ct ") { "ingress" } else { "parent 1:" };
        format!(
            "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 clsact\n\
             tc filter add dev eth0 {place} protocol ip prio 1 {filter}\n"
        )
    };
    let mut wrong = String::new();
    for (a, b) in FILTERS {
        match try_between(&script(a), &script(b), Kernel::V6_12) {
            Ok(said) if said.is_empty() => wrong += &format!("{a} | {b}: nothing differs\n"),
            Ok(_) => {}
            Err(why) => wrong += &why,
        }
        if try_between(&script(a), &script(a), Kernel::V6_12).is_ok_and(|said| !said.is_empty()) {
            wrong += &format!("{a}: differs from itself\n");
        }
    }
    // Nor is any kind of action or classifier forgotten.
    let actions = penstock_lang::tc::actions::names().filter(|n| !matches!(*n, "gact" | "xt"));
    let filters = ["u32", "fw", "flower", "basic", "matchall", "flow", "route", "cgroup", "bpf"].into_iter();
    for name in actions.chain(filters) {
        if !FILTERS.iter().any(|(a, _)| a.split(' ').any(|word| word == name)) {
            wrong += &format!("{name}: no row\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

const TREE: &str = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                    tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
                    tc class add dev eth0 parent 1: classid 1:30 htb rate 5mbit\n";

fn tree(more: &str) -> String {
    format!("{TREE}{more}\n")
}

#[test]
fn only_the_half_that_moved() {
    let net = |mask: u32| {
        tree(&format!(
            "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.0/{mask} flowid 1:10"
        ))
    };
    check(
        &net(16),
        &net(17),
        &["ip, src 10.0.128.0/17: 1:10 -> 1:30   (tcp 10.0.130.1:40000 > 192.0.2.1:40001)"],
    );
}

#[test]
fn a_map_of_priorities_takes_few_lines() {
    let said = between(
        "tc qdisc add dev eth0 root handle 1: prio\n",
        "tc qdisc add dev eth0 root handle 1: prio priomap 1 1 1 1 1 2 0 0 1 1 1 1 1 1 1 2\n",
        Kernel::V6_12,
    );
    assert!(said.len() <= 8, "{said:#?}");
    assert!(said.iter().any(|l| l.starts_with("root: priomap ")), "{said:#?}");
    assert!(said.iter().any(|l| l.starts_with("made here, priority 1-3: 1:3 -> 1:2")), "{said:#?}");
}

#[test]
fn what_is_written_otherwise_and_is_the_same() {
    let same = |a: &str, b: &str| check(a, b, &[]);
    same(
        "tc qdisc add dev eth0 root tbf rate 1mbit burst 10k latency 50ms\n",
        "tc qdisc add dev eth0 root handle 8001: tbf rate 1000kbit burst 10240 latency 50ms\n",
    );
    let one = tree(
        "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 17 0xff match ip dport 53 0xffff flowid 1:10",
    );
    let other = tree(
        "tc filter add dev eth0 parent 1: protocol ip prio 9 u32 match ip dport 53 0xffff match ip protocol 17 0xff flowid 1:10",
    );
    same(&one, &other);
}

#[test]
fn what_changes_beside_the_class_is_seen() {
    let filter = |police: &str| {
        tree(&format!(
            "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.0/8 {police} flowid 1:10"
        ))
    };
    let (slow, fast) =
        (filter("police rate 1mbit burst 10k drop"), filter("police rate 2mbit burst 10k drop"));
    check(&slow, &fast, &["filter at 1: prio 1: rate 1mbit -> rate 2mbit"]);
    check(&slow, &filter(""), &["filter at 1: prio 1: police rate 1mbit burst 10k drop -> none"]);
    // A policer's packets, taken by another filter before it: the class is the same.
    let before = |net: &str| {
        format!(
            "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst {net} flowid 1:10\n\
             tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip src 10.0.0.0/8 police rate 1mbit burst 10k drop flowid 1:10"
        )
    };
    let said = between(&tree(&before("192.0.2.0/24")), &tree(&before("192.0.2.0/25")), Kernel::V6_12);
    assert!(said.iter().any(|l| l.contains("1:10 -> 1:10 with actions")), "{said:?}");
    let stab = "tc qdisc add dev eth0 root stab overhead 10 linklayer atm handle 1: prio\n";
    let said = between(stab, "tc qdisc add dev eth0 root handle 1: prio\n", Kernel::V6_12);
    assert!(
        said.len() == 1 && said[0].starts_with("root: stab ") && said[0].ends_with(" -> none"),
        "{said:?}"
    );
    let said = between(&tree(""), &tree("ip link set dev eth0 txqueuelen 50"), Kernel::V6_12);
    assert_eq!((said.len(), said[0].as_str()), (3, "eth0: txqueuelen 1000 -> txqueuelen 50"), "{said:?}");
}

#[test]
fn ingress_and_the_device_behind_it() {
    let of = |rate: &str, cake: &str| {
        format!(
            "ip link add ifb0 type ifb\nip link set ifb0 up\ntc qdisc add dev eth0 handle ffff: ingress\n\
             tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match ip src 10.0.0.0/8 police rate {rate} burst 10k drop\n\
             tc filter add dev eth0 parent ffff: protocol all prio 2 matchall action mirred egress redirect dev ifb0\n\
             tc qdisc add dev ifb0 root cake bandwidth {cake}\n"
        )
    };
    let one = of("1mbit", "10mbit");
    check(&one, &of("2mbit", "10mbit"), &["filter at ingress prio 1: rate 1mbit -> rate 2mbit"]);
    check(&one, &of("1mbit", "20mbit"), &["ifb0: root: bandwidth 10mbit -> bandwidth 20mbit"]);
    let moved = one.replace("src 10.0.0.0/8", "src 10.0.0.0/9");
    let said = between(&one, &moved, Kernel::V6_12);
    assert!(said.iter().any(|l| l.starts_with("arriving, ip, src 10.128.0.0/9: ")), "{said:?}");
}

#[test]
fn rules_of_nft_by_what_they_leave() {
    let with = |rule: &str| {
        format!(
            "nft -f - <<'E'\ntable inet q {{\n  chain post {{\n    type filter hook postrouting priority mangle;\n    {rule}\n  }}\n}}\nE\n\
             tc qdisc add dev eth0 root handle 1: prio\ntc filter add dev eth0 parent 1: protocol all prio 1 handle 0x20 fw classid 1:1"
        )
    };
    let old = with("tcp dport 873 meta mark set 0x20");
    let said = between(&old, &with("tcp dport 873 meta mark set 0x10"), Kernel::V6_12);
    let rules = |said: &[String]| -> Vec<String> {
        said.iter().filter(|l| l.starts_with("nft: ")).cloned().collect()
    };
    let lines = rules(&said);
    assert!(
        lines.len() == 1 && lines[0].starts_with("nft: table inet q chain post: tcp dport 873"),
        "{said:?}"
    );
    assert!(lines[0].contains("0x00000020 -> tcp dport 873"), "{said:?}");
    // And the traffic that lands elsewhere: of both versions, to that port alone.
    let moved = |said: &[String]| {
        let traffic = || said.iter().filter(|l| l.contains(": 1:1 -> 1:"));
        assert!(traffic().all(|l| l.contains("tcp, dport 873")), "{said:?}");
        traffic().any(|l| l.starts_with("ip, ")) && traffic().any(|l| l.starts_with("ipv6, "))
    };
    assert!(moved(&said), "{said:?}");
    let said = between(&old, &with(""), Kernel::V6_12);
    let lines = rules(&said);
    assert!(lines.len() == 1 && lines[0].ends_with(" -> none") && moved(&said), "{said:?}");
    // A mark that no filter looks for changes no traffic.
    let said = between(&with("udp dport 53 mark set 7"), &with("udp dport 53 mark set 8"), Kernel::V6_12);
    assert_eq!((said.len(), rules(&said).len()), (1, 1), "{said:?}");
    // Another way to write it, and the commands one by one.
    check(&old, &with("tcp dport 873   meta mark set 32"), &[]);
    let single = "nft add table inet q\nnft 'add chain inet q post { type filter hook postrouting priority mangle; }'\n\
                  nft add rule inet q post tcp dport 873 mark set 32\n";
    let rest = old.split_once("\nE\n").unwrap().1;
    check(&old, &format!("{single}{rest}"), &[]);
}

#[test]
fn rules_that_no_set_tells() {
    let rule = |mss: u32| {
        format!(
            "{TREE}iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss {mss}\n"
        )
    };
    let said = between(&rule(1400), &rule(1452), Kernel::V6_12);
    assert_eq!(said.len(), 2, "{said:?}");
    let mark = |n: u32| {
        format!(
            "{TREE}iptables -t mangle -A POSTROUTING -j MARK --set-mark {n}\ntc filter add dev eth0 parent 1: protocol ip prio 1 handle 7 fw flowid 1:10\n"
        )
    };
    check(&mark(7), &mark(7), &[]);
    let said = between(&mark(7), &mark(8), Kernel::V6_12);
    assert!(said.iter().all(|l| l.contains("1:10 -> 1:30")) && !said.is_empty(), "{said:?}");
}

/// A set of a recording: its commands, and the packets that were sent through them.
fn recorded(text: &str) -> Vec<(Vec<&str>, Vec<Probe>)> {
    let mut sets: Vec<(Vec<&str>, Vec<Probe>)> = Vec::new();
    for line in text.lines() {
        if line == "set" {
            sets.push((Vec::new(), Vec::new()));
            continue;
        }
        let set = sets.last_mut().unwrap();
        match line.split_once(" = ") {
            None => set.0.push(line),
            Some((packet, _)) => {
                let (packet, priority) = packet.split_once(" prio ").unwrap_or((packet, "0"));
                let mut probe = Probe::parse(packet).unwrap();
                probe.priority = priority.parse().unwrap();
                set.1.push(probe);
            }
        }
    }
    sets
}

/// The commands with one thing changed: a filter or a rule that goes, two that change places, another class.
fn changed(commands: &[&str], round: usize) -> String {
    let filters = |l: &&str| l.starts_with("tc filter ") && !l.contains(" divisor ") && !l.contains(" link ");
    let places: Vec<usize> =
        (0..commands.len()).filter(|n| filters(&commands[*n]) || commands[*n].contains(" -A ")).collect();
    let mut out: Vec<String> = commands.iter().map(|l| (*l).to_owned()).collect();
    if places.is_empty() {
        return out.join("\n") + "\n";
    }
    let (at, other) = (places[round * 7 % places.len()], places[round * 5 % places.len()]);
    match round % 3 {
        0 => drop(out.remove(at)),
        1 => out.swap(at, other),
        _ => {
            let new = if out[at].contains("classid 1:10") { "classid 1:20" } else { "classid 1:10" };
            let old = out[at]
                .split_whitespace()
                .skip_while(|w| *w != "classid")
                .nth(1)
                .unwrap_or("1:10")
                .to_owned();
            out[at] = out[at].replace(&format!("classid {old}"), new).replace("--set-mark 1", "--set-mark 3");
        }
    }
    out.join("\n") + "\n"
}

#[test]
fn packets_go_elsewhere_where_diff_says_so_and_nowhere_else() {
    let (mut tried, mut moved, mut shown, mut wrong) = (0, 0, 0, String::new());
    for (round, (commands, packets)) in recorded(include_str!("kernel/recorded.txt")).iter().enumerate() {
        // Sets of many parts take long; the others are all looked at.
        if commands.len() > 22 {
            continue;
        }
        let (a, b) = (commands.join("\n") + "\n", changed(commands, round));
        let (Ok(a), Ok(b)) = (run(&a, Kernel::V6_12), run(&b, Kernel::V6_12)) else { continue };
        let said = explain::diff(&a, &b, "eth0").unwrap();
        let (before, after) = (Explainer::new(&a, "eth0").unwrap(), Explainer::new(&b, "eth0").unwrap());
        let places = |p: &Probe| (before.explain(p).place(), after.explain(p).place());
        tried += 1;
        // A packet that moves is one of those that are told of.
        let moves = packets.iter().find(|p| {
            let (x, y) = places(p);
            x != y
        });
        moved += usize::from(moves.is_some());
        if let (Some(packet), true) = (moves, said.is_empty()) {
            wrong += &format!("set {round}: nothing differs, and {} moves\n", packet.text());
        }
        // What a line says of its packet is so.
        for line in said.iter().filter(|l| l.contains(" -> ") && l.ends_with(')') && !l.contains("perhaps")) {
            let Some((head, example)) = line.rsplit_once("   (") else { continue };
            let Ok(probe) = Probe::parse(example.trim_end_matches(')')) else { continue };
            let Some((from, to)) = head.rsplit_once(": ").and_then(|h| h.1.split_once(" -> ")) else {
                continue;
            };
            if from.contains("with actions")
                || to.contains("with actions")
                || head.contains("priority")
                || head.contains("within ")
            {
                continue;
            }
            shown += 1;
            let (x, y) = places(&probe);
            if (x.as_str(), y.as_str()) != (from, to) {
                wrong += &format!("set {round}: {line}: explain {x} -> {y}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{} lines\n{wrong}", wrong.lines().count());
    assert!(
        tried >= 60 && moved >= 20 && shown >= 60,
        "{tried} pairs, {moved} with packets that move, {shown} lines"
    );
}

#[test]
fn traffic_classes_of_ipv6_are_where_they_stand() {
    let rule = |tos: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: prio\n\
             ip6tables -t mangle -A OUTPUT -m tos --tos {tos} -j CLASSIFY --set-class 1:1\n"
        )
    };
    let said = between(&rule("0x10"), &rule("0xb8"), Kernel::V6_12);
    let begins = |what: &str| said.iter().any(|l| l.starts_with(what));
    assert!(begins("ipv6, tos 0x10, made here") && begins("ipv6, tos 0xb8, made here"), "{said:?}");
    let facts = run(&rule("0x10"), Kernel::V6_12).unwrap();
    let parts = explain::partition(&facts, "eth0").unwrap();
    let probe =
        Probe { priority: 6, ..Probe::parse("tcp [2001:db8::1]:9 > [2001:db8::2]:80 tos 0x10").unwrap() };
    assert_eq!(parts.class(parts.of(&probe).unwrap()).map(|c| c.to_string()).as_deref(), Some("1:1"));
    // What is asked before a part is not said behind it.
    let text = parts.text();
    let at = |what: &str| text.lines().position(|l| l.contains(what)).unwrap_or_else(|| panic!("{text}"));
    assert!(at("tos 0x10, made here") < at("made here, priority 6-7"), "{text}");
}

#[test]
fn what_a_filter_sets_before_nothing_decides_is_seen_behind_it() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
                tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit\n\
                tc class add dev eth0 parent 1: classid 1:30 htb rate 1mbit\n\
                tc filter add dev eth0 parent 1: protocol ip prio 3 handle 0x1/0x1 fw classid 1:30\n\
                tc qdisc add dev eth0 clsact\n\
                tc filter add dev eth0 egress protocol all prio 2 basic match 'meta(priority eq 3)' action skbedit mark 1 continue\n\
                tc filter add dev eth0 egress protocol ip prio 6 handle 7 fw classid 1:20 action ok\n";
    let facts = run(text, Kernel::V6_12).unwrap();
    let parts = explain::partition(&facts, "eth0").unwrap();
    let place = |priority: u32| {
        let probe = Probe { priority, ..Probe::parse("udp 10.0.0.1:9 > 10.1.0.1:53").unwrap() };
        let by_packet = Explainer::new(&facts, "eth0").unwrap().explain(&probe).place();
        assert_eq!(parts.class(parts.of(&probe).unwrap()).unwrap().to_string(), by_packet);
        by_packet
    };
    assert_eq!((place(3), place(2)), ("1:30".to_owned(), "1:20".to_owned()));
    assert!(!parts.never.contains(&4), "{:?}", parts.never);
}
