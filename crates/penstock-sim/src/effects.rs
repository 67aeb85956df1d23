//! What calls to a host ask for.
//!
//! Everything that happens to one host at one instant is done before the next event: [`Net::settle`] carries out what
//! the host's calls asked for (a card has something to send, a packet is for a socket) until nothing is left. No other file takes from
//! that list.
//!
//! What is done at once and what waits:
//! - What a call to a host asks for waits for the end of the event ([`Net::settle`]), but what a connection's own segment asks of its card: that
//!   is done before the next segment is made ([`Net::settle_own`]).
//! - Programs are woken when the event is over ([`Wakes`](crate::wake::Wakes)).
//! - What a cable without a rate carries is received when the interrupt is over ([`Net::in_softirq`]).
//! - Memory that a frame frees is its socket's at once, for the socket may have more to send at this instant. Who is at work then is not
//!   disturbed: a card that is taking a frame (`Nic::sending`), a segment that serves a card (`Segment::serving`) and a connection that is
//!   sending (`TcpSock::pumping`) each go on themselves and find what has come meanwhile, as the kernel's `__QDISC_STATE_RUNNING` and a socket's
//!   lock have it. A queue in place of that would send segments of two sockets in another order.

use crate::event::Event;
use crate::index::LOOPBACK;
use crate::net::Net;
use crate::sock::Owed;
use crate::still::frame;
use penstock_host::Effect;
use penstock_model::Span;
use penstock_packet::Packet;

impl Net {
    /// Does what the calls to this host asked for, until nothing is left to do at this instant.
    #[inline(always)] // After each event; the rest is rare.
    pub(crate) fn settle(&mut self, host: u32) {
        // What forwarding comes to.
        if let [Effect::Kick(ifindex)] = self.todo.asked[..]
            && !self.guard.is_near()
        {
            self.forget_kick();
            self.kick_device(host, ifindex);
        }
        if !self.todo.asked.is_empty() || self.guard.is_near() {
            self.settle_rest(host);
        }
        self.arm_host_timer(host);
    }
    /// Takes the last effect off the list, which is a kick: it has nothing to drop.
    #[inline]
    fn forget_kick(&mut self) {
        std::mem::forget(self.todo.asked.pop());
    }
    #[inline(never)]
    fn settle_rest(&mut self, host: u32) {
        loop {
            if self.guard.is_near() && self.stand_still(host) {
                break;
            }
            match self.todo.asked[..] {
                [] => break,
                // What a receiver comes to. Not by `effect`: that reads the whole of what was just written in parts.
                [Effect::Deliver(_)] => {
                    if let Some(Effect::Deliver(packet)) = self.todo.asked.pop() {
                        self.delivered(host, packet);
                    }
                }
                [_] => {
                    let effect = self.todo.asked.pop().expect("there is one");
                    self.effect(host, effect);
                }
                _ => {
                    let mut work = std::mem::take(&mut self.todo.spare);
                    std::mem::swap(&mut work, &mut self.todo.asked);
                    work.drain(..).for_each(|effect| self.effect(host, effect));
                    self.todo.spare = work;
                }
            }
        }
    }

    /// Of what is to be done after a packet of this socket was sent, does at once what its own call does. The discipline is run after each
    /// packet (`__qdisc_run`), not after the last; then what was dropped on the way frees its memory (`kfree_skb_list` in
    /// `__dev_xmit_skb`), and only then the call returns.
    #[inline]
    pub(crate) fn settle_own(&mut self, host: u32, sock: u32) {
        match self.todo.asked[..] {
            [] => {}
            [Effect::Kick(ifindex)] => {
                self.forget_kick();
                self.kick_device(host, ifindex);
            }
            _ => self.settle_own_of(host, sock),
        }
    }
    #[cold]
    fn settle_own_of(&mut self, host: u32, sock: u32) {
        let own = self.sockets[sock].own;
        let mut asked = std::mem::take(&mut self.todo.asked);
        let mut others = std::mem::take(&mut self.todo.spare);
        for effect in asked.drain(..) {
            match effect {
                Effect::Kick(ifindex) => self.kick_device(host, ifindex),
                Effect::Next(ifindex, packet) => self.next(host, ifindex, packet),
                Effect::Across { space, ifindex, how, packet } => {
                    self.across(host, space, ifindex, how, packet)
                }
                Effect::Dropped { packet, ifindex, place, reason }
                    if packet.iif == 0 && packet.sender.socket == own =>
                {
                    self.lost_on(host, ifindex, packet, place, reason);
                }
                Effect::Orphaned(orphan) => self.orphaned(host, orphan),
                other => others.push(other),
            }
        }
        // What these have asked for comes behind.
        others.append(&mut self.todo.asked);
        (self.todo.asked, self.todo.spare) = (others, asked);
    }
    /// Does something as an interrupt does: what cards without a rate take is received, and so frees its memory, when the interrupt is done;
    /// then it is done again, for what that lets be sent.
    #[inline]
    pub(crate) fn in_softirq(&mut self, mut work: impl FnMut(&mut Net)) {
        let outermost = !std::mem::replace(&mut self.todo.in_softirq, true);
        loop {
            work(self);
            if !outermost || self.todo.unreceived.is_empty() {
                break;
            }
            let mut cards = std::mem::take(&mut self.todo.unreceived);
            cards.drain(..).for_each(|n| self.received(n));
            if self.todo.unreceived.is_empty() {
                self.todo.unreceived = cards;
            }
        }
        if outermost {
            self.todo.in_softirq = false;
        }
    }
    /// A cable without a rate has carried frames: they are received when the interrupt at hand is done (`netif_rx`,
    /// `process_backlog`); a system call is interrupted.
    #[inline]
    pub(crate) fn receive_soon(&mut self, n: u32) {
        if self.todo.in_softirq {
            self.todo.unreceived.push(n);
        } else {
            self.received(n);
        }
    }

