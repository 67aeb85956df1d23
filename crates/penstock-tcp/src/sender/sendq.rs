//! What the program has written and the connection has not sent: the write queue of Linux 6.12, buffer by buffer.
//!
//! Follows: linux v6.12 net/ipv4/tcp.c `tcp_sendmsg_locked`, `tcp_push`, net/ipv4/tcp_output.c `tcp_write_xmit`, `tcp_grow_skb`,
//! `tso_fragment`.
//! Differs: the calls of `tcp_push_one` and `forced_push` in the midst of a long write go when the write has returned; whether they
//! would have emptied the queue before the call waits is told from both windows.

use crate::endpoint::attempt::Why;
use crate::endpoint::{Endpoint, Transmit};
use crate::info::State;
use std::collections::VecDeque;

/// A buffer of unsent data (`sk_buff`); it begins where the one before it ends, the first at `snd_nxt`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unsent {
    /// The byte after its last.
    pub end: u64,
    /// It carries PSH.
    pub psh: bool,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    bufs: VecDeque<Unsent>,
}

impl SendQueue {
    #[inline]
    pub fn len(&self) -> usize {
        self.bufs.len()
    }
    #[inline]
    pub fn head(&self) -> Option<Unsent> {
        self.bufs.front().copied()
    }
    /// The last buffer's length, where the first begins at `start`.
    pub fn tail_len(&self, start: u64) -> u64 {
        let before = self.bufs.len().checked_sub(2).map_or(start, |n| self.bufs[n].end);
        self.bufs.back().map_or(0, |b| b.end - before)
    }
    /// A new buffer with nothing in it yet, behind the others.
    pub fn entail(&mut self, at: u64) {
        self.bufs.push_back(Unsent { end: at, psh: false });
    }
    pub fn tail_mut(&mut self) -> Option<&mut Unsent> {
        self.bufs.back_mut()
    }
    /// The first buffer is sent.
    pub fn pop(&mut self) -> Option<Unsent> {
        self.bufs.pop_front()
    }

    /// Fills the first buffer, which begins at `start`, up to `mss` bytes from the one behind it: from that one only, even if it has less.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_grow_skb
    pub fn grow(&mut self, start: u64, mss: u32) {
        let Some([head, next]) =
            self.bufs.front().copied().zip(self.bufs.get(1).copied()).map(|p| [p.0, p.1])
        else {
            return;
        };
        let missing = u64::from(mss).saturating_sub(head.end - start);
        let taken = missing.min(next.end - head.end);
        self.bufs[0].end += taken;
        if taken > 0 && self.bufs[0].end == next.end {
            self.bufs[0].psh |= next.psh;
            self.bufs.remove(1);
        }
    }

    /// Cuts the first buffer, which begins at `start`, to `len` bytes where it is longer; PSH stays with the rest.
    //= linux v6.12 net/ipv4/tcp_output.c tso_fragment
    pub fn cut(&mut self, start: u64, len: u32) {
        let Some(head) = self.head() else { return };
        let end = start + u64::from(len);
        if head.end > end {
            self.bufs[0] = Unsent { end, psh: false };
            self.bufs.insert(1, head);
        }
    }

    /// Sets PSH on the first buffer.
    pub fn push_head(&mut self) {
        if let Some(head) = self.bufs.front_mut() {
            head.psh = true;
        }
    }
}

impl Endpoint {
    /// A call to write, or what a call that waited for room goes on with.
    //= linux v6.12 net/ipv4/tcp.c tcp_sendmsg_locked
    pub(crate) fn sendmsg(&mut self, bytes: u64) -> u64 {
        let waited = std::mem::take(&mut self.send_waits);
        if waited == 0 {
            self.check_app_limited();
        }
        let goal = u64::from(self.current_mss());
        self.push_ones = self.sendq.len() == 0;
        let (mut took, mut pushed) = (0, false);
        while took < bytes {
            let mut room = goal.saturating_sub(self.sendq.tail_len(self.snd_nxt));
            if room == 0 || self.sendq.len() == 0 {
                if self.wmem() >= u64::from(self.sndbuf) {
                    self.nospace = true;
                    break;
                }
                // Once a full segment has gone (tcp_push_one) the connection is idle no more.
                if self.sendq.len() == 0 || !self.next_fits() {
                    self.idle_check();
                }
                self.sendq.entail(self.write_seq);
                room = goal;
            }
            let n = room.min(bytes - took);
            self.write_seq += n;
            let tail = self.sendq.tail_mut().expect("there is one");
            tail.end += n;
            // Only a new call takes the mark off; one that has waited fills up what it has marked.
            tail.psh &= waited + took > 0;
            took += n;
            if n == room && took < bytes {
                // forced_push, or tcp_push_one of what is the first to go.
                let forced = self.write_seq > self.pushed_seq + u64::from(self.max_window >> 1);
                if forced {
                    self.mark_tail();
                    self.pushes.push_back(self.write_seq);
                }
                pushed |= forced || self.sendq.len() == 1;
            }
        }
        if took == bytes {
            self.mark_tail();
            let short = self.sendq.tail_len(self.snd_nxt) < goal;
            // Where nothing has been pushed on the way, a call that ends in a short buffer does not push either.
            if !short || pushed || !self.autocorks() {
                self.todo.push = true;
                // Otherwise it has been looked at once, before anything went.
                self.corking = short && pushed;
            }
        } else if waited + took > 0 {
            self.send_waits = waited + took;
            // Full segments that may go have gone one by one (tcp_push_one), and then nothing is left to be marked.
            if !self.all_may_go() {
                self.mark_tail();
            }
            self.todo.push = true;
            self.todo.push_all = true;
        }
        took
    }

