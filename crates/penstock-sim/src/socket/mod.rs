//! Sockets: who gets a packet, and what TCP and UDP do about it.
//!
//! Follows: linux v6.12 `net/ipv4/inet_hashtables.c` (established first, then listeners), `tcp_v4_send_reset`,
//! `net/ipv4/udp.c`, `net/core/sock.c` (`sock_alloc_send_pskb`, `sock_def_write_space`), `ip_setsockopt` IP_TOS.
//!
//! A packet carries the number of its flow, and the flow knows its two sockets: that is looked at first (and
//! checked), so that no lookup is made for a packet of a known connection.

mod config;
mod deliver;
mod fast;
mod metrics;
pub(crate) mod probe;
mod shown;
mod tcp;
pub(crate) mod udp;

use crate::event::Event;
use crate::flow::{Part, RETRANSMISSION, tag, untag};
use crate::index::NONE;
use crate::net::Net;
use crate::results::TcpResult;
use crate::sock::{Addr, Kind, Listener, Message, Owed, SockOpts, TcpSock, UdpSock};
use crate::spec::Stack;
use crate::wake::Wake;
use penstock_host::{TcpRoute, TcpSettings, rt_tos2priority};
use penstock_model::{Kernel, KernelError, Time};
use penstock_packet::headers::{ETH_HLEN, Fragment, Icmp, Ipv6, Quoted, ipproto};
use penstock_packet::{Ipv4, L3, L4, Packet, Sender, Skb, Tcp, TcpFlags, TxClock, TxTime, Udp};
use penstock_sched::Xmit;
use penstock_tcp::{Buffer, Calls, Config, Ecn, Endpoint, SendFlags, State, Transmit, reset_for};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `SKB_TRUESIZE` of a frame with `len` bytes of IP payload, behind headers of `headers` bytes, that a program has written to a socket.
//= linux v6.12 net/ipv4/ip_output.c __ip_append_data, net/core/skbuff.c kmalloc_reserve
fn truesize(kernel: Kernel, headers: u32, len: u32) -> u64 {
    if kernel == Kernel::V2_6_35 {
        // Headers before and `skb_shared_info` behind the data, by the sizes kmalloc has, then `struct sk_buff`.
        return u64::from((len + 44 + headers - ETH_HLEN + 320).next_power_of_two().max(512)) + 256;
    }
    // The IP header, 16 + 15 bytes for that of the link, to whole cache lines; `skb_shared_info` behind them.
    let head = (len + headers - ETH_HLEN + 31).next_multiple_of(64) + 320;
    // Small ones come from a cache of their own (`skb_small_head_cache`).
    let head = if head <= 704 { 704 } else { head.next_power_of_two() };
    u64::from(head) + 256
}

/// The first address in order.
const LEAST: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// An address as 32 bits.
fn folded(addr: IpAddr) -> u32 {
    match addr {
        IpAddr::V4(a) => a.into(),
        IpAddr::V6(a) => {
            let bits = u128::from(a);
            (bits >> 96 ^ bits >> 64 ^ bits >> 32 ^ bits) as u32
        }
    }
}

/// The headers of Ethernet and IP before a packet to this address, bytes.
#[inline]
fn headers(to: IpAddr) -> u32 {
    if to.is_ipv4() { ETH_HLEN + 20 } else { ETH_HLEN + 40 }
}

/// The network header of a packet that a socket makes. Where its source is not chosen yet, or of the other family, the route decides.
#[inline]
fn network(from: IpAddr, to: IpAddr, tos: u8, protocol: u8, whole: bool) -> L3 {
    match to {
        IpAddr::V4(dst) => L3::Ipv4(Ipv4 {
            src: if let IpAddr::V4(src) = from { src } else { Ipv4Addr::UNSPECIFIED },
            dst,
            tos,
            ttl: 0,
            protocol,
            id: 0,
            frag_off: if whole { 0x4000 } else { 0 },
        }),
        IpAddr::V6(dst) => L3::Ipv6(Ipv6 {
            src: if let IpAddr::V6(src) = from { src } else { Ipv6Addr::UNSPECIFIED },
            dst,
            traffic_class: tos,
            flow_label: 0,
            next_header: protocol,
            hop_limit: 0,
            fragment: Fragment::NONE,
        }),
    }
}

