//! Any kind's case, made wider: below other qdiscs, on other devices, with sizes at their ends, with super-packets, and with
//! more commands amid the traffic than [`super::midway`] gives.

use super::dice::Dice;
use super::{gso, midway};
use serde_json::{Value, json};

/// Of the cases from [`FROM`] on two in three are made wider.
pub const FROM: u64 = 200_000;

/// Whether the case of that number is.
pub fn applies(seed: u64) -> bool {
    seed >= FROM && !seed.is_multiple_of(3)
}

/// What a kind's cases bear.
#[derive(Clone, Copy)]
pub struct Bears {
    /// Commands besides their own, amid the traffic.
    pub commands: bool,
    /// Super-packets.
    pub supers: bool,
    /// Commands amid the traffic that show what stands: from [`SHOWN_FROM`] on.
    pub shows: bool,
}

/// How long the probe waits for what leaves next to never, s.
const DRAIN_S: f64 = 1.5;

/// The case made wider; commands are made of `others`, cases of the same kind.
pub fn widen(d: &mut Dice, mut spec: Value, others: &[Value], bears: Bears) -> Value {
    let arrives = spec["release"] == "arrive";
    let several = !spec["tx_queues"].is_null();
    if d.chance(25) && !several && !arrives {
        below(d, &mut spec);
    }
    if d.chance(30) {
        stretch(d, &mut spec);
    }
    if d.chance(20) {
        device(d, &mut spec);
    }
    if bears.commands && d.chance(60) {
        weave(d, &mut spec, others, bears.shows);
    }
    if bears.supers && !arrives && d.chance(40) {
        spec = gso::lift_seeded(d, spec);
    }
    spec
}

/// The lines of a case's setup.
fn lines(spec: &Value) -> Vec<String> {
    let all = spec["setup"].as_array().into_iter().flatten();
    all.filter_map(|line| line.as_str().map(str::to_owned)).collect()
}

/// Puts what stood at `$PARENT` into a class of another qdisc, or of one within another.
fn below(d: &mut Dice, spec: &mut Value) {
    // Timers of 64 ns and what counts from the first packet on are not known against a blocked line.
    let blocked = spec["release"] == "block";
    let bits = spec["rate"].as_str().map_or(1_000_000, |r| (gso::bytes_per_s(r) * 8.0) as u64).max(64_000);
    let mut outer = Vec::new();
    let mut parent = "$PARENT".to_owned();
    for level in 0..d.range(1, 2) {
        let h = format!("7e{level}");
        let start = format!("qdisc add dev $DEV {parent} handle {h}:");
        match d.range(0, 8) {
            0 | 1 => {
                let (rate, ceil) = (bits / d.range(1, 4), bits * d.range(1, 2));
                outer.push(format!("{start} htb default 1{}", d.pick(&["", " r2q 1", " direct_qlen 2"])));
                outer.push(format!(
                    "class add dev $DEV parent {h}: classid {h}:2 htb rate {}bit",
                    ceil.max(rate)
                ));
                outer.push(format!(
                    "class add dev $DEV parent {h}:2 classid {h}:1 htb rate {rate}bit ceil {}bit burst {} cburst {}",
                    ceil.max(rate),
                    d.scale(1, 20_000),
                    d.scale(1, 20_000)
                ));
            }
            2 if !blocked => {
                outer.push(format!("{start} hfsc default 1"));
                let curve = d.pick(&["sc", "ls", "rt"]);
                let limit =
                    if curve == "rt" || d.chance(60) { String::new() } else { format!(" ul rate {bits}bit") };
                outer.push(format!(
                    "class add dev $DEV parent {h}: classid {h}:1 hfsc {curve} rate {bits}bit{limit}"
                ));
            }
            3 => outer.push(format!(
                "{start} prio bands {} priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 1",
                d.range(2, 16)
            )),
            4 => {
                outer.push(format!("{start} drr"));
                outer.push(format!(
                    "class add dev $DEV parent {h}: classid {h}:1 drr quantum {}",
                    d.scale(1, 100_000)
                ));
                outer.push(format!(
                    "filter add dev $DEV parent {h}: protocol all prio 1 matchall classid {h}:1"
                ));
            }
            5 => {
                outer.push(format!("{start} qfq"));
                outer.push(format!(
                    "class add dev $DEV parent {h}: classid {h}:1 qfq weight {} maxpkt {}",
                    d.scale(1, 1023),
                    d.pick(&[512, 1000, 1514, 9000])
                ));
                outer.push(format!(
                    "filter add dev $DEV parent {h}: protocol all prio 1 matchall classid {h}:1"
                ));
            }
            6 => outer.push(format!("{start} ets bands {} strict {}", d.range(2, 8), d.range(0, 2))),
            7 => outer.push(format!(
                "{start} red limit {} min 3000 max 3001 avpkt 1000 burst {} bandwidth 1mbit",
                d.scale(6000, 200_000),
                d.range(4, 20)
            )),
            _ => outer.push(format!(
                "{start} tbf rate {bits}bit burst {} limit {}{}",
                d.scale(1600, 20_000),
                d.scale(4000, 60_000),
                if d.chance(30) {
                    format!(" peakrate {}bit mtu {}", bits * 2, d.pick(&[1514, 2000]))
                } else {
                    String::new()
                }
            )),
        }
        parent = format!("parent {h}:1");
    }
    let moved = |text: &str| text.replace("$PARENT", &parent);
    outer.extend(lines(spec).iter().map(|line| moved(line)));
    spec["setup"] = json!(outer);
    for entry in spec["packets"].as_array_mut().into_iter().flatten() {
        if let Some(line) = entry["run"].as_str() {
            entry["run"] = json!(moved(line));
        }
    }
}

