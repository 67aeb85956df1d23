//! Packets through tunnels: what Linux puts around them, what comes out, what is lost and who hears of it.

use crate::fragment::IP_DF;
use crate::tests::{Net, echo, h4, ip, routed, set4, skb, udp};
use crate::{Host, Prefix, icmp};
use penstock_model::{Kernel, Span, Time};
use penstock_packet::headers::{ETH_HLEN, ipproto};
use penstock_packet::skb::HEADER_MAX;
use penstock_packet::{Icmp, Ipv6, L3, L4, Shim, Skb, Tcp, TcpFlags};

/// Runs commands on a machine, each of which succeeds in silence.
fn run(net: &mut Net, host: usize, lines: &[&str]) {
    for line in lines {
        let said = net.hosts[host].exec(line, net.now);
        assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{line}");
    }
}
fn wait(net: &mut Net, ms: i64) {
    let until = net.now + Span::from_ms(ms);
    net.run(until);
}
fn shown(net: &mut Net, host: usize, line: &str) -> String {
    let now = net.now;
    net.hosts[host].exec(line, now).stdout
}
/// Two machines on one link, 192.0.2.1 and 192.0.2.2, with a tunnel `t0` from 10.0.0.1 to 10.0.0.2, that of the second the mirror of this.
fn between(setup: &str) -> Net {
    let host = |name: &str, addr: &str| {
        let mut host = Host::new(name, Kernel::V6_12, 1);
        let dev = host.add_device("eth0");
        host.add_address(dev, Prefix::parse(addr).unwrap()).unwrap();
        host
    };
    let hosts = vec![host("a", "192.0.2.1/24"), host("b", "192.0.2.2/24")];
    let mut net = Net::new(hosts, vec![((0, 2), (1, 2))]);
    let mirror = setup.replace("192.0.2.1", "X").replace("192.0.2.2", "192.0.2.1").replace('X', "192.0.2.2");
    for (host, setup, n) in [(0, setup, 1), (1, mirror.as_str(), 2)] {
        let lines: Vec<&str> = setup.split("; ").collect();
        run(&mut net, host, &lines);
        let addr = format!("ip addr add 10.0.0.{n}/24 dev t0");
        let addr6 = format!("ip -6 addr add fd00::{n}/64 dev t0");
        run(&mut net, host, &[&addr, &addr6, "ip link set t0 up"]);
        assert_eq!(net.hosts[host].unsimulated_devices(), [""; 0]);
    }
    net
}
fn echo6(dst: &str, len: u32) -> Skb {
    let l3 = Ipv6 {
        src: "::".parse().unwrap(),
        dst: dst.parse().unwrap(),
        traffic_class: 0,
        flow_label: 0,
        next_header: ipproto::ICMPV6,
        fragment: penstock_packet::Fragment::NONE,
        hop_limit: 0,
    };
    Skb::new(ETH_HLEN + len, L3::Ipv6(l3), L4::Icmp(Icmp::new(128, 0, 7, 1)))
}
/// A frame as the recording has it: of the packet within and around it. `None` of what is not a carried packet of IP.
fn row(frame: &Skb) -> Option<String> {
    let c = frame.rare().carried.as_deref()?;
    let within = match c.l3 {
        L3::Ipv4(h) => {
            let part = match (h.frag_off & 0x1fff, h.frag_off & 0x2000) {
                (0, 0) => "",
                (0, _) => " mf",
                _ => " off",
            };
            let df = u8::from(h.frag_off & IP_DF != 0);
            format!("tos 0x{:02x} ttl {} len {} df {df}{part}", h.tos, h.ttl, c.len)
        }
        L3::Ipv6(h) => format!("tos 0x{:02x} ttl {} len {} df 0", h.traffic_class, h.hop_limit, c.len),
        _ => return None,
    };
    let h = h4(frame);
    assert!(h.id != 0 && h.frag_off & 0x3fff == 0, "{h:?}");
    let df = u8::from(h.frag_off & IP_DF != 0);
    let mut bytes = [0; HEADER_MAX];
    frame.header_bytes(&mut bytes);
    let hex = |from: usize, len: u32| -> String {
        bytes[from..from + len as usize].iter().map(|b| format!("{b:02x}")).collect()
    };
    let shim = match c.shim {
        Shim::None => String::new(),
        Shim::Gre { .. } => hex(34, c.shim.len()),
        Shim::Vxlan { .. } => format!("{}/{}", hex(36, 2), hex(42, 8)),
        Shim::WireGuard(_) => hex(42, 16),
    };
    let (len, proto) = (frame.len, h.protocol);
    let text =
        format!("{within} | frame {len} tos 0x{:02x} ttl {} df {df} proto {proto} {shim}", h.tos, h.ttl);
    Some(text.trim_end().to_owned())
}

