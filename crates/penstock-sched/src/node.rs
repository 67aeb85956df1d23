//! A place in the tree: a qdisc with its handle, its parent and its size table.
//!
//! Follows: linux v6.12 `include/net/sch_generic.h` `struct Qdisc`, `net/sched/sch_generic.c` `qdisc_create_dflt`,
//! `noop_qdisc`.

use crate::charge::Count;
use crate::cls::{Blocks, Gone};
use crate::estimator::Estimator;
use crate::qdisc::{Classful, Cx, Device, Due, Init, Qdisc, Xmit};
use crate::sch::noop::Noop;
use crate::stab::Stab;
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// Whether `tc qdisc show` prints a qdisc that has no handle: what of the kernel's `qdisc_hash_add` and
/// `TCQ_F_INVISIBLE` concerns it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// Never.
    No,
    /// With `invisible`.
    Invisible,
    /// Always.
    Always,
}

/// What went through a qdisc's door, those below it included: counted there, by nothing that the kind counts itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub(crate) struct Door {
    // With each packet, in this order: what lies together comes into the cache together.
    /// Packets given to it.
    pub(crate) given: u64,
    /// Those it took ([`Xmit::Success`]).
    pub(crate) taken: Count,
    /// Those it has given on.
    pub(crate) left: Count,
    /// Those that came on the ledger, for whatever reason.
    pub(crate) lost: u64,
    // The others.
    /// Those for which it answered that one is dropped ([`Xmit::counts_as_drop`]).
    pub(crate) refused: u64,
    /// Those that an action took.
    pub(crate) stolen: u64,
    /// Those of them that a reset put there, which counts as no drop.
    pub(crate) reset: u64,
    /// How many more packets the kernel's counters take those for that it has given on, of which super-packets are several, modulo 2^64.
    pub(crate) more: u64,
    /// Segments that were lost in those below as they were cut there, of which it is not told: the answer tells of one at most.
    pub(crate) untold: u64,
}

impl Door {
    /// What it has given on as the kernel counts it, which takes a super-packet for several.
    pub(crate) fn sent(&self) -> Count {
        Count { packets: self.left.packets.wrapping_add(self.more), ..self.left }
    }
    /// Packets that must lie here and below.
    pub(crate) fn holds(&self) -> u64 {
        self.given.wrapping_sub(self.left.packets).wrapping_sub(self.lost)
    }
    /// The drops that a qdisc shows whose packets lie in those below. 6.12 tells each above of what one below has lost (`qdisc_tree_reduce_backlog`), and
    /// counts what a reset empties nowhere. 2.6.35 counts what was refused on its way in, and nothing that is dropped later.
    pub(crate) fn drops(&self, kernel: Kernel) -> u64 {
        match kernel {
            Kernel::V2_6_35 => self.refused,
            Kernel::V6_12 | Kernel::V7_2 => {
                self.lost.wrapping_sub(self.stolen).wrapping_sub(self.reset).wrapping_sub(self.untold)
            }
        }
    }
    /// What went through another's door counts here too: it stood in the same class before.
    pub(crate) fn add(&mut self, other: &Door) {
        self.given += other.given;
        self.taken.add(other.taken);
        self.refused += other.refused;
        self.stolen += other.stolen;
        self.left.add(other.left);
        self.lost += other.lost;
        self.reset += other.reset;
        self.more = self.more.wrapping_add(other.more);
        self.untold += other.untold;
    }
}

/// What a qdisc counts as queued in one below it beyond what is, modulo 2^32: bytes of packets that others have displaced, without those of the
/// others; and packets that were dropped without a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shift {
    /// Packets.
    pub packets: u32,
    /// Bytes.
    pub bytes: u32,
}

impl Shift {
    /// Both together.
    pub fn and(self, other: Shift) -> Shift {
        Shift {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
        }
    }
}

