//! IPv6 packets between machines joined by wires.

use super::icmp::{
    ADVERTISEMENT, DEST_UNREACH, ECHO_REPLY, ECHO_REQUEST, PKT_TOOBIG, SOLICITATION, TIME_EXCEED,
};
use super::{Device6, group_mac, is_link_local, link_local, network, solicited_node};
use crate::Host;
use crate::tests::Net;
use penstock_model::{Kernel, Span, Time};
use penstock_packet::headers::{ETH_HLEN, ipproto};
use penstock_packet::{Icmp, IcmpBody, Ipv6, L3, L4, Skb, Udp};
use std::net::Ipv6Addr;

fn ip(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn packet(dst: &str, next_header: u8, l4: L4, len: u32) -> Skb {
    let l3 = Ipv6 {
        src: Ipv6Addr::UNSPECIFIED,
        dst: ip(dst),
        traffic_class: 0,
        flow_label: 0,
        next_header,
        fragment: penstock_packet::Fragment::NONE,
        hop_limit: 0,
    };
    Skb::new(ETH_HLEN + len, L3::Ipv6(l3), l4)
}
fn echo(dst: &str, len: u32) -> Skb {
    packet(dst, ipproto::ICMPV6, L4::Icmp(Icmp::new(ECHO_REQUEST, 0, 7, 1)), len)
}
fn udp(dst: &str, len: u32) -> Skb {
    packet(dst, ipproto::UDP, L4::Udp(Udp { sport: 1000, dport: 2000 }), len)
}
fn h6(skb: &Skb) -> Ipv6 {
    match skb.l3 {
        L3::Ipv6(h) => h,
        _ => panic!("not IPv6"),
    }
}
fn message(skb: &Skb) -> Icmp {
    match skb.l4 {
        L4::Icmp(i) => i,
        _ => panic!("not ICMPv6"),
    }
}

/// client fd00:1::1 — fd00:1::fe router fd00:2::fe — fd00:2::1 server
fn routed() -> Net {
    let host = |name: &str, lines: &[&str]| {
        let mut host = Host::new(name, Kernel::V6_12, 1);
        for line in lines {
            if let Some(dev) = line.split(' ').find(|w| w.starts_with("eth")) {
                host.add_device(dev);
            }
            let out = host.exec(line, Time::ZERO);
            assert_eq!(out.status, 0, "{line}: {}", out.stderr);
        }
        host
    };
    let client =
        host("client", &["ip addr add fd00:1::1/64 dev eth0", "ip -6 route add default via fd00:1::fe"]);
    let router = host(
        "router",
        &[
            "ip addr add fd00:1::fe/64 dev eth0",
            "ip addr add fd00:2::fe/64 dev eth1",
            "sysctl -qw net.ipv6.conf.all.forwarding=1",
        ],
    );
    let server =
        host("server", &["ip addr add fd00:2::1/64 dev eth0", "ip -6 route add default via fd00:2::fe"]);
    Net::new(vec![client, router, server], vec![((0, 2), (1, 2)), ((1, 3), (2, 2))])
}
fn ms(ms: i64) -> Time {
    Time::ZERO + Span::from_ms(ms)
}
/// All that was delivered to a machine.
fn heard(net: &Net, host: usize) -> Vec<&Skb> {
    net.delivered.iter().filter(|d| d.0 == host).map(|d| &*d.1).collect()
}

#[test]
fn a_ping_crosses_a_router() {
    let mut net = routed();
    net.send(0, echo("fd00:2::1", 104)).unwrap();
    net.run(ms(100));
    let heard = heard(&net, 0);
    assert_eq!(heard.len(), 1, "{:?}", net.dropped);
    let (h, i) = (h6(heard[0]), message(heard[0]));
    assert_eq!((h.src, h.dst, h.hop_limit), (ip("fd00:2::1"), ip("fd00:1::1"), 63));
    assert_eq!((i.ty, i.id, i.seq, heard[0].network_len()), (ECHO_REPLY, 7, 1, 104));
    // The router asks in its own name, of which the server learns its link-local address alone: it asks for its gateway.
    let asked: Vec<&Skb> =
        net.frames.iter().map(|f| &f.2).filter(|f| message(f).ty == SOLICITATION).collect();
    let told: Vec<&Skb> =
        net.frames.iter().map(|f| &f.2).filter(|f| message(f).ty == ADVERTISEMENT).collect();
    assert_eq!((asked.len(), told.len(), net.frames.len()), (3, 3, 10));
    assert_eq!(h6(asked[0]).dst, solicited_node(ip("fd00:1::fe")));
    assert_eq!((h6(asked[0]).src, asked[0].eth.1), (ip("fd00:1::1"), [0x33, 0x33, 0xff, 0, 0, 0xfe]));
    assert!(is_link_local(h6(asked[1]).src), "{:?}", asked[1]);
    assert!(asked.iter().chain(&told).all(|f| f.len == 86 && h6(f).hop_limit == 255));
    assert_eq!(message(told[0]).id, 0x8000 | 0x4000 | 0x2000, "router, solicited, override");
    assert_eq!(message(told[1]).id, 0x4000 | 0x2000);
    assert_eq!(
        message(told[0]).body,
        IcmpBody::Neighbour { target: ip("fd00:1::fe"), mac: Some(told[0].eth.0) }
    );
}

#[test]
fn a_used_up_hop_limit_is_reported() {
    let mut net = routed();
    let mut one = udp("fd00:2::1", 100);
    if let L3::Ipv6(h) = &mut one.l3 {
        h.hop_limit = 1;
    }
    net.send(0, one).unwrap();
    let heard = heard(&net, 0);
    assert_eq!(
        (h6(heard[0]).src, message(heard[0]).ty, heard[0].network_len()),
        (ip("fd00:1::fe"), TIME_EXCEED, 148)
    );
    let about = *message(heard[0]).about().unwrap();
    assert_eq!((about.dst, about.protocol, about.dport), (ip("fd00:2::1").into(), ipproto::UDP, 2000));
    assert_eq!(net.dropped, [(1, "ip6_forward", "hop-limit-exceeded")]);
}

#[test]
fn what_is_too_big_is_told_once_and_remembered_ten_minutes() {
    let mut net = routed();
    assert_eq!(net.hosts[1].exec("ip link set eth1 mtu 1400", net.now).status, 0);
    net.send(0, echo("fd00:2::1", 1500)).unwrap();
    let heard = heard(&net, 0);
    assert_eq!((message(heard[0]).ty, message(heard[0]).info()), (PKT_TOOBIG, 1400));
    assert_eq!(heard[0].network_len(), 1280);
    assert_eq!(net.hosts[0].mtu_towards6(ip("fd00:2::1"), net.now), Some(1400));
    // From then on an echo is cut at its source; TCP is not.
    net.send(0, echo("fd00:2::1", 1401)).unwrap();
    assert_eq!(message(&net.delivered.last().unwrap().1).ty, ECHO_REPLY);
    let is_cut = |skb: &Skb| matches!(skb.l3, L3::Ipv6(h) if h.fragment().is_some());
    let cut = net.frames.iter().filter(|f| f.1 == 0 && is_cut(&f.2));
    assert_eq!(cut.map(|f| f.2.network_len()).collect::<Vec<_>>(), [1400, 57]);
    let segment = packet("fd00:2::1", ipproto::TCP, L4::Tcp(penstock_packet::Tcp::default()), 1401);
    assert_eq!(net.send(0, segment), Err(90));
    net.send(0, echo("fd00:2::1", 1400)).unwrap();
    assert_eq!(message(&net.delivered.last().unwrap().1).ty, ECHO_REPLY);
    net.run(ms(600_001));
    assert_eq!(net.hosts[0].mtu_towards6(ip("fd00:2::1"), net.now), Some(1500));
}

#[test]
fn a_silent_neighbour_is_asked_three_times_then_unreachable() {
    let mut net = routed();
    net.send(0, udp("fd00:2::77", 100)).unwrap();
    net.run(ms(3_100));
    let asked: Vec<Time> =
        net.frames.iter().filter(|f| f.1 == 1 && message_type(&f.2) == SOLICITATION).map(|f| f.0).collect();
    assert_eq!(asked.len(), 3);
    let heard = heard(&net, 0);
    let i = message(heard[0]);
    assert_eq!((i.ty, i.code, h6(heard[0]).src), (DEST_UNREACH, 3, ip("fd00:1::fe")));
}
fn message_type(skb: &Skb) -> u8 {
    match skb.l4 {
        L4::Icmp(i) => i.ty,
        _ => 0,
    }
}

#[test]
fn no_route_is_told_and_refused() {
    let mut net = routed();
    net.send(0, udp("fd00:3::1", 100)).unwrap();
    assert_eq!((message(heard(&net, 0)[0]).ty, message(heard(&net, 0)[0]).code), (DEST_UNREACH, 0));
    assert_eq!(net.send(1, udp("fd00:3::1", 100)), Err(101));
    assert_eq!(net.send(0, udp("fe80::1", 100)), Err(22), "a device belongs to it");
    for (kind, errno) in [("unreachable", 113), ("prohibit", 13), ("blackhole", 22)] {
        assert_eq!(net.hosts[1].exec(&format!("ip -6 route add {kind} fd00:3::/64"), net.now).status, 0);
        assert_eq!(net.send(1, udp("fd00:3::1", 100)), Err(errno), "{kind}");
        assert_eq!(net.hosts[1].exec(&format!("ip -6 route del {kind} fd00:3::/64"), net.now).status, 0);
    }
}

#[test]
fn errors_to_one_peer_are_limited_by_the_width_of_its_prefix() {
    let mut net = routed();
    net.run(ms(100_000));
    for _ in 0..20 {
        net.send(0, udp("fd00:3::1", 100)).unwrap();
    }
    // Of a /64 four a second, six of them at once.
    assert_eq!(heard(&net, 0).len(), 6);
    net.run(ms(100_500));
    for _ in 0..20 {
        net.send(0, udp("fd00:3::1", 100)).unwrap();
    }
    assert_eq!(heard(&net, 0).len(), 8);
}

#[test]
fn own_addresses_answer_by_lo_and_nobody_forwards_unasked() {
    let mut net = routed();
    for addr in ["::1", "fd00:1::1"] {
        net.send(0, echo(addr, 104)).unwrap();
        assert_eq!(message(&net.delivered.last().unwrap().1).ty, ECHO_REPLY, "{addr}");
    }
    assert!(net.frames.is_empty());
    assert_eq!(net.hosts[1].exec("sysctl -qw net.ipv6.conf.all.forwarding=0", net.now).status, 0);
    net.send(0, udp("fd00:2::1", 100)).unwrap();
    assert_eq!(net.dropped, [(1, "ip6_forward", "not-forwarding")]);
}

#[test]
fn rules_of_ip6tables_meet_packets() {
    let mut net = routed();
    for line in [
        "ip6tables -A FORWARD -p udp --dport 2000 -j REJECT --reject-with icmp6-adm-prohibited",
        "ip6tables -t mangle -A POSTROUTING -p icmpv6 -j DSCP --set-dscp 10",
    ] {
        let out = net.hosts[1].exec(line, net.now);
        assert_eq!(out.status, 0, "{line}: {}", out.stderr);
    }
    net.send(0, udp("fd00:2::1", 100)).unwrap();
    let i = message(heard(&net, 0)[0]);
    assert_eq!((i.ty, i.code), (DEST_UNREACH, 1));
    net.send(0, echo("fd00:2::1", 104)).unwrap();
    assert_eq!(h6(&net.delivered.last().unwrap().1).traffic_class, 40);
    for line in [
        "ip6tables -F",
        "nft add table inet t",
        "nft 'add chain inet t f { type filter hook forward priority 0 ; }'",
        "nft add rule inet t f ct state established meta l4proto ipv6-icmp drop",
    ] {
        let out = net.hosts[1].exec(line, net.now);
        assert_eq!(out.status, 0, "{line}: {}", out.stderr);
    }
    assert_eq!(net.hosts[1].exec("nft add rule inet t f udp dport 2000 reject", net.now).status, 0);
    net.send(0, udp("fd00:2::1", 100)).unwrap();
    let i = message(&net.delivered.last().unwrap().1);
    assert_eq!((i.ty, i.code), (DEST_UNREACH, 4));
    // The answer to an echo is of a connection that is known.
    net.send(0, echo("fd00:2::1", 104)).unwrap();
    assert_eq!(net.dropped.last(), Some(&(1, "FORWARD", "dropped")));
}

/// A router that masquerades: the server sees its address, and nothing else of it is unusual; the answers come back.
#[test]
fn sources_of_ipv6_are_translated() {
    let seen = |rules: &[&str]| {
        let mut net = routed();
        for line in rules {
            let out = net.hosts[1].exec(line, net.now);
            assert_eq!(out.status, 0, "{line}: {}", out.stderr);
        }
        assert_eq!(net.hosts[1].unsimulated(), [""; 0]);
        net.send(0, udp("fd00:2::1", 100)).unwrap();
        let (_, packet) = net.delivered.last().expect("it has come");
        h6(packet).src.to_string()
    };
    let chain =
        ["nft add table inet t", "nft 'add chain inet t n { type nat hook postrouting priority 100 ; }'"];
    let nft = |rule: &str| seen(&[chain[0], chain[1], rule]);
    assert_eq!(seen(&[]), "fd00:1::1");
    assert_eq!(seen(&["ip6tables -t nat -A POSTROUTING -o eth1 -j MASQUERADE"]), "fd00:2::fe");
    assert_eq!(nft("nft add rule inet t n masquerade"), "fd00:2::fe");
    assert_eq!(nft("nft add rule inet t n meta nfproto ipv6 masquerade"), "fd00:2::fe");
    assert_eq!(nft("nft add rule inet t n snat ip6 to fd00:7::1"), "fd00:7::1");
    // What is for IPv4 lets packets of IPv6 be.
    assert_eq!(nft("nft add rule inet t n meta nfproto ipv4 masquerade"), "fd00:1::1");
    assert_eq!(nft("nft add rule inet t n ip saddr 10.0.0.0/8 masquerade"), "fd00:1::1");
    assert_eq!(nft("nft add rule inet t n snat ip to 10.0.0.1"), "fd00:1::1");
}

/// What `conntrack` 1.4.7 shows of both families and of one (as on Linux 6.12).
#[test]
fn conntrack_shows_connections_of_ipv6() {
    let mut net = routed();
    let run = |net: &mut Net, line: &str| {
        let out = net.hosts[1].exec(line, net.now);
        (out.status, out.stdout, out.stderr)
    };
    assert_eq!(run(&mut net, "ip6tables -t nat -A POSTROUTING -o eth1 -j MASQUERADE").0, 0);
    net.send(0, udp("fd00:2::1", 100)).unwrap();
    net.send(0, echo("fd00:2::1", 104)).unwrap();
    let datagram = "src=fd00:1::1 dst=fd00:2::1 sport=1000 dport=2000 [UNREPLIED] src=fd00:2::1 dst=fd00:2::fe sport=2000 dport=1000 mark=0 use=1\n";
    let pinged = "icmpv6   58 29 src=fd00:1::1 dst=fd00:2::1 type=128 code=0 id=7 src=fd00:2::1 dst=fd00:2::fe type=129 code=0 id=7 mark=0 use=1\n";
    for (asks, both) in [("", [true, true]), (" -f ipv6", [true, true]), (" -f ipv4", [false, false])]
        .into_iter()
        .chain([(" -s fd00:1::/64", [true, true]), (" -q fd00:2::fe -p udp", [true, false])])
        .chain([(" -p ipv6-icmp", [false, true]), (" -s 10.0.0.1", [false, false])])
    {
        let (status, text, _) = run(&mut net, &format!("conntrack -L{asks}"));
        let has = [
            text.contains(datagram),
            text.contains(pinged) || text.contains(&pinged.replace("58 29", "58 30")),
        ];
        assert_eq!((status, has), (0, both), "{asks}: {text}");
    }
    let (status, _, said) = run(&mut net, "conntrack -L -f ipv6 -s 10.0.0.1");
    assert!(
        status == 2 && said.starts_with("conntrack v1.4.7 (conntrack-tools): mismatched address family\n"),
        "{said}"
    );
    assert_eq!(run(&mut net, "conntrack -D -f ipv6 -p udp").0, 0);
    assert!(!run(&mut net, "conntrack -L").1.contains("udp"));
}

/// Docker's rules for a published port and Kubernetes' for a service: a packet for the router's address comes to the server, as from the router.
#[test]
fn rules_of_docker_and_kubernetes_translate_ipv6() {
    let docker = [
        "-N DOCKER",
        "-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER",
        "-A OUTPUT ! -d ::1/128 -m addrtype --dst-type LOCAL -j DOCKER",
        "-A POSTROUTING -o eth1 -j MASQUERADE",
        "-A DOCKER ! -i docker0 -p udp -m udp --dport 2000 -j DNAT --to-destination [fd00:2::1]:80",
    ];
    let kubernetes = [
        "-N KUBE-SERVICES",
        "-N KUBE-MARK-MASQ",
        "-N KUBE-POSTROUTING",
        "-N KUBE-SVC-A",
        "-A PREROUTING -j KUBE-SERVICES",
        "-A POSTROUTING -j KUBE-POSTROUTING",
        "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
        "-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
        "-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000",
        "-A KUBE-POSTROUTING -j MASQUERADE",
        "-A KUBE-SERVICES -d fd00:1::fe/128 -p udp --dport 2000 -j KUBE-SVC-A",
        "-A KUBE-SVC-A ! -s fd00:2::/64 -j KUBE-MARK-MASQ",
        "-A KUBE-SVC-A -p udp -m statistic --mode random --probability 1.0 -j DNAT --to-destination [fd00:2::1]:80",
    ];
    for rules in [&docker[..], &kubernetes[..]] {
        let mut net = routed();
        for rule in rules {
            let out = net.hosts[1].exec(&format!("ip6tables -t nat {rule}"), net.now);
            assert_eq!(out.status, 0, "{rule}: {}", out.stderr);
        }
        assert_eq!(net.hosts[1].unsimulated(), [""; 0]);
        net.send(0, udp("fd00:1::fe", 100)).unwrap();
        let (at, packet) = net.delivered.last().expect("it has come");
        let L4::Udp(u) = packet.l4 else { panic!("{packet:?}") };
        assert_eq!(
            (*at, h6(packet).src, h6(packet).dst, u.dport),
            (2, ip("fd00:2::fe"), ip("fd00:2::1"), 80)
        );
    }
}

#[test]
fn addresses_that_follow_from_others() {
    let addr = |text: &str| text.parse::<Ipv6Addr>().unwrap();
    assert_eq!(link_local([2, 0, 0, 0, 0, 1]), addr("fe80::ff:fe00:1"));
    assert_eq!(link_local([0x52, 0x54, 0, 0x12, 0x34, 0x56]), addr("fe80::5054:ff:fe12:3456"));
    assert_eq!(solicited_node(addr("2001:db8::1:800:200e:8c6c")), addr("ff02::1:ff0e:8c6c"));
    assert_eq!(group_mac(addr("ff02::1:ff0e:8c6c")), [0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c]);
    assert_eq!(network(addr("2001:db8:ffff::1"), 33).addr, addr("2001:db8:8000::"));
}

#[test]
fn groups_a_device_is_in() {
    let mut device = Device6::default();
    let group = |text: &str| text.parse::<Ipv6Addr>().unwrap();
    device.join(group("fe80::1:2"));
    device.join(group("fd00::1:2"));
    for (text, is) in [
        ("ff02::1", true),
        ("ff01::1", true),
        ("ff05::1", false),
        ("ff02::2", false),
        ("ff02::1:ff01:2", true),
        ("ff02::1:ff01:3", false),
        ("ff02::fb", false),
    ] {
        assert_eq!(device.is_in(group(text)), is, "{text}");
    }
    device.conf.forwarding = true;
    assert!(device.is_in(group("ff05::2")) && device.is_in(group("ff02::2")));
    device.leave(group("fe80::1:2"));
    assert!(device.is_in(group("ff02::1:ff01:2")));
    device.leave(group("fd00::1:2"));
    assert!(!device.is_in(group("ff02::1:ff01:2")));
}

//= linux v6.12 net/ipv6/ndisc.c ndisc_recv_ns (pndisc_is_router), net/ipv6/ip6_output.c ip6_forward_proxy_check
#[test]
fn a_router_answers_for_who_is_behind_it() {
    let asks = |lines: &[&str], target: &str| {
        let mut net = routed();
        let way = net.hosts[0].exec("ip -6 route add fd00:2::/64 dev eth0", Time::ZERO);
        assert_eq!((way.status, way.stderr.as_str()), (0, ""));
        for line in lines {
            let out = net.hosts[1].exec(line, Time::ZERO);
            assert_eq!((out.status, out.stderr.as_str()), (0, ""), "{line}");
        }
        assert_eq!(net.hosts[1].unsimulated(), Vec::<String>::new());
        net.send(0, echo(target, 104)).unwrap();
        net.run(ms(1_000));
        let target = ip(target);
        let told = net.frames.iter().find(|f| {
            let i = message(&f.2);
            let of = matches!(i.body, IcmpBody::Neighbour { target: t, .. } if t == target);
            f.1 == 1 && i.ty == ADVERTISEMENT && of
        });
        (told.map(|f| (f.0.as_ns() / 1_000_000, message(&f.2).id)), heard(&net, 0).len())
    };
    let on = "sysctl -qw net.ipv6.conf.eth0.proxy_ndp=1";
    let at_once = "sysctl -qw net.ipv6.neigh.eth0.proxy_delay=0";
    let entry = "ip -6 neigh add proxy fd00:2::1 dev eth0";
    // Of IPv6 the setting alone answers for nobody, nor the entry alone.
    assert_eq!(asks(&[on, at_once], "fd00:2::1"), (None, 0));
    assert_eq!(asks(&[entry, at_once], "fd00:2::1"), (None, 0));
    assert_eq!(asks(&[on, entry, at_once], "fd00:2::1"), (Some((0, 0x4000)), 1));
    assert_eq!(asks(&["sysctl -qw net.ipv6.conf.all.proxy_ndp=1", entry, at_once], "fd00:2::1").1, 1);
    assert_eq!(asks(&[on, entry, at_once], "fd00:2::2"), (None, 0));
    let as_router = "ip -6 neigh add proxy fd00:2::1 dev eth0 router";
    assert_eq!(asks(&[on, as_router, at_once], "fd00:2::1"), (Some((0, 0x8000 | 0x4000)), 1));
    let waited = asks(&[on, entry], "fd00:2::1");
    assert!(waited.0.is_some_and(|(at, _)| (1..=804).contains(&at)) && waited.1 == 1, "{waited:?}");
    let gone = "ip -6 neigh del proxy fd00:2::1 dev eth0";
    assert_eq!(asks(&[on, entry, at_once, gone], "fd00:2::1"), (None, 0));
    let host = "sysctl -qw net.ipv6.conf.all.forwarding=0";
    assert_eq!(asks(&[on, entry, at_once, host], "fd00:2::1"), (None, 0));
}
