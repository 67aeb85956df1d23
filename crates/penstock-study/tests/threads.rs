//! Experiments of the studies give the same records by any number of threads.

use penstock_lab::experiment::Threads;
use penstock_lab::run::{Options, Outcome, run};
use penstock_model::Span;
use penstock_study::Study;

/// A handful: in a checked build all would take long.
const EXPERIMENTS: [(&str, &str); 7] = [
    ("aqm-domains", "DT-DT-72"),
    ("aqm-domains", "DT-RED-gentle-300"),
    ("aqm-domains", "RED-DT-adaptive-72"),
    ("aqm-domains", "figure-2"),
    ("aqm-domains", "http-DT-RED"),
    ("aqm-domains", "http-DT-DT"),
    ("aqm-domains", "figure-2-bleached"),
];

#[test]
fn studies_are_the_same_by_any_number_of_threads() {
    let mut alone = Vec::new();
    for (study, name) in EXPERIMENTS {
        let experiment = Study::find(study).expect("there is such a study").experiment(name);
        let mut experiment = experiment.unwrap_or_else(|d| panic!("{}", d[0]));
        experiment.duration = experiment.duration.min(Span::from_secs(4));
        experiment.warmup = experiment.warmup.min(Span::from_secs(1));
        let on = |threads: Threads| -> Outcome {
            let experiment = experiment.clone().on_threads(threads);
            let outcome =
                run(&experiment, &mut Options { seed: Some(3), progress: &mut |_| {}, warn: &mut |_| {} });
            outcome.unwrap_or_else(|d| panic!("{name}: {}", d[0]))
        };
        let two = on(Threads::Always(2));
        if let Some(why) = two.one_thread {
            alone.push(format!("{name}: {why}"));
            continue;
        }
        let one = on(Threads::One);
        for (threads, several) in [(2, two), (3, on(Threads::Always(3))), (8, on(Threads::Always(8)))] {
            assert!(
                one.record.to_json() == several.record.to_json(),
                "{name}, {threads} threads: the record differs"
            );
            assert!(one.series == several.series, "{name}, {threads} threads: the series differ");
            assert_eq!((&one.outputs, &one.tc), (&several.outputs, &several.tc), "{name}, {threads} threads");
        }
    }
    assert_eq!(alone, [""; 0]);
}
