//! Chains and filters of a device and of the shared blocks its qdiscs hold.

use super::{Work, words};
use crate::device::NetDevice;
use penstock_lang::show::{self, Form};
use penstock_lang::tc::{Show, say};
use penstock_model::Handle;
use penstock_model::rtnetlink::{ChainDump, FilterDump};
use penstock_sched::cls::Select;
use std::collections::BTreeSet;

/// The first hash table u32 makes by itself.
const FIRST_TABLE: u32 = 0x800;
/// Tables that may be made and thrown away so that the next has the right number.
const MAX_SPENT: u32 = 64;

/// A priority's filters, as dumped.
struct Group {
    chain: u32,
    prio: u16,
    protocol: u16,
    kind: &'static str,
    filters: Vec<FilterDump>,
}

impl Group {
    /// The number of u32's own table of this priority: the oldest of its tables, which is dumped last.
    fn root_table(&self) -> Option<u32> {
        self.filters.iter().rfind(|f| is_table(f)).map(|f| f.handle >> 20)
    }
}

fn is_table(f: &FilterDump) -> bool {
    f.kind == "u32" && f.options.as_ref().is_some_and(|o| o.has("divisor"))
}

impl Work<'_> {
    /// All that hangs on a device.
    pub(super) fn filters(&mut self, dev: &str) {
        let Some(device) = self.host.ifindex(dev).and_then(|i| self.host.device(i)) else { return };
        for (place, chains, filters) in self.places(device) {
            self.block(dev, &place, &chains, filters);
        }
    }

    /// Every place with chains or filters: the words that name it, what is there.
    fn places(&mut self, device: &NetDevice) -> Vec<(String, Vec<ChainDump>, Vec<FilterDump>)> {
        let tree = &device.tree;
        let (qdiscs, classes) = (tree.dump_qdiscs(self.now), tree.dump_classes(self.now));
        let mut parents: Vec<Handle> = Vec::new();
        for qdisc in qdiscs.iter().filter(|q| q.handle != Handle::UNSPEC) {
            match qdisc.kind {
                "clsact" => parents.extend([Handle(0xffff_fff2), Handle(0xffff_fff3)]),
                _ => parents.push(qdisc.handle),
            }
        }
        parents.extend(classes.iter().map(|c| c.classid).filter(|c| c.qdisc() != Handle::UNSPEC));
        let mut blocks: Vec<u32> = Vec::new();
        for qdisc in &qdiscs {
            let names: &[&str] = if qdisc.kind == "red" {
                &["early_drop", "mark"]
            } else {
                &["ingress_block", "egress_block"]
            };
            blocks.extend(names.iter().filter_map(|name| qdisc.options.u32(name)));
        }
        blocks.retain(|block| self.blocks.insert(*block));
        let look = self.host.look(self.now);
        let mut all = Vec::new();
        let mut seen: BTreeSet<Handle> = BTreeSet::new();
        for parent in parents {
            if !seen.insert(parent) {
                continue;
            }
            let arriving = parent == Handle::INGRESS.qdisc();
            // A class without filters of its own answers with its qdisc's; a shared block comes by itself.
            let own = |f: &FilterDump| {
                let here =
                    f.parent == parent || f.parent == Handle::ROOT || arriving && f.parent.qdisc() == parent;
                here && f.block == 0
            };
            let filters = tree.show_filters(parent, Select::default(), look).0;
            let filters: Vec<FilterDump> = filters.into_iter().filter(own).collect();
            let mut chains = tree.dump_chains(parent, None);
            let is_class = parent.minor() != 0 && parent.qdisc() != Handle::INGRESS.qdisc();
            chains.retain(|c| c.block == 0 && !(is_class && filters.is_empty()));
            // The last that was made says how its place is called.
            let place = match filters.first().map_or(parent, |f| f.parent).0 {
                0xffff_fff2 => format!("dev {} ingress", device.name),
                0xffff_fff3 => format!("dev {} egress", device.name),
                _ => format!("dev {} parent {parent}", device.name),
            };
            all.push((place, chains, filters));
        }
        for block in blocks {
            let filters = self.host.blocks.dump_filters(block, Select::default(), look).0;
            all.push((format!("block {block}"), self.host.blocks.dump_chains(block, None), filters));
        }
        all.retain(|(_, chains, filters)| !chains.is_empty() || !filters.is_empty());
        all
    }

    fn block(&mut self, dev: &str, place: &str, chains: &[ChainDump], filters: Vec<FilterDump>) {
        for chain in chains.iter().filter(|c| c.explicit || c.template.is_some()) {
            self.chain(dev, place, chain);
        }
        let mut groups: Vec<Group> = Vec::new();
        for f in filters {
            let same = |g: &Group| (g.chain, g.prio, g.protocol) == (f.chain, f.prio, f.protocol);
            let (chain, prio, protocol, kind) = (f.chain, f.prio, f.protocol, f.kind);
            match groups.last_mut().filter(|g| same(g)) {
                Some(group) => group.filters.push(f),
                None => groups.push(Group { chain, prio, protocol, kind, filters: vec![f] }),
            }
        }
        // The numbers of u32's own tables follow the order of their making.
        let roots: Vec<u32> = groups.iter().filter_map(Group::root_table).collect();
        if !roots.is_sorted() {
            groups.sort_by_key(|g| g.root_table().unwrap_or(0));
        }
        let mut next = FIRST_TABLE;
        let mut taken: Vec<u32> = Vec::new();
        let used: Vec<u16> = groups.iter().map(|g| g.prio).collect();
        for group in groups {
            let mut spare = Vec::new();
            if let Some(root) = group.root_table() {
                while taken.contains(&next) {
                    next += 1;
                }
                spare = self.spend(place, &group, (next, root), &used);
                next = root + 1;
                taken.extend(group.filters.iter().filter(|f| is_table(f)).map(|f| f.handle >> 20));
            }
            self.group(dev, place, &group);
            for prio in spare {
                self.give(words(&format!("tc filter del {place} protocol all pref {prio} u32")));
            }
        }
    }

    /// Makes priorities of u32, each with its table, until the next has the number `to`; they go when that is there: with its last
    /// priority u32 forgets how far it has counted.
    fn spend(&mut self, place: &str, group: &Group, (from, to): (u32, u32), used: &[u16]) -> Vec<u16> {
        if to < from || to - from > MAX_SPENT {
            self.note(format!(
                "filter {place} pref {}: u32's own table has another number than {to:x}",
                group.prio
            ));
            return Vec::new();
        }
        let free = (1..=u16::MAX).rev().filter(|prio| !used.contains(prio));
        let spare: Vec<u16> = free.take((to - from) as usize).collect();
        for prio in &spare {
            self.give(words(&format!("tc filter add {place} protocol all pref {prio} u32")));
        }
        spare
    }

    fn chain(&mut self, dev: &str, place: &str, chain: &ChainDump) {
        let text = show::chains(&[(dev.to_owned(), chain.clone())], &exact(), self.host.kernel);
        match say::template(&text) {
            Ok(said) => {
                self.give(said.command(place));
            }
            Err(why) => self.note(format!("chain {} at {place}: {why}", chain.chain)),
        }
    }

    fn group(&mut self, dev: &str, place: &str, group: &Group) {
        let root = group.root_table();
        // Lists whose youngest member stands first; tables before what stands in them.
        let youngest_first = matches!(group.kind, "basic" | "bpf" | "fw");
        let mut list: Vec<&FilterDump> = group.filters.iter().collect();
        if youngest_first {
            list.reverse();
        }
        let (mut tables, rest): (Vec<_>, Vec<_>) = list.into_iter().partition(|f| is_table(f));
        tables.reverse();
        let real = rest.iter().any(|f| f.options.is_some() && f.handle != 0) || tables.len() > 1;
        // A table of its own is all that u32 has where it was given nothing.
        for f in tables.into_iter().filter(|f| Some(f.handle >> 20) != root).chain(rest) {
            self.filter(dev, place, f, real);
        }
    }

    fn filter(&mut self, dev: &str, place: &str, f: &FilterDump, real: bool) {
        let text = show::filters(&[(dev.to_owned(), f.clone())], &exact(), self.host.kernel);
        let said = match say::filter(&text, f.options.as_ref(), self.host.kernel) {
            Ok(said) => said,
            Err(why) => return self.note(format!("filter {place} pref {} {}: {why}", f.prio, f.kind)),
        };
        if said.header && (real || !matches!(f.kind, "fw" | "u32")) {
            return;
        }
        self.give(said.command(place, true));
    }
}

