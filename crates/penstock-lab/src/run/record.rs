//! The record, put together for every ground, and what is counted of several flows together.

use super::{Ground, judge};
use crate::experiment::{Experiment, Flow, Subject};
use penstock_measure::phb::{self, Carried};
use penstock_measure::record::{self, FORMAT, Group, PerHop, Record, Together};
use penstock_measure::scores::{self, Scores};
use penstock_measure::{Distribution, Series, fairness};
use penstock_model::Rate;
use penstock_model::traffic::Load;
use std::collections::BTreeMap;

/// What a ground has measured.
pub(super) struct Measured {
    pub(super) rig: record::Rig,
    pub(super) apps: Vec<record::App>,
    pub(super) flows: Vec<record::Flow>,
    pub(super) groups: Vec<Group>,
    pub(super) together: Vec<Together>,
    pub(super) devices: Vec<record::Device>,
    pub(super) per_hop: Vec<PerHop>,
    pub(super) drops: Vec<record::Drop>,
    pub(super) setup_failures: Vec<record::SetupFailure>,
}

/// The record of a run, scored and judged.
pub(super) fn assemble(
    experiment: &Experiment,
    ground: Ground,
    seed: u64,
    measured: Measured,
    series: &Series,
) -> Record {
    let mut record = Record {
        format: FORMAT,
        penstock: env!("CARGO_PKG_VERSION").to_owned(),
        title: experiment.title.clone(),
        about: experiment.about.clone(),
        ground: ground.name().to_owned(),
        seed,
        duration_s: experiment.duration.as_secs_f64(),
        rig: measured.rig,
        experiment: experiment.sources[0].text.clone(),
        apps: measured.apps,
        flows: measured.flows,
        groups: measured.groups,
        together: measured.together,
        devices: measured.devices,
        per_hop: measured.per_hop,
        drops: measured.drops,
        expects: Vec::new(),
        setup_failures: measured.setup_failures,
        captures: Vec::new(),
        scores: Scores::default(),
        findings: super::findings(experiment),
        warnings: Vec::new(),
    };
    record.scores = scores::of(&record, series);
    record.expects = judge::judge(experiment, &record);
    record
}

/// What a machine is where it is not one that anybody logs in to.
pub(super) fn system(host: &crate::experiment::Host) -> Option<String> {
    match (&host.cisco, host.switch) {
        (Some(_), _) => Some("cisco".to_owned()),
        (None, true) => Some("switch".to_owned()),
        (None, false) => None,
    }
}

/// What a device sent, and lost by code point.
pub(super) struct Hop {
    pub(super) sent: Vec<Carried>,
    pub(super) lost: Vec<u64>,
}

/// What expectations ask of the packets of code points at devices; `hop` looks at a device.
pub(super) fn per_hop(experiment: &Experiment, hop: impl Fn(&str, &str) -> Option<Hop>) -> Vec<PerHop> {
    let mut found: Vec<PerHop> = Vec::new();
    for expect in &experiment.expects {
        let Subject::Phb { host, dev, codes, rate } = &expect.measure.subject else { continue };
        let same = |p: &PerHop| asks(p, host, dev, codes, *rate);
        if found.iter().any(same) {
            continue;
        }
        let Some(Hop { sent, lost }) = hop(host, dev) else { continue };
        let own: Vec<Carried> = sent.iter().filter(|c| codes.contains(&c.code)).copied().collect();
        let lost = |code: &u8| lost.get(usize::from(*code)).copied().unwrap_or(0);
        let of = |code: &u8| (own.iter().filter(|c| c.code == *code).count() as u64, lost(code));
        let terms = rate.and_then(|rate| phb::error_terms(&own, rate.bit_per_s()));
        let ms = |ns: i64| ns as f64 / 1e6;
        found.push(PerHop {
            host: host.clone(),
            dev: dev.clone(),
            codes: codes.clone(),
            rate_bit_s: rate.map(|rate| rate.bit_per_s() as f64),
            packets: own.len() as u64,
            lost_packets: codes.iter().map(lost).sum(),
            delay_ms: phb::delays(&own).map(|(least, most)| (ms(least), ms(most))),
            jitter_ms: phb::delays(&own).map(|(least, most)| ms(most - least)),
            ea_ms: terms.map(|t| ms(t.aggregate_ns)),
            ep_ms: terms.map(|t| ms(t.packet_ns)),
            reordered_packets: (!own.is_empty()).then(|| phb::reordered(&own)),
            precedence: match codes.as_slice() {
                [low, middle, high, ..] => phb::precedence([of(low), of(middle), of(high)]),
                _ => None,
            },
            ahead: codes.first().and_then(|code| phb::ahead(&sent, *code)),
        });
    }
    found
}

