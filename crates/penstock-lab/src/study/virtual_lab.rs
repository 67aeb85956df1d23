//! The judge of the virtual lab's claims VL1 to VL47.
//!
//! Source: Kanwar Pal Singh, "Linux Traffic Control in Virtual Environment", University of Alberta, 2011.
//! Each judge reads the runs of the experiments and nothing else. A throughput "at most R" is held to what reached the
//! network; iperf's own figure may pass R a little, because it counts what the sender's socket took (the study's own
//! 954 Kbits/sec under 800kbit), so the judges allow that figure the socket's share where they use it.

use super::evidence::{Evidence, Missing, object};
use super::{Judgement, Judgement as J};

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

/// What a limit lets through, as a share of itself, that still counts as "up to the limit": TCP's headers take 4 %.
const NEAR: f64 = 0.90;
/// What iperf's figure may stand above a limit by counting the data still in the sender's socket.
const SOCKET: f64 = 1.25;

/// Judges one claim.
pub fn judge(id: &str, e: &Evidence) -> Judgement {
    let verdict = match id {
        "VL1" => vl1(e),
        "VL2" => vl2(e),
        "VL3" => vl3(e),
        "VL4" => vl4(e),
        "VL5" => vl5(e),
        "VL6" => vl6(e),
        "VL7" => vl7(e),
        "VL8" => vl8(e),
        "VL9" => vl9(e),
        "VL10" => vl10(e),
        "VL11" => vl11(e),
        "VL12" => vl12(e),
        "VL13" => vl13(e),
        "VL14" => vl14(e),
        "VL15" => vl15(e),
        "VL16" => vl16(e),
        "VL17" => vl17(e),
        "VL18" => vl18(e),
        "VL19" => vl19(e),
        "VL20" => vl20(e),
        "VL21" => vl21(e),
        "VL22" => vl22(e),
        "VL23" => vl23(e),
        "VL24" => vl24(e),
        "VL25" => vl25(e),
        "VL26" => vl26(e),
        "VL27" => vl27(e),
        "VL28" => vl28(e),
        "VL29" => vl29(e),
        "VL30" => vl30(e),
        "VL31" => vl31(e),
        "VL32" => vl32(e),
        "VL33" => latency(e, "8.2-latency", ("U6", PING_10, 0), ("U6", PING_10, 1), "1.992 to 2.016 ms"),
        "VL34" => vl34(e),
        "VL35" => vl35(e),
        "VL36" => vl36(e),
        "VL37" => vl37(e),
        "VL38" => vl38(e),
        "VL39" => vl39(e),
        "VL40" => vl40(e),
        "VL41" => marks(e, "10.1-marks", "5.83, 7.66, 0.971 Mbit/s"),
        "VL42" => marks(e, "10.2-marks", "5.79, 7.64, 0.999 Mbit/s"),
        "VL43" => vl43(e),
        "VL44" => vl44(e),
        "VL45" => vl45(e),
        "VL46" => vl46(e),
        "VL47" => vl47(e),
        _ => Err(format!("no judge for {id}")),
    };
    verdict.unwrap_or_else(J::open)
}

fn mbit(values: &[f64]) -> String {
    let parts: Vec<String> = values.iter().map(|v| format!("{v:.3}")).collect();
    format!("{} Mbit/s", parts.join(", "))
}

/// Whether a TCP throughput sits at a limit: close below it, or above it by no more than the socket's share.
fn at_limit(measured: f64, limit: f64) -> bool {
    measured >= NEAR * limit && measured <= SOCKET * limit
}

