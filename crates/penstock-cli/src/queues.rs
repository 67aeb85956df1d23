//! The queues of a run in its summary: each device's qdiscs and classes as a tree, in the order of their handles.

use penstock_measure::number::Unit;
use penstock_measure::record::{Class, Device, Qdisc, Record};
use penstock_measure::table::{Align, Table};
use std::collections::{BTreeMap, BTreeSet};

/// Most devices, and most classes of a device.
const MAX_ROWS: usize = 16;
/// Deepest level that is indented.
const DEEPEST: usize = 12;

/// The table; empty where nothing was shaped.
pub fn queues(r: &Record) -> String {
    let mut table = Table::new(&[
        ("queue", Align::Left),
        ("kind", Align::Left),
        ("rate", Align::Right),
        ("ceil", Align::Right),
        ("sent", Align::Right),
        ("dropped", Align::Right),
        ("marked", Align::Right),
        ("borrowed", Align::Right),
    ]);
    let shaped = || r.devices.iter().filter(|d| d.qdiscs.iter().any(|q| q.handle != "0:" || q.drops > 0));
    let mut rest = String::new();
    for device in shaped().take(MAX_ROWS) {
        let tree = Tree::of(device);
        for root in device.qdiscs.iter().filter(|q| tree.is_root(q)) {
            tree.qdisc(root, 0, &mut table);
        }
        if tree.left_out > 0 {
            rest += &format!(
                "  {} {}: and {} more {} in the record; these dropped and sent most\n",
                device.host,
                device.dev,
                tree.left_out,
                if tree.left_out == 1 { "class" } else { "classes" }
            );
        }
    }
    let more = shaped().count().saturating_sub(MAX_ROWS);
    if more > 0 {
        rest += &format!("  and {more} more devices in the record\n");
    }
    if table.is_empty() { String::new() } else { table.text(2) + &rest }
}

/// A handle or an id as numbers, by which tc would have one sort them: `1:a` comes before `1:10`.
fn order(id: &str) -> (u32, u32) {
    let (major, minor) = id.split_once(':').unwrap_or((id, ""));
    let hex = |digits: &str| u32::from_str_radix(digits, 16).unwrap_or(0);
    (hex(major), hex(minor))
}

/// What hangs where on one device.
struct Tree<'a> {
    device: &'a Device,
    /// Classes by their parent, in the order of their ids; of many the busiest and those above them.
    below: BTreeMap<&'a str, Vec<&'a Class>>,
    /// Classes without a class above them, by their major number.
    tops: BTreeMap<u32, Vec<&'a Class>>,
    /// Qdiscs by their parent.
    leaves: BTreeMap<&'a str, Vec<&'a Qdisc>>,
    /// Ids of all classes of the device.
    ids: BTreeSet<&'a str>,
    /// Major numbers of the qdiscs.
    majors: BTreeSet<u32>,
    left_out: usize,
}

