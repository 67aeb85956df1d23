//! Which packets reach which class: the filters in the order they are asked, and what is left.

use super::device;
use crate::facts::Facts;
use crate::filters::{Field, Filter, IP};
use penstock_model::Handle;
use serde_json::{Value, json};

/// One part: what a filter takes of what those before it left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// What is asked of a packet.
    pub packets: String,
    /// Where they go: a class, or `direct`, `dropped`, `an action`.
    pub class: String,
    /// The line of the filter; 0 for what is left.
    pub line: u32,
    /// The line of an earlier filter that takes all of these packets, where one does: nothing is left for this one.
    pub taken_by: Option<u32>,
}

/// All parts of a device's packets, in the order filters are asked.
///
/// # Errors
/// The script puts no qdisc on the device.
pub fn partition(facts: &Facts, dev: &str) -> Result<Vec<Part>, String> {
    let device = device(facts, dev).ok_or_else(|| format!("the script puts no qdisc on {dev}"))?;
    let taken = crate::rules::covered(&device.filters);
    let mut order: Vec<usize> =
        (0..device.filters.len()).filter(|&i| device.filters[i].parent.major() != 0xffff).collect();
    order.sort_by_key(|&i| (device.filters[i].parent, device.filters[i].prio, i));
    let line = |i: usize| facts.steps[device.filters[i].step].line;
    let part = |i: usize| {
        let filter = &device.filters[i];
        let class = match filter.classid {
            Some(id) if device.class(id).is_some() => id.to_string(),
            Some(id) => format!("{id} (not there)"),
            None => "an action".to_owned(),
        };
        let taken_by = taken.iter().find(|t| t.0 == i).map(|t| line(t.1));
        Part { packets: words(filter), class, line: line(i), taken_by }
    };
    let mut parts: Vec<Part> = order.into_iter().map(part).collect();
    if let Some(root) = device.root() {
        let default = Handle::new(root.handle.major(), root.options.u32("default").unwrap_or(0) as u16);
        let class = match root.kind {
            "prio" => "by priority (priomap)".to_owned(),
            "drr" | "qfq" => "dropped".to_owned(),
            _ if default.minor() != 0 && device.class(default).is_some() => default.to_string(),
            "hfsc" => "dropped".to_owned(),
            "htb" => "direct, unshaped".to_owned(),
            kind => kind.to_owned(),
        };
        parts.push(Part { packets: "everything else".to_owned(), class, line: 0, taken_by: None });
    }
    Ok(parts)
}

/// What a filter asks, in words.
fn words(filter: &Filter) -> String {
    let mut said = Vec::new();
    match filter.protocol {
        IP => said.push("ip".to_owned()),
        crate::filters::ALL => {}
        crate::filters::IP6 => said.push("ipv6".to_owned()),
        other => said.push(format!("ethertype {other:#06x}")),
    }
    for (field, bits) in filter.tests.iter().filter(|t| t.1.mask != 0) {
        let whole = |name: &str, shift: u32, width: u32| {
            let (value, mask) = (bits.value >> shift & width, bits.mask >> shift & width);
            if mask == width { format!("{name} {value}") } else { format!("{name} {value:#x}/{mask:#x}") }
        };
        let net = |name: &str| {
            format!("{name} {}/{}", std::net::Ipv4Addr::from(bits.value & bits.mask), bits.mask.count_ones())
        };
        match field {
            Field::Net(12) => said.push(net("src")),
            Field::Net(16) => said.push(net("dst")),
            Field::Net(8) if bits.mask == 0x00ff_0000 => said.push(whole("protocol", 16, 0xff)),
            Field::Net(0) if bits.mask & 0xff00_ffff == 0 => said.push(whole("tos", 16, 0xff)),
            Field::Net(20) if bits.mask >> 16 == 0 => said.push(whole("dport", 0, 0xffff)),
            Field::Net(20) if bits.mask & 0xffff == 0 => said.push(whole("sport", 16, 0xffff)),
            Field::Mark => said.push(whole("mark", 0, u32::MAX)),
            Field::Named(name) => said.push(format!("{name} {}", bits.value & bits.mask)),
            Field::Net(off) => {
                said.push(format!("{:08x}/{:08x} at {off}", bits.value & bits.mask, bits.mask))
            }
            Field::Next(off) => {
                said.push(format!("{:08x}/{:08x} at nexthdr+{off}", bits.value & bits.mask, bits.mask))
            }
            Field::Input(_) => said.push("by a named device".to_owned()),
        }
    }
    if !filter.exact {
        said.push("and more".to_owned());
    }
    if said.is_empty() { "everything".to_owned() } else { said.join(", ") }
}

impl Part {
    /// As a line of a table.
    pub fn text(&self) -> String {
        let place = if self.line > 0 { format!("line {}", self.line) } else { String::new() };
        let dead = self.taken_by.map_or(String::new(), |l| format!("  never: line {l} takes them first"));
        format!("{:<10} {:<24} {}{dead}\n", place, self.class, self.packets)
    }
    /// For programs.
    pub fn json(&self) -> Value {
        json!({ "line": self.line, "packets": self.packets, "class": self.class, "taken_by": self.taken_by })
    }
}
