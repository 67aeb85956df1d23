//! The longest wait that is promised is never passed, however packets come; and in simple cases it is not twice what is seen.

use penstock_check::explain::{device, root_wait, wait};
use penstock_check::{Settings, facts};
use penstock_lang::tc::{self, Command};
use penstock_lang::token::Line;
use penstock_model::{Handle, Kernel, Rng, Time};
use penstock_packet::headers::{Ipv4, Udp};
use penstock_packet::{L3, L4, Skb};
use penstock_sched::{Actions, Cx, Device, Ledger, Tree};
use penstock_shell::Script;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Numbers in a fixed order.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }
}

fn skb(class: u32, len: u32, seq: u64) -> Skb {
    Skb {
        priority: class,
        seq,
        ..Skb::new(
            len,
            L3::Ipv4(Ipv4::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), 17)),
            L4::Udp(Udp { sport: 1000, dport: 2000 }),
        )
    }
}

/// Runs a set of commands on a link of `link` bytes a second with packets that come in bursts; the longest wait by class, ns.
fn run(text: &str, link: u64, classes: &[u32], dice: &mut Dice, simple: bool) -> BTreeMap<u32, u64> {
    let mut tree = Tree::new(Device {
        ifindex: 2,
        mtu: 1500,
        hard_header_len: 14,
        tx_queue_len: 1000,
        tx_queues: 1,
        speed_mbit: None,
        kernel: Kernel::V6_12,
        clock: penstock_model::PschedClock::default(),
        hz: Kernel::V6_12.hz(),
    });
    let (mut rng, mut drops, mut acts) = (Rng::named(1, "test"), Ledger::new(), Actions::new());
    for line in text.lines() {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let commands = tc::parse(&Line::of_words(&words).words, Kernel::V6_12).unwrap();
        let mut cx = Cx { now: Time::ZERO, rng: &mut rng, drops: &mut drops, acts: &mut acts };
        match &commands[0] {
            Command::Qdisc { req, .. } => tree.qdisc(req, &mut cx).unwrap(),
            Command::Class { req, .. } => tree.class(req, &mut cx).unwrap(),
            other => panic!("{other:?}"),
        };
    }
    // When packets come: bursts and pauses, all classes at once or one after the other.
    let mut comes: Vec<(u64, u32, u32)> = Vec::new();
    let mut at = 0;
    while comes.len() < 400 && at < 60_000_000_000 {
        let greedy = simple || dice.below(3) == 0;
        at += if greedy { dice.below(2_000_000) } else { dice.below(60_000_000) };
        for &class in classes {
            if simple || dice.below(3) > 0 {
                for _ in 0..1 + dice.below(if greedy { 40 } else { 8 }) {
                    let len = if simple || dice.below(2) == 0 { 1514 } else { 60 + dice.below(1400) as u32 };
                    comes.push((at, class, len));
                }
            }
        }
    }
    let mut queued: BTreeMap<u64, (u64, u32)> = BTreeMap::new();
    let mut worst: BTreeMap<u32, u64> = BTreeMap::new();
    let (mut next, mut free, mut now) = (0, 0u64, 0u64);
    loop {
        while let Some(&(when, class, len)) = comes.get(next).filter(|c| c.0 <= now) {
            let mut cx =
                Cx { now: Time::from_ns(now as i64), rng: &mut rng, drops: &mut drops, acts: &mut acts };
            queued.insert(next as u64, (when, class));
            tree.enqueue(Box::new(skb(class, len, next as u64)), &mut cx);
            next += 1;
        }
        if now >= free {
            let mut cx =
                Cx { now: Time::from_ns(now as i64), rng: &mut rng, drops: &mut drops, acts: &mut acts };
            if let Some(skb) = tree.dequeue(&mut cx) {
                free = now + (u64::from(skb.len) * 1_000_000_000).div_ceil(link);
                let (when, class) = queued[&skb.seq];
                let waited = free - when;
                worst.entry(class).and_modify(|w| *w = waited.max(*w)).or_insert(waited);
            }
        }
        let arrival = comes.get(next).map(|c| c.0);
        if arrival.is_none() && tree.qlen() == 0 {
            return worst;
        }
        let wake = if free > now {
            Some(free)
        } else {
            tree.next_wakeup().map(|t| t.as_ns() as u64).map(|t| if t > now { t } else { now + POLL })
        };
        // A packet that may not be sent yet has a time when it may.
        now = arrival.into_iter().chain(wake).min().expect("a packet waits for ever");
    }
}

/// How soon the device asks again where the qdisc names no later moment, ns; a wait may seem that much longer.
const POLL: u64 = 10_000;

