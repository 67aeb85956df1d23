//! Every kind keeps the contract: one set of operations, one model, every entry of the registry, both kernels.
//!
//! Checked after each operation: every packet that came in is queued, has left once, or is on the ledger once, in
//! packets and in bytes, and so it is with every qdisc in a class; a flow keeps its order (but in hhf, which moves it to another bucket);
//! a dequeue that gives nothing though something is queued names a later moment to ask again; no timer lies in the past once it was told to go off.
//! At the end: whatever is queued comes out in time, and the same operations give the same trace again.

use crate::rig;

use penstock_lang::tc::Command;
use penstock_model::{Handle, Kernel, Rng, Time};
use penstock_packet::{TxClock, TxTime};
use penstock_sched::traits::{Classes, Holds, Limit, LimitsRate, Sorting};
use penstock_sched::{Actions, Cx, Device, Init, Ledger, Qdisc, Xmit, sch};
use proptest::prelude::*;
use rig::{Rig, device, udp};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
enum Op {
    /// A packet: length, flow, priority as an index, mark.
    Enqueue(u32, u8, usize, u32),
    Dequeue,
    /// Time goes by, µs; timers go off late.
    Advance(u32),
    /// To the next timer.
    Wake,
    /// The root qdisc anew, with these options.
    Replace(usize),
    /// Its options changed.
    Change(usize),
    /// Another qdisc in a class.
    Graft(usize, usize, usize),
    /// A class made or changed: parent, itself, rate.
    Class(usize, usize, usize),
    /// A class deleted.
    DeleteClass(usize),
    /// What is in a class deleted.
    DeleteLeaf(usize),
    /// A filter: which, class.
    Filter(usize, usize),
    /// MTU and txqueuelen of the device.
    Device(u32),
}

