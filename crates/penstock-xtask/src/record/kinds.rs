//! Random configurations, one generator a kind.

use super::DICE;
use super::dice::Dice;
use super::packets::{Traffic, sequence};
use super::{
    actions, aqm, arrive, by_grammar, cake, cbs, chance, classify, deep, dualpi2, edits, etf, ets, fq_pie,
    gso, hfsc, hhf, htb, matches, midway, mixed, mq, multiq, netem, paced, plug, qfq, seldom, skbprio,
    taprio, wide, wraps,
};
use penstock_model::Kernel;
use penstock_sched::sch;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Makes the specification of a case.
type Generator = fn(&mut Dice, u64) -> Value;

/// What there is a generator for. A qdisc without classes and filters needs none: see [`by_grammar`].
const GENERATORS: &[(&str, Generator)] = &[
    ("actions", |d, _| actions::case(d, false)),
    ("actions_dice", |d, _| chance::actions(d)),
    ("arrive", |d, _| arrive::case(d)),
    ("basic", |d, _| matches::case(d, Some("basic"))),
    ("bfifo", |d, _| fifo(d, "bfifo")),
    ("bpf", |d, _| matches::case(d, Some("bpf"))),
    ("cake", |d, _| cake::case(d)),
    ("cake_dice", |d, _| cake::dice(d)),
    ("cake_mq", |d, _| mq::cake(d)),
    ("cbs", |d, _| cbs::case(d)),
    ("choke", |d, _| aqm::choke(d)),
    ("choke_dice", |d, _| chance::choke(d)),
    ("codel", |d, _| aqm::case(d, aqm::codel_words)),
    ("ct", |d, _| wraps::case(d, true)),
    ("drr", |d, _| aqm::drr(d)),
    ("dualpi2", |d, _| dualpi2::case(d)),
    ("dualpi2_dice", |d, _| dualpi2::dice(d)),
    ("edits", |d, _| edits::case(d)),
    ("etf", |d, seed| etf::case(d, seed < MIDWAY || seed.is_multiple_of(2))),
    ("ets", |d, _| ets::case(d)),
    ("flow", |d, _| matches::case(d, Some("flow"))),
    ("flow_dice", |d, _| chance::flow(d)),
    ("flower", |d, _| matches::case(d, Some("flower"))),
    ("fq", |d, _| paced::fq(d)),
    ("fq_codel", |d, _| aqm::fq_codel(d)),
    ("fq_pie", |d, seed| fq_pie::case(d, seed.is_multiple_of(4))),
    ("fq_pie_dice", |d, _| chance::fq_pie(d)),
    ("fw", |d, _| classify::case(d, false)),
    ("gred", |d, _| aqm::gred(d)),
    ("gred_dice", |d, _| chance::gred(d)),
    ("hfsc", |d, _| hfsc::case(d)),
    ("hhf", |d, _| hhf::case(d)),
    ("htb", |d, _| htb::case(d)),
    ("matches", |d, _| matches::case(d, None)),
    ("mixed", |d, seed| if seed < deep::FROM { mixed::case(d, 110) } else { deep::case(d, seed) }),
    ("mq", |d, _| mq::case(d, false)),
    ("mqprio", |d, _| mq::case(d, true)),
    ("multiq", multiq::case),
    ("netem", |d, _| netem::case(d)),
    ("netem_dice", |d, _| netem::dice(d)),
    ("pfifo", |d, _| fifo(d, "pfifo")),
    ("pfifo_fast", |d, _| pfifo_fast(d)),
    ("pfifo_head_drop", |d, _| fifo(d, "pfifo_head_drop")),
    // Whether the drain's rate is estimated is the same in a case and in what is woven into it.
    ("pie", |d, seed| aqm::pie(d, seed.is_multiple_of(4))),
    ("pie_dice", |d, _| chance::pie(d)),
    ("plug", |d, _| plug::case(d)),
    ("police", |d, _| actions::case(d, true)),
    ("prio", |d, _| prio(d)),
    ("qfq", |d, _| qfq::case(d)),
    ("red", |d, _| aqm::case(d, aqm::red_words)),
    ("red_dice", |d, _| chance::red(d)),
    ("seldom", |d, _| seldom::case(d)),
    ("sfb", |d, _| aqm::sfb(d)),
    ("sfb_dice", |d, _| chance::sfb(d)),
    ("sfq", |d, _| sfq(d)),
    ("sfq_dice", |d, _| sfq_dice(d)),
    ("skbprio", |d, _| skbprio::case(d)),
    ("taprio", |d, seed| taprio::case(d, seed < MIDWAY || seed.is_multiple_of(2))),
    ("tbf", |d, _| tbf(d)),
    ("u32", |d, _| classify::case(d, true)),
    ("wraps", |d, _| wraps::case(d, false)),
];

