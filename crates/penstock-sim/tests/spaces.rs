//! Network namespaces of one machine, with veth pairs between them: packets, programs, qdiscs, counters.

use crate::shared;

use penstock_host::Prefix;
use penstock_model::{Kernel, Rate, Span};
use penstock_sim::{End, HostId, LinkSpec, World};
use shared::{program, received, run, shown, space};

/// Of a device in a namespace: what `ip -s link` shows of received and sent packets and bytes, and of what was lost there.
fn counters(world: &World, host: HostId, dev: &str) -> [u64; 6] {
    let d = world.host(host).devices().iter().find(|d| d.name == dev).unwrap().counters;
    [d.rx_packets, d.rx_bytes, d.rx_dropped, d.tx_packets, d.tx_bytes, d.tx_dropped]
}
fn accounted(world: &World) {
    assert_eq!(world.miscounts(), [""; 0]);
}

/// left -- middle -- right, three namespaces in one machine.
fn three() -> (World, HostId) {
    let mut world = World::new(1);
    let m = world.add_host("m", Kernel::V6_12);
    run(
        &mut world,
        m,
        &[
            "ip netns add left",
            "ip netns add middle",
            "ip netns add right",
            "ip link add l0 netns left type veth peer name m0 netns middle",
            "ip link add r0 type veth peer name m1",
            "ip link set r0 netns right",
            "ip link set m1 netns middle",
            "ip -n left addr add 10.0.1.1/24 dev l0",
            "ip -n middle addr add 10.0.1.254/24 dev m0",
            "ip -n middle addr add 10.0.2.254/24 dev m1",
            "ip -n right addr add 10.0.2.1/24 dev r0",
            "ip -n left addr add fd00:1::1/64 dev l0 nodad",
            "ip -n middle addr add fd00:1::fe/64 dev m0 nodad",
            "ip -n middle addr add fd00:2::fe/64 dev m1 nodad",
            "ip -n right addr add fd00:2::1/64 dev r0 nodad",
            "ip -n left link set l0 up",
            "ip -n middle link set m0 up",
            "ip -n middle link set m1 up",
            "ip -n right link set r0 up",
            "ip -n left route add default via 10.0.1.254",
            "ip -n right route add default via 10.0.2.254",
            "ip -n left -6 route add default via fd00:1::fe",
            "ip -n right -6 route add default via fd00:2::fe",
            "ip netns exec middle sysctl -qw net.ipv4.ip_forward=1",
            "ip netns exec middle sysctl -qw net.ipv6.conf.all.forwarding=1",
        ],
    );
    (world, m)
}

#[test]
fn three_namespaces_are_three_machines() {
    let (mut world, m) = three();
    let left = space(&world, m, "left");
    for target in ["10.0.2.1", "fd00:2::1"] {
        let out = program(&mut world, left, &format!("ping -c 3 {target}"), Span::from_secs(4));
        assert!(out.contains("3 packets transmitted, 3 received, 0% packet loss"), "{out}");
        assert!(out.contains("ttl=63"), "{out}");
    }
    // Over a device that was moved and one that was made there alike; the routers' other side counts the same.
    let [l0, m0] = [counters(&world, left, "l0"), counters(&world, space(&world, m, "middle"), "m0")];
    assert_eq!((l0[..3].to_vec(), l0[3..].to_vec()), (m0[3..].to_vec(), m0[..3].to_vec()));
    assert!(l0[0] >= 8);
    let said = shown(&mut world, m, "ip -n middle -br link");
    assert!(said.contains("m0@if2") && said.matches("UP").count() >= 2, "{said}");
    accounted(&world);
}

#[test]
fn a_qdisc_on_a_veth_shapes_what_leaves_by_it() {
    let (mut world, m) = three();
    run(&mut world, m, &["tc -n middle qdisc add dev m1 root tbf rate 10mbit burst 10k latency 50ms"]);
    let right = space(&world, m, "right");
    let left = space(&world, m, "left");
    let start = world.now();
    world.add_app(right, "iperf3 -s", start);
    world.add_app(left, "iperf3 -c 10.0.2.1 -t 5", start + Span::from_ms(100));
    let results = world.run(start + Span::from_secs(7));
    let mbit = received(&results.apps.last().unwrap().output);
    // 1448 of 1514 bytes, which is what tbf counts.
    assert!((9.4..9.7).contains(&mbit), "{mbit}");
    let said = shown(&mut world, m, "tc -n middle -s qdisc show dev m1");
    assert!(said.contains("qdisc tbf 8001: root") && !said.contains("Sent 0 bytes"), "{said}");
    accounted(&world);
}

