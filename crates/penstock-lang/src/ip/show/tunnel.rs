//! Tunnels as `ip -d link` and `ip tunnel` print them.
//!
//! Follows: iproute2 6.1.0 `ip/link_iptnl.c` `iptunnel_print_opt`, `link_gre.c` `gre_print_opt`, `iplink_vxlan.c` `vxlan_print_opt`,
//! `iptunnel.c` `print_tunnel`. Text recorded of 6.1.0 on Linux 6.1.176.

use crate::ip::{Df, Form, Ttl, TunnelSet, TunnelView, VxlanSet};
use crate::show::Out;
use penstock_model::Kernel;
use std::net::Ipv4Addr;

fn addr_or_any(addr: Ipv4Addr) -> String {
    if addr.is_unspecified() { "any".to_owned() } else { addr.to_string() }
}

/// What a device of the kinds `ipip`, `sit`, `gre`, `gretap` is set to.
pub(super) fn data(out: &mut Out, t: &TunnelSet, kind: &str) {
    out.open_object(Some("info_data"));
    let gre = matches!(kind, "gre" | "gretap");
    if !gre {
        let proto = match t.proto {
            4 => "ipip",
            41 => "ip6ip",
            _ => "any",
        };
        out.string("proto", proto, format_args!("{proto} "));
    }
    for (key, addr) in [("remote", t.remote), ("local", t.local)] {
        let text = addr_or_any(addr);
        out.string(key, &text, format_args!("{key} {text} "));
    }
    if let Some(dev) = &t.dev {
        out.string("link", dev, format_args!("dev {dev} "));
    }
    match t.ttl {
        0 => out.num("ttl", 0, format_args!("ttl inherit ")),
        ttl => out.num("ttl", ttl, format_args!("ttl {ttl} ")),
    }
    match t.tos {
        0 => {}
        1 => out.string("tos", "inherit", format_args!("tos inherit ")),
        tos => out.string("tos", &format!("0x{tos:x}"), format_args!("tos 0x{tos:x} ")),
    }
    match (gre, t.pmtudisc) {
        (false, true) => out.flag("pmtudisc", format_args!("pmtudisc ")),
        (true, true) => {}
        (_, false) => out.flag("nopmtudisc", format_args!("nopmtudisc ")),
    }
    if t.ignore_df {
        out.flag("ignore_df", format_args!("ignore-df "));
    }
    for (name, key) in [("ikey", t.ikey), ("okey", t.okey)] {
        if let Some(key) = key {
            let key = Ipv4Addr::from(key).to_string();
            out.string(name, &key, format_args!("{name} {key} "));
        }
    }
    for (name, on) in [("iseq", t.iseq), ("oseq", t.oseq), ("icsum", t.icsum), ("ocsum", t.ocsum)] {
        if on {
            out.flag(name, format_args!("{name} "));
        }
    }
    if t.fwmark != 0 {
        out.string("fwmark", &format!("0x{:x}", t.fwmark), format_args!("fwmark 0x{:x} ", t.fwmark));
    }
    out.close_object();
}

