//! The contract at the centre: what every queueing discipline does and promises.
//!
//! - `dequeue` returning `None` does not mean empty: with `qlen > 0`, `next_wakeup()` is then later than `now`.
//!   An inner qdisc answers with the earliest of its own and its children's. (cbq may set no timer, as in Linux, where
//!   the next dequeue, at once, would give something; whoever comes next makes it.)
//! - A packet leaves by one door: returned once, or entered on the ledger once with its reason (`change` and
//!   `reset` too). Nothing else drops.
//! - An inner qdisc reads `qlen` and `backlog` from its children, or follows them by the difference around each
//!   call where summing would cost more than O(1); [`Classful::reduced`] tells it of changes made behind its back.
//! - `peek` may do a dequeue's work; the next `dequeue` returns that very packet.
//! - Children are [`Node`]s: a qdisc with its handle, parent and size table.
//!
//! Follows: linux v6.12 `include/net/sch_generic.h` `struct Qdisc_ops`, `struct Qdisc_class_ops`.

use crate::act::Actions;
use crate::charge::Charged;
use crate::cls::{BlockId, Blocks, Filters, Gone, SharedBlock};
use crate::ledger::Ledger;
use crate::node::Node;
use penstock_model::rtnetlink::ClassDump;
use penstock_model::{Handle, Kernel, KernelError, Options, PschedClock, Rng, Stats, Time};
use penstock_packet::{Packet, Skb};

/// What a caller lends for one call.
pub struct Cx<'a> {
    /// The present moment; never earlier than at the call before.
    pub now: Time,
    /// The device's dice.
    pub rng: &'a mut Rng,
    /// Where dropped packets go.
    pub drops: &'a mut Ledger,
    /// The machine's actions.
    pub acts: &'a mut Actions,
}

/// What a qdisc may know of the device it stands on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device {
    /// Interface index, from 1.
    pub ifindex: u32,
    /// MTU, bytes, without the link header.
    pub mtu: u32,
    /// `dev->hard_header_len`: 14 for Ethernet.
    pub hard_header_len: u32,
    /// txqueuelen, packets.
    pub tx_queue_len: u32,
    /// Transmit queues, 1 at least, all in use.
    pub tx_queues: u32,
    /// Its speed, Mbit/s, where it tells one.
    pub speed_mbit: Option<u32>,
    /// The kernel it runs.
    pub kernel: Kernel,
    /// What that measures time with.
    pub clock: PschedClock,
    /// Timer interrupts of that per second, dividing a million. Default [`Kernel::hz`].
    pub hz: u32,
}

impl Device {
    /// `skb->len` as this device counts it, of a frame that is `len` bytes long with an Ethernet header.
    #[inline]
    pub const fn counted(&self, len: u32) -> u32 {
        // What is shorter than Ethernet's is put on by the driver (PPP's 4 bytes).
        let header = if self.hard_header_len < 14 { 0 } else { self.hard_header_len };
        (len + header).saturating_sub(14)
    }
    /// `psched_mtu`: MTU and link header.
    pub const fn psched_mtu(&self) -> u32 {
        self.mtu + self.hard_header_len
    }
    /// `netif_is_multiqueue`.
    pub const fn is_multiqueue(&self) -> bool {
        self.tx_queues > 1
    }
    /// A refusal in this kernel's words: 2.6.35 knows no sentences, only the errno.
    pub fn refusal(&self, errno: i32, sentence: &str) -> KernelError {
        match self.kernel {
            Kernel::V2_6_35 => KernelError::errno(errno),
            Kernel::V6_12 | Kernel::V7_2 => KernelError::new(errno, sentence),
        }
    }
}

/// What a qdisc is told when it is made: `struct Qdisc` as `qdisc_create` and `qdisc_create_dflt` fill it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Init {
    /// The device it will stand on.
    pub device: Device,
    /// Its handle; [`Handle::UNSPEC`] for a default child nobody named.
    pub handle: Handle,
    /// [`Handle::ROOT`] or the class it will hang in.
    pub parent: Handle,
}

/// The answer to an enqueue: `NET_XMIT_*`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Xmit {
    /// Queued.
    Success,
    /// Dropped; the sender is told (`NET_XMIT_DROP`).
    Drop,
    /// Queued or not, some packet was dropped (`NET_XMIT_CN`).
    Cn,
    /// Taken by a classifier's action (`NET_XMIT_SUCCESS | __NET_XMIT_STOLEN`); counts as sent for the caller.
    Stolen,
    /// Refused for want of a class (`NET_XMIT_SUCCESS | __NET_XMIT_BYPASS`): the sender is told nothing.
    Bypass,
}

