//! Actions: what filters have done to the packets they match, one file a kind.
//!
//! A machine keeps one [`Actions`]: for each kind a table by index (`struct tcf_idrinfo` of a network namespace). An action
//! lives as long as `tc actions` made it ([`Actions::request`]) or a filter holds an [`ActRef`] to it; a filter's list of
//! them is [`Exts`](crate::cls::Exts).
//!
//! ## The form of a list
//! As it comes from a command (a filter's option `action`, or an [`ActionRequest`](penstock_model::rtnetlink::ActionRequest)) each
//! element holds
//!
//! | name | value |
//! |---|---|
//! | `kind` | text; `gact`, `police`, … |
//! | `options` | nested: the kind's own, `index` and the control `action` among them |
//! | `cookie` | bytes |
//! | `hw_stats` | number: `immediate` 1, `delayed` 2, `disabled` 0 |
//! | `flags` | number: `no_percpu` 1, `skip_hw` 2, `skip_sw` 4 |
//! | `index` | number; of a request to get or delete only |
//!
//! and as it is dumped also `order` (its number in the list), `stats` ([`Stats::to_options`](penstock_model::Stats::to_options)),
//! `in_hw_count`, and in `options` the counts `ref` and `bind` and the times `installed`, `used`, `firstused`, `expires`
//! (hundredths of a second, as `struct tcf_t`). The old `police` of a filter is the option `police`: the nested options alone.
//!
//! A control action is a number as the kernel has it: [`OK`], [`SHOT`], …, [`GOTO_CHAIN`] and [`JUMP`] with their argument in
//! the low 28 bits.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/act_api.c`, `include/uapi/linux/pkt_cls.h`.

mod api;
pub mod bpf;
pub mod connmark;
pub mod csum;
pub mod ct;
pub mod ctinfo;
mod exec;
pub mod gact;
pub mod gate;
mod going;
pub mod ife;
pub mod mirred;
pub mod mpls;
pub mod nat;
pub mod pedit;
mod plain;
pub mod police;
pub mod sample;
pub mod simple;
pub mod skbedit;
pub mod skbmod;
mod table;
pub mod tunnel_key;
pub mod vlan;

pub use api::Answer;
pub use ct::{Ask as CtAsk, Connections, Translation};
pub(crate) use exec::exec;
pub use exec::{Counts, Port, Ports, Run, Sent};
pub(crate) use going::Shrinking;
pub(crate) use table::Ask;
pub use table::{ActRef, Actions, Look};

use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::Skb;
use std::any::Any;
use table::Table;

/// `continue`.
pub const UNSPEC: i32 = -1;
/// `pass`, `ok`.
pub const OK: i32 = 0;
/// `reclassify`.
pub const RECLASSIFY: i32 = 1;
/// `drop`, `shot`.
pub const SHOT: i32 = 2;
/// `pipe`: on with the next action.
pub const PIPE: i32 = 3;
/// The packet goes on elsewhere (`TC_ACT_STOLEN`): what mirred says when it redirects.
pub const STOLEN: i32 = 4;
/// The same (`TC_ACT_QUEUED`).
pub const QUEUED: i32 = 5;
/// To the device a program named (`TC_ACT_REDIRECT`); a classic one can name none.
pub const REDIRECT: i32 = 7;
/// The packet itself, not a copy, goes on elsewhere (`TC_ACT_CONSUMED`); never a control action of a command.
pub const CONSUMED: i32 = 0x0fff_fff0;
/// `trap`: to the processor of a switch. The largest plain control action.
pub const TRAP: i32 = 8;
/// `jump N`: the Nth action of the list is next.
pub const JUMP: i32 = 1 << 28;
/// `goto chain N`.
pub const GOTO_CHAIN: i32 = 2 << 28;
/// The argument of [`JUMP`] and [`GOTO_CHAIN`].
pub const ARGUMENT: i32 = 0x0fff_ffff;

/// `skip_hw`.
pub const SKIP_HW: u32 = 2;
/// `skip_sw`.
pub const SKIP_SW: u32 = 4;
/// Most actions of one list: `TCA_ACT_MAX_PRIO`.
pub const MAX_PRIO: usize = 32;

