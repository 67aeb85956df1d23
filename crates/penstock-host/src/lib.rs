//! One Linux machine: devices, addresses, routes, ARP, netfilter, qdisc trees, and the commands that change them.
//!
//! A [`Host`] is driven from outside: frames come in by [`Host::receive`], packets of local sockets by
//! [`Host::send`], commands by [`Host::exec`]; what follows comes back as [`Effect`]s. It reads no clock and knows
//! no other machine: everything that leaves it is a frame that [`Host::dequeue`] hands to the wire.
//!
//! A packet's way, with the hooks in the kernel's order:
//! ```text
//! receive → ingress filters → PREROUTING → route ┬ local → reassembly → INPUT → Effect::Deliver (ICMP echo is answered here)
//!                              └ forward (TTL, priority from ToS) → FORWARD ┐
//! send → route → OUTPUT → route again ──────────────────────────────────────┴ POSTROUTING → fragments
//!      → ARP → clsact's egress filters → the device's tree of qdiscs → Effect::Kick … dequeue
//! ```

mod account;
mod address;
mod arp;
mod bond;
mod bound;
mod bridge;
mod cisco;
mod condition;
pub mod device;
mod dql;
mod dump;
mod either;
mod exec;
mod foresee;
mod fragment;
mod groups;
mod gso;
mod hooks;
pub mod icmp;
mod ingress;
mod leave;
mod lifetime;
pub mod link;
mod macvlan;
pub mod neigh;
pub mod netfilter;
mod netns;
mod nexthop;
mod nud;
mod path;
mod paths;
mod ppp;
mod proc;
mod proxy;
mod quick;
mod radvd;
pub mod rebuild;
mod redirect;
pub mod route;
pub mod six;
mod snmp;
mod tap;
mod tcp;
mod teql;
#[cfg(test)]
mod tests;
mod timer;
mod tunnel;
mod veth;
mod vlan;
mod vrf;
mod wireguard;
mod within;

pub use condition::Conditioned;
pub use device::{Address, Counters, Devices, Lower, NetDevice};
pub use exec::{
    FileError, Files, Loading, NoFiles, PROGRAMS, Program, Reach, followed_parameters, not_here,
    unfollowed_settings,
};
pub use foresee::{Goes, WayTo};
pub use gso::{GsoLimits, GsoWords};
pub use lifetime::Lifetime;
pub use macvlan::Crossing;
pub use neigh::{Neigh, NeighTable, Nud};
pub use netfilter::ct::connections;
pub use path::{Transmitted, rt_tos2priority};
pub use quick::Way;
pub use route::{Fib, Prefix, Route, RouteKind};
pub use snmp::Snmp;
pub use tap::{Heard, Tap, Turn, What};
pub use tcp::{TcpRoute, TcpSettings};
pub use tunnel::Errors;

use penstock_model::{Diagnostic, Kernel, KernelError, Options, PschedClock, Rng, Time};
use penstock_packet::{Packet, Pool};
use penstock_sched::Orphan;
use penstock_sched::act::Sent;
use penstock_sched::cls::Blocks;
use penstock_sched::sch::KindSpec;
use penstock_sched::{Actions, Cx, DropReason, Ledger, Look, Xmit};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// What a caller lends for one call.
pub struct HostCx<'a> {
    /// The present moment; never earlier than at the call before.
    pub now: Time,
    /// Spent packets, for reuse.
    pub pool: &'a mut Pool,
    /// What follows from the call, in order; the caller empties it.
    pub out: &'a mut Vec<Effect>,
}

