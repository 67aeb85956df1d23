//! A sweep as a page: the table, curves over a parameter in small pictures, heat maps of two parameters, the best compromises. Refers to no network.

use super::heat;
use super::{Figure, Sweep};
use crate::number::Unit;
use crate::plot::{Band, CHART_STYLE, COLOURS, Chart, Line, RANGE_STYLE, STYLE, Stroke, escape};
use crate::report::NO_ICON;
use std::fmt::Write as _;

/// Most pictures of one kind.
const PICTURES: usize = 24;
/// Most rows of the table on the page.
const MAX_ROWS: usize = 500;
/// Most different values of a parameter whose values are curves of one picture.
const CURVES: usize = COLOURS;

const PAGE_STYLE: &str = "body{font:14px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--ground);max-width:76rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse}td,th{padding:.15rem .7rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}\
td.p,th.p{text-align:left}tr.best td{font-weight:600}.soft{color:var(--soft)}.wide{overflow-x:auto}h2{margin-top:2.2rem}\
.multiples{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(26rem,100%),1fr));gap:1.2rem}.multiples svg{width:100%;height:auto}\
.chart .cell{stroke:var(--ground);stroke-width:1}.chart .dot{stroke:none}.chart .mid{text-anchor:middle}.chart .end{text-anchor:end}\
.chart .f0{fill:var(--c0)}.chart .range{stroke:var(--c0);stroke-width:1.8}";

/// The page.
pub fn html(sweep: &Sweep) -> String {
    with(sweep, "")
}

/// The page with something above the pictures.
pub(crate) fn with(sweep: &Sweep, top: &str) -> String {
    let title = escape(&sweep.title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">{NO_ICON}<title>{title}</title>\
         <style>{STYLE}{CHART_STYLE}{RANGE_STYLE}{PAGE_STYLE}</style></head>\n<body><h1>{title}</h1>\n"
    );
    let _ = writeln!(
        page,
        "<p class=\"soft\">{} points ({}), {} seeds ({}), {} runs on {}; penstock {}. Curves are medians over the seeds; bands, and the numbers in \
         brackets, are the median's confidence interval (95 %; less with fewer than six seeds).</p>",
        sweep.points.len(),
        escape(&sweep.design),
        sweep.seeds.len(),
        sweep.seeds.first().map_or(String::new(), |first| format!("from {first}")),
        sweep.runs.len(),
        escape(&sweep.ground),
        escape(&sweep.penstock)
    );
    let (_, fixed) = sweep.varied();
    if !fixed.is_empty() {
        let _ = writeln!(page, "<p class=\"soft\">Everywhere: {}</p>", escape(&fixed));
    }
    if let Some((count, first)) = sweep.refused() {
        let why = first.refused.as_deref().unwrap_or_default();
        let _ = writeln!(
            page,
            "<p><b>{count} runs could not be made.</b> The first ({}, seed {}):</p><pre tabindex=\"0\">{}</pre>",
            escape(&sweep.point_text(first.point)),
            first.seed,
            escape(why.trim_end())
        );
    }
    page.push_str(top);
    section(&mut page, "Curves", &curves(sweep));
    section(&mut page, "Heat maps", &heat::maps(sweep));
    section(&mut page, "Best compromises", &compromises(sweep));
    table(&mut page, sweep);
    page.push_str("</body></html>\n");
    page
}

fn section(page: &mut String, head: &str, pictures: &[String]) {
    if pictures.is_empty() {
        return;
    }
    let more = pictures.len().saturating_sub(PICTURES);
    let shown: String = pictures.iter().take(PICTURES).map(String::as_str).collect();
    let _ = writeln!(page, "<h2>{head}</h2><div class=\"multiples\">\n{shown}</div>");
    if more > 0 {
        let _ = writeln!(page, "<p class=\"soft\">and {more} more; results.parquet has them all.</p>");
    }
}

/// The figures that are shown, with their numbers.
pub(super) fn shown(sweep: &Sweep) -> impl Iterator<Item = (usize, &Figure)> {
    sweep.figures.iter().enumerate().filter(|(_, f)| f.shown)
}

/// The unit of a parameter's numbers.
pub(super) fn unit_of(unit: Option<&str>) -> Unit {
    match unit {
        Some("bit_s") => Unit::BitPerSecond,
        Some("ms") => Unit::Millisecond,
        Some("bytes") => Unit::Byte,
        Some("share") => Unit::Share,
        _ => Unit::Count,
    }
}

/// The different values of a parameter, in the order of their first points.
pub(super) fn different(sweep: &Sweep, parameter: usize) -> Vec<&str> {
    let mut all: Vec<&str> = Vec::new();
    for point in &sweep.points {
        if !all.contains(&point.values[parameter].as_str()) {
            all.push(&point.values[parameter]);
        }
    }
    all
}