    #[inline]
    fn effect(&mut self, host: u32, effect: Effect) {
        match effect {
            Effect::Kick(ifindex) => self.kick_device(host, ifindex),
            Effect::Deliver(packet) => self.delivered(host, packet),
            Effect::Next(ifindex, packet) => self.next(host, ifindex, packet),
            Effect::Moved(packet) => self.moved(host, packet),
            Effect::Orphaned(orphan) => self.orphaned(host, orphan),
            Effect::Across { space, ifindex, how, packet } => self.across(host, space, ifindex, how, packet),
            Effect::Dropped { packet, ifindex, place, reason } => {
                self.lost_on(host, ifindex, packet, place, reason);
            }
        }
    }

    /// The next packet of a call comes to its device; all that follows from it is done before the one behind it comes.
    //= linux v6.12 net/core/dev.c __dev_xmit_skb
    #[cold]
    fn next(&mut self, host: u32, ifindex: u32, packet: Packet) {
        let before = self.todo.asked.len();
        self.on_host(host, |h, cx| h.comes_to(ifindex, packet, cx));
        while self.todo.asked.len() > before {
            let effect = self.todo.asked.remove(before);
            self.effect(host, effect);
        }
    }
    #[inline]
    fn delivered(&mut self, host: u32, packet: Packet) {
        match packet.iif {
            LOOPBACK => self.deliver_looped(host, packet),
            _ => self.deliver(host, packet),
        }
    }
    /// A packet that this host has sent to itself. Where it sends more than its processor can do the packet waits, behind others.
    //= linux v6.12 drivers/net/loopback.c loopback_xmit, net/core/dev.c enqueue_to_backlog
    fn deliver_looped(&mut self, host: u32, packet: Packet) {
        // loopback_xmit orphans it.
        self.free_memory(host, Owed::of(&packet));
        let now = self.queue.now();
        let machine = &mut self.machines[host as usize];
        let most = machine.host.max_backlog();
        let lo = &mut machine.lo;
        if lo.waiting.len() > most {
            return self.lost_on(host, LOOPBACK, packet, "cpu", "backlog");
        }
        let wait = lo.toll.charge(now, frame(packet.len));
        if wait == Span::ZERO && lo.waiting.is_empty() {
            return self.deliver(host, packet);
        }
        lo.waiting.push_back(packet);
        self.queue.schedule(now + wait, Event::Loop(host));
    }
    /// The first of those has had its time.
    pub(crate) fn looped(&mut self, host: u32) {
        if let Some(packet) = self.machines[host as usize].lo.waiting.pop_front() {
            self.deliver(host, packet);
            self.settle(host);
        }
    }

    /// Tells what this host is about to do; `true` where that goes on for ever: then it is not done.
    #[cold]
    fn stand_still(&mut self, host: u32) -> bool {
        let name = &self.machines[host as usize].name;
        let what = |effect: &Effect| match effect {
            Effect::Kick(ifindex) => format!("{name} {}: sends", self.device_name(host, *ifindex)),
            Effect::Next(_, packet) => format!("{name}: sends {} behind another", packet_text(packet)),
            Effect::Deliver(packet) => format!("{name}: receives {}", packet_text(packet)),
            Effect::Moved(packet) => format!("{name}: sends {} elsewhere", packet_text(packet)),
            Effect::Across { packet, .. } => format!("{name}: hands {} on", packet_text(packet)),
            Effect::Orphaned(orphan) => {
                let (len, flow, freed) = (orphan.len, orphan.flow, orphan.freed);
                format!("{name}: {len} bytes of flow {flow} wait in a qdisc ({freed:?})")
            }
            Effect::Dropped { packet, ifindex, place, reason } => {
                let device = self.device_name(host, *ifindex);
                format!("{name} {device}: {} is dropped ({place}, {reason})", packet_text(packet))
            }
        };
        let told: Vec<String> = self.todo.asked.iter().map(what).collect();
        told.into_iter().for_each(|text| self.guard.tell(text));
        let over = self.guard.is_over();
        if over {
            self.todo.asked.clear();
            self.guard.stop();
        }
        over
    }

    #[inline]
    fn arm_host_timer(&mut self, host: u32) {
        let machine = &mut self.machines[host as usize];
        machine.timer.arm(machine.host.next_timer(), Event::HostTimer(host), &mut self.queue);
    }
}

/// A packet in a few words: protocol and ports, length.
fn packet_text(packet: &Packet) -> String {
    use penstock_packet::L4;
    match &packet.l4 {
        L4::Tcp(tcp) => format!("tcp {} > {} seq {} ({} bytes)", tcp.sport, tcp.dport, tcp.seq, packet.len),
        L4::Udp(udp) => format!("udp {} > {} ({} bytes)", udp.sport, udp.dport, packet.len),
        L4::Icmp(icmp) => format!("icmp type {} ({} bytes)", icmp.ty, packet.len),
        L4::None => format!("a frame ({} bytes)", packet.len),
    }
}
