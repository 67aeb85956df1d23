//! Where `explain` says a packet goes is where the simulated qdiscs put it: random filters, random packets.

use penstock_check::explain::{Probe, Reached, Sorter, device, partition};
use penstock_check::{Settings, facts};
use penstock_lang::tc::{self, Command};
use penstock_lang::token::Line;
use penstock_model::{Handle, Kernel, Rng, Time};
use penstock_packet::headers::{Ipv4, Tcp, TcpFlags, Udp};
use penstock_packet::{L3, L4, Skb};
use penstock_sched::{Actions, Cx, Device, Ledger, Tree};
use penstock_shell::Script;
use std::net::{IpAddr, Ipv4Addr};

/// Numbers in a fixed order.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }
}

fn filters(dice: &mut Dice, text: &mut String, classes: &[&str], parent: &str) {
    for _ in 0..1 + dice.below(8) {
        let prio = 1 + dice.below(7);
        // One kind a priority, as the kernel wants it.
        let what = match prio {
            1 => format!("handle {} fw", 1 + dice.below(3)),
            2 => format!("flower {}", dice.one_of(&FLOWER)),
            3 => format!("basic match {}", dice.one_of(&BASIC)),
            _ => {
                let one = |dice: &mut Dice| {
                    dice.one_of(&[
                        "match ip src 10.0.0.0/9",
                        "match ip dst 10.1.0.0/16",
                        "match ip protocol 6 0xff",
                        "match ip protocol 17 0xff",
                        "match ip dport 53 0xffff",
                        "match ip sport 80 0xfff0",
                        "match ip tos 0x10 0xff",
                        "match u32 0 0",
                        "match u8 0x05 0x0f at 0",
                        "match u16 0x0000 0xffc0 at 2",
                    ])
                };
                let (a, b) = (one(dice), one(dice));
                if a.split(' ').nth(2) == b.split(' ').nth(2) {
                    format!("u32 {a}")
                } else {
                    format!("u32 {a} {b}")
                }
            }
        };
        let class = dice.one_of(classes);
        let action = dice.one_of(&["", "", "", "", " action drop", " action continue", " action ok"]);
        *text += &format!(
            "tc filter add dev eth0 parent {parent} protocol ip prio {prio} {what} classid {class}{action}\n"
        );
    }
}

const FLOWER: [&str; 8] = [
    "ip_proto tcp",
    "ip_proto udp dst_port 53",
    "ip_proto tcp src_port 80",
    "src_ip 10.0.0.0/9",
    "dst_ip 10.1.0.0/16 ip_proto udp",
    "ip_tos 0xb8/0xfc",
    "ip_proto tcp dst_port 50-79",
    "ip_proto tcp tcp_flags 0x10/0x10",
];
const BASIC: [&str; 6] = [
    "'cmp(u8 at 9 layer network eq 6)'",
    "'cmp(u16 at 2 layer transport gt 60)'",
    "'not u32(u32 0x0a000000 0xffff0000 at 12)'",
    "'cmp(u8 at 1 layer network eq 0x10) or meta(fwmark gt 2)'",
    "'cmp(u8 at 9 layer network eq 17) and not (cmp(u16 at 2 layer transport lt 54) or meta(priority eq 3))'",
    "'meta(pkt_len gt 100)'",
];

/// A hash table of four buckets by the last bits of the destination.
fn table(dice: &mut Dice, text: &mut String, classes: &[&str]) {
    let base = "tc filter add dev eth0 parent 1: protocol ip prio 8";
    *text += &format!("{base} handle 2: u32 divisor 4\n");
    for _ in 0..1 + dice.below(6) {
        let what = dice.one_of(&[
            "match ip src 10.0.0.0/9",
            "match ip protocol 17 0xff",
            "match u32 0 0",
            "match tcp dst 80 0xffff",
            "match udp src 53 0xffff",
        ]);
        let (bucket, class) = (dice.below(4), dice.one_of(classes));
        *text += &format!("{base} u32 ht 2:{bucket:x}: {what} classid {class}\n");
    }
    let offset = dice.one_of(&[
        "",
        " offset at 0 mask 0x0f00 shift 6",
        " offset at 0 mask 0x0f00 shift 6 eat",
        " offset plus 20",
    ]);
    let class = dice.one_of(&["", " classid 1:1"]);
    *text += &format!(
        "{base} u32 ht 800:: match ip dst 10.0.0.0/8 hashkey mask 0x3 at 16 link 2:{offset}{class}\n"
    );
}

