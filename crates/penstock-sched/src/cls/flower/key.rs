//! The fields of a flower filter with their masks: `struct fl_flow_key` twice.
//!
//! Every field is a number, addresses too. What does not belong to the filter's protocol is left out, as the kernel leaves it
//! out; so two filters with the same [`Key`] are the same to it.
//!
//! Follows: linux v6.12 `net/sched/cls_flower.c` `fl_set_key`, `fl_dump_key`.

use super::tunnel::Tunnel;
use crate::qdisc::Device;
use penstock_model::{KernelError, Options, Value};
use std::collections::BTreeMap;

const ETH_P_IP: u128 = 0x0800;
const ETH_P_ARP: u128 = 0x0806;
const ETH_P_RARP: u128 = 0x8035;
const ETH_P_IPV6: u128 = 0x86dd;
const ETH_P_MPLS: [u128; 2] = [0x8847, 0x8848];
const ETH_P_PPP_SES: u128 = 0x8864;
const ETH_P_CFM: u128 = 0x8902;

const TCP: u128 = 6;
const UDP: u128 = 17;
const SCTP: u128 = 132;
const L2TP: u128 = 115;

/// Entries of a label stack that are looked at (`FLOW_DIS_MPLS_MAX`).
pub const LABELS_MAX: u32 = 7;

/// A field's value and mask.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Field {
    value: u128,
    mask: u128,
}

/// Name, name of the mask (empty where there is none), bits.
type Known = (&'static str, &'static str, u32);

/// All fields of addresses in bytes, which are dumped as bytes.
const BYTES: [Known; 15] = [
    ("dst_mac", "dst_mac_mask", 48),
    ("src_mac", "src_mac_mask", 48),
    ("ipv4_src", "ipv4_src_mask", 32),
    ("ipv4_dst", "ipv4_dst_mask", 32),
    ("ipv6_src", "ipv6_src_mask", 128),
    ("ipv6_dst", "ipv6_dst_mask", 128),
    ("arp_sip", "arp_sip_mask", 32),
    ("arp_tip", "arp_tip_mask", 32),
    ("arp_sha", "arp_sha_mask", 48),
    ("arp_tha", "arp_tha_mask", 48),
    ("enc_ipv4_src", "enc_ipv4_src_mask", 32),
    ("enc_ipv4_dst", "enc_ipv4_dst_mask", 32),
    ("enc_ipv6_src", "enc_ipv6_src_mask", 128),
    ("enc_ipv6_dst", "enc_ipv6_dst_mask", 128),
    ("ct_label", "ct_label_mask", 128),
];

/// All other fields.
const NUMBERS: [Known; 36] = [
    ("l2_miss", "", 8),
    ("num_of_vlans", "", 8),
    ("ip_proto", "", 8),
    ("ip_tos", "ip_tos_mask", 8),
    ("ip_ttl", "ip_ttl_mask", 8),
    ("tcp_src", "tcp_src_mask", 16),
    ("tcp_dst", "tcp_dst_mask", 16),
    ("tcp_flags", "tcp_flags_mask", 16),
    ("udp_src", "udp_src_mask", 16),
    ("udp_dst", "udp_dst_mask", 16),
    ("sctp_src", "sctp_src_mask", 16),
    ("sctp_dst", "sctp_dst_mask", 16),
    ("port_dst_min", "", 16),
    ("port_dst_max", "", 16),
    ("port_src_min", "", 16),
    ("port_src_max", "", 16),
    ("icmpv4_type", "icmpv4_type_mask", 8),
    ("icmpv4_code", "icmpv4_code_mask", 8),
    ("icmpv6_type", "icmpv6_type_mask", 8),
    ("icmpv6_code", "icmpv6_code_mask", 8),
    ("arp_op", "arp_op_mask", 8),
    ("l2tpv3_sid", "", 32),
    ("spi", "spi_mask", 32),
    ("pppoe_sid", "", 16),
    ("ppp_proto", "", 16),
    ("enc_key_id", "", 32),
    ("enc_dst_port", "enc_dst_port_mask", 16),
    ("enc_tos", "enc_tos_mask", 8),
    ("enc_ttl", "enc_ttl_mask", 8),
    ("ct_state", "ct_state_mask", 16),
    ("ct_zone", "ct_zone_mask", 16),
    ("ct_mark", "ct_mark_mask", 32),
    ("ip_flags", "ip_flags_mask", 32),
    ("enc_flags", "enc_flags_mask", 32),
    ("mdl", "", 8),
    ("op", "", 8),
];

