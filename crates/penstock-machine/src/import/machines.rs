//! Machines as they are found: what `ip`, `tc`, `iptables-save`, `nft` and `sysctl` show of them (addresses are those of documentation), and the
//! experiment that becomes of it, run.

use super::*;
use penstock_lab::experiment::parse;
use penstock_lab::run::{self, Options};

/// The fragment of these outputs; it is run, for a tenth of a second.
#[track_caller]
fn runs(outputs: &[&str]) -> Fragment {
    let (dev, texts): (Vec<_>, Vec<_>) =
        outputs.iter().map(|o| o.split_once("=\n").unwrap_or(("", o))).unzip();
    let text = |(dev, text): (&&str, &&str)| Text {
        name: "shown".to_owned(),
        text: (*text).to_owned(),
        dev: (!dev.is_empty()).then(|| (*dev).to_owned()),
    };
    let texts: Vec<Text> = dev.iter().zip(&texts).map(text).collect();
    let fragment = experiment("gw", &texts, Kernel::V6_12).unwrap();
    let whole = format!("duration = \"100ms\"\n{}", fragment.text);
    let shown = |d: Vec<penstock_model::Diagnostic>| d.iter().map(|d| format!("{d}\n")).collect::<String>();
    let parsed = parse(&whole, "gw.toml").unwrap_or_else(|d| panic!("{}\n{whole}", shown(d)));
    // The devices keep their order.
    let mut last = 0;
    for device in &parsed.hosts[0].devices {
        let at = fragment.text.find(&format!("{} = ", penstock_lang::toml::key(&device.name))).unwrap();
        assert!(at >= last, "{whole}");
        last = at;
    }
    let outcome = run::run(&parsed, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    let outcome = outcome.unwrap_or_else(|d| panic!("{}\n{whole}", shown(d)));
    assert!(outcome.record.setup_failures.is_empty());
    fragment
}

#[track_caller]
fn has(fragment: &Fragment, lines: &[&str]) {
    for line in lines {
        assert!(fragment.text.lines().any(|l| l == *line), "{line}\n{}", fragment.text);
    }
}

#[track_caller]
fn notes(fragment: &Fragment, parts: &[&str]) {
    for part in parts {
        assert!(fragment.notes.iter().any(|n| n.contains(part)), "{part}\n{:#?}", fragment.notes);
    }
}

/// busybox' ip has neither `group` nor JSON.
#[test]
fn an_openwrt_router() {
    let fragment = runs(&[
        "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1508 qdisc fq_codel state UP qlen 1000
    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff
5: wlan0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master br-lan state UP qlen 1000
    link/ether 02:00:00:00:00:03 brd ff:ff:ff:ff:ff:ff
6: br-lan: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP qlen 1000
    link/ether 02:00:00:00:00:04 brd ff:ff:ff:ff:ff:ff
    inet 192.0.2.1/24 brd 192.0.2.255 scope global br-lan
       valid_lft forever preferred_lft forever
    inet6 2001:db8:1::1/60 scope global dynamic noprefixroute 
       valid_lft 255885sec preferred_lft 169485sec
    inet6 fe80::4/64 scope link 
       valid_lft forever preferred_lft forever
7: eth0.1@eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master br-lan state UP qlen 1000
    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff
8: eth0.2@eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP qlen 1000
    link/ether 02:00:00:00:00:02 brd ff:ff:ff:ff:ff:ff
9: pppoe-wan: <POINTOPOINT,MULTICAST,NOARP,UP,LOWER_UP> mtu 1492 qdisc cake state UNKNOWN qlen 3
    link/ppp 
    inet 203.0.113.45 peer 198.51.100.1/32 scope global pppoe-wan
       valid_lft forever preferred_lft forever
10: ifb4pppoe-wan: <BROADCAST,NOARP,UP,LOWER_UP> mtu 1500 qdisc cake state UNKNOWN qlen 32
    link/ether 02:00:00:00:00:05 brd ff:ff:ff:ff:ff:ff
",
        "default via 198.51.100.1 dev pppoe-wan 
192.0.2.0/24 dev br-lan scope link  src 192.0.2.1 
198.51.100.1 dev pppoe-wan scope link  src 203.0.113.45 
",
        "qdisc noqueue 0: dev lo root refcnt 2 
qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1522 target 5.0ms interval 100.0ms memory_limit 4Mb ecn 
 Sent 8102 bytes 47 pkt (dropped 0, overlimits 0 requeues 0) 
 backlog 0b 0p requeues 0
  maxpacket 0 drop_overlimit 0 new_flow_count 0 ecn_mark 0
  new_flows_len 0 old_flows_len 0
qdisc htb 1: dev pppoe-wan root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 3
 Sent 12480 bytes 90 pkt (dropped 0, overlimits 3 requeues 0) 
 backlog 0b 0p requeues 0
qdisc ingress ffff: dev pppoe-wan parent ffff:fff1 ---------------- 
 Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) 
",
        "pppoe-wan=
class htb 1:1 root rate 19Mbit ceil 19Mbit burst 1600b cburst 1600b 
class htb 1:10 parent 1:1 prio 0 rate 10Mbit ceil 19Mbit burst 1600b cburst 1600b 
",
        "table inet fw4 {
\tchain forward {
\t\ttype filter hook forward priority filter; policy drop;
\t\tct state established,related accept
\t\tiifname \"br-lan\" accept
\t}
\tchain srcnat {
\t\ttype nat hook postrouting priority srcnat; policy accept;
\t\toifname \"pppoe-wan\" masquerade
\t}
}
",
        "net.ipv4.ip_forward = 1\nnet.ipv4.conf.all.rp_filter = 0\n",
    ]);
    has(
        &fragment,
        &[
            "br-lan = [\"192.0.2.1/24\", \"2001:db8:1::1/60\"]",
            "\"eth0.2\" = []",
            "pppoe-wan = { address = [], mtu = 1492, txqueuelen = 3 }",
            "ip addr add 203.0.113.45 peer 198.51.100.1/32 dev pppoe-wan",
            "sysctl -q -w net.ipv4.ip_forward=1",
            "ip link add name ifb4pppoe-wan type ifb",
            "ip route add default via 198.51.100.1 dev pppoe-wan",
            "\t\tiifname \"br-lan\" accept",
            "\t\toifname \"pppoe-wan\" masquerade",
        ],
    );
    notes(
        &fragment,
        &[
            "br-lan is a bridge of wlan0, eth0.1: a card of that name here",
            "eth0.2 is a VLAN on eth0: a card of that name here; its packets do not pass eth0 and its queues",
            "pppoe-wan is a PPP link",
            "wlan0 is wireless",
        ],
    );
    assert!(
        fragment.text.contains("tc class add dev pppoe-wan parent 1:1 classid 1:10 htb rate 10Mbit"),
        "{}",
        fragment.text
    );
    assert!(fragment.text.contains("tc qdisc add dev eth0 root fq_codel"), "{}", fragment.text);
}

