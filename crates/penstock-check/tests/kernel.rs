//! Where a real Linux put packets is where `explain` says they go, and the parts of all packets say the same.
//!
//! `kernel/recorded.txt`: 10,000 packets over 200 sets of filters and rules, recorded on Linux 6.12.117 with iproute2 6.1 by
//! `kernel/record.py`, which says what is in it. `kernel/found.txt`: those sets of a second recording that were answered otherwise once, or in
//! tens of thousands of parts. Another recording of the same form: `PENSTOCK_RECORDED=FILE`; with `PENSTOCK_PACKETS=1` its packets alone are looked at.
//!
//! `kernel/more.txt`: packets of IPv6, with tags and behind translation, through chains, bytecode, deeper tables and more kinds, by
//! `kernel/record_more.py`. What bytecode asks is no set of bits: of these the packets alone are looked at.

use penstock_check::explain::{Explainer, Probe, Reached, partition};
use penstock_check::{Settings, facts};
use penstock_shell::Script;

struct Set {
    script: String,
    packets: Vec<(Probe, String, String)>,
}

fn sets(text: &str) -> Vec<Set> {
    let mut sets: Vec<Set> = Vec::new();
    for line in text.lines() {
        if line == "set" {
            sets.push(Set { script: String::new(), packets: Vec::new() });
            continue;
        }
        let set = sets.last_mut().unwrap();
        match line.split_once(" = ") {
            None => set.script += &format!("{line}\n"),
            Some((packet, class)) => {
                let (packet, priority) = packet.split_once(" prio ").unwrap_or((packet, "0"));
                let mut probe = Probe::parse(packet).unwrap();
                probe.priority = priority.parse().unwrap();
                set.packets.push((probe, line.to_owned(), class.to_owned()));
            }
        }
    }
    sets
}

/// What is compared with a recording.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// Each packet by itself.
    Packets,
    /// Each packet, and the part of all packets that it is in.
    Parts,
}

/// Looks at every packet of a recording; how many there were.
fn agree(text: &str, by: By) -> usize {
    let (mut tried, mut wrong) = (0, String::new());
    for (round, set) in sets(text).iter().enumerate() {
        let facts = facts(&Script { text: set.script.clone(), ..Script::default() }, &Settings::default());
        let refused: Vec<String> = facts.steps.iter().filter(|s| !s.ok()).map(|s| s.text()).collect();
        assert!(refused.is_empty(), "set {round}: {refused:?}");
        let explainer = Explainer::new(&facts, "eth0").unwrap();
        let parts = (by == By::Parts).then(|| partition(&facts, "eth0").unwrap());
        let cut = parts.as_ref().is_some_and(|p| p.cut || p.parts.len() >= 5000);
        assert!(!cut, "set {round}: too many parts");
        for (probe, line, class) in &set.packets {
            tried += 1;
            let said = explainer.explain(probe);
            let went = said.sorted.class.filter(|_| !said.dropped).map_or("-".to_owned(), |c| c.to_string());
            if went != *class {
                wrong += &format!("set {round}: {line}: explain {went}\n");
            }
            let Some(parts) = &parts else { continue };
            let part = parts.of(probe).unwrap();
            let of = parts.class(part).map_or("-".to_owned(), |c| c.to_string());
            if of != *class || parts.parts[part].left == Reached::Never {
                wrong += &format!("set {round}: {line}: part {} {of}\n", part + 1);
            }
        }
    }
    let lines: Vec<&str> = wrong.lines().collect();
    let shown =
        if std::env::var_os("PENSTOCK_RECORDED").is_some() { lines.len() } else { lines.len().min(60) };
    assert!(lines.is_empty(), "{} of {tried}:\n{}", lines.len(), lines[..shown].join("\n"));
    tried
}

#[test]
fn explain_and_the_parts_say_where_linux_put_ten_thousand_packets() {
    let own = || include_str!("kernel/recorded.txt").to_owned();
    let text =
        std::env::var_os("PENSTOCK_RECORDED").map_or_else(own, |f| std::fs::read_to_string(f).unwrap());
    let by = if std::env::var_os("PENSTOCK_PACKETS").is_some() { By::Packets } else { By::Parts };
    assert_eq!(agree(&text, by), 10_000);
}

#[test]
fn sets_that_were_answered_otherwise_once() {
    assert_eq!(agree(include_str!("kernel/found.txt"), By::Parts), 200);
}

#[test]
fn explain_says_where_linux_put_what_is_seldom() {
    assert_eq!(agree(include_str!("kernel/more.txt"), By::Packets), 3314);
}
