//! VRFs: a table of routes of their own for the devices that are their ports, and a device in their place.
//!
//! A packet that comes in by a port is the VRF's from then on: it meets PREROUTING once more, as one that came in by the VRF's device, and its route
//! is looked up in the VRF's table. A packet of this machine that leaves by a port passes the VRF's device before: OUTPUT and POSTROUTING with that
//! device and then with the port, and where the device has a queue, through that.
//!
//! Follows: linux v6.12 `drivers/net/vrf.c` `vrf_ip_rcv`, `vrf_ip_out`, `vrf_ip_out_direct`, `vrf_ip_out_redirect`, `vrf_output`, `vrf_xmit`,
//! `vrf_process_v4_outbound`, `vrf_local_xmit`, `vrf_add_slave`, `vrf_newlink`; `net/ipv4/fib_frontend.c` `fib_netdev_event`.
//! Differs: IPv4 alone; a VRF with an IPv6 address in it is refused before a run. What mirred puts into the receiving side of a VRF's device is taken for
//! a packet that went round within it. Connections and fragments of two VRFs with the same addresses and ports are the same.

use crate::device::NetDevice;
use crate::netfilter::Hook;
use crate::path::MAX_DEPTH;
use crate::route::{self, Hop, Key, L3mdev, L3mdevs, Ports, RouteKind, Rule};
use crate::{Host, HostCx, Timer};
use penstock_lang::ip::{Family, LinkData, RuleSpec};
use penstock_lang::iptables::extension::state;
use penstock_model::{KernelError, Time};
use penstock_packet::{L3, Packet, Sender, Skb, Tracked};
use penstock_sched::Xmit;
use std::net::Ipv4Addr;

/// `FIB_RULE_PREF` of the rule that the first VRF brings.
const RULE_PREF: u32 = 1000;

/// `vrf_nf_set_untracked`: a packet has no connection while it passes the VRF's device.
fn untrack(packet: &mut Skb) {
    packet.rare_mut().ct = Some(Tracked { state: state::UNTRACKED, id: None, reply: false });
}
/// `vrf_nf_reset_ct`.
fn track_again(packet: &mut Skb) {
    if packet.rare().ct.is_some_and(|ct| ct.state == state::UNTRACKED) {
        packet.reset_ct();
    }
}

impl NetDevice {
    /// The table of a VRF's device; `None` of other devices.
    pub(crate) fn vrf_table(&self) -> Option<u32> {
        match (&self.data, self.class.kind) {
            (LinkData::Vrf(table), "vrf") => *table,
            _ => None,
        }
    }
}