/// Trees of every kind under much traffic; takes long, so not among all.
const HEAVY: (&str, Generator) = ("heavy", |d, _| mixed::case(d, 3000));

/// What `all` records of a kernel: what has a generator, and the kinds that carry packets and whose grammar has a rule `record`.
pub fn all(kernel: Kernel) -> Vec<&'static str> {
    let kinds = || sch::KINDS.iter().filter(|k| k.simulated);
    // The name of a generator that is no kind's is one's with an ending, or several kinds'.
    let there = |name: &str| {
        let kind = kinds().find(|k| k.id == name.trim_end_matches(DICE));
        kind.is_none_or(|k| k.kernels.contains(&kernel))
    };
    let own = GENERATORS.iter().map(|(name, _)| *name).chain([GSO]).filter(|name| there(name));
    let simulated = kinds().filter(|k| k.kernels.contains(&kernel)).map(|k| k.id);
    let by_grammar = simulated.filter(|id| by_grammar::grammar(id).is_some());
    let newer = (kernel >= Kernel::V7_2).then_some(GSO_DUALPI2);
    let names: BTreeSet<&str> = own.chain(by_grammar).chain(newer).collect();
    names.into_iter().collect()
}

/// Every second case from here on has commands in the midst of the traffic.
const MIDWAY: u64 = 101;

/// But of these, which have commands of their own there.
const OWN_COMMANDS: &[&str] = &["cake_mq", "mq", "mqprio", "ct", "taprio", "wraps"];

/// What comes in at a device, and what asks for times of departure, has no super-packets.
const NO_SUPERS: &[&str] = &["arrive", "etf", "wraps", "ct"];

/// A case with super-packets of one kind or another: those of which `all` has exact cases, in turns.
const GSO: &str = "gso";

/// The same of `dualpi2`, which 6.12 has not.
const GSO_DUALPI2: &str = "gso_dualpi2";

/// Whose cases these are made of. Not of what comes in at a device, nor of what asks for times of departure.
fn with_super_packets(seed: u64) -> Option<Value> {
    let kinds: Vec<&str> = all(Kernel::V6_12)
        .into_iter()
        .filter(|kind| !kind.ends_with(DICE) && !["arrive", "etf", GSO].contains(kind))
        .collect();
    let kind = kinds[seed as usize % kinds.len()];
    let spec = before_traffic(kind, seed)?;
    Some(gso::lift(&mut Dice::new(GSO, seed), spec))
}

/// A specification of `kind` from `seed`; `None` for an unknown kind.
pub fn generate(kind: &str, seed: u64) -> Option<Value> {
    if kind == GSO {
        return with_super_packets(seed);
    }
    if kind == GSO_DUALPI2 {
        return Some(gso::lift(&mut Dice::new(kind, seed), before_traffic("dualpi2", seed)?));
    }
    let spec = before_traffic(kind, seed)?;
    if wide::applies(seed) && !kind.ends_with(DICE) {
        let bears = wide::Bears {
            commands: !OWN_COMMANDS.contains(&kind),
            supers: !NO_SUPERS.contains(&kind),
            shows: seed >= wide::SHOWN_FROM,
        };
        let others: Vec<Value> = (1..=2).filter_map(|n| before_traffic(kind, seed + (n << 32))).collect();
        return Some(wide::widen(&mut Dice::new("wide", seed), spec, &others, bears));
    }
    if seed < MIDWAY || seed.is_multiple_of(2) || OWN_COMMANDS.contains(&kind) {
        return Some(spec);
    }
    let other = before_traffic(kind, seed + (1 << 32))?;
    Some(midway::weave(&mut Dice::new("midway", seed), spec, &other))
}

