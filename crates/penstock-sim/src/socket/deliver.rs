//! Who gets a packet, and what becomes of the memory of those that leave.

use super::*;
use crate::crossing::one_machine;
use crate::sock::Owing;
use penstock_sched::{Freed, Orphan};
use penstock_tcp::{EcnField, Error};

/// The segments of a super-packet reached the sink.
#[cold]
fn all_arrived(flow: &mut crate::flow::Flow, packet: &Packet, ce: bool, now: Time) {
    let headers = packet.segment_headers();
    let mut left = packet.len - headers;
    let size = packet.gso().map_or(left, |gso| gso.size.into());
    while left > 0 {
        let payload = left.min(size);
        flow.arrived(headers + payload, ce, packet.created, now);
        left -= payload;
    }
}

impl Net {
    /// A packet for this host's sockets.
    #[inline]
    pub(crate) fn deliver(&mut self, host: u32, packet: Packet) {
        let Some(ip) = Ends::of(&packet) else {
            self.no_listener(host, packet);
            return;
        };
        if !self.machines[host as usize].sockets.raws.is_empty() {
            self.raw_heard(host, &packet, ip);
        }
        match packet.l4 {
            L4::Tcp(_) => self.deliver_tcp(host, packet, ip),
            L4::Udp(udp) => self.deliver_udp(host, packet, ip, udp),
            L4::Icmp(icmp) => self.deliver_icmp(host, packet, ip, icmp),
            L4::None => self.no_listener(host, packet),
        }
    }
    /// Raw sockets have a copy of each segment of their peer (`raw_local_deliver`).
    #[cold]
    fn raw_heard(&mut self, host: u32, packet: &Skb, ip: Ends) {
        let L4::Tcp(tcp) = &packet.l4 else { return };
        for &(protocol, peer, app) in &self.machines[host as usize].sockets.raws {
            if (protocol, peer) == (ipproto::TCP, ip.src) {
                let ports = (tcp.sport, tcp.dport);
                self.wakes.tell(app, Wake::Segment { from: ip.src, ttl: ip.ttl, ports });
            }
        }
    }
    /// Nobody here wants the packet.
    #[cold]
    fn no_listener(&mut self, host: u32, packet: Packet) {
        self.lost_on(host, packet.iif, packet, "socket", "no-listener");
    }

