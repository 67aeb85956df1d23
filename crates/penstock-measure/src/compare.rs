//! Runs compared with each other: which figures differ by more than repeated runs do among themselves.

use crate::live::{self, Live, Panel};
use crate::number::Unit;
use crate::plot::{Stroke, escape};
use crate::record::Record;
use crate::series::Series;
use crate::table::{Align, Table};
use serde::Serialize;
use std::fmt::Write as _;

/// One side: the repeated runs of one thing.
pub struct Side<'a> {
    /// Its name.
    pub name: String,
    /// Its runs, at least one.
    pub runs: Vec<(&'a Record, &'a Series)>,
}

/// What one side shows of a figure.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// Runs that have the figure.
    pub runs: usize,
    /// Median.
    pub median: f64,
    /// Lower end of the median's confidence interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Chance that the interval holds the true median, 0..=1; 95 % or, of fewer than six runs, what their extremes give.
    pub confidence: f64,
}

impl Spread {
    /// Of these values. `None` without any.
    ///
    /// The interval is made of order statistics and supposes nothing of the distribution: between the k-th least and the k-th greatest of
    /// n values lies the median with the chance 1 - 2 P(Binomial(n, 1/2) < k).
    pub fn of(values: &[f64]) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        if n == 0 {
            return None;
        }
        // The chance of fewer than k of n coins heads, for growing k.
        let (mut k, mut below, mut term) = (1, 0.0, 0.5f64.powi(n as i32));
        let mut confidence = 1.0 - 2.0 * (below + term);
        loop {
            below += term;
            term *= (n - k + 1) as f64 / k as f64;
            let next = 1.0 - 2.0 * (below + term);
            if next < 0.95 || 2 * (k + 1) > n {
                break;
            }
            (k, confidence) = (k + 1, next);
        }
        let median = crate::quantile::of_sorted(&sorted, 0.5);
        Some(Spread {
            runs: n,
            median,
            low: sorted[k - 1],
            high: sorted[n - k],
            confidence: confidence.max(0.0),
        })
    }
}

/// One figure on both sides.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// `app u5 iperf`, `flow call`, `qdisc u4 eth0 1:`, `class u4 eth0 1:10`.
    pub subject: String,
    /// `throughput`, `rtt mean`, `drops` …
    pub figure: &'static str,
    /// Its unit: `bit/s`, `ms`, `bytes`, or empty for a number.
    pub unit: &'static str,
    /// The first side.
    pub before: Spread,
    /// The other side.
    pub after: Spread,
    /// Difference of the medians as a share of the first; absent when that is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// `equal`, `within` (the intervals meet), `differs`; `unknown`: the medians differ and a side has one run only.
    pub verdict: &'static str,
}

fn unit_of(unit: &str) -> Unit {
    match unit {
        "bit/s" => Unit::BitPerSecond,
        "ms" => Unit::Millisecond,
        "bytes" => Unit::Byte,
        _ => Unit::Count,
    }
}

type Figure = (String, &'static str, &'static str, f64);

/// All figures of a record.
fn figures(record: &Record) -> Vec<Figure> {
    let mut all: Vec<Figure> = Vec::new();
    let mut put = |subject: &str, figure, unit, value: Option<f64>| {
        all.extend(value.map(|v| (subject.to_owned(), figure, unit, v)));
    };
    for app in &record.apps {
        let subject = format!("app {}", app.name);
        put(&subject, "throughput", "bit/s", app.throughput_bit_s);
        put(&subject, "rtt mean", "ms", app.rtt_ms.map(|d| d.mean));
        put(&subject, "rtt p95", "ms", app.rtt_ms.map(|d| d.p95));
        put(&subject, "jitter", "ms", app.jitter_ms);
        put(&subject, "lost", "", app.lost_packets.map(|n| n as f64));
    }
    for flow in record.flows.iter().filter(|f| f.app.is_none()) {
        let subject = format!("flow {}", flow.name);
        put(&subject, "goodput", "bit/s", Some(flow.goodput_bit_s));
        put(&subject, "delay mean", "ms", flow.owd_ms.map(|d| d.mean));
        put(&subject, "delay p95", "ms", flow.owd_ms.map(|d| d.p95));
        put(&subject, "jitter", "ms", flow.jitter_ms);
        put(&subject, "lost", "", Some(flow.lost_packets as f64));
        put(&subject, "retransmits", "", flow.retransmitted_packets.map(|n| n as f64));
        let took = flow.start_s.zip(flow.end_s).map(|(from, to)| (to - from) * 1e3);
        put(&subject, "duration", "ms", took.filter(|_| flow.proto == "tcp"));
    }
    for device in &record.devices {
        for q in device.qdiscs.iter().filter(|q| q.handle != "0:" || q.bytes > 0) {
            let subject = format!("qdisc {} {} {} {}", device.host, device.dev, q.kind, q.handle);
            put(&subject, "sent", "bytes", Some(q.bytes as f64));
            put(&subject, "drops", "", Some(q.drops as f64));
            put(&subject, "overlimits", "", Some(q.overlimits as f64));
        }
        for c in device.classes.iter().filter(|c| c.kind != "sfq") {
            let subject = format!("class {} {} {}", device.host, device.dev, c.classid);
            put(&subject, "sent", "bytes", Some(c.bytes as f64));
            put(&subject, "drops", "", Some(c.drops as f64));
            put(&subject, "lended", "", c.lended.map(|n| n as f64));
            put(&subject, "borrowed", "", c.borrowed.map(|n| n as f64));
        }
    }
    all
}