/// vectors/tunnels/headers.txt: each packet that Linux was given gets the headers that Linux gave it.
#[test]
fn outer_headers_are_those_of_linux() {
    let text = include_str!("../../../../vectors/tunnels/headers.txt");
    let mut rows = 0;
    for part in text.split("\n\n").skip(1) {
        let mut lines = part.lines().filter(|l| !l.is_empty());
        let setup = lines.next().unwrap();
        let mut net = between(setup);
        let six = setup.contains("sit");
        net.send(0, if six { echo6("fd00::2", 104) } else { echo("10.0.0.2") }).unwrap();
        wait(&mut net, 100);
        assert!(net.delivered.iter().any(|d| d.0 == 0), "{setup}: {:?}", net.dropped);
        let wanted: Vec<&str> = lines.collect();
        let number = |text: &str, word: &str| -> u32 {
            let at = text.split(' ').position(|w| w == word).unwrap();
            let value = text.split(' ').nth(at + 1).unwrap();
            match value.strip_prefix("0x") {
                Some(hex) => u32::from_str_radix(hex, 16).unwrap(),
                None => value.parse().unwrap(),
            }
        };
        net.frames.clear();
        for line in wanted.iter().filter(|l| !l.contains(" off ")) {
            let (within, _) = line.split_once(" | ").unwrap();
            let (tos, ttl) = (number(within, "tos") as u8, number(within, "ttl") as u8);
            let mut packet = match six {
                true => echo6("fd00::2", number(within, "len")),
                false => echo("10.0.0.2"),
            };
            match &mut packet.l3 {
                L3::Ipv4(h) => {
                    (h.tos, h.ttl) = (tos, ttl);
                    h.frag_off = if number(within, "df") == 1 { IP_DF } else { 0 };
                    let whole = if within.contains(" mf") { 1500 } else { number(within, "len") };
                    packet.len = ETH_HLEN + whole;
                }
                L3::Ipv6(h) => (h.traffic_class, h.hop_limit) = (tos, ttl),
                _ => {}
            }
            net.send(0, packet).unwrap();
            wait(&mut net, 1);
        }
        let seen: Vec<String> =
            net.frames.iter().filter(|f| f.1 == 0).filter_map(|(_, _, frame)| row(frame)).collect();
        // A tunnel's own numbers are from what else was sent by it.
        let known = |row: &str| match setup.contains(" seq") {
            true => row[..row.len() - 8].to_owned(),
            false => row.to_owned(),
        };
        assert_eq!(
            seen.iter().map(|r| known(r)).collect::<Vec<_>>(),
            wanted.iter().map(|r| known(r)).collect::<Vec<_>>(),
            "{setup}"
        );
        rows += wanted.len();
    }
    assert!(rows > 60, "{rows}");
}

