//! Prints each segment of a bulk transfer through a token bucket on a router, as the sender's device sees it, for comparison with
//! a capture of the real thing: `trace CC SECONDS RATE_BIT_S LIMIT_FRAMES DELAY_MS [HZ [2.6.35]]`.
//! Columns: time in us, `>` or `<`, relative sequence number, payload, relative acknowledgement, window field, number of
//! SACK blocks; for each the congestion window after it.

#[path = "../tests/pair/mod.rs"]
mod pair;

use pair::*;
use penstock_model::{Kernel, Span};
use penstock_tcp::Config;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |i: usize, default: i64| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let mut cfg = Config::linux(if args.get(7).is_some_and(|k| k == "2.6.35") {
        Kernel::V2_6_35
    } else {
        Kernel::V6_12
    });
    if let Err(e) = cfg.set_cc(args.get(1).map_or("cubic", |s| s)) {
        eprintln!("{e}");
        std::process::exit(1);
    }
    cfg.hz = number(6, 100) as u32;
    let mut p = Pair::new(&cfg, &cfg);
    p.lines[A] = Line {
        delay: Span::ZERO,
        rate_bit_s: number(3, 10_000_000),
        limit: number(4, 30) as usize,
        tbf: true,
        ..Line::default()
    };
    p.lines[B] = Line { delay: Span::from_ms(number(5, 20)), ..Line::default() };
    p.now = penstock_model::Time::ZERO + Span::from_us(10_003_700);
    let start = p.now;
    let seconds = number(2, 5);
    let mut seen = 0;
    let isn = [1_000_000u32, 5_000_000];
    p.apps[A].to_write = u64::MAX / 2;
    while p.now - start < Span::from_secs(seconds) && p.step() {
        let info = p.ends[A].as_ref().map(|e| e.info());
        for s in &p.log[seen..] {
            let t = &s.t.tcp;
            println!(
                "{} {} {} {} {} {} {} {}",
                (if s.from == A { s.at } else { s.left } - start).as_ns() / 1000,
                if s.from == A { '>' } else { '<' },
                t.seq.wrapping_sub(isn[s.from]),
                s.t.payload_len,
                t.ack.wrapping_sub(isn[1 - s.from]),
                t.window,
                t.sack_count,
                info.map_or(0, |i| i.cwnd),
            );
        }
        seen = p.log.len();
    }
    if let Some(e) = &p.ends[A] {
        let info = e.info();
        eprintln!(
            "{} bit/s read, {} retransmissions, {} recoveries, {} timeouts",
            p.apps[B].read * 8 / seconds as u64,
            info.total_retrans,
            info.recoveries,
            info.timeouts
        );
    }
}
