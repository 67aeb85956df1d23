//! A packet's way through what stands at a hook.
//!
//! Follows: linux v6.12 `ip_tables.c` `ipt_do_table`, `ip_packet_match`; `xt_tcpudp.c`, `xt_mark.c`,
//! `xt_multiport.c`, `xt_dscp.c`, `xt_length.c`, `xt_limit.c`, `xt_conntrack.c`, `xt_connmark.c`, `xt_connbytes.c`,
//! `xt_iprange.c`, `xt_addrtype.c`, `xt_statistic.c`, `xt_u32.c`, `xt_DSCP.c`, `xt_CLASSIFY.c`, `xt_HL.c`; `TCPMSS` is `mss`'s.

use super::asks::{self, hashlimit::Hashlimits, recent::Recents};
use super::conntrack::{Tracking, status};
use super::ipset::Sets;
use super::nat;
use super::state::{Memory, More, Step};
use super::{Devices, Dice, Fate, Hook, Netfilter, Station, TableState};
use crate::route::{Key, LOCAL, RouteKind};
use penstock_lang::iptables::extension::state;
use penstock_lang::iptables::{
    ConnCount, ConnDir, Connmark, Conntrack, Edit, Family, Match, PortKind, Rule, Statistic, U32Test,
    Verdict, ZoneOf,
};
use penstock_model::Time;
use penstock_packet::skb::Tracked;
use penstock_packet::{L3, L4, Skb, TcpFlags};
use std::net::Ipv4Addr;

/// Chains within chains; deeper ones cannot be, loops are refused when a rule is made.
const DEPTH: usize = 64;

/// An IP header of either family.
#[derive(Clone, Copy)]
pub(super) struct Ip {
    pub src: u128,
    pub dst: u128,
    pub protocol: u8,
    pub tos: u8,
    pub ttl: u8,
    /// Not the first of its datagram.
    pub later_fragment: bool,
}

impl Ip {
    pub(super) fn of(skb: &Skb) -> Option<Ip> {
        match skb.l3 {
            L3::Ipv4(h) => Some(Ip {
                src: u32::from(h.src).into(),
                dst: u32::from(h.dst).into(),
                protocol: h.protocol,
                tos: h.tos,
                ttl: h.ttl,
                later_fragment: h.frag_off & crate::fragment::IP_OFFSET != 0,
            }),
            L3::Ipv6(h) => Some(Ip {
                src: h.src.into(),
                dst: h.dst.into(),
                protocol: h.protocol(),
                tos: h.traffic_class,
                ttl: h.hop_limit,
                later_fragment: h.is_later_fragment(),
            }),
            _ => None,
        }
    }
}

/// All a rule can look at and touch besides the packet.
pub(super) struct Way<'a> {
    pub hook: Hook,
    pub devices: Devices<'a>,
    pub now: Time,
    pub tracking: &'a mut Tracking,
    pub dice: &'a mut Dice,
    /// Tables of `hashlimit`.
    pub hashes: &'a mut Hashlimits,
    /// Lists of `recent`.
    pub recents: &'a mut Recents,
    /// Sets of `ipset`.
    pub sets: &'a mut Sets,
    /// Rules that were looked at.
    pub looked: u64,
    /// A match cannot tell whether the packet fits: it is dropped (`par->hotdrop`).
    pub hotdrop: bool,
}

impl Way<'_> {
    /// What is known of a packet's connection (`nf_ct_get`).
    pub(super) fn known(&self, skb: &Skb) -> Tracked {
        skb.rare().ct.unwrap_or(Tracked { state: state::INVALID, id: None, reply: false })
    }
    /// The packet has no connection from now on, whatever comes.
    pub(super) fn untrack(skb: &mut Skb) {
        skb.rare_mut().ct = Some(Tracked { state: state::UNTRACKED, id: None, reply: false });
    }
}

