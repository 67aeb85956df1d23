//! Translation of addresses and ports: what a connection's first packet decides, and what is done to all of them.
//!
//! A connection keeps its tuples as its packets come in. Where they are not each other's answer, the difference is what is translated.
//!
//! Follows: linux v6.12 `net/netfilter/nf_nat_core.c`, `nf_nat_proto.c`, `nf_nat_masquerade.c`, `nf_nat_redirect.c`, `xt_NETMAP.c`, of IPv4 and of IPv6.
//! Differs: where a port is chosen at random the numbers are ours; no helpers, no sequence numbers to be moved.

mod target;

pub(super) use target::Nat;

use super::conntrack::{Tracking, Tuple, any, status};
use super::{Devices, Dice, Fate, Hook};
use penstock_lang::iptables::extension::state;
use penstock_model::Time;
use penstock_packet::headers::ipproto;
use penstock_packet::skb::Tracked;
use penstock_packet::{L3, L4, Skb};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What a connection may be translated to (`struct nf_nat_range2`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Range {
    /// Addresses, both included.
    pub addresses: Option<(u128, u128)>,
    /// Ports, both included.
    pub ports: Option<(u16, u16)>,
    /// The port that becomes the first of `ports`; others follow in order.
    pub base: Option<u16>,
    /// `--random`, `--random-fully`.
    pub random: bool,
    /// `--persistent`: the destination does not decide on the address.
    pub persistent: bool,
    /// `addresses` are of IPv6.
    pub six: bool,
}

/// Ports tried in a row at most, and the number from which a connection that has ended gives way.
const MAX_ATTEMPTS: u32 = 128;
const HARDER: u32 = 32;

/// Whether a hook translates sources, or else destinations (`HOOK2MANIP`).
pub(super) const fn of_source(hook: Hook) -> bool {
    matches!(hook, Hook::Postrouting | Hook::Input)
}

const fn done(source: bool) -> u16 {
    if source { status::SRC_NAT_DONE } else { status::DST_NAT_DONE }
}

/// What is needed to decide.
pub(super) struct Table<'a> {
    pub tracking: &'a mut Tracking,
    pub dice: &'a mut Dice,
    pub now: Time,
}

fn within(port: u16, range: (u16, u16)) -> bool {
    (range.0..=range.1).contains(&port)
}

/// `l4proto_in_range`.
fn port_fits(t: &Tuple, source: bool, range: (u16, u16)) -> bool {
    match t.protocol {
        _ if t.is_icmp() => within(t.sport, range),
        6 | 17 | 33 | 47 | 132 | 136 => within(if source { t.sport } else { t.dport }, range),
        _ => true,
    }
}

impl Range {
    /// `nf_in_range`: whether a source may stay.
    fn holds(&self, t: &Tuple) -> bool {
        self.addresses.is_none_or(|(from, to)| (from..=to).contains(&t.src))
            && self.ports.is_none_or(|ports| port_fits(t, true, ports))
    }
    /// `find_best_ips_proto`.
    fn address(&self, t: &mut Tuple, source: bool) {
        let Some((from, to)) = self.addresses else { return };
        *(if source { &mut t.src } else { &mut t.dst }) = if from == to {
            from
        } else {
            let words = if self.six { 4 } else { 1 };
            // As they lie in the kernel's memory.
            let memory = |a: u128, i: usize| match i < words {
                true => ((a >> (32 * (words - 1 - i))) as u32).swap_bytes(),
                false => 0,
            };
            let seed = match self.persistent {
                true => 0,
                false => memory(t.dst, words - 1) ^ u32::from(t.zone),
            };
            let mut hash = penstock_sched::cls::flow::jhash2(
                &std::array::from_fn::<_, 4, _>(|i| memory(t.src, i)),
                seed,
            );
            let mut chosen = 0u128;
            let mut all = false;
            for i in 0..words {
                let (least, most) = (memory(from, i).swap_bytes(), memory(to, i).swap_bytes());
                // Behind a word that is not the last address's own, any will do.
                let (least, count) = match all {
                    true => (0, u32::MAX),
                    false => (least, most.wrapping_sub(least).wrapping_add(1)),
                };
                let word = least.wrapping_add(((u64::from(hash) * u64::from(count)) >> 32) as u32);
                all |= word != most;
                chosen = chosen << 32 | u128::from(word);
                if !self.persistent {
                    hash ^= if source { memory(t.dst, i) } else { word.swap_bytes() };
                }
            }
            chosen
        };
    }
}

