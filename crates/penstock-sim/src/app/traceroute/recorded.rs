//! What traceroute printed in random networks on Linux 6.12 (`vectors/traceroute`), and what is printed here in the same.

use crate::recorded::{check, differences};

#[test]
fn traceroute_prints_what_was_recorded() {
    check("traceroute.jsonl", 60);
}

/// Over IPv6 a device that is not the only one cannot be chosen; a server that a SYN comes to is none the wiser.
#[test]
fn what_probes_leave_behind() {
    use crate::{End, LinkSpec, World};
    use penstock_model::{Kernel, Span, Time};
    let mut world = World::new(1);
    let (a, b) = (world.add_host("a", Kernel::V6_12), world.add_host("b", Kernel::V6_12));
    for n in 0..2 {
        let end = |host| End::new(host, &format!("eth{n}"));
        world.add_link(LinkSpec::new(end(a), end(b), None, Span::from_ms(1))).unwrap();
        for (host, i) in [(a, 1), (b, 2)] {
            for line in [
                format!("ip addr add 10.0.{n}.{i}/24 dev eth{n}"),
                format!("ip addr add fd00:{n}::{i}/64 dev eth{n} nodad"),
            ] {
                assert_eq!(world.exec(host, &line).status, 0, "{line}");
            }
        }
    }
    world.add_app(b, "iperf3 -s", Time::ZERO);
    let lines =
        ["traceroute -i eth1 fd00:1::2", "traceroute -n -T -p 5201 -q 1 10.0.0.2", "iperf3 -c 10.0.0.2 -t 1"];
    let apps: Vec<_> = lines
        .iter()
        .zip(1..)
        .map(|(line, s)| world.add_app(a, line, Time::from_ns(s * 1_000_000_000)))
        .collect();
    let results = world.run(Time::from_ns(8_000_000_000));
    let said = |n: usize| &results.apps[apps[n].0 as usize];
    assert!(said(0).output.ends_with(
        "traceroute: -i eth1 is not simulated: over IPv6 routes choose the device; write a route\n"
    ));
    assert_eq!(said(0).exit, Some(2));
    assert!(said(1).output.contains("\n 1  10.0.0.2  4.000 ms\n"), "{}", said(1).output);
    assert!(said(2).output.contains("iperf Done."), "{}", said(2).output);
    assert_eq!(world.miscounts(), Vec::<String>::new());
    let names: Vec<&str> = results.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["a traceroute", "a iperf3 control 3", "a iperf3"]);
    assert_eq!((results.flows[0].sent_packets, results.flows[0].received_packets), (0, 0));
}

/// A run that prints something else is seen.
#[test]
fn a_difference_is_seen() {
    let same = differences("1  10.0.0.1  1.000 ms *\n", "1  10.0.0.1  1.001 ms *\n");
    assert_eq!(same, None);
    for other in ["1  10.0.0.2  1.000 ms *\n", "1  10.0.0.1  1.004 ms *\n", "1  10.0.0.1  1.000 ms\n", ""] {
        assert!(differences("1  10.0.0.1  1.000 ms *\n", other).is_some(), "{other}");
    }
}
