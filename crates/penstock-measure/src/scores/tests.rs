use super::*;
use crate::record::{App, FORMAT, Rig};

fn record() -> Record {
    Record {
        format: FORMAT,
        penstock: String::new(),
        title: "t".into(),
        about: None,
        ground: "sim".into(),
        seed: 1,
        duration_s: 20.0,
        rig: Rig::default(),
        experiment: String::new(),
        apps: Vec::new(),
        flows: Vec::new(),
        groups: Vec::new(),
        together: Vec::new(),
        devices: Vec::new(),
        per_hop: Vec::new(),
        drops: Vec::new(),
        expects: Vec::new(),
        setup_failures: Vec::new(),
        captures: Vec::new(),
        scores: Scores::default(),
        findings: Vec::new(),
        warnings: Vec::new(),
    }
}

/// A probe of 20 ms and 120 ms under load, which is there from 5 s to 15 s.
fn run() -> (Record, Series) {
    let mut record = record();
    record.apps.push(App {
        name: "ping".into(),
        host: "pc".into(),
        sent_packets: Some(100),
        lost_packets: Some(0),
        ..App::default()
    });
    record.flows.push(Flow {
        name: "backup".into(),
        from: "pc".into(),
        to: "srv".into(),
        proto: "tcp".into(),
        payload_bytes: Some(10_000_000),
        ..Flow::default()
    });
    let mut series = Series::new();
    for i in 1..=200 {
        let t = f64::from(i) * 0.1;
        let on = t > 5.0 && t <= 15.0;
        series.add("", "flow backup", "goodput_bit_s", t, if on { 8e6 } else { 0.0 });
        if on {
            series.add("", "flow backup", "srtt_ms", t, 200.0);
        }
        series.add("pc", "ping", "rtt_ms", t, if on && t > 5.2 { 120.0 } else { 20.0 });
    }
    (record, series)
}

#[test]
fn grades_are_those_of_dslreports() {
    let all = [0.0, 4.9, 5.0, 29.9, 30.0, 59.0, 60.0, 199.0, 200.0, 399.0, 400.0, 9e9].map(grade);
    assert_eq!(all, ["A+", "A+", "A", "A", "B", "B", "C", "C", "D", "D", "F", "F"]);
}

#[test]
fn games_and_conferences_have_their_thresholds() {
    assert_eq!(
        [100.0, 100.1, 500.0, 1000.0, 1001.0].map(game),
        ["first person", "third person", "third person", "strategy", "none"]
    );
    let all = [(150.0, 0.01), (151.0, 0.0), (400.0, 0.0), (401.0, 0.0), (10.0, 0.011)]
        .map(|(d, l)| conference(d, l));
    assert_eq!(all, ["good", "acceptable", "acceptable", "poor", "poor"]);
}

/// draft-ietf-ippm-responsiveness-09, 5.3.1.1, by hand: foreign probes of 50 ms each give 1200, own ones of 150 ms 400.
#[test]
fn round_trips_per_minute_are_the_drafts() {
    let same = |x: f64| vec![x; 40];
    // The mean of 1200 and 400, not what the mean of 50 and 150 ms would give (600).
    assert_eq!(rpm(&same(50.0), &same(150.0)).map(f64::round), Some(800.0));
    // The scale of the draft's section 1.2: 200, 60 and 10 ms are 300, 1000 and 6000 round trips per minute.
    for (ms, wanted) in [(200.0, 300.0), (60.0, 1000.0), (10.0, 6000.0)] {
        assert_eq!(rpm(&same(ms), &same(ms)).map(f64::round), Some(wanted));
    }
    assert_eq!(rpm(&same(60.0), &[]).map(f64::round), Some(1000.0));
    assert_eq!(rpm(&[], &[1.0]), None);
    // What is above the 95th percentile does not count.
    let mut tailed = same(50.0);
    tailed.push(10_000.0);
    assert_eq!(trimmed_mean(&tailed), Some(50.0));
    assert_eq!(trimmed_mean(&[7.0]), Some(7.0));
}

