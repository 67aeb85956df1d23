//! The way into a WireGuard device: to a peer, once there are keys for it.
//!
//! Follows: linux v6.12 `drivers/net/wireguard/device.c` `wg_xmit`; `send.c`; `socket.c` `send4`, `send6`; `noise.c`
//! `wg_noise_handshake_create_initiation`.

use super::{
    Keypair, MAX_STAGED, REJECT_AFTER_TIME, REKEY_AFTER_TIME, REKEY_TIMEOUT, Replay, WORDS, expired,
};
use crate::route::{Key as RouteKey, RouteKind};
use crate::tunnel::ecn;
use crate::{Effect, Host, HostCx, icmp, six};
use penstock_packet::headers::ipproto;
use penstock_packet::{Ipv6, L3, L4, Packet, Shim, Skb, Udp, WireGuard as Message};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `HANDSHAKE_DSCP`: AF41.
const HANDSHAKE_TOS: u8 = 0x88;
/// `MESSAGE_PADDING_MULTIPLE`.
const PADDING: u32 = 16;

impl Host {
    /// `wg_xmit`: a packet that the device's qdisc has let go.
    pub(crate) fn wg_xmit(&mut self, ifindex: u32, packet: Packet, cx: &mut HostCx<'_>) {
        let dst: Option<IpAddr> = match packet.innermost().0 {
            L3::Ipv4(h) => Some(h.dst.into()),
            L3::Ipv6(h) => Some(h.dst.into()),
            _ => None,
        };
        let found = match (dst, self.wg(ifindex)) {
            (None, _) => Err("not-carried"),
            (Some(dst), Some(wg)) => match wg.allowed.lookup(dst) {
                None => Err("no-peer"),
                Some(n) if wg.peers.get(&n).is_none_or(|p| p.endpoint.is_none()) => Err("no-endpoint"),
                Some(n) => Ok(n),
            },
            _ => Err("no-peer"),
        };
        let n = match found {
            Ok(n) => n,
            Err(why) => {
                if dst.is_some() {
                    self.icmp_send(&packet, icmp::DEST_UNREACH, 1, 0, cx);
                    self.icmp6_send(&packet, six::icmp::DEST_UNREACH, six::icmp::ADDR_UNREACH, 0, cx);
                }
                self.devices[ifindex].errors.tx += 1;
                self.lost_in_tunnel(ifindex, packet, why, cx);
                return;
            }
        };
        let mut gone = None;
        if let Some(peer) = self.wg_peer(ifindex, n) {
            if peer.staged.len() > MAX_STAGED {
                gone = peer.staged.pop_front();
            }
            peer.staged.push_back(packet);
        }
        if let Some(oldest) = gone {
            self.devices[ifindex].counters.tx_dropped += 1;
            self.lost_in_tunnel(ifindex, oldest, "too-many-wait", cx);
        }
        self.wg_send_staged(ifindex, n, cx);
    }

