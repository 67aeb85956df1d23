//! The tree of qdiscs and classes of one device, with what was set and what was measured.

use super::Page;
use crate::number::Unit;
use crate::plot::escape;
use crate::quantile::of_sorted;
use crate::record::{Class, Device, Qdisc};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Median rate of a class over the samples in which it sent at all, bit/s.
fn busy_rate(page: &Page<'_>, device: &Device, object: &str) -> Option<f64> {
    let points = page.series.points(&device.host, object, "throughput_bit_s");
    let mut busy: Vec<f64> = points.iter().map(|p| p.1).filter(|v| *v > 0.0).collect();
    busy.sort_by(f64::total_cmp);
    (!busy.is_empty()).then(|| of_sorted(&busy, 0.5))
}

/// What hangs where on a device, in the order of the record.
struct Hangs<'a> {
    page: &'a Page<'a>,
    device: &'a Device,
    /// Classes by their parent, and by the major number of their own id.
    below: BTreeMap<&'a str, Vec<&'a Class>>,
    of_major: BTreeMap<&'a str, Vec<&'a Class>>,
    /// Qdiscs by their parent, and by its major number.
    leaves: BTreeMap<&'a str, Vec<&'a Qdisc>>,
    of_parent: BTreeMap<&'a str, Vec<&'a Qdisc>>,
    /// Ids of the classes that are listed.
    listed: BTreeSet<&'a str>,
}

/// The part of a handle or an id before the colon.
fn major(id: &str) -> &str {
    id.split(':').next().unwrap_or_default()
}

impl<'a> Hangs<'a> {
    fn new(page: &'a Page<'a>, device: &'a Device) -> Hangs<'a> {
        let (mut below, mut of_major) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        for class in device.classes.iter().filter(|c| c.is_set_up()) {
            below.entry(class.parent.as_str()).or_default().push(class);
            of_major.entry(major(&class.classid)).or_default().push(class);
        }
        let (mut leaves, mut of_parent) = (BTreeMap::<_, Vec<_>>::new(), BTreeMap::<_, Vec<_>>::new());
        for qdisc in &device.qdiscs {
            leaves.entry(qdisc.parent.as_str()).or_default().push(qdisc);
            of_parent.entry(major(&qdisc.parent)).or_default().push(qdisc);
        }
        let listed = device.classes.iter().filter(|c| c.is_set_up()).map(|c| c.classid.as_str()).collect();
        Hangs { page, device, below, of_major, leaves, of_parent, listed }
    }
}

fn under<'a, T>(map: &'a BTreeMap<&'a str, Vec<&'a T>>, key: &str) -> impl Iterator<Item = &'a T> {
    map.get(key).into_iter().flatten().copied()
}

/// The tree as a table whose first column is indented.
pub(super) fn tree(page: &Page<'_>, device: &Device) -> String {
    let mut out = format!(
        "<h3>{} {}</h3><div class=\"wide\" tabindex=\"0\"><table class=\"tree\"><thead><tr><th>qdisc or class</th><th>set up as</th>\
         <th class=\"n\">rate</th><th class=\"n\">ceil</th><th>median rate while sending</th><th class=\"n\">sent</th>\
         <th class=\"n\">dropped</th><th class=\"n\">marked</th><th class=\"n\">borrowed</th></tr></thead><tbody>",
        escape(&device.host),
        escape(&device.dev)
    );
    let roots = device.qdiscs.iter().filter(|q| q.parent == "root");
    let hangs = Hangs::new(page, device);
    for qdisc in roots {
        tree_of(&mut out, &hangs, qdisc, 0);
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// From how many classes with the same parent on only the busiest are listed.
const MANY: usize = 60;
/// How many of them are.
const BUSIEST: usize = 20;

/// Classes with the same parent, in the order of the record: all of them, or those that dropped and sent most, and a row that sums up the others.
fn classes_of(out: &mut String, hangs: &Hangs<'_>, classes: Vec<&Class>, depth: usize) {
    let shown = busiest(&classes, MANY, BUSIEST);
    for class in &shown {
        class_of(out, hangs, class, depth);
    }
    let others = classes.len() - shown.len();
    if others == 0 {
        return;
    }
    let sum = |of: &dyn Fn(&Class) -> u64| {
        let all: u64 = classes.iter().map(|c| of(c)).sum();
        all - shown.iter().map(|c| of(c)).sum::<u64>()
    };
    let cells = Cells {
        name: format!("and {} more", Unit::Count.show(others as f64)),
        options: "those above dropped and sent most; all are in record.json".to_owned(),
        rate: None,
        ceil: None,
        measured: None,
        limit: None,
        bytes: sum(&|c| c.bytes),
        drops: sum(&|c| c.drops),
        marked: None,
        borrowed: classes.iter().any(|c| c.borrowed.is_some()).then(|| sum(&|c| c.borrowed.unwrap_or(0))),
    };
    cells.row(out, depth, "others");
}

/// Of more than `many` classes the `few` that dropped most and, among equals, sent most, in the order of the record; else all of them.
pub fn busiest<'a>(classes: &[&'a Class], many: usize, few: usize) -> Vec<&'a Class> {
    if classes.len() <= many {
        return classes.to_vec();
    }
    let mut order: Vec<usize> = (0..classes.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse((classes[i].drops, classes[i].bytes)), i));
    order.truncate(few);
    order.sort_unstable();
    order.into_iter().map(|i| classes[i]).collect()
}

