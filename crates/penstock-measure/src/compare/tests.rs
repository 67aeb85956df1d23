//! Comparisons of small runs.

use super::page::called;
use super::*;
use crate::record::{self, App, FORMAT, Rig};

fn run(throughput: f64) -> Record {
    Record {
        format: FORMAT,
        penstock: String::new(),
        title: "t".into(),
        about: None,
        ground: "sim".into(),
        seed: 1,
        duration_s: 2.0,
        rig: Rig::default(),
        experiment: String::new(),
        apps: vec![App { name: "a iperf".into(), throughput_bit_s: Some(throughput), ..App::default() }],
        flows: Vec::new(),
        groups: Vec::new(),
        together: Vec::new(),
        devices: Vec::new(),
        per_hop: Vec::new(),
        drops: Vec::new(),
        expects: Vec::new(),
        setup_failures: Vec::new(),
        scores: Default::default(),
        captures: Vec::new(),
        findings: Vec::new(),
        warnings: Vec::new(),
    }
}

fn verdict(before: &[f64], after: &[f64]) -> &'static str {
    let mut series = Series::new();
    series.add("a", "a iperf", "goodput_bit_s", 1.0, 5.0);
    let (a, b): (Vec<Record>, Vec<Record>) =
        (before.iter().map(|x| run(*x)).collect(), after.iter().map(|x| run(*x)).collect());
    let before = Side { name: "one".into(), runs: a.iter().map(|r| (r, &series)).collect() };
    let after = Side { name: "two".into(), runs: b.iter().map(|r| (r, &series)).collect() };
    let rows = compare(&before, &after);
    assert_eq!(rows.len(), 1);
    let page = html(&before, &after, &rows);
    assert!(page.contains("one against two") && page.matches("<svg class=\"chart\"").count() == 1, "{page}");
    assert!(page.contains("id=\"charts-bits\"") && page.contains("a iperf: goodput"));
    assert!(text("one", "two", &rows, true).contains("a iperf"));
    rows[0].verdict.name()
}

#[test]
fn a_picture_is_called_what_it_is_about() {
    let called: Vec<String> =
        [("", "flow xp"), ("U5", "U5 ping"), ("U4", "eth0 sfq 30:"), ("U4", "eth0 class 1:30")]
            .map(|(host, object)| called(host, object))
            .into();
    assert_eq!(called, ["flow xp", "U5 ping", "U4 eth0 sfq 30", "U4 eth0 class 1:30"]);
}

#[test]
fn a_difference_is_judged_by_the_spread() {
    assert_eq!(verdict(&[5.0], &[5.0]), "equal");
    assert_eq!(verdict(&[5.0], &[6.0]), "unknown");
    assert_eq!(verdict(&[5.0, 7.0], &[6.5, 9.0]), "within");
    assert_eq!(verdict(&[5.0, 5.5], &[6.0, 9.0]), "differs");
}

#[test]
fn the_interval_of_a_median_is_made_of_order_statistics() {
    let ten: Vec<f64> = (1..=10).map(f64::from).collect();
    let s = Spread::of(&ten).unwrap();
    // Binomial(10, 1/2): P(< 2) = 11/1024.
    assert_eq!((s.low, s.median, s.high), (2.0, 5.5, 9.0));
    assert!((s.confidence - (1.0 - 22.0 / 1024.0)).abs() < 1e-12);
    let five = Spread::of(&ten[..5]).unwrap();
    assert_eq!((five.low, five.high), (1.0, 5.0));
    assert!((five.confidence - 0.9375).abs() < 1e-12);
    assert_eq!(Spread::of(&[3.0]).map(|s| (s.low, s.high)), Some((3.0, 3.0)));
    assert_eq!(Spread::of(&[]), None);
}

#[test]
fn groups_stand_in_order_and_the_greatest_effects_first() {
    let (mut a, mut b) = (run(5e6), run(4e6));
    let flow = |name: &str, goodput, lost| record::Flow {
        name: name.into(),
        goodput_bit_s: goodput,
        lost_packets: lost,
        ..record::Flow::default()
    };
    a.flows = vec![flow("same", 1e6, 0), flow("slower", 1e6, 0), flow("lossy", 1e6, 0)];
    b.flows = vec![flow("same", 1e6, 0), flow("slower", 1e5, 0), flow("lossy", 0.999e6, 7)];
    let series = Series::new();
    let side = |name: &str, r| Side { name: name.into(), runs: vec![(r, &series)] };
    let (before, after) = (side("a", &a), side("b", &b));
    let rows = compare(&before, &after);
    let order: Vec<(Kind, &str, &str)> =
        rows.iter().map(|r| (r.group, r.subject.as_str(), r.figure)).filter(|r| r.2 != "marked").collect();
    assert_eq!(
        order,
        [
            (Kind::Program, "app a iperf", "throughput"),
            (Kind::Flow, "flow lossy", "lost"),
            (Kind::Flow, "flow slower", "goodput"),
            (Kind::Flow, "flow lossy", "goodput"),
            (Kind::Flow, "flow same", "goodput"),
            (Kind::Flow, "flow same", "lost"),
            (Kind::Flow, "flow slower", "lost"),
        ]
    );
    // Ten times less is nine tenths of the greater; from nothing to something is all of it.
    assert!((rows[2].effect - 0.9).abs() < 1e-9 && rows[1].effect == 1.0, "{rows:?}");
    // What is equal, or differs by a thousandth, is counted and not printed.
    let said = text("a", "b", &rows, false);
    assert!(!said.contains("flow same") && said.contains("1 less than 1 % apart (--all)"), "{said}");
    assert!(said.contains("flow lossy   lost") && said.contains("+7"), "{said}");
    let note = "note: a single run has no spread, so nobody can say which differences are chance: run both with --repeat 4 or more and compare \
                the two folders (penstock run --repeat 4 FILE --out DIR); then the intervals hold with 95 %\n";
    assert!(said.ends_with(note), "{said}");
    assert!(text("a", "b", &rows, true).contains("flow same"));
    let page = html(&before, &after, &rows);
    assert!(
        page.contains("<h3>programs</h3>") && page.contains("<details class=\"noise\"><summary>"),
        "{page}"
    );
    assert!(page.contains("--repeat 4"));
}

#[test]
fn advice_ends_where_the_intervals_are_good() {
    assert_eq!(advice(4, 4), None);
    assert_eq!(advice(20, 30), None);
    let few = advice(2, 3).unwrap();
    assert!(
        few.starts_with("of 2 and 3 runs the intervals hold with 80 % only: run both with --repeat 4"),
        "{few}"
    );
    assert!(advice(1, 9).unwrap().starts_with("a single run has no spread"));
}
