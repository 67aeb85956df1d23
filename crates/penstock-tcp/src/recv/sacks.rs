//! The SACK blocks we report.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_sack_new_ofo_skb`, `tcp_sack_remove`, `tcp_dsack_set`; RFC 2018, RFC 2883.
//! Differs: none known.

use super::Receiver;
use crate::mib::Rx;

impl Receiver {
    /// Widens the report of a duplicate, or begins one.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_dsack_extend
    pub(crate) fn dsack_extend(&mut self, start: u64, end: u64) {
        match &mut self.dsack {
            Some(dsack) => {
                extend(dsack, (start, end));
                self.dsack_start = dsack.0 as u32;
            }
            None => self.dsack_set(start, end),
        }
    }
    pub(crate) fn dsack_set(&mut self, start: u64, end: u64) {
        if self.sack && self.tells_duplicates {
            self.mib.one(if start < self.rcv_nxt { Rx::DsackOldSent } else { Rx::DsackOfoSent });
            self.dsack = Some((start, end));
            self.dsack_start = start as u32;
        }
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_sack_new_ofo_skb
    pub(crate) fn sack_new(&mut self, start: u64, end: u64) {
        if !self.sack {
            return;
        }
        for i in 0..self.num_sacks {
            if extend(&mut self.sacks[i], (start, end)) {
                if i >= 2 {
                    self.flush_compressed();
                }
                self.sacks[..=i].rotate_right(1);
                let mut k = 1;
                while k < self.num_sacks {
                    let other = self.sacks[k];
                    if extend(&mut self.sacks[0], other) {
                        self.sacks[k..self.num_sacks].rotate_left(1);
                        self.num_sacks -= 1;
                    } else {
                        k += 1;
                    }
                }
                return;
            }
        }
        if self.num_sacks >= 2 {
            self.flush_compressed();
        }
        self.num_sacks = (self.num_sacks + 1).min(4);
        self.sacks[..self.num_sacks].rotate_right(1);
        self.sacks[0] = (start, end);
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_sack_remove
    pub(super) fn sack_remove(&mut self) {
        if self.num_sacks == 0 {
            return;
        }
        if self.ooo.is_empty() && self.fin_at.is_none_or(|f| f < self.rcv_nxt) {
            self.num_sacks = 0;
            return;
        }
        let mut kept = 0;
        for i in 0..self.num_sacks {
            if self.rcv_nxt < self.sacks[i].0 {
                self.sacks[kept] = self.sacks[i];
                kept += 1;
            }
        }
        self.num_sacks = kept;
    }

    /// Writes the SACK blocks for a segment into `out`, at most `max` of them; answers how many. A report of a
    /// duplicate goes out once, and first.
    pub fn write_sacks(&mut self, out: &mut [(u32, u32); 4], max: usize) -> u8 {
        let mut n = 0;
        let dsack = self.dsack.take();
        for (l, r) in dsack.into_iter().chain(self.sacks[..self.num_sacks].iter().copied()) {
            if n == max.min(4) {
                break;
            }
            out[n] = (l as u32, r as u32);
            n += 1;
        }
        n as u8
    }
    /// How many SACK blocks the next segment carries, at most `max`.
    pub fn sack_blocks(&self, max: u32) -> u32 {
        (self.num_sacks as u32 + u32::from(self.dsack.is_some())).min(max)
    }
    /// Where the last of the blocks ends that we report.
    pub fn last_sacked(&self) -> Option<u64> {
        self.sacks[..self.num_sacks].iter().map(|s| s.1).max()
    }
    /// Whether a duplicate is to be reported.
    pub fn has_dsack(&self) -> bool {
        self.dsack.is_some()
    }
    /// Whether there is a SACK block to report.
    #[inline]
    pub fn has_sacks(&self) -> bool {
        self.num_sacks > 0 || self.dsack.is_some()
    }
}

/// Widens `block` by `other` where they overlap or touch.
//= linux v6.12 net/ipv4/tcp_input.c tcp_sack_extend
fn extend(block: &mut (u64, u64), other: (u64, u64)) -> bool {
    if other.0 <= block.1 && block.0 <= other.1 {
        *block = (block.0.min(other.0), block.1.max(other.1));
        return true;
    }
    false
}
