//! Any tc commands: what they have made is said in commands that are carried out, and that make the same where nothing is noted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_host::{Host, NoFiles};
use penstock_model::{Kernel, Time};

fn machine() -> Host {
    let mut host = Host::new("fuzz", Kernel::V6_12, 1);
    host.add_device("d0");
    host.add_device("d1");
    host
}

fuzz_target!(|text: &str| {
    let mut host = machine();
    for line in text.lines().take(40).filter(|l| !l.contains([';', '&', '|', '>', '<'])) {
        host.exec(&format!("tc {line}"), Time::ZERO);
    }
    let rebuilt = host.rebuild_tc(None, Time::ZERO);
    let mut again = machine();
    for words in &rebuilt.commands {
        let output = again.command(words, &mut NoFiles, Time::ZERO);
        assert_eq!(output.status, 0, "{words:?}: {}", output.stderr);
    }
    if rebuilt.notes.is_empty() {
        assert_eq!(host.dump(Time::ZERO), again.dump(Time::ZERO), "{:?}", rebuilt.commands);
    }
});
