//! The receiving half: one acknowledgement a packet, or one for two, with the runs that came out of order.
//!
//! Follows: ns-2.35 tcp/tcp-sink.cc `Acker`, `Sacker`, `TcpSink`, `DelAckSink`.
//! Differs: it counts bytes of the stream, not packets.

use super::Options;
use penstock_model::Time;

/// Runs an acknowledgement names at most (`maxSackBlocks_`).
const MAX_BLOCKS: usize = 3;

/// What an acknowledgement says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Reply {
    /// Runs out of order, bytes of the stream.
    pub sacks: [(u64, u64); MAX_BLOCKS],
    /// How many.
    pub count: usize,
    /// It echoes congestion.
    pub ece: bool,
}

/// The receiver's variables.
#[derive(Debug)]
pub(super) struct Sink {
    // Parameters
    o: Options,
    /// Whether runs are named.
    pub sack: bool,
    // Variables
    /// The next byte in order.
    pub next: u64,
    /// Runs above it, in order, apart from each other.
    ooo: Vec<(u64, u64)>,
    /// Runs named lately, the latest first.
    stack: Vec<(u64, u64)>,
    /// Congestion is echoed until the sender says that it has heard.
    ecn_unacked: bool,
    /// A packet waits for its acknowledgement until then.
    pub delayed: Option<Time>,
    /// That packet's first byte, and what its header said: ECN-capable and marked, CWR.
    waiting: (u64, bool, bool),
}

impl Sink {
    pub fn new(o: Options) -> Sink {
        Sink {
            o,
            sack: false,
            next: 0,
            ooo: Vec::new(),
            stack: Vec::new(),
            ecn_unacked: false,
            delayed: None,
            waiting: (0, false, false),
        }
    }

    /// A packet came; the reply to be sent now, if it is not delayed.
    //= ns-2.35 tcp/tcp-sink.cc TcpSink::recv, DelAckSink::recv
    pub fn recv(&mut self, start: u64, end: u64, ce: bool, cwr: bool, now: Time) -> Option<Reply> {
        self.update(start, end);
        // The last in order, first come or again, with nothing beyond it.
        let last = end == self.next && self.ooo.is_empty();
        if let Some(interval) = self.o.delayed_ack
            && self.delayed.is_none()
            && last
        {
            self.delayed = Some(now + interval);
            self.waiting = (start, ce, cwr);
            return None;
        }
        let held = self.delayed.take().map(|_| self.waiting);
        Some(self.reply(start, ce || held.is_some_and(|h| h.1), cwr || held.is_some_and(|h| h.2)))
    }

    /// The delay is over.
    pub fn timeout(&mut self) -> Reply {
        self.delayed = None;
        let (start, ce, cwr) = self.waiting;
        self.reply(start, ce, cwr)
    }

    fn update(&mut self, start: u64, end: u64) {
        let (mut start, mut end) = (start.max(self.next), end);
        if start >= end {
            return;
        }
        self.ooo.retain(|r| {
            let apart = r.0 > end || r.1 < start;
            if !apart {
                (start, end) = (start.min(r.0), end.max(r.1));
            }
            apart
        });
        if start == self.next {
            self.next = end;
        } else {
            let place = self.ooo.partition_point(|r| r.0 < start);
            self.ooo.insert(place, (start, end));
        }
    }

    //= ns-2.35 tcp/tcp-sink.cc TcpSink::ack
    //= RFC 3168 section 6.1.3
    fn reply(&mut self, start: u64, ce: bool, cwr: bool) -> Reply {
        self.ecn_unacked = ce || self.ecn_unacked && !cwr;
        let mut reply = Reply { ece: self.ecn_unacked, ..Reply::default() };
        if self.sack {
            self.blocks(start, &mut reply);
        }
        reply
    }

    /// The run of the packet that came first, then those named before.
    //= ns-2.35 tcp/tcp-sink.cc Sacker::append_ack
    //= RFC 2018 section 4
    fn blocks(&mut self, start: u64, reply: &mut Reply) {
        if self.ooo.is_empty() {
            self.stack.clear();
            return;
        }
        let own = self.ooo.iter().copied().find(|r| r.0 <= start && start < r.1);
        let latest = own.unwrap_or((0, self.next));
        if let Some(run) = own {
            reply.sacks[0] = run;
            reply.count = 1;
        }
        let mut k = 0;
        while reply.count < MAX_BLOCKS && k < self.stack.len() {
            let old = self.stack[k];
            if latest.0 <= old.0 && old.1 <= latest.1 {
                self.stack.remove(k);
                continue;
            }
            reply.sacks[reply.count] = old;
            reply.count += 1;
            k += 1;
        }
        if let Some(run) = own {
            self.stack.truncate(MAX_BLOCKS - 1);
            self.stack.insert(0, run);
        }
    }
}
