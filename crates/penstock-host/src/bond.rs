//! Bonds: several devices that are one. A frame leaves by one of them, as the mode says, or by all; what comes in by one comes in by the bond.
//!
//! [`hash`] says which way a flow goes, [`monitor`] which of them may be used, [`options`] what a command sets, [`procfs`] what `/proc/net/bonding` says.
//!
//! Follows: linux v6.12 `drivers/net/bonding/bond_main.c` `bond_enslave`, `__bond_release_one`, `bond_handle_frame`, `bond_xmit_roundrobin`,
//! `bond_xmit_activebackup`, `bond_3ad_xor_xmit`, `bond_xmit_broadcast`, `bond_get_stats`.
//! Differs: the modes `balance-rr`, `active-backup`, `balance-xor` and `broadcast`; no ARP monitor, no unsolicited neighbour advertisements. A slave's
//! carrier is known at once, not when the work queue comes by. What is asked for beyond that is refused before a run.

mod hash;
mod monitor;
mod options;
mod procfs;
#[cfg(test)]
mod tests;

pub(crate) use hash::Policy;
pub(crate) use monitor::Link;
pub(crate) use options::Refused;

use crate::device::{Counters, NetDevice};
use crate::path::MAX_DEPTH;
use crate::{Effect, Host, HostCx, Timer};
use penstock_model::Time;
use penstock_packet::{L3, Packet};
use penstock_sched::Xmit;
use std::collections::BTreeMap;

/// `mode`: by its number, as the kernel counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// `balance-rr`: one after the other.
    RoundRobin = 0,
    /// `active-backup`: by the active one alone.
    ActiveBackup = 1,
    /// `balance-xor`: by a hash of the flow.
    Xor = 2,
    /// `broadcast`: by all.
    Broadcast = 3,
    /// `802.3ad`: kept and shown.
    Ad = 4,
    /// `balance-tlb`: kept and shown.
    Tlb = 5,
    /// `balance-alb`: kept and shown.
    Alb = 6,
}

/// `primary_reselect`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reselect {
    /// `always`: a primary that comes back is the active one again.
    Always = 0,
    /// `better`: where it is faster.
    Better = 1,
    /// `failure`: when the active one fails.
    Failure = 2,
}

/// What a bond is beside a device.
pub(crate) struct Bond {
    // Parameters.
    pub mode: Mode,
    pub policy: Policy,
    /// How often carriers are looked at, ms; 0: never, and every slave is taken to be usable.
    pub miimon: u32,
    /// How long a carrier must be there, or be gone, before it counts, ms.
    pub updelay: u32,
    pub downdelay: u32,
    /// Name of the slave that is the active one where it can be; empty: none.
    pub primary: String,
    pub reselect: Reselect,
    /// Gratuitous ARP requests after a fail-over (`num_grat_arp`). Default 1.
    pub peer_notif: u8,
    /// Packets by one slave before the next has its turn; 0: a slave by chance, which is refused.
    pub packets_per_slave: u32,
    /// Frames from slaves that are not active are taken too.
    pub all_slaves_active: bool,
    /// Words of what it is to do that it does not do here.
    pub asked: Vec<String>,
    /// Words that set nothing here, with their values, to be shown.
    pub told: BTreeMap<String, String>,
    // Variables.
    /// In the order they came.
    pub slaves: Vec<Slave>,
    /// The active one, by index.
    pub current: Option<u32>,
    /// A primary was named: it is the active one at the next choice, whatever `primary_reselect` says.
    pub force_primary: bool,
    /// A command has given it an address of its own: the first slave does not.
    pub own_mac: bool,
    /// Packets sent by turns.
    pub rr_tx_counter: u32,
    /// Requests that are still to go, and that one goes at once.
    pub send_peer_notif: u32,
    pub notify: bool,
    /// Whether it has a carrier: a slave is up.
    pub carrier: bool,
    /// When it looks at its slaves next.
    pub next_look: Option<Time>,
    /// What slaves that have left had carried while they were here.
    left: Counters,
}

/// A device in a bond.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Slave {
    /// Which.
    pub ifindex: u32,
    pub link: Link,
    /// Looks that are still to come before what has been seen counts.
    pub delay: u32,
    /// What comes in by it is lost.
    pub inactive: bool,
    /// The address it came with, and its MTU.
    pub perm_mac: [u8; 6],
    pub original_mtu: u32,
    /// How often its link has failed.
    pub failures: u32,
    /// What it had carried before.
    before: Counters,
}

