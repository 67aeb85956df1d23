//! What no vector shows: the overlimit strategies, which no tc can set, the split nodes, changes under way.

use super::SPEC;
use crate::ledger::DropReason;
use crate::qdisc::{Init, Qdisc};
use crate::testing::{Bench, device, packet};
use penstock_model::{Handle, Kernel, Options, Time};

/// 10 Mbit/s in bytes per second.
const LINK: u32 = 1_250_000;
const MS: i64 = 1_000_000;

struct Rig {
    bench: Bench,
    q: Box<dyn Qdisc>,
    now: i64,
    seq: u64,
}

fn rate(bytes: u32) -> Options {
    Options::new().with("rate", bytes).with("cell_log", 3u32)
}

fn class(bytes: u32, priority: u32, flags: u32) -> Options {
    // change: flags, ewma, maxidle, avpkt. 16,000 ticks are about a millisecond.
    let lss = Options::new()
        .with("change", 0x27u32)
        .with("flags", flags)
        .with("ewma", 5u32)
        .with("maxidle", 16_000u32)
        .with("avpkt", 1000u32);
    let wrr = Options::new().with("priority", priority).with("allot", 1514u32).with("weight", bytes);
    rate(bytes).with("lss", lss).with("wrr", wrr)
}

fn ovl(strategy: u32, priority2: u32, penalty: u32) -> Options {
    Options::new().with("strategy", strategy).with("priority2", priority2).with("penalty", penalty)
}

const BOUNDED: u32 = 1;

