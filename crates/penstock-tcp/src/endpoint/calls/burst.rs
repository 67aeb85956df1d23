//! Bursts: how many segments one packet has, when TCP waits for more before it sends, and which segments are sent again as one packet.
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c `tcp_write_xmit`, `tcp_tso_autosize`, `tcp_tso_should_defer`, `tcp_mss_split_point`,
//! `tcp_xmit_retransmit_queue`.
//! Differs: as its parent.

use super::{CORK, PUSH};
use crate::endpoint::Endpoint;
use crate::endpoint::attempt::{Trial, Why};
use crate::info::CaState;
use crate::segment::Transmit;
use penstock_model::Span;
use penstock_packet::TcpFlags;

impl Endpoint {
    /// Segments that one packet has at most now.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_tso_segs, tcp_tso_autosize
    fn tso_segs(&self, mss: u32) -> u32 {
        let Some(c) = &self.calls else { return 1 };
        let (rate, _) = self.tx.cc.small_queue();
        let min = self.tx.cc.min_tso_segs().unwrap_or(c.cfg.min_tso_segs);
        let mut bytes = rate >> 10;
        let r = self.tx.timers.min_rtt().checked_shr(c.cfg.tso_rtt_log).unwrap_or(0);
        if c.cfg.tso_rtt_log > 0 && r < 32 {
            bytes += u64::from(c.cfg.gso_max_size) >> r;
        }
        let bytes = bytes.min(u64::from(c.cfg.gso_max_size)) as u32;
        (bytes / mss.max(1)).max(min).min(c.cfg.gso_max_segs)
    }

    /// The next segment of new data, as part of a burst; a `probe` goes whatever the congestion window and Nagle say.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_write_xmit
    pub(in crate::endpoint) fn xmit_burst(&mut self, probe: bool) -> Option<Transmit> {
        let mss = self.push_mss();
        let (burst, over) = self.calls.as_ref().map_or((false, true), |c| (c.burst, c.one && c.one_sent));
        if burst {
            return Some(self.burst_piece(mss, false));
        }
        if over || !self.tx.space.has_unsent() || self.tx.pacing_holds() {
            return None;
        }
        let first = self.calls.as_mut().is_some_and(|c| !c.one && !std::mem::replace(&mut c.searched, true));
        if first
            && !probe
            && let Some(probed) = self.mtu_probe()
        {
            return probed;
        }
        let (cwnd, in_flight) = (self.tx.cc.cwnd(), self.tx.q.in_flight());
        let mut quota = cwnd.saturating_sub(in_flight).min((cwnd >> 1).max(1));
        if quota == 0 {
            if !probe {
                return None;
            }
            quota = 1;
        }
        let most = self.tso_segs(mss);
        quota = quota.min(most);
        let nxt = self.tx.space.nxt();
        self.tx.unsent.grow(nxt, quota * mss);
        let held = self.tx.unsent.head().map_or(0, |b| b.end - nxt).min(u64::from(u32::MAX)) as u32;
        let last = self.tx.unsent.len() <= 1;
        let fin = self.tx.space.fin_waits() && last;
        let segs = held.div_ceil(mss).max(1);
        if !self.tx.fits((held.min(mss), fin && held <= mss)) {
            self.push.rwnd_limited = true;
            return None;
        }
        let nonagle = if last { self.nonagle() } else { PUSH };
        if segs == 1 {
            let small = held < mss && !fin && nonagle & PUSH == 0;
            if small && !probe && self.partial_waits(nonagle) {
                return None;
            }
        } else if !probe && self.tso_defers(held, last, fin, most) {
            return None;
        }
        let mut limit = mss;
        if segs > 1 {
            limit = self.split_point(held, mss, quota, last, nonagle);
        }
        if held > limit {
            self.tx.unsent.cut(nxt, limit);
        }
        let len = held.min(limit);
        if self.tx.small_queue_full(len, 0) {
            return None;
        }
        let whole = self.sends_whole();
        if let Some(c) = &mut self.calls {
            (c.burst, c.one_sent, c.joins) = (!whole, true, false);
        }
        Some(if whole { self.burst_whole(len, mss, probe) } else { self.burst_piece(mss, probe) })
    }
    /// Whether a burst goes as one packet.
    #[inline]
    pub(in crate::endpoint) fn sends_whole(&self) -> bool {
        self.calls.as_ref().is_some_and(|c| c.cfg.whole)
    }
    /// The first `len` bytes of new data as one packet.
    //= linux v6.12 net/ipv4/tcp_output.c __tcp_transmit_skb, tcp_minshall_update
    fn burst_whole(&mut self, len: u32, mss: u32, probe: bool) -> Transmit {
        let fin = self.tx.space.fin_waits() && u64::from(len) == self.tx.space.unsent();
        let mut t = self.send_new(len, fin, if probe { Why::LossProbe } else { Why::Window });
        if len > mss {
            t.gso_size = mss;
            t.tcp.flags = t.tcp.flags.with(TcpFlags::PSH);
            let more = u64::from(len.div_ceil(mss) - 1);
            self.tx.n.segs_out += more;
            self.tx.n.data_segs_out += more;
            if let Trial::New { small, size, .. } = &mut self.trial {
                (*small, *size) = (!len.is_multiple_of(mss), mss);
            }
        }
        t
    }
    /// The next segment of the first buffer.
    //= linux v6.12 net/ipv4/tcp_output.c __tcp_transmit_skb: a packet of several segments always has PSH, its buffer not
    fn burst_piece(&mut self, mss: u32, probe: bool) -> Transmit {
        let nxt = self.tx.space.nxt();
        let (len, fin) = self.tx.next_segment(mss);
        let ends = self.tx.unsent.head().is_none_or(|b| b.end <= nxt + u64::from(len));
        let mut t = self.send_new(len, fin, if probe { Why::LossProbe } else { Why::Window });
        if let Some(c) = &mut self.calls {
            c.burst = !ends;
            if ends && c.joins {
                t.tcp.flags = t.tcp.flags.with(TcpFlags::PSH);
            }
        }
        t
    }
    /// Whether a short segment waits.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_nagle_check
    fn partial_waits(&self, nonagle: u8) -> bool {
        nonagle & CORK != 0 || nonagle == 0 && self.tx.q.packets_out() > 0 && self.tx.space.small_is_out()
    }
    //= linux v6.12 net/ipv4/tcp_output.c tcp_mss_split_point
    fn split_point(&self, held: u32, mss: u32, quota: u32, last: bool, nonagle: u8) -> u32 {
        let window =
            self.tx.space.wnd_end().saturating_sub(self.tx.space.nxt()).min(u64::from(u32::MAX)) as u32;
        let most = quota.saturating_mul(mss);
        if most <= window && !last {
            return most;
        }
        let needed = held.min(window);
        if most <= needed {
            return most;
        }
        let partial = needed % mss;
        if partial != 0 && self.partial_waits(nonagle) { needed - partial } else { needed }
    }
    /// Whether it is better to wait for the next ACK and send more at once.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_tso_should_defer
    fn tso_defers(&mut self, held: u32, last: bool, fin: bool, most: u32) -> bool {
        let now = self.tx.clock.now;
        let Some(c) = &self.calls else { return false };
        let one = c.one;
        let recent = now - c.wstamp.max(self.tx.cc.wstamp()) <= Span::from_ms(1);
        if one || self.tx.cc.state() >= CaState::Recovery || !recent {
            return false;
        }
        let (space, mss) = (&self.tx.space, u64::from(self.tx.space.mss()));
        let cwnd = u64::from(self.tx.cc.cwnd());
        let send_win = space.wnd_end().saturating_sub(space.nxt());
        let cong_win = (cwnd - u64::from(self.tx.q.in_flight()).min(cwnd)) * mss;
        let limit = send_win.min(cong_win);
        let held = u64::from(held);
        if limit >= u64::from(most) * mss || !last && limit >= held {
            return false;
        }
        let window = u64::from(space.wnd()).min(cwnd * mss);
        let enough = match c.cfg.tso_win_divisor {
            //= linux v6.12 include/net/tcp.h tcp_max_tso_deferred_mss
            0 => limit > 3 * mss,
            divisor => limit >= window / u64::from(divisor),
        };
        if enough {
            return false;
        }
        let Some(head) = self.tx.q.front() else { return false };
        // The next ACK is likely to come too late: in more than a millisecond, or half a round trip (6.12.55; 295ce1eb36ae).
        let srtt_ns = 125 * i64::from(self.tx.timers.srtt8());
        let how_far = head.sent_us as i64 * 1_000 + srtt_ns - now.as_ns();
        if how_far > (srtt_ns >> 1).min(1_000_000) {
            return false;
        }
        let eor = self.tx.unsent.head().is_some_and(|b| b.eor);
        let Some(c) = &mut self.calls else { return false };
        if cong_win < send_win {
            if cong_win <= held {
                c.deferred = true;
                return true;
            }
        } else if send_win <= held {
            self.push.rwnd_limited = true;
            return true;
        }
        !(fin || eor)
    }

