//! The masks of a priority of flower filters, and which filter a packet finds behind one.
//!
//! Follows: linux v6.12 `net/sched/cls_flower.c` `fl_mask_lookup`, `fl_lookup_range`, `fl_check_assign_mask`;
//! `net/core/flow_dissector.c` `__skb_flow_dissect` with `FLOW_DISSECTOR_F_STOP_BEFORE_ENCAP`.

use super::key::{Key, LABELS_MAX};
use super::tunnel::{self, Tunnel};
use crate::act::Shrinking;
use penstock_packet::headers::ipproto;
use penstock_packet::{ETH_P_PPP_SES, L3, L4, Skb, ethertype};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Most fields a key has.
const FIELDS_MAX: usize = 64;
/// Words for the label stack: which entries there are, and these.
const LABEL_WORDS: usize = 1 + LABELS_MAX as usize;
/// Words of a packet that are compared at most.
const WORDS_MAX: usize = FIELDS_MAX + LABEL_WORDS + tunnel::WORDS;

/// The masks in the order they came up in.
#[derive(Default)]
pub(super) struct Masks(Vec<Mask>);

/// Filters that look at the same bits.
#[derive(Default)]
struct Mask {
    key: Key,
    /// What it looks at: fields but the ranges of ports, with the bits that count.
    fields: Vec<(&'static str, u128)>,
    /// The bits that count of the label stack and of a tunnel's options, where it looks at those.
    beyond: Vec<u128>,
    /// Whether it looks at a range of destination ports, and of source ports.
    ranges: [bool; 2],
    /// Filters by the order they were made in, with their handles.
    filters: BTreeMap<u64, (u32, Sought)>,
    /// Where each handle stands in that order.
    places: BTreeMap<u32, u64>,
    /// What is looked for by some filter: no two look for the same.
    keys: BTreeSet<Key>,
    /// Handles by what they look for, where there are no ranges.
    sought: BTreeMap<Box<[u128]>, u32>,
    /// Its table, as 7.2 frees it.
    table: Option<Shrinking>,
}

/// What one filter looks for.
struct Sought {
    key: Key,
    values: Box<[u128]>,
    /// Least and greatest destination port, and source port.
    ranges: [(u16, u16); 2],
}

/// The fields of the ranges.
const RANGES: [(&str, &str); 2] = [("port_dst_min", "port_dst_max"), ("port_src_min", "port_src_max")];

impl Masks {
    /// Whether some filter looks for the same.
    pub fn has(&self, mask: &Key, masked: &Key) -> bool {
        self.0.iter().find(|m| m.key == *mask).is_some_and(|m| m.keys.contains(masked))
    }
    /// A filter, in the place of the one with its handle where there is one.
    pub fn put(&mut self, mask: Key, masked: Key, handle: u32, table: impl FnOnce() -> Option<Shrinking>) {
        let at = self.0.iter().position(|m| m.key == mask).unwrap_or_else(|| {
            self.0.push(Mask { table: table(), ..Mask::new(mask) });
            self.0.len() - 1
        });
        self.0[at].put(masked, handle);
    }
    /// A filter goes, and its mask with the last one.
    pub fn remove(&mut self, mask: &Key, handle: u32) {
        let Some(at) = self.0.iter().position(|m| m.key == *mask) else { return };
        self.0[at].remove(handle);
        if self.0[at].filters.is_empty() {
            self.0.remove(at);
        }
    }
    /// The handle of the filter that goes first where all do (`fl_destroy`).
    pub fn first(&self) -> Option<u32> {
        self.0.first()?.filters.first_key_value().map(|(_, (handle, _))| *handle)
    }
    /// The handle of the filter that a packet finds.
    pub fn find(&self, skb: &Skb) -> Option<u32> {
        self.0.iter().find_map(|mask| mask.find(skb))
    }
}

impl Mask {
    fn new(key: Key) -> Mask {
        let fields = key.masks().filter(|(name, _)| !RANGES.iter().any(|r| r.0 == *name || r.1 == *name));
        let fields: Vec<_> = fields.take(FIELDS_MAX).collect();
        let ranges = RANGES.map(|(min, _)| key.value(min).is_some());
        let beyond = key.beyond();
        Mask { key, fields, beyond, ranges, ..Mask::default() }
    }
    fn put(&mut self, masked: Key, handle: u32) {
        let next = self.filters.last_key_value().map_or(0, |(place, _)| place + 1);
        let place = self.places.get(&handle).copied().unwrap_or(next);
        self.remove(handle);
        let sought = self.sought(masked);
        self.places.insert(handle, place);
        self.keys.insert(sought.key.clone());
        self.sought.insert(sought.values.clone(), handle);
        self.filters.insert(place, (handle, sought));
    }
    fn remove(&mut self, handle: u32) {
        let Some(place) = self.places.remove(&handle) else { return };
        if let Some(table) = &mut self.table {
            table.loses_one();
        }
        if let Some((_, gone)) = self.filters.remove(&place) {
            self.keys.remove(&gone.key);
            self.sought.remove(&gone.values);
        }
    }
    fn sought(&self, key: Key) -> Sought {
        let fields = self.fields.iter().map(|(name, _)| key.value(name).unwrap_or(0));
        let beyond = key.beyond().into_iter().zip(&self.beyond).map(|(word, mask)| word & mask);
        let values = fields.chain(beyond).collect();
        let port = |name| key.value(name).unwrap_or(0) as u16;
        let ranges = RANGES.map(|(min, max)| (port(min), port(max)));
        Sought { key, values, ranges }
    }
    fn find(&self, skb: &Skb) -> Option<u32> {
        let packet = Dissected::of(skb);
        let mut values = [0; WORDS_MAX];
        for (value, (name, mask)) in values.iter_mut().zip(&self.fields) {
            *value = self.field(&packet, name) & mask;
        }
        if !self.beyond.is_empty() {
            self.beyond(skb, &mut values[self.fields.len()..]);
        }
        let values = &values[..self.fields.len() + self.beyond.len()];
        if self.ranges == [false; 2] {
            return self.sought.get(values).copied();
        }
        let within = |sought: &Sought| {
            let ports = [packet.dport, packet.sport];
            let one = |n: usize| {
                let (min, max) = sought.ranges[n];
                !self.ranges[n] || (min..=max).contains(&ports[n])
            };
            one(0) && one(1) && *sought.values == *values
        };
        self.filters.values().find(|(_, sought)| within(sought)).map(|(handle, _)| *handle)
    }
    /// What it looks at beyond the fields.
    #[cold]
    fn beyond(&self, skb: &Skb, values: &mut [u128]) {
        let (labels, options) = self.key.looks_beyond();
        let mut at = 0;
        if labels {
            // The stack ends with the entry that says so.
            let mut last = false;
            let seen = skb.labels().take(LABELS_MAX as usize).take_while(|entry| {
                let before = last;
                last = entry & 1 << 8 != 0;
                !before
            });
            for (depth, entry) in seen.enumerate() {
                values[0] |= 1 << depth;
                values[1 + depth] = entry.into();
            }
            at = LABEL_WORDS;
        }
        if options {
            values[at..at + tunnel::WORDS].copy_from_slice(&Tunnel::of_packet(skb.rare().tunnel.as_deref()));
        }
        values.iter_mut().zip(&self.beyond).for_each(|(value, mask)| *value &= mask);
    }
    /// A field of a packet as the dissector leaves it: 0 where there is none. It says which kind of address it has found only
    /// where the mask looks at addresses of that kind.
    fn field(&self, packet: &Dissected<'_>, name: &str) -> u128 {
        if name == "addr_type" {
            let looks = |names: [&str; 2]| names.iter().any(|name| self.key.value(name).is_some());
            return match packet.l3 {
                L3::Ipv4(_) if looks(["ipv4_src", "ipv4_dst"]) => 4,
                L3::Ipv6(_) if looks(["ipv6_src", "ipv6_dst"]) => 6,
                _ => 0,
            };
        }
        packet.field(name)
    }
}

/// States as a packet notes them.
mod ct_state {
    pub const NEW: u8 = 2;
    pub const RELATED: u8 = 4;
    pub const ESTABLISHED: u8 = 8;
}

/// What is read of a packet once.
struct Dissected<'a> {
    skb: &'a Skb,
    /// Behind all tags.
    l3: &'a L3,
    l4: &'a L4,
    protocol: u8,
    fragment: bool,
    sport: u16,
    dport: u16,
}

