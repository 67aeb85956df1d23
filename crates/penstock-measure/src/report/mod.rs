//! `report.html`: one run on one page that needs nothing else.

mod classes;
mod topology;

pub use classes::busiest;

use crate::number::Unit;
use crate::plot::{CHART_STYLE, Chart, Level, Line, STYLE, Stroke, escape};
use crate::record::{self, App, Device, Record};
use crate::series::{Curve, Series};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// What a report is made of.
pub struct Page<'a> {
    /// The record.
    pub record: &'a Record,
    /// The series.
    pub series: &'a Series,
    /// What each app printed, in the order of the record.
    pub outputs: &'a [String],
    /// What tc showed of each device: machine, device, text.
    pub tc: &'a [(String, String, String)],
}

/// Rules of the page; the colours are the charts' ([`STYLE`]).
const PAGE_STYLE: &str = include_str!("report.css");

/// The report as a page of its own: no network, no scripts, no fonts.
pub fn html(page: &Page<'_>) -> String {
    let r = page.record;
    let mut out = String::new();
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{}</title>\
         <style>{STYLE}{CHART_STYLE}{PAGE_STYLE}</style></head><body><main>\n",
        escape(&r.title)
    );
    head(&mut out, r);
    verdicts(&mut out, r);
    section(&mut out, "Network", &topology::svg(r));
    let charts = charts(page);
    if !charts.is_empty() {
        section(&mut out, "Over time", &charts);
    }
    section(&mut out, "Queues", &queues(page));
    section(&mut out, "Programs", &apps(page));
    if r.flows.iter().any(|f| f.app.is_none()) {
        section(&mut out, "Flows", &flows(r));
    }
    section(&mut out, "Devices", &devices(page));
    section(&mut out, "Findings in the setups", &findings(r));
    let text =
        format!("<details><summary>experiment file</summary><pre>{}</pre></details>", escape(&r.experiment));
    section(&mut out, "Experiment", &text);
    let _ = write!(
        out,
        "<footer>penstock {} · ground {} · seed {} · record format {}</footer>\n</main></body></html>\n",
        escape(&r.penstock),
        escape(&r.ground),
        r.seed,
        r.format
    );
    out
}

fn section(out: &mut String, title: &str, body: &str) {
    if !body.is_empty() {
        let _ = write!(out, "<section><h2>{title}</h2>\n{body}</section>\n");
    }
}

fn head(out: &mut String, r: &Record) {
    let _ = write!(out, "<header><h1>{}</h1>", escape(&r.title));
    if let Some(about) = &r.about {
        let _ = write!(out, "<p class=\"about\">{}</p>", escape(about.trim()));
    }
    let _ = write!(out, "<p class=\"facts\"><span>{}</span>", Unit::Second.show(r.duration_s));
    let flows = r.flows.iter().filter(|f| f.app.is_none()).count();
    let counts = [
        (r.rig.hosts.len(), "machine"),
        (r.rig.links.len(), "link"),
        (r.apps.len(), "program"),
        (flows, "flow"),
    ];
    for (n, what) in counts.into_iter().filter(|(n, _)| *n > 0) {
        let _ = write!(out, "<span>{n} {what}{}</span>", if n == 1 { "" } else { "s" });
    }
    let _ = writeln!(out, "<span>seed {}</span></p></header>", r.seed);
}

/// What an expectation's number counts, by the figure that its `what` speaks of.
pub fn expect_unit(what: &str) -> Unit {
    let words = what.split_whitespace().rev();
    let figure = words.into_iter().find(|w| !crate::Distribution::NAMES.contains(w)).unwrap_or_default();
    match figure {
        "throughput" | "goodput" => Unit::BitPerSecond,
        "rtt" | "owd" | "jitter" | "duration" => Unit::Millisecond,
        "bytes" | "backlog" => Unit::Byte,
        "loss" => Unit::Share,
        _ => Unit::Count,
    }
}

