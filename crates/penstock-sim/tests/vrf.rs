//! Programs on a machine whose cards are in a VRF.

use penstock_host::Prefix;
use penstock_model::{Kernel, Rate, Span};
use penstock_sim::{End, LinkSpec, World};

/// What an iperf3 client behind a VRF printed whose server runs on the VRF's machine; and ping of that machine.
fn tried(setting: &str, ping: &str) -> (String, String) {
    let mut world = World::new(1);
    let (r, c) = (world.add_host("r", Kernel::V6_12), world.add_host("c", Kernel::V6_12));
    let rate = Some(Rate::from_bit_per_s(10_000_000));
    world.add_link(LinkSpec::new(End::new(r, "eth0"), End::new(c, "eth0"), rate, Span::from_ms(1))).unwrap();
    let eth0 = world.host(c).ifindex("eth0").unwrap();
    world.host_mut(c).add_address(eth0, Prefix::parse("10.0.0.2/24").unwrap()).unwrap();
    for line in [
        "ip link add red type vrf table 10",
        "ip link set red up",
        "ip link set eth0 master red",
        "ip addr add 10.0.0.1/24 dev eth0",
        setting,
    ] {
        let said = world.exec(r, line);
        assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{line}");
    }
    let start = world.now();
    let pings = world.add_app(r, ping, start);
    world.add_app(r, "iperf3 -s", start);
    let client = world.add_app(c, "iperf3 -c 10.0.0.1 -t 2", start + Span::from_ms(100));
    let results = world.run(start + Span::from_secs(5));
    assert_eq!(world.miscounts(), [""; 0]);
    let printed = |app: penstock_sim::AppId| results.apps[app.0 as usize].output.clone();
    (printed(client), printed(pings))
}

#[test]
fn a_server_hears_a_vrf_where_it_may() {
    let ping = "ping -c 2 -I red 10.0.0.2";
    let (client, pings) = tried("sysctl -w net.ipv4.tcp_l3mdev_accept=0", ping);
    assert!(client.contains("Connection refused"), "{client}");
    assert!(pings.contains("from 10.0.0.1 red: 56(84)") && pings.contains("2 received"), "{pings}");
    let (client, pings) = tried("sysctl -w net.ipv4.tcp_l3mdev_accept=1", "ping -c 1 10.0.0.2");
    let line = client.lines().rev().find(|l| l.ends_with("receiver")).unwrap_or_else(|| panic!("{client}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    let mbit: f64 = words[words.iter().position(|w| *w == "Mbits/sec").unwrap() - 1].parse().unwrap();
    assert!((8.5..9.6).contains(&mbit), "{client}");
    assert!(pings.contains("Network is unreachable"), "{pings}");
}
