//! What iperf 2.2.1 printed over a line of 20 Mbit/s (`vectors/iperf2`), and what is printed here.
//!
//! Rows: of the same numbers the same bytes. What a row rounds (bytes, the end of the interval, mean delays) is searched among what can be meant.
//! Everything else: the simulated program's lines have the same words in the same order.

use super::rows::{Form, More, Spread, Stats, Tcp, Who, day_and_time};
use crate::AppId;
use crate::spec::Iperf;
use penstock_model::{Rate, Span, Time};
use std::path::Path;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/iperf2").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All numbers of a text.
fn numbers(text: &str) -> Vec<f64> {
    let number = |c: char| c.is_ascii_digit() || c == '.';
    let words = text.split(|c| !number(c)).filter(|w| w.contains(|c: char| c.is_ascii_digit()));
    words.map(|w| w.trim_end_matches('.').parse().unwrap()).collect()
}

/// The size of the last place that is printed of a number.
fn step(number: &str) -> f64 {
    0.1f64.powi(number.split_once('.').map_or(0, |(_, f)| f.len() as i32))
}

fn unit(word: &str) -> f64 {
    1024f64.powi("BKMG".find(&word[..1]).unwrap() as i32)
}

/// Of whom a row tells: a number, a sum of so many, or a server's.
fn who<'a>(id: &str, relay: bool) -> Who<'a> {
    match (id.parse(), relay) {
        (Ok(id), false) => Who::One(id, ""),
        (Ok(id), true) => Who::Relay(id),
        (Err(_), _) => Who::Sum(numbers(id).first().map_or(2, |n| *n as u32), ""),
    }
}

fn span(seconds: f64) -> Span {
    Span::from_ns((seconds * 1e9).round() as i64)
}

/// A row as `form` prints it, for whatever numbers can be meant; `None` where none of them give it.
fn reprinted(form: &Form, row: &str, relay: bool) -> Option<String> {
    let (id, rest) = row[1..].split_once("] ").unwrap();
    let who = who(id.trim(), relay);
    let words: Vec<&str> = rest.split_whitespace().collect();
    let (start, end) = words[0].split_once('-').unwrap();
    let (start, end): (f64, f64) = (start.parse().unwrap(), end.parse().unwrap());
    let (shown, scale) = (words[2].parse::<f64>().unwrap(), unit(words[3]));
    let n = numbers(&words[6..].join(" "));
    let at = |i: usize| n.get(i).copied().unwrap_or(0.0);
    let count = |i: usize| at(i) as u64;
    let mut s = Stats { start: span(start), ..Stats::default() };
    let mut more = More { packets: 1, ..More::default() };
    let mut mean = None;
    match (who, form.enhanced, form.udp, form.server || relay) {
        (Who::Sum(..), false, true, true) => (s.errors, s.datagrams) = (count(0), count(1)),
        (_, false, true, true) => (s.jitter, s.errors, s.datagrams) = (at(0) / 1e3, count(1), count(2)),
        (_, false, ..) => {}
        (_, true, true, true) => {
            (s.jitter, s.errors, s.datagrams) = (at(0) / 1e3, count(1), count(2));
            mean = Some([at(5) / 1e3, at(6) / 1e3, at(7) / 1e3]);
            more.pps = at(8);
            (more.calls, more.packets) = (count(9), count(9));
        }
        (_, true, true, false) => {
            (more.calls, more.errors) = (count(0), count(1));
            more.pps = if words.contains(&"-0") { -0.0 } else { at(3) };
        }
        (_, true, false, true) => {
            more.calls = count(0);
            more.bins.iter_mut().zip(&n[1..]).for_each(|(bin, n)| *bin = *n as u32);
        }
        (_, true, false, false) => {
            (more.calls, more.errors) = (count(0), count(1));
            let (flying, cwnd, rtt_us, rttvar_us) = (count(4), count(6), count(7), count(8));
            more.tcp = Tcp { retries: count(2), flying, cwnd, mss: 1448, rtt_us, rttvar_us };
        }
    }
    if form.enhanced && form.udp && (form.server || relay) && words.contains(&"-0") {
        more.pps = -0.0;
    }
    let tries = |n: i32, place: f64| (-n..=n).map(move |k| f64::from(k) * place / (2 * n) as f64);
    for off in tries(20, step(words[2])) {
        s.bytes = ((shown + off) * scale).round().max(0.0) as u64;
        // Throughput over delay may have more places than all else: then it tells how long the interval was.
        let power = (more.tcp.rtt_us > 0).then(|| at(9)).filter(|power| *power > 0.0);
        let long = power.map(|power| start + s.bytes as f64 / (more.tcp.rtt_us as f64 * power));
        let exact =
            (words[5] == "Bytes/sec").then(|| start + s.bytes as f64 / words[4].parse::<f64>().unwrap());
        let long = [long, exact].into_iter().flatten().filter(|long| (long - end).abs() < 0.006);
        for end in tries(20, 0.01).map(|off| end + off).chain(long) {
            s.end = span(end.max(0.0));
            // And of datagrams it tells the mean delay.
            let power = words.last().and_then(|word| word.parse::<f64>().ok()).filter(|_| mean.is_some());
            let told = power.map(|power| 1e-6 * s.bytes as f64 / (end - start) / power - at(4) / 1e3);
            let told = told.filter(|off| off.abs() < 0.6e-6);
            for off in tries(if mean.is_some() { 10 } else { 1 }, 1e-6).chain(told) {
                s.more = more;
                if let Some([min, max, deviation]) = mean {
                    let all = 1000;
                    let sum = (at(4) / 1e3 + off) * f64::from(all);
                    s.more.transit = Spread::of(1000, [sum, min, max, deviation]);
                }
                let mut text = String::new();
                form.clone().row(who, &s, &mut text);
                if text.ends_with(&format!("{row}\n")) {
                    return Some(text);
                }
            }
        }
    }
    None
}

