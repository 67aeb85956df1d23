//! Any JSON as a replay specification, with few packets.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(mut spec) = serde_json::from_str::<serde_json::Value>(text) else { return };
    // Bound the work, not the form: at most a few packets, drained for a moment.
    if let Some(packets) = spec.get_mut("packets").and_then(|p| p.as_array_mut()) {
        packets.truncate(8);
        for packet in packets {
            if packet.get("repeat").and_then(serde_json::Value::as_u64).is_some_and(|n| n > 16) {
                packet["repeat"] = 16.into();
            }
        }
    }
    let _ = penstock_replay::run(&spec);
});