/// `struct fl_flow_key` with its mask.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Key {
    fields: BTreeMap<&'static str, Field>,
    /// Entries of the label stack by depth from 0: label, tc, bos, ttl.
    mpls: BTreeMap<u32, [Option<u32>; 4]>,
    tunnel: Option<Tunnel>,
    /// Name and index of the interface.
    indev: Option<(String, u32)>,
}

fn refuse<T>(device: &Device, why: &str) -> Result<T, KernelError> {
    Err(device.refusal(KernelError::EINVAL, why))
}

fn ones(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

/// An option as a number; bytes that are not as many as they should be are `Err`, but for the label.
fn number(o: &Options, name: &str, bits: u32) -> Option<Result<u128, KernelError>> {
    match o.value(name)? {
        Value::Bytes(bytes) => {
            let len = (bits / 8) as usize;
            if bytes.len() > len || (bytes.len() < len && !name.starts_with("ct_label")) {
                return Some(Err(KernelError::errno(KernelError::ERANGE)));
            }
            let value = bytes.iter().fold(0u128, |n, b| n << 8 | u128::from(*b));
            let missing = 8 * (len - bytes.len()) as u32;
            Some(Ok(if missing >= 128 { 0 } else { value << missing }))
        }
        Value::U32(n) => Some(Ok(u128::from(*n))),
        _ => None,
    }
}

struct Setter<'a> {
    o: &'a Options,
    device: &'a Device,
    key: Key,
}

