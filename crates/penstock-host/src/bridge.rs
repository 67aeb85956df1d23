//! Bridges: a frame that comes in at a port goes on to the port behind which its address was heard, to all of them, or up to the bridge itself.
//!
//! Follows: linux v6.12 `net/bridge/br_input.c` `br_handle_frame`, `br_handle_frame_finish`, `br_pass_frame_up`; `br_forward.c` `br_forward`,
//! `br_flood`, `should_deliver`; `br_device.c` `br_dev_xmit`; `br_fdb.c` `br_fdb_update`, `fdb_add_local`, `br_fdb_delete_by_port`; `br_stp.c`
//! `br_make_forwarding`; v2.6.35 the same files.
//! Differs: what has aged is gone at that nanosecond, not when the work queue comes by; no spanning tree, no VLAN filtering, no IGMP, no
//! netfilter on frames: what asks for them is refused by name. Of several copies of a flooded frame the flow's own packet is the one that leaves
//! last, by the oldest port.

use crate::path::MAX_DEPTH;
use crate::{Host, HostCx, Timer};
use penstock_model::{Kernel, Span, Time};
use penstock_packet::{Packet, Skb};
use penstock_sched::Xmit;
use std::collections::BTreeMap;

type Mac = [u8; 6];

/// What a bridge is beside a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bridge {
    /// The newest first, as frames for all leave.
    pub ports: Vec<Port>,
    /// Who is behind which port.
    fdb: BTreeMap<Mac, Entry>,
    /// Entries made so far.
    made: u64,
    /// How long who is not heard is remembered; 0: nobody is. Default 300 s.
    pub ageing: Span,
    /// How long a port learns before it sends; 6.12 asks for it with a spanning tree alone. Default 15 s.
    pub forward_delay: Span,
    /// A command has given it an address of its own: ports do not change it.
    pub own_mac: bool,
    /// A command has given it an MTU: ports do not change it.
    pub own_mtu: bool,
    /// What it was asked for that it does not do here: the words.
    pub asked: Vec<String>,
}

/// A device in a bridge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Port {
    /// Which.
    pub ifindex: u32,
    /// Since when it may send, which may be to come; `None`: disabled.
    since: Option<Time>,
    /// What `type bridge_slave` has set.
    pub set: Settings,
}

/// What a port does. All but `hairpin` and `isolated` is so from the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    /// Learns who is behind it.
    pub learning: bool,
    /// Takes frames whose address nobody knows.
    pub flood: bool,
    /// Takes frames for groups.
    pub mcast_flood: bool,
    /// Takes frames for all.
    pub bcast_flood: bool,
    /// A frame may leave by it that came in by it.
    pub hairpin: bool,
    /// Frames from an isolated port leave by none.
    pub isolated: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            learning: true,
            flood: true,
            mcast_flood: true,
            bcast_flood: true,
            hairpin: false,
            isolated: false,
        }
    }
}

/// Where an address is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    /// The port; `None` for the bridge's own address.
    port: Option<u32>,
    /// An address of the machine: its frames go up.
    local: bool,
    /// When a frame of it was last seen.
    updated: Time,
    /// Place among all by age.
    made: u64,
}

/// A line of `brctl showmacs`.
pub(crate) struct Heard {
    /// Address.
    pub mac: Mac,
    /// Number of the port, from 1.
    pub port: usize,
    /// Whether it is the machine's.
    pub local: bool,
    /// Since when nothing was heard of it.
    pub age: Span,
}

/// Whom a frame is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    One,
    Group,
    All,
}

impl To {
    fn of(mac: Mac) -> To {
        match mac {
            crate::arp::MAC_BROADCAST => To::All,
            _ if mac[0] & 1 == 1 => To::Group,
            _ => To::One,
        }
    }
}

