//! IPv6: what a machine knows of it, and facts about its addresses.
//!
//! Follows: linux v6.12 `net/ipv6/addrconf_core.c` `__ipv6_addr_type`, `include/net/addrconf.h`, `include/net/if_inet6.h`. 2.6.35 is taken for the same.
//! Differs: a machine makes no address (`::1`, link-local ones) before it is given one or told to look for routers ([`crate::Host::look_for_routers`]);
//! no redirects, no multicast listener reports; an address is never tentative (as with `accept_dad` 0);
//! of extension headers there is that of fragments alone; no privacy addresses.

mod address;
pub mod fib;
mod fragment;
pub mod icmp;
mod input;
mod labels;
mod ndisc;
mod output;
mod pmtu;
pub(crate) mod reassembly;
mod reject;
pub(crate) mod router;
mod settings;
pub(crate) mod source;
#[cfg(test)]
mod tests;

pub use address::Address6;
pub(crate) use fib::Learnt;
pub use fib::{Fib6, Hop6, Key6, Kind6, Route6};
pub(crate) use labels::{Label, Labels};
pub(crate) use settings::Ra;

use crate::icmp::Bucket;
use penstock_lang::ip::Net;
use penstock_model::{Rng, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

/// Least MTU of a link that carries IPv6, bytes.
pub(crate) const MIN_MTU: u32 = 1280;
/// Length of the header, bytes.
pub(crate) const HEADER: u32 = 40;
/// All nodes of a link.
pub(crate) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// What a machine knows of IPv6.
#[derive(Default)]
pub(crate) struct Six {
    // With each packet.
    /// `net.ipv6.conf.all.forwarding`.
    pub(crate) forwarding: bool,
    pub(crate) fib: Fib6,
    // The others.
    /// Addresses a packet was too big on the way to: the largest that is not, bytes, and until when that holds.
    pub(crate) path_mtu: BTreeMap<Ipv6Addr, (u32, Time)>,
    /// Tokens for errors, by whom they are for.
    pub(crate) buckets: BTreeMap<Ipv6Addr, Bucket>,
    /// `net.ipv6.icmp.echo_ignore_all`.
    pub(crate) echo_ignore_all: bool,
    /// It was given an address: from then on it makes its own (link-local ones, `::1`).
    pub(crate) on: bool,
    /// `net.ipv6.conf.all.keep_addr_on_down`.
    pub(crate) keep_all: bool,
    /// What a device that is made begins with (`net.ipv6.conf.default`).
    pub(crate) begins: Conf6,
    /// Routes that have expired are going to be cleared away.
    pub(crate) gc: bool,
    /// A router has made itself the way to all that is elsewhere (`RT6_TABLE_HAS_DFLT_ROUTER`).
    pub(crate) has_routers: bool,
    /// It asks for routers where a device comes up.
    pub(crate) asks: bool,
    /// Where the waits between such questions come from.
    pub(crate) dice: Option<Rng>,
    /// Fragments of packets for this machine.
    pub(crate) frags: reassembly::Fragments6,
    /// Fragments that are put together where connections are tracked.
    pub(crate) tracked_frags: reassembly::Fragments6,
    /// Where identifications of fragments come from.
    pub(crate) idents: Option<Rng>,
    /// Memory for the lengths of fragments.
    pub(crate) spare_lens: Vec<Vec<u16>>,
}

/// Settings of a device that packets hang on (`net.ipv6.conf.NAME`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conf6 {
    /// `forwarding`: the device is a router's. Whether packets are forwarded is the machine's to say.
    pub forwarding: bool,
    /// `disable_ipv6`.
    pub disabled: bool,
    /// `hop_limit` of packets made here.
    pub hop_limit: u8,
    /// Which link-local address it makes.
    pub addr_gen_mode: GenMode,
    /// `keep_addr_on_down`.
    pub keep_addr_on_down: bool,
    /// `mtu`: the largest packet that is sent over the link, bytes; 0: the device's.
    pub mtu: u32,
    /// What is made of routers' words.
    pub(crate) ra: Ra,
}

impl Conf6 {
    /// `ipv6_accept_ra`.
    pub(crate) fn accepts_ra(&self) -> bool {
        let accept = self.ra.of(Ra::ACCEPT);
        if self.forwarding { accept == 2 } else { accept != 0 }
    }
    /// Whether it may ask for routers at all.
    pub(crate) fn asks_routers(&self) -> bool {
        self.ra.of(Ra::SOLICITATIONS) != 0
    }
}

impl Default for Conf6 {
    fn default() -> Conf6 {
        Conf6 {
            forwarding: false,
            disabled: false,
            hop_limit: 64,
            addr_gen_mode: GenMode::Eui64,
            keep_addr_on_down: false,
            mtu: 0,
            ra: Ra::BEGINS,
        }
    }
}

