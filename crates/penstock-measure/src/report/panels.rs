//! The charts of a run over time.

use super::{MAX_DEVICES, Page, shaped};
use crate::live::{ALWAYS, Curve, Live, Panel, Stack, any, sum};
use crate::number::Unit;
use crate::plot::{INK, Level, Stroke, escape};
use crate::record::{self, Device, Record};
use crate::series;
use std::collections::{BTreeMap, BTreeSet};

/// What the series call things, and a colour for each program and flow: the same one looks the same everywhere.
pub(super) struct Names<'a> {
    page: &'a Page<'a>,
    apps: BTreeSet<&'a str>,
    flows: BTreeMap<&'a str, &'a record::Flow>,
    colours: BTreeMap<&'a str, usize>,
    /// Programs with one flow only.
    single: BTreeSet<&'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn new(page: &'a Page<'a>) -> Names<'a> {
        let r = page.record;
        let apps: BTreeSet<&str> = r.apps.iter().map(|a| a.name.as_str()).collect();
        let mut flows: BTreeMap<&str, &record::Flow> = BTreeMap::new();
        for flow in &r.flows {
            flows.entry(&flow.name).or_insert(flow);
        }
        let moved =
            |c: &&series::Curve| matches!(c.metric.as_str(), "goodput_bit_s" | "rtt_ms") && any(&c.points);
        let moved: BTreeSet<&str> =
            page.series.curves().iter().filter(moved).map(|c| c.object.as_str()).collect();
        let mut colours = BTreeMap::new();
        for name in r.apps.iter().map(|a| a.name.as_str()) {
            if moved.contains(name) {
                let next = colours.len();
                colours.entry(name).or_insert(next);
            }
        }
        for flow in r.flows.iter().filter(|f| f.app.is_none()) {
            if moved.contains(format!("flow {}", flow.name).as_str()) {
                let next = colours.len();
                colours.entry(flow.name.as_str()).or_insert(next);
            }
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        r.flows.iter().filter_map(|f| f.app.as_deref()).for_each(|app| *counts.entry(app).or_default() += 1);
        let single = counts.into_iter().filter(|(_, n)| *n == 1).map(|(app, _)| app).collect();
        Names { page, apps, flows, colours, single }
    }

    /// The flow of a curve.
    fn flow(&self, curve: &series::Curve) -> Option<&'a record::Flow> {
        self.flows.get(curve.object.strip_prefix("flow ")?).copied()
    }

    /// Curves of a metric that have anything to show.
    fn curves(&self, metric: &'static str) -> impl Iterator<Item = &'a series::Curve> {
        self.page.series.curves().iter().filter(move |c| c.metric == metric && any(&c.points))
    }

    /// The colour of a program or flow; that of its program for a flow that one made.
    pub(super) fn colour(&self, name: &str) -> usize {
        let app = || self.flows.get(name).and_then(|f| self.colours.get(f.app.as_deref()?)).copied();
        self.colours.get(name).copied().or_else(app).unwrap_or(0)
    }

    /// What a flow is called: as its program, where that has no other.
    pub(super) fn called(&self, flow: &'a record::Flow) -> &'a str {
        match flow.app.as_deref() {
            Some(app) if self.single.contains(app) => app,
            _ => &flow.name,
        }
    }

    /// Curves of programs, and of flows that no program made: name and curve.
    fn of_all(&self, metric: &'static str) -> Vec<(&'a str, &'a series::Curve)> {
        let apps = self.curves(metric).filter(|c| self.apps.contains(c.object.as_str()));
        let apps = apps.map(|c| (c.object.as_str(), c));
        let flows = self
            .curves(metric)
            .filter_map(|c| self.flow(c).filter(|f| f.app.is_none()).map(|f| (f.name.as_str(), c)));
        apps.chain(flows).collect()
    }
}

/// Throughput and, below it on the same axis, what delay it costs.
pub(super) fn under_load(names: &Names<'_>, live: &mut Live) -> String {
    let seconds = names.page.record.duration_s;
    let all = names.of_all("goodput_bit_s");
    let mut rate =
        Panel::over_time("throughput", "Throughput at the receiving program", Unit::BitPerSecond, seconds);
    rate.wide = true;
    rate.stack = Stack::May;
    rate.curves = all.iter().map(|(n, c)| Curve::new(*n, names.colour(n), &c.points[..])).collect();
    if rate.curves.len() > 1 {
        let points = sum(all.iter().map(|(_, c)| &c.points[..]));
        rate.curves.push(Curve { weight: ALWAYS, ..Curve::new("all together", INK, points) });
    }
    rate.note = remarks(names, &all).join(" ");
    let mut delay = Panel::over_time("delay", "Delay under load", Unit::Millisecond, seconds);
    delay.wide = true;
    for (name, c) in names.of_all("rtt_ms") {
        // Probes are what this chart is for: they come first.
        let weight = 1e200 + c.points.len() as f64;
        let curve = Curve::new(format!("{name} round trip"), names.colour(name), &c.points[..]);
        delay.curves.push(Curve { stroke: Stroke::Dots, weight, ..curve });
    }
    let probes = delay.curves.len();
    for c in names.curves("owd_ms") {
        let Some(flow) = names.flow(c).filter(|f| f.proto != "icmp" && f.rtt_ms.is_none()) else { continue };
        if flow.proto != "tcp" || probes == 0 {
            let name = format!("{} one way", names.called(flow));
            delay.curves.push(Curve {
                weight: flow.received_packets as f64,
                ..Curve::new(name, names.colour(&flow.name), &c.points[..])
            });
        }
    }
    if probes > 0 {
        delay.note = "Dots: each answer of a probe. Lines: mean one-way delay of each interval.".to_owned();
    }
    live.figure(&rate) + &live.figure(&delay.log_if_far())
}

/// What of the throughputs looks wrong and is not.
fn remarks(names: &Names<'_>, all: &[(&str, &series::Curve)]) -> Vec<String> {
    let r = names.page.record;
    let mut said = Vec::new();
    let fastest = fastest(r);
    let spike = all.iter().filter_map(|(name, c)| {
        let to = match names.flows.get(name) {
            Some(flow) => flow.to.as_str(),
            None => {
                let own = |f: &&record::Flow| f.app.as_deref() == Some(*name) && f.proto == "tcp";
                r.flows.iter().find(own)?.to.as_str()
            }
        };
        let narrowest = *fastest.get(to)?;
        let top = c.points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
        (top.1 > 1.1 * narrowest).then_some((*name, top, narrowest))
    });
    if let Some((name, (t, y), rate)) = spike.max_by(|a, b| (a.1.1 / a.2).total_cmp(&(b.1.1 / b.2))) {
        said.push(format!(
            "{} at {t:.2} s: {} where at most {} come in. Bytes count when the program can read them: TCP holds back what lies behind a lost segment, and \
             hands all of it over at once when that one has come (head-of-line blocking). What was on the line is in the charts of the devices.",
            escape(name),
            Unit::BitPerSecond.show(y),
            Unit::BitPerSecond.show(rate)
        ));
    }
    said.extend(uneven(r));
    said
}

/// The rate at which each machine can receive, from all its links; those of which one has no limit are not there.
fn fastest(r: &Record) -> BTreeMap<&str, f64> {
    let mut totals: BTreeMap<&str, f64> = BTreeMap::new();
    for link in &r.rig.links {
        for (i, end) in link.ends.iter().enumerate() {
            let others =
                link.end_rates_bit_s.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, rate)| *rate);
            let rate = match link.end_rates_bit_s.is_empty() {
                true => link.rate_bit_s.unwrap_or(0.0),
                false => others.fold(0.0, f64::max),
            };
            let host = end.split(':').next().unwrap_or_default();
            *totals.entry(host).or_default() += if rate > 0.0 { rate } else { f64::INFINITY };
        }
    }
    totals.retain(|_, total| total.is_finite());
    totals
}