impl Netfilter {
    /// Through all stations of a hook.
    pub(super) fn pass(
        &mut self,
        family: Family,
        hook: Hook,
        skb: &mut Skb,
        devices: Devices<'_>,
        now: Time,
    ) -> Fate {
        let mut way = Way {
            hook,
            devices,
            now,
            tracking: &mut self.tracking,
            dice: &mut self.dice,
            hashes: &mut self.hashes,
            recents: &mut self.recents,
            sets: &mut self.sets,
            looked: 0,
            hotdrop: false,
        };
        let mut end = Fate::Accept;
        for station in &self.stations[family as usize][hook as usize] {
            let fate = match station {
                // What came back by `lo` has its connection already.
                Station::Tracking if skb.rare().ct.is_some() => Fate::Accept,
                Station::Tracking => match way.tracking.track_in(skb.rare().ct_zone, skb, now) {
                    Some(known) => {
                        skb.rare_mut().ct = Some(known);
                        Fate::Accept
                    }
                    None => Fate::Drop,
                },
                Station::Confirm => match skb.rare().ct {
                    Some(known) if !way.tracking.confirm(known, now) => Fate::Drop,
                    _ => Fate::Accept,
                },
                Station::Nat => {
                    let known = way.known(skb);
                    let first = known.id.filter(|&id| {
                        let error = matches!(skb.l4, L4::Icmp(_)) && known.state == state::RELATED;
                        !error
                            && known.state != state::ESTABLISHED
                            && !way.tracking.is_decided(id, nat::of_source(hook))
                    });
                    let mut fate = Fate::Accept;
                    if let Some(id) = first {
                        let source = nat::of_source(hook);
                        let asked = match self.translated {
                            true => &[][..],
                            false => &self.translators[family as usize][hook as usize],
                        };
                        for translator in asked {
                            fate = match translator {
                                Station::Table(table) => {
                                    self.tables[family as usize][*table as usize].run_once(skb, &mut way)
                                }
                                Station::Chain(table, chain) => self.nft.run(*table, *chain, skb, &mut way),
                                _ => Fate::Accept,
                            };
                            if fate != Fate::Accept || way.tracking.is_decided(id, source) {
                                break;
                            }
                        }
                        if fate == Fate::Accept && !way.tracking.is_decided(id, source) {
                            nat::Table { tracking: way.tracking, dice: way.dice, now }
                                .leave_as_is(id, source);
                        }
                    }
                    match fate {
                        Fate::Accept => way.tracking.translate(skb, known, hook, devices),
                        fate => fate,
                    }
                }
                Station::Table(table) => self.tables[family as usize][*table as usize].run(skb, &mut way),
                Station::Ipchains => self.ipchains.run(hook, skb, devices, &mut way.looked),
                Station::Chain(table, chain) => self.nft.run(*table, *chain, skb, &mut way),
            };
            if fate != Fate::Accept {
                end = fate;
                break;
            }
        }
        self.looked.0 += way.looked;
        end
    }
}

