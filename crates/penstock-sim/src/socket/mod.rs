//! Sockets: who gets a packet, and what TCP and UDP do about it.
//!
//! Follows: linux v6.12 `net/ipv4/inet_hashtables.c` (established first, then listeners), `tcp_v4_send_reset`,
//! `net/ipv4/udp.c`, `net/core/sock.c` (`sock_alloc_send_pskb`, `sock_def_write_space`), `ip_setsockopt` IP_TOS.
//!
//! A packet carries the number of its flow, and the flow knows its two sockets: that is looked at first (and
//! checked), so that no lookup is made for a packet of a known connection.

mod deliver;
mod tcp;
mod udp;

use crate::event::{Event, Timer};
use crate::flow::{Flow, Part, RETRANSMISSION, tag, untag};
use crate::net::{NONE, Net, Wake};
use crate::results::TcpResult;
use crate::spec::Stack;
use penstock_host::{Effect, TcpSettings, rt_tos2priority};
use penstock_model::{Kernel, KernelError, Rng, Time};
use penstock_packet::headers::{Icmp, ipproto};
use penstock_packet::{Ipv4, L3, L4, Packet, Sender, Skb, Tcp, TcpFlags, Udp};
use penstock_sched::Xmit;
use penstock_tcp::{Buffer, Config, Ecn, Endpoint, State, Transmit, reset_for};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

pub(crate) use deliver::Owed;

/// An address and a port.
pub(crate) type Addr = (Ipv4Addr, u16);

/// What a socket is set to before it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SockOpts {
    /// `IP_TOS`.
    pub(crate) tos: u8,
    /// `SO_MARK`.
    pub(crate) mark: u32,
    /// `SO_PRIORITY`, where it is set; else it follows from the ToS.
    pub(crate) priority: Option<u32>,
}

/// A message of a modelled protocol: what the bytes mean that carry it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    /// What is said.
    pub(crate) kind: u32,
    /// And the numbers with it.
    pub(crate) values: Vec<i64>,
}

/// One socket.
pub(crate) struct Sock {
    pub(crate) host: u32,
    /// The program it belongs to; `NONE` for a flow's own.
    pub(crate) app: u32,
    pub(crate) local: Addr,
    pub(crate) remote: Addr,
    pub(crate) flow: u32,
    /// Whether it sends the flow's data.
    pub(crate) is_source: bool,
    pub(crate) opts: SockOpts,
    priority: u32,
    pub(crate) kind: Kind,
}

/// What kind of socket it is.
pub(crate) enum Kind {
    /// Listens for connections.
    Listener(Listener),
    /// One side of a connection.
    Tcp(Box<TcpSock>),
    /// Datagrams.
    Udp(UdpSock),
    /// Closed; the number is not used again.
    Gone,
}

/// A listening socket.
pub(crate) struct Listener {
    pub(crate) cfg: Config,
    /// Accepted connections read and forget by themselves.
    pub(crate) sink: bool,
}

/// TCP's half of a socket.
pub(crate) struct TcpSock {
    pub(crate) end: Endpoint,
    timer: Timer,
    /// Accepted by this listener; `NONE` for one that connected.
    listener: u32,
    /// Bytes still to be written as room comes; `u64::MAX`: without end.
    pub(crate) pending: u64,
    /// Close once nothing is pending.
    close_after: bool,
    /// Reads by itself.
    sink: bool,
    open_told: bool,
    readable_told: bool,
    eof_told: bool,
    over_told: bool,
    want_write: bool,
    /// What is pending did not fit: it waits until the socket is writable.
    blocked: bool,
    /// Its segments are being sent.
    pumping: bool,
    /// Bytes ever written (with what is pending) and read.
    written: u64,
    read: u64,
    /// Messages on their way to this socket, with the count of bytes read at which each is complete.
    inbox: VecDeque<(u64, Message)>,
}

/// UDP's half of a socket.
#[derive(Default)]
pub(crate) struct UdpSock {
    pub(crate) connected: bool,
    /// `sk_sndbuf`, bytes.
    pub(crate) sndbuf: u32,
    /// `sk_wmem_alloc`: memory of packets that are still in this host, and their payload.
    wmem: u64,
    out_bytes: u64,
    want_write: bool,
    /// Sends back what comes (RFC 862).
    pub(crate) echoes: bool,
    /// An ICMP error to be told at the next call.
    pub(crate) error: Option<&'static str>,
}

/// The sockets of one host.
pub(crate) struct SocketTable {
    /// Connections by local port and peer.
    connections: BTreeMap<(u16, Ipv4Addr, u16), u32>,
    listeners: BTreeMap<u16, u32>,
    udp: BTreeMap<u16, u32>,
    /// Who waits for echo replies, by ICMP identifier.
    pub(crate) pings: Vec<(u16, u32)>,
    rng: Rng,
    port_offset: u16,
    ports_used: u16,
    /// Of each protocol and parity: no port is free any more, so that nobody looks again until one is given back.
    full: [[bool; 2]; 2],
    /// Peers to which every port of a parity has a connection; the same.
    full_towards: BTreeSet<(Addr, u32)>,
}

