//! Random filters, and cases that are about them.

use super::dice::Dice;
use super::kinds::Service;
use super::packets::sequence;
use serde_json::{Map, Value, json};

/// A few filters of both kinds on `parent` leading to `targets`.
pub fn simple(d: &mut Dice, setup: &mut Vec<String>, parent: &str, targets: &[String]) {
    for _ in 0..d.range(1, 5) {
        let target = d.pick(targets);
        let prio = if d.chance(70) { format!(" prio {}", d.range(1, 6)) } else { String::new() };
        let line = if d.chance(30) {
            format!(
                "filter add dev $DEV parent {parent} protocol {}{prio} handle {} fw classid {target}",
                d.pick(&["ip", "all", "ipv6"]),
                d.range(1, 5)
            )
        } else {
            format!(
                "filter add dev $DEV parent {parent} protocol ip{prio} u32 {} flowid {target}",
                selector(d, false, 2)
            )
        };
        setup.push(line);
    }
}

fn number(d: &mut Dice, value: u64) -> String {
    if d.chance(50) { format!("0x{value:x}") } else { value.to_string() }
}

/// One `match …` of u32.
fn one_match(d: &mut Dice, v6: bool) -> String {
    let port = |d: &mut Dice| d.pick(&[22u64, 53, 80, 443, 1000, 1024, 2000, 5001, 8080, 40000, 65535]);
    if v6 {
        return match d.range(0, 6) {
            0 | 1 => format!(
                "match ip6 src 2001:db8::{}/{}",
                d.range(1, 5),
                d.pick(&[128, 128, 64, 32, 33, 100, 127])
            ),
            2 => format!("match ip6 dst 2001:db8:{}::2/{}", d.range(0, 3), d.pick(&[128, 48, 64, 46])),
            3 => format!("match ip6 sport {} 0xffff", port(d)),
            4 => format!("match ip6 dport {} 0xffff", port(d)),
            5 => format!("match ip6 protocol {} 0xff", d.pick(&[1, 6, 17, 47])),
            _ => format!("match ip6 priority {} {}", number(d, 0x10), d.pick(&["0xff", "0x10"])),
        };
    }
    match d.range(0, 21) {
        0..=3 => format!(
            "match ip src 10.0.{}.{}/{}",
            d.pick(&[0, 0, 1, 7]),
            d.range(1, 6),
            d.pick(&[32, 32, 32, 24, 16, 31, 30, 8, 0, 23])
        ),
        4..=5 => format!(
            "match ip dst 10.{}.0.{}{}",
            d.pick(&[0, 1, 200]),
            d.range(2, 9),
            d.pick(&["", "/32", "/8", "/16", "/29"])
        ),
        6 => format!("match ip sport {} {}", port(d), d.pick(&["0xffff", "0xff00", "0x00ff", "0xfff0", "0"])),
        7 => format!("match ip dport {} {}", port(d), d.pick(&["0xffff", "0xfff8", "0xffff"])),
        8 => format!("match ip protocol {} 0xff", d.pick(&[1, 6, 17, 47])),
        9 => format!("match ip tos {} {}", tos(d), d.pick(&["0xff", "0x1e", "0xfc", "0xe0", "0x10"])),
        10 => format!(
            "match ip dsfield {} {}",
            d.pick(&["0x10", "0xb8", "0x2e", "8"]),
            d.pick(&["0xff", "0x1e", "0xfc"])
        ),
        11 => format!("match ip precedence {} {}", d.pick(&["0x20", "0xb8", "0"]), d.pick(&["0xe0", "0xff"])),
        12 => format!("match ip ihl {} 0xf", d.pick(&["5", "0x5", "6"])),
        13 => d.pick(&["match ip df", "match ip mf", "match ip firstfrag", "match ip nofrag"]).to_owned(),
        14 => format!("match ip icmp_type {} 0xff", d.pick(&[8, 0, 3])),
        15 => format!(
            "match u8 {} {} at {}",
            number(d, 64),
            d.pick(&["0xff", "0xf0"]),
            d.pick(&[8, 9, 1, 20, 23, 33])
        ),
        16 => format!(
            "match u16 {} {} at {}",
            number(d, 0x0a00),
            d.pick(&["0xffff", "0xff00"]),
            d.pick(&[12, 16, 2, 20, 22, 4])
        ),
        17 => format!(
            "match u32 {} {} at {}",
            number(d, 0x0a00_0001),
            d.pick(&["0xffffffff", "0xff0000ff", "0xffff0000", "0"]),
            d.pick(&[12, 16, 20, 0, 8, 40, 1496])
        ),
        18 => format!("match tcp {} {} 0xffff", d.pick(&["src", "dst"]), port(d)),
        19 => format!("match udp {} {} {}", d.pick(&["src", "dst"]), port(d), d.pick(&["0xffff", "0xfff0"])),
        20 => format!("match mark {} {}", number(d, 2), d.pick(&["0xff", "0xf", "3", "2"])),
        _ => format!("match u16 {} 0xffff at nexthdr+{}", port(d), d.pick(&[0, 2])),
    }
}

