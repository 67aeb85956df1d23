//! Linux's own TCP under exact faults, segment by segment: `vectors/tcp/scenarios.jsonl`, recorded by `vectors/tcp/tcp_scenarios.py`.

mod pair;
use pair::*;
use penstock_model::{Kernel, Span, Time};
use penstock_tcp::{Config, Ecn, Endpoint};
use serde_json::Value;

/// A segment: sequence, length, acknowledgement, flags, window, SACK blocks; numbers relative.
type Segment = (u32, u32, u32, u8, u16, Vec<(u32, u32)>);

/// One side's segments, with their times in us.
type Side = Vec<(i64, Segment)>;

/// How far apart the times may be, us: the tbf's burst is whole ticks of 64 ns, a capture creeps by 1 ns a frame.
const NEAR_US: i64 = 100;

fn numbers(v: &Value) -> Vec<u64> {
    v.as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
}

fn config(s: &Value) -> Config {
    let mut cfg = Config::linux(Kernel::V6_12);
    cfg.set_cc(s["cc"].as_str().unwrap()).unwrap();
    cfg.hz = 100;
    for (key, value) in s["sysctl"].as_object().into_iter().flatten() {
        match (key.as_str(), value.as_u64()) {
            ("net.ipv4.tcp_sack", Some(on)) => cfg.sack = on > 0,
            ("net.ipv4.tcp_timestamps", Some(on)) => cfg.timestamps = on > 0,
            ("net.ipv4.tcp_ecn", Some(1)) => cfg.ecn = Ecn::On,
            other => panic!("{other:?} is not known here"),
        }
    }
    cfg
}

/// Runs a scenario.
fn run(s: &Value) -> (Pair, Time) {
    let (mut a, mut b) = (config(s), config(s));
    a.nodelay = s["nodelay"] == true;
    if let Some(bytes) = s["sndbuf"].as_u64() {
        a.set_sndbuf(bytes as u32);
    }
    if let Some(bytes) = s["rcvbuf"].as_u64() {
        b.set_rcvbuf(bytes as u32);
    }
    let mut p = Pair::new(&a, &b);
    p.lines[A] = Line { delay: Span::ZERO, ..Line::default() };
    if let Some(rate) = s["rate"].as_str() {
        let mbit: i64 = rate.strip_suffix("mbit").unwrap().parse().unwrap();
        p.lines[A].rate_bit_s = mbit * 1_000_000;
        p.lines[A].limit = (s["limit"].as_u64().unwrap() / 1514) as usize;
        p.lines[A].tbf = true;
    }
    p.lines[B] = Line { delay: Span::from_ms(s["delay_ms"].as_i64().unwrap()), ..Line::default() };
    if let Some(rate) = s["back"].as_str() {
        p.lines[B].rate_bit_s = rate.strip_suffix("mbit").unwrap().parse::<i64>().unwrap() * 1_000_000;
    }
    let (drop, ce) = (numbers(&s["drop"]), numbers(&s["ce"]));
    let (drop_any, drop_ack) = (numbers(&s["drop_any"]), numbers(&s["drop_ack"]));
    let late: Vec<(u64, i64)> = s["late"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(n, ms)| (n.parse().unwrap(), ms.as_i64().unwrap()))
        .collect();
    let mut all = [0u64; 2];
    p.fate = Box::new(move |from, t, n| {
        let number = all[from];
        all[from] += 1;
        let data = from == A && t.payload_len > 0;
        let lost = if from == A { drop_any.contains(&number) } else { drop_ack.contains(&number) };
        if lost || data && drop.contains(&n) {
            Fate::Drop
        } else if data && ce.contains(&n) {
            Fate::Mark
        } else if let Some(&(_, ms)) = late.iter().find(|l| data && l.0 == n) {
            Fate::Late(Span::from_ms(ms))
        } else {
            Fate::Pass
        }
    });
    p.now = Time::from_ns(s["start_ns"].as_i64().unwrap());
    p.ends[A] = Some(Endpoint::connect(&p.configs[A], 1000, 2000, 1_000_000, p.now));
    let start = p.now;
    let mut events: Vec<(i64, u64)> = vec![(0, s["bytes"].as_u64().unwrap_or(0))];
    if let Some(writes) = s["writes"].as_array() {
        events = writes.iter().map(|w| (w[0].as_i64().unwrap(), w[1].as_u64().unwrap())).collect();
    }
    let end = start + Span::from_ms(s["for_ms"].as_i64().unwrap()) + handshake(s);
    let read_after = s["read_after_ms"].as_i64().unwrap_or(0);
    p.apps[B].reads = read_after == 0;
    p = opened(p, end);
    let open = p.now;
    let mut reads = open + Span::from_ms(read_after);
    for (ms, bytes) in events {
        let at = open + Span::from_ms(ms);
        while at > p.now {
            let next = if p.apps[B].reads { at } else { at.min(reads.max(p.now)) };
            p.run_for(next - p.now);
            p.apps[B].reads |= p.now >= reads;
        }
        p.apps[A].to_write += bytes;
    }
    if !p.apps[B].reads {
        p.run_for(reads - p.now);
        p.apps[B].reads = true;
        reads = end;
    }
    let _ = reads;
    if end > p.now {
        p.run_for(end - p.now);
    }
    (p, start)
}

