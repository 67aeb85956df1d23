//! What `tc class` asks of cbq: classes made, changed, deleted, shown; qdiscs put into them; filters bound to them.
//!
//! Follows: linux v6.2 and v2.6.35 net/sched/sch_cbq.c from `cbq_adjust_levels` to `cbq_walk`.

use super::class::{BOUNDED, CbqClass, ISOLATED, Rate};
use super::{Cbq, LINK, MAXPRIO, NIL, PASTPERFECT, SPEC};
use crate::charge::{Charged, Count, Refused};
use crate::cls::{BlockId, Filters};
use crate::estimator::Estimator;
use crate::node::Node;
use crate::qdisc::{Classful, Cx};
use crate::sch::hashed::Class;
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, KernelError, Options, Stats, Time};

/// ENOSR: out of streams.
const ENOSR: i32 = 63;

impl Cbq {
    /// Makes a class with the default qdisc in it.
    pub(super) fn insert(&mut self, classid: Handle, own: CbqClass, block: Option<BlockId>) -> u32 {
        let leaf = Node::default_pfifo(&self.device, classid);
        self.classes.insert(Class::new(classid, leaf, block, own))
    }

    fn einval<T>(&self, sentence: &str) -> Result<T, KernelError> {
        Err(self.device.refusal(KernelError::EINVAL, sentence))
    }
    fn known(&self, classid: Handle) -> Result<u32, KernelError> {
        self.classes.find(classid).ok_or(KernelError::errno(KernelError::ENOENT))
    }

    /// `cbq_set_wrr`, of a class that is not counted in its priority.
    fn set_wrr(&mut self, class: u32, wrr: &Options) {
        self.classes[class].own.set_wrr(wrr);
        self.add_prio(class);
    }

    /// `cbq_sync_defmap`: `split` sends a class what it has in `defmap` no longer, and finds another for what nobody takes:
    /// the first of the lowest level.
    fn sync_defmap(&mut self, class: u32, split: u32, defmap: u32) {
        let mut defaults = self.classes[split].own.defaults;
        for (i, default) in defaults.iter_mut().enumerate() {
            if *default == class && defmap & 1 << i == 0 {
                *default = NIL;
            }
        }
        for (i, default) in defaults.iter_mut().enumerate().filter(|(_, default)| **default == NIL) {
            let mut level = self.classes[split].own.level;
            for candidate in self.classes.walk() {
                let own = &self.classes[candidate].own;
                if own.split == split && own.level < level && own.defmap & 1 << i != 0 {
                    (*default, level) = (candidate, own.level);
                }
            }
        }
        self.classes[split].own.defaults = defaults;
    }

    /// `cbq_change_defmap`.
    fn set_split(&mut self, class: u32, fopt: &Options) {
        let number = |name: &str| fopt.u32(name).unwrap_or(0);
        let (def, mask) = (number("defmap"), number("defchange"));
        let before = self.classes[class].own.split;
        let wanted = match number("split") {
            0 if before == NIL => return,
            0 => self.classes[before].classid,
            id => Handle(id),
        };
        let mut split = before;
        if split == NIL || self.classes[split].classid != wanted {
            split = self.classes[class].own.parent;
            while split != NIL && self.classes[split].classid != wanted {
                split = self.classes[split].own.parent;
            }
        }
        if split == NIL {
            return;
        }
        let own = &mut self.classes[class].own;
        if before == split {
            own.defmap = (own.defmap & !mask) | (def & mask);
        } else {
            own.defmap = 0;
            if before != NIL {
                self.sync_defmap(class, before, 0);
            }
            let own = &mut self.classes[class].own;
            (own.split, own.defmap) = (split, def & mask);
        }
        self.sync_defmap(class, split, self.classes[class].own.defmap);
    }

    /// `cbq_adjust_levels` after a class came in below `class`: levels only rise.
    fn raise_levels(&mut self, mut class: u32) {
        let mut least = 1;
        while class != NIL && self.classes[class].own.level < least {
            self.classes[class].own.level = least;
            least += 1;
            class = self.classes[class].own.parent;
        }
    }
    /// `cbq_adjust_levels` after one below `class` went: one that had children stays on level 1.
    fn lower_levels(&mut self, mut class: u32) {
        while class != NIL {
            let children = self.classes.iter().filter(|(_, c)| c.own.parent == class);
            let level = children.map(|(_, c)| c.own.level).max().unwrap_or(0) + 1;
            self.classes[class].own.level = level;
            class = self.classes[class].own.parent;
        }
    }