/// A qdisc in its place.
#[repr(C)]
pub struct Node {
    // With each packet, in this order: what lies together comes into the cache together.
    qdisc: Box<dyn Qdisc>,
    /// Size table.
    pub(crate) stab: Option<Box<Stab>>,
    /// Rate estimator.
    pub(crate) estimator: Option<Box<Estimator>>,
    /// [`Handle::ROOT`] or the class it is in.
    pub parent: Handle,
    /// What [`Qdisc::watches_idle`] says, which does not change: it is asked with each packet.
    watches_idle: bool,
    /// What [`Qdisc::never_wakes`] says, likewise.
    never_wakes: bool,
    /// What [`Qdisc::displaces_untold`] says, likewise.
    displaces: bool,
    /// What [`Qdisc::drops_untold`] says, likewise.
    drops_untold: bool,
    /// Here or below packets were dropped without a word: it may count more as queued than there is.
    pub(crate) lost_late: bool,
    /// A choke stands or stood below, which does not always know how many packets it holds, and tells those above.
    pub(crate) over_choke: bool,
    /// What went in and out.
    pub(crate) door: Door,
    // The others.
    /// What the qdisc above counts as queued beyond what is.
    shift: Shift,
    /// Its handle; [`Handle::UNSPEC`] for one the kernel made by itself, which is not shown.
    pub handle: Handle,
    /// Whether it is shown although it has no handle.
    pub shown: Shown,
    /// How many were made before it on its device; 0 before it is counted.
    pub(crate) sequence: u64,
}

impl Node {
    /// A qdisc in a place.
    pub fn new(init: &Init, qdisc: Box<dyn Qdisc>) -> Node {
        let shown = Shown::Invisible;
        Node {
            handle: init.handle,
            parent: init.parent,
            shown,
            sequence: 0,
            stab: None,
            estimator: None,
            watches_idle: qdisc.watches_idle(),
            never_wakes: qdisc.never_wakes(),
            displaces: qdisc.displaces_untold(),
            drops_untold: qdisc.drops_untold(),
            lost_late: false,
            shift: Shift::default(),
            door: Door::default(),
            over_choke: false,
            qdisc,
        }
    }
    /// `noop_qdisc`: what stands where nothing stands; drops everything.
    pub fn noop() -> Node {
        Node {
            handle: Handle::UNSPEC,
            parent: Handle::UNSPEC,
            shown: Shown::No,
            sequence: 0,
            stab: None,
            estimator: None,
            watches_idle: false,
            never_wakes: true,
            displaces: false,
            drops_untold: false,
            lost_late: false,
            shift: Shift::default(),
            door: Door::default(),
            over_choke: false,
            qdisc: Box::new(Noop),
        }
    }
    /// `qdisc_create_dflt` of a pfifo with the device's txqueuelen: the default child in class `classid`.
    pub fn default_pfifo(device: &Device, classid: Handle) -> Node {
        let init = Init { device: *device, handle: Handle::UNSPEC, parent: classid };
        Node::new(&init, Box::new(crate::sch::pfifo::Pfifo::with_default_limit(device)))
    }
    /// The same, shown never: what the kernel puts where a qdisc was deleted.
    pub fn unlisted(mut self) -> Node {
        self.shown = Shown::No;
        self
    }
    /// Whether this is [`Node::noop`].
    pub fn is_noop(&self) -> bool {
        self.qdisc.kind() == "noop"
    }

