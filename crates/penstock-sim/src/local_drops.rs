//! Linux's own TCP above a queue of its own host that drops, segment by segment: `vectors/tcp/local_drops.jsonl`, recorded by
//! `vectors/tcp/tcp_scenarios.py` from what `vectors/tcp/local_drop_list.py` lists; and the same of super-packets (`supers.jsonl`, `supers_list.py`).
//! The whole way is ours here: socket, discipline, card.

use crate::World;
use crate::app::{Cx, Program};
use crate::index::NONE;
use crate::sock::SockOpts;
use crate::spec::{End, FlowSpec, HostId, LinkSpec, Transport};
use crate::wake::Wake;
use penstock_host::Prefix;
use penstock_model::traffic::{Dist, Load, Sizes, TcpWishes};
use penstock_model::{Kernel, Span, Time};
use penstock_packet::{L3, L4};
use serde_json::Value;
use std::collections::VecDeque;

/// A segment: sequence, length, acknowledgement, flags, window, SACK blocks; numbers relative.
type Segment = (u32, u32, u32, u8, u16, Vec<(u32, u32)>);

/// One side's segments, with their times in us.
type Side = Vec<(i64, Segment)>;

/// How far apart the times may be, us: the kernel's clock creeps with each look at it, and tbf counts in ticks of 64 ns.
const NEAR_US: i64 = 100;

/// The sender of a scenario: writes at its times, in calls of 128 KiB at most.
struct Sender {
    writes: VecDeque<(Span, u64)>,
    close: bool,
    nodelay: bool,
    sndbuf: u32,
    cc: String,
    isn: u32,
    sock: u32,
    opened: Time,
    timer: u32,
}

/// What one call writes at most.
const CHUNK: u64 = 131_072;

impl Sender {
    /// What is due is written; then waits for the next.
    fn go_on(&mut self, cx: &mut Cx<'_>) {
        while let Some(&(at, bytes)) = self.writes.front() {
            let due = self.opened + at;
            if due > cx.now() {
                return cx.net.set_timer(self.timer, due);
            }
            self.writes.pop_front();
            let mut left = bytes;
            while left > 0 {
                let now = left.min(CHUNK);
                left -= now;
                cx.net.tcp_send(self.sock, now, self.close && left == 0 && self.writes.is_empty());
            }
        }
    }
}

impl Program for Sender {
    fn start(&mut self, cx: &mut Cx<'_>) {
        let flow = cx.new_flow("scenario".to_owned(), cx.host, 2, "tcp");
        let mut cfg = cx.net.tcp_config(cx.host);
        cfg.set_cc(&self.cc).unwrap();
        cfg.nodelay = self.nodelay;
        cfg.set_sndbuf(self.sndbuf);
        let remote = ("10.0.2.2".parse().unwrap(), 5001);
        cx.net.machines[cx.host as usize].sockets.set_isn(self.isn);
        self.sock =
            cx.net.tcp_connect(cx.host, cx.app, remote, flow, true, SockOpts::default(), cfg).unwrap();
        self.timer = cx.net.wakes.new_timer(cx.app, 0);
    }
    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        match wake {
            Wake::Connected(_) => {
                self.opened = cx.now();
                self.go_on(cx);
            }
            Wake::Timer(_) => self.go_on(cx),
            _ => {}
        }
    }
}

pub(crate) fn millis(v: &Value) -> Span {
    Span::from_us((v.as_f64().unwrap_or(0.0) * 1e3).round() as i64)
}

/// Sender, router and receiver as the recorders have them; what the receiver sends comes `delay` later.
pub(crate) fn line(w: &mut World, delay: Span) -> [HostId; 3] {
    let hosts = ["a", "r", "b"].map(|name| w.add_host(name, Kernel::V6_12));
    let [a, r, b] = hosts;
    let back = End { delay: Some(delay), ..End::new(b, "vb") };
    w.add_link(LinkSpec::new(End::new(a, "va"), End::new(r, "ra"), None, Span::ZERO)).unwrap();
    w.add_link(LinkSpec::new(End::new(r, "rb"), back, None, Span::ZERO)).unwrap();
    for (host, device, address) in [
        (a, "va", "10.0.1.1/24"),
        (r, "ra", "10.0.1.254/24"),
        (r, "rb", "10.0.2.254/24"),
        (b, "vb", "10.0.2.2/24"),
    ] {
        let ifindex = w.host(host).ifindex(device).unwrap();
        w.host_mut(host).add_address(ifindex, Prefix::parse(address).unwrap()).unwrap();
    }
    let mac = |w: &World, host: HostId, device: &str| {
        let ifindex = w.host(host).ifindex(device).unwrap();
        w.host(host).device(ifindex).unwrap().mac.map(|b| format!("{b:02x}")).join(":")
    };
    for (host, device, address, peer, card) in [
        (a, "va", "10.0.1.254", r, "ra"),
        (r, "ra", "10.0.1.1", a, "va"),
        (r, "rb", "10.0.2.2", b, "vb"),
        (b, "vb", "10.0.2.254", r, "rb"),
    ] {
        let mac = mac(w, peer, card);
        exec(w, host, &format!("ip neigh replace {address} lladdr {mac} dev {device} nud permanent"));
    }
    exec(w, a, "ip route add default via 10.0.1.254");
    exec(w, b, "ip route add default via 10.0.2.254");
    exec(w, r, "sysctl -w net.ipv4.ip_forward=1");
    for host in hosts {
        w.host_mut(host).set_hz(100);
    }
    hosts
}