/// One flow of 5 Mbit/s under 2 Mbit/s twice: policed where the router receives it, then shaped where it sends it. A
/// neighbour's pings tell who had to wait.
fn vl1(e: &Evidence) -> Verdict {
    const RUN: &str = "claim-VL1";
    const PING: &str = "ping 10.3.31.88 -c 6";
    let received = |server| Ok::<f64, Missing>(server_rates(e, RUN, server)?.into_iter().sum());
    let (policed, shaped) = (received("iperf -s -u")?, received("iperf -s -u -p 5002")?);
    let rtt = |nth| e.rtt(RUN, "U6", PING, nth);
    let (before, at_ingress, at_output) = (rtt(0)?, rtt(1)?, rtt(2)?);
    let limited = |rate: f64| (1.8..=2.05).contains(&rate);
    let ok = limited(policed) && limited(shaped) && at_ingress < 1.5 * before && at_output > 5.0 * before;
    let measured = format!(
        "policed {policed:.3} Mbit/s, a neighbour's ping {at_ingress:.2} ms; shaped {shaped:.3} Mbit/s, {at_output:.1} ms; \
         idle {before:.2} ms"
    );
    Ok(J::of(
        ok,
        "ingress: discard or hold under a rate; output: delay, drop, queue, prioritise",
        measured,
        "dropping and prioritising at the output show in VL9, VL12, VL21 and VL25",
    ))
}

fn vl2(e: &Evidence) -> Verdict {
    let run = e.run("claim-VL2")?;
    let exits: Vec<(&str, i32)> = run.apps.iter().map(|a| (a.run.as_str(), a.exit)).collect();
    let mut wrong = Vec::new();
    let mut kind = "";
    for &(command, exit) in &exits {
        if let Some(rest) = command.split("handle 1: ").nth(1) {
            kind = rest.split_whitespace().next().unwrap_or("");
        }
        let classless = kind == "pfifo" || kind == "sfq";
        let class_or_filter = command.starts_with("tc class") || command.starts_with("tc filter");
        let refused = exit != 0;
        if refused != (classless && class_or_filter) {
            wrong.push(format!("{kind}: `{command}` exit {exit}"));
        }
    }
    let measured = if wrong.is_empty() { "as claimed".to_owned() } else { wrong.join("; ") };
    Ok(J::of(
        wrong.is_empty() && exits.len() > 10,
        "pfifo, sfq refuse; htb, prio accept",
        measured,
        "by the exit status of tc",
    ))
}

fn vl3(e: &Evidence) -> Verdict {
    let run = e.run("4-forwarding")?;
    let off = run
        .apps
        .iter()
        .position(|a| a.run.contains("ip_forward=0"))
        .ok_or("forwarding is never turned off")?;
    let answered = |a: &&super::evidence::AppRun| a.requests.is_some_and(|(_, r)| r > 0);
    let before: Vec<_> = run.apps[..off].iter().filter(|a| a.run.starts_with("ping")).collect();
    let after: Vec<_> = run.apps[off..].iter().filter(|a| a.run.starts_with("ping")).collect();
    let (across, within): (Vec<_>, Vec<_>) =
        after.into_iter().partition(|a| !(a.host == "U5" && a.run.contains("10.3.34.")));
    let all = before.iter().filter(|a| answered(a)).count();
    let crossed = across.iter().filter(|a| answered(a)).count();
    let local = within.iter().filter(|a| answered(a)).count();
    let ok = !before.is_empty()
        && all == before.len()
        && crossed == 0
        && !across.is_empty()
        && local == within.len();
    let measured = format!(
        "{all} of {} pairs answer with ip_forward=1; with 0, {crossed} of {} across U4 and {local} of {} within a network",
        before.len(),
        across.len(),
        within.len()
    );
    Ok(J::of(ok, "any machine can ping any other", measured, ""))
}

const PRIOMAP: &str = "bands 3 priomap  1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1";

fn vl4(e: &Evidence) -> Verdict {
    let mut lines = Vec::new();
    for dev in ["eth0", "eth1"] {
        let shown = e.tc("4-default-qdisc", &format!("sudo tc -s qdisc ls dev {dev}"), 0)?;
        lines.push(shown.first().ok_or("tc printed nothing")?.line.clone());
    }
    let ok = lines.iter().all(|l| l.starts_with("qdisc pfifo_fast 0: root") && l.contains(PRIOMAP));
    Ok(J::of(ok, "qdisc pfifo_fast 0: root … bands 3", lines.join(" | "), ""))
}

