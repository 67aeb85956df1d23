//! One machine, and packets that it is handed: what many rules, routes and classes cost by themselves.

use super::{Case, Packets, Work};
use anyhow::{Result, bail};
use penstock_host::{Effect, Host, HostCx};
use penstock_model::{Kernel, Time};
use penstock_packet::headers::{ETH_HLEN, ipproto};
use penstock_packet::{Ipv4, L3, L4, Pool, Skb, Udp};
use std::net::Ipv4Addr;

pub(super) const CASES: &[Case] = &[
    Case {
        name: "routes",
        about: "routes of ip route",
        some: 1000,
        work: Work::Machine(routes),
        packets: Packets::Flat,
    },
    Case {
        name: "addresses",
        about: "addresses of a device",
        some: 1000,
        work: Work::Machine(addresses),
        packets: Packets::Flat,
    },
    Case {
        name: "links",
        about: "devices of ip link",
        some: 300,
        work: Work::Machine(links),
        packets: Packets::None,
    },
    Case {
        name: "neighbours",
        about: "neighbours of ip neigh",
        some: 1000,
        work: Work::Machine(neighbours),
        packets: Packets::Flat,
    },
    Case {
        name: "htb",
        about: "htb classes, all backlogged",
        some: 200,
        work: Work::Machine(htb),
        packets: Packets::Flat,
    },
    Case {
        name: "htb-tbf",
        about: "htb classes with a tbf that waits",
        some: 200,
        work: Work::Machine(htb_tbf),
        packets: Packets::AsLinux,
    },
    Case {
        name: "drr",
        about: "drr classes, all backlogged",
        some: 500,
        work: Work::Machine(drr),
        packets: Packets::Flat,
    },
    Case {
        name: "cbq",
        about: "cbq classes, all backlogged",
        some: 200,
        work: Work::Machine(cbq),
        packets: Packets::AsLinux,
    },
    Case { name: "fq", about: "flows of fq", some: 200, work: Work::Machine(fq), packets: Packets::Flat },
    Case {
        name: "u32-hash",
        about: "u32 filters in hash tables",
        some: 200,
        work: Work::Machine(u32_hash),
        packets: Packets::Flat,
    },
    Case {
        name: "u32",
        about: "u32 filters in a list",
        some: 100,
        work: Work::Machine(u32_list),
        packets: Packets::AsLinux,
    },
    Case {
        name: "flower",
        about: "flower filters of one mask",
        some: 200,
        work: Work::Machine(flower),
        packets: Packets::Flat,
    },
    Case { name: "fw", about: "fw filters", some: 25, work: Work::Machine(fw), packets: Packets::Flat },
    Case {
        name: "iptables",
        about: "iptables rules",
        some: 100,
        work: Work::Machine(iptables),
        packets: Packets::AsLinux,
    },
    Case {
        name: "nft-set",
        about: "elements of an nft set",
        some: 500,
        work: Work::Machine(nft_set),
        packets: Packets::Flat,
    },
    Case {
        name: "nft-map",
        about: "elements of an nft verdict map",
        some: 500,
        work: Work::Machine(nft_map),
        packets: Packets::Flat,
    },
    Case {
        name: "nft-range",
        about: "intervals of an nft set",
        some: 500,
        work: Work::Machine(nft_range),
        packets: Packets::Flat,
    },
    Case {
        name: "conntrack",
        about: "connections that are tracked",
        some: 1000,
        work: Work::Machine(conntrack),
        packets: Packets::Flat,
    },
];

/// A machine with a card that takes a frame whenever there is one.
struct Rig {
    host: Host,
    pool: Pool,
    out: Vec<Effect>,
    now: Time,
    /// Frames that left, and packets that were lost or came to a socket.
    left: u64,
    ended: u64,
}

const ETH0: u32 = 2;