impl Table<'_> {
    fn random_port(&mut self) -> u16 {
        (self.dice.0.next_u32() >> 16) as u16
    }
    /// `nf_nat_used_tuple`: who has the answers to it.
    fn used(&mut self, t: &Tuple, id: u32) -> Option<u32> {
        let now = self.tracking.ticks(self.now);
        self.tracking.is_taken(&t.answer(), id, now)
    }
    /// `nf_nat_used_tuple_new`: the same of a tuple that nothing has changed.
    fn used_unchanged(&mut self, t: &Tuple, id: u32) -> bool {
        let Some(other) = self.used(t, id) else { return false };
        let translates = status::SRC_NAT | status::DST_NAT;
        let of = |id| self.tracking.get(Some(id)).map(|c| (c.status & translates, c.tuples));
        let clash_allowed = !matches!(t.protocol, 1 | 6 | 58);
        match (of(id), of(other)) {
            (Some((0, own)), Some((0, others))) if clash_allowed => others[0] != own[1],
            _ => true,
        }
    }

    /// `get_unique_tuple`.
    fn unique(&mut self, first: Tuple, range: &Range, id: u32, source: bool) -> Tuple {
        if source && !range.random {
            if range.holds(&first) {
                if !self.used_unchanged(&first, id) {
                    return first;
                }
            } else if let Some(found) = self.as_before(&first, range)
                && self.used(&found, id).is_none()
            {
                return found;
            }
        }
        let mut t = first;
        range.address(&mut t, source);
        if !range.random {
            let fits = match range.ports {
                Some(ports) => {
                    range.base.is_none()
                        && port_fits(&t, source, ports)
                        && (ports.0 == ports.1 || self.used(&t, id).is_none())
                }
                None => self.used(&t, id).is_none(),
            };
            if fits {
                return t;
            }
        }
        self.port(&mut t, range, source, id);
        t
    }

    /// `find_appropriate_src`: a source that is translated already keeps what it has.
    fn as_before(&self, first: &Tuple, range: &Range) -> Option<Tuple> {
        self.tracking.of_source(first).find_map(|c| {
            let there = c.tuples[1].answer();
            let found = Tuple { dst: first.dst, dport: first.dport, ..there };
            range.holds(&found).then_some(found)
        })
    }

    /// `nf_nat_l4proto_unique_tuple`.
    fn port(&mut self, t: &mut Tuple, range: &Range, source: bool, id: u32) {
        let key = if t.is_icmp() || source { t.sport } else { t.dport };
        let (least, size) = match (t.protocol, range.ports) {
            (ipproto::ICMP | ipproto::ICMPV6, None) => (0, 65_536),
            (1 | 6 | 17 | 33 | 58 | 132 | 136, Some((a, b))) => {
                (u32::from(a.min(b)), u32::from(a.max(b) - a.min(b)) + 1)
            }
            (6 | 17 | 33 | 132 | 136, None) => match key {
                _ if !source => return,
                0..512 => (1, 511),
                512..1024 => (600, 424),
                _ => (1024, 64_512),
            },
            _ => return,
        };
        let mut off = match range.base {
            Some(base) => key.wrapping_sub(base),
            None if range.random || source => self.random_port(),
            None => 0,
        };
        let mut attempts = size.min(MAX_ATTEMPTS);
        loop {
            for tried in 0..attempts {
                let port = (least + u32::from(off) % size) as u16;
                *(if t.is_icmp() || source { &mut t.sport } else { &mut t.dport }) = port;
                match self.used(t, id) {
                    None => return,
                    Some(other) => {
                        let harder = attempts - tried <= HARDER && t.protocol == ipproto::TCP;
                        if harder && self.tracking.gives_way(other, t, id) {
                            return;
                        }
                    }
                }
                off = off.wrapping_add(1);
            }
            if attempts >= size || attempts < 16 {
                return;
            }
            attempts /= 2;
            off = self.random_port();
        }
    }

    /// `nf_nat_setup_info`: decides where a connection's source, or its destination, is translated to.
    pub(super) fn set_up(&mut self, id: u32, range: &Range, source: bool) {
        let Some(c) = self.tracking.get(Some(id)) else { return };
        if c.has(status::CONFIRMED) {
            return;
        }
        let current = c.tuples[1].answer();
        let new = self.unique(current, range, id, source);
        let Some(c) = self.tracking.get_mut(Some(id)) else { return };
        if new != current {
            c.tuples[1] = new.answer();
            c.status |= if source { status::SRC_NAT } else { status::DST_NAT };
        }
        c.status |= done(source);
        if source {
            self.tracking.note_source(id);
        }
    }

    /// `nf_nat_alloc_null_binding`: nothing is translated, but where a port is taken.
    pub(super) fn leave_as_is(&mut self, id: u32, source: bool) {
        let Some(c) = self.tracking.get(Some(id)) else { return };
        let addr = if source { c.tuples[1].dst } else { c.tuples[1].src };
        self.set_up(id, &Range { addresses: Some((addr, addr)), ..Range::default() }, source);
    }
}