/// Words before numbers that name things, or say where they are.
const NAMES: &[&str] = &[
    "handle",
    "parent",
    "classid",
    "flowid",
    "prio",
    "protocol",
    "pref",
    "dev",
    "at",
    "default",
    "queue_mapping",
    "mark",
    "index",
    "chain",
    "goto",
    "seed",
    "base-time",
    "sched-entry",
    "S",
    "mtu",
    "clockid",
    "offset",
    "set",
    "link",
    "ht",
];

/// Moves one or two numbers of the setup to an end of what they may be.
fn stretch(d: &mut Dice, spec: &mut Value) {
    let mut setup = lines(spec);
    let mut stretched = false;
    for _ in 0..d.range(1, 2) {
        let mut places = Vec::new();
        for (n, line) in
            setup.iter().enumerate().filter(|(_, l)| l.starts_with("qdisc") || l.starts_with("class"))
        {
            let words: Vec<&str> = line.split(' ').collect();
            for (at, pair) in words.windows(2).enumerate() {
                let number = pair[1].starts_with(|c: char| c.is_ascii_digit()) && !pair[1].contains(':');
                if number
                    && !NAMES.contains(&pair[0])
                    && pair[0].starts_with(|c: char| c.is_ascii_lowercase())
                {
                    places.push((n, at + 1));
                }
            }
        }
        if places.is_empty() {
            break;
        }
        let (n, at) = d.pick(&places);
        let mut words: Vec<String> = setup[n].split(' ').map(str::to_owned).collect();
        let word = words[at].clone();
        let unit: String = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned();
        let digits = word.trim_end_matches(&unit).parse::<f64>().unwrap_or(1.0);
        words[at] = match d.range(0, 7) {
            0 => format!("1{unit}"),
            1 => format!("2{unit}"),
            2 => format!("0{unit}"),
            3 => format!("{}{unit}", (digits * 1000.0) as u64),
            4 => format!("{}{unit}", (digits / 1000.0) as u64 + 1),
            5 => format!("{}{unit}", d.pick(&[255u64, 256, 65_535, 65_536, 1 << 31, (1 << 32) - 1])),
            6 => format!("{}{unit}", digits as u64 + 1),
            _ => format!("{}{unit}", (digits as u64).saturating_sub(1)),
        };
        setup[n] = words.join(" ");
        stretched = true;
    }
    if stretched {
        spec["setup"] = json!(setup);
        spec["drain_s"] = json!(DRAIN_S);
    }
}

