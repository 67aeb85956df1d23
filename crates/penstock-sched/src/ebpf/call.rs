//! What helpers do.
//!
//! Follows: linux v6.12 `kernel/bpf/helpers.c`; `net/core/filter.c` `bpf_skb_store_bytes`, `bpf_skb_load_bytes`, `bpf_skb_load_bytes_relative`,
//! `bpf_l3_csum_replace`, `bpf_l4_csum_replace`, `bpf_csum_diff`, `bpf_clone_redirect`, `bpf_redirect`, `bpf_skb_vlan_push`, `bpf_skb_vlan_pop`,
//! `bpf_skb_change_type`, `bpf_skb_ecn_set_ce`, `bpf_skb_set_tstamp`, `bpf_skb_pull_data`.
//! Differs: checksums in a packet are whole, never left to a card; nobody reads what is printed or sent to `perf`.

use super::ctx;
use super::map::{EINVAL, ENOENT, KEY_MAX};
use super::vm::{Fault, Vm};
use crate::act::{self, Sent};
use crate::aqm::ecn;
use crate::sch::sfq::hash::Key;

use penstock_packet::headers::ETH_HLEN;

const EFAULT: i64 = -14;
const ENOTSUPP: i64 = -524;
const EOPNOTSUPP: i64 = -95;
const ENOMEM: i64 = -12;

/// `BPF_F_RECOMPUTE_CSUM`, `BPF_F_INVALIDATE_HASH`.
const STORE_FLAGS: u64 = 3;
/// `BPF_F_HDR_FIELD_MASK`, `BPF_F_PSEUDO_HDR`, `BPF_F_MARK_MANGLED_0`, `BPF_F_MARK_ENFORCE`; `BPF_F_IPV6` is there since 6.16.
const FIELD: u64 = 0xf;
const PSEUDO: u64 = 0x10;
const MANGLED_0: u64 = 0x20;
const ENFORCE: u64 = 0x40;
const IPV6: u64 = 0x80;
/// `BPF_F_INGRESS`.
const INGRESS: u64 = 1;
/// `ETH_P_8021Q`, `ETH_P_8021AD`.
const TAGS: [u16; 2] = [0x8100, 0x88a8];
/// Most bytes whose sums `csum_diff` compares (`MAX_BPF_STACK`).
const DIFF_MAX: u64 = 512;
/// A jiffy at 250 a second, ns, and what a machine begins to count them at (`INITIAL_JIFFIES`).
const NS_A_JIFFY: i64 = 4_000_000;
const INITIAL_JIFFIES: i64 = 4_294_892_296;

impl Vm<'_, '_> {
    /// Calls the helper with this number.
    pub fn call(&mut self, id: i32) -> Result<u64, Fault> {
        let [_, a, b, c, d, e, ..] = self.regs;
        let answer = match id {
            1 => return self.lookup(a, b),
            2 => self.update(a, b, c, d)?,
            3 => self.delete(a, b)?,
            5 | 125 | 160 => self.lent.now.as_ns(),
            6 => b as u32 as i64,
            7 => i64::from(self.lent.rng.next_u32()),
            8 | 42 | 93 | 94 => 0,
            9 => self.store_bytes(b as u32, c, d as u32, e)?,
            10 => self.l3_csum_replace(b as u32, (c, d), e),
            11 => self.l4_csum_replace(b as u32, (c, d), e),
            13 => self.clone_redirect(b as u32, c),
            18 => self.vlan_push(b as u16, c as u16),
            19 => self.vlan_pop(),
            23 => self.redirect(a as u32, b),
            24 => i64::from(self.skb.rare().realms),
            25 => self.event(b)?,
            26 => self.load_bytes(b as u32, c, d as u32)?,
            28 => self.csum_diff((a, b), (c, d), e as u32)?,
            32 => self.change_type(b as u32),
            34 => self.hash(),
            39 => {
                if b as u32 <= self.skb.len {
                    0
                } else {
                    ENOMEM
                }
            }
            40 => ENOTSUPP,
            41 => self.set_hash(0),
            48 => self.set_hash(b as u32),
            68 => self.load_relative(b as u32, c, d as u32, e as u32)?,
            97 => self.set_ce(),
            118 => INITIAL_JIFFIES + self.lent.now.as_ns() / NS_A_JIFFY,
            192 => self.set_tstamp(b, c as u32),
            _ => return Err(Fault::Refused("invalid func")),
        };
        Ok(answer as u64)
    }