    #[inline]
    fn deliver_tcp(&mut self, host: u32, packet: Packet, ip: Ends) {
        let L4::Tcp(tcp) = &packet.l4 else { return self.no_listener(host, packet) };
        self.machines[host as usize].host.snmp_mut().tcp_segments += 1;
        let now = self.queue.now();
        let payload = packet.len.saturating_sub(ip.len + tcp.header_len());
        let ecn = EcnField::of_tos(ip.tos);
        let known = untag(packet.flow).and_then(|(flow, part)| {
            let sock = self.meter.flows[flow as usize].socks[usize::from(part != Part::Back)];
            let s = self.sockets.get(sock)?;
            let mine = s.host == host && s.local.1 == tcp.dport && s.remote == (ip.src, tcp.sport);
            (mine && matches!(s.kind, Kind::Tcp(_))).then_some(sock)
        });
        let sock = known.or_else(|| {
            let table = &self.machines[host as usize].sockets;
            table.connections.get(&(tcp.dport, ip.src, tcp.sport)).copied()
        });
        let vrf = self.machines[host as usize].host.vrf_of(packet.iif);
        let sock = sock.filter(|&sock| {
            let bound = self.sockets[sock].opts.bound;
            bound == vrf || bound == 0 && self.machines[host as usize].host.accepts_of_vrfs(true)
        });
        match sock {
            Some(sock) => {
                if let Some((flow, Part::Data)) = untag(packet.flow)
                    && self.meter.received(flow, &packet)
                {
                    let ce = ecn == EcnField::Ce;
                    let flow = &mut self.meter.flows[flow as usize];
                    match packet.gso() {
                        None => flow.arrived(packet.len, ce, packet.created, now),
                        Some(_) => all_arrived(flow, &packet, ce, now),
                    }
                }
                if let Kind::Tcp(t) = &self.sockets[sock].kind
                    && t.end.is_opening()
                {
                    let child = t.end.is_fast_child();
                    self.know_metrics(sock);
                    if child {
                        self.fast_child_hears(sock, tcp, payload, ecn);
                        self.pool.free(packet);
                        return self.pump(sock);
                    }
                }
                if let Kind::Tcp(t) = &mut self.sockets[sock].kind {
                    match packet.gso() {
                        None => t.end.handle_segment(tcp, payload, ecn, now),
                        Some(gso) => t.end.handle_segments(tcp, payload, gso.size.into(), ecn, now),
                    }
                }
                self.pool.free(packet);
                self.pump(sock);
            }
            None => {
                let tcp = *tcp;
                self.deliver_syn(host, packet, ip, &tcp, payload);
            }
        }
    }
    /// A segment for no connection: a listener may make one of it, else it is answered with RST.
    fn deliver_syn(&mut self, host: u32, packet: Packet, ip: Ends, tcp: &Tcp, payload: u32) {
        let now = self.now();
        let machine = &self.machines[host as usize];
        let vrf = machine.host.vrf_of(packet.iif);
        //= linux v6.12 include/net/inet_sock.h inet_sk_bound_dev_eq, inet_request_bound_dev_if
        let hears = vrf == 0 || machine.host.accepts_of_vrfs(true);
        let listening = machine.sockets.listeners.get(&tcp.dport).copied().filter(|_| hears);
        let accepted = listening.and_then(|listener| {
            let (child, reply) = self.fast_verdict(listener, (vrf, ip), tcp, payload);
            let isn = self.machines[host as usize].sockets.rng.next_u32();
            let Kind::Listener(l) = &self.sockets[listener].kind else { return None };
            let (mut cfg, sink) = ((*l.cfg).clone(), l.sink);
            self.route_mss(host, vrf, ip.src, &mut cfg);
            self.route_config(host, vrf, ip.src, &mut cfg);
            let ecn = EcnField::of_tos(ip.tos);
            if !child && reply.is_none() {
                let end = Endpoint::accept_marked(&cfg, tcp, ecn, isn, now)?;
                return Some((listener, sink, end));
            }
            let machine = &mut self.machines[host as usize];
            let row = machine.host.tcp_metrics(vrf, ip.dst, ip.src, false, now).map(|row| *row);
            cfg.known = row.map(|row| (row, machine.host.keeps_ssthresh()));
            let end = Endpoint::accept_fast(&cfg, tcp, payload, ecn, isn, child, reply, now)?;
            Some((listener, sink, end))
        });
        let flow = untag(packet.flow).map(|(flow, part)| (flow, part == Part::Back));
        if let Some((listener, sink, end)) = accepted {
            let (app, opts) = {
                let l = &self.sockets[listener];
                (l.app, SockOpts { bound: vrf, ..l.opts })
            };
            // The flow's data may run from the accepting side (iperf3 -R): then the connecting side said so.
            let (flow, is_source) = match flow {
                Some((flow, from_sink)) => (flow, from_sink),
                None => (self.meter.new_flow("connection".to_owned(), host, host, "tcp"), false),
            };
            let sock = self.new_sock(host, app, opts, Kind::Tcp(Box::new(TcpSock::new(end, listener, sink))));
            let s = &mut self.sockets[sock];
            (s.local, s.remote) = ((ip.dst, tcp.dport), (ip.src, tcp.sport));
            (s.flow, s.is_source) = (flow, is_source);
            self.meter.flows[flow as usize].socks[usize::from(!is_source)] = sock;
            self.machines[host as usize].sockets.connections.insert((tcp.dport, ip.src, tcp.sport), sock);
            if let Some((flow, Part::Data)) = untag(packet.flow) {
                self.meter.received(flow, &packet);
            }
            self.pool.free(packet);
            self.pump(sock);
            return;
        }
        //= linux v6.12 net/ipv6/tcp_ipv6.c tcp_v6_send_reset: not for an address that it shares with others
        //= linux v6.12 net/ipv4/tcp_ipv4.c tcp_v4_send_reset: nor for one of everybody
        let machine = &self.machines[host as usize];
        let own = match ip.dst {
            IpAddr::V4(dst) => !machine.host.is_broadcast_to(vrf, dst),
            IpAddr::V6(_) => machine.host.has_address(ip.dst),
        };
        if let Some(reset) = reset_for(tcp, payload).filter(|_| own) {
            self.machines[host as usize].host.snmp_mut().tcp_resets += 1;
            self.send_reset(host, ip, (packet.flow, packet.iif), &reset);
        }
        self.no_listener(host, packet);
    }
    fn send_reset(&mut self, host: u32, about: Ends, (flow, iif): (u32, u32), reset: &Transmit) {
        let now = self.now();
        let len = about.len + reset.tcp.header_len();
        //= linux v6.12 net/ipv4/tcp_ipv4.c tcp_v4_send_reset, net/ipv6/tcp_ipv6.c tcp_v6_send_response: the class comes back
        let tos = about.tos & !3;
        let flow = untag(flow)
            .map_or(0, |(f, part)| tag(f, if part == Part::Back { Part::Control } else { Part::Back }));
        let packet = self.pool.alloc(Skb {
            flow,
            iif: if about.src.is_ipv4() { self.machines[host as usize].host.vrf_of(iif) } else { iif },
            created: now,
            queued: now,
            ..Skb::new(len, network(about.dst, about.src, tos, ipproto::TCP, true), L4::Tcp(reset.tcp))
        });
        // Nobody waits for the answer: an unreachable peer gets none.
        let _ = self.on_host(host, |h, cx| h.send(packet, cx));
    }

