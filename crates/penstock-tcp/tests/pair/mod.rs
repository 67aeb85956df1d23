//! Two endpoints and the line between them, in virtual time.
#![allow(dead_code, missing_docs)]

use penstock_model::{Span, Time};
use penstock_packet::{Tcp, TcpFlags};
use penstock_tcp::{Config, EcnField, Endpoint, State, Transmit};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

pub const A: usize = 0;
pub const B: usize = 1;

/// One direction of the line.
#[derive(Clone, Debug)]
pub struct Line {
    pub delay: Span,
    /// Bits per second; 0: no limit.
    pub rate_bit_s: i64,
    /// Frames that wait at most; more are dropped at the tail.
    pub limit: usize,
    /// Bytes of frames that wait at most.
    pub limit_bytes: u32,
    /// Sets CE on ECT segments while more than this wait.
    pub mark_above: usize,
    /// The first frame after a pause goes at once and those behind it wait, as with a tbf of one frame's burst.
    pub tbf: bool,
    /// That frame's length, bytes.
    pub burst: u32,
    /// Lengths as ns-2 has them: 40 bytes of headers and 8 a SACK block, no link-layer header.
    pub ns2: bool,
}

impl Default for Line {
    fn default() -> Line {
        Line {
            delay: Span::from_ms(10),
            rate_bit_s: 0,
            limit: usize::MAX,
            limit_bytes: u32::MAX,
            mark_above: usize::MAX,
            tbf: false,
            burst: 1514,
            ns2: false,
        }
    }
}

/// What happens to a segment beside the line's own doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Pass,
    Drop,
    /// Takes its time on the line and is lost behind it.
    Lost,
    /// Arrives this much later than it would.
    Late(Span),
    /// Passes by the line's queue and takes this long.
    Aside(Span),
    Twice,
    /// Congestion experienced, where the segment is ECN-capable.
    Mark,
}

/// A segment as it was sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sent {
    pub at: Time,
    pub from: usize,
    pub t: Transmit,
    pub dropped: bool,
    /// When it arrived, had it not been made late.
    pub left: Time,
}

impl Sent {
    pub fn ms(&self) -> i64 {
        self.at.as_ns() / 1_000_000
    }
    pub fn is_data(&self) -> bool {
        self.t.payload_len > 0
    }
    pub fn is_pure_ack(&self) -> bool {
        self.t.payload_len == 0 && self.t.tcp.flags.0 & 0x07 == 0
    }
    pub fn has(&self, flag: TcpFlags) -> bool {
        self.t.tcp.flags.has(flag)
    }
    pub fn end(&self) -> u32 {
        self.t.tcp.seq.wrapping_add(self.t.payload_len)
    }
}

struct Arrival {
    at: Time,
    order: u64,
    to: usize,
    tcp: Tcp,
    len: u32,
    ecn: EcnField,
}
impl PartialEq for Arrival {
    fn eq(&self, o: &Arrival) -> bool {
        (self.at, self.order) == (o.at, o.order)
    }
}
impl Eq for Arrival {}
impl PartialOrd for Arrival {
    fn partial_cmp(&self, o: &Arrival) -> Option<std::cmp::Ordering> {
        Some(self.cmp(o))
    }
}
impl Ord for Arrival {
    fn cmp(&self, o: &Arrival) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(o.at, o.order))
    }
}

/// What an end's application does.
#[derive(Clone, Debug)]
pub struct App {
    /// Bytes still to be written.
    pub to_write: u64,
    /// Written at most in one call.
    pub chunk: u64,
    /// Close after the last byte.
    pub close: bool,
    /// Reads whatever there is.
    pub reads: bool,
    /// Bytes read.
    pub read: u64,
    /// Closes when the peer has.
    pub close_at_eof: bool,
    /// Calls to come: when, counted from the connection's opening, and how many bytes.
    pub writes: VecDeque<(Span, u64)>,
    /// Reads nothing before this long after the opening.
    pub reads_from: Span,
    /// Read at most in one call.
    pub read_most: u64,
    /// Pause after each such call.
    pub read_pause: Span,
    /// For so many bytes read, so many are written.
    pub reply: (u64, u64),
    unanswered: u64,
    opened: Option<Time>,
    next_read: Time,
    /// It has found nothing to read and waits.
    waits: bool,
    blocked: bool,
    left_of_chunk: u64,
}

