//! `hfsc`: hierarchical fair service curves, real-time, link-sharing and upper limit.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_hfsc.c`; Stoica, Zhang & Ng, SIGCOMM 1997.
//! Differs: in 2.6.35 cbq's strategy `drop` finds nothing to drop here; a timer that would be due already goes off 1 ns later; a node of a
//! tree that a reset has forgotten (6.12) is linked with no other, where in Linux its removal may bring back another.

mod curve;
mod engine;
mod order;

use super::KindSpec;
use super::hashed::{ClassChange, Hashed, HashedKind};
use super::unsimulated::Params;
use crate::cls::{Filters, Gone, Verdict};
use crate::ledger::DropReason;
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device, Due, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use curve::Curve;
pub use engine::HfscClass;
use engine::{Trees, ticks};
use penstock_model::psched::TICK_NS;
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "hfsc",
    about: "a hierarchy of service curves: guarantees of delay and rate, fair shares, ceilings",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Made,
        sorting: Sorting::Tree { direct: false },
        takes_filters: true,
        limits_rate: LimitsRate::Classes(Some("ul/m2")),
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: false,
    },
};

/// The class that stands for the qdisc itself.
const ROOT: u32 = 0;
/// `HFSC_CLASSIFY_MAX_DRIFT`: how often filters may lead to a class that is not below the one before.
const MAX_DRIFT: u32 = 8;

fn build(init: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let options = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
    let mut q = Hashed::new(init, Hfsc::new(default(options)));
    q.add_class(init.handle, HfscClass::new(None), false);
    q.own.trees.make(ROOT);
    Ok(Box::new(Carrier(q)))
}

fn default(options: &Options) -> u32 {
    options.u32("default").unwrap_or(0)
}

/// What the qdisc has.
pub struct Hfsc {
    /// Minor of the class of what no filter sorts.
    default: u32,
    warning: Option<String>,
    trees: Trees,
    /// The watchdog, until it strikes.
    watchdog: Option<Time>,
    /// Classes whose qdisc has set its watchdog, until that strikes.
    naps: Vec<(u32, Time)>,
    peeked: Option<Packet>,
    /// A class whose first packet is to be looked at once the copy has come that `netem` has made of it below.
    owed_peek: Option<u32>,
    qlen: u32,
    /// Bytes queued; 2.6.35 shows none.
    backlog: u32,
    stats: Stats,
}

impl Hfsc {
    fn new(default: u32) -> Hfsc {
        Hfsc {
            default,
            warning: None,
            trees: Trees::default(),
            watchdog: None,
            naps: Vec::new(),
            peeked: None,
            owed_peek: None,
            qlen: 0,
            backlog: 0,
            stats: Stats::default(),
        }
    }
}

/// `hfsc_adjust_levels` after a class came in below `class`: levels only rise.
fn raise_levels(q: &mut Hashed<Hfsc>, mut class: Option<u32>) {
    let mut least = 1;
    while let Some(at) = class.filter(|&at| q.classes[at].own.level < least) {
        q.classes[at].own.level = least;
        least += 1;
        class = q.classes[at].own.parent;
    }
}

/// `hfsc_adjust_levels`, from `class` upwards.
fn adjust_levels(q: &mut Hashed<Hfsc>, mut class: Option<u32>) {
    while let Some(at) = class {
        let children = q.classes.iter().filter(|(_, c)| c.own.parent == Some(at));
        let level = children.map(|(_, c)| c.own.level + 1).max().unwrap_or(0);
        q.classes[at].own.level = level;
        class = q.classes[at].own.parent;
    }
}

fn is_old(q: &Hashed<Hfsc>) -> bool {
    q.device.kernel == Kernel::V2_6_35
}

impl HashedKind for Hfsc {
    type Class = HfscClass;
    const ROOT_IS_CLASS: bool = true;
    const ID: &'static str = "hfsc";

