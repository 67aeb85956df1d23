//! What a filter's actions do to a packet.
//!
//! Follows: linux v6.12 `net/sched/act_api.c` `tcf_action_exec`, `include/net/act_api.h` `tcf_lastuse_update`,
//! `tcf_action_update_bstats`; linux v2.6.35 `net/sched/act_api.c` `tcf_action_exec`.
//! Differs: a packet that mirred sends elsewhere leaves when the call that met mirred is over
//! ([`Actions::take_sent`]), not within it.

use super::ct::Connections;
use super::table::ActRef;
use super::{Actions, JUMP, MAX_PRIO, OK, PIPE, SHOT, SKIP_SW};
use crate::cls::Hit;
use crate::estimator::Estimator;
use crate::qdisc::{Cx, Device};
use penstock_model::{Rng, Stats, Time};
use penstock_packet::Skb;
use std::collections::BTreeSet;

/// What an action has counted.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Bytes, packets, drops, overlimits.
    pub stats: Stats,
    /// Its rate estimator.
    pub estimator: Option<Estimator>,
}

/// What an action is lent for one packet.
pub struct Run<'a> {
    /// The present moment.
    pub now: Time,
    /// The device's dice.
    pub rng: &'a mut Rng,
    /// Its counters. Bytes and packets count this packet already.
    pub counts: &'a mut Counts,
    /// What the filter says so far.
    pub hit: &'a mut Hit,
    /// The estimated rate of what came before this packet, bytes per second; `None` where none is estimated.
    pub rate: Option<u64>,
    /// The machine's devices.
    pub ports: &'a Ports,
    /// Where copies go that are sent elsewhere; the number of this action goes with them.
    pub sent: &'a mut Vec<Sent>,
    /// The device that a program has named, and whether the packet is to be received there.
    pub redirect: &'a mut Option<(u32, bool)>,
    /// Its index.
    pub index: u32,
    /// The machine's connections, where it has lent them.
    pub connections: Option<&'a mut dyn Connections>,
}

/// A packet that mirred sends to another device.
#[derive(Clone, Debug)]
pub struct Sent {
    /// It.
    pub skb: Skb,
    /// Index of the device.
    pub ifindex: u32,
    /// It is to be received there, not sent.
    pub receive: bool,
    /// Index of the action, for [`Actions::sending_failed`].
    pub action: u32,
    /// The packet it was made of goes on too.
    pub copied: bool,
}

/// The devices of a machine, as far as actions ask for them.
#[derive(Clone, Debug, Default)]
pub struct Ports {
    all: Vec<Port>,
    /// Transmit queues of the device that the packet at hand is at.
    pub(crate) tx_queues: u32,
    /// Its MTU, bytes.
    pub(crate) mtu: u32,
}

/// One device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its index.
    pub ifindex: u32,
    /// Whether it is up and has a carrier.
    pub up: bool,
}

impl Ports {
    /// None, before a device of this MTU.
    #[cfg(test)]
    pub(crate) fn of_mtu(mtu: u32) -> Ports {
        Ports { mtu, ..Ports::default() }
    }
    /// The device called `name`.
    pub fn named(&self, name: &str) -> Option<&Port> {
        self.all.iter().find(|p| p.name == name)
    }
}

