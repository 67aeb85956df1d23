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
        if !self.nexthops.is_empty() {
            let _ = write!(out, "# ip nexthop\n{}", self.exec("ip nexthop", now).stdout);
        }
        out.push_str(&self.netfilter.dump());
        let _ = write!(out, "# nft list ruleset\n{}", self.netfilter.nft_ruleset(now));
        let devices: Vec<(String, Vec<String>)> = self
            .devices
            .iter()
            .filter(|d| !d.loopback)
            .map(|d| (d.name.clone(), self.filter_shows(d, now)))
            .collect();
        for spec in penstock_sched::act::KINDS {
            let line = format!("tc -s actions ls action {}", spec.id);
            let text = self.exec(&line, now).stdout;
            if !text.is_empty() {
                let _ = write!(out, "# {line}\n{text}");
            }
        }
        for (dev, filters) in devices {
            let own = ["qdisc", "class"].map(|what| format!("tc -s -d {what} show dev {dev}"));
            for line in own.into_iter().chain(filters) {
                let _ = write!(out, "# {line}\n{}", self.exec(&line, now).stdout);
            }
        }
        out
    }
}