    fn change(q: &mut Hashed<Hfsc>, options: Option<&Options>) -> Result<(), KernelError> {
        q.own.default = default(options.ok_or(KernelError::errno(KernelError::EINVAL))?);
        Ok(())
    }
    fn dump(q: &Hashed<Hfsc>) -> Options {
        Options::new().with("default", q.own.default)
    }
    fn change_class(
        q: &mut Hashed<Hfsc>,
        change: ClassChange<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<Handle, KernelError> {
        let einval = || KernelError::errno(KernelError::EINVAL);
        q.own.warning = None;
        let options = change.options.ok_or_else(einval)?;
        let curves = ["rt", "ls", "ul"].map(|name| Curve::parse(options.nested(name)));
        if let Some(class) = change.class {
            if change.parent != Handle::UNSPEC {
                let parent = q.classes[class].own.parent;
                if change.parent != parent.map_or(Handle::ROOT, |p| q.classes[p].classid) {
                    return Err(einval());
                }
            }
            recurve(q, class, curves, cx);
            return Ok(change.classid);
        }
        if change.parent == Handle::ROOT {
            return Err(KernelError::errno(KernelError::EEXIST));
        }
        let parent = match change.parent {
            Handle::UNSPEC => ROOT,
            parent => q.classes.find(parent).ok_or(KernelError::errno(KernelError::ENOENT))?,
        };
        if change.classid == Handle::UNSPEC || change.classid.qdisc() != q.handle {
            return Err(einval());
        }
        if curves[0].is_none() && curves[1].is_none() {
            return Err(einval());
        }
        if q.device.kernel >= Kernel::V6_12 && parent != ROOT && q.classes[parent].own.ls.is_none() {
            //= linux v6.12 sch_hfsc.c hfsc_upgrade_rt
            let above = &mut q.classes[parent].own;
            let curve = above.rt;
            above.set_curves([None, curve, None], 0);
            q.own.warning = Some("Forced curve change on parent 'rt' to 'sc'".to_owned());
        }
        let mut own = HfscClass::new(Some(parent));
        own.set_curves(curves, 0);
        own.pcvtoff = q.classes[parent].own.offset();
        let class = q.add_class(change.classid, own, true);
        q.own.trees.make(class);
        if q.classes[parent].own.level == 0 {
            //= linux v6.12 sch_generic.h qdisc_purge_queue
            let leaf = &mut q.classes[parent].leaf;
            let (packets, bytes) = leaf.told();
            leaf.reset(cx);
            Hfsc::reduced(q, parent, packets, bytes);
            Hfsc::replaced(q, parent);
        }
        raise_levels(q, Some(parent));
        Ok(change.classid)
    }
    fn may_delete(q: &Hashed<Hfsc>, class: u32, bound: bool) -> Result<(), KernelError> {
        if bound || class == ROOT || q.classes[class].own.level > 0 {
            return Err(q.refuse(KernelError::EBUSY, "HFSC class in use"));
        }
        Ok(())
    }
    fn deleted(q: &mut Hashed<Hfsc>, own: HfscClass) {
        adjust_levels(q, own.parent);
    }
    /// `qdisc_tree_reduce_backlog`.
    fn reduced(q: &mut Hashed<Hfsc>, class: u32, packets: u32, bytes: u32) {
        if q.classes[class].leaf.qlen() == 0 && (!is_old(q) || packets > 0) {
            q.emptied(class);
        }
        let old = is_old(q);
        let own = &mut q.own;
        own.qlen = own.qlen.wrapping_sub(packets);
        own.backlog = own.backlog.wrapping_sub(bytes);
        if !old {
            own.stats.drops = own.stats.drops.wrapping_add(packets);
        }
    }
    /// `qdisc_replace` tells the class of the old qdisc's end even where that was empty.
    fn replaced(q: &mut Hashed<Hfsc>, class: u32) {
        q.own.naps.retain(|nap| nap.0 != class);
        if !is_old(q) && q.classes[class].leaf.qlen() == 0 {
            q.emptied(class);
        }
    }
    /// In 2.6.35 an inner class without `ls` stays among its siblings for good (`update_vf` passes over it), and the kernel goes on to use
    /// its memory when it is deleted; here it goes.
    fn goes(q: &mut Hashed<Hfsc>, class: u32) {
        q.part(class);
    }
    fn class_stats(q: &Hashed<Hfsc>, class: u32) -> Stats {
        let class = &q.classes[class];
        let own = &class.own;
        let backlog = if is_old(q) { 0 } else { class.leaf.backlog() };
        let (bytes, packets, drops) = (own.bytes, own.packets, own.drops);
        Stats { bytes, packets, drops, qlen: class.leaf.qlen(), backlog, ..Stats::default() }
    }
    fn is_inner(q: &Hashed<Hfsc>, class: u32) -> bool {
        q.classes[class].own.level > 0
    }
    fn may_bind(q: &Hashed<Hfsc>, parent: Option<u32>, class: u32) -> bool {
        parent.is_none_or(|parent| q.classes[parent].own.level > q.classes[class].own.level)
    }
    fn dump_class(q: &Hashed<Hfsc>, class: u32) -> (Handle, Options, Option<Options>) {
        let own = &q.classes[class].own;
        let mut options = Options::new();
        for (name, curve) in [("rt", own.rt), ("ls", own.ls), ("ul", own.ul)] {
            if let Some(curve) = curve {
                options = options.with(name, curve.dump());
            }
        }
        let xstats = Options::new()
            .with("period", own.vtperiod)
            .with("work", own.total)
            .with("rtwork", own.cumul)
            .with("level", own.level);
        (own.parent.map_or(Handle::ROOT, |p| q.classes[p].classid), options, Some(xstats))
    }
    fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }
}

