//! A flower filter as tc prints it.
//!
//! Follows: iproute2 6.1.0 `tc/f_flower.c` `flower_print_opt`, `tc/tc_util.c` `print_masked_type`.

use super::{
    CT_STATES, ENC_FLAGS, ETH_P_ARP, ETH_P_IP, ETH_P_IPV6, ETH_P_RARP, ICMP, ICMPV6, IP_FLAGS, PPP_PROTOCOLS,
    SCTP, TCP, UDP, icmp_names, port_names, range_names, tunnel,
};
use crate::show::Out;
use crate::tc::filters::exts;
use crate::tc::num;
use penstock_model::rtnetlink::FilterDump;
use penstock_model::{Handle, Options};
use std::net::{Ipv4Addr, Ipv6Addr};

/// A name and its value on a line of their own.
fn named(name: &str, value: &str, out: &mut Out) {
    out.nl();
    out.string(name, value, format_args!("  {name} {value}"));
}

fn plain(o: &Options, name: &str, out: &mut Out) {
    if let Some(n) = o.u32(name) {
        out.nl();
        out.num(name, n, format_args!("  {name} {n}"));
    }
}

/// `print_masked_type`.
fn masked(o: &Options, name: &str, field: &str, mask: &str, max: u32, out: &mut Out) {
    let Some(n) = o.u32(field) else { return };
    out.nl();
    out.num(name, n, format_args!("  {name} {n}"));
    if let Some(mask) = o.u32(mask).filter(|&mask| mask != max) {
        out.hex(&format!("{name}_mask"), mask, format_args!("/0x{mask:x}"));
    }
}

/// `flower_print_masked_u8`: the mask in decimal.
fn masked_u8(o: &Options, name: &str, field: &str, mask: &str, words: &[(u32, &str)], out: &mut Out) {
    let Some(n) = o.u32(field) else { return };
    let mask = o.u32(mask).unwrap_or(0xff);
    let word = words.iter().find(|w| w.0 == n && mask == 0xff).map(|w| w.1.to_owned());
    let text = word.unwrap_or_else(|| n.to_string());
    let text = if mask == 0xff { text } else { format!("{text}/{mask}") };
    named(name, &text, out);
}

/// `__mask_bits`: the length of a prefix; `None` for no prefix, and for one of no bits.
fn mask_bits(mask: &[u8]) -> Option<usize> {
    let bits = mask.iter().map(|b| b.leading_ones() as usize).collect::<Vec<_>>();
    let whole = bits.iter().take_while(|&&b| b == 8).count();
    let len = whole * 8 + bits.get(whole).copied().unwrap_or(0);
    let ones: u32 = mask.iter().map(|b| b.count_ones()).sum();
    (len > 0 && ones as usize == len).then_some(len)
}

fn address(bytes: &[u8]) -> String {
    match (<[u8; 4]>::try_from(bytes), <[u8; 16]>::try_from(bytes)) {
        (Ok(four), _) => Ipv4Addr::from(four).to_string(),
        (_, Ok(six)) => Ipv6Addr::from(six).to_string(),
        _ => bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":"),
    }
}

/// An address with what its mask leaves of it.
fn masked_address(o: &Options, name: &str, field: &str, mask: &str, out: &mut Out) {
    let Some(bytes) = o.bytes(field) else { return };
    let mut text = address(bytes);
    if let Some(mask) = o.bytes(mask) {
        match mask_bits(mask) {
            None => text += &format!("/{}", address(mask)),
            Some(bits) if bits < mask.len() * 8 => text += &format!("/{bits}"),
            Some(_) => {}
        }
    }
    named(name, &text, out);
}

fn flags(o: &Options, name: &str, mask: &str, known: &[(&str, u32)], out: &mut Out) {
    let (Some(value), Some(mask)) = (o.u32(name), o.u32(mask)) else { return };
    let shown: Vec<_> = known.iter().filter(|(_, flag)| mask & flag != 0).collect();
    if shown.is_empty() {
        return;
    }
    out.nl();
    out.text_only(format_args!("  {name} "));
    out.open_object(Some(name));
    for (i, (word, flag)) in shown.into_iter().enumerate() {
        let before = if i > 0 { "/" } else { "" };
        let set = value & flag != 0;
        out.json_bool(word, set);
        out.text_only(format_args!("{before}{}{word}", if set { "" } else { "no" }));
    }
    out.close_object();
}

