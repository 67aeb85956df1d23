//! Linux's own TCP under exact faults, segment by segment: `vectors/tcp/scenarios.jsonl` and, of each congestion control, `controls.jsonl`, recorded by
//! `vectors/tcp/tcp_scenarios.py`.

use crate::pair;
use pair::*;
use penstock_model::{Kernel, Span, Time};
use penstock_tcp::{Config, Ecn, Endpoint, Transmit};
use serde_json::Value;
use std::collections::VecDeque;

/// A segment: sequence, length, acknowledgement, flags, window, SACK blocks; numbers relative. With Accurate ECN its option, kind and counters, and the header's
/// ECN field.
type Segment = (u32, u32, u32, u16, u16, Vec<(u32, u32)>, Option<(Vec<u32>, u8)>);

/// One side's segments, with their times in us.
type Side = Vec<(i64, Segment)>;

/// How far apart the times may be, us: the tbf's burst is whole ticks of 64 ns, a capture creeps by 1 ns a frame.
const NEAR_US: i64 = 100;

fn numbers(v: &Value) -> Vec<u64> {
    v.as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
}

/// A rate as the scenarios write it, bits per second.
fn rate(v: &Value) -> Option<i64> {
    let text = v.as_str()?;
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap();
    let unit = match &text[digits..] {
        "kbit" => 1_000,
        "mbit" => 1_000_000,
        other => panic!("{other} is not a unit here"),
    };
    Some(text[..digits].parse::<i64>().unwrap() * unit)
}

fn config(s: &Value, kernel: Kernel) -> Config {
    let mut cfg = Config::linux(kernel);
    cfg.set_cc(s["cc"].as_str().unwrap()).unwrap();
    cfg.hz = 100;
    cfg.mss = (mtu(s) - 40) as u16;
    for (key, value) in s["sysctl"].as_object().into_iter().flatten() {
        match (key.as_str(), value.as_u64()) {
            ("net.ipv4.tcp_sack", Some(on)) => cfg.sack = on > 0,
            ("net.ipv4.tcp_timestamps", Some(on)) => {
                (cfg.timestamps, cfg.timestamp_offset) = (on > 0, on == 1)
            }
            ("net.ipv4.tcp_window_scaling", Some(on)) => cfg.window_scaling = on > 0,
            ("net.ipv4.tcp_ecn", Some(n)) => cfg.ecn = Ecn::of_setting(n as u8),
            ("net.ipv4.tcp_ecn_option", Some(n)) => cfg.ecn_option.0 = n as u8,
            other => panic!("{other:?} is not known here"),
        }
    }
    for (name, value) in s["module"].as_object().into_iter().flatten() {
        assert!(cfg.cc_parameters.set(cfg.cc, name, value.as_i64().unwrap()), "{name}");
    }
    cfg
}

fn mtu(s: &Value) -> u32 {
    s["mtu"].as_u64().unwrap_or(1500) as u32
}

/// Milliseconds, to the microsecond.
fn millis(v: &Value) -> Span {
    Span::from_us((v.as_f64().unwrap_or(0.0) * 1e3).round() as i64)
}

/// When to write how much.
fn writes(v: &Value) -> VecDeque<(Span, u64)> {
    v.as_array().into_iter().flatten().map(|w| (millis(&w[0]), w[1].as_u64().unwrap())).collect()
}

/// What the two processes do.
fn applications(s: &Value, apps: &mut [App; 2]) {
    apps[A].writes = match s["writes"].is_array() {
        true => writes(&s["writes"]),
        false => VecDeque::from([(Span::ZERO, s["bytes"].as_u64().unwrap())]),
    };
    apps[A].close = s["close"] == true;
    apps[A].chunk = s["chunk"].as_u64().unwrap_or(131_072);
    apps[A].close_at_eof = false;
    apps[B].chunk = apps[A].chunk;
    apps[B].writes = writes(&s["back_writes"]);
    apps[B].reads_from = millis(&s["read_after_ms"]);
    apps[B].read_most = s["read"][0].as_u64().unwrap_or(1 << 20);
    apps[B].read_pause = millis(&s["read"][1]);
    apps[B].reply = (s["reply"][0].as_u64().unwrap_or(0), s["reply"][1].as_u64().unwrap_or(0));
}

