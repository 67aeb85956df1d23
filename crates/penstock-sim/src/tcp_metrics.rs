//! What Linux keeps of a TCP connection for the next one: `vectors/tcp/metrics.jsonl`, recorded by `vectors/tcp/tcp_metrics.py`.

use crate::World;
use crate::app::{Cx, Program};
use crate::index::NONE;
use crate::local_drops::{exec, line, millis};
use crate::sock::{Listener, SockOpts};
use crate::spec::HostId;
use crate::wake::Wake;
use penstock_model::traffic::TcpWishes;
use penstock_model::{Span, Time};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// One connection, and what it knew as it opened.
struct Sender {
    cc: String,
    remote: (std::net::IpAddr, u16),
    bytes: u64,
    open: Arc<Mutex<Value>>,
    sock: u32,
}

impl Program for Sender {
    fn start(&mut self, cx: &mut Cx<'_>) {
        let flow = cx.new_flow("connection".to_owned(), cx.host, 2, "tcp");
        let mut cfg = cx.net.tcp_config(cx.host);
        cfg.set_cc(&self.cc).unwrap();
        let opts = SockOpts::default();
        self.sock = cx.net.tcp_connect(cx.host, cx.app, self.remote, flow, true, opts, cfg).unwrap();
    }
    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        if let Wake::Connected(_) = wake {
            let info = cx.net.endpoint(self.sock).unwrap().info();
            *self.open.lock().unwrap() = json!({
                "rto_us": info.rto.as_ns() / 1000,
                "ssthresh": info.ssthresh,
                "cwnd": info.cwnd,
                "reordering": info.reordering,
            });
            cx.net.tcp_send(self.sock, self.bytes, true);
        }
    }
}

/// How far apart round trips may be, us: the kernel's clock creeps with each look at it, and tbf counts in ticks of 64 ns.
const NEAR_US: i64 = 100;

/// Whether two tables are alike, but for such differences of round trips.
fn alike(ours: &str, theirs: &str) -> bool {
    let (a, b): (Vec<&str>, Vec<&str>) = (ours.split(' ').collect(), theirs.split(' ').collect());
    let near = |x: &str, y: &str| {
        let us = |t: &str| t.strip_suffix("us").and_then(|n| n.parse::<i64>().ok());
        x == y || matches!((us(x), us(y)), (Some(x), Some(y)) if (x - y).abs() <= NEAR_US)
    };
    a.len() == b.len() && a.iter().zip(&b).all(|(x, y)| near(x, y))
}

/// The same line with addresses of IPv6.
pub(crate) fn six_line(w: &mut World, [a, r, b]: [HostId; 3]) {
    let mac = |w: &World, host, device| {
        let ifindex = w.host(host).ifindex(device).unwrap();
        w.host(host).device(ifindex).unwrap().mac.map(|b| format!("{b:02x}")).join(":")
    };
    for (host, device, own, gateway, peer, card) in [
        (a, "va", "fd00:1::1", "fd00:1::fe", r, "ra"),
        (r, "ra", "fd00:1::fe", "fd00:1::1", a, "va"),
        (r, "rb", "fd00:2::fe", "fd00:2::2", b, "vb"),
        (b, "vb", "fd00:2::2", "fd00:2::fe", r, "rb"),
    ] {
        let mac = mac(w, peer, card);
        exec(w, host, &format!("ip addr add {own}/64 dev {device} nodad"));
        exec(w, host, &format!("ip neigh replace {gateway} lladdr {mac} dev {device} nud permanent"));
        if host != r {
            exec(w, host, &format!("ip -6 route add default via {gateway}"));
        }
    }
    exec(w, r, "sysctl -w net.ipv6.conf.all.forwarding=1");
}

/// The first difference of a scenario.
fn difference(s: &Value) -> Option<String> {
    let mut w = World::new(1);
    let [a, r, b] = line(&mut w, millis(&s["delay_ms"]));
    let six = s["six"] == true;
    if six {
        six_line(&mut w, [a, r, b]);
    }
    for (key, value) in s["sysctl"].as_object().unwrap() {
        for host in [a, b] {
            exec(&mut w, host, &format!("sysctl -w {key}={value}"));
        }
    }
    let (rate, limit) = (s["rate"].as_str().unwrap(), &s["limit"]);
    exec(&mut w, r, &format!("tc qdisc add dev rb root tbf rate {rate} burst 1514 limit {limit}"));
    for command in s["first"].as_array().unwrap() {
        exec(&mut w, a, command.as_str().unwrap());
    }
    let cfg = crate::app::flow::configure(w.net.tcp_config(b.0), &TcpWishes::default());
    let listener = Listener { cfg: Box::new(cfg), backlog: 5, sink: true, fast: Default::default() };
    w.net.tcp_listen(b.0, NONE, 5001, SockOpts::default(), listener).unwrap();
    let to = if six { "fd00:2::2" } else { "10.0.2.2" };
    let start = Time::from_ns(s["start_ns"].as_i64().unwrap());
    for (n, c) in s["connections"].as_array().unwrap().iter().enumerate() {
        let at = start + millis(&c["at_ms"]);
        let open = Arc::new(Mutex::new(Value::Null));
        let sender = Sender {
            cc: s["cc"].as_str().unwrap().to_owned(),
            remote: (to.parse().unwrap(), 5001),
            bytes: c["bytes"].as_u64().unwrap(),
            open: open.clone(),
            sock: NONE,
        };
        w.add_program(a, "connection", at, Box::new(sender));
        w.run_quietly(at + Span::from_ms(11_500));
        let open = open.lock().unwrap().clone();
        if open != c["open"] {
            return Some(format!("connection {n} opens with {open}, Linux {}", c["open"]));
        }
        for (host, kept) in [a, b].into_iter().zip(c["kept"].as_array().unwrap()) {
            let shown = w.exec(host, "ip tcp_metrics show").stdout;
            if !alike(&shown, kept.as_str().unwrap()) {
                return Some(format!("after connection {n}:\n{shown}Linux:\n{}", kept.as_str().unwrap()));
            }
        }
        for (command, said) in c["then"].as_array().unwrap().iter().zip(c["said"].as_array().unwrap()) {
            let command = command.as_str().unwrap();
            let o = w.exec(a, command);
            let ours = json!([o.status, o.stdout, o.stderr]);
            if ours != *said {
                return Some(format!("{command}: {ours}, Linux {said}"));
            }
        }
    }
    None
}

#[test]
fn what_is_kept_of_connections_is_linux_s() {
    let text = match std::env::var("PENSTOCK_METRICS") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => include_str!("../../../vectors/tcp/metrics.jsonl").to_owned(),
    };
    let listed = include_str!("../../../vectors/tcp/metrics_differences.txt").lines();
    let listed: Vec<&str> = listed.map(|l| l.split_once(": ").expect("a name and a reason").0).collect();
    let (mut alike, mut faults) = (0, Vec::new());
    for line in text.lines() {
        let s: Value = serde_json::from_str(line).unwrap();
        match (difference(&s), listed.contains(&s["name"].as_str().unwrap())) {
            (None, false) => alike += 1,
            (None, true) => faults.push(format!("{} is alike: take it off the list", s["name"])),
            (Some(_), true) => {}
            (Some(what), false) => faults.push(format!("{}: {what}", s["name"])),
        }
    }
    println!("{alike} scenarios are alike, {} are not", faults.len());
    assert!(faults.is_empty() && alike > 0, "{}", faults.join("\n"));
}