/// Options to try a kind with.
fn options(kind: &str, kernel: Kernel) -> &'static [&'static str] {
    match (kind, kernel) {
        ("pfifo", _) => &["limit 4", "", "limit 30"],
        ("bfifo", _) => &["limit 5000", "", "limit 20000"],
        ("prio", _) => &["", "bands 4 priomap 3 2 1 0 0 1 2 3 3 2 1 0 0 1 2 3"],
        ("tbf", _) => &[
            "rate 1mbit burst 3000 limit 20000",
            "rate 64kbit burst 1600 limit 6000",
            "rate 1mbit burst 5000 limit 9000 peakrate 2mbit mtu 2000",
        ],
        ("sfq", Kernel::V2_6_35) => &["", "limit 9", "quantum 600 limit 20"],
        ("sfq", Kernel::V6_12 | Kernel::V7_2) => &[
            "",
            "limit 9 perturb 1",
            "limit 12 flows 5 depth 4 divisor 8 headdrop perturb 1 quantum 600",
            "limit 40 redflowlimit 30000 min 3000 max 9000 avpkt 1000 burst 10 probability 0.2 ecn",
        ],
        ("cbq", _) => &["bandwidth 10mbit avpkt 1000", "bandwidth 1mbit avpkt 500 cell 8 ewma 3"],
        ("codel", _) => &["", "limit 5 target 1ms interval 10ms", "target 100us interval 1ms ecn"],
        ("pie", _) => &["", "limit 5 target 1ms tupdate 8ms ecn", "target 100us bytemode dq_rate_estimator"],
        ("choke", _) => &[
            "limit 1000 bandwidth 10mbit min 100 max 300 avpkt 1000 burst 150",
            "limit 12 bandwidth 1mbit min 2 max 6 avpkt 1000 burst 4 probability 0.5 ecn",
        ],
        ("gred", _) => &["setup DPs 3 default 1", "setup DPs 2 default 0"],
        ("dsmark", _) => &["indices 4", "indices 64 default_index 3 set_tc_index"],
        ("fq", _) => &[
            "",
            "limit 6 flow_limit 3 quantum 300 initial_quantum 600 orphan_mask 1 buckets 2 weights 16384 16384 20000",
            "maxrate 500kbit quantum 1000 initial_quantum 1500 timer_slack 0",
            "maxrate 3mbit low_rate_threshold 0 ce_threshold 1ms timer_slack 200us",
        ],
        ("fq_codel", _) => &[
            "",
            "limit 5 flows 4 quantum 300",
            "target 1ms interval 5ms limit 20 memory_limit 20000 drop_batch 2",
        ],
        ("cake", _) => &[
            // Always as many tins: a change to fewer drops packets that the qdiscs above still count (`cake_clear_tin`).
            "diffserv4",
            "bandwidth 1mbit diffserv4 memlimit 9000 rtt 10ms ingress overhead 18 atm",
            "bandwidth 5mbit diffserv4 flowblind memlimit 20000 metro ack-filter wash",
            "diffserv4 dual-srchost rtt 1ms autorate-ingress fwmark 3",
        ],
        ("sfb", _) => &[
            "",
            "limit 20 max 9 target 4 increment 0.2 decrement 0.01",
            "limit 5 rehash 8 db 4 max 30 target 1 increment 1 penalty_rate 100 penalty_burst 3",
        ],
        ("red", _) => &[
            "limit 60000 min 5000 max 15000 avpkt 1000 burst 20 probability 0.1",
            "limit 9000 min 3000 max 9000 avpkt 1000 burst 5 probability 0.5 ecn",
        ],
        ("ets", _) => &[
            "bands 3 strict 1 quanta 600 2000",
            "bands 5 strict 0 quanta 300 priomap 4 3 2 1 0",
            "bands 2 strict 2",
        ],
        ("hfsc", _) => &["default 10", "default 99", "default 2"],
        // No packet overtakes another of its flow without jitter, nor is doubled; what is damaged is not told from others here.
        ("netem", Kernel::V2_6_35) => &["", "limit 20 delay 3ms", "limit 9 delay 1ms drop 20%"],
        ("netem", Kernel::V6_12 | Kernel::V7_2) => &[
            "",
            "limit 9 delay 5ms loss 20% rate 1mbit 18 48 5 seed 7",
            "delay 1ms loss gemodel 10% 30% slot 2ms packets 2 seed 8 ecn",
            "rate 500kbit loss state 10% 40% slot distribution normal 3ms 1ms bytes 3000",
        ],
        ("dualpi2", _) => &[
            "",
            "limit 5 memlimit 9000 target 1ms tupdate 4ms step_thresh 2p drop_enqueue any_ect",
            "max_rtt 20ms overflow classic_protection 50% min_qlen_step 2",
        ],
        ("htb", _) => &["default 10", "", "default 2 r2q 1"],
        ("fq_pie", _) => &[
            "",
            "limit 5 target 1ms tupdate 8ms ecn quantum 300",
            "target 100us tupdate 8ms bytemode dq_rate_estimator memory_limit 9000 ecn ecn_prob 50",
        ],
        ("skbprio", _) => &["", "limit 5", "limit 2"],
        ("hhf", _) => &[
            "",
            "limit 5 quantum 300 admit_bytes 1000 evict_timeout 8000 reset_timeout 4000",
            "limit 20 admit_bytes 3000 hh_limit 1 non_hh_weight 5",
        ],
        ("cbs", _) => &[
            "idleslope 1000 sendslope -9000 hicredit 3000 locredit -2000",
            "idleslope 300 sendslope -9700 hicredit 0 locredit -9000",
        ],
        ("plug", _) => &["", "limit 5000"],
        ("taprio", _) => &[
            "num_tc 2 map 0 1 1 0 0 0 1 1 queues 2@0 2@2 clockid CLOCK_TAI sched-entry S 1 3000000 sched-entry S 3 2000000 sched-entry S 2 5000000",
            "num_tc 2 map 0 1 1 0 0 0 1 1 queues 2@0 2@2 clockid CLOCK_TAI base-time 50000000 sched-entry S 3 5000000 sched-entry S 2 2000000",
            "num_tc 2 map 0 1 1 0 0 0 1 1 queues 2@0 2@2 clockid CLOCK_TAI sched-entry S f 1500000 cycle-time 1600000",
        ],
        ("etf", _) => &[
            "clockid CLOCK_TAI delta 5000000",
            "clockid CLOCK_TAI delta 1000",
            "clockid CLOCK_TAI delta 200000 deadline_mode skip_sock_check",
        ],
        ("mqprio", _) => &["num_tc 2 map 0 1 1 0 0 0 1 1 0 0 0 0 0 0 0 0 queues 1@0 3@1 hw 0"],
        _ => &[""],
    }
}