/// Commands for eth0.
fn set(dice: &mut Dice) -> String {
    let mut text = String::new();
    if dice.below(4) == 0 {
        text += "tc qdisc add dev eth0 root handle 1: prio bands 4\n";
        filters(dice, &mut text, &["1:1", "1:2", "1:3", "1:4", "1:9"], "1:");
        if dice.below(2) == 0 {
            table(dice, &mut text, &["1:1", "1:4"]);
        }
        return text;
    }
    let default = dice.one_of(&["0", "30", "1", "77"]);
    text += &format!("tc qdisc add dev eth0 root handle 1: htb default {default}\n");
    for class in [
        "parent 1: classid 1:1",
        "parent 1:1 classid 1:10",
        "parent 1:1 classid 1:20",
        "parent 1:20 classid 1:21",
        "parent 1:20 classid 1:22",
        "parent 1:1 classid 1:30",
    ] {
        text += &format!("tc class add dev eth0 {class} htb rate 1mbit quantum 1514\n");
    }
    filters(dice, &mut text, &["1:10", "1:20", "1:21", "1:30", "1:1", "1:0", "1:99"], "1:");
    if dice.below(2) == 0 {
        filters(dice, &mut text, &["1:21", "1:22", "1:10"], "1:20");
    }
    if dice.below(2) == 0 {
        table(dice, &mut text, &["1:10", "1:21", "1:20"]);
    }
    text
}

fn packet(dice: &mut Dice) -> Probe {
    let addr =
        |dice: &mut Dice| Ipv4Addr::new(10, [0, 1, 130][dice.below(3) as usize], 0, dice.below(3) as u8);
    Probe {
        protocol: [6, 17, 6, 47][dice.below(4) as usize],
        src: addr(dice).into(),
        dst: addr(dice).into(),
        sport: [80, 81, 53, 4000][dice.below(4) as usize],
        dport: [53, 80, 22][dice.below(3) as usize],
        tos: [0, 0x10, 0xb8, 0x12][dice.below(4) as usize],
        len: [40, 64, 1500][dice.below(3) as usize],
        mark: dice.below(5) as u32,
        priority: dice.below(8) as u32,
        ..Probe::default()
    }
}

fn four(addr: IpAddr) -> Ipv4Addr {
    match addr {
        IpAddr::V4(addr) => addr,
        IpAddr::V6(addr) => panic!("{addr}"),
    }
}

fn skb(p: &Probe) -> Skb {
    let l4 = match p.protocol {
        6 => L4::Tcp(Tcp { sport: p.sport, dport: p.dport, flags: TcpFlags(0x10), ..Tcp::default() }),
        17 => L4::Udp(Udp { sport: p.sport, dport: p.dport }),
        _ => L4::None,
    };
    Skb {
        priority: p.priority,
        mark: p.mark,
        ..Skb::new(
            u32::from(p.len) + 14,
            L3::Ipv4(Ipv4 { tos: p.tos, ..Ipv4::new(four(p.src), four(p.dst), p.protocol) }),
            l4,
        )
    }
}

