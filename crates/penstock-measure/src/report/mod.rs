//! `report.html`: one run on one page that needs nothing else.

mod classes;
mod panels;
mod people;
mod spread;
#[cfg(test)]
mod tests;
mod topology;

pub use classes::busiest;

use crate::live::{LIVE_STYLE, Live};
use crate::number::Unit;
use crate::plot::{CHART_STYLE, STYLE, escape};
use crate::record::{self, App, Device, Record};
use crate::series::Series;
use panels::Names;
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

/// No icon, so that no browser asks the server for one: what a page may load does not allow that.
pub const NO_ICON: &str = "<link rel=\"icon\" href=\"data:,\">";

/// The beginning of a page in the form of the report, up to its `<main>`.
pub fn opening(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"color-scheme\" content=\"light dark\">{NO_ICON}<title>{}</title>\
         <style>{LIVE_STYLE}</style><style data-charts>{STYLE}{CHART_STYLE}</style><style>{PAGE_STYLE}</style></head><body><main>\n",
        escape(title)
    )
}

/// The report as a page of its own that refers to no network. Without scripts, and on paper, its charts are pictures.
pub fn html(page: &Page<'_>) -> String {
    let r = page.record;
    let mut out = opening(&r.title);
    head(&mut out, r);
    let mut live = Live::new(r.duration_s);
    let names = Names::new(page);
    let grid = |charts: String| match charts.is_empty() {
        true => charts,
        false => format!("<div class=\"charts\">{charts}</div>"),
    };
    let load = match panels::under_load(&names, &mut live) {
        charts if charts.is_empty() => charts,
        charts => format!("<div class=\"charts\" data-bar>{charts}</div>"),
    };
    let group_charts = grid(panels::groups(&names, &mut live));
    let queues = queues(page, &mut live);
    let tcp = grid(panels::tcp(&names, &mut live));
    let spread = grid(spread::charts(page, &names, &mut live));
    let flow_rows = if r.flows.iter().any(|f| f.app.is_none()) { flows(r) } else { String::new() };
    let text = format!(
        "<details><summary>experiment file</summary><pre tabindex=\"0\">{}</pre></details>",
        escape(&r.experiment)
    );
    let sections = [
        ("scores", "Scores", people::scores(r)),
        ("network", "Network", topology::svg(r)),
        ("load", "Latency under load", load),
        ("groups", "Groups", groups(r) + &group_charts),
        ("queues", "Queues", queues),
        ("tcp", "TCP", tcp),
        ("delays", "Delays", spread),
        ("programs", "Programs", apps(page)),
        ("flows", "Flows", flow_rows),
        ("devices", "Devices", devices(page)),
        ("findings", "Findings in the setups", findings(r)),
        ("experiment", "Experiment", text),
    ];
    out.push_str("<nav aria-label=\"sections\">");
    for (id, title, _) in sections.iter().filter(|s| !s.2.is_empty()) {
        let _ = write!(out, "<a href=\"#{id}\">{title}</a>");
    }
    out.push_str("</nav>\n");
    verdicts(&mut out, r);
    for (id, title, body) in &sections {
        section(&mut out, id, title, body);
    }
    let _ = write!(
        out,
        "<footer>penstock {} · ground {} · seed {} · record format {} · charts by uPlot (MIT)</footer>\n</main>\n",
        escape(&r.penstock),
        escape(&r.ground),
        r.seed,
        r.format
    );
    out.push_str(&live.scripts(r.duration_s));
    out.push_str("</body></html>\n");
    out
}

