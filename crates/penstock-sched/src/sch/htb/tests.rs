//! htb against the real kernel and against the founding document's numbers.

use super::*;
use crate::Tree;
use crate::testing::{Bench, device, packet, qdisc};
use penstock_model::psched::xmittime;
use penstock_model::rtnetlink::{ClassDump, ClassRequest, Verb};

/// A machine with htb `1:` at the root of eth0.
struct Rig {
    bench: Bench,
    tree: Tree,
}

fn id(text: &str) -> Handle {
    Handle::parse_classid(text).unwrap()
}

/// What tc sends for a class: rates in bit/s, bursts in bytes (0: tc's default of 1600).
fn class_options(rate_bit: u64, ceil_bit: u64, burst: u32, cburst: u32) -> Options {
    let (rate, ceil) = (rate_bit / 8, ceil_bit / 8);
    let ticks = |rate: u64, size: u32| xmittime(rate, if size == 0 { 1600 } else { size });
    Options::new()
        .with("rate", rate)
        .with("ceil", ceil)
        .with("buffer", ticks(rate, burst))
        .with("cbuffer", ticks(ceil, cburst))
        .with("cell_log", 3u32)
        .with("ccell_log", 3u32)
}

impl Rig {
    fn new(kernel: Kernel, default: u32) -> Rig {
        let mut rig = Rig { bench: Bench::new(), tree: Tree::new(device(kernel)) };
        let mut req = qdisc("add root handle 1: htb");
        req.options = Some(Options::new().with("r2q", 10u32).with("default", default).with("version", 3u32));
        rig.tree.qdisc(&req, &mut rig.bench.cx(0)).unwrap();
        rig
    }
    fn class(
        &mut self,
        verb: Verb,
        parent: &str,
        classid: &str,
        o: Option<Options>,
    ) -> Result<(), KernelError> {
        let parent = if parent.is_empty() { Handle::UNSPEC } else { id(parent) };
        let kind = Some("htb".to_owned());
        let req = ClassRequest { verb, classid: id(classid), parent, kind, options: o, estimator: None };
        self.tree.class(&req, &mut self.bench.cx(0))
    }
    fn add(&mut self, parent: &str, classid: &str, rate: u64, ceil: u64) {
        self.class(Verb::Add, parent, classid, Some(class_options(rate, ceil, 0, 0))).unwrap();
    }
    fn send(&mut self, seq: u64, len: u32, classid: &str, now: i64) -> Xmit {
        let mut p = packet(seq, len);
        p.priority = id(classid).0;
        self.tree.enqueue(p, &mut self.bench.cx(now))
    }
    fn dequeue(&mut self, now: i64) -> Option<u64> {
        self.tree.dequeue(&mut self.bench.cx(now)).map(|p| p.seq)
    }
    /// Takes packets as they come until none is left: (seq, ns).
    fn drain(&mut self, from: i64) -> Vec<(u64, i64)> {
        let (mut now, mut out) = (from, Vec::new());
        loop {
            while let Some(seq) = self.dequeue(now) {
                out.push((seq, now));
            }
            if self.tree.qlen() == 0 {
                return out;
            }
            let wake = self.tree.next_wakeup().expect("a backlog has a wake-up").as_ns();
            assert!(wake > now);
            now = wake;
        }
    }
    fn dump(&self, classid: &str) -> ClassDump {
        let dumps = self.tree.dump_classes(Time::ZERO);
        dumps.into_iter().find(|d| d.classid == id(classid)).expect("the class is there")
    }
    /// lends, borrows, tokens, ctokens.
    fn xstats(&self, classid: &str) -> (u32, u32, i64, i64) {
        let x = self.dump(classid).xstats.unwrap();
        let u32 = |name| x.u32(name).unwrap();
        (u32("lends"), u32("borrows"), x.i64("tokens").unwrap(), x.i64("ctokens").unwrap())
    }
    fn stats(&self) -> Stats {
        self.tree.dump_qdiscs(Time::ZERO)[0].stats
    }
}

