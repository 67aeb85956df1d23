//! Who may send: eligible times and deadlines of the real-time curves, virtual times and fit times of the others.
//!
//! Follows: linux v6.12 net/sched/sch_hfsc.c `init_ed` to `update_vf`; linux v2.6.35 keeps the virtual times of a backlog period from 0 on
//! and carries what went before in offsets.

use super::curve::{Curve, Running};
use super::order::{NIL, Order};
use super::{Hfsc, ROOT};
use crate::sch::hashed::Hashed;
use penstock_model::psched::TICK_NS;
use penstock_model::{Kernel, Time};

/// What hfsc has of a class.
pub struct HfscClass {
    // Parameters
    /// `None` for the qdisc's own class.
    pub(super) parent: Option<u32>,
    pub(super) level: u32,
    pub(super) rt: Option<Curve>,
    pub(super) ls: Option<Curve>,
    pub(super) ul: Option<Curve>,
    // Variables, as the kernel calls them without `cl_`
    /// Bytes sent, and of these by the real-time curve.
    pub(super) total: u64,
    pub(super) cumul: u64,
    vt: u64,
    f: u64,
    myf: u64,
    pub(super) cfmin: u64,
    cvtmin: u64,
    vtadj: u64,
    cvtoff: u64,
    /// 2.6.35: the greatest virtual time of the present period, the class's own offset, and the parent's when it was made.
    cvtmax: u64,
    vtoff: u64,
    pub(super) pcvtoff: u64,
    deadline: Running,
    eligible: Running,
    virtual_time: Running,
    ulimit: Running,
    pub(super) vtperiod: u32,
    parentperiod: u32,
    /// Children with packets below; of a leaf 1 when it has some itself.
    nactive: u32,
    /// Its active children by virtual time, with their fit times.
    children: u32,
    /// Whether its node counts as one that stands in the tree of the eligible (`RB_EMPTY_NODE`). A reset forgets the tree but not this.
    in_el: bool,
    // Counters
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) drops: u32,
}

/// The trees of a qdisc.
pub(super) struct Trees {
    /// Leaves with packets and a real-time curve, by eligible time, with their deadlines.
    eligible: Order,
    eligible_root: u32,
    /// Active classes among their siblings.
    siblings: Order,
}

impl Default for Trees {
    fn default() -> Trees {
        Trees { eligible: Order::default(), eligible_root: NIL, siblings: Order::default() }
    }
}

impl Trees {
    /// Makes the places of a new class.
    pub(super) fn make(&mut self, class: u32) {
        self.eligible.make(class);
        self.siblings.make(class);
    }
    /// The eligible time of the first.
    pub(super) fn first_eligible(&self) -> Option<u64> {
        self.eligible.first_time(self.eligible_root)
    }
    fn clear(&mut self) {
        self.eligible.clear();
        self.siblings.clear();
        self.eligible_root = NIL;
    }
}

/// `psched_get_time`: ticks of 64 ns.
pub(super) fn ticks(now: Time) -> u64 {
    now.as_ns() as u64 / TICK_NS
}

