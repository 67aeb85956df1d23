//! A packet's way through filters to a class, as the kernel goes it.
//!
//! Follows: linux v6.12 `net/sched/cls_api.c` `__tcf_classify`, `cls_u32.c` `u32_classify`, `sch_htb.c` `htb_classify`, `sch_prio.c`
//! `prio_classify`.

use super::Probe;
use crate::facts::{Device, Facts, Qdisc};
use crate::filters::{ALL, Field, Filter, IP};
use penstock_model::Handle;

/// Where a packet ends, and how it came there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sorted {
    /// What was tried, in order.
    pub said: Vec<String>,
    /// The leaf class; `None` where there is none on the way: dropped, unshaped, or a qdisc without classes.
    pub class: Option<Handle>,
    /// What decided: `filter of line 7`, `default`, `direct`, ….
    pub by: String,
    /// Qdisc the packet waits in: kind and handle.
    pub leaf: Option<(&'static str, Handle)>,
}

/// What a filter list gives.
enum Hit {
    Class(Handle, usize),
    None,
}

/// Takes a packet from a device's root to the queue it waits in.
pub fn sort(facts: &Facts, device: &Device, probe: &Probe) -> Sorted {
    let mut sorted = Sorted::default();
    let Some(mut at) = device.qdiscs.iter().find(|q| q.parent == Handle::ROOT) else { return sorted };
    let mut walk = Walk { facts, device, probe, said: Vec::new() };
    for _ in 0..8 {
        let (class, by) = match at.kind {
            "htb" | "hfsc" => walk.tree(at),
            "prio" => walk.prio(at),
            "drr" | "qfq" => match walk.filters(at.handle) {
                Hit::Class(id, step) if device.class(id).is_some() => (Some(id), walk.line(step)),
                _ => (None, "dropped: no filter fits".to_owned()),
            },
            _ => {
                sorted.leaf = Some((at.kind, at.handle));
                break;
            }
        };
        (sorted.class, sorted.by) = (class, by);
        let Some(id) = sorted.class else { break };
        match device.leaf(id) {
            Some(inner) => at = inner,
            None => {
                sorted.leaf = Some(("pfifo", Handle::UNSPEC));
                break;
            }
        }
    }
    sorted.said = walk.said;
    sorted
}

struct Walk<'a> {
    facts: &'a Facts,
    device: &'a Device,
    probe: &'a Probe,
    said: Vec<String>,
}

