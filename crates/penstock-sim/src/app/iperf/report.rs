//! iperf's reporter: what is printed when, from the packets (writes, reads, datagrams) it is told of.
//!
//! Follows: iperf 2.0.4 `Reporter.c` `reporter_handle_packet`, `reporter_condprintstats`,
//! `reporter_handle_multiple_reports`.

use crate::app::form::{percent, units};
use crate::results::Interval;
use penstock_model::{Span, Time};

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
}

/// The printing side, common to all streams of a program.
#[derive(Debug)]
pub(crate) struct Printer {
    pub(crate) format: char,
    pub(crate) text: String,
    header_printed: bool,
}

impl Printer {
    pub(crate) fn new(format: char) -> Printer {
        Printer { format, text: String::new(), header_printed: false }
    }
    /// One line; `id` `None` is the sum. `datagrams`: with jitter and losses, as a UDP server tells.
    pub(crate) fn line(&mut self, id: Option<u32>, s: &Stats, datagrams: bool) {
        if !self.header_printed {
            self.header_printed = true;
            self.text.push_str(if datagrams {
                "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n"
            } else {
                "[ ID] Interval       Transfer     Bandwidth\n"
            });
        }
        let id = match id {
            Some(id) => format!("[{id:3}]"),
            None => "[SUM]".to_owned(),
        };
        let seconds = (s.end - s.start).as_secs_f64();
        let (start, end) = (s.start.as_secs_f64(), s.end.as_secs_f64());
        let bytes = units(s.bytes as f64, self.format.to_ascii_uppercase());
        let rate = units(if seconds > 0.0 { s.bytes as f64 / seconds } else { 0.0 }, self.format);
        let mut line = format!("{id} {start:4.1}-{end:4.1} sec  {bytes}s  {rate}s/sec");
        if datagrams {
            let (lost, all) = (s.errors, s.datagrams);
            line.push_str(&format!(
                "  {:6.3} ms {lost:4}/{all:5} ({}%)",
                s.jitter * 1000.0,
                percent(lost, all)
            ));
        }
        self.text.push_str(&line);
        self.text.push('\n');
        if datagrams && s.out_of_order > 0 {
            let n = s.out_of_order;
            self.text
                .push_str(&format!("{id} {start:4.1}-{end:4.1} sec  {n} datagrams received out-of-order\n"));
        }
    }
}

/// The report of one stream.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    // Parameters
    pub(crate) id: u32,
    stream: u32,
    /// Tells of datagrams received.
    datagrams: bool,
    start: Time,
    interval: Span,
    // Variables
    next: Time,
    end: Span,
    total: Stats,
    last: Stats,
    packet_id: u64,
    last_transit: f64,
}

impl Report {
    pub(crate) fn new(id: u32, stream: u32, datagrams: bool, start: Time, interval: Span) -> Report {
        Report {
            id,
            stream,
            datagrams,
            start,
            interval,
            next: start + interval,
            end: Span::ZERO,
            total: Stats::default(),
            last: Stats::default(),
            packet_id: 0,
            last_transit: 0.0,
        }
    }
    /// Whether packets are told of one by one.
    pub(crate) fn has_intervals(&self) -> bool {
        self.interval > Span::ZERO
    }
    /// A packet: so many bytes at this time.
    pub(crate) fn packet(&mut self, at: Time, len: u64, out: &mut Printer, sums: &mut Sums) {
        self.intervals(at, out, sums);
        self.total.bytes += len;
    }
    /// A datagram received: its number, and how long it travelled. The first has number 0 and is not counted.
    pub(crate) fn datagram(
        &mut self,
        at: Time,
        len: u64,
        id: u64,
        transit: Span,
        out: &mut Printer,
        sums: &mut Sums,
    ) {
        self.packet(at, len, out, sums);
        if id == 0 {
            return;
        }
        let transit = (transit.as_ns() / 1000) as f64 / 1e6;
        if self.last_transit != 0.0 {
            let delta = (transit - self.last_transit).abs();
            self.total.jitter += (delta - self.total.jitter) / 16.0;
        }
        self.last_transit = transit;
        if id != self.packet_id + 1 {
            if id < self.packet_id + 1 {
                self.total.out_of_order += 1;
            } else {
                self.total.errors += id - self.packet_id - 1;
            }
        }
        self.packet_id = self.packet_id.max(id);
    }
    /// Prints the intervals that ended before `at`.
    fn intervals(&mut self, at: Time, out: &mut Printer, sums: &mut Sums) {
        while self.has_intervals() && self.next < at {
            let out_of_order = self.total.out_of_order - self.last.out_of_order;
            let errors = self.total.errors - self.last.errors;
            let stats = Stats {
                start: self.end,
                end: self.next - self.start,
                bytes: self.total.bytes - self.last.bytes,
                jitter: self.total.jitter,
                errors: if errors > out_of_order { errors - out_of_order } else { errors },
                datagrams: self.packet_id - self.last.datagrams,
                out_of_order,
            };
            self.last = Stats { datagrams: self.packet_id, ..self.total };
            self.end = stats.end;
            self.next += self.interval;
            out.line(Some(self.id), &stats, self.datagrams);
            sums.intervals.push(Interval {
                stream: self.stream,
                from: stats.start,
                to: stats.end,
                bytes: stats.bytes,
            });
            sums.add(&stats, self.datagrams, out);
        }
    }
    /// The transfer is over: prints the whole of it.
    pub(crate) fn close(&mut self, at: Time, out: &mut Printer, sums: &mut Sums) -> Stats {
        let t = &self.total;
        let stats = Stats {
            start: Span::ZERO,
            end: at - self.start,
            errors: if t.errors > t.out_of_order { t.errors - t.out_of_order } else { t.errors },
            datagrams: self.packet_id,
            ..*t
        };
        out.line(Some(self.id), &stats, self.datagrams);
        sums.add_final(&stats, self.datagrams, out);
        stats
    }
}

