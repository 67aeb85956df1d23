//! Claims VL26 to VL47: a link shared among users and among their applications.

use super::{
    IPERF, IPERF_5002, IPERF_5003, PING_10, PING_20, SHOW_CLASS_D, Verdict, at_limit, connection_rates,
    judge, mbit, server_rates,
};
use crate::Judgement as J;
use crate::evidence::{Evidence, Missing, object};

fn three(e: &Evidence, experiment: &str) -> Result<[f64; 3], Missing> {
    Ok([e.mbit(experiment, "U5", IPERF)?, e.mbit(experiment, "U6", IPERF)?, e.mbit(experiment, "XP", IPERF)?])
}

pub(super) fn vl26(e: &Evidence) -> Verdict {
    let m = three(e, "8.1-user-limits")?;
    let ok = at_limit(m[0], 6.0) && at_limit(m[1], 3.0) && at_limit(m[2], 1.0);
    Ok(J::of(ok, "5.85, 2.88, 0.959 Mbit/s", mbit(&m), "U5, U6, XP"))
}

pub(super) fn vl27(e: &Evidence) -> Verdict {
    let classes = e.tc("8.1-user-limits", SHOW_CLASS_D, 0)?;
    let class = object(&classes, "1:30")?;
    // XP's two runs of about 10 s at 1 Mbit/s.
    let ok = class.bytes > 2_000_000;
    Ok(J::of(
        ok,
        "XP follows 1:30",
        format!("1:30 sent {} bytes, {} packets", class.bytes, class.packets),
        "the document printed its counters before XP's test",
    ))
}

pub(super) fn vl28(e: &Evidence) -> Verdict {
    let (pfifo, sfq) = (three(e, "claim-VL28")?, three(e, "8.1-user-limits")?);
    let ok = at_limit(pfifo[0], 6.0) && at_limit(pfifo[1], 3.0) && at_limit(pfifo[2], 1.0);
    Ok(J::of(ok, "the same limits", format!("{} with pfifo, {} with sfq", mbit(&pfifo), mbit(&sfq)), ""))
}

pub(super) fn vl29(e: &Evidence) -> Verdict {
    let app = e.app("8.2-baseline", "U6", "iperf -c 10.3.31.88 -P 2", 0)?;
    let parts = connection_rates(&app.text);
    let sum_line = app.text.lines().rfind(|l| l.contains("SUM")).ok_or("iperf printed no SUM row")?;
    let sum = connection_rates(&sum_line.replace("SUM", "  0"))
        .first()
        .copied()
        .ok_or("the SUM row has no rate")?;
    let total: f64 = parts.iter().sum();
    let ok = parts.len() == 2 && (sum - total).abs() < 0.11 && parts.iter().all(|p| *p > 0.2 * sum);
    Ok(J::of(ok, "28.0 + 20.8 = 48.7 Mbit/s", format!("{} in sum {sum:.1}", mbit(&parts)), ""))
}

pub(super) fn vl30(e: &Evidence) -> Verdict {
    let (a, b) = (e.mbit("8.2-user-limits", "U5", IPERF)?, e.mbit("8.2-user-limits", "U6", IPERF)?);
    let xp = e.mbit("8.2-user-limits", "XP", IPERF)?;
    let ok = at_limit(a, 10.0) && at_limit(b, 5.0) && at_limit(xp, 3.0);
    Ok(J::of(
        ok,
        "9.46, 4.87 Mbit/s, others under 3",
        mbit(&[a, b, xp]),
        "U5, U6, XP (whose own picture is lost)",
    ))
}

pub(super) fn vl31(e: &Evidence) -> Verdict {
    let (u6, u5) = (e.mbit("8.2-user-ceilings", "U6", IPERF)?, e.mbit("8.2-user-ceilings", "U5", IPERF)?);
    Ok(J::of(
        at_limit(u6, 10.0) && at_limit(u5, 15.0),
        "9.66, 13.9 Mbit/s",
        mbit(&[u6, u5]),
        "U6 rate 5 ceil 10, U5 rate 10 ceil 15",
    ))
}