    /// The map that a pointer names, and a key of it.
    fn keyed<'k>(&self, map: u64, key: u64, out: &'k mut [u8; KEY_MAX]) -> Result<(usize, &'k [u8]), Fault> {
        let map = self.map(map)?;
        if self.maps[map].is_programs() || self.maps[map].is_events() {
            return Err(Fault::Refused("cannot pass map_type into func bpf_map_lookup_elem#1"));
        }
        let key_size = self.maps[map].key_size;
        self.read(key, &mut out[..key_size])?;
        Ok((map, &out[..key_size]))
    }
    fn lookup(&mut self, map: u64, key: u64) -> Result<u64, Fault> {
        let mut out = [0; KEY_MAX];
        let (map, key) = self.keyed(map, key, &mut out)?;
        Ok(self.maps[map].lookup(key).map_or(0, |at| Vm::value(map, at)))
    }
    fn update(&mut self, map: u64, key: u64, value: u64, flags: u64) -> Result<i64, Fault> {
        let mut out = [0; KEY_MAX];
        let (map, key) = self.keyed(map, key, &mut out)?;
        let size = self.maps[map].value_size;
        // A value that fits on the stack comes from there, mostly.
        let (mut small, mut large) = ([0; KEY_MAX], Vec::new());
        let held = match small.get_mut(..size) {
            Some(small) => small,
            None => {
                large.resize(size, 0);
                &mut large[..]
            }
        };
        self.read(value, held)?;
        if self.maps[map].frozen {
            return Err(Fault::Refused("write into map forbidden"));
        }
        Ok(self.maps[map].update(key, held, flags))
    }
    fn delete(&mut self, map: u64, key: u64) -> Result<i64, Fault> {
        let mut out = [0; KEY_MAX];
        let (map, key) = self.keyed(map, key, &mut out)?;
        Ok(self.maps[map].delete(key))
    }
    /// `bpf_skb_event_output`: nobody listens.
    fn event(&mut self, map: u64) -> Result<i64, Fault> {
        let map = self.map(map)?;
        if self.maps[map].is_events() {
            Ok(ENOENT)
        } else {
            Err(Fault::Refused("cannot pass map_type into func bpf_perf_event_output#25"))
        }
    }

    fn store_bytes(&mut self, at: u32, from: u64, len: u32, flags: u64) -> Result<i64, Fault> {
        if flags & !STORE_FLAGS != 0 {
            return Ok(EINVAL);
        }
        let end = u64::from(at) + u64::from(len);
        if at > i32::MAX as u32 || end > u64::from(self.skb.len) {
            return Ok(EFAULT);
        }
        // What lies behind the headers is forgotten.
        let mut bytes = [0; KEY_MAX];
        let Some(bytes) = bytes.get_mut(..len as usize) else {
            return Err(Fault::Missing("bpf with more than 512 bytes at once"));
        };
        self.read(from, bytes)?;
        self.put(at as usize, bytes);
        if flags & 2 != 0 {
            self.set_hash(0);
        }
        Ok(0)
    }
    fn load_bytes(&mut self, at: u32, to: u64, len: u32) -> Result<i64, Fault> {
        self.copy_out(u64::from(at), at <= i32::MAX as u32, to, len)
    }
    fn load_relative(&mut self, at: u32, to: u64, len: u32, start: u32) -> Result<i64, Fault> {
        let from = match start {
            0 => 0,
            1 => u64::from(ETH_HLEN),
            _ => u64::MAX >> 1,
        };
        self.copy_out(from + u64::from(at), at <= 0xffff, to, len)
    }
    fn copy_out(&mut self, from: u64, fits: bool, to: u64, len: u32) -> Result<i64, Fault> {
        let mut bytes = [0; KEY_MAX];
        let Some(bytes) = bytes.get_mut(..len as usize) else {
            return Err(Fault::Missing("bpf with more than 512 bytes at once"));
        };
        let there = fits && from + u64::from(len) <= u64::from(self.skb.len);
        if there {
            self.take(from as usize, bytes);
        }
        self.write(to, bytes)?;
        Ok(if there { 0 } else { EFAULT })
    }

    /// A checksum's place that may be written.
    fn checksum_at(&self, at: u32) -> Option<u16> {
        if at > 0xffff || at & 1 != 0 || at + 2 > self.skb.len {
            return None;
        }
        let mut two = [0; 2];
        self.take(at as usize, &mut two);
        Some(u16::from_le_bytes(two))
    }
    fn l3_csum_replace(&mut self, at: u32, (from, to): (u64, u64), flags: u64) -> i64 {
        if flags & !FIELD != 0 {
            return EINVAL;
        }
        let Some(sum) = self.checksum_at(at) else { return EFAULT };
        let Some(new) = replaced(sum, from, to, flags & FIELD, false) else { return EINVAL };
        self.put(at as usize, &new.to_le_bytes());
        0
    }
    fn l4_csum_replace(&mut self, at: u32, (from, to): (u64, u64), flags: u64) -> i64 {
        if flags & !(FIELD | PSEUDO | MANGLED_0 | ENFORCE | IPV6) != 0 {
            return EINVAL;
        }
        let Some(sum) = self.checksum_at(at) else { return EFAULT };
        if flags & MANGLED_0 != 0 && flags & ENFORCE == 0 && sum == 0 {
            return 0;
        }
        let Some(mut new) = replaced(sum, from, to, flags & FIELD, true) else { return EINVAL };
        if flags & MANGLED_0 != 0 && new == 0 {
            new = 0xffff;
        }
        self.put(at as usize, &new.to_le_bytes());
        0
    }
    fn csum_diff(&mut self, from: (u64, u64), to: (u64, u64), seed: u32) -> Result<i64, Fault> {
        let (out, into) = (from.1 as u32, to.1 as u32);
        if (out | into) & 3 != 0 || u64::from(out) + u64::from(into) > DIFF_MAX {
            return Ok(EINVAL);
        }
        let mut sum = u64::from(seed);
        for ((at, len), flip) in [((from.0, out), u32::MAX), ((to.0, into), 0)] {
            for i in 0..u64::from(len / 4) {
                let mut word = [0; 4];
                self.read(at + 4 * i, &mut word)?;
                sum += u64::from(u32::from_le_bytes(word) ^ flip);
            }
        }
        while sum >> 32 != 0 {
            sum = (sum & 0xffff_ffff) + (sum >> 32);
        }
        Ok(sum as i64)
    }

    fn vlan_push(&mut self, proto: u16, tci: u16) -> i64 {
        let asked = proto.swap_bytes();
        let ethertype = if TAGS.contains(&asked) { asked } else { TAGS[0] };
        self.settle();
        if let Some((before, tag)) = self.skb.rare().vlan {
            self.skb.insert_vlan(before, tag);
        }
        self.skb.rare_mut().vlan = Some((ethertype, tci));
        self.look();
        0
    }
    fn vlan_pop(&mut self) -> i64 {
        self.settle();
        let next = self.skb.remove_vlan();
        self.skb.rare_mut().vlan = next;
        self.look();
        0
    }
    fn change_type(&mut self, ptype: u32) -> i64 {
        let now = ctx::read(self.skb, 4, 4).unwrap_or(0);
        if now > 3 || ptype > 3 {
            return EINVAL;
        }
        self.skb.rare_mut().ptype = Some(ptype as u8);
        0
    }
    fn set_ce(&mut self) -> i64 {
        self.settle();
        let marked = ecn::set_ce(self.skb);
        self.look();
        marked.into()
    }
    fn set_hash(&mut self, hash: u32) -> i64 {
        if hash != 0 || self.skb.is_noted() {
            self.skb.rare_mut().hash = hash;
        }
        0
    }
    /// `skb_get_hash`, which stays with the packet.
    fn hash(&mut self) -> i64 {
        self.settle();
        let hash = Key::FIXED.hash_from_socket(self.skb);
        self.set_hash(hash);
        i64::from(hash)
    }
    fn set_tstamp(&mut self, ns: u64, clock: u32) -> i64 {
        if !ctx::is_ip(self.skb) {
            return EOPNOTSUPP;
        }
        match (clock, ns) {
            (0, _) | (1 | 2, 1..) => ctx::set_departure(self.skb, ns),
            _ => return EINVAL,
        }
        0
    }

    fn redirect(&mut self, ifindex: u32, flags: u64) -> i64 {
        if flags & !INGRESS != 0 {
            return act::SHOT.into();
        }
        *self.lent.redirect = Some((ifindex, flags & INGRESS != 0));
        act::REDIRECT.into()
    }
    fn clone_redirect(&mut self, ifindex: u32, flags: u64) -> i64 {
        if flags & !INGRESS != 0 || ifindex == 0 {
            return EINVAL;
        }
        self.settle();
        let skb = sent_to(self.skb, ifindex, flags & INGRESS != 0, true);
        self.lent.sent.push(skb);
        0
    }
}

