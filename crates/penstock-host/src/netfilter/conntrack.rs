//! Connections: which a packet belongs to, whether it was answered, its mark and what it has carried.
//!
//! A connection is in the table from when its first packet leaves the machine or comes to a socket of it (`__nf_conntrack_confirm`): one that a
//! rule drops before leaves nothing.
//!
//! Follows: linux v6.12 `net/netfilter/nf_conntrack_core.c` `nf_conntrack_in`, `resolve_normal_ct`, `__nf_conntrack_confirm`;
//! `nf_conntrack_proto_tcp.c`, `_udp.c`, `_icmp.c`, `_generic.c`.
//! Differs: no helpers and no expectations, so that RELATED is for ICMP errors alone; where the table is full the oldest that is not
//! assured goes, where the kernel looks for one in eight places of its hash; what has run out is forgotten at once, not by a worker.

mod made;
pub(crate) mod settings;
mod show;
mod tcp;
mod tuple;

pub(crate) use made::{Change, New};
pub use tuple::Tuple;
pub(super) use tuple::{any, four};

use super::places::Places;
use penstock_lang::iptables::extension::state;
use penstock_model::{Span, Time};
use penstock_packet::headers::ipproto;
use penstock_packet::skb::Tracked;
use penstock_packet::{Icmp, L3, L4, Skb};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tcp::Said;

/// Bits of [`Connection::status`], those of `enum ip_conntrack_status`.
pub mod status {
    /// Another has said that it would come.
    pub const EXPECTED: u16 = 1 << 0;
    /// It was answered.
    pub const SEEN_REPLY: u16 = 1 << 1;
    /// It is kept where there are too many.
    pub const ASSURED: u16 = 1 << 2;
    /// It is in the table.
    pub const CONFIRMED: u16 = 1 << 3;
    /// Its source is translated.
    pub const SRC_NAT: u16 = 1 << 4;
    /// Its destination is translated.
    pub const DST_NAT: u16 = 1 << 5;
    /// It is decided whether its source is.
    pub const SRC_NAT_DONE: u16 = 1 << 7;
    /// It is decided whether its destination is.
    pub const DST_NAT_DONE: u16 = 1 << 8;
    /// It is out of the table, and a packet still knows it.
    pub const DYING: u16 = 1 << 9;
    /// No packet makes its time longer.
    pub const FIXED_TIMEOUT: u16 = 1 << 10;
}

/// A connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connection {
    /// As its packets come: those of the original direction, those of the reply.
    pub tuples: [Tuple; 2],
    /// Its mark.
    pub mark: u32,
    /// Its labels; the first byte is the highest.
    pub labels: u128,
    /// Bits of [`status`].
    pub status: u16,
    /// Packets of the original direction and of the reply.
    pub packets: [u64; 2],
    /// Their bytes, from the IP header on.
    pub bytes: [u64; 2],
    /// The tick at which it is forgotten; before it is confirmed, how many ticks it is kept from then on.
    pub(super) expires: i64,
    /// Its tick in [`Tracking`]'s `ends`.
    end: i64,
    /// The device whose address it was masqueraded with, 0: none.
    pub(super) masqueraded: u32,
    tcp: tcp::State,
    /// Until when a datagram's answer makes no stream.
    stream: i64,
}

impl Connection {
    /// Whether it is TCP's and over (`already_closed` of `nf_conncount.c`).
    pub(super) fn is_closed(&self) -> bool {
        self.tuples[0].protocol == ipproto::TCP && self.tcp.is_closed()
    }
    /// Whether its addresses are those of IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.tuples[0].src >> 32 != 0 || self.tuples[0].dst >> 32 != 0
    }
    /// Whether all bits are set.
    pub fn has(&self, bits: u16) -> bool {
        self.status & bits == bits
    }
}

/// What a state machine asks of a connection.
#[derive(Clone, Copy)]
struct Kept {
    confirmed: bool,
    seen_reply: bool,
    assured: bool,
}

