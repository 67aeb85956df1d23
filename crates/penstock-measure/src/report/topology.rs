//! The picture of machines and links.
//!
//! Machines stand in columns by their distance from the first end system along the links, in each column in an order
//! that keeps neighbours near (two sweeps by the mean of the neighbours' places); shared segments are a bar.

use crate::number::Unit;
use crate::plot::escape;
use crate::record::{Host, Link, Record};
use std::fmt::Write as _;

const BOX: (f64, f64) = (150.0, 64.0);
const GAP: (f64, f64) = (132.0, 30.0);

/// A machine or a shared segment, placed.
struct Node {
    column: usize,
    row: f64,
    /// Index of the host; `None` for a shared segment.
    host: Option<usize>,
    neighbours: Vec<usize>,
}

/// The picture; empty without machines.
pub(super) fn svg(r: &Record) -> String {
    if r.rig.hosts.is_empty() {
        return String::new();
    }
    let (mut nodes, wires) = graph(r);
    place(&mut nodes);
    let columns = nodes.iter().map(|n| n.column).max().unwrap_or(0) + 1;
    let tallest = (0..columns).map(|c| nodes.iter().filter(|n| n.column == c).count()).max().unwrap_or(1);
    let step = BOX.0 + GAP.0;
    let width = BOX.0 + (columns - 1) as f64 * step;
    let height = tallest as f64 * (BOX.1 + GAP.1) - GAP.1;
    // Room for the two lines over a bar where there is one.
    let top = if nodes.iter().any(|n| n.host.is_none()) && tallest < 3 { 40.0 } else { 8.0 };
    let (width, height) = (width + 4.0, height.max(BOX.1) + top + 8.0);
    let centre = |n: &Node| {
        let x = 2.0 + BOX.0 / 2.0 + n.column as f64 * step;
        (x, top + BOX.1 / 2.0 + n.row * (BOX.1 + GAP.1))
    };
    let mut out = format!(
        "<svg class=\"net\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"machines and links\" style=\"max-width:{width:.0}px\">"
    );
    for wire in &wires {
        draw_wire(&mut out, r, wire, centre(&nodes[wire.a]), centre(&nodes[wire.b]), &nodes);
    }
    for node in &nodes {
        let (x, y) = centre(node);
        match node.host {
            Some(i) => draw_host(&mut out, &r.rig.hosts[i], r, x, y),
            None => {
                let _ = write!(
                    out,
                    "<path class=\"bus\" d=\"M{x:.1} {:.1}v{:.1}\"/>",
                    y - BOX.1 * 0.7,
                    BOX.1 * 1.4
                );
            }
        }
    }
    out.push_str("</svg>\n");
    out
}

/// A line of the picture: between two nodes, labelled by a link.
struct Wire {
    a: usize,
    b: usize,
    link: usize,
    /// Which ends of the link it joins; `None`: the segment's bar.
    ends: (Option<usize>, Option<usize>),
}

fn graph(r: &Record) -> (Vec<Node>, Vec<Wire>) {
    let mut nodes: Vec<Node> = (0..r.rig.hosts.len())
        .map(|i| Node { column: usize::MAX, row: 0.0, host: Some(i), neighbours: Vec::new() })
        .collect();
    let mut wires = Vec::new();
    for (l, link) in r.rig.links.iter().enumerate() {
        let of = |end: &String| {
            let name = end.split(':').next().unwrap_or_default();
            r.rig.hosts.iter().position(|h| h.name == name)
        };
        let ends: Vec<usize> = link.ends.iter().filter_map(of).collect();
        if ends.len() != link.ends.len() {
            continue;
        }
        if let [a, b] = ends[..] {
            wires.push(Wire { a, b, link: l, ends: (Some(0), Some(1)) });
        } else {
            let bus = nodes.len();
            nodes.push(Node { column: usize::MAX, row: 0.0, host: None, neighbours: Vec::new() });
            for (e, &end) in ends.iter().enumerate() {
                wires.push(Wire { a: end, b: bus, link: l, ends: (Some(e), None) });
            }
        }
    }
    for wire in &wires {
        nodes[wire.a].neighbours.push(wire.b);
        nodes[wire.b].neighbours.push(wire.a);
    }
    (nodes, wires)
}

/// Columns by distance, rows by the neighbours' mean.
fn place(nodes: &mut [Node]) {
    // The first machine that ends a path begins the picture; islands begin anew at the left.
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|&i| (nodes[i].host.is_none(), nodes[i].neighbours.len() != 1, i));
    for start in order {
        if nodes[start].column != usize::MAX {
            continue;
        }
        nodes[start].column = 0;
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            for next in nodes[at].neighbours.clone() {
                if nodes[next].column == usize::MAX {
                    nodes[next].column = nodes[at].column + 1;
                    queue.push_back(next);
                }
            }
        }
    }
    let columns = nodes.iter().map(|n| n.column).max().unwrap_or(0) + 1;
    let mut ranks: Vec<Vec<usize>> =
        (0..columns).map(|c| (0..nodes.len()).filter(|&i| nodes[i].column == c).collect()).collect();
    let tallest = ranks.iter().map(Vec::len).max().unwrap_or(1) as f64;
    for sweep in 0..4 {
        for at in 0..columns {
            let c = if sweep % 2 == 0 { at } else { columns - 1 - at };
            let mut keyed: Vec<(f64, usize)> = ranks[c]
                .iter()
                .map(|&i| {
                    let near = &nodes[i].neighbours;
                    let mean = near.iter().map(|&n| nodes[n].row).sum::<f64>() / near.len().max(1) as f64;
                    (if near.is_empty() || sweep == 0 && at == 0 { nodes[i].row } else { mean }, i)
                })
                .collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            ranks[c] = keyed.iter().map(|k| k.1).collect();
            let first = (tallest - ranks[c].len() as f64) / 2.0;
            for (row, &i) in ranks[c].iter().enumerate() {
                nodes[i].row = first + row as f64;
            }
        }
    }
}