impl TableState {
    /// The same for a connection's first packet: apart, so that the loop over the rules stays within [`Netfilter::pass`].
    #[cold]
    #[inline(never)]
    fn run_once(&mut self, skb: &mut Skb, way: &mut Way<'_>) -> Fate {
        self.run(skb, way)
    }
    /// Takes a packet through the built-in chain of the way's hook.
    #[inline(always)]
    fn run(&mut self, skb: &mut Skb, way: &mut Way<'_>) -> Fate {
        let entry = self.table.built_in().iter().position(|c| *c == way.hook.chain());
        let Some(entry) = entry else { return Fate::Accept };
        let bytes = u64::from(skb.network_len());
        let mut back = [(0u32, 0u32); DEPTH];
        let mut depth = 0;
        let (mut chain, mut at) = (entry, 0);
        loop {
            let Some(counted) = self.chains[chain].rules.get_mut(at) else {
                // The end of a chain: back to who jumped here, or the policy.
                if depth > 0 {
                    depth -= 1;
                    (chain, at) = (back[depth].0 as usize, back[depth].1 as usize);
                    continue;
                }
                let last = &mut self.chains[entry];
                last.packets += 1;
                last.bytes += bytes;
                return fate(last.policy.unwrap_or(Verdict::Accept));
            };
            way.looked += 1;
            let compiled = &mut self.compiled[chain][at];
            if !fits(&counted.rule, &mut compiled.memory, skb, way) {
                if way.hotdrop {
                    return Fate::Drop;
                }
                at += 1;
                continue;
            }
            counted.packets += 1;
            counted.bytes += bytes;
            at += 1;
            match compiled.step {
                Step::Verdict(verdict) => return fate(verdict),
                Step::Reject(code) => return Fate::Reject(code),
                Step::Return => at = usize::MAX,
                Step::Jump(to) => {
                    if depth == DEPTH {
                        return Fate::Drop;
                    }
                    back[depth] = (chain as u32, at as u32);
                    depth += 1;
                    (chain, at) = (to as usize, 0);
                }
                Step::Goto(to) => (chain, at) = (to as usize, 0),
                Step::Edit(edit) => change(edit, skb, way),
                Step::Notrack => Way::untrack(skb),
                Step::Zone(zone) if skb.rare().ct.is_none() => {
                    let zone = match zone {
                        ZoneOf::Number(n) => n,
                        // `nf_ct_zone_tmpl`: its lower half.
                        _ => skb.mark as u16,
                    };
                    skb.rare_mut().ct_zone = zone;
                }
                Step::Zone(_) => {}
                Step::Nat(nat) => return nat.apply(skb, way),
                Step::Set(set) => set.apply(skb, way),
                Step::Mss(mss) => {
                    if !mss.target(skb, way) {
                        return Fate::Drop;
                    }
                }
                Step::None => {}
            }
        }
    }
}

fn fate(verdict: Verdict) -> Fate {
    match verdict {
        Verdict::Accept => Fate::Accept,
        Verdict::Drop => Fate::Drop,
    }
}

/// Targets after which a packet goes on.
fn change(edit: Edit, skb: &mut Skb, way: &mut Way<'_>) {
    match edit {
        Edit::Mark { value, mask } => skb.mark = (skb.mark & !mask) ^ value,
        Edit::Tos { value, mask } => set_tos(skb, |tos| (tos & !mask) ^ value),
        Edit::Dscp(dscp) => set_tos(skb, |tos| (tos & 0x03) | dscp << 2),
        Edit::Classify(class) => skb.priority = class.0,
        Edit::Connmark { op, value, ctmask, nfmask, shift } => {
            connmark(op, value, ctmask, nfmask, shift, skb, way);
        }
        Edit::Ttl { op, value } => set_ttl(skb, |ttl| match op {
            '+' => ttl.saturating_add(value),
            '-' => ttl.saturating_sub(value),
            _ => value,
        }),
        Edit::Ecn { ece, cwr, ect } => {
            if let Some(ect) = ect {
                set_tos(skb, |tos| (tos & !3) | ect);
            }
            if let L4::Tcp(t) = &mut skb.l4 {
                for (bit, on) in [(TcpFlags::ECE, ece), (TcpFlags::CWR, cwr)] {
                    match on {
                        Some(true) => t.flags = t.flags.with(bit),
                        Some(false) => t.flags.0 &= !bit.0,
                        None => {}
                    }
                }
            }
        }
    }
}

/// `connmark_tg_shift`.
fn connmark(op: Connmark, value: u32, ctmask: u32, nfmask: u32, shift: i8, skb: &mut Skb, way: &mut Way<'_>) {
    let id = way.known(skb).id;
    let Some(c) = way.tracking.get_mut(id) else { return };
    let moved = |mark: u32| match shift {
        s if s > 0 => mark.checked_shl(s as u32).unwrap_or(0),
        s => mark.checked_shr(s.unsigned_abs().into()).unwrap_or(0),
    };
    match op {
        Connmark::Set => c.mark = moved((c.mark & !ctmask) ^ value),
        Connmark::Save => c.mark = (c.mark & !ctmask) ^ moved(skb.mark & nfmask),
        Connmark::Restore => skb.mark = (skb.mark & !nfmask) ^ moved(c.mark & ctmask),
    }
}

