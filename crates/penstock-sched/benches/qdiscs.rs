//! What one packet costs in each kind: an enqueue and the dequeue that goes with it.
//!
//! Every iteration puts one packet in and takes one out, the same memory again and again, with a few packets waiting
//! all the time and 10 µs going by. `cargo bench -p penstock-sched`; samples are of 4096 iterations each, so that
//! reading the clock does not count.

#[path = "../tests/rig/mod.rs"]
mod rig;

use divan::Bencher;
use divan::counter::ItemsCount;
use penstock_model::{Kernel, Time};
use penstock_packet::{Packet, Skb, TxClock, TxTime};
use penstock_sched::Device;
use rig::{Rig, device, udp};

fn main() {
    divan::main();
}

const KERNELS: [Kernel; 2] = [Kernel::V6_12, Kernel::V2_6_35];
/// Packets that wait meanwhile.
const WAITING: u64 = 8;

/// One packet in and one out, forever.
fn steady(bencher: Bencher, mut rig: Rig, packet: impl Fn(u64) -> Skb) {
    let mut spare: Packet = Box::new(packet(0));
    for seq in 1..=WAITING {
        rig.enqueue(Box::new(packet(seq)));
    }
    bencher.counter(ItemsCount::new(1u32)).bench_local(move || {
        rig.now += 10_000;
        rig.call(|tree, cx| {
            let next = tree.dequeue(cx).expect("something waits and may go");
            tree.enqueue(std::mem::replace(&mut spare, next), cx)
        })
    });
}

/// Packets of eight flows.
fn flows(seq: u64) -> Skb {
    udp(seq, 1000, (seq % 8) as u8, 0)
}

#[divan::bench(args = KERNELS, sample_size = 4096)]
fn pfifo(bencher: Bencher, kernel: Kernel) {
    steady(bencher, Rig::with(kernel, &["qdisc add dev eth0 root pfifo limit 1000"]), flows);
}

#[divan::bench(args = KERNELS, sample_size = 4096)]
fn pfifo_fast(bencher: Bencher, kernel: Kernel) {
    steady(bencher, Rig::with(kernel, &["qdisc add dev eth0 root pfifo_fast"]), flows);
}

#[divan::bench(args = KERNELS, sample_size = 4096)]
fn prio(bencher: Bencher, kernel: Kernel) {
    steady(bencher, Rig::with(kernel, &["qdisc add dev eth0 root handle 1: prio"]), flows);
}

#[divan::bench(args = KERNELS, sample_size = 4096)]
fn tbf(bencher: Bencher, kernel: Kernel) {
    let line = "qdisc add dev eth0 root tbf rate 2gbit burst 100kb limit 1mb";
    steady(bencher, Rig::with(kernel, &[line]), flows);
}

#[divan::bench(args = KERNELS, sample_size = 4096)]
fn sfq(bencher: Bencher, kernel: Kernel) {
    steady(bencher, Rig::with(kernel, &["qdisc add dev eth0 root sfq"]), flows);
}

#[divan::bench(args = KERNELS, sample_size = 4096)]
fn red(bencher: Bencher, kernel: Kernel) {
    let line = "qdisc add dev eth0 root red limit 10000000 min 1000000 max 3000000 avpkt 1000 burst 1200 bandwidth 1gbit";
    steady(bencher, Rig::with(kernel, &[line]), flows);
}

#[divan::bench(sample_size = 4096)]
fn codel(bencher: Bencher) {
    steady(
        bencher,
        Rig::with(Kernel::V6_12, &["qdisc add dev eth0 root codel target 1s interval 10s"]),
        flows,
    );
}

#[divan::bench(args = ["", "maxrate 1gbit"], sample_size = 4096)]
fn fq(bencher: Bencher, words: &str) {
    let line = format!("qdisc add dev eth0 root fq {words}");
    steady(bencher, Rig::with(Kernel::V6_12, &[&line]), flows);
}

/// Flows of their own, which take turns.
#[divan::bench(sample_size = 4096)]
fn fq_codel(bencher: Bencher) {
    steady(
        bencher,
        Rig::with(Kernel::V6_12, &["qdisc add dev eth0 root fq_codel target 1s interval 10s"]),
        flows,
    );
}

/// As many flows, PIE in each.
#[divan::bench(sample_size = 4096)]
fn fq_pie(bencher: Bencher) {
    steady(bencher, Rig::with(Kernel::V6_12, &["qdisc add dev eth0 root fq_pie"]), flows);
}

#[divan::bench(args = ["", "admit_bytes 1000"], sample_size = 4096)]
fn hhf(bencher: Bencher, words: &str) {
    steady(bencher, Rig::with(Kernel::V6_12, &[&format!("qdisc add dev eth0 root hhf {words}")]), flows);
}

