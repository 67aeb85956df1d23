//! Which ACK may go for a later one: it tells nothing that the later one does not.
//!
//! Follows: linux v6.12 `net/sched/sch_cake.c` `cake_ack_filter`, `cake_tcph_may_drop`, `cake_tcph_sack_compare`.
//! Differs: of TCP's options there are those that [`Tcp`] has; IPv6 within IPv4 (6in4) is not looked into.

use super::store::{Chain, NIL, Store};
use penstock_packet::{L3, L4, Skb, headers::Tcp, headers::TcpFlags};

/// Flags that must be as in a bare ACK: all but ECE and CWR.
const PLAIN: u16 = !(TcpFlags::ECE.0 | TcpFlags::CWR.0);

/// Whether `a` is later than `b` in numbers that wrap: `after`.
fn after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

fn tcp_of(skb: &Skb) -> Option<(&L3, &Tcp)> {
    match skb.innermost() {
        (l3 @ (L3::Ipv4(_) | L3::Ipv6(_)), L4::Tcp(tcp)) => Some((l3, tcp)),
        _ => None,
    }
}

/// ECE and CWR.
fn ecn(tcp: &Tcp) -> u16 {
    tcp.flags.0 & !PLAIN
}

/// Addresses and ports.
fn same_flow((a3, a4): (&L3, &Tcp), (b3, b4): (&L3, &Tcp)) -> bool {
    let ends = match (a3, b3) {
        (L3::Ipv4(a), L3::Ipv4(b)) => (a.src, a.dst) == (b.src, b.dst),
        (L3::Ipv6(a), L3::Ipv6(b)) => (a.src, a.dst) == (b.src, b.dst),
        _ => false,
    };
    ends && (a4.sport, a4.dport) == (b4.sport, b4.dport)
}

/// Bytes of data behind the TCP header.
fn payload(skb: &Skb, l3: &L3, tcp: &Tcp) -> i64 {
    let ip = if matches!(l3, L3::Ipv4(_)) { 20 } else { 40 };
    let tags = 4 * skb.tags_in_frame() as i64;
    i64::from(skb.network_len()) - tags - ip - i64::from(tcp.header_len())
}

/// `cake_tcph_may_drop`: nothing but an acknowledgement, and no time stamp later than these.
fn may_drop(tcp: &Tcp, (val, ecr): (u32, u32)) -> bool {
    tcp.flags.0 & PLAIN == TcpFlags::ACK.0
        && tcp.mss.is_none()
        && tcp.wscale.is_none()
        && !tcp.sack_permitted
        && tcp.accecn.is_none()
        && tcp.timestamps.is_none_or(|(v, e)| !after(v, val) && !after(e, ecr))
}

/// How two ACKs' SACK blocks compare: `a` has something that `b` has not, or they say the same, or `b` says more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sacks {
    More,
    Same,
    Less,
}

/// `cake_tcph_sack_compare`. A block below the acknowledgement (a D-SACK) is always more.
fn compare(a: &Tcp, b: &Tcp) -> Sacks {
    let (ours, theirs) = (a.sack_blocks(), b.sack_blocks());
    match (ours.is_empty(), theirs.is_empty()) {
        (true, true) => return Sacks::Same,
        (false, true) => return Sacks::More,
        (true, false) => return Sacks::Less,
        (false, false) => {}
    }
    for &(start, end) in ours {
        let within = |&(s, e): &(u32, u32)| !after(s, start) && !after(end, e);
        if after(a.ack, start) || !theirs.iter().any(within) {
            return Sacks::More;
        }
    }
    let bytes =
        |blocks: &[(u32, u32)]| blocks.iter().map(|(s, e)| e.wrapping_sub(*s)).fold(0, u32::wrapping_add);
    if bytes(theirs) > bytes(ours) { Sacks::Less } else { Sacks::Same }
}

