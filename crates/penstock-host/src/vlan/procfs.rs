//! `/proc/net/vlan`: the VLAN devices of a machine, and what each does.
//!
//! Follows: linux v6.12 `net/8021q/vlanproc.c` `vlan_seq_show`, `vlandev_seq_show`.
//! Differs: `priv_flags` are those of a VLAN over a card or an end of a veth pair; there is no such folder with 2.6.35.

use crate::Host;
use penstock_lang::ip::LinkData;
use penstock_model::Kernel;
use std::fmt::Write;

/// `IFF_802_1Q_VLAN`, `IFF_XMIT_DST_RELEASE` and their like, as 6.12 counts them.
const PRIV_FLAGS: u32 = 0x81021;

impl Host {
    /// The files of the folder; none where there is no VLAN.
    pub(crate) fn vlan_files(&self) -> Vec<String> {
        let vlans = self.devices.iter().filter(|d| d.vlan.is_some() && self.kernel >= Kernel::V6_12);
        let mut names: Vec<String> = vlans.map(|d| d.name.clone()).collect();
        if !names.is_empty() {
            names.push("config".to_owned());
            names.sort();
        }
        names
    }
    /// The text of a file of the folder; `None`: there is no such file.
    pub(crate) fn proc_vlan(&self, file: &str) -> Option<String> {
        if !self.vlan_files().iter().any(|name| name == file) {
            return None;
        }
        let lower = |ifindex: u32| self.devices.get(ifindex).map_or("", |d| d.name.as_str());
        if file == "config" {
            let mut out =
                "VLAN Dev name\t | VLAN ID\nName-Type: VLAN_NAME_TYPE_RAW_PLUS_VID_NO_PAD\n".to_owned();
            for (d, v) in self.devices.iter().filter_map(|d| Some((d, d.vlan.as_ref()?))) {
                let _ = writeln!(out, "{:<15}| {}  | {}", d.name, v.id, lower(v.lower));
            }
            return Some(out);
        }
        let device = self.devices.get(self.ifindex(file)?)?;
        let vlan = device.vlan.as_ref()?;
        let LinkData::Vlan { flags, .. } = &device.data else { return None };
        let mut out = format!(
            "{file}  VID: {}\t REORDER_HDR: {}  dev->priv_flags: {PRIV_FLAGS:x}\n",
            vlan.id,
            flags & 1
        );
        let c = &device.counters;
        let mut row = |name: &str, n: u64| writeln!(out, "{name:>30} {n:>12}");
        let _ = row("total frames received", c.rx_packets);
        let _ = row("total bytes received", c.rx_bytes);
        let _ = row("Broadcast/Multicast Rcvd", c.rx_multicast);
        out.push('\n');
        let mut row = |name: &str, n: u64| writeln!(out, "{name:>30} {n:>12}");
        let _ = row("total frames transmitted", c.tx_packets);
        let _ = row("total bytes transmitted", c.tx_bytes);
        let [a, b, c, d, e, f, g, h] = vlan.ingress;
        let _ = writeln!(out, "Device: {}", lower(vlan.lower));
        let _ =
            writeln!(out, "INGRESS priority mappings: 0:{a}  1:{b}  2:{c}  3:{d}  4:{e}  5:{f}  6:{g} 7:{h}");
        out.push_str(" EGRESS priority mappings: ");
        // By the lower four bits, as the kernel's table has them.
        let mut egress: Vec<(u32, u16)> = vlan.egress.iter().map(|(&from, &to)| (from, to)).collect();
        egress.sort_by_key(|&(from, _)| from & 15);
        for (from, to) in egress {
            let _ = write!(out, "{from}:{to} ");
        }
        out.push('\n');
        Some(out)
    }
}