impl Rig {
    fn new(kernel: Kernel) -> Rig {
        let mut bench = Bench::new();
        let init = Init { device: device(kernel), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let q = (SPEC.build)(&init, Some(&rate(LINK)), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        Rig { bench, q, now: MS, seq: 0 }
    }
    fn class(&mut self, parent: u16, minor: u16, options: &Options) {
        let (parent, classid) = (Handle::new(1, parent), Handle::new(1, minor));
        let classes = self.q.classes_mut().unwrap();
        classes.change_class(parent, classid, Some(options), &mut self.bench.cx(self.now)).unwrap();
    }
    fn send(&mut self, priority: u32, count: u64) {
        for _ in 0..count {
            let mut p = packet(self.seq, 1000);
            p.priority = priority;
            self.seq += 1;
            self.q.enqueue(p, &mut self.bench.cx(self.now));
        }
    }
    /// What comes out until `end`, ms, from a line of 10 Mbit/s: (seq, ms).
    fn out(&mut self, end: i64) -> Vec<(u64, i64)> {
        let mut out = Vec::new();
        while self.now < end * MS {
            if self.q.next_wakeup().is_some_and(|due| due.as_ns() <= self.now) {
                self.q.expire(Time::from_ns(self.now).into());
            }
            match self.q.dequeue(&mut self.bench.cx(self.now)) {
                Some(p) => {
                    out.push((p.seq, self.now / MS));
                    self.now += 800_000;
                }
                None => match self.q.next_wakeup() {
                    Some(due) => self.now = due.as_ns().max(self.now + 1),
                    None => break,
                },
            }
        }
        out
    }
    fn shown(&self, minor: u16, part: &str, name: &str) -> i64 {
        let mut found = None;
        self.q.classes().unwrap().walk(Time::from_ns(self.now), &mut |d| {
            if d.classid == Handle::new(1, minor) {
                let all = if part == "xstats" { d.xstats.clone() } else { d.options.nested(part).cloned() };
                let all = all.unwrap();
                found = all.i64(name).or(all.u32(name).map(i64::from));
            }
        });
        found.unwrap()
    }
}

fn classid(minor: u32) -> u32 {
    0x1_0000 | minor
}

#[test]
fn a_delayed_class_leaves_its_priority_until_its_time_is_over() {
    let mut rig = Rig::new(Kernel::V2_6_35);
    // 80 kbit/s: 100 ms a packet. A penalty of a second more: 15,625,000 ticks.
    rig.class(0, 2, &class(10_000, 2, BOUNDED).with("ovl", ovl(1, 0, 15_625_000)));
    rig.send(classid(2), 4);
    let out = rig.out(5000);
    assert_eq!(out.len(), 4);
    // Two at once after idling; the third waits 100 ms and the penalty.
    let gap = out[2].1 - out[1].1;
    assert!((1090..1110).contains(&gap), "{out:?}");
    assert_eq!(rig.shown(2, "xstats", "overactions"), 1);
    assert_eq!(rig.shown(2, "wrr", "cpriority"), 2);
}

#[test]
fn a_penalized_class_has_a_lower_priority_for_a_time() {
    for (strategy, last) in [(0, false), (2, true)] {
        let mut rig = Rig::new(Kernel::V2_6_35);
        rig.class(0, 1, &class(100_000, 8, BOUNDED));
        rig.class(1, 2, &class(50_000, 1, BOUNDED).with("ovl", ovl(strategy, 7, 600_000_000)));
        rig.class(1, 3, &class(50_000, 3, BOUNDED));
        rig.send(classid(2), 60);
        rig.send(classid(3), 60);
        rig.out(500);
        // The one of priority 1 is penalized, or at least waits in its own ring.
        assert_eq!(rig.shown(2, "wrr", "cpriority") == 7, last);
        assert_eq!(rig.shown(2, "wrr", "priority"), 1);
    }
}

#[test]
fn a_class_over_its_limit_may_lose_packets() {
    let mut rig = Rig::new(Kernel::V2_6_35);
    rig.class(0, 2, &class(10_000, 2, BOUNDED).with("ovl", ovl(3, 0, 0)));
    rig.send(classid(2), 10);
    let out = rig.out(3000);
    let lost = rig.bench.dropped();
    assert!(!lost.is_empty() && lost.iter().all(|(_, why)| *why == DropReason::Overlimit), "{lost:?}");
    // From the tail.
    assert_eq!(lost[0].0, 9);
    assert_eq!(out.len() + lost.len(), 10);
    assert_eq!(rig.q.qlen(), 0);
}

#[test]
fn strategies_that_are_none_change_nothing_and_6_12_takes_none() {
    let mut rig = Rig::new(Kernel::V2_6_35);
    // priority2 must be below the class's own.
    rig.class(0, 2, &class(10_000, 4, 0).with("ovl", ovl(2, 4, 77)));
    assert_eq!(rig.shown(2, "ovl", "penalty"), 0);
    rig.class(0, 2, &Options::new().with("ovl", ovl(2, 5, 77)));
    assert_eq!((rig.shown(2, "ovl", "priority2"), rig.shown(2, "ovl", "penalty")), (5, 77));
    let mut rig = Rig::new(Kernel::V6_12);
    let (parent, classid) = (Handle::new(1, 0), Handle::new(1, 2));
    let options = class(10_000, 4, 0).with("ovl", ovl(1, 0, 0));
    let refused =
        rig.q.classes_mut().unwrap().change_class(parent, classid, Some(&options), &mut rig.bench.cx(0));
    assert_eq!(refused.map_err(|e| e.errno), Err(95));
}

/// A split node's packets go where their priority is mapped, to the class of the lowest level; what a class no longer
/// takes another does.
#[test]
fn split_nodes_sort_by_priority() {
    let mut rig = Rig::new(Kernel::V6_12);
    let map = |defmap: u32| {
        Options::new().with("split", 0x1_0000u32).with("defmap", defmap).with("defchange", u32::MAX)
    };
    rig.class(0, 1, &class(500_000, 5, 0).with("fopt", map(0x01)));
    rig.class(0, 2, &class(200_000, 5, 0).with("fopt", map(0x40)));
    rig.class(0, 3, &class(200_000, 5, 0).with("fopt", map(0x40)));
    let to = |rig: &mut Rig, priority: u32| {
        rig.send(priority, 1);
        let mut found = Vec::new();
        rig.q.classes().unwrap().walk(Time::ZERO, &mut |d| {
            if d.stats.qlen > 0 {
                found.push(d.classid.minor());
            }
        });
        rig.q.reset(&mut rig.bench.cx(rig.now));
        found
    };
    // Two that want 6: the first that came keeps it. Nobody wants 3: the one for 0 takes it.
    assert_eq!((to(&mut rig, 6), to(&mut rig, 3), to(&mut rig, 0)), (vec![2], vec![1], vec![1]));
    rig.class(0, 2, &Options::new().with("fopt", map(0)));
    assert_eq!(to(&mut rig, 6), [3]);
    let gone = Handle::new(1, 3);
    rig.q.classes_mut().unwrap().delete_class(gone, &mut rig.bench.cx(rig.now)).unwrap();
    assert_eq!(to(&mut rig, 6), [1]);
    // A priority that names a class goes there, one of another qdisc to the link.
    assert_eq!((to(&mut rig, classid(2)), to(&mut rig, 0x2_0001)), (vec![2], vec![0]));
}

#[test]
fn classes_change_and_go_under_load() {
    for kernel in Kernel::BEFORE_7 {
        let mut rig = Rig::new(kernel);
        rig.class(0, 1, &class(600_000, 8, BOUNDED));
        rig.class(1, 2, &class(100_000, 3, 0));
        rig.class(1, 3, &class(100_000, 3, BOUNDED));
        rig.send(classid(2), 300);
        rig.send(classid(3), 300);
        let first = rig.out(100).len();
        assert!(first > 20, "{kernel} {first}");
        rig.class(1, 3, &class(400_000, 1, 0));
        rig.out(200);
        let gone = Handle::new(1, 2);
        rig.q.classes_mut().unwrap().delete_class(gone, &mut rig.bench.cx(rig.now)).unwrap();
        let purged = rig.bench.dropped().len();
        assert!(purged > 100);
        let rest = rig.out(10_000);
        assert!(rest.iter().all(|(seq, _)| *seq >= 300), "{kernel}: only the other class's are left");
        assert_eq!(rig.q.qlen(), 0);
        assert!(rig.shown(3, "xstats", "borrows") > 0, "{kernel}");
    }
}

/// Who shares charges those above; who is told to be isolated, and back, is charged for alone meanwhile.
#[test]
fn those_above_show_what_shares_with_them() {
    const ISOLATED: u32 = 2;
    for kernel in Kernel::BEFORE_7 {
        let mut rig = Rig::new(kernel);
        let check = |rig: &Rig, what: &str| {
            let said = crate::charge::miscounts(&rig.q.classes().unwrap().charged());
            assert_eq!(said, Vec::<String>::new(), "{kernel} {what}");
        };
        rig.class(0, 1, &class(500_000, 8, 0));
        rig.class(1, 2, &class(200_000, 3, 0));
        rig.class(1, 3, &class(200_000, 3, ISOLATED));
        let mut end = 1000;
        let mut packets = [0; 2];
        for (flags, adds) in [(0, true), (ISOLATED, false), (0, true)] {
            rig.class(1, 2, &class(200_000, 3, flags));
            check(&rig, "changed");
            for minor in [1, 2, 3] {
                rig.send(classid(minor), 20);
            }
            assert_eq!(rig.out(end).len(), 60);
            check(&rig, "in between");
            end += 1000;
            packets[0] += if adds { 40 } else { 20 };
            packets[1] += 20;
        }
        let shown = |rig: &Rig, minor: u32| {
            let all = rig.q.classes().unwrap().charged();
            all.iter().find(|c| c.classid == Handle(classid(minor))).unwrap().shown.packets
        };
        // The last packet counts when the next is asked for.
        assert!(
            shown(&rig, 1).abs_diff(packets[0]) <= 1 && shown(&rig, 2).abs_diff(packets[1]) <= 1,
            "{kernel}"
        );
        let classes = rig.q.classes_mut().unwrap();
        classes.delete_class(Handle::new(1, 2), &mut rig.bench.cx(rig.now)).unwrap();
        check(&rig, "without 1:2");
    }
}

/// `cbq_dump_stats` shows the link's `undertime` as the last `tc class show` has left it. A look that is not tc's leaves nothing.
#[test]
fn only_a_show_of_tc_leaves_the_links_undertime() {
    let mut rig = Rig::new(Kernel::V6_12);
    // Packets of 800 us each leave every 100 us: over the link's limit, but not over the class's own.
    rig.class(0, 1, &class(10 * LINK, 8, 0));
    rig.send(classid(1), 300);
    for _ in 0..100 {
        assert!(rig.q.dequeue(&mut rig.bench.cx(rig.now)).is_some());
        rig.now += 100_000;
    }
    let of_the_qdisc = |rig: &Rig| rig.q.xstats(Time::from_ns(rig.now)).unwrap().i64("undertime").unwrap();
    let of_the_link = rig.shown(0, "xstats", "undertime");
    assert!(of_the_link != 0);
    assert_eq!(of_the_qdisc(&rig), 0);
    rig.q.classes().unwrap().shown();
    assert_eq!(of_the_qdisc(&rig), of_the_link);
    rig.send(classid(1), 1);
    rig.q.dequeue(&mut rig.bench.cx(rig.now + 5 * MS));
    assert!(rig.shown(0, "xstats", "undertime") != of_the_link);
    assert_eq!(of_the_qdisc(&rig), of_the_link);
}