impl Xmit {
    /// `net_xmit_drop_count` of an answer other than success: whether a parent counts a drop for it. What an
    /// action stole counts for nobody.
    #[inline]
    pub const fn counts_as_drop(self) -> bool {
        !matches!(self, Xmit::Success | Xmit::Stolen)
    }
}

/// Which timers an interrupt lets go off (`__hrtimer_run_queues`): those whose slack has begun, up to the first one, in the order of
/// their latest moments, whose slack has not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// The interrupt's moment.
    pub now: Time,
    /// The latest moment of the first timer that does not go off.
    pub before: Time,
}

impl Due {
    /// Whether a timer goes off that may from `soft` on and must at `hard`.
    #[inline]
    pub fn has(self, soft: Time, hard: Time) -> bool {
        soft <= self.now && hard < self.before
    }
    /// Whether timers go off at their very moments: no interrupt lets them, which is a nanosecond late.
    #[inline]
    pub fn is_on_time(self) -> bool {
        self.before == Time::MAX
    }
}

impl From<Time> for Due {
    /// Every timer whose slack has begun.
    fn from(now: Time) -> Due {
        Due { now, before: Time::MAX }
    }
}

/// What a qdisc writes into the room that all qdiscs share in a packet (`qdisc_skb_cb`, `data`) as it takes one: `sfb` has its hashes there, and
/// takes whatever it finds for them when the packet leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scribble {
    /// Nothing.
    Nothing,
    /// The time in units of 1024 ns, 32 bits (`codel_set_enqueue_time`).
    Codel,
    /// The same, and the memory that the packet takes, since 7.2 none of one that belongs to a socket (`fq_codel_enqueue`).
    CodelAndMemory {
        /// 7.2 or later.
        since_7: bool,
    },
    /// The time in ns, 64 bits (`cobalt_set_enqueue_time`, `fq_enqueue`, `dualpi2_skb_cb`).
    Nanoseconds,
    /// The time in ticks of 64 ns, 64 bits (`pie_set_enqueue_time`).
    Ticks,
    /// A byte of 0 (`choke_enqueue`).
    Byte,
}

impl Scribble {
    /// What `sfb` finds then in place of its two hashes.
    pub(crate) fn over(self, hashes: [u32; 2], skb: &Skb, now: Time) -> [u32; 2] {
        let ns = now.as_ns() as u64;
        let wide = |value: u64| [value as u32, (value >> 32) as u32];
        match self {
            Scribble::Nothing => hashes,
            Scribble::Codel => [(ns >> 10) as u32, hashes[1]],
            Scribble::CodelAndMemory { since_7 } => {
                [(ns >> 10) as u32, crate::sch::fq_codel::memory_of(skb, since_7)]
            }
            Scribble::Nanoseconds => wide(ns),
            Scribble::Ticks => wide(ns >> 6),
            Scribble::Byte => [hashes[0] & !0xff, hashes[1]],
        }
    }
}

