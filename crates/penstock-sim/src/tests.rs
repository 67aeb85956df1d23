//! Whole worlds, small.

use crate::*;
use penstock_host::Prefix;
use penstock_model::{Kernel, Rate, Span, Time};

fn mbit(n: u64) -> Option<Rate> {
    Some(Rate::from_bit_per_s(n * 1_000_000))
}
fn secs(s: i64) -> Time {
    Time::from_ns(s * 1_000_000_000)
}
fn address(world: &mut World, host: HostId, device: &str, text: &str) {
    let ifindex = world.host(host).ifindex(device).unwrap();
    world.host_mut(host).add_address(ifindex, Prefix::parse(text).unwrap()).unwrap();
}

/// Two hosts on one link.
fn pair(seed: u64, rate: Option<Rate>, delay: Span) -> (World, HostId, HostId) {
    let mut world = World::new(seed);
    let a = world.add_host("a", Kernel::V6_12);
    let b = world.add_host("b", Kernel::V6_12);
    world.add_link(LinkSpec::new(End::new(a, "eth0"), End::new(b, "eth0"), rate, delay)).unwrap();
    address(&mut world, a, "eth0", "10.0.0.1/24");
    address(&mut world, b, "eth0", "10.0.0.2/24");
    (world, a, b)
}

fn greedy(from: HostId, to: HostId) -> FlowSpec {
    FlowSpec {
        name: String::new(),
        group: String::new(),
        from,
        to,
        to_addr: None,
        count: 1,
        transport: Transport::Tcp(TcpSpec::default()),
        load: Load::Greedy,
        start: Time::ZERO,
        start_to: Time::ZERO,
        stop: None,
        tos: 0,
        mark: 0,
        port: 0,
    }
}

#[test]
fn a_round_trip_on_an_idle_link_is_exact() {
    let (mut world, a, _) = pair(1, mbit(10), Span::from_ms(5));
    world.add_app(a, "ping -c 3 -s 100 10.0.0.2", Time::ZERO);
    let results = world.run(secs(10));
    let app = &results.apps[0];
    // 142 bytes and 24 of Ethernet's own at 10 Mbit/s, twice; 5 ms, twice.
    let rtt = 2 * (166 * 800 + 5_000_000);
    // The first waits for ARP: 42 bytes padded to 60, and 24, there and back.
    let arp = 2 * (84 * 800 + 5_000_000);
    assert_eq!(app.rtts, [rtt + arp, rtt, rtt]);
    assert_eq!(app.exit, Some(0));
    assert!(
        app.output.contains("108 bytes from 10.0.0.2: icmp_seq=2 ttl=64 time=10.2 ms\n"),
        "{}",
        app.output
    );
    assert!(app.output.contains("3 packets transmitted, 3 received, 0% packet loss"), "{}", app.output);
}

#[test]
fn one_tcp_connection_fills_the_link() {
    let (mut world, a, b) = pair(1, mbit(10), Span::from_ms(1));
    world.add_flow(greedy(a, b)).unwrap();
    let results = world.run(secs(10));
    let flow = &results.flows[0];
    let goodput = flow.goodput_bytes * 8 / 10;
    assert!((9_300_000..9_500_000).contains(&goodput), "{goodput}");
    assert_eq!(flow.proto, "tcp");
}

#[test]
fn a_datagram_stream_has_its_rate_and_nothing_is_lost() {
    let (mut world, a, b) = pair(1, mbit(100), Span::from_ms(1));
    let load = Load::steady(Rate::from_bit_per_s(1_000_000), 1250);
    let stop = Some(secs(5));
    world.add_flow(FlowSpec { transport: Transport::Udp, load, stop, ..greedy(a, b) }).unwrap();
    let flow = &world.run(secs(6)).flows[0];
    assert_eq!((flow.sent_packets, flow.received_packets, flow.lost_packets), (500, 500, 0));
    assert_eq!(flow.goodput_bytes, 500 * 1250);
    assert_eq!(flow.jitter, Span::from_ns(0).max(flow.jitter));
}

#[test]
fn a_program_starts_when_another_has_ended() {
    let (mut world, a, b) = pair(1, mbit(10), Span::from_ms(1));
    let ping = world.add_app(a, "ping -c 2 10.0.0.2", secs(1));
    let shell = world.add_app_after(b, "a script", ping, Span::from_ms(5));
    world.set_commands(shell, vec!["true".into(), "nonsense".into(), "true".into()]);
    let never = world.add_app(b, "ping 10.0.0.1", secs(1));
    world.add_app_after(b, "ping -c 1 10.0.0.1", never, Span::ZERO);
    let results = world.run(secs(10));
    let (first, script, last) = (&results.apps[0], &results.apps[1], &results.apps[3]);
    assert_eq!(Some(script.started), first.ended.map(|t| t + Span::from_ms(5)));
    assert_eq!((script.exit, script.ended), (Some(127), Some(script.started)));
    assert_eq!((last.exit, last.started, last.output.as_str()), (None, Time::MAX, ""));
}

