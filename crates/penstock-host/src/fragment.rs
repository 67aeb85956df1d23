//! IP fragmentation on the way out, reassembly on delivery.
//!
//! Follows: linux v6.12 `net/ipv4/ip_output.c` `ip_do_fragment`, `net/ipv4/ip_fragment.c` `ip_defrag`;
//! RFC 791, RFC 815. 2.6.35 makes room by evicting the oldest queues (256 KB), 6.12 refuses new ones (4 MB).
//! Differs: overlapping fragments throw the whole datagram away under both profiles (2.6.35 trims them).

use crate::nud::truesize;
use crate::{Host, HostCx, Timer, icmp};
use penstock_model::{Kernel, Span, Time};
use penstock_packet::headers::ETH_HLEN;
use penstock_packet::{Ipv4, L3, L4, Packet, Skb};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// More fragments follow.
pub const IP_MF: u16 = 0x2000;
/// Do not fragment.
pub const IP_DF: u16 = 0x4000;
/// The offset's bits, in units of 8 bytes.
pub const IP_OFFSET: u16 = 0x1fff;

/// `ipfrag_time` of IPv4.
const TIMEOUT: Span = Span::from_secs(30);

/// From and to before.
type Ranges = Vec<(u32, u32)>;
type Key = (Ipv4Addr, Ipv4Addr, u8, u16);

/// A datagram that is not yet whole (`struct inet_frag_queue`).
pub(crate) struct Queue<K> {
    key: K,
    /// Where the fragments end that have come, and with the last of them the datagram.
    len: u32,
    /// The last one is here.
    last_in: bool,
    /// Runs of payload that are here, sorted, none over another. As in the kernel a fragment joins a run only where it comes behind all others.
    runs: Ranges,
    /// Bytes that are here.
    meat: u32,
    memory: u32,
    /// The longest fragment, as an IP packet (`max_size`).
    longest: u32,
    /// The fragments, as they came.
    pub(crate) pieces: Vec<Packet>,
    expires: Time,
}

/// What came of a fragment that a queue was given (`inet_frag_queue_insert`).
#[derive(PartialEq, Eq)]
pub(crate) enum Inserted {
    Put,
    Duplicate,
    Overlap,
}

impl<K> Queue<K> {
    /// Takes note of where a fragment ends; `false` where that contradicts the others.
    pub(crate) fn note_end(&mut self, to: u32, last: bool) -> bool {
        if last {
            if to < self.len || self.last_in && to != self.len {
                return false;
            }
            (self.last_in, self.len) = (true, to);
        } else if to > self.len {
            if self.last_in {
                return false;
            }
            self.len = to;
        }
        true
    }
    /// Finds a place for a fragment.
    fn insert(&mut self, from: u32, to: u32) -> Inserted {
        match self.runs.last_mut() {
            Some((_, end)) if *end < to => {
                if from < *end {
                    return Inserted::Overlap;
                }
                if from == *end {
                    *end = to;
                } else {
                    self.runs.push((from, to));
                }
            }
            None => self.runs.push((from, to)),
            Some(_) => {
                // The first run that ends behind its beginning.
                let at = self.runs.partition_point(|&(_, end)| end <= from);
                let Some(&(start, end)) = self.runs.get(at) else { return Inserted::Overlap };
                if to > start {
                    return if start <= from && to <= end { Inserted::Duplicate } else { Inserted::Overlap };
                }
                self.runs.insert(at, (from, to));
            }
        }
        Inserted::Put
    }
    /// Whether all of it is here.
    pub(crate) fn is_whole(&self) -> bool {
        self.last_in && self.meat == self.len
    }
    /// The bytes it has, or will have as far as is known.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }
    /// The longest of its fragments, bytes of the IP packet.
    pub(crate) fn longest(&self) -> u32 {
        self.longest
    }
    /// When it is given up.
    pub(crate) fn expires(&self) -> Time {
        self.expires
    }
}

/// Datagrams that are not yet whole (`struct fqdir`), by what their fragments have in common.
pub(crate) struct Reassembly<K = Key> {
    queues: BTreeMap<u32, Queue<K>>,
    index: BTreeMap<K, u32>,
    spare: Vec<(Ranges, Vec<Packet>)>,
    next: u32,
    memory: u32,
}

impl<K> Default for Reassembly<K> {
    fn default() -> Reassembly<K> {
        let (queues, index) = (BTreeMap::new(), BTreeMap::new());
        Reassembly { queues, index, spare: Vec::new(), next: 0, memory: 0 }
    }
}