/// What a socket reads of a packet's network header.
#[derive(Clone, Copy)]
struct Ends {
    src: IpAddr,
    dst: IpAddr,
    tos: u8,
    ttl: u8,
    /// Length of the headers of Ethernet and IP.
    len: u32,
}

impl Ends {
    #[inline]
    fn of(packet: &Skb) -> Option<Ends> {
        match packet.l3 {
            L3::Ipv4(h) => {
                let (src, dst) = (IpAddr::V4(h.src), IpAddr::V4(h.dst));
                Some(Ends { src, dst, tos: h.tos, ttl: h.ttl, len: ETH_HLEN + 20 })
            }
            L3::Ipv6(h) => {
                let (src, dst) = (IpAddr::V6(h.src), IpAddr::V6(h.dst));
                Some(Ends {
                    src,
                    dst,
                    tos: h.traffic_class,
                    ttl: h.hop_limit,
                    len: ETH_HLEN + h.header_len(),
                })
            }
            _ => None,
        }
    }
}

impl Net {
    fn new_sock(&mut self, host: u32, app: u32, opts: SockOpts, kind: Kind) -> u32 {
        let priority =
            opts.priority.unwrap_or_else(|| rt_tos2priority(self.machines[host as usize].kernel, opts.tos));
        let sock = self.sockets.add(host, app, opts, priority, kind);
        let made = &mut self.machines[host as usize].sockets.made;
        *made += 1;
        self.sockets[sock].own = *made;
        sock
    }
    /// The host with this address.
    pub(crate) fn host_of(&self, addr: IpAddr) -> Option<u32> {
        self.machines.iter().position(|m| m.host.has_address(addr) && !addr.is_loopback()).map(|i| i as u32)
    }

    // Ports.

    /// A port for a socket that has none. Linux goes up from an offset that the peer decides (by 2 today, so that even ports
    /// are for connect; the odd ones come after them); Windows XP counts from 1025. `None`: there is none
    /// (`EADDRNOTAVAIL`).
    ///
    /// A port nobody uses, as long as there is one; then connections to different peers share ports. (Linux lets them share from the
    /// first, where two happen to meet.)
    //= linux v6.12 net/ipv4/inet_hashtables.c __inet_hash_connect
    fn ephemeral_port(&mut self, host: u32, remote: Addr, tcp: bool) -> Option<u16> {
        let machine = &mut self.machines[host as usize];
        let table = &mut machine.sockets;
        let (low, count, step) = match (machine.stack, machine.kernel) {
            (Stack::WindowsXp, _) => (1025u32, 3976u32, 1u32),
            (_, Kernel::V2_6_35) => (32_768, 28_233, 1),
            (_, Kernel::V6_12 | Kernel::V7_2) => (32_768, 28_232, 2),
        };
        let (low, count) = match machine.host.port_range() {
            Some((low, high)) if machine.stack == Stack::Linux => {
                let all = u32::from(high) + 1 - u32::from(low);
                // One port alone has its own parity.
                (u32::from(low), if step == 2 && all > 1 { all & !1 } else { all })
            }
            _ => (low, count),
        };
        let step = if count == 1 { 1 } else { step };
        let mut offset = u32::from(table.ports_used);
        if machine.stack == Stack::Linux {
            let peer = folded(remote.0) ^ u32::from(remote.1) << 16 ^ u32::from(table.port_offset);
            offset += (peer.wrapping_mul(0x9e37_79b1) >> 8) & !1;
        }
        // A pass goes over the ports of one parity; what is tried counts within it.
        let ports =
            |odd: u32| (0..count / step).map(move |i| ((low + (offset + i) * step % count + odd) as u16, i));
        let mut found = None;
        for odd in 0..step {
            if found.is_none() && !table.full[usize::from(tcp)][odd as usize] {
                let taken = |port: u16| match tcp {
                    true => {
                        let mut at = table.connections.range((port, LEAST, 0)..);
                        at.next().is_some_and(|(k, _)| k.0 == port)
                    }
                    false => table.udp.contains_key(&port),
                };
                found = ports(odd).find(|&(port, _)| !taken(port));
                table.full[usize::from(tcp)][odd as usize] = found.is_none();
            }
        }
        for odd in 0..step {
            if found.is_none() && tcp && !table.full_towards.contains(&(remote, odd)) {
                let taken = |port: u16| {
                    let here = table.connections.contains_key(&(port, remote.0, remote.1));
                    here || table.listeners.contains_key(&port)
                };
                found = ports(odd).find(|&(port, _)| !taken(port));
                if found.is_none() {
                    table.full_towards.insert((remote, odd));
                }
            }
        }
        let (port, tried) = found?;
        table.ports_used = table.ports_used.wrapping_add(1 + tried as u16);
        Some(port)
    }
}

