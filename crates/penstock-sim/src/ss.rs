//! What `ss` shows of sockets in the midst of their work: `vectors/tcp/ss.jsonl`, recorded by `vectors/tcp/ss.py`.

use crate::World;
use crate::app::{Cx, Program};
use crate::index::NONE;
use crate::local_drops::{exec, line, millis};
use crate::sock::{Listener, SockOpts};
use crate::tcp_metrics::six_line;
use crate::wake::Wake;
use penstock_model::traffic::TcpWishes;
use penstock_model::{Span, Time};
use serde_json::Value;
use std::collections::VecDeque;
use std::net::IpAddr;

/// One connection: writes at its times, then closes.
struct Sender {
    cc: String,
    sndbuf: u32,
    remote: (IpAddr, u16),
    begun: Time,
    writes: VecDeque<(Span, u64)>,
    sock: u32,
    timer: u32,
}

/// What one call writes at most.
const CHUNK: u64 = 131_072;

impl Sender {
    fn go_on(&mut self, cx: &mut Cx<'_>) {
        while let Some(&(at, bytes)) = self.writes.front() {
            let due = self.begun + at;
            if due > cx.now() {
                return cx.net.set_timer(self.timer, due);
            }
            self.writes.pop_front();
            let mut left = bytes;
            while left > 0 {
                let now = left.min(CHUNK);
                left -= now;
                cx.net.tcp_send(self.sock, now, left == 0 && self.writes.is_empty());
            }
        }
    }
}

impl Program for Sender {
    fn start(&mut self, cx: &mut Cx<'_>) {
        let flow = cx.new_flow("connection".to_owned(), cx.host, 2, "tcp");
        let mut cfg = cx.net.tcp_config(cx.host);
        cfg.set_cc(&self.cc).unwrap();
        if self.sndbuf > 0 {
            cfg.set_sndbuf(self.sndbuf);
        }
        self.begun = cx.now();
        let opts = SockOpts::default();
        self.sock = cx.net.tcp_connect(cx.host, cx.app, self.remote, flow, true, opts, cfg).unwrap();
        self.timer = cx.net.wakes.new_timer(cx.app, 0);
    }
    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        if matches!(wake, Wake::Connected(_) | Wake::Timer(_)) {
            self.go_on(cx);
        }
    }
}

/// The other side: reads from an instant on, and closes at the end or later.
struct Receiver {
    local: (IpAddr, u16),
    rcvbuf: u32,
    reads_from: Time,
    closes_at: Time,
    sock: u32,
    timer: u32,
    eof: bool,
}

impl Receiver {
    fn go_on(&mut self, cx: &mut Cx<'_>) {
        if self.sock == NONE {
            return;
        }
        if cx.now() < self.reads_from {
            return cx.net.set_timer(self.timer, self.reads_from);
        }
        cx.net.tcp_read(self.sock);
        if self.eof && cx.now() < self.closes_at {
            return cx.net.set_timer(self.timer, self.closes_at);
        }
        if self.eof {
            cx.net.tcp_close(self.sock);
        }
    }
}

impl Program for Receiver {
    fn start(&mut self, cx: &mut Cx<'_>) {
        let mut cfg = crate::app::flow::configure(cx.net.tcp_config(cx.host), &TcpWishes::default());
        if self.rcvbuf > 0 {
            cfg.set_rcvbuf(self.rcvbuf);
        }
        let listener = Listener { cfg: Box::new(cfg), backlog: 5, sink: false, fast: Default::default() };
        let sock = cx.net.tcp_listen(cx.host, cx.app, self.local.1, SockOpts::default(), listener).unwrap();
        cx.net.sockets[sock].local.0 = self.local.0;
        self.timer = cx.net.wakes.new_timer(cx.app, 0);
    }
    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        match wake {
            Wake::Accepted(sock) => self.sock = sock,
            Wake::Eof(_) => self.eof = true,
            Wake::Readable(_) | Wake::Timer(_) => {}
            _ => return,
        }
        self.go_on(cx);
    }
}

/// A socket of UDP.
struct Datagrams {
    local: (IpAddr, u16),
    remote: Option<(IpAddr, u16)>,
}

