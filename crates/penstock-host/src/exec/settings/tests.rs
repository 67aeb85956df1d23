//! What follows from settings, and what is said where nothing does.

use super::keys::{CONF, CONF6, Follows, KEYS, follows};
use crate::Host;
use crate::tests::{routed, udp};
use penstock_model::{Kernel, Time};

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
    assert_eq!(said(&["sysctl -qw net.ipv4.conf.eth0.proxy_arp=1"]).len(), 1);
    assert_eq!(said(&["sysctl -qw net.ipv6.conf.all.proxy_ndp=1"]).len(), 1);
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
    for words in ["congctl dctcp", "features ecn", "hoplimit 5", "rtt 10ms"] {
        let said = route(words);
        assert!(said.len() == 1 && said[0].contains("ip route … "), "{words}: {said:?}");
    }
    assert!(route("mtu 1400 initcwnd 20 quickack 1").is_empty());
    assert_eq!(said(&["ethtool -K eth0 tso on gro on"]).len(), 2);
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
    let default = ["sysctl -qw net.ipv4.conf.default.rp_filter=1"];
    let mut host = Host::new("h", Kernel::V6_12, 1);
    assert_eq!(host.exec(default[0], Time::ZERO).status, 0);
    let late = host.add_device("eth9");
    assert_eq!(host.devices()[late].rp_filter, 1);
}