fn draw_host(out: &mut String, host: &Host, r: &Record, x: f64, y: f64) {
    let shaped = |dev: &str| {
        let device = r.devices.iter().find(|d| d.host == host.name && d.dev == dev);
        device.is_some_and(|d| d.qdiscs.iter().any(|q| q.handle != "0:"))
    };
    let kind = match (&host.system, &host.tcp, host.forwards) {
        (Some(system), ..) => format!("{system} router"),
        (_, Some(tcp), _) => tcp.clone(),
        (_, _, true) => format!("router · Linux {}", host.kernel.as_deref().unwrap_or_default()),
        _ => format!("Linux {}", host.kernel.as_deref().unwrap_or_default()),
    };
    let mark = if host.devices.iter().any(|d| shaped(&d.dev)) { " shaped" } else { "" };
    let (left, top) = (x - BOX.0 / 2.0, y - BOX.1 / 2.0);
    let address = host.devices.iter().flat_map(|d| &d.addresses).next().cloned().unwrap_or_default();
    let more = host.devices.iter().map(|d| d.addresses.len()).sum::<usize>().saturating_sub(1);
    let address = if more > 0 { format!("{address} +{more}") } else { address };
    let _ = write!(
        out,
        "<rect class=\"host{mark}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{}\" height=\"{}\" rx=\"9\"/>\
         <text class=\"name\" x=\"{x:.1}\" y=\"{:.1}\">{}</text><text x=\"{x:.1}\" y=\"{:.1}\">{}</text>\
         <text x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
        BOX.0,
        BOX.1,
        y - 11.0,
        escape(&host.name),
        y + 6.0,
        escape(&kind),
        y + 22.0,
        escape(&address)
    );
}

fn draw_wire(out: &mut String, r: &Record, wire: &Wire, a: (f64, f64), b: (f64, f64), nodes: &[Node]) {
    let link = &r.rig.links[wire.link];
    let (from, to) = if a.0 <= b.0 { (a, b) } else { (b, a) };
    let flipped = a.0 > b.0;
    let half = |node: usize| if nodes[node].host.is_some() { BOX.0 / 2.0 } else { 0.0 };
    let (near, far) = if flipped { (half(wire.b), half(wire.a)) } else { (half(wire.a), half(wire.b)) };
    // Machines of one column are joined at their edges' ends.
    let same = (from.0 - to.0).abs() < 1.0;
    let (x1, x2) = if same { (from.0, to.0) } else { (from.0 + near, to.0 - far) };
    let (y1, y2) = match same {
        true if from.1 < to.1 => (from.1 + BOX.1 / 2.0, to.1 - BOX.1 / 2.0),
        true => (from.1 - BOX.1 / 2.0, to.1 + BOX.1 / 2.0),
        false => (from.1, to.1),
    };
    let _ = write!(out, "<path class=\"wire\" d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\"/>");
    let (mx, my) = ((x1 + x2) / 2.0, (y1 + y2) / 2.0);
    let whole = wire.ends.0.is_some() && wire.ends.1.is_some();
    let (ends_a, ends_b) = if flipped { (wire.ends.1, wire.ends.0) } else { wire.ends };
    let dev = |e: Option<usize>| e.and_then(|e| link.ends[e].split_once(':')).map_or("", |(_, dev)| dev);
    if !same {
        let slope = if (x2 - x1).abs() > 1.0 { (y2 - y1) / (x2 - x1) } else { 0.0 };
        for (end, x, anchor) in [(ends_a, x1 + 6.0, "start"), (ends_b, x2 - 6.0, "end")] {
            let y = y1 + slope * (x - x1) + 14.0;
            let _ = write!(
                out,
                "<text class=\"dev\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
                escape(dev(end))
            );
        }
    }
    let first_of_bus = wire.ends.0 == Some(0);
    if whole || first_of_bus {
        // Above the wire, the last line next to it; a segment's stand over its bar.
        let lines = label(link, ends_a);
        let (x, last) = if whole { (mx, my - 7.0) } else { (b.0, b.1 - BOX.1 * 0.7 - 8.0) };
        for (i, text) in lines.iter().rev().enumerate() {
            let y = last - 14.0 * i as f64;
            let _ = write!(out, "<text class=\"link\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escape(text));
        }
    }
}

/// Rate, delay and loss of a link; for unequal directions the one to the right first.
fn label(link: &Link, left: Option<usize>) -> Vec<String> {
    let show = |x: f64| if x > 0.0 { Unit::BitPerSecond.show(x) } else { "no limit".to_owned() };
    let mut lines = match (link.end_rates_bit_s.as_slice(), left) {
        ([a, b], Some(left)) => {
            let (right, back) = if left == 0 { (*a, *b) } else { (*b, *a) };
            vec![format!("→ {}", show(right)), format!("← {}", show(back))]
        }
        _ => link.rate_bit_s.map(show).into_iter().collect(),
    };
    let mut rest = Vec::new();
    if link.delay_ms > 0.0 {
        rest.push(Unit::Millisecond.show(link.delay_ms));
    }
    if let Some(loss) = link.loss {
        rest.push(format!("loss {}", Unit::Share.show(loss)));
    }
    if !rest.is_empty() {
        lines.push(rest.join(", "));
    }
    lines
}
