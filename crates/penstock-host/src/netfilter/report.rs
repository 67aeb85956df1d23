//! What of the rules does nothing to packets here that it does in Linux, in sentences. LOG and its kin do nothing to them there either.

use super::Netfilter;
use super::mss::Mss;
use super::nat::Nat;
use penstock_lang::iptables::{Family, Match, Table, Target};
use std::collections::BTreeSet;

impl Netfilter {
    /// One sentence for each thing that is configured and not simulated, in a fixed order.
    pub fn unsimulated(&self) -> Vec<String> {
        let mut out = BTreeSet::new();
        for family in [Family::Ip, Family::Ip6] {
            let tool = family.program();
            for table in Table::ALL {
                for counted in self.table(family, table).chains().iter().flat_map(|c| &c.rules) {
                    let rule = &counted.rule;
                    for m in &rule.matches {
                        if let Match::Plain(p) = m {
                            let name = &p.name;
                            out.insert(format!(
                                "{tool} -m {name}: not simulated; a rule with it matches no packet"
                            ));
                        }
                    }
                    match &rule.target {
                        Target::Plain(p) if Nat::of_target(p, family).is_some() => {}
                        Target::Plain(p) if Mss::of_target(p).is_some() => {}
                        Target::Plain(p) if p.name == "NFQUEUE" => {
                            out.insert(format!(
                                "{tool} -j NFQUEUE: no program listens; packets are dropped, or pass by with --queue-bypass"
                            ));
                        }
                        Target::Set(_, t) if t.map_queue => {
                            out.insert(format!(
                                "{tool} -j SET --map-queue: not simulated; a card of several queues chooses by the packet's hash"
                            ));
                        }
                        Target::Plain(p) => {
                            let name = &p.name;
                            out.insert(format!("{tool} -j {name}: not simulated; packets go on as they are"));
                        }
                        _ => {}
                    }
                }
            }
        }
        out.extend(self.ipchains.unsimulated());
        out.extend(self.nft.unsimulated());
        out.into_iter().collect()
    }
}
