//! A router of IPv6, packet by packet against what a real one did (`vectors/stack/six.jsonl`, made by `vectors/stack/six.py`): neighbour discovery,
//! forwarding, errors, what it sends itself; and fragments.

mod fragments;

use penstock_host::{Effect, Host, HostCx};
use penstock_model::{Kernel, Time};
use penstock_packet::headers::{ETH_HLEN, Quoted};
use penstock_packet::{Fragment, Icmp, IcmpBody, Ipv6, L3, L4, Packet, Pool, Skb, Tcp, TcpFlags, Udp};
use serde_json::{Map, Value, json};
use std::net::{IpAddr, Ipv6Addr};

const FLAGS: [(char, TcpFlags); 5] = [
    ('F', TcpFlags::FIN),
    ('S', TcpFlags::SYN),
    ('R', TcpFlags::RST),
    ('P', TcpFlags::PSH),
    ('A', TcpFlags::ACK),
];
const DEVICES: [&str; 2] = ["lan0", "wan0"];
/// Ports the recorder's programs have.
const OPEN: [u16; 2] = [700, 800];

fn number(p: &Value, key: &str) -> u64 {
    p[key].as_u64().unwrap_or(0)
}
fn addr(p: &Value, key: &str) -> Ipv6Addr {
    p[key].as_str().map_or(Ipv6Addr::UNSPECIFIED, |a| a.parse().expect("an address"))
}
fn mac(text: &str) -> [u8; 6] {
    let mut bytes = text.split(':').map(|b| u8::from_str_radix(b, 16).expect("a byte"));
    std::array::from_fn(|_| bytes.next().expect("six bytes"))
}

/// A packet from its description.
fn build(p: &Value) -> Skb {
    let port = |key: &str| number(p, key) as u16;
    let data = number(p, "data") as u32;
    let (protocol, l4, len) = match p["proto"].as_str() {
        Some("udp") => (17, L4::Udp(Udp { sport: port("sport"), dport: port("dport") }), 8 + data),
        Some("tcp") => {
            let text = p["flags"].as_str().unwrap_or("");
            let bits = FLAGS.iter().filter(|f| text.contains(f.0)).fold(0, |all, f| all | f.1.0);
            let (seq, ack) = (number(p, "seq") as u32, number(p, "ack") as u32);
            let (sport, dport) = (port("sport"), port("dport"));
            let tcp = Tcp { sport, dport, seq, ack, flags: TcpFlags(bits), window: 8000, ..Tcp::default() };
            (6, L4::Tcp(tcp), 20 + data)
        }
        _ => {
            let ty = number(p, "type") as u8;
            let own = p["mac"].as_str().map(mac);
            let (icmp, len) = match ty {
                135 | 136 => {
                    let body = IcmpBody::Neighbour { target: addr(p, "target"), mac: own };
                    (Icmp { body, ..Icmp::new(ty, 0, port("flags"), 0) }, 24 + 8 * u32::from(own.is_some()))
                }
                2 => {
                    let body = IcmpBody::About(quoted(&p["about"]));
                    let info = number(p, "info") as u32;
                    (Icmp { body, ..Icmp::new(ty, 0, (info >> 16) as u16, info as u16) }, 8 + 48 + 1000)
                }
                _ => (Icmp::new(ty, 0, port("id"), port("n")), 8 + data),
            };
            (58, L4::Icmp(icmp), len)
        }
    };
    let fragment = p.get("frag").map(|f| Fragment {
        id: number(f, "id") as u32,
        frag_off: (number(f, "off") | number(f, "more")) as u16,
        next_header: protocol,
    });
    let (l4, len, datagram) = match p.get("frag") {
        // Its header stands in the first, where that is long enough.
        Some(f) => {
            let (off, cut) = (number(f, "off"), number(f, "len") as u32);
            let from = (off as u32).min(len);
            let cut = cut.min(len - from);
            (if off == 0 && cut >= 8 { l4 } else { L4::None }, 8 + cut, Some(len as u16))
        }
        None => (l4, len, None),
    };
    let l3 = Ipv6 {
        src: addr(p, "src"),
        dst: addr(p, "dst"),
        traffic_class: number(p, "tc") as u8,
        flow_label: 0,
        next_header: fragment.map_or(protocol, |_| 44),
        fragment: fragment.unwrap_or(Fragment::NONE),
        hop_limit: number(p, "hl") as u8,
    };
    let to = p["to"].as_str().map_or([0; 6], mac);
    let mut skb =
        Skb { eth: (mac("02:00:00:00:00:99"), to), ..Skb::new(ETH_HLEN + 40 + len, L3::Ipv6(l3), l4) };
    if datagram.is_some() && !matches!(l4, L4::None) {
        skb.rare_mut().datagram = datagram;
    }
    skb
}

