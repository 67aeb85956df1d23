//! What happens by itself: handshakes that are tried again, keepalives, keys that go.
//!
//! Follows: linux v6.12 `drivers/net/wireguard/timers.c`.

use super::{KEEPALIVE_TIMEOUT, REJECT_AFTER_TIME, REKEY_TIMEOUT};
use crate::{Host, HostCx, Timer, timer};
use penstock_model::Time;

/// `MAX_TIMER_HANDSHAKES`.
const MAX_HANDSHAKES: u32 = 90 / REKEY_TIMEOUT as u32;

/// A peer's timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// `timer_retransmit_handshake`.
    Retransmit,
    /// `timer_send_keepalive`.
    Keepalive,
    /// `timer_new_handshake`.
    NewHandshake,
    /// `timer_zero_key_material`.
    ZeroKeys,
    /// `timer_persistent_keepalive`.
    Persistent,
}

pub(super) const KINDS: usize = 5;
/// In the order of [`Peer`](super::Peer)'s timers.
pub(super) const ALL: [Kind; KINDS] =
    [Kind::Retransmit, Kind::Keepalive, Kind::NewHandshake, Kind::ZeroKeys, Kind::Persistent];

impl Host {
    /// `mod_peer_timer`, in so many seconds and `more` ticks.
    fn wg_set_timer(&mut self, ifindex: u32, n: u32, kind: Kind, seconds: i64, more: u32, now: Time) {
        let (kernel, hz) = (self.kernel, self.hz);
        let Some(device) = self.devices.get_mut(ifindex).filter(|d| d.up) else { return };
        let Some(wg) = device.wireguard.as_deref_mut() else { return };
        let Some(peer) = wg.peers.get_mut(&n) else { return };
        let ticks = seconds * i64::from(hz) + i64::from(more);
        let at = timer::fires_at(kernel, hz, now, timer::ticks(hz, now) + ticks);
        let slot = &mut peer.timers[kind as usize];
        if *slot == Some(at) {
            return;
        }
        if let Some(was) = slot.replace(at) {
            wg.due.remove(&(was, n, kind));
        }
        let first = wg.due.first().is_none_or(|(first, ..)| at < *first);
        wg.due.insert((at, n, kind));
        // The host looks again at whatever is due then; an earlier look finds nothing.
        if first {
            self.timers.insert(at, Timer::WireGuard(ifindex));
        }
    }
    fn wg_del_timer(&mut self, ifindex: u32, n: u32, kind: Kind) {
        let Some(wg) = self.wg(ifindex) else { return };
        let Some(peer) = wg.peers.get_mut(&n) else { return };
        if let Some(was) = peer.timers[kind as usize].take() {
            wg.due.remove(&(was, n, kind));
        }
    }
    fn wg_is_set(&mut self, ifindex: u32, n: u32, kind: Kind) -> bool {
        self.wg_peer(ifindex, n).is_some_and(|p| p.timers[kind as usize].is_some())
    }
    /// `get_random_u32_below(REKEY_TIMEOUT_JITTER_MAX_JIFFIES)`.
    fn wg_jitter(&mut self, ifindex: u32) -> u32 {
        let most = self.hz / 3;
        self.devices.get_mut(ifindex).map_or(0, |d| d.rng.below(most.max(1)))
    }

    /// `wg_timers_data_sent`.
    pub(super) fn wg_data_sent(&mut self, ifindex: u32, n: u32, now: Time) {
        if !self.wg_is_set(ifindex, n, Kind::NewHandshake) {
            let more = self.wg_jitter(ifindex);
            self.wg_set_timer(ifindex, n, Kind::NewHandshake, KEEPALIVE_TIMEOUT + REKEY_TIMEOUT, more, now);
        }
    }
    /// `wg_timers_data_received`.
    pub(super) fn wg_data_received(&mut self, ifindex: u32, n: u32, now: Time) {
        if !self.wg_is_set(ifindex, n, Kind::Keepalive) {
            self.wg_set_timer(ifindex, n, Kind::Keepalive, KEEPALIVE_TIMEOUT, 0, now);
        } else if let Some(peer) = self.wg_peer(ifindex, n) {
            peer.another_keepalive = true;
        }
    }
    /// `wg_timers_any_authenticated_packet_sent`.
    pub(super) fn wg_any_sent(&mut self, ifindex: u32, n: u32) {
        self.wg_del_timer(ifindex, n, Kind::Keepalive);
    }
    /// `wg_timers_any_authenticated_packet_received`.
    pub(super) fn wg_any_received(&mut self, ifindex: u32, n: u32) {
        self.wg_del_timer(ifindex, n, Kind::NewHandshake);
    }
    /// `wg_timers_handshake_initiated`.
    pub(super) fn wg_handshake_initiated(&mut self, ifindex: u32, n: u32, now: Time) {
        let more = self.wg_jitter(ifindex);
        self.wg_set_timer(ifindex, n, Kind::Retransmit, REKEY_TIMEOUT, more, now);
    }
    /// `wg_timers_handshake_complete`.
    pub(super) fn wg_handshake_complete(&mut self, ifindex: u32, n: u32, now: Time) {
        self.wg_del_timer(ifindex, n, Kind::Retransmit);
        if let Some(peer) = self.wg_peer(ifindex, n) {
            (peer.attempts, peer.last_minute, peer.last_handshake) = (0, false, Some(now));
        }
    }
    /// `wg_timers_session_derived`.
    pub(super) fn wg_session_derived(&mut self, ifindex: u32, n: u32, now: Time) {
        self.wg_set_timer(ifindex, n, Kind::ZeroKeys, REJECT_AFTER_TIME * 3, 0, now);
    }
    /// `wg_timers_any_authenticated_packet_traversal`.
    pub(super) fn wg_any_traversal(&mut self, ifindex: u32, n: u32, now: Time) {
        if let Some(seconds) = self.wg_peer(ifindex, n).map(|p| p.keepalive).filter(|&k| k > 0) {
            self.wg_set_timer(ifindex, n, Kind::Persistent, seconds.into(), 0, now);
        }
    }

