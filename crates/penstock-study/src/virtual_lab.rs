//! The judge of the virtual lab's claims VL1 to VL47.
//!
//! Source: Kanwar Pal Singh, "Linux Traffic Control in Virtual Environment", University of Alberta, 2011.
//! Each judge reads the runs of the experiments and nothing else. "At most R" is judged on what reached the other end, in frames as the
//! qdisc counts them. iperf's own figure counts what the sender's socket took (the study's own 954 Kbits/sec under 800kbit): it is compared
//! with the printed ones, whose scatter bounds it.

mod disciplines;
mod sharing;

use super::evidence::{Evidence, Missing};
use super::figures::{Figure, chart, curve};
use super::{Judgement, Judgement as J};
use penstock_measure::number::Unit;
use penstock_measure::plot::Stroke;

type Verdict = Result<Judgement, Missing>;

/// iperf's plain run towards U1.
const IPERF: &str = "iperf -c 10.3.31.88";
const IPERF_5002: &str = "iperf -c 10.3.31.88 -p 5002";
const IPERF_5003: &str = "iperf -c 10.3.31.88 -p 5003";
const IPERF_INTERVALS: &str = "iperf -c 10.3.31.88 -t 10 -i 1";
const PING_20: &str = "ping 10.3.31.88 -c 20";
const PING_10: &str = "ping 10.3.31.88 -c 10";
const SHOW_QDISC: &str = "tc -s qdisc ls dev eth0";
const SHOW_CLASS: &str = "tc -s class show dev eth0";
const SHOW_CLASS_D: &str = "tc -s -d class show dev eth0";

/// What the document's equal runs differ by, as a share: 9.96 and 9.50 Mbit/s of the same command in section 7.
const SCATTER: f64 = 0.05;
/// What of a limit TCP must fill to be "held at" it, in frames: loss and starting cost the rest. The document's least is 13.9 of 15 in
/// payload, which are 14.5 in frames.
const FILLED: f64 = 0.95;
/// Mean round trips that the document printed of idle paths, ms: without and with the Cisco routers.
const DIRECT_RTT: std::ops::RangeInclusive<f64> = 1.22..=1.415;
const ROUTERS_RTT: std::ops::RangeInclusive<f64> = 1.865..=2.086;

/// Judges one claim.
pub fn judge(id: &str, e: &Evidence) -> Judgement {
    let verdict = match id {
        "VL1" => disciplines::vl1(e),
        "VL2" => disciplines::vl2(e),
        "VL3" => disciplines::vl3(e),
        "VL4" => disciplines::vl4(e),
        "VL5" => disciplines::vl5(e),
        "VL6" => disciplines::vl6(e),
        "VL7" => disciplines::vl7(e),
        "VL8" => disciplines::vl8(e),
        "VL9" => disciplines::vl9(e),
        "VL10" => disciplines::vl10(e),
        "VL11" => disciplines::vl11(e),
        "VL12" => disciplines::vl12(e),
        "VL13" => disciplines::vl13(e),
        "VL14" => disciplines::vl14(e),
        "VL15" => disciplines::vl15(e),
        "VL16" => disciplines::vl16(e),
        "VL17" => disciplines::vl17(e),
        "VL18" => disciplines::vl18(e),
        "VL19" => disciplines::vl19(e),
        "VL20" => disciplines::vl20(e),
        "VL21" => disciplines::vl21(e),
        "VL22" => disciplines::vl22(e),
        "VL23" => disciplines::vl23(e),
        "VL24" => disciplines::vl24(e),
        "VL25" => disciplines::vl25(e),
        "VL26" => sharing::vl26(e),
        "VL27" => sharing::vl27(e),
        "VL28" => sharing::vl28(e),
        "VL29" => sharing::vl29(e),
        "VL30" => sharing::vl30(e),
        "VL31" => sharing::vl31(e),
        "VL32" => sharing::vl32(e),
        "VL33" => {
            let (without, with) = (("8.2-latency", "U6", PING_10, 0), ("8.2-latency", "U6", PING_10, 1));
            sharing::latency(e, without, with, "1.992 to 2.016 ms")
        }
        "VL34" => sharing::vl34(e),
        "VL35" => sharing::vl35(e),
        "VL36" => {
            let (without, with) =
                (("9.1-baseline", "U5", PING_10, 0), ("9.1-application-limits", "U5", PING_10, 0));
            sharing::latency(e, without, with, "1.281 to 1.329 ms")
        }
        "VL37" => sharing::vl37(e),
        "VL38" => sharing::vl38(e),
        "VL39" => sharing::vl39(e),
        "VL40" => sharing::vl40(e),
        "VL41" => sharing::marks(e, "10.1-marks", "5.83, 7.66, 0.971 Mbit/s"),
        "VL42" => sharing::marks(e, "10.2-marks", "5.79, 7.64, 0.999 Mbit/s"),
        "VL43" => sharing::vl43(e),
        "VL44" => sharing::vl44(e),
        "VL45" => sharing::vl45(e),
        "VL46" => sharing::vl46(e),
        "VL47" => sharing::vl47(e),
        _ => Err(format!("no judge for {id}")),
    };
    verdict.unwrap_or_else(J::open)
}