impl SocketTable {
    pub(crate) fn new(mut rng: Rng) -> SocketTable {
        let port_offset = rng.next_u32() as u16;
        SocketTable {
            connections: BTreeMap::new(),
            listeners: BTreeMap::new(),
            udp: BTreeMap::new(),
            pings: Vec::new(),
            rng,
            port_offset,
            ports_used: 0,
            full: [[false; 2]; 2],
            full_towards: BTreeSet::new(),
        }
    }
}

#[cfg(test)]
impl SocketTable {
    /// The initial sequence number of the next connection follows from this.
    pub(crate) fn set_isn(&mut self, seed: u32) {
        self.rng = Rng::named(u64::from(seed), "isn");
    }
}

/// `SKB_TRUESIZE` of a frame with `len` bytes of IP payload that a program has written to a socket.
//= linux v6.12 net/ipv4/ip_output.c __ip_append_data, net/core/skbuff.c kmalloc_reserve
fn truesize(kernel: Kernel, len: u32) -> u64 {
    if kernel == Kernel::V2_6_35 {
        // Headers before and `skb_shared_info` behind the data, by the sizes kmalloc has, then `struct sk_buff`.
        return u64::from((len + 64 + 320).next_power_of_two().max(512)) + 256;
    }
    // The IP header, 16 + 15 bytes for that of the link, to whole cache lines; `skb_shared_info` behind them.
    let head = (len + 20 + 31).next_multiple_of(64) + 320;
    // Small ones come from a cache of their own (`skb_small_head_cache`).
    let head = if head <= 704 { 704 } else { head.next_power_of_two() };
    u64::from(head) + 256
}

/// What the host's settings say (`net.ipv4.tcp_*`, `net.core.txrehash`). A controller that is not here leaves the kernel's own.
fn set_up(cfg: &mut Config, s: &TcpSettings) {
    if cfg.cc.name != s.congestion_control {
        let _ = cfg.set_cc(&s.congestion_control);
    }
    (cfg.sack, cfg.timestamps, cfg.window_scaling) = (s.sack, s.timestamps, s.window_scaling);
    cfg.ecn = match s.ecn {
        0 => Ecn::Off,
        1 => Ecn::On,
        _ => Ecn::Accept,
    };
    cfg.slow_start_after_idle = s.slow_start_after_idle.unwrap_or(cfg.slow_start_after_idle);
    let [syn, synack, data] = s.retries;
    cfg.syn_retries = syn.unwrap_or(cfg.syn_retries);
    cfg.synack_retries = synack.unwrap_or(cfg.synack_retries);
    cfg.retries2 = data.unwrap_or(cfg.retries2);
    cfg.txrehash = s.txrehash;
    if let Some((first, most)) = s.wmem {
        cfg.sndbuf = Buffer::Auto(first, most);
    }
    if let Some((first, most)) = s.rmem {
        cfg.rcvbuf = Buffer::Auto(first, most);
    }
    if !s.moderate_rcvbuf {
        let first = cfg.rcvbuf.initial();
        cfg.rcvbuf = Buffer::Auto(first, first);
    }
}