fn verdicts(out: &mut String, r: &Record) {
    let failed: Vec<_> = r.failed_apps().take(MAX_ROWS).collect();
    let warnings: Vec<_> = r.warnings.iter().filter(|w| w.came_true).collect();
    if r.expects.is_empty() && r.setup_failures.is_empty() && failed.is_empty() && warnings.is_empty() {
        return;
    }
    out.push_str(
        "<section class=\"verdicts\"><h2>Expected and measured</h2><table><thead><tr><th></th><th>what</th>\
                  <th>expected</th><th class=\"n\">measured</th></tr></thead><tbody>",
    );
    for e in &r.expects {
        let nothing =
            || e.why.as_deref().map_or("nothing".to_owned(), |why| format!("nothing: {}", escape(why)));
        let measured = e.measured.map_or_else(nothing, |x| expect_unit(&e.what).show(x));
        let (class, mark) = if e.ok { ("ok", "✓ met") } else { ("bad", "✗ not met") };
        let _ = write!(
            out,
            "<tr><td class=\"{class}\">{mark}</td><td>{}</td><td>{}</td><td class=\"n\">{measured}</td></tr>",
            escape(&e.what),
            escape(&e.value)
        );
    }
    for (_, app) in failed {
        let _ = write!(
            out,
            "<tr><td class=\"bad\">✗ failed</td><td>{}: <code>{}</code></td><td>exit 0</td><td class=\"n\">exit {}</td></tr>",
            escape(&app.name),
            escape(&app.run),
            app.exit.unwrap_or_default()
        );
    }
    for w in warnings {
        let _ = write!(
            out,
            "<tr><td class=\"bad\">✗ cannot work</td><td colspan=\"3\">{}:{}: {}; {}</td></tr>",
            escape(&w.file),
            w.line,
            escape(&w.message),
            escape(&w.help)
        );
    }
    for f in &r.setup_failures {
        let _ = write!(
            out,
            "<tr><td class=\"bad\">! refused</td><td>{}: <code>{}</code></td><td colspan=\"2\">{}</td></tr>",
            escape(&f.host),
            escape(&f.command),
            escape(&f.message)
        );
    }
    out.push_str("</tbody></table></section>\n");
}

/// Most curves of one chart; the rest would only hide each other.
const MAX_CURVES: usize = 8;

fn line(name: &str, colour: usize, stroke: Stroke, points: &[(f64, f64)]) -> Line {
    Line { name: name.to_owned(), colour, stroke, points: points.to_vec() }
}

/// Joins neighbours until there are few enough to see: each point is the mean of its neighbours.
fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let per = points.len().div_ceil(most.max(1)).max(1);
    let mean = |c: &[(f64, f64)]| (c[c.len() - 1].0, c.iter().map(|p| p.1).sum::<f64>() / c.len() as f64);
    points.chunks(per).map(mean).collect()
}

fn any(points: &[(f64, f64)]) -> bool {
    points.iter().any(|p| p.1 > 0.0)
}

