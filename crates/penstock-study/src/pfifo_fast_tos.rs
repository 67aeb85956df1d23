//! The judge of the claims PF1 to PF9: pfifo_fast's bands by ToS, seen from a sending host.
//!
//! Source: a web article in Japanese on the behaviour of pfifo_fast by ToS; undated, its author not named.

use super::evidence::{Evidence, Missing, mean};
use super::figures::{Figure, chart, curve};
use super::{Judgement, Judgement as J};
use penstock_measure::number::Unit;
use penstock_measure::plot::Stroke;

type Verdict = Result<Judgement, Missing>;

const UNCHANGED: &str = "sudo iperf3 -c 192.168.1.173 -u -b 1G -p 5201";
/// The four conditions: experiment, the second process's command, what the article printed (seconds 2 to 9, Mbit/s).
const RUNS: [(&str, &str, &str); 4] = [
    ("1-none", "sudo iperf3 -c 192.168.1.173 -u -b 1G -p 5202", "475 and 476 Mbit/s"),
    (
        "2-minimal-delay",
        "sudo iperf3 -c 192.168.1.173 -u -b 1G -p 5202 -S 16",
        "253 to 289 against 657 to 698 Mbit/s",
    ),
    (
        "3-maximal-throughput",
        "sudo iperf3 -c 192.168.1.173 -u -b 1G -p 5202 -S 8",
        "668 to 698 against 253 to 296 Mbit/s",
    ),
    ("4-maximal-reliability", "sudo iperf3 -c 192.168.1.173 -u -b 1G -p 5202 -S 4", "476 and 475 Mbit/s"),
];
/// How far apart two equal processes may be, as a share of both together.
const EQUAL: f64 = 0.01;
/// How far a share may be from the article's, of both together.
const NEAR: f64 = 0.05;

/// Judges one claim.
pub fn judge(id: &str, e: &Evidence) -> Judgement {
    let verdict = match id {
        "PF1" => pf1(e),
        "PF2" => pf2(e),
        "PF3" => equal(e, 0),
        "PF4" => pf4(e),
        "PF5" => pf5(e),
        "PF6" => pf6(e),
        "PF7" => equal(e, 3),
        "PF8" => pf8(e),
        "PF9" => pf9(e),
        _ => Err(format!("no judge for {id}")),
    };
    verdict.unwrap_or_else(J::open)
}

/// Mean rates of both processes in the seconds when both ran, Mbit/s: unchanged, changed.
fn both(e: &Evidence, run: usize) -> Result<(f64, f64), Missing> {
    let (experiment, changed, _) = RUNS[run];
    let rate = |command: &str| {
        let rows = &e.app(experiment, "client", command, 0)?.intervals;
        let inner = rows.get(1..rows.len().saturating_sub(1)).filter(|r| !r.is_empty());
        let inner = inner.ok_or_else(|| format!("{experiment}: `{command}` printed no rows"))?;
        Ok::<f64, Missing>(mean(inner.iter().map(|r| r.2)) / 1e6)
    };
    Ok((rate(UNCHANGED)?, rate(changed)?))
}

/// Rates over the whole runs, Mbit/s.
fn whole(e: &Evidence, run: usize) -> Result<(f64, f64), Missing> {
    let (experiment, changed, _) = RUNS[run];
    Ok((e.mbit(experiment, "client", UNCHANGED)?, e.mbit(experiment, "client", changed)?))
}

fn share(of: f64, other: f64) -> f64 {
    of / (of + other)
}

/// What left while the other band had packets waiting: none, but for the frame that the card had begun.
fn pf1(e: &Evidence) -> Verdict {
    let (high, low) = (e.flow("claim-PF1", "band 0")?, e.flow("claim-PF1", "band 1")?);
    // Band 0 is offered 14 of 10 Mbit/s from second 2 on; its queue is there a moment later and till its last packet has left.
    let arrivals: Vec<f64> = high.passages.iter().filter_map(|p| p.2).collect();
    let last = arrivals.last().copied().ok_or("nothing of band 0 arrived")?;
    let within = |t: &&f64| **t > 2.05 && **t < last;
    let seen: Vec<f64> = low.passages.iter().filter_map(|p| p.2).collect();
    let (between, outside) =
        (seen.iter().filter(within).count(), seen.iter().filter(|t| **t < 2.0 || **t > last).count());
    let measured = format!(
        "{between} packets of band 1 in {:.1} s of backlog in band 0 ({} of band 0), {outside} before and after",
        last - 2.05,
        arrivals.len()
    );
    Ok(J::of(
        between == 0 && outside > 500 && arrivals.len() > 1000,
        "band n waits for those before it",
        measured,
        "",
    ))
}