impl Host {
    /// A VRF was made: its table is there, and with the first one a rule for each family (`vrf_add_fib_rules`).
    pub(crate) fn vrf_made(&mut self, ifindex: u32) {
        if let Some(table) = self.devices[ifindex].vrf_table() {
            self.fib.new_table(table);
        }
        self.vrfs_changed();
        if std::mem::replace(&mut self.has_vrf_rules, true) {
            return;
        }
        for family in [Family::Inet, Family::Inet6] {
            let protocol = Some(route::KERNEL);
            let spec = RuleSpec { family, l3mdev: true, protocol, ..RuleSpec::default() };
            let rule = Rule { pref: RULE_PREF, spec, iif: 0, oif: 0, suppressed: Vec::new() };
            let add = |rules: &mut Vec<Rule>| {
                // One that a command has made stays the only one.
                if !rules.iter().any(|r| r.pref == RULE_PREF && r.spec.l3mdev) {
                    rules.push(rule);
                }
            };
            if family == Family::Inet { self.fib.change_rules(add) } else { self.six.fib.change_rules(add) }
        }
    }
    /// VRFs have come or gone, or ports of theirs have: which device is where.
    pub(crate) fn vrfs_changed(&mut self) {
        let of = |d: &NetDevice| {
            let master = if d.vrf_table().is_some() { d.ifindex } else { d.master? };
            let table = self.devices.get(master)?.vrf_table()?;
            Some((d.ifindex, L3mdev { master, table }))
        };
        let all = L3mdevs::new(self.devices.iter().filter_map(of));
        self.fib.set_l3mdevs(all);
    }
    /// A device has become a port of a VRF, or is one no more: its routes go, and where it is up it goes down and up again, so that those of its
    /// addresses come into the other table (`cycle_netdev`).
    pub(crate) fn vrf_port_changed(&mut self, ifindex: u32, now: Time) {
        self.vrfs_changed();
        self.fib.remove(|r| r.uses(ifindex) && r.by.is_none());
        if self.devices.get(ifindex).is_some_and(|d| d.up) {
            // What is up can go down and up again.
            let _ = self.set_link_up(ifindex, false, now);
            let _ = self.set_link_up(ifindex, true, now);
        }
    }
    /// The ports of a VRF, or the slaves of a bond, that is about to go are its no more.
    pub(crate) fn release_ports(&mut self, vrf: u32, now: Time) {
        if self.devices.get(vrf).is_none_or(|d| !matches!(d.class.kind, "vrf" | "bond")) {
            return;
        }
        let ports: Vec<u32> =
            self.devices.iter().filter(|d| d.master == Some(vrf)).map(|d| d.ifindex).collect();
        for port in ports {
            self.set_master(port, None, now);
        }
    }
    /// What a VRF is to do that it does not do here: a sentence, where it is so.
    pub(crate) fn asked_of_vrf(&self, device: &NetDevice) -> Option<String> {
        let within = |d: &&NetDevice| d.ifindex == device.ifindex || d.master == Some(device.ifindex);
        let six = |d: &NetDevice| {
            let global = d.addresses6.iter().find(|a| !crate::six::is_link_local(a.addr))?;
            Some(format!(
                "{} {}: {} on {} is within a VRF, and IPv6 does not follow VRFs here yet: leave it out, or write the VRF as a network namespace",
                self.name, device.name, global.addr, d.name
            ))
        };
        self.devices.iter().filter(within).find_map(six)
    }
    /// The index of the VRF that a device is, or is a port of; 0: of none.
    pub fn vrf_of(&self, ifindex: u32) -> u32 {
        self.fib.l3mdevs().of(ifindex).master
    }
    /// Whether an address is this machine's in the eyes of who comes in by a device: by the rules, where there are VRFs.
    pub(crate) fn is_local_at(&self, ifindex: u32, addr: Ipv4Addr) -> bool {
        if self.fib.l3mdevs().is_empty() {
            return self.is_local(addr);
        }
        self.fib.search_key(&Key { iif: ifindex, ..Key::to(addr) }).kind == Some(RouteKind::Local)
    }
    /// Whether an address is this machine's by the table that a device's addresses are in (`inet_addr_type_dev_table`).
    pub(crate) fn is_local_on(&self, ifindex: u32, addr: Ipv4Addr) -> bool {
        match self.fib.l3mdevs().of(ifindex).table {
            0 => self.is_local(addr),
            table => self.fib.find_in(table, &Key::to(addr)).is_some_and(|r| r.kind == RouteKind::Local),
        }
    }
    /// Whether an address is a broadcast address in the eyes of who comes in by a device.
    pub(crate) fn is_broadcast_at(&self, ifindex: u32, addr: Ipv4Addr) -> bool {
        if self.fib.l3mdevs().is_empty() {
            return self.is_broadcast(addr);
        }
        let kind = self.fib.search_key(&Key { iif: ifindex, ..Key::to(addr) }).kind;
        addr == Ipv4Addr::BROADCAST || kind == Some(RouteKind::Broadcast)
    }
    /// The same of who is bound to a device or a VRF; 0: to none.
    pub fn is_broadcast_to(&self, bound: u32, addr: Ipv4Addr) -> bool {
        let of_vrf =
            self.fib.search_key(&Key { oif: bound, ..Key::to(addr) }).kind == Some(RouteKind::Broadcast);
        if bound == 0 { self.is_broadcast(addr) } else { addr == Ipv4Addr::BROADCAST || of_vrf }
    }
    /// The source address of a packet that leaves in a VRF by a device outside of it (`fib_select_path`).
    pub(crate) fn source_of_vrf(&self, hop: &Hop, l3mdev: u32) -> Option<Ipv4Addr> {
        let outside = l3mdev != 0 && self.vrf_of(hop.oif) != l3mdev && hop.kind == Some(RouteKind::Unicast);
        let own = self.devices.get(l3mdev).filter(|_| outside)?.primary_address();
        own.or_else(|| self.source_elsewhere(l3mdev))
    }
    /// `inet_select_addr` where a device has no address: of its VRF's device, else of any device of the same VRF or of none.
    pub(crate) fn source_elsewhere(&self, ifindex: u32) -> Option<Ipv4Addr> {
        let master = self.vrf_of(ifindex);
        let of_master = self.devices.get(master).and_then(NetDevice::primary_address);
        let others = || self.devices.iter().filter(|d| !d.loopback && self.vrf_of(d.ifindex) == master);
        of_master.or_else(|| others().find_map(NetDevice::primary_address))
    }