/// What follows from a call, for the caller to act on.
#[derive(Debug)]
pub enum Effect {
    /// Something was queued on this device (or its qdiscs have changed): the card may [`Host::dequeue`].
    Kick(u32),
    /// This packet comes to this device when the card was asked for those before it: [`Host::comes_to`].
    Next(u32, Packet),
    /// A packet for this machine's sockets: TCP, UDP, ICMP echo replies and ICMP errors. Whole, never a fragment.
    Deliver(Packet),
    /// A packet is lost.
    Dropped {
        /// The packet.
        packet: Packet,
        /// The device it was lost on: the one it was to leave by for the places `qdisc`, `arp` and `netif`, else
        /// the one it came in by; 0 for none.
        ifindex: u32,
        /// Where: `qdisc`, `ingress`, `mirred`, `ifb`, `tunnel`, `arp`, `ip_rcv`, `ip_forward`, `ip_output`, `ip_local_deliver`, `ip_defrag`, `ip6_defrag`, `icmp`,
        /// `netif`, `vrf`, `bond`, or a netfilter chain; of IPv6 `ip6_rcv`, `ip6_forward`, `ip6_output`, `ip6_input`, `icmp6`, `ndisc`.
        place: &'static str,
        /// Why, in a word.
        reason: &'static str,
    },
    /// What is left of a packet that goes on in another place, where mirred has sent it: it is not lost, but owes its socket
    /// no memory any more (`skb_clone`, then `consume_skb`).
    Moved(Packet),
    /// A packet that waits in a qdisc owes its socket no memory any more (netem), or was cut there, and each segment owes its share.
    Orphaned(Orphan),
    /// A frame goes on at a device of one of the machine's network namespaces, which may be another: [`Host::comes_across`] there.
    Across {
        /// Number of the namespace.
        space: u32,
        /// The device's index there.
        ifindex: u32,
        /// How it comes there, and whether at once.
        how: Crossing,
        /// The frame.
        packet: Packet,
    },
}

impl Effect {
    /// What became of a packet of the ledger.
    pub(crate) fn gone(packet: Packet, ifindex: u32, place: &'static str, reason: DropReason) -> Effect {
        if reason == DropReason::Stolen && packet.tc.role.has_moved() {
            return Effect::Moved(packet);
        }
        Effect::Dropped { packet, ifindex, place, reason: reason.as_str() }
    }
}

/// What a command line gave.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Output {
    /// Standard output.
    pub stdout: String,
    /// Standard error: the program's own words, nothing of ours.
    pub stderr: String,
    /// Exit status.
    pub status: i32,
    /// The same faults with their place and our advice.
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Timer {
    Neigh(u32),
    Fragments(u32),
    /// The same of IPv6.
    Fragments6(six::reassembly::By, u32),
    /// The qdiscs of a device without a card, by its index.
    Cardless(u32),
    /// A bond looks at its slaves, or tells those around of its address.
    Bond(u32),
    /// Questions for others' addresses are answered, of IPv6 or of ARP.
    Proxy(bool),
    /// A neighbour is asked for, of which nobody waits for an answer.
    Solicit(u32),
    /// A device tells its addresses (`arp_notify`).
    Announce(u32),
    /// A WireGuard device has something to send, or a timer of one of its peers goes off.
    WireGuard(u32),
    /// The addresses of IPv6, or of IPv4, are looked at: some may be over.
    Lifetimes(bool),
    /// A route of IPv6 expires.
    Expiry6,
    /// Routes of IPv6 that have expired are cleared away.
    Gc6,
    /// A device asks for routers of IPv6.
    Routers(u32),
    /// A `pppd` has something to do, by its number.
    Ppp(u32),
    /// `radvd` has something to say.
    Radvd,
    /// The spanning tree of a bridge, by its index.
    SpanningTree(u32),
}