/// What becomes of each segment, by its number.
fn fates(s: &Value) -> impl FnMut(usize, &Transmit, u64) -> Fate + 'static {
    let (drop, ce, twice) = (numbers(&s["drop"]), numbers(&s["ce"]), numbers(&s["twice"]));
    let (drop_any, drop_ack) = (numbers(&s["drop_any"]), numbers(&s["drop_ack"]));
    let late = s["late"].as_object().into_iter().flatten();
    let late: Vec<(u64, Span)> = late.map(|(n, ms)| (n.parse().unwrap(), millis(ms))).collect();
    let longest = late.iter().map(|l| l.1).max().unwrap_or(Span::ZERO);
    let mut all = [0u64; 2];
    let mut long = 0;
    move |from, t, _| {
        let number = all[from];
        all[from] += 1;
        if from == B {
            return if drop_ack.contains(&number) { Fate::Lost } else { Fate::Pass };
        }
        if drop_any.contains(&number) {
            return Fate::Drop;
        }
        // The program on the router counts frames of a hundred bytes and more as data.
        let frame = 14 + 20 + t.tcp.header_len() + t.payload_len;
        if frame < 100 {
            return Fate::Pass;
        }
        let n = long;
        long += 1;
        if twice.contains(&n) {
            Fate::Twice
        } else if drop.contains(&n) {
            Fate::Drop
        } else if ce.contains(&n) {
            Fate::Mark
        } else if late.iter().any(|l| l.0 == n) {
            Fate::Aside(longest)
        } else {
            Fate::Pass
        }
    }
}

/// Runs a scenario.
fn run(s: &Value, kernel: Kernel) -> (Pair, Time) {
    let (mut a, mut b) = (config(s, kernel), config(s, kernel));
    // The scenario's controller is the connecting socket's; the accepted one has the kernel's (net.ipv4.tcp_congestion_control).
    b.set_cc("cubic").unwrap();
    a.nodelay = s["nodelay"] == true;
    if let Some(bytes) = s["sndbuf"].as_u64() {
        a.set_sndbuf(bytes as u32);
    }
    if let Some(bytes) = s["rcvbuf"].as_u64() {
        b.set_rcvbuf(bytes as u32);
    }
    let mut p = Pair::idle(&a, &b);
    p.lines[A] = Line { delay: Span::ZERO, ..Line::default() };
    if let Some(rate) = rate(&s["rate"]) {
        let frame = mtu(s) + 14;
        p.lines[A].rate_bit_s = rate;
        p.lines[A].limit_bytes = s["limit"].as_u64().unwrap() as u32;
        p.lines[A].tbf = true;
        p.lines[A].burst = frame;
    }
    p.lines[B] = Line { delay: millis(&s["delay_ms"]), ..Line::default() };
    p.lines[B].rate_bit_s = rate(&s["back"]).unwrap_or(0);
    p.fate = Box::new(fates(s));
    applications(s, &mut p.apps);
    p.now = Time::from_ns(s["start_ns"].as_i64().unwrap());
    let start = p.now;
    p.ends[A] = Some(Endpoint::connect(&p.configs[A], 1000, 2000, 1_000_000, start));
    let open = Span::from_us(s["open_us"].as_i64().unwrap());
    p.run_for(open + millis(&s["for_ms"]));
    (p, start)
}

