//! Which slaves of a bond may be used: the MII monitor, the choice of the active one, and who hears of it.
//!
//! Follows: linux v6.12 `drivers/net/bonding/bond_main.c` `bond_mii_monitor`, `bond_miimon_inspect`, `bond_miimon_commit`, `bond_select_active_slave`,
//! `bond_find_best_slave`, `bond_choose_primary_or_current`, `bond_change_active_slave`, `bond_set_carrier`; `net/ipv4/devinet.c`
//! `inetdev_send_gratuitous_arp`.

use super::{Bond, Mode, Reselect};
use crate::{Host, HostCx, Timer, timer};
use penstock_model::Time;

/// `BOND_LINK_*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    /// It can be used.
    Up,
    /// Its carrier is gone, for less than `downdelay`.
    Fail,
    /// It cannot.
    Down,
    /// Its carrier is back, for less than `updelay`.
    Back,
}

impl Bond {
    /// Looks that `updelay` and `downdelay` take.
    fn looks(&self, ms: u32) -> u32 {
        ms.checked_div(self.miimon).unwrap_or(0)
    }
    /// What a new slave begins with, and looks until it is up.
    pub(super) fn first_link(&self, carrier: bool) -> (Link, u32) {
        match (self.miimon, carrier, self.looks(self.updelay)) {
            (0, _, _) | (_, true, 0) => (Link::Up, 0),
            (_, true, looks) => (Link::Back, looks),
            (_, false, _) => (Link::Down, 0),
        }
    }
    fn link_of(&self, ifindex: Option<u32>) -> Option<Link> {
        ifindex.and_then(|i| self.slave(i)).map(|s| s.link)
    }
    /// `bond_miimon_inspect`: what has become of each slave's link, in their order; `carriers` are theirs now.
    fn inspect(&mut self, carriers: &[bool]) -> Vec<(u32, Link)> {
        let (up_looks, down_looks) = (self.looks(self.updelay), self.looks(self.downdelay));
        let mut ignore_updelay = match self.mode {
            Mode::ActiveBackup => self.current.is_none(),
            _ => !self.slaves.iter().zip(carriers).any(|(s, up)| s.link == Link::Up && *up),
        };
        let mut new = Vec::new();
        for (slave, &carrier) in self.slaves.iter_mut().zip(carriers) {
            let mut proposed = None;
            match slave.link {
                Link::Up if carrier => continue,
                Link::Down if !carrier => continue,
                Link::Up => (proposed, slave.delay) = (Some(Link::Fail), down_looks),
                Link::Down => (proposed, slave.delay) = (Some(Link::Back), up_looks),
                Link::Fail | Link::Back => {}
            }
            let rises = matches!(slave.link, Link::Down | Link::Back);
            if rises && carrier && ignore_updelay {
                slave.delay = 0;
            }
            match (rises, carrier) {
                // Recovered before the time was over, or gone again.
                (false, true) => proposed = Some(Link::Up),
                (true, false) => proposed = Some(Link::Down),
                _ if slave.delay == 0 => {
                    proposed = Some(if rises { Link::Up } else { Link::Down });
                    ignore_updelay &= !rises;
                }
                _ => slave.delay -= 1,
            }
            new.extend(proposed.map(|link| (slave.ifindex, link)));
        }
        new
    }
}

