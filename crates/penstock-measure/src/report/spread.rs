//! How delays are spread: distribution functions, boxes, and throughput beside delay.

use super::Page;
use super::panels::Names;
use crate::live::{Axis, Curve, Live, Panel};
use crate::number::{Unit, significant};
use crate::plot::{COLOURS, Chart, Line, Stroke, escape};
use crate::quantile::{SHARES, of_sorted};
use std::fmt::Write as _;

/// The delays of something: quantiles at [`SHARES`].
struct Delays {
    name: String,
    colour: usize,
    /// How many were measured.
    weight: f64,
    quantiles: Vec<f64>,
    mean: f64,
}

impl Delays {
    fn at(&self, share: f64) -> f64 {
        let at = SHARES.iter().position(|s| *s == share).unwrap_or(0);
        self.quantiles[at]
    }
}

fn all(page: &Page<'_>, names: &Names<'_>) -> Vec<Delays> {
    let mut found = Vec::new();
    let mut samples = |name: &str, points: &[(f64, f64)]| {
        let mut values: Vec<f64> = points.iter().map(|p| p.1).filter(|y| y.is_finite()).collect();
        if values.len() < 5 {
            return;
        }
        values.sort_by(f64::total_cmp);
        found.push(Delays {
            name: format!("{name} round trip"),
            colour: names.colour(name),
            weight: 1e200 + values.len() as f64,
            quantiles: SHARES.iter().map(|q| of_sorted(&values, *q)).collect(),
            mean: values.iter().sum::<f64>() / values.len() as f64,
        });
    };
    let r = page.record;
    for app in &r.apps {
        samples(&app.name, page.series.points(&app.host, &app.name, "rtt_ms"));
    }
    for flow in r.flows.iter().filter(|f| f.app.is_none()) {
        samples(&flow.name, page.series.points("", &format!("flow {}", flow.name), "rtt_ms"));
    }
    let whole = |q: &[f64]| q.len() == SHARES.len();
    for flow in
        r.flows.iter().filter(|f| whole(&f.owd_quantiles_ms) && f.proto != "icmp" && f.rtt_ms.is_none())
    {
        found.push(Delays {
            name: format!("{} one way", names.called(flow)),
            colour: names.colour(&flow.name),
            weight: flow.received_packets as f64,
            quantiles: flow.owd_quantiles_ms.clone(),
            mean: flow.owd_ms.map_or(f64::NAN, |d| d.mean),
        });
    }
    let next = found.len();
    for (n, together) in r.together.iter().enumerate().filter(|(_, t)| whole(&t.owd_quantiles_ms)) {
        found.push(Delays {
            name: format!("{}, all {}, one way", together.name, together.flows),
            colour: next + n,
            weight: 1e100,
            quantiles: together.owd_quantiles_ms.clone(),
            mean: together.owd_ms.map_or(f64::NAN, |d| d.mean),
        });
    }
    found
}

/// All of it.
pub(super) fn charts(page: &Page<'_>, names: &Names<'_>, live: &mut Live) -> String {
    let mut delays = all(page, names);
    // Few enough that each may have its own colour: a program's probe and its flows would look alike.
    if delays.len() <= COLOURS {
        delays.iter_mut().enumerate().for_each(|(n, d)| d.colour = n);
    }
    function(&delays, live) + &boxes(&delays) + &ellipses(page, names)
}

/// The share of delays up to each.
fn function(delays: &[Delays], live: &mut Live) -> String {
    let far = delays.iter().map(|d| d.at(0.99)).fold(0.0f64, f64::max);
    let mut panel = Panel::over_time("cdf", "Share of delays up to …", Unit::Share, 0.0);
    panel.axis = Axis::Other(" ms");
    panel.x = (0.0, far.max(0.001) * 1.05);
    panel.top = Some(1.0);
    for d in delays {
        // The least delay is where the function leaves zero.
        let mut points: Vec<(f64, f64)> = vec![(d.at(0.0) * 0.9999, 0.0)];
        for (&delay, &share) in d.quantiles.iter().zip(&SHARES) {
            match points.last_mut().filter(|p| p.0 >= delay) {
                Some(last) => last.1 = share,
                None => points.push((delay, share)),
            }
        }
        points.retain(|p| p.0 <= panel.x.1);
        panel.curves.push(Curve { weight: d.weight, ..Curve::new(d.name.clone(), d.colour, points) });
    }
    panel.note = "Steep and left is good. The axis ends a little above the 99th percentiles.".to_owned();
    live.figure(&panel)
}

