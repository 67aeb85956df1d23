//! Cases about skbprio.

use super::dice::Dice;
use super::kinds::Service;
use super::nest;
use super::packets::sequence;
use serde_json::{Value, json};

/// A case: all priorities, or a few of them.
pub fn case(d: &mut Dice) -> Value {
    let mut s = Service::choose(d, 10, 250_000);
    s.cap(250_000);
    let mut setup = Vec::new();
    let place = nest::choose(d, &s, 50, &mut setup);
    let words = |d: &mut Dice| match d.range(0, 9) {
        0 => "skbprio".to_owned(),
        1 => format!("skbprio limit {}", d.range(0, 3)),
        _ => format!("skbprio limit {}", d.scale(2, 60)),
    };
    let first = words(d);
    setup.push(place.qdisc("add", &first));
    if d.chance(20) {
        let again = words(d);
        setup.push(place.qdisc("change", &again));
    }
    let most = d.pick(&[2, 5, 15, 70]);
    let mut t = s.traffic(200, 3, true);
    t.bytes_per_s *= 2;
    let packets = sequence(d, t, |d, m| {
        m.insert("priority".into(), json!(d.range(0, most)));
    });
    s.spec(setup, packets)
}
