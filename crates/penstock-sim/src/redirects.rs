//! Redirects of ICMP, sent and followed: `vectors/stack/redirects.jsonl`, recorded by `vectors/stack/redirects.py`.

use crate::World;
use crate::capture::{Capture, Seen};
use crate::spec::{End, FlowSpec, HostId, LinkSpec, Transport};
use penstock_host::Prefix;
use penstock_model::traffic::{Dist, Load, Sizes};
use penstock_model::{Kernel, Span, Time};
use penstock_packet::headers::IcmpBody;
use penstock_packet::{L3, L4, Skb};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// How far apart the times may be, us: ping waits in ticks.
const NEAR_US: i64 = 300_000;

/// A frame in a word or two, as the recorder has it.
fn kind(frame: &Skb) -> Option<String> {
    match (frame.l3, frame.l4) {
        (L3::Arp(arp), _) => Some(format!("arp {} {}", arp.op, arp.tpa)),
        (L3::Ipv4(h), L4::Udp(_)) => Some(format!("udp {}", h.dst)),
        (L3::Ipv4(_), L4::Icmp(i)) if i.ty == 5 => match i.body {
            IcmpBody::About(q) => {
                let gateway = std::net::Ipv4Addr::from(i.info());
                Some(format!("redirect {} {gateway} of {}", i.code, q.dst))
            }
            _ => None,
        },
        (L3::Ipv4(h), L4::Icmp(i)) => Some(format!("icmp {} {} {}", i.ty, i.code, h.dst)),
        _ => None,
    }
}

/// What ping has printed but for its times.
fn without_times(text: &str) -> String {
    let kept =
        text.lines().filter(|l| !l.is_empty() && !l.starts_with("rtt") && !l.contains("packets transmitted"));
    let cut = kept.map(|l| match (l.find(" time="), l.find(" ms")) {
        (Some(from), Some(to)) => format!("{}{}\n", &l[..from], &l[to + 3..]),
        _ => format!("{l}\n"),
    });
    cut.collect()
}

/// A frame that a card sent, as the recorder has it: to whom, and what.
type Sent = (Time, [u8; 6], String);

/// What a card sends.
struct Tap(Arc<Mutex<Vec<Sent>>>);

impl Capture for Tap {
    fn frame(&mut self, at: Time, seen: Seen<'_>, skb: &Skb) {
        if let (Seen::Sent { .. }, Some(what)) = (seen, kind(skb)) {
            self.0.lock().unwrap().push((at, skb.eth.1, what));
        }
    }
}

