//! What the unit tests of this crate share: packets, a clock and a ledger.

use crate::act::{Actions, Look};
use crate::ledger::{DropReason, Ledger};
use crate::qdisc::{Cx, Device};
use penstock_model::rtnetlink::{FilterRequest, QdiscRequest, Verb};
use penstock_model::{Handle, Kernel, Options, PschedClock, Rng, Time, Value};
use penstock_packet::{Ipv4, L3, L4, Packet, Skb, Udp};
use std::net::Ipv4Addr;

/// Dice and a ledger.
pub struct Bench {
    pub rng: Rng,
    pub drops: Ledger,
    pub acts: Actions,
}

impl Bench {
    pub fn new() -> Bench {
        Bench { rng: Rng::named(1, "test"), drops: Ledger::new(), acts: Actions::new() }
    }
    /// The context of one call at `now_ns`.
    pub fn cx(&mut self, now_ns: i64) -> Cx<'_> {
        Cx { now: Time::from_ns(now_ns), rng: &mut self.rng, drops: &mut self.drops, acts: &mut self.acts }
    }
    /// What a dump at time 0 needs.
    pub fn look(&self) -> Look<'_> {
        Look { acts: &self.acts, now: Time::ZERO }
    }
    /// The ledger's entries as (seq, reason), emptied.
    pub fn dropped(&mut self) -> Vec<(u64, DropReason)> {
        self.drops.drain().map(|(p, r)| (p.seq, r)).collect()
    }
}

/// eth0 with MTU 1500 and txqueuelen 1000.
pub fn device(kernel: Kernel) -> Device {
    let clock = PschedClock::default();
    Device {
        ifindex: 2,
        mtu: 1500,
        hard_header_len: 14,
        tx_queue_len: 1000,
        tx_queues: 1,
        speed_mbit: None,
        kernel,
        clock,
        hz: kernel.hz(),
    }
}

/// A UDP packet of `len` bytes, 10.0.0.1:1000 to 10.0.0.2:2000.
pub fn packet(seq: u64, len: u32) -> Packet {
    Box::new(Skb {
        seq,
        ..Skb::new(
            len,
            L3::Ipv4(Ipv4::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), 17)),
            L4::Udp(Udp { sport: 1000, dport: 2000 }),
        )
    })
}

/// A packet behind an action with this control, on a device of this MTU: what it says, drops, overlimits.
pub fn running(act: &mut dyn crate::act::Act, skb: &mut Skb, control: i32, mtu: u32) -> (i32, u32, u32) {
    use crate::act::{Counts, Ports, Run};
    let mut counts = Counts::default();
    let mut run = Run {
        now: Time::ZERO,
        rng: &mut Rng::named(1, "act"),
        counts: &mut counts,
        hit: &mut crate::cls::Hit::default(),
        rate: None,
        ports: &Ports::of_mtu(mtu),
        sent: &mut Vec::new(),
        redirect: &mut None,
        index: 1,
        connections: None,
    };
    let said = act.act(skb, control, &mut run);
    (said, counts.stats.drops, counts.stats.overlimits)
}

fn verb(word: Option<&str>) -> Verb {
    match word {
        Some("add") => Verb::Add,
        Some("change") => Verb::Change,
        Some("replace") => Verb::Replace,
        Some("link") => Verb::Link,
        _ => Verb::Del,
    }
}

/// A request from words as tc has them: `add parent 1: prio 5 protocol 800 handle 800`; numbers but `prio` in hex.
pub fn filter(line: &str, kind: &str, options: Option<Options>) -> FilterRequest {
    let mut words = line.split_whitespace();
    let verb = verb(words.next());
    let (parent, kind) = (Handle::UNSPEC, Some(kind.to_owned()));
    let mut req = FilterRequest {
        block: 0,
        verb,
        parent,
        protocol: 0,
        prio: 0,
        chain: None,
        handle: 0,
        kind,
        options,
        estimator: None,
    };
    while let Some(word) = words.next() {
        let value = words.next().unwrap();
        match word {
            "parent" => req.parent = Handle::parse_classid(value).unwrap(),
            "prio" => req.prio = value.parse().unwrap(),
            "protocol" => req.protocol = u16::from_str_radix(value, 16).unwrap(),
            "handle" => req.handle = u32::from_str_radix(value, 16).unwrap(),
            _ => panic!("{word}"),
        }
    }
    req
}

/// A request from words as tc has them; numbers go to the kind as they stand.
pub fn qdisc(line: &str) -> QdiscRequest {
    let mut words = line.split_whitespace();
    let verb = verb(words.next());
    let (handle, parent) = (Handle::UNSPEC, Handle::UNSPEC);
    let mut req = QdiscRequest {
        verb,
        handle,
        parent,
        kind: None,
        options: None,
        estimator: None,
        stab: None,
        ingress_block: None,
        egress_block: None,
    };
    while let Some(word) = words.next() {
        match word {
            "root" => req.parent = Handle::ROOT,
            "parent" => req.parent = Handle::parse_classid(words.next().unwrap()).unwrap(),
            "handle" => req.handle = Handle::parse_classid(words.next().unwrap()).unwrap(),
            kind if req.kind.is_none() => req.kind = Some(kind.to_owned()),
            name => {
                let value = words.next().unwrap().parse().unwrap();
                req.options.get_or_insert_with(Options::new).set(name.to_owned().leak(), Value::U64(value));
            }
        }
    }
    req
}