/// How long connections are kept, in ticks, and what else TCP's tracker is told (`net.netfilter.nf_conntrack_*`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Timeouts {
    /// Ticks a second.
    pub hz: i64,
    /// By state, from `NONE` on.
    pub tcp: [i64; 10],
    pub tcp_retrans: i64,
    pub tcp_unack: i64,
    pub tcp_max_retrans: u8,
    pub tcp_loose: bool,
    pub tcp_be_liberal: bool,
    pub udp: [i64; 2],
    pub icmp: i64,
    pub generic: i64,
}

/// All connections.
#[derive(Clone, PartialEq, Debug)]
pub struct Tracking {
    pub(super) on: bool,
    /// A program has asked for it: its files are there.
    there: bool,
    /// Both directions of each that is confirmed.
    tuples: Places<Tuple, u32>,
    pub(super) connections: BTreeMap<u32, Connection>,
    /// By source as it was, those whose source is decided, the newest first.
    sources: BTreeSet<(u16, u8, u128, u16, Reverse<u32>)>,
    /// When each that is confirmed is looked at next to see whether it has run out: not later than it does.
    ends: BTreeSet<(i64, u32)>,
    /// Those that may go where there are too many: not assured.
    loose: BTreeSet<u32>,
    pub(super) timeouts: Timeouts,
    /// `nf_conntrack_max`.
    pub(super) max: usize,
    /// `nf_conntrack_acct`: the table shows packets and bytes.
    pub(super) shows_counts: bool,
    next: u32,
}

/// `nf_conntrack_max` of a machine of 1 GB.
const MAX_CONNECTIONS: usize = 65_536;

/// How long a connection is remembered that was killed, s: longer than a packet waits for ARP.
const DYING_S: i64 = 10;

const INVALID: Tracked = Tracked { id: None, state: state::INVALID, reply: false };

impl Default for Tracking {
    fn default() -> Tracking {
        let mut tracking = Tracking {
            on: false,
            there: false,
            tuples: Places::default(),
            connections: BTreeMap::new(),
            sources: BTreeSet::new(),
            ends: BTreeSet::new(),
            loose: BTreeSet::new(),
            timeouts: Timeouts {
                hz: 1,
                tcp: [0, 120, 60, 432_000, 120, 60, 30, 120, 10, 120],
                tcp_retrans: 300,
                tcp_unack: 300,
                tcp_max_retrans: 3,
                tcp_loose: true,
                tcp_be_liberal: false,
                udp: [30, 120],
                icmp: 30,
                generic: 600,
            },
            max: MAX_CONNECTIONS,
            shows_counts: false,
            next: 1,
        };
        tracking.set_hz(250);
        tracking
    }
}

impl Tracking {
    /// Tells how often a second its ticks come. Before there is any connection.
    pub(super) fn set_hz(&mut self, hz: u32) {
        let t = &mut self.timeouts;
        let (old, new) = (t.hz, i64::from(hz));
        let all = t.tcp.iter_mut().chain(&mut t.udp);
        for ticks in all.chain([&mut t.tcp_retrans, &mut t.tcp_unack, &mut t.icmp, &mut t.generic]) {
            *ticks = *ticks / old * new;
        }
        t.hz = new;
    }
    pub(super) fn hz(&self) -> i64 {
        self.timeouts.hz
    }
    pub(super) fn ticks(&self, now: Time) -> i64 {
        now.as_ns().div_euclid(Span::from_secs(1).as_ns() / self.hz())
    }
    /// Seconds until a connection is forgotten (`nf_ct_expires`).
    pub(super) fn seconds_left(&self, c: &Connection, now: Time) -> i64 {
        let now = if c.has(status::CONFIRMED) { self.ticks(now) } else { 0 };
        (c.expires - now).max(0) / self.hz()
    }
    /// The same for a program.
    pub(crate) fn left(&self, c: &Connection, now: Time) -> i64 {
        self.seconds_left(c, now)
    }
    /// A program asks for the table.
    pub(crate) fn is_there(&mut self) {
        self.there = true;
    }
    /// Whether there are files of it.
    pub(crate) fn has_files(&self) -> bool {
        self.on || self.there
    }
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