/// Everything said: device and chain too.
fn exact() -> Show {
    let form = Form { details: true, ..Form::default() };
    Show { form, ..Show::default() }
}

#[cfg(test)]
mod tests {
    use crate::Host;
    use penstock_model::{Kernel, Time};

    /// The commands of a machine made by these lines.
    #[track_caller]
    fn check(lines: &[&str], want: &[&str]) {
        let mut host = Host::new("m", Kernel::V6_12, 1);
        host.add_device("d0");
        for line in lines {
            let output = host.exec(line, Time::ZERO);
            assert_eq!(output.status, 0, "{line}: {}", output.stderr);
        }
        let rebuilt = host.rebuild_tc(None, Time::ZERO);
        let said: Vec<String> = rebuilt.commands.iter().map(|c| c.join(" ")).collect();
        assert_eq!(
            (said.iter().map(String::as_str).collect::<Vec<_>>(), rebuilt.notes),
            (want.to_vec(), Vec::new())
        );
    }

    #[test]
    fn hash_tables_of_u32_come_before_what_stands_in_them() {
        check(
            &[
                "tc qdisc add dev d0 root handle 1: prio",
                "tc filter add dev d0 parent 1: protocol ip pref 1 handle 2: u32 divisor 4",
                "tc filter add dev d0 parent 1: protocol ip pref 1 u32 ht 2:1: match ip dst 10.0.0.1 flowid 1:1",
                "tc filter add dev d0 parent 1: protocol ip pref 1 u32 match ip src 10.0.0.0/8 link 2: hashkey mask 0xff at 16",
            ],
            &[
                "tc qdisc add dev d0 root handle 1: prio bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
                "tc filter add dev d0 parent 1: protocol ip pref 1 handle 2: u32 divisor 4",
                "tc filter add dev d0 parent 1: protocol ip pref 1 handle 2:1:800 u32 ht 2:1: flowid 1:1 match u32 0x0a000001 0xffffffff at 16",
                "tc filter add dev d0 parent 1: protocol ip pref 1 handle 800::800 u32 ht 800:0: link 2: match u32 0x0a000000 0xff000000 at 12 hashkey mask 000000ff at 16",
            ],
        );
    }

    #[test]
    fn a_table_thrown_away_has_had_its_number() {
        check(
            &[
                "tc qdisc add dev d0 root handle 1: prio",
                "tc filter add dev d0 parent 1: protocol ip pref 1 u32 match ip dst 10.0.0.1 flowid 1:1",
                "tc filter add dev d0 parent 1: protocol ip pref 2 u32 match ip dst 10.0.0.2 flowid 1:2",
                "tc filter del dev d0 parent 1: protocol ip pref 1",
            ],
            &[
                "tc qdisc add dev d0 root handle 1: prio bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
                "tc filter add dev d0 parent 1: protocol all pref 65535 u32",
                "tc filter add dev d0 parent 1: protocol ip pref 2 handle 801::800 u32 ht 801:0: flowid 1:2 match u32 0x0a000002 0xffffffff at 16",
                "tc filter del dev d0 parent 1: protocol all pref 65535 u32",
            ],
        );
    }
}
