//! Random commands for `eth0` and random packets: every qdisc that sorts, every classifier, IPv6, tags, translation, rules, ingress.

/// Numbers in a fixed order.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
    pub fn one<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

const V4: &[&str] = &[
    "match ip src 10.0.0.0/9",
    "match ip dst 10.1.0.0/16",
    "match ip dst 10.0.0.0/30",
    "match ip protocol 6 0xff",
    "match ip protocol 17 0xff",
    "match ip dport 53 0xffff",
    "match ip sport 80 0xfff0",
    "match ip tos 0x10 0x1e",
    "match u32 0 0",
    "match u8 0x45 0xff at 0",
    "match u16 0x0000 0xffc0 at 2",
    "match ip src 10.130.0.1",
    "match ip dsfield 0xb8 0xfc",
    "match tcp dst 80 0xffff",
    "match udp src 53 0xffff",
    "match ip firstfrag",
    "match u16 0x0035 0xffff at nexthdr+2",
    "match ip ihl 5 0xf",
    "match ip df",
    "match ip nofrag",
    "match u8 0x10 0xff at 33",
    "match u16 0x0050 0xfff0 at 20",
    "match u8 0x02 0x03 at 19",
    "match icmp type 8 0xff",
];
const V6: &[&str] = &[
    "match ip6 src 2001:db8::/48",
    "match ip6 dst 2001:db8:1::/48",
    "match ip6 dst 2001:db8:a0::1",
    "match ip6 protocol 6 0xff",
    "match ip6 protocol 17 0xff",
    "match ip6 dport 53 0xffff",
    "match u32 0 0",
    "match ip6 sport 80 0xfff0",
    "match ip6 priority 0xb8 0xfc",
    "match u16 0x0000 0xffc0 at 4",
    "match u8 0x60 0xf0 at 0",
    "match u32 0x00000002 0x0000000f at 36",
    "match u16 0x0035 0xffff at 42",
    "match u8 6 0xff at 6",
    "match ip6 src ::/0",
    "match ip6 protocol 58 0xff",
];
const FLOWER4: &[&str] = &[
    "ip_proto tcp",
    "ip_proto udp dst_port 53",
    "ip_proto tcp src_port 80",
    "ip_proto tcp dst_port 50-79",
    "ip_tos 0xb8/0xfc",
    "ip_proto tcp tcp_flags 0x10/0x12",
    "ip_proto udp src_port 53-80 dst_port 22-53",
    "",
    "ip_proto tcp dst_port 80/0xfff0",
    "src_ip 10.0.0.0/9",
    "dst_ip 10.1.0.0/16",
    "dst_ip 10.1.0.2 ip_proto tcp",
    "ip_flags nofrag",
    "ip_proto icmp type 8",
    "ip_proto gre",
    "ip_ttl 64",
    "ip_ttl 63/63",
];
const FLOWER6: &[&str] = &[
    "ip_proto tcp",
    "ip_proto udp dst_port 53",
    "ip_tos 0x10",
    "src_ip 2001:db8::/48",
    "ip_proto icmpv6",
    "",
    "dst_ip 2001:db8:1::/48 ip_proto udp",
    "dst_ip 2001:db8:1::2",
    "ip_proto tcp dst_port 22-60",
];
const FLOWER_TAG: &[&str] = &[
    "vlan_id 10",
    "vlan_id 99",
    "vlan_prio 3",
    "vlan_id 10 vlan_prio 5",
    "vlan_ethtype ipv6",
    "",
    "vlan_ethtype ipv4 dst_ip 10.1.0.0/16",
    "vlan_id 10 vlan_ethtype ipv4 ip_proto tcp dst_port 80",
];
const BASIC: &[&str] = &[
    "cmp(u8 at 9 layer network eq 6)",
    "cmp(u16 at 2 layer transport gt 60)",
    "u32(u32 0x0a000000 0xffff0000 at 12)",
    "cmp(u8 at 1 layer network eq 0x10)",
    "meta(fwmark gt 2)",
    "meta(fwmark mask 0x1 eq 1)",
    "meta(priority eq 3)",
    "meta(pkt_len gt 100)",
    "cmp(u16 at 0 layer transport mask 0xff eq 80)",
    "meta(protocol eq 0x86dd)",
    "meta(priority lt 2)",
    "cmp(u32 at 16 layer 1 gt 0x0a010000)",
    "meta(vlan eq 10)",
    "cmp(u8 at 0 layer network mask 0xf0 eq 0x60)",
];
const BPF: &[&str] = &[
    "4,40 0 0 12,21 0 1 2048,6 0 0 4294967295,6 0 0 0",
    "6,40 0 0 12,21 0 3 2048,48 0 0 23,21 0 1 6,6 0 0 4294967295,6 0 0 0",
    "1,6 0 0 4294967295",
];
const ACTIONS: &[&str] = &[
    "",
    "",
    "",
    "",
    "",
    " action drop",
    " action skbedit mark 1 continue",
    " action ok",
    " action continue",
    " police rate 10gbit burst 10mb drop",
    " action skbedit mark 0x1/0x1 continue",
    " action pipe",
    " action skbedit priority 1:20 continue",
    " action skbedit priority 3 continue",
    " action gact ok",
    " action pedit ex munge ip tos set 0x10 continue",
    " action goto chain 3",
    " action skbedit mark 3 reclassify",
    " action police rate 10gbit burst 10mb conform-exceed drop/continue",
    " action skbedit inheritdsfield continue",
    " action mirred egress redirect dev ifb0",
    " action mirred egress mirror dev ifb0",
];

