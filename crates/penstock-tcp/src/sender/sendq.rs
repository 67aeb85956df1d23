//! What the program has written and the connection has not sent: the write queue of Linux 6.12, buffer by buffer, and the size of the
//! send buffer.
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c `tcp_write_xmit`, `tcp_grow_skb`, `tso_fragment`, net/ipv4/tcp_input.c `tcp_sndbuf_expand`;
//! v2.6.35 `tcp_fixup_sndbuf`.
//! Differs: none known.

use crate::config::Buffer;
use std::collections::VecDeque;

/// A buffer of unsent data (`sk_buff`); it begins where the one before it ends, the first at `snd_nxt`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Unsent {
    /// The byte after its last.
    pub end: u64,
    /// It carries PSH.
    pub psh: bool,
    /// A record ends with it: nothing is put behind (`MSG_EOR`).
    pub eor: bool,
}

/// The queue, and the send buffer that it is a part of.
#[derive(Debug)]
pub(crate) struct SendQueue {
    bufs: VecDeque<Unsent>,
    /// `sk_sndbuf`, bytes.
    size: u32,
    /// A writer waits for room.
    nospace: bool,
    /// As configured.
    buffer: Buffer,
    /// Bytes left in the buffer written last (2.6.35).
    skb_room: u64,
    /// Bytes that a call to write had taken when it began to wait for room; 0: none waits.
    waits: u64,
}

impl SendQueue {
    pub fn new(buffer: Buffer) -> SendQueue {
        let size = buffer.initial().min(1 << 30);
        SendQueue { bufs: VecDeque::new(), size, nospace: false, buffer, skb_room: 0, waits: 0 }
    }

    // ---- The send buffer ----

    /// Its size, bytes.
    #[inline]
    pub fn size(&self) -> u32 {
        self.size
    }
    /// Whether it grows by itself.
    #[inline]
    pub fn grows(&self) -> bool {
        matches!(self.buffer, Buffer::Auto(..))
    }
    /// It grows to `wanted`, as far as it may.
    pub fn expand(&mut self, wanted: u64) {
        if self.grows() && u64::from(self.size) < wanted {
            self.size = wanted.min(u64::from(self.buffer.max())) as u32;
        }
    }
    /// Its size is set, bytes; it does not grow any more.
    pub fn fix(&mut self, size: u32) {
        (self.buffer, self.size) = (Buffer::Fixed(size), size.min(1 << 30));
    }
    /// It begins anew with room for `least` bytes, where it grows by itself (2.6.35).
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_fixup_sndbuf
    pub fn begin(&mut self, least: u32) {
        if self.grows() {
            self.size = self.buffer.initial().max(least.min(self.buffer.max()));
        }
    }
    /// Whether a writer waits for room.
    #[inline]
    pub fn is_waited_for(&self) -> bool {
        self.nospace
    }
    /// One does, or no more.
    #[inline]
    pub fn waited(&mut self, waits: bool) {
        self.nospace = waits;
    }
    /// Bytes that the call which waited for room had taken; 0: this one is new.
    pub fn resume(&mut self) -> u64 {
        std::mem::take(&mut self.waits)
    }
    /// A call waits that has taken so many bytes.
    pub fn suspend(&mut self, taken: u64) {
        self.waits = taken;
    }
    /// Bytes left in the buffer written last (2.6.35).
    pub fn skb_room(&self) -> u64 {
        self.skb_room
    }
    /// Sets that.
    pub fn set_skb_room(&mut self, bytes: u64) {
        self.skb_room = bytes;
    }

    // ---- The buffers ----

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bufs.is_empty()
    }
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
        self.bufs.push_back(Unsent { end: at, psh: false, eor: false });
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
        if head.eor {
            return;
        }
        let missing = u64::from(mss).saturating_sub(head.end - start);
        let taken = missing.min(next.end - head.end);
        self.bufs[0].end += taken;
        if taken > 0 && self.bufs[0].end == next.end {
            self.bufs[0].psh |= next.psh;
            self.bufs[0].eor = next.eor;
            self.bufs.remove(1);
        }
    }

    /// Cuts the first buffer, which begins at `start`, to `len` bytes where it is longer; PSH stays with the rest.
    //= linux v6.12 net/ipv4/tcp_output.c tso_fragment
    pub fn cut(&mut self, start: u64, len: u32) {
        let Some(head) = self.head() else { return };
        let end = start + u64::from(len);
        if head.end > end {
            self.bufs[0] = Unsent { end, psh: false, eor: false };
            self.bufs.insert(1, head);
        }
    }

    /// Makes the first buffer, which begins at `start`, `len` bytes long, out of those behind it; `false`: a record ends before.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_can_coalesce_send_queue_head, tcp_clone_payload
    pub fn gather(&mut self, start: u64, len: u32) -> bool {
        let end = start + u64::from(len);
        let within = self.bufs.iter().take_while(|b| b.end < end).any(|b| b.eor);
        if within || self.bufs.back().is_none_or(|b| b.end < end) {
            return false;
        }
        while self.bufs.front().is_some_and(|b| b.end < end) {
            self.bufs.pop_front();
        }
        let rest = self.bufs[0];
        if rest.end > end {
            self.bufs.push_front(Unsent { end, psh: false, eor: false });
        }
        self.bufs[0].psh = false;
        true
    }

    /// Sets PSH on the first buffer.
    pub fn push_head(&mut self) {
        if let Some(head) = self.bufs.front_mut() {
            head.psh = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(ends: &[u64]) -> SendQueue {
        let mut q = SendQueue::new(Buffer::Fixed(0));
        q.bufs.extend(ends.iter().map(|&end| Unsent { end, psh: false, eor: false }));
        q
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
    fn a_probe_is_gathered_from_several() {
        let mut q = queue(&[10, 20, 30]);
        assert!(q.gather(0, 25));
        assert_eq!(ends(&q), [25, 30]);
        let mut q = queue(&[10, 20]);
        q.bufs[0].eor = true;
        assert!(!q.gather(0, 15) && !q.gather(0, 30));
        assert!(q.gather(0, 10));
        assert_eq!(ends(&q), [10, 20]);
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