#[test]
fn a_server_with_a_bond() {
    let fragment = runs(&[
        "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00 promiscuity 0 allmulti 0 minmtu 0 maxmtu 0 numtxqueues 1 numrxqueues 1 gso_max_size 65536 gso_max_segs 65535 
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
    inet 192.0.2.53/32 scope global lo
       valid_lft forever preferred_lft forever
2: enp3s0: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 9000 qdisc mq master bond0 state UP group default qlen 1000
    link/ether 02:00:00:00:01:01 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 46 maxmtu 9194 
    bond_slave state ACTIVE mii_status UP link_failure_count 0 perm_hwaddr 02:00:00:00:01:01 queue_id 0 numtxqueues 8 numrxqueues 8 
3: enp4s0f1np1: <BROADCAST,MULTICAST,SLAVE,UP,LOWER_UP> mtu 9000 qdisc mq master bond0 state UP group default qlen 1000
    link/ether 02:00:00:00:01:01 brd ff:ff:ff:ff:ff:ff permaddr 02:00:00:00:01:02 promiscuity 0 minmtu 46 maxmtu 9194 
    bond_slave state BACKUP mii_status UP link_failure_count 0 perm_hwaddr 02:00:00:00:01:02 queue_id 0 numtxqueues 8 numrxqueues 8 
    altname eno2np1
4: bond0: <BROADCAST,MULTICAST,MASTER,UP,LOWER_UP> mtu 9000 qdisc noqueue state UP group default qlen 1000
    link/ether 02:00:00:00:01:01 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 68 maxmtu 65535 
    bond mode active-backup active_slave enp3s0 miimon 100 updelay 0 downdelay 0 
    inet 192.0.2.10/24 brd 192.0.2.255 scope global bond0
       valid_lft forever preferred_lft forever
    inet 192.0.2.11/24 brd 192.0.2.255 scope global secondary bond0:web
       valid_lft forever preferred_lft forever
5: bond0.30@bond0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default qlen 1000
    link/ether 02:00:00:00:01:01 brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu 0 maxmtu 65535 
    vlan protocol 802.1Q id 30 <REORDER_HDR> numtxqueues 1 numrxqueues 1 
    inet 198.51.100.10/26 scope global bond0.30
       valid_lft forever preferred_lft forever
",
        "default via 192.0.2.1 dev bond0 proto static metric 100 onlink 
192.0.2.0/24 dev bond0 proto kernel scope link src 192.0.2.10 
198.51.100.0/26 dev bond0.30 proto kernel scope link src 198.51.100.10 
203.0.113.0/24 proto static metric 20 
\tnexthop via 192.0.2.2 dev bond0 weight 1 
\tnexthop via 198.51.100.2 dev bond0.30 weight 1 
blackhole 203.0.113.128/25 
",
        "0:\tfrom all lookup local\n100:\tfrom 198.51.100.0/26 lookup 30\n32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n",
        "qdisc mq 0: dev enp3s0 root 
qdisc fq_codel 0: dev enp3s0 parent :2 limit 10240p flows 1024 quantum 9014 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64 
qdisc fq_codel 0: dev enp3s0 parent :1 limit 10240p flows 1024 quantum 9014 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64 
qdisc noqueue 0: dev bond0 root refcnt 2 
",
    ]);
    has(
        &fragment,
        &[
            "enp3s0 = { address = [], mtu = 9000 }",
            "bond0 = { address = \"192.0.2.10/24\", mtu = 9000 }",
            "\"bond0.30\" = \"198.51.100.10/26\"",
            "ip addr add 192.0.2.53/32 dev lo",
            "ip addr add 192.0.2.11/24 brd 192.0.2.255 dev bond0 label bond0:web",
            "ip rule add pref 100 from 198.51.100.0/26 lookup 30",
            "ip route add blackhole 203.0.113.128/25",
        ],
    );
    assert!(fragment.text.contains("nexthop via 198.51.100.2 dev bond0.30 weight 1"), "{}", fragment.text);
    notes(
        &fragment,
        &[
            "bond0 is a bond of enp3s0, enp4s0f1np1",
            "enp3s0 belongs to bond0",
            "enp3s0: mq gives each of 2 queues a fq_codel: one here",
        ],
    );
}