/// Most boxes of a picture.
const BOXES: usize = 16;

/// Boxes from quartile to quartile with the median; whiskers to the 1st and 99th percentile, a dot at the greatest.
fn boxes(delays: &[Delays]) -> String {
    if delays.is_empty() {
        return String::new();
    }
    let mut order: Vec<&Delays> = delays.iter().collect();
    order.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let shown = &order[..order.len().min(BOXES)];
    let (least, most) =
        shown.iter().fold((f64::INFINITY, 0.0f64), |(l, m), d| (l.min(d.at(0.0)), m.max(d.at(1.0))));
    let log = most > 30.0 * least && least > 0.0;
    let (width, row, left) = (520.0, 24.0, 170.0);
    let height = 44.0 + row * shown.len() as f64 + 24.0;
    let from = if log { 10f64.powf(least.log10().floor()) } else { 0.0 };
    let to = if log { 10f64.powf(most.log10().ceil()) } else { most.max(1e-6) * 1.04 };
    let (factor, unit) = Unit::Millisecond.scale(if log { (from * to).sqrt() } else { to });
    let x = |ms: f64| {
        let share = if log { (ms / from).log10() / (to / from).log10() } else { ms / to };
        left + share.clamp(0.0, 1.0) * (width - 14.0 - left)
    };
    let mut out = format!(
        "<figure class=\"panel\" id=\"boxes\" data-still><svg class=\"chart boxes\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-label=\"Boxes of delays\"><text x=\"0\" y=\"14\"><tspan class=\"title\">Delays, quartiles</tspan>, {unit}{}</text>",
        if log { ", logarithmic" } else { "" }
    );
    let ticks: Vec<f64> = match log {
        true => (0..12).map(|n| from * 10f64.powi(n)).take_while(|t| *t <= to * 1.001).collect(),
        false => {
            let step = crate::plot::nice_step(to / factor, 6) * factor;
            (0..12).map(|n| f64::from(n) * step).take_while(|t| *t <= to).collect()
        }
    };
    let bottom = height - 26.0;
    for tick in ticks {
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{0:.1} 28V{bottom}\"/><text x=\"{0:.1}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>",
            x(tick),
            bottom + 18.0,
            significant(tick / factor)
        );
    }
    for (n, d) in shown.iter().enumerate() {
        let y = 40.0 + row * n as f64;
        let colour = d.colour % COLOURS;
        let name: String = if d.name.chars().count() > 26 {
            d.name.chars().take(25).chain(['…']).collect()
        } else {
            d.name.clone()
        };
        let [p1, p25, p50, p75, p99, max] = [0.01, 0.25, 0.5, 0.75, 0.99, 1.0].map(|q| x(d.at(q)));
        let _ = write!(
            out,
            "<g><title>{}</title><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text><path class=\"line c{colour}\" d=\"M{p1:.1} {y:.1}H{p99:.1}M{p1:.1} {a:.1}V{b:.1}M{p99:.1} {a:.1}V{b:.1}\"/>\
             <rect class=\"box c{colour}\" x=\"{p25:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\" rx=\"2\"/><path class=\"median\" d=\"M{p50:.1} {:.1}v14\"/>\
             <path class=\"dots c{colour}\" d=\"M{max:.1} {y:.1}h0\"/></g>",
            escape(&d.name),
            left - 10.0,
            y + 4.0,
            escape(&name),
            y - 7.0,
            (p75 - p25).max(1.0),
            y - 7.0,
            a = y - 4.0,
            b = y + 4.0,
        );
    }
    out.push_str(
        "</svg><figcaption>Box: quartiles and median. Whiskers: 1st and 99th percentile. Dot: the greatest.</figcaption>\
         <details class=\"data\"><summary>these figures as a table</summary><div class=\"wide\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">delay of</th>",
    );
    const COLUMNS: [(&str, f64); 8] = [
        ("least", 0.0),
        ("p1", 0.01),
        ("p25", 0.25),
        ("median", 0.5),
        ("p75", 0.75),
        ("p95", 0.95),
        ("p99", 0.99),
        ("greatest", 1.0),
    ];
    COLUMNS.iter().for_each(|(name, _)| {
        let _ = write!(out, "<th scope=\"col\" class=\"n\">{name}</th>");
    });
    out.push_str("<th scope=\"col\" class=\"n\">mean</th></tr></thead><tbody>");
    for d in shown {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", escape(&d.name));
        for ms in COLUMNS.iter().map(|(_, q)| d.at(*q)).chain([d.mean]) {
            let _ = write!(out, "<td class=\"n\" data-v=\"{ms}\">{}</td>", Unit::Millisecond.show(ms));
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div></details></figure>\n");
    out
}

/// Where a flow was in throughput and delay: mean, and the ellipse of one standard deviation.
struct Ellipse {
    name: String,
    colour: usize,
    samples: usize,
    mean: (f64, f64),
    /// Variances of delay and throughput, and their covariance.
    spread: (f64, f64, f64),
}

impl Ellipse {
    fn of(name: &str, colour: usize, pairs: &[(f64, f64)]) -> Option<Ellipse> {
        if pairs.len() < 5 {
            return None;
        }
        let n = pairs.len() as f64;
        let mean = (pairs.iter().map(|p| p.0).sum::<f64>() / n, pairs.iter().map(|p| p.1).sum::<f64>() / n);
        let moment = |f: &dyn Fn(f64, f64) -> f64| {
            pairs.iter().map(|p| f(p.0 - mean.0, p.1 - mean.1)).sum::<f64>() / (n - 1.0)
        };
        let spread = (moment(&|x, _| x * x), moment(&|_, y| y * y), moment(&|x, y| x * y));
        Some(Ellipse { name: name.to_owned(), colour, samples: pairs.len(), mean, spread })
    }
    /// Its outline: the Cholesky factor of the covariance takes a circle there.
    fn outline(&self) -> Vec<(f64, f64)> {
        let (xx, yy, xy) = self.spread;
        let a = xx.max(0.0).sqrt();
        let b = if a > 0.0 { xy / a } else { 0.0 };
        let c = (yy - b * b).max(0.0).sqrt();
        let point = |i: i32| {
            let (sin, cos) = (f64::from(i) * std::f64::consts::TAU / 64.0).sin_cos();
            (self.mean.0 + a * cos, self.mean.1 + b * cos + c * sin)
        };
        (0..=64).map(point).collect()
    }
}

/// Throughput over delay, as flent and others draw it.
fn ellipses(page: &Page<'_>, names: &Names<'_>) -> String {
    let r = page.record;
    let mut all: Vec<(f64, Ellipse)> = Vec::new();
    for flow in r.flows.iter().filter(|f| f.proto != "icmp" && f.rtt_ms.is_none()) {
        let object = format!("flow {}", flow.name);
        let (rate, delay) =
            (page.series.points("", &object, "goodput_bit_s"), page.series.points("", &object, "owd_ms"));
        let mut next = rate.iter().peekable();
        let mut pairs = Vec::new();
        for &(t, ms) in delay {
            while next.next_if(|p| p.0 < t).is_some() {}
            if let Some(&&(at, y)) = next.peek()
                && at == t
            {
                pairs.push((ms, y));
            }
        }
        if let Some(e) = Ellipse::of(names.called(flow), names.colour(&flow.name), &pairs) {
            all.push((flow.payload_bytes.map_or(0.0, |b| b as f64), e));
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let more = all.len().saturating_sub(COLOURS);
    all.truncate(COLOURS);
    if all.is_empty() {
        return String::new();
    }
    let right = all.iter().flat_map(|(_, e)| e.outline()).map(|p| p.0).fold(0.0f64, f64::max);
    let (factor, unit) = Unit::Millisecond.scale(right);
    let mut chart =
        Chart::new("Throughput over one-way delay", Unit::BitPerSecond, (0.0, right / factor * 1.05));
    chart.x_unit = match unit {
        "s" => " s",
        "µs" => " µs",
        _ => " ms",
    };
    for (n, (_, e)) in all.iter().enumerate() {
        let scaled = |points: Vec<(f64, f64)>| {
            points.into_iter().map(|(x, y)| ((x / factor).max(0.0), y.max(0.0))).collect::<Vec<_>>()
        };
        let colour = if all.len() <= COLOURS { n } else { e.colour };
        chart.lines.push(Line {
            name: e.name.clone(),
            colour,
            stroke: Stroke::Line,
            points: scaled(e.outline()),
        });
    }
    let mut dots = Vec::new();
    for (n, (_, e)) in all.iter().enumerate() {
        dots.push(Line {
            name: String::new(),
            colour: n,
            stroke: Stroke::Dots,
            points: vec![(e.mean.0 / factor, e.mean.1)],
        });
    }
    let svg = chart.svg_with(&dots);
    let mut out = format!(
        "<figure class=\"panel\" id=\"ellipses\" data-still>{svg}<figcaption>Dot: mean of the sampled intervals. Ellipse: one standard deviation of both together. Up and left is \
         good.{}</figcaption><details class=\"data\"><summary>these figures as a table</summary><div class=\"wide\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">flow</th>\
         <th scope=\"col\" class=\"n\">samples</th><th scope=\"col\" class=\"n\">delay</th><th scope=\"col\" class=\"n\">± one way</th><th scope=\"col\" class=\"n\">throughput</th>\
         <th scope=\"col\" class=\"n\">±</th></tr></thead><tbody>",
        if more > 0 {
            format!(" The {COLOURS} flows that carried most; {more} more are not drawn.")
        } else {
            String::new()
        }
    );
    for (_, e) in &all {
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>",
            escape(&e.name),
            e.samples,
            Unit::Millisecond.show(e.mean.0),
            Unit::Millisecond.show(e.spread.0.sqrt()),
            Unit::BitPerSecond.show(e.mean.1),
            Unit::BitPerSecond.show(e.spread.1.sqrt())
        );
    }
    out.push_str("</tbody></table></div></details></figure>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ellipse_lies_along_its_correlation() {
        // y = 2x with a little noise across: the outline reaches one deviation in each direction.
        let pairs: Vec<(f64, f64)> =
            (0..1000).map(|i| (f64::from(i % 100), 2.0 * f64::from(i % 100) + f64::from(i % 7))).collect();
        let e = Ellipse::of("f", 0, &pairs).unwrap();
        let outline = e.outline();
        let right = outline.iter().map(|p| p.0).fold(f64::MIN, f64::max);
        let top = outline.iter().map(|p| p.1).fold(f64::MIN, f64::max);
        assert!((right - e.mean.0 - e.spread.0.sqrt()).abs() < 1e-9);
        assert!((top - e.mean.1 - e.spread.1.sqrt()).abs() < 0.01 * e.spread.1.sqrt());
        // At its right end it is high, not in the middle.
        let at_right = outline.iter().max_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
        assert!(at_right.1 > e.mean.1 + 0.9 * e.spread.1.sqrt());
        assert!(Ellipse::of("f", 0, &pairs[..4]).is_none());
        let still = Ellipse::of("f", 0, &[(1.0, 5.0); 9]).unwrap();
        assert!(still.outline().iter().all(|p| *p == (1.0, 5.0)));
    }
}