impl Default for App {
    fn default() -> App {
        App {
            to_write: 0,
            chunk: 131_072,
            close: false,
            reads: true,
            read: 0,
            close_at_eof: true,
            writes: VecDeque::new(),
            reads_from: Span::ZERO,
            read_most: u64::MAX,
            read_pause: Span::ZERO,
            reply: (0, 0),
            unanswered: 0,
            opened: None,
            next_read: Time::ZERO,
            waits: false,
            blocked: false,
            left_of_chunk: 0,
        }
    }
}

/// How much later than a pause's end a reader is awake: the kernel's clock creeps with each look at it.
const CREEP: Span = Span::from_ns(4);
/// How much later than a segment a reader runs that waited for it: the interrupt has looked at the clock some times by then. Two reads
/// that each let a segment go meet those again a round trip later: the first wakes the reader, the second comes before its pause is over.
const WAKING: Span = Span::from_ns(4);

impl App {
    /// Whether it does something at `at` that its own plan says: an instant counted from the opening, which creeps with nothing. The end
    /// of a reader's pause has crept along with what woke the reader, and comes behind a segment of that moment: the interrupt goes first.
    fn is_due(&self, at: Time) -> bool {
        self.planned().any(|t| t == at)
    }
    /// What is planned for an instant counted from the opening.
    fn planned(&self) -> impl Iterator<Item = Time> {
        let write = self.writes.front().filter(|_| self.to_write == 0).map(|w| w.0);
        let spans = [Some(self.reads_from), write].into_iter().flatten();
        self.opened.into_iter().flat_map(move |o| spans.clone().map(move |s| o + s))
    }
    /// The next moment at which it does something by itself.
    fn next(&self, now: Time) -> Option<Time> {
        let pause = self.opened.map(|_| self.next_read);
        self.planned().chain(pause).filter(|&t| t > now).min()
    }
}

/// What the window looked like: segments, threshold, state of recovery as TCP_INFO numbers it.
pub type WindowRow = (u32, u32, u8);

type FateFn = Box<dyn FnMut(usize, &Transmit, u64) -> Fate>;

pub struct Pair {
    pub now: Time,
    pub ends: [Option<Endpoint>; 2],
    pub configs: [Config; 2],
    pub apps: [App; 2],
    pub lines: [Line; 2],
    pub log: Vec<Sent>,
    /// Congestion window of A after each event, when it changed, while it is open.
    pub windows: Vec<(Time, WindowRow)>,
    pub fate: FateFn,
    busy_until: [Time; 2],
    tokens: [Span; 2],
    waiting: [VecDeque<(Time, u32)>; 2],
    sent: [u64; 2],
    order: u64,
    arrivals: BinaryHeap<Reverse<Arrival>>,
    pub steps: u64,
    still: u32,
}

impl Pair {
    /// A connects to B.
    pub fn new(a: &Config, b: &Config) -> Pair {
        let mut p = Pair::idle(a, b);
        p.ends[A] = Some(Endpoint::connect(a, 1000, 2000, 1_000_000, p.now));
        p
    }
    /// Nobody has connected yet.
    pub fn idle(a: &Config, b: &Config) -> Pair {
        Pair {
            now: Time::ZERO + Span::from_secs(10),
            ends: [None, None],
            configs: [a.clone(), b.clone()],
            apps: [App::default(), App::default()],
            lines: [Line::default(), Line::default()],
            log: Vec::new(),
            windows: Vec::new(),
            fate: Box::new(|_, _, _| Fate::Pass),
            busy_until: [Time::ZERO; 2],
            tokens: [Span::ZERO; 2],
            waiting: [VecDeque::new(), VecDeque::new()],
            sent: [0; 2],
            order: 0,
            arrivals: BinaryHeap::new(),
            steps: 0,
            still: 0,
        }
    }
    pub fn a(&mut self) -> &mut Endpoint {
        self.ends[A].as_mut().unwrap()
    }
    pub fn b(&mut self) -> &mut Endpoint {
        self.ends[B].as_mut().unwrap()
    }
    /// Both lines with these properties.
    pub fn line(mut self, line: Line) -> Pair {
        self.lines = [line.clone(), line];
        self
    }
    /// Drops A's data segments with these numbers, counted from 0 over all that A sends with payload.
    pub fn drop_data(&mut self, numbers: &[u64]) {
        let numbers = numbers.to_vec();
        self.fate = Box::new(move |from, t, n| {
            if from == A && t.payload_len > 0 && numbers.contains(&n) { Fate::Drop } else { Fate::Pass }
        });
    }

