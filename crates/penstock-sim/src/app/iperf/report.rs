//! iperf's reporter: what is printed when, from the packets (writes, reads, datagrams) it is told of.
//!
//! Follows: iperf 2.0.4 `Reporter.c` `reporter_handle_packet`, `reporter_condprintstats`,
//! `reporter_handle_multiple_reports`; iperf 2.2.1 `Reporter.c` where a [`Form`] says so: a last interval of more than a quarter has a row of its
//! own, the jitter of a whole transfer is the mean of those after each datagram.

use crate::app::form::{percent, units};
use crate::app::iperf::rows::{Form, More, Stats, Tcp, Who};
use crate::results::Interval;
use penstock_model::{Span, Time};

/// The printing side, common to all streams of a program.
#[derive(Debug)]
pub(crate) struct Printer {
    pub(crate) format: char,
    pub(crate) text: String,
    header_printed: bool,
    /// That of 2.2; `None`: that of 2.0.
    pub(crate) form: Option<Form>,
}

impl Printer {
    pub(crate) fn new(format: char, form: Option<Form>) -> Printer {
        Printer { format, text: String::new(), header_printed: false, form }
    }
    /// One row of whom `who` says.
    fn tell(&mut self, who: Who<'_>, s: &Stats, datagrams: bool) {
        match (&mut self.form, who) {
            (Some(form), _) => form.row(who, s, &mut self.text),
            (None, Who::One(id, _)) => self.line(Some(id), s, datagrams),
            (None, _) => self.line(None, s, datagrams),
        }
    }
    /// What the server of a stream has told.
    pub(crate) fn relay(&mut self, id: u32, s: &Stats) {
        match &mut self.form {
            Some(form) if form.csv => {}
            Some(form) => {
                self.text.push_str(&format!("[{id:3}] Server Report:\n"));
                // Its head comes each time.
                form.heads.clear();
                form.row(Who::Relay(id), s, &mut self.text);
            }
            None => {
                self.text.push_str(&format!("[{id:3}] Server Report:\n"));
                self.line(Some(id), s, true);
            }
        }
    }
    /// One line; `id` `None` is the sum. `datagrams`: with jitter and losses, as a UDP server tells.
    fn line(&mut self, id: Option<u32>, s: &Stats, datagrams: bool) {
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
    /// Bytes of a bin of reads.
    bin: u64,
    /// The two ends as `-y C` has them.
    ends: String,
    /// Of the interval under way, in 2.2.
    now: More,
    /// The jitter after each datagram: how many, and their sum.
    jitters: (u64, f64),
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
            bin: 1,
            ends: String::new(),
            now: More::default(),
            jitters: (0, 0.0),
        }
    }
    /// The same with what only 2.2 tells: the length of the buffer, and the two ends.
    pub(crate) fn with(mut self, len: u32, ends: String) -> Report {
        (self.bin, self.ends) = ((u64::from(len) / 8).max(1), ends);
        self
    }
    /// What TCP says of the connection, for the rows from here on.
    pub(crate) fn tcp(&mut self, tcp: Tcp) {
        self.now.tcp = Tcp { retries: tcp.retries - self.total.more.tcp.retries, ..tcp };
    }
    /// When the interval under way ends; `None` without intervals.
    pub(crate) fn due(&self) -> Option<Time> {
        self.has_intervals().then_some(self.next)
    }
    /// Whether packets are told of one by one.
    pub(crate) fn has_intervals(&self) -> bool {
        self.interval > Span::ZERO
    }
    /// A packet: so many bytes at this time.
    pub(crate) fn packet(&mut self, at: Time, len: u64, out: &mut Printer, sums: &mut Sums) {
        self.intervals(at, out, sums);
        self.total.bytes += len;
        (sums.seen, sums.every) = (sums.seen.max(at - self.start), self.interval);
        let bin = (len.saturating_sub(1) / self.bin).min(7) as usize;
        for more in [&mut self.now, &mut self.total.more] {
            more.calls += 1;
            more.packets += 1;
            more.bins[bin] += 1;
        }
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
        let in_order = id == self.packet_id + 1 || id > self.packet_id;
        if out.form.is_none() || in_order {
            if self.last_transit != 0.0 {
                let delta = (transit - self.last_transit).abs();
                self.total.jitter += (delta - self.total.jitter) / 16.0;
                self.jitters = (self.jitters.0 + 1, self.jitters.1 + self.total.jitter);
            }
            self.last_transit = transit;
            self.now.transit.add(transit);
            self.total.more.transit.add(transit);
        }
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
                more: self.interval_more(out),
            };
            self.last = Stats { datagrams: self.packet_id, ..self.total };
            self.end = stats.end;
            self.next += self.interval;
            out.tell(Who::One(self.id, &self.ends), &stats, self.datagrams);
            sums.intervals.push(Interval {
                stream: self.stream,
                from: stats.start,
                to: stats.end,
                bytes: stats.bytes,
            });
            sums.add(&stats, self.datagrams, &self.ends, out);
        }
    }
    /// What 2.2 tells of the interval that ends; the next one begins.
    fn interval_more(&mut self, out: &Printer) -> More {
        if out.form.is_none() {
            return More::default();
        }
        let mut more = std::mem::take(&mut self.now);
        self.now.tcp = Tcp { retries: 0, ..more.tcp };
        self.total.more.tcp = Tcp { retries: self.total.more.tcp.retries + more.tcp.retries, ..more.tcp };
        more.pps = more.packets as f64 / self.interval.as_secs_f64();
        more.at_ns = (self.next + self.interval).as_ns();
        more
    }
    /// The transfer is over: prints the whole of it.
    pub(crate) fn close(&mut self, at: Time, out: &mut Printer, sums: &mut Sums) -> Stats {
        let new = out.form.as_ref().map(|form| (form.udp, form.server));
        let rest = self.total.bytes - self.last.bytes;
        if let Some((udp, server)) = new
            && rest > 0
            && self.has_intervals()
            && (server || !udp)
        {
            self.rest(at, rest, out);
        }
        let t = &self.total;
        let mut stats = Stats {
            start: Span::ZERO,
            end: at - self.start,
            errors: if t.errors > t.out_of_order { t.errors - t.out_of_order } else { t.errors },
            datagrams: self.packet_id,
            ..*t
        };
        if new.is_some() {
            let more = &mut stats.more;
            more.tcp = Tcp { retries: more.tcp.retries + self.now.tcp.retries, ..self.now.tcp };
            (more.whole, more.at_ns) = (true, at.as_ns());
            // The clock of datagrams runs on to the end of the interval (`IPGsumcarry`); without intervals it stands still.
            more.pps = if self.has_intervals() {
                more.packets as f64 / (self.next - self.start).as_secs_f64()
            } else {
                -0.0
            };
            stats.jitter = if self.jitters.0 > 0 { self.jitters.1 / self.jitters.0 as f64 } else { 0.0 };
        }
        out.tell(Who::One(self.id, &self.ends), &stats, self.datagrams);
        sums.add_final(&stats, self.datagrams, &self.ends, out);
        stats
    }
    /// The row of the last interval, if it is longer than a quarter of one.
    fn rest(&mut self, at: Time, bytes: u64, out: &mut Printer) {
        if (at - self.start - self.end).as_ns() * 4 <= self.interval.as_ns() {
            return;
        }
        let (t, last) = (&self.total, &self.last);
        let out_of_order = t.out_of_order - last.out_of_order;
        let mut more = self.now;
        if out.form.as_ref().is_some_and(|form| form.server && !form.udp) {
            // All reads of the transfer, beside the bins of the interval, as there.
            more.calls = t.more.calls;
        }
        more.pps = more.packets as f64 / self.interval.as_secs_f64();
        more.at_ns = self.next.as_ns();
        let stats = Stats {
            start: self.end,
            end: at - self.start,
            bytes,
            jitter: t.jitter,
            errors: (t.errors - last.errors).saturating_sub(out_of_order),
            datagrams: self.packet_id - last.datagrams,
            out_of_order,
            more,
        };
        out.tell(Who::One(self.id, &self.ends), &stats, self.datagrams);
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
    /// When the newest packet was.
    seen: Span,
    /// How long an interval is.
    every: Span,
    /// All interval rows of sums together, and the end of the newest.
    told: Stats,
}