/// `ip -s link` counts what is carried, of gretap with its Ethernet header where it comes in: as recorded of a ping of 84 bytes.
#[test]
fn what_is_carried_counts() {
    for (kind, received) in [("ipip", 84), ("gre", 84), ("gretap", 98), ("vxlan id 42 dstport 4789", 84)] {
        let (name, rest) = kind.split_once(' ').unwrap_or((kind, ""));
        let mut net = between(&format!("ip link add t0 type {name} {rest} local 192.0.2.1 remote 192.0.2.2"));
        net.send(0, echo("10.0.0.2")).unwrap();
        wait(&mut net, 100);
        let counters = |net: &Net| net.hosts[0].device(net.hosts[0].ifindex("t0").unwrap()).unwrap().counters;
        let before = counters(&net);
        net.send(0, echo("10.0.0.2")).unwrap();
        wait(&mut net, 100);
        let after = counters(&net);
        assert_eq!(
            (after.tx_bytes - before.tx_bytes, after.rx_bytes - before.rx_bytes),
            (84, received),
            "{kind}"
        );
        let (a, b) = (after.tx_packets - before.tx_packets, after.rx_packets - before.rx_packets);
        assert_eq!((a, b), (1, 1), "{kind}");
    }
}

const ENDS: &str = "local 10.0.1.1 remote 10.0.2.1";
const BACK: &str = "local 10.0.2.1 remote 10.0.1.1";

/// The client and the server of three machines with a tunnel over the router between them: 10.9.0.1 and 10.9.0.2.
fn over_router(kind: &str) -> Net {
    let mut net = routed(Kernel::V6_12);
    for (host, ends, n) in [(0, ENDS, 1), (2, BACK, 2)] {
        let add = format!("ip link add t0 type {kind} {ends}");
        let addr = format!("ip addr add 10.9.0.{n}/24 dev t0");
        run(&mut net, host, &[&add, &addr, "ip link set t0 up"]);
    }
    net.send(0, echo("10.9.0.2")).unwrap();
    wait(&mut net, 100);
    assert_eq!(net.delivered.len(), 1, "{:?}", net.dropped);
    net.delivered.clear();
    net.frames.clear();
    net
}

#[test]
fn marks_of_congestion_on_the_way_reach_the_receiver_or_are_lost_with_the_packet() {
    let mut net = over_router("ipip");
    run(
        &mut net,
        1,
        &[
            "tc qdisc add dev eth1 clsact",
            "tc filter add dev eth1 egress matchall action pedit ex munge ip tos set 0x03 retain 0x03 pipe action csum ip",
        ],
    );
    for (sent, there) in [(0x02, Some(0x03)), (0x01, Some(0x03)), (0x00, None)] {
        net.delivered.clear();
        net.dropped.clear();
        let mut packet = udp("10.9.0.1", "10.9.0.2", 100);
        set4(&mut packet, |h| h.tos = sent);
        net.send(0, packet).unwrap();
        wait(&mut net, 10);
        assert_eq!(net.delivered.first().map(|(_, p)| p.tos()), there, "{sent}");
        if there.is_none() {
            assert_eq!(net.dropped, [(2, "tunnel", "ce-on-not-ect")]);
        }
    }
    let text = shown(&mut net, 2, "ip -s link show t0");
    assert_eq!(text.lines().nth(3).unwrap().split_whitespace().nth(2), Some("1"), "{text}");
}