/// A specification whose commands all come first.
fn before_traffic(kind: &str, seed: u64) -> Option<Value> {
    let mut dice = Dice::new(kind, seed);
    let known = GENERATORS.iter().chain([&HEAVY]).find(|(name, _)| *name == kind);
    match known {
        Some((_, generator)) => Some(generator(&mut dice, seed)),
        None => by_grammar::case(&mut dice, kind, seed),
    }
}

/// How the queue under test is served.
pub struct Service {
    release: &'static str,
    /// Bytes a second.
    pub rate: u64,
    hold_ms: u64,
}

impl Service {
    /// Chooses the release and the rate of the line; `own` in 100 cases stand alone at the root, with `own_rate`.
    pub fn choose(d: &mut Dice, own: u32, own_rate: u64) -> Service {
        if d.chance(own) {
            return Service { release: "none", rate: own_rate, hold_ms: 0 };
        }
        let rate = d.pick(&[
            8_000,
            16_000,
            64_000,
            100_000,
            125_000,
            250_000,
            1_000_000,
            1_250_000,
            12_500_000,
            1_250_000_000,
        ]);
        if d.chance(45) {
            Service { release: "block", rate, hold_ms: d.pick(&[20, 50, 100, 100, 250, 1000]) }
        } else {
            Service { release: "link", rate, hold_ms: 0 }
        }
    }
    /// The same without a line that is blocked at first: what goes by the ticks of the clock, or counts time from the first packet on,
    /// is known against the beginning of a case, and not against such a line's release.
    pub fn unblocked(mut self) -> Service {
        if self.release == "block" {
            (self.release, self.hold_ms) = ("link", 0);
        }
        self
    }
    /// The queue stands at the root and sends so many bytes a second.
    pub fn alone_at(rate: u64) -> Service {
        Service { release: "none", rate, hold_ms: 0 }
    }
    /// Behind a line of so many bytes a second, idle at first.
    pub fn line_at(rate: u64) -> Service {
        Service { release: "link", rate, hold_ms: 0 }
    }
    /// Makes the line, where there is one, at most five times as fast as what stands behind it.
    pub fn cap(&mut self, rate: u64) {
        if !self.alone() {
            self.rate = self.rate.min(rate.saturating_mul(5));
        }
    }
    /// Whether the queue stands at the root.
    pub fn alone(&self) -> bool {
        self.release == "none"
    }
    /// The traffic that fits: some 700 ms of the line.
    pub fn traffic(&self, most: u64, flows: u64, mixed: bool) -> Traffic {
        let span_us = if self.release == "block" { self.hold_ms * 400 } else { 600_000 };
        Traffic { bytes_per_s: self.rate, most, span_us, flows, mixed }
    }
    /// The whole specification.
    pub fn spec(&self, setup: Vec<String>, packets: Vec<Value>) -> Value {
        let mut m = Map::new();
        m.insert("release".into(), json!(self.release));
        if !self.alone() {
            let bits = self.rate * 8;
            let text = match bits {
                b if b.is_multiple_of(1_000_000_000) => format!("{}gbit", b / 1_000_000_000),
                b if b.is_multiple_of(1_000_000) => format!("{}mbit", b / 1_000_000),
                b if b.is_multiple_of(1000) => format!("{}kbit", b / 1000),
                b => format!("{b}bit"),
            };
            m.insert("rate".into(), json!(text));
        }
        if self.hold_ms > 0 {
            let last = packets.iter().map(|p| last_us(p) / 1000.0).fold(0.0, f64::max);
            let hold_ms = self.hold_ms.max(last as u64 + 10);
            if hold_ms != 1000 {
                m.insert("hold_s".into(), json!(hold_ms as f64 / 1000.0));
            }
        }
        m.insert("setup".into(), json!(setup));
        m.insert("packets".into(), json!(packets));
        Value::Object(m)
    }
}

/// When the last packet of an entry comes.
fn last_us(entry: &Value) -> f64 {
    let number = |name: &str, default: f64| entry[name].as_f64().unwrap_or(default);
    number("t_us", 0.0) + (number("repeat", 1.0) - 1.0) * number("gap_us", 0.0)
}

fn plain_dress(d: &mut Dice, m: &mut Map<String, Value>) {
    if d.chance(15) {
        m.insert("priority".into(), json!(d.range(0, 15)));
    }
    if d.chance(10) {
        m.insert("mark".into(), json!(d.range(0, 9)));
    }
}