impl Sums {
    pub(crate) fn new(threads: u32) -> Sums {
        Sums { threads, ..Sums::default() }
    }
    fn add(&mut self, stats: &Stats, datagrams: bool, ends: &str, out: &mut Printer) {
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
            add_to(&mut self.told, &sum);
            out.tell(Who::Sum(self.threads, &together(ends, out)), &sum, datagrams);
        }
    }
    fn add_final(&mut self, stats: &Stats, datagrams: bool, ends: &str, out: &mut Printer) {
        let (sum, count) = self.last.get_or_insert_default();
        add_to(sum, stats);
        *count += 1;
        if *count >= self.threads {
            let (sum, count) = (*sum, *count);
            self.last = None;
            if count > 1 {
                let ends = together(ends, out);
                let sum = self.whole(sum, count, &ends, out);
                out.tell(Who::Sum(count, &ends), &sum, datagrams);
                if out.form.as_ref().is_some_and(|form| form.udp && !form.server && !form.csv) {
                    let sent = sum.more.packets + u64::from(count);
                    out.text.push_str(&format!("[SUM-{count}] Sent {sent} datagrams\n"));
                }
            }
            (self.told, self.seen) = (Stats::default(), Span::ZERO);
        }
    }
    /// The sum of whole transfers as 2.2 tells it: a server of TCP adds the row of the last interval, and counts reads twice that were in rows;
    /// a client's ends with its last write.
    fn whole(&self, mut sum: Stats, count: u32, ends: &str, out: &mut Printer) -> Stats {
        let Some(form) = &out.form else { return sum };
        sum.more.whole = true;
        match (form.udp, form.server) {
            (false, true) => {
                let told = self.told;
                let rest = sum.end - told.end;
                let interval = told.end > Span::ZERO;
                if interval && sum.bytes > told.bytes && rest.as_ns() * 4 > self.every.as_ns() {
                    let mut more = sum.more;
                    more.bins.iter_mut().zip(told.more.bins).for_each(|(all, told)| *all -= told);
                    more.whole = false;
                    let stats = Stats { start: told.end, bytes: sum.bytes - told.bytes, more, ..sum };
                    out.tell(Who::Sum(count, ends), &stats, false);
                }
                sum.more.calls += told.more.calls;
            }
            (false, false) => sum.end = self.seen,
            (true, _) => sum.more.pps = sum.more.packets as f64 / sum.end.as_secs_f64().max(1e-9),
        }
        sum
    }
}

