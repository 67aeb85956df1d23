//! One Linux machine: commands as one types them, what they print, and a packet's way through.

use penstock_host::{Effect, Host, HostCx};
use penstock_model::{Kernel, Time};
use penstock_packet::headers::ipproto;
use penstock_packet::{Ipv4, L3, L4, Pool, Skb, Udp};

fn main() {
    let mut host = Host::new("gw", Kernel::V6_12, 1);
    for device in ["eth0", "eth1"] {
        host.add_device(device);
    }
    for line in [
        "ip addr add 10.0.1.1/24 dev eth0",
        "ip addr add 10.0.2.1/24 dev eth1",
        "ip link set eth0 up",
        "ip link set eth1 up",
        "sysctl -w net.ipv4.ip_forward=1",
        "ip neigh add 10.0.2.9 lladdr 02:00:00:00:00:09 dev eth1",
        "tc qdisc add dev eth1 root handle 1: prio",
    ] {
        let output = host.exec(line, Time::ZERO);
        assert_eq!(output.status, 0, "{line}: {}", output.stderr);
    }

    let (src, dst) = ([10, 0, 1, 9].into(), [10, 0, 2, 9].into());
    let ip = Ipv4 { src, dst, tos: 0, ttl: 64, protocol: ipproto::UDP, id: 1, frag_off: 0 };
    let eth0 = host.devices()[2].mac;
    let packet = Skb {
        eth: ([2, 0, 0, 0, 0, 1], eth0),
        ..Skb::new(514, L3::Ipv4(ip), L4::Udp(Udp { sport: 1, dport: 53 }))
    };
    let (mut pool, mut out) = (Pool::new(), Vec::new());
    let mut cx = HostCx { now: Time::from_ns(1_000_000), pool: &mut pool, out: &mut out };
    host.receive(2, Box::new(packet), &mut cx);
    // eth1 (index 3) has something to send: whoever plays the card fetches it.
    assert!(matches!(cx.out[..], [Effect::Kick(3)]));
    let frame = host.dequeue(3, &mut cx).expect("the packet");
    assert_eq!(frame.eth.1, [2, 0, 0, 0, 0, 9]);

    let shown = host.exec("tc -s qdisc show dev eth1", Time::from_ns(1_000_000)).stdout;
    print!("{shown}");
    assert!(shown.contains("Sent 514 bytes 1 pkt"), "{shown}");
}
