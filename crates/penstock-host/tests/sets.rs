//! Which rules packets fit, against which they fitted in Linux: rules that ask sets of ipset (`vectors/ipset`, recorded on 6.1.176 with all types of sets) and rules
//! that ask the routes (`vectors/fib`, on 6.18.44), and rule sets as Docker, Kubernetes, OpenWrt, firewalld and routers with two uplinks have them (`vectors/rulesets`, on 6.18.44).

use penstock_host::{Effect, FileError, Files, Host, HostCx, NoFiles};
use penstock_model::{Kernel, Time};
use penstock_packet::headers::Ipv4;
use penstock_packet::{Icmp, IcmpBody, L3, L4, Packet, Pool, Skb, Tcp, TcpFlags, Udp};
use serde_json::Value;
use std::net::Ipv4Addr;

/// Standard input of a command.
struct Input<'a>(&'a str);

impl Files for Input<'_> {
    fn read(&mut self, path: &str) -> Result<String, FileError> {
        if path == "-" { Ok(self.0.to_owned()) } else { Err(FileError::NotFound) }
    }
}

/// Words as a shell makes them of these lines: braces of nft's are one word each.
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
            let flags = match p["flags"].as_str().unwrap_or("S") {
                "S" => TcpFlags::SYN,
                "SA" => TcpFlags::SYN.with(TcpFlags::ACK),
                "A" => TcpFlags::ACK,
                "FA" => TcpFlags::FIN.with(TcpFlags::ACK),
                _ => TcpFlags::RST,
            };
            let number = |key: &str, none| p[key].as_u64().unwrap_or(none) as u32;
            let (seq, ack) = (number("seq", 1), number("ack", 0));
            (L4::Tcp(Tcp { sport, dport, flags, seq, ack, window: 1000, ..Tcp::default() }), 20)
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
    skb.eth =
        (mac(p["smac"].as_str().expect("a MAC")), mac(p["dmac"].as_str().unwrap_or("02:00:00:00:00:02")));
    skb
}

/// The answer to a packet for a port that is closed.
fn no_one_listens(host: &mut Host, packet: &Packet, now: Time) {
    let (mut pool, mut out) = (Pool::new(), Vec::new());
    let cx = &mut HostCx { now, pool: &mut pool, out: &mut out };
    let (L3::Ipv4(ip), L4::Tcp(tcp)) = (packet.l3, packet.l4) else {
        if matches!(packet.l4, L4::Udp(_)) {
            host.icmp_unreachable(packet, 3, cx);
        }
        return;
    };
    if tcp.flags.has(TcpFlags::RST) {
        return;
    }
    let mut back =
        Tcp { sport: tcp.dport, dport: tcp.sport, flags: TcpFlags::RST, seq: tcp.ack, ..Tcp::default() };
    if !tcp.flags.has(TcpFlags::ACK) {
        let control = u32::from(tcp.flags.has(TcpFlags::SYN)) + u32::from(tcp.flags.has(TcpFlags::FIN));
        back.flags = TcpFlags::RST.with(TcpFlags::ACK);
        (back.seq, back.ack) = (0, tcp.seq + packet.len - 54 + control);
    }
    let skb = Skb::new(54, L3::Ipv4(Ipv4::new(ip.dst, ip.src, 6)), L4::Tcp(back));
    // Without a route to there nothing is sent, as in Linux.
    let _ = host.send(cx.pool.alloc(skb), cx);
}

/// What each rule has counted, and the policies where they are wanted, as these commands list it, and its words.
fn counts(host: &mut Host, lines: &[String], policies: bool) -> Vec<(u64, String)> {
    let mut all = Vec::new();
    for line in lines {
        let out = host.command(&words(line), &mut NoFiles, Time::ZERO);
        for text in out.stdout.lines().filter(|t| policies || !t.starts_with("-P")) {
            let behind = text.split_once(" -c ").or(text.split_once("counter packets "));
            let number = behind.and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
            all.extend(number.map(|n| (n, text.trim().to_owned())));
        }
    }
    all
}

/// The texts of a list.
fn texts(list: &Value) -> Vec<String> {
    let all = list.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().map(|t| t.as_str().expect("a text").to_owned()).collect()
}