pub(super) fn vl32(e: &Evidence) -> Verdict {
    let rates: Result<Vec<f64>, Missing> = ["iperf -s -u", "iperf -s -u -p 5002", "iperf -s -u -p 5003"]
        .iter()
        .map(|s| Ok(server_rates(e, "claim-VL32", s)?.into_iter().sum()))
        .collect();
    let rates = rates?;
    // UDP's payload is 1470 of 1512 bytes on the class's account.
    let share = 1470.0 / 1512.0;
    let ok = rates.iter().zip([10.0, 5.0, 3.0]).all(|(m, rate)| *m >= 0.98 * rate * share);
    Ok(J::of(
        ok,
        "10, 5, 3 Mbit/s at least",
        mbit(&rates),
        "all three backlogged under a parent of 18mbit; payload of 1470 in 1512 bytes",
    ))
}

/// Mean round trips without and with traffic control on an idle path: not lower, and higher by well under 10 %.
pub(super) fn latency(
    e: &Evidence,
    experiment: &str,
    without: (&str, &str, usize),
    with: (&str, &str, usize),
    published: &str,
) -> Verdict {
    let a = e.rtt(experiment, without.0, without.1, without.2)?;
    let b = e.rtt(experiment, with.0, with.1, with.2)?;
    let ok = b >= a * 0.99 && b < a * 1.07;
    let note = "the two pings draw their own forwarding delays; within 1 % counts as not lower";
    Ok(J::of(ok, published, format!("{a:.3} to {b:.3} ms"), note))
}

pub(super) fn vl34(e: &Evidence) -> Verdict {
    let x = "9.1-application-limits";
    let m = [e.mbit(x, "U5", IPERF)?, e.mbit(x, "U5", IPERF_5002)?, e.mbit(x, "U5", IPERF_5003)?];
    let ok = at_limit(m[0], 6.0) && at_limit(m[1], 3.0) && at_limit(m[2], 1.0);
    Ok(J::of(ok, "5.89, 2.89, 0.983 Mbit/s", mbit(&m), "ports 5001, 5002, 5003"))
}

/// Bytes of the classes 1:10, 1:20, 1:30 at the end of an experiment.
fn class_bytes(e: &Evidence, experiment: &str) -> Result<[u64; 3], Missing> {
    let classes = e.tc(experiment, SHOW_CLASS_D, 0)?;
    Ok([object(&classes, "1:10")?.bytes, object(&classes, "1:20")?.bytes, object(&classes, "1:30")?.bytes])
}

/// Whether the bytes of three classes match 10 s runs at the throughputs given (headers, acknowledgements and the rest
/// of the path's traffic within 15 %).
fn follows(bytes: [u64; 3], rates_mbit: [f64; 3]) -> bool {
    bytes.iter().zip(rates_mbit).all(|(b, m)| {
        let expected = m * 1e6 / 8.0 * 10.0;
        (*b as f64) > 0.95 * expected && (*b as f64) < 1.25 * expected
    })
}

pub(super) fn vl35(e: &Evidence) -> Verdict {
    let x = "9.1-application-limits";
    let bytes = class_bytes(e, x)?;
    let m = [e.mbit(x, "U5", IPERF)?, e.mbit(x, "U5", IPERF_5002)?, e.mbit(x, "U5", IPERF_5003)?];
    Ok(J::of(
        follows(bytes, m),
        "port 5003 in 1:30",
        format!("1:10 {}, 1:20 {}, 1:30 {} bytes", bytes[0], bytes[1], bytes[2]),
        "",
    ))
}

pub(super) fn vl36(e: &Evidence) -> Verdict {
    let (a, b) =
        (e.rtt("9.1-baseline", "U5", PING_10, 0)?, e.rtt("9.1-application-limits", "U5", PING_10, 0)?);
    let ok = b >= a * 0.95 && b < a * 1.10;
    Ok(J::of(
        ok,
        "1.281 to 1.329 ms",
        format!("{a:.3} to {b:.3} ms"),
        "two runs of their own, ten pings each: within 5 % counts as not lower",
    ))
}

pub(super) fn vl37(e: &Evidence) -> Verdict {
    let x = "9.2-application-limits";
    let p5005 = "iperf -c 10.3.31.88 -p 5005";
    let mut m = Vec::new();
    for host in ["U5", "U6"] {
        m.extend([e.mbit(x, host, IPERF)?, e.mbit(x, host, IPERF_5002)?, e.mbit(x, host, p5005)?]);
    }
    let ok = m.chunks(3).all(|c| at_limit(c[0], 6.0) && at_limit(c[1], 3.0) && at_limit(c[2], 1.0));
    Ok(J::of(
        ok,
        "5.90, 2.92, 0.988; 5.92, 2.98, 0.892 Mbit/s",
        mbit(&m),
        "U5 then U6, ports 5001, 5002, 5005",
    ))
}