fn charts(page: &Page<'_>) -> String {
    let r = page.record;
    let x = (0.0, r.duration_s);
    let mut out = String::from("<div class=\"charts\">");
    let before = out.len();
    let mut put = |chart: Chart| {
        if !chart.lines.is_empty() {
            let _ = write!(out, "<figure>{}</figure>", chart.svg());
        }
    };
    let curves = |metric: &str, of: &dyn Fn(&Curve) -> Option<String>| {
        let found = page.series.curves().iter().filter(|c| c.metric == metric && any(&c.points));
        let named = found.filter_map(|c| of(c).map(|name| (name, c)));
        named.take(MAX_CURVES).collect::<Vec<_>>()
    };
    // Colours follow the program, not the chart: the same one looks the same everywhere.
    let moved = page
        .series
        .curves()
        .iter()
        .filter(|c| matches!(c.metric.as_str(), "goodput_bit_s" | "rtt_ms") && any(&c.points));
    let moved: BTreeSet<&str> =
        moved.flat_map(|c| [Some(c.object.as_str()), c.object.strip_prefix("flow ")]).flatten().collect();
    let mut colours: BTreeMap<&str, usize> = BTreeMap::new();
    for name in r.apps.iter().map(|a| a.name.as_str()).chain(r.flows.iter().map(|f| f.name.as_str())) {
        if moved.contains(name) {
            let next = colours.len();
            colours.entry(name).or_insert(next);
        }
    }
    let colour = |name: &str| colours.get(name).copied().unwrap_or(0);
    let apps: BTreeSet<&str> = r.apps.iter().map(|a| a.name.as_str()).collect();
    let mut flows: BTreeMap<&str, Vec<&record::Flow>> = BTreeMap::new();
    r.flows.iter().for_each(|f| flows.entry(&f.name).or_default().push(f));
    let app = |c: &Curve| apps.contains(c.object.as_str()).then(|| c.object.clone());
    let described = |c: &Curve| {
        let name = c.object.strip_prefix("flow ")?;
        flows.get(name)?.iter().any(|f| f.app.is_none()).then(|| name.to_owned())
    };
    let goodput: Vec<_> = curves("goodput_bit_s", &app)
        .into_iter()
        .chain(curves("goodput_bit_s", &described))
        .take(MAX_CURVES)
        .collect();
    let mut chart = Chart::new("Throughput at the receiving program", Unit::BitPerSecond, x);
    chart.lines = goodput
        .iter()
        .map(|(name, c)| line(name, colour(name), Stroke::Line, &thinned(&c.points, 150)))
        .collect();
    put(chart);
    let mut chart = Chart::new("Round-trip time", Unit::Millisecond, x);
    chart.lines =
        curves("rtt_ms", &app).iter().map(|(n, c)| line(n, colour(n), Stroke::Dots, &c.points)).collect();
    chart.log = spread(&chart);
    put(chart);
    let mut chart = Chart::new("One-way delay, mean of each interval", Unit::Millisecond, x);
    let owd = curves("owd_ms", &|c| {
        let name = c.object.strip_prefix("flow ")?;
        let flow = flows.get(name)?.first()?;
        // Echoes have their round trips above; a stream of acknowledgements would only repeat the path.
        (flow.proto != "icmp").then(|| flow.app.clone().unwrap_or(name.to_owned()))
    });
    chart.lines =
        owd.iter().map(|(n, c)| line(n, colour(n), Stroke::Line, &thinned(&c.points, 150))).collect();
    chart.log = spread(&chart);
    put(chart);
    for device in shaped(r).take(MAX_DEVICES) {
        device_charts(page, device, x, &mut put);
    }
    if out.len() == before {
        return String::new();
    }
    out.push_str("</div>");
    out
}

/// Whether delays lie so far apart that only a logarithmic scale shows all of them.
fn spread(chart: &Chart) -> bool {
    let values = chart.lines.iter().flat_map(|l| l.points.iter().map(|p| p.1)).filter(|y| *y > 0.0);
    let (low, high) = values.fold((f64::INFINITY, 0.0f64), |(l, h), y| (l.min(y), h.max(y)));
    high > 30.0 * low
}

/// Most devices whose queues have charts and a tree of their own.
const MAX_DEVICES: usize = 40;
/// Most programs, flows and devices in a table; thousands are the business of `record.json`.
const MAX_ROWS: usize = 200;
/// Most bytes of what tc showed of a device.
const MAX_SHOWN: usize = 64 << 10;

/// Says that a list goes on in the record.
fn more_of(out: &mut String, more: usize) {
    if more > 0 {
        let _ = write!(out, "<p class=\"note\">and {more} more in record.json</p>");
    }
}

/// Devices whose qdiscs somebody set up, and those that dropped something.
fn shaped(r: &Record) -> impl Iterator<Item = &Device> {
    r.devices.iter().filter(|d| d.qdiscs.iter().any(|q| q.handle != "0:" || q.drops > 0))
}

