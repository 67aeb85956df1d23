//! Packets over links, by the nanosecond.

use super::*;

const MS: i64 = 1_000_000;

fn at(ns: i64) -> Time {
    Time::from_ns(ns)
}

/// A datagram of a flow, 1000 bytes as a frame.
fn udp(flow: u16) -> Meta {
    let from = std::net::SocketAddr::from(([10, 0, 0, 1], flow));
    Meta::udp(from, "10.0.0.2:9".parse().unwrap(), 1000 - 42, 2)
}

fn link(settings: Settings, tc: &[&str]) -> Link<u64> {
    let mut link = Link::new(&settings);
    for command in tc {
        link.tc(Time::ZERO, command).unwrap_or_else(|e| panic!("{e}"));
    }
    link
}

/// Everything that arrives, each at the moment the link names.
fn run(link: &mut Link<u64>) -> Vec<(u64, i64)> {
    let mut all = Vec::new();
    while let Some(wake) = link.next_wake() {
        while let Some(arrival) = link.dequeue(wake) {
            assert!(arrival.at <= wake);
            all.push((arrival.data, arrival.at.as_ns()));
        }
        if link.qlen() == 0 && link.line.is_empty() {
            break;
        }
    }
    all
}

#[test]
fn frames_take_their_time_on_the_line() {
    let settings =
        Settings { rate: Some(rate("8mbit").unwrap()), delay: Span::from_ms(5), ..Settings::default() };
    let mut line = link(settings, &["qdisc add dev eth0 root pfifo limit 3"]);
    // The first goes to the card at once, three wait, the fifth is dropped.
    let taken: Vec<bool> = (0..5).map(|n| line.enqueue(at(0), udp(1), n)).collect();
    assert_eq!(taken, [true, true, true, true, false]);
    assert_eq!(line.dropped(), Some((4, "overlimit")));
    assert_eq!(line.next_wake(), Some(at(MS)));
    assert_eq!(run(&mut line), [(0, 6 * MS), (1, 7 * MS), (2, 8 * MS), (3, 9 * MS)]);
    assert_eq!((line.next_wake(), line.lost_packets()), (None, 1));
}

#[test]
fn a_qdisc_s_own_timer_lets_packets_go() {
    // The bucket holds two; then one a millisecond: the numbers of penstock-sched's example.
    let mut line =
        link(Settings::default(), &["tc qdisc add dev eth0 root tbf rate 8mbit burst 2000 limit 10000"]);
    assert!((0..5).all(|n| line.enqueue(at(0), udp(1), n)));
    assert_eq!(run(&mut line), [(0, 0), (1, 0), (2, MS), (3, 2 * MS), (4, 3 * MS)]);
}

#[test]
fn who_calls_late_learns_what_happened_in_between() {
    let settings =
        || Settings { rate: Some(rate("8mbit").unwrap()), delay: Span::from_ms(1), ..Settings::default() };
    let tc = ["qdisc add dev eth0 root fq_codel limit 50"];
    let (mut early, mut late) = (link(settings(), &tc), link(settings(), &tc));
    let mut seen = Vec::new();
    for n in 0..300u64 {
        let now = at(n as i64 * MS / 2);
        while let Some(wake) = early.next_wake().filter(|w| *w <= now) {
            while let Some(arrival) = early.dequeue(wake) {
                seen.push(arrival);
            }
        }
        early.enqueue(now, udp(n as u16 % 3), n);
        late.enqueue(now, udp(n as u16 % 3), n);
    }
    let end = at(1000 * MS);
    seen.extend(std::iter::from_fn(|| early.dequeue(end)));
    let at_once: Vec<Arrival<u64>> = std::iter::from_fn(|| late.dequeue(end)).collect();
    assert_eq!(seen, at_once);
    assert!(seen.len() < 300 && early.lost_packets() == 300 - seen.len() as u64);
    let shown = early.tc(end, "-s qdisc show dev eth0").unwrap();
    assert_eq!(shown, late.tc(end, "-s qdisc show dev eth0").unwrap());
    assert!(shown.starts_with("qdisc fq_codel 8001: root refcnt 2 limit 50p"), "{shown}");
}

#[test]
fn codel_marks_what_it_would_drop() {
    let settings = Settings { rate: Some(rate("8mbit").unwrap()), ..Settings::default() };
    let mut line = link(settings, &["qdisc add dev eth0 root codel limit 1000 ecn"]);
    let mut marked = 0;
    for n in 0..2000u64 {
        let now = at(n as i64 * MS / 2);
        line.enqueue(now, udp(1), n);
        marked += std::iter::from_fn(|| line.dequeue(now)).filter(|a| a.tos & 3 == 3).count();
    }
    assert!(marked > 5, "{marked}");
}

