//! ns-2's one-way TCP: segments counted in packets, an agent that sends and a sink that acknowledges.
//!
//! Follows: ns-2.35 tcp/tcp.cc, tcp-reno.cc, tcp-newreno.cc, tcp-sack1.cc, tcp-sink.cc, with the defaults of tcl/lib/ns-default.tcl.
//! Differs: packets are real segments here: packet 0 is the SYN, whose acknowledgement is the SYN-ACK (there is no third
//! segment); the last packet may be short; a FIN takes a packet of its own where no data is left to carry it; both sides may send, each with an agent of
//! its own; an ACK with SACK blocks is as long as RFC 2018 makes it (4 bytes longer than ns-2's); a close is acknowledged like data.
//! Not modelled: Quick-Start, HighSpeed TCP, F-RTO, the randomised overhead.

mod agent;
mod board;
mod sack;
mod sink;

use crate::info::{CaState, Error, State, TcpInfo};
use crate::segment::Transmit;
use crate::seq;
use agent::{Ack, Agent};
pub use penstock_model::ns2::{Options, Variant};
use penstock_model::{Span, Time};
use penstock_packet::{Tcp, TcpFlags};
use sink::{Reply, Sink};
use std::collections::VecDeque;

/// A packet that was formed and is not acknowledged: the bytes it carries.
#[derive(Clone, Copy, Debug)]
struct Formed {
    start: u64,
    end: u64,
    fin: bool,
}

/// What a side is told when it is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    /// What its agent is set to.
    pub options: Options,
    /// Data of a packet, bytes.
    pub mss: u32,
    /// How long TIME-WAIT lasts.
    pub time_wait: Span,
    /// Whether ECN is asked for, and agreed to.
    pub ecn: (bool, bool),
    /// Ports here and there.
    pub ports: (u16, u16),
    /// First sequence number.
    pub isn: u32,
}

/// One side of a connection.
#[derive(Debug)]
pub(crate) struct OneWay {
    // Parameters
    mss: u32,
    room: u64,
    sport: u16,
    dport: u16,
    wants_sack: bool,
    time_wait: Span,
    // Variables
    agent: Agent,
    sink: Sink,
    iss: u64,
    irs: u64,
    active: bool,
    ecn_ok: bool,
    /// Packets from number `base` on.
    formed: VecDeque<Formed>,
    base: i64,
    pub write_seq: u64,
    fin_queued: bool,
    fin_formed: bool,
    /// The end of what was acknowledged.
    acked_upto: u64,
    /// End of TIME-WAIT.
    wait: Option<Time>,
    /// Where the peer's FIN stands.
    peer_fin: Option<u64>,
    read_seq: u64,
    out: VecDeque<Transmit>,
    pub segs_out: u64,
    pub segs_in: u64,
    pub retransmitted: u64,
    pub retransmitted_bytes: u64,
}

impl OneWay {
    /// A side that connects (`syn` absent) or accepts.
    pub fn new(opening: &Opening, syn: Option<&Tcp>, now: Time) -> OneWay {
        let &Opening { options: mut o, mss, time_wait, ecn: (asks, agrees), ports: (sport, dport), isn } =
            opening;
        o.ecn = asks;
        let iss = seq::first(isn);
        let mut e = OneWay {
            mss,
            room: u64::from(o.window.max(1)) * u64::from(mss) * 2,
            sport,
            dport,
            wants_sack: o.variant == Variant::Sack1,
            time_wait,
            agent: Agent::new(o, isn.wrapping_mul(0x9e37_79b1)),
            sink: Sink::new(o),
            iss,
            irs: 0,
            active: syn.is_none(),
            ecn_ok: o.ecn,
            formed: VecDeque::from([Formed { start: iss, end: iss + 1, fin: false }]),
            base: 0,
            write_seq: iss + 1,
            fin_queued: false,
            fin_formed: false,
            acked_upto: iss,
            wait: None,
            peer_fin: None,
            read_seq: 0,
            out: VecDeque::new(),
            segs_out: 0,
            segs_in: 0,
            retransmitted: 0,
            retransmitted_bytes: 0,
        };
        match syn {
            None => e.push(now),
            Some(syn) => {
                e.ecn_ok = agrees && syn.flags.has(TcpFlags::ECE);
                e.agent.o.ecn = e.ecn_ok;
                e.read_syn(syn);
                e.answer_syn();
                // Nobody acknowledges a SYN-ACK: it counts as delivered.
                let synced = Ack { no: 0, ece: e.ecn_ok, sacks: &[], curseq: 1 };
                e.agent.maxseq = 0;
                e.agent.recv(&synced, now);
                e.acknowledged(0);
                e.agent.rtx_at = None;
            }
        }
        e
    }