pub(super) fn vl38(e: &Evidence) -> Verdict {
    let (a, b) = (e.rtt("9.2-latency", "U6", PING_20, 0)?, e.rtt("9.2-latency", "U5", PING_20, 0)?);
    // The application limits at work, against the same router forwarding all it can without traffic control.
    let of = |experiment: &str| -> Result<f64, Missing> {
        let share = e.run(experiment)?.processor.get("U4").copied();
        share.ok_or_else(|| format!("{experiment}: U4's processor was not measured"))
    };
    let (limited, free) = (of("9.2-application-limits")?, of("5-bandwidth")?);
    let ok = b >= a * 0.95 && b < a * 1.10 && limited < 0.5 * free;
    let measured = format!(
        "{a:.3} to {b:.3} ms; U4's processor busy {:.1} % while limiting, {:.1} % while forwarding without limits",
        limited * 100.0,
        free * 100.0
    );
    let note = "the processor's cost is the fitted one per packet; what tc adds to it is not modelled";
    Ok(J::of(ok, "1.953 to 2.072 ms, little CPU", measured, note))
}

/// Throughputs of ports 5001 and 5002 over the time both were busy in a run of `-t 20 -i 2`, without the first 4 s.
fn shares(e: &Evidence, experiment: &str) -> Result<(f64, f64), Missing> {
    let mean = |run: &str| -> Result<f64, Missing> {
        let app = e.app(experiment, "U5", run, 0)?;
        let rows: Vec<f64> = app
            .intervals
            .iter()
            .filter(|(from, to, _)| *from >= 4.0 && *to <= 20.1 && to - from < 3.0)
            .map(|r| r.2 / 1e6)
            .collect();
        if rows.is_empty() {
            return Err(format!("{experiment}: `{run}` printed no rows"));
        }
        Ok(rows.iter().sum::<f64>() / rows.len() as f64)
    };
    Ok((mean("iperf -c 10.3.31.88 -t 20 -i 2")?, mean("iperf -c 10.3.31.88 -p 5002 -t 20 -i 2")?))
}

pub(super) fn vl39(e: &Evidence) -> Verdict {
    let (equal, different) = (shares(e, "claim-VL39-equal")?, shares(e, "claim-VL39-different")?);
    let shared = (equal.0 - equal.1).abs() < 0.4;
    let first = different.0 > 2.7 && different.1 < 2.2;
    let measured = format!(
        "equal prio {:.2} and {:.2}, prio 0 and 1 {:.2} and {:.2} Mbit/s",
        equal.0, equal.1, different.0, different.1
    );
    Ok(J::of(
        shared && first,
        "ports give rates only; marks with prio give preference",
        measured,
        "two classes rate 2mbit ceil 3mbit under 5mbit, both backlogged",
    ))
}

pub(super) fn vl40(e: &Evidence) -> Verdict {
    let x = "10.1-marks";
    let bytes = class_bytes(e, x)?;
    let m = [e.mbit(x, "U5", IPERF)?, e.mbit(x, "U5", IPERF_5002)?, e.mbit(x, "U5", IPERF_5003)?];
    Ok(J::of(
        follows(bytes, m),
        "counters follow the port",
        format!("1:10 {}, 1:20 {}, 1:30 {} bytes", bytes[0], bytes[1], bytes[2]),
        "",
    ))
}

pub(super) fn marks(e: &Evidence, experiment: &str, published: &str) -> Verdict {
    let m = [
        e.mbit(experiment, "U5", IPERF)?,
        e.mbit(experiment, "U5", IPERF_5002)?,
        e.mbit(experiment, "U5", IPERF_5003)?,
    ];
    let ok = at_limit(m[0], 6.0) && at_limit(m[1], 8.0) && at_limit(m[2], 1.0);
    Ok(J::of(ok, published, mbit(&m), "ports 5001 (6), 5002 (rate 4, ceil 8), 5003 (1)"))
}

