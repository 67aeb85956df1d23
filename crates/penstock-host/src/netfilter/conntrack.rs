//! Connections: which a packet belongs to, whether it was answered, its mark and what it has carried.
//!
//! Follows: linux v6.12 `net/netfilter/nf_conntrack_core.c` `nf_conntrack_in`, `resolve_normal_ct`;
//! `nf_conntrack_proto_tcp.c`, `_udp.c`, `_icmp.c` for how long each is kept.
//! Differs: a connection is known from its first packet on, even where a rule drops that packet later; sequence numbers
//! are not looked at; no helpers, so that RELATED is for ICMP errors alone.

use super::tuples::Tuples;
use penstock_lang::iptables::extension::state;
use penstock_model::{Span, Time};
use penstock_packet::{L3, L4, Skb, TcpFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// What tells a connection's packets of one direction: addresses, protocol, ports. An echo's identifier stands for both
/// ports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tuple {
    /// Source address, an IPv4 one in the low 32 bits.
    pub src: u128,
    /// Destination address.
    pub dst: u128,
    /// Protocol number.
    pub protocol: u8,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
}

impl Tuple {
    fn reversed(self) -> Tuple {
        Tuple { src: self.dst, dst: self.src, sport: self.dport, dport: self.sport, ..self }
    }
}

/// A connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connection {
    /// As its first packet went.
    pub original: Tuple,
    /// Its mark.
    pub mark: u32,
    /// Whether it was ever answered.
    pub seen_reply: bool,
    /// Whether it is kept when there are too many.
    pub assured: bool,
    /// Packets of the original direction and of the reply.
    pub packets: [u64; 2],
    /// Their bytes, from the IP header on.
    pub bytes: [u64; 2],
    /// When it is forgotten.
    pub expires: Time,
    /// A FIN or a reset went by.
    closing: bool,
    /// Its moment in [`Tracking`]'s `ends`.
    end: Time,
}

/// What is known of a packet's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Known {
    /// A bit of [`state`].
    pub state: u8,
    pub id: Option<u32>,
    pub reply: bool,
}

/// All connections.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tracking {
    pub(super) on: bool,
    /// Both directions of each.
    tuples: Tuples,
    connections: BTreeMap<u32, Connection>,
    /// When each is looked at next to see whether it has run out: not later than it does.
    ends: BTreeSet<(Time, u32)>,
    next: u32,
}

/// More than these, and the expired are thrown out (`nf_conntrack_max`).
const MAX_CONNECTIONS: usize = 65_536;

const fn seconds(n: i64) -> Span {
    Span::from_secs(n)
}

impl Tracking {
    /// Whether connections are tracked.
    pub fn on(&self) -> bool {
        self.on
    }
    /// Those that are known, the oldest first.
    pub fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.connections.values()
    }
    pub(super) fn get(&self, id: Option<u32>) -> Option<&Connection> {
        self.connections.get(&id?)
    }
    pub(super) fn get_mut(&mut self, id: Option<u32>) -> Option<&mut Connection> {
        self.connections.get_mut(&id?)
    }

    /// What is known of a packet's connection, which the packet itself does not change (`nf_ct_get`).
    pub(super) fn look(&self, skb: &Skb, now: Time) -> Known {
        let none = Known { state: state::UNTRACKED, id: None, reply: false };
        if !self.on {
            return none;
        }
        if let Some(about) = quoted(skb) {
            return match self.find(about, now) {
                Some((id, reply)) => Known { state: state::RELATED, id: Some(id), reply: !reply },
                None => Known { state: state::INVALID, ..none },
            };
        }
        let Some((tuple, _)) = tuple(skb) else { return none };
        match self.find(tuple, now) {
            None => none,
            Some((id, reply)) => {
                let answered = reply || self.get(Some(id)).is_some_and(|c| c.seen_reply);
                let state = if answered { state::ESTABLISHED } else { state::NEW };
                Known { state, id: Some(id), reply }
            }
        }
    }

    /// A packet comes to the station where connections are tracked (`nf_conntrack_in`).
    pub(super) fn track(&mut self, skb: &Skb, now: Time) -> Known {
        if quoted(skb).is_some() {
            return self.look(skb, now);
        }
        let Some((tuple, begins)) = tuple(skb) else {
            return Known { state: state::UNTRACKED, id: None, reply: false };
        };
        let (id, reply) = match self.find(tuple, now) {
            Some(found) => found,
            None if !begins => return Known { state: state::INVALID, id: None, reply: false },
            None => (self.begin(tuple, now), false),
        };
        let Some(c) = self.connections.get_mut(&id) else {
            return Known { state: state::INVALID, id: None, reply };
        };
        let answered = reply || c.seen_reply;
        c.seen_reply = answered;
        c.packets[usize::from(reply)] += 1;
        c.bytes[usize::from(reply)] += u64::from(skb.network_len());
        if let L4::Tcp(t) = skb.l4 {
            let opens = t.flags.has(TcpFlags::SYN) && !t.flags.has(TcpFlags::ACK);
            c.closing = !opens && (c.closing || t.flags.has(TcpFlags::FIN) || t.flags.has(TcpFlags::RST));
            c.assured |= answered && t.flags.has(TcpFlags::ACK) && !reply;
        } else {
            c.assured |= answered && !reply;
        }
        let keep = match (tuple.protocol, answered) {
            (6, _) if c.closing => seconds(120),
            (6, true) => seconds(432_000),
            (6, false) => seconds(120),
            (17, true) => seconds(120),
            (17, false) | (1 | 58, _) => seconds(30),
            _ => seconds(600),
        };
        c.expires = now + keep;
        if c.expires < c.end {
            self.ends.remove(&(c.end, id));
            c.end = c.expires;
            self.ends.insert((c.end, id));
        }
        let state = if answered { state::ESTABLISHED } else { state::NEW };
        Known { state, id: Some(id), reply }
    }

    fn find(&self, tuple: Tuple, now: Time) -> Option<(u32, bool)> {
        let id = self.tuples.get(&tuple)?;
        let connection = self.connections.get(&id).filter(|c| c.expires > now)?;
        Some((id, connection.original != tuple))
    }

    fn begin(&mut self, tuple: Tuple, now: Time) -> u32 {
        // One that has run out may still stand in this one's place.
        for old in [tuple, tuple.reversed()] {
            if let Some(id) = self.tuples.get(&old) {
                self.forget(id);
            }
        }
        if self.connections.len() >= MAX_CONNECTIONS {
            self.forget_expired(now);
        }
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        self.tuples.insert(tuple, id);
        self.tuples.insert(tuple.reversed(), id);
        self.connections.insert(
            id,
            Connection {
                original: tuple,
                mark: 0,
                seen_reply: false,
                assured: false,
                packets: [0; 2],
                bytes: [0; 2],
                expires: now,
                closing: false,
                end: now,
            },
        );
        self.ends.insert((now, id));
        id
    }

    /// Forgets all that have run out.
    fn forget_expired(&mut self, now: Time) {
        while let Some(&(end, id)) = self.ends.first()
            && end <= now
        {
            match self.connections.get_mut(&id).filter(|c| c.expires > now) {
                Some(c) => {
                    self.ends.remove(&(end, id));
                    c.end = c.expires;
                    self.ends.insert((c.end, id));
                }
                None => self.forget(id),
            }
        }
    }

    fn forget(&mut self, id: u32) {
        if let Some(c) = self.connections.remove(&id) {
            self.ends.remove(&(c.end, id));
            self.tuples.remove(&c.original);
            self.tuples.remove(&c.original.reversed());
        }
    }
}