impl Actions {
    /// Tells of the machine's devices. Whoever has devices that actions may name does so whenever one of them changes.
    pub fn set_ports(&mut self, ports: impl Iterator<Item = Port>) {
        self.ports.all.clear();
        self.ports.all.extend(ports);
    }
    /// A packet is about to be sent by this device.
    #[inline]
    pub(crate) fn at_device(&mut self, device: &Device) {
        (self.ports.tx_queues, self.ports.mtu) = (device.tx_queues, device.mtu);
    }
    /// What of the actions that filters hold does not do to packets what the kernel does, although their kinds do: `mpls mac_push`.
    pub fn unsimulated(&self) -> BTreeSet<&'static str> {
        let all = self.tables.values().flat_map(|table| table.iter());
        all.filter(|action| action.bind() > 0).filter_map(|action| action.params.unsimulated()).collect()
    }
    /// Whether there is any action that could ask for them.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }
    /// What an eBPF program is lent for one packet.
    #[inline]
    pub(crate) fn lent<'a>(&'a mut self, now: Time, rng: &'a mut Rng) -> crate::ebpf::Lent<'a> {
        crate::ebpf::Lent { now, rng, sent: &mut self.sent, redirect: &mut self.redirect }
    }
    /// Whether there are actions that ask for the mark of a packet's connection.
    #[inline]
    pub fn ask_for_connections(&self) -> bool {
        self.look_at_connections || !self.tables.is_empty() && self.some_ask_for_connections()
    }
    fn some_ask_for_connections(&self) -> bool {
        ["connmark", "ctinfo", "ct"].into_iter().any(|kind| self.has(kind))
    }
    fn has(&self, kind: &str) -> bool {
        self.tables.get(kind).is_some_and(|table| !table.is_empty())
    }
    /// Whether there is a `ct`, which the machine's connections are to be lent to.
    #[inline]
    pub fn track_connections(&self) -> bool {
        !self.tables.is_empty() && self.has("ct")
    }
    /// A filter looks at what is known of a packet's connection.
    pub(crate) fn looks_at_connections(&mut self) {
        self.look_at_connections = true;
    }
    /// Lends the machine's connections, or takes them back.
    pub fn lend(&mut self, connections: Option<Box<dyn Connections>>) -> Option<Box<dyn Connections>> {
        std::mem::replace(&mut self.connections, connections)
    }
    /// Whether mirred has sent something elsewhere.
    #[inline]
    pub fn has_sent(&self) -> bool {
        !self.sent.is_empty()
    }
    /// What mirred has sent elsewhere, oldest first; `spare` takes its place, so that nothing is allocated.
    pub fn take_sent(&mut self, spare: &mut Vec<Sent>) {
        std::mem::swap(&mut self.sent, spare);
    }
    /// What a mirred sent did not get through: it counts it.
    pub fn sending_failed(&mut self, action: u32) {
        if let Some(action) = self.tables.get_mut(super::mirred::SPEC.id).and_then(|t| t.get_mut(action)) {
            let stats = &mut action.counts.stats;
            stats.overlimits = stats.overlimits.wrapping_add(1);
        }
    }

    /// `tcf_action_exec`: a control action, never one that says to go on within the list.
    pub(crate) fn exec(
        &mut self,
        list: &[ActRef],
        skb: &mut Skb,
        hit: &mut Hit,
        now: Time,
        rng: &mut Rng,
    ) -> i32 {
        if std::mem::take(&mut skb.tc.skip_classify) {
            return OK;
        }
        let mut jumps = MAX_PRIO;
        let mut at = 0;
        let mut said = OK;
        while let Some(held) = list.get(at) {
            at += 1;
            let Some(answer) = self.one(held, skb, hit, now, rng) else { continue };
            said = answer;
            if answer as u32 >> 28 == JUMP as u32 >> 28 {
                let over = (answer & (MAX_PRIO as i32 - 1)) as usize;
                jumps -= 1;
                if over == 0 || over > list.len() || jumps == 0 {
                    return OK;
                }
                at = over;
                // Behind the last one the answer stands, and means nothing.
                continue;
            }
            if answer != PIPE {
                break;
            }
        }
        said
    }

    /// What one action says; `None` for one that is left to hardware.
    fn one(&mut self, held: &ActRef, skb: &mut Skb, hit: &mut Hit, now: Time, rng: &mut Rng) -> Option<i32> {
        let action = self.tables.get_mut(held.kind()).and_then(|t| t.get_mut(held.index()));
        let action = action.expect("an action that is held is there");
        if action.flags & SKIP_SW != 0 {
            return None;
        }
        action.used = now;
        action.first_used.get_or_insert(now);
        let counts = &mut action.counts;
        let rate = counts.estimator.as_mut().map(|estimator| {
            estimator.advance(now, counts.stats.bytes, counts.stats.packets);
            estimator.rate().0
        });
        counts.stats.bytes += u64::from(skb.pkt_len);
        counts.stats.packets += skb.counts_as();
        let mut run = Run {
            now,
            rng,
            counts,
            hit,
            rate,
            ports: &self.ports,
            sent: &mut self.sent,
            redirect: &mut self.redirect,
            index: held.index(),
            connections: self.connections.as_deref_mut(),
        };
        Some(action.params.act(skb, action.control, &mut run))
    }
}

impl Run<'_> {
    /// Counts a drop if that is what is said.
    pub fn dropping(&mut self, said: i32) -> i32 {
        if said == SHOT {
            self.counts.stats.drops = self.counts.stats.drops.wrapping_add(1);
        }
        said
    }
    /// The MTU of the device that is to send the packet, bytes.
    pub fn mtu(&self) -> u32 {
        self.ports.mtu
    }
    /// Counts an overlimit.
    pub fn overlimit(&mut self) {
        self.counts.stats.overlimits = self.counts.stats.overlimits.wrapping_add(1);
    }
}

/// Runs the actions of one filter: what they say, and with which class; `None` where the next filter is asked.
pub(crate) fn exec(list: &[ActRef], hit: Hit, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<crate::cls::Answer> {
    let mut hit = hit;
    let said = cx.acts.exec(list, skb, &mut hit, cx.now, cx.rng);
    (said >= 0).then_some(crate::cls::Answer { said, hit })
}