/// Departures that linux 6.12.117 gave in exact virtual time (index, ns). Reading its clock costs that kernel one
/// nanosecond, which adds up along a chain of events.
const KERNEL: [(u64, i64); 60] = [
    (0, 0),
    (1, 0),
    (2, 0),
    (3, 0),
    (4, 0),
    (5, 0),
    (7, 0),
    (10, 0),
    (6, 6400001),
    (13, 10667349),
    (9, 22400001),
    (16, 24000682),
    (19, 37334015),
    (12, 38400001),
    (22, 50667348),
    (15, 54400001),
    (25, 64000681),
    (18, 70400001),
    (28, 77334014),
    (21, 86400001),
    (31, 90667347),
    (24, 102400001),
    (34, 104000680),
    (8, 112000001),
    (37, 117334013),
    (27, 118400001),
    (40, 130667346),
    (30, 134400001),
    (43, 144000679),
    (33, 150400001),
    (46, 157334012),
    (36, 166400001),
    (49, 170667345),
    (39, 182400001),
    (52, 184000678),
    (55, 197334011),
    (42, 198400001),
    (58, 210667344),
    (45, 214400001),
    (48, 230400001),
    (11, 232000001),
    (51, 246400001),
    (54, 259200001),
    (57, 262400001),
    (14, 275200001),
    (17, 287200001),
    (20, 299200001),
    (23, 311200001),
    (26, 323200001),
    (29, 335200001),
    (32, 347200001),
    (35, 352000001),
    (38, 371200001),
    (41, 383200001),
    (44, 395200001),
    (47, 407200001),
    (50, 419200001),
    (53, 431200001),
    (56, 443200001),
    (59, 455200001),
];

#[test]
fn three_classes_borrow_as_in_the_kernel() {
    let mut rig = Rig::new(Kernel::V6_12, 3);
    let mut class = |parent, classid, rate, quantum: u32| {
        let o = class_options(rate, 1_000_000, 1600, 1600).with("quantum", quantum);
        rig.class(Verb::Add, parent, classid, Some(o)).unwrap();
    };
    class("1:", "1:9", 1_000_000, 0);
    class("1:9", "1:1", 500_000, 1500);
    class("1:9", "1:2", 300_000, 3000);
    class("1:9", "1:3", 100_000, 6000);
    let start = 1_000_000_000;
    let mut out = Vec::new();
    for seq in 0..60 {
        let (len, classid) = [(1000, "1:1"), (500, "1:2"), (1500, "1:3")][seq as usize % 3];
        assert_eq!(rig.send(seq, len, classid, start), Xmit::Success);
        while let Some(seq) = rig.dequeue(start) {
            out.push((seq, start));
        }
    }
    out.extend(rig.drain(start));
    assert_eq!(out.len(), KERNEL.len());
    for (&(seq, at), &(want, want_at)) in out.iter().zip(&KERNEL) {
        assert_eq!(seq, want);
        let creep = want_at - (at - start);
        assert!((0..=20).contains(&creep), "#{seq} {at} {creep}");
    }
    assert_eq!(rig.xstats("1:9"), (16, 0, -187_500, -187_500));
    assert_eq!(rig.xstats("1:1"), (19, 1, -250_000, 0));
    assert_eq!(rig.xstats("1:2"), (20, 0, -208_334, 137_500));
    assert_eq!(rig.xstats("1:3"), (5, 15, -262_500, 12_500));
    let over = |c: &str| rig.dump(c).stats.overlimits;
    assert_eq!(
        [over("1:9"), over("1:1"), over("1:2"), over("1:3"), rig.stats().overlimits],
        [17, 2, 1, 2, 22]
    );
    assert_eq!((rig.stats().bytes, rig.stats().packets, rig.stats().backlog), (60_000, 60, 0));
}

