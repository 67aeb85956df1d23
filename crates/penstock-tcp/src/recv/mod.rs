//! The receiving half: reassembly, the window offered, SACK blocks, and when to acknowledge.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_data_queue`, `tcp_grow_window`, `tcp_rcv_space_adjust`,
//! `tcp_event_data_recv`, net/ipv4/tcp_output.c `__tcp_select_window`, `tcp_send_delayed_ack`; v2.6.35 likewise.
//! Differs: no GRO (each segment is looked at by itself); no collapsing of the receive queue, so that under memory
//! pressure the out-of-order queue is pruned a little earlier; Windows XP's buffer is counted in payload bytes.

mod delack;
mod echo;
mod ooo;
mod sacks;
mod window;

use crate::clock::Clock;
use crate::config::{Buffer, Config, Stack};
use crate::mib::{Counts, Rx};
use crate::params::Params;
use crate::segment::EcnField;
pub(crate) use delack::{EarlyAck, Timing};
use echo::Echo;
use ooo::OooQueue;
use penstock_model::Time;
use std::collections::VecDeque;
use window::HEAD_MEM;

/// Least MSS guess for the peer's segments, and what is guessed before any was seen.
const TCP_MIN_MSS: u32 = 88;
const TCP_MSS_DEFAULT: u32 = 536;
/// Most ACKs sent without delay at the start.
const TCP_MAX_QUICKACKS: u32 = 16;

/// Pieces of pages one `sk_buff` holds at most (MAX_SKB_FRAGS).
const MAX_SKB_FRAGS: u32 = 17;
/// What fits into a received segment's head behind its headers, bytes (`skb_condense`).
const HEAD_ROOM: u32 = 64;
/// A sender's process writes into pieces of this size, bytes (SKB_FRAG_PAGE_ORDER): a segment across two of them has two fragments.
const PAGE_FRAG: u64 = 32_768;

/// Bytes received and the memory they hold: a `sk_buff`, which may have taken in those behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    /// First byte.
    pub(crate) start: u64,
    /// The byte after the last.
    pub(crate) end: u64,
    /// Its memory, bytes.
    pub(crate) mem: u32,
    /// Pieces of pages it consists of.
    pub(crate) frags: u32,
    /// Its bytes lie in its head (`skb_condense`).
    pub(crate) linear: bool,
}

impl Held {
    #[cfg(test)]
    pub(crate) fn of(start: u64, end: u64) -> Held {
        Held { start, end, mem: 0, frags: 1, linear: false }
    }

    /// Takes in what comes right behind, whose own head is then free; answers whether it can.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_try_coalesce, net/core/skbuff.c skb_try_coalesce
    pub(crate) fn coalesce(&mut self, next: &Held) -> bool {
        let fits = self.end == next.start && !next.linear && self.frags + next.frags <= MAX_SKB_FRAGS;
        if fits {
            self.end = next.end;
            self.mem += next.mem - HEAD_MEM;
            self.frags += next.frags;
        }
        fits
    }
}

/// What became of a segment's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// Nothing new; an ACK is due at once.
    Nothing,
    /// Queued in order: `rcv_nxt` advanced.
    InOrder,
    /// Queued out of order.
    OutOfOrder,
}