/// Settings under `/proc/sys`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[repr(C)]
pub(crate) struct Settings {
    // With each packet, in this order: what lies together comes into the cache together.
    pub(crate) ip_forward: bool,
    pub(crate) default_ttl: u8,
    /// Some device has a reverse path filter.
    pub(crate) filters_sources: bool,
    // The others.
    /// `conf.all.rp_filter` and `conf.default.rp_filter`: 0 none, 1 strict, 2 loose.
    pub(crate) rp_filter: u8,
    pub(crate) rp_filter_begins: u8,
    /// `conf.default.forwarding`, where it is not the machine's.
    pub(crate) forwarding_begins: Option<bool>,
    /// What `conf.all` and `conf.default` say of redirects.
    pub(crate) redirects: redirect::Redirects,
    pub(crate) redirects_begin: redirect::Redirects,
    /// `route.redirect_number`, `_load` and `_silence`, where they are set; ticks.
    pub(crate) redirect_limits: [Option<i64>; 3],
    /// Some `src_valid_mark` was set.
    pub(crate) has_valid_marks: bool,
    /// Some `accept_local` was set.
    pub(crate) accepts_local: bool,
    /// What a command has set of `net.ipv4.conf` below a device: it does not follow `default` any more.
    pub(crate) of_devices: BTreeSet<String>,
    /// `net.core.netdev_max_backlog`, packets.
    pub(crate) max_backlog: u32,
    pub(crate) icmp_echo_ignore_all: bool,
    pub(crate) congestion_control: String,
    pub(crate) tcp_sack: bool,
    /// 0 no, 1 with an offset of each connection's own, 2 without.
    pub(crate) tcp_timestamps: u8,
    pub(crate) tcp_window_scaling: bool,
    pub(crate) tcp_ecn: u8,
    /// The congestion controls that are there, in the order they came, and whether programs without rights may choose them.
    pub(crate) controls: Vec<(&'static str, bool)>,
    /// Parameters of their modules that are set: control and name.
    pub(crate) parameters: BTreeMap<(&'static str, &'static str), i64>,
    /// Those that are kept as text, where a command has set them.
    pub(crate) kept: BTreeMap<String, String>,
}

impl Settings {
    /// What a new network namespace has of the one it was made in.
    pub(crate) fn inherit(&mut self, from: &Settings) {
        self.congestion_control.clone_from(&from.congestion_control);
        self.controls.clone_from(&from.controls);
        self.parameters.clone_from(&from.parameters);
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            ip_forward: false,
            default_ttl: 64,
            filters_sources: false,
            rp_filter: 0,
            rp_filter_begins: 0,
            forwarding_begins: None,
            redirects: redirect::Redirects::ON,
            redirects_begin: redirect::Redirects::ON,
            redirect_limits: [None; 3],
            has_valid_marks: false,
            accepts_local: false,
            of_devices: BTreeSet::new(),
            max_backlog: 1000,
            icmp_echo_ignore_all: false,
            congestion_control: "cubic".to_owned(),
            tcp_sack: true,
            tcp_timestamps: 1,
            tcp_window_scaling: true,
            tcp_ecn: 2,
            controls: vec![("reno", true), ("cubic", true)],
            parameters: BTreeMap::new(),
            kept: BTreeMap::new(),
        }
    }
}

