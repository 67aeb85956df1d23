//! Network devices: a name, addresses, counters, and the tree of qdiscs in front of the wire.
//!
//! Follows: linux v6.12 `struct net_device`, `struct in_ifaddr`.

use crate::route::Prefix;
use penstock_model::{Kernel, Rng, Time};
use penstock_sched::tree::Tree;
use penstock_sched::{Actions, Cx, Device, Ledger};
use std::net::Ipv4Addr;

/// What a device has carried, as `ip -s link` shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Frames received.
    pub rx_packets: u64,
    /// Bytes received, Ethernet headers included.
    pub rx_bytes: u64,
    /// Frames received and thrown away (device down, unknown protocol).
    pub rx_dropped: u64,
    /// Frames taken by the wire.
    pub tx_packets: u64,
    /// Bytes taken by the wire, Ethernet headers included.
    pub tx_bytes: u64,
    /// Frames that never reached the qdisc (device down). A qdisc's drops are its own to count.
    pub tx_dropped: u64,
}

/// An address on a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// Address and prefix length.
    pub prefix: Prefix,
    /// Broadcast address, where one was given (`brd`).
    pub broadcast: Option<Ipv4Addr>,
    /// Of the same network as an address that was there before.
    pub secondary: bool,
}

/// One device.
pub struct NetDevice {
    /// Name: `eth0`.
    pub name: String,
    /// Index, from 1; 1 is `lo`.
    pub ifindex: u32,
    /// Hardware address; zeros on `lo`.
    pub mac: [u8; 6],
    /// Largest IP packet, bytes. Default 1500.
    pub mtu: u32,
    /// txqueuelen, packets. Default 1000, 0 on `lo`.
    pub tx_queue_len: u32,
    /// Transmit queues. Default 1.
    pub tx_queues: u32,
    /// Administratively up.
    pub up: bool,
    /// Whether it is `lo`.
    pub loopback: bool,
    /// Addresses, in the order given.
    pub addresses: Vec<Address>,
    /// What it has carried.
    pub counters: Counters,
    /// Its qdiscs.
    pub tree: Tree,
    pub(crate) rng: Rng,
}

impl NetDevice {
    pub(crate) fn new(host: &str, name: &str, ifindex: u32, kernel: Kernel, seed: u64) -> NetDevice {
        let loopback = name == "lo";
        let (mtu, tx_queue_len) = match (loopback, kernel) {
            (false, _) => (1500, kernel.txqueuelen()),
            (true, Kernel::V2_6_35) => (16436, 0),
            (true, Kernel::V6_12) => (65536, 1000),
        };
        let spec = Device { ifindex, mtu, hard_header_len: 14, tx_queue_len, tx_queues: 1, kernel };
        NetDevice {
            name: name.to_owned(),
            ifindex,
            mac: if loopback { [0; 6] } else { mac_of(host, name) },
            mtu,
            tx_queue_len,
            tx_queues: 1,
            up: true,
            loopback,
            addresses: Vec::new(),
            counters: Counters::default(),
            tree: Tree::new(spec),
            rng: Rng::named(seed, &format!("host:{host}/{name}")),
        }
    }
    /// Tells the tree what has changed of the device.
    pub(crate) fn refresh_tree(&mut self, kernel: Kernel, now: Time, drops: &mut Ledger, acts: &mut Actions) {
        let device = Device {
            ifindex: self.ifindex,
            mtu: self.mtu,
            hard_header_len: 14,
            tx_queue_len: self.tx_queue_len,
            tx_queues: self.tx_queues,
            kernel,
        };
        self.tree.set_device(device, &mut Cx { now, rng: &mut self.rng, drops, acts });
    }
    /// The address packets made here carry when nothing else decides: the first one (`inet_select_addr`).
    pub fn primary_address(&self) -> Option<Ipv4Addr> {
        self.addresses.first().map(|a| a.prefix.addr)
    }
    /// The address to speak to `peer` with: the first whose network holds it, else the first.
    pub fn address_towards(&self, peer: Ipv4Addr) -> Option<Ipv4Addr> {
        let near = self.addresses.iter().find(|a| !a.secondary && a.prefix.contains(peer));
        near.map(|a| a.prefix.addr).or(self.primary_address())
    }
}

/// A locally administered address that follows from the machine's and the device's name (FNV-1a).
fn mac_of(host: &str, name: &str) -> [u8; 6] {
    let bytes = host.bytes().chain([b'/']).chain(name.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let h = (hash ^ hash >> 40).to_be_bytes();
    [0x02, h[3], h[4], h[5], h[6], h[7]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_addresses_differ_and_stay() {
        assert_eq!(mac_of("u4", "eth0"), mac_of("u4", "eth0"));
        assert_ne!(mac_of("u4", "eth0"), mac_of("u4", "eth1"));
        assert_ne!(mac_of("u4", "eth0"), mac_of("u5", "eth0"));
        assert_eq!(mac_of("u4", "eth0")[0], 2);
    }
}
