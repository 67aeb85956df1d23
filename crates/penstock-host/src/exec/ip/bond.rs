//! `type bond`: the words after it, and who may be a slave.
//!
//! Follows: iproute2 6.1.0 `ip/iplink_bond.c` `bond_parse_opt`; linux v6.12 `drivers/net/bonding/bond_netlink.c` `bond_changelink` (the order in
//! which options are set), `bond_main.c` `bond_enslave` (who is refused).

use super::{errno, says};
use crate::Host;
use crate::bond::Refused;
use crate::device::MASTER;
use penstock_lang::ip::{self, Failure};
use penstock_model::{KernelError, Time};

/// Options in the order they are looked for.
const OPTIONS: [&str; 30] = [
    "mode",
    "active_slave",
    "clear_active_slave",
    "miimon",
    "updelay",
    "downdelay",
    "peer_notify_delay",
    "use_carrier",
    "arp_interval",
    "arp_ip_target",
    "ns_ip6_target",
    "arp_validate",
    "arp_all_targets",
    "primary",
    "primary_reselect",
    "fail_over_mac",
    "xmit_hash_policy",
    "resend_igmp",
    "num_grat_arp",
    "num_unsol_na",
    "all_slaves_active",
    "min_links",
    "lp_interval",
    "packets_per_slave",
    "lacp_active",
    "lacp_rate",
    "ad_select",
    "ad_user_port_key",
    "ad_actor_sys_prio",
    "tlb_dynamic_lb",
];

impl Host {
    /// Sets what follows `type bond`. `words`: names and values in turn.
    pub(super) fn set_bond(&mut self, ifindex: u32, words: &[String], now: Time) -> Result<(), Failure> {
        let mut given = Vec::new();
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let Some(place) = OPTIONS.iter().position(|o| o.starts_with(word.as_str())) else {
                return Err(says(1, format!("bond: unknown command \"{word}\"?")));
            };
            if OPTIONS[place] == "clear_active_slave" {
                given.push((place, String::new()));
                continue;
            }
            let Some(value) = rest.next() else {
                return Err(says(255, "Command line is not complete. Try option \"help\""));
            };
            if matches!(OPTIONS[place], "primary" | "active_slave") {
                self.dev(value)?;
            }
            given.push((place, value.clone()));
        }
        given.sort_by_key(|g| g.0);
        for (place, value) in given {
            if OPTIONS[place] == "clear_active_slave" {
                continue;
            }
            self.set_bond_option(ifindex, OPTIONS[place], &value, now).map_err(|e| match e {
                Refused::Value(why) => says(255, format!("Error: argument \"{value}\" is wrong: {why}\n")),
                Refused::Unknown => says(1, format!("bond: unknown command \"{}\"?", OPTIONS[place])),
                Refused::Kernel(e) => self.no_option(&e),
            })?;
        }
        Ok(())
    }
    /// `bond_opt_error_interpret`.
    fn no_option(&self, e: &KernelError) -> Failure {
        match e.errno {
            KernelError::EINVAL => self.no(e.errno, "invalid option value"),
            39 => self.no(e.errno, "unable to set option because the bond device has slaves"),
            16 => self.no(e.errno, "unable to set option because the bond is up"),
            13 => self.no(e.errno, "option not supported in mode"),
            _ => ip::refused(e),
        }
    }
    /// Whether a device may be a slave.
    pub(super) fn check_slave(&self, bond: u32, ifindex: u32) -> Result<(), Failure> {
        let device = &self.devices[ifindex];
        if device.flags & MASTER != 0 && device.class.kind != "bond" {
            return Err(self.no(KernelError::EPERM, "Device type (master device) cannot be enslaved"));
        }
        if bond == ifindex {
            return Err(self.no(KernelError::EPERM, "Cannot enslave bond to itself."));
        }
        if device.up {
            return Err(self.no(KernelError::EPERM, "Device can not be enslaved while up"));
        }
        if !device.has_header_of_ethernet() {
            return Err(errno(KernelError::EINVAL));
        }
        Ok(())
    }
}