    /// `wg_packet_send_staged_packets`: all that waits goes, or a handshake begins.
    pub(super) fn wg_send_staged(&mut self, ifindex: u32, n: u32, cx: &mut HostCx<'_>) {
        let now = self.coarse(cx.now);
        let Some(peer) = self.wg_peer(ifindex, n).filter(|p| !p.staged.is_empty()) else { return };
        let keys = peer.current.as_mut().filter(|k| k.sends);
        let usable = keys.is_some_and(|k| {
            k.sends = !expired(k.birth, REJECT_AFTER_TIME, now);
            k.sends
        });
        if !usable {
            // They wait without weighing on their socket.
            let mut staged = std::mem::take(&mut peer.staged);
            for packet in &mut staged {
                self.drops.orphan(packet);
                packet.sender = Default::default();
            }
            if let Some(peer) = self.wg_peer(ifindex, n) {
                peer.staged = staged;
            }
            cx.out.extend(self.drops.orphans().map(Effect::Orphaned));
            self.wg_initiate(ifindex, n, false, cx);
            return;
        }
        let mut sent = false;
        self.wg_any_traversal(ifindex, n, cx.now);
        self.wg_any_sent(ifindex, n);
        while let Some(packet) = self.wg_peer(ifindex, n).and_then(|p| p.staged.pop_front()) {
            let keepalive = packet.network_len() == 0;
            sent |= self.wg_send_data(ifindex, n, packet, cx) && !keepalive;
        }
        if sent {
            self.wg_data_sent(ifindex, n, cx.now);
        }
        self.wg_keep_fresh(ifindex, n, cx);
    }
    /// `encrypt_packet`, and on its way.
    fn wg_send_data(&mut self, ifindex: u32, n: u32, packet: Packet, cx: &mut HostCx<'_>) -> bool {
        let Some(device) = self.devices.get_mut(ifindex) else { return false };
        let mtu = device.route_mtu();
        let peer = device.wireguard.as_deref_mut().and_then(|wg| wg.peers.get_mut(&n));
        let Some(keys) = peer.and_then(|p| p.current.as_deref_mut()) else {
            self.lost_in_tunnel(ifindex, packet, "no-session", cx);
            return false;
        };
        let (receiver, counter) = (keys.remote, keys.counter);
        keys.counter += 1;
        // calculate_skb_padding
        let len = packet.network_len();
        let last = if mtu > 0 && len > mtu { len % mtu } else { len };
        let filled = last.next_multiple_of(PADDING);
        let pad = if mtu == 0 { filled } else { filled.min(mtu) } - last;
        let tos = match len {
            0 => 0,
            _ => ecn::encapsulate(0, ecn::dsfield(packet.innermost().0)),
        };
        let message = Message::Data { receiver, counter, pad: pad as u8 };
        self.wg_send_message(ifindex, n, packet, message, tos, cx)
    }
    /// `wg_packet_send_keepalive`: an empty packet, unless others wait.
    pub(super) fn wg_send_keepalive(&mut self, ifindex: u32, n: u32, cx: &mut HostCx<'_>) {
        let empty = self.wg_peer(ifindex, n).is_some_and(|p| p.staged.is_empty());
        if empty {
            let packet = nothing(cx);
            if let Some(peer) = self.wg_peer(ifindex, n) {
                peer.staged.push_back(packet);
            }
        }
        self.wg_send_staged(ifindex, n, cx);
    }
    /// `keep_key_fresh`: who began a session begins the next in time.
    fn wg_keep_fresh(&mut self, ifindex: u32, n: u32, cx: &mut HostCx<'_>) {
        let now = self.coarse(cx.now);
        let keys = self.wg_peer(ifindex, n).and_then(|p| p.current.as_deref());
        if keys.is_some_and(|k| k.sends && k.initiator && expired(k.birth, REKEY_AFTER_TIME, now)) {
            self.wg_initiate(ifindex, n, false, cx);
        }
    }