    /// The id asked for, or one the kernel makes.
    fn choose_id(&mut self, asked: Handle) -> Result<Handle, KernelError> {
        if asked != Handle::UNSPEC {
            if asked.qdisc() != self.handle {
                return self.einval("Specified class not found");
            }
            return Ok(asked);
        }
        for _ in 0..0x8000 {
            self.generated = if self.generated >= 0x7fff { 1 } else { self.generated + 1 };
            let id = Handle::new(self.handle.major(), 0x8000 | self.generated);
            if self.classes.find(id).is_none() {
                return Ok(id);
            }
        }
        Err(self.device.refusal(ENOSR, "Unable to generate classid"))
    }

    /// The change of a class that is there.
    fn change_existing(&mut self, class: u32, parent: Handle, options: &Options) -> Result<(), KernelError> {
        if parent != Handle::UNSPEC {
            match self.classes[class].own.parent {
                NIL if parent != Handle::ROOT => return self.einval("Parent must be root"),
                above if above != NIL && self.classes[above].classid != parent => {
                    return self.einval("Invalid parent id");
                }
                _ => {}
            }
        }
        let rate = Rate::parse(options, &self.device)?;
        self.deactivate(class);
        let own = &mut self.classes[class].own;
        if let Some(rate) = rate {
            own.rate = rate;
        }
        let shared = own.share;
        own.set_lss(options.nested("lss"), self.clock);
        let share = std::mem::replace(&mut own.share, shared);
        if share != shared {
            self.leaves_share(class);
            self.classes[class].own.share = share;
            if share != NIL {
                self.classes[class].own.before = self.total(class);
            }
        }
        let own = &mut self.classes[class].own;
        if let Some(wrr) = options.nested("wrr") {
            let (prio, weight) = (own.priority, own.weight);
            self.remove_prio(prio, weight);
            self.set_wrr(class, wrr);
        }
        if let Some(ovl) = options.nested("ovl") {
            self.set_overlimit(class, ovl);
        }
        if let Some(fopt) = options.nested("fopt") {
            self.set_split(class, fopt);
        }
        if self.classes[class].leaf.qlen() > 0 {
            self.activate(class);
        }
        Ok(())
    }

    /// A new class.
    fn add_class(
        &mut self,
        parent: Handle,
        classid: Handle,
        options: &Options,
    ) -> Result<Handle, KernelError> {
        let (Some(lss), Some(wrr), true) =
            (options.nested("lss"), options.nested("wrr"), options.has("rate"))
        else {
            return self
                .einval("One of the following attributes MUST be specified: WRR, rate or link sharing");
        };
        let rate = Rate::parse(options, &self.device)?.expect("a rate was given");
        let classid = self.choose_id(classid)?;
        let parent = match parent {
            Handle::UNSPEC => LINK,
            parent => match self.classes.find(parent) {
                Some(parent) => parent,
                None => return self.einval("Failed to find parentid"),
            },
        };
        let own = CbqClass::below(parent, self.classes[parent].own.allot, rate);
        let block = self.filters.add_block();
        let class = self.insert(classid, own, Some(block));
        self.raise_levels(parent);
        self.classes[class].own.set_lss(Some(lss), self.clock);
        self.set_wrr(class, wrr);
        let link = &self.classes[LINK].own;
        let (ewma, maxidle, avpkt) = (link.ewma_log, link.maxidle, link.avpkt);
        let own = &mut self.classes[class].own;
        if own.ewma_log == 0 {
            own.ewma_log = ewma;
        }
        if own.maxidle == 0 {
            own.maxidle = maxidle;
        }
        if own.avpkt == 0 {
            own.avpkt = avpkt;
        }
        if let Some(ovl) = options.nested("ovl") {
            self.set_overlimit(class, ovl);
        }
        if let Some(fopt) = options.nested("fopt") {
            self.set_split(class, fopt);
        }
        Ok(classid)
    }

    /// Takes a class's packets out of the books after its qdisc has been emptied since entry `from` of the ledger.
    fn emptied(&mut self, class: u32, from: usize, cx: &Cx<'_>) {
        let (packets, bytes) = Cbq::lost_since(from, cx);
        self.naps.remove(class);
        self.reduce(packets, bytes);
        self.deactivate(class);
    }