/// How long the connection takes to open: the scenario's time counts from then on.
fn handshake(s: &Value) -> Span {
    let opened = s["cwnd"][0][0].as_i64().unwrap_or(0);
    Span::from_us(opened)
}

/// Runs until the connecting side is open.
fn opened(mut p: Pair, end: Time) -> Pair {
    use penstock_tcp::State;
    while p.now < end && p.ends[A].as_ref().is_some_and(|e| e.state() != State::Established) {
        p.step();
    }
    p
}

fn ours(p: &Pair, start: Time) -> [Side; 2] {
    let isn = [1_000_000u32, 5_000_000];
    let mut sides = [Side::new(), Side::new()];
    for s in &p.log {
        // The capture at the sender sees what the receiver's line has brought; what was dropped on the way it does not.
        if s.from == B && s.dropped {
            continue;
        }
        let (t, mine, theirs) = (&s.t.tcp, isn[s.from], isn[1 - s.from]);
        let at = if s.from == A { s.at } else { s.left };
        let ack = if t.flags.0 & 0x10 != 0 { t.ack.wrapping_sub(theirs) } else { 0 };
        let sacks =
            t.sack_blocks().iter().map(|b| (b.0.wrapping_sub(theirs), b.1.wrapping_sub(theirs))).collect();
        let segment = (t.seq.wrapping_sub(mine), s.t.payload_len, ack, t.flags.0, t.window, sacks);
        sides[s.from].push(((at - start).as_ns() / 1000, segment));
    }
    sides[B].sort_by_key(|r| r.0);
    sides
}

fn recorded(s: &Value) -> [Side; 2] {
    let mut sides = [Side::new(), Side::new()];
    for row in s["segments"].as_array().unwrap() {
        let n = |i: usize| row[i].as_u64().unwrap();
        let sacks = row[7].as_array().unwrap().iter();
        let sacks = sacks.map(|b| (b[0].as_u64().unwrap() as u32, b[1].as_u64().unwrap() as u32)).collect();
        let segment = (n(2) as u32, n(3) as u32, n(4) as u32, n(5) as u8, n(6) as u16, sacks);
        let side = if row[1] == ">" { A } else { B };
        sides[side].push((row[0].as_i64().unwrap(), segment));
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

#[test]
fn segments_are_linux_s() {
    let text = include_str!("../../../vectors/tcp/scenarios.jsonl");
    let only = std::env::var("PENSTOCK_SCENARIO").ok();
    let listed: Vec<&str> = include_str!("../../../vectors/tcp/differences.txt")
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
        let (p, start) = run(&s);
        let (want, got) = (recorded(&s), ours(&p, start));
        let last = want.iter().flatten().map(|r| r.0).max().unwrap_or(0);
        let last = last.max((p.now - start).as_ns() / 1000);
        let found: Vec<String> = [(A, '>'), (B, '<')]
            .into_iter()
            .filter_map(|(side, dir)| {
                Some(format!("{dir} {}", first_difference(&want[side], &got[side], last)?))
            })
            .collect();
        let known = listed.contains(&name);
        if found.is_empty() && known {
            faults.push(format!("{name}\n    is alike: take it off the list"));
        } else if found.is_empty() {
            alike += 1;
        } else if !known || only.is_some() {
            faults.push(format!("{name}\n    {}", found.join("\n    ")));
        }
        if only.is_some() {
            for (side, dir) in [(A, '>'), (B, '<')] {
                for n in 0..want[side].len().max(got[side].len()) {
                    println!("{dir} {n} {:?} | {:?}", want[side].get(n), got[side].get(n));
                }
            }
        }
    }
    println!("{alike} scenarios are alike, {} are listed", listed.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
