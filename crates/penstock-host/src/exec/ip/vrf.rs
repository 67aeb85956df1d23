//! `ip vrf`, and the word `vrf` of `ip route`, `ip link`, `ip addr` and `ip neigh`.
//!
//! Follows: iproute2 6.1.0 `ip/ipvrf.c` `ipvrf_show`, `ipvrf_exec`, `ipvrf_get_table`, `name_is_vrf`.
//! Differs: `ip vrf exec` is refused: a program here is not bound to a VRF. `identify` finds none, as no program is in one.

use super::{Done, says};
use crate::Host;
use penstock_lang::ip::{self, Failure, Form};

impl Host {
    /// The index of a VRF; else what ip says of the word.
    pub(super) fn vrf_called(&self, name: &str, why: &str) -> Result<u32, Failure> {
        let found = self.ifindex(name).filter(|&i| self.devices[i].vrf_table().is_some());
        found.ok_or_else(|| says(255, format!("Error: argument \"{name}\" is wrong: {why}")))
    }
    /// The table of a VRF; else these words.
    pub(super) fn table_of_vrf(&self, name: &str, why: &str) -> Result<u32, Failure> {
        let found = self.ifindex(name).and_then(|i| self.devices[i].vrf_table());
        found.ok_or_else(|| says(1, why))
    }
    pub(super) fn vrf_show(&self, name: Option<&str>, form: Form) -> Done {
        if let Some(name) = name {
            return Ok(format!("{name} {}\n", self.table_of_vrf(name, "Invalid VRF")?));
        }
        let all: Vec<(String, u32)> =
            self.devices.iter().filter_map(|d| Some((d.name.clone(), d.vrf_table()?))).collect();
        Ok(ip::vrfs(&all, form, self.kernel))
    }
    pub(super) fn vrf_exec(&self, name: &str) -> Done {
        self.table_of_vrf(name, "Invalid VRF name")?;
        let text = format!(
            "ip vrf exec {name}: programs are not bound to a VRF here: ping has -I {name}, servers hear VRFs with \
             sysctl net.ipv4.tcp_l3mdev_accept=1 or udp_l3mdev_accept=1, and other programs can run on a host behind the VRF"
        );
        Err(says(255, text))
    }
}
