//! Whole experiments: a network, what is set up on it, and more traffic than it carries.

use crate::tc::Kinds;
use crate::{Result, Unstructured, number, one, tc};
use std::fmt::Write as _;

/// How the machines are joined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `a` and `b`.
    Pair,
    /// `a`, a router `r`, `b`.
    Routed,
    /// `a`, `b` and `c` on one medium.
    Shared,
}

/// An experiment file of at most four seconds and a few machines.
///
/// # Errors
/// Those of [`Unstructured`] (none while it has bytes).
pub fn experiment(u: &mut Unstructured<'_>) -> Result<String> {
    let shape = match u.int_in_range(0..=5)? {
        0 | 1 => Shape::Routed,
        2 => Shape::Shared,
        _ => Shape::Pair,
    };
    let mut out = String::new();
    let ms = u.int_in_range(1..=40u32)? * 100;
    let _ = writeln!(out, "duration = \"{ms}ms\"\nseed = {}\nsetup_may_fail = true", u.int_in_range(0..=9)?);
    if u.ratio(1, 3)? {
        out.push_str("offloads = true\n");
    }
    if u.ratio(1, 4)? {
        let _ = writeln!(out, "warmup = \"{}ms\"", ms / 3);
    }
    if u.ratio(1, 6)? {
        let _ = writeln!(out, "kernel = \"2.6.35\"");
    }
    let tunnel = if u.ratio(1, 4)? { Some(one(u, &TUNNELS)?) } else { None };
    hosts(u, shape, tunnel, &mut out)?;
    links(u, shape, &mut out)?;
    traffic(u, ms, &mut out)?;
    if tunnel.is_some() {
        through(u, ms, &mut out)?;
    }
    Ok(out)
}

/// What a tunnel between `a` and `b` may be.
const TUNNELS: [&str; 6] = ["ipip", "gre", "gretap", "vxlan", "wireguard", "wireguard"];
/// Private and public keys of WireGuard.
const KEYS: [(&str, &str); 2] = [
    ("6CfEgs6v9bfsFnxXCR4Rlk2Z0N4L5vcZ0l1M8sC5gXU=", "p0bX4HgKcVUq1/Rx0kdz0lvpav3naAlUSib51N/tOzs="),
    ("OC3cVSzWTVBL6f27Vh+0hJYFhnfXmQ5TvOqWV9VXu28=", "swyyLblxjNna0JyaXXEDtwPsDw4V6tmqhC3Akh3t4zA="),
];

/// One end of a tunnel `t0`, with a queue of its own at times.
fn tunnel_end(u: &mut Unstructured<'_>, kind: &str, a: bool, shape: Shape) -> Result<Vec<String>> {
    let far = if shape == Shape::Routed { "10.0.1.2" } else { "10.0.0.2" };
    let (local, remote) = if a { ("10.0.0.1", far) } else { (far, "10.0.0.1") };
    let mut out = match kind {
        "wireguard" => {
            let (own, other) = (KEYS[usize::from(!a)].0, KEYS[usize::from(a)].1);
            let mut peer = format!("peer {other} allowed-ips 10.9.0.0/24 endpoint {remote}:51820");
            if u.ratio(1, 3)? {
                let _ = write!(peer, " persistent-keepalive {}", u.int_in_range(1..=2)?);
            }
            vec![
                "ip link add t0 type wireguard".to_owned(),
                format!("echo {own} > /etc/wireguard/key"),
                format!("wg set t0 listen-port 51820 private-key /etc/wireguard/key {peer}"),
            ]
        }
        "vxlan" => vec![format!("ip link add t0 type vxlan id 7 dstport 4789 local {local} remote {remote}")],
        _ => vec![format!("ip link add t0 type {kind} local {local} remote {remote}")],
    };
    out.push(format!("ip addr add 10.9.0.{}/24 dev t0", if a { 1 } else { 2 }));
    if u.ratio(1, 4)? {
        out.push(format!("ip link set t0 mtu {}", u.choose(&[576, 1280, 1476, 1500])?));
    }
    out.push("ip link set t0 up".to_owned());
    if u.ratio(1, 2)? {
        out.extend(tc::tree(u, "t0", Kinds::Simulated)?);
    }
    Ok(out)
}