/// Another device: other sizes while the qdiscs are made, tags of VLANs, size tables.
fn device(d: &mut Dice, spec: &mut Value) {
    let mut setup = lines(spec);
    match d.range(0, 3) {
        0 => {
            // The frames are as long as 1500 bytes allow; what is made before goes by the other length.
            setup.insert(
                0,
                format!("ip link set dev $DEV mtu {}", d.pick(&[68, 300, 576, 1280, 2000, 9000, 65_535])),
            );
            let at = d.range(1, setup.len() as u64) as usize;
            setup.insert(at, format!("ip link set dev $DEV mtu {}", d.pick(&[1500, 1500, 9000])));
        }
        1 => {
            let at = d.range(0, setup.len() as u64) as usize;
            setup
                .insert(at, format!("ip link set dev $DEV txqueuelen {}", d.pick(&[0, 1, 2, 5, 50, 10_000])));
        }
        2 if !setup.iter().any(|line| line.contains("clsact") || line.contains("ingress")) => {
            setup.push("qdisc add dev $DEV clsact".to_owned());
            setup.push(format!(
                "filter add dev $DEV egress protocol {} prio 1 matchall action vlan push id {} priority {}",
                d.pick(&["all", "ip", "ipv6"]),
                d.range(1, 4094),
                d.range(0, 7)
            ));
        }
        _ if spec["release"] == "none" => {
            let table = d.pick(&[
                "stab overhead 20 linklayer atm",
                "stab overhead -14 linklayer ethernet",
                "stab linklayer ethernet mpu 300 overhead 40",
                "stab mtu 1500 tsize 128 overhead -8 linklayer ethernet",
                "stab mtu 2047 tsize 512 mpu 64 overhead 44 linklayer atm",
                "stab tsize 16 overhead 4 linklayer adsl",
            ]);
            for line in setup.iter_mut().filter(|line| line.starts_with("qdisc add dev $DEV $PARENT handle "))
            {
                let (before, after) = line.split_once(": ").unwrap_or((line, ""));
                *line = format!("{before}: {table} {after}");
            }
        }
        _ => {}
    }
    spec["setup"] = json!(setup);
}

/// Whether a line speaks of the qdisc at the device's root.
fn at_the_root(spec: &Value, line: &str) -> bool {
    line.contains(" root ")
        || (line.contains("$PARENT") && !(spec["release"] == "link" || spec["release"] == "block"))
}

/// A qdisc of any simple kind.
fn simple(d: &mut Dice) -> String {
    match d.range(0, 9) {
        0 => "pfifo limit 1".to_owned(),
        1 => format!("pfifo limit {}", d.range(1, 20)),
        2 => format!("bfifo limit {}", d.scale(60, 20_000)),
        3 => "prio".to_owned(),
        4 => format!(
            "tbf rate {}kbit burst {} limit {}",
            d.scale(8, 8000),
            d.scale(1514, 9000),
            d.scale(1, 30_000)
        ),
        5 => "codel target 1ms interval 10ms".to_owned(),
        6 => format!("skbprio limit {}", d.range(1, 20)),
        7 => "red limit 40000 min 3000 max 3001 avpkt 1000 burst 5 bandwidth 1mbit".to_owned(),
        8 => format!("ets bands 3 strict {}", d.range(0, 3)),
        _ => format!("pfifo_head_drop limit {}", d.range(1, 9)),
    }
}

/// From this number on.
pub const SHOWN_FROM: u64 = 700_000;

/// Commands that show what is there.
fn showing(d: &mut Dice, setup: &[String]) -> Vec<String> {
    let has = |word: &str| setup.iter().any(|line| line.contains(word));
    // tc 6.1 prints some kinds as no JSON.
    let flags = d.pick(&["-s", "-s -d", "-d"]);
    let mut commands = vec![format!("{flags} qdisc show dev $DEV")];
    // Those of cake are numbered by dice.
    if has("class add") && !has("cake") {
        commands.push(format!("{} class show dev $DEV", d.pick(&["-s", "-s -d", "-d"])));
    }
    let filter = setup.iter().filter(|line| line.starts_with("filter add"));
    for line in filter {
        let mut words = line.split(' ').skip_while(|w| !matches!(*w, "parent" | "ingress" | "egress"));
        let place = match words.next() {
            Some("parent") => format!("parent {}", words.next().unwrap_or("1:")),
            Some(hook) => hook.to_owned(),
            None => continue,
        };
        commands.push(
            format!("{} filter show dev $DEV {place}", d.pick(&["-s", "-s -d", ""])).trim_start().to_owned(),
        );
    }
    commands.dedup();
    // As often as all others together, at most.
    commands.iter().flat_map(|c| vec![c.clone(); 2]).collect()
}