impl Tracking {
    /// Whether it is decided what of a connection is translated at this hook.
    pub(super) fn is_decided(&self, id: u32, source: bool) -> bool {
        self.get(Some(id)).is_none_or(|c| c.has(done(source)))
    }

    /// Translates a packet at a hook as its connection says (`nf_nat_packet`, `nf_nat_icmp_reply_translation`).
    pub(super) fn translate(
        &mut self,
        skb: &mut Skb,
        known: Tracked,
        hook: Hook,
        devices: Devices<'_>,
    ) -> Fate {
        let Some((id, c)) = known.id.and_then(|id| Some((id, self.get(Some(id))?))) else {
            return Fate::Accept;
        };
        let source = of_source(hook);
        let error = known.state == state::RELATED && matches!(skb.l4, L4::Icmp(_));
        let oif = devices.ports.map_or(0, |p| p.oif);
        if !error
            && hook == Hook::Postrouting
            && !known.reply
            && c.masqueraded != 0
            && oif != 0
            && c.masqueraded != oif
        {
            // `nf_nat_oif_changed`: the route has changed, and the address is another device's.
            self.forget(id);
            return Fate::Drop;
        }
        if error && is_redirect(skb) {
            // Those it is about would speak with each other past what is translated, or may be about to.
            let decided = c.has(done(true)) && c.has(done(false));
            if !decided || c.has(status::SRC_NAT) || c.has(status::DST_NAT) {
                return Fate::Drop;
            }
        }
        let bit = if source != known.reply { status::SRC_NAT } else { status::DST_NAT };
        if !c.has(bit) {
            return Fate::Accept;
        }
        let there = c.tuples[usize::from(!known.reply)];
        if error {
            quote(skb, there, !source);
        }
        put(skb, there.answer(), source, error);
        Fate::Accept
    }
}

/// Whether a message of ICMP tells of a better gateway.
fn is_redirect(skb: &Skb) -> bool {
    let ty = if matches!(skb.l3, L3::Ipv4(_)) { crate::icmp::REDIRECT } else { crate::six::icmp::REDIRECT };
    matches!(skb.l4, L4::Icmp(i) if i.ty == ty)
}

/// `nf_nat_ipv4_manip_pkt`, `nf_nat_ipv6_manip_pkt`: source or destination become the tuple's.
fn put(skb: &mut Skb, t: Tuple, source: bool, error: bool) {
    let six = match &mut skb.l3 {
        L3::Ipv4(h) => {
            match source {
                true => h.src = Ipv4Addr::from(t.src as u32),
                false => h.dst = Ipv4Addr::from(t.dst as u32),
            }
            false
        }
        L3::Ipv6(h) => {
            match source {
                true => h.src = t.src.into(),
                false => h.dst = t.dst.into(),
            }
            true
        }
        _ => return,
    };
    if error {
        return;
    }
    let (sport, dport) = match &mut skb.l4 {
        L4::Tcp(h) => (&mut h.sport, &mut h.dport),
        L4::Udp(h) => (&mut h.sport, &mut h.dport),
        L4::Icmp(h) => {
            if if six { matches!(h.ty, 128 | 129) } else { matches!(h.ty, 0 | 8 | 13..=18) } {
                h.id = t.sport;
            }
            return;
        }
        L4::None => return,
    };
    match source {
        true => *sport = t.sport,
        false => *dport = t.dport,
    }
}

/// The same of the packet that an ICMP error quotes.
fn quote(skb: &mut Skb, t: Tuple, source: bool) {
    let L4::Icmp(i) = &mut skb.l4 else { return };
    let Some(q) = i.about_mut() else { return };
    let side = if source { &mut q.src } else { &mut q.dst };
    let to = if source { t.src } else { t.dst };
    *side = match side {
        IpAddr::V4(_) => Ipv4Addr::from(to as u32).into(),
        IpAddr::V6(_) => Ipv6Addr::from(to).into(),
    };
    if q.fragment.is_some_and(|f| f.offset() > 0) {
        return;
    }
    match q.protocol {
        ipproto::ICMP | ipproto::ICMPV6 => q.sport = t.sport,
        _ if source => q.sport = t.sport,
        _ => q.dport = t.dport,
    }
}

/// An address as a range has it.
fn address(a: impl Into<IpAddr>) -> (u128, u128) {
    let a = any(a.into());
    (a, a)
}