impl<'a> Tree<'a> {
    fn of(device: &'a Device) -> Tree<'a> {
        let mut classes: Vec<&Class> = device.classes.iter().filter(|c| !c.is_flow()).collect();
        classes.sort_by_key(|c| order(&c.classid));
        let ids: BTreeSet<&str> = classes.iter().map(|c| c.classid.as_str()).collect();
        let mut leaves = BTreeMap::<&str, Vec<&Qdisc>>::new();
        for qdisc in &device.qdiscs {
            leaves.entry(&qdisc.parent).or_default().push(qdisc);
        }
        let shown = busiest(&classes, &leaves);
        let left_out = classes.len() - shown.len();
        let (mut below, mut tops) =
            (BTreeMap::<&str, Vec<&Class>>::new(), BTreeMap::<u32, Vec<&Class>>::new());
        for &class in classes.iter().filter(|c| shown.contains(c.classid.as_str())) {
            if ids.contains(class.parent.as_str()) && class.parent != class.classid {
                below.entry(&class.parent).or_default().push(class);
            } else {
                tops.entry(order(&class.classid).0).or_default().push(class);
            }
        }
        let majors = device.qdiscs.iter().map(|q| order(&q.handle).0).filter(|&m| m != 0).collect();
        Tree { device, below, tops, leaves, ids, majors, left_out }
    }

    /// Whether it hangs on the device itself: the root, or the filters of what arrives. (What mq made of itself has no number above it.)
    fn is_root(&self, qdisc: &Qdisc) -> bool {
        let above = order(&qdisc.parent).0;
        qdisc.parent == "root"
            || above != 0 && (above == order(&qdisc.handle).0 || !self.majors.contains(&above))
    }

    fn qdisc(&self, qdisc: &'a Qdisc, depth: usize, table: &mut Table) {
        let name = match depth {
            0 => format!("{} {} {}", self.device.host, self.device.dev, qdisc.handle),
            _ => format!("{}{}", "  ".repeat(depth), qdisc.handle),
        };
        table.row([
            name,
            qdisc.kind.clone(),
            bit(qdisc.rate_bit_s),
            String::new(),
            Unit::Byte.show(qdisc.bytes as f64),
            count(qdisc.drops),
            qdisc.marked_packets.filter(|&n| n > 0).map(count).unwrap_or_default(),
            String::new(),
        ]);
        if depth >= DEEPEST {
            return;
        }
        let major = order(&qdisc.handle).0;
        if major == 0 {
            return;
        }
        for class in self.tops.get(&major).into_iter().flatten() {
            self.class(class, depth + 1, table);
        }
        // Kinds whose classes are not listed hold their qdiscs themselves.
        let held = |q: &&Qdisc| order(&q.parent).0 == major && !self.ids.contains(q.parent.as_str());
        let mut held: Vec<&Qdisc> = self
            .device
            .qdiscs
            .iter()
            .filter(|q| q.parent != "root" && q.handle != qdisc.handle)
            .filter(held)
            .collect();
        held.sort_by_key(|q| order(&q.parent));
        for inner in held {
            self.qdisc(inner, depth + 1, table);
        }
    }

    fn class(&self, class: &'a Class, depth: usize, table: &mut Table) {
        // The one place within tbf or red says nothing that its qdisc does not.
        let says =
            class.rate_bit_s.is_some() || class.ceil_bit_s.is_some() || class.packets > 0 || class.drops > 0;
        let deeper = if says { depth + 1 } else { depth };
        if says {
            table.row([
                format!("{}{}", "  ".repeat(depth), class.classid),
                format!("{} class", class.kind),
                bit(class.rate_bit_s),
                bit(class.ceil_bit_s),
                Unit::Byte.show(class.bytes as f64),
                count(class.drops),
                String::new(),
                class.borrowed.map(count).unwrap_or_default(),
            ]);
        }
        if depth >= DEEPEST {
            return;
        }
        for child in self.below.get(class.classid.as_str()).into_iter().flatten() {
            self.class(child, deeper, table);
        }
        for leaf in self.leaves.get(class.classid.as_str()).into_iter().flatten() {
            if leaf.handle != "0:" || leaf.drops > 0 {
                self.qdisc(leaf, deeper, table);
            }
        }
    }
}

/// Ids of the classes that are shown: all, or of many those that dropped and sent most with their leaves, and the classes above them.
fn busiest<'a>(classes: &[&'a Class], leaves: &BTreeMap<&str, Vec<&Qdisc>>) -> BTreeSet<&'a str> {
    if classes.len() <= MAX_ROWS {
        return classes.iter().map(|c| c.classid.as_str()).collect();
    }
    let dropped = |c: &Class| {
        let own = leaves.get(c.classid.as_str()).into_iter().flatten().map(|q| q.drops).sum::<u64>();
        c.drops.max(own)
    };
    let mut by: Vec<usize> = (0..classes.len()).collect();
    by.sort_by_cached_key(|&i| (std::cmp::Reverse((dropped(classes[i]), classes[i].bytes)), i));
    let parents: BTreeMap<&str, &Class> = classes.iter().map(|&c| (c.classid.as_str(), c)).collect();
    let mut shown = BTreeSet::new();
    for &i in by.iter().take(MAX_ROWS) {
        let mut at = Some(classes[i]);
        while let Some(class) = at.filter(|c| shown.insert(c.classid.as_str())) {
            at = parents.get(class.parent.as_str()).copied();
        }
    }
    shown
}

