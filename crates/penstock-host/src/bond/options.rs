//! `type bond`: what the words after it set, and `/sys/class/net/NAME/bonding`.
//!
//! Follows: iproute2 6.1.0 `ip/iplink_bond.c` `bond_parse_opt`; linux v6.12 `drivers/net/bonding/bond_options.c` `bond_opts`, `bond_netlink.c`
//! `bond_changelink`, `bond_sysfs.c`.
//! Differs: options of the modes that are not here, of the ARP monitor and of fail-over with other addresses are kept, and told before a run.

use super::{Bond, Link, Mode, Policy, Reselect};
use crate::Host;
use penstock_model::{KernelError, Time};

/// `mode`s by their numbers.
const MODES: [(&str, Mode); 7] = [
    ("balance-rr", Mode::RoundRobin),
    ("active-backup", Mode::ActiveBackup),
    ("balance-xor", Mode::Xor),
    ("broadcast", Mode::Broadcast),
    ("802.3ad", Mode::Ad),
    ("balance-tlb", Mode::Tlb),
    ("balance-alb", Mode::Alb),
];
const RESELECT: [(&str, Reselect); 3] =
    [("always", Reselect::Always), ("better", Reselect::Better), ("failure", Reselect::Failure)];

/// Options with a value from which nothing follows in the modes that are here: LACP's, and those of IGMP and of the queues.
const MOOT: [&str; 10] = [
    "lp_interval",
    "lacp_rate",
    "lacp_active",
    "ad_select",
    "ad_user_port_key",
    "ad_actor_sys_prio",
    "ad_actor_system",
    "tlb_dynamic_lb",
    "resend_igmp",
    "min_links",
];
/// Those that the kernel takes in mode 802.3ad alone.
const OF_LACP: [&str; 5] =
    ["lacp_rate", "lacp_active", "ad_user_port_key", "ad_actor_sys_prio", "ad_actor_system"];
/// Options with a value that changes nothing; another is told before a run.
const KEPT: [(&str, &str); 8] = [
    ("arp_interval", "0"),
    ("arp_validate", "none"),
    ("arp_all_targets", "any"),
    ("arp_ip_target", ""),
    ("ns_ip6_target", ""),
    ("fail_over_mac", "none"),
    ("use_carrier", "1"),
    ("peer_notify_delay", "0"),
];

/// EBUSY, ENOTEMPTY, EACCES.
const EBUSY: i32 = 16;
const ENOTEMPTY: i32 = 39;
const EACCES: i32 = 13;

/// Why an option was not taken.
pub(crate) enum Refused {
    /// ip does not know the value: what it says.
    Value(&'static str),
    /// ip does not know the option.
    Unknown,
    /// The kernel does not.
    Kernel(KernelError),
}

/// The place of a word in a list, by name or by number.
fn among<T: Copy>(list: &[(&str, T)], word: &str) -> Option<T> {
    let named = list.iter().find(|known| known.0 == word).map(|known| known.1);
    named.or_else(|| word.parse::<usize>().ok().and_then(|n| list.get(n)).map(|known| known.1))
}

impl Host {
    /// Sets an option of a bond.
    ///
    /// # Errors
    /// What ip or the kernel says of it.
    pub(crate) fn set_bond_option(
        &mut self,
        ifindex: u32,
        option: &str,
        value: &str,
        now: Time,
    ) -> Result<(), Refused> {
        let errno = |e| Refused::Kernel(KernelError::errno(e));
        let number = |most: u32, why| match value.parse::<u32>() {
            Ok(n) if n <= most => Ok(n),
            Ok(_) => Err(errno(KernelError::EINVAL)),
            Err(_) => Err(Refused::Value(why)),
        };
        let slave = self.ifindex(value);
        let running = self.devices[ifindex].up;
        let Some(b) = self.devices[ifindex].bond.as_deref_mut() else { return Ok(()) };
        match option {
            "mode" => {
                let mode = among(&MODES, value).ok_or(Refused::Value("invalid mode"))?;
                if !b.slaves.is_empty() {
                    return Err(errno(ENOTEMPTY));
                }
                if running {
                    return Err(errno(EBUSY));
                }
                b.mode = mode;
                if matches!(mode, Mode::Ad | Mode::Tlb | Mode::Alb) && b.miimon == 0 {
                    b.miimon = 100;
                }
            }
            "miimon" => {
                b.miimon = number(i32::MAX as u32, "invalid miimon")?;
                self.bond_follows(ifindex, now);
            }
            "updelay" | "downdelay" => {
                let why = if option == "updelay" { "invalid updelay" } else { "invalid downdelay" };
                let ms = number(i32::MAX as u32, why)?;
                if b.miimon == 0 && ms > 0 {
                    return Err(errno(KernelError::EPERM));
                }
                // Rounded down to whole looks.
                let ms = if b.miimon == 0 { 0 } else { ms - ms % b.miimon };
                *(if option == "updelay" { &mut b.updelay } else { &mut b.downdelay }) = ms;
            }
            "xmit_hash_policy" => {
                let all = Policy::ALL.map(|p| (p.name(), p));
                b.policy = among(&all, value).ok_or(Refused::Value("invalid xmit_hash_policy"))?;
            }
            "primary" => {
                if !matches!(b.mode, Mode::ActiveBackup | Mode::Tlb | Mode::Alb) {
                    return Err(errno(EACCES));
                }
                value.clone_into(&mut b.primary);
                if slave.is_some_and(|s| b.slave(s).is_some()) {
                    b.force_primary = true;
                    self.bond_select_active_slave(ifindex, false, now);
                }
            }
            "primary_reselect" => {
                b.reselect = among(&RESELECT, value).ok_or(Refused::Value("invalid primary_reselect"))?;
                if b.mode == Mode::ActiveBackup {
                    self.bond_select_active_slave(ifindex, false, now);
                }
            }
            "num_grat_arp" | "num_unsol_na" => b.peer_notif = number(255, "invalid num_grat_arp")? as u8,
            "packets_per_slave" => {
                let n = number(65_535, "invalid packets_per_slave")?;
                if b.mode != Mode::RoundRobin {
                    return Err(errno(EACCES));
                }
                b.packets_per_slave = n;
                b.ask("packets_per_slave", if n == 0 { "0" } else { "" });
            }
            "all_slaves_active" => {
                b.all_slaves_active = number(1, "invalid all_slaves_active")? == 1;
                let (all, current) = (b.all_slaves_active, b.current);
                if b.mode == Mode::ActiveBackup {
                    b.slaves.iter_mut().for_each(|s| s.inactive = !all && current != Some(s.ifindex));
                }
            }
            "active_slave" => {
                if !matches!(b.mode, Mode::ActiveBackup | Mode::Tlb | Mode::Alb) {
                    return Err(errno(EACCES));
                }
                let Some(slave) = slave.filter(|&s| b.slave(s).is_some()) else {
                    return Err(errno(KernelError::EINVAL));
                };
                if b.current != Some(slave) && b.slave(slave).is_some_and(|s| s.link == Link::Up) {
                    self.bond_make_active(ifindex, slave, now);
                }
            }
            //= linux v6.12 drivers/net/bonding/bond_options.c bond_opts: .unsuppmodes
            _ if OF_LACP.contains(&option) && b.mode != Mode::Ad => {
                return Err(Refused::Kernel(KernelError::new(EACCES, "option not supported in mode")));
            }
            _ if MOOT.contains(&option) => {
                b.told.insert(option.to_owned(), value.to_owned());
            }
            _ => match KEPT.iter().find(|known| known.0 == option) {
                Some((name, harmless)) => {
                    let same = value == *harmless || *harmless == "none" && value == "0";
                    b.told.insert(option.to_owned(), value.to_owned());
                    b.ask(name, if same { "" } else { value });
                }
                None => return Err(Refused::Unknown),
            },
        }
        Ok(())
    }

