//! A packet that passes an empty qdisc by leaves it as one that is put in and taken out at once.

use crate::rig;

use penstock_model::{Kernel, Rng, Time};
use rig::{Rig, udp};

/// Two devices with the same qdisc and the same packets: by the one they pass where they may.
fn check(kernel: Kernel, line: &str) -> u32 {
    let script = [&*format!("qdisc add dev eth0 root handle 1: {line}")];
    let (mut quick, mut whole) = (Rig::with(kernel, &script), Rig::with(kernel, &script));
    let mut rng = Rng::named(7, line);
    let mut passed = 0;
    for seq in 0..4000 {
        let packet = udp(seq, 60 + rng.below(1400), rng.below(4) as u8, rng.below(16));
        let stays = rng.below(8) == 0;
        let mut theirs = quick.pool.alloc(packet.clone());
        let out = if !stays && quick.tree.pass_by(&mut theirs, Time::from_ns(quick.now)) {
            passed += 1;
            Some(theirs)
        } else {
            quick.enqueue(theirs);
            if stays { None } else { quick.dequeue() }
        };
        let ours = whole.pool.alloc(packet);
        whole.enqueue(ours);
        let slow = if stays { None } else { whole.dequeue() };
        let told = |p: &penstock_packet::Packet| (p.seq, p.pkt_len, p.queued, p.tc.class, p.tc.dev);
        assert_eq!(out.as_ref().map(told), slow.as_ref().map(told), "{kernel} {line}, packet {seq}");
        for rig in [&mut quick, &mut whole] {
            rig.now += 700_000;
            let (drops, pool) = (&mut rig.drops, &mut rig.pool);
            drops.recycle(pool);
            if seq % 10 == 9 {
                while rig.dequeue().is_some() {}
            }
        }
        let now = Time::from_ns(quick.now);
        let (a, b) = (quick.tree.dump_qdiscs(now), whole.tree.dump_qdiscs(now));
        assert_eq!(format!("{a:?}"), format!("{b:?}"), "{kernel} {line}, packet {seq}");
        assert!(quick.tree.miscounts().is_empty(), "{kernel} {line}: {:?}", quick.tree.miscounts());
    }
    passed
}

#[test]
fn it_is_as_if_it_had_been_put_in_and_taken_out() {
    for kernel in Kernel::ALL {
        for line in ["pfifo limit 5", "bfifo limit 5000", "pfifo_fast"] {
            assert!(check(kernel, line) > 1000, "{kernel} {line}: hardly one has passed");
        }
    }
    for line in [
        "pfifo_head_drop limit 5",
        "fq_codel limit 50",
        "codel limit 50",
        "fq_codel flows 1 target 1us interval 1ms",
    ] {
        assert!(check(Kernel::V6_12, line) > 1000, "{line}: hardly one has passed");
    }
}

#[test]
fn what_is_more_than_a_fifo_lets_none_pass() {
    for line in [
        "prio",
        "tbf rate 1mbit burst 5000 limit 50000",
        "sfq",
        "red limit 60000 min 5000 max 15000 avpkt 1000 burst 20 probability 0.1",
        "htb",
        "netem delay 1ms",
        "bfifo limit 150",
        "pfifo limit 0",
    ] {
        let mut rig = Rig::with(Kernel::V6_12, &[&format!("qdisc add dev eth0 root handle 1: {line}")]);
        let mut packet = rig.pool.alloc(udp(1, 200, 1, 0));
        assert!(!rig.tree.pass_by(&mut packet, Time::ZERO), "{line}");
    }
    let tables = "qdisc add dev eth0 root handle 1: stab overhead 20 pfifo limit 5";
    let clsact = "qdisc add dev eth0 clsact";
    for script in [vec![tables], vec!["qdisc add dev eth0 root handle 1: pfifo limit 5", clsact]] {
        let mut rig = Rig::with(Kernel::V6_12, &script);
        let mut packet = rig.pool.alloc(udp(1, 200, 1, 0));
        assert!(!rig.tree.pass_by(&mut packet, Time::ZERO), "{script:?}");
    }
}

/// A packet longer than the limit passes an empty fifo by that would hold a frame of the device's MTU: `TCQ_F_CAN_BYPASS` of `__fifo_init`.
#[test]
fn a_limit_is_not_asked_where_nothing_waits() {
    let root = |line: &str| vec![format!("qdisc add dev eth0 root handle 1: {line}")];
    let taken = |kernel, script: &[String], len| {
        let script: Vec<&str> = script.iter().map(String::as_str).collect();
        let mut rig = Rig::with(kernel, &script);
        for seq in 0..2 {
            let packet = rig.pool.alloc(udp(seq, len, 1, 0));
            rig.enqueue(packet);
        }
        std::iter::from_fn(|| rig.dequeue()).map(|packet| packet.seq).collect::<Vec<_>>()
    };
    for hook in [vec![], vec!["qdisc add dev eth0 clsact".to_owned()]] {
        let script = |line| [root(line), hook.clone()].concat();
        assert_eq!(
            taken(Kernel::V6_12, &script("bfifo limit 2000"), 3000),
            [0],
            "the second finds the first"
        );
        assert_eq!(
            taken(Kernel::V6_12, &script("bfifo limit 1513"), 3000),
            [0; 0],
            "none of 1500 bytes would fit"
        );
        assert_eq!(taken(Kernel::V6_12, &script("pfifo limit 1"), 3000), [0]);
        assert_eq!(taken(Kernel::V6_12, &script("pfifo limit 0"), 3000), [0; 0]);
    }
    assert_eq!(taken(Kernel::V2_6_35, &root("bfifo limit 2000"), 3000), [0; 0], "of fifos since 2.6.39");
    let below = ["qdisc add dev eth0 root handle 1: prio", "qdisc add dev eth0 parent 1:2 bfifo limit 2000"];
    assert_eq!(taken(Kernel::V6_12, &below.map(String::from), 3000), [0; 0], "it does not stand alone");
}
