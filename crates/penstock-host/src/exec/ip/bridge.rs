//! `type bridge` and `type bridge_slave`: what the words after it set; and `bridge`.
//!
//! Follows: iproute2 6.12 `ip/iplink_bridge.c`, `ip/iplink_bridge_slave.c`, `bridge/vlan.c`, `bridge/fdb.c`, `bridge/link.c`; linux v6.12
//! `net/bridge/br_netlink.c` `br_changelink`, `br_setport`; `net/core/rtnetlink.c` `rtnl_bridge_setlink`.
//! Differs: what is about IGMP is kept where it is as it was, and told before a run where it is not.

use super::super::Ran;
use super::{Done, errno, says};
use crate::bridge::{ETH_P_8021AD, Said, State};
use crate::{Host, Output};
use penstock_lang::ip::{self, Bridge, Failure, FdbChange, FdbFilter, Form, VlanChange};
use penstock_lang::token::Line;
use penstock_model::{Kernel, KernelError, Span, Time};

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
    ("nf_call_iptables", ""),
    ("nf_call_ip6tables", ""),
    ("nf_call_arptables", ""),
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
    pub(super) fn set_bridge(&mut self, ifindex: u32, words: &[String], now: Time) -> Result<(), Failure> {
        let vlans = self.kernel != Kernel::V2_6_35;
        let mut words = words.iter();
        while let Some(name) = words.next() {
            if matches!(name.as_str(), "fdb_flush") {
                if let Some(b) = self.devices[ifindex].bridge.as_deref_mut() {
                    b.flush(None);
                }
                continue;
            }
            if name == "no_linklocal_learn" {
                if let (Some(value), Some(b)) = (words.next(), self.devices[ifindex].bridge.as_deref_mut()) {
                    b.told.insert(name.clone(), value.clone());
                }
                continue;
            }
            let Some((_, harmless)) = BRIDGE.iter().find(|known| known.0 == name) else {
                return Err(says(255, format!("bridge: unknown option \"{name}\"?")));
            };
            let Some(value) = words.next() else {
                return Err(says(255, "Command line is not complete. Try option \"help\""));
            };
            if self.devices[ifindex].bridge.is_none() {
                continue;
            }
            if vlans && self.set_of_tree(ifindex, name, value, now)? {
                continue;
            }
            let Some(b) = self.devices[ifindex].bridge.as_deref_mut() else { continue };
            match name.as_str() {
                "ageing_time" => b.ageing = time(value, name)?,
                "forward_delay" => b.forward_delay = time(value, name)?,
                "hello_time" => b.hello_time = time(value, name)?,
                "max_age" => b.max_age = time(value, name)?,
                "priority" => b.priority = value.parse().map_err(|_| wrong(value, name))?,
                "vlan_filtering" if vlans => {
                    b.vlan.on = value.parse::<u8>().map_err(|_| wrong(value, name))? != 0;
                }
                "nf_call_iptables" | "nf_call_ip6tables" => {
                    let on = value.parse::<u8>().map_err(|_| wrong(value, name))? != 0;
                    b.calls[usize::from(name == "nf_call_ip6tables")] = on;
                }
                "vlan_protocol" if vlans => {
                    b.vlan.protocol = match value.to_ascii_lowercase().as_str() {
                        "802.1q" | "0x8100" => 0x8100,
                        "802.1ad" | "0x88a8" => ETH_P_8021AD,
                        known if known.starts_with("0x") => return Err(errno(KernelError::EPROTONOSUPPORT)),
                        _ => return Err(wrong(value, name)),
                    };
                }
                "vlan_default_pvid" if vlans => {
                    let pvid: u16 = value.parse().map_err(|_| wrong(value, name))?;
                    self.set_default_pvid(ifindex, pvid.into(), now).map_err(|e| ip::refused(&e))?;
                }
                _ => {
                    b.told.insert(name.clone(), value.clone());
                    b.ask(name, value, harmless);
                }
            }
        }
        Ok(())
    }
    /// What is about a spanning tree; `false`: this is not.
    fn set_of_tree(&mut self, ifindex: u32, name: &str, value: &str, now: Time) -> Result<bool, Failure> {
        let bad = |_| wrong(value, name);
        match name {
            "stp_state" => {
                let state: u32 = value.parse().map_err(bad)?;
                self.set_stp(ifindex, state != 0, now);
            }
            "priority" => self.set_bridge_priority(ifindex, value.parse().map_err(bad)?, now),
            "hello_time" | "max_age" | "forward_delay" => {
                let span = time(value, name)?;
                self.set_tree_time(ifindex, name, span, now).map_err(|e| ip::refused(&e))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
    /// Sets what follows `type bridge_slave`.
    pub(super) fn set_bridge_port(
        &mut self,
        ifindex: u32,
        words: &[String],
        now: Time,
    ) -> Result<(), Failure> {
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
                "cost" | "priority" => {
                    let number: u32 = value.parse().map_err(|_| wrong(value, name))?;
                    let (cost, priority) = match name.as_str() {
                        "cost" => (Some(number), None),
                        _ => (None, Some(number)),
                    };
                    let set = self.set_port_of_tree(ifindex, priority, cost, now);
                    set.map_err(|e| ip::refused(&e))?;
                    continue;
                }
                "state" if self.kernel != Kernel::V2_6_35 => {
                    let names = [
                        State::Disabled,
                        State::Listening,
                        State::Learning,
                        State::Forwarding,
                        State::Blocking,
                    ];
                    let named = names.into_iter().find(|s| s.name() == value.to_ascii_lowercase());
                    let numbered = || value.parse::<usize>().map_err(|_| wrong(value, name));
                    let state = match named {
                        Some(state) => state,
                        None => *names.get(numbered()?).ok_or_else(|| errno(KernelError::EINVAL))?,
                    };
                    self.set_port_state(ifindex, state, now).map_err(|e| ip::refused(&e))?;
                    continue;
                }
                "guard" => &mut port.guard,
                "root_block" => &mut port.root_block,
                _ => {
                    port.told.insert(name.clone(), value.clone());
                    b.ask(name, value, harmless);
                    continue;
                }
            };
            *set = on(value, name)?;
        }
        self.port_guards_changed(bridge, now);
        Ok(())
    }

    /// One of these words, said through a file.
    pub(crate) fn write_bridge_word(
        &mut self,
        ifindex: u32,
        name: &str,
        value: &str,
        now: Time,
    ) -> Result<(), &'static str> {
        let words = [name.to_owned(), value.to_owned()];
        const RANGE: &str = "Numerical result out of range";
        let why = |f: Failure| if f.stderr.contains(RANGE) { RANGE } else { "Invalid argument" };
        self.set_bridge(ifindex, &words, now).map_err(why)
    }

    /// `bridge`.
    pub(in crate::exec) fn bridge_tool(&mut self, line: &Line, now: Time) -> Ran {
        if let Some(name) = ip::netns_option(&line.words) {
            let name = name.to_owned();
            let run = |host: &mut Host| host.bridge_here(line, now);
            return match self.space_of(&name).and_then(|space| self.in_space(space, run)) {
                Some(ran) => ran,
                None => Output::fail(crate::netns::no_space(&name), 255, "ip netns lists the namespaces"),
            };
        }
        self.bridge_here(line, now)
    }
    fn bridge_here(&mut self, line: &Line, now: Time) -> Ran {
        match ip::bridge(&line.words, self.kernel).and_then(|command| self.bridge_command(command, now)) {
            Ok(stdout) => Output::say(stdout),
            Err(f) => Output::fail(f.stderr, f.exit, &f.help).at_word(line, f.word),
        }
    }
    fn bridge_command(&mut self, command: Bridge, now: Time) -> Done {
        let no_device = |name: &str| says(255, format!("Cannot find device \"{name}\""));
        let at = |host: &Host, dev: &Option<String>| match dev {
            Some(name) => host.ifindex(name).map(Some).ok_or_else(|| no_device(name)),
            None => Ok(None),
        };
        match command {
            Bridge::Say(text) => Ok(text),
            Bridge::VlanShow(dev, vid, form) => {
                let views = self.vlan_views(at(self, &dev)?, vid);
                Ok(ip::vlans(&views, form, self.kernel))
            }
            Bridge::Vlan(change) => self.vlan_change(&change, now),
            Bridge::FdbShow(filter, form) => self.fdb_show(&filter, form, now),
            Bridge::Fdb(change) => self.fdb_change(&change, now),
            Bridge::LinkShow(dev, form) => {
                let views = self.port_views(at(self, &dev)?, now);
                Ok(ip::ports(&views, form, self.kernel))
            }
            Bridge::LinkSet(dev, words) => {
                let ifindex = self
                    .ifindex(&dev)
                    .ok_or_else(|| says(255, format!("Cannot find bridge device \"{dev}\"")))?;
                if self.bridge_of(ifindex).is_none() {
                    return Err(says(255, "RTNETLINK answers: Operation not supported"));
                }
                self.set_bridge_port(ifindex, &words, now).map_err(|f| Failure { exit: 255, ..f })?;
                Ok(String::new())
            }
        }
    }
    fn vlan_change(&mut self, c: &VlanChange, now: Time) -> Done {
        let ifindex = self
            .ifindex(&c.dev)
            .ok_or_else(|| says(255, format!("Cannot find bridge device \"{}\"", c.dev)))?;
        let flags = c.add.then_some((c.pvid, c.untagged));
        let wanted = [(c.master || !c.own, false), (c.own, true)];
        for (_, own) in wanted.into_iter().filter(|w| w.0) {
            let done = self.bridge_vlan(ifindex, own, c.vids.0..=c.vids.1, flags, now);
            done.map_err(|e| Failure { exit: 255, ..ip::refused(&e) })?;
        }
        Ok(String::new())
    }
    fn fdb_show(&self, f: &FdbFilter, form: Form, now: Time) -> Done {
        if form.stats > 0 {
            let help = "brctl showmacs shows when each was heard last";
            return Err(Failure { help: help.to_owned(), ..says(127, "bridge -s fdb: not simulated") });
        }
        let at = |dev: &Option<String>| match dev {
            Some(name) => self
                .ifindex(name)
                .map(Some)
                .ok_or_else(|| says(255, format!("Cannot find device \"{name}\""))),
            None => Ok(None),
        };
        let views = self.fdb_views(at(&f.dev)?, at(&f.br)?, f, now);
        Ok(ip::fdbs(&views, form, self.kernel))
    }
    fn fdb_change(&mut self, c: &FdbChange, now: Time) -> Done {
        let ifindex = self.dev(&c.dev).map_err(|f| Failure { exit: 255, ..f })?;
        if c.master {
            let known = c.vlan.map(|vid| format!("vlan {vid}"));
            if let Some(word) = c.asked.iter().find(|word| Some(*word) != known.as_ref()) {
                return Err(says(255, format!("bridge fdb … master {word}: not known here")));
            }
            let said = Said { mac: c.mac, vid: c.vlan, local: c.local, stays: c.stays };
            let done = self.bridge_fdb(ifindex, c.verb, &said, now);
            done.map_err(|e| Failure { exit: 255, ..ip::refused(&e) })?;
            return Ok(String::new());
        }
        if self.devices[ifindex].vxlan.is_none() {
            let help = "an entry of a bridge: bridge fdb add MAC dev PORT master";
            let what = format!("bridge fdb {}: of devices that are no vxlan only with master here", c.verb);
            return Err(Failure { help: help.to_owned(), ..says(127, what) });
        }
        if let Some(word) = c.asked.first() {
            return Err(says(255, format!("bridge fdb … {word}: not known here")));
        }
        self.vxlan_fdb(ifindex, c, now).map_err(errno)?;
        Ok(String::new())
    }
}