pub fn print(dump: &FilterDump, o: &Options, out: &mut Out) {
    if dump.handle != 0 {
        out.num("handle", dump.handle, format_args!("handle 0x{:x} ", dump.handle));
    }
    if let Some(id) = o.u32("classid").map(Handle) {
        if (0xffe0..=0xffef).contains(&id.minor()) {
            let tc = id.minor() - 0xffe0;
            out.num("hw_tc", tc, format_args!("hw_tc {tc} "));
        } else {
            out.string("classid", &id.to_string(), format_args!("classid {id} "));
        }
    }
    if let Some(dev) = o.str("indev") {
        named("indev", dev, out);
    }
    out.open_object(Some("keys"));
    keys(o, out);
    out.close_object();
    let hardware = o.u32("flags").unwrap_or(0);
    for (bit, name) in [(1, "skip_hw"), (2, "skip_sw")] {
        if hardware & bit != 0 {
            out.nl();
            out.flag(name, format_args!("  {name}"));
        }
    }
    let state = match hardware {
        h if h & 4 != 0 => Some("in_hw"),
        h if h & 8 != 0 => Some("not_in_hw"),
        _ => None,
    };
    if let Some(state) = state {
        out.nl();
        out.flag(state, format_args!("  {state}"));
    }
    exts::print_action(o, out);
}

fn keys(o: &Options, out: &mut Out) {
    for name in ["num_of_vlans", "vlan_id", "vlan_prio"] {
        plain(o, name, out);
    }
    ethtype(o, "vlan_ethtype", out);
    for name in ["cvlan_id", "cvlan_prio"] {
        plain(o, name, out);
    }
    ethtype(o, "cvlan_ethtype", out);
    masked_address(o, "dst_mac", "dst_mac", "dst_mac_mask", out);
    masked_address(o, "src_mac", "src_mac", "src_mac_mask", out);
    let eth_type = o.u32("eth_type").unwrap_or(0) as u16;
    if o.has("eth_type") {
        let name = match eth_type {
            ETH_P_IP => "ipv4".to_owned(),
            ETH_P_IPV6 => "ipv6".to_owned(),
            ETH_P_ARP => "arp".to_owned(),
            ETH_P_RARP => "rarp".to_owned(),
            other => format!("{other:04x}"),
        };
        named("eth_type", &name, out);
    }
    let proto = o.u32("ip_proto").unwrap_or(0xff);
    if o.has("ip_proto") {
        let names = [(TCP, "tcp"), (UDP, "udp"), (SCTP, "sctp"), (ICMP, "icmp"), (ICMPV6, "icmpv6")];
        let newer = [(115, "l2tp"), (50, "esp"), (51, "ah")].into_iter().filter(|_| out.since_7());
        let name = names.into_iter().chain(newer).find(|n| n.0 == proto).map(|n| n.1.to_owned());
        let number = if out.since_7() { format!("{proto:#04x}") } else { format!("{proto:02x}") };
        named("ip_proto", &name.unwrap_or(number), out);
    }
    masked(o, "ip_tos", "ip_tos", "ip_tos_mask", 0xff, out);
    masked(o, "ip_ttl", "ip_ttl", "ip_ttl_mask", 0xff, out);
    if o.has("mpls") {
        mpls(o.list("mpls"), out);
    }
    plain(o, "mpls_label", out);
    for name in ["mpls_tc", "mpls_bos", "mpls_ttl"] {
        masked_u8(o, name, name, "", &[], out);
    }
    match eth_type {
        ETH_P_IP => {
            masked_address(o, "dst_ip", "ipv4_dst", "ipv4_dst_mask", out);
            masked_address(o, "src_ip", "ipv4_src", "ipv4_src_mask", out);
        }
        ETH_P_IPV6 => {
            masked_address(o, "dst_ip", "ipv6_dst", "ipv6_dst_mask", out);
            masked_address(o, "src_ip", "ipv6_src", "ipv6_src_mask", out);
        }
        _ => {}
    }
    for (name, dst) in [("dst_port", true), ("src_port", false)] {
        if let Some((field, mask)) = port_names(proto, dst) {
            masked(o, name, field, mask, 0xffff, out);
        }
    }
    for (name, dst) in [("dst_port", true), ("src_port", false)] {
        let (from, to) = range_names(dst);
        if let (Some(_), Some(from), Some(to)) = (port_names(proto, dst), o.u32(from), o.u32(to)) {
            range(name, from, to, out);
        }
    }
    if let Some(flags) = o.u32("tcp_flags") {
        let mask = o.u32("tcp_flags_mask").map(|mask| format!("/{mask:x}")).unwrap_or_default();
        named("tcp_flags", &format!("0x{flags:x}{mask}"), out);
    }
    for (name, code) in [("icmp_type", false), ("icmp_code", true)] {
        if let Some((field, mask)) = icmp_names(eth_type, proto, code) {
            masked_u8(o, name, field, mask, &[], out);
        }
    }
    plain(o, "l2tpv3_sid", out);
    if let Some(spi) = o.u32("spi") {
        out.nl();
        out.hex("spi", spi, format_args!("  spi 0x{spi:x}"));
    }
    masked_address(o, "arp_sip", "arp_sip", "arp_sip_mask", out);
    masked_address(o, "arp_tip", "arp_tip", "arp_tip_mask", out);
    masked_u8(o, "arp_op", "arp_op", "arp_op_mask", &[(1, "request"), (2, "reply")], out);
    masked_address(o, "arp_sha", "arp_sha", "arp_sha_mask", out);
    masked_address(o, "arp_tha", "arp_tha", "arp_tha_mask", out);
    plain(o, "pppoe_sid", out);
    if let Some(proto) = o.u32("ppp_proto") {
        let known = PPP_PROTOCOLS.iter().find(|p| u32::from(p.0) == proto && !out.form.numeric);
        let name = known.map_or_else(|| format!("[{proto}]"), |p| p.1.to_owned());
        named("ppp_proto", &name, out);
    }
    tunnels(o, out);
    flags(o, "ip_flags", "ip_flags_mask", &IP_FLAGS, out);
    flags(o, "enc_flags", "enc_flags_mask", &ENC_FLAGS, out);
    plain(o, "l2_miss", out);
    connection(o, out);
    if let Some(cfm) = o.nested("cfm") {
        out.nl();
        out.text_only(format_args!("  cfm"));
        out.open_object(Some("cfm"));
        for name in ["mdl", "op"] {
            if let Some(n) = cfm.u32(name) {
                out.num(name, n, format_args!(" {name} {n}"));
            }
        }
        out.close_object();
    }
}

