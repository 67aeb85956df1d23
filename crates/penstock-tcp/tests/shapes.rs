//! What controllers are known for, alone and against each other, on a line of 100 Mbit/s with one FIFO: shapes, not numbers to the last digit.
//!
//! Reno halves and its share falls with the round trip (Mathis et al. 1997); CUBIC's window follows its cube, and it wins over Reno on long paths (Ha et al. 2008; RFC 9438);
//! BBR keeps the queue short when alone, takes most of a shallow buffer and little of a deep one against CUBIC (Cardwell et al. 2016; Hock et al. 2017).

use crate::shared;
use shared::{Flow, Shared};

/// Bytes of a bandwidth-delay product at 100 Mbit/s.
fn bdp(rtt_ms: u64) -> u64 {
    12_500 * rtt_ms
}

/// Runs flows for so many seconds; answers bytes a second each from the first third on, and the mean queue in ms.
fn run(flows: &[(&'static str, u64)], buffer: u64, seconds: u64) -> (Vec<f64>, f64, Shared) {
    let flows: Vec<Flow> = flows.iter().map(|&(cc, rtt_ms)| Flow::new(cc, rtt_ms)).collect();
    let mut net = Shared::new(flows, 100_000_000, buffer);
    net.run_until_ms(seconds * 1_000 / 3);
    net.begin();
    net.run_until_ms(seconds * 1_000);
    let over = seconds as f64 * 2.0 / 3.0;
    let rates = net.delivered().iter().map(|&b| b as f64 / over).collect();
    let queue = net.mean_queue_ms();
    (rates, queue, net)
}

/// 100 Mbit/s of frames carry so much payload a second: 1448 of 1514 bytes.
const FULL: f64 = 12_500_000.0 * 1448.0 / 1514.0;

#[test]
fn alone_each_fills_the_line() {
    for (cc, least) in
        [("reno", 0.95), ("cubic", 0.95), ("bbr", 0.90), ("bbr3", 0.90), ("vegas", 0.90), ("westwood", 0.65)]
    {
        let (rates, _, _) = run(&[(cc, 40)], bdp(40), 12);
        let share = rates[0] / FULL;
        assert!((least..=1.01).contains(&share), "{cc}: {share:.3}");
    }
}

#[test]
fn reno_halves_and_cubic_leaves_seven_tenths() {
    for (cc, least, most) in [("reno", 0.45, 0.56), ("cubic", 0.64, 0.76)] {
        let (_, _, net) = run(&[(cc, 20)], bdp(20), 24);
        let falls = net.falls(0);
        assert!(falls.len() >= 2, "{cc}: {falls:?}");
        for (before, after) in &falls[1..] {
            let left = f64::from(*after) / f64::from(*before);
            assert!((least..=most).contains(&left), "{cc}: {before} to {after}");
        }
    }
}

#[test]
fn cubic_comes_back_after_k_seconds() {
    // RFC 9438 section 4.2: K = cbrt(W_max (1 - beta) / C) = cbrt(0.75 W_max) seconds; a hundredth below W_max is reached at two thirds of it.
    let (_, _, net) = run(&[("cubic", 40)], bdp(40), 30);
    let (w_max, back_ms) =
        net.comeback(0).unwrap_or_else(|| panic!("a fall and a comeback: {:?}", net.falls(0)));
    let k_ms = (0.75 * f64::from(w_max)).cbrt() * 1_000.0;
    let ratio = back_ms as f64 / k_ms;
    assert!((0.55..=1.15).contains(&ratio), "back after {back_ms} ms, K is {k_ms:.0} ms, W_max {w_max}");
}

#[test]
fn reno_with_the_longer_round_trip_gets_less() {
    let (rates, _, _) = run(&[("reno", 20), ("reno", 80)], bdp(40), 45);
    let ratio = rates[0] / rates[1];
    assert!((2.0..=16.0).contains(&ratio), "four times the round trip: {ratio:.2} times as much");
}

#[test]
fn cubic_wins_over_reno_on_a_long_path() {
    let (rates, _, _) = run(&[("cubic", 100), ("reno", 100)], bdp(100), 40);
    let share = rates[0] / (rates[0] + rates[1]);
    assert!((0.55..=0.95).contains(&share), "{share:.3}");
}

#[test]
fn bbr_keeps_the_queue_short_where_cubic_fills_it() {
    let (_, bbr, _) = run(&[("bbr", 40)], 4 * bdp(40), 12);
    let (_, cubic, _) = run(&[("cubic", 40)], 4 * bdp(40), 12);
    assert!(bbr < 25.0, "bbr: {bbr:.1} ms of queue");
    assert!(cubic > 2.0 * bbr, "cubic {cubic:.1} ms, bbr {bbr:.1} ms");
}

#[test]
fn bbr_takes_a_shallow_buffer_and_little_of_a_deep_one() {
    let share = |buffer| {
        let (rates, _, _) = run(&[("bbr", 40), ("cubic", 40)], buffer, 30);
        rates[0] / (rates[0] + rates[1])
    };
    let (shallow, deep) = (share(bdp(40) / 4), share(8 * bdp(40)));
    assert!(shallow > 0.6, "a quarter of the product: {shallow:.3}");
    assert!(deep < 0.45 && deep < shallow, "eight products: {deep:.3}");
}

#[test]
fn a_scavenger_yields() {
    let (rates, _, _) = run(&[("ledbat", 40), ("reno", 40)], 6 * bdp(40), 24);
    let share = rates[0] / (rates[0] + rates[1]);
    assert!(share < 0.25, "ledbat keeps {share:.3} beside Reno");
}

#[test]
fn vegas_starves_beside_reno() {
    let (rates, queue, _) = run(&[("vegas", 20)], bdp(20), 12);
    assert!(queue < 4.0 && rates[0] > 0.9 * FULL, "alone it keeps a few segments: {queue:.2} ms");
    let (rates, _, _) = run(&[("vegas", 40), ("reno", 40)], 2 * bdp(40), 20);
    assert!(rates[0] < rates[1], "{rates:?}");
}

#[test]
fn bbr3_leaves_cubic_more_than_bbr_does() {
    // Version 1 does not heed loss, and takes nearly all of a shallow buffer; version 3 does.
    let share = |cc| {
        let (rates, _, net) = run(&[(cc, 40), ("cubic", 40)], bdp(40) / 2, 30);
        (rates[0] / (rates[0] + rates[1]), net.lost())
    };
    let ((old, old_lost), (new, new_lost)) = (share("bbr"), share("bbr3"));
    assert!((0.25..=0.8).contains(&new) && new < old, "version 3 {new:.3}, version 1 {old:.3}");
    assert!(new_lost * 2 < old_lost, "version 3 loses {new_lost}, version 1 {old_lost}");
}

#[test]
fn shapes_hold_at_200_ms() {
    for (cc, least) in [("cubic", 0.85), ("bbr", 0.90), ("bbr3", 0.88)] {
        let (rates, _, _) = run(&[(cc, 200)], bdp(200), 30);
        let share = rates[0] / FULL;
        assert!((least..=1.01).contains(&share), "{cc}: {share:.3}");
    }
    let (rates, _, _) = run(&[("cubic", 200), ("reno", 200)], bdp(200), 60);
    let share = rates[0] / (rates[0] + rates[1]);
    assert!((0.55..=0.98).contains(&share), "CUBIC beside Reno: {share:.3}");
    // BBR likes the longer round trip, the loss-based ones the shorter.
    let (rates, _, _) = run(&[("bbr", 20), ("bbr", 200)], 2 * bdp(200), 40);
    assert!(rates[1] > rates[0], "BBR: {rates:?}");
    let (rates, _, _) = run(&[("cubic", 20), ("cubic", 200)], bdp(40), 60);
    let ratio = rates[0] / rates[1];
    assert!((1.5..=12.0).contains(&ratio), "CUBIC, ten times the round trip: {ratio:.2} times as much");
}

/// 100 Mbit/s over 200 ms with a buffer of a tenth of the product: what is made for such paths wins over Reno, what goes by delay stays below it.
#[test]
fn on_a_long_fat_pipe_those_made_for_it_win_over_reno() {
    let share = |cc| run(&[(cc, 200)], bdp(200) / 10, 60).0[0] / FULL;
    let reno = share("reno");
    assert!((0.35..0.45).contains(&reno), "{reno:.3}");
    for cc in ["bic", "highspeed", "htcp", "hybla", "illinois", "scalable", "yeah"] {
        let share = share(cc);
        assert!(share > 1.5 * reno && share < 1.0, "{cc}: {share:.3}");
    }
    assert!(share("cubic") > 1.2 * reno);
    for cc in ["cdg", "nv"] {
        let share = share(cc);
        assert!((0.05..reno).contains(&share), "{cc}: {share:.3}");
    }
}