impl Bridge {
    pub(crate) fn new() -> Bridge {
        Bridge {
            ports: Vec::new(),
            fdb: BTreeMap::new(),
            made: 0,
            ageing: Span::from_secs(300),
            forward_delay: Span::from_secs(15),
            own_mac: false,
            own_mtu: false,
            asked: Vec::new(),
        }
    }
    /// Forgets who was heard: behind a port, or behind all.
    pub(crate) fn flush(&mut self, port: Option<u32>) {
        self.fdb.retain(|_, e| e.local || port.is_some() && e.port != port);
    }
    /// It is asked for something that it does not do here, unless the value is the one that changes nothing (empty: all do).
    pub(crate) fn ask(&mut self, name: &str, value: &str, harmless: &str) {
        self.asked.retain(|asked| asked.split(' ').next() != Some(name));
        if !harmless.is_empty() && value != harmless {
            self.asked.push(format!("{name} {value}"));
        }
    }
    fn port(&self, ifindex: u32) -> Option<&Port> {
        self.ports.iter().find(|p| p.ifindex == ifindex)
    }
    /// What is known of an address, where it has not aged.
    fn find(&mut self, mac: Mac, now: Time) -> Option<Entry> {
        let entry = *self.fdb.get(&mac)?;
        if self.has_aged(&entry, now) {
            self.fdb.remove(&mac);
            return None;
        }
        Some(entry)
    }
    fn has_aged(&self, entry: &Entry, now: Time) -> bool {
        !entry.local && entry.updated + self.ageing <= now
    }
    /// `br_fdb_update`.
    fn learn(&mut self, mac: Mac, port: u32, now: Time) {
        if self.ageing == Span::ZERO {
            return;
        }
        match self.fdb.get_mut(&mac) {
            Some(known) if known.local => {}
            Some(known) => (known.port, known.updated) = (Some(port), now),
            None => self.add(mac, Entry { port: Some(port), local: false, updated: now, made: 0 }),
        }
    }
    fn add(&mut self, mac: Mac, entry: Entry) {
        self.made += 1;
        self.fdb.insert(mac, Entry { made: self.made, ..entry });
    }
    /// `fdb_add_local`: of several with one address the first has it.
    fn add_local(&mut self, mac: Mac, port: Option<u32>, now: Time) {
        if mac != [0; 6] && mac[0] & 1 == 0 && !self.fdb.get(&mac).is_some_and(|e| e.local) {
            self.add(mac, Entry { port, local: true, updated: now, made: 0 });
        }
    }
    /// Forgets who was behind a port; `all`: its own address too.
    fn forget(&mut self, port: Option<u32>, all: bool) {
        self.fdb.retain(|_, e| e.port != port || e.local && !all);
    }
    /// Whether a port sends, and whether it learns.
    fn state(&self, ifindex: u32, now: Time) -> (bool, bool) {
        let since = self.port(ifindex).and_then(|p| p.since);
        (since.is_some_and(|since| since <= now), since.is_some())
    }
    /// Who was heard, the newest first.
    pub(crate) fn heard(&self, now: Time) -> Vec<Heard> {
        let mut all: Vec<_> = self.fdb.iter().filter(|(_, e)| !self.has_aged(e, now)).collect();
        all.sort_by_key(|(_, e)| std::cmp::Reverse(e.made));
        let number = |ifindex| self.ports.iter().rev().position(|p| p.ifindex == ifindex).map(|n| n + 1);
        let line = |(mac, e): (&Mac, &Entry)| {
            let age = if e.local { Span::ZERO } else { now - e.updated };
            Some(Heard { mac: *mac, port: number(e.port?)?, local: e.local, age })
        };
        all.into_iter().filter_map(line).collect()
    }
}