fn four(addr: Ipv4Addr) -> u128 {
    u128::from(u32::from(addr))
}

/// A packet's tuple, and whether a connection may begin with it; `None` where it has none that is read.
fn tuple(skb: &Skb) -> Option<(Tuple, bool)> {
    let (src, dst, protocol) = match skb.l3 {
        L3::Ipv4(h) => (four(h.src), four(h.dst), h.protocol),
        L3::Ipv6(h) => (h.src.into(), h.dst.into(), h.next_header),
        _ => return None,
    };
    let (sport, dport, begins) = match skb.l4 {
        L4::Tcp(t) => {
            // Picked up in its middle is allowed (`nf_conntrack_tcp_loose`); a reset begins nothing.
            (t.sport, t.dport, !t.flags.has(TcpFlags::RST))
        }
        L4::Udp(u) => (u.sport, u.dport, true),
        L4::Icmp(i) => match (protocol, i.ty) {
            (1, 8) | (58, 128) => (i.id, i.id, true),
            (1, 0) | (58, 129) => (i.id, i.id, false),
            _ => return None,
        },
        L4::None => return None,
    };
    Some((Tuple { src, dst, protocol, sport, dport }, begins))
}

/// The packet an ICMP error speaks of.
fn quoted(skb: &Skb) -> Option<Tuple> {
    let L4::Icmp(i) = skb.l4 else { return None };
    let q = i.about?;
    let dport = if q.protocol == 1 { q.sport } else { q.dport };
    Some(Tuple { src: four(q.src), dst: four(q.dst), protocol: q.protocol, sport: q.sport, dport })
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_packet::{Ipv4, Tcp, Udp};

    fn datagram(sport: u16) -> Skb {
        let l3 = Ipv4::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), 17);
        Skb::new(142, L3::Ipv4(l3), L4::Udp(Udp { sport, dport: 9 }))
    }
    fn segment(sport: u16, reply: bool, flags: TcpFlags) -> Skb {
        let (a, b) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let (src, dst, sport, dport) = if reply { (b, a, 80, sport) } else { (a, b, sport, 80) };
        let tcp = Tcp { sport, dport, flags, ..Tcp::default() };
        Skb::new(142, L3::Ipv4(Ipv4::new(src, dst, 6)), L4::Tcp(tcp))
    }

    /// Those whose time was made longer stay, those whose time was made shorter go.
    #[test]
    fn what_has_run_out_is_forgotten() {
        let mut t = Tracking::default();
        let at = |s: i64| Time::ZERO + seconds(s);
        for port in 0..100 {
            t.track(&datagram(port), at(0));
        }
        for port in 0..50 {
            t.track(&datagram(port), at(20));
        }
        // Five days, and then two minutes.
        t.track(&segment(1000, false, TcpFlags::SYN), at(0));
        t.track(&segment(1000, true, TcpFlags::ACK), at(1));
        t.track(&segment(1000, false, TcpFlags::FIN), at(2));
        t.track(&segment(1001, false, TcpFlags::SYN), at(0));
        t.track(&segment(1001, true, TcpFlags::ACK), at(1));
        let left = |t: &mut Tracking, now: i64| {
            let wanted = t.connections().filter(|c| c.expires > at(now)).count();
            t.forget_expired(at(now));
            assert!(t.connections().all(|c| c.expires > at(now)));
            assert_eq!((t.ends.len(), t.tuples.len()), (t.connections.len(), 2 * t.connections.len()));
            assert_eq!(t.connections.len(), wanted);
            wanted
        };
        assert_eq!(left(&mut t, 10), 102);
        assert_eq!(left(&mut t, 30), 52);
        assert_eq!(left(&mut t, 60), 2);
        assert_eq!(left(&mut t, 122), 1);
    }
}
