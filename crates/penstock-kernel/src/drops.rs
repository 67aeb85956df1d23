//! Packets lost, by cause, as far as the kernel tells.
//!
//! The words are the simulator's: a place and a reason. Qdiscs tell how many they dropped but seldom why: where a kind drops only for its limit
//! the reason is `overlimit`, at the ingress hook it is `filter`, else `dropped`. What a parent counts beyond its children is its own.
//! Further sources: `/proc/net/dev`, `/proc/net/snmp` and `/proc/net/netstat` of the machine's namespace, and `iptables-save -c`.

use crate::exec;
use crate::stats::Object;

/// Packets lost at one place for one reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// Device; empty where it is not known.
    pub dev: String,
    /// Place: `qdisc`, `ingress`, `netif`, `ip_rcv`, `ip_forward`, `ip_output`, `ip_local_deliver`, `ip_defrag`, `socket`, `link`, a chain.
    pub place: String,
    /// Reason in a word.
    pub reason: &'static str,
    /// How many.
    pub packets: u64,
}

/// Kinds that drop for nothing but their limit.
const LIMITED: &[&str] = &["bfifo", "pfifo", "pfifo_fast", "pfifo_head_drop", "sfq", "netem"];

/// Counters of `/proc/net/snmp` and `/proc/net/netstat`: protocol, counter, place and reason.
const COUNTERS: &[(&str, &str, &str, &str)] = &[
    ("Ip", "InHdrErrors", "ip_forward", "ttl-or-header"),
    ("Ip", "InAddrErrors", "ip_forward", "not-forwarding"),
    ("Ip", "InUnknownProtos", "ip_local_deliver", "no-protocol"),
    ("Ip", "InDiscards", "ip_rcv", "discarded"),
    ("Ip", "OutDiscards", "ip_output", "discarded"),
    ("Ip", "OutNoRoutes", "ip_output", "no-route"),
    ("Ip", "ReasmFails", "ip_defrag", "timeout"),
    ("Ip", "FragFails", "ip_forward", "frag-needed"),
    ("IpExt", "InNoRoutes", "ip_forward", "net-unreachable"),
    ("Udp", "NoPorts", "socket", "no-port"),
    ("Udp", "InCsumErrors", "socket", "checksum"),
    ("Udp", "RcvbufErrors", "socket", "receive-buffer"),
    ("Udp", "SndbufErrors", "socket", "send-buffer"),
    ("TcpExt", "ListenDrops", "socket", "listen"),
    ("TcpExt", "TCPBacklogDrop", "socket", "backlog"),
    ("TcpExt", "TCPRcvQDrop", "socket", "receive-buffer"),
    ("TcpExt", "TCPOFODrop", "socket", "out-of-order"),
];

/// Everything lost in a machine's namespace. `objects`: the qdiscs and classes of each of its devices.
pub fn read(namespace: &str, devices: &[(String, Vec<Object>)]) -> Vec<Lost> {
    let text = |path: &str| exec::run(Some(namespace), &["cat", path]).unwrap_or_default();
    let mut all: Vec<Lost> = devices.iter().flat_map(|(dev, objects)| of_qdiscs(dev, objects)).collect();
    let known = |name: &str| devices.iter().any(|d| d.0 == name);
    all.extend(of_devices(&text("/proc/net/dev")).into_iter().filter(|l| known(&l.dev)));
    all.extend(of_counters(&text("/proc/net/snmp")));
    all.extend(of_counters(&text("/proc/net/netstat")));
    if exec::has("iptables-save") {
        all.extend(of_rules(&exec::run(Some(namespace), &["iptables-save", "-c"]).unwrap_or_default()));
    }
    all
}

/// What the qdiscs of a link's device lost: chance is `netem`'s, the rest stood in the sender's queue too long.
pub fn of_link(dev: &str, objects: &[Object]) -> Vec<Lost> {
    let by_kind = |kind: &str| -> u64 {
        objects.iter().filter(|o| !o.is_class && o.kind == kind).map(|o| o.drops).sum()
    };
    let lost = [("loss", by_kind("netem")), ("overlimit", by_kind("pfifo"))];
    let row = |(reason, packets)| Lost { dev: dev.to_owned(), place: "link".to_owned(), reason, packets };
    lost.into_iter().filter(|l| l.1 > 0).map(row).collect()
}

/// Each qdisc's own drops.
fn of_qdiscs(dev: &str, objects: &[Object]) -> Vec<Lost> {
    let mut all: Vec<Lost> = Vec::new();
    for qdisc in objects.iter().filter(|o| !o.is_class && o.drops > 0) {
        let inside = |o: &&Object| !o.is_class && o.id != qdisc.id && o.parent.starts_with(&qdisc.id);
        let below: u64 = objects.iter().filter(inside).map(|o| o.drops).sum();
        let own = qdisc.drops.saturating_sub(below);
        let (place, reason) = match qdisc.kind.as_str() {
            "ingress" | "clsact" => ("ingress", "filter"),
            kind if LIMITED.contains(&kind) => ("qdisc", "overlimit"),
            _ => ("qdisc", "dropped"),
        };
        match all.iter_mut().find(|l| l.place == place && l.reason == reason) {
            Some(known) => known.packets += own,
            None => all.push(Lost { dev: dev.to_owned(), place: place.to_owned(), reason, packets: own }),
        }
    }
    all.retain(|l| l.packets > 0);
    all
}

