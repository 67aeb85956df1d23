//! What follows from settings, and what is said where nothing does.

use super::keys::{CONF, CONF6, Follows, KEYS, follows};
use crate::Host;
use crate::fragment::IP_DF;
use crate::tests::{echo, h4, routed, set4, udp};
use penstock_model::{Kernel, Span, Time};

fn said(lines: &[&str]) -> Vec<String> {
    let mut net = routed(Kernel::V6_12);
    for line in lines {
        let out = net.hosts[1].exec(line, Time::ZERO);
        assert_eq!(out.status, 0, "{line}: {}", out.stderr);
    }
    net.hosts[1].unsimulated()
}

#[test]
fn every_key_says_what_follows() {
    for (key, begins, _) in KEYS {
        assert!(follows(key).is_some(), "{key}");
        // What begins with no text is not kept as text: it has a field, and something follows.
        assert!(!begins.is_empty() || follows(key) == Some(Follows::As), "{key}");
    }
    for (attribute, ..) in CONF.iter().chain(CONF6) {
        let known = ["net.ipv4.conf.eth0.", "net.ipv6.conf.all."]
            .iter()
            .any(|f| follows(&format!("{f}{attribute}")).is_some());
        assert!(known, "{attribute}");
    }
    assert_eq!(follows("net.ipv4.nonsense"), None);
}

#[test]
fn what_nothing_follows_from_is_told() {
    assert_eq!(
        said(&["sysctl -qw net.ipv4.tcp_mtu_probing=1"]),
        [
            "router: sysctl net.ipv4.tcp_mtu_probing = 1: not simulated; no connection probes for the MTU of its path"
        ]
    );
    assert_eq!(said(&["sysctl -qw net.ipv4.conf.eth0.bc_forwarding=1"]).len(), 1);
    assert_eq!(said(&["sysctl -qw net.ipv6.conf.all.use_tempaddr=2"]).len(), 1);
    assert!(
        said(&["sysctl -qw net.ipv4.conf.eth0.proxy_arp=1", "sysctl -qw net.ipv6.conf.all.proxy_ndp=1"])
            .is_empty()
    );
    // Set to what it begins with, and what nothing could follow from.
    assert!(
        said(&["sysctl -qw net.ipv4.tcp_mtu_probing=1", "sysctl -qw net.ipv4.tcp_mtu_probing=0"]).is_empty()
    );
    assert!(
        said(&["sysctl -qw net.ipv4.tcp_fastopen=3", "sysctl -qw net.ipv4.tcp_no_metrics_save=1"]).is_empty()
    );
    assert!(
        said(&["sysctl -qw net.ipv4.tcp_reordering=10", "sysctl -qw net.ipv4.conf.all.rp_filter=1"])
            .is_empty()
    );
}

#[test]
fn words_of_routes_and_features_are_told() {
    let route = |words: &str| said(&[&format!("ip route change 10.0.2.0/24 dev eth1 {words}")]);
    assert!(
        route("mtu 1400 rtt 10ms rttvar 20ms initcwnd 20 quickack 1 hoplimit 5 features ecn congctl dctcp fastopen_no_cookie 1")
            .is_empty()
    );
    assert_eq!(said(&["ethtool -K eth0 tso on gro on"]).len(), 1);
    assert_eq!(said(&["ethtool -K eth0 gro on ufo on"]).len(), 2);
    assert_eq!(said(&["ip link set eth0 gso_max_size 9000"]).len(), 1);
    assert!(said(&["ip link set eth0 gso_max_size 9000", "ethtool -K eth0 gso on"]).is_empty());
    assert!(said(&["ethtool -K eth0 tso off gso off gro off", "ethtool -K eth0 rxhash on"]).is_empty());
}

#[test]
fn settings_of_connections_reach_them() {
    let mut host = Host::new("h", Kernel::V6_12, 1);
    for line in ["sysctl -qw net.ipv4.tcp_reordering=9", "sysctl -qw net.ipv4.tcp_limit_output_bytes=65536"] {
        assert_eq!(host.exec(line, Time::ZERO).status, 0);
    }
    let settings = host.tcp_settings();
    assert_eq!((settings.reordering, settings.limit_output), (Some(9), Some(65_536)));
    let mut set = |line: &str| host.exec(line, Time::ZERO).status;
    assert_eq!(set("sysctl -qw net.ipv4.ip_local_port_range='50000 50009'"), 0);
    assert_eq!(set("sysctl -qw net.core.rmem_max=16777216 net.core.wmem_default=100000"), 0);
    for wrong in ["50009 50000", "80 2000", "1024 70000", "5000"] {
        assert_ne!(set(&format!("sysctl -qw net.ipv4.ip_local_port_range='{wrong}'")), 0, "{wrong}");
    }
    assert_eq!(host.port_range(), Some((50_000, 50_009)));
    assert_eq!(host.max_backlog(), 1000);
    assert_eq!(host.exec("sysctl -qw net.core.netdev_max_backlog=5000", Time::ZERO).status, 0);
    assert_eq!(host.max_backlog(), 5000);
    assert_eq!(
        (host.tcp_settings().most_asked, host.send_buffer()),
        ((None, Some(16_777_216)), Some(100_000))
    );
}

