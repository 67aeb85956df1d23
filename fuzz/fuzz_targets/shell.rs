//! Any text as a shell script: no panic, an end in bounded time, and the same each time.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_host::Host;
use penstock_model::{Kernel, Time};
use penstock_shell::{At, Kept, Limits, Script, run_within, wants_more};

fn once(text: &str) -> (Result<i32, String>, Kept) {
    let mut host = Host::new("fuzz", Kernel::V6_12, 1);
    host.add_device("eth0");
    let mut kept = Kept::default();
    let script = Script { text: text.to_owned(), name: "fuzz.sh".to_owned(), ..Script::default() };
    let limits = Limits {
        steps: 300,
        commands: 300,
        work: 200_000,
        variables: 1 << 20,
        files: 1 << 20,
        pipes: 1 << 20,
        ..Limits::default()
    };
    (run_within(&limits, &script, &mut At { host: &mut host, now: Time::ZERO }, &mut kept), kept)
}

fuzz_target!(|text: &str| {
    // `time` and `times` count what this computer needs. In text that a script makes itself (`eval`) two variables are the
    // interpreter's own.
    if text.len() > 2000 || ["time", "SRANDOM", "SECONDS"].iter().any(|word| text.contains(word)) {
        return;
    }
    wants_more(text);
    assert_eq!(once(text), once(text));
});