    //= linux v6.12 net/ipv4/tcp.c tcp_mark_push
    fn mark_tail(&mut self) {
        if let Some(tail) = self.sendq.tail_mut() {
            tail.psh = true;
            self.pushed_seq = self.write_seq;
        }
    }

    /// Whether both windows let all go that was written.
    pub(crate) fn all_may_go(&self) -> bool {
        let segments = u64::from(self.w.cwnd.saturating_sub(self.q.in_flight()));
        let unsent = self.write_seq.saturating_sub(self.snd_nxt);
        unsent <= segments * u64::from(self.mss) && self.write_seq <= self.wnd_end()
    }

    /// Payload of the first segment that waits, and whether FIN is on it, where segments carry `mss` bytes.
    pub(crate) fn head_segment(&self, mss: u32) -> (u32, bool) {
        let held = self.sendq.head().map_or(0, |b| b.end - self.snd_nxt);
        let len = held.min(u64::from(mss)) as u32;
        (len, self.fin_queued && !self.fin_sent && u64::from(len) == self.unsent())
    }

    /// What a segment carries in the push that is under way: it is reckoned once, when the push begins.
    //= linux v6.12 net/ipv4/tcp_output.c __tcp_push_pending_frames
    pub(crate) fn push_mss(&mut self) -> u32 {
        if self.pushing_mss == 0 {
            self.pushing_mss = self.current_mss();
        }
        self.pushing_mss
    }

    /// The next new segment, if it may go; a `probe` goes whatever the congestion window and Nagle say.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_write_xmit
    pub(crate) fn write_xmit(&mut self, probe: bool) -> Option<Transmit> {
        if !self.has_unsent() || self.q.in_flight() >= self.w.cwnd && !probe || self.pacing_holds() {
            return None;
        }
        let mss = self.push_mss();
        self.sendq.grow(self.snd_nxt, mss);
        let (len, fin) = self.head_segment(mss);
        if self.snd_nxt + u64::from(len) + u64::from(fin) > self.wnd_end()
            || !probe && self.nagle_holds(len, mss, fin)
        {
            return None;
        }
        if self.corking && self.sendq.len() == 1 && self.autocorks() {
            return None;
        }
        self.sendq.cut(self.snd_nxt, mss);
        if self.small_queue_full(len, 0) {
            return None;
        }
        Some(self.send_new(len, fin, if probe { Why::LossProbe } else { Why::Window }))
    }

    /// Whether the last, short buffer of a write waits for what the host still holds of ours; then that lets it go.
    //= linux v6.12 net/ipv4/tcp.c tcp_should_autocork, tcp_push
    pub(crate) fn autocorks(&mut self) -> bool {
        let tail = self.sendq.tail_len(self.snd_nxt) as u32;
        let corks = tail > 0 && self.q.packets_out() > 0 && self.in_device + 1 > self.truesize(tail);
        self.throttled |= corks;
        corks
    }

    /// Memory charged to the send buffer: what was written and not acknowledged, and each buffer's head.
    //= linux v6.12 include/net/sock.h sk_wmem_queued_add
    pub(crate) fn wmem_queued(&self) -> u64 {
        let heads = u64::from(self.q.packets_out() - self.q.joined) + self.sendq.len() as u64;
        self.write_seq.saturating_sub(self.snd_una) + u64::from(self.p.skb_overhead) * heads
    }

    /// Whether the program may write at all.
    pub(crate) fn takes_data(&self) -> bool {
        !self.fin_queued && matches!(self.state, State::Established | State::CloseWait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(ends: &[u64]) -> SendQueue {
        SendQueue { bufs: ends.iter().map(|&end| Unsent { end, psh: false }).collect() }
    }
    fn ends(q: &SendQueue) -> Vec<u64> {
        q.bufs.iter().map(|b| b.end).collect()
    }

    #[test]
    fn a_cut_leaves_the_mark_with_the_rest() {
        let mut q = queue(&[1448, 2896]);
        q.push_head();
        q.cut(0, 1436);
        assert_eq!(ends(&q), [1436, 1448, 2896]);
        assert_eq!((q.bufs[0].psh, q.bufs[1].psh), (false, true));
        q.cut(0, 1448);
        assert_eq!(q.len(), 3, "no longer than that: nothing to cut");
    }

    #[test]
    fn a_buffer_grows_from_the_next_one_only() {
        let mut q = queue(&[12, 1460, 2000]);
        q.bufs[1].psh = true;
        q.grow(0, 1448);
        assert_eq!(ends(&q), [1448, 1460, 2000], "what is left of the next stays");
        assert!(!q.bufs[0].psh);
        q.pop();
        q.grow(1448, 1448);
        assert_eq!(ends(&q), [2000]);
        let mut q = queue(&[12, 24, 1400]);
        q.bufs[1].psh = true;
        q.grow(0, 1448);
        assert_eq!(ends(&q), [24, 1400], "the one behind has all been eaten, those behind it wait");
        assert!(q.bufs[0].psh);
        assert_eq!((q.tail_len(0), queue(&[7]).tail_len(3)), (1376, 4));
    }
}