    /// `vrf_ip_rcv`: a packet has come in by a port, or has gone round within the VRF. `None`: a rule has taken it.
    #[cold]
    pub(crate) fn vrf_rcv(&mut self, vrf: u32, mut packet: Packet, cx: &mut HostCx<'_>) -> Option<Packet> {
        let around = packet.iif == vrf;
        packet.iif = vrf;
        let L3::Ipv4(h) = packet.l3 else { return Some(packet) };
        if around || h.dst.is_multicast() {
            return Some(packet);
        }
        let counters = &mut self.devices[vrf].counters;
        counters.rx_packets += 1;
        counters.rx_bytes += u64::from(packet.network_len());
        if self.netfilter.busy(Hook::Prerouting) && !self.hook(Hook::Prerouting, &mut packet, 0, cx) {
            self.discard(packet, Hook::Prerouting.chain(), "dropped", cx);
            return None;
        }
        Some(packet)
    }

    /// The VRF whose device a packet of this machine passes before it leaves (`l3mdev_ip_out`).
    #[cold]
    pub(crate) fn vrf_before(&self, hop: &Hop, dst: Ipv4Addr) -> Option<u32> {
        if dst.is_multicast() || dst == Ipv4Addr::BROADCAST || hop.kind == Some(RouteKind::Local) {
            return None;
        }
        self.fib.l3mdevs().master_of_port(hop.oif)
    }
    /// `vrf_ip_out`: a packet of this machine passes the VRF's device.
    #[cold]
    pub(crate) fn vrf_ip_out(
        &mut self,
        vrf: u32,
        mut packet: Packet,
        mut hop: Hop,
        cx: &mut HostCx<'_>,
    ) -> Result<(), KernelError> {
        if packet.rare().ct.is_none() {
            untrack(&mut packet);
        }
        let device = &self.devices[vrf];
        // qdisc_tx_is_default
        let direct = device.up && device.queues.0 == 1 && device.tree.root().kind() == "noqueue";
        let mut again = false;
        if self.netfilter.busy(Hook::Output) {
            (packet, again) = self.output_hook(packet, &mut hop, vrf, cx)?;
        }
        if again && !direct {
            // The route that a rule has made look up again does not lead to the VRF's device.
            self.ip_output(packet, hop, cx);
            return Ok(());
        }
        if self.netfilter.busy(Hook::Postrouting) {
            self.next_hop = hop.next;
            if !self.hook(Hook::Postrouting, &mut packet, vrf, cx) {
                self.discard(packet, Hook::Postrouting.chain(), "dropped", cx);
                return Err(KernelError::errno(1));
            }
        }
        track_again(&mut packet);
        if direct {
            if self.netfilter.busy(Hook::Output) {
                return self.send_through_rules(packet, hop, cx);
            }
            self.ip_output(packet, hop, cx);
        } else {
            let mac = self.devices[vrf].mac;
            packet.eth = (mac, mac);
            self.xmit(vrf, packet, cx);
        }
        Ok(())
    }

    /// A packet comes to a VRF's device from above: onto its qdisc, and what that lets go into the VRF. The answer is that of its own qdisc.
    #[cold]
    pub(crate) fn queue_on_vrf(&mut self, ifindex: u32, packet: Packet, cx: &mut HostCx<'_>) {
        if let Some(answer) = self.queue_within(ifindex, packet, MAX_DEPTH, Host::vrf_run, cx) {
            self.answer = answer;
        }
    }
    /// `vrf_xmit` of what the qdisc of a VRF's device lets go, and again when that lets go more.
    pub(crate) fn vrf_run(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        while let Some(mut packet) = self.dequeue(ifindex, cx) {
            if packet.is_noted() {
                packet.rare_mut().nest = Default::default();
            }
            let len = packet.len;
            let answer = std::mem::replace(&mut self.answer, Xmit::Success);
            let went = self.vrf_xmit(ifindex, packet, cx);
            self.answer = answer;
            let Some(device) = self.devices.get_mut(ifindex).filter(|_| !went) else { continue };
            device.errors.tx += 1;
            device.counters.tx_packets -= 1;
            device.counters.tx_bytes -= u64::from(len);
            device.counters.tx_dropped += 1;
        }
        self.timers.retain(|timer| timer != Timer::Cardless(ifindex));
        if let Some(at) = self.next_wakeup(ifindex) {
            self.timers.insert(at.max(cx.now), Timer::Cardless(ifindex));
        }
    }
    /// `vrf_process_v4_outbound`; whether the packet went.
    fn vrf_xmit(&mut self, vrf: u32, mut packet: Packet, cx: &mut HostCx<'_>) -> bool {
        let L3::Ipv4(mut h) = packet.l3 else {
            self.discard(packet, "vrf", "not-ip", cx);
            return false;
        };
        let ports = Ports { protocol: h.protocol, ..Ports::default() };
        let hop =
            self.fib.search_key(&Key { src: h.src, tos: h.tos & 0x1c, l3mdev: vrf, ports, ..Key::to(h.dst) });
        if !matches!(hop.kind, Some(RouteKind::Unicast | RouteKind::Local | RouteKind::Broadcast)) {
            self.discard(packet, "vrf", "no-route", cx);
            return false;
        }
        let out = self.out_device(&hop);
        if out == vrf {
            // vrf_local_xmit
            packet.sender = Sender::default();
            let counters = &mut self.devices[vrf].counters;
            counters.rx_packets += 1;
            counters.rx_bytes += u64::from(packet.len);
            packet.iif = vrf;
            self.netif_receive(vrf, packet, cx);
            return true;
        }
        if h.src.is_unspecified() {
            h.src = self.source_for(&hop, h.dst);
            packet.l3 = L3::Ipv4(h);
        }
        track_again(&mut packet);
        if self.netfilter.busy(Hook::Output) {
            if self.send_through_rules(packet, hop, cx).is_err() {
                return false;
            }
        } else {
            self.ip_output(packet, hop, cx);
        }
        self.answer != Xmit::Drop
    }
}

