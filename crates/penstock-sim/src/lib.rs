//! The deterministic simulator: a virtual nanosecond clock, links, sockets, programs.
//!
//! A [`World`] drives [`penstock_host::Host`]s and [`penstock_tcp::Endpoint`]s. Nothing in it depends on anything but
//! its arguments and its seed: the same calls give the same bytes, in debug and release, on every platform.
//!
//! A packet's way: a program writes to a socket; the TCP endpoint or UDP socket makes packets; the host
//! routes and queues them; the card takes one whenever its wire is free; the link delivers it to the next host's
//! processor, and so on to a socket there.

mod account;
mod app;
mod arrival;
mod bench;
mod build;
mod capture;
mod card;
mod cores;
mod course;
mod cpu;
mod crossing;
mod devices;
mod effects;
mod event;
mod flow;
mod frames;
mod histogram;
mod index;
mod intent;
mod link;
mod live;
mod loss;
mod machine;
mod meter;
mod net;
mod part;
mod places;
mod programs;
mod results;
mod sample;
mod script;
mod segment;
#[cfg(test)]
mod six;
mod sock;
mod socket;
mod spaces;
#[cfg(test)]
mod spaces_vectors;
mod spec;
mod split;
mod still;
mod tap;
mod timers;
mod wake;
mod watch;
mod world;

#[cfg(test)]
mod local_drops;
#[cfg(test)]
mod recorded;
#[cfg(test)]
mod redirects;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod ss;
#[cfg(test)]
mod tcp_metrics;
#[cfg(test)]
mod tests;

pub use app::{ProgramOptions, programs};
pub use bench::bench_dumbbell;
pub use capture::{Capture, Seen};
pub use course::{Course, RateCourse};
pub use histogram::Histogram;
pub use intent::{Call, Intent};
pub use live::{Unending, read_ping};
pub use penstock_model::traffic::{Dist, Load, Sizes, TcpWishes};
pub use results::{
    AppResult, Carried, CommandResult, DropCount, DropKey, FlowResult, Interval, Metric, Passage, Place,
    PlaceCount, Results, Series, SeriesSet, Sojourn, TcpResult, Watched,
};
pub use script::{Execute, Script, ScriptState};
pub use spec::{
    AppId, Bleach, BuildError, Cost, Duplex, End, FlowId, FlowSpec, Framing, HostId, Iperf, LinkId, LinkSpec,
    SenderClock, Stack, Transport,
};
pub use world::World;