fn fifo(d: &mut Dice, kind: &str) -> Value {
    let bytes = kind == "bfifo";
    let s = Service::choose(d, 15, 1_000_000);
    let limit = |d: &mut Dice| {
        if bytes { d.scale(60, 40_000) } else { d.scale(1, 60) }
    };
    let mut setup = Vec::new();
    if d.chance(15) {
        setup.push(format!("ip link set dev $DEV txqueuelen {}", d.range(1, 30)));
    }
    let options = if d.chance(85) { format!(" limit {}", limit(d)) } else { String::new() };
    setup.push(format!("qdisc add dev $DEV $PARENT handle 1: {kind}{options}"));
    if d.chance(30) {
        let verb = d.pick(&["change", "replace"]);
        setup.push(format!("qdisc {verb} dev $DEV $PARENT handle 1: {kind} limit {}", limit(d)));
    } else if d.chance(10) {
        setup.push("qdisc del dev $DEV $PARENT".to_owned());
        setup.push(format!("qdisc add dev $DEV $PARENT handle 2: {kind} limit {}", limit(d)));
    }
    let packets = sequence(d, s.traffic(120, 4, true), plain_dress);
    s.spec(setup, packets)
}

fn pfifo_fast(d: &mut Dice) -> Value {
    let s = Service::choose(d, 25, 1_000_000);
    let mut setup = Vec::new();
    let txq = d.chance(50);
    if txq {
        setup.push(format!("ip link set dev $DEV txqueuelen {}", d.scale(1, 150)));
    }
    setup.push("qdisc add dev $DEV $PARENT handle 1: pfifo_fast".to_owned());
    if txq && d.chance(15) {
        setup.push(format!("ip link set dev $DEV txqueuelen {}", d.scale(1, 150)));
    }
    let packets = sequence(d, s.traffic(600, 5, true), |d, m| {
        if d.chance(50) {
            m.insert("priority".into(), json!(d.range(0, 17)));
        } else if d.chance(70) {
            m.insert("tos".into(), json!(d.range(0, 255)));
        }
    });
    s.spec(setup, packets)
}