#[test]
fn a_docker_host() {
    let fragment = runs(&[
        r#"[{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,"qdisc":"noqueue","operstate":"UNKNOWN","group":"default","txqlen":1000,
"link_type":"loopback","addr_info":[{"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host","label":"lo"}]},
{"ifindex":2,"ifname":"ens18","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":1500,"qdisc":"fq","operstate":"UP","group":"default","txqlen":1000,"link_type":"ether",
"addr_info":[{"family":"inet","local":"192.0.2.20","prefixlen":24,"broadcast":"192.0.2.255","scope":"global","dynamic":true,"label":"ens18"},{"family":"inet6",
"local":"2001:db8::20","prefixlen":64,"scope":"global"},{"family":"inet6","local":"fe80::20","prefixlen":64,"scope":"link"}]},
{"ifindex":3,"ifname":"docker0","flags":["NO-CARRIER","BROADCAST","MULTICAST","UP"],"mtu":1500,"qdisc":"noqueue","operstate":"DOWN","group":"default","link_type":"ether",
"linkinfo":{"info_kind":"bridge","info_data":{"forward_delay":1500}},"addr_info":[{"family":"inet","local":"198.51.100.1","prefixlen":25,"broadcast":"198.51.100.127",
"scope":"global","label":"docker0"}]},
{"ifindex":5,"ifname":"br-0a1b2c3d4e5f","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":1500,"qdisc":"noqueue","operstate":"UP","group":"default","link_type":"ether",
"linkinfo":{"info_kind":"bridge"},"addr_info":[{"family":"inet","local":"198.51.100.129","prefixlen":25,"scope":"global","label":"br-0a1b2c3d4e5f"}]},
{"ifindex":7,"link_index":6,"ifname":"veth12ab34c","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":1500,"qdisc":"noqueue","master":"br-0a1b2c3d4e5f","operstate":"UP",
"group":"default","link_type":"ether","link_netnsid":0,"linkinfo":{"info_kind":"veth","info_slave_kind":"bridge"},"addr_info":[]}]"#,
        r#"[{"dst":"default","gateway":"192.0.2.1","dev":"ens18","protocol":"dhcp","prefsrc":"192.0.2.20","metric":100,"flags":[]},{"dst":"198.51.100.0/25","dev":"docker0",
"protocol":"kernel","scope":"link","prefsrc":"198.51.100.1","flags":["linkdown"]}]"#,
        r#"[{"dst":"::1","dev":"lo","protocol":"kernel","metric":256,"flags":[],"pref":"medium"},{"dst":"default","gateway":"2001:db8::1","dev":"ens18","protocol":"static",
