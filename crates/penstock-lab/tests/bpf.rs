//! Programs of eBPF objects at work in experiments.

use penstock_lab::experiment;
use penstock_lab::run::{Options, Outcome, run};
use penstock_model::{Diagnostic, binary};

/// The objects that the tests of `tc` have, and that of an example.
fn object(path: &str) -> Result<String, String> {
    let folder = match path {
        "edt.o" => concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/"),
        _ => concat!(env!("CARGO_MANIFEST_DIR"), "/../penstock-host/tests/objects/"),
    };
    let bytes = std::fs::read(format!("{folder}{path}")).map_err(|e| e.to_string())?;
    binary::text_of(bytes).ok_or_else(|| "no object".to_owned())
}

fn go(text: &str) -> Result<Outcome, Vec<Diagnostic>> {
    let read = experiment::parse_with(text, "bpf.toml", &object)?;
    run(&read, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
}

/// Two machines, a flow of datagrams between them every millisecond, and commands on the sender.
fn text(setup: &[&str], flow: &str) -> String {
    let setup: Vec<String> = setup.iter().map(|line| format!("    {line:?},\n")).collect();
    format!(
        r#"
duration = "2s"
[host.a]
eth0 = "10.0.0.1/24"
eth1 = "10.1.0.1/24"
setup = [
{}]
[host.b]
eth0 = "10.0.0.2/24"
eth1 = "10.1.0.2/24"
[[link]]
ends = ["a:eth0", "b:eth0"]
rate = "100mbit"
[[link]]
ends = ["a:eth1", "b:eth1"]
rate = "100mbit"
[[flow]]
from = "a"
to = "b"
{flow}
"#,
        setup.concat()
    )
}
const DATAGRAMS: &str = "udp = true\nload = { size = 100, gap = \"1ms\" }";

#[test]
fn a_counter_in_a_map_drops_every_fourth_packet() {
    let setup =
        ["tc qdisc add dev eth0 clsact", "tc filter add dev eth0 egress protocol ip bpf da obj count.o"];
    let outcome = go(&text(&setup, DATAGRAMS)).unwrap_or_else(|d| panic!("{}", d[0]));
    let flow = &outcome.record.flows[0];
    let (sent, received) = (flow.sent_packets, flow.received_packets);
    assert!(sent >= 1990, "{sent}");
    assert!(received.abs_diff(sent - sent / 4) <= 1, "{received} of {sent}");
}

#[test]
fn earliest_departure_times_make_a_rate() {
    let setup = [
        "tc qdisc replace dev eth0 root fq limit 20000 flow_limit 20000",
        "tc qdisc add dev eth0 clsact",
        "tc filter add dev eth0 egress bpf da obj edt.o sec edt",
    ];
    // 20 Mbit/s asked for, 10 Mbit/s by the program: 1042 bytes on the wire every 833.6 us.
    let flow = "udp = true\nload = { size = 1000, gap = \"400us\" }";
    let outcome = go(&text(&setup, flow)).unwrap_or_else(|d| panic!("{}", d[0]));
    let flow = &outcome.record.flows[0];
    let want = 2_000_000_000 / 833_600;
    assert!(flow.received_packets.abs_diff(want) <= 5, "{} instead of {want}", flow.received_packets);
    // Without the program all of it arrives.
    let outcome = go(&text(&setup[..1], "udp = true\nload = { size = 1000, gap = \"400us\" }")).unwrap();
    assert!(outcome.record.flows[0].received_packets > 4900);
}

/// Over the first link nothing arrives; both cards of b have one address.
#[test]
fn a_program_sends_packets_out_of_another_device() {
    let setup = [
        "ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:0b dev eth0 nud permanent",
        "tc qdisc add dev eth0 clsact",
        "tc filter add dev eth0 egress protocol ip bpf da obj redirect.o sec redirect",
    ];
    let received = |setup: &[&str]| {
        let cards = "setup = [\"ip link set eth0 address 02:00:00:00:00:0b\", \"ip link set eth1 address 02:00:00:00:00:0b\"]\n";
        let text = text(setup, DATAGRAMS).replacen("[[link]]", &format!("{cards}[[link]]"), 1);
        let text = text.replacen("rate = \"100mbit\"", "rate = \"100mbit\"\nloss = \"100%\"", 1);
        go(&text).unwrap_or_else(|d| panic!("{}", d[0])).record.flows[0].received_packets
    };
    assert_eq!(received(&setup[..1]), 0);
    assert!(received(&setup) > 1990);
}

#[test]
fn what_is_not_simulated_is_refused_by_name() {
    let setup = ["tc qdisc add dev eth0 clsact", "tc filter add dev eth0 egress bpf da obj fib.o"];
    let faults = go(&text(&setup, DATAGRAMS)).map(drop).unwrap_err();
    assert!(faults[0].message.contains("bpf with the helper fib_lookup"), "{}", faults[0]);
    let setup = ["tc qdisc add dev eth0 clsact", "tc filter add dev eth0 egress bpf da obj bare.o"];
    let faults = go(&text(&setup, DATAGRAMS)).map(drop).unwrap_err();
    assert!(faults[0].message.contains("BPF program load failed: Permission denied"), "{}", faults[0]);
    let setup = ["tc qdisc add dev eth0 clsact", "tc filter add dev eth0 egress bpf da obj nix.o"];
    let faults = go(&text(&setup, DATAGRAMS)).map(drop).unwrap_err();
    assert!(faults[0].message.contains("Cannot initialize ELF context!"), "{}", faults[0]);
}

#[test]
fn the_example_s_expectations_are_met() {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/edt.toml");
    let read = experiment::load(&file).unwrap_or_else(|d| panic!("{}", d[0]));
    let outcome = run(&read, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} });
    let record = outcome.unwrap_or_else(|d| panic!("{}", d[0])).record;
    assert_eq!(record.expects.len(), 4);
    for expect in &record.expects {
        assert!(expect.ok, "{} {}: {:?}", expect.what, expect.value, expect.measured);
    }
}