impl HfscClass {
    /// Below `parent`, with nothing sent.
    pub(super) fn new(parent: Option<u32>) -> HfscClass {
        HfscClass {
            parent,
            level: 0,
            rt: None,
            ls: None,
            ul: None,
            total: 0,
            cumul: 0,
            vt: 0,
            f: 0,
            myf: 0,
            cfmin: 0,
            cvtmin: 0,
            vtadj: 0,
            cvtoff: 0,
            cvtmax: 0,
            vtoff: 0,
            pcvtoff: 0,
            deadline: Running::default(),
            eligible: Running::default(),
            virtual_time: Running::default(),
            ulimit: Running::default(),
            vtperiod: 0,
            parentperiod: 0,
            nactive: 0,
            children: NIL,
            in_el: false,
            bytes: 0,
            packets: 0,
            drops: 0,
        }
    }
    /// `hfsc_change_rsc`, `hfsc_change_fsc`, `hfsc_change_usc`, as far as each is given.
    pub(super) fn set_curves(&mut self, [rt, ls, ul]: [Option<Curve>; 3], now: u64) {
        if let Some(curve) = rt {
            self.rt = Some(curve);
            self.deadline = Running::start(&curve, now, self.cumul);
            self.eligible = self.deadline.eligible(&curve);
        }
        if let Some(curve) = ls {
            self.ls = Some(curve);
            self.virtual_time = Running::start(&curve, self.vt, self.total);
        }
        if let Some(curve) = ul {
            self.ul = Some(curve);
            self.ulimit = Running::start(&curve, now, self.total);
        }
    }
    /// 2.6.35: what its children's virtual times have behind them.
    pub(super) fn offset(&self) -> u64 {
        self.cvtoff
    }
    /// `cl_in_el_or_vttree`.
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.ls.is_some() && self.nactive > 0 || self.rt.is_some() && self.in_el
    }
    /// `hfsc_reset_class`, without the qdisc in it.
    fn reset(&mut self, old: bool) {
        (self.total, self.cumul, self.vt, self.vtadj, self.cvtmin, self.cvtoff) = (0, 0, 0, 0, 0, 0);
        (self.vtperiod, self.parentperiod, self.f, self.myf, self.cfmin, self.nactive) = (0, 0, 0, 0, 0, 0);
        (self.cvtmax, self.vtoff, self.pcvtoff) = (0, 0, 0);
        self.children = NIL;
        //= linux v6.12 sch_hfsc.c hfsc_reset_qdisc: the tree is forgotten, the nodes are not cleared.
        self.in_el &= !old;
        if let Some(curve) = self.rt {
            self.deadline = Running::start(&curve, 0, 0);
        }
        if let Some(curve) = self.ls {
            self.virtual_time = Running::start(&curve, 0, 0);
        }
        if let Some(curve) = self.ul {
            self.ulimit = Running::start(&curve, 0, 0);
        }
    }
}

impl Hashed<Hfsc> {
    fn is_old(&self) -> bool {
        self.device.kernel == Kernel::V2_6_35
    }
    #[inline]
    fn of(&mut self, class: u32) -> &mut HfscClass {
        &mut self.classes[class].own
    }

    /// `init_ed`: a leaf with a real-time curve has packets again, the first of `next_len` bytes.
    pub(super) fn init_ed(&mut self, class: u32, next_len: u32, now: u64) {
        let own = self.of(class);
        let Some(curve) = own.rt else { return };
        own.deadline.lessen(&curve, now, own.cumul);
        own.eligible = own.deadline.eligible(&curve);
        self.update_ed(class, next_len);
    }
    /// `update_ed`.
    pub(super) fn update_ed(&mut self, class: u32, next_len: u32) {
        self.eltree_remove(class);
        let own = &mut self.classes[class].own;
        let e = own.eligible.tick_of(own.cumul);
        let d = own.deadline.tick_of(own.cumul.wrapping_add(u64::from(next_len)));
        own.in_el = true;
        let trees = &mut self.own.trees;
        trees.eligible.insert(&mut trees.eligible_root, class, e, d);
    }
    /// `update_d`.
    pub(super) fn update_d(&mut self, class: u32, next_len: u32) {
        let own = &self.classes[class].own;
        let d = own.deadline.tick_of(own.cumul.wrapping_add(u64::from(next_len)));
        self.own.trees.eligible.set_value(class, d);
    }
    /// `eltree_remove`.
    pub(super) fn eltree_remove(&mut self, class: u32) {
        if std::mem::take(&mut self.classes[class].own.in_el) {
            let trees = &mut self.own.trees;
            trees.eligible.remove(&mut trees.eligible_root, class);
        }
    }
    /// `eltree_get_mindl`.
    #[inline]
    pub(super) fn mindl(&self, now: u64) -> Option<u32> {
        self.own.trees.eligible.least_up_to(self.own.trees.eligible_root, now)
    }
    /// `vttree_get_minvt`.
    #[inline]
    pub(super) fn minvt(&mut self, now: u64) -> Option<u32> {
        let mut class = ROOT;
        if self.classes[class].own.cfmin > now {
            return None;
        }
        while self.classes[class].own.level > 0 {
            let parent = class;
            class = self.own.trees.siblings.first_within(self.classes[parent].own.children, now)?;
            let vt = self.classes[class].own.vt;
            let above = self.of(parent);
            above.cvtmin = above.cvtmin.max(vt);
        }
        Some(class)
    }

