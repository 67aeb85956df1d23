//! In the steady state no packet costs an allocation, in any kind.

use crate::rig;

use penstock_model::{Kernel, Time};
use penstock_packet::{Skb, TxClock, TxTime};
use penstock_sched::Device;
use rig::{Rig, device, udp};

/// Three packets in, drops recycled, and out what may go; `turn` counts on.
fn turn(rig: &mut Rig, turn: u64, packet: &dyn Fn(u64) -> Skb) {
    for i in 0..3 {
        let mut packet = rig.pool.alloc(packet(turn * 3 + i));
        if packet.sender.departs != Time::ZERO {
            // Its socket has asked for that.
            packet.rare_mut().txtime = Some(TxTime { clock: TxClock::Tai, asked: true, deadline: false });
        }
        rig.enqueue(packet);
    }
    rig.now += 1_000_000;
    if rig.tree.next_wakeup().is_some_and(|t| t.as_ns() <= rig.now) {
        rig.tree.expire(Time::from_ns(rig.now));
    }
    for _ in 0..2 {
        if let Some(packet) = rig.dequeue() {
            rig.pool.free(packet);
        }
    }
    let (drops, pool) = (&mut rig.drops, &mut rig.pool);
    drops.recycle(pool);
}

fn check(kernel: Kernel, script: &[&str], packet: &dyn Fn(u64) -> Skb) {
    check_on(device(kernel), script, packet);
}

fn check_on(device: Device, script: &[&str], packet: &dyn Fn(u64) -> Skb) {
    let (kernel, mut rig) = (device.kernel, Rig::with_on(device, script));
    (0..60_000).for_each(|t| turn(&mut rig, t, packet));
    let counted = allocation_counter::measure(|| (60_000..70_000).for_each(|t| turn(&mut rig, t, packet)));
    assert_eq!(counted.count_total, 0, "{kernel} {script:?}");
}

#[test]
fn no_packet_costs_an_allocation() {
    let flow = |seq: u64| udp(seq, 200 + (seq * 7 % 1300) as u32, (seq % 50) as u8, (seq % 16) as u32);
    let class = |seq: u64| udp(seq, 200 + (seq * 7 % 1300) as u32, 1, 0x1_0010 + (seq % 5) as u32);
    for kernel in Kernel::ALL {
        for line in [
            "pfifo limit 100",
            "bfifo limit 100000",
            "pfifo_fast",
            "prio",
            "tbf rate 1mbit burst 5000 limit 50000",
            "tbf rate 1mbit burst 5000 limit 50000 peakrate 2mbit mtu 2000",
            "sfq",
            "sfq limit 20 perturb 1",
            "red limit 60000 min 5000 max 15000 avpkt 1000 burst 20 probability 0.1",
        ] {
            check(kernel, &[&format!("qdisc add dev eth0 root handle 1: {line}")], &flow);
        }
        let present: &[&str] = match kernel {
            Kernel::V6_12 | Kernel::V7_2 => &[
                "fq limit 100",
                "fq maxrate 300kbit flow_limit 20",
                "fq_codel",
                "fq_codel limit 20",
                "fq_pie",
                "fq_pie limit 20 target 1ms tupdate 4ms ecn",
                "skbprio limit 10",
                "hhf limit 20",
                "hhf admit_bytes 2000 reset_timeout 4000 evict_timeout 8000",
                "cake",
                "cake bandwidth 2mbit diffserv4 memlimit 30000 rtt 5ms",
                "netem delay 5ms 3ms distribution normal loss 1% duplicate 5% corrupt 1% seed 3",
                "netem rate 5mbit reorder 20% delay 1ms slot 3ms packets 4 limit 20 loss gemodel 3% 20%",
                "cbs idleslope 300 sendslope -9700 hicredit 3000 locredit -9000",
                "plug limit 9000",
                "sfb",
                "sfb limit 20 max 9 target 4 increment 0.2",
            ],
            Kernel::V2_6_35 => &[],
        };
        for line in present {
            check(kernel, &[&format!("qdisc add dev eth0 root handle 1: {line}")], &flow);
        }
        let htb = [
            "qdisc add dev eth0 root handle 1: htb default 12",
            "class add dev eth0 parent 1: classid 1:1 htb rate 1mbit",
            "class add dev eth0 parent 1:1 classid 1:10 htb rate 100kbit ceil 1mbit prio 1",
            "class add dev eth0 parent 1:1 classid 1:11 htb rate 100kbit ceil 1mbit",
            "class add dev eth0 parent 1:1 classid 1:12 htb rate 100kbit ceil 1mbit",
            "qdisc add dev eth0 parent 1:10 handle 10: sfq perturb 10",
            "qdisc add dev eth0 parent 1:11 handle 11: tbf rate 200kbit burst 3000 limit 10000",
            "filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.3 flowid 1:11",
            "filter add dev eth0 parent 1: protocol ip prio 2 handle 5 fw flowid 1:10",
        ];
        check(kernel, &htb, &class);
        check(kernel, &htb, &flow);
        let cbq = [
            "qdisc add dev eth0 root handle 1: cbq bandwidth 10mbit avpkt 1000",
            "class add dev eth0 parent 1: classid 1:1 cbq bandwidth 10mbit rate 1mbit allot 1514 avpkt 1000 prio 8 bounded",
            "class add dev eth0 parent 1:1 classid 1:10 cbq bandwidth 10mbit rate 100kbit allot 1514 avpkt 1000 prio 1 maxburst 5",
            "class add dev eth0 parent 1:1 classid 1:11 cbq bandwidth 10mbit rate 100kbit allot 1514 avpkt 1000 prio 3 bounded",
            "class add dev eth0 parent 1:1 classid 1:12 cbq bandwidth 10mbit rate 200kbit allot 1514 avpkt 1000 prio 3 minburst 2",
            "qdisc add dev eth0 parent 1:10 handle 10: sfq perturb 10",
            "qdisc add dev eth0 parent 1:11 handle 11: tbf rate 200kbit burst 3000 limit 10000",
            "filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.3 flowid 1:11",
        ];
        if Kernel::BEFORE_7.contains(&kernel) {
            check(kernel, &cbq, &class);
            check(kernel, &cbq, &flow);
        }
    }
}

