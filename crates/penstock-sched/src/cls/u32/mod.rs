//! `u32`: matches on words of the packet, in hash tables that lead to one another.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/cls_u32.c`.
//! Differs: 2.6.35 let a priority's own table be linked to and deleted; here neither is done, as today.

mod tables;
mod walk;

pub use tables::Tables;

use super::{Answer, Change, Classifier, ClsSpec, Exts, Shared, Target};
use crate::act::Look;
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::{Handle, Kernel, KernelError, Options};
use penstock_packet::Skb;
use std::cell::Cell;
use tables::{Knode, ROOT, Sel, Table, hash, htid, id_of, key, node};

/// The kind.
pub static SPEC: ClsSpec = ClsSpec {
    id: "u32",
    about: "match any words of the packet, in hash tables",
    kernels: &Kernel::ALL,
    simulated: true,
    build: |shared, kernel, prio| Box::new(U32::new(&mut shared.u32, kernel, prio)),
};

/// `skip_hw`, `skip_sw`, and what the kernel adds: `not_in_hw`.
const SKIP_HW: u32 = 1;
const SKIP_SW: u32 = 2;
const IN_HW: u32 = 4;
const NOT_IN_HW: u32 = 8;
const VERBOSE: u32 = 16;

/// One priority of u32 filters: it begins with its own table.
struct U32 {
    kernel: Kernel,
    prio: u16,
    root: usize,
}

impl U32 {
    /// `u32_init`.
    fn new(tables: &mut Tables, kernel: Kernel, prio: u16) -> U32 {
        let first = tables.users == 0;
        let handle = if first { 0x8000_0000 } else { new_htid(tables, kernel).unwrap_or(0x8000_0000) };
        tables.users += 1;
        let root = tables.add(Table::new(handle, prio, true, 0));
        U32 { kernel, prio, root }
    }
    /// The table a handle speaks of.
    fn table(&self, tables: &Tables, handle: u32) -> Option<usize> {
        if htid(handle) == ROOT { Some(self.root) } else { tables.lookup(htid(handle)) }
    }
}

/// `gen_new_htid`: a number from 0x801 for a table.
fn new_htid(tables: &mut Tables, kernel: Kernel) -> Option<u32> {
    let handle = |id: u32| (id | 0x800) << 20;
    match kernel {
        // Round and round, starting behind the last one given.
        Kernel::V6_12 | Kernel::V7_2 => {
            let from = if (1..0x7ff).contains(&tables.next_id) { tables.next_id } else { 1 };
            let id = (from..0x7ff).chain(1..from).find(|id| !tables.ids.contains(id))?;
            tables.ids.insert(id);
            tables.next_id = id + 1;
            Some(handle(id))
        }
        Kernel::V2_6_35 => (0..0x7ff).find_map(|_| {
            tables.next_id += 1;
            if tables.next_id == 0x7ff {
                tables.next_id = 1;
            }
            let handle = handle(tables.next_id);
            tables.lookup(handle).is_none().then_some(handle)
        }),
    }
}

/// `gen_new_kid`: a number from 0x800 for a filter.
fn new_kid(table: &Table, htid: u32, device: &Device) -> Result<u32, KernelError> {
    match device.kernel {
        Kernel::V6_12 | Kernel::V7_2 => {
            let free = |range: std::ops::RangeInclusive<u32>| {
                range.map(|n| htid & 0xffff_f000 | n).find(|id| !table.ids.contains(id))
            };
            let kid = free(table.lowest(htid)..=0xfff).or_else(|| free(1..=0x7ff));
            kid.ok_or_else(|| {
                device.refusal(KernelError::ENOSPC, "cls_u32: Hash table node ID pool exhausted")
            })
        }
        Kernel::V2_6_35 => {
            let bucket = &table.buckets[hash(htid) as usize];
            let last = bucket.iter().map(|n| node(n.handle)).max().unwrap_or(0).max(0x7ff);
            Ok(htid | (last + 1).min(0xfff))
        }
    }
}