impl Rig {
    /// 10.0.0.1/8 on eth0, and everything else over a gateway whose hardware address is known.
    fn new() -> Result<Rig> {
        let mut host = Host::new("r", Kernel::V6_12, 1);
        host.add_device("eth0");
        let mut rig = Rig { host, pool: Pool::new(), out: Vec::new(), now: Time::ZERO, left: 0, ended: 0 };
        rig.run("ip addr add 10.0.0.1/24 dev eth0")?;
        rig.run("ip route add default via 10.0.0.2")?;
        rig.run("ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev eth0 nud permanent")?;
        Ok(rig)
    }
    fn run(&mut self, line: &str) -> Result<()> {
        let output = self.host.exec(line, self.now);
        if output.status != 0 {
            bail!("{line}: {}", output.stderr);
        }
        Ok(())
    }
    fn effects(&mut self) {
        for effect in self.out.drain(..) {
            match effect {
                Effect::Kick(_) | Effect::Orphaned(_) => {}
                // One packet comes of each call here.
                Effect::Next(..) => unreachable!("a datagram is sent whole"),
                Effect::Across { .. } => unreachable!("no machine here has a macvlan"),
                Effect::Deliver(packet) | Effect::Moved(packet) | Effect::Dropped { packet, .. } => {
                    self.ended += 1;
                    self.pool.free(packet);
                }
            }
        }
    }
    fn datagram(src: Ipv4Addr, dst: Ipv4Addr, sport: u16, mark: u32) -> Skb {
        let l4 = L4::Udp(Udp { sport, dport: 9 });
        Skb { mark, ..Skb::new(ETH_HLEN + 986, L3::Ipv4(Ipv4::new(src, dst, ipproto::UDP)), l4) }
    }
    /// A program's datagram of 1000 bytes with its header.
    fn send(&mut self, dst: Ipv4Addr, sport: u16, mark: u32) {
        let skb = Rig::datagram(Ipv4Addr::new(10, 0, 0, 1), dst, sport, mark);
        let packet = self.pool.alloc(skb);
        let mut cx = HostCx { now: self.now, pool: &mut self.pool, out: &mut self.out };
        // What is refused is counted as lost.
        let _ = self.host.transmit(packet, &mut cx);
        self.effects();
    }
    /// A frame that comes in by eth0.
    fn receive(&mut self, dst: Ipv4Addr, sport: u16) {
        let mut skb = Rig::datagram(Ipv4Addr::new(10, 0, 0, 2), dst, sport, 0);
        skb.eth.0 = self.host.devices()[ETH0].mac;
        let packet = self.pool.alloc(skb);
        let mut cx = HostCx { now: self.now, pool: &mut self.pool, out: &mut self.out };
        self.host.receive(ETH0, packet, &mut cx);
        self.effects();
    }
    /// The card takes what there is; a frame takes 8 µs.
    fn drain(&mut self, most: u32) {
        for _ in 0..most {
            let mut cx = HostCx { now: self.now, pool: &mut self.pool, out: &mut self.out };
            let Some(packet) = self.host.dequeue(ETH0, &mut cx) else { break };
            self.left += 1;
            self.now += penstock_model::Span::from_us(8);
            self.pool.free(packet);
        }
        self.effects();
    }
    /// One packet each 8 µs to each of `n` in turns.
    fn in_turns(mut self, n: u32, packets: u32, mut one: impl FnMut(&mut Rig, u32)) -> Result<u64> {
        for i in 0..packets {
            one(&mut self, turn(i, n));
            self.drain(8);
        }
        Ok(self.left + self.ended)
    }
    /// Each of `n` marks has two packets queued, and gets one for each that leaves; where none may leave, time goes on to the next timer.
    fn backlogged(mut self, n: u32, packets: u32) -> Result<u64> {
        if packets == 0 {
            return Ok(0);
        }
        for i in 1..=2 * n {
            self.send(Ipv4Addr::new(10, 0, 0, 2), 1, 0x1_0000 + (i - 1) % n + 1);
        }
        while self.left < u64::from(packets) {
            let mut cx = HostCx { now: self.now, pool: &mut self.pool, out: &mut self.out };
            match self.host.dequeue(ETH0, &mut cx) {
                Some(packet) => {
                    self.left += 1;
                    self.now += penstock_model::Span::from_us(8);
                    let mark = packet.mark;
                    self.pool.free(packet);
                    self.send(Ipv4Addr::new(10, 0, 0, 2), 1, mark);
                }
                None => match self.host.next_wakeup(ETH0) {
                    Some(at) if at > self.now => self.now = at,
                    _ => bail!("nothing leaves and no timer is set"),
                },
            }
        }
        Ok(self.left)
    }
}

/// The one of `n` whose turn it is, in an order that jumps about.
fn turn(i: u32, n: u32) -> u32 {
    (u64::from(i % n) * 7919 % u64::from(n)) as u32
}
fn address(net: u8, i: u32) -> Ipv4Addr {
    let [_, b, c, d] = (i + 1).to_be_bytes();
    Ipv4Addr::new(net, b, c, d)
}