#[cfg(test)]
mod tests {
    use crate::Host;
    use crate::tests::{Net, echo, ip, routed, set4};
    use penstock_model::{Kernel, Time};
    use penstock_packet::{L4, Skb};

    fn said(host: &mut Host, line: &str) -> (i32, String) {
        let out = host.exec(line, Time::ZERO);
        (out.status, out.stdout + &out.stderr)
    }

    /// As Linux 6.1 with iproute2 6.1 printed them.
    #[test]
    fn commands_say_what_those_of_linux_say() {
        let mut host = Host::new("r", Kernel::V6_12, 1);
        host.add_device("eth0");
        host.add_device("eth1");
        for (line, status, text) in [
            ("ip addr add 10.0.0.1/24 dev eth0", 0, ""),
            ("ip link add red type vrf", 2, "Error: VRF table id is missing.\n"),
            ("ip link add red type vrf table 0", 2, "Error: Invalid VRF table id.\n"),
            ("ip link add red type vrf table x", 255, "Error: argument \"x\" is wrong: invalid table ID\n\n"),
            (
                "ip link add red type vrf foo 3",
                1,
                "vrf: unknown option \"foo\"?\nUsage: ... vrf table TABLEID\n",
            ),
            ("ip link add red type vrf table 10", 0, ""),
            ("ip link set red up", 0, ""),
            ("ip link add blue type vrf table 20", 0, ""),
            ("ip link set red master blue", 2, "Error: Can not enslave an L3 master device to a VRF.\n"),
            ("ip link set lo master red", 2, "Error: Can not enslave loopback device to a VRF.\n"),
            ("ip link set eth0 master red", 0, ""),
            (
                "ip rule",
                0,
                "0:\tfrom all lookup local\n1000:\tfrom all lookup [l3mdev-table]\n32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n",
            ),
            (
                "ip -6 rule",
                0,
                "0:\tfrom all lookup local\n1000:\tfrom all lookup [l3mdev-table]\n32766:\tfrom all lookup main\n",
            ),
            (
                "ip vrf",
                0,
                "Name              Table\n-----------------------\nred                 10\nblue                20\n",
            ),
            ("ip vrf show red", 0, "red 10\n"),
            ("ip -j vrf show", 0, "[{\"name\":\"red\",\"table\":10},{\"name\":\"blue\",\"table\":20}]\n"),
            ("ip vrf show zz", 1, "Invalid VRF\n"),
            (
                "ip route show table 10",
                0,
                "10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.1 \nlocal 10.0.0.1 dev eth0 proto kernel scope host src 10.0.0.1 \n\
                 broadcast 10.0.0.255 dev eth0 proto kernel scope link src 10.0.0.1 \n",
            ),
            ("ip route", 0, ""),
            ("ip route add 10.1.0.0/16 via 10.0.0.9 vrf red", 0, ""),
            ("ip route add 10.1.0.0/16 via 10.0.0.9", 2, "Error: Nexthop has invalid gateway.\n"),
            ("ip route add 10.2.0.0/16 via 10.0.0.9 table 10", 0, ""),
            (
                "ip route add 10.3.0.0/16 via 10.0.0.9 vrf zz",
                255,
                "Error: argument \"zz\" is wrong: Invalid VRF\n\n",
            ),
            (
                "ip route get 10.1.2.3 vrf red",
                0,
                "10.1.2.3 via 10.0.0.9 dev eth0 table 10 src 10.0.0.1 uid 0 \n    cache \n",
            ),
            ("ip route get 10.1.2.3", 2, "RTNETLINK answers: Network is unreachable\n"),
            (
                "ip route get vrf red 10.0.0.1",
                0,
                "local 10.0.0.1 dev red table 10 src 10.0.0.1 uid 0 \n    cache <local> \n",
            ),
            ("ip rule add l3mdev table 3", 22, "table can not be specified for l3mdev rules\n"),
            ("ip link set red type vrf table 11", 2, "RTNETLINK answers: Operation not supported\n"),
            (
                "ip route show vrf red",
                0,
                "10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.1 \n10.1.0.0/16 via 10.0.0.9 dev eth0 \n10.2.0.0/16 via 10.0.0.9 dev eth0 \n",
            ),
            ("ip vrf exec zz true", 1, "Invalid VRF name\n"),
            ("ip link set eth0 nomaster", 0, ""),
            ("ip route", 0, "10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.1 \n"),
            ("ip route show table 10", 0, ""),
        ] {
            assert_eq!(said(&mut host, line), (status, text.to_owned()), "{line}");
        }
        assert!(
            said(&mut host, "ip link show red")
                .1
                .contains("<NOARP,MASTER,UP,LOWER_UP> mtu 65575 qdisc noqueue state UP")
        );
        said(&mut host, "ip link set eth1 vrf red");
        assert!(said(&mut host, "ip -d link show eth1").1.contains("\n    vrf_slave table 10 "));
        // With the VRF go its table for the ports, not the rule.
        said(&mut host, "ip addr add 10.9.0.1/24 dev eth1");
        said(&mut host, "ip link del red");
        assert!(said(&mut host, "ip route").1.contains("10.9.0.0/24 dev eth1"));
        assert!(said(&mut host, "ip rule").1.contains("1000:\tfrom all lookup [l3mdev-table]\n"));
        assert_eq!(host.unsimulated_devices(), [""; 0]);
        said(&mut host, "ip link set eth1 master blue");
        said(&mut host, "ip -6 addr add fd00::1/64 dev eth1");
        assert_eq!(host.unsimulated_devices().len(), 1);
        let mut old = Host::new("r", Kernel::V2_6_35, 1);
        assert_ne!(said(&mut old, "ip link add red type vrf table 10").0, 0);
    }