impl Classifier for U32 {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    #[inline]
    fn classify(&self, shared: &Shared, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        walk::classify(&shared.u32.slots, self.root, skb, cx)
    }
    fn has(&self, shared: &Shared, handle: u32) -> bool {
        self.table(&shared.u32, handle)
            .is_some_and(|t| key(handle) == 0 || shared.u32.slots[t].find(handle).is_some())
    }
    fn change(&mut self, shared: &mut Shared, mut change: Change<'_>) -> Result<(), KernelError> {
        let device = *change.device;
        let no = |why| Err(device.refusal(KernelError::EINVAL, why));
        let Some(options) = change.options else {
            return if change.handle == 0 { Ok(()) } else { no("cls_u32: Filter handle requires options") };
        };
        let flags = match device.kernel {
            Kernel::V2_6_35 => 0,
            Kernel::V6_12 | Kernel::V7_2 => options.u32("flags").unwrap_or(0),
        };
        if flags & !(SKIP_HW | SKIP_SW | VERBOSE) != 0 || flags & (SKIP_HW | SKIP_SW) == SKIP_HW | SKIP_SW {
            return no("cls_u32: Invalid filter flags");
        }
        let tables = &mut shared.u32;
        if self.has_in(tables, change.handle) {
            return self.change_node(tables, &mut change, options, flags);
        }
        if let Some(divisor) = options.u32("divisor") {
            return self.add_table(tables, &change, divisor);
        }
        self.add_node(tables, &mut change, options, flags)
    }
    fn delete(
        &mut self,
        shared: &mut Shared,
        handle: u32,
        device: &Device,
        classes: &mut dyn Classful,
    ) -> Result<bool, KernelError> {
        let tables = &mut shared.u32;
        let Some(table) = self.table(tables, handle) else {
            return Err(KernelError::errno(KernelError::ENOENT));
        };
        if key(handle) != 0 {
            tables.remove(table, handle, classes);
        } else if tables.slots[table].root {
            return Err(device.refusal(KernelError::EINVAL, "cls_u32: Not allowed to delete root node"));
        } else if tables.slots[table].refs == 1 {
            tables.destroy(table, classes);
        } else {
            return Err(device.refusal(KernelError::EBUSY, "cls_u32: Can not delete in-use filter"));
        }
        Ok(tables.users == 1 && tables.knodes == 0)
    }
    fn destroy(&mut self, shared: &mut Shared, classes: &mut dyn Classful) {
        let tables = &mut shared.u32;
        tables.destroy(self.root, classes);
        tables.users -= 1;
        if tables.users == 0 {
            tables.destroy_all(classes);
        }
    }
    fn walk(&self, shared: &Shared, look: Look<'_>, visit: &mut dyn FnMut(u32, Option<Options>)) {
        let tables = &shared.u32;
        for table in tables.order.iter().map(|&t| &tables.slots[t]).filter(|t| t.prio == self.prio) {
            visit(table.handle, Some(table.dump()));
            for n in table.buckets.iter().flatten() {
                visit(n.handle, Some(n.dump(tables, self.kernel, look)));
            }
        }
    }
    /// Tables and filters of all priorities answer to their handles here.
    fn one(&self, shared: &Shared, handle: u32, look: Look<'_>) -> Option<(u32, Option<Options>)> {
        let tables = &shared.u32;
        let table = &tables.slots[self.table(tables, handle)?];
        if key(handle) == 0 {
            return Some((table.handle, Some(table.dump())));
        }
        table.find(handle).map(|n| (n.handle, Some(n.dump(tables, self.kernel, look))))
    }
    fn exts(&self, shared: &Shared, visit: &mut dyn FnMut(&Exts)) {
        let tables = &shared.u32;
        for table in tables.order.iter().map(|&t| &tables.slots[t]).filter(|t| t.prio == self.prio) {
            table.buckets.iter().flatten().for_each(|n| visit(&n.exts));
        }
    }
    fn targets(&mut self, shared: &mut Shared, visit: &mut dyn FnMut(&mut Target)) {
        let tables = &mut shared.u32;
        for &table in &tables.order {
            if tables.slots[table].prio == self.prio {
                tables.slots[table].buckets.iter_mut().flatten().for_each(|n| visit(&mut n.target));
            }
        }
    }
}

impl U32 {
    fn has_in(&self, tables: &Tables, handle: u32) -> bool {
        self.table(tables, handle).is_some_and(|t| key(handle) == 0 || tables.slots[t].find(handle).is_some())
    }

    /// The table that `link` names: `u32_set_parms`. Outer `None`: not asked for.
    fn link(
        &self,
        tables: &Tables,
        options: &Options,
        device: &Device,
    ) -> Result<Option<Option<usize>>, KernelError> {
        let no = |why| Err(device.refusal(KernelError::EINVAL, why));
        let Some(handle) = options.u32("link") else { return Ok(None) };
        if key(handle) != 0 {
            return no("cls_u32: u32 Link handle must be a hash table");
        }
        if handle == 0 {
            return Ok(Some(None));
        }
        match tables.lookup(handle) {
            None => no("cls_u32: Link hash table not found"),
            Some(down) if tables.slots[down].root => no("cls_u32: Not linking to root node"),
            Some(down) => Ok(Some(Some(down))),
        }
    }