impl Program for Datagrams {
    fn start(&mut self, cx: &mut Cx<'_>) {
        let sock = cx.net.udp_bind(cx.host, cx.app, self.local.1, SockOpts::default()).unwrap();
        if let Some(remote) = self.remote {
            cx.net.udp_connect(sock, remote, NONE).unwrap();
        }
        cx.net.sockets[sock].local.0 = self.local.0;
    }
    fn wake(&mut self, _: Wake, _: &mut Cx<'_>) {}
}

/// The sockets of a table, each a word list; the heading stands first. Ports that were chosen, inodes and cookies are alike.
fn records(text: &str) -> Vec<Vec<String>> {
    let mut records: Vec<Vec<String>> = Vec::new();
    for line in text.lines() {
        if !line.starts_with('\t') || records.is_empty() {
            records.push(Vec::new());
        }
        let words = line.split_whitespace().filter(|w| !w.starts_with("cgroup:")).map(|word| {
            let chosen = |port: &str| port.parse::<u16>().is_ok_and(|p| p >= 32_768);
            match word.rsplit_once(':') {
                Some((addr, port)) if chosen(port) && addr.contains(['.', ']']) => format!("{addr}:#"),
                Some(("ino", n)) => format!("ino:{}", if n == "0" { "0" } else { "#" }),
                Some(("sk", _)) => "sk:#".to_owned(),
                _ => word.to_owned(),
            }
        });
        if let Some(record) = records.last_mut() {
            record.extend(words);
        }
    }
    // Of the sockets with which the recorder's own programs speak with the kernel there are none here.
    records.retain(|r| r.first().is_none_or(|netid| netid != "nl"));
    let heading = records.iter().take_while(|r| r.iter().any(|w| w == "Recv-Q")).count();
    records[heading..].sort();
    records
}

/// How far apart round trips may be, ms: the kernel's clock creeps with each look at it, and tbf counts in ticks of 64 ns. A jiffy has 10 ms.
const NEAR_MS: f64 = 0.1;
const JIFFY_MS: f64 = 10.0;

/// Whether two words of a socket are alike; `rtt`: the round trip that rates follow from, ms.
fn alike(ours: &str, theirs: &str, before: &str, rtt: f64) -> bool {
    if ours == theirs {
        return true;
    }
    let numbers = |t: &str| -> Vec<f64> {
        t.split(|c: char| !c.is_ascii_digit() && c != '.').filter_map(|n| n.parse().ok()).collect()
    };
    let near = |a: f64, b: f64, by: f64| (a - b).abs() <= by + 1e-9;
    let (a, b) = (numbers(ours), numbers(theirs));
    let name = |t: &str| t.split(':').next().unwrap_or("").to_owned();
    if a.len() != b.len() || name(ours) != name(theirs) && before != "send" && !before.ends_with("_rate") {
        return false;
    }
    let all = |by: f64| a.iter().zip(&b).all(|(a, b)| near(*a, *b, by));
    match (before, name(theirs).as_str()) {
        ("send" | "pacing_rate" | "delivery_rate", _) => {
            let by = (NEAR_MS * 1.5 / rtt.max(0.2)).max(0.02);
            a.len() == 1 && near(a[0], b[0], b[0] * by)
        }
        (_, "rtt" | "minrtt" | "rcv_rtt") => all(NEAR_MS),
        (_, "rto" | "lastsnd" | "lastrcv" | "lastack" | "busy") => all(JIFFY_MS),
        (_, "rwnd_limited" | "sndbuf_limited") => near(a[0], b[0], JIFFY_MS) && near(a[1], b[1], 100.0),
        (_, "timer") => all(JIFFY_MS),
        // Segments without data, 2 bytes each, in the delay behind the receiver, which is the line's here (sk_wmem_alloc).
        (_, "skmem") => {
            let t = |text: &str| text.split(['(', ',', ')']).map(str::to_owned).collect::<Vec<_>>();
            let differ: Vec<_> = t(ours).into_iter().zip(t(theirs)).filter(|(x, y)| x != y).collect();
            let acks = |x: &str| x.strip_prefix('t').and_then(|n| n.parse::<u32>().ok());
            matches!(differ.as_slice(), [(x, y)] if acks(x) == Some(0) && acks(y).is_some_and(|n| n < 500))
        }
        _ => false,
    }
}

fn difference_of(ours: &str, theirs: &str) -> Option<String> {
    let (a, b) = (records(ours), records(theirs));
    if a.len() != b.len() {
        return Some(format!("{} lines, Linux {}", a.len(), b.len()));
    }
    for (x, y) in a.iter().zip(&b) {
        let rtt = y.iter().find_map(|w| w.strip_prefix("rtt:")?.split('/').next()?.parse().ok());
        let rtt = rtt.unwrap_or(1.0);
        let mut before = "";
        for n in 0..x.len().max(y.len()) {
            let (ours, theirs) = (x.get(n).map_or("", |w| w), y.get(n).map_or("", |w| w));
            if !alike(ours, theirs, before, rtt) {
                return Some(format!("{ours:?}, Linux {theirs:?}"));
            }
            before = theirs;
        }
    }
    // Nothing differs: then the columns do not either. With several sockets the last, whose width does not count, may be another.
    let trimmed = |t: &str| t.lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
    let same = a == b && a.len() <= 2 && !theirs.contains("ino:") && !theirs.contains("\nnl ");
    let widths = |t: &str| trimmed(t).iter().map(String::len).collect::<Vec<_>>();
    (same && widths(ours) != widths(theirs)).then(|| "columns of other widths".to_owned())
}

/// Where a scenario differs first.
fn difference(s: &Value) -> Option<String> {
    let mut w = World::new(1);
    let hosts = line(&mut w, millis(&s["delay_ms"]));
    let [a, r, b] = hosts;
    let six = s["six"] == true;
    if six {
        six_line(&mut w, hosts);
    }
    for (key, value) in s["sysctl"].as_object().unwrap() {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        for host in [a, b] {
            exec(&mut w, host, &format!("sysctl -w {key}='{value}'"));
        }
    }
    let (rate, limit) = (s["rate"].as_str().unwrap(), &s["limit"]);
    exec(&mut w, r, &format!("tc qdisc add dev rb root tbf rate {rate} burst 1514 limit {limit}"));
    for command in s["first"].as_array().unwrap() {
        exec(&mut w, a, command.as_str().unwrap());
    }
    let [own, peer]: [IpAddr; 2] = match six {
        true => ["fd00:1::1", "fd00:2::2"],
        false => ["10.0.1.1", "10.0.2.2"],
    }
    .map(|addr| addr.parse().unwrap());
    let start = Time::from_ns(s["start_ns"].as_i64().unwrap());
    for c in s["connections"].as_array().unwrap() {
        let n = |key: &str| c[key].as_u64().unwrap();
        let (at, remote) = (start + millis(&c["at_ms"]), (peer, n("port") as u16));
        let receiver = Receiver {
            local: remote,
            rcvbuf: n("rcvbuf") as u32,
            reads_from: at + millis(&c["read_ms"]),
            closes_at: at + millis(&c["close_ms"]),
            sock: NONE,
            timer: NONE,
            eof: false,
        };
        w.add_program(b, "receiver", Time::ZERO, Box::new(receiver));
        let writes = c["writes"].as_array().unwrap();
        let sender = Sender {
            cc: c["cc"].as_str().unwrap().to_owned(),
            sndbuf: n("sndbuf") as u32,
            remote,
            begun: at,
            writes: writes.iter().map(|x| (millis(&x[0]), x[1].as_u64().unwrap())).collect(),
            sock: NONE,
            timer: NONE,
        };
        w.add_program(a, "sender", at, Box::new(sender));
    }
    if s["udp"] == true {
        let waits = Datagrams { local: (peer, 7_000), remote: None };
        w.add_program(b, "datagrams", Time::ZERO, Box::new(waits));
        let connected = Datagrams { local: (own, 7_001), remote: Some((peer, 7_000)) };
        w.add_program(a, "datagrams", Time::ZERO, Box::new(connected));
    }
    let told = std::env::var("PENSTOCK_SCENARIO").is_ok();
    let mut found = None;
    for sample in s["samples"].as_array().unwrap() {
        w.run_quietly(start + Span::from_us(sample["at_us"].as_i64().unwrap()));
        let words = sample["command"].as_array().unwrap().iter();
        let words: Vec<String> = words.map(|x| x.as_str().unwrap().to_owned()).collect();
        let host = if sample["host"] == "a" { a } else { b };
        let said = w.command(host, &words, &mut penstock_host::NoFiles);
        let theirs = sample["said"].as_array().unwrap();
        let text = theirs[1].as_str().unwrap();
        let error = theirs[2].as_str().unwrap().lines().filter(|l| !l.contains("cgroup2"));
        let what = if i64::from(said.status) != theirs[0].as_i64().unwrap() {
            Some(format!("status {}, Linux {}", said.status, theirs[0]))
        } else if !said.stderr.lines().eq(error) {
            Some(format!("{:?}, Linux {}", said.stderr, theirs[2]))
        } else {
            difference_of(&said.stdout, text)
        };
        if told {
            println!(
                "{} at {} us: {what:?}\n{}Linux:\n{text}",
                words.join(" "),
                sample["at_us"],
                said.stdout
            );
        }
        let place =
            |what| format!("{} at {} us at {}: {what}", words.join(" "), sample["at_us"], sample["host"]);
        found = found.or(what.map(place));
    }
    found
}

#[test]
fn what_ss_shows_is_linux_s() {
    let text = match std::env::var("PENSTOCK_SS") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => include_str!("../../../vectors/tcp/ss.jsonl").to_owned(),
    };
    let only = std::env::var("PENSTOCK_SCENARIO").ok();
    let listed = include_str!("../../../vectors/tcp/ss_differences.txt").lines();
    let listed: Vec<&str> = listed.map(|l| l.split_once(": ").expect("a name and a reason").0).collect();
    let (mut alike, mut faults) = (0, Vec::new());
    for line in text.lines() {
        let s: Value = serde_json::from_str(line).unwrap();
        let name = s["name"].as_str().unwrap();
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        match (difference(&s), listed.contains(&name)) {
            (None, false) => alike += 1,
            (None, true) => faults.push(format!("{name} is alike: take it off the list")),
            (Some(_), true) if only.is_none() => {}
            (Some(what), _) => faults.push(format!("{name}: {what}")),
        }
    }
    println!("{alike} scenarios are alike, {} are not", faults.len());
    assert!(faults.is_empty() && alike > 0, "{}", faults.join("\n"));
}