    /// The router of three machines with both its cards in a VRF.
    fn in_vrf(lines: &[&str]) -> Net {
        let mut net = routed(Kernel::V6_12);
        let first = ["ip link add red type vrf table 10", "ip link set red up"];
        let ports = ["ip link set eth0 master red", "ip link set eth1 master red"];
        for line in first.iter().chain(&ports).chain(lines) {
            let out = net.hosts[1].exec(line, net.now);
            assert_eq!((out.status, out.stderr.as_str()), (0, ""), "{line}");
        }
        net
    }
    fn wait(net: &mut Net, ms: i64) {
        net.run(Time::from_ns(net.now.as_ns() + ms * 1_000_000));
    }

    #[test]
    fn a_qdisc_of_the_device_has_what_the_machine_itself_sends() {
        for (lines, sent) in [(&[][..], 0), (&["tc qdisc add dev red root pfifo limit 10"][..], 2)] {
            let mut net = in_vrf(lines);
            // Through it, and to it.
            for to in ["10.0.2.1", "10.0.1.254", "10.0.1.254"] {
                let _ = net.send(0, echo(to));
                wait(&mut net, 100);
            }
            let red = net.hosts[1].devices().iter().find(|d| d.name == "red").unwrap().counters;
            // Of those that passed it sees the request and what comes back of the other side.
            assert_eq!((red.rx_packets, red.tx_packets), (4, sent), "{:?}", net.dropped);
            assert_eq!(net.delivered.len(), 3);
        }
    }

    #[test]
    fn a_packet_that_is_bound_to_a_vrf_goes_by_its_table() {
        let mut net = in_vrf(&[]);
        let red = net.hosts[1].ifindex("red").unwrap();
        let mut request = |bound: u32| {
            let mut skb: Skb = echo("10.0.2.1");
            set4(&mut skb, |h| h.src = ip("0.0.0.0"));
            skb.l4 = L4::Icmp(penstock_packet::Icmp::new(8, 0, 7, 1));
            skb.iif = bound;
            let sent = net.send(1, skb);
            wait(&mut net, 100);
            (sent, net.delivered.len())
        };
        assert_eq!(request(0), (Err(101), 0));
        assert_eq!(request(red), (Ok(()), 1));
    }
}
