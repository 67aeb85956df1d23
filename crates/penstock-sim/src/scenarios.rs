//! Scenarios with their tables: what a whole world gives, as integers that a reader can follow.

use crate::bench::{dumbbell, greedy};
use crate::*;
use penstock_host::Prefix;
use penstock_model::{Kernel, Rate, Span, Time};
use std::fmt::Write;

fn secs(s: i64) -> Time {
    Time::from_ns(s * 1_000_000_000)
}
fn mbit(n: u64) -> Option<Rate> {
    Some(Rate::from_bit_per_s(n * 1_000_000))
}

/// Two clients, a router, a server: `c1` and `c2` on one segment, the bottleneck of 10 Mbit/s from the router to the
/// server.
pub(crate) fn office(seed: u64, kernel: Kernel) -> (World, [HostId; 4]) {
    let mut world = World::new(seed);
    let hosts = ["c1", "c2", "router", "server"].map(|name| world.add_host(name, kernel));
    let [c1, c2, router, server] = hosts;
    let inside = LinkSpec {
        ends: vec![End::new(c1, "eth0"), End::new(c2, "eth0"), End::new(router, "eth1")],
        ..LinkSpec::new(End::new(c1, ""), End::new(c1, ""), mbit(100), Span::from_us(10))
    };
    world.add_link(inside).unwrap();
    let outside =
        LinkSpec::new(End::new(router, "eth0"), End::new(server, "eth0"), mbit(10), Span::from_ms(2));
    world.add_link(outside).unwrap();
    for (host, device, address) in [
        (c1, "eth0", "10.1.0.1/24"),
        (c2, "eth0", "10.1.0.2/24"),
        (router, "eth1", "10.1.0.254/24"),
        (router, "eth0", "10.2.0.254/24"),
        (server, "eth0", "10.2.0.1/24"),
    ] {
        let ifindex = world.host(host).ifindex(device).unwrap();
        world.host_mut(host).add_address(ifindex, Prefix::parse(address).unwrap()).unwrap();
    }
    for (host, gateway) in [(c1, "10.1.0.254"), (c2, "10.1.0.254"), (server, "10.2.0.254")] {
        world.host_mut(host).add_default_route(gateway.parse().unwrap()).unwrap();
    }
    world.host_mut(router).set_forwarding(true);
    (world, hosts)
}

/// One line a flow.
fn table(results: &Results) -> String {
    let mut text = String::new();
    for f in &results.flows {
        let quantile = |q| f.owd.quantile(q).unwrap_or(0) / 1000;
        let _ = writeln!(
            text,
            "{} sent {} received {} lost {} again {} goodput {} owd_us {} {}",
            f.name,
            f.sent_packets,
            f.received_packets,
            f.lost_packets,
            f.retransmitted_packets,
            f.goodput_bytes,
            quantile(500),
            quantile(990),
        );
    }
    for (key, count) in &results.drops {
        let _ = writeln!(text, "{} {} {} {}", key.device, key.place, key.reason, count.packets);
    }
    text
}

fn mixed(seed: u64, sample: bool) -> Results {
    let (mut world, [c1, c2, router, server]) = office(seed, Kernel::V6_12);
    world.set_cost(
        router,
        Cost {
            packet: Dist::Uniform { from: Span::from_us(5), to: Span::from_us(40) },
            byte_ps: 100,
            ..Cost::ZERO
        },
    );
    world.exec(router, "tc qdisc add dev eth0 root sfq perturb 10");
    if sample {
        world.sample_every(Span::from_ms(100));
    }
    world.add_app(server, "iperf -s", Time::ZERO);
    world.add_app(c1, "iperf -c server -t 3 -i 1", secs(1));
    world.add_app(c2, "ping -c 4 server", secs(1));
    world.add_app(c2, "ssh me@server", secs(1));
    let poisson = Load::Packets {
        size: Sizes::Uniform { from: 100, to: 1400 },
        gap: Dist::Exponential { mean: Span::from_ms(4) },
    };
    let flow =
        FlowSpec { transport: Transport::Udp, load: poisson, stop: Some(secs(4)), ..greedy(c2, server) };
    world.add_flow(flow).unwrap();
    world.run(secs(12))
}

