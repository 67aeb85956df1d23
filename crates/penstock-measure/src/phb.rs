//! Per-hop behaviours judged at one device: the packets that it sent and lost, against what their code points promise.
//!
//! Sources: RFC 3246 section 2.2 (expedited forwarding), RFC 2597 sections 2 and 4 (assured forwarding), RFC 8622 sections 1 and 2
//! (lower effort).

/// A packet that a device sent. Times are nanoseconds from the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    /// Its code point, 0..=63, as it left.
    pub code: u8,
    /// What tells its flow from others.
    pub flow: u32,
    /// Length of the IP packet, bytes.
    pub bytes: u32,
    /// When it was given to the device.
    pub arrived_ns: i64,
    /// When its first bit was put on the wire.
    pub begun_ns: i64,
    /// When its last bit was.
    pub left_ns: i64,
}

/// The error terms of expedited forwarding at a configured rate, nanoseconds: by how much the worst packet was later than the rate
/// promises. `aggregate` (E_a) compares the j-th departure with the j-th to depart; `packet` (E_p) each packet with itself, so that
/// packets which overtake one another count against the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorTerms {
    /// E_a.
    pub aggregate_ns: i64,
    /// E_p.
    pub packet_ns: i64,
}

/// RFC 3246's error terms of the packets of an EF aggregate, of which none was lost, at `rate_bit_s`. `None` of no packets.
//= RFC 3246 section 2.2
//# f_j = max(a_j, min(d_j-1, f_j-1)) + l_j/R, for all j > 0
pub fn error_terms(packets: &[Carried], rate_bit_s: u64) -> Option<ErrorTerms> {
    if packets.is_empty() || rate_bit_s == 0 {
        return None;
    }
    let service = |p: &Carried| (u128::from(p.bytes) * 8_000_000_000 / u128::from(rate_bit_s)) as i64;
    let mut departures = packets.to_vec();
    departures.sort_by_key(|p| p.left_ns);
    let mut arrivals = packets.to_vec();
    arrivals.sort_by_key(|p| (p.arrived_ns, p.left_ns));
    let worst = |rows: &mut dyn Iterator<Item = (i64, i64, i64)>| {
        // Before the first packet both the departure and the target are at the beginning of time.
        let (mut target, mut departure, mut worst) = (i64::MIN, i64::MIN, i64::MIN);
        for (arrived, left, takes) in rows {
            target = arrived.max(departure.min(target)) + takes;
            departure = left;
            worst = worst.max(left - target);
        }
        worst
    };
    let mut by_place = arrivals.iter().zip(&departures).map(|(a, d)| (a.arrived_ns, d.left_ns, service(d)));
    let mut by_packet = arrivals.iter().map(|p| (p.arrived_ns, p.left_ns, service(p)));
    Some(ErrorTerms { aggregate_ns: worst(&mut by_place), packet_ns: worst(&mut by_packet) })
}

/// Least and greatest delay of packets from their arrival to their last bit, nanoseconds. `None` of no packets.
pub fn delays(packets: &[Carried]) -> Option<(i64, i64)> {
    let delays = packets.iter().map(|p| p.left_ns - p.arrived_ns);
    Some((delays.clone().min()?, delays.max()?))
}

/// How many packets left behind one of their own flow that had come later.
//= RFC 2597 section 2
//# A DS node MUST NOT reorder AF packets of the same microflow if they belong to the same AF class
pub fn reordered(packets: &[Carried]) -> u64 {
    let mut order = packets.to_vec();
    order.sort_by_key(|p| p.begun_ns);
    let mut latest: std::collections::BTreeMap<u32, i64> = std::collections::BTreeMap::new();
    let mut count = 0;
    for p in &order {
        let seen = latest.entry(p.flow).or_insert(p.arrived_ns);
        count += u64::from(p.arrived_ns < *seen);
        *seen = (*seen).max(p.arrived_ns);
    }
    count
}

/// By how much a lower drop precedence of an AF class lost more than a higher one, as shares; 0 or less where the order is kept.
/// `precedences`: packets sent and lost of AFx1, AFx2, AFx3. `None` where fewer than two of them had packets.
//= RFC 2597 section 2
//# Within an AF class, a DS node MUST NOT forward an IP packet with smaller probability if it contains a drop precedence value p than if it contains a drop precedence value q when p < q
pub fn precedence(precedences: [(u64, u64); 3]) -> Option<f64> {
    let loss = |(sent, lost): (u64, u64)| (sent + lost > 0).then(|| lost as f64 / (sent + lost) as f64);
    let losses: Vec<f64> = precedences.into_iter().filter_map(loss).collect();
    let pairs =
        losses.iter().enumerate().flat_map(|(i, low)| losses[i + 1..].iter().map(move |high| low - high));
    pairs.reduce(f64::max)
}

