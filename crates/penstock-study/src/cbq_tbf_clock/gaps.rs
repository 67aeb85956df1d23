//! Section 4.1: the gaps between packets, sent and received.

use super::{Evidence, J, Verdict};
use crate::evidence::Missing;
use penstock_measure::passage::share_below;

const RUN: &str = "4.1-figure-5";
/// When the interferer is on, seconds.
pub(super) const ON: (f64, f64) = (12.0, 27.0);

pub(super) fn judge(number: u32, e: &Evidence) -> Verdict {
    match number {
        12 => ct12(e),
        13 => ct13(e),
        14 => ct14(e),
        15 => ct15(e),
        16 => ct16(e),
        _ => ct17(e),
    }
}

/// Gaps of a traced flow: when sent, the gap as sent, the gap as received; ms. Only between packets that both arrived.
pub(super) fn gaps(e: &Evidence, run: &str) -> Result<Vec<(f64, f64, f64)>, Missing> {
    let pairs = e.flow(run, "observed")?.passages.windows(2).map(|w| (w[0], w[1]));
    let gaps: Vec<(f64, f64, f64)> =
        pairs.filter_map(|(a, b)| Some((b.1, (b.1 - a.1) * 1e3, (b.2? - a.2?) * 1e3))).collect();
    if gaps.len() < 100 { Err(format!("{run}: {} gaps are too few", gaps.len())) } else { Ok(gaps) }
}

fn is_on(time: f64) -> bool {
    (ON.0..ON.1).contains(&time)
}

/// Share of the gaps within a range of ms, sent and received.
fn share(gaps: &[(f64, f64, f64)], from: f64, to: f64) -> (f64, f64) {
    let of = |pick: fn(&(f64, f64, f64)) -> f64| {
        gaps.iter().map(pick).filter(|g| (from..to).contains(g)).count() as f64 / gaps.len().max(1) as f64
    };
    (of(|g| g.1), of(|g| g.2))
}

fn ct12(e: &Evidence) -> Verdict {
    let on: Vec<_> = gaps(e, RUN)?.into_iter().filter(|g| is_on(g.0)).collect();
    let (short, ten) = (share(&on, 0.0, 1.5), share(&on, 9.0, 11.5));
    let measured = format!(
        "gaps below 1.5 ms {:.1} % sent, {:.1} % received; of 9 to 11.5 ms {:.1} and {:.1} %",
        short.0 * 100.0,
        short.1 * 100.0,
        ten.0 * 100.0,
        ten.1 * 100.0
    );
    Ok(J::of(short.1 > short.0 && ten.1 > ten.0, "more between 0 and 5000 µs and at 10 ms", measured, ""))
}

fn ct13(e: &Evidence) -> Verdict {
    let flow = e.flow(RUN, "observed")?;
    let rate = |received: bool| {
        let within = flow.passages.iter().filter(|p| {
            let at = if received { p.2.unwrap_or(0.0) } else { p.1 };
            is_on(at)
        });
        within.map(|p| f64::from(p.0)).sum::<f64>() * 8.0 / (ON.1 - ON.0) / 1e6
    };
    let measured = format!(
        "{} lost; while it is on {:.3} Mbit/s sent, {:.3} received",
        flow.packets.2,
        rate(false),
        rate(true)
    );
    Ok(J::of(
        flow.packets.2 == 0 && (rate(true) / rate(false) - 1.0).abs() < 0.01,
        "neither slows down nor loses",
        measured,
        "",
    ))
}

/// Greatest distance between the distribution functions of the gaps sent and received.
fn distance(gaps: &[(f64, f64, f64)]) -> f64 {
    let sorted = |pick: fn(&(f64, f64, f64)) -> f64| {
        let mut all: Vec<f64> = gaps.iter().map(pick).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let (sent, received) = (sorted(|g| g.1), sorted(|g| g.2));
    // At steps of half a millisecond: what a packet's length does to its gap is no matter here.
    (0..200)
        .map(|i| f64::from(i) * 0.5)
        .map(|x| (share_below(&sent, x) - share_below(&received, x)).abs())
        .fold(0.0, f64::max)
}

fn ct14(e: &Evidence) -> Verdict {
    let mut all = Vec::new();
    for run in ["claim-CT14-300", "claim-CT14-500", "claim-CT14-750", RUN] {
        let on: Vec<_> = gaps(e, run)?.into_iter().filter(|g| is_on(g.0)).collect();
        all.push(distance(&on));
    }
    let cells: Vec<String> = all.iter().map(|d| format!("{d:.3}")).collect();
    let measured =
        format!("distance of the distributions {} for 300, 500, 750 Kbps, 1 Mbps", cells.join(", "));
    Ok(J::of(
        all.windows(2).all(|w| w[1] > w[0]),
        "less marked than with 1 Mbps",
        measured,
        "each more than the one before",
    ))
}

/// How much a received gap may differ from the sent one by the packets' lengths alone, ms: a full one takes 1.2 ms.
const LENGTH: f64 = 1.5;

fn ct15(e: &Evidence) -> Verdict {
    let all = gaps(e, RUN)?;
    let changed = |on: bool| {
        // A packet or two after its end still wait.
        let side: Vec<_> = all
            .iter()
            .filter(|g| is_on(g.0 - if on { 0.0 } else { 0.2 }) == on && (on || !is_on(g.0)))
            .collect();
        side.iter().filter(|g| (g.1 - g.2).abs() > LENGTH).count() as f64 / side.len().max(1) as f64
    };
    let (on, off) = (changed(true), changed(false));
    let measured = format!(
        "gaps changed by more than {LENGTH} ms: {:.1} % while it is on, {:.1} % else",
        on * 100.0,
        off * 100.0
    );
    Ok(J::of(on > 0.02 && off < 0.001, "only while the 12 Mbps flow is present", measured, ""))
}

fn ct16(e: &Evidence) -> Verdict {
    let on: Vec<f64> = gaps(e, RUN)?.into_iter().filter(|g| is_on(g.0)).map(|g| g.2 - g.1).collect();
    let mean = on.iter().sum::<f64>() / on.len().max(1) as f64;
    let square: f64 = on.iter().map(|d| (d - mean).powi(2)).sum();
    let product: f64 = on.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum();
    let correlation = product / square;
    let measured = format!(
        "change of one gap and of the next: correlation {correlation:.2}, sum {:.1} ms",
        on.iter().sum::<f64>()
    );
    Ok(J::of(
        correlation < -0.2,
        "longer before, shorter after",
        measured,
        "-0.5 where every delay is made good by the next gap",
    ))
}

/// How much longer each received gap was than sent, ms, with the packet's number; and the greatest and the next of them.
fn peak(e: &Evidence, run: &str) -> Result<(usize, f64, f64), Missing> {
    let longer = gaps(e, run)?.into_iter().enumerate().map(|(n, g)| (n + 1, g.2 - g.1));
    let mut sorted: Vec<(usize, f64)> = longer.collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok((sorted[0].0, sorted[0].1, sorted[1].1))
}

fn ct17(e: &Evidence) -> Verdict {
    let (at, most, next) = peak(e, "claim-CT17")?;
    let (_, without, _) = peak(e, RUN)?;
    let measured = format!(
        "with a pause of 100 ms packet {at} comes {most:.0} ms later than it was sent behind the one before, the next worst {next:.0}; \
         without it at most {without:.0}"
    );
    let note =
        "the pause and its place are put in: that another task makes such a peak is shown, not that one did";
    Ok(J::of(most > 2.0 * next && most > 2.0 * without, "a single peak near packet 3500", measured, note))
}