impl Setter<'_> {
    /// `fl_set_key_val` by the field's name.
    fn take(&mut self, name: &'static str) -> Result<(), KernelError> {
        let known = BYTES.iter().chain(&NUMBERS).find(|k| k.0 == name);
        let Some(&(_, mask, bits)) = known else { return Ok(()) };
        let Some(value) = number(self.o, name, bits) else { return Ok(()) };
        let value = value?;
        let given = if mask.is_empty() { None } else { number(self.o, mask, bits) };
        let mask = given.transpose()?.unwrap_or_else(|| ones(bits));
        self.key.fields.insert(name, Field { value, mask });
        Ok(())
    }
    fn all(&mut self, names: &[&'static str]) -> Result<(), KernelError> {
        names.iter().try_for_each(|name| self.take(name))
    }
    fn put(&mut self, name: &'static str, value: u128, mask: u128) {
        self.key.fields.insert(name, Field { value, mask });
    }
    fn value(&self, name: &str) -> u128 {
        self.key.fields.get(name).map_or(0, |f| f.value)
    }
    fn ethertype(&self, name: &str) -> Option<u128> {
        self.o.u32(name).map(u128::from)
    }

    /// `is_vlan_key`: whether a tag is meant; else its ethertype is the packet's.
    fn is_vlan(&mut self, ethertype: Option<u128>, more_than: u128) -> bool {
        let enough = self.value("num_of_vlans") > more_than;
        let Some(ethertype) = ethertype else { return enough };
        if enough || matches!(ethertype, 0x8100 | 0x88a8) {
            return true;
        }
        self.put("n_proto", ethertype, 0xffff);
        false
    }
    /// `fl_set_key_vlan`.
    fn vlan(&mut self, names: [&'static str; 3], tpid: (&'static str, Option<u128>)) {
        for (name, mask) in [(names[0], 0xfff), (names[1], 7)] {
            if let Some(n) = self.ethertype(name) {
                self.put(name, n & mask, mask);
            }
        }
        if let Some(ethertype) = tpid.1.filter(|&e| e != 0) {
            self.put(tpid.0, ethertype, 0xffff);
        }
        if let Some(next) = self.ethertype(names[2]) {
            self.put(names[2], next, 0xffff);
        }
    }
    /// `fl_set_key_pppoe`.
    fn pppoe(&mut self) -> Result<(), KernelError> {
        self.put("pppoe_type", ETH_P_PPP_SES, 0xffff);
        self.take("pppoe_sid")?;
        self.take("ppp_proto")?;
        match self.ethertype("ppp_proto") {
            Some(proto) => {
                let ethertype = match proto {
                    0x21 => ETH_P_IP,
                    0x57 => ETH_P_IPV6,
                    0x281 => ETH_P_MPLS[0],
                    0x283 => ETH_P_MPLS[1],
                    _ => return Ok(()),
                };
                self.put("n_proto", ethertype, 0xffff);
            }
            None => {
                self.key.fields.remove("n_proto");
            }
        }
        Ok(())
    }
    /// `fl_set_key_mpls`.
    fn mpls(&mut self) -> Result<(), KernelError> {
        const FIELDS: [&str; 4] = ["label", "tc", "bos", "ttl"];
        const OLD: [&str; 4] = ["mpls_label", "mpls_tc", "mpls_bos", "mpls_ttl"];
        if self.o.has("mpls") {
            for entry in self.o.list("mpls") {
                let depth = entry.u32("depth").unwrap_or(0);
                if !(1..=7).contains(&depth) {
                    return refuse(self.device, "Invalid MPLS depth");
                }
                let lse = self.key.mpls.entry(depth - 1).or_default();
                for (place, name) in lse.iter_mut().zip(FIELDS) {
                    *place = entry.u32(name).or(*place);
                }
            }
        } else if OLD.iter().any(|name| self.o.has(name)) {
            self.key.mpls.insert(0, OLD.map(|name| self.o.u32(name)));
        }
        Ok(())
    }
    /// `fl_set_key_port_range`.
    fn ranges(&mut self) -> Result<(), KernelError> {
        self.all(&["port_dst_min", "port_dst_max", "port_src_min", "port_src_max"])?;
        for (min, max, side) in
            [("port_dst_min", "port_dst_max", "destination"), ("port_src_min", "port_src_max", "source")]
        {
            let there = [min, max].map(|name| self.key.fields.contains_key(name));
            if there[0] != there[1] {
                return refuse(self.device, &format!("Both min and max {side} ports must be specified"));
            }
            if there[0] && self.value(max) <= self.value(min) {
                let why = format!("Invalid {side} port range (min must be strictly smaller than max)");
                return refuse(self.device, &why);
            }
        }
        Ok(())
    }
    /// `fl_set_key_ct`.
    fn connection(&mut self) -> Result<(), KernelError> {
        self.take("ct_state")?;
        if let Some(field) = self.key.fields.get("ct_state") {
            let state = field.value & field.mask;
            let (new, est, inv, trk, rpl) = (1, 2, 16, 8, 32);
            let why = if state != 0 && state & trk == 0 {
                "no trk, so no other flag can be set"
            } else if state & new != 0 && state & est != 0 {
                "new and est are mutually exclusive"
            } else if state & inv != 0 && state & !(trk | inv) != 0 {
                "when inv is set, only trk may be set"
            } else if state & new != 0 && state & rpl != 0 {
                "new and rpl are mutually exclusive"
            } else {
                ""
            };
            if !why.is_empty() {
                return refuse(self.device, why);
            }
        }
        self.all(&["ct_zone", "ct_mark", "ct_label"])
    }
    /// The ends of a tunnel. Both families have one place: of IPv4's two addresses IPv6's first begins with what it does not
    /// write over.
    fn tunnel_ends(&mut self) -> Result<(), KernelError> {
        const FOUR: [&str; 2] = ["enc_ipv4_src", "enc_ipv4_dst"];
        const SIX: [&str; 2] = ["enc_ipv6_src", "enc_ipv6_dst"];
        if FOUR.iter().any(|name| self.o.has(name)) {
            self.all(&FOUR)?;
            self.put("enc_addr_type", 4, 0xffff);
        }
        if !SIX.iter().any(|name| self.o.has(name)) {
            return Ok(());
        }
        let four = FOUR.map(|name| self.key.fields.remove(name).unwrap_or(Field { value: 0, mask: 0 }));
        let both = |part: fn(&Field) -> u128| part(&four[0]) << 96 | part(&four[1]) << 64;
        self.put(SIX[0], both(|f| f.value), both(|f| f.mask));
        self.put("enc_addr_type", 6, 0xffff);
        self.all(&SIX)
    }
    /// What the network and transport layers add.
    fn upper(&mut self) -> Result<(), KernelError> {
        let n_proto = self.value("n_proto");
        let ip = n_proto == ETH_P_IP || n_proto == ETH_P_IPV6;
        if ip {
            self.all(&["ip_proto", "ip_tos", "ip_ttl"])?;
        }
        if self.o.has("ipv4_src") || self.o.has("ipv4_dst") {
            self.all(&["ipv4_src", "ipv4_dst"])?;
            self.put("addr_type", 4, 0xffff);
        } else if self.o.has("ipv6_src") || self.o.has("ipv6_dst") {
            self.all(&["ipv6_src", "ipv6_dst"])?;
            self.put("addr_type", 6, 0xffff);
        }
        let proto = self.value("ip_proto");
        match proto {
            TCP => self.all(&["tcp_src", "tcp_dst", "tcp_flags"])?,
            UDP => self.all(&["udp_src", "udp_dst"])?,
            SCTP => self.all(&["sctp_src", "sctp_dst"])?,
            1 if n_proto == ETH_P_IP => self.all(&["icmpv4_type", "icmpv4_code"])?,
            58 if n_proto == ETH_P_IPV6 => self.all(&["icmpv6_type", "icmpv6_code"])?,
            _ if ETH_P_MPLS.contains(&n_proto) => self.mpls()?,
            _ if matches!(n_proto, ETH_P_ARP | ETH_P_RARP) => {
                self.all(&["arp_sip", "arp_tip", "arp_op", "arp_sha", "arp_tha"])?;
            }
            L2TP => self.take("l2tpv3_sid")?,
            _ if n_proto == ETH_P_CFM => {
                if let Some(cfm) = self.o.nested("cfm") {
                    for (name, mask) in [("mdl", 7), ("op", 0xff)] {
                        if let Some(n) = cfm.u32(name) {
                            self.put(name, u128::from(n) & mask, mask);
                        }
                    }
                }
            }
            _ => {}
        }
        if matches!(proto, TCP | UDP | SCTP) {
            self.ranges()?;
        }
        if self.o.has("spi") {
            if !matches!(proto, 50 | 51) {
                return refuse(self.device, "Protocol must be either ESP or AH");
            }
            self.take("spi")?;
        }
        Ok(())
    }
}

