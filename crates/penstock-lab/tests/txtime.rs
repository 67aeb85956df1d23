//! Datagrams that name their time of departure, and qdiscs that keep such times or have gates.

use penstock_lab::experiment;
use penstock_lab::run::{Options, Outcome, run};

fn text(setup: &str, flow: &str) -> String {
    format!(
        r#"
duration = "1s"
[host.a]
eth0 = "10.0.0.1/24"
setup = ["{setup}"]
[host.b]
eth0 = "10.0.0.2/24"
[[link]]
ends = [{{ end = "a:eth0", tx_queues = 2 }}, "b:eth0"]
rate = "100mbit"
[[flow]]
from = "a"
to = "b"
udp = true
tos = 0x10
load = {{ size = 100, gap = "3ms" }}
{flow}
"#
    )
}

fn go(setup: &str, flow: &str) -> Outcome {
    let read = experiment::parse(&text(setup, flow), "txtime.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    run(&read, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
        .unwrap_or_else(|d| panic!("{}", d[0]))
}

/// Least and greatest delay in ms, and how many arrived.
fn delays(outcome: &Outcome) -> (f64, f64, u64) {
    let flow = &outcome.record.flows[0];
    let owd = flow.owd_ms.as_ref().unwrap_or_else(|| panic!("{flow:?}"));
    (owd.min, owd.max, flow.received_packets)
}

/// Before etf stands prio, by which ARP, which names no time, passes it: the flow's ToS gives its packets another band.
const PRIO: &str = "tc qdisc replace dev eth0 root handle 1: prio\", \"tc qdisc add dev eth0 parent 1:1 etf ";

/// A packet leaves `delta` before its time, whatever its queue would do otherwise.
#[test]
fn etf_keeps_times() {
    let etf = format!("{PRIO}clockid CLOCK_TAI delta 100000");
    let (least, most, count) = delays(&go(&etf, "txtime = \"5ms\""));
    // 146 bytes with all that is around them on 100 Mbit/s take some 13 us.
    assert!(least > 4.9 && most < 4.93 && count > 300, "{least} {most} {count}");
    let latest = "txtime = { after = \"5ms\", deadline = true }";
    let (least, most, count) = delays(&go(&format!("{etf} deadline_mode"), latest));
    assert!(least > 0.0 && most < 0.03 && count > 300, "{least} {most} {count}");
}

/// What names no time, or one by another clock, or one that is past, is dropped as it comes.
#[test]
fn etf_refuses_what_names_no_time() {
    let etf = format!("{PRIO}clockid CLOCK_TAI delta 100000");
    let monotonic = "txtime = { after = \"5ms\", clock = \"monotonic\" }";
    for flow in ["", monotonic, "txtime = { after = \"5ms\", deadline = true }"] {
        let outcome = go(&etf, flow);
        assert_eq!(outcome.record.flows[0].received_packets, 0, "{flow}");
    }
}

/// fq takes times by CLOCK_MONOTONIC.
#[test]
fn fq_keeps_times() {
    let (least, most, count) = delays(&go(
        "tc qdisc replace dev eth0 root fq",
        "txtime = { after = \"5ms\", clock = \"monotonic\" }",
    ));
    assert!(least > 5.0 && most < 5.1 && count > 300, "{least} {most} {count}");
}

/// Gates that are open half of every 10 ms: who comes when they are closed waits for that.
#[test]
fn taprio_has_gates() {
    let gates = "tc qdisc replace dev eth0 root taprio num_tc 1 map 0 queues 1@0 clockid CLOCK_TAI \
                 sched-entry S 1 5000000 sched-entry S 0 5000000";
    let (least, most, count) = delays(&go(gates, ""));
    assert!(least < 0.03 && most > 4.0 && most < 5.1 && count > 300, "{least} {most} {count}");
}

#[test]
fn wishes_are_checked() {
    for (flow, said) in [
        ("txtime = { after = \"5ms\", clock = \"utc\" }", "there is no clock \"utc\" for times of departure"),
        ("txtime = 5", "txtime"),
        ("txtime = { clock = \"tai\" }", "after"),
    ] {
        let faults = experiment::parse(&text("true", flow), "txtime.toml").unwrap_err();
        assert!(faults[0].to_string().contains(said), "{}", faults[0]);
    }
    let tcp = text("true", "txtime = \"5ms\"").replace("udp = true", "tcp = true");
    let faults = experiment::parse(&tcp, "txtime.toml").unwrap_err();
    assert!(faults[0].to_string().contains("only datagrams name a time of departure"), "{}", faults[0]);
}