/// What a VXLAN device is set to.
pub(super) fn vxlan(out: &mut Out, v: &VxlanSet) {
    out.open_object(Some("info_data"));
    let id = v.id.unwrap_or(0);
    out.num("id", id, format_args!("id {id} "));
    if let Some(addr) = v.remote {
        let (key, text) = (if addr.is_multicast() { "group" } else { "remote" }, addr.to_string());
        out.string(key, &text, format_args!("{key} {text} "));
    }
    if let Some(addr) = v.local {
        let text = addr.to_string();
        out.string("local", &text, format_args!("local {text} "));
    }
    if let Some(dev) = &v.dev {
        out.string("link", dev, format_args!("dev {dev} "));
    }
    let (low, high) = v.srcport;
    out.open_object(Some("port_range"));
    out.num("low", low, format_args!("srcport {low} "));
    out.num("high", high, format_args!("{high} "));
    out.close_object();
    out.num("port", v.dstport, format_args!("dstport {} ", v.dstport));
    if !v.learning {
        out.text_only(format_args!("nolearning "));
    }
    if out.is_json() {
        out.json_bool("learning", v.learning);
    }
    match v.tos {
        0 => {}
        1 => out.string("tos", "inherit", format_args!("tos inherit ")),
        tos => out.string("tos", &format!("0x{tos:x}"), format_args!("tos 0x{tos:x} ")),
    }
    match v.ttl {
        Ttl::Auto => out.num("ttl", 0, format_args!("ttl auto ")),
        Ttl::Inherit => out.string("ttl", "inherit", format_args!("ttl inherit ")),
        Ttl::Is(ttl) => out.num("ttl", ttl, format_args!("ttl {ttl} ")),
    }
    match v.df {
        Df::Unset => {}
        Df::Set => out.string("df", "set", format_args!("df set ")),
        Df::Inherit => out.string("df", "inherit", format_args!("df inherit ")),
    }
    match v.ageing {
        0 => out.num("ageing", 0, format_args!("ageing none ")),
        s => out.num("ageing", s, format_args!("ageing {s} ")),
    }
    if v.maxaddress > 0 {
        out.num("limit", v.maxaddress, format_args!("maxaddr {} ", v.maxaddress));
    }
    for word in &v.asked {
        out.flag(word, format_args!("{word} "));
    }
    let no = if v.udpcsum { "" } else { "no" };
    out.text_only(format_args!("{no}udpcsum noudp6zerocsumtx noudp6zerocsumrx "));
    if out.is_json() {
        out.json_bool("udp_csum", v.udpcsum);
        out.json_bool("udp_zero_csum6_tx", false);
        out.json_bool("udp_zero_csum6_rx", false);
    }
    out.close_object();
}

/// `ip tunnel show`.
pub fn tunnels(views: &[TunnelView], form: Form, kernel: Kernel) -> String {
    let mut out = Out::new(&form.out(), kernel, true);
    for view in views {
        let t = &view.set;
        let mode = match (view.kind, t.proto) {
            ("gre", _) => "gre/ip",
            (_, 4) => "ip/ip",
            (_, 41) => "ipv6/ip",
            _ => "any/ip",
        };
        out.open_object(None);
        out.string("ifname", &view.name, format_args!("{}: ", view.name));
        out.string("mode", mode, format_args!("{mode} "));
        let (remote, local) = (addr_or_any(t.remote), addr_or_any(t.local));
        out.string("remote", &remote, format_args!("remote {remote} "));
        out.string("local", &local, format_args!("local {local}"));
        if let Some(dev) = &t.dev {
            out.string("dev", dev, format_args!(" dev {dev}"));
        }
        match t.ttl {
            0 => out.string("ttl", "inherit", format_args!(" ttl inherit")),
            ttl => out.num("ttl", ttl, format_args!(" ttl {ttl}")),
        }
        match t.tos {
            0 => {}
            1 => out.string("tos", "inherit", format_args!(" tos inherit")),
            tos if tos & 1 == 1 => {
                let text = format!("inherit/0x{:02x}", tos & !1);
                out.string("tos", &text, format_args!(" tos {text}"));
            }
            tos => out.string("tos", &format!("0x{tos:02x}"), format_args!(" tos 0x{tos:02x}")),
        }
        if !t.pmtudisc {
            out.flag("nopmtudisc", format_args!(" nopmtudisc"));
        }
        match (t.ikey, t.okey) {
            (Some(i), Some(o)) if i == o => out.num("key", i, format_args!(" key {i}")),
            (i, o) => {
                for (name, key) in [("ikey", i), ("okey", o)] {
                    if let Some(key) = key {
                        out.num(name, key, format_args!(" {name} {key}"));
                    }
                }
            }
        }
        for (on, key, text) in [
            (t.iseq, "iseq", "Drop packets out of sequence."),
            (t.icsum, "icsum", "Checksum in received packet is required."),
            (t.oseq, "oseq", "Sequence packets on output."),
            (t.ocsum, "ocsum", "Checksum output packets."),
        ] {
            if on {
                out.nl();
                out.flag(key, format_args!("  {text}"));
            }
        }
        out.text_only(format_args!("\n"));
        out.close_object();
    }
    out.finish()
}
