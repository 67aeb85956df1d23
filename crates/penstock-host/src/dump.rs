//! A machine's whole configuration as text, in the words of the programs that show it.

use crate::Host;
use penstock_model::Time;
use std::fmt::Write;

impl Host {
    /// Everything commands can change, as text: links, addresses, routes, neighbours, settings, netfilter's tables with their
    /// counters, and every device's qdiscs, classes and filters. Two machines with the same dump were configured alike.
    pub fn dump(&mut self, now: Time) -> String {
        let mut out = String::new();
        for line in [
            "ip -s link show",
            "ip address show",
            "ip route show table all",
            "ip neigh show",
            "sysctl -a",
            "tc -s -d qdisc show",
        ] {
            let _ = write!(out, "# {line}\n{}", self.exec(line, now).stdout);
        }
        out.push_str(&self.netfilter.dump());
        let _ = write!(out, "# nft list ruleset\n{}", self.netfilter.nft_ruleset());
        let devices: Vec<(String, Vec<String>)> = self
            .devices
            .iter()
            .filter(|d| !d.loopback)
            .map(|d| {
                let qdiscs = d.tree.dump_qdiscs(now);
                let classes = d.tree.dump_classes(now);
                let parents = qdiscs.iter().map(|q| q.handle).chain(classes.iter().map(|c| c.classid));
                (d.name.clone(), parents.map(|h| h.to_string()).collect())
            })
            .collect();
        for (dev, parents) in devices {
            for line in [format!("tc -s -d qdisc show dev {dev}"), format!("tc -s -d class show dev {dev}")] {
                let _ = write!(out, "# {line}\n{}", self.exec(&line, now).stdout);
            }
            for parent in parents.iter().filter(|p| *p != "none") {
                let line = format!("tc -s filter show dev {dev} parent {parent}");
                let _ = write!(out, "# {line}\n{}", self.exec(&line, now).stdout);
            }
        }
        out
    }
}
