//! The tree of qdiscs and classes of one device, with what was set and what was measured.

use super::Page;
use crate::number::Unit;
use crate::plot::escape;
use crate::record::{Class, Device, Qdisc};
use std::fmt::Write as _;

/// Mean rate of a class while it sent at all, bit/s.
fn busy_rate(page: &Page<'_>, device: &Device, object: &str) -> Option<f64> {
    let points = page.series.points(&device.host, object, "throughput_bit_s");
    let busy: Vec<f64> = points.iter().map(|p| p.1).filter(|v| *v > 0.0).collect();
    (!busy.is_empty()).then(|| busy.iter().sum::<f64>() / busy.len() as f64)
}

/// The tree as a table whose first column is indented.
pub(super) fn tree(page: &Page<'_>, device: &Device) -> String {
    let mut out = format!(
        "<h3>{} {}</h3><div class=\"wide\"><table class=\"tree\"><thead><tr><th>qdisc or class</th><th>set up as</th>\
         <th class=\"n\">rate</th><th class=\"n\">ceil</th><th>share of ceil, while sending</th><th class=\"n\">sent</th>\
         <th class=\"n\">dropped</th><th class=\"n\">borrowed</th></tr></thead><tbody>",
        escape(&device.host),
        escape(&device.dev)
    );
    let roots = device.qdiscs.iter().filter(|q| q.parent == "root");
    for qdisc in roots {
        tree_of(&mut out, page, device, qdisc, 0);
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// Deepest level that is drawn; deeper ones stand at it.
const DEEPEST: usize = 12;

fn tree_of(out: &mut String, page: &Page<'_>, device: &Device, qdisc: &Qdisc, depth: usize) {
    let object = format!("{} {} {}", device.dev, qdisc.kind, qdisc.handle);
    let measured = busy_rate(page, device, &object);
    let cells = Cells {
        name: format!("<b>{}</b> {}", escape(&qdisc.kind), escape(&qdisc.handle)),
        options: qdisc.options.as_deref().map(escape).unwrap_or_default(),
        rate: qdisc.rate_bit_s,
        ceil: None,
        measured,
        limit: qdisc.rate_bit_s,
        bytes: qdisc.bytes,
        drops: qdisc.drops,
        borrowed: None,
    };
    cells.row(out, depth, "qdisc");
    if depth >= DEEPEST {
        return;
    }
    let major = qdisc.handle.split(':').next().unwrap_or_default();
    // sfq lists each flow it holds at the moment as a class of its own: no part of what was set up.
    let own = |c: &&Class| c.classid.split(':').next() == Some(major) && c.kind != "sfq";
    for class in device.classes.iter().filter(own).filter(|c| c.parent == "root" || c.parent == qdisc.handle)
    {
        class_of(out, page, device, class, depth + 1);
    }
    // Kinds whose classes are not listed (prio) hold their qdiscs directly.
    let listed = |q: &Qdisc| device.classes.iter().any(|c| c.classid == q.parent);
    let inner = |q: &&Qdisc| q.parent != "root" && q.parent.split(':').next() == Some(major) && !listed(q);
    for child in device.qdiscs.iter().filter(inner).filter(|q| q.handle != qdisc.handle) {
        tree_of(out, page, device, child, depth + 1);
    }
}

fn class_of(out: &mut String, page: &Page<'_>, device: &Device, class: &Class, depth: usize) {
    let measured = busy_rate(page, device, &format!("{} class {}", device.dev, class.classid));
    let cells = Cells {
        name: format!("class {}", escape(&class.classid)),
        options: class.prio.map(|p| format!("prio {p}")).unwrap_or_default(),
        rate: class.rate_bit_s,
        ceil: class.ceil_bit_s,
        measured,
        limit: class.ceil_bit_s.or(class.rate_bit_s),
        bytes: class.bytes,
        drops: class.drops,
        borrowed: class.borrowed,
    };
    cells.row(out, depth, "class");
    if depth >= DEEPEST {
        return;
    }
    for child in device.classes.iter().filter(|c| c.parent == class.classid && c.classid != class.classid) {
        class_of(out, page, device, child, depth + 1);
    }
    for leaf in device.qdiscs.iter().filter(|q| q.parent == class.classid && q.handle != "0:") {
        tree_of(out, page, device, leaf, depth + 1);
    }
}

struct Cells {
    name: String,
    options: String,
    rate: Option<f64>,
    ceil: Option<f64>,
    measured: Option<f64>,
    limit: Option<f64>,
    bytes: u64,
    drops: u64,
    borrowed: Option<u64>,
}

impl Cells {
    fn row(&self, out: &mut String, depth: usize, kind: &str) {
        let rate = |x: Option<f64>| x.map(|x| Unit::BitPerSecond.show(x)).unwrap_or_default();
        let bar = match (self.measured, self.limit) {
            (Some(x), Some(limit)) if limit > 0.0 => {
                let share = (x / limit * 100.0).clamp(0.0, 100.0);
                let guaranteed = self.rate.map_or(100.0, |r| (r / limit * 100.0).clamp(0.0, 100.0));
                format!(
                    "<span class=\"bar\"><i style=\"width:{share:.1}%\"></i><em style=\"left:{guaranteed:.1}%\"></em></span>\
                     <span class=\"busy\">{}</span>",
                    Unit::BitPerSecond.show(x)
                )
            }
            (Some(x), _) => format!("<span class=\"busy\">{}</span>", Unit::BitPerSecond.show(x)),
            _ => "<span class=\"idle\">idle</span>".to_owned(),
        };
        let drops = match self.drops {
            0 => "0".to_owned(),
            n => format!("<b class=\"drops\">{}</b>", Unit::Count.show(n as f64)),
        };
        let borrowed = self.borrowed.map(|n| Unit::Count.show(n as f64)).unwrap_or_default();
        let _ = write!(
            out,
            "<tr class=\"{kind}\"><td style=\"padding-left:{}em\">{}</td><td class=\"opts\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"share\">{bar}</td><td class=\"n\">{}</td><td class=\"n\">{drops}</td>\
             <td class=\"n\">{borrowed}</td></tr>",
            0.6 + 1.4 * depth.min(DEEPEST) as f64,
            self.name,
            self.options,
            rate(self.rate),
            rate(self.ceil),
            Unit::Byte.show(self.bytes as f64),
        );
    }
}
