//! Any text as a router's configuration.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = penstock_lang::cisco::parse(text);
});