/// What stands behind the last number of an x axis.
fn behind(name: &str) -> &'static str {
    match name {
        "bit/s" => " bit/s",
        "kbit/s" => " kbit/s",
        "Mbit/s" => " Mbit/s",
        "Gbit/s" => " Gbit/s",
        "B" => " B",
        "kB" => " kB",
        "MB" => " MB",
        "GB" => " GB",
        "µs" => " µs",
        "ms" => " ms",
        "s" => " s",
        "%" => " %",
        _ => "",
    }
}

/// A chart whose x axis has these numbers in its best unit; and the factor of that unit.
fn chart(title: String, y: Unit, x: Unit, numbers: &[f64]) -> (Chart, f64) {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for &n in numbers {
        (low, high) = (low.min(n), high.max(n));
    }
    let (factor, name) = x.scale(low.abs().max(high.abs()));
    let low = if low > 0.0 && low < high * 0.4 { 0.0 } else { low };
    let mut chart = Chart::new(title, y, (low / factor, high / factor));
    chart.x_unit = behind(name);
    (chart, factor)
}

/// Each figure over the first parameter that has numbers. A grid has a curve for each value of the next parameter and a picture for each setting of the
/// others; other designs have a picture of dots for each parameter.
fn curves(sweep: &Sweep) -> Vec<String> {
    let several = |p: &usize| different(sweep, *p).len() > 1;
    let varied: Vec<usize> = (0..sweep.parameters.len()).filter(several).collect();
    let numeric: Vec<usize> =
        varied.iter().copied().filter(|&p| sweep.points.iter().all(|q| q.numbers[p].is_some())).collect();
    let mut pictures = Vec::new();
    if sweep.design != "grid" {
        for (f, figure) in shown(sweep) {
            pictures.extend(numeric.iter().filter_map(|&p| scatter(sweep, f, figure, p)));
        }
        return pictures;
    }
    let Some(&x) = numeric.first() else {
        return shown(sweep).filter_map(|(f, figure)| heat::ranges(sweep, f, figure)).collect();
    };
    let mut others: Vec<usize> = varied.into_iter().filter(|&p| p != x).collect();
    let colour = others.iter().position(|&p| different(sweep, p).len() <= CURVES).map(|at| others.remove(at));
    for (f, figure) in shown(sweep) {
        // Settings of the other parameters, in the order of the points.
        let mut settings: Vec<Vec<&str>> = Vec::new();
        for point in &sweep.points {
            let setting: Vec<&str> = others.iter().map(|&p| point.values[p].as_str()).collect();
            if !settings.contains(&setting) {
                settings.push(setting);
            }
        }
        for setting in settings {
            let here =
                |p: &usize| others.iter().zip(&setting).all(|(&o, v)| sweep.points[*p].values[o] == *v);
            let points: Vec<usize> = (0..sweep.points.len()).filter(here).collect();
            let named: String = others
                .iter()
                .zip(&setting)
                .map(|(&o, v)| format!(", {}={v}", sweep.parameters[o].path))
                .collect();
            pictures.extend(picture(sweep, (f, figure), x, colour, &points, &named));
        }
    }
    pictures
}

/// One picture of a grid.
fn picture(
    sweep: &Sweep,
    (f, figure): (usize, &Figure),
    x: usize,
    colour: Option<usize>,
    points: &[usize],
    named: &str,
) -> Option<String> {
    let number = |p: usize| sweep.points[p].numbers[x].unwrap_or(f64::NAN);
    let numbers: Vec<f64> = points.iter().map(|&p| number(p)).collect();
    let title = format!("{} over {}{named}", figure.what, sweep.parameters[x].path);
    let (mut chart, factor) = chart(title, figure.kind(), unit_of(sweep.parameters[x].unit), &numbers);
    let values: Vec<Option<&str>> = match colour {
        Some(c) => different(sweep, c).into_iter().map(Some).collect(),
        None => vec![None],
    };
    for (n, value) in values.iter().enumerate() {
        let mine = points.iter().copied().filter(|&p| match (colour, value) {
            (Some(c), Some(v)) => sweep.points[p].values[c] == *v,
            _ => true,
        });
        let mut all: Vec<(f64, super::Summary)> =
            mine.filter_map(|p| Some((number(p) / factor, sweep.summary(p, f)?))).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        if all.is_empty() {
            continue;
        }
        let name = match (colour, value) {
            (Some(c), Some(v)) => {
                format!("{}={v}", sweep.parameters[c].path.rsplit('.').next().unwrap_or_default())
            }
            _ => "median".to_owned(),
        };
        chart.bands.push(Band {
            colour: n,
            points: all.iter().map(|(x, s)| (*x, s.spread.low, s.spread.high)).collect(),
        });
        let points = all.iter().map(|(x, s)| (*x, s.spread.median)).collect();
        chart.lines.push(Line { name, colour: n, stroke: Stroke::Line, points });
    }
    (!chart.lines.is_empty()).then(|| chart.svg())
}

