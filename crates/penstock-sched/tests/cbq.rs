//! What cbq promises of classes, in any traffic: random trees, random neighbours, a line of 10 Mbit/s.
//!
//! Floyd and Jacobson 1995, section II: a class with enough demand gets at least its allocated bandwidth over its
//! interval; what is over is shared as the tree says, and only by those who may borrow.

use crate::rig;

use penstock_model::{Kernel, Rng, Time};
use rig::{Rig, udp};

/// The line, bytes per second.
const LINE: u64 = 1_250_000;
/// How long each run is, ns.
const RUN: i64 = 3_000_000_000;
/// `avpkt` and `maxburst`, packets, of every class.
const AVPKT: u64 = 1000;
const MAXBURST: u64 = 10;
/// Bytes that a class which idled may send at once.
const BURST: u64 = 4 * MAXBURST * AVPKT;

/// How many bytes per second a class is offered, at random times; what finds 20 packets waiting is lost. Packets must keep
/// coming: Linux notices that a class is under its limit, and stops others from borrowing, when one comes to it
/// (`cbq_mark_toplevel`), whereas each packet of a borrower that has more lets it go on (`cbq_update_toplevel`).
type Demand = u64;
const NONE: Demand = 0;
/// As much as the line takes.
const GREEDY: Demand = LINE;

struct Source {
    minor: u32,
    demand: Demand,
    next: i64,
    sent: u64,
}

/// A class: id, parent, bytes per second, priority, words more.
fn class(minor: u32, parent: u32, rate: u64, prio: u32, more: &str) -> String {
    format!(
        "class add dev eth0 parent 1:{parent:x} classid 1:{minor:x} cbq bandwidth 10mbit rate {}bit allot 1514 cell 8 \
         prio {prio} avpkt {AVPKT} maxburst {MAXBURST} {more}",
        rate * 8
    )
}

