//! A packet's way through a chain of nft.

use super::super::Fate;
use super::super::asks::{Origin, ROOT};
use super::super::eval::{Ip, Way, packet_type, ports, set_tos, set_ttl};
use super::super::fib;
use super::super::mss::Mss;
use super::super::nat::Nat;
use super::super::state::Memory;
use super::found::{Lookup, is_key};
use super::live::Seen;
use super::state::passes;
use super::{Ruleset, TableState, generated};
use penstock_lang::iptables::extension::state;
use penstock_lang::nft::{Compare, Data, Expr, FibResult, Op, Statement, Verdict, types};
use penstock_packet::{L3, L4, Skb};

/// Chains within chains (`NFT_JUMP_STACK_SIZE`).
const DEPTH: usize = 16;

/// What became of a rule.
enum Step {
    Next,
    Verdict(Verdict),
    Fate(Fate),
}

impl Ruleset {
    /// Takes a packet through a base chain.
    pub(in crate::netfilter) fn run(
        &mut self,
        table: u32,
        chain: u32,
        skb: &mut Skb,
        way: &mut Way<'_>,
    ) -> Fate {
        let Some(state) = self.tables.get_mut(table as usize) else { return Fate::Accept };
        let entry = chain as usize;
        let base = state.chains[entry].base.as_ref();
        let policy = if base.is_some_and(|b| b.drop) { Fate::Drop } else { Fate::Accept };
        let mut back: Vec<(usize, usize)> = Vec::new();
        let (mut chain, mut at) = (entry, 0);
        loop {
            if at >= state.chains[chain].rules.len() {
                match back.pop() {
                    Some(place) => (chain, at) = place,
                    None => return policy,
                }
                continue;
            }
            let step = state.rule(chain, at, skb, way);
            at += 1;
            if way.hotdrop {
                return Fate::Drop;
            }
            match step {
                Step::Next | Step::Verdict(Verdict::Continue) => {}
                Step::Fate(fate) => return fate,
                Step::Verdict(Verdict::Accept) => return Fate::Accept,
                Step::Verdict(Verdict::Drop) => return Fate::Drop,
                Step::Verdict(Verdict::Return) => at = usize::MAX,
                Step::Verdict(Verdict::Jump(name)) => {
                    if back.len() >= DEPTH {
                        return Fate::Drop;
                    }
                    if let Some(to) = state.chain(&name) {
                        back.push((chain, at));
                        (chain, at) = (to, 0);
                    }
                }
                Step::Verdict(Verdict::Goto(name)) => {
                    if let Some(to) = state.chain(&name) {
                        (chain, at) = (to, 0);
                    }
                }
            }
        }
    }
}

impl TableState {
    /// One rule's statements, as far as they hold.
    fn rule(&mut self, chain: usize, at: usize, skb: &mut Skb, way: &mut Way<'_>) -> Step {
        let mut state = std::mem::take(&mut self.chains[chain].rules[at].rule.statements);
        let mut memory = std::mem::take(&mut self.chains[chain].rules[at].memory);
        let mut step = Step::Next;
        for (i, statement) in state.iter_mut().enumerate() {
            let mut none = Memory::default();
            let mem = memory.get_mut(i).unwrap_or(&mut none);
            match self.statement(statement, mem, skb, way) {
                Some(Step::Next) => {}
                Some(other) => {
                    step = other;
                    break;
                }
                None => break,
            }
        }
        let slot = &mut self.chains[chain].rules[at];
        slot.rule.statements = state;
        slot.memory = memory;
        step
    }