/// Words of a line; what stands between single quotes is one.
fn quoted(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(n, part)| match n % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect::<Vec<_>>(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

#[test]
fn ten_thousand_packets_over_two_hundred_sets_of_filters() {
    let mut dice = Dice(7);
    let mut tried = 0;
    for round in 0..200 {
        let text = set(&mut dice);
        let facts = facts(&Script { text: text.clone(), ..Script::default() }, &Settings::default());
        let eth0 = device(&facts, "eth0").unwrap();
        // The same commands on a tree of the simulator's.
        let spec = Device {
            ifindex: 2,
            mtu: 1500,
            hard_header_len: 14,
            tx_queue_len: 1000,
            tx_queues: 1,
            speed_mbit: None,
            kernel: Kernel::V6_12,
            clock: penstock_model::PschedClock::default(),
            hz: Kernel::V6_12.hz(),
        };
        let mut tree = Tree::new(spec);
        let (mut rng, mut drops, mut acts) = (Rng::named(1, "test"), Ledger::new(), Actions::new());
        for (n, line) in text.lines().enumerate() {
            let words: Vec<String> = quoted(line);
            let commands = tc::parse(&Line::of_words(&words).words, Kernel::V6_12).unwrap();
            let mut cx = Cx { now: Time::ZERO, rng: &mut rng, drops: &mut drops, acts: &mut acts };
            let done = match &commands[0] {
                Command::Qdisc { req, .. } => tree.qdisc(req, &mut cx),
                Command::Class { req, .. } => tree.class(req, &mut cx),
                Command::Filter { req, .. } => tree.filter(req, &mut cx),
                other => panic!("{other:?}"),
            };
            // Both sides go without what the kernel refuses.
            assert_eq!(done.is_ok(), facts.steps[n].ok(), "{line}: {done:?}");
        }
        let sorter = Sorter::new(&facts, eth0);
        let parts = partition(&facts, "eth0").unwrap();
        assert!(!parts.cut, "{text}");
        let queued = |tree: &Tree| -> Vec<(Handle, u32)> {
            tree.dump_classes(Time::ZERO).iter().map(|c| (c.classid, c.stats.qlen)).collect()
        };
        for _ in 0..50 {
            let probe = packet(&mut dice);
            let before = queued(&tree);
            let mut cx = Cx { now: Time::ZERO, rng: &mut rng, drops: &mut drops, acts: &mut acts };
            let sent = tree.enqueue(Box::new(skb(&probe)), &mut cx);
            let after = queued(&tree);
            let leaf = |id: Handle| eth0.class(id).is_none_or(|c| c.children.is_empty());
            let went = before.iter().zip(&after).find(|(b, a)| a.1 > b.1 && leaf(a.0)).map(|(_, a)| a.0);
            let said = sorter.sort(&probe);
            assert_eq!(
                said.class, went,
                "round {round}: {probe:?}\n{text}\n{said:#?}\n{before:?}\n{after:?} {sent:?}"
            );
            // The parts of all packets say the same of this one.
            let part = parts.of(&probe).unwrap();
            assert_eq!(parts.class(part), went, "round {round}: {probe:?}\n{text}\n{}", parts.text());
            assert!(parts.parts[part].left != Reached::Never, "{probe:?} {}", parts.text());
            tried += 1;
        }
    }
    assert_eq!(tried, 10_000);
}

#[test]
fn a_packet_of_the_study_goes_to_its_class() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 15mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:10 htb rate 6mbit ceil 6mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit ceil 1mbit\n\
                tc qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 20\n\
                tc filter add dev eth0 parent 1:0 prio 1 protocol ip handle 10 fw flowid 1:10\n\
                iptables -t mangle -N INSHAPER\n\
                iptables -t mangle -I PREROUTING -i eth1 -j INSHAPER\n\
                iptables -t mangle -A INSHAPER -p tcp --dport 5001 -j MARK --set-mark 10\n";
    let facts = facts(&Script { text: text.to_owned(), ..Script::default() }, &Settings::default());
    let ask =
        |text: &str| penstock_check::explain::explain(&facts, "eth0", &Probe::parse(text).unwrap()).unwrap();
    let marked = ask("tcp 10.3.34.11:40000 > 10.3.31.88:5001 in eth1");
    assert_eq!((marked.mark, marked.sorted.class), ((0, 10), Some(Handle::new(1, 0x10))));
    assert_eq!(marked.promise[0], "guaranteed 6mbit, ceiling 6mbit");
    assert_eq!(marked.promise[1], "borrows from nobody");
    // 20 frames of 1514 bytes at 6 Mbit/s are 40 ms; the rest is what the other leaf may send before.
    assert!(
        marked.promise.iter().any(|said| said.starts_with("a packet waits at most 4")),
        "{:?}",
        marked.promise
    );
    assert_eq!(ask("tcp 10.3.34.11:40000 > 10.3.31.88:5001").sorted.by, "default");
    assert_eq!(
        ask("udp 10.3.34.11:40000 > 10.3.31.88:5001 in eth1").sorted.class,
        Some(Handle::new(1, 0x30))
    );
}

#[test]
fn two_scripts_side_by_side() {
    let base = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 6mbit\n\
                tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit\n\
                tc filter add dev eth0 parent 1: prio 1 protocol ip u32 match ip dst 10.1.0.0/16 flowid 1:10\n";
    let of = |text: &str| facts(&Script { text: text.to_owned(), ..Script::default() }, &Settings::default());
    let diff = |a: &str, b: &str| penstock_check::explain::diff(&of(a), &of(b), "eth0").unwrap();
    assert_eq!(diff(base, base), Vec::<String>::new());
    let moved = base.replace("flowid 1:10", "flowid 1:20");
    let said = diff(base, &moved);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("ip, dst 10.1.0.0/16: 1:10 -> 1:20   (tcp "), "{said:?}");
    let said = diff(base, &base.replace("rate 6mbit", "rate 7mbit"));
    assert_eq!(said[0], "class 1:10: rate 6mbit ceil 6mbit -> rate 7mbit ceil 7mbit");
    assert!(said[1].starts_with("class 1:10: waits at most "), "{said:?}");
    // What only a combination of filters shows.
    let narrow = format!(
        "{base}tc filter add dev eth0 parent 1: prio 2 protocol ip u32 match ip src 10.0.0.0/8 flowid 1:10\n"
    );
    let said = diff(base, &narrow);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("ip, src 10.0.0.0/8 without dst 10.1.0.0/16: 1:20 -> 1:10"), "{said:?}");
}