fn pf2(e: &Evidence) -> Verdict {
    let rate = |tos: u32| Ok::<f64, Missing>(e.flow("claim-PF2", &format!("tos {tos}"))?.frame_rate() / 1e6);
    let (delay, throughput, reliability, none) = (rate(16)?, rate(8)?, rate(4)?, rate(0)?);
    let measured = format!(
        "of 10 Mbit/s, each offered 6.3: ToS 16 {delay:.2}, 4 {reliability:.2}, 0 {none:.2}, 8 {throughput:.2} Mbit/s"
    );
    let together = share(reliability, none);
    let ok = delay > 6.0 && (0.4..0.6).contains(&together) && reliability + none > 2.5 && throughput < 0.1;
    Ok(J::of(
        ok,
        "16: band 0, 8: band 2, 4 and none: band 1",
        measured,
        "by what each gets of a line that is too small",
    ))
}

/// PF3 and PF7: equal within a point, and what the article printed within five.
fn equal(e: &Evidence, run: usize) -> Verdict {
    let (a, b) = both(e, run)?;
    let ok = (share(a, b) - 0.5).abs() <= EQUAL;
    let measured =
        format!("{a:.1} and {b:.1} Mbit/s: {:.1} to {:.1} %", share(a, b) * 100.0, share(b, a) * 100.0);
    Ok(J::of(ok, RUNS[run].2, measured, ""))
}

fn pf4(e: &Evidence) -> Verdict {
    let (unchanged, changed) = whole(e, 1)?;
    let measured = format!("{changed:.0} against {unchanged:.0} Mbit/s over the whole runs");
    Ok(J::of(changed > unchanged, "692 against 309 Mbit/s", measured, ""))
}

fn pf5(e: &Evidence) -> Verdict {
    let (unchanged, changed) = both(e, 1)?;
    let printed = share(270.5, 680.5);
    let ours = share(unchanged, changed);
    let measured =
        format!("{unchanged:.0} against {changed:.0} Mbit/s while both ran: {:.1} %", ours * 100.0);
    Ok(J::of(
        (ours - printed).abs() <= NEAR && unchanged > 100.0,
        "253 to 289 Mbit/s, some 28 %",
        measured,
        "a writer that filled its buffer is woken when half of it is free; by then what waits is in the card, where bands do not count",
    ))
}

fn pf6(e: &Evidence) -> Verdict {
    let (unchanged, changed) = both(e, 2)?;
    let (other, favoured) = both(e, 1)?;
    let (ours, before) = (share(unchanged, changed), share(favoured, other));
    let measured = format!(
        "{unchanged:.0} against {changed:.0} Mbit/s: {:.1} %, with minimal delay {:.1} %",
        ours * 100.0,
        before * 100.0
    );
    Ok(J::of(ours > 0.5 && (ours - before).abs() <= NEAR, RUNS[2].2, measured, ""))
}

fn pf8(e: &Evidence) -> Verdict {
    let parts = [pf4(e)?, pf6(e)?, equal(e, 3)?];
    let held = parts.iter().filter(|p| p.holds()).count();
    Ok(J::of(held == 3, "PF4, PF6, PF7", format!("{held} of 3 hold"), ""))
}

fn pf9(e: &Evidence) -> Verdict {
    let (with, without) = (e.flow("claim-PF9", "important")?, e.flow("claim-PF9", "the same without ToS")?);
    let delay = |f: &super::evidence::FlowRun| f.owd_ms.map_or(f64::NAN, |d| d.1);
    let measured = format!(
        "with ToS 16: {:.2} % lost, at most {:.2} ms; without: {:.1} % lost, at most {:.0} ms",
        with.loss() * 100.0,
        delay(with),
        without.loss() * 100.0,
        delay(without)
    );
    let ok = with.packets.2 == 0 && with.packets.1 > 900 && delay(with) < 5.0 && delay(without) > 10.0;
    Ok(J::of(
        ok,
        "gets through more likely",
        measured,
        "a call of 64 kbit/s beside 20 Mbit/s on a line of 10",
    ))
}

/// The article has tables only: the rows of its eight runs as curves, where each second ends.
pub fn figures(e: &Evidence) -> Vec<Figure> {
    let mut all = Vec::new();
    for (experiment, changed, _) in RUNS {
        let mut picture = chart(experiment, Unit::BitPerSecond, (0.0, 10.0), " s");
        for (name, command) in [("unchanged", UNCHANGED), ("changed", changed)] {
            if let Ok(app) = e.app(experiment, "client", command, 0) {
                curve(&mut picture, name, Stroke::Line, app.intervals.iter().map(|r| (r.1, r.2)).collect());
            }
        }
        all.push(Figure::of(experiment, &picture));
    }
    all
}
