//! `ip`: its command lines to data, its refusals and its listings word for word.
//!
//! Follows: iproute2 6.1.0 `ip/ip.c`, `ipaddress.c`, `iplink.c`, `iproute.c`, `ipneigh.c`; 2.6.35 for the old profile.
//! Differs: IPv4 alone; the objects address, link, route and neighbour; usage texts are our own.

mod parse;
mod show;

pub use parse::parse;
pub use show::{AddressView, LinkView, NeighView, RouteView, links, neighbours, route_got, routes};

use std::net::Ipv4Addr;

/// What a listing shows, from `-s -br -o`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Form {
    /// `-s`.
    pub stats: bool,
    /// `-br`.
    pub brief: bool,
    /// `-o`.
    pub oneline: bool,
}

/// An address and a prefix length, host bits kept.
pub type Prefix = (Ipv4Addr, u8);

/// `brd`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broadcast {
    /// `+`: the network's last address.
    Last,
    /// Given.
    Addr(Ipv4Addr),
}

/// What is done with a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteVerb {
    /// `add`.
    Add,
    /// `append`.
    Append,
    /// `change`.
    Change,
    /// `replace`.
    Replace,
    /// `del`.
    Del,
}

/// What kind of route.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RouteKind {
    /// To a neighbour or a gateway.
    #[default]
    Unicast,
    /// `unreachable`.
    Unreachable,
    /// `prohibit`.
    Prohibit,
    /// `blackhole`.
    Blackhole,
}

/// A route as a command describes it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RouteSpec {
    /// Kind, where a word names it.
    pub kind: Option<RouteKind>,
    /// Destination; `None` is `default`, and in `del` no condition only together with `given_dst` false.
    pub dst: Option<Prefix>,
    /// Whether a destination (or `default`) was given.
    pub given_dst: bool,
    /// `via`.
    pub via: Option<Ipv4Addr>,
    /// `dev`.
    pub dev: Option<String>,
    /// `src`.
    pub src: Option<Ipv4Addr>,
    /// `metric`.
    pub metric: Option<u32>,
    /// `proto static`.
    pub proto_static: bool,
}

/// One command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// `ip addr add|replace|change`.
    AddrAdd {
        /// Device.
        dev: String,
        /// Address.
        prefix: Prefix,
        /// `brd`.
        broadcast: Option<Broadcast>,
        /// `replace`, `change`: being there already is no fault.
        replace: bool,
    },
    /// `ip addr del`.
    AddrDel {
        /// Device.
        dev: String,
        /// Address.
        prefix: Prefix,
    },
    /// `ip addr flush dev`.
    AddrFlush(String),
    /// `ip addr show`; `true`: `ip addr`, `false`: `ip link`.
    Show(Option<String>, bool, Form),
    /// `ip link set`.
    LinkSet {
        /// Device.
        dev: String,
        /// `up`, `down`.
        up: Option<bool>,
        /// `mtu`.
        mtu: Option<u32>,
        /// `txqueuelen`.
        txqueuelen: Option<u32>,
        /// `address`.
        address: Option<[u8; 6]>,
    },
    /// `ip route add|append|change|replace|del`.
    Route(RouteVerb, RouteSpec),
    /// `ip route show`, with a device and `table local|all`.
    RouteShow {
        /// `dev`.
        dev: Option<String>,
        /// Table: 254 main, 255 local, 0 all.
        table: u8,
        /// Only this destination, exactly.
        dst: Option<Prefix>,
        /// Only `default`.
        default: bool,
    },
    /// `ip route get`.
    RouteGet(Ipv4Addr),
    /// `ip route flush`: by device, or `cache`.
    RouteFlush {
        /// `dev`.
        dev: Option<String>,
        /// `cache`.
        cache: bool,
    },
    /// `ip neigh show`.
    NeighShow(Option<String>, Form),
    /// `ip neigh add|replace|change`.
    NeighAdd {
        /// Device.
        dev: String,
        /// Address.
        addr: Ipv4Addr,
        /// `lladdr`.
        mac: [u8; 6],
        /// `nud`: permanent (default), reachable, stale, noarp.
        state: String,
        /// `add`: being there already is a fault.
        exclusive: bool,
    },
    /// `ip neigh del`.
    NeighDel {
        /// Device.
        dev: String,
        /// Address.
        addr: Ipv4Addr,
    },
    /// `ip neigh flush dev`.
    NeighFlush(String),
    /// A usage text, for standard error; exit status 255.
    Help(String),
    /// For standard output.
    Say(String),
}

/// A refused line: what goes to standard error, and the exit status.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Standard error.
    pub stderr: String,
    /// Exit status: 1, 2 (the kernel), or 255.
    pub exit: i32,
    /// Place of the wrong word among the command's words; 0 for the command as a whole.
    pub word: usize,
    /// Our advice; may be empty.
    pub help: String,
}

/// The program's refusal of a device that is not there.
pub fn no_device(name: &str) -> Failure {
    let help = "ip link shows the devices there are".to_owned();
    Failure { stderr: format!("Cannot find device \"{name}\"\n"), exit: 1, word: 0, help }
}

/// What is printed when the kernel refuses.
pub fn refused(error: &penstock_model::KernelError) -> Failure {
    Failure { stderr: format!("{error}\n"), exit: 2, word: 0, help: String::new() }
}
