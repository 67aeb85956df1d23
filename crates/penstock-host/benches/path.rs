//! What a router spends on one packet: received, routed, queued on the next device, taken by the card.

use penstock_host::{Effect, Host, HostCx, Prefix};
use penstock_model::{Kernel, Time};
use penstock_packet::headers::ipproto;
use penstock_packet::{Ipv4, L3, L4, Packet, Pool, Skb, Udp};

fn main() {
    divan::main();
}

fn router(kernel: Kernel, lines: &[&str]) -> (Host, [u8; 6]) {
    let mut host = Host::new("u4", kernel, 1);
    for (dev, addr) in [("eth0", "10.0.1.254/24"), ("eth1", "10.0.2.254/24")] {
        let ifindex = host.add_device(dev);
        host.add_address(ifindex, Prefix::parse(addr).unwrap()).unwrap();
    }
    host.set_forwarding(true);
    for line in ["ip neigh add 10.0.2.1 lladdr 02:00:00:00:00:09 dev eth1"].iter().chain(lines) {
        assert_eq!(host.exec(line, Time::ZERO).status, 0, "{line}");
    }
    let mac = host.devices()[2].mac;
    (host, mac)
}

fn packet(to: [u8; 6]) -> Packet {
    let l3 = Ipv4 {
        src: "10.0.1.1".parse().unwrap(),
        dst: "10.0.2.1".parse().unwrap(),
        tos: 0,
        ttl: 64,
        protocol: ipproto::UDP,
        id: 1,
        frag_off: 0,
    };
    Box::new(Skb {
        eth: ([2, 0, 0, 0, 0, 1], to),
        ..Skb::new(1514, L3::Ipv4(l3), L4::Udp(Udp { sport: 1, dport: 5001 }))
    })
}

/// One packet through the router and back into the bench's hands.
fn forward(bencher: divan::Bencher<'_, '_>, kernel: Kernel, lines: &[&str]) {
    let (mut host, mac) = router(kernel, lines);
    let (mut pool, mut out) = (Pool::new(), Vec::new());
    let mut spare = Some(packet(mac));
    let mut ns = 0;
    bencher.bench_local(|| {
        ns += 10_000;
        let mut p = spare.take().expect("the packet of the round before");
        p.eth.1 = mac;
        if let L3::Ipv4(h) = &mut p.l3 {
            h.ttl = 64;
        }
        let mut cx = HostCx { now: Time::from_ns(ns), pool: &mut pool, out: &mut out };
        host.receive(2, p, &mut cx);
        spare = host.dequeue(3, &mut cx);
        assert!(matches!(out.pop(), Some(Effect::Kick(3))));
    });
}

#[divan::bench(args = Kernel::ALL)]
fn forward_pfifo_fast(bencher: divan::Bencher<'_, '_>, kernel: Kernel) {
    forward(bencher, kernel, &[]);
}

#[divan::bench(args = Kernel::ALL)]
fn forward_marked_by_three_rules(bencher: divan::Bencher<'_, '_>, kernel: Kernel) {
    let lines = [
        "iptables -t mangle -N INSHAPER",
        "iptables -t mangle -I PREROUTING -i eth0 -j INSHAPER",
        "iptables -t mangle -A INSHAPER -p tcp --dport 5001 -j MARK --set-mark 10",
        "iptables -t mangle -A INSHAPER -p tcp --dport 5002 -j MARK --set-mark 20",
        "iptables -t mangle -A INSHAPER -m mark --mark 0 -j MARK --set-mark 30",
    ];
    forward(bencher, kernel, &lines);
}