/// Whether it is of these packets.
pub(super) fn asks(hop: &PerHop, host: &str, dev: &str, codes: &[u8], rate: Option<Rate>) -> bool {
    let rate = rate.map(|rate| rate.bit_per_s() as f64);
    hop.host == host && hop.dev == dev && hop.codes == codes && hop.rate_bit_s == rate
}

/// The delays of several flows where only each one's distribution is known: least and greatest of all; of the rest the mean, each flow
/// as often as it has packets.
fn merged<'a>(
    flows: impl IntoIterator<Item = &'a record::Flow>,
    of: fn(&record::Flow) -> Option<Distribution>,
) -> Option<Distribution> {
    let known = |f: &'a record::Flow| Some((of(f)?, f.received_packets as f64));
    let parts: Vec<(Distribution, f64)> = flows.into_iter().filter_map(known).collect();
    let weight: f64 = parts.iter().map(|p| p.1).sum();
    let mean = |of: fn(&Distribution) -> f64| parts.iter().map(|(d, n)| of(d) * n).sum::<f64>() / weight;
    (weight > 0.0).then(|| Distribution {
        min: parts.iter().map(|p| p.0.min).fold(f64::INFINITY, f64::min),
        mean: mean(|d| d.mean),
        p50: mean(|d| d.p50),
        p95: mean(|d| d.p95),
        p99: mean(|d| d.p99),
        max: parts.iter().map(|p| p.0.max).fold(0.0, f64::max),
    })
}

/// What the flows of each `[[flow]]` that makes several measured together, on a ground that keeps no histograms.
pub(super) fn together(experiment: &Experiment, flows: &[record::Flow]) -> Vec<Together> {
    let several = experiment.flows.iter().filter(|f| f.count > 1);
    let one = several.map(|flow| {
        let own: Vec<&record::Flow> = flows.iter().filter(|f| is_one_of(f, &flow.name)).collect();
        let owd_ms = merged(own.iter().copied(), |f| f.owd_ms);
        let rtt_ms = merged(own.iter().copied(), |f| f.rtt_ms);
        Together { name: flow.name.clone(), flows: own.len() as u64, owd_ms, rtt_ms, ..Together::default() }
    });
    one.filter(|t| t.owd_ms.is_some() || t.rtt_ms.is_some()).collect()
}