    fn deliver_udp(&mut self, host: u32, packet: Packet, ip: Ends, udp: Udp) {
        let now = self.now();
        let machine = &self.machines[host as usize];
        let hears = machine.host.vrf_of(packet.iif) == 0 || machine.host.accepts_of_vrfs(false);
        let Some(&sock) = machine.sockets.udp.get(&udp.dport).filter(|_| hears) else {
            self.machines[host as usize].host.snmp_mut().udp[usize::from(ip.src.is_ipv6())].no_ports += 1;
            self.on_host(host, |h, cx| h.icmp_unreachable(&packet, 3, cx));
            self.no_listener(host, packet);
            return;
        };
        let len = packet.len.saturating_sub(ip.len + 8);
        self.machines[host as usize].host.snmp_mut().udp[usize::from(ip.src.is_ipv6())].received += 1;
        if let Some((flow, Part::Data)) = untag(packet.flow)
            && self.meter.received(flow, &packet)
        {
            let flow = &mut self.meter.flows[flow as usize];
            flow.arrived(packet.len, ip.tos & 3 == 3, packet.created, now);
            flow.arrives(packet.seq, now);
            flow.goodput_bytes += u64::from(len);
        }
        if matches!(&self.sockets[sock].kind, Kind::Udp(u) if u.echoes) {
            // Without memory the answer is lost, as any datagram of a server that does not wait.
            let _ = self.udp_send_to(sock, (ip.src, udp.sport), len, packet.seq);
        }
        let app = self.sockets[sock].app;
        if app != NONE {
            let (seq, created) = (packet.seq, packet.created);
            let wake = Wake::Datagram { sock, from: (ip.src, udp.sport), to: ip.dst, len, seq, created };
            self.wakes.tell(app, wake);
        }
        self.pool.free(packet);
    }

