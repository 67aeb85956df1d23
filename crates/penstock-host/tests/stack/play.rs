//! One recorded case on a machine of ours.

use super::packet::{build, describe, number};
use penstock_host::{Effect, Host, HostCx, icmp};
use penstock_model::{Kernel, Time};
use penstock_packet::{Fragment, Ipv6, L3, L4, Packet, Pool, Skb, Tcp, TcpFlags};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Ports that scripts name themselves.
const NAMED: [u64; 21] = [
    1, 2, 9, 25, 53, 80, 300, 700, 1000, 1234, 2000, 5000, 5001, 5002, 5005, 5353, 6000, 6001, 6005, 7000,
    8080,
];
const DEVICES: [&str; 3] = ["lan0", "wan0", "dmz0"];

pub(crate) struct Case<'a> {
    recorded: &'a Value,
    host: Host,
    pool: Pool,
    now: Time,
    /// Frames that left since it was last emptied, and by which device.
    out: Vec<(String, Skb)>,
    /// What went out in each step.
    steps: Vec<Vec<(String, Skb)>>,
    /// Ports the kernel chose at random, and ours.
    ports: BTreeMap<u64, u64>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(recorded: &'a Value) -> Case<'a> {
        let mut host = Host::new("r", Kernel::V6_12, 1);
        for dev in DEVICES {
            host.add_device(dev);
        }
        let now = Time::ZERO;
        for command in recorded["setup"].as_array().expect("commands") {
            let line = command.as_str().expect("a command");
            let done = host.exec(line, now);
            assert_eq!(done.status, 0, "{line}: {}", done.stderr);
        }
        assert_eq!(host.unsimulated(), [""; 0]);
        let (out, steps) = (Vec::new(), Vec::new());
        Case { recorded, host, pool: Pool::new(), now, out, steps, ports: BTreeMap::new() }
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
    /// Nobody listens: a reset, or an ICMP error.
    fn closed(&mut self, packet: Packet) {
        match (packet.l3, packet.l4) {
            (_, L4::Udp(_)) => self.with(|h, cx| h.icmp_unreachable(&packet, 3, cx)),
            (_, L4::Tcp(t)) if !t.flags.has(TcpFlags::RST) => {
                let mut tcp = Tcp { sport: t.dport, dport: t.sport, flags: TcpFlags::RST, ..Tcp::default() };
                if t.flags.has(TcpFlags::ACK) {
                    tcp.seq = t.ack;
                } else {
                    tcp.flags = tcp.flags.with(TcpFlags::ACK);
                    let flags = u32::from(t.flags.has(TcpFlags::SYN)) + u32::from(t.flags.has(TcpFlags::FIN));
                    let headers = if matches!(packet.l3, L3::Ipv6(_)) { 60 } else { 40 };
                    tcp.ack = t.seq + flags + packet.network_len() - headers;
                }
                let answer = match packet.l3 {
                    L3::Ipv4(h) => {
                        let (src, dst, ttl, frag_off) = (h.dst, h.src, 64, 0x4000);
                        let l3 = penstock_packet::Ipv4 { src, dst, ttl, frag_off, id: 0, tos: 0, ..h };
                        Skb::new(54, L3::Ipv4(l3), L4::Tcp(tcp))
                    }
                    L3::Ipv6(h) => {
                        let (src, dst, traffic_class) = (h.dst, h.src, h.traffic_class & !3);
                        let l3 = Ipv6 { src, dst, traffic_class, hop_limit: 0, ..h };
                        Skb::new(74, L3::Ipv6(l3), L4::Tcp(tcp))
                    }
                    _ => return,
                };
                let answer = Box::new(answer);
                let _ = self.with(|h, cx| h.send(answer, cx));
            }
            _ => {}
        }
    }
    fn receive(&mut self, dev: &str, mut skb: Skb) {
        let ifindex = self.host.ifindex(dev).expect("a device");
        let device = self.host.device(ifindex).expect("a device");
        skb.eth = ([2, 0, 0, 0, 0, 0x99], device.mac);
        // A veth takes no frame that is longer than its MTU, a header and a tag.
        if skb.len > device.mtu + 18 {
            return;
        }
        self.with(|h, cx| h.receive(ifindex, Box::new(skb), cx));
    }

    /// Plays it; answers how many packets went out as recorded.
    pub(crate) fn play(mut self, tell: bool) -> Result<usize, String> {
        let mut packets = 0;
        for (n, step) in self.recorded["steps"].as_array().expect("steps").iter().enumerate() {
            let next = Time::from_ns(number(step, "at") as i64 * 1_000_000);
            self.run_until(next);
            self.act(n, step);
            let later = Time::from_ns(next.as_ns() + 200_000_000);
            self.run_until(later);
            let ours: Vec<(String, Skb)> = in_order(std::mem::take(&mut self.out));
            let theirs = step["out"].as_array().expect("frames");
            let text: Vec<Value> =
                ours.iter().map(|(dev, skb)| json!([dev, describe(skb).expect("IP")])).collect();
            if tell {
                let shown = json!([step["in"], step["packet"], step["reply"], step["error"], step["flags"]]);
                println!("step {n} {shown}\n  linux {}\n  ours  {}", json!(theirs), json!(text));
            }
            if theirs.len() != ours.len() {
                return Err(format!("step {n}: linux {} frames, ours {}", json!(theirs), json!(text)));
            }
            for (theirs, ours) in theirs.iter().zip(&text) {
                self.same(theirs, ours)
                    .map_err(|key| format!("step {n}: {key}: linux {theirs}, ours {ours}"))?;
                packets += 1;
            }
            self.steps.push(ours);
            if let Some(table) = step["table"].as_array() {
                self.now = Time::from_ns(next.as_ns() + 450_000_000);
                self.table(table).map_err(|said| format!("step {n}: {said}"))?;
            }
        }
        Ok(packets)
    }
    fn run_until(&mut self, until: Time) {
        while let Some(at) = self.host.next_timer().filter(|&at| at <= until) {
            self.now = self.now.max(at);
            self.with(|h, cx| h.handle_timer(cx));
        }
        self.now = until;
    }
    fn act(&mut self, n: usize, step: &Value) {
        let dev = step["in"].as_str().unwrap_or("");
        if step["packet"].is_object() {
            let mut skb = build(&step["packet"]);
            if step["send"] == true {
                let _ = self.with(|h, cx| h.send(Box::new(skb), cx));
                return;
            }
            if let L3::Ipv4(h) = &mut skb.l3 {
                h.id = n as u16 + 1;
            }
            match step["pieces"].as_u64() {
                Some(size) => {
                    pieces(&skb, size as u32, n as u32 + 1).into_iter().for_each(|p| self.receive(dev, p))
                }
                None => self.receive(dev, skb),
            }
            return;
        }
        let place = if step["reply"].is_array() { &step["reply"] } else { &step["error"] };
        let at = |i: usize| place[i].as_u64().expect("a place") as usize;
        let Some((_, about)) = self.steps[at(0)].get(at(1)).cloned() else { return };
        let p = describe(&about).expect("IP");
        let made = if step["reply"].is_array() { reply(&p, step) } else { error(&p, step) };
        if let Some(made) = made {
            self.receive(dev, build(&made));
        }
    }

    /// Whether two packets are the same but for ports that chance has chosen.
    fn same(&mut self, theirs: &Value, ours: &Value) -> Result<(), String> {
        let (a, b) = (&theirs[1], &ours[1]);
        if theirs[0] != ours[0] {
            return Err("device".to_owned());
        }
        let keys = |v: &Value| v.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>());
        let (mut left, mut right) = (keys(a).unwrap_or_default(), keys(b).unwrap_or_default());
        left.sort();
        right.sort();
        if left != right {
            return Err("fields".to_owned());
        }
        for key in left {
            match key.as_str() {
                "sport" | "dport" | "id" => self.port(number(a, &key), number(b, &key))?,
                "about" => {
                    self.same(&json!([theirs[0], a["about"]]), &json!([ours[0], b["about"]]))?;
                }
                _ if a[&key] != b[&key] => return Err(key),
                _ => {}
            }
        }
        Ok(())
    }
    fn port(&mut self, theirs: u64, ours: u64) -> Result<(), String> {
        // A rule gives few ports to many connections: any of these may be any other.
        const FEW: [std::ops::RangeInclusive<u64>; 2] = [3000..=3100, 4000..=4001];
        if FEW.iter().any(|few| few.contains(&theirs) && few.contains(&ours)) {
            return Ok(());
        }
        if let Some(known) = self.ports.get(&theirs) {
            return if *known == ours { Ok(()) } else { Err(format!("port {theirs}")) };
        }
        if theirs == ours {
            return Ok(());
        }
        // Chance keeps to the classes of nf_nat_l4proto_unique_tuple.
        let class = |port: u64| match port {
            0..512 => 0,
            512..1024 => 1,
            _ => 2,
        };
        if NAMED.contains(&theirs) || NAMED.contains(&ours) || class(theirs) != class(ours) {
            return Err("port".to_owned());
        }
        self.ports.insert(theirs, ours);
        Ok(())
    }

    /// How often a connection is used is the kernel's: a packet that waits for ARP counts there.
    fn table(&mut self, theirs: &[Value]) -> Result<(), String> {
        let text = self.host.read_file_at("/proc/net/nf_conntrack", self.now).unwrap_or_default();
        let ours = sorted(text.lines());
        let theirs = sorted(theirs.iter().filter_map(|line| line.as_str()));
        let same = ours.len() == theirs.len()
            && theirs.iter().zip(&ours).all(|(a, b)| {
                let (a, b): (Vec<&str>, Vec<&str>) = (a.split(' ').collect(), b.split(' ').collect());
                a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| self.same_word(a, b))
            });
        if same {
            return Ok(());
        }
        Err(format!("the table\nlinux\n{}\nours\n{}", theirs.join("\n"), ours.join("\n")))
    }
    fn same_word(&mut self, a: &str, b: &str) -> bool {
        match (port_of(a), port_of(b)) {
            (Some((key, a)), Some((other, b))) => key == other && self.port(a, b).is_ok(),
            _ => a == b,
        }
    }
}