/// The ends of several streams: the client's port is 0.
fn together(ends: &str, out: &Printer) -> String {
    let mut fields: Vec<&str> = ends.split(',').collect();
    if out.form.is_some() && fields.len() == 4 {
        fields[1] = "0";
    }
    fields.join(",")
}

fn add_to(sum: &mut Stats, stats: &Stats) {
    sum.bytes += stats.bytes;
    sum.errors += stats.errors;
    sum.datagrams += stats.datagrams;
    sum.out_of_order += stats.out_of_order;
    sum.end = sum.end.max(stats.end);
    sum.jitter = sum.jitter.max(stats.jitter);
    sum.more.join(&stats.more);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_document_s() {
        let mut out = Printer::new('a', None);
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
        let mut out = Printer::new('a', None);
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
        let mut out = Printer::new('a', None);
        let mut sums = Sums::new(2);
        for id in [3, 4] {
            let mut report = Report::new(id, id - 3, false, Time::ZERO, Span::ZERO);
            report.packet(Time::from_ns(1), 1 << 20, &mut out, &mut sums);
            report.close(Time::from_ns(1_000_000_000), &mut out, &mut sums);
        }
        assert!(out.text.ends_with("[SUM]  0.0- 1.0 sec  2.00 MBytes  16.8 Mbits/sec\n"), "{}", out.text);
    }
}
