//! Flows on a real Linux: what is planned of them, and what their senders and receivers say.

use super::super::build;
use super::Experiment;
use crate::experiment as spec;
use crate::run::record::has_an_end;
use penstock_kernel::FlowRun;
use penstock_kernel::plan::{self, Plan};
use penstock_measure::passage::{Analysis, Passage};
use penstock_measure::{Series, record};
use penstock_model::traffic::{Dist, Load};
use penstock_model::{Diagnostic, Rng, Span};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Plans a flow: one sender each, or one for each connection that arrives.
pub(super) fn plan(
    flow: &spec::Flow,
    experiment: &Experiment,
    seed: u64,
    at: &dyn Fn(&str) -> usize,
    plan: &mut Plan,
) -> Result<(), Diagnostic> {
    let to = &plan.hosts[at(&flow.to)];
    let (four, six) = (to.address().map(IpAddr::V4), to.address6().map(IpAddr::V6));
    let Some(addr) = (if flow.ipv6 { six } else { four.or(six) }) else {
        let family = if flow.ipv6 { "IPv6 address" } else { "address" };
        return Err(build::at(experiment, &flow.place, format!("{} has no {family}", flow.to)));
    };
    let one = plan::Flow {
        from: at(&flow.from),
        to: at(&flow.to),
        addr,
        tcp: flow.tcp.clone(),
        load: flow.load.clone(),
        at: flow.at.0,
        until: flow.until,
        tos: flow.tos,
        mark: flow.mark,
        port: flow.port,
        receiver: None,
        drift_ppm: flow.drift_ppm,
        jitter: flow.jitter,
        trace: flow.trace,
        name: flow.name.clone(),
    };
    if let Load::Arrivals(arrivals) = &flow.load {
        let first = plan.flows.len();
        let all = build::arrivals(flow, arrivals, experiment, seed)?;
        let there = shared(plan, &one);
        plan.flows.extend(all.into_iter().enumerate().map(|(n, (at, bytes))| plan::Flow {
            name: format!("{}-{}", flow.name, n + 1),
            load: Load::Bytes(bytes),
            at,
            until: None,
            receiver: there.or((n > 0).then_some(first)),
            ..one.clone()
        }));
        return Ok(());
    }
    let mut dice = Rng::named(seed, &format!("flow:{}/start", flow.name));
    let spread = Dist::Uniform { from: Span::ZERO, to: (flow.at.1 - flow.at.0).max(Span::ZERO) };
    for n in 0..flow.count {
        let name = if flow.count == 1 { flow.name.clone() } else { format!("{}-{}", flow.name, n + 1) };
        let wait = if flow.at.1 > flow.at.0 { spread.draw(&mut dice) } else { Span::ZERO };
        let made = plan::Flow { at: flow.at.0 + wait, name, ..one.clone() };
        let receiver = shared(plan, &made);
        plan.flows.push(plan::Flow { receiver, ..made });
    }
    Ok(())
}

/// The flow whose receiver has the port that this one asks for: probes of one server, senders to one port.
fn shared(plan: &Plan, made: &plan::Flow) -> Option<usize> {
    let echoes = |f: &plan::Flow| matches!(f.load, Load::Echo { .. });
    if made.port == 0 && !echoes(made) {
        return None;
    }
    let same = |f: &plan::Flow| {
        (f.to, f.port, echoes(f), f.tcp.is_some()) == (made.to, made.port, echoes(made), made.tcp.is_some())
    };
    plan.flows.iter().position(same)
}

/// Bytes of the headers of a datagram, and of a segment with timestamps, behind an IPv4 header.
const HEADERS: [u64; 2] = [8, 32];
/// Those of IPv4 and of IPv6.
const IP: [u64; 2] = [20, 40];
/// Those of the frame around it.
const ETHERNET: u64 = 14;

