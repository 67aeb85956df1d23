//! The nouns of Linux traffic control as plain data.
//!
//! Units ([`time`], [`rate`], [`size`]), handles, the option tables that travel between a command and a
//! queueing discipline ([`options`]), the requests a command makes and the dumps it prints ([`rtnetlink`]),
//! diagnostics and the kernel profiles. Nothing here knows how any kind behaves.

pub mod binary;
pub mod clock;
pub mod diag;
pub mod handle;
pub mod ifname;
pub mod kernel;
pub mod ns2;
pub mod options;
pub mod psched;
pub mod rate;
pub mod rng;
pub mod rtnetlink;
pub mod size;
pub mod sockets;
pub mod tcp_metrics;
pub mod time;
pub mod traffic;

pub use clock::{ClockSource, OldClock, OldRelease, PschedClock};
pub use diag::{Diagnostic, KernelError, Severity};
pub use handle::Handle;
pub use kernel::Kernel;
pub use options::{Options, Value};
pub use rate::Rate;
pub use rng::Rng;
pub use rtnetlink::Stats;
pub use size::Size;
pub use tcp_metrics::{TcpMetrics, TcpMetricsTable};
pub use time::{EPOCH, Span, Time};