/// The mark stays with what is carried, in both directions, and the rules for packets made here meet it.
#[test]
fn a_mark_goes_in_and_out_and_rules_meet_the_outer_packet() {
    let mut net = over_router("gre");
    run(
        &mut net,
        0,
        &[
            "iptables -t mangle -A OUTPUT -d 10.9.0.2 -j MARK --set-mark 7",
            "iptables -t mangle -A POSTROUTING -p 47 -m mark --mark 7 -j DSCP --set-dscp 46",
        ],
    );
    run(
        &mut net,
        2,
        &[
            "iptables -t mangle -A PREROUTING -p 47 -m dscp --dscp 46 -j MARK --set-mark 9",
            "iptables -t mangle -A PREROUTING -i t0 -m mark --mark 9 -j TTL --ttl-set 77",
        ],
    );
    net.send(0, udp("10.9.0.1", "10.9.0.2", 100)).unwrap();
    wait(&mut net, 10);
    assert_eq!(net.delivered.len(), 1, "{:?}", net.dropped);
    assert_eq!(h4(&net.delivered[0].1).ttl, 77);
    run(&mut net, 0, &["iptables -A OUTPUT -p 47 -j DROP"]);
    net.send(0, udp("10.9.0.1", "10.9.0.2", 100)).unwrap();
    assert_eq!(net.dropped.last(), Some(&(0, "OUTPUT", "dropped")));
    let text = shown(&mut net, 0, "ip -s link show t0");
    assert_eq!(text.lines().nth(5).unwrap().split_whitespace().nth(3), Some("1"), "{text}");
}

/// A qdisc on the tunnel sees the packet within and counts no header of Ethernet; one below sees all of it.
#[test]
fn qdiscs_stand_on_the_tunnel_and_below() {
    let mut net = over_router("gre");
    run(
        &mut net,
        0,
        &["tc qdisc add dev t0 root handle 1: prio", "tc qdisc add dev eth0 root handle 2: pfifo limit 9"],
    );
    net.send(0, udp("10.9.0.1", "10.9.0.2", 100)).unwrap();
    assert!(shown(&mut net, 0, "tc -s qdisc show dev t0").contains("Sent 100 bytes 1 pkt"));
    assert!(shown(&mut net, 0, "tc -s qdisc show dev eth0").contains("Sent 138 bytes 1 pkt"));
    run(&mut net, 0, &["tc qdisc replace dev t0 root tbf rate 80kbit burst 1600 limit 2100"]);
    for _ in 0..5 {
        let _ = net.send(0, udp("10.9.0.1", "10.9.0.2", 1000));
    }
    // One goes at once, two wait, two find the queue full; a tenth of a second for each of 1000 bytes.
    assert_eq!(net.dropped.len(), 2, "{:?}", net.dropped);
    let start = net.now;
    for (ms, there) in [(30, 2), (45, 3), (130, 3), (150, 4)] {
        net.run(start + Span::from_ms(ms));
        assert_eq!(net.delivered.len(), there, "{ms} ms");
    }
}

/// What does not fit a tunnel is refused here, and a sender beyond hears of it; outer packets may be cut where nothing forbids it.
#[test]
fn packets_too_long_are_cut_or_their_senders_hear() {
    let mut net = over_router("gre");
    let t0 = net.hosts[0].ifindex("t0").unwrap();
    assert_eq!(net.hosts[0].device(t0).unwrap().mtu, 1476);
    assert_eq!(net.hosts[0].mtu_towards(ip("10.9.0.2"), net.now), Some(1476));
    let mut packet = udp("10.9.0.1", "10.9.0.2", 1477);
    set4(&mut packet, |h| h.frag_off = IP_DF);
    assert_eq!(net.send(0, packet), Err(90));
    // A tunnel whose MTU is as the link's: the first packet teaches, DF is told, the others are cut before they go in.
    let mut net = over_router("gre nopmtudisc");
    run(&mut net, 0, &["ip link set t0 mtu 1500"]);
    net.dropped.clear();
    let mut packet = udp("10.9.0.1", "10.9.0.2", 1490);
    set4(&mut packet, |h| h.frag_off = IP_DF);
    net.send(0, packet).unwrap();
    wait(&mut net, 10);
    let heard = net.delivered.iter().find_map(|(host, p)| match p.l4 {
        L4::Icmp(i) if *host == 0 => Some((i.ty, i.code, i.seq)),
        _ => None,
    });
    assert_eq!(heard, Some((icmp::DEST_UNREACH, 4, 1476)));
    assert_eq!(net.dropped, [(0, "tunnel", "frag-needed")]);
    net.delivered.clear();
    net.frames.clear();
    net.send(0, udp("10.9.0.1", "10.9.0.2", 1490)).unwrap();
    wait(&mut net, 10);
    assert_eq!((net.delivered.len(), net.delivered[0].1.network_len()), (1, 1490));
    // Of VXLAN without DF the outer packet is cut and put together again.
    let mut net = over_router("vxlan id 1 dstport 4789");
    run(&mut net, 0, &["ip link set t0 mtu 1500"]);
    run(&mut net, 2, &["ip link set t0 mtu 1500"]);
    net.send(0, udp("10.9.0.1", "10.9.0.2", 1490)).unwrap();
    wait(&mut net, 10);
    assert_eq!(net.delivered.len(), 1, "{:?}", net.dropped);
    let lens: Vec<u32> = net.frames.iter().filter(|f| f.1 == 0).map(|(_, _, f)| f.len).collect();
    assert_eq!(lens, [1514, 14 + 20 + 40], "1520 behind the IP header, 1480 of them in the first");
}

