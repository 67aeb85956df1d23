//! What a device's queue is given and what becomes of it, packet by packet, so that another engine can be compared with this one.
//!
//! A tap hears the packets as they come to the device (behind netfilter, before the qdisc), those the card takes, those that are lost
//! there, and the commands the machine is given meanwhile. It changes nothing.

use crate::Host;
use penstock_model::{Handle, Time};
use penstock_packet::{Packet, Skb};
use std::collections::BTreeMap;

/// What happened at a tapped device.
#[derive(Clone, Debug)]
pub enum What {
    /// A packet came to the device; they are numbered from 0 in this order.
    Came(Box<Skb>),
    /// The card took this packet, from the queue of this class.
    Left {
        /// Its number.
        i: u32,
        /// The class; the root's handle where it has none.
        class: Handle,
        /// Its type of service then.
        tos: u8,
        /// Its firewall mark then.
        mark: u32,
    },
    /// This packet was lost.
    Lost {
        /// Its number.
        i: u32,
        /// Where.
        place: &'static str,
        /// Why.
        reason: &'static str,
        /// The class whose queue it had reached.
        class: Handle,
    },
    /// The machine was given this command line.
    Command(String),
}

/// What of the card's own was still to come at the moment at which something happened: two things at one nanosecond have an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Turn {
    /// Nothing.
    #[default]
    Over,
    /// Its wire becomes free: until then it is not asked.
    Wire,
    /// The queue's timer goes off.
    Timer,
}

/// What happened, and when.
#[derive(Clone, Debug)]
pub struct Heard {
    /// The moment.
    pub at: Time,
    /// What of the card's own was still to come at this very moment.
    pub turn: Turn,
    /// It is a packet behind which others came of the same call: the card is asked when the call is over, once for each.
    pub more: bool,
    /// What happened.
    pub what: What,
}

impl Heard {
    fn new(at: Time, what: What) -> Heard {
        Heard { at, turn: Turn::Over, more: false, what }
    }
}

/// A tap.
#[derive(Default)]
pub struct Tap {
    /// All that was heard, in its order.
    pub heard: Vec<Heard>,
    /// Packets inside: where they lie, and their numbers. A packet stays in its place in memory until it has left.
    inside: BTreeMap<usize, u32>,
    came: u32,
    /// How much had been heard when the card was asked last.
    asked: usize,
}

/// Where a packet lies: which of those that are alive it is, and nothing else follows from it.
fn place_of(skb: &Skb) -> usize {
    std::ptr::from_ref(skb).addr()
}

impl Tap {
    #[cold]
    pub(crate) fn comes(&mut self, at: Time, packet: &Packet) {
        self.inside.insert(place_of(packet), self.came);
        self.came += 1;
        self.heard.push(Heard::new(at, What::Came(Box::new((**packet).clone()))));
    }
    #[cold]
    pub(crate) fn leaves(&mut self, at: Time, packet: &Packet) {
        let i = self.inside.remove(&place_of(packet)).unwrap_or(u32::MAX);
        let what = What::Left { i, class: packet.tc.class, tos: packet.tos(), mark: packet.mark };
        self.heard.push(Heard::new(at, what));
    }
    /// A packet is lost, if it is one that lay here.
    pub fn loses(&mut self, at: Time, packet: &Packet, place: &'static str, reason: &'static str) {
        if let Some(i) = self.inside.remove(&place_of(packet)) {
            let what = What::Lost { i, place, reason, class: packet.tc.class };
            self.heard.push(Heard::new(at, what));
        }
    }
    /// The card is asked to send, at a moment at which this of its own is still to come.
    pub fn asked(&mut self, now: Time, turn: Turn) {
        let came = |heard: &&mut Heard| heard.at == now && matches!(heard.what, What::Came(_));
        let mut last = None;
        for heard in self.heard[self.asked..].iter_mut().filter(came) {
            heard.turn = turn;
            heard.more = true;
            last = Some(heard);
        }
        if let Some(last) = last {
            last.more = false;
        }
        self.asked = self.heard.len();
    }
    /// The machine is given a command.
    pub fn command(&mut self, at: Time, line: &str, turn: Turn) {
        let what = What::Command(line.to_owned());
        self.heard.push(Heard { turn, ..Heard::new(at, what) });
    }
}

impl Host {
    /// Puts a tap on a device.
    pub fn put_tap(&mut self, ifindex: u32) {
        if let Some(device) = self.devices.get_mut(ifindex) {
            device.tap = Some(Box::default());
        }
    }
    /// The tap of a device.
    #[inline]
    pub fn tap(&mut self, ifindex: u32) -> Option<&mut Tap> {
        self.devices.get_mut(ifindex)?.tap.as_deref_mut()
    }
    /// Takes all taps off: indices of their devices with what was heard.
    pub fn take_taps(&mut self) -> Vec<(u32, Vec<Heard>)> {
        let highest = self.devices.highest();
        let taken = |ifindex: u32| Some((ifindex, self.devices.get_mut(ifindex)?.tap.take()?.heard));
        (0..=highest).filter_map(taken).collect()
    }
}