    /// Sends what the ends have to send, lets the applications act, until nothing changes.
    pub fn settle(&mut self) {
        loop {
            let mut moved = false;
            for i in [A, B] {
                // A segment is answered in the interrupt; the process that it wakes runs afterwards. In 2.6.35 a reader that
                // waits takes the segments itself (tcp_prequeue) before they are answered.
                if self.configs[i].stack.is_linux_6_12() {
                    moved |= self.send(i);
                }
                moved |= self.apply_app(i);
                moved |= self.send(i);
            }
            if !moved {
                break;
            }
        }
        let open = |a: &Endpoint| matches!(a.state(), State::Established | State::FinWait1 | State::FinWait2);
        if let Some(a) = self.ends[A].as_ref().filter(|a| open(a)) {
            let info = a.info();
            let row = (info.cwnd, info.ssthresh, info.ca_state as u8);
            if self.windows.last().is_none_or(|w| w.1 != row) {
                self.windows.push((self.now, row));
            }
        }
    }

    fn send(&mut self, i: usize) -> bool {
        let mut moved = false;
        while let Some(t) = self.ends[i].as_mut().and_then(|e| e.poll_transmit(self.now)) {
            moved = true;
            self.transmit(i, t);
        }
        moved
    }

    fn apply_app(&mut self, i: usize) -> bool {
        let Some(e) = self.ends[i].as_mut() else { return false };
        let app = &mut self.apps[i];
        let mut moved = false;
        if app.opened.is_none() && !matches!(e.state(), State::SynSent | State::SynReceived) {
            app.opened = Some(self.now);
        }
        let from = app.opened.map(|o| o + app.reads_from);
        // One that answers reads no more before its answer is written.
        let answering = app.reply.0 > 0 && (app.to_write > 0 || !app.writes.is_empty());
        let awake = from.is_some_and(|f| self.now >= f) && self.now >= app.next_read && !answering;
        if awake && app.reply.0 > 0 && app.unanswered >= app.reply.0 {
            app.unanswered -= app.reply.0;
            app.writes.push_back((Span::ZERO, app.reply.1));
        } else if awake && app.reads && e.readable() > 0 {
            let n = e.read(app.read_most, self.now);
            app.read += n;
            app.unanswered += n;
            if app.read_pause > Span::ZERO {
                app.next_read = self.now + app.read_pause + CREEP;
                if app.waits {
                    app.next_read += WAKING;
                }
            }
            app.waits = false;
            moved = true;
        } else if awake && app.reads {
            app.waits = true;
        }
        if app.to_write == 0
            && let Some(opened) = app.opened
            && let Some(&(at, bytes)) = app.writes.front()
            && opened + at <= self.now
        {
            app.writes.pop_front();
            app.to_write = bytes;
        }
        // A blocking write: once the buffer is full, the process sleeps until it is woken.
        if app.blocked && e.writable() {
            app.blocked = false;
        }
        while self.apps[i].to_write > 0 && !self.apps[i].blocked {
            moved |= self.write(i);
            // What a call has written goes before the next call.
            self.send(i);
        }
        let Some(e) = self.ends[i].as_mut() else { return moved };
        let app = &mut self.apps[i];
        let open = matches!(e.state(), State::Established | State::CloseWait);
        let eof = app.close_at_eof && e.at_eof() && self.now >= app.next_read;
        if open && app.to_write == 0 && app.writes.is_empty() && (app.close || eof) {
            e.close(self.now);
            moved = true;
        }
        moved
    }

