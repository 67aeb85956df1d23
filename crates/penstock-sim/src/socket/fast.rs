//! TCP Fast Open of a machine's sockets: whether a SYN has data, what a listener makes of one that does, what is kept.
//!
//! Follows: linux v6.12 net/ipv4/tcp_fastopen.c `tcp_fastopen_cookie_check`, `tcp_try_fastopen`, `tcp_fastopen_init_key_once`; net/ipv4/tcp_metrics.c
//! `tcp_fastopen_cache_set`.
//! Differs: programs take a connection at once, so one that is reset counts in its queue for a minute.

use super::*;
use penstock_packet::FastOpen;
use penstock_tcp::fastopen::{Active, Hole, Key, Syn, bits};

impl Net {
    /// How a connection whose program has so many bytes for its SYN is opened; `None`: without Fast Open.
    #[cold]
    pub(super) fn fast_active(
        &mut self,
        host: u32,
        bound: u32,
        ends: (IpAddr, IpAddr),
        bytes: u64,
    ) -> Option<Active> {
        let now = self.now();
        let machine = &mut self.machines[host as usize];
        let s = machine.host.tcp_settings();
        let today = machine.stack == Stack::Linux && machine.kernel != Kernel::V2_6_35;
        if !today || s.fastopen & bits::CLIENT == 0 {
            return None;
        }
        let route = machine.host.tcp_route_by(bound, ends.1);
        let no_cookie = s.fastopen & bits::CLIENT_NO_COOKIE != 0 || route.fastopen_no_cookie;
        let hole: Hole = machine.sockets.hole.state(s.fastopen_blackhole_s, now);
        let row = machine.host.tcp_metrics(bound, ends.0, ends.1, false, now).map(|row| *row);
        Some(Active::new(bytes, row.as_ref(), hole, no_cookie))
    }
    /// The keys of a machine: those that are set, or one that it has drawn.
    fn fast_keys(&mut self, host: u32, set: Vec<Key>) -> Vec<Key> {
        if !set.is_empty() {
            return set;
        }
        let table = &mut self.machines[host as usize].sockets;
        let rng = &mut table.rng;
        let drawn = table.fast_key.get_or_insert_with(|| {
            let mut key = [0; 16];
            for part in key.chunks_exact_mut(4) {
                part.copy_from_slice(&rng.next_u32().to_le_bytes());
            }
            key
        });
        vec![*drawn]
    }
    /// Whether a SYN makes a connection at this listener at once, and the cookie of its answer.
    pub(super) fn fast_verdict(
        &mut self,
        listener: u32,
        (bound, ip): (u32, Ends),
        tcp: &Tcp,
        payload: u32,
    ) -> (bool, Option<FastOpen>) {
        let host = self.sockets[listener].host;
        let syn = tcp.flags.has(TcpFlags::SYN) && !tcp.flags.has(TcpFlags::ACK);
        let Kind::Listener(l) = &self.sockets[listener].kind else { return (false, None) };
        // Most have neither.
        if !syn || tcp.fast_open().is_none() && (payload == 0 || l.fast.most == 0) {
            return (false, None);
        }
        let (s, now) = (self.machines[host as usize].host.tcp_settings(), self.now());
        let keys = self.fast_keys(host, s.fastopen_keys);
        let machine = &mut self.machines[host as usize];
        let no_cookie = machine.host.tcp_route_by(bound, ip.src).fastopen_no_cookie;
        let syn = Syn { option: tcp.fast_open(), data: payload > 0, src: ip.src, dst: ip.dst };
        let Kind::Listener(l) = &mut self.sockets[listener].kind else { return (false, None) };
        let verdict = l.fast.opens(s.fastopen, &keys, no_cookie, &syn, now);
        for name in verdict.counts.into_iter().flatten() {
            machine.host.snmp_mut().bury_tcp(name, 1);
        }
        (verdict.child, verdict.reply)
    }
    /// A segment for a connection that was accepted by Fast Open and whose handshake is not over.
    #[cold]
    pub(super) fn fast_child_hears(
        &mut self,
        sock: u32,
        tcp: &Tcp,
        payload: u32,
        ecn: penstock_tcp::EcnField,
    ) {
        let now = self.now();
        let Kind::Tcp(t) = &mut self.sockets[sock].kind else { return };
        t.end.handle_segment(tcp, payload, ecn, now);
        let (closed, listener) = (t.end.state() == State::Closed, t.listener);
        let over = closed || !t.end.is_fast_child();
        if over && let Some(Kind::Listener(l)) = self.sockets.get_mut(listener).map(|s| &mut s.kind) {
            l.fast.leaves(closed, now);
        }
    }
    /// What a connection has seen of Fast Open is kept.
    #[cold]
    pub(super) fn fast_told(&mut self, sock: u32) {
        let now = self.now();
        let s = &mut self.sockets[sock];
        let (bound, local, remote) = (s.opts.bound, s.local.0, s.remote.0);
        let Kind::Tcp(t) = &mut s.kind else { return };
        let (learned, hole, works) =
            (t.end.take_learned(), t.end.take_blackhole(), t.end.fast_works_again() && !remote.is_loopback());
        let machine = &mut self.machines[s.host as usize];
        if let Some(learned) = learned {
            let jiffies = machine.host.tcp_jiffies(now);
            if let Some(row) = machine.host.tcp_metrics(bound, local, remote, true, now) {
                learned.keep(&mut row.fast, jiffies);
            }
        }
        if hole {
            let timeout = machine.host.tcp_settings().fastopen_blackhole_s;
            if machine.sockets.hole.seen(timeout, now) {
                machine.host.snmp_mut().bury_tcp("TcpExtTCPFastOpenBlackhole", 1);
            }
        }
        if works {
            machine.sockets.hole.works_again();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::*;
    use crate::*;
    use penstock_host::Prefix;
    use penstock_model::traffic::{Load, TcpWishes};
    use penstock_model::{Kernel, Span, Time};

    /// Two transfers one after the other, 10 ms apart: what of the second its server has had 15 ms behind its start, and the world by then.
    fn two_transfers(fastopen: bool, server: &str) -> (World, HostId, u64) {
        let mut w = World::new(1);
        let [a, b] = ["a", "b"].map(|name| w.add_host(name, Kernel::V6_12));
        w.add_link(LinkSpec::new(End::new(a, "eth0"), End::new(b, "eth0"), None, Span::from_ms(10))).unwrap();
        for (host, address) in [(a, "10.0.0.1/24"), (b, "10.0.0.2/24")] {
            let ifindex = w.host(host).ifindex("eth0").unwrap();
            w.host_mut(host).add_address(ifindex, Prefix::parse(address).unwrap()).unwrap();
        }
        assert_eq!(w.exec(b, server).status, 0);
        for at in [1, 2] {
            let tcp = TcpWishes { fastopen, ..TcpWishes::default() };
            let spec = FlowSpec {
                load: Load::Bytes(1_000),
                transport: Transport::Tcp(tcp),
                start: Time::ZERO + Span::from_secs(at),
                start_to: Time::ZERO + Span::from_secs(at),
                ..bench::greedy(a, b)
            };
            w.add_flow(spec).unwrap();
        }
        let results = w.run(Time::ZERO + Span::from_ms(2_015));
        assert_eq!(results.flows[0].goodput_bytes, 1_000);
        let had = results.flows[1].goodput_bytes;
        (w, a, had)
    }

    #[test]
    fn the_second_transfer_by_fast_open_has_its_data_in_the_syn() {
        let on = "sysctl -qw net.ipv4.tcp_fastopen=3";
        let (mut w, a, had) = two_transfers(true, on);
        assert_eq!(had, 1_000);
        let kept = w.exec(a, "ip tcp_metrics show").stdout;
        assert!(kept.contains(" fo_mss 1460 fo_cookie "), "{kept}");
        // Neither without it nor of a server that has it not on.
        assert_eq!(two_transfers(false, on).2, 0);
        assert_eq!(two_transfers(true, "sysctl -qw net.ipv4.tcp_fastopen=1").2, 0);
    }
}
