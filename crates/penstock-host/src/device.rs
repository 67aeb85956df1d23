//! Network devices: a name, addresses, counters, and the tree of qdiscs in front of the wire.
//!
//! Follows: linux v6.12 `struct net_device`, `struct in_ifaddr`; `net/core/dev.c` `dev_index_reserve`.

use crate::bond::Bond;
use crate::bridge::Bridge;
use crate::dql::Dql;
use crate::groups::Groups;
use crate::gso::GsoWords;
use crate::lifetime::Lifetime;
use crate::link::{CLASSES, Class};
use crate::macvlan::Macvlan;
use crate::route::Prefix;
use crate::six::{Address6, Device6, Labels};
use crate::teql::Teql;
use crate::tunnel::vxlan::Vxlan;
use crate::tunnel::{Errors, Tunnel};
use crate::vlan::Vlan;
use crate::wireguard::WireGuard;
use penstock_lang::ip::LinkData;
use penstock_model::{Kernel, PschedClock, Rng, Time};
use penstock_packet::Skb;
use penstock_sched::tree::Tree;
use penstock_sched::{Actions, Cx, Device, Ledger};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::ops::{Index, IndexMut};

/// What a device has carried, as `ip -s link` shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Frames received.
    pub rx_packets: u64,
    /// Bytes received, Ethernet headers included; of `lo` without them.
    pub rx_bytes: u64,
    /// Frames received and thrown away (device down, unknown protocol).
    pub rx_dropped: u64,
    /// Packets of IP received that were for another station (`otherhost` of `ip -s -s link`), such as those of a VLAN that the device does not know.
    pub rx_otherhost: u64,
    /// Frames for groups that a VLAN has received (`mcast` of `ip -s link`); other devices do not count them.
    pub rx_multicast: u64,
    /// Frames taken by the wire.
    pub tx_packets: u64,
    /// Bytes taken by the wire, Ethernet headers included; of `lo` without them.
    pub tx_bytes: u64,
    /// Frames that never reached the qdisc (device down). A qdisc's drops are its own to count.
    pub tx_dropped: u64,
}

/// An address on a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address {
    /// Address and prefix length.
    pub prefix: Prefix,
    /// The other end, where the link has two (`peer`); the prefix length is its.
    pub peer: Option<Ipv4Addr>,
    /// Broadcast address, where one was given (`brd`).
    pub broadcast: Option<Ipv4Addr>,
    /// Of the same network as an address that was there before.
    pub secondary: bool,
    /// `RT_SCOPE_*`: 0 global, 253 link, 254 host.
    pub scope: u8,
    /// `label`, the device's name where none was given.
    pub label: String,
    /// `metric` of the route of its network.
    pub metric: u32,
    /// `noprefixroute`.
    pub no_prefix_route: bool,
    /// `autojoin`.
    pub autojoin: bool,
    /// How long it is valid and preferred (`valid_lft`, `preferred_lft`).
    pub lifetime: Lifetime,
}

impl Address {
    /// A plain one.
    pub fn new(prefix: Prefix) -> Address {
        Address {
            prefix,
            peer: None,
            broadcast: None,
            secondary: false,
            scope: 0,
            label: String::new(),
            metric: 0,
            no_prefix_route: false,
            autojoin: false,
            lifetime: Lifetime::FOREVER,
        }
    }
    /// The network it brings: that of the peer, else its own.
    pub fn network(&self) -> Prefix {
        Prefix::new(self.peer.unwrap_or(self.prefix.addr), self.prefix.len).network()
    }
}

/// The addresses of a device that share a network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shared {
    /// `RT_SCOPE_*`, of all of them.
    pub scope: u8,
    /// The first: the others are its secondaries.
    pub primary: Ipv4Addr,
    members: BTreeSet<Ipv4Addr>,
}

/// The addresses of a device by the networks they bring: who is there is known without going through them all.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Networks(BTreeMap<Prefix, Shared>);