impl Host {
    /// A bond has gone up or down, or `miimon` has changed: from now on it looks at its slaves, or does no more.
    pub(crate) fn bond_follows(&mut self, ifindex: u32, now: Time) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        let Some(bond) = device.bond.as_deref_mut() else { return };
        bond.next_look = (device.up && bond.miimon > 0).then_some(now);
        let looks = bond.next_look.is_some();
        self.timers.retain(|timer| timer != Timer::Bond(ifindex));
        if looks {
            self.timers.insert(now, Timer::Bond(ifindex));
        }
    }
    /// A bond's timer has gone off.
    pub(crate) fn bond_timer_fired(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        let due = |b: &Bond| b.next_look.is_some_and(|at| at <= cx.now);
        let bond = |host: &Self, ask: &dyn Fn(&Bond) -> bool| {
            host.devices.get(ifindex).and_then(|d| d.bond.as_deref()).is_some_and(ask)
        };
        if bond(self, &due) {
            self.bond_mii_monitor(ifindex, cx.now);
            let kernel = self.kernel;
            if let Some(b) = self.devices[ifindex].bond.as_deref_mut() {
                let ticks = (i64::from(b.miimon) * i64::from(kernel.hz())).div_euclid(1000).max(1);
                let at = timer::fires(kernel, cx.now, timer::jiffies(kernel, cx.now) + ticks);
                b.next_look = Some(at);
                self.timers.insert(at, Timer::Bond(ifindex));
            }
        }
        if bond(self, &|b| b.notify) {
            if let Some(b) = self.devices[ifindex].bond.as_deref_mut() {
                b.notify = false;
            }
            self.notify_peers(ifindex, cx);
        }
    }
    /// `NETDEV_NOTIFY_PEERS` of a bond and of the VLANs on it: a gratuitous ARP request for each address.
    fn notify_peers(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        let all: Vec<u32> = [ifindex].into_iter().chain(self.devices.vlans_on(ifindex)).collect();
        for at in all {
            if self.devices.get(at).is_some_and(|d| d.up) {
                self.announce_addresses(at, cx);
            }
        }
    }

    /// `bond_mii_monitor`.
    fn bond_mii_monitor(&mut self, bond: u32, now: Time) {
        let Some(b) = self.devices[bond].bond.as_deref() else { return };
        let should_notify = b.should_notify();
        let carriers: Vec<bool> = b
            .slaves
            .iter()
            .map(|s| self.devices.get(s.ifindex).is_some_and(|d| d.up && self.carrier(d)))
            .collect();
        let Some(b) = self.devices[bond].bond.as_deref_mut() else { return };
        let new = b.inspect(&carriers);
        if !new.is_empty() {
            self.bond_miimon_commit(bond, &new, now);
        }
        let Some(b) = self.devices[bond].bond.as_deref_mut().filter(|b| b.send_peer_notif > 0) else {
            return;
        };
        b.send_peer_notif -= 1;
        b.notify |= should_notify;
    }
    /// `bond_miimon_commit`.
    fn bond_miimon_commit(&mut self, bond: u32, new: &[(u32, Link)], now: Time) {
        let mut failover = false;
        for &(ifindex, link) in new {
            let primary = self.devices.get(ifindex).map(|d| d.name.clone());
            let Some(b) = self.devices[bond].bond.as_deref_mut() else { return };
            let (ab, stays, current) = (b.mode == Mode::ActiveBackup, b.all_slaves_active, b.current);
            let is_primary = !b.primary.is_empty() && primary.as_ref() == Some(&b.primary);
            let Some(slave) = b.slaves.iter_mut().find(|s| s.ifindex == ifindex) else { continue };
            slave.link = link;
            match link {
                Link::Up => failover |= current.is_none() || is_primary,
                Link::Down => {
                    slave.failures = slave.failures.saturating_add(1);
                    slave.inactive |= ab && !stays;
                    failover |= current == Some(ifindex);
                }
                Link::Fail | Link::Back => {}
            }
        }
        if failover {
            self.bond_select_active_slave(bond, false, now);
        }
        self.bond_carrier_follows(bond, now);
    }

    /// `bond_choose_primary_or_current`, `bond_find_best_slave`.
    fn bond_best_slave(&mut self, bond: u32) -> Option<u32> {
        let named = |name: &str| self.ifindex(name);
        let b = self.devices[bond].bond.as_deref()?;
        let named = named(&b.primary).filter(|&i| b.slave(i).is_some());
        let current = b.current;
        let up = |i: Option<u32>| b.link_of(i) == Some(Link::Up);
        let mut wanted = named.filter(|_| up(named));
        if wanted.is_none() {
            let first = b.slaves.iter().find(|s| s.link == Link::Up).map(|s| s.ifindex);
            if first.is_none() || first == current {
                // One that is about to be up, the soonest.
                let most = b.looks(b.updelay);
                let usable =
                    |s: &&super::Slave| s.link == Link::Back && s.delay < most && self.devices[s.ifindex].up;
                let soonest = || b.slaves.iter().filter(usable).min_by_key(|s| s.delay).map(|s| s.ifindex);
                return if up(current) { current } else { first.or_else(soonest) };
            }
            wanted = first;
        } else if b.force_primary {
            if let Some(b) = self.devices[bond].bond.as_deref_mut() {
                b.force_primary = false;
            }
            return wanted;
        }
        if !up(current) {
            return wanted;
        }
        let speed = |i: Option<u32>| i.and_then(|i| self.devices[i].speed_mbit).unwrap_or(u32::MAX);
        match b.reselect {
            Reselect::Always => wanted,
            Reselect::Better if speed(wanted) > speed(current) => wanted,
            Reselect::Better | Reselect::Failure => current,
        }
    }
    /// `bond_select_active_slave`. `opening`: the slave has just come, and those around are told at the next look.
    pub(super) fn bond_select_active_slave(&mut self, bond: u32, opening: bool, now: Time) {
        let best = self.bond_best_slave(bond);
        self.bond_change_active_slave(bond, best, opening, now);
    }
    /// A command has said which is the active one.
    pub(super) fn bond_make_active(&mut self, bond: u32, slave: u32, now: Time) {
        self.bond_change_active_slave(bond, Some(slave), false, now);
    }
    fn bond_change_active_slave(&mut self, bond: u32, best: Option<u32>, opening: bool, now: Time) {
        let running = self.devices[bond].up;
        let Some(b) = self.devices[bond].bond.as_deref_mut().filter(|b| b.current != best) else { return };
        let old = std::mem::replace(&mut b.current, best);
        let (ab, stays, notif) = (b.mode == Mode::ActiveBackup, b.all_slaves_active, b.peer_notif);
        for slave in &mut b.slaves {
            if best == Some(slave.ifindex) {
                if slave.link == Link::Back {
                    (slave.link, slave.delay) = (Link::Up, 0);
                }
                slave.inactive = false;
            } else if old == Some(slave.ifindex) && ab {
                slave.inactive = !stays;
            }
        }
        if ab && best.is_some() && running {
            b.send_peer_notif = notif.into();
            if !opening && b.should_notify() {
                b.send_peer_notif -= 1;
                b.notify = true;
                self.timers.insert(now, Timer::Bond(bond));
            }
        }
        self.bond_carrier_follows(bond, now);
    }
    /// `bond_set_carrier`.
    pub(super) fn bond_carrier_follows(&mut self, bond: u32, now: Time) {
        let Some(b) = self.devices.get_mut(bond).and_then(|d| d.bond.as_deref_mut()) else { return };
        let carrier = b.slaves.iter().any(|s| s.link == Link::Up);
        if std::mem::replace(&mut b.carrier, carrier) != carrier {
            self.bridge_follows(bond, now);
            self.tell_ports();
        }
    }
}

impl Bond {
    /// `bond_should_notify_peers`.
    fn should_notify(&self) -> bool {
        self.send_peer_notif > 0 && self.current.is_some() && self.carrier
    }
}
