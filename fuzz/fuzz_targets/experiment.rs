//! Any text as an experiment file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = penstock_lab::experiment::parse(text, "fuzz.toml");
});
