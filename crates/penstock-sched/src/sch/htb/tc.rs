//! What `tc class` asks of htb: classes made, changed, deleted, shown; qdiscs put into them; filters bound to them.
//!
//! Follows: linux v6.12 net/sched/sch_htb.c from `htb_dump_class` to `htb_walk`, linux v2.6.35 likewise.

use super::class::{Class, Cost, MAXDEPTH, Mode, NUMPRIO, Round};
use super::row::NIL;
use super::{Htb, SPEC, TableKey};
use crate::charge::{Charged, Count, Lent, Refused};
use crate::cls::{BlockId, Filters};
use crate::estimator::Estimator;
use crate::node::Node;
use crate::qdisc::{Classful, Cx};
use crate::rates::{RateCfg, RateTable};
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use std::sync::Arc;

/// Least and largest quantum that is not asked for, bytes.
const QUANTUM_RANGE: (u64, u64) = (1000, 200_000);
/// The estimator that 2.6.35 gives each class: every 4 s, averaged over 16 s.
const ESTIMATOR: (i8, u8) = (2, 2);
/// `TC_LINKLAYER_ETHERNET`.
const ETHERNET: u32 = 1;

impl Htb {
    fn refuse(&self, errno: i32, sentence: &str) -> KernelError {
        self.device.refusal(errno, sentence)
    }

    /// The two rates of a class as its options give them; `None` where the kernel would not have them.
    fn costs(&mut self, options: &Options) -> Option<(Cost, Cost)> {
        let (rate, ceil) = (options.u64("rate")?, options.u64("ceil")?);
        if rate == 0 || ceil == 0 {
            return None;
        }
        let overhead = options.i64("overhead").unwrap_or(0) as u16;
        let mpu = options.u32("mpu").unwrap_or(0) as u16;
        // Where tc does not say, the kernel guesses from the rate table, which is then Ethernet's.
        let linklayer = options.u32("linklayer").filter(|&l| l & 0xf != 0).unwrap_or(ETHERNET) as u8 & 0xf;
        if !self.is_old() {
            let cost = |rate| Cost::Ns(RateCfg::new(rate, overhead, mpu, linklayer));
            return Some((cost(rate), cost(ceil)));
        }
        let mut table = |rate: u64, cell_log: &str| {
            let cell_log = options.u32(cell_log).filter(|&c| c > 0 && c < 32)? as u8;
            let key: TableKey = (u32::try_from(rate).ok()?, overhead, mpu, linklayer, cell_log);
            let made = || Arc::new(RateTable::new(key.0, key.1, key.2, key.3, key.4));
            Some(Cost::Ticks(self.tables.entry(key).or_insert_with(made).clone()))
        };
        Some((table(rate, "cell_log")?, table(ceil, "ccell_log")?))
    }

    /// Takes what the qdisc in a class lost out of this qdisc's counters: `qdisc_tree_reduce_backlog`,
    /// `qdisc_tree_decrease_qlen`.
    fn reduce(&mut self, class: u32, packets: u32, bytes: u32) {
        self.qlen -= packets;
        if self.is_old() {
            if packets > 0 && self.leaf_is_empty(class) {
                self.engine.deactivate(class);
            }
        } else {
            self.backlog = self.backlog.wrapping_sub(bytes);
            self.count_drops(packets);
            if self.leaf_is_empty(class) {
                self.engine.deactivate(class);
            }
        }
    }
    /// `qdisc_purge_queue`: empties the qdisc in a class.
    fn purge(&mut self, class: u32, cx: &mut Cx<'_>) {
        let mut told = (0, 0);
        if let Some(leaf) = &mut self.engine.classes[class].leaf {
            told = leaf.told();
            leaf.reset(cx);
        }
        self.reduce(class, told.0, told.1);
        self.naps.remove(class);
    }

    /// A leaf gets its first child.
    fn leaf_to_parent(&mut self, class: u32, cx: &mut Cx<'_>) {
        self.purge(class, cx);
        self.engine.deactivate(class);
        self.engine.forget(class);
        let above = match self.engine.classes[class].parent {
            NIL => MAXDEPTH,
            parent => self.engine.classes[parent].level,
        };
        let c = &mut self.engine.classes[class];
        c.mode = Mode::CanSend;
        c.level = above - 1;
        c.doors = c.through();
        c.leaf = None;
        c.deficit = [0; MAXDEPTH];
        c.feeds = Some(Box::new([Round::EMPTY; NUMPRIO]));
    }
    /// `htb_parent_to_leaf`: a class lost its last child.
    fn parent_to_leaf(&mut self, class: u32, cx: &mut Cx<'_>) {
        self.engine.forget(class);
        let now = self.engine.clock.read(cx.now);
        let c = &mut self.engine.classes[class];
        c.level = 0;
        c.feeds = None;
        c.deficit = [0; MAXDEPTH];
        c.leaf = Some(Node::default_pfifo(&self.device, Handle(c.classid)));
        (c.tokens, c.ctokens, c.t_c) = (c.buffer, c.cbuffer, now);
        c.mode = Mode::CanSend;
    }