#[test]
fn iperf_prints_its_forms() {
    let (mut world, a, b) = pair(1, mbit(10), Span::from_ms(1));
    world.add_app(b, "iperf -s", Time::ZERO);
    world.add_app(a, "iperf -c 10.0.0.2 -t 4 -i 2", secs(1));
    let results = world.run(secs(20));
    println!("{}\n{}", results.apps[0].output, results.apps[1].output);
    assert_eq!(results.apps[1].exit, Some(0));
}

#[test]
fn iperf_parallel_and_udp() {
    let (mut world, a, b) = pair(1, mbit(10), Span::from_ms(1));
    world.add_app(b, "iperf -s", Time::ZERO);
    world.add_app(b, "iperf -s -u -i 1", Time::ZERO);
    world.add_app(a, "iperf -c b -P 2 -t 3", secs(1));
    world.add_app(a, "iperf -c 10.0.0.2 -u -t 3 -b 2m", secs(8));
    world.add_app(a, "iperf -c 10.0.0.2 -u -t 3 -b 20m", secs(18));
    world.add_app(a, "iperf -c 10.0.0.2 -p 77", secs(28));
    world.add_app(a, "iperf -c 10.0.0.2 -u -p 77", secs(28));
    let results = world.run(secs(50));
    for app in &results.apps {
        println!("--- {}\n{}", app.run, app.output);
    }
    for app in &results.apps[2..5] {
        assert_eq!(app.exit, Some(0));
    }
}

#[test]
fn scp_and_sessions_run() {
    let (mut world, a, b) = pair(1, mbit(100), Span::from_us(200));
    world.add_file("Video08-3.wmv", 53_477_376);
    world.add_app(a, "scp Video08-3.wmv kanwar@10.0.0.2:./", Time::ZERO);
    world.add_app(a, "ssh kanwar@10.0.0.2", Time::ZERO);
    world.add_app(a, "putty kanwar@10.0.0.2", Time::ZERO);
    world.add_app(a, "telnet 10.0.0.2", Time::ZERO);
    world.add_app(b, "scp nofile a:", Time::ZERO);
    let results = world.run(secs(60));
    for app in &results.apps {
        println!("--- {} {:?}\n{}", app.run, app.rtt.as_ref().and_then(|h| h.mean()), app.output);
    }
    assert!(results.apps[..4].iter().all(|app| app.exit == Some(0)));
    assert!(results.apps[0].throughput_bit_s.unwrap() > 85_000_000);
    assert_eq!(results.apps[4].exit, Some(1));
}

#[test]
fn iperf3_prints_its_forms() {
    let (mut world, a, b) = pair(1, mbit(100), Span::from_us(200));
    world.add_app(b, "iperf3 -s", Time::ZERO);
    world.add_app(a, "iperf3 -c 10.0.0.2 -t 3", secs(1));
    world.add_app(a, "iperf3 -c 10.0.0.2 -t 2 -P 2 -R", secs(6));
    world.add_app(a, "iperf3 -c 10.0.0.2 -t 2 -u -b 20M", secs(11));
    world.add_app(a, "iperf3 -c 10.0.0.2 -t 2 -u -b 1G -R", secs(16));
    world.add_app(a, "iperf3 -c 10.0.0.2 -t 1 -J", secs(21));
    world.add_app(a, "iperf3 -c 10.0.0.2 -n 10M", secs(26));
    world.add_app(a, "iperf3 -c 10.0.0.2 -p 99", secs(26));
    let results = world.run(secs(31));
    for app in &results.apps {
        println!("--- {} {:?}\n{}", app.run, app.throughput_bit_s, app.output);
    }
    assert!(results.apps[1..7].iter().all(|app| app.exit == Some(0)));
    assert_eq!(results.apps[7].exit, Some(1));
}

#[test]
fn a_frame_never_begins_before_the_one_before_it_has_ended() {
    // 1184 bytes of payload take 1250 on the wire: 1 ms, exactly the gap, so each frame comes when the wire becomes free.
    let (mut world, a, b) = pair(1, mbit(10), Span::from_ms(1));
    let gap = Dist::Constant(Span::from_ms(1));
    for name in ["x", "y"] {
        let load = Load::Packets { size: Sizes::Constant(1184), gap: gap.clone() };
        let flow = FlowSpec { name: name.into(), transport: Transport::Udp, load, ..greedy(a, b) };
        world.add_flow(flow).unwrap();
    }
    let results = world.run(secs(1));
    let received: u64 = results.flows.iter().map(|f| f.received_packets).sum();
    assert!((990..=1000).contains(&received), "{received}");
}
