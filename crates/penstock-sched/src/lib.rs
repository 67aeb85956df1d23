//! The kernel's `net/sched`: queueing disciplines, classifiers, and the algorithms they embed.
//!
//! [`qdisc`] is the contract every kind keeps; `sch/`, `cls/`, `act/` and `aqm/` hold one file a kind, named as the
//! kernel names it; `tree` is one device's tree of qdiscs with the requests `tc` makes of it (`sch_api.c`,
//! `cls_api.c`). Nothing here reads a clock, knows a link, or sees the text of a command.

pub mod ledger;
pub mod qdisc;

pub use ledger::{DropReason, Ledger};
pub use qdisc::{Classful, Cx, Device, Qdisc, Xmit};
