//! `[[test]]`: the load of one of flent's tests, by its name.
//!
//! What each test sends is that of flent 2.3.0 (its `tests` folder): which streams in which direction, with which marking and congestion
//! control, and what is measured beside them. Pings and probes go all the time (`TOTAL_LENGTH`), streams begin after `DELAY` and go on for
//! `LENGTH`. Flows have the names of flent's data series.
//! Differs: acknowledgements are not marked, where netperf marks both ends' packets; a UDP probe is irtt's, 60 bytes every 200 ms.

use super::Builder;
use super::link::tables;
use super::meter::code_point;
use super::read::{self, Faults, Table};
use super::source::{Place, meant};
use super::spec::{App, Flow};
use penstock_model::traffic::{Dist, Load, Sizes, TcpWishes};
use penstock_model::{Rate, Span};
use penstock_packet::dscp;

/// Distance of pings and probes (`STEP_SIZE`).
const STEP: Span = Span::from_ms(200);
/// Payload of irtt's packets, with all of its fields.
const IRTT: u32 = 60;
/// `DELAY`.
const DELAY: Span = Span::from_secs(5);
/// Most streams in each direction.
const MOST: u64 = 1000;

/// What a test does beside others.
#[derive(Clone, PartialEq, Debug)]
enum Does {
    /// A TCP stream to the server, and one from it.
    Up,
    Down,
    /// `ping`.
    Icmp,
    /// Datagrams that come back.
    Udp,
    /// Datagrams at a rate.
    Flood,
    /// A call: what is said, and what comes back.
    Voip,
    VoipBack,
}

/// One series of a test.
#[derive(Clone, PartialEq, Debug)]
struct Part {
    name: String,
    does: Does,
    /// Marking: `EF`, or a ToS byte.
    marking: &'static str,
    cc: Option<&'static str>,
    /// Which of the servers.
    host: usize,
    /// When a stream begins and for how long it goes on, in `DELAY`s; `None`: after one, for `LENGTH`.
    times: Option<(u32, Lasts)>,
}

/// How long a stream goes on.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Lasts {
    Length,
    Delay,
    LengthAndDelay,
}

/// How many streams a test has, where it is not in its name.
struct Wanted {
    up: u64,
    down: u64,
    hosts: Vec<String>,
}

fn part(does: Does, name: impl Into<String>, marking: &'static str) -> Part {
    Part { name: name.into(), does, marking, cc: None, host: 0, times: None }
}

/// Streams `TCP upload::1` and so on; one alone has no number where `alone` says so.
fn streams(does: Does, name: &str, count: u64) -> impl Iterator<Item = Part> {
    (1..=count).map(move |n| part(does.clone(), format!("{name}::{n}"), "CS0"))
}

const BE4: [&str; 4] = ["BE", "BE2", "BE3", "BE4"];

fn be_streams() -> Vec<Part> {
    let up = BE4.iter().map(|be| part(Does::Up, format!("TCP upload {be}"), "CS0"));
    let down = BE4.iter().map(|be| part(Does::Down, format!("TCP download {be}"), "CS0"));
    up.chain(down).collect()
}