impl Networks {
    /// Those of a network.
    pub(crate) fn get(&self, network: Prefix) -> Option<&Shared> {
        self.0.get(&network)
    }
    /// Whether an address of a network is there.
    pub(crate) fn has(&self, network: Prefix, addr: Ipv4Addr) -> bool {
        self.0.get(&network).is_some_and(|n| n.members.contains(&addr))
    }
    pub(crate) fn insert(&mut self, address: &Address) {
        let (scope, primary) = (address.scope, address.prefix.addr);
        let shared =
            self.0.entry(address.network()).or_insert(Shared { scope, primary, members: BTreeSet::new() });
        shared.members.insert(primary);
    }
    /// An address is gone; with a primary its secondaries go.
    pub(crate) fn remove(&mut self, address: &Address) {
        let network = address.network();
        if !address.secondary {
            self.0.remove(&network);
        } else if let Some(shared) = self.0.get_mut(&network) {
            shared.members.remove(&address.prefix.addr);
        }
    }
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

/// The device behind a device: a veth's peer, a VLAN's lower device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lower {
    /// Number of the network namespace.
    pub space: u32,
    /// Index in it.
    pub ifindex: u32,
}

/// One device.
#[repr(C)]
pub struct NetDevice {
    // With each packet, in this order: what lies together comes into the cache together.
    /// Hardware address; zeros on `lo`.
    pub mac: [u8; 6],
    /// Administratively up.
    pub up: bool,
    /// Whether it is `lo`.
    pub loopback: bool,
    /// Whether it has no card: what its qdiscs let go goes on within the machine (an ifb, a VLAN, a bridge, a bond, a VRF, a tunnel), or comes no further (an end of a
    /// veth pair without carrier).
    cardless: bool,
    /// Whether what it receives goes to a bridge or a bond, or to macvlans.
    pub(crate) bridged: bool,
    /// Index, from 1; 1 is `lo`.
    pub ifindex: u32,
    /// Largest IP packet, bytes. Default 1500.
    pub mtu: u32,
    /// `net.ipv4.conf.NAME.forwarding`, where it is not the machine's.
    pub(crate) forwarding: Option<bool>,
    /// `rp_filter`: 0 none, 1 strict, 2 loose.
    pub(crate) rp_filter: u8,
    /// What its settings say of redirects.
    pub(crate) redirects: crate::redirect::Redirects,
    /// What it has carried.
    pub counters: Counters,
    /// What hears the packets that come and go.
    pub(crate) tap: Option<Box<crate::tap::Tap>>,
    /// What kind of device it is.
    pub class: &'static Class,
    /// Its qdiscs.
    pub tree: Tree,
    pub(crate) rng: Rng,
    // The others.
    /// Name: `eth0`.
    pub name: String,
    /// txqueuelen, packets. Default 1000, 0 on `lo`.
    pub tx_queue_len: u32,
    /// Addresses, in the order given.
    pub addresses: Vec<Address>,
    /// The same by networks.
    pub(crate) networks: Networks,
    /// It has had an address: what `conf.default` says does not reach it any more (`ipv4_devconf_setall`).
    pub(crate) has_own_conf: bool,
    /// IPv6 addresses, in the order given: configuration alone.
    pub addresses6: Vec<Address6>,
    /// IPv6 on it.
    pub(crate) six: Device6,
    /// The groups it is in.
    pub(crate) groups: Groups,
    /// What `ip link add … type` said of it.
    pub data: LinkData,
    /// The device behind it.
    pub lower: Option<Lower>,
    /// What it does to packets, where it is a VLAN.
    pub(crate) vlan: Option<Box<Vlan>>,
    /// Where it is a macvlan.
    pub(crate) macvlan: Option<Box<Macvlan>>,
    /// The macvlans over it, where there are any.
    pub(crate) macvlans: Option<Box<crate::macvlan::Port>>,
    /// Its slaves, where it is a bond.
    pub(crate) bond: Option<Box<Bond>>,
    /// What a WireGuard device is besides.
    pub(crate) wireguard: Option<Box<WireGuard>>,
    /// What `teql0` is besides.
    pub(crate) teql: Option<Box<Teql>>,
    /// What it knows, where it is a bridge.
    pub(crate) bridge: Option<Box<Bridge>>,
    /// Its ends, where it is a tunnel.
    pub(crate) tunnel: Option<Box<Tunnel>>,
    /// Whom it knows, where it is a VXLAN device.
    pub(crate) vxlan: Option<Box<Vxlan>>,
    /// What a tunnel has learned of its way: the longest packet that this machine itself sends by it, bytes; `u32::MAX`: nothing.
    pub(crate) path_mtu: u32,
    /// Errors beside what its counters tell.
    pub errors: Errors,
    /// The bridge or bond it belongs to.
    pub master: Option<u32>,
    /// `alias`.
    pub alias: String,
    /// `altname`s.
    pub altnames: Vec<String>,
    /// `group`.
    pub group: u32,
    /// `IFF_*` that commands set: PROMISC 0x100, ALLMULTI 0x200, MULTICAST 0x1000, NOARP 0x80, DYNAMIC 0x8000, ….
    pub flags: u32,
    /// `carrier on|off`, where a command said so.
    pub carrier: Option<bool>,
    /// Transmit and receive queues.
    pub queues: (u32, u32),
    /// Speed of the card, Mbit/s, where it is known.
    pub speed_mbit: Option<u32>,
    /// Offloads and the like that `ethtool -K` has set.
    pub features: BTreeMap<String, bool>,
    /// Its byte queue limits, where its driver counts bytes.
    pub(crate) bql: Option<Box<Dql>>,
    /// What `ip link set` says of super-packets.
    pub gso: GsoWords,
    /// Files below `/sys/class/net/NAME` that were written and change nothing here, with what they hold.
    pub(crate) kept: BTreeMap<String, String>,
    /// Whether a bridge that is up has ever had a port.
    pub(crate) had_ports: bool,
    /// What the packet scheduler measures time with.
    pub(crate) clock: PschedClock,
    /// Timer interrupts per second of its machine.
    pub(crate) hz: u32,
    /// Place among all devices by age.
    pub(crate) sequence: u64,
    /// What the caller calls its card.
    card: Option<u32>,
}

