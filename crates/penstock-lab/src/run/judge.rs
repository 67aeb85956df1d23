//! Expectations, judged.

use super::Outcome;
use super::outcome::distribution;
use crate::experiment::{Experiment, Measure, Subject};
use penstock_measure::phb::{self, Carried};
use penstock_measure::{Distribution, jain, record};
use penstock_model::Rate;
use penstock_sim::{FlowResult, Histogram};

/// Judges every expectation of the experiment.
pub(super) fn judge(experiment: &Experiment, outcome: &Outcome) -> Vec<record::Expect> {
    let judged = experiment.expects.iter().map(|expect| {
        let measured = measure(&expect.measure, outcome).filter(|x| x.is_finite());
        let ok = measured.is_some_and(|x| expect.range.hold(x));
        record::Expect { what: expect.what.clone(), value: expect.value.clone(), measured, ok }
    });
    judged.collect()
}

fn measure(measure: &Measure, outcome: &Outcome) -> Option<f64> {
    match &measure.subject {
        Subject::App(i) => app(&outcome.record.apps[*i], measure),
        Subject::Flow(name) => {
            // All of its count: their names are its own with a number behind.
            let is = |f: &record::Flow| {
                let rest = f.name.strip_prefix(name.as_str());
                let number =
                    |r: &str| r.strip_prefix('-').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
                f.app.is_none() && rest.is_some_and(|r| r.is_empty() || number(r))
            };
            flows(outcome, measure, is)
        }
        Subject::Group(name) => flows(outcome, measure, |f| f.group.as_ref() == Some(name)),
        Subject::Phb { host, dev, codes, rate } => {
            per_hop(outcome, measure.figure, (host, dev), codes, rate.map(Rate::bit_per_s))
        }
        Subject::Queue { host, dev, id } => queue(outcome, measure, host, dev, id.as_deref()),
    }
}