fn routes(n: u32, packets: u32) -> Result<u64> {
    let mut rig = Rig::new()?;
    for i in 0..n {
        rig.run(&format!("ip route add {} via 10.0.0.2", address(20, i)))?;
    }
    rig.in_turns(n, packets, |rig, i| rig.send(address(20, i), 1, 0))
}

fn addresses(n: u32, packets: u32) -> Result<u64> {
    let mut rig = Rig::new()?;
    for i in 0..n {
        rig.run(&format!("ip addr add {}/32 dev eth0", address(20, i)))?;
    }
    rig.in_turns(n, packets, |rig, i| rig.receive(address(20, i), 1))
}

fn links(n: u32, packets: u32) -> Result<u64> {
    let _ = packets;
    let mut rig = Rig::new()?;
    for i in 0..n {
        rig.run(&format!("ip link add d{i} type dummy"))?;
        rig.run(&format!("ip link set d{i} up"))?;
    }
    Ok(0)
}

fn neighbours(n: u32, packets: u32) -> Result<u64> {
    let mut rig = Rig::new()?;
    rig.run("ip addr add 20.0.0.0/8 dev eth0")?;
    for i in 0..n {
        rig.run(&format!("ip neigh add {} lladdr 02:00:00:00:00:03 dev eth0 nud permanent", address(20, i)))?;
    }
    rig.in_turns(n, packets, |rig, i| rig.send(address(20, i), 1, 0))
}

/// Classes of a kind; a mark is the class.
fn queue(root: &str, class: &str, leaf: Option<&str>, n: u32) -> Result<Rig> {
    let mut rig = Rig::new()?;
    rig.run(&format!("tc qdisc add dev eth0 root handle 1: {root}"))?;
    for i in 1..=n {
        rig.run(&format!("tc class add dev eth0 parent 1: classid 1:{i:x} {class}"))?;
        if let Some(leaf) = leaf {
            rig.run(&format!("tc qdisc add dev eth0 parent 1:{i:x} {leaf}"))?;
        }
    }
    rig.run("tc filter add dev eth0 parent 1: protocol ip fw")?;
    Ok(rig)
}

fn htb(n: u32, packets: u32) -> Result<u64> {
    let class = format!("htb rate {}kbit ceil 1gbit quantum 1500", 2_000_000 / n);
    queue("htb", &class, None, n)?.backlogged(n, packets)
}
fn htb_tbf(n: u32, packets: u32) -> Result<u64> {
    let class = "htb rate 1gbit quantum 1500";
    let leaf = format!("tbf rate {}kbit burst 2k limit 30k", 800_000 / n);
    queue("htb", class, Some(&leaf), n)?.backlogged(n, packets)
}
fn drr(n: u32, packets: u32) -> Result<u64> {
    queue("drr", "drr", None, n)?.backlogged(n, packets)
}
fn cbq(n: u32, packets: u32) -> Result<u64> {
    let class =
        format!("cbq bandwidth 1gbit rate {}bit allot 1514 avpkt 1000 prio 3 bounded", 900_000_000 / n);
    queue("cbq bandwidth 1gbit avpkt 1000", &class, None, n)?.backlogged(n, packets)
}

fn fq(n: u32, packets: u32) -> Result<u64> {
    let mut rig = Rig::new()?;
    rig.run("tc qdisc add dev eth0 root fq flow_limit 100 limit 100000 buckets 16384")?;
    rig.in_turns(n, packets, |rig, i| rig.send(address(20, i), 1, 0))
}

/// Sends to one address of many; filters that find them give a class of drr.
fn filters(n: u32, packets: u32, lines: impl Fn(&mut Rig) -> Result<()>) -> Result<u64> {
    let mut rig = Rig::new()?;
    rig.run("tc qdisc add dev eth0 root handle 1: drr")?;
    rig.run("tc class add dev eth0 parent 1: classid 1:1 drr")?;
    lines(&mut rig)?;
    rig.in_turns(n, packets, |rig, i| rig.send(address(20, i), 1, i + 1))
}

