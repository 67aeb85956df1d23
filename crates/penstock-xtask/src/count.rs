//! `xtask bench count`: instructions for each packet-hop in six scenarios, beside the figures that were agreed on.
//!
//! The figures stand in `counts.txt`. They belong to the compiler that `rust-toolchain.toml` names and to the profile `release`. Whoever makes the simulator
//! slower by more than 3 % finds the gate closed; `--bless` writes the file anew, and the commit says why.

use crate::{growth, tidy, valgrind};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// How much dearer a hop may become, and how much cheaper before the file is to be written anew.
const MOST: f64 = 0.03;

/// One scenario: its name, what it is, its experiment.
struct Scenario {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "ten",
        about: "10 TCP flows over a FIFO of 100 Mbit/s",
        text: r#"
duration = "4s"
[host.a]
eth0 = "10.0.0.1/24"
via = "10.0.0.254"
[host.r]
eth0 = "10.0.0.254/24"
eth1 = "10.1.0.254/24"
setup = ["sysctl -w net.ipv4.ip_forward=1", "tc qdisc add dev eth1 root pfifo limit 200"]
[host.b]
eth0 = "10.1.0.1/24"
via = "10.1.0.254"
[[link]]
ends = ["a:eth0", "r:eth0"]
rate = "1gbit"
[[link]]
ends = ["r:eth1", "b:eth0"]
rate = "100mbit"
delay = "10ms"
[[flow]]
from = "a"
to = "b"
count = 10
load = "greedy"
"#,
    },
    Scenario {
        name: "red",
        about: "the same behind red with ECN",
        text: r#"
duration = "4s"
[host.a]
eth0 = "10.0.0.1/24"
via = "10.0.0.254"
[host.r]
eth0 = "10.0.0.254/24"
eth1 = "10.1.0.254/24"
setup = [
  "sysctl -w net.ipv4.ip_forward=1",
  "tc qdisc add dev eth1 root red limit 400k min 60k max 180k avpkt 1500 burst 60 bandwidth 100mbit probability 0.02 ecn",
]
[host.b]
eth0 = "10.1.0.1/24"
via = "10.1.0.254"
[[link]]
ends = ["a:eth0", "r:eth0"]
rate = "1gbit"
[[link]]
ends = ["r:eth1", "b:eth0"]
rate = "100mbit"
delay = "10ms"
[[flow]]
from = "a"
to = "b"
count = 10
load = "greedy"
tcp = { ecn = true }
"#,
    },
    Scenario {
        name: "hosts",
        about: "200 TCP flows, each between two hosts of its own",
        text: r#"
duration = "1s"
[host.l]
"p{1..200}" = "10.1.0.{n*4+1}/30"
core = "10.0.0.1/30"
setup = ["sysctl -w net.ipv4.ip_forward=1", "ip route add 10.2.0.0/16 via 10.0.0.2", "tc qdisc add dev core root pfifo limit 1000"]
[host.r]
"p{1..200}" = "10.2.0.{n*4+1}/30"
core = "10.0.0.2/30"
setup = ["sysctl -w net.ipv4.ip_forward=1", "ip route add 10.1.0.0/16 via 10.0.0.1"]
[host."a{1..200}"]
eth0 = "10.1.0.{n*4+2}/30"
via = "10.1.0.{n*4+1}"
[host."b{1..200}"]
eth0 = "10.2.0.{n*4+2}/30"
via = "10.2.0.{n*4+1}"
[[link]]
ends = ["l:core", "r:core"]
rate = "500mbit"
delay = "10ms"
[[link]]
each = 200
ends = ["l:p{n}", "a{n}:eth0"]
rate = "1gbit"
[[link]]
each = 200
ends = ["r:p{n}", "b{n}:eth0"]
rate = "1gbit"
[[flow]]
from = "a{1..200}"
to = "b{1..200}"
at = { from = "0s", to = "200ms" }
load = "greedy"
"#,
    },
    Scenario {
        name: "chain",
        about: "datagrams through 20 routers",
        text: r#"
duration = "1s"
[host."r{0..21}"]
eth0 = "10.0.{n}.2/24"
eth1 = "10.0.{n+1}.1/24"
via = "10.0.{n+1}.2"
setup = ["sysctl -w net.ipv4.ip_forward=1"]
[[link]]
each = "0..20"
ends = ["r{n}:eth1", "r{n+1}:eth0"]
rate = "1gbit"
delay = "1ms"
[[flow]]
from = "r0"
to = "r21"
udp = true
load = { rate = "50mbit", size = 1000 }
"#,
    },
    Scenario {
        name: "lines",
        about: "100 lines of htb with fq_codel, found by hashed filters",
        text: r#"
duration = "1s"
[host.s]
eth0 = "10.0.0.2/30"
via = "10.0.0.1"
[host.box]
up = "10.0.0.1/30"
down = "10.1.255.1/24"
setup = """
sysctl -w net.ipv4.ip_forward=1
ip route add 10.1.0.0/17 via 10.1.255.2
tc qdisc add dev down root handle 1: htb default ffff
tc class add dev down parent 1: classid 1:ffff htb rate 300mbit
tc filter add dev down parent 1: prio 1 handle 2: protocol ip u32 divisor 256
tc filter add dev down parent 1: prio 1 protocol ip u32 ht 800:: match ip dst 10.1.0.0/24 hashkey mask 0xff at 16 link 2:
for n in $(seq 1 100); do
  x=$(printf %x $n)
  tc class add dev down parent 1:ffff classid 1:$x htb rate 3mbit ceil 20mbit
  tc qdisc add dev down parent 1:$x fq_codel flows 64
  tc filter add dev down parent 1: prio 1 protocol ip u32 ht 2:$x: match ip dst 10.1.0.$n flowid 1:$x
done
"""
[host.lan]
eth0 = ["10.1.255.2/24"]
eth1 = ["10.1.0.1/32", "10.1.0.2/32"]
via = "10.1.255.1"
setup = "for n in $(seq 3 100); do ip addr add 10.1.0.$n/32 dev eth1; done"
[host.x]
eth0 = "10.9.0.1/24"
[[link]]
ends = ["s:eth0", "box:up"]
rate = "1gbit"
[[link]]
ends = ["box:down", "lan:eth0"]
rate = "1gbit"
delay = "5ms"
[[link]]
ends = ["lan:eth1", "x:eth0"]
rate = "1gbit"
[[app]]
on = "lan"
run = "iperf -s -u"
[[app]]
each = 100
on = "s"
run = "iperf -u -c 10.1.0.{n} -b 4m -t 1"
"#,
    },
    Scenario {
        name: "firewall",
        about: "datagrams through 50 rules of iptables and a policer",
        text: r#"
duration = "1s"
[host.a]
eth0 = "10.0.0.1/24"
via = "10.0.0.254"
[host.r]
eth0 = "10.0.0.254/24"
eth1 = "10.1.0.254/24"
setup = """
sysctl -w net.ipv4.ip_forward=1
for n in $(seq 1 50); do iptables -t mangle -A FORWARD -p udp --dport $((6000 + n)) -j MARK --set-mark $n; done
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 police rate 80mbit burst 100k drop flowid :1
tc qdisc add dev eth1 root handle 1: prio
tc filter add dev eth1 parent 1: protocol ip handle 50 fw flowid 1:1
"""
[host.b]
eth0 = "10.1.0.1/24"
via = "10.1.0.254"
[[link]]
ends = ["a:eth0", "r:eth0"]
rate = "1gbit"
[[link]]
ends = ["r:eth1", "b:eth0"]
rate = "100mbit"
[[flow]]
from = "a"
to = "b"
udp = true
port = 6050
load = { rate = "90mbit", size = 500 }
"#,
    },
];

