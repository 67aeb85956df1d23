//! Scores: what a run's figures mean for people, by published definitions. `docs/scores.md` tells each in words.

pub mod emodel;
#[cfg(test)]
mod tests;

use crate::quantile::{Distribution, of_sorted};
use crate::record::{Flow, Record};
use crate::series::Series;
use emodel::{Codec, Path};
use serde::{Deserialize, Serialize};

/// The scores of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Scores {
    /// Of each echo probe that ran while there was load.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub latency: Vec<Latency>,
    /// Of each flow like a telephone call.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub calls: Vec<Call>,
}

impl Scores {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.latency.is_empty() && self.calls.is_empty()
    }
}

/// Latency under load as an echo probe saw it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// The program or flow that probed.
    pub probe: String,
    /// Round trip without load, ms: the median of the probes outside of load; of fewer than five the least of all.
    pub unloaded_ms: f64,
    /// Round trips under load.
    pub loaded_ms: Distribution,
    /// Mean under load less `unloaded_ms`; not below 0.
    pub increase_ms: f64,
    /// Bufferbloat: `A+` … `F` ([`grade`]).
    pub grade: String,
    /// Round trips per minute under load (draft-ietf-ippm-responsiveness).
    pub rpm: f64,
    /// The quickest kind of game that it is good enough for ([`game`]).
    pub game: String,
    /// Whether it is good enough for a conference ([`conference`]).
    pub conference: String,
}

/// What a telephone call was worth.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Call {
    /// The flow.
    pub flow: String,
    /// E-model rating R, 0..=93.2 (G.107).
    pub r: f64,
    /// Mean opinion score, 1..=4.5.
    pub mos: f64,
    /// Category of G.109: `best`, `high`, `medium`, `low`, `poor`, `not recommended`.
    pub quality: String,
    /// Mouth to ear, ms: 20 of packetisation, and until the packet is played.
    pub delay_ms: f64,
    /// Share of the packets that were lost or came too late to be played.
    pub loss: f64,
}

/// The grade of an increase of latency under load, ms (DSLReports, "Bufferbloat Grades": below 5, 30, 60, 200, 400).
pub fn grade(increase_ms: f64) -> &'static str {
    match increase_ms {
        x if x < 5.0 => "A+",
        x if x < 30.0 => "A",
        x if x < 60.0 => "B",
        x if x < 200.0 => "C",
        x if x < 400.0 => "D",
        _ => "F",
    }
}

/// The mean of those that are not above the 95th percentile (draft-ietf-ippm-responsiveness: single-sided trimmed mean). `None` without samples.
pub fn trimmed_mean(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = *sorted.last()?;
    let limit = of_sorted(&sorted, 0.95).min(last);
    let kept = &sorted[..sorted.partition_point(|&x| x <= limit)];
    Some(kept.iter().sum::<f64>() / kept.len() as f64)
}

/// Round trips per minute from those of new connections (`foreign`) and of the connections that make the load (`own`), ms: the mean of both
/// sides' responsiveness. Without `own` it is that of `foreign` alone.
///
/// draft-ietf-ippm-responsiveness-09, 5.3.1.1: `Foreign_Responsiveness` is 60,000 over the mean of TM(tcp_f), TM(tls_f) and TM(http_f), which each take one round trip;
/// `Loaded_Responsiveness` is 60,000 over TM(http_l). Without TLS (5.3.1.2) it is the same here.
pub fn rpm(foreign: &[f64], own: &[f64]) -> Option<f64> {
    let each = |latency: f64| (latency > 0.0).then(|| 60_000.0 / latency);
    let foreign = each(trimmed_mean(foreign)?)?;
    let loaded = trimmed_mean(own).map_or(Some(foreign), each)?;
    Some((foreign + loaded) / 2.0)
}

/// The quickest kind of game that lasts with these round trips: up to 100 ms first person (shooting, racing), 500 ms third person (sports, role playing),
/// 1000 ms all-seeing (strategy), at the 95th percentile (Claypool and Claypool, "Latency and player actions in online games", CACM 49(11), 2006).
pub fn game(rtt_p95_ms: f64) -> &'static str {
    match rtt_p95_ms {
        x if x <= 100.0 => "first person",
        x if x <= 500.0 => "third person",
        x if x <= 1000.0 => "strategy",
        _ => "none",
    }
}

/// Whether conversation is easy: one way up to 150 ms `good`, up to 400 ms `acceptable` (G.114), both with at most 1 % of loss (G.1010 table I.2, videophone).
pub fn conference(one_way_ms: f64, loss: f64) -> &'static str {
    match () {
        () if loss > 0.01 || one_way_ms > 400.0 => "poor",
        () if one_way_ms > 150.0 => "acceptable",
        () => "good",
    }
}

/// Least probes for a figure.
const LEAST: usize = 5;
/// Payload from which on a TCP connection is load, bytes.
const LOAD_BYTES: u64 = 64 << 10;
/// Rate from which on other flows are load, bit/s.
const LOAD_RATE: f64 = 1e6;
/// Share of the greatest load that still is load.
const LOAD_SHARE: f64 = 0.1;

/// The scores of a run.
pub fn of(record: &Record, series: &Series) -> Scores {
    let bulk: Vec<&Flow> = record.flows.iter().filter(|f| is_load(f)).collect();
    let load = Load::of(&bulk, series);
    let mut scores = Scores::default();
    for app in &record.apps {
        let points = series.points(&app.host, &app.name, "rtt_ms");
        let loss = || share(app.lost_packets, app.sent_packets);
        scores.latency.extend(latency(&app.name, &app.host, points, loss(), &load, &bulk, series));
    }
    for flow in record.flows.iter().filter(|f| f.app.is_none() && f.rtt_ms.is_some()) {
        let points = series.points("", &format!("flow {}", flow.name), "rtt_ms");
        let loss = share(Some(flow.lost_packets), Some(flow.sent_packets));
        scores.latency.extend(latency(&flow.name, &flow.from, points, loss, &load, &bulk, series));
    }
    scores.calls = record.flows.iter().filter_map(|f| call(f, record.duration_s)).collect();
    scores
}

