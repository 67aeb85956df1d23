//! The real kernel as a ground.
//!
//! A [`Plan`] (machines, links, commands, programs, flows) is carried out with network namespaces, veth pairs, the real tools and
//! real sockets, and gives an [`Outcome`]. [`boot`] does the same inside a user-mode kernel in exact virtual time.
//!
//! Nothing outlives a run and nothing outside is touched: it has namespaces of its own for processes, mounts and networks ([`contain`]), and
//! goes with them.

pub mod boot;
pub mod contain;
pub mod drops;
pub mod exec;
pub mod facts;
mod links;
mod names;
pub mod needs;
pub mod plan;
pub mod printed;
mod reasons;
mod rig;
mod run;
mod sample;
pub mod stats;
pub mod traffic;
pub mod wire;

/// Whether this process may make namespaces and devices.
pub fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

pub use plan::Plan;
pub use run::{AppRun, DeviceEnd, FlowRun, Outcome, SetupFailure, Trouble, run};