    /// `None` where the rule goes no further.
    fn statement(
        &mut self,
        s: &mut Statement,
        mem: &mut Memory,
        skb: &mut Skb,
        way: &mut Way<'_>,
    ) -> Option<Step> {
        match s {
            Statement::Match(left, how, right) => {
                let seen = self.look(left, mem, skb, way)?;
                self.holds(&seen, *how, right, skb, way).then_some(Step::Next)
            }
            Statement::Set(left, right) => {
                let seen = self.look(right, mem, skb, way)?;
                if let [Seen::Number(n)] = seen[..] {
                    put(left, n, skb, way);
                }
                Some(Step::Next)
            }
            Statement::Counter(..) | Statement::Limit(_) | Statement::Quota(_) | Statement::Count { .. } => {
                passes(s, mem, skb, way).then_some(Step::Next)
            }
            Statement::Object(kind, name, _) => {
                let object = self.objects.iter_mut().find(|o| o.kind == *kind && o.name == *name)?;
                passes(&mut object.state.statement, &mut object.state.memory, skb, way).then_some(Step::Next)
            }
            Statement::Dynset(d) => {
                let seen = self.look(&d.key, mem, skb, way)?;
                let data = match &d.data {
                    Some(data) => Some(self.look(data, mem, skb, way)?),
                    None => None,
                };
                let set = self.sets.iter_mut().find(|s| s.name == d.set)?;
                set.kept.by_packet(&set.set, d, (&seen, data.as_deref()), skb, way).then_some(Step::Next)
            }
            Statement::Verdict(v) => Some(Step::Verdict(v.clone())),
            Statement::Vmap(key, map) => {
                let seen = self.look(key, mem, skb, way)?;
                match self.consult(map, &seen, false, skb, way) {
                    Lookup::Found(Some(Data::Verdict(v))) => Some(Step::Verdict(v.clone())),
                    Lookup::Broke => None,
                    // What is not in the map goes on in the rule.
                    _ => Some(Step::Next),
                }
            }
            Statement::Reject(text, code) => Some(Step::Fate(Fate::Reject(code_of(text, *code, skb)))),
            Statement::Notrack => {
                Way::untrack(skb);
                Some(Step::Next)
            }
            Statement::Nat(text) => {
                let nat = Nat::of_statement(text);
                if nat.is_some_and(|nat| !nat.is_for(skb)) {
                    return Some(Step::Next);
                }
                Some(match nat.map(|nat| nat.apply(skb, way)) {
                    None | Some(Fate::Accept) => Step::Verdict(Verdict::Accept),
                    Some(fate) => Step::Fate(fate),
                })
            }
            Statement::Other(text) => match Mss::of_statement(text) {
                Some(mss) => mss.statement(skb, way).then_some(Step::Next),
                None => Some(Step::Next),
            },
            Statement::Log(_) => Some(Step::Next),
        }
    }