/// How many transmit queues a device has for a kind at its root.
fn queues_for(kind: &str) -> u32 {
    match kind {
        "multiq" | "mq" | "mqprio" | "cake_mq" | "taprio" => 4,
        _ => 1,
    }
}

const PRIORITIES: [u32; 12] =
    [0, 2, 6, 7, 0x1_0000, 0x1_0001, 0x1_0002, 0x1_0003, 0x1_0010, 0x1_0011, 0x1_0020, 0x2_0001];
const CLASSES: [&str; 7] = ["1:1", "1:2", "1:3", "1:10", "1:11", "1:20", "1:4"];
const RATES: [&str; 4] = [
    "rate 64kbit",
    "rate 100kbit ceil 1mbit prio 1",
    "rate 1mbit burst 5000",
    "rate 8kbit ceil 500kbit quantum 1000",
];
const CBQ_CLASSES: [&str; 4] = [
    "bandwidth 10mbit rate 64kbit allot 1514 prio 5 avpkt 1000 maxburst 10",
    "bandwidth 10mbit rate 1mbit weight 100kbit allot 1514 prio 3 avpkt 1000 maxburst 20 minburst 3 bounded",
    "bandwidth 10mbit rate 500kbit allot 700 prio 3 avpkt 300 isolated split 1: defmap c3",
    "bandwidth 10mbit rate 8kbit allot 1514 prio 8 avpkt 1000 borrow minidle 100",
];
/// What qfq's classes have instead of rates.
const WEIGHTS: [&str; 4] = ["weight 1", "weight 10 maxpkt 512", "weight 100 maxpkt 9000", "maxpkt 1514"];
/// What drr's classes have instead of rates.
const QUANTA: [&str; 4] = ["", "quantum 300", "quantum 1514", "quantum 5000"];
const CURVES: [&str; 4] = [
    "sc rate 64kbit",
    "ls m1 1mbit d 10ms m2 100kbit ul rate 500kbit",
    "rt umax 1500b dmax 20ms rate 100kbit",
    "rt m1 10kbit d 30ms m2 1mbit ls rate 8kbit",
];
const FILTERS: [&str; 4] = [
    "protocol ip prio 1 handle 1 fw flowid",
    "protocol ip prio 2 u32 match ip src 10.0.0.2 flowid",
    "protocol all prio 3 u32 match u32 0 0 flowid",
    "protocol ip prio 1 handle 2 fw flowid",
];

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        30 => (60u32..1515, 0u8..5, 0..PRIORITIES.len(), 0u32..4).prop_map(|(l, f, p, m)| Op::Enqueue(l, f, p, m)),
        20 => Just(Op::Dequeue),
        8 => (0u32..300_000).prop_map(Op::Advance),
        10 => Just(Op::Wake),
        1 => (0usize..6).prop_map(Op::Replace),
        2 => (0usize..6).prop_map(Op::Change),
        4 => (0..CLASSES.len(), 0usize..20, 0usize..6).prop_map(|(c, k, o)| Op::Graft(c, k, o)),
        8 => (0usize..=CLASSES.len(), 0..CLASSES.len(), 0..RATES.len()).prop_map(|(p, c, r)| Op::Class(p, c, r)),
        3 => (0..CLASSES.len()).prop_map(Op::DeleteClass),
        2 => (0..CLASSES.len()).prop_map(Op::DeleteLeaf),
        3 => (0..FILTERS.len(), 0..CLASSES.len()).prop_map(|(f, c)| Op::Filter(f, c)),
        1 => (1u32..50).prop_map(Op::Device),
    ]
}

/// A packet on its way: length, flow, and how many changes of the configuration there had been when it came.
struct Live {
    len: u32,
    flow: (u8, u32, u32),
    epoch: u32,
}

