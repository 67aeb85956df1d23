//! `struct __sk_buff`: what a program reads and writes of a packet by name.
//!
//! Follows: linux v6.12 `include/uapi/linux/bpf.h` `struct __sk_buff`; `net/core/filter.c` `tc_cls_act_is_valid_access`, `bpf_skb_is_valid_access`,
//! `bpf_convert_ctx_access`, `bpf_convert_tstamp_read`.
//! Differs: a packet's hash is there once it was asked for; `napi_id` and `hwtstamp` are 0.

use penstock_model::Time;
use penstock_packet::{L3, Skb};

/// Where `cb` begins and ends.
pub(super) const CB: std::ops::Range<u32> = 48..68;
/// The three pointers.
pub(super) const DATA: u32 = 76;
pub(super) const DATA_END: u32 = 80;
pub(super) const DATA_META: u32 = 140;
/// `tc_classid`.
pub(super) const CLASSID: u32 = 72;
const TSTAMP: u32 = 152;
const SK: u32 = 168;
const TSTAMP_TYPE: u32 = 180;
const HWTSTAMP: u32 = 184;
/// `NO_QUEUE_MAPPING`.
const NO_QUEUE: u32 = 0xffff;

/// Why a field cannot be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoField {
    /// The kernel refuses the access.
    Refused,
    /// The field is not simulated.
    Missing(&'static str),
}

/// The clock of `skb->tstamp` (`skb->tstamp_type`): `CLOCK_REALTIME` 0, `CLOCK_MONOTONIC` 1, `CLOCK_TAI` 2.
fn clock(skb: &Skb) -> u32 {
    use penstock_packet::skb::TxClock;
    match skb.rare().txtime.map(|t| t.clock) {
        _ if skb.sender.departs == Time::ZERO => 0,
        Some(TxClock::Tai) => 2,
        Some(TxClock::Realtime) => 0,
        Some(TxClock::Monotonic) | None => 1,
    }
}

/// A word in the order of its bytes on the wire, as the kernel's little-endian machines read it.
fn be16(word: u16) -> u32 {
    word.swap_bytes().into()
}

/// A field of 32 bits that begins at `at`.
fn word(skb: &Skb, at: u32) -> Result<u32, NoField> {
    let rare = skb.rare();
    let (tpid, tci) = rare.vlan.unwrap_or((0, 0));
    let ingress = skb.tc.at_ingress;
    Ok(match at {
        0 => skb.len,
        4 => packet_type(skb).into(),
        8 => skb.mark,
        12 => rare.queue_mapping.into(),
        16 => be16(skb.declared()),
        20 => u32::from(rare.vlan.is_some()),
        24 => tci.into(),
        28 => be16(tpid),
        32 => skb.priority,
        36 => {
            if ingress {
                skb.tc.dev
            } else {
                skb.iif
            }
        }
        40 => skb.tc.dev,
        44 => skb.tc.index.into(),
        68 => rare.hash,
        84 => 0,
        160 => skb.pkt_len,
        // TCP counts its segments itself.
        164 => match skb.gso() {
            Some(gso) => gso.segs.into(),
            None => u32::from(skb.sender.tcp),
        },
        176 => skb.gso().map_or(0, |gso| gso.size.into()),
        _ => return Err(NoField::Refused),
    })
}

/// `skb->pkt_type`: of one that arrives by its destination address, where nobody has given it another one.
fn packet_type(skb: &Skb) -> u8 {
    match (skb.rare().ptype, skb.eth.1) {
        (Some(ptype), _) => ptype,
        (None, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) if skb.tc.at_ingress => 1,
        (None, [first, ..]) if skb.tc.at_ingress && first & 1 != 0 => 2,
        _ => 0,
    }
}

