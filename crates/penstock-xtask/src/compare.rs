//! `xtask bench compare`: the same dumbbells in ns-2, ns-3 and here; packet-hops per second of CPU, and the ratio.

use anyhow::{Context, Result, bail};
use cpu_time::ProcessTime;
use penstock_lab::experiment;
use penstock_lab::run::{Options, run as run_experiment};
use std::process::Command;

/// Flows, Mbit/s of the line, its queue.
const SCENARIOS: [(u32, u32, &str); 6] = [
    (10, 100, "DropTail"),
    (10, 100, "RED"),
    (10, 100, "fq_codel"),
    (100, 1000, "DropTail"),
    (100, 1000, "RED"),
    (100, 1000, "fq_codel"),
];

/// How often each simulator runs a scenario; ns-3, which takes a minute, runs once.
const ROUNDS: usize = 5;

/// What a simulator did: packets over links, and the CPU it took, s.
struct Speed {
    hops: u64,
    cpu_s: f64,
}

impl Speed {
    fn rate(&self) -> f64 {
        self.hops as f64 / self.cpu_s
    }
    fn faster(self, other: Speed) -> Speed {
        if other.rate() > self.rate() { other } else { self }
    }
}

/// Runs all there are and prints the table. `seconds`: simulated, of the smaller scenario; the larger runs a fifth of it.
pub fn run(seconds: u32) -> Result<()> {
    println!(
        "{:30} {:12} {:>12} {:>9} {:>14} {:>7}",
        "scenario", "simulator", "packet-hops", "CPU s", "hops/CPU s", "ratio"
    );
    for (flows, mbit, queue) in SCENARIOS {
        let long = if mbit > 100 { seconds.div_ceil(5) } else { seconds };
        let name = format!("{flows} flows, {mbit} Mbit/s, {queue}");
        let others = [("ns-2", "ns", "dumbbell.tcl", ROUNDS), ("ns-3", "python3", "dumbbell.py", 1)];
        let mut mine = ours(flows, mbit, queue, long)?;
        let mut theirs: Vec<Option<Result<Speed>>> = others.iter().map(|_| None).collect();
        // In turns, so that whatever else the machine does meets all alike; the fastest of each counts.
        for round in 0..ROUNDS {
            for ((simulator, program, script, rounds), fastest) in others.iter().zip(&mut theirs) {
                let known = matches!(fastest, Some(Err(_))) || *simulator == "ns-2" && queue == "fq_codel";
                if !known && round < *rounds {
                    let speed = other(program, script, flows, mbit, queue, long);
                    *fastest = Some(match (fastest.take(), speed) {
                        (Some(Ok(before)), Ok(now)) => Ok(before.faster(now)),
                        (_, now) => now,
                    });
                }
            }
            mine = mine.faster(ours(flows, mbit, queue, long)?);
        }
        row(&name, "penstock", &mine, None);
        for ((simulator, ..), fastest) in others.iter().zip(theirs) {
            match fastest {
                None => println!("{name:30} {simulator:12} has none"),
                Some(Ok(speed)) => row(&name, simulator, &speed, Some(mine.rate() / speed.rate())),
                Some(Err(why)) => println!("{name:30} {simulator:12} left out: {why}"),
            }
        }
    }
    Ok(())
}

fn row(name: &str, simulator: &str, speed: &Speed, ratio: Option<f64>) {
    let ratio = ratio.map_or(String::new(), |r| format!("{r:.1}"));
    let (hops, cpu) = (speed.hops, speed.cpu_s);
    println!("{name:30} {simulator:12} {hops:>12} {cpu:>9.3} {:>14.0} {ratio:>7}", speed.rate());
}