/// A packet to the server that says it comes from `src`, in by the router's `eth0`; whether it got through, whole and by the quick way.
fn passes(lines: &[&str], src: &str, dst: &str) -> bool {
    let by = |quick: bool| {
        let mut net = routed(Kernel::V6_12);
        net.quick = quick.then_some(0);
        for line in lines {
            let out = net.hosts[1].exec(line, Time::ZERO);
            assert_eq!(out.status, 0, "{line}: {}", out.stderr);
        }
        // The router knows its neighbours and the way, from packets that may pass.
        net.send(0, udp("10.0.1.1", dst, 100)).unwrap();
        net.run(Time::from_ns(50_000_000));
        net.delivered.clear();
        net.dropped.clear();
        net.send(0, udp(src, dst, 100)).unwrap();
        net.run(Time::from_ns(100_000_000));
        let filtered = net.dropped.contains(&(1, "ip_rcv", "rp-filter"));
        assert_ne!(filtered, !net.delivered.is_empty(), "{lines:?} {src}: {:?}", net.dropped);
        !filtered
    };
    let whole = by(false);
    assert_eq!(whole, by(true));
    whole
}

//= linux v6.12 net/ipv4/fib_frontend.c __fib_validate_source
#[test]
fn a_reverse_path_filter_drops_what_comes_by_the_wrong_device() {
    let strict = ["sysctl -qw net.ipv4.conf.eth0.rp_filter=1"];
    let all = ["sysctl -qw net.ipv4.conf.all.rp_filter=1"];
    let loose = ["sysctl -qw net.ipv4.conf.all.rp_filter=2", "sysctl -qw net.ipv4.conf.eth0.rp_filter=1"];
    for dst in ["10.0.2.1", "10.0.1.254"] {
        // Of the network behind eth0, of that behind the other device, of none.
        for (src, by_strict, by_loose) in
            [("10.0.1.1", true, true), ("10.0.2.77", false, true), ("192.0.2.1", false, false)]
        {
            assert!(passes(&[], src, dst), "{src}");
            assert_eq!(passes(&strict, src, dst), by_strict, "{src} to {dst}");
            assert_eq!(passes(&all, src, dst), by_strict, "{src} to {dst}");
            assert_eq!(passes(&loose, src, dst), by_loose, "{src} to {dst}");
            // Another device's filter, and one that was taken away again.
            assert!(passes(&["sysctl -qw net.ipv4.conf.eth1.rp_filter=1"], src, dst));
            assert!(passes(&[all[0], "sysctl -qw net.ipv4.conf.all.rp_filter=0"], src, dst));
        }
    }
    // The way back over several next hops leads out of each of them.
    let several = ["ip route add 192.0.2.0/24 nexthop via 10.0.2.1 nexthop via 10.0.1.9", strict[0]];
    assert!(passes(&several, "192.0.2.1", "10.0.2.1"));
    // The way back of the packet's mark, where that is asked for.
    let marked = [
        strict[0],
        "iptables -t mangle -A PREROUTING -s 192.0.2.1 -j MARK --set-mark 7",
        "ip rule add fwmark 7 table 100",
        "ip route add 192.0.2.0/24 via 10.0.1.1 table 100",
        "sysctl -qw net.ipv4.conf.eth0.src_valid_mark=1",
    ];
    assert!(!passes(&marked[..4], "192.0.2.1", "10.0.2.1"));
    assert!(passes(&marked, "192.0.2.1", "10.0.2.1"));
    let default = ["sysctl -qw net.ipv4.conf.default.rp_filter=1"];
    let mut host = Host::new("h", Kernel::V6_12, 1);
    assert_eq!(host.exec(default[0], Time::ZERO).status, 0);
    let late = host.add_device("eth9");
    assert_eq!(host.devices()[late].rp_filter, 1);
}

