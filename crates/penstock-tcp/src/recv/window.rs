//! The window offered to the peer: memory, growth, and tuning of the receive buffer.
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c `tcp_select_initial_window`, `__tcp_select_window`, net/ipv4/tcp_input.c
//! `tcp_grow_window`, `tcp_clamp_window`, `tcp_rcv_space_adjust`; v2.6.35 likewise; RFC 9293 section 3.8.6.2.2.
//! Differs: the memory a received segment holds depends on the driver in Linux; here it is what a veth's segment
//! holds on 6.12 (seen: 2408 bytes for 1448), a 2048-byte buffer and its `sk_buff` on 2.6.35. XP counts payload.

use super::{Receiver, TCP_MIN_MSS, TCP_MSS_DEFAULT};
use crate::clock::Clock;
use crate::config::{Buffer, Stack};
use crate::mib::Rx;
use crate::seq;
use penstock_model::Kernel;

/// Below this round trip, microseconds, a receive buffer grows by less (`tcp_rcvbuf_low_rtt` of 7.2).
const RCVBUF_LOW_RTT_US: u64 = 1_000;
/// Windows above this are not offered without scaling.
const U16_MAX: u32 = 65_535;

/// What a received segment's `sk_buff` and its head hold beside the payload, bytes (6.12, over a veth).
pub(crate) const HEAD_MEM: u32 = 960;

impl Receiver {
    /// Memory a received segment holds, bytes.
    pub(crate) fn truesize(&self, len: u32) -> u32 {
        match self.stack {
            // As sent over a veth: head, struct skb_shared_info and struct sk_buff beside the payload.
            Stack::Linux(Kernel::V6_12 | Kernel::V7_2) | Stack::Ns2 => len + HEAD_MEM,
            // A frame in a 2048-byte buffer and its struct sk_buff.
            Stack::Linux(_) => 2_240.max(len + 192),
            Stack::WindowsXp => len,
        }
    }
    //= linux v6.12 include/net/tcp.h __tcp_win_from_space; v2.6.35 tcp_win_from_space (tcp_adv_win_scale 2)
    pub(crate) fn win_from_space(&self, space: i64) -> i64 {
        match self.stack {
            Stack::Linux(Kernel::V2_6_35) => space - (space >> 2),
            Stack::Linux(_) | Stack::Ns2 => (space * i64::from(self.scaling_ratio)) >> 8,
            Stack::WindowsXp => space,
        }
    }
    fn space(&self) -> i64 {
        self.win_from_space(i64::from(self.rcvbuf) - i64::from(self.rmem))
    }
    pub(crate) fn full_space(&self) -> i64 {
        self.win_from_space(i64::from(self.rcvbuf))
    }

    /// The window and its shift for our SYN or SYN-ACK.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_select_initial_window; v2.6.35 likewise (four segments at first)
    pub fn select_initial_window(&mut self, mss: u32, scaling: bool) {
        let clamp = match self.buffer {
            Buffer::Fixed(_) => self.full_space().clamp(0, 65_535 << 14) as u32,
            Buffer::Auto(..) => U16_MAX << 14,
        };
        let clamp = clamp.min(self.route_window);
        let mut space = (self.full_space().max(0) as u32).min(clamp);
        if space > mss && self.stack != Stack::WindowsXp {
            space = space / mss * mss;
        }
        self.rcv_wnd = space;
        self.wscale = 0;
        if scaling {
            let reach = clamp.min(space.max(self.buffer.max()).max(self.rmem_max));
            self.wscale = if self.today() {
                (reach.max(1).ilog2() as u8).saturating_sub(15).min(14)
            } else {
                let mut shift = 0;
                while reach >> shift > U16_MAX && shift < 14 {
                    shift += 1;
                }
                shift
            };
        }
        if self.stack == Stack::Linux(Kernel::V2_6_35) && mss > 1 << self.wscale {
            let segments = match mss {
                0..=1460 => 4,
                1461..=4380 => 3,
                _ => 2,
            };
            self.rcv_wnd = self.rcv_wnd.min(segments * mss);
        }
        if self.initial_rwnd != u16::MAX {
            self.rcv_wnd = self.rcv_wnd.min(u32::from(self.initial_rwnd).saturating_mul(mss));
        }
        self.window_clamp = clamp.min(U16_MAX << self.wscale);
        self.rcv_ssthresh = self.rcv_wnd;
    }

    /// The peer's SYN was read: where its stream begins.
    /// `header_len`: that of segments without SACK blocks.
    pub fn begin(&mut self, isn: u32, advmss: u32, header_len: u32, sack: bool) {
        (self.advmss, self.header_len, self.sack) = (advmss, header_len, sack);
        self.rcv_nxt = seq::first(isn) + 1;
        self.rcv_wup = self.rcv_nxt;
        self.copied_seq = self.rcv_nxt;
        self.first_seq = self.rcv_nxt;
        self.offered_to = self.rcv_wup + u64::from(self.rcv_wnd);
    }