    /// Sets quantum and priority of a leaf.
    fn set_leaf(&mut self, class: u32, options: &Options) {
        let asked = options.u32("quantum").unwrap_or(0);
        let c = &mut self.engine.classes[class];
        let computed = (c.rate.rate_bytes() / u64::from(self.r2q)).min(i32::MAX as u64);
        c.quantum = match asked {
            0 => computed.clamp(QUANTUM_RANGE.0, QUANTUM_RANGE.1) as i32,
            asked => asked as i32,
        };
        let unfit = match computed {
            _ if asked > 0 => None,
            small if small < QUANTUM_RANGE.0 => Some("small"),
            big if big > QUANTUM_RANGE.1 => Some("big"),
            _ => None,
        };
        let classid = c.classid;
        c.prio = (options.u32("prio").unwrap_or(0) as usize).min(NUMPRIO - 1);
        if let (Some(unfit), Kernel::V6_12 | Kernel::V7_2) = (unfit, self.device.kernel) {
            // 2.6.35 writes it into the kernel's log.
            self.warning =
                Some(format!("sch_htb: quantum of class {classid:X} is {unfit}. Consider r2q change."));
        }
    }

    fn dump_class(&self, class: u32, now: Time) -> ClassDump {
        let c = &self.engine.classes[class];
        let clock = self.engine.clock;
        let ticks = |span: i64| clock.ticks_of_span(span) as u32;
        let (overhead, mpu, linklayer, cell_logs) = match (&c.rate, &c.ceil) {
            (Cost::Ticks(r), Cost::Ticks(l)) => (r.overhead, r.mpu, r.linklayer, (r.cell_log, l.cell_log)),
            // 6.12 keeps no cell sizes.
            (Cost::Ns(r), _) => (r.overhead, r.mpu, r.linklayer, (0, 0)),
            (Cost::Ticks(r), _) => (r.overhead, r.mpu, r.linklayer, (r.cell_log, 0)),
        };
        let mut options = Options::new()
            .with("rate", c.rate.rate_bytes())
            .with("ceil", c.ceil.rate_bytes())
            .with("buffer", ticks(c.buffer))
            .with("cbuffer", ticks(c.cbuffer))
            .with("quantum", c.quantum as u32)
            .with("prio", c.prio as u32)
            .with("level", c.level as u32)
            .with("mpu", u32::from(mpu))
            .with("overhead", i64::from(overhead))
            .with("linklayer", u32::from(linklayer))
            .with("cell_log", u32::from(cell_logs.0))
            .with("ccell_log", u32::from(cell_logs.1));
        if let Some(estimator) = &c.estimator {
            options.set("estimator", estimator.dump().into());
        }
        let mut stats = Stats {
            bytes: c.bytes,
            packets: c.packets,
            drops: c.drops,
            overlimits: c.overlimits,
            rate: c.estimator.as_ref().map(|e| e.rate_at(now, c.bytes, c.packets)),
            ..Stats::default()
        };
        if let Some(leaf) = &c.leaf {
            let held = leaf.stats();
            stats.qlen = held.qlen;
            stats.backlog = if self.is_old() { 0 } else { held.backlog };
        }
        if self.is_old() {
            stats.overlimits = 0;
        }
        let tokens = |span: i64| match self.is_old() {
            // A 32-bit field takes what fits.
            true => i64::from(span as i32),
            false => clock.ticks_of_span(span).clamp(i64::from(i32::MIN), i64::from(i32::MAX)),
        };
        let xstats = Options::new()
            .with("lends", c.lends)
            .with("borrows", c.borrows)
            .with("giants", 0u32)
            .with("tokens", tokens(c.tokens))
            .with("ctokens", tokens(c.ctokens));
        ClassDump {
            kind: SPEC.id,
            classid: Handle(c.classid),
            parent: match c.parent {
                NIL => Handle::ROOT,
                parent => Handle(self.engine.classes[parent].classid),
            },
            leaf: c.leaf.as_ref().map(|leaf| leaf.handle).filter(|&handle| handle != Handle::UNSPEC),
            options,
            counters: Counters::All,
            stats,
            xstats: Some(xstats),
        }
    }