    /// What an expression gives, a part for each of a joined one.
    fn look(&mut self, e: &Expr, mem: &mut Memory, skb: &Skb, way: &mut Way<'_>) -> Option<Vec<Seen>> {
        let number = |n: u128| Some(vec![Seen::Number(n)]);
        match e {
            Expr::Meta("random") => number(way.dice.0.next_u32().into()),
            Expr::Meta(key) => meta(key, skb, way).map(|s| vec![s]),
            Expr::Ct(key, reply) => number(ct(key, *reply, skb, way)?),
            Expr::Fib { by, result: FibResult::Type } => number(fib::addr_type(*by, skb, way).into()),
            Expr::Fib { by, result } => {
                let ifindex = fib::oif(*by, skb, way)?;
                let name = || way.devices.ports.and_then(|p| p.devices.get(ifindex)).map(|d| d.name.clone());
                match result {
                    FibResult::Present => number((ifindex != 0).into()),
                    _ if ifindex == 0 => number(0),
                    _ => Some(vec![Seen::Name(name()?)]),
                }
            }
            Expr::Field(header, field) => number(header_field(header, field, skb)?),
            Expr::Numgen { random: true, modulus, offset } => {
                number(u128::from(way.dice.0.next_u32() % modulus + offset))
            }
            Expr::Numgen { modulus, offset, .. } => {
                let n = mem.count;
                mem.count = (n + 1) % modulus;
                number(u128::from(n + offset))
            }
            Expr::Hash { key, modulus, seed, offset } => {
                let hash = match key {
                    Some(key) => {
                        let seen = self.look(key, mem, skb, way)?;
                        let seed = seed.unwrap_or_else(|| generated::seed(mem, way));
                        generated::jhash(&seen, &types(key), seed)
                    }
                    None => generated::symhash(skb),
                };
                number(u128::from(generated::scaled(hash, *modulus).wrapping_add(*offset)))
            }
            Expr::Value(v, _) | Expr::Flags(v, _, _) => number(*v),
            Expr::Name(name) => Some(vec![Seen::Name(name.clone())]),
            Expr::Op(op, a, b) => {
                let (a, b) = (self.look(a, mem, skb, way)?, self.look(b, mem, skb, way)?);
                let ([Seen::Number(a)], [Seen::Number(b)]) = (&a[..], &b[..]) else { return None };
                number(match op {
                    Op::And => a & b,
                    Op::Or => a | b,
                    Op::Xor => a ^ b,
                    Op::Left => a.checked_shl(*b as u32).unwrap_or(0) & 0xffff_ffff,
                    Op::Right => a.checked_shr(*b as u32).unwrap_or(0),
                })
            }
            Expr::Map(key, map) => {
                let seen = self.look(key, mem, skb, way)?;
                let data = match self.consult(map, &seen, false, skb, way) {
                    Lookup::Found(Some(Data::Value(Expr::Value(n, _) | Expr::Flags(n, _, _)))) => {
                        return number(*n);
                    }
                    Lookup::Found(Some(Data::Value(v))) => v.clone(),
                    _ => return None,
                };
                self.look(&data, mem, skb, way)
            }
            Expr::Concat(all) => {
                let mut parts = Vec::new();
                for e in all {
                    parts.extend(self.look(e, mem, skb, way)?);
                }
                Some(parts)
            }
            Expr::Range(..) | Expr::Prefix(..) | Expr::Set(_) | Expr::Named(..) => None,
        }
    }

    fn holds(&mut self, seen: &[Seen], how: Compare, right: &Expr, skb: &Skb, way: &mut Way<'_>) -> bool {
        let not = how == Compare::Not;
        match self.consult(right, seen, not, skb, way) {
            Lookup::NoSet => {}
            Lookup::Absent => return not,
            Lookup::Broke => return false,
            Lookup::Found(_) => return !not,
        }
        let ordered = |f: fn(&u128, &u128) -> bool| match (seen, right) {
            ([Seen::Number(n)], Expr::Value(v, _)) => f(n, v),
            _ => false,
        };
        match how {
            Compare::Less => ordered(u128::lt),
            Compare::Greater => ordered(u128::gt),
            Compare::AtMost => ordered(u128::le),
            Compare::AtLeast => ordered(u128::ge),
            Compare::Without => match (seen, right) {
                // None of the flags.
                ([Seen::Number(n)], Expr::Flags(v, None, _)) => n & v == 0,
                _ => !is_key(seen, right),
            },
            Compare::Not => match (seen, right) {
                ([Seen::Number(n)], Expr::Flags(v, None, _)) => n != v,
                _ => !is_key(seen, right),
            },
            Compare::Equal => match (seen, right) {
                ([Seen::Number(n)], Expr::Flags(v, None, _)) => n == v,
                _ => is_key(seen, right),
            },
            Compare::Is => match (seen, right) {
                // Any of the flags.
                ([Seen::Number(n)], Expr::Flags(v, None, _)) => n & v != 0,
                _ => is_key(seen, right),
            },
        }
    }
}

fn meta(key: &str, skb: &Skb, way: &Way<'_>) -> Option<Seen> {
    let number = |n: u128| Some(Seen::Number(n));
    match key {
        "mark" => number(skb.mark.into()),
        "priority" => number(skb.priority.into()),
        "length" => number(skb.network_len().into()),
        "protocol" => number(skb.protocol().into()),
        "iifname" | "iif" => Some(Seen::Name(way.devices.input.to_owned())),
        "oifname" | "oif" => Some(Seen::Name(way.devices.output.to_owned())),
        "nfproto" => match skb.l3 {
            L3::Ipv4(_) => number(2),
            L3::Ipv6(_) => number(10),
            _ => None,
        },
        "l4proto" => number(Ip::of(skb)?.protocol.into()),
        "pkttype" => number(packet_type(skb).into()),
        // One processor.
        "cpu" => number(0),
        "nftrace" => number(0),
        // Only what a program sends has an owner.
        "skuid" | "skgid" if Origin::of(skb) == Origin::Program => number(ROOT.into()),
        _ => None,
    }
}

