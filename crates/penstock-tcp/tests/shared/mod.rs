//! Several connections over one FIFO in one direction, each with a way back of its own; greedy senders, readers that read at once.

use penstock_model::{Kernel, Span, Time};
use penstock_packet::Tcp;
use penstock_tcp::{Buffer, Config, EcnField, Endpoint, State, Transmit};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub struct Flow {
    cfg: Config,
    half: Span,
    ends: [Option<Endpoint>; 2],
    asked: [Option<Time>; 2],
    read: u64,
    begun: u64,
    /// The window over time, in ms, where it changed by more than a tenth or after 20 ms.
    windows: Vec<(u64, u32)>,
}

impl Flow {
    /// A flow with this controller and round trip.
    pub fn new(cc: &str, rtt_ms: u64) -> Flow {
        let mut cfg = Config::linux(Kernel::V6_12);
        cfg.set_cc(cc).unwrap();
        cfg.sndbuf = Buffer::Auto(16_384, 64 << 20);
        cfg.rcvbuf = Buffer::Auto(131_072, 64 << 20);
        let half = Span::from_us(rtt_ms as i64 * 500);
        Flow { cfg, half, ends: [None, None], asked: [None; 2], read: 0, begun: 0, windows: Vec::new() }
    }
}

enum What {
    Segment { flow: usize, to: usize, tcp: Tcp, len: u32 },
    Timer { flow: usize, end: usize },
}
struct Event(Time, u64, What);
impl PartialEq for Event {
    fn eq(&self, o: &Event) -> bool {
        (self.0, self.1) == (o.0, o.1)
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, o: &Event) -> Option<std::cmp::Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for Event {
    fn cmp(&self, o: &Event) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(o.0, o.1))
    }
}

pub struct Shared {
    flows: Vec<Flow>,
    rate: i64,
    buffer: i64,
    now: Time,
    start: Time,
    free_at: Time,
    order: u64,
    events: BinaryHeap<Reverse<Event>>,
    queued_ns: i128,
    looked: i128,
    lost: u64,
}

impl Shared {
    pub fn new(flows: Vec<Flow>, rate: i64, buffer: u64) -> Shared {
        let start = Time::ZERO + Span::from_secs(10);
        let mut s = Shared {
            flows,
            rate,
            buffer: buffer as i64,
            now: start,
            start,
            free_at: start,
            order: 0,
            events: BinaryHeap::new(),
            queued_ns: 0,
            looked: 0,
            lost: 0,
        };
        for i in 0..s.flows.len() {
            // A few ms apart, lest they march in step.
            s.now = start + Span::from_us(3_700 * i as i64);
            s.flows[i].ends[0] =
                Some(Endpoint::connect(&s.flows[i].cfg, 1_000 + i as u16, 80, 77 + i as u32, s.now));
            s.pump(i, 0);
        }
        s.now = start;
        s
    }

    fn push(&mut self, at: Time, what: What) {
        self.order += 1;
        self.events.push(Reverse(Event(at, self.order, what)));
    }

    fn transmit(&mut self, flow: usize, from: usize, t: &Transmit) {
        let mut at = self.now;
        if from == 0 {
            let bits = i64::from(34 + t.tcp.header_len() + t.payload_len) * 8;
            let waits = (self.free_at - self.now).max(Span::ZERO);
            let queued = waits.as_ns() as i128 * i128::from(self.rate) / 8_000_000_000;
            self.queued_ns += i128::from(waits.as_ns());
            self.looked += 1;
            if queued + i128::from(bits / 8) > i128::from(self.buffer) {
                self.lost += 1;
                return;
            }
            self.free_at = self.now.max(self.free_at) + Span::from_ns(bits * 1_000_000_000 / self.rate);
            at = self.free_at;
        }
        let to = 1 - from;
        let what = What::Segment { flow, to, tcp: t.tcp, len: t.payload_len };
        self.push(at + self.flows[flow].half, what);
    }

