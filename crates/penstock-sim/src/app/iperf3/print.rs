//! What iperf3 prints of numbers: the intervals, the end, and the same as JSON.
//!
//! Follows: iperf 3.18 `iperf_print_intermediate`, `print_interval_results`, `iperf_print_results`, `iperf_locale.c`.

use super::json::Json;
use crate::app::form::units;
use penstock_model::time::general;

pub(crate) const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";

/// What a whole test has in common.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    pub(crate) udp: bool,
    pub(crate) bidir: bool,
    pub(crate) client: bool,
    /// Streams of each direction.
    pub(crate) parallel: u32,
    /// Of rates: `a`, or what `-f` says.
    pub(crate) format: char,
}

/// What TCP says of a stream that is sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tcp {
    pub(crate) retransmits: u64,
    pub(crate) cwnd: u64,
    pub(crate) window: u64,
    /// Microseconds.
    pub(crate) rtt: i64,
    pub(crate) rttvar: i64,
    pub(crate) pmtu: u64,
}

/// A stream in an interval.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) id: u32,
    /// This side sends it.
    pub(crate) sender: bool,
    /// Seconds since the beginning.
    pub(crate) start: f64,
    pub(crate) end: f64,
    /// The interval's length as iperf3 keeps it.
    pub(crate) seconds: f32,
    pub(crate) bytes: u64,
    pub(crate) tcp: Tcp,
    pub(crate) packets: u64,
    pub(crate) errors: u64,
    /// Seconds.
    pub(crate) jitter: f64,
}

impl Row {
    fn rate(&self, bytes: u64) -> f64 {
        let seconds = f64::from(self.seconds);
        if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 }
    }
}

/// An interval of all streams.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interval {
    pub(crate) rows: Vec<Row>,
    pub(crate) omitted: bool,
}

/// A stream in the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct End {
    pub(crate) id: u32,
    pub(crate) sender: bool,
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) retransmits: u64,
    pub(crate) max_cwnd: u64,
    pub(crate) max_window: u64,
    /// Microseconds.
    pub(crate) max_rtt: i64,
    pub(crate) min_rtt: i64,
    pub(crate) mean_rtt: i64,
    pub(crate) sent_packets: u64,
    /// The highest number that came.
    pub(crate) received_packets: u64,
    pub(crate) errors: u64,
    /// Seconds.
    pub(crate) jitter: f64,
    pub(crate) out_of_order: u64,
}

impl End {
    fn packets(&self) -> u64 {
        if self.sent_packets > 0 { self.sent_packets } else { self.received_packets }
    }
}

/// All streams in the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    pub(crate) rows: Vec<End>,
    /// How long the senders and the receivers took, and this side, seconds.
    pub(crate) sender_s: f64,
    pub(crate) receiver_s: f64,
    pub(crate) own_s: f64,
    /// Percent: this side and the other, total, user, system.
    pub(crate) cpu: [f64; 6],
    /// Congestion control of the sender and the receiver.
    pub(crate) congestion: (String, String),
}

fn int(n: u64) -> Json {
    Json::Int(n as i64)
}
fn share(part: u64, all: u64) -> f64 {
    if all > 0 { 100.0 * part as f64 / all as f64 } else { 0.0 }
}
fn per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 }
}

