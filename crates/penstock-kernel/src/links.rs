//! Links: for each a namespace of its own between its ends, in which the link's rate, delay and loss are made.
//!
//! A device under test is one end of a veth pair and carries nothing of ours. The other end lies in the link's namespace. Two ends are joined by
//! `tc … mirred egress redirect`, more by a bridge. What goes towards an end passes `htb` at the link's rate with three bands by ToS as
//! `pfifo_fast` has them, each `txqueuelen` packets long: this is where a sender's queue builds, because a veth device takes every
//! packet at once. Then, on the device that leads to the end, `netem`: the packet's time on the wire, delay, loss. Where the kernel has no
//! `netem`, a process of ours carries the frames and keeps the delay ([`crate::wire`]), and a packet's own time on the wire is left out.

use crate::exec;
use crate::names;
use crate::needs::Kinds;
use crate::plan::{Link, Plan};
use penstock_model::{Rate, Span};
use std::process::Child;

/// What is on the way to one end.
struct Way {
    rate: Option<Rate>,
    delay: Span,
    loss_ppb: u32,
    queue: u32,
}

/// Queue of a device nobody gave a length, packets.
const TXQUEUELEN: u32 = 1000;
/// Preamble, start delimiter, FCS and gap, bytes on the wire that a qdisc does not count.
const ETHERNET: &str = "overhead 24 mpu 84";

/// Makes the namespaces of all links and the devices of the machines, whose indices begin with `first`; gives the processes that carry frames.
pub(crate) fn connect(
    plan: &Plan,
    hosts: &[String],
    first: &[usize],
    kinds: Kinds,
) -> Result<Vec<Child>, String> {
    let mut relays = Vec::new();
    for (number, link) in plan.links.iter().enumerate() {
        let name = names::part(&format!("w{number}"));
        exec::run(None, &["ip", "netns", "add", &name])?;
        join(plan, link, &name, (hosts, first), kinds)?;
        let ways: Vec<Way> = (0..link.ends.len()).map(|end| way(plan, link, end)).collect();
        let mut lines = Vec::new();
        for (end, way) in ways.iter().enumerate() {
            shape(&mut lines, end, way, plan.exact, kinds.netem);
            if kinds.netem {
                // From the machine into the link, and out of the link's queue to the machine.
                redirect(&mut lines, &format!("w{end}"), &format!("y{end}"));
                redirect(&mut lines, &format!("y{end}"), &format!("w{end}"));
            }
        }
        let slow = ways.iter().any(|w| w.delay > Span::ZERO || w.loss_ppb > 0);
        let inner = if kinds.netem { 'x' } else { 'w' };
        if slow && !kinds.netem {
            exec::batch(Some(&name), "tc", &lines)?;
            relays.push(carry(plan, link, &name, number)?);
            continue;
        }
        if link.ends.len() == 2 {
            redirect(&mut lines, &format!("{inner}0"), &format!("{inner}1"));
            redirect(&mut lines, &format!("{inner}1"), &format!("{inner}0"));
        } else {
            let mut bridge = vec![
                "link add sw type bridge stp_state 0 forward_delay 0 mcast_snooping 0".to_owned(),
                "link set sw up".to_owned(),
            ];
            bridge.extend((0..link.ends.len()).map(|end| format!("link set {inner}{end} master sw")));
            exec::batch(Some(&name), "ip", &bridge).map_err(|e| {
                format!("{e}: a link with more than two ends needs the kernel's bridge (modprobe bridge), or use --on virtual")
            })?;
        }
        exec::batch(Some(&name), "tc", &lines)?;
    }
    Ok(relays)
}

/// Index of the first end of a link in its namespace; what else is there has lower ones.
const FIRST_INDEX: usize = 1_000_000;

/// What comes in at one device goes out of another.
fn redirect(lines: &mut Vec<String>, from: &str, to: &str) {
    lines.push(format!("qdisc add dev {from} ingress"));
    lines.push(format!(
        "filter add dev {from} parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev {to}"
    ));
}

