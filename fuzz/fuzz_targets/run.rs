//! Whole experiments, made from the fuzzer's bytes: they run, end, and give the same bytes again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_lab::experiment::parse_with;
use penstock_lab::run::{Options, run};
use penstock_wild::{Unstructured, experiment};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = experiment(&mut Unstructured::new(data)) else { return };
    let Ok(mut parsed) = parse_with(&text, "fuzz.toml", &|_| Err("no files here".into())) else { return };
    // Coverage comes from what happens, not from how long.
    parsed.duration = parsed.duration.min(penstock_model::Span::from_ms(300));
    parsed.warmup = parsed.warmup.min(penstock_model::Span::from_ms(100));
    let once = || {
        let outcome = run(&parsed, &mut Options { seed: None, progress: &mut |_| {} });
        outcome.map(|o| (o.record.to_json(), o.series, o.outputs, o.tc))
    };
    match (once(), once()) {
        (Ok(first), Ok(again)) => assert!(first == again, "run again it gives something else:\n{text}"),
        (Err(first), Err(again)) => {
            assert!(first == again, "run again it is refused otherwise:\n{text}");
            let wrong = first.iter().find(|d| format!("{d:?}").to_lowercase().contains("fault of penstock"));
            assert!(wrong.is_none(), "{wrong:?}\n{text}");
        }
        _ => panic!("run again it is refused, or not:\n{text}"),
    }
});
