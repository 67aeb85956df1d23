//! Classifiers: the filters of one qdisc and its classes, one file a kind.
//!
//! A qdisc keeps one [`Filters`]: blocks of filters (its own and one for each class that takes filters), each block
//! with chains of priorities, each priority with a [`Classifier`]. All share what the kind keeps per qdisc (u32's
//! hash tables), as in the kernel.
//!
//! Follows: linux v6.12 `net/sched/cls_api.c` `tcf_classify`, `tc_new_tfilter`, `tc_del_tfilter`, `tcf_fill_node`;
//! linux v2.6.35 `net/sched/cls_api.c` `tc_ctl_tfilter`, `net/sched/sch_api.c` `tc_classify`.

pub mod basic;
mod block;
pub mod bpf;
pub mod cgroup;
pub mod ematch;
mod exts;
pub mod flow;
pub mod flower;
pub mod fw;
mod list;
pub mod matchall;
pub(crate) mod request;
pub mod route;
pub mod rsvp;
mod shared;
pub mod tcindex;
pub mod u32;

pub use block::{BlockId, Dumped, Filters, Select};
pub use exts::Exts;
pub use shared::{Blocks, SharedBlock};

use crate::act::{self, Actions, Look};
use crate::ledger::DropReason;
use crate::qdisc::{Classful, Cx, Device, Xmit};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// What a filter says of a packet: `struct tcf_result`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hit {
    /// The class it names; [`Handle::UNSPEC`] where it names none.
    pub classid: Handle,
    /// That class in the qdisc's own numbering as [`Classful::bind`] gave it; 0 where the class did not exist when
    /// the filter was made: look `classid` up then.
    pub class: u32,
}

/// What a filter that matches and its actions say: the return value of `tcf_proto_ops.classify` where it is not negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answer {
    /// A control action; [`crate::act::OK`] where the filter has no actions.
    pub said: i32,
    /// The class it names.
    pub hit: Hit,
}

impl Answer {
    /// What it means for the packet.
    #[inline]
    pub fn verdict(self) -> Verdict {
        match self.said {
            // Nothing in a qdisc redirects (`tcf_classify_qdisc`).
            act::SHOT | act::REDIRECT => Verdict::Gone(Gone::Shot),
            act::STOLEN | act::QUEUED | act::CONSUMED => Verdict::Gone(Gone::Stolen),
            act::TRAP => Verdict::Gone(Gone::Trapped),
            _ => Verdict::Class(self.hit),
        }
    }
}

/// What the filters of a qdisc or a class make of a packet: `tcf_classify`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No filter matches, or the last one says to go on.
    Unmatched,
    /// It goes on, in this class.
    Class(Hit),
    /// It goes no further.
    Gone(Gone),
}

/// How an action has ended a packet's way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gone {
    /// `drop`: the qdisc counts it.
    Shot,
    /// Taken (`TC_ACT_STOLEN`, `TC_ACT_QUEUED`): it goes on elsewhere.
    Stolen,
    /// `trap`: to a processor that is not here.
    Trapped,
}

impl Gone {
    /// Puts the packet on the ledger, and says what a qdisc answers. It counts a drop of its own where that is
    /// [`Xmit::Bypass`].
    pub fn leave(self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let (reason, answer) = match self {
            Gone::Shot => (DropReason::Filter, Xmit::Bypass),
            Gone::Stolen => (DropReason::Stolen, Xmit::Stolen),
            Gone::Trapped => (DropReason::Trapped, Xmit::Stolen),
        };
        cx.drops.drop(packet, reason);
        answer
    }
    /// The same, counted in a qdisc's own counters.
    #[cold]
    pub fn leave_counted(self, packet: Packet, stats: &mut Stats, cx: &mut Cx<'_>) -> Xmit {
        let answer = self.leave(packet, cx);
        if answer == Xmit::Bypass {
            stats.drops = stats.drops.wrapping_add(1);
        }
        answer
    }
}

/// What [`Classifier::change`] is told.
pub struct Change<'a> {
    /// The device.
    pub device: &'a Device,
    /// The qdisc's handle.
    pub qdisc: Handle,
    /// What the filter hangs on.
    pub parent: Handle,
    /// The handle asked for; 0 where none is.
    pub handle: u32,
    /// Options.
    pub options: Option<&'a Options>,
    /// What the chain's filters may look at.
    pub template: Option<&'a flower::Template>,
    /// The qdisc, to bind classes.
    pub classes: &'a mut dyn Classful,
    /// The machine's actions, for [`Exts::validate`].
    pub acts: &'a mut Actions,
    /// The present moment.
    pub now: Time,
    /// What is there may be changed (no NLM_F_CREATE: `change`).
    pub replace: bool,
    /// Rate estimator of the filter's actions.
    pub estimator: Option<(i8, u8)>,
}