/// State of the receiving half.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    // With each segment, in this order: what lies together comes into the cache together.
    /// Next byte expected.
    rcv_nxt: u64,
    /// `rcv_nxt` at the last ACK sent.
    rcv_wup: u64,
    /// First byte not read by the application.
    copied_seq: u64,
    /// Window offered at `rcv_wup`, bytes.
    rcv_wnd: u32,
    rcv_ssthresh: u32,
    window_clamp: u32,
    /// `sk_rcvbuf`, bytes of memory.
    rcvbuf: u32,
    rmem: u32,
    /// Share of memory that is payload, in 256ths (6.12).
    scaling_ratio: u32,
    stack: Stack,
    /// Shift of the windows we offer.
    wscale: u8,
    /// Whether SACK was agreed on.
    sack: bool,
    /// Whether duplicates are told.
    tells_duplicates: bool,
    /// Every segment is acknowledged at once.
    quickack: bool,
    // Acknowledging
    /// What is echoed of marks.
    pub(crate) echo: Echo,
    /// The mark of the segment at hand asks for two ACKs at once.
    quick_for_mark: bool,
    pingpong: bool,
    /// An ACK is owed.
    scheduled: bool,
    /// An ACK is to be sent at once.
    now: bool,
    nomem: bool,
    pushed: bool,
    pushed2: bool,
    /// Estimate of the peer's segment size.
    rcv_mss: u32,
    last_seg_size: u32,
    quick: u32,
    /// TCP_ATO_MIN, jiffies.
    ato_min: u32,
    /// Delayed-ACK timeout, jiffies; 0 before the first data.
    ato: u32,
    /// MSS we announced, less timestamps where they are used.
    advmss: u32,
    /// Header of a segment without SACK blocks, bytes (`tcp_header_len`).
    header_len: u32,
    /// ACKs held back (SACK compression, 6.12).
    compressed: u32,
    lrcvtime: u64,
    delack_fires: Time,
    delack: Option<u64>,
    /// When ACKs that are held back are sent at the latest.
    compressed_at: Option<Time>,
    /// Where a FIN that came out of order stands.
    fin_at: Option<u64>,
    num_sacks: usize,
    dsack: Option<(u64, u64)>,
    queue: VecDeque<Held>,
    ooo: OooQueue,
    /// The furthest that was ever offered (7.2).
    offered_to: u64,
    /// First byte of the stream.
    first_seq: u64,
    // Receive buffer tuning; times in microseconds (6.12) or jiffies
    rtt_est8: u64,
    rtt_seq: u64,
    rtt_time: Option<u64>,
    rtt_last_ecr: Option<u32>,
    space: u32,
    /// Segments that came out of order.
    ooopack: u32,
    space_seq: u64,
    space_time: Option<u64>,
    /// What goes before anything else.
    early: Option<EarlyAck>,
    buffer: Buffer,
    // The others.
    /// Payload of each of the segments that the packet at hand is made of; 0: it is one.
    joined_of: u16,
    /// An ACK is sent at once when one is owed.
    soon: bool,
    compressed_rcv_nxt: u64,
    dup_acks: u32,
    /// Least timeout of a retransmission, jiffies: an ACK is held back for less.
    rto_min: u32,
    sacks: [(u64, u64); 4],
    /// Most bytes and segments offered, as the route says.
    route_window: u32,
    /// `net.core.rmem_max`, bytes.
    rmem_max: u32,
    /// Most segments offered at first; `u16::MAX`: the route says nothing of it.
    initial_rwnd: u16,
    /// Segments out of order that were of no use, or for which there was no memory; no more than it holds.
    drops: u16,
    /// Where the last report of a duplicate began (`duplicate_sack[0].start_seq`); its last 32 bits.
    dsack_start: u32,
    /// `Config::deferred_ack`: segments, jiffies.
    deferred: (u32, u64),
    /// What it has counted.
    pub(crate) mib: Box<Counts<{ Rx::ALL }>>,
}

impl Receiver {
    pub fn new(cfg: &Config, hz: u32, p: &Params) -> Receiver {
        Receiver {
            echo: Echo::new(p.today),
            mib: Box::default(),
            route_window: cfg.window_clamp.unwrap_or(u32::MAX),
            rmem_max: cfg.most_asked.1,
            initial_rwnd: cfg.initial_rwnd.map_or(u16::MAX, |n| n.min(u16::MAX.into()) as u16),
            quickack: cfg.quickack,
            rto_min: p.rto_min,
            stack: cfg.stack,
            buffer: cfg.rcvbuf,
            advmss: u32::from(cfg.announced().max(88)),
            header_len: 20,
            sack: false,
            tells_duplicates: cfg.dsack,
            wscale: 0,
            rcv_nxt: 0,
            rcv_wup: 0,
            rcv_wnd: 0,
            first_seq: 0,
            copied_seq: 0,
            rcv_ssthresh: 0,
            window_clamp: 0,
            rcvbuf: cfg.rcvbuf.initial().min(1 << 30),
            rmem: 0,
            queue: VecDeque::new(),
            offered_to: 0,
            ooo: OooQueue::default(),
            fin_at: None,
            sacks: [(0, 0); 4],
            num_sacks: 0,
            dsack: None,
            scaling_ratio: 128,
            rcv_mss: TCP_MSS_DEFAULT,
            joined_of: 0,
            last_seg_size: 0,
            quick: 0,
            ato_min: (hz / 25).max(4),
            pingpong: false,
            quick_for_mark: false,
            ato: 0,
            lrcvtime: 0,
            scheduled: false,
            now: false,
            soon: false,
            nomem: false,
            pushed: false,
            pushed2: false,
            delack: None,
            delack_fires: Time::MAX,
            compressed: 0,
            dsack_start: 0,
            ooopack: 0,
            drops: 0,
            compressed_rcv_nxt: 0,
            dup_acks: 0,
            compressed_at: None,
            early: None,
            deferred: (
                cfg.deferred_ack.0,
                cfg.deferred_ack.1.as_ns().max(0) as u64 * u64::from(hz) / 1_000_000_000,
            ),
            rtt_est8: 0,
            rtt_seq: 0,
            rtt_time: None,
            rtt_last_ecr: None,
            space: 0,
            space_seq: 0,
            space_time: None,
        }
    }

