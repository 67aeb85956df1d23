//! Where `explain` says packets go, on ways that have a name: tags, translation, marks of connections, hashes, tins; and how it says it.

use penstock_check::explain::{Probe, partition};
use penstock_check::{Settings, facts};
use penstock_shell::Script;

#[track_caller]
fn goes(script: &str, dev: &str, packet: &str, place: &str) -> String {
    let facts = facts(&Script { text: script.to_owned(), ..Script::default() }, &Settings::default());
    let refused: Vec<String> = facts.steps.iter().filter(|s| !s.ok()).map(|s| s.text()).collect();
    assert!(refused.is_empty(), "{refused:?}");
    let probe = Probe::parse(packet).unwrap();
    let said = penstock_check::explain::explain(&facts, dev, &probe).unwrap();
    assert_eq!(said.place(), place, "{packet}\n{}", said.text());
    said.text()
}

/// The place the parts of all packets say.
#[track_caller]
fn parted(script: &str, dev: &str, packet: &str, place: &str) {
    let facts = facts(&Script { text: script.to_owned(), ..Script::default() }, &Settings::default());
    let parts = partition(&facts, dev).unwrap();
    let part = parts.of(&Probe::parse(packet).unwrap()).unwrap();
    assert_eq!(parts.parts[part].class, place, "{packet}\n{}", parts.text());
}

const TREE: &str = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                    tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
                    tc class add dev eth0 parent 1: classid 1:20 htb rate 5mbit\n\
                    tc class add dev eth0 parent 1: classid 1:30 htb rate 5mbit\n";

#[test]
fn a_mark_outside_the_mask_of_fw_is_no_packet_s() {
    let script = format!(
        "{TREE}iptables -t mangle -A POSTROUTING -j MARK --set-mark 0x200\n\
         tc filter add dev eth0 parent 1: protocol ip prio 1 handle 0x200/0xff fw flowid 1:10\n"
    );
    for packet in ["udp 10.0.0.1:1 > 10.0.0.2:2", "udp 10.0.0.1:1 > 10.0.0.2:2 in eth1"] {
        goes(&script, "eth0", packet, "1:30");
        parted(&script, "eth0", packet, "1:30");
    }
}

#[test]
fn flow_takes_what_it_computes_a_class_for() {
    let base = "tc qdisc add dev eth0 root handle 10: drr\n\
                for i in 1 2 3 4; do tc class add dev eth0 parent 10: classid 10:$i drr; done\n\
                tc filter add dev eth0 parent 10: protocol all prio 1 handle 1 flow ";
    let packet = "tcp 10.0.0.1:40000 > 10.1.0.2:80";
    let mapped = format!("{base}map key dst and 0x3 baseclass 10:1\n");
    goes(&mapped, "eth0", packet, "10:3");
    parted(&mapped, "eth0", packet, "10:3");
    let hashed = format!("{base}hash keys src,dst,proto-dst divisor 4 baseclass 10:1\n");
    let said = goes(&hashed, "eth0", packet, "10:1-10:4");
    assert!(said.contains("one of 10:1 to 10:4: filter of line 3, a hash chooses\n"), "{said}");
    parted(&hashed, "eth0", packet, "10:1-10:4");
    // More numbers than classes.
    let wide = format!("{base}hash keys src divisor 6 baseclass 10:1\n");
    assert!(goes(&wide, "eth0", packet, "10:1-10:6").contains("; 2 of them are not there"));
}

#[test]
fn filters_see_the_translated_source() {
    let script = |nat: &str, net: &str| {
        format!(
            "{TREE}ip addr add 203.0.113.7/24 dev eth0\niptables -t nat -A POSTROUTING -o eth0 -j {nat}\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src {net} flowid 1:10\n"
        )
    };
    let packet = "tcp 192.168.1.5:40000 > 10.1.0.1:80 in eth1";
    for (nat, net, place) in [
        ("MASQUERADE", "192.168.1.0/24", "1:30"),
        ("MASQUERADE", "203.0.113.7", "1:10"),
        ("SNAT --to-source 198.51.100.9", "198.51.100.0/24", "1:10"),
        ("SNAT --to-source 198.51.100.9", "192.168.1.0/24", "1:30"),
    ] {
        goes(&script(nat, net), "eth0", packet, place);
        parted(&script(nat, net), "eth0", packet, place);
    }
}