impl Walk<'_> {
    fn line(&self, step: usize) -> String {
        format!("filter of line {}", self.facts.steps[step].line)
    }

    /// `htb_classify`: filters of the qdisc, then of each inner class they lead to.
    fn tree(&mut self, qdisc: &Qdisc) -> (Option<Handle>, String) {
        let leaf =
            |id: Handle| self.device.class(id).filter(|c| id.qdisc() == qdisc.handle && c.id != qdisc.handle);
        let mut at = qdisc.handle;
        if self.probe.priority == qdisc.handle.0 && qdisc.kind == "htb" {
            return (None, "direct: its priority is the qdisc's handle".to_owned());
        }
        if let Some(class) = leaf(Handle(self.probe.priority)) {
            if class.children.is_empty() {
                return (Some(class.id), "its priority".to_owned());
            }
            at = class.id;
        }
        for _ in 0..16 {
            let Hit::Class(id, step) = self.filters(at) else { break };
            if id == qdisc.handle && qdisc.kind == "htb" {
                return (None, format!("direct: {} names the qdisc", self.line(step)));
            }
            match self.device.class(id).filter(|c| id.qdisc() == qdisc.handle && c.id != qdisc.handle) {
                None => {
                    self.said.push(format!("class {id} does not exist"));
                    break;
                }
                Some(class) if class.children.is_empty() => return (Some(id), self.line(step)),
                Some(_) => at = id,
            }
        }
        let default = Handle::new(qdisc.handle.major(), qdisc.options.u32("default").unwrap_or(0) as u16);
        match self.device.class(default).filter(|c| c.children.is_empty() && default.minor() != 0) {
            Some(class) => (Some(class.id), "default".to_owned()),
            None if qdisc.kind == "hfsc" => {
                (None, "dropped: no filter fits and there is no default".to_owned())
            }
            None => (None, "direct: no filter fits and there is no default".to_owned()),
        }
    }

    /// `prio_classify`.
    fn prio(&mut self, qdisc: &Qdisc) -> (Option<Handle>, String) {
        let bands = qdisc.options.u32("bands").unwrap_or(3);
        let map = qdisc.options.bytes("priomap").unwrap_or(&[]).to_vec();
        let band_of = |priority: u32| u32::from(map.get(priority as usize & 15).copied().unwrap_or(0));
        let own = Handle(self.probe.priority).qdisc() == qdisc.handle;
        let (id, by) = match (own, if own { Hit::None } else { self.filters(qdisc.handle) }) {
            (true, _) => (Handle(self.probe.priority), "its priority".to_owned()),
            (_, Hit::Class(id, step)) => (id, self.line(step)),
            (_, Hit::None) => {
                let priority = if self.probe.priority >> 16 != 0 { 0 } else { self.probe.priority };
                let band = band_of(priority);
                return (
                    Some(Handle::new(qdisc.handle.major(), band as u16 + 1)),
                    format!("priomap: priority {} is band {band}", priority & 15),
                );
            }
        };
        let band = u32::from(id.minor()).wrapping_sub(1);
        let band = if band < bands { band } else { band_of(0) };
        (Some(Handle::new(qdisc.handle.major(), band as u16 + 1)), by)
    }

    /// The filters of a qdisc or a class, in the order they are asked.
    fn filters(&mut self, parent: Handle) -> Hit {
        let device = self.device;
        let mut here: Vec<&Filter> =
            device.filters.iter().filter(|f| f.parent == parent && f.chain == 0).collect();
        here.sort_by_key(|f| f.prio);
        let mut prios: Vec<&[&Filter]> = here.chunk_by(|a, b| a.prio == b.prio).collect();
        prios.retain(|p| p[0].protocol == ALL || p[0].protocol == IP);
        for group in prios {
            let mut roots: Vec<&Filter> = group.iter().copied().filter(|f| f.reached).collect();
            // Nodes of u32 stand in the order of their handles where they were given.
            roots.sort_by_key(|f| {
                if f.kind == "u32" && f.handle & 0xfff != 0 { f.handle & 0xfff } else { 0x800 }
            });
            // flower looks mask by mask, the oldest first.
            let masks =
                |f: &Filter| f.tests.iter().map(|(field, bits)| (*field, bits.mask)).collect::<Vec<_>>();
            let all: Vec<_> = roots.iter().map(|f| masks(f)).collect();
            roots.sort_by_cached_key(|f| {
                if f.kind == "flower" { all.iter().position(|m| *m == masks(f)).unwrap_or(0) } else { 0 }
            });
            if let Some(hit) = self.list(&roots, parent, 0, 0, 0) {
                return hit;
            }
        }
        Hit::None
    }

    fn list(&mut self, filters: &[&Filter], parent: Handle, base: i32, off2: i32, depth: u32) -> Option<Hit> {
        for filter in filters {
            let line = self.facts.steps[filter.step].line;
            match self.misses(filter, base, off2) {
                Some(why) => {
                    self.said.push(format!("line {line} (prio {}, {}): no: {why}", filter.prio, filter.kind));
                    continue;
                }
                None => self.said.push(format!("line {line} (prio {}, {}): fits", filter.prio, filter.kind)),
            }
            if filter.options.has("link") && depth < 8 {
                if let Some(hit) = self.link(filter, parent, base, depth) {
                    return Some(hit);
                }
                continue;
            }
            if !filter.ends {
                self.said.push("  and goes on".to_owned());
                continue;
            }
            let class = filter.classid.unwrap_or(if filter.kind == "fw" && filter.handle == 0 {
                Handle(self.probe.mark)
            } else {
                Handle::UNSPEC
            });
            return Some(Hit::Class(class, filter.step));
        }
        None
    }

    /// Into the hash table a u32 filter links to.
    fn link(&mut self, filter: &Filter, parent: Handle, base: i32, depth: u32) -> Option<Hit> {
        let table = filter.options.u32("link")? >> 20;
        let sel = filter.options.nested("sel").cloned().unwrap_or_default();
        let n = |name: &str| sel.u32(name).unwrap_or(0);
        let divisor = self.device.tables.get(&(parent, table)).copied().unwrap_or(1);
        let hmask = n("hmask");
        let key = self.probe.word(base + sel.i64("hoff").unwrap_or(0) as i32) & hmask;
        let bucket =
            if divisor > 1 && hmask != 0 { (key >> hmask.trailing_zeros()) & (divisor - 1) } else { 0 };
        self.said.push(format!("  into table {table:x}:, bucket {bucket:x} of {divisor}"));
        let (mut base, mut off2) = (base, 0);
        let flags = n("flags");
        if flags & 6 != 0 {
            off2 = n("off") as i32 + 3;
            if flags & 4 != 0 {
                let at = sel.i64("offoff").unwrap_or(0) as i32;
                let word = self.probe.word(base + (at & !3));
                let half = if at & 2 == 0 { word >> 16 } else { word & 0xffff };
                off2 += ((half & n("offmask")) >> n("offshift")) as i32;
            }
            off2 &= !3;
        }
        if flags & 8 != 0 {
            base += off2;
            off2 = 0;
        }
        let device = self.device;
        let inside: Vec<&Filter> = device
            .filters
            .iter()
            .filter(|f| {
                f.parent == parent
                    && f.kind == "u32"
                    && f.options.u32("hash").is_some_and(|h| h >> 20 == table && h >> 12 & 0xff == bucket)
            })
            .collect();
        self.list(&inside, parent, base, off2, depth + 1)
    }

    /// Why a filter does not fit, with the bytes; `None` where it does.
    fn misses(&self, filter: &Filter, base: i32, off2: i32) -> Option<String> {
        for (field, need) in &filter.tests {
            let (name, have) = match field {
                Field::Net(off) | Field::Next(off) => {
                    let behind = matches!(field, Field::Next(_));
                    let at = base + off + if behind { off2 } else { 0 };
                    if at + 4 > i32::from(self.probe.len) {
                        return Some(format!("the packet ends before byte {at}"));
                    }
                    (format!("at {}{off}", if behind { "nexthdr+" } else { "" }), self.probe.word(at))
                }
                Field::Mark if filter.kind == "fw" && filter.handle == 0 => continue,
                Field::Mark => ("mark".to_owned(), self.probe.mark),
                Field::Input(name) => {
                    let wanted: String =
                        name.to_be_bytes().iter().filter(|b| **b != 0).map(|b| *b as char).collect();
                    if self.probe.input.as_deref() != Some(&wanted) {
                        return Some(format!("it did not come in by {wanted}"));
                    }
                    continue;
                }
                Field::Named(name) => {
                    let port = |own: &str, port: u16| name.starts_with(own).then_some(u32::from(port));
                    let value = match *name {
                        "tcp_src" | "tcp_dst" | "udp_src" | "udp_dst" => {
                            let (is, at) = (
                                if name.starts_with("tcp") { 6 } else { 17 },
                                if name.ends_with("src") { self.probe.sport } else { self.probe.dport },
                            );
                            (self.probe.protocol == is).then(|| port(&name[..3], at)).flatten()
                        }
                        "ip_ttl" => Some(64),
                        _ => return Some(format!("{name} is not in the packet as given")),
                    };
                    match value {
                        Some(v) => ((*name).to_owned(), v),
                        None => return Some(format!("{name}: another protocol")),
                    }
                }
            };
            if (have ^ need.value) & need.mask != 0 {
                return Some(format!(
                    "{name} it has {have:08x}, wanted {:08x}/{:08x}",
                    need.value & need.mask,
                    need.mask
                ));
            }
        }
        let open = !filter.exact && filter.kind != "u32";
        open.then(|| "what it asks cannot be told from the headers".to_owned())
    }
}
