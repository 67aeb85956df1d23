//! Any text as an experiment file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = penstock_lab::experiment::parse_with(text, "fuzz.toml", &|_| Err("no files here".into()));
});