impl Key {
    /// `fl_set_key`.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn new(o: &Options, device: &Device) -> Result<Key, KernelError> {
        for (name, bits) in [("ip_flags_mask", 3), ("enc_flags_mask", 0x3c), ("l2_miss", 1)] {
            if o.u32(name).is_some_and(|n| n & !bits != 0) {
                let errno = if name == "l2_miss" { KernelError::ERANGE } else { KernelError::EINVAL };
                return Err(KernelError::errno(errno));
            }
        }
        let mut s = Setter { o, device, key: Key::default() };
        if o.has("indev") {
            s.key.indev = Some(crate::cls::fw::indev(o, device)?);
        }
        s.all(&["l2_miss", "dst_mac", "src_mac", "num_of_vlans"])?;
        let outer = s.ethertype("eth_type");
        if s.is_vlan(outer, 0) {
            s.vlan(["vlan_id", "vlan_prio", "vlan_ethtype"], ("vlan_tpid", outer));
            let inner = s.ethertype("vlan_ethtype");
            if s.is_vlan(inner, 1) {
                s.vlan(["cvlan_id", "cvlan_prio", "cvlan_ethtype"], ("cvlan_tpid", inner));
                if let Some(ethertype) = s.ethertype("cvlan_ethtype") {
                    s.put("n_proto", ethertype, 0xffff);
                }
            }
        }
        if s.value("n_proto") == ETH_P_PPP_SES {
            s.pppoe()?;
        }
        s.upper()?;
        s.tunnel_ends()?;
        s.all(&["enc_key_id", "enc_dst_port", "enc_tos", "enc_ttl"])?;
        s.key.tunnel = Tunnel::new(o, device)?;
        s.connection()?;
        s.all(&["ip_flags", "enc_flags"])?;
        Ok(s.key)
    }
    /// What is left of it behind its own mask, and the mask: what makes two filters the same.
    pub fn masked(&self) -> (Key, Key) {
        let (mut key, mut mask) = (self.clone(), self.clone());
        for field in key.fields.values_mut() {
            field.value &= field.mask;
        }
        for field in mask.fields.values_mut() {
            field.value = field.mask;
        }
        // A field of which no bit counts is none.
        key.fields.retain(|_, f| f.mask != 0);
        mask.fields.retain(|_, f| f.mask != 0);
        for lse in mask.mpls.values_mut() {
            *lse = lse.map(|n| n.map(|_| u32::MAX));
        }
        if let Some(tunnel) = &mut mask.tunnel {
            tunnel.only_mask();
        }
        mask.indev = mask.indev.map(|_| (String::new(), u32::MAX));
        (key, mask)
    }
    /// The fields there are, with the bits that count.
    pub fn masks(&self) -> impl Iterator<Item = (&'static str, u128)> + '_ {
        let indev = self.indev.as_ref().map(|(_, index)| ("indev", u128::from(*index)));
        self.fields.iter().map(|(name, f)| (*name, f.mask)).chain(indev)
    }
    /// A field's value.
    pub fn value(&self, name: &str) -> Option<u128> {
        if name == "indev" {
            return self.indev.as_ref().map(|(_, index)| u128::from(*index));
        }
        self.fields.get(name).map(|f| f.value)
    }
    /// Whether it looks at the label stack, and at the options of a tunnel.
    pub fn looks_beyond(&self) -> (bool, bool) {
        (!self.mpls.is_empty(), self.tunnel.is_some())
    }
    /// What it looks for beyond its fields: first which entries of the label stack there are, and each of them, then the options of a tunnel. Of a
    /// mask the bits that count.
    pub fn beyond(&self) -> Vec<u128> {
        let mut words = Vec::new();
        if !self.mpls.is_empty() {
            words.push(self.mpls.keys().fold(0, |used, depth| used | 1 << depth));
            let entry = |fields: &[Option<u32>; 4]| {
                let bits = [(12, 0xf_ffff), (9, 7), (8, 1), (0, 0xff)];
                let all = fields.iter().zip(bits).map(|(n, (shift, mask))| (n.unwrap_or(0) & mask) << shift);
                u128::from(all.fold(0, |entry, bits| entry | bits))
            };
            words.extend((0..LABELS_MAX).map(|depth| self.mpls.get(&depth).map_or(0, entry)));
        }
        if let Some(tunnel) = &self.tunnel {
            words.extend(tunnel.words());
        }
        words
    }
    /// `fl_mask_fits_tmplt`: whether it looks only at bits that the template looks at.
    pub fn fits(&self, template: &Key) -> bool {
        let fields = self
            .fields
            .iter()
            .filter(|(_, f)| f.mask != 0)
            .all(|(name, f)| template.fields.get(name).is_some_and(|t| f.mask & !t.mask == 0));
        let lse = |depth: &u32, lse: &[Option<u32>; 4]| {
            template
                .mpls
                .get(depth)
                .is_some_and(|t| lse.iter().zip(t).all(|(mine, its)| mine.is_none() || its.is_some()))
        };
        let tunnel = match (&self.tunnel, &template.tunnel) {
            (Some(mine), Some(its)) => mine.fits(its),
            (mine, _) => mine.is_none(),
        };
        let indev = self.indev.is_none() || template.indev.is_some();
        fields && tunnel && indev && self.mpls.iter().all(|(d, l)| lse(d, l))
    }
    /// `fl_dump_key`.
    pub fn dump(&self, o: &mut Options) {
        if let Some((name, _)) = &self.indev {
            o.set("indev", name.as_str().into());
        }
        let shown = |name: &str| self.fields.get(name).filter(|f| f.mask != 0);
        for (name, mask, bits) in &BYTES {
            if let Some(field) = shown(name) {
                let skip = 16 - (*bits / 8) as usize;
                o.set(name, field.value.to_be_bytes()[skip..].to_vec().into());
                o.set(mask, field.mask.to_be_bytes()[skip..].to_vec().into());
            }
        }
        for (name, mask, _) in NUMBERS.iter().filter(|k| !matches!(k.0, "mdl" | "op")) {
            if let Some(field) = shown(name) {
                o.set(name, (field.value as u32).into());
                if !mask.is_empty() {
                    o.set(mask, (field.mask as u32).into());
                }
            }
        }
        // A parameter index of 0 is not shown.
        if o.u32("spi") == Some(0) {
            o.remove("spi");
        }
        if let Some(n) = shown("n_proto") {
            o.set("eth_type", (n.value as u32).into());
        } else {
            o.remove("ppp_proto");
        }
        self.dump_vlans(o);
        self.dump_mpls(o);
        if let Some(tunnel) = &self.tunnel {
            tunnel.dump(o);
        }
        let cfm: Options = ["mdl", "op"].into_iter().fold(Options::new(), |cfm, name| match shown(name) {
            Some(field) => cfm.with(name, field.value as u32),
            None => cfm,
        });
        if !cfm.is_empty() {
            o.set("cfm", cfm.into());
        }
    }
    fn dump_vlans(&self, o: &mut Options) {
        let value = |name: &str| self.fields.get(name).map(|f| f.value as u32);
        for name in ["vlan_id", "vlan_prio", "cvlan_id", "cvlan_prio"] {
            if let Some(n) = value(name) {
                o.set(name, n.into());
            }
        }
        if let Some(tpid) = value("cvlan_tpid") {
            o.set("vlan_ethtype", tpid.into());
        }
        if let Some(n_proto) = value("n_proto") {
            if self.fields.contains_key("cvlan_ethtype") {
                o.set("cvlan_ethtype", n_proto.into());
            } else if let Some(next) = value("vlan_ethtype") {
                o.set("vlan_ethtype", next.into());
            }
        }
    }
    /// `fl_dump_key_mpls`: in the old form where that can say it.
    fn dump_mpls(&self, o: &mut Options) {
        const FIELDS: [&str; 4] = ["label", "tc", "bos", "ttl"];
        const OLD: [&str; 4] = ["mpls_label", "mpls_tc", "mpls_bos", "mpls_ttl"];
        let Some(first) = self.mpls.get(&0).filter(|_| self.mpls.len() == 1) else {
            if !self.mpls.is_empty() {
                o.set("mpls", Value::List(self.mpls.iter().map(|(d, l)| lse(*d, l, FIELDS)).collect()));
            }
            return;
        };
        if first.iter().all(Option::is_none) {
            o.set("mpls", Value::List(vec![lse(0, first, FIELDS)]));
            return;
        }
        for (name, n) in OLD.into_iter().zip(first) {
            if let Some(n) = n {
                o.set(name, (*n).into());
            }
        }
    }
}

fn lse(depth: u32, fields: &[Option<u32>; 4], names: [&'static str; 4]) -> Options {
    let head = Options::new().with("depth", depth + 1);
    names.into_iter().zip(fields).fold(head, |o, (name, n)| match n {
        Some(n) => o.with(name, *n),
        None => o,
    })
}