#[test]
fn what_6_12_alone_has_allocates_nothing() {
    let flow = |seq: u64| udp(seq, 200 + (seq * 7 % 1300) as u32, (seq % 9) as u8, 0);
    for line in [
        "codel target 1ms interval 10ms",
        "codel limit 20 ecn",
        "red limit 60000 min 5000 max 15000 avpkt 1000 burst 20 probability 0.1 ecn adaptive",
    ] {
        check(Kernel::V6_12, &[&format!("qdisc add dev eth0 root handle 1: {line}")], &flow);
    }
}

/// Packets that name a time of departure up to 3 ms after they come; some of them miss it.
#[test]
fn times_of_departure_allocate_nothing() {
    let timed = |seq: u64| {
        let mut skb = udp(seq, 200 + (seq * 7 % 1300) as u32, (seq % 9) as u8, 0);
        skb.sender.departs = Time::from_ns(1_000_000 * (seq / 3) as i64 + 500_000 * (seq * 5 % 7) as i64);
        skb
    };
    for line in ["delta 300000", "delta 700000 skip_sock_check"] {
        check(
            Kernel::V6_12,
            &[&format!("qdisc add dev eth0 root handle 1: etf clockid CLOCK_TAI {line}")],
            &timed,
        );
    }
}

/// The packet's hash chooses among four transmit queues.
#[test]
fn several_transmit_queues_allocate_nothing() {
    let flow = |seq: u64| udp(seq, 200 + (seq * 7 % 1300) as u32, (seq % 50) as u8, (seq % 16) as u32);
    let device = Device { tx_queues: 4, ..device(Kernel::V6_12) };
    let shaper = "qdisc add dev eth0 parent 1:2 handle 12: tbf rate 1mbit burst 5000 limit 20000";
    for root in ["multiq", "mq", "mqprio num_tc 2 map 0 1 1 0 0 0 1 1 0 0 0 0 0 0 0 0 queues 1@0 3@1 hw 0"] {
        check_on(device, &[&format!("qdisc add dev eth0 root handle 1: {root}"), shaper], &flow);
    }
    let classes = "num_tc 2 map 0 1 1 0 0 0 1 1 0 0 0 0 0 0 0 0 queues 2@0 2@2 clockid CLOCK_TAI";
    let gates = "sched-entry S 1 3000000 sched-entry S 3 2000000 sched-entry S 2 5000000";
    for flags in ["", "flags 1 txtime-delay 500000"] {
        let root = format!("qdisc add dev eth0 root handle 1: taprio {classes} {gates} {flags}");
        check_on(device, &[&root], &flow);
    }
}

#[test]
fn classes_of_qfq_allocate_nothing() {
    let class = |seq: u64| udp(seq, 200 + (seq * 7 % 1300) as u32, 1, 0x1_0001 + (seq % 4) as u32);
    let qfq = [
        "qdisc add dev eth0 root handle 1: qfq",
        "class add dev eth0 parent 1: classid 1:1 qfq weight 1",
        "class add dev eth0 parent 1: classid 1:2 qfq weight 10 maxpkt 512",
        "class add dev eth0 parent 1: classid 1:3 qfq weight 10 maxpkt 512",
        "class add dev eth0 parent 1: classid 1:4 qfq weight 1000",
        "qdisc add dev eth0 parent 1:3 handle 13: codel target 1ms interval 10ms",
    ];
    check(Kernel::V6_12, &qfq, &class);
}

#[test]
fn actions_allocate_nothing() {
    let flow = |seq: u64| udp(seq, 200 + (seq * 7 % 1300) as u32, (seq % 9) as u8, 0);
    for kernel in Kernel::ALL {
        let police = "filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.3 police rate 1mbit burst 5k drop flowid 1:1";
        check(kernel, &["qdisc add dev eth0 root handle 1: prio", police], &flow);
    }
    let edits = "filter add dev eth0 egress protocol ip matchall action pedit ex munge ip tos set 0xb8 pipe action csum ip pipe \
                 action skbedit priority 6 pipe action police rate 1mbit burst 5k conform-exceed continue/ok";
    let hook = ["qdisc add dev eth0 root handle 1: pfifo limit 100", "qdisc add dev eth0 clsact", edits];
    check(Kernel::V6_12, &hook, &flow);
}

#[test]
fn sfq_marks_drops_and_rehashes_without_allocating() {
    let flow = |seq: u64| udp(seq, 200 + (seq * 7 % 1300) as u32, (seq % 9) as u8, 0);
    for line in [
        "sfq limit 60 flows 8 depth 5 divisor 16 headdrop perturb 1",
        "sfq limit 100 redflowlimit 30000 min 3000 max 9000 avpkt 1000 burst 10 probability 0.2 ecn",
    ] {
        check(Kernel::V6_12, &[&format!("qdisc add dev eth0 root handle 1: {line}")], &flow);
    }
}