/// Connections that share a way unevenly although nothing ever told one of them to slow down.
fn uneven(r: &Record) -> Option<String> {
    let mut ways: BTreeMap<(&str, &str), Vec<&record::Flow>> = BTreeMap::new();
    // Those that last: a short transfer has another share by itself.
    let lasting = |f: &&record::Flow| {
        f.proto == "tcp"
            && f.end_s.unwrap_or(r.duration_s) - f.start_s.unwrap_or(0.0) > r.duration_s / 2.0
            && f.goodput_bit_s > 0.0
    };
    for flow in r.flows.iter().filter(lasting) {
        ways.entry((&flow.from, &flow.to)).or_default().push(flow);
    }
    for ((from, to), flows) in ways.into_iter().filter(|(_, flows)| flows.len() > 1) {
        let rates: Vec<f64> = flows.iter().map(|f| f.goodput_bit_s).collect();
        let untold = flows.iter().all(|f| f.lost_packets == 0 && f.marked_packets == 0);
        if untold && crate::jain(&rates).is_some_and(|index| index < 0.95) {
            let (low, high) = rates.iter().fold((f64::INFINITY, 0.0f64), |(l, h), &x| (l.min(x), h.max(x)));
            return Some(format!(
                "The {} connections from {} to {} have between {} and {}, and none of them lost a packet or was marked: no window was ever cut, so shares stay \
                 as the beginning left them (the first to leave slow start keeps the most). Their windows are below.",
                flows.len(),
                escape(from),
                escape(to),
                Unit::BitPerSecond.show(low),
                Unit::BitPerSecond.show(high)
            ));
        }
    }
    None
}