/// `IFF_PROMISC`.
pub const PROMISC: u32 = 0x100;
/// `IFF_ALLMULTI`.
pub const ALLMULTI: u32 = 0x200;
/// `IFF_MULTICAST`.
pub const MULTICAST: u32 = 0x1000;
/// `IFF_NOARP`.
pub const NOARP: u32 = 0x80;
/// `IFF_POINTOPOINT`.
pub const POINTOPOINT: u32 = 0x10;
/// `IFF_BROADCAST`.
pub const BROADCAST: u32 = 0x2;
/// `IFF_MASTER`.
pub const MASTER: u32 = 0x400;
/// `IFF_LOOPBACK`.
pub const LOOPBACK: u32 = 0x8;

impl NetDevice {
    /// What a frame that the device sends or receives is worth in bytes: `lo` has taken the Ethernet header off when it counts.
    //= linux v6.12 drivers/net/loopback.c loopback_xmit
    #[inline(always)] // With each packet.
    pub(crate) fn counted(&self, frame: &Skb) -> u64 {
        u64::from(if self.loopback { frame.network_len() } else { frame.len })
    }
    /// A device that is down and has never been up.
    pub(crate) fn new(host: &str, name: &str, class: &'static Class, kernel: Kernel, seed: u64) -> NetDevice {
        let loopback = class.kind == "loopback";
        let (mtu, tx_queue_len) = match (loopback, kernel) {
            (false, Kernel::V6_12 | Kernel::V7_2) => (class.mtu, class.tx_queue_len),
            (false, Kernel::V2_6_35) if class.no_queue && class.kind != "ppp" => (class.mtu, 0),
            (false, Kernel::V2_6_35) => (class.mtu, class.tx_queue_len.min(kernel.txqueuelen())),
            (true, Kernel::V2_6_35) => (16436, 0),
            (true, Kernel::V6_12 | Kernel::V7_2) => (65536, 1000),
        };
        let clock = PschedClock::default();
        let hz = kernel.hz();
        let spec = Device {
            ifindex: 0,
            mtu,
            hard_header_len: class.header_len(),
            tx_queue_len,
            tx_queues: 1,
            speed_mbit: class.speed(kernel),
            kernel,
            clock,
            hz,
        };
        NetDevice {
            name: name.to_owned(),
            ifindex: 0,
            mac: if loopback { [0; 6] } else { mac_of(host, name) },
            mtu,
            tx_queue_len,
            up: false,
            loopback,
            // A veth has its peer to send to once both are up.
            cardless: matches!(
                class.kind,
                "ifb" | "vlan" | "bridge" | "veth" | "vrf" | "bond" | "macvlan" | "teql" | "tun" | "tap"
            ) || class.is_tunnel(),
            bridged: false,
            vlan: None,
            macvlan: None,
            macvlans: None,
            wireguard: (class.kind == "wireguard").then(Box::default),
            teql: (class.kind == "teql").then(Box::default),
            bond: (class.kind == "bond").then(|| Box::new(Bond::new())),
            bridge: (class.kind == "bridge").then(|| Box::new(Bridge::new(kernel))),
            tunnel: None,
            vxlan: None,
            path_mtu: u32::MAX,
            errors: Errors::default(),
            addresses: Vec::new(),
            networks: Networks::default(),
            has_own_conf: false,
            addresses6: Vec::new(),
            six: Device6::default(),
            groups: Groups::default(),
            counters: Counters::default(),
            // That a session needs no queue (ppp_connect_channel, direct_xmit) is newer.
            tree: Tree::down(spec, class.no_queue && !(class.kind == "ppp" && kernel == Kernel::V2_6_35)),
            class,
            data: LinkData::None,
            lower: None,
            master: None,
            alias: String::new(),
            altnames: Vec::new(),
            group: 0,
            flags: class.flags,
            carrier: None,
            queues: if class.kind == "bond" { (16, 16) } else { (1, 1) },
            speed_mbit: None,
            features: BTreeMap::new(),
            bql: None,
            gso: GsoWords::default(),
            kept: BTreeMap::new(),
            had_ports: false,
            forwarding: None,
            rp_filter: 0,
            redirects: crate::redirect::Redirects::ON,
            clock,
            hz,
            sequence: 0,
            card: None,
            rng: Rng::named(seed, &format!("host:{host}/{name}")),
            tap: None,
        }
    }
    /// What the qdiscs know of the device.
    pub(crate) fn spec(&self, kernel: Kernel) -> Device {
        Device {
            ifindex: self.ifindex,
            mtu: self.mtu,
            hard_header_len: self.class.header_len(),
            tx_queue_len: self.tx_queue_len,
            tx_queues: self.queues.0,
            speed_mbit: self.speed_mbit.or(self.class.speed(kernel)),
            kernel,
            clock: self.clock,
            hz: self.hz,
        }
    }
    /// Tells the tree what has changed of the device.
    pub(crate) fn refresh_tree(&mut self, kernel: Kernel, now: Time, drops: &mut Ledger, acts: &mut Actions) {
        let device = self.spec(kernel);
        self.tree.set_device(device, &mut Cx { now, rng: &mut self.rng, drops, acts });
    }
    /// Whether a name or an altname of it is `name`.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.altnames.iter().any(|n| n == name)
    }
    /// The largest packet of IPv6 that is sent, bytes: what a router or a setting says of the link, else its MTU.
    #[inline]
    pub(crate) fn mtu6(&self) -> u32 {
        if self.six.conf.mtu > 0 { self.six.conf.mtu } else { self.mtu }
    }
    /// Whether a link-local address follows from its hardware address (`addrconf_dev_config`): that of Ethernet.
    pub(crate) fn has_eui(&self) -> bool {
        !self.loopback && self.class.link_type == "ether" && self.class.kind != "vrf"
    }
    /// Whether it is an ifb, which gives what is sent by it back to where it came from.
    pub fn is_ifb(&self) -> bool {
        self.class.kind == "ifb"
    }
    /// The number of its card, as [`set_card`](NetDevice::set_card) has set it.
    pub fn card(&self) -> Option<u32> {
        self.card
    }
    /// Notes the number that the caller gives its card. The device keeps it wherever it goes: to another index, to another network namespace.
    pub fn set_card(&mut self, number: u32) {
        self.card = Some(number);
    }
    /// Whether it is an end of a veth pair.
    pub fn is_veth(&self) -> bool {
        self.class.kind == "veth"
    }
    /// An end of a veth pair has somebody to send to, or nobody any more.
    pub(crate) fn set_peer_up(&mut self, up: bool) {
        self.cardless = !up;
    }
    /// Whether it has no card: what its qdiscs let go goes on within the machine (an ifb, a VLAN, a bridge, a tunnel), or comes no further.
    #[inline]
    pub fn is_cardless(&self) -> bool {
        self.cardless
    }
    /// Whether the machine itself sends on what its qdisc lets go, and no card asks for it.
    pub fn runs_itself(&self) -> bool {
        self.loopback || self.cardless && !matches!(self.class.kind, "veth" | "tun" | "tap")
    }
    /// Whether what it sends goes to its qdisc and on to a wire, and nobody listens.
    #[inline]
    pub(crate) fn sends_plainly(&self) -> bool {
        self.up && !self.loopback && !self.cardless && self.tap.is_none()
    }
    /// Whether frames that are queued wait for a wire: everything but `lo`.
    pub fn is_ethernet(&self) -> bool {
        !self.loopback
    }
    /// The address packets made here carry when nothing else decides: the first one (`inet_select_addr`).
    pub fn primary_address(&self) -> Option<Ipv4Addr> {
        self.addresses.first().map(|a| a.prefix.addr)
    }
    /// The address to speak to `peer` with: the first whose network holds it, else the first.
    pub fn address_towards(&self, peer: Ipv4Addr) -> Option<Ipv4Addr> {
        let near = self.addresses.iter().find(|a| !a.secondary && a.network().contains(peer));
        near.map(|a| a.prefix.addr).or(self.primary_address())
    }
}