/// One machine.
#[repr(C)]
pub struct Host {
    // With each packet, in this order: what lies together comes into the cache together.
    pub(crate) kernel: Kernel,
    /// What gets past an ingress hook is delivered, and goes no further.
    pub(crate) ends_at_ingress: bool,
    /// What the discipline answered last.
    pub(crate) answer: Xmit,
    pub(crate) depth: u32,
    pub(crate) ip_id: u16,
    /// The index of `teql0`.
    pub(crate) teql: Option<u32>,
    /// Cards begin with TSO and GSO on.
    pub(crate) offloads: bool,
    /// The next machine of the packet at hand.
    pub(crate) next_hop: Ipv4Addr,
    /// By index; the first is `lo`.
    pub(crate) devices: Devices,
    pub(crate) neigh: NeighTable,
    pub(crate) drops: Ledger,
    /// Traffic conditioners of its devices.
    pub(crate) conditioners: Vec<Conditioned>,
    pub(crate) timers: timer::Timers,
    pub(crate) fib: Fib,
    pub(crate) nexthops: nexthop::Nexthops,
    /// The actions of all its filters.
    pub(crate) acts: Actions,
    pub(crate) sysctl: Settings,
    /// Words of `ip` from which nothing follows here, a sentence each.
    pub(crate) unfollowed: BTreeSet<String>,
    pub(crate) netfilter: netfilter::Netfilter,
    // The others.
    pub(crate) name: String,
    pub(crate) clock: PschedClock,
    /// Timer interrupts per second.
    pub(crate) hz: u32,
    pub(crate) seed: u64,
    /// Number of this network namespace; 0 is the machine's first.
    pub(crate) space: u32,
    /// The others, with whoever runs.
    pub(crate) spaces: netns::Spaces,
    /// Names of devices that have gone to other namespaces, and how many of each.
    pub(crate) gone_names: BTreeMap<String, u32>,
    /// Numbers given here to other namespaces.
    pub(crate) space_numbers: Vec<(u32, i32)>,
    /// Addresses that are answered for (`ip neigh add proxy`).
    pub(crate) proxies: Vec<neigh::Proxy>,
    /// Questions for others' addresses that wait, of ARP and of neighbour discovery.
    pub(crate) waiting: [proxy::Waiting; 2],
    /// Modules that make devices, once loaded.
    pub(crate) modules: BTreeSet<&'static str>,
    /// The first VRF has brought its rules.
    pub(crate) has_vrf_rules: bool,
    /// What it knows of IPv6.
    pub(crate) six: six::Six,
    /// `net.core.default_qdisc`.
    pub(crate) default_qdisc: &'static KindSpec,
    pub(crate) frags: fragment::Reassembly,
    /// Where packets of tunnels are looked for.
    pub(crate) tunnels: tunnel::Tunnels,
    /// By VRF (0: none) and peer.
    pub(crate) icmp_buckets: BTreeMap<(u32, Ipv4Addr), icmp::Bucket>,
    pub(crate) icmp_together: icmp::Together,
    /// By source and destination, of 2.6.35.
    pub(crate) redirected: BTreeMap<(Ipv4Addr, Ipv4Addr), icmp::Bucket>,
    /// The blocks of filters that its qdiscs share.
    pub(crate) blocks: Blocks,
    /// What `/proc/net/penstock_cwnd` holds, where sockets are simulated above.
    pub(crate) cwnd_table: Option<String>,
    /// Counters of its protocols.
    pub(crate) snmp: Snmp,
    /// Its sockets, as they were told last.
    pub(crate) sockets: Vec<penstock_model::sockets::Socket>,
    /// How `vconfig` names VLANs.
    pub(crate) vlan_names: exec::vlantools::VlanNames,
    /// Timers of spanning trees that were set here so far.
    pub(crate) trees_set: u64,
    /// Empty, but for what it keeps of its memory.
    pub(crate) sent: Vec<Sent>,
    /// What connections are lent to actions in.
    lent: Option<Box<netfilter::ct::Lent>>,
    /// Effects of commands, until the caller takes them.
    pub(crate) pending: Vec<Effect>,
    /// The last handle the kernel chose for a qdisc; one counter for all devices.
    pub(crate) auto_handle: u32,
    /// The id that a program of BPF was given last.
    pub(crate) bpf_programs: u32,
    /// What is known of the paths to others, of IPv4.
    pub(crate) paths: paths::Paths,
    /// Those that speak PPP.
    pub(crate) ppp: ppp::Ppp,
    /// What tells links of this router.
    pub(crate) radvd: radvd::Radvd,
    /// What is kept of TCP connections for those to come.
    pub(crate) tcp_metrics: penstock_model::TcpMetricsTable,
    /// How many keys `wg` has made.
    pub(crate) wg_keys: u32,
}