fn sum(a: Counters, b: Counters, sign: bool) -> Counters {
    let add = |a: u64, b: u64| if sign { a.wrapping_add(b) } else { a.wrapping_sub(b) };
    Counters {
        rx_packets: add(a.rx_packets, b.rx_packets),
        rx_bytes: add(a.rx_bytes, b.rx_bytes),
        rx_dropped: add(a.rx_dropped, b.rx_dropped),
        rx_otherhost: add(a.rx_otherhost, b.rx_otherhost),
        rx_multicast: add(a.rx_multicast, b.rx_multicast),
        tx_packets: add(a.tx_packets, b.tx_packets),
        tx_bytes: add(a.tx_bytes, b.tx_bytes),
        tx_dropped: add(a.tx_dropped, b.tx_dropped),
    }
}

impl Bond {
    pub(crate) fn new() -> Bond {
        Bond {
            mode: Mode::RoundRobin,
            policy: Policy::Layer2,
            miimon: 0,
            updelay: 0,
            downdelay: 0,
            primary: String::new(),
            reselect: Reselect::Always,
            peer_notif: 1,
            packets_per_slave: 1,
            all_slaves_active: false,
            asked: Vec::new(),
            told: BTreeMap::new(),
            slaves: Vec::new(),
            current: None,
            force_primary: false,
            own_mac: false,
            rr_tx_counter: 0,
            send_peer_notif: 0,
            notify: false,
            carrier: false,
            next_look: None,
            left: Counters::default(),
        }
    }
    pub(crate) fn slave(&self, ifindex: u32) -> Option<&Slave> {
        self.slaves.iter().find(|s| s.ifindex == ifindex)
    }
}

/// `IFF_SLAVE`.
pub(crate) const SLAVE: u32 = 0x800;

impl Host {
    /// The bond a device is a slave of.
    pub(crate) fn bond_of(&self, ifindex: u32) -> Option<u32> {
        let master = self.devices.get(ifindex)?.master?;
        self.devices.get(master)?.bond.is_some().then_some(master)
    }
    /// What a device has carried: of a macvlan, without what the device below has refused; of a bond, what its slaves have while they were its slaves (`bond_get_stats`).
    pub fn counters(&self, device: &NetDevice) -> Counters {
        let Some(bond) = &device.bond else {
            return if device.macvlan.is_some() { self.macvlan_counters(device) } else { device.counters };
        };
        let mut all = sum(device.counters, bond.left, true);
        for slave in &bond.slaves {
            if let Some(d) = self.devices.get(slave.ifindex) {
                all = sum(all, sum(d.counters, slave.before, false), true);
            }
        }
        all
    }
    /// What a bond is to do that it does not do here.
    pub(crate) fn asked_of_bond(&self, device: &NetDevice) -> Option<String> {
        let bond = device.bond.as_deref()?;
        let asked = match bond.mode {
            Mode::Ad => "mode 802.3ad".to_owned(),
            Mode::Tlb => "mode balance-tlb".to_owned(),
            Mode::Alb => "mode balance-alb".to_owned(),
            _ if bond.policy.is_not_here() => format!("xmit_hash_policy {}", bond.policy.name()),
            _ => bond.asked.first()?.clone(),
        };
        Some(format!(
            "{} {}: a bond with \"{asked}\" can be set up and shown here, but carries no packets yet: write mode active-backup, balance-xor, balance-rr or broadcast, with miimon",
            self.name, device.name
        ))
    }

