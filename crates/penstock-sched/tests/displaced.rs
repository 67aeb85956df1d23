//! What those above count of packets that take each other's places: skbprio and hhf tell them by the answer alone, not of the lengths. So the
//! backlog that they show drifts, as in Linux. Of packets that etf drops late it tells nothing: they are queued there for good.
//!
//! Follows: linux v6.12 `net/sched/sch_skbprio.c` `skbprio_enqueue`, `sch_hhf.c` `hhf_enqueue`, `sch_etf.c` `timesortedlist_drop`; the vectors of both have it under htb, prio, tbf and ets.

use crate::rig;

use penstock_model::{Kernel, Time};
use penstock_packet::{TxClock, TxTime};
use penstock_sched::Xmit;
use rig::{Rig, udp};

/// Two packets in a skbprio of one, the second of a higher priority; backlog of the root before and after it has been sent.
fn exchange(above: &[&str], first: u32, second: u32) -> [u32; 2] {
    let mut rig = Rig::with(Kernel::V6_12, above);
    rig.tc("qdisc add dev eth0 parent 1:1 handle 2: skbprio limit 1").unwrap();
    assert_eq!(rig.enqueue(Box::new(udp(0, first, 1, 0))), Xmit::Success);
    assert_eq!(rig.enqueue(Box::new(udp(1, second, 1, 7))), Xmit::Cn);
    let before = rig.tree.root().stats();
    assert_eq!((before.qlen, before.drops), (1, 1));
    assert_eq!(rig.dequeue().map(|packet| packet.seq), Some(1));
    assert_eq!(rig.qlen(), 0);
    [before.backlog, rig.tree.root().stats().backlog]
}

#[test]
fn the_backlog_above_drifts_by_the_difference_of_the_lengths() {
    let htb = [
        "qdisc add dev eth0 root handle 1: htb default 1",
        "class add dev eth0 parent 1: classid 1:1 htb rate 1gbit",
    ];
    let drr = [
        "qdisc add dev eth0 root handle 1: drr",
        "class add dev eth0 parent 1: classid 1:1 drr",
        "filter add dev eth0 parent 1: protocol all prio 1 matchall classid 1:1",
    ];
    let qfq = [
        "qdisc add dev eth0 root handle 1: qfq",
        "class add dev eth0 parent 1: classid 1:1 qfq weight 1",
        "filter add dev eth0 parent 1: protocol all prio 1 matchall classid 1:1",
    ];
    let hfsc = [
        "qdisc add dev eth0 root handle 1: hfsc default 1",
        "class add dev eth0 parent 1: classid 1:1 hfsc ls rate 1gbit",
    ];
    let prio = ["qdisc add dev eth0 root handle 1: prio priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"];
    let ets = ["qdisc add dev eth0 root handle 1: ets bands 1"];
    let tbf = ["qdisc add dev eth0 root handle 1: tbf rate 1gbit burst 10k limit 10k"];
    for above in [&htb[..], &drr, &qfq, &hfsc, &prio, &ets, &tbf] {
        assert_eq!(exchange(above, 500, 1200), [500, 500u32.wrapping_sub(1200)], "{above:?}");
        assert_eq!(exchange(above, 1200, 500), [1200, 700], "{above:?}");
    }
}

#[test]
fn it_drifts_above_those_above() {
    let mut rig = Rig::with(
        Kernel::V6_12,
        &[
            "qdisc add dev eth0 root handle 9: htb default 1",
            "class add dev eth0 parent 9: classid 9:1 htb rate 1gbit",
            "qdisc add dev eth0 parent 9:1 handle 1: ets bands 1",
            "qdisc add dev eth0 parent 1:1 handle 2: skbprio limit 1",
        ],
    );
    rig.enqueue(Box::new(udp(0, 900, 1, 0)));
    rig.enqueue(Box::new(udp(1, 200, 1, 3)));
    assert_eq!(rig.dequeue().map(|packet| packet.seq), Some(1));
    assert_eq!((rig.qlen(), rig.tree.root().stats().backlog), (0, 700));
}