/// Whether a flow is one of those that a `[[flow]]` makes: its name with a number behind.
pub(super) fn is_one_of(flow: &record::Flow, name: &str) -> bool {
    let number = flow.name.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
    flow.app.is_none() && number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Jain's index that counts as sharing evenly, and over how many samples.
pub(super) const EVEN: (f64, usize) = (0.9, 10);

/// The groups of a run on a ground that keeps no account beside its record and series.
/// `transfers`: how long each of a flow's took, ms, by its name.
pub(super) fn groups(
    experiment: &Experiment,
    flows: &[record::Flow],
    transfers: &BTreeMap<String, Vec<f64>>,
    series: &Series,
) -> Vec<Group> {
    let mut named: BTreeMap<&str, Vec<&record::Flow>> = BTreeMap::new();
    for flow in flows {
        if let Some(name) = &flow.group {
            named.entry(name).or_default().push(flow);
        }
    }
    let ends = |flow: &record::Flow| {
        let of = |f: &&Flow| f.name == flow.name || is_one_of(flow, &f.name);
        flow.app.is_some() || experiment.flows.iter().find(of).is_none_or(|f| has_an_end(&f.load))
    };
    let took = |flow: &record::Flow| {
        let own = transfers.get(&flow.name).filter(|_| ends(flow));
        own.cloned().unwrap_or_default()
    };
    let counted = (experiment.warmup.as_secs_f64(), experiment.duration.as_secs_f64());
    named.into_iter().map(|(name, own)| group(name, &own, series, counted, &took)).collect()
}

/// Whether a load is carried by transfers that are over when all is delivered, and not when their time is.
pub(super) fn has_an_end(load: &Load) -> bool {
    matches!(load, Load::Bytes(_) | Load::Pages { .. } | Load::Arrivals(_))
}

fn group(
    name: &str,
    flows: &[&record::Flow],
    series: &Series,
    (from_s, duration_s): (f64, f64),
    took: &dyn Fn(&record::Flow) -> Vec<f64>,
) -> Group {
    let counted_s = duration_s - from_s;
    let rate = |bytes: u64| if counted_s > 0.0 { bytes as f64 * 8.0 / counted_s } else { 0.0 };
    let goodputs: Vec<f64> = flows.iter().map(|f| rate(f.payload_bytes.unwrap_or(0))).collect();
    let sum = |of: fn(&record::Flow) -> u64| flows.iter().map(|f| of(f)).sum::<u64>();
    let sent = sum(|f| f.sent_packets);
    let tcp = flows.iter().any(|f| f.proto == "tcp");
    let mut completion: Vec<f64> = flows.iter().flat_map(|f| took(f)).collect();
    let completed = completion.len() as u64;
    let curve = |f: &&record::Flow| -> Vec<(f64, f64)> {
        let points = series.points("", &format!("flow {}", f.name), "goodput_bit_s");
        points.iter().filter(|(at, _)| *at > from_s).copied().collect()
    };
    let curves: Vec<Vec<(f64, f64)>> = flows.iter().map(curve).collect();
    let times: Vec<f64> = curves.first().map_or(Vec::new(), |c| c.iter().map(|p| p.0).collect());
    let rates: Vec<Vec<f64>> = curves.iter().map(|c| c.iter().map(|p| p.1).collect()).collect();
    // Each receiver takes its samples by itself: only where all have as many can they be held beside each other.
    let even = rates.iter().all(|r| r.len() == times.len());
    let several = flows.len() > 1;
    let headers = |f: &record::Flow| 14 * f.received_packets;
    let received: u64 = flows.iter().map(|f| f.received_bytes.unwrap_or(0).saturating_sub(headers(f))).sum();
    Group {
        name: name.to_owned(),
        flows: flows.len() as u64,
        goodput_bit_s: goodputs.iter().sum(),
        throughput_bit_s: rate(received),
        active_bit_s: active_bit_s(flows, duration_s),
        sent_packets: sent,
        retransmission_rate: (tcp && sent > 0)
            .then(|| sum(|f| f.retransmitted_packets.unwrap_or(0)) as f64 / sent as f64),
        fairness: several.then(|| fairness::jain(&goodputs)).flatten(),
        min_over_max: several.then(|| fairness::min_over_max(&goodputs)).flatten(),
        convergence_s: even.then(|| fairness::convergence(&times, &rates, EVEN.1, EVEN.0)).flatten(),
        loss_synchronisation: None,
        owd_ms: merged(flows.iter().copied(), |f| f.owd_ms),
        rtt_ms: merged(flows.iter().copied(), |f| f.rtt_ms),
        completion_ms: Distribution::of(&mut completion),
        completed: (completed > 0).then_some(completed),
        links: Vec::new(),
    }
}

/// Goodput over the time in which any of the flows lived.
fn active_bit_s(flows: &[&record::Flow], duration_s: f64) -> Option<f64> {
    let lives = flows.iter().filter_map(|f| Some((f.start_s?, f.end_s.unwrap_or(duration_s))));
    let long = covered(lives);
    let bytes: u64 = flows.iter().filter_map(|f| f.payload_bytes).sum();
    (long > 0.0).then(|| bytes as f64 * 8.0 / long)
}

/// How much of the time stretches cover together, seconds.
pub(super) fn covered(stretches: impl Iterator<Item = (f64, f64)>) -> f64 {
    let mut all: Vec<(f64, f64)> = stretches.filter(|(from, to)| to > from).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut long, mut until) = (0.0, f64::NEG_INFINITY);
    for (from, to) in all {
        long += (to - from.max(until)).max(0.0);
        until = until.max(to);
    }
    long
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(name: &str, owd: &[f64], received_packets: u64) -> record::Flow {
        let owd_ms = Distribution::of(&mut owd.to_vec());
        record::Flow { name: name.to_owned(), owd_ms, received_packets, ..record::Flow::default() }
    }

    #[test]
    fn several_flows_count_by_their_packets() {
        let (a, b) = (flow("f-1", &[1.0, 3.0], 30), flow("f-2", &[5.0, 9.0], 10));
        let both = merged([&a, &b], |f| f.owd_ms).unwrap();
        assert_eq!((both.min, both.max, both.mean), (1.0, 9.0, (2.0 * 30.0 + 7.0 * 10.0) / 40.0));
        assert!(merged([&flow("f-3", &[], 0)], |f| f.owd_ms).is_none());
        assert!(is_one_of(&a, "f") && !is_one_of(&a, "f-1") && !is_one_of(&flow("f-x", &[], 0), "f"));
        assert!(!is_one_of(&flow("f-", &[], 0), "f"));
    }

    #[test]
    fn a_group_of_a_real_ground_has_its_figures() {
        let make = |name: &str, bytes| record::Flow {
            name: name.to_owned(),
            proto: "tcp".to_owned(),
            group: Some("g".to_owned()),
            payload_bytes: Some(bytes),
            received_bytes: Some(bytes + 66 * 10),
            received_packets: 10,
            sent_packets: 12,
            retransmitted_packets: Some(3),
            start_s: Some(0.5),
            end_s: Some(1.5),
            ..record::Flow::default()
        };
        let mut series = Series::new();
        for (t, a, b) in [(1.0, 4e3, 4e3), (2.0, 4e3, 4e3)] {
            series.add("", "flow a", "goodput_bit_s", t, a);
            series.add("", "flow b", "goodput_bit_s", t, b);
        }
        let flows = [make("a", 1000), make("b", 3000)];
        let all = [group("g", &flows.iter().collect::<Vec<_>>(), &series, (0.0, 2.0), &|_| vec![1000.0])];
        assert_eq!((all.len(), all[0].flows, all[0].goodput_bit_s), (1, 2, 16_000.0));
        assert_eq!(all[0].throughput_bit_s, (4000.0 + 2.0 * 52.0 * 10.0) * 4.0);
        assert_eq!((all[0].retransmission_rate, all[0].completed), (Some(0.25), Some(2)));
        assert_eq!((all[0].min_over_max, all[0].completion_ms.unwrap().max), (Some(1000.0 / 3000.0), 1000.0));
        // 4000 bytes in the one second in which both lived.
        assert_eq!(all[0].active_bit_s, Some(32_000.0));
        assert_eq!(covered([(3.0, 4.0), (0.0, 1.0), (0.5, 2.0), (5.0, 5.0)].into_iter()), 3.0);
        // Flows that stop because their time is over complete nothing.
        let endless = group("g", &flows.iter().collect::<Vec<_>>(), &series, (0.0, 2.0), &|_| Vec::new());
        assert_eq!((endless.completed, endless.completion_ms), (None, None));
        // Of two seconds one was warm-up.
        let warm = group("g", &flows.iter().collect::<Vec<_>>(), &series, (1.0, 2.0), &|_| Vec::new());
        assert_eq!(warm.goodput_bit_s, 32_000.0);
    }
}