/// What groups of flows got, stacked.
pub(super) fn groups(names: &Names<'_>, live: &mut Live) -> String {
    let r = names.page.record;
    let mut panel = Panel::over_time("groups", "Goodput of groups", Unit::BitPerSecond, r.duration_s);
    panel.stack = Stack::Yes;
    panel.wide = true;
    let mut members: BTreeMap<&str, Vec<&[(f64, f64)]>> = BTreeMap::new();
    for c in names.curves("goodput_bit_s") {
        if let Some(group) = names.flow(c).and_then(|f| f.group.as_deref()) {
            members.entry(group).or_default().push(&c.points);
        }
    }
    for (n, (group, curves)) in members.into_iter().enumerate() {
        panel.curves.push(Curve::new(group, n, sum(curves)));
    }
    live.figure(&panel)
}

/// The parts of a device that the series know: name, and object.
struct Parts<'a> {
    page: &'a Page<'a>,
    device: &'a Device,
    /// Classes that have others below them, and those that hold a qdisc.
    parents: BTreeSet<&'a str>,
    held: BTreeSet<&'a str>,
}

impl<'a> Parts<'a> {
    fn new(page: &'a Page<'a>, device: &'a Device) -> Parts<'a> {
        let parents = device.classes.iter().map(|c| c.parent.as_str()).collect();
        let held = device.qdiscs.iter().map(|q| q.parent.as_str()).collect();
        Parts { page, device, parents, held }
    }
    fn points(&self, object: &str, metric: &str) -> &'a [(f64, f64)] {
        self.page.series.points(&self.device.host, object, metric)
    }
    fn class(&self, id: &str) -> String {
        format!("{} class {id}", self.device.dev)
    }
    fn qdisc(&self, q: &record::Qdisc) -> String {
        match q.handle.as_str() {
            // The kernel has put it into a class by itself.
            "0:" if q.parent != "root" && q.parent != "ingress" => {
                format!("{} {} 0: in {}", self.device.dev, q.kind, q.parent)
            }
            handle => format!("{} {} {handle}", self.device.dev, q.kind),
        }
    }
    /// Classes that were set up and have none below them.
    fn leaves(&self) -> Vec<&'a record::Class> {
        self.device.classes.iter().filter(|c| self.is_leaf(c)).collect()
    }
    fn is_leaf(&self, class: &record::Class) -> bool {
        class.is_set_up() && !self.parents.contains(class.classid.as_str())
    }
    /// Whether a qdisc that is shown stands in a class.
    fn holds(&self, class: &record::Class) -> bool {
        self.held.contains(class.classid.as_str())
    }
    fn root(&self) -> Option<&'a record::Qdisc> {
        self.device.qdiscs.iter().find(|q| q.parent == "root")
    }
}