struct Model {
    rig: Rig,
    kind: &'static str,
    live: BTreeMap<u64, Live>,
    seq: u64,
    epoch: u32,
    /// How often the device's queues were reset.
    resets: u32,
    /// The kinds that were put into classes.
    grafted: BTreeSet<&'static str>,
    /// The last that left of a flow in an epoch.
    last: BTreeMap<((u8, u32, u32), u32), u64>,
    trace: Vec<(u64, i64)>,
}

impl Model {
    fn new(kind: &'static str, kernel: Kernel) -> Model {
        let rig = Rig::on(Device { tx_queues: queues_for(kind), ..device(kernel) });
        let (live, last, trace) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let grafted = BTreeSet::new();
        let mut model = Model { rig, kind, live, seq: 0, epoch: 0, resets: 0, grafted, last, trace };
        let first = options(kind, kernel)[0];
        model.rig.tc(&format!("qdisc add dev eth0 root handle 1: {kind} {first}")).unwrap();
        model
    }
    fn kernel(&self) -> Kernel {
        self.rig.tree.device().kernel
    }

    /// tc may refuse; then nothing may have changed but what the books can bear.
    fn tc(&mut self, line: &str) {
        self.epoch += 1;
        let _ = self.rig.tc(line);
    }

    fn apply(&mut self, op: &Op) {
        let (kind, kernel) = (self.kind, self.kernel());
        let pick = |kind: &str, i: usize| {
            let all = options(kind, kernel);
            all[i % all.len()]
        };
        match *op {
            Op::Enqueue(len, host, priority, mark) => self.enqueue(len, host, PRIORITIES[priority], mark),
            Op::Dequeue => {
                self.dequeue();
            }
            Op::Advance(us) => {
                self.rig.now += i64::from(us) * 1000;
                self.expire();
            }
            Op::Wake => {
                if let Some(at) = self.rig.tree.next_wakeup() {
                    self.rig.now = self.rig.now.max(at.as_ns());
                    self.expire();
                    while self.dequeue() {}
                }
            }
            Op::Replace(o) => {
                self.tc("qdisc del dev eth0 root");
                assert_eq!(self.rig.qlen(), 0);
                self.grafted.clear();
                self.tc(&format!("qdisc add dev eth0 root handle 1: {kind} {}", pick(kind, o)));
            }
            Op::Change(o) => {
                self.tc(&format!("qdisc change dev eth0 root handle 1: {kind} {}", pick(kind, o)))
            }
            Op::Graft(class, k, o) => {
                let child = sch::KINDS[k % sch::KINDS.len()].id;
                let (parent, handle) = (CLASSES[class], 0x100 + class);
                self.grafted.insert(child);
                // What `autorate-ingress` sees may be some bytes a second: to wait for that takes more of a schedule's wakes than `drain` has.
                let o = if kind == "taprio" && child == "cake" { o % 3 } else { o };
                self.tc(&format!(
                    "qdisc replace dev eth0 parent {parent} handle {handle:x}: {child} {}",
                    pick(child, o)
                ));
            }
            Op::Class(parent, class, rate) => {
                let parent = if parent == CLASSES.len() { "1:" } else { CLASSES[parent] };
                let class = CLASSES[class];
                let rate = match kind {
                    "cbq" => CBQ_CLASSES[rate],
                    "drr" => QUANTA[rate],
                    "qfq" => WEIGHTS[rate],
                    "hfsc" => CURVES[rate],
                    "dsmark" => "mask 0x3 value 0xb8",
                    _ => RATES[rate],
                };
                if parent != class {
                    self.tc(&format!("class replace dev eth0 parent {parent} classid {class} {kind} {rate}"));
                }
            }
            Op::DeleteClass(class) => self.tc(&format!("class del dev eth0 classid {}", CLASSES[class])),
            Op::DeleteLeaf(class) => self.tc(&format!("qdisc del dev eth0 parent {}", CLASSES[class])),
            Op::Filter(f, class) => {
                self.tc(&format!("filter add dev eth0 parent 1: {} {}", FILTERS[f], CLASSES[class]));
            }
            Op::Device(len) => {
                self.epoch += 1;
                self.resets += 1;
                let device = Device { tx_queue_len: len, ..*self.rig.tree.device() };
                self.rig.call(|tree, cx| tree.set_device(device, cx));
            }
        }
        self.balance();
    }

