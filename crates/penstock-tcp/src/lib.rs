//! A TCP endpoint without I/O, as Linux has it, and its family of congestion controllers.
//!
//! An [`Endpoint`] is one side of one connection. It owns no clock, no socket and no bytes: payload is a length,
//! time is an argument, segments are [`penstock_packet::Tcp`] headers. The order of calls is written on [`Endpoint`].

mod ack;
mod attempt;
pub mod cc;
mod clock;
pub mod config;
mod delack;
mod endpoint;
mod frto_2_6_35;
mod handshake;
mod info;
mod minmax;
pub mod ns2;
mod ooo;
mod output;
mod params;
mod rack;
mod recovery;
mod recovery_2_6_35;
mod recv;
mod retransmit;
mod rtt;
mod rtx;
mod sack;
mod sendq;
mod seq;
mod socket;
mod timers;
mod window;

pub use config::{Buffer, Config, Ecn, Stack};
pub use endpoint::{EcnField, Endpoint, Transmit, reset_for};
pub use info::{CaState, Error, State, TcpInfo};
