//! `bridge vlan`, `bridge fdb` and `bridge link` as they are printed.
//!
//! Follows: iproute2 6.1.0 `bridge/vlan.c` `print_vlan_lines`, `bridge/fdb.c` `print_fdb`, `bridge/link.c` `print_linkinfo`, `print_portinfo`.

use super::link::{LinkView, flags, name};
use super::{Said, mac_text};
use crate::ip::Form;
use crate::show::Out;
use penstock_model::Kernel;
use std::net::IpAddr;

/// The VLANs of a bridge or of a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VlanView {
    /// The device.
    pub dev: String,
    /// Identifier, whether it is the `pvid`, whether its frames leave `untagged`; by identifier.
    pub vlans: Vec<(u16, bool, bool)>,
}

/// An entry of a forwarding table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FdbView {
    /// The address.
    pub mac: [u8; 6],
    /// The device, where none was asked for.
    pub dev: Option<String>,
    /// The other end of a tunnel.
    pub dst: Option<IpAddr>,
    /// The VLAN; 0: none.
    pub vlan: u16,
    /// `self`: in the device's own table.
    pub own: bool,
    /// The bridge.
    pub master: Option<String>,
    /// `permanent`, `static`, `stale`; empty for one that was heard.
    pub state: &'static str,
}

/// A port of a bridge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PortView {
    /// The device.
    pub link: LinkView,
    /// `disabled`, `listening`, `learning`, `forwarding`, `blocking`.
    pub state: &'static str,
    /// Priority, 0 to 63.
    pub priority: u16,
    /// Path cost.
    pub cost: u32,
}

/// What `bridge -d link` says of a port, of what `ip -d link` does.
const PORT_DETAILS: [&str; 14] = [
    "hairpin",
    "guard",
    "root_block",
    "fastleave",
    "learning",
    "flood",
    "mcast_flood",
    "bcast_flood",
    "mcast_router",
    "mcast_to_unicast",
    "neigh_suppress",
    "vlan_tunnel",
    "isolated",
    "locked",
];

/// `bridge vlan show`.
pub fn vlans(all: &[VlanView], form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    out.text_only(format_args!("{:<16}  {:<9}\n", "port", "vlan-id"));
    for port in all {
        out.open_object(None);
        out.string("ifname", &port.dev, format_args!("{:<16}  ", port.dev));
        out.open_array("vlans", "");
        for (i, &(vid, pvid, untagged)) in port.vlans.iter().enumerate() {
            if i > 0 {
                out.text_only(format_args!("{:<16}  ", ""));
            }
            out.open_object(None);
            out.num("vlan", vid, format_args!("{vid}"));
            if pvid || untagged {
                out.open_array("flags", "");
                for (_, flag) in [(pvid, "PVID"), (untagged, "Egress Untagged")].iter().filter(|f| f.0) {
                    out.item(format_args!("\"{flag}\""), format_args!(" {flag}"));
                }
                out.close_array();
            }
            out.close_object();
            out.text_only(format_args!("\n"));
        }
        out.close_array();
        out.close_object();
    }
    out.finish()
}

/// `bridge fdb show`.
pub fn fdbs(all: &[FdbView], form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    for e in all {
        out.open_object(None);
        let mac = mac_text(&e.mac);
        out.string("mac", &mac, format_args!("{mac} "));
        if let Some(dev) = &e.dev {
            out.string("ifname", dev, format_args!("dev {dev} "));
        }
        if let Some(dst) = e.dst {
            out.string("dst", &dst.to_string(), format_args!("dst {dst} "));
        }
        if e.vlan != 0 {
            out.num("vlan", e.vlan, format_args!("vlan {} ", e.vlan));
        }
        out.open_array("flags", "");
        if e.own {
            out.item("\"self\"", format_args!("self "));
        }
        out.close_array();
        if let Some(master) = &e.master {
            out.string("master", master, format_args!("master {master} "));
        }
        out.string("state", e.state, format_args!("{}\n", e.state));
        out.close_object();
    }
    out.finish()
}

/// `bridge link show`.
pub fn ports(all: &[PortView], form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    for p in all {
        let l = &p.link;
        out.open_object(None);
        out.num("ifindex", l.ifindex, format_args!("{}: ", l.ifindex));
        let down = name(&mut out, l, 0, ": ");
        flags(&mut out, l, down);
        out.num("mtu", l.mtu, format_args!("mtu {} ", l.mtu));
        if let Some(master) = &l.master {
            out.string("master", master, format_args!("master {master} "));
        }
        out.string("state", p.state, format_args!("state {} ", p.state));
        out.num("priority", p.priority, format_args!("priority {} ", p.priority));
        out.num("cost", p.cost, format_args!("cost {} ", p.cost));
        if form.details {
            out.nl();
            out.text_only(format_args!("    "));
            let named = |word| l.details.slave_said.iter().find(|s| s.word == word).cloned();
            let all: Vec<Said> = PORT_DETAILS.iter().filter_map(|word| named(*word)).collect();
            let all: Vec<Said> = all.into_iter().map(|s| Said { key: s.word, ..s }).collect();
            super::said::print(&mut out, &all);
        }
        out.text_only(format_args!("\n"));
        out.close_object();
    }
    out.finish()
}