#[test]
fn the_parts_of_all_packets() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 6mbit\n\
                tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit\n\
                tc filter add dev eth0 parent 1: prio 2 protocol ip u32 match ip dst 10.1.2.0/24 flowid 1:20\n\
                tc filter add dev eth0 parent 1: prio 1 protocol ip u32 match ip dst 10.1.0.0/16 flowid 1:10\n";
    let facts = facts(&Script { text: text.to_owned(), ..Script::default() }, &Settings::default());
    let parts = partition(&facts, "eth0").unwrap();
    let short: Vec<_> = parts
        .parts
        .iter()
        .map(|p| (p.line, p.packets.as_str(), p.class.as_str(), p.except.as_slice(), p.left))
        .collect();
    assert_eq!(
        short,
        [
            (5, "ip, dst 10.1.0.0/16", "1:10", [].as_slice(), Reached::Yes),
            (4, "ip, dst 10.1.2.0/24", "1:20", [0].as_slice(), Reached::Never),
            (0, "everything", "1:20", [0, 1].as_slice(), Reached::Yes),
        ]
    );
    assert_eq!(parts.never, [4]);
    assert_eq!(parts.json()["never"][0], 4);
}

#[test]
fn marks_that_rules_set_are_followed() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 6mbit\n\
                tc class add dev eth0 parent 1: classid 1:30 htb rate 1mbit\n\
                tc filter add dev eth0 parent 1:0 prio 1 protocol ip handle 10 fw flowid 1:10\n\
                tc filter add dev eth0 parent 1:0 prio 2 protocol ip handle 11 fw flowid 1:10\n\
                iptables -t mangle -N S\n\
                iptables -t mangle -A PREROUTING -i eth1 -j S\n\
                iptables -t mangle -A S -p tcp --dport 80:81 -j MARK --set-mark 10\n\
                iptables -t mangle -A S -s 10.9.0.0/16 -j MARK --set-mark 12\n";
    let facts = facts(&Script { text: text.to_owned(), ..Script::default() }, &Settings::default());
    let parts = partition(&facts, "eth0").unwrap();
    assert_eq!(parts.never, [5], "{}", parts.text());
    let class = |text: &str| {
        let probe = Probe::parse(text).unwrap();
        let said = penstock_check::explain::explain(&facts, "eth0", &probe).unwrap().sorted.class;
        assert_eq!(parts.class(parts.of(&probe).unwrap()), said, "{text}");
        said.map(|h| h.minor())
    };
    assert_eq!(class("tcp 10.1.0.1:4000 > 10.2.0.1:81 in eth1"), Some(0x10));
    assert_eq!(class("tcp 10.1.0.1:4000 > 10.2.0.1:81 in eth2"), Some(0x30));
    assert_eq!(class("tcp 10.1.0.1:4000 > 10.2.0.1:81"), Some(0x30));
    assert_eq!(class("tcp 10.9.0.1:4000 > 10.2.0.1:81 in eth1"), Some(0x30));
    assert_eq!(class("udp 10.1.0.1:4000 > 10.2.0.1:81 in eth1"), Some(0x30));
}