/// A container host: a bridge with two containers behind it, whose addresses the uplink's hides.
fn containers() -> (World, HostId, HostId) {
    let mut world = World::new(1);
    let host = world.add_host("host", Kernel::V6_12);
    let out = world.add_host("out", Kernel::V6_12);
    let ends = [End::new(host, "eth0"), End::new(out, "eth0")];
    let [a, b] = ends;
    world.add_link(LinkSpec::new(a, b, Some(Rate::from_bit_per_s(100_000_000)), Span::from_ms(2))).unwrap();
    for (id, address) in [(host, "192.0.2.2/24"), (out, "192.0.2.1/24")] {
        let eth0 = world.host(id).ifindex("eth0").unwrap();
        world.host_mut(id).add_address(eth0, Prefix::parse(address).unwrap()).unwrap();
    }
    run(
        &mut world,
        host,
        &[
            "sysctl -qw net.ipv4.ip_forward=1",
            "ip link add docker0 type bridge",
            "ip addr add 172.17.0.1/16 dev docker0",
            "ip link set docker0 up",
            "iptables -t nat -A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE",
            "iptables -t nat -A PREROUTING -p tcp --dport 8080 -j DNAT --to-destination 172.17.0.3:5201",
            "iptables -P FORWARD DROP",
            "iptables -A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
            "iptables -A FORWARD -i docker0 -j ACCEPT",
            "iptables -A FORWARD -o docker0 -d 172.17.0.3 -p tcp --dport 5201 -j ACCEPT",
        ],
    );
    for n in 1..=2 {
        let address = format!("172.17.0.{}/16", n + 1);
        for line in [
            format!("ip netns add c{n}"),
            format!("ip link add veth{n} type veth peer name tmp"),
            format!("ip link set tmp netns c{n}"),
            format!("ip -n c{n} link set tmp name eth0"),
            format!("ip link set veth{n} master docker0 up"),
            format!("ip -n c{n} link set lo up"),
            format!("ip -n c{n} link set eth0 up"),
            format!("ip -n c{n} addr add {address} dev eth0"),
            format!("ip -n c{n} route add default via 172.17.0.1"),
        ] {
            run(&mut world, host, &[&line]);
        }
    }
    (world, host, out)
}

#[test]
fn a_container_host_masquerades_and_shapes_on_the_veth_and_on_the_uplink() {
    let (mut world, host, out) = containers();
    run(
        &mut world,
        host,
        &[
            "tc qdisc add dev veth1 root tbf rate 20mbit burst 20k latency 20ms",
            "tc qdisc add dev eth0 root handle 1: htb default 1",
            "tc class add dev eth0 parent 1: classid 1:1 htb rate 8mbit",
            "tc qdisc add dev eth0 parent 1:1 pfifo limit 20",
        ],
    );
    let (c1, c2) = (space(&world, host, "c1"), space(&world, host, "c2"));
    let out_text = program(&mut world, c1, "ping -c 2 192.0.2.1", Span::from_secs(2));
    assert!(out_text.contains("2 received") && out_text.contains("ttl=63"), "{out_text}");
    // One container to the other does not come to the rules: the bridge forwards it.
    let out_text = program(&mut world, c1, "ping -c 2 172.17.0.3", Span::from_secs(2));
    assert!(out_text.contains("2 received") && out_text.contains("ttl=64"), "{out_text}");
    let start = world.now();
    world.add_app(out, "iperf3 -s", start);
    world.add_app(c2, "iperf3 -s", start);
    world.add_app(c1, "iperf3 -c 192.0.2.1 -t 4", start + Span::from_ms(100));
    let up = world.run(start + Span::from_secs(6));
    // The uplink's class has it.
    let got = received(&up.apps.last().unwrap().output);
    assert!((7.4..7.8).contains(&got), "{got}");
    let table = world.exec(host, "conntrack -L").stdout;
    assert!(table.contains("src=172.17.0.2 dst=192.0.2.1") && table.contains("dst=192.0.2.2"), "{table}");
    // From c2 to c1 the veth's own qdisc has it.
    let start = world.now();
    world.add_app(c1, "iperf3 -s", start);
    world.add_app(c2, "iperf3 -c 172.17.0.2 -t 4", start + Span::from_ms(100));
    let across = world.run(start + Span::from_secs(6));
    let got = received(&across.apps.last().unwrap().output);
    assert!((18.9..19.5).contains(&got), "{got}");
    // And from outside a published port.
    let start = world.now();
    world.add_app(out, "iperf3 -c 192.0.2.2 -p 8080 -t 2", start);
    let published = world.run(start + Span::from_secs(4));
    let text = &published.apps.last().unwrap().output;
    assert!(text.contains("iperf Done."), "{text}");
    accounted(&world);
}