/// The pairs of a link: `w0`, `w1` … here, the machines' devices there; with `netem` a pair `x`-`y` within for each end.
fn join(
    plan: &Plan,
    link: &Link,
    name: &str,
    (hosts, first): (&[String], &[usize]),
    kinds: Kinds,
) -> Result<(), String> {
    let quiet = "for f in all default; do echo 1 >/proc/sys/net/ipv6/conf/$f/disable_ipv6; done 2>/dev/null; ip link set lo up";
    exec::run(Some(name), &["sh", "-c", quiet])?;
    let mut lines = Vec::new();
    let mut devices = Vec::new();
    for (i, end) in link.ends.iter().enumerate() {
        // The kernel heeds the peer's index where the first end has one too.
        let place = plan.hosts[end.host].place_of(&end.dev);
        let index = place.map_or(String::new(), |n| format!(" index {}", first[end.host] + n));
        let (own, host) = (FIRST_INDEX + i, &hosts[end.host]);
        lines.push(format!(
            "link add name w{i} index {own} type veth peer name {}{index} netns {host}",
            end.dev
        ));
        let mut own = vec![format!("w{i}")];
        if kinds.netem {
            lines.push(format!("link add x{i} type veth peer name y{i}"));
            own.extend([format!("x{i}"), format!("y{i}")]);
        }
        // The wire must carry whatever its ends may send.
        let mtus =
            link.ends.iter().flat_map(|e| plan.hosts[e.host].devices.iter().filter(|d| d.name == e.dev));
        let mtu = mtus.filter_map(|d| d.mtu).max().unwrap_or(0);
        for dev in own {
            let mtu = if mtu > 1500 { format!(" mtu {mtu}") } else { String::new() };
            lines.push(format!("link set {dev}{mtu} up"));
            devices.push(dev);
        }
    }
    exec::batch(Some(name), "ip", &lines)?;
    if !plan.offloads {
        for dev in devices {
            single_packets(name, &dev)?;
        }
    }
    Ok(())
}

/// Switches off what makes several packets one, and checksums that nobody fills in.
pub(crate) fn single_packets(namespace: &str, dev: &str) -> Result<(), String> {
    exec::run(Some(namespace), &["ip", "link", "set", "dev", dev, "gso_max_segs", "1"])?;
    // A feature that a kernel's veth lacks is off already.
    let words = ["ethtool", "-K", dev, "tso", "off", "gso", "off", "gro", "off", "tx", "off"];
    let _ = exec::run(Some(namespace), &words);
    Ok(())
}

/// What is on the way to end `to`: with two ends what the other one sends.
fn way(plan: &Plan, link: &Link, to: usize) -> Way {
    // Where code takes no time, a sender without any limit would never let the clock go on.
    let unlimited = plan.exact.then_some(UNLIMITED);
    let mut way =
        Way { rate: link.rate.or(unlimited), delay: link.delay, loss_ppb: link.loss_ppb, queue: TXQUEUELEN };
    if link.ends.len() == 2 {
        let from = &link.ends[1 - to];
        way.rate = from.rate.or(way.rate);
        way.delay = from.delay.unwrap_or(way.delay);
        way.loss_ppb = from.loss_ppb.unwrap_or(way.loss_ppb);
        let device = plan.hosts[from.host].devices.iter().find(|d| d.name == from.dev);
        way.queue = device.and_then(|d| d.txqueuelen).unwrap_or(TXQUEUELEN);
    }
    if !link.ethernet {
        // Marked by a rate whose frames are counted as they are; see `shape`.
        way.queue |= PLAIN;
    }
    way
}

/// Rate of a link without a limit, in exact time.
const UNLIMITED: Rate = Rate::from_bit_per_s(10_000_000_000);
/// Set in `Way::queue` for links whose frames are counted without framing.
const PLAIN: u32 = 1 << 31;

