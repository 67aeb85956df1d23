//! What stands beside a packet for tunnels.
//!
//! Follows: linux v6.12 `include/net/ip_tunnels.h` `struct ip_tunnel_info`.

use std::net::IpAddr;

/// What a packet is to be wrapped in by a tunnel that asks for it, or came in: `struct ip_tunnel_info`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunnelInfo {
    /// Source address of the outer header.
    pub src: IpAddr,
    /// Its destination address.
    pub dst: IpAddr,
    /// Number of the tunnel (VNI, key); 0 where none is given.
    pub id: u64,
    /// Destination port; 0: the device's own.
    pub dst_port: u16,
    /// ToS or traffic class of the outer header.
    pub tos: u8,
    /// Its time to live; 0: the device's own.
    pub ttl: u8,
    /// The outer header is to have a checksum (`TUNNEL_CSUM`).
    pub csum: bool,
    /// It must not be fragmented (`TUNNEL_DONT_FRAGMENT`).
    pub nofrag: bool,
    /// Options of the tunnel's own header.
    pub options: TunnelOptions,
}

/// Options of a tunnel's header as they are kept beside a packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum TunnelOptions {
    /// None.
    #[default]
    None,
    /// Those of geneve (RFC 8926) as they stand on the wire: class, type, length, data of each.
    Geneve(Vec<u8>),
    /// Group policy of vxlan.
    Vxlan {
        /// `gbp`.
        gbp: u32,
    },
    /// erspan, of version 1 with an index, of version 2 with direction and hardware id.
    Erspan {
        /// 1 or 2.
        ver: u8,
        /// Of version 1.
        index: u32,
        /// Of version 2.
        dir: u8,
        /// Of version 2.
        hwid: u8,
    },
}