    fn read_syn(&mut self, syn: &Tcp) {
        self.irs = seq::first(syn.seq);
        self.sink.next = self.irs + 1;
        self.sink.sack = self.wants_sack && (syn.sack_permitted || self.active);
        self.read_seq = self.irs + 1;
        self.mss = self.mss.min(u32::from(syn.mss.unwrap_or(536))).max(1);
    }

    /// Numbers below this are packets there are.
    fn curseq(&self) -> i64 {
        let formed = self.base + self.formed.len() as i64;
        let end = self.formed.back().map_or(self.acked_upto, |f| f.end);
        let left = self.write_seq.saturating_sub(end);
        let fin = u64::from(self.fin_queued && !self.fin_formed && left == 0);
        formed + (left.div_ceil(u64::from(self.mss)) + fin) as i64
    }

    // ---- The network ----

    /// A segment came; answers what ended the connection, if it did.
    pub fn handle_segment(
        &mut self,
        state: &mut State,
        seg: &Tcp,
        len: u32,
        ce: bool,
        now: Time,
    ) -> Option<Error> {
        self.segs_in += 1;
        if seg.flags.has(TcpFlags::RST) {
            let error = if *state == State::SynSent { Error::Refused } else { Error::Reset };
            return Some(error);
        }
        if *state == State::SynSent {
            let acks = seg.flags.has(TcpFlags::ACK) && seg.ack == (self.iss + 1) as u32;
            if !(acks && seg.flags.has(TcpFlags::SYN)) {
                return None;
            }
            self.read_syn(seg);
            self.ecn_ok &= seg.flags.has(TcpFlags::ECE);
            self.agent.o.ecn = self.ecn_ok;
            *state = State::Established;
            self.acked(seg, state, now);
            return None;
        }
        if seg.flags.has(TcpFlags::SYN) {
            if !self.active {
                self.answer_syn();
            }
            return None;
        }
        let fin = seg.flags.has(TcpFlags::FIN);
        if len > 0 || fin {
            let start = seq::unwrap(seg.seq, self.sink.next);
            let end = start + u64::from(len) + u64::from(fin);
            if fin {
                self.peer_fin = Some(end - 1);
            }
            let cwr = seg.flags.has(TcpFlags::CWR);
            if let Some(reply) = self.sink.recv(start, end, ce && self.ecn_ok, cwr, now) {
                self.reply(reply);
            }
            self.peer_closed(state);
        } else if seg.flags.has(TcpFlags::ACK) {
            self.acked(seg, state, now);
        }
        if *state == State::TimeWait && self.wait.is_none() {
            self.agent.rtx_at = None;
            self.wait = Some(now + self.time_wait);
        }
        None
    }

    fn peer_closed(&mut self, state: &mut State) {
        if self.peer_fin.is_some_and(|f| f < self.sink.next) {
            *state = match *state {
                State::Established | State::SynReceived => State::CloseWait,
                State::FinWait1 => State::Closing,
                State::FinWait2 => State::TimeWait,
                other => other,
            };
        }
    }

    fn number_of(&self, byte: u64) -> i64 {
        self.base + self.formed.iter().take_while(|f| f.end <= byte).count() as i64
    }

    fn acked(&mut self, seg: &Tcp, state: &mut State, now: Time) {
        let una = self.formed.front().map_or(self.write_seq, |f| f.start);
        let upto = seq::unwrap(seg.ack, una);
        let mut sacks = [(0, 0); 4];
        let mut n = 0;
        for &(l, r) in seg.sack_blocks() {
            let start = seq::unwrap(l, una);
            sacks[n] = (self.number_of(start), self.number_of(start + u64::from(r.wrapping_sub(l))));
            n += 1;
        }
        let no = self.number_of(upto) - 1;
        // On the SYN-ACK it says that ECN is agreed on.
        let ece = seg.flags.has(TcpFlags::ECE) && self.ecn_ok;
        let ack = Ack { no, ece, sacks: &sacks[..n], curseq: self.curseq() };
        self.agent.recv(&ack, now);
        self.acknowledged(no);
        self.flush();
        if self.fin_formed && self.formed.is_empty() {
            self.agent.rtx_at = None;
            *state = match *state {
                State::FinWait1 => State::FinWait2,
                State::Closing => State::TimeWait,
                State::LastAck => State::Closed,
                other => other,
            };
        }
    }