impl<K: Ord + Copy> Reassembly<K> {
    /// The queue of these fragments.
    pub(crate) fn find(&self, key: &K) -> Option<u32> {
        self.index.get(key).copied()
    }
    /// A new one.
    pub(crate) fn create(&mut self, key: K, expires: Time) -> u32 {
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        let (runs, pieces) = self.spare.pop().unwrap_or_default();
        let (len, meat, memory, longest) = (0, 0, 0, 0);
        let queue = Queue { key, len, last_in: false, runs, meat, memory, longest, pieces, expires };
        self.queues.insert(id, queue);
        self.index.insert(key, id);
        id
    }
    /// One of them.
    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Queue<K>> {
        self.queues.get_mut(&id)
    }
    /// Gives a fragment to a queue: payload from and to before. One that is not put comes back.
    pub(crate) fn insert(
        &mut self,
        id: u32,
        (from, to): (u32, u32),
        packet: Packet,
    ) -> (Inserted, Option<Packet>) {
        let Some(queue) = self.queues.get_mut(&id) else { return (Inserted::Overlap, Some(packet)) };
        match queue.insert(from, to) {
            Inserted::Put => {
                let size = truesize(packet.len);
                queue.memory += size;
                self.memory += size;
                queue.meat += to - from;
                queue.longest = queue.longest.max(packet.network_len());
                queue.pieces.push(packet);
                (Inserted::Put, None)
            }
            other => (other, Some(packet)),
        }
    }
    /// Takes a queue out; its memory comes back by [`Reassembly::give_back`].
    pub(crate) fn take(&mut self, id: u32) -> Option<Queue<K>> {
        let queue = self.queues.remove(&id)?;
        self.index.remove(&queue.key);
        self.memory -= queue.memory;
        Some(queue)
    }
    /// Keeps a queue's memory for another.
    pub(crate) fn give_back(&mut self, mut queue: Queue<K>) {
        queue.runs.clear();
        queue.pieces.clear();
        self.spare.push((queue.runs, queue.pieces));
    }
    /// Bytes its fragments take.
    pub(crate) fn memory(&self) -> u32 {
        self.memory
    }
    /// All fragments.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.queues.values().flat_map(|queue| &queue.pieces)
    }
}

/// Whether two fragments are of one packet that was sent, or copies of such.
fn of_one(a: &Skb, b: &Skb) -> bool {
    (a.flow, a.seq, a.created) == (b.flow, b.seq, b.created)
}

/// What has come twice: where a copy came first, the copy stands for it and it for the copy.
pub(crate) fn stand_in(pieces: &mut [Packet], packet: &mut Packet) {
    let stands_in = |piece: &&mut Packet| piece.tc.role.is_copy() && of_one(piece, packet);
    if !packet.tc.role.is_copy()
        && let Some(copy) = pieces.iter_mut().find(stands_in)
    {
        copy.tc.role.set_copy(false);
        packet.tc.role.set_copy(true);
    }
}

/// What came of one fragment.
enum Outcome {
    Whole(Packet),
    Waiting,
    Bad,
}