fn u32_hash(n: u32, packets: u32) -> Result<u64> {
    filters(n, packets, |rig| {
        rig.run("tc filter add dev eth0 parent 1: protocol ip prio 1 u32")?;
        rig.run("tc filter add dev eth0 parent 1: protocol ip prio 1 handle 2: u32 divisor 256")?;
        rig.run(
            "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 ht 800:: match ip dst 20.0.0.0/8 \
             hashkey mask 0x0000ff00 at 16 link 2:",
        )?;
        for c in 0..=(n >> 8) {
            let table = 0x100 + c;
            rig.run(&format!(
                "tc filter add dev eth0 parent 1: protocol ip prio 1 handle {table:x}: u32 divisor 256"
            ))?;
            rig.run(&format!(
                "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 ht 2:{c:x}: match ip dst 20.0.{c}.0/24 \
                 hashkey mask 0x000000ff at 16 link {table:x}:"
            ))?;
        }
        for i in 0..n {
            let (addr, place) = (address(20, i), i + 1);
            let (table, bucket) = (0x100 + (place >> 8), place & 255);
            rig.run(&format!(
                "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 ht {table:x}:{bucket:x}: match ip dst {addr} flowid 1:1"
            ))?;
        }
        Ok(())
    })
}
fn u32_list(n: u32, packets: u32) -> Result<u64> {
    filters(n, packets, |rig| {
        for i in 0..n {
            let addr = address(20, i);
            rig.run(&format!(
                "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst {addr} flowid 1:1"
            ))?;
        }
        Ok(())
    })
}
fn flower(n: u32, packets: u32) -> Result<u64> {
    filters(n, packets, |rig| {
        for i in 0..n {
            let addr = address(20, i);
            rig.run(&format!(
                "tc filter add dev eth0 parent 1: protocol ip prio 1 flower dst_ip {addr} classid 1:1"
            ))?;
        }
        Ok(())
    })
}
fn fw(n: u32, packets: u32) -> Result<u64> {
    filters(n, packets, |rig| {
        for i in 1..=n {
            rig.run(&format!(
                "tc filter add dev eth0 parent 1: protocol ip prio 1 handle {i} fw classid 1:1"
            ))?;
        }
        Ok(())
    })
}

fn iptables(n: u32, packets: u32) -> Result<u64> {
    let mut rig = Rig::new()?;
    for i in 0..n {
        rig.run(&format!("iptables -t mangle -A POSTROUTING -d {} -j MARK --set-mark 1", address(20, i)))?;
    }
    rig.in_turns(n, packets, |rig, i| rig.send(address(20, i), 1, 0))
}

fn nft(rig: &mut Rig, lines: &[&str]) -> Result<()> {
    lines.iter().try_for_each(|line| rig.run(&format!("nft '{line}'")))
}
const CHAIN: [&str; 2] = ["add table ip t", "add chain ip t c { type filter hook output priority 0; }"];

fn nft_set(n: u32, packets: u32) -> Result<u64> {
    let mut rig = Rig::new()?;
    nft(&mut rig, &CHAIN)?;
    nft(&mut rig, &["add set ip t s { type ipv4_addr; }", "add rule ip t c ip daddr @s counter accept"])?;
    for i in 0..n {
        nft(&mut rig, &[&format!("add element ip t s {{ {} }}", address(20, i))])?;
    }
    rig.in_turns(n, packets, |rig, i| rig.send(address(20, i), 1, 0))
}
fn nft_map(n: u32, packets: u32) -> Result<u64> {
    let mut rig = Rig::new()?;
    nft(&mut rig, &CHAIN)?;
    let map = "add map ip t m { type ipv4_addr : verdict; }";
    nft(&mut rig, &[map, "add rule ip t c ip daddr vmap @m"])?;
    for i in 0..n {
        nft(&mut rig, &[&format!("add element ip t m {{ {} : accept }}", address(20, i))])?;
    }
    rig.in_turns(n, packets, |rig, i| rig.send(address(20, i), 1, 0))
}
fn nft_range(n: u32, packets: u32) -> Result<u64> {
    let mut rig = Rig::new()?;
    nft(&mut rig, &CHAIN)?;
    let set = "add set ip t s { type ipv4_addr; flags interval; }";
    nft(&mut rig, &[set, "add rule ip t c ip daddr @s counter accept"])?;
    for i in 0..n {
        nft(
            &mut rig,
            &[&format!("add element ip t s {{ {}-{} }}", address(20, 4 * i), address(20, 4 * i + 1))],
        )?;
    }
    rig.in_turns(n, packets, |rig, i| rig.send(address(20, 4 * i), 1, 0))
}

fn conntrack(n: u32, packets: u32) -> Result<u64> {
    let mut rig = Rig::new()?;
    rig.run("iptables -A OUTPUT -m conntrack --ctstate ESTABLISHED -j ACCEPT")?;
    // A datagram each makes the connections; they are what is many.
    for i in 0..n {
        rig.send(address(20, i), 1, 0);
        rig.drain(8);
    }
    rig.in_turns(n, packets, |rig, i| rig.send(address(20, i), 1, 0))
}