fn bit(rate: Option<f64>) -> String {
    rate.map(|x| Unit::BitPerSecond.show(x)).unwrap_or_default()
}

fn count(n: u64) -> String {
    Unit::Count.show(n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(classid: &str, parent: &str, packets: u64) -> Class {
        let (kind, classid, parent) = ("htb".to_owned(), classid.to_owned(), parent.to_owned());
        Class {
            kind,
            classid,
            parent,
            rate_bit_s: Some(1e6),
            packets,
            bytes: packets * 100,
            ..Class::default()
        }
    }

    fn qdisc(kind: &str, handle: &str, parent: &str, drops: u64) -> Qdisc {
        let (kind, handle, parent) = (kind.to_owned(), handle.to_owned(), parent.to_owned());
        Qdisc { kind, handle, parent, drops, ..Qdisc::default() }
    }

    fn table(classes: Vec<Class>, qdiscs: Vec<Qdisc>) -> (Vec<String>, usize) {
        let device = Device {
            host: "gw".into(),
            dev: "eth0".into(),
            sojourn_ms: None,
            qdiscs,
            classes,
            meters: Vec::new(),
        };
        let tree = Tree::of(&device);
        let mut table = Table::new(&[("queue", Align::Left)]);
        for root in device.qdiscs.iter().filter(|q| tree.is_root(q)) {
            tree.qdisc(root, 0, &mut table);
        }
        (table.text(0).lines().skip(1).map(str::to_owned).collect(), tree.left_out)
    }

    #[test]
    fn classes_stand_below_their_parents_in_the_order_of_their_numbers() {
        let classes = vec![
            class("1:10", "1:1", 5),
            class("1:a", "1:1", 5),
            class("1:1", "root", 5),
            class("1:2", "1:a", 1),
        ];
        let qdiscs = vec![
            qdisc("htb", "1:", "root", 0),
            qdisc("fq_codel", "10:", "1:10", 411),
            qdisc("ingress", "ffff:", "ffff:fff1", 3),
        ];
        let (rows, left) = table(classes, qdiscs);
        let should =
            ["gw eth0 1:", "  1:1", "    1:a", "      1:2", "    1:10", "      10:", "gw eth0 ffff:"];
        assert_eq!((rows, left), (should.map(str::to_owned).to_vec(), 0));
    }

    #[test]
    fn a_class_that_says_nothing_makes_room_for_its_qdisc() {
        let empty = Class { rate_bit_s: None, ..class("1:1", "1:", 0) };
        let flow = Class { kind: "fq_codel".into(), ..class("2:16a", "2:", 9) };
        let qdiscs = vec![qdisc("tbf", "1:", "root", 0), qdisc("fq_codel", "2:", "1:1", 4)];
        assert_eq!(table(vec![empty, flow], qdiscs).0, ["gw eth0 1:", "  2:"]);
    }

    #[test]
    fn of_many_classes_the_busiest_by_their_leaves_and_what_is_above_them() {
        let mut classes = vec![class("1:1", "root", 9)];
        classes.extend((0x10..0x40).map(|n| class(&format!("1:{n:x}"), "1:1", 1)));
        let (rows, left) =
            table(classes, vec![qdisc("htb", "1:", "root", 0), qdisc("fq_codel", "3f:", "1:3f", 7)]);
        assert_eq!(left, 49 - MAX_ROWS);
        assert_eq!(rows[..3], ["gw eth0 1:", "  1:1", "    1:10"]);
        assert_eq!(rows[rows.len() - 2..], ["    1:3f", "      3f:"]);
    }
}