/// Traffic through the tunnel; at times its device goes down and up again.
fn through(u: &mut Unstructured<'_>, ms: u32, out: &mut String) -> Result<()> {
    let count = number(u, 1, 20)?;
    let size = u.choose(&[8, 56, 1400, 1472, 4000])?;
    let _ = writeln!(out, "\n[[app]]\non = \"a\"\nrun = \"ping -i 0.1 -c {count} -s {size} 10.9.0.2\"");
    if u.ratio(2, 3)? {
        let udp = if u.ratio(1, 2)? { " -u -b 2m" } else { "" };
        let _ =
            writeln!(out, "\n[[app]]\non = \"b\"\nrun = \"iperf -s -p 7001{}\"", &udp[..udp.len().min(3)]);
        let _ = writeln!(out, "\n[[app]]\non = \"a\"\nrun = \"iperf -c 10.9.0.2 -p 7001{udp} -t 1\"");
    }
    if u.ratio(1, 3)? {
        let down = u.int_in_range(0..=ms - 1)?;
        for (at, state) in [(down, "down"), ((down + 100).min(ms - 1), "up")] {
            let on = one(u, &["a", "b"])?;
            let _ =
                writeln!(out, "\n[[app]]\non = \"{on}\"\nrun = \"ip link set t0 {state}\"\nat = \"{at}ms\"");
        }
    }
    Ok(())
}