impl Host {
    /// The bridge a device is a port of.
    pub(crate) fn bridge_of(&self, ifindex: u32) -> Option<u32> {
        let master = self.devices.get(ifindex)?.master?;
        self.devices.get(master)?.bridge.is_some().then_some(master)
    }
    /// Whether a device hears frames for others: a port of a bridge, or a VLAN above it is one.
    pub fn hears_all(&self, ifindex: u32) -> bool {
        let Some(device) = self.devices.get(ifindex) else { return false };
        if device.bridged {
            // A slave of a bond hears what the bond hears.
            return self.bond_of(ifindex).is_none_or(|bond| self.hears_all(bond));
        }
        self.devices.vlans_on(ifindex).any(|vlan| self.hears_all(vlan))
    }
    /// A port of a bridge comes, goes, goes up or down, or the bridge does: who sends from now on (`br_stp_enable_port`,
    /// `br_stp_disable_port`).
    pub(crate) fn bridge_ports_changed(&mut self, bridge: u32, now: Time) {
        let Some(device) = self.devices.get(bridge).filter(|d| d.bridge.is_some()) else { return };
        let up = device.up;
        let ready: Vec<(u32, bool)> = self
            .devices
            .iter()
            .filter(|d| d.master == Some(bridge))
            .map(|d| (d.ifindex, up && d.up && self.carrier(d)))
            .collect();
        let kernel = self.kernel;
        let Some(bridge) = self.devices[bridge].bridge.as_deref_mut() else { return };
        let delay = match kernel {
            Kernel::V2_6_35 => bridge.forward_delay,
            Kernel::V6_12 | Kernel::V7_2 => Span::ZERO,
        };
        for (ifindex, ready) in ready {
            let Some(port) = bridge.ports.iter_mut().find(|p| p.ifindex == ifindex) else { continue };
            match (port.since, ready) {
                (None, true) => port.since = Some(now + delay),
                (Some(_), false) => {
                    port.since = None;
                    bridge.forget(Some(ifindex), false);
                }
                _ => {}
            }
        }
    }
    /// A device has gone up or down: the bridge that it is, or is in, hears of it.
    pub(crate) fn bridge_follows(&mut self, ifindex: u32, now: Time) {
        if let Some(bridge) = self.bridge_of(ifindex) {
            self.bridge_ports_changed(bridge, now);
        } else if self.devices.get(ifindex).is_some_and(|d| d.bridge.is_some()) {
            self.bridge_ports_changed(ifindex, now);
        }
    }
    /// The MTU of a bridge is that of its least port, unless a command has said another (`br_mtu_auto_adjust`).
    pub(crate) fn bridge_mtu_follows(&mut self, bridge: u32, now: Time) {
        if self.devices[bridge].bridge.as_ref().is_none_or(|b| b.own_mtu) {
            return;
        }
        let ports = self.devices.iter().filter(|d| d.master == Some(bridge));
        let least = ports.map(|d| d.mtu).min().unwrap_or(1500);
        // No port has an MTU that a bridge could not have.
        let _ = self.set_mtu(bridge, least, now);
    }
    /// A device is a port from now on (`br_add_if`).
    pub(crate) fn add_port(&mut self, bridge: u32, ifindex: u32, now: Time) {
        let mac = self.devices[ifindex].mac;
        self.devices[ifindex].bridged = true;
        if let Some(b) = self.devices[bridge].bridge.as_deref_mut() {
            b.ports.insert(0, Port { ifindex, since: None, set: Settings::default() });
            b.add_local(mac, Some(ifindex), now);
        }
    }
    /// A device is a port no more (`del_nbp`).
    pub(crate) fn remove_port(&mut self, bridge: u32, ifindex: u32) {
        if let Some(device) = self.devices.get_mut(ifindex) {
            device.bridged = false;
        }
        if let Some(b) = self.devices.get_mut(bridge).and_then(|d| d.bridge.as_deref_mut()) {
            b.ports.retain(|p| p.ifindex != ifindex);
            b.forget(Some(ifindex), true);
        }
    }
    /// A bridge or a port has another address (`br_fdb_change_mac_address`, `br_fdb_changeaddr`).
    pub(crate) fn bridge_addressed(&mut self, ifindex: u32, now: Time) {
        let mac = self.devices[ifindex].mac;
        let (bridge, port) = match self.devices[ifindex].bridge {
            Some(_) => (ifindex, None),
            None => match self.bridge_of(ifindex) {
                Some(bridge) => (bridge, Some(ifindex)),
                None => return,
            },
        };
        if let Some(b) = self.devices[bridge].bridge.as_deref_mut() {
            b.fdb.retain(|_, e| e.port != port || !e.local);
            b.add_local(mac, port, now);
        }
    }