    /// When [`Hashed::minvt`] may find another class than now, by fit times alone: the least of those to come on its way down.
    pub(super) fn fits_next(&self, now: u64) -> Option<u64> {
        let (mut class, mut next) = (ROOT, None::<u64>);
        while self.classes[class].own.level > 0 {
            let children = self.classes[class].own.children;
            if let Some(f) = self.own.trees.siblings.least_above(children, now) {
                next = Some(next.map_or(f, |n| n.min(f)));
            }
            let Some(within) = self.own.trees.siblings.first_within(children, now) else { break };
            class = within;
        }
        next
    }

    /// Puts a class among its active siblings.
    fn insert_sibling(&mut self, parent: u32, class: u32) {
        let (vt, f) = (self.classes[class].own.vt, self.classes[class].own.f);
        let root = &mut self.classes[parent].own.children;
        self.own.trees.siblings.insert(root, class, vt, f);
    }
    fn remove_sibling(&mut self, parent: u32, class: u32) {
        self.own.trees.siblings.remove(&mut self.classes[parent].own.children, class);
    }
    /// Takes a class out of all trees.
    pub(super) fn part(&mut self, class: u32) {
        self.eltree_remove(class);
        if let Some(parent) = self.classes[class].own.parent {
            self.remove_sibling(parent, class);
            self.update_cfmin(parent);
        }
    }
    /// `update_cfmin`.
    fn update_cfmin(&mut self, parent: u32) {
        let children = self.classes[parent].own.children;
        self.of(parent).cfmin = self.own.trees.siblings.least(children).unwrap_or(0);
    }
    /// The fit time, where it is another than before; whether it is.
    fn update_f(&mut self, class: u32) -> bool {
        let own = self.of(class);
        let f = own.myf.max(own.cfmin);
        let changed = f != own.f;
        if changed {
            own.f = f;
            self.own.trees.siblings.set_value(class, f);
        }
        changed
    }