    /// Packets up to this number are forgotten, once the agent has no more use for them.
    fn acknowledged(&mut self, no: i64) {
        // An agent that sends out of its recovery may name packets from the last ACK on.
        self.flush();
        while self.base <= no
            && let Some(f) = self.formed.pop_front()
        {
            self.acked_upto = f.end;
            self.base += 1;
        }
    }

    /// What the agent wants sent becomes segments.
    fn flush(&mut self) {
        for output in std::mem::take(&mut self.agent.out) {
            self.form(output.no);
            let Some(f) =
                usize::try_from(output.no - self.base).ok().and_then(|i| self.formed.get(i).copied())
            else {
                continue;
            };
            let len = (f.end - f.start) as u32 - u32::from(f.fin);
            if output.no == 0 {
                let t = self.syn(TcpFlags::SYN);
                self.send(t, 0, output.again);
                continue;
            }
            let mut flags = TcpFlags::ACK;
            if f.fin {
                flags = flags.with(TcpFlags::FIN);
            }
            if output.cwr && self.ecn_ok {
                flags = flags.with(TcpFlags::CWR);
            }
            let t = self.header(f.start, flags);
            self.send(t, len, output.again);
        }
    }

    /// Makes packets up to this number of what was written.
    fn form(&mut self, no: i64) {
        while self.base + (self.formed.len() as i64) <= no {
            let start = self.formed.back().map_or(self.acked_upto, |f| f.end);
            let left = self.write_seq.saturating_sub(start);
            let len = left.min(u64::from(self.mss));
            let fin = self.fin_queued && !self.fin_formed && len == left;
            if len == 0 && !fin {
                return;
            }
            self.fin_formed |= fin;
            self.formed.push_back(Formed { start, end: start + len + u64::from(fin), fin });
        }
    }

    fn header(&self, seq: u64, flags: TcpFlags) -> Tcp {
        Tcp {
            sport: self.sport,
            dport: self.dport,
            seq: seq as u32,
            ack: self.sink.next as u32,
            flags,
            window: 65_535,
            ..Tcp::default()
        }
    }

    fn syn(&self, flags: TcpFlags) -> Tcp {
        let mut t = self.header(self.iss, flags);
        t.mss = Some(self.mss.min(65_535) as u16);
        t.sack_permitted = self.wants_sack;
        if self.ecn_ok {
            t.flags = t.flags.with(TcpFlags::ECE);
            if self.active {
                t.flags = t.flags.with(TcpFlags::CWR);
            }
        }
        if self.active {
            t.ack = 0;
        }
        t
    }

    fn answer_syn(&mut self) {
        let t = self.syn(TcpFlags::SYN.with(TcpFlags::ACK));
        self.send(t, 0, false);
    }

    fn reply(&mut self, reply: Reply) {
        let end = self.formed.back().map_or(self.acked_upto, |f| f.end);
        let mut t = self.header(end, TcpFlags::ACK);
        if reply.ece && self.ecn_ok {
            t.flags = t.flags.with(TcpFlags::ECE);
        }
        t.sack_count = reply.count as u8;
        for (slot, run) in t.sack.iter_mut().zip(&reply.sacks[..reply.count]) {
            *slot = (run.0 as u32, run.1 as u32);
        }
        self.send(t, 0, false);
    }

    fn send(&mut self, tcp: Tcp, len: u32, again: bool) {
        self.segs_out += 1;
        if again {
            self.retransmitted += 1;
            self.retransmitted_bytes += u64::from(len);
        }
        let ect = self.ecn_ok && len > 0;
        let departs = Time::ZERO;
        self.out.push_back(Transmit {
            tcp,
            payload_len: len,
            gso_size: 0,
            ect,
            retransmission: again,
            departs,
        });
    }