impl Net {
    /// The TCP that a host's sockets start with.
    pub(crate) fn tcp_config(&self, host: u32) -> Config {
        let machine = &self.machines[host as usize];
        let mut cfg = match machine.stack {
            Stack::Linux => Config::linux(machine.kernel),
            Stack::WindowsXp => Config::windows_xp(),
            Stack::Solaris => Config::solaris(),
        };
        cfg.device_accounting = machine.stack == Stack::Linux;
        if machine.stack == Stack::Linux {
            cfg.hz = machine.host.hz();
            set_up(&mut cfg, &machine.host.tcp_settings());
        }
        cfg
    }
    /// The segment size that the route's MTU allows.
    fn route_mss(&mut self, host: u32, peer: Ipv4Addr, cfg: &mut Config) {
        if let Some(mtu) = self.machines[host as usize].host.mtu_towards(peer) {
            let mss = mtu.saturating_sub(40).clamp(1, 65_495) as u16;
            cfg.mss = if cfg.mss_follows_mtu { mss } else { cfg.mss.min(mss) };
        }
    }
    /// What the route to a peer says of a connection, and the host's least timeout. What a program or a flow has asked for stands.
    fn route_config(&self, host: u32, peer: Ipv4Addr, cfg: &mut Config) {
        let machine = &self.machines[host as usize];
        if !matches!(cfg.stack, penstock_tcp::Stack::Linux(_)) {
            return;
        }
        let route = machine.host.tcp_route(peer);
        let least = || machine.host.tcp_settings().rto_min;
        cfg.min_rto = cfg.min_rto.or(route.rto_min).or_else(least);
        if cfg.initial_window == 0 {
            cfg.initial_window = route.initcwnd.unwrap_or(0);
        }
        cfg.initial_rwnd = cfg.initial_rwnd.or(route.initrwnd);
        cfg.window_clamp = cfg.window_clamp.or(route.window);
        cfg.cwnd_clamp = cfg.cwnd_clamp.or(route.cwnd);
        cfg.reordering = cfg.reordering.or(route.reordering);
        cfg.quickack |= route.quickack;
        if let Some(advmss) = route.advmss {
            cfg.mss = cfg.mss.min(advmss.min(65_495) as u16);
        }
    }
    fn new_sock(&mut self, host: u32, app: u32, opts: SockOpts, kind: Kind) -> u32 {
        let priority =
            opts.priority.unwrap_or_else(|| rt_tos2priority(self.machines[host as usize].kernel, opts.tos));
        let unspecified = (Ipv4Addr::UNSPECIFIED, 0);
        self.socks.push(Sock {
            host,
            app,
            local: unspecified,
            remote: unspecified,
            flow: NONE,
            is_source: true,
            opts,
            priority,
            kind,
        });
        self.socks.len() as u32 - 1
    }
    /// Adds a flow; its results are numbered in this order.
    pub(crate) fn new_flow(&mut self, name: String, from: u32, to: u32, proto: &'static str) -> u32 {
        self.flows.push(Flow::new(name, from, to, proto));
        self.flows.len() as u32 - 1
    }
    /// The host with this address.
    pub(crate) fn host_of(&self, addr: Ipv4Addr) -> Option<u32> {
        self.machines.iter().position(|m| m.host.is_local(addr) && !addr.is_loopback()).map(|i| i as u32)
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
            (_, Kernel::V6_12) => (32_768, 28_232, 2),
        };
        let mut offset = u32::from(table.ports_used);
        if machine.stack == Stack::Linux {
            let peer = u32::from(remote.0) ^ u32::from(remote.1) << 16 ^ u32::from(table.port_offset);
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
                        let mut at = table.connections.range((port, Ipv4Addr::UNSPECIFIED, 0)..);
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

impl SocketTable {
    /// A port is free again.
    fn given_back(&mut self, tcp: bool) {
        self.full[usize::from(tcp)] = [false; 2];
        if tcp {
            self.full_towards.clear();
        }
    }
}

impl TcpSock {
    fn new(end: Endpoint, listener: u32, sink: bool) -> TcpSock {
        TcpSock {
            end,
            timer: Timer::default(),
            listener,
            pending: 0,
            close_after: false,
            sink,
            open_told: false,
            readable_told: false,
            eof_told: false,
            over_told: false,
            want_write: false,
            blocked: false,
            pumping: false,
            written: 0,
            read: 0,
            inbox: VecDeque::new(),
        }
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

impl Net {
    /// Makes a timer that wakes `app` with [`Wake::Timer`]`(token)`.
    pub(crate) fn new_timer(&mut self, app: u32, token: u32) -> u32 {
        self.app_timers.push(crate::net::AppTimer {
            app,
            token,
            timer: Timer::default(),
            toll: crate::still::Toll::default(),
        });
        self.app_timers.len() as u32 - 1
    }
    /// Sets a timer, or moves it; in the past means now. What is done at its end costs a system call: a program that does it without a
    /// pause gets on by that.
    pub(crate) fn set_timer(&mut self, timer: u32, at: Time) {
        let now = self.now();
        let t = &mut self.app_timers[timer as usize];
        let at = at.max(now + t.toll.charge(now, crate::still::CALL));
        let t = &mut t.timer;
        *t = Timer::default();
        t.arm(Some(at), Event::App(timer), &mut self.queue);
    }
    /// Unsets a timer.
    pub(crate) fn stop_timer(&mut self, timer: u32) {
        self.app_timers[timer as usize].timer = Timer::default();
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
            assert_eq!(truesize(Kernel::V6_12, payload + 8), memory, "{payload}");
        }
    }

    /// Ports run out: each is given once, those of connect's parity first; then connections to another peer share them, datagrams
    /// do not; and one that is closed is found again.
    #[test]
    fn ports_run_out_and_are_given_back() {
        for (kernel, all) in [(Kernel::V6_12, 28_232), (Kernel::V2_6_35, 28_233)] {
            let mut world = crate::World::new(1);
            let host = world.add_host("a", kernel).0;
            let (peer, other): (Addr, Addr) = (([10, 0, 0, 2].into(), 80), ([10, 0, 0, 3].into(), 80));
            let net = &mut world.net;
            let mut given = Vec::new();
            while let Some(port) = net.ephemeral_port(host, peer, true) {
                net.machines[host as usize].sockets.connections.insert((port, peer.0, peer.1), 0);
                given.push(port);
                assert!(given.len() <= all, "{port} again");
            }
            if kernel == Kernel::V6_12 {
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
