//! Packets of many flows in chains: every flow a list, all in one pool that is reused.

use penstock_packet::{Packet, Skb};

/// No packet.
const NIL: u32 = u32::MAX;

struct Link {
    packet: Option<Packet>,
    next: u32,
    prev: u32,
}

/// The packets of all flows.
#[derive(Default)]
pub(crate) struct Pool {
    links: Vec<Link>,
    free: Vec<u32>,
}

/// The packets of one flow: `skblist_next`, `skblist_prev`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    head: u32,
    tail: u32,
}

impl Default for Chain {
    fn default() -> Chain {
        Chain { head: NIL, tail: NIL }
    }
}

impl Pool {
    /// Shows every packet.
    pub(crate) fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.links.iter().filter_map(|link| link.packet.as_ref()).for_each(|packet| see(packet));
    }
    /// Appends a packet: `slot_queue_add`.
    #[inline]
    pub(crate) fn push_tail(&mut self, chain: &mut Chain, packet: Packet) {
        let link = Link { packet: Some(packet), next: NIL, prev: chain.tail };
        let at = match self.free.pop() {
            Some(at) => {
                self.links[at as usize] = link;
                at
            }
            None => {
                self.links.push(link);
                self.links.len() as u32 - 1
            }
        };
        match chain.tail {
            NIL => chain.head = at,
            tail => self.links[tail as usize].next = at,
        }
        chain.tail = at;
    }
    /// Takes the first: `slot_dequeue_head`.
    #[inline]
    pub(crate) fn pop_head(&mut self, chain: &mut Chain) -> Option<Packet> {
        let at = chain.head;
        let link = self.links.get_mut(at as usize)?;
        let packet = link.packet.take();
        chain.head = link.next;
        match chain.head {
            NIL => chain.tail = NIL,
            head => self.links[head as usize].prev = NIL,
        }
        self.free.push(at);
        packet
    }
    /// Takes the last: `slot_dequeue_tail`.
    pub(crate) fn pop_tail(&mut self, chain: &mut Chain) -> Option<Packet> {
        let at = chain.tail;
        let link = self.links.get_mut(at as usize)?;
        let packet = link.packet.take();
        chain.tail = link.prev;
        match chain.tail {
            NIL => chain.head = NIL,
            tail => self.links[tail as usize].next = NIL,
        }
        self.free.push(at);
        packet
    }
    /// The first.
    pub(crate) fn head(&self, chain: &Chain) -> Option<&Packet> {
        self.links.get(chain.head as usize)?.packet.as_ref()
    }
    /// The first, to mark it.
    pub(crate) fn head_mut(&mut self, chain: &Chain) -> Option<&mut Packet> {
        self.links.get_mut(chain.head as usize)?.packet.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;

    #[test]
    fn two_chains_share_one_pool() {
        let (mut pool, mut a, mut b) = (Pool::default(), Chain::default(), Chain::default());
        for seq in 0..6 {
            pool.push_tail(if seq % 2 == 0 { &mut a } else { &mut b }, packet(seq, 100));
        }
        let seq = |p: Option<Packet>| p.map(|p| p.seq);
        assert_eq!(seq(pool.pop_tail(&mut a)), Some(4));
        assert_eq!(pool.head(&a).map(|p| p.seq), Some(0));
        assert_eq!(
            (seq(pool.pop_head(&mut a)), seq(pool.pop_head(&mut a)), seq(pool.pop_head(&mut a))),
            (Some(0), Some(2), None)
        );
        pool.push_tail(&mut a, packet(9, 100));
        assert_eq!(seq(pool.pop_tail(&mut a)), Some(9));
        assert_eq!(
            [seq(pool.pop_head(&mut b)), seq(pool.pop_head(&mut b)), seq(pool.pop_tail(&mut b))],
            [Some(1), Some(3), Some(5)]
        );
        assert_eq!(pool.links.len(), 6);
    }
}