/// The commands for what leads to an end: on `x` the queue and the rate, then on `w` the time on the wire, the delay and the loss; without
/// `netem` the queue and the rate on `w`.
fn shape(lines: &mut Vec<String>, end: usize, way: &Way, exact: bool, netem: bool) {
    let plain = way.queue & PLAIN != 0;
    if netem && (way.rate.is_some() || way.delay > Span::ZERO || way.loss_ppb > 0) {
        let mut line = format!(
            "qdisc add dev w{end} root handle 1: netem limit 1000000 delay {:.3}us",
            way.delay.as_ns() as f64 / 1e3
        );
        if way.loss_ppb > 0 {
            line.push_str(&format!(" loss {:.7}%", f64::from(way.loss_ppb) / 1e7));
        }
        if let Some(rate) = way.rate {
            line.push_str(&format!(" rate {}bit {}", rate.bit_per_s(), if plain { 0 } else { 24 }));
        }
        lines.push(line);
    }
    let Some(rate) = way.rate else { return };
    let dev = format!("{}{end}", if netem { 'x' } else { 'w' });
    let bits = rate.bit_per_s();
    // A timer that comes late is made up for within a millisecond; in exact time none does.
    let burst = if exact { 1 } else { (bits / 8 / 1000).max(1600) };
    let framing = if plain { "" } else { ETHERNET };
    lines.push(format!("qdisc add dev {dev} root handle 2: htb default 11"));
    lines.push(format!(
        "class add dev {dev} parent 2: classid 2:1 htb rate {bits}bit ceil {bits}bit burst {burst}b cburst {burst}b {framing} quantum 1514"
    ));
    for band in 0..3 {
        lines.push(format!(
            "class add dev {dev} parent 2:1 classid 2:1{band} htb rate 8bit burst 1b ceil {bits}bit cburst {burst}b {framing} prio {band} quantum 1514"
        ));
        lines.push(format!(
            "qdisc add dev {dev} parent 2:1{band} pfifo limit {}",
            (way.queue & !PLAIN).max(1)
        ));
    }
    // pfifo_fast's bands by ToS: low delay first, bulk last (ip_tos2prio and prio2band in the kernel).
    for (prio, tos, class) in [(1, "0x10", "2:10"), (2, "0x08", "2:12")] {
        lines.push(format!(
            "filter add dev {dev} parent 2: protocol ip prio {prio} u32 match ip tos {tos} 0x18 flowid {class}"
        ));
    }
}

/// Starts the process that carries the frames of a link and keeps its delay and loss.
fn carry(plan: &Plan, link: &Link, name: &str, number: usize) -> Result<Child, String> {
    let program = plan.penstock.to_string_lossy().into_owned();
    let seed = format!("{}", plan.seed.wrapping_add(number as u64));
    let mut words: Vec<String> = Vec::new();
    if exec::has("chrt") {
        words.extend(["chrt", "--fifo", "5"].map(str::to_owned));
    }
    words.extend([program, "wire".to_owned(), "--seed".to_owned(), seed]);
    for (i, end) in link.ends.iter().enumerate() {
        let delay = end.delay.unwrap_or(link.delay).as_ns();
        let loss = end.loss_ppb.unwrap_or(link.loss_ppb);
        words.push(format!("w{i},{delay},{loss}"));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = exec::command(Some(name), &words);
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().map_err(|e| format!("cannot start the delay line: {e}"))?;
    // It says so when it listens.
    let mut line = String::new();
    use std::io::BufRead as _;
    if let Some(out) = child.stdout.take() {
        let _ = std::io::BufReader::new(out).read_line(&mut line);
    }
    if line.trim() != "ready" {
        let _ = child.kill();
        let _ = child.wait();
        return Err("the delay line did not start".to_owned());
    }
    Ok(child)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_is_a_queue_then_a_wire() {
        let way = Way {
            rate: Some(Rate::from_bit_per_s(10_000_000)),
            delay: Span::from_ms(5),
            loss_ppb: 1_000_000,
            queue: 7,
        };
        let mut lines = Vec::new();
        shape(&mut lines, 1, &way, true, true);
        assert_eq!(
            lines[0],
            "qdisc add dev w1 root handle 1: netem limit 1000000 delay 5000.000us loss 0.1000000% rate 10000000bit 24"
        );
        assert_eq!(lines[1], "qdisc add dev x1 root handle 2: htb default 11");
        assert!(lines[2].contains("rate 10000000bit ceil 10000000bit burst 1b"), "{}", lines[2]);
        assert_eq!(lines.iter().filter(|l| l.ends_with("pfifo limit 7")).count(), 3);
        let mut late = Vec::new();
        shape(&mut late, 0, &way, false, false);
        assert!(late[0].contains("w0 root handle 2: htb") && late[1].contains("burst 1600b"), "{late:?}");
    }
}