/// Runs a scenario: sender, router and receiver as the recorder has them. Answers both sides' segments as the sender's device sees them.
fn run(s: &Value, isn: u32) -> [Side; 2] {
    let mut w = World::new(1);
    let hosts = line(&mut w, millis(&s["delay_ms"]));
    let [a, r, b] = hosts;
    for (key, value) in s["sysctl"].as_object().into_iter().flatten() {
        for host in [a, b] {
            exec(&mut w, host, &format!("sysctl -w {key}={value}"));
        }
    }
    if let Some(cut) = s["supers"].as_str() {
        for host in hosts {
            w.host_mut(host).set_offloads(true);
        }
        if cut == "kernel" {
            exec(&mut w, a, "ethtool -K va tso off");
        }
        if let Some(most) = s["gso_max_segs"].as_u64() {
            exec(&mut w, a, &format!("ip link set va gso_max_segs {most}"));
        }
    }
    for command in s["local"].as_array().unwrap() {
        exec(&mut w, a, &format!("tc {}", command.as_str().unwrap()));
    }
    if let (Some(rate), Some(limit)) = (s["rate"].as_str(), s["limit"].as_u64()) {
        exec(&mut w, r, &format!("tc qdisc add dev rb root tbf rate {rate} burst 1514 limit {limit}"));
    }
    let start = Time::from_ns(s["connect_ns"].as_i64().unwrap());
    if let Some(udp) = s["udp"].as_array() {
        let load = Load::Packets {
            size: Sizes::Constant(udp[0].as_u64().unwrap() as u32),
            gap: Dist::Constant(Span::from_us(udp[1].as_i64().unwrap())),
        };
        let from = start - millis(&udp[2]);
        w.add_flow(FlowSpec {
            transport: Transport::Udp,
            load,
            start: from,
            start_to: from,
            port: 9,
            ..crate::bench::greedy(a, b)
        })
        .unwrap();
    }
    let cfg = crate::app::flow::configure(w.net.tcp_config(b.0), &TcpWishes::default());
    let listener =
        crate::sock::Listener { cfg: Box::new(cfg), backlog: 5, sink: true, fast: Default::default() };
    w.net.tcp_listen(b.0, NONE, 5001, SockOpts::default(), listener).unwrap();
    let writes = match s["writes"].as_array() {
        Some(writes) => writes.iter().map(|x| (millis(&x[0]), x[1].as_u64().unwrap())).collect(),
        None => VecDeque::from([(Span::ZERO, s["bytes"].as_u64().unwrap())]),
    };
    let sender = Sender {
        writes,
        close: s["close"] == true,
        nodelay: s["nodelay"] == true,
        sndbuf: s["sndbuf"].as_u64().unwrap() as u32,
        cc: s["cc"].as_str().unwrap().to_owned(),
        isn,
        sock: NONE,
        opened: Time::ZERO,
        timer: NONE,
    };
    w.add_program(a, "scenario", start, Box::new(sender));
    w.watch(a, "va");
    w.watch(r, "ra");
    let open = Span::from_us(s["open_us"].as_i64().unwrap());
    // The SYN may have waited.
    let syn = Time::from_ns(s["start_ns"].as_i64().unwrap());
    w.run_quietly(syn + open + millis(&s["for_ms"]));
    sides(&w)
}

pub(crate) fn exec(w: &mut World, host: HostId, line: &str) {
    let output = w.exec(host, line);
    assert_eq!(output.status, 0, "{line}: {}", output.stderr);
}

/// What the two cards have sent of the connection.
fn sides(w: &World) -> [Side; 2] {
    let mut seen: Vec<(Time, bool, penstock_packet::Tcp, u32)> = Vec::new();
    let watched = w.net.cables.nics.iter().filter_map(|nic| nic.watch.as_ref());
    for (watch, out) in watched.zip([true, false]) {
        for (at, frame) in &watch.frames {
            if let (L3::Ipv4(_), L4::Tcp(tcp)) = (frame.l3, frame.l4) {
                seen.push((*at, out, tcp, frame.network_len() - 20 - tcp.header_len()));
            }
        }
    }
    let start = seen.first().map_or(Time::ZERO, |s| s.0);
    let first = |out| seen.iter().find(|s| s.1 == out).map_or(0, |s| s.2.seq);
    let isn = [first(true), first(false)];
    let mut sides = [Side::new(), Side::new()];
    for (at, out, tcp, len) in &seen {
        let (mine, theirs) = (isn[usize::from(!out)], isn[usize::from(*out)]);
        let ack = if tcp.flags.0 & 0x10 != 0 { tcp.ack.wrapping_sub(theirs) } else { 0 };
        let sacks = tcp.sack_blocks().iter();
        let sacks = sacks.map(|b| (b.0.wrapping_sub(theirs), b.1.wrapping_sub(theirs))).collect();
        let segment = (tcp.seq.wrapping_sub(mine), *len, ack, tcp.flags.byte(), tcp.window, sacks);
        sides[usize::from(!out)].push(((*at - start).as_ns() / 1000, segment));
    }
    sides
}