fn ethtype(o: &Options, name: &str, out: &mut Out) {
    if let Some(proto) = o.u32(name) {
        let proto = num::protocol_name(proto as u16, out.kernel(), out.form.numeric);
        named(name, &proto, out);
    }
}

fn range(name: &str, from: u32, to: u32, out: &mut Out) {
    if out.is_json() {
        out.open_object(Some(name));
        out.json_num("start", from);
        out.json_num("end", to);
        out.close_object();
    } else {
        named(name, &format!("{from}-{to}"), out);
    }
}

fn mpls(list: &[Options], out: &mut Out) {
    out.nl();
    out.open_array("mpls", "  mpls");
    for entry in list {
        out.nl();
        out.text_only(format_args!("    lse"));
        out.open_object(None);
        for name in ["depth", "label", "tc", "bos", "ttl"] {
            if let Some(n) = entry.u32(name) {
                out.num(name, n, format_args!(" {name} {n}"));
            }
        }
        out.close_object();
    }
    out.close_array();
}

fn tunnels(o: &Options, out: &mut Out) {
    for (name, four, mask4, six, mask6) in [
        ("enc_dst_ip", "enc_ipv4_dst", "enc_ipv4_dst_mask", "enc_ipv6_dst", "enc_ipv6_dst_mask"),
        ("enc_src_ip", "enc_ipv4_src", "enc_ipv4_src_mask", "enc_ipv6_src", "enc_ipv6_src_mask"),
    ] {
        if o.has(mask4) {
            masked_address(o, name, four, mask4, out);
        } else {
            masked_address(o, name, six, mask6, out);
        }
    }
    plain(o, "enc_key_id", out);
    masked(o, "enc_dst_port", "enc_dst_port", "enc_dst_port_mask", 0xffff, out);
    masked(o, "enc_tos", "enc_tos", "enc_tos_mask", 0xff, out);
    masked(o, "enc_ttl", "enc_ttl", "enc_ttl_mask", 0xff, out);
    tunnel::print(o, out);
}

fn connection(o: &Options, out: &mut Out) {
    if let Some(state) = o.u32("ct_state") {
        let mask = o.u32("ct_state_mask").unwrap_or(0xffff);
        let text: String = CT_STATES
            .iter()
            .filter(|(_, flag)| mask & flag != 0)
            .map(|(name, flag)| format!("{}{name}", if state & flag != 0 { '+' } else { '-' }))
            .collect();
        named("ct_state", &text, out);
    }
    masked(o, "ct_zone", "ct_zone", "ct_zone_mask", 0xffff, out);
    masked(o, "ct_mark", "ct_mark", "ct_mark_mask", u32::MAX, out);
    if let (Some(label), Some(mask)) = (o.bytes("ct_label"), o.bytes("ct_label_mask")) {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let whole = label.len() == 16 && mask.iter().all(|&b| b == 0xff);
        let mask = if whole { String::new() } else { format!("/{}", hex(mask)) };
        named("ct_label", &format!("{}{mask}", hex(label)), out);
    }
}