/// A machine: its name, its devices with their addresses, its gateway.
type Host = (&'static str, &'static [(&'static str, &'static str)], Option<&'static str>);

fn hosts(u: &mut Unstructured<'_>, shape: Shape, tunnel: Option<&str>, out: &mut String) -> Result<()> {
    let devices: &[Host] = match shape {
        Shape::Pair => &[("a", &[("eth0", "10.0.0.1/24")], None), ("b", &[("eth0", "10.0.0.2/24")], None)],
        Shape::Routed => &[
            ("a", &[("eth0", "10.0.0.1/24")], Some("10.0.0.254")),
            ("r", &[("eth0", "10.0.0.254/24"), ("eth1", "10.0.1.254/24")], None),
            ("b", &[("eth0", "10.0.1.2/24")], Some("10.0.1.254")),
        ],
        Shape::Shared => &[
            ("a", &[("eth0", "10.0.0.1/24")], None),
            ("b", &[("eth0", "10.0.0.2/24")], None),
            ("c", &[("eth0", "10.0.0.3/24")], None),
        ],
    };
    for (name, cards, via) in devices {
        let _ = writeln!(out, "\n[host.{name}]");
        for (dev, address) in *cards {
            match u.int_in_range(0..=7)? {
                0 => {
                    let mtu = u.choose(&[296, 576, 1280, 9000])?;
                    let _ = writeln!(out, "{dev} = {{ address = \"{address}\", mtu = {mtu} }}");
                }
                1 => {
                    let n = number(u, 0, 100)?;
                    let _ = writeln!(out, "{dev} = {{ address = \"{address}\", txqueuelen = {n} }}");
                }
                _ => {
                    let _ = writeln!(out, "{dev} = \"{address}\"");
                }
            }
        }
        if let Some(via) = via {
            let _ = writeln!(out, "via = \"{via}\"");
        }
        if u.ratio(1, 8)? {
            let _ = writeln!(out, "cost = \"{}us\"", u.int_in_range(1..=200)?);
        }
        let mut setup = Vec::new();
        if *name == "r" {
            setup.push("sysctl -w net.ipv4.ip_forward=1".to_owned());
        }
        if u.ratio(1, 4)? {
            let cc = one(u, &["reno", "cubic", "bbr"])?;
            setup.push(format!("sysctl -w net.ipv4.tcp_congestion_control={cc}"));
        }
        for (dev, _) in *cards {
            if u.ratio(2, 3)? {
                setup.extend(tc::tree(u, dev, Kinds::Simulated)?);
            }
            if u.ratio(1, 4)? {
                setup.extend(tc::hooks(u, dev, Kinds::Simulated)?);
            }
        }
        if let Some(kind) = tunnel.filter(|_| matches!(*name, "a" | "b")) {
            setup.extend(tunnel_end(u, kind, *name == "a", shape)?);
        }
        if u.ratio(1, 6)? {
            let (table, chain) = (one(u, &["mangle", "filter"])?, one(u, &["OUTPUT", "INPUT", "FORWARD"])?);
            let target = if table == "mangle" { "MARK --set-mark 1" } else { "DROP" };
            setup
                .push(format!("iptables -t {table} -A {chain} -p {} -j {target}", one(u, &["udp", "icmp"])?));
        }
        if !setup.is_empty() {
            let _ = writeln!(out, "setup = \"\"\"\n{}\n\"\"\"", setup.join("\n"));
        }
    }
    Ok(())
}

fn links(u: &mut Unstructured<'_>, shape: Shape, out: &mut String) -> Result<()> {
    let all: &[&[&str]] = match shape {
        Shape::Pair => &[&["a:eth0", "b:eth0"]],
        Shape::Routed => &[&["a:eth0", "r:eth0"], &["r:eth1", "b:eth0"]],
        Shape::Shared => &[&["a:eth0", "b:eth0", "c:eth0"]],
    };
    for ends in all {
        let ring = if u.ratio(1, 5)? { number(u, 0, 64)? } else { 0 };
        let mut names: Vec<String> = ends.iter().map(|end| format!("\"{end}\"")).collect();
        if ring > 0 {
            let tx = u.int_in_range(1..=ring)?;
            let bql = u.ratio(1, 2)?;
            names[0] = format!("{{ end = \"{}\", ring = {ring}, tx_frames = {tx}, bql = {bql} }}", ends[0]);
        }
        let _ = writeln!(out, "\n[[link]]\nends = [{}]", names.join(", "));
        // A medium that is shared, and most others, have a rate.
        if shape == Shape::Shared || u.ratio(7, 8)? {
            let rate = one(u, &["64kbit", "500kbit", "1mbit", "2mbit", "5mbit", "10mbit", "30mbit"])?;
            let _ = writeln!(out, "rate = \"{rate}\"");
        }
        let _ = writeln!(out, "delay = \"{}us\"", u.choose(&[0u32, 1, 100, 1000, 5000, 20_000, 100_000])?);
        if u.ratio(1, 4)? {
            let _ = writeln!(out, "loss = \"{}%\"", u.int_in_range(1..=30)?);
        }
        if u.ratio(1, 6)? {
            let _ = writeln!(out, "framing = \"{}\"", one(u, &["none", "ip", "ethernet"])?);
        }
        if shape != Shape::Shared && u.ratio(1, 8)? {
            let _ = writeln!(out, "duplex = \"half\"");
        }
        if u.ratio(1, 8)? {
            let _ = writeln!(out, "ecn = \"{}\"", one(u, &["bleach", "unmark"])?);
        }
    }
    Ok(())
}

/// What a flow sends: datagrams, or a connection with its settings.
pub(crate) fn load(u: &mut Unstructured<'_>, out: &mut String) -> Result<()> {
    if u.ratio(1, 2)? {
        let load = match u.int_in_range(0..=5)? {
            0 => format!(
                "{{ size = {}, gap = \"{}us\" }}",
                u.int_in_range(1..=1472)?,
                u.int_in_range(200..=20_000)?
            ),
            // Fragments.
            1 => format!(
                "{{ size = {}, gap = \"{}ms\" }}",
                u.int_in_range(1473..=20_000)?,
                u.int_in_range(2..=50)?
            ),
            2 => format!(
                "{{ size = {}, gap = \"1ms\", on = \"50ms\", off = \"{}ms\" }}",
                u.int_in_range(10..=3000)?,
                u.int_in_range(1..=200)?
            ),
            3 => "{ echo = \"20ms\" }".to_owned(),
            _ => format!("\"{}\"", one(u, &["64kbit", "500kbit", "2mbit", "8mbit"])?),
        };
        let _ = writeln!(out, "udp = true\nload = {load}");
    } else {
        let load = match u.int_in_range(0..=4)? {
            0 => format!("{{ bytes = \"{}\" }}", number(u, 1, 300_000)?),
            1 => format!(
                "{{ pages = \"{}\", think = \"{}ms\" }}",
                number(u, 1, 60_000)?,
                u.int_in_range(0..=200)?
            ),
            2 => {
                format!("{{ size = {}, gap = \"{}us\" }}", number(u, 1, 5000)?, u.int_in_range(50..=20_000)?)
            }
            _ => "\"greedy\"".to_owned(),
        };
        let cc = one(u, &["reno", "cubic", "bbr"])?;
        let sndbuf =
            if u.ratio(1, 4)? { format!(", sndbuf = {}", number(u, 256, 100_000)?) } else { String::new() };
        let _ = writeln!(
            out,
            "tcp = {{ cc = \"{cc}\", ecn = {}, sack = {}{sndbuf} }}\nload = {load}",
            u.arbitrary::<bool>()?,
            u.arbitrary::<bool>()?
        );
    }
    Ok(())
}

fn traffic(u: &mut Unstructured<'_>, ms: u32, out: &mut String) -> Result<()> {
    for _ in 0..u.int_in_range(1..=5)? {
        let (from, to) = if u.ratio(2, 3)? { ("a", "b") } else { ("b", "a") };
        let _ = writeln!(out, "\n[[flow]]\nfrom = \"{from}\"\nto = \"{to}\"");
        let start = if u.ratio(1, 3)? { u.int_in_range(0..=ms - 1)? } else { 0 };
        let _ = writeln!(out, "at = \"{start}ms\"");
        load(u, out)?;
        if u.ratio(1, 3)? {
            let _ = writeln!(out, "count = {}", u.int_in_range(2..=6)?);
        }
        if u.ratio(1, 3)? {
            let _ = writeln!(out, "tos = {}", u.choose(&[0x10, 0xb8, 0x28, 0x02])?);
        }
        if u.ratio(1, 4)? {
            let _ = writeln!(out, "mark = {}", u.int_in_range(1..=3)?);
        }
    }
    for _ in 0..u.int_in_range(0..=3)? {
        let at = u.int_in_range(0..=ms - 1)?;
        let on = one(u, &["a", "b"])?;
        let run = match u.int_in_range(0..=4)? {
            0 => format!(
                "ping -c {} -s {} {}",
                number(u, 1, 20)?,
                u.choose(&[8, 56, 1472, 4000])?,
                if on == "a" { "b" } else { "a" }
            ),
            1 => format!("ping -c {} 127.0.0.1", number(u, 1, 20)?),
            _ => tc::change(u, "eth0", Kinds::Simulated)?,
        };
        let _ = writeln!(out, "\n[[app]]\non = \"{on}\"\nrun = \"{run}\"\nat = \"{at}ms\"");
    }
    if u.ratio(1, 5)? {
        let udp = if u.ratio(1, 2)? { " -u -b 3m" } else { "" };
        let (server, to) = if u.ratio(1, 6)? { ("a", "127.0.0.1") } else { ("b", "b") };
        let _ = writeln!(
            out,
            "\n[[app]]\non = \"{server}\"\nrun = \"iperf -s{}\"",
            if udp.is_empty() { "" } else { " -u" }
        );
        let _ = writeln!(out, "\n[[app]]\non = \"a\"\nrun = \"iperf -c {to}{udp} -t 1\"");
    }
    Ok(())
}