fn app(app: &record::App, measure: &Measure) -> Option<f64> {
    let count = |n: Option<u64>| n.map(|n| n as f64);
    match measure.figure {
        "throughput" => app.throughput_bit_s,
        "bytes" => count(app.bytes),
        "rtt" => app.rtt_ms?.named(measure.part),
        "loss" => share(app.lost_packets?, app.sent_packets?),
        "jitter" => app.jitter_ms,
        "sent" => count(app.sent_packets),
        "received" => count(app.received_packets),
        "lost" => count(app.lost_packets),
        "retransmits" => count(app.retransmitted_packets),
        "duration" => Some((app.end_s? - app.start_s?) * 1000.0),
        "exit" => app.exit.map(f64::from),
        _ => None,
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn flows(outcome: &Outcome, measure: &Measure, is: impl Fn(&record::Flow) -> bool) -> Option<f64> {
    let flows: Vec<&record::Flow> = outcome.record.flows.iter().filter(|f| is(f)).collect();
    let both = outcome.record.flows.iter().zip(&outcome.results.flows);
    let results: Vec<&FlowResult> = both.filter(|(f, _)| is(f)).map(|(_, r)| r).collect();
    if flows.is_empty() {
        return None;
    }
    let sum = |f: fn(&record::Flow) -> u64| flows.iter().map(|x| f(x)).sum::<u64>();
    match measure.figure {
        "goodput" => Some(flows.iter().map(|f| f.goodput_bit_s).sum()),
        "throughput" => Some(flows.iter().map(|f| f.throughput_bit_s).sum()),
        // A real ground has no account beside the record: of several flows the mean, each as often as it has packets.
        "owd" if results.is_empty() => {
            let part = |f: &&record::Flow| Some((f.owd_ms?.named(measure.part)?, f.received_packets as f64));
            let parts: Vec<(f64, f64)> = flows.iter().filter_map(part).collect();
            let weight: f64 = parts.iter().map(|p| p.1).sum();
            (weight > 0.0).then(|| parts.iter().map(|p| p.0 * p.1).sum::<f64>() / weight)
        }
        "owd" => {
            let mut all = Histogram::default();
            results.iter().for_each(|r| all.merge(&r.owd));
            distribution(&all)?.named(measure.part)
        }
        "rtt" => {
            let mut all: Vec<f64> =
                results.iter().flat_map(|r| &r.rtts).map(|r| r.1.as_ns() as f64 / 1e6).collect();
            Distribution::of(&mut all)?.named(measure.part)
        }
        "jitter" => {
            let jitters: Vec<f64> = flows.iter().filter_map(|f| f.jitter_ms).collect();
            (!jitters.is_empty()).then(|| jitters.iter().sum::<f64>() / jitters.len() as f64)
        }
        "loss" => share(sum(|f| f.lost_packets), sum(|f| f.sent_packets)),
        "sent" => Some(sum(|f| f.sent_packets) as f64),
        "received" => Some(sum(|f| f.received_packets) as f64),
        "lost" => Some(sum(|f| f.lost_packets) as f64),
        "marked" => Some(sum(|f| f.marked_packets) as f64),
        "retransmits" => Some(sum(|f| f.retransmitted_packets.unwrap_or(0)) as f64),
        "duration" => {
            // None while one of them still runs: what it takes is not known.
            let took: Option<Vec<f64>> =
                flows.iter().map(|f| Some((f.end_s? - f.start_s?) * 1000.0)).collect();
            took.map(|t| t.iter().sum::<f64>() / t.len() as f64)
        }
        "fairness" => jain(&flows.iter().map(|f| f.goodput_bit_s).collect::<Vec<_>>()),
        _ => None,
    }
}

/// A figure of the packets of some code points at a watched device; `None` on a ground that does not watch.
fn per_hop(
    outcome: &Outcome,
    figure: &str,
    (host, dev): (&str, &str),
    codes: &[u8],
    rate_bit_s: Option<u64>,
) -> Option<f64> {
    let at = outcome.record.rig.hosts.iter().position(|h| h.name == host)?;
    let watched = outcome.results.watched.iter().find(|w| w.host.0 as usize == at && w.device == dev)?;
    let carried = |c: &penstock_sim::Carried| Carried {
        code: c.code,
        flow: c.flow,
        bytes: c.bytes,
        arrived_ns: c.arrived.as_ns(),
        begun_ns: c.begun.as_ns(),
        left_ns: c.left.as_ns(),
    };
    let all: Vec<Carried> = watched.sent.iter().map(carried).collect();
    let own: Vec<Carried> = all.iter().filter(|c| codes.contains(&c.code)).copied().collect();
    let lost = |code: &u8| watched.lost.get(usize::from(*code)).copied().unwrap_or(0);
    let all_lost: u64 = codes.iter().map(lost).sum();
    let ms = |ns: i64| ns as f64 / 1e6;
    match figure {
        "ea" => Some(ms(phb::error_terms(&own, rate_bit_s?)?.aggregate_ns)),
        "ep" => Some(ms(phb::error_terms(&own, rate_bit_s?)?.packet_ns)),
        "delay" => phb::delays(&own).map(|(_, most)| ms(most)),
        "jitter" => phb::delays(&own).map(|(least, most)| ms(most - least)),
        "loss" => share(all_lost, all_lost + own.len() as u64),
        "reordered" => (!own.is_empty()).then(|| phb::reordered(&own) as f64),
        "precedence" => {
            let of = |code: u8| (own.iter().filter(|c| c.code == code).count() as u64, lost(&code));
            phb::precedence([of(*codes.first()?), of(*codes.get(1)?), of(*codes.get(2)?)])
        }
        "ahead" => phb::ahead(&all, *codes.first()?),
        "packets" => Some(own.len() as f64),
        _ => None,
    }
}

fn queue(outcome: &Outcome, measure: &Measure, host: &str, dev: &str, id: Option<&str>) -> Option<f64> {
    let device = outcome.record.devices.iter().find(|d| d.host == host && d.dev == dev)?;
    if let Some(class) = device.classes.iter().find(|c| Some(c.classid.as_str()) == id) {
        return match measure.figure {
            "bytes" => Some(class.bytes as f64),
            "packets" => Some(class.packets as f64),
            "drops" => Some(class.drops as f64),
            "lended" => class.lended.map(|n| n as f64),
            "borrowed" => class.borrowed.map(|n| n as f64),
            _ => None,
        };
    }
    let qdisc = device.qdiscs.iter().find(|q| match id {
        Some(id) => q.handle == id,
        None => q.parent == "root",
    })?;
    Some(match measure.figure {
        "bytes" => qdisc.bytes,
        "packets" => qdisc.packets,
        "drops" => qdisc.drops,
        "overlimits" => qdisc.overlimits,
        "requeues" => qdisc.requeues,
        "backlog" => qdisc.backlog,
        "qlen" => qdisc.qlen,
        _ => return None,
    } as f64)
}
