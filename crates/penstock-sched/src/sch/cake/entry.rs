//! How packets go into a flow's queue: whole or segment by segment, and what they count as on the line.
//!
//! Follows: linux v6.12 `net/sched/sch_cake.c` `cake_enqueue`, `cake_overhead`, `cake_calc_overhead`.

use super::config::Cells;
use super::tin::ewma;
use super::{Cake, ack, memory, widen};
use crate::ledger::DropReason;
use crate::qdisc::Cx;
use penstock_packet::headers::ETH_HLEN;
use penstock_packet::{Packet, Skb};

impl Cake {
    /// Puts a packet into queue `n` of a tin; an ACK that it makes needless goes. How many more bytes there are, modulo 2^32.
    #[inline]
    pub(super) fn put(&mut self, packet: Packet, (tin, n): (usize, usize), now: i64, cx: &mut Cx<'_>) -> u32 {
        let (len, used) = (packet.pkt_len, memory(&packet));
        let adjusted = self.adjusted_len(&packet);
        let b = &mut self.tins[tin];
        b.packets = b.packets.wrapping_add(1);
        self.store.push(&mut b.flows[n].chain, packet, adjusted);
        let needless = match self.config.ack_filter {
            0 => None,
            how => ack::needless(&self.store, b.flows[n].chain, how == 2),
        };
        let ack = needless.and_then(|before| self.store.unlink(&mut b.flows[n].chain, before));
        self.buffer_used = self.buffer_used.wrapping_add(used);
        let Some((ack, adjusted)) = ack else {
            self.qlen += 1;
            return len;
        };
        let less = ack.pkt_len;
        b.ack_drops = b.ack_drops.wrapping_add(1);
        b.bytes = b.bytes.wrapping_add(less.into());
        self.stats.drops = self.stats.drops.wrapping_add(1);
        self.buffer_used = self.buffer_used.wrapping_sub(memory(&ack));
        if self.config.ingress {
            self.charge(tin, adjusted, now, true);
        }
        cx.drops.drop(ack, DropReason::Early);
        len.wrapping_sub(less)
    }
    /// `split-gso`: puts a super-packet in as its segments. How many bytes these are.
    #[cold]
    pub(super) fn put_segments(&mut self, packet: Packet, (tin, n): (usize, usize), cx: &mut Cx<'_>) -> u32 {
        let mut segments = cx.drops.segment(packet);
        let mut bytes = 0u32;
        for segment in segments.drain(..) {
            bytes = bytes.wrapping_add(segment.pkt_len);
            self.buffer_used = self.buffer_used.wrapping_add(memory(&segment));
            let adjusted = self.adjusted_len(&segment);
            let b = &mut self.tins[tin];
            b.packets = b.packets.wrapping_add(1);
            self.store.push(&mut b.flows[n].chain, segment, adjusted);
            self.qlen += 1;
        }
        cx.drops.segments_done(segments, 0);
        bytes
    }

    /// `cake_overhead`: what a packet counts as on the line; of a super-packet the sum over its segments.
    pub(super) fn adjusted_len(&mut self, skb: &Skb) -> u32 {
        let offset = ETH_HLEN + 4 * skb.tags_in_frame() as u32;
        self.offset = ewma(self.offset.into(), u64::from(offset) << 16, 8) as u32;
        let Some(gso) = skb.gso() else { return self.on_the_line(skb.pkt_len, offset) };
        let (size, before_last) = (u32::from(gso.size), u32::from(gso.segs - 1));
        let full = self.on_the_line(size + skb.segment_headers(), offset);
        let last = self.on_the_line(skb.len.wrapping_sub(size * before_last), offset);
        full.wrapping_mul(before_last).wrapping_add(last)
    }
    /// `cake_calc_overhead`: the same of `len` bytes whose network header stands `offset` bytes behind their beginning.
    fn on_the_line(&mut self, mut len: u32, offset: u32) -> u32 {
        if self.config.without_header {
            len = len.wrapping_sub(offset);
        }
        widen(&mut self.sizes.network, len);
        let least = i32::from(self.config.mpu);
        len = (len as i32).wrapping_add(self.config.overhead.into()).max(least) as u32;
        match self.config.cells {
            Cells::Atm => len = len.div_ceil(48) * 53,
            Cells::Ptm => len += len.div_ceil(64),
            Cells::None => {}
        }
        widen(&mut self.sizes.adjusted, len);
        len
    }
}
