//! Fragments of IPv6 that become whole packets: those for this machine, and, where connections are tracked, all that come in.
//!
//! Follows: linux v6.12 `net/ipv6/reassembly.c` `ipv6_frag_rcv`, `ip6_frag_queue`, `ip6_frag_reasm`; `include/net/ipv6_frag.h`
//! `ip6frag_expire_frag_queue`, `ipv6frag_thdr_truncated`; `netfilter/nf_conntrack_reasm.c` `nf_ct_frag6_gather`, `nf_ct_frag6_queue`; RFC 5722, RFC 6946.
//! Differs: none known.

use super::{HEADER, icmp, needs_link};
use crate::fragment::{Inserted, Reassembly, stand_in};
use crate::{Host, HostCx, Timer, timer};
use penstock_model::Time;
use penstock_packet::headers::{ETH_HLEN, ipproto};
use penstock_packet::{Fragment, Ipv6, L3, Packet, Skb};
use std::net::Ipv6Addr;

/// `IPV6_FRAG_HIGH_THRESH`, bytes.
const HIGH_THRESH: u32 = 4 * 1024 * 1024;
/// `IPV6_FRAG_TIMEOUT`, seconds.
const TIMEOUT: u32 = 60;
/// `IPV6_MAXPLEN`: the longest payload of a packet, bytes.
const MAXPLEN: u32 = 65_535;

/// Who puts fragments together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum By {
    /// Whom they are for.
    Receiver,
    /// The tracking of connections, at PREROUTING.
    Conntrack,
}

/// What the fragments of a packet have in common: identification, addresses, and the device where the destination means something on one link only.
pub(crate) type Key = (u32, Ipv6Addr, Ipv6Addr, u32);

/// What is noted of a queue besides.
#[derive(Clone, Copy, Default)]
struct Noted {
    /// The device that the last fragment came by.
    iif: u32,
    /// `fq->ecn`: which ECN fields were seen, a bit each.
    ecn: u8,
    /// A fragment was damaged on its way.
    damaged: bool,
}

/// Fragments of IPv6 in one place.
#[derive(Default)]
pub(crate) struct Fragments6 {
    all: Reassembly<Key>,
    noted: std::collections::BTreeMap<u32, Noted>,
}

impl Fragments6 {
    /// All fragments.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.all.packets()
    }
}

/// The ECN field of what has come in fragments with these; `None`: some could be marked and others not (`ip_frag_ecn_table`).
fn ecn_of(seen: u8) -> Option<u8> {
    const NOT_ECT: u8 = 1;
    const CE: u8 = 8;
    match seen {
        NOT_ECT => Some(0),
        _ if seen & NOT_ECT != 0 => None,
        _ if seen & CE != 0 && seen != CE => Some(3),
        _ => Some(0),
    }
}

/// `ipv6frag_thdr_truncated`: a first fragment does not hold the header of what it carries.
fn is_truncated(h: &Ipv6, len: u32) -> bool {
    let least = match h.protocol() {
        ipproto::TCP => 20,
        ipproto::UDP | ipproto::ICMPV6 => 8,
        _ => 1,
    };
    !h.is_later_fragment() && len < least
}

/// Whether what was put together is not as long as its first fragment said that it is (RFC 768's length, the sum in RFC 4443's checksum).
fn is_cut_short(packet: &Skb, len: u32) -> bool {
    packet.rare().datagram.is_some_and(|whole| u32::from(whole) != len)
}

fn is_first(packet: &Skb) -> bool {
    matches!(packet.l3, L3::Ipv6(h) if !h.is_later_fragment())
}

