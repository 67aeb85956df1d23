//! Macvlans in network namespaces over a card of their machine: programs, queues, the account.

use crate::shared;

use penstock_model::{Kernel, Rate, Span};
use penstock_sim::{End, HostId, LinkSpec, World};
use shared::{program, received, run, shown, space};

/// A server at a wire of 100 Mbit/s, and a machine with two containers over its card.
fn world(mode: &str) -> (World, HostId, HostId) {
    let mut world = World::new(1);
    let server = world.add_host("server", Kernel::V6_12);
    let machine = world.add_host("box", Kernel::V6_12);
    let ends = (End::new(server, "eth0"), End::new(machine, "eth0"));
    let rate = Some(Rate::from_bit_per_s(100_000_000));
    world.add_link(LinkSpec::new(ends.0, ends.1, rate, Span::from_ms(1))).unwrap();
    run(&mut world, server, &["ip addr add 10.0.0.10/24 dev eth0"]);
    run(&mut world, machine, &["ip addr add 10.0.0.2/24 dev eth0"]);
    for (n, name) in [(1, "one"), (2, "two")] {
        let lines = [
            format!("ip netns add {name}"),
            format!("ip link add mac{n} link eth0 netns {name} type macvlan mode {mode}"),
            format!("ip -n {name} addr add 10.0.0.2{n}/24 dev mac{n}"),
            format!("ip -n {name} link set mac{n} up"),
        ];
        run(&mut world, machine, &lines.iter().map(String::as_str).collect::<Vec<_>>());
    }
    (world, server, machine)
}
const LOST: &str = "100% packet loss";

#[test]
fn containers_are_stations_of_the_network_below() {
    let (mut world, server, machine) = world("bridge");
    let (one, two) = (space(&world, machine, "one"), space(&world, machine, "two"));
    for (at, to, reached) in [
        (server, "10.0.0.21", true),
        (one, "10.0.0.10", true),
        (one, "10.0.0.22", true),
        (two, "10.0.0.2", false),
        (machine, "10.0.0.21", false),
    ] {
        let out = program(&mut world, at, &format!("ping -c 2 -i 0.2 -W 1 {to}"), Span::from_secs(3));
        assert_eq!(!out.contains(LOST), reached, "{to}: {out}");
    }
    let link = shown(&mut world, machine, "ip -n one -d link show mac1");
    assert!(
        link.contains("mac1@if2: <")
            && link.contains("macvlan mode bridge")
            && link.contains("link-netnsid 0"),
        "{link}"
    );
    assert_eq!(world.miscounts(), [""; 0]);
    // With the device below it down, the macvlan has no carrier.
    run(&mut world, machine, &["ip link set eth0 down"]);
    let link = shown(&mut world, machine, "ip -n one link show mac1");
    assert!(link.contains("NO-CARRIER") && link.contains("state LOWERLAYERDOWN"), "{link}");
    run(&mut world, machine, &["ip link set eth0 up"]);
    let out = program(&mut world, server, "ping -c 2 -i 0.2 10.0.0.22", Span::from_secs(3));
    assert!(out.contains(" 0% packet loss"), "{out}");
}

#[test]
fn private_containers_do_not_meet() {
    let (mut world, _, machine) = world("private");
    let one = space(&world, machine, "one");
    let out = program(&mut world, one, "ping -c 2 -i 0.2 -W 1 10.0.0.22", Span::from_secs(3));
    assert!(out.contains(LOST), "{out}");
    let out = program(&mut world, one, "ping -c 2 -i 0.2 10.0.0.10", Span::from_secs(3));
    assert!(out.contains(" 0% packet loss"), "{out}");
    assert_eq!(world.miscounts(), [""; 0]);
}

/// A container's TCP fills the wire by the card's queue, and its frames are its memory until the card has sent them: a short queue there loses none.
#[test]
fn tcp_of_a_container_is_held_back_by_the_card() {
    let (mut world, server, machine) = world("bridge");
    let one = space(&world, machine, "one");
    world.add_app(server, "iperf3 -s", world.now());
    let out = program(&mut world, one, "iperf3 -c 10.0.0.10 -t 4", Span::from_secs(6));
    assert!((90.0..96.0).contains(&received(&out)), "{out}");
    let queue = shown(&mut world, machine, "tc -s qdisc show dev eth0");
    assert!(queue.contains("dropped 0,") && !queue.contains("Sent 0 bytes"), "{queue}");
    // And by a shaper of its own, or of the card below.
    for line in [
        "tc -n one qdisc add dev mac1 root tbf rate 10mbit burst 10k latency 50ms",
        "tc qdisc add dev eth0 root tbf rate 5mbit burst 10k latency 50ms",
    ] {
        run(&mut world, machine, &[line]);
        let most = if line.contains("10mbit") { 9.7 } else { 4.9 };
        let out = program(&mut world, one, "iperf3 -c 10.0.0.10 -t 4", Span::from_secs(6));
        assert!((most - 0.6..most).contains(&received(&out)), "{line}: {out}");
    }
    assert_eq!(world.miscounts(), [""; 0]);
}

/// Between two containers nothing has a rate: it takes a processor's time, and ends.
#[test]
fn tcp_between_two_containers_ends() {
    let (mut world, _, machine) = world("bridge");
    let (one, two) = (space(&world, machine, "one"), space(&world, machine, "two"));
    world.add_app(two, "iperf3 -s", world.now());
    let out = program(&mut world, one, "iperf3 -c 10.0.0.22 -n 20M", Span::from_secs(3));
    assert!(received(&out) > 500.0, "{out}");
    assert_eq!(world.miscounts(), [""; 0]);
}