/// `hfsc_change_class` of a class that is there.
fn recurve(q: &mut Hashed<Hfsc>, class: u32, curves: [Option<Curve>; 3], cx: &mut Cx<'_>) {
    let now = ticks(cx.now);
    cx.drops.work.clock_reads += 1;
    // 2.6.35 takes it that what is queued stands in the trees already.
    let (old, own) = (is_old(q), &mut q.classes[class].own);
    let (had_rt, had_ls) = (old || own.rt.is_some(), old || own.ls.is_some());
    own.set_curves(curves, now);
    if q.classes[class].leaf.qlen() == 0 {
        return;
    }
    let len = peek_len(q, class, cx);
    // The peek may have dropped all there was.
    if q.classes[class].leaf.qlen() == 0 {
        return;
    }
    if q.classes[class].own.rt.is_some() {
        match had_rt {
            true => q.update_ed(class, len),
            false => {
                cx.drops.work.clock_reads += 1;
                q.init_ed(class, len, now);
            }
        }
    }
    if q.classes[class].own.ls.is_some() {
        match had_ls {
            true => q.update_vf(class, 0),
            false => cx.drops.work.clock_reads += q.init_vf(class, now),
        }
    }
}

/// Runs `work` on the qdisc in a class and takes over what that has lost of itself, and its timer. `added`: packets that it has
/// more by what was asked, less where one was taken.
fn on_leaf<T>(
    q: &mut Hashed<Hfsc>,
    class: u32,
    work: impl FnOnce(&mut Node) -> T,
    added: impl FnOnce(&T) -> i64,
) -> T {
    let leaf = &mut q.classes[class].leaf;
    let before = (leaf.qlen_above(), leaf.counted_above());
    let result = work(leaf);
    let (qlen, backlog, alarm) = (leaf.qlen_above(), leaf.counted_above(), leaf.next_wakeup());
    let emptied = leaf.qlen() == 0;
    let hfsc = &mut q.own;
    hfsc.qlen = hfsc.qlen.wrapping_add(qlen.wrapping_sub(before.0));
    hfsc.backlog = hfsc.backlog.wrapping_add(backlog.wrapping_sub(before.1));
    if alarm.is_some() || !hfsc.naps.is_empty() {
        nap(&mut hfsc.naps, class, alarm);
    }
    let lost = i64::from(before.0) + added(&result) - i64::from(qlen);
    if lost > 0 {
        if !is_old(q) {
            let stats = &mut q.own.stats;
            stats.drops = stats.drops.wrapping_add(lost as u32);
        }
        if emptied {
            q.emptied(class);
        }
    }
    result
}

