//! The picture of machines and links.
//!
//! Machines stand in columns by their distance from the first end system along the links, in each column in an order
//! that keeps neighbours near (two sweeps by the mean of the neighbours' places); shared segments are a bar. Of many machines that
//! all hang at the same place only the first few are drawn, and a box that counts the others. The page keeps it within a screen.

use crate::number::Unit;
use crate::plot::escape;
use crate::record::{Host, Link, Record};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const BOX: (f64, f64) = (150.0, 64.0);
const GAP: (f64, f64) = (132.0, 30.0);
/// From how many end systems at one place on some are only counted.
const MANY: usize = 6;
/// How many of them are drawn.
const FIRST: usize = 2;

/// A machine or a shared segment, placed.
struct Node {
    column: usize,
    row: f64,
    /// Index of the host; `None` for a shared segment, and for machines that are only counted.
    host: Option<usize>,
    /// The machines that it counts.
    more: Vec<usize>,
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
    let bus = |n: &Node| n.host.is_none() && n.more.is_empty();
    let lines = wires.iter().map(|w| label(&r.rig.links[w.link], Some(0)).len()).max().unwrap_or(0) as f64;
    let top = match nodes.iter().any(bus) {
        true if tallest < 3 => 12.0 + 14.0 * lines,
        _ if tallest == 1 => (14.0 * lines - BOX.1 / 2.0 + 14.0).max(16.0),
        _ => 16.0,
    };
    let (width, height) = (width + 4.0, height.max(BOX.1) + top + 8.0);
    let centre = |n: &Node| {
        let x = 2.0 + BOX.0 / 2.0 + n.column as f64 * step;
        (x, top + BOX.1 / 2.0 + n.row * (BOX.1 + GAP.1))
    };
    let mut out = format!(
        "<div class=\"net-box\" tabindex=\"0\"><svg class=\"net\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"{}\" style=\"max-width:{width:.0}px\">",
        escape(&told(r))
    );
    for wire in &wires {
        draw_wire(&mut out, r, wire, centre(&nodes[wire.a]), centre(&nodes[wire.b]), &nodes);
    }
    let shaped = r.devices.iter().filter(|d| d.qdiscs.iter().any(|q| q.handle != "0:"));
    let shaped: BTreeSet<(&str, &str)> = shaped.map(|d| (d.host.as_str(), d.dev.as_str())).collect();
    for node in &nodes {
        let (x, y) = centre(node);
        match node.host {
            Some(i) => draw_host(&mut out, &r.rig.hosts[i], &shaped, x, y),
            None if !node.more.is_empty() => draw_more(&mut out, r, &node.more, x, y),
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
    out.push_str("</svg></div>\n");
    out
}

/// The network in words, for those who cannot see the picture.
fn told(r: &Record) -> String {
    let links = r.rig.links.iter().take(12).map(|l| {
        let facts = label(l, Some(0)).join(" ");
        format!("{}{}{facts}", l.ends.join(" to "), if facts.is_empty() { "" } else { ", " })
    });
    let more = r.rig.links.len().saturating_sub(12);
    let more = if more > 0 { format!("; and {more} more links") } else { String::new() };
    format!("Network of {} machines. {}{more}", r.rig.hosts.len(), links.collect::<Vec<_>>().join("; "))
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
    let hosts: BTreeMap<&str, usize> =
        r.rig.hosts.iter().enumerate().rev().map(|(i, h)| (h.name.as_str(), i)).collect();
    let host = |end: &String| hosts.get(end.split(':').next().unwrap_or_default()).copied();
    let ends: Vec<Vec<usize>> =
        r.rig.links.iter().map(|l| l.ends.iter().filter_map(host).collect()).collect();
    let whole = |l: &usize| ends[*l].len() == r.rig.links[*l].ends.len();
    let links: Vec<usize> = (0..ends.len()).filter(whole).collect();
    let counted = counted(r.rig.hosts.len(), &links, &ends);
    let node = |host, more| Node { column: usize::MAX, row: 0.0, host, more, neighbours: Vec::new() };
    let mut nodes = Vec::new();
    let mut place = vec![usize::MAX; r.rig.hosts.len()];
    for i in (0..place.len()).filter(|i| !counted.hosts.contains(i)) {
        place[i] = nodes.len();
        nodes.push(node(Some(i), Vec::new()));
    }
    let mut wires = Vec::new();
    for &l in &links {
        let drawn = |(_, end): &(usize, &usize)| place[**end] != usize::MAX;
        let hub = match ends[l][..] {
            [a, b] if place[a] != usize::MAX && place[b] != usize::MAX => {
                wires.push(Wire { a: place[a], b: place[b], link: l, ends: (Some(0), Some(1)) });
                continue;
            }
            [_, _] => continue,
            _ => nodes.len(),
        };
        nodes.push(node(None, Vec::new()));
        for (e, &end) in ends[l].iter().enumerate().filter(drawn) {
            wires.push(Wire { a: place[end], b: hub, link: l, ends: (Some(e), None) });
        }
        if let Some(more) = counted.at_segments.get(&l) {
            wires.push(Wire { a: nodes.len(), b: hub, link: l, ends: (None, None) });
            nodes.push(node(None, more.clone()));
        }
    }
    for (&hub, (more, link)) in &counted.at_hosts {
        wires.push(Wire { a: place[hub], b: nodes.len(), link: *link, ends: (None, None) });
        nodes.push(node(None, more.clone()));
    }
    for wire in &wires {
        nodes[wire.a].neighbours.push(wire.b);
        nodes[wire.b].neighbours.push(wire.a);
    }
    (nodes, wires)
}

/// Machines that are not drawn, and how many of them hang where.
#[derive(Default)]
struct Counted {
    hosts: BTreeSet<usize>,
    /// By host: those that are counted, and the link of one of them.
    at_hosts: BTreeMap<usize, (Vec<usize>, usize)>,
    /// By link with more than two ends.
    at_segments: BTreeMap<usize, Vec<usize>>,
}

/// Of the end systems at one machine or segment the first are drawn, the others counted.
fn counted(hosts: usize, links: &[usize], ends: &[Vec<usize>]) -> Counted {
    let mut counted = Counted::default();
    let mut degree = vec![0usize; hosts];
    links.iter().flat_map(|&l| &ends[l]).for_each(|&h| degree[h] += 1);
    let mut at_hosts: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    for &l in links {
        match ends[l][..] {
            [a, b] if degree[a] == 1 && degree[b] > 1 => at_hosts.entry(b).or_default().push((a, l)),
            [a, b] if degree[b] == 1 && degree[a] > 1 => at_hosts.entry(a).or_default().push((b, l)),
            [_, _] => {}
            _ => {
                let leaves: Vec<usize> = ends[l].iter().copied().filter(|&h| degree[h] == 1).collect();
                if leaves.len() > MANY {
                    counted.at_segments.insert(l, leaves[FIRST..].to_vec());
                    counted.hosts.extend(&leaves[FIRST..]);
                }
            }
        }
    }
    for (hub, leaves) in at_hosts.into_iter().filter(|(_, leaves)| leaves.len() > MANY) {
        let others = leaves[FIRST..].iter().map(|leaf| leaf.0).collect();
        counted.at_hosts.insert(hub, (others, leaves[FIRST].1));
        counted.hosts.extend(leaves[FIRST..].iter().map(|leaf| leaf.0));
    }
    counted
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

/// The box of machines that are only counted.
fn draw_more(out: &mut String, r: &Record, more: &[usize], x: f64, y: f64) {
    let (left, top) = (x - BOX.0 / 2.0, y - BOX.1 / 2.0);
    let name = |i: usize| escape(&r.rig.hosts[i].name);
    let (first, last) = (name(more[0]), name(more[more.len() - 1]));
    for off in [8.0, 4.0, 0.0] {
        let _ = write!(
            out,
            "<rect class=\"host more\" x=\"{:.1}\" y=\"{:.1}\" width=\"{}\" height=\"{}\" rx=\"9\"/>",
            left + off,
            top - off,
            BOX.0,
            BOX.1
        );
    }
    let _ = write!(
        out,
        "<text class=\"name\" x=\"{x:.1}\" y=\"{:.1}\">× {}</text><text x=\"{x:.1}\" y=\"{:.1}\">{first} … {last}</text>",
        y - 2.0,
        Unit::Count.show(more.len() as f64),
        y + 17.0,
    );
}

fn draw_host(out: &mut String, host: &Host, shaped: &BTreeSet<(&str, &str)>, x: f64, y: f64) {
    let kind = match (&host.system, &host.tcp, host.forwards) {
        (Some(system), ..) => format!("{system} router"),
        (_, Some(tcp), _) => tcp.clone(),
        (_, _, true) => format!("router · Linux {}", host.kernel.as_deref().unwrap_or_default()),
        _ => format!("Linux {}", host.kernel.as_deref().unwrap_or_default()),
    };
    let mark = if host.devices.iter().any(|d| shaped.contains(&(host.name.as_str(), d.dev.as_str()))) {
        " shaped"
    } else {
        ""
    };
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
    let half = |node: usize| match nodes[node].host.is_some() || !nodes[node].more.is_empty() {
        true => BOX.0 / 2.0,
        false => 0.0,
    };
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