    fn enqueue(&mut self, len: u32, host: u8, priority: u32, mark: u32) {
        let mut skb = udp(self.seq, len, host, priority);
        skb.mark = mark;
        if self.has_had("etf") || self.kind == "taprio" {
            // Packets ask to leave a while later, a few have done so too late.
            // None before the clock began: no clock of a machine gives that.
            let at = self.rig.now + i64::from(len) * 10_000 - 1_000_000;
            skb.sender.departs = Time::from_ns(at.max(1));
            skb.rare_mut().txtime =
                Some(TxTime { clock: TxClock::Tai, asked: mark != 2, deadline: mark == 3 });
        }
        self.live.insert(self.seq, Live { len, flow: (host, priority, mark), epoch: self.epoch });
        self.seq += 1;
        let before = self.rig.drops.len();
        let xmit = self.rig.enqueue(Box::new(skb));
        // A drop is told, or the packet that is dropped was another's.
        let dropped = self.rig.drops.entries()[before..].iter().any(|(p, _)| p.seq == self.seq - 1);
        assert!(!dropped || xmit != Xmit::Success, "#{} was dropped in silence", self.seq - 1);
    }

    /// Timers that are due go off.
    fn expire(&mut self) {
        let now = Time::from_ns(self.rig.now);
        if self.rig.tree.next_wakeup().is_some_and(|at| at <= now) {
            self.rig.tree.expire(now);
        }
        assert!(self.rig.tree.next_wakeup().is_none_or(|at| at > now), "a timer lies in the past");
    }

    /// Whether something came out.
    fn dequeue(&mut self) -> bool {
        self.expire();
        let mut packet = self.rig.dequeue();
        // A timer may be set for the present moment (cake's failsafe); asked then, it is not set so again.
        if packet.is_none()
            && self.rig.qlen() > 0
            && self.rig.tree.next_wakeup().is_some_and(|w| w.as_ns() <= self.rig.now)
        {
            self.expire();
            packet = self.rig.dequeue();
        }
        let Some(packet) = packet else {
            if self.rig.qlen() > 0 {
                match self.rig.tree.next_wakeup() {
                    Some(wake) => {
                        assert!(
                            wake.as_ns() > self.rig.now,
                            "asked again at once: {wake} at {}",
                            self.rig.now
                        );
                    }
                    None => assert!(self.stalls(), "something is queued: there is a time to ask again"),
                }
            }
            return false;
        };
        let live = self.live.remove(&packet.seq).expect("what leaves came in, and leaves once");
        assert_eq!(packet.len, live.len);
        if let Some(before) = self.last.insert((live.flow, live.epoch), packet.seq) {
            assert!(
                before < packet.seq || self.has_had("hhf") || self.has_had("etf"),
                "#{} overtook #{before}",
                packet.seq
            );
        }
        self.trace.push((packet.seq, self.rig.now));
        self.rig.pool.free(packet);
        true
    }