fn words(list: &[u64]) -> String {
    list.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

fn prio(d: &mut Dice) -> Value {
    let s = Service::choose(d, 20, 100_000);
    let mut setup = Vec::new();
    let mut bands = if d.chance(40) { 3 } else { d.range(2, 16) };
    let map = |d: &mut Dice, bands: u64| {
        let n = if d.chance(60) { 16 } else { d.range(1, 16) };
        words(&(0..n).map(|_| d.range(0, bands - 1)).collect::<Vec<_>>())
    };
    let mut options = if bands == 3 && d.chance(60) { String::new() } else { format!(" bands {bands}") };
    if d.chance(60) {
        options += &format!(" priomap {}", map(d, bands));
    }
    setup.push(format!("qdisc add dev $DEV $PARENT handle 1: prio{options}"));
    let mut nested = None;
    for band in 1..=bands {
        if !d.chance(45) {
            continue;
        }
        let handle = 10 + band;
        let child = match d.range(0, 9) {
            0..=2 => format!("pfifo limit {}", d.range(1, 20)),
            3..=4 => format!("bfifo limit {}", d.scale(500, 20_000)),
            5..=6 => {
                let rate = d.scale(64_000, 4_000_000);
                format!("tbf rate {rate}bit burst {} limit {}", d.scale(1514, 10_000), d.scale(2000, 40_000))
            }
            7 => format!("sfq limit {}", d.range(1, 60)),
            8 if nested.is_none() => {
                nested = Some(handle);
                "prio".to_owned()
            }
            _ => "pfifo_fast".to_owned(),
        };
        setup.push(format!("qdisc add dev $DEV parent 1:{band:x} handle {handle:x}: {child}"));
        if nested == Some(handle) && d.chance(70) {
            let inner = d.range(1, 3);
            setup.push(format!(
                "qdisc add dev $DEV parent {handle:x}:{inner} handle 77: pfifo limit {}",
                d.range(1, 9)
            ));
        }
        if d.chance(8) {
            setup.push(format!("qdisc del dev $DEV parent 1:{band:x} handle {handle:x}:"));
            if nested == Some(handle) {
                nested = None;
            }
        }
    }
    if d.chance(30) {
        bands = d.range(2, 16);
        setup.push(format!(
            "qdisc change dev $DEV $PARENT handle 1: prio bands {bands} priomap {}",
            map(d, bands)
        ));
    }
    if d.chance(30) {
        classify::simple(
            d,
            &mut setup,
            "1:",
            &(1..=bands + 1).map(|b| format!("1:{b:x}")).collect::<Vec<_>>(),
        );
    }
    let packets = sequence(d, s.traffic(120, 5, true), |d, m| match d.range(0, 9) {
        0..=3 => {
            m.insert("priority".into(), json!(d.range(0, 16)));
        }
        4..=6 => {
            m.insert("tos".into(), json!(d.range(0, 255)));
        }
        7..=8 => {
            m.insert("priority".into(), json!(format!("1:{:x}", d.range(0, bands + 1))));
        }
        _ => {
            m.insert("mark".into(), json!(d.range(0, 5)));
        }
    });
    s.spec(setup, packets)
}

/// A rate in one of tc's ways of writing it.
pub fn rate_word(d: &mut Dice, bits: u64) -> String {
    match d.range(0, 5) {
        0 if bits >= 8000 => format!("{}bps", bits / 8),
        1 if bits >= 1_000_000 => format!("{}mbit", bits / 1_000_000),
        2 if bits >= 8_192 => format!("{}kibit", bits / 1024),
        _ if bits >= 1000 && bits.is_multiple_of(1000) => format!("{}kbit", bits / 1000),
        _ => format!("{bits}bit"),
    }
}

/// A round or crooked rate between 8 kbit/s and `most` bit/s.
pub fn rate_bits(d: &mut Dice, most: u64) -> u64 {
    if d.chance(50) {
        let round = [
            8_000,
            64_000,
            100_000,
            256_000,
            500_000,
            512_000,
            1_000_000,
            2_000_000,
            10_000_000,
            33_000_000,
            100_000_000,
            1_000_000_000,
            10_000_000_000,
        ];
        let fitting: Vec<u64> = round.into_iter().filter(|&r| r <= most).collect();
        d.pick(&fitting)
    } else {
        d.scale(8_000, most)
    }
}

/// Options of the kind, at random.
pub fn tbf_options(d: &mut Dice, bits: u64) -> String {
    let mut o = format!("rate {}", rate_word(d, bits));
    let burst = match d.range(0, 4) {
        0 => d.range(1514, 1600),
        1 => d.range(200, 1514),
        2 => (bits / 8 / 100).max(1514),
        _ => d.scale(1600, 50_000),
    };
    let word = d.pick(&["burst", "burst", "buffer", "maxburst"]);
    let cell = if d.chance(10) { "/8" } else { "" };
    o += &format!(" {word} {burst}{cell}");
    if d.chance(60) {
        o += &format!(" limit {}", d.scale(300, 60_000));
    } else {
        o += &format!(" latency {}ms", d.scale(1, 800));
    }
    if d.chance(35) {
        let peak = (bits as f64 * (1.05 + d.range(0, 400) as f64 / 100.0)) as u64;
        o += &format!(
            " peakrate {peak}bit {} {}",
            d.pick(&["mtu", "minburst"]),
            d.pick(&[1514, 1514, 1540, 2000, 1000, 3000])
        );
    }
    if d.chance(20) {
        o += &format!(" mpu {}", d.pick(&[64, 128, 300, 1500]));
    }
    if d.chance(20) {
        o += &format!(" overhead {}", d.pick(&[4, 18, 24, 38, 100]));
    }
    if d.chance(20) {
        o += &format!(" linklayer {}", d.pick(&["atm", "ethernet", "atm"]));
    }
    o
}

fn tbf(d: &mut Dice) -> Value {
    let most = if d.chance(10) { 10_000_000_000 } else { 50_000_000 };
    let bits = rate_bits(d, most);
    let mut s = Service::choose(d, 75, bits / 8);
    let mut setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: tbf {}", tbf_options(d, bits))];
    if d.chance(20) {
        let verb = d.pick(&["change", "replace"]);
        setup.push(format!("qdisc {verb} dev $DEV $PARENT handle 1: tbf {}", tbf_options(d, bits)));
    }
    let child = match d.range(0, 11) {
        0 => Some(format!("pfifo limit {}", d.range(1, 20))),
        1 => Some(format!("bfifo limit {}", d.scale(500, 20_000))),
        2 => Some(format!("sfq limit {} quantum 1514", d.range(2, 100))),
        3 | 4 => Some("prio".to_owned()),
        5 => Some("pfifo_fast".to_owned()),
        6 => Some(format!("tbf {}", tbf_options(d, bits))),
        _ => None,
    };
    if let Some(child) = child {
        setup.push(format!("qdisc add dev $DEV parent 1:1 handle 10: {child}"));
        if d.chance(10) {
            setup.push(format!("qdisc change dev $DEV $PARENT handle 1: tbf {}", tbf_options(d, bits)));
        }
        if d.chance(10) {
            setup.push("qdisc del dev $DEV parent 1:1".to_owned());
        }
    }
    s.rate = s.rate.min(bits / 8);
    let t = Traffic { bytes_per_s: bits / 8, ..s.traffic(100, 1, d.chance(20)) };
    let packets = sequence(d, t, |d, m| {
        if d.chance(30) {
            m.insert("priority".into(), json!(d.range(0, 15)));
        }
    });
    if !s.alone() {
        // The line is at least as fast as the bucket: both then matter.
        s.rate = (bits / 8).saturating_mul(d.pick(&[1, 2, 5])).min(1_250_000_000);
    }
    s.spec(setup, packets)
}

/// Options of the kind, at random.
pub fn sfq_options(d: &mut Dice) -> String {
    let mut o = String::new();
    if d.chance(60) {
        o += &format!(" limit {}", d.scale(1, 200));
    }
    if d.chance(50) {
        o += &format!(" quantum {}", d.pick(&[1514, 1514, 3000, 700, 1600, 10_000]));
    }
    if d.chance(25) {
        o += &format!(" divisor {}", d.pick(&[1, 2, 16, 256, 1024, 4096, 65536]));
    }
    if d.chance(25) {
        o += &format!(" depth {}", d.range(1, 127));
    }
    if d.chance(15) {
        o += &format!(" flows {}", d.range(1, 300));
    }
    if d.chance(20) {
        o += " headdrop";
    }
    o
}

fn sfq(d: &mut Dice) -> Value {
    let s = Service::choose(d, 10, 1_000_000);
    let flows = if d.chance(70) { d.range(1, 3) } else { d.range(4, 12) };
    let mut setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: sfq{}", sfq_options(d))];
    if d.chance(20) {
        setup.push(format!("qdisc change dev $DEV $PARENT handle 1: sfq{}", sfq_options(d)));
    }
    let filtered = d.chance(35);
    if filtered {
        for n in 1..=flows {
            let bucket = d.range(1, flows + 1);
            setup.push(format!("filter add dev $DEV parent 1: prio {n} protocol ip u32 match ip src 10.0.0.{n} flowid 1:{bucket:x}"));
        }
    }
    let mut t = s.traffic(150, flows, !filtered && d.chance(40));
    if filtered {
        t.mixed = false;
    }
    let packets = sequence(d, t, |_, m| {
        if filtered {
            let last = m["src"].as_str().and_then(|s| s.rsplit('.').next()).unwrap_or("1").to_owned();
            m.insert("src".into(), json!(format!("10.0.0.{last}")));
        }
    });
    s.spec(setup, packets)
}

/// Flows that the kernel's hash key throws together now and then: every answer depends on the dice.
fn sfq_dice(d: &mut Dice) -> Value {
    let flows = d.range(4, 10);
    let each = d.range(3, 8);
    let divisor = d.pick(&[2, 4, 8, 16]);
    let limit =
        if d.chance(50) { String::new() } else { format!(" limit {}", (flows * each * 2 / 3).max(4)) };
    let mut packets = Vec::new();
    for n in 1..=flows {
        let len = d.range(60, 1514);
        packets.push(json!({"t_us": n - 1, "len": len, "src": format!("10.0.0.{n}"), "sport": 1000 + n, "repeat": each}));
    }
    let s = Service { release: "block", rate: 1_250_000, hold_ms: 50 };
    s.spec(
        vec![format!("qdisc add dev $DEV $PARENT handle 1: sfq quantum 1514 divisor {divisor}{limit}")],
        packets,
    )
}
