//! Whole rule sets of Docker, Kubernetes, fw4 and firewalld in experiments: who reaches whom. Their counters are compared with those of Linux in
//! `crates/penstock-host/tests/sets.rs`.

use penstock_lab::experiment;
use penstock_lab::run::{Options, run};

/// A file of `vectors/rulesets`.
fn file(name: &str) -> String {
    let path = format!("{}/../../vectors/rulesets/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// What the scripts print, in their order: `out` is 192.0.2.7 behind `wan` of the router, which has this setup; its networks inside are name spaces.
#[track_caller]
fn scripts(wan: &str, address: &str, setup: &str, apps: &[(&str, &str, &str)]) -> Vec<String> {
    let near = address.rsplit_once('.').expect("an address").0;
    let mut text = format!(
        "duration = \"40s\"\n[host.out]\neth0 = \"{near}.1/24\"\nsetup = \"ip addr add 192.0.2.7/32 dev eth0; ip route add default via {address}\"\n\
         [host.router]\n{wan} = \"{address}/24\"\nsetup = '''\nsysctl -qw net.ipv4.ip_forward=1\nip route add default via {near}.1\n{setup}\n'''\n\
         [[link]]\nends = [\"out:eth0\", \"router:{wan}\"]\nrate = \"10mbit\"\ndelay = \"1ms\"\n"
    );
    for (on, at, script) in apps {
        text += &format!("[[app]]\non = \"{on}\"\nat = \"{at}\"\nrun = '''\n{script}\n'''\n");
    }
    let parsed = experiment::parse(&text, "rulesets.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    let outcome = run(&parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    outcome.unwrap_or_else(|d| panic!("{}", d[0])).outputs.clone()
}

/// A bridge with name spaces behind it: name and address of each.
fn bridge(name: &str, address: &str, inside: &[(&str, &str)]) -> String {
    let (gateway, len) = address.split_once('/').expect("a prefix");
    let mut text =
        format!("ip link add {name} type bridge\nip addr add {address} dev {name}\nip link set {name} up\n");
    for (ns, ip) in inside {
        text += &format!(
            "ip netns add {ns}\nip link add v{ns} type veth peer name eth0 netns {ns}\nip link set v{ns} master {name} up\n\
             ip -n {ns} addr add {ip}/{len} dev eth0\nip -n {ns} link set eth0 up\nip -n {ns} route add default via {gateway}\n"
        );
    }
    text
}

/// A shell's here-document.
fn given(command: &str, text: &str) -> String {
    format!("{command} <<'END'\n{text}END\n")
}

const ANSWERED: &str = "grep -c 'bytes from' log";

#[test]
fn a_docker_host() {
    let setup = bridge("docker0", "172.17.0.1/16", &[("web", "172.17.0.2"), ("job", "172.17.0.3")])
        + &bridge("br-4e0a2b7c19d3", "172.18.0.1/16", &[("dns", "172.18.0.2")])
        + &given("ipset restore", &file("docker.ipset"))
        + &given("iptables-restore", &file("docker.rules"));
    let outside = format!(
        "iperf -c 203.0.113.10 -p 8080 -t 1 | grep -c bits/sec\nping -c 2 172.17.0.2 > log; {ANSWERED}\nping -c 2 172.17.0.3 > log; {ANSWERED}\nping -c 2 203.0.113.10 > log; {ANSWERED}"
    );
    let inside = format!(
        "ip netns exec job ping -c 2 192.0.2.7 > log; {ANSWERED}\nip netns exec job ping -c 2 172.17.0.2 > log; {ANSWERED}\nip netns exec job ping -c 2 172.18.0.2 > log; {ANSWERED}\n\
         iptables -t nat -S DOCKER -v | grep 8080 | grep -o 'c [0-9][0-9]*'\niptables -t raw -S PREROUTING -v | grep 172.18 | grep -o 'c [0-9][0-9]*'"
    );
    let out = scripts(
        "eth0",
        "203.0.113.10",
        &setup,
        &[
            ("router", "0s", "ip netns exec web iperf -s -p 80"),
            ("out", "1s", &outside),
            ("router", "15s", &inside),
        ],
    );
    // The published port is reached; containers are not, the host is.
    assert_eq!(out[1], "1\n0\n0\n2\n");
    // Out by the host's address, to its neighbour on the bridge, not to the other bridge.
    assert_eq!(out[2], "2\n2\n0\nc 1\nc 2\n");
}

#[test]
fn a_node_of_kubernetes() {
    let setup =
        bridge("cni0", "10.244.0.1/24", &[("a", "10.244.0.5"), ("b", "10.244.0.6"), ("c", "10.244.0.8")])
            + &given("iptables-restore", &file("kubernetes.rules"));
    let outside = "for i in 1 2 3 4 5 6 7 8; do iperf -c 192.168.10.11 -p 30080 -t 0.2 > log$i; done\ncat log1 log2 log3 log4 log5 log6 log7 log8 | grep -c bits/sec\n\
                   iperf -c 192.168.10.11 -p 30999 -t 1 2>&1 | grep -c refused";
    let inside = "for chain in KUBE-EXT-4Q2ZSHOPFRONT KUBE-SEP-AAAA1FRONT KUBE-SEP-BBBB2FRONT; do iptables -t nat -S $chain -v | tail -n 1 | grep -o 'c [0-9][0-9]*'; done\n\
                  iptables -t nat -S KUBE-POSTROUTING -v | grep MASQUERADE | grep -o 'c [0-9][0-9]*'\nip netns exec c ping -c 2 192.0.2.7 > log; grep -c 'bytes from' log\n\
                  iptables -t nat -S FLANNEL-POSTRTG -v | grep MASQUERADE | grep -o 'c [0-9][0-9]*'";
    let out = scripts(
        "eth0",
        "192.168.10.11",
        &setup,
        &[
            ("router", "0s", "ip netns exec a iperf -s -p 8080"),
            ("router", "0s", "ip netns exec b iperf -s -p 8080"),
            ("out", "1s", outside),
            ("router", "20s", inside),
        ],
    );
    assert_eq!(out[2], "8\n1\n", "the service by its port of the node; one without endpoints refuses");
    let said: Vec<&str> = out[3].lines().collect();
    let number = |i: usize| said[i].trim_start_matches("c ").parse::<u32>().expect("a number");
    assert_eq!((number(0), number(1) + number(2)), (8, 8), "{said:?}");
    assert!(number(1) > 0 && number(2) > 0, "both endpoints have some: {said:?}");
    assert_eq!(said[3..], ["c 8", "2", "c 1"], "each is masqueraded, and so is what leaves the cluster");
}

#[test]
fn a_router_of_openwrt() {
    let setup = bridge("br-lan", "192.168.1.1/24", &[("web", "192.168.1.20"), ("pc", "192.168.1.7")])
        + &given("nft -f -", &file("fw4.nft"));
    let outside = format!(
        "iperf -c 203.0.113.10 -p 8443 -t 1 | grep -c bits/sec\niperf -c 203.0.113.10 -p 22 -t 1 2>&1 | grep -c refused\nping -c 2 192.168.1.7 > log; {ANSWERED}\n\
         ping -c 2 203.0.113.10 > log; {ANSWERED}"
    );
    let inside = format!(
        "ip netns exec pc ping -c 2 192.0.2.7 > log; {ANSWERED}\nip netns exec pc iperf -c 203.0.113.10 -p 8443 -t 1 | grep -c bits/sec\n\
         nft list chain inet fw4 srcnat_lan | grep -o 'packets [0-9]*'\n\
         nft list chain inet fw4 srcnat_wan | grep -o 'packets [0-9]*'"
    );
    let out = scripts(
        "wan",
        "203.0.113.10",
        &setup,
        &[
            ("router", "0s", "ip netns exec web iperf -s -p 443"),
            ("out", "1s", &outside),
            ("router", "15s", &inside),
        ],
    );
    assert_eq!(out[1], "1\n1\n0\n2\n", "the forwarded port, a closed one, one inside, the router");
    assert_eq!(
        out[2], "2\n1\npackets 1\npackets 2\n",
        "out, and the forwarded port from inside; a reset is masqueraded, too"
    );
}

#[test]
fn a_gateway_of_firewalld() {
    let setup = "ip link add eth1 type bridge\n".to_owned()
        + bridge("eth1", "10.0.0.1/24", &[("ssh", "10.0.0.22"), ("pc", "10.0.0.7")])
            .split_once('\n')
            .expect("lines")
            .1
        + &given("nft -f -", &file("firewalld.nft"));
    let outside = format!(
        "iperf -c 203.0.113.10 -p 2222 -t 1 | grep -c bits/sec\niperf -c 203.0.113.10 -p 80 -t 1 > log 2>&1; grep -c bits/sec log\nping -c 2 203.0.113.10 > log; {ANSWERED}\n\
         ping -c 2 -I 10.0.0.99 203.0.113.10 > log 2>&1; {ANSWERED}"
    );
    let inside = format!(
        "ip netns exec pc ping -c 2 192.0.2.7 > log; {ANSWERED}\nnft list chain inet firewalld filter_PREROUTING | grep ipv4 | grep -o 'packets [0-9]*'"
    );
    let out = scripts(
        "eth0",
        "203.0.113.10",
        &setup,
        &[
            ("router", "0s", "ip netns exec ssh iperf -s -p 22"),
            ("out", "0.5s", "ip addr add 10.0.0.99/32 dev eth0"),
            ("out", "1s", &outside),
            ("router", "20s", &inside),
        ],
    );
    assert_eq!(
        out[2], "1\n0\n2\n0\n",
        "the forwarded port, a closed one, the gateway, and who pretends to be of the inside"
    );
    assert_eq!(out[3], "2\npackets 2\n", "out; what came by the wrong device is dropped");
}
