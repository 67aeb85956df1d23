//! ns-2's own agents, packet by packet: `vectors/ns2/scenarios.jsonl`, recorded by `vectors/ns2/record.py`.

use crate::pair;
use pair::*;
use penstock_model::{Span, Time};
use penstock_tcp::{Config, Ecn, Endpoint};
use serde_json::Value;

/// Time in us and number of a packet or of what an ACK acknowledges.
type Side = Vec<(i64, i64)>;

fn config(s: &Value) -> Config {
    let mut cfg = Config::ns2();
    cfg.set_cc(s["agent"].as_str().unwrap()).unwrap();
    cfg.ecn = if s["ecn"] == true { Ecn::On } else { Ecn::Off };
    cfg.ns2.window = s["window"].as_u64().unwrap() as u32;
    cfg.ns2.delayed_ack = (s["delack"] == true).then_some(Span::from_ms(100));
    if s["old"] == true {
        cfg.ns2.min_rto = Span::from_secs(1);
        cfg.ns2.precise = false;
        cfg.ns2.cwr_on_retransmit = false;
    }
    cfg
}

fn run(s: &Value) -> [Side; 2] {
    let cfg = config(s);
    let mut p = Pair::new(&cfg, &cfg);
    let line = Line { delay: Span::from_ms(15), rate_bit_s: 1_500_000, ns2: true, ..Line::default() };
    p.lines = [line.clone(), line];
    // ns-2's limit counts the packet on the wire too.
    p.lines[A].limit = s["limit"].as_u64().unwrap() as usize;
    let drop: Vec<u64> = s["drop"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    let mark = s["mark"] == true;
    let mut n = 0;
    p.fate = Box::new(move |from, t, _| {
        if from == B {
            return Fate::Pass;
        }
        n += 1;
        match drop.contains(&(n - 1)) {
            true if mark && t.ect => Fate::Mark,
            true => Fate::Lost,
            false => Fate::Pass,
        }
    });
    p.now = Time::ZERO;
    p.ends[A] = Some(Endpoint::connect(&cfg, 1000, 2000, 1_000_000, p.now));
    p.apps[A].to_write = 1 << 40;
    p.run_for(Span::from_secs(4));
    let mut sides = [Side::new(), Side::new()];
    for s in &p.log {
        let t = &s.t.tcp;
        let bytes = if s.from == A { t.seq } else { t.ack }.wrapping_sub(1_000_001) as i32;
        let no = i64::from(bytes.div_euclid(1460)) + i64::from(s.from == A);
        let us = (s.at.as_ns() + 500) / 1000;
        sides[s.from].push((us, no));
    }
    sides
}

#[test]
fn packets_are_ns2_s() {
    let only = std::env::var("PENSTOCK_SCENARIO").ok();
    let listed: Vec<&str> = include_str!("../../../vectors/ns2/differences.txt")
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| l.split_once(": ").expect("a name and a reason").0)
        .collect();
    let (mut alike, mut faults) = (0, Vec::new());
    for line in include_str!("../../../vectors/ns2/scenarios.jsonl").lines() {
        let s: Value = serde_json::from_str(line).unwrap();
        let name = s["name"].as_str().unwrap();
        if only.as_ref().is_some_and(|o| o != name) {
            continue;
        }
        let got = run(&s);
        let mut differs = None;
        for (side, dir) in [(A, ">"), (B, "<")] {
            let want: Side = s["packets"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|r| r[1] == dir)
                .map(|r| (r[0].as_i64().unwrap(), r[2].as_i64().unwrap()))
                .collect();
            let pairs = want.len().max(got[side].len());
            for n in 0..pairs {
                let (w, g) = (want.get(n), got[side].get(n));
                let near = match (w, g) {
                    (Some(w), Some(g)) => w.1 == g.1 && (w.0 - g.0).abs() <= 2,
                    (Some(x), None) | (None, Some(x)) => x.0 >= 3_999_990,
                    (None, None) => true,
                };
                if only.is_some() {
                    println!("{dir} {n} {w:?} | {g:?}");
                }
                if !near && differs.is_none() {
                    differs = Some(format!("{name}: {dir} {n}: ns-2 {w:?} here {g:?}"));
                }
            }
        }
        match (differs, listed.contains(&name)) {
            (None, false) => alike += 1,
            (None, true) => faults.push(format!("{name}: is alike: take it off the list")),
            (Some(_), true) => {}
            (Some(d), false) => faults.push(d),
        }
    }
    println!("{alike} scenarios are alike");
    assert!(faults.is_empty(), "{} differ, {alike} alike\n{}", faults.len(), faults.join("\n"));
}