    /// The connection of a packet that the machine has not tracked (yet, or any more), and whether the packet is an answer.
    pub(super) fn peek(&self, skb: &Skb, now: Time) -> Option<(u32, bool)> {
        let tuple = Tuple::of(skb)?;
        let id = *self.tuples.get(&tuple)?;
        let now = self.ticks(now);
        let connection = self.connections.get(&id).filter(|c| c.expires > now)?;
        Some((id, connection.tuples[0] != tuple))
    }

    /// A packet comes to the station where connections are tracked (`nf_conntrack_in`). `None`: it is dropped, there are too many.
    #[cfg(test)]
    pub(super) fn track(&mut self, skb: &Skb, now: Time) -> Option<Tracked> {
        self.track_in(0, skb, now)
    }
    /// The same in a zone.
    pub(super) fn track_in(&mut self, zone: u16, skb: &Skb, now: Time) -> Option<Tracked> {
        let now = self.ticks(now);
        let protocol = match skb.l3 {
            L3::Ipv4(h) => h.protocol,
            L3::Ipv6(h) => h.protocol(),
            _ => return Some(INVALID),
        };
        //= linux v6.12 net/netfilter/nf_conntrack_core.c nf_conntrack_in: what could not be put together has no length that fits its header's
        if let L3::Ipv6(h) = skb.l3
            && (h.fragment().is_some() || skb.is_noted() && skb.rare().frag_max_size > 0)
        {
            let len = skb.len - skb.headers_before_l4();
            let fits = skb.rare().datagram.is_none_or(|whole| u32::from(whole) == len);
            let headless = h.fragment().is_some() && skb.l4 == L4::None;
            if skb.tc.damaged || !fits || h.is_later_fragment() || headless {
                return Some(INVALID);
            }
        }
        if let L4::Icmp(i) = skb.l4 {
            if protocol == ipproto::ICMP && i.ty > 18 {
                return Some(INVALID);
            }
            if protocol == ipproto::ICMPV6 && tuple::is_never_tracked(i.ty) {
                return Some(Tracked { state: state::UNTRACKED, ..INVALID });
            }
            if tuple::is_error(protocol, &i) {
                return Some(self.related(zone, skb, &i, now));
            }
        }
        let Some(tuple) = Tuple::of(skb) else { return Some(INVALID) };
        let tuple = Tuple { zone, ..tuple };
        loop {
            let (id, reply) = match self.find(&tuple, now) {
                Some(found) => found,
                None => {
                    let Some(answer) = tuple.inverted() else { return Some(INVALID) };
                    (self.begin(tuple, answer, now)?, false)
                }
            };
            let c = self.connections.get_mut(&id)?;
            let answered = reply || c.has(status::SEEN_REPLY);
            let known = Tracked {
                id: Some(id),
                state: if answered { state::ESTABLISHED } else { state::NEW },
                reply,
            };
            match c.packet(skb, reply, now, &self.timeouts) {
                Said::Invalid => {
                    self.let_go(id);
                    return Some(INVALID);
                }
                Said::Reopens => {
                    self.forget(id);
                    continue;
                }
                Said::Kills => {
                    c.count(skb, reply);
                    self.kill(id);
                    return Some(known);
                }
                Said::Passes => {}
                Said::Keeps(ticks, assured) => {
                    if !c.has(status::FIXED_TIMEOUT) {
                        c.expires = ticks + if c.has(status::CONFIRMED) { now } else { 0 };
                    }
                    c.count(skb, reply);
                    if assured {
                        c.status |= status::ASSURED;
                        self.loose.remove(&id);
                    }
                    self.ends_earlier(id);
                }
            }
            if let Some(c) = self.connections.get_mut(&id)
                && reply
            {
                c.status |= status::SEEN_REPLY;
            }
            return Some(known);
        }
    }