/// A port, or what stands for one, in a line of the table.
fn port_of(word: &str) -> Option<(&str, u64)> {
    let (key, value) = word.split_once('=').filter(|w| matches!(w.0, "sport" | "dport" | "id"))?;
    Some((key, value.parse().ok()?))
}

/// Lines of a table without the last word, in an order that chance has no part in.
fn sorted<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all: Vec<&str> = lines.filter_map(|line| line.rsplit_once(" use=").map(|l| l.0)).collect();
    all.sort_by_cached_key(|line| {
        let known = |w: &&str| port_of(w).is_none_or(|(_, port)| NAMED.contains(&port));
        line.split(' ').filter(known).collect::<Vec<_>>().join(" ")
    });
    all
}

/// The recorder reads one device after the other.
fn in_order(mut all: Vec<(String, Skb)>) -> Vec<(String, Skb)> {
    // Neighbours', routers' and listeners' words are left out.
    all.retain(|(_, skb)| match (skb.l3, skb.l4) {
        (L3::Ipv6(_), L4::Icmp(i)) => i.ty < 130,
        (l3, _) => matches!(l3, L3::Ipv4(_) | L3::Ipv6(_)),
    });
    all.sort_by_key(|(dev, _)| DEVICES.iter().position(|d| d == dev));
    all
}