/// Eight of the 64 priorities have a packet each.
#[divan::bench(sample_size = 4096)]
fn skbprio(bencher: Bencher) {
    let line = "qdisc add dev eth0 root skbprio";
    steady(bencher, Rig::with(Kernel::V6_12, &[line]), |seq| udp(seq, 1000, 1, (seq % 8 * 8) as u32));
}

/// The same, with hosts that share: without a limit, and behind a rate that is never reached.
#[divan::bench(args = ["besteffort", "diffserv4", "bandwidth 400gbit", "flowblind"], sample_size = 4096)]
fn cake(bencher: Bencher, words: &str) {
    let line = format!("qdisc add dev eth0 root cake rtt 1000s {words}");
    steady(bencher, Rig::with(Kernel::V6_12, &[&line]), flows);
}

/// A line of its own, which is never busy; and delays at random, which sort.
#[divan::bench(args = ["delay 1us", "rate 100gbit loss 0.001%", "delay 2us 1us distribution normal"], sample_size = 4096)]
fn netem(bencher: Bencher, words: &str) {
    let line = format!("qdisc add dev eth0 root netem limit 100000 {words} seed 1");
    steady(bencher, Rig::with(Kernel::V6_12, &[&line]), flows);
}

/// Kinds of today without a bench of their own, with their defaults.
const OTHERS: [&str; 4] = ["bfifo", "pfifo_head_drop", "pie", "sfb"];

#[divan::bench(args = OTHERS, sample_size = 4096)]
fn other(bencher: Bencher, kind: &str) {
    steady(bencher, Rig::with(Kernel::V6_12, &[&format!("qdisc add dev eth0 root {kind}")]), flows);
}

/// The packet's hash chooses among four transmit queues.
#[divan::bench(args = ["multiq", "mq", "mqprio num_tc 2 map 0 1 queues 1@0 3@1 hw 0"], sample_size = 4096)]
fn four_queues(bencher: Bencher, kind: &str) {
    let device = Device { tx_queues: 4, ..device(Kernel::V6_12) };
    steady(bencher, Rig::with_on(device, &[&format!("qdisc add dev eth0 root handle 1: {kind}")]), flows);
}

/// Credit that is never used up, on a port of 10 Gbit/s.
#[divan::bench(sample_size = 4096)]
fn cbs(bencher: Bencher) {
    let device = Device { speed_mbit: Some(10_000), ..device(Kernel::V6_12) };
    let line =
        "qdisc add dev eth0 root cbs idleslope 9000000 sendslope -1000000 hicredit 100000 locredit -100000";
    steady(bencher, Rig::with_on(device, &[line]), flows);
}

/// Gates that are open nine milliseconds of ten; who asks when they are closed waits for that.
#[divan::bench(sample_size = 4096)]
fn taprio(bencher: Bencher) {
    let device = Device { tx_queues: 4, speed_mbit: Some(10_000), ..device(Kernel::V6_12) };
    let line = "qdisc add dev eth0 root handle 1: taprio num_tc 2 map 0 1 queues 2@0 2@2 clockid CLOCK_TAI \
                sched-entry S 3 4000000 sched-entry S 1 5000000 sched-entry S 0 1000000";
    let mut rig = Rig::with_on(device, &[line]);
    let mut spare: Packet = Box::new(flows(0));
    for seq in 1..=WAITING {
        rig.enqueue(Box::new(flows(seq)));
    }
    bencher.counter(ItemsCount::new(1u32)).bench_local(move || {
        rig.now += 10_000;
        let next = loop {
            if rig.tree.next_wakeup().is_some_and(|at| at.as_ns() <= rig.now) {
                rig.tree.expire(Time::from_ns(rig.now));
            }
            match rig.call(|tree, cx| tree.dequeue(cx)) {
                Some(next) => break next,
                None => rig.now = rig.tree.next_wakeup().map_or(rig.now, Time::as_ns),
            }
        };
        rig.call(|tree, cx| tree.enqueue(std::mem::replace(&mut spare, next), cx))
    });
}

/// Each packet asks to leave 100 µs later, and does so within the last 50 µs.
#[divan::bench(sample_size = 4096)]
fn etf(bencher: Bencher) {
    let mut rig = Rig::with(Kernel::V6_12, &["qdisc add dev eth0 root etf clockid CLOCK_TAI delta 50000"]);
    let ask = |packet: &mut Skb, now: i64| {
        packet.sender.departs = Time::from_ns(now + 100_000);
        packet.rare_mut().txtime = Some(TxTime { clock: TxClock::Tai, asked: true, deadline: false });
    };
    let mut spare: Packet = Box::new(flows(0));
    for seq in 1..=WAITING {
        let mut packet: Packet = Box::new(flows(seq));
        ask(&mut packet, rig.now);
        rig.enqueue(packet);
        rig.now += 10_000;
    }
    bencher.counter(ItemsCount::new(1u32)).bench_local(move || {
        rig.now += 10_000;
        ask(&mut spare, rig.now);
        rig.call(|tree, cx| {
            let next = tree.dequeue(cx).expect("something waits and may go");
            tree.enqueue(std::mem::replace(&mut spare, next), cx)
        })
    });
}

