//! The packets as a pcapng whose comments say what became of them.

use super::pcap::Writer;
use super::play::{Fate, Played};
use super::read::{Traffic, What};
use super::{Replay, fate_text};
use penstock_packet::Skb;
use penstock_packet::skb::HEADER_MAX;
use std::io::Write;

/// Writes every packet at the moment of its fate, the bytes that the machine changed (ToS, addresses) as they left.
///
/// # Errors
/// What the writer says.
pub fn write(replay: &Replay, out: impl Write) -> Result<(), String> {
    let said = |e: std::io::Error| e.to_string();
    let version = concat!("penstock ", env!("CARGO_PKG_VERSION"));
    let mut writer = Writer::new(out, version, &replay.dev).map_err(said)?;
    for (t_ns, i) in by_time(&replay.traffic, &replay.played) {
        let moment = &replay.traffic.moments[i];
        let What::Packet(skb) = &moment.what else { continue };
        let data = match &replay.played.fates[i] {
            Fate::Left(left) => changed(&moment.bytes, skb, &left.skb),
            _ => moment.bytes.clone(),
        };
        let t_ns = (replay.traffic.epoch_ns + t_ns).max(0) as u64;
        let len = (data.len() as u32).max(skb.len + if skb.rare().vlan.is_some() { 4 } else { 0 });
        writer.packet(t_ns, &data, len, &fate_text(replay, i)).map_err(said)?;
    }
    writer.finish().map_err(said)
}

/// The packets' numbers by when their fate was known; those without one stand at the end.
fn by_time(traffic: &Traffic, played: &Played) -> Vec<(i64, usize)> {
    let when = |i: usize| match &played.fates[i] {
        Fate::Left(left) => left.t_ns,
        Fate::Dropped(lost) => lost.t_ns,
        Fate::Received => traffic.moments[i].t_ns,
        Fate::Unknown => played.end_ns,
    };
    let mut order: Vec<(i64, usize)> = (0..traffic.moments.len()).map(|i| (when(i), i)).collect();
    // Of one moment: departures in their own order.
    let place: std::collections::BTreeMap<u32, usize> =
        played.order.iter().enumerate().map(|(n, &i)| (i, n)).collect();
    order.sort_by_key(|&(t, i)| (t, place.get(&(i as u32)).copied().unwrap_or(usize::MAX), i));
    order
}

/// The captured bytes with those header bytes that differ between the packet as it came and as it left. A frame whose headers do not
/// stand where this program writes them (options, tags) stays as it was.
fn changed(captured: &[u8], before: &Skb, after: &Skb) -> Vec<u8> {
    let (mut was, mut is) = ([0; HEADER_MAX], [0; HEADER_MAX]);
    let (long, same) = (before.header_bytes(&mut was), after.header_bytes(&mut is));
    let mut bytes = captured.to_vec();
    // The first byte of the IP header tells where the next one stands.
    let plain = long == same && bytes.get(12..15) == was.get(12..15) && before.rare().vlan.is_none();
    if plain {
        for ((byte, was), is) in bytes.iter_mut().zip(&was[..long]).zip(&is) {
            if was != is {
                *byte = *is;
            }
        }
    }
    bytes
}