    /// Takes a packet: `qdisc_enqueue`.
    #[inline]
    pub fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        // 2.6.35 applies every qdisc's size table on the way down; 6.12 only the root's (`__dev_xmit_skb`).
        if let Some(stab) = &self.stab
            && (stab.kernel == Kernel::V2_6_35 || self.parent == Handle::ROOT)
        {
            stab.apply(&mut packet);
        }
        self.enqueue_again(packet, cx)
    }
    /// The same; and how many packets there are more than the answer tells, of which those above learn (`qdisc_tree_reduce_backlog` below 0): a
    /// super-packet was cut.
    #[inline]
    pub(crate) fn enqueue_told(&mut self, packet: Packet, cx: &mut Cx<'_>) -> (Xmit, u32) {
        let cut = cx.drops.cut();
        let answer = self.enqueue(packet, cx);
        (answer, cx.drops.cut().since(cut).told)
    }
    #[cold]
    fn scribble(&self, packet: &mut Skb, now: Time) {
        let hashes = self.qdisc.scribbles().over(packet.rare().sfb, packet, now);
        packet.rare_mut().sfb = hashes;
    }
    /// Takes a packet whose length has been through the size table: `Qdisc_ops.enqueue`.
    #[inline]
    pub(crate) fn enqueue_again(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        packet.tc.class = self.parent;
        if packet.is_noted() && packet.rare().sfb != [0; 2] {
            self.scribble(&mut packet, cx.now);
        }
        self.look(cx.now);
        let (before, cut) = (cx.drops.len(), cx.drops.cut());
        let len = packet.pkt_len;
        let held = if self.displaces { self.qdisc.held() } else { 0 };
        let answer = self.qdisc.enqueue(packet, cx);
        if self.displaces && answer == Xmit::Cn {
            let shift = held.wrapping_sub(self.qdisc.held());
            self.shift.bytes = self.shift.bytes.wrapping_add(shift);
            cx.drops.untold = cx.drops.untold.wrapping_add(shift);
        }
        self.door.given += 1;
        self.door.lost += (cx.drops.len() - before) as u64;
        if cx.drops.cut() != cut {
            let more = cx.drops.cut().since(cut);
            self.door.given += u64::from(more.packets);
            self.door.untold += u64::from(cx.drops.lost_below(cut));
        }
        match answer {
            Xmit::Success => self.door.taken.add(Count::one(len)),
            Xmit::Stolen => self.door.stolen += 1,
            Xmit::Drop | Xmit::Cn | Xmit::Bypass => self.door.refused += 1,
        }
        answer
    }
    /// [`Qdisc::pass_by`] of a packet with a length of `pkt_len`; not past a size table.
    #[inline]
    pub fn pass_by(&mut self, packet: &mut Skb, now: Time) -> bool {
        if self.stab.is_some() {
            return false;
        }
        self.look(now);
        if !self.qdisc.pass_by(packet) {
            return false;
        }
        packet.tc.class = self.parent;
        let one = Count::one(packet.pkt_len);
        if packet.is_noted() {
            self.door.more = self.door.more.wrapping_add(packet.counts_as().wrapping_sub(1));
        }
        self.door.given += 1;
        self.door.taken.add(one);
        self.door.left.add(one);
        true
    }
    /// What the filters at a device's hook make of a packet that passes it.
    pub(crate) fn pass(&mut self, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Gone> {
        self.look(cx.now);
        self.qdisc.pass(skb, cx)
    }
    /// Gives the next packet that may go now.
    #[inline]
    pub fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.look(cx.now);
        let (before, late, untold) = (cx.drops.len(), cx.drops.late, cx.drops.untold);
        let packet = self.qdisc.dequeue(cx);
        self.door.lost += (cx.drops.len() - before) as u64;
        if cx.drops.late != late {
            let packets = cx.drops.late.wrapping_sub(late);
            self.door.untold += u64::from(packets);
            self.lost_late = true;
            if self.drops_untold {
                self.takes_over(Shift { packets, bytes: cx.drops.untold.wrapping_sub(untold) });
            }
        }
        if let Some(packet) = &packet {
            self.door.left.add(Count::one(packet.pkt_len));
            if packet.is_noted() {
                self.door.more = self.door.more.wrapping_add(packet.counts_as().wrapping_sub(1));
            }
        }
        packet
    }
    /// Drops one packet, where the kind has a way to. Whether it did.
    pub fn drop_one(&mut self, cx: &mut Cx<'_>) -> bool {
        self.counted(cx, |qdisc, cx| qdisc.drop_one(cx))
    }
    /// The packet the next [`Node::dequeue`] will give.
    #[inline]
    pub fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        self.look(cx.now);
        let before = cx.drops.len();
        let packet = self.qdisc.peek(cx);
        self.door.lost += (cx.drops.len() - before) as u64;
        packet
    }
    /// When to ask again although [`Node::dequeue`] gave nothing.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Time> {
        if self.never_wakes {
            debug_assert!(self.qdisc.next_wakeup().is_none(), "{} has a timer", self.qdisc.kind());
            return None;
        }
        self.qdisc.next_wakeup()
    }
    /// Its timers, and those below ([`Qdisc::timers`]).
    pub fn timers(&self, see: &mut dyn FnMut(Time, Time)) {
        self.qdisc.timers(see);
    }
    /// From when on the first of its timers, and of those below, may go off with another.
    pub(crate) fn first_soft(&self) -> Option<Time> {
        self.qdisc.first_soft()
    }
    /// The timers due by `now` have gone off.
    pub fn expire(&mut self, due: Due) {
        self.qdisc.expire(due);
    }
    /// It stands in a transmit queue of its own.
    pub(crate) fn stands_alone(&mut self) {
        self.qdisc.stands_alone();
    }
    /// Of several transmit queues, the next has its turn.
    pub(crate) fn next_queue(&mut self) {
        self.qdisc.next_queue();
    }
    /// The transmit queue that is a class of this is to be run.
    pub(crate) fn kick(&mut self, class: Handle) {
        self.qdisc.kick(class);
    }
    /// Whether it takes note of a dequeue that finds it empty.
    #[inline]
    pub fn watches_idle(&self) -> bool {
        self.watches_idle
    }
    /// Whether a timer of its own, or below, goes off on the clock's tick at this moment.
    pub fn ticks_at(&self, tick: Time) -> bool {
        let mut found = self.qdisc.ticks_at(tick);
        if let Some(classes) = self.classes() {
            classes.children(&mut |_, child| found = found || child.ticks_at(tick));
        }
        found
    }
    /// Its timers that ask for no dequeue, and those below ([`Qdisc::chores`]).
    pub fn chores(&self, see: &mut dyn FnMut(Time)) {
        self.qdisc.chores(see);
        if let Some(classes) = self.classes() {
            classes.children(&mut |_, child| child.chores(see));
        }
    }
    /// Those that are due by `now` go off ([`Qdisc::do_chores`]).
    pub fn do_chores(&mut self, now: Time) {
        self.qdisc.do_chores(now);
        if let Some(classes) = self.qdisc.classes_mut() {
            classes.children_mut(&mut |_, child| child.do_chores(now));
        }
    }
    /// How often a dump of it, and of what is below, looks at the clock.
    pub fn dump_looks(&self) -> u32 {
        let mut looks = self.qdisc.dump_looks();
        if let Some(classes) = self.classes() {
            classes.children(&mut |_, child| looks += child.dump_looks());
        }
        looks
    }
    /// Packets queued.
    #[inline]
    pub fn qlen(&self) -> u32 {
        self.qdisc.qlen()
    }
    /// Bytes queued.
    pub fn backlog(&self) -> u32 {
        self.qdisc.held()
    }
    /// Packets queued, as the qdisc above counts them.
    #[inline]
    pub fn qlen_above(&self) -> u32 {
        self.qlen().wrapping_add(self.shift.packets)
    }
    /// Bytes queued, as the qdisc above counts them.
    #[inline]
    pub fn counted_above(&self) -> u32 {
        self.backlog().wrapping_add(self.shift.bytes)
    }
    /// Packets and bytes that those above are told it has lost when it is emptied (`qdisc_purge_queue`).
    pub(crate) fn told(&self) -> (u32, u32) {
        (self.qlen(), self.qdisc.told())
    }
    /// What of the qdisc above's counters is left when this one is emptied.
    pub(crate) fn leaves_behind(&self) -> Shift {
        let bytes = self.backlog().wrapping_sub(self.qdisc.told());
        self.shift.and(Shift { packets: 0, bytes })
    }
    /// What the qdisc above counts beyond what is queued.
    #[inline]
    pub fn shift(&self) -> Shift {
        self.shift
    }
    /// It takes the place of another, for which the qdisc above counts so much too many: it goes on doing so.
    pub fn takes_over(&mut self, shift: Shift) {
        self.shift = self.shift.and(shift);
    }
    /// Sets parameters.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        self.counted(cx, |qdisc, cx| qdisc.change(options, cx))
    }
    /// Empties the queue onto the ledger.
    pub fn reset(&mut self, cx: &mut Cx<'_>) {
        let lost = self.door.lost;
        self.counted(cx, |qdisc, cx| qdisc.reset(cx));
        self.shift = Shift::default();
        self.lost_late = false;
        self.door.reset += self.door.lost - lost;
    }
    /// Has the qdisc do something, and counts what it drops.
    fn counted<T>(&mut self, cx: &mut Cx<'_>, work: impl FnOnce(&mut dyn Qdisc, &mut Cx<'_>) -> T) -> T {
        let before = cx.drops.len();
        let result = work(&mut *self.qdisc, cx);
        self.door.lost += (cx.drops.len() - before) as u64;
        result
    }
    /// Counters.
    pub fn stats(&self) -> Stats {
        self.qdisc.stats()
    }
    /// Counters with the estimated rate as of `now`, where an estimator runs.
    pub fn stats_at(&self, now: Time) -> Stats {
        let stats = self.qdisc.stats();
        match &self.estimator {
            Some(estimator) => {
                Stats { rate: Some(estimator.rate_at(now, stats.bytes, stats.packets)), ..stats }
            }
            None => stats,
        }
    }
    /// Lets the estimator look at the counters where it is time to.
    #[inline]
    fn look(&mut self, now: Time) {
        if let Some(estimator) = &mut self.estimator
            && estimator.is_due(now)
        {
            let stats = self.qdisc.stats();
            estimator.advance(now, stats.bytes, stats.packets);
        }
    }
    /// Has an estimator watch from now on; one that did goes on with its averages.
    ///
    /// # Errors
    /// EINVAL for an interval or a weight that none has.
    pub(crate) fn estimate(&mut self, kernel: Kernel, spec: (i8, u8), now: Time) -> Result<(), KernelError> {
        self.look(now);
        let stats = self.qdisc.stats();
        let mut new = Estimator::new(kernel, spec, now, stats.bytes, stats.packets)?;
        if let Some(old) = &self.estimator {
            new = new.continuing(old);
        }
        self.estimator = Some(Box::new(new));
        Ok(())
    }
    /// Parameters.
    pub fn dump(&self) -> Options {
        self.qdisc.dump()
    }
    /// Parameters, with those that stand before the kind: `stab`, `estimator`.
    pub(crate) fn whole_dump(&self, now: Time) -> Options {
        let mut options = self.dump_at(now);
        if let Some(stab) = &self.stab {
            options.set("stab", stab.dump().into());
        }
        if let Some(estimator) = &self.estimator {
            options.set("estimator", estimator.dump().into());
        }
        options
    }
    /// Parameters, as of `now`.
    pub fn dump_at(&self, now: Time) -> Options {
        self.qdisc.dump_at(now)
    }
    /// [`Qdisc::marks`].
    pub fn marks(&self) -> Option<u64> {
        self.qdisc.marks()
    }
    /// The kind's own counters.
    pub fn xstats(&self, now: Time) -> Option<Options> {
        self.qdisc.xstats(now)
    }
    /// The sentence 6.12 adds to the last change that succeeded.
    pub fn take_warning(&mut self) -> Option<String> {
        self.qdisc.take_warning()
    }
    /// The device's traffic classes are gone.
    pub fn forget_traffic_classes(&mut self, map: bool) {
        self.qdisc.forget_traffic_classes(map);
    }
    /// Lets it hold those of the machine's shared blocks of filters that its options name.
    pub(crate) fn share_blocks(&mut self, blocks: &Blocks) {
        self.qdisc.share_blocks(blocks);
    }
    /// The side with classes.
    pub fn classes(&self) -> Option<&dyn Classful> {
        self.qdisc.classes()
    }
    /// The side with classes.
    pub fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        self.qdisc.classes_mut()
    }
    /// The kind's name.
    pub fn kind(&self) -> &'static str {
        self.qdisc.kind()
    }
    /// Tells this qdisc and everything below it of a changed device.
    pub fn set_device(&mut self, device: &Device, cx: &mut Cx<'_>) {
        self.counted(cx, |qdisc, cx| {
            qdisc.set_device(device, cx);
            if let Some(classes) = qdisc.classes_mut() {
                classes.children_mut(&mut |_, child| child.set_device(device, cx));
            }
        });
    }
    /// The qdisc itself.
    pub fn qdisc(&self) -> &dyn Qdisc {
        &*self.qdisc
    }
    pub(crate) fn equalizer_holds(&mut self, packets: u32) {
        self.qdisc.equalizer_holds(packets);
    }
}