#[test]
fn a_route_names_a_congestion_control() {
    let mut host = routed(Kernel::V6_12).hosts.swap_remove(0);
    let mut run = |line: &str| {
        let out = host.exec(line, Time::ZERO);
        (out.status, format!("{}{}", out.stdout, out.stderr))
    };
    assert_eq!(
        run("ip route add 10.3.0.0/16 via 10.0.1.254 hoplimit 7 features ecn congctl lock htcp"),
        (0, String::new())
    );
    assert_eq!(
        run("ip route show 10.3.0.0/16").1.trim_end(),
        "10.3.0.0/16 via 10.0.1.254 dev eth0 hoplimit 7 features ecn congctl lock htcp"
    );
    assert!(
        run("ip -j route show 10.3.0.0/16")
            .1
            .contains("{\"hoplimit\":7,\"ecn\":null,\"congestion\":\"htcp\"}")
    );
    let refused = "Error: Unknown tcp congestion algorithm.\n";
    assert_eq!(run("ip route add 10.4.0.0/16 via 10.0.1.254 congctl turbo"), (2, refused.to_owned()));
    let words = "Error: argument \"all\" is wrong: \"features\" value not valid\n";
    let (status, text) = run("ip route add 10.4.0.0/16 via 10.0.1.254 features all");
    assert!(status != 0 && text.starts_with(words), "{text}");
    // Its module is there from then on.
    assert_eq!(run("sysctl -n net.ipv4.tcp_available_congestion_control").1, "reno cubic htcp\n");
    let route = host.tcp_route("10.3.1.1".parse().unwrap());
    assert_eq!((route.congctl, route.ecn), (Some("htcp"), true));
    assert_eq!(host.route_controls(), ["htcp"]);
}

#[test]
fn a_route_s_hoplimit_is_the_ttl_of_what_is_made_here() {
    for quick in [None, Some(0)] {
        let mut net = routed(Kernel::V6_12);
        net.quick = quick;
        for (host, line) in [
            (0, "ip route add 10.0.2.0/24 via 10.0.1.254 hoplimit 5"),
            (2, "ip route replace default via 10.0.2.254 hoplimit 9"),
        ] {
            assert_eq!(net.hosts[host].exec(line, Time::ZERO).status, 0);
        }
        for _ in 0..3 {
            let mut packet = udp("10.0.1.1", "10.0.2.1", 100);
            set4(&mut packet, |h| (h.ttl, h.frag_off) = (0, IP_DF));
            net.send(0, packet).unwrap();
            net.run(net.now + Span::from_ms(100));
        }
        net.send(0, echo("10.0.2.1")).unwrap();
        net.run(net.now + Span::from_ms(100));
        let ttls: Vec<(usize, u8)> = net.delivered.iter().map(|(host, p)| (*host, h4(p).ttl)).collect();
        assert_eq!(ttls, [(2, 4), (2, 4), (2, 4), (0, 8)]);
    }
}

#[test]
fn echo_requests_to_all_are_answered_where_that_is_set() {
    for (setting, answers) in [("1", 0), ("0", 1)] {
        let mut net = routed(Kernel::V6_12);
        let line = format!("sysctl -qw net.ipv4.icmp_echo_ignore_broadcasts={setting}");
        assert_eq!(net.hosts[1].exec(&line, Time::ZERO).status, 0);
        assert!(net.hosts[1].unsimulated().is_empty());
        net.send(0, echo("10.0.1.255")).unwrap();
        net.run(Time::from_ns(100_000_000));
        let replies: Vec<_> = net.delivered.iter().filter(|(host, _)| *host == 0).collect();
        assert_eq!(replies.len(), answers);
        assert!(
            replies.iter().all(|(_, p)| h4(p).src == "10.0.1.254".parse::<std::net::Ipv4Addr>().unwrap())
        );
    }
}

#[test]
fn settings_have_their_bounds() {
    let mut host = Host::new("h", Kernel::V6_12, 1);
    for (key, most) in [
        ("tcp_pacing_ss_ratio", 1_000),
        ("tcp_pacing_ca_ratio", 1_000),
        ("tcp_recovery", 255),
        ("tcp_frto", 255),
    ] {
        let mut set = |n: i64| host.exec(&format!("sysctl -qw net.ipv4.{key}={n}"), Time::ZERO).status;
        assert_eq!((set(most), set(most + 1), set(-1)), (0, 1, 1), "{key}");
    }
    let s = host.tcp_settings();
    assert_eq!((s.pacing_ratios, s.recovery, s.frto, s.dsack), ((1_000, 1_000), 255, true, true));
    assert!(host.unsimulated().is_empty());
    assert_eq!(said(&["sysctl -qw net.ipv4.tcp_recovery=0"]).len(), 1);
    assert!(said(&["sysctl -qw net.ipv4.tcp_recovery=7", "sysctl -qw net.ipv4.tcp_dsack=0"]).is_empty());
}

