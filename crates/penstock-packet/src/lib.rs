//! Packets: headers as plain data, their lengths and bytes, marks, ECN and DSCP.
//!
//! A packet is an [`Skb`] behind a [`Packet`] handle of one word. Headers are kept as meaning ([`Ipv4`],
//! [`Tcp`], …) and turned into bytes on demand ([`Skb::header_bytes`]) for byte matches and captures;
//! payload is a length, never contents.

pub mod carried;
pub mod dscp;
mod frame;
mod gso;
pub mod headers;
mod headers_bytes;
pub mod pool;
mod role;
pub mod skb;
mod tunnel;
mod wrap;

pub use carried::{Carried, Shim, WireGuard};
pub use gso::{Cutter, Gso, Segment};
pub use headers::{AccEcn, Arp, FastOpen, Fragment, Icmp, IcmpBody, Ipv4, Ipv6, L3, L4, Tcp, TcpFlags, Udp};
pub use pool::{Extras, Pool};
pub use role::Role;
pub use skb::{
    Bridged, Packet, Rare, Rarely, Sender, Skb, Tagged, TcNote, Tracked, TxClock, TxTime, ethertype,
};
pub use tunnel::{TunnelInfo, TunnelOptions};
pub use wrap::{ETH_P_PPP_DISC, ETH_P_PPP_SES, Head, IFE_MAX, PPP_IP, PPP_IPV6, PPPOE_SES_HLEN, Wrapped};