/// A queueing discipline.
pub trait Qdisc: Send {
    /// Takes a packet.
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit;
    /// A packet passes by, as if it had been taken and given on at once: nothing waits here, and nothing else would come of it
    /// (`TCQ_F_CAN_BYPASS`). `false`: it has to be [`enqueue`](Qdisc::enqueue)d, and nothing was done.
    fn pass_by(&mut self, _: &Skb) -> bool {
        false
    }
    /// What the filters at a device's hook make of a packet that passes it, coming in or going out; `None`: it goes on. Only
    /// `ingress` and `clsact` have any.
    fn pass(&mut self, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Gone> {
        let _ = (skb, cx);
        None
    }
    /// Gives the next packet that may go now.
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet>;
    /// The packet the next `dequeue` will give.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet>;
    /// The watchdogs, as a value: the earliest timer that is set, here or below. One that is set goes off, even where
    /// what it was set for has left in the meantime, unless it is set anew before (`qdisc_watchdog_schedule_ns`).
    fn next_wakeup(&self) -> Option<Time> {
        None
    }
    /// Whether [`Qdisc::next_wakeup`] never says anything else than `None`; it does not change.
    fn never_wakes(&self) -> bool {
        false
    }
    /// Each timer that is set, here and below: from when on it may go off with another of the machine's, and when it goes off by
    /// itself. The two differ where one is set with slack (fq).
    fn timers(&self, see: &mut dyn FnMut(Time, Time)) {
        if let Some(classes) = self.classes() {
            classes.children(&mut |_, child| child.timers(see));
        }
    }
    /// From when on the first of these may go off with another.
    fn first_soft(&self) -> Option<Time> {
        let mut first = None;
        self.timers(&mut |soft, _| first = Some(first.map_or(soft, |f: Time| f.min(soft))));
        first
    }
    /// The timers that are due, here and below, have gone off and are set no longer. The dequeue they ask for follows.
    fn expire(&mut self, due: Due) {
        if let Some(classes) = self.classes_mut() {
            classes.children_mut(&mut |_, child| child.expire(due));
        }
    }
    /// Its timers that ask for no dequeue when they go off (the controller of dualpi2); not those below.
    fn chores(&self, see: &mut dyn FnMut(Time)) {
        let _ = see;
    }
    /// Those that are due by `now` go off. A qdisc that is never told so takes them to go off on time; one that has been told once waits to
    /// be told from then on: whoever knows how late interrupts are tells it at each.
    fn do_chores(&mut self, now: Time) {
        let _ = now;
    }
    /// It stands in a transmit queue of its own, as the device's one qdisc does where there is one queue: a packet may pass by it when it is empty.
    fn stands_alone(&mut self) {}
    /// Of several transmit queues, the next has its turn: the card has taken a packet.
    fn next_queue(&mut self) {}
    /// The transmit queue that is a class of this is to be run (`netif_schedule_queue`).
    fn kick(&mut self, class: Handle) {
        let _ = class;
    }
    /// Drops one packet, of which the kind says which (`Qdisc_ops.drop`, until Linux 4.6; only cbq's strategy `drop` asks
    /// for it). Whether it did.
    fn drop_one(&mut self, cx: &mut Cx<'_>) -> bool {
        let _ = cx;
        false
    }
    /// Whether it, or what it holds and asks, takes note of a dequeue that finds it empty (the idle time of RED, CoDel's end of dropping): then the card asks once more when the
    /// last frame has left. The same for the whole life of the qdisc.
    fn watches_idle(&self) -> bool {
        false
    }
    /// How many packets wait at the link equalizer whose slave this is (`teql0`).
    fn equalizer_holds(&mut self, packets: u32) {
        let _ = packets;
    }
    /// Whether a timer of this kind's own, set in ticks of the machine's clock, goes off on the one at `tick`.
    fn ticks_at(&self, tick: Time) -> bool {
        let _ = tick;
        false
    }
    /// How often a dump of it looks at the clock.
    fn dump_looks(&self) -> u32 {
        0
    }
    /// Whether those above are told of packets that a change drops (`qdisc_tree_reduce_backlog`). Where not, they count them as queued ever after.
    fn tells_of_change(&self) -> bool {
        true
    }
    /// Whether a packet may take the place of another without a word to those above of how long each is: they go on counting the other's bytes as queued.
    /// The same for the whole life of the qdisc.
    fn displaces_untold(&self) -> bool {
        false
    }
    /// Whether it may drop packets as it is asked for one without a word to those above (`qdisc_tree_reduce_backlog`): they go on counting them as
    /// queued. The same for the whole life of the qdisc.
    fn drops_untold(&self) -> bool {
        false
    }
    /// What it writes over the hashes that an `sfb` above has noted in a packet it takes.
    fn scribbles(&self) -> Scribble {
        Scribble::Nothing
    }
    /// Sets parameters from `options` (`None`: none given). Nothing is changed when it fails.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError>;
    /// Empties the queue; counters stay.
    fn reset(&mut self, cx: &mut Cx<'_>);
    /// Counters, with `qlen` and `backlog` as of now.
    fn stats(&self) -> Stats;
    /// Packets queued, children's included. Must be O(1).
    fn qlen(&self) -> u32;
    /// Shows each packet that is held here itself and not in a child: as it lies there, whatever `qlen` says.
    fn packets(&self, see: &mut dyn FnMut(&Skb));
    /// Bytes queued, children's included, also where `stats` shows none or others (cbq).
    fn held(&self) -> u32 {
        self.stats().backlog
    }
    /// Bytes that those above are told it has lost when it is emptied (`qdisc_purge_queue`): its own counter, also where that has
    /// drifted from what it holds.
    fn told(&self) -> u32 {
        self.held()
    }
    /// Where a device keeps its traffic classes here (`netdev_set_prio_tc_map`): the transmit queues of the one that a priority
    /// belongs to, the first and how many. `None`: there are no classes, and all queues are one's.
    fn queues_of(&self, priority: u32) -> Option<(u16, u16)> {
        let _ = priority;
        None
    }
    /// Parameters as the kernel dumps them.
    fn dump(&self) -> Options;
    /// The same where what is shown moves with time.
    fn dump_at(&self, now: Time) -> Options {
        let _ = now;
        self.dump()
    }
    /// The kind's own counters as the kernel dumps them.
    fn xstats(&self, now: Time) -> Option<Options> {
        let _ = now;
        None
    }
    /// Packets that it has marked with ECN's congestion mark by its own count; `None` for a kind that never marks.
    fn marks(&self) -> Option<u64> {
        None
    }
    /// The sentence 6.12 adds to the last change that succeeded (or to the making), for tc to print as a warning.
    fn take_warning(&mut self) -> Option<String> {
        None
    }
    /// The device's traffic classes, which mqprio and taprio set and show, are gone because another of these was
    /// destroyed; `map`: and with them which priority belongs to which (`netdev_reset_tc`).
    fn forget_traffic_classes(&mut self, map: bool) {
        let _ = map;
    }
    /// It has just been made: those of the machine's shared blocks of filters that its options name are there to be
    /// held (red's `qevent … block`).
    fn share_blocks(&mut self, blocks: &Blocks) {
        let _ = blocks;
    }
    /// What of its present options is not simulated although its kind is.
    fn unsimulated(&self) -> Option<&'static str> {
        None
    }
    /// The device changed its MTU or its txqueuelen. Most kinds look at these only when they are made.
    fn set_device(&mut self, device: &Device, cx: &mut Cx<'_>) {
        let _ = (device, cx);
    }
    /// The side with classes, where there is one.
    fn classes(&self) -> Option<&dyn Classful> {
        None
    }
    /// The side with classes, where there is one.
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        None
    }
    /// The kind's name.
    fn kind(&self) -> &'static str;
}