    /// `br_handle_frame`: a frame behind the ingress filters of a port. `Some`: it is for the port itself, as if there were no bridge.
    #[cold]
    pub(crate) fn bridge_receive(
        &mut self,
        ifindex: u32,
        frame: Packet,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        let Some(bridge) = self.bridge_of(ifindex) else { return Some(frame) };
        let (from, to) = frame.eth;
        let promiscuous = self.devices[bridge].flags & crate::device::PROMISC != 0;
        let Some(b) = self.devices[bridge].bridge.as_deref_mut() else { return Some(frame) };
        if from == [0; 6] || from[0] & 1 == 1 {
            return self.not_bridged(frame, "bad-source", cx);
        }
        if to[..5] == LINK_LOCAL && to[5] & 0xf0 == 0 && to[5] != 0 {
            return match to[5] {
                1 => self.not_bridged(frame, "pause", cx),
                _ => Some(frame),
            };
        }
        let (sends, learns) = b.state(ifindex, cx.now);
        if !learns {
            return self.not_bridged(frame, "port-disabled", cx);
        }
        let Some(port) = b.port(ifindex) else { return Some(frame) };
        if port.set.learning {
            b.learn(from, ifindex, cx.now);
        }
        if !sends {
            return self.not_bridged(frame, "port-learning", cx);
        }
        let kind = To::of(to);
        let up = promiscuous || kind != To::One;
        let known = if kind == To::One { b.find(to, cx.now) } else { None };
        let left = match known {
            Some(entry) if entry.local => Some(frame),
            Some(entry) => self.bridge_forward(bridge, entry.port, Some(ifindex), frame, up, cx),
            None => self.bridge_flood(bridge, kind, Some(ifindex), frame, up, cx),
        };
        if let Some(frame) = left {
            self.bridge_pass_up(bridge, ifindex, frame, cx);
        }
        None
    }
    fn not_bridged(&mut self, frame: Packet, reason: &'static str, cx: &mut HostCx<'_>) -> Option<Packet> {
        self.discard(frame, "bridge", reason, cx);
        None
    }

    /// `br_pass_frame_up`: the bridge has received a frame.
    fn bridge_pass_up(&mut self, bridge: u32, port: u32, mut frame: Packet, cx: &mut HostCx<'_>) {
        let to = frame.eth.1;
        let ours = to[0] & 1 == 1 || to == self.devices[bridge].mac || to == self.devices[port].mac;
        let told = frame.rare().ptype.is_some();
        if to == self.devices[bridge].mac {
            if told {
                frame.rare_mut().ptype = None;
            }
        } else if !ours && !told {
            frame.rare_mut().ptype = Some(crate::vlan::OTHERHOST);
        }
        let counters = &mut self.devices[bridge].counters;
        counters.rx_packets += 1;
        // The Ethernet header is off by then.
        counters.rx_bytes += u64::from(frame.network_len());
        frame.iif = bridge;
        self.netif_receive(bridge, frame, cx);
    }

    /// A packet comes to a bridge from above: onto its qdisc, and what that lets go on to the ports. The answer is that of the bridge's own
    /// qdisc, where it has one.
    #[cold]
    pub(crate) fn queue_on_bridge(&mut self, ifindex: u32, packet: Packet, cx: &mut HostCx<'_>) {
        if let Some(answer) = self.queue_within(ifindex, packet, MAX_DEPTH, Host::bridge_run, cx) {
            self.answer = answer;
        }
    }
    /// `br_dev_xmit`: a bridge sends what its qdisc lets go, and comes again when that lets go more.
    pub(crate) fn bridge_run(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        while let Some(mut packet) = self.dequeue(ifindex, cx) {
            let Some(b) = self.devices.get_mut(ifindex).and_then(|d| d.bridge.as_deref_mut()) else {
                self.discard(packet, "netif", "no-device", cx);
                return;
            };
            if packet.is_noted() {
                packet.rare_mut().nest = Default::default();
            }
            let to = packet.eth.1;
            let kind = To::of(to);
            let known = if kind == To::One { b.find(to, cx.now) } else { None };
            let answer = std::mem::replace(&mut self.answer, Xmit::Success);
            match known {
                Some(entry) => self.bridge_forward(ifindex, entry.port, None, packet, false, cx),
                None => self.bridge_flood(ifindex, kind, None, packet, false, cx),
            };
            self.answer = answer;
        }
        self.timers.retain(|timer| timer != Timer::Cardless(ifindex));
        if let Some(at) = self.next_wakeup(ifindex) {
            self.timers.insert(at.max(cx.now), Timer::Cardless(ifindex));
        }
    }

