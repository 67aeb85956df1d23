//! Whole experiments, from the file to the report. Packets come every 20 µs, however many things there are.

use super::{Case, Packets, Work};
use anyhow::{Result, bail};
use penstock_lab::experiment;
use penstock_lab::run::{Options, run as run_experiment};
use std::fmt::Write as _;

pub(super) const CASES: &[Case] = &[
    Case {
        name: "flows",
        about: "flows of datagrams",
        some: 200,
        work: Work::Experiment(flows),
        packets: Packets::Flat,
    },
    Case {
        name: "sockets",
        about: "TCP connections",
        some: 200,
        work: Work::Experiment(sockets),
        packets: Packets::Flat,
    },
    Case {
        name: "hosts",
        about: "hosts around a router",
        some: 100,
        work: Work::Experiment(hosts),
        packets: Packets::Flat,
    },
    Case {
        name: "classes",
        about: "htb classes with fq_codel, by mark",
        some: 200,
        work: Work::Experiment(classes),
        packets: Packets::Flat,
    },
    Case {
        name: "samples",
        about: "samples of 20 flows",
        some: 50,
        work: Work::Experiment(samples),
        packets: Packets::None,
    },
    Case {
        name: "late",
        about: "flows that start one after the other, sampled",
        some: 50,
        work: Work::Experiment(late),
        packets: Packets::None,
    },
    Case {
        name: "idle",
        about: "devices without traffic",
        some: 100,
        work: Work::Experiment(idle),
        packets: Packets::Flat,
    },
    Case {
        name: "medium",
        about: "stations on one medium",
        some: 50,
        work: Work::Experiment(medium),
        packets: Packets::Flat,
    },
    Case { name: "apps", about: "programs", some: 50, work: Work::Experiment(apps), packets: Packets::None },
    Case {
        name: "lines",
        about: "lines of a setup",
        some: 500,
        work: Work::Experiment(lines),
        packets: Packets::None,
    },
    Case {
        name: "batch",
        about: "lines of a file for tc -batch",
        some: 500,
        work: Work::Experiment(batch),
        packets: Packets::None,
    },
];

/// Reads, runs and writes an experiment; answers packets over links.
pub fn run(text: &str) -> Result<u64> {
    let read = experiment::parse_with(text, "growth.toml", &|_| Err("there is no such file".to_owned()));
    let Ok(experiment) = read else { bail!("the case does not read: {}", read.unwrap_err()[0]) };
    let ran =
        run_experiment(&experiment, &mut Options { seed: Some(1), progress: &mut |_| {}, warn: &mut |_| {} });
    let outcome = match ran {
        Ok(outcome) => outcome,
        Err(faults) => bail!("the case does not run: {}", faults[0]),
    };
    let folder = std::env::temp_dir().join(format!("penstock-growth-{}", std::process::id()));
    let written = outcome.write(&folder).map_err(anyhow::Error::msg);
    std::fs::remove_dir_all(&folder)?;
    written?;
    Ok(outcome.packet_hops)
}

/// One packet in 20 µs, 1 ms at least.
fn head(packets: u32, sample: &str) -> String {
    format!("duration = \"{}us\"\nsample = \"{sample}\"\n", (packets * 20).max(1000))
}
/// What each of `n` sends, so that all together send a datagram of 125 bytes in 20 µs.
fn rate(n: u32) -> String {
    format!("{}bit", 50_000_000 / u64::from(n))
}
/// When each of `n` begins, so that they do not go in step.
fn begin(n: u32) -> String {
    format!("{{ from = \"0s\", to = \"{}us\" }}", 20 * n)
}
fn udp(from: &str, to: &str, count: u32, all: u32, more: &str) -> String {
    let (rate, at) = (rate(all), begin(all));
    format!(
        "[[flow]]\nfrom = \"{from}\"\nto = \"{to}\"\nudp = true\ncount = {count}\nat = {at}\n\
         load = {{ rate = \"{rate}\", size = 125 }}\n{more}\n"
    )
}
const PAIR: &str = "[host.a]\neth0 = \"10.0.0.1/24\"\n[host.b]\neth0 = \"10.0.0.2/24\"\n\
                    [[link]]\nends = [\"a:eth0\", \"b:eth0\"]\nrate = \"1gbit\"\ndelay = \"20us\"\n";

fn flows(n: u32, packets: u32) -> String {
    head(packets, "10s") + PAIR + &udp("a", "b", n, n, "")
}

fn sockets(n: u32, packets: u32) -> String {
    let (rate, at) = (rate(n), begin(n));
    head(packets, "10s")
        + PAIR
        + &format!(
            "[[flow]]\nfrom = \"a\"\nto = \"b\"\ncount = {n}\nat = {at}\nload = {{ rate = \"{rate}\", size = 125 }}\n"
        )
}