    /// Whether there is or was a qdisc of a kind.
    fn has_had(&self, kind: &str) -> bool {
        self.kind == kind || self.grafted.contains(kind)
    }
    /// cbq's round ends early where the first class it meets has nothing more (`cbq_dequeue_prio`), and Linux then waits
    /// for whoever asks next.
    /// drr, ets and qfq end their search at a class whose packets have all missed their time (etf): `drr_dequeue`, `ets_qdisc_dequeue`
    /// and `qfq_dequeue` give nothing where `qdisc_dequeue_peeked` does.
    fn stalls(&self) -> bool {
        let ends_at_etf = matches!(self.kind, "drr" | "ets" | "qfq") && self.grafted.contains("etf");
        self.kind == "cbq" || ends_at_etf || self.is_stuck()
    }
    /// Where packets may stay for good, as in Linux: in hfsc's own class, which takes them by name and by `default 0` while there is no
    /// other and has no curve to send them by; in a class of real time alone after a reset of 6.12 (`cl_in_el_or_vttree`: its node is not
    /// cleared); in 2.6.35 behind a class with `rt` and without `ls`, which stays among its siblings when those below it have sent all
    /// (`update_vf` passes over it); in a choke whose ring is full of places, and looks empty.
    fn is_stuck(&self) -> bool {
        let now = Time::from_ns(self.rig.now);
        let classes = self.rig.tree.dump_classes(now);
        let classes = classes.iter().filter(|c| c.kind == "hfsc" && c.classid.minor() != 0);
        let old = self.rig.tree.device().kernel == Kernel::V2_6_35;
        let known = if old { classes.clone().any(|c| !c.options.has("ls")) } else { self.resets > 0 };
        let dumps = self.rig.tree.dump_qdiscs(now);
        let mut hfsc = dumps.iter().filter(|d| d.kind == "hfsc" && d.stats.qlen > 0);
        let stuck = hfsc.any(|d| known || !classes.clone().any(|c| c.classid.qdisc() == d.handle));
        // A reset, which a new qdisc in a queue brings too, ends taprio's schedule: what stands behind a closed gate stays there (`taprio_reset`).
        let ended = self.kind == "taprio" && (self.resets > 0 || !self.grafted.is_empty());
        // plug waits for a command.
        // Packets that etf has dropped late are counted above it for good (`tests/displaced.rs`).
        let late = self.grafted.contains("etf") && self.live.len() <= self.rig.drops.len();
        stuck || ended || late || self.queues_in("choke") || self.queues_in("plug")
    }
    /// Whether a qdisc of a kind says that it holds packets.
    fn queues_in(&self, kind: &str) -> bool {
        let dumps = self.rig.tree.dump_qdiscs(Time::from_ns(self.rig.now));
        dumps.iter().any(|d| d.kind == kind && d.stats.qlen > 0)
    }

    /// In = out + dropped + queued.
    fn balance(&mut self) {
        for (packet, _) in self.rig.drops.drain() {
            self.live.remove(&packet.seq).expect("what is dropped came in, and is dropped once");
            self.trace.push((packet.seq, -1));
            self.rig.pool.free(packet);
        }
        let (queued, live) = (self.rig.qlen() as usize, self.live.len());
        // `choke_enqueue` asks nothing of its ring, which holes make longer than what is queued: the tail may overtake the head, and
        // what stood there is gone and still counted.
        assert!(
            queued == live || queued > live && (self.queues_in("choke") || self.grafted.contains("etf")),
            "{queued} packets queued, {live} came in and not out"
        );
        assert_eq!(self.rig.tree.miscounts(), [], "every qdisc below too");
        assert_eq!(self.rig.tree.class_miscounts(), Vec::<String>::new(), "inner classes");
        // cbq and multiq show none of the bytes they hold.
        // Those above skbprio and hhf are not told of the lengths of packets that take each other's places (`tests/displaced.rs`).
        // mq and its like show the sum of what those in the queues show.
        let sums = matches!(self.kind, "mq" | "mqprio");
        let hides = sums && (self.grafted.contains("cbq") || self.grafted.contains("multiq"));
        // taprio counts packets as queued that a queue has refused; teql counts none as they come, and no bytes.
        let drifts = hides
            || matches!(self.kind, "taprio" | "teql0")
            || self.grafted.contains("skbprio")
            || self.grafted.contains("hhf")
            || self.grafted.contains("etf");
        if self.kernel() >= Kernel::V6_12 && !matches!(self.kind, "cbq" | "multiq") && !drifts {
            let shown = self.rig.tree.root().stats();
            let bytes: u32 = self.live.values().map(|l| l.len).sum();
            assert_eq!((shown.qlen, shown.backlog), (self.rig.qlen(), bytes), "bytes queued");
        }
    }

    /// Whatever is queued comes out in time.
    fn drain(&mut self) {
        for _ in 0..20_000 {
            while self.dequeue() {}
            self.balance();
            // What etf has dropped late is counted for good, also above it where gates go on opening (taprio).
            let all_late = self.grafted.contains("etf") && self.live.is_empty();
            let asleep = self.rig.tree.next_wakeup().is_none() && self.is_stuck();
            if self.rig.qlen() == 0 || all_late || asleep {
                return;
            }
            if let Some(wake) = self.rig.tree.next_wakeup() {
                self.rig.now = wake.as_ns();
            }
        }
        panic!("{} packets never come out", self.rig.qlen());
    }
}

