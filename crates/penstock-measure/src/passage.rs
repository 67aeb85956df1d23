//! What became of the datagrams of a flow, one by one: gaps, delays, loss and its pattern, order.

use crate::quantile::Distribution;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// One datagram; the order of sending is its number, from 0.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Passage {
    /// Payload, bytes.
    pub bytes: u32,
    /// When it was sent, seconds.
    pub sent_s: f64,
    /// When it arrived, seconds; `None`: it did not.
    pub received_s: Option<f64>,
}

/// What a receiver that knows the sender's times makes of them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Analysis {
    /// Gaps between packets as sent, ms.
    pub sent_gap_ms: Option<Distribution>,
    /// Gaps between packets as they arrived, in the order of arrival, ms.
    pub received_gap_ms: Option<Distribution>,
    /// Jitter of RFC 3550 (section 6.4.1): a running mean of the changes of delay, at the end, ms.
    pub jitter_rfc3550_ms: f64,
    /// Mean of the changes of delay from packet to packet without sign (ipdv, RFC 3393), ms.
    pub ipdv_mean_ms: f64,
    /// Delay variation above the least delay that 99 % keep to (pdv, RFC 5481), ms.
    pub pdv_p99_ms: f64,
    /// How many losses in a row there were, how often: `(1, 12)` are twelve single losses.
    pub loss_runs: Vec<(u64, u64)>,
    /// Chance that a packet is lost if the one before it was; absent where none was.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub loss_after_loss: Option<f64>,
    /// Packets that arrived after one sent later (RFC 4737, type-P-reordered).
    pub reordered_packets: u64,
    /// The most packets that one of them came too late by (RFC 4737, reordering extent).
    pub reordering_extent: u64,
}

impl Analysis {
    /// Of the datagrams in the order of sending; `None` for fewer than two that arrived.
    pub fn of(passages: &[Passage]) -> Option<Analysis> {
        // Arrivals in their order: time, number, delay.
        let mut arrived: Vec<(f64, usize, f64)> = passages
            .iter()
            .enumerate()
            .filter_map(|(i, p)| p.received_s.map(|r| (r, i, r - p.sent_s)))
            .collect();
        if arrived.len() < 2 {
            return None;
        }
        arrived.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let ms =
            |gaps: Vec<f64>| Distribution::of(&mut gaps.into_iter().map(|g| g * 1e3).collect::<Vec<f64>>());
        let changes: Vec<f64> = arrived.windows(2).map(|w| (w[1].2 - w[0].2).abs()).collect();
        let jitter = changes.iter().fold(0.0, |j, d| j + (d - j) / 16.0);
        let mut delays: Vec<f64> = arrived.iter().map(|a| a.2).collect();
        delays.sort_by(f64::total_cmp);
        let (runs, after) = losses(passages);
        let (reordered, extent) = reordering(&arrived);
        Some(Analysis {
            sent_gap_ms: ms(passages.windows(2).map(|w| w[1].sent_s - w[0].sent_s).collect()),
            received_gap_ms: ms(arrived.windows(2).map(|w| w[1].0 - w[0].0).collect()),
            jitter_rfc3550_ms: jitter * 1e3,
            ipdv_mean_ms: changes.iter().sum::<f64>() / changes.len() as f64 * 1e3,
            pdv_p99_ms: (crate::quantile::of_sorted(&delays, 0.99) - delays[0]) * 1e3,
            loss_runs: runs,
            loss_after_loss: after,
            reordered_packets: reordered,
            reordering_extent: extent,
        })
    }
}

/// Lengths of the runs of losses with how often each is there; the chance of a loss after a loss.
fn losses(passages: &[Passage]) -> (Vec<(u64, u64)>, Option<f64>) {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    let (mut run, mut lost, mut again) = (0u64, 0u64, 0u64);
    let mut end = |run: u64| {
        if run > 0 {
            match runs.binary_search_by_key(&run, |r| r.0) {
                Ok(at) => runs[at].1 += 1,
                Err(at) => runs.insert(at, (run, 1)),
            }
        }
    };
    for (i, passage) in passages.iter().enumerate() {
        if passage.received_s.is_some() {
            end(std::mem::take(&mut run));
            continue;
        }
        again += u64::from(run > 0);
        // What nothing follows cannot be followed by a loss.
        lost += u64::from(i + 1 < passages.len());
        run += 1;
    }
    end(run);
    (runs, (lost > 0).then(|| again as f64 / lost as f64))
}