/// The side of a qdisc that has classes: `struct Qdisc_class_ops`.
/// Class ids are whole (`1:10`), the qdisc's own handle in the upper half.
/// What a kind leaves to the default here it does not have: the kernel answers EOPNOTSUPP where an operation is NULL.
pub trait Classful {
    /// Whether there is such a class.
    fn find(&self, classid: Handle) -> bool;
    /// Puts `new` (`None`: the kind's default) into a class and gives what was there. The tree has emptied that
    /// before, and told of it by [`Classful::reduced`].
    ///
    /// # Errors
    /// ENOENT for an unknown class; what the kind refuses. `new` is dropped then: it has never held a packet.
    fn graft(
        &mut self,
        classid: Handle,
        new: Option<Node>,
        cx: &mut Cx<'_>,
    ) -> Result<Option<Node>, KernelError> {
        let _ = (classid, new, cx);
        Err(KernelError::errno(KernelError::EOPNOTSUPP))
    }
    /// What its classes show and what was counted beside that, where classes stand above others.
    fn charged(&self) -> Vec<Charged> {
        Vec::new()
    }
    /// The overlimits that the qdisc shows, and those of all classes there are and were: where it counts one when a class does.
    fn overlimits(&self) -> Option<(u32, u32)> {
        None
    }
    /// The qdisc in a class.
    fn leaf(&self, classid: Handle) -> Option<&Node> {
        let _ = classid;
        None
    }
    /// The qdisc in a class.
    fn leaf_mut(&mut self, classid: Handle) -> Option<&mut Node> {
        let _ = classid;
        None
    }
    /// The qdisc that a class holds, also where it has become a parent and shows none (hfsc): by its handle it is still found.
    fn held_by(&self, classid: Handle) -> Option<&Node> {
        self.leaf(classid)
    }
    /// The same, to change it.
    fn held_by_mut(&mut self, classid: Handle) -> Option<&mut Node> {
        self.leaf_mut(classid)
    }
    /// Shows every child once, with the class it is in.
    fn children(&self, visit: &mut dyn FnMut(Handle, &Node)) {
        let _ = visit;
    }
    /// The same, to change them.
    fn children_mut(&mut self, visit: &mut dyn FnMut(Handle, &mut Node)) {
        let _ = visit;
    }
    /// The qdisc in a class lost packets outside of this qdisc's calls (a `change` or a graft below): corrects
    /// `qlen` and `backlog`, counts the packets as drops where the kernel does (6.12), deactivates the class if its
    /// qdisc is empty now (`qdisc_tree_reduce_backlog`, `qlen_notify`). Called after the fact, innermost first.
    fn reduced(&mut self, classid: Handle, packets: u32, bytes: u32) {
        let _ = (classid, packets, bytes);
    }
    /// Creates (`classid` not found, or [`Handle::UNSPEC`] to have an id chosen) or changes a class; answers its
    /// id. `parent` is [`Handle::ROOT`], [`Handle::UNSPEC`] or a whole id.
    ///
    /// # Errors
    /// The kernel's errno and sentence; EOPNOTSUPP where classes are fixed.
    fn change_class(
        &mut self,
        parent: Handle,
        classid: Handle,
        options: Option<&Options>,
        cx: &mut Cx<'_>,
    ) -> Result<Handle, KernelError> {
        let _ = (parent, classid, options, cx);
        Err(KernelError::errno(KernelError::EOPNOTSUPP))
    }
    /// Has a class's rate estimated from now on (`gen_replace_estimator`); kinds that estimate none do nothing.
    ///
    /// # Errors
    /// EINVAL for an interval or a weight that none has.
    fn estimate(&mut self, classid: Handle, spec: (i8, u8), cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let _ = (classid, spec, cx);
        Ok(())
    }
    /// The sentence 6.12 adds to the last change that succeeded, for tc to print as a warning.
    fn take_warning(&mut self) -> Option<String> {
        None
    }
    /// Deletes a class, its filters and the qdisc in it; what that held goes on the ledger.
    ///
    /// # Errors
    /// EBUSY for a class in use, ENOENT for none, EOPNOTSUPP where classes are fixed.
    fn delete_class(&mut self, classid: Handle, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let _ = (classid, cx);
        Err(KernelError::errno(KernelError::EOPNOTSUPP))
    }
    /// Whether it counts as drops what those in its classes refuse.
    fn counts_refusals(&self) -> bool {
        true
    }
    /// Whether the classes are the device's transmit queues (`TCQ_F_MQROOT`): no rate is estimated here, and those below
    /// may have size tables.
    fn queue_root(&self) -> bool {
        false
    }
    /// Whether it fills its transmit queues itself, and not with the device's default.
    fn has_own_queues(&self) -> bool {
        false
    }
    /// The sentence of a kind that lets nobody put another qdisc into a class (EOPNOTSUPP).
    fn no_graft(&self) -> Option<&'static str> {
        None
    }
    /// Whether the device is stopped while a class gets another qdisc, which empties all its queues.
    fn stops_device(&self) -> bool {
        self.queue_root()
    }
    /// All classes in the order the kernel walks them.
    fn walk(&self, now: Time, visit: &mut dyn FnMut(ClassDump)) {
        let _ = (now, visit);
    }
    /// tc has been shown the classes: what the kernel notes of that.
    fn shown(&self) {}
    /// Whether the walk ends with a class the kernel cannot show: the classes of qdiscs after this one are then not
    /// shown either (`tc_dump_tclass_root`).
    fn ends_dump(&self) -> bool {
        false
    }

    /// The filters of this qdisc and of its classes, where it takes any.
    fn filters(&self) -> Option<&Filters> {
        None
    }
    /// The same, to change them.
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        None
    }
    /// `tcf_block`: which filters hang on a class, or on the qdisc itself ([`Handle::UNSPEC`]). `None`: the
    /// class takes no filters.
    fn block(&self, classid: Handle) -> Option<BlockId> {
        let _ = classid;
        None
    }
    /// What 6.12 says where a class takes no filters although the qdisc does.
    fn no_block(&self) -> &'static str {
        ""
    }
    /// The shared block that holds a class's filters instead.
    fn shared_block(&self, classid: Handle) -> Option<SharedBlock> {
        let _ = classid;
        None
    }
    /// Whether the qdisc itself is one of its classes, whose filters are found where classes are walked over (`hfsc_walk`).
    fn root_is_class(&self) -> bool {
        false
    }
    /// `bind_tcf`: a filter (on `parent`) points at this class from now on. Answers the class in this kind's own
    /// numbering, which `classify` gives back with each hit; 0 where there is no such class.
    fn bind(&mut self, parent: Handle, classid: Handle) -> u32 {
        let _ = (parent, classid);
        0
    }
    /// `unbind_tcf`: the opposite.
    fn unbind(&mut self, class: u32) {
        let _ = class;
    }
}