#[test]
fn a_probe_is_scored_by_what_it_saw_with_and_without_load() {
    let (record, series) = run();
    let scores = of(&record, &series);
    let one = &scores.latency[0];
    assert_eq!((one.probe.as_str(), one.unloaded_ms, one.loaded_ms.p50), ("ping", 20.0, 120.0));
    assert!((one.increase_ms - 98.0).abs() < 2.0 && one.grade == "C", "{one:?}");
    assert!((one.rpm - (60_000.0 / 120.0 + 60_000.0 / 200.0) / 2.0).abs() < 8.0, "{}", one.rpm);
    assert_eq!((one.game.as_str(), one.conference.as_str()), ("third person", "good"));
    assert!(scores.calls.is_empty());
}

#[test]
fn without_load_or_without_probes_there_is_no_score() {
    let (mut record, series) = run();
    record.flows[0].payload_bytes = Some(100);
    assert!(of(&record, &series).is_empty());
    let (mut record, series) = run();
    record.apps.clear();
    assert!(of(&record, &series).is_empty());
}

/// Where load is all the time, the least round trip is the one without.
#[test]
fn a_probe_that_never_saw_the_line_idle_has_its_least_as_that() {
    let (record, mut series) = run();
    for i in 1..=200 {
        series.add("pc", "other", "rtt_ms", 5.0 + f64::from(i) * 0.05, if i == 1 { 15.0 } else { 100.0 });
    }
    let points = series.points("pc", "other", "rtt_ms").to_vec();
    let bulk: Vec<&Flow> = record.flows.iter().collect();
    let load = Load::of(&bulk, &series);
    assert!(load.any(5.0, 5.05) && load.any(14.9, 30.0) && !load.any(0.0, 5.0) && !load.any(15.01, 20.0));
    let got = latency("other", "pc", &points[..190], 0.0, &load, &bulk, &series).unwrap();
    assert_eq!((got.unloaded_ms, got.loaded_ms.min), (15.0, 15.0));
}

#[test]
fn a_call_is_worth_what_its_delay_and_loss_leave() {
    let call_of = |delay: f64, lost: u64| {
        let flow = Flow {
            name: "call".into(),
            proto: "udp".into(),
            start_s: Some(0.0),
            sent_packets: 1000,
            lost_packets: lost,
            received_packets: 1000 - lost,
            goodput_bit_s: 64e3,
            owd_ms: Distribution::of(&mut vec![delay; 100]),
            ..Flow::default()
        };
        call(&flow, 20.0)
    };
    let good = call_of(10.0, 0).unwrap();
    assert_eq!((good.quality.as_str(), good.delay_ms, good.loss), ("best", 30.0, 0.0));
    assert!(good.mos > 4.3 && good.r > 92.0, "{good:?}");
    let lossy = call_of(10.0, 20).unwrap();
    assert!((good.r - lossy.r - 95.0 * 2.0 / 27.1).abs() < 0.01, "{lossy:?}");
    let late = call_of(580.0, 0).unwrap();
    assert_eq!(late.quality, "not recommended");
    // What is no call has no score.
    let bulk = Flow {
        proto: "udp".into(),
        start_s: Some(0.0),
        sent_packets: 1000,
        goodput_bit_s: 5e6,
        ..Flow::default()
    };
    assert!(call(&bulk, 20.0).is_none());
}

/// A receiver that plays later loses less: the better of both is taken.
#[test]
fn the_best_time_to_play_is_taken() {
    let mut flow = Flow {
        name: "call".into(),
        proto: "udp".into(),
        start_s: Some(0.0),
        sent_packets: 1000,
        goodput_bit_s: 64e3,
        owd_ms: Some(Distribution { min: 10.0, mean: 15.0, p50: 12.0, p95: 20.0, p99: 30.0, max: 900.0 }),
        ..Flow::default()
    };
    let got = call(&flow, 20.0).unwrap();
    assert_eq!(got.delay_ms, 50.0);
    assert!((got.loss - 0.01).abs() < 1e-12);
    // With more quantiles known the choice is finer.
    flow.owd_quantiles_ms =
        crate::quantile::SHARES.iter().map(|q| if *q < 1.0 { 10.0 + 10.0 * q } else { 900.0 }).collect();
    assert!(call(&flow, 20.0).unwrap().delay_ms < 50.0);
}
