//! What programs print in the simulator where Linux 6.12 has printed the same on the virtual ground: the texts are that Linux's, with its addresses of cards,
//! ports and times of answers left out where these are chance.

use penstock_lab::experiment;
use penstock_lab::run::{Options, run};

/// What the apps of an experiment print, in the order of the file.
fn outputs(file: &str) -> Vec<String> {
    let parsed = experiment::parse(file, "x.toml").unwrap_or_else(|e| panic!("{e:?}"));
    let options = &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} };
    run(&parsed, options).unwrap().outputs
}
/// Two machines and a line of 10 Mbit/s between, what is set up on either, and more.
fn line(setup_a: &str, setup_b: &str, more: &str) -> String {
    format!(
        "duration = \"6s\"\n[host.a]\neth0 = [\"10.0.0.1/24\", \"2001:db8::1/64\"]\nsetup = '''\n{setup_a}'''\n\
         [host.b]\neth0 = [\"10.0.0.2/24\", \"2001:db8::2/64\"]\nsetup = '''\n{setup_b}'''\n\
         [[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\ndelay = \"3ms\"\n{more}"
    )
}
/// The same with a router between.
fn router(setup_a: &str, setup_r: &str, setup_b: &str, more: &str) -> String {
    format!(
        "duration = \"6s\"\n[host.a]\neth0 = \"10.0.1.1/24\"\nvia = \"10.0.1.254\"\nsetup = '''\n{setup_a}'''\n\
         [host.r]\neth0 = \"10.0.1.254/24\"\neth1 = \"10.0.2.254/24\"\nsetup = '''\nsysctl -qw net.ipv4.ip_forward=1\n{setup_r}'''\n\
         [host.b]\neth0 = \"10.0.2.2/24\"\nvia = \"10.0.2.254\"\nsetup = '''\n{setup_b}'''\n\
         [[link]]\nends = [\"a:eth0\", \"r:eth0\"]\nrate = \"10mbit\"\ndelay = \"3ms\"\n\
         [[link]]\nends = [\"r:eth1\", \"b:eth0\"]\nrate = \"10mbit\"\ndelay = \"3ms\"\n{more}"
    )
}
fn app(on: &str, at: &str, run: &str) -> String {
    format!("[[app]]\non = \"{on}\"\nat = \"{at}\"\nrun = '''{run}'''\nmay_fail = true\n")
}
/// The counter of a name as `nstat` shows it; 0 where it does not.
fn counter(text: &str, name: &str) -> u64 {
    let row = text.lines().find(|l| l.split_whitespace().next() == Some(name));
    row.map_or(0, |l| l.split_whitespace().nth(1).unwrap().parse().unwrap())
}