    fn deliver_icmp(&mut self, host: u32, packet: Packet, ip: Ends, icmp: Icmp) {
        let six = ip.src.is_ipv6();
        match (icmp.ty, icmp.about()) {
            (0, _) if !six => return self.echo_answered(host, packet, ip, icmp),
            (129, _) if six => return self.echo_answered(host, packet, ip, icmp),
            (5, Some(about)) if !six => self.redirect_heard(host, (packet.iif, ip), icmp, about),
            (3 | 11, Some(about)) if !six => self.error_heard(host, ip, icmp, about),
            (1..=4, Some(about)) if six => self.error_heard(host, ip, icmp, about),
            _ => {}
        }
        self.pool.free(packet);
    }
    fn echo_answered(&mut self, host: u32, packet: Packet, ip: Ends, icmp: Icmp) {
        let all = self.machines[host as usize].sockets.pings.len();
        let machine = &self.machines[host as usize];
        let iif = packet.iif;
        let hears = |bound: u32| bound == 0 || bound == iif || machine.host.vrf_of(bound) == iif;
        if !machine.sockets.pings.iter().any(|&(id, _, bound)| id == icmp.id && hears(bound)) {
            self.no_listener(host, packet);
            return;
        }
        if let Some((flow, Part::Data)) = untag(packet.flow) {
            self.meter.received(flow, &packet);
        }
        let len = packet.len - ip.len;
        // Each socket of this identifier has a copy (`raw_local_deliver`).
        for n in 0..all {
            let machine = &self.machines[host as usize];
            let (id, app, bound) = machine.sockets.pings[n];
            if id == icmp.id && (bound == 0 || bound == iif || machine.host.vrf_of(bound) == iif) {
                self.wakes.tell(app, Wake::Echo { len, seq: icmp.seq, ttl: ip.ttl, from: ip.src });
            }
        }
        self.pool.free(packet);
    }
    /// A router knows a better gateway for a packet of a socket here.
    //= linux v6.12 net/ipv4/icmp.c icmp_redirect, icmp_err; net/ipv4/tcp_ipv4.c tcp_v4_err, do_redirect; net/ipv4/udp.c __udp4_lib_err; net/ipv4/ipip.c ipip_err
    fn redirect_heard(&mut self, host: u32, (iif, ip): (u32, Ends), icmp: Icmp, about: &Quoted) {
        let table = &self.machines[host as usize].sockets;
        let sock = match about.protocol {
            ipproto::UDP => self.udp_sender_of(host, about),
            ipproto::TCP => table.connections.get(&(about.sport, about.dst, about.dport)).copied(),
            _ => None,
        };
        // Those of ICMP and of tunnels have no socket that it would have to be for.
        let (bound, heard) = match sock {
            Some(sock) => (self.sockets[sock].opts.bound, true),
            None => (0, !matches!(about.protocol, ipproto::UDP | ipproto::TCP)),
        };
        let IpAddr::V4(by) = ip.src else { return };
        if !heard {
            self.machines[host as usize].host.error_of_nobody(false, about);
            return;
        }
        self.on_host(host, |h, cx| h.follow_redirect(bound, (iif, by), icmp, about, cx));
        if about.protocol == ipproto::ICMP {
            for n in 0..self.machines[host as usize].sockets.pings.len() {
                let (id, app, _) = self.machines[host as usize].sockets.pings[n];
                if id == about.sport {
                    let (from, ttl, ty, code) = (ip.src, ip.ttl, icmp.ty, icmp.code);
                    let wake = Wake::EchoError { from, ttl, ty, code, seq: about.dport, info: icmp.info() };
                    self.wakes.tell(app, wake);
                }
            }
        }
    }
    /// An error about a packet of a socket here. Of a packet that was too big the machine itself has taken note (`Host::mtu_to`).
    fn error_heard(&mut self, host: u32, ip: Ends, icmp: Icmp, about: &Quoted) {
        if about.fragment.is_some_and(|f| f.offset() > 0) {
            //= linux v6.12 net/ipv6/icmp.c icmpv6_notify: whose it is stands in the first fragment alone
            return;
        }
        let now = self.now();
        let six = ip.src.is_ipv6();
        let too_big = if six { icmp.ty == 2 } else { (icmp.ty, icmp.code) == (3, 4) };
        let unreachable = !too_big && icmp.ty == if six { 1 } else { 3 };
        let table = &self.machines[host as usize].sockets;
        let has_socket = match about.protocol {
            ipproto::ICMP | ipproto::ICMPV6 => table.pings.iter().any(|p| p.0 == about.sport),
            ipproto::UDP => self.udp_sender_of(host, about).is_some(),
            _ => {
                let raw = table.raws.iter().any(|raw| (raw.0, raw.1) == (ipproto::TCP, about.dst));
                raw || table.connections.contains_key(&(about.sport, about.dst, about.dport))
            }
        };
        // A raw socket hears of it beside the connection whose it would be.
        let connection = (about.sport, about.dst, about.dport);
        let nobody = match about.protocol {
            ipproto::UDP => !has_socket,
            ipproto::TCP => !table.connections.contains_key(&connection),
            _ => false,
        };
        if too_big && has_socket {
            self.path_narrower(host, icmp, about);
        }
        if nobody {
            self.machines[host as usize].host.error_of_nobody(six, about);
        }
        for n in 0..self.machines[host as usize].sockets.raws.len() {
            let (protocol, peer, app) = self.machines[host as usize].sockets.raws[n];
            if (protocol, peer) == (about.protocol, about.dst) {
                self.tell_error(app, NONE, ip, icmp, about);
            }
        }
        let table = &self.machines[host as usize].sockets;
        match about.protocol {
            ipproto::ICMP | ipproto::ICMPV6 => {
                let (seq, info) = (about.dport, icmp.info());
                for n in 0..table.pings.len() {
                    let (id, app, _) = self.machines[host as usize].sockets.pings[n];
                    if id == about.sport {
                        let (from, ttl, ty, code) = (ip.src, ip.ttl, icmp.ty, icmp.code);
                        self.wakes.tell(app, Wake::EchoError { from, ttl, ty, code, seq, info });
                    }
                }
            }
            ipproto::UDP => {
                let of_socket = self.udp_sender_of(host, about);
                if let Some(sock) = of_socket.filter(|&sock| self.hears_of(sock)) {
                    self.tell_error(self.sockets[sock].app, sock, ip, icmp, about);
                } else if let Some(sock) = of_socket
                    && let Kind::Udp(u) = &mut self.sockets[sock].kind
                    && u.connected
                    && (unreachable || too_big)
                {
                    //= linux v6.12 net/ipv4/udp.c __udp4_lib_err; net/ipv6/udp.c __udp6_lib_err: EMSGSIZE
                    //= linux v6.12 net/ipv6/icmp.c icmpv6_err_convert: what is not fatal is not told
                    u.error = match (six, icmp.code) {
                        _ if too_big => Some("Message too long"),
                        (false, 3) | (true, 4) => Some("Connection refused"),
                        (false, _) => Some("No route to host"),
                        (true, 1 | 5 | 6) => Some("Permission denied"),
                        (true, _) => u.error,
                    };
                }
            }
            ipproto::TCP => {
                let key = (about.sport, about.dst, about.dport);
                let of_socket = table.connections.get(&key).copied();
                if let Some(sock) = of_socket
                    && let Kind::Tcp(t) = &mut self.sockets[sock].kind
                    && unreachable
                {
                    let port = matches!((six, icmp.code), (false, 3) | (true, 4));
                    t.end.refused_by(now, if port { Error::Refused } else { Error::Unreachable });
                    self.pump(sock);
                }
            }
            _ => {}
        }
    }