pub(super) fn set_tos(skb: &mut Skb, f: impl Fn(u8) -> u8) {
    match &mut skb.l3 {
        L3::Ipv4(h) => h.tos = f(h.tos),
        L3::Ipv6(h) => h.traffic_class = f(h.traffic_class),
        _ => {}
    }
}

pub(super) fn set_ttl(skb: &mut Skb, f: impl Fn(u8) -> u8) {
    match &mut skb.l3 {
        L3::Ipv4(h) => h.ttl = f(h.ttl),
        L3::Ipv6(h) => h.hop_limit = f(h.hop_limit),
        _ => {}
    }
}

/// `ip_packet_match` and the extensions in order.
#[inline]
fn fits(rule: &Rule, memory: &mut [Memory], skb: &Skb, way: &mut Way<'_>) -> bool {
    let Some(ip) = Ip::of(skb) else { return false };
    if let Some((number, invert)) = rule.protocol
        && (ip.protocol == number) == invert
    {
        return false;
    }
    if rule.src.is_some_and(|a| !a.matches(ip.src)) || rule.dst.is_some_and(|a| !a.matches(ip.dst)) {
        return false;
    }
    if rule.input.as_ref().is_some_and(|i| !i.matches(way.devices.input)) {
        return false;
    }
    if rule.output.as_ref().is_some_and(|o| !o.matches(way.devices.output)) {
        return false;
    }
    if let Some(invert) = rule.fragment
        && ip.later_fragment == invert
    {
        return false;
    }
    for (i, m) in rule.matches.iter().enumerate() {
        let fits = match m {
            Match::Limit { period, burst } => {
                memory.get_mut(i).is_some_and(|c| limit(c, *period, *burst, way))
            }
            Match::Statistic { mode, invert } => {
                memory.get_mut(i).is_some_and(|c| statistic(c, *mode, way) != *invert)
            }
            Match::Worded(_, asks) => asks::fits(asks, memory.get_mut(i), skb, &ip, way),
            _ => match_one(m, skb, &ip, way),
        };
        if !fits {
            return false;
        }
    }
    true
}

/// Source and destination port.
pub(super) fn ports(skb: &Skb) -> Option<(u16, u16)> {
    match skb.l4 {
        L4::Tcp(t) => Some((t.sport, t.dport)),
        L4::Udp(u) => Some((u.sport, u.dport)),
        _ => None,
    }
}