fn tos(d: &mut Dice) -> String {
    let value = d.pick(&[0u64, 2, 8, 16, 24, 0x2e, 0xb8, 0xfc]);
    number(d, value)
}

/// The words between `u32` and `flowid`.
fn selector(d: &mut Dice, v6: bool, most: u64) -> String {
    let n = d.range(1, most);
    (0..n).map(|_| one_match(d, v6)).collect::<Vec<_>>().join(" ")
}

/// Where the filters stand and what they may lead to.
struct Stage {
    setup: Vec<String>,
    targets: Vec<String>,
    /// Inner classes that can have filters of their own.
    inner: Vec<String>,
}

fn stage(d: &mut Dice) -> Stage {
    if d.chance(55) {
        let bands = d.range(3, 12);
        let mut setup = vec![format!(
            "qdisc add dev $DEV $PARENT handle 1: prio bands {bands} priomap {}",
            vec![(bands - 1).to_string(); 16].join(" ")
        )];
        for band in 1..=bands {
            if d.chance(25) {
                setup.push(format!(
                    "qdisc add dev $DEV parent 1:{band:x} handle {:x}: pfifo limit {}",
                    band + 16,
                    d.range(1, 12)
                ));
            }
        }
        return Stage {
            setup,
            targets: (1..=bands).map(|b| format!("1:{b:x}")).collect(),
            inner: Vec::new(),
        };
    }
    let default = d.pick(&["", " default 2", " default 4", " default 77"]);
    let mut setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: htb{default}")];
    let mut targets = Vec::new();
    let mut inner = Vec::new();
    let rate = d.pick(&["1mbit", "400kbit", "10mbit", "1gbit"]);
    setup.push(format!("class add dev $DEV parent 1: classid 1:1 htb rate {rate} burst 3000"));
    for n in 2..=d.range(2, 9) {
        let parent = if n > 4 && d.chance(30) { "1:2" } else { "1:1" };
        setup.push(format!(
            "class add dev $DEV parent {parent} classid 1:{n:x} htb rate 64kbit ceil {rate} quantum 1514"
        ));
        if parent == "1:2" && !inner.contains(&"1:2".to_owned()) {
            inner.push("1:2".to_owned());
        }
        targets.push(format!("1:{n:x}"));
    }
    inner.push("1:1".to_owned());
    Stage { setup, targets, inner }
}