/// Rate, queue, and losses and marks of each device that has a queue worth looking at.
pub(super) fn device(page: &Page<'_>, device: &Device, live: &mut Live) -> String {
    let parts = Parts::new(page, device);
    let seconds = page.record.duration_s;
    let name = format!("{} {}", device.host, device.dev);
    let id = |what: &str| {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        format!("{}-{what}", name.chars().map(plain).collect::<String>())
    };
    let leaves = parts.leaves();
    let Some(root) = parts.root() else { return String::new() };
    let called = |c: &record::Class| match &c.leaf {
        Some(leaf) => {
            let kind = device.qdiscs.iter().find(|q| q.handle == *leaf).map(|q| format!(" ({})", q.kind));
            format!("{}{}", c.classid, kind.unwrap_or_default())
        }
        None => c.classid.clone(),
    };
    // Classes have the same colour in all charts of a device.
    let of_classes = |metric: &str| -> Vec<Curve<'_>> {
        let with = |(n, c): (usize, &&record::Class)| {
            let points = parts.points(&parts.class(&c.classid), metric);
            any(points).then(|| Curve::new(called(c), n, points))
        };
        leaves.iter().enumerate().filter_map(with).collect()
    };
    let mut rate = Panel::over_time(id("rate"), format!("{name}: rate"), Unit::BitPerSecond, seconds);
    rate.curves = of_classes("throughput_bit_s");
    for (curve, class) in rate.curves.iter_mut().filter_map(|curve| {
        let class = leaves.iter().find(|c| called(c) == curve.name)?;
        Some((curve, class))
    }) {
        (curve.rate, curve.ceil) = (class.rate_bit_s, class.ceil_bit_s);
    }
    rate.stack = if rate.curves.len() > 1 { Stack::Yes } else { Stack::No };
    let own = parts.points(&parts.qdisc(root), "throughput_bit_s");
    if rate.curves.is_empty() && any(own) {
        rate.curves.push(Curve::new(format!("{} {}", root.kind, root.handle), 0, own));
    }
    let top =
        device.classes.iter().filter(|c| c.parent == "root").find_map(|c| c.ceil_bit_s.or(c.rate_bit_s));
    if let Some(ceil) = top {
        rate.levels.push(Level { name: format!("ceil {}", Unit::BitPerSecond.show(ceil)), y: ceil });
    } else if let Some(limit) = root.rate_bit_s {
        rate.levels.push(Level { name: format!("rate {}", Unit::BitPerSecond.show(limit)), y: limit });
    } else if let Some(limit) = line(page.record, device) {
        rate.levels.push(Level { name: format!("link {}", Unit::BitPerSecond.show(limit)), y: limit });
    }
    let mut queue = Panel::over_time(id("queue"), format!("{name}: queued"), Unit::Byte, seconds);
    queue.curves = of_classes("backlog_bytes");
    queue.stack = if queue.curves.len() > 1 { Stack::May } else { Stack::No };
    let own = parts.points(&parts.qdisc(root), "backlog_bytes");
    if any(own) {
        let colour = if queue.curves.is_empty() { 0 } else { INK };
        let name = if queue.curves.is_empty() {
            format!("{} {}", root.kind, root.handle)
        } else {
            "all of it".to_owned()
        };
        queue.curves.push(Curve { weight: ALWAYS, ..Curve::new(name, colour, own) });
    }
    let lost = losses(&parts, &leaves, &id("losses"), &name, seconds);
    live.figure(&rate) + &live.figure(&queue) + &live.figure(&lost)
}

