//! `/proc/net/bonding/NAME`: a bond and its slaves as people look at them.
//!
//! Follows: linux v6.12 `drivers/net/bonding/bond_procfs.c` `bond_info_show_master`, `bond_info_show_slave`.
//! Differs: there is no such file of `802.3ad` nor where there is an ARP monitor, which are not here, nor with 2.6.35, which says less.

use super::{Link, Mode};
use crate::Host;
use penstock_model::Kernel;
use std::fmt::Write;

/// `bond_mode_name`.
const MODES: [&str; 7] = [
    "load balancing (round-robin)",
    "fault-tolerance (active-backup)",
    "load balancing (xor)",
    "fault-tolerance (broadcast)",
    "IEEE 802.3ad Dynamic link aggregation",
    "transmit load balancing",
    "adaptive load balancing",
];

impl Host {
    /// Names of the bonds that have such a file.
    pub(crate) fn bonding_names(&self) -> Vec<String> {
        let here = self.devices.iter().filter(|d| self.has_bonding_file(d.ifindex));
        let mut names: Vec<String> = here.map(|d| d.name.clone()).collect();
        names.sort();
        names
    }
    fn has_bonding_file(&self, ifindex: u32) -> bool {
        let bond = self.devices.get(ifindex).and_then(|d| d.bond.as_deref());
        let monitored = |b: &super::Bond| b.told.get("arp_interval").is_some_and(|ms| ms != "0");
        self.kernel >= Kernel::V6_12 && bond.is_some_and(|b| b.mode != Mode::Ad && !monitored(b))
    }
    /// The text of `/proc/net/bonding/NAME`; `None`: there is no such file.
    pub(crate) fn proc_bonding(&self, name: &str) -> Option<String> {
        let ifindex = self.ifindex(name).filter(|&i| self.has_bonding_file(i))?;
        let b = self.devices.get(ifindex)?.bond.as_deref()?;
        let named = |ifindex: u32| self.devices.get(ifindex).map_or("None", |d| d.name.as_str());
        let mut out = format!("Ethernet Channel Bonding Driver: v{}\n\n", self.kernel_release());
        let _ = write!(out, "Bonding Mode: {}", MODES[b.mode as usize]);
        if b.mode == Mode::ActiveBackup
            && let Some(word) = b.told.get("fail_over_mac").filter(|word| *word != "none")
        {
            let _ = write!(out, " (fail_over_mac {word})");
        }
        out.push('\n');
        if matches!(b.mode, Mode::Xor | Mode::Tlb | Mode::Alb) {
            let _ = writeln!(out, "Transmit Hash Policy: {} ({})", b.policy.name(), b.policy as u8);
        }
        if matches!(b.mode, Mode::ActiveBackup | Mode::Tlb | Mode::Alb) {
            let primary = b.slaves.iter().any(|s| named(s.ifindex) == b.primary);
            match primary {
                true => {
                    let reselect = b.reselect.name();
                    let _ = writeln!(out, "Primary Slave: {} (primary_reselect {reselect})", b.primary);
                }
                false => out.push_str("Primary Slave: None\n"),
            }
            let _ = writeln!(out, "Currently Active Slave: {}", b.current.map_or("None", named));
        }
        let _ = writeln!(out, "MII Status: {}", if b.carrier { "up" } else { "down" });
        let _ = writeln!(out, "MII Polling Interval (ms): {}", b.miimon);
        let _ = writeln!(out, "Up Delay (ms): {}\nDown Delay (ms): {}", b.updelay, b.downdelay);
        let delay = b.told.get("peer_notify_delay").map_or("0", String::as_str);
        let _ = writeln!(out, "Peer Notification Delay (ms): {delay}");
        for slave in &b.slaves {
            let _ = writeln!(out, "\nSlave Interface: {}", named(slave.ifindex));
            let link = match slave.link {
                Link::Up => "up",
                Link::Fail => "going down",
                Link::Down => "down",
                Link::Back => "going back",
            };
            let _ = writeln!(out, "MII Status: {link}");
            match self.devices.get(slave.ifindex).and_then(|d| self.speed(d)) {
                Some(mbit) => out.push_str(&format!("Speed: {mbit} Mbps\nDuplex: full\n")),
                None => out.push_str("Speed: Unknown\nDuplex: Unknown\n"),
            }
            let mac = slave.perm_mac.map(|byte| format!("{byte:02x}")).join(":");
            let _ = writeln!(out, "Link Failure Count: {}\nPermanent HW addr: {mac}", slave.failures);
            out.push_str("Slave queue ID: 0\n");
        }
        Some(out)
    }
}