fn ct(key: &str, reply: Option<bool>, skb: &Skb, way: &mut Way<'_>) -> Option<u128> {
    let known = way.known(skb);
    if key == "state" {
        // nft's bits: invalid 1, established 2, related 4, new 8, untracked 64.
        return Some(match known.state {
            state::INVALID => 1,
            state::ESTABLISHED => 2,
            state::RELATED => 4,
            state::NEW => 8,
            _ => 64,
        });
    }
    if key == "zone" && known.id.is_none() {
        return Some(skb.rare().ct_zone.into());
    }
    let c = way.tracking.get(known.id)?;
    let of = |counts: [u64; 2]| match reply {
        Some(reply) => u128::from(counts[usize::from(reply)]),
        None => u128::from(counts[0]) + u128::from(counts[1]),
    };
    let o = c.tuples[usize::from(reply.unwrap_or(known.reply))];
    Some(match key {
        "mark" => c.mark.into(),
        "status" => c.status.into(),
        "zone" => o.zone.into(),
        "direction" => u128::from(known.reply),
        "id" => generated::connection(&c.tuples[0], known.id.unwrap_or(0)).into(),
        "l3proto" => {
            if matches!(skb.l3, L3::Ipv6(_)) {
                10
            } else {
                2
            }
        }
        "bytes" => of(c.bytes),
        "packets" => of(c.packets),
        "avgpkt" => of(c.bytes).checked_div(of(c.packets)).unwrap_or(0),
        "protocol" => o.protocol.into(),
        "saddr" => o.src,
        "daddr" => o.dst,
        "proto-src" => o.sport.into(),
        "proto-dst" => o.dport.into(),
        _ => return None,
    })
}