/// It has been told to let everything go.
#[divan::bench(sample_size = 4096)]
fn plug(bencher: Bencher) {
    let lines = ["qdisc add dev eth0 root plug", "qdisc change dev eth0 root plug release_indefinite"];
    steady(bencher, Rig::with(Kernel::V6_12, &lines), flows);
}

/// Every packet meets a policer that lets it pass.
#[divan::bench(args = KERNELS, sample_size = 4096)]
fn prio_with_police(bencher: Bencher, kernel: Kernel) {
    let police = "filter add dev eth0 parent 1: protocol ip prio 1 u32 match u32 0 0 police rate 4gbit burst 100k drop flowid 1:2";
    steady(bencher, Rig::with(kernel, &[PRIO, police]), flows);
}

const HTB: [&str; 2] = [
    "qdisc add dev eth0 root handle 1: htb",
    "class add dev eth0 parent 1: classid 1:1 htb rate 4gbit burst 100k cburst 100k",
];
/// The class that sends.
const BUSY: u32 = 0x1_8000;

fn htb(classes: u32, kernel: Kernel) -> Rig {
    let mut rig = Rig::with(kernel, &HTB);
    let mut leaf = |minor: u32, rate: &str| {
        let line = format!(
            "class add dev eth0 parent 1:1 classid 1:{minor:x} htb rate {rate} burst 100k cburst 100k quantum 1500"
        );
        rig.tc(&line).unwrap();
    };
    leaf(BUSY & 0xffff, "2gbit");
    (0..classes).for_each(|i| leaf(2 + i, "100kbit"));
    rig
}

#[divan::bench(args = KERNELS, sample_size = 4096)]
fn htb_1_class(bencher: Bencher, kernel: Kernel) {
    steady(bencher, htb(0, kernel), |seq| udp(seq, 1000, 1, BUSY));
}

#[divan::bench(args = KERNELS, sample_size = 4096)]
fn htb_10000_idle_classes(bencher: Bencher, kernel: Kernel) {
    steady(bencher, htb(10_000, kernel), |seq| udp(seq, 1000, 1, BUSY));
}

/// The class wakes and falls asleep with each packet.
#[divan::bench(args = KERNELS, sample_size = 4096)]
fn htb_1_class_one_packet(bencher: Bencher, kernel: Kernel) {
    let mut rig = htb(0, kernel);
    let mut spare: Option<Packet> = Some(Box::new(udp(0, 1000, 1, BUSY)));
    bencher.counter(ItemsCount::new(1u32)).bench_local(move || {
        rig.now += 10_000;
        rig.call(|tree, cx| {
            tree.enqueue(spare.take().expect("it came back"), cx);
            spare = tree.dequeue(cx);
        });
    });
}

/// Eight leaves borrow from their parent in turn.
#[divan::bench(args = KERNELS, sample_size = 4096)]
fn htb_borrowing(bencher: Bencher, kernel: Kernel) {
    let mut rig = Rig::with(kernel, &HTB);
    for minor in 0..8 {
        let line = format!(
            "class add dev eth0 parent 1:1 classid 1:1{minor} htb rate 8kbit ceil 4gbit burst 1600 cburst 100k quantum 1500"
        );
        rig.tc(&line).unwrap();
    }
    steady(bencher, rig, |seq| udp(seq, 1000, 1, 0x1_0010 + (seq % 8) as u32));
}

fn hfsc(classes: u32, kernel: Kernel) -> Rig {
    let mut rig = Rig::with(kernel, &["qdisc add dev eth0 root handle 1: hfsc"]);
    rig.tc("class add dev eth0 parent 1: classid 1:1 hfsc ls rate 8gbit ul rate 8gbit").unwrap();
    let mut leaf = |minor: u32, curve: &str| {
        rig.tc(&format!("class add dev eth0 parent 1:1 classid 1:{minor:x} hfsc {curve}")).unwrap();
    };
    leaf(BUSY & 0xffff, "sc rate 4gbit");
    (0..classes).for_each(|i| leaf(2 + i, "sc rate 100kbit"));
    rig
}

