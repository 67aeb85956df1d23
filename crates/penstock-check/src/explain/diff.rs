//! Two scripts side by side: which traffic lands elsewhere, which promises change.

use super::{Probe, device, explain};
use crate::facts::{Device, Facts, rate};
use crate::filters::{Field, Filter, IP};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// What differs on a device between two scripts, a line each; nothing where nothing does.
///
/// The packets that are tried are one for each filter of both, and one that fits none.
///
/// # Errors
/// One of the two puts no qdisc on the device.
pub fn diff(a: &Facts, b: &Facts, dev: &str) -> Result<Vec<String>, String> {
    let (one, two) = (device(a, dev), device(b, dev));
    let one = one.ok_or_else(|| format!("{} puts no qdisc on {dev}", a.name))?;
    let two = two.ok_or_else(|| format!("{} puts no qdisc on {dev}", b.name))?;
    let mut said = Vec::new();
    let mut seen = BTreeSet::new();
    let probes = one.filters.iter().chain(&two.filters).filter_map(example).chain([Probe::default()]);
    for probe in probes {
        let text = show(&probe);
        if !seen.insert(text.clone()) {
            continue;
        }
        let (x, y) = (explain(a, dev, &probe)?, explain(b, dev, &probe)?);
        let place = |e: &super::Explained| {
            e.sorted.class.map_or(format!("no class ({})", e.sorted.by), |c| c.to_string())
        };
        let (from, to) = (place(&x), place(&y));
        if from != to {
            said.push(format!("{text}: {from} -> {to}"));
        }
    }
    said.extend(classes(one, two));
    Ok(said)
}

fn classes(one: &Device, two: &Device) -> Vec<String> {
    let ids: BTreeSet<_> = one.by_id.keys().chain(two.by_id.keys()).copied().collect();
    let mut said = Vec::new();
    for id in ids {
        match (one.class(id), two.class(id)) {
            (Some(x), Some(y)) => {
                if (x.rate(), x.ceil()) != (y.rate(), y.ceil()) {
                    said.push(format!(
                        "class {id}: rate {} ceil {} -> rate {} ceil {}",
                        rate(x.rate()),
                        rate(x.ceil()),
                        rate(y.rate()),
                        rate(y.ceil())
                    ));
                }
                let prio = |c: &crate::facts::Class| c.options.u32("prio").unwrap_or(0);
                if prio(x) != prio(y) {
                    said.push(format!("class {id}: prio {} -> {}", prio(x), prio(y)));
                }
                let queue = |d: &Device| d.leaf(id).map_or("pfifo".to_owned(), |q| q.kind.to_owned());
                if x.children.is_empty() && y.children.is_empty() && queue(one) != queue(two) {
                    said.push(format!("class {id}: queue {} -> {}", queue(one), queue(two)));
                }
            }
            (Some(_), None) => said.push(format!("class {id}: gone")),
            (None, _) => said.push(format!("class {id}: new")),
        }
    }
    said
}

/// A packet that fits a filter.
fn example(filter: &Filter) -> Option<Probe> {
    if filter.protocol != IP && filter.protocol != crate::filters::ALL {
        return None;
    }
    let mut probe = Probe::default();
    for (field, bits) in &filter.tests {
        let over = |old: u32| old & !bits.mask | bits.value & bits.mask;
        match field {
            Field::Net(0) => probe.tos = (over(u32::from(probe.tos) << 16) >> 16) as u8,
            Field::Net(8) => probe.protocol = (over(u32::from(probe.protocol) << 16) >> 16) as u8,
            Field::Net(12) => probe.src = Ipv4Addr::from(over(probe.src.into())),
            Field::Net(16) => probe.dst = Ipv4Addr::from(over(probe.dst.into())),
            Field::Net(20) => {
                let ports = over(u32::from(probe.sport) << 16 | u32::from(probe.dport));
                (probe.sport, probe.dport) = ((ports >> 16) as u16, ports as u16);
            }
            Field::Mark => probe.mark = over(0),
            Field::Named("tcp_dst" | "udp_dst") => probe.dport = over(0) as u16,
            Field::Named("tcp_src" | "udp_src") => probe.sport = over(0) as u16,
            _ => {}
        }
    }
    Some(probe)
}

fn show(p: &Probe) -> String {
    let protocol = match p.protocol {
        6 => "tcp".to_owned(),
        17 => "udp".to_owned(),
        1 => "icmp".to_owned(),
        n => n.to_string(),
    };
    let mark = if p.mark != 0 { format!(" mark {}", p.mark) } else { String::new() };
    let tos = if p.tos != 0 { format!(" tos {:#04x}", p.tos) } else { String::new() };
    format!("{protocol} {}:{} > {}:{}{tos}{mark}", p.src, p.sport, p.dst, p.dport)
}
