//! Claims VL26 to VL47: a link shared among users and among their applications.

use super::{
    IPERF, IPERF_5002, IPERF_5003, Limited, PING_20, SCATTER, SHOW_CLASS_D, Verdict, both, connection_rates,
    judge, limited, mbit, server_rates,
};
use crate::Judgement as J;
use crate::evidence::{Evidence, Missing, object};

/// Users' runs of plain iperf under their limits.
fn users(e: &Evidence, experiment: &str, limits: &[(&str, f64)]) -> Result<Vec<Limited>, Missing> {
    limits.iter().map(|(host, limit)| limited(e, experiment, host, IPERF, *limit)).collect()
}
/// U5's runs to ports under their limits.
fn ports(e: &Evidence, experiment: &str, limits: &[(&str, f64)]) -> Result<Vec<Limited>, Missing> {
    limits.iter().map(|(run, limit)| limited(e, experiment, "U5", run, *limit)).collect()
}

const USERS: [(&str, f64); 3] = [("U5", 6.0), ("U6", 3.0), ("XP", 1.0)];
const PORTS: [(&str, f64); 3] = [(IPERF, 6.0), (IPERF_5002, 3.0), (IPERF_5003, 1.0)];

pub(super) fn vl26(e: &Evidence) -> Verdict {
    let all = users(e, "8.1-user-limits", &USERS)?;
    Ok(J::of(all.iter().all(Limited::met), "5.85, 2.88, 0.959 Mbit/s", both(&all), "U5, U6, XP"))
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
    let (pfifo, sfq) = (users(e, "claim-VL28", &USERS)?, users(e, "8.1-user-limits", &USERS)?);
    let ok = pfifo.iter().chain(&sfq).all(Limited::held);
    let measured = format!("with pfifo {}; with sfq {}", both(&pfifo), both(&sfq));
    Ok(J::of(ok, "the same limits", measured, "U5, U6, XP at 6, 3, 1 Mbit/s"))
}

pub(super) fn vl29(e: &Evidence) -> Verdict {
    const RUN: &str = "iperf -c 10.3.31.88 -P 2";
    let app = e.app("8.2-baseline", "U6", RUN, 0)?;
    let parts = connection_rates(&app.text);
    let sum_line = app.text.lines().rfind(|l| l.contains("SUM")).ok_or("iperf printed no SUM row")?;
    let sum = connection_rates(&sum_line.replace("SUM", "  0"))
        .first()
        .copied()
        .ok_or("the SUM row has no rate")?;
    let (bits, seconds) = e.reached("8.2-baseline", "U6", RUN)?;
    // Payload of what arrived, beside iperf's own sum; the data in the two sockets is the difference.
    let arrived = bits / seconds / 1e6 * 1448.0 / 1514.0;
    let total: f64 = parts.iter().sum();
    let rounded = parts.len() == 2 && (sum - total).abs() < 0.151;
    let shared = parts.iter().all(|p| *p >= 20.8 / 48.7 * sum) && (arrived / sum - 1.0).abs() <= SCATTER;
    let measured = format!("{} in sum {sum:.1}; {arrived:.1} Mbit/s of payload arrive", mbit(&parts));
    let note = "the sum within its rounding and within 5 % of what arrives; neither session below the document's lesser share, 20.8 of 48.7";
    Ok(J::of(rounded && shared, "28.0 + 20.8 = 48.7 Mbit/s", measured, note))
}

pub(super) fn vl30(e: &Evidence) -> Verdict {
    let all = users(e, "8.2-user-limits", &[("U5", 10.0), ("U6", 5.0), ("XP", 3.0)])?;
    Ok(J::of(
        all.iter().all(Limited::met),
        "9.46, 4.87 Mbit/s, others under 3",
        both(&all),
        "U5, U6, XP (whose own picture is lost)",
    ))
}