fn match_one(m: &Match, skb: &Skb, ip: &Ip, way: &mut Way<'_>) -> bool {
    match m {
        Match::Tcp(t) => match skb.l4 {
            L4::Tcp(tcp) => {
                let flags = (tcp.flags.byte() & t.flags.0 == t.flags.1) != t.invert_flags;
                let option = t.option.is_none_or(|(kind, invert)| has_option(&tcp, kind) != invert);
                t.sport.matches(tcp.sport) && t.dport.matches(tcp.dport) && flags && option
            }
            _ => false,
        },
        Match::Udp(s, d) => match skb.l4 {
            L4::Udp(udp) => s.matches(udp.sport) && d.matches(udp.dport),
            _ => false,
        },
        Match::Icmp { ty, code, invert } => match skb.l4 {
            L4::Icmp(i) => {
                let any = *ty == 255 && ip.protocol == 1;
                let fits = any || i.ty == *ty && (code.0..=code.1).contains(&i.code);
                fits != *invert && matches!(ip.protocol, 1 | 58)
            }
            _ => false,
        },
        Match::Mark { mark, mask, invert } => (skb.mark & mask == *mark) != *invert,
        Match::Connmark { mark, mask, invert } => {
            let id = way.known(skb).id;
            way.tracking.get(id).is_some_and(|c| (c.mark & mask == *mark) != *invert)
        }
        Match::Multiport { kind, ports: list, invert } => {
            let Some((source, destination)) = ports(skb) else { return false };
            let any = list.iter().any(|range| match kind {
                PortKind::Source => range.holds(source),
                PortKind::Destination => range.holds(destination),
                PortKind::Either => range.holds(source) || range.holds(destination),
            });
            any != *invert
        }
        Match::Dscp { dscp, invert } => (ip.tos >> 2 == *dscp) != *invert,
        Match::Tos { value, mask, invert } => (ip.tos & mask == *value) != *invert,
        Match::Ecn { ece, cwr, ect } => {
            let flag = |bit: TcpFlags, wanted: &Option<bool>| match (wanted, skb.l4) {
                (None, _) => true,
                (Some(invert), L4::Tcp(t)) => t.flags.has(bit) != *invert,
                _ => false,
            };
            let ip_fits = ect.is_none_or(|(ect, invert)| (ip.tos & 3 == ect) != invert);
            ip_fits && flag(TcpFlags::ECE, ece) && flag(TcpFlags::CWR, cwr)
        }
        Match::Length { min, max, invert } => {
            // IPv6's length is the payload's, and the header's 40 bytes.
            let len = skb.network_len();
            (u32::from(*min) <= len && len <= u32::from(*max)) != *invert
        }
        Match::Ttl { ttl, mode } => match mode {
            -1 => ip.ttl < *ttl,
            0 => ip.ttl == *ttl,
            1 => ip.ttl > *ttl,
            _ => ip.ttl != *ttl,
        },
        Match::Conntrack(c) => conntrack(c, skb, way),
        Match::Connbytes { from, to, what, dir } => connbytes(*from, *to, *what, *dir, skb, way),
        Match::Mac { mac, invert } => way.devices.input != "lo" && (skb.eth.0 == *mac) != *invert,
        Match::Iprange { src, dst } => {
            let within = |range: &Option<(u128, u128, bool)>, addr: u128| {
                range.is_none_or(|(from, to, invert)| (from..=to).contains(&addr) != invert)
            };
            within(src, ip.src) && within(dst, ip.dst)
        }
        Match::Addrtype { src, dst, limit_in, limit_out } => {
            let dev = match (way.devices.ports, limit_in, limit_out) {
                (Some(ports), true, _) => ports.iif,
                (Some(ports), _, true) => ports.oif,
                _ => 0,
            };
            let fits = |(types, invert): (u16, bool), addr: u128| {
                let six = matches!(skb.l3, L3::Ipv6(_));
                let of =
                    if six { address_type6(addr, way.devices) } else { address_type(addr, dev, way.devices) };
                types == 0 || (types & 1 << of != 0) != invert
            };
            fits(*src, ip.src) && fits(*dst, ip.dst)
        }
        Match::Pkttype { ty, invert } => (packet_type(skb) == *ty) != *invert,
        Match::U32 { tests, invert } => tests.iter().all(|t| u32_test(t, skb)) != *invert,
        Match::Comment(_) => true,
        Match::Limit { .. } | Match::Statistic { .. } | Match::Worded(..) | Match::Plain(_) => false,
    }
}

/// TCP options that are modelled: MSS 2, window scale 3, SACK permitted 4, SACK 5, timestamps 8.
fn has_option(t: &penstock_packet::Tcp, kind: u8) -> bool {
    match kind {
        2 => t.mss.is_some(),
        3 => t.wscale.is_some(),
        4 => t.sack_permitted,
        5 => t.sack_count > 0,
        8 => t.timestamps.is_some(),
        _ => false,
    }
}

/// Credits of a tick: the greatest power of two of which a day's fit 32 bits (`CREDITS_PER_JIFFY`).
fn credits_of_a_tick(hz: u32) -> u32 {
    1 << (u32::MAX / (hz * 86_400)).ilog2()
}
/// Ten thousandths of a second in credits (`user2credits`).
pub(super) fn limit_credits(user: u32, hz: u32) -> u32 {
    let second = hz * credits_of_a_tick(hz);
    match user > u32::MAX / second {
        true => (user / 10_000).wrapping_mul(second),
        false => user * second / 10_000,
    }
}

