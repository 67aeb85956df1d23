//! What sets of ipset make of packets, against what Linux made of them (`vectors/ipset`, recorded on 6.1.176 with all types of sets).

use penstock_host::{Host, HostCx, NoFiles};
use penstock_model::{Kernel, Time};
use penstock_packet::headers::Ipv4;
use penstock_packet::{Icmp, IcmpBody, L3, L4, Pool, Skb, Tcp, TcpFlags, Udp};
use serde_json::Value;
use std::net::Ipv4Addr;

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn mac(text: &str) -> [u8; 6] {
    let mut out = [0; 6];
    for (byte, part) in out.iter_mut().zip(text.split(':')) {
        *byte = u8::from_str_radix(part, 16).expect("hex");
    }
    out
}

/// A packet as the recorder put it on the wire.
fn packet(p: &Value) -> Skb {
    let number = |key: &str| p[key].as_u64().expect("a number");
    let addr = |key: &str| -> Ipv4Addr { p[key].as_str().and_then(|a| a.parse().ok()).expect("an address") };
    let (proto, sport, dport) = (number("proto") as u8, number("sport") as u16, number("dport") as u16);
    let (l4, header) = match proto {
        6 => {
            (L4::Tcp(Tcp { sport, dport, flags: TcpFlags::SYN, seq: 1, window: 1000, ..Tcp::default() }), 20)
        }
        17 => (L4::Udp(Udp { sport, dport }), 8),
        1 => {
            let of = |i: usize| p["icmp"][i].as_u64().expect("a number") as u8;
            (L4::Icmp(Icmp { ty: of(0), code: of(1), id: 1, seq: 1, body: IcmpBody::Data }), 8)
        }
        _ => (L4::None, 4),
    };
    let mut l3 = Ipv4::new(addr("src"), addr("dst"), proto);
    l3.id = 1;
    let len = 14 + 20 + header + number("len") as u32;
    let mut skb = Skb::new(len, L3::Ipv4(l3), l4);
    skb.eth = (mac(p["smac"].as_str().expect("a MAC")), mac("02:00:00:00:00:02"));
    skb
}

fn counts(host: &mut Host) -> Vec<u64> {
    let out = host.command(&words("iptables -t mangle -S PREROUTING -v"), &mut NoFiles, Time::ZERO);
    let rules = out.stdout.lines().filter(|l| l.starts_with("-A"));
    rules
        .map(|l| {
            let behind = l.split(" -c ").nth(1).expect("counters");
            behind.split(' ').next().and_then(|n| n.parse().ok()).expect("a number")
        })
        .collect()
}

fn play(case: &Value) -> Result<(), String> {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    let eth0 = host.add_device("eth0");
    let set = "ip link set eth0 address 02:00:00:00:00:02";
    assert_eq!(host.command(&words(set), &mut NoFiles, Time::ZERO).status, 0);
    let lines = case["setup"].as_array().expect("lines");
    for (line, status) in lines.iter().zip(case["status"].as_array().expect("statuses")) {
        let line = line.as_str().expect("a line");
        let out = host.command(&words(line), &mut NoFiles, Time::ZERO);
        if i64::from(out.status) != status.as_i64().expect("a status") {
            return Err(format!("{line}: {} where Linux gave {status}: {}", out.status, out.stderr));
        }
    }
    let mut before = counts(&mut host);
    let packets = case["packets"].as_array().expect("packets");
    for (at, (p, fitted)) in packets.iter().zip(case["fitted"].as_array().expect("rules")).enumerate() {
        let now = Time::from_ns(1_000_000 * (at as i64 + 1));
        let (mut pool, mut out) = (Pool::new(), Vec::new());
        host.receive(eth0, Box::new(packet(p)), &mut HostCx { now, pool: &mut pool, out: &mut out });
        let after = counts(&mut host);
        let ours: Vec<u64> = (0..after.len()).filter(|&i| after[i] != before[i]).map(|i| i as u64).collect();
        let theirs: Vec<u64> =
            fitted.as_array().expect("numbers").iter().map(|n| n.as_u64().expect("a number")).collect();
        if ours != theirs {
            return Err(format!("packet {at} {p}: rules {ours:?}, of Linux {theirs:?}"));
        }
        before = after;
    }
    let saved = host.command(&words("ipset save"), &mut NoFiles, Time::ZERO).stdout;
    let ours: Vec<&str> = saved.lines().collect();
    let theirs: Vec<&str> =
        case["save"].as_array().expect("lines").iter().map(|l| l.as_str().expect("a line")).collect();
    match ours.iter().zip(&theirs).find(|(a, b)| a != b) {
        Some((a, b)) => Err(format!("saved: {a}, of Linux {b}")),
        None if ours.len() != theirs.len() => Err(format!("{} lines, of Linux {}", ours.len(), theirs.len())),
        None => Ok(()),
    }
}

/// Statuses of commands, rules that packets fit, elements, their counters and their order: as Linux has them.
#[test]
fn packets_meet_sets_as_in_linux() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/ipset/sets.jsonl");
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("a case in JSON");
        count += 1;
        if let Err(said) = play(&case) {
            wrong.push(format!("seed {}: {said}", case["seed"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 40, "{count} cases");
}