fn mac(bytes: [u8; 6]) -> u128 {
    bytes.iter().fold(0, |n, b| n << 8 | u128::from(*b))
}

impl Dissected<'_> {
    fn of(skb: &Skb) -> Dissected<'_> {
        let (l3, l4) = skb.behind_session();
        let (protocol, fragment) = match l3 {
            L3::Ipv4(h) => (h.protocol, h.frag_off & 0x3fff != 0),
            L3::Ipv6(h) => (h.protocol(), h.fragment().is_some()),
            _ => (0, false),
        };
        let (sport, dport) = match l4 {
            _ if fragment => (0, 0),
            L4::Tcp(tcp) => (tcp.sport, tcp.dport),
            L4::Udp(udp) => (udp.sport, udp.dport),
            _ => (0, 0),
        };
        Dissected { skb, l3, l4, protocol, fragment, sport, dport }
    }
    fn field(&self, name: &str) -> u128 {
        let skb = self.skb;
        match name {
            "src_mac" => mac(skb.eth.0),
            "dst_mac" => mac(skb.eth.1),
            "n_proto" => ethertype(self.l3).into(),
            "indev" => skb.iif.into(),
            "ip_proto" => self.protocol.into(),
            "ip_tos" => match self.l3 {
                L3::Ipv4(h) => h.tos.into(),
                L3::Ipv6(h) => h.traffic_class.into(),
                _ => 0,
            },
            "tcp_src" | "udp_src" | "sctp_src" => self.sport.into(),
            "tcp_dst" | "udp_dst" | "sctp_dst" => self.dport.into(),
            "tcp_flags" => match self.l4 {
                L4::Tcp(tcp) if !self.fragment => tcp.flags.0.into(),
                _ => 0,
            },
            "icmpv4_type" | "icmpv6_type" => self.icmp(|m| m.ty),
            "icmpv4_code" | "icmpv6_code" => self.icmp(|m| m.code),
            "num_of_vlans" => u128::from(skb.rare().vlan.is_some()) + skb.tags_in_frame() as u128,
            "vlan_id" => skb.rare().vlan.map_or(0, |(_, tci)| u128::from(tci & 0xfff)),
            "vlan_prio" => skb.rare().vlan.map_or(0, |(_, tci)| u128::from(tci >> 13)),
            "vlan_tpid" => skb.rare().vlan.map_or(0, |(tpid, _)| tpid.into()),
            "vlan_ethtype" => skb.rare().vlan.map_or(0, |_| skb.protocol().into()),
            "cvlan_id" => skb.rare().within.as_ref().map_or(0, |t| u128::from(t.tci & 0xfff)),
            "cvlan_prio" => skb.rare().within.as_ref().map_or(0, |t| u128::from(t.tci >> 13)),
            "cvlan_tpid" => skb.rare().within.as_ref().map_or(0, |_| skb.protocol().into()),
            "cvlan_ethtype" => skb.rare().within.as_ref().map_or(0, |t| ethertype(&t.l3).into()),
            // FLOW_DISSECTOR_KEY_PPPOE: all are 0 where there is no session.
            "pppoe_type" => skb.pppoe().map_or(0, |_| ETH_P_PPP_SES.into()),
            "pppoe_sid" => skb.pppoe().map_or(0, |(sid, _)| sid.into()),
            "ppp_proto" => skb.pppoe().map_or(0, |(_, proto)| proto.into()),
            "l2_miss" => u128::from(skb.rare().l2_miss),
            _ if name.starts_with("enc_") => self.tunnel(name),
            _ if name.starts_with("ct_") => self.connection(name),
            _ => self.address(name),
        }
    }
    /// `skb_flow_dissect_ct`: of a packet that went through `ct` and has no connection, that it is invalid.
    fn connection(&self, name: &str) -> u128 {
        const TRACKED: u128 = 8;
        let rare = self.skb.rare();
        let known = rare.ct.filter(|known| known.id.is_some());
        let state = |known: penstock_packet::Tracked| {
            let way = if known.reply { 32 } else { 0 };
            match known.state {
                ct_state::NEW => TRACKED | 1,
                ct_state::ESTABLISHED => TRACKED | 2 | way,
                ct_state::RELATED => TRACKED | 4 | way,
                _ => 0,
            }
        };
        match (name, known, rare.post_ct) {
            ("ct_state", Some(known), _) => state(known),
            ("ct_zone", Some(_), _) => rare.ct_zone.into(),
            ("ct_mark", Some(_), _) => rare.ct_mark.unwrap_or(0).into(),
            ("ct_label", Some(_), _) => rare.ct_labels,
            ("ct_state", None, Some(_)) => TRACKED | 16,
            ("ct_zone", None, Some(zone)) => zone.into(),
            _ => 0,
        }
    }
    /// `skb_flow_dissect_tunnel_info`.
    fn tunnel(&self, name: &str) -> u128 {
        let Some(info) = self.skb.rare().tunnel.as_deref() else { return 0 };
        match (name, info.src, info.dst) {
            ("enc_addr_type", IpAddr::V4(_), _) => 4,
            ("enc_addr_type", IpAddr::V6(_), _) => 6,
            ("enc_ipv4_src", IpAddr::V4(a), _) | ("enc_ipv4_dst", _, IpAddr::V4(a)) => a.to_bits().into(),
            ("enc_ipv6_src", IpAddr::V6(a), _) | ("enc_ipv6_dst", _, IpAddr::V6(a)) => a.to_bits(),
            ("enc_key_id", ..) => u128::from(info.id as u32),
            ("enc_dst_port", ..) => info.dst_port.into(),
            ("enc_tos", ..) => info.tos.into(),
            ("enc_ttl", ..) => info.ttl.into(),
            ("enc_flags", ..) => u128::from(info.csum) << 2 | u128::from(info.nofrag) << 3,
            _ => 0,
        }
    }
    fn icmp(&self, part: fn(&penstock_packet::Icmp) -> u8) -> u128 {
        match self.l4 {
            L4::Icmp(icmp) if matches!(self.protocol, ipproto::ICMP | ipproto::ICMPV6) && !self.fragment => {
                part(icmp).into()
            }
            _ => 0,
        }
    }
    /// What belongs to one network protocol.
    fn address(&self, name: &str) -> u128 {
        match (self.l3, name) {
            (L3::Ipv4(h), "ipv4_src") => h.src.to_bits().into(),
            (L3::Ipv4(h), "ipv4_dst") => h.dst.to_bits().into(),
            (L3::Ipv4(h), "ip_ttl") => h.ttl.into(),
            // The first bit says that it is a fragment, the second that it is the first one.
            (L3::Ipv4(h), "ip_flags") if self.fragment => 1 | u128::from(h.frag_off & 0x1fff == 0) << 1,
            (L3::Ipv6(h), "ip_flags") if self.fragment => 1 | u128::from(!h.is_later_fragment()) << 1,
            (L3::Ipv6(h), "ipv6_src") => h.src.to_bits(),
            (L3::Ipv6(h), "ipv6_dst") => h.dst.to_bits(),
            (L3::Ipv6(h), "ip_ttl") => h.hop_limit.into(),
            (L3::Arp(a), "arp_sip") => a.spa.to_bits().into(),
            (L3::Arp(a), "arp_tip") => a.tpa.to_bits().into(),
            (L3::Arp(a), "arp_sha") => mac(a.sha),
            (L3::Arp(a), "arp_tha") => mac(a.tha),
            (L3::Arp(a), "arp_op") => u128::from(a.op & 0xff),
            _ => 0,
        }
    }
}