/// The share of the packets with `code` that were put on the wire while a packet of another code point waited for it. `None` where
/// there are none. A device that yields as lower effort should has 0, but for what its card had already taken.
//= RFC 8622 section 2
//# "best-effort" traffic SHOULD be preferred over LE traffic
pub fn ahead(packets: &[Carried], code: u8) -> Option<f64> {
    let mut order = packets.to_vec();
    order.sort_by_key(|p| p.begun_ns);
    // From the end: the earliest arrival of what is sent later.
    let (mut earliest, mut own, mut ahead) = (i64::MAX, 0u64, 0u64);
    for p in order.iter().rev() {
        if p.code == code {
            own += 1;
            ahead += u64::from(earliest < p.begun_ns);
        } else {
            earliest = earliest.min(p.arrived_ns);
        }
    }
    (own > 0).then(|| ahead as f64 / own as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(code: u8, arrived: i64, begun: i64, left: i64) -> Carried {
        Carried { code, flow: 1, bytes: 125, arrived_ns: arrived, begun_ns: begun, left_ns: left }
    }

    #[test]
    fn a_device_that_serves_at_its_rate_has_no_error() {
        // 1000 bits at 1 Mbit/s: a millisecond each, back to back.
        const MS: i64 = 1_000_000;
        let served: Vec<Carried> = (0..5).map(|i| packet(46, 0, i * MS, (i + 1) * MS)).collect();
        assert_eq!(error_terms(&served, 1_000_000), Some(ErrorTerms { aggregate_ns: 0, packet_ns: 0 }));
        // Half the rate: each further packet is a millisecond later.
        let slow: Vec<Carried> = (0..5).map(|i| packet(46, 0, 2 * i * MS, 2 * (i + 1) * MS)).collect();
        assert_eq!(error_terms(&slow, 1_000_000).unwrap().packet_ns, 5 * MS);
        // Served ahead of the rate: a target may lie in the past of the next, which does not make that one late.
        let early = [packet(46, 0, 0, MS / 10), packet(46, MS, MS, 2 * MS)];
        assert!(error_terms(&early, 1_000_000).unwrap().packet_ns <= 0);
        // Overtaken: the aggregate is served in time, one packet of it is not.
        let swapped = [packet(46, 0, MS, 2 * MS), packet(46, 1, 0, MS)];
        let terms = error_terms(&swapped, 1_000_000).unwrap();
        assert!(terms.aggregate_ns <= 0 && terms.packet_ns == MS, "{terms:?}");
        assert_eq!(error_terms(&[], 1_000_000), None);
        assert_eq!(delays(&slow), Some((2 * MS, 10 * MS)));
    }

    #[test]
    fn assured_forwarding_keeps_order_and_precedence() {
        let kept = [packet(10, 0, 5, 6), packet(12, 1, 7, 8)];
        assert_eq!(reordered(&kept), 0);
        assert_eq!(reordered(&[packet(10, 0, 7, 8), packet(12, 1, 5, 6)]), 1);
        let other = Carried { flow: 2, ..packet(12, 1, 5, 6) };
        assert_eq!(reordered(&[packet(10, 0, 7, 8), other]), 0);
        assert_eq!(precedence([(100, 0), (50, 50), (0, 100)]), Some(-0.5));
        assert_eq!(precedence([(50, 50), (100, 0), (0, 0)]), Some(0.5));
        assert_eq!(precedence([(1, 1), (0, 0), (0, 0)]), None);
    }

    #[test]
    fn lower_effort_goes_when_nobody_else_waits() {
        const LE: u8 = 1;
        // Alone on the wire; then a packet of best effort comes while another of LE is being sent; then it is jumped.
        let first = packet(LE, 0, 0, 10);
        let second = packet(LE, 0, 10, 20);
        let best = packet(0, 15, 20, 30);
        assert_eq!(ahead(&[first, second, best], LE), Some(0.0));
        let jumped = [first, packet(LE, 0, 20, 30), packet(0, 15, 30, 40)];
        assert_eq!(ahead(&jumped, LE), Some(0.5));
        assert_eq!(ahead(&[best], LE), None);
    }
}