    /// An ICMP error: of the connection it speaks of, if it is for who sent that packet (`nf_conntrack_inet_error`).
    fn related(&mut self, zone: u16, skb: &Skb, i: &Icmp, now: i64) -> Tracked {
        //= linux v6.12 net/netfilter/nf_conntrack_core.c get_ipv6_l4proto: a later fragment has no ports
        let later = |q: &&penstock_packet::headers::Quoted| q.fragment.is_some_and(|f| f.offset() > 0);
        let Some(about) = i.about().filter(|q| !later(q)) else { return INVALID };
        let outer = match skb.l3 {
            L3::Ipv4(h) => four(h.dst),
            L3::Ipv6(h) => h.dst.into(),
            _ => return INVALID,
        };
        let quoted = Tuple { zone, ..Tuple::quoted(about).answer() };
        let Some((id, reply)) = self.find(&quoted, now) else { return INVALID };
        let to = self.connections[&id].tuples[usize::from(reply)].dst;
        if to != outer {
            return INVALID;
        }
        Tracked { id: Some(id), state: state::RELATED, reply }
    }

    /// The connection of a tuple and whether that is its answers'. One that has run out is forgotten.
    pub(super) fn find(&mut self, tuple: &Tuple, now: i64) -> Option<(u32, bool)> {
        let id = *self.tuples.get(tuple)?;
        let c = self.connections.get(&id)?;
        if c.expires <= now {
            self.forget(id);
            return None;
        }
        Some((id, c.tuples[0] != *tuple))
    }

    /// `init_conntrack`. `None`: there are too many.
    fn begin(&mut self, tuple: Tuple, answer: Tuple, now: i64) -> Option<u32> {
        self.forget_expired(now);
        if self.connections.len() >= self.max && self.max > 0 {
            let oldest = *self.loose.first()?;
            self.forget(oldest);
        }
        let id = self.next;
        self.next = self.next.wrapping_add(1);
        let connection = Connection {
            tuples: [tuple, answer],
            mark: 0,
            labels: 0,
            status: 0,
            packets: [0; 2],
            bytes: [0; 2],
            expires: 0,
            end: 0,
            masqueraded: 0,
            tcp: tcp::State::default(),
            stream: 0,
        };
        self.connections.insert(id, connection);
        Some(id)
    }

    /// A packet leaves, or comes to a socket: its connection is in the table from now on (`__nf_conntrack_confirm`). `false`: another has one of its
    /// tuples, and the packet is dropped.
    pub(super) fn confirm(&mut self, known: Tracked, now: Time) -> bool {
        let now = self.ticks(now);
        let Some((id, c)) = known.id.and_then(|id| Some((id, self.connections.get_mut(&id)?))) else {
            return true;
        };
        if known.reply || c.has(status::CONFIRMED) || c.has(status::DYING) {
            if c.has(status::DYING) && c.end == 0 {
                // The packet may still wait for ARP, and an error about it is the connection's.
                (c.expires, c.end) = (now, now + DYING_S * self.timeouts.hz);
                self.ends.insert((c.end, id));
            }
            return true;
        }
        if c.tuples.iter().any(|t| self.tuples.get(t).is_some()) {
            return false;
        }
        c.status |= status::CONFIRMED;
        c.expires += now;
        if c.end != 0 {
            self.ends.remove(&(c.end, id));
        }
        c.end = c.expires;
        self.ends.insert((c.end, id));
        if !c.has(status::ASSURED) {
            self.loose.insert(id);
        }
        for tuple in c.tuples {
            self.tuples.insert(tuple, id);
        }
        true
    }