#[test]
fn it_drifts_on_where_another_qdisc_takes_the_place() {
    let mut rig = Rig::with(Kernel::V6_12, &["qdisc add dev eth0 root handle 1: prio"]);
    rig.tc("qdisc add dev eth0 parent 1:2 handle 2: skbprio limit 1").unwrap();
    rig.enqueue(Box::new(udp(0, 900, 1, 0)));
    // Of the same band.
    rig.enqueue(Box::new(udp(1, 200, 1, 4)));
    rig.tc("qdisc replace dev eth0 parent 1:2 handle 3: pfifo limit 1").unwrap();
    assert_eq!(rig.tree.root().stats().backlog, 700);
    for (seq, answer) in [(2, Xmit::Success), (3, Xmit::Drop)] {
        assert_eq!(rig.enqueue(Box::new(udp(seq, 100, 1, 0))), answer);
    }
    assert_eq!(rig.tree.root().stats().backlog, 800);
}

#[test]
fn packets_that_etf_drops_late_are_counted_above_for_good() {
    let htb = [
        "qdisc add dev eth0 root handle 1: htb default 1",
        "class add dev eth0 parent 1: classid 1:1 htb rate 1gbit",
    ];
    let drr = [
        "qdisc add dev eth0 root handle 1: drr",
        "class add dev eth0 parent 1: classid 1:1 drr",
        "filter add dev eth0 parent 1: protocol all prio 1 matchall classid 1:1",
    ];
    let qfq = [
        "qdisc add dev eth0 root handle 1: qfq",
        "class add dev eth0 parent 1: classid 1:1 qfq weight 1",
        "filter add dev eth0 parent 1: protocol all prio 1 matchall classid 1:1",
    ];
    let hfsc = [
        "qdisc add dev eth0 root handle 1: hfsc default 1",
        "class add dev eth0 parent 1: classid 1:1 hfsc ls rate 1gbit",
    ];
    let prio = ["qdisc add dev eth0 root handle 1: prio priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"];
    let ets = ["qdisc add dev eth0 root handle 1: ets bands 1"];
    let tbf = ["qdisc add dev eth0 root handle 1: tbf rate 1gbit burst 10k limit 10k"];
    for above in [&htb[..], &drr, &qfq, &hfsc, &prio, &ets, &tbf] {
        let mut rig = Rig::with(Kernel::V6_12, above);
        rig.tc("qdisc add dev eth0 parent 1:1 handle 2: etf clockid CLOCK_TAI delta 100").unwrap();
        for (seq, at) in [(0, 2_000), (1, 9_000)] {
            let mut timed = udp(seq, 500, 1, 0);
            timed.rare_mut().txtime = Some(TxTime { clock: TxClock::Tai, asked: true, deadline: false });
            timed.sender.departs = Time::from_ns(at);
            assert_eq!(rig.enqueue(Box::new(timed)), Xmit::Success, "{above:?}");
        }
        // The first one's time is over when it is asked for.
        rig.now = 3_000;
        assert!(rig.dequeue().is_none(), "{above:?}");
        rig.now = 8_950;
        assert_eq!(rig.dequeue().map(|packet| packet.seq), Some(1), "{above:?}");
        let shown = rig.tree.root().stats();
        assert_eq!((shown.qlen, shown.backlog, shown.drops), (1, 500, 0), "{above:?}");
        assert_eq!(rig.tree.miscounts(), [], "{above:?}");
        assert_eq!(rig.tree.class_miscounts(), Vec::<String>::new(), "{above:?}");
        // Another qdisc in its place changes nothing of that.
        rig.tc("qdisc replace dev eth0 parent 1:1 handle 3: pfifo").unwrap();
        assert_eq!(rig.tree.root().stats().qlen, 1, "{above:?}");
    }
}