/// Looks for the ACK that the last packet of a chain makes needless: the first of two that are, or (`aggressive`) the one
/// right before it. Answers the place before it, [`NIL`] where it is the first.
pub(super) fn needless(store: &Store, chain: Chain, aggressive: bool) -> Option<u32> {
    if chain.head() == chain.tail() {
        return None;
    }
    let (last, _) = store.at(chain.tail())?;
    let (l3, tcp) = tcp_of(last)?;
    if !tcp.flags.has(TcpFlags::ACK) || tcp.flags.has(TcpFlags::SYN) {
        return None;
    }
    let stamps = tcp.timestamps.unwrap_or((0, 0));
    let (mut at, mut before) = (chain.head(), NIL);
    // The first that may go: the place before it, the place behind, its flags.
    let mut found: Option<(u32, u32, u16)> = None;
    let mut seen = 0;
    while at != chain.tail() {
        let (skb, next) = store.at(at)?;
        let here = std::mem::replace(&mut at, next);
        let before = std::mem::replace(&mut before, here);
        let Some((l3_here, ack)) = tcp_of(skb).filter(|&this| same_flow(this, (l3, tcp))) else { continue };
        if found.is_some_and(|(.., flags)| flags != ecn(ack)) {
            found = None;
            seen -= 1;
        }
        if !may_drop(ack, stamps) || payload(skb, l3_here, ack) != 0 || after(ack.ack, tcp.ack) {
            continue;
        }
        match compare(ack, tcp) {
            Sacks::More => continue,
            Sacks::Same if ack.ack == tcp.ack => continue,
            _ => {}
        }
        found = found.or(Some((before, next, ecn(ack))));
        seen += 1;
        if seen > 1 {
            break;
        }
    }
    let (before, next, flags) = found?;
    let right_before = next == chain.tail() && flags == ecn(tcp);
    (seen > 1 || aggressive && right_before).then_some(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;
    use penstock_packet::Packet;

    fn ack(number: u32, sack: &[(u32, u32)], flags: u8) -> Packet {
        let mut tcp =
            Tcp { sport: 80, dport: 9, ack: number, flags: TcpFlags(flags.into()), ..Tcp::default() };
        tcp.timestamps = Some((7, 7));
        tcp.sack[..sack.len()].copy_from_slice(sack);
        tcp.sack_count = sack.len() as u8;
        let mut p = packet(number.into(), 34 + tcp.header_len());
        if let L3::Ipv4(h) = &mut p.l3 {
            h.protocol = 6;
        }
        p.l4 = L4::Tcp(tcp);
        p
    }

    /// The acknowledgement that goes when these lie in a queue.
    fn gone(packets: Vec<Packet>, aggressive: bool) -> Option<u64> {
        let (mut store, mut chain) = (Store::default(), Chain::EMPTY);
        packets.into_iter().for_each(|p| store.push(&mut chain, p, 0));
        let before = needless(&store, chain, aggressive)?;
        store.unlink(&mut chain, before).map(|(p, _)| p.seq)
    }

    #[test]
    fn the_first_of_two_goes_and_of_one_only_to_the_aggressive() {
        let plain = |n| ack(n, &[], 0x10);
        assert_eq!(gone(vec![plain(1), plain(2), plain(3)], false), Some(1));
        assert_eq!(gone(vec![plain(1), plain(2)], false), None);
        assert_eq!(gone(vec![plain(1), plain(2)], true), Some(1));
        // The same acknowledgement twice is a duplicate, which counts.
        assert_eq!(gone(vec![plain(2), plain(2)], true), None);
        // Data, another flow and a FIN stay.
        let mut data = plain(1);
        data.len += 1;
        assert_eq!(gone(vec![data, plain(2)], true), None);
        assert_eq!(gone(vec![ack(1, &[], 0x11), plain(2)], true), None);
        assert_eq!(gone(vec![packet(1, 100), plain(2)], true), None);
    }

    #[test]
    fn marks_and_blocks_are_not_lost() {
        // ECE has changed: the ACK before it stays.
        assert_eq!(gone(vec![ack(1, &[], 0x10), ack(2, &[], 0x50), ack(3, &[], 0x50)], false), None);
        assert_eq!(gone(vec![ack(1, &[], 0x10), ack(2, &[], 0x50), ack(3, &[], 0x50)], true), Some(2));
        assert_eq!(gone(vec![ack(1, &[], 0x10), ack(2, &[], 0x50)], true), None);
        // What is in no later block stays; what is, goes.
        assert_eq!(gone(vec![ack(1, &[(5, 6)], 0x10), ack(1, &[(5, 7)], 0x10)], true), Some(1));
        assert_eq!(gone(vec![ack(1, &[(5, 7)], 0x10), ack(1, &[(5, 6)], 0x10)], true), None);
        assert_eq!(gone(vec![ack(4, &[(2, 3)], 0x10), ack(5, &[(2, 3)], 0x10)], true), None);
        // A later time stamp stays.
        let mut late = ack(1, &[], 0x10);
        if let L4::Tcp(t) = &mut late.l4 {
            t.timestamps = Some((8, 7));
        }
        assert_eq!(gone(vec![late, ack(2, &[], 0x10)], true), None);
    }
}