#[test]
fn the_documents_tokens_follow_from_the_last_packet() {
    // rate and ceil in kbit/s, burst and cburst in bytes (0: default), length of the last packet; tokens, ctokens.
    let check = |rate: u64, ceil: u64, burst: u32, cburst: u32, len: u32, want: (i64, i64)| {
        let mut rig = Rig::new(Kernel::V2_6_35, 0);
        let o = class_options(rate * 1000, ceil * 1000, burst, cburst);
        rig.class(Verb::Add, "1:", "1:10", Some(o)).unwrap();
        assert_eq!(rig.send(0, len, "1:10", 3_000_000_000), Xmit::Success);
        assert_eq!(rig.dequeue(3_000_000_000), Some(0));
        let (lends, borrows, tokens, ctokens) = rig.xstats("1:10");
        assert_eq!((lends, borrows), (1, 0));
        assert_eq!((tokens, ctokens), want, "{rate} {ceil} {len}");
    };
    // 8.1.
    check(10_000, 10_000, 15_360, 0, 66, (191_110, 19_110));
    check(6_000, 6_000, 0, 0, 66, (31_828, 31_828));
    check(3_000, 3_000, 0, 0, 66, (63_656, 63_656));
    check(1_000, 1_000, 0, 0, 42, (194_000, 194_000));
    // 8.2.
    check(40_000, 40_000, 15_360, 0, 54, (47_829, 4_829));
    check(10_000, 15_000, 0, 0, 66, (19_110, 12_735));
    check(5_000, 10_000, 0, 0, 66, (38_204, 19_110));
    check(3_000, 5_000, 0, 0, 54, (64_328, 38_610));
}

#[test]
fn what_is_lent_is_what_is_borrowed() {
    for kernel in Kernel::ALL {
        let mut rig = Rig::new(kernel, 0);
        rig.add("1:", "1:1", 1_000_000, 1_000_000);
        rig.add("1:1", "1:10", 300_000, 1_000_000);
        rig.add("1:1", "1:20", 100_000, 1_000_000);
        for seq in 0..200 {
            rig.send(seq, 1000, if seq % 2 == 0 { "1:10" } else { "1:20" }, 0);
        }
        let out = rig.drain(0);
        let all = (0..200).collect::<Vec<u64>>();
        let mut sent: Vec<u64> = out.iter().map(|o| o.0).collect();
        sent.sort_unstable();
        assert_eq!(sent, all, "{kernel}");
        let (parent, a, b) = (rig.xstats("1:1"), rig.xstats("1:10"), rig.xstats("1:20"));
        assert_eq!(parent.0, a.1 + b.1, "{kernel}: lent = borrowed");
        assert_eq!((a.0 + a.1, b.0 + b.1, parent.1), (100, 100, 0), "{kernel}");
        let (qdisc, class) = (rig.stats(), rig.dump("1:1").stats);
        assert_eq!((qdisc.packets, qdisc.bytes, class.packets), (200, 200_000, 200), "{kernel}");
        assert_eq!(rig.tree.class_miscounts(), Vec::<String>::new(), "{kernel}");
        // 200,000 bytes at 1 Mbit/s, less a burst of 1600.
        let took = out.last().unwrap().1 as f64 / 1e9;
        assert!((1.57..1.61).contains(&took), "{kernel} {took}");
    }
}

#[test]
fn priorities_go_first_and_quanta_share_the_rest() {
    for kernel in Kernel::ALL {
        let mut rig = Rig::new(kernel, 0);
        rig.add("1:", "1:1", 10_000_000, 10_000_000);
        for (classid, prio, quantum) in [("1:10", 1u32, 2000u32), ("1:20", 1, 4000), ("1:30", 0, 1000)] {
            let o = class_options(8_000, 100_000_000, 0, 100_000).with("quantum", quantum).with("prio", prio);
            rig.class(Verb::Add, "1:1", classid, Some(o)).unwrap();
        }
        for seq in 0..300 {
            rig.send(seq, 1000, ["1:10", "1:20", "1:30"][seq as usize % 3], 0);
        }
        let order: Vec<u64> = rig.drain(0).into_iter().map(|o| o.0 % 3).collect();
        // Each first has a burst of its own.
        let rest = &order[6..];
        assert!(rest[..90].iter().all(|&c| c == 2), "{kernel} {rest:?}");
        let shared = &rest[100..220];
        let ten = shared.iter().filter(|&&c| c == 0).count();
        assert!((36..=44).contains(&ten), "{kernel} {ten} {shared:?}");
    }
}