#[test]
fn the_priority_of_a_forwarded_packet_is_that_of_its_tos() {
    let text = "tc qdisc add dev eth0 root handle 1: prio\n\
                tc filter add dev eth0 parent 1: protocol all prio 1 basic match 'meta(priority gt 4)' flowid 1:2\n\
                tc filter add dev eth0 parent 1: protocol all prio 2 basic match 'not meta(priority eq 2)' flowid 1:1\n";
    let tos = "iptables -t mangle -A PREROUTING -p udp -j TOS --set-tos 0x08/0xff\n\
               iptables -t mangle -A POSTROUTING -p udp -j TOS --set-tos 0x10/0xff\n";
    for text in [text.to_owned(), format!("{text}{tos}")] {
        let facts = facts(&Script { text: text.clone(), ..Script::default() }, &Settings::default());
        let parts = partition(&facts, "eth0").unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for tos in 0..=255 {
            for ends in [
                "tcp 10.1.0.1:1 > 10.2.0.1:2",
                "udp 10.1.0.1:1 > 10.2.0.1:2",
                "tcp [2001:db8::1]:1 > [2001:db8::2]:2",
            ] {
                for input in ["", " in eth1"] {
                    let probe = Probe::parse(&format!("{ends} tos {tos}{input}")).unwrap();
                    let said = penstock_check::explain::explain(&facts, "eth0", &probe).unwrap().sorted.class;
                    let part = parts.of(&probe).unwrap();
                    assert_eq!(
                        parts.class(part),
                        said,
                        "{}: part {}\n{}",
                        probe.text(),
                        part + 1,
                        parts.text()
                    );
                    seen.insert(said);
                }
            }
        }
        assert_eq!(seen.len(), 3);
    }
}

#[test]
fn a_device_that_no_rule_names_fits_the_begin_of_its_name() {
    let base = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                tc class add dev eth0 parent 1: classid 1:10 htb rate 6mbit\n\
                tc class add dev eth0 parent 1: classid 1:30 htb rate 1mbit\n\
                tc filter add dev eth0 parent 1: prio 1 protocol ip handle 1 fw flowid 1:10\n";
    let rules = "iptables -t mangle -A PREROUTING -i eth+ -j MARK --set-mark 1\n\
                 iptables -t mangle -A PREROUTING -i eth1+ -j MARK --set-mark 2\n";
    let facts = |text: String| facts(&Script { text, ..Script::default() }, &Settings::default());
    let own = facts(format!("{base}{rules}"));
    let parts = partition(&own, "eth0").unwrap();
    let classes = ["eth2", "eth1", "eth17", "wlan0"].map(|dev| {
        let probe = Probe::parse(&format!("udp 10.0.0.1:1 > 10.0.0.2:2 in {dev}")).unwrap();
        let said = penstock_check::explain::explain(&own, "eth0", &probe).unwrap().sorted.class;
        assert_eq!(parts.class(parts.of(&probe).unwrap()), said, "{dev}: {}", parts.text());
        said.unwrap().minor()
    });
    assert_eq!(classes, [0x10, 0x30, 0x30, 0x30]);
    // A name that only the other script has is one of those of the first that begin so.
    let other = facts(format!("{base}{}", rules.replace("eth1+", "eth5")));
    let said = penstock_check::explain::diff(&own, &other, "eth0").unwrap();
    let mut said: Vec<&str> = said.iter().map(|line| line.split("   ").next().unwrap()).collect();
    said.sort_unstable();
    assert_eq!(said, ["ip, forwarded, in eth1+: 1:30 -> 1:10", "ip, forwarded, in eth5: 1:10 -> 1:30"]);
}