    /// `init_vf`: a leaf has packets again; those above it that had none become active too. How often the clock is read for it: once
    /// where one of these has an upper limit.
    pub(super) fn init_vf(&mut self, class: u32, now: u64) -> u64 {
        let (mut class, mut go_active, old, mut read) = (class, true, self.is_old(), false);
        while let Some(parent) = self.classes[class].own.parent {
            if go_active {
                let own = self.of(class);
                go_active = own.nactive == 0;
                own.nactive += 1;
            }
            if go_active {
                self.go_active(parent, class, now, old);
                read |= self.classes[class].own.ul.is_some();
            }
            let changed = self.update_f(class);
            if changed || !old {
                self.update_cfmin(parent);
            }
            class = parent;
        }
        u64::from(read)
    }
    fn go_active(&mut self, parent: u32, class: u32, now: u64, old: bool) {
        let last = self.own.trees.siblings.last_time(self.classes[parent].own.children);
        let above = self.of(parent);
        let vt = match last {
            // Between the least and the greatest of those that are active.
            Some(last) if above.cvtmin != 0 => Some(above.cvtmin.wrapping_add(last) / 2),
            Some(last) => Some(last),
            None if old => {
                above.cvtoff = above.cvtoff.wrapping_add(above.cvtmax);
                (above.cvtmax, above.cvtmin) = (0, 0);
                None
            }
            None => {
                above.cvtmin = 0;
                None
            }
        };
        let (cvtoff, period, nactive) = (above.cvtoff, above.vtperiod, above.nactive);
        let own = self.of(class);
        match vt {
            Some(vt) if period != own.parentperiod || vt > own.vt => own.vt = vt,
            Some(_) => {}
            None if old => own.vt = 0,
            None => own.vt = cvtoff,
        }
        let curve = own.ls.unwrap_or_default();
        if old {
            own.vtoff = cvtoff.wrapping_sub(own.pcvtoff);
            let vt = own.vt.wrapping_add(own.vtoff);
            own.virtual_time.lessen(&curve, vt, own.total);
            if own.virtual_time.x == vt {
                own.virtual_time.x = own.virtual_time.x.wrapping_sub(own.vtoff);
                own.vtoff = 0;
            }
        } else {
            own.virtual_time.lessen(&curve, own.vt, own.total);
        }
        own.vtadj = 0;
        own.vtperiod = own.vtperiod.wrapping_add(1);
        own.parentperiod = period.wrapping_add(u32::from(nactive == 0));
        own.f = 0;
        self.insert_sibling(parent, class);
        let own = self.of(class);
        if let Some(curve) = own.ul {
            own.ulimit.lessen(&curve, now, own.total);
            own.myf = own.ulimit.tick_of(own.total);
        }
    }

    /// `update_vf`: a leaf has sent `len` bytes, or is empty now.
    pub(super) fn update_vf(&mut self, class: u32, len: u32) {
        let old = self.is_old();
        let own = &self.classes[class].own;
        let mut go_passive =
            self.classes[class].leaf.qlen() == 0 && own.ls.is_some() && (old || own.nactive > 0);
        let mut class = class;
        while let Some(parent) = self.classes[class].own.parent {
            let cvtmin = self.classes[parent].own.cvtmin;
            let own = self.of(class);
            own.total = own.total.wrapping_add(u64::from(len));
            if own.ls.is_none() || own.nactive == 0 {
                class = parent;
                continue;
            }
            if go_passive {
                own.nactive -= 1;
                go_passive = own.nactive == 0;
            }
            if !(old && go_passive) {
                own.vt = own.virtual_time.tick_of(own.total).wrapping_sub(own.vtoff).wrapping_add(own.vtadj);
                if own.vt < cvtmin {
                    // It was passed over because it did not fit.
                    own.vtadj = own.vtadj.wrapping_add(cvtmin - own.vt);
                    own.vt = cvtmin;
                }
            }
            let vt = own.vt;
            self.remove_sibling(parent, class);
            if go_passive {
                let above = self.of(parent);
                let most = if old { &mut above.cvtmax } else { &mut above.cvtoff };
                *most = vt.max(*most);
                self.update_cfmin(parent);
            } else {
                self.insert_sibling(parent, class);
                let own = self.of(class);
                if own.ul.is_some() {
                    own.myf = own.ulimit.tick_of(own.total);
                }
                if self.update_f(class) {
                    self.update_cfmin(parent);
                }
            }
            class = parent;
        }
    }

    /// `hfsc_qlen_notify`, `set_passive`: the qdisc in a class is empty although nothing was sent.
    pub(super) fn emptied(&mut self, class: u32) {
        if self.is_old() || self.classes[class].own.nactive > 0 {
            self.update_vf(class, 0);
        }
        if self.classes[class].own.rt.is_some() {
            self.eltree_remove(class);
        }
    }
    /// `hfsc_reset_qdisc`, without the qdiscs in the classes.
    pub(super) fn forget(&mut self) {
        let old = self.is_old();
        self.classes.iter_mut().for_each(|class| class.own.reset(old));
        self.own.trees.clear();
    }
}