"metric":1024,"flags":[],"pref":"medium"}]"#,
        "# Generated by iptables-save v1.8.9 (nf_tables) on Mon Jan  1 00:00:00 2024
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 198.51.100.0/25 ! -o docker0 -j MASQUERADE
-A DOCKER -i docker0 -j RETURN
-A DOCKER ! -i br-0a1b2c3d4e5f -p tcp -m tcp --dport 8080 -j DNAT --to-destination 198.51.100.130:80
COMMIT
# Completed on Mon Jan  1 00:00:00 2024
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:DOCKER-USER - [0:0]
-A FORWARD -j DOCKER-USER
-A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -i docker0 ! -o docker0 -j ACCEPT
-A DOCKER-USER -j RETURN
COMMIT
",
    ]);
    has(
        &fragment,
        &[
            "ens18 = [\"192.0.2.20/24\", \"2001:db8::20/64\"]",
            "docker0 = \"198.51.100.1/25\"",
            "br-0a1b2c3d4e5f = \"198.51.100.129/25\"",
            "veth12ab34c = []",
            "ip route add default via 192.0.2.1 dev ens18 src 192.0.2.20 metric 100",
            "ip -6 route add default via 2001:db8::1 dev ens18 metric 1024",
            "-A FORWARD -i docker0 ! -o docker0 -j ACCEPT",
            "-A DOCKER -i docker0 -j RETURN",
            "-A POSTROUTING -s 198.51.100.0/25 ! -o docker0 -j MASQUERADE",
            "-A DOCKER ! -i br-0a1b2c3d4e5f -p tcp -m tcp --dport 8080 -j DNAT --to-destination 198.51.100.130:80",
        ],
    );
    notes(
        &fragment,
        &[
            "docker0 is a bridge",
            "br-0a1b2c3d4e5f is a bridge of veth12ab34c",
            "veth12ab34c is one end of a veth pair on if6",
        ],
    );
}