/// The first difference of a scenario.
fn difference(s: &Value) -> Option<String> {
    let mut w = World::new(1);
    let hosts = ["a", "r1", "r2", "c"].map(|name| w.add_host(name, Kernel::V6_12));
    let [a, r1, r2, c] = hosts;
    for host in hosts {
        w.host_mut(host).set_hz(100);
    }
    let ends = vec![End::new(a, "eth0"), End::new(r1, "eth0"), End::new(r2, "eth0")];
    w.add_link(LinkSpec { ends, ..LinkSpec::new(End::new(a, ""), End::new(a, ""), None, Span::ZERO) })
        .unwrap();
    w.add_link(LinkSpec::new(End::new(r2, "eth1"), End::new(c, "eth0"), None, Span::ZERO)).unwrap();
    for (host, device, address) in [
        (a, "eth0", "10.1.0.10/24"),
        (r1, "eth0", "10.1.0.1/24"),
        (r2, "eth0", "10.1.0.2/24"),
        (r2, "eth1", "10.2.0.254/24"),
        (c, "eth0", "10.2.0.1/24"),
        (c, "eth0", "10.2.0.2/24"),
    ] {
        let ifindex = w.host(host).ifindex(device).unwrap();
        w.host_mut(host).add_address(ifindex, Prefix::parse(address).unwrap()).unwrap();
    }
    for (host, line) in [
        (a, "ip route add default via 10.1.0.1"),
        (r1, "ip route add 10.2.0.0/24 via 10.1.0.2"),
        (c, "ip route add default via 10.2.0.254"),
        (r1, "sysctl -w net.ipv4.ip_forward=1"),
        (r2, "sysctl -w net.ipv4.ip_forward=1"),
    ] {
        assert_eq!(w.exec(host, line).status, 0, "{line}");
    }
    let at_host = |name: &Value| hosts[["a", "r1", "r2", "c"].iter().position(|n| name == n).unwrap()];
    let told = |w: &mut World, host: HostId, line: &Value, said: &Value| {
        let o = w.exec(host, line.as_str().unwrap());
        let ours = json!([o.status, o.stdout, o.stderr]);
        (ours != *said).then(|| format!("{line}: {ours}, Linux {said}"))
    };
    for (of, said) in s["setup"].as_array().unwrap().iter().zip(s["said"].as_array().unwrap()) {
        if let Some(what) = told(&mut w, at_host(&of[0]), &of[1], said) {
            return Some(what);
        }
    }
    let taps = [a, r1].map(|host| {
        let seen = Arc::new(Mutex::new(Vec::new()));
        assert!(w.capture(host, "eth0", Box::new(Tap(seen.clone()))));
        seen
    });
    let start = Time::from_ns(s["start_ns"].as_i64().unwrap());
    let steps = s["steps"].as_array().unwrap();
    let mut pings = Vec::new();
    for step in steps {
        let at = start + Span::from_ms(step["at_ms"].as_i64().unwrap());
        let line = step["do"].as_str().unwrap_or_default();
        if let Some(udp) = step["udp"].as_array() {
            let (n, gap) = (udp[0].as_i64().unwrap(), Span::from_ms(udp[1].as_i64().unwrap()));
            let load = Load::Packets { size: Sizes::Constant(100), gap: Dist::Constant(gap) };
            let stop = Some(at + gap * (n - 1) + Span::from_ms(1));
            let to_addr = Some("10.2.0.1".parse().unwrap());
            let flow = FlowSpec {
                load,
                start: at,
                start_to: at,
                stop,
                port: 9,
                to_addr,
                ..crate::bench::greedy(a, c)
            };
            w.add_flow(FlowSpec { transport: Transport::Udp, ..flow }).unwrap();
        } else if line.starts_with("ping") {
            pings.push((w.add_app(a, line, at), step));
        } else {
            w.run_quietly(at);
            if let Some(what) = told(&mut w, at_host(&step["ns"]), &step["do"], &step["said"]) {
                return Some(format!("at {} ms {what}", step["at_ms"]));
            }
        }
    }
    let last = start + Span::from_ms(steps.last().unwrap()["at_ms"].as_i64().unwrap());
    let results = w.run(last + Span::from_secs(120));
    for (app, step) in pings {
        let ours = without_times(&results.apps[app.0 as usize].output);
        let theirs = step["said"][1].as_str().unwrap();
        if ours != theirs {
            return Some(format!("{} at {} ms:\n{ours}Linux:\n{theirs}", step["do"], step["at_ms"]));
        }
    }
    let macs = [a, r1, r2].map(|h| {
        let ifindex = w.host(h).ifindex("eth0").unwrap();
        w.host(h).device(ifindex).unwrap().mac
    });
    for (seen, key) in taps.into_iter().zip(["a", "r1"]) {
        let name = |mac| macs.iter().zip(["a", "r1", "r2"]).find(|m| *m.0 == mac).map_or("all", |m| m.1);
        let seen = seen.lock().unwrap();
        let seen = seen
            .iter()
            .map(|(at, to, what)| ((*at - start).as_ns() / 1000, name(*to).to_owned(), what.clone()));
        // Whether neighbours are there still is asked at times of its own.
        let counts = |f: &(i64, String, String)| f.0 >= 0 && !(f.2.starts_with("arp") && f.1 != "all");
        let seen: Vec<(i64, String, String)> = seen.filter(counts).collect();
        let rows = s[key].as_array().unwrap().iter();
        let text = |v: &Value| v.as_str().unwrap().to_owned();
        let want = rows.map(|r| (r[0].as_i64().unwrap(), text(&r[1]), text(&r[2])));
        let want: Vec<_> = want.filter(counts).collect();
        for n in 0..want.len().max(seen.len()) {
            let (x, y) = (want.get(n), seen.get(n));
            let alike = matches!((x, y), (Some(x), Some(y)) if (x.0 - y.0).abs() <= NEAR_US && (&x.1, &x.2) == (&y.1, &y.2));
            if !alike {
                return Some(format!("frame {n} of {key}: {y:?}, Linux {x:?}"));
            }
        }
    }
    None
}

#[test]
fn redirects_are_linux_s() {
    let text = match std::env::var("PENSTOCK_REDIRECTS") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => include_str!("../../../vectors/stack/redirects.jsonl").to_owned(),
    };
    let (mut alike, mut faults) = (0, Vec::new());
    for line in text.lines() {
        let s: Value = serde_json::from_str(line).unwrap();
        match difference(&s) {
            None => alike += 1,
            Some(what) => faults.push(format!("{}: {what}", s["name"])),
        }
    }
    println!("{alike} scenarios are alike, {} are not", faults.len());
    assert!(faults.is_empty() && alike > 0, "{}", faults.join("\n"));
}
