//! Random networks of bridges with spanning trees against what a Linux made of the same: `vectors/stack/trees.jsonl`, made by `vectors/stack/trees.py`. What
//! each bridge and port knows, every timer and how many BPDUs went is compared after each step.

use penstock_model::{Kernel, Span, Time};
use penstock_sim::World;
use serde_json::Value;

const BRIDGE: [&str; 14] = [
    "bridge/bridge_id",
    "bridge/root_id",
    "bridge/root_port",
    "bridge/root_path_cost",
    "bridge/topology_change",
    "bridge/topology_change_detected",
    "bridge/hello_timer",
    "bridge/tcn_timer",
    "bridge/topology_change_timer",
    "bridge/stp_state",
    "bridge/forward_delay",
    "bridge/hello_time",
    "bridge/max_age",
    "carrier",
];
const PORT: [&str; 13] = [
    "brport/state",
    "brport/port_id",
    "brport/path_cost",
    "brport/designated_root",
    "brport/designated_bridge",
    "brport/designated_port",
    "brport/designated_cost",
    "brport/change_ack",
    "brport/config_pending",
    "brport/message_age_timer",
    "brport/forward_delay_timer",
    "brport/hold_timer",
    "statistics/tx_packets",
];

/// The first difference of a case, if there is one.
fn differs(case: &Value) -> Option<String> {
    let mut world = World::new(case["seed"].as_u64().unwrap());
    let host = world.add_host("sw", Kernel::V6_12);
    world.host_mut(host).set_hz(case["hz"].as_u64().unwrap() as u32);
    let hz = case["hz"].as_i64().unwrap();
    // The midst of a tick.
    let midst =
        |tick: &Value| Time::ZERO + Span::from_ns((2 * tick.as_i64().unwrap() + 1) * 500_000_000 / hz);
    let steps = case["steps"].as_array().unwrap().iter().zip(case["told"].as_array().unwrap());
    for (n, (step, told)) in steps.enumerate() {
        for (command, answer) in step[1].as_array().unwrap().iter().zip(told[0].as_array().unwrap()) {
            let (command, status) = (command.as_str().unwrap(), answer[1].as_i64().unwrap());
            world.run_quietly(midst(&answer[0]));
            let out = world.exec(host, command);
            if i64::from(out.status) != status {
                return Some(format!("step {n}: {command}: {} {:?}, Linux {status}", out.status, out.stderr));
            }
        }
        // What a command sets off is sent at once.
        world.run_quietly(midst(&told[1]) + Span::from_ns(1));
        for (name, seen) in told[2].as_object().unwrap() {
            let files: &[&str] = if name.starts_with("br") { &BRIDGE } else { &PORT };
            for (file, want) in files.iter().zip(seen.as_array().unwrap()) {
                let path = format!("/sys/class/net/{name}/{file}");
                let got = world.host(host).read_file_at(&path, world.now()).ok();
                let got = got.as_deref().map(str::trim);
                if got != want.as_str() {
                    return Some(format!("step {n}, tick {}: {path}: {got:?}, Linux {want}", told[1]));
                }
            }
        }
    }
    None
}

#[test]
fn trees_of_bridges_are_linux_s() {
    let path = std::env::var("TREES").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/stack/trees.jsonl").to_owned()
    });
    let (mut cases, mut wrong) = (0, Vec::new());
    for line in std::fs::read_to_string(path).expect("the recordings").lines() {
        let case: Value = serde_json::from_str(line).expect("JSON");
        cases += 1;
        if let Some(what) = differs(&case) {
            wrong.push(format!("case {}: {what}", case["seed"]));
        }
    }
    assert!(wrong.is_empty(), "{} of {cases} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases >= 100, "{cases} cases");
}