    /// A device that is down is a slave from now on (`bond_enslave`): it has the bond's address and MTU, and is up.
    pub(crate) fn bond_enslave(&mut self, bond: u32, ifindex: u32, now: Time) {
        let first = self.devices[bond].bond.as_ref().is_some_and(|b| b.slaves.is_empty() && !b.own_mac);
        if first {
            self.devices[bond].mac = self.devices[ifindex].mac;
        }
        let (mac, mtu) = (self.devices[bond].mac, self.devices[bond].mtu);
        let device = &mut self.devices[ifindex];
        let (perm_mac, original_mtu) = (device.mac, device.mtu);
        device.mac = mac;
        device.flags |= SLAVE;
        device.bridged = true;
        // A bond has an MTU that its slaves may have.
        let _ = self.set_mtu(ifindex, mtu, now);
        let _ = self.set_link_up(ifindex, true, now);
        self.six_down(ifindex);
        let before = self.devices[ifindex].counters;
        let carrier = self.carrier(&self.devices[ifindex]);
        let name = self.devices[ifindex].name.clone();
        let Some(b) = self.devices[bond].bond.as_deref_mut() else { return };
        let (link, delay) = b.first_link(carrier);
        let inactive = b.mode == Mode::ActiveBackup && !b.all_slaves_active;
        b.slaves.push(Slave { ifindex, link, delay, inactive, perm_mac, original_mtu, failures: 0, before });
        match b.mode {
            Mode::ActiveBackup => b.force_primary |= b.primary == name,
            _ if b.current.is_none() && link == Link::Up => b.current = Some(ifindex),
            _ => {}
        }
        if b.mode == Mode::ActiveBackup {
            self.bond_select_active_slave(bond, true, now);
        }
        self.bond_carrier_follows(bond, now);
    }
    /// A device is a slave no more (`__bond_release_one`): it is down, with its own address and MTU.
    pub(crate) fn bond_release(&mut self, bond: u32, ifindex: u32, now: Time) {
        let carried = self.devices.get(ifindex).map(|d| d.counters);
        let Some(b) = self.devices.get_mut(bond).and_then(|d| d.bond.as_deref_mut()) else { return };
        let Some(at) = b.slaves.iter().position(|s| s.ifindex == ifindex) else { return };
        let slave = b.slaves.remove(at);
        if let Some(carried) = carried {
            b.left = sum(b.left, sum(carried, slave.before, false), true);
        }
        let (was_current, ab) = (b.current == Some(ifindex), b.mode == Mode::ActiveBackup);
        if was_current {
            b.current = None;
        }
        if was_current && ab {
            self.bond_select_active_slave(bond, false, now);
        }
        self.bond_carrier_follows(bond, now);
        if self.devices.get(ifindex).is_none() {
            return;
        }
        // What is up can go down.
        let _ = self.set_link_up(ifindex, false, now);
        let device = &mut self.devices[ifindex];
        device.mac = slave.perm_mac;
        device.flags &= !SLAVE;
        device.bridged = false;
        let _ = self.set_mtu(ifindex, slave.original_mtu, now);
    }
    /// A bond has another address, or another MTU: so have its slaves.
    pub(crate) fn bond_tells_slaves(&mut self, bond: u32, now: Time) {
        let Some(b) = &self.devices[bond].bond else { return };
        let slaves: Vec<u32> = b.slaves.iter().map(|s| s.ifindex).collect();
        let (mac, mtu) = (self.devices[bond].mac, self.devices[bond].mtu);
        for slave in slaves {
            self.devices[slave].mac = mac;
            if self.devices[slave].mtu != mtu {
                // A bond has an MTU that its slaves may have.
                let _ = self.set_mtu(slave, mtu, now);
            }
        }
    }

    /// `bond_handle_frame`: a frame behind the ingress filters of a slave. `Some`: it is for the slave itself.
    #[cold]
    pub(crate) fn bond_receive(
        &mut self,
        bond: u32,
        ifindex: u32,
        mut frame: Packet,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        let inactive = |d: &NetDevice| d.bond.as_ref()?.slave(ifindex).map(|s| s.inactive);
        if self.devices.get(bond).and_then(inactive).unwrap_or(false) {
            self.discard(frame, "bond", "inactive", cx);
            return None;
        }
        if !self.devices[bond].up {
            // Whom nobody opened nobody listens to: ip_rcv takes frames of a device that is down for no one's.
            self.discard(frame, "netif", "device-down", cx);
            return None;
        }
        frame.iif = bond;
        self.netif_receive(bond, frame, cx);
        None
    }

