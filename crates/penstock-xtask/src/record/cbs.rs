//! Cases about cbs.

use super::dice::Dice;
use super::kinds::Service;
use super::multiq::child;
use super::nest;
use super::packets::{Traffic, sequence};
use serde_json::Value;

/// Options of the kind at random, for a flow of so many bytes a second.
fn words(d: &mut Dice, rate: u64) -> String {
    // Without an idle slope credit never comes back, and the kernel's timer goes off without end.
    let idle = (rate * 8 / 1000 * d.pick(&[1, 1, 2, 3]) / d.pick(&[1, 2, 2, 5])).max(1);
    let send = match d.range(0, 4) {
        // What the formula of 802.1Q gives for a port of 10 Gbit/s, which a veth says it is.
        0..=2 => idle as i64 - 10_000_000,
        3 => -(d.scale(1, 100_000_000) as i64),
        _ => d.range(0, 5000) as i64,
    };
    let (high, low) = (d.scale(1, 100_000), d.scale(1, 100_000));
    let low = if d.chance(90) { -(low as i64) } else { 0 };
    let mut o = format!("cbs idleslope {idle}");
    for (word, value, often) in
        [("sendslope", send, 95), ("hicredit", high as i64, 90), ("locredit", low, 90)]
    {
        if d.chance(often) {
            o += &format!(" {word} {value}");
        }
    }
    o
}

/// A case.
pub fn case(d: &mut Dice) -> Value {
    // Credit counts time from the first packet on.
    let mut s = Service::choose(d, 40, 1_000_000).unblocked();
    s.cap(500_000);
    let rate = s.rate;
    let mut setup = Vec::new();
    let place = nest::choose(d, &s, 30, &mut setup);
    let first = words(d, rate);
    setup.push(place.qdisc("add", &first));
    if d.chance(50) {
        let inside = child(d);
        setup.push(format!("qdisc add dev $DEV parent {} handle 20: {inside}", nest::class(1)));
    } else if d.chance(20) {
        setup.push(format!("qdisc add dev $DEV parent {} handle 20: {}", nest::class(1), words(d, rate)));
    }
    if d.chance(10) {
        setup.push(format!("qdisc del dev $DEV parent {}", nest::class(1)));
    }
    if d.chance(25) {
        let again = words(d, rate);
        setup.push(place.qdisc("change", &again));
    }
    let few = if d.chance(30) { d.pick(&[5, 20]) } else { 120 };
    let packets = sequence(d, Traffic { bytes_per_s: rate, ..s.traffic(few, 3, true) }, |_, _| {});
    s.spec(setup, packets)
}
