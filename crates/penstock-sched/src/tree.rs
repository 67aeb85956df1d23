//! One device's tree of queueing disciplines, and what `tc` asks of it.
//!
//! Follows: linux v6.12 `net/sched/sch_api.c` `tc_modify_qdisc`, `tc_get_qdisc`, `qdisc_graft`, `tc_ctl_tclass`,
//! `tc_dump_qdisc_root`, `qdisc_tree_reduce_backlog`, `net/sched/cls_api.c` `__tcf_qdisc_find`; the same functions of
//! linux v2.6.35.
//! Differs: in 2.6.35 a qdisc could be put under a second parent with `replace … handle` of one that exists; here, as
//! in Linux since 6.6, that is refused with EINVAL. Options of a class that name another kind than its qdisc count as none;
//! the kernel reads their bytes as its own.

mod account;
mod class;
mod filter;
mod qdisc;
mod unsimulated;

pub use account::Miscount;
pub use unsimulated::Unsimulated;

use crate::cls::{Blocks, Filters};
use crate::node::{Node, Shown};
use crate::qdisc::{Classful, Cx, Device, Due, Init, Xmit};
use crate::sch::noop::Noop;
use crate::sch::sfq::hash::Key;
use crate::sch::{self, KindSpec};
use penstock_model::rtnetlink::{ClassDump, QdiscDump};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::headers::ETH_HLEN;
use penstock_packet::{Gso, Packet, Skb};
use std::collections::BTreeMap;

/// Where a qdisc with a handle is, other than the root.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The class it is in.
    parent: Handle,
}

/// What a qdisc has counted, and which it is.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    /// Kind.
    pub kind: &'static str,
    /// Its handle.
    pub handle: Handle,
    /// [`Handle::ROOT`] or the class it is in.
    pub parent: Handle,
    /// Counters, with `qlen` and `backlog` as of now.
    pub stats: Stats,
    /// Packets it has marked by its own count; `None` for a kind that never marks.
    pub marks: Option<u64>,
}

/// A device's qdiscs.
#[repr(C)]
pub struct Tree {
    // With each packet, in this order: what lies together comes into the cache together.
    root: Node,
    device: Device,
    /// What stands at the ingress hook.
    ingress: Option<Node>,
    // The others.
    /// Whether the device needs no queue (`IFF_NO_QUEUE`).
    no_queue: bool,
    /// The kind of `net.core.default_qdisc`.
    default: &'static KindSpec,
    /// Whether the device is up. One that is down has `noop` where nobody put anything.
    up: bool,
    /// Whether anything was ever put there: the kernel's answers to a deletion tell.
    ingress_queue: bool,
    /// The machine's shared blocks of filters.
    blocks: Blocks,
    /// What packets are hashed with to choose a transmit queue; drawn with the first that needs it.
    queue_key: Option<Key>,
    /// The queues that the one processor sends on, where `xps_cpus` says so, in the order of the writes.
    xps: Vec<u16>,
    places: BTreeMap<Handle, Place>,
    sequence: u64,
    auto_handle: u32,
    warning: Option<String>,
}

/// Most qdiscs above one another in 6.12.
const DEPTH_MAX: usize = 7;
/// The first of the handles that the kernel chooses, `8000:`, is never given.
const AUTO_HANDLE: u32 = 0x8000_0000;
/// txqueuelen where nobody says anything else.
const DEFAULT_TX_QUEUE_LEN: u32 = 1000;

type Answer<T = ()> = Result<T, KernelError>;

