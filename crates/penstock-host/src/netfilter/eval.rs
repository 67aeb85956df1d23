//! A packet's way through a table.
//!
//! Follows: linux v6.12 `ip_tables.c` `ipt_do_table`, `ip_packet_match`; `xt_tcpudp.c`, `xt_mark.c`,
//! `xt_multiport.c`, `xt_dscp.c`, `xt_length.c`, `xt_limit.c`, `xt_DSCP.c`, `xt_CLASSIFY.c`.

use super::{Credit, Devices, Hook, Step, TableState};
use penstock_lang::iptables::{Match, PortKind, Rule, Table, Verdict};
use penstock_model::Time;
use penstock_packet::{Ipv4, L3, L4, Skb};

/// Chains within chains; deeper ones cannot be, loops are refused when a rule is made.
const DEPTH: usize = 64;

impl TableState {
    /// Takes a packet through the built-in chain of `hook`.
    pub(super) fn run(&mut self, hook: Hook, skb: &mut Skb, devices: Devices<'_>, now: Time) -> Verdict {
        let entry = match (self.table, hook) {
            (Table::Mangle, hook) => hook as usize,
            (Table::Filter, Hook::Prerouting | Hook::Postrouting) => return Verdict::Accept,
            (Table::Filter, hook) => hook as usize - 1,
        };
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
                return last.policy.unwrap_or(Verdict::Accept);
            };
            let compiled = &mut self.compiled[chain][at];
            if !fits(&counted.rule, &mut compiled.credit, skb, devices, now) {
                at += 1;
                continue;
            }
            counted.packets += 1;
            counted.bytes += bytes;
            at += 1;
            match compiled.step {
                Step::None => {}
                Step::Verdict(verdict) => return verdict,
                Step::Return => at = usize::MAX,
                Step::Jump(to) => {
                    if depth == DEPTH {
                        return Verdict::Drop;
                    }
                    back[depth] = (chain as u32, at as u32);
                    depth += 1;
                    (chain, at) = (to as usize, 0);
                }
                Step::Goto(to) => (chain, at) = (to as usize, 0),
                Step::Mark { value, mask } => skb.mark = (skb.mark & !mask) ^ value,
                Step::Tos { value, mask } => set_tos(skb, |tos| (tos & !mask) ^ value),
                Step::Dscp(dscp) => set_tos(skb, |tos| (tos & 0x03) | dscp << 2),
                Step::Classify(class) => skb.priority = class,
            }
        }
    }
}

fn set_tos(skb: &mut Skb, f: impl Fn(u8) -> u8) {
    if let L3::Ipv4(h) = &mut skb.l3 {
        h.tos = f(h.tos);
    }
}

/// `ip_packet_match` and the extensions in order.
#[inline]
fn fits(rule: &Rule, credit: &mut Credit, skb: &Skb, devices: Devices<'_>, now: Time) -> bool {
    let L3::Ipv4(h) = skb.l3 else { return false };
    if let Some((number, invert)) = rule.protocol
        && (h.protocol == number) == invert
    {
        return false;
    }
    if rule.src.is_some_and(|a| !a.matches(h.src)) || rule.dst.is_some_and(|a| !a.matches(h.dst)) {
        return false;
    }
    if rule.input.as_ref().is_some_and(|i| !i.matches(devices.input)) {
        return false;
    }
    if rule.output.as_ref().is_some_and(|o| !o.matches(devices.output)) {
        return false;
    }
    if let Some(invert) = rule.fragment
        && (h.frag_off & crate::fragment::IP_OFFSET != 0) == invert
    {
        return false;
    }
    rule.matches.iter().all(|m| match_one(m, credit, skb, &h, now))
}

fn ports(skb: &Skb) -> Option<(u16, u16)> {
    match skb.l4 {
        L4::Tcp(t) => Some((t.sport, t.dport)),
        L4::Udp(u) => Some((u.sport, u.dport)),
        _ => None,
    }
}

#[inline]
fn match_one(m: &Match, credit: &mut Credit, skb: &Skb, h: &Ipv4, now: Time) -> bool {
    match m {
        Match::Tcp(t) => match skb.l4 {
            L4::Tcp(tcp) => {
                let flags = (tcp.flags.0 & t.flags.0 == t.flags.1) != t.invert_flags;
                t.sport.matches(tcp.sport) && t.dport.matches(tcp.dport) && flags
            }
            _ => false,
        },
        Match::Udp(s, d) => match skb.l4 {
            L4::Udp(udp) => s.matches(udp.sport) && d.matches(udp.dport),
            _ => false,
        },
        Match::Icmp { ty, code, invert } => match skb.l4 {
            L4::Icmp(i) => {
                ((*ty == 255 || i.ty == *ty && (code.0..=code.1).contains(&i.code)) != *invert)
                    && h.protocol == 1
            }
            _ => false,
        },
        Match::Mark { mark, mask, invert } => (skb.mark & mask == *mark) != *invert,
        Match::Multiport { kind, ports: list, invert } => {
            let Some((source, destination)) = ports(skb) else { return false };
            let any = list.iter().any(|range| match kind {
                PortKind::Source => range.holds(source),
                PortKind::Destination => range.holds(destination),
                PortKind::Either => range.holds(source) || range.holds(destination),
            });
            any != *invert
        }
        Match::Dscp { dscp, invert } => (h.tos >> 2 == *dscp) != *invert,
        Match::Tos { value, mask, invert } => (h.tos & mask == *value) != *invert,
        Match::Length { min, max, invert } => {
            let len = skb.network_len();
            (u32::from(*min) <= len && len <= u32::from(*max)) != *invert
        }
        Match::Ttl { ttl, mode } => match mode {
            -1 => h.ttl < *ttl,
            0 => h.ttl == *ttl,
            1 => h.ttl > *ttl,
            _ => h.ttl != *ttl,
        },
        Match::Limit { amount, per_s, burst } => limit(credit, *amount, *per_s, *burst, now),
        Match::Comment(_) => true,
    }
}

/// `limit_mt`: a packet costs the average gap, in nanoseconds; credit grows with time up to the burst.
fn limit(c: &mut Credit, amount: u32, per_s: u32, burst: u32, now: Time) -> bool {
    let cost = i64::from(per_s) * 1_000_000_000 / i64::from(amount.max(1));
    let cap = cost.saturating_mul(i64::from(burst));
    if !c.started {
        *c = Credit { credit: cap, previous: now, started: true };
    }
    c.credit = c.credit.saturating_add((now - c.previous).as_ns()).min(cap);
    c.previous = now;
    if c.credit < cost {
        return false;
    }
    c.credit -= cost;
    true
}