#[test]
fn filters_see_the_translated_source_of_ipv6() {
    let script = |nat: &str, net: &str| {
        format!(
            "{TREE}ip addr add 203.0.113.7/24 dev eth0\nip -6 addr add 2001:db8::7/64 dev eth0\n\
             iptables -t nat -A POSTROUTING -o eth0 -j SNAT --to-source 32.1.13.184\n\
             ip6tables -t nat -A POSTROUTING -o eth0 -j {nat}\n\
             tc filter add dev eth0 parent 1: protocol ipv6 prio 1 u32 match ip6 src {net} flowid 1:10\n"
        )
    };
    let packet = "tcp [fd00:1::5]:40000 > [2001:db8:9::1]:80 in eth1";
    for (nat, net, place) in [
        ("MASQUERADE", "fd00:1::/64", "1:30"),
        ("MASQUERADE", "2001:db8::7/128", "1:10"),
        ("SNAT --to-source 2001:db8:5::9", "2001:db8:5::/48", "1:10"),
        ("SNAT --to-source 2001:db8:5::9-2001:db8:5::a", "2001:db8:6::/48", "1:30"),
        ("SNAT --to-source 2001:db8:5::9", "fd00:1::/64", "1:30"),
    ] {
        goes(&script(nat, net), "eth0", packet, place);
        parted(&script(nat, net), "eth0", packet, place);
    }
    // Nobody has said which address the device has.
    let unsaid =
        script("MASQUERADE", "2001:db8::/32").replace("ip -6 addr add 2001:db8::7/64 dev eth0\n", "");
    let facts = facts(&Script { text: unsaid, ..Script::default() }, &Settings::default());
    let text = partition(&facts, "eth0").unwrap().text();
    assert!(text.contains("eth0's own address is within 2001:db8::/32"), "{text}");
}

#[test]
fn tagged_packets() {
    let script = format!(
        "{TREE}tc filter add dev eth0 parent 1: protocol 802.1q prio 1 flower vlan_id 100 flowid 1:10\n\
         tc filter add dev eth0 parent 1: protocol 802.1q prio 2 flower vlan_prio 5 vlan_ethtype ip dst_ip 10.9.0.0/16 flowid 1:20\n\
         tc filter add dev eth0 parent 1: protocol ip prio 3 u32 match ip dst 10.0.0.0/8 flowid 1:20\n\
         tc filter add dev eth0 parent 1: protocol 802.1ad prio 4 flower vlan_id 7 vlan_ethtype 802.1q cvlan_id 9 flowid 1:10\n"
    );
    for (tags, place) in [
        ("", "1:20"),
        (" vlan 100", "1:10"),
        // A filter for `protocol ip` does not see tagged packets.
        (" vlan 101", "1:30"),
        (" vlan 101 pcp 5", "1:20"),
        (" 802.1ad 7 vlan 9", "1:10"),
        (" 802.1ad 7 vlan 8", "1:30"),
    ] {
        let packet = format!("tcp 10.0.0.1:40000 > 10.9.0.1:80{tags}");
        goes(&script, "eth0", &packet, place);
        parted(&script, "eth0", &packet, place);
    }
    let facts = facts(&Script { text: script, ..Script::default() }, &Settings::default());
    let text = partition(&facts, "eth0").unwrap().text();
    assert!(text.contains("vlan 100\n") && !text.contains("U32("), "{text}");
}