    /// `u32_change` of a filter that is there: class, link and interface; the matches stay.
    fn change_node(
        &mut self,
        tables: &mut Tables,
        change: &mut Change<'_>,
        options: &Options,
        flags: u32,
    ) -> Result<(), KernelError> {
        let device = change.device;
        let handle = change.handle;
        let table = self.table(tables, handle).expect("the caller found it");
        let Some(old_flags) = tables.slots[table].find(handle).map(|n| n.flags).filter(|_| key(handle) != 0)
        else {
            return Err(device.refusal(KernelError::EINVAL, "cls_u32: Key node id cannot be zero"));
        };
        if (old_flags ^ flags) & !(IN_HW | NOT_IN_HW) != 0 {
            let why = "cls_u32: Key node flags do not match passed flags";
            return Err(device.refusal(KernelError::EINVAL, why));
        }
        let indev = indev(options, device)?;
        let exts = Exts::validate(options, flags, change)?;
        let link = self.link(tables, options, change.device)?;
        let n = tables.slots[table].find_mut(handle).expect("it was found");
        match options.u32("classid").map(Handle) {
            Some(classid) => n.target.bind(change.parent, classid, change.classes),
            // Today a replaced filter starts anew; in 2010 it kept its class.
            None if self.kernel >= Kernel::V6_12 => {
                n.target.unbind(change.classes);
                n.target = Target::default();
            }
            None => {}
        }
        if options.has("indev") {
            n.indev = indev;
        }
        // 2.6.35 keeps what it is not given anew.
        if self.kernel >= Kernel::V6_12 || !exts.is_empty() {
            n.exts = exts;
        }
        if let Some(link) = link {
            let old = std::mem::replace(&mut n.down, link);
            if let Some(down) = link {
                tables.slots[down].refs += 1;
            }
            tables.unlink(old);
        }
        Ok(())
    }

    /// `u32_change` with `divisor`: a new table.
    fn add_table(
        &mut self,
        tables: &mut Tables,
        change: &Change<'_>,
        divisor: u32,
    ) -> Result<(), KernelError> {
        let device = change.device;
        let no = |why| Err(device.refusal(KernelError::EINVAL, why));
        let most = match device.kernel {
            Kernel::V2_6_35 => 0x101,
            Kernel::V6_12 | Kernel::V7_2 if !divisor.is_power_of_two() => {
                return no("cls_u32: Divisor is not a power of 2");
            }
            Kernel::V6_12 | Kernel::V7_2 => 0x100,
        };
        if divisor == 0 || divisor > most {
            return no("cls_u32: Exceeded maximum 256 hash buckets");
        }
        let mut handle = change.handle;
        if key(handle) != 0 {
            return no("cls_u32: Divisor can only be used on a hash table");
        }
        if handle == 0 {
            handle = new_htid(tables, device.kernel).ok_or(KernelError::errno(KernelError::ENOMEM))?;
        } else if device.kernel >= Kernel::V6_12 && !tables.ids.insert(id_of(handle)) {
            return Err(KernelError::errno(KernelError::ENOSPC));
        }
        tables.add(Table::new(handle, self.prio, false, divisor - 1));
        Ok(())
    }