fn mbit(values: &[f64]) -> String {
    let parts: Vec<String> = values.iter().map(|v| format!("{v:.3}")).collect();
    format!("{} Mbit/s", parts.join(", "))
}

/// A client's TCP under a limit.
#[derive(Clone, Copy, Debug)]
struct Limited {
    /// The limit, Mbit/s.
    limit: f64,
    /// What reached the other end, Mbit/s of frames.
    reached: f64,
    /// The same beyond the burst that a bucket lets go at once, Mbit/s.
    beyond_burst: f64,
    /// iperf's figure, Mbit/s.
    printed: f64,
}

impl Limited {
    /// Whether what reached the other end is no more than the limit.
    fn at_most(&self) -> bool {
        self.beyond_burst <= self.limit
    }
    /// Whether it is also close below.
    fn held(&self) -> bool {
        self.at_most() && self.reached >= FILLED * self.limit
    }
    /// Whether iperf's figure is one that the document could have printed: within its range for this limit, widened by its scatter.
    fn like(&self, least: f64, most: f64) -> bool {
        (least * (1.0 - SCATTER)..=most * (1.0 + SCATTER)).contains(&self.printed)
    }
    /// Both.
    fn met(&self) -> bool {
        let (least, most) = figures(self.limit);
        self.held() && self.like(least, most)
    }
}

/// The least and the greatest figure that the document printed of TCP under a limit, Mbit/s.
fn figures(limit: f64) -> (f64, f64) {
    match limit {
        0.22 => (0.215, 0.215),
        1.0 => (0.892, 0.999),
        3.0 => (2.88, 2.98),
        5.0 => (4.87, 4.87),
        6.0 => (5.79, 5.92),
        8.0 => (7.64, 7.66),
        10.0 => (9.43, 9.96),
        15.0 => (13.9, 13.9),
        _ => (f64::NAN, f64::NAN),
    }
}

/// A command's TCP under a limit in Mbit/s.
fn limited(e: &Evidence, experiment: &str, host: &str, run: &str, limit: f64) -> Result<Limited, Missing> {
    let (bits, seconds) = e.reached(experiment, host, run)?;
    // A class's bucket: 10 ms of its rate and a packet, and as much again for the one that its parent lends.
    let burst = 2.0 * (limit * 1e6 * 0.010 + 8.0 * 1600.0);
    Ok(Limited {
        limit,
        reached: bits / seconds / 1e6,
        beyond_burst: (bits - burst) / seconds / 1e6,
        printed: e.mbit(experiment, host, run)?,
    })
}

/// What reached the network and what iperf printed.
fn both(all: &[Limited]) -> String {
    let reached: Vec<f64> = all.iter().map(|l| l.reached).collect();
    let printed: Vec<f64> = all.iter().map(|l| l.printed).collect();
    format!("iperf prints {}; {} of frames arrive", mbit(&printed), mbit(&reached))
}

/// Bandwidth column (Mbit/s) of the connections' last rows in iperf's text, without the SUM.
fn connection_rates(text: &str) -> Vec<f64> {
    let mut last: Vec<(String, f64)> = Vec::new();
    for line in text.lines().filter(|l| l.contains("bits/sec") && !l.contains("SUM")) {
        let Some((id, rest)) = line.split_once(']') else { continue };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let Some(at) = words.iter().position(|w| w.ends_with("bits/sec")) else { continue };
        let Some(value) = at.checked_sub(1).and_then(|i| words[i].parse::<f64>().ok()) else { continue };
        let scale = match words[at] {
            "Mbits/sec" => 1.0,
            "Kbits/sec" => 1e-3,
            "Gbits/sec" => 1e3,
            _ => 1e-6,
        };
        match last.iter_mut().find(|(i, _)| i == id) {
            Some(entry) => entry.1 = value * scale,
            None => last.push((id.to_owned(), value * scale)),
        }
    }
    last.into_iter().map(|(_, v)| v).collect()
}

