//! The sequence space of what we send: how far it was written, sent and acknowledged, and the peer's window over it.
//!
//! Follows: linux v6.12 `struct tcp_sock` (`snd_una`, `snd_nxt`, `write_seq`, `snd_wnd`, …), net/ipv4/tcp_input.c
//! `tcp_ack_update_window`; v2.6.35 likewise.
//! Differs: none known.

use crate::seq;
use std::collections::VecDeque;

/// Numbers of our stream; none of them wraps.
#[derive(Debug)]
pub(crate) struct Space {
    una: u64,
    nxt: u64,
    write_seq: u64,
    wnd: u32,
    /// Payload a full segment carries (`mss_cache`).
    mss: u32,
    wl1: u64,
    max_window: u32,
    /// The same without regard to small windows.
    mss_full: u32,
    fin_queued: bool,
    fin_sent: bool,
    /// Shift of the windows the peer offers.
    wscale: u8,
    /// End of the last segment below full size.
    sml: u64,
    /// Where the last PSH mark stands.
    pushed_seq: u64,
    iss: u64,
    /// Ends of segments that carry PSH, not yet sent (2.6.35).
    push_marks: VecDeque<u64>,
}

impl Space {
    pub fn new(isn: u32) -> Space {
        let iss = seq::first(isn);
        Space {
            una: iss,
            nxt: iss,
            write_seq: iss + 1,
            wnd: 0,
            mss: 536,
            wl1: 0,
            max_window: 0,
            mss_full: 536,
            fin_queued: false,
            fin_sent: false,
            wscale: 0,
            sml: iss,
            pushed_seq: iss,
            iss,
            push_marks: VecDeque::new(),
        }
    }

    // ---- Where things stand ----