fn run(kind: &'static str, kernel: Kernel, ops: &[Op]) -> Vec<(u64, i64)> {
    let mut model = Model::new(kind, kernel);
    ops.iter().for_each(|op| model.apply(op));
    model.drain();
    model.trace
}

fn check(kind: &'static str, kernel: Kernel) {
    let cases = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(cases, |(ops in prop::collection::vec(op(), 1..150))| {
        let trace = run(kind, kernel, &ops);
        prop_assert_eq!(trace, run(kind, kernel, &ops), "the same again");
    });
}

/// The kinds that hold packets: all but those of the ingress hook.
fn queues() -> impl Iterator<Item = &'static sch::KindSpec> {
    sch::KINDS.iter().copied().filter(|s| s.simulated && s.traits.classes != Classes::Hooks)
}

/// Every kind that carries packets, in every kernel that has it.
fn places() -> impl Iterator<Item = (&'static sch::KindSpec, Kernel)> {
    queues().flat_map(|s| s.kernels.iter().map(move |&k| (s, k)))
}

#[test]
fn every_kind_keeps_the_contract() {
    let all: Vec<_> = places().collect();
    assert!(all.len() > 30, "{}", all.len());
    // Two at a time, each with a name to look for where it fails.
    std::thread::scope(|scope| {
        let (even, odd): (Vec<_>, Vec<_>) = all.iter().enumerate().partition(|(n, _)| n.is_multiple_of(2));
        for half in [even, odd] {
            scope.spawn(move || {
                for (_, (spec, kernel)) in half {
                    let held = std::panic::catch_unwind(|| check(spec.id, *kernel));
                    held.unwrap_or_else(|_| panic!("{} of {kernel} breaks the contract", spec.id));
                }
            });
        }
    });
}

/// A qdisc of a kind with the first of its options, by itself.
fn build(spec: &sch::KindSpec, kernel: Kernel, cx: &mut Cx<'_>) -> Box<dyn Qdisc> {
    let line = format!("qdisc add dev eth0 root handle 1: {} {}", spec.id, options(spec.id, kernel)[0]);
    let words = penstock_lang::token::words(&line).unwrap();
    // The tc of 2010 cannot name pfifo_fast.
    let speaks = if spec.id == "pfifo_fast" { Kernel::V6_12 } else { kernel };
    let Some(Command::Qdisc { req, .. }) = penstock_lang::tc::parse(&words, speaks).unwrap().pop() else {
        panic!("{line}")
    };
    let device = Device { tx_queues: queues_for(spec.id), ..device(kernel) };
    let init = Init { device, handle: Handle::new(1, 0), parent: Handle::ROOT };
    (spec.build)(&init, req.options.as_ref(), cx).unwrap()
}

/// Whether a qdisc of the kind queues packets before it has any class.
fn queues_at_once(spec: &sch::KindSpec) -> bool {
    // hfsc's own class has no curve.
    spec.traits.sorting != Sorting::Flat
        && spec.id != "hfsc"
        // plug gives none before a command.
        && spec.id != "plug"
        // etf takes only packets that name a time, and shows them before it.
        && spec.id != "etf"
        // A reset ends taprio's schedule, and nobody can peek.
        && spec.id != "taprio"
        // Nobody can peek at teql's either.
        && spec.id != "teql0"
        && (spec.traits.queue != Holds::Nothing || spec.id == "noqueue")
}