    /// One call, or as much of it as there is room for.
    fn write(&mut self, i: usize) -> bool {
        let (Some(e), app) = (self.ends[i].as_mut(), &mut self.apps[i]) else { return false };
        if app.left_of_chunk == 0 {
            app.left_of_chunk = app.to_write.min(app.chunk);
        }
        let n = e.write(app.left_of_chunk, self.now);
        app.to_write -= n;
        app.left_of_chunk -= n;
        app.blocked = app.left_of_chunk > 0;
        n > 0
    }

    fn transmit(&mut self, from: usize, t: Transmit) {
        let n = self.sent[from];
        if t.payload_len > 0 {
            self.sent[from] += 1;
        }
        let fate = (self.fate)(from, &t, n);
        self.log.push(Sent { at: self.now, from, t, dropped: fate == Fate::Drop, left: self.now });
        if fate == Fate::Drop {
            return;
        }
        if let Fate::Aside(by) = fate {
            self.log.last_mut().unwrap().left = self.now + by;
            return self.arrive(from, &t, self.now + by, false);
        }
        let times = if fate == Fate::Twice { 2 } else { 1 };
        for _ in 0..times {
            self.carry(from, &t, fate);
        }
    }

    /// Onto the line.
    fn carry(&mut self, from: usize, t: &Transmit, fate: Fate) {
        let line = self.lines[from].clone();
        while self.waiting[from].front().is_some_and(|d| d.0 <= self.now) {
            self.waiting[from].pop_front();
        }
        let headers = match line.ns2 {
            true => 40 + 8 * u32::from(t.tcp.sack_count),
            false => 14 + 20 + t.tcp.header_len(),
        };
        let frame = headers + t.payload_len;
        let queued = self.waiting[from].len();
        let bytes: u32 = self.waiting[from].iter().map(|d| d.1).sum();
        if queued >= line.limit || bytes + frame > line.limit_bytes {
            self.log.last_mut().unwrap().dropped = true;
            return;
        }
        let mut leaves = self.now.max(self.busy_until[from]);
        if line.rate_bit_s > 0 {
            let takes = Span::from_ns(i64::from(frame) * 8 * 1_000_000_000 / line.rate_bit_s);
            if line.tbf {
                // Tokens in time: of a full frame at most, as many as have gathered since the last frame left.
                let burst = Span::from_ns(i64::from(line.burst) * 8 * 1_000_000_000 / line.rate_bit_s);
                let had = (self.tokens[from] + (leaves - self.busy_until[from])).min(burst);
                leaves += (takes - had).max(Span::ZERO);
                self.tokens[from] = (had - takes).max(Span::ZERO);
            } else {
                leaves += takes;
            }
            self.busy_until[from] = leaves;
            if leaves > self.now {
                self.waiting[from].push_back((leaves, frame));
            }
        }
        self.log.last_mut().unwrap().left = leaves + line.delay;
        let ce = queued >= line.mark_above || fate == Fate::Mark;
        let by = if let Fate::Late(by) = fate { by } else { Span::ZERO };
        if fate == Fate::Lost {
            self.log.last_mut().unwrap().dropped = true;
        } else {
            self.arrive(from, t, leaves + line.delay + by, ce);
        }
    }

    fn arrive(&mut self, from: usize, t: &Transmit, at: Time, ce: bool) {
        let ecn = match (t.ect, ce) {
            (false, _) => EcnField::NotEct,
            (true, false) => EcnField::Ect0,
            (true, true) => EcnField::Ce,
        };
        self.order += 1;
        let arrival = Arrival { at, order: self.order, to: 1 - from, tcp: t.tcp, len: t.payload_len, ecn };
        self.arrivals.push(Reverse(arrival));
    }