/// Mean of a command's rows between two moments of its own clock, Mbit/s.
fn rows(e: &Evidence, run: &str, from: f64, to: f64) -> Result<f64, Missing> {
    let app = e.app("10.2-priority-5mbit", "U5", run, 0)?;
    let picked: Vec<f64> = app
        .intervals
        .iter()
        .filter(|r| r.0 >= from - 0.01 && r.1 <= to + 0.11 && r.1 - r.0 < 3.0)
        .map(|r| r.2 / 1e6)
        .collect();
    if picked.is_empty() {
        return Err(format!("`{run}` printed no rows between {from} and {to} s"));
    }
    Ok(picked.iter().sum::<f64>() / picked.len() as f64)
}

const LONG_5002: &str = "iperf -c 10.3.31.88 -p 5002 -t 30 -i 2";
const SHORT_5001: &str = "iperf -c 10.3.31.88 -p 5001 -t 10 -i 1";

pub(super) fn vl43(e: &Evidence) -> Verdict {
    let m = rows(e, LONG_5002, 2.0, 10.0)?;
    Ok(J::of(
        (m - 3.0).abs() < 0.25,
        "3.01, 2.98, 3.08 Mbit/s",
        mbit(&[m]),
        "mean of the rows from 2 to 10 s",
    ))
}

pub(super) fn vl44(e: &Evidence) -> Verdict {
    let (p5001, p5002) = (rows(e, SHORT_5001, 2.0, 9.0)?, rows(e, LONG_5002, 12.0, 20.0)?);
    let (first, second) = shares(e, "claim-VL39-different")?;
    let sum = p5001 + p5002;
    let ok = (4.4..5.2).contains(&sum) && p5002 < 2.75 && p5001 > 2.0 && first > 2.7 && second < 2.2;
    let measured =
        format!("{p5001:.2} and {p5002:.2} Mbit/s as printed, {first:.2} and {second:.2} with prio 0 and 1");
    let note = "the printed commands give both classes prio 1, so the spare 1mbit must be shared (2.5 each); 3 and 2 need different prio, as the sections before have them";
    Ok(J::of(ok, "3.0 and 2.0 Mbit/s", measured, note))
}

pub(super) fn vl45(e: &Evidence) -> Verdict {
    let x = "10.2-priority-5mbit";
    let printed = rows(e, LONG_5002, 24.0, 30.0)?;
    // What the class took in, headers included, in seconds of the run (the client started at 1 s, 5001 ended by 22 s).
    let (both, alone) = (e.class_mbit(x, "1:20", 14.0, 21.0)?, e.class_mbit(x, "1:20", 23.0, 30.0)?);
    let measured = format!(
        "class 1:20 takes {both:.2} Mbit/s beside 5001 and {alone:.2} after it; iperf's rows {printed:.2}"
    );
    let note = "judged on the class: iperf's rows tell when the socket took 8 KB writes (the study's last row, too, is 2.56)";
    Ok(J::of((alone - 3.0).abs() < 0.15 && both < 2.75, "3.05 Mbit/s from 24 s on", measured, note))
}

pub(super) fn vl46(e: &Evidence) -> Verdict {
    let (equal, different) = (shares(e, "claim-VL39-equal")?, shares(e, "claim-VL39-different")?);
    let ok = (equal.0 - equal.1).abs() < 0.4 && different.0 > 2.7 && different.1 < 2.2;
    let measured = format!(
        "prio 1 and 1: {:.2} and {:.2}; prio 0 and 1: {:.2} and {:.2} Mbit/s",
        equal.0, equal.1, different.0, different.1
    );
    let note = "the document contradicts itself: its commands give both classes prio 1; judged on what the configuration must do (share the surplus) and on the same with different prio (preference)";
    Ok(J::of(ok, "1:10 has priority over 1:20", measured, note))
}

pub(super) fn vl47(e: &Evidence) -> Verdict {
    let parts = ["VL26", "VL31", "VL34", "VL44"].map(|id| (id, judge(id, e)));
    let ok = parts.iter().all(|(_, j)| j.holds());
    let measured: Vec<String> = parts.iter().map(|(id, j)| format!("{id} {}", j.verdict)).collect();
    Ok(J::of(
        ok,
        "no monopoly, preference, less need to buy bandwidth",
        measured.join(", "),
        "the summary of those four",
    ))
}
