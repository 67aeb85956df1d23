//! Probes: datagrams, echo requests and segments that a program makes to hear what becomes of them on their way.
//!
//! Follows: linux v6.12 `net/ipv4/ip_output.c` `__ip_append_data`, `net/ipv6/ip6_output.c` `__ip6_append_data` (what is too long for a socket),
//! `net/ipv4/udp.c` `udp_sendmsg`, `net/ipv4/raw.c` `raw_sendmsg`.

use super::*;

/// What a socket wants of a packet that is longer than its way takes (`IP_MTU_DISCOVER`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Discover {
    /// It is cut, here and on its way.
    Dont,
    /// It is not cut, and what is known of the path does not count.
    Probe,
    /// It is not cut, and what is known of the path counts.
    Do,
}

/// A probe as its program asks for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    pub(crate) from: IpAddr,
    pub(crate) to: IpAddr,
    /// Bytes behind the network header.
    pub(crate) size: u32,
    pub(crate) ttl: u8,
    pub(crate) tos: u8,
    pub(crate) mark: u32,
    /// Flow label of IPv6; 0 for the machine's.
    pub(crate) label: u32,
    /// The device that its socket is bound to; 0 for none.
    pub(crate) bound: u32,
    pub(crate) discover: Discover,
    pub(crate) l4: L4,
    /// The flow that a connection belongs to which it opens; [`NONE`] for one that opens none. It is not counted there.
    pub(crate) flow: u32,
}

/// Why a probe was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unsent {
    /// EMSGSIZE: the way takes packets of so many bytes. The socket's queue of errors says so too.
    TooLong(u32),
    /// Anything else.
    Error(&'static str),
}

impl Net {
    /// Sends a probe. No flow counts it: it is not to arrive, most of the time.
    pub(crate) fn send_probe(&mut self, host: u32, probe: &Probe) -> Result<(), Unsent> {
        let now = self.now();
        let Probe { to, bound, .. } = *probe;
        let before = headers(to);
        let probing = probe.discover == Discover::Probe;
        let whole = probe.discover != Discover::Dont;
        let machine = &mut self.machines[host as usize];
        if whole {
            let mtu = match probing {
                true => machine.host.probing(|h| h.mtu_by(bound, to, now)),
                false => machine.host.mtu_by(bound, to, now),
            };
            if let Some(mtu) = mtu.filter(|mtu| before - ETH_HLEN + probe.size > *mtu) {
                return Err(Unsent::TooLong(mtu));
            }
        }
        let protocol = match probe.l4 {
            L4::Tcp(_) => ipproto::TCP,
            L4::Udp(_) => ipproto::UDP,
            _ if to.is_ipv4() => ipproto::ICMP,
            _ => ipproto::ICMPV6,
        };
        let kernel = machine.kernel;
        let mut l3 = network(probe.from, to, probe.tos, protocol, whole);
        match &mut l3 {
            L3::Ipv4(h) => h.ttl = probe.ttl,
            L3::Ipv6(h) => (h.hop_limit, h.flow_label) = (probe.ttl, probe.label),
            _ => {}
        }
        let packet = self.pool.alloc(Skb {
            priority: rt_tos2priority(kernel, probe.tos),
            mark: probe.mark,
            flow: if probe.flow == NONE { 0 } else { tag(probe.flow, Part::Control) },
            iif: bound,
            created: now,
            queued: now,
            ..Skb::new(before + probe.size, l3, probe.l4)
        });
        let sent = self.on_host(host, |h, cx| match probing {
            true => h.probing(|h| h.send(packet, cx)),
            false => h.send(packet, cx),
        });
        if let (Ok(()), L4::Udp(udp)) = (&sent, probe.l4) {
            // A datagram of a raw socket is none of UDP's.
            let machine = &mut self.machines[host as usize];
            let counts = machine.sockets.udp.contains_key(&udp.sport);
            machine.host.snmp_mut().udp[usize::from(to.is_ipv6())].sent += u64::from(counts);
        }
        sent.map_err(|e| Unsent::Error(e.strerror()))
    }
    /// Opens a socket of UDP for probes to one peer, which hears of errors; answers it, its own address and port.
    pub(crate) fn probe_socket(
        &mut self,
        host: u32,
        app: u32,
        remote: Addr,
        from: IpAddr,
        port: u16,
    ) -> Result<(u32, u16), &'static str> {
        let sock = self.udp_bind(host, app, port, SockOpts::default()).ok_or("Address already in use")?;
        let port = match port {
            0 => {
                // inet_autobind: EAGAIN.
                let found =
                    self.ephemeral_port(host, remote, false).ok_or("Resource temporarily unavailable");
                let port = found?;
                self.sockets[sock].local.1 = port;
                self.machines[host as usize].sockets.udp.insert(port, sock);
                port
            }
            port => port,
        };
        let s = &mut self.sockets[sock];
        (s.local.0, s.remote) = (from, remote);
        if let Kind::Udp(u) = &mut s.kind {
            (u.connected, u.recverr) = (true, true);
        }
        Ok((sock, port))
    }
    /// A port of TCP for a probe (`bind` to port 0).
    pub(crate) fn probe_port(&mut self, host: u32, remote: Addr) -> Option<u16> {
        self.ephemeral_port(host, remote, true)
    }
    /// The first sequence number, the timestamp of a probe: what the machine draws next.
    pub(crate) fn probe_number(&mut self, host: u32) -> u32 {
        self.machines[host as usize].sockets.rng.next_u32()
    }
}
