//! What groups of flows got and met (RFC 5166).

use super::build::Built;
use super::outcome::{distribution, life, quantiles};
use super::record::{EVEN, covered, has_an_end};
use crate::experiment::Experiment;
use penstock_measure::record::{Group, GroupAtLink, Together};
use penstock_measure::{Distribution, Series, fairness};
use penstock_model::traffic::Load;
use penstock_sim::{FlowResult, Histogram, Results};
use std::collections::BTreeMap;

/// Length of the Ethernet header, which no rate counts.
const ETHERNET: u64 = 14;

/// Round trips of the echo probes of flows, all of them together.
fn round_trips<'a>(flows: impl IntoIterator<Item = &'a FlowResult>) -> Option<Distribution> {
    let all = flows.into_iter().flat_map(|f| &f.rtts);
    Distribution::of(&mut all.map(|r| r.1.as_ns() as f64 / 1e6).collect::<Vec<f64>>())
}

/// What the flows of each `[[flow]]` that makes several measured together.
pub(super) fn together(experiment: &Experiment, built: &Built, results: &Results) -> Vec<Together> {
    let several = experiment.flows.iter().zip(&built.flows).filter(|(_, ids)| ids.len() > 1);
    let one = several.map(|(flow, ids)| {
        let own: Vec<&FlowResult> = ids.iter().filter_map(|id| results.flows.get(id.0 as usize)).collect();
        let mut owd = Histogram::default();
        own.iter().for_each(|f| owd.merge(&f.owd));
        Together {
            name: flow.name.clone(),
            flows: own.len() as u64,
            owd_ms: distribution(&owd),
            owd_quantiles_ms: quantiles(&owd),
            rtt_ms: round_trips(own.iter().copied()),
        }
    });
    one.collect()
}

/// The groups of a run, by name.
pub(super) fn groups(
    experiment: &Experiment,
    built: &Built,
    results: &Results,
    series: &Series,
) -> Vec<Group> {
    // Those that stop because their time is over complete nothing, and of those with pages each page is a transfer of its own.
    let mut ends = vec![true; results.flows.len()];
    let whole = |load: &Load| has_an_end(load) && !matches!(load, Load::Pages { .. });
    for (_, ids) in experiment.flows.iter().zip(&built.flows).filter(|(f, _)| !whole(&f.load)) {
        ids.iter().for_each(|id| ends[id.0 as usize] = false);
    }
    let mut named: BTreeMap<&str, Vec<&FlowResult>> = BTreeMap::new();
    for flow in results.flows.iter().filter(|f| !f.group.is_empty()) {
        named.entry(&flow.group).or_default().push(flow);
    }
    named.into_iter().map(|(name, flows)| group(name, &flows, &ends, built, results, series)).collect()
}

fn group(
    name: &str,
    flows: &[&FlowResult],
    ends: &[bool],
    built: &Built,
    results: &Results,
    series: &Series,
) -> Group {
    let counted_s = (results.ended - results.counted_from).as_secs_f64();
    let rate = |bytes: u64| if counted_s > 0.0 { bytes as f64 * 8.0 / counted_s } else { 0.0 };
    let sum = |of: &dyn Fn(&FlowResult) -> u64| flows.iter().map(|f| of(f)).sum::<u64>();
    let goodputs: Vec<f64> = flows.iter().map(|f| rate(f.goodput_bytes)).collect();
    let sent = sum(&|f| f.sent_packets);
    let tcp = flows.iter().any(|f| f.proto == "tcp");
    let mut owd = Histogram::default();
    let mut completion = Histogram::default();
    for flow in flows {
        owd.merge(&flow.owd);
        completion.merge(&flow.transfers);
        // A transfer that began while the run warmed up is not counted.
        if let (Some(from), Some(to)) = (flow.started, flow.completed)
            && to > from
            && !flow.early
            && flow.proto == "tcp"
            && ends[flow.id.0 as usize]
        {
            completion.record((to - from).as_ns() as u64);
        }
    }
    let curve = |metric: &str| -> Vec<&[(f64, f64)]> {
        let points = |f: &&FlowResult| series.points("", &format!("flow {}", f.name), metric);
        flows.iter().map(points).collect()
    };
    let from_s = results.counted_from.as_secs_f64();
    let counted = |points: &[(f64, f64)]| -> Vec<f64> {
        points.iter().filter(|(t, _)| *t > from_s).map(|(_, v)| *v).collect()
    };
    let rates = curve("goodput_bit_s");
    let times: Vec<f64> =
        rates.first().map_or(Vec::new(), |p| p.iter().map(|(t, _)| *t).filter(|t| *t > from_s).collect());
    let rates: Vec<Vec<f64>> = rates.into_iter().map(counted).collect();
    let losses: Vec<Vec<f64>> = curve("drops_packets").into_iter().map(counted).collect();
    let several = flows.len() > 1;
    Group {
        name: name.to_owned(),
        flows: flows.len() as u64,
        goodput_bit_s: goodputs.iter().sum(),
        throughput_bit_s: rate(
            sum(&|f| f.received_bytes).saturating_sub(ETHERNET * sum(&|f| f.arrived_packets)),
        ),
        active_bit_s: active_bit_s(flows, results),
        sent_packets: sent,
        retransmission_rate: (tcp && sent > 0)
            .then(|| sum(&|f| f.retransmitted_packets) as f64 / sent as f64),
        fairness: several.then(|| fairness::jain(&goodputs)).flatten(),
        min_over_max: several.then(|| fairness::min_over_max(&goodputs)).flatten(),
        convergence_s: fairness::convergence(&times, &rates, EVEN.1, EVEN.0),
        loss_synchronisation: several.then(|| fairness::loss_synchronisation(&losses)).flatten(),
        owd_ms: distribution(&owd),
        rtt_ms: round_trips(flows.iter().copied()),
        completion_ms: distribution(&completion),
        completed: (completion.count() > 0).then(|| completion.count()),
        links: links(flows, built, &rate),
    }
}

/// Goodput over the time in which any of the flows lived.
fn active_bit_s(flows: &[&FlowResult], results: &Results) -> Option<f64> {
    let lives = flows.iter().filter_map(|f| life(f, results.ended));
    let long = covered(lives.map(|(from, to)| (from.as_secs_f64(), to.as_secs_f64())));
    let bytes: u64 = flows.iter().map(|f| f.goodput_bytes).sum();
    (long > 0.0).then(|| bytes as f64 * 8.0 / long)
}

/// Losses and marks of flows, device by device.
fn links(flows: &[&FlowResult], built: &Built, rate: &dyn Fn(u64) -> f64) -> Vec<GroupAtLink> {
    let mut found: BTreeMap<(u32, &str), [u64; 4]> = BTreeMap::new();
    for place in flows.iter().flat_map(|f| &f.places) {
        let sums = found.entry((place.host.0, place.device.as_str())).or_default();
        let c = &place.count;
        for (sum, n) in sums.iter_mut().zip([c.lost_packets, c.lost_bytes, c.marked_packets, c.marked_bytes])
        {
            *sum += n;
        }
    }
    let row =
        |((host, dev), [lost, lost_bytes, marked, marked_bytes]): ((u32, &str), [u64; 4])| GroupAtLink {
            host: built.world.host_name(penstock_sim::HostId(host)).to_owned(),
            dev: dev.to_owned(),
            lost_packets: lost,
            lost_bit_s: rate(lost_bytes),
            marked_packets: marked,
            marked_bit_s: rate(marked_bytes),
        };
    found.into_iter().map(row).collect()
}
