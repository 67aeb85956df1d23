//! The trivial link equalizer: the device `teql0`, which hands its packets to the devices with the qdisc `teql0` in turns.
//!
//! Follows: linux v6.12 `net/sched/sch_teql.c` `teql_master_xmit`, `__teql_resolve`, `teql_dequeue`, `teql_qdisc_init`, `teql_destroy`,
//! `teql_master_open`, `teql_master_mtu`, and `net/sched/sch_generic.c` `dev_requeue_skb` of what no slave can take.
//! Differs: one equalizer, of the first network namespace; a packet that is held back counts towards no limit of `teql0`'s own qdisc.
//!
//! A slave's card is stopped from the moment it has a frame until it asks for the next (`Host::dequeue`). What `teql0` sends goes past the slave's
//! qdisc to the card: here the card is told to ask, and finds it.

#[cfg(test)]
mod tests;

use crate::device::{BROADCAST, MULTICAST, NOARP, POINTOPOINT};
use crate::neigh::Nud;
use crate::{Effect, Host, HostCx, NetDevice};
use penstock_model::{KernelError, Time};
use penstock_packet::Packet;
use penstock_sched::Cx;
use std::collections::VecDeque;
use std::net::IpAddr;

/// ELOOP.
const ELOOP: i32 = 40;
/// EUNATCH.
const EUNATCH: i32 = 49;
/// The flags that all slaves have to have.
const SHARED: u32 = BROADCAST | POINTOPOINT | MULTICAST;
/// Those that follow from the slaves (`FMASK`).
const FOLLOW: u32 = BROADCAST | POINTOPOINT;

/// What the device `teql0` is besides a device.
#[derive(Debug, Default)]
pub struct Teql {
    /// Its slaves, in the order of their turns.
    slaves: Vec<Slave>,
    /// Whose turn it is (`master->slaves`).
    turn: usize,
    /// It waits for a slave to ask (`netif_stop_queue`).
    stopped: bool,
    /// The packet that no slave could take (`qdisc->gso_skb`).
    held: Option<Packet>,
    /// How often one was held back.
    requeues: u32,
}

#[derive(Debug)]
struct Slave {
    ifindex: u32,
    /// Its card has a frame and has not asked since.
    busy: bool,
    /// What its card is to have past its qdisc.
    given: VecDeque<Packet>,
    /// When the card last had one of these.
    had: Option<Time>,
}

/// What became of a packet of `teql0`.
enum Sent {
    /// It is on its way, or waits for an address, or is lost.
    Gone,
    /// It is for the card that asks.
    Here(Packet),
    /// Nobody can take it now.
    Back(Packet),
}

impl Teql {
    fn place(&self, ifindex: u32) -> Option<usize> {
        self.slaves.iter().position(|s| s.ifindex == ifindex)
    }
    fn next(&self, at: usize) -> usize {
        if at + 1 < self.slaves.len() { at + 1 } else { 0 }
    }
    /// What it holds back, packets and bytes, and how often it has.
    pub(crate) fn requeued(&self) -> (u32, u32, u32) {
        let held = self.held.as_ref();
        (held.is_some().into(), held.map_or(0, |p| p.pkt_len), self.requeues)
    }
    /// The packets in it.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.held.iter().chain(self.slaves.iter().flat_map(|s| &s.given))
    }
}