fn vl5(e: &Evidence) -> Verdict {
    let m = e.mbit("4-bandwidth", "U5", IPERF)?;
    Ok(J::of(
        (m - 72.2).abs() / 72.2 < 0.10,
        "72.2 Mbit/s",
        mbit(&[m]),
        "the path's costs were fitted to this baseline",
    ))
}

fn vl6(e: &Evidence) -> Verdict {
    let run = e.run("5-static-routing")?;
    let pings: Vec<_> = run.apps.iter().filter(|a| a.run.starts_with("ping")).collect();
    let answered = pings.iter().filter(|a| a.requests.is_some_and(|(s, r)| s == r && r > 0)).count();
    let measured = format!("{answered} of {} pings answered in full", pings.len());
    Ok(J::of(
        answered == pings.len() && answered > 0,
        "U1 and XP ping U5",
        measured,
        "the two printed IOS configurations are read as they are",
    ))
}

fn vl7(e: &Evidence) -> Verdict {
    let (direct, routers) = (e.mbit("4-bandwidth", "U5", IPERF)?, e.mbit("5-bandwidth", "U5", IPERF)?);
    let (rtt_direct, rtt_routers) = (e.rtt("4-ping", "U5", PING_20, 0)?, e.rtt("5-ping", "U5", PING_20, 0)?);
    let measured =
        format!("{routers:.1} against {direct:.1} Mbit/s, {rtt_routers:.3} against {rtt_direct:.3} ms");
    Ok(J::of(
        routers < 0.9 * direct && rtt_routers > rtt_direct,
        "47 against 72 Mbit/s, more latency",
        measured,
        "",
    ))
}

fn vl8(e: &Evidence) -> Verdict {
    let (direct, routers) = (e.rtt("5-figures", "U5", PING_20, 0), e.rtt("5-ping", "U5", PING_20, 0)?);
    let direct = direct.or_else(|_| e.rtt("4-ping", "U5", PING_20, 0))?;
    Ok(J::of(
        routers > 1.1 * direct,
        "2.086 against 1.346 ms",
        format!("{routers:.3} against {direct:.3} ms"),
        "",
    ))
}

fn vl9(e: &Evidence) -> Verdict {
    let (a, b) = (e.mbit("6.1-htb-10mbit", "U5", IPERF)?, e.mbit("6.1-htb-10mbit", "U5", IPERF_INTERVALS)?);
    Ok(J::of(
        at_limit(a, 10.0) && at_limit(b, 10.0),
        "9.95, 9.60 Mbit/s",
        mbit(&[a, b]),
        "iperf counts what the sender's socket took",
    ))
}

fn vl10(e: &Evidence) -> Verdict {
    let m = e.mbit("claim-VL10", "U5", IPERF)?;
    let classes = e.tc("claim-VL10", SHOW_CLASS_D, 0)?;
    let borrowed = object(&classes, "1:10")?.borrowed;
    let measured = format!("{m:.3} Mbit/s with rate 4mbit ceil 10mbit, {borrowed} packets borrowed");
    Ok(J::of(
        at_limit(m, 10.0) && borrowed > 0,
        "more than rate, up to ceil",
        measured,
        "a sibling of 6mbit stays idle",
    ))
}

fn vl11(e: &Evidence) -> Verdict {
    let qdiscs = e.tc("6.1-htb-10mbit", SHOW_QDISC, 1)?;
    let classes = e.tc("6.1-htb-10mbit", SHOW_CLASS_D, 0)?;
    let (root, class) = (object(&qdiscs, "1:")?, object(&classes, "1:10")?);
    let ok = root.packets > 1000 && class.packets == root.packets && root.direct == 0;
    let measured =
        format!("{} of {} packets in 1:10, direct_packets_stat {}", class.packets, root.packets, root.direct);
    Ok(J::of(ok, "all in 1:10, direct_packets_stat 0", measured, ""))
}