/// The qdisc in a class has set its watchdog, or none any more.
fn nap(naps: &mut Vec<(u32, Time)>, class: u32, alarm: Option<Time>) {
    match (naps.iter().position(|nap| nap.0 == class), alarm) {
        (Some(at), Some(alarm)) => naps[at].1 = alarm,
        (Some(at), None) => {
            naps.swap_remove(at);
        }
        (None, Some(alarm)) => naps.push((class, alarm)),
        (None, None) => {}
    }
}

/// `qdisc_peek_len`: 0 where the qdisc in a class shows nothing.
fn peek_len(q: &mut Hashed<Hfsc>, class: u32, cx: &mut Cx<'_>) -> u32 {
    on_leaf(q, class, |leaf| leaf.peek(cx).map_or(0, |p| p.pkt_len), |_| 0)
}

/// The qdisc as it carries packets.
struct Carrier(Hashed<Hfsc>);

impl Carrier {
    /// `hfsc_classify`.
    fn classify(&self, skb: &mut Skb, cx: &mut Cx<'_>) -> Result<u32, Gone> {
        let q = &self.0;
        let priority = Handle(skb.priority);
        if priority.qdisc() == q.handle
            && let Some(class) = q.classes.find(priority)
            && q.classes[class].own.level == 0
        {
            return Ok(class);
        }
        let (mut head, mut block, mut drift) = (ROOT, Filters::ROOT, MAX_DRIFT);
        loop {
            let hit = match q.filters.classify(block, skb, cx) {
                Verdict::Class(hit) => hit,
                Verdict::Unmatched => break,
                Verdict::Gone(gone) => return Err(gone),
            };
            let above = q.classes[head].own.level;
            let class = match hit.class {
                0 => match q.classes.find(hit.classid) {
                    Some(class) if is_old(q) || q.classes[class].own.level < above => class,
                    _ => break,
                },
                bound => bound - 1,
            };
            let level = q.classes[class].own.level;
            if level == 0 {
                return Ok(class);
            }
            // 2.6.35 has no such check and would never return from a loop.
            if level >= above {
                if drift == 0 {
                    return Err(Gone::Shot);
                }
                drift -= 1;
            }
            head = class;
            block = q.classes[class].block.unwrap_or(Filters::ROOT);
        }
        match q.classes.find(Handle(q.handle.0 | (q.own.default & 0xffff))) {
            Some(class) if q.classes[class].own.level == 0 => Ok(class),
            _ => Err(Gone::Shot),
        }
    }
    /// Counts a packet of a class.
    #[inline]
    fn count(&mut self, class: u32, (len, packets): (u32, u64), now: Time) {
        let class = &mut self.0.classes[class];
        class.look(now, class.own.bytes, class.own.packets);
        class.own.bytes += u64::from(len);
        class.own.packets += packets;
        let stats = &mut self.0.own.stats;
        stats.bytes += u64::from(len);
        stats.packets += packets;
    }
    /// `hfsc_schedule_watchdog`.
    fn schedule(&mut self, now: Time) {
        let q = &mut self.0;
        let e = q.own.trees.first_eligible().unwrap_or(0);
        let cfmin = q.classes[ROOT].own.cfmin;
        let mut next = if cfmin != 0 && (e == 0 || e > cfmin) { cfmin } else { e };
        let ticks = ticks(now);
        // 2.6.35 sets its timer for 0 too, and warns.
        if next <= ticks && (next != 0 || is_old(q)) {
            // An inner class without `ls` keeps the fit time it had (`update_vf`), and the kernel's timer goes off over and over until one
            // below it fits. Nothing changes before that, so it is waited for.
            let later = [q.fits_next(ticks), Some(e).filter(|&e| e > ticks)];
            next = later.into_iter().flatten().min().unwrap_or(0);
        }
        if next != 0 {
            // What is due already goes off as soon as it can.
            let at = Time::from_ns(next.saturating_mul(TICK_NS).min(i64::MAX as u64) as i64);
            q.own.watchdog = Some(at.max(Time::from_ns(now.as_ns() + 1)));
        }
    }
    /// `hfsc_dequeue`.
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let q = &mut self.0;
        if q.own.qlen == 0 {
            return None;
        }
        cx.drops.work.clock_reads += 1;
        let now = ticks(cx.now);
        let mindl = q.mindl(now);
        let realtime = mindl.is_some();
        let Some(class) = mindl.or_else(|| q.minvt(now)) else {
            let stats = &mut q.own.stats;
            stats.overlimits = stats.overlimits.wrapping_add(1);
            self.schedule(cx.now);
            return None;
        };
        let packet = on_leaf(q, class, |leaf| leaf.dequeue(cx), |packet| -i64::from(packet.is_some()))?;
        let (len, packets) = (packet.pkt_len, packet.counts_as());
        if !is_old(q) {
            self.count(class, (len, packets), cx.now);
        }
        let q = &mut self.0;
        q.update_vf(class, len);
        if realtime {
            let own = &mut q.classes[class].own;
            own.cumul = own.cumul.wrapping_add(u64::from(len));
        }
        if q.classes[class].own.rt.is_none() {
            return Some(packet);
        }
        if q.classes[class].leaf.qlen() == 0 {
            q.eltree_remove(class);
            return Some(packet);
        }
        let next_len = peek_len(q, class, cx);
        // The peek may have dropped all there was.
        if q.classes[class].leaf.qlen() > 0 || is_old(q) {
            match realtime {
                true => q.update_ed(class, next_len),
                false => q.update_d(class, next_len),
            }
        }
        Some(packet)
    }
}