#[test]
fn a_pair_has_a_carrier_while_both_ends_are_up() {
    let mut world = World::new(1);
    let m = world.add_host("m", Kernel::V6_12);
    run(
        &mut world,
        m,
        &[
            "ip netns add n",
            "ip link add va type veth peer name vb netns n",
            "ip addr add 10.0.0.1/24 dev va",
            "ip -n n addr add 10.0.0.2/24 dev vb",
            "ip link set va up",
        ],
    );
    let n = space(&world, m, "n");
    let said = shown(&mut world, m, "ip link show va");
    // The other end has the index there that this one has here (`default_operstate`).
    assert!(said.contains("NO-CARRIER") && said.contains("state DOWN"), "{said}");
    let out = program(&mut world, m, "ping -c 1 -W 1 10.0.0.2", Span::from_secs(4));
    assert!(out.contains("0 received"), "{out}");
    // What is sent without a carrier is lost where a qdisc would stand.
    assert!(counters(&world, m, "va")[5] > 0 && counters(&world, m, "va")[3] == 0);
    run(&mut world, m, &["ip -n n link set vb up"]);
    let out = program(&mut world, m, "ping -c 1 -W 1 10.0.0.2", Span::from_secs(3));
    assert!(out.contains("1 received"), "{out}");
    let said = shown(&mut world, m, "ip link show va");
    assert!(said.contains("<BROADCAST,MULTICAST,UP,LOWER_UP>") && said.contains("state UP"), "{said}");
    // A frame that the other end is too narrow for is lost, and both tell of it.
    run(&mut world, m, &["ip -n n link set vb mtu 1000"]);
    let before = (counters(&world, m, "va"), counters(&world, n, "vb"));
    let out = program(&mut world, m, "ping -c 1 -W 1 -s 1200 10.0.0.2", Span::from_secs(3));
    assert!(out.contains("0 received"), "{out}");
    let after = (counters(&world, m, "va"), counters(&world, n, "vb"));
    assert_eq!((after.0[5], after.1[2]), (before.0[5] + 1, before.1[2] + 1));
    // Deleted with its namespace, both are gone; what had been there is accounted for.
    run(&mut world, m, &["ip netns del n"]);
    assert!(world.host(m).ifindex("va").is_none());
    let out = program(&mut world, m, "ping -c 1 -W 1 10.0.0.2", Span::from_secs(3));
    assert!(out.contains("Network is unreachable"), "{out}");
    accounted(&world);
}

#[test]
fn a_mark_stays_within_a_namespace_and_goes_with_another() {
    for (peer, marked) in [("", true), ("netns n", false)] {
        let mut world = World::new(1);
        let m = world.add_host("m", Kernel::V6_12);
        run(
            &mut world,
            m,
            &[
                "ip netns add n",
                &format!("ip link add va type veth peer name vb {peer}"),
                "ip addr add 10.0.0.1/24 dev va",
                "ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev va nud permanent",
                "ip link set va up",
                "iptables -t mangle -A OUTPUT -d 10.0.0.2 -j MARK --set-mark 7",
            ],
        );
        let at = if marked { "" } else { "netns exec n " };
        let there = |line: &str| if marked { line.to_owned() } else { format!("ip {at}{line}") };
        for line in
            ["ip link set vb address 02:00:00:00:00:02", "ip link set vb up", "tc qdisc add dev vb clsact"]
        {
            run(&mut world, m, &[&there(line)]);
        }
        run(
            &mut world,
            m,
            &[&there("tc filter add dev vb ingress protocol ip prio 1 handle 7 fw action drop")],
        );
        program(&mut world, m, "ping -c 3 -W 1 10.0.0.2", Span::from_secs(5));
        let said = shown(&mut world, m, &there("tc -s filter show dev vb ingress"));
        let packets = if marked { " 3 pkt" } else { " 0 pkt" };
        assert!(said.contains(packets), "{peer}: {said}");
        accounted(&world);
    }
}

#[test]
fn a_card_goes_into_a_namespace_and_comes_back() {
    let mut world = World::new(1);
    let a = world.add_host("a", Kernel::V6_12);
    let b = world.add_host("b", Kernel::V6_12);
    let link = LinkSpec::new(
        End::new(a, "eth0"),
        End::new(b, "eth0"),
        Some(Rate::from_bit_per_s(10_000_000)),
        Span::from_ms(5),
    );
    world.add_link(link).unwrap();
    run(&mut world, b, &["ip addr add 10.0.0.2/24 dev eth0"]);
    run(
        &mut world,
        a,
        &[
            "ip netns add n",
            "ip link add d0 type dummy",
            "ip link set eth0 netns n",
            "ip -n n addr add 10.0.0.1/24 dev eth0",
            "ip -n n link set eth0 up",
        ],
    );
    let n = space(&world, a, "n");
    let out = program(&mut world, n, "ping -c 2 10.0.0.2", Span::from_secs(2));
    assert!(out.contains("2 received"), "{out}");
    let out = program(&mut world, a, "ping -c 2 10.0.0.2", Span::from_secs(2));
    assert!(out.contains("Network is unreachable"), "{out}");
    // A namespace that is deleted gives its cards back.
    run(&mut world, a, &["ip netns del n", "ip addr add 10.0.0.1/24 dev eth0", "ip link set eth0 up"]);
    let out = program(&mut world, a, "ping -c 2 10.0.0.2", Span::from_secs(2));
    assert!(out.contains("2 received"), "{out}");
    accounted(&world);
}
