//! `red`: random early detection in front of one inner qdisc.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_red.c`.
//!
//! `adaptive` is taken and shown, and nothing adapts: `__red_change` sets the timer by the flags of `struct tc_red_qopt`, and tc has sent them in `TCA_RED_FLAGS` since 5.7.

use super::KindSpec;
use super::bfifo::Bfifo;
use super::one_class::OneClass;
use crate::aqm::ecn::set_ce;
use crate::aqm::red::{self, Action};
use crate::cls::{Blocks, Filters, Gone, SharedBlock, Verdict};
use crate::ledger::DropReason;
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::psched::TICK_NS;
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "red",
    about: "drop or mark at random, more often the longer the queue is on average",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Inner,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Managed,
        limit: Limit::Bytes,
        work_conserving: true,
    },
};

/// `TC_RED_ECN`: marks instead of dropping.
const ECN: u32 = 1;
/// `TC_RED_HARDDROP`: over the maximum nothing is marked.
const HARDDROP: u32 = 2;
/// `TC_RED_NODROP`: what cannot be marked passes.
const NODROP: u32 = 8;
/// `struct tc_red_qopt`'s numbers and the probability, as the option tables name them.
pub(super) const NUMBERS: [&str; 6] = ["min", "max", "ewma", "plog", "scell_log", "max_p"];

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let o = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
    let device = init.device;
    let parms = parms(o, device.kernel)?;
    let class = OneClass::new(SPEC.id, init.handle, &device);
    let blocks = ["early_drop", "mark"].map(|name| o.u32(name).unwrap_or(0));
    let mut made = Red {
        device,
        limit: 0,
        flags: 0,
        parms,
        blocks,
        held: [None, None],
        class,
        red: random(o, &device, None),
        counts: Counts::default(),
        stats: Stats::default(),
    };
    made.change(options, cx)?;
    Ok(Box::new(made))
}

/// `struct red_stats`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counts {
    pub prob_drop: u32,
    pub prob_mark: u32,
    pub forced_drop: u32,
    pub forced_mark: u32,
    pub pdrop: u32,
    pub other: u32,
}

impl Counts {
    /// Packets marked.
    pub fn marks(&self) -> u64 {
        self.prob_mark.wrapping_add(self.forced_mark).into()
    }
    /// As `struct tc_red_xstats`.
    pub fn xstats(&self) -> Options {
        Options::new()
            .with("marked", self.prob_mark.wrapping_add(self.forced_mark))
            .with("early", self.prob_drop.wrapping_add(self.forced_drop))
            .with("pdrop", self.pdrop)
            .with("other", self.other)
    }
}

/// A RED of a request whose numbers were checked, for a queue that has been empty since `idle`.
pub(super) fn random(o: &Options, device: &Device, idle: Option<Time>) -> red::Red {
    let [min, max, ewma, plog, scell_log, max_p] = NUMBERS.map(|name| o.u32(name).unwrap_or(0));
    let (wlog, plog, scell_log) = (ewma as u8, plog as u8, scell_log as u8);
    let (parms, unit_ns) = match device.kernel {
        Kernel::V2_6_35 => (None, TICK_NS as i64),
        Kernel::V6_12 | Kernel::V7_2 => (red::Params::new(min, max, wlog, plog, scell_log, max_p), 1000),
    };
    let parms = parms.unwrap_or_else(|| red::Params::old(min, max, wlog, plog, scell_log));
    let damping = red::Damping::new(o.bytes("stab").unwrap_or(&[]), scell_log, unit_ns);
    red::Red::new(parms, damping, idle)
}

/// A queue with RED in front.
pub struct Red {
    // Parameters
    device: Device,
    /// Bytes.
    limit: u32,
    flags: u32,
    /// In the order of [`NUMBERS`].
    parms: [u32; 6],
    /// The blocks of `qevent early_drop` and `qevent mark`; 0: none.
    blocks: [u32; 2],
    /// The same, held so that they are there.
    held: [Option<SharedBlock>; 2],
    // Variables
    class: OneClass,
    red: red::Red,
    counts: Counts,
    stats: Stats,
}

/// RED's numbers from a request, checked as this kernel checks them (`red_check_params`; 2.6.35 does not), and
/// as a dump gives them back.
///
/// # Errors
/// EINVAL.
pub(super) fn parms(o: &Options, kernel: Kernel) -> Result<[u32; 6], KernelError> {
    let [min, max, ewma, plog, scell_log, max_p] = NUMBERS.map(|name| o.u32(name).unwrap_or(0));
    if kernel == Kernel::V2_6_35 {
        let shown = |threshold: u32| threshold.wrapping_shl(ewma).wrapping_shr(ewma);
        return Ok([shown(min), shown(max), ewma, plog, scell_log, 0]);
    }
    let checked = red::Params::new(min, max, ewma as u8, plog as u8, scell_log as u8, max_p)
        .ok_or(KernelError::errno(KernelError::EINVAL))?;
    Ok([min, max, ewma, plog, scell_log, checked.max_p])
}