impl Tree {
    /// A device just up: with the kernel's default, pfifo_fast with handle `0:`.
    pub fn new(device: Device) -> Tree {
        let mut tree = Tree { up: true, ..Tree::down(device, false) };
        tree.put_root(default_root(&device));
        tree
    }
    /// A device that needs no queue (`IFF_NO_QUEUE`: veth) in 6.12: with `noqueue`.
    pub fn without_queue(device: Device) -> Tree {
        let mut tree = Tree { up: true, ..Tree::down(device, true) };
        tree.put_root(no_queue(&device));
        tree
    }
    /// A device just made that has never been up: with `noop`, which is not shown.
    pub fn down(device: Device, no_queue: bool) -> Tree {
        Tree {
            device,
            ingress: None,
            ingress_queue: false,
            blocks: Blocks::new(),
            queue_key: None,
            xps: Vec::new(),
            no_queue,
            default: &sch::pfifo_fast::SPEC,
            up: false,
            root: Node::noop(),
            places: BTreeMap::new(),
            sequence: 0,
            auto_handle: AUTO_HANDLE,
            warning: None,
        }
    }
    /// Lets it know the machine's shared blocks of filters. Whoever has several devices does so with each.
    pub fn share_blocks(&mut self, blocks: &Blocks) {
        self.blocks = blocks.clone();
    }
    /// What stands at the ingress hook.
    #[inline]
    pub fn ingress(&self) -> Option<&Node> {
        self.ingress.as_ref()
    }
    /// `dev_activate` and `dev_deactivate`: a device that comes up gets the default qdisc where it has none yet; one that
    /// goes down keeps its qdiscs, without their packets.
    pub fn set_up(&mut self, up: bool, cx: &mut Cx<'_>) {
        self.up = up;
        if !up {
            self.root.reset(cx);
        } else if self.root.is_noop() {
            let root = self.default_node(cx);
            self.put_root(root);
        }
    }
    /// The device goes: all qdiscs, classes and filters are let go of.
    pub fn clear(&mut self, cx: &mut Cx<'_>) {
        self.up = false;
        // The root may always be replaced.
        let _ = self.graft(Handle::ROOT, None, cx);
        if self.ingress.is_some() {
            let _ = self.graft(Handle::INGRESS, None, cx);
        }
    }
    /// Sets the kind a device gets that needs a queue and has none: `net.core.default_qdisc`. What stands stays.
    pub fn set_default(&mut self, kind: &'static KindSpec) {
        self.default = kind;
    }
    fn put_root(&mut self, mut root: Node) {
        Tree::count(&mut root, &mut self.sequence);
        self.root = root;
    }
    /// Has the default qdisc made anew, where none but it stands.
    pub fn renew_default(&mut self, cx: &mut Cx<'_>) {
        if self.up && self.root.handle == Handle::UNSPEC {
            self.root.reset(cx);
            let root = self.default_node(cx);
            self.put_root(root);
        }
    }
    /// `attach_default_qdiscs`.
    fn default_node(&self, cx: &mut Cx<'_>) -> Node {
        let device = &self.device;
        if device.kernel == Kernel::V2_6_35 {
            return default_root(device);
        }
        if self.no_queue {
            return no_queue(device);
        }
        if device.is_multiqueue() {
            let mut root = default_root(device);
            self.fill_queues(&mut root, cx);
            return root;
        }
        let init = Init { device: *device, handle: Handle::UNSPEC, parent: Handle::ROOT };
        // "default qdisc fail, fallback to noqueue": pfifo_fast where txqueuelen is 0.
        match (self.default.build)(&init, None, cx) {
            Ok(qdisc) if device.tx_queue_len > 0 || self.default.id != "pfifo_fast" => {
                Node::new(&init, qdisc)
            }
            _ => no_queue(device),
        }
    }
    /// `get_default_qdisc_ops`: puts the kind of `net.core.default_qdisc` into the transmit queues of a root just made.
    fn fill_queues(&self, root: &mut Node, cx: &mut Cx<'_>) {
        let device = self.device;
        if self.default.id == sch::pfifo_fast::SPEC.id || device.kernel == Kernel::V2_6_35 {
            return;
        }
        let fills = |classes: &&mut dyn Classful| classes.queue_root() && !classes.has_own_queues();
        let Some(classes) = root.classes_mut().filter(fills) else { return };
        let mut queues = Vec::new();
        classes.children(&mut |class, _| queues.push(class));
        for class in queues {
            let init = Init { device, handle: Handle::UNSPEC, parent: class };
            let Ok(qdisc) = (self.default.build)(&init, None, cx) else { continue };
            let mut node = Node::new(&init, qdisc);
            node.shown = Shown::Always;
            // The queue's class is there.
            let _ = classes.graft(class, Some(node), cx);
        }
    }
    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }
    /// Changes MTU or txqueuelen. Most qdiscs look at these only when they are made; but in 6.12 another txqueuelen
    /// stops the device for a moment (`dev_qdisc_change_tx_queue_len`), which empties the whole tree, as it does no more in 7.2.
    pub fn set_device(&mut self, device: Device, cx: &mut Cx<'_>) {
        if device.kernel == Kernel::V6_12 && device.tx_queue_len != self.device.tx_queue_len {
            self.root.reset(cx);
        }
        self.device = device;
        self.root.set_device(&device, cx);
    }
    /// The last handle the kernel chose. One counter serves all devices of a machine: whoever has several hands it
    /// from tree to tree.
    pub fn auto_handle(&self) -> u32 {
        self.auto_handle
    }
    /// The sentence the kernel added to the last request that succeeded, without tc's `Warning: `. Taken once.
    pub fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }
    /// Sets what [`Tree::auto_handle`] gives.
    pub fn set_auto_handle(&mut self, handle: u32) {
        self.auto_handle = handle;
    }

    /// Takes a packet from the network layer: `__dev_xmit_skb`. Sets its `pkt_len`.
    #[inline]
    pub fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        packet.pkt_len = self.device.counted(packet.initial_pkt_len());
        self.count_segments(&mut packet);
        packet.queued = cx.now;
        (packet.tc.at_ingress, packet.tc.dev) = (false, self.device.ifindex);
        cx.acts.at_device(&self.device);
        if self.device.is_multiqueue() && packet.rare().queue_chosen {
            packet.rare_mut().queue_chosen = false;
        }
        if let Some(hook) = &mut self.ingress
            && let Some(gone) = hook.pass(&mut packet, cx)
        {
            //= linux v6.12 dev.c sch_handle_egress: NET_XMIT_DROP where a qdisc answers with a bypass.
            let answer = gone.leave(packet, cx);
            return if answer == Xmit::Bypass { Xmit::Drop } else { answer };
        }
        if self.device.is_multiqueue() {
            self.choose_queue(&mut packet, cx);
        }
        let answer = self.root.enqueue(packet, cx);
        if cx.drops.has_again() {
            self.enqueue_again(cx);
        }
        answer
    }
    /// A packet passes by the root, as if it had been put in and taken out at once: [`Qdisc::pass_by`](crate::Qdisc::pass_by). `false`: nothing
    /// was done but what [`enqueue`](Tree::enqueue) does first.
    #[inline]
    pub fn pass_by(&mut self, packet: &mut Skb, now: Time) -> bool {
        if self.ingress.is_some() || self.device.is_multiqueue() {
            return false;
        }
        packet.pkt_len = self.device.counted(packet.initial_pkt_len());
        self.count_segments(packet);
        packet.queued = now;
        (packet.tc.at_ingress, packet.tc.dev) = (false, self.device.ifindex);
        self.root.pass_by(packet, now)
    }
    //= linux v7.2 net/core/dev.c qdisc_pkt_len_segs_init: the segments that a super-packet's sender has not counted are counted here.
    #[inline]
    fn count_segments(&self, packet: &mut Skb) {
        if packet.is_noted() {
            Tree::count_segments_of(self.device.kernel, packet);
        }
    }
    #[cold]
    fn count_segments_of(kernel: Kernel, packet: &mut Skb) {
        if kernel >= Kernel::V7_2
            && let Some(gso) = packet.gso()
            && !gso.counted
        {
            packet.rare_mut().gso = Some(Gso { counted: true, ..gso });
        }
    }
    /// `netdev_core_pick_tx`: the queue that a filter at the egress hook has chosen, else one of those of XPS (`get_xps_queue`), else one by the
    /// packet's hash (`skb_tx_hash`); the last two among those of its traffic class where there are any.
    fn choose_queue(&mut self, skb: &mut Skb, cx: &mut Cx<'_>) {
        let queues = self.device.tx_queues;
        let mut hash = |skb: &mut Skb| {
            let key = *self.queue_key.get_or_insert_with(|| Key::draw(cx.rng));
            let hash = key.hash_from_socket(skb);
            skb.rare_mut().hash = hash;
            hash
        };
        let chosen = skb.rare().queue_chosen;
        let queue = match (chosen, skb.rare().queue_mapping, skb.rare().queue_spread) {
            (true, queue, 0) => u32::from(queue),
            (true, first, spread) => u32::from(first) + hash(skb) % u32::from(spread),
            (false, ..) => {
                let of_class = self.root.qdisc().queues_of(skb.priority).filter(|&(_, count)| count > 0);
                let (first, count) = of_class.unwrap_or((0, queues as u16));
                // reciprocal_scale
                let scaled = |hash: u32, count: usize| ((u64::from(hash) * count as u64) >> 32) as usize;
                let of_xps = || self.xps.iter().filter(|q| (first..first + count).contains(q));
                match of_xps().count() {
                    0 if count > 1 => u32::from(first) + scaled(hash(skb), usize::from(count)) as u32,
                    0 => u32::from(first),
                    // The hash is only drawn where it decides.
                    1 => of_xps().next().map_or(0, |&q| u32::from(q)),
                    several => {
                        let at = scaled(hash(skb), several);
                        of_xps().nth(at).map_or(0, |&q| u32::from(q))
                    }
                }
            }
        };
        //= linux v6.12 include/linux/netdevice.h netdev_cap_txqueue
        let queue = if queue < queues { queue as u16 } else { 0 };
        if chosen || queue != skb.rare().queue_mapping {
            let rare = skb.rare_mut();
            (rare.queue_mapping, rare.queue_chosen) = (queue, false);
        }
    }
    /// The copies that a qdisc has made of a packet (netem's duplicates) go in at the root: at once, but with what the qdiscs above have
    /// to note of the packet itself behind them, where the kernel has that behind the copy.
    //= linux v6.12 net/sched/sch_netem.c netem_enqueue
    #[cold]
    fn enqueue_again(&mut self, cx: &mut Cx<'_>) {
        cx.drops.repeating = true;
        while let Some(copy) = cx.drops.take_again() {
            self.root.enqueue_again(copy, cx);
        }
        cx.drops.repeating = false;
    }
    /// Takes a packet from the wire: `sch_handle_ingress`. `None`: a filter's action has taken it. Its length counts from
    /// the network header until it is sent on.
    pub fn receive(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Option<Packet> {
        packet.tc.dev = self.device.ifindex;
        if std::mem::take(&mut packet.tc.skip_classify) {
            return Some(packet);
        }
        let Some(hook) = &mut self.ingress else { return Some(packet) };
        packet.tc.at_ingress = true;
        packet.pkt_len = packet.network_len();
        if self.device.kernel >= Kernel::V7_2
            && let Some(gso) = packet.gso()
        {
            // With the headers of the further segments, those of Ethernet left out, as it is received.
            packet.pkt_len += u32::from(gso.segs - 1) * (packet.segment_headers() - ETH_HLEN);
            Tree::count_segments_of(self.device.kernel, &mut packet);
        }
        let gone = hook.pass(&mut packet, cx);
        packet.tc.at_ingress = false;
        match gone {
            None => Some(packet),
            Some(gone) => {
                gone.leave(packet, cx);
                None
            }
        }
    }
    /// Gives the device the next packet that may go now.
    #[inline]
    pub fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let packet = self.root.dequeue(cx);
        // A card takes of its queues in turns; a device without one has taken all of a queue at once.
        if packet.is_some() && self.device.is_multiqueue() && !self.no_queue {
            self.root.next_queue();
        }
        if cx.drops.has_again() {
            self.enqueue_again(cx);
        }
        packet
    }
    /// When to ask again although [`Tree::dequeue`] gave nothing.
    #[inline]
    pub fn next_wakeup(&self) -> Option<Time> {
        self.root.next_wakeup()
    }
    /// Each timer that is set: from when on it may go off with another of the machine's, and when it goes off by itself
    /// ([`Qdisc::timers`](crate::Qdisc::timers)).
    pub fn timers(&self, see: &mut dyn FnMut(Time, Time)) {
        self.root.timers(see);
    }
    /// Whether a queue has a timer that goes off on the clock's tick at this moment: then an idle kernel has that tick.
    pub fn ticks_at(&self, tick: Time) -> bool {
        self.root.ticks_at(tick)
    }
    /// How often a dump of the qdiscs looks at the clock, of which whoever has a clock that notices must know.
    pub fn dump_looks(&self) -> u32 {
        self.root.dump_looks()
    }
    /// The clock has reached [`Tree::next_wakeup`], or another timer of the machine goes off: those that are due do too; of a moment
    /// alone, every one whose slack has begun. Ask [`Tree::dequeue`] then.
    pub fn expire(&mut self, due: impl Into<Due>) {
        self.root.expire(due.into());
    }
    /// Each timer that is set and asks for no dequeue when it goes off: the controller of dualpi2.
    pub fn chores(&self, see: &mut dyn FnMut(Time)) {
        self.root.chores(see);
    }
    /// A timer interrupt: those that are due go off ([`Qdisc::do_chores`](crate::Qdisc::do_chores)). To be told at every one, or never.
    pub fn do_chores(&mut self, now: Time) {
        self.root.do_chores(now);
    }
    /// Whether the root takes note of a dequeue that finds it empty, so that the card asks once more after its last frame.
    #[inline]
    pub fn watches_idle(&self) -> bool {
        self.root.watches_idle()
    }
    /// How many packets wait at the link equalizer whose slave the device is.
    pub fn equalizer_holds(&mut self, packets: u32) {
        self.root.equalizer_holds(packets);
    }
    /// Puts a queue that is not Linux's at the root, in place of what stands there; nothing of it is for `tc` to change.
    ///
    /// # Errors
    /// What the kind refuses, with its sentence.
    pub fn set_ns2_queue(&mut self, kind: &'static KindSpec, o: &Options, cx: &mut Cx<'_>) -> Answer {
        let init = Init { device: self.device, handle: Handle::UNSPEC, parent: Handle::ROOT };
        let made = (kind.build)(&init, Some(o), cx)?;
        self.root.reset(cx);
        self.put_root(Node::new(&init, made));
        Ok(())
    }
    /// Whether the one processor of a host sends on a queue: `/sys/class/net/DEV/queues/tx-N/xps_cpus`.
    //= linux v6.12 net/core/dev.c __netif_set_xps_queue
    pub fn set_xps(&mut self, queue: u16, on: bool) {
        match self.xps.iter().position(|&q| q == queue) {
            None if on => self.xps.push(queue),
            Some(at) if !on => {
                self.xps.swap_remove(at);
            }
            _ => {}
        }
    }
    /// Whether one qdisc stands before several transmit queues.
    pub fn shares_queues(&self) -> bool {
        self.device.is_multiqueue() && !self.root.classes().is_some_and(Classful::queue_root)
    }
    /// Packets queued.
    #[inline]
    pub fn qlen(&self) -> u32 {
        self.root.qlen()
    }
    #[cfg(test)]
    pub(crate) fn root_mut(&mut self) -> &mut Node {
        &mut self.root
    }
    /// The root qdisc.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// All qdiscs in the kernel's order: the root, then the others as its table holds them.
    pub fn dump_qdiscs(&self, now: Time) -> Vec<QdiscDump> {
        self.dump_all(false, now)
    }
    /// What a sample asks of the same, in the same order, with nothing made beside.
    pub fn counters(&self, now: Time) -> Vec<Counters> {
        self.each(false, |node, _| Counters {
            kind: node.kind(),
            handle: node.handle,
            parent: node.parent,
            stats: node.stats_at(now),
            marks: node.marks(),
        })
    }
    /// The same with those the kernel hides unless asked (`invisible`): the qdiscs it put into classes of itself.
    pub fn dump_invisible(&self, now: Time) -> Vec<QdiscDump> {
        self.dump_all(true, now)
    }
    fn dump_all(&self, invisible: bool, now: Time) -> Vec<QdiscDump> {
        self.each(invisible, |node, refcnt| QdiscDump {
            kind: node.kind(),
            handle: node.handle,
            parent: node.parent,
            refcnt,
            options: node.whole_dump(now),
            stats: node.stats_at(now),
            xstats: node.xstats(now),
        })
    }
    /// The options of one qdisc, as [`Tree::dump_qdiscs`] has them.
    pub fn options_of(&self, handle: Handle) -> Option<Options> {
        self.node(handle).map(|node| node.whole_dump(Time::ZERO))
    }
    /// All classes of all qdiscs in the kernel's order, looked at from outside: nobody notices.
    pub fn dump_classes(&self, now: Time) -> Vec<ClassDump> {
        self.dump_classes_of(now, &|_| true)
    }
    /// The same of the kinds that are wanted: others are not looked at.
    pub fn dump_classes_of(&self, now: Time, wanted: &dyn Fn(&str) -> bool) -> Vec<ClassDump> {
        let classes = |node: &Node, _: u32| {
            let mut dumps = Vec::new();
            let Some(classes) = node.classes().filter(|_| wanted(node.kind())) else { return (dumps, false) };
            classes.walk(now, &mut |dump| dumps.push(dump));
            (dumps, classes.ends_dump())
        };
        let mut all = Vec::new();
        for (dumps, last) in self.each(false, classes) {
            all.extend(dumps);
            if last {
                break;
            }
        }
        all
    }

    /// Those that `tc class show` has from the kernel: of the qdisc that `parent` names, or of all ([`Handle::UNSPEC`]). Such a
    /// show leaves its mark ([`Classful::shown`]).
    pub fn show_classes(&self, parent: Handle, now: Time) -> Vec<ClassDump> {
        let wanted = |qdisc: Handle| parent == Handle::UNSPEC || parent.qdisc() == qdisc;
        self.each(false, |node, _| {
            if let Some(classes) = node.classes().filter(|_| wanted(node.handle)) {
                classes.shown();
            }
        });
        let mut dumps = self.dump_classes(now);
        dumps.retain(|dump| wanted(dump.classid.qdisc()));
        dumps
    }

    // ---- finding ----

    /// What `look` says of each shown qdisc, in the kernel's order; `invisible`: also of those it hides unless asked.
    fn each<T>(&self, invisible: bool, look: impl Fn(&Node, u32) -> T) -> Vec<T> {
        let old = self.device.kernel == Kernel::V2_6_35;
        let mut found = Vec::new();
        below(&self.root, &mut |node| {
            let shown = match node.shown {
                _ if node.handle != Handle::UNSPEC => true,
                Shown::Always => !old,
                Shown::Invisible => invisible && !old,
                Shown::No => false,
            };
            if shown {
                let place = match old {
                    // A list, in the order they were made.
                    true => (0, node.sequence),
                    // A hash table of 16 buckets, the youngest first in each.
                    false => (node.handle.0.wrapping_mul(0x61c8_8647) >> 28, u64::MAX - node.sequence),
                };
                found.push((place, look(node, 1)));
            }
        });
        found.sort_by_key(|&(place, _)| place);
        let root = (!self.root.is_noop()).then(|| look(&self.root, self.root_references()));
        let ingress = self.ingress.as_ref().map(|node| look(node, 1));
        root.into_iter().chain(found.into_iter().map(|(_, said)| said)).chain(ingress).collect()
    }
    /// `refcnt` of the root: the device and each of its transmit queues hold it; those that give every queue a qdisc of
    /// its own are held by the device alone, and the default is made anew for each queue.
    fn root_references(&self) -> u32 {
        match self.root.classes() {
            Some(classes) if classes.queue_root() => 1,
            _ if self.root.handle == Handle::UNSPEC => 2,
            _ => self.device.tx_queues + 1,
        }
    }
    /// Counts a qdisc and those below it that nobody has counted.
    fn count(node: &mut Node, sequence: &mut u64) {
        if let Some(classes) = node.classes_mut() {
            classes.children_mut(&mut |_, child| Tree::count(child, sequence));
        }
        if node.sequence == 0 {
            *sequence += 1;
            node.sequence = *sequence;
        }
    }
    /// The classes on the way from the root to a qdisc; `None` for one that is not here.
    fn path(&self, handle: Handle) -> Option<Vec<Handle>> {
        let mut path = Vec::new();
        let mut at = handle;
        while at != self.root.handle {
            let place = self.places.get(&at)?;
            path.push(place.parent);
            at = place.parent.qdisc();
        }
        path.reverse();
        Some(path)
    }
    fn node(&self, handle: Handle) -> Option<&Node> {
        if handle == Handle::UNSPEC {
            return None;
        }
        let Some(path) = self.path(handle) else {
            return self.ingress.as_ref().filter(|node| node.handle == handle);
        };
        path.into_iter().try_fold(&self.root, |node, class| node.classes()?.held_by(class))
    }
    fn node_mut(&mut self, handle: Handle) -> Option<&mut Node> {
        if handle == Handle::UNSPEC {
            return None;
        }
        let Some(path) = self.path(handle) else {
            return self.ingress.as_mut().filter(|node| node.handle == handle);
        };
        path.into_iter().try_fold(&mut self.root, |node, class| node.classes_mut()?.held_by_mut(class))
    }
    /// Runs `work` on a qdisc and tells those above it what it has lost: `qdisc_tree_reduce_backlog`. What stands at the ingress
    /// hook has nobody above it.
    fn watched<T>(
        &mut self,
        handle: Handle,
        cx: &mut Cx<'_>,
        work: impl FnOnce(&mut Node, &mut Cx<'_>) -> T,
    ) -> Option<T> {
        let path = self.path(handle).unwrap_or_default();
        let node = self.node_mut(handle)?;
        let (qlen, backlog) = (node.qlen(), node.backlog());
        let (lost_before, before) = (node.door.lost, cx.drops.len());
        let result = work(node, cx);
        let kick = path.first().copied().filter(|_| cx.drops.is_scheduled());
        let lost = (cx.drops.len() - before) as u64;
        // Whoever of it worked: what it counted itself is in this.
        node.door.lost = lost_before + lost;
        let tells = node.qdisc().tells_of_change();
        let packets = if tells { qlen.saturating_sub(node.qlen()) } else { 0 };
        // What it counts may have drifted beyond 32 bits.
        let less = backlog.wrapping_sub(node.backlog());
        let bytes = if tells && (less as i32) > 0 { less } else { 0 };
        if packets > 0 || bytes > 0 || lost > 0 {
            reduce(&mut self.root, &path, (packets, bytes), lost);
        }
        if let Some(class) = kick {
            self.root.kick(class);
        }
        Some(result)
    }
}

