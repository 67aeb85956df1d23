//! Whatever the line does, every byte arrives once and in order, and both sides come to an end.

use crate::pair;
use pair::*;
use penstock_model::{Kernel, Rng, Span};
use penstock_tcp::{Buffer, Config, Ecn, State};
use proptest::prelude::*;

fn stack(n: u8) -> Config {
    match n % 3 {
        0 => Config::linux(Kernel::V6_12),
        1 => Config::linux(Kernel::V2_6_35),
        _ => Config::windows_xp(),
    }
}

#[derive(Clone, Debug)]
struct Case {
    a: u8,
    b: u8,
    cc: bool,
    sack: bool,
    timestamps: bool,
    ecn: bool,
    nodelay: bool,
    rcvbuf: Option<u32>,
    sndbuf: Option<u32>,
    mss: u16,
    bytes: u64,
    back: u64,
    loss_percent: u32,
    late_percent: u32,
    twice_percent: u32,
    delay_us: i64,
    rate_kbit: i64,
    limit: usize,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let shape =
        (any::<u8>(), any::<u8>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let buffers = (
        proptest::option::of(2_000u32..200_000),
        proptest::option::of(1_000u32..200_000),
        prop_oneof![Just(1460u16), 100u16..1460],
    );
    let work = (0u64..300_000, prop_oneof![Just(0u64), 0u64..50_000]);
    let line = (
        prop_oneof![Just(0u32), 0u32..25],
        0u32..20,
        0u32..10,
        100i64..200_000,
        prop_oneof![Just(0i64), 300i64..100_000],
        2usize..100,
        any::<u64>(),
    );
    (shape, buffers, work, line).prop_map(|(s, b, w, l)| Case {
        a: s.0,
        b: s.1,
        cc: s.2,
        sack: s.3,
        timestamps: s.4,
        ecn: s.5,
        nodelay: s.6,
        rcvbuf: b.0,
        sndbuf: b.1,
        mss: b.2,
        bytes: w.0,
        back: w.1,
        loss_percent: l.0,
        late_percent: l.1,
        twice_percent: l.2,
        delay_us: l.3,
        rate_kbit: l.4,
        limit: l.5,
        seed: l.6,
    })
}

fn build(c: &Case) -> Pair {
    let config = |n: u8| {
        let mut cfg = stack(n);
        cfg.set_cc(if c.cc { "cubic" } else { "reno" }).unwrap();
        cfg.sack = c.sack;
        cfg.timestamps &= c.timestamps;
        cfg.nodelay = c.nodelay;
        cfg.mss = c.mss;
        if c.ecn {
            cfg.ecn = Ecn::On;
        }
        if let Some(r) = c.rcvbuf {
            cfg.rcvbuf = Buffer::Fixed(r);
        }
        if let Some(s) = c.sndbuf {
            cfg.sndbuf = Buffer::Fixed(s);
        }
        cfg
    };
    let mut p = Pair::new(&config(c.a), &config(c.b));
    for line in &mut p.lines {
        *line = Line {
            delay: Span::from_us(c.delay_us),
            rate_bit_s: c.rate_kbit * 1000,
            limit: c.limit,
            mark_above: if c.ecn { 3 } else { usize::MAX },
            ..Line::default()
        };
    }
    let mut rng = Rng::named(c.seed, "fate");
    let (loss, late, twice) = (c.loss_percent, c.late_percent, c.twice_percent);
    p.fate = Box::new(move |_, t, _| {
        let x = rng.below(100);
        // The handshake may lose little, so that nobody gives up.
        let loss = if t.tcp.flags.0 & 2 != 0 { loss.min(5) } else { loss };
        if x < loss {
            Fate::Drop
        } else if x < loss + late {
            Fate::Late(Span::from_us(i64::from(rng.below(50_000))))
        } else if x < loss + late + twice {
            Fate::Twice
        } else {
            Fate::Pass
        }
    });
    p.apps[B].to_write = c.back;
    p
}

/// Runs a case and checks it; answers the log for comparison.
fn run(c: &Case) -> (u64, u64, usize, Span) {
    let mut p = build(c);
    let took = p.transfer(c.bytes);
    let ends = (p.a().state(), p.ends[B].as_ref().map(|b| b.state()));
    let errors = (p.a().error(), p.ends[B].as_ref().and_then(|b| b.error()));
    if errors == (None, None) && p.ends[B].is_some() {
        assert_eq!(p.apps[B].read, c.bytes, "{ends:?} {errors:?} {c:?}");
        assert_eq!(p.apps[A].read, c.back, "{ends:?} {errors:?} {c:?}");
        assert!(matches!(ends.0, State::TimeWait | State::Closed), "{ends:?} {c:?}");
        assert_eq!(ends.1, Some(State::Closed), "{ends:?} {c:?}");
    } else {
        // Giving up is not an error of the endpoint's where nearly everything is lost; nothing may come twice then.
        assert!(c.loss_percent > 0, "{errors:?} {c:?}");
        assert!(p.apps[B].read <= c.bytes && p.apps[A].read <= c.back);
    }
    for i in p.ends.iter().flatten().map(|e| e.info()) {
        assert!(i.cwnd >= 1 && i.ssthresh >= 2, "{i:?}");
    }
    (p.apps[B].read, p.apps[A].read, p.log.len(), took)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_once(c in case()) {
        run(&c);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equal_runs_are_equal(c in case()) {
        prop_assert_eq!(run(&c), run(&c));
    }
}
