//! A TCP endpoint without I/O, as Linux has it, and its family of congestion controllers.
//!
//! An [`Endpoint`] is one side of one connection. It owns no clock, no socket and no bytes: payload is a length,
//! time is an argument, segments are [`penstock_packet::Tcp`] headers. The order of calls is written on [`Endpoint`].

pub mod cc;
mod clock;
pub mod config;
mod endpoint;
pub mod fastopen;
mod info;
mod mib;
mod minmax;
pub mod ns2;
mod params;
mod recovery;
mod recv;
mod segment;
mod sender;
mod seq;

pub use config::{Buffer, Calls, Config, Ecn, Stack};
pub use endpoint::{CallInfo, Endpoint, SendFlags, Sent};
pub use info::{AccEcnInfo, CaState, EcnMode, Error, Gauges, State, TcpInfo};
pub use segment::{EcnField, Transmit, reset_for};