/// One priority's worth of filters of one kind: `struct tcf_proto` with its `tcf_proto_ops`.
pub trait Classifier: Send {
    /// The kind's name.
    fn kind(&self) -> &'static str;
    /// What the first filter says that matches and whose actions do not send on to the next one. `None`: the next
    /// priority is asked.
    fn classify(&self, shared: &Shared, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer>;
    /// Whether what it holds is matched as the kernel matches it, where the kind is simulated.
    fn exact(&self) -> bool {
        true
    }
    /// What the messages call what is not matched as the kernel matches it; `None`: the kind.
    fn lacks(&self) -> Option<&'static str> {
        None
    }
    /// Whether there is a filter with this handle.
    fn has(&self, shared: &Shared, handle: u32) -> bool;
    /// Makes a filter, or changes the one with this handle.
    ///
    /// # Errors
    /// The kernel's errno and sentence; nothing is changed then.
    fn change(&mut self, shared: &mut Shared, change: Change<'_>) -> Result<(), KernelError>;
    /// Deletes the filter with this handle, which is there; answers whether it was the last one.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    fn delete(
        &mut self,
        shared: &mut Shared,
        handle: u32,
        device: &Device,
        classes: &mut dyn Classful,
    ) -> Result<bool, KernelError>;
    /// Lets go of what its filters point at and share; it is dropped after that.
    fn destroy(&mut self, shared: &mut Shared, classes: &mut dyn Classful) {
        self.targets(shared, &mut |target| target.unbind(classes));
    }
    /// All filters in the order the kernel walks them: handle, and options where it sends any.
    fn walk(&self, shared: &Shared, look: Look<'_>, visit: &mut dyn FnMut(u32, Option<Options>));
    /// The filter that answers to a handle: its own handle and its options.
    fn one(&self, shared: &Shared, handle: u32, look: Look<'_>) -> Option<(u32, Option<Options>)> {
        let mut found = None;
        self.walk(shared, look, &mut |h, options| {
            if h == handle && found.is_none() {
                found = Some((h, options));
            }
        });
        found
    }
    /// Handle and options of the priority's header, where the kind fills it (some did in 2.6.35).
    fn header(&self, look: Look<'_>) -> Option<(u32, Options)> {
        let _ = look;
        None
    }
    /// What `-br` leaves of a dump; `None` for a kind that has no such form.
    fn terse(&self, options: Option<Options>) -> Option<Options> {
        let _ = options;
        None
    }
    /// Shows the actions of every filter.
    fn exts(&self, shared: &Shared, visit: &mut dyn FnMut(&Exts)) {
        let _ = (shared, visit);
    }
    /// Whether the kernel shows nothing behind this priority: its walk asks to stop.
    fn ends_dump(&self) -> bool {
        false
    }
    /// Shows what each filter points at, to bind it anew.
    fn targets(&mut self, shared: &mut Shared, visit: &mut dyn FnMut(&mut Target));
}

/// What classifiers keep per qdisc.
#[derive(Default, Debug)]
pub struct Shared {
    /// The qdisc's handle.
    pub qdisc: Handle,
    /// The number of the shared block they are in; 0 for a qdisc's own.
    pub block: u32,
    /// u32's hash tables.
    pub u32: u32::Tables,
}

/// One kind of classifier.
pub struct ClsSpec {
    /// Its name in tc.
    pub id: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// The kernels that have it.
    pub kernels: &'static [Kernel],
    /// Whether packets are classified as the kernel does it.
    pub simulated: bool,
    /// Makes an empty one for the priority `prio`.
    pub build: fn(shared: &mut Shared, kernel: Kernel, prio: u16) -> Box<dyn Classifier>,
}

/// All kinds by name.
pub static KINDS: &[&ClsSpec] = &[
    &basic::SPEC,
    &bpf::SPEC,
    &cgroup::SPEC,
    &flow::SPEC,
    &flower::SPEC,
    &fw::SPEC,
    &matchall::SPEC,
    &route::SPEC,
    &rsvp::RSVP,
    &rsvp::RSVP6,
    &tcindex::SPEC,
    &u32::SPEC,
];

/// The kind called `id` in this kernel.
pub fn find(id: &str, kernel: Kernel) -> Option<&'static ClsSpec> {
    KINDS.iter().find(|k| k.id == id && k.kernels.contains(&kernel)).copied()
}

/// A class that a filter points at: classid with the binding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Target(pub Hit);

impl Target {
    /// Points at `classid`: `tcf_bind_filter`.
    pub fn bind(&mut self, parent: Handle, classid: Handle, classes: &mut dyn Classful) {
        let old = self.0.class;
        self.0 = Hit { classid, class: classes.bind(parent, classid) };
        if old != 0 {
            classes.unbind(old);
        }
    }
    /// Adds its `classid` to a dump, where it has one.
    pub fn dump(&self, options: &mut Options) {
        if self.0.classid != Handle::UNSPEC {
            options.set("classid", self.0.classid.0.into());
        }
    }
    /// Points at the class no longer: `tcf_unbind_filter`.
    pub fn unbind(&mut self, classes: &mut dyn Classful) {
        if self.0.class != 0 {
            classes.unbind(self.0.class);
            self.0.class = 0;
        }
    }
}

/// `TCA_CLS_FLAGS_*`.
const SKIP_HW: u32 = 1;
const SKIP_SW: u32 = 2;
const NOT_IN_HW: u32 = 8;
const VERBOSE: u32 = 16;

/// A filter's hardware flags, checked.
#[derive(Clone, Copy, Debug)]
struct HardwareFlags(u32);

/// `tc_flags_valid`.
fn hardware_flags(flags: u32) -> Result<HardwareFlags, KernelError> {
    let both = flags & (SKIP_HW | SKIP_SW) == SKIP_HW | SKIP_SW;
    if both || flags & !(SKIP_HW | SKIP_SW | VERBOSE) != 0 {
        return Err(KernelError::errno(KernelError::EINVAL));
    }
    Ok(HardwareFlags(flags))
}

impl HardwareFlags {
    /// As they were given.
    fn asked(self) -> u32 {
        self.0
    }
    /// `tc_setup_cb_add` where no device takes filters: the flags with what became of it.
    fn in_software(self) -> Result<u32, KernelError> {
        if self.0 & SKIP_SW != 0 {
            return Err(KernelError::errno(KernelError::EOPNOTSUPP));
        }
        Ok(self.0 | NOT_IN_HW)
    }
}