    /// No packet that comes later belongs to it; the one at hand still does (`nf_ct_kill`).
    fn kill(&mut self, id: u32) {
        let Some(c) = self.connections.get_mut(&id) else { return };
        if c.has(status::CONFIRMED) {
            self.ends.remove(&(c.end, id));
            for tuple in &c.tuples {
                self.tuples.remove(tuple);
            }
            c.status &= !status::CONFIRMED;
            c.end = 0;
        }
        self.loose.remove(&id);
        c.status |= status::DYING;
    }
    /// A connection that only the packet at hand knows of is not looked for longer than a packet stays on a machine.
    pub(super) fn lingers(&mut self, id: u32, now: Time) {
        let end = self.ticks(now) + DYING_S * self.timeouts.hz;
        let Some(c) = self.connections.get_mut(&id) else { return };
        if !c.has(status::CONFIRMED) && c.end == 0 {
            c.end = end;
            self.ends.insert((end, id));
        }
    }
    /// Forgets a connection, and that a packet belongs to it (`nf_ct_kill`, `nf_ct_put`).
    pub(super) fn force_out(&mut self, id: u32) {
        if self.connections.get(&id).is_some_and(|c| c.has(status::CONFIRMED)) {
            self.forget(id);
        }
    }
    /// A packet is gone: a connection that it alone knows of goes with it.
    pub(super) fn let_go(&mut self, id: u32) {
        if self.connections.get(&id).is_some_and(|c| !c.has(status::CONFIRMED)) {
            self.forget(id);
        }
    }
    pub(super) fn forget(&mut self, id: u32) {
        self.kill(id);
        if let Some(c) = self.connections.remove(&id) {
            self.ends.remove(&(c.end, id));
            let first = c.tuples[0];
            self.sources.remove(&(first.zone, first.protocol, first.src, first.sport, Reverse(id)));
        }
    }
    /// Forgets all that hold.
    pub(crate) fn forget_all(&mut self, holds: impl Fn(&Connection) -> bool) -> usize {
        let found: Vec<u32> = self.connections.iter().filter(|(_, c)| holds(c)).map(|(id, _)| *id).collect();
        found.iter().for_each(|&id| self.forget(id));
        found.len()
    }
    fn ends_earlier(&mut self, id: u32) {
        let Some(c) = self.connections.get_mut(&id).filter(|c| c.has(status::CONFIRMED)) else { return };
        if c.expires < c.end {
            self.ends.remove(&(c.end, id));
            c.end = c.expires;
            self.ends.insert((c.end, id));
        }
    }
    /// Forgets all that have run out.
    fn forget_expired(&mut self, now: i64) {
        while let Some(&(end, id)) = self.ends.first()
            && end <= now
        {
            let kept = |c: &&mut Connection| c.has(status::CONFIRMED) && c.expires > now;
            match self.connections.get_mut(&id).filter(kept) {
                Some(c) => {
                    self.ends.remove(&(end, id));
                    c.end = c.expires;
                    self.ends.insert((c.end, id));
                }
                None => self.forget(id),
            }
        }
    }

