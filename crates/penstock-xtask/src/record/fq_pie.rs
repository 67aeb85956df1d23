//! Cases about fq_pie.

use super::aqm::pie_words;
use super::dice::Dice;
use super::kinds::Service;
use super::nest;
use super::packets::sequence;
use serde_json::{Value, json};

/// Options of the kind.
fn words(d: &mut Dice, estimator: bool) -> String {
    let mut o = pie_words(d, estimator).replacen("pie", "fq_pie", 1);
    if d.chance(50) {
        o += &format!(" quantum {}", d.scale(256, 6000));
    }
    if d.chance(25) {
        o += &format!(" memory_limit {}", d.scale(1000, 60_000));
    }
    if d.chance(30) {
        o += &format!(" ecn_prob {}", d.pick(&[0, 1, 5, 30, 99]));
    }
    o
}

/// A case: flows named by priorities, or one alone.
pub fn case(d: &mut Dice, estimator: bool) -> Value {
    let mut s = Service::choose(d, 5, 64_000);
    s.cap(d.pick(&[2_000, 10_000, 25_000]));
    let mut setup = Vec::new();
    let place = nest::choose(d, &s, 35, &mut setup);
    let named = d.chance(70);
    let flows = match named {
        true => d.pick(&[2, 5, 8, 1024, 1024, 2049, 5000, 65_536]),
        false => d.pick(&[1, 1, 1024, 4096]),
    };
    setup.push(place.qdisc("add", &format!("{} flows {flows}", words(d, estimator))));
    if d.chance(20) {
        setup.push(place.qdisc("change", &words(d, estimator)));
    }
    let mut t = s.traffic(300, if named { 4 } else { 1 }, true);
    t.span_us = d.range(500_000, 4_000_000);
    t.bytes_per_s = t.bytes_per_s * d.range(8, 20) / 10;
    let far = flows.min(65_535);
    let packets = sequence(d, t, |d, m| {
        if d.chance(50) {
            m.insert("tos".into(), json!(d.pick(&[0, 1, 2, 3, 0xb9, 0x2a])));
        }
        if named {
            let flow = d.pick(&[1, 1, 2, far, far / 2 + 1]);
            m.insert("priority".into(), json!(nest::class(flow)));
        }
    });
    s.spec(setup, packets)
}
