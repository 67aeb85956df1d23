//! Neighbours and namespaces as they are printed.

use super::{NetnsRef, mac_text};
use crate::ip::{Form, STATES, protocol_name};
use crate::show::Out;
use penstock_model::Kernel;
use std::net::IpAddr;

/// A neighbour as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NeighView {
    /// Address.
    pub addr: IpAddr,
    /// `dev`, where no device was asked for.
    pub dev: Option<String>,
    /// `lladdr`, where it is known.
    pub mac: Option<[u8; 6]>,
    /// `NUD_*`.
    pub state: u16,
    /// `router`.
    pub router: bool,
    /// `proxy`.
    pub proxy: bool,
    /// `extern_learn`.
    pub extern_learn: bool,
    /// `managed`.
    pub managed: bool,
    /// `proto`; 0: none.
    pub protocol: u8,
    /// Seconds since it was used, confirmed and updated, and probes sent.
    pub ages: (u64, u64, u64, u32),
}

/// `ip neigh show`.
pub fn neighbours(views: &[NeighView], form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    for n in views {
        out.open_object(None);
        if form.brief && !out.old() {
            brief(n, &mut out);
            continue;
        }
        out.string("dst", &n.addr.to_string(), format_args!("{} ", n.addr));
        if let Some(dev) = &n.dev {
            out.string("dev", dev, format_args!("dev {dev} "));
        }
        let old = out.old();
        if let Some(mac) = n.mac {
            let mac = mac_text(&mac);
            let gap = if old { "" } else { " " };
            out.string("lladdr", &mac, format_args!("lladdr {mac}{gap}"));
        }
        if n.router {
            out.null("router", format_args!("router "));
        }
        if n.proxy {
            out.null("proxy", format_args!("proxy "));
        }
        if n.managed {
            out.null("managed", format_args!("managed "));
        }
        if n.extern_learn {
            out.null("extern_learn", format_args!("extern_learn "));
        }
        if form.stats > 0 && !old {
            let (used, confirmed, updated, probes) = n.ages;
            out.num("used", used, format_args!(" used {used}"));
            out.num("confirmed", confirmed, format_args!("/{confirmed}"));
            out.num("updated", updated, format_args!("/{updated}"));
            out.num("probes", probes, format_args!("probes {probes} "));
        }
        if n.state != 0 || old {
            let order = [0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80];
            let names = order
                .iter()
                .filter(|&&bit| n.state & bit != 0)
                .filter_map(|bit| STATES.iter().find(|s| s.1 == *bit).map(|s| s.0.to_ascii_uppercase()));
            out.open_array("state", if old { " " } else { "" });
            let gap = if old { "" } else { " " };
            for name in names {
                out.item(format_args!("\"{name}\""), format_args!("{name}{gap}"));
            }
            out.close_array();
        }
        if n.protocol != 0 {
            let name = protocol_name(n.protocol);
            out.string("protocol", &name, format_args!("proto {name} "));
        }
        out.text_only(format_args!("\n"));
        out.close_object();
    }
    out.finish()
}

/// `print_neigh_brief`.
fn brief(n: &NeighView, out: &mut Out) {
    out.string("dst", &n.addr.to_string(), format_args!("{:<39} ", n.addr.to_string()));
    if let Some(dev) = &n.dev {
        out.string("dev", dev, format_args!("{dev:<16} "));
    }
    if let Some(mac) = n.mac {
        let mac = mac_text(&mac);
        out.string("lladdr", &mac, format_args!("{mac}"));
    }
    out.text_only(format_args!("\n"));
    out.close_object();
}

/// `ip netns list`: names with the numbers they have here, the youngest first.
pub fn netns(list: &[(String, Option<i32>)], form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    for (name, id) in list {
        out.open_object(None);
        out.string("name", name, format_args!("{name}"));
        if let Some(id) = id {
            out.num("id", id, format_args!(" (id: {id})"));
        }
        out.text_only(format_args!("\n"));
        out.close_object();
    }
    out.finish()
}

/// `ip netns list-id`.
pub fn netns_ids(list: &[NetnsRef], form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    for space in list {
        out.open_object(None);
        match space {
            NetnsRef::Named(name, id) => {
                out.num("nsid", id, format_args!("nsid {id} "));
                out.string("name", name, format_args!("(iproute2 netns name: {name})"));
            }
            NetnsRef::Number(id) => out.num("nsid", id, format_args!("nsid {id} ")),
        }
        out.text_only(format_args!("\n"));
        out.close_object();
    }
    out.finish()
}