    fn today(&self) -> bool {
        self.stack.is_linux_6_12()
    }

    pub(crate) fn newest(&self) -> bool {
        self.stack.is_linux_7_2()
    }

    // ---- Where things stand ----

    /// Next byte expected.
    #[inline]
    pub fn next(&self) -> u64 {
        self.rcv_nxt
    }
    /// What was next at the last ACK sent.
    #[inline]
    pub fn last_acked(&self) -> u64 {
        self.rcv_wup
    }
    /// Window offered then, bytes.
    #[inline]
    pub fn offered(&self) -> u32 {
        self.rcv_wnd
    }
    /// Shift of the windows we offer.
    #[inline]
    pub fn wscale(&self) -> u8 {
        self.wscale
    }
    /// `sk_rcvbuf`, bytes of memory.
    pub fn rcvbuf(&self) -> u32 {
        self.rcvbuf
    }
    /// Estimate of the peer's segment size.
    pub fn rcv_mss(&self) -> u32 {
        self.rcv_mss
    }
    /// Delayed-ACK timeout, jiffies.
    pub fn ato(&self) -> u32 {
        self.ato
    }

    // ---- For display ----

    /// MSS that we announced, less timestamps where they are used.
    pub fn advmss(&self) -> u32 {
        self.advmss
    }
    /// Memory of what is received and not read, bytes.
    pub fn rmem(&self) -> u32 {
        self.rmem
    }
    /// When data came last, jiffies.
    pub fn lrcvtime(&self) -> u64 {
        self.lrcvtime
    }
    /// Bytes that came in order; the FIN counts for one.
    pub fn bytes_in(&self) -> u64 {
        self.rcv_nxt - self.first_seq
    }
    /// The round trip as the receiver reckons it, us; of 6.12.
    pub fn rcv_rtt_us(&self) -> u32 {
        if self.today() { (self.rtt_est8 >> 3) as u32 } else { 0 }
    }
    /// What the program has taken in a round trip, bytes.
    pub fn rcv_space(&self) -> u32 {
        self.space
    }
    /// The window that may be offered at most as things stand, bytes.
    pub fn rcv_ssthresh(&self) -> u32 {
        self.rcv_ssthresh
    }
    /// Segments that came out of order.
    pub fn ooopack(&self) -> u32 {
        self.ooopack
    }

    /// Those of them that were dropped.
    pub fn drops(&self) -> u32 {
        self.drops.into()
    }

    // ---- Acknowledging ----

    /// An ACK is to be sent at once.
    #[inline]
    pub fn ack_at_once(&mut self) {
        self.now = true;
    }
    /// The next ACK that is owed is not held back (`ICSK_ACK_NOW` where none is scheduled).
    #[inline]
    pub fn ack_soon(&mut self) {
        self.soon = true;
    }
    /// Where the data began whose coming again was noted last, if any was; its last 32 bits.
    pub fn last_duplicate(&self) -> u32 {
        self.dsack_start
    }
    /// Whether one is.
    #[inline]
    pub fn acks_at_once(&self) -> bool {
        self.now
    }
    /// An ACK is owed; whether `now`.
    pub fn owe_ack(&mut self, now: bool) {
        (self.now, self.scheduled) = (now, true);
    }
    /// Whether the timer of a delayed ACK runs.
    pub fn is_delayed(&self) -> bool {
        self.delack.is_some()
    }
    /// Whether [`Receiver::take_early`] has anything.
    #[inline]
    pub fn has_early(&self) -> bool {
        self.early.is_some()
    }
    /// An ACK that goes before anything else.
    #[inline]
    pub fn take_early(&mut self) -> Option<EarlyAck> {
        self.early.take()
    }
    /// The session is held for interactive.
    pub fn turn_interactive(&mut self) {
        self.pingpong = true;
    }
    /// A segment came in a header with this mark.
    pub fn marked(&mut self, ecn: EcnField) {
        self.quick_for_mark = self.echo.wants_quick_ack(ecn);
    }

