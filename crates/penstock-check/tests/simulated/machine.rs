//! A simulated router that random commands are given to, and what it does with a packet.

use penstock_check::explain::Probe;
use penstock_host::{Effect, Host, HostCx};
use penstock_model::{Handle, Kernel, Time};
use penstock_packet::headers::{Icmp, Ipv4, Ipv6, Tcp, TcpFlags, Udp};
use penstock_packet::{L3, L4, Pool, Skb};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Devices, addresses, routes, neighbours: what stands before every set.
pub const READY: &str = "ip link set eth0 up
ip link set eth1 up
ip link set eth2 up
ip link add ifb0 type ifb
ip link set ifb0 up
ip link add link eth0 name eth0.10 type vlan id 10 egress-qos-map 0:0 1:1 2:2 3:3 4:4 5:5 6:6
ip link add link eth0 name eth0.99 type vlan id 99 egress-qos-map 0:0 1:1 2:2 3:3 4:4 5:5 6:6
ip link set eth0.10 up
ip link set eth0.99 up
ip addr add 100.64.0.1/24 dev eth0
ip addr add 198.51.100.1/24 dev eth1
ip addr add 203.0.113.1/24 dev eth2
ip addr add 192.168.10.1/24 dev eth0.10
ip addr add 192.168.99.1/24 dev eth0.99
ip neigh add 100.64.0.2 lladdr 02:00:00:00:00:02 nud permanent dev eth0
ip neigh add 192.168.10.2 lladdr 02:00:00:00:00:02 nud permanent dev eth0.10
ip neigh add 192.168.99.2 lladdr 02:00:00:00:00:02 nud permanent dev eth0.99
ip route add default via 100.64.0.2 dev eth0
ip route add default via 192.168.10.2 dev eth0.10 metric 10
ip route add default via 192.168.99.2 dev eth0.99 metric 20
ip -6 addr add 2001:db8:f0::1/64 dev eth0 nodad
ip -6 addr add 2001:db8:f1::1/64 dev eth0.10 nodad
ip -6 addr add 2001:db8:f2::1/64 dev eth0.99 nodad
ip -6 neigh add 2001:db8:f0::2 lladdr 02:00:00:00:00:02 nud permanent dev eth0
ip -6 neigh add 2001:db8:f1::2 lladdr 02:00:00:00:00:02 nud permanent dev eth0.10
ip -6 neigh add 2001:db8:f2::2 lladdr 02:00:00:00:00:02 nud permanent dev eth0.99
ip -6 route add default via 2001:db8:f0::2 dev eth0 metric 5
ip -6 route add default via 2001:db8:f1::2 dev eth0.10 metric 10
ip -6 route add default via 2001:db8:f2::2 dev eth0.99 metric 20
sysctl -w net.ipv4.ip_forward=1
sysctl -w net.ipv6.conf.all.forwarding=1
sysctl -w net.ipv4.conf.all.rp_filter=0
sysctl -w net.ipv4.conf.eth1.rp_filter=0
sysctl -w net.ipv4.conf.eth2.rp_filter=0
sysctl -w net.ipv4.conf.eth1.accept_local=1
sysctl -w net.ipv4.conf.eth2.accept_local=1
";

/// Where sets have no rules of netfilter: packets of IPv6 leave with a tag by where they go.
pub const TAGGED: &str = "ip -6 route add 2001:db8:1::/48 via 2001:db8:f1::2 dev eth0.10
ip -6 route add 2001:db8:a0::/48 via 2001:db8:f2::2 dev eth0.99
";

pub struct Machine {
    host: Host,
    pool: Pool,
    now: Time,
}

/// How many packets wait on the devices: by device and class, and on the device as a whole.
type Waiting = BTreeMap<(String, Handle), u32>;

impl Machine {
    /// One that is ready, and those of the commands that it took.
    pub fn new(commands: &[String], wall: bool) -> (Machine, Vec<String>) {
        let mut host = Host::new("r", Kernel::V6_12, 1);
        for dev in ["eth0", "eth1", "eth2"] {
            host.add_device(dev);
        }
        let now = Time::ZERO;
        for line in READY.lines().chain(if wall { "" } else { TAGGED }.lines()) {
            let done = host.exec(line, now);
            assert_eq!(done.status, 0, "{line}: {}", done.stderr);
        }
        let kept = commands.iter().filter(|line| host.exec(line, now).status == 0).cloned().collect();
        (Machine { host, pool: Pool::new(), now }, kept)
    }

