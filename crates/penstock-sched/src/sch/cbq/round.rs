//! The general scheduler: priorities, and rounds by weight within one.
//!
//! Follows: linux v6.2 and v2.6.35 net/sched/sch_cbq.c `cbq_activate_class`, `cbq_deactivate_class`,
//! `cbq_dequeue_prio`, `cbq_dequeue_1`, `cbq_normalize_quanta`; Floyd and Jacobson 1995 section IV.

use super::{Cbq, MAXPRIO, NIL};
use crate::naps;
use crate::qdisc::Cx;
use penstock_packet::Packet;

/// What a visit of a class in its round came to.
enum Visit {
    Sent(Packet),
    /// It may not send, or has nothing.
    Skip,
    /// Its turn is over.
    Next,
}

impl Cbq {
    /// `cbq_activate_class`: the last of its priority.
    pub(super) fn activate(&mut self, class: u32) {
        let prio = self.classes[class].own.cpriority;
        let tail = std::mem::replace(&mut self.active[prio], class);
        if tail == NIL {
            self.classes[class].own.next_alive = class;
            self.activemask |= 1 << prio;
        } else {
            let next = std::mem::replace(&mut self.classes[tail].own.next_alive, class);
            self.classes[class].own.next_alive = next;
        }
    }

    /// `cbq_deactivate_class`.
    pub(super) fn deactivate(&mut self, class: u32) {
        let own = &self.classes[class].own;
        if own.next_alive == NIL {
            return;
        }
        let (prio, next) = (own.cpriority, own.next_alive);
        let mut prev = class;
        while self.classes[prev].own.next_alive != class {
            prev = self.classes[prev].own.next_alive;
        }
        self.classes[prev].own.next_alive = next;
        self.classes[class].own.next_alive = NIL;
        if self.active[prio] == class {
            self.active[prio] = prev;
            if prev == class {
                self.active[prio] = NIL;
                self.activemask &= !(1 << prio);
            }
        }
    }

    /// A class in its round.
    fn visit(&mut self, class: u32, cx: &mut Cx<'_>) -> Visit {
        let mut lender = class;
        if self.classes[class].leaf.qlen() > 0 {
            match self.under_limit(class, cx) {
                Some(found) => lender = found,
                None => return Visit::Skip,
            }
        }
        let own = &mut self.classes[class].own;
        if own.deficit <= 0 {
            own.deficit += own.quantum;
            return Visit::Next;
        }
        match self.dequeue_leaf(class, cx) {
            Some(packet) => {
                let len = packet.pkt_len;
                let own = &mut self.classes[class].own;
                own.deficit -= i64::from(len);
                (self.tx_class, self.tx_borrowed, self.tx_len) = (class, lender, len);
                if lender != class {
                    for who in [lender, class] {
                        let own = &mut self.classes[who].own;
                        own.borrows = own.borrows.wrapping_add(1);
                    }
                }
                Visit::Sent(packet)
            }
            None => Visit::Skip,
        }
    }

    /// A dequeue of the qdisc in a class, with what it drops on the way and the watchdog it sets.
    fn dequeue_leaf(&mut self, class: u32, cx: &mut Cx<'_>) -> Option<Packet> {
        let (from, late, untold) = (cx.drops.len(), cx.drops.late, cx.drops.untold);
        let leaf = &mut self.classes[class].leaf;
        let packet = leaf.dequeue(cx);
        let alarm = if packet.is_none() { naps::alarm(leaf) } else { None };
        if cx.drops.len() != from {
            let (packets, bytes) = Cbq::lost_since(from, cx);
            let packets = packets.wrapping_sub(cx.drops.late.wrapping_sub(late));
            self.reduce(packets, bytes.wrapping_sub(cx.drops.untold.wrapping_sub(untold)));
        }
        // Its qdisc set its watchdog.
        if let Some(alarm) = alarm {
            self.naps.set(class, alarm);
        }
        packet
    }

    /// `cbq_dequeue_prio`.
    fn dequeue_prio(&mut self, prio: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        let mut tail = self.active[prio];
        if tail == NIL {
            return None;
        }
        let (mut prev, mut class) = (tail, self.classes[tail].own.next_alive);
        loop {
            let mut again = false;
            loop {
                match self.visit(class, cx) {
                    Visit::Sent(packet) => {
                        let own = &self.classes[class].own;
                        let (spent, next) = (own.deficit <= 0, own.next_alive);
                        if spent {
                            // The allotment is given to the class whose turn comes, not to the one whose turn ended.
                            self.active[prio] = class;
                            let own = &mut self.classes[next].own;
                            own.deficit += own.quantum;
                        }
                        return Some(packet);
                    }
                    Visit::Next => again = true,
                    Visit::Skip => {
                        let waiting = self.classes[class].leaf.qlen() > 0;
                        let own = &mut self.classes[class].own;
                        if !waiting || own.cpriority != prio {
                            let next = std::mem::replace(&mut own.next_alive, NIL);
                            if prev != class {
                                self.classes[prev].own.next_alive = next;
                            }
                            if class == tail {
                                tail = prev;
                                if class == tail {
                                    self.active[prio] = NIL;
                                    self.activemask &= !(1 << prio);
                                    if waiting {
                                        self.activate(class);
                                    }
                                    return None;
                                }
                                self.active[prio] = tail;
                            }
                            if waiting {
                                self.activate(class);
                            }
                            class = prev;
                        }
                    }
                }
                prev = class;
                class = self.classes[class].own.next_alive;
                if prev == tail {
                    break;
                }
            }
            if !again {
                break;
            }
        }
        self.active[prio] = prev;
        None
    }

    /// `cbq_dequeue_1`: the first priority that has something for us. Delayed classes have none.
    pub(super) fn dequeue_1(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let mut mask = self.activemask & ((1 << MAXPRIO) - 1);
        while mask != 0 {
            let prio = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            if let Some(packet) = self.dequeue_prio(prio, cx) {
                return Some(packet);
            }
        }
        None
    }

    /// `cbq_normalize_quanta`: what each class of a priority may send a turn: its share of the weights times its allotment
    /// times the number of classes. A class with an odd result gets half an MTU.
    fn normalize_quanta(&mut self, prio: usize) {
        let (quanta, count) = (i64::from(self.quanta[prio]), i64::from(self.nclasses[prio]));
        if quanta == 0 {
            return;
        }
        let (mtu, narrow) = (i64::from(self.device.mtu), self.clock.is_old());
        for class in self.classes.iter_mut() {
            let own = &mut class.own;
            if own.priority == prio {
                let product = own.weight.wrapping_mul(own.allot).wrapping_mul(count);
                // On a 32-bit machine the product is cut to 32 bits and divided as if it had no sign.
                own.quantum = if narrow { i64::from(product as u32) } else { product } / quanta;
            }
            if own.quantum <= 0 || own.quantum > 32 * mtu {
                own.quantum = mtu / 2 + 1;
            }
        }
    }
    /// `cbq_addprio`.
    pub(super) fn add_prio(&mut self, class: u32) {
        let own = &self.classes[class].own;
        let (prio, weight) = (own.priority, own.weight as u32);
        self.nclasses[prio] += 1;
        self.quanta[prio] = self.quanta[prio].wrapping_add(weight);
        self.normalize_quanta(prio);
    }
    /// `cbq_rmprio`, of a class that had this priority and weight.
    pub(super) fn remove_prio(&mut self, prio: usize, weight: i64) {
        self.nclasses[prio] -= 1;
        self.quanta[prio] = self.quanta[prio].wrapping_sub(weight as u32);
        self.normalize_quanta(prio);
    }
}