#[test]
fn equal_seeds_give_equal_results_and_others_differ() {
    let first = mixed(7, true);
    assert_eq!(first, mixed(7, true));
    assert_ne!(table(&first), table(&mixed(8, true)));
}

#[test]
fn sampling_changes_nothing() {
    let (with, without) = (mixed(7, true), mixed(7, false));
    assert_eq!(table(&with), table(&without));
    for (a, b) in with.apps.iter().zip(&without.apps) {
        assert_eq!(a.output, b.output);
    }
    assert_eq!(with.series.times.len(), 121);
    assert!(
        with.series.series.iter().any(|s| s.object.starts_with("eth0 sfq") && s.metric == Metric::Backlog)
    );
}

#[test]
fn running_in_steps_is_running_at_once() {
    let build = || {
        let mut world = dumbbell(3, 5);
        world.sample_every(Span::from_ms(50));
        world
    };
    let whole = build().run(secs(2));
    let mut world = build();
    for step in 1..=200 {
        world.run_quietly(Time::from_ns(step * 10_000_000));
    }
    assert_eq!(world.results(), whole);
}

#[test]
fn sfq_shares_evenly_between_two() {
    let (mut world, [c1, c2, router, server]) = office(1, Kernel::V6_12);
    world.exec(router, "tc qdisc add dev eth0 root sfq");
    for from in [c1, c2] {
        world.add_flow(greedy(from, server)).unwrap();
    }
    let results = world.run(secs(10));
    let goodput = |i: usize| results.flows[i].goodput_bytes;
    let (a, b) = (goodput(0), goodput(1));
    assert!(a.abs_diff(b) * 100 < (a + b) * 3, "{a} {b}");
    assert!((9_200_000..9_500_000).contains(&((a + b) * 8 / 10)), "{a} {b}");
}

#[test]
fn nothing_is_lost_without_a_reason() {
    let results = mixed(3, false);
    let lost: u64 = results.flows.iter().map(|f| f.lost_packets).sum();
    let dropped: u64 = results.drops.values().map(|d| d.packets).sum();
    assert!(dropped >= lost);
    for f in results.flows.iter().filter(|f| f.proto == "udp") {
        assert_eq!(f.sent_packets, f.received_packets + f.lost_packets, "{}", f.name);
    }
}

#[test]
fn a_segment_carries_one_frame_at_a_time() {
    // Two senders of 8 Mbit/s each on a hub of 10 Mbit/s: together they get what one frame at a time leaves.
    let mut world = World::new(1);
    let [a, b, c] = ["a", "b", "c"].map(|name| world.add_host(name, Kernel::V6_12));
    let ends = vec![End::new(a, "eth0"), End::new(b, "eth0"), End::new(c, "eth0")];
    let spec = LinkSpec { ends, ..LinkSpec::new(End::new(a, ""), End::new(a, ""), mbit(10), Span::ZERO) };
    world.add_link(spec).unwrap();
    for (host, address) in [(a, "10.0.0.1/24"), (b, "10.0.0.2/24"), (c, "10.0.0.3/24")] {
        world.host_mut(host).add_address(2, Prefix::parse(address).unwrap()).unwrap();
    }
    for from in [a, b] {
        let load = Load::steady(Rate::from_bit_per_s(8_000_000), 1472);
        world
            .add_flow(FlowSpec { transport: Transport::Udp, load, stop: Some(secs(5)), ..greedy(from, c) })
            .unwrap();
    }
    let results = world.run(secs(5));
    let bits = |i: usize| results.flows[i].goodput_bytes * 8 / 5;
    // 1472 of 1538 bytes on the wire.
    assert!((9_500_000..9_571_000).contains(&(bits(0) + bits(1))), "{} {}", bits(0), bits(1));
    assert!(bits(0).abs_diff(bits(1)) < 50_000, "{} {}", bits(0), bits(1));
}

