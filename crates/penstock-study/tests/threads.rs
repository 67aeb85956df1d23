//! Experiments of the studies give the same records by any number of threads.

use penstock_lab::experiment::Threads;
use penstock_lab::run::{Options, Outcome, run};
use penstock_model::Span;
use penstock_study::LIST;

#[test]
fn studies_are_the_same_by_any_number_of_threads() {
    let mut divided = Vec::new();
    for study in LIST {
        let names = study.experiments();
        // A handful of each: in a checked build all would take long.
        for &name in names.iter().step_by(names.len().div_ceil(5)) {
            let mut experiment = study.experiment(name).unwrap_or_else(|d| panic!("{}", d[0]));
            experiment.duration = experiment.duration.min(Span::from_secs(3));
            experiment.warmup = experiment.warmup.min(Span::from_secs(1));
            let on = |threads: Threads| -> Outcome {
                let experiment = experiment.clone().on_threads(threads);
                let outcome = run(&experiment, &mut Options { seed: Some(3), progress: &mut |_| {} });
                outcome.unwrap_or_else(|d| panic!("{name}: {}", d[0]))
            };
            let several = on(Threads::Always(2));
            if several.one_thread.is_some() {
                continue;
            }
            let one = on(Threads::One);
            for (threads, several) in [(2, several), (3, on(Threads::Always(3))), (8, on(Threads::Always(8)))]
            {
                assert!(
                    one.record.to_json() == several.record.to_json(),
                    "{name}, {threads} threads: the record"
                );
                assert!(one.series == several.series, "{name}, {threads} threads: the series");
                assert_eq!(
                    (&one.outputs, &one.tc),
                    (&several.outputs, &several.tc),
                    "{name}, {threads} threads"
                );
            }
            divided.push(name);
        }
    }
    assert!(divided.len() >= 4, "{divided:?}");
}