fn hosts(n: u32, packets: u32) -> String {
    let mut text = head(packets, "10s");
    let mut router = String::from("[host.r]\nsetup = [\"sysctl -w net.ipv4.ip_forward=1\"]\n");
    for i in 0..n {
        for side in [1, 2] {
            let net = format!("10.{}.{}", side * 100 + i / 250, i % 250);
            let _ = writeln!(router, "e{side}x{i} = \"{net}.1/24\"");
            let _ = writeln!(text, "[host.h{side}x{i}]\neth0 = \"{net}.2/24\"\nvia = \"{net}.1\"");
            let _ = writeln!(
                text,
                "[[link]]\nends = [\"h{side}x{i}:eth0\", \"r:e{side}x{i}\"]\nrate = \"1gbit\""
            );
        }
        text += &udp(&format!("h1x{i}"), &format!("h2x{i}"), 1, n, "");
    }
    text + &router
}

fn classes(n: u32, packets: u32) -> String {
    let mut text = head(packets, "10s") + PAIR;
    let mut setup = String::from("tc qdisc add dev eth0 root handle 1: htb default 1\n");
    for i in 1..=n {
        let _ = writeln!(
            setup,
            "tc class add dev eth0 parent 1: classid 1:{i:x} htb rate 1mbit ceil 100mbit quantum 1500"
        );
        let _ = writeln!(setup, "tc qdisc add dev eth0 parent 1:{i:x} fq_codel flows 16");
        text += &udp("a", "b", 1, n, &format!("mark = {}", 0x1_0000 + i));
    }
    // Without a class a mark is the class itself.
    setup += "tc filter add dev eth0 parent 1: protocol ip fw\n";
    text.replace("[host.b]", &format!("setup = '''\n{setup}'''\n[host.b]"))
}

fn samples(n: u32, packets: u32) -> String {
    let _ = packets;
    format!("duration = \"{n}ms\"\nsample = \"1ms\"\n") + PAIR + &udp("a", "b", 20, 20_000, "")
}

fn late(n: u32, packets: u32) -> String {
    let _ = packets;
    let mut text = format!("duration = \"{}ms\"\nsample = \"25ms\"\n", 1000) + PAIR;
    for i in 0..n {
        let _ = writeln!(
            text,
            "[[flow]]\nfrom = \"a\"\nto = \"b\"\nat = \"{}us\"\nload = {{ bytes = \"3k\" }}",
            900_000 / n * (n - i)
        );
    }
    text
}

fn idle(n: u32, packets: u32) -> String {
    let mut text = head(packets, "10s") + PAIR;
    text += &udp("a", "b", 1, 1, "");
    let devices: String = (0..n).map(|i| format!("d{i} = []\n")).collect();
    text.replace("[host.b]", &format!("{devices}[host.b]"))
}

fn medium(n: u32, packets: u32) -> String {
    let mut text = head(packets, "10s");
    let mut ends = Vec::new();
    for i in 0..n + 2 {
        let _ = writeln!(text, "[host.h{i}]\neth0 = \"10.0.{}.{}/16\"", i / 250, i % 250 + 1);
        ends.push(format!("\"h{i}:eth0\""));
    }
    let _ = writeln!(text, "[[link]]\nends = [{}]\nrate = \"1gbit\"", ends.join(", "));
    text + &udp("h0", "h1", 1, 1, "")
}

fn apps(n: u32, packets: u32) -> String {
    let _ = packets;
    let mut text = String::from("duration = \"100ms\"\nsample = \"10s\"\n") + PAIR;
    for _ in 0..n {
        text += "[[app]]\non = \"a\"\nrun = \"ping -c 1 10.0.0.2\"\n";
    }
    text
}

fn lines(n: u32, packets: u32) -> String {
    let mut setup = String::from("tc qdisc add dev eth0 root handle 1: drr\n");
    for i in 1..=n {
        let _ = writeln!(setup, "tc class add dev eth0 parent 1: classid 1:{i:x} drr");
    }
    let text = head(packets, "10s") + PAIR;
    text.replace("[host.b]", &format!("setup = '''\n{setup}'''\n[host.b]"))
}

fn batch(n: u32, packets: u32) -> String {
    let mut setup = String::from("tc qdisc add dev eth0 root handle 1: drr\ntc -batch - <<'END'\n");
    for i in 1..=n {
        let _ = writeln!(setup, "class add dev eth0 parent 1: classid 1:{i:x} drr");
    }
    setup += "END\n";
    let text = head(packets, "10s") + PAIR;
    text.replace("[host.b]", &format!("setup = '''\n{setup}'''\n[host.b]"))
}