    /// `br_forward`: to one port. `keep`: a copy goes, the frame comes back.
    fn bridge_forward(
        &mut self,
        bridge: u32,
        port: Option<u32>,
        from: Option<u32>,
        frame: Packet,
        keep: bool,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        let target = port.filter(|&p| self.should_deliver(bridge, p, from, cx.now));
        let Some(port) = target else {
            if keep {
                return Some(frame);
            }
            let same = port.is_some() && port == from;
            return self.not_bridged(frame, if same { "same-port" } else { "no-port" }, cx);
        };
        if keep {
            let copy = self.copy_of(&frame, cx);
            self.bridge_xmit(port, copy, cx);
            return Some(frame);
        }
        self.bridge_xmit(port, frame, cx);
        None
    }
    /// `br_flood`: to all ports but that it came from.
    fn bridge_flood(
        &mut self,
        bridge: u32,
        kind: To,
        from: Option<u32>,
        mut frame: Packet,
        keep: bool,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        let mut last = None;
        //= linux v6.12 net/bridge/br_forward.c br_flood: br_tc_skb_miss_set
        if kind != To::All {
            frame.rare_mut().l2_miss = true;
        }
        let count = self.devices[bridge].bridge.as_ref().map_or(0, |b| b.ports.len());
        for n in 0..count {
            // What a copy sets off may change the ports.
            let Some(port) = self.devices[bridge].bridge.as_ref().and_then(|b| b.ports.get(n)) else { break };
            let wants = match kind {
                To::One => port.set.flood,
                To::Group => port.set.mcast_flood || from.is_none(),
                To::All => port.set.bcast_flood || from.is_none(),
            };
            let ifindex = port.ifindex;
            if !wants || !self.should_deliver(bridge, ifindex, from, cx.now) {
                continue;
            }
            if let Some(before) = last.replace(ifindex) {
                let copy = self.copy_of(&frame, cx);
                self.bridge_xmit(before, copy, cx);
            }
        }
        match last {
            Some(port) if keep => {
                let copy = self.copy_of(&frame, cx);
                self.bridge_xmit(port, copy, cx);
                Some(frame)
            }
            Some(port) => {
                self.bridge_xmit(port, frame, cx);
                None
            }
            None if keep => Some(frame),
            None => self.not_bridged(frame, "no-port", cx),
        }
    }
    /// `should_deliver`.
    fn should_deliver(&self, bridge: u32, port: u32, from: Option<u32>, now: Time) -> bool {
        let Some(b) = self.devices[bridge].bridge.as_deref() else { return false };
        let Some(to) = b.port(port) else { return false };
        let isolated = |i: u32| b.port(i).is_some_and(|p| p.set.isolated);
        (to.set.hairpin || from != Some(port))
            && to.since.is_some_and(|since| since <= now)
            && !(to.set.isolated && from.is_some_and(isolated))
    }
    pub(crate) fn copy_of(&self, frame: &Skb, cx: &mut HostCx<'_>) -> Packet {
        let mut copy = cx.pool.alloc(frame.clone());
        copy.tc.role.set_copy(true);
        cx.pool.note_extra(&copy);
        copy
    }
    /// `br_dev_queue_push_xmit`: onto the port's qdisc, if the frame fits.
    fn bridge_xmit(&mut self, port: u32, frame: Packet, cx: &mut HostCx<'_>) {
        let longest = self.devices[port].mtu + ETH_HLEN + VLAN_HLEN;
        if frame.len > longest {
            self.not_bridged(frame, "too-long", cx);
            return;
        }
        self.xmit(port, frame, cx);
    }
}

/// The first bytes of addresses that bridges keep to themselves (IEEE 802.1D table 7-10).
const LINK_LOCAL: [u8; 5] = [0x01, 0x80, 0xc2, 0, 0];
/// Length of an Ethernet header and of a VLAN tag, bytes.
const ETH_HLEN: u32 = 14;
const VLAN_HLEN: u32 = 4;

#[cfg(test)]
mod tests {
    use crate::Host;
    use crate::tests::{Net, echo, ip, set4, udp};
    use penstock_model::{Kernel, Time};
    use penstock_packet::{L3, L4, Skb};

