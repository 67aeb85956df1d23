//! `vconfig` and `tunctl`: what they change, said in `ip`'s words.
//!
//! Follows: the package vlan's `vconfig` (a script over `ip link` since its version 2), vlan 1.9 `vconfig.c` for how VLANs are named;
//! uml-utilities `tunctl.c`.
//! Differs: `set_flag` knows the flag REORDER_HDR alone.

use super::Ran;
use crate::{Host, Output};
use penstock_lang::token::Line;
use penstock_model::Time;

const DEPRECATED: &str = "\nWarning: vconfig is deprecated and might be removed in the future, please migrate to ip(route2) as soon as possible!\n\n";

/// How a VLAN over a device is named (`set_name_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum VlanNames {
    /// `VLAN_PLUS_VID`: vlan0005.
    VlanPadded,
    /// `VLAN_PLUS_VID_NO_PAD`: vlan5.
    Vlan,
    /// `DEV_PLUS_VID`: eth0.0005.
    DevPadded,
    /// `DEV_PLUS_VID_NO_PAD`: eth0.5.
    #[default]
    Dev,
}

impl Host {
    pub(super) fn vconfig(&mut self, line: &Line, now: Time) -> Ran {
        let words: Vec<&str> = line.words[1..].iter().map(|w| w.text.as_str()).collect();
        let command = match words.as_slice() {
            ["add", dev, id] => {
                let name = match (self.vlan_names, id.parse::<u16>()) {
                    (VlanNames::VlanPadded, Ok(id)) => format!("vlan{id:04}"),
                    (VlanNames::Vlan, _) => format!("vlan{id}"),
                    (VlanNames::DevPadded, Ok(id)) => format!("{dev}.{id:04}"),
                    _ => format!("{dev}.{id}"),
                };
                format!("ip link add link {dev} name {name} type vlan id {id}")
            }
            ["rem", dev] => format!("ip link del {dev}"),
            ["set_egress_map", dev, from, to] => {
                format!("ip link set {dev} type vlan egress-qos-map {from}:{to}")
            }
            ["set_ingress_map", dev, from, to] => {
                format!("ip link set {dev} type vlan ingress-qos-map {to}:{from}")
            }
            ["set_flag", dev, "1" | "REORDER_HDR", on @ ("0" | "1")] => {
                let on = if *on == "1" { "on" } else { "off" };
                format!("ip link set {dev} type vlan reorder_hdr {on}")
            }
            ["set_name_type", kind] => {
                self.vlan_names = match *kind {
                    "VLAN_PLUS_VID" => VlanNames::VlanPadded,
                    "VLAN_PLUS_VID_NO_PAD" => VlanNames::Vlan,
                    "DEV_PLUS_VID" => VlanNames::DevPadded,
                    "DEV_PLUS_VID_NO_PAD" => VlanNames::Dev,
                    _ => {
                        let help = "VLAN_PLUS_VID, VLAN_PLUS_VID_NO_PAD, DEV_PLUS_VID or DEV_PLUS_VID_NO_PAD";
                        return Output::fail("Invalid name type.\n", 1, help);
                    }
                };
                return Output { stderr: DEPRECATED.to_owned(), ..Output::default() };
            }
            _ => {
                let help = "vconfig add DEV ID, vconfig rem DEV.ID, vconfig set_egress_map DEV PRIORITY QOS";
                return Output::fail("Expecting argc to be 3-5, inclusive.\n", 1, help);
            }
        };
        let mut out = self.exec(&command, now);
        // Places in the other command are none in this one.
        out.diagnostics.iter_mut().for_each(|d| (d.line, d.column, d.len) = (0, 0, 0));
        out.stderr.insert_str(0, DEPRECATED);
        out
    }

    pub(super) fn tunctl(&mut self, line: &Line, now: Time) -> Ran {
        let mut words = line.words[1..].iter().map(|w| w.text.as_str());
        let (mut brief, mut tap, mut name, mut delete, mut owner) = (false, true, None, None, "0");
        let usage = || {
            Output::fail(
                "Usage: tunctl [-b] [-u owner] [-g group] [-t device-name] [-n|-p] | -d device-name\n",
                1,
                "",
            )
        };
        while let Some(word) = words.next() {
            let mut value = || words.next();
            match word {
                "-b" => brief = true,
                "-n" => tap = false,
                "-p" => tap = true,
                "-t" => name = value(),
                "-d" => delete = value(),
                "-u" => owner = value().unwrap_or("0"),
                "-g" => {
                    value();
                }
                _ => return usage(),
            }
        }
        let mode = if tap { "tap" } else { "tun" };
        if let Some(name) = delete {
            let out = self.exec(&format!("ip tuntap del dev {name} mode {mode}"), now);
            return match out.status {
                0 => Output::say(format!("Set '{name}' nonpersistent\n")),
                _ => Output::fail("TUNSETIFF: Invalid argument\n", 1, ""),
            };
        }
        let name = name.map_or_else(|| self.free_name(mode), str::to_owned);
        let owner = if owner == "root" { "0" } else { owner };
        let out = self.exec(&format!("ip tuntap add dev {name} mode {mode} user {owner}"), now);
        match out.status {
            0 if brief => Output::say(format!("{name}\n")),
            0 => Output::say(format!("Set '{name}' persistent and owned by uid {owner}\n")),
            _ if out.stderr.starts_with("invalid user") => {
                Output::fail(format!("\"{owner}\" is not a valid username.\n"), 1, "a number, or root")
            }
            _ => Output::fail("TUNSETIFF: Device or resource busy\n", 1, ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Host;
    use penstock_model::{Kernel, Time};

    #[test]
    fn vlans_and_taps_by_their_old_tools() {
        let mut host = Host::new("h", Kernel::V6_12, 1);
        host.add_device("eth0");
        let mut run = |line: &str| {
            let out = host.exec(line, Time::ZERO);
            (out.status, out.stdout, out.stderr.lines().last().unwrap_or("").to_owned())
        };
        assert_eq!(run("vconfig add eth0 10").0, 0);
        assert_eq!(run("vconfig set_egress_map eth0.10 3 5").0, 0);
        assert!(run("ip -d link show eth0.10").1.contains("vlan protocol 802.1Q id 10 <REORDER_HDR>"));
        assert!(run("ip -d link show eth0.10").1.contains("egress-qos-map { 3:5 }"));
        assert_eq!(run("vconfig set_name_type VLAN_PLUS_VID").0, 0);
        assert_eq!(run("vconfig add eth0 5").0, 0);
        assert_eq!(run("ip link show vlan0005").0, 0);
        assert_eq!(run("vconfig rem eth0.10").0, 0);
        assert_eq!(run("ip link show eth0.10").0, 1);
        assert_eq!(run("vconfig add eth9 10").2, "Cannot find device \"eth9\"");
        assert_eq!(run("vconfig add eth0").0, 1);
        let made = "Set 'tap0' persistent and owned by uid 0\n".to_owned();
        assert_eq!(run("tunctl -t tap0"), (0, made, String::new()));
        assert_eq!(run("tunctl -b"), (0, "tap1\n".to_owned(), String::new()));
        assert_eq!(run("tunctl -t tap0").2, "TUNSETIFF: Device or resource busy");
        assert_eq!(run("tunctl -d tap0").1, "Set 'tap0' nonpersistent\n");
        assert_eq!(run("ip tuntap").1, "tap1: tap persist user 0\n");
    }
}