#[test]
fn a_proxmox_host() {
    let fragment = runs(&[
        "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
2: nic0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq master vmbr0 state UP mode DEFAULT group default qlen 1000
    link/ether 02:00:00:00:02:01 brd ff:ff:ff:ff:ff:ff
    altname enp2s0
3: nic1: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 1000
    link/ether 02:00:00:00:02:02 brd ff:ff:ff:ff:ff:ff
4: vmbr0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000
    link/ether 02:00:00:00:02:01 brd ff:ff:ff:ff:ff:ff
9: tap100i0: <BROADCAST,MULTICAST,PROMISC,UP,LOWER_UP> mtu 1500 qdisc fq_codel master fwbr100i0 state UNKNOWN mode DEFAULT group default qlen 1000
    link/ether 02:00:00:00:02:09 brd ff:ff:ff:ff:ff:ff
10: fwbr100i0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP mode DEFAULT group default qlen 1000
    link/ether 02:00:00:00:02:0a brd ff:ff:ff:ff:ff:ff
11: fwpr100p0@fwln100i0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master vmbr0 state UP mode DEFAULT group default qlen 1000
    link/ether 02:00:00:00:02:0b brd ff:ff:ff:ff:ff:ff
12: fwln100i0@fwpr100p0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue master fwbr100i0 state UP mode DEFAULT group default qlen 1000
    link/ether 02:00:00:00:02:0c brd ff:ff:ff:ff:ff:ff
",
        "4: vmbr0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default qlen 1000
    link/ether 02:00:00:00:02:01 brd ff:ff:ff:ff:ff:ff
    inet 192.0.2.30/24 scope global vmbr0
       valid_lft forever preferred_lft forever
    inet6 fe80::30/64 scope link 
       valid_lft forever preferred_lft forever
",
        "default via 192.0.2.1 dev vmbr0 proto kernel onlink 
192.0.2.0/24 dev vmbr0 proto kernel scope link src 192.0.2.30 
",
        "qdisc tbf 1: dev tap100i0 root refcnt 2 rate 80Mbit burst 1Mb lat 50ms \n Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n",
    ]);
    has(
        &fragment,
        &[
            "vmbr0 = \"192.0.2.30/24\"",
            "tap100i0 = []",
            "fwpr100p0 = []",
            "ip link set dev nic1 down",
            "ip route add default via 192.0.2.1 dev vmbr0 onlink",
        ],
    );
    notes(
        &fragment,
        &[
            "vmbr0 is a bridge of nic0, fwpr100p0",
            "tap100i0 is a tun or tap device",
            "fwln100i0 is one end of a veth pair on fwpr100p0",
        ],
    );
    assert!(
        fragment.text.contains("tc qdisc add dev tap100i0 root handle 1: tbf rate 80Mbit"),
        "{}",
        fragment.text
    );
}

#[test]
fn a_wireguard_gateway() {
    let fragment = runs(&[
        "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00 promiscuity 0 allmulti 0 minmtu 0 maxmtu 0 
2: ens3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc fq_codel state UP group default qlen 1000
    link/ether 02:00:00:00:03:01 brd ff:ff:ff:ff:ff:ff promiscuity 0 allmulti 0 minmtu 68 maxmtu 65535 
    altname enp0s3
    inet 203.0.113.9/32 metric 100 scope global dynamic ens3
       valid_lft 84234sec preferred_lft 84234sec
    inet6 2001:db8:9::1/64 scope global 
       valid_lft forever preferred_lft forever
3: wg0: <POINTOPOINT,NOARP,UP,LOWER_UP> mtu 1420 qdisc noqueue state UNKNOWN group default qlen 1000
    link/none  promiscuity 0 allmulti 0 minmtu 0 maxmtu 2147483552 
    wireguard numtxqueues 1 numrxqueues 1 
    inet 198.51.100.1/24 scope global wg0
       valid_lft forever preferred_lft forever
4: sit0@NONE: <NOARP> mtu 1480 qdisc noop state DOWN group default qlen 1000
    link/sit 0.0.0.0 brd 0.0.0.0 promiscuity 0 allmulti 0 minmtu 1280 maxmtu 65555 
    sit ip6ip remote any local any ttl 64 nopmtudisc 
5: dummy0: <BROADCAST,NOARP,UP,LOWER_UP> mtu 1500 qdisc noqueue state UNKNOWN group default qlen 1000
    link/ether 02:00:00:00:03:05 brd ff:ff:ff:ff:ff:ff promiscuity 0 allmulti 0 minmtu 0 maxmtu 0 
    dummy numtxqueues 1 numrxqueues 1 
    inet 192.0.2.254/32 scope global dummy0
       valid_lft forever preferred_lft forever
",
        "default via 172.31.1.1 dev ens3 proto dhcp src 203.0.113.9 metric 100 
172.31.1.1 dev ens3 proto dhcp scope link src 203.0.113.9 metric 100 
192.0.2.0/25 dev wg0 scope link 
",
        "2001:db8:9::/64 dev ens3 proto kernel metric 256 pref medium
default via fe80::1 dev ens3 metric 1024 onlink pref medium
",
        "qdisc cake 8001: dev wg0 root refcnt 2 bandwidth 50Mbit diffserv3 triple-isolate nonat nowash no-ack-filter split-gso rtt 100ms raw overhead 0 \n",
        "net.ipv4.ip_forward = 1\n",
    ]);
    has(
        &fragment,
        &[
            "ens3 = [\"203.0.113.9/32\", \"2001:db8:9::1/64\"]",
            "wg0 = { address = \"198.51.100.1/24\", mtu = 1420 }",
            "ip link add name dummy0 type dummy",
            "ip addr add 192.0.2.254/32 dev dummy0",
            "ip route add 192.0.2.0/25 dev wg0 scope link",
            "ip route add default via 172.31.1.1 dev ens3 proto dhcp src 203.0.113.9 metric 100",
            "ip -6 route add default via fe80::1 dev ens3 metric 1024 onlink",
        ],
    );
    notes(
        &fragment,
        &["wg0 is a WireGuard tunnel", "sit0 is a tunnel that is down and has no address: left out"],
    );
}