/// `addr_gen_mode`: which link-local address a device makes when it comes up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GenMode {
    /// From its hardware address.
    Eui64,
    /// None.
    None,
}

impl GenMode {
    /// `IN6_ADDR_GEN_MODE_*`; 2 and 3 take a secret.
    pub fn of(number: u8) -> Option<GenMode> {
        match number {
            0 => Some(GenMode::Eui64),
            1 => Some(GenMode::None),
            _ => None,
        }
    }
    /// The same.
    pub fn number(self) -> u8 {
        match self {
            GenMode::Eui64 => 0,
            GenMode::None => 1,
        }
    }
    /// As `ip -d link` shows it.
    pub fn name(self) -> &'static str {
        match self {
            GenMode::Eui64 => "eui64",
            GenMode::None => "none",
        }
    }
}

/// IPv6 on one device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Device6 {
    /// Its settings.
    pub conf: Conf6,
    /// Solicited-node groups it is in: the last 24 bits of its addresses, and how many of these have them.
    solicited: BTreeMap<u32, u32>,
    /// Subnet-router addresses it answers to, being a router's.
    anycast: BTreeSet<Ipv6Addr>,
    /// How it asks for routers.
    pub(crate) asking: router::Asking,
    /// What ends an address that it makes of a prefix (`ip token`); none: its hardware address.
    pub(crate) token: u64,
    /// A program has joined the group of all routers.
    pub(crate) hears_routers: bool,
}

impl Device6 {
    /// Of a device that is made on a machine that says so.
    pub(crate) fn new(conf: Conf6) -> Device6 {
        Device6 { conf, ..Device6::default() }
    }
    /// An address whose solicited-node group is heard.
    pub(crate) fn join(&mut self, addr: Ipv6Addr) {
        *self.solicited.entry(low24(addr)).or_default() += 1;
    }
    pub(crate) fn leave(&mut self, addr: Ipv6Addr) {
        if let Some(count) = self.solicited.get_mut(&low24(addr)) {
            *count -= 1;
            if *count == 0 {
                self.solicited.remove(&low24(addr));
            }
        }
    }
    /// `ipv6_chk_mcast_addr`: whether what is sent to a group is for this device.
    pub(crate) fn is_in(&self, group: Ipv6Addr) -> bool {
        let s = group.segments();
        match s {
            [0xff01 | 0xff02, 0, 0, 0, 0, 0, 0, 1] => true,
            [0xff01 | 0xff02 | 0xff05, 0, 0, 0, 0, 0, 0, 2] => self.conf.forwarding || self.hears_routers,
            [0xff02, 0, 0, 0, 0, 1, 0xff00..=0xffff, _] => self.solicited.contains_key(&low24(group)),
            _ => false,
        }
    }
    /// Whether it answers to an address with others (`ipv6_chk_acast_addr`).
    pub(crate) fn is_anycast(&self, addr: Ipv6Addr) -> bool {
        self.anycast.contains(&addr)
    }
}

fn low24(addr: Ipv6Addr) -> u32 {
    u128::from(addr) as u32 & 0x00ff_ffff
}

/// The group that those listen to who have an address with these last 24 bits (RFC 4291 section 2.7.1).
pub(crate) fn solicited_node(addr: Ipv6Addr) -> Ipv6Addr {
    const PREFIX: u128 = 0xff02_0000_0000_0000_0000_0001_ff00_0000;
    Ipv6Addr::from(PREFIX | u128::from(low24(addr)))
}

/// The hardware address of a group (RFC 2464 section 7).
pub(crate) fn group_mac(group: Ipv6Addr) -> [u8; 6] {
    let o = group.octets();
    [0x33, 0x33, o[12], o[13], o[14], o[15]]
}

/// The link-local address that follows from a hardware address (RFC 4291, appendix A; `addrconf_ifid_eui48`).
pub fn link_local(mac: [u8; 6]) -> Ipv6Addr {
    let id = [mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]];
    Ipv6Addr::from(0xfe80 << 112 | u128::from(u64::from_be_bytes(id)))
}

/// `fe80::/10`.
#[inline]
pub fn is_link_local(addr: Ipv6Addr) -> bool {
    addr.segments()[0] & 0xffc0 == 0xfe80
}

/// Whether an address means something on one link only, so that a device belongs to it (`rt6_need_strict`).
#[inline]
pub(crate) fn needs_link(addr: Ipv6Addr) -> bool {
    is_link_local(addr) || addr.is_multicast() || addr.is_loopback()
}

/// A prefix without host bits.
pub fn network(addr: Ipv6Addr, len: u8) -> Net {
    Net { addr: IpAddr::V6(Ipv6Addr::from(u128::from(addr) & mask(len))), len }
}

/// The bits of a prefix of this length.
pub(crate) fn mask(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(len.min(128))).unwrap_or(0)
}