    /// A SYN or SYN-ACK has brought data, and FIN or not (TCP Fast Open).
    //= linux v6.12 net/ipv4/tcp_fastopen.c tcp_fastopen_add_skb
    pub fn data_of_syn(&mut self, len: u32, fin: bool) {
        if len > 0 {
            let held = self.held(self.rcv_nxt, len);
            self.rmem += held.mem;
            self.queue_held(held);
            self.rcv_nxt += u64::from(len);
        }
        if fin {
            self.fin_at = Some(self.rcv_nxt);
            self.rcv_nxt += 1;
        }
    }
    /// The window that was offered with the SYN-ACK stands behind what the SYN has brought.
    pub fn offered_anew(&mut self) {
        self.rcv_wup = self.rcv_nxt;
        self.offered_to = self.rcv_wup + u64::from(self.rcv_wnd);
    }

    /// The connection is open; `mss` is the size of segments we send.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_init_buffer_space, tcp_initialize_rcv_mss
    pub fn established(&mut self, mss: u32, clock: &Clock) {
        self.lrcvtime = clock.jiffies;
        if self.stack == Stack::Linux(Kernel::V2_6_35)
            && let Buffer::Auto(_, max) = self.buffer
        {
            self.rcvbuf = self.rcvbuf.max((4 * self.rcvmem()).min(max));
        }
        let maxwin = self.full_space().clamp(0, i64::from(u32::MAX)) as u32;
        self.window_clamp = self.window_clamp.min(maxwin);
        // One segment is held in reserve (tcp_app_win). XP offers all of its buffer.
        if self.stack != Stack::WindowsXp
            && self.window_clamp > 2 * self.advmss
            && self.window_clamp + self.advmss > maxwin
        {
            self.window_clamp = (2 * self.advmss).max(maxwin - self.advmss);
        }
        self.rcv_ssthresh = self.rcv_ssthresh.min(self.window_clamp);
        if self.stack == Stack::WindowsXp {
            self.rcv_ssthresh = self.window_clamp;
        }
        self.space_seq = self.copied_seq;
        if self.today() {
            self.space_time = Some(clock.us);
            self.space = self.rcv_ssthresh.min(self.rcv_wnd).min(10 * self.advmss).max(1);
        } else {
            self.space = self.rcv_wnd.max(1);
        }
        self.rcv_mss = self.advmss.min(mss).min(self.rcv_wnd / 2).clamp(TCP_MIN_MSS, TCP_MSS_DEFAULT);
    }

    /// Memory one full segment is reckoned at (2.6.35).
    fn rcvmem(&self) -> u32 {
        // MAX_TCP_HEADER 304, 16, struct sk_buff 192 (Ubuntu 10.10, 32 bits).
        let mut mem = self.advmss + 304 + 16 + 192;
        while self.win_from_space(i64::from(mem)) < i64::from(self.advmss) {
            mem += 128;
        }
        mem
    }

    /// What of the offered window is left, bytes.
    #[inline]
    pub fn window(&self) -> u32 {
        (self.rcv_wup + u64::from(self.rcv_wnd)).saturating_sub(self.rcv_nxt) as u32
    }

    /// What is left of the furthest that was ever offered, bytes.
    //= linux v7.2 include/net/tcp.h tcp_max_receive_window
    pub fn largest_window(&self) -> u64 {
        self.offered_to.max(self.rcv_wup + u64::from(self.rcv_wnd)).saturating_sub(self.rcv_nxt)
    }

    /// The window that could be offered now.
    //= linux v6.12 net/ipv4/tcp_output.c __tcp_select_window
    pub(crate) fn pick_window(&mut self) -> u32 {
        let mut mss = i64::from(self.rcv_mss);
        let mut free = self.space();
        let allowed = self.full_space();
        let full = allowed.min(i64::from(self.window_clamp));
        if mss > full {
            mss = full;
            if mss <= 0 {
                return 0;
            }
        }
        if free < full >> 1 {
            self.quick = 0;
            if self.today() {
                free &= !((1i64 << self.wscale) - 1);
                if free < allowed >> 4 || free < mss {
                    return 0;
                }
            } else if free < mss {
                return 0;
            }
        }
        free = free.min(i64::from(self.rcv_ssthresh));
        if self.wscale > 0 {
            let unit = 1i64 << self.wscale;
            // `free` is not negative here.
            return ((free + unit - 1) & !(unit - 1)) as u32;
        }
        let window = i64::from(self.rcv_wnd);
        if self.stack == Stack::WindowsXp {
            return free as u32;
        }
        if window <= free - mss || window > free {
            (free / mss * mss) as u32
        } else if mss == full && free > window + (full >> 1) {
            free as u32
        } else {
            window as u32
        }
    }