fn play(case: &Value) -> Result<(), String> {
    let mut host = Host::new("r", Kernel::V6_12, 1);
    let one = vec![serde_json::json!(["eth0", "02:00:00:00:00:02"])];
    for device in case["devices"].as_array().unwrap_or(&one) {
        let device = texts(device);
        host.add_device(&device[0]);
        let set = format!("ip link set {} address {}", device[0], device[1]);
        assert_eq!(host.command(&words(&set), &mut NoFiles, Time::ZERO).status, 0);
    }
    let mut lists = texts(&case["counts"]);
    let policies = !lists.is_empty();
    if !policies {
        lists.push("iptables -t mangle -S PREROUTING -v".to_owned());
    }
    let lines = case["setup"].as_array().expect("lines");
    for (line, status) in lines.iter().zip(case["status"].as_array().expect("statuses")) {
        let (line, given) = match line.as_array() {
            Some(both) => (&both[0], both[1].as_str().expect("a text")),
            None => (line, ""),
        };
        let line = line.as_str().expect("a line");
        let out = host.command(&words(line), &mut Input(given), Time::ZERO);
        if i64::from(out.status) != status.as_i64().expect("a status") {
            return Err(format!("{line}: {} where Linux gave {status}: {}", out.status, out.stderr));
        }
    }
    let mut before = counts(&mut host, &lists, policies);
    let packets = case["packets"].as_array().expect("packets");
    for (at, (p, fitted)) in packets.iter().zip(case["fitted"].as_array().expect("rules")).enumerate() {
        let now = Time::from_ns(1_000_000 * (at as i64 + 1));
        let (mut pool, mut out) = (Pool::new(), Vec::new());
        let dev = host.ifindex(p["in"].as_str().unwrap_or("eth0")).expect("a device");
        host.receive(dev, Box::new(packet(p)), &mut HostCx { now, pool: &mut pool, out: &mut out });
        let delivered: Vec<_> = out
            .drain(..)
            .filter_map(|effect| match effect {
                Effect::Deliver(packet) => Some(packet),
                _ => None,
            })
            .collect();
        if case["name"].is_string() {
            delivered.iter().for_each(|d| no_one_listens(&mut host, d, now));
        }
        let after = counts(&mut host, &lists, policies);
        let ours: Vec<u64> =
            (0..after.len()).filter(|&i| after[i].0 != before[i].0).map(|i| i as u64).collect();
        let theirs: Vec<u64> =
            fitted.as_array().expect("numbers").iter().map(|n| n.as_u64().expect("a number")).collect();
        if ours != theirs {
            let only = |a: &[u64], b: &[u64]| {
                let rules = a.iter().filter(|n| !b.contains(n));
                rules
                    .map(|&n| after.get(n as usize).map_or("none", |r| r.1.as_str()))
                    .collect::<Vec<_>>()
                    .join("; ")
            };
            let (here, there) = (only(&ours, &theirs), only(&theirs, &ours));
            return Err(format!(
                "packet {at} {p}: rules {ours:?}, of Linux {theirs:?}; only here: {here}; only there: {there}"
            ));
        }
        before = after;
    }
    if case["save"].is_null() {
        return Ok(());
    }
    let saved = host.command(&words("ipset save"), &mut NoFiles, Time::ZERO).stdout;
    let (ours, theirs): (Vec<&str>, Vec<String>) = (saved.lines().collect(), texts(&case["save"]));
    match ours.iter().zip(&theirs).find(|(a, b)| a != b) {
        Some((a, b)) => Err(format!("saved: {a}, of Linux {b}")),
        None if ours.len() != theirs.len() => Err(format!("{} lines, of Linux {}", ours.len(), theirs.len())),
        None => Ok(()),
    }
}

#[track_caller]
fn cases(file: &str) {
    let path = format!("{}/../../vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("a case in JSON");
        count += 1;
        if let Err(said) = play(&case) {
            wrong.push(format!("{} seed {}: {said}", case["name"].as_str().unwrap_or("case"), case["seed"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 40, "{count} cases");
}

/// Statuses of commands, rules that packets fit, elements, their counters and their order: as Linux has them.
#[test]
fn packets_meet_sets_as_in_linux() {
    cases("ipset/sets.jsonl");
}

/// `-m rpfilter`, `-m addrtype`, nft's `fib`.
#[test]
fn packets_meet_routes_as_in_linux() {
    cases("fib/cases.jsonl");
}

/// Rule sets as programs write them, with connections through them and to the machine itself, and what is not of a connection.
#[test]
fn packets_meet_whole_rule_sets_as_in_linux() {
    cases("rulesets/cases.jsonl");
}