fn share(of: Option<u64>, all: Option<u64>) -> f64 {
    of.zip(all).filter(|(_, all)| *all > 0).map_or(0.0, |(of, all)| of as f64 / all as f64)
}

fn is_load(flow: &Flow) -> bool {
    match flow.proto.as_str() {
        "tcp" => flow.payload_bytes.is_none_or(|bytes| bytes >= LOAD_BYTES),
        "icmp" => false,
        _ => flow.rtt_ms.is_none() && flow.goodput_bit_s >= LOAD_RATE,
    }
}

/// When there was load.
struct Load {
    /// Stretches of time, seconds.
    stretches: Vec<(f64, f64)>,
}

impl Load {
    fn of(bulk: &[&Flow], series: &Series) -> Load {
        let curves = bulk.iter().map(|f| series.points("", &format!("flow {}", f.name), "goodput_bit_s"));
        let sum = crate::live::sum(curves);
        let least = sum.iter().map(|p| p.1).fold(0.0f64, f64::max) * LOAD_SHARE;
        let mut stretches: Vec<(f64, f64)> = Vec::new();
        for pair in sum.windows(2).filter(|w| w[1].1 > least) {
            // A sample tells of the time since the one before.
            let (from, to) = (pair[0].0, pair[1].0);
            match stretches.last_mut().filter(|s| s.1 >= from) {
                Some(last) => last.1 = to,
                None => stretches.push((from, to)),
            }
        }
        Load { stretches }
    }
    /// Whether there was any between two instants.
    fn any(&self, from: f64, to: f64) -> bool {
        let at = self.stretches.partition_point(|s| s.1 <= from);
        self.stretches.get(at).is_some_and(|s| s.0 < to)
    }
}

fn latency(
    probe: &str,
    host: &str,
    points: &[(f64, f64)],
    loss: f64,
    load: &Load,
    bulk: &[&Flow],
    series: &Series,
) -> Option<Latency> {
    let under = |p: &&(f64, f64)| load.any(p.0 - p.1 / 1000.0, p.0);
    let mut loaded: Vec<f64> = points.iter().filter(under).map(|p| p.1).collect();
    if loaded.len() < LEAST {
        return None;
    }
    let mut idle: Vec<f64> = points.iter().filter(|p| !under(p)).map(|p| p.1).collect();
    idle.sort_by(f64::total_cmp);
    let least = points.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    let unloaded_ms = if idle.len() >= LEAST { of_sorted(&idle, 0.5) } else { least };
    // The connections of the probe's own machine, or else all.
    let own = |f: &&&Flow| f.proto == "tcp" && (f.from == host || f.to == host);
    let mut near: Vec<&&Flow> = bulk.iter().filter(own).collect();
    if near.is_empty() {
        near = bulk.iter().filter(|f| f.proto == "tcp").collect();
    }
    let srtt: Vec<f64> = near
        .into_iter()
        .flat_map(|f| series.points("", &format!("flow {}", f.name), "srtt_ms"))
        .filter(|p| load.any(p.0 - p.1 / 1000.0, p.0))
        .map(|p| p.1)
        .collect();
    let rpm = rpm(&loaded, &srtt)?;
    let loaded_ms = Distribution::of(&mut loaded)?;
    let increase_ms = (loaded_ms.mean - unloaded_ms).max(0.0);
    Some(Latency {
        probe: probe.to_owned(),
        unloaded_ms,
        loaded_ms,
        increase_ms,
        grade: grade(increase_ms).to_owned(),
        rpm,
        game: game(loaded_ms.p95).to_owned(),
        conference: conference(loaded_ms.p95 / 2.0, loss).to_owned(),
    })
}

/// Time to fill a packet with voice, ms.
const PACKETISATION_MS: f64 = 20.0;

/// The score of a flow that is like a call: datagrams every 10 to 60 ms on the average, at most 200 kbit/s.
fn call(flow: &Flow, duration_s: f64) -> Option<Call> {
    let owd = flow.owd_ms.filter(|_| flow.proto == "udp" && flow.rtt_ms.is_none())?;
    let long = flow.end_s.unwrap_or(duration_s) - flow.start_s?;
    let gap_ms = long * 1000.0 / flow.sent_packets.max(1) as f64;
    if flow.sent_packets < 50 || !(10.0..=60.0).contains(&gap_ms) || flow.goodput_bit_s > 200e3 {
        return None;
    }
    let lost = flow.lost_packets as f64 / flow.sent_packets as f64;
    // The receiver plays all packets after the same time. Which one is best, it is taken to know: less costs packets that come too late.
    let known = flow.owd_quantiles_ms.iter().zip(crate::quantile::SHARES).map(|(d, q)| (*d, q));
    let coarse = [(owd.p95, 0.95), (owd.p99, 0.99), (owd.max, 1.0)];
    let best = known.chain(coarse).map(|(deadline, there)| {
        let path = Path {
            delay_ms: PACKETISATION_MS + deadline,
            loss: 1.0 - (1.0 - lost) * there,
            burst: 1.0,
            codec: Codec::G711_PLC,
        };
        (emodel::rating(&path), path)
    });
    let (r, path) = best.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let r = r.max(0.0);
    Some(Call {
        flow: flow.name.clone(),
        r,
        mos: emodel::mos(r),
        quality: emodel::category(r).to_owned(),
        delay_ms: path.delay_ms,
        loss: path.loss,
    })
}