fn section(out: &mut String, id: &str, title: &str, body: &str) {
    if !body.is_empty() {
        let _ = write!(out, "<section id=\"{id}\"><h2>{title}</h2>\n{body}</section>\n");
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
        "<section class=\"verdicts\" id=\"expected\"><h2>Expected and measured</h2><div class=\"wide\" tabindex=\"0\"><table><thead><tr><th></th><th>what</th>\
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
    out.push_str("</tbody></table></div></section>\n");
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

/// Packets that must have waited at a device for it to be worth a look, where nobody set it up and nothing was lost.
const QUEUE: f64 = 8.0;

/// Devices whose qdiscs somebody set up, those that dropped something, and those where packets stood in line. Of very many those come first that dropped most.
fn shaped<'a>(page: &'a Page<'a>) -> Vec<&'a Device> {
    // The longest queue of each device's root, by the device's place in the series.
    let mut longest: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for c in
        page.series.curves().iter().filter(|c| c.metric == "qlen_packets" && !c.object.contains(" class "))
    {
        let dev = c.object.split(' ').next().unwrap_or_default();
        let most = longest.entry((&c.host, dev)).or_default();
        *most = c.points.iter().map(|p| p.1).fold(*most, f64::max);
    }
    let waits = |d: &Device| longest.get(&(d.host.as_str(), d.dev.as_str())).is_some_and(|n| *n >= QUEUE);
    let set_up = |d: &Device| d.qdiscs.iter().any(|q| q.handle != "0:" || q.drops > 0);
    let mut all: Vec<&Device> = page.record.devices.iter().filter(|d| set_up(d) || waits(d)).collect();
    if all.len() > MAX_DEVICES {
        let drops = |d: &Device| d.qdiscs.iter().map(|q| q.drops).sum::<u64>();
        let bytes = |d: &Device| d.qdiscs.iter().map(|q| q.bytes).max().unwrap_or(0);
        all.sort_by_key(|d| std::cmp::Reverse((drops(d), bytes(d))));
    }
    all
}

/// Each device with a queue worth looking at: its tree and its charts.
fn queues(page: &Page<'_>, live: &mut Live) -> String {
    let mut out = String::new();
    for device in panels::devices(page) {
        out.push_str(&classes::tree(page, device));
        let charts = panels::device(page, device, live);
        if !charts.is_empty() {
            let _ = write!(out, "<div class=\"charts\">{charts}</div>");
        }
    }
    more_of(&mut out, shaped(page).len().saturating_sub(MAX_DEVICES));
    out
}

/// Groups of flows: what they got, and what it cost them.
fn groups(r: &Record) -> String {
    let mut rows = Rows::new(&[
        ("group", false),
        ("flows", true),
        ("goodput, all the time", true),
        ("while any lived", true),
        ("Jain", true),
        ("min/max", true),
        ("retransmitted", true),
        ("delay mean", true),
        ("p95", true),
        ("transfers", true),
        ("took p50", true),
        ("p95", true),
    ]);
    let ms = |x: Option<f64>| x.map(|x| Unit::Millisecond.show(x)).unwrap_or_default();
    let plain = |x: Option<f64>| x.map(|x| format!("{x:.3}")).unwrap_or_default();
    for g in r.groups.iter().take(MAX_ROWS) {
        rows.rows.push(vec![
            escape(&g.name),
            count(Some(g.flows)),
            Unit::BitPerSecond.show(g.goodput_bit_s),
            g.active_bit_s.map(|x| Unit::BitPerSecond.show(x)).unwrap_or_default(),
            plain(g.fairness),
            plain(g.min_over_max),
            g.retransmission_rate.map(|x| Unit::Share.show(x)).unwrap_or_default(),
            ms(g.owd_ms.map(|d| d.mean)),
            ms(g.owd_ms.map(|d| d.p95)),
            count(g.completed),
            ms(g.completion_ms.map(|d| d.p50)),
            ms(g.completion_ms.map(|d| d.p95)),
        ]);
    }
    let mut out = rows.html();
    more_of(&mut out, r.groups.len().saturating_sub(MAX_ROWS));
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
        let mut out = String::from("<div class=\"wide\" tabindex=\"0\"><table><thead><tr>");
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
            "<details><summary>{} printed</summary><pre tabindex=\"0\"><b>{}$ {}</b>\n{}</pre></details>\n",
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
        "<div class=\"wide\" tabindex=\"0\"><table class=\"findings\"><thead><tr><th>machine</th><th>place</th><th>code</th><th>what</th></tr></thead><tbody>\n",
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
            let _ = write!(out, "<pre tabindex=\"0\">{}</pre>", escape(f.fix.trim_end()));
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
        ("jitter mean", true),
        ("jitter max", true),
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
            ms(f.jitter_mean_ms.or(f.jitter_ms)),
            ms(f.jitter_max_ms),
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
        panels::devices(page).into_iter().map(|d| (d.host.as_str(), d.dev.as_str())).collect();
    for (host, dev, text) in page.tc {
        if shaped.contains(&(host.as_str(), dev.as_str())) {
            let _ = writeln!(
                out,
                "<details><summary>tc on {} {}</summary><pre tabindex=\"0\">{}</pre></details>",
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
