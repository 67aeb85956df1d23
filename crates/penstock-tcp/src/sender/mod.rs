//! The sending half.

pub(crate) mod rtt;
pub(crate) mod rtx;
pub(crate) mod sendq;
pub(crate) mod timers;
