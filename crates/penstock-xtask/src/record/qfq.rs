//! Cases about qfq.

use super::aqm::codel_words;
use super::dice::Dice;
use super::kinds::Service;
use super::nest;
use super::packets::sequence;
use serde_json::{Value, json};

/// Options of a class, at random.
fn words(d: &mut Dice) -> String {
    let mut o = String::new();
    if d.chance(80) {
        o += &format!(" weight {}", d.pick(&[1, 1, 2, 3, 5, 10, 33, 100, 512, 1024]));
    }
    if d.chance(50) {
        o += &format!(" maxpkt {}", d.pick(&[512, 600, 1000, 1514, 1514, 3000, 9000, 65_536]));
    }
    // A class with neither has no options at all, which is refused.
    if o.is_empty() { " weight 1".to_owned() } else { o }
}

/// A case.
pub fn case(d: &mut Dice) -> Value {
    let mut s = Service::choose(d, 8, 250_000);
    s.cap(500_000);
    let mut setup = Vec::new();
    if d.chance(20) {
        setup.push(format!("ip link set dev $DEV txqueuelen {}", d.pick(&[1, 1, 2, 5, 30])));
        s = s.unblocked();
    }
    let place = nest::choose(d, &s, 25, &mut setup);
    setup.push(place.qdisc("add", "qfq"));
    let most = if d.chance(75) { 5 } else { 24 };
    let classes = d.range(1, most);
    let alike = d.chance(25).then(|| words(d));
    let major = nest::HANDLE;
    for n in 1..=classes {
        let o = alike.clone().unwrap_or_else(|| words(d));
        setup.push(format!("class add dev $DEV parent {major} classid {} qfq{o}", nest::class(n)));
        if d.chance(40) {
            let child = match d.range(0, 8) {
                0..=2 => format!("pfifo limit {}", d.range(1, 30)),
                3 => format!("bfifo limit {}", d.scale(1000, 20_000)),
                4 => format!("red limit 40000 min 3000 max 3001 avpkt 1000 burst {}", d.range(4, 20)),
                5 => "prio".to_owned(),
                6 => format!("pfifo_head_drop limit {}", d.range(1, 12)),
                7 => {
                    let rate = d.scale(64_000, 4_000_000);
                    format!(
                        "tbf rate {rate}bit burst {} limit {}",
                        d.scale(1514, 10_000),
                        d.scale(2000, 40_000)
                    )
                }
                _ => codel_words(d),
            };
            setup.push(format!("qdisc add dev $DEV parent {} handle {:x}: {child}", nest::class(n), 16 + n));
        }
    }
    for n in 1..=d.range(1, 6) {
        let beyond = u64::from(d.chance(10));
        let target = nest::class(d.range(1, classes + beyond));
        setup.push(format!(
            "filter add dev $DEV parent {major} protocol all prio 1 handle {n} fw classid {target}"
        ));
    }
    if d.chance(80) {
        let target = nest::class(d.range(1, classes));
        setup.push(format!(
            "filter add dev $DEV parent {major} protocol all prio 9 matchall classid {target}"
        ));
    }
    let t = s.traffic(200, 4, true);
    let packets = sequence(d, t, |d, m| {
        if d.chance(40) {
            m.insert("mark".into(), json!(d.range(0, 6)));
        } else if d.chance(85) {
            let beyond = u64::from(d.chance(5));
            m.insert("priority".into(), json!(nest::class(d.range(1, classes + beyond))));
        }
    });
    s.spec(setup, packets)
}
