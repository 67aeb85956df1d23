//! IPv6 through routers: programs, flows, TCP and what the wire shows of them.

use crate::*;
use penstock_model::{Kernel, Rate, Span, Time};

fn secs(s: i64) -> Time {
    Time::from_ns(s * 1_000_000_000)
}

/// client — r1 — r2 — server, 10 Mbit/s and 5 ms between the routers; with `dual` over IPv4 too.
fn line(dual: bool) -> (World, [HostId; 4]) {
    let mut world = World::new(7);
    let hosts = ["client", "r1", "r2", "server"].map(|name| world.add_host(name, Kernel::V6_12));
    let [client, r1, r2, server] = hosts;
    for (a, da, b, db, rate, delay) in [
        (client, "eth0", r1, "eth0", 100, 0),
        (r1, "eth1", r2, "eth0", 10, 5),
        (r2, "eth1", server, "eth0", 100, 0),
    ] {
        let rate = Some(Rate::from_bit_per_s(rate * 1_000_000));
        world.add_link(LinkSpec::new(End::new(a, da), End::new(b, db), rate, Span::from_ms(delay))).unwrap();
    }
    let six = [
        (client, "ip addr add fd00:1::2/64 dev eth0", "ip -6 route add default via fd00:1::1"),
        (r1, "ip addr add fd00:1::1/64 dev eth0", "ip addr add fd00:2::1/64 dev eth1"),
        (r1, "sysctl -qw net.ipv6.conf.all.forwarding=1", "ip -6 route add fd00:3::/64 via fd00:2::2"),
        (r2, "ip addr add fd00:2::2/64 dev eth0", "ip addr add fd00:3::1/64 dev eth1"),
        (r2, "sysctl -qw net.ipv6.conf.all.forwarding=1", "ip -6 route add default via fd00:2::1"),
        (server, "ip addr add fd00:3::2/64 dev eth0", "ip -6 route add default via fd00:3::1"),
    ];
    let four = [
        (client, "ip addr add 10.0.1.2/24 dev eth0", "ip route add default via 10.0.1.1"),
        (r1, "ip addr add 10.0.1.1/24 dev eth0", "ip addr add 10.0.2.1/24 dev eth1"),
        (r1, "sysctl -qw net.ipv4.ip_forward=1", "ip route add 10.0.3.0/24 via 10.0.2.2"),
        (r2, "ip addr add 10.0.2.2/24 dev eth0", "ip addr add 10.0.3.1/24 dev eth1"),
        (r2, "sysctl -qw net.ipv4.ip_forward=1", "ip route add default via 10.0.2.1"),
        (server, "ip addr add 10.0.3.2/24 dev eth0", "ip route add default via 10.0.3.1"),
    ];
    for (host, first, second) in six.into_iter().chain(four.into_iter().filter(|_| dual)) {
        for line in [first, second] {
            let out = world.exec(host, line);
            assert_eq!(out.status, 0, "{line}: {}", out.stderr);
        }
    }
    (world, hosts)
}

fn flow(from: HostId, to: HostId, transport: Transport, load: Load) -> FlowSpec {
    FlowSpec {
        txtime: None,
        name: String::new(),
        group: String::new(),
        from,
        to,
        to_addr: None,
        ipv6: false,
        count: 1,
        transport,
        load,
        start: Time::ZERO,
        start_to: Time::ZERO,
        stop: None,
        tos: 0,
        mark: 0,
        port: 0,
        clock: SenderClock::default(),
        trace: false,
    }
}

#[test]
fn ping_crosses_two_routers() {
    let (mut world, [client, ..]) = line(false);
    let app = world.add_app(client, "ping -6 -c 3 server", secs(1));
    let numbers = world.add_app(client, "ping -c 2 fd00:3::2", secs(1));
    let lost = world.add_app(client, "ping -c 1 -W 5 fd00:3::77", secs(1));
    let beyond = world.add_app(client, "ping -c 1 fd00:9::1", secs(1));
    let large = world.add_app(client, "ping -c 1 -W 1 -s 1453 server", secs(1));
    let results = world.run(secs(20));
    let said = |app: AppId| results.apps[app.0 as usize].output.clone();
    let text = said(app);
    assert!(
        text.starts_with(
            "PING server(fd00:3::2) 56 data bytes\n64 bytes from fd00:3::2: icmp_seq=1 ttl=62 time="
        ),
        "{text}"
    );
    assert!(text.contains("3 packets transmitted, 3 received, 0% packet loss"), "{text}");
    assert!(said(numbers).contains("2 packets transmitted, 2 received"), "{}", said(numbers));
    assert!(
        said(lost).contains("From fd00:2::2 icmp_seq=1 Destination unreachable: Address unreachable\n"),
        "{}",
        said(lost)
    );
    assert!(said(beyond).contains("icmp_seq=1 Destination unreachable: No route\n"), "{}", said(beyond));
    assert!(said(large).contains("1461 bytes from fd00:3::2: icmp_seq=1 ttl=62 time="), "{}", said(large));
}