    /// `cbq_dump_attr`.
    pub(super) fn dump_options(&self, class: u32) -> Options {
        let own = &self.classes[class].own;
        let flags = (u32::from(own.borrow == NIL) * BOUNDED) | (u32::from(own.share == NIL) * ISOLATED);
        let lss = Options::new()
            .with("flags", flags)
            .with("ewma", own.ewma_log)
            .with("level", own.level)
            .with("avpkt", own.avpkt)
            .with("maxidle", self.clock.ticks_for_tc(own.maxidle as u32))
            .with("minidle", -own.minidle as u32)
            .with("offtime", self.clock.ticks_for_tc(own.offtime as u32));
        let wrr = Options::new()
            .with("allot", own.allot as u32)
            .with("priority", own.priority as u32 + 1)
            .with("cpriority", own.cpriority as u32 + 1)
            .with("weight", own.weight as u32);
        let mut options = own.rate.dump().with("lss", lss).with("wrr", wrr);
        if self.is_old() {
            // The strategy is always said to be the classic one.
            let ovl = Options::new()
                .with("strategy", 0u32)
                .with("priority2", own.priority2 as u32 + 1)
                .with("penalty", own.penalty);
            options = options.with("ovl", ovl);
        }
        if own.split != NIL || own.defmap != 0 {
            let split = if own.split == NIL { 0 } else { self.classes[own.split].classid.0 };
            options = options.with("fopt", Options::new().with("split", split).with("defmap", own.defmap));
        }
        options
    }

    /// `cbq_dump_class_stats`: how long until a class is under its limit, ticks.
    fn undertime(&self, class: u32) -> i64 {
        let undertime = self.classes[class].own.undertime;
        if undertime == PASTPERFECT { 0 } else { undertime - self.now }
    }

    fn dump_class(&self, number: u32, now: Time) -> ClassDump {
        let class = &self.classes[number];
        let own = &class.own;
        let undertime = self.undertime(number);
        let leaf = class.leaf.stats();
        let stats = Stats {
            bytes: own.bytes,
            packets: own.packets,
            drops: own.drops,
            overlimits: own.overlimits,
            qlen: leaf.qlen,
            backlog: if self.is_old() { 0 } else { leaf.backlog },
            rate: class.estimator.as_ref().map(|e| e.rate_at(now, own.bytes, own.packets)),
            ..Stats::default()
        };
        ClassDump {
            kind: SPEC.id,
            classid: class.classid,
            parent: if own.parent == NIL { Handle::ROOT } else { self.classes[own.parent].classid },
            leaf: Some(class.leaf.handle).filter(|&handle| handle != Handle::UNSPEC),
            options: self.dump_options(number),
            counters: Counters::All,
            stats,
            xstats: Some(own.xstats(undertime)),
        }
    }
}

