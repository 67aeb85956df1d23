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

/// `ipfrag_time`.
const TIMEOUT: Span = Span::from_secs(30);

/// From and to before.
type Ranges = Vec<(u32, u32)>;
type Key = (Ipv4Addr, Ipv4Addr, u8, u16);

struct Queue {
    key: Key,
    /// Whole payload length, once the last fragment is here.
    total: Option<u32>,
    /// Payload ranges that are here, sorted, not touching.
    ranges: Ranges,
    bytes: u32,
    memory: u32,
    /// The longest fragment, as an IP packet (`max_size`).
    longest: u32,
    /// The fragments, as they came.
    pieces: Vec<Packet>,
    expires: Time,
}

/// Datagrams that are not yet whole.
#[derive(Default)]
pub(crate) struct Reassembly {
    queues: BTreeMap<u32, Queue>,
    index: BTreeMap<Key, u32>,
    spare: Vec<(Ranges, Vec<Packet>)>,
    next: u32,
    memory: u32,
}

impl Reassembly {
    fn take(&mut self, id: u32) -> Option<Queue> {
        let queue = self.queues.remove(&id)?;
        self.index.remove(&queue.key);
        self.memory -= queue.memory;
        Some(queue)
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
            next(self, piece, cx);
            at += len;
        }
    }

    /// Takes a fragment for this machine; gives the datagram once it is whole.
    #[cold]
    pub(crate) fn defragment(&mut self, packet: Packet, h: Ipv4, cx: &mut HostCx<'_>) -> Option<Packet> {
        let size = truesize(packet.len);
        let high = match self.kernel {
            Kernel::V2_6_35 => 256 * 1024,
            Kernel::V6_12 | Kernel::V7_2 => 4 * 1024 * 1024,
        };
        let key = (h.src, h.dst, h.protocol, h.id);
        if self.frags.memory + size > high {
            match self.kernel {
                Kernel::V2_6_35 => self.evict_fragments(192 * 1024, cx),
                Kernel::V6_12 | Kernel::V7_2 if !self.frags.index.contains_key(&key) => {
                    self.discard(packet, "ip_defrag", "no-memory", cx);
                    return None;
                }
                Kernel::V6_12 | Kernel::V7_2 => {}
            }
        }
        let id = match self.frags.index.get(&key) {
            Some(&id) => id,
            None => self.new_fragment_queue(key, cx.now),
        };
        match self.add_fragment(id, packet, h, size, cx) {
            Outcome::Whole(packet) => Some(packet),
            Outcome::Waiting => None,
            Outcome::Bad => {
                self.drop_fragments(id, "bad-fragment", cx);
                None
            }
        }
    }

    fn new_fragment_queue(&mut self, key: Key, now: Time) -> u32 {
        let id = self.frags.next;
        self.frags.next = self.frags.next.wrapping_add(1);
        let set = self.sysctl.kept.get("net.ipv4.ipfrag_time").and_then(|s| s.parse::<i64>().ok());
        let expires = now + set.map_or(TIMEOUT, |s| Span::from_secs(s.clamp(0, 1 << 31)));
        let (ranges, pieces) = self.frags.spare.pop().unwrap_or_default();
        let queue = Queue { key, total: None, ranges, bytes: 0, memory: 0, longest: 0, pieces, expires };
        self.frags.queues.insert(id, queue);
        self.frags.index.insert(key, id);
        self.timers.insert(expires, Timer::Fragments(id));
        id
    }

    fn add_fragment(
        &mut self,
        id: u32,
        mut packet: Packet,
        h: Ipv4,
        size: u32,
        cx: &mut HostCx<'_>,
    ) -> Outcome {
        let Some(queue) = self.frags.queues.get_mut(&id) else {
            self.discard(packet, "ip_defrag", "no-memory", cx);
            return Outcome::Waiting;
        };
        let from = u32::from(h.frag_off & IP_OFFSET) * 8;
        let len = packet.network_len() - 20;
        let to = from + len;
        let last = h.frag_off & IP_MF == 0;
        let overlaps = queue.ranges.iter().any(|&(a, b)| from < b && a < to);
        let beyond = queue.total.is_some_and(|t| to > t || last && to != t)
            || last && queue.ranges.last().is_some_and(|&(_, b)| b > to)
            || !last && !len.is_multiple_of(8)
            || to > 65_535 - 20;
        if overlaps || beyond || len == 0 {
            // An exact duplicate is not an offence.
            let duplicate = queue.ranges.iter().any(|&(a, b)| a <= from && to <= b) && !beyond;
            // Where a copy came first, the copy stands for it and it for the copy.
            let stands_in = |piece: &&mut Packet| piece.tc.role.is_copy() && of_one(piece, &packet);
            if duplicate
                && !packet.tc.role.is_copy()
                && let Some(copy) = queue.pieces.iter_mut().find(stands_in)
            {
                copy.tc.role.set_copy(false);
                packet.tc.role.set_copy(true);
            }
            self.discard(packet, "ip_defrag", if duplicate { "duplicate" } else { "overlap" }, cx);
            return if duplicate { Outcome::Waiting } else { Outcome::Bad };
        }
        queue.memory += size;
        self.frags.memory += size;
        queue.bytes += len;
        queue.longest = queue.longest.max(packet.network_len());
        if last {
            queue.total = Some(to);
        }
        let at = queue.ranges.partition_point(|&(a, _)| a < from);
        queue.ranges.insert(at, (from, to));
        if at + 1 < queue.ranges.len() && queue.ranges[at + 1].0 == to {
            queue.ranges[at].1 = queue.ranges.remove(at + 1).1;
        }
        if at > 0 && queue.ranges[at - 1].1 == from {
            queue.ranges[at - 1].1 = queue.ranges.remove(at).1;
        }
        queue.pieces.push(packet);
        match queue.total {
            // All are here, none overlaps another: so is the first.
            Some(total) if total == queue.bytes => {}
            _ => return Outcome::Waiting,
        }
        let Some(mut queue) = self.frags.take(id) else { return Outcome::Waiting };
        self.timers.remove(queue.expires, Timer::Fragments(id));
        let whole = self.merge(&mut queue.pieces, cx);
        queue.ranges.clear();
        self.frags.spare.push((queue.ranges, queue.pieces));
        let Some(mut whole) = whole else { return Outcome::Waiting };
        whole.len = ETH_HLEN + 20 + queue.bytes;
        whole.pkt_len = whole.len;
        whole.l3 = L3::Ipv4(Ipv4 { frag_off: 0, ..ip_of(&whole).unwrap_or(h) });
        whole.rare_mut().frag_max_size = queue.longest;
        Outcome::Whole(whole)
    }

    /// Makes the first fragment the whole datagram. It is the one that was sent where any of its fragments is not a copy. What
    /// another datagram of the same number has contributed is lost.
    fn merge(&mut self, pieces: &mut Vec<Packet>, cx: &mut HostCx<'_>) -> Option<Packet> {
        let is_first = |piece: &Packet| ip_of(piece).is_some_and(|h| h.frag_off & IP_OFFSET == 0);
        let at = pieces.iter().position(is_first)?;
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
        let is_first = |piece: &&Packet| ip_of(piece).is_some_and(|h| h.frag_off & IP_OFFSET == 0);
        if reason == "timeout"
            && let Some(first) = queue.pieces.iter().find(is_first)
        {
            self.icmp_send(first, icmp::TIME_EXCEEDED, 1, 0, cx);
        }
        for piece in queue.pieces.drain(..) {
            self.discard(piece, "ip_defrag", reason, cx);
        }
        queue.ranges.clear();
        self.frags.spare.push((queue.ranges, queue.pieces));
    }

    fn evict_fragments(&mut self, low: u32, cx: &mut HostCx<'_>) {
        while self.frags.memory > low {
            let Some((&id, _)) = self.frags.queues.iter().next() else { break };
            self.drop_fragments(id, "evicted", cx);
        }
    }

    /// The datagram did not become whole in 30 s (`ip_expire`).
    pub(crate) fn fragments_expired(&mut self, id: u32, cx: &mut HostCx<'_>) {
        self.drop_fragments(id, "timeout", cx);
    }
}

fn ip_of(packet: &Packet) -> Option<Ipv4> {
    match packet.l3 {
        L3::Ipv4(h) => Some(h),
        _ => None,
    }
}