pub(super) fn vl31(e: &Evidence) -> Verdict {
    let all = users(e, "8.2-user-ceilings", &[("U6", 10.0), ("U5", 15.0)])?;
    Ok(J::of(
        all.iter().all(Limited::met),
        "9.66, 13.9 Mbit/s",
        both(&all),
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
    let ok = rates.iter().zip([10.0, 5.0, 3.0]).all(|(m, rate)| *m >= 0.995 * rate * share);
    Ok(J::of(
        ok,
        "10, 5, 3 Mbit/s at least",
        mbit(&rates),
        "all three backlogged under a parent of 18mbit; payload of 1470 in 1512 bytes, printed to three digits",
    ))
}

/// Where a ping is: experiment, host, command, which of them.
type Ping = (&'static str, &'static str, &'static str, usize);

/// Mean round trips without and with traffic control on an idle path: not lower, and higher by less than 10 %.
pub(super) fn latency(e: &Evidence, without: Ping, with: Ping, published: &str) -> Verdict {
    let of = |p: Ping| e.rtt(p.0, p.1, p.2, p.3);
    let (a, b) = (of(without)?, of(with)?);
    let measured = format!("{a:.3} to {b:.3} ms");
    Ok(J::of(b >= a && b < a * 1.10, published, measured, CHANCE))
}

/// Why the sign of a difference of round trips is chance here.
const CHANCE: &str = "the sign is that of the forwarding delays drawn for each ping. With 32 µs a packet for traffic control, the mean of the three \
                      printed rises, it holds; but in sections 6 and 7 the printed round trips fall with traffic control, so nothing is put in";

pub(super) fn vl34(e: &Evidence) -> Verdict {
    let all = ports(e, "9.1-application-limits", &PORTS)?;
    Ok(J::of(all.iter().all(Limited::met), "5.89, 2.89, 0.983 Mbit/s", both(&all), "ports 5001, 5002, 5003"))
}

/// Bytes of the classes 1:10, 1:20, 1:30 at the end of an experiment.
fn class_bytes(e: &Evidence, experiment: &str) -> Result<[u64; 3], Missing> {
    let classes = e.tc(experiment, SHOW_CLASS_D, 0)?;
    Ok([object(&classes, "1:10")?.bytes, object(&classes, "1:20")?.bytes, object(&classes, "1:30")?.bytes])
}

/// Whether the bytes of three classes are those that the connections to three ports delivered, within a percent for the pings beside them.
fn follows(e: &Evidence, experiment: &str) -> Verdict {
    let bytes = class_bytes(e, experiment)?;
    let (mut ok, mut parts) = (true, Vec::new());
    for ((class, run), got) in [("1:10", IPERF), ("1:20", IPERF_5002), ("1:30", IPERF_5003)].iter().zip(bytes)
    {
        let arrived = e.reached(experiment, "U5", run)?.0 / 8.0;
        ok &= (got as f64 / arrived - 1.0).abs() <= 0.01;
        parts.push(format!("{class} {got} bytes of {arrived:.0}"));
    }
    Ok(J::of(
        ok,
        "the counters follow the port",
        parts.join(", "),
        "of what the connections to 5001, 5002, 5003 delivered",
    ))
}

pub(super) fn vl35(e: &Evidence) -> Verdict {
    follows(e, "9.1-application-limits")
}

pub(super) fn vl37(e: &Evidence) -> Verdict {
    let x = "9.2-application-limits";
    let mut all = Vec::new();
    for host in ["U5", "U6"] {
        for (run, limit) in [(IPERF, 6.0), (IPERF_5002, 3.0), ("iperf -c 10.3.31.88 -p 5005", 1.0)] {
            all.push(limited(e, x, host, run, limit)?);
        }
    }
    Ok(J::of(
        all.iter().all(Limited::met),
        "5.90, 2.92, 0.988; 5.92, 2.98, 0.892 Mbit/s",
        both(&all),
        "U5 then U6, ports 5001, 5002, 5005",
    ))
}

pub(super) fn vl38(e: &Evidence) -> Verdict {
    let (a, b) = (e.rtt("9.2-latency", "U6", PING_20, 0)?, e.rtt("9.2-latency", "U5", PING_20, 0)?);
    let share = e.run("9.2-application-limits")?.processor.get("U4").copied();
    let share = share.ok_or("U4's processor was not measured")?;
    let measured =
        format!("{a:.3} to {b:.3} ms; forwarding keeps U4's processor busy for {:.1} %", share * 100.0);
    let note = format!(
        "the round trip must grow, by less than 10 %, and the processor be busy for less than that; {CHANCE}"
    );
    Ok(J::of(b >= a && b < a * 1.10 && share < 0.1, "1.953 to 2.072 ms, little CPU", measured, &note))
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

/// Whether both have half of the spare 1 Mbit/s: 2.5 each, less TCP's headers, within the scatter.
fn shares_surplus((first, second): (f64, f64)) -> bool {
    let half = (first + second) / 2.0;
    (first / half - 1.0).abs() <= SCATTER && (4.4..5.0).contains(&(first + second))
}
/// Whether the first has all of it: 3 and 2, within the scatter.
fn prefers((first, second): (f64, f64)) -> bool {
    (first / 3.0 - 1.0).abs() <= SCATTER && (second / 2.0 - 1.0).abs() <= SCATTER
}

pub(super) fn vl39(e: &Evidence) -> Verdict {
    let (equal, different) = (shares(e, "claim-VL39-equal")?, shares(e, "claim-VL39-different")?);
    let shared = shares_surplus(equal);
    let first = prefers(different);
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
    follows(e, "10.1-marks")
}

pub(super) fn marks(e: &Evidence, experiment: &str, published: &str) -> Verdict {
    let all = ports(e, experiment, &[(IPERF, 6.0), (IPERF_5002, 8.0), (IPERF_5003, 1.0)])?;
    Ok(J::of(
        all.iter().all(Limited::met),
        published,
        both(&all),
        "ports 5001 (6), 5002 (rate 4, ceil 8), 5003 (1)",
    ))
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
        (m / 3.0 - 1.0).abs() <= SCATTER,
        "3.01, 2.98, 3.08 Mbit/s",
        mbit(&[m]),
        "mean of the rows from 2 to 10 s, within 5 %",
    ))
}

pub(super) fn vl44(e: &Evidence) -> Verdict {
    let both = (rows(e, SHORT_5001, 2.0, 9.0)?, rows(e, LONG_5002, 12.0, 20.0)?);
    let different = shares(e, "claim-VL39-different")?;
    let measured = format!(
        "{:.2} and {:.2} Mbit/s as printed, {:.2} and {:.2} with prio 0 and 1",
        both.0, both.1, different.0, different.1
    );
    let note = "the printed commands give both classes prio 1, so the spare 1mbit is shared; 3 and 2 come with prio 0 and 1, which were not printed";
    Ok(J::printed(prefers(both), prefers(different), "3.0 and 2.0 Mbit/s", measured, note))
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
    Ok(J::of((alone - 3.05).abs() < 0.1 && both < alone, "3.05 Mbit/s from 24 s on", measured, note))
}

pub(super) fn vl46(e: &Evidence) -> Verdict {
    let (equal, different) = (shares(e, "claim-VL39-equal")?, shares(e, "claim-VL39-different")?);
    let measured = format!(
        "prio 1 and 1, as printed: {:.2} and {:.2}; prio 0 and 1: {:.2} and {:.2} Mbit/s",
        equal.0, equal.1, different.0, different.1
    );
    let note = "with the printed prio 1 and 1 the surplus is shared; the priority that the test is taken to prove comes with prio 0 and 1, which \
                were not printed";
    Ok(J::printed(prefers(equal), prefers(different), "1:10 has priority over 1:20", measured, note))
}

pub(super) fn vl47(e: &Evidence) -> Verdict {
    let parts = ["VL26", "VL31", "VL34", "VL44"].map(|id| (id, judge(id, e)));
    let ok = parts.iter().all(|(_, j)| j.holds());
    let otherwise = parts.iter().all(|(_, j)| j.holds() || j.verdict == J::AS_PRINTED);
    let measured: Vec<String> = parts.iter().map(|(id, j)| format!("{id} {}", j.verdict)).collect();
    Ok(J::printed(
        ok,
        otherwise,
        "no monopoly, preference, less need to buy bandwidth",
        measured.join(", "),
        "the summary of those four",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sharing_is_no_preference() {
        // As printed, 2.6 and 2.2; with different prio 2.9 and 1.9.
        assert!(!prefers((2.58, 2.24)) && prefers((2.92, 1.94)));
        assert!(shares_surplus((2.48, 2.31)) && !shares_surplus((2.92, 1.94)));
    }
}
