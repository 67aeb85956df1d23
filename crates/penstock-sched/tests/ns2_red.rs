//! `ns2_red` against ns-2.35 itself: for a given sequence of arrivals, the queue that each finds, the average, the probability,
//! the adapted maximum and the drops, to every digit that ns-2 prints, with ns-2's own dice.
//!
//! `vectors/ns2/red.tcl` records the vectors.

use penstock_model::{Options, Rng, Time};
use penstock_packet::{Ipv4, L3, L4, Packet, Skb, Udp};
use penstock_sched::ns2::red::{self, Red};
use penstock_sched::{Actions, Cx, Ledger, Qdisc};
use std::net::Ipv4Addr;
use std::path::Path;

/// L'Ecuyer's MRG32k3a with all six seeds the same: `ns-random SEED` of ns-2.35 (`tools/rng.cc`).
struct Mrg([i64; 6]);

impl Mrg {
    fn next(&mut self) -> f64 {
        const M1: i64 = 4_294_967_087;
        const M2: i64 = 4_294_944_443;
        let c = &mut self.0;
        let p1 = (1_403_580 * c[1] - 810_728 * c[0]).rem_euclid(M1);
        let p2 = (527_612 * c[5] - 1_370_589 * c[3]).rem_euclid(M2);
        *c = [c[1], c[2], p1, c[4], c[5], p2];
        let difference = if p1 > p2 { p1 - p2 } else { p1 - p2 + M1 };
        difference as f64 * 2.328306549295728e-10
    }
    /// The same number as 64 random bits, the first 53 of which count.
    fn bits(&mut self) -> u64 {
        (self.next() * 2f64.powi(53)).ceil() as u64 * (1 << 11)
    }
}

fn packet(seq: u64, size: u32) -> Packet {
    let addr = Ipv4Addr::new(10, 0, 0, 1);
    let ip = Ipv4::new(addr, addr, 17);
    Box::new(Skb { seq, ..Skb::new(size + 14, L3::Ipv4(ip), L4::Udp(Udp { sport: 1, dport: 2 })) })
}

/// What a script's `KEY=VALUE` words set, and the seed.
fn options(line: &str) -> (Options, i64) {
    const NAMES: [&str; 20] = [
        "queue_in_bytes",
        "bytes",
        "mean_pktsize",
        "idle_pktsize",
        "thresh",
        "maxthresh",
        "q_weight",
        "gentle",
        "wait",
        "adaptive",
        "feng_adaptive",
        "alpha",
        "beta",
        "interval",
        "drop_front",
        "drop_rand",
        "ns1_compat",
        "use_mark_p",
        "cautious",
        "limit",
    ];
    let mut o = Options::new().with("bandwidth", 1_000_000u64).with("delay", 5_000_000u64);
    let mut seed = 0;
    for (key, value) in line.split_whitespace().filter_map(|word| word.split_once('=')) {
        if key == "seed" {
            seed = value.parse().unwrap();
        }
        let Some(name) = NAMES.into_iter().find(|n| *n == key) else { continue };
        match (value, value.parse::<u32>()) {
            ("true", _) => o = o.with(name, 1u32),
            ("false", _) => o = o.with(name, 0u32),
            (_, Ok(n)) => o = o.with(name, n),
            (text, Err(_)) => o = o.with(name, text),
        }
    }
    (o, seed)
}

/// C's `%g`.
fn g(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let exponent: i32 = format!("{value:.5e}").split('e').nth(1).unwrap().parse().unwrap();
    let trim = |text: String| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    if !(-4..6).contains(&exponent) {
        let text = format!("{value:.5e}");
        let (digits, _) = text.split_once('e').unwrap();
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(digits.to_owned()), exponent.abs());
    }
    trim(format!("{value:.*}", (5 - exponent) as usize))
}

/// Replays one vector; answers how many packets were dropped.
fn replay(name: &str, text: &str) -> u32 {
    let (head, lines) = text.split_once('\n').unwrap();
    let (o, seed) = options(head);
    let mut red = Red::new(red::params(Some(&o)).unwrap());
    let in_bytes = red.floyd().params().queue_in_bytes;
    let (mut rng, mut drops, mut acts) = (Rng::named(1, "unused"), Ledger::new(), Actions::new());
    let mut dice = Mrg([seed; 6]);
    // The link: free from then on, or sending until then.
    let (mut busy, mut sending, mut queued_bytes, mut lost) = (0i64, false, 0u32, 0u32);
    for (i, line) in lines.lines().enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        let (at, size): (i64, u32) = (words[0].parse().unwrap(), words[1].parse().unwrap());
        // Departures up to here: the link asks each time it is free.
        while sending && busy <= at {
            let now = Time::from_ns(busy);
            match red.dequeue(&mut Cx { now, rng: &mut rng, drops: &mut drops, acts: &mut acts }) {
                Some(p) => {
                    queued_bytes -= p.network_len();
                    busy += i64::from(p.network_len()) * 8000;
                }
                None => sending = false,
            }
        }
        let found = if in_bytes { queued_bytes } else { red.qlen() };
        queued_bytes += size;
        red.put(packet(i as u64, size), at as f64 / 1e9, &mut || dice.bits(), &mut drops);
        for (p, _) in drops.drain() {
            queued_bytes -= p.network_len();
            lost += 1;
        }
        let floyd = red.floyd();
        let got = [
            found.to_string(),
            g(floyd.average()),
            g(floyd.last_probability()),
            g(floyd.max_p()),
            lost.to_string(),
        ];
        assert_eq!(got[..], words[2..], "{name}, arrival {i} at {at}");
        if !sending {
            let now = Time::from_ns(at);
            if let Some(p) = red.dequeue(&mut Cx { now, rng: &mut rng, drops: &mut drops, acts: &mut acts }) {
                queued_bytes -= p.network_len();
                (busy, sending) = (at + i64::from(p.network_len()) * 8000, true);
            }
        }
    }
    lost
}

#[test]
fn averages_and_drops_are_those_of_ns_2() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/ns2");
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|p| p.extension().is_some_and(|e| e == "txt"));
    names.sort();
    assert!(names.len() >= 9, "{names:?}");
    let lost: u32 = names
        .iter()
        .map(|path| replay(&path.display().to_string(), &std::fs::read_to_string(path).unwrap()))
        .sum();
    assert!(lost > 300, "{lost}");
}

#[test]
fn numbers_are_printed_as_c_does() {
    for (value, text) in
        [(2.834_33, "2.83433"), (0.1, "0.1"), (1.0, "1"), (0.000_012_34, "1.234e-05"), (1e6, "1e+06")]
    {
        assert_eq!(g(value), text);
    }
}