    fn find_class(&self, classid: Handle) -> Option<u32> {
        self.engine.classes.find(classid.0)
    }
}

impl Classful for Htb {
    fn find(&self, classid: Handle) -> bool {
        self.find_class(classid).is_some()
    }

    /// `htb_graft`.
    fn graft(
        &mut self,
        classid: Handle,
        new: Option<Node>,
        cx: &mut Cx<'_>,
    ) -> Result<Option<Node>, KernelError> {
        let class = self.find_class(classid).ok_or(KernelError::errno(KernelError::ENOENT))?;
        if self.engine.classes[class].level > 0 {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        let new = new.unwrap_or_else(|| Node::default_pfifo(&self.device, classid));
        let c = &mut self.engine.classes[class];
        c.doors = c.through();
        let mut old = c.leaf.replace(new);
        let from = cx.drops.len();
        if let Some(old) = &mut old {
            old.reset(cx);
        }
        let (packets, bytes) = Htb::lost_since(from, cx);
        self.naps.remove(class);
        self.reduce(class, packets, bytes);
        Ok(old)
    }
    fn leaf(&self, classid: Handle) -> Option<&Node> {
        self.engine.classes[self.find_class(classid)?].leaf.as_ref()
    }
    fn leaf_mut(&mut self, classid: Handle) -> Option<&mut Node> {
        let class = self.find_class(classid)?;
        self.engine.classes[class].leaf.as_mut()
    }
    fn children(&self, visit: &mut dyn FnMut(Handle, &Node)) {
        for class in self.engine.classes.walk() {
            let c = &self.engine.classes[class];
            if let Some(leaf) = &c.leaf {
                visit(Handle(c.classid), leaf);
            }
        }
    }
    fn children_mut(&mut self, visit: &mut dyn FnMut(Handle, &mut Node)) {
        let classes: Vec<u32> = self.engine.classes.walk().collect();
        for class in classes {
            let c = &mut self.engine.classes[class];
            if let Some(leaf) = &mut c.leaf {
                visit(Handle(c.classid), leaf);
            }
        }
    }
    fn reduced(&mut self, classid: Handle, packets: u32, bytes: u32) {
        if let Some(class) = self.find_class(classid) {
            self.reduce(class, packets, bytes);
        }
    }

    /// `htb_change_class`. A parent that does not exist is not a parent: the class stands at the root.
    fn change_class(
        &mut self,
        parent: Handle,
        classid: Handle,
        options: Option<&Options>,
        cx: &mut Cx<'_>,
    ) -> Result<Handle, KernelError> {
        let einval = || KernelError::errno(KernelError::EINVAL);
        self.warning = None;
        let options = options.ok_or_else(einval)?;
        let parent = if parent == Handle::ROOT { None } else { self.find_class(parent) };
        let existing = self.find_class(classid);
        if existing.is_none() {
            if classid == Handle::UNSPEC || classid.major() != self.handle.major() {
                // The rates are looked at first, but the errno is the same.
                return Err(einval());
            }
            let above = parent.map_or(NIL, |p| self.engine.classes[p].parent);
            if above != NIL && self.engine.classes[above].level < 2 {
                self.costs(options).ok_or_else(einval)?;
                return Err(self.refuse(KernelError::EINVAL, "sch_htb: tree is too deep"));
            }
        }
        let (rate, ceil) = self.costs(options).ok_or_else(einval)?;
        let clock = self.engine.clock;
        let buffer = clock.span_of_ticks(options.u32("buffer").unwrap_or(0));
        let cbuffer = clock.span_of_ticks(options.u32("cbuffer").unwrap_or(0));
        let class = match existing {
            Some(class) => class,
            None => {
                if let Some(parent) = parent.filter(|&p| self.engine.classes[p].level == 0) {
                    self.leaf_to_parent(parent, cx);
                }
                let leaf = Node::default_pfifo(&self.device, classid);
                let block = self.filters.add_block();
                let cost = (rate.clone(), ceil.clone());
                let mut class = Class::new(classid.0, parent.unwrap_or(NIL), cost, leaf, block);
                (class.tokens, class.ctokens, class.t_c) = (buffer, cbuffer, clock.read(cx.now));
                if self.is_old() {
                    // 6.12 estimates where it is asked to.
                    let made = Estimator::new(self.device.kernel, ESTIMATOR, cx.now, 0, 0);
                    class.estimator = made.ok().map(Box::new);
                }
                if let Some(parent) = parent {
                    self.engine.classes[parent].children += 1;
                }
                self.engine.insert(class)
            }
        };
        let c = &mut self.engine.classes[class];
        (c.rate, c.ceil) = (rate, ceil);
        (c.buffer, c.cbuffer) = (buffer, cbuffer);
        if c.level == 0 {
            self.set_leaf(class, options);
        }
        self.engine.classes.grow();
        Ok(classid)
    }

    fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }
    fn estimate(&mut self, classid: Handle, spec: (i8, u8), cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let class = self.find_class(classid).ok_or(KernelError::errno(KernelError::ENOENT))?;
        let kernel = self.device.kernel;
        let c = &mut self.engine.classes[class];
        let mut new = Estimator::new(kernel, spec, cx.now, c.bytes, c.packets)?;
        if let Some(old) = &mut c.estimator {
            old.advance(cx.now, c.bytes, c.packets);
            new = new.continuing(old);
        }
        c.estimator = Some(Box::new(new));
        Ok(())
    }

