//! An experiment in the form of a file, run on the simulator; a figure of its record.

use penstock_lab::experiment;
use penstock_lab::run::{Options, run};

const FILE: &str = r#"
title    = "A bulk transfer through a shaper"
duration = "10s"

[host.server]
eth0  = "10.0.0.1/24"
setup = ["tc qdisc add dev eth0 root tbf rate 5mbit burst 10k latency 50ms"]

[host.pc]
eth0 = "10.0.0.2/24"

[[link]]
ends = ["server:eth0", "pc:eth0"]
rate = "100mbit"

[[app]]
on  = "pc"
run = "iperf -s"

[[app]]
on  = "server"
run = "iperf -c 10.0.0.2 -t 8"
at  = "1s"
"#;

fn main() -> Result<(), String> {
    let said = |d: Vec<penstock_model::Diagnostic>| d[0].to_string();
    let experiment = experiment::parse(FILE, "shaper.toml").map_err(said)?;
    let outcome = run(&experiment, &mut Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} })
        .map_err(said)?;
    for (app, printed) in outcome.record.apps.iter().zip(&outcome.outputs) {
        println!("{}: {}\n{printed}", app.host, app.run);
    }
    for (host, device, text) in &outcome.tc {
        println!("{host} {device}\n{text}");
    }
    let throughput = outcome.record.apps[1].throughput_bit_s.ok_or("iperf reports a throughput")?;
    assert!((4.6e6..5.1e6).contains(&throughput), "{throughput}");
    Ok(())
}