/// What a device that needs no queue has.
fn no_queue(device: &Device) -> Node {
    let init = Init { device: *device, handle: Handle::UNSPEC, parent: Handle::ROOT };
    Node::new(&init, Box::new(sch::noqueue::Noqueue::default()))
}

/// The kernel's default for a device just up.
fn default_root(device: &Device) -> Node {
    let init = Init { device: *device, handle: Handle::UNSPEC, parent: Handle::ROOT };
    if device.is_multiqueue() {
        return Node::new(&init, Box::new(sch::mq::default(&init)));
    }
    if device.tx_queue_len == 0 {
        return Node::new(&init, Box::new(Noop));
    }
    Node::new(&init, Box::new(sch::pfifo_fast::PfifoFast::new(&init)))
}

/// Shows every qdisc below one.
fn below(node: &Node, visit: &mut dyn FnMut(&Node)) {
    let Some(classes) = node.classes() else { return };
    classes.children(&mut |_, child| {
        visit(child);
        below(child, visit);
    });
}

/// Handles of a qdisc and of those below it, as far as they have any.
fn handles_below(node: &Node) -> Vec<Handle> {
    let mut handles: Vec<Handle> = Some(node.handle).filter(|&h| h != Handle::UNSPEC).into_iter().collect();
    if let Some(classes) = node.classes() {
        classes.children(&mut |_, child| handles.extend(handles_below(child)));
    }
    handles
}

/// Tells every qdisc that holds a class of `path` that the qdisc in it lost packets, innermost first.
/// `lost`: how many the ledger has of them.
fn reduce(node: &mut Node, path: &[Handle], (packets, bytes): (u32, u32), lost: u64) {
    let Some((&class, rest)) = path.split_first() else { return };
    node.door.lost += lost;
    let Some(classes) = node.classes_mut() else { return };
    if let Some(child) = classes.leaf_mut(class) {
        reduce(child, rest, (packets, bytes), lost);
    }
    if packets > 0 || bytes > 0 {
        classes.reduced(class, packets, bytes);
    }
}

/// Takes the filters out of a qdisc, so that both can be worked on, and puts them back.
/// `None` for a qdisc that has none.
pub(crate) fn with_filters<T>(
    classes: &mut dyn Classful,
    work: impl FnOnce(&mut Filters, &mut dyn Classful) -> T,
) -> Option<T> {
    let mut taken = std::mem::take(classes.filters_mut()?);
    let result = work(&mut taken, classes);
    *classes.filters_mut()? = taken;
    Some(result)
}

#[cfg(test)]
mod tests;