/// A router on the way has a smaller MTU: its word teaches the tunnel, and the tunnel teaches the sender.
#[test]
fn a_narrow_way_teaches_the_tunnel() {
    let mut net = over_router("ipip");
    run(&mut net, 1, &["ip link set eth1 mtu 1400"]);
    let df = |len| {
        let mut packet = udp("10.9.0.1", "10.9.0.2", len);
        set4(&mut packet, |h| h.frag_off = IP_DF);
        packet
    };
    net.send(0, df(1480)).unwrap();
    wait(&mut net, 10);
    assert_eq!(net.dropped, [(1, "ip_forward", "frag-needed")]);
    // The next one: the tunnel says what is left of 1400.
    net.delivered.clear();
    net.send(0, df(1480)).unwrap();
    wait(&mut net, 10);
    let heard = net.delivered.iter().filter_map(|(_, p)| match p.l4 {
        L4::Icmp(i) => Some((i.code, i.seq, i.about().unwrap().dst)),
        _ => None,
    });
    assert_eq!(heard.collect::<Vec<_>>(), [(4, 1380, std::net::IpAddr::from(ip("10.9.0.2")))]);
    assert_eq!(net.hosts[0].mtu_towards(ip("10.9.0.2"), net.now), Some(1380));
    assert_eq!(net.send(0, df(1381)), Err(90));
    net.delivered.clear();
    net.send(0, df(1380)).unwrap();
    wait(&mut net, 10);
    assert_eq!(net.delivered.len(), 1, "{:?}", net.dropped);
}

#[test]
fn a_routes_mtu_is_the_outer_packets() {
    let mut net = over_router("ipip");
    run(&mut net, 0, &["ip route add 10.0.2.1 via 10.0.1.254 mtu 1400"]);
    let mut packet = udp("10.9.0.1", "10.9.0.2", 1480);
    set4(&mut packet, |h| h.frag_off = IP_DF);
    net.send(0, packet).unwrap();
    wait(&mut net, 10);
    let heard = net.delivered.iter().find_map(|(host, p)| match p.l4 {
        L4::Icmp(i) if *host == 0 => Some((i.ty, i.code, i.seq)),
        _ => None,
    });
    assert_eq!(heard, Some((icmp::DEST_UNREACH, 4, 1380)));
}