/// UDP probes of these names and markings, and a ping.
fn probes(udp: &[(&str, &'static str)]) -> Vec<Part> {
    let probe =
        |&(name, marking): &(&str, &'static str)| part(Does::Udp, format!("Ping (ms) UDP {name}"), marking);
    udp.iter().map(probe).chain([part(Does::Icmp, "Ping (ms) ICMP", "CS0")]).collect()
}

const CLASSES: [(&str, &str); 3] = [("EF", "EF"), ("BK", "CS1"), ("BE", "CS0")];
const BE3: [(&str, &str); 3] = [("BE1", "CS0"), ("BE2", "CS0"), ("BE3", "CS0")];

/// Both directions of some streams.
fn both(of: &[(&str, &'static str)]) -> Vec<Part> {
    let up = of.iter().map(|&(name, marking)| part(Does::Up, format!("TCP upload {name}"), marking));
    let down = of.iter().map(|&(name, marking)| part(Does::Down, format!("TCP download {name}"), marking));
    up.chain(down).collect()
}

/// Two congestion controls against each other, as `cubic_bbr` has them.
fn duel(names: [(&str, &'static str); 2]) -> Vec<Part> {
    let mut all = Vec::new();
    for (does, what) in [(Does::Up, "upload"), (Does::Down, "download")] {
        for marking in ["CS0", "CS1"] {
            let class = if marking == "CS0" { "BE" } else { "CS1" };
            for (name, cc) in names {
                let one = part(does.clone(), format!("TCP {what} {name} {class}"), marking);
                all.push(Part { cc: Some(cc), ..one });
            }
        }
    }
    all.extend(probes(&[("BE", "CS0"), ("CS1", "CS1"), ("CS6", "CS6")]));
    all
}

/// Four congestion controls side by side, as `reno_cubic_westwood_lp` has them.
fn four_controls(fourth: (&str, &'static str)) -> Vec<Part> {
    let mut all = Vec::new();
    for (does, what) in [(Does::Up, "upload"), (Does::Down, "download")] {
        for (name, cc) in [("RENO", "reno"), ("WESTWOOD", "westwood"), ("CUBIC", "cubic"), fourth] {
            all.push(Part { cc: Some(cc), ..part(does.clone(), format!("TCP {what} {name}"), "CS0") });
        }
    }
    all.extend(probes(&CLASSES));
    all
}

/// The tests that make streams to several servers.
fn rtt_fair(labels: &[(&str, &'static str)], pings: &str, wanted: &Wanted, does: &[Does]) -> Vec<Part> {
    let mut all = Vec::new();
    for (at, host) in wanted.hosts.iter().enumerate() {
        let (label, marking) = labels.get(at).copied().unwrap_or(("BE", "CS0"));
        for does in does {
            let what = if *does == Does::Up { "upload" } else { "download" };
            all.push(Part { host: at, ..part(does.clone(), format!("TCP {what} {label} {host}"), marking) });
        }
        let number = if pings.is_empty() { String::new() } else { (at + 1).to_string() };
        all.push(Part { host: at, ..part(Does::Icmp, format!("Ping (ms) ICMP{number} {host}"), "CS0") });
    }
    all
}

/// What a test of this name sends; `None`: there is none of it here.
fn parts(test: &str, wanted: &Wanted) -> Option<Vec<Part>> {
    let ping = || part(Does::Icmp, "Ping (ms) ICMP", "CS0");
    let up = || part(Does::Up, "TCP upload", "CS0");
    let down = || part(Does::Down, "TCP download", "CS0");
    let voip = || vec![part(Does::Voip, "VoIP", "CS0"), part(Does::VoipBack, "VoIP back", "CS0")];
    let numbered = |suffix: &str| {
        let digits = test.strip_prefix("tcp_")?.strip_suffix(suffix)?;
        digits.parse::<u64>().ok().filter(|n| matches!(n, 2 | 4 | 6 | 8 | 12 | 50))
    };
    let four = [("BE1", "CS0"), ("BE2", "CS0"), ("BK1", "CS1"), ("BK2", "CS1")];
    let be: Vec<(String, &'static str)> = (1..=6).map(|n| (format!("BE{n}"), "CS0")).collect();
    let be: Vec<(&str, &'static str)> = be.iter().map(|(name, marking)| (name.as_str(), *marking)).collect();
    let either = [Does::Up, Does::Down];
    let mut made = match test {
        "rrul" => {
            [both(&[("BE", "CS0"), ("BK", "CS1"), ("CS5", "CS5"), ("EF", "EF")]), probes(&CLASSES)].concat()
        }
        "rrul_be" => [be_streams(), probes(&BE3)].concat(),
        "rrul_icmp" => [be_streams(), probes(&[])].concat(),
        "rrul_noclassification" => [be_streams(), probes(&CLASSES)].concat(),
        "rrul_up" => {
            let mut all = parts("rrul", wanted)?;
            all.retain(|p| p.does != Does::Down);
            all
        }
        "rrul_cs8" => {
            let names = ["CS0_BE", "CS1_BK", "CS2", "CS3", "CS4", "CS5", "CS6", "CS7"];
            let marks = ["CS0", "CS1", "CS2", "CS3", "CS4", "CS5", "CS6", "CS7"];
            let streams: Vec<(&str, &'static str)> = names.into_iter().zip(marks).collect();
            let probed: Vec<(&str, &'static str)> = streams
                .iter()
                .rev()
                .map(|s| {
                    if s.1 == "CS0" {
                        ("BE", "CS0")
                    } else if s.1 == "CS1" {
                        ("BK", "CS1")
                    } else {
                        *s
                    }
                })
                .collect();
            [both(&streams), probes(&probed)].concat()
        }
        "rrul_be_nflows" => {
            let up = streams(Does::Up, "TCP upload BE", wanted.up);
            let down = streams(Does::Down, "TCP download BE", wanted.down);
            up.chain(down).chain(probes(&[("BE", "CS0")])).collect()
        }
        "rrul_var" => {
            let mut all = Vec::new();
            for n in 1..=wanted.up {
                all.push(part(Does::Udp, format!("Ping (ms)::UDP {n} (CS0)"), "CS0"));
                all.push(part(Does::Up, format!("TCP upload::{n} (CS0)"), "CS0"));
                all.push(part(Does::Down, format!("TCP download::{n} (CS0)"), "CS0"));
            }
            all.push(part(Does::Icmp, "Ping (ms)::ICMP", "CS0"));
            all
        }
        "rrul_50_up" | "rrul_100_up" => {
            let many = streams(Does::Up, "TCP upload BE", if test == "rrul_50_up" { 50 } else { 100 });
            many.chain([part(Does::Down, "TCP download BE", "CS0")]).chain(probes(&BE3)).collect()
        }
        "rrul_50_down" => {
            let one = [part(Does::Up, "TCP upload BE", "CS0")].into_iter();
            one.chain(streams(Does::Down, "TCP download BE", 50)).chain(probes(&BE3)).collect()
        }
        "cubic_reno" => duel([("Cubic", "cubic"), ("Reno", "reno")]),
        "cubic_bbr" => duel([("Cubic", "cubic"), ("BBR", "bbr")]),
        "cubic_cdg" => duel([("Cubic", "cubic"), ("CDG", "cdg")]),
        "cubic_dctcp" => duel([("Cubic", "cubic"), ("dctcp", "dctcp")]),
        "cubic_ledbat" => duel([("Cubic", "cubic"), ("Ledbat", "ledbat")]),
        "cubic_westwood" => duel([("Cubic", "cubic"), ("Westwood", "westwood")]),
        "cubic_ledbat_1" | "ledbat_cubic_1" => {
            let stream = |cc| Part { cc: Some(cc), ..part(Does::Up, format!("TCP {cc}"), "CS0") };
            let order = if test == "cubic_ledbat_1" { ["cubic", "ledbat"] } else { ["ledbat", "cubic"] };
            order.map(stream).into_iter().chain([ping()]).collect()
        }
        "reno_cubic_westwood_cdg" => four_controls(("CDG", "cdg")),
        "reno_cubic_westwood_ledbat" => four_controls(("LEDBAT", "ledbat")),
        "reno_cubic_westwood_lp" => four_controls(("LP", "lp")),
        "rrul_torrent" => {
            let one_way = |does: Does, what: &str| {
                let torrents: Vec<Part> = streams(does.clone(), &format!("TCP {what} Torrent"), 6)
                    .map(|p| Part { cc: Some("ledbat"), marking: "CS1", ..p })
                    .collect();
                [torrents, vec![part(does, format!("TCP {what} BE"), "CS0")]].concat()
            };
            [one_way(Does::Up, "upload"), one_way(Does::Down, "download"), probes(&CLASSES)].concat()
        }
        "tcp_upload" => vec![up(), ping()],
        "tcp_download" => vec![down(), ping()],
        "tcp_bidirectional" => vec![down(), up(), ping()],
        "tcp_1up" => vec![up(), ping()],
        "tcp_1down" => vec![down(), ping()],
        "tcp_1up_noping" => {
            vec![Part { times: Some((0, Lasts::Length)), ..up() }]
        }
        "tcp_nup" => streams(Does::Up, "TCP upload", wanted.up).chain([ping()]).collect(),
        "tcp_ndown" => streams(Does::Down, "TCP download", wanted.down).chain([ping()]).collect(),
        "tcp_upload_1000" => streams(Does::Up, "TCP upload BE", 1000).chain(probes(&BE3)).collect(),
        "tcp_upload_prio" => {
            let prio = part(Does::Icmp, "Ping (ms) ICMP PRIO", "0x10");
            vec![up(), part(Does::Up, "TCP upload2", "CS0"), ping(), prio]
        }
        "tcp_2up_delay" => vec![
            Part { times: Some((0, Lasts::LengthAndDelay)), ..part(Does::Up, "TCP stream 1", "CS0") },
            part(Does::Up, "TCP stream 2", "CS0"),
        ],
        "tcp_2up_square" => {
            let stream = |name: &str, cc, from, lasts| Part {
                cc: Some(cc),
                times: Some((from, lasts)),
                ..part(Does::Up, name, "CS0")
            };
            vec![
                stream("TCP cubic", "cubic", 0, Lasts::Length),
                stream("TCP cubic 2", "cubic", 1, Lasts::Delay),
                stream("TCP reno", "reno", 3, Lasts::Delay),
                stream("TCP westwood", "westwood", 5, Lasts::Delay),
            ]
        }
        "tcp_4up_squarewave" => {
            let stream = |name: &str, cc, from| Part {
                cc: Some(cc),
                times: Some((from, Lasts::Length)),
                ..part(Does::Up, name, "CS0")
            };
            vec![
                stream("TCP bbr 1", "bbr", 0),
                stream("TCP cubic 2", "cubic", 1),
                stream("TCP cubic 3", "cubic", 5),
                stream("TCP bbr 4", "bbr", 3),
            ]
        }
        "rtt_fair" => rtt_fair(&four, "n", wanted, &either),
        "rtt_fair4be" | "rtt_fair6be" => rtt_fair(&be, "n", wanted, &either),
        "rtt_fair_up" => rtt_fair(&four, "n", wanted, &[Does::Up]),
        "rtt_fair_var" => rtt_fair(&[], "", wanted, &either),
        "rtt_fair_var_up" => rtt_fair(&[], "", wanted, &[Does::Up]),
        "rtt_fair_var_down" => rtt_fair(&[], "", wanted, &[Does::Down]),
        "voip" => voip(),
        "voip-1up" => [voip(), vec![up()]].concat(),
        "voip-rrul" => [parts("rrul_be", wanted)?, voip()].concat(),
        "ping" => vec![ping(), part(Does::Udp, "Ping (ms) UDP", "CS0")],
        "udp_flood" => vec![part(Does::Flood, "UDP upload", "CS0"), ping()],
        _ => match (numbered("up"), numbered("down")) {
            (Some(n), _) => streams(Does::Up, "TCP upload", n).chain([ping()]).collect(),
            (_, Some(n)) => streams(Does::Down, "TCP download", n).chain([ping()]).collect(),
            _ => return None,
        },
    };
    if test == "ping" || test == "voip" {
        made.iter_mut().for_each(|p| p.times = Some((0, Lasts::Length)));
    }
    Some(made)
}

/// The tests that are here, and those of flent's that are not, with why.
pub const TESTS: [&str; 56] = [
    "cubic_bbr",
    "cubic_cdg",
    "cubic_dctcp",
    "cubic_ledbat",
    "cubic_ledbat_1",
    "cubic_reno",
    "cubic_westwood",
    "ledbat_cubic_1",
    "ping",
    "reno_cubic_westwood_cdg",
    "reno_cubic_westwood_ledbat",
    "reno_cubic_westwood_lp",
    "rrul",
    "rrul_100_up",
    "rrul_50_down",
    "rrul_50_up",
    "rrul_be",
    "rrul_be_nflows",
    "rrul_cs8",
    "rrul_icmp",
    "rrul_noclassification",
    "rrul_torrent",
    "rrul_up",
    "rrul_var",
    "rtt_fair",
    "rtt_fair4be",
    "rtt_fair6be",
    "rtt_fair_up",
    "rtt_fair_var",
    "rtt_fair_var_down",
    "rtt_fair_var_up",
    "tcp_12down",
    "tcp_12up",
    "tcp_1down",
    "tcp_1up",
    "tcp_1up_noping",
    "tcp_2down",
    "tcp_2up",
    "tcp_2up_delay",
    "tcp_2up_square",
    "tcp_4down",
    "tcp_4up",
    "tcp_4up_squarewave",
    "tcp_50up",
    "tcp_6down",
    "tcp_6up",
    "tcp_8down",
    "tcp_8up",
    "tcp_bidirectional",
    "tcp_download",
    "tcp_ndown",
    "tcp_nup",
    "tcp_upload",
    "tcp_upload_1000",
    "tcp_upload_prio",
    "udp_flood",
];

/// The tests that need a call.
pub const CALLS: [&str; 3] = ["voip", "voip-1up", "voip-rrul"];

/// Tests of flent's that are not here, and why.
pub const NOT_HERE: [(&[&str], &str); 6] = [
    (
        &["http", "http-1down", "http-1up", "http-rrul", "dashtest", "mqtt_read"],
        "its client is a program that is not simulated; [[flow]] with load = { pages = … } is web traffic",
    ),
    (&["sctp_vs_tcp"], "there is no SCTP"),
    (
        &["bursts", "bursts_11e", "iterated_bidirectional", "tcp_2up_square_westwood"],
        "write its streams as [[flow]]s",
    ),
    (
        &["rrul46", "rrul46compete"],
        "a test is of one family: write two [[test]]s with rrul, one between hosts that have IPv6 alone",
    ),
    (
        &["cpu_stress", "power_usage", "command-output", "qdisc-stats"],
        "it measures the machine it runs on; the record has the counters of every qdisc",
    ),
    (
        &[
            "cisco_5tcpup",
            "cisco_5tcpup_2udpflood",
            "dslreports_8dn",
            "rrul_be_iperf",
            "rrul_prio",
            "rtt_fair_var_mixed",
            "udp_flood_var_up",
            "udp_flood_var_up_stagger",
        ],
        "write it as several [[test]]s or [[flow]]s",
    ),
];

/// A `[[test]]` as the file has it.
pub(super) struct Draft {
    run: String,
    place: Place,
    run_place: Place,
    from: String,
    to: Vec<String>,
    length: Option<Span>,
    delay: Option<Span>,
    streams: Option<u64>,
    cc: Option<String>,
    rate: Option<Rate>,
    marking: Option<u8>,
    at: Span,
    name: Option<String>,
}

impl Builder<'_> {
    pub(super) fn read_tests(&mut self, root: &mut Table<'_>, faults: &mut Faults<'_>) {
        for mut table in tables(root, "test", "run = \"rrul\", from = \"a\", to = \"b\"", faults) {
            let place = faults.place(table.span());
            let run = table.need("run", "run = \"rrul\"", faults);
            let run = run.and_then(|v| Some((read::string("run", v, faults)?, faults.place(v.span()))));
            let from =
                table.need("from", "from = \"a\"", faults).and_then(|v| read::string("from", v, faults));
            let to = table.need("to", "to = \"b\"", faults).map_or(Vec::new(), |v| {
                read::list(v).into_iter().filter_map(|v| read::string("to", v, faults)).collect()
            });
            let mut time = |key: &'static str| table.take(key).and_then(|v| read::time(key, v, faults));
            let (length, delay, at) = (time("length"), time("delay"), time("at"));
            let streams =
                table.take("streams").and_then(|v| read::integer("streams", v, 1..MOST + 1, faults));
            let cc = table.take("cc").and_then(|v| read::string("cc", v, faults));
            let rate = table.take("rate").and_then(|v| read::rate("rate", v, faults));
            let marking = table.take("dscp").and_then(|v| code_point("dscp", v, faults));
            let name = table.take("name").and_then(|v| read::string("name", v, faults));
            table.finish(faults);
            let (Some((run, run_place)), Some(from)) = (run, from) else { continue };
            let at = at.unwrap_or_default();
            self.tests.push(Draft {
                run,
                place,
                run_place,
                from,
                to,
                length,
                delay,
                streams,
                cc,
                rate,
                marking,
                at,
                name,
            });
        }
    }

    /// Makes flows and apps of them.
    pub(super) fn finish_tests(&mut self) {
        let several = self.tests.len() > 1;
        if let ([only], true) = (&self.tests[..], self.apps.is_empty() && self.experiment.flows.is_empty()) {
            self.experiment.test = Some(only.run.clone());
        }
        for (draft, n) in std::mem::take(&mut self.tests).into_iter().zip(1..) {
            // Two of the same name have names of their own.
            let prefix = match &draft.name {
                Some(name) => format!("{name} "),
                None if several => format!("{} {n} ", draft.run),
                None => String::new(),
            };
            self.finish_test(&draft, &prefix);
        }
    }

    fn finish_test(&mut self, draft: &Draft, prefix: &str) {
        let hosts = [&draft.from].into_iter().chain(&draft.to);
        if !hosts.map(|host| self.has_host(host, &draft.place)).fold(true, |a, b| a & b) {
            return;
        }
        let wanted = Wanted {
            up: draft.streams.unwrap_or(1),
            down: draft.streams.unwrap_or(1),
            hosts: draft.to.clone(),
        };
        let Some(parts) = parts(&draft.run, &wanted) else {
            let not = NOT_HERE.iter().find(|(names, _)| names.contains(&draft.run.as_str()));
            let all: Vec<&str> = TESTS.into_iter().chain(CALLS).collect();
            let (message, help) = match (not, meant(&draft.run, &all)) {
                (Some((_, why)), _) => {
                    (format!("flent's test \"{}\" is not here", draft.run), (*why).to_owned())
                }
                (None, Some(near)) => {
                    (format!("flent has no test \"{}\"", draft.run), format!("did you mean \"{near}\"?"))
                }
                (None, None) => {
                    (format!("flent has no test \"{}\"", draft.run), "docs/programs.md lists them".to_owned())
                }
            };
            self.fault(&draft.run_place.clone(), message, help);
            return;
        };
        let servers = match draft.run.as_str() {
            "rtt_fair" | "rtt_fair4be" | "rtt_fair_up" => 4..=4,
            "rtt_fair6be" => 6..=6,
            run if run.starts_with("rtt_fair") => 1..=100,
            _ => 1..=1,
        };
        if !servers.contains(&draft.to.len()) {
            let few = servers.start();
            let message = format!("{} has {} servers, not {few}", draft.run, draft.to.len());
            let names: Vec<String> = (0..*few).map(|n| format!("\"s{}\"", n + 1)).collect();
            let help = match *few {
                1 => "write to = \"b\"".to_owned(),
                _ => format!("write to = [{}]", names.join(", ")),
            };
            self.fault(&draft.place.clone(), message, help);
            return;
        }
        let left = self.experiment.duration - draft.at;
        let tenth = Span::from_ns(left.as_ns().max(0) / 10);
        let delay = draft.delay.unwrap_or(DELAY.min(tenth));
        let rest = Span::from_ns((left.as_ns() - 2 * delay.as_ns()).max(0));
        let length = draft.length.unwrap_or(rest);
        if length == Span::ZERO || draft.at + delay + length > self.experiment.duration {
            let message = format!("{} does not fit into the run", draft.run);
            let help = format!(
                "it needs delay, length and delay again, at least; duration is {}",
                self.experiment.duration
            );
            self.fault(&draft.place.clone(), message, help);
            return;
        }
        for part in parts {
            self.test_part(draft, &part, prefix, (delay, length));
        }
    }

    fn test_part(&mut self, draft: &Draft, part: &Part, prefix: &str, (delay, length): (Span, Span)) {
        let name = format!("{prefix}{}", part.name);
        let tos = match part.marking.strip_prefix("0x") {
            Some(hex) => u8::from_str_radix(hex, 16).unwrap_or(0),
            None => dscp::parse(part.marking).unwrap_or(0) << 2,
        };
        let tos = draft.marking.map_or(tos, |dscp| dscp << 2);
        let server = draft.to[part.host].clone();
        let whole = Span::from_ns(length.as_ns() + 2 * delay.as_ns());
        let times = |n: u32| Span::from_ns(delay.as_ns() * i64::from(n));
        let measures = matches!(part.does, Does::Icmp | Does::Udp | Does::Voip | Does::VoipBack);
        let (begins, lasts) = match part.times {
            Some((n, Lasts::Length)) => (times(n), length),
            Some((n, Lasts::Delay)) => (times(n), delay),
            Some((n, Lasts::LengthAndDelay)) => (times(n), length + delay),
            None if measures => (Span::ZERO, whole),
            None => (delay, length),
        };
        let at = draft.at + begins;
        let until = (at + lasts).min(self.experiment.duration);
        if part.does == Does::Icmp {
            let seconds = (until - at).as_ns() / 1_000_000_000;
            let mark = if tos == 0 { String::new() } else { format!(" -Q {tos}") };
            let run = format!("ping -n -D -i 0.20{mark} -w {} {server}", seconds.max(1));
            let (place, run_place) = (draft.place.clone(), draft.run_place.clone());
            let on = draft.from.clone();
            self.apps.push(super::traffic::AppDraft::named(
                App { name, place, run_place, on, run, ..App::default() },
                at,
            ));
            return;
        }
        let (from, to) = match part.does {
            Does::Down | Does::VoipBack => (server, draft.from.clone()),
            _ => (draft.from.clone(), server),
        };
        let tcp = matches!(part.does, Does::Up | Does::Down);
        let wishes =
            TcpWishes { cc: part.cc.map(str::to_owned).or_else(|| draft.cc.clone()), ..TcpWishes::default() };
        let (group, load) = match part.does {
            Does::Up => ("upload", Load::Greedy),
            Does::Down => ("download", Load::Greedy),
            Does::Udp => ("ping", Load::Echo { size: Sizes::Constant(IRTT), gap: Dist::Constant(STEP) }),
            Does::Flood => {
                let rate = draft.rate.unwrap_or(Rate::from_bit_per_s(100_000_000));
                ("flood", Load::steady(rate, 1470))
            }
            // G.711: irtt sends 172 bytes every 20 ms, and as much comes back.
            Does::Voip | Does::VoipBack | Does::Icmp => {
                ("call", Load::Packets { size: Sizes::Constant(172), gap: Dist::Constant(Span::from_ms(20)) })
            }
        };
        self.experiment.flows.push(Flow {
            name,
            place: draft.place.clone(),
            group: Some(format!("{prefix}{group}")),
            from,
            to,
            ipv6: false,
            count: 1,
            tcp: tcp.then_some(wishes),
            load,
            at: (at, at),
            until: Some(until),
            tos,
            mark: 0,
            port: 0,
            drift_ppm: 0,
            jitter: Span::ZERO,
            trace: false,
            txtime: None,
        });
    }
}
