//! The packets of all flows, each flow's in the order of their times: `struct fq_skb_cb`, `flow_queue_add`, `fq_peek`.

use penstock_packet::{Packet, Skb};

/// No packet, no flow.
pub(super) const NIL: u32 = u32::MAX;

struct Link {
    packet: Option<Packet>,
    /// When it may go, ns (`time_to_send`).
    time: u64,
    band: u8,
    next: u32,
}

/// What is known of a flow's first packet.
#[derive(Clone, Copy)]
pub(super) struct First {
    /// When it may go, ns.
    pub time: u64,
    /// Whether it stands beside the list, for having come with an earlier time than one before it.
    late: bool,
}

/// A packet that has left its queue.
pub(super) struct Taken {
    pub packet: Packet,
    /// The band it was counted in.
    pub band: u8,
}

/// The packets of one flow: a list that grows at its end, and those whose time is before the end's, by time.
#[derive(Clone, Copy)]
pub(super) struct Queue {
    head: u32,
    tail: u32,
    late: u32,
}

impl Default for Queue {
    fn default() -> Queue {
        Queue { head: NIL, tail: NIL, late: NIL }
    }
}

/// The packets of all flows, in memory that is used again.
#[derive(Default)]
pub(super) struct Pool {
    links: Vec<Link>,
    free: Vec<u32>,
}

impl Pool {
    /// Shows every packet.
    pub(super) fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.links.iter().filter_map(|link| link.packet.as_ref()).for_each(|packet| see(packet));
    }
    fn link(&mut self, link: Link) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.links[at as usize] = link;
                at
            }
            None => {
                self.links.push(link);
                self.links.len() as u32 - 1
            }
        }
    }
    /// `flow_queue_add`.
    pub(super) fn add(&mut self, queue: &mut Queue, packet: Packet, time: u64, band: u8) {
        let at = self.link(Link { packet: Some(packet), time, band, next: NIL });
        if queue.head == NIL {
            (queue.head, queue.tail) = (at, at);
        } else if time >= self.links[queue.tail as usize].time {
            self.links[queue.tail as usize].next = at;
            queue.tail = at;
        } else {
            self.add_late(queue, at, time);
        }
    }
    /// Among those that are late: behind all that are not later.
    #[cold]
    fn add_late(&mut self, queue: &mut Queue, at: u32, time: u64) {
        let (mut before, mut next) = (NIL, queue.late);
        while next != NIL && self.links[next as usize].time <= time {
            (before, next) = (next, self.links[next as usize].next);
        }
        self.links[at as usize].next = next;
        match before {
            NIL => queue.late = at,
            before => self.links[before as usize].next = at,
        }
    }
    /// `fq_peek`.
    pub(super) fn first(&self, queue: &Queue) -> Option<First> {
        let time = |at: u32| self.links[at as usize].time;
        match (queue.head, queue.late) {
            (NIL, NIL) => None,
            (head, NIL) => Some(First { time: time(head), late: false }),
            (NIL, late) => Some(First { time: time(late), late: true }),
            (head, late) => {
                let late_first = time(late) < time(head);
                Some(First { time: time(if late_first { late } else { head }), late: late_first })
            }
        }
    }
    /// Takes what [`Pool::first`] has shown: `fq_erase_head`.
    pub(super) fn take(&mut self, queue: &mut Queue, first: First) -> Option<Taken> {
        let place = if first.late { &mut queue.late } else { &mut queue.head };
        let at = *place;
        let link = self.links.get_mut(at as usize)?;
        *place = link.next;
        let (packet, band) = (link.packet.take()?, link.band);
        self.free.push(at);
        Some(Taken { packet, band })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;

    #[test]
    fn whoever_comes_with_an_earlier_time_is_first() {
        let (mut pool, mut queue) = (Pool::default(), Queue::default());
        for (seq, time) in [(0, 50), (1, 60), (2, 40), (3, 55), (4, 40), (5, 60), (6, 50)] {
            pool.add(&mut queue, packet(seq, 100), time, 0);
        }
        let mut order = Vec::new();
        while let Some(first) = pool.first(&queue) {
            let taken = pool.take(&mut queue, first).unwrap();
            order.push((taken.packet.seq, first.time));
        }
        // Of two with one time the list's goes first.
        assert_eq!(order, [(2, 40), (4, 40), (0, 50), (6, 50), (3, 55), (1, 60), (5, 60)]);
        assert_eq!(pool.links.len(), 7);
    }
}