/// Random HTB, tbf and prio set-ups. `PENSTOCK_RUNS` says how many; the test takes 300 of them.
#[test]
fn no_packet_waits_longer_than_promised() {
    let runs: u64 = std::env::var("PENSTOCK_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(300);
    let mut dice = Dice(11);
    let mut held = 0;
    for round in 0..runs {
        let link = [125_000, 1_250_000, 2_500_000, 12_500_000][dice.below(4) as usize];
        let bits = link * 8 / 1000;
        let (text, classes) = match dice.below(6) {
            0 => {
                let limit = 3000 + dice.below(60_000);
                let rate = bits * (30 + dice.below(60)) / 100;
                let burst = 1600 + dice.below(20_000);
                (
                    format!(
                        "tc qdisc add dev eth0 root handle 1: tbf rate {rate}kbit burst {burst} limit {limit}\n"
                    ),
                    vec![0],
                )
            }
            1 => {
                let limit = 2 + dice.below(40);
                let text = format!(
                    "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 parent 1:1 pfifo limit {limit}\n"
                );
                (text, vec![0x1_0001, 0x1_0002])
            }
            _ => {
                let n = 1 + dice.below(5);
                let mut text = format!(
                    "tc qdisc add dev eth0 root handle 1: htb\ntc class add dev eth0 parent 1: classid 1:1 htb rate {bits}kbit\n"
                );
                let mut left = 100;
                let mut classes = Vec::new();
                for i in 0..n {
                    let share = if i + 1 == n { left } else { 1 + dice.below(left - (n - i) + 1) };
                    left -= share;
                    let ceil = if dice.below(2) == 0 { bits * share / 100 } else { bits };
                    let burst = if dice.below(2) == 0 {
                        String::new()
                    } else {
                        format!(" burst {}", 1600 + dice.below(30_000))
                    };
                    let prio = dice.below(3);
                    text += &format!(
                        "tc class add dev eth0 parent 1:1 classid 1:{:x} htb rate {}kbit ceil {ceil}kbit prio {prio} quantum 1514{burst}\n",
                        16 + i,
                        (bits * share / 100).max(8)
                    );
                    text += &format!(
                        "tc qdisc add dev eth0 parent 1:{:x} pfifo limit {}\n",
                        16 + i,
                        2 + dice.below(40)
                    );
                    classes.push(0x1_0010 + i as u32);
                }
                (text, classes)
            }
        };
        let facts = facts(
            &Script { text: text.clone(), ..Script::default() },
            &Settings { rate: Some(link), ..Settings::default() },
        );
        let eth0 = device(&facts, "eth0").unwrap();
        let seen = run(&text, link, &classes, &mut dice, false);
        for (class, worst) in seen {
            let promised = match eth0.class(Handle(class)) {
                Some(class) => wait(eth0, class, Some(link)),
                None => root_wait(eth0, Some(link)),
            };
            let Some(promised) = promised else { continue };
            held += 1;
            assert!(
                worst <= promised.ns + 10 * POLL,
                "round {round}: class {class:x} {worst} ns, promised {promised:?}\n{text}"
            );
        }
    }
    assert!(held > runs / 2, "{held} of {runs}");
}

#[track_caller]
fn within_two(text: &str, link: u64, class: u32) {
    let facts = facts(
        &Script { text: text.to_owned(), ..Script::default() },
        &Settings { rate: Some(link), ..Settings::default() },
    );
    let eth0 = device(&facts, "eth0").unwrap();
    let all: Vec<u32> = if class == 0 {
        vec![0]
    } else {
        eth0.classes.iter().filter(|c| c.children.is_empty()).map(|c| c.id.0).collect()
    };
    let seen = run(text, link, &all, &mut Dice(3), true)[&class];
    let promised = match eth0.class(Handle(class)) {
        Some(class) => wait(eth0, class, Some(link)),
        None => root_wait(eth0, Some(link)),
    };
    let promised = promised.unwrap().ns;
    assert!(seen <= promised && promised <= 2 * seen, "seen {seen}, promised {promised}\n{text}");
}

#[test]
fn in_simple_cases_the_wait_is_not_twice_what_is_seen() {
    within_two("tc qdisc add dev eth0 root tbf rate 4mbit burst 5k limit 30000\n", 1_250_000, 0);
    within_two("tc qdisc add dev eth0 root pfifo limit 30\n", 1_250_000, 0);
    let head = "tc qdisc add dev eth0 root handle 1: htb\ntc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n";
    let one = format!(
        "{head}tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit burst 20k\ntc qdisc add dev eth0 parent 1:10 pfifo limit 30\n"
    );
    within_two(&one, 1_250_000, 0x1_0010);
    let two = format!(
        "{one}tc class add dev eth0 parent 1:1 classid 1:20 htb rate 6mbit burst 5k\ntc qdisc add dev eth0 parent 1:20 pfifo limit 30\n"
    );
    within_two(&two, 1_250_000, 0x1_0010);
}
