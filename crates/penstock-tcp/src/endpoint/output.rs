//! Sending: which segment goes next, and its header.
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c `tcp_write_xmit`, `__tcp_transmit_skb`,
//! `tcp_established_options`; v2.6.35 likewise; RFC 896 with Minshall's variant (Nagle).
//! Differs: none known.

use super::Endpoint;
use super::attempt::{Trial, Why};
use crate::info::State;
use crate::mib::Tx;
use crate::recv::EarlyAck;
use crate::segment::Transmit;
use crate::sender::rtx;
use penstock_model::Time;
use penstock_packet::{Tcp, TcpFlags};
use std::collections::VecDeque;

/// The push under way: what one call lets go.
#[derive(Debug, Default)]
pub(super) struct Push {
    /// Payload of a segment in it; 0: none is under way.
    pub mss: u32,
    /// Segments sent.
    pub sent: u32,
    /// Those of them which went before the window began to fall.
    pub sent_before: u32,
    /// A write has ended in a short buffer, which may wait (`tcp_autocorking`).
    pub corking: bool,
    /// A write's segments go one by one as they are full (`tcp_push_one`), each a push of its own.
    pub ones: bool,
    /// The receiver's window has held it.
    pub rwnd_limited: bool,
    /// Where a long write has pushed on its way, as far as that has not been done yet.
    pub pushes: VecDeque<u64>,
}