/// `/proc/net/dev`: the columns `drop` of both sides.
fn of_devices(text: &str) -> Vec<Lost> {
    let mut all = Vec::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let numbers: Vec<u64> = rest.split_whitespace().filter_map(|w| w.parse().ok()).collect();
        for (column, reason) in [(3, "received"), (11, "sent")] {
            if let Some(&packets) = numbers.get(column).filter(|&&n| n > 0) {
                all.push(Lost { dev: name.trim().to_owned(), place: "netif".to_owned(), reason, packets });
            }
        }
    }
    all
}

/// Pairs of lines: names, then values, each behind its protocol.
fn of_counters(text: &str) -> Vec<Lost> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    for pair in lines.chunks(2) {
        let [names, values] = pair else { continue };
        let (Some((protocol, names)), Some((_, values))) = (names.split_once(':'), values.split_once(':'))
        else {
            continue;
        };
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            let known = COUNTERS.iter().find(|c| c.0 == protocol && c.1 == name);
            let packets = value.parse().unwrap_or(0);
            if let (Some(&(_, _, place, reason)), true) = (known, packets > 0) {
                all.push(Lost { dev: String::new(), place: place.to_owned(), reason, packets });
            }
        }
    }
    all
}

/// `iptables-save -c`: policies and rules that drop or reject, by chain.
fn of_rules(text: &str) -> Vec<Lost> {
    let mut all: Vec<Lost> = Vec::new();
    for line in text.lines() {
        let counted = |part: &str| part.trim_matches(['[', ']']).split(':').next()?.parse::<u64>().ok();
        let words: Vec<&str> = line.split_whitespace().collect();
        let found = match words.as_slice() {
            [chain, "DROP", counts] if chain.starts_with(':') => counted(counts).map(|n| (&chain[1..], n)),
            [counts, "-A", chain, rule @ ..] if counts.starts_with('[') => {
                let target = rule.windows(2).find(|w| w[0] == "-j").map(|w| w[1]);
                counted(counts).filter(|_| matches!(target, Some("DROP" | "REJECT"))).map(|n| (*chain, n))
            }
            _ => None,
        };
        let Some((chain, packets)) = found.filter(|f| f.1 > 0) else { continue };
        match all.iter_mut().find(|l| l.place == chain) {
            Some(known) => known.packets += packets,
            None => {
                let (dev, place) = (String::new(), chain.to_owned());
                all.push(Lost { dev, place, reason: "dropped", packets });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(all: &[Lost]) -> Vec<String> {
        all.iter().map(|l| format!("{} {} {} {}", l.dev, l.place, l.reason, l.packets)).collect()
    }

    #[test]
    fn a_parent_counts_only_what_its_children_did_not() {
        let object = |kind: &str, id: &str, parent: &str, drops| Object {
            kind: kind.to_owned(),
            id: id.to_owned(),
            parent: parent.to_owned(),
            drops,
            ..Object::default()
        };
        let objects = [
            object("htb", "1:", "root", 12),
            object("pfifo", "10:", "1:10", 7),
            object("tbf", "20:", "1:20", 3),
            object("bfifo", "0:", "20:1", 1),
            object("ingress", "ffff:", "ffff:fff1", 4),
        ];
        assert_eq!(
            said(&of_qdiscs("eth0", &objects)),
            ["eth0 qdisc dropped 4", "eth0 qdisc overlimit 8", "eth0 ingress filter 4"]
        );
    }

    #[test]
    fn counters_are_read_by_their_names() {
        let text = "Ip: Forwarding InHdrErrors OutNoRoutes\nIp: 1 3 0\nUdp: InDatagrams NoPorts\nUdp: 5 2\n";
        assert_eq!(said(&of_counters(text)), [" ip_forward ttl-or-header 3", " socket no-port 2"]);
        let text = "Inter-|   Receive\n face |bytes\n  eth0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        assert_eq!(said(&of_devices(text)), ["eth0 netif received 4", "eth0 netif sent 12"]);
    }

    #[test]
    fn rules_and_policies_are_counted_by_chain() {
        let text = "*filter\n:INPUT ACCEPT [9:90]\n:FORWARD DROP [2:20]\n[3:30] -A FORWARD -p udp -j DROP\n[4:40] -A FORWARD -j LOG\n\
            [1:1] -A out -j REJECT --reject-with icmp-port-unreachable\nCOMMIT\n";
        assert_eq!(said(&of_rules(text)), [" FORWARD dropped 5", " out dropped 1"]);
    }

    #[test]
    fn a_link_loses_by_chance_or_at_the_sender() {
        let object = |kind: &str, drops| Object { kind: kind.to_owned(), drops, ..Object::default() };
        let objects = [object("netem", 3), object("htb", 5), object("pfifo", 5)];
        assert_eq!(said(&of_link("eth0", &objects)), ["eth0 link loss 3", "eth0 link overlimit 5"]);
    }
}