impl Style {
    /// The directions in the order they are printed: whether this side sends.
    fn directions(&self, sends: impl Fn(bool) -> bool) -> Vec<bool> {
        let order = if self.client { [true, false] } else { [false, true] };
        order.into_iter().filter(|d| self.bidir || sends(*d)).collect()
    }
    fn role(&self, sender: bool) -> String {
        let (way, side) = (if sender { "TX" } else { "RX" }, if self.client { "C" } else { "S" });
        if self.bidir { format!("[{way}-{side}]") } else { String::new() }
    }
    fn ids(&self) -> &'static str {
        if self.bidir { "[ ID][Role]" } else { "[ ID]" }
    }
    /// A sum's name: the direction of the server has another where both are there.
    fn called(&self, sender: bool, plain: &'static str, reverse: &'static str) -> &'static str {
        if self.bidir && self.client != sender { reverse } else { plain }
    }
    /// `[  5]   0.00-1.00   sec  99.3 MBytes   833 Mbits/sec`.
    fn head(&self, id: Option<u32>, sender: bool, time: (f64, f64), bytes: u64, rate: f64) -> String {
        let id = id.map_or("SUM".to_owned(), |id| format!("{id:3}"));
        let (transfer, rate) = (units(bytes as f64, 'A'), units(rate, self.format));
        format!("[{id}]{} {:6.2}-{:<6.2} sec  {transfer}s  {rate}s/sec", self.role(sender), time.0, time.1)
    }

    /// What stands above the intervals.
    pub(crate) fn header(&self, sender: bool) -> String {
        let columns = match (self.udp, sender || self.bidir) {
            (false, true) => "Bitrate         Retr  Cwnd",
            (false, false) => "Bitrate",
            (true, true) if !self.bidir => "Bitrate         Total Datagrams",
            (true, _) => "Bitrate         Jitter    Lost/Total Datagrams",
        };
        format!("{} Interval           Transfer     {columns}\n", self.ids())
    }

    /// An interval as text, without what stands above it.
    pub(crate) fn interval(&self, interval: &Interval) -> String {
        let omitted = if interval.omitted { "(omitted)" } else { "" };
        let mut text = String::new();
        for sender in self.directions(|d| interval.rows.iter().any(|r| r.sender == d)) {
            let rows: Vec<&Row> = interval.rows.iter().filter(|r| r.sender == sender).collect();
            for row in &rows {
                let head =
                    self.head(Some(row.id), sender, (row.start, row.end), row.bytes, row.rate(row.bytes));
                text += &head;
                text += &match (self.udp, sender) {
                    (false, true) => {
                        let cwnd = units(row.tcp.cwnd as f64, 'A');
                        format!("  {:3}   {cwnd}s       {omitted}\n", row.tcp.retransmits)
                    }
                    (false, false) => format!("                  {omitted}\n"),
                    (true, true) => self.datagrams(row.packets, omitted),
                    (true, false) => lost(row.jitter, row.errors, row.packets, omitted),
                };
            }
            let (Some(first), true) = (rows.first().copied().or(interval.rows.first()), self.parallel > 1)
            else {
                continue;
            };
            let sum = Sum::of(&rows, self.parallel);
            let head = self.head(None, sender, (first.start, first.end), sum.bytes, first.rate(sum.bytes));
            text += &head;
            text += &match (self.udp, sender) {
                (false, true) => format!("  {:3}             {omitted}\n", sum.retransmits),
                (false, false) => format!("                  {omitted}\n"),
                (true, true) => self.datagrams(sum.packets, omitted),
                (true, false) => lost(sum.jitter, sum.errors, sum.packets, omitted),
            };
        }
        text
    }
    fn datagrams(&self, packets: u64, omitted: &str) -> String {
        format!(" {} {packets}  {omitted}\n", if self.bidir { "          " } else { "" })
    }

    /// The same as JSON.
    pub(crate) fn interval_json(&self, interval: &Interval) -> Json {
        let mut streams = Vec::new();
        let mut sums = Vec::new();
        let omitted = ("omitted", Json::Bool(interval.omitted));
        for sender in self.directions(|d| interval.rows.iter().any(|r| r.sender == d)) {
            let rows: Vec<&Row> = interval.rows.iter().filter(|r| r.sender == sender).collect();
            for row in &rows {
                let mut json = vec![("socket", int(row.id.into()))];
                json.extend(amounts(row.start, row.end, row.seconds.into(), row.bytes, row.rate(row.bytes)));
                match (self.udp, sender) {
                    (false, true) => json.extend([
                        ("retransmits", int(row.tcp.retransmits)),
                        ("snd_cwnd", int(row.tcp.cwnd)),
                        ("snd_wnd", int(row.tcp.window)),
                        ("rtt", Json::Int(row.tcp.rtt)),
                        ("rttvar", Json::Int(row.tcp.rttvar)),
                        ("pmtu", int(row.tcp.pmtu)),
                    ]),
                    (false, false) => {}
                    (true, true) => json.push(("packets", int(row.packets))),
                    (true, false) => json.extend(losses(row.jitter, row.errors, row.packets)),
                }
                json.extend([omitted.clone(), ("sender", Json::Bool(sender))]);
                streams.push(Json::Object(json));
            }
            // The first stream of all gives the times.
            let Some(first) = interval.rows.first() else { continue };
            let sum = Sum::of(&rows, self.parallel);
            let mut json =
                amounts(first.start, first.end, first.seconds.into(), sum.bytes, first.rate(sum.bytes));
            match (self.udp, sender) {
                (false, true) => json.push(("retransmits", int(sum.retransmits))),
                (false, false) => {}
                (true, true) => json.push(("packets", int(sum.packets))),
                (true, false) => json.extend(losses(sum.jitter, sum.errors, sum.packets)),
            }
            json.extend([omitted.clone(), ("sender", Json::Bool(sender))]);
            sums.push((self.called(sender, "sum", "sum_bidir_reverse"), Json::Object(json)));
        }
        let mut all = vec![("streams", Json::Array(streams))];
        all.extend(sums);
        Json::Object(all)
    }

    /// The end as text; what the server printed stands amid it (`server`).
    pub(crate) fn end(&self, ends: &Ends, mut server: Option<&str>) -> String {
        let sends = |d: bool| ends.rows.iter().any(|r| r.sender == d);
        let columns = match (self.udp, self.client || sends(true)) {
            (true, _) => "Bitrate         Jitter    Lost/Total Datagrams",
            (false, true) => "Bitrate         Retr",
            (false, false) => "Bitrate",
        };
        let mut text = format!("{SEPARATOR}{} Interval           Transfer     {columns}\n", self.ids());
        let (from_s, to_s) = (ends.sender_s, ends.receiver_s);
        for sender in self.directions(sends) {
            let (tells_sender, tells_receiver) = (self.client || sender, self.client || !sender);
            let rows: Vec<&End> = ends.rows.iter().filter(|r| r.sender == sender).collect();
            for r in &rows {
                let sent = self.head(Some(r.id), sender, (0.0, from_s), r.sent, per_second(r.sent, from_s));
                let received =
                    self.head(Some(r.id), sender, (0.0, to_s), r.received, per_second(r.received, to_s));
                if tells_sender {
                    text += &sent;
                    text += &match self.udp {
                        false => format!("  {:3}            sender\n", r.retransmits),
                        true => lost(0.0, 0, r.sent_packets, "sender"),
                    };
                }
                if self.udp && r.out_of_order > 0 {
                    text += &format!(
                        "[SUM]{} {:4.1}-{from_s:4.1} sec  {} datagrams received out-of-order\n",
                        self.role(sender),
                        0.0,
                        r.out_of_order
                    );
                }
                if tells_receiver {
                    text += &received;
                    text += &match self.udp {
                        false => "                  receiver\n".to_owned(),
                        true => lost(r.jitter, r.errors, r.received_packets, "receiver"),
                    };
                }
            }
            if self.parallel > 1 {
                let total = |of: fn(&End) -> u64| rows.iter().map(|r| of(r)).sum::<u64>();
                let (sent, received) = (total(|r| r.sent), total(|r| r.received));
                let jitter = rows.iter().map(|r| r.jitter).sum::<f64>() / f64::from(self.parallel);
                if tells_sender {
                    text += &self.head(None, sender, (0.0, from_s), sent, per_second(sent, from_s));
                    text += &match self.udp {
                        false => format!("  {:3}             sender\n", total(|r| r.retransmits)),
                        true => lost(0.0, 0, total(|r| r.sent_packets), "sender"),
                    };
                }
                if tells_receiver {
                    text += &self.head(None, sender, (0.0, to_s), received, per_second(received, to_s));
                    let (errors, of) = (total(|r| r.errors), total(|r| r.received_packets));
                    let percent = share(errors, total(End::packets));
                    text += &match self.udp {
                        false => "                  receiver\n".to_owned(),
                        true => lost_percent(jitter, errors, of, percent, "receiver"),
                    };
                }
            }
            // Once, behind the first direction.
            if let Some(said) = server.take() {
                text += &format!("\nServer output:\n{said}\n");
            }
        }
        text
    }

    /// The same as JSON.
    pub(crate) fn end_json(&self, ends: &Ends) -> Vec<(&'static str, Json)> {
        let sends = |d: bool| ends.rows.iter().any(|r| r.sender == d);
        let (from_s, to_s) = (ends.sender_s, ends.receiver_s);
        let mut streams = Vec::new();
        let mut sums = Vec::new();
        for sender in self.directions(sends) {
            let rows: Vec<&End> = ends.rows.iter().filter(|r| r.sender == sender).collect();
            let said = ("sender", Json::Bool(sender));
            // A server knows nothing of retransmissions at the client.
            let retransmits = self.client || sender;
            for r in &rows {
                let socket = ("socket", int(r.id.into()));
                let mut json = vec![socket.clone()];
                json.extend(amounts(0.0, from_s, from_s, r.sent, per_second(r.sent, from_s)));
                if self.udp {
                    json.extend(losses(r.jitter, r.errors, r.packets()));
                    json.extend([("out_of_order", int(r.out_of_order)), said.clone()]);
                    streams.push(Json::Object(vec![("udp", Json::Object(json))]));
                    continue;
                }
                if retransmits {
                    json.extend([
                        ("retransmits", int(r.retransmits)),
                        ("max_snd_cwnd", int(r.max_cwnd)),
                        ("max_snd_wnd", int(r.max_window)),
                        ("max_rtt", Json::Int(r.max_rtt)),
                        ("min_rtt", Json::Int(r.min_rtt)),
                        ("mean_rtt", Json::Int(r.mean_rtt)),
                    ]);
                }
                json.push(said.clone());
                let mut other = vec![socket];
                other.extend(amounts(0.0, to_s, ends.own_s, r.received, per_second(r.received, to_s)));
                other.push(said.clone());
                let both = vec![("sender", Json::Object(json)), ("receiver", Json::Object(other))];
                streams.push(Json::Object(both));
            }
            let total = |of: fn(&End) -> u64| rows.iter().map(|r| of(r)).sum::<u64>();
            let (sent, received) = (total(|r| r.sent), total(|r| r.received));
            let mut put = |plain, reverse, json| {
                sums.push((self.called(sender, plain, reverse), Json::Object(json)));
            };
            let mut from = amounts(0.0, from_s, from_s, sent, per_second(sent, from_s));
            let mut to = amounts(0.0, to_s, to_s, received, per_second(received, to_s));
            if self.udp {
                let jitter = rows.iter().map(|r| r.jitter).sum::<f64>() / f64::from(self.parallel.max(1));
                let (errors, packets) = (total(|r| r.errors), total(End::packets));
                let mut sum = amounts(0.0, to_s, to_s, sent, per_second(sent, from_s));
                sum.extend(losses(jitter, errors, packets));
                sum.push(said.clone());
                put("sum", "sum_bidir_reverse", sum);
                from.extend(losses(0.0, 0, total(|r| r.sent_packets)));
                from.push(("sender", Json::Bool(true)));
                to.extend([
                    ("jitter_ms", Json::Float(jitter * 1000.0)),
                    ("lost_packets", int(errors)),
                    ("packets", int(total(|r| r.received_packets))),
                    ("lost_percent", Json::Float(share(errors, packets))),
                    ("sender", Json::Bool(false)),
                ]);
            } else {
                if retransmits {
                    from.push(("retransmits", int(total(|r| r.retransmits))));
                }
                from.push(said.clone());
                to.push(said.clone());
            }
            put("sum_sent", "sum_sent_bidir_reverse", from);
            put("sum_received", "sum_received_bidir_reverse", to);
        }
        let mut end = vec![("streams", Json::Array(streams))];
        end.extend(sums);
        let names =
            ["host_total", "host_user", "host_system", "remote_total", "remote_user", "remote_system"];
        let cpu = names.into_iter().zip(ends.cpu).map(|(name, x)| (name, Json::Float(x))).collect();
        end.push(("cpu_utilization_percent", Json::Object(cpu)));
        if !self.udp {
            end.push(("sender_tcp_congestion", Json::Text(ends.congestion.0.clone())));
            end.push(("receiver_tcp_congestion", Json::Text(ends.congestion.1.clone())));
        }
        end
    }
}