/// `limit_mt`: a packet costs the average gap; credit grows with each tick up to the burst.
fn limit(c: &mut Memory, period: u32, burst: u32, way: &Way<'_>) -> bool {
    let hz = way.tracking.hz() as u32;
    let now = way.tracking.ticks(way.now);
    let cap = limit_credits(period.wrapping_mul(burst), hz);
    let (credit, tick) = match c.more {
        More::Limit(credit, tick) => (credit, tick),
        _ => (cap, now),
    };
    let grown = ((now - tick) as u32).wrapping_mul(credits_of_a_tick(hz));
    let credit = credit.wrapping_add(grown).min(cap);
    let cost = limit_credits(period, hz);
    let enough = credit >= cost;
    c.more = More::Limit(if enough { credit - cost } else { credit }, now);
    enough
}

/// `nft_limit_eval`: a bucket of nanoseconds, full at first.
pub(super) fn bucket(c: &mut Memory, cost: i64, cap: i64, now: Time) -> bool {
    if !c.started {
        *c = Memory { credit: cap, previous: now, started: true, ..Memory::default() };
    }
    c.credit = c.credit.saturating_add((now - c.previous).as_ns()).min(cap);
    c.previous = now;
    let enough = c.credit >= cost;
    c.credit -= if enough { cost } else { 0 };
    enough
}

/// `statistic_mt`: before its inversion.
fn statistic(c: &mut Memory, mode: Statistic, way: &mut Way<'_>) -> bool {
    match mode {
        Statistic::Random(p) => way.dice.0.next_u32() >> 1 < p,
        Statistic::Nth { every, packet } => {
            let n = if c.started { c.count } else { every - 1 - packet };
            c.started = true;
            let last = n >= every - 1;
            c.count = if last { 0 } else { n + 1 };
            last
        }
    }
}

fn conntrack(c: &Conntrack, skb: &Skb, way: &mut Way<'_>) -> bool {
    let known = way.known(skb);
    let translated = way.tracking.get(known.id).map_or(0, |c| {
        let bit = |of: u16, bit: u8| if c.has(of) { bit } else { 0 };
        bit(status::SRC_NAT, state::SNAT) | bit(status::DST_NAT, state::DNAT)
    });
    if let Some((states, invert)) = c.states
        && (states & (known.state | translated) != 0) == invert
    {
        return false;
    }
    let Some(connection) = way.tracking.get(known.id) else {
        // Only the state can be asked of a packet without a connection.
        return c.states.is_some()
            && Conntrack { states: None, as_state: false, ..c.clone() } == Conntrack::default();
    };
    if c.reply.is_some_and(|reply| reply != known.reply) {
        return false;
    }
    let [original, answer] = connection.tuples;
    if let Some((number, invert)) = c.protocol
        && (original.protocol == number) == invert
    {
        return false;
    }
    let addrs = [original.src, original.dst, answer.src, answer.dst];
    let ports = [original.sport, original.dport, answer.sport, answer.dport];
    if !c
        .addrs
        .iter()
        .zip(addrs)
        .all(|(a, addr)| a.is_none_or(|a| ((addr ^ a.addr) & a.mask == 0) != a.invert))
    {
        return false;
    }
    if !c.ports.iter().zip(ports).all(|(p, port)| p.is_none_or(|p| p.matches(port))) {
        return false;
    }
    if let Some((wanted, invert)) = c.status {
        let status = (connection.status & 0x0e) as u8;
        if (wanted & status != 0) == invert {
            return false;
        }
    }
    if let Some((from, to, invert)) = c.expire {
        let left = way.tracking.seconds_left(connection, way.now);
        if (i64::from(from)..=i64::from(to)).contains(&left) == invert {
            return false;
        }
    }
    true
}