/// The dumbbell as an experiment file.
fn experiment_text(flows: u32, mbit: u32, queue: &str, seconds: u32) -> String {
    let limit = 2 * mbit;
    let sysctl = "sysctl -w net.ipv4.ip_forward=1";
    let plain = format!("setup = [\"{sysctl}\"]");
    let (queue, left) = match queue {
        "RED" => (
            format!(
                "queue = {{ kind = \"ns2_red\", limit = {limit}, thresh = \"25%\", maxthresh = \"75%\", queue_in_bytes = false, \
                 bytes = false, mean_pktsize = 1500, q_weight = 0.002 }}"
            ),
            plain.clone(),
        ),
        "fq_codel" => {
            (String::new(), format!("setup = [\"{sysctl}\", \"tc qdisc add dev eth1 root fq_codel\"]"))
        }
        _ => (format!("queue = {{ kind = \"ns2_droptail\", limit = {limit} }}"), plain.clone()),
    };
    let host = |name: &str, devices: &str| format!("[host.{name}]\n{devices}\n");
    let link = |ends: &str, rate: u32, delay: &str, more: &str| {
        format!(
            "[[link]]\nends = [{ends}]\nrate = \"{rate}mbit\"\ndelay = \"{delay}\"\nframing = \"ip\"\n{more}\n"
        )
    };
    [
        format!("duration = \"{seconds}s\"\nsample = \"1s\"\n"),
        host("a", "eth0 = \"10.0.1.2/24\"\nvia = \"10.0.1.1\""),
        host("l", &format!("eth0 = \"10.0.1.1/24\"\neth1 = \"10.0.2.1/24\"\nvia = \"10.0.2.2\"\n{left}")),
        host("r", &format!("eth0 = \"10.0.2.2/24\"\neth1 = \"10.0.3.1/24\"\nvia = \"10.0.2.1\"\n{plain}")),
        host("b", "eth0 = \"10.0.3.2/24\"\nvia = \"10.0.3.1\""),
        link("\"a:eth0\", \"l:eth0\"", 10_000, "0.1ms", ""),
        link("\"l:eth1\", \"r:eth0\"", mbit, "10ms", &queue),
        link("\"r:eth1\", \"b:eth0\"", 10_000, "0.1ms", ""),
        format!(
            "[[flow]]\nfrom = \"a\"\nto = \"b\"\ncount = {flows}\ntcp = {{ cc = \"reno\" }}\nload = \"greedy\"\n\
             at = {{ from = \"0s\", to = \"{}ms\" }}\n",
            flows.max(2)
        ),
    ]
    .join("\n")
}

fn ours(flows: u32, mbit: u32, queue: &str, seconds: u32) -> Result<Speed> {
    let text = experiment_text(flows, mbit, queue, seconds);
    let read = experiment::parse_with(&text, "compare.toml", &|_| Err("there is no such file".to_owned()));
    let Ok(experiment) = read else { bail!("the scenario does not read: {}", read.unwrap_err()[0]) };
    let start = ProcessTime::now();
    let ran =
        run_experiment(&experiment, &mut Options { seed: Some(1), progress: &mut |_| {}, warn: &mut |_| {} });
    let cpu_s = start.elapsed().as_secs_f64();
    match ran {
        Ok(outcome) => Ok(Speed { hops: outcome.packet_hops, cpu_s }),
        Err(faults) => bail!("the scenario does not run: {}", faults[0]),
    }
}

/// Runs another simulator's script under bash, which tells the CPU it took.
fn other(program: &str, script: &str, flows: u32, mbit: u32, queue: &str, seconds: u32) -> Result<Speed> {
    let path = format!("{}/bench/{script}", env!("CARGO_MANIFEST_DIR"));
    let there = Command::new("bash").args(["-c", &format!("command -v {program}")]).output()?;
    if !there.status.success() {
        bail!("{program} is not installed");
    }
    if program == "python3"
        && !Command::new("python3").args(["-c", "from ns import ns"]).output()?.status.success()
    {
        bail!("python3 has no module ns (pip install ns3)");
    }
    let line = format!("TIMEFORMAT='cpu %U %S'; time {program} {path} {flows} {mbit} {queue} {seconds}");
    let output = Command::new("bash").args(["-c", &line]).output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let timed = String::from_utf8_lossy(&output.stderr).into_owned();
    let hops = said.lines().find_map(|l| l.strip_prefix("hops ")?.trim().parse().ok());
    let cpu: Option<f64> = timed.lines().find_map(|l| {
        let parts: Vec<f64> = l.strip_prefix("cpu ")?.split(' ').filter_map(|w| w.parse().ok()).collect();
        (parts.len() == 2).then(|| parts[0] + parts[1])
    });
    let why = timed.lines().last().unwrap_or_default().to_owned();
    // A script that knows what its start has cost tells the rest by itself.
    let own = said.lines().find_map(|l| l.strip_prefix("cpu ")?.trim().parse().ok());
    let hops = hops.with_context(|| format!("it failed: {why}"))?;
    Ok(Speed { hops, cpu_s: own.or(cpu).context("bash told no time")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenarios_run_here() {
        for queue in ["DropTail", "RED", "fq_codel"] {
            let speed = ours(2, 10, queue, 1).unwrap();
            // 10 Mbit/s are 833 packets a second, three hops each, and their acknowledgements.
            assert!((1_500..6_000).contains(&speed.hops), "{}", speed.hops);
        }
    }
}