/// What each qdisc dropped and marked, a second.
fn losses<'a>(parts: &Parts<'a>, leaves: &[&record::Class], id: &str, name: &str, seconds: f64) -> Panel<'a> {
    let device = parts.device;
    let mut lost =
        Panel::over_time(id, format!("{name}: dropped and marked, packets/s"), Unit::Count, seconds);
    // Leaves have the colour they have in the other charts, the others the next.
    let place = |class: &str| leaves.iter().position(|c| c.classid == class);
    let mut next = leaves.len();
    let mut marked = false;
    for q in &device.qdiscs {
        let leaf = place(&q.parent);
        let colour = leaf.unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        let called = match leaf {
            Some(_) => format!("{} ({})", q.parent, q.kind),
            None => format!("{} {}", q.kind, q.handle),
        };
        let own = own(parts, q);
        if any(&own) {
            lost.curves.push(Curve::new(format!("dropped {called}"), colour, each_second(&own, false)));
        }
        let marks = parts.points(&parts.qdisc(q), "marks_packets");
        if any(marks) {
            marked = true;
            let curve = Curve::new(format!("marked {called}"), colour, each_second(marks, true));
            lost.curves.push(Curve { stroke: Stroke::Dashes, ..curve });
        }
    }
    // What no qdisc that is shown holds is told by its class.
    for (n, class) in leaves.iter().enumerate().filter(|(_, c)| !parts.holds(c)) {
        let drops = parts.points(&parts.class(&class.classid), "drops_packets");
        if any(drops) {
            let called = format!("dropped {}", class.classid);
            lost.curves.push(Curve::new(called, n, each_second(drops, false)));
        }
    }
    let marks = parts.points(&device.dev, "marks_packets");
    if any(marks) && !marked {
        lost.curves
            .push(Curve { stroke: Stroke::Dashes, ..Curve::new("marked", 3, each_second(marks, true)) });
    }
    lost
}

/// What a qdisc dropped itself: what its children and its classes drop it counts as well.
fn own(parts: &Parts<'_>, q: &record::Qdisc) -> Vec<(f64, f64)> {
    let mut own = parts.points(&parts.qdisc(q), "drops_packets").to_vec();
    if !any(&own) {
        return own;
    }
    let within = |class: &str| q.handle != "0:" && class.split(':').next() == q.handle.split(':').next();
    let qdiscs = parts.device.qdiscs.iter().filter(|child| within(&child.parent));
    let below = qdiscs.map(|child| parts.points(&parts.qdisc(child), "drops_packets"));
    let classes = parts.device.classes.iter().filter(|c| within(&c.classid) && parts.is_leaf(c));
    let classes = classes.filter(|c| !parts.holds(c));
    let below = below.chain(classes.map(|c| parts.points(&parts.class(&c.classid), "drops_packets")));
    for points in below {
        // Both are sampled at the same instants; a child may have come later.
        let mut at = own.iter_mut().peekable();
        for (t, lost) in points {
            while at.next_if(|mine| mine.0 < *t).is_some() {}
            if let Some(mine) = at.next_if(|mine| mine.0 == *t) {
                mine.1 = (mine.1 - lost).max(0.0);
            }
        }
    }
    own
}

#[cfg(test)]
pub(super) fn own_drops(page: &Page<'_>, device: &Device, q: &record::Qdisc) -> Vec<(f64, f64)> {
    own(&Parts::new(page, device), q)
}

