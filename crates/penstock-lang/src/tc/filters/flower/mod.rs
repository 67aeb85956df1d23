//! `flower`: fields of the headers, with masks.
//!
//! Numbers travel as numbers, addresses as bytes; a field's mask is the field's name with `_mask`. Ports and ICMP fields are
//! named by their protocol (`tcp_dst`, `icmpv4_type`), addresses by their family (`ipv4_src`), as on netlink.
//! [`parse`] reads the words, [`value`] their values, [`tunnel`] the options of tunnels, [`mod@print`] prints.
//!
//! Follows: iproute2 6.1.0 `tc/f_flower.c`.
//! Differs: also read and shown are the words that iproute2 6.12 has: `l2_miss`, `spi`, `l2tpv3_sid`, `pfcp_opts`, `enc_flags`,
//! `cfm`, `ip_proto l2tp`, `esp`, `ah`. Where tc 6.1 runs into a wrong pointer (`erspan_opts` and `gtp_opts` without a colon) the
//! words are refused.

mod parse;
mod print;
mod tunnel;
mod value;

use super::FilterKind;
use crate::tc::kinds::word;

const USAGE: &str = "\
Usage: ... flower\t[ MATCH-LIST ] [ verbose ]
       ... flower [ MATCH ... ] [ verbose ] [ skip_sw | skip_hw ] [ action ACTION-SPEC ] [ classid CLASSID | hw_tc TC ]
MATCH := indev DEV, dst_mac|src_mac LLADDR[/MASK|/BITS], ip_proto PROTO, dst_ip|src_ip PREFIX, dst_port|src_port PORT[/MASK|-PORT],
         ip_tos|ip_ttl VALUE[/MASK], ip_flags FLAGS, tcp_flags FLAGS[/MASK], type|code VALUE[/MASK],
         arp_tip|arp_sip PREFIX, arp_op request|reply|OP, arp_tha|arp_sha LLADDR[/MASK],
         num_of_vlans N, vlan_id VID, vlan_prio N, vlan_ethtype PROTO, cvlan_id VID, cvlan_prio N, cvlan_ethtype PROTO,
         mpls lse depth N ..., mpls_label N, mpls_tc N, mpls_bos N, mpls_ttl N, pppoe_sid N, ppp_proto PROTO,
         enc_key_id N, enc_dst_ip|enc_src_ip PREFIX, enc_dst_port N, enc_tos|enc_ttl VALUE[/MASK], enc_flags FLAGS,
         geneve_opts|vxlan_opts|erspan_opts|gtp_opts|pfcp_opts OPTIONS[/MASK],
         ct_state FLAGS, ct_zone N[/MASK], ct_mark N[/MASK], ct_label HEX[/MASK],
         spi HEX, l2tpv3_sid N, l2_miss 0|1, cfm mdl N op N
";

pub static KIND: FilterKind = FilterKind {
    id: "flower",
    old: false,
    parse: parse::parse,
    print: print::print,
    words: &[
        word("indev", "DEV", "the interface the packet came in by"),
        word("dst_mac", "LLADDR[/MASK]", "destination address of the frame"),
        word("src_mac", "LLADDR[/MASK]", "source address of the frame"),
        word(
            "ip_proto",
            "PROTO",
            "tcp, udp, sctp, icmp, icmpv6, l2tp, esp, ah or hexadecimal; needs protocol ip or ipv6",
        ),
        word("dst_ip", "PREFIX", "destination address"),
        word("src_ip", "PREFIX", "source address"),
        word("dst_port", "PORT[/MASK|-PORT]", "destination port or range; needs ip_proto tcp, udp or sctp"),
        word("src_port", "PORT[/MASK|-PORT]", "source port or range"),
        word("ip_tos", "TOS[/MASK]", "type of service or traffic class"),
        word("ip_ttl", "TTL[/MASK]", "time to live or hop limit"),
        word("ip_flags", "FLAGS", "frag, nofrag, firstfrag, nofirstfrag, with / between"),
        word("tcp_flags", "FLAGS[/MASK]", "hexadecimal, up to fff"),
        word("type", "N[/MASK]", "type of ICMP; needs ip_proto icmp or icmpv6"),
        word("code", "N[/MASK]", "code of ICMP"),
        word("arp_tip", "PREFIX", "target address of ARP; needs protocol arp or rarp"),
        word("arp_sip", "PREFIX", "sender address of ARP"),
        word("arp_op", "OP[/MASK]", "request, reply or a number"),
        word("arp_tha", "LLADDR[/MASK]", "target hardware address of ARP"),
        word("arp_sha", "LLADDR[/MASK]", "sender hardware address of ARP"),
        word("num_of_vlans", "N", "how many VLAN tags"),
        word("vlan_id", "VID", "VLAN, 0 to 4095; needs protocol 802.1Q or 802.1ad"),
        word("vlan_prio", "N", "priority in the tag, 0 to 7"),
        word("vlan_ethtype", "PROTO", "what the tag holds"),
        word("cvlan_id", "VID", "VLAN of the inner tag"),
        word("cvlan_prio", "N", "priority in the inner tag"),
        word("cvlan_ethtype", "PROTO", "what the inner tag holds"),
        word("mpls", "lse depth N …", "entries of the label stack: depth, label, tc, bos, ttl"),
        word("mpls_label", "N", "outermost label, up to 1048575; needs protocol mpls_uc or mpls_mc"),
        word("mpls_tc", "N", "its traffic class, 0 to 7"),
        word("mpls_bos", "N", "its bottom of stack, 0 or 1"),
        word("mpls_ttl", "N", "its time to live"),
        word("pppoe_sid", "N", "session of PPPoE; needs protocol ppp_ses"),
        word("ppp_proto", "PROTO", "protocol in PPP"),
        word("enc_key_id", "N", "key of the tunnel the packet came out of"),
        word("enc_dst_ip", "PREFIX", "the tunnel's destination"),
        word("enc_src_ip", "PREFIX", "the tunnel's source"),
        word("enc_dst_port", "PORT", "the tunnel's destination port"),
        word("enc_tos", "TOS[/MASK]", "the tunnel's type of service"),
        word("enc_ttl", "TTL[/MASK]", "the tunnel's time to live"),
        word("enc_flags", "FLAGS", "tuncsum, tundf, tunoam, tuncrit, each also with no before it"),
        word("geneve_opts", "CLASS:TYPE:DATA[/MASK][,…]", "options of geneve"),
        word("vxlan_opts", "GBP[/MASK]", "group policy of VXLAN"),
        word("erspan_opts", "VER:INDEX:DIR:HWID[/MASK]", "header of ERSPAN"),
        word("gtp_opts", "TYPE:QFI[/MASK]", "session of GTP"),
        word("pfcp_opts", "TYPE:SEID[/MASK]", "session of PFCP"),
        word("ct_state", "FLAGS", "state of connection tracking: +trk, -new, +est, …"),
        word("ct_zone", "N[/MASK]", "its zone"),
        word("ct_mark", "N[/MASK]", "its mark"),
        word("ct_label", "HEX[/MASK]", "its label, up to 16 bytes"),
        word("spi", "HEX", "parameter index of IPsec; needs ip_proto esp or ah"),
        word("l2tpv3_sid", "N", "session of L2TPv3; needs ip_proto l2tp"),
        word("l2_miss", "0|1", "whether the bridge knew no port for it"),
        word("cfm", "mdl N op N", "level and operation of connectivity fault management"),
        word("classid", "CLASSID", "the class for matching packets"),
        word("hw_tc", "TC", "the hardware's traffic class it goes to, 0 to 15"),
        word("action", "ACTION-SPEC", "action for matching packets"),
        word("verbose", "", "the kernel says why hardware refuses"),
        word("skip_hw", "", "do not offload to hardware"),
        word("skip_sw", "", "only offload to hardware"),
    ],
};

