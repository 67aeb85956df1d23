//! The kernel's `net/sched`: queueing disciplines, classifiers, and the algorithms they embed.
//!
//! [`qdisc`] is the contract every kind keeps; `sch/`, `cls/`, `act/` and `aqm/` hold one file a kind, named as the
//! kernel names it; [`tree`] is one device's tree of qdiscs with the requests `tc` makes of it (`sch_api.c`,
//! `cls_api.c`). Nothing here reads a clock, knows a link, or sees the text of a command.

pub mod act;
pub mod aqm;
pub mod bpf;
pub mod charge;
pub mod cls;
pub mod ebpf;
pub mod estimator;
mod jiffies;
pub mod ledger;
pub mod meter;
mod naps;
pub mod node;
pub mod ns2;
mod psched;
pub mod qdisc;
pub mod queue;
pub mod rates;
pub mod sch;
pub mod stab;
#[cfg(test)]
mod testing;
pub mod traits;
pub mod tree;
mod wait;

pub use act::{Actions, Look};
pub use ledger::{DropReason, Freed, Ledger, Orphan, Work};
pub use node::Node;
pub use qdisc::{Classful, Cx, Device, Due, Init, Qdisc, Xmit};
pub use tree::Tree;
