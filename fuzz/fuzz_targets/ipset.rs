//! Any words as ipset commands: no panic, a refused command changes no set, and what is saved can be restored.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_host::Host;
use penstock_model::{Kernel, Time};

fn save(host: &mut Host) -> String {
    host.exec("ipset save", Time::ZERO).stdout
}

fuzz_target!(|text: &str| {
    let mut host = Host::new("fuzz", Kernel::V6_12, 1);
    host.add_device("eth0");
    // One command a line: what the shell would split is several, each applied or refused for itself.
    for line in text.lines().take(40).filter(|l| !l.contains([';', '&', '|', '<', '>'])) {
        let before = save(&mut host);
        let out = host.exec(&format!("ipset {line}"), Time::ZERO);
        if out.status != 0 && !line.contains('-') {
            assert_eq!(before, save(&mut host), "half applied: {line}");
        }
    }
    let saved = save(&mut host);
    let mut other = Host::new("other", Kernel::V6_12, 1);
    for line in saved.lines() {
        let out = other.exec(&format!("ipset {line}"), Time::ZERO);
        assert_eq!(out.status, 0, "{line}: {}", out.stderr);
    }
});