const TEXTS: [&str; 20] = [
    "tcp-i",
    "tcp-e",
    "tcp-e0",
    "tcp-P",
    "tcp-Pe",
    "tcp-f",
    "tcp-ef",
    "tcp-C",
    "tcp-n2",
    "tcp-m",
    "tcp-w",
    "tcp-b",
    "udp-i",
    "udp-e",
    "udp-e0",
    "udp-e3",
    "udp-losse",
    "udp-P",
    "udp-f",
    "refused",
];

#[test]
fn rows_are_those_of_the_real_one_to_the_byte() {
    let mut rows = 0;
    for name in TEXTS {
        for end in ["client", "server"] {
            if (name, end) == ("refused", "server") {
                continue;
            }
            let text = file(&format!("{name}.{end}"));
            let enhanced = text.contains("Write/Err") || text.contains("Reads=") || text.contains("Latency");
            let format = if text.contains("Bytes/sec") { 'B' } else { 'a' };
            let format = if name == "tcp-w" && end == "client" { 'm' } else { format };
            let (udp, server) = (name.starts_with("udp"), end == "server");
            let heads = Vec::new();
            let mut form = Form { enhanced, csv: false, udp, server, format, heads };
            let (mut head, mut relay) = (String::new(), false);
            for line in text.lines() {
                if line.ends_with("Server Report:") {
                    relay = true;
                    form.heads.clear();
                } else if line.starts_with("[ ID]") || line.starts_with("[SUM-cnt]") {
                    head = format!("{line}\n");
                } else if line.contains(" sec  ") {
                    let printed = reprinted(&form, line, relay)
                        .unwrap_or_else(|| panic!("{name}.{end}: nothing gives {line}"));
                    assert_eq!(printed, format!("{head}{line}\n"), "{name}.{end}");
                    for line in head.lines() {
                        let known = super::rows::HEADS.iter().find(|h| h.trim_end() == line);
                        form.heads.push(known.unwrap_or_else(|| panic!("{name}: {line}")));
                    }
                    head.clear();
                    rows += 1;
                }
            }
            assert_eq!(head, "", "{name}.{end}");
        }
    }
    assert!(rows > 150, "{rows}");
}

#[test]
fn csv_is_that_of_the_real_one_to_the_byte() {
    let mut rows = 0;
    for name in
        ["tcp-y.client", "tcp-y.server", "tcp-Py.client", "tcp-Py.server", "udp-y.server", "udp-y.client"]
    {
        let text = file(name);
        for line in text.lines().filter(|l| !l.contains("nan")) {
            let fields: Vec<&str> = line.split(',').collect();
            let (udp, server) = (name.starts_with("udp"), name.ends_with("server"));
            let heads = Vec::new();
            let mut form = Form { enhanced: false, csv: true, udp, server, format: 'a', heads };
            let ends = fields[1..5].join(",");
            let who = match fields[5].parse() {
                Ok(id) => Who::One(id, &ends),
                Err(_) => Who::Sum(2, &ends),
            };
            let (start, end) = fields[6].split_once('-').unwrap();
            let (start, end): (f64, f64) = (start.parse().unwrap(), end.parse().unwrap());
            let (bytes, rate): (u64, f64) = (fields[7].parse().unwrap(), fields[8].parse().unwrap());
            // The rate tells how long it took.
            let took = bytes as f64 * 8.0 / (rate + 0.5);
            let n = |i: usize| fields.get(i).map_or(0.0, |f| f.parse::<f64>().unwrap());
            let datagrams = n(11) as u64;
            let day: Vec<i64> = (6..=12).step_by(2).map(|i| fields[0][i..i + 2].parse().unwrap()).collect();
            // Of days behind the 1st of January those of November and their time of the day.
            let at = (304 + day[0] - 1) * 86_400 + day[1] * 3600 + day[2] * 60 + day[3];
            let more = More { packets: datagrams, at_ns: at * 1_000_000_000, ..More::default() };
            let s = Stats {
                start: span(start),
                end: span(start + took),
                bytes,
                jitter: n(9) / 1e3,
                errors: n(10) as u64,
                datagrams,
                out_of_order: n(13) as u64,
                more,
            };
            assert!((start + took - end).abs() < 0.051, "{line}");
            let mut printed = String::new();
            form.row(who, &s, &mut printed);
            assert_eq!(printed, format!("{line}\n"), "{name}");
            rows += 1;
        }
    }
    assert!(rows > 40, "{rows}");
}