    /// The socket of UDP that has sent what an error is about: that of its port, where it is connected only to whom it went.
    //= linux v6.12 net/ipv4/udp.c __udp4_lib_err, compute_score; net/ipv6/udp.c __udp6_lib_err
    fn udp_sender_of(&self, host: u32, about: &Quoted) -> Option<u32> {
        let sock = *self.machines[host as usize].sockets.udp.get(&about.sport)?;
        let s = &self.sockets[sock];
        (s.remote.1 == 0 || s.remote == (about.dst, about.dport)).then_some(sock)
    }
    /// Whether a socket of UDP wants to hear of errors about what it has sent (`IP_RECVERR`).
    fn hears_of(&self, sock: u32) -> bool {
        matches!(&self.sockets[sock].kind, Kind::Udp(u) if u.recverr)
    }
    /// Tells a program what an error says.
    fn tell_error(&mut self, app: u32, sock: u32, ip: Ends, icmp: Icmp, about: &Quoted) {
        let (from, ttl, ty, code) = (ip.src, ip.ttl, icmp.ty, icmp.code);
        // Of IPv4 the MTU stands in the lower half, of IPv6 in both.
        let info = icmp.info();
        let ports = (about.sport, about.dport);
        self.wakes.tell(app, Wake::Told { sock, from, ttl, ty, code, info, ports });
    }

    /// The path of a packet of a socket here is narrower than was known (`ipv4_sk_update_pmtu`; of IPv6 the machine has taken note itself). The
    /// connection whose segment it was sends again what was too long (`tcp_v4_mtu_reduced`, `tcp_v6_mtu_reduced`); others to the same
    /// destination see it when they send next (`tcp_current_mss`).
    fn path_narrower(&mut self, host: u32, icmp: Icmp, about: &Quoted) {
        let now = self.now();
        let machine = &mut self.machines[host as usize];
        if let IpAddr::V4(dst) = about.dst {
            machine.host.frag_needed(dst, u32::from(icmp.seq), now);
        }
        let Some(mtu) = machine.host.mtu_to(about.dst, now) else { return };
        let mss = mtu.saturating_sub(if about.dst.is_ipv6() { 60 } else { 40 });
        let own = (about.protocol == ipproto::TCP).then_some((about.sport, about.dst, about.dport));
        let all = machine.sockets.connections.iter().filter(|(key, _)| key.1 == about.dst);
        let all: Vec<(u32, bool)> = all.map(|(key, sock)| (*sock, Some(*key) == own)).collect();
        for (sock, own) in all {
            if let Kind::Tcp(t) = &mut self.sockets[sock].kind
                && t.end.mtu_reduced(now, mss, own)
            {
                self.pump(sock);
            }
        }
    }