/// A figure over a parameter, a dot for each point.
fn scatter(sweep: &Sweep, f: usize, figure: &Figure, x: usize) -> Option<String> {
    let at = |p: usize| Some((sweep.points[p].numbers[x]?, sweep.median(p, f)?));
    let mut all: Vec<(f64, f64)> = (0..sweep.points.len()).filter_map(at).collect();
    if all.is_empty() {
        return None;
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let title = format!("{} over {}", figure.what, sweep.parameters[x].path);
    let numbers: Vec<f64> = all.iter().map(|a| a.0).collect();
    let (mut chart, factor) = chart(title, figure.kind(), unit_of(sweep.parameters[x].unit), &numbers);
    let points = all.into_iter().map(|(x, y)| (x / factor, y)).collect();
    chart.lines.push(Line { name: "median of a point".into(), colour: 0, stroke: Stroke::Dots, points });
    Some(chart.svg())
}

/// Two figures against each other, with the points that no other beats.
fn compromises(sweep: &Sweep) -> Vec<String> {
    let Some((a, b)) = sweep.pareto else { return Vec::new() };
    let at = |p: usize| Some((sweep.median(p, a)?, sweep.median(p, b)?));
    let mut all: Vec<(f64, f64)> = (0..sweep.points.len()).filter_map(at).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let mut front: Vec<(f64, f64)> = sweep.front().into_iter().filter_map(at).collect();
    let (x, y) = (&sweep.figures[a], &sweep.figures[b]);
    let numbers: Vec<f64> = all.iter().map(|p| p.0).collect();
    let (mut chart, factor) = chart(format!("{} over {}", y.what, x.what), y.kind(), x.kind(), &numbers);
    for points in [&mut all, &mut front] {
        points.sort_by(|p, q| p.0.total_cmp(&q.0).then(p.1.total_cmp(&q.1)));
        points.iter_mut().for_each(|p| p.0 /= factor);
    }
    chart.lines.push(Line { name: "all points".into(), colour: 7, stroke: Stroke::Dots, points: all });
    chart.lines.push(Line {
        name: "no other is better in both".into(),
        colour: 1,
        stroke: Stroke::Rings,
        points: front,
    });
    vec![chart.svg()]
}

fn table(page: &mut String, sweep: &Sweep) {
    page.push_str("<h2>All points</h2><div class=\"wide\" tabindex=\"0\"><table><tr>");
    let (varied, _) = sweep.varied();
    for &n in &varied {
        let _ = write!(page, "<th class=\"p\">{}</th>", escape(&sweep.parameters[n].path));
    }
    for (_, figure) in shown(sweep) {
        let _ = write!(page, "<th>{}</th>", escape(&figure.what));
    }
    page.push_str("</tr>\n");
    let front = sweep.front();
    for (p, point) in sweep.points.iter().enumerate().take(MAX_ROWS) {
        page.push_str(if front.contains(&p) { "<tr class=\"best\">" } else { "<tr>" });
        for &n in &varied {
            let _ = write!(page, "<td class=\"p\">{}</td>", escape(&point.values[n]));
        }
        for (f, figure) in shown(sweep) {
            let unit = figure.kind();
            let cell =
                sweep.summary(p, f).map_or("–".to_owned(), |s| match s.spread.low == s.spread.high {
                    true => unit.show(s.spread.median),
                    false => {
                        format!(
                            "{} [{} .. {}]",
                            unit.show(s.spread.median),
                            unit.show(s.spread.low),
                            unit.show(s.spread.high)
                        )
                    }
                });
            let _ = write!(page, "<td>{}</td>", escape(&cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
    let more = sweep.points.len().saturating_sub(MAX_ROWS);
    if more > 0 {
        let _ = writeln!(page, "<p class=\"soft\">and {more} more points in sweep.json.</p>");
    }
    if !front.is_empty() {
        page.push_str(
            "<p class=\"soft\">Bold: no other point is better in both figures of the compromise.</p>\n",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::sample;
    use super::*;

    #[test]
    fn a_grid_has_curves_heat_maps_and_compromises() {
        let page = html(&sample());
        // Two figures: a picture of curves and a heat map of each; one of the compromises.
        assert_eq!(page.matches("<svg").count(), 5, "{page}");
        assert!(page.contains("call owd p99 over link.uplink.rate") && page.contains("delay=5ms"), "{page}");
        assert!(page.contains("A line &lt;1&gt;") && !page.contains("<1>") && !page.contains("call lost"));
        assert!(
            !page.contains("http://")
                || page.matches("http://").count() == page.matches("http://www.w3.org/2000/svg").count()
        );
        assert_eq!(page.matches("<tr class=\"best\">").count(), 2);
        assert_eq!(page, html(&sample()));
    }

    #[test]
    fn other_designs_have_dots_and_words_have_rows() {
        let mut random = sample();
        random.design = "latin".into();
        let page = html(&random);
        assert!(page.contains("class=\"dots c0\""), "{page}");
        let mut words = sample();
        words.parameters[0].unit = None;
        words.parameters[1].unit = None;
        words.points.iter_mut().for_each(|p| p.numbers = vec![None, None]);
        let page = html(&words);
        assert!(page.contains("class=\"range\""), "{page}");
    }
}