#[test]
fn a_segment_brings_frames_to_whoever_has_their_address() {
    let mut world = World::new(1);
    let hosts = ["a", "b", "c"].map(|name| world.add_host(name, Kernel::V6_12));
    let ends = hosts.map(|host| End::new(host, "eth0")).to_vec();
    let spec = LinkSpec {
        ends,
        ..LinkSpec::new(End::new(hosts[0], ""), End::new(hosts[0], ""), mbit(10), Span::ZERO)
    };
    world.add_link(spec).unwrap();
    for (host, address) in hosts.into_iter().zip(["10.0.0.1/24", "10.0.0.2/24", "10.0.0.3/24"]) {
        world.host_mut(host).add_address(2, Prefix::parse(address).unwrap()).unwrap();
    }
    let [a, b, c] = hosts;
    let mac = |world: &World, host| {
        let mac = world.host(host).device(2).unwrap().mac;
        mac.map(|byte| format!("{byte:02x}")).join(":")
    };
    // For a second the third machine has the address of the second: what is sent to that comes to both.
    for (at, of) in [(2, b), (3, c)] {
        let mac = mac(&world, of);
        world.exec_at(c, &format!("ip link set dev eth0 address {mac}"), secs(at));
    }
    let load = Load::steady(Rate::from_bit_per_s(800_000), 1000);
    world
        .add_flow(FlowSpec { transport: Transport::Udp, load, stop: Some(secs(5)), ..greedy(a, b) })
        .unwrap();
    let results = world.run(secs(6));
    let flow = &results.flows[0];
    assert_eq!((flow.sent_packets, flow.received_packets), (500, 500));
    assert!(flow.copies.made.abs_diff(100) <= 1, "{:?}", flow.copies);
}

#[test]
fn a_lossy_link_loses_its_share() {
    let mut world = World::new(1);
    let [a, b] = ["a", "b"].map(|name| world.add_host(name, Kernel::V6_12));
    let mut spec = LinkSpec::new(End::new(a, "eth0"), End::new(b, "eth0"), mbit(100), Span::from_ms(1));
    spec.ends[0].loss_ppb = Some(100_000_000);
    world.add_link(spec).unwrap();
    for (host, address) in [(a, "10.0.0.1/24"), (b, "10.0.0.2/24")] {
        world.host_mut(host).add_address(2, Prefix::parse(address).unwrap()).unwrap();
    }
    let load = Load::steady(Rate::from_bit_per_s(10_000_000), 1000);
    world
        .add_flow(FlowSpec { transport: Transport::Udp, load, stop: Some(secs(10)), ..greedy(a, b) })
        .unwrap();
    let results = world.run(secs(11));
    let f = &results.flows[0];
    assert_eq!(f.sent_packets, 12_500);
    assert!((1_100..1_400).contains(&f.lost_packets), "{}", f.lost_packets);
    assert_eq!(results.drops.iter().map(|(k, d)| (k.place, k.reason, d.packets)).next().unwrap().0, "link");
}

#[test]
fn processors_queue_and_overflow() {
    let (mut world, [c1, _, router, server]) = office(1, Kernel::V6_12);
    world.set_cost(router, Cost { packet: Dist::Constant(Span::from_ms(1)), ..Cost::ZERO });
    let load = Load::steady(Rate::from_bit_per_s(20_000_000), 1000);
    world
        .add_flow(FlowSpec { transport: Transport::Udp, load, stop: Some(secs(3)), ..greedy(c1, server) })
        .unwrap();
    let results = world.run(secs(6));
    // A thousand a second, of 2500 that come; a thousand may wait.
    let f = &results.flows[0];
    assert!((3_900..4_020).contains(&f.received_packets), "{}", f.received_packets);
    let backlog = results.drops.iter().find(|(k, _)| k.place == "cpu").unwrap();
    assert_eq!((backlog.0.reason, backlog.1.packets), ("backlog", f.lost_packets));
}