    /// Writes such a file: an option, or `slaves`, `+NAME` or `-NAME`.
    pub(crate) fn write_bonding(
        &mut self,
        bond: u32,
        file: &str,
        text: &str,
        now: Time,
    ) -> Result<(), &'static str> {
        const INVALID: &str = "Invalid argument";
        if self.devices[bond].bond.is_none() || self.read_bonding(bond, file).is_none() {
            return Err("No such file or directory");
        }
        if file != "slaves" {
            return self.set_bond_option(bond, file, text, now).map_err(|refused| match refused {
                Refused::Kernel(e) => e.strerror(),
                Refused::Value(_) | Refused::Unknown => INVALID,
            });
        }
        let (name, comes) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(name), _) => (name, true),
            (_, Some(name)) => (name, false),
            _ => return Err(INVALID),
        };
        let slave = self.ifindex(name).ok_or("No such device")?;
        let of = self.bond_of(slave);
        match comes {
            true if self.devices[slave].up || slave == bond || self.devices[slave].loopback => {
                Err("Operation not permitted")
            }
            true if self.devices[slave].master.is_some() => Err("Device or resource busy"),
            false if of != Some(bond) => Err(INVALID),
            _ => {
                self.set_master(slave, comes.then_some(bond), now);
                Ok(())
            }
        }
    }
    /// A file below `/sys/class/net/NAME/bonding`; `None`: there is no such file.
    pub(crate) fn read_bonding(&self, ifindex: u32, file: &str) -> Option<String> {
        let b = self.devices.get(ifindex)?.bond.as_deref()?;
        let name = |ifindex: u32| self.devices.get(ifindex).map_or("", |d| d.name.as_str());
        let text = match file {
            "mode" => format!("{} {}", b.mode.name(), b.mode as u8),
            "xmit_hash_policy" => format!("{} {}", b.policy.name(), b.policy as u8),
            "primary_reselect" => format!("{} {}", RESELECT[b.reselect as usize].0, b.reselect as u8),
            "miimon" => b.miimon.to_string(),
            "updelay" => b.updelay.to_string(),
            "downdelay" => b.downdelay.to_string(),
            "num_grat_arp" | "num_unsol_na" => b.peer_notif.to_string(),
            "packets_per_slave" => b.packets_per_slave.to_string(),
            "all_slaves_active" => u8::from(b.all_slaves_active).to_string(),
            "mii_status" => if b.current.is_some() { "up" } else { "down" }.to_owned(),
            "active_slave" => match b.mode {
                Mode::ActiveBackup => b.current.map_or("", name).to_owned(),
                _ => String::new(),
            },
            "primary" => b.primary.clone(),
            "slaves" => b.slaves.iter().map(|s| name(s.ifindex)).collect::<Vec<_>>().join(" "),
            _ => return None,
        };
        // A file that has nothing to tell of ends without a line.
        Some(if text.is_empty() && file != "slaves" { text } else { format!("{text}\n") })
    }
}

impl Reselect {
    /// The word of it.
    pub(crate) fn name(self) -> &'static str {
        RESELECT[self as usize].0
    }
}

impl Mode {
    /// The word of it.
    pub(crate) fn name(self) -> &'static str {
        MODES[self as usize].0
    }
}

impl Bond {
    /// It is asked for something that it does not do here (empty: not any more).
    fn ask(&mut self, name: &str, value: &str) {
        self.asked.retain(|asked| asked.split(' ').next() != Some(name));
        if !value.is_empty() {
            self.asked.push(format!("{name} {value}"));
        }
    }
}