/// The parameters of one action.
pub trait Act: Any + Send {
    /// The kind's own options as the kernel dumps them; index, control action, counts and times are added to them.
    fn dump(&self, now: Time) -> Options;
    /// Does to a packet what the kind does, and answers a control action: its own, `control`, as a rule. A kind that is
    /// not simulated does nothing.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        let _ = (skb, run);
        control
    }
    /// The `expires` of its times, where it is not the beginning of time.
    fn expires(&self) -> Time {
        Time::ZERO
    }
    /// `offload_act_setup`: what hardware could do of it, were there any. `control` is its control action.
    fn offload(&self, control: i32) -> Offload {
        let _ = control;
        Offload::No
    }
    /// Its kind with what of it does not do to packets what the kernel does, where the kind as such does; none: all does.
    fn unsimulated(&self) -> Option<&'static str> {
        None
    }
    /// A device is gone.
    fn device_gone(&mut self, name: &str) {
        let _ = name;
    }
    /// A device has another name.
    fn device_renamed(&mut self, old: &str, new: &str) {
        let _ = (old, new);
    }
}

/// What hardware could do of an action. There is none here; but 6.12 asks first, and tells what it was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offload {
    /// All of it.
    Yes,
    /// Nothing; the kernel does not say so.
    No,
    /// Nothing, for this reason.
    Says(&'static str),
    /// The kind, but not as it is set up: "Failed to setup tc actions for offload".
    Late,
}

/// One kind of action: `struct tc_action_ops`.
pub struct ActSpec {
    /// Its name in tc.
    pub id: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// The kernels that have it.
    pub kernels: &'static [Kernel],
    /// Whether it does to packets what the kernel does.
    pub simulated: bool,
    /// `init`: checks the options, and answers the action they make.
    pub init: fn(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError>,
}

/// All kinds by name.
pub static KINDS: &[&ActSpec] = &[
    &bpf::SPEC,
    &connmark::SPEC,
    &csum::SPEC,
    &ct::SPEC,
    &ctinfo::SPEC,
    &gact::SPEC,
    &gate::SPEC,
    &ife::SPEC,
    &mirred::SPEC,
    &mpls::SPEC,
    &nat::SPEC,
    &pedit::SPEC,
    &police::SPEC,
    &sample::SPEC,
    &simple::SPEC,
    &skbedit::SPEC,
    &skbmod::SPEC,
    &tunnel_key::SPEC,
    &vlan::SPEC,
];

/// The kind called `id` in this kernel.
pub fn find(id: &str, kernel: Kernel) -> Option<&'static ActSpec> {
    KINDS.iter().find(|k| k.id == id && k.kernels.contains(&kernel)).copied()
}

/// What [`ActSpec::init`] is told.
pub struct Init<'a> {
    /// The kernel.
    pub kernel: Kernel,
    /// The present moment.
    pub now: Time,
    /// A filter asks, and will hold the action (`TCA_ACT_FLAGS_BIND`).
    pub bind: bool,
    /// What is there may be changed (`TCA_ACT_FLAGS_REPLACE`).
    pub replace: bool,
    /// It is the old `police` of a filter.
    pub police: bool,
    /// `no_percpu`, `skip_hw`, `skip_sw`.
    pub flags: u32,
    /// The filter is one of arriving packets.
    pub ingress: bool,
    /// The filter hangs on an `ingress` or a `clsact` qdisc.
    pub clsact: bool,
    /// Rate estimator of the filter.
    pub estimator: Option<(i8, u8)>,
    table: &'a Table,
}

/// Where an action goes in its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its index.
    pub index: u32,
    /// Whether there is one already.
    pub exists: bool,
}

/// What came of [`ActSpec::init`].
pub enum Ready {
    /// The filter holds the action that is there, which stays as it is.
    Bound(u32),
    /// The action has these parameters now.
    Set {
        /// Where.
        place: Place,
        /// Its control action.
        control: i32,
        /// Its parameters.
        params: Box<dyn Act>,
    },
}

