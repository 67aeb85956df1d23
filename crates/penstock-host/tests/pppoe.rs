//! A line of PPPoE, frame by frame against what pppd and pppoe-server said on Linux 6.12 (`vectors/stack/pppoe.jsonl`, made by `vectors/stack/pppoe.py`).
//!
//! The frames of each end are compared in their order: what it is, its session and its lengths. Then what `ip` shows, and the counters.

use penstock_host::{Effect, FileError, Files, Host, HostCx};
use penstock_model::{Kernel, Span, Time};
use penstock_packet::{Head, Ipv4, L3, L4, Packet, Pool, Skb, Udp};
use serde_json::{Value, json};
use std::collections::VecDeque;

struct Etc(String);

impl Files for Etc {
    fn read(&mut self, path: &str) -> Result<String, FileError> {
        match path {
            "/etc/ppp/server" => Ok(self.0.clone()),
            "/etc/ppp/pap-secrets" => Ok("\"alice\" * \"secret\" *\n".to_owned()),
            "/etc/ppp/peers/dsl" => Ok("plugin rp-pppoe.so\nnic-eth1 # the modem\nuser \"alice\"\npersist\n\
                lcp-echo-interval 2\nlcp-echo-failure 3\nholdoff 5\n"
                .to_owned()),
            _ => Err(FileError::NotFound),
        }
    }
}

/// A home gateway `a` with `eth1` and a provider `b` with `eth0`.
struct Line {
    hosts: [Host; 2],
    pool: Pool,
    now: Time,
    etc: Etc,
    wire: Vec<Value>,
    delivered: usize,
    flying: VecDeque<(Time, usize, Packet)>,
    /// The cable is out.
    cut: bool,
}