/// `__bpf_redirect`: a packet on its way to another device; `copied`: it goes on here too.
pub(super) fn sent_to(skb: &mut penstock_packet::Skb, ifindex: u32, receive: bool, copied: bool) -> Sent {
    let mut copy = skb.clone();
    if !receive {
        (copy.tc.redirected, copy.tc.from_ingress) = (true, skb.tc.at_ingress);
        copy.sender.departs = penstock_model::Time::ZERO;
    }
    copy.iif = skb.tc.dev;
    if copied {
        copy.tc.role.set_copy(true);
    } else {
        skb.tc.role.set_moved();
    }
    Sent { skb: copy, ifindex, receive, action: 0, copied }
}

/// `csum_replace2`, `csum_replace4`, `csum_replace_by_diff`: a checksum over data of which something was replaced; as a little-endian machine reads it.
/// A transport header's is always replaced by words of four bytes.
fn replaced(sum: u16, from: u64, to: u64, size: u64, transport: bool) -> Option<u16> {
    let wide = u64::from(!u32::from(sum));
    let whole = match size {
        0 if from == 0 => u64::from(to as u32) + wide,
        // RFC 1624 equation 3.
        2 if !transport => u64::from(!sum) + u64::from(!(from as u16)) + u64::from(to as u16),
        2 => wide + u64::from(!u32::from(from as u16)) + u64::from(to as u16),
        4 => wide + u64::from(!(from as u32)) + u64::from(to as u32),
        _ => return None,
    };
    Some(!fold(whole))
}

/// A sum in 16 bits.
fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_follow_what_is_replaced() {
        // RFC 1624 section 4: a word 0x5555 becomes 0x3285, and the checksum 0xdd2f becomes 0x0000.
        assert_eq!(replaced(0xdd2f, 0x5555, 0x3285, 2, false), Some(0));
        // The same by the difference of sums, and as a word of four bytes.
        assert_eq!(replaced(0xdd2f, 0x5555_0000, 0x3285_0000, 4, true), Some(0));
        assert_eq!(replaced(1, 1, 1, 3, true), None);
    }
}