/// What is recorded of a flow. With a warm-up its life begins with that's end, if it began before.
pub(super) fn record(experiment: &Experiment, plan: &Plan, flow: &plan::Flow, run: &FlowRun) -> record::Flow {
    let sent = run.sent.clone().unwrap_or_default();
    let received = run.received.clone().unwrap_or_default();
    let tcp = flow.tcp.is_some();
    let start = run.sent.as_ref().map(|s| s.start_s.max(plan.warmup.as_secs_f64()));
    let end =
        sent.end_s.unwrap_or_else(|| flow.until.unwrap_or(plan.duration).min(plan.duration).as_secs_f64());
    // What was given before the end may arrive behind it.
    let ended = tcp && sent.end_s.is_some();
    let end = if ended { end } else { received.last_s.unwrap_or(end).max(end) };
    let life = start.map_or(0.0, |s| end - s);
    let rate = |bytes: u64| if life > 0.0 { bytes as f64 * 8.0 / life } else { 0.0 };
    let headers = HEADERS[usize::from(tcp)] + IP[usize::from(flow.addr.is_ipv6())];
    let group = experiment
        .flows
        .iter()
        .find(|f| flow.name == f.name || flow.name.starts_with(&format!("{}-", f.name)));
    let missing = sent.sent_packets.saturating_sub(received.received_packets);
    // What was sent behind the last datagram that arrived may have been lost, and may be under way: no kernel says.
    let in_flight = received.highest.filter(|_| !tcp).map(|highest| {
        let behind = (sent.first + sent.sent_packets).saturating_sub(highest + 1);
        behind.min(missing)
    });
    record::Flow {
        analysis: if flow.trace { Analysis::of(&passages(run)) } else { None },
        name: flow.name.clone(),
        from: plan.hosts[flow.from].name.clone(),
        to: plan.hosts[flow.to].name.clone(),
        proto: if tcp { "tcp" } else { "udp" }.to_owned(),
        group: group.and_then(|f| f.group.clone()),
        app: None,
        start_s: start,
        end_s: sent.end_s,
        sent_packets: sent.sent_packets,
        received_packets: received.received_packets,
        // Of TCP the retransmits; what is still on the way when the run ends is not lost.
        lost_packets: match tcp {
            true => sent.retransmitted_packets.unwrap_or(0),
            false => missing - in_flight.unwrap_or(0),
        },
        in_flight_packets: in_flight,
        copied_packets: None,
        fragments: None,
        losses: Vec::new(),
        marked_packets: received.marked_packets,
        retransmitted_packets: sent.retransmitted_packets.or(tcp.then_some(0)),
        payload_bytes: Some(received.bytes),
        sent_bytes: Some(sent.sent_bytes + sent.sent_packets * (headers + ETHERNET)),
        received_bytes: Some(received.bytes + received.received_packets * (headers + ETHERNET)),
        goodput_bit_s: rate(received.bytes),
        throughput_bit_s: rate(received.bytes + received.received_packets * headers),
        owd_ms: received.owd_ms,
        rtt_ms: sent.rtt_ms,
        owd_quantiles_ms: Vec::new(),
        jitter_mean_ms: None,
        jitter_max_ms: None,
        jitter_ms: received.jitter_ms,
        dscp: super::super::outcome::code_point(flow.tos),
        late_us: sent.late_us,
    }
}

/// Each datagram of a flow that keeps them.
pub(super) fn passages(run: &FlowRun) -> Vec<Passage> {
    let seconds = |ns: i64| ns as f64 / 1e9;
    let sent = run.sent.iter().flat_map(|s| &s.packets);
    let passage =
        |(at, bytes): &(i64, u32)| Passage { bytes: *bytes, sent_s: seconds(*at), received_s: None };
    let mut all: Vec<Passage> = sent.map(passage).collect();
    for (number, at) in run.received.iter().flat_map(|r| &r.arrivals) {
        if let Some(passage) = all.get_mut(*number as usize) {
            passage.received_s = passage.received_s.or(Some(seconds(*at)));
        }
    }
    all
}

/// How long each transfer of a flow took that makes several, or of one that ended; ms, by the flow's name. None that began while the run
/// warmed up.
pub(super) fn transfers(plan: &Plan, ran: &penstock_kernel::Outcome) -> BTreeMap<String, Vec<f64>> {
    let took = |(flow, run): (&plan::Flow, &FlowRun)| {
        let sent = run.sent.as_ref()?;
        let whole = sent.end_s.map(|end| (end - sent.start_s) * 1e3);
        let all = match flow.load {
            Load::Pages { .. } => sent.transfers_ms.clone(),
            _ if flow.tcp.is_none()
                || !has_an_end(&flow.load)
                || sent.start_s < plan.warmup.as_secs_f64() =>
            {
                Vec::new()
            }
            _ => whole.into_iter().collect(),
        };
        Some((flow.name.clone(), all))
    };
    plan.flows.iter().zip(&ran.flows).filter_map(took).collect()
}

/// The curves of flows.
pub(super) fn series(plan: &Plan, ran: &penstock_kernel::Outcome, all: &mut Series) {
    for (flow, run) in plan.flows.iter().zip(&ran.flows) {
        let object = format!("flow {}", flow.name);
        let mut before = run.sent.as_ref().map_or(0.0, |s| s.start_s.max(0.0));
        for s in run.received.iter().flat_map(|r| &r.samples) {
            if s.time_s <= before {
                continue;
            }
            all.add("", &object, "goodput_bit_s", s.time_s, s.bytes as f64 * 8.0 / (s.time_s - before));
            before = s.time_s;
            if let Some(owd) = s.owd_ms {
                all.add("", &object, "owd_ms", s.time_s, owd);
            }
        }
        for s in run.sent.iter().flat_map(|s| &s.samples) {
            all.add("", &object, "cwnd_packets", s.time_s, f64::from(s.cwnd_packets));
            all.add("", &object, "srtt_ms", s.time_s, s.srtt_ms);
            if let Some(threshold) = s.ssthresh_packets {
                all.add("", &object, "ssthresh_packets", s.time_s, f64::from(threshold));
            }
        }
        for (at, rtt) in run.sent.iter().flat_map(|s| &s.round_trips) {
            all.add("", &object, "rtt_ms", *at as f64 / 1e9, *rtt as f64 / 1e6);
        }
    }
}