impl Host {
    /// A machine with `lo` up and nothing else. Its random streams are named after it.
    pub fn new(name: &str, kernel: Kernel, seed: u64) -> Host {
        let mut host = Host::just_started(name, kernel, seed);
        host.set_up(1, true, Time::ZERO);
        host.pending.clear();
        host
    }
    /// A machine before its start scripts: `lo` is there, down, without addresses.
    pub fn just_started(name: &str, kernel: Kernel, seed: u64) -> Host {
        let mut host = Host::bare(name, kernel, seed, 0);
        host.new_device("lo", "loopback", None);
        host.auto_handle = host.devices[1].tree.auto_handle();
        host
    }
    /// In place of a machine that is elsewhere: it has nothing.
    pub fn absent() -> Host {
        Host::bare("", Kernel::V6_12, 0, 0)
    }
    /// A network namespace without any device.
    fn bare(name: &str, kernel: Kernel, seed: u64, space: u32) -> Host {
        Host {
            name: name.to_owned(),
            kernel,
            clock: PschedClock::default(),
            hz: kernel.hz(),
            seed,
            space,
            spaces: netns::Spaces::default(),
            space_numbers: Vec::new(),
            gone_names: BTreeMap::new(),
            devices: Devices::default(),
            proxies: Vec::new(),
            waiting: Default::default(),
            modules: BTreeSet::new(),
            has_vrf_rules: false,
            six: six::Six::default(),
            default_qdisc: &penstock_sched::sch::pfifo_fast::SPEC,
            fib: Fib::default(),
            nexthops: nexthop::Nexthops::default(),
            neigh: NeighTable::new(kernel, Rng::named(seed, &format!("host:{name}/neigh"))),
            frags: fragment::Reassembly::default(),
            tunnels: tunnel::Tunnels::default(),
            netfilter: netfilter::Netfilter::new(Rng::named(seed, &format!("host:{name}/netfilter")))
                .ticking(kernel),
            sysctl: Settings::default(),
            unfollowed: BTreeSet::new(),
            icmp_buckets: BTreeMap::new(),
            icmp_together: icmp::Together::new(Rng::named(seed, &format!("host:{name}/icmp"))),
            timers: timer::Timers::default(),
            drops: Ledger::new(),
            cwnd_table: None,
            snmp: Snmp::default(),
            sockets: Vec::new(),
            trees_set: 0,
            vlan_names: Default::default(),
            acts: Actions::new(),
            blocks: Blocks::new(),
            conditioners: Vec::new(),
            sent: Vec::new(),
            lent: None,
            ends_at_ingress: false,
            answer: Xmit::Success,
            pending: Vec::new(),
            auto_handle: 0,
            bpf_programs: 0,
            paths: paths::Paths::default(),
            ppp: ppp::Ppp::default(),
            radvd: radvd::Radvd::default(),
            redirected: BTreeMap::new(),
            tcp_metrics: BTreeMap::new(),
            wg_keys: 0,
            ip_id: 0,
            teql: None,
            offloads: false,
            next_hop: Ipv4Addr::UNSPECIFIED,
            depth: 0,
        }
    }
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The Linux it runs.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }
    /// Its packet filter.
    pub fn netfilter(&self) -> &netfilter::Netfilter {
        &self.netfilter
    }
    /// What its packet scheduler measures time with. Default: 64 ns ticks.
    pub fn psched_clock(&self) -> PschedClock {
        self.clock
    }
    /// What its processor has done for packets since this was last asked: steps of classification (filters asked, rules of the packet
    /// filter looked at), readings of the packet scheduler's clock.
    pub fn take_work(&mut self) -> penstock_sched::Work {
        let mut work = std::mem::take(&mut self.drops.work);
        work.steps += self.netfilter.take_looked();
        work
    }
    /// Gives it another clock, as another kernel would have: before any qdisc is configured.
    pub fn set_psched_clock(&mut self, clock: PschedClock) {
        self.clock = clock;
        let kernel = self.kernel;
        let Host { devices, drops, acts, .. } = self;
        for device in devices.iter_mut() {
            device.clock = clock;
            device.refresh_tree(kernel, Time::ZERO, drops, acts);
        }
    }
    /// Timer interrupts per second, by which TCP and the qdiscs count. Default: the profile's.
    pub fn hz(&self) -> u32 {
        self.hz
    }
    /// Gives it another rate of timer interrupts, 1 to 10,000 per second: before any qdisc is configured. ARP and ICMP keep the profile's.
    pub fn set_hz(&mut self, hz: u32) {
        self.hz = hz.clamp(1, 10_000);
        let Host { devices, drops, acts, kernel, hz, .. } = self;
        for device in devices.iter_mut() {
            device.hz = *hz;
            device.refresh_tree(*kernel, Time::ZERO, drops, acts);
        }
    }
    /// Adds an Ethernet device that is up (MTU 1500, the profile's txqueuelen, a hardware address that follows from
    /// both names) and answers its index, from 2. A name that is taken answers the device there is.
    pub fn add_device(&mut self, name: &str) -> u32 {
        if let Some(index) = self.ifindex(name) {
            return index;
        }
        let ifindex = self.new_device(name, "", None);
        self.set_up(ifindex, true, Time::ZERO);
        self.pending.retain(|effect| !matches!(effect, Effect::Kick(index) if *index == ifindex));
        ifindex
    }
    /// Gives a device so many transmit queues, before anything is configured on it: its default qdisc is then what a device of several has.
    pub fn set_tx_queues(&mut self, name: &str, queues: u32) {
        let Some(ifindex) = self.ifindex(name) else { return };
        let Host { devices, drops, acts, kernel, .. } = self;
        let Some(device) = devices.get_mut(ifindex) else { return };
        device.queues.0 = queues;
        device.refresh_tree(*kernel, Time::ZERO, drops, acts);
        device.tree.renew_default(&mut Cx { now: Time::ZERO, rng: &mut device.rng, drops, acts });
    }
    /// Puts a queue that is not Linux's ([`penstock_sched::ns2`]) before the link of device `ifindex`.
    ///
    /// # Errors
    /// There is no such kind or device; what the kind refuses of its options.
    pub fn set_ns2_queue(&mut self, ifindex: u32, kind: &str, options: &Options) -> Result<(), KernelError> {
        let kind = penstock_sched::ns2::find(kind)
            .ok_or_else(|| KernelError::new(KernelError::ENOENT, format!("there is no queue \"{kind}\"")))?;
        let Host { devices, drops, acts, .. } = self;
        let device = devices.get_mut(ifindex).ok_or(KernelError::errno(KernelError::ENODEV))?;
        let mut cx = Cx { now: Time::ZERO, rng: &mut device.rng, drops, acts };
        device.tree.set_ns2_queue(kind.spec, options, &mut cx)
    }
    /// All devices, by index; the first is `lo`.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }
    /// All devices, by index, to be changed.
    pub fn devices_mut(&mut self) -> impl Iterator<Item = &mut NetDevice> {
        self.devices.iter_mut()
    }
    /// The device with this index.
    pub fn device(&self, ifindex: u32) -> Option<&NetDevice> {
        self.devices.get(ifindex)
    }
    /// The index of the device with this name or altname.
    pub fn ifindex(&self, name: &str) -> Option<u32> {
        self.devices.called(name)
    }
    /// What is set up here that can be configured and shown as Linux does, but does not do to packets what Linux does: a
    /// sentence each, naming the machine and the device and kind, or the rule's part. Rules of IPv6 meet packets where a device has such an address.
    pub fn unsimulated(&self) -> Vec<String> {
        let each = self.devices.iter().flat_map(|device| {
            device.tree.unsimulated().into_iter().map(move |found| (device.name.as_str(), found))
        });
        let parts = self.acts.unsimulated().into_iter().map(|kind| {
            format!(
                "{}: action \"{kind}\" can be set up and shown here, but what it does to packets is not simulated yet",
                self.name
            )
        });
        let queueing = each.map(|(device, found)| {
            format!(
                "{} {device}: {} \"{}\" can be set up and shown here, but what it does to packets is not simulated yet",
                self.name, found.object, found.kind
            )
        });
        let six = self.has_ipv6();
        let rules =
            self.unsimulated_rules().into_iter().filter(|rule| six || !rule.starts_with("ip6tables "));
        let settings = self.unfollowed_settings().into_iter().chain(self.unfollowed_parameters());
        let settings = settings.chain(self.unfollowed_words());
        queueing
            .chain(parts)
            .chain(rules.chain(settings).map(|rule| format!("{}: {rule}", self.name)))
            .collect()
    }
    /// Words of commands that were taken and shown as Linux does, and from which nothing follows here: a sentence each.
    fn unfollowed_words(&self) -> Vec<String> {
        let of_cards = self.devices.iter().filter(|d| d.class.kind.is_empty()).flat_map(|d| {
            let on = d.features.iter().filter(|(_, on)| **on);
            let on = on.filter_map(|(name, _)| {
                let why = exec::ethtool::not_followed(name, self.kernel)?;
                Some(format!("ethtool -K {} {name} on: not simulated; {why}", d.name))
            });
            let size = d.gso.size.is_some() && self.gso_of(d, 0).is_none();
            let size = size.then(|| {
                format!("ip link set {} gso_max_size: each segment is a packet of its own; offloads = true, or ethtool -K {0} tso on", d.name)
            });
            on.chain(size).collect::<Vec<_>>()
        });
        self.unfollowed.iter().cloned().chain(of_cards).collect()
    }
    /// What a dump of filters needs besides the tree.
    pub fn look(&self, now: Time) -> Look<'_> {
        Look { acts: &self.acts, now }
    }
    /// Its routes.
    pub fn fib(&self) -> &Fib {
        &self.fib
    }
    /// Its ARP table.
    pub fn neighbours(&self) -> &NeighTable {
        &self.neigh
    }
    /// How many packets may wait for a processor (`net.core.netdev_max_backlog`).
    pub fn max_backlog(&self) -> usize {
        self.sysctl.max_backlog as usize
    }
    /// Whether it forwards (`net.ipv4.ip_forward`).
    pub fn forwards(&self) -> bool {
        self.sysctl.ip_forward
    }
    /// Turns forwarding on or off.
    pub fn set_forwarding(&mut self, on: bool) {
        self.sysctl.ip_forward = on;
    }
    /// Sets the last handle the kernel has chosen for a qdisc (`80ff:` is `0x80ff_0000`): the next one follows it.
    pub fn set_auto_handle(&mut self, handle: u32) {
        self.auto_handle = handle;
    }
    /// The last handle the kernel has chosen for a qdisc.
    pub fn auto_handle(&self) -> u32 {
        self.auto_handle
    }
    /// When device `ifindex`'s qdiscs want to be asked again although [`Host::dequeue`] gave nothing. While the device is down
    /// a timer that goes off schedules nothing (`qdisc_deactivate`).
    #[inline]
    pub fn next_wakeup(&self, ifindex: u32) -> Option<Time> {
        let device = self.devices.get(ifindex)?;
        if device.up { device.tree.next_wakeup() } else { None }
    }
    /// When [`Host::handle_timer`] has something to do.
    #[inline]
    pub fn next_timer(&self) -> Option<Time> {
        self.timers.first()
    }
    /// Moves what followed from commands ([`Host::exec`], [`Host::add_address`], …) into `out`: packets a changed
    /// qdisc threw away, and a [`Effect::Kick`] for each device whose qdiscs changed.
    pub fn take_effects(&mut self, out: &mut Vec<Effect>) {
        out.append(&mut self.pending);
    }
}
