//! Experiments whose figures were impossible once: losses above 100 %, copies counted as losses, more received than sent.

use penstock_lab::experiment;
use penstock_lab::run::{Options, Outcome, run};
use penstock_measure::record::Flow;
use std::path::Path;

fn outcome(text: &str, name: &str) -> Outcome {
    let experiment = experiment::parse(text, name).unwrap_or_else(|d| panic!("{}", d[0]));
    run(&experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
        .unwrap_or_else(|d| panic!("{}", d[0]))
}

fn file(name: &str) -> Outcome {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/robustness").join(name);
    outcome(&std::fs::read_to_string(path).unwrap(), name)
}

/// Sent, received, lost, in flight; they add up, and so do the places.
fn account(flow: &Flow) -> (u64, u64, u64, u64) {
    let in_flight = flow.in_flight_packets.unwrap();
    assert_eq!(flow.sent_packets, flow.received_packets + flow.lost_packets + in_flight, "{flow:?}");
    assert_eq!(flow.lost_packets, flow.losses.iter().map(|l| l.packets).sum::<u64>(), "{flow:?}");
    (flow.sent_packets, flow.received_packets, flow.lost_packets, in_flight)
}

#[test]
fn a_datagram_in_fragments_is_lost_once() {
    // Of frag.toml 418 fragments were "lost" of 201 datagrams, of frag2.toml 1,246 of 101.
    for (name, sent, fragments, dropped) in [("frag.toml", 201, 3, 418), ("frag2.toml", 101, 14, 1246)] {
        let outcome = file(name);
        let flow = &outcome.record.flows[0];
        let (all, _, lost, _) = account(flow);
        assert_eq!((all, flow.fragments), (sent, Some(sent * fragments)), "{name}");
        assert!(lost <= sent && lost * 2 > sent, "{name}: {lost}");
        // The table of drops has the fragments.
        let drop = &outcome.record.drops[0];
        assert_eq!((drop.packets, drop.fragments, drop.copies), (dropped, Some(dropped), None), "{name}");
        let loss = &outcome.record.expects[0];
        assert!(loss.ok && (0.5..=1.0).contains(&loss.measured.unwrap()), "{name}: {loss:?}");
    }
}

#[test]
fn a_copy_that_is_dropped_is_no_loss() {
    for name in ["mir.toml", "mir2.toml"] {
        let outcome = file(name);
        let flow = &outcome.record.flows[0];
        assert_eq!(account(flow), (201, 200, 0, 1), "{name}");
        assert_eq!(
            (flow.copied_packets, outcome.record.expects[0].measured),
            (Some(201), Some(0.0)),
            "{name}"
        );
        // All copies but that of the ARP request.
        assert_eq!(
            (outcome.record.drops[0].packets, outcome.record.drops[0].copies),
            (202, Some(202)),
            "{name}"
        );
    }
}

const TWO: &str = r#"duration = "3s"
[host.a]
eth0 = "10.0.0.1/24"
SETUP_A
[host.b]
eth0 = "10.0.0.2/24"
SETUP_B
[[link]]
ends = ["a:eth0", "b:eth0"]
rate = "1mbit"
delay = "50ms"
[[flow]]
name = "f"
from = "a"
to = "b"
udp = true
load = { size = 1000, gap = "5ms" }
"#;

#[test]
fn what_the_warm_up_sent_is_nobodys() {
    for warmup in ["100ms", "1s", "1003ms", "2900ms"] {
        let text = TWO.replace("SETUP_A", r#"setup = "tc qdisc add dev eth0 root pfifo limit 50""#);
        let text =
            text.replace("SETUP_B", "").replacen("duration", &format!("warmup = \"{warmup}\"\nduration"), 1);
        let outcome = outcome(&text, warmup);
        let (sent, received, lost, in_flight) = account(&outcome.record.flows[0]);
        assert!(sent > 0 && lost > 0 && in_flight > 0 && (received > 0) == (warmup != "2900ms"), "{warmup}");
        // The line is full all the time: what arrives is counted whoever sent it.
        assert!(outcome.record.flows[0].goodput_bit_s > 900_000.0 || warmup == "100ms", "{warmup}");
    }
}

/// A server of probes has its memory back when an answer has left or was lost: it answers as long as it is asked, on a wire, through a
/// full queue and by a card with a ring.
#[test]
fn probes_are_answered_to_the_end() {
    for (setup, link, least) in [
        ("", "", 1190),
        ("setup = \"tc qdisc add dev eth0 root tbf rate 30kbit burst 2k limit 3k\"", "", 400),
        ("", "ring = 8\n", 1190),
    ] {
        let text = TWO
            .replace("SETUP_A", "")
            .replace("SETUP_B", setup)
            .replace("duration = \"3s\"", "duration = \"60s\"");
        let text = text.split("[[flow]]").next().unwrap().replace("\"b:eth0\"]", "\"b:eth0\"]\n");
        let text = match link {
            "" => text,
            _ => text.replace("\"b:eth0\"]", "{ end = \"b:eth0\", ring = 8 }]"),
        };
        let flow = "[[flow]]\nfrom = \"a\"\nto = \"b\"\nudp = true\nload = { echo = \"50ms\", size = 200 }\n";
        let outcome = outcome(&format!("{text}{flow}"), "probes");
        let trips = outcome.series.points("", "flow a-b", "rtt_ms");
        let last = trips.last().unwrap().0;
        assert!(
            trips.len() >= least && last > 59.0,
            "{setup} {link}: {} round trips, the last at {last}",
            trips.len()
        );
    }
}

/// A transfer and a page that began while the run warmed up are not among the completion times.
#[test]
fn transfers_of_the_warm_up_are_not_counted() {
    let flow = |at: &str, load: &str| {
        format!("[[flow]]\nfrom = \"a\"\nto = \"b\"\ngroup = \"g\"\nat = \"{at}\"\nload = {load}\n")
    };
    let text = TWO.split("[[flow]]").next().unwrap().replace("SETUP_A", "").replace("SETUP_B", "");
    let text = text.replacen("duration", "warmup = \"1s\"\nduration", 1);
    let completed = |flows: &str| {
        let outcome = outcome(&format!("{text}{flows}"), flows);
        let group = &outcome.record.groups[0];
        (group.completed, group.completion_ms.map(|d| d.max < 1000.0))
    };
    let (early, late) = (flow("500ms", "{ bytes = \"60k\" }"), flow("1100ms", "{ bytes = \"30k\" }"));
    assert_eq!(completed(&early), (None, None));
    assert_eq!(completed(&format!("{early}{late}")), (Some(1), Some(true)));
    // A page of 100 kB takes more than a second: the first began before the warm-up's end.
    let pages = "{ pages = \"100k\", think = \"10s\" }";
    assert_eq!(completed(&flow("500ms", pages)), (None, None));
    assert_eq!(completed(&flow("1500ms", pages)).0, Some(1));
}

#[test]
fn what_vanished_has_its_line() {
    let run = |a: &str, b: &str| {
        let outcome = outcome(&TWO.replace("SETUP_A", a).replace("SETUP_B", b), "two");
        account(&outcome.record.flows[0]);
        let drops =
            outcome.record.drops.into_iter().map(|d| (d.host, d.dev.unwrap_or_default(), d.place, d.reason));
        (
            drops.collect::<Vec<_>>(),
            outcome.record.flows[0].lost_packets,
            outcome.record.flows[0].sent_packets,
        )
    };
    let row = |host: &str, dev: &str, place: &str, reason: &str| {
        (host.to_owned(), dev.to_owned(), place.to_owned(), reason.to_owned())
    };
    let macvlan = r#"setup = ["ip link add link eth1 name m0 type macvlan mode source", "ip link set m0 up"]
eth1 = "10.0.9.1/24"
[host.c]
eth0 = "10.0.0.3/24"
[[link]]
ends = ["b:eth1", "c:eth0"]"#;
    let to_c = |text: &str| text.replace("to = \"b\"", "to = \"c\"");
    let text = to_c(&TWO.replace("SETUP_A", "").replace("SETUP_B", macvlan));
    // What a macvlan of a mode that is not here would carry is refused before the run.
    let parsed = experiment::parse(&text, "macvlan").unwrap();
    let refused = penstock_lab::run::run(
        &parsed,
        &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} },
    )
    .err()
    .unwrap();
    let said: Vec<&str> = refused.iter().map(|d| d.message.split(" can be").next().unwrap()).collect();
    assert_eq!(said, ["b m0: a macvlan with \"mode source\""]);
    // Into a device without a wire.
    let dummy =
        r#"setup = ["ip link add d0 type dummy", "ip link set d0 up", "ip route add 10.0.0.2/32 dev d0"]"#;
    let (drops, _, _) = run(dummy, "");
    assert!(
        drops.contains(&row("a", "d0", "link", "no-carrier"))
            || drops.contains(&row("a", "d0", "arp", "host-unreachable")),
        "{drops:?}"
    );
    // What mirred takes along owes its socket nothing: it goes on sending.
    let ifb = r#"setup = ["ip link add ifb0 type ifb", "ip link set ifb0 up", "tc qdisc add dev eth0 clsact", "tc filter add dev eth0 egress matchall action mirred egress redirect dev ifb0"]"#;
    let (_, _, sent) = run(ifb, "");
    assert_eq!(sent, 601);
}