fn connbytes(from: u64, to: u64, what: ConnCount, dir: ConnDir, skb: &Skb, way: &mut Way<'_>) -> bool {
    let id = way.known(skb).id;
    let Some(c) = way.tracking.get(id) else { return false };
    let of = |counts: [u64; 2]| match dir {
        ConnDir::Original => counts[0],
        ConnDir::Reply => counts[1],
        ConnDir::Both => counts[0] + counts[1],
    };
    let value = match what {
        ConnCount::Packets => of(c.packets),
        ConnCount::Bytes => of(c.bytes),
        ConnCount::Average => of(c.bytes).checked_div(of(c.packets)).unwrap_or(0),
    };
    match from <= to {
        true => (from..=to).contains(&value),
        false => value < to || value > from,
    }
}

/// The place of an address's kind in `iptables::ADDR_TYPES`: of a route of the local table, where that uses a device (0: any).
//= linux v6.12 net/ipv4/fib_frontend.c __inet_dev_addr_type
pub(super) fn address_type(addr: u128, dev: u32, devices: Devices<'_>) -> u32 {
    let Ok(bits) = u32::try_from(addr) else { return 1 };
    let addr = Ipv4Addr::from(bits);
    if addr.is_multicast() {
        return 5;
    }
    if addr.is_unspecified() || addr.is_broadcast() {
        return 3;
    }
    let route = devices.fib.and_then(|f| {
        let table = f.l3mdevs().of(dev).table;
        f.find_in(if table == 0 { LOCAL } else { table }, &Key::to(addr))
    });
    match route.filter(|r| dev == 0 || r.nexthops.first().map_or(r.dev, |h| h.dev) == dev).map(|r| r.kind) {
        Some(RouteKind::Local) => 2,
        Some(RouteKind::Broadcast) => 3,
        _ => 1,
    }
}

/// The same of IPv6 (`match_lookup_rt6`).
pub(super) fn address_type6(addr: u128, devices: Devices<'_>) -> u32 {
    if addr >> 120 == 0xff {
        return 5;
    }
    match devices.fib6.and_then(|f| f.find(addr.into())).map_or(1, |r| r.kind) {
        kind @ (2 | 4 | 7) => kind.into(),
        _ => 1,
    }
}

/// `skb->pkt_type`: to this host, broadcast, multicast; packets for others never come so far.
pub(super) fn packet_type(skb: &Skb) -> u8 {
    let to = skb.eth.1;
    match to {
        [0xff, 0xff, 0xff, 0xff, 0xff, 0xff] => 1,
        _ if to[0] & 1 == 1 => 2,
        _ => 0,
    }
}

/// `u32_match_it` on the headers; bytes of the payload are 0, and past the packet's end nothing matches.
fn u32_test(test: &U32Test, skb: &Skb) -> bool {
    let mut bytes = [0u8; penstock_packet::skb::HEADER_MAX];
    let written = skb.header_bytes(&mut bytes);
    let end = u64::from(skb.network_len());
    let read = |at: u64| -> Option<u32> {
        if at + 4 > end {
            return None;
        }
        let byte = |i: u64| {
            let place = (at + i + 14) as usize;
            if place < written { bytes[place] } else { 0 }
        };
        Some(u32::from_be_bytes([byte(0), byte(1), byte(2), byte(3)]))
    };
    let mut base = 0u64;
    let mut value = 0u32;
    for (i, (op, number)) in test.steps.iter().enumerate() {
        match (i, op) {
            (0, _) => match read(u64::from(*number)) {
                Some(v) => value = v,
                None => return false,
            },
            (_, '&') => value &= number,
            (_, '<') => value = value.checked_shl(*number).unwrap_or(0),
            (_, '>') => value = value.checked_shr(*number).unwrap_or(0),
            _ => {
                base += u64::from(value);
                match read(base + u64::from(*number)) {
                    Some(v) => value = v,
                    None => return false,
                }
            }
        }
    }
    test.values.iter().any(|(from, to)| (*from..=*to).contains(&value))
}