fn quoted(q: &Value) -> Quoted {
    let of = |key: &str| IpAddr::V6(addr(q, key));
    let (sport, dport) = (number(q, "sport") as u16, number(q, "dport") as u16);
    Quoted { src: of("src"), dst: of("dst"), protocol: 17, fragment: None, sport, dport }
}
fn fragment(f: &Fragment) -> Value {
    json!({ "off": f.offset(), "more": u8::from(f.more()), "id": f.id })
}

fn name(protocol: u8) -> String {
    match protocol {
        58 => "icmp".to_owned(),
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        other => other.to_string(),
    }
}
fn text(mac: [u8; 6]) -> String {
    mac.map(|b| format!("{b:02x}")).join(":")
}

/// What is compared of a packet.
fn describe(skb: &Skb) -> Value {
    let L3::Ipv6(h) = skb.l3 else { panic!("not IPv6: {skb:?}") };
    let mut p = Map::new();
    let mut put = |key: &str, value: Value| p.insert(key.to_owned(), value);
    put("proto", json!(name(h.protocol())));
    if let Some(f) = h.fragment() {
        put("frag", fragment(f));
    } else if skb.tc.damaged {
        put("bad", json!(1));
    }
    put("src", json!(h.src.to_string()));
    put("dst", json!(h.dst.to_string()));
    put("hl", json!(h.hop_limit));
    put("tc", json!(h.traffic_class));
    put("len", json!(skb.network_len()));
    put("to", json!(text(skb.eth.1)));
    match skb.l4 {
        L4::Udp(u) => {
            put("sport", json!(u.sport));
            put("dport", json!(u.dport));
        }
        L4::Tcp(t) => {
            put("sport", json!(t.sport));
            put("dport", json!(t.dport));
            put("seq", json!(t.seq));
            put("ack", json!(t.ack));
            let set = FLAGS.iter().filter(|f| t.flags.has(f.1)).map(|f| f.0);
            put("flags", json!(set.collect::<String>()));
        }
        L4::Icmp(i) => {
            put("type", json!(i.ty));
            put("code", json!(i.code));
            match i.body {
                IcmpBody::Data => {
                    put("id", json!(i.id));
                    put("n", json!(i.seq));
                }
                IcmpBody::Neighbour { target, mac } => {
                    put("flags", json!(i.id));
                    put("target", json!(target.to_string()));
                    put("mac", json!(mac.map(text)));
                }
                IcmpBody::About(q) => {
                    put("info", json!(i.info()));
                    put("about", about(&q));
                }
            }
        }
        L4::None => {}
    }
    Value::Object(p)
}
fn about(q: &Quoted) -> Value {
    let of = |a: IpAddr| a.to_string();
    let mut about = json!({ "proto": name(q.protocol), "src": of(q.src), "dst": of(q.dst) });
    if let Some(f) = q.fragment {
        about["frag"] = fragment(&f);
    }
    if matches!(q.protocol, 6 | 17) && q.fragment.is_none_or(|f| f.offset() == 0) {
        (about["sport"], about["dport"]) = (json!(q.sport), json!(q.dport));
    }
    about
}

