//! What `ss` is told of a machine's sockets.
//!
//! Follows: linux v6.12 net/ipv4/inet_diag.c `inet_diag_dump_icsk`, `inet_diag_msg_common_fill`, net/ipv4/udp_diag.c `udp_diag_get_info`.
//! Differs: a listener has one socket for both families, which is IPv6's (`*:5201`) where its program is iperf3 and IPv4's otherwise; a socket that
//! its program has closed leaves it in LAST-ACK, and stays with it before; numbers of files are counted from 3 in a program's own sockets.

use super::*;
use penstock_model::sockets::Socket as Shown;
use penstock_model::sockets::{Protocol, SocketMemory, SocketState, TcpDiag};
use std::collections::BTreeMap;

/// What `net.core.rmem_default` begins with, bytes.
const RMEM_DEFAULT: u64 = 212_992;

impl Net {
    /// The sockets of a machine, or of one of its namespaces.
    pub(crate) fn sockets_of(&mut self, host: u32) -> Vec<Shown> {
        let mut shown = Vec::new();
        let mut files: BTreeMap<u32, u32> = BTreeMap::new();
        for sock in 0..self.sockets.all.len() as u32 {
            let s = &self.sockets[sock];
            if s.host != host {
                continue;
            }
            let app = s.app;
            let told = match &s.kind {
                Kind::Gone => None,
                Kind::Listener(_) => Some(self.listener_shown(sock)),
                Kind::Tcp(_) => self.connection_shown(sock),
                Kind::Udp(_) => Some(self.datagrams_shown(sock)),
            };
            let Some(mut told) = told else { continue };
            if told.ino != 0
                && let Some((name, pid)) = self.machines[host as usize].sockets.processes.get(&app)
            {
                let file = files.entry(app).or_insert(3);
                told.user = Some((name.clone(), *pid, *file));
                *file += 1;
            }
            shown.push(told);
        }
        self.raws_shown(host, &mut shown);
        shown
    }
    fn shown(&self, sock: u32, protocol: Protocol, state: SocketState) -> Shown {
        let s = &self.sockets[sock];
        Shown {
            protocol,
            state,
            recv_q: 0,
            send_q: 0,
            local: s.local,
            remote: s.remote,
            dual: false,
            bound: s.opts.bound,
            mark: s.opts.mark,
            tos: s.opts.tos,
            priority: s.priority,
            ino: s.own,
            cookie: s.own,
            user: None,
            shutdown: Some(0),
            timer: None,
            memory: None,
            tcp: None,
        }
    }
    /// Whether a program's sockets are of IPv6 and take IPv4 too.
    fn is_dual(&self, host: u32, app: u32) -> bool {
        let processes = &self.machines[host as usize].sockets.processes;
        processes.get(&app).is_some_and(|(name, _)| name == "iperf3")
    }
    fn listener_shown(&self, sock: u32) -> Shown {
        let s = &self.sockets[sock];
        let mut told = self.shown(sock, Protocol::Tcp, SocketState::Listen);
        let Kind::Listener(l) = &s.kind else { return told };
        if s.local.0.is_unspecified() && self.is_dual(s.host, s.app) {
            told.dual = true;
            told.local.0 = Ipv6Addr::UNSPECIFIED.into();
        }
        if told.local.0.is_ipv6() {
            told.remote.0 = Ipv6Addr::UNSPECIFIED.into();
        }
        told.send_q = l.backlog.into();
        told.memory = Some(SocketMemory {
            rcvbuf: l.cfg.rcvbuf.initial().into(),
            sndbuf: l.cfg.sndbuf.initial().into(),
            ..SocketMemory::default()
        });
        let reordering = l.cfg.reordering.unwrap_or(3);
        told.tcp =
            Some(Box::new(TcpDiag { cc: l.cfg.cc.name, snd_cwnd: 10, reordering, ..TcpDiag::default() }));
        told
    }
    fn connection_shown(&mut self, sock: u32) -> Option<Shown> {
        let now = self.now();
        let s = &self.sockets[sock];
        let (host, bound, peer) = (s.host, s.opts.bound, s.remote.0);
        let pmtu = self.machines[host as usize].host.mtu_by(bound, peer, now).unwrap_or(0);
        let s = &self.sockets[sock];
        let Kind::Tcp(t) = &s.kind else { return None };
        let state = t.end.diag_state();
        if state == SocketState::Close {
            return None;
        }
        let mut told = self.shown(sock, Protocol::Tcp, state);
        if t.listener != NONE && self.is_dual(host, s.app) {
            let mapped = |addr: IpAddr| match addr {
                IpAddr::V4(a) => IpAddr::V6(a.to_ipv6_mapped()),
                six => six,
            };
            (told.local.0, told.remote.0) = (mapped(told.local.0), mapped(told.remote.0));
        }
        told.timer = t.end.diag_timer(now);
        match state {
            SocketState::TimeWait | SocketState::SynRecv => (told.ino, told.shutdown) = (0, None),
            _ => {
                (told.recv_q, told.send_q) = t.end.diag_queues();
                told.shutdown = Some(t.end.diag_shutdown());
                told.tos = told.tos & !3 | if t.end.diag_ect() { 2 } else { 0 };
                told.memory = Some(t.end.diag_memory());
                told.tcp = Some(Box::new(t.end.diag(now, pmtu, peer.is_ipv6())));
            }
        }
        if state == SocketState::LastAck {
            (told.ino, told.shutdown) = (0, Some(3));
        }
        Some(told)
    }
    fn datagrams_shown(&self, sock: u32) -> Shown {
        let s = &self.sockets[sock];
        let connected = s.remote.1 != 0;
        let state = if connected { SocketState::Established } else { SocketState::Close };
        let mut told = self.shown(sock, Protocol::Udp, state);
        let Kind::Udp(u) = &s.kind else { return told };
        if s.local.0.is_unspecified() && self.is_dual(s.host, s.app) {
            told.dual = true;
            (told.local.0, told.remote.0) = (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into());
        }
        if told.local.0.is_ipv6() && !connected {
            told.remote.0 = Ipv6Addr::UNSPECIFIED.into();
        }
        told.send_q = u.wmem;
        told.memory = Some(SocketMemory {
            rcvbuf: RMEM_DEFAULT,
            wmem: u.wmem,
            sndbuf: u.sndbuf.into(),
            ..SocketMemory::default()
        });
        told
    }
    /// Raw sockets: those of `ping` and its like, as root has them.
    fn raws_shown(&self, host: u32, shown: &mut Vec<Shown>) {
        let machine = &self.machines[host as usize];
        let table = &machine.sockets;
        let pings = table.pings.iter().map(|&(_, app, bound)| (ipproto::ICMP, app, bound));
        let raws = table.raws.iter().map(|&(protocol, _, app)| (protocol, app, 0));
        for (protocol, app, bound) in pings.chain(raws) {
            let none = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
            shown.push(Shown {
                protocol: Protocol::Raw(protocol),
                state: SocketState::Close,
                recv_q: 0,
                send_q: 0,
                local: (none.0, protocol.into()),
                remote: none,
                dual: false,
                bound,
                mark: 0,
                tos: 0,
                priority: 0,
                ino: app.wrapping_add(1),
                cookie: app.wrapping_add(1),
                user: table.processes.get(&app).map(|(name, pid)| (name.clone(), *pid, 3)),
                shutdown: Some(0),
                timer: None,
                memory: Some(SocketMemory {
                    rcvbuf: RMEM_DEFAULT,
                    sndbuf: RMEM_DEFAULT,
                    ..SocketMemory::default()
                }),
                tcp: None,
            });
        }
    }
}
