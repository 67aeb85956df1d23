//! The way out of WireGuard: messages of handshakes, and packets that come in by the device.
//!
//! Follows: linux v6.12 `drivers/net/wireguard/receive.c`; `noise.c` `wg_noise_handshake_consume_initiation`,
//! `wg_noise_handshake_consume_response`, `wg_noise_received_with_keypair`.

use super::{Endpoint, KEEPALIVE_TIMEOUT, Keypair, REJECT_AFTER_TIME, REKEY_TIMEOUT, expired};
use crate::tunnel::ecn;
use crate::{Host, HostCx};
use penstock_lang::wg::Key;
use penstock_model::Span;
use penstock_packet::{L3, L4, Packet, Shim, WireGuard as Message};
use std::net::{IpAddr, SocketAddr};

/// `INITIATIONS_PER_SECOND`: 50.
const BETWEEN_INITIATIONS: Span = Span::from_ms(20);

impl Host {
    /// `wg_packet_receive`: a message for this machine. `Some`: no device listens at its port, and it goes on to the sockets.
    #[cold]
    pub(crate) fn wireguard_receive(&mut self, packet: Packet, cx: &mut HostCx<'_>) -> Option<Packet> {
        let L4::Udp(u) = packet.l4 else { return Some(packet) };
        let Some(&ifindex) = self.tunnels.wireguards.get(&u.dport) else { return Some(packet) };
        let Some(Shim::WireGuard(message)) = packet.rare().carried.as_deref().map(|c| c.shim) else {
            return Some(packet);
        };
        let (from, to): (IpAddr, IpAddr) = match packet.l3 {
            L3::Ipv4(h) => (h.src.into(), h.dst.into()),
            L3::Ipv6(h) => (h.src.into(), h.dst.into()),
            _ => return Some(packet),
        };
        self.snmp.udp[usize::from(from.is_ipv6())].received += 1;
        let endpoint = Endpoint { addr: SocketAddr::new(from, u.sport), src: Some(to), src_if: packet.iif };
        match message {
            Message::Initiation { sender, keys, timestamp } => {
                cx.pool.free(packet);
                self.wg_initiation(ifindex, endpoint, (sender, keys, timestamp), cx);
            }
            Message::Response { sender, receiver, proof } => {
                cx.pool.free(packet);
                self.wg_response(ifindex, endpoint, (sender, receiver, proof), cx);
            }
            Message::Data { receiver, counter, pad } => {
                self.wg_data(ifindex, packet, endpoint, (receiver, counter, pad), cx);
            }
        }
        None
    }
    /// `update_rx_stats`.
    fn wg_count(&mut self, ifindex: u32, n: u32, len: u32) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        device.counters.rx_packets += 1;
        device.counters.rx_bytes += u64::from(len);
        if let Some(peer) = device.wireguard.as_deref_mut().and_then(|wg| wg.peers.get_mut(&n)) {
            peer.rx_bytes += u64::from(len);
        }
    }
    /// `wg_socket_set_peer_endpoint`.
    fn wg_hears_from(&mut self, ifindex: u32, n: u32, endpoint: Endpoint) {
        if let Some(peer) = self.wg_peer(ifindex, n) {
            peer.endpoint = Some(endpoint);
        }
    }

    /// `wg_noise_handshake_consume_initiation`, and its answer.
    fn wg_initiation(
        &mut self,
        ifindex: u32,
        endpoint: Endpoint,
        (sender, [from, to], timestamp): (u32, [[u8; 32]; 2], u64),
        cx: &mut HostCx<'_>,
    ) {
        let now = self.coarse(cx.now);
        let Some(wg) = self.wg(ifindex) else { return };
        // mac1 is made with the key of the one who is meant.
        if wg.identity.as_ref().is_none_or(|(_, public)| public.0 != to) {
            return;
        }
        let Some(&n) = wg.by_key.get(&Key(from)) else { return };
        let Some(peer) = wg.peers.get_mut(&n) else { return };
        let replay = timestamp <= peer.latest_timestamp;
        let flood = peer.last_taken.is_some_and(|at| at + BETWEEN_INITIATIONS > now);
        if replay || flood {
            return;
        }
        (peer.latest_timestamp, peer.last_taken, peer.initiation) = (timestamp, Some(now), None);
        wg.forget_indices(n);
        self.wg_hears_from(ifindex, n, endpoint);
        self.wg_respond(ifindex, n, sender, cx);
        self.wg_count(ifindex, n, 148);
        self.wg_any_received(ifindex, n);
        self.wg_any_traversal(ifindex, n, cx.now);
    }
    /// `wg_noise_handshake_consume_response`, and what waited for it goes.
    fn wg_response(
        &mut self,
        ifindex: u32,
        endpoint: Endpoint,
        (sender, receiver, proof): (u32, u32, u64),
        cx: &mut HostCx<'_>,
    ) {
        let now = self.coarse(cx.now);
        let Some(wg) = self.wg(ifindex) else { return };
        let Some(&n) = wg.indices.get(&receiver) else { return };
        if wg.peers.get(&n).is_none_or(|p| p.initiation != Some(receiver))
            || self.wg_proof(ifindex, n) != Some(proof)
        {
            return;
        }
        self.wg_hears_from(ifindex, n, endpoint);
        let Some(wg) = self.wg(ifindex) else { return };
        if let Some(peer) = wg.peers.get_mut(&n) {
            peer.initiation = None;
        }
        wg.add_keypair(n, Keypair::new(receiver, sender, true, now));
        self.wg_session_derived(ifindex, n, cx.now);
        self.wg_handshake_complete(ifindex, n, cx.now);
        self.wg_count(ifindex, n, 92);
        self.wg_any_received(ifindex, n);
        self.wg_any_traversal(ifindex, n, cx.now);
        // What is encrypted goes when the message has been dealt with.
        self.wg_send_keepalive(ifindex, n, cx);
    }

    /// `decrypt_packet`, `wg_packet_rx_poll`, `wg_packet_consume_data_done`.
    fn wg_data(
        &mut self,
        ifindex: u32,
        packet: Packet,
        endpoint: Endpoint,
        (receiver, counter, pad): (u32, u64, u8),
        cx: &mut HostCx<'_>,
    ) {
        let now = self.coarse(cx.now);
        let taken = self.wg(ifindex).and_then(|wg| {
            let n = *wg.indices.get(&receiver)?;
            let peer = wg.peers.get_mut(&n)?;
            let keys = peer.keypair(receiver)?;
            keys.receives &= !expired(keys.birth, REJECT_AFTER_TIME, now);
            (keys.receives && keys.replay.takes(counter)).then_some(n)
        });
        let Some(n) = taken else {
            self.discard(packet, "wireguard", "no-session", cx);
            return;
        };
        self.wg_hears_from(ifindex, n, endpoint);
        let confirmed = self.wg_received_with(ifindex, n, receiver);
        if confirmed {
            self.wg_handshake_complete(ifindex, n, cx.now);
        }
        self.wg_last_minute(ifindex, n, cx);
        self.wg_any_received(ifindex, n);
        self.wg_any_traversal(ifindex, n, cx.now);
        self.wg_packet(ifindex, n, packet, pad, cx);
        if confirmed {
            self.wg_send_staged(ifindex, n, cx);
        }
    }
    /// What a message carries comes in by the device.
    fn wg_packet(&mut self, ifindex: u32, n: u32, mut packet: Packet, pad: u8, cx: &mut HostCx<'_>) {
        let outer = ecn::dsfield(&packet.l3);
        if let Some(memory) = packet.decapsulate() {
            cx.pool.free_carried(memory);
        }
        let len = packet.network_len() + u32::from(pad) + 32;
        if packet.network_len() == 0 {
            self.wg_count(ifindex, n, len);
            cx.pool.free(packet);
            return;
        }
        self.wg_data_received(ifindex, n, cx.now);
        let from: Option<IpAddr> = match packet.l3 {
            L3::Ipv4(h) => Some(h.src.into()),
            L3::Ipv6(h) => Some(h.src.into()),
            _ => None,
        };
        let allowed = from.and_then(|from| self.wg(ifindex)?.allowed.lookup(from)) == Some(n);
        if !allowed {
            let errors = &mut self.devices[ifindex].errors;
            (errors.rx, errors.rx_frame) = (errors.rx + 1, errors.rx_frame + 1);
            self.discard(
                packet,
                "wireguard",
                if from.is_none() { "not-ip" } else { "source-not-allowed" },
                cx,
            );
            return;
        }
        let before = ecn::dsfield(&packet.l3);
        // A mark of congestion on what cannot have one is passed over: the answer of INET_ECN_decapsulate is not looked at.
        if let Some(mark) = ecn::decapsulate(outer, before).filter(|mark| *mark != before & 3) {
            ecn::set(&mut packet.l3, mark);
        }
        packet.reset_ct();
        (packet.priority, packet.mark, packet.tc.index, packet.iif) = (0, 0, 0, ifindex);
        packet.rare_mut().ptype = None;
        self.wg_count(ifindex, n, len);
        self.netif_receive(ifindex, packet, cx);
    }
    /// `wg_noise_received_with_keypair`: whether these are the keys that the other end was to confirm.
    fn wg_received_with(&mut self, ifindex: u32, n: u32, index: u32) -> bool {
        let Some(wg) = self.wg(ifindex) else { return false };
        let Some(peer) = wg.peers.get_mut(&n) else { return false };
        if peer.next.as_ref().is_none_or(|k| k.index != index) {
            return false;
        }
        peer.previous = peer.current.take();
        peer.current = peer.next.take();
        wg.forget_indices(n);
        true
    }
    /// `keep_key_fresh` of who receives: a new session before the old one ends.
    fn wg_last_minute(&mut self, ifindex: u32, n: u32, cx: &mut HostCx<'_>) {
        let now = self.coarse(cx.now);
        let Some(peer) = self.wg_peer(ifindex, n).filter(|p| !p.last_minute) else { return };
        let age = REJECT_AFTER_TIME - KEEPALIVE_TIMEOUT - REKEY_TIMEOUT;
        let old =
            peer.current.as_deref().is_some_and(|k| k.sends && k.initiator && expired(k.birth, age, now));
        if old {
            peer.last_minute = true;
            self.wg_initiate(ifindex, n, false, cx);
        }
    }
}