impl Host {
    /// Cuts a packet into fragments of at most `mtu` bytes and gives each to `next`.
    pub(crate) fn fragment(
        &mut self,
        mut packet: Packet,
        h: Ipv4,
        mtu: u32,
        cx: &mut HostCx<'_>,
        mut next: impl FnMut(&mut Host, Packet, &mut HostCx<'_>),
    ) {
        let payload = packet.network_len() - 20;
        let step = (mtu.max(28) - 20) & !7;
        let base = u32::from(h.frag_off & IP_OFFSET) * 8;
        let mut at = step;
        // The first fragment is the packet itself, cut short; it must go first, so the others are copies of it.
        let mut template = (*packet).clone();
        if template.is_noted() {
            template.rare_mut().carried = None;
        }
        // The first of a fragment's fragments, or of a copy's, is counted already.
        let counted = packet.tc.role.is_fragment() || packet.tc.role.is_copy();
        packet.tc.role.set_fragment();
        template.tc.role = packet.tc.role;
        if !counted {
            cx.pool.note_extra(&packet);
        }
        if base == 0 && matches!(packet.l4, L4::Udp(_)) && packet.rare().datagram.is_none() {
            packet.rare_mut().datagram = Some(payload as u16);
        }
        packet.len = ETH_HLEN + 20 + step;
        packet.pkt_len = packet.len;
        packet.l3 = L3::Ipv4(Ipv4 { frag_off: h.frag_off | IP_MF, ..h });
        self.snmp.ip.frag_ok += 1;
        self.snmp.ip.frag_creates += 1;
        next(self, packet, cx);
        while at < payload {
            let len = step.min(payload - at);
            let last = at + len == payload;
            let more = if last { h.frag_off & IP_MF } else { IP_MF };
            let offset = (((base + at) / 8) as u16) & IP_OFFSET;
            let mut piece = cx.pool.alloc(template.clone());
            cx.pool.note_extra(&piece);
            piece.len = ETH_HLEN + 20 + len;
            piece.pkt_len = piece.len;
            piece.l3 = L3::Ipv4(Ipv4 { frag_off: offset | more | h.frag_off & IP_DF, ..h });
            piece.l4 = L4::None;
            self.snmp.ip.frag_creates += 1;
            next(self, piece, cx);
            at += len;
        }
    }

    /// Takes a fragment for this machine; gives the datagram once it is whole.
    #[cold]
    pub(crate) fn defragment(&mut self, packet: Packet, h: Ipv4, cx: &mut HostCx<'_>) -> Option<Packet> {
        let high = match self.kernel {
            Kernel::V2_6_35 => 256 * 1024,
            Kernel::V6_12 | Kernel::V7_2 => 4 * 1024 * 1024,
        };
        let key = (h.src, h.dst, h.protocol, h.id);
        self.snmp.ip.reasm_required += 1;
        //= linux v6.12 net/ipv4/inet_fragment.c inet_frag_find; v2.6.35 ip_evictor
        if self.frags.memory() > high {
            match self.kernel {
                Kernel::V2_6_35 => self.evict_fragments(192 * 1024, cx),
                Kernel::V6_12 | Kernel::V7_2 => {
                    self.snmp.ip.reasm_fails += 1;
                    self.discard(packet, "ip_defrag", "no-memory", cx);
                    return None;
                }
            }
        }
        let id = match self.frags.find(&key) {
            Some(id) => id,
            None => {
                let set = self.sysctl.kept.get("net.ipv4.ipfrag_time").and_then(|s| s.parse::<i64>().ok());
                let expires = cx.now + set.map_or(TIMEOUT, |s| Span::from_secs(s.clamp(0, 1 << 31)));
                let id = self.frags.create(key, expires);
                self.timers.insert(expires, Timer::Fragments(id));
                id
            }
        };
        match self.add_fragment(id, packet, h, cx) {
            Outcome::Whole(packet) => {
                self.snmp.ip.reasm_ok += 1;
                Some(packet)
            }
            Outcome::Waiting => None,
            Outcome::Bad => {
                self.snmp.ip.reasm_fails += 1;
                self.drop_fragments(id, "bad-fragment", cx);
                None
            }
        }
    }

    fn add_fragment(&mut self, id: u32, packet: Packet, h: Ipv4, cx: &mut HostCx<'_>) -> Outcome {
        let Some(queue) = self.frags.get_mut(id) else {
            self.discard(packet, "ip_defrag", "no-memory", cx);
            return Outcome::Waiting;
        };
        let from = u32::from(h.frag_off & IP_OFFSET) * 8;
        let len = packet.network_len() - 20;
        let (to, last) = (from + len, h.frag_off & IP_MF == 0);
        let odd = !last && !len.is_multiple_of(8);
        if odd || to > 65_535 - 20 || len == 0 || !queue.note_end(to, last) {
            self.discard(packet, "ip_defrag", "overlap", cx);
            return Outcome::Bad;
        }
        match self.frags.insert(id, (from, to), packet) {
            (Inserted::Put, _) | (_, None) => {}
            (inserted, Some(mut packet)) => {
                let again = inserted == Inserted::Duplicate;
                self.snmp.ip.reasm_overlaps += u64::from(!again);
                if again && let Some(queue) = self.frags.get_mut(id) {
                    stand_in(&mut queue.pieces, &mut packet);
                }
                self.discard(packet, "ip_defrag", if again { "duplicate" } else { "overlap" }, cx);
                return if again { Outcome::Waiting } else { Outcome::Bad };
            }
        }
        // All are here, none overlaps another: so is the first.
        if !self.frags.get_mut(id).is_some_and(|queue| queue.is_whole()) {
            return Outcome::Waiting;
        }
        let Some(mut queue) = self.frags.take(id) else { return Outcome::Waiting };
        self.timers.remove(queue.expires, Timer::Fragments(id));
        let whole = self.merge(&mut queue.pieces, is_first, cx);
        let (bytes, longest) = (queue.len, queue.longest);
        self.frags.give_back(queue);
        let Some(mut whole) = whole else { return Outcome::Waiting };
        whole.len = ETH_HLEN + 20 + bytes;
        whole.pkt_len = whole.len;
        whole.l3 = L3::Ipv4(Ipv4 { frag_off: 0, ..ip_of(&whole).unwrap_or(h) });
        whole.rare_mut().frag_max_size = longest;
        Outcome::Whole(whole)
    }

    /// Makes the first fragment the whole datagram. It is the one that was sent where any of its fragments is not a copy. What
    /// another datagram of the same number has contributed is lost.
    pub(crate) fn merge(
        &mut self,
        pieces: &mut Vec<Packet>,
        is_first: fn(&Skb) -> bool,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        let at = pieces.iter().position(|piece| is_first(piece))?;
        let mut whole = pieces.swap_remove(at);
        let mut own = pieces.iter_mut().filter(|piece| !piece.tc.role.is_copy() && of_one(piece, &whole));
        if whole.tc.role.is_copy()
            && let Some(own) = own.next()
        {
            std::mem::swap(&mut whole.tc.role, &mut own.tc.role);
        }
        for piece in pieces.drain(..) {
            if of_one(&piece, &whole) {
                cx.pool.note_merged(&piece);
                cx.pool.free(piece);
            } else {
                self.discard(piece, "ip_defrag", "other-datagram", cx);
            }
        }
        Some(whole)
    }

    fn drop_fragments(&mut self, id: u32, reason: &'static str, cx: &mut HostCx<'_>) {
        let Some(mut queue) = self.frags.take(id) else { return };
        self.timers.remove(queue.expires, Timer::Fragments(id));
        if reason == "timeout"
            && let Some(first) = queue.pieces.iter().find(|piece| is_first(piece))
        {
            self.icmp_send(first, icmp::TIME_EXCEEDED, 1, 0, cx);
        }
        for piece in queue.pieces.drain(..) {
            self.discard(piece, "ip_defrag", reason, cx);
        }
        self.frags.give_back(queue);
    }

    fn evict_fragments(&mut self, low: u32, cx: &mut HostCx<'_>) {
        while self.frags.memory() > low {
            let Some((&id, _)) = self.frags.queues.iter().next() else { break };
            self.drop_fragments(id, "evicted", cx);
        }
    }

    /// The datagram did not become whole in 30 s (`ip_expire`).
    pub(crate) fn fragments_expired(&mut self, id: u32, cx: &mut HostCx<'_>) {
        self.snmp.ip.reasm_fails += 1;
        self.snmp.ip.reasm_timeout += 1;
        self.drop_fragments(id, "timeout", cx);
    }
}

fn is_first(packet: &Skb) -> bool {
    ip_of(packet).is_some_and(|h| h.frag_off & IP_OFFSET == 0)
}

fn ip_of(packet: &Skb) -> Option<Ipv4> {
    match packet.l3 {
        L3::Ipv4(h) => Some(h),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(all: &mut Reassembly<u8>) -> &mut Queue<u8> {
        let id = all.create(1, Time::ZERO);
        all.get_mut(id).expect("just made")
    }

    /// `inet_frag_queue_insert`: a fragment that lies within one run is a duplicate; one that reaches beyond a run overlaps, even where others have all of it.
    #[test]
    fn runs_are_those_of_the_kernel() {
        let mut all = Reassembly::default();
        let q = queue(&mut all);
        let is = |got: Inserted, want: Inserted| assert!(got == want);
        is(q.insert(0, 8), Inserted::Put);
        is(q.insert(8, 16), Inserted::Put);
        assert_eq!(q.runs, [(0, 16)], "behind all others: one run");
        is(q.insert(24, 32), Inserted::Put);
        is(q.insert(16, 24), Inserted::Put);
        assert_eq!(q.runs, [(0, 16), (16, 24), (24, 32)], "between: a run of its own");
        is(q.insert(4, 12), Inserted::Duplicate);
        is(q.insert(8, 24), Inserted::Overlap);
        is(q.insert(28, 40), Inserted::Overlap);
        is(q.insert(0, 32), Inserted::Overlap);
    }

    #[test]
    fn an_end_contradicts_what_is_beyond_it() {
        let mut all = Reassembly::default();
        let q = queue(&mut all);
        assert!(q.note_end(16, false) && q.note_end(24, true) && q.note_end(8, false));
        assert!(!q.note_end(32, false) && !q.note_end(16, true) && !q.note_end(32, true));
        let q = queue(&mut all);
        assert!(q.note_end(16, false) && !q.note_end(8, true));
    }
}