fn recorded(s: &Value) -> [Side; 2] {
    let mut sides = [Side::new(), Side::new()];
    for row in s["segments"].as_array().unwrap() {
        let n = |i: usize| row[i].as_u64().unwrap();
        let sacks = row[7].as_array().unwrap().iter();
        let sacks = sacks.map(|b| (b[0].as_u64().unwrap() as u32, b[1].as_u64().unwrap() as u32)).collect();
        let segment = (n(2) as u32, n(3) as u32, n(4) as u32, n(5) as u8, n(6) as u16, sacks);
        sides[usize::from(row[1] != ">")].push((row[0].as_i64().unwrap(), segment));
    }
    sides
}

/// The first place where two lists are not alike.
fn first_difference(want: &Side, got: &Side, last_us: i64) -> Option<String> {
    let show = |x: Option<&(i64, Segment)>| x.map_or("nothing".to_owned(), |x| format!("{x:?}"));
    for n in 0..want.len().max(got.len()) {
        let (w, g) = (want.get(n), got.get(n));
        let alike = match (w, g) {
            (Some(w), Some(g)) => w.1 == g.1 && (w.0 - g.0).abs() <= NEAR_US,
            // The end of the recording falls between two segments here or there.
            (Some(x), None) | (None, Some(x)) => x.0 > last_us - 10 * NEAR_US,
            (None, None) => true,
        };
        if !alike {
            return Some(format!("number {n}: recorded {} here {}", show(w), show(g)));
        }
    }
    None
}

fn differences(want: &[Side; 2], got: &[Side; 2], last_us: i64) -> Vec<String> {
    let sides = want.iter().zip(got).zip(['>', '<']);
    sides.filter_map(|((w, g), dir)| Some(format!("{dir} {}", first_difference(w, g, last_us)?))).collect()
}

#[test]
fn segments_above_a_queue_that_drops_are_linux_s() {
    hold(
        "PENSTOCK_SCENARIOS",
        include_str!("../../../vectors/tcp/local_drops.jsonl"),
        include_str!("../../../vectors/tcp/local_drops_differences.txt"),
    );
}

#[test]
fn super_packets_are_linux_s() {
    hold(
        "PENSTOCK_SUPERS",
        include_str!("../../../vectors/tcp/supers.jsonl"),
        include_str!("../../../vectors/tcp/supers_differences.txt"),
    );
}

/// Holds the scenarios of a recording against ours, but for those that are listed with a reason. The variable `other` names another recording;
/// `PENSTOCK_SCENARIO=NAME` looks at those whose name holds it and prints both sides.
fn hold(other: &str, text: &str, listed: &str) {
    let other = std::env::var(other).ok();
    let text = match &other {
        Some(path) => std::fs::read_to_string(path).unwrap(),
        None => text.to_owned(),
    };
    let only = std::env::var("PENSTOCK_SCENARIO").ok();
    let listed: Vec<&str> = listed
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| l.split_once(": ").expect("a name and a reason").0)
        .collect();
    let (mut alike, mut faults) = (0, Vec::new());
    for line in text.lines() {
        let s: Value = serde_json::from_str(line).unwrap();
        let name = s["name"].as_str().unwrap();
        if only.as_ref().is_some_and(|o| !name.contains(o.as_str())) {
            continue;
        }
        let want = recorded(&s);
        let last = s["open_us"].as_i64().unwrap() + millis(&s["for_ms"]).as_ns() / 1000;
        // With which of seven phases BBR's cycle begins is drawn by dice: one of them has to be Linux's.
        let throws = if s["cc"] == "bbr" { 24 } else { 1 };
        let mut found = Vec::new();
        for isn in 0..throws {
            let got = run(&s, 1_000_000 + isn);
            found = differences(&want, &got, last);
            if only.is_some() && (found.is_empty() || isn + 1 == throws) {
                for (side, dir) in [(0, '>'), (1, '<')] {
                    for n in 0..want[side].len().max(got[side].len()) {
                        println!("{dir} {n} {:?} | {:?}", want[side].get(n), got[side].get(n));
                    }
                }
            }
            if found.is_empty() {
                break;
            }
        }
        let known = other.is_none() && listed.contains(&name);
        if found.is_empty() && known {
            faults.push(format!("{name}\n    is alike: take it off the list"));
        } else if found.is_empty() {
            alike += 1;
        } else if !known || only.is_some() {
            faults.push(format!("{name}\n    {}", found.join("\n    ")));
        }
    }
    println!("{alike} scenarios are alike, {} are listed", listed.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