    // ---- Data ----

    /// What is at hand is made of segments with so many bytes each; 0: of one.
    pub fn joined_of(&mut self, gso_size: u32) {
        self.joined_of = gso_size.min(u16::MAX.into()) as u16;
    }

    /// How many segments what is at hand is made of, with so much payload.
    pub fn joined(&self, payload: u32) -> u32 {
        if self.joined_of == 0 { 1 } else { payload.div_ceil(self.joined_of.into()).max(1) }
    }

    /// Takes a segment's data and FIN.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_data_queue
    #[allow(clippy::too_many_arguments)]
    pub fn data(
        &mut self,
        start: u64,
        len: u32,
        fin: bool,
        psh: bool,
        header: u32,
        clock: &Clock,
        rto: u32,
    ) -> Taken {
        let data_end = start + u64::from(len);
        let end = data_end + u64::from(fin);
        self.dsack = None;
        if start == self.rcv_nxt || start < self.rcv_nxt && end > self.rcv_nxt {
            if start < self.rcv_nxt {
                if self.quick_on_gaps() {
                    self.enter_quickack(TCP_MAX_QUICKACKS);
                }
                self.dsack_set(start, self.rcv_nxt);
            }
            if self.window() == 0 && !(len == 0 && fin) {
                self.mib.one(Rx::ZeroWindowDrop);
                return self.out_of_window();
            }
            if !self.make_room(start) {
                if self.today() {
                    self.nomem = true;
                }
                self.now = true;
                self.scheduled = true;
                if !self.queue.is_empty() && len > 0 {
                    self.mib.one(Rx::RcvQDrop);
                    return Taken::Nothing;
                }
            }
            if data_end > self.rcv_nxt {
                let held = self.held(start, len);
                self.rmem += held.mem;
                self.queue_held(held);
            }
            self.rcv_nxt = end;
            if len > 0 {
                self.data_received(len, psh, header, clock, rto);
                if len >= 128 {
                    self.grow_window(len, true);
                }
            }
            if fin {
                self.fin_at = Some(data_end);
            }
            if !self.ooo.is_empty() || self.fin_at == Some(self.rcv_nxt) {
                self.take_ooo();
                if self.ooo.is_empty() {
                    // 2.6.35 leaves it to the quick ACKs that each segment out of order has granted.
                    if self.quick_on_gaps() {
                        self.pingpong = false;
                    } else {
                        self.now = true;
                    }
                }
            }
            self.sack_remove();
            if self.fin_received() {
                //= linux v6.12 net/ipv4/tcp_input.c tcp_fin: nothing is reported behind it
                (self.num_sacks, self.dsack) = (0, None);
            }
            return Taken::InOrder;
        }
        if end <= self.rcv_nxt {
            self.mib.one(Rx::DelayedAckLost);
            self.dsack_set(start, end);
            return self.out_of_window();
        }
        if start >= self.rcv_nxt + u64::from(self.window()) {
            return self.out_of_window();
        }
        if self.quick_on_gaps() {
            self.enter_quickack(TCP_MAX_QUICKACKS);
        }
        self.data_ooo(start, end, len, fin, psh, header);
        Taken::OutOfOrder
    }

    /// What a segment's bytes are held in. A stream's bytes are taken to lie in the sender's pages as they were written.
    fn held(&self, start: u64, len: u32) -> Held {
        let at = start.saturating_sub(self.first_seq);
        let last = at + u64::from(len.saturating_sub(1));
        let frags = 1 + (last / PAGE_FRAG - at / PAGE_FRAG) as u32;
        Held { start, end: start + u64::from(len), mem: self.truesize(len), frags, linear: false }
    }

    /// Puts bytes whose memory is counted already into the queue that is read from.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_queue_rcv
    fn queue_held(&mut self, held: Held) {
        if self.today() && self.queue.back_mut().is_some_and(|tail| tail.coalesce(&held)) {
            self.rmem -= HEAD_MEM;
            self.mib.one(Rx::RcvCoalesce);
        } else {
            self.queue.push_back(held);
        }
    }

