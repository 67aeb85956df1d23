//! What an fq does with times, rates and horizons.

use super::*;
use crate::testing::{Bench, device, packet};
use penstock_model::Handle;
use penstock_packet::Sender;
use std::num::NonZeroU64;

fn fq(options: Option<&Options>, bench: &mut Bench) -> Box<dyn Qdisc> {
    let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
    build(&init, options, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"))
}

/// A packet of a connected socket that leaves at `departs`, ns, or is paced at `rate`.
fn of_socket(seq: u64, socket: u32, departs: i64, rate: u64) -> Packet {
    let mut p = packet(seq, 1500);
    let (pacing_rate, departs) = (NonZeroU64::new(rate), Time::from_ns(departs));
    p.sender = Sender { socket, connected: true, tcp: rate == 0, pacing_rate, departs, ..Sender::default() };
    p
}

/// What leaves, and when, while the timer is followed.
fn run(q: &mut dyn Qdisc, bench: &mut Bench, mut now: i64) -> Vec<(u64, i64)> {
    let mut left = Vec::new();
    loop {
        while let Some(p) = q.dequeue(&mut bench.cx(now)) {
            left.push((p.seq, now));
        }
        if q.qlen() == 0 {
            return left;
        }
        now = q.next_wakeup().expect("what is queued has a time").as_ns();
        q.expire(Time::from_ns(now).into());
    }
}

#[test]
fn refused_changes_change_the_rest() {
    let mut bench = Bench::new();
    let mut q = fq(None, &mut bench);
    let before = q.dump();
    assert_eq!((before.u32("quantum"), before.u32("initial_quantum")), (Some(3028), Some(15_140)));
    let bad = Options::new().with("initial_quantum", 1u32 << 21).with("limit", 5u32);
    assert_eq!(q.change(Some(&bad), &mut bench.cx(0)).unwrap_err().errno, 34);
    assert_eq!(q.dump(), before);
    let bad = Options::new().with("buckets", 19u32).with("limit", 5u32);
    assert_eq!(q.change(Some(&bad), &mut bench.cx(0)).unwrap_err().errno, 22);
    assert_eq!((q.dump().u32("limit"), q.dump().u32("buckets")), (Some(5), Some(10)));
    let weights = Options::new().with("weight0", 16384i64).with("weight1", 16383i64).with("weight2", 1i64);
    let e = q.change(Some(&Options::new().with("weights", weights)), &mut bench.cx(0)).unwrap_err();
    assert_eq!(e.extack, "sch_fq: Weight 16383 less that minimum allowed 16384");
}

#[test]
fn times_of_departure_are_kept_and_reported_to_the_socket() {
    let mut bench = Bench::new();
    let mut q = fq(Some(&Options::new().with("timer_slack", 0u32)), &mut bench);
    // Two sockets with their own times, one packet of each after another.
    for (seq, socket, at) in [(0, 7, 3_000_000), (1, 7, 5_000_000), (2, 8, 4_000_000), (3, 7, 4_500_000)] {
        q.enqueue(of_socket(seq, socket, at, 0), &mut bench.cx(1_000_000));
        assert!(std::mem::take(&mut bench.drops.paced) == (seq % 2 == 0), "a new flow's socket is told");
    }
    let left = run(&mut *q, &mut bench, 1_000_000);
    assert_eq!(left, [(0, 3_000_000), (2, 4_000_000), (3, 4_500_000), (1, 5_000_000)]);
    let x = q.xstats(Time::from_ns(5_000_000)).unwrap();
    assert_eq!((x.u64("flows"), x.u64("inactive"), x.u64("throttled")), (Some(2), Some(2), Some(4)));
    // In the past: by the fast path, and the socket is told again.
    q.enqueue(of_socket(9, 7, 4_000_000, 0), &mut bench.cx(5_000_000));
    assert!(bench.drops.paced);
    assert_eq!(q.xstats(Time::from_ns(5_000_000)).unwrap().u64("fastpath"), Some(1));
}

#[test]
fn what_is_due_beyond_the_horizon_is_dropped_or_brought_nearer() {
    let mut bench = Bench::new();
    let horizon = Options::new().with("horizon", 1000u32).with("timer_slack", 0u32);
    let mut q = fq(Some(&horizon), &mut bench);
    assert_eq!(q.enqueue(of_socket(0, 1, 2_000_001, 0), &mut bench.cx(1_000_000)), Xmit::Drop);
    assert_eq!(bench.dropped(), [(0, DropReason::Horizon)]);
    let cap = Options::new().with("horizon_drop", 0u32);
    q.change(Some(&cap), &mut bench.cx(1_000_000)).unwrap();
    q.enqueue(of_socket(1, 1, 9_000_000, 0), &mut bench.cx(1_000_000));
    assert_eq!(run(&mut *q, &mut bench, 1_000_000), [(1, 2_000_000)]);
    let x = q.xstats(Time::from_ns(1)).unwrap();
    assert_eq!((x.u64("horizon_drops"), x.u64("horizon_caps")), (Some(1), Some(1)));
}

#[test]
fn a_socket_without_times_is_paced_by_its_rate() {
    let mut bench = Bench::new();
    let slow = Options::new().with("timer_slack", 0u32);
    let mut q = fq(Some(&slow), &mut bench);
    // 15 kB/s, below the threshold: one packet each 100 ms from the first.
    for seq in 0..3 {
        q.enqueue(of_socket(seq, 1, 0, 15_000), &mut bench.cx(1000));
    }
    let left = run(&mut *q, &mut bench, 1000);
    assert_eq!(left, [(0, 1000), (1, 100_001_000), (2, 200_001_000)]);
    // 1.5 MB/s, above it: ten packets of credit, then in turns of a quantum of 3028 bytes.
    for seq in 0..14 {
        q.enqueue(of_socket(seq, 2, 0, 1_500_000), &mut bench.cx(300_000_000));
    }
    let left = run(&mut *q, &mut bench, 300_000_000);
    let late: Vec<i64> = left.iter().map(|l| (l.1 - 300_000_000) / 1000).collect();
    assert_eq!(late, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2018, 2018, 4037]);
}

#[test]
fn the_timer_may_go_off_early_with_another() {
    let mut bench = Bench::new();
    let mut q = fq(Some(&Options::new().with("timer_slack", 50_000u32)), &mut bench);
    q.enqueue(of_socket(0, 1, 2_000_000, 0), &mut bench.cx(1000));
    assert!(q.dequeue(&mut bench.cx(1000)).is_none());
    let timers = |q: &dyn Qdisc| {
        let mut all = Vec::new();
        q.timers(&mut |soft, hard| all.push((soft.as_ns(), hard.as_ns())));
        all
    };
    assert_eq!(timers(&*q), [(2_000_000, 2_050_000)]);
    assert_eq!(q.next_wakeup().map(Time::as_ns), Some(2_050_000));
    q.expire(Time::from_ns(1_999_999).into());
    assert!(q.next_wakeup().is_some());
    // Behind a timer that is not due, none goes off.
    q.expire(Due { now: Time::from_ns(2_000_000), before: Time::from_ns(2_049_999) });
    assert!(q.next_wakeup().is_some());
    q.expire(Time::from_ns(2_000_000).into());
    assert!(q.next_wakeup().is_none());
}