/// The devices of one namespace by index. An index is never given twice.
#[derive(Default)]
pub struct Devices {
    /// By index; the first is never there.
    slots: Vec<Option<NetDevice>>,
    /// Names and altnames.
    names: BTreeMap<String, u32>,
    /// The last index given.
    last: u32,
    sequence: u64,
    /// How often one has come or gone.
    changes: u64,
    /// How many of them are VLANs, which go up and down with others.
    vlans: u32,
    /// There is a macvlan, or was one that not everybody has forgotten.
    macvlans: bool,
    /// VLANs by the device they are on, ethertype and identifier of their tag.
    tagged: BTreeMap<(u32, u16, u16), u32>,
    /// Labels of addresses of IPv6.
    pub(crate) labels: Labels,
}

/// The highest index a device may be given here.
pub const INDEX_MAX: u32 = 65_535;

impl Devices {
    /// The device with this index.
    #[inline]
    pub fn get(&self, ifindex: u32) -> Option<&NetDevice> {
        self.slots.get(ifindex as usize)?.as_ref()
    }
    /// The device with this index.
    #[inline]
    pub fn get_mut(&mut self, ifindex: u32) -> Option<&mut NetDevice> {
        self.slots.get_mut(ifindex as usize)?.as_mut()
    }
    /// The index of the device with this name or altname.
    pub fn called(&self, name: &str) -> Option<u32> {
        let found = self.names.get(name).copied();
        debug_assert_eq!(found, self.iter().find(|d| d.is_called(name)).map(|d| d.ifindex), "{name}");
        found
    }
    /// A device has a name: where several have it, it means the one of the lowest index.
    fn named(&mut self, name: String, ifindex: u32) {
        let of = self.names.entry(name).or_insert(ifindex);
        *of = ifindex.min(*of);
    }
    /// A device has a name no more.
    fn unnamed(&mut self, name: &str, ifindex: u32) {
        if self.names.get(name) == Some(&ifindex) {
            self.names.remove(name);
            let other = self.iter().find(|d| d.ifindex != ifindex && d.is_called(name)).map(|d| d.ifindex);
            self.names.extend(other.map(|other| (name.to_owned(), other)));
        }
    }
    /// Gives a device that is there another name; answers the old one.
    pub(crate) fn rename(&mut self, ifindex: u32, name: &str) -> String {
        let old = std::mem::replace(&mut self[ifindex].name, name.to_owned());
        if !self[ifindex].is_called(&old) {
            self.unnamed(&old, ifindex);
        }
        self.named(name.to_owned(), ifindex);
        old
    }
    /// Gives a device that is there another altname.
    pub(crate) fn add_altname(&mut self, ifindex: u32, name: String) {
        self.named(name.clone(), ifindex);
        self[ifindex].altnames.push(name);
    }
    /// Takes an altname from a device that is there; whether it had it.
    pub(crate) fn take_altname(&mut self, ifindex: u32, name: &str) -> bool {
        let all = &mut self[ifindex].altnames;
        let before = all.len();
        all.retain(|n| n != name);
        let had = all.len() < before;
        if had && !self[ifindex].is_called(name) {
            self.unnamed(name, ifindex);
        }
        had
    }
    /// All by index.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &NetDevice> {
        self.slots.iter().flatten()
    }
    /// All by index.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut NetDevice> {
        self.slots.iter_mut().flatten()
    }
    /// All in the order they came (`for_each_netdev`).
    pub fn by_age(&self) -> Vec<&NetDevice> {
        let mut all: Vec<&NetDevice> = self.iter().collect();
        all.sort_by_key(|d| d.sequence);
        all
    }
    /// How often a device has come or gone: where it is what it was, all are where they were.
    pub fn changes(&self) -> u64 {
        self.changes
    }
    /// The highest index there is.
    pub fn highest(&self) -> u32 {
        (self.slots.len() as u32).saturating_sub(1)
    }
    /// Puts a device in, at `wanted` where that is free, else at the next index; answers it.
    pub(crate) fn insert(&mut self, mut device: NetDevice, wanted: Option<u32>) -> u32 {
        let ifindex = match wanted.filter(|&i| self.get(i).is_none()) {
            Some(index) => index,
            None => {
                self.last += 1;
                while self.get(self.last).is_some() {
                    self.last += 1;
                }
                self.last
            }
        };
        device.ifindex = ifindex;
        self.vlans += u32::from(device.class.kind == "vlan");
        self.macvlans |= device.class.kind == "macvlan";
        self.sequence += 1;
        self.changes += 1;
        device.sequence = self.sequence;
        if self.slots.len() <= ifindex as usize {
            self.slots.resize_with(ifindex as usize + 1, || None);
        }
        let names: Vec<String> = device.altnames.iter().chain([&device.name]).cloned().collect();
        self.slots[ifindex as usize] = Some(device);
        names.into_iter().for_each(|name| self.named(name, ifindex));
        ifindex
    }
    /// Whether there is any VLAN.
    pub(crate) fn has_vlans(&self) -> bool {
        self.vlans > 0
    }
    /// Whether there may be a macvlan.
    pub(crate) fn has_macvlans(&self) -> bool {
        self.macvlans
    }
    /// There is none any more, and everybody knows.
    pub(crate) fn no_macvlans(&mut self) {
        self.macvlans = false;
    }
    /// A VLAN device is on another from now on, and has the frames of its tag.
    pub(crate) fn tag(&mut self, ifindex: u32, vlan: Vlan) {
        self.tagged.insert((vlan.lower, vlan.protocol, vlan.id), ifindex);
        self[ifindex].vlan = Some(Box::new(vlan));
    }
    /// The VLAN device that has the frames with a tag.
    pub(crate) fn tagged(&self, lower: u32, ethertype: u16, id: u16) -> Option<u32> {
        self.tagged.get(&(lower, ethertype, id)).copied()
    }
    /// The VLAN devices that are on a device.
    pub(crate) fn vlans_on(&self, lower: u32) -> impl Iterator<Item = u32> {
        self.tagged.range((lower, 0, 0)..=(lower, u16::MAX, u16::MAX)).map(|(_, vlan)| *vlan)
    }
    /// Takes a device out.
    pub(crate) fn remove(&mut self, ifindex: u32) -> Option<NetDevice> {
        let mut device = self.slots.get_mut(ifindex as usize)?.take()?;
        self.changes += 1;
        self.vlans -= u32::from(device.class.kind == "vlan");
        // In another namespace it is not over that device any more.
        if let Some(vlan) = device.vlan.take() {
            self.tagged.remove(&(vlan.lower, vlan.protocol, vlan.id));
        }
        device.altnames.iter().chain([&device.name]).for_each(|name| self.unnamed(name, ifindex));
        Some(device)
    }
}