    /// How many segments are retransmitted as one packet, from that at `index` on.
    pub(in crate::endpoint) fn rexmit_count(&mut self, index: usize, alone: bool) -> usize {
        if !self.sends_whole() {
            if self.calls.is_some() {
                self.rexmit_run(index, alone);
            }
            return 1;
        }
        let mss = self.current_mss();
        let room = self.tx.cc.cwnd().saturating_sub(self.tx.q.in_flight()).min(self.tso_segs(mss));
        let most = if alone { 1 } else { room.max(1) as usize };
        let (end, several) = self.tx.q.cut_run(index, most);
        if !several {
            return 1;
        }
        let count = self.tx.q.lower(end) - index;
        let ill = |n: usize| self.tx.q.at(n).payload() != mss;
        if (index..index + count - 1).any(ill) || self.tx.q.at(index + count - 1).payload() > mss {
            return self.tx.q.recut(index, count, mss);
        }
        count
    }
    /// Bytes of the buffer that the segment at `index` begins, or is the rest of.
    pub(in crate::endpoint) fn buffer_at(&self, index: usize) -> u32 {
        if self.sends_whole() { self.tx.q.buffer_len(index) } else { self.tx.q.at(index).payload() }
    }
    /// The same where a packet is handed over segment by segment: notes where it ends.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_xmit_retransmit_queue
    pub(in crate::endpoint) fn rexmit_run(&mut self, index: usize, alone: bool) {
        let seq = self.tx.q.at(index).seq;
        let Some(c) = &self.calls else { return };
        if seq < c.rexmit_end && !alone {
            return;
        }
        let room =
            self.tx.cc.cwnd().saturating_sub(self.tx.q.in_flight()).min(self.tso_segs(self.tx.space.mss()));
        let most = if alone { 1 } else { room.max(1) as usize };
        let (end, several) = self.tx.q.cut_run(index, most);
        if let Some(c) = &mut self.calls {
            (c.rexmit_end, c.rexmit_several) = (end, several);
        }
    }
    /// Whether the segment that ends at `end` is the last of several that go again as one packet.
    pub(in crate::endpoint) fn ends_run(&self, end: u64) -> bool {
        self.calls.as_ref().is_some_and(|c| c.rexmit_several && c.rexmit_end == end)
    }
}