/// HTB with classes by mark 16 and by priority.
const CLASSES: &str = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
    tc class add dev eth0 parent 1: classid 1:10 htb rate 6mbit\n\
    tc class add dev eth0 parent 1: classid 1:20 htb rate 6mbit\n\
    tc class add dev eth0 parent 1: classid 1:30 htb rate 1mbit\n\
    tc filter add dev eth0 parent 1: prio 1 protocol ip handle 16 fw flowid 1:10\n";

/// Where packets go, what is said of them, and the line of the script that reads so.
fn asked(text: &str) -> (impl Fn(&str) -> (String, String), impl Fn(&str) -> String) {
    let facts = facts(&Script { text: text.to_owned(), ..Script::default() }, &Settings::default());
    let refused: Vec<&str> = facts.steps.iter().map(|s| s.output.stderr.as_str()).collect();
    assert!(refused.iter().all(|r| r.is_empty()), "{refused:?}");
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let ask = move |packet: &str| {
        let said = penstock_check::explain::explain(&facts, "eth0", &Probe::parse(packet).unwrap()).unwrap();
        (said.place(), said.hooks.join("\n"))
    };
    let line = move |text: &str| {
        let at = lines.iter().position(|l| l.contains(text)).unwrap_or_else(|| panic!("{text}"));
        format!("line {}", at + 1)
    };
    (ask, line)
}

#[test]
fn rules_of_nft_are_followed_with_their_lines() {
    let text = format!(
        "{CLASSES}nft -f - <<E
table inet fw {{
  set fast {{
    type ipv4_addr; flags interval
    elements = {{ 10.1.0.0/16 }}
  }}
  chain fwd {{
    type filter hook forward priority 0; policy drop;
    ct state established,related accept
    iifname eth1 accept
  }}
  chain post {{
    type filter hook postrouting priority mangle;
    ip daddr @fast tcp dport 443 meta mark set 0x10
    udp dport vmap {{ 53 : jump dns }}
    tcp dport 8080 limit rate 10/second meta mark set 0x10
    tcp dport 99 meta mark set numgen inc mod 2
    tcp dport 22 drop
  }}
  chain dns {{
    meta priority set 1:20
  }}
}}
E
"
    );
    let (ask, line) = asked(&text);
    let (place, said) = ask("tcp 10.0.0.1:4000 > 10.1.0.1:443 in eth1");
    assert_eq!(place, "1:10", "{said}");
    assert!(said.contains(&format!("inet fw post {}: ip daddr @fast", line("daddr @fast"))), "{said}");
    assert!(said.contains("inet fw post: mark 0 -> 16"), "{said}");
    assert!(
        said.contains(&format!("inet fw fwd {} asks for its connection's state", line("ct state"))),
        "{said}"
    );
    assert_eq!(ask("tcp 10.0.0.1:4000 > 10.2.0.1:443 in eth1").0, "1:30");
    let (place, said) = ask("udp 10.0.0.1:4000 > 10.1.0.1:53 in eth1");
    assert_eq!(place, "1:20", "{said}");
    assert!(
        said.contains(&format!("inet fw post dns {}: meta priority set 1:20", line("priority set"))),
        "{said}"
    );
    // The first packet of a connection from elsewhere falls through; a later one does not.
    let (place, said) = ask("tcp 10.0.0.1:4000 > 10.1.0.1:443 in eth2");
    assert_eq!(place, "dropped", "{said}");
    assert!(said.contains(&format!("inet fw fwd {}: policy drop", line("chain fwd"))), "{said}");
    assert_eq!(ask("tcp 10.0.0.1:4000 > 10.1.0.1:443 state established in eth2").0, "1:10");
    assert_eq!(ask("tcp 10.0.0.1:4000 > 10.1.0.1:22").0, "dropped");
    // What the headers do not tell is said at its line, and what is not followed.
    let (place, said) = ask("tcp 10.0.0.1:4000 > 10.1.0.1:8080");
    assert_eq!(place, "1:30");
    assert!(
        said.contains(&format!("{}: cannot be told from the headers alone", line("limit rate"))),
        "{said}"
    );
    let (_, said) = ask("tcp 10.0.0.1:4000 > 10.1.0.1:99");
    assert!(
        said.contains(&format!("{}: `meta mark set numgen inc mod 2` is not followed", line("numgen"))),
        "{said}"
    );
    let facts = facts(&Script { text: text.clone(), ..Script::default() }, &Settings::default());
    let parts = partition(&facts, "eth0").unwrap();
    let said = parts.text();
    let lost = format!("not followed: {}: `meta mark set numgen inc mod 2`", line("numgen"));
    assert!(parts.unfollowed.as_ref().is_some_and(|u| u.starts_with(&lost)), "{said}");
    assert!(said.contains(&format!("[limit rate 10/second, {}]", line("limit rate"))), "{said}");
    assert!(said.contains("ct state established,related"), "{said}");
    let dropped = parts.parts.iter().find(|p| p.class == "dropped" && p.packets.contains("dport 22"));
    assert_eq!(dropped.map(|p| format!("line {}", p.line)), Some(line("dport 22")), "{said}");
}