fn basic(dice: &mut Dice) -> String {
    let mut text = format!("{}{}", dice.one(&["", "", "not "]), dice.one(BASIC));
    for _ in 0..dice.below(3) {
        text += &format!("{}{}{}", dice.one(&[" and ", " or "]), dice.one(&["", "not "]), dice.one(BASIC));
    }
    format!("basic match '{text}'")
}

/// A filter's kind, what it looks at and its class.
fn what(dice: &mut Dice, kind: &str, protocol: &str, classes: &[&str]) -> String {
    let class = dice.one(classes);
    let asks = match kind {
        "u32" => {
            let all: Vec<&str> = match protocol {
                "ip" => V4.to_vec(),
                "ipv6" => V6.to_vec(),
                _ => V4.iter().chain(V6).copied().collect(),
            };
            let mut keys: Vec<&str> = (0..1 + dice.below(3)).map(|_| dice.one(&all)).collect();
            keys.dedup();
            format!("u32 {}", keys.join(" "))
        }
        "fw" => format!("handle {} fw", dice.one(&["1", "2", "3", "0x1/0x1", "0x2/0x3"])),
        "flower" => {
            let all = match protocol {
                "ip" => FLOWER4,
                "ipv6" => FLOWER6,
                "802.1q" => FLOWER_TAG,
                _ => &[""],
            };
            format!("flower {}", dice.one(all))
        }
        "basic" => basic(dice),
        "bpf" => format!("bpf bytecode '{}'", dice.one(BPF)),
        "flow" => {
            let key = dice.one(&["mark", "priority", "dst", "src", "proto", "proto-dst"]);
            let change = dice.one(&["and 0x3", "and 0x1", "rshift 1", "addend 1", ""]);
            return format!(
                "flow map key {key} {change} {} baseclass {class}",
                dice.one(&["divisor 4", "", "divisor 2"])
            );
        }
        _ => "matchall".to_owned(),
    };
    format!("{asks} classid {class}{}", dice.one(ACTIONS))
}

