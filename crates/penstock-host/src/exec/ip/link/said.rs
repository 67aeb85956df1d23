//! What a bridge, a bond and their ports tell of themselves: `ip -d link`, `bridge -d link`.
//!
//! Follows: linux v6.12 `net/bridge/br_netlink.c` `br_fill_info`, `br_port_fill_attrs`, `net/bridge/br_if.c` `br_manage_promisc`,
//! `drivers/net/bonding/bond_netlink.c` `bond_fill_info`, `bond_fill_slave_info`.
//! Differs: nothing is swept out of a bridge's table at certain times here, so `gc_timer` is 0.00.

use crate::Host;
use crate::bond::{Link, Mode};
use crate::device::{NetDevice, PROMISC};
use penstock_lang::ip::{Said, SaidValue};
use penstock_model::{Kernel, Time};
use std::collections::BTreeMap;

type Told = BTreeMap<String, String>;

fn number(word: &'static str, n: impl Into<i64>) -> Said {
    Said::new(word, SaidValue::Number(n.into()))
}
fn text(word: &'static str, text: impl Into<String>) -> Said {
    Said::new(word, SaidValue::Text(text.into()))
}
fn on_off(word: &'static str, on: bool) -> Said {
    Said::new(word, SaidValue::OnOff(on))
}
/// The same under another name in JSON; an empty one: not there.
fn keyed(key: &'static str, said: Said) -> Said {
    Said { key, ..said }
}
/// A number that was told, else the kernel's.
fn told_number(told: &Told, word: &'static str, else_: i64) -> Said {
    number(word, told.get(word).and_then(|v| v.parse().ok()).unwrap_or(else_))
}
fn told_text(told: &Told, word: &'static str, else_: &str) -> Said {
    text(word, told.get(word).map_or(else_, String::as_str))
}
fn told_on(told: &Told, word: &'static str) -> Said {
    on_off(word, told.get(word).is_some_and(|v| v == "on" || v == "1"))
}
fn bits(told: &Told) -> u32 {
    let value = told.get("group_fwd_mask").map_or("0", String::as_str);
    let hex = value.strip_prefix("0x").map(|hex| u32::from_str_radix(hex, 16));
    hex.unwrap_or_else(|| value.parse()).unwrap_or(0)
}
/// `8000.020000000001` of the files as `ip` writes it: `8000.2:0:0:0:0:1`.
fn bridge_id(file: &str) -> String {
    let (priority, mac) = file.split_once('.').unwrap_or((file, ""));
    let bytes = (0..mac.len() / 2).filter_map(|i| u8::from_str_radix(mac.get(2 * i..2 * i + 2)?, 16).ok());
    format!("{priority}.{}", bytes.map(|b| format!("{b:x}")).collect::<Vec<_>>().join(":"))
}