#[test]
fn links_that_make_no_sense_are_refused() {
    let mut world = World::new(1);
    let a = world.add_host("a", Kernel::V6_12);
    let b = world.add_host("b", Kernel::V6_12);
    let link = |x: End, y: End| LinkSpec::new(x, y, None, Span::from_us(1));
    let mut refused = |spec: LinkSpec| world.add_link(spec).unwrap_err().0;
    assert!(
        refused(link(End::new(a, "eth0"), End::new(a, "eth0"))).starts_with("a:eth0 is on a link already")
    );
    assert!(
        refused(link(End::new(a, "eth0"), End::new(HostId(9), "eth0")))
            .starts_with("there is no host number 9")
    );
    let zero =
        LinkSpec { rate: Some(Rate::from_bytes_per_s(0)), ..link(End::new(a, "eth0"), End::new(b, "eth0")) };
    assert!(refused(zero).starts_with("the rate at a:eth0 is 0"));
    let one = LinkSpec { ends: vec![End::new(a, "eth0")], ..link(End::new(a, "x"), End::new(b, "x")) };
    assert_eq!(refused(one), "a link has two ends or more, not 1");
    world.add_link(link(End::new(a, "eth0"), End::new(b, "eth0"))).unwrap();
    assert!(world.add_flow(FlowSpec { transport: Transport::Udp, ..greedy(a, b) }).is_err());
    let spec = TcpWishes { cc: Some("nonsense".into()), ..TcpWishes::default() };
    assert!(world.add_flow(FlowSpec { transport: Transport::Tcp(spec), ..greedy(a, b) }).is_err());
}

#[test]
fn programs_say_no_in_their_own_words() {
    let (mut world, [c1, ..]) = office(1, Kernel::V6_12);
    for (line, exit, starts) in [
        ("nosuch --thing", 127, "bash: nosuch: command not found\n"),
        ("iperf -c nowhere", 1, "error: Name or service not known\n"),
        ("iperf", 1, "Usage: iperf [-s|-c host] [options]\n"),
        ("iperf -c server -Q", 1, "iperf: invalid option -- 'Q'\n"),
        ("ping nowhere", 2, "ping: nowhere: Name or service not known\n"),
        ("ping -c 0 server", 1, "ping: invalid argument: '0': out of range: 1 <= value <="),
        ("iperf3", 1, "iperf3: parameter error - must either be a client (-c) or server (-s)\n"),
        ("telnet", 1, "Usage: telnet"),
        ("ssh", 255, "usage: ssh"),
        ("scp x", 1, "usage: scp"),
        ("iperf -c 'x", 2, "bash: -c: line 1: unexpected EOF while looking for matching `''\n"),
    ] {
        let app = world.add_app(c1, line, Time::ZERO);
        let results = world.run(world.now());
        let result = &results.apps[app.0 as usize];
        assert_eq!(result.exit, Some(exit), "{line}: {}", result.output);
        assert!(result.output.starts_with(starts), "{line}: {}", result.output);
    }
}

#[test]
fn the_table_of_a_mixed_load_stays() {
    let (mut world, [c1, c2, router, server]) = office(1, Kernel::V2_6_35);
    world.exec(router, "tc qdisc add dev eth0 root tbf rate 4mbit burst 10k limit 30k");
    world.add_flow(greedy(c1, server)).unwrap();
    let load = Load::steady(Rate::from_bit_per_s(1_000_000), 500);
    // Not at once: 2.6.35 keeps three packets while ARP is asked, and a lost SYN would cost three seconds.
    let late = FlowSpec { start: secs(1), start_to: secs(1), stop: Some(secs(6)), ..greedy(c2, server) };
    world.add_flow(FlowSpec { transport: Transport::Udp, load, ..late }).unwrap();
    let results = world.run(secs(7));
    let udp = &results.flows[1];
    assert_eq!(udp.sent_packets, 1250);
    assert_eq!(udp.sent_packets, udp.received_packets + udp.lost_packets);
    let tcp = results.flows[0].goodput_bytes * 8 / 7;
    assert!((2_700_000..3_500_000).contains(&tcp), "{}", table(&results));
    // tbf's queue of 30 KB at 4 Mbit/s holds 60 ms.
    let worst = udp.owd.max().unwrap();
    assert!((50_000_000..70_000_000).contains(&worst), "{worst}");
}