#[test]
fn quanta_are_bounded_unless_asked_for() {
    for kernel in Kernel::ALL {
        let mut rig = Rig::new(kernel, 0);
        let quantum = |rig: &Rig, c: &str| rig.dump(c).options.u32("quantum").unwrap();
        for (classid, rate, want) in
            [("1:1", 8_000, 1000), ("1:2", 8_000_000, 100_000), ("1:3", 100_000_000, 200_000)]
        {
            rig.add("1:", classid, rate, rate);
            assert_eq!(quantum(&rig, classid), want, "{kernel}");
            let unfit = match want {
                1000 => "small",
                200_000 => "big",
                _ => "",
            };
            let said =
                format!("sch_htb: quantum of class {:X} is {unfit}. Consider r2q change.", id(classid).0);
            let said = (kernel >= Kernel::V6_12 && !unfit.is_empty()).then_some(said);
            assert_eq!(rig.tree.take_warning(), said);
        }
        let o = class_options(8_000, 8_000, 0, 0).with("quantum", 300_000u32).with("prio", 9u32);
        rig.class(Verb::Change, "1:", "1:1", Some(o)).unwrap();
        assert_eq!((quantum(&rig, "1:1"), rig.dump("1:1").options.u32("prio")), (300_000, Some(7)));
    }
}

#[test]
fn a_parent_that_is_not_there_is_no_parent() {
    for kernel in Kernel::ALL {
        let mut rig = Rig::new(kernel, 0);
        rig.add("1:77", "1:10", 1_000_000, 1_000_000);
        assert_eq!(rig.dump("1:10").parent, Handle::ROOT);
    }
}

#[test]
fn a_leaf_becomes_a_parent_and_a_leaf_again() {
    for kernel in Kernel::ALL {
        let mut rig = Rig::new(kernel, 0);
        rig.add("1:", "1:1", 1_000_000, 1_000_000);
        for seq in 0..5 {
            rig.send(seq, 1000, "1:1", 0);
        }
        assert_eq!((rig.dequeue(0), rig.dequeue(0), rig.dequeue(0)), (Some(0), Some(1), None));
        rig.add("1:1", "1:2", 1_000_000, 1_000_000);
        assert_eq!(rig.bench.dropped(), [2, 3, 4].map(|seq| (seq, DropReason::Purged)), "{kernel}");
        assert_eq!((rig.tree.qlen(), rig.stats().qlen, rig.stats().backlog), (0, 0, 0));
        // 6.12 counts a purge as drops of those above, 2.6.35 does not.
        assert_eq!(rig.stats().drops, if kernel >= Kernel::V6_12 { 3 } else { 0 });
        assert_eq!(rig.dump("1:1").options.u32("level"), Some(7));
        assert_eq!(rig.class(Verb::Del, "", "1:1", None).unwrap_err().errno, KernelError::EBUSY);
        rig.send(9, 1000, "1:2", 10);
        rig.class(Verb::Del, "", "1:2", None).unwrap();
        assert_eq!(rig.bench.dropped(), [(9, DropReason::Purged)]);
        assert_eq!(rig.dump("1:1").options.u32("level"), Some(0));
        assert_eq!(rig.send(10, 1000, "1:1", 20), Xmit::Success);
        assert_eq!((rig.dequeue(20), rig.tree.qlen()), (Some(10), 0), "{kernel}");
        rig.class(Verb::Del, "", "1:1", None).unwrap();
        assert!(rig.tree.dump_classes(Time::ZERO).is_empty());
    }
}

#[test]
fn refusals_are_the_kernels() {
    for kernel in Kernel::ALL {
        let no = |errno, words| Err(device(kernel).refusal(errno, words));
        let mut rig = Rig::new(kernel, 0);
        let options = |rate| Some(class_options(rate, 8_000_000, 0, 0));
        assert_eq!(rig.class(Verb::Add, "1:", "1:1", None), no(22, ""));
        assert_eq!(rig.class(Verb::Add, "1:", "1:1", options(0)), no(22, ""));
        assert_eq!(rig.class(Verb::Del, "", "1:1", None), no(2, ""));
        for depth in 1..=8 {
            let (parent, classid) = (format!("1:{:x}", depth - 1), format!("1:{depth:x}"));
            let parent = if depth == 1 { "1:" } else { &parent };
            rig.class(Verb::Add, parent, &classid, options(8_000_000)).unwrap();
        }
        assert_eq!(
            rig.class(Verb::Add, "1:8", "1:9", options(8_000_000)),
            no(22, "sch_htb: tree is too deep"),
            "{kernel}"
        );
        assert_eq!(rig.class(Verb::Del, "", "1:7", None), no(16, "HTB class in use"));
        let mut change = qdisc("change root handle 1: htb");
        change.options = Some(Options::new().with("r2q", 5u32).with("version", 3u32));
        let words = "Change operation not supported by specified qdisc";
        assert_eq!(rig.tree.qdisc(&change, &mut rig.bench.cx(0)), no(22, words));
    }
}