//= linux v6.12 net/ipv4/devinet.c __inet_del_ifa
#[test]
fn the_next_address_of_a_network_becomes_the_first_where_it_is_to() {
    let left = |lines: &[&str]| {
        let mut host = Host::new("h", Kernel::V6_12, 1);
        host.add_device("eth0");
        let first = ["10.0.0.1/24", "10.0.0.2/24", "10.1.0.1/24", "10.0.0.3/24"];
        for line in first.iter().map(|a| format!("ip addr add {a} dev eth0")) {
            assert_eq!(host.exec(&line, Time::ZERO).status, 0);
        }
        for line in lines {
            assert_eq!(host.exec(line, Time::ZERO).status, 0, "{line}");
        }
        assert!(host.unsimulated().is_empty());
        let shown = host.exec("ip -o -4 addr show dev eth0", Time::ZERO).stdout;
        let of = |l: &str| {
            let word = |n: usize| l.split_whitespace().nth(n).unwrap_or_default().to_owned();
            if l.contains("secondary") { format!("({})", word(3)) } else { word(3) }
        };
        let routes = host.exec("ip route show table all type unicast", Time::ZERO).stdout;
        let src = routes.lines().find(|l| l.starts_with("10.0.0.0/24")).and_then(|l| l.split("src ").nth(1));
        (shown.lines().map(of).collect::<Vec<_>>().join(" "), src.map_or("none", str::trim).to_owned())
    };
    let promote = "sysctl -qw net.ipv4.conf.eth0.promote_secondaries=1";
    let gone = "ip addr del 10.0.0.1/24 dev eth0";
    let is = |addresses: &str, src: &str| (addresses.to_owned(), src.to_owned());
    assert_eq!(left(&[]), is("10.0.0.1/24 10.1.0.1/24 (10.0.0.2/24) (10.0.0.3/24)", "10.0.0.1"));
    assert_eq!(left(&[gone]), is("10.1.0.1/24", "none"));
    assert_eq!(left(&[promote, gone]), is("10.1.0.1/24 10.0.0.2/24 (10.0.0.3/24)", "10.0.0.2"));
    let next = "ip addr del 10.0.0.2/24 dev eth0";
    assert_eq!(left(&[promote, gone, next]), is("10.1.0.1/24 10.0.0.3/24", "10.0.0.3"));
    assert_eq!(left(&[promote, next]), is("10.0.0.1/24 10.1.0.1/24 (10.0.0.3/24)", "10.0.0.1"));
}

//= linux v6.12 net/ipv4/devinet.c devinet_copy_dflt_conf, inetdev_init
#[test]
fn what_default_says_reaches_who_has_no_address_yet() {
    let mut host = Host::new("h", Kernel::V6_12, 1);
    let mut run = |line: &str| {
        let out = host.exec(line, Time::ZERO);
        assert_eq!((out.status, out.stderr.as_str()), (0, ""), "{line}");
        out.stdout
    };
    for line in [
        "ip link add d0 type dummy",
        "ip link add d1 type dummy",
        "ip link add d2 type dummy",
        "ip addr add 10.0.0.1/24 dev d1",
        "sysctl -qw net.ipv4.conf.d2.rp_filter=0",
        "sysctl -qw net.ipv4.conf.default.rp_filter=1",
        "ip link add d3 type dummy",
        "ip netns add n",
        "ip netns exec n sysctl -qw net.ipv4.conf.default.rp_filter=1",
        "ip link set d0 name d9",
    ] {
        run(line);
    }
    let mut shows = |key: &str| run(&format!("sysctl -n net.ipv4.conf.{key}")).trim().to_owned();
    let of: Vec<String> =
        ["d9", "d1", "d2", "d3", "all"].iter().map(|d| shows(&format!("{d}.rp_filter"))).collect();
    assert_eq!(of, ["1", "0", "0", "1", "0"]);
    // Who moves there begins anew, as does one of a name that was there.
    for line in ["sysctl -qw net.ipv4.conf.d1.rp_filter=2", "ip link set d1 netns n", "ip link del d2"] {
        run(line);
    }
    run("sysctl -qw net.ipv4.conf.default.rp_filter=0");
    run("ip link add d2 type dummy");
    assert_eq!(run("ip netns exec n sysctl -n net.ipv4.conf.d1.rp_filter"), "1\n");
    assert_eq!(run("sysctl -n net.ipv4.conf.d2.rp_filter"), "0\n");
}