    /// The next segment to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.out.pop_front()
    }
    /// When [`handle_timeout`](OneWay::handle_timeout) wants to be called.
    pub fn poll_timeout(&self) -> Option<Time> {
        [self.agent.rtx_at, self.sink.delayed, self.wait].into_iter().flatten().min()
    }
    /// Time has come; answers whether the connection is over.
    pub fn handle_timeout(&mut self, now: Time) -> bool {
        if self.sink.delayed.is_some_and(|t| t <= now) {
            let reply = self.sink.timeout();
            self.reply(reply);
        }
        if self.agent.rtx_at.is_some_and(|t| t <= now) {
            let curseq = self.curseq();
            self.agent.timeout(now, curseq);
            self.flush();
        }
        self.wait.is_some_and(|t| t <= now)
    }

    // ---- The application ----

    fn push(&mut self, now: Time) {
        let curseq = self.curseq();
        self.agent.send_much(now, curseq, 0);
        self.flush();
    }
    /// Takes bytes to send; answers how many.
    pub fn write(&mut self, bytes: u64, now: Time) -> u64 {
        let waiting = self.write_seq - self.acked_upto.max(self.iss + 1);
        let took = bytes.min(self.room.saturating_sub(waiting));
        // As with ns-2's endless FTP, what is written waits for the next ACK where the agent has something left already.
        let starved = self.agent.t_seqno >= self.curseq();
        self.write_seq += took;
        if took > 0 && starved && self.open() {
            self.push(now);
        }
        took
    }
    fn open(&self) -> bool {
        self.agent.highest_ack >= 0
    }
    /// Whether there is room to write.
    pub fn writable(&self) -> bool {
        let waiting = self.write_seq - self.acked_upto.max(self.iss + 1);
        !self.fin_queued && waiting < self.room
    }
    /// No more will be written.
    pub fn close(&mut self, now: Time) {
        self.fin_queued = true;
        if self.open() {
            self.push(now);
        }
    }
    /// Bytes that came in order and are not read.
    pub fn readable(&self) -> u64 {
        self.sink
            .next
            .saturating_sub(self.read_seq + u64::from(self.peer_fin.is_some_and(|f| f < self.sink.next)))
    }
    /// Fills in what a snapshot shows.
    pub fn show(&self, info: &mut TcpInfo) {
        let a = &self.agent;
        info.cc = a.o.variant.name();
        info.cwnd = a.cwnd();
        info.ssthresh = a.ssthresh.clamp(0, i64::from(u32::MAX)) as u32;
        (info.srtt, info.rttvar, info.rto) = (a.srtt(), a.rttvar(), a.rto());
        info.backoff = a.doublings();
        info.ca_state = match (a.fast_recovery || a.dupacks >= 3, a.dupacks) {
            (true, _) => CaState::Recovery,
            (false, 0) => CaState::Open,
            _ => CaState::Disorder,
        };
        info.snd_mss = self.mss;
        info.unacked = (a.maxseq - a.highest_ack).max(0) as u32;
        info.snd_wnd = a.o.window.saturating_mul(self.mss);
        (info.sndbuf, info.rcv_wnd, info.rcvbuf) = (self.room as u32, 65_535, 65_535);
        let formed = self.formed.back().map_or(self.acked_upto, |f| f.end);
        let first = self.iss + 1;
        info.notacked_bytes = self.write_seq - self.acked_upto.clamp(first, self.write_seq);
        info.notsent_bytes = self.write_seq - formed.clamp(first, self.write_seq);
        info.bytes_acked = self.acked_upto.clamp(first, self.write_seq) - first;
        info.bytes_received = self.readable() + self.read_seq.saturating_sub(self.irs + 1);
        (info.segs_out, info.segs_in) = (self.segs_out, self.segs_in);
        (info.total_retrans, info.bytes_retrans) = (self.retransmitted, self.retransmitted_bytes);
        (info.timeouts, info.recoveries) = (a.timeouts, a.recoveries);
        info.delivered = a.highest_ack.max(0) as u64;
    }
    /// The window, whole packets.
    pub fn cwnd(&self) -> u32 {
        self.agent.cwnd()
    }
    /// Reads.
    pub fn read(&mut self, max: u64) -> u64 {
        let n = self.readable().min(max);
        self.read_seq += n;
        n
    }
    /// Whether the peer has closed and everything was read.
    pub fn at_eof(&self) -> bool {
        self.peer_fin.is_some_and(|f| f < self.sink.next) && self.readable() == 0
    }
}