    /// A packet comes to a bond from above: onto its qdisc, and what that lets go on to slaves. The answer is that of the slave's qdisc where the
    /// bond has none.
    #[cold]
    pub(crate) fn queue_on_bond(&mut self, ifindex: u32, packet: Packet, cx: &mut HostCx<'_>) {
        if self.devices[ifindex].bond.as_ref().is_some_and(|b| !b.carrier) {
            // In place of its qdisc stands noop.
            return self.queue_without_carrier(ifindex, packet, cx);
        }
        let answer = self.queue_within(ifindex, packet, MAX_DEPTH, Host::bond_run, cx);
        if let Some(answer) = answer
            && self.devices.get(ifindex).is_some_and(|d| d.tree.root().kind() != "noqueue")
        {
            self.answer = answer;
        }
    }
    /// `bond_start_xmit` of what the qdisc of a bond lets go, and again when that lets go more.
    pub(crate) fn bond_run(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        while let Some(mut packet) = self.dequeue(ifindex, cx) {
            let Some(device) = self.devices.get_mut(ifindex) else { return };
            // Its slaves count.
            device.counters.tx_packets -= 1;
            device.counters.tx_bytes -= u64::from(packet.len);
            if packet.is_noted() {
                packet.rare_mut().nest = Default::default();
            }
            self.answer = Xmit::Success;
            self.bond_xmit(ifindex, packet, cx);
        }
        self.timers.retain(|timer| timer != Timer::Cardless(ifindex));
        if let Some(at) = self.next_wakeup(ifindex) {
            self.timers.insert(at.max(cx.now), Timer::Cardless(ifindex));
        }
    }
    fn bond_xmit(&mut self, bond: u32, packet: Packet, cx: &mut HostCx<'_>) {
        let Some(b) = self.devices[bond].bond.as_deref_mut() else { return };
        let slave = match b.mode {
            Mode::RoundRobin => {
                let igmp = matches!(packet.l3, L3::Ipv4(h) if h.protocol == IGMP);
                let count = b.slaves.len() as u32;
                if igmp && b.current.is_some() {
                    b.current
                } else if count == 0 {
                    None
                } else {
                    // A counter that begins at 1 (this_cpu_inc_return).
                    b.rr_tx_counter = b.rr_tx_counter.wrapping_add(u32::from(!igmp));
                    let turn = if igmp { 0 } else { b.rr_tx_counter / b.packets_per_slave.max(1) };
                    self.slave_from(bond, turn % count)
                }
            }
            Mode::Xor => {
                let hash = hash::xmit_hash(b.policy, &packet);
                let usable = self.usable_slaves(bond);
                let count = usable.clone().count() as u32;
                if count == 0 { None } else { usable.clone().nth((hash % count) as usize) }
            }
            Mode::Broadcast => return self.bond_xmit_broadcast(bond, packet, cx),
            _ => b.current,
        };
        match slave {
            Some(slave) => self.xmit(slave, packet, cx),
            None => self.bond_tx_drop(bond, packet, cx),
        }
    }
    /// `bond_tx_drop`.
    fn bond_tx_drop(&mut self, bond: u32, packet: Packet, cx: &mut HostCx<'_>) {
        self.devices[bond].counters.tx_dropped += 1;
        self.answer = Xmit::Drop;
        cx.out.push(Effect::Dropped { packet, ifindex: bond, place: "bond", reason: "no-slave" });
    }
    /// `bond_slave_can_tx`.
    fn can_tx(&self, slave: &Slave) -> bool {
        let up = |d: &NetDevice| d.up && self.carrier(d);
        slave.link == Link::Up && !slave.inactive && self.devices.get(slave.ifindex).is_some_and(up)
    }
    /// Those that a flow may go by (`bond_update_slave_arr`).
    fn usable_slaves(&self, bond: u32) -> impl Iterator<Item = u32> + Clone {
        let slaves = self.devices[bond].bond.as_ref().map_or(&[][..], |b| &b.slaves);
        slaves.iter().filter(|s| self.can_tx(s)).map(|s| s.ifindex)
    }
    /// `bond_get_slave_by_id`: the one of this number, or the next that can.
    fn slave_from(&self, bond: u32, number: u32) -> Option<u32> {
        let slaves = self.devices[bond].bond.as_ref().map_or(&[][..], |b| &b.slaves);
        let (before, from) = slaves.split_at((number as usize).min(slaves.len()));
        from.iter().chain(before).find(|s| self.can_tx(s)).map(|s| s.ifindex)
    }
    fn bond_xmit_broadcast(&mut self, bond: u32, packet: Packet, cx: &mut HostCx<'_>) {
        let count = self.devices[bond].bond.as_ref().map_or(0, |b| b.slaves.len());
        let mut packet = Some(packet);
        let mut went = false;
        for n in 0..count {
            let Some(slave) = self.devices[bond].bond.as_ref().and_then(|b| b.slaves.get(n)) else { break };
            let up = |d: &NetDevice| d.up && self.carrier(d);
            let (ifindex, usable) =
                (slave.ifindex, slave.link == Link::Up && self.devices.get(slave.ifindex).is_some_and(up));
            if !usable {
                continue;
            }
            let one =
                if n + 1 == count { packet.take() } else { packet.as_ref().map(|p| self.copy_of(p, cx)) };
            if let Some(one) = one {
                self.answer = Xmit::Success;
                self.xmit(ifindex, one, cx);
                went |= self.answer != Xmit::Drop;
            }
        }
        match packet {
            Some(packet) if !went => self.bond_tx_drop(bond, packet, cx),
            // The last slave takes none: of the copies that went this was the original.
            Some(packet) => cx.out.push(Effect::Moved(packet)),
            None => {}
        }
        if went {
            self.answer = Xmit::Success;
        }
    }
}

/// `IPPROTO_IGMP`.
const IGMP: u8 = 2;