impl Classful for Cbq {
    fn find(&self, classid: Handle) -> bool {
        self.classes.find(classid).is_some()
    }
    /// `cbq_graft`.
    fn graft(
        &mut self,
        classid: Handle,
        new: Option<Node>,
        cx: &mut Cx<'_>,
    ) -> Result<Option<Node>, KernelError> {
        let class = self.known(classid)?;
        let new = new.unwrap_or_else(|| Node::default_pfifo(&self.device, classid).unlisted());
        self.classes[class].own.doors = self.through(class);
        let mut old = std::mem::replace(&mut self.classes[class].leaf, new);
        let from = cx.drops.len();
        old.reset(cx);
        self.emptied(class, from, cx);
        Ok(Some(old))
    }
    fn leaf(&self, classid: Handle) -> Option<&Node> {
        Some(&self.classes[self.classes.find(classid)?].leaf)
    }
    fn leaf_mut(&mut self, classid: Handle) -> Option<&mut Node> {
        let class = self.classes.find(classid)?;
        Some(&mut self.classes[class].leaf)
    }
    fn children(&self, visit: &mut dyn FnMut(Handle, &Node)) {
        self.classes.leaves(visit);
    }
    fn children_mut(&mut self, visit: &mut dyn FnMut(Handle, &mut Node)) {
        self.classes.leaves_mut(visit);
    }
    /// `cbq_qlen_notify`.
    fn reduced(&mut self, classid: Handle, packets: u32, bytes: u32) {
        let Some(class) = self.classes.find(classid) else { return };
        self.reduce(packets, bytes);
        if self.classes[class].leaf.qlen() == 0 {
            self.deactivate(class);
        }
    }
    /// `cbq_change_class`.
    fn change_class(
        &mut self,
        parent: Handle,
        classid: Handle,
        options: Option<&Options>,
        _: &mut Cx<'_>,
    ) -> Result<Handle, KernelError> {
        let Some(options) = options else {
            return self.einval("CBQ options are required for this operation");
        };
        let priority = options.nested("wrr").and_then(|wrr| wrr.u32("priority")).unwrap_or(0);
        if priority > MAXPRIO as u32 {
            // 2.6.35 writes into memory that is not its own.
            return self.einval("priority is bigger than TC_CBQ_MAXPRIO");
        }
        if !self.is_old() && options.has("ovl") {
            let sentence =
                "Neither overlimit strategy nor policing attributes can be used for changing class params";
            return Err(self.device.refusal(KernelError::EOPNOTSUPP, sentence));
        }
        match self.classes.find(classid).filter(|_| classid != Handle::UNSPEC) {
            Some(class) => {
                self.change_existing(class, parent, options)?;
                Ok(classid)
            }
            None if parent == Handle::ROOT => Err(KernelError::errno(KernelError::EINVAL)),
            None => self.add_class(parent, classid, options),
        }
    }
    fn estimate(&mut self, classid: Handle, spec: (i8, u8), cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let class = self.known(classid)?;
        let kernel = self.device.kernel;
        let class = &mut self.classes[class];
        let (bytes, packets) = (class.own.bytes, class.own.packets);
        let mut new = Estimator::new(kernel, spec, cx.now, bytes, packets)?;
        if let Some(old) = &mut class.estimator {
            old.advance(cx.now, bytes, packets);
            new = new.continuing(old);
        }
        class.estimator = Some(Box::new(new));
        Ok(())
    }
    /// `cbq_delete`.
    fn delete_class(&mut self, classid: Handle, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let class = self.known(classid)?;
        let has_children = self.classes.iter().any(|(_, c)| c.own.parent == class);
        if self.classes[class].bound > 0 || has_children || class == LINK {
            return Err(KernelError::errno(KernelError::EBUSY));
        }
        let from = cx.drops.len();
        self.classes[class].leaf.reset(cx);
        self.emptied(class, from, cx);
        if self.tx_borrowed == class {
            self.tx_borrowed = self.tx_class;
        }
        if self.tx_class == class {
            self.forgets_sent();
        }
        self.leaves_share(class);
        let gone = self.classes.remove(class);
        self.lower_levels(gone.own.parent);
        if gone.own.split != NIL {
            self.sync_defmap(class, gone.own.split, 0);
        }
        self.remove_prio(gone.own.priority, gone.own.weight);
        if let Some(block) = gone.block {
            let mut filters = std::mem::take(&mut self.filters);
            filters.remove_block(block, self);
            self.filters = filters;
        }
        Ok(())
    }
    fn charged(&self) -> Vec<Charged> {
        let of = |(class, c): (u32, &Class<CbqClass>)| {
            let sent = self.sent(class);
            Charged {
                classid: c.classid,
                above: (c.own.share != NIL).then(|| self.classes[c.own.share].classid),
                shown: Count { packets: c.own.packets, bytes: c.own.bytes },
                own: sent,
                sent,
                gone: c.own.gone,
                before: c.own.before,
                lent: None,
                drops: Refused { shown: c.own.drops, own: self.through(class).refused },
            }
        };
        self.classes.iter().map(of).collect()
    }
    fn walk(&self, now: Time, visit: &mut dyn FnMut(ClassDump)) {
        for class in self.classes.walk() {
            visit(self.dump_class(class, now));
        }
    }
    /// `cbq_dump_class_stats` computes `undertime` in the class's own counters, and `cbq_dump_stats` shows the link's as it finds it.
    fn shown(&self) {
        self.link_undertime.set(self.undertime(LINK));
    }

    fn filters(&self) -> Option<&Filters> {
        Some(&self.filters)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Some(&mut self.filters)
    }
    fn block(&self, classid: Handle) -> Option<BlockId> {
        self.classes.block(classid)
    }
    /// `cbq_bind_filter`: a filter of a class names classes of lower levels only.
    fn bind(&mut self, parent: Handle, classid: Handle) -> u32 {
        let above = if parent.minor() == 0 { None } else { self.classes.find(parent) };
        let Some(class) = self.classes.find(classid) else { return 0 };
        let level = self.classes[class].own.level;
        if above.is_some_and(|above| self.classes[above].own.level <= level) {
            return 0;
        }
        self.classes[class].bound += 1;
        class + 1
    }
    fn unbind(&mut self, class: u32) {
        self.classes.unbind(class);
    }
}