/// What [`mark`] says of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It is queued as it is.
    Passes,
    /// It is marked and queued.
    Marked,
    /// It is dropped early.
    Drops,
}

/// What RED's decision means for a packet under `flags`, counted. 2.6.35 knows no `nodrop`.
pub(super) fn mark(action: Action, flags: u32, skb: &mut Skb, counts: &mut Counts) -> Fate {
    let (drop, mark) = match action {
        Action::Pass => return Fate::Passes,
        Action::Prob => (&mut counts.prob_drop, &mut counts.prob_mark),
        Action::Hard => (&mut counts.forced_drop, &mut counts.forced_mark),
    };
    let hard = action == Action::Hard && flags & HARDDROP != 0;
    if flags & ECN != 0 && !hard {
        if set_ce(skb) {
            *mark = mark.wrapping_add(1);
            return Fate::Marked;
        }
        if flags & NODROP != 0 {
            return Fate::Passes;
        }
    }
    *drop = drop.wrapping_add(1);
    Fate::Drops
}

impl Red {
    fn is_old(&self) -> bool {
        self.device.kernel == Kernel::V2_6_35
    }
    fn child(&self) -> Option<&Node> {
        self.class.leaf(self.class.class())
    }
    /// `tcf_qevent_handle`: what the filters of a block say of a packet that is about to be dropped or was marked.
    fn event(&self, which: usize, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Gone> {
        let block = self.held[which].as_ref()?;
        match block.filters().classify(Filters::ROOT, skb, cx) {
            Verdict::Gone(gone) => Some(gone),
            _ => None,
        }
    }
    /// A packet that an event's filter has taken: the answer is never a success.
    fn taken(&mut self, gone: Gone, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        match gone.leave_counted(packet, &mut self.stats, cx) {
            Xmit::Bypass => Xmit::Cn,
            other => other,
        }
    }
    fn held(&self) -> u32 {
        self.child().map_or(0, Node::qlen_above)
    }
    /// Packets that the inner qdisc has dropped of itself: in 6.12 they count here too (`qdisc_tree_reduce_backlog`).
    #[cold]
    fn lost(&mut self, should: u32) {
        if !self.is_old() {
            self.stats.drops = self.stats.drops.wrapping_add(should.saturating_sub(self.held()));
        }
    }
}

impl Qdisc for Red {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        self.red.average(cx.now, self.child().map_or(0, Node::backlog));
        let action = self.red.action(cx.rng);
        if action != Action::Pass {
            self.stats.overlimits = self.stats.overlimits.wrapping_add(1);
        }
        match mark(action, self.flags, &mut packet, &mut self.counts) {
            Fate::Passes => {}
            Fate::Marked => {
                if let Some(gone) = self.event(1, &mut packet, cx) {
                    return self.taken(gone, packet, cx);
                }
            }
            Fate::Drops => {
                if let Some(gone) = self.event(0, &mut packet, cx) {
                    return self.taken(gone, packet, cx);
                }
                self.stats.drops = self.stats.drops.wrapping_add(1);
                cx.drops.drop(packet, DropReason::Early);
                return Xmit::Cn;
            }
        }
        let (len, dropped, before) = (packet.pkt_len, cx.drops.changes(), self.held());
        let Some(child) = self.class.child_mut() else { return Gone::Shot.leave(packet, cx) };
        let (answer, more) = child.enqueue_told(packet, cx);
        if answer == Xmit::Success {
            if self.is_old() {
                self.stats.bytes += u64::from(len);
                self.stats.packets += 1;
            }
        } else if answer.counts_as_drop() {
            self.counts.pdrop = self.counts.pdrop.wrapping_add(1);
            self.stats.drops = self.stats.drops.wrapping_add(1);
        }
        if cx.drops.changes() != dropped {
            self.lost(before + more + u32::from(answer == Xmit::Success));
        }
        answer
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let (dropped, before) = (cx.drops.changes(), self.held());
        let packet = self.class.child_mut().and_then(|child| child.dequeue(cx));
        match &packet {
            Some(packet) => {
                if !self.is_old() {
                    self.stats.bytes += u64::from(packet.pkt_len);
                    self.stats.packets += packet.counts_as();
                }
            }
            None => {
                self.red.start_idle(cx.now);
            }
        }
        if cx.drops.changes() != dropped {
            self.lost(before - u32::from(packet.is_some()));
        }
        packet
    }
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        let (dropped, before) = (cx.drops.changes(), self.held());
        let there = self.class.child_mut().is_some_and(|child| child.peek(cx).is_some());
        if cx.drops.changes() != dropped {
            self.lost(before);
        }
        if there { self.class.child_mut()?.peek(cx) } else { None }
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.child()?.next_wakeup()
    }
    fn watches_idle(&self) -> bool {
        true
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let o = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        let kernel = self.device.kernel;
        for (name, block) in ["early_drop", "mark"].into_iter().zip(self.blocks) {
            if o.u32(name).is_some_and(|given| given != block) {
                return Err(KernelError::new(KernelError::EINVAL, "Change of blocks is not supported"));
            }
        }
        let parms = parms(o, kernel)?;
        let flags = o.u32("flags").unwrap_or(0);
        if flags & NODROP != 0 && flags & ECN == 0 {
            let why = "sch_red: nodrop mode is only meaningful with ECN";
            return Err(self.device.refusal(KernelError::EINVAL, why));
        }
        (self.parms, self.flags) = (parms, flags);
        self.limit = o.u32("limit").unwrap_or(0);
        if self.limit > 0 {
            let init = Init { device: self.device, handle: Handle::UNSPEC, parent: self.class.class() };
            let held = self.held();
            self.class.fill(Node::new(&init, Box::new(Bfifo::new(&self.device, self.limit))), cx);
            self.lost(held);
        }
        // 2.6.35 says that an idle time ends, 6.12 that one begins.
        let empty = self.child().is_none_or(|c| c.qlen() == 0);
        let idle = (empty && kernel >= Kernel::V6_12).then_some(cx.now);
        self.red = random(o, &self.device, idle);
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        if let Some(child) = self.class.child_mut() {
            child.reset(cx);
        }
        self.red.restart();
    }
    fn stats(&self) -> Stats {
        let lost = if self.is_old() { 0 } else { self.class.lost() };
        let (qlen, backlog) = self.child().map_or((0, 0), |c| (c.qlen_above(), c.counted_above()));
        Stats { qlen, backlog, drops: self.stats.drops.wrapping_add(lost), ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.held()
    }
    fn packets(&self, _: &mut dyn FnMut(&Skb)) {}
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn dump(&self) -> Options {
        let mut o = Options::new().with("limit", self.limit).with("flags", self.flags);
        for (name, value) in NUMBERS.into_iter().zip(self.parms) {
            o = o.with(name, value);
        }
        for (name, block) in ["early_drop", "mark"].into_iter().zip(self.blocks) {
            if block != 0 {
                o = o.with(name, block);
            }
        }
        o
    }
    fn marks(&self) -> Option<u64> {
        Some(self.counts.marks())
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        Some(self.counts.xstats())
    }
    fn share_blocks(&mut self, blocks: &Blocks) {
        self.held = self.blocks.map(|b| (b != 0).then(|| blocks.hold(b)));
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.device = *device;
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(&self.class)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(&mut self.class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};

    fn options() -> Options {
        let numbers = [15_360u32, 46_080, 4, 10, 8, 85_899_345];
        let o = Options::new().with("limit", 400_000u32).with("flags", ECN);
        NUMBERS.into_iter().zip(numbers).fold(o, |o, (name, value)| o.with(name, value))
    }
    fn red(kernel: Kernel, o: &Options, bench: &mut Bench) -> Result<Box<dyn Qdisc>, KernelError> {
        let init = Init { device: device(kernel), handle: Handle::new(1, 0), parent: Handle::ROOT };
        build(&init, Some(o), &mut bench.cx(0))
    }

    #[test]
    fn a_change_makes_a_fifo_anew() {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let mut q = red(kernel, &options(), &mut bench).unwrap_or_else(|e| panic!("{e}"));
            let init = Init { device: device(kernel), handle: Handle::new(2, 0), parent: Handle::new(1, 1) };
            let own = Node::new(&init, Box::new(Bfifo::new(&init.device, 1)));
            let class = Handle::new(1, 1);
            q.classes_mut().unwrap().graft(class, Some(own), &mut bench.cx(0)).unwrap();
            assert_eq!(q.classes().unwrap().leaf(class).unwrap().handle, Handle::new(2, 0));
            q.change(Some(&options()), &mut bench.cx(0)).unwrap();
            let leaf = q.classes().unwrap().leaf(class).unwrap();
            assert_eq!((leaf.handle, leaf.dump().u32("limit")), (Handle::UNSPEC, Some(400_000)));
        }
    }

    #[test]
    fn nonsense_is_refused_and_changes_nothing() {
        let mut bench = Bench::new();
        let mut q =
            red(Kernel::V6_12, &options().with("mark", 5u32), &mut bench).unwrap_or_else(|e| panic!("{e}"));
        let before = q.dump();
        let cases = [
            (options().with("flags", NODROP), "Error: sch_red: nodrop mode is only meaningful with ECN."),
            (options().with("min", 1u32 << 30), "RTNETLINK answers: Invalid argument"),
            (options().with("max", 9u32), "RTNETLINK answers: Invalid argument"),
            (options().with("mark", 6u32), "Error: Change of blocks is not supported."),
            (options().with("early_drop", 6u32), "Error: Change of blocks is not supported."),
        ];
        for (bad, said) in cases {
            assert_eq!(q.change(Some(&bad), &mut bench.cx(0)).unwrap_err().to_string(), said);
        }
        assert_eq!(q.dump(), before);
        assert_eq!(before.u32("mark"), Some(5));
        // 2.6.35 shifts the bits out and shows what is left.
        let q = red(Kernel::V2_6_35, &options().with("min", 0xf000_0001u32), &mut bench)
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(q.dump().u32("min"), Some(1));
    }
}