/// A case about u32 (or, if not, about fw).
pub fn case(d: &mut Dice, u32: bool) -> Value {
    let Stage { mut setup, targets, inner } = stage(d);
    let mut marks: Vec<u64> = vec![0, 1, 2, 3, 5, 0x10, 0x12, 0x1ff];
    let count = d.range(1, 12);
    let mut tables: Vec<(u64, u64)> = Vec::new();
    let mut added: Vec<(String, u64, &'static str)> = Vec::new();
    for n in 0..count {
        let mut parent = "1:".to_owned();
        if !inner.is_empty() && d.chance(30) {
            parent = d.pick(&inner);
        }
        let mut target = d.pick(&targets);
        if d.chance(8) {
            target = d.pick(&["1:1", "1:ff", "2:1", "1:0"]).to_owned();
        }
        if !inner.is_empty() && d.chance(15) {
            target = d.pick(&inner);
        }
        let protocol = d.pick(&["ip", "ip", "ip", "ip", "all", "ipv6"]);
        // A priority belongs to one protocol and one kind.
        let own = match protocol {
            "ip" => 1,
            "all" => 2,
            _ => 3,
        };
        let other = d.chance(12);
        let use_u32 = u32 != other;
        let prio = 10 * d.range(1, 4) + own + if use_u32 { 0 } else { 5 };
        let head = format!("filter add dev $DEV parent {parent} protocol {protocol} prio {prio}");
        if !use_u32 {
            fw(d, &mut setup, &head, &target, &mut marks);
            added.push((parent, prio, "fw"));
            continue;
        }
        let v6 = protocol == "ipv6" || (protocol == "all" && d.chance(20));
        if u32 && protocol == "ip" && parent == "1:" && d.chance(25) {
            hashed(d, &mut setup, &head, &targets, &mut tables);
            added.push((parent, prio, "u32"));
            continue;
        }
        let handle =
            if d.chance(10) { format!(" handle ::{:x}", d.range(1, 0x7ff) + n) } else { String::new() };
        let order = if d.chance(5) { format!(" order {}", d.range(1, 0x7ff)) } else { String::new() };
        let word = d.pick(&["flowid", "flowid", "classid"]);
        let to = if d.chance(94) { format!(" {word} {target}") } else { String::new() };
        setup.push(format!("{head}{handle} u32{order} {}{to}", selector(d, v6, 3)));
        added.push((parent, prio, "u32"));
    }
    if d.chance(15)
        && let Some((parent, prio, kind)) = added.first().cloned()
    {
        setup.push(match d.range(0, 2) {
            0 => format!("filter del dev $DEV parent {parent} prio {prio}"),
            1 => format!("filter del dev $DEV parent {parent} prio {prio} {kind}"),
            _ => format!("filter del dev $DEV parent {parent}"),
        });
    }
    let s = Service::choose(d, 60, 400_000);
    let mut t = s.traffic(80, 6, true);
    t.bytes_per_s = t.bytes_per_s.min(400_000);
    let packets = sequence(d, t, |d, m| dress(d, m, &marks));
    s.spec(setup, packets)
}

fn dress(d: &mut Dice, m: &mut Map<String, Value>, marks: &[u64]) {
    if d.chance(50) {
        m.insert("mark".into(), json!(d.pick(marks)));
    }
    if d.chance(5) {
        m.insert("priority".into(), json!(d.pick(&["1:2", "1:0", "1:1", "0:3"])));
    }
}

fn fw(d: &mut Dice, setup: &mut Vec<String>, head: &str, target: &str, marks: &mut Vec<u64>) {
    if d.chance(12) {
        // Without a handle the mark itself is the class.
        marks.extend([0x1_0002, 0x1_0003, 3, 0x2_0001]);
        setup.push(format!("{head} fw"));
        return;
    }
    let mark = d.pick(&[1u64, 2, 3, 5, 0x10, 0x12, 0x1ff, 0xff, 256]);
    marks.push(mark);
    let mut handle = number(d, mark);
    if d.chance(35) {
        let mask = d.pick(&[0xffu64, 0xf, 0xf0, 3, 0xffff_ffff]);
        handle += &format!("/{}", number(d, mask));
        marks.push(mark | 0x100);
        marks.push(mark & mask);
    }
    let to =
        if d.chance(98) { format!(" {} {target}", d.pick(&["classid", "flowid"])) } else { String::new() };
    setup.push(format!("{head} handle {handle} fw{to}"));
}

/// A hash table, a link to it, and what stands in it.
fn hashed(
    d: &mut Dice,
    setup: &mut Vec<String>,
    head: &str,
    targets: &[String],
    tables: &mut Vec<(u64, u64)>,
) {
    let table = d.range(1, 9);
    let buckets = match tables.iter().find(|t| t.0 == table) {
        Some(&(_, buckets)) => buckets,
        None => {
            let buckets = d.pick(&[1, 4, 16, 256]);
            tables.push((table, buckets));
            setup.push(format!("{head} handle {table:x}: u32 divisor {buckets}"));
            buckets
        }
    };
    for _ in 0..d.range(1, 5) {
        let host = d.range(1, 6);
        let (bucket, what) = match d.range(0, 4) {
            0 | 1 => (host, format!("match ip src 10.0.0.{host}")),
            2 => (host, format!("match u8 {host} 0xff at 15")),
            3 => (d.range(0, 3), selector(d, false, 2)),
            _ => {
                (0, format!("match {} dst {} 0xffff", d.pick(&["tcp", "udp"]), d.pick(&[22, 80, 443, 2000])))
            }
        };
        let target = d.pick(targets);
        let bucket = if d.chance(96) { bucket % buckets } else { bucket };
        setup.push(format!("{head} u32 ht {table:x}:{bucket:x}: {what} flowid {target}"));
    }
    let from = d.pick(&[
        "match ip src 10.0.0.0/16",
        "match u32 0 0 at 0",
        "match ip protocol 17 0xff",
        "match ip dst 10.0.0.0/8",
    ]);
    let hashkey = d.pick(&[
        " hashkey mask 0x000000ff at 12",
        " hashkey mask 0x0000000f at 12",
        " hashkey mask 0xff at 16",
        "",
        "",
    ]);
    let offset = d.pick(&[
        "",
        "",
        " offset at 0 mask 0x0f00 shift 6 eat",
        " offset at 0 mask 0x0f00 shift 6",
        " offset plus 20 eat",
    ]);
    let both = if d.chance(15) { format!(" flowid {}", d.pick(targets)) } else { String::new() };
    setup.push(format!("{head} u32 ht 800:: {from} link {table:x}:{hashkey}{offset}{both}"));
}

/// One u32 filter.
pub fn u32_line(d: &mut Dice, head: &str, target: &str) -> String {
    let v6 = head.contains("ipv6");
    format!("{head} u32 {} flowid {target}", selector(d, v6, 2))
}

/// One fw filter.
pub fn fw_line(d: &mut Dice, head: &str, target: &str) -> String {
    let mask = d.pick(&["", "", "/0xff", "/0xf", "/0x3"]);
    format!("{head} handle {}{mask} fw classid {target}", d.pick(&[1, 2, 3, 5, 0x10]))
}

/// The words of a u32 filter between `u32` and what it leads to.
pub fn u32_words(d: &mut Dice, v6: bool) -> String {
    if d.chance(40) { "match u32 0 0".to_owned() } else { selector(d, v6, 1) }
}
