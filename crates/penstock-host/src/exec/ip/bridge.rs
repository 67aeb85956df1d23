//! `type bridge` and `type bridge_slave`: what the words after it set.
//!
//! Follows: iproute2 6.12 `ip/iplink_bridge.c`, `ip/iplink_bridge_slave.c`; linux v6.12 `net/bridge/br_netlink.c` `br_changelink`, `br_setport`.
//! Differs: what is about the spanning tree, IGMP, VLANs and netfilter is kept where it is as it was, and told before a run where it is not.

use super::says;
use crate::Host;
use penstock_lang::ip::Failure;
use penstock_model::Span;

/// Words of a bridge that have a value, and the value that changes nothing; empty: any.
const BRIDGE: [(&str, &str); 36] = [
    ("forward_delay", ""),
    ("hello_time", ""),
    ("max_age", ""),
    ("ageing_time", ""),
    ("stp_state", "0"),
    ("mst_enabled", "0"),
    ("priority", ""),
    ("vlan_filtering", "0"),
    ("vlan_protocol", ""),
    ("group_fwd_mask", "0"),
    ("group_address", ""),
    ("fdb_max_learned", "0"),
    ("vlan_default_pvid", ""),
    ("vlan_stats_enabled", ""),
    ("vlan_stats_per_port", ""),
    ("mcast_router", ""),
    ("mcast_snooping", ""),
    ("mcast_vlan_snooping", "0"),
    ("mcast_query_use_ifaddr", ""),
    ("mcast_querier", "0"),
    ("mcast_hash_elasticity", ""),
    ("mcast_hash_max", ""),
    ("mcast_last_member_count", ""),
    ("mcast_startup_query_count", ""),
    ("mcast_last_member_interval", ""),
    ("mcast_membership_interval", ""),
    ("mcast_querier_interval", ""),
    ("mcast_query_interval", ""),
    ("mcast_query_response_interval", ""),
    ("mcast_startup_query_interval", ""),
    ("mcast_stats_enabled", ""),
    ("mcast_igmp_version", ""),
    ("mcast_mld_version", ""),
    ("nf_call_iptables", "0"),
    ("nf_call_ip6tables", "0"),
    ("nf_call_arptables", "0"),
];
/// The same of a port.
const PORT: [(&str, &str); 23] = [
    ("state", "3"),
    ("priority", ""),
    ("cost", ""),
    ("hairpin", ""),
    ("guard", ""),
    ("root_block", ""),
    ("fastleave", ""),
    ("learning", ""),
    ("flood", ""),
    ("proxy_arp", "off"),
    ("proxy_arp_wifi", "off"),
    ("mcast_router", ""),
    ("mcast_fast_leave", ""),
    ("mcast_flood", ""),
    ("bcast_flood", ""),
    ("mcast_to_unicast", "off"),
    ("group_fwd_mask", "0"),
    ("neigh_suppress", "off"),
    ("neigh_vlan_suppress", "off"),
    ("vlan_tunnel", "off"),
    ("isolated", ""),
    ("locked", "off"),
    ("mab", "off"),
];

fn wrong(value: &str, name: &str) -> Failure {
    says(255, format!("Error: argument \"{value}\" is wrong: invalid {name}"))
}
fn on(value: &str, name: &str) -> Result<bool, Failure> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(says(
            255,
            format!("Error: argument of \"{name}\" must be \"on\" or \"off\", not \"{value}\""),
        )),
    }
}
/// Hundredths of a second (`clock_t`).
fn time(value: &str, name: &str) -> Result<Span, Failure> {
    let hundredths: u32 = value.parse().map_err(|_| wrong(value, name))?;
    Ok(Span::from_ms(i64::from(hundredths) * 10))
}

impl Host {
    /// Sets what follows `type bridge`. `words`: names and values in turn.
    pub(super) fn set_bridge(&mut self, ifindex: u32, words: &[String]) -> Result<(), Failure> {
        let mut words = words.iter();
        while let Some(name) = words.next() {
            if matches!(name.as_str(), "fdb_flush") {
                if let Some(b) = self.devices[ifindex].bridge.as_deref_mut() {
                    b.flush(None);
                }
                continue;
            }
            if name == "no_linklocal_learn" {
                words.next();
                continue;
            }
            let Some((_, harmless)) = BRIDGE.iter().find(|known| known.0 == name) else {
                return Err(says(255, format!("bridge: unknown option \"{name}\"?")));
            };
            let Some(value) = words.next() else {
                return Err(says(255, "Command line is not complete. Try option \"help\""));
            };
            let b = self.devices[ifindex].bridge.as_deref_mut();
            let Some(b) = b else { continue };
            match name.as_str() {
                "ageing_time" => b.ageing = time(value, name)?,
                "forward_delay" => b.forward_delay = time(value, name)?,
                _ => b.ask(name, value, harmless),
            }
        }
        Ok(())
    }
    /// Sets what follows `type bridge_slave`.
    pub(super) fn set_bridge_port(&mut self, ifindex: u32, words: &[String]) -> Result<(), Failure> {
        let Some(bridge) = self.bridge_of(ifindex) else {
            return Err(says(2, "RTNETLINK answers: Operation not supported"));
        };
        let mut words = words.iter();
        while let Some(name) = words.next() {
            let Some(b) = self.devices[bridge].bridge.as_deref_mut() else { continue };
            if name == "fdb_flush" {
                b.flush(Some(ifindex));
                continue;
            }
            if name == "nobackup_port" {
                continue;
            }
            let harmless = match name.as_str() {
                "backup_port" | "backup_nhid" => "none",
                _ => match PORT.iter().find(|known| known.0 == name) {
                    Some((_, harmless)) => harmless,
                    None => return Err(says(255, format!("bridge_slave: unknown option \"{name}\"?"))),
                },
            };
            let Some(value) = words.next() else {
                return Err(says(255, "Command line is not complete. Try option \"help\""));
            };
            let Some(port) = b.ports.iter_mut().find(|p| p.ifindex == ifindex) else { continue };
            let set = match name.as_str() {
                "hairpin" => &mut port.set.hairpin,
                "learning" => &mut port.set.learning,
                "flood" => &mut port.set.flood,
                "mcast_flood" => &mut port.set.mcast_flood,
                "bcast_flood" => &mut port.set.bcast_flood,
                "isolated" => &mut port.set.isolated,
                _ => {
                    b.ask(name, value, harmless);
                    continue;
                }
            };
            *set = on(value, name)?;
        }
        Ok(())
    }
}