/// Counts of intervals, or a counter's growth, as a rate per second.
fn each_second(points: &[(f64, f64)], counter: bool) -> Vec<(f64, f64)> {
    let distance = points.windows(2).map(|w| w[1].0 - w[0].0).next().unwrap_or(1.0).max(1e-9);
    let mut before = (points.first().map_or(0.0, |p| p.0 - distance), 0.0);
    let mut rate = |&(t, y): &(f64, f64)| {
        let long = (t - before.0).max(1e-9);
        let n = if counter { (y - before.1).max(0.0) } else { y };
        before = (t, y);
        (t, n / long)
    };
    points.iter().map(&mut rate).collect()
}

/// The rate of the link that a device sends on.
fn line(r: &Record, device: &Device) -> Option<f64> {
    let own = format!("{}:{}", device.host, device.dev);
    let (link, at) = r.rig.links.iter().find_map(|l| Some((l, l.ends.iter().position(|e| *e == own)?)))?;
    link.end_rates_bit_s.get(at).copied().filter(|rate| *rate > 0.0).or(link.rate_bit_s)
}

/// What TCP's senders say of themselves.
pub(super) fn tcp(names: &Names<'_>, live: &mut Live) -> String {
    let seconds = names.page.record.duration_s;
    let weight = |c: &series::Curve| {
        names.flow(c).and_then(|f| f.payload_bytes).map_or(1.0, |bytes| 1.0 + bytes as f64)
    };
    // Of programs with several connections each has its colour.
    let mut colours: BTreeMap<&str, usize> = BTreeMap::new();
    for c in names.curves("cwnd_packets") {
        let next = colours.len();
        colours.entry(c.object.as_str()).or_insert(next);
    }
    let few = colours.len() <= 8;
    let colour = |c: &series::Curve| match names.flow(c) {
        Some(f) if !few => names.colour(&f.name),
        _ => colours.get(c.object.as_str()).copied().unwrap_or(0),
    };
    let curve = |c: &'_ series::Curve, stroke, what: &str| {
        let name = names.flow(c).map_or(c.object.as_str(), |f| names.called(f));
        Curve {
            stroke,
            weight: weight(c),
            ..Curve::new(format!("{name}{what}"), colour(c), c.points.clone())
        }
    };
    let mut window = Panel::over_time("cwnd", "Congestion window, packets", Unit::Count, seconds);
    window.curves = names.curves("cwnd_packets").map(|c| curve(c, Stroke::Line, "")).collect();
    window.curves.extend(names.curves("ssthresh_packets").map(|c| curve(c, Stroke::Dashes, " ssthresh")));
    window.note = "Broken lines: slow-start threshold, from its first reduction on.".to_owned();
    let mut trip = Panel::over_time("srtt", "Round trip as TCP smooths it", Unit::Millisecond, seconds);
    trip.curves = names.curves("srtt_ms").map(|c| curve(c, Stroke::Line, "")).collect();
    let mut pace = Panel::over_time("pacing", "Pacing and delivery rate", Unit::BitPerSecond, seconds);
    pace.curves = names.curves("delivery_bit_s").map(|c| curve(c, Stroke::Line, " delivery")).collect();
    pace.curves.extend(names.curves("pacing_bit_s").map(|c| curve(c, Stroke::Dashes, " pacing")));
    pace.note = "Broken lines: the rate at which a sender lets segments leave. Lines: the rate at which they arrived of late.".to_owned();
    let mut way =
        Panel::over_time("owd", "One-way delay of TCP, mean of each interval", Unit::Millisecond, seconds);
    let tcp = |c: &&series::Curve| names.flow(c).is_some_and(|f| f.proto == "tcp");
    way.curves = names.curves("owd_ms").filter(tcp).map(|c| curve(c, Stroke::Line, "")).collect();
    let panels = [window, trip.log_if_far(), pace.log_if_far(), way.log_if_far()];
    panels.iter().map(|p| live.figure(p)).collect()
}

/// Devices with charts of their own.
pub(super) fn devices<'a>(page: &'a Page<'a>) -> Vec<&'a Device> {
    shaped(page).into_iter().take(MAX_DEVICES).collect()
}