/// The same packet in fragments of so many bytes of payload.
fn pieces(whole: &Skb, size: u32, ident: u32) -> Vec<Skb> {
    let headers = if matches!(whole.l3, L3::Ipv6(_)) { 40 } else { 20 };
    let payload = whole.network_len() - headers;
    let mut out = Vec::new();
    for at in (0..payload).step_by(size as usize) {
        let len = size.min(payload - at);
        let more = at + len < payload;
        let mut piece = whole.clone();
        let mut frame = 14 + headers + len;
        match &mut piece.l3 {
            L3::Ipv4(h) => h.frag_off = u16::from(more) << 13 | (at / 8) as u16,
            L3::Ipv6(h) => {
                let frag_off = at as u16 | u16::from(more);
                h.fragment = Fragment { id: ident, frag_off, next_header: h.next_header };
                h.next_header = 44;
                frame += 8;
            }
            _ => {}
        }
        (piece.len, piece.pkt_len) = (frame, frame);
        if at > 0 {
            piece.l4 = L4::None;
        } else if headers == 40 {
            piece.rare_mut().datagram = Some(payload as u16);
        }
        out.push(piece);
    }
    out
}

/// An answer to a packet, as the recorder makes it.
fn reply(p: &Value, step: &Value) -> Option<Value> {
    let mut back = json!({
        "proto": p["proto"], "src": p["dst"], "dst": p["src"], "ttl": 60, "data": step["data"],
    });
    if p["proto"] == "icmp" {
        let ask = p["type"].as_u64().unwrap_or(0);
        let answer = match ask {
            128 => 129,
            _ if ask == u64::from(icmp::ECHO) => 0,
            _ => return None,
        };
        for (key, value) in
            [("type", json!(answer)), ("code", json!(0)), ("id", p["id"].clone()), ("n", p["n"].clone())]
        {
            back[key] = value;
        }
        return Some(back);
    }
    (back["sport"], back["dport"]) = (p["dport"].clone(), p["sport"].clone());
    if p["proto"] == "tcp" {
        let flags = p["flags"].as_str().unwrap_or("");
        let counts = u64::from(flags.contains(['S', 'F']));
        let seq = match (step["flags"].as_str(), number(p, "ack")) {
            (Some("SA"), _) => 5000,
            (_, 0) => 5001,
            (_, ack) => ack,
        };
        (back["seq"], back["ack"]) = (json!(seq), json!(number(p, "seq") + counts));
        (back["flags"], back["data"]) = (step["flags"].clone(), json!(0));
    }
    Some(back)
}

/// An ICMP error about a packet.
fn error(p: &Value, step: &Value) -> Option<Value> {
    Some(json!({
        "proto": "icmp", "src": step["src"], "dst": p["src"], "type": step["type"], "code": step["code"],
        "mtu": step["mtu"], "about": p,
    }))
}
