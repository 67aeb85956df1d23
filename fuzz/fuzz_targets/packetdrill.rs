//! Any text as a script of packetdrill's: read or refused; one without commands of the shell is run, twice to the same end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_packetdrill::{Action, Options, parse, run};

fuzz_target!(|text: &str| {
    let Ok(script) = parse(text, &[]) else { return };
    let commands = script.events.iter().any(|e| matches!(e.action, Action::Command(_)));
    if commands || script.init.is_some() || script.cleanup.is_some() || script.events.len() > 50 {
        return;
    }
    let once = || run(&script, &Options::default());
    assert_eq!(once(), once());
});