#[test]
fn an_ifb_gets_the_mark_of_the_connection() {
    let script = "ip link add ifb0 type ifb\nip link set ifb0 up\n\
                  iptables -t mangle -A POSTROUTING -p tcp --dport 80 -j CONNMARK --set-mark 7\n\
                  tc qdisc add dev eth0 ingress\n\
                  tc filter add dev eth0 parent ffff: protocol all prio 1 u32 match u32 0 0 action connmark action mirred egress redirect dev ifb0\n\
                  tc qdisc add dev ifb0 root handle 1: htb default 30\n\
                  tc class add dev ifb0 parent 1: classid 1:10 htb rate 5mbit\n\
                  tc class add dev ifb0 parent 1: classid 1:30 htb rate 5mbit\n\
                  tc filter add dev ifb0 parent 1: protocol ip prio 1 handle 7 fw flowid 1:10\n";
    // An answer to what the rules have marked.
    let said = goes(script, "ifb0", "tcp 10.0.0.1:80 > 10.1.0.1:8000", "1:10");
    assert!(said.contains("the rules give its connection the mark 7"), "{said}");
    goes(script, "ifb0", "tcp 10.0.0.1:81 > 10.1.0.1:8000", "1:30");
    goes(script, "ifb0", "udp 10.0.0.1:81 > 10.1.0.1:8000 connmark 7", "1:10");
    parted(script, "ifb0", "udp 10.0.0.1:81 > 10.1.0.1:8000 connmark 7", "1:10");
    let facts = facts(&Script { text: script.to_owned(), ..Script::default() }, &Settings::default());
    let parts = partition(&facts, "ifb0").unwrap();
    assert!(parts.never.is_empty(), "{}", parts.text());
    let ctinfo = script
        .replace("action connmark", "action ctinfo dscp 0xfc000000 0x01000000")
        .replace("handle 1: htb default 30", "handle 1: cake diffserv4");
    let ctinfo: String = ctinfo.lines().filter(|l| !l.contains(" 1: ")).map(|l| format!("{l}\n")).collect();
    let ctinfo = format!("{ctinfo}tc qdisc add dev ifb0 root handle 1: cake diffserv4\n");
    goes(&ctinfo, "ifb0", &format!("udp 10.0.0.1:81 > 10.1.0.1:8000 connmark {}", 0xb900_0000u32), "Voice");
}

#[test]
fn tins_of_cake() {
    for (mode, tos, tin) in [
        ("diffserv3", "0xb8", "Voice"),
        ("diffserv3", "0x88", "Best Effort"),
        ("diffserv4", "0x88", "Video"),
        ("diffserv4", "0x20", "Bulk"),
        ("diffserv8", "0xb8", "Tin 6"),
        ("precedence", "0xb8", "Tin 5"),
        ("besteffort", "0xb8", "Tin 0"),
    ] {
        let script = format!("tc qdisc add dev eth0 root cake bandwidth 10mbit {mode}\n");
        for packet in ["udp 10.0.0.1:1 > 10.0.0.2:2", "udp [2001:db8::1]:1 > [2001:db8::2]:2"] {
            let packet = format!("{packet} tos {tos}");
            goes(&script, "eth0", &packet, tin);
            parted(&script, "eth0", &packet, tin);
        }
    }
    let marked = "tc qdisc add dev eth0 root cake bandwidth 10mbit diffserv4 fwmark 0xf0\n";
    for (mark, tin) in [("0x10", "Bulk"), ("0x40", "Voice"), ("0x50", "Best Effort"), ("0x04", "Best Effort")]
    {
        let packet = format!("udp 10.0.0.1:1 > 10.0.0.2:2 mark {mark}");
        goes(marked, "eth0", &packet, tin);
        parted(marked, "eth0", &packet, tin);
    }
}

#[test]
fn what_a_managed_queue_aims_at() {
    let script = format!("{TREE}tc qdisc add dev eth0 parent 1:30 fq_codel target 5ms\n");
    let said = goes(&script, "eth0", "udp 10.0.0.1:1 > 10.0.0.2:2", "1:30");
    assert!(said.contains("fq_codel aims at 5 ms") && said.contains("that of a full queue"), "{said}");
    let root = "tc qdisc add dev eth0 root pie target 20ms\n";
    let said = goes(root, "eth0", "udp 10.0.0.1:1 > 10.0.0.2:2", "pie");
    assert!(said.contains("pie aims at 20 ms: ") && !said.contains("full queue"), "{said}");
}

#[test]
fn what_holds_of_both_directions_is_one_part() {
    let script = format!(
        "{TREE}iptables -t mangle -A POSTROUTING -p tcp --dport 80 -j MARK --set-mark 7\n\
         tc filter add dev eth0 parent 1: protocol ip prio 1 handle 7 fw flowid 1:10\n"
    );
    let facts = facts(&Script { text: script, ..Script::default() }, &Settings::default());
    let text = partition(&facts, "eth0").unwrap().text();
    let rows: Vec<&str> = text.lines().skip(1).take_while(|l| !l.is_empty()).collect();
    assert_eq!(
        rows,
        [
            "1     6          1:10           ip, tcp, dport 80",
            "2     default    1:30           everything; without 1",
        ],
        "{text}"
    );
}