/// Figures that both sides have, in the first's order.
pub fn compare(before: &Side<'_>, after: &Side<'_>) -> Vec<Row> {
    let gather = |side: &Side<'_>| side.runs.iter().map(|(record, _)| figures(record)).collect::<Vec<_>>();
    let (a, b) = (gather(before), gather(after));
    let spread = |runs: &[Vec<Figure>], like: &Figure| {
        let same = |f: &&Figure| f.0 == like.0 && f.1 == like.1;
        Spread::of(&runs.iter().filter_map(|run| run.iter().find(same).map(|f| f.3)).collect::<Vec<_>>())
    };
    let mut rows: Vec<Row> = Vec::new();
    for like in a.iter().flatten() {
        if rows.iter().any(|r| r.subject == like.0 && r.figure == like.1) {
            continue;
        }
        let (Some(is), Some(becomes)) = (spread(&a, like), spread(&b, like)) else { continue };
        let verdict = match () {
            () if is == becomes || is.median == becomes.median => "equal",
            () if is.runs < 2 || becomes.runs < 2 => "unknown",
            () if is.low <= becomes.high && becomes.low <= is.high => "within",
            () => "differs",
        };
        let difference = (is.median != 0.0).then(|| (becomes.median - is.median) / is.median);
        rows.push(Row {
            subject: like.0.clone(),
            figure: like.1,
            unit: like.2,
            before: is,
            after: becomes,
            difference,
            verdict,
        });
    }
    rows
}

fn show(spread: &Spread, unit: Unit) -> String {
    if spread.runs < 2 || spread.low == spread.high {
        return unit.show(spread.median);
    }
    format!("{} [{} .. {}]", unit.show(spread.median), unit.show(spread.low), unit.show(spread.high))
}

fn cells(row: &Row) -> [String; 6] {
    let unit = unit_of(row.unit);
    [
        row.subject.clone(),
        row.figure.to_owned(),
        show(&row.before, unit),
        show(&row.after, unit),
        row.difference.map_or("–".to_owned(), |d| format!("{:+.2} %", d * 100.0)),
        row.verdict.to_owned(),
    ]
}

