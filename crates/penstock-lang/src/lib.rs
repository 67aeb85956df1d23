//! The command language: what one types at a machine, to data and back.
//!
//! [`token`] splits scripts into words; [`tc`] reads `tc` commands into rtnetlink requests and refuses what tc refuses in its
//! own words; [`show`] prints dumps as tc prints them. No state machines here: what a command does is `host`'s and `sched`'s.

pub mod cisco;
pub mod ere;
pub mod glob;
pub mod ip;
pub mod ipchains;
pub mod ipset;
pub mod iptables;
pub mod nft;
pub mod services;
pub mod setup;
pub mod show;
pub mod ss;
pub mod sysctl;
pub mod tc;
pub mod token;
pub mod toml;
pub mod wg;