impl<'a> Init<'a> {
    /// A refusal in this kernel's words.
    pub fn refusal(&self, errno: i32, sentence: &str) -> KernelError {
        refusal(self.kernel, errno, sentence)
    }
    /// EINVAL without a sentence.
    pub fn invalid(&self) -> KernelError {
        KernelError::errno(KernelError::EINVAL)
    }
    /// `tcf_idr_check_alloc`: the place for an index, 0 for the kernel to choose. `None`: the index is there, and the filter that
    /// asks is bound to it as it is.
    ///
    /// # Errors
    /// EAGAIN where the same list made it just now.
    pub fn place(&self, index: u32) -> Result<Option<Place>, KernelError> {
        if index == 0 {
            return Ok(Some(Place { index: self.table.unused(self.kernel), exists: false }));
        }
        match self.table.at(index) {
            None => Ok(Some(Place { index, exists: false })),
            Some(_) if self.kernel == Kernel::V2_6_35 => Ok(Some(Place { index, exists: true })),
            Some(action) if action.pending => Err(KernelError::errno(KernelError::EAGAIN)),
            Some(_) if self.bind => Ok(None),
            Some(_) => Ok(Some(Place { index, exists: true })),
        }
    }
    /// Whether a place may be taken.
    ///
    /// # Errors
    /// EEXIST where something is there that may not be replaced.
    pub fn claim(&self, place: Place) -> Result<(), KernelError> {
        if place.exists && !self.replace {
            return Err(KernelError::errno(KernelError::EEXIST));
        }
        Ok(())
    }
    /// The parameters of the action at a place.
    pub fn present<T: Act>(&self, place: Place) -> Option<&T> {
        let action = self.table.at(place.index).filter(|_| place.exists)?;
        (&*action.params as &dyn Any).downcast_ref()
    }
    /// `tcf_action_check_ctrlact`.
    ///
    /// # Errors
    /// EINVAL for a number that means nothing, and for `goto chain` where no filter is.
    pub fn control(&self, action: i32) -> Result<(), KernelError> {
        if self.kernel == Kernel::V2_6_35 {
            return Ok(());
        }
        if !valid(action) {
            return Err(self.refusal(KernelError::EINVAL, "invalid control action"));
        }
        if goto_chain(action).is_some() && !self.bind {
            return Err(self.refusal(KernelError::EINVAL, "can't goto NULL proto/chain"));
        }
        Ok(())
    }
}

/// A refusal in this kernel's words: 2.6.35 knows no sentences.
pub(crate) fn refusal(kernel: Kernel, errno: i32, sentence: &str) -> KernelError {
    match kernel {
        Kernel::V2_6_35 => KernelError::errno(errno),
        Kernel::V6_12 | Kernel::V7_2 => KernelError::new(errno, sentence),
    }
}

/// `tcf_action_valid`.
pub fn valid(action: i32) -> bool {
    match action as u32 >> 28 {
        0 => action <= TRAP,
        1 | 2 => true,
        _ => action == UNSPEC,
    }
}

/// The chain a control action goes to.
pub fn goto_chain(action: i32) -> Option<u32> {
    (action as u32 >> 28 == GOTO_CHAIN as u32 >> 28).then_some((action & ARGUMENT) as u32)
}

/// A number of the options that the wire has as a signed 32-bit one.
pub(crate) fn int(options: &Options, name: &str) -> i32 {
    options.i64(name).unwrap_or(0) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_order() {
        assert!(KINDS.windows(2).all(|w| w[0].id < w[1].id));
    }

    #[test]
    fn control_actions() {
        assert!([UNSPEC, OK, RECLASSIFY, SHOT, PIPE, 8, JUMP + 3, GOTO_CHAIN + 7].into_iter().all(valid));
        assert!(![9, 3 << 28, -2].into_iter().any(valid));
        assert_eq!(
            [goto_chain(GOTO_CHAIN + 7), goto_chain(JUMP + 7), goto_chain(UNSPEC)],
            [Some(7), None, None]
        );
    }
}