/// Between the routers 1400 bytes go through. Whom that is too narrow for hears of it from the router before, and cuts smaller from then on: first the
/// client, then the server.
#[test]
fn fragments_become_as_small_as_the_path_is_narrow() {
    let (mut world, [client, r1, r2, server]) = line(false);
    assert_eq!(world.exec(r1, "ip link set eth1 mtu 1400").status, 0);
    assert_eq!(world.exec(r2, "ip link set eth0 mtu 1400").status, 0);
    let ping = world.add_app(client, "ping -6 -c 4 -s 4000 server", secs(1));
    let whole = world.add_app(client, "ping -6 -c 1 -M do -s 1453 fd00:1::1", secs(7));
    let load = Load::Packets { size: Sizes::Constant(4000), gap: Dist::Constant(Span::from_ms(100)) };
    let start = FlowSpec { start: secs(8), start_to: secs(8), ..flow(client, server, Transport::Udp, load) };
    world.add_flow(FlowSpec { stop: Some(secs(9)), ..start }).unwrap();
    let results = world.run(secs(80));
    let said = |app: AppId| results.apps[app.0 as usize].output.clone();
    let text = said(ping);
    assert!(text.contains("From fd00:1::1 icmp_seq=1 Packet too big: mtu=1400\n"), "{text}");
    assert!(text.contains("4008 bytes from fd00:3::2: icmp_seq=4 ttl=62 time="), "{text}");
    assert!(text.contains("4 packets transmitted, 2 received, +1 errors, 50% packet loss"), "{text}");
    assert!(said(whole).contains("ping: local error: message too long, mtu: 1500\n"), "{}", said(whole));
    // 1352 bytes of data fit into each piece, so a datagram takes three.
    let flow = results.flows.iter().find(|f| f.goodput_bytes > 0).unwrap();
    assert_eq!((flow.sent_packets, flow.received_packets, flow.lost_packets), (10, 10, 0));
    assert_eq!(world.miscounts(), Vec::<String>::new());
}

/// TCP fills the line between the routers: segments of 1428 bytes of data with timestamps, in frames of 1514 bytes and Ethernet's 24.
#[test]
fn tcp_fills_the_line_with_the_headers_of_ipv6() {
    let (mut world, [client, .., server]) = line(false);
    world.add_flow(flow(client, server, Transport::Tcp(TcpWishes::default()), Load::Greedy)).unwrap();
    let results = world.run(secs(20));
    let rate = results.flows[0].goodput_bytes as f64 * 8.0 / 20.0;
    let line = 10e6 * 1428.0 / 1538.0;
    assert!(rate < line && rate > 0.97 * line, "{rate} of {line}");
    let table = world.exec(client, "cat /proc/net/penstock_cwnd").stdout;
    let row: Vec<&str> = table.lines().nth(1).unwrap().split(' ').collect();
    assert!(row[0].starts_with("fd00:1::2:") && row[5] == "1428", "{table}");
}

#[test]
fn udp_arrives_and_its_length_is_counted_with_ipv6() {
    let (mut world, [client, .., server]) = line(false);
    let load = Load::Packets { size: Sizes::Constant(1000), gap: Dist::Constant(Span::from_ms(10)) };
    let stop = Some(secs(10));
    world.add_flow(FlowSpec { stop, ..flow(client, server, Transport::Udp, load) }).unwrap();
    let results = world.run(secs(11));
    let flow = &results.flows[0];
    assert_eq!((flow.sent_packets, flow.received_packets, flow.lost_packets), (1000, 1000, 0));
    assert_eq!((flow.sent_bytes, flow.goodput_bytes), (1_062_000, 1_000_000));
}

/// Of a host with addresses of both families that of IPv4 is called, unless IPv6 is asked for.
#[test]
fn both_families_and_programs() {
    let (mut world, [client, _, r2, server]) = line(true);
    for line in ["iperf3 -s", "iperf -s", "iperf -s -u -V -p 5002"] {
        world.add_app(server, line, Time::ZERO);
    }
    let apps = [
        ("iperf3 -6 -c server -t 2", secs(1)),
        ("iperf3 -c server -t 2", secs(4)),
        ("iperf -V -c server -t 2", secs(7)),
        ("iperf -u -V -c server -t 2 -p 5002", secs(10)),
        ("ping -c 1 server", secs(13)),
    ]
    .map(|(line, at)| world.add_app(client, line, at));
    let mut six = flow(
        client,
        server,
        Transport::Udp,
        Load::Packets { size: Sizes::Constant(100), gap: Dist::Constant(Span::from_ms(10)) },
    );
    (six.ipv6, six.start, six.stop) = (true, secs(15), Some(secs(16)));
    let mut four = six.clone();
    (four.ipv6, four.start) = (false, secs(15));
    world.add_flow(six).unwrap();
    world.add_flow(four).unwrap();
    let results = world.run(secs(18));
    let said = |n: usize| results.apps[apps[n].0 as usize].output.clone();
    assert!(
        said(0).contains("Connecting to host server") && said(0).contains("fd00:1::2 port"),
        "{}",
        said(0)
    );
    assert!(said(1).contains("10.0.1.2 port"), "{}", said(1));
    assert!(
        said(2).contains("fd00:1::2 port") && said(3).contains("fd00:1::2 port"),
        "{}{}",
        said(2),
        said(3)
    );
    assert!(said(3).contains("(0%)"), "{}", said(3));
    assert!(said(4).starts_with("PING server (10.0.3.2) 56(84) bytes of data.\n"), "{}", said(4));
    let flows = &results.flows[results.flows.len() - 2..];
    let of =
        |bytes: u64| results.flows.iter().filter(|f| f.sent_packets == 100 && f.sent_bytes == bytes).count();
    assert_eq!((of(100 * 162), of(100 * 142)), (1, 1), "{flows:?}");
    let counted = world.exec(r2, "ip -6 neigh").stdout;
    assert!(counted.contains("fd00:3::2 dev eth1 lladdr"), "{counted}");
}