    /// The source of a connection is decided: later ones of the same are to have the same.
    pub(super) fn note_source(&mut self, id: u32) {
        let Some(c) = self.connections.get(&id) else { return };
        let first = c.tuples[0];
        self.sources.insert((first.zone, first.protocol, first.src, first.sport, Reverse(id)));
    }
    /// Connections of the same source, the newest first (`nf_nat_bysource`).
    pub(super) fn of_source(&self, tuple: &Tuple) -> impl Iterator<Item = &Connection> {
        let (from, to) = (Reverse(u32::MAX), Reverse(0));
        let key = (tuple.zone, tuple.protocol, tuple.src, tuple.sport);
        let range = (key.0, key.1, key.2, key.3, from)..=(key.0, key.1, key.2, key.3, to);
        self.sources.range(range).filter_map(|entry| self.connections.get(&entry.4.0))
    }
    /// Whether another connection has this tuple (`nf_conntrack_tuple_taken`).
    pub(super) fn is_taken(&mut self, tuple: &Tuple, by: u32, now: i64) -> Option<u32> {
        let (id, _) = self.find(tuple, now)?;
        let same =
            self.connections.get(&by).map(|c| c.tuples[0]) == self.connections.get(&id).map(|c| c.tuples[0]);
        (id != by && !same).then_some(id)
    }
    /// A TCP connection that has ended is thrown out where its source port is wanted (`nf_nat_may_kill`).
    pub(super) fn gives_way(&mut self, other: u32, wanted: &Tuple, id: u32) -> bool {
        let (Some(old), Some(new)) = (self.connections.get(&other), self.connections.get(&id)) else {
            return false;
        };
        let ended =
            old.tuples[1] == wanted.answer() && old.has(status::SRC_NAT) && new.tcp.takes_place_of(&old.tcp);
        if ended {
            self.forget(other);
        }
        ended
    }
}