/// Runs the classes under these demands: bytes each leaf sent, in the order of `demands`.
fn run(kernel: Kernel, dice: &mut Rng, classes: &[String], demands: &[(u32, Demand)]) -> Vec<u64> {
    let mut rig =
        Rig::with(kernel, &["qdisc add dev eth0 root handle 1: cbq bandwidth 10mbit avpkt 1000 cell 8"]);
    for line in classes {
        rig.tc(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    let mut sources = Vec::new();
    for &(minor, demand) in demands {
        rig.tc(&format!("qdisc add dev eth0 parent 1:{minor} pfifo limit 20")).unwrap();
        let next = if demand == NONE { RUN } else { 0 };
        sources.push(Source { minor, demand, next, sent: 0 });
    }
    let (mut seq, mut free) = (0, 0);
    while rig.now < RUN {
        let now = rig.now;
        for (at, s) in sources.iter_mut().enumerate().filter(|(_, s)| s.next <= now) {
            let len = if dice.below(3) == 0 { 1514 } else { 1000 };
            let mut packet = udp(seq, len, at as u8, 0x1_0000 | s.minor);
            packet.flow = at as u32;
            rig.enqueue(Box::new(packet));
            seq += 1;
            let mean = u64::from(len) * 1_000_000_000 / s.demand;
            s.next = now + i64::from(dice.below(2 * mean as u32)) + 1;
        }
        let (drops, pool) = (&mut rig.drops, &mut rig.pool);
        drops.recycle(pool);
        let mut next = sources.iter().map(|s| s.next).min().unwrap_or(RUN);
        if rig.now >= free {
            if rig.tree.next_wakeup().is_some_and(|due| due.as_ns() <= rig.now) {
                rig.tree.expire(Time::from_ns(rig.now));
            }
            match rig.dequeue() {
                Some(packet) => {
                    sources[packet.flow as usize].sent += u64::from(packet.len);
                    free = rig.now + (u64::from(packet.len) * 1_000_000_000 / LINE) as i64;
                    rig.pool.free(packet);
                    continue;
                }
                None => {
                    next = rig.tree.next_wakeup().map_or(next, |due| next.min(due.as_ns()));
                }
            }
        } else {
            next = next.min(free);
        }
        rig.now = next.max(rig.now + 1);
    }
    sources.iter().map(|s| s.sent).collect()
}

/// What a rate comes to in a run, bytes.
fn whole(rate: u64) -> u64 {
    rate * RUN as u64 / 1_000_000_000
}

fn cases(name: &str, mut check: impl FnMut(Kernel, &mut Rng)) {
    for kernel in [Kernel::V2_6_35, Kernel::V6_12] {
        for case in 0..12 {
            check(kernel, &mut Rng::named(case, name));
        }
    }
}

/// A backlogged class with rate r gets at least r·(1-ε), whatever the others do, while the rates do not exceed the
/// line; ε is 1 %.
#[test]
fn a_backlogged_class_gets_its_rate() {
    let mut worst = 1.0f64;
    cases("guarantee", |kernel, dice| {
        let (mut classes, mut demands, mut left) = (Vec::new(), Vec::new(), LINE * 9 / 10);
        let rate = 20_000 + u64::from(dice.below(300_000));
        left -= rate;
        let bounded = if dice.below(2) == 0 { "bounded" } else { "" };
        classes.push(class(2, 0, rate, 1 + dice.below(8), bounded));
        demands.push((2, 3 * rate));
        for minor in 3..7 {
            let rate = 5_000 + u64::from(dice.below((left / 2) as u32));
            left -= rate.min(left);
            let more = ["", "bounded", "isolated"][dice.below(3) as usize];
            classes.push(class(minor, 0, rate, 1 + dice.below(8), more));
            let demand = match dice.below(4) {
                0 => NONE,
                1 => rate / 2,
                2 => rate * 2,
                _ => GREEDY,
            };
            demands.push((minor, demand));
        }
        let sent = run(kernel, dice, &classes, &demands)[0];
        let share = sent as f64 / whole(rate) as f64;
        worst = worst.min(share);
        assert!(share >= 0.99, "{kernel}: {share} of {rate} B/s; {classes:?} {demands:?}");
    });
    println!("the least share of its rate that a class got: {worst:.4}");
}

/// Whoever is bounded sends no more than its rate and one burst, however idle the rest.
#[test]
fn a_bounded_class_never_exceeds_its_rate() {
    let mut worst = 0.0f64;
    cases("bounded", |kernel, dice| {
        let rate = 5_000 + u64::from(dice.below(600_000));
        let classes =
            [class(2, 0, rate, 1 + dice.below(8), "bounded"), class(3, 0, 100_000, 1 + dice.below(8), "")];
        let other = [NONE, 50_000, GREEDY][dice.below(3) as usize];
        let sent = run(kernel, dice, &classes, &[(2, GREEDY), (3, other)])[0];
        let most = whole(rate) + BURST;
        worst = worst.max(sent as f64 / most as f64);
        assert!(sent <= most, "{kernel}: {sent} of at most {most} B; {classes:?} {other:?}");
    });
    println!("the most of its rate and burst that a bounded class got: {worst:.4}");
}

/// What an isolated class does not use is nobody's: its sibling gets no more when it idles than when it sends.
#[test]
fn an_isolated_class_lends_nothing() {
    cases("isolated", |kernel, dice| {
        let rate = 40_000 + u64::from(dice.below(100_000));
        for isolated in [true, false] {
            let more = if isolated { "isolated" } else { "sharing" };
            let classes = [
                class(1, 0, 2 * rate, 8, "bounded"),
                class(2, 1, rate, 3, more),
                class(3, 1, rate, 3, "sharing"),
            ];
            let idle = run(kernel, dice, &classes, &[(2, NONE), (3, GREEDY)])[1];
            let busy = run(kernel, dice, &classes, &[(2, GREEDY), (3, GREEDY)])[1];
            let gain = idle as f64 / busy as f64;
            if isolated {
                assert!((0.95..1.05).contains(&gain), "{kernel} {rate}: {idle} against {busy}");
            } else {
                // One that shares lends what it does not use: all of it.
                assert!(gain > 1.5, "{kernel} {rate}: {idle} against {busy}");
            }
        }
    });
}

/// What is borrowed from a class is never more than it has: all below a bounded class together stay within its rate.
#[test]
fn no_more_is_borrowed_than_is_there() {
    let mut worst = 0.0f64;
    cases("lendable", |kernel, dice| {
        let above = 60_000 + u64::from(dice.below(500_000));
        let mut classes = vec![class(1, 0, above, 8, "bounded")];
        let (mut demands, mut left) = (Vec::new(), above);
        for minor in 2..6 {
            let rate = (1_000 + u64::from(dice.below((left / 3) as u32))).min(left / 2);
            left -= rate;
            classes.push(class(minor, 1, rate, 1 + dice.below(7), "sharing"));
            demands.push((minor, if dice.below(4) == 0 { NONE } else { GREEDY }));
        }
        demands[0].1 = GREEDY;
        let sent: u64 = run(kernel, dice, &classes, &demands).iter().sum();
        let most = whole(above) + 5 * BURST;
        worst = worst.max(sent as f64 / most as f64);
        assert!(sent <= most, "{kernel}: {sent} of at most {most} B; {classes:?} {demands:?}");
        // And what is there is used.
        assert!(
            sent >= whole(above) * 9 / 10,
            "{kernel}: {sent} of {}; {classes:?} {demands:?}",
            whole(above)
        );
    });
    println!("the most of a class's rate that was sent below it: {worst:.4}");
}
