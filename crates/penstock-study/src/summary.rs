//! From a run's record and series to what judges read.

use super::evidence::{AppRun, FlowRun, Run};
use penstock_lab::run::Outcome;
use penstock_measure::record;

/// What the judges need of a run.
pub(super) fn summarise(outcome: &Outcome) -> Run {
    let record = &outcome.record;
    let apps = record.apps.iter().zip(&outcome.outputs).map(|(app, text)| AppRun {
        host: app.host.clone(),
        run: app.run.clone(),
        name: app.name.clone(),
        exit: app.exit.unwrap_or(0),
        text: text.clone(),
        throughput_bit_s: app.throughput_bit_s,
        intervals: app.intervals.iter().map(|i| (i.from_s, i.to_s, i.throughput_bit_s)).collect(),
        rtt_mean_ms: app.rtt_ms.as_ref().map(|r| r.mean),
        requests: app.sent_packets.zip(app.received_packets),
        rtts: outcome.series.points(&app.host, &app.name, "rtt_ms").to_vec(),
    });
    let mut run = Run { apps: apps.collect(), duration: record.duration_s, ..Run::default() };
    run.flows = record.flows.iter().enumerate().map(|(i, f)| flow(i, f, outcome)).collect();
    for lost in &record.drops {
        let dev = lost.dev.clone().unwrap_or_default();
        let place = (lost.host.clone(), dev, lost.place.clone(), lost.reason.clone());
        *run.drops.entry(place).or_default() += lost.packets;
    }
    for host in &record.rig.hosts {
        run.processor.extend(host.processor_share.map(|share| (host.name.clone(), share)));
        let shares = outcome.series.points(&host.name, "processor", "share");
        run.processor_over_time.insert(host.name.clone(), shares.to_vec());
    }
    for device in &record.devices {
        for class in &device.classes {
            let object = format!("{} class {}", device.dev, class.classid);
            let points = outcome.series.points(&device.host, &object, "throughput_bit_s");
            let name = || (device.host.clone(), device.dev.clone(), class.classid.clone());
            run.class_rates.insert(name(), points.to_vec());
            let counts = [class.packets, class.bytes, class.drops, class.borrowed.unwrap_or(0)];
            run.classes.insert(name(), counts);
            for quantity in
                ["avgidle_ticks", "undertime_ticks", "borrowed_packets", "overlimits", "overactions"]
            {
                let points = outcome.series.points(&device.host, &object, quantity);
                if !points.is_empty() {
                    let (host, dev, class) = name();
                    run.class_state.insert((host, dev, class, quantity.to_owned()), points.to_vec());
                }
            }
        }
        for qdisc in &device.qdiscs {
            let object = format!("{} {} {}", device.dev, qdisc.kind, qdisc.handle);
            let points = outcome.series.points(&device.host, &object, "qlen_packets");
            if let Some(most) = points.iter().map(|p| p.1 as u64).max() {
                run.qlen_max.insert((device.host.clone(), device.dev.clone(), qdisc.handle.clone()), most);
            }
        }
    }
    run
}

/// What the judges need of the flow at a place of the record.
fn flow(at: usize, flow: &record::Flow, outcome: &Outcome) -> FlowRun {
    let object = format!("flow {}", flow.name);
    let points = |metric| outcome.series.points("", &object, metric).to_vec();
    let passages = outcome.passages.iter().filter(|(i, _)| *i == at).flat_map(|(_, all)| all);
    FlowRun {
        name: flow.name.clone(),
        app: flow.app.clone(),
        packets: (flow.sent_packets, flow.received_packets, flow.lost_packets),
        frame_bytes: (flow.sent_bytes.unwrap_or(0), flow.received_bytes.unwrap_or(0)),
        life: (flow.start_s.unwrap_or(0.0), flow.end_s.unwrap_or(outcome.record.duration_s)),
        owd_ms: flow.owd_ms.as_ref().map(|d| (d.mean, d.max)),
        goodput: points("goodput_bit_s"),
        payload_bytes: flow.payload_bytes.unwrap_or(0),
        rtts: points("rtt_ms"),
        cwnd: points("cwnd_packets"),
        passages: passages.map(|p| (p.bytes, p.sent_s, p.received_s)).collect(),
    }
}