    /// A frame was sent, or taken by a card that has no ring: if a socket of this host made it, its memory is free again.
    #[inline]
    pub(crate) fn left_host(&mut self, host: u32, packet: &Packet) {
        // Forwarded frames are the most.
        if packet.iif == 0 && Owed::any(packet) {
            self.free_memory(host, Owed::of(packet));
        }
    }
    /// Frees what a frame that is gone had of its socket's memory (`sock_wfree`).
    #[inline]
    pub(crate) fn free_memory(&mut self, host: u32, owed: Owed) {
        let now = self.queue.now();
        let sock = match untag(owed.flow) {
            Some((flow, part)) => self.meter.flows[flow as usize].socks[usize::from(part == Part::Back)],
            None if owed.port == 0 => return,
            None => self.machines[host as usize].sockets.udp.get(&owed.port).copied().unwrap_or(NONE),
        };
        let Some(s) = self.sockets.get_mut(sock) else { return };
        // What leaves by a namespace's macvlan leaves by a device of another's of its machine.
        if s.host != host && !one_machine(&self.machines, host, s.host) {
            return;
        }
        let host = s.host;
        let kernel = self.machines[host as usize].kernel;
        match &mut s.kind {
            Kind::Tcp(t) if owed.tcp_payload > 0 => {
                match owed.part {
                    Owing::Both => t.end.transmitted_freed(owed.tcp_payload, now),
                    Owing::Memory => t.end.transmitted_orphaned(owed.tcp_payload, now),
                    Owing::Place => return t.end.transmitted_left(),
                    Owing::Cut => return t.end.transmitted_cut(owed.ip_payload),
                }
                // Most of what leaves nobody has waited for.
                if !t.pumping && !t.end.is_quiet() {
                    self.pump(sock);
                }
            }
            Kind::Udp(u) if matches!(owed.part, Owing::Both | Owing::Memory) => {
                let bytes = u64::from(owed.ip_payload).min(u.out_bytes);
                if bytes > 0 {
                    u.out_bytes -= bytes;
                    let freed = if u.out_bytes == 0 {
                        u.wmem
                    } else {
                        truesize(kernel, owed.headers, owed.ip_payload).min(u.wmem)
                    };
                    u.wmem -= freed;
                }
                // A writer is woken when half of the buffer is free; the socket itself counts for a byte.
                let half = match kernel {
                    //= linux v2.6.35 net/core/sock.c sock_def_write_space
                    Kernel::V2_6_35 => (u.wmem + 1) * 2 <= u64::from(u.sndbuf),
                    //= linux v6.12 include/net/sock.h sock_writeable
                    Kernel::V6_12 | Kernel::V7_2 => u.wmem + 1 < u64::from(u.sndbuf >> 1),
                };
                if u.want_write && half {
                    u.want_write = false;
                    self.wakes.tell(s.app, Wake::Writable(sock));
                }
            }
            _ => {}
        }
    }
    /// A packet was dropped before it left this host, which had made it. What the discipline answered to its sender
    /// is told where it was sent.
    #[cold]
    pub(crate) fn dropped_at_home(&mut self, host: u32, packet: &Packet) {
        self.gone_at_home(host, Owed::of(packet), packet.as_sent().2);
    }
    /// What a qdisc has let go of a packet that still waits in it.
    #[cold]
    pub(crate) fn orphaned(&mut self, host: u32, orphan: Orphan) {
        match orphan.freed {
            Freed::All | Freed::Place => self.gone_at_home(host, Owed::to(orphan), &orphan.l4),
            Freed::Memory | Freed::Cut(_) => self.free_memory(host, Owed::to(orphan)),
        }
    }
    /// What a packet owes is free, and its place in this host, before it has left it.
    #[cold]
    fn gone_at_home(&mut self, host: u32, owed: Owed, l4: &L4) {
        if let L4::Tcp(tcp) = l4
            && owed.tcp_payload > 0
            && owed.part != Owing::Memory
            && let Some((flow, part)) = untag(owed.flow)
        {
            let now = self.queue.now();
            let sock = self.meter.flows[flow as usize].socks[usize::from(part == Part::Back)];
            if let Some(s) = self.sockets.get_mut(sock)
                && (s.host == host || one_machine(&self.machines, host, s.host))
                && let Kind::Tcp(t) = &mut s.kind
            {
                let memory = (owed.part == Owing::Both).then_some(owed.tcp_payload);
                t.end.dropped_in_host(tcp.seq, memory, now);
                self.pump(sock);
            }
            return;
        }
        self.free_memory(host, owed);
    }
}