    /// Machines a, b and c, each on a port of a bridge on the fourth, which has 10.0.0.254 itself.
    fn net(kernel: Kernel, lines: &[&str]) -> Net {
        let host = |name: &str, cards: usize| {
            let mut host = Host::new(name, kernel, 1);
            for n in 0..cards {
                host.add_device(&format!("eth{n}"));
            }
            host
        };
        let mut hosts: Vec<Host> = ["a", "b", "c"].map(|name| host(name, 1)).into();
        hosts.push(host("sw", 3));
        let set_up = [
            "ip link add br0 type bridge forward_delay 0",
            "ip link set eth0 master br0",
            "ip link set eth1 master br0",
            "ip link set eth2 master br0",
            "ip addr add 10.0.0.254/24 dev br0",
            "ip link set br0 up",
        ];
        let mut net = Net::new(hosts, vec![((0, 2), (3, 2)), ((1, 2), (3, 3)), ((2, 2), (3, 4))]);
        for n in 0..3 {
            run(&mut net, n, &format!("ip addr add 10.0.0.{}/24 dev eth0", n + 1));
        }
        for line in set_up.iter().chain(lines) {
            run(&mut net, 3, line);
        }
        net
    }
    fn run(net: &mut Net, host: usize, line: &str) -> String {
        let now = net.now;
        let said = net.hosts[host].exec(line, now);
        assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{line}");
        said.stdout
    }
    fn wait(net: &mut Net, ms: i64) {
        net.run(Time::from_ns(net.now.as_ns() + ms * 1_000_000));
    }
    /// An echo from 10.0.0.1 to this address has an answer.
    fn answered(net: &mut Net, to: &str) -> bool {
        net.delivered.clear();
        let mut request = echo(to);
        set4(&mut request, |h| h.src = ip("10.0.0.1"));
        let _ = net.send(0, request);
        wait(net, 900);
        let reply = |p: &Skb| matches!(p.l4, L4::Icmp(i) if i.ty == crate::icmp::ECHO_REPLY);
        net.delivered.iter().filter(|(host, p)| *host == 0 && reply(p)).count() == 1
    }
    /// Frames of IPv4 that crossed a wire since, by their sender.
    fn senders(net: &mut Net) -> Vec<usize> {
        let all = std::mem::take(&mut net.frames);
        all.into_iter().filter(|(_, _, f)| matches!(f.l3, L3::Ipv4(_))).map(|f| f.1).collect()
    }

    #[test]
    fn a_frame_goes_where_its_address_was_heard() {
        for kernel in Kernel::ALL {
            let mut net = net(kernel, &[]);
            assert!(answered(&mut net, "10.0.0.2"), "{kernel} {:?}", net.dropped);
            // Request and answer, each over two wires: nothing comes to c but the question who has it.
            assert_eq!(senders(&mut net), [0, 3, 1, 3], "{kernel}");
            let macs = run(&mut net, 3, "brctl showmacs br0");
            let mut numbers: Vec<String> = macs
                .lines()
                .skip(1)
                .map(|l| l.split('\t').next().unwrap().trim().to_owned() + l.split('\t').nth(2).unwrap())
                .collect();
            numbers.sort();
            assert_eq!(numbers, ["1no", "1yes", "2no", "2yes", "3yes"], "{kernel} {macs}");
            assert_eq!(net.hosts[3].unsimulated_devices(), [""; 0]);
        }
    }

    #[test]
    fn the_bridge_itself_is_a_station() {
        let mut net = net(Kernel::V6_12, &[]);
        assert!(answered(&mut net, "10.0.0.254"), "{:?}", net.dropped);
        let counters = net.hosts[3].devices().iter().find(|d| d.name == "br0").unwrap().counters;
        // ARP and the echo both ways: received without the Ethernet header, sent with it.
        assert_eq!((counters.rx_packets, counters.rx_bytes), (2, 28 + 84));
        assert_eq!((counters.tx_packets, counters.tx_bytes), (2, 42 + 98));
        // Its address is that of its least port, and frames for the others' come up to it and no further.
        let mac = |net: &Net, dev: u32| net.hosts[3].devices()[dev].mac;
        let (br, other) = (mac(&net, 5), (2..5).map(|n| mac(&net, n)).max().unwrap());
        assert_eq!(br, (2..5).map(|n| mac(&net, n)).min().unwrap());
        for (to, reason) in [(br, None), (other, Some((3, "netif", "other-host")))] {
            net.dropped.clear();
            net.delivered.clear();
            let from = (2..5).find(|&n| mac(&net, n) != to).unwrap();
            let frame = Skb { eth: ([2, 9, 9, 9, 9, 9], to), ..udp("10.0.0.9", "10.0.0.254", 100) };
            net.receive(3, from, frame);
            assert_eq!(net.dropped.first().copied(), reason);
            assert_eq!(net.delivered.len(), usize::from(reason.is_none()));
        }
    }