/// Reads `width` bytes at `at`, which are none of `cb`, `tc_classid` and the pointers.
pub(super) fn read(skb: &Skb, at: u32, width: u32) -> Result<u64, NoField> {
    if !at.is_multiple_of(width) {
        return Err(NoField::Refused);
    }
    match (at, width) {
        (TSTAMP, 8) => return Ok(skb.sender.departs.as_ns() as u64),
        (SK, 8) => return Err(NoField::Missing("bpf with the field sk")),
        (HWTSTAMP, 8) => return Ok(0),
        (TSTAMP_TYPE, 1) => return Ok(clock(skb).into()),
        (_, 8) => return Err(NoField::Refused),
        _ => {}
    }
    let whole = u64::from(word(skb, at & !3)?);
    let part = whole >> (8 * (at & 3));
    Ok(if width == 4 { part } else { part & ((1 << (8 * width)) - 1) })
}

/// Writes a field, which is none of `cb` and `tc_classid`.
pub(super) fn write(skb: &mut Skb, at: u32, width: u32, value: u64) -> Result<(), NoField> {
    let word = value as u32;
    match (at, width) {
        (8, 4) => skb.mark = word,
        (12, 4) => {
            if word < NO_QUEUE {
                skb.rare_mut().queue_mapping = word as u16;
            }
        }
        (32, 4) => skb.priority = word,
        (44, 4) => skb.tc.index = word as u16,
        (TSTAMP, 8) => set_departure(skb, value),
        _ => return Err(NoField::Refused),
    }
    Ok(())
}

/// `skb->tstamp`: a qdisc that paces takes it for the time of departure, by `CLOCK_MONOTONIC`.
pub(super) fn set_departure(skb: &mut Skb, ns: u64) {
    use penstock_packet::skb::TxClock;
    skb.sender.departs = i64::try_from(ns).map_or(Time::MAX, Time::from_ns);
    if skb.is_noted()
        && let Some(mut txtime) = skb.rare().txtime
    {
        txtime.clock = TxClock::Monotonic;
        skb.rare_mut().txtime = Some(txtime);
    }
}

/// Whether it is IPv4 or IPv6.
pub(super) fn is_ip(skb: &Skb) -> bool {
    matches!(skb.l3, L3::Ipv4(_) | L3::Ipv6(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;

    #[test]
    fn fields_have_their_places() {
        let mut skb = packet(0, 100);
        (skb.mark, skb.priority, skb.tc.dev, skb.iif) = (0x0102_0304, 7, 3, 2);
        skb.rare_mut().vlan = Some((0x8100, 0x2005));
        let at = |skb: &Skb, at| read(skb, at, 4).unwrap();
        assert_eq!([0, 8, 32, 40, 36].map(|n| at(&skb, n)), [100, 0x0102_0304, 7, 3, 2]);
        // As the wire has it: 0x0800 and 0x8100.
        assert_eq!([16, 20, 24, 28].map(|n| at(&skb, n)), [0x0008, 1, 0x2005, 0x0081]);
        // Parts of a field.
        assert_eq!((read(&skb, 9, 1), read(&skb, 10, 2)), (Ok(3), Ok(0x0102)));
        assert_eq!(read(&skb, 9, 2), Err(NoField::Refused));
        // What of the socket is the kernel's alone to give, and what only other programs read.
        assert_eq!((read(&skb, 92, 4), read(&skb, 144, 8)), (Err(NoField::Refused), Err(NoField::Refused)));
    }

    #[test]
    fn few_fields_are_written() {
        let mut skb = packet(0, 100);
        for (at, width, value) in [(8, 4, 5), (12, 4, 2), (32, 4, 6), (44, 4, 0x1_0007), (152, 8, 1000)] {
            assert_eq!(write(&mut skb, at, width, value), Ok(()));
        }
        assert_eq!((skb.mark, skb.priority, skb.tc.index), (5, 6, 7));
        assert_eq!((skb.rare().queue_mapping, skb.sender.departs), (2, Time::from_ns(1000)));
        assert_eq!(write(&mut skb, 12, 4, 0xffff), Ok(()));
        assert_eq!(skb.rare().queue_mapping, 2);
        for (at, width) in [(0, 4), (16, 4), (8, 2), (152, 4), (40, 4)] {
            assert_eq!(write(&mut skb, at, width, 1), Err(NoField::Refused));
        }
    }
}
