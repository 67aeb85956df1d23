//! Whole experiments, made from the fuzzer's bytes: they run, end, give the same bytes again, and the replay engine does with what came
//! to their devices what the simulator did.
#![no_main]

use libfuzzer_sys::fuzz_target;
use penstock_lab::beside::run_beside;
use penstock_lab::experiment::parse_with;
use penstock_lab::run::{Options, Outcome, run};
use penstock_wild::{Unstructured, experiment};

/// All that a run gives. cbq's link shows how long it was over its limit at the show before: of the run with taps that is another show.
fn told(o: Outcome) -> impl PartialEq {
    let mut tc = o.tc;
    tc.retain(|(_, _, text)| !text.contains("qdisc cbq "));
    (o.record.to_json(), o.series, o.outputs, tc)
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = experiment(&mut Unstructured::new(data)) else { return };
    let Ok(mut parsed) = parse_with(&text, "fuzz.toml", &|_| Err("no files here".into())) else { return };
    // Coverage comes from what happens, not from how long.
    parsed.duration = parsed.duration.min(penstock_model::Span::from_ms(300));
    parsed.warmup = parsed.warmup.min(penstock_model::Span::from_ms(100));
    // The second run is the one with taps: a run more would tell nothing more.
    match (
        run(&parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} }),
        run_beside(&parsed),
    ) {
        (Ok(first), Ok((again, beside))) => {
            assert!(told(first) == told(again), "run again it gives something else:\n{text}");
            let differs = beside.differences;
            assert!(differs.is_empty(), "the replay differs: {}\n{text}", differs.join("; "));
        }
        (Err(first), Err(again)) => {
            assert!(first == again, "run again it is refused otherwise:\n{text}");
            let wrong = first.iter().find(|d| format!("{d:?}").to_lowercase().contains("fault of penstock"));
            assert!(wrong.is_none(), "{wrong:?}\n{text}");
        }
        _ => panic!("run again it is refused, or not:\n{text}"),
    }
});