impl Index<u32> for Devices {
    type Output = NetDevice;
    #[inline]
    fn index(&self, ifindex: u32) -> &NetDevice {
        self.slots[ifindex as usize].as_ref().expect("a device with this index")
    }
}

impl IndexMut<u32> for Devices {
    #[inline]
    fn index_mut(&mut self, ifindex: u32) -> &mut NetDevice {
        self.slots[ifindex as usize].as_mut().expect("a device with this index")
    }
}

/// The class called `kind`.
pub(crate) fn class(kind: &str) -> Option<&'static Class> {
    CLASSES.iter().find(|c| c.kind == kind)
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

    #[test]
    fn an_index_is_given_once() {
        let mut devices = Devices::default();
        let new = |name: &str| NetDevice::new("u4", name, class("dummy").unwrap(), Kernel::V6_12, 1);
        assert_eq!(devices.insert(new("a"), None), 1);
        assert_eq!(devices.insert(new("b"), None), 2);
        assert!(devices.remove(2).is_some() && devices.get(2).is_none());
        assert_eq!(devices.insert(new("c"), None), 3);
        assert_eq!(devices.insert(new("d"), Some(5)), 5);
        assert_eq!(devices.insert(new("e"), Some(5)), 4);
        assert_eq!(devices.insert(new("f"), None), 6);
        for (name, index) in [("a", Some(1)), ("b", None), ("e", Some(4)), ("f", Some(6)), ("g", None)] {
            assert_eq!(devices.called(name), index);
        }
        assert_eq!(devices.rename(4, "g"), "e");
        devices.add_altname(6, "e".to_owned());
        devices.add_altname(6, "long".to_owned());
        assert_eq!(
            (devices.called("g"), devices.called("e"), devices.called("long")),
            (Some(4), Some(6), Some(6))
        );
        assert!(
            devices.take_altname(6, "e") && !devices.take_altname(6, "e") && devices.called("e").is_none()
        );
        assert_eq!(devices.rename(4, "e"), "g");
        let ages: Vec<&str> = devices.by_age().iter().map(|d| d.name.as_str()).collect();
        assert_eq!(ages, ["a", "c", "d", "e", "f"]);
    }
}
