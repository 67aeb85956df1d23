//! The way of a packet through u32's tables.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/cls_u32.c` `u32_classify`.

use super::tables::{EAT, Knode, OFFSET, Table, VAROFFSET};
use crate::cls::Answer;
use crate::qdisc::Cx;
use penstock_packet::headers::ETH_HLEN;
use penstock_packet::skb::HEADER_MAX;
use penstock_packet::{L3, L4, Skb};
use std::cell::Cell;

/// Most tables within one another (`TC_U32_MAXDEPTH`).
const MAX_DEPTH: usize = 8;
/// `TCA_CLS_FLAGS_SKIP_SW`.
const SKIP_SW: u32 = 2;
/// Bytes before the frame that can be read, as 0: a 16-byte aligned Ethernet header leaves two, which tc's
/// `match ether dst` reads with a mask of 0.
const HEADROOM: i32 = 2;

/// The packet's bytes, written out only when a match asks for others than the IPv4 header's words and the ports.
struct View {
    /// The word read last and where.
    last: (i32, u32),
    bytes: Option<([u8; HEADER_MAX], usize)>,
}

impl View {
    fn new() -> View {
        View { last: (i32::MIN, 0), bytes: None }
    }
    /// The word `off` bytes from the start of the frame; `None` where the packet is too short. Bits outside of
    /// `mask` may be anything. Payload reads as 0.
    #[inline]
    fn word(&mut self, skb: &Skb, off: i32, mask: u32) -> Option<u32> {
        if off == self.last.0 {
            return Some(self.last.1);
        }
        if off < -HEADROOM || off + 4 > skb.len as i32 {
            return None;
        }
        let two = |high: u16, low: u16| u32::from(high) << 16 | u32::from(low);
        let word = match (&skb.l3, &skb.l4, off - ETH_HLEN as i32) {
            (L3::Ipv4(h), _, 0) => two(0x4500 | u16::from(h.tos), skb.network_len() as u16),
            (L3::Ipv4(h), _, 4) => two(h.id, h.frag_off),
            // The checksum beside them is seldom asked for.
            (L3::Ipv4(h), _, 8) if mask & 0xffff == 0 => {
                return Some(two(u16::from(h.ttl) << 8 | u16::from(h.protocol), 0));
            }
            (L3::Ipv4(h), _, 12) => u32::from(h.src),
            (L3::Ipv4(h), _, 16) => u32::from(h.dst),
            (L3::Ipv4(_), L4::Tcp(t), 20) => two(t.sport, t.dport),
            (L3::Ipv4(_), L4::Udp(u), 20) => two(u.sport, u.dport),
            _ => self.written(skb, off),
        };
        self.last = (off, word);
        Some(word)
    }
    /// An action may have changed the packet.
    fn forget(&mut self) {
        *self = View::new();
    }
    #[cold]
    fn written(&mut self, skb: &Skb, off: i32) -> u32 {
        let (bytes, len) = self.bytes.get_or_insert_with(|| {
            let mut bytes = [0; HEADER_MAX];
            let len = skb.header_bytes(&mut bytes);
            (bytes, len)
        });
        let byte = |i: i32| usize::try_from(i).ok().filter(|i| i < len).map_or(0, |i| u32::from(bytes[i]));
        (0..4).fold(0, |word, i| word << 8 | byte(off + i))
    }
    /// Two bytes.
    fn half(&mut self, skb: &Skb, off: i32) -> Option<u16> {
        if off < -HEADROOM || off + 2 > skb.len as i32 {
            return None;
        }
        Some((self.written(skb, off) >> 16) as u16)
    }
}

impl Knode {
    /// Whether all keys match. `None`: a key lies outside of the packet, and no filter will match any more.
    #[inline]
    fn matches(&self, skb: &Skb, view: &mut View, off: u32, off2: i32) -> Option<bool> {
        for key in &self.sel.keys {
            let at = (off as i32).wrapping_add(key.off).wrapping_add(off2 & key.offmask);
            if (view.word(skb, at, key.mask)? ^ key.val) & key.mask != 0 {
                return Some(false);
            }
            count(&key.hits);
        }
        Some(true)
    }
}

#[inline]
fn count(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

/// Where to go on after a table: table, bucket, filter, offset.
type Frame = (usize, usize, usize, u32);

/// `u32_classify`, from the table `root`.
pub(super) fn classify(tables: &[Table], root: usize, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
    let mut view = View::new();
    let mut stack: [Frame; MAX_DEPTH] = [(0, 0, 0, 0); MAX_DEPTH];
    let mut depth = 0;
    let (mut table, mut bucket, mut at) = (root, 0, 0);
    let (mut off, mut off2) = (ETH_HLEN, 0i32);
    loop {
        if let Some(n) = tables[table].buckets[bucket].get(at) {
            count(&n.tried);
            cx.drops.work.steps += 1;
            if n.flags & SKIP_SW != 0 || (skb.mark & n.mark.1) != n.mark.0 {
                at += 1;
                continue;
            }
            n.marked.set(n.marked.get().wrapping_add(1));
            if !n.matches(skb, &mut view, off, off2)? {
                at += 1;
                continue;
            }
            let Some(down) = n.down else {
                if let Some(answer) = n.answer(skb, cx) {
                    return Some(answer);
                }
                view.forget();
                at += 1;
                continue;
            };
            *stack.get_mut(depth)? = (table, bucket, at, off);
            depth += 1;
            let sel = &n.sel;
            (table, bucket, at) = (down, 0, 0);
            if tables[down].divisor != 0 {
                let word = view.word(skb, (off as i32).wrapping_add(sel.hoff.into()), sel.hmask)?;
                bucket = (tables[down].divisor & (word & sel.hmask) >> sel.fshift()) as usize;
            }
            if sel.flags & (OFFSET | VAROFFSET) != 0 {
                off2 = i32::from(sel.off) + 3;
                if sel.flags & VAROFFSET != 0 {
                    let half = view.half(skb, (off as i32).wrapping_add(sel.offoff.into()))?;
                    off2 += i32::from(half & sel.offmask) >> (sel.offshift & 31);
                }
                off2 &= !3;
            }
            if sel.flags & EAT != 0 {
                off = off.wrapping_add(off2 as u32);
                off2 = 0;
            }
            if sel.flags & (OFFSET | VAROFFSET | EAT) == 0 || off < skb.len {
                continue;
            }
        }
        // Back to the filter that led here: perhaps it has an answer itself.
        depth = depth.checked_sub(1)?;
        (table, bucket, at, off) = stack[depth];
        if let Some(answer) = tables[table].buckets[bucket][at].answer(skb, cx) {
            return Some(answer);
        }
        view.forget();
        at += 1;
    }
}