    fn waiting(&self) -> Waiting {
        let mut out = Waiting::new();
        for device in self.host.devices().iter() {
            for class in device.tree.dump_classes(self.now) {
                out.insert((device.name.clone(), class.classid), class.stats.qlen);
            }
            let root = device.tree.dump_qdiscs(self.now).into_iter().find(|q| q.parent == Handle::ROOT);
            out.insert((device.name.clone(), Handle::UNSPEC), root.map_or(0, |q| q.stats.qlen));
        }
        out
    }

    /// The classes that have one packet more behind it, and where there are none what else became of it: `direct`, `to DEVICE`, `-`.
    ///
    /// No card asks for anything, so that all packets stay where they came to.
    pub fn took(&mut self, probe: &Probe) -> (Vec<Handle>, String) {
        self.now = Time::from_ns(self.now.as_ns() + 1_000_000);
        // Each packet is a connection's first.
        self.host.exec("conntrack -F", self.now);
        let before = self.waiting();
        let mut skb = skb(probe);
        let mut out = Vec::new();
        let mut cx = HostCx { now: self.now, pool: &mut self.pool, out: &mut out };
        match &probe.input {
            Some(dev) => {
                let ifindex = self.host.ifindex(dev).expect("a device");
                skb.eth = ([2, 0, 0, 0, 0, 1], self.host.device(ifindex).expect("a device").mac);
                self.host.receive(ifindex, Box::new(skb), &mut cx);
            }
            None => {
                let by = probe.tags.first().map(|t| format!("eth0.{}", t.1 & 0xfff));
                // The route tells of IPv6.
                let by = by.filter(|_| probe.src.is_ipv4());
                skb.iif = by.map_or(0, |dev| self.host.ifindex(&dev).expect("a device"));
                let _ = self.host.send(Box::new(skb), &mut cx);
            }
        }
        // What goes from device to device within the machine goes on; what waits for a card waits.
        let mut rounds = 0;
        while !out.is_empty() && rounds < 100 {
            rounds += 1;
            for effect in std::mem::take(&mut out) {
                let mut cx = HostCx { now: self.now, pool: &mut self.pool, out: &mut out };
                match effect {
                    Effect::Next(ifindex, packet) => self.host.comes_to(ifindex, packet, &mut cx),
                    Effect::Kick(ifindex) => {
                        let passes = self.host.device(ifindex).is_some_and(|d| d.name.starts_with("eth0."));
                        while passes && self.host.dequeue(ifindex, &mut cx).is_some() {}
                    }
                    _ => {}
                }
            }
        }
        let after = self.waiting();
        let grown: Vec<(String, Handle)> = after
            .iter()
            .filter(|(k, n)| **n > before.get(k).copied().unwrap_or(0))
            .map(|(k, _)| k.clone())
            .collect();
        let classes: Vec<Handle> =
            grown.iter().filter(|(d, h)| d == "eth0" && *h != Handle::UNSPEC).map(|g| g.1).collect();
        let rest = match grown.iter().find(|(d, _)| d == "eth0").or(grown.first()) {
            Some((dev, _)) if dev == "eth0" => "direct".to_owned(),
            Some((dev, _)) => format!("to {dev}"),
            None => "-".to_owned(),
        };
        (classes, rest)
    }
}

/// The packet that a probe describes.
fn skb(p: &Probe) -> Skb {
    let l4 = match p.protocol {
        6 => L4::Tcp(Tcp { sport: p.sport, dport: p.dport, flags: TcpFlags(0x10), ..Tcp::default() }),
        17 => L4::Udp(Udp { sport: p.sport, dport: p.dport }),
        1 | 58 => L4::Icmp(Icmp::new((p.dport >> 8) as u8, p.dport as u8, 0, 0)),
        _ => L4::None,
    };
    let l3 = match (p.src, p.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            L3::Ipv4(Ipv4 { tos: p.tos, ttl: 64, ..Ipv4::new(src, dst, p.protocol) })
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            L3::Ipv6(Ipv6 { traffic_class: p.tos, hop_limit: 64, ..Ipv6::new(src, dst, p.protocol) })
        }
        _ => panic!("{} and {}", p.src, p.dst),
    };
    Skb { priority: p.priority, mark: p.mark, ..Skb::new(u32::from(p.len) + 14, l3, l4) }
}