    /// One step: the next arrival or timeout. False when nothing will happen any more.
    pub fn step(&mut self) -> bool {
        self.steps += 1;
        self.settle();
        let mut next: Option<Time> = self.arrivals.peek().map(|a| a.0.at);
        for e in self.ends.iter().flatten() {
            if let Some(t) = e.poll_timeout() {
                assert!(t >= self.now, "a timeout in the past");
                next = Some(next.map_or(t, |n| n.min(t)));
            }
        }
        let next = self.apps.iter().filter_map(|a| a.next(self.now)).chain(next).min();
        let Some(next) = next else { return false };
        self.still = if next == self.now { self.still + 1 } else { 0 };
        assert!(self.still < 10_000, "time stands still");
        self.now = next;
        if self.apps.iter().any(|a| a.is_due(next)) {
            // The clock of the kernel creeps with each look: what has had the shorter way comes first.
            self.settle();
        }
        // What has run out at the tick comes before what an earlier tick has sent on its way.
        let mut ran_out = false;
        for e in self.ends.iter_mut().flatten() {
            if e.poll_timeout().is_some_and(|t| t <= next) {
                e.handle_timeout(next);
                ran_out = true;
            }
        }
        if ran_out {
            self.settle();
        }
        if self.arrivals.peek().is_some_and(|a| a.0.at <= next) {
            // All that comes at one moment is dealt with before any process runs; in 2.6.35 the process does it.
            let today = self.configs.iter().all(|c| c.stack.is_linux_6_12());
            while let Some(Reverse(a)) = self.arrivals.pop() {
                self.deliver(a);
                if !today || self.arrivals.peek().is_none_or(|a| a.0.at > next) {
                    break;
                }
                self.send(A);
                self.send(B);
            }
        }
        self.settle();
        true
    }

    fn deliver(&mut self, a: Arrival) {
        match self.ends[a.to].as_mut() {
            Some(e) => e.handle_segment(&a.tcp, a.len, a.ecn, self.now),
            None => {
                self.ends[a.to] = Endpoint::accept(&self.configs[a.to], &a.tcp, 5_000_000, self.now);
            }
        }
    }

    /// Runs until `until` (or nothing happens any more).
    pub fn run_for(&mut self, span: Span) {
        let until = self.now + span;
        loop {
            self.settle();
            let next = self.arrivals.peek().map(|a| a.0.at).into_iter();
            let next = next.chain(self.ends.iter().flatten().filter_map(|e| e.poll_timeout()));
            let next = next.chain(self.apps.iter().filter_map(|a| a.next(self.now))).min();
            match next {
                Some(t) if t <= until => {
                    self.step();
                }
                _ => break,
            }
        }
        self.now = until;
        self.settle();
    }

    /// Runs until the connection is open on both sides.
    pub fn open(mut self) -> Pair {
        for _ in 0..1000 {
            let open = |e: &Option<Endpoint>| e.as_ref().is_some_and(|e| e.state() == State::Established);
            if open(&self.ends[A]) && open(&self.ends[B]) {
                return self;
            }
            self.step();
        }
        panic!("did not open");
    }

    /// A writes `bytes` and closes; runs until both ends are gone but for TIME-WAIT. Answers how long it took.
    pub fn transfer(&mut self, bytes: u64) -> Span {
        let start = self.now;
        self.apps[A].to_write = bytes;
        self.apps[A].close = true;
        for _ in 0..20_000_000u64 {
            let over = |e: &Option<Endpoint>| {
                e.as_ref().is_some_and(|e| matches!(e.state(), State::Closed | State::TimeWait))
            };
            if over(&self.ends[A]) && over(&self.ends[B]) {
                break;
            }
            if !self.step() {
                break;
            }
        }
        self.now - start
    }

    /// Segments with payload that A sent.
    pub fn data(&self) -> Vec<Sent> {
        self.log.iter().filter(|s| s.from == A && s.is_data()).copied().collect()
    }
    /// ACKs without payload that B sent.
    pub fn acks(&self) -> Vec<Sent> {
        self.log.iter().filter(|s| s.from == B && s.is_pure_ack()).copied().collect()
    }
    /// What A retransmitted.
    pub fn again(&self) -> Vec<Sent> {
        self.log.iter().filter(|s| s.from == A && s.t.retransmission).copied().collect()
    }
}