impl Qdisc for Carrier {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let class = match self.classify(&mut packet, cx) {
            Ok(class) => class,
            Err(gone) => return gone.leave_counted(packet, &mut self.0.own.stats, cx),
        };
        let (len, old) = (packet.pkt_len, is_old(&self.0));
        let q = &mut self.0;
        let first = q.classes[class].leaf.qlen() == 0;
        let added = |&(xmit, more): &(Xmit, u32)| i64::from(xmit == Xmit::Success) + i64::from(more);
        let (answer, _) = on_leaf(q, class, |leaf| leaf.enqueue_told(packet, cx), added);
        if cx.drops.repeating
            && let Some(class) = q.own.owed_peek.take()
        {
            peek_len(q, class, cx);
        }
        if answer != Xmit::Success {
            if answer.counts_as_drop() {
                let drops = &mut q.classes[class].own.drops;
                *drops = drops.wrapping_add(1);
                q.own.stats.drops = q.own.stats.drops.wrapping_add(1);
            }
            return answer;
        }
        if old && q.classes[class].leaf.qlen() == 1 || !old && first && !q.classes[class].own.is_active() {
            let now = ticks(cx.now);
            let (rt, ls) = (q.classes[class].own.rt.is_some(), q.classes[class].own.ls.is_some());
            if rt {
                cx.drops.work.clock_reads += 1;
                q.init_ed(class, len, now);
            }
            if ls {
                cx.drops.work.clock_reads += q.init_vf(class, now);
            }
            if rt && !old {
                // The head is taken out at once, so that nothing drops it and its deadline holds; in the kernel a copy of it is in there before it.
                if cx.drops.has_again() {
                    q.own.owed_peek = Some(class);
                } else {
                    peek_len(q, class, cx);
                }
            }
        }
        if old {
            self.count(class, (len, 1), cx.now);
        }
        Xmit::Success
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.0.own.peeked.take().or_else(|| self.take(cx))
    }
    /// `qdisc_peek_dequeued`: the packet is taken and counted, and kept.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        if self.0.own.peeked.is_none() {
            self.0.own.peeked = self.take(cx);
        }
        self.0.own.peeked.as_ref()
    }
    fn next_wakeup(&self) -> Option<Time> {
        let naps = self.0.own.naps.iter().map(|nap| nap.1);
        naps.chain(self.0.own.watchdog).min()
    }
    /// Its own, and those of the leaves that wait for theirs.
    fn timers(&self, see: &mut dyn FnMut(Time, Time)) {
        self.0.own.watchdog.iter().for_each(|&at| see(at, at));
        for &(class, _) in &self.0.own.naps {
            self.0.classes[class].leaf.timers(see);
        }
    }
    fn expire(&mut self, due: Due) {
        let Hashed { classes, own, .. } = &mut self.0;
        own.watchdog = own.watchdog.filter(|&at| !due.has(at, at));
        own.naps.retain_mut(|(class, at)| {
            let leaf = &mut classes[*class].leaf;
            leaf.expire(due);
            let next = leaf.next_wakeup();
            *at = next.unwrap_or(*at);
            next.is_some()
        });
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        Hfsc::change(&mut self.0, options)
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        let q = &mut self.0;
        q.children_mut(&mut |_, child| child.reset(cx));
        q.forget();
        let own = &mut q.own;
        own.watchdog = None;
        own.naps.clear();
        if let Some(packet) = own.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        (own.qlen, own.backlog, own.owed_peek) = (0, 0, None);
    }
    fn stats(&self) -> Stats {
        let own = &self.0.own;
        let peeked = own.peeked.as_ref().map_or(0, |p| p.pkt_len);
        let backlog = if is_old(&self.0) { 0 } else { own.backlog.wrapping_add(peeked) };
        Stats { qlen: self.qlen(), backlog, ..own.stats }
    }
    fn qlen(&self) -> u32 {
        self.0.own.qlen + u32::from(self.0.own.peeked.is_some())
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.0.own.peeked.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        Hfsc::dump(&self.0)
    }
    fn set_device(&mut self, device: &Device, cx: &mut Cx<'_>) {
        Params::set_device(&mut self.0, device, cx);
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(&self.0)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(&mut self.0)
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet};

    fn curve(m1: u32, d: u32, m2: u32) -> Options {
        Options::new().with("m1", m1).with("d", d).with("m2", m2)
    }
    /// 1:1 and 1:2 below the qdisc, with these curves.
    fn pair(kernel: Kernel, bench: &mut Bench, options: [Options; 2]) -> Box<dyn Qdisc> {
        let init = Init { device: device(kernel), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let mut q = build(&init, Some(&Options::new().with("default", 1u32)), &mut bench.cx(0))
            .unwrap_or_else(|e| panic!("{e}"));
        for (minor, options) in (1..).zip(&options) {
            let (parent, id) = (Handle::new(1, 0), Handle::new(1, minor));
            q.classes_mut().unwrap().change_class(parent, id, Some(options), &mut bench.cx(0)).unwrap();
        }
        q
    }
    fn send(q: &mut dyn Qdisc, bench: &mut Bench, seq: u64, minor: u32) {
        let mut p = packet(seq, 1000);
        p.priority = 0x1_0000 + minor;
        assert_eq!(q.enqueue(p, &mut bench.cx(1_000_000)), Xmit::Success);
    }

    #[test]
    fn link_sharing_goes_by_rates() {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let ls = |m2| Options::new().with("ls", curve(0, 0, m2));
            let mut q = pair(kernel, &mut bench, [ls(300_000), ls(100_000)]);
            for seq in 0..80 {
                send(&mut *q, &mut bench, seq, 1 + seq as u32 % 2);
            }
            let first: Vec<u64> = (0..40).map(|_| q.dequeue(&mut bench.cx(1_000_000)).unwrap().seq).collect();
            let ours = first.iter().filter(|&seq| seq % 2 == 0).count();
            assert!((29..=31).contains(&ours), "{kernel}: {ours} of 40");
            assert_eq!((q.qlen(), q.stats().overlimits), (40, 0));
        }
    }

    #[test]
    fn a_guarantee_goes_before_shares_and_a_limit_waits() {
        let mut bench = Bench::new();
        // 125,000 bytes/s: 8 ms a packet.
        let rt = Options::new().with("rt", curve(0, 0, 125_000));
        let ls = Options::new().with("ls", curve(0, 0, 125_000)).with("ul", curve(0, 0, 125_000));
        let mut q = pair(Kernel::V6_12, &mut bench, [rt, ls]);
        for seq in 0..6 {
            send(&mut *q, &mut bench, seq, 2 - seq as u32 % 2);
        }
        let mut at = |ns: i64| q.dequeue(&mut bench.cx(ns)).map(|p| p.seq);
        assert_eq!([at(1_000_000), at(1_000_000), at(1_000_000)], [Some(1), Some(0), None]);
        assert_eq!((q.next_wakeup(), q.stats().overlimits), (Some(Time::from_ns(9_000_000)), 1));
        let mut at = |ns: i64| q.dequeue(&mut bench.cx(ns)).map(|p| p.seq);
        assert_eq!(
            [at(8_999_000), at(9_000_000), at(9_000_000), at(9_000_000)],
            [None, Some(3), Some(2), None]
        );
        let mut work = Vec::new();
        q.classes().unwrap().walk(Time::ZERO, &mut |class| {
            let x = class.xstats.unwrap();
            work.push((class.classid.minor(), class.stats.packets, x.u32("level"), x.value("work").cloned()));
        });
        work.sort_by_key(|w| w.0);
        let bytes = |n: u64| Some(penstock_model::Value::U64(n));
        let want = [(0, 0, Some(1), bytes(0)), (1, 2, Some(0), bytes(2000)), (2, 2, Some(0), bytes(2000))];
        assert_eq!(work, want);
    }

    #[test]
    fn a_reset_leaves_the_class_silent_until_its_qdisc_is_replaced() {
        let mut bench = Bench::new();
        let sc = |m2| Options::new().with("rt", curve(0, 0, m2)).with("ls", curve(0, 0, m2));
        let mut q = pair(Kernel::V6_12, &mut bench, [sc(125_000), sc(125_000)]);
        send(&mut *q, &mut bench, 0, 1);
        q.reset(&mut bench.cx(1_000_000));
        assert_eq!(bench.dropped(), [(0, DropReason::Purged)]);
        send(&mut *q, &mut bench, 1, 1);
        send(&mut *q, &mut bench, 2, 2);
        let mut next = |ns: i64| q.dequeue(&mut bench.cx(ns)).map(|p| p.seq);
        assert_eq!([next(2_000_000), next(900_000_000)], [Some(2), None]);
        assert_eq!((q.qlen(), q.next_wakeup()), (1, None));
        let class = Handle::new(1, 1);
        let leaf = q.classes_mut().unwrap().leaf_mut(class).unwrap();
        leaf.reset(&mut bench.cx(1_000_000_000));
        q.classes_mut().unwrap().reduced(class, 1, 1000);
        q.classes_mut().unwrap().graft(class, None, &mut bench.cx(1_000_000_000)).unwrap();
        send(&mut *q, &mut bench, 3, 1);
        assert_eq!(q.dequeue(&mut bench.cx(1_000_000_000)).map(|p| p.seq), Some(3));
    }
}