fn vl12(e: &Evidence) -> Verdict {
    let run = e.run("6.2-htb-pfifo-5")?;
    let key = ("U4".to_owned(), "eth0".to_owned(), "20:".to_owned());
    let most = *run.qlen_max.get(&key).ok_or("the queue of 20: was not sampled")?;
    let shown = e.tc("6.2-htb-pfifo-5", SHOW_QDISC, 0)?;
    let line = object(&shown, "20:")?.line.clone();
    let dropped = object(&e.tc("6.2-htb-pfifo-5", SHOW_QDISC, 1)?, "20:")?.dropped;
    let ok = most <= 5 && most > 0 && line.contains("limit 5p") && dropped > 0;
    Ok(J::of(ok, "limit 5p", format!("longest queue {most} packets, {dropped} dropped, `{line}`"), ""))
}

fn vl13(e: &Evidence) -> Verdict {
    let app = e.app("claim-VL13", "U5", "iperf -c 10.3.31.88 -P 4", 0)?;
    let shares = connection_rates(&app.text);
    let total: f64 = shares.iter().sum();
    let (low, high) =
        (shares.iter().copied().fold(f64::MAX, f64::min), shares.iter().copied().fold(0.0, f64::max));
    let ok = shares.len() == 4 && low > 0.6 * high && at_limit(total, 10.0);
    let measured = format!("{} (sum {total:.2})", mbit(&shares));
    Ok(J::of(
        ok,
        "each session a fair chance; no limit of its own",
        measured,
        "four TCP sessions through one sfq behind 10mbit",
    ))
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

fn vl14(e: &Evidence) -> Verdict {
    let before = e.tc("claim-VL14", SHOW_QDISC, 0)?;
    let after = e.tc("claim-VL14", SHOW_QDISC, 1)?;
    let one = after.first().ok_or("tc printed nothing")?;
    let ok = object(&before, "1:")?.packets > 0
        && after.len() == 1
        && one.line.starts_with("qdisc pfifo_fast 0: root")
        && (one.bytes, one.packets) == (0, 0);
    Ok(J::of(
        ok,
        "pfifo_fast 0: root, Sent 0 bytes 0 pkt",
        format!("{}, Sent {} bytes {} pkt", one.line, one.bytes, one.packets),
        "",
    ))
}

fn vl15(e: &Evidence) -> Verdict {
    // Buckets in use, as `tc class show` lists them, at moments in three periods of 10 s.
    let buckets = |experiment: &str| -> Result<Vec<Vec<String>>, Missing> {
        (0..12)
            .map(|n| {
                let mut ids: Vec<String> = e
                    .tc(experiment, SHOW_CLASS, n)?
                    .into_iter()
                    .filter(|o| o.line.starts_with("class sfq"))
                    .map(|o| o.id)
                    .collect();
                ids.sort();
                Ok(ids)
            })
            .collect()
    };
    let merged = |all: &[Vec<String>]| -> Vec<String> {
        let mut ids: Vec<String> = all.iter().flatten().cloned().collect();
        ids.sort();
        ids.dedup();
        ids
    };
    let (with, without) = (buckets("claim-VL15")?, buckets("claim-VL15-without")?);
    let periods: Vec<Vec<String>> = with.chunks(4).map(merged).collect();
    let still = merged(&without);
    let line = e.app("6.4-htb-sfq-perturb", "U4", SHOW_QDISC, 0)?.text.clone();
    let changes = periods[0] != periods[1] && periods[1] != periods[2];
    let steady =
        periods.iter().all(|p| p.len() <= 2 && !p.is_empty()) && still.len() <= 2 && !still.is_empty();
    let ok = changes && steady && line.contains("perturb 10sec");
    let measured =
        format!("buckets {periods:?} in three periods with perturb 10, {still:?} throughout without");
    Ok(J::of(
        ok,
        "the map changes every 10 s; never without",
        measured,
        "buckets as tc class show lists them for two sessions",
    ))
}

fn vl16(e: &Evidence) -> Verdict {
    let run = "iperf -c 10.3.31.88 -t 10";
    let sfq = e.mbit("claim-VL16", "U5", run)?;
    // Without sfq the connection may not even come to its end: it is starved.
    let pfifo = e.app("claim-VL16-pfifo", "U5", run, 0)?.throughput_bit_s.map_or(0.0, |b| b / 1e6);
    let measured = format!("TCP beside 30 Mbit/s of UDP gets {sfq:.3} Mbit/s with sfq, {pfifo:.3} without");
    Ok(J::of(
        sfq >= 0.8 * 5.0 && pfifo < 0.5 * sfq,
        "no traffic dominates",
        measured,
        "its fair share is 5 of 10 Mbit/s",
    ))
}

fn vl17(e: &Evidence) -> Verdict {
    let pairs = [
        ("6.1-htb-10mbit", "7.0-htb-10mbit"),
        ("6.2-htb-pfifo-5", "7.1-htb-pfifo-5"),
        ("6.4-htb-sfq-perturb", "7.2-htb-sfq-perturb"),
    ];
    let (mut ok, mut parts) = (true, Vec::new());
    for (direct, routers) in pairs {
        let (a, b) = (e.mbit(direct, "U5", IPERF)?, e.mbit(routers, "U5", IPERF)?);
        let (x, y) = (e.rtt(direct, "U5", PING_20, 0)?, e.rtt(routers, "U5", PING_20, 0)?);
        ok &= at_limit(a, 10.0) && at_limit(b, 10.0) && y > 1.2 * x;
        parts.push(format!("{a:.2} and {b:.2} Mbit/s, {x:.3} and {y:.3} ms"));
    }
    Ok(J::of(ok, "limits alike; 1.2..1.4 against about 1.9 ms", parts.join("; "), ""))
}

fn vl18(e: &Evidence) -> Verdict {
    let app = e.app("7.3-htb-800kbit", "U5", IPERF, 0)?;
    let printed = e.mbit("7.3-htb-800kbit", "U5", IPERF)?;
    let received = server_rates(e, "7.3-htb-800kbit", "iperf -s")?;
    let rate = *received
        .first()
        .ok_or_else(|| format!("the server printed no row; the client: {}", app.text.trim()))?;
    let ok = rate <= 0.8 && rate > NEAR * 0.8 && printed <= SOCKET * 0.8;
    let measured = format!("received {rate:.3} Mbit/s, printed by the client {printed:.3}");
    Ok(J::of(
        ok,
        "800 kbit/s; iperf printed 954",
        measured,
        "the client's figure counts what its socket took",
    ))
}

/// Rates that an iperf server on U1 printed, Mbit/s, one a connection.
fn server_rates(e: &Evidence, experiment: &str, run: &str) -> Result<Vec<f64>, Missing> {
    let app = e.app(experiment, "U1", run, 0)?;
    Ok(connection_rates(&app.text))
}

fn vl19(e: &Evidence) -> Verdict {
    let m = e.mbit("7.3-tbf-220kbit", "U5", IPERF)?;
    Ok(J::of(at_limit(m, 0.22) && m <= 0.2205, "0.215 Mbit/s", mbit(&[m]), ""))
}

fn vl20(e: &Evidence) -> Verdict {
    let alone = e.mbit("claim-VL20-alone", "U5", IPERF)?;
    let with = e.rtt("claim-VL20", "U6", PING_10, 0)?;
    let without = e.rtt("claim-VL20-without", "U6", PING_10, 0)?;
    let measured = format!(
        "alone {alone:.3} Mbit/s; a neighbour's ping during the upload {with:.2} ms with tbf, {without:.0} ms without"
    );
    let ok = at_limit(alone, 0.22) && with < 60.0 && without > 5.0 * with;
    Ok(J::of(
        ok,
        "tbf stands by itself and keeps interactive data fast",
        measured,
        "the queue then stands at the client, not at the uplink",
    ))
}

fn vl21(e: &Evidence) -> Verdict {
    let rates: Result<Vec<f64>, Missing> = ["iperf -s -u", "iperf -s -u -p 5002", "iperf -s -u -p 5003"]
        .iter()
        .map(|s| Ok(server_rates(e, "claim-VL21", s)?.into_iter().sum()))
        .collect();
    let rates = rates?;
    let ok = rates[0] > 0.97 * 6.0 && rates[1] > 3.0 && rates[1] < 5.0 && rates[2] < 0.2;
    Ok(J::of(
        ok,
        "1:1 first, 1:3 last",
        mbit(&rates),
        "three flows of 6 Mbit/s with ToS 0x10, 0, 0x08 into 10 Mbit/s",
    ))
}

/// Growth of the three bands of section 7.4 between two of its outputs: bytes of 10:, 20:, 30:.
fn growth(e: &Evidence, from: usize, to: usize) -> Result<[u64; 3], Missing> {
    let (a, b) = (e.tc("7.4-prio", SHOW_QDISC, from)?, e.tc("7.4-prio", SHOW_QDISC, to)?);
    let mut out = [0; 3];
    for (slot, id) in out.iter_mut().zip(["10:", "20:", "30:"]) {
        *slot = object(&b, id)?.bytes - object(&a, id)?.bytes;
    }
    Ok(out)
}

fn vl22(e: &Evidence) -> Verdict {
    let [high, middle, low] = growth(e, 0, 1)?;
    let ok = low > 53_576_427 && middle < low / 100 && high == 0;
    let measured = format!("10: {high}, 20: {middle}, 30: {low} bytes");
    Ok(J::of(
        ok,
        "30: 56105758 bytes",
        measured,
        "a file of 53576427 bytes; the session's set-up goes through 20:",
    ))
}

fn vl23(e: &Evidence) -> Verdict {
    let [high, middle, low] = growth(e, 1, 2)?;
    Ok(J::of(
        middle > 5_000 && low == 0 && high == 0,
        "20: 29544 bytes more",
        format!("10: {high}, 20: {middle}, 30: {low} bytes"),
        "",
    ))
}

fn vl24(e: &Evidence) -> Verdict {
    let [high, middle, low] = growth(e, 2, 3)?;
    let measured = format!("10: {high}, 20: {middle}, 30: {low} bytes");
    Ok(J::of(high > 1_000 && low == 0, "10: 6249 bytes, 112 packets", measured, ""))
}

fn vl25(e: &Evidence) -> Verdict {
    let [_, middle, low] = growth(e, 3, 4)?;
    let m = e.mbit("7.4-prio", "U5", IPERF)?;
    let last = e.tc("7.4-prio", SHOW_QDISC, 4)?;
    let (tbf, prio) = (object(&last, "20:")?.dropped, object(&last, "1:")?.dropped);
    let ok = middle > 1_000_000 && low == 0 && m > 0.85 && m < 1.0 * SOCKET && tbf > 0 && prio == tbf;
    let measured = format!("20: {middle} bytes more, {m:.3} Mbit/s, {tbf} dropped at tbf, {prio} at prio");
    Ok(J::of(ok, "0.947 Mbit/s, 236 dropped at both", measured, ""))
}

fn three(e: &Evidence, experiment: &str) -> Result<[f64; 3], Missing> {
    Ok([e.mbit(experiment, "U5", IPERF)?, e.mbit(experiment, "U6", IPERF)?, e.mbit(experiment, "XP", IPERF)?])
}

fn vl26(e: &Evidence) -> Verdict {
    let m = three(e, "8.1-user-limits")?;
    let ok = at_limit(m[0], 6.0) && at_limit(m[1], 3.0) && at_limit(m[2], 1.0);
    Ok(J::of(ok, "5.85, 2.88, 0.959 Mbit/s", mbit(&m), "U5, U6, XP"))
}

fn vl27(e: &Evidence) -> Verdict {
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

fn vl28(e: &Evidence) -> Verdict {
    let (pfifo, sfq) = (three(e, "claim-VL28")?, three(e, "8.1-user-limits")?);
    let ok = at_limit(pfifo[0], 6.0) && at_limit(pfifo[1], 3.0) && at_limit(pfifo[2], 1.0);
    Ok(J::of(ok, "the same limits", format!("{} with pfifo, {} with sfq", mbit(&pfifo), mbit(&sfq)), ""))
}

fn vl29(e: &Evidence) -> Verdict {
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

fn vl30(e: &Evidence) -> Verdict {
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

fn vl31(e: &Evidence) -> Verdict {
    let (u6, u5) = (e.mbit("8.2-user-ceilings", "U6", IPERF)?, e.mbit("8.2-user-ceilings", "U5", IPERF)?);
    Ok(J::of(
        at_limit(u6, 10.0) && at_limit(u5, 15.0),
        "9.66, 13.9 Mbit/s",
        mbit(&[u6, u5]),
        "U6 rate 5 ceil 10, U5 rate 10 ceil 15",
    ))
}

fn vl32(e: &Evidence) -> Verdict {
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
fn latency(
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

fn vl34(e: &Evidence) -> Verdict {
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

fn vl35(e: &Evidence) -> Verdict {
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

fn vl36(e: &Evidence) -> Verdict {
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

fn vl37(e: &Evidence) -> Verdict {
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

fn vl38(e: &Evidence) -> Verdict {
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

fn vl39(e: &Evidence) -> Verdict {
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

fn vl40(e: &Evidence) -> Verdict {
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

fn marks(e: &Evidence, experiment: &str, published: &str) -> Verdict {
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

fn vl43(e: &Evidence) -> Verdict {
    let m = rows(e, LONG_5002, 2.0, 10.0)?;
    Ok(J::of(
        (m - 3.0).abs() < 0.25,
        "3.01, 2.98, 3.08 Mbit/s",
        mbit(&[m]),
        "mean of the rows from 2 to 10 s",
    ))
}

fn vl44(e: &Evidence) -> Verdict {
    let (p5001, p5002) = (rows(e, SHORT_5001, 2.0, 9.0)?, rows(e, LONG_5002, 12.0, 20.0)?);
    let (first, second) = shares(e, "claim-VL39-different")?;
    let sum = p5001 + p5002;
    let ok = (4.4..5.2).contains(&sum) && p5002 < 2.75 && p5001 > 2.0 && first > 2.7 && second < 2.2;
    let measured =
        format!("{p5001:.2} and {p5002:.2} Mbit/s as printed, {first:.2} and {second:.2} with prio 0 and 1");
    let note = "the printed commands give both classes prio 1, so the spare 1mbit must be shared (2.5 each); 3 and 2 need different prio, as the sections before have them";
    Ok(J::of(ok, "3.0 and 2.0 Mbit/s", measured, note))
}

fn vl45(e: &Evidence) -> Verdict {
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

fn vl46(e: &Evidence) -> Verdict {
    let (equal, different) = (shares(e, "claim-VL39-equal")?, shares(e, "claim-VL39-different")?);
    let ok = (equal.0 - equal.1).abs() < 0.4 && different.0 > 2.7 && different.1 < 2.2;
    let measured = format!(
        "prio 1 and 1: {:.2} and {:.2}; prio 0 and 1: {:.2} and {:.2} Mbit/s",
        equal.0, equal.1, different.0, different.1
    );
    let note = "the document contradicts itself: its commands give both classes prio 1; judged on what the configuration must do (share the surplus) and on the same with different prio (preference)";
    Ok(J::of(ok, "1:10 has priority over 1:20", measured, note))
}

fn vl47(e: &Evidence) -> Verdict {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_the_last_row_of_each_connection() {
        let text = "[  3]  0.0- 1.0 sec   120 KBytes   983 Kbits/sec\n[  4]  0.0-10.0 sec  33.4 MBytes  28.0 Mbits/sec\n[  3]  0.0-10.0 sec  24.9 MBytes  20.8 Mbits/sec\n[SUM]  0.0-10.0 sec  58.2 MBytes  48.7 Mbits/sec\n";
        assert_eq!(connection_rates(text), [20.8, 28.0]);
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