/// Packets that came after one sent later, and the most packets that one of them let pass.
fn reordering(arrived: &[(f64, usize, f64)]) -> (u64, u64) {
    let (mut reordered, mut extent, mut highest) = (0, 0, 0usize);
    for (at, &(_, number, _)) in arrived.iter().enumerate() {
        if at > 0 && number < highest {
            reordered += 1;
            let first_later = arrived[..at].iter().position(|a| a.1 > number).unwrap_or(at);
            extent = extent.max((at - first_later) as u64);
        }
        highest = highest.max(number);
    }
    (reordered, extent)
}

/// Shares of the values in bins of a width, from 0 up to a greatest: middle of the bin, share. What lies beyond is in no bin.
pub fn density(values: &[f64], width: f64, most: f64) -> Vec<(f64, f64)> {
    let mut bins = vec![0u32; (most / width).round().max(0.0) as usize];
    for value in values.iter().filter(|v| **v >= 0.0) {
        if let Some(bin) = bins.get_mut((value / width) as usize) {
            *bin += 1;
        }
    }
    let all = values.len().max(1) as f64;
    bins.iter().enumerate().map(|(i, n)| ((i as f64 + 0.5) * width, f64::from(*n) / all)).collect()
}

/// Share of sorted values that are not above `x`: their distribution function.
pub fn share_below(sorted: &[f64], x: f64) -> f64 {
    sorted.partition_point(|v| *v <= x) as f64 / sorted.len().max(1) as f64
}

/// The datagrams as a table: `number,bytes,sent_s,received_s`, the last empty for a lost one.
pub fn csv(passages: &[Passage]) -> String {
    let mut text = String::from("number,bytes,sent_s,received_s\n");
    for (i, p) in passages.iter().enumerate() {
        let _ = write!(text, "{i},{},{:.9},", p.bytes, p.sent_s);
        if let Some(received) = p.received_s {
            let _ = write!(text, "{received:.9}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passages(received: &[Option<f64>]) -> Vec<Passage> {
        let passage =
            |(i, r): (usize, &Option<f64>)| Passage { bytes: 100, sent_s: i as f64, received_s: *r };
        received.iter().enumerate().map(passage).collect()
    }

    #[test]
    fn losses_have_a_pattern() {
        let all = passages(&[Some(0.1), None, None, Some(3.1), None, Some(5.1), None]);
        let analysis = Analysis::of(&all).unwrap();
        assert_eq!(analysis.loss_runs, [(1, 2), (2, 1)]);
        // Three losses have a packet after them, one of these is lost as well.
        assert_eq!(analysis.loss_after_loss, Some(1.0 / 3.0));
        assert_eq!(analysis.reordered_packets, 0);
        assert_eq!(csv(&all).lines().nth(2), Some("1,100,1.000000000,"));
    }

    #[test]
    fn reordering_is_rfc_4737_s() {
        // The order of arrival is 0 2 3 1 4: packet 1 let two pass.
        let analysis =
            Analysis::of(&passages(&[Some(0.1), Some(3.5), Some(2.1), Some(3.1), Some(4.1)])).unwrap();
        assert_eq!((analysis.reordered_packets, analysis.reordering_extent), (1, 2));
    }

    #[test]
    fn a_steady_flow_has_no_jitter() {
        let steady = Analysis::of(&passages(&[Some(0.5), Some(1.5), Some(2.5)])).unwrap();
        assert_eq!((steady.jitter_rfc3550_ms, steady.ipdv_mean_ms, steady.pdv_p99_ms), (0.0, 0.0, 0.0));
        assert_eq!(steady.received_gap_ms.unwrap().mean, 1000.0);
        assert!(Analysis::of(&passages(&[Some(0.1), None])).is_none());
        let late = Analysis::of(&passages(&[Some(0.5), Some(1.6), Some(2.5)])).unwrap();
        assert!((late.ipdv_mean_ms - 100.0).abs() < 1e-6 && late.jitter_rfc3550_ms > 5.0);
    }

    #[test]
    fn densities_and_distribution_functions_agree() {
        let values = [0.5, 1.5, 1.6, 9.0];
        assert_eq!(density(&values, 1.0, 3.0), [(0.5, 0.25), (1.5, 0.5), (2.5, 0.0)]);
        assert_eq!(share_below(&values, 1.55), 0.5);
    }
}