impl Connection {
    /// `nf_conntrack_handle_packet`.
    fn packet(&mut self, skb: &Skb, reply: bool, now: i64, times: &Timeouts) -> Said {
        let kept = Kept {
            confirmed: self.has(status::CONFIRMED),
            seen_reply: self.has(status::SEEN_REPLY),
            assured: self.has(status::ASSURED),
        };
        match (self.tuples[0].protocol, skb.l4) {
            (ipproto::TCP, L4::Tcp(t)) => self.tcp.packet(skb, &t, kept, usize::from(reply), times),
            (ipproto::UDP, _) => {
                if !kept.confirmed {
                    self.stream = now + 2 * times.hz;
                }
                match kept.seen_reply {
                    true if now > self.stream => Said::Keeps(times.udp[1], !kept.assured),
                    _ => Said::Keeps(times.udp[0], false),
                }
            }
            (ipproto::ICMP | ipproto::ICMPV6, _) => match self.tuples[0].asks() {
                true => Said::Keeps(times.icmp, false),
                false => Said::Invalid,
            },
            _ => Said::Keeps(times.generic, false),
        }
    }
    fn count(&mut self, skb: &Skb, reply: bool) {
        self.packets[usize::from(reply)] += 1;
        self.bytes[usize::from(reply)] += u64::from(skb.network_len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_packet::{Ipv4, Tcp, TcpFlags, Udp};
    use std::net::Ipv4Addr;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn datagram(sport: u16, reply: bool) -> Skb {
        let (src, dst, sport, dport) = if reply { (B, A, 9, sport) } else { (A, B, sport, 9) };
        Skb::new(142, L3::Ipv4(Ipv4::new(src, dst, 17)), L4::Udp(Udp { sport, dport }))
    }
    fn segment(sport: u16, reply: bool, flags: TcpFlags, seq: u32, ack: u32) -> Skb {
        let (src, dst, sport, dport) = if reply { (B, A, 80, sport) } else { (A, B, sport, 80) };
        let tcp = Tcp { sport, dport, flags, seq, ack, window: 5000, ..Tcp::default() };
        Skb::new(54, L3::Ipv4(Ipv4::new(src, dst, 6)), L4::Tcp(tcp))
    }
    fn pass(t: &mut Tracking, skb: &Skb, at_s: i64) -> Tracked {
        let at = Time::ZERO + Span::from_secs(at_s);
        let known = t.track(skb, at).expect("there is room");
        assert!(t.confirm(known, at));
        known
    }
    fn of_port(t: &Tracking, port: u16) -> Connection {
        t.connections().find(|c| c.tuples[0].sport == port).expect("a connection").clone()
    }

    /// Those whose time was made longer stay, those whose time was made shorter go.
    #[test]
    fn what_has_run_out_is_forgotten() {
        let mut t = Tracking::default();
        for port in 0..100 {
            pass(&mut t, &datagram(port, false), 0);
        }
        for port in 0..50 {
            pass(&mut t, &datagram(port, false), 20);
        }
        let (syn, ack, fin) = (TcpFlags::SYN, TcpFlags::ACK, TcpFlags::FIN.with(TcpFlags::ACK));
        // An established one, and one that was answered alone.
        pass(&mut t, &segment(1000, false, syn, 100, 0), 0);
        pass(&mut t, &segment(1000, true, syn.with(ack), 500, 101), 1);
        pass(&mut t, &segment(1000, false, ack, 101, 501), 2);
        assert!(of_port(&t, 1000).has(status::ASSURED | status::SEEN_REPLY));
        pass(&mut t, &segment(1001, false, syn, 100, 0), 0);
        pass(&mut t, &segment(1001, true, syn.with(ack), 500, 101), 1);
        pass(&mut t, &segment(1001, false, fin, 101, 501), 2);
        let left = |t: &mut Tracking, at_s: i64| {
            let at = at_s * 250;
            let wanted = t.connections().filter(|c| c.expires > at).count();
            t.forget_expired(at);
            assert_eq!((t.ends.len(), t.tuples.len()), (t.connections.len(), 2 * t.connections.len()));
            assert_eq!(t.connections.len(), wanted);
            wanted
        };
        assert_eq!(left(&mut t, 10), 102);
        assert_eq!(left(&mut t, 30), 52);
        assert_eq!(left(&mut t, 60), 2);
        assert_eq!(left(&mut t, 122), 1);
        assert_eq!(left(&mut t, 432_003), 0);
        assert!(t.loose.is_empty() && t.sources.is_empty());
    }

    #[test]
    fn a_dropped_first_packet_leaves_no_entry() {
        let mut t = Tracking::default();
        let known = t.track(&datagram(1, false), Time::ZERO).unwrap();
        assert_eq!(known.state, state::NEW);
        t.let_go(known.id.unwrap());
        assert_eq!(t.connections().count(), 0);
        assert_eq!(pass(&mut t, &datagram(1, true), 0).state, state::NEW);
        assert_eq!(pass(&mut t, &datagram(1, false), 0).state, state::ESTABLISHED);
    }

    #[test]
    fn a_full_table_loses_the_oldest_that_is_not_assured() {
        let mut t = Tracking { max: 3, ..Tracking::default() };
        for (port, times) in [(1, 2), (2, 1), (3, 1)] {
            for at_s in (0..times * 3).step_by(3) {
                pass(&mut t, &datagram(port, false), at_s);
                pass(&mut t, &datagram(port, true), at_s);
            }
        }
        assert!(of_port(&t, 1).has(status::ASSURED) && !of_port(&t, 2).has(status::ASSURED));
        pass(&mut t, &datagram(4, false), 5);
        let ports: Vec<u16> = t.connections().map(|c| c.tuples[0].sport).collect();
        assert_eq!(ports, [1, 3, 4]);
        t.connections.values_mut().for_each(|c| c.status |= status::ASSURED);
        t.loose.clear();
        assert!(t.track(&datagram(5, false), Time::ZERO + Span::from_secs(6)).is_none());
    }

    #[test]
    fn segments_out_of_the_window_belong_to_none() {
        let mut t = Tracking::default();
        let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
        pass(&mut t, &segment(7, false, syn, 100, 0), 0);
        pass(&mut t, &segment(7, true, syn.with(ack), 500, 101), 0);
        assert_eq!(pass(&mut t, &segment(7, false, ack, 101, 501), 0).state, state::ESTABLISHED);
        assert_eq!(pass(&mut t, &segment(7, false, ack, 900_000, 501), 0).state, state::INVALID);
        assert_eq!(pass(&mut t, &segment(7, true, ack, 501, 900_000), 0).state, state::INVALID);
        assert_eq!(pass(&mut t, &segment(8, true, TcpFlags::RST, 1, 1), 0).state, state::INVALID);
    }
}