#[test]
fn chains_of_nft_stand_among_the_tables_by_their_priorities() {
    let of = |priority: i32| {
        format!(
            "{CLASSES}nft add table ip m
nft 'add chain ip m post {{ type filter hook postrouting priority {priority}; }}'
nft add rule ip m post tcp dport 80 meta mark set 5
iptables -t mangle -A POSTROUTING -m mark --mark 5 -j MARK --set-mark 16
"
        )
    };
    let packet = "tcp 10.0.0.1:4000 > 10.1.0.1:80 in eth1";
    for (priority, class) in [(-160, "1:10"), (-150, "1:30"), (-140, "1:30")] {
        let text = of(priority);
        let (ask, line) = asked(&text);
        let (place, said) = ask(packet);
        assert_eq!(place, class, "{priority}: {said}");
        assert!(said.contains(&format!("ip m post {}: tcp dport 80", line("add rule"))), "{said}");
    }
}

#[test]
fn restored_rules_are_followed_with_their_lines() {
    let text = format!(
        "{CLASSES}iptables-restore <<E
*mangle
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -p tcp --dport 443 -j MARK --set-xmark 0x10/0xffffffff
COMMIT
*filter
:FORWARD DROP [0:0]
-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
-A FORWARD -i eth1 -j ACCEPT
COMMIT
E
iptables -t mangle -A POSTROUTING -p udp --dport 53 -j CLASSIFY --set-class 1:20
"
    );
    let (ask, line) = asked(&text);
    let (place, said) = ask("tcp 10.0.0.1:4000 > 10.1.0.1:443 in eth1");
    assert_eq!(place, "1:10", "{said}");
    assert!(said.contains(&format!("mangle POSTROUTING {}: MARK", line("dport 443"))), "{said}");
    assert_eq!(ask("udp 10.0.0.1:4000 > 10.1.0.1:53").0, "1:20");
    let (place, said) = ask("tcp 10.0.0.1:4000 > 10.1.0.1:443 in eth2");
    assert_eq!(place, "dropped", "{said}");
    assert!(said.contains(&format!("filter FORWARD {}: policy DROP", line(":FORWARD"))), "{said}");
    assert_eq!(ask("tcp 10.0.0.1:4000 > 10.1.0.1:443 state established in eth2").0, "1:10");
}