/// Rates that an iperf server on U1 printed, Mbit/s, one a connection.
fn server_rates(e: &Evidence, experiment: &str, run: &str) -> Result<Vec<f64>, Missing> {
    let app = e.app(experiment, "U1", run, 0)?;
    Ok(connection_rates(&app.text))
}

/// Section 5's two graphs: bandwidth and latency without and with the Cisco routers.
pub fn pictures(e: &Evidence) -> Vec<Figure> {
    const ROWS: &str = "iperf -c 10.3.31.88 -t 20 -i 2";
    let mut bandwidth = chart("Section 5: bandwidth", Unit::BitPerSecond, (0.0, 20.0), " s");
    let mut latency = chart("Section 5: round trip", Unit::Millisecond, (0.0, 20.0), " pings");
    for (name, part) in [("without routers", 4), ("with routers", 5)] {
        if let Ok(app) = e.app(&format!("{part}-bandwidth"), "U5", ROWS, 0) {
            let rows = app.intervals.iter().map(|r| (r.1.round(), r.2)).collect();
            curve(&mut bandwidth, name, Stroke::Line, rows);
        }
        if let Ok(app) = e.app(&format!("{part}-ping"), "U5", PING_20, 0) {
            let trips = app.rtts.iter().enumerate().map(|(n, r)| (n as f64 + 1.0, r.1)).collect();
            curve(&mut latency, name, Stroke::Line, trips);
        }
    }
    vec![Figure::of("bandwidth", &bandwidth), Figure::of("latency", &latency)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_the_last_row_of_each_connection() {
        let text = "[  3]  0.0- 1.0 sec   120 KBytes   983 Kbits/sec\n[  4]  0.0-10.0 sec  33.4 MBytes  28.0 Mbits/sec\n[  3]  0.0-10.0 sec  24.9 MBytes  20.8 Mbits/sec\n\
            [SUM]  0.0-10.0 sec  58.2 MBytes  48.7 Mbits/sec\n";
        assert_eq!(connection_rates(text), [20.8, 28.0]);
    }

    /// TCP of so many Mbit/s of frames for 10 s under a limit, with iperf's figure.
    fn tcp(limit: f64, reached: f64, printed: f64) -> Limited {
        use crate::evidence::{AppRun, FlowRun, Run};
        let app = AppRun {
            host: "U5".to_owned(),
            run: IPERF.to_owned(),
            name: "U5 iperf".to_owned(),
            throughput_bit_s: Some(printed * 1e6),
            ..AppRun::default()
        };
        let bytes = (reached * 1e6 * 10.0 / 8.0) as u64;
        let flow = FlowRun {
            app: Some("U5 iperf".to_owned()),
            frame_bytes: (bytes, bytes),
            life: (1.0, 11.0),
            ..FlowRun::default()
        };
        let mut e = Evidence::default();
        let run = Run { apps: vec![app], flows: vec![flow], ..Run::default() };
        e.runs.insert("x".to_owned(), run.into());
        limited(&e, "x", "U5", IPERF, limit).unwrap()
    }

    #[test]
    fn at_most_is_what_reached_the_other_end() {
        // iperf's own figure above the limit is the socket's; what arrived counts.
        assert!(tcp(10.0, 9.96, 10.04).met());
        assert!(!tcp(10.0, 10.1, 9.9).at_most());
        // A burst of the bucket is no excess, more than that is.
        assert!(tcp(1.0, 1.003, 0.96).at_most() && !tcp(1.0, 1.006, 0.96).at_most());
        // Far below a limit is not held at it.
        assert!(!tcp(10.0, 9.0, 9.6).held());
        // A figure that the document could not have printed.
        assert!(!tcp(10.0, 9.96, 10.6).met() && !tcp(6.0, 5.9, 5.4).met());
    }

    #[test]
    fn without_runs_every_claim_is_open() {
        let e = Evidence::default();
        for n in 1..=47 {
            let j = judge(&format!("VL{n}"), &e);
            // The summary claim fails with its parts instead.
            assert!(!j.holds(), "VL{n}");
        }
    }
}