struct Case {
    host: Host,
    pool: Pool,
    now: Time,
    /// Frames that left since it was last emptied, and by which device.
    out: Vec<(String, Skb)>,
    /// Its sockets let datagrams be cut (else `IPV6_DONTFRAG`).
    cuts: bool,
}

impl Case {
    fn new(setup: &Value) -> Case {
        let mut host = Host::new("r", Kernel::V6_12, 1);
        for dev in DEVICES {
            host.add_device(dev);
        }
        for command in setup.as_array().expect("commands") {
            let line = command.as_str().expect("a command");
            let done = host.exec(line, Time::ZERO);
            assert_eq!(done.status, 0, "{line}: {}", done.stderr);
        }
        Case { host, pool: Pool::new(), now: Time::ZERO, out: Vec::new(), cuts: false }
    }
    fn with<R>(&mut self, f: impl FnOnce(&mut Host, &mut HostCx<'_>) -> R) -> R {
        let mut out = Vec::new();
        let mut cx = HostCx { now: self.now, pool: &mut self.pool, out: &mut out };
        let result = f(&mut self.host, &mut cx);
        for effect in out {
            self.effect(effect);
        }
        result
    }
    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Kick(ifindex) => {
                while let Some(frame) = self.with(|h, cx| h.dequeue(ifindex, cx)) {
                    let name = self.host.device(ifindex).expect("a device").name.clone();
                    self.out.push((name, (*frame).clone()));
                }
            }
            Effect::Next(ifindex, packet) => self.with(|h, cx| h.comes_to(ifindex, packet, cx)),
            Effect::Deliver(packet) => self.closed(packet),
            _ => {}
        }
    }
    /// Nobody listens: a reset, or an ICMPv6 error.
    fn closed(&mut self, packet: Packet) {
        let L3::Ipv6(h) = packet.l3 else { return };
        match packet.l4 {
            L4::Udp(u) if !OPEN.contains(&u.dport) => self.with(|h, cx| h.icmp_unreachable(&packet, 3, cx)),
            L4::Tcp(t) if !t.flags.has(TcpFlags::RST) && self.host.has_address(h.dst.into()) => {
                let mut tcp = Tcp { sport: t.dport, dport: t.sport, flags: TcpFlags::RST, ..Tcp::default() };
                if t.flags.has(TcpFlags::ACK) {
                    tcp.seq = t.ack;
                } else {
                    tcp.flags = tcp.flags.with(TcpFlags::ACK);
                    let flags = u32::from(t.flags.has(TcpFlags::SYN)) + u32::from(t.flags.has(TcpFlags::FIN));
                    tcp.ack = t.seq + flags + packet.network_len() - 60;
                }
                let l3 =
                    Ipv6 { src: h.dst, dst: h.src, traffic_class: h.traffic_class & !3, hop_limit: 0, ..h };
                let mut answer = Box::new(Skb::new(74, L3::Ipv6(l3), L4::Tcp(tcp)));
                answer.iif = packet.iif;
                let _ = self.with(|h, cx| h.send(answer, cx));
            }
            _ => {}
        }
    }
    fn run_until(&mut self, until: Time) {
        while let Some(at) = self.host.next_timer().filter(|&at| at <= until) {
            self.now = self.now.max(at);
            self.with(|h, cx| h.handle_timer(cx));
        }
        self.now = until;
    }
    /// What came out since it was last asked: one device after the other, as the recorder reads them.
    fn collect(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.out).iter().map(|(dev, skb)| json!([dev, describe(skb)])).collect()
    }

    /// Plays it; answers how many packets went out as recorded.
    fn play(&mut self, steps: &[Value]) -> Result<usize, String> {
        let mut packets = 0;
        let none = Vec::new();
        let begin = Time::from_ns(steps.first().map_or(0, |s| number(s, "at")) as i64 * 1_000_000);
        self.run_until(begin);
        self.out.clear();
        for (n, step) in steps.iter().enumerate() {
            let packet = &step["packet"];
            let skb = if packet.is_object() { build(packet) } else { build(&json!({ "proto": "udp" })) };
            if step["send"] == true {
                //= linux v6.12 net/ipv6/ip6_output.c __ip6_append_data
                let L3::Ipv6(h) = skb.l3 else { panic!("not IPv6") };
                let most = self.host.mtu_towards6(h.dst, self.now).unwrap_or(u32::MAX);
                let errno = match !self.cuts && skb.network_len() > most {
                    true => 90,
                    false => self.with(|h, cx| h.send(Box::new(skb), cx)).err().map_or(0, |e| e.errno),
                };
                if json!(errno) != step["errno"] {
                    return Err(format!(
                        "step {n}: linux {}, ours {errno}: {}",
                        step["errno"], step["packet"]
                    ));
                }
            } else if step["in"].is_string() {
                let ifindex = self.host.ifindex(step["in"].as_str().unwrap_or("")).expect("a device");
                let mtu = self.host.device(ifindex).expect("a device").mtu;
                // A veth takes no frame that is longer than its MTU, a header and a tag.
                if skb.len <= mtu + 18 {
                    self.with(|h, cx| h.receive(ifindex, Box::new(skb), cx));
                }
            }
            // What came at once, and what came by timers before the next step.
            let next = steps.get(n + 1);
            let until = next.map_or(number(step, "at") + 200, |s| number(s, "at"));
            self.run_until(Time::from_ns(until as i64 * 1_000_000));
            let late = next.and_then(|s| s["before"].as_array()).unwrap_or(&none);
            let theirs = step["out"].as_array().unwrap_or(&none).iter().chain(late);
            let (theirs, ours) = (named(theirs.cloned().collect()), named(self.collect()));
            let (theirs, ours) = (compared(theirs.iter().collect()), compared(ours.iter().collect()));
            if theirs != ours {
                let said =
                    format!("after {}\n  linux {}\n  ours  {}", step["packet"], json!(theirs), json!(ours));
                return Err(format!("step {n}: {said}"));
            }
            packets += theirs.len();
        }
        Ok(packets)
    }
}

