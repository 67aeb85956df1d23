//! What iperf 2.2 prints: rows, heads of rows, settings, connections.
//!
//! Follows: iperf 2.2.1 `ReportOutputs.c`, `Locale.c`, `stdio.c` `byte_snprintf`, `Reporter.c` (what is counted when). Recorded from it:
//! `vectors/iperf2`.
//! Differs: a server prints the rows of `-e` where it has `-e` itself, not where its client has; what a client tells of its server with `-e` has
//! the true deviation of the delays (there it is cut to 32 bits), and all its datagrams (there those of its last second); a client of UDP
//! with `-y C` has figures in its last row (there `-nan` and -1).

use crate::app::form::{date, percent};
use penstock_model::Span;
use penstock_model::time::EPOCH;

/// What one line tells.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Stats {
    pub(crate) start: Span,
    pub(crate) end: Span,
    pub(crate) bytes: u64,
    /// Seconds.
    pub(crate) jitter: f64,
    pub(crate) errors: u64,
    pub(crate) datagrams: u64,
    pub(crate) out_of_order: u64,
    pub(crate) more: More,
}

/// Least, greatest, mean and spread of delays, seconds (`MeanMinMaxStats`).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Spread {
    pub(crate) n: u64,
    pub(crate) sum: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    mean: f64,
    m2: f64,
}

impl Spread {
    pub(crate) fn add(&mut self, value: f64) {
        self.n += 1;
        if self.n == 1 {
            *self = Spread { n: 1, sum: value, min: value, max: value, mean: value, m2: 0.0 };
            return;
        }
        let off = value - self.mean;
        self.sum += value;
        self.mean += off / self.n as f64;
        self.m2 += off * (value - self.mean);
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
    }
    /// Those of another one too; the spread of both is not told anywhere.
    pub(crate) fn join(&mut self, other: &Spread) {
        if other.n == 0 {
            return;
        }
        let first = self.n == 0;
        self.min = if first { other.min } else { self.min.min(other.min) };
        self.max = if first { other.max } else { self.max.max(other.max) };
        (self.n, self.sum) = (self.n + other.n, self.sum + other.sum);
    }
    fn average(&self) -> f64 {
        if self.n > 0 { self.sum / self.n as f64 } else { 0.0 }
    }
    /// So many values with this sum, least, greatest and deviation.
    pub(crate) fn of(n: u64, [sum, min, max, off]: [f64; 4]) -> Spread {
        let mean = if n > 0 { sum / n as f64 } else { 0.0 };
        Spread { n, sum, min, max, mean, m2: off * off * n.saturating_sub(1) as f64 }
    }
    pub(crate) fn deviation(&self) -> f64 {
        if self.n < 2 { 0.0 } else { (self.m2 / (self.n - 1) as f64).sqrt() }
    }
}

/// What `TCP_INFO` tells a client of TCP with `-e`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Tcp {
    /// Segments retransmitted.
    pub(crate) retries: u64,
    /// Segments on the way.
    pub(crate) flying: u64,
    /// Congestion window, segments.
    pub(crate) cwnd: u64,
    /// Bytes of a segment.
    pub(crate) mss: u64,
    /// Smoothed round trip and its deviation, microseconds.
    pub(crate) rtt_us: u64,
    pub(crate) rttvar_us: u64,
}

/// What only 2.2 tells.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct More {
    /// Calls of write or of read.
    pub(crate) calls: u64,
    /// Writes that failed and were tried again.
    pub(crate) errors: u64,
    /// Reads by their size, in eighths of the buffer.
    pub(crate) bins: [u32; 8],
    pub(crate) tcp: Tcp,
    /// Delays of datagrams.
    pub(crate) transit: Spread,
    /// Datagrams, and how many a second.
    pub(crate) packets: u64,
    pub(crate) pps: f64,
    /// The row tells of the whole transfer.
    pub(crate) whole: bool,
    /// When it was made, nanoseconds of the run (the first field of a row with `-y C`).
    pub(crate) at_ns: i64,
}