    /// `wg_packet_send_queued_handshake_initiation`, `wg_packet_send_handshake_initiation`.
    pub(super) fn wg_initiate(&mut self, ifindex: u32, n: u32, again: bool, cx: &mut HostCx<'_>) {
        let now = self.coarse(cx.now);
        let Some(peer) = self.wg_peer(ifindex, n) else { return };
        if !again {
            peer.attempts = 0;
        }
        if peer.last_sent.is_some_and(|at| !expired(at, REKEY_TIMEOUT, now)) {
            return;
        }
        peer.last_sent = Some(now);
        let theirs = peer.key.0;
        let Some(index) = self.wg_new_index(ifindex, n) else { return };
        let Some(wg) = self.wg(ifindex) else { return };
        let Some((_, own)) = wg.identity.as_ref().map(|(private, public)| (private.0, public.0)) else {
            return;
        };
        if let Some(peer) = wg.peers.get_mut(&n) {
            peer.initiation = Some(index);
        }
        wg.name(index, n);
        wg.forget_indices(n);
        self.wg_any_traversal(ifindex, n, cx.now);
        self.wg_any_sent(ifindex, n);
        let message = Message::Initiation {
            sender: index,
            keys: [own, theirs],
            timestamp: cx.now.as_ns().max(0) as u64 + 1,
        };
        let packet = nothing(cx);
        self.wg_send_message(ifindex, n, packet, message, HANDSHAKE_TOS, cx);
        self.wg_handshake_initiated(ifindex, n, cx.now);
    }
    /// `wg_packet_send_handshake_response`, for an initiation with this index; the keys are there from then on.
    pub(super) fn wg_respond(&mut self, ifindex: u32, n: u32, receiver: u32, cx: &mut HostCx<'_>) {
        let now = self.coarse(cx.now);
        let Some(sender) = self.wg_new_index(ifindex, n) else { return };
        let Some(proof) = self.wg_proof(ifindex, n) else { return };
        let Some(wg) = self.wg(ifindex) else { return };
        if let Some(peer) = wg.peers.get_mut(&n) {
            peer.last_sent = Some(now);
        }
        wg.add_keypair(n, Keypair::new(sender, receiver, false, now));
        self.wg_session_derived(ifindex, n, cx.now);
        self.wg_any_traversal(ifindex, n, cx.now);
        self.wg_any_sent(ifindex, n);
        let packet = nothing(cx);
        let message = Message::Response { sender, receiver, proof };
        self.wg_send_message(ifindex, n, packet, message, HANDSHAKE_TOS, cx);
    }
    /// What both ends can tell of their keys: the public ones, and the one they share besides.
    pub(super) fn wg_proof(&mut self, ifindex: u32, n: u32) -> Option<u64> {
        let wg = self.wg(ifindex)?;
        let own = wg.identity.as_ref()?.1.0;
        let peer = wg.peers.get(&n)?;
        let (a, b) = (own.min(peer.key.0), own.max(peer.key.0));
        let psk = peer.psk.map_or([0; 32], |k| k.0);
        let bytes = a.into_iter().chain(b).chain(psk);
        // FNV-1a
        Some(bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        }))
    }
    /// An index that names nobody yet (`wg_index_hashtable_insert`).
    fn wg_new_index(&mut self, ifindex: u32, n: u32) -> Option<u32> {
        let device = self.devices.get_mut(ifindex)?;
        let wg = device.wireguard.as_deref()?;
        wg.identity.as_ref()?;
        wg.peers.get(&n)?;
        loop {
            let index = device.rng.next_u32();
            if !wg.indices.contains_key(&index) {
                return Some(index);
            }
        }
    }

    /// `wg_socket_send_skb_to_peer`: whether it went.
    fn wg_send_message(
        &mut self,
        ifindex: u32,
        n: u32,
        mut packet: Packet,
        message: Message,
        tos: u8,
        cx: &mut HostCx<'_>,
    ) -> bool {
        let Some(wg) = self.wg(ifindex) else { return false };
        let (mark, sport) = (wg.fwmark, wg.port);
        let Some(endpoint) = wg.peers.get(&n).and_then(|p| p.endpoint) else {
            self.lost_in_tunnel(ifindex, packet, "no-endpoint", cx);
            return false;
        };
        let len = packet.network_len() + message.len();
        // wg_reset_packet; the socket stays, its time of departure does not.
        (packet.priority, packet.mark, packet.tc.index) = (0, mark, 0);
        packet.sender.departs = penstock_model::Time::ZERO;
        packet.rare_mut().vlan = None;
        let ports = L4::Udp(Udp { sport, dport: endpoint.addr.port() });
        let went = match endpoint.addr.ip() {
            IpAddr::V4(dst) => {
                let Some((src, hop)) = self.wg_way(ifindex, n, dst, mark) else {
                    self.lost_in_tunnel(ifindex, packet, "no-route", cx);
                    return false;
                };
                let outer = Host::outer(src, dst, ipproto::UDP, tos, self.sysctl.default_ttl, false);
                self.wg_wrap(&mut packet, message, outer, ports, cx);
                self.iptunnel_xmit(ifindex, packet, hop, len, cx);
                true
            }
            IpAddr::V6(dst) => self.wg_send6(ifindex, n, packet, (message, ports), (dst, tos), cx),
        };
        if went && let Some(peer) = self.wg_peer(ifindex, n) {
            peer.tx_bytes += u64::from(len);
        }
        went
    }
    fn wg_wrap(&mut self, packet: &mut Packet, message: Message, outer: L3, ports: L4, cx: &mut HostCx<'_>) {
        let memory = cx.pool.carried();
        packet.encapsulate(memory, Shim::WireGuard(message), false, outer, ports);
    }
    /// The way to a peer, and the address that it knows this machine by, where that is still one of this machine and leads there by the same device.
    fn wg_way(
        &mut self,
        ifindex: u32,
        n: u32,
        dst: Ipv4Addr,
        mark: u32,
    ) -> Option<(Ipv4Addr, crate::route::Hop)> {
        let endpoint = self.wg_peer(ifindex, n)?.endpoint?;
        let mut src = match endpoint.src {
            Some(IpAddr::V4(src)) if self.is_local(src) => src,
            _ => Ipv4Addr::UNSPECIFIED,
        };
        let way = |host: &mut Host, src| host.route_by(RouteKey { src, mark, ..RouteKey::to(dst) });
        let mut hop = way(self, src);
        if !src.is_unspecified() && (hop.kind.is_none() || hop.oif != endpoint.src_if) {
            src = Ipv4Addr::UNSPECIFIED;
            hop = way(self, src);
        }
        if src.is_unspecified()
            && let Some(e) = self.wg_peer(ifindex, n)?.endpoint.as_mut()
        {
            (e.src, e.src_if) = (None, 0);
        }
        let usable = matches!(hop.kind, Some(RouteKind::Unicast | RouteKind::Local | RouteKind::Broadcast));
        usable.then(|| (if src.is_unspecified() { self.source_for(&hop, dst) } else { src }, hop))
    }
    /// `send6`.
    fn wg_send6(
        &mut self,
        ifindex: u32,
        n: u32,
        mut packet: Packet,
        (message, ports): (Message, L4),
        (dst, tos): (Ipv6Addr, u8),
        cx: &mut HostCx<'_>,
    ) -> bool {
        let src = match self.wg_peer(ifindex, n).and_then(|p| p.endpoint).and_then(|e| e.src) {
            Some(IpAddr::V6(src)) if self.is_local6(src) => src,
            _ => Ipv6Addr::UNSPECIFIED,
        };
        let len = packet.network_len() + message.len();
        let mut header = Ipv6::new(src, dst, ipproto::UDP);
        (header.traffic_class, header.hop_limit) = (tos, 0);
        self.wg_wrap(&mut packet, message, L3::Ipv6(header), ports, cx);
        if self.depth > 5 {
            self.devices[ifindex].errors.tx += 1;
            self.lost_in_tunnel(ifindex, packet, "recursion", cx);
            return false;
        }
        self.depth += 1;
        packet.reset_ct();
        let went = self.output6(packet, header, 0, cx).is_ok();
        self.depth -= 1;
        let Some(device) = self.devices.get_mut(ifindex) else { return went };
        if went {
            device.counters.tx_packets += 1;
            device.counters.tx_bytes += u64::from(len);
        }
        went
    }
}

/// A packet with nothing in it: a message's.
fn nothing(cx: &mut HostCx<'_>) -> Packet {
    let empty = Skb::new(penstock_packet::headers::ETH_HLEN, L3::Other(0), L4::None);
    cx.pool.alloc(Skb { created: cx.now, queued: cx.now, ..empty })
}

impl Keypair {
    pub(super) fn new(index: u32, remote: u32, initiator: bool, birth: penstock_model::Time) -> Keypair {
        Keypair {
            index,
            remote,
            initiator,
            birth,
            sends: true,
            receives: true,
            counter: 0,
            replay: Replay { counter: 0, seen: [0; WORDS as usize] },
        }
    }
}