    /// `htb_delete`.
    fn delete_class(&mut self, classid: Handle, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let class = self.find_class(classid).ok_or(KernelError::errno(KernelError::ENOENT))?;
        let c = &self.engine.classes[class];
        if c.children > 0 || c.filter_cnt > 0 {
            return Err(self.refuse(KernelError::EBUSY, "HTB class in use"));
        }
        let parent = c.parent;
        let last_child = parent != NIL && self.engine.classes[parent].children == 1;
        self.purge(class, cx);
        if parent != NIL {
            self.engine.classes[parent].children -= 1;
        }
        self.engine.deactivate(class);
        self.engine.forget(class);
        let gone = self.engine.classes.remove(class);
        self.engine.gone_overlimits = self.engine.gone_overlimits.wrapping_add(gone.overlimits);
        if parent != NIL {
            let c = &mut self.engine.classes[parent];
            c.gone.add(gone.through().sent());
            c.gone.add(gone.gone);
            c.gone_borrows = c.gone_borrows.wrapping_add(gone.borrows);
        }
        if last_child {
            self.parent_to_leaf(parent, cx);
        }
        let mut filters = std::mem::take(&mut self.filters);
        filters.remove_block(gone.block, self);
        self.filters = filters;
        Ok(())
    }

    fn charged(&self) -> Vec<Charged> {
        let of = |class: u32| {
            let c = &self.engine.classes[class];
            let door = c.through();
            Charged {
                classid: Handle(c.classid),
                above: (c.parent != NIL).then(|| Handle(self.engine.classes[c.parent].classid)),
                shown: Count { packets: c.packets, bytes: c.bytes },
                own: if self.is_old() { door.taken } else { door.sent() },
                sent: door.sent(),
                gone: c.gone,
                before: Count::default(),
                lent: Some(Lent {
                    sent: door.left.packets,
                    lends: c.lends,
                    borrows: c.borrows,
                    gone: c.gone_borrows,
                }),
                drops: Refused { shown: c.drops, own: door.refused },
            }
        };
        self.engine.classes.walk().map(of).collect()
    }
    /// 2.6.35 counts another thing at the qdisc, and none at classes.
    fn overlimits(&self) -> Option<(u32, u32)> {
        let (engine, old) = (&self.engine, self.is_old());
        let all = engine.classes.walk().map(|class| engine.classes[class].overlimits);
        let all = all.fold(engine.gone_overlimits, u32::wrapping_add);
        (!old).then_some((engine.overlimits, all))
    }
    fn walk(&self, now: Time, visit: &mut dyn FnMut(ClassDump)) {
        for class in self.engine.classes.walk() {
            visit(self.dump_class(class, now));
        }
    }

    fn filters(&self) -> Option<&Filters> {
        Some(&self.filters)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Some(&mut self.filters)
    }
    fn block(&self, classid: Handle) -> Option<BlockId> {
        if classid == Handle::UNSPEC {
            return Some(Filters::ROOT);
        }
        self.find_class(classid).map(|class| self.engine.classes[class].block)
    }
    fn bind(&mut self, _: Handle, classid: Handle) -> u32 {
        match self.find_class(classid) {
            Some(class) => {
                self.engine.classes[class].filter_cnt += 1;
                class + 1
            }
            None => 0,
        }
    }
    fn unbind(&mut self, class: u32) {
        let c = &mut self.engine.classes[class - 1];
        c.filter_cnt = c.filter_cnt.saturating_sub(1);
    }
}