/// What a queue has made of a fragment.
enum Outcome {
    Whole,
    Waiting,
    /// It was refused, and with it the queue.
    Bad(Packet, &'static str),
    /// It was refused; the queue waits on.
    Lost(Packet, &'static str),
    /// Something in its header is wrong, at this place.
    Problem(Packet, u32),
}

impl Host {
    fn fragments6(&mut self, by: By) -> &mut Fragments6 {
        match by {
            By::Receiver => &mut self.six.frags,
            By::Conntrack => &mut self.six.tracked_frags,
        }
    }
    /// A setting in bytes or seconds that is kept as text.
    fn frag6_setting(&self, by: By, receiver: &str, conntrack: &str) -> Option<u32> {
        let key = match by {
            By::Receiver => receiver,
            By::Conntrack => conntrack,
        };
        self.sysctl
            .kept
            .get(key)
            .and_then(|s| s.parse::<i64>().ok())
            .map(|n| n.clamp(0, i64::from(u32::MAX)) as u32)
    }

    /// A fragment for this machine (`ipv6_frag_rcv`); gives the packet once it is whole.
    #[cold]
    pub(crate) fn defragment6(&mut self, mut packet: Packet, h: Ipv6, cx: &mut HostCx<'_>) -> Option<Packet> {
        self.snmp.ip6.reasm_required += 1;
        if h.fragment.frag_off & !6 == 0 {
            self.snmp.ip6.reasm_ok += 1;
            // Nothing is missing: it is whole as it is.
            let len = packet.network_len();
            packet.tc.damaged |= is_cut_short(&packet, len - h.header_len());
            packet.rare_mut().frag_max_size = len;
            return Some(packet);
        }
        if is_truncated(&h, packet.network_len().saturating_sub(h.header_len())) {
            self.snmp.ip6.header_errors += 1;
            self.icmp6_send(&packet, icmp::PARAMPROB, icmp::HDR_INCOMP, 0, cx);
            self.discard(packet, "ip6_defrag", "truncated", cx);
            return None;
        }
        match self.gather6(By::Receiver, packet, h, cx) {
            Ok(whole) => {
                self.snmp.ip6.reasm_ok += u64::from(whole.is_some());
                whole
            }
            Err((packet, place)) => {
                self.snmp.ip6.header_errors += 1;
                self.icmp6_send(&packet, icmp::PARAMPROB, icmp::HDR_FIELD, place, cx);
                self.discard(packet, "ip6_defrag", "bad-fragment", cx);
                None
            }
        }
    }
    /// A fragment where connections are tracked (`ipv6_defrag`); gives the packet once it is whole, and a fragment that cannot be part of one as it is.
    #[cold]
    pub(crate) fn track_fragment6(&mut self, packet: Packet, h: Ipv6, cx: &mut HostCx<'_>) -> Option<Packet> {
        if is_truncated(&h, packet.network_len().saturating_sub(h.header_len())) {
            return Some(packet);
        }
        self.gather6(By::Conntrack, packet, h, cx).unwrap_or_else(|(packet, _)| Some(packet))
    }

    /// Gives a fragment to its queue. An error: the fragment, and the place in it that is wrong.
    fn gather6(
        &mut self,
        by: By,
        packet: Packet,
        h: Ipv6,
        cx: &mut HostCx<'_>,
    ) -> Result<Option<Packet>, (Packet, u32)> {
        let high = self.frag6_setting(
            by,
            "net.ipv6.ip6frag_high_thresh",
            "net.netfilter.nf_conntrack_frag6_high_thresh",
        );
        let high = high.unwrap_or(HIGH_THRESH);
        //= linux v6.12 net/ipv4/inet_fragment.c inet_frag_find
        if high == 0 || self.fragments6(by).all.memory() > high {
            self.snmp.ip6.reasm_fails += u64::from(by == By::Receiver);
            self.discard(packet, "ip6_defrag", "no-memory", cx);
            return Ok(None);
        }
        let device = if needs_link(h.dst) && !h.dst.is_loopback() { packet.iif } else { 0 };
        let key = (h.fragment.id, h.src, h.dst, device);
        let id = match self.fragments6(by).all.find(&key) {
            Some(id) => id,
            None => self.new_queue6(by, key, cx.now),
        };
        match self.fragments6(by).add(by, id, packet, h) {
            Outcome::Whole => Ok(self.reassemble6(by, id, cx)),
            Outcome::Waiting => Ok(None),
            Outcome::Bad(packet, reason) => {
                self.snmp.ip6.reasm_fails += u64::from(by == By::Receiver);
                self.discard(packet, "ip6_defrag", reason, cx);
                self.drop_queue6(by, id, "bad-fragment", cx);
                Ok(None)
            }
            Outcome::Lost(packet, reason) => {
                self.discard(packet, "ip6_defrag", reason, cx);
                Ok(None)
            }
            Outcome::Problem(packet, place) => {
                //= linux v6.12 net/ipv6/netfilter/nf_conntrack_reasm.c nf_ct_frag6_queue: an odd length ends the queue there
                if by == By::Conntrack && place == 4 {
                    self.drop_queue6(by, id, "bad-fragment", cx);
                }
                Err((packet, place))
            }
        }
    }
    fn new_queue6(&mut self, by: By, key: Key, now: Time) -> u32 {
        let set = self.frag6_setting(by, "net.ipv6.ip6frag_time", "net.netfilter.nf_conntrack_frag6_timeout");
        let ticks = i64::from(set.unwrap_or(TIMEOUT)) * i64::from(self.kernel.hz());
        let expires = timer::fires(self.kernel, now, timer::jiffies(self.kernel, now) + ticks);
        let fragments = self.fragments6(by);
        let id = fragments.all.create(key, expires);
        fragments.noted.insert(id, Noted::default());
        self.timers.insert(expires, Timer::Fragments6(by, id));
        id
    }
    /// `ip6_frag_reasm`, `nf_ct_frag6_reasm`.
    fn reassemble6(&mut self, by: By, id: u32, cx: &mut HostCx<'_>) -> Option<Packet> {
        let fragments = self.fragments6(by);
        let noted = fragments.noted.remove(&id).unwrap_or_default();
        let mut queue = fragments.all.take(id)?;
        self.timers.remove(queue.expires(), Timer::Fragments6(by, id));
        let (len, longest) = (queue.len(), queue.longest());
        let Some(ecn) = ecn_of(noted.ecn).filter(|_| len <= MAXPLEN) else {
            for piece in queue.pieces.drain(..) {
                self.discard(piece, "ip6_defrag", "bad-ecn", cx);
            }
            self.fragments6(by).all.give_back(queue);
            return None;
        };
        let mut came_in = Vec::new();
        if by == By::Conntrack {
            came_in = self.six.spare_lens.pop().unwrap_or_default();
            let place = |piece: &Packet| match piece.l3 {
                L3::Ipv6(h) => h.fragment.offset(),
                _ => 0,
            };
            queue.pieces.sort_unstable_by_key(place);
            let len = |piece: &Packet| (piece.network_len() - HEADER - Fragment::LEN) as u16;
            came_in.extend(queue.pieces.iter().map(len));
        }
        let whole = self.merge(&mut queue.pieces, is_first, cx);
        self.fragments6(by).all.give_back(queue);
        let mut whole = whole?;
        if let L3::Ipv6(h) = &mut whole.l3 {
            h.next_header = h.fragment.next_header;
            h.fragment = Fragment::NONE;
            h.traffic_class |= ecn;
        }
        whole.len = ETH_HLEN + HEADER + len;
        whole.pkt_len = whole.len;
        whole.iif = noted.iif;
        whole.tc.damaged = noted.damaged || is_cut_short(&whole, len);
        let rare = whole.rare_mut();
        (rare.frag_max_size, rare.came_in, rare.datagram) = (longest, came_in, None);
        Some(whole)
    }
    fn drop_queue6(&mut self, by: By, id: u32, reason: &'static str, cx: &mut HostCx<'_>) {
        let fragments = self.fragments6(by);
        let noted = fragments.noted.remove(&id).unwrap_or_default();
        let Some(mut queue) = fragments.all.take(id) else { return };
        self.timers.remove(queue.expires(), Timer::Fragments6(by, id));
        if reason == "timeout"
            && let Some(first) = queue.pieces.iter_mut().find(|piece| is_first(piece))
        {
            first.iif = noted.iif;
            self.icmp6_send(first, icmp::TIME_EXCEED, icmp::EXC_FRAGTIME, 0, cx);
        }
        for piece in queue.pieces.drain(..) {
            self.discard(piece, "ip6_defrag", reason, cx);
        }
        self.fragments6(by).all.give_back(queue);
    }
    /// The packet did not become whole in time (`ip6frag_expire_frag_queue`).
    pub(crate) fn fragments6_expired(&mut self, by: By, id: u32, cx: &mut HostCx<'_>) {
        self.snmp.ip6.reasm_fails += 1;
        self.snmp.ip6.reasm_timeout += 1;
        self.drop_queue6(by, id, "timeout", cx);
    }
}

impl Fragments6 {
    /// `ip6_frag_queue`, `nf_ct_frag6_queue`.
    fn add(&mut self, by: By, id: u32, packet: Packet, h: Ipv6) -> Outcome {
        let Some(queue) = self.all.get_mut(id) else { return Outcome::Lost(packet, "no-memory") };
        if by == By::Receiver {
            self.noted.entry(id).or_default().iif = packet.iif;
        }
        let from = h.fragment.offset();
        let to = from + packet.network_len().saturating_sub(h.header_len());
        let last = !h.fragment.more();
        // Where the field with the offset stands, and where that with the length.
        if to > MAXPLEN {
            return Outcome::Problem(packet, HEADER + 2);
        }
        if !last && !to.is_multiple_of(8) {
            return Outcome::Problem(packet, 4);
        }
        if !queue.note_end(to, last) || to == from {
            return match by {
                By::Receiver => Outcome::Bad(packet, "beyond-end"),
                By::Conntrack => Outcome::Lost(packet, "beyond-end"),
            };
        }
        let (iif, ecn, damaged) = (packet.iif, 1 << (h.traffic_class & 3), packet.tc.damaged);
        match self.all.insert(id, (from, to), packet) {
            (Inserted::Put, _) | (_, None) => {}
            (Inserted::Duplicate, Some(mut packet)) => {
                if let Some(queue) = self.all.get_mut(id) {
                    stand_in(&mut queue.pieces, &mut packet);
                }
                return Outcome::Lost(packet, "duplicate");
            }
            (_, Some(packet)) => return Outcome::Bad(packet, "overlap"),
        }
        let noted = self.noted.entry(id).or_default();
        noted.iif = iif;
        noted.ecn |= ecn;
        noted.damaged |= damaged;
        match self.all.get_mut(id) {
            Some(queue) if queue.is_whole() => Outcome::Whole,
            _ => Outcome::Waiting,
        }
    }
}