fn device_charts(page: &Page<'_>, device: &Device, x: (f64, f64), put: &mut dyn FnMut(Chart)) {
    let name = format!("{} {}", device.host, device.dev);
    // sfq lists each flow it holds at the moment as a class of its own.
    let flows = device.classes.iter().filter(|c| c.kind == "sfq").map(|c| c.classid.as_str());
    let parents = device.classes.iter().map(|c| c.parent.as_str());
    let no_leaves: BTreeSet<&str> = flows.chain(parents).collect();
    let leaf = |id: &str| !no_leaves.contains(id);
    let of = |metric: &str| {
        let prefix = format!("{} class ", device.dev);
        let classes =
            page.series.curves().iter().filter(move |c| c.host == device.host && c.metric == metric);
        let found = classes.filter_map(|c| Some((c.object.strip_prefix(&prefix)?.to_owned(), c)));
        found.filter(|(id, c)| leaf(id) && any(&c.points)).take(MAX_CURVES).collect::<Vec<_>>()
    };
    let leaves = device.classes.iter().map(|c| c.classid.as_str()).filter(|id| leaf(id));
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, id) in leaves.enumerate() {
        places.entry(id).or_insert(i);
    }
    let index = |id: &str| places.get(id).copied();
    let lines = |found: Vec<(String, &Curve)>| {
        let line = |(id, c): &(String, &Curve)| {
            line(id, index(id).unwrap_or(0), Stroke::Line, &thinned(&c.points, 150))
        };
        found.iter().map(line).collect::<Vec<_>>()
    };
    let mut chart = Chart::new(format!("{name}: rate of each class"), Unit::BitPerSecond, x);
    chart.lines = lines(of("throughput_bit_s"));
    let total =
        device.classes.iter().filter(|c| c.parent == "root").find_map(|c| c.ceil_bit_s.or(c.rate_bit_s));
    if let Some(ceil) = total.filter(|_| !chart.lines.is_empty()) {
        chart.levels.push(Level { name: format!("ceil {}", Unit::BitPerSecond.show(ceil)), y: ceil });
    }
    put(chart);
    let mut chart = Chart::new(format!("{name}: queued in each class"), Unit::Byte, x);
    chart.lines = lines(of("backlog_bytes"));
    put(chart);
    if device.classes.iter().all(|c| c.kind == "sfq") {
        let own = page.series.curves().iter().filter(|c| {
            c.host == device.host
                && c.object.starts_with(&format!("{} ", device.dev))
                && !c.object.starts_with(&format!("{} class ", device.dev))
                && any(&c.points)
        });
        let own: Vec<&Curve> = own.collect();
        for (metric, title, unit) in
            [("throughput_bit_s", "rate", Unit::BitPerSecond), ("backlog_bytes", "queued", Unit::Byte)]
        {
            let mut chart = Chart::new(format!("{name}: {title}"), unit, x);
            let found = own.iter().filter(|c| c.metric == metric).take(MAX_CURVES).enumerate();
            let named = |c: &Curve| c.object[device.dev.len() + 1..].to_owned();
            chart.lines =
                found.map(|(i, c)| line(&named(c), i, Stroke::Line, &thinned(&c.points, 150))).collect();
            put(chart);
        }
    }
}

fn queues(page: &Page<'_>) -> String {
    let mut out = String::new();
    for device in shaped(page.record).take(MAX_DEVICES) {
        out.push_str(&classes::tree(page, device));
    }
    let more = shaped(page.record).count().saturating_sub(MAX_DEVICES);
    more_of(&mut out, more);
    out
}