/// A reset qdisc is empty, has put everything on the ledger, and works as before.
#[test]
fn reset_empties_and_no_more() {
    // A reset of cbs leaves its credit and its timer.
    for (spec, kernel) in places().filter(|(spec, _)| queues_at_once(spec) && spec.id != "cbs") {
        let (mut rng, mut drops, mut acts) = (Rng::named(1, "reset"), Ledger::new(), Actions::new());
        let mut cx = Cx { now: Time::from_ns(1_000_000), rng: &mut rng, drops: &mut drops, acts: &mut acts };
        let mut qdisc = build(spec, kernel, &mut cx);
        for round in 0..3 {
            let from = cx.drops.len();
            for seq in 0..4 {
                assert_eq!(qdisc.enqueue(Box::new(udp(seq, 700, seq as u8, 0)), &mut cx), Xmit::Success);
            }
            if round == 1 {
                assert!(qdisc.peek(&mut cx).is_some(), "{kernel} {}", spec.id);
            }
            let stats = qdisc.stats();
            assert_eq!(qdisc.qlen(), 4);
            qdisc.reset(&mut cx);
            assert_eq!(
                (qdisc.qlen(), qdisc.stats().backlog, cx.drops.len() - from),
                (0, 0, 4),
                "{kernel} {}",
                spec.id
            );
            assert_eq!(qdisc.stats().drops, stats.drops, "{kernel} {}", spec.id);
            assert!(qdisc.dequeue(&mut cx).is_none() && qdisc.next_wakeup().is_none());
        }
        qdisc.enqueue(Box::new(udp(9, 700, 1, 0)), &mut cx);
        assert_eq!(qdisc.dequeue(&mut cx).map(|p| p.seq), Some(9), "{kernel} {}", spec.id);
    }
}

/// What `peek` shows is what the next `dequeue` gives.
#[test]
fn peek_tells_the_truth() {
    for (spec, kernel) in places().filter(|(spec, _)| queues_at_once(spec)) {
        let mut rng = Rng::named(1, "peek");
        let (mut drops, mut acts) = (Ledger::new(), Actions::new());
        let mut cx = Cx { now: Time::from_ns(1_000_000), rng: &mut rng, drops: &mut drops, acts: &mut acts };
        let mut qdisc = build(spec, kernel, &mut cx);
        for seq in 0..4 {
            qdisc.enqueue(Box::new(udp(seq, 700, seq as u8, 0)), &mut cx);
        }
        let mut given = 0;
        for _ in 0..100 {
            let shown = qdisc.peek(&mut cx).map(|p| p.seq);
            assert_eq!(qdisc.qlen(), 4 - given);
            let out = qdisc.dequeue(&mut cx).map(|p| p.seq);
            assert_eq!(shown, out, "{kernel} {}", spec.id);
            given += u32::from(out.is_some());
            match qdisc.next_wakeup() {
                Some(at) if out.is_none() => {
                    cx.now = at;
                    qdisc.expire(at.into());
                }
                _ => {}
            }
        }
        assert_eq!(given, 4, "{kernel} {}", spec.id);
    }
}

/// What the registry says of a kind is what one of it does.
#[test]
fn traits_are_what_the_kinds_do() {
    for kernel in Kernel::ALL {
        for kind in sch::KINDS.iter().filter(|k| k.kernels.contains(&kernel)) {
            for words in options(kind.id, kernel) {
                let mut rig = Rig::new(kernel);
                let line = format!("qdisc add dev eth0 root handle 1: {} {words}", kind.id);
                if rig.tc(&line).is_err() {
                    continue;
                }
                let (traits, at) = (&kind.traits, format!("{kernel} {line}"));
                let options = rig.tree.options_of(Handle::new(1, 0)).unwrap_or_default();
                assert_eq!(traits.limit != Limit::None, options.has("limit"), "{at}: {options:?}");
                if let LimitsRate::Qdisc(name) = traits.limits_rate {
                    assert!(options.has(name), "{at}: {options:?}");
                }
                let root = rig.tree.root();
                let classes = root.classes();
                assert_eq!(traits.takes_filters, classes.is_some_and(|c| c.filters().is_some()), "{at}");
                let mut below = 0;
                classes.inspect(|c| c.children(&mut |_, _| below += 1));
                match traits.classes {
                    Classes::None => assert!(classes.is_none(), "{at}"),
                    Classes::Inner => assert!(below <= 1, "{at}"),
                    Classes::Fixed | Classes::Queues => assert!(below >= 1, "{at}"),
                    Classes::Made | Classes::Hooks => assert!(classes.is_some(), "{at}"),
                    Classes::Flows => assert!(classes.is_some() && below == 0, "{at}"),
                    Classes::Table => assert_eq!(below, 1, "{at}"),
                }
            }
        }
    }
}