    /// Whether each segment out of order lets the next ACKs go at once.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_data_queue
    fn quick_on_gaps(&self) -> bool {
        !self.today() && self.stack != Stack::WindowsXp
    }

    fn out_of_window(&mut self) -> Taken {
        self.enter_quickack(TCP_MAX_QUICKACKS);
        self.scheduled = true;
        Taken::Nothing
    }

    /// Moves what now fits from the out-of-order queue.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_ofo_queue
    fn take_ooo(&mut self) {
        let high = self.rcv_nxt;
        while let Some(first) = self.ooo.first().filter(|&h| self.ooo.at(h).start <= self.rcv_nxt) {
            let held = self.ooo.remove(first);
            if held.start < high {
                self.dsack_extend(held.start, held.end.min(high));
            }
            if held.end > self.rcv_nxt {
                self.rcv_nxt = held.end;
                self.queue_held(held);
            } else {
                self.drops = self.drops.saturating_add(1);
                self.rmem -= held.mem;
            }
        }
        if self.fin_at == Some(self.rcv_nxt) {
            self.rcv_nxt += 1;
            self.ooo.clear();
        }
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_data_queue_ofo
    fn data_ooo(&mut self, start: u64, end: u64, len: u32, fin: bool, psh: bool, header: u32) {
        self.answer_mark();
        if !self.make_room(start) {
            self.drops = self.drops.saturating_add(1);
            self.mib.one(Rx::OfoDrop);
            return;
        }
        if self.today() {
            self.measure_rcv_mss(len, psh || fin, header);
        }
        self.scheduled = true;
        self.mib.one(Rx::OfoQueue);
        self.ooopack += match self.joined_of {
            0 => 1,
            size => len.div_ceil(size.into()).max(1),
        };
        let data_end = end - u64::from(fin);
        if fin {
            self.fin_at = Some(data_end);
        }
        if data_end > start {
            self.store(self.held(start, len), len, end);
            self.grow_for_gap();
        } else if self.sack {
            self.sack_new(start, end);
        }
    }

    /// Bytes the application may read.
    pub fn readable(&self) -> u64 {
        self.rcv_nxt - self.copied_seq - u64::from(self.fin_received())
    }
    /// Whether the peer's FIN has been reached.
    pub fn fin_received(&self) -> bool {
        self.fin_at.is_some_and(|f| f < self.rcv_nxt)
    }
    /// Whether anything waits out of order.
    pub fn has_ooo(&self) -> bool {
        !self.ooo.is_empty() || self.fin_at.is_some_and(|f| f > self.rcv_nxt)
    }

    /// The application reads `n` bytes; answers whether an ACK is to be sent. `now`: as for [`Receiver::space_adjust`].
    //= linux v6.12 net/ipv4/tcp.c __tcp_cleanup_rbuf
    pub fn read(&mut self, n: u64, now: u64) -> bool {
        let target = self.copied_seq + n;
        // Buffer by buffer: the tuning looks after each of them.
        while let Some(held) = self.queue.front().copied().filter(|_| self.copied_seq < target) {
            self.copied_seq = held.end.min(target).max(self.copied_seq);
            self.space_adjust(now);
            if held.end <= self.copied_seq {
                self.rmem -= held.mem;
                self.queue.pop_front();
            }
        }
        self.copied_seq = target;
        let mut ack = false;
        if self.scheduled {
            ack = self.rcv_nxt - self.rcv_wup > u64::from(self.rcv_mss)
                || n > 0
                    && (self.pushed2 || self.pushed && !self.pingpong)
                    && self.rmem == 0
                    && self.stack != Stack::WindowsXp;
            if self.stack == Stack::WindowsXp {
                ack = self.rcv_nxt - self.rcv_wup >= u64::from(self.deferred.0) * u64::from(self.rcv_mss);
            }
        }
        if n > 0 && !ack && !self.fin_received() {
            let window = self.window();
            // Reading sends nothing on Solaris.
            let told = self.stack != Stack::WindowsXp || self.deferred.0 <= 2;
            if told && 2 * u64::from(window) <= u64::from(self.window_clamp) {
                let new = self.pick_window();
                ack = new > 0 && u64::from(new) >= 2 * u64::from(window);
            }
        }
        ack
    }

    /// Bytes the application has read.
    pub fn bytes_read(&self) -> u64 {
        self.copied_seq - self.first_seq
    }
}