/// The rows as a table, with the names of both sides.
pub fn text(before: &str, after: &str, rows: &[Row]) -> String {
    let columns = [
        ("", Align::Left),
        ("", Align::Left),
        (before, Align::Right),
        (after, Align::Right),
        ("difference", Align::Right),
        ("", Align::Left),
    ];
    let mut table = Table::new(&columns);
    for row in rows {
        table.row(cells(row));
    }
    let count = |verdict| rows.iter().filter(|r| r.verdict == verdict).count();
    format!(
        "{}\n{} figures: {} equal, {} within the spread of repeated runs, {} beyond it, {} of single runs\n",
        table.text(2),
        rows.len(),
        count("equal"),
        count("within"),
        count("differs"),
        count("unknown")
    )
}

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
fn called(host: &str, object: &str) -> String {
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
    let count = |verdict| rows.iter().filter(|r| r.verdict == verdict).count();
    let _ = writeln!(
        page,
        "<header><h1>{}</h1><p class=\"facts\"><span>{} figures</span><span>{} equal</span><span>{} within the spread</span><span>{} beyond it</span>\
         <span>{} of single runs</span></p></header>",
        escape(&title),
        rows.len(),
        count("equal"),
        count("within"),
        count("differs"),
        count("unknown")
    );
    let charts = charts(before, after);
    if !charts.0.is_empty() {
        let _ = writeln!(
            page,
            "<section id=\"curves\"><h2>Over time</h2><div class=\"charts\" data-bar>{}</div></section>",
            charts.0
        );
    }
    let _ = writeln!(
        page,
        "<section id=\"figures\"><h2>Figures</h2><div class=\"wide\"><table class=\"compare\"><thead><tr><th></th><th></th><th class=\"n\">{}</th>\
         <th class=\"n\">{}</th><th class=\"n\">difference</th><th></th></tr></thead><tbody>",
        escape(&before.name),
        escape(&after.name)
    );
    for row in rows {
        let cell = |(i, c): (usize, &String)| {
            format!("<td{}>{}</td>", if (2..5).contains(&i) { " class=\"n\"" } else { "" }, escape(c))
        };
        let cells: String = cells(row).iter().enumerate().map(cell).collect();
        let _ = writeln!(page, "<tr class=\"{}\">{cells}</tr>", row.verdict);
    }
    page.push_str("</tbody></table></div></section>\n</main>\n");
    page.push_str(&charts.1);
    page.push_str("</body></html>\n");
    page
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{App, FORMAT, Rig};

    fn run(throughput: f64) -> Record {
        Record {
            format: FORMAT,
            penstock: String::new(),
            title: "t".into(),
            about: None,
            ground: "sim".into(),
            seed: 1,
            duration_s: 2.0,
            rig: Rig::default(),
            experiment: String::new(),
            apps: vec![App { name: "a iperf".into(), throughput_bit_s: Some(throughput), ..App::default() }],
            flows: Vec::new(),
            groups: Vec::new(),
            together: Vec::new(),
            devices: Vec::new(),
            per_hop: Vec::new(),
            drops: Vec::new(),
            expects: Vec::new(),
            setup_failures: Vec::new(),
            scores: Default::default(),
            captures: Vec::new(),
            findings: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn verdict(before: &[f64], after: &[f64]) -> &'static str {
        let mut series = Series::new();
        series.add("a", "a iperf", "goodput_bit_s", 1.0, 5.0);
        let (a, b): (Vec<Record>, Vec<Record>) =
            (before.iter().map(|x| run(*x)).collect(), after.iter().map(|x| run(*x)).collect());
        let before = Side { name: "one".into(), runs: a.iter().map(|r| (r, &series)).collect() };
        let after = Side { name: "two".into(), runs: b.iter().map(|r| (r, &series)).collect() };
        let rows = compare(&before, &after);
        assert_eq!(rows.len(), 1);
        let page = html(&before, &after, &rows);
        assert!(
            page.contains("one against two") && page.matches("<svg class=\"chart\"").count() == 1,
            "{page}"
        );
        assert!(page.contains("id=\"charts-bits\"") && page.contains("a iperf: goodput"));
        assert!(text("one", "two", &rows).contains("a iperf"));
        rows[0].verdict
    }

    #[test]
    fn a_picture_is_called_what_it_is_about() {
        let called: Vec<String> =
            [("", "flow xp"), ("U5", "U5 ping"), ("U4", "eth0 sfq 30:"), ("U4", "eth0 class 1:30")]
                .map(|(host, object)| called(host, object))
                .into();
        assert_eq!(called, ["flow xp", "U5 ping", "U4 eth0 sfq 30", "U4 eth0 class 1:30"]);
    }

    #[test]
    fn a_difference_is_judged_by_the_spread() {
        assert_eq!(verdict(&[5.0], &[5.0]), "equal");
        assert_eq!(verdict(&[5.0], &[6.0]), "unknown");
        assert_eq!(verdict(&[5.0, 7.0], &[6.5, 9.0]), "within");
        assert_eq!(verdict(&[5.0, 5.5], &[6.0, 9.0]), "differs");
    }

    #[test]
    fn the_interval_of_a_median_is_made_of_order_statistics() {
        let ten: Vec<f64> = (1..=10).map(f64::from).collect();
        let s = Spread::of(&ten).unwrap();
        // Binomial(10, 1/2): P(< 2) = 11/1024.
        assert_eq!((s.low, s.median, s.high), (2.0, 5.5, 9.0));
        assert!((s.confidence - (1.0 - 22.0 / 1024.0)).abs() < 1e-12);
        let five = Spread::of(&ten[..5]).unwrap();
        assert_eq!((five.low, five.high), (1.0, 5.0));
        assert!((five.confidence - 0.9375).abs() < 1e-12);
        assert_eq!(Spread::of(&[3.0]).map(|s| (s.low, s.high)), Some((3.0, 3.0)));
        assert_eq!(Spread::of(&[]), None);
    }
}