/// The sum of some streams in an interval.
struct Sum {
    bytes: u64,
    retransmits: u64,
    packets: u64,
    errors: u64,
    /// The mean over all streams of a direction.
    jitter: f64,
}

impl Sum {
    fn of(rows: &[&Row], streams: u32) -> Sum {
        Sum {
            bytes: rows.iter().map(|r| r.bytes).sum(),
            retransmits: rows.iter().map(|r| r.tcp.retransmits).sum(),
            packets: rows.iter().map(|r| r.packets).sum(),
            errors: rows.iter().map(|r| r.errors).sum(),
            jitter: rows.iter().map(|r| r.jitter).sum::<f64>() / f64::from(streams.max(1)),
        }
    }
}

fn lost(jitter: f64, errors: u64, packets: u64, behind: &str) -> String {
    lost_percent(jitter, errors, packets, share(errors, packets), behind)
}

fn lost_percent(jitter: f64, errors: u64, packets: u64, percent: f64, behind: &str) -> String {
    format!("  {:5.3} ms  {errors}/{packets} ({}%)  {behind}\n", jitter * 1000.0, general(percent, 2))
}

fn amounts(start: f64, end: f64, seconds: f64, bytes: u64, rate: f64) -> Vec<(&'static str, Json)> {
    vec![
        ("start", Json::Float(start)),
        ("end", Json::Float(end)),
        ("seconds", Json::Float(seconds)),
        ("bytes", int(bytes)),
        ("bits_per_second", Json::Float(rate * 8.0)),
    ]
}

fn losses(jitter: f64, errors: u64, packets: u64) -> [(&'static str, Json); 4] {
    [
        ("jitter_ms", Json::Float(jitter * 1000.0)),
        ("lost_packets", int(errors)),
        ("packets", int(packets)),
        ("lost_percent", Json::Float(share(errors, packets))),
    ]
}