    /// `u32_change`: a new filter.
    fn add_node(
        &mut self,
        tables: &mut Tables,
        change: &mut Change<'_>,
        options: &Options,
        flags: u32,
    ) -> Result<(), KernelError> {
        let device = change.device;
        let no = |why| Err(device.refusal(KernelError::EINVAL, why));
        let mut place = options.u32("hash").unwrap_or(ROOT);
        let table = if htid(place) == ROOT {
            place = tables.slots[self.root].handle;
            self.root
        } else {
            match tables.lookup(htid(place)) {
                Some(table) => table,
                None => return no("cls_u32: Specified hash table not found"),
            }
        };
        if tables.slots[table].divisor < hash(place) {
            return no("cls_u32: Specified hash table buckets exceed configured value");
        }
        let handle = change.handle;
        if htid(handle) != 0 && htid(handle ^ place) != 0 {
            return no("cls_u32: Handle specified hash table address mismatch");
        }
        let handle = if node(handle) == 0 {
            new_kid(&tables.slots[table], place, device)?
        } else {
            let handle = place & 0xffff_f000 | node(handle);
            if device.kernel >= Kernel::V6_12 && tables.slots[table].ids.contains(&handle) {
                return Err(KernelError::errno(KernelError::ENOSPC));
            }
            handle
        };
        let Some(sel) = options.nested("sel").map(Sel::parse) else {
            return no("cls_u32: Selector not specified");
        };
        if sel.offshift >= 16 && device.kernel >= Kernel::V6_12 {
            return no("cls_u32: offshift must be less than 16");
        }
        let indev = indev(options, device)?;
        let kernel = device.kernel;
        let exts = Exts::validate(options, flags, change)?;
        let device = change.device;
        let down = self.link(tables, options, device)?.flatten();
        // A filter that is to be in hardware alone is taken without any: u32_replace_hw_knode is handed the request's flags in
        // place of the filter's.
        let mark = options.nested("mark").map(|m| (m.u32("val").unwrap_or(0), m.u32("mask").unwrap_or(0)));
        let mut target = Target::default();
        if let Some(classid) = options.u32("classid") {
            target.bind(change.parent, Handle(classid), change.classes);
        }
        if let Some(down) = down {
            tables.slots[down].refs += 1;
        }
        let flags = if kernel >= Kernel::V6_12 { flags | NOT_IN_HW } else { 0 };
        let mark = mark.unwrap_or((0, 0));
        let (tried, marked, hit) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let new = Knode { handle, sel, down, target, exts, indev, mark, flags, tried, marked, hit };
        let home = &mut tables.slots[table];
        home.take_id(handle);
        let bucket = &mut home.buckets[hash(handle) as usize];
        let at = bucket.partition_point(|n| node(n.handle) <= node(handle));
        bucket.insert(at, new);
        tables.knodes += 1;
        Ok(())
    }
}