    fn pump(&mut self, flow: usize, end: usize) {
        loop {
            let now = self.now;
            let f = &mut self.flows[flow];
            let Some(e) = f.ends[end].as_mut() else { return };
            let mut moved = false;
            if let Some(t) = e.poll_transmit(now) {
                self.transmit(flow, end, &t);
                continue;
            }
            if end == 0 && e.state() == State::Established {
                moved |= e.writable() && e.write(1 << 20, now) > 0;
            } else if e.readable() > 0 {
                f.read += e.read(u64::MAX, now);
                moved = true;
            }
            if !moved {
                break;
            }
        }
        let ms = ((self.now - self.start).as_ns() / 1_000_000) as u64;
        let f = &mut self.flows[flow];
        if end == 0 {
            let cwnd = f.ends[0].as_ref().map_or(0, Endpoint::cwnd);
            if f.windows.last().is_none_or(|w| ms >= w.0 + 20 || cwnd.abs_diff(w.1) > w.1 / 10) {
                f.windows.push((ms, cwnd));
            }
        }
        let next = f.ends[end].as_ref().and_then(Endpoint::poll_timeout);
        if next != f.asked[end] {
            f.asked[end] = next;
            if let Some(at) = next {
                self.push(at.max(self.now), What::Timer { flow, end });
            }
        }
    }

    pub fn run_until_ms(&mut self, ms: u64) {
        let until = self.start + Span::from_ms(ms as i64);
        while self.events.peek().is_some_and(|e| e.0.0 <= until) {
            let Reverse(Event(at, _, what)) = self.events.pop().unwrap();
            self.now = at;
            match what {
                What::Segment { flow, to, tcp, len } => {
                    let f = &mut self.flows[flow];
                    match f.ends[to].as_mut() {
                        Some(e) => e.handle_segment(&tcp, len, EcnField::NotEct, at),
                        None => f.ends[to] = Endpoint::accept(&f.cfg, &tcp, 99, at),
                    }
                    self.pump(flow, to);
                }
                What::Timer { flow, end } => {
                    let f = &mut self.flows[flow];
                    if f.asked[end] == Some(at) {
                        f.asked[end] = None;
                        f.ends[end].as_mut().unwrap().handle_timeout(at);
                        self.pump(flow, end);
                    }
                }
            }
        }
        self.now = until;
    }

    /// What was before does not count.
    pub fn begin(&mut self) {
        for f in &mut self.flows {
            f.begun = f.read;
            f.windows.clear();
        }
        (self.queued_ns, self.looked, self.lost) = (0, 0, 0);
    }
    /// Segments lost to the full buffer since.
    pub fn lost(&self) -> u64 {
        self.lost
    }
    /// Bytes read of each flow since.
    pub fn delivered(&self) -> Vec<u64> {
        self.flows.iter().map(|f| f.read - f.begun).collect()
    }
    /// What a segment found before it in the queue, ms.
    pub fn mean_queue_ms(&self) -> f64 {
        self.queued_ns as f64 / self.looked.max(1) as f64 / 1e6
    }
    /// The window before each fall by more than a tenth, and the least after it.
    pub fn falls(&self, flow: usize) -> Vec<(u32, u32)> {
        let w = &self.flows[flow].windows;
        let mut falls = Vec::new();
        let (mut top, mut low) = (0, u32::MAX);
        for &(_, cwnd) in w {
            if low < u32::MAX && cwnd > low + low / 20 {
                falls.push((top, low));
                (top, low) = (cwnd, u32::MAX);
            } else if cwnd < top - top / 10 {
                low = low.min(cwnd);
            }
            top = if low == u32::MAX { top.max(cwnd) } else { top };
        }
        falls
    }
    /// The window before a fall and how long it took to come back to within a hundredth of it, ms.
    pub fn comeback(&self, flow: usize) -> Option<(u32, u64)> {
        let w = &self.flows[flow].windows;
        let mut top = (0, 0);
        let mut fell = None;
        for &(ms, cwnd) in w {
            match fell {
                None if cwnd < top.1 - top.1 / 5 => fell = Some(ms),
                None if cwnd >= top.1 => top = (ms, cwnd),
                Some(at) if cwnd >= top.1 - top.1 / 100 => return Some((top.1, ms - at)),
                _ => {}
            }
        }
        None
    }
}