/// Makes one scenario; in a process of its own.
pub fn child(name: &str) -> Result<()> {
    let scenario = SCENARIOS.iter().find(|s| s.name == name).context("there is no such scenario")?;
    println!("packets {}", growth::experiment(scenario.text)?);
    Ok(())
}

/// The figures agreed on: instructions for each packet-hop.
fn agreed(text: &str) -> BTreeMap<&str, f64> {
    let line = |l: &'_ str| -> Option<(usize, f64)> {
        Some((l.find(' ')?, l.split_whitespace().nth(1)?.parse().ok()?))
    };
    text.lines()
        .filter(|l| !l.starts_with('#'))
        .filter_map(|l| line(l).map(|(end, n)| (&l[..end], n)))
        .collect()
}

/// Counts all of them and prints a table.
///
/// # Errors
/// One of them is dearer than agreed, or there is no valgrind.
pub fn run(bless: bool) -> Result<()> {
    if !valgrind::is_there() {
        bail!("counting needs valgrind: apt-get install valgrind");
    }
    let file = tidy::root().join("crates/penstock-xtask/counts.txt");
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let agreed = agreed(&text);
    let mut new = String::from(
        "# Instructions for each packet-hop, by `cargo xtask bench count --bless`. The commit that changes a figure says why.\n",
    );
    let mut faults = Vec::new();
    println!("| instructions a packet-hop | hops | now | agreed | |\n|---|---|---|---|---|");
    for s in SCENARIOS {
        let ran = valgrind::run(valgrind::own(&["bench", "count", "--child", s.name], true)?, true);
        let (said, counted) = ran.with_context(|| s.name)?;
        let hops = valgrind::behind(&said, "packets")?;
        let now = counted.unwrap_or_default() / hops.max(1.0);
        let _ = writeln!(new, "{} {now:.0}", s.name);
        let before = agreed.get(s.name).copied();
        let change = before.map(|b| now / b - 1.0);
        let shown = change.map_or("new".to_owned(), |c| format!("{:+.1} %", c * 100.0));
        println!("| {}: {} | {hops:.0} | {now:.0} | {} | {shown} |", s.name, s.about, before.unwrap_or(0.0));
        if change.is_none_or(|c| c > MOST) {
            faults.push(format!("{}: {now:.0} instructions a hop, {} agreed", s.name, before.unwrap_or(0.0)));
        }
    }
    if bless {
        std::fs::write(&file, new)?;
        return Ok(());
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!(
        "{}; if that must be, run `cargo xtask bench count --bless` and say why in the commit",
        faults.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_runs_and_is_agreed_on() {
        let text = std::fs::read_to_string(tidy::root().join("crates/penstock-xtask/counts.txt")).unwrap();
        let agreed = agreed(&text);
        for s in SCENARIOS {
            // A tenth of its time is enough here.
            let short = s
                .text
                .replace("duration = \"1s\"", "duration = \"100ms\"")
                .replace("duration = \"4s\"", "duration = \"100ms\"");
            assert!(growth::experiment(&short.replace("-t 1", "-t 0.1")).unwrap() > 100, "{}", s.name);
            assert!(agreed.contains_key(s.name), "{} is not in counts.txt", s.name);
        }
        assert_eq!(agreed.len(), SCENARIOS.len());
    }
}