#[test]
fn ways_that_are_none_are_counted() {
    let mut net = over_router("ipip");
    // The way to the other end leads into the tunnel.
    run(&mut net, 0, &["ip route add 10.0.2.1/32 dev t0"]);
    net.dropped.clear();
    net.send(0, udp("10.9.0.1", "10.9.0.2", 100)).unwrap();
    assert_eq!(net.dropped, [(0, "tunnel", "loop")]);
    run(&mut net, 0, &["ip route del 10.0.2.1/32", "ip route add unreachable 10.0.2.1/32"]);
    net.send(0, udp("10.9.0.1", "10.9.0.2", 100)).unwrap();
    assert_eq!(net.dropped[1..], [(0, "tunnel", "no-route")]);
    let text = shown(&mut net, 0, "ip -s link show t0");
    let counts: Vec<&str> = text.lines().nth(5).unwrap().split_whitespace().collect();
    assert_eq!(counts[1..], ["1", "2", "0", "1", "1"], "{text}");
    // Two tunnels each of which goes by the other: as deep as Linux lets them.
    let mut net = routed(Kernel::V6_12);
    run(
        &mut net,
        0,
        &[
            "ip link add t1 type ipip local 10.0.1.1 remote 10.8.0.1",
            "ip link add t2 type ipip local 10.0.1.1 remote 10.8.0.2",
            "ip link set t1 up",
            "ip link set t2 up",
            "ip route add 10.8.0.1/32 dev t2",
            "ip route add 10.8.0.2/32 dev t1",
        ],
    );
    net.send(0, udp("10.0.1.1", "10.8.0.1", 100)).unwrap();
    assert_eq!(net.dropped, [(0, "tunnel", "recursion")]);
    let errors = |name: &str| net.hosts[0].device(net.hosts[0].ifindex(name).unwrap()).unwrap().errors.tx;
    assert_eq!(errors("t1") + errors("t2"), 1);
}

#[test]
fn a_packet_that_no_tunnel_takes_is_refused() {
    // Another key, another peer. Of GRE a port that cannot be reached is no failure of its link (ipgre_err, ipip_err).
    for (kind, other, fails) in [
        ("gre key 7", "ip link set t0 type gre key 8", false),
        ("ipip", "ip link set t0 type ipip remote 10.0.1.77", true),
    ] {
        let mut net = over_router(kind);
        run(&mut net, 2, &[other]);
        net.send(0, udp("10.9.0.1", "10.9.0.2", 100)).unwrap();
        wait(&mut net, 10);
        assert_eq!(net.dropped, [(2, "tunnel", "no-tunnel")], "{kind}");
        let heard = net.delivered.iter().find_map(|(host, p)| match p.l4 {
            L4::Icmp(i) if *host == 0 => Some((i.ty, i.code)),
            _ => None,
        });
        assert_eq!(heard, Some((icmp::DEST_UNREACH, 3)), "{kind}");
        // The next packet goes, and its sender hears that the host is unreachable where the link has failed.
        net.delivered.clear();
        net.send(0, udp("10.9.0.1", "10.9.0.2", 100)).unwrap();
        let told = net.delivered.iter().any(|(host, p)| {
            *host == 0 && matches!(p.l4, L4::Icmp(i) if (i.ty, i.code) == (icmp::DEST_UNREACH, 1))
        });
        assert_eq!(told, fails, "{kind}: {:?}", net.delivered);
    }
    // A machine without any such tunnel does not know the protocol.
    let mut net = over_router("gre");
    run(&mut net, 2, &["ip link del t0"]);
    net.send(0, udp("10.9.0.1", "10.9.0.2", 100)).unwrap();
    wait(&mut net, 10);
    let heard = net.delivered.iter().find_map(|(_, p)| match p.l4 {
        L4::Icmp(i) => Some((i.ty, i.code)),
        _ => None,
    });
    assert_eq!(heard, Some((icmp::DEST_UNREACH, 2)));
}

