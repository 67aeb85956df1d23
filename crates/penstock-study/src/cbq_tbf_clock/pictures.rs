//! Figures 4 to 19.

use super::{Evidence, clock, gaps};
use crate::figures::{Figure, chart, curve, rates, together};
use penstock_measure::number::Unit;
use penstock_measure::passage::density;
use penstock_measure::plot::Stroke;

/// The study's figures from our runs.
pub fn figures(e: &Evidence) -> Vec<Figure> {
    let mut all = Vec::new();
    for (name, run, title) in [
        ("figure-4", "4-figure-4", "Figure 4: CBQ, Pareto gaps, exponential sizes"),
        ("figure-7", "5-figure-7", "Figure 7: TCP and UDP without a scheduler"),
        ("figure-8", "5-figure-8", "Figure 8: the same with CBQ"),
        ("figure-9", "5.1-figure-9", "Figure 9: TCP and UDP without a scheduler"),
        ("figure-11", "5.1-figure-11", "Figure 11: TCP and UDP with CBQ"),
        ("figure-14", "6.2.1-figure-14", "Figure 14: TBF limits, jiffies, 100 Hz"),
        ("figure-15", "6.2.1-figure-15", "Figure 15: TBF limits, cycle counter, 1024 Hz"),
        ("figure-16", "6.2.2-figure-16", "Figure 16: CBQ as a limiter, cycle counter, 10000 Hz"),
        ("figure-17", "6.2.2-figure-17", "Figure 17: small packets, cycle counter, 100 Hz"),
        ("figure-18", "6.2.2-figure-18", "Figure 18: small packets, cycle counter, 1024 Hz"),
    ] {
        if let Ok(run) = e.run(run) {
            let mut picture = rates(title, run);
            if matches!(name, "figure-7" | "figure-8") {
                together(&mut picture, "all together");
            }
            all.push(Figure::of(name, &picture));
        }
    }
    for (name, run, title) in [
        ("figure-10", "5.1-figure-9", "Figure 10: congestion window without a scheduler"),
        ("figure-12", "5.1-figure-11", "Figure 12: congestion window with CBQ"),
    ] {
        if let (Ok(run), Ok(flow)) = (e.run(run), e.flow(run, "tcp")) {
            let mut picture = chart(title, Unit::Count, (0.0, run.duration), " s");
            curve(&mut picture, "segments", Stroke::Line, flow.cwnd.clone());
            all.push(Figure::of(name, &picture));
        }
    }
    all.extend(gap_figures(e));
    let mut picture = chart("Figure 13: density of the round trip", Unit::Share, (0.0, 5.0), " ms");
    for (name, run) in [("without a scheduler", "6.1-figure-13-none"), ("with CBQ", "6.1-figure-13-cbq")] {
        if let Ok(trips) = clock::round_trips(e, run) {
            let values: Vec<f64> = trips.iter().map(|t| t.1).collect();
            curve(&mut picture, name, Stroke::Line, density(&values, 0.1, 5.0));
        }
    }
    all.push(Figure::of("figure-13", &picture));
    let mut picture = chart("Figure 19: the router's processor", Unit::Share, (0.0, 70.0), " s");
    for (name, run) in [("100 Hz", "6.2.2-figure-17"), ("10000 Hz", "6.3-figure-19-10000")] {
        if let Some(points) = e.run(run).ok().and_then(|r| r.processor_over_time.get("router")) {
            curve(&mut picture, name, Stroke::Line, points.clone());
        }
    }
    all.push(Figure::of("figure-19", &picture));
    all
}

fn gap_figures(e: &Evidence) -> Vec<Figure> {
    let Ok(all) = gaps::gaps(e, "4.1-figure-5") else { return Vec::new() };
    let on: Vec<_> = all.iter().filter(|g| (gaps::ON.0..gaps::ON.1).contains(&g.0)).collect();
    let mut picture =
        chart("Figure 5: density of the time between packets", Unit::Share, (0.0, 20_000.0), " µs");
    for (name, values) in [
        ("sent", on.iter().map(|g| g.1 * 1e3).collect::<Vec<f64>>()),
        ("received", on.iter().map(|g| g.2 * 1e3).collect()),
    ] {
        curve(&mut picture, name, Stroke::Line, density(&values, 250.0, 20_000.0));
    }
    let mut by_number =
        chart("Figure 6: time between packets", Unit::Millisecond, (0.0, all.len() as f64), " packets");
    for (name, pick) in [("sent", 1), ("received", 2)] {
        let value = |g: &(f64, f64, f64)| if pick == 1 { g.1 } else { g.2 };
        let points = all.iter().enumerate().map(|(i, g)| (i as f64, value(g))).collect();
        curve(&mut by_number, name, Stroke::Dots, points);
    }
    vec![Figure::of("figure-5", &picture), Figure::of("figure-6", &by_number)]
}