/// Frames in the order of devices. Neighbours that are in doubt are probed (by unicast) when a timer says so, which ticks 100 times a second there
/// and 250 times here: these are left out.
fn compared(mut frames: Vec<&Value>) -> Vec<&Value> {
    frames
        .retain(|f| f[1]["type"] != 135 || f[1]["dst"].as_str().is_some_and(|dst| dst.starts_with("ff02:")));
    // Of two whose time is over in one tick either is told of first.
    let late = |f: &Value| {
        let timeout = f[1]["type"] == 3 && f[1]["code"] == 1;
        if timeout { f[1]["about"].to_string() } else { String::new() }
    };
    frames.sort_by_key(|f| (DEVICES.iter().position(|dev| f[0] == *dev), late(f)));
    frames
}

/// Frames whose identifications the router chose have them by number, in the order they come in.
fn named(mut frames: Vec<Value>) -> Vec<Value> {
    let mut seen: Vec<u64> = Vec::new();
    for frame in &mut frames {
        let Some(id) = frame[1]["frag"]["id"].as_u64().filter(|&id| id >= 1000) else { continue };
        let at = seen.iter().position(|&known| known == id).unwrap_or_else(|| {
            seen.push(id);
            seen.len() - 1
        });
        frame[1]["frag"]["id"] = json!(format!("own {at}"));
    }
    frames
}

#[test]
fn packets_of_ipv6_go_as_linux_s_do() {
    let path = format!("{}/../../vectors/stack/six.jsonl", env!("CARGO_MANIFEST_DIR"));
    let all = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let (mut count, mut packets, mut wrong) = (0, 0, Vec::new());
    for line in all.lines() {
        let case: Value = serde_json::from_str(line).expect("a case in JSON");
        count += 1;
        match Case::new(&case["setup"]).play(case["steps"].as_array().expect("steps")) {
            Ok(seen) => packets += seen,
            Err(said) => wrong.push(format!("seed {}: {said}", case["seed"])),
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 100 && packets >= 1000, "{count} cases, {packets} packets");
}