impl More {
    /// The sum of streams.
    pub(crate) fn join(&mut self, other: &More) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.bins.iter_mut().zip(other.bins).for_each(|(sum, n)| *sum += n);
        self.tcp.retries += other.tcp.retries;
        self.transit.join(&other.transit);
        self.packets += other.packets;
        self.pps += other.pps;
        self.at_ns = self.at_ns.max(other.at_ns);
    }
}

/// How a program of 2.2 prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) enhanced: bool,
    pub(crate) csv: bool,
    pub(crate) udp: bool,
    pub(crate) server: bool,
    pub(crate) format: char,
    /// Heads that were printed.
    pub(crate) heads: Vec<&'static str>,
}

/// Of whom a row tells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Who<'a> {
    /// A stream, by its number, and its two ends as `-y C` has them.
    One(u32, &'a str),
    /// So many streams together.
    Sum(u32, &'a str),
    /// What the server of a stream has told.
    Relay(u32),
}

const PLAIN: &str = "[ ID] Interval       Transfer     Bandwidth\n";
const DATAGRAMS: &str = "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n";
const READS: &str = "[ ID] Interval        Transfer    Bandwidth       Reads=Dist\n";
const WRITES: &str = "[ ID] Interval        Transfer    Bandwidth       Write/Err  Rtry     InF(pkts)/Cwnd(pkts)/RTT(var)        NetPwr\n";
const SENT: &str = "[ ID] Interval        Transfer     Bandwidth      Write/Err/Timeo  PPS\n";
const RECEIVED: &str = "[ ID] Interval        Transfer     Bandwidth        Jitter   Lost/Total  Latency avg/min/max/stdev PPS Read/Timeo/NA NetPwr\n";
const RELAYED: &str = "[ ID] Interval        Transfer     Bandwidth        Jitter   Lost/Total  Latency avg/min/max/stdev PPS  Rx/inP  Read/Timeo/Trunc  NetPwr\n";
const SUM_READS: &str = "[SUM-cnt] Interval        Transfer    Bandwidth       Reads=Dist\n";
const SUM_WRITES: &str = "[SUM-cnt] Interval        Transfer    Bandwidth       Write/Err  Rtry\n";
const SUM_SENT: &str = "[SUM-cnt] Interval        Transfer     Bandwidth      Write/Err  PPS\n";
const SUM_RECEIVED: &str =
    "[SUM-cnt] Interval     Transfer     Bandwidth       Lost/Total  Latency avg/min/max  PPS\n";

#[cfg(test)]
pub(crate) const HEADS: [&str; 11] =
    [PLAIN, DATAGRAMS, READS, WRITES, SENT, RECEIVED, RELAYED, SUM_READS, SUM_WRITES, SUM_SENT, SUM_RECEIVED];

/// `byte_snprintf` of 2.2: three decimals below one, and units up to 2^50.
pub(crate) fn amount(bytes: f64, format: char) -> String {
    const BITS: [&str; 6] = ["bit", "Kbit", "Mbit", "Gbit", "Tbit", "Pbit"];
    const BYTES: [&str; 6] = ["Byte", "KByte", "MByte", "GByte", "TByte", "PByte"];
    let upper = format.is_ascii_uppercase();
    let (base, labels, mut number) = if upper { (1024.0, BYTES, bytes) } else { (1000.0, BITS, bytes * 8.0) };
    let unit = "BKMGTP".find(format.to_ascii_uppercase()).unwrap_or_else(|| {
        let (mut n, mut unit) = (number, 0);
        while n >= base && unit < 5 {
            n /= base;
            unit += 1;
        }
        unit
    });
    for _ in 0..unit {
        number /= base;
    }
    let label = labels[unit];
    match number {
        n if n < 0.9995 => format!("{n:4.3} {label}"),
        n if n < 9.995 => format!("{n:4.2} {label}"),
        n if n < 99.95 => format!("{n:4.1} {label}"),
        n => format!("{n:4.0} {label}"),
    }
}

/// Throughput over delay, in millionths (`set_netpowerbuf`).
fn power(bytes: f64, seconds: f64, delay: f64) -> String {
    if delay == 0.0 {
        return "NAN".to_owned();
    }
    match 1e-6 * (bytes / seconds / delay) {
        n if n > 100.0 => format!("{n:.0}"),
        n if n > 10.0 => format!("{n:.2}"),
        n => format!("{n:.6}"),
    }
}

/// `%.2g` of the lost share; none of nothing.
fn lost(s: &Stats) -> String {
    if s.datagrams == 0 { "0".to_owned() } else { percent(s.errors, s.datagrams) }
}

fn dist(more: &More) -> String {
    let bins: Vec<String> = more.bins.iter().map(u32::to_string).collect();
    format!("{}={}", more.calls, bins.join(":"))
}

/// A time of the run, which begins with 2026: `2026-01-01 00:00:01.077 (UTC)`; `millis`: with thousandths.
pub(crate) fn day_and_time(ns: i64, millis: bool) -> String {
    let fraction = if millis { format!(".{:03}", ns / 1_000_000 % 1000) } else { String::new() };
    format!("{}{fraction} (UTC)", date(EPOCH + ns / 1_000_000_000)[..19].replace('T', " "))
}

impl Form {
    fn head(&mut self, head: &'static str, text: &mut String) {
        if !self.heads.contains(&head) {
            self.heads.push(head);
            text.push_str(head);
        }
    }
    /// One row, with its head where that is new.
    pub(crate) fn row(&mut self, who: Who<'_>, s: &Stats, text: &mut String) {
        if self.csv {
            self.csv_row(who, s, text);
            return;
        }
        let seconds = (s.end - s.start).as_secs_f64();
        let (start, end) = (s.start.as_secs_f64(), s.end.as_secs_f64());
        let bytes = amount(s.bytes as f64, self.format.to_ascii_uppercase());
        let rate = amount(if seconds > 0.0 { s.bytes as f64 / seconds } else { 0.0 }, self.format);
        let mut sum = String::from("[SUM] ");
        if let (Who::Sum(n, _), true) = (who, self.enhanced) {
            sum = format!("[SUM-{n}] ");
        }
        let more = &s.more;
        let relayed = matches!(who, Who::Relay(_));
        let (head, rest) = match (who, self.enhanced, self.udp, self.server || relayed) {
            (Who::Relay(_), false, ..) => {
                // Its datagrams are not counted, so that neither jitter nor share is told (`udp_output_read`).
                (DATAGRAMS, format!("   0.000 ms {}/{} (0%)", s.errors, s.datagrams))
            }
            (Who::Relay(_), true, ..) => (RELAYED, self.received(s, seconds, true)),
            (Who::Sum(..), false, true, true) => {
                (PLAIN, format!("   {}/{} ({}%)", s.errors, s.datagrams, lost(s)))
            }
            (Who::One(..), false, true, true) => {
                let jitter = if more.packets == 0 { 0.0 } else { s.jitter * 1e3 };
                (DATAGRAMS, format!("  {jitter:6.3} ms {}/{} ({}%)", s.errors, s.datagrams, lost(s)))
            }
            (_, false, ..) => (PLAIN, String::new()),
            (Who::One(..), true, true, true) => (RECEIVED, self.received(s, seconds, false)),
            (Who::One(..), true, true, false) => {
                (SENT, format!("  {}/{}/0{:8.0} pps", more.calls, more.errors, more.pps))
            }
            (Who::One(..), true, false, true) => (READS, format!("  {}", dist(more))),
            (Who::One(..), true, false, false) => {
                let Tcp { retries, flying, cwnd, mss, rtt_us, rttvar_us } = more.tcp;
                let (in_flight, window) = (flying * mss / 1024, cwnd * mss / 1024);
                let power = power(s.bytes as f64, seconds, rtt_us as f64 * 1e-6);
                let rest = format!(
                    "  {}/{}{retries:10} {in_flight:8}K({flying})/{window}K({cwnd})/{rtt_us}({rttvar_us}) us  {power}",
                    more.calls, more.errors
                );
                (WRITES, rest)
            }
            (Who::Sum(..), true, true, true) => {
                let t = &more.transit;
                let (mean, min, max) = (t.average() * 1e3, t.min * 1e3, t.max * 1e3);
                let (all, pps) = (s.datagrams, more.pps);
                let rest =
                    format!("  {}/{all} ({}%)  {mean:.3}/{min:.3}/{max:.3}  {pps:.0} pps", s.errors, lost(s));
                (SUM_RECEIVED, rest)
            }
            (Who::Sum(..), true, true, false) => {
                (SUM_SENT, format!("  {}/{} {:8.0} pps", more.calls, more.errors, more.pps))
            }
            (Who::Sum(..), true, false, true) => (SUM_READS, format!("  {}", dist(more))),
            (Who::Sum(..), true, false, false) => {
                (SUM_WRITES, format!("  {}/{}{:10}", more.calls, more.errors, more.tcp.retries))
            }
        };
        let id = match who {
            Who::One(id, _) | Who::Relay(id) => format!("[{id:3}] "),
            Who::Sum(..) => sum,
        };
        self.head(head, text);
        text.push_str(&format!("{id}{start:4.2}-{end:4.2} sec  {bytes}s  {rate}s/sec{rest}\n"));
        let told = !matches!(who, Who::Sum(..)) || more.whole;
        if (self.server || relayed) && self.udp && s.out_of_order > 0 && told {
            let id = if matches!(who, Who::Sum(..)) { "[SUM] " } else { &id };
            let n = s.out_of_order;
            text.push_str(&format!("{id}{start:4.2}-{end:4.2} sec  {n} datagrams received out-of-order\n"));
        }
    }
    /// What stands behind the rate in a row of datagrams with `-e`.
    fn received(&self, s: &Stats, seconds: f64, relayed: bool) -> String {
        let t = &s.more.transit;
        let share = lost(s);
        let (lost, all) = (s.errors, s.datagrams);
        let head = format!("  {:6.3} ms {lost}/{all} ({share}%)", s.jitter * 1e3);
        let More { calls, pps, packets, .. } = s.more;
        if t.n == 0 {
            return format!("{head} -/-/-/- ms {pps:.0} pps {calls}/0/0");
        }
        let (mean, min, max, off) = (t.average() * 1e3, t.min * 1e3, t.max * 1e3, t.deviation() * 1e3);
        let power = power(s.bytes as f64, seconds, t.average());
        let delays = format!("{mean:.3}/{min:.3}/{max:.3}/{off:.3} ms {pps:.0} pps");
        if relayed {
            let waiting = pps * t.deviation();
            return format!("{head} {delays} {packets}/0({waiting:.0}) pkts 0/0/0 {power}");
        }
        format!("{head} {delays} {calls}/0/0 {power}")
    }
    /// `-y C`: time, the client's end, the server's, number, interval, bytes, bits a second; of datagrams jitter and losses too.
    fn csv_row(&self, who: Who<'_>, s: &Stats, text: &mut String) {
        let (id, ends) = match who {
            Who::One(id, ends) => (i64::from(id), ends),
            Who::Sum(_, ends) => (-1, ends),
            // It is not told.
            Who::Relay(_) => return,
        };
        let at = date(EPOCH + s.more.at_ns / 1_000_000_000)[..19].replace(['-', ':', 'T'], "");
        let seconds = (s.end - s.start).as_secs_f64();
        let rate = if seconds > 0.0 { (s.bytes as f64 * 8.0 / seconds) as u64 } else { 0 };
        let (start, end, bytes) = (s.start.as_secs_f64(), s.end.as_secs_f64(), s.bytes);
        text.push_str(&format!("{at},{ends},{id},{start:.1}-{end:.1},{bytes},{rate}"));
        if self.udp {
            let all = if self.server { s.datagrams } else { s.more.packets };
            let share = if all == 0 { 0.0 } else { 100.0 * s.errors as f64 / all as f64 };
            let (jitter, lost, late) = (s.jitter * 1e3, s.errors, s.out_of_order);
            text.push_str(&format!(",{jitter:.3},{lost},{all},{share:.3},{late}"));
        }
        text.push('\n');
    }
}
