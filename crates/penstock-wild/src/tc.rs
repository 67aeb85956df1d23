//! Commands of tc: trees of qdiscs with small limits, filters, changes amid traffic.

use crate::{Result, Unstructured, number, one};

/// Rates of classes and policers.
const RATES: [&str; 8] = ["8kbit", "64kbit", "200kbit", "500kbit", "1mbit", "3mbit", "8mbit", "100mbit"];

/// Which kinds are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kinds {
    /// All that can be set up.
    All,
    /// Those whose packets are simulated: an experiment with another is refused.
    Simulated,
}

/// A qdisc without classes, with its options.
fn leaf(u: &mut Unstructured<'_>, kinds: Kinds) -> Result<String> {
    // Those that are set up and shown only come last.
    let kind = u.int_in_range(0..=if kinds == Kinds::All { 16 } else { 12 })?;
    let n = number(u, 1, 200)?;
    Ok(match kind {
        0 => format!("pfifo limit {n}"),
        1 => format!("bfifo limit {}", n * 300),
        2 => "pfifo_fast".to_owned(),
        3 => format!("pfifo_head_drop limit {n}"),
        4 => format!("tbf rate {} burst {} limit {}", one(u, &RATES)?, 1600 + n * 40, n * 200),
        5 => {
            let depth = if u.ratio(1, 2)? { " headdrop" } else { "" };
            format!("sfq limit {n} perturb {}{depth}", u.int_in_range(0..=2)?)
        }
        6 => format!(
            "red limit {} min {} max {} avpkt 1000 burst {} probability 0.1{}",
            n * 1000 + 10_000,
            3000,
            9000 + n * 50,
            4 + n / 20,
            one(u, &["", " ecn", " harddrop ecn", " adaptive"])?
        ),
        7 => format!(
            "codel limit {n} target {}ms interval {}ms {}",
            u.int_in_range(1..=20)?,
            u.int_in_range(20..=200)?,
            one(u, &["ecn", "noecn"])?
        ),
        8 => format!(
            "fq_codel limit {n} flows {} quantum {} {}",
            u.int_in_range(1..=64)?,
            u.int_in_range(256..=3000)?,
            one(u, &["ecn", "noecn"])?
        ),
        9 => format!(
            "pie limit {n} target {}ms {}",
            u.int_in_range(1..=30)?,
            one(u, &["ecn", "noecn", "bytemode"])?
        ),
        10 => format!(
            "fq limit {n} flow_limit {} quantum {}{}",
            number(u, 1, 50)?,
            u.int_in_range(500..=9000)?,
            one(u, &["", " nopacing", " maxrate 500kbit"])?
        ),
        11 => format!("choke limit {} min 5 max {} avpkt 1000{}", n + 20, 15 + n / 8, one(u, &["", " ecn"])?),
        12 => format!("sfb limit {n} target {} max {}", number(u, 1, 20)?, number(u, 2, 30)?),
        13 => format!(
            "netem limit {n} delay {}ms {}ms loss {}% duplicate {}%",
            u.int_in_range(0..=20)?,
            u.int_in_range(0..=5)?,
            u.int_in_range(0..=20)?,
            u.int_in_range(0..=9)?
        ),
        14 => format!("fq_pie limit {n} flows {}", u.int_in_range(1..=64)?),
        15 => format!(
            "cake bandwidth {} {}",
            one(u, &RATES)?,
            one(u, &["besteffort", "diffserv4", "ack-filter"])?
        ),
        _ => format!("hhf limit {n}"),
    })
}