/// `lo` counts without the 14 bytes of Ethernet (3 × 84, there and back); of frames of a VLAN that a device does not know `otherhost` tells.
#[test]
fn devices_count_as_those_of_linux() {
    let tag = "tc qdisc add dev eth0 clsact\ntc filter add dev eth0 egress protocol ip flower ip_proto icmp action vlan push id 7\n";
    let more = [
        app("b", "1s", "ping -q -c 3 -i 0.2 127.0.0.1"),
        app("a", "2s", "ping -q -c 3 -i 0.2 -W 1 10.0.0.2"),
        app("b", "5s", "ip -s link show lo; ip -s -s link show eth0; ip -j -s -s link show eth0"),
    ];
    let shown = outputs(&line(tag, "", &more.concat())).pop().unwrap();
    let rows: Vec<Vec<&str>> = shown.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows[3][..2], ["504", "6"], "{shown}");
    assert!(shown.contains("    RX errors:  length    crc   frame    fifo overrun otherhost\n"), "{shown}");
    assert!(
        shown.contains("\n                     0      0       0       0       0         3 \n"),
        "{shown}"
    );
    assert!(shown.contains(r#""missed_errors":0,"otherhost":3}"#), "{shown}");
}

/// What a filter has sent to another port is answered by an error about no socket's datagram: `InErrors`, and the sender hears nothing of it.
#[test]
fn errors_of_nobody_are_counted_and_not_told() {
    let pedit = "tc qdisc add dev eth0 clsact\n\
                 tc filter add dev eth0 egress protocol ip flower ip_proto udp action pedit ex munge udp dport set 9999 pipe csum udp\n";
    let flow = "[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = { rate = \"500kbit\", size = 500 }\nudp = true\nport = 7000\nat = \"500ms\"\nuntil = \"2500ms\"\n";
    let more = [flow.to_owned(), app("a", "5s", "nstat -as"), app("b", "5s", "nstat -as")];
    let shown = outputs(&line(pedit, "", &more.concat()));
    let of_a = |name: &str| counter(&shown[0], name);
    assert_eq!((of_a("UdpOutDatagrams"), of_a("IcmpInErrors"), of_a("IcmpInDestUnreachs")), (250, 7, 7));
    assert_eq!(counter(&shown[1], "IcmpOutRateLimitHost"), 243);
}

/// Errors to no peer in particular are limited as well: of 400 at once Linux sent 256 in the time, and held 144 back.
#[test]
fn all_errors_of_a_machine_together_are_limited() {
    let more =
        app("a", "1s", "ping -f -l 100 -c 400 -t 1 10.0.2.2; echo") + &app("r", "4s", "nstat -as 'Icmp*'");
    let free = "sysctl -qw net.ipv4.icmp_ratelimit=0\n";
    let shown = outputs(&router("", free, "", &more)).pop().unwrap();
    let (sent, held) = (counter(&shown, "IcmpOutTimeExcds"), counter(&shown, "IcmpOutRateLimitGlobal"));
    assert_eq!(sent + held, 400, "{shown}");
    assert!(held > 40, "{shown}");
    // As many as are wanted: none is held back.
    let free = format!("{free}sysctl -qw net.ipv4.icmp_msgs_burst=1000\n");
    let shown = outputs(&router("", &free, "", &more)).pop().unwrap();
    assert_eq!(counter(&shown, "IcmpOutTimeExcds"), 400, "{shown}");
}

/// Whoever heard that a port is closed has sent no GRE; the room in a tunnel is known from its first packet on.
#[test]
fn tunnels_hear_what_those_of_linux_hear() {
    let ends = |local: &str, remote: &str, addr: &str| {
        format!(
            "ip link add t0 type gre local {local} remote {remote}\nip addr add {addr}/30 dev t0\nip link set t0 up\n"
        )
    };
    let a = ends("10.0.1.1", "10.0.2.2", "172.16.0.1");
    let reject = "iptables -A FORWARD -p gre -j REJECT\n";
    let more = app("a", "1s", "ping -c 3 -i 0.2 -W 1 172.16.0.2")
        + &app("a", "5s", "ip route get 172.16.0.2; ip route show cache; nstat -as 'Icmp*'");
    let shown = outputs(&router(&a, reject, &ends("10.0.2.2", "10.0.1.1", "172.16.0.2"), &more));
    assert_eq!(
        shown[0],
        "PING 172.16.0.2 (172.16.0.2) 56(84) bytes of data.\n\n--- 172.16.0.2 ping statistics ---\n\
         3 packets transmitted, 0 received, 100% packet loss, time 401ms\n\n"
            .replace("401", shown[0].split("time ").nth(1).unwrap().split("ms").next().unwrap())
    );
    assert!(shown[1].starts_with("172.16.0.2 dev t0 src 172.16.0.1 uid 0 \n    cache expires 596sec mtu 1476 \n172.16.0.2 dev t0 \n"), "{}", shown[1]);
    assert_eq!((counter(&shown[1], "IcmpInDestUnreachs"), counter(&shown[1], "IcmpOutDestUnreachs")), (3, 0));
}

/// A question with `iif` has no user; it says what comes in, and whether the sender would be told of a better way. A route's type of service is its own.
#[test]
fn route_get_answers_as_that_of_linux() {
    let setup = "ip route add 10.9.0.0/16 via 10.0.0.2 mtu 1300\nip -6 route add 2001:db8:9::/48 via 2001:db8::2\n\
                 sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1\n";
    let questions = "ip route get 10.9.1.1 from 10.0.0.7 iif eth0; ip -j route get 10.9.1.1 from 10.0.0.7 iif eth0\n\
                     ip route get 10.0.0.1 from 10.0.0.7 iif eth0; ip route get 10.9.1.1 mark 3 from 10.0.0.7 iif eth0\n\
                     ip route get to 10.9.1.1 tos 0x10";
    let shown = outputs(&line(setup, "", &app("a", "1s", questions)));
    assert_eq!(
        shown[0],
        "10.9.1.1 from 10.0.0.7 via 10.0.0.2 dev eth0 \n    cache <redirect> mtu 1300 iif eth0 \n\
         [{\"dst\":\"10.9.1.1\",\"from\":\"10.0.0.7\",\"gateway\":\"10.0.0.2\",\"dev\":\"eth0\",\"flags\":[],\"cache\":[\"redirect\"],\
         \"metrics\":[{\"mtu\":1300}],\"iif\":\"eth0\"}]\n\
         local 10.0.0.1 from 10.0.0.7 dev lo \n    cache <local> iif eth0 \n\
         10.9.1.1 from 10.0.0.7 via 10.0.0.2 dev eth0 mark 3 \n    cache <redirect> mtu 1300 iif eth0 \n\
         10.9.1.1 via 10.0.0.2 dev eth0 src 10.0.0.1 uid 0 \n    cache mtu 1300 \n"
    );
}

/// A rule that asks what connections have carried has it shown (`nf_conntrack_acct`); a router that translates tells nobody of better ways.
#[test]
fn rules_do_to_connections_what_those_of_linux_do() {
    let flow = "[[flow]]\nfrom = \"a\"\nto = \"b\"\nload = { bytes = \"100k\" }\nat = \"600ms\"\n";
    for rule in [
        "iptables -A FORWARD -p tcp -m connbytes --connbytes 20000: --connbytes-dir both --connbytes-mode bytes\n",
        "nft 'add table ip t; add chain ip t f { type filter hook forward priority 0; }; add rule ip t f ct bytes > 20000 counter'\n",
    ] {
        let more = flow.to_owned()
            + &app("r", "5s", "conntrack -L 2>/dev/null; cat /proc/sys/net/netfilter/nf_conntrack_acct");
        let shown = outputs(&router("", rule, "", &more)).pop().unwrap();
        assert!(
            shown.contains(" packets=74 bytes=106256 ") && shown.contains(" packets=52 bytes=2712 "),
            "{shown}"
        );
        assert!(shown.ends_with("\n1\n"), "{shown}");
    }
    let hairpin = "iptables -t nat -A PREROUTING -d 10.0.1.254 -p tcp --dport 8080 -j DNAT --to 10.0.1.1:5001\n\
                   iptables -t nat -A POSTROUTING -s 10.0.1.0/24 -d 10.0.1.1 -j MASQUERADE\n";
    let more = [
        app("a", "1s", "timeout 3 iperf -s"),
        app("a", "1500ms", "iperf -c 10.0.1.254 -p 8080 -n 50K"),
        app("a", "5s", "nstat -as"),
        app("r", "5s", "nstat -as"),
    ];
    let shown = outputs(&router("", hairpin, "", &more.concat()));
    assert_eq!(counter(&shown[2], "IcmpInRedirects"), 0, "{}", shown[2]);
    let sent = counter(&shown[3], "IcmpOutRedirects");
    assert!(sent > 0 && counter(&shown[3], "IpOutDiscards") == sent, "{}", shown[3]);
}

/// `/proc/net/bonding` of two bonds between which a card went down.
#[test]
fn bonds_are_shown_as_those_of_linux() {
    let bond = "ip link add bond0 type bond mode active-backup miimon 100 primary eth1 updelay 200\nip link set eth0 down\nip link set eth1 down\n\
                ip link set eth0 master bond0\nip link set eth1 master bond0\nip link set bond0 up\n";
    let host = |name: &str, addr: &str| {
        format!(
            "[host.{name}]\neth0 = []\neth1 = []\nsetup = '''\n{bond}ip addr add {addr}/24 dev bond0\n'''\n"
        )
    };
    let file = "duration = \"6s\"\n".to_owned()
        + &host("a", "10.0.0.1")
        + &host("b", "10.0.0.2")
        + "[[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"10mbit\"\n[[link]]\nends = [\"a:eth1\", \"b:eth1\"]\nrate = \"10mbit\"\n"
        + &app("a", "1s", "ip link set eth1 down")
        + &app("a", "2s", "ls /proc/net/bonding; cat /proc/net/bonding/bond0");
    let shown = outputs(&file).pop().unwrap();
    let macs =
        |l: &str| if l.starts_with("Permanent") { "Permanent HW addr: MAC".to_owned() } else { l.to_owned() };
    let shown: Vec<String> = shown.lines().map(macs).collect();
    let linux = "bond0\nEthernet Channel Bonding Driver: v6.12.0\n\nBonding Mode: fault-tolerance (active-backup)\n\
         Primary Slave: eth1 (primary_reselect always)\nCurrently Active Slave: eth0\nMII Status: up\nMII Polling Interval (ms): 100\n\
         Up Delay (ms): 200\nDown Delay (ms): 0\nPeer Notification Delay (ms): 0\n\n\
         Slave Interface: eth0\nMII Status: up\nSpeed: SPEED\nDuplex: DUPLEX\nLink Failure Count: 0\nPermanent HW addr: MAC\nSlave queue ID: 0\n\n\
         Slave Interface: eth1\nMII Status: down\nSpeed: SPEED\nDuplex: DUPLEX\nLink Failure Count: 1\nPermanent HW addr: MAC\nSlave queue ID: 0";
    // The speed is the card's.
    let same = |ours: &str, linux: &str| {
        ours == linux
            || ours.starts_with("Speed: ") && linux == "Speed: SPEED"
            || ours.starts_with("Duplex: ") && linux == "Duplex: DUPLEX"
    };
    let linux: Vec<&str> = linux.lines().collect();
    assert_eq!(shown.len(), linux.len(), "{shown:#?}");
    assert!(shown.iter().zip(linux).all(|(ours, linux)| same(ours, linux)), "{shown:#?}");
}

/// Addresses of a link with the device behind them, `-I` with a device over IPv6, and a mark that has no way.
#[test]
fn ping_takes_devices_as_that_of_linux() {
    let a = "ip -6 addr add fe80::a/64 dev eth0\nip rule add fwmark 5 table 100\nip route add unreachable default table 100\n";
    let cases = [
        (
            "ping -c 1 fe80::b%eth0",
            "PING fe80::b%eth0(fe80::b%eth0) 56 data bytes\n64 bytes from fe80::b%eth0: icmp_seq=1 ttl=64 ",
        ),
        (
            "ping -c 1 -I eth0 fe80::b",
            "ping: Warning: source address might be selected on device other than: eth0\n\
             PING fe80::b(fe80::b) from :: eth0: 56 data bytes\n64 bytes from fe80::b%eth0: icmp_seq=1 ttl=64 ",
        ),
        (
            "ping -c 1 -I eth0 2001:db8::2",
            "PING 2001:db8::2(2001:db8::2) from 2001:db8::1 eth0: 56 data bytes\n64 bytes from 2001:db8::2: icmp_seq=1 ttl=64 ",
        ),
        (
            "ping -c 1 -I fe80::a%eth0 fe80::b",
            "PING fe80::b(fe80::b) from fe80::a%eth0 eth0: 56 data bytes\n64 bytes from fe80::b%eth0: icmp_seq=1 ttl=64 ",
        ),
        (
            "ping -c 1 fe80::b",
            "PING fe80::b(fe80::b) 56 data bytes\n64 bytes from fe80::b%eth0: icmp_seq=1 ttl=64 ",
        ),
        ("ping -c 1 fe80::b%eth9", "ping: fe80::b%eth9: Name or service not known\n"),
        ("ping -c 1 -I eth9 fe80::b", "ping: unknown iface: eth9\n"),
        ("ping -c 1 -I fe80::a fe80::b%eth0", "ping: bind icmp socket: Invalid argument\n"),
        ("ping -c 1 2001:db8::2%eth0", "ping: 2001:db8::2%eth0: Name or service not known\n"),
        (
            "ping -c 1 -I lo ::1",
            "PING ::1(::1) from ::1 lo: 56 data bytes\n64 bytes from ::1: icmp_seq=1 ttl=64 ",
        ),
        (
            "ping -c 1 -I lo 127.0.0.1",
            "PING 127.0.0.1 (127.0.0.1) from 127.0.0.1 lo: 56(84) bytes of data.\n64 bytes from 127.0.0.1: icmp_seq=1 ttl=64 ",
        ),
        ("ping -c 1 -m 5 10.0.0.2", "ping: connect: No route to host\n"),
    ];
    let apps: String =
        (0..).zip(cases).map(|(n, case)| app("a", &format!("{}ms", 300 + 200 * n), case.0)).collect();
    let shown = outputs(&line(a, "ip -6 addr add fe80::b/64 dev eth0\n", &apps));
    for (shown, (command, linux)) in shown.iter().zip(cases) {
        assert!(shown.starts_with(linux), "{command}: {shown}");
    }
}

/// Datagrams of traceroute are UDP's, and what is heard of them when it has gone is nobody's.
#[test]
fn probes_are_counted_as_datagrams() {
    let more = app("a", "1s", "traceroute -n 10.0.2.2") + &app("a", "5s", "nstat -as");
    let shown = outputs(&router("", "", "", &more)).pop().unwrap();
    // 16 at once, and as many again as had been answered when the last hop was.
    assert!(counter(&shown, "UdpOutDatagrams") >= 16, "{shown}");
    assert_eq!(counter(&shown, "UdpOutDatagrams"), counter(&shown, "IpOutRequests"), "{shown}");
}

/// `/proc/net/vlan`. Of what Linux counted four reports of listeners each way are left out (304 bytes that came, 360 sent, all to groups).
#[test]
fn vlans_are_shown_as_those_of_linux() {
    let vlan = |maps: &str, addr: &str| {
        format!(
            "ip link add link eth0 name v5 type vlan id 5 {maps}\nip addr add {addr}/24 dev v5\nip link set v5 up\n"
        )
    };
    let more = [
        app("a", "1s", "ping -c 3 -i 0.2 10.5.0.2"),
        app("a", "2s", "ping -c 2 -i 0.2 -Q 0x10 10.5.0.2"),
        app("a", "3s", "ping -c 2 -i 0.2 -s 1472 -M do 10.5.0.2"),
        app("a", "5s", "ls /proc/net/vlan; cat /proc/net/vlan/config /proc/net/vlan/v5"),
    ];
    let file = line(
        &vlan("egress-qos-map 0:3 6:5", "10.5.0.1"),
        &vlan("ingress-qos-map 3:4", "10.5.0.2"),
        &more.concat(),
    );
    assert_eq!(
        outputs(&file).pop().unwrap(),
        "config\nv5\nVLAN Dev name\t | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\nv5             | 5  | eth0\n\
         v5  VID: 5\t REORDER_HDR: 1  dev->priv_flags: 81021\n         total frames received            8\n\
         \x20         total bytes received         3448\n      Broadcast/Multicast Rcvd            0\n\n\
         \x20     total frames transmitted            8\n       total bytes transmitted         3560\nDevice: eth0\n\
         INGRESS priority mappings: 0:0  1:0  2:0  3:0  4:0  5:0  6:0 7:0\n EGRESS priority mappings: 0:3 6:5 \n"
    );
}

/// The other end of a pair goes down for 0.8 s: who is known over the device is forgotten, and what is sent meanwhile waits for the neighbour to be found anew, a
/// second after it was looked for first.
#[test]
fn neighbours_go_with_the_carrier_as_those_of_linux_do() {
    let pair = "ip netns add red\nip link add v0 type veth peer name v1 netns red\nip addr add 10.7.0.1/24 dev v0\nip link set v0 up\n\
                ip -n red addr add 10.7.0.2/24 dev v1\nip -n red link set v1 up\n";
    let more = [
        app("a", "1s", "ping -c 10 -i 0.2 -W 1 10.7.0.2"),
        app("a", "1700ms", "ip -n red link set v1 down; ip neigh"),
        app("a", "2500ms", "ip -n red link set v1 up"),
    ];
    let shown = outputs(&line(pair, "", &more.concat()));
    assert_eq!(shown[1], "");
    assert!(shown[0].contains("10 packets transmitted, 10 received, 0% packet loss"), "{}", shown[0]);
    assert!(shown[0].contains("icmp_seq=5 ttl=64 time=10"), "{}", shown[0]);
}
