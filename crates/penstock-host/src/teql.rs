//! The trivial link equalizer: the device `teql0`, which hands its packets to the devices with the qdisc `teql0` in turns.
//!
//! Follows: linux v6.12 `net/sched/sch_teql.c` `teql_master_xmit`, `__teql_resolve`, `teql_dequeue`, `teql_qdisc_init`, `teql_destroy`,
//! `teql_master_open`, `teql_master_mtu`, and `net/sched/sch_generic.c` `dev_requeue_skb` of what no slave can take.
//! Differs: one equalizer, of the first network namespace; a packet that is held back counts towards no limit of `teql0`'s own qdisc.
//!
//! A slave's card is stopped from the moment it has a frame until it asks for the next (`Host::dequeue`). What `teql0` sends goes past the slave's
//! qdisc to the card: here the card is told to ask, and finds it.

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

#[cfg(test)]
mod tests {
    use crate::tests::{ip, udp};
    use crate::{Effect, Host, HostCx, Pool};
    use penstock_model::{Kernel, Time};
    use penstock_packet::L3;
    use std::collections::BTreeSet;

    /// A machine with two slaves whose cards take one frame each until they are told that it has left.
    struct Rig {
        host: Host,
        pool: Pool,
        now: Time,
        busy: BTreeSet<u32>,
        /// Frames by slave: the last number of the destination, and of the hardware address it goes to.
        sent: Vec<(u32, u8, u8)>,
        dropped: Vec<&'static str>,
    }

    impl Rig {
        fn new(lines: &[&str]) -> Rig {
            let mut host = Host::new("a", Kernel::V6_12, 1);
            for n in 0..3 {
                host.add_device(&format!("eth{n}"));
            }
            let (pool, now) = (Pool::new(), Time::from_ns(1_000_000));
            let (busy, sent, dropped) = (BTreeSet::new(), Vec::new(), Vec::new());
            let mut rig = Rig { host, pool, now, busy, sent, dropped };
            for line in ["tc qdisc add dev eth1 root teql0", "tc qdisc add dev eth2 root teql0"] {
                rig.run(line);
            }
            lines.iter().for_each(|line| {
                rig.run(line);
            });
            rig
        }
        /// With an address of teql0, and neighbours that are known.
        fn ready() -> Rig {
            Rig::new(&[
                "ip link set teql0 up",
                "ip addr add 10.0.0.1/24 dev teql0",
                "ip neigh add 10.0.0.9 lladdr 02:00:00:00:00:01 nud permanent dev eth1",
                "ip neigh add 10.0.0.9 lladdr 02:00:00:00:00:02 nud permanent dev eth2",
            ])
        }
        fn said(&mut self, line: &str) -> (i32, String) {
            let out = self.host.exec(line, self.now);
            self.carry(|_, _| ());
            (out.status, out.stderr + &out.stdout)
        }
        fn run(&mut self, line: &str) -> String {
            let (status, said) = self.said(line);
            assert_eq!(status, 0, "{line}: {said}");
            said
        }
        fn carry(&mut self, f: impl FnOnce(&mut Host, &mut HostCx<'_>)) {
            let mut out = Vec::new();
            self.host.take_effects(&mut out);
            f(&mut self.host, &mut HostCx { now: self.now, pool: &mut self.pool, out: &mut out });
            let mut next: std::collections::VecDeque<Effect> = out.into();
            while let Some(effect) = next.pop_front() {
                let mut out = Vec::new();
                let mut cx = HostCx { now: self.now, pool: &mut self.pool, out: &mut out };
                match effect {
                    Effect::Kick(i) => {
                        let card = self.host.devices.get(i).is_some_and(|d| !d.is_cardless());
                        while card && !self.busy.contains(&i) {
                            let Some(frame) = self.host.dequeue(i, &mut cx) else { break };
                            // A request of ARP takes no time.
                            if let L3::Ipv4(h) = frame.l3 {
                                self.busy.insert(i);
                                self.sent.push((i, h.dst.octets()[3], frame.eth.1[5]));
                            } else {
                                self.sent.push((i, 0, frame.eth.1[5]));
                            }
                            cx.pool.free(frame);
                        }
                    }
                    Effect::Next(i, packet) => self.host.comes_to(i, packet, &mut cx),
                    Effect::Dropped { packet, reason, .. } => {
                        self.pool.free(packet);
                        self.dropped.push(reason);
                    }
                    _ => {}
                }
                next.extend(out);
            }
        }
        /// A datagram to 10.0.0.`to`.
        fn send(&mut self, to: u8) {
            let mut skb = udp("10.0.0.1", &format!("10.0.0.{to}"), 200);
            crate::tests::set4(&mut skb, |h| h.src = ip("10.0.0.1"));
            let packet = self.pool.alloc(skb);
            self.carry(|host, cx| {
                let _ = host.send(packet, cx);
            });
        }
        /// The frame of a card has left: it asks for the next.
        fn free(&mut self, i: u32) {
            self.now = Time::from_ns(self.now.as_ns() + 1000);
            self.busy.remove(&i);
            self.carry(|_, cx| cx.out.push(Effect::Kick(i)));
        }
        fn slaves(&self) -> Vec<u32> {
            self.sent.iter().map(|s| s.0).collect()
        }
    }

