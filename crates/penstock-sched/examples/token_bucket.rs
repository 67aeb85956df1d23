//! A device whose tree of qdiscs is one `tbf`: when each of five packets may leave.

use penstock_lang::tc::{self, Command};
use penstock_lang::token;
use penstock_model::{Kernel, PschedClock, Rng, Time};
use penstock_packet::headers::ipproto;
use penstock_packet::{Ipv4, L3, L4, Skb, Udp};
use penstock_sched::{Actions, Cx, Device, Ledger, Tree};

fn packet(seq: u64) -> Skb {
    let (src, dst) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let ip = Ipv4 { src, dst, tos: 0, ttl: 64, protocol: ipproto::UDP, id: 0, frag_off: 0 };
    Skb { seq, ..Skb::new(1000, L3::Ipv4(ip), L4::Udp(Udp { sport: 1, dport: 2 })) }
}

fn main() {
    let kernel = Kernel::V6_12;
    let mut tree = Tree::new(Device {
        ifindex: 2,
        mtu: 1500,
        hard_header_len: 14,
        tx_queue_len: 1000,
        tx_queues: 1,
        speed_mbit: None,
        kernel,
        clock: PschedClock::default(),
        hz: kernel.hz(),
    });
    // Time, dice and what is dropped are the caller's.
    let (mut rng, mut drops, mut acts) = (Rng::named(1, "eth0"), Ledger::new(), Actions::new());
    let mut cx = Cx { now: Time::ZERO, rng: &mut rng, drops: &mut drops, acts: &mut acts };

    let words =
        token::words("tc qdisc add dev eth0 root tbf rate 8mbit burst 2000 limit 10000").expect("words");
    for command in tc::parse(&words, kernel).expect("tc takes it") {
        if let Command::Qdisc { req, .. } = command {
            tree.qdisc(&req, &mut cx).expect("the kernel takes it");
        }
    }
    for seq in 0..5 {
        tree.enqueue(Box::new(packet(seq)), &mut cx);
    }
    let mut left = Vec::new();
    while tree.qlen() > 0 {
        match tree.dequeue(&mut cx) {
            Some(packet) => left.push((packet.seq, cx.now.as_ns())),
            None => cx.now = tree.next_wakeup().expect("a queue that waits has a timer"),
        }
    }
    println!("packet, ns: {left:?}");
    // Two are in the bucket, then one a millisecond: 1000 bytes at 8 Mbit/s.
    assert_eq!(left, [(0, 0), (1, 0), (2, 1_000_000), (3, 2_000_000), (4, 3_000_000)]);
}
