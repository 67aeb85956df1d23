//! Any text as a rate, a size, a time, a handle.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_model::{Handle, Rate, Size, Span};

fuzz_target!(|text: &str| {
    if let Ok(rate) = Rate::parse(text) {
        let _ = rate.to_string();
    }
    if let Ok(size) = Size::parse(text) {
        let _ = size.to_string();
    }
    if let Ok(span) = Span::parse(text) {
        let _ = span.to_string();
    }
    if let Ok(handle) = Handle::parse_classid(text) {
        assert_eq!(Handle::parse_classid(&handle.to_string()), Ok(handle));
    }
    let _ = Handle::parse_qdisc(text);
});