fn filters(dice: &mut Dice, place: &str, classes: &[&str], chain: Option<u32>) -> Vec<String> {
    let (mut kinds, mut protocols) = ([""; 8], [""; 8]);
    let mut lines = Vec::new();
    for _ in 0..1 + dice.below(8) {
        let prio = 1 + dice.below(7);
        if kinds[prio].is_empty() {
            let more = if prio > 4 { ["matchall", "flow", "bpf"] } else { ["u32", "basic", "flower"] };
            kinds[prio] =
                dice.one(&["u32", "u32", "fw", "flower", "flower", "basic", more[0], more[1], more[2]]);
            protocols[prio] = dice.one(&["ip", "ip", "ip", "ipv6", "ipv6", "all", "802.1q"]);
        }
        let mut filter = what(dice, kinds[prio], protocols[prio], classes);
        if chain.is_some() {
            filter = filter.replace(" action goto chain 3", "").replace(" reclassify", " continue");
        }
        let chain = chain.map_or(String::new(), |c| format!("chain {c} "));
        let line = format!(
            "tc filter add dev eth0 {place} {chain}protocol {} prio {prio} {filter}",
            protocols[prio]
        );
        lines.push(line.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    lines
}

fn chained(dice: &mut Dice, place: &str, classes: &[&str]) -> Vec<String> {
    let mut lines = filters(dice, place, classes, None);
    if lines.iter().any(|l| l.contains("goto chain 3")) {
        let mut first = filters(dice, place, classes, Some(3));
        first.append(&mut lines);
        return first;
    }
    lines
}

/// Hash tables of u32, one below the other or by themselves.
fn table(dice: &mut Dice, classes: &[&str]) -> Vec<String> {
    let base = "tc filter add dev eth0 parent 1: protocol ip prio 8";
    let divisor = dice.of(&[4, 16, 256]);
    let mut lines = vec![format!("{base} handle 2: u32 divisor {divisor}")];
    let deep = dice.below(2) == 0;
    if deep {
        lines.push(format!("{base} handle 3: u32 divisor 8"));
        for _ in 0..1 + dice.below(4) {
            let asks = dice.one(&["match u32 0 0", "match tcp dst 80 0xffff", "match ip src 10.0.0.0/9"]);
            let end = dice.one(&["", "", " action drop", " action continue"]);
            lines.push(format!(
                "{base} u32 ht 3:{}: {asks} classid {}{end}",
                dice.below(8),
                dice.one(classes)
            ));
        }
        for bucket in 0..4 {
            if dice.below(2) == 0 {
                let mask = dice.one(&["0x7 at 12", "0x700 at 16", "0x70000000 at 20"]);
                let proto = dice.of(&[6, 17]);
                lines.push(format!(
                    "{base} u32 ht 2:{bucket}: match ip protocol {proto} 0xff hashkey mask {mask} link 3:"
                ));
            }
        }
    }
    for _ in 0..1 + dice.below(6) {
        let asks = dice.one(&[
            "match ip src 10.0.0.0/9",
            "match ip protocol 17 0xff",
            "match u32 0 0",
            "match tcp dst 80 0xffff",
        ]);
        lines.push(format!("{base} u32 ht 2:{:x}: {asks} classid {}", dice.below(4), dice.one(classes)));
    }
    let offset = dice.one(&[
        "",
        " offset at 0 mask 0x0f00 shift 6",
        " offset at 0 mask 0x0f00 shift 6 eat",
        " offset plus 20",
    ]);
    let key = dice.one(&["0x3 at 16", "0xff at 16", "0xff at 12", "0xff00 at 16", "0xffff at 20"]);
    let end = dice.one(&["", " classid 1:30"]);
    lines
        .push(format!("{base} u32 ht 800:: match ip dst 10.0.0.0/8 hashkey mask {key} link 2:{offset}{end}"));
    lines
}

/// Qdiscs, classes and filters of `eth0`.
pub fn tree(dice: &mut Dice) -> Vec<String> {
    let class = |all: &[(&str, &str)], words: &str| -> Vec<String> {
        all.iter().map(|(p, c)| format!("tc class add dev eth0 parent {p} classid {c} {words}")).collect()
    };
    let flat = [("1:", "1:10"), ("1:", "1:20"), ("1:", "1:30")];
    let deep = [
        ("1:", "1:1"),
        ("1:1", "1:10"),
        ("1:1", "1:20"),
        ("1:20", "1:21"),
        ("1:20", "1:22"),
        ("1:1", "1:30"),
    ];
    let mut lines = Vec::new();
    let inner;
    match dice.below(9) {
        0 | 1 => {
            let bands = dice.one(&["prio bands 4", "ets bands 4 strict 2 quanta 3000 1500"]);
            let map: Vec<String> = (0..16).map(|_| dice.below(4).to_string()).collect();
            lines.push(format!("tc qdisc add dev eth0 root handle 1: {bands} priomap {}", map.join(" ")));
            inner = "1:2";
            let classes = ["1:1", "1:2", "1:3", "1:4", "1:9"];
            lines.extend(chained(dice, "parent 1:", &classes));
            if dice.below(2) == 0 {
                lines.extend(table(dice, &classes[..2]));
            }
        }
        2 => {
            lines.push(format!(
                "tc qdisc add dev eth0 root handle 1: hfsc default {}",
                dice.one(&["30", "10", "77"])
            ));
            lines.extend(class(&deep, "hfsc sc rate 1gbit"));
            inner = "1:10";
            lines.extend(chained(dice, "parent 1:", &["1:10", "1:20", "1:21", "1:30", "1:99"]));
            if dice.below(2) == 0 {
                lines.extend(filters(dice, "parent 1:20", &["1:21", "1:10"], None));
            }
        }
        3 | 4 => {
            let kind = dice.one(&["drr", "qfq"]);
            lines.push(format!("tc qdisc add dev eth0 root handle 1: {kind}"));
            lines.extend(class(&flat, if kind == "qfq" { "qfq weight 1 maxpkt 2048" } else { kind }));
            inner = "1:10";
            lines.extend(chained(dice, "parent 1:", &["1:10", "1:20", "1:30", "1:99"]));
            if dice.below(2) == 0 {
                lines.extend(table(dice, &["1:10", "1:20"]));
            }
        }
        _ => {
            lines.push(format!(
                "tc qdisc add dev eth0 root handle 1: htb default {}",
                dice.one(&["0", "30", "1", "77", "20"])
            ));
            lines.extend(class(&deep, "htb rate 1gbit quantum 1514"));
            inner = "1:10";
            lines.extend(chained(dice, "parent 1:", &["1:10", "1:20", "1:21", "1:30", "1:1", "1:0", "1:99"]));
            if dice.below(2) == 0 {
                lines.extend(filters(dice, "parent 1:20", &["1:21", "1:22", "1:10"], None));
            }
            if dice.below(2) == 0 {
                lines.extend(table(dice, &["1:10", "1:21", "1:22", "1:20"]));
            }
        }
    }
    match dice.below(4) {
        0 => {
            lines.push(format!("tc qdisc add dev eth0 parent {inner} handle 10: prio bands 3"));
            for line in filters(dice, "parent 10:", &["10:1", "10:2", "10:3"], None) {
                lines.push(line.replace(" action goto chain 3", "").replace(" reclassify", " continue"));
            }
        }
        1 => {
            lines.push(format!(
                "tc qdisc add dev eth0 parent {inner} handle 10: {}",
                dice.one(&["sfq", "fq_codel", "pfifo limit 500", "fq_pie", "codel"])
            ));
        }
        _ => {}
    }
    if dice.below(3) == 0 {
        lines.push("tc qdisc add dev eth0 clsact".to_owned());
        for line in filters(dice, "egress", &["1:10", "1:20", "1:22"], None) {
            lines.push(line.replace(" action goto chain 3", " action continue"));
        }
    }
    lines
}

/// Rules of netfilter for one family.
pub fn rules(dice: &mut Dice, six: bool) -> Vec<String> {
    let table = if six { "ip6tables" } else { "iptables" };
    let nets = if six { ["2001:db8::/48", "2001:db8:1::/48"] } else { ["10.0.0.0/9", "10.1.0.0/16"] };
    let mut lines = vec![format!("{table} -t mangle -N S")];
    for _ in 0..2 + dice.below(8) {
        let asks = match dice.below(28) {
            0 => format!("-s {}", nets[0]),
            1 => format!("! -s {}", nets[0]),
            2 => format!("-d {}", nets[1]),
            3 => format!("! -d {}", nets[1]),
            _ => dice
                .one(&[
                    "-p tcp",
                    "-p udp",
                    "-p tcp --dport 80",
                    "-p udp --dport 53",
                    "-p tcp -m multiport --dports 22,53,80",
                    "-m dscp --dscp 46",
                    "-m tos --tos 0x10",
                    "-m length --length 0:100",
                    "-m mark --mark 0",
                    "-m mark --mark 2",
                    "-m mark ! --mark 0x1/0x1",
                    "! -p tcp",
                    "-p tcp --sport 80:81",
                    "",
                    "-p tcp --tcp-flags SYN,ACK ACK",
                    "-p tcp ! --dport 80",
                    "-p udp -m multiport ! --sports 53,80",
                    "-m dscp ! --dscp 0",
                    "-p tcp -m multiport --ports 80,4000:5000",
                    "-m length ! --length 100:1400",
                    if six { "-p icmpv6" } else { "-p icmp" },
                    "-p gre",
                    "-m connmark --mark 0",
                ])
                .to_owned(),
        };
        let then = dice.one(&[
            "-j MARK --set-mark 1",
            "-j MARK --set-mark 2",
            "-j MARK --set-mark 3",
            "-j MARK --set-xmark 0x1/0x1",
            "-j ACCEPT",
            "-j RETURN",
            "-j S",
            "-j S",
            "-j TOS --set-tos 0x10",
            "-j CLASSIFY --set-class 1:10",
            "-j DROP",
            "-j MARK --or-mark 2",
            "-j MARK --and-mark 1",
            "-j MARK --xor-mark 3",
            "-j DSCP --set-dscp 46",
            "-g S",
            "-j MARK --set-mark 0x2/0x3",
            "-j CONNMARK --save-mark",
            "-j CONNMARK --restore-mark",
            "-j TOS --set-tos 0x8/0x1c",
            "-j CONNMARK --set-mark 3",
            "-j CLASSIFY --set-class 1:20",
        ]);
        let chain = dice.one(&["PREROUTING", "PREROUTING", "FORWARD", "POSTROUTING", "OUTPUT", "S", "S"]);
        if chain == "S" && then.ends_with(" S") || then == "-j DROP" && asks.is_empty() {
            continue;
        }
        let by = match chain {
            "PREROUTING" if dice.below(2) == 0 => dice.one(&["-i eth1 ", "-i eth2 ", "-i eth+ "]),
            "FORWARD" | "POSTROUTING" if dice.below(4) == 0 => {
                dice.one(&["-o eth0 ", "-o eth1 ", "-o eth+ "])
            }
            _ => "",
        };
        lines.push(format!("{table} -t mangle -A {chain} {by}{asks} {then}").replace("  ", " "));
    }
    if !six && dice.below(3) == 0 {
        let nat = dice.one(&[
            "-j SNAT --to-source 10.0.0.1",
            "-j SNAT --to-source 192.0.2.1",
            "-j MASQUERADE",
            "-s 10.0.0.0/9 -j SNAT --to-source 10.130.0.1",
            "-p tcp -j SNAT --to-source 10.1.0.1",
        ]);
        lines.push(format!("iptables -t nat -A POSTROUTING -o eth0 {nat}"));
    }
    lines
}

/// A set, and whether it has rules of netfilter.
pub fn set(dice: &mut Dice) -> (Vec<String>, bool) {
    let mut lines = tree(dice);
    let wall = dice.below(2) == 0;
    if wall {
        lines.extend(rules(dice, false));
        if dice.below(2) == 0 {
            lines.extend(rules(dice, true));
        }
    }
    (lines, wall)
}

/// A packet in the words of a probe.
pub fn packet(dice: &mut Dice, wall: bool) -> (String, u32) {
    let six = dice.below(3) == 0;
    let protocol: u8 = dice.of(&[6, 17, 6, 47, if six { 58 } else { 1 }]);
    let more: &[u16] = match protocol {
        6 => &[20, 44, 1440],
        17 => &[8, 10, 44, 1440],
        _ => &[8, 44, 1440],
    };
    let len = dice.of(more) + if six { 40 } else { 20 };
    let (sport, dport): (u16, u16) = match protocol {
        6 | 17 => (dice.of(&[80, 81, 53, 4000]), dice.of(&[53, 80, 22])),
        1 => (0, 8 << 8),
        58 => (0, 128 << 8),
        _ => (0, 0),
    };
    let mut end = |port: u16| match six {
        true => format!("[2001:db8:{}::{:x}]:{port}", dice.one(&["0", "1", "a0"]), 1 + dice.below(3)),
        false => format!(
            "10.{}.{}.{}:{port}",
            dice.one(&["0", "1", "130"]),
            dice.one(&["0", "0", "7"]),
            1 + dice.below(4)
        ),
    };
    let (src, dst) = (end(sport), end(dport));
    let name = match protocol {
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        1 | 58 => "icmp".to_owned(),
        other => other.to_string(),
    };
    let mut text = format!("{name} {src} > {dst} tos {:#x} len {len}", dice.of(&[0, 0x10, 0xb8, 0x12]));
    if wall && dice.below(3) > 0 {
        return (format!("{text} in eth{}", 1 + dice.below(2)), 0);
    }
    let priority = dice.below(7) as u32;
    if !wall {
        let tag = match six {
            true if text.contains("> [2001:db8:1:") => " vlan 10",
            true if text.contains("> [2001:db8:a0:") => " vlan 99",
            true => "",
            false => dice.one(&["", "", " vlan 10", " vlan 99"]),
        };
        text += tag;
        if !tag.is_empty() && priority > 0 {
            text += &format!(" pcp {priority}");
        }
        text += &format!(" mark {}", dice.below(5));
    }
    (text, priority)
}

/// Words and what may stand in their place.
const OTHERWISE: &[(&str, &str)] = &[
    ("10.1.0.0/16", "10.1.0.0/17"),
    ("10.0.0.0/9", "10.0.0.0/10"),
    ("2001:db8:1::/48", "2001:db8:1::/49"),
    ("2001:db8::/48", "2001:db8::/32"),
    ("dst_port 53", "dst_port 22"),
    ("ip_proto tcp", "ip_proto udp"),
    ("protocol 6 0xff", "protocol 17 0xff"),
    ("dport 53 0xffff", "dport 80 0xffff"),
    ("--dport 80", "--dport 22"),
    ("--set-mark 1", "--set-mark 2"),
    ("--set-mark 3", "--set-mark 1"),
    ("skbedit mark 1", "skbedit mark 2"),
    ("classid 1:10", "classid 1:20"),
    ("classid 1:20", "classid 1:30"),
    ("classid 1:1", "classid 1:2"),
    ("protocol ip prio 1", "protocol ip prio 7"),
    ("action drop", "action ok"),
    ("action continue", "action drop"),
    ("action ok", "action continue"),
    ("default 30", "default 10"),
    ("default 0", "default 30"),
    ("tos 0x10", "tos 0xb8"),
    ("protocol ipv6", "protocol ip"),
    ("protocol all", "protocol ip"),
    ("handle 1 fw", "handle 2 fw"),
    ("vlan_id 10", "vlan_id 99"),
    ("--dscp 46", "--dscp 4"),
    ("-i eth1", "-i eth2"),
    ("-o eth0", "-o eth1"),
    ("-p tcp", "-p udp"),
    (" or ", " and "),
    ("not ", ""),
    ("priomap 0", "priomap 1"),
    ("rate 10gbit", "rate 1gbit"),
    ("mask 0x3", "mask 0xf"),
    ("gt 100", "gt 1000"),
    ("--to-source 10.0.0.1", "--to-source 10.130.0.1"),
    ("MASQUERADE", "SNAT --to-source 10.1.0.9"),
    ("sfq", "fq_codel"),
    ("pfifo limit 500", "pfifo limit 501"),
    ("redirect dev ifb0", "mirror dev ifb0"),
    ("prio bands 3", "prio bands 3 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"),
    ("--length 0:100", "--length 0:60"),
    ("htb rate 1gbit", "htb rate 2gbit"),
    ("hfsc sc", "hfsc ls"),
    ("goto chain 3", "ok"),
    ("mark set 1", "mark set 2"),
    ("mark set 3", "mark set 1"),
    ("tcp dport 80 ", "tcp dport 22 "),
    ("tcp : accept", "tcp : drop"),
    ("priority -150;", "priority -170;"),
    ("policy drop;", ""),
    ("new : jump S", "new : accept"),
    ("{ 22, 53 }", "{ 53, 80 }"),
    ("iifname eth1", "iifname eth2"),
    ("dscp set ef", "dscp set cs1"),
    ("80, 50-60", "22, 50-60"),
    ("priority set 1:10", "priority set 1:20"),
];

/// The commands with one thing changed, or written otherwise without a change of meaning.
pub fn changed(dice: &mut Dice, commands: &[String]) -> Vec<String> {
    let mut out = commands.to_vec();
    let places: Vec<usize> = (0..out.len())
        .filter(|n| [" filter add ", " -A ", " rule "].iter().any(|w| out[*n].contains(w)))
        .collect();
    if places.is_empty() {
        return out;
    }
    let (at, other) = (dice.of(&places), dice.of(&places));
    match dice.below(6) {
        0 => drop(out.remove(at)),
        1 => out.swap(at, other),
        2 => {
            // One more, from a set of its own.
            let (more, _) = set(dice);
            let fits = |l: &&String| {
                l.contains("parent 1: ")
                    && l.contains(" filter add ")
                    && !l.contains(" ht ")
                    && !l.contains("divisor")
            };
            let fits = more.iter().find(fits).cloned();
            out.extend(fits);
        }
        _ => {
            let fits: Vec<(usize, (&str, &str))> = OTHERWISE
                .iter()
                .flat_map(|w| out.iter().enumerate().filter(|l| l.1.contains(w.0)).map(|l| (l.0, *w)))
                .collect();
            if !fits.is_empty() {
                let (line, (old, new)) = fits[dice.below(fits.len())];
                out[line] = out[line].replacen(old, new, 1);
            }
        }
    }
    out
}