/// `strerror` of what ended a connection.
fn error_text(error: penstock_tcp::Error) -> &'static str {
    match error {
        penstock_tcp::Error::Refused => "Connection refused",
        penstock_tcp::Error::Reset => "Connection reset by peer",
        penstock_tcp::Error::BrokenPipe => "Broken pipe",
        penstock_tcp::Error::TimedOut => "Connection timed out",
        penstock_tcp::Error::Unreachable => "No route to host",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sk_wmem_alloc` after one datagram, seen on 6.12.117 over a veth.
    #[test]
    fn a_datagram_s_memory_is_the_kernel_s() {
        for (payload, memory) in
            [(1, 960), (325, 960), (326, 1280), (645, 1280), (646, 2304), (1000, 2304), (1472, 2304)]
        {
            assert_eq!(truesize(Kernel::V6_12, 34, payload + 8), memory, "{payload}");
        }
    }

    /// `ip_local_port_range`: all of the range, even ports first, and no other.
    #[test]
    fn ports_are_those_of_the_range() {
        for (range, want) in [("50001 50007", 50_001..50_007), ("40000 40000", 40_000..40_001)] {
            let mut world = crate::World::new(1);
            let host = world.add_host("a", Kernel::V6_12).0;
            let line = format!("sysctl -qw net.ipv4.ip_local_port_range='{range}'");
            assert_eq!(world.net.machines[host as usize].host.exec(&line, Time::ZERO).status, 0);
            let peer: Addr = (IpAddr::from([10, 0, 0, 2]), 80);
            let mut given = Vec::new();
            while let Some(port) = world.net.ephemeral_port(host, peer, true) {
                world.net.machines[host as usize].sockets.connections.insert((port, peer.0, peer.1), 0);
                given.push(port);
            }
            given.sort_unstable();
            assert_eq!(given, want.collect::<Vec<u16>>());
        }
    }

    /// Ports run out: each is given once, those of connect's parity first; then connections to another peer share them, datagrams
    /// do not; and one that is closed is found again.
    #[test]
    fn ports_run_out_and_are_given_back() {
        for (kernel, all) in [(Kernel::V6_12, 28_232), (Kernel::V2_6_35, 28_233)] {
            let mut world = crate::World::new(1);
            let host = world.add_host("a", kernel).0;
            let (peer, other): (Addr, Addr) =
                ((IpAddr::from([10, 0, 0, 2]), 80), (IpAddr::from([10, 0, 0, 3]), 80));
            let net = &mut world.net;
            let mut given = Vec::new();
            while let Some(port) = net.ephemeral_port(host, peer, true) {
                net.machines[host as usize].sockets.connections.insert((port, peer.0, peer.1), 0);
                given.push(port);
                assert!(given.len() <= all, "{port} again");
            }
            if kernel >= Kernel::V6_12 {
                assert!(
                    given[..14_116].iter().all(|p| p % 2 == 0) && given[14_116..].iter().all(|p| p % 2 == 1)
                );
            }
            let mut sorted = given.clone();
            sorted.sort_unstable();
            let range: Vec<u16> = (32_768..32_768 + all as u16).collect();
            assert_eq!(sorted, range);
            // A listener's port is not a connection's.
            net.machines[host as usize].sockets.listeners.insert(40_000, 0);
            let shared = net.ephemeral_port(host, other, true).unwrap();
            assert!(range.contains(&shared) && shared != 40_000);
            net.machines[host as usize].sockets.connections.remove(&(50_001, peer.0, peer.1));
            net.machines[host as usize].sockets.given_back(true);
            assert_eq!(net.ephemeral_port(host, peer, true), Some(50_001));
            let mut datagrams = 0;
            while let Some(port) = net.ephemeral_port(host, peer, false) {
                assert!(net.machines[host as usize].sockets.udp.insert(port, 0).is_none());
                datagrams += 1;
            }
            assert_eq!((datagrams, net.ephemeral_port(host, other, false)), (all, None));
        }
    }
}