/// Sums over streams that run together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sums {
    /// How many streams there are; sums are printed when all have told.
    pub(crate) threads: u32,
    slots: Vec<(Stats, u32)>,
    last: Option<(Stats, u32)>,
    /// Every interval line so far.
    pub(crate) intervals: Vec<Interval>,
}

impl Sums {
    pub(crate) fn new(threads: u32) -> Sums {
        Sums { threads, ..Sums::default() }
    }
    fn add(&mut self, stats: &Stats, datagrams: bool, out: &mut Printer) {
        if self.threads < 2 {
            return;
        }
        let at = self.slots.iter().position(|(s, _)| s.start == stats.start).unwrap_or_else(|| {
            self.slots.push((Stats { start: stats.start, ..Stats::default() }, 0));
            self.slots.len() - 1
        });
        let (sum, count) = &mut self.slots[at];
        add_to(sum, stats);
        *count += 1;
        if *count == self.threads {
            let (sum, _) = self.slots.remove(at);
            out.line(None, &sum, datagrams);
        }
    }
    fn add_final(&mut self, stats: &Stats, datagrams: bool, out: &mut Printer) {
        let (sum, count) = self.last.get_or_insert_default();
        add_to(sum, stats);
        *count += 1;
        if *count >= self.threads {
            if *count > 1 {
                let sum = *sum;
                out.line(None, &sum, datagrams);
            }
            self.last = None;
        }
    }
}

fn add_to(sum: &mut Stats, stats: &Stats) {
    sum.bytes += stats.bytes;
    sum.errors += stats.errors;
    sum.datagrams += stats.datagrams;
    sum.out_of_order += stats.out_of_order;
    sum.end = sum.end.max(stats.end);
    sum.jitter = sum.jitter.max(stats.jitter);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_document_s() {
        let mut out = Printer::new('a');
        let mut sums = Sums::new(1);
        let mut report = Report::new(3, 0, false, Time::ZERO, Span::from_secs(2));
        report.packet(Time::from_ns(1_000_000_000), 991_232, &mut out, &mut sums);
        report.packet(Time::from_ns(2_000_000_001), 753_664, &mut out, &mut sums);
        report.packet(Time::from_ns(4_000_000_001), 0, &mut out, &mut sums);
        report.close(Time::from_ns(4_049_000_000), &mut out, &mut sums);
        // Founding document 004, section 10.2: 968 and 736 KBytes in 2 s each.
        let want = "[ ID] Interval       Transfer     Bandwidth
[  3]  0.0- 2.0 sec   968 KBytes  3.96 Mbits/sec
[  3]  2.0- 4.0 sec   736 KBytes  3.01 Mbits/sec
[  3]  0.0- 4.0 sec  1.66 MBytes  3.45 Mbits/sec
";
        assert_eq!(out.text, want);
    }

    #[test]
    fn datagrams_are_counted_as_iperf_does() {
        let mut out = Printer::new('a');
        let mut sums = Sums::new(1);
        let mut report = Report::new(3, 0, true, Time::ZERO, Span::ZERO);
        for id in [0u64, 1, 2, 4, 3, 7] {
            let at = Time::from_ns(id as i64 * 10_000_000);
            report.datagram(at, 1470, id, Span::from_ms(1), &mut out, &mut sums);
        }
        let stats = report.close(Time::from_ns(1_000_000_000), &mut out, &mut sums);
        assert_eq!((stats.errors, stats.out_of_order, stats.datagrams), (2, 1, 7));
        assert!(
            out.text
                .contains("[  3]  0.0- 1.0 sec  8.61 KBytes  70.6 Kbits/sec   0.000 ms    2/    7 (29%)\n"),
            "{}",
            out.text
        );
    }

    #[test]
    fn sums_wait_for_all() {
        let mut out = Printer::new('a');
        let mut sums = Sums::new(2);
        for id in [3, 4] {
            let mut report = Report::new(id, id - 3, false, Time::ZERO, Span::ZERO);
            report.packet(Time::from_ns(1), 1 << 20, &mut out, &mut sums);
            report.close(Time::from_ns(1_000_000_000), &mut out, &mut sums);
        }
        assert!(out.text.ends_with("[SUM]  0.0- 1.0 sec  2.00 MBytes  16.8 Mbits/sec\n"), "{}", out.text);
    }
}
