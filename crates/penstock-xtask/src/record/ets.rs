//! Random strict and sharing bands.

use super::aqm::codel_words;
use super::classify;
use super::dice::Dice;
use super::kinds::Service;
use super::packets::sequence;
use serde_json::{Value, json};

fn words(list: &[u64]) -> String {
    list.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

/// Options of the kind for so many bands, at random.
fn options(d: &mut Dice, bands: u64) -> String {
    let strict = if d.chance(60) { d.range(0, bands) } else { 0 };
    let mut o = format!("bands {bands}");
    if strict > 0 {
        o += &format!(" strict {strict}");
    }
    let shared = bands - strict;
    if shared > 0 && d.chance(75) {
        let most = shared + u64::from(d.chance(4));
        let given = d.range(1, most);
        let quanta: Vec<u64> = (0..given).map(|_| d.scale(100, 8000)).collect();
        o += &format!(" quanta {}", words(&quanta));
    }
    if d.chance(75) {
        let given = if d.chance(60) { 16 } else { d.range(1, 16) };
        let map: Vec<u64> = (0..given).map(|_| d.range(0, bands - 1)).collect();
        o += &format!(" priomap {}", words(&map));
    }
    o
}

/// A case.
pub fn case(d: &mut Dice) -> Value {
    let mut s = Service::choose(d, 8, 250_000);
    s.cap(500_000);
    let most = if d.chance(70) { 5 } else { 16 };
    let mut bands = d.range(1, most);
    let first = options(d, bands);
    let mut setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: ets {first}")];
    for band in 1..=bands {
        if !d.chance(45) {
            continue;
        }
        let child = match d.range(0, 7) {
            0..=2 => format!("pfifo limit {}", d.range(1, 30)),
            3 => format!("bfifo limit {}", d.scale(1000, 20_000)),
            4 => format!("red limit 40000 min 3000 max 3001 avpkt 1000 burst {}", d.range(4, 20)),
            5 => "prio".to_owned(),
            6 => {
                let rate = d.scale(64_000, 4_000_000);
                format!("tbf rate {rate}bit burst {} limit {}", d.scale(1514, 10_000), d.scale(2000, 40_000))
            }
            _ => codel_words(d),
        };
        setup.push(format!("qdisc add dev $DEV parent 1:{band:x} handle {:x}: {child}", 16 + band));
    }
    if d.chance(30) {
        bands = d.range(1, 16);
        let again = options(d, bands);
        setup.push(format!("qdisc change dev $DEV $PARENT handle 1: ets {again}"));
    }
    if d.chance(30) {
        let band = d.range(1, bands);
        setup.push(format!(
            "class change dev $DEV parent 1: classid 1:{band:x} ets quantum {}",
            d.scale(100, 9000)
        ));
    }
    if d.chance(30) {
        let targets: Vec<String> = (1..=bands + 1).map(|b| format!("1:{b:x}")).collect();
        classify::simple(d, &mut setup, "1:", &targets);
    }
    let packets = sequence(d, s.traffic(200, 5, true), |d, m| match d.range(0, 9) {
        0..=5 => {
            m.insert("priority".into(), json!(d.range(0, 16)));
        }
        6..=8 => {
            m.insert("priority".into(), json!(format!("1:{:x}", d.range(0, bands + 1))));
        }
        _ => {
            m.insert("mark".into(), json!(d.range(0, 5)));
        }
    });
    s.spec(setup, packets)
}