impl Host {
    fn equalizer(&self) -> Option<&Teql> {
        self.devices.get(self.teql?)?.teql.as_deref()
    }
    fn equalizer_mut(&mut self) -> Option<&mut Teql> {
        self.devices.get_mut(self.teql?)?.teql.as_deref_mut()
    }
    /// The module is loaded: there is a device `teql0`.
    pub(crate) fn load_teql(&mut self) {
        if self.teql.is_none() && self.space == 0 {
            self.teql = Some(self.new_device("teql0", "teql", None));
        }
    }
    /// The module goes, and `teql0` with it. Whether it could: nothing is its slave.
    pub(crate) fn unload_teql(&mut self, now: Time) -> bool {
        if self.equalizer().is_some_and(|t| !t.slaves.is_empty()) {
            return false;
        }
        if let Some(m) = self.teql {
            self.delete_link(m, now);
        }
        true
    }
    /// Whether a device may have the qdisc `teql0`; it joins the others with [`Host::teql_follow`].
    ///
    /// # Errors
    /// ELOOP for `teql0` itself, EINVAL where it is up and the device has a smaller MTU or cannot do what the others can.
    pub(crate) fn teql_takes(&mut self, ifindex: u32) -> Result<(), KernelError> {
        self.load_teql();
        let Some(master) = self.teql.and_then(|m| self.devices.get(m)) else { return Ok(()) };
        let device = &self.devices[ifindex];
        if master.ifindex == ifindex {
            return Err(KernelError::errno(ELOOP));
        }
        let lacks = master.flags & SHARED & !device.flags != 0 || device.mtu < master.mtu;
        let joins = self.equalizer().is_some_and(|t| !t.slaves.is_empty() && t.place(ifindex).is_none());
        if joins && master.up && lacks {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        Ok(())
    }
    /// Qdiscs have come or gone: the slaves are the devices whose qdisc is `teql0`.
    pub(crate) fn teql_follow(&mut self, now: Time) {
        let Some(m) = self.teql else { return };
        let is = |d: &NetDevice| d.tree.root().kind() == "teql0";
        let all: Vec<(u32, u32, u32)> = self
            .devices
            .iter()
            .filter(|d| is(d) && d.ifindex != m)
            .map(|d| (d.ifindex, d.mtu, d.flags))
            .collect();
        let Some(master) = self.devices.get_mut(m) else { return };
        let Some(teql) = master.teql.as_deref_mut() else { return };
        let mut lost = Vec::new();
        let had = teql.slaves.len();
        let mut at = 0;
        while at < teql.slaves.len() {
            if all.iter().any(|(i, ..)| *i == teql.slaves[at].ifindex) {
                at += 1;
                continue;
            }
            let gone = teql.slaves.remove(at);
            lost.extend(gone.given.into_iter().map(|p| (p, gone.ifindex)));
            if teql.turn > at {
                teql.turn -= 1;
            } else if teql.turn >= teql.slaves.len() {
                teql.turn = 0;
            }
        }
        for (ifindex, mtu, flags) in all {
            if teql.place(ifindex).is_some() {
                continue;
            }
            let new = Slave { ifindex, busy: false, given: VecDeque::new(), had: None };
            if teql.slaves.is_empty() {
                teql.turn = 0;
                teql.slaves.push(new);
                master.mtu = mtu;
                master.flags = master.flags & !FOLLOW | flags & FOLLOW;
                continue;
            }
            teql.slaves.insert(teql.turn + 1, new);
            if !master.up {
                master.flags &= !SHARED | flags;
                master.mtu = master.mtu.min(mtu);
            }
        }
        let emptied = had > 0 && teql.slaves.is_empty();
        if emptied {
            teql.stopped = false;
            lost.extend(teql.held.take().map(|p| (p, m)));
        }
        let gone = |(packet, ifindex)| Effect::Dropped { packet, ifindex, place: "qdisc", reason: "purged" };
        self.pending.extend(lost.into_iter().map(gone));
        if emptied {
            //= linux v6.12 net/sched/sch_teql.c teql_destroy: dev_reset_queue
            let Host { devices, drops, acts, .. } = self;
            let master = &mut devices[m];
            let up = master.up;
            for up in [false, up] {
                master.tree.set_up(up, &mut Cx { now, rng: &mut master.rng, drops, acts });
            }
            self.keep_drops(m);
        }
        let Host { devices, drops, acts, kernel, .. } = self;
        devices[m].refresh_tree(*kernel, now, drops, acts);
        self.keep_drops(m);
    }
    /// `teql_master_open`.
    ///
    /// # Errors
    /// EUNATCH without a slave.
    pub(crate) fn teql_opens(&mut self) -> Result<(), KernelError> {
        let slaves: Vec<u32> =
            self.equalizer().into_iter().flat_map(|t| &t.slaves).map(|s| s.ifindex).collect();
        if slaves.is_empty() {
            return Err(KernelError::errno(EUNATCH));
        }
        let (mut mtu, mut flags) = (0xfffe, FOLLOW);
        for slave in slaves.iter().filter_map(|&i| self.devices.get(i)) {
            mtu = mtu.min(slave.mtu);
            flags &= slave.flags;
        }
        if let Some(master) = self.teql.and_then(|m| self.devices.get_mut(m)) {
            master.mtu = mtu;
            master.flags = master.flags & !FOLLOW | flags;
            if let Some(teql) = &mut master.teql {
                teql.stopped = false;
            }
        }
        Ok(())
    }
    /// The largest MTU that `teql0` may have: its slaves' smallest (`teql_master_mtu`).
    pub(crate) fn teql_largest_mtu(&self) -> Option<u32> {
        let slaves = self.equalizer()?.slaves.iter();
        slaves.filter_map(|s| self.devices.get(s.ifindex)).map(|d| d.mtu).min()
    }
    /// Packets that are neither in a qdisc nor on a wire.
    pub(crate) fn teql_packets(&self) -> impl Iterator<Item = &Packet> {
        self.equalizer().into_iter().flat_map(Teql::packets)
    }

    /// A packet comes to `teql0` from above.
    #[cold]
    pub(crate) fn queue_on_teql(&mut self, ifindex: u32, packet: Packet, cx: &mut HostCx<'_>) {
        if let Some(answer) = self.queue_within(ifindex, packet, crate::path::MAX_DEPTH, Host::teql_run, cx) {
            self.answer = answer;
        }
    }
    /// The qdisc of `teql0` is run, unless it waits for a slave.
    pub(crate) fn teql_run(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        let waits = self.equalizer().is_none_or(|t| t.stopped);
        if !waits {
            // Nobody asks, so that nothing is for whoever does.
            let none = self.teql_hand_out(ifindex, None, cx);
            debug_assert!(none.is_none());
        }
        self.timers.retain(|timer| timer != crate::Timer::Cardless(ifindex));
        if let Some(at) = self.next_wakeup(ifindex).filter(|_| !waits) {
            self.timers.insert(at.max(cx.now), crate::Timer::Cardless(ifindex));
        }
    }
    /// What a slave's card gets when it asks: `packet` of its own qdisc, else what `teql0` has for it.
    #[cold]
    pub(crate) fn teql_dequeued(
        &mut self,
        ifindex: u32,
        packet: Option<Packet>,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        let Some(m) = self.teql else { return packet };
        let waiting = self.devices.get(m).map_or(0, |d| d.tree.qlen());
        let Some(teql) = self.equalizer_mut() else { return packet };
        let Some(at) = teql.place(ifindex) else { return packet };
        let waiting = waiting + u32::from(teql.held.is_some());
        let slave = &mut teql.slaves[at];
        let was_busy = std::mem::replace(&mut slave.busy, packet.is_some());
        if packet.is_some() {
            return packet;
        }
        if let Some(given) = slave.given.pop_front() {
            (slave.busy, slave.had) = (true, Some(cx.now));
            return Some(given);
        }
        if !was_busy {
            // It has sent nothing since it last asked: nothing runs its qdisc.
            return None;
        }
        if slave.had != Some(cx.now) {
            // teql_dequeue finds nothing.
            teql.turn = at;
        } else if teql.stopped {
            // One that asks at once for more than it was given has room: it was not busy when the next packet was offered, and nobody has asked its qdisc.
            teql.requeues = teql.requeues.wrapping_sub(1);
        }
        teql.stopped = false;
        self.devices[ifindex].tree.equalizer_holds(waiting);
        self.teql_hand_out(m, Some(ifindex), cx)
    }
    /// Hands out what `teql0` may send, until its slaves are busy. Answers a packet for the card that asks.
    fn teql_hand_out(&mut self, m: u32, asks: Option<u32>, cx: &mut HostCx<'_>) -> Option<Packet> {
        let mut here = None;
        while let Some(packet) = self.teql_next(m, cx) {
            match self.teql_master_xmit(m, packet, asks, cx) {
                Sent::Gone => {}
                Sent::Here(packet) => here = Some(packet),
                Sent::Back(packet) => {
                    if let Some(teql) = self.equalizer_mut() {
                        (teql.held, teql.stopped) = (Some(packet), true);
                        teql.requeues = teql.requeues.wrapping_add(1);
                    }
                    break;
                }
            }
        }
        here
    }
    /// What `teql0` is to send next: what it holds back, or what its qdisc lets go.
    fn teql_next(&mut self, m: u32, cx: &mut HostCx<'_>) -> Option<Packet> {
        if let Some(held) = self.equalizer_mut()?.held.take() {
            return Some(held);
        }
        let packet = self.dequeue(m, cx)?;
        let device = self.devices.get_mut(m)?;
        // Counted when a slave has it.
        device.counters.tx_packets -= 1;
        device.counters.tx_bytes -= u64::from(packet.len);
        Some(packet)
    }
    fn teql_master_xmit(
        &mut self,
        m: u32,
        mut packet: Packet,
        asks: Option<u32>,
        cx: &mut HostCx<'_>,
    ) -> Sent {
        let mut busy = false;
        let count = self.equalizer().map_or(0, |t| t.slaves.len());
        // Asked without the packet first: another slave may know its neighbour.
        for queues in [false, true] {
            let mut unresolved = false;
            let mut at = self.equalizer().map_or(0, |t| t.turn);
            busy = false;
            for _ in 0..count {
                let Some(teql) = self.equalizer() else { break };
                let (slave, after) = (&teql.slaves[at], teql.next(at));
                let ifindex = slave.ifindex;
                at = after;
                if slave.busy || !self.devices[ifindex].up {
                    busy = true;
                    continue;
                }
                match self.teql_resolve(ifindex, packet, queues, cx) {
                    Ok(resolved) => {
                        let device = &mut self.devices[m];
                        device.counters.tx_packets += 1;
                        device.counters.tx_bytes += u64::from(resolved.pkt_len);
                        return self.teql_give(ifindex, after, resolved, asks, cx);
                    }
                    Err(Some(back)) => (packet, unresolved) = (back, true),
                    Err(None) => {
                        self.teql_turn(after);
                        return Sent::Gone;
                    }
                }
            }
            if !unresolved {
                break;
            }
        }
        if busy {
            return Sent::Back(packet);
        }
        let device = &mut self.devices[m];
        device.errors.tx += u64::from(count > 0);
        device.counters.tx_dropped += 1;
        cx.out.push(Effect::Dropped { packet, ifindex: m, place: "teql", reason: "no-slave" });
        Sent::Gone
    }
    fn teql_turn(&mut self, turn: usize) {
        if let Some(teql) = self.equalizer_mut() {
            teql.turn = turn;
        }
    }
    /// A slave's card gets a packet past its qdisc.
    fn teql_give(
        &mut self,
        ifindex: u32,
        after: usize,
        packet: Packet,
        asks: Option<u32>,
        cx: &mut HostCx<'_>,
    ) -> Sent {
        let m = self.teql.unwrap_or(0);
        self.teql_turn(after);
        let Some(teql) = self.equalizer_mut() else { return Sent::Back(packet) };
        let Some(slave) = teql.slaves.iter_mut().find(|s| s.ifindex == ifindex) else {
            return Sent::Back(packet);
        };
        slave.busy = true;
        if asks == Some(ifindex) {
            slave.had = Some(cx.now);
            return Sent::Here(packet);
        }
        slave.given.push_back(packet);
        if self.devices[ifindex].is_cardless() {
            self.run_cardless(ifindex, cx);
        } else {
            // Another packet of the same call comes to teql0 when this one is where it goes.
            cx.out.extend([Effect::Kick(ifindex), Effect::Kick(m)]);
        }
        Sent::Gone
    }
    /// `teql_resolve`: the packet with the headers of a slave. `Err`: the neighbour is still to be asked for its address; with `queues` the packet waits
    /// for that (`Err(None)`).
    fn teql_resolve(
        &mut self,
        ifindex: u32,
        mut packet: Packet,
        queues: bool,
        cx: &mut HostCx<'_>,
    ) -> Result<Packet, Option<Packet>> {
        let slave = &self.devices[ifindex];
        let mac = slave.mac;
        if !slave.has_header_of_ethernet() {
            return Ok(packet);
        }
        let Some((_, next)) = packet.rare().next_hop else {
            // To everybody.
            packet.eth.0 = mac;
            return Ok(packet);
        };
        let at = self.neigh.find_or_create(ifindex, next, cx.now);
        if let Some(to) = self.neigh.reaches(at, self.kernel, cx.now) {
            packet.eth = (mac, to);
            return Ok(packet);
        }
        if self.neigh.at(at).state == Nud::None && self.devices[ifindex].flags & NOARP != 0 {
            // As in neigh_resolve_output.
            let n = self.neigh.at_mut(at);
            (n.state, n.mac) = (Nud::Noarp, mac);
        }
        let (waits, keeps) = if queues { (Some(packet), None) } else { (None, Some(packet)) };
        let (usable, back) = self.neigh_event_send(ifindex, at, waits, cx);
        match (keeps.or(back), usable) {
            (Some(mut packet), true) => {
                packet.eth = (mac, self.neigh.at(at).mac);
                Ok(packet)
            }
            (packet, _) => Err(packet),
        }
    }
    /// The next hop of a packet that leaves by a device which hands it to others.
    pub(crate) fn note_next_hop(&self, packet: &mut Packet, oif: u32, next: IpAddr) {
        if Some(oif) == self.teql {
            packet.rare_mut().next_hop = Some((oif, next));
        }
    }
}