/// A forwarded SYN is clamped to the tunnel's MTU: what VPN gateways do.
#[test]
fn a_syn_is_clamped_to_the_tunnel() {
    let mut net = over_router("gre");
    run(
        &mut net,
        0,
        &[
            "sysctl -w net.ipv4.ip_forward=1",
            "iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu",
            "ip route add 192.0.2.0/24 via 10.0.1.254",
        ],
    );
    let tcp = Tcp { sport: 1, dport: 80, flags: TcpFlags::SYN, mss: Some(1460), ..Tcp::default() };
    let mut packet = skb("192.0.2.9", "10.9.0.2", ipproto::TCP, L4::Tcp(tcp), 44);
    packet.eth.1 = net.hosts[0].devices()[2].mac;
    net.receive(0, 2, packet);
    wait(&mut net, 10);
    let there = net.delivered.iter().find_map(|(_, p)| match p.l4 {
        L4::Tcp(t) => t.mss,
        _ => None,
    });
    assert_eq!(there, Some(1436), "{:?}", net.dropped);
}

/// Stations behind VXLAN: those that were heard are known, the others are asked of all that are named; `bridge fdb` says and shows who.
#[test]
fn vxlan_learns_who_is_where() {
    let mut net = over_router("vxlan id 7 dstport 4789 ttl 9");
    let mac = net.hosts[2].device(net.hosts[2].ifindex("t0").unwrap()).unwrap().mac;
    let text = mac.map(|b| format!("{b:02x}")).join(":");
    let shown_by = |net: &mut Net| shown(net, 0, "bridge fdb show dev t0");
    let zeros = "00:00:00:00:00:00 dst 10.0.2.1 self permanent\n";
    assert_eq!(shown_by(&mut net), format!("{zeros}{text} dst 10.0.2.1 self \n"));
    // Forgotten after 300 s of silence, which begins when ARP has asked once more.
    wait(&mut net, 320_000);
    assert_eq!(shown_by(&mut net), zeros);
    run(&mut net, 0, &["bridge fdb append 00:00:00:00:00:00 dev t0 dst 10.0.2.77"]);
    net.frames.clear();
    net.hosts[0].exec("ip neigh flush dev t0", net.now);
    net.send(0, echo("10.9.0.2")).unwrap();
    // The question for the address goes to both.
    let to = net.frames.iter().filter(|f| f.1 == 0 && f.2.rare().carried.is_some()).map(|f| h4(&f.2).dst);
    assert_eq!(to.collect::<Vec<_>>()[..2], [ip("10.0.2.77"), ip("10.0.2.1")]);
    let said = net.hosts[0].exec("bridge fdb add 02:00:00:00:00:09 dev t0 dst fd00::1", net.now);
    assert_ne!(said.status, 0);
    // Another identifier is for nobody.
    net.dropped.clear();
    run(&mut net, 2, &["ip link del t0", "ip link add t1 type vxlan id 8 dstport 4789", "ip link set t1 up"]);
    net.send(0, echo("10.9.0.2")).unwrap();
    wait(&mut net, 10);
    assert!(net.dropped.contains(&(2, "tunnel", "no-vni")), "{:?}", net.dropped);
}