fn header_field(header: &str, field: &str, skb: &Skb) -> Option<u128> {
    let mac = |m: [u8; 6]| m.into_iter().fold(0u128, |all, b| all << 8 | u128::from(b));
    let ip = Ip::of(skb);
    Some(match (header, field) {
        ("ether", "saddr") => mac(skb.eth.0),
        ("ether", "daddr") => mac(skb.eth.1),
        ("ether", _) => skb.protocol().into(),
        ("ip", _) if !matches!(skb.l3, L3::Ipv4(_)) => return None,
        ("ip6", _) if !matches!(skb.l3, L3::Ipv6(_)) => return None,
        ("ip" | "ip6", "saddr") => ip?.src,
        ("ip" | "ip6", "daddr") => ip?.dst,
        ("ip", "protocol") => ip?.protocol.into(),
        ("ip6", "nexthdr") => match skb.l3 {
            L3::Ipv6(h) => h.next_header.into(),
            _ => return None,
        },
        ("ip" | "ip6", "dscp") => u128::from(ip?.tos >> 2),
        ("ip" | "ip6", "ecn") => u128::from(ip?.tos & 3),
        ("ip", "ttl") | ("ip6", "hoplimit") => ip?.ttl.into(),
        ("ip", "length") => skb.network_len().into(),
        ("ip6", "length") => u128::from(skb.network_len().saturating_sub(40)),
        ("ip", "version") => 4,
        ("ip6", "version") => 6,
        ("ip", "id") => match skb.l3 {
            L3::Ipv4(h) => h.id.into(),
            _ => return None,
        },
        ("ip", "frag-off") => match skb.l3 {
            L3::Ipv4(h) => h.frag_off.into(),
            _ => return None,
        },
        ("ip6", "flowlabel") => match skb.l3 {
            L3::Ipv6(h) => h.flow_label.into(),
            _ => return None,
        },
        // No packet here has another.
        ("exthdr", what) => match skb.l3 {
            L3::Ipv6(h) => u128::from(what == "frag" && h.fragment().is_some()),
            _ => return None,
        },
        ("frag", field) => {
            let L3::Ipv6(h) = skb.l3 else { return None };
            let fragment = h.fragment()?;
            match field {
                "nexthdr" => fragment.next_header.into(),
                "frag-off" => u128::from(fragment.offset() / 8),
                "reserved2" => u128::from(fragment.frag_off >> 1 & 3),
                "more-fragments" => fragment.more().into(),
                "id" => fragment.id.into(),
                _ => 0,
            }
        }
        ("tcp", _) => {
            let L4::Tcp(t) = skb.l4 else { return None };
            match field {
                "sport" => t.sport.into(),
                "dport" => t.dport.into(),
                "flags" => t.flags.0.into(),
                "sequence" => t.seq.into(),
                "ackseq" => t.ack.into(),
                "window" => t.window.into(),
                _ => return None,
            }
        }
        ("udp", _) => {
            let L4::Udp(u) = skb.l4 else { return None };
            match field {
                "sport" => u.sport.into(),
                "dport" => u.dport.into(),
                _ => match skb.rare().datagram {
                    Some(whole) => whole.into(),
                    None => u128::from(skb.len.saturating_sub(skb.headers_before_l4())),
                },
            }
        }
        ("th", "sport") => ports(skb)?.0.into(),
        ("th", "dport") => ports(skb)?.1.into(),
        ("icmp" | "icmpv6", field) => {
            let L4::Icmp(i) = skb.l4 else { return None };
            let wanted = if header == "icmp" { 1 } else { 58 };
            if ip?.protocol != wanted {
                return None;
            }
            if field == "type" { i.ty.into() } else { i.code.into() }
        }
        _ => return None,
    })
}

/// Changes what can be changed.
fn put(left: &Expr, n: u128, skb: &mut Skb, way: &mut Way<'_>) {
    match left {
        Expr::Meta("mark") => skb.mark = n as u32,
        Expr::Meta("priority") => skb.priority = n as u32,
        Expr::Ct("mark", _) => {
            let id = way.known(skb).id;
            if let Some(c) = way.tracking.get_mut(id) {
                c.mark = n as u32;
            }
        }
        // A template's: what already has a connection keeps it.
        Expr::Ct("zone", None) if skb.rare().ct.is_none() => skb.rare_mut().ct_zone = n as u16,
        Expr::Field("ip", "dscp") if matches!(skb.l3, L3::Ipv4(_)) => {
            set_tos(skb, |t| t & 3 | (n as u8) << 2)
        }
        Expr::Field("ip6", "dscp") if matches!(skb.l3, L3::Ipv6(_)) => {
            set_tos(skb, |t| t & 3 | (n as u8) << 2)
        }
        Expr::Field("ip", "ecn") if matches!(skb.l3, L3::Ipv4(_)) => set_tos(skb, |t| t & !3 | n as u8),
        Expr::Field("ip6", "ecn") if matches!(skb.l3, L3::Ipv6(_)) => set_tos(skb, |t| t & !3 | n as u8),
        Expr::Field("ip", "ttl") if matches!(skb.l3, L3::Ipv4(_)) => set_ttl(skb, |_| n as u8),
        Expr::Field("ip6", "hoplimit") if matches!(skb.l3, L3::Ipv6(_)) => set_ttl(skb, |_| n as u8),
        _ => {}
    }
}

/// The code a packet of IPv6 is rejected with: `icmpx` has names for both families.
//= linux v6.12 net/netfilter/nft_reject.c icmp_code_v6
fn code_of(text: &str, code: Option<u8>, skb: &Skb) -> Option<u8> {
    if !matches!(skb.l3, L3::Ipv6(_)) || text.contains("icmpv6") {
        return code;
    }
    code.map(|code| match code {
        1 => 3,
        3 => 4,
        13 => 1,
        other => other,
    })
}
