//! Random rules of nft, alone or beside those of iptables: tables of every family, priorities, sets, maps, chains within chains.

use super::sets::{Dice, rules, tree};

/// Base chains: the table, the name, where it hangs.
const CHAINS: &[(&str, &str, &str)] = &[
    ("inet fw", "pre", "type filter hook prerouting priority -150;"),
    ("inet fw", "fwd", "type filter hook forward priority 0;"),
    ("inet fw", "post", "type filter hook postrouting priority -160;"),
    ("inet fw", "out", "type route hook output priority -140;"),
    ("ip m", "pre", "type filter hook prerouting priority -160;"),
    ("ip m", "post", "type filter hook postrouting priority -150;"),
    ("ip m", "late", "type filter hook postrouting priority 110;"),
    ("ip6 m6", "post", "type filter hook postrouting priority -140;"),
    ("netdev d", "in1", "type filter hook ingress device eth1 priority 0;"),
    ("netdev d", "out0", "type filter hook egress device eth0 priority 0;"),
];

const ANY: &[&str] = &[
    "meta l4proto tcp",
    "meta l4proto { tcp, udp }",
    "meta l4proto != tcp",
    "tcp dport 80",
    "tcp dport != 80",
    "udp dport 53",
    "udp dport { 22, 53 }",
    "tcp sport 80-81",
    "tcp dport { 22, 50-60 }",
    "th dport 80",
    "udp sport != { 53, 80 }",
    "tcp flags & (syn|ack) == ack",
    "tcp flags syn",
    "tcp flags != syn",
    "meta length < 100",
    "meta length 100-1400",
    "meta length > 1000",
    "meta mark 0",
    "meta mark 2",
    "meta mark != 0",
    "meta mark & 0x1 == 0x1",
    "meta mark { 1, 3 }",
    "ct state new",
    "ct state established,related",
    "ct state != new",
    "ct state { new, established }",
    "ct mark 0",
    "ct mark != 0",
    "meta nfproto ipv4",
    "iifname eth1",
    "iifname \"eth*\"",
    "iifname { eth1, eth2 }",
    "iifname != eth1",
    "oifname eth0",
    "oifname != eth0",
    "meta l4proto . th dport { tcp . 80, udp . 53 }",
    "tcp dport @ports",
    "udp dport != @ports",
    "",
    "",
];
const FOUR: &[&str] = &[
    "ip saddr 10.0.0.0/9",
    "ip saddr != 10.0.0.0/9",
    "ip daddr 10.1.0.0/16",
    "ip daddr { 10.0.0.1, 10.1.0.0/16 }",
    "ip daddr != { 10.0.0.1, 10.1.0.0/16 }",
    "ip protocol tcp",
    "ip protocol gre",
    "ip dscp ef",
    "ip dscp != 0",
    "ip dscp { cs0, ef }",
    "ip ecn 2",
    "ip length < 64",
    "ip saddr . tcp dport { 10.0.0.1 . 80, 10.130.0.0/16 . 22 }",
    "ip daddr 10.0.0.2-10.1.0.2",
    "icmp type echo-request",
    "ip saddr & 0.0.0.3 == 0.0.0.1",
];
const SIX: &[&str] = &[
    "ip6 saddr 2001:db8::/48",
    "ip6 daddr 2001:db8:1::/48",
    "ip6 daddr != 2001:db8:1::/48",
    "ip6 daddr { 2001:db8:a0::1, 2001:db8:1::/64 }",
    "ip6 nexthdr udp",
    "ip6 dscp ef",
    "icmpv6 type echo-request",
    "ip6 saddr 2001:db8::1-2001:db8::2",
];
const THEN: &[&str] = &[
    "meta mark set 1",
    "meta mark set 2",
    "meta mark set 3",
    "meta mark set meta mark | 0x1",
    "meta mark set meta mark & 0x2",
    "meta mark set meta mark ^ 0x3",
    "meta mark set meta mark & 0xfffffffc | 0x2",
    "ct mark set 3",
    "ct mark set meta mark",
    "meta mark set ct mark",
    "meta priority set 1:10",
    "meta priority set 1:20",
    "counter accept",
    "return",
    "jump S",
    "jump S",
    "goto S",
    "drop",
    "meta mark set 1 accept",
    "meta mark set 2 tcp dport 80 meta mark set 3",
    "meta mark set 3 meta mark 3 ct mark set 2",
    "ct mark set 1 jump S",
    "meta l4proto vmap { tcp : accept, udp : jump S }",
    "tcp dport vmap { 80 : return, 22 : goto S, 50-60 : accept }",
    "ct state vmap { established : accept, new : jump S }",
    "meta mark set tcp dport map { 80 : 0x1, 22 : 0x2 }",
    "meta mark set meta l4proto map { tcp : 0x3, udp : 0x1 } accept",
    "meta mark vmap { 0 : continue, 1 : accept, 2 : jump S }",
    "meta mark set udp dport map @marks",
    "drop",
];
const THEN_FOUR: &[&str] = &[
    "ip dscp set ef",
    "ip dscp set cs1",
    "ip dscp set 0 meta mark set 2",
    "meta mark set ip dscp map { 0 : 0x1, ef : 0x2 }",
    "ip saddr vmap { 10.0.0.0/9 : jump S, 10.130.0.1 : accept }",
    "meta priority set ip dscp map { cs2 : 1:10, ef : 1:20 }",
];
const THEN_SIX: &[&str] = &[
    "ip6 dscp set ef",
    "ip6 dscp set cs1",
    "meta mark set ip6 daddr map { 2001:db8:1::/48 : 0x1, 2001:db8::1 : 0x3 }",
];