/// Commands among the packets.
fn weave(d: &mut Dice, spec: &mut Value, others: &[Value], shows: bool) {
    let own = lines(spec);
    let mut commands: Vec<String> = Vec::new();
    for other in others {
        commands.extend(lines(other).iter().filter_map(|line| midway::renewed(d, line)));
    }
    for line in &own {
        let Some((object, rest)) = line.split_once(" add ") else { continue };
        let root = at_the_root(spec, line);
        if !root {
            commands.extend(midway::removed(line));
            commands.push(line.clone());
        }
        commands.extend(midway::renewed(d, line));
        let words: Vec<&str> = rest.split(' ').collect();
        let word =
            |name: &str| words.iter().position(|w| *w == name).and_then(|at| words.get(at + 1).copied());
        match object {
            // The same kind, a newer one in its place under its own handle or another's, and what was below goes.
            "qdisc" if !root && !line.contains("clsact") && !line.contains("ingress") => {
                let at = if line.contains("$PARENT") {
                    "$PARENT".to_owned()
                } else {
                    format!("parent {}", word("parent").unwrap_or("1:1"))
                };
                commands.push(format!(
                    "qdisc replace dev $DEV {at} {rest_of}",
                    rest_of = rest.split_once("handle").map_or(String::new(), |r| format!("handle{}", r.1))
                ));
                commands.push(format!(
                    "qdisc replace dev $DEV {at} handle {:x}: {}",
                    d.range(0x700, 0x703),
                    simple(d)
                ));
                commands.push(format!("qdisc del dev $DEV {at}"));
                commands.push(format!(
                    "qdisc add dev $DEV {at} handle {:x}: {}",
                    d.range(0x704, 0x706),
                    simple(d)
                ));
            }
            "class" => {
                let id = word("classid").unwrap_or("1:1");
                commands.push(format!(
                    "qdisc replace dev $DEV parent {id} handle {:x}: {}",
                    d.range(0x710, 0x730),
                    simple(d)
                ));
                commands.push(format!("qdisc del dev $DEV parent {id}"));
                commands.push(format!("class replace {rest}"));
            }
            "filter" => {
                if let Some(parent) = word("parent") {
                    commands.push(format!("filter del dev $DEV parent {parent}"));
                }
            }
            _ => {}
        }
    }
    if shows {
        commands.extend(showing(d, &own));
    }
    commands.push(format!("ip link set dev $DEV txqueuelen {}", d.pick(&[1, 3, 100])));
    commands.push(format!("ip link set dev $DEV mtu {}", d.pick(&[1500, 9000])));
    let Some(packets) = spec["packets"].as_array_mut() else { return };
    let end = packets.iter().filter_map(|p| p["t_us"].as_f64()).fold(0.0, f64::max) as u64;
    let most = if d.chance(30) { 12 } else { 5 };
    for _ in 0..d.range(1, most) {
        let at = d.range(0, end + end / 4 + 100);
        let entry = json!({"t_us": at, "run": d.pick(&commands)});
        let place = d.range(0, packets.len() as u64) as usize;
        packets.insert(place, entry);
    }
}

#[cfg(test)]
mod tests {
    use super::super::kinds;
    use super::*;

    #[test]
    fn cases_from_there_on_are_wider_and_always_the_same() {
        let (mut below, mut amid, mut supers) = (0, 0, 0);
        for seed in FROM..FROM + 60 {
            let case = kinds::generate("fq_codel", seed).unwrap();
            assert_eq!(kinds::generate("fq_codel", seed), Some(case.clone()));
            let text = case.to_string();
            below += u32::from(text.contains("handle 7e0:"));
            amid += u32::from(text.contains("\"run\""));
            supers += u32::from(text.contains("gso_size"));
            assert!(applies(seed) || !text.contains("handle 7e0:"), "{text}");
        }
        assert!(below > 4 && amid > 20 && supers > 10, "{below} {amid} {supers}");
    }
}