#[divan::bench(args = KERNELS, sample_size = 4096)]
fn hfsc_1_class(bencher: Bencher, kernel: Kernel) {
    steady(bencher, hfsc(0, kernel), |seq| udp(seq, 1000, 1, BUSY));
}

#[divan::bench(args = KERNELS, sample_size = 4096)]
fn hfsc_10000_idle_classes(bencher: Bencher, kernel: Kernel) {
    steady(bencher, hfsc(10_000, kernel), |seq| udp(seq, 1000, 1, BUSY));
}

/// A thousand classes that all have packets.
#[divan::bench(args = KERNELS, sample_size = 4096)]
fn hfsc_1000_busy_classes(bencher: Bencher, kernel: Kernel) {
    steady(bencher, hfsc(1_000, kernel), |seq| udp(seq, 1000, 1, 0x1_0002 + (seq % 1000) as u32));
}

/// Two strict bands and two that share, with packets in all of them.
#[divan::bench(sample_size = 4096)]
fn ets(bencher: Bencher) {
    let lines = ["qdisc add dev eth0 root handle 1: ets bands 4 strict 2 quanta 3000 1500"];
    steady(bencher, Rig::with(Kernel::V6_12, &lines), |seq| udp(seq, 1000, 1, 0x1_0001 + (seq % 4) as u32));
}

/// Eight classes of different weights, all with packets, and many without.
#[divan::bench(args = [0, 1000], sample_size = 4096)]
fn qfq(bencher: Bencher, idle: u32) {
    let mut rig = Rig::with(Kernel::V6_12, &["qdisc add dev eth0 root handle 1: qfq"]);
    for n in 1..=8 + idle {
        let weight = if n <= 8 { 1 << (n - 1) } else { 1 };
        let line = format!("class add dev eth0 parent 1: classid 1:{n:x} qfq weight {weight} maxpkt 1514");
        rig.tc(&line).unwrap();
    }
    steady(bencher, rig, |seq| udp(seq, 1000, 1, 0x1_0001 + (seq % 8) as u32));
}

fn cbq(classes: u32, kernel: Kernel) -> Rig {
    let mut rig =
        Rig::with(kernel, &["qdisc add dev eth0 root handle 1: cbq bandwidth 8gbit avpkt 1000 cell 8"]);
    let mut leaf = |minor: u32, rate: &str| {
        let line = format!(
            "class add dev eth0 parent 1: classid 1:{minor:x} cbq bandwidth 8gbit rate {rate} weight 1mbit allot 1514 cell 8 prio 5 avpkt 1000 maxburst 20"
        );
        rig.tc(&line).unwrap();
    };
    leaf(BUSY & 0xffff, "4gbit");
    (0..classes).for_each(|i| leaf(2 + i, "100kbit"));
    rig
}

#[divan::bench(args = KERNELS, sample_size = 4096)]
fn cbq_1_class(bencher: Bencher, kernel: Kernel) {
    steady(bencher, cbq(0, kernel), |seq| udp(seq, 1000, 1, BUSY));
}

#[divan::bench(args = KERNELS, sample_size = 4096)]
fn cbq_1000_idle_classes(bencher: Bencher, kernel: Kernel) {
    steady(bencher, cbq(1000, kernel), |seq| udp(seq, 1000, 1, BUSY));
}

/// Eight leaves of a small rate borrow from the link in turn.
#[divan::bench(args = KERNELS, sample_size = 4096)]
fn cbq_borrowing(bencher: Bencher, kernel: Kernel) {
    steady(bencher, cbq(8, kernel), |seq| udp(seq, 1000, 1, 0x1_0002 + (seq % 8) as u32));
}

const PRIO: &str = "qdisc add dev eth0 root handle 1: prio";

#[divan::bench(args = KERNELS, sample_size = 4096)]
fn prio_with_fw(bencher: Bencher, kernel: Kernel) {
    let mut rig = Rig::with(kernel, &[PRIO]);
    for mark in 1..=3 {
        rig.tc(&format!("filter add dev eth0 parent 1: protocol ip prio 1 handle {mark} fw flowid 1:{mark}"))
            .unwrap();
    }
    steady(bencher, rig, |seq| Skb { mark: 1 + (seq % 3) as u32, ..flows(seq) });
}

#[divan::bench(args = KERNELS, sample_size = 4096)]
fn prio_with_u32(bencher: Bencher, kernel: Kernel) {
    let mut rig = Rig::with(kernel, &[PRIO]);
    for host in 0..3 {
        let line = format!(
            "filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.{host}/32 match ip dport 2000 0xffff flowid 1:{}",
            host + 1
        );
        rig.tc(&line).unwrap();
    }
    steady(bencher, rig, |seq| udp(seq, 1000, (seq % 3) as u8, 0));
}
