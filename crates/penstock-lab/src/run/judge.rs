//! Expectations, judged by the record alone.

use super::record::{asks, is_one_of};
use crate::experiment::{Experiment, Measure, Subject};
use penstock_measure::{Distribution, Record, jain, record};
use penstock_model::Rate;

/// Judges every expectation of the experiment.
pub(super) fn judge(experiment: &Experiment, record: &Record) -> Vec<record::Expect> {
    let judged = experiment.expects.iter().map(|expect| {
        let measured = measure(&expect.measure, record).filter(|x| x.is_finite());
        let ok = measured.is_some_and(|x| expect.range.hold(x));
        let why = measured.is_none().then(|| why_not(&expect.measure, record)).flatten();
        record::Expect { what: expect.what.clone(), value: expect.value.clone(), measured, ok, why }
    });
    judged.collect()
}

/// Why the ground of a run has no such figure.
fn why_not(measure: &Measure, record: &Record) -> Option<String> {
    if let Subject::App(i) = measure.subject {
        return cut_off(&record.apps[i], measure, record.duration_s);
    }
    let Subject::Phb { host, dev, .. } = &measure.subject else { return None };
    let ground = &record.ground;
    (ground != "sim").then(|| {
        format!("{host} {dev} {}: the ground {ground} does not see the packets of a device one by one; the simulator does (--on sim)", measure.figure)
    })
}

/// Why a program has no such figure: it did not run, or not to its end.
fn cut_off(app: &record::App, measure: &Measure, duration_s: f64) -> Option<String> {
    let (name, figure) = (&app.name, measure.figure);
    match (app.start_s, app.exit) {
        (None, _) => Some(format!("{name} was never started")),
        (Some(_), None) => {
            let help = "a longer duration, or a shorter program, gives it";
            Some(format!("{name} {figure}: the run ended (at {duration_s} s) before the program did; {help}"))
        }
        _ => None,
    }
}

/// A figure of a record; `None` where the record has none.
pub fn measure(measure: &Measure, record: &Record) -> Option<f64> {
    match &measure.subject {
        Subject::App(i) => app(&record.apps[*i], measure),
        Subject::Flow(name) => {
            // All of its count: their names are its own with a number behind.
            let is = |f: &&record::Flow| f.app.is_none() && f.name == *name;
            let mut own: Vec<&record::Flow> = record.flows.iter().filter(is).collect();
            if own.is_empty() {
                own = record.flows.iter().filter(|f| is_one_of(f, name)).collect();
            }
            let together = record.together.iter().find(|t| t.name == *name);
            flows(&own, together.map(|t| (t.owd_ms, t.rtt_ms)), measure)
        }
        Subject::Group(name) => {
            let own: Vec<&record::Flow> =
                record.flows.iter().filter(|f| f.group.as_ref() == Some(name)).collect();
            let group = record.groups.iter().find(|g| g.name == *name);
            flows(&own, group.map(|g| (g.owd_ms, g.rtt_ms)), measure)
        }
        Subject::Phb { host, dev, codes, rate } => per_hop(record, measure.figure, (host, dev), codes, *rate),
        Subject::Queue { host, dev, id } => queue(record, measure, host, dev, id.as_deref()),
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

/// Of flows; `together`: the delays and round trips of all of them, where they are several.
fn flows(
    flows: &[&record::Flow],
    together: Option<(Option<Distribution>, Option<Distribution>)>,
    measure: &Measure,
) -> Option<f64> {
    let (owd_ms, rtt_ms) = match flows {
        [] => return None,
        [one] => (one.owd_ms, one.rtt_ms),
        _ => together.unwrap_or_default(),
    };
    let sum = |f: fn(&record::Flow) -> u64| flows.iter().map(|x| f(x)).sum::<u64>();
    match measure.figure {
        "goodput" => Some(flows.iter().map(|f| f.goodput_bit_s).sum()),
        "throughput" => Some(flows.iter().map(|f| f.throughput_bit_s).sum()),
        "owd" => owd_ms?.named(measure.part),
        "rtt" => rtt_ms?.named(measure.part),
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

/// A figure of the packets of some code points at a device that was watched.
fn per_hop(
    record: &Record,
    figure: &str,
    (host, dev): (&str, &str),
    codes: &[u8],
    rate: Option<Rate>,
) -> Option<f64> {
    let hop = record.per_hop.iter().find(|hop| asks(hop, host, dev, codes, rate))?;
    match figure {
        "ea" => hop.ea_ms,
        "ep" => hop.ep_ms,
        "delay" => hop.delay_ms.map(|(_, most)| most),
        "jitter" => hop.jitter_ms,
        "loss" => share(hop.lost_packets, hop.lost_packets + hop.packets),
        "reordered" => hop.reordered_packets.map(|n| n as f64),
        "precedence" => hop.precedence,
        "ahead" => hop.ahead,
        "packets" => Some(hop.packets as f64),
        _ => None,
    }
}

fn queue(record: &Record, measure: &Measure, host: &str, dev: &str, id: Option<&str>) -> Option<f64> {
    let device = record.devices.iter().find(|d| d.host == host && d.dev == dev)?;
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
