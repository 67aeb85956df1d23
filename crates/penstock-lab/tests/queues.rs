//! Cards of several transmit queues.

use penstock_lab::experiment;
use penstock_lab::run::{Options, Outcome, run};

/// Two senders of UDP share a card of four queues; `setup` configures it.
fn go(setup: &str, tx_queues: &str) -> Outcome {
    let text = format!(
        r#"
duration = "2s"
[host.a]
eth0 = "10.0.0.1/24"
setup = [{setup}]
[host.b]
eth0 = "10.0.0.2/24"
[[link]]
ends = [{{ end = "a:eth0"{tx_queues} }}, "b:eth0"]
rate = "1mbit"
[[flow]]
name = "light"
from = "a"
to = "b"
port = 5001
load = "100kbit"
[[flow]]
name = "heavy"
from = "a"
to = "b"
port = 5002
load = "3mbit"
"#
    );
    let read = experiment::parse(&text, "queues.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    run(&read, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
        .unwrap_or_else(|d| panic!("{}", d[0]))
}

const BY_PORT: &str = r#""tc qdisc add dev eth0 clsact",
    "tc filter add dev eth0 egress protocol ip prio 1 u32 match ip dport 5001 0xffff action skbedit queue_mapping 1 pass",
    "tc filter add dev eth0 egress protocol ip prio 2 matchall action skbedit queue_mapping 0 pass""#;

/// With one queue the light flow waits behind the heavy one's packets; with a queue each the card takes frames in turn.
#[test]
fn queues_take_turns() {
    let waits = |outcome: &Outcome| {
        let flow = outcome.record.flows.iter().find(|f| f.name == "light").unwrap();
        flow.owd_ms.as_ref().unwrap().max
    };
    let one = go("\"tc qdisc add dev eth0 root pfifo limit 20\"", "");
    let four = go(&format!("{BY_PORT}, \"tc qdisc add dev eth0 root handle 1: mq\""), ", tx_queues = 4");
    let (one, four) = (waits(&one), waits(&four));
    assert!(four < one, "{one} ms and {four} ms");
}

/// Only the simulator has such cards.
#[test]
fn a_number_of_queues_is_checked() {
    let text = "duration = \"1s\"\n[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
                [[link]]\nends = [{ end = \"a:eth0\", tx_queues = 0 }, \"b:eth0\"]\n";
    assert!(experiment::parse(text, "x.toml").is_err());
}