    /// A WireGuard device has something to do.
    #[cold]
    pub(crate) fn wireguard_timer_fired(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        let asked = self.wg(ifindex).map(|wg| std::mem::take(&mut wg.asked)).unwrap_or_default();
        for (n, keepalive) in asked {
            if keepalive {
                self.wg_send_keepalive(ifindex, n, cx);
            }
            self.wg_send_staged(ifindex, n, cx);
        }
        while let Some(&(at, n, kind)) = self.wg(ifindex).and_then(|wg| wg.due.first()) {
            if at > cx.now {
                self.timers.insert(at, Timer::WireGuard(ifindex));
                break;
            }
            self.wg_del_timer(ifindex, n, kind);
            self.wg_fired(ifindex, n, kind, cx);
        }
    }
    fn wg_fired(&mut self, ifindex: u32, n: u32, kind: Kind, cx: &mut HostCx<'_>) {
        match kind {
            Kind::Retransmit => self.wg_retransmit(ifindex, n, cx),
            Kind::Keepalive => {
                let again =
                    self.wg_peer(ifindex, n).is_some_and(|p| std::mem::take(&mut p.another_keepalive));
                if again {
                    self.wg_set_timer(ifindex, n, Kind::Keepalive, KEEPALIVE_TIMEOUT, 0, cx.now);
                }
                // What is encrypted goes when the timer has run, and stops it again.
                self.wg_send_keepalive(ifindex, n, cx);
            }
            Kind::NewHandshake => {
                self.wg_clear_source(ifindex, n);
                self.wg_initiate(ifindex, n, false, cx);
            }
            Kind::ZeroKeys => {
                let Some(wg) = self.wg(ifindex) else { return };
                let Some(peer) = wg.peers.get_mut(&n) else { return };
                peer.initiation = None;
                (peer.current, peer.previous, peer.next) = (None, None, None);
                wg.forget_indices(n);
            }
            Kind::Persistent => {
                if self.wg_peer(ifindex, n).is_some_and(|p| p.keepalive > 0) {
                    self.wg_send_keepalive(ifindex, n, cx);
                }
            }
        }
    }
    /// `wg_expired_retransmit_handshake`.
    fn wg_retransmit(&mut self, ifindex: u32, n: u32, cx: &mut HostCx<'_>) {
        let Some(peer) = self.wg_peer(ifindex, n) else { return };
        if peer.attempts <= MAX_HANDSHAKES {
            peer.attempts += 1;
            self.wg_clear_source(ifindex, n);
            self.wg_initiate(ifindex, n, true, cx);
            return;
        }
        let gone: Vec<_> = peer.staged.drain(..).collect();
        self.wg_del_timer(ifindex, n, Kind::Keepalive);
        self.wireguard_lost(ifindex, gone);
        cx.out.append(&mut self.pending);
        if !self.wg_is_set(ifindex, n, Kind::ZeroKeys) {
            self.wg_set_timer(ifindex, n, Kind::ZeroKeys, REJECT_AFTER_TIME * 3, 0, cx.now);
        }
    }
    /// `wg_socket_clear_peer_endpoint_src`.
    fn wg_clear_source(&mut self, ifindex: u32, n: u32) {
        if let Some(endpoint) = self.wg_peer(ifindex, n).and_then(|p| p.endpoint.as_mut()) {
            endpoint.src = None;
        }
    }
}