impl Endpoint {
    /// Whether [`poll_transmit`](Endpoint::poll_transmit) has nothing to answer and nothing to do.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.trial == Trial::Nothing
            && self.tx.todo.is_empty()
            && !self.frozen
            && !self.tx.host.owes_tsq()
            && !self.rx.has_early()
            && self.one_way.is_none()
    }
    /// The next segment to send now, if there is one.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        self.tx.clock.set(now);
        if let Some(o) = &mut self.one_way {
            return o.poll_transmit();
        }
        self.taken();
        match self.state {
            State::Closed | State::TimeWait | State::SynSent | State::SynReceived => {
                return self.transmit_rare(now);
            }
            _ => {}
        }
        self.transmit_open(now)
    }
    /// Of a connection that may send data.
    #[inline]
    fn transmit_open(&mut self, now: Time) -> Option<Transmit> {
        if self.frozen
            && let Some(t) = self.transmit_before_data()
        {
            return Some(t);
        }
        if let Some((upto, ece)) = self.tx.todo.ack_before.take() {
            return Some(self.ack_before(upto, ece));
        }
        if let Some(early) = self.rx.take_early() {
            return Some(self.early_ack(&early));
        }
        if std::mem::take(&mut self.tx.todo.ack_first) {
            let told = match std::mem::take(&mut self.tx.todo.reflects) {
                true => self.reflection(),
                false => TcpFlags(0),
            };
            let flags = TcpFlags::ACK.with(told);
            return Some(self.segment(self.acceptable_seq(), 0, flags));
        }
        let todo = &self.tx.todo;
        if (todo.rexmit_front || todo.rexmit || todo.frto_new)
            && let Some(t) = self.transmit_recovery()
        {
            return Some(t);
        }
        if (self.tx.todo.probe_new || self.tx.todo.probe_last)
            && let Some(t) = self.transmit_loss_probe()
        {
            return Some(t);
        }
        if self.tx.todo.push {
            if let Some(t) = self.transmit_new() {
                return Some(t);
            }
            self.push_done();
        }
        if self.tx.todo.probe0 {
            self.tx.todo.probe0 = false;
            return Some(self.transmit_probe0());
        }
        if self.tx.todo.ack_check {
            self.tx.todo.ack_check = false;
            if self.rx.ack_due(&self.tx.clock, &self.timing()) {
                return Some(self.pure_ack());
            }
        }
        if self.tx.host.take_tsq(now) {
            self.tsq_write();
            return self.poll_transmit(now);
        }
        None
    }

    /// Before a connection is open and after it is closed.
    fn transmit_rare(&mut self, now: Time) -> Option<Transmit> {
        if self.tx.todo.reset {
            self.tx.todo.reset = false;
            self.tx.mib.one(Tx::OutRsts);
            let mut t = self.segment(self.tx.space.nxt(), 0, TcpFlags::RST.with(TcpFlags::ACK));
            t.tcp.window = 0;
            t.tcp.sack_count = 0;
            return Some(t);
        }
        match self.state {
            State::SynSent | State::SynReceived if self.tx.todo.syn => {
                self.tx.todo.syn = false;
                let again = std::mem::take(&mut self.tx.todo.syn_again);
                if again && self.state == State::SynSent {
                    self.trial = Trial::Syn;
                }
                Some(self.syn(again))
            }
            State::SynSent if self.fast.is_some() => self.take_fast_reset(),
            State::SynReceived if self.is_fast_child() => self.transmit_open(now),
            State::SynReceived | State::TimeWait if self.tx.todo.ack_check => {
                self.tx.todo.ack_check = false;
                self.rx.acks_at_once().then(|| self.pure_ack())
            }
            _ => None,
        }
    }

    // ---- Bounds ----

    /// Payload a segment carries now: less where SACK blocks take room.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_current_mss
    #[inline]
    pub(super) fn current_mss(&self) -> u32 {
        if self.accurate.is_some() {
            let (.., options) = self.accurate_options(self.blocks_to_send());
            return self.tx.space.mss().saturating_sub(options).max(1);
        }
        if self.tx.sack_ok && self.rx.has_sacks() {
            let blocks = self.rx.sack_blocks(if self.tx.stamps.ok() { 3 } else { 4 });
            return self.tx.space.mss_beside(blocks);
        }
        self.tx.space.mss()
    }
    /// SACK blocks that the next segment has room for beside timestamps.
    fn blocks_to_send(&self) -> u32 {
        if !self.tx.sack_ok {
            return 0;
        }
        self.rx.sack_blocks(if self.tx.stamps.ok() { 3 } else { 4 })
    }
    /// What a segment carries in the push that is under way: it is reckoned once, when the push begins.
    //= linux v6.12 net/ipv4/tcp_output.c __tcp_push_pending_frames
    #[inline]
    pub(super) fn push_mss(&mut self) -> u32 {
        if self.push.mss == 0 {
            self.push.mss = self.current_mss();
        }
        self.push.mss
    }

    // ---- New data ----

    //= linux v6.12 net/ipv4/tcp_output.c tcp_write_xmit
    pub(super) fn transmit_new(&mut self) -> Option<Transmit> {
        if self.tx.p.today {
            return self.write_xmit(false);
        }
        let mss = self.current_mss();
        let (len, fin) = self.tx.next_segment(mss);
        if !fin && (len == 0 || self.tx.is_full()) || !self.tx.fits((len, fin)) {
            return None;
        }
        if self.nagle_holds(len, mss, fin) {
            return None;
        }
        Some(self.send_new(len, fin, Why::Window))
    }

    /// The next new segment, if it may go; a `probe` goes whatever the congestion window and Nagle say.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_write_xmit
    pub(super) fn write_xmit(&mut self, probe: bool) -> Option<Transmit> {
        if self.calls.is_some() {
            return self.xmit_burst(probe);
        }
        if !self.tx.space.has_unsent() || self.tx.is_full() && !probe || self.tx.pacing_holds() {
            return None;
        }
        let mss = self.push_mss();
        let nxt = self.tx.space.nxt();
        self.tx.unsent.grow(nxt, mss);
        let (len, fin) = self.tx.next_segment(mss);
        if !self.tx.fits((len, fin)) {
            self.push.rwnd_limited = true;
            return None;
        }
        if !probe && self.nagle_holds(len, mss, fin) {
            return None;
        }
        if self.push.corking && self.tx.unsent.len() == 1 && self.autocorks() {
            return None;
        }
        self.tx.unsent.cut(nxt, mss);
        if self.tx.small_queue_full(len, 0) {
            return None;
        }
        Some(self.send_new(len, fin, if probe { Why::LossProbe } else { Why::Window }))
    }

    /// Whether the last, short buffer of a write waits for what the host still holds of ours; then that lets it go.
    //= linux v6.12 net/ipv4/tcp.c tcp_should_autocork, tcp_push
    pub(super) fn autocorks(&mut self) -> bool {
        let tail = self.tx.unsent.tail_len(self.tx.space.nxt()) as u32;
        let waits = self.tx.host.is_throttled();
        let corks = self.cfg.autocorking && self.tx.host.corks(tail, self.tx.q.packets_out());
        if corks && !waits {
            self.tx.mib.one(Tx::AutoCorking);
        }
        corks
    }

    /// Whether Nagle's algorithm keeps a small segment back: while an earlier small one is not acknowledged.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_nagle_test, tcp_minshall_check; RFC 896
    #[inline]
    pub(super) fn nagle_holds(&self, len: u32, mss: u32, fin: bool) -> bool {
        len < mss
            && !fin
            && !self.cfg.nodelay
            && !self.tx.todo.push_all
            && !self.recovery.frto_sends()
            && self.tx.q.packets_out() > 0
            && (self.tx.p.xp || self.tx.space.small_is_out())
    }

    /// Hands over new data of this length.
    //= linux v6.12 net/ipv4/tcp_output.c __tcp_transmit_skb
    pub(super) fn send_new(&mut self, len: u32, fin: bool, why: Why) -> Transmit {
        let seq = self.tx.space.nxt();
        let full = if self.tx.p.today { self.push_mss() } else { self.tx.space.mss() };
        let data_end = seq + u64::from(len);
        if !self.tx.p.today {
            self.tx.idle_check();
        }
        if !self.tx.p.today && self.tx.q.in_flight() == 0 {
            self.tx.tx_start();
        }
        let mut flags = TcpFlags::ACK;
        if fin {
            flags = flags.with(TcpFlags::FIN);
        }
        let mut bits = if fin { rtx::FIN } else { 0 };
        let pushed = self.tx.unsent.head().is_some_and(|b| b.psh && b.end <= data_end);
        if len > 0 && (pushed || self.tx.space.is_marked(data_end)) {
            flags = flags.with(TcpFlags::PSH);
            bits |= rtx::PSH;
        }
        let mut t = self.segment(seq, len, flags);
        if self.tx.cc.has_classic_ecn() && (len > 0 || self.tx.cc.needs_ecn()) {
            (t.ect, self.ect) = (true, true);
            if self.recovery.take_cwr() {
                t.tcp.flags = t.tcp.flags.with(TcpFlags::CWR);
            }
        }
        self.data_sent(len, false);
        self.tx.n.data_segs_out += u64::from(len > 0);
        self.trial = Trial::New { end: data_end + u64::from(fin), bits, small: len < full, why, size: 0 };
        t
    }

    /// No more new data goes now: whether it was the window that stopped it, and the timers that follow.
    pub(super) fn push_done(&mut self) {
        let sent = std::mem::take(&mut self.push.sent);
        let mut limited = self.tx.is_full();
        if let Some(calls) = &mut self.calls {
            limited |= calls.push_done();
        }
        // With nothing to send tcp_push_pending_frames does not come this far.
        if sent > 0 || limited && (self.tx.space.has_unsent() || !self.tx.p.today) {
            self.tx.cwnd_validate(limited);
        }
        if sent > 0 {
            if self.tx.cc.is_reducing() {
                self.recovery.prr_sent(sent - self.push.sent_before.min(sent));
            }
            if self.state != State::SynReceived {
                self.tx.schedule_loss_probe(false);
            }
        } else if self.tx.q.packets_out() == 0 && self.tx.space.has_unsent() {
            self.tx.check_probe_timer();
        }
        self.chrono_pushed(sent > 0, limited);
        (self.push.ones, self.push.sent_before) = (false, 0);
        self.push.pushes.clear();
        if std::mem::take(&mut self.push.corking) {
            self.autocorks();
        }
        self.tx.todo.push = false;
        self.tx.todo.push_all = false;
        self.push.mss = 0;
        self.tx.check_space(u32::from(self.mss), self.recovery.reordering());
        self.chrono_room();
    }

    /// A segment with `len` bytes of data goes, for the first time or `again`.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_event_data_sent
    pub(super) fn data_sent(&mut self, len: u32, again: bool) {
        if self.tx.p.today {
            if len == 0 {
                return;
            }
            if self.tx.q.in_flight() == 0 {
                self.tx.tx_start();
            }
        } else if again {
            return;
        }
        self.tx.cc.data_sent(&self.tx.clock);
        self.rx.data_sent(&self.tx.clock);
    }

    // ---- Headers ----

    /// An ACK for what came before the segment that is being dealt with.
    //= linux v6.12 net/ipv4/tcp_dctcp.h dctcp_ece_ack_update
    fn ack_before(&mut self, upto: u64, ece: bool) -> Transmit {
        let (demand, now) = (self.rx.echo.replace(ece), self.rx.acks_at_once());
        let mut t = self.pure_ack();
        t.tcp.ack = upto as u32;
        self.rx.echo.replace(demand);
        // The segment itself is still to be acknowledged.
        self.rx.owe_ack(now);
        t
    }

    /// Where a segment without data stands.
    fn acceptable_seq(&self) -> u64 {
        self.tx.space.acceptable(self.rx.wscale())
    }

    /// An ACK without data.
    fn pure_ack(&mut self) -> Transmit {
        self.segment(self.acceptable_seq(), 0, TcpFlags::ACK)
    }

    /// An ACK that was due in the midst of a segment's processing.
    fn early_ack(&mut self, early: &EarlyAck) -> Transmit {
        let mut tcp = self.header(self.acceptable_seq(), TcpFlags::ACK, early.window);
        tcp.sack = early.sacks;
        tcp.sack_count = early.blocks.min(if self.tx.stamps.ok() { 3 } else { 4 });
        self.tx.n.segs_out += 1;
        if self.accurate.is_some() {
            let (blocks, fields, _) = self.accurate_options(u32::from(tcp.sack_count));
            tcp.sack_count = blocks as u8;
            self.write_accurate(&mut tcp, fields, false);
        }
        let (ect, departs) = (self.is_ect(), self.tx.cc.departs(&self.tx.clock));
        Transmit { tcp, payload_len: 0, gso_size: 0, ect, retransmission: false, departs }
    }
    /// Whether every segment is ECN-capable, with data or without.
    #[inline]
    fn is_ect(&self) -> bool {
        if self.accurate.is_some() {
            return self.accurate_ect();
        }
        self.tx.cc.ecn_ok() && self.tx.cc.needs_ecn()
    }

    fn header(&self, seq: u64, flags: TcpFlags, window: u16) -> Tcp {
        Tcp {
            sport: self.sport,
            dport: self.dport,
            seq: seq as u32,
            ack: self.rx.next() as u32,
            flags: if self.tx.cc.has_classic_ecn() && self.rx.echo.is_demanded() {
                flags.with(TcpFlags::ECE)
            } else {
                flags
            },
            window,
            timestamps: self.tx.stamps.ok().then(|| {
                let us = if self.tx.cc.is_paced_below() { self.tx.departs_us() } else { self.mstamp_us };
                (self.tx.clock.ts_of(us), self.tx.stamps.recent())
            }),
            ..Tcp::default()
        }
    }

    /// A segment of an open connection; acknowledges what has come.
    #[inline]
    pub(super) fn segment(&mut self, seq: u64, len: u32, flags: TcpFlags) -> Transmit {
        self.tx.n.segs_out += 1;
        self.tx.host.hand(len);
        if self.calls.is_some() {
            self.note_sent(len);
        }
        if self.frozen {
            return self.frozen_segment(seq, len, flags);
        }
        let window = self.rx.select_window();
        let mut tcp = self.header(seq, flags, window);
        if self.accurate.is_some() {
            let (blocks, fields, _) = self.accurate_options(self.blocks_to_send());
            let dsack = self.rx.has_dsack();
            if blocks > 0 {
                tcp.sack_count = self.rx.write_sacks(&mut tcp.sack, blocks as usize);
            }
            self.write_accurate(&mut tcp, fields, dsack);
        } else if self.tx.sack_ok && self.rx.has_sacks() {
            let room = if self.tx.stamps.ok() { 3 } else { 4 };
            // Each segment of several leaves the room that the blocks take.
            let each = if self.sends_whole() { len.min(self.current_mss()) } else { len };
            let spare = self.tx.space.mss().saturating_sub(each).saturating_sub(4) / 8;
            tcp.sack_count = self.rx.write_sacks(&mut tcp.sack, room.min(spare as usize));
        }
        self.rx.ack_sent();
        let ect = self.is_ect();
        self.ect = ect;
        Transmit {
            tcp,
            payload_len: len,
            gso_size: 0,
            ect,
            retransmission: false,
            departs: self.tx.cc.departs(&self.tx.clock),
        }
    }
    /// One that bears the header of those that went before the data at hand were taken in.
    #[cold]
    fn frozen_segment(&mut self, seq: u64, len: u32, flags: TcpFlags) -> Transmit {
        let frozen = self.aside.as_ref().map_or(Tcp::default(), |a| a.header);
        let echo = match self.is_accurate() {
            true => TcpFlags::of_ace(frozen.flags.ace()),
            false if frozen.flags.has(TcpFlags::ECE) => TcpFlags::ECE,
            false => TcpFlags(0),
        };
        let tcp = Tcp { seq: seq as u32, flags: flags.with(echo), ..frozen };
        let ect = self.is_ect();
        Transmit {
            tcp,
            payload_len: len,
            gso_size: 0,
            ect,
            retransmission: false,
            departs: self.tx.cc.departs(&self.tx.clock),
        }
    }
}
