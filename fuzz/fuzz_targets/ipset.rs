//! Any words as ipset commands: no panic, a refused command changes no set, and what is saved can be restored.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_host::Host;
use penstock_model::{Kernel, Time};

/// Where sets have become this long, bytes as saved, no more is asked of them: a range fills one with 65536 elements, and each line saves all.
const LONG: usize = 200_000;

fn save(host: &mut Host) -> String {
    host.exec("ipset save", Time::ZERO).stdout
}

/// Whether the set that a saved `add` names has more elements than its `maxelem`.
fn above_maxelem(saved: &str, line: &str) -> bool {
    let name = line.split(' ').nth(1);
    let lines = |word| saved.lines().filter(move |l| l.starts_with(word) && l.split(' ').nth(1) == name);
    let most = lines("create ").find_map(|l| l.split_once(" maxelem ")?.1.split(' ').next()?.parse().ok());
    most.is_some_and(|most: usize| lines("add ").count() > most)
}

fuzz_target!(|text: &str| {
    let mut host = Host::new("fuzz", Kernel::V6_12, 1);
    host.add_device("eth0");
    // One command a line: what the shell would split is several, each applied or refused for itself.
    for line in text.lines().take(40).filter(|l| !l.contains([';', '&', '|', '<', '>'])) {
        let before = save(&mut host);
        if before.len() > LONG {
            break;
        }
        let out = host.exec(&format!("ipset {line}"), Time::ZERO);
        if out.status != 0 && !line.contains('-') {
            assert_eq!(before, save(&mut host), "half applied: {line}");
        }
    }
    let saved = save(&mut host);
    let mut other = Host::new("other", Kernel::V6_12, 1);
    for line in saved.lines() {
        let out = other.exec(&format!("ipset {line}"), Time::ZERO);
        // A region of a hash takes its part of `maxelem` though the others have more than theirs (`mtype_add`): a set can have more
        // elements than `maxelem`, and Linux refuses those above when they are restored in the order of its buckets.
        let full = out.stderr.contains("Hash is full") && above_maxelem(&saved, line);
        assert!(out.status == 0 || full, "{line}: {}", out.stderr);
    }
});