#[test]
fn what_no_class_wants_goes_directly() {
    for kernel in Kernel::ALL {
        let mut rig = Rig::new(kernel, 0x99);
        rig.add("1:", "1:1", 8_000, 8_000);
        for seq in 0..3 {
            rig.send(seq, 1500, "1:1", 0);
        }
        for (seq, classid) in [(3, "1:"), (4, "1:98"), (5, "0:6")] {
            assert_eq!(rig.send(seq, 1500, classid, 0), Xmit::Success);
        }
        let first: Vec<_> = std::iter::from_fn(|| rig.dequeue(0)).collect();
        assert_eq!(first[..3], [3, 4, 5], "{kernel}");
        assert_eq!(rig.tree.dump_qdiscs(Time::ZERO)[0].options.u32("direct_packets_stat"), Some(3));
    }
}

#[test]
fn classes_are_shown_in_the_order_of_the_hash() {
    // As linux 6.12.117 shows them.
    let mut rig = Rig::new(Kernel::V6_12, 0);
    for minor in [0x9, 0x1, 0x2, 0x3] {
        rig.add("1:", &format!("1:{minor:x}"), 1_000_000, 1_000_000);
    }
    let shown: Vec<String> =
        rig.tree.dump_classes(Time::ZERO).iter().map(|d| d.classid.to_string()).collect();
    assert_eq!(shown, ["1:9", "1:1", "1:2", "1:3"]);
}

#[test]
fn the_rate_of_a_class_is_estimated_in_2010_and_on_request_today() {
    for kernel in Kernel::ALL {
        let mut rig = Rig::new(kernel, 0);
        rig.add("1:", "1:1", 1_000_000, 1_000_000);
        let asked = |rig: &mut Rig, classid: &str, estimator| {
            let options = Some(class_options(800_000, 1_000_000, 0, 0));
            let kind = Some("htb".to_owned());
            let (verb, classid, parent) = (Verb::Add, id(classid), id("1:1"));
            let req = ClassRequest { verb, classid, parent, kind, options, estimator };
            rig.tree.class(&req, &mut rig.bench.cx(0))
        };
        asked(&mut rig, "1:2", None).unwrap();
        asked(&mut rig, "1:3", Some((0, 2))).unwrap();
        assert_eq!(asked(&mut rig, "1:4", Some((9, 2))).unwrap_err().errno, KernelError::EINVAL);
        assert_eq!(rig.tree.dump_classes(Time::ZERO).len(), 3, "{kernel}");
        // 50 kB/s each for a minute.
        for ms in (0..60_000).step_by(20) {
            for (i, classid) in ["1:2", "1:3"].into_iter().enumerate() {
                rig.send(ms + i as u64, 1000, classid, ms as i64 * 1_000_000);
            }
            while rig.dequeue(ms as i64 * 1_000_000).is_some() {}
        }
        let dumps = rig.tree.dump_classes(Time::from_ns(60_000_000_000));
        let rate = |c: &str| dumps.iter().find(|d| d.classid == id(c)).unwrap().stats.rate;
        let near = |rate: Option<(u64, u64)>, bytes: u64| {
            rate.is_some_and(|(b, p)| {
                b.abs_diff(bytes) < bytes / 10 && p.abs_diff(bytes / 1000) <= bytes / 10_000
            })
        };
        assert!(near(rate("1:3"), 50_000), "{kernel} {:?}", rate("1:3"));
        if kernel == Kernel::V2_6_35 {
            assert!(near(rate("1:2"), 50_000), "{:?}", rate("1:2"));
            assert!(near(rate("1:1"), 100_000), "{:?}", rate("1:1"));
        } else {
            assert_eq!((rate("1:2"), rate("1:1")), (None, None));
        }
    }
}

