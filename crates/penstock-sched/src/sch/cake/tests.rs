//! Cake as a whole.

use super::*;
use crate::testing::{Bench, device};
use penstock_model::Value;

fn made(bench: &mut Bench, o: Options) -> Box<dyn Qdisc> {
    let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
    build(&init, Some(&o), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn the_buffer_follows_rate_and_memlimit() {
    let mut bench = Bench::new();
    let mut limit = |o: Options| made(&mut bench, o).xstats(Time::ZERO).unwrap().u32("memory_limit").unwrap();
    assert_eq!(limit(Options::new()), 15_503_360);
    assert_eq!(limit(Options::new().with("bandwidth", 1_250_000u64)), 4 << 20);
    assert_eq!(limit(Options::new().with("memlimit", 1000u32)), 1000);
    assert_eq!(limit(Options::new().with("bandwidth", 12_500_000u64).with("rtt", 200_000u32)), 10_000_000);
}

#[test]
fn an_overhead_ends_raw_and_raw_keeps_its_number() {
    let mut bench = Bench::new();
    let mut q = made(&mut bench, Options::new());
    let seen = |q: &dyn Qdisc| (q.dump().has("raw"), q.dump().i64("overhead"));
    assert_eq!(seen(&*q), (true, Some(0)));
    q.change(Some(&Options::new().with("overhead", 18i64)), &mut bench.cx(0)).unwrap();
    assert_eq!(seen(&*q), (false, Some(18)));
    let raw = Options::new().with("overhead", 0i64).with("raw", Value::Flag);
    q.change(Some(&raw), &mut bench.cx(0)).unwrap();
    assert_eq!(seen(&*q), (true, Some(0)));
}

#[test]
fn super_packets_go_in_as_segments_unless_told() {
    use crate::testing::packet;
    let whole = || {
        let mut whole = packet(7, 42 + 3500);
        whole.set_gso(1000, false);
        whole.pkt_len = whole.initial_pkt_len();
        whole
    };
    let sent = |q: &dyn Qdisc| (q.qlen(), q.stats().backlog);
    let mut bench = Bench::new();
    let mut q = made(&mut bench, Options::new());
    assert_eq!(q.enqueue(whole(), &mut bench.cx(0)), Xmit::Success);
    assert_eq!(sent(&*q), (4, 3500 + 4 * 42));
    let mut q = made(&mut bench, Options::new().with("split_gso", 0u32));
    assert_eq!(q.enqueue(whole(), &mut bench.cx(0)), Xmit::Success);
    assert_eq!(sent(&*q), (1, 3500 + 4 * 42));
    assert_eq!(q.dequeue(&mut bench.cx(0)).map(|p| p.segments()), Some(4));
    assert_eq!((q.stats().packets, q.stats().bytes), (4, 3500 + 4 * 42));
}