    /// Our first number, the SYN's.
    pub fn iss(&self) -> u64 {
        self.iss
    }
    /// First byte not acknowledged.
    #[inline]
    pub fn una(&self) -> u64 {
        self.una
    }
    /// Next byte to send.
    #[inline]
    pub fn nxt(&self) -> u64 {
        self.nxt
    }
    /// Shift of the windows the peer offers.
    pub fn wscale(&self) -> u8 {
        self.wscale
    }
    /// End of what was written, FIN not counted.
    #[inline]
    pub fn written(&self) -> u64 {
        self.write_seq
    }
    /// Payload a full segment carries.
    #[inline]
    pub fn mss(&self) -> u32 {
        self.mss
    }
    /// The window the peer offers, bytes.
    #[inline]
    pub fn wnd(&self) -> u32 {
        self.wnd
    }
    /// The largest it has been.
    #[inline]
    pub fn max_window(&self) -> u32 {
        self.max_window
    }
    /// Whether no more will be written.
    pub fn is_closed(&self) -> bool {
        self.fin_queued
    }
    /// Whether our FIN was sent.
    #[inline]
    pub fn fin_sent(&self) -> bool {
        self.fin_sent
    }
    /// Whether FIN waits to be sent.
    #[inline]
    pub fn fin_waits(&self) -> bool {
        self.fin_queued && !self.fin_sent
    }
    /// Bytes written and not sent for the first time.
    #[inline]
    pub fn unsent(&self) -> u64 {
        self.write_seq.saturating_sub(self.nxt)
    }
    /// Whether data or FIN waits to be sent for the first time.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.unsent() > 0 || self.fin_waits()
    }
    /// Bytes written and not acknowledged.
    #[inline]
    pub fn unacked(&self) -> u64 {
        self.write_seq.saturating_sub(self.una)
    }
    /// End of the window the peer offers.
    #[inline]
    pub fn wnd_end(&self) -> u64 {
        self.una + u64::from(self.wnd)
    }
    /// Payload a segment carries beside this many SACK blocks.
    pub fn mss_beside(&self, blocks: u32) -> u32 {
        (self.mss - (4 + 8 * blocks)).max(1)
    }
    /// Whether a small segment is out (Minshall's variant of Nagle's algorithm).
    //= linux v6.12 net/ipv4/tcp_output.c tcp_minshall_check
    pub fn small_is_out(&self) -> bool {
        self.sml > self.una && self.sml <= self.nxt
    }
    /// Where a segment without data stands, whose receiver shifts windows by `shift`.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_acceptable_seq
    #[inline]
    pub fn acceptable(&self, shift: u8) -> u64 {
        let seq = self.nxt.min(self.wnd_end().max(self.una));
        if self.nxt.saturating_sub(seq) < 1 << shift { self.nxt } else { seq }
    }

    // ---- Opening ----

    /// What the peer's SYN says: its number, the window it offers, the size of segments, the shift of later windows.
    pub fn read_syn(&mut self, isn: u32, window: u32, mss: u32, wscale: u8) {
        (self.wnd, self.max_window, self.mss, self.wscale) = (window, window, mss, wscale);
        self.wl1 = seq::first(isn);
    }
    /// Our SYN goes.
    pub fn syn_sent(&mut self) {
        self.nxt = self.iss + 1;
    }
    /// The connection is open.
    pub fn open(&mut self) {
        self.mss_full = self.mss;
        if self.max_window > 0 {
            let half = if self.max_window > 536 { self.max_window >> 1 } else { self.max_window };
            self.mss = self.mss.min(half.max(28));
        }
        (self.una, self.nxt) = (self.iss + 1, self.iss + 1);
        (self.sml, self.pushed_seq) = (self.una, self.una);
    }

    /// Of the data up to `sent` that went with our SYN, what stands before `ack` has arrived.
    pub fn syn_data(&mut self, ack: u64, sent: u64) {
        (self.una, self.nxt, self.sml) = (ack, sent, ack);
        self.pushed_all();
    }

    /// Segments are of another size from now on.
    pub fn set_mss(&mut self, mss: u32) {
        let half = match self.max_window {
            w if w > 536 => w >> 1,
            w => w,
        };
        (self.mss_full, self.mss) = (mss, mss.min(half.max(28)));
    }

    // ---- The peer's window ----

    /// The window a header's field means.
    #[inline]
    pub fn scaled(&self, window: u16, syn: bool) -> u32 {
        u32::from(window) << if syn { 0 } else { self.wscale }
    }
    /// Takes the window of the segment at `start` that opens the connection.
    pub fn first_window(&mut self, window: u32, start: u64) {
        self.wnd = window;
        self.max_window = self.max_window.max(window);
        self.wl1 = start;
    }
    /// Whether a segment's window is newer than the one we have; `shuts`: even where it is a closed one.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_may_update_window
    #[inline]
    pub fn may_update_window(&self, ack: u64, start: u64, window: u32, shuts: bool) -> bool {
        ack > self.una || start > self.wl1 || start == self.wl1 && (window > self.wnd || window == 0 && shuts)
    }
    /// Takes the newer window of the segment at `start`; answers whether it is another.
    #[inline]
    pub fn set_window(&mut self, window: u32, start: u64) -> bool {
        self.wl1 = start;
        let other = window != self.wnd;
        self.wnd = window;
        other
    }
    /// The window may be the largest so far: the segment size never exceeds half of that.
    //= linux v6.12 include/net/tcp.h tcp_bound_to_half_wnd
    #[inline]
    pub fn note_largest(&mut self) {
        if self.wnd <= self.max_window {
            return;
        }
        self.max_window = self.wnd;
        // A size bounded before may be given back.
        if self.mss_full > self.mss {
            let half = match self.max_window {
                w if w > 536 => w >> 1,
                w => w,
            };
            self.mss = self.mss_full.min(half.max(28));
        }
    }

    // ---- Progress ----

    /// All before `ack` has arrived.
    #[inline]
    pub fn acked(&mut self, ack: u64) {
        self.una = ack;
    }
    /// Bytes were written.
    #[inline]
    pub fn wrote(&mut self, bytes: u64) {
        self.write_seq += bytes;
    }
    /// No more will be written.
    pub fn close(&mut self) {
        self.fin_queued = true;
    }
    /// New data up to `data_end` has gone, and FIN with it or not; `small`: less than a full segment.
    #[inline]
    pub fn sent(&mut self, data_end: u64, fin: bool, small: bool) {
        self.fin_sent |= fin;
        if data_end > self.nxt {
            while self.push_marks.front().is_some_and(|&mark| mark <= data_end) {
                self.push_marks.pop_front();
            }
        }
        self.nxt = data_end + u64::from(fin);
        if small {
            self.sml = self.nxt;
        }
    }

    // ---- PSH ----

    /// What was written so far is pushed.
    pub fn pushed_all(&mut self) {
        self.pushed_seq = self.write_seq;
    }
    /// What ends at `end` is pushed.
    pub fn pushed_to(&mut self, end: u64) {
        self.pushed_seq = self.pushed_seq.max(end);
    }
    /// Whether more than half the largest window was written since the last mark.
    //= linux v6.12 net/ipv4/tcp.c forced_push
    #[inline]
    pub fn push_is_due(&self) -> bool {
        self.write_seq > self.pushed_seq + u64::from(self.max_window >> 1)
    }
    /// Sets a mark at the end of what was written (2.6.35).
    //= linux v2.6.35 net/ipv4/tcp.c tcp_mark_push
    pub fn mark_push(&mut self) {
        if self.push_marks.back() != Some(&self.write_seq) {
            self.push_marks.push_back(self.write_seq);
        }
        self.pushed_all();
    }
    /// What is written next joins the last segment, which then does not end here.
    pub fn unmark_push(&mut self) {
        if self.push_marks.back() == Some(&self.write_seq) {
            self.push_marks.pop_back();
        }
    }
    /// Whether a mark stands at `end`, and none between it and what was sent.
    #[inline]
    pub fn is_marked(&self, end: u64) -> bool {
        self.push_marks.iter().find(|&&m| m >= end).is_some_and(|&m| m == end)
    }
}