/// `indev`, whose refusal u32 of 6.12 makes an EINVAL.
fn indev(options: &Options, device: &Device) -> Result<(String, u32), KernelError> {
    super::fw::indev(options, device).map_err(|e| KernelError { errno: KernelError::EINVAL, ..e })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, filter, packet, qdisc};
    use crate::tree::Tree;
    use penstock_model::Time;
    use penstock_packet::L3;

    fn key(val: u32, mask: u32, off: i64) -> Options {
        Options::new().with("mask", mask).with("val", val).with("off", off).with("offmask", 0i64)
    }
    fn sel(keys: Vec<Options>, flags: u32) -> Options {
        Options::new().with("keys", keys).with("flags", flags)
    }
    fn to(class: u32, keys: Vec<Options>) -> Options {
        Options::new().with("classid", 0x1_0000 + class).with("sel", sel(keys, 1))
    }
    fn tree(kernel: Kernel, bench: &mut Bench) -> Tree {
        let mut tree = Tree::new(device(kernel));
        let mut req = qdisc("add root handle 1: prio");
        req.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![1u8; 16]));
        tree.qdisc(&req, &mut bench.cx(0)).unwrap();
        tree
    }
    /// The band, from 1, that a packet lands in.
    fn band(tree: &mut Tree, bench: &mut Bench, change: impl FnOnce(&mut Skb)) -> usize {
        let mut p = packet(0, 100);
        change(&mut p);
        tree.enqueue(p, &mut bench.cx(0));
        let classes = tree.dump_classes(Time::ZERO);
        let at = classes.iter().position(|c| c.stats.qlen > 0).unwrap();
        tree.dequeue(&mut bench.cx(0)).unwrap();
        at + 1
    }
    fn ip(p: &mut Skb) -> &mut penstock_packet::Ipv4 {
        match &mut p.l3 {
            L3::Ipv4(h) => h,
            _ => unreachable!("test packets are IPv4"),
        }
    }

    #[test]
    fn matches_addresses_ports_and_bytes() {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let mut tree = tree(kernel, &mut bench);
            let rules = [
                to(1, vec![key(0x0a00_0009, u32::MAX, 12)]),
                to(3, vec![key(0x0011_0000, 0x00ff_0000, 8), key(2001, 0xffff, 20)]),
                // The UDP length of 66 bytes, behind what is read without writing the header out.
                to(3, vec![key(0x0042_0000, 0xffff_0000, 24), key(0x0800_0000, 0xff00_0000, 0)]),
            ];
            for rule in rules {
                tree.filter(&filter("add prio 1 protocol 800", "u32", Some(rule)), &mut bench.cx(0)).unwrap();
            }
            assert_eq!(band(&mut tree, &mut bench, |_| {}), 2);
            assert_eq!(band(&mut tree, &mut bench, |p| ip(p).src = [10, 0, 0, 9].into()), 1);
            let port = |p: &mut Skb| {
                p.l4 = penstock_packet::L4::Udp(penstock_packet::Udp { sport: 1, dport: 2001 });
            };
            assert_eq!(band(&mut tree, &mut bench, port), 3);
            let handles: Vec<u32> =
                tree.dump_filters(Handle::UNSPEC, bench.look()).unwrap().iter().map(|d| d.handle).collect();
            assert_eq!(handles, [0, 0x8000_0000, 0x8000_0800, 0x8000_0801, 0x8000_0802]);
        }
    }

    #[test]
    fn hash_tables_lead_on_by_a_byte_of_the_packet() {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let mut tree = tree(kernel, &mut bench);
            let mut add = |words: &str, options: Options| {
                tree.filter(&filter(words, "u32", Some(options)), &mut bench.cx(0))
            };
            add("add prio 1 protocol 800 handle 200000", Options::new().with("divisor", 256u32)).unwrap();
            let mut hashed = sel(vec![key(0x0a00_0000, 0xff00_0000, 16)], 0);
            hashed = hashed.with("hmask", 0xffu32).with("hoff", 16i64);
            let link = Options::new().with("link", 0x20_0000u32).with("sel", hashed);
            add("add prio 1 protocol 800", link).unwrap();
            add("add prio 1 protocol 800", to(3, vec![key(0, 0, 0)]).with("hash", 0x20_7000u32)).unwrap();
            let taken = add("del prio 1 protocol 800 handle 200000", Options::new());
            let busy = device(kernel).refusal(KernelError::EBUSY, "cls_u32: Can not delete in-use filter");
            assert_eq!(taken, Err(busy));
            assert_eq!(band(&mut tree, &mut bench, |p| ip(p).dst = [10, 0, 0, 7].into()), 3);
            assert_eq!(band(&mut tree, &mut bench, |p| ip(p).dst = [10, 0, 0, 8].into()), 2);
            assert_eq!(band(&mut tree, &mut bench, |p| ip(p).dst = [11, 0, 0, 7].into()), 2);
        }
    }

    #[test]
    fn the_next_header_is_found_by_the_packet_itself() {
        let mut bench = Bench::new();
        let mut tree = tree(Kernel::V6_12, &mut bench);
        let mut add = |words: &str, options: Options| {
            tree.filter(&filter(words, "u32", Some(options)), &mut bench.cx(0)).unwrap();
        };
        add("add prio 1 protocol 800 handle 100000", Options::new().with("divisor", 1u32));
        // offset at 0 mask 0f00 shift 6: the length of the IPv4 header.
        let offset = sel(vec![key(0, 0, 0)], 4 | 8).with("offmask", 0x0f00u32).with("offshift", 6u32);
        add("add prio 1 protocol 800", Options::new().with("link", 0x10_0000u32).with("sel", offset));
        add("add prio 1 protocol 800", to(3, vec![key(2000, 0xffff, 0)]).with("hash", 0x10_0000u32));
        assert_eq!(band(&mut tree, &mut bench, |_| {}), 3);
    }

    #[test]
    fn a_key_behind_the_end_ends_the_search() {
        let mut bench = Bench::new();
        let mut tree = tree(Kernel::V6_12, &mut bench);
        for rule in [to(1, vec![key(0, 0, 2000)]), to(3, vec![key(0, 0, 0)])] {
            tree.filter(&filter("add prio 1 protocol 800", "u32", Some(rule)), &mut bench.cx(0)).unwrap();
        }
        assert_eq!(band(&mut tree, &mut bench, |_| {}), 2);
    }

    #[test]
    fn nonsense_is_refused() {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let mut tree = tree(kernel, &mut bench);
            let mut check = |words: &str, options: Options, errno: i32, why: &str| {
                let answer = tree.filter(&filter(words, "u32", Some(options)), &mut bench.cx(0));
                assert_eq!(answer, Err(device(kernel).refusal(errno, why)), "{kernel} {words}");
            };
            let add = "add prio 1 protocol 800";
            check(add, Options::new(), 22, "cls_u32: Selector not specified");
            check(add, to(1, vec![]).with("link", 0x70_0000u32), 22, "cls_u32: Link hash table not found");
            check(
                add,
                to(1, vec![]).with("hash", 0x70_0000u32),
                22,
                "cls_u32: Specified hash table not found",
            );
            check(
                add,
                Options::new().with("divisor", 300u32),
                22,
                match kernel {
                    Kernel::V2_6_35 => "",
                    Kernel::V6_12 | Kernel::V7_2 => "cls_u32: Divisor is not a power of 2",
                },
            );
            check("del prio 1 protocol 800", Options::new(), 2, "Cannot find specified filter chain");
            assert_eq!(tree.dump_filters(Handle::UNSPEC, bench.look()), Ok(vec![]));
        }
    }
}
