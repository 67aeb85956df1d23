//! Captures, whole and damaged: read or refused, the same each time, and never more held than there is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_replay::capture::read;
use penstock_wild::{Unstructured, capture};

fuzz_target!(|data: &[u8]| {
    let made = capture(&mut Unstructured::new(data)).unwrap_or_default();
    // What the generator makes of the bytes, and the bytes themselves.
    for bytes in [&made[..], data] {
        let once = || read(bytes, "fuzz.pcap");
        if let Ok(traffic) = once()
            && penstock_replay::capture::is_capture(bytes)
        {
            let held: usize = traffic.moments.iter().map(|m| m.bytes.len()).sum();
            assert!(held <= 2 * bytes.len());
        }
    }
});
