//! The comparison as a page.

use super::text::folded;
use super::{Kind, Row, Side, Tally, advice};
use crate::live::{self, Live, Panel};
use crate::number::Unit;
use crate::plot::{Stroke, escape};
use std::fmt::Write as _;

/// The unit of a metric of the series; `None` for one that makes no picture.
fn metric(name: &str) -> Option<(Unit, &'static str)> {
    Some(match name {
        "throughput_bit_s" => (Unit::BitPerSecond, "throughput"),
        "goodput_bit_s" => (Unit::BitPerSecond, "goodput"),
        "rtt_ms" => (Unit::Millisecond, "round trip"),
        "owd_ms" => (Unit::Millisecond, "one-way delay"),
        "backlog_bytes" => (Unit::Byte, "backlog"),
        "cwnd_packets" => (Unit::Count, "congestion window"),
        _ => return None,
    })
}

/// What a curve is about. Flows belong to no machine; a program's name begins with its machine's; handles end in a colon.
pub(super) fn called(host: &str, object: &str) -> String {
    let object = object.trim_end_matches(':');
    let own = host.is_empty() || object.strip_prefix(host).is_some_and(|rest| rest.starts_with(' '));
    if own { object.to_owned() } else { format!("{host} {object}") }
}

/// Most pictures of a page.
const PICTURES: usize = 48;

/// A page: the table, and each curve that both sides have in one chart with its counterpart. Refers to no network.
pub fn html(before: &Side<'_>, after: &Side<'_>, rows: &[Row]) -> String {
    let title = format!("{} against {}", before.name, after.name);
    let mut page = crate::report::opening(&title);
    let tally = Tally::of(rows);
    let _ = writeln!(
        page,
        "<header><h1>{}</h1><p class=\"facts\"><span>{} and {} runs</span><span>{} figures</span><span>{} equal</span><span>{} within the spread</span>\
         <span>{} beyond it</span><span>{} of single runs</span></p></header>",
        escape(&title),
        before.runs.len(),
        after.runs.len(),
        rows.len(),
        tally.equal,
        tally.within,
        tally.differs,
        tally.unknown
    );
    let charts = charts(before, after);
    page.push_str("<section id=\"figures\"><h2>Figures</h2>\n");
    if let Some(advice) = rows.first().and_then(|r| advice(r.before.runs, r.after.runs)) {
        let _ = writeln!(page, "<p class=\"note\">{}</p>", escape(&advice));
    }
    for kind in Kind::ALL {
        let group: Vec<&Row> = rows.iter().filter(|r| r.group == kind).collect();
        let (noise, worth): (Vec<&Row>, Vec<&Row>) = group.iter().copied().partition(|r| r.is_noise());
        if group.is_empty() {
            continue;
        }
        let _ = writeln!(page, "<h3>{}</h3>", kind.heading());
        if !worth.is_empty() {
            table(&mut page, before, after, &worth);
        }
        if !noise.is_empty() {
            let words: Vec<String> = folded(&noise).collect();
            let _ = writeln!(page, "<details class=\"noise\"><summary>{}</summary>", words.join(", "));
            table(&mut page, before, after, &noise);
            page.push_str("</details>\n");
        }
    }
    page.push_str("</section>\n");
    if !charts.0.is_empty() {
        let _ = writeln!(
            page,
            "<section id=\"curves\"><h2>Over time</h2><div class=\"charts\" data-bar>{}</div></section>",
            charts.0
        );
    }
    page.push_str("</main>\n");
    page.push_str(&charts.1);
    page.push_str("</body></html>\n");
    page
}

/// Rows as a table; a bar is as long as the effect, and leans to where the figure went.
fn table(page: &mut String, before: &Side<'_>, after: &Side<'_>, rows: &[&Row]) {
    let _ = writeln!(
        page,
        "<div class=\"wide\" tabindex=\"0\"><table class=\"compare\"><thead><tr><th></th><th></th><th class=\"n\">{}</th><th class=\"n\">{}</th><th class=\"n\">difference</th>\
         <th class=\"n\">its interval</th><th>effect</th><th></th></tr></thead><tbody>",
        escape(&before.name),
        escape(&after.name)
    );
    for row in rows {
        let half = row.effect * 50.0;
        let from = if row.after.median < row.before.median { 50.0 - half } else { 50.0 };
        let _ = writeln!(
            page,
            "<tr class=\"{verdict}\"><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td><span class=\"bar lean\" aria-hidden=\"true\"><i style=\"left:{from:.1}%;width:{half:.1}%\"></i><em style=\"left:50%\"></em></span></td>\
             <td>{verdict}</td></tr>",
            escape(&row.subject),
            row.figure,
            row.side(&row.before),
            row.side(&row.after),
            row.change(),
            row.bounds(),
            verdict = row.verdict.name(),
        );
    }
    page.push_str("</tbody></table></div>\n");
}

/// The charts of the first run of each side, and what makes them live.
fn charts(before: &Side<'_>, after: &Side<'_>) -> (String, String) {
    let first =
        |side: &Side<'_>| side.runs.first().map(|(record, series)| (record.duration_s, (*series).clone()));
    let (Some((long, a)), Some((other, b))) = (first(before), first(after)) else {
        return (String::new(), String::new());
    };
    let long = long.max(other);
    let mut live = Live::new(long);
    let both = a.curves().iter().filter_map(|curve| {
        let (unit, what) = metric(&curve.metric)?;
        let points = b.points(&curve.host, &curve.object, &curve.metric);
        let flat = |p: &[(f64, f64)]| p.iter().all(|x| x.1 == 0.0);
        let nothing = points.is_empty() || flat(points) && flat(&curve.points);
        (!nothing).then_some((curve, points, unit, what))
    });
    let mut html = String::new();
    for (n, (curve, points, unit, what)) in both.take(PICTURES).enumerate() {
        let subject = called(&curve.host, &curve.object);
        let mut panel =
            Panel::over_time(format!("chart-{}", n + 1), format!("{subject}: {what}"), unit, long);
        let stroke = if curve.metric == "rtt_ms" { Stroke::Dots } else { Stroke::Line };
        for (colour, (name, points)) in
            [(&before.name, curve.points.as_slice()), (&after.name, points)].into_iter().enumerate()
        {
            panel.curves.push(live::Curve { stroke, ..live::Curve::new(name.clone(), colour, points) });
        }
        if unit == Unit::Millisecond {
            panel = panel.log_if_far();
        }
        html.push_str(&live.figure(&panel));
    }
    let scripts = live.scripts(long);
    (html, scripts)
}