/// Classes that go leave with their parent what they have sent; a leaf that gets children keeps what it had.
#[test]
fn inner_classes_show_the_sum_of_those_below() {
    for kernel in Kernel::ALL {
        let mut rig = Rig::new(kernel, 0);
        let (mut seq, mut now) = (0, 0);
        let mut pass = |rig: &mut Rig, to: &[&str]| {
            for _ in 0..20 {
                for class in to {
                    rig.send(seq, 1000, class, now);
                    seq += 1;
                }
            }
            now = rig.drain(now).last().map_or(now, |last| last.1);
            assert_eq!(rig.tree.class_miscounts(), Vec::<String>::new(), "{kernel} after {seq}");
        };
        rig.add("1:", "1:1", 1_000_000, 1_000_000);
        pass(&mut rig, &["1:1"]);
        rig.add("1:1", "1:10", 300_000, 1_000_000);
        rig.add("1:1", "1:20", 100_000, 500_000);
        pass(&mut rig, &["1:10", "1:20"]);
        rig.add("1:10", "1:11", 200_000, 800_000);
        pass(&mut rig, &["1:11", "1:20"]);
        for gone in ["1:20", "1:11"] {
            rig.class(Verb::Del, "", gone, None).unwrap();
            assert_eq!(rig.tree.class_miscounts(), Vec::<String>::new(), "{kernel} without {gone}");
        }
        pass(&mut rig, &["1:10"]);
        assert_eq!(rig.dump("1:1").stats.packets, 20 + 40 + 40 + 20, "{kernel}");
    }
}

/// Linux counts a drop at the class whose queue refused it and at the qdisc, and at no class between.
#[test]
fn drops_are_the_leafs_and_the_qdiscs() {
    for kernel in Kernel::ALL {
        let mut rig = Rig::new(kernel, 0);
        rig.add("1:", "1:1", 1_000_000, 1_000_000);
        let send = |rig: &mut Rig, to: &str| {
            for seq in 0..50 {
                rig.send(seq, 1000, to, 0);
            }
        };
        let short = |rig: &mut Rig, parent: &str| {
            let line = qdisc(&format!("replace parent {parent} pfifo limit 5"));
            rig.tree.qdisc(&line, &mut rig.bench.cx(0)).unwrap();
        };
        short(&mut rig, "1:1");
        send(&mut rig, "1:1");
        assert_eq!(rig.dump("1:1").stats.drops, 45, "{kernel}");
        // Its queue goes, and what lay there with it; what it was refused stays.
        rig.add("1:1", "1:10", 300_000, 1_000_000);
        short(&mut rig, "1:10");
        send(&mut rig, "1:10");
        assert_eq!(["1:1", "1:10"].map(|class| rig.dump(class).stats.drops), [45, 45], "{kernel}");
        // What was queued and had to go counts at the qdisc of 6.12.
        let purged = if kernel >= Kernel::V6_12 { 5 } else { 0 };
        assert_eq!(rig.stats().drops, 90 + purged, "{kernel}");
        assert_eq!(rig.tree.class_miscounts(), Vec::<String>::new(), "{kernel}");
        // A packet of the class's queue more, or less, than the class or the qdisc shows.
        let htb = rig.tree.root_mut();
        htb.door.refused += 1;
        htb.door.lost += 1;
        htb.classes_mut().unwrap().leaf_mut(id("1:10")).unwrap().door.refused += 1;
        let (shown, lost) = (90 + purged, 91 + purged);
        let want = [
            "htb class 1:10: shows 45 drops, but its own queue has refused 46".to_owned(),
            format!("qdisc htb 1:: shows {shown} drops, but {lost} were lost in it and below"),
        ];
        assert_eq!(rig.tree.class_miscounts(), want, "{kernel}");
    }
}

/// A class's queue goes by the txqueuelen of when it is made, not by that of when htb was.
#[test]
fn a_leaf_is_as_long_as_the_device_says_when_it_is_made() {
    let mut rig = Rig::new(Kernel::V6_12, 0);
    rig.tree.set_device(Device { tx_queue_len: 2, ..*rig.tree.device() }, &mut rig.bench.cx(0));
    rig.add("1:", "1:1", 8_000, 8_000);
    let sent: Vec<Xmit> = (0..4).map(|n| rig.send(n, 1500, "1:1", 0)).collect();
    assert_eq!(sent, [Xmit::Success, Xmit::Success, Xmit::Drop, Xmit::Drop]);
}