/// As recorded of iproute2 6.1.0 on Linux 6.1.176.
#[test]
fn tunnels_are_shown_as_recorded() {
    let mut net = between("ip tunnel add t0 mode ipip local 192.0.2.1 remote 192.0.2.2 ttl 64 tos inherit");
    let text = shown(&mut net, 0, "ip -d link show t0");
    assert_eq!(
        text,
        "3: t0@NONE: <POINTOPOINT,NOARP,UP,LOWER_UP> mtu 1480 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000\n    link/ipip \
         192.0.2.1 peer 192.0.2.2 promiscuity 0  allmulti 0 minmtu 68 maxmtu 65515 \n    ipip ipip remote 192.0.2.2 local 192.0.2.1 ttl 64 tos inherit pmtudisc addrgenmode \
         eui64 numtxqueues 1 numrxqueues 1 gso_max_size 65536 gso_max_segs 65535 tso_max_size 65536 tso_max_segs 65535 gro_max_size 65536 \n"
    );
    assert_eq!(
        shown(&mut net, 0, "ip tunnel show"),
        "t0: ip/ip remote 192.0.2.2 local 192.0.2.1 ttl 64 tos inherit\n"
    );
    let mut net = between("ip link add t0 type gre local 192.0.2.1 remote 192.0.2.2 key 7 csum seq dev eth0");
    let text = shown(&mut net, 0, "ip -d link show t0");
    for part in [
        "3: t0@eth0: <POINTOPOINT,NOARP,UP,LOWER_UP> mtu 1464 ",
        "    link/gre 192.0.2.1 peer 192.0.2.2 promiscuity 0  allmulti 0 minmtu 0 maxmtu 0 \n",
        "    gre remote 192.0.2.2 local 192.0.2.1 dev eth0 ttl inherit ikey 0.0.0.7 okey 0.0.0.7 iseq oseq icsum ocsum addrgenmode",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(
        shown(&mut net, 0, "ip tunnel show t0"),
        "t0: gre/ip remote 192.0.2.2 local 192.0.2.1 dev eth0 ttl inherit key 7\n  Drop packets out of sequence.\n  \
         Checksum in received packet is required.\n  Sequence packets on output.\n  Checksum output packets.\n"
    );
    let mut net = between(
        "ip link add t0 type vxlan id 42 local 192.0.2.1 remote 192.0.2.2 dstport 4789 ttl 5 tos inherit df set",
    );
    let text = shown(&mut net, 0, "ip -d link show t0");
    let part = "    vxlan id 42 remote 192.0.2.2 local 192.0.2.1 srcport 0 0 dstport 4789 tos inherit ttl 5 df set ageing 300 udpcsum noudp6zerocsumtx noudp6zerocsumrx addrgenmode";
    assert!(text.contains(part), "{text}");
    for (line, said, status) in [
        ("ip tunnel add q remote 1.2.3.5", "cannot determine tunnel mode (ipip, gre, vti or sit)\n", 1),
        ("ip tunnel add q mode ipip ttl 5 nopmtudisc", "ttl != 0 and nopmtudisc are incompatible\n", 1),
        ("ip tunnel add f mode foo", "Unknown tunnel mode \"foo\"\n", 255),
        ("ip tunnel change x mode ipip remote 9.9.9.9", "get tunnel \"x\" failed: No such device\n", 1),
        (
            "ip link add w type vxlan",
            "Error: Required attributes not provided to perform the operation.\n",
            2,
        ),
        ("ip link add w type ipip dev nope", "Cannot find device \"nope\"\n", 255),
        ("ip link add w type vxlan dstport 4789", "vxlan: missing virtual network identifier\n", 255),
        (
            "ip link add w type vxlan id 7 external",
            "vxlan: both 'external' and vni cannot be specified\n",
            255,
        ),
        ("ip link add w9 type vxlan dstport 4789 external", "", 0),
        (
            "ip link add w type gre remote 1.2.3.4 key x",
            "invalid value for \"key\": \"x\"; it should be an unsigned integer\n",
            255,
        ),
    ] {
        let out = net.hosts[0].exec(line, net.now);
        assert_eq!((out.stderr.as_str(), out.status), (said, status), "{line}");
    }
    run(&mut net, 0, &["ip tunnel add y mode gre remote 1.2.3.4 key 5"]);
    let out = net.hosts[0].exec("ip tunnel add z mode gre remote 1.2.3.4 key 5", Time::ZERO);
    assert_eq!((out.stderr.as_str(), out.status), ("add tunnel \"gre0\" failed: File exists\n", 1));
    run(&mut net, 0, &["ip tunnel add mode gre remote 1.2.3.5"]);
    assert!(shown(&mut net, 0, "ip tunnel show gre1").starts_with("gre1: gre/ip remote 1.2.3.5 local any"));
    run(&mut net, 0, &["ip tunnel del y", "ip link set gre1 type gre remote 1.2.3.6 ttl 9"]);
    assert!(shown(&mut net, 0, "ip -d link show gre1").contains("gre remote 1.2.3.6 local any ttl 9 "));
}