/// The tree of one device, and which classes packets can be sent to.
pub fn tree(u: &mut Unstructured<'_>, dev: &str, kinds: Kinds) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let major = 1;
    // The same here.
    let root = u.int_in_range(0..=if kinds == Kinds::All { 9 } else { 7 })?;
    let mut classes = Vec::new();
    let add = format!("tc qdisc add dev {dev} root handle {major}:");
    match root {
        0 => return Ok(vec![format!("tc qdisc add dev {dev} root {}", leaf(u, kinds)?)]),
        1 => {
            let bands = u.int_in_range(2..=4u32)?;
            lines.push(format!("{add} prio bands {bands} priomap {}", ["0"; 16].map(|_| "1").join(" ")));
            classes.extend(1..=bands);
        }
        2 | 3 => {
            lines.push(format!("{add} htb default {}{}", u.int_in_range(0..=30)?, one(u, &["", " r2q 1"])?));
            lines.push(format!("tc class add dev {dev} parent 1: classid 1:1 htb rate {}", one(u, &RATES)?));
            for n in 0..u.int_in_range(1..=4u32)? {
                let id = 10 * (n + 1);
                lines.push(format!(
                    "tc class add dev {dev} parent 1:1 classid 1:{id} htb rate {} ceil {} prio {} burst {} quantum {}",
                    one(u, &RATES)?, one(u, &RATES)?, u.int_in_range(0..=7)?, u.int_in_range(1500..=20_000)?,
                    u.int_in_range(1000..=9000)?
                ));
                // Classes in hexadecimal, as tc has them.
                classes.push(u32::from_str_radix(&id.to_string(), 16).unwrap_or(id));
            }
        }
        4 => {
            lines.push(format!("{add} drr"));
            for id in 1..=u.int_in_range(1..=3u32)? {
                lines.push(format!(
                    "tc class add dev {dev} parent 1: classid 1:{id} drr quantum {}",
                    u.int_in_range(100..=3000)?
                ));
                classes.push(id);
            }
            lines.push(format!("tc filter add dev {dev} parent 1: protocol all prio 99 matchall flowid 1:1"));
        }
        5 => {
            let rate = one(u, &RATES)?;
            lines.push(format!("{add} cbq bandwidth 10mbit avpkt 1000 cell 8"));
            for id in 1..=u.int_in_range(1..=3u32)? {
                lines.push(format!(
                    "tc class add dev {dev} parent 1: classid 1:{id} cbq bandwidth 10mbit rate {rate} allot 1514 prio {} avpkt 1000 maxburst {} {}",
                    u.int_in_range(1..=8)?, u.int_in_range(2..=30)?, one(u, &["bounded", "isolated", ""])?
                ));
                classes.push(id);
            }
        }
        9 => {
            lines.push(format!("{add} hfsc default 1"));
            for id in 1..=u.int_in_range(1..=3u32)? {
                let curve = one(u, &["ls", "sc", "rt"])?;
                lines.push(format!(
                    "tc class add dev {dev} parent 1: classid 1:{id} hfsc {curve} rate {}",
                    one(u, &RATES)?
                ));
                classes.push(id);
            }
        }
        8 => {
            lines.push(format!("{add} ets bands {} strict {}", 4, u.int_in_range(0..=4)?));
            classes.extend(1..=4);
        }
        6 => {
            lines.push(format!("{add} dsmark indices 8 default_index {}", u.int_in_range(0..=7)?));
            classes.extend(1..=7);
        }
        _ => {
            lines.push(format!(
                "{add} tbf rate {} burst {} limit {}",
                one(u, &RATES)?,
                u.int_in_range(1600..=20_000)?,
                u.int_in_range(2000..=60_000)?
            ));
            classes.push(1);
        }
    }
    for &class in &classes {
        if u.ratio(2, 3)? {
            lines.push(format!(
                "tc qdisc add dev {dev} parent 1:{class:x} handle {:x}: {}",
                class + 0x100,
                leaf(u, kinds)?
            ));
        }
    }
    for _ in 0..u.int_in_range(0..=4)? {
        let to = format!("1:{:x}", u.choose(&classes)?);
        let action = if u.ratio(1, 3)? { format!(" {}", action(u)?) } else { String::new() };
        lines.push(format!(
            "tc filter add dev {dev} parent 1: protocol ip prio {} {} flowid {to}{action}",
            u.int_in_range(1..=4)?,
            matching(u)?
        ));
    }
    Ok(lines)
}

fn matching(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(match u.int_in_range(0..=5)? {
        0 => format!("u32 match ip dport {} 0xffff", u.choose(&[5001u32, 20_000, 20_001, 20_002, 20_003])?),
        1 => format!("u32 match ip tos {:#x} 0xff", u.choose(&[0u32, 0x10, 0xb8, 0x28])?),
        2 => format!("u32 match ip protocol {} 0xff", one(u, &["6", "17", "1"])?),
        3 => format!("handle {} fw", u.int_in_range(1..=3)?),
        4 => "matchall".to_owned(),
        _ => format!("flower ip_proto {}", one(u, &["tcp", "udp", "icmp"])?),
    })
}

fn action(u: &mut Unstructured<'_>) -> Result<String> {
    Ok(match u.int_in_range(0..=4)? {
        0 | 1 => format!(
            "action police rate {} burst {} conform-exceed {}",
            one(u, &RATES)?,
            u.int_in_range(1500..=20_000)?,
            one(u, &["drop", "drop/ok", "pass", "reclassify", "continue"])?
        ),
        2 => format!("action skbedit mark {}", u.int_in_range(1..=3)?),
        3 => format!("action mirred egress {} dev ifb0", one(u, &["mirror", "redirect"])?),
        _ => format!("action {}", one(u, &["drop", "pass", "ok", "continue"])?),
    })
}

/// What stands before and behind the queue: policers, mirrors and redirections at both hooks.
pub fn hooks(u: &mut Unstructured<'_>, dev: &str, kinds: Kinds) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    if u.ratio(1, 2)? {
        lines.push("ip link add ifb0 type ifb".to_owned());
        lines.push("ip link set ifb0 up".to_owned());
        lines.push(format!("tc qdisc add dev ifb0 root {}", leaf(u, kinds)?));
    }
    lines.push(format!("tc qdisc add dev {dev} clsact"));
    for _ in 0..u.int_in_range(1..=2)? {
        lines.push(format!(
            "tc filter add dev {dev} {} protocol ip prio {} {} {}",
            one(u, &["ingress", "egress"])?,
            u.int_in_range(1..=3)?,
            matching(u)?,
            action(u)?
        ));
    }
    Ok(lines)
}

/// A command that changes something while packets are on their way.
pub fn change(u: &mut Unstructured<'_>, dev: &str, kinds: Kinds) -> Result<String> {
    Ok(match u.int_in_range(0..=8)? {
        0 => format!("tc qdisc del dev {dev} root"),
        1 => format!("tc qdisc replace dev {dev} root {}", leaf(u, kinds)?),
        2 => format!("tc class change dev {dev} parent 1:1 classid 1:10 htb rate {}", one(u, &RATES)?),
        3 => format!("tc class del dev {dev} classid 1:{}", one(u, &["1", "2", "10", "20"])?),
        4 => format!("tc filter del dev {dev} parent 1:"),
        5 => format!("ip link set {dev} {}", one(u, &["down", "up", "mtu 576", "mtu 9000", "txqueuelen 2"])?),
        6 => format!("tc qdisc change dev {dev} root handle 1: {}", leaf(u, kinds)?),
        7 => format!("ip addr flush dev {dev}"),
        _ => format!("tc -s qdisc show dev {dev}"),
    })
}