/// A table; columns whose cells are all empty are left out.
struct Rows {
    head: Vec<(&'static str, bool)>,
    rows: Vec<Vec<String>>,
}

impl Rows {
    /// Columns: name, whether numbers.
    fn new(head: &[(&'static str, bool)]) -> Rows {
        Rows { head: head.to_vec(), rows: Vec::new() }
    }
    fn html(&self) -> String {
        let used: Vec<usize> =
            (0..self.head.len()).filter(|&i| self.rows.iter().any(|r| !r[i].is_empty())).collect();
        if used.is_empty() {
            return String::new();
        }
        let class = |i: usize| if self.head[i].1 { " class=\"n\"" } else { "" };
        let mut out = String::from("<div class=\"wide\"><table><thead><tr>");
        for &i in &used {
            let _ = write!(out, "<th{}>{}</th>", class(i), self.head[i].0);
        }
        out.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            out.push_str("<tr>");
            for &i in &used {
                let _ = write!(out, "<td{}>{}</td>", class(i), row[i]);
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody></table></div>\n");
        out
    }
}

fn count(n: Option<u64>) -> String {
    n.map(|n| Unit::Count.show(n as f64)).unwrap_or_default()
}

fn lost(app: &App) -> String {
    match (app.lost_packets, app.sent_packets) {
        (Some(lost), Some(sent)) if sent > 0 => {
            format!("{} of {}", Unit::Count.show(lost as f64), Unit::Count.show(sent as f64))
        }
        _ => String::new(),
    }
}

fn apps(page: &Page<'_>) -> String {
    let r = page.record;
    let mut rows = Rows::new(&[
        ("name", false),
        ("command", false),
        ("from", true),
        ("to", true),
        ("exit", true),
        ("throughput", true),
        ("rtt mean", true),
        ("p95", true),
        ("max", true),
        ("jitter", true),
        ("lost", true),
        ("retransmits", true),
    ]);
    for app in r.apps.iter().take(MAX_ROWS) {
        let so_far = || app.so_far_bit_s.map(|x| format!("{} so far", Unit::BitPerSecond.show(x)));
        let rate =
            app.throughput_bit_s.map(|x| Unit::BitPerSecond.show(x)).or_else(so_far).unwrap_or_default();
        let ms = |x: Option<f64>| x.map(|x| Unit::Millisecond.show(x)).unwrap_or_default();
        let s = |x: Option<f64>| x.map(|x| format!("{x:.1} s")).unwrap_or_default();
        rows.rows.push(vec![
            escape(&app.name),
            format!("<code>{}</code>", escape(&app.run)),
            s(app.start_s),
            s(app.end_s),
            app.exit.map(|e| e.to_string()).unwrap_or_default(),
            rate,
            ms(app.rtt_ms.map(|d| d.mean)),
            ms(app.rtt_ms.map(|d| d.p95)),
            ms(app.rtt_ms.map(|d| d.max)),
            ms(app.jitter_ms),
            lost(app),
            count(app.retransmitted_packets),
        ]);
    }
    let mut out = rows.html();
    more_of(&mut out, r.apps.len().saturating_sub(MAX_ROWS));
    for (app, text) in
        r.apps.iter().zip(page.outputs).take(MAX_ROWS).filter(|(_, text)| !text.trim().is_empty())
    {
        let _ = write!(
            out,
            "<details><summary>{} printed</summary><pre><b>{}$ {}</b>\n{}</pre></details>\n",
            escape(&app.name),
            escape(&app.host),
            escape(&app.run),
            escape(text)
        );
    }
    out
}

/// Findings: where, what, why, and what to write instead.
fn findings(r: &Record) -> String {
    if r.findings.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<div class=\"wide\"><table class=\"findings\"><thead><tr><th>machine</th><th>place</th><th>code</th><th>what</th></tr></thead><tbody>\n",
    );
    for f in &r.findings {
        let column = if f.column > 0 { format!(":{}", f.column) } else { String::new() };
        let class = if f.level == "error" { " class=\"bad\"" } else { "" };
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}:{}{column}</td><td{class}>{} {}</td><td>{}",
            escape(&f.host),
            escape(&f.file),
            f.line,
            escape(&f.level),
            escape(&f.code),
            escape(&f.message)
        );
        if !f.reason.is_empty() {
            let _ = write!(out, "<p class=\"note\">{}</p>", escape(&f.reason));
        }
        if !f.fix.is_empty() {
            let _ = write!(out, "<pre>{}</pre>", escape(f.fix.trim_end()));
        }
        out.push_str("</td></tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

fn flows(r: &Record) -> String {
    let mut rows = Rows::new(&[
        ("name", false),
        ("group", false),
        ("path", false),
        ("proto", false),
        ("goodput", true),
        ("delay mean", true),
        ("p95", true),
        ("max", true),
        ("jitter", true),
        ("sent", true),
        ("lost", true),
        ("marked", true),
    ]);
    let described = || r.flows.iter().filter(|f| f.app.is_none());
    for f in described().take(MAX_ROWS) {
        let ms = |x: Option<f64>| x.map(|x| Unit::Millisecond.show(x)).unwrap_or_default();
        let dscp = f.dscp.as_ref().map(|dscp| format!(" {}", escape(dscp))).unwrap_or_default();
        rows.rows.push(vec![
            escape(&f.name),
            escape(f.group.as_deref().unwrap_or_default()),
            format!("{} → {}", escape(&f.from), escape(&f.to)),
            format!("{}{dscp}", f.proto),
            Unit::BitPerSecond.show(f.goodput_bit_s),
            ms(f.owd_ms.map(|d| d.mean)),
            ms(f.owd_ms.map(|d| d.p95)),
            ms(f.owd_ms.map(|d| d.max)),
            ms(f.jitter_ms),
            count(Some(f.sent_packets)),
            count(Some(f.lost_packets)),
            count(Some(f.marked_packets).filter(|n| *n > 0)),
        ]);
    }
    let mut out = rows.html();
    more_of(&mut out, described().count().saturating_sub(MAX_ROWS));
    // Shares are compared among those that belong together.
    let mut groups: Vec<(Option<&str>, &str)> =
        described().map(|f| (f.group.as_deref(), f.proto.as_str())).collect();
    groups.sort_unstable();
    groups.dedup();
    for group in groups {
        let of = described().filter(|f| (f.group.as_deref(), f.proto.as_str()) == group);
        let goodputs: Vec<f64> = of.map(|f| f.goodput_bit_s).collect();
        if let Some(index) = crate::jain(&goodputs).filter(|_| goodputs.len() > 1) {
            let name = group.0.map(|g| format!(" of {}", escape(g))).unwrap_or_default();
            let _ =
                write!(out, "<p class=\"note\">Jain's fairness index of the goodputs{name}: {index:.3}</p>");
        }
    }
    out
}

fn devices(page: &Page<'_>) -> String {
    let mut rows = Rows::new(&[
        ("device", false),
        ("root qdisc", false),
        ("sent", true),
        ("packets", true),
        ("dropped", true),
        ("overlimits", true),
        ("still queued", true),
    ]);
    let root = |d: &'_ Device| d.qdiscs.iter().find(|q| q.parent == "root").cloned();
    // Of many those that sent most.
    let mut chosen: Vec<(usize, record::Qdisc)> =
        page.record.devices.iter().enumerate().filter_map(|(i, d)| Some((i, root(d)?))).collect();
    let more = chosen.len().saturating_sub(MAX_ROWS);
    if more > 0 {
        chosen.sort_by_key(|(i, q)| (std::cmp::Reverse((q.drops, q.bytes)), *i));
        chosen.truncate(MAX_ROWS);
        chosen.sort_by_key(|(i, _)| *i);
    }
    for (i, root) in chosen {
        let d = &page.record.devices[i];
        rows.rows.push(vec![
            format!("{} {}", escape(&d.host), escape(&d.dev)),
            format!("{} {}", escape(&root.kind), escape(&root.handle)),
            Unit::Byte.show(root.bytes as f64),
            count(Some(root.packets)),
            count(Some(root.drops)),
            count(Some(root.overlimits)),
            count(Some(root.qlen).filter(|n| *n > 0)),
        ]);
    }
    let mut out = rows.html();
    more_of(&mut out, more);
    let shaped: BTreeSet<(&str, &str)> =
        shaped(page.record).take(MAX_DEVICES).map(|d| (d.host.as_str(), d.dev.as_str())).collect();
    for (host, dev, text) in page.tc {
        if shaped.contains(&(host.as_str(), dev.as_str())) {
            let _ = writeln!(
                out,
                "<details><summary>tc on {} {}</summary><pre>{}</pre></details>",
                escape(host),
                escape(dev),
                escape(&shortened(text))
            );
        }
    }
    out
}

/// The lines of a text up to [`MAX_SHOWN`] bytes.
fn shortened(text: &str) -> std::borrow::Cow<'_, str> {
    if text.len() <= MAX_SHOWN {
        return text.into();
    }
    let end = text.as_bytes()[..MAX_SHOWN].iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    let more = text.as_bytes()[end..].iter().filter(|&&b| b == b'\n').count();
    format!("{}… and {more} more lines, in the folder tc of this run\n", &text[..end]).into()
}
