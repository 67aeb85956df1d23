//! Turns, marks and drops by hand, and the controller's clock.

use super::config::{GAIN_MAX, scaled};
use super::*;
use crate::testing::{Bench, device, packet};

const MS: i64 = 1_000_000;

fn made(o: Option<&Options>, bench: &mut Bench) -> Box<dyn Qdisc> {
    let init = Init { device: device(Kernel::V7_2), handle: Handle::new(1, 0), parent: Handle::ROOT };
    build(&init, o, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"))
}
fn with_tos(seq: u64, len: u32, tos: u8) -> Packet {
    let mut p = packet(seq, len);
    if let L3::Ipv4(h) = &mut p.l3 {
        h.tos = tos;
    }
    p
}
fn number(q: &dyn Qdisc, at: i64, name: &str) -> u32 {
    q.xstats(Time::from_ns(at)).and_then(|x| x.u32(name)).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn the_low_queue_has_nine_turns_of_ten() {
    let mut bench = Bench::new();
    let mut q = made(None, &mut bench);
    for seq in 0..40 {
        assert_eq!(q.enqueue(with_tos(seq, 1000, (seq % 2) as u8), &mut bench.cx(0)), Xmit::Success);
    }
    let order: Vec<u64> =
        std::iter::from_fn(|| q.dequeue(&mut bench.cx(0))).take(20).map(|p| p.seq % 2).collect();
    // 80 MTU of credit at first, which 1000 bytes at a weight of 10 use up with the 13th; one of the classic queue gives back 90 of them.
    let turn = |n: usize| if n == 13 { 0 } else { 1 };
    assert_eq!(order, (0..20).map(turn).collect::<Vec<u64>>());
    let xstats = |name| q.xstats(Time::ZERO).unwrap().i64(name);
    assert_eq!(xstats("credit"), Some(-80 * 1514 + 19 * 10_000 - 90_000));
}

#[test]
fn the_step_marks_what_has_waited_a_millisecond() {
    let mut bench = Bench::new();
    let mut q = made(None, &mut bench);
    for seq in 0..3 {
        q.enqueue(with_tos(seq, 100, 1), &mut bench.cx(0));
    }
    let tos = |p: Option<Packet>| p.map(|p| p.tos() & 3);
    assert_eq!(tos(q.dequeue(&mut bench.cx(MS))), Some(1));
    assert_eq!(tos(q.dequeue(&mut bench.cx(MS + 1))), Some(3));
    assert_eq!(number(&*q, MS, "step_mark"), 1);
    // What no sender marked, but a filter or its priority sent here, is dropped by the step.
    let mut strange = with_tos(9, 100, 0);
    strange.priority = Handle::new(1, 1).0;
    q.enqueue(strange, &mut bench.cx(2 * MS));
    q.dequeue(&mut bench.cx(2 * MS));
    assert!(q.dequeue(&mut bench.cx(9 * MS)).is_none());
    assert_eq!((q.stats().drops, q.qlen(), q.stats().backlog), (1, 0, 0));
}

#[test]
fn the_controller_follows_the_greater_delay() {
    let mut bench = Bench::new();
    let mut q = made(None, &mut bench);
    q.enqueue(with_tos(0, 1000, 0), &mut bench.cx(0));
    assert_eq!(number(&*q, 16 * MS, "prob"), 0);
    // At 16 ms: 1 ms above the target by alpha, 16 ms more than before by beta.
    let want = (MS * i64::from(scaled(41)) + 16 * MS * i64::from(scaled(819))) / 64;
    assert_eq!(number(&*q, 16 * MS + 1, "prob"), want as u32);
    // Told of its interrupts it waits for them.
    q.do_chores(Time::from_ns(MS));
    assert_eq!(number(&*q, 100 * MS, "prob"), 0);
    q.do_chores(Time::from_ns(16 * MS + 1));
    assert!(number(&*q, 100 * MS, "prob") > want as u32);
}

#[test]
fn overload_drops_and_overflow_marks() {
    for (drop, left) in [(1u32, 0), (0, 20)] {
        let mut bench = Bench::new();
        let sure = Options::new().with("alpha", GAIN_MAX).with("beta", GAIN_MAX).with("target", 0u32);
        let o = sure.with("drop_overload", drop).with("tupdate", 1000u32).with("coupling_factor", 4u32);
        let mut q = made(Some(&o), &mut bench);
        for seq in 0..24 {
            q.enqueue(with_tos(seq, 1000, 1), &mut bench.cx(0));
        }
        let sent = std::iter::from_fn(|| q.dequeue(&mut bench.cx(500 * MS))).count();
        // The last three are less than two MTU behind each.
        assert!(sent >= left + 3, "{drop}: {sent}");
        assert_eq!(q.stats().drops, 24 - sent as u32);
        assert_eq!(number(&*q, 500 * MS, "prob"), if drop == 1 { MAX_PROB } else { MAX_PROB / 4 });
    }
}

#[test]
fn a_lower_limit_drops_classic_packets_first() {
    let mut bench = Bench::new();
    let mut q = made(None, &mut bench);
    for seq in 0..10 {
        q.enqueue(with_tos(seq, 1000, (seq % 2) as u8), &mut bench.cx(0));
    }
    q.change(Some(&Options::new().with("limit", 3u32)), &mut bench.cx(0)).unwrap();
    let gone: Vec<u64> = bench.dropped().into_iter().map(|d| d.0).collect();
    assert_eq!(gone, [0, 2, 4, 6, 8, 1, 3]);
    assert_eq!((q.qlen(), q.stats().backlog, q.stats().drops), (3, 3000, 7));
    let mut errno = |o: Options, bench: &mut Bench| q.change(Some(&o), &mut bench.cx(0)).map_err(|e| e.errno);
    assert_eq!(errno(Options::new(), &mut bench), Err(KernelError::EINVAL));
}

/// A gap is the same however often somebody looks in it.
#[test]
fn a_gap_is_skipped_exactly() {
    let mut bench = Bench::new();
    let mut run = |looks: bool| {
        let mut q = made(None, &mut bench);
        q.enqueue(with_tos(0, 1000, 0), &mut bench.cx(0));
        assert!(q.dequeue(&mut bench.cx(300 * MS + 17)).is_some());
        for ms in (301..20_000).filter(|_| looks) {
            q.peek(&mut bench.cx(ms * MS));
        }
        let mut times = Vec::new();
        q.peek(&mut bench.cx(20_000 * MS));
        q.chores(&mut |at| times.push(at));
        (times, number(&*q, 20_000 * MS, "prob"))
    };
    assert_eq!(run(true), run(false));
}
