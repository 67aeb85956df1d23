//! Names of flows: no two in a run have the same, for series and pages know a flow by its name.

use crate::experiment::Experiment;
use penstock_sim::{FlowResult, SeriesSet};
use std::collections::{BTreeMap, BTreeSet};

/// Gives flows of one name names of their own, in the results and in the series. Two programs `iperf` on `a` both call their flow `a iperf`:
/// the second's becomes that of its program, `a iperf 2`, or where that is taken its own with the next number that is free. Flows of the
/// experiment's own keep theirs.
pub(super) fn tell_apart(
    experiment: &Experiment,
    owners: &[Option<usize>],
    flows: &mut [FlowResult],
    set: &mut SeriesSet,
) {
    let mut taken = BTreeSet::new();
    let mut again = Vec::new();
    let (own, of_programs): (Vec<usize>, Vec<usize>) = (0..flows.len()).partition(|&i| owners[i].is_none());
    for i in own.into_iter().chain(of_programs) {
        if !taken.insert(flows[i].name.clone()) {
            again.push(i);
        }
    }
    if again.is_empty() {
        return;
    }
    // Where the search for a free number goes on: thousands may have one name.
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    let mut renamed = BTreeMap::new();
    for i in again {
        let of_program =
            owners[i].map(|app| &experiment.apps[app].name).filter(|name| !taken.contains(*name));
        let name = of_program.cloned().unwrap_or_else(|| {
            let number = numbers.entry(flows[i].name.clone()).or_insert(1);
            loop {
                *number += 1;
                let name = format!("{} {number}", flows[i].name);
                if !taken.contains(&name) {
                    return name;
                }
            }
        });
        taken.insert(name.clone());
        renamed.insert(i as u32, format!("flow {name}"));
        flows[i].name = name;
    }
    for series in &mut set.series {
        if let Some(object) = series.flow().and_then(|flow| renamed.get(&flow.0)) {
            series.object.clone_from(object);
        }
    }
}

#[cfg(test)]
mod tests {
    use penstock_measure::{Record, Series};

    fn run(text: &str) -> (Record, Series) {
        let experiment = crate::experiment::parse(text, "x.toml").unwrap_or_else(|d| panic!("{}", d[0]));
        let mut options = crate::run::Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} };
        let outcome = crate::run::run(&experiment, &mut options).unwrap_or_else(|d| panic!("{}", d[0]));
        (outcome.record, outcome.series)
    }

    /// Programs of one name on one machine, one of them with two connections: each flow has its own curve, and each program the sum of its
    /// own.
    #[test]
    fn flows_of_programs_of_one_name_are_told_apart() {
        let (record, series) = run(r#"
            duration = "3s"
            sample = "100ms"
            [host.a]
            eth0 = "10.0.0.1/24"
            [host.b]
            eth0 = "10.0.0.2/24"
            [[link]]
            ends = ["a:eth0", "b:eth0"]
            rate = "20mbit"
            [[app]]
            on = "b"
            run = "iperf -s -u"
            [[app]]
            on = "a"
            run = "iperf -u -c 10.0.0.2 -b 1m -t 2 -P 2"
            [[app]]
            on = "a"
            at = "10ms"
            run = "iperf -u -c 10.0.0.2 -b 2m -t 2"
            [[app]]
            on = "a"
            at = "20ms"
            name = "third"
            run = "iperf -u -c 10.0.0.2 -b 4m -t 2"
        "#);
        let named: Vec<_> = record.flows.iter().map(|f| (&*f.name, f.app.as_deref().unwrap())).collect();
        assert_eq!(
            named,
            [
                ("a iperf", "a iperf"),
                ("a iperf 2", "a iperf"),
                ("a iperf 3", "a iperf 2"),
                ("third", "third")
            ]
        );
        // Each curve has one value an instant, and they are those of its flow: 1, 1, 2 and 4 Mbit/s.
        let rate = |host: &str, object: &str| {
            let points = series.points(host, object, "goodput_bit_s");
            assert!(points.windows(2).all(|w| w[0].0 < w[1].0), "{object}");
            let middle: Vec<f64> = points.iter().filter(|p| (0.5..1.5).contains(&p.0)).map(|p| p.1).collect();
            (middle.iter().sum::<f64>() / middle.len() as f64 / 1e5).round() as u32
        };
        let flows = ["flow a iperf", "flow a iperf 2", "flow a iperf 3", "flow third"];
        assert_eq!(flows.map(|flow| rate("", flow)), [10, 10, 20, 40]);
        assert_eq!(["a iperf", "a iperf 2", "third"].map(|app| rate("a", app)), [20, 20, 40]);
    }
}