/// States of connection tracking by bit.
const CT_STATES: [(&str, u32); 6] =
    [("trk", 8), ("new", 1), ("est", 2), ("rel", 4), ("inv", 16), ("rpl", 32)];

/// Flags of the packet and of its tunnel by bit.
const IP_FLAGS: [(&str, u32); 2] = [("frag", 1), ("firstfrag", 2)];
const ENC_FLAGS: [(&str, u32); 4] = [("tuncsum", 4), ("tundf", 8), ("tunoam", 16), ("tuncrit", 32)];

/// Protocols of PPP.
const PPP_PROTOCOLS: [(u16, &str); 23] = [
    (0x21, "ip"),
    (0x29, "at"),
    (0x2b, "ipx"),
    (0x2d, "vjc_comp"),
    (0x2f, "vjc_uncomp"),
    (0x3d, "mp"),
    (0x57, "ipv6"),
    (0xfb, "compfrag"),
    (0xfd, "comp"),
    (0x281, "mpls_uc"),
    (0x283, "mpls_mc"),
    (0x8021, "ipcp"),
    (0x8029, "atcp"),
    (0x802b, "ipxcp"),
    (0x8057, "ipv6cp"),
    (0x80fb, "ccpfrag"),
    (0x80fd, "ccp"),
    (0x8281, "mplscp"),
    (0xc021, "lcp"),
    (0xc023, "pap"),
    (0xc025, "lqr"),
    (0xc223, "chap"),
    (0xc029, "cbcp"),
];

const ETH_P_IP: u16 = 0x0800;
const ETH_P_ARP: u16 = 0x0806;
const ETH_P_RARP: u16 = 0x8035;
const ETH_P_IPV6: u16 = 0x86dd;

const TCP: u32 = 6;
const UDP: u32 = 17;
const SCTP: u32 = 132;
const ICMP: u32 = 1;
const ICMPV6: u32 = 58;

/// The names of a port's value and mask: `flower_port_attr_type`.
fn port_names(proto: u32, dst: bool) -> Option<(&'static str, &'static str)> {
    Some(match (proto, dst) {
        (TCP, true) => ("tcp_dst", "tcp_dst_mask"),
        (TCP, false) => ("tcp_src", "tcp_src_mask"),
        (UDP, true) => ("udp_dst", "udp_dst_mask"),
        (UDP, false) => ("udp_src", "udp_src_mask"),
        (SCTP, true) => ("sctp_dst", "sctp_dst_mask"),
        (SCTP, false) => ("sctp_src", "sctp_src_mask"),
        _ => return None,
    })
}

/// The names of a range's ends.
fn range_names(dst: bool) -> (&'static str, &'static str) {
    if dst { ("port_dst_min", "port_dst_max") } else { ("port_src_min", "port_src_max") }
}

/// The names of a field of ICMP and its mask: `flower_icmp_attr_type`.
fn icmp_names(eth_type: u16, proto: u32, code: bool) -> Option<(&'static str, &'static str)> {
    Some(match (eth_type, proto, code) {
        (ETH_P_IP, ICMP, false) => ("icmpv4_type", "icmpv4_type_mask"),
        (ETH_P_IP, ICMP, true) => ("icmpv4_code", "icmpv4_code_mask"),
        (ETH_P_IPV6, ICMPV6, false) => ("icmpv6_type", "icmpv6_type_mask"),
        (ETH_P_IPV6, ICMPV6, true) => ("icmpv6_code", "icmpv6_code_mask"),
        _ => return None,
    })
}