impl Host {
    /// Of a bridge or a bond.
    pub(super) fn master_says(&self, d: &NetDevice, now: Time) -> Vec<Said> {
        if self.kernel == Kernel::V2_6_35 {
            return Vec::new();
        }
        match (&d.bridge, &d.bond) {
            (Some(_), _) => self.bridge_says(d, now),
            (_, Some(_)) => self.bond_says(d),
            _ => Vec::new(),
        }
    }
    fn bridge_says(&self, d: &NetDevice, now: Time) -> Vec<Said> {
        let Some(b) = d.bridge.as_deref() else { return Vec::new() };
        let file = |name: &str| self.read_bridge_file(d, name, now).unwrap_or_default();
        let known = |word: &'static str| number(word, file(word).parse().unwrap_or(0));
        let timer = |word: &'static str| Said::new(word, SaidValue::Timer(file(word).parse().unwrap_or(0)));
        let told = |word, else_| told_number(&b.told, word, else_);
        let protocol = if b.vlan.protocol == 0x88a8 { "802.1ad" } else { "802.1Q" };
        let mut all: Vec<Said> = ["forward_delay", "hello_time", "max_age", "ageing_time", "stp_state"]
            .into_iter()
            .chain(["priority", "vlan_filtering"])
            .map(known)
            .collect();
        all.extend([
            text("vlan_protocol", protocol),
            text("bridge_id", bridge_id(&file("bridge_id"))),
            keyed("root_id", text("designated_root", bridge_id(&file("root_id")))),
            known("root_port"),
            known("root_path_cost"),
            known("topology_change"),
            known("topology_change_detected"),
            timer("hello_timer"),
            timer("tcn_timer"),
            timer("topology_change_timer"),
            Said::new("gc_timer", SaidValue::Timer(0)),
            number("vlan_default_pvid", i64::from(b.vlan.default_pvid)),
            told("vlan_stats_enabled", 0),
            told("vlan_stats_per_port", 0),
            Said::new("group_fwd_mask", SaidValue::Mask(bits(&b.told))),
            keyed("group_addr", text("group_address", file("group_addr"))),
            told("mcast_snooping", 1),
            told("no_linklocal_learn", 0),
            told("mcast_vlan_snooping", 0),
            told("mcast_router", 1),
            told("mcast_query_use_ifaddr", 0),
            told("mcast_querier", 0),
            told("mcast_hash_elasticity", 16),
            told("mcast_hash_max", 4096),
            keyed("mcast_last_member_cnt", told("mcast_last_member_count", 2)),
            keyed("mcast_startup_query_cnt", told("mcast_startup_query_count", 2)),
            keyed("mcast_last_member_intvl", told("mcast_last_member_interval", 100)),
            keyed("mcast_membership_intvl", told("mcast_membership_interval", 26_000)),
            keyed("mcast_querier_intvl", told("mcast_querier_interval", 25_500)),
            keyed("mcast_query_intvl", told("mcast_query_interval", 12_500)),
            keyed("mcast_query_response_intvl", told("mcast_query_response_interval", 1000)),
            keyed("mcast_startup_query_intvl", told("mcast_startup_query_interval", 3125)),
            told("mcast_stats_enabled", 0),
            told("mcast_igmp_version", 2),
            told("mcast_mld_version", 1),
            number("nf_call_iptables", i64::from(b.calls[0])),
            number("nf_call_ip6tables", i64::from(b.calls[1])),
            told("nf_call_arptables", 0),
        ]);
        all
    }
    fn bond_says(&self, d: &NetDevice) -> Vec<Said> {
        let Some(b) = d.bond.as_deref() else { return Vec::new() };
        let file = |name: &str| self.read_bonding(d.ifindex, name).unwrap_or_default().trim().to_owned();
        // `NAME NUMBER`.
        let word = |name: &'static str| text(name, file(name).split(' ').next().unwrap_or_default());
        let known = |name: &'static str| number(name, file(name).parse().unwrap_or(0));
        let named = |name: &'static str| Some(file(name)).filter(|n| !n.is_empty()).map(|n| text(name, n));
        let told = |name, else_| told_number(&b.told, name, else_);
        let mut all = vec![text("mode", b.mode.name())];
        all.extend(named("active_slave"));
        all.extend([known("miimon"), known("updelay"), known("downdelay"), told("peer_notify_delay", 0)]);
        all.extend([told("use_carrier", 1), told("arp_interval", 0)]);
        all.push(told("arp_missed_max", 2));
        all.push(match b.told.get("arp_validate").map_or("none", String::as_str) {
            "none" => Said::new("arp_validate", SaidValue::Null("none")),
            value => text("arp_validate", value),
        });
        all.push(told_text(&b.told, "arp_all_targets", "any"));
        // It is one as long as it is a slave.
        let is_slave = |s: &&NetDevice| s.is_called(&b.primary) && b.slave(s.ifindex).is_some();
        all.extend(named("primary").filter(|_| self.devices.iter().any(|s| is_slave(&s))));
        all.extend([word("primary_reselect"), told_text(&b.told, "fail_over_mac", "none")]);
        all.extend([word("xmit_hash_policy"), told("resend_igmp", 1)]);
        all.push(keyed("num_peer_notif", known("num_grat_arp")));
        all.extend([known("all_slaves_active"), told("min_links", 0), told("lp_interval", 1)]);
        all.push(number("packets_per_slave", i64::from(b.packets_per_slave)));
        all.push(keyed("ad_lacp_active", told_text(&b.told, "lacp_active", "on")));
        all.push(keyed("ad_lacp_rate", told_text(&b.told, "lacp_rate", "slow")));
        all.push(told_text(&b.told, "ad_select", "stable"));
        if b.mode == Mode::Ad {
            all.extend([told("ad_actor_sys_prio", 65_535), told("ad_user_port_key", 0)]);
            all.push(told_text(&b.told, "ad_actor_system", "00:00:00:00:00:00"));
        }
        all.push(told("tlb_dynamic_lb", 1));
        all
    }
    /// Of a port of a bridge or a slave of a bond.
    pub(super) fn port_says(&self, d: &NetDevice, now: Time) -> Vec<Said> {
        if self.kernel == Kernel::V2_6_35 {
            return Vec::new();
        }
        let master = d.master.and_then(|m| self.devices.get(m));
        if let Some(slave) = master.and_then(|m| m.bond.as_deref()).and_then(|b| b.slave(d.ifindex)) {
            let mac = slave.perm_mac.map(|b| format!("{b:02x}")).join(":");
            let status = match slave.link {
                Link::Up => "UP",
                Link::Fail => "GOING_DOWN",
                Link::Down => "DOWN",
                Link::Back => "GOING_BACK",
            };
            return vec![
                text("state", if slave.inactive { "BACKUP" } else { "ACTIVE" }),
                text("mii_status", status),
                number("link_failure_count", i64::from(slave.failures)),
                text("perm_hwaddr", mac),
                number("queue_id", 0),
                number("prio", 0),
            ];
        }
        let Some(port) = master.and_then(|m| m.bridge.as_deref()).and_then(|b| b.port(d.ifindex)) else {
            return Vec::new();
        };
        let file = |name: &str| self.read_port_file(d, name, now).unwrap_or_default();
        let known = |word: &'static str, name| number(word, file(name).parse().unwrap_or(0));
        let timer = |word: &'static str| Said::new(word, SaidValue::Timer(file(word).parse().unwrap_or(0)));
        let told = |word| told_on(&port.told, word);
        let leave = if port.told.contains_key("fastleave") { "fastleave" } else { "mcast_fast_leave" };
        let fast = port.told.get(leave).is_some_and(|v| v == "on");
        let state = self.port_state(d, now).1;
        let router = told_number(&port.told, "mcast_router", 1);
        vec![
            text("state", state),
            known("priority", "priority"),
            known("cost", "path_cost"),
            on_off("hairpin", port.set.hairpin),
            on_off("guard", port.guard),
            on_off("root_block", port.root_block),
            on_off("fastleave", fast),
            on_off("learning", port.set.learning),
            on_off("flood", port.set.flood),
            keyed("id", text("port_id", file("port_id"))),
            keyed("no", text("port_no", file("port_no"))),
            known("designated_port", "designated_port"),
            known("designated_cost", "designated_cost"),
            keyed("bridge_id", text("designated_bridge", bridge_id(&file("designated_bridge")))),
            keyed("root_id", text("designated_root", bridge_id(&file("designated_root")))),
            timer("hold_timer"),
            timer("message_age_timer"),
            timer("forward_delay_timer"),
            known("topology_change_ack", "change_ack"),
            known("config_pending", "config_pending"),
            told("proxy_arp"),
            told("proxy_arp_wifi"),
            keyed("multicast_router", router),
            keyed("", on_off("mcast_fast_leave", fast)),
            on_off("mcast_flood", port.set.mcast_flood),
            on_off("bcast_flood", port.set.bcast_flood),
            told("mcast_to_unicast"),
            told("neigh_suppress"),
            Said::new("group_fwd_mask", SaidValue::Mask(bits(&port.told))),
            text("group_fwd_mask_str", format!("{:#x}", bits(&port.told))),
            told("vlan_tunnel"),
            on_off("isolated", port.set.isolated),
            told("locked"),
        ]
    }
    /// How often others than `ip link set promisc on` have made a device promiscuous: the bridge that it is a port of.
    pub(super) fn made_promiscuous(&self, d: &NetDevice) -> u32 {
        let Some(bridge) = self.bridge_of(d.ifindex) else { return 0 };
        let master = &self.devices[bridge];
        let Some(b) = master.bridge.as_deref() else { return 0 };
        if master.flags & PROMISC != 0 || !b.vlan.on || !d.class.kind.is_empty() {
            return 1;
        }
        // A card sorts addresses itself, so it need not hear all where one port at most learns or takes what nobody knows.
        let auto = |p: &crate::bridge::Port| p.set.flood || p.set.learning;
        let count = b.ports.iter().filter(|p| auto(p)).count();
        let own = b.port(d.ifindex).is_some_and(auto);
        u32::from(!(count == 0 || count == 1 && own))
    }
}