    #[test]
    fn slaves_take_turns_and_one_that_is_busy_is_passed_over() {
        let mut rig = Rig::ready();
        let (one, two) = (rig.host.ifindex("eth1").unwrap(), rig.host.ifindex("eth2").unwrap());
        for _ in 0..5 {
            rig.send(9);
        }
        // One each; the third is held back, the others wait.
        assert_eq!(rig.sent, [(one, 9, 1), (two, 9, 2)]);
        let shown = rig.run("tc -s qdisc show dev teql0");
        assert!(shown.contains("backlog 600b 3p requeues 1"), "{shown}");
        rig.free(two);
        rig.free(two);
        rig.free(one);
        assert_eq!(rig.slaves(), [one, two, two, two, one]);
        // It was held back whenever all were busy.
        let shown = rig.run("tc -s qdisc show dev teql0");
        assert!(
            shown.contains("Sent 1000 bytes 5 pkt") && shown.contains("backlog 0b 0p requeues 3"),
            "{shown}"
        );
        let shown = rig.run("ip -s link show teql0");
        assert!(shown.contains("<BROADCAST,NOARP,UP,LOWER_UP> mtu 1500"), "{shown}");
        assert!(shown.contains("        1000       5      0       0"), "{shown}");
        rig.free(one);
        rig.free(two);
        rig.send(9);
        assert_eq!(rig.slaves().len(), 6);
        assert_eq!(rig.host.held_packets(), 0);
    }

    #[test]
    fn a_neighbour_that_is_not_known_is_asked_for_on_each_slave_and_another_slave_used() {
        let mut rig = Rig::ready();
        let (one, two) = (rig.host.ifindex("eth1").unwrap(), rig.host.ifindex("eth2").unwrap());
        rig.run("ip neigh add 10.0.0.7 lladdr 02:00:00:00:00:07 nud permanent dev eth2");
        rig.send(7);
        // eth1 asks; eth2 knows.
        assert_eq!(rig.sent, [(one, 0, 255), (two, 7, 7)]);
        rig.sent.clear();
        rig.free(two);
        rig.send(5);
        // Nobody knows: both ask, eth2 first, which asked last; the packet waits there.
        assert_eq!(rig.sent, [(two, 0, 255), (one, 0, 255)]);
        assert_eq!(rig.host.held_packets(), 1);
        rig.sent.clear();
        rig.run("ip neigh replace 10.0.0.5 lladdr 02:00:00:00:00:05 nud permanent dev eth2");
        // It comes to teql0 once more.
        assert_eq!(rig.sent, [(two, 5, 5)]);
    }

    #[test]
    fn the_device_follows_its_slaves() {
        let mut rig = Rig::new(&[]);
        assert_eq!(rig.said("tc qdisc add dev teql0 root teql0").0, 2);
        rig.run("tc qdisc del dev eth1 root");
        rig.run("tc qdisc del dev eth2 root");
        // As Linux 6.12.117 shows it.
        let shown = rig.run("ip -d link show teql0");
        let (first, rest) = shown.split_once('\n').unwrap();
        assert_eq!(
            first.split_once(": ").unwrap().1,
            "teql0: <BROADCAST,NOARP> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 100"
        );
        let start = "    link/void  promiscuity 0  allmulti 0 minmtu 68 maxmtu 65535 addrgenmode eui64 numtxqueues 1 ";
        assert!(
            rest.starts_with(start) && rest.contains(" gso_max_segs 65535 tso_max_size 65536 "),
            "{rest}"
        );
        let (status, said) = rig.said("ip link set teql0 up");
        assert_eq!((status, said.trim()), (2, "RTNETLINK answers: Protocol driver not attached"));
        rig.run("ip link set eth1 mtu 1400");
        rig.run("tc qdisc add dev eth1 root teql0");
        rig.run("tc qdisc add dev eth2 root teql0");
        rig.run("ip link set teql0 up");
        let shown = rig.run("ip link show teql0");
        assert!(
            shown.contains("<BROADCAST,NOARP,UP,LOWER_UP> mtu 1400 qdisc pfifo_fast state UNKNOWN "),
            "{shown}"
        );
        assert_eq!(rig.said("ip link set teql0 mtu 1500").0, 2);
        rig.run("ip link set eth0 mtu 1300");
        let (status, said) = rig.said("tc qdisc add dev eth0 root teql0");
        assert_eq!((status, said.trim()), (2, "RTNETLINK answers: Invalid argument"));
        assert_eq!(rig.said("modprobe -r sch_teql").0, 1);
        rig.run("tc qdisc del dev eth1 root");
        rig.run("tc qdisc del dev eth2 root");
        rig.run("modprobe -r sch_teql");
        assert_eq!(rig.said("ip link show teql0").0, 1);
    }

    #[test]
    fn what_waits_is_lost_with_the_last_slave() {
        let mut rig = Rig::ready();
        for _ in 0..5 {
            rig.send(9);
        }
        rig.run("tc qdisc del dev eth1 root");
        assert_eq!((rig.host.held_packets(), rig.dropped.len()), (3, 0));
        rig.run("tc qdisc del dev eth2 root");
        assert_eq!((rig.host.held_packets(), rig.dropped.len()), (0, 3));
        rig.send(9);
        assert_eq!(rig.dropped.last(), Some(&"no-slave"));
        let shown = rig.run("ip -s link show teql0");
        assert!(shown.contains("         400       2      0       1"), "{shown}");
    }
}