/// A line without its numbers and the names of hosts' devices: what is left is the form.
fn form(line: &str) -> String {
    let line = line.replace("%pa0", "%eth0").replace("%pb0", "%eth0").replace("KByte", "MByte");
    let line =
        line.replace("Kbit", "Mbit").replace(" bbr", " CC").replace(" reno", " CC").replace(" cubic", " CC");
    let number = |c: char| c.is_ascii_digit() || c == '.';
    let mut text = String::new();
    for c in line.chars() {
        let c = if number(c) { '#' } else { c };
        if !(matches!(c, ' ' | '#') && text.ends_with(c)) {
            text.push(c);
        }
    }
    text.replace("[ #", "[#")
}

/// The lines that are not rows, and one of each kind of row, in the order in which they first come.
fn forms(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for line in text.lines().map(form) {
        if !all.contains(&line) {
            all.push(line);
        }
    }
    all
}

/// What both print here, over the same line.
fn run(server: &str, client: &str) -> [String; 2] {
    let (mut world, a, b) = crate::tests::pair(1, Some(Rate::from_bit_per_s(20_000_000)), Span::from_us(10));
    for host in [a, b] {
        world.set_iperf(host, Iperf::V2_2);
    }
    let server = world.add_app(b, &format!("iperf -s {server}"), Time::ZERO);
    let client = world.add_app(a, &format!("iperf -c 10.0.0.2 {client}"), Time::from_ns(1_000_000_000));
    let results = world.run(Time::from_ns(20_000_000_000));
    [client, server].map(|AppId(id)| results.apps[id as usize].output.clone())
}

#[test]
fn outputs_have_the_form_of_the_real_one() {
    for (name, server, client) in [
        ("tcp-i", "-i 1", "-t 3 -i 1"),
        ("tcp-e", "-e -i 1", "-t 3 -i 1 -e"),
        ("tcp-e0", "-e", "-t 2 -e"),
        ("tcp-P", "-i 1", "-t 3 -i 1 -P 2"),
        ("tcp-Pe", "-e -i 1", "-t 3 -i 1 -P 2 -e"),
        ("tcp-y", "-y C", "-t 3 -i 1 -y C"),
        ("tcp-f", "-i 1 -f B", "-t 3 -i 1 -f B"),
        ("tcp-b", "-i 1", "-t 3 -i 1 -b 5m"),
        ("tcp-n2", "-i 0.5", "-n 1M -i 0.5"),
        ("tcp-m", "", "-t 2 -m"),
        ("udp-i", "-u -i 1", "-u -t 3 -i 1 -b 5m"),
        ("udp-e", "-u -e -i 1", "-u -t 3 -i 1 -b 5m -e"),
        ("udp-e0", "-u -e", "-u -t 2 -b 4m -e"),
        ("udp-e3", "-u -e -i 1 -l 500", "-u -t 2.5 -i 1 -b 30m -e -l 500"),
        ("udp-f", "-u -i 1 -f B", "-u -t 3 -i 1 -b 4m -f B"),
    ] {
        for (here, end) in run(server, client).iter().zip(["client", "server"]) {
            let real = file(&format!("{name}.{end}")).replace("-nan,#,-#,-#", "#,#,#,#");
            assert_eq!(forms(here), forms(&real), "{name}.{end}:\n{here}\n{real}");
        }
    }
}

#[test]
fn what_is_not_there_is_said_so() {
    let said = |line: &str| {
        let (mut world, a, _) = crate::tests::pair(1, None, Span::ZERO);
        world.set_iperf(a, Iperf::V2_2);
        let app = world.add_app(a, line, Time::ZERO);
        let results = world.run(Time::from_ns(5_000_000_000));
        (results.apps[app.0 as usize].output.clone(), results.apps[app.0 as usize].exit)
    };
    for (option, words) in [
        ("-R", "-R is not simulated: run the client on the other host"),
        ("--trip-times", "--trip-times is not simulated: ping measures"),
        ("--bounceback", "--bounceback is not simulated: [[flow]]"),
        ("-x C", "-x is not simulated"),
    ] {
        let (text, exit) = said(&format!("iperf -c 10.0.0.2 {option}"));
        assert!(text.contains(words) && exit == Some(1), "{text}");
    }
    let (text, exit) = said("iperf -c 10.0.0.2 -t 1");
    let real = file("refused.client");
    assert_eq!((forms(&text), exit), (forms(&real), Some(1)), "{text}");
    assert_eq!(said("iperf -v").0, "iperf version 2.2.1 (4 Nov 2024) pthreads\n");
    assert!(day_and_time(61_077_000_000, true).starts_with("2026-01-01 00:01:01.077 (UTC)"));
}