    /// Chooses the window for a segment that is being sent; answers the header's field.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_select_window
    #[inline]
    pub fn select_window(&mut self) -> u16 {
        if self.nomem {
            self.rcv_wnd = 0;
            self.rcv_wup = self.rcv_nxt;
            return 0;
        }
        let (old, current) = (self.rcv_wnd, self.window());
        let mut new = self.pick_window();
        if new < current {
            if new == 0 {
                self.mib.one(Rx::WantZeroWindowAdv);
            }
            // Never shrink what was offered.
            let unit = 1u32 << self.wscale;
            new = current.next_multiple_of(unit);
        }
        self.rcv_wnd = new;
        self.rcv_wup = self.rcv_nxt;
        self.offered_to = self.offered_to.max(self.rcv_wup + u64::from(new));
        let told = (new.min(U16_MAX << self.wscale) >> self.wscale) as u16;
        match (told, old) {
            (0, 0) => {}
            (0, _) => self.mib.one(Rx::ToZeroWindowAdv),
            (_, 0) => self.mib.one(Rx::FromZeroWindowAdv),
            _ => {}
        }
        told
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_grow_window
    ///
    /// `adjust`: the segment's head is free again, as it was taken into another or will be.
    pub(crate) fn grow_window(&mut self, len: u32, adjust: bool) {
        let room = i64::from(self.window_clamp).min(self.space()) - i64::from(self.rcv_ssthresh);
        if room <= 0 {
            return;
        }
        let mem = if adjust && self.today() { self.truesize(len) - HEAD_MEM } else { self.truesize(len) };
        let truesize = self.win_from_space(i64::from(mem));
        let mut grow = 0;
        if truesize <= i64::from(len) {
            grow = 2 * self.advmss;
        } else {
            let mut size = truesize >> 1;
            let mut window = self.win_from_space(i64::from(self.buffer.max())) >> 1;
            while i64::from(self.rcv_ssthresh) <= window {
                if size <= i64::from(len) {
                    grow = 2 * self.rcv_mss;
                    break;
                }
                size >>= 1;
                window >>= 1;
            }
        }
        if grow > 0 {
            if self.today() {
                grow = grow.max(2 * len);
            }
            self.rcv_ssthresh += i64::from(grow).min(room) as u32;
            self.quick |= 1;
        }
    }

    /// The receive buffer is over its bound: let it grow if it may, else offer less.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_prune_queue, tcp_clamp_window
    pub(crate) fn make_room(&mut self, seq: u64) -> bool {
        if self.rmem <= self.rcvbuf {
            return true;
        }
        self.mib.one(Rx::PruneCalled);
        self.quick = 0;
        if let Buffer::Auto(_, max) = self.buffer
            && self.rcvbuf < max
        {
            self.rcvbuf = self.rmem.min(max);
        }
        if self.rmem <= self.rcvbuf {
            return true;
        }
        self.rcv_ssthresh = self.window_clamp.min(2 * self.advmss);
        let mut pruned = false;
        while let Some(last) =
            self.ooo.last().filter(|&o| self.rmem > self.rcvbuf && seq <= self.ooo.at(o).start)
        {
            self.rmem -= self.ooo.remove(last).mem;
            self.drops = self.drops.saturating_add(1);
            pruned = true;
        }
        if pruned {
            self.mib.one(Rx::OfoPruned);
            // What was reported must be reported no more.
            self.num_sacks = 0;
            self.fin_at = None;
        }
        let room = self.rmem <= self.rcvbuf;
        if !room {
            self.mib.one(Rx::RcvPruned);
        }
        room
    }

    // ---- Receive buffer tuning ----

    /// The tuning's clock: microseconds (6.12) or jiffies.
    pub(crate) fn ticks(&self, clock: &Clock) -> u64 {
        if self.today() { clock.us } else { clock.jiffies }
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_rtt_update
    fn rcv_rtt_update(&mut self, sample: u64, window_dependent: bool) {
        let old = self.rtt_est8;
        let m = sample.max(1) << 3;
        if old == 0 || m < old && (self.today() || window_dependent) {
            self.rtt_est8 = m;
        } else if !window_dependent && (self.rcv_nxt == self.copied_seq || !self.newest()) {
            self.rtt_est8 = old - (old >> 3) + (m >> 3);
        }
    }

    /// One window's worth of data is taken for a round trip.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_rtt_measure
    pub(crate) fn rcv_rtt_measure(&mut self, clock: &Clock) {
        let now = self.ticks(clock);
        if let Some(since) = self.rtt_time {
            if self.rcv_nxt < self.rtt_seq {
                return;
            }
            self.rcv_rtt_update(now - since, true);
        }
        self.rtt_seq = self.rcv_nxt + u64::from(self.rcv_wnd);
        self.rtt_time = Some(now);
    }

    /// The round trip by the timestamp the peer echoed in a full segment.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_rtt_measure_ts
    pub(crate) fn rcv_rtt_measure_ts(&mut self, ecr: u32, len: u32, clock: &Clock) {
        if ecr == 0 || self.today() && self.rtt_last_ecr == Some(ecr) {
            return;
        }
        self.rtt_last_ecr = Some(ecr);
        let ticks = clock.tsval().wrapping_sub(ecr);
        if len < self.rcv_mss || ticks > i32::MAX as u32 / 1_000 {
            return;
        }
        if !self.today() {
            self.rcv_rtt_update(u64::from(ticks), false);
        } else if ticks > 0 {
            self.rcv_rtt_update(u64::from(ticks) * 1_000, false);
        }
    }

    /// What a measurement's end decides: the buffer for `copied` bytes of a round trip.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_space_adjust
    fn space_adjust_today(&mut self, copied: u64, max: u32) {
        let copied = copied.saturating_sub(self.rcv_nxt - self.copied_seq);
        let space = u64::from(self.space);
        if copied <= space {
            return;
        }
        if self.newest() {
            return self.grow_rcvbuf(copied as u32, max);
        }
        let mut window = (copied << 1) + 16 * u64::from(self.advmss);
        window += (window * (copied - space) / space) << 1;
        let wanted = ((window << 8) / u64::from(self.scaling_ratio)).min(u64::from(max)) as u32;
        if wanted > self.rcvbuf {
            self.rcvbuf = wanted;
            self.window_clamp = self.full_space() as u32;
        }
        self.space = copied as u32;
    }

    /// The buffer for so many bytes of a round trip: a window twice as large, for it is always one round trip late, and more where the sender's grows.
    //= linux v7.2 net/ipv4/tcp_input.c tcp_rcvbuf_grow
    pub(crate) fn grow_rcvbuf(&mut self, copied: u32, max: u32) {
        let before = u64::from(std::mem::replace(&mut self.space, copied));
        let (mut window, rtt_us) = (copied.wrapping_shl(1), self.rtt_est8 >> 3);
        let grow = if rtt_us < RCVBUF_LOW_RTT_US {
            u64::from(window) * rtt_us / RCVBUF_LOW_RTT_US
        } else {
            (u64::from(window) << 1) * (u64::from(copied).saturating_sub(before)) / before.max(1)
        };
        window = window.wrapping_add(grow as u32);
        if let Some(last) = self.ooo.last() {
            window = window.wrapping_add((self.ooo.at(last).end - self.rcv_nxt) as u32);
        }
        let wanted = ((u64::from(window) << 8) / u64::from(self.scaling_ratio)).min(u64::from(max)) as u32;
        if wanted > self.rcvbuf {
            self.rcvbuf = wanted;
            self.window_clamp = self.full_space() as u32;
        }
    }
    /// The same where data have come out of order.
    //= linux v7.2 net/ipv4/tcp_input.c tcp_data_queue_ofo
    pub(crate) fn grow_for_gap(&mut self) {
        if self.newest()
            && let Buffer::Auto(_, max) = self.buffer
        {
            self.grow_rcvbuf(self.space, max);
        }
    }

    /// Makes the receive buffer twice as large as what the application took in a round trip, and some more.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_space_adjust; v2.6.35 likewise
    ///
    /// `now`: microseconds (6.12) or jiffies; of 7.2, when a segment was dealt with last.
    pub(crate) fn space_adjust(&mut self, now: u64) {
        let Buffer::Auto(_, max) = self.buffer else { return };
        if let Some(since) = self.space_time {
            if self.rtt_est8 == 0 || now - since < self.rtt_est8 >> 3 {
                return;
            }
            let copied = self.copied_seq - self.space_seq;
            if self.today() {
                self.space_adjust_today(copied, max);
            } else {
                let space = (2 * copied).min(u64::from(u32::MAX)) as u32;
                if space > self.space {
                    self.space = space;
                    let wanted = u64::from((space / self.advmss).max(1)) * u64::from(self.rcvmem());
                    let wanted = wanted.min(u64::from(max)) as u32;
                    if wanted > self.rcvbuf {
                        self.rcvbuf = wanted;
                        self.window_clamp = space;
                    }
                }
            }
        }
        self.space_seq = self.copied_seq;
        self.space_time = Some(now);
    }
}
