//! The same transfer as a real Linux 6.12 made, segment by segment.

use crate::pair;
use pair::*;
use penstock_model::{Kernel, Span, Time};
use penstock_tcp::Config;

/// As the recording's rig: a token bucket on a router, 20 ms for the ACKs, HZ 100.
fn rig(cc: &str) -> Pair {
    let mut cfg = Config::linux(Kernel::V6_12);
    cfg.set_cc(cc).unwrap();
    cfg.hz = 100;
    let mut p = Pair::new(&cfg, &cfg);
    p.lines[A] = Line { delay: Span::ZERO, rate_bit_s: 10_000_000, limit: 30, tbf: true, ..Line::default() };
    p.lines[B] = Line { delay: Span::from_ms(20), ..Line::default() };
    p.now = Time::from_ns(10_003_700_000);
    p.apps[A].to_write = u64::MAX / 2;
    p
}

/// Time in us since the start, direction, relative numbers, window, SACK blocks.
type Row = (i64, char, u32, u32, u32, u16, u8);

fn rows(p: &Pair, start: Time) -> Vec<Row> {
    let isn = [1_000_000u32, 5_000_000];
    let mut rows: Vec<Row> = p
        .log
        .iter()
        .map(|s| {
            let t = &s.t.tcp;
            let at = if s.from == A { s.at } else { s.left };
            let ack = if t.flags.0 & 0x10 != 0 { t.ack.wrapping_sub(isn[1 - s.from]) } else { 0 };
            let dir = if s.from == A { '>' } else { '<' };
            let seq = t.seq.wrapping_sub(isn[s.from]);
            ((at - start).as_ns() / 1000, dir, seq, s.t.payload_len, ack, t.window, t.sack_count)
        })
        .collect();
    rows.sort_by_key(|r| r.0);
    rows
}

#[test]
fn slow_start_is_linux_s_segment_by_segment() {
    let text = include_str!("../../../vectors/tcp/reno-tbf-10mbit.txt");
    let want: Vec<Row> = text
        .lines()
        .filter(|l| !l.starts_with('#'))
        .map(|l| {
            let f: Vec<&str> = l.split(' ').collect();
            let n = |i: usize| f[i].parse::<i64>().unwrap();
            (
                n(0),
                f[1].chars().next().unwrap(),
                n(2) as u32,
                n(3) as u32,
                n(4) as u32,
                n(5) as u16,
                n(6) as u8,
            )
        })
        .collect();
    let mut p = rig("reno");
    let start = p.now;
    p.run_for(Span::from_ms(146));
    let got = rows(&p, start);
    for dir in ['>', '<'] {
        let side = |rows: &[Row]| rows.iter().filter(|r| r.1 == dir).copied().collect::<Vec<Row>>();
        let (want, got) = (side(&want), side(&got));
        for (w, g) in want.iter().zip(&got) {
            assert_eq!((w.2, w.3, w.4, w.5, w.6), (g.2, g.3, g.4, g.5, g.6), "{w:?} {g:?}");
            // The tbf's burst is in whole ticks of 64 ns, and the capture creeps by 1 ns a frame.
            assert!((w.0 - g.0).abs() < 100, "{w:?} {g:?}");
        }
        assert!(got.len() >= want.len());
    }
}

#[test]
fn cubic_meets_the_bottleneck_when_linux_does() {
    // Linux's first retransmission of each loss event of five seconds, in ms: 565 588 613 1948 3396 4886.
    let want = [565, 588, 613, 1948, 3396, 4886];
    let mut p = rig("cubic");
    let start = p.now;
    p.run_for(Span::from_ms(5_300));
    let got: Vec<i64> = p.again().iter().map(|s| (s.at - start).as_ns() / 1_000_000).collect();
    assert_eq!(got.len(), want.len(), "{got:?}");
    for (w, g) in want.iter().zip(&got) {
        assert!((w - g).abs() <= 3, "{got:?}");
    }
}