#[test]
fn classes_and_filters_are_tc_s() {
    let tc = [
        "qdisc add dev eth0 root handle 1: prio bands 3",
        "filter add dev eth0 parent 1: protocol ip u32 match ip sport 7 0xffff flowid 1:1",
        "filter add dev eth0 parent 1: protocol ip u32 match ip sport 8 0xffff flowid 1:3",
    ];
    let settings = Settings { rate: Some(rate("8mbit").unwrap()), ..Settings::default() };
    let mut line = link(settings, &tc);
    for (n, flow) in [8, 8, 8, 7, 7].into_iter().enumerate() {
        line.enqueue(at(0), udp(flow), n as u64);
    }
    let order: Vec<u64> = run(&mut line).into_iter().map(|a| a.0).collect();
    assert_eq!(order, [0, 3, 4, 1, 2]);
    let shown = line.tc(at(9 * MS), "class show dev eth0").unwrap();
    assert_eq!(shown.lines().next(), Some("class prio 1:1 parent 1: "), "{shown}");
}

#[test]
fn netem_doubles_and_the_line_loses() {
    let mut double = link(Settings::default(), &["qdisc add dev eth0 root netem duplicate 100%"]);
    assert!(double.enqueue(at(0), udp(1), 7));
    assert_eq!(run(&mut double), [(7, 0), (7, 0)]);
    // The place is free again, once.
    double.enqueue(at(5), udp(1), 8);
    assert_eq!(run(&mut double), [(8, 5), (8, 5)]);
    let lossy = || {
        let mut line = link(Settings { loss_ppb: 250_000_000, ..Settings::default() }, &[]);
        assert!((0..1000).all(|n| line.enqueue(at(n as i64), udp(1), n)), "the qdisc drops none");
        (line.lost_packets(), line.dropped())
    };
    assert!((200..300).contains(&lossy().0) && lossy() == lossy());
    assert_eq!(lossy().1.map(|l| l.1), Some("loss"));
}

#[test]
fn refusals_are_tc_s_words() {
    let mut line = link(Settings::default(), &[]);
    let mut check = |command: &str, said: &str| {
        let refused = line.tc(Time::ZERO, command).unwrap_err().to_string();
        assert!(refused.contains(said), "{command}: {refused}");
    };
    check("qdisc add dev eth0 root tbf rate 1mbit", "tbf: the \"burst\" parameter is mandatory");
    check("qdisc add dev eth1 root pfifo", "Cannot find device \"eth1\"");
    check("qdisc add dev eth0 root nosuch", "Error: Specified qdisc kind is unknown.");
    check("filter add dev eth0 matchall action mirred egress redirect dev eth0", "a link has one device");
    check("qdisc add dev eth0 root atm", "it carries no packets here");
    assert!(rate("10 Mbit").unwrap_err().to_string().contains("write e.g. 10mbit"));
}

#[test]
#[should_panic(expected = "a link's time goes forward")]
fn time_goes_forward() {
    let mut line = link(Settings::default(), &[]);
    line.enqueue(at(5), udp(1), 0);
    line.dequeue(at(4));
}

#[test]
fn a_link_has_the_qdiscs_of_its_kernel() {
    let command = "qdisc add dev eth0 root dualpi2";
    let mut old: Link<u64> = Link::new(&Settings::default());
    assert_eq!(
        old.tc(Time::ZERO, command),
        Err(Refused("Error: Specified qdisc kind is unknown.".to_owned()))
    );
    let new = Settings { rate: Some(rate("8mbit").unwrap()), kernel: Kernel::V7_2, ..Settings::default() };
    let mut line = link(new, &[command]);
    assert!((0..3).all(|n| line.enqueue(at(0), udp(1), n)));
    assert_eq!(run(&mut line), [(0, MS), (1, 2 * MS), (2, 3 * MS)]);
}

#[test]
fn a_warm_link_allocates_nothing() {
    let settings = || Settings {
        rate: Some(rate("8mbit").unwrap()),
        delay: Span::from_ms(3),
        kernel: Kernel::V7_2,
        ..Settings::default()
    };
    for tc in [
        "pfifo limit 20",
        "fq_codel limit 50",
        "cake bandwidth 7mbit memlimit 100kb",
        "dualpi2 limit 50",
        "tbf rate 4mbit burst 5k limit 20k",
    ] {
        let mut line = link(settings(), &[&format!("qdisc add dev eth0 root {tc}")]);
        let mut round = |from: u64, to: u64| {
            for n in from..to {
                let now = at(n as i64 * MS / 2);
                line.enqueue(now, udp(n as u16 % 3), n);
                while line.dequeue(now).is_some() {}
                while line.dropped().is_some() {}
            }
        };
        round(0, 20_000);
        let counted = allocation_counter::measure(|| round(20_000, 24_000));
        assert_eq!(counted.count_total, 0, "{tc}");
    }
}