#[test]
fn a_laptop() {
    let fragment = runs(&[
        "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
    inet 127.0.0.1/8 scope host lo
       valid_lft forever preferred_lft forever
    inet6 ::1/128 scope host noprefixroute 
       valid_lft forever preferred_lft forever
2: enp0s31f6: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc fq_codel state DOWN group default qlen 1000
    link/ether 02:00:00:00:04:01 brd ff:ff:ff:ff:ff:ff
3: wlp2s0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc noqueue state UP group default qlen 1000
    link/ether 02:00:00:00:04:02 brd ff:ff:ff:ff:ff:ff
    inet 192.0.2.77/24 brd 192.0.2.255 scope global dynamic noprefixroute wlp2s0
       valid_lft 85940sec preferred_lft 85940sec
    inet6 2001:db8:4:0:c0de:1:2:3/64 scope global temporary dynamic 
       valid_lft 604743sec preferred_lft 85900sec
4: virbr0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN group default qlen 1000
    link/ether 02:00:00:00:04:03 brd ff:ff:ff:ff:ff:ff
    inet 198.51.100.1/24 brd 198.51.100.255 scope global virbr0
       valid_lft forever preferred_lft forever
5: enx020000000405: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc fq_codel state UNKNOWN group default qlen 1000
    link/ether 02:00:00:00:04:05 brd ff:ff:ff:ff:ff:ff
",
        "default via 192.0.2.1 dev wlp2s0 proto dhcp metric 600 
192.0.2.0/24 dev wlp2s0 proto kernel scope link src 192.0.2.77 metric 600 
198.51.100.0/24 dev virbr0 proto kernel scope link src 198.51.100.1 linkdown 
",
    ]);
    has(
        &fragment,
        &[
            "enp0s31f6 = []",
            "enx020000000405 = []",
            "virbr0 = \"198.51.100.1/24\"",
            "ip route add default via 192.0.2.1 dev wlp2s0 proto dhcp metric 600",
        ],
    );
    notes(&fragment, &["wlp2s0 is wireless: a card of that name here", "virbr0 is a bridge"]);
}

/// Names that are keys of a host, hold a dot, an `@`, quotes.
#[test]
fn odd_names() {
    let links = "1: via: <BROADCAST,UP> mtu 1500 qdisc fq state UP qlen 1000
    inet 192.0.2.1/25 scope global via
2: a@b@if7: <BROADCAST,UP> mtu 1500 qdisc fq state UP qlen 1000
    inet 192.0.2.129/25 scope global a@b
3: q'\"\\#$x: <BROADCAST,UP> mtu 1500 qdisc fq state UP qlen 1000
    inet 198.51.100.1/24 scope global q'\"\\#$x
";
    let fragment = runs(&[
        links,
        "qdisc htb 1: dev q'\"\\#$x root refcnt 2 r2q 10 default 0 direct_packets_stat 0 direct_qlen 1000\n",
    ]);
    has(
        &fragment,
        &[
            "device.via = \"192.0.2.1/25\"",
            "device.\"a@b\" = \"192.0.2.129/25\"",
            "\"q'\\\"\\\\#$x\" = \"198.51.100.1/24\"",
        ],
    );
    assert!(experiment("a b", &[], Kernel::V6_12).is_err());
}