impl Line {
    fn new(server: &str) -> Line {
        let hosts = [("a", "eth1"), ("b", "eth0")].map(|(name, device)| {
            let mut host = Host::new(name, Kernel::V6_12, 1);
            host.add_device(device);
            host
        });
        let etc = Etc(server.to_owned());
        let (wire, flying, now) = (Vec::new(), VecDeque::new(), Time::from_ns(2_000_000_000));
        let mut line = Line { hosts, pool: Pool::new(), now, etc, wire, delivered: 0, flying, cut: false };
        line.command(0, "ip link set eth1 up");
        line.command(1, "ip link set eth0 up");
        line
    }
    fn command(&mut self, n: usize, line: &str) -> String {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let done = self.hosts[n].command(&words, &mut self.etc, self.now);
        assert!(done.status == 0, "{line}: {}", done.stderr);
        let mut effects = Vec::new();
        self.hosts[n].take_effects(&mut effects);
        effects.into_iter().for_each(|effect| self.effect(n, effect));
        self.settle();
        done.stdout
    }
    fn with<R>(&mut self, n: usize, f: impl FnOnce(&mut Host, &mut HostCx<'_>) -> R) -> R {
        let mut out = Vec::new();
        let mut cx = HostCx { now: self.now, pool: &mut self.pool, out: &mut out };
        let result = f(&mut self.hosts[n], &mut cx);
        out.into_iter().for_each(|effect| self.effect(n, effect));
        result
    }
    fn effect(&mut self, n: usize, effect: Effect) {
        match effect {
            Effect::Kick(ifindex) => {
                while let Some(frame) = self.with(n, |h, cx| h.dequeue(ifindex, cx)) {
                    self.flying.push_back((self.now + Span::from_ms(20), 1 - n, frame));
                }
            }
            Effect::Next(ifindex, packet) => self.with(n, |h, cx| h.comes_to(ifindex, packet, cx)),
            Effect::Deliver(_) => self.delivered += 1,
            _ => {}
        }
    }
    fn settle(&mut self) {
        loop {
            let due = |h: &Host| h.next_timer().is_some_and(|at| at <= self.now);
            if let Some(n) = self.hosts.iter().position(due) {
                self.with(n, |h, cx| h.handle_timer(cx));
                continue;
            }
            if self.flying.front().is_none_or(|f| f.0 > self.now) {
                return;
            }
            let Some((_, to, mut frame)) = self.flying.pop_front() else { return };
            self.wire.extend(told(1 - to, &frame));
            if self.cut {
                continue;
            }
            frame.travel();
            let ifindex = self.hosts[to].ifindex(["eth1", "eth0"][to]).expect("a card");
            self.with(to, |h, cx| h.receive(ifindex, frame, cx));
        }
    }
    fn run(&mut self, ms: i64) {
        let until = self.now + Span::from_ms(ms);
        self.settle();
        loop {
            let timers = self.hosts.iter().filter_map(Host::next_timer);
            let next = timers.chain(self.flying.front().map(|f| f.0)).min();
            let Some(at) = next.filter(|&at| at <= until) else { break };
            self.now = self.now.max(at);
            self.settle();
        }
        self.now = until;
    }
    fn send(&mut self, n: usize, dst: &str, data: u32, tos: u8) {
        let h = Ipv4 { tos, ttl: 0, ..Ipv4::new([0; 4].into(), dst.parse().expect("an address"), 17) };
        let l4 = L4::Udp(Udp { sport: 9000, dport: 9000 });
        let packet = Box::new(Skb::new(14 + 28 + data, L3::Ipv4(h), l4));
        let _ = self.with(n, |h, cx| h.send(packet, cx));
        self.settle();
    }
    fn stats(&self, n: usize) -> Value {
        let device = self.hosts[n].ifindex("ppp0").and_then(|i| self.hosts[n].device(i)).expect("ppp0");
        let c = device.counters;
        json!([c.rx_packets, c.rx_bytes, c.tx_packets, c.tx_bytes])
    }
}

/// A frame as the recorder tells it, from its bytes.
fn told(from: usize, frame: &Skb) -> Option<Value> {
    let mut bytes = Vec::new();
    frame.frame_bytes(usize::MAX, &mut bytes);
    let two = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let disc = match two(12) {
        0x8863 => true,
        0x8864 => false,
        _ => return None,
    };
    let side = ["a", "b"][from];
    let mut told = json!({
        "from": side, "disc": disc, "code": bytes[15], "sid": two(16), "said": two(18), "len": frame.len,
    });
    if !disc {
        told["proto"] = two(20).into();
        if two(20) >= 0x8000 {
            told["ppp"] = json!([bytes[22], bytes[23]]);
        }
    }
    Some(told)
}

/// Those of each end, in order: what it says by itself, and packets. An echo and a packet at one moment go in either order.
fn apart(frames: &[Value]) -> [Vec<&Value>; 4] {
    let packet = |f: &Value| f["proto"].as_u64().is_some_and(|p| p < 0x8000);
    let of = |(side, data): (&str, bool)| {
        frames.iter().filter(|f| f["from"] == side && packet(f) == data).collect()
    };
    [("a", false), ("a", true), ("b", false), ("b", true)].map(of)
}

fn compare(what: &str, ours: &[Value], theirs: &Value) -> Result<usize, String> {
    let theirs = theirs.as_array().expect("frames");
    if apart(ours) == apart(theirs) {
        return Ok(ours.len());
    }
    let (a, b) = (apart(theirs), apart(ours));
    let side = (0..3).find(|&n| a[n] != b[n]).unwrap_or(3);
    let n = a[side].iter().zip(&b[side]).take_while(|(a, b)| a == b).count();
    Err(format!("{what} {n}\n  linux {:?}\n  ours  {:?}", a[side].get(n), b[side].get(n)))
}

fn play(case: &Value) -> Result<usize, String> {
    let text = |key: &str| case[key].as_str().expect("a text").to_owned();
    let mut line = Line::new(&text("server"));
    line.command(1, &format!("pppoe-server {} -O /etc/ppp/server -k", text("options")));
    line.command(0, &format!("pppd {}", text("client")));
    line.run(1500);
    let mut seen = compare("dial", &std::mem::take(&mut line.wire), &case["dial"])?;
    for (n, side) in ["a", "b"].into_iter().enumerate() {
        let shown = line.command(n, "ip addr show ppp0") + &line.command(n, "ip route");
        let plain = |text: &str| text.replace(" \n", "\n").split_once(": ").map(|t| t.1.to_owned());
        let theirs = case["shown"][side].as_str().expect("a text");
        if plain(&shown) != plain(theirs) {
            return Err(format!("{side} shows\n{shown}linux\n{theirs}"));
        }
    }
    let options = text("options");
    let remote = options.split("-R ").nth(1).and_then(|t| t.split(' ').next()).expect("an address");
    for (n, step) in case["steps"].as_array().expect("steps").iter().enumerate() {
        let side = usize::from(step["side"] == "b");
        let number = |key: &str| step[key].as_u64().expect("a number") as u32;
        line.send(side, ["10.0.0.1", remote][side], number("data"), number("tos") as u8);
        line.run(300);
        seen += compare(&format!("step {n}"), &std::mem::take(&mut line.wire), &step["wire"])?;
    }
    let stats = json!({"a": line.stats(0), "b": line.stats(1)});
    if stats != case["stats"] {
        return Err(format!("counters {stats}, linux {}", case["stats"]));
    }
    line.command(0, "poff");
    line.run(500);
    seen += compare("end", &std::mem::take(&mut line.wire), &case["end"])?;
    // The other end waits for a word of who has ended it.
    line.run(4000);
    for n in 0..2 {
        assert!(line.hosts[n].ifindex("ppp0").is_none(), "the device goes with the session");
    }
    Ok(seen)
}

#[test]
fn lines_say_what_real_ones_said() {
    let text = include_str!("../../../vectors/stack/pppoe.jsonl");
    let (mut frames, mut wrong, mut cases) = (0, Vec::new(), 0);
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        cases += 1;
        match play(&case) {
            Ok(seen) => frames += seen,
            Err(why) => wrong.push(format!("seed {}: {why}", case["seed"])),
        }
    }
    assert!(wrong.is_empty(), "{} of {cases} differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases >= 40 && frames > 1000, "{cases} {frames}");
}

#[test]
fn a_dead_line_is_dialled_again() {
    let mut line = Line::new("require-pap lcp-echo-interval 0");
    line.command(1, "pppoe-server -I eth0 -L 10.0.0.1 -R 10.0.0.2 -C isp -O /etc/ppp/server");
    line.command(0, "pppd call dsl");
    line.run(1000);
    line.send(0, "10.0.0.1", 100, 0);
    line.run(100);
    assert_eq!(line.delivered, 1);
    line.cut = true;
    line.run(20_000);
    let up = |line: &Line| {
        let i = line.hosts[0].ifindex("ppp0")?;
        line.hosts[0].device(i).map(|d| d.up)
    };
    assert_ne!(up(&line), Some(true));
    line.cut = false;
    line.run(60_000);
    assert_eq!(up(&line), Some(true));
    let before = line.delivered;
    line.send(0, "10.0.0.1", 100, 0);
    line.run(100);
    assert_eq!(line.delivered, before + 1);
}

#[test]
fn a_wrong_password_has_no_line() {
    let mut line = Line::new("require-pap");
    line.command(1, "pppoe-server -I eth0 -O /etc/ppp/server");
    line.command(0, "pppd plugin rp-pppoe.so eth1 user alice password wrong noauth");
    line.run(30_000);
    let nak = |f: &Value| f["proto"] == 0xc023 && f["ppp"][0] == 3;
    assert!(line.wire.iter().any(nak));
    assert!(line.hosts.iter().all(|h| h.ifindex("ppp0").is_none()));
}

#[test]
fn a_device_that_is_taken_away_comes_again() {
    let mut line = Line::new("noauth");
    line.command(0, "pppd call dsl");
    line.command(0, "ip link del ppp0");
    line.command(1, "pppoe-server -I eth0 -L 10.0.0.1 -R 10.0.0.2 -O /etc/ppp/server");
    line.run(10_000);
    line.send(0, "10.0.0.1", 100, 0);
    line.run(100);
    assert_eq!(line.delivered, 1);
    // With the session it is up, and goes: nothing panics, and packets for it are lost.
    line.command(1, "ip link del ppp0");
    line.send(0, "10.0.0.1", 100, 0);
    line.run(100_000);
    assert_eq!(line.delivered, 1);
}

#[test]
fn what_is_not_done_is_refused() {
    let mut line = Line::new("");
    for refused in [
        "pppd plugin rp-pppoe.so eth1 mppe required",
        "pppd plugin pptp.so",
        "pppd /dev/ttyS0 115200",
        "pppd plugin rp-pppoe.so eth9",
        "pppoe-server -I eth1 -T 5",
        "poff",
        "pppd call nobody",
    ] {
        let words: Vec<String> = refused.split(' ').map(str::to_owned).collect();
        let done = line.hosts[0].command(&words, &mut line.etc, line.now);
        assert!(done.status != 0 && !done.stderr.is_empty(), "{refused}");
    }
    assert!(line.hosts[0].ifindex("ppp0").is_none());
}

/// The card of a line sees the flow and the priority of a packet within, and its session; frames of anybody else are nobody's.
#[test]
fn queues_below_know_the_session() {
    let mut line = Line::new("noauth");
    line.command(0, "tc qdisc add dev eth1 root handle 1: prio bands 3");
    line.command(0, "tc filter add dev eth1 parent 1: protocol ppp_ses prio 1 flower pppoe_sid 1 ppp_proto ip action pass classid 1:3");
    line.command(1, "pppoe-server -I eth0 -L 10.0.0.1 -R 10.0.0.2 -O /etc/ppp/server");
    line.command(0, "pppd plugin rp-pppoe.so eth1 noauth");
    line.run(1000);
    let sent = |line: &mut Line| line.command(0, "tc -s class show dev eth1 classid 1:3");
    let bytes = |shown: &str| {
        let text = shown.split("Sent ").nth(1).and_then(|t| t.split(' ').next()).expect("a count");
        text.parse::<u32>().expect("a number")
    };
    let before = bytes(&sent(&mut line));
    line.send(0, "10.0.0.1", 100, 0);
    line.run(100);
    // 28 of IP and UDP, 8 of the session, 14 of Ethernet.
    assert_eq!(bytes(&sent(&mut line)) - before, 150);
    let delivered = line.delivered;
    let mut stray =
        Skb::new(14 + 128, L3::Ipv4(Ipv4::new([10, 0, 0, 2].into(), [10, 0, 0, 1].into(), 17)), L4::None);
    stray.wrap(0x8864, Head::Pppoe { sid: 9, proto: 0x21 });
    let card = line.hosts[1].ifindex("eth0").expect("a card");
    stray.eth.1 = line.hosts[1].device(card).expect("a card").mac;
    line.with(1, |h, cx| h.receive(card, Box::new(stray), cx));
    assert_eq!(line.delivered, delivered);
}