/// One rule's text.
fn rule(dice: &mut Dice, table: &str) -> String {
    let (four, six) = (!table.starts_with("ip6"), !table.starts_with("ip "));
    let ask = |dice: &mut Dice| match dice.below(4) {
        0 if four => dice.one(FOUR),
        1 if six => dice.one(SIX),
        _ => dice.one(ANY),
    };
    let then = match dice.below(6) {
        0 if four => dice.one(THEN_FOUR),
        1 if six => dice.one(THEN_SIX),
        _ => dice.one(THEN),
    };
    let (a, b) = (ask(dice), if dice.below(3) == 0 { ask(dice) } else { "" });
    // Not every packet is to be dropped.
    let then = if a.is_empty() && then == "drop" { "return" } else { then };
    format!("{a} {b} {then}").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn of_nft(dice: &mut Dice) -> Vec<String> {
    let mut lines = Vec::new();
    for table in ["inet fw", "ip m", "ip6 m6", "netdev d"] {
        lines.push(format!("nft add table {table}"));
        lines.push(format!("nft 'add chain {table} S'"));
        lines.push(format!(
            "nft 'add set {table} ports {{ type inet_service; flags interval; elements = {{ 80, 50-60 }}; }}'"
        ));
        lines.push(format!(
            "nft 'add map {table} marks {{ type inet_service : mark; elements = {{ 53 : 0x2, 22 : 0x1 }}; }}'"
        ));
    }
    let mut chains = Vec::new();
    for &(table, name, hangs) in CHAINS {
        if dice.below(3) == 0 {
            let policy = if dice.below(6) == 0 { " policy drop;" } else { "" };
            lines.push(format!("nft 'add chain {table} {name} {{ {hangs}{policy} }}'"));
            chains.push((table, name));
        }
    }
    for _ in 0..3 + dice.below(9) {
        if chains.is_empty() {
            break;
        }
        let (table, name) = dice.of(&chains);
        let name = if dice.below(3) == 0 { "S" } else { name };
        let rule = rule(dice, table);
        if name == "S" && (rule.contains("jump") || rule.contains("goto")) {
            continue;
        }
        let verb = if dice.below(5) == 0 { "insert" } else { "add" };
        lines.push(format!("nft '{verb} rule {table} {name} {rule}'"));
    }
    if dice.below(3) == 0 {
        lines.push("nft 'add table ip n'".to_owned());
        lines.push("nft 'add chain ip n post { type nat hook postrouting priority 100; }'".to_owned());
        let nat = dice.one(&[
            "oifname eth0 masquerade",
            "oifname eth0 snat to 10.0.0.1",
            "ip saddr 10.0.0.0/9 oifname eth0 snat to 10.130.0.1",
            "tcp dport 80 snat to 10.1.0.1",
        ]);
        lines.push(format!("nft 'add rule ip n post {nat}'"));
    }
    lines
}

/// A set with rules of nft; rules of iptables may stand beside them.
pub fn set(dice: &mut Dice) -> (Vec<String>, bool) {
    // Large hash tables make long lists of parts; they have tests of their own. What is forwarded leaves with a TTL one less.
    let mut lines = tree(dice);
    while lines.iter().any(|l| l.contains(" divisor ") || l.contains("ip_ttl")) {
        lines = tree(dice);
    }
    if dice.below(3) == 0 {
        lines.extend(rules(dice, false));
    }
    lines.extend(of_nft(dice));
    (lines, true)
}