/// Deepest level that is drawn; deeper ones stand at it.
const DEEPEST: usize = 12;

fn tree_of(out: &mut String, hangs: &Hangs<'_>, qdisc: &Qdisc, depth: usize) {
    let (page, device) = (hangs.page, hangs.device);
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
        marked: qdisc.marked_packets,
        borrowed: None,
    };
    cells.row(out, depth, "qdisc");
    if depth >= DEEPEST {
        return;
    }
    let own = |c: &&Class| c.parent == "root" || c.parent == qdisc.handle;
    classes_of(out, hangs, under(&hangs.of_major, major(&qdisc.handle)).filter(own).collect(), depth + 1);
    // Kinds whose classes are not listed (prio) hold their qdiscs directly.
    let inner = |q: &&Qdisc| q.parent != "root" && !hangs.listed.contains(q.parent.as_str());
    let children = under(&hangs.of_parent, major(&qdisc.handle)).filter(inner);
    for child in children.filter(|q| q.handle != qdisc.handle) {
        tree_of(out, hangs, child, depth + 1);
    }
}

fn class_of(out: &mut String, hangs: &Hangs<'_>, class: &Class, depth: usize) {
    let (page, device) = (hangs.page, hangs.device);
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
        marked: None,
        borrowed: class.borrowed,
    };
    cells.row(out, depth, "class");
    if depth >= DEEPEST {
        return;
    }
    let children = under(&hangs.below, &class.classid).filter(|c| c.classid != class.classid);
    classes_of(out, hangs, children.collect(), depth + 1);
    for leaf in under(&hangs.leaves, &class.classid).filter(|q| q.handle != "0:") {
        tree_of(out, hangs, leaf, depth + 1);
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
    marked: Option<u64>,
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
            _ if kind == "others" => String::new(),
            _ => "<span class=\"idle\">idle</span>".to_owned(),
        };
        let drops = match self.drops {
            0 => "0".to_owned(),
            n => format!("<b class=\"drops\">{}</b>", Unit::Count.show(n as f64)),
        };
        let marked = self.marked.map(|n| Unit::Count.show(n as f64)).unwrap_or_default();
        let borrowed = self.borrowed.map(|n| Unit::Count.show(n as f64)).unwrap_or_default();
        let _ = write!(
            out,
            "<tr class=\"{kind}\"><td style=\"padding-left:{}em\">{}</td><td class=\"opts\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"share\">{bar}</td><td class=\"n\">{}</td><td class=\"n\">{drops}</td>\
             <td class=\"n\">{marked}</td><td class=\"n\">{borrowed}</td></tr>",
            0.6 + 1.4 * depth.min(DEEPEST) as f64,
            self.name,
            self.options,
            rate(self.rate),
            rate(self.ceil),
            Unit::Byte.show(self.bytes as f64),
        );
    }
}