    #[test]
    fn an_unknown_address_goes_to_all_and_one_that_has_aged_again() {
        let mut net = net(Kernel::V6_12, &["brctl setageing br0 0.5"]);
        assert!(answered(&mut net, "10.0.0.2"));
        senders(&mut net);
        let mut frame = udp("10.0.0.1", "10.0.0.2", 100);
        let mac = |net: &Net, host: usize| net.hosts[host].devices()[2].mac;
        frame.eth = (mac(&net, 0), mac(&net, 1));
        // Nearly a second later b is forgotten: all but the port it came in by get it, and c has no use for it.
        net.receive(3, 2, frame.clone());
        assert_eq!(senders(&mut net), [3, 3]);
        assert_eq!(net.dropped, [(2, "netif", "other-host")]);
        run(&mut net, 3, "ip link set eth2 type bridge_slave flood off");
        net.receive(3, 2, frame.clone());
        assert_eq!(senders(&mut net), [3]);
        // An answer teaches it again.
        frame.eth = (mac(&net, 1), mac(&net, 0));
        net.receive(3, 3, frame.clone());
        assert_eq!(senders(&mut net), [3]);
        // Both behind one port: the bridge has nothing to do.
        net.dropped.clear();
        frame.eth.0 = [2, 9, 9, 9, 9, 9];
        net.receive(3, 2, frame);
        assert_eq!((senders(&mut net).len(), net.dropped.as_slice()), (0, &[(3, "bridge", "same-port")][..]));
    }

    #[test]
    fn a_port_that_is_down_isolated_or_gone_has_no_part() {
        let reached = |lines: &[&str]| {
            let mut net = net(Kernel::V6_12, lines);
            ["10.0.0.2", "10.0.0.3", "10.0.0.254"].map(|to| answered(&mut net, to))
        };
        assert_eq!(reached(&["ip link set eth1 down"]), [false, true, true]);
        assert_eq!(reached(&["ip link set eth1 nomaster"]), [false, true, true]);
        assert_eq!(reached(&["ip link set br0 down"]), [false; 3]);
        let isolated = [
            "ip link set eth0 type bridge_slave isolated on",
            "ip link set eth1 type bridge_slave isolated on",
        ];
        assert_eq!(reached(&isolated), [false, true, true]);
        assert_eq!(reached(&["brctl delif br0 eth0"]), [false; 3]);
        // What is learned behind a port goes with it.
        let mut net = net(Kernel::V6_12, &[]);
        assert!(answered(&mut net, "10.0.0.2"));
        run(&mut net, 3, "ip link set eth1 down");
        let macs = run(&mut net, 3, "brctl showmacs br0");
        assert_eq!(macs.matches("no").count() - 1, 1, "{macs}");
    }

    /// Linux 2.6.35 learns for the forward delay even without a spanning tree.
    #[test]
    fn an_old_kernel_waits_for_its_forward_delay() {
        let mut old =
            net(Kernel::V2_6_35, &["brctl setfd br0 15", "ip link set br0 down", "ip link set br0 up"]);
        assert!(!answered(&mut old, "10.0.0.2"));
        assert!(old.dropped.contains(&(3, "bridge", "port-learning")), "{:?}", old.dropped);
        wait(&mut old, 15_000);
        assert!(answered(&mut old, "10.0.0.2"), "{:?}", old.dropped);
    }