fn ours(p: &Pair, start: Time, accurate: bool) -> [Side; 2] {
    let isn = [1_000_000u32, 5_000_000];
    let mut sides = [Side::new(), Side::new()];
    for s in &p.log {
        // The capture at the sender sees what the receiver's line has brought.
        if s.from == B && s.dropped {
            continue;
        }
        let (t, mine, theirs) = (&s.t.tcp, isn[s.from], isn[1 - s.from]);
        let at = if s.from == A { s.at } else { s.left };
        let ack = if t.flags.0 & 0x10 != 0 { t.ack.wrapping_sub(theirs) } else { 0 };
        let sacks =
            t.sack_blocks().iter().map(|b| (b.0.wrapping_sub(theirs), b.1.wrapping_sub(theirs))).collect();
        let accecn = t.accecn.iter().flat_map(|o| {
            let kind = if o.order1 { 174 } else { 172 };
            std::iter::once(kind).chain((0..3).map_while(|n| o.counter(n)))
        });
        let more = accurate.then(|| (accecn.collect(), if s.t.ect { 2 } else { 0 }));
        let segment = (t.seq.wrapping_sub(mine), s.t.payload_len, ack, t.flags.0, t.window, sacks, more);
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
        let more = row[8].as_array().map(|o| {
            let option = o.iter().map(|v| v.as_u64().unwrap() as u32).collect();
            (option, row[9].as_u64().unwrap() as u8)
        });
        let segment = (n(2) as u32, n(3) as u32, n(4) as u32, n(5) as u16, n(6) as u16, sacks, more);
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

/// The window as it was recorded: when it had changed, us, and to what.
fn recorded_windows(s: &Value) -> Vec<(i64, WindowRow)> {
    let rows = s["cwnd"].as_array().unwrap().iter();
    let n = |r: &Value, i: usize| r[i].as_u64().unwrap();
    rows.map(|r| (r[0].as_i64().unwrap(), (n(r, 1) as u32, n(r, 2) as u32, n(r, 3) as u8))).collect()
}

/// The first window of `of` that `by` does not have at that time; those that last no longer than `least_us` may be passed over.
fn window_missing(
    of: &[(i64, WindowRow)],
    by: &[(i64, WindowRow)],
    least_us: i64,
    last_us: i64,
) -> Option<(i64, WindowRow)> {
    let until = |rows: &[(i64, WindowRow)], n: usize| rows.get(n + 1).map_or(i64::MAX, |r| r.0);
    let has = |at: i64, row: WindowRow| {
        let mut found = (0..by.len()).filter(|&n| by[n].1 == row);
        found.any(|n| by[n].0 <= at + NEAR_US && at - NEAR_US <= until(by, n))
    };
    let mut rows = of.iter().enumerate().filter(|(n, r)| r.0 < last_us && until(of, *n) - r.0 > least_us);
    rows.find(|(_, r)| !has(r.0, r.1)).map(|(_, r)| *r)
}

/// The first difference of the windows.
fn window_difference(s: &Value, p: &Pair, start: Time, last_us: i64) -> Option<String> {
    let want = recorded_windows(s);
    let got: Vec<_> = p.windows.iter().map(|w| ((w.0 - start).as_ns() / 1000, w.1)).collect();
    let last_us = last_us - 10 * NEAR_US;
    let at = |rows: &[(i64, WindowRow)], t: i64| rows.iter().rev().find(|r| r.0 <= t + NEAR_US).copied();
    if let Some(r) = window_missing(&want, &got, -1, last_us) {
        return Some(format!("recorded {r:?} here {:?}", at(&got, r.0)));
    }
    let g = window_missing(&got, &want, 2 * NEAR_US, last_us)?;
    Some(format!("here {g:?} recorded {:?}", at(&want, g.0)))
}

/// `PENSTOCK_SCENARIO=NAME` looks at those whose name holds it and prints both sides; `PENSTOCK_SCENARIOS=FILE` at another recording.
#[test]
fn segments_are_linux_s() {
    let alike = compare(include_str!("../../../vectors/tcp/scenarios.jsonl"), DIFFERENCES, Kernel::V6_12);
    println!("{alike} scenarios are alike");
}

/// Accurate ECN of Linux 7.2, its option and the header's ECN field too.
#[test]
fn accurate_ecn_is_linux_s() {
    let recording = include_str!("../../../vectors/tcp/accecn.jsonl");
    let alike = compare(recording, DIFFERENCES_7_2, Kernel::V7_2);
    println!("{alike} scenarios are alike");
}

/// The same of Linux 7.2.
#[test]
fn segments_are_the_newest_linux_s() {
    let recording = include_str!("../../../vectors/tcp/scenarios-7.2.jsonl");
    let alike = compare(recording, DIFFERENCES_7_2, Kernel::V7_2);
    println!("{alike} scenarios are alike");
}

#[test]
fn controls_are_linux_s() {
    let text = include_str!("../../../vectors/tcp/controls.jsonl");
    let alike = compare(text, DIFFERENCES, Kernel::V6_12);
    println!("{alike} transfers of the congestion controls are alike");
    // Five of each control at least.
    for a in penstock_tcp::cc::ALGORITHMS.iter().filter(|a| !["bbr3", "ledbat"].contains(&a.name)) {
        let recorded = text.lines().filter(|l| l.starts_with(&format!("{{\"name\":\"{} ", a.name))).count();
        let others = ["bbr", "cubic", "dctcp", "reno"];
        assert!(recorded >= 5 || others.contains(&a.name), "{}: {recorded}", a.name);
    }
}

const DIFFERENCES: &str = include_str!("../../../vectors/tcp/differences.txt");
const DIFFERENCES_7_2: &str = include_str!("../../../vectors/tcp/differences-7.2.txt");

/// Compares each line of a recording with what happens here; answers how many are alike.
fn compare(recording: &str, differences: &str, kernel: Kernel) -> usize {
    let other = std::env::var("PENSTOCK_SCENARIOS").ok();
    let text = match &other {
        Some(path) => std::fs::read_to_string(path).unwrap(),
        None => recording.to_owned(),
    };
    let only = std::env::var("PENSTOCK_SCENARIO").ok();
    let listed: Vec<&str> = differences
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
        let (p, start) = run(&s, kernel);
        let accurate = s["segments"][0][8].is_array();
        let (want, got) = (recorded(&s), ours(&p, start, accurate));
        let last = want.iter().flatten().map(|r| r.0).max().unwrap_or(0);
        let last = last.max((p.now - start).as_ns() / 1000);
        let mut found: Vec<String> = [(A, '>'), (B, '<')]
            .into_iter()
            .filter_map(|(side, dir)| {
                Some(format!("{dir} {}", first_difference(&want[side], &got[side], last)?))
            })
            .collect();
        found.extend(window_difference(&s, &p, start, last).map(|w| format!("window {w}")));
        let known = other.is_none() && listed.contains(&name);
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
            println!("recorded {:?}", recorded_windows(&s));
            println!(
                "here {:?}",
                p.windows.iter().map(|w| ((w.0 - start).as_ns() / 1000, w.1)).collect::<Vec<_>>()
            );
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {} are not alike\n{}",
        faults.len(),
        alike + faults.len(),
        faults.join("\n")
    );
    alike
}