    #[test]
    fn qdiscs_filters_and_vlans_of_ports_and_of_the_bridge_do_their_part() {
        let mut net = net(
            Kernel::V6_12,
            &[
                "tc qdisc add dev eth1 root tbf rate 80kbit burst 1600 limit 3100",
                "tc qdisc add dev eth0 clsact",
                "tc filter add dev eth0 ingress matchall action pass",
                "tc qdisc add dev br0 root handle 1: prio",
                "ip link add link br0 name br0.7 type vlan id 7",
                "ip addr add 10.7.0.254/24 dev br0.7",
                "ip link set br0.7 up",
            ],
        );
        assert!(answered(&mut net, "10.0.0.2") && answered(&mut net, "10.0.0.254"));
        let shown = run(&mut net, 3, "tc -s filter show dev eth0 ingress");
        // A question and an echo to each.
        assert!(shown.contains(" 4 pkt"), "{shown}");
        let shown = run(&mut net, 3, "tc -s qdisc show dev br0");
        assert!(shown.contains("Sent 140 bytes 2 pkt"), "{shown}");
        // The port's shaper lets one of six go at once, has room for three and loses two.
        let arrived = |net: &Net| net.delivered.iter().filter(|d| d.0 == 1).count();
        net.delivered.clear();
        net.dropped.clear();
        for _ in 0..6 {
            net.send(0, udp("10.0.0.1", "10.0.0.2", 1000)).unwrap();
        }
        assert_eq!((arrived(&net), net.dropped.len()), (1, 2), "{:?}", net.dropped);
        // A VLAN over the bridge, from a station of that VLAN.
        run(&mut net, 0, "ip link add link eth0 name v7 type vlan id 7");
        run(&mut net, 0, "ip addr add 10.7.0.1/24 dev v7");
        run(&mut net, 0, "ip link set v7 up");
        wait(&mut net, 1000);
        net.delivered.clear();
        net.send(0, echo("10.7.0.254")).unwrap();
        wait(&mut net, 100);
        // What the shaper still held comes too, to b.
        assert_eq!(net.delivered.iter().filter(|d| d.0 == 0).count(), 1, "{:?}", net.dropped);
    }

    #[test]
    fn a_vlan_may_be_a_port() {
        let lines = [
            "ip link set eth1 nomaster",
            "ip link add link eth1 name e1.5 type vlan id 5",
            "ip link set e1.5 master br0 up",
        ];
        let mut net = net(Kernel::V6_12, &lines);
        for line in [
            "ip link add link eth0 name v5 type vlan id 5",
            "ip addr flush dev eth0",
            "ip addr add 10.0.0.2/24 dev v5",
            "ip link set v5 up",
        ] {
            run(&mut net, 1, line);
        }
        assert!(answered(&mut net, "10.0.0.2"), "{:?}", net.dropped);
    }

    #[test]
    fn what_a_bridge_does_not_do_is_told() {
        let told = |lines: &[&str]| net(Kernel::V6_12, lines).hosts[3].unsimulated_devices();
        for line in [
            "brctl stp br0 on",
            "ip link set br0 type bridge vlan_filtering 1",
            "ip link set eth0 type bridge_slave locked on",
        ] {
            let said = told(&[line]);
            assert!(said.len() == 1 && said[0].contains("frames do not meet it yet"), "{line}: {said:?}");
        }
        assert_eq!(told(&["brctl stp br0 on", "brctl stp br0 off", "modprobe br_netfilter"]), [""; 0]);
        let said = told(&["modprobe br_netfilter", "iptables -A FORWARD -j DROP"]);
        assert!(said.len() == 1 && said[0].contains("br_netfilter"), "{said:?}");
        let mut net = net(Kernel::V6_12, &[]);
        for (line, exit, text) in [
            ("ip link set br0 type bridge colour 1", 255, "bridge: unknown option \"colour\"?\n"),
            (
                "ip link set eth0 type bridge_slave isolated 2",
                255,
                "Error: argument of \"isolated\" must be \"on\" or \"off\", not \"2\"\n",
            ),
            ("brctl setageing br0 x", 1, "bad time value\n"),
        ] {
            let now = net.now;
            let said = net.hosts[3].exec(line, now);
            assert_eq!((said.status, said.stderr.as_str()), (exit, text), "{line}");
        }
    }

    /// Its MTU follows the least of its ports until a command says another.
    #[test]
    fn its_mtu_is_that_of_its_least_port() {
        let mut net = net(Kernel::V6_12, &["ip link set eth1 mtu 1400"]);
        let mtu = |net: &Net| net.hosts[3].devices().iter().find(|d| d.name == "br0").unwrap().mtu;
        assert_eq!(mtu(&net), 1400);
        run(&mut net, 3, "ip link set eth1 nomaster");
        assert_eq!(mtu(&net), 1500);
        run(&mut net, 3, "ip link set br0 mtu 1200");
        run(&mut net, 3, "ip link set eth0 mtu 1100");
        assert_eq!(mtu(&net), 1200);
    }
}
